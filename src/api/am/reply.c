/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reply.c - sends replies. */
#include "stream/request.h"

#include "api/am/core.h"

static RNL_NOINLINE int no_reply(const struct rnl_am_token *t, int numargs, size_t nbytes)
{
    if (!t || t->self != t)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a token is good in its handler only, until that returns");
    if (!t->s || t->m->status)
        return rnl_am_fail(AM_ERR_RESOURCE, "only a request can be replied to, and this is none");
    if (t->replied)
        return rnl_am_fail(AM_ERR_RESOURCE, "this request has been replied to already: one reply each");
    if (numargs < 0 || numargs > RNL_AM_SHORT)
        return rnl_am_fail(AM_ERR_BAD_ARG, "%d arguments: a message has 0 to %d", numargs, RNL_AM_SHORT);
    return rnl_am_fail(AM_ERR_BAD_ARG, "a reply of %zu bytes: it takes up to %d, and needs them somewhere", nbytes,
                       RNL_AM_MEDIUM);
}

/* Sends a reply on the general path. The caller has set op, handler and offsets of m. */
static int reply(void *token, struct rnl_am_message *m, const void *src, size_t nbytes, int numargs,
                 const int32_t *args)
{
    struct rnl_am_token *t = token;
    unsigned char head[RNL_AM_HEADER_MAX];
    if (RNL_UNLIKELY(!t || t->self != t || !t->s || t->m->status || t->replied || (unsigned)numargs > RNL_AM_SHORT ||
                     nbytes > RNL_AM_MEDIUM || (nbytes && !src)))
        return no_reply(t, numargs, nbytes);
    m->numargs = (uint8_t)numargs;
    m->status = 0;
    m->serial = t->m->serial;
    m->to = t->m->from;
    m->to_generation = t->m->from_generation;
    m->from = t->ep->number;
    m->from_generation = t->ep->generation;
    m->nbytes = nbytes;
    rnl_am_copy_args(m->args, args, (unsigned)numargs);
    if (RNL_UNLIKELY(!rnl_am_record_room(t->port, t->rank, 1)))
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory to note a reply to rank %u", t->rank);
    size_t n = rnl_am_write_reply(head, m);
    int status = t->s->conn->dying ? RNL_ERR_PEER_DEAD : rnl_stream_reply(t->s, RNL_AM_ID_REPLY, head, n, src, nbytes);
    if (RNL_UNLIKELY(status < 0)) {
        if (status != RNL_ERR_PEER_DEAD && status != RNL_ERR_PEER_BROKEN && status != RNL_ERR_ABORTED)
            return rnl_am_status(status);
        rnl_am_swap_ends(m);
        rnl_am_reject_unreachable(t->port, t->rank, m);
    } else {
        memcpy(rnl_am_record(t->port, t->rank, 1, (uint32_t)-1, n)->head, head, n);
    }
    t->replied = 1;
    return AM_OK;
}

static RNL_NOINLINE int reply_short(void *token, handler_t handler, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    m.op = RNL_AM_OP_SHORT;
    m.handler = handler;
    m.dest_offset = m.source_offset = 0;
    return reply(token, &m, NULL, 0, numargs, args);
}

/* The fast path composes the whole reply in one cell; everything else goes to the general path. */
int rnl_am_reply(void *token, handler_t handler, int numargs, const int32_t *args)
{
    struct rnl_am_token *t = token;
    size_t n = sizeof(struct rnl_am_header) + (size_t)(unsigned)numargs * 4;
    struct rnl_stream_place place;
    /* A token that allows no reply has no stream, or rnl_stream_reply_place fails since the request is answered. */
    if (RNL_UNLIKELY(!t || t->self != t || !t->s || n > RNL_CELL_PAYLOAD || !rnl_am_record_free(t->port, t->rank, 1) ||
                     !rnl_stream_reply_place(t->s, RNL_AM_ID_REPLY, n, &place)))
        return reply_short(token, handler, numargs, args);
    const struct rnl_am_message *m = t->m;
    uint64_t what =
        rnl_am_what(RNL_AM_OP_SHORT, (unsigned)numargs, handler, m->from, t->ep->number) | (uint64_t)m->serial << 48;
    uint64_t who = rnl_am_who(m->from_generation, t->ep->generation);
    memcpy(place.at, &what, 8);
    memcpy(place.at + 8, &who, 8);
    rnl_am_copy_args(place.at + 16, args, (unsigned)numargs);
    rnl_stream_reply_publish(t->s, &place, n);
    t->replied = 1;
    struct rnl_am_record *r = rnl_am_record_on(t->port, t->rank, &place.conn->channel.tx[1], 1, (uint32_t)-1, n);
    r->head[0] = what;
    r->head[1] = who;
    rnl_am_copy_args(r->head + 2, args, (unsigned)numargs);
    return rnl_stream_reply_announce(t->s, &place);
}

int rnl_am_reply_i(void *token, handler_t handler, const void *src, size_t nbytes, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    m.op = RNL_AM_OP_MEDIUM;
    m.handler = handler;
    m.dest_offset = m.source_offset = 0;
    return reply(token, &m, src, nbytes, numargs, args);
}

int rnl_am_reply_xfer(void *token, uintptr_t dest_offset, handler_t handler, const void *src, size_t nbytes,
                      int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    m.op = RNL_AM_OP_XFER;
    m.handler = handler;
    m.dest_offset = dest_offset;
    m.source_offset = 0;
    return reply(token, &m, src, nbytes, numargs, args);
}
