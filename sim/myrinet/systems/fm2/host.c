/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - FM 2.x's library; see host.h. Messages of one sender follow one another, those of several interleave by
 * packets.
 *
 * Beside what all libraries here are charged, FM 2.x is thread safe (002, section 7), and each message has a thread of
 * its own, FM_receive being executed in FM's (000, 4.1): so a handler costs two switches, and each FM_receive two more.
 * Locks: 003 (5.1.1) has 7 us a round trip for them, of operations of 101 ns. A switch saves and loads registers. */
#include "sim/myrinet/systems/fm2/host.h"

#include "base/coro.h"

#include <stddef.h>

/* Host operations: of a call, of a packet, ... LOCKS: of one message, half of them at each end. SWITCH: what
 * QuickThreads (1993) executes for one on an i386, 17, and the least function that it calls. */
enum { LIBRARY = 35, PACKET = 15, HANDLER = 12, LOCKS = 35, SWITCH = 20 };
enum { CREDIT_HANDLER = 255, STACK = 64 << 10 };

#define IN_CARD(f, field) ((f)->card + (uint32_t)offsetof(struct fm2_card, field))

static uint32_t mark_at(const struct fm2 *f)
{
    return f->ring + f->next * FM2_SLOT + FM2_SLOT - 4;
}

static void release_slot(struct fm2 *f)
{
    myri_host_set_word(f->side->host, mark_at(f), 0);
    f->next = (f->next + 1) % FM2_RING;
}

static void post(struct fm2 *f, uint32_t to, uint32_t handler, const uint32_t *words, uint32_t bytes, uint32_t flags)
{
    struct myri_task *t = f->side->task;
    uint32_t n = (bytes + 3) / 4, packet[FM2_WORDS];
    if (f->posted - f->known_sent >= FM2_QUEUE &&
        myri_task_await(t, IN_CARD(f, sent), f->posted - FM2_QUEUE * 3 / 4, 1, &f->known_sent) < 0)
        return;
    uint32_t end = IN_CARD(f, queue) + (f->posted % FM2_QUEUE + 1) * 4 * FM2_WORDS;
    myri_task_copy_loop(t, n);
    for (uint32_t i = 0; i < n; i++)
        packet[i] = words[i];
    packet[n] = bytes << 16 | to << 8 | f->owed[to];
    packet[n + 1] = FM2_VALID | f->side->node << 24 | handler << 16 | flags;
    f->owed[to] = 0;
    myri_task_operate(t, PACKET, "packet");
    myri_task_combine(t, end - FM2_TRAILER - 4 * n, packet, n + 2);
    myri_task_store(t, IN_CARD(f, posted), ++f->posted);
}

/* The packet in the next slot: one that only gives credit back is done with here. Returns its mark, or 0: nothing by
 * the tick, or, if `credit` is given, there is some now. */
static uint32_t next_packet(struct fm2 *f, uint64_t until, const uint32_t *credit, uint32_t call)
{
    while (!credit || *credit == 0) {
        uint32_t mark = myri_task_poll_by_call(f->side->task, mark_at(f), 0, until, call), lengths;
        uint32_t from = mark >> 24 & 0x7f;
        if (!mark || from >= f->side->nodes)
            return 0;
        myri_task_operate(f->side->task, PACKET, "packet");
        lengths = myri_host_word(f->side->host, mark_at(f) - 4);
        f->credit[from] += lengths & 0xff;
        myri_host_set_word(f->side->host, mark_at(f) - 4, lengths & 0xffffff00u); /* taken once */
        if ((mark >> 16 & 0xff) != CREDIT_HANDLER)
            return mark;
        release_slot(f);
    }
    return 0;
}

static void done_with_packet(struct fm2 *f, uint32_t from)
{
    release_slot(f);
    if (++f->owed[from] >= f->share / 2)
        post(f, from, CREDIT_HANDLER, NULL, 0, 0);
}

static uint32_t take_packet(struct fm2 *f, uint32_t mark);

static void flush(struct fm2_stream *s, uint32_t flags)
{
    struct fm2 *f = s->fm;
    uint32_t *credit = &f->credit[s->peer], mark;
    while (*credit == 0 && !f->side->hw->fault[0]) { /* only what comes in can bring some */
        if (f->handling) {
            myri_hw_fault(f->side->hw, "node %u: a handler sends without credit", f->side->node);
            return;
        }
        mark = next_packet(f, RNL_SIM_NEVER, credit, LIBRARY);
        if (mark)
            (void)take_packet(f, mark);
    }
    (*credit)--;
    post(f, s->peer, s->handler, s->words, s->filled, flags | (s->first ? FM2_FIRST : 0));
    s->filled = s->first = 0;
}

struct fm2_stream *fm2_begin_message(struct fm2 *f, uint32_t to, uint32_t handler)
{
    myri_task_operate(f->side->task, LIBRARY + LOCKS / 2, "library");
    f->out.fm = f;
    f->out.peer = to;
    f->out.handler = handler;
    f->out.filled = 0;
    f->out.first = 1;
    return &f->out;
}

void fm2_send_piece(struct fm2_stream *s, uint32_t from, uint32_t bytes)
{
    myri_task_operate(s->fm->side->task, LIBRARY, "library");
    for (uint32_t at = 0; at < bytes; at += 4) {
        if (s->filled == s->fm->packet)
            flush(s, 0);
        s->words[s->filled / 4] = myri_host_word(s->fm->side->host, from + at);
        s->filled += 4;
    }
}

void fm2_end_message(struct fm2_stream *s)
{
    myri_task_operate(s->fm->side->task, LIBRARY, "library");
    flush(s, FM2_LAST);
}

/* ---- receiving ---- */

static void enter_packet(struct fm2_stream *s, uint32_t mark)
{
    struct fm2 *f = s->fm;
    uint32_t bytes = myri_host_word(f->side->host, mark_at(f) - 4) >> 16;
    s->left = bytes;
    s->at = mark_at(f) - 4 - ((bytes + 3) & ~3u);
    s->last = mark & FM2_LAST;
}

uint32_t fm2_receive(uint32_t to, struct fm2_stream *s, uint32_t bytes)
{
    struct fm2 *f = s->fm;
    uint32_t got = 0;
    myri_task_operate(f->side->task, SWITCH + LIBRARY, "receive");
    while (!f->side->hw->fault[0]) {
        uint32_t n = bytes - got < s->left ? bytes - got : s->left;
        myri_task_copy(f->side->task, to + got, s->at, n);
        got += n;
        s->at += n;
        s->left -= n;
        if (got == bytes || s->last)
            break;
        rnl_coro_yield(s->on); /* until take_packet has the next one */
    }
    myri_task_operate(f->side->task, SWITCH, "receive");
    return got;
}

static void run_handler(struct rnl_coro *self, void *arg)
{
    struct fm2_stream *s = arg;
    s->on = self;
    s->fm->handler[s->handler](s, s->peer);
}

/* Starts the handler of a message, or lets it go on; what it does not take of a packet is dropped. The bytes. */
static uint32_t take_packet(struct fm2 *f, uint32_t mark)
{
    uint32_t from = mark >> 24 & 0x7f, bytes;
    struct fm2_stream *s = &f->in[from];
    enter_packet(s, mark);
    bytes = s->left;
    f->handling = 1;
    if (mark & FM2_FIRST) {
        s->peer = from;
        s->handler = mark >> 16 & 0xff;
        myri_task_operate(f->side->task, SWITCH + HANDLER, "handler");
        if (rnl_coro_start(f->stacks, run_handler, s, &s->waiting) < 0)
            myri_hw_fault(f->side->hw, "node %u: no stack for a handler", f->side->node);
        myri_task_operate(f->side->task, SWITCH, "handler");
    } else if (s->waiting && !rnl_coro_resume(s->waiting)) { /* FM_receive pays for the switches of its own */
        s->waiting = NULL;
        myri_task_operate(f->side->task, SWITCH, "handler");
    }
    f->handling = 0;
    done_with_packet(f, from);
    return bytes;
}

uint32_t fm2_extract(struct fm2 *f, uint32_t bytes, uint64_t until)
{
    uint32_t handled = 0, call = LIBRARY;
    do {
        uint32_t mark = next_packet(f, until, NULL, call);
        if (!mark)
            break;
        if (call)
            myri_task_operate(f->side->task, LOCKS - LOCKS / 2, "lock");
        handled += take_packet(f, mark);
        until = call = 0; /* of the same call, only what is here */
    } while (handled < bytes);
    return handled;
}

int fm2_initialize(struct fm2 *f, struct myri_side *side)
{
    f->side = side;
    f->card = myri_card_symbol(side->hw, "card");
    f->packet = side->packet ? side->packet : side->hw->machine.v[MYRI_M_combined_rate] > 0 ? FM2_COMBINED : 128;
    uint32_t buffers = side->buffers ? side->buffers : FM2_BUFFERS;
    f->ring = myri_host_take(side->host, FM2_RING * FM2_SLOT, 1);
    f->share = buffers / (side->nodes > 1 ? side->nodes - 1 : 1);
    for (uint32_t i = 0; i < side->nodes; i++)
        f->credit[i] = f->share - 1; /* one is for a packet that only gives credit back */
    for (uint32_t i = 0; i < MYRI_HW_NODES; i++)
        f->in[i].fm = f;
    if (!f->stacks && rnl_coro_pool_new(MYRI_HW_NODES, STACK, &f->stacks) < 0)
        myri_hw_fault(side->hw, "no memory for handlers' stacks");
    if (side->hw->fault[0])
        return -1;
    myri_host_ring(side->host, f->ring, FM2_SLOT, FM2_RING);
    myri_card_poke(side->card, IN_CARD(f, ring_at), f->ring);
    myri_card_poke(side->card, IN_CARD(f, frame), f->packet + FM2_TRAILER);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, IN_CARD(f, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

void fm2_finalize(struct fm2 *f)
{
    rnl_coro_pool_free(f->stacks);
    f->stacks = NULL;
}

/* ---- experiments ---- */

struct fm2_host_state {
    struct fm2 fm;
    uint32_t in[MYRI_HW_NODES], got, length; /* in: what comes from each node */
};

static void on_message(struct fm2_stream *s, uint32_t from)
{
    struct fm2_host_state *st = s->fm->owner;
    st->length = fm2_receive(st->in[from], s, s->fm->side->largest);
    s->fm->side->got = st->in[from];
    s->fm->side->from = from;
    st->got++;
}

static int open_side(struct myri_side *side)
{
    struct fm2_host_state *st = side->state;
    for (uint32_t i = 0; i < side->nodes; i++)
        st->in[i] = i == side->node ? 0 : myri_host_take(side->host, side->largest, 0);
    st->fm.owner = st;
    st->fm.handler[1] = on_message;
    return fm2_initialize(&st->fm, side);
}

static void close_side(struct myri_side *side)
{
    struct fm2_host_state *st = side->state;
    fm2_finalize(&st->fm);
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct fm2_host_state *st = side->state;
    struct fm2_stream *s = fm2_begin_message(&st->fm, to, 1);
    fm2_send_piece(s, side->out, bytes);
    fm2_end_message(s);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct fm2_host_state *st = side->state;
    st->got = 0;
    while (!st->got)
        if (fm2_extract(&st->fm, bytes ? 1 : 0, until) == 0)
            return 0;
    return st->length;
}

static const struct myri_issues issues = {.transfer = "stores, combined",
                                          .translation = "none to send",
                                          .protection = "none",
                                          .control = "poll",
                                          .reliability = "host credits",
                                          .to_many = "no"};
#define FM2_SYSTEM(id, called, titled, firmware)                                           \
    const struct myri_system myri_system_##id = {                                          \
        .name = called,                                                                    \
        .title = titled,                                                                   \
        .source = "Lauria et al. 1998, sections 4 and 5; Dubnicki et al. 1997, section 7", \
        .object = "systems/fm2/" firmware,                                                 \
        .machines = "H-FM2 H-P",                                                           \
        .state_bytes = sizeof(struct fm2_host_state),                                      \
        .most = 65536,                                                                     \
        .look = LIBRARY,                                                                   \
        .buffers_least = 2,                                                                \
        .buffers_most = FM2_RING,                                                          \
        .packet_least = 16,                                                                \
        .packet_most = FM2_DATA,                                                           \
        .issues = &issues,                                                                 \
        .on_crc = FM2_ON_CRC,                                                              \
        .open = open_side,                                                                 \
        .send = send_message,                                                              \
        .receive = receive_message,                                                        \
        .close = close_side,                                                               \
    }
FM2_SYSTEM(fm2, "fm2", "Fast Messages 2.x", "firmware");
FM2_SYSTEM(fm2_tuned, "fm2-tuned", "Fast Messages 2.x with firmware written for speed alone", "firmware-tuned");
