/* SPDX-License-Identifier: BSD-3-Clause
 *
 * udp_internal.h - what the parts of net/datagram share: peers.c knows who has which address, send.c what goes out,
 * receive.c what comes in, udp.c is the table of the contract. */
#ifndef RNL_NET_DATAGRAM_UDP_INTERNAL_H
#define RNL_NET_DATAGRAM_UDP_INTERNAL_H

#include "base/env.h"
#include "base/error.h"
#include "net/datagram/udp.h"

enum { UDP_OUTS = 64, UDP_IN_BATCH = 16, UDP_PAGE = 4096 };

struct udp_peer {
    struct rnl_socket_addr addr;
    uint64_t incarnation;
    uint32_t at, stride; /* of reserved rooms: where the first begins, and how far they are apart */
    uint32_t bytes;      /* of each reserved room */
    uint16_t rooms;      /* that are reserved */
    uint8_t connected;   /* 0, 1, or 2 = its addresses are in further[] */
    uint8_t zero;
};
static_assert(sizeof(struct udp_peer) == 48, "one for each rank of the job");

struct udp_further { /* an address of a peer that has several */
    struct rnl_socket_addr addr;
    uint32_t rank, path;
};

/* What is committed and not sent yet: out[0 .. outs - 1], in order. The bytes lie in one buffer, which is used from its
 * beginning to its end and from the beginning again once nothing is in it: runs have to be contiguous, and packets stay
 * here only for a short time. */
struct udp_sender {
    unsigned char *buffer;
    uint32_t buffer_bytes, tail;
    uint32_t outs, rooms; /* rooms: reserved ones of all peers; outs + rooms <= UDP_OUTS */
    struct rnl_socket_out out[UDP_OUTS];
    uint32_t out_peer[UDP_OUTS]; /* RNL_PEER_STRANGER: a reply, or to one path */
    uint64_t retry_ns;           /* when to send again; 0 = the host takes everything */
    uint32_t denied;             /* times in a row that the host's queue was full for out[0] */
};

struct udp_buffer {
    struct rnl_socket_in in;
    uint32_t peer, changes; /* the peer of in.from, looked up when u->changes had this value */
    uint8_t aside;          /* in.from is not the active path of that peer */
    uint32_t cursor;        /* bytes that were handed out */
    uint32_t views;         /* that are handed out and not released */
    uint32_t life;          /* counts its uses, so that a token of an earlier use is not accepted */
    uint8_t waits;          /* it is in the queue, since not all of it was handed out */
};

struct udp_receiver {
    unsigned char *memory;
    struct udp_buffer *buffer;
    uint32_t *unused, unused_count;        /* a stack, since the one used last is in the cache */
    struct rnl_socket_in in[UDP_IN_BATCH]; /* the rooms that the socket is offered; it has filled the first `taken` */
    uint32_t offered[UDP_IN_BATCH];        /* the buffers of these rooms */
    uint32_t offers, taken;
    uint32_t *queue, first, count; /* a circle of buffers that are not all handed out */
    uint32_t buffers;
};

struct udp {
    struct rnl_transport t;
    struct rnl_socket *socket;
    struct udp_peer *peer;       /* by rank */
    struct udp_further *further; /* all addresses of the peers that have several */
    uint32_t furthers, further_room;
    uint32_t *slot, slots;       /* 1 + rank, or 1 + ranks + place in further[], by address, open addressing */
    uint32_t connected, changes; /* peers, and how often anything about them changed */
    struct rnl_socket_addr last; /* the address that was looked up last, */
    uint32_t last_peer, last_at; /* whose it was, and the value of `changes` then */
    uint8_t last_aside;
    struct udp_sender send;
    struct udp_receiver receive;
    struct rnl_udp_counts counts;
};

/* Buffers begin on pages (rnl_copy_trips). */
static inline size_t rnl_udp_pages(size_t bytes)
{
    return (bytes + UDP_PAGE - 1) & ~(size_t)(UDP_PAGE - 1);
}

static inline struct udp *udp_of(struct rnl_transport *t)
{
    return (struct udp *)(void *)t;
}

/* ---- peers.c ---- */

/* Returns a connected peer, or NULL with a record of RNL_ERR_RANK. */
struct udp_peer *rnl_udp_find(struct udp *u, uint32_t rank);
/* The peer that has this address, or RNL_PEER_STRANGER. */
uint32_t rnl_udp_who(const struct udp *u, const struct rnl_socket_addr *a);

int rnl_udp_add_peer(struct rnl_transport *, uint32_t peer, const struct rnl_addr *, unsigned n, uint64_t incarnation);
int rnl_udp_remove_peer(struct rnl_transport *, uint32_t peer);
int rnl_udp_set_active_path(struct rnl_transport *, uint32_t peer, unsigned path);
/* The address of a path. 0, RNL_ERR_RANK. */
int rnl_udp_path(struct udp *u, uint32_t rank, unsigned path, struct rnl_socket_addr *out);
bool rnl_udp_is_path_down(struct rnl_transport *, uint32_t peer, unsigned path);
uint32_t rnl_udp_mtu(struct rnl_transport *, uint32_t peer);

/* ---- send.c ---- */

int rnl_udp_send_begin(struct udp *u, uint32_t out_bytes);
void rnl_udp_send_end(struct udp *u);
/* Drops all that is queued or reserved for a peer. */
void rnl_udp_send_forget(struct udp *u, uint32_t rank);

int rnl_udp_reserve(struct rnl_transport *, uint32_t peer, uint32_t bytes, struct rnl_room *, int n);
int rnl_udp_commit(struct rnl_transport *, uint32_t peer, const struct rnl_room *, const uint32_t *used, int n,
                   bool ecn, uint64_t now_ns);
int rnl_udp_commit_on_path(struct rnl_transport *, uint32_t peer, unsigned path, const struct rnl_room *,
                           const uint32_t *used, int n, bool ecn, uint64_t now_ns);
unsigned char *rnl_udp_reserve_one(struct rnl_transport *, uint32_t peer, uint32_t bytes);
void rnl_udp_send_one(struct rnl_transport *, uint32_t peer, const unsigned char *at, uint32_t used, uint64_t now_ns);
int rnl_udp_flush(struct rnl_transport *, uint64_t now_ns);
uint64_t rnl_udp_deadline(struct rnl_transport *);
int rnl_udp_send_on_path(struct rnl_transport *, uint32_t peer, unsigned path, const void *at, uint32_t bytes,
                         uint64_t now_ns);
int rnl_udp_reply(struct rnl_transport *, const struct rnl_view *, const void *at, uint32_t bytes, uint64_t now_ns);

/* ---- receive.c ---- */

int rnl_udp_receive_begin(struct udp *u, uint32_t buffers);
void rnl_udp_receive_end(struct udp *u);
/* The buffer of a view, or NULL if the view was released. */
const struct udp_buffer *rnl_udp_view_buffer(const struct udp *u, const struct rnl_view *v);

int rnl_udp_poll(struct rnl_transport *, struct rnl_view *, int n, uint64_t now_ns);
void rnl_udp_release(struct rnl_transport *, const struct rnl_view *, int n);
int rnl_udp_arm(struct rnl_transport *);
int rnl_udp_fd(struct rnl_transport *);
int rnl_udp_bell(struct rnl_transport *, const _Atomic uint32_t **at, uint32_t *bits);
int rnl_udp_source(struct rnl_transport *, const struct rnl_view *, struct rnl_addr *);

#endif
