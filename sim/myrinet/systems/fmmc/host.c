/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - FM/MC's library; see host.h. As FM 1.1's that paper 003 ran before it (../fm1/host.c), sends look for
 * messages. What 5.1.1 adds up can be left out singly: locks, objects, the card's part of multicasts (another
 * firmware), fragments of twice the size. Compiled without register windows (4.3), it has no traps. */
#include "sim/myrinet/systems/fmmc/host.h"

#include <stddef.h>
#include <string.h>

/* Host operations, as everywhere: of a call, of a fragment. LOCKS: of one message, half of them at each end, from the 7
 * us a round trip of 5.1.1, as FM 2.x has them. */
enum { LIBRARY = 35, FRAME = 15, HANDLER = 12, LOCKS = 35, CREDIT_HANDLER = 255 };
/* Beside the call, of an object that is taken: the list is looked at, the object comes off it, and its six fields are
 * written; of one that is given back: onto it. */
enum { OBJECT_TAKEN = 3 + 2 + 6, OBJECT_GIVEN = 3 };
enum { TELL = 4, CHUNK = 16, POOL_BYTES = 6 << 20 }; /* fragments */

#define IN_CARD(f, field) ((f)->card + (uint32_t)offsetof(struct fmmc_card, field))

static void take_fragment(struct fmmc *f);

static uint32_t flag_at(const struct fmmc *f)
{
    return f->ring + f->next * FMMC_FRAGMENT + FMMC_FRAGMENT - 4;
}

static void lock(struct fmmc *f, uint32_t operations)
{
    if (!f->no_locks)
        myri_task_operate(f->side->task, operations, "locks");
}

/* ---- sending ---- */

static void want_slot(struct fmmc *f)
{
    enum { SOME = FMMC_QUEUE / 4 };
    if (f->posted - f->known_sent >= FMMC_QUEUE)
        (void)myri_task_await(f->side->task, IN_CARD(f, sent), f->posted - FMMC_QUEUE + SOME, 1, &f->known_sent);
}

static void put_fragment(struct fmmc *f, uint32_t where, uint32_t what, uint32_t from, uint32_t bytes)
{
    struct myri_task *t = f->side->task;
    uint32_t words[FMMC_WORDS], n = (bytes + 3) / 4;
    want_slot(f);
    uint32_t end = IN_CARD(f, queue) + ((f->posted & (FMMC_QUEUE - 1)) + 1) * FMMC_FRAGMENT;
    myri_task_gather(t, from, words, n);
    words[n] = bytes << 24 | where;
    words[n + 1] = FMMC_VALID | f->side->node << 24 | what;
    myri_task_operate(t, FRAME, "fragment");
    myri_task_store_words(t, end - FMMC_HEADER - 4 * n, words, n + 2);
    myri_task_store(t, IN_CARD(f, posted), ++f->posted);
}

static void put_single(struct fmmc *f, uint32_t to, uint32_t what, uint32_t from, uint32_t bytes)
{
    uint32_t owed = f->owed[to];
    f->owed[to] = 0;
    put_fragment(f, to << 16 | owed, what, from, bytes);
}

static void want_credit(struct fmmc *f, uint32_t to)
{
    while (f->credit[to] == 0 && !f->side->hw->fault[0]) {
        myri_task_poll(f->side->task, flag_at(f), 0, RNL_SIM_NEVER);
        take_fragment(f);
    }
    f->credit[to]--;
}

/* Paper 003, 2.2: by a call for the message, within the loop for each further fragment. */
static void look(struct fmmc *f, int further)
{
    myri_task_operate(f->side->task, further ? FRAME : LIBRARY, "extract");
    (void)fmmc_extract(f);
}

void fmmc_send_buf(struct fmmc *f, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes)
{
    myri_task_operate(f->side->task, LIBRARY, "library");
    lock(f, LOCKS / 2);
    for (uint32_t at = 0; at < bytes; at += f->data) {
        uint32_t n = bytes - at < f->data ? bytes - at : f->data;
        look(f, at > 0);
        want_credit(f, to);
        put_single(f, to, handler << 16 | (at + n == bytes ? FMMC_LAST : 0), from + at, n);
    }
}

/* ---- objects ---- */

static struct fmmc_message *allocate(struct fmmc *f, uint32_t from, uint32_t handler)
{
    struct fmmc_message *m = f->unused;
    if (!m) {
        myri_hw_fault(f->side->hw,
                      "node %u: all %u message objects are kept or come; a program that keeps them has to free some",
                      f->side->node, FMMC_MESSAGES);
        return NULL;
    }
    if (!f->no_objects)
        myri_task_operate(f->side->task, LIBRARY + OBJECT_TAKEN, "allocate");
    f->unused = m->link;
    m->from = from;
    m->handler = handler;
    m->bytes = m->filled = m->number = 0;
    m->link = NULL;
    return m;
}

void fmmc_free_buf(struct fmmc *f, struct fmmc_message *m)
{
    if (!f->no_objects)
        myri_task_operate(f->side->task, LIBRARY + OBJECT_GIVEN, "free");
    m->link = f->unused;
    f->unused = m;
}

static void hand_over(struct fmmc *f, struct fmmc_message *m)
{
    lock(f, LOCKS - LOCKS / 2);
    myri_task_operate(f->side->task, HANDLER, "handler");
    f->handled++;
    f->handler[m->handler](f, m);
}

/* ---- receiving ---- */

/* All that were waiting for this number, and those behind them. */
static void in_turn(struct fmmc *f)
{
    for (struct fmmc_message **m = &f->early; *m && !f->side->hw->fault[0];) {
        if (((*m)->number & 0xffff) != (f->number & 0xffff)) {
            m = &(*m)->link;
            continue;
        }
        struct fmmc_message *is = *m;
        *m = is->link;
        is->link = NULL;
        f->number++;
        hand_over(f, is);
        m = &f->early;
    }
}

static void whole_multicast(struct fmmc *f, struct fmmc_message *m)
{
    m->link = f->early;
    f->early = m;
    in_turn(f);
}

static void done_with_multicasts(struct fmmc *f, uint32_t fragments)
{
    f->freed += fragments;
    if (f->freed - f->told >= TELL)
        myri_task_store(f->side->task, IN_CARD(f, freed), f->told = f->freed);
}

static void take_fragment(struct fmmc *f)
{
    struct myri_task *t = f->side->task;
    struct myri_host *h = f->side->host;
    uint32_t end = flag_at(f) + 4, last = myri_host_word(h, end - 4), first = myri_host_word(h, end - 8);
    uint32_t bytes = first >> 24, at = end - FMMC_HEADER - ((bytes + 3) & ~3u), from = last >> 24 & 0x7f;
    uint32_t handler = last >> 16 & 0xff, many = last & FMMC_MULTICAST;
    if (from >= f->side->nodes || bytes > f->data)
        return;
    myri_task_operate(t, FRAME, "fragment");
    if (!many)
        f->credit[from] += first & 0xffff;
    struct fmmc_message *whole = NULL;
    if (handler != CREDIT_HANDLER) {
        struct fmmc_message **p = many ? &f->many[from] : &f->partial[from], *m = *p;
        if (!m && !(m = *p = allocate(f, from, handler)))
            return;
        if (m->filled + bytes > f->side->largest) {
            myri_hw_fault(f->side->hw, "node %u: a message of more than %u bytes comes", f->side->node, m->filled);
            return;
        }
        if (!f->no_objects || !(last & FMMC_LAST) || m->filled)
            myri_task_copy(t, m->at + m->filled, at, bytes);
        else /* used where it is, as FM 1.1 does: the copy of the model takes no time */
            memcpy(h->memory + m->at, h->memory + at, bytes);
        m->filled += bytes;
        m->number = first & 0xffff;
        if (last & FMMC_LAST) {
            m->bytes = m->filled;
            *p = NULL;
            whole = m;
        }
    }
    myri_host_set_word(h, end - 4, 0);
    f->next = f->next + 1 == FMMC_RING ? 0 : f->next + 1;
    if (many)
        done_with_multicasts(f, 1);
    if (whole && many)
        whole_multicast(f, whole);
    else if (whole)
        hand_over(f, whole);
    if (!many && handler != CREDIT_HANDLER && ++f->owed[from] >= f->share / 2)
        put_single(f, from, CREDIT_HANDLER << 16 | FMMC_LAST, f->ring, 0);
}

uint32_t fmmc_extract(struct fmmc *f)
{
    uint32_t before = f->handled;
    while (myri_task_look(f->side->task, flag_at(f)) != 0 && !f->side->hw->fault[0])
        take_fragment(f);
    return f->handled - before;
}

/* ---- multicasts ---- */

/* Takes messages in until the answer is there: they are what may have to be freed before there are credits. */
static uint32_t ask(struct fmmc *f, uint32_t fragments, int numbered)
{
    struct myri_task *t = f->side->task;
    const uint32_t at[2] = {f->answer + 8, flag_at(f)}, none[2] = {0, 0};
    put_fragment(f, (uint32_t)(numbered != 0) << 16 | fragments, FMMC_ASK, f->ring, 0);
    for (;;) {
        const uint32_t words[2] = {at[0], flag_at(f)};
        uint32_t k = myri_task_poll_among(t, words, none, 2, 0, RNL_SIM_NEVER);
        if (k == 0 || f->side->hw->fault[0])
            break;
        take_fragment(f);
    }
    myri_host_set_word(f->side->host, f->answer + 8, 0);
    return myri_host_word(f->side->host, f->answer);
}

uint32_t fmmc_next_seqno_and_credits(struct fmmc *f, uint32_t bytes)
{
    uint32_t fragments = (bytes + f->data - 1) / f->data;
    myri_task_operate(f->side->task, LIBRARY, "library");
    return ask(f, f->side->nodes < 2 ? 0 : fragments < CHUNK ? fragments : CHUNK, 1);
}

void fmmc_broadcast(struct fmmc *f, uint32_t number, uint32_t handler, uint32_t from, uint32_t bytes)
{
    struct myri_task *t = f->side->task;
    uint32_t had = CHUNK;
    struct fmmc_message *own = allocate(f, f->side->node, handler);
    myri_task_operate(t, LIBRARY, "library");
    lock(f, LOCKS / 2);
    for (uint32_t at = 0; own && at < bytes; at += f->data) {
        uint32_t n = bytes - at < f->data ? bytes - at : f->data, left = (bytes - at + f->data - 1) / f->data;
        if (had-- == 0) {
            (void)ask(f, left < CHUNK ? left : CHUNK, 0);
            had = CHUNK - 1;
        }
        look(f, at > 0);
        put_fragment(f, number & 0xffff, handler << 16 | FMMC_MULTICAST | (at + n == bytes ? FMMC_LAST : 0), from + at,
                     n);
        done_with_multicasts(f, 1);
    }
    if (!own)
        return;
    if (bytes <= f->side->largest)
        myri_task_copy(t, own->at, from, bytes);
    own->bytes = own->filled = bytes;
    own->number = number;
    whole_multicast(f, own);
}

void fmmc_enable_intr(struct fmmc *f)
{
    myri_task_store(f->side->task, IN_CARD(f, interrupt), 1);
}

void fmmc_disable_intr(struct fmmc *f)
{
    myri_task_store(f->side->task, IN_CARD(f, interrupt), 0);
}

int fmmc_initialize(struct fmmc *f, struct myri_side *side, uint32_t frame)
{
    struct myri_card *c = side->card;
    uint32_t each = side->nodes ? FMMC_CREDITS / 2 / side->nodes : 0, slot = (side->largest + 3) & ~3u;
    uint32_t objects = POOL_BYTES / slot < FMMC_MESSAGES ? POOL_BYTES / slot : FMMC_MESSAGES;
    f->side = side;
    f->frame = frame;
    f->data = frame - FMMC_HEADER;
    f->card = myri_card_symbol(side->hw, "card");
    f->ring = myri_host_take(side->host, FMMC_RING * FMMC_FRAGMENT, 1);
    f->answer = myri_host_take(side->host, 12, 1);
    uint32_t pool = myri_host_take(side->host, objects * slot, 0);
    for (uint32_t i = 0; i < objects; i++) {
        f->message[i].at = pool + i * slot;
        f->message[i].link = f->unused;
        f->unused = &f->message[i];
    }
    f->share = (FMMC_RING - FMMC_CREDITS) / (side->nodes > 1 ? side->nodes - 1 : 1);
    for (uint32_t i = 0; i < side->nodes; i++)
        f->credit[i] = f->share - 1; /* one is for a fragment that only gives credit back */
    if (side->hw->fault[0])
        return -1;
    myri_host_ring(side->host, f->ring, FMMC_FRAGMENT, FMMC_RING);
    myri_card_poke(c, IN_CARD(f, ring_at), f->ring);
    myri_card_poke(c, IN_CARD(f, answer_at), f->answer);
    myri_card_poke(c, IN_CARD(f, nodes), side->nodes);
    myri_card_poke(c, IN_CARD(f, frame), frame);
    myri_card_poke(c, IN_CARD(f, interrupt), (uint32_t)side->notify);
    myri_card_poke(c, IN_CARD(f, credits), each);
    myri_card_poke(c, IN_CARD(f, stock), side->node == FMMC_MANAGER ? FMMC_CREDITS - each * side->nodes : 0);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(c, IN_CARD(f, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

/* ---- experiments ---- */

struct fmmc_host_state {
    struct fmmc fm;
    struct fmmc_message *first, **last, *kept; /* that have come; the one that the experiment looks at */
};

static void on_message(struct fmmc *f, struct fmmc_message *m)
{
    struct fmmc_host_state *st = f->owner;
    *st->last = m;
    st->last = &m->link;
}

static int open_with(struct myri_side *side, uint32_t frame, int no_locks, int no_objects)
{
    struct fmmc_host_state *st = side->state;
    st->fm.owner = st;
    st->fm.handler[1] = on_message;
    st->fm.no_locks = no_locks;
    st->fm.no_objects = no_objects;
    st->last = &st->first;
    return fmmc_initialize(&st->fm, side, frame);
}

static int open_side(struct myri_side *side)
{
    return open_with(side, side->packet ? side->packet + FMMC_HEADER : FMMC_FRAGMENT, 0, 0);
}

static int open_no_locks(struct myri_side *side)
{
    return open_with(side, FMMC_FRAGMENT, 1, 0);
}

static int open_no_objects(struct myri_side *side)
{
    return open_with(side, FMMC_FRAGMENT, 0, 1);
}

static int open_small(struct myri_side *side)
{
    return open_with(side, FMMC_FRAGMENT / 2 + FMMC_HEADER, 0, 0); /* as FM 1.1's are */
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct fmmc_host_state *st = side->state;
    fmmc_send_buf(&st->fm, to, 1, side->out, bytes);
}

static void send_to_all(struct myri_side *side, uint32_t bytes)
{
    struct fmmc_host_state *st = side->state;
    fmmc_broadcast(&st->fm, fmmc_next_seqno_and_credits(&st->fm, bytes), 1, side->out, bytes);
}

static uint32_t fetch_number(struct myri_side *side)
{
    struct fmmc_host_state *st = side->state;
    return fmmc_next_seqno_and_credits(&st->fm, 4);
}

/* A message is freed when the next one is asked for. */
static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct fmmc_host_state *st = side->state;
    (void)bytes;
    if (st->kept)
        fmmc_free_buf(&st->fm, st->kept);
    st->kept = NULL;
    while (!st->first) {
        if (side->hw->fault[0] || !myri_task_poll_by_call(side->task, flag_at(&st->fm), 0, until, LIBRARY))
            return 0;
        take_fragment(&st->fm);
    }
    st->kept = st->first;
    if (!(st->first = st->kept->link))
        st->last = &st->first;
    side->got = st->kept->at;
    side->from = st->kept->from;
    return st->kept->bytes;
}

static const struct myri_issues issues = {.transfer = "stores",
                                          .translation = "none to send",
                                          .protection = "none",
                                          .control = "both",
                                          .reliability = "host credits, card's to all",
                                          .to_many = "cards forward"};
#define FMMC_SYSTEM(called, words, firmware, opener)                                                               \
    {                                                                                                              \
        .name = called, .title = words, .source = "Bal et al. 1997, sections 4 and 5.1.1",                         \
        .object = "systems/fmmc/" firmware, .machines = "H-A H-A2", .state_bytes = sizeof(struct fmmc_host_state), \
        .most = 32768, .look = LIBRARY, .notifies = 1, .issues = &issues, .on_crc = FMMC_ON_CRC, .open = opener,   \
        .send = send_message, .receive = receive_message
const struct myri_system myri_system_fmmc = FMMC_SYSTEM("fmmc", "FM/MC", "firmware", open_side), .packet_least = 16,
                         .packet_most = FMMC_FRAGMENT - FMMC_HEADER, .to_all = send_to_all, .fetch = fetch_number,
                         .numbers = 1
}
;
const struct myri_system myri_system_fmmc_no_locks =
    FMMC_SYSTEM("fmmc-no-locks", "FM/MC without locks", "firmware", open_no_locks)
}
;
const struct myri_system myri_system_fmmc_no_multicast =
    FMMC_SYSTEM("fmmc-no-multicast", "FM/MC whose card knows of single messages alone", "firmware-plain", open_side)
}
;
const struct myri_system myri_system_fmmc_no_objects =
    FMMC_SYSTEM("fmmc-no-objects", "FM/MC without message objects", "firmware", open_no_objects)
}
;
const struct myri_system myri_system_fmmc_small =
    FMMC_SYSTEM("fmmc-small", "FM/MC with FM 1.1's fragments of 128 bytes", "firmware", open_small)
}
;
/* The same with firmware written for speed alone. */
const struct myri_system myri_system_fmmc_tuned = FMMC_SYSTEM(
                             "fmmc-tuned", "FM/MC with firmware written for speed alone", "firmware-tuned", open_side),
                         .packet_least = 16, .packet_most = FMMC_FRAGMENT - FMMC_HEADER, .to_all = send_to_all,
                         .fetch = fetch_number, .numbers = 1
}
;
const struct myri_system myri_system_fmmc_tuned_no_locks =
    FMMC_SYSTEM("fmmc-tuned-no-locks", "FM/MC-tuned without locks", "firmware-tuned", open_no_locks)
}
;
const struct myri_system myri_system_fmmc_tuned_no_multicast =
    FMMC_SYSTEM("fmmc-tuned-no-multicast", "FM/MC-tuned whose card knows of single messages alone",
                "firmware-tuned-plain", open_side)
}
;
const struct myri_system myri_system_fmmc_tuned_no_objects =
    FMMC_SYSTEM("fmmc-tuned-no-objects", "FM/MC-tuned without message objects", "firmware-tuned", open_no_objects)
}
;
const struct myri_system myri_system_fmmc_tuned_small =
    FMMC_SYSTEM("fmmc-tuned-small", "FM/MC-tuned with FM 1.1's fragments of 128 bytes", "firmware-tuned", open_small)
}
;
