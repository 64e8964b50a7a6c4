/* SPDX-License-Identifier: BSD-3-Clause
 *
 * in.h - what the parts of transport/udp share: peers.c knows who has which address, send.c what goes out, receive.c
 * what comes in, udp.c is the table of the contract. */
#ifndef RNL_TRANSPORT_UDP_IN_H
#define RNL_TRANSPORT_UDP_IN_H

#include "base/env.h"
#include "base/error.h"
#include "transport/udp/udp.h"

enum { UDP_OUTS = 64, UDP_IN_BATCH = 16, UDP_NOTICES = 32, UDP_WAYS = 4 /* addresses of a peer */, UDP_PAGE = 4096 };

struct udp_peer {
    struct rnl_socket_addr addr;
    uint64_t incarnation;
    uint32_t at, stride; /* rooms that are reserved: where the first begins, how far apart */
    uint32_t bytes;      /* ... of each */
    uint16_t rooms;
    uint8_t connected, ecn; /* connected: 2 = its addresses are in also[] */
};
static_assert(sizeof(struct udp_peer) == 48, "one for each rank of the job");

struct udp_also { /* an address of a peer that has several */
    struct rnl_socket_addr addr;
    uint32_t rank, way;
};

/* What is committed and has not gone: out[0 .. outs - 1], in order. Their bytes lie in one buffer, which is used from
 * its begin to its end and begins anew once nothing is in it: runs have to be contiguous, and what goes soon needs no
 * better keeping. */
struct udp_sender {
    unsigned char *buffer;
    uint32_t buffer_bytes, tail;
    uint32_t outs, rooms; /* rooms: reserved, of all peers; outs + rooms <= UDP_OUTS */
    struct rnl_socket_out out[UDP_OUTS];
    uint32_t out_peer[UDP_OUTS]; /* RNL_PEER_STRANGER: an answer */
    uint64_t retry_ns;           /* 0 = the host takes all */
    uint32_t denied;             /* times that its queue was full for the first of them */
};

struct udp_buffer {
    struct rnl_socket_in in;
    uint32_t peer, changes; /* who that is, when u->changes was this */
    uint8_t aside;          /* ... and packets to it go to another of its addresses */
    uint32_t cursor;        /* what of it was handed out */
    uint32_t views;         /* handed out, not released */
    uint32_t life;          /* of views: a token of an earlier one is not taken */
    uint8_t waits;          /* in the queue: not all handed out */
};

struct udp_receiver {
    unsigned char *memory;
    struct udp_buffer *buffer;
    uint32_t *unused, unused_count;        /* a stack: the one used last is warm */
    struct rnl_socket_in in[UDP_IN_BATCH]; /* offered to the socket, the first `taken` of them with success */
    uint32_t offered[UDP_IN_BATCH];        /* ... these */
    uint32_t offers, taken;
    uint32_t *queue, first, count; /* in a circle: arrived, not all handed out */
    uint32_t buffers;
};

struct udp {
    struct rnl_transport t;
    struct rnl_socket *socket;
    struct udp_peer *peer; /* by rank */
    struct udp_also *also; /* of peers that have several addresses: all of them */
    uint32_t alsos, also_room;
    uint32_t *slot, slots;       /* 1 + rank, or 1 + ranks + place in also[], by address, open addressing */
    uint32_t connected, changes; /* peers; how often that changed */
    struct rnl_socket_addr last; /* address that was looked up */
    uint32_t last_peer, last_at; /* ... whose it was, when `changes` was this */
    uint8_t last_aside;
    struct udp_sender send;
    struct udp_receiver receive;
    struct rnl_notice notice[UDP_NOTICES]; /* in a circle */
    uint32_t notice_first, notices;
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

/* A connected peer, or RNL_ERR_RANK. */
int rnl_udp_find(struct udp *u, uint32_t rank, struct udp_peer **out);
/* Who has that address; RNL_PEER_STRANGER. */
uint32_t rnl_udp_who(const struct udp *u, const struct rnl_socket_addr *a);
void rnl_udp_note(struct udp *u, struct rnl_notice n);

int rnl_udp_connect(struct rnl_transport *, uint32_t peer, const struct rnl_addr *, uint64_t incarnation);
int rnl_udp_disconnect(struct rnl_transport *, uint32_t peer);
int rnl_udp_also(struct rnl_transport *, uint32_t peer, const struct rnl_addr *, unsigned *way);
int rnl_udp_aim(struct rnl_transport *, uint32_t peer, unsigned way);
/* Where that is: 0, RNL_ERR_RANK. */
int rnl_udp_way(struct udp *u, uint32_t rank, unsigned way, struct rnl_socket_addr *out);
int rnl_udp_mark(struct rnl_transport *, uint32_t peer, int on);
int rnl_udp_notice(struct rnl_transport *, struct rnl_notice *);
uint32_t rnl_udp_mtu(struct rnl_transport *, uint32_t peer);

/* ---- send.c ---- */

int rnl_udp_send_begin(struct udp *u, uint32_t out_bytes);
void rnl_udp_send_end(struct udp *u);
/* All that is queued or reserved for a peer is given up. */
void rnl_udp_send_forget(struct udp *u, uint32_t rank);

int rnl_udp_reserve(struct rnl_transport *, uint32_t peer, unsigned lane, uint32_t bytes, struct rnl_room *, int n);
int rnl_udp_commit(struct rnl_transport *, uint32_t peer, unsigned lane, const struct rnl_room *, const uint32_t *used,
                   int n, uint64_t now_ns);
int rnl_udp_flush(struct rnl_transport *, uint64_t now_ns);
uint64_t rnl_udp_deadline(struct rnl_transport *);
int rnl_udp_toward(struct rnl_transport *, uint32_t peer, unsigned way, const void *at, uint32_t bytes,
                   uint64_t now_ns);
int rnl_udp_answer(struct rnl_transport *, const struct rnl_view *, const void *at, uint32_t bytes, uint64_t now_ns);
unsigned char *rnl_udp_lone(struct rnl_transport *, uint32_t peer, uint32_t bytes);
void rnl_udp_go(struct rnl_transport *, uint32_t peer, const unsigned char *at, uint32_t used, uint64_t now_ns);

/* ---- receive.c ---- */

int rnl_udp_receive_begin(struct udp *u, uint32_t buffers);
void rnl_udp_receive_end(struct udp *u);
/* The buffer of a view that is not released; NULL. */
const struct udp_buffer *rnl_udp_view_buffer(const struct udp *u, const struct rnl_view *v);

int rnl_udp_poll(struct rnl_transport *, struct rnl_view *, int n, uint64_t now_ns);
void rnl_udp_release(struct rnl_transport *, const struct rnl_view *, int n);
int rnl_udp_arm(struct rnl_transport *);
int rnl_udp_fd(struct rnl_transport *);
int rnl_udp_bell(struct rnl_transport *, const _Atomic uint32_t **at, uint32_t *bits);
int rnl_udp_source(struct rnl_transport *, const struct rnl_view *, struct rnl_addr *);
uint32_t rnl_udp_holds(struct rnl_transport *, uint32_t bytes);

#endif
