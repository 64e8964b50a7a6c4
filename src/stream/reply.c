/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reply.c - replies: room for them, sending them in a handler, and sending them later.
 *
 * Clause a of the deadlock rule is kept here: a handler of a request runs only when the largest reply fits on lane 1,
 * and that room stays free until the handler has replied or returned. A handler that defers its reply passes the room
 * on to the deferred reply (rnl_tx_hold). What can be held is limited so that a reply of the largest size fits besides
 * as soon as the peer has read: the next request always gets to its handler, which may be what a deferred reply waits
 * for. */
#include <stdlib.h>

#include "runnel/adapter.h"
#include "stream/request.h"
#include "stream/stream_internal.h"

enum { TABLE_MIN = 16 };

/* A deferred reply, or a free entry of the table. */
struct rnl_later {
    struct rnl_conn *conn; /* NULL = the peer is gone */
    uint32_t reply_max;    /* 0 = the entry is free */
    uint32_t round;        /* of the entry's use: part of the name, so that no old name finds a new reply */
    uint32_t rank;
    uint32_t next; /* free: 1 + index of the next free entry */
};

/* ---- sending ---- */

int rnl_stream_reply_fits(struct rnl_conn *conn, uint32_t reply_max)
{
    struct rnl_tx *t = &conn->channel.tx[1];
    if (RNL_UNLIKELY(!t->ring) && rnl_channel_map_replies(&conn->channel) < 0)
        return 0; /* tried again at the next look for room */
    if (RNL_CELL_START(t->pos) >= t->stop) {
        int status = rnl_tx_refresh(t, NULL, NULL);
        if (status <= 0)
            return status;
    }
    if (reply_max <= RNL_CELL_PAYLOAD)
        return 1;
    if (RNL_UNLIKELY(!t->bulk) && rnl_channel_map_mine(&conn->channel) < 0)
        return 0;
    return rnl_tx_reply_room(t, reply_max);
}

static size_t all_bytes(const struct rnl_buffer *pieces, unsigned count)
{
    size_t n = 0;
    for (unsigned i = 0; i < count; i++)
        n = pieces[i].n < SIZE_MAX - n ? n + pieces[i].n : SIZE_MAX;
    return n;
}

static int check_reply(const struct rnl_conn *conn, unsigned handler, size_t n, uint32_t reply_max)
{
    if (n > reply_max)
        return rnl_fail(RNL_ERR_TOO_LONG, "a reply of %zu bytes to rank %u is longer than the %u its sender allowed", n,
                        conn->rank, reply_max);
    if (handler > 0xffff)
        return rnl_fail(RNL_ERR_HANDLER, "handler %u does not fit in a message header: the largest is 65535", handler);
    return 0;
}

/* Sends a reply of n bytes, for which room was reserved. */
static void send_reply(struct rnl_endpoint *ep, struct rnl_conn *conn, unsigned handler,
                       const struct rnl_buffer *pieces, unsigned count, size_t n)
{
    struct rnl_tx *t = &conn->channel.tx[1];
    int new_cell = 1;
    ep->c->replies_sent++;
    if (n <= RNL_CELL_PAYLOAD) {
        rnl_header key = rnl_header_key(RNL_CELL_RECORDS, handler, (unsigned)n);
        unsigned char *at = rnl_tx_place(t, key, &new_cell);
        if (!at)
            return; /* cannot happen: it was reserved */
        for (unsigned i = 0; i < count; at += pieces[i++].n)
            if (pieces[i].n)
                rnl_copy_short(at, pieces[i].buf, pieces[i].n);
        rnl_stream_publish(ep, conn, 1, key, at, new_cell, 0);
        return;
    }
    struct rnl_extent e = {.reserved = (uint32_t)n,
                           .published = (uint32_t)n,
                           .bound = n,
                           .flags = RNL_EXTENT_FIRST | RNL_EXTENT_LAST | RNL_EXTENT_CLOSED};
    if (rnl_tx_bulk_room(t, (uint32_t)n, &e.start) <= 0)
        return; /* cannot happen: it was reserved */
    unsigned char *to = t->bulk + (e.start & (RNL_BULK_BYTES - 1));
    for (unsigned i = 0; i < count; to += pieces[i++].n)
        if (pieces[i].n)
            rnl_copy_in(to, pieces[i].buf, pieces[i].n);
    rnl_tx_bulk_take(t, e.start + ((n + 63) & ~(size_t)63));
    rnl_header key = rnl_header_key(RNL_CELL_EXTENT, handler, sizeof e);
    unsigned char *at = rnl_tx_place(t, key, &new_cell);
    if (!at)
        return; /* cannot happen: it was reserved */
    memcpy(at, &e, sizeof e);
    rnl_stream_publish(ep, conn, 1, key, at + sizeof e, new_cell, 0);
    rnl_tx_close_other(t);
}

/* ---- in the handler ---- */

/* Checks that the handler of s may reply, or defer its reply. */
static int may_reply(struct rnl_stream *s)
{
    if (s->ep->fast.open == RNL_EP_FORKED)
        return rnl_ep_enter_slow(s->ep);
    if ((s->state != RNL_STREAM_INLINE && s->state != RNL_STREAM_RUNNING) || s->lane != 0)
        return rnl_fail(RNL_ERR_CONTEXT, "rnl_reply belongs inside the handler of a message that is no reply");
    if (!s->reply_max)
        return rnl_fail(RNL_ERR_CONTEXT, "this message allows no reply: its sender must begin it with answer > 0");
    if (s->replied)
        return rnl_fail(RNL_ERR_CONTEXT, "this message has been replied to already, or its reply was deferred: one "
                                         "reply each");
    if (s->lost)
        return rnl_stream_lost(s);
    return s->conn->gone ? rnl_ep_gone(s->ep, s->conn->rank) : 0;
}

int rnl_reply_pieces(rnl_stream *s, unsigned handler, const struct rnl_buffer *pieces, unsigned count)
{
    size_t n = all_bytes(pieces, count);
    int status = may_reply(s);
    if (status == 0)
        status = check_reply(s->conn, handler, n, s->reply_max);
    if (status < 0)
        return status;
    s->replied = 1;
    send_reply(s->ep, s->conn, handler, pieces, count, n);
    return 0;
}

int rnl_stream_reply(struct rnl_stream *s, unsigned handler, const void *head, size_t head_bytes, const void *buf,
                     size_t n_buf)
{
    const struct rnl_buffer pieces[] = {{head, head_bytes}, {buf, n_buf}};
    return rnl_reply_pieces(s, handler, pieces, n_buf ? 2 : 1);
}

int rnl_reply(rnl_stream *s, unsigned handler, const void *buf, size_t n)
{
    const struct rnl_buffer piece = {buf, n};
    return rnl_reply_pieces(s, handler, &piece, 1);
}

/* ---- later ---- */

static rnl_deferred name_of(const struct rnl_endpoint *ep, const struct rnl_later *l)
{
    return (uint64_t)l->round << 32 | (uint64_t)(l - ep->later + 1);
}

/* Returns the deferred reply of that name, or NULL. */
static struct rnl_later *find(const struct rnl_endpoint *ep, rnl_deferred name)
{
    uint64_t i = (uint32_t)name - (uint64_t)1;
    struct rnl_later *l = i < ep->laters ? &ep->later[i] : NULL;
    return l && l->reply_max && l->round == name >> 32 ? l : NULL;
}

static struct rnl_later *take_entry(struct rnl_endpoint *ep)
{
    if (!ep->later_free) {
        uint32_t count = ep->laters ? 2 * ep->laters : TABLE_MIN;
        struct rnl_later *table = realloc(ep->later, count * sizeof *table);
        if (!table)
            return NULL;
        memset(table + ep->laters, 0, (count - ep->laters) * sizeof *table);
        for (uint32_t i = ep->laters; i < count; i++)
            table[i].next = i + 1 < count ? i + 2 : 0;
        ep->later = table;
        ep->later_free = ep->laters + 1;
        ep->laters = count;
    }
    struct rnl_later *l = &ep->later[ep->later_free - 1];
    ep->later_free = l->next;
    return l;
}

static void free_entry(struct rnl_endpoint *ep, struct rnl_later *l)
{
    l->conn = NULL;
    l->reply_max = 0;
    l->round++;
    l->next = ep->later_free;
    ep->later_free = (uint32_t)(l - ep->later + 1);
}

int rnl_defer(rnl_stream *s, rnl_deferred *out)
{
    struct rnl_endpoint *ep = s->ep;
    int status = may_reply(s);
    if (status < 0)
        return status;
    struct rnl_later *l = take_entry(ep);
    if (!l)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u deferred replies", ep->laters);
    if (!rnl_tx_hold(&s->conn->channel.tx[1], s->reply_max)) {
        free_entry(ep, l);
        return rnl_fail(
            RNL_NO_ROOM, "%u replies of %llu bytes to rank %u are deferred already: answer some, or reply at once",
            s->conn->channel.tx[1].held_cells, (unsigned long long)s->conn->channel.tx[1].held_bytes, s->conn->rank);
    }
    l->conn = s->conn;
    l->rank = s->conn->rank;
    l->reply_max = s->reply_max;
    s->replied = 1;
    *out = name_of(ep, l);
    return 0;
}

static int answer(struct rnl_endpoint *ep, rnl_deferred name, unsigned handler, const struct rnl_buffer *pieces,
                  unsigned count)
{
    struct rnl_later *l = find(ep, name);
    size_t n = all_bytes(pieces, count);
    if (!l)
        return rnl_fail(RNL_ERR_ARG, "no deferred reply has this name: each is answered once");
    struct rnl_conn *conn = l->conn;
    if (!conn) {
        uint32_t rank = l->rank;
        free_entry(ep, l);
        return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u, which asked for this reply, is gone", rank);
    }
    int status = check_reply(conn, handler, n, l->reply_max);
    if (status < 0)
        return status;
    rnl_tx_release(&conn->channel.tx[1], l->reply_max);
    free_entry(ep, l);
    send_reply(ep, conn, handler, pieces, count, n);
    return 0;
}

int rnl_answer(rnl_endpoint *ep, rnl_deferred name, unsigned handler, const struct rnl_buffer *pieces, unsigned count)
{
    int status = rnl_ep_enter(ep);
    if (status < 0)
        return status;
    status = answer(ep, name, handler, pieces, count);
    rnl_ep_leave(ep);
    return status;
}

void rnl_stream_forget_deferred(struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    for (uint32_t i = 0; conn->channel.tx[1].held_cells && i < ep->laters; i++)
        if (ep->later[i].conn == conn)
            ep->later[i].conn = NULL;
}
