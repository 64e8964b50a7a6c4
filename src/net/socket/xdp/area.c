/* SPDX-License-Identifier: BSD-3-Clause
 *
 * area.c - maps rings, and moves chunks through them. The rings' indices are shared with the kernel, which stores its
 * own with release and reads ours with acquire; those of the two rings that endpoints share are read under the lock. */
#include "net/socket/xdp/area.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"

enum {
    PAGE = 4096,
    BATCH = 32,              /* chunks that are given back together */
    KICKS = 16,              /* calls for one batch: the kernel may take 32 frames by one */
    LOCK_MISSES = 64,        /* attempts between two looks at the clock, while another endpoint holds the lock */
    LOCK_STALE_NS = 20000000 /* a lock that nobody gave back for so long: its holder is dead or stopped */
};

uint32_t rnl_xdp_area_begin(uint32_t endpoints)
{
    const uint32_t head = (uint32_t)sizeof(struct rnl_xdp_area) + endpoints * RNL_XDP_OUT;
    return (head + PAGE - 1) / PAGE * PAGE;
}

uint64_t rnl_xdp_area_bytes(uint32_t endpoints)
{
    return rnl_xdp_area_begin(endpoints) + (uint64_t)rnl_xdp_chunks(endpoints) * RNL_XDP_CHUNK;
}

/* ---- mapping ---- */

static int map_ring(struct rnl_xdp_ring *r, int fd, const struct xdp_ring_offset *o, uint64_t at, uint32_t entries,
                    size_t entry)
{
    r->mapped = o->desc + entries * entry;
    r->map = mmap(NULL, r->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
    if (r->map == MAP_FAILED) {
        const int error = errno;
        r->map = NULL;
        if (error == EBUSY) /* who has not bound the socket may map them since 6.4 */
            return rnl_fail(RNL_ERR_UNSUPPORTED,
                            "this kernel is too old for AF_XDP sockets that are passed on: it takes "
                            "Linux 6.4");
        return rnl_fail_errno(RNL_ERR_SYSTEM, error, "a ring of an AF_XDP socket cannot be mapped");
    }
    (void)madvise(r->map, r->mapped, MADV_DONTFORK);
    uint8_t *m = r->map;
    r->producer = (void *)(m + o->producer);
    r->consumer = (void *)(m + o->consumer);
    r->flags = (void *)(m + o->flags);
    r->entries = m + o->desc;
    r->entry_count = entries;
    return 0;
}

static int map_rings(struct rnl_xdp_rings *r)
{
    struct xdp_mmap_offsets o;
    socklen_t len = sizeof o;
    if (getsockopt(r->fd, SOL_XDP, XDP_MMAP_OFFSETS, &o, &len) < 0 || len != sizeof o)
        return rnl_fail_errno(RNL_ERR_ARG, errno, "descriptor %d is not an AF_XDP socket", r->fd);
    int status = map_ring(&r->fill, r->fd, &o.fr, XDP_UMEM_PGOFF_FILL_RING, rnl_xdp_power(r->endpoints * RNL_XDP_IN),
                          sizeof(uint64_t));
    if (status == 0)
        status = map_ring(&r->done, r->fd, &o.cr, XDP_UMEM_PGOFF_COMPLETION_RING,
                          rnl_xdp_power(r->endpoints * RNL_XDP_OUT), sizeof(uint64_t));
    if (status == 0)
        status = map_ring(&r->in, r->fd, &o.rx, XDP_PGOFF_RX_RING, RNL_XDP_IN, sizeof(struct xdp_desc));
    if (status == 0)
        status = map_ring(&r->out, r->fd, &o.tx, XDP_PGOFF_TX_RING, RNL_XDP_OUT, sizeof(struct xdp_desc));
    if (status == 0) {
        r->in.mine = atomic_load_explicit(r->in.consumer, memory_order_relaxed);
        r->out.mine = atomic_load_explicit(r->out.producer, memory_order_relaxed);
    }
    return status;
}

int rnl_xdp_rings_map(struct rnl_xdp_rings *r, int socket, int memory, uint16_t port)
{
    struct stat st;
    memset(r, 0, sizeof *r);
    r->fd = socket;
    if (fstat(memory, &st) < 0 || st.st_size < PAGE || st.st_size > INT32_MAX)
        return rnl_fail(RNL_ERR_ARG, "descriptor %d is not the memory of a queue", memory);
    r->mapped = (size_t)st.st_size;
    struct rnl_xdp_area *a = mmap(NULL, r->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory, 0);
    if (a == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the memory of an AF_XDP queue cannot be mapped");
    (void)madvise(a, r->mapped, MADV_DONTFORK);
    r->area = a;
    r->endpoints = a->endpoints;
    int status = 0;
    if (a->magic != RNL_XDP_MAGIC || r->endpoints == 0 || r->endpoints > RNL_XDP_ENDPOINTS_MAX ||
        r->mapped != rnl_xdp_area_bytes(r->endpoints))
        status = rnl_fail(RNL_ERR_ARG, "descriptor %d is not the memory of a queue", memory);
    while (status == 0 && a->port[r->endpoint] != port)
        if (++r->endpoint == r->endpoints)
            status = rnl_fail(RNL_ERR_ARG, "the AF_XDP queue has no endpoint with port %u", port);
    if (status == 0) {
        r->chunks = (uint8_t *)a + rnl_xdp_area_begin(r->endpoints);
        status = map_rings(r);
    }
    if (status < 0)
        rnl_xdp_rings_unmap(r);
    return status;
}

void rnl_xdp_rings_leave(struct rnl_xdp_rings *r)
{
    const struct rnl_xdp_ring in = r->in;
    void *zeros =
        in.map ? mmap(in.map, in.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) : NULL;
    r->in.map = NULL;
    rnl_xdp_rings_unmap(r);
    r->in.map = zeros == MAP_FAILED ? NULL : zeros;
    r->in.mapped = in.mapped;
}

void rnl_xdp_rings_unmap(struct rnl_xdp_rings *r)
{
    struct rnl_xdp_ring *ring[] = {&r->fill, &r->done, &r->in, &r->out};
    for (int i = 0; i < 4; i++)
        if (ring[i]->map) /* each holds the socket, and the queue with it */
            (void)munmap(ring[i]->map, ring[i]->mapped);
    if (r->area)
        (void)munmap(r->area, r->mapped);
    memset(r, 0, sizeof *r);
    r->fd = -1;
}

/* ---- the lock of the two shared rings ---- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The lock is tried, never waited for. A process that dies or is stopped while it holds it would keep it, so one that
 * was found held by the same turn for LOCK_STALE_NS is taken over. If the former holder goes on after all, both write
 * the rings' indices: packets are lost or overwritten by that, and found to be by their tags. The word is the
 * milliseconds of the turn's beginning, with the endpoint in the low bits. */
static bool try_lock(struct rnl_xdp_rings *r)
{
    if (r->endpoints == 1)
        return true;
    uint32_t seen = 0;
    const uint32_t turn = r->turn = (uint32_t)(now_ns() / 1000000) << 7 | (r->endpoint + 1);
    if (atomic_compare_exchange_strong_explicit(&r->area->lock, &seen, turn, memory_order_acquire,
                                                memory_order_relaxed)) /* pairs with unlock */
        return true;
    if (++r->lock_misses < LOCK_MISSES)
        return false;
    r->lock_misses = 0;
    const uint32_t age_ms = (turn >> 7) - (seen >> 7);
    return age_ms % (1u << 25) >= LOCK_STALE_NS / 1000000 &&
           atomic_compare_exchange_strong_explicit(&r->area->lock, &seen, turn, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void unlock(struct rnl_xdp_rings *r)
{
    uint32_t held = r->turn;
    if (r->endpoints > 1) /* pairs with try_lock; not if it was taken over meanwhile */
        (void)atomic_compare_exchange_strong_explicit(&r->area->lock, &held, 0, memory_order_release,
                                                      memory_order_relaxed);
}

/* ---- sending ---- */

/* Notes which chunks, of all endpoints, the kernel is done with. */
static void reap(struct rnl_xdp_rings *r)
{
    struct rnl_xdp_ring *d = &r->done;
    if (!try_lock(r))
        return;
    uint32_t at = atomic_load_explicit(d->consumer, memory_order_relaxed);
    const uint32_t end = atomic_load_explicit(d->producer, memory_order_acquire); /* pairs with the kernel's */
    for (uint32_t n = 0; at != end && n < d->entry_count; n++, at++) {
        const uint64_t chunk = ((const uint64_t *)d->entries)[at % d->entry_count] / RNL_XDP_CHUNK;
        if (chunk < (uint64_t)r->endpoints * RNL_XDP_OUT)
            atomic_store_explicit(&r->area->under_way[chunk], 0, memory_order_release); /* pairs with room */
    }
    atomic_store_explicit(d->consumer, at, memory_order_release);
    unlock(r);
}

static uint32_t chunk_of(const struct rnl_xdp_rings *r)
{
    return r->endpoint * RNL_XDP_OUT + r->next;
}

uint8_t *rnl_xdp_rings_room(struct rnl_xdp_rings *r)
{
    const uint32_t chunk = chunk_of(r);
    _Atomic uint8_t *busy = &r->area->under_way[chunk];
    if (atomic_load_explicit(busy, memory_order_acquire)) { /* pairs with reap */
        reap(r);
        if (atomic_load_explicit(busy, memory_order_acquire))
            return NULL;
    }
    return r->chunks + (size_t)chunk * RNL_XDP_CHUNK;
}

void rnl_xdp_rings_post(struct rnl_xdp_rings *r, uint32_t bytes)
{
    const uint32_t chunk = chunk_of(r);
    struct rnl_xdp_ring *o = &r->out;
    atomic_store_explicit(&r->area->under_way[chunk], 1, memory_order_relaxed);
    ((struct xdp_desc *)o->entries)[o->mine % RNL_XDP_OUT] =
        (struct xdp_desc){.addr = (uint64_t)chunk * RNL_XDP_CHUNK, .len = bytes};
    atomic_store_explicit(o->producer, ++o->mine, memory_order_release); /* pairs with the kernel's */
    r->next = (r->next + 1) % RNL_XDP_OUT;
}

int rnl_xdp_rings_kick(struct rnl_xdp_rings *r)
{
    if (!(atomic_load_explicit(r->out.flags, memory_order_relaxed) & XDP_RING_NEED_WAKEUP))
        return 0;
    for (int i = 0; i < KICKS; i++) {
        if (sendto(r->fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) >= 0)
            return 0;
        if (errno == ENOBUFS || errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EBUSY)
            return errno;
        if (atomic_load_explicit(r->out.consumer, memory_order_acquire) == r->out.mine)
            return 0;
        reap(r); /* the kernel takes no frame for whose chunk it has no place in the shared ring */
    }
    return 0;
}

/* ---- receiving ---- */

const uint8_t *rnl_xdp_rings_next(struct rnl_xdp_rings *r, uint32_t *bytes, bool *broken)
{
    struct rnl_xdp_ring *in = &r->in;
    const uint32_t end = atomic_load_explicit(in->producer, memory_order_acquire); /* pairs with the kernel's */
    if (end == in->mine)
        return NULL;
    const struct xdp_desc d = ((const struct xdp_desc *)in->entries)[in->mine % RNL_XDP_IN];
    const uint64_t chunks = (uint64_t)rnl_xdp_chunks(r->endpoints) * RNL_XDP_CHUNK;
    if (d.addr >= chunks || d.len > RNL_XDP_CHUNK - d.addr % RNL_XDP_CHUNK || end - in->mine > RNL_XDP_IN) {
        *broken = true;
        return NULL;
    }
    *bytes = d.len;
    return r->chunks + d.addr;
}

void rnl_xdp_rings_take(struct rnl_xdp_rings *r)
{
    struct rnl_xdp_ring *in = &r->in;
    const struct xdp_desc *d = (const struct xdp_desc *)in->entries + in->mine % RNL_XDP_IN;
    if (r->free_count < RNL_XDP_IN)
        r->freed[r->free_count++] = d->addr / RNL_XDP_CHUNK * RNL_XDP_CHUNK;
    atomic_store_explicit(in->consumer, ++in->mine, memory_order_release); /* pairs with the kernel's */
}

void rnl_xdp_rings_settle(struct rnl_xdp_rings *r, bool all)
{
    struct rnl_xdp_ring *f = &r->fill;
    if (r->free_count == 0 || (r->free_count < BATCH && !all) || !try_lock(r))
        return;
    uint32_t at = atomic_load_explicit(f->producer, memory_order_relaxed), n = 0;
    const uint32_t taken = atomic_load_explicit(f->consumer, memory_order_acquire); /* pairs with the kernel's */
    for (; n < r->free_count && at - taken < f->entry_count; n++, at++)
        ((uint64_t *)f->entries)[at % f->entry_count] = r->freed[n];
    atomic_store_explicit(f->producer, at, memory_order_release); /* pairs with the kernel's */
    unlock(r);
    r->free_count = 0; /* what did not fit cannot be ours: all chunks fit */
    if (atomic_load_explicit(f->flags, memory_order_relaxed) & XDP_RING_NEED_WAKEUP)
        (void)recvfrom(r->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}
