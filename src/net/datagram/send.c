/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send.c - sends packets. They are composed in one buffer, so that those of one length to one peer lie behind one
 * another and are sent as one run: most of the cost is that of the kernel's network code, which a run pays once. */
#include "base/bug.h"
#include "net/datagram/udp_internal.h"
#include "net/wire/packet.h"

#include <stdlib.h>

enum {
    OUT_BYTES = 256 << 10,
    RETRY_NS = 20000,
    DENIED_MOST = 16 /* times that the host's queue may be full for one datagram, before it is dropped. A virtual
                        interface always reports this for one too long for what is behind it, and all others wait */
};

static uint32_t round8(uint32_t bytes)
{
    return (bytes + 7) & ~(uint32_t)7;
}

int rnl_udp_send_begin(struct udp *u, uint32_t out_bytes)
{
    uint32_t least = round8(u->socket->datagram_max);
    if (u->socket->segments_max > 1 && u->socket->segment_bytes > least)
        least = round8(u->socket->segment_bytes);
    uint32_t bytes = out_bytes ? round8(out_bytes) : OUT_BYTES;
    if (bytes < least)
        bytes = least;
    u->send.buffer = aligned_alloc(UDP_PAGE, rnl_udp_pages(bytes));
    if (!u->send.buffer)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u bytes of packets", bytes);
    u->send.buffer_bytes = bytes;
    return 0;
}

void rnl_udp_send_end(struct udp *u)
{
    free(u->send.buffer);
}

/* ---- to the socket ---- */

static void rewind(struct udp_sender *s)
{
    if (s->outs == 0 && s->rooms == 0)
        s->tail = 0;
}

static uint32_t packets_of(const struct rnl_socket_out *o)
{
    return o->segment ? (o->bytes + o->segment - 1) / o->segment : 1;
}

/* A size probe must not be sent in a run, because bridges and virtual interfaces let runs pass whose datagrams would be
 * too long for them alone. */
static bool goes_alone(const unsigned char *at)
{
    return at[0] >> 4 == RNL_PACKET_PROBE;
}

/* Sends as much as the host takes now. */
static void push(struct udp *u)
{
    struct udp_sender *s = &u->send;
    uint32_t done = 0;
    s->retry_ns = 0;
    while (done < s->outs) {
        struct rnl_socket_result r = {0, 0};
        int went = u->socket->ops->send(u->socket, s->out + done, (int)(s->outs - done), &r);
        for (int i = 0; i < went; i++)
            u->counts.sent += packets_of(&s->out[done + (uint32_t)i]);
        done += (uint32_t)went;
        u->counts.calls += (uint32_t)went;
        if (done == s->outs)
            break;
        if (went > 0)
            s->denied = 0;
        if (r.stop == RNL_SOCKET_NO_BUFFERS && s->denied++ >= (goes_alone(s->out[done].at) ? 1 : DENIED_MOST)) {
            s->denied = 0;
            u->counts.refused += packets_of(&s->out[done++]); /* it counts as lost, as if a router had dropped it */
            continue;
        }
        if (r.stop == RNL_SOCKET_FULL || r.stop == RNL_SOCKET_NO_BUFFERS) {
            u->counts.full++;
            s->retry_ns = 1; /* at once; rnl_udp_flush sets a later time */
            break;
        }
        u->counts.refused += packets_of(&s->out[done++]); /* the host will never take it: it counts as lost */
    }
    s->outs -= done;
    memmove(s->out, s->out + done, s->outs * sizeof *s->out);
    memmove(s->out_peer, s->out_peer + done, s->outs * sizeof *s->out_peer);
    rewind(s);
}

int rnl_udp_flush(struct rnl_transport *t, uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    if (u->send.outs == 0)
        return 0;
    push(u);
    if (u->send.retry_ns)
        u->send.retry_ns = now_ns + RETRY_NS;
    return (int)u->send.outs;
}

uint64_t rnl_udp_deadline(struct rnl_transport *t)
{
    const struct udp_sender *s = &udp_of(t)->send;
    return s->outs ? s->retry_ns : UINT64_MAX;
}

/* ---- composing ---- */

/* Makes room for up to n packets of `bytes` at the tail of the buffer. Returns for how many there is room. */
static int make_room(struct udp *u, uint32_t bytes, int n)
{
    struct udp_sender *s = &u->send;
    uint32_t each = round8(bytes ? bytes : 1);
    for (int tries = 0;; tries++) {
        uint32_t free_outs = UDP_OUTS - s->outs - s->rooms;
        if (RNL_LIKELY((uint32_t)n <= free_outs && (uint64_t)each * (uint32_t)n <= s->buffer_bytes - s->tail))
            return n;
        uint32_t room = (s->buffer_bytes - s->tail) / each;
        if (room > free_outs)
            room = free_outs;
        if (room > 0 || tries == 1)
            return room < (uint32_t)n ? (int)room : n;
        push(u);
    }
}

int rnl_udp_reserve(struct rnl_transport *t, uint32_t rank, uint32_t bytes, struct rnl_room *room, int n)
{
    struct udp *u = udp_of(t);
    struct udp_sender *s = &u->send;
    struct udp_peer *p = rnl_udp_find(u, rank);
    if (!p)
        return RNL_ERR_RANK;
    if (n < 1)
        return rnl_fail(RNL_ERR_ARG, "room for %d packets: ask for at least 1", n);
    if (bytes > u->socket->datagram_max)
        return rnl_fail(RNL_ERR_TOO_LONG, "a packet of %u bytes: this host sends %u at most", bytes,
                        u->socket->datagram_max);
    if (p->rooms)
        return rnl_fail(RNL_BUSY, "rooms for rank %u are not committed yet", rank);
    int got = make_room(u, bytes, n);
    p->at = s->tail;
    p->stride = round8(bytes ? bytes : 1);
    p->bytes = bytes;
    p->rooms = (uint16_t)got;
    for (int i = 0; i < got; i++)
        room[i] = (struct rnl_room){s->buffer + s->tail + (uint32_t)i * p->stride, bytes, 0};
    s->tail += (uint32_t)got * p->stride;
    s->rooms += (uint32_t)got;
    return got;
}

/* true = `bytes` at `at` can be one more packet of the run that is queued last: all packets of a run but the last have
 * one length, and nothing that is used lies between the two. `own` as in queue(). */
static bool joins(const struct udp *u, uint32_t rank, const struct rnl_socket_addr *to, const unsigned char *at,
                  uint32_t bytes, uint8_t ecn, int own)
{
    const struct udp_sender *s = &u->send;
    if (s->outs == 0 || s->out_peer[s->outs - 1] != rank || u->socket->segments_max < 2 || bytes == 0)
        return false;
    const struct rnl_socket_out *o = &s->out[s->outs - 1];
    if (goes_alone(o->at) || goes_alone(at))
        return false;
    uint32_t segment = o->segment ? o->segment : o->bytes;
    const unsigned char *end = (const unsigned char *)o->at + o->bytes;
    return o->ecn == ecn && rnl_socket_addr_equal(&o->to, to) && segment <= UINT16_MAX && bytes <= segment &&
           o->bytes % segment == 0 && o->bytes / segment < u->socket->segments_max &&
           o->bytes + bytes <= u->socket->segment_bytes && end <= at && (own || at - end < 8);
}

/* Queues one packet. `own` says that only rooms of this commit lie between it and the packet before. */
static void queue(struct udp *u, uint32_t rank, const struct rnl_socket_addr *to, unsigned char *at, uint32_t bytes,
                  uint8_t ecn, int own)
{
    struct udp_sender *s = &u->send;
    if (joins(u, rank, to, at, bytes, ecn, own)) {
        struct rnl_socket_out *o = &s->out[s->outs - 1];
        unsigned char *end = (unsigned char *)(uintptr_t)o->at + o->bytes;
        if (end != at)
            memmove(end, at, bytes);
        if (o->segment == 0)
            o->segment = (uint16_t)o->bytes;
        o->bytes += bytes;
        return;
    }
    s->out_peer[s->outs] = rank;
    struct rnl_socket_out *o = &s->out[s->outs++];
    o->to = *to;
    o->at = at;
    o->bytes = bytes;
    o->segment = 0;
    o->ecn = ecn;
}

static int commit_to(struct udp *u, uint32_t rank, const struct rnl_socket_addr *to, const struct rnl_room *room,
                     const uint32_t *used, int n, bool ecn)
{
    struct udp_sender *s = &u->send;
    struct udp_peer *p = &u->peer[rank];
    int went = 0;
    if (n != p->rooms || n == 0)
        return rnl_fail(RNL_ERR_ARG, "a commit of %d rooms to rank %u, where %u are reserved", n, rank, p->rooms);
    for (int i = 0; i < n; i++)
        if (used[i] > p->bytes)
            return rnl_fail(RNL_ERR_ARG, "%u bytes committed in a room of %u", used[i], p->bytes);
    uint32_t end = p->at + p->rooms * p->stride, last = p->at;
    const uint8_t mark = ecn && u->socket->has_ecn ? RNL_ECN_ECT0 : RNL_ECN_NOT;
    s->rooms -= p->rooms;
    p->rooms = 0;
    for (int i = 0; i < n; i++) {
        if (used[i] == 0)
            continue;
        queue(u, rank, to, room[i].at, used[i], mark, went > 0);
        const struct rnl_socket_out *o = &s->out[s->outs - 1];
        last = (uint32_t)((const unsigned char *)o->at + o->bytes - s->buffer);
        went++;
    }
    if (end == s->tail) /* the room behind the last packet was not needed */
        s->tail = round8(last);
    rewind(s);
    return went;
}

int rnl_udp_commit(struct rnl_transport *t, uint32_t rank, const struct rnl_room *room, const uint32_t *used, int n,
                   bool ecn, uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    const struct udp_peer *p = rnl_udp_find(u, rank);
    (void)now_ns;
    return p ? commit_to(u, rank, &p->addr, room, used, n, ecn) : RNL_ERR_RANK;
}

int rnl_udp_commit_on_path(struct rnl_transport *t, uint32_t rank, unsigned path, const struct rnl_room *room,
                           const uint32_t *used, int n, bool ecn, uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr to;
    int status = rnl_udp_path(u, rank, path, &to);
    (void)now_ns;
    return status < 0 ? status : commit_to(u, rank, &to, room, used, n, ecn);
}

/* The fast path: does in one step what reserve, commit and flush do with a packet when it is the only one. */
unsigned char *rnl_udp_reserve_one(struct rnl_transport *t, uint32_t rank, uint32_t bytes)
{
    struct udp *u = udp_of(t);
    if ((u->send.outs | u->send.rooms) != 0 || rank >= t->env->size || !u->peer[rank].connected ||
        bytes > u->socket->datagram_max)
        return NULL;
    return u->send.buffer;
}

void rnl_udp_send_one(struct rnl_transport *t, uint32_t rank, const unsigned char *at, uint32_t used, uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    struct udp_sender *s = &u->send;
    struct rnl_socket_result r;
    s->out[0] = (struct rnl_socket_out){.to = u->peer[rank].addr, .at = at, .bytes = used};
    s->retry_ns = 0;
    if (RNL_LIKELY(u->socket->ops->send(u->socket, s->out, 1, &r) == 1)) {
        u->counts.sent++;
        u->counts.calls++;
        return;
    }
    s->out_peer[0] = rank;
    if (r.stop == RNL_SOCKET_FULL || r.stop == RNL_SOCKET_NO_BUFFERS) {
        u->counts.full++;
        s->retry_ns = now_ns + RETRY_NS;
        s->outs = 1;
        s->tail = round8(used);
        return;
    }
    u->counts.refused++;
}

/* Queues a copy of one packet to this address. Returns true, or false = no room. */
static bool send_alone(struct udp *u, const struct rnl_socket_addr *to, const void *at, uint32_t bytes)
{
    struct udp_sender *s = &u->send;
    if (make_room(u, bytes, 1) == 0)
        return false;
    memcpy(s->buffer + s->tail, at, bytes);
    queue(u, RNL_PEER_STRANGER, to, s->buffer + s->tail, bytes, RNL_ECN_NOT, 0);
    s->tail = round8((uint32_t)((const unsigned char *)s->out[s->outs - 1].at + s->out[s->outs - 1].bytes - s->buffer));
    return true;
}

int rnl_udp_send_on_path(struct rnl_transport *t, uint32_t rank, unsigned path, const void *at, uint32_t bytes,
                         uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    struct rnl_socket_addr to;
    int status = rnl_udp_path(u, rank, path, &to);
    (void)now_ns;
    if (status < 0)
        return status;
    if (bytes > u->socket->datagram_max)
        return rnl_fail(RNL_ERR_TOO_LONG, "a packet of %u bytes: this host sends %u at most", bytes,
                        u->socket->datagram_max);
    return send_alone(u, &to, at, bytes);
}

int rnl_udp_reply(struct rnl_transport *t, const struct rnl_view *v, const void *at, uint32_t bytes, uint64_t now_ns)
{
    struct udp *u = udp_of(t);
    const struct udp_buffer *b = rnl_udp_view_buffer(u, v);
    (void)now_ns;
    if (!b)
        return rnl_fail(RNL_ERR_ARG, "a reply to a packet that was released");
    if ((bytes > v->bytes && !RNL_BUG(udp_reply_amplifies)) || bytes > u->socket->datagram_max)
        return rnl_fail(RNL_ERR_TOO_LONG, "%u bytes as the reply to %u: a reply is never longer", bytes, v->bytes);
    return send_alone(u, &b->in.from, at, bytes);
}

void rnl_udp_send_forget(struct udp *u, uint32_t rank)
{
    struct udp_sender *s = &u->send;
    uint32_t kept = 0;
    s->rooms -= u->peer[rank].rooms;
    for (uint32_t i = 0; i < s->outs; i++) {
        if (s->out_peer[i] == rank)
            continue;
        s->out[kept] = s->out[i];
        s->out_peer[kept++] = s->out_peer[i];
    }
    s->outs = kept;
    rewind(s);
}
