/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment.c - opens, maps, grows, hibernates and closes channels. */
#include "ring/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Returns the colour of a channel. The first headers of the rings of different channels must not share a cache set:
 * scanning 64 of them at page starts took 120 ns, coloured 24 ns. */
static unsigned colour_of(uint32_t a, uint32_t b)
{
    uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca6bu;
    return (x ^ x >> 15) & (RNL_CELLS_LANE0 - 1);
}

static int map_all(struct rnl_channel *p)
{
    const struct {
        size_t at, bytes;
        int writable;
    } part[4] = {{RNL_SEGMENT_CONTROL(p->my_index), sizeof(struct rnl_control_page), 1},
                 {RNL_SEGMENT_BULK(p->my_index), RNL_BULK_REGION_BYTES, 1},
                 {RNL_SEGMENT_CONTROL(p->their_index), sizeof(struct rnl_control_page), 0},
                 {RNL_SEGMENT_BULK(p->their_index), RNL_BULK_REGION_BYTES, 0}};
    int parts = p->my_index == p->their_index ? 2 : 4;
    void *at[4];
    for (int i = 0; i < parts; i++) {
        int status = p->env->ops->segment_map(p->env, p->segment, part[i].at, part[i].bytes, part[i].writable, &at[i]);
        if (status < 0) {
            while (--i >= 0)
                p->env->ops->segment_unmap(p->env, p->segment, at[i], part[i].bytes);
            return status;
        }
    }
    p->mine = at[0];
    p->bulk_mine = at[1];
    p->theirs = at[parts - 2];
    p->bulk_theirs = at[parts - 1];
    return 0;
}

static void lanes_init(struct rnl_channel *p, struct rnl_env *env, uint32_t rank)
{
    uint32_t own = env->rank;
    if (env->meet && rank != own)
        env->meet->sides(env, rank, &own, &rank);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_init(&p->tx[lane], p->mine, p->theirs, lane, colour_of(own, rank));
        rnl_rx_init(&p->rx[lane], p->mine, p->theirs, lane, colour_of(rank, own));
        if (p->bulk_mine) {
            p->tx[lane].bulk = p->bulk_mine + RNL_BULK_AREA(lane);
            p->rx[lane].bulk = p->bulk_theirs + RNL_BULK_AREA(lane);
        }
    }
}

int rnl_channel_open(struct rnl_channel *p, struct rnl_env *env, uint32_t rank, uint64_t wait_ns)
{
    memset(p, 0, sizeof *p);
    int status = env->ops->segment_open(env, rank, RNL_CHANNEL_BYTES, wait_ns, &p->segment);
    if (status < 0)
        goto failed;
    p->env = env;
    p->rank = rank;
    uint32_t own = env->rank, other = rank;
    if (env->meet && rank != own)
        env->meet->sides(env, rank, &own, &other);
    p->my_index = own > other;
    p->their_index = other > own;
    status = map_all(p);
    if (status < 0) {
        env->ops->segment_close(env, p->segment); /* not settled, so it can be opened again */
        goto failed;
    }
    env->ops->segment_mapped(env, p->segment);
    p->senders_fence = 1;
    lanes_init(p, env, rank);
    rnl_control_page_init(p->mine, !env->facts.have_membarrier);
    return 0;

failed:
    memset(p, 0, sizeof *p);
    return status;
}

/* ---- channels to other hosts ---- */

/* Two control pages, and slack to begin them on a cache line. aligned_alloc would take more and give the rest back each
 * time. */
#define REMOTE_CONTROL_BYTES (RNL_CELL_BYTES + 2 * sizeof(struct rnl_control_page))

static void **memory_of(const struct rnl_channel *p)
{
    return (void **)(void *)((unsigned char *)p->own + RNL_CHANNEL_PRIVATE);
}

static int take_sides(struct rnl_channel *p)
{
    unsigned char *at = calloc(1, REMOTE_CONTROL_BYTES);
    if (!at)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the connection to rank %u (%zu bytes)", p->rank,
                        REMOTE_CONTROL_BYTES);
    p->mine = (struct rnl_control_page *)(void *)(at + (-(uintptr_t)at & (RNL_CELL_BYTES - 1)));
    p->theirs = p->mine + 1;
    p->own = p->mine->lane1;
    *memory_of(p) = at;
    rnl_control_page_init(p->mine, 0);
    rnl_control_page_init(p->theirs, 0);
    atomic_store_explicit(&p->theirs->armed, RNL_ARMED_STEP | RNL_ARMED_CELLS | RNL_ARMED_ROOM, memory_order_relaxed);
    return 0;
}

static int reserve(struct rnl_channel *p, size_t bytes, unsigned char **out)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no %zu bytes of addresses for the connection to rank %u",
                              bytes, p->rank);
    *out = at;
    return 0;
}

int rnl_channel_map_mine(struct rnl_channel *p)
{
    int status = p->bulk_mine ? 0 : reserve(p, RNL_REMOTE_REGION_BYTES, &p->bulk_mine);
    for (unsigned lane = 0; lane < RNL_LANES && status == 0; lane++)
        p->tx[lane].bulk = p->bulk_mine + RNL_REMOTE_BULK_AREA(lane);
    return status;
}

int rnl_channel_map_theirs(struct rnl_channel *p)
{
    int status = p->bulk_theirs ? 0 : reserve(p, RNL_REMOTE_REGION_BYTES + RNL_CHANNEL_TRAILER_BYTES, &p->bulk_theirs);
    for (unsigned lane = 0; lane < RNL_LANES && status == 0; lane++)
        p->rx[lane].bulk = p->bulk_theirs + RNL_REMOTE_BULK_AREA(lane);
    return status;
}

static struct rnl_cell *new_ring(const struct rnl_channel *p)
{
    struct rnl_cell *ring = aligned_alloc(RNL_CELL_BYTES, RNL_CELLS_LANE1_REMOTE * sizeof *ring);
    if (ring)
        return memset(ring, 0, RNL_CELLS_LANE1_REMOTE * sizeof *ring);
    rnl_fail(RNL_ERR_NO_MEMORY, "no memory for replies of the connection to rank %u (%zu bytes)", p->rank,
             RNL_CELLS_LANE1_REMOTE * sizeof *ring);
    return NULL;
}

int rnl_channel_map_replies(struct rnl_channel *p)
{
    struct rnl_tx *t = &p->tx[1];
    if (!t->ring && !(t->ring = new_ring(p)))
        return RNL_ERR_NO_MEMORY;
    (void)!rnl_tx_refresh(t, NULL, NULL); /* a broken position is found again by a caller that can report it */
    return 0;
}

int rnl_channel_map_requests(struct rnl_channel *p)
{
    struct rnl_cell *ring = p->rx[1].ring ? p->rx[1].ring : new_ring(p);
    if (!ring)
        return RNL_ERR_NO_MEMORY;
    rnl_rx_at(&p->rx[1], ring);
    return 0;
}

static void release_memory(struct rnl_channel *p)
{
    if (p->own)
        free(*memory_of(p));
    free(p->tx[1].ring);
    free(p->rx[1].ring);
    if (p->bulk_mine)
        munmap(p->bulk_mine, RNL_REMOTE_REGION_BYTES);
    if (p->bulk_theirs)
        munmap(p->bulk_theirs, RNL_REMOTE_REGION_BYTES + RNL_CHANNEL_TRAILER_BYTES);
    p->own = NULL;
    p->mine = p->theirs = NULL;
    rnl_tx_at(&p->tx[1], NULL);
    rnl_rx_at(&p->rx[1], NULL);
    p->bulk_mine = p->bulk_theirs = NULL;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        p->tx[lane].bulk = NULL;
        p->rx[lane].bulk = NULL;
    }
}

int rnl_channel_open_remote(struct rnl_channel *p, struct rnl_env *env, uint32_t rank)
{
    memset(p, 0, sizeof *p);
    p->rank = rank;
    int status = take_sides(p);
    if (status < 0) {
        memset(p, 0, sizeof *p);
        return status;
    }
    p->env = env;
    p->segment = -1;
    p->their_index = 1;
    lanes_init(p, env, rank);
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        p->tx[lane].armed = &p->theirs->armed;
    p->tx[0].bulk_mask = p->rx[0].bulk_mask = RNL_BULK_REMOTE_BYTES - 1;
    rnl_tx_move(&p->tx[1], NULL, RNL_CELLS_LANE1_REMOTE);
    rnl_rx_move(&p->rx[1], NULL, RNL_CELLS_LANE1_REMOTE);
    p->joined = 1;
    p->is_remote = 1;
    return 0;
}

/* Saves or restores credit words, by one list. */
static void move_words(struct rnl_control_page *page, struct rnl_credit_copy *w, int save)
{
    _Atomic uint64_t *const at[] = {&page->credit_reclaim, &page->credit_returned, &page->credit_wanted,
                                    &page->credit_max};
    uint64_t *const word[] = {&w->credit_reclaim, &w->credit_returned, &w->credit_wanted, &w->credit_max};
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_credit_words *words = &page->credit[lane];
        _Atomic uint64_t *const of_lane[] = {&words->position, &words->granted, &words->bulk_read};
        for (unsigned i = 0; i < 3; i++)
            if (save)
                w->credit[lane][i] = atomic_load_explicit(of_lane[i], memory_order_relaxed); /* unshared */
            else
                atomic_store_explicit(of_lane[i], w->credit[lane][i], memory_order_relaxed);
    }
    for (unsigned i = 0; i < 4; i++)
        if (save)
            *word[i] = atomic_load_explicit(at[i], memory_order_relaxed);
        else
            atomic_store_explicit(at[i], *word[i], memory_order_relaxed);
}

void rnl_channel_hibernate(struct rnl_channel *p, struct rnl_credit_copy words[2])
{
    move_words(p->mine, &words[0], 1);
    move_words(p->theirs, &words[1], 1);
    release_memory(p);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_close_cell(&p->tx[lane]);
        p->tx[lane].armed = &rnl_tx_always_armed;
    }
}

/* Returns where the cells of a lane to another host are: in its first ring or the big one. */
static struct rnl_cell *ring_at(struct rnl_control_page *page, unsigned char *far, unsigned lane, int big)
{
    if (lane == 0)
        return big ? (struct rnl_cell *)(void *)far : page->lane0;
    return NULL;
}

int rnl_channel_resume(struct rnl_channel *p, const struct rnl_credit_copy words[2])
{
    struct rnl_credit_copy copy[2] = {words[0], words[1]};
    int status = take_sides(p);
    if (status == 0 && p->big_tx)
        status = rnl_channel_map_mine(p);
    if (status == 0 && p->big_rx)
        status = rnl_channel_map_theirs(p);
    if (status == 0 && p->rx[1].pos & 7) /* records may be appended to its last cell */
        status = rnl_channel_map_requests(p);
    if (status < 0) {
        release_memory(p);
        return status;
    }
    move_words(p->mine, &copy[0], 0);
    move_words(p->theirs, &copy[1], 0);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &p->tx[lane];
        struct rnl_rx *r = &p->rx[lane];
        rnl_tx_at(t, ring_at(p->mine, p->bulk_mine, lane, p->big_tx));
        t->mine = p->mine;
        t->peer = p->theirs;
        t->armed = &p->theirs->armed;
        if (lane != 1)
            rnl_rx_at(r, ring_at(p->theirs, p->bulk_theirs, lane, p->big_rx));
        r->mine = p->mine;
        r->theirs = p->theirs;
        if (r->pos & 7)                                                             /* records may be appended to it */
            atomic_store_explicit(&r->last->header, r->seen, memory_order_relaxed); /* no other process has it */
        else
            r->seen = 0;
    }
    return 0;
}

void rnl_channel_close(struct rnl_channel *p)
{
    struct rnl_env *env = p->env;
    if (!env)
        return;
    if (p->is_remote) {
        release_memory(p);
        memset(p, 0, sizeof *p);
        return;
    }
    if (p->my_index != p->their_index) {
        env->ops->segment_unmap(env, p->segment, p->bulk_theirs, RNL_BULK_REGION_BYTES);
        env->ops->segment_unmap(env, p->segment, p->theirs, sizeof(struct rnl_control_page));
    }
    env->ops->segment_unmap(env, p->segment, p->bulk_mine, RNL_BULK_REGION_BYTES);
    env->ops->segment_unmap(env, p->segment, p->mine, sizeof(struct rnl_control_page));
    env->ops->segment_close(env, p->segment);
    memset(p, 0, sizeof *p);
}

int rnl_channel_joined(struct rnl_channel *p)
{
    uint32_t version = atomic_load_explicit(&p->theirs->version, memory_order_acquire);
    if (version == 0)
        return 0;
    if (version != RNL_CONTROL_PAGE_VERSION)
        return RNL_ERR_PEER_BROKEN;
    p->joined = 1;
    /* The peer's heavy fence reaches only processes that registered for it, which this one may have failed to do. */
    p->senders_fence =
        atomic_load_explicit(&p->theirs->senders_fence, memory_order_relaxed) != 0 || !p->env->facts.have_membarrier;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        p->tx[lane].armed = p->senders_fence ? &rnl_tx_always_armed : &p->theirs->armed;
    return 1;
}

int rnl_channel_grow_tx(struct rnl_channel *p)
{
    struct rnl_tx *t = &p->tx[0];
    int new_cell = 1;
    if (p->big_tx || RNL_CELL_START(t->pos) >= t->stop)
        return RNL_NO_ROOM;
    if (p->is_remote && rnl_channel_map_mine(p) < 0)
        return RNL_NO_ROOM;
    rnl_header key = rnl_header_key(RNL_CELL_GROW, 0, 0);
    unsigned char *place = rnl_tx_place(t, key, &new_cell);
    if (!place) /* cannot be: a cell was free above */
        return RNL_NO_ROOM;
    rnl_channel_publish(p, 0, key, place, new_cell, 0);
    rnl_tx_grow(t, (struct rnl_cell *)(void *)p->bulk_mine);
    p->big_tx = 1;
    return 0;
}

int rnl_channel_grow_rx(struct rnl_channel *p)
{
    if (p->big_rx)
        return RNL_ERR_PEER_BROKEN;
    rnl_rx_grow(&p->rx[0], (struct rnl_cell *)(void *)p->bulk_theirs);
    p->big_rx = 1;
    return 0;
}
