/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - Trapeze's host library, and its side of experiments: up to 128 bytes are a control part, more are a payload
 * that is sent from where it lies, and is used in the frame that it came into. */
#include "sim/myrinet/systems/trapeze/host.h"

#include <stddef.h>
#include <string.h>

enum { LIBRARY = 35, HANDLER = 12 }; /* host operations of a call, and of what takes a message */

#define AT(field) (t->card + (uint32_t)offsetof(struct tpz_card, field))

/* ---- library ---- */

struct tpz_sendmsg *tpz_get_sendmsg_spinwait(struct tpz *t)
{
    myri_task_operate(t->side->task, LIBRARY, "library");
    if (t->sent - t->known_sent == TPZ_SENDS)
        (void)myri_task_await(t->side->task, AT(sent), t->sent + 1 - TPZ_SENDS, 1, &t->known_sent);
    t->out.frame = t->out.bytes = 0;
    return &t->out;
}

uint32_t *tpz_mtod(struct tpz_sendmsg *m)
{
    return m->control;
}

void tpz_attach_sendmsg(struct tpz *t, struct tpz_sendmsg *m, uint32_t frame)
{
    (void)t;
    m->frame = frame;
}

void tpz_set_payload_len(struct tpz_sendmsg *m, uint32_t bytes)
{
    m->bytes = bytes;
}

uint32_t tpz_release_sendmsg(struct tpz *t, struct tpz_sendmsg *m, uint32_t to, uint32_t control_bytes)
{
    struct myri_task *task = t->side->task;
    uint32_t i = t->sent % TPZ_SENDS, n = control_bytes / 4, head = control_bytes << 16 | m->bytes;
    uint32_t words[TPZ_CONTROL / 4 + 2];
    words[0] = head;
    memcpy(words + 1, m->control, control_bytes);
    words[n + 1] = TPZ_MARK | t->side->node << 24 | head;
    myri_task_copy_loop(task, n);
    uint32_t payload_at = AT(out) + i * TPZ_PLACE + TPZ_AHEAD + TPZ_CONTROL;
    myri_task_combine(task, payload_at - TPZ_AHEAD - control_bytes, words, n + 2);
    const uint32_t rest[] = {to, head, m->frame};
    uint32_t descriptor = AT(send) + i * (uint32_t)sizeof(struct tpz_send);
    myri_task_store_words(task, descriptor + 4, rest, 3);
    myri_task_store(task, descriptor, 1);
    return ++t->sent;
}

void tpz_await_fetched(struct tpz *t, uint32_t number)
{
    uint32_t is;
    (void)myri_task_await(t->side->task, AT(fetched), number, 1, &is);
}

int tpz_get_rcvmsg(struct tpz *t, struct tpz_rcvmsg *m, uint64_t until)
{
    struct myri_task *task = t->side->task;
    uint32_t place = t->taken % TPZ_RING, end = t->records + place * TPZ_RECORD + TPZ_RECORD - 4;
    uint32_t mark = myri_task_poll(task, end, 0, until);
    if (!mark)
        return 0;
    myri_task_operate(task, LIBRARY + HANDLER, "handler");
    t->taken++;
    *m = (struct tpz_rcvmsg){.from = mark >> 24 & 0x7f,
                             .control_bytes = mark >> 16 & 0xff,
                             .bytes = mark & 0xffff,
                             .frame = t->frame[place],
                             .place = place};
    m->control = end - m->control_bytes;
    myri_host_set_word(t->side->host, end, 0);
    return 1;
}

uint32_t tpz_detach_rcvmsg(struct tpz *t, struct tpz_rcvmsg *m)
{
    uint32_t frame = t->frame[m->place];
    t->frame[m->place] = 0;
    return frame;
}

void tpz_attach_rcvmsg(struct tpz *t, struct tpz_rcvmsg *m, uint32_t frame)
{
    t->frame[m->place] = frame;
}

void tpz_release_rcvmsg(struct tpz *t, struct tpz_rcvmsg *m)
{
    myri_task_store(t->side->task, AT(receive) + 4 * m->place, t->frame[m->place]);
}

/* ---- experiments ---- */

struct trapeze_host_state {
    struct tpz tpz;
    struct tpz_rcvmsg held;
    int holds;
};

static int open_side(struct myri_side *side)
{
    struct trapeze_host_state *st = side->state;
    struct tpz *t = &st->tpz;
    t->side = side;
    t->card = myri_card_symbol(side->hw, "card");
    t->records = myri_host_take(side->host, TPZ_RING * TPZ_RECORD, 1);
    for (uint32_t i = 0; i < TPZ_RING; i++)
        t->frame[i] = myri_host_take(side->host, TPZ_FRAME, 1);
    if (side->hw->fault[0])
        return -1;
    for (uint32_t at = 0; at < side->reach; at += side->hw->page) /* the kernel's own pages stay where they are */
        side->host->pins[(side->out + at) / side->hw->page] = 1;
    side->host->pins[(side->out + side->reach - 1) / side->hw->page] = 1;
    myri_card_poke(side->card, AT(records_at), t->records);
    myri_card_poke(side->card, AT(notify), (uint32_t)side->notify);
    for (uint32_t i = 0; i < TPZ_RING; i++)
        myri_card_poke(side->card, AT(receive) + 4 * i, t->frame[i]);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, AT(route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

static void post_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct trapeze_host_state *st = side->state;
    struct tpz_sendmsg *m = tpz_get_sendmsg_spinwait(&st->tpz);
    uint32_t control = bytes <= TPZ_CONTROL ? bytes : 0;
    for (uint32_t k = 0; k < control / 4; k++)
        tpz_mtod(m)[k] = myri_side_word(side, side->out + 4 * k);
    if (!control) {
        tpz_attach_sendmsg(&st->tpz, m, side->out);
        tpz_set_payload_len(m, bytes);
    }
    (void)tpz_release_sendmsg(&st->tpz, m, to, control);
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct trapeze_host_state *st = side->state;
    post_message(side, to, bytes);
    if (bytes > TPZ_CONTROL)
        tpz_await_fetched(&st->tpz, st->tpz.sent);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct trapeze_host_state *st = side->state;
    (void)bytes;
    if (st->holds)
        tpz_release_rcvmsg(&st->tpz, &st->held);
    st->holds = 0;
    if (!tpz_get_rcvmsg(&st->tpz, &st->held, until))
        return 0;
    st->holds = 1;
    side->from = st->held.from;
    side->got = st->held.bytes ? st->held.frame : st->held.control;
    return st->held.bytes ? st->held.bytes : st->held.control_bytes;
}

static const struct myri_issues issues = {.transfer = "stores, DMA of frames",
                                          .translation = "page frames",
                                          .protection = "none",
                                          .control = "both",
                                          .reliability = "none: drops",
                                          .to_many = "no"};
#define TRAPEZE_SYSTEM(id, called, titled, of)                           \
    const struct myri_system myri_system_##id = {                        \
        .name = called,                                                  \
        .title = titled,                                                 \
        .source = "Bhoedjang et al. 1998, table 1, and its reference 9", \
        .object = of,                                                    \
        .machines = "H-PP",                                              \
        .state_bytes = sizeof(struct trapeze_host_state),                \
        .most = TPZ_FRAME,                                               \
        .lossy = 1,                                                      \
        .any_order = 1, /* a message is a packet */                      \
        .notifies = 1,                                                   \
        .issues = &issues,                                               \
        .on_crc = "it is unreliable (Bhoedjang et al. 1998, table 1)",   \
        .open = open_side,                                               \
        .send = send_message,                                            \
        .post = post_message,                                            \
        .receive = receive_message,                                      \
    }
TRAPEZE_SYSTEM(trapeze, "trapeze", "Trapeze, cut through", "systems/trapeze/firmware");
TRAPEZE_SYSTEM(trapeze_store, "trapeze-store", "Trapeze, stored and forwarded", "systems/trapeze/firmware-store");
TRAPEZE_SYSTEM(trapeze_tuned, "trapeze-tuned", "Trapeze, cut through, with firmware written for speed alone",
               "systems/trapeze/firmware-tuned");
TRAPEZE_SYSTEM(trapeze_tuned_store, "trapeze-tuned-store",
               "Trapeze, stored and forwarded, with firmware written for speed alone",
               "systems/trapeze/firmware-tuned-store");
