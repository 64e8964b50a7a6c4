/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk.c - the bulk lane: posts with RNL_BULK, in an order of their own, which no message of lane 0 waits for. Its
 * messages go through the ring and the bulk area of lane 0, in chunks that are opened, filled and closed in one step,
 * so that neither lane ever waits for the other to go on.
 *
 *   ring of lane 0      | short | chunk | chunk | short | extent | chunk | short |
 *   at the receiver               parked  parked                   parked           then taken in, when lane 0 is
 *
 * Sender: at most RNL_BULK_AHEAD chunks are not taken in, and ring, grant and bulk area keep as much free as the lane
 * has unread. So lane 0 has half of everything, however slowly its receiver takes bulk. Between an extent of lane 0 and
 * more of it there is no chunk.
 *
 * Receiver: the cell of a chunk is read as soon as it is found, and the chunk is noted (parked). What is behind it
 * comes as if it were not there. Its bytes stay where they are, so the bulk area is done with only up to the first
 * parked chunk. A parked chunk waits for the program's extracts (progress.c), or for a handler or memory, never for
 * lane 0: its message has a stack of its own (run.c).
 *
 * tests/model/deadlock.pml has this lane (BULK). */
#include "stream/stream_internal.h"

#include <stdlib.h>

#include "remote/remote.h"
#include "runnel/adapter.h"

enum {
    CHUNK = RNL_CHUNK,
    CHUNK_REMOTE = 2 * RNL_CHUNK,
    EMPTY = RNL_CELL_BYTES, /* bytes of the bulk area that an empty chunk leaves unused before it, so that it counts */
    UNSENT = 2 * CHUNK_REMOTE /* bytes for another host that a message behind them may have to wait for */
};

int rnl_stream_bulk_open(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if (conn->bulk)
        return 0;
    struct rnl_bulk_lane *b = calloc(1, sizeof *b);
    if (!b)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the bulk lane of rank %u", conn->rank);
    b->in.ep = ep;
    b->in.conn = conn;
    b->in.bulk = 1;
    b->post_last = &b->post_first;
    conn->bulk = b;
    return 0;
}

/* ---- sending ---- */

/* Forgets the chunks that the peer has taken in, as far as is known. Returns the bytes of the others. */
static uint64_t unread(struct rnl_bulk_lane *b, const struct rnl_tx *t)
{
    uint64_t bytes = 0;
    while (b->unread_count && b->unread[b->unread_first].end <= t->bulk_read) {
        b->unread_first = (b->unread_first + 1) % RNL_BULK_AHEAD;
        b->unread_count--;
    }
    for (unsigned i = 0; i < b->unread_count; i++)
        bytes += b->unread[(b->unread_first + i) % RNL_BULK_AHEAD].bytes;
    return bytes;
}

/* Returns true if an extent of lane 0 is open: there is no chunk between it and more of it. */
static bool is_shut(const struct rnl_conn *conn)
{
    const struct rnl_stream *out = rnl_stream_out(conn);
    return out->state != RNL_STREAM_FREE && (out->state != RNL_STREAM_CHUNKS || out->base);
}

/* Returns true if the peer, or the network, has taken so little that no chunk may follow. `chunks` are not taken in,
 * and `unsent` bytes have not been sent to the peer's host. */
static bool is_full(const struct rnl_tx *t, const struct rnl_conn *conn, unsigned chunks, uint64_t unsent)
{
    return chunks == RNL_BULK_AHEAD || RNL_CELL_START(t->pos) + (chunks + (uint64_t)1) * 8 >= t->stop ||
           (conn->remote && unsent >= UNSENT);
}

static uint64_t unsent_of(const struct rnl_conn *conn)
{
    return conn->remote ? rnl_remote_unsent(conn->remote) : 0;
}

/* Finds room for a chunk of up to `left` bytes. Returns its bytes, RNL_NO_ROOM, or an error. */
static int64_t find_room(struct rnl_endpoint *ep, struct rnl_conn *conn, uint64_t left)
{
    struct rnl_bulk_lane *b = conn->bulk;
    struct rnl_tx *t = &conn->channel.tx[0];
    if (is_shut(conn))
        return RNL_NO_ROOM;
    if (rnl_tx_refresh(t, ep->env, &conn->channel.distance) < 0 || rnl_tx_bulk_refresh(t) < 0)
        return rnl_ep_broken(ep, conn, "a position past what was written");
    int status = t->bulk ? 0 : rnl_channel_map_mine(&conn->channel);
    if (status < 0)
        return status;
    uint64_t bytes = unread(b, t);
    if (is_full(t, conn, b->unread_count, unsent_of(conn)))
        return RNL_NO_ROOM;
    uint32_t most = conn->remote ? CHUNK_REMOTE : CHUNK, want = left < most ? (uint32_t)left : most;
    if (!want)
        want = EMPTY;
    uint32_t fits = rnl_tx_bulk_beside(t, want, want < RNL_PIECE_MIN ? want : RNL_PIECE_MIN, bytes, true);
    return fits == 0 ? RNL_NO_ROOM : left ? (int64_t)fits : 0;
}

/* Goes through the chunks that would be sent now, on a copy of the sender's state. */
static uint64_t room_for_all(const struct rnl_conn *conn, struct rnl_tx t)
{
    uint64_t bytes = conn->bulk ? unread(conn->bulk, &t) : 0, unsent = unsent_of(conn), room = 0;
    const uint32_t most = conn->remote ? CHUNK_REMOTE : CHUNK;
    for (unsigned chunks = conn->bulk ? conn->bulk->unread_count : 0; !is_full(&t, conn, chunks, unsent); chunks++) {
        uint64_t to_end = t.bulk_mask + 1 - (t.bulk_head & t.bulk_mask);
        uint32_t n = rnl_tx_bulk_beside(&t, most, 64, bytes, false);
        room += n;
        if (n < RNL_PIECE_MIN && n < to_end)
            break; /* the last chunk of a message may be as short as that, and no other */
        t.pos = RNL_CELL_START(t.pos) + 8;
        rnl_tx_bulk_take(&t, t.bulk_head + n);
        bytes += n;
        unsent += n;
    }
    return room;
}

uint32_t rnl_stream_bulk_lacks(const struct rnl_conn *conn, const struct rnl_tx_room *lane0, uint64_t *room)
{
    const struct rnl_bulk_lane *b = conn->bulk;
    const struct rnl_tx *t = &conn->channel.tx[0];
    if (b && (b->post_first || b->aborting))
        return RNL_ROOM_QUEUED;
    if (is_shut(conn))
        return RNL_ROOM_OPEN;
    *room = room_for_all(conn, *t);
    uint64_t free = t->bulk_mask + 1 - (t->bulk_head - t->bulk_read);
    return *room ? 0 : lane0->units * 64 < free ? RNL_ROOM_GRANT : RNL_ROOM_RING;
}

/* Publishes a chunk of so many bytes, which lie at bulk_head. */
static void publish(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler, struct rnl_extent *e,
                    uint32_t bytes)
{
    struct rnl_bulk_lane *b = conn->bulk;
    struct rnl_tx *t = &conn->channel.tx[0];
    int new_cell = 1;
    e->start = t->bulk_head + (bytes ? 0 : EMPTY);
    e->reserved = e->published = bytes;
    e->flags |= RNL_EXTENT_BULK | RNL_EXTENT_CLOSED;
    rnl_tx_bulk_take(t, e->start + ((bytes + 63u) & ~63u));
    unsigned i = (b->unread_first + b->unread_count++) % RNL_BULK_AHEAD;
    b->unread[i].end = t->bulk_head;
    b->unread[i].bytes = bytes ? bytes : EMPTY;
    rnl_header key = rnl_header_key(RNL_CELL_EXTENT, handler, sizeof *e);
    unsigned char *at = rnl_tx_place(t, key, &new_cell); /* find_room has seen it */
    memcpy(at, e, sizeof *e);
    rnl_stream_publish(ep, conn, 0, key, at + sizeof *e, new_cell, 0);
    rnl_tx_close_other(t);
    ep->c->bytes_sent += bytes;
    ep->c->extents_sent++;
}

static void compose(struct rnl_endpoint *ep, struct rnl_conn *conn, struct rnl_cursor *c, uint32_t bytes)
{
    const struct rnl_tx *t = &conn->channel.tx[0];
    unsigned char *to = t->bulk + (t->bulk_head & t->bulk_mask), *end = to + bytes;
    const uint64_t copies = rnl_stream_copies(conn, ep->env);
    while (to < end) {
        const struct rnl_buffer *piece = &c->pieces[c->piece];
        size_t n = piece->n - c->offset < (size_t)(end - to) ? piece->n - c->offset : (size_t)(end - to);
        if (n)
            rnl_copy_in_by(copies, to, (const char *)piece->buf + c->offset, n);
        to += n;
        c->offset += n;
        if (c->offset == piece->n)
            c->piece++, c->offset = 0;
    }
}

int rnl_stream_bulk_send(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler, struct rnl_cursor *c)
{
    rnl_stream_promote(ep);
    if (rnl_stream_bulk_aborts(ep, conn) == RNL_NO_ROOM)
        return RNL_NO_ROOM;
    for (;;) {
        const bool first = c->sent == UINT64_MAX;
        const uint64_t left = c->bytes - (first ? 0 : c->sent);
        int64_t bytes = find_room(ep, conn, left);
        if (bytes < 0)
            return (int)bytes;
        const bool last = (uint64_t)bytes == left;
        struct rnl_extent e = {.bound = first ? c->bytes : 0,
                               .flags = (first ? RNL_EXTENT_FIRST : 0u) | (last ? RNL_EXTENT_LAST : 0u)};
        compose(ep, conn, c, (uint32_t)bytes);
        publish(ep, conn, handler, &e, (uint32_t)bytes);
        if (first && c->bytes > RNL_WHOLE_MAX && !conn->lane1_polled) { /* it may be rejected as too long */
            conn->lane1_polled = 1;
            rnl_ep_set_sole(ep);
        }
        ep->c->messages_sent += first;
        ep->c->bulk_sent += last;
        c->sent = (first ? 0 : c->sent) + (uint64_t)bytes;
        if (last)
            return 0;
    }
}

int rnl_stream_bulk_aborts(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_bulk_lane *b = conn->bulk;
    if (!b->aborting)
        return 0;
    int64_t room = conn->shut & RNL_SHUT_DEAD ? RNL_ERR_PEER_DEAD : find_room(ep, conn, 0);
    if (room == RNL_NO_ROOM)
        return RNL_NO_ROOM;
    if (room == 0) {
        struct rnl_extent e = {.flags = RNL_EXTENT_LAST | RNL_EXTENT_ABORT};
        publish(ep, conn, b->abort_handler, &e, 0);
    }
    b->aborting = 0;
    ep->work.posts--; /* it was counted as one */
    rnl_ep_set_pending(ep);
    return 0;
}

void rnl_stream_bulk_abort(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler)
{
    struct rnl_bulk_lane *b = conn->bulk;
    rnl_stream_promote(ep);
    ep->c->aborted_sent++;
    b->aborting = 1;
    b->abort_handler = (uint16_t)handler;
    ep->work.posts++;
    rnl_ep_set_pending(ep);
    (void)rnl_stream_bulk_aborts(ep, conn);
}

/* ---- taking in ---- */

int rnl_stream_park(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_extent *e, unsigned id)
{
    if (conn->parked == RNL_BULK_AHEAD)
        return RNL_NO_ROOM;
    int status = rnl_stream_bulk_open(ep, conn);
    if (status < 0)
        return status;
    struct rnl_bulk_lane *b = conn->bulk;
    unsigned i = (b->parked_first + conn->parked) % RNL_BULK_AHEAD;
    b->parked[i] = *e;
    b->handler[i] = (uint16_t)id;
    if (conn->parked++ == 0)
        rnl_ep_set_sole(ep);
    ep->c->extents_received++;
    return 0;
}

void rnl_stream_unpark(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_bulk_lane *b = conn->bulk;
    const struct rnl_extent *e = &b->parked[b->parked_first];
    uint64_t end = e->start + ((e->published + 63u) & ~63u);
    if (end > b->done)
        b->done = end;
    b->parked_first = (b->parked_first + 1) % RNL_BULK_AHEAD;
    b->seen++;
    if (--conn->parked == 0)
        rnl_ep_set_sole(ep);
    rnl_rx_bulk_done(&conn->channel.rx[0], conn->parked ? b->parked[b->parked_first].start : b->done);
}
