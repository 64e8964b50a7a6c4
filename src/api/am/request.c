/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request.c - sends requests and gets: composes and sends them, records them in case their receiver dies, and polls. */
#include "stream/request.h"

#include "api/am/core.h"

/* ---- arguments ---- */

static RNL_NOINLINE int bad(const struct rnl_am_endpoint *ep, int index, const struct rnl_am_message *m, int numargs,
                            uint64_t most)
{
    if (!ep)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a request needs an endpoint to be sent from");
    if (numargs < 0 || numargs > RNL_AM_SHORT)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a message cannot have %d arguments, only 0 to %d", numargs, RNL_AM_SHORT);
    if (m->nbytes > most)
        return rnl_am_fail(AM_ERR_BAD_ARG, "such a message cannot have %llu bytes, only up to %llu; send it in parts",
                           (unsigned long long)m->nbytes, (unsigned long long)most);
    if (index < 0 || (uint32_t)index >= ep->translations)
        return rnl_am_fail(AM_ERR_BAD_ARG, "there is no translation %d: the table has 0 to %u", index,
                           ep->translations - 1);
    return rnl_am_fail(AM_ERR_BAD_ARG, "a request with payload needs the address of the payload, not NULL");
}

/* ---- sending ---- */

enum { SENT = 0, WAITS = 1 /* the message was not sent, since that would have to wait */ };

/* Writes header and payload into the open stream and ends it. */
static int compose(rnl_stream *s, const unsigned char *head, size_t head_bytes, const void *src, size_t nbytes)
{
    int status = rnl_piece(s, head, head_bytes);
    if (status == 0 && nbytes)
        status = rnl_piece(s, src, nbytes);
    if (status < 0) {
        rnl_abort(s);
        return status;
    }
    return rnl_end(s);
}

/* Begins a message, and makes progress while there is no room. Returns WAITS at the deadline; 0 = does not wait. */
static int begin(struct rnl_am_port *port, struct rnl_message *b, uint64_t deadline_ns, rnl_stream **out)
{
    struct rnl_endpoint *ep = port->ep;
    struct rnl_idle w = {.deadline_ns = deadline_ns};
    int patient = deadline_ns == UINT64_MAX || b->bound > RNL_AM_ASYNC + RNL_AM_HEADER_MAX;
    for (;;) {
        b->flags = patient && deadline_ns ? 0 : RNL_NO_WAIT;
        int status = rnl_begin(ep, b, out);
        if (status != RNL_NO_ROOM && status != RNL_BUSY)
            return status;
        if (deadline_ns == 0)
            return WAITS;
        if (ep->close.give_up)
            return RNL_ERR_JOB;
        if (!rnl_stream_progress(ep) && !rnl_ep_forked(ep)) {
            w.room = ep->fast.conn[b->peer] != &rnl_not_connected ? ep->fast.conn[b->peer] : NULL;
            if (rnl_ep_idle(ep, &w) == RNL_TIMED_OUT)
                return WAITS;
        }
        if (rnl_ep_forked(ep))
            return RNL_ERR_FORKED;
    }
}

static RNL_NOINLINE int send_long(struct rnl_am_endpoint *from, uint32_t rank, unsigned char *head, size_t n,
                                  const void *src, size_t nbytes, int async)
{
    struct rnl_am_port *port = from->port;
    struct rnl_env *env = port->ep->env;
    struct rnl_message b = {
        .peer = rank, .handler = RNL_AM_ID_REQUEST, .bound = n + nbytes, .answer = RNL_AM_REPLY_ROOM};
    rnl_stream *s;
    uint64_t deadline = async ? 0 : UINT64_MAX;
    if (!async && from->congestion_ns)
        deadline = env->ops->now_ns(env) + from->congestion_ns;
    int status = begin(port, &b, deadline, &s);
    if (status != 0)
        return status;
    /* Other threads may have sent requests during the wait. From now on they wait for this stream to end. */
    if (!rnl_am_record_room(port, rank, 0)) {
        rnl_abort(s);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to note a request to rank %u", rank);
    }
    rnl_am_set_serial(head, (uint16_t)(port->peer[rank].requests_sent + 1));
    return compose(s, head, n, src, nbytes);
}

/* Whether so many requests to rank are unread or unanswered that no further one can be recorded. */
static bool too_many(struct rnl_am_port *port, uint32_t rank)
{
    return port->peer[rank].of[0].count >= RNL_AM_RECORDS_MAX && !rnl_am_record_room(port, rank, 0);
}

/* Waits until few rejected replies are left to return, and a request can be recorded. Each rejected reply was caused by
 * a request, so holding requests up bounds their number. */
static RNL_NOINLINE int drain(struct rnl_am_port *port, uint32_t rank)
{
    struct rnl_idle w = {.deadline_ns = UINT64_MAX};
    while ((port->rejections > RNL_AM_REJECTED_MAX || too_many(port, rank)) && !port->ep->close.give_up) {
        if (rnl_stream_progress(port->ep))
            w.polls = w.yields = 0;
        else if (!rnl_ep_forked(port->ep))
            rnl_ep_idle(port->ep, &w);
        if (rnl_ep_forked(port->ep))
            return rnl_am_enter_slow(port);
        rnl_am_do_pending(port);
    }
    return AM_OK;
}

static RNL_NOINLINE int return_message(struct rnl_am_endpoint *from, uint32_t rank, struct rnl_am_message *m, int why,
                                       int index)
{
    rnl_am_swap_ends(m);
    rnl_am_return_message(from, rank, m, why, 1, index);
    return rnl_am_report_returned(from->port);
}

/* Sends m, whose names and tag are filled in from the translation. The lock is held. Polls unless async. */
static int send(struct rnl_am_endpoint *from, int index, struct rnl_am_message *m, const void *src, size_t nbytes,
                int async)
{
    struct rnl_am_port *port = from->port;
    unsigned char head[RNL_AM_HEADER_MAX];
    int status = rnl_am_outside(port, "sending a request");
    if (RNL_UNLIKELY(status != AM_OK))
        return status;
    if (RNL_UNLIKELY((uint32_t)index >= from->translations))
        return bad(from, index, m, 0, UINT64_MAX);
    const struct rnl_am_translation *t = &from->translation[index];
    uint32_t rank = t->name.rank;
    m->to = t->name.number;
    m->to_generation = t->name.generation;
    m->from = from->number;
    m->from_generation = from->generation;
    m->tag = t->tag;
    if (RNL_UNLIKELY(!t->used))
        return return_message(from, port->ep->rank, m, AM_EBADENTRY, index);
    if (RNL_UNLIKELY(port->rejections > RNL_AM_REJECTED_MAX || too_many(port, rank))) {
        if (async)
            return rnl_am_fail(AM_ERR_NOT_SENT, "too many replies are on their way back, or requests unanswered: poll, "
                                                "then try again");
        status = drain(port, rank);
        if (status != AM_OK)
            return status;
    }
    if (RNL_UNLIKELY(!rnl_am_record_room(port, rank, 0)))
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory to note a request to rank %u", rank);
    m->serial = (uint16_t)(port->peer[rank].requests_sent + 1);
    size_t n = rnl_am_write_request(head, m);
    if (n <= RNL_REQUEST_MAX && !nbytes &&
        rnl_stream_request_short(port->ep, rank, RNL_AM_ID_REQUEST, RNL_AM_REPLY_ROOM, head, n)) {
        status = AM_OK;
    } else {
        status = send_long(from, rank, head, n, src, nbytes, async);
        if (status == WAITS && async)
            return rnl_am_fail(AM_ERR_NOT_SENT, "no room for %zu bytes to rank %u now: poll, then try again",
                               n + nbytes, rank);
        if (status == WAITS)
            return return_message(from, rank, m, AM_ECONGESTION, index);
        if (status == RNL_ERR_PEER_DEAD || status == RNL_ERR_PEER_BROKEN)
            return return_message(from, rank, m, AM_EUNREACHABLE, index);
        if (status < 0)
            return rnl_am_status(status);
    }
    port->peer[rank].requests_sent++;
    memcpy(rnl_am_record(port, rank, 0, (uint32_t)index, n)->head, head, n);
    return async ? AM_OK : rnl_am_progress_after(port, rank);
}

/* Sends a request of any kind on the general path: checks it, composes its header in a buffer, and takes the lock. */
static RNL_NOINLINE int request(ep_t ep, int index, struct rnl_am_message *m, const void *src, uint64_t most, int async,
                                int numargs, const int32_t *args)
{
    size_t nbytes = m->op == RNL_AM_OP_GET ? 0 : (size_t)m->nbytes;
    if (RNL_UNLIKELY(!ep || index < 0 || (unsigned)numargs > RNL_AM_SHORT || m->nbytes > most || (nbytes && !src)))
        return bad(ep, index, m, numargs, most);
    m->numargs = (uint8_t)numargs;
    m->status = m->was = 0;
    rnl_am_copy_args(m->args, args, (unsigned)numargs);
    int status = rnl_am_enter(ep->port);
    if (RNL_UNLIKELY(status != AM_OK))
        return status;
    return rnl_am_leave(ep->port, send(ep, index, m, src, nbytes, async));
}

/* Fills in what kind of request m is. Its arguments and its receiver are filled in later. */
RNL_INLINE void set_up(struct rnl_am_message *m, unsigned op, handler_t handler, uint64_t source_offset,
                       uint64_t dest_offset, size_t nbytes)
{
    m->op = (uint8_t)op;
    m->handler = handler;
    m->source_offset = source_offset;
    m->dest_offset = dest_offset;
    m->nbytes = nbytes;
}

/* ---- short requests ---- */

/* The fast path: checks a request, composes it in its cell and sends it. Returns 0 if the general path must be taken.
 * The caller has to poll afterwards. */
RNL_INLINE bool request_fast(ep_t ep, int index, handler_t handler, int numargs, const int32_t *args,
                             struct rnl_stream_place *place)
{
    size_t n = sizeof(struct rnl_am_request_header) + (size_t)(unsigned)numargs * 4;
    struct rnl_am_port *port = ep->port;
    const struct rnl_am_translation *t = &ep->translation[index];
    uint32_t rank;
    if (RNL_UNLIKELY(n > RNL_REQUEST_MAX || (uint32_t)index >= ep->translations || !t->used || port->running ||
                     port->rejections > RNL_AM_REJECTED_MAX || !rnl_am_record_free(port, rank = t->name.rank, 0) ||
                     !rnl_stream_request_place(port->ep, rank, RNL_AM_ID_REQUEST, RNL_AM_REPLY_ROOM, n, place)))
        return false;
    place->conn->awaited = rnl_am_expects_replies(port, rank);
    uint64_t what = rnl_am_what(RNL_AM_OP_SHORT, (unsigned)numargs, handler, t->name.number, ep->number) |
                    (uint64_t)(uint16_t)++port->peer[rank].requests_sent << 48;
    uint64_t who = rnl_am_who(t->name.generation, ep->generation), tag = t->tag;
    memcpy(place->at, &what, 8);
    memcpy(place->at + 8, &who, 8);
    memcpy(place->at + 16, &tag, 8);
    rnl_am_copy_args(place->at + 24, args, (unsigned)numargs);
    rnl_stream_request_publish(port->ep, place, n);
    place->conn->awaited = 0;
    struct rnl_am_record *r = rnl_am_record_on(port, rank, &place->conn->channel.tx[0], 0, (uint32_t)index, n);
    r->head[0] = what;
    r->head[1] = who;
    r->head[2] = tag;
    rnl_am_copy_args(r->head + 3, args, (unsigned)numargs);
    return true;
}

/* Sends a request that the inlined fast path could not send. On a shared port it takes the lock for the fast path and
 * releases it before the general path: the lock is recursive, but a call that waits releases one hold only, and with
 * two holds other threads would wait for ever. */
static RNL_NOINLINE int request_other(ep_t ep, int index, handler_t handler, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    if (RNL_LIKELY(ep && ep->port->guarded)) {
        struct rnl_stream_place place;
        int status = rnl_am_enter(ep->port);
        if (RNL_UNLIKELY(status != AM_OK))
            return status;
        if (RNL_LIKELY(request_fast(ep, index, handler, numargs, args, &place)))
            return rnl_am_leave(ep->port, rnl_am_progress_after(ep->port, place.conn->rank));
        (void)rnl_am_leave(ep->port, AM_OK);
    }
    set_up(&m, RNL_AM_OP_SHORT, handler, 0, 0, 0);
    return request(ep, index, &m, NULL, 0, 0, numargs, args);
}

int rnl_am_request(ep_t ep, int index, handler_t handler, int numargs, const int32_t *args)
{
    struct rnl_stream_place place;
    if (RNL_UNLIKELY(!ep || !rnl_am_is_fast(ep->port) || !request_fast(ep, index, handler, numargs, args, &place)))
        return request_other(ep, index, handler, numargs, args);
    return rnl_am_progress_after(ep->port, place.conn->rank);
}

/* ---- the others ---- */

int rnl_am_request_i(ep_t ep, int index, handler_t handler, const void *src, size_t nbytes, int numargs,
                     const int32_t *args)
{
    struct rnl_am_message m;
    set_up(&m, RNL_AM_OP_MEDIUM, handler, 0, 0, nbytes);
    return request(ep, index, &m, src, RNL_AM_MEDIUM, 0, numargs, args);
}

int rnl_am_request_xfer(ep_t ep, int index, uintptr_t dest_offset, handler_t handler, const void *src, size_t nbytes,
                        int async, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    if (async && nbytes > RNL_AM_ASYNC)
        return rnl_am_fail(AM_ERR_RESOURCE,
                           "%zu bytes can never be sent without waiting: at most %d; send it in parts, "
                           "or let it wait",
                           nbytes, RNL_AM_ASYNC);
    set_up(&m, RNL_AM_OP_XFER, handler, 0, dest_offset, nbytes);
    return request(ep, index, &m, src, RNL_AM_LONG, async, numargs, args);
}

int rnl_am_get_xfer(ep_t ep, int index, uintptr_t source_offset, handler_t handler, uintptr_t dest_offset,
                    size_t nbytes, int async, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    set_up(&m, RNL_AM_OP_GET, handler, source_offset, dest_offset, nbytes);
    return request(ep, index, &m, NULL, RNL_AM_MEDIUM, async, numargs, args);
}
