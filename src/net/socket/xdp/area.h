/* SPDX-License-Identifier: BSD-3-Clause
 *
 * area.h - the memory of one queue of an interface, which the endpoints of a host share, and their rings.
 *
 * A queue has one pair of rings in which chunks go to the kernel to be filled and come back from it when they were
 * sent; each endpoint has a socket with two rings of its own, for what it sends and what came for it. Who opened the
 * queue (queue.c) keeps no part in that, so the endpoints serve the pair themselves, in turns, under a lock of the
 * area:
 *
 *     page 0                 struct rnl_xdp_area, then a byte for each chunk to send from: 1 = under way
 *     rnl_xdp_area.begin     chunks to send from, `out_chunks` of each endpoint, then chunks to receive into
 *
 * All of it is written by all endpoints, so nothing here is believed: a wrong index costs packets, which the flows send
 * again, and an endpoint that finds one goes back to the kernel's socket. No address in it is followed. */
#ifndef RNL_NET_SOCKET_XDP_AREA_H
#define RNL_NET_SOCKET_XDP_AREA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_XDP_ENDPOINTS_MAX = 64,              /* of one queue */
    RNL_XDP_OUT = 256,                       /* chunks that an endpoint sends from; a power of two */
    RNL_XDP_IN = 512,                        /* frames that wait for an endpoint; a power of two */
    RNL_XDP_CHUNK = 2048,                    /* bytes of a chunk; a power of two, and a page is a multiple of it */
    RNL_XDP_FRAME_MOST = RNL_XDP_CHUNK - 256 /* the kernel keeps 256 bytes in front of what it receives */
};
#define RNL_XDP_MAGIC 0x31706478726e6c21u

enum rnl_xdp_mode { RNL_XDP_ANY, RNL_XDP_GENERIC, RNL_XDP_COPY, RNL_XDP_ZERO_COPY };

/* Written once by who opens the queue, but for the lock and the bytes behind it. */
struct rnl_xdp_area {
    uint64_t magic;
    uint32_t begin, bytes;     /* of the chunks */
    uint32_t interface, queue; /* index of the interface */
    uint32_t mode;             /* enum rnl_xdp_mode, and not ANY */
    uint32_t endpoints;
    uint16_t port[RNL_XDP_ENDPOINTS_MAX]; /* of each endpoint's UDP socket, in the order of the host */
    _Alignas(64) _Atomic uint32_t lock;   /* of both rings of the queue: 0, or who holds it (area.c) */
    _Alignas(64) _Atomic uint8_t under_way[];
};
_Static_assert(offsetof(struct rnl_xdp_area, lock) == 192 && sizeof(struct rnl_xdp_area) == 256, "processes share it");

struct rnl_xdp_ring {
    _Atomic uint32_t *producer, *consumer, *flags;
    void *entries, *map;
    size_t mapped;
    uint32_t entry_count;
    uint32_t mine; /* this side's index; the other side's is read where it matters */
};

struct rnl_xdp_rings { /* an endpoint's view of all of it */
    int fd;            /* the AF_XDP socket */
    struct rnl_xdp_area *area;
    uint8_t *chunks;
    size_t mapped;
    uint32_t endpoint, endpoints;
    struct rnl_xdp_ring fill, done, in, out;
    uint32_t next;                          /* chunk to send from */
    uint32_t free_count, lock_misses, turn; /* turn: what the lock holds while it is ours */
    uint64_t freed[RNL_XDP_IN];             /* chunks to give back to the kernel */
};

static inline uint32_t rnl_xdp_chunks(uint32_t endpoints)
{
    return endpoints * (RNL_XDP_OUT + RNL_XDP_IN);
}

/* The smallest power of two that is not below n. */
static inline uint32_t rnl_xdp_power(uint32_t n)
{
    uint32_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* Where the chunks begin, and the bytes of the whole memory. */
uint32_t rnl_xdp_area_begin(uint32_t endpoints);
uint64_t rnl_xdp_area_bytes(uint32_t endpoints);

/* Maps the memory and the rings of a bound socket for the endpoint with this port. Both descriptors stay the caller's.
 * 0, RNL_ERR_ARG (they are not what they should be), RNL_ERR_SYSTEM. */
int rnl_xdp_rings_map(struct rnl_xdp_rings *r, int socket, int memory, uint16_t port);
void rnl_xdp_rings_unmap(struct rnl_xdp_rings *r);
/* Unmaps all but the page whose word a bell may still read, which reads as 0 from then on. */
void rnl_xdp_rings_leave(struct rnl_xdp_rings *r);

/* A chunk to compose a frame in, or NULL: all are under way. */
uint8_t *rnl_xdp_rings_room(struct rnl_xdp_rings *r);
/* Posts that chunk; the kernel takes it after rnl_xdp_rings_kick. */
void rnl_xdp_rings_post(struct rnl_xdp_rings *r, uint32_t bytes);
/* 0, or the errno for which the kernel takes nothing any more. */
int rnl_xdp_rings_kick(struct rnl_xdp_rings *r);
/* The next frame that came, or NULL: there is none, or *broken: what is there cannot be. */
const uint8_t *rnl_xdp_rings_next(struct rnl_xdp_rings *r, uint32_t *bytes, bool *broken);
/* Takes that frame out; its chunk goes back to the kernel with one of the next calls, or with `settle`. */
void rnl_xdp_rings_take(struct rnl_xdp_rings *r);
/* Gives chunks back. `all`: however few they are. */
void rnl_xdp_rings_settle(struct rnl_xdp_rings *r, bool all);

/* True: the kernel has no chunk to receive into. */
static inline bool rnl_xdp_rings_dry(const struct rnl_xdp_rings *r)
{
    return atomic_load_explicit(r->fill.producer, memory_order_relaxed) ==
           atomic_load_explicit(r->fill.consumer, memory_order_relaxed);
}

static inline bool rnl_xdp_rings_silent(const struct rnl_xdp_rings *r)
{
    return atomic_load_explicit(r->in.producer, memory_order_relaxed) == r->in.mine;
}

#endif
