/* SPDX-License-Identifier: BSD-3-Clause
 *
 * returned.c - messages that could not be delivered: runs handler 0 for them, finds the messages that a dead receiver
 * has not read or answered, and returns rejected replies to their senders. */
#include "api/am/core.h"
#include "base/bug.h"

#include <stdlib.h>

/* ---- handler 0 ---- */

static int index_of(const struct rnl_am_endpoint *ep, uint32_t rank, const struct rnl_am_message *m)
{
    for (uint32_t i = 0; i < ep->translations; i++) {
        const struct rnl_am_translation *t = &ep->translation[i];
        if (t->used && t->name.rank == rank && t->name.number == m->from && t->name.generation == m->from_generation)
            return (int)i;
    }
    return -1;
}

void rnl_am_return_message(struct rnl_am_endpoint *ep, uint32_t rank, struct rnl_am_message *m, int status,
                           int was_request, int index)
{
    struct rnl_am_port *port = ep->port;
    AM_returned *fn = (AM_returned *)ep->handler[0];
    m->status = (uint8_t)status;
    m->was = (uint8_t)was_request;
    port->count[RNL_AM_RETURNED]++;
    if (!fn) {
        port->returned_unreported = 1;
        return;
    }
    struct rnl_am_token t = {.port = port, .ep = ep, .m = m, .rank = rank, .tag = ep->tag};
    t.index = was_request && index < 0 ? index_of(ep, rank, m) : index;
    jmp_buf leave;
    t.self = &t;
    t.leave = &leave;
    port->running = &t;
    if (!_setjmp(leave))
        fn(status, rnl_am_opcode(m, was_request), &t);
    t.self = NULL;
    port->running = NULL;
    if (rnl_ep_forked(port->ep))
        return;
    ep->bundle->events++;
    if (ep->bundle->waiting)
        rnl_am_wake(ep->bundle);
}

int rnl_am_report_returned(struct rnl_am_port *port)
{
    if (RNL_LIKELY(!port->returned_unreported))
        return AM_OK;
    port->returned_unreported = 0;
    return rnl_am_fail(AM_ERR_NOT_SENT, "a message could not be delivered and came back to an endpoint that has no "
                                        "handler 0: set one (AM_returned) to learn which, and why");
}

/* ---- messages under way ---- */

/* Drops the records of messages that need not be returned any more: those that their receiver has read, for requests
 * with all its replies to what it read taken in here, and requests that have been answered. */
static void forget(struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    struct rnl_am_peer *peer = &port->peer[rank];
    struct rnl_am_records *p = &peer->of[lane];
    struct rnl_conn *conn = port->ep->fast.conn[rank];
    uint64_t read = lane == 0 ? rnl_conn_reply_watermark(conn) : conn->channel.tx[lane].acked;
    uint64_t open = lane == 0 ? peer->requests_sent - peer->last_replied : UINT64_MAX;
    while (p->count && (p->record[p->first].cell * 8 < read || p->count > open)) {
        p->first = (p->first + 1) & (p->room - 1);
        p->count--;
    }
}

bool rnl_am_record_grow(struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    enum { FIRST = 64 }; /* more than the replies that fit the ring, whose sender refreshes `acked` before that */
    struct rnl_am_records *p = &port->peer[rank].of[lane];
    struct rnl_conn *conn = port->ep->fast.conn[rank];
    if (p->room && conn != &rnl_not_connected) {
        forget(port, rank, lane);
        if (p->count == p->room) {
            (void)!rnl_tx_refresh(&conn->channel.tx[lane], NULL, NULL);
            forget(port, rank, lane);
        }
        if (p->count <= p->room / 2) /* a fuller ring grows, or every message would search it again */
            return true;
    }
    uint32_t room = p->room ? p->room * 2 : FIRST;
    if (room > RNL_AM_RECORDS_MAX)
        return p->count < p->room;
    struct rnl_am_record *more = aligned_alloc(64, room * sizeof *more);
    if (!more)
        return p->count < p->room;
    for (uint32_t i = 0; i < p->count; i++)
        more[i] = p->record[(p->first + i) & (p->room - 1)];
    free(p->record);
    p->record = more;
    p->first = 0;
    p->room = room;
    return true;
}

/* Returns to their senders the messages that rank, which is dead, has neither answered nor certainly read. */
static void unreached(struct rnl_am_port *port, uint32_t rank, unsigned lane)
{
    struct rnl_am_records *p = &port->peer[rank].of[lane];
    if (!p->count)
        return;
    (void)!rnl_tx_refresh(&port->ep->fast.conn[rank]->channel.tx[lane], NULL, NULL);
    forget(port, rank, lane);
    while (p->count && !rnl_ep_forked(port->ep)) {
        struct rnl_am_record r = p->record[p->first];
        p->first = (p->first + 1) & (p->room - 1);
        p->count--;
        struct rnl_am_message m;
        rnl_am_read_record(&m, &r, lane);
        rnl_am_swap_ends(&m);
        struct rnl_am_endpoint *ep = rnl_am_find(port, m.to, m.to_generation);
        if (ep)
            rnl_am_return_message(ep, rank, &m, AM_EUNREACHABLE, lane == 0, (int)r.index);
    }
}

static void look_at_deaths(struct rnl_am_port *port)
{
    struct rnl_endpoint *ep = port->ep;
    uint32_t seen = ep->deaths_seen, left = 0;
    for (uint32_t rank = 0; rank < ep->size && !rnl_ep_forked(ep); rank++) {
        if (!rnl_peer_is_dead(&ep->peer[rank]) || port->peer[rank].dead)
            continue;
        struct rnl_conn *conn = ep->peer[rank].conn;
        if (conn && conn->dying && !conn->gone) {
            left = 1; /* messages that it sent are still being taken in, and may be replies */
            continue;
        }
        port->peer[rank].dead = 1;
        if (!RNL_BUG(am_request_to_the_dead_forgotten))
            unreached(port, rank, 0);
        if (!rnl_ep_forked(ep))
            unreached(port, rank, 1);
    }
    if (!left)
        port->deaths = seen;
}

/* ---- rejected replies ---- */

static void add(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m, int status, int ours)
{
    struct rnl_am_rejected *r = malloc(sizeof *r);
    if (!r) {
        port->returned_unreported = 1;
        return;
    }
    r->next = NULL;
    r->rank = rank;
    r->ours = (uint8_t)ours;
    memcpy(&r->m, m, offsetof(struct rnl_am_message, args) + (size_t)m->numargs * 4);
    r->m.status = (uint8_t)status;
    *port->rejected_last = r;
    port->rejected_last = &r->next;
    port->rejections++;
}

void rnl_am_reject(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m)
{
    struct rnl_am_message back = *m;
    rnl_am_swap_ends(&back);
    add(port, rank, &back, AM_EREPLYREJECTED, 0);
}

void rnl_am_reject_unreachable(struct rnl_am_port *port, uint32_t rank, const struct rnl_am_message *m)
{
    add(port, rank, m, AM_EUNREACHABLE, 1);
}

/* Sends a rejected reply back to its sender. Returns 0 if there is no room for it now. */
static bool send_returned(struct rnl_am_port *port, const struct rnl_am_rejected *r)
{
    unsigned char head[RNL_AM_HEADER_MAX];
    size_t n = rnl_am_write_reply(head, &r->m);
    struct rnl_message b = {.peer = r->rank, .handler = RNL_AM_ID_REJECTED, .bound = n, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    int status = rnl_begin(port->ep, &b, &s);
    if (status == RNL_NO_ROOM || status == RNL_BUSY)
        return false;
    if (status == 0) {
        (void)!rnl_piece(s, head, n);
        (void)!rnl_end(s);
    }
    return true; /* sent, or its sender is dead and needs no return */
}

static void send_rejected(struct rnl_am_port *port)
{
    struct rnl_am_rejected *r, **at = &port->rejected;
    while ((r = *at) != NULL && !rnl_ep_forked(port->ep)) {
        if (!r->ours && !send_returned(port, r)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        if (!r->next)
            port->rejected_last = at;
        port->rejections--;
        struct rnl_am_endpoint *ep = r->ours ? rnl_am_find(port, r->m.to, r->m.to_generation) : NULL;
        if (ep)
            rnl_am_return_message(ep, r->rank, &r->m, r->m.status, 0, -1);
        free(r);
    }
}

void rnl_am_do_pending(struct rnl_am_port *port)
{
    if (port->deaths != port->ep->deaths_seen)
        look_at_deaths(port);
    if (port->rejected && !rnl_ep_forked(port->ep))
        send_rejected(port);
}
