/* SPDX-License-Identifier: BSD-3-Clause
 *
 * receive.c - receives packets. A buffer holds one datagram, or a run that the host merged; its packets are handed out
 * where they lie, and the buffer is used again when the last of them is released. When no buffer is left, nothing is
 * received from the socket, which then drops what it cannot hold. */
#include "net/datagram/udp_internal.h"

#include <stdlib.h>

enum { IN_BUFFERS = 64, IN_BUFFERS_MOST = 4096 };

/* Returns the bytes of a buffer, a multiple of a cache line. */
static uint32_t buffer_bytes(const struct udp *u)
{
    return (u->socket->merged_bytes + 63) & ~(uint32_t)63;
}

/* If it fails, rnl_udp_receive_end has to be called as well. */
int rnl_udp_receive_begin(struct udp *u, uint32_t buffers)
{
    struct udp_receiver *r = &u->receive;
    r->buffers = buffers == 0 ? IN_BUFFERS : buffers > IN_BUFFERS_MOST ? IN_BUFFERS_MOST : buffers;
    r->memory =
        aligned_alloc(UDP_PAGE, rnl_udp_pages((size_t)r->buffers * buffer_bytes(u))); /* pages are touched on use */
    r->buffer = calloc(r->buffers, sizeof *r->buffer);
    r->unused = calloc(r->buffers, sizeof *r->unused);
    r->queue = calloc(r->buffers, sizeof *r->queue);
    if (!r->memory || !r->buffer || !r->unused || !r->queue)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u buffers of %u bytes", r->buffers, buffer_bytes(u));
    for (uint32_t i = 0; i < r->buffers; i++) {
        r->buffer[i].in.at = r->memory + (size_t)i * buffer_bytes(u);
        r->buffer[i].in.room = u->socket->merged_bytes;
        r->unused[r->unused_count++] = r->buffers - 1 - i;
    }
    return 0;
}

void rnl_udp_receive_end(struct udp *u)
{
    struct udp_receiver *r = &u->receive;
    free(r->memory);
    free(r->buffer);
    free(r->unused);
    free(r->queue);
}

/* Returns the token of a view: the life of its buffer, and the number of the buffer. */
static uint64_t token_of(const struct udp_receiver *r, const struct udp_buffer *b)
{
    return (uint64_t)b->life << 32 | (uint64_t)(b - r->buffer);
}

const struct udp_buffer *rnl_udp_view_buffer(const struct udp *u, const struct rnl_view *v)
{
    uint32_t i = (uint32_t)v->token;
    const struct udp_buffer *b = i < u->receive.buffers ? &u->receive.buffer[i] : NULL;
    return b && b->views && b->life == (uint32_t)(v->token >> 32) ? b : NULL;
}

static void offer(struct udp_receiver *r, uint32_t at, uint32_t k)
{
    r->offered[at] = k;
    r->in[at] = r->buffer[k].in;
}

/* Replaces offered buffers that were filled by unused ones, as far as there are any. */
static void offer_others(struct udp_receiver *r)
{
    for (; r->taken; r->taken--) {
        uint32_t i = r->taken - 1;
        if (r->unused_count)
            offer(r, i, r->unused[--r->unused_count]);
        else if (i < --r->offers)
            offer(r, i, r->offered[r->offers]);
    }
    while (r->offers < UDP_IN_BATCH && r->unused_count)
        offer(r, r->offers++, r->unused[--r->unused_count]);
}

static struct udp_buffer *fill(struct udp *u, uint32_t i)
{
    struct udp_receiver *r = &u->receive;
    struct udp_buffer *b = &r->buffer[r->offered[i]];
    b->in = r->in[i];
    b->changes = u->changes - 1; /* not looked up yet */
    b->cursor = 0;
    b->waits = 1;
    b->life++;
    return b;
}

/* Receives from the socket, as far as there are buffers. Returns how many were filled, or a negative status. If it is
 * one buffer with a single packet, the buffer is *alone and not queued. *empty = 1: the socket has no more for now. */
static int fetch(struct udp *u, int *empty, struct udp_buffer **alone)
{
    struct udp_receiver *r = &u->receive;
    if (r->taken || r->offers < UDP_IN_BATCH)
        offer_others(r);
    int n = (int)r->offers;
    if (n == 0)
        return 0;
    int got = u->socket->ops->recv(u->socket, r->in, n), runs = 0;
    *empty = 1;
    if (got <= 0)
        return got;
    r->taken = (uint32_t)got;
    if (RNL_LIKELY(got == 1 && n > 1 && !r->in[0].segment)) {
        *alone = fill(u, 0);
        return 1;
    }
    for (int i = 0; i < got; i++) {
        runs |= r->in[i].segment;
        uint32_t k = r->offered[i], at = r->first + r->count++;
        (void)fill(u, (uint32_t)i);
        r->queue[at < r->buffers ? at : at - r->buffers] = k;
    }
    *empty = got < n && !runs;
    return got;
}

/* Makes the view of the next packet of a buffer. true = there are more, false = it was the last. */
static bool next_packet(struct udp *u, struct udp_buffer *b, struct rnl_view *v)
{
    static const uint16_t flags_of[] = {
        [RNL_ECN_ECT1] = RNL_VIEW_ECT, [RNL_ECN_ECT0] = RNL_VIEW_ECT, [RNL_ECN_CE] = RNL_VIEW_CE};
    uint32_t left = b->in.bytes - b->cursor;
    uint32_t bytes = b->in.segment && b->in.segment < left ? b->in.segment : left;
    int last = bytes == left;
    if (b->changes != u->changes) { /* the sender is looked up again, since its peer may have been removed meanwhile */
        b->changes = u->changes;
        if (u->last_at != u->changes || !rnl_socket_addr_equal(&u->last, &b->in.from)) {
            u->last = b->in.from;
            u->last_at = u->changes;
            u->last_peer = rnl_udp_who(u, &u->last);
            u->last_aside =
                u->last_peer != RNL_PEER_STRANGER && !rnl_socket_addr_equal(&u->last, &u->peer[u->last_peer].addr);
        }
        b->peer = u->last_peer;
        b->aside = u->last_aside;
    }
    v->at = (const unsigned char *)b->in.at + b->cursor;
    v->bytes = bytes;
    v->peer = b->peer;
    v->flags = flags_of[b->in.ecn & 3] | (b->aside ? RNL_VIEW_ASIDE : 0u);
    v->zero = 0;
    v->token = token_of(&u->receive, b);
    if (last && b->in.cut) {
        v->flags |= RNL_VIEW_CUT;
        u->counts.cut++;
    }
    b->cursor += bytes;
    b->views++;
    u->counts.received++;
    u->counts.from_strangers += b->peer == RNL_PEER_STRANGER;
    return !last;
}

int rnl_udp_poll(struct rnl_transport *t, struct rnl_view *v, int n, uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    struct udp_receiver *r = &u->receive;
    int got = 0, empty = 0;
    (void)now_ns;
    while (got < n) {
        struct udp_buffer *alone = NULL;
        if (r->count == 0 && (empty || fetch(u, &empty, &alone) <= 0))
            break;
        if (RNL_LIKELY(alone)) {
            (void)next_packet(u, alone, &v[got++]);
            alone->waits = 0;
            break;
        }
        struct udp_buffer *b = &r->buffer[r->queue[r->first]];
        if (!next_packet(u, b, &v[got++])) {
            b->waits = 0;
            r->first = r->first + 1 < r->buffers ? r->first + 1 : 0;
            r->count--;
        }
    }
    return got;
}

void rnl_udp_release(struct rnl_transport *t, const struct rnl_view *v, int n)
{
    struct udp *u = udp_of(t);
    struct udp_receiver *r = &u->receive;
    for (int i = 0; i < n; i++) {
        if (!rnl_udp_view_buffer(u, &v[i]))
            continue; /* released before */
        struct udp_buffer *b = &r->buffer[(uint32_t)v[i].token];
        if (--b->views == 0 && !b->waits)
            r->unused[r->unused_count++] = (uint32_t)(b - r->buffer);
    }
}

int rnl_udp_arm(struct rnl_transport *t)
{
    struct udp *u = udp_of(t);
    return u->receive.count ? 1 : u->socket->ops->arm(u->socket);
}

int rnl_udp_fd(struct rnl_transport *t)
{
    struct udp *u = udp_of(t);
    return u->socket->ops->fd(u->socket);
}

int rnl_udp_bell(struct rnl_transport *t, const _Atomic uint32_t **at, uint32_t *bits)
{
    struct udp *u = udp_of(t);
    if (u->receive.count)
        return 1;
    return u->socket->ops->bell ? u->socket->ops->bell(u->socket, at, bits) : RNL_ERR_UNSUPPORTED;
}

int rnl_udp_source(struct rnl_transport *t, const struct rnl_view *v, struct rnl_addr *out)
{
    const struct udp_buffer *b = rnl_udp_view_buffer(udp_of(t), v);
    if (!b)
        return rnl_fail(RNL_ERR_ARG, "the source of a packet that was released");
    rnl_udp_addr_of(&b->in.from, out);
    return 0;
}
