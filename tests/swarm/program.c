/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.c - what runs on each host: it sends what the schedule says, in all the ways there are, and closes. Its
 * handlers read in pieces, keep, answer, refuse and send. All of it is told to the oracle. */
#include "swarm/program.h"

#include <string.h>

#include "runnel/adapter.h"

enum {
    HOP_MAX = 2000,
    GHOST_MESSAGES = 8,
    GHOST_NS = 200000000,
    WAITS_MAX = 100,
    GREETINGS = 3, /* to who was taken back, at most */
    LOOK_NS = 20 * 1000 * 1000
};

static void note(struct swarm_host *h, unsigned from, uint64_t what, uint64_t n)
{
    rnl_sim_note(h->w->sim, SWARM_NOTE_MESSAGE, h->rank, (uint64_t)from << 32 | what, n);
}

/* ---- handlers ---- */

/* What a handler does follows from its message alone. */
static uint64_t by(const struct swarm_host *h, const struct swarm_letter *l, uint64_t k, uint64_t below)
{
    return swarm_draw(h->w->plan.seed, SWARM_STREAM_HANDLER, l->id, k, below);
}

static int keeps(struct swarm_host *h, rnl_stream *s, const struct swarm_letter *l, unsigned peer, size_t at)
{
    rnl_kept *kept;
    if (h->keeps >= SWARM_KEPT_MAX / 2 || h->closed)
        return RNL_DONE;
    int status = rnl_keep(s, &kept);
    if (status == RNL_NO_ROOM || status == RNL_ERR_PEER_DEAD)
        return RNL_DONE;
    if (status < 0)
        swarm_wrong("rank %u cannot keep a message: %s", h->rank, rnl_last_error()->text);
    if (h->keeps == SWARM_KEPT_MAX) { /* others were suspended meanwhile */
        rnl_kept_free(kept);
        return RNL_KEEP;
    }
    h->kept[h->keeps++] = (struct swarm_kept){kept, *l, peer, at};
    return RNL_KEEP;
}

static void free_kept(struct swarm_host *h)
{
    struct swarm_kept *k = &h->kept[--h->keeps];
    size_t n;
    unsigned peer;
    const void *at = rnl_kept_data(k->kept, &n, &peer);
    if (peer != k->from || n != k->letter.n - k->at)
        swarm_wrong("rank %u kept %zu bytes from rank %u, and has %zu from rank %u", h->rank, k->letter.n - k->at,
                    k->from, n, peer);
    swarm_bytes(&k->letter, k->at, at, n);
    rnl_kept_free(k->kept);
}

static void reply(struct swarm_host *h, rnl_stream *s, const struct swarm_letter *l, unsigned peer)
{
    uint32_t n = (uint32_t)by(h, l, 2, l->answer + 1u);
    int status = rnl_reply(s, H_ANSWER, test_pattern(swarm_reply_id(l), 0), n);
    if (status == RNL_ERR_PEER_DEAD)
        return;
    if (status < 0)
        swarm_wrong("rank %u cannot answer rank %u: %s", h->rank, peer, rnl_last_error()->text);
    swarm_replies(oracle(h), h->rank, peer, l, n, 0, 0);
}

/* In a handler: nothing waits there, and no room is fine. */
static int hop(struct swarm_host *h, unsigned to, const struct swarm_letter *out, int whole)
{
    if (whole)
        return rnl_send(h->ep, to, H_HOP, test_pattern(out->id, 0), out->n);
    const struct rnl_message b = {.peer = to, .handler = H_HOP, .bound = out->n};
    rnl_stream *s;
    int status = rnl_begin(h->ep, &b, &s);
    if (status != 0)
        return status;
    status = rnl_piece(s, test_pattern(out->id, 0), out->n);
    int ended = rnl_end(s);
    if ((status < 0 && !gone(status)) || (ended < 0 && !gone(ended) && !gone(status)))
        swarm_wrong("rank %u, %u bytes sent in a handler: %d, %d, %s", h->rank, out->n, status, ended,
                    rnl_last_error()->text);
    return 0;
}

static void sends_on(struct swarm_host *h, const struct swarm_letter *l)
{
    const struct swarm_plan *p = &h->w->plan;
    unsigned to = (unsigned)by(h, l, 4, p->hosts);
    if (!swarm_has(p, SWARM_SENDS) || !lives(h) || to == h->rank || to + 1 == h->sending || by(h, l, 5, 3))
        return;
    int whole = by(h, l, 6, 2) == 0;
    uint32_t n = least(h, (uint32_t)by(h, l, 7, whole ? RNL_SHORT_MAX + 1 : HOP_MAX));
    struct swarm_letter out = swarm_sent(oracle(h), h->rank, to, n, H_HOP, 0);
    int status = hop(h, to, &out, whole);
    if (status == 0)
        return;
    swarm_unsent(oracle(h), h->rank, to, &out);
    if (!gone(status) && status != RNL_NO_ROOM && status != RNL_BUSY)
        swarm_wrong("rank %u, %u bytes to rank %u in a handler: %s", h->rank, n, to, rnl_last_error()->text);
}

/* Receives a message that its sender may give up: the bytes that come, then the news of that or the end. */
static int part_handler(rnl_stream *s, unsigned peer, void *ctx)
{
    const struct swarm_slot *slot = ctx;
    struct swarm_host *h = slot->host;
    struct swarm_oracle *lane = lane_of(h, slot->handler);
    struct swarm_letter l = {0};
    unsigned char buf[PIECE_MAX];
    int status;
    size_t at = 0, n = 1;
    while ((status = rnl_receive(s, buf, n)) == 0) {
        if (at == 0)
            l = swarm_part_comes(lane, h->rank, peer, buf, n);
        swarm_part_goes_on(lane, h->rank, peer, &l, at, buf, n);
        at += n;
        n = 1 + by(h, &l, 10 + at, PIECE_MAX);
        size_t more = rnl_length(s, NULL) - at;
        if (slot->handler == H_BULK_CUT && n > more)
            n = more ? more : 1; /* it may come whole */
    }
    if (slot->handler == H_BULK_CUT && (status == RNL_ERR_ABORTED || status == RNL_ERR_PAST_END))
        swarm_part_ends(lane, h->rank, peer, &l, at, status == RNL_ERR_PAST_END);
    else if (status != RNL_ERR_ABORTED && status != RNL_ERR_PEER_DEAD && status != RNL_ERR_JOB)
        swarm_wrong("rank %u, a message from rank %u that was given up: %s", h->rank, peer, rnl_last_error()->text);
    note(h, peer, 6, at);
    return RNL_DONE;
}

/* A message is never shorter than told, and never longer than told to be exact. */
static void length_fits(struct swarm_host *h, const rnl_stream *s, const struct swarm_letter *l, size_t at)
{
    int exact;
    size_t n = rnl_length(s, &exact);
    if (exact ? n != l->n : n < l->n)
        swarm_wrong("rank %u, a message of %u bytes has length %zu, exact %d, at %zu", h->rank, l->n, n, exact, at);
}

static int stream_handler(rnl_stream *s, unsigned peer, void *ctx)
{
    const struct swarm_slot *slot = ctx;
    struct swarm_host *h = slot->host;
    const void *view;
    unsigned char buf[PIECE_MAX];
    size_t here = rnl_peek(s, &view), at = 0;
    if (taken_back(h) && here < TELLING) {
        int status = rnl_receive(s, buf, TELLING);
        if (status == RNL_ERR_PEER_DEAD || status == RNL_ERR_JOB)
            return RNL_DONE;
        if (status < 0)
            swarm_wrong("rank %u, the first bytes from rank %u: %s", h->rank, peer, rnl_last_error()->text);
        view = buf;
        here = at = TELLING;
    }
    struct swarm_letter l = swarm_comes(lane_of(h, slot->handler), h->rank, peer, slot->handler, view, here);
    unsigned ending = (unsigned)by(h, &l, 0, 8);
    note(h, peer, 1, l.n);
    length_fits(h, s, &l, 0);
    for (uint64_t k = 10; at < l.n; k++) {
        size_t n = 1 + by(h, &l, k, l.n - at < PIECE_MAX ? l.n - at : PIECE_MAX);
        if (ending == 1 && by(h, &l, k + 1000, 4) == 0)
            break;
        if (ending == 2 && by(h, &l, k + 1000, 4) == 0 && !l.answer)
            return keeps(h, s, &l, peer, at);
        int status = rnl_receive(s, buf, n);
        if (status == RNL_ERR_PEER_DEAD || status == RNL_ERR_JOB)
            return RNL_DONE;
        if (status < 0)
            swarm_wrong("rank %u, %zu bytes at %zu of %u from rank %u: %s", h->rank, n, at, l.n, peer,
                        rnl_last_error()->text);
        swarm_bytes(&l, at, buf, n);
        at += n;
        length_fits(h, s, &l, at);
    }
    h->handled++;
    if (l.answer && ending == 3) {
        unsigned reason = (unsigned)by(h, &l, 3, 256);
        swarm_replies(oracle(h), h->rank, peer, &l, l.n, 1, reason);
        return RNL_REJECT(reason);
    }
    if (l.answer)
        reply(h, s, &l, peer);
    if (slot->handler == H_STREAM)
        sends_on(h, &l);
    return RNL_DONE;
}

static int whole_handler(const void *buf, size_t n, unsigned peer, void *ctx)
{
    const struct swarm_slot *slot = ctx;
    struct swarm_host *h = slot->host;
    struct swarm_letter l = swarm_comes(lane_of(h, slot->handler), h->rank, peer, slot->handler, buf, n);
    if (l.n != n)
        swarm_wrong("rank %u gets a whole message of %zu bytes from rank %u; it has %u", h->rank, n, peer, l.n);
    swarm_bytes(&l, 0, buf, n);
    note(h, peer, 2, n);
    h->handled++;
    sends_on(h, &l);
    return RNL_DONE;
}

static int answer_handler(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct swarm_host *h = ((const struct swarm_slot *)ctx)->host;
    swarm_reply_comes(oracle(h), h->rank, peer, buf, n, 0, 0);
    note(h, peer, 3, n);
    h->answered++;
    return RNL_DONE;
}

static void refusal(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n)
{
    struct swarm_host *h = arg;
    (void)handler;
    swarm_reply_comes(oracle(h), h->rank, peer, buf, n, 1, reason);
    note(h, peer, 4, n);
    h->answered++;
}

/* Of programs some never take anybody back, some at once, where they are told, and some later. */
static int at_once(const struct swarm_host *h)
{
    return swarm_draw(h->w->plan.seed, SWARM_STREAM_FAULT + SWARM_READMIT, h->rank, 1, 8) < 3;
}
static int never(const struct swarm_host *h)
{
    return swarm_draw(h->w->plan.seed, SWARM_STREAM_FAULT + SWARM_READMIT, h->rank, 1, 8) == 7;
}

static int is_over(const struct swarm_host *h, unsigned peer)
{
    struct rnl_peer_info info;
    return rnl_peer(h->ep, peer, &info) < 0 || info.state == RNL_PEER_DEAD || info.state == RNL_PEER_RETURNED;
}

/* 1 = it has. */
static int takes_back(struct swarm_host *h, unsigned peer)
{
    if (h->closed || rnl_sim_now(h->w->sim) / VC_TICKS_PER_NS > h->w->plan.back_ns || !is_over(h, peer))
        return 0;
    int status = rnl_readmit(h->ep, peer);
    if (status == RNL_BUSY || status == RNL_ERR_PEER_DEAD)
        return 0;
    if (status < 0)
        swarm_wrong("rank %u cannot take rank %u back: %s", h->rank, peer, rnl_last_error()->text);
    swarm_takes_back(oracle(h), h->rank, peer);
    note(h, peer, 7, 0);
    h->taken_back++;
    return 1;
}

static void death(void *arg, unsigned peer, enum rnl_death_reason reason)
{
    struct swarm_host *h = arg;
    note(h, peer, 5, reason);
    if (h->w->deaths++ == 0)
        h->w->first_death_ns = rnl_sim_now(h->w->sim) / VC_TICKS_PER_NS;
    if (lives(h))
        swarm_told(oracle(h), h->rank, peer, rnl_sim_now(h->w->sim) / VC_TICKS_PER_NS, !h->w->closed);
    if (taken_back(h) && at_once(h) && !h->sending)
        (void)takes_back(h, peer);
}

/* ---- the program ---- */

static unsigned receiver(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    unsigned n = p->hosts, to;
    switch (p->pattern) {
    case SWARM_PINGPONG:
        to = h->rank ^ 1u;
        break;
    case SWARM_TO_ONE:
        to = h->rank == 0 ? 1 + (unsigned)draw(h, n - 1) : 0;
        break;
    case SWARM_RING:
        to = (h->rank + 1) % n;
        break;
    default:
        to = (h->rank + 1 + (unsigned)draw(h, n - 1)) % n;
        break;
    }
    return to < n ? to : 0;
}

static void pause(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    uint64_t ns = draw(h, p->pause_ns + 1);
    if (swarm_has(p, SWARM_SILENT) && draw(h, 20) == 0) {
        swarm_host_away(h, draw(h, 1000) * 1000 * 1000);
    } else if (draw(h, 3) == 0) {
        swarm_host_away(h, ns / 16);
    } else if (draw(h, 2)) {
        int64_t status = rnl_wait(h->ep, (int64_t)ns);
        if (status != RNL_TIMED_OUT)
            must(h, status, "wait");
    }
}

static void sends(struct swarm_host *h, size_t *left)
{
    const struct swarm_plan *p = &h->w->plan;
    unsigned to = receiver(h);
    uint64_t taken = h->taken_back;
    if (p->pattern == SWARM_PINGPONG)
        h->asked = h->answered; /* what those did not answer who died is not waited for */
    swarm_sends_to(h, to, left);
    if (to == h->rank)
        return;
    while (p->pattern == SWARM_PINGPONG && h->answered < h->asked && !is_over(h, to) && h->taken_back == taken) {
        int64_t status = rnl_wait(h->ep, -1);
        must(h, status, "wait for an answer");
    }
}

/* READMIT: who is dead comes back, sooner or later, and is told so. */
static void looks_for_the_dead(struct swarm_host *h, size_t *left)
{
    for (unsigned i = 0; i < h->w->plan.hosts && !never(h); i++)
        if (i != h->rank && is_over(h, i) && draw(h, 2) && takes_back(h, i))
            for (uint64_t k = draw(h, GREETINGS + 1); k > 0; k--)
                swarm_sends_to(h, i, left);
}

static void stays(struct swarm_host *h, size_t *left)
{
    const struct swarm_world *w = h->w;
    while (rnl_sim_now(w->sim) / VC_TICKS_PER_NS < w->plan.back_ns) {
        looks_for_the_dead(h, left);
        int64_t status = rnl_wait(h->ep, LOOK_NS);
        if (status != RNL_TIMED_OUT)
            must(h, status, "wait for who comes back");
    }
}

/* A process that nobody has asked for: it says what it can without waiting, until its time is over. */
static void haunts(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    uint64_t most = p->heal_ns > GHOST_NS ? p->heal_ns : GHOST_NS; /* some round trips, whatever the way is */
    for (unsigned i = 0; i < GHOST_MESSAGES; i++) {
        unsigned to = receiver(h);
        if (to != h->rank)
            swarm_send_post(h, to, (uint32_t)draw(h, 300));
        int64_t status = 0;
        for (unsigned k = 0; k < WAITS_MAX && status != RNL_TIMED_OUT; k++) { /* it returns when anything happens */
            status = rnl_wait(h->ep, (int64_t)(most / GHOST_MESSAGES));
            if (status != RNL_TIMED_OUT)
                must(h, status, "wait of one started anew");
        }
    }
}

static void registers(struct swarm_host *h)
{
    for (unsigned i = 0; i < sizeof h->slot / sizeof h->slot[0]; i++)
        h->slot[i] = (struct swarm_slot){h, i};
    must(h, rnl_handler_stream(h->ep, H_STREAM, stream_handler, &h->slot[H_STREAM]), "handler");
    must(h, rnl_handler_whole(h->ep, H_WHOLE, whole_handler, &h->slot[H_WHOLE], 0), "handler");
    must(h, rnl_handler_whole(h->ep, H_ANSWER, answer_handler, &h->slot[H_ANSWER], 0), "handler");
    must(h, rnl_handler_stream(h->ep, H_GIVEN_UP, part_handler, &h->slot[H_GIVEN_UP]), "handler");
    must(h, rnl_handler_stream(h->ep, H_ANEW, stream_handler, &h->slot[H_ANEW]), "handler");
    must(h, rnl_handler_stream(h->ep, H_HOP, stream_handler, &h->slot[H_HOP]), "handler");
    must(h, rnl_handler_stream(h->ep, H_BULK, stream_handler, &h->slot[H_BULK]), "handler");
    must(h, rnl_handler_whole(h->ep, H_BULK_WHOLE, whole_handler, &h->slot[H_BULK_WHOLE], 0), "handler");
    must(h, rnl_handler_stream(h->ep, H_BULK_CUT, part_handler, &h->slot[H_BULK_CUT]), "handler");
    rnl_on_rejected(h->ep, refusal, h);
    rnl_on_death(h->ep, death, h);
}

void swarm_program(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    size_t left = p->total;
    swarm_host_open(h);
    registers(h);
    if (!lives(h)) {
        haunts(h);
        return;
    }
    swarm_group_begins(h);
    for (unsigned i = 0; i < p->messages; i++) {
        if (p->away_ns && p->away_host == h->rank && p->away_after == i)
            swarm_host_away(h, p->away_ns);
        pause(h);
        sends(h, &left);
        swarm_group_goes_on(h, i);
        if (taken_back(h))
            looks_for_the_dead(h, &left);
        if (draw(h, 3) == 0)
            extracts(h);
        if (h->keeps && draw(h, 3) == 0)
            free_kept(h);
    }
    stays(h, &left);
    swarm_group_leaves(h);
    h->closed = 1; /* nothing more is kept */
    while (h->keeps)
        free_kept(h);
    must(h, rnl_close(h->ep), "close");
    swarm_host_closed(h);
}
