/* SPDX-License-Identifier: BSD-3-Clause
 *
 * take.c - taking in the lines of one lane of one peer. Everything a line says is loaded once and checked here; a line
 * that cannot be true makes its peer broken and nothing of it is used. A message that cannot be taken in now (no
 * handler, no stack, no room for its answer) stays at the head of its lane and marks the lane stuck: only that peer
 * waits. */
#include "stream/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/copy.h"

/* At close, for messages whose handler never came. */
static int discard(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    s->ep->dropped++;
    s->ep->c->dropped_no_handler++;
    s->ep->drop_id = s->handler;
    return RNL_DONE;
}

static const struct rnl_handler *handler_of(struct rnl_endpoint *ep, unsigned id)
{
    static const struct rnl_handler discarding = {.stream = discard};
    if (RNL_LIKELY(id < ep->handlers)) {
        const struct rnl_handler *h = &ep->handler[id];
        if (RNL_LIKELY(h->stream || h->whole))
            return h;
    }
    return ep->discard ? &discarding : NULL;
}

/* A message that waits for memory may wait for ever: the program is told once for each, with the sentence of now. */
static void note_trouble(struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    ep->c->no_memory++;
    snprintf(ep->trouble, sizeof ep->trouble, "a message from rank %u waits for memory: %.140s", conn->rank,
             rnl_last_error()->text);
    ep->troubled = 1;
    rnl_ep_chores(ep);
}

static unsigned stick(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, enum rnl_stuck why)
{
    uint64_t at = conn->pair.rx[lane].pos + 1;
    conn->stuck[lane] = (uint8_t)why;
    ep->lacked |= why == RNL_STUCK_MEMORY;
    rnl_ep_set_only(ep);
    if (conn->stuck_at[lane] != at) { /* counted once a message, however often it is looked at */
        conn->stuck_at[lane] = at;
        if (why == RNL_STUCK_HANDLER)
            ep->c->no_handler++;
        else if (why == RNL_STUCK_STACK)
            ep->c->no_stack++;
        else if (why == RNL_STUCK_MEMORY)
            note_trouble(ep, conn);
    }
    return 0;
}

static RNL_NOINLINE unsigned no_handler(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, unsigned id)
{
    ep->c->missing_handler = 1 + id;
    ep->c->missing_handler_rank = 1 + conn->rank;
    return stick(ep, conn, lane, RNL_STUCK_HANDLER);
}

static int run_whole(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h, const void *buf,
                     size_t n)
{
    s->state = RNL_STREAM_INLINE;
    uint32_t before = rnl_ep_handler_begins(ep, s->lane);
    int ending = h->whole(buf, n, s->conn->rank, h->ctx);
    rnl_ep_handler_ends(ep, s->lane, before);
    s->state = RNL_STREAM_FREE;
    if (rnl_ep_forked(ep))
        return 1;
    rnl_stream_handled(ep, s->lane, 1);
    return ending == RNL_QUIT;
}

/* A message that lies in one line. */
static int run_item(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h, const unsigned char *at,
                    unsigned n)
{
    if (h->stream)
        return rnl_stream_run(ep, s, h);
    unsigned char copy[RNL_LINE_PAYLOAD] __attribute__((aligned(16)));
    rnl_copy_short(copy, at, n);
    return run_whole(ep, s, h, copy, n);
}

/* ---- lines of items ---- */

/* Only a line of items that acknowledges lane 0 has all of these bits clear. */
#define NOT_PLAIN ((rnl_head)31 << 43 | (rnl_head)3 << 32)

int rnl_stream_expect(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h)
{
    static const unsigned char nothing[1];
    struct rnl_stream *s = &conn->in[lane];
    unsigned id = RNL_HEAD_HANDLER(h), len = RNL_HEAD_LEN(h);
    rnl_stream_setup(s, nothing, 0, id, 0);
    s->state = RNL_STREAM_FREE;
    if (h & NOT_PLAIN || len > RNL_LINE_PAYLOAD || id >= ep->handlers ||
        (!ep->handler[id].stream && !ep->handler[id].whole))
        return 0;
    s->h = ep->handler[id];
    s->item = len;
    s->ready = !s->h.stream ? RNL_READY_WHOLE : s->h.flags & RNL_HANDLER_FM ? RNL_READY_FM : RNL_READY_STREAM;
    if (len > RNL_LINE_PAYLOAD / 2)
        s->ready |= RNL_READY_LONG;
    rnl_rx_expect(&conn->pair.rx[lane], h);
    return 1;
}

/* Takes items up to the n-th of the line. 0 = stop taking from this lane. */
RNL_INLINE int take_items(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h, unsigned n,
                          struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[lane];
    struct rnl_stream *s = &conn->in[lane];
    unsigned len = RNL_HEAD_LEN(h), id = RNL_HEAD_HANDLER(h), first = rnl_rx_from(r, h), i = first;
    uint64_t bytes = t->bytes;
    if (RNL_UNLIKELY(n * len > RNL_LINE_PAYLOAD || s->state != RNL_STREAM_FREE)) {
        rnl_ep_broken(ep, conn, "items longer than their line, or inside another message");
        return 0;
    }
    const unsigned char *at = rnl_rx_payload(r, h) + i * len;
    const struct rnl_handler *hd = handler_of(ep, id); /* an entry may be replaced meanwhile, never emptied */
    if (RNL_UNLIKELY(!hd)) {
        no_handler(ep, conn, lane, id);
        return 0;
    }
    uint32_t before = rnl_ep_handler_begins(ep, lane);
    if (RNL_UNLIKELY(!rnl_stream_is_ready(s, r, h)))
        (void)rnl_stream_expect(ep, conn, lane, h);
    /* An item counts as read before its handler runs: what that sends says so. */
    if (rnl_rx_begun(r, h))
        rnl_rx_enter(r, 1);
    else
        r->pos++;
    for (;;) {
        int ending;
        i++;
        if (RNL_LIKELY(hd->stream != NULL)) {
            rnl_stream_setup_item(s, at, len);
            ending = hd->stream(s, conn->rank, hd->ctx);
        } else {
            unsigned char copy[RNL_LINE_PAYLOAD] __attribute__((aligned(16)));
            rnl_copy_short(copy, at, len);
            ending = hd->whole(copy, len, conn->rank, hd->ctx) == RNL_QUIT ? RNL_QUIT : RNL_DONE;
        }
        at += len;
        bytes += len;
        if (RNL_UNLIKELY(ending != RNL_DONE) && rnl_stream_ended(ep, s, ending)) {
            t->quit = 1;
            break;
        }
        if (i == n || bytes >= t->max)
            break;
        r->pos++;
    }
    rnl_ep_handler_ends(ep, lane, before);
    s->state = RNL_STREAM_FREE;
    if (rnl_ep_forked(ep)) {
        t->quit = 1;
        return 0;
    }
    rnl_stream_handled(ep, lane, i - first);
    ep->c->bytes_received += (uint64_t)(i - first) * len;
    t->things += i - first;
    t->bytes = bytes;
    if (i == RNL_HEAD_N(h)) {
        r->seen = h;
        if (rnl_head_full(h))
            rnl_rx_leave(r);
    }
    return !t->quit && bytes < t->max;
}

/* Room for the answer is there, or the lane is stuck. Reserved until the handler returns: nobody else sends on lane 1
 * to this peer. */
static int answer_ready(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, uint32_t answer)
{
    if (!answer)
        return 1;
    if (answer > RNL_ANSWER_MAX || lane != 0)
        return rnl_ep_broken(ep, conn, "an answer longer than the limit, or asked for on the answer lane");
    int fits = rnl_stream_answer_fits(conn, answer);
    if (fits == RNL_RING_BROKEN)
        return rnl_ep_broken(ep, conn, "a position past what was written");
    if (fits < 0)
        return (int)stick(ep, conn, lane, RNL_STUCK_MEMORY);
    if (!fits) {
        conn->stuck_answer = answer;
        stick(ep, conn, lane, RNL_STUCK_ANSWER);
    }
    return fits;
}

static unsigned take_ask(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h,
                         struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[lane];
    struct rnl_stream *s = &conn->in[lane];
    const unsigned char *at = rnl_rx_payload(r, h);
    unsigned len = RNL_HEAD_LEN(h), id = RNL_HEAD_HANDLER(h);
    struct rnl_ask ask;
    if (len < sizeof ask || len > RNL_LINE_PAYLOAD || RNL_HEAD_N(h) != 1 || s->state != RNL_STREAM_FREE) {
        rnl_ep_broken(ep, conn, "a malformed request");
        return 1;
    }
    rnl_rx_load(&ask, at, sizeof ask);
    const struct rnl_handler *hd = handler_of(ep, id);
    if (!hd)
        return no_handler(ep, conn, lane, id);
    int sure = lane == 0 && ask.answer <= RNL_ANSWER_MAX && rnl_tx_surely(&conn->pair.tx[1], ask.answer);
    int ready = RNL_LIKELY(sure) ? 1 : answer_ready(ep, conn, lane, ask.answer);
    if (RNL_UNLIKELY(ready <= 0))
        return ready < 0;
    rnl_rx_read(r, h, 1);
    rnl_stream_setup(s, at + sizeof ask, len - sizeof ask, id, ask.answer);
    t->bytes += len - sizeof ask;
    ep->c->bytes_received += len - sizeof ask;
    t->quit |= run_item(ep, s, hd, s->at, len - (unsigned)sizeof ask);
    if (rnl_ep_forked(ep))
        return 1;
    rnl_rx_leave(&conn->pair.rx[lane]);
    return 1;
}

static unsigned take_refused(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h)
{
    struct rnl_rx *r = &conn->pair.rx[lane];
    unsigned len = RNL_HEAD_LEN(h);
    struct rnl_refused back;
    unsigned char copy[RNL_LINE_PAYLOAD];
    if (lane != 1 || len < sizeof back || len > RNL_LINE_PAYLOAD || RNL_HEAD_N(h) != 1) {
        rnl_ep_broken(ep, conn, "a malformed refusal");
        return 1;
    }
    rnl_rx_load(copy, rnl_rx_payload(r, h), sizeof copy);
    memcpy(&back, copy, sizeof back);
    if (back.reason > 255 || back.bytes != len - sizeof back) {
        rnl_ep_broken(ep, conn, "a malformed refusal");
        return 1;
    }
    ep->c->refused_received++;
    rnl_rx_read(r, h, 1);
    if (ep->on_refused) {
        uint32_t before = rnl_ep_handler_begins(ep, lane);
        ep->on_refused(ep->on_refused_arg, conn->rank, RNL_HEAD_HANDLER(h), back.reason, copy + sizeof back,
                       back.bytes);
        rnl_ep_handler_ends(ep, lane, before);
        if (rnl_ep_forked(ep))
            return 1;
    }
    rnl_rx_leave(&conn->pair.rx[lane]);
    return 1;
}

/* ---- extents ---- */

/* The handler of a whole message, once it is: from the extent itself, or from the buffer it was gathered in. */
static int run_gathered(struct rnl_endpoint *ep, struct rnl_stream *s, const struct rnl_handler *h)
{
    int quit = 0;
    if (h->stream) { /* if it waited for a stack: its extent is whole now */
        if (s->state == RNL_STREAM_GATHER)
            ep->gathering--;
        rnl_ep_chores(ep);
        return rnl_stream_run(ep, s, h);
    }
    if (s->too_long)
        quit = run_whole(ep, s, h, NULL, s->gathered);
    else if (s->gather)
        quit = run_whole(ep, s, h, s->gather, s->gathered);
    else
        quit = run_whole(ep, s, h, s->at, (size_t)(s->end - s->at));
    if (!rnl_ep_forked(ep))
        rnl_stream_ungather(ep, s);
    s->at = s->end;
    return quit;
}

/* A whole handler's message. One that may lie where it came does; another is copied as it comes, until it proves too
 * long. 0 = no memory for that: the message waits. */
static int gather(struct rnl_endpoint *ep, struct rnl_stream *s)
{
    size_t most = s->bound < RNL_WHOLE_MAX ? (size_t)s->bound : RNL_WHOLE_MAX;
    if (!(s->h.flags & RNL_IN_PLACE && (s->last || s->reserved >= s->bound))) {
        s->gather = malloc(most ? most : 1);
        if (!s->gather) {
            s->state = RNL_STREAM_FREE;
            rnl_fail(RNL_ERR_NO_MEMORY, "none to collect it, up to %zu bytes", most);
            return 0;
        }
        s->gather_room = most;
        ep->gather_bytes += most;
    }
    s->state = RNL_STREAM_GATHER;
    rnl_stream_feed(ep, s);
    return 1;
}

/* First line of a message in extents: 1 = its handler runs or will, 0 = stuck, negative = broken. */
static int open_message(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, const struct rnl_extent *e,
                        unsigned id, struct rnl_taking *t)
{
    struct rnl_stream *s = &conn->in[lane];
    const struct rnl_handler *h = handler_of(ep, id);
    if (s->state != RNL_STREAM_FREE || e->bound < e->published)
        return rnl_ep_broken(ep, conn, "a message begun inside another, or longer than its bound");
    if (!h)
        return (int)no_handler(ep, conn, lane, id);
    int ready = answer_ready(ep, conn, lane, e->answer);
    if (ready <= 0)
        return ready;
    rnl_stream_setup(s, rnl_rx_bulk_at(&conn->pair.rx[lane], e->start), e->published, id, e->answer);
    s->start = e->start;
    s->reserved = e->reserved;
    s->published = e->published;
    s->closed = (e->flags & RNL_EXTENT_CLOSED) != 0;
    s->last = (e->flags & RNL_EXTENT_LAST) != 0;
    s->gather = NULL;
    s->gathered = 0;
    s->too_long = 0;
    s->h = *h;
    s->bound = s->last ? e->published : e->bound;
    if (h->whole && !gather(ep, s))
        return (int)stick(ep, conn, lane, RNL_STUCK_MEMORY);
    if (s->last) {
        t->quit |= run_gathered(ep, s, h);
        s->at = s->end;
        return 1;
    }
    if (h->whole)
        return 1;
    int status = rnl_stream_start(ep, s, h);
    if (status == 0)
        return 1;
    if (e->reserved >= e->bound && lane == 0) { /* fits its extent: wait until it is whole, then run on our own stack */
        s->state = RNL_STREAM_GATHER;
        ep->gathering++;
        rnl_ep_chores(ep);
        ep->c->no_stack++;
        return 1;
    }
    return (int)stick(ep, conn, lane, status == RNL_NO_ROOM ? RNL_STUCK_STACK : RNL_STUCK_MEMORY);
}

/* After bytes were added to the open message: feed its handler, give room back, end it. */
static void advance(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, struct rnl_taking *t)
{
    struct rnl_stream *s = &conn->in[lane];
    struct rnl_rx *r = &conn->pair.rx[lane];
    rnl_stream_feed(ep, s);
    if (rnl_ep_forked(ep))
        return;
    if (s->state == RNL_STREAM_GATHER && s->last) {
        t->quit |= run_gathered(ep, s, &s->h);
        s->state = RNL_STREAM_FREE;
        s->at = s->end;
    }
    if (rnl_ep_forked(ep) || conn->gone)
        return;
    /* What was taken can be written again. A prefix that waits in place is not. */
    uint64_t unread = (uint64_t)(s->end - s->at), done = s->start + s->published - unread;
    if (unread == 0 && s->closed)
        done = s->start + ((s->published + 63u) & ~63u);
    else
        done &= ~(uint64_t)63;
    rnl_rx_bulk_done(r, done);
    if (s->last && s->state != RNL_STREAM_SUSPENDED && s->state != RNL_STREAM_RUNNING)
        s->state = RNL_STREAM_FREE;
}

/* Messages wait for a stack until they are whole OR a stack is free: their sender may wait for an answer to their first
 * half (tests/model/deadlock.pml, BUG_WHOLE_ONLY). */
unsigned rnl_stream_stacks(struct rnl_endpoint *ep, struct rnl_taking *t)
{
    unsigned started = 0;
    for (uint32_t i = 0; ep->gathering && i < ep->hot_count; i++) {
        struct rnl_conn *conn = ep->hot[i];
        struct rnl_stream *s = &conn->in[0];
        if (s->state != RNL_STREAM_GATHER || !s->h.stream)
            continue;
        if (rnl_stream_start(ep, s, &s->h) < 0) {
            s->state = RNL_STREAM_GATHER; /* still none */
            break;
        }
        if (rnl_ep_forked(ep))
            break;
        ep->gathering--;
        rnl_ep_chores(ep);
        started++;
        advance(ep, conn, 0, t);
        if (!rnl_ep_forked(ep))
            rnl_ep_tell(ep, conn);
    }
    return started;
}

/* LAST has CLOSED, ABORT has both; see ring.h. */
static int flags_valid(unsigned lane, uint32_t flags)
{
    const uint32_t end = RNL_EXTENT_LAST | RNL_EXTENT_CLOSED;
    if (flags & RNL_EXTENT_ABORT && ((flags & end) != end || flags & RNL_EXTENT_FIRST || lane != 0))
        return 0;
    return !(flags & RNL_EXTENT_LAST) || flags & RNL_EXTENT_CLOSED;
}

/* The line h of lane 0 gives the open message up; the bulk area is done with up to `done`. */
static unsigned take_abort(struct rnl_endpoint *ep, struct rnl_conn *conn, rnl_head h, uint64_t done)
{
    struct rnl_rx *r = &conn->pair.rx[0];
    ep->c->aborted_received++;
    rnl_rx_read(r, h, 1);
    rnl_rx_leave(r);
    rnl_rx_bulk_done(r, done);
    rnl_stream_fail(ep, &conn->in[0], RNL_ERR_ABORTED);
    return 1;
}

static unsigned take_extent(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h,
                            struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[lane];
    struct rnl_stream *s = &conn->in[lane];
    struct rnl_extent e;
    if (RNL_HEAD_LEN(h) != sizeof e || RNL_HEAD_N(h) != 1)
        goto broken;
    rnl_rx_load(&e, rnl_rx_payload(r, h), sizeof e);
    if (rnl_rx_extent(r, &e) < 0 || !flags_valid(lane, e.flags) || (e.flags & RNL_EXTENT_ABORT && e.published))
        goto broken;
    if (lane == 0 && !conn->self && rnl_stream_take_medium(ep, conn, h, &e, t))
        return 1;
    if (e.flags & RNL_EXTENT_FIRST) {
        int opened = open_message(ep, conn, lane, &e, RNL_HEAD_HANDLER(h), t);
        if (rnl_ep_forked(ep))
            return 1;
        if (opened <= 0)
            return opened < 0;
    } else {
        if (s->state == RNL_STREAM_FREE || !s->closed || s->last || s->at != s->end)
            goto broken;
        if (e.flags & RNL_EXTENT_ABORT) {
            r->bulk_next = e.start;
            return take_abort(ep, conn, h, e.start);
        }
        uint64_t before = s->before + s->published;
        if (before + e.published > s->bound)
            goto broken;
        s->before = before;
        s->start = e.start;
        s->reserved = e.reserved;
        s->published = e.published;
        s->at = s->base = (unsigned char *)(uintptr_t)rnl_rx_bulk_at(r, e.start);
        s->end = s->at + e.published;
        s->closed = (e.flags & RNL_EXTENT_CLOSED) != 0;
        s->last = (e.flags & RNL_EXTENT_LAST) != 0;
    }
    r->bulk_next = e.start + (((e.flags & RNL_EXTENT_CLOSED ? e.published : e.reserved) + 63u) & ~63u);
    ep->c->extents_received++;
    rnl_ep_extent_taken(ep, conn);
    ep->c->bytes_received += e.published;
    t->bytes += e.published;
    rnl_rx_read(r, h, 1);
    rnl_rx_leave(&conn->pair.rx[lane]);
    if (!conn->gone)
        advance(ep, conn, lane, t);
    return 1;

broken:
    rnl_ep_broken(ep, conn, "a malformed extent");
    return 1;
}

static unsigned take_prefix(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h,
                            struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[lane];
    struct rnl_stream *s = &conn->in[lane];
    struct rnl_prefix p;
    if (RNL_HEAD_LEN(h) != sizeof p || RNL_HEAD_N(h) != 1)
        goto broken;
    rnl_rx_load(&p, rnl_rx_payload(r, h), sizeof p);
    if (s->state == RNL_STREAM_FREE || s->closed || s->last || p.published < s->published ||
        p.published > s->reserved || p.flags & ~(uint32_t)RNL_EXTENT_FLAGS || p.flags & RNL_EXTENT_FIRST ||
        !flags_valid(lane, p.flags) || s->before + p.published > s->bound)
        goto broken;
    if (p.flags & RNL_EXTENT_ABORT) {
        if (p.published != s->published)
            goto broken;
        r->bulk_next = s->start + ((s->published + 63u) & ~63u);
        return take_abort(ep, conn, h, r->bulk_next);
    }
    uint32_t more = p.published - s->published;
    s->published = p.published;
    s->end += more;
    s->closed = (p.flags & RNL_EXTENT_CLOSED) != 0;
    s->last = (p.flags & RNL_EXTENT_LAST) != 0;
    if (s->closed)
        r->bulk_next = s->start + ((s->published + 63u) & ~63u);
    ep->c->bytes_received += more;
    t->bytes += more;
    rnl_rx_read(r, h, 1);
    rnl_rx_leave(&conn->pair.rx[lane]);
    advance(ep, conn, lane, t);
    return 1;

broken:
    rnl_ep_broken(ep, conn, "a malformed prefix");
    return 1;
}

/* ---- one lane ---- */

static RNL_NOINLINE unsigned take_other(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h,
                                        struct rnl_taking *t)
{
    switch (RNL_HEAD_KIND(h)) {
    case RNL_LINE_ASK:
        return take_ask(ep, conn, lane, h, t);
    case RNL_LINE_EXTENT:
        return take_extent(ep, conn, lane, h, t);
    case RNL_LINE_PREFIX:
        return take_prefix(ep, conn, lane, h, t);
    case RNL_LINE_REFUSED:
        return take_refused(ep, conn, lane, h);
    case RNL_LINE_GROW:
        rnl_rx_read(&conn->pair.rx[lane], h, 1);
        rnl_rx_leave(&conn->pair.rx[lane]);
        if (lane != 0 || rnl_pair_grow_rx(&conn->pair) < 0) {
            rnl_ep_broken(ep, conn, "a second change of ring, or no memory for it");
        } else {
            rnl_ep_grant_more(ep, conn);
        }
        return 1;
    default:
        rnl_ep_broken(ep, conn, "a line of unknown kind");
        return 1;
    }
}

enum { FAR = 2, AWAY = 6 /* gaps at most: what a sender of such lines needs to get so far ahead */ };

/* Right behind the sender each line of several items crosses three times: it comes here, goes back for its next item,
 * and comes again. So let it get ahead, and a good deal: equally fast ones would meet again soon. */
static RNL_NOINLINE void keep_away(const struct rnl_endpoint *ep, const struct rnl_conn *conn, const struct rnl_rx *r)
{
    if (conn->pair.away | conn->self) /* nobody writes meanwhile */
        return;
    if (rnl_rx_ahead(r, RNL_AHEAD))
        return;
    for (int k = 0; k < AWAY && !rnl_rx_ahead(r, FAR * RNL_AHEAD); k++)
        rnl_ep_relax(ep);
}

void rnl_stream_take(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned lane, rnl_head h, struct rnl_taking *t)
{
    struct rnl_rx *r = &conn->pair.rx[lane];
    uint64_t begin = r->pos, sent = conn->self ? conn->pair.tx[lane].pos : UINT64_MAX;
    if (RNL_UNLIKELY(conn->stuck[lane])) {
        conn->stuck[lane] = RNL_STUCK_NOT;
        rnl_ep_set_only(ep);
    }
    unsigned shared = 0; /* lines of three items or more */
    do {
        unsigned acklane = RNL_HEAD_ACKLANE(h);
        if (RNL_UNLIKELY(acklane >= RNL_LANES || rnl_tx_acked(&conn->pair.tx[acklane], r, RNL_HEAD_ACK(h)) < 0)) {
            rnl_ep_broken(ep, conn, "a reading position past what was written");
            return;
        }
        if (RNL_LIKELY(RNL_HEAD_KIND(h) == RNL_LINE_ITEMS)) {
            unsigned n = RNL_HEAD_N(h);
            uint64_t start = rnl_rx_begun(r, h) ? r->next_pos : r->pos & ~(uint64_t)7;
            if (RNL_UNLIKELY(start + n > sent))
                n = (unsigned)(sent - start);
            if (!take_items(ep, conn, lane, h, n, t))
                return;
            /* Crosses while this one is handled. If it was not written yet it is here since the ring's last turn. */
            __builtin_prefetch(rnl_line_of(r->ring, r->wrap, r->next_pos + RNL_AHEAD * 8));
            if (n > 2 && ++shared % RNL_AHEAD == 0)
                keep_away(ep, conn, r);
        } else {
            t->things += take_other(ep, conn, lane, h, t);
            if (rnl_ep_forked(ep))
                t->quit = 1;
            if (ep->quit) {
                ep->quit = 0;
                t->quit = 1;
            }
            if (t->quit | conn->stuck[lane] || t->bytes >= t->max)
                return;
        }
        if (RNL_UNLIKELY(r->told)) {
            r->told = 0;
            rnl_ep_told(ep, conn);
        }
        if (RNL_UNLIKELY(conn->broken))
            return;
        /* Nothing beyond a ringful, or beyond what we ourselves had sent, can have been there at the call. */
        if (RNL_UNLIKELY(r->pos - begin >= RNL_LINES(r->wrap) * 8 || r->pos >= sent))
            return;
        h = rnl_rx_peek(r);
    } while (h);
}
