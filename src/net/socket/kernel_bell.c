/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_bell.c - the doorbell of kernel sockets: io_uring waits for each of them once, and the kernel sets a bit in
 * shared memory when one has something. To find that nothing has arrived is then a load and not a system call.
 *
 * Each wait is for one arrival, since waking a waiter costs the sender, and a busy socket would pay that for each
 * datagram. A ring of io_uring may be entered only by the thread that made it. It keeps a socket open beyond the close
 * of its descriptor, so a wait is ended before the descriptor is closed. A socket has one ring in its life: any failure
 * ends it, and from then on sockets are polled. The two system calls are made by number; three operations need no
 * library. */
#include "net/socket/kernel_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#if defined(IORING_SETUP_DEFER_TASKRUN) && defined(SYS_io_uring_setup)

enum {
    ENTRIES = 16,   /* enough for a wait and its removal for each socket */
    REMOVES = -1,   /* user_data of the completion of a removal */
    ENDS = 8,       /* attempts to see the completion of a removed wait */
    TRUSTED = 1024, /* reads of the bit, one of which also polls the sockets; no lost signal is known of */
    RINGS = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW
};
static_assert(ENTRIES >= 2 * (KERNEL_CONNECTED + 1), "all waits and all ends fit");

struct kernel_bell {
    int fd;
    uint8_t silent, first_waits; /* silent: all sockets are waited for, and no signal was seen yet */
    uint32_t trusted, pushed;
    unsigned char *rings, *entries;
    size_t rings_bytes, entries_bytes;
    _Atomic uint32_t *sq_tail, *sq_flags, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask, *sq_array;
    const struct io_uring_cqe *cqe;
};

static uint32_t rung(const struct kernel_bell *b)
{
    return (atomic_load_explicit(b->sq_flags, memory_order_relaxed) & RINGS) |
           (atomic_load_explicit(b->cq_tail, memory_order_relaxed) ^
            atomic_load_explicit(b->cq_head, memory_order_relaxed));
}

static void unmap(struct kernel_bell *b)
{
    if (b->rings)
        (void)munmap(b->rings, b->rings_bytes);
    if (b->entries)
        (void)munmap(b->entries, b->entries_bytes);
}

/* Gives up the ring and all its waits. It ends with its last descriptor and mapped page. The caller may still read its
 * word, so a page of zeros takes the place of that page. */
static void give_up(struct kernel_socket *k)
{
    struct kernel_bell *b = k->bell;
    if (b && b->fd >= 0) {
        close(b->fd);
        if (b->rings)
            (void)mmap(b->rings, b->rings_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                       0);
        if (b->entries)
            (void)munmap(b->entries, b->entries_bytes);
        b->entries = NULL;
    }
    if (b) {
        b->fd = -1;
        b->silent = 0;
    }
    k->facts.features &= ~(uint32_t)RNL_KERNEL_BELL;
    k->no_bell = 1;
}

static void *map(int fd, size_t bytes, off_t what)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
    if (at != MAP_FAILED)
        (void)madvise(at, bytes, MADV_DONTFORK);
    return at == MAP_FAILED ? NULL : at;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* 0 or -1. */
static int map_all(struct kernel_bell *b, const struct io_uring_params *p)
{
    if (!(p->features & IORING_FEAT_SINGLE_MMAP))
        return -1;
    b->rings_bytes = larger(p->sq_off.array + p->sq_entries * sizeof(uint32_t),
                            p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe));
    b->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    b->rings = map(b->fd, b->rings_bytes, IORING_OFF_SQ_RING);
    b->entries = b->rings ? map(b->fd, b->entries_bytes, IORING_OFF_SQES) : NULL;
    if (!b->entries)
        return -1;
    b->sq_tail = (void *)(b->rings + p->sq_off.tail);
    b->sq_flags = (void *)(b->rings + p->sq_off.flags);
    b->sq_array = (void *)(b->rings + p->sq_off.array);
    b->sq_mask = p->sq_entries - 1;
    b->cq_head = (void *)(b->rings + p->cq_off.head);
    b->cq_tail = (void *)(b->rings + p->cq_off.tail);
    b->cqe = (void *)(b->rings + p->cq_off.cqes);
    b->cq_mask = p->cq_entries - 1;
    return 0;
}

/* Makes the ring: 0, or -1, and then it is not tried again. */
static int make(struct kernel_socket *k)
{
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                         IORING_SETUP_TASKRUN_FLAG};
    struct kernel_bell *b = calloc(1, sizeof *b);
    k->bell = b;
    if (b)
        b->fd =
            rnl_kernel_may_open() ? (int)syscall(SYS_io_uring_setup, ENTRIES, &p) : -1; /* is always close-on-exec */
    if (!b || b->fd < 0 || map_all(b, &p) < 0) {
        give_up(k);
        return -1;
    }
    k->facts.features |= RNL_KERNEL_BELL;
    return 0;
}

static uint8_t *waits_of(struct kernel_socket *k, int fd)
{
    if (fd == k->fd)
        return &k->bell->first_waits;
    for (uint32_t i = 0; i < k->connected_count; i++)
        if (k->connected[i].fd == fd)
            return &k->connected[i].waits;
    return NULL;
}

static void push(struct kernel_bell *b, struct io_uring_sqe e)
{
    uint32_t tail = atomic_load_explicit(b->sq_tail, memory_order_relaxed), at = tail & b->sq_mask;
    memcpy(b->entries + at * sizeof e, &e, sizeof e);
    b->sq_array[at] = at;
    atomic_store_explicit(b->sq_tail, tail + 1, memory_order_release);
    b->pushed++;
}

static void wait_for(struct kernel_bell *b, int fd, uint8_t *waits)
{
    if (*waits)
        return;
    push(b, (struct io_uring_sqe){
                .opcode = IORING_OP_POLL_ADD, .fd = fd, .poll32_events = POLLIN, .user_data = (uint64_t)fd});
    *waits = 1;
}

/* Submits what was pushed, and lets the kernel post completions. 0, or -1 = the ring was given up. */
static int enter(struct kernel_socket *k)
{
    struct kernel_bell *b = k->bell;
    uint32_t pushed = b->pushed;
    b->pushed = 0;
    if (syscall(SYS_io_uring_enter, b->fd, pushed, 0, IORING_ENTER_GETEVENTS, NULL, 0) == (long)pushed)
        return 0;
    give_up(k);
    return -1;
}

/* Reads completions: these sockets are not waited for any more. Errors are moved out of their queue, or each wait would
 * complete at once for ever. If a socket cannot be waited for, the ring is given up. 0, or -1 = the ring was given
 * up. */
static int reap(struct kernel_socket *k)
{
    struct kernel_bell *b = k->bell;
    uint32_t head = atomic_load_explicit(b->cq_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(b->cq_tail, memory_order_acquire);
    int refused = 0;
    for (; head != tail; head++) {
        const struct io_uring_cqe *c = &b->cqe[head & b->cq_mask];
        int fd = (int)c->user_data, errors = c->res > 0 && c->res & POLLERR;
        uint8_t *waits = fd == REMOVES ? NULL : waits_of(k, fd);
        if (!waits)
            continue;
        *waits = 0;
        refused |= c->res < 0 && c->res != -ECANCELED;
        if (errors)
            (void)rnl_kernel_look_at(k, fd);
    }
    atomic_store_explicit(b->cq_head, head, memory_order_release);
    if (refused)
        give_up(k);
    return refused ? -1 : 0;
}

static int all_wait(const struct kernel_socket *k)
{
    int all = k->bell->first_waits;
    for (uint32_t i = 0; i < k->connected_count; i++)
        all &= k->connected[i].waits;
    return all;
}

int rnl_kernel_bell(struct rnl_socket *s, const _Atomic uint32_t **at, uint32_t *bits)
{
    struct kernel_socket *k = kernel_of(s);
    if (k->no_bell || (!k->bell && make(k) < 0))
        return RNL_ERR_UNSUPPORTED;
    struct kernel_bell *b = k->bell;
    if (!b->silent || rung(b)) {
        b->silent = 0;
        if (rung(b)) { /* completions of earlier waits */
            if (enter(k) < 0 || reap(k) < 0)
                return RNL_ERR_UNSUPPORTED;
        }
        wait_for(b, k->fd, &b->first_waits);
        for (uint32_t i = 0; i < k->connected_count; i++)
            wait_for(b, k->connected[i].fd, &k->connected[i].waits);
        if ((b->pushed && enter(k) < 0) || reap(k) < 0)
            return RNL_ERR_UNSUPPORTED;
        if (!all_wait(k)) {
            k->armed = 1; /* the next recv polls all sockets */
            return 1;
        }
        b->trusted = 0;
        b->silent = 1;
    }
    *at = b->sq_flags;
    *bits = RINGS;
    return 0;
}

int rnl_kernel_bell_is_silent(struct kernel_socket *k)
{
    struct kernel_bell *b = k->bell;
    if (!b || !b->silent)
        return 0;
    if (rung(b)) {
        b->silent = 0;
        k->facts.rings++;
        k->armed = 1;
        return 0;
    }
    k->distrusts = ++b->trusted % TRUSTED == 0;
    return !k->distrusts;
}

void rnl_kernel_bell_invalidate(struct kernel_socket *k)
{
    if (k->bell)
        k->bell->silent = 0;
}

void rnl_kernel_bell_release(struct kernel_socket *k, int fd)
{
    struct kernel_bell *b = k->bell;
    uint8_t *waits = b && b->fd >= 0 ? waits_of(k, fd) : NULL;
    if (!waits || !*waits)
        return;
    push(b, (struct io_uring_sqe){
                .opcode = IORING_OP_POLL_REMOVE, .fd = -1, .addr = (uint64_t)fd, .user_data = (uint64_t)REMOVES});
    b->silent = 0;
    for (int i = 0; i < ENDS && *waits; i++) { /* a wait that was just signalled completes a little later */
        if (enter(k) < 0 || reap(k) < 0)
            return;
    }
    if (*waits)
        give_up(k);
}

void rnl_kernel_bell_end(struct kernel_socket *k)
{
    rnl_kernel_bell_release(k, k->fd);
    for (uint32_t i = 0; i < k->connected_count; i++)
        rnl_kernel_bell_release(k, k->connected[i].fd);
    give_up(k);
    if (k->bell)
        unmap(k->bell);
    free(k->bell);
    k->bell = NULL;
}

#else /* headers without such an io_uring */

int rnl_kernel_bell(struct rnl_socket *s, const _Atomic uint32_t **at, uint32_t *bits)
{
    (void)s;
    (void)at;
    (void)bits;
    return RNL_ERR_UNSUPPORTED;
}

int rnl_kernel_bell_is_silent(struct kernel_socket *k)
{
    (void)k;
    return 0;
}

void rnl_kernel_bell_invalidate(struct kernel_socket *k)
{
    (void)k;
}

void rnl_kernel_bell_release(struct kernel_socket *k, int fd)
{
    (void)k;
    (void)fd;
}

void rnl_kernel_bell_end(struct kernel_socket *k)
{
    (void)k;
}

#endif
