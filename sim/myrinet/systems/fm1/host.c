/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - FM 1.1's library; see host.h. */
#include "sim/myrinet/systems/fm1/host.h"

#include <stddef.h>

enum { LIBRARY = 35, FRAME = 15, HANDLER = 12, CREDIT_HANDLER = 255 }; /* host operations: of a call, of a frame */
/* Calls below one to the pool: the program, what it calls to wait for a message, FM_extract, what takes a frame, what
 * puts a message together, the pool, what finds a buffer in it, its lock. An estimate, made with row 38b in sight. */
enum { POOL_FRAMES = 8 };

#define IN_CARD(f, field) ((f)->card + (uint32_t)offsetof(struct fm1_card, field))

static void take_frame(struct fm1 *f);

/* A slot of the queue on the card, asked for only when as many have been used as were known to be free, and then until
 * a quarter of them is: a look across the bus costs two frames' stores, so it has to bring more than one. */
static void want_slot(struct fm1 *f)
{
    enum { SOME = FM1_QUEUE / 4 };
    if (f->posted - f->known_sent >= FM1_QUEUE)
        (void)myri_task_await(f->side->task, IN_CARD(f, sent), f->posted - FM1_QUEUE + SOME, 1, &f->known_sent);
}

/* Only the words that are used are stored; the card sends the frame as it is. */
static void put_frame(struct fm1 *f, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes, uint32_t last)
{
    struct myri_task *t = f->side->task;
    uint32_t words[FM1_WORDS], n = (bytes + 3) / 4;
    want_slot(f);
    uint32_t end = IN_CARD(f, queue) + ((f->posted & (FM1_QUEUE - 1)) + 1) * FM1_FRAME;
    myri_task_gather(t, from, words, n);
    words[n] = bytes << 24 | to << 16 | f->owed[to];
    words[n + 1] = FM1_VALID | f->side->node << 24 | handler << 16 | last;
    f->owed[to] = 0;
    myri_task_operate(t, FRAME, "frame");
    myri_task_store_words(t, end - FM1_HEADER - 4 * n, words, n + 2);
    myri_task_store(t, IN_CARD(f, posted), ++f->posted);
}

static void want_credit(struct fm1 *f, uint32_t to)
{
    if (f->unlimited)
        return;
    while (f->credit[to] == 0 && !f->side->hw->fault[0]) {
        myri_task_poll(f->side->task, f->ring + f->next * FM1_FRAME + FM1_FRAME - 4, 0, RNL_SIM_NEVER);
        take_frame(f);
    }
    f->credit[to]--;
}

void fm1_send(struct fm1 *f, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes)
{
    myri_task_operate(f->side->task, LIBRARY, "library");
    for (uint32_t at = 0; at < bytes; at += FM1_DATA) {
        uint32_t n = bytes - at < FM1_DATA ? bytes - at : FM1_DATA;
        if (f->polls) { /* Bal et al. 1997, 2.2: by a call for the message, within the loop for each further frame */
            myri_task_operate(f->side->task, at ? FRAME : LIBRARY, "extract");
            (void)fm1_extract(f);
        }
        want_credit(f, to);
        put_frame(f, to, handler, from + at, n, at + n == bytes ? FM1_LAST : 0);
    }
}

void fm1_send_4(struct fm1 *f, uint32_t to, uint32_t handler, const uint32_t words[4])
{
    for (uint32_t i = 0; i < 4; i++) /* registers, on the real machine */
        myri_host_set_word(f->side->host, f->ring + FM1_RING * FM1_FRAME + 4 * i, words[i]);
    fm1_send(f, to, handler, f->ring + FM1_RING * FM1_FRAME, 16);
}

/* ---- receiving ---- */

/* The place of one frame in this ring is free again; half of a peer's share is told by itself. */
static void give_credit(struct fm1 *f, uint32_t to)
{
    if (!f->unlimited && ++f->owed[to] >= f->share / 2)
        put_frame(f, to, CREDIT_HANDLER, f->ring, 0, FM1_LAST);
}

static void deliver(struct fm1 *f, uint32_t from, uint32_t handler, uint32_t at, uint32_t bytes)
{
    myri_task_operate(f->side->task, HANDLER, "handler");
    f->messages++;
    f->handler[handler](f, from, at, bytes);
}

static void take_frame(struct fm1 *f)
{
    struct myri_task *t = f->side->task;
    struct myri_host *h = f->side->host;
    uint32_t end = f->ring + (f->next + 1) * FM1_FRAME, last = myri_host_word(h, end - 4);
    uint32_t first = myri_host_word(h, end - 8), bytes = first >> 24, at = end - FM1_HEADER - ((bytes + 3) & ~3u);
    uint32_t from = last >> 24 & 0x7f, handler = last >> 16 & 0xff;
    if (from >= f->side->nodes || bytes > FM1_DATA)
        return;
    myri_task_operate(t, FRAME, "frame");
    f->credit[from] += first & 0xffff;
    if (handler != CREDIT_HANDLER) {
        uint32_t filled = f->partial[from].filled;
        if (filled || !(last & FM1_LAST)) {     /* one of several: put together by a copy, in a buffer of FM's pool */
            if (!filled || (last & FM1_LAST)) { /* Bal et al. 1997, 4.3: FM manages buffers of its own */
                myri_task_nest(t, POOL_FRAMES);
                myri_task_operate(t, LIBRARY, "pool");
            }
            if (filled + bytes > f->side->largest) {
                myri_hw_fault(f->side->hw, "node %u: a message of more than %u bytes comes", f->side->node, filled);
                return;
            }
            myri_task_copy(t, f->partial[from].at + filled, at, bytes);
            at = f->partial[from].at;
            bytes += filled;
            f->partial[from].filled = last & FM1_LAST ? 0 : bytes;
        }
        if (last & FM1_LAST)
            deliver(f, from, handler, at, bytes);
    }
    myri_host_set_word(h, end - 4, 0);
    f->next = f->next + 1 == FM1_RING ? 0 : f->next + 1;
    if (handler != CREDIT_HANDLER)
        give_credit(f, from);
}

uint32_t fm1_extract(struct fm1 *f)
{
    uint32_t before = f->messages;
    while (myri_task_look(f->side->task, f->ring + f->next * FM1_FRAME + FM1_FRAME - 4) != 0 && !f->side->hw->fault[0])
        take_frame(f);
    return f->messages - before;
}

int fm1_initialize(struct fm1 *f, struct myri_side *side)
{
    f->side = side;
    f->card = myri_card_symbol(side->hw, "card");
    uint32_t buffers = side->buffers ? side->buffers : FM1_RING;
    f->ring = myri_host_take(side->host, FM1_RING * FM1_FRAME + side->hw->page, 1);
    f->share = buffers / (side->nodes > 1 ? side->nodes - 1 : 1);
    for (uint32_t i = 0; i < side->nodes; i++) {
        f->credit[i] = f->share - 1; /* one is for a frame that only gives credit back */
        f->partial[i].at = side->largest > FM1_DATA ? myri_host_take(side->host, side->largest, 0) : 0;
    }
    if (side->hw->fault[0])
        return -1;
    myri_host_ring(side->host, f->ring, FM1_FRAME, FM1_RING);
    myri_card_poke(side->card, IN_CARD(f, ring_at), f->ring);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, IN_CARD(f, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

/* ---- experiments ---- */

struct fm1_host_state {
    struct fm1 fm;
    uint32_t got, length;
};

static void on_message(struct fm1 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct fm1_host_state *st = f->owner;
    f->side->from = from;
    f->side->got = at;
    st->got++;
    st->length = bytes;
}

static int open_side(struct myri_side *side)
{
    struct fm1_host_state *st = side->state;
    st->fm.owner = st;
    st->fm.handler[1] = on_message;
    return fm1_initialize(&st->fm, side);
}

static int open_polling(struct myri_side *side)
{
    struct fm1_host_state *st = side->state;
    st->fm.polls = 1;
    return open_side(side);
}

static int open_unlimited(struct myri_side *side)
{
    struct fm1_host_state *st = side->state;
    st->fm.unlimited = 1;
    return open_side(side);
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct fm1_host_state *st = side->state;
    fm1_send(&st->fm, to, 1, side->out, bytes);
}

/* One message at a time, so that the experiment sees each where it lies: this one, or what a send took in before. */
static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct fm1_host_state *st = side->state;
    (void)bytes;
    while (!st->got) {
        uint32_t flag = st->fm.ring + st->fm.next * FM1_FRAME + FM1_FRAME - 4;
        if (!myri_task_poll_by_call(side->task, flag, 0, until, LIBRARY))
            return 0;
        take_frame(&st->fm);
    }
    st->got--;
    return st->length;
}

static const struct myri_issues issues = {.transfer = "stores",
                                          .translation = "none to send",
                                          .protection = "none",
                                          .control = "poll",
                                          .reliability = "host credits",
                                          .to_many = "no"};
#define FM1_SYSTEM(called, words, where, firmware, machine_names, opener)                                              \
    {                                                                                                                  \
        .name = called, .title = words, .source = where, .object = "systems/fm1/" firmware, .machines = machine_names, \
        .state_bytes = sizeof(struct fm1_host_state), .most = 32768, .look = LIBRARY, .buffers_least = 2,              \
        .buffers_most = FM1_RING, .issues = &issues, .on_crc = FM1_ON_CRC, .open = opener, .send = send_message,       \
        .receive = receive_message                                                                                     \
    }
const struct myri_system myri_system_fm1 =
    FM1_SYSTEM("fm1", "Fast Messages 1.1", "Lauria et al. 1998, section 3", "firmware", "H-S H-A", open_side);
const struct myri_system myri_system_fm1_polls =
    FM1_SYSTEM("fm1-polls", "Fast Messages 1.1, whose sends take messages in",
               "Bal et al. 1997, sections 2.2, 3 and 5.1.1", "firmware-whole", "H-A", open_polling);
const struct myri_system myri_system_fm1_bus =
    FM1_SYSTEM("fm1-bus", "Fast Messages 1.1 without flow control", "Lauria et al. 1998, figure 3a", "firmware", "H-S",
               open_unlimited);
const struct myri_system myri_system_fm1_tuned =
    FM1_SYSTEM("fm1-tuned", "Fast Messages 1.1 with firmware written for speed alone", "Lauria et al. 1998, section 3",
               "firmware-tuned", "H-S H-A", open_side);
const struct myri_system myri_system_fm1_tuned_polls =
    FM1_SYSTEM("fm1-tuned-polls", "FM-tuned, whose sends take messages in",
               "Bal et al. 1997, sections 2.2, 3 and 5.1.1", "firmware-tuned-whole", "H-A", open_polling);
