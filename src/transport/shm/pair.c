/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.c - opening, mapping and growing the segment of a pair. */
#include "transport/shm/pair.h"

#include <errno.h>
#include <sys/mman.h>

/* First headers of the rings of different pairs must not share a cache set (64 of them at page starts: 120 ns to scan,
 * coloured 24). */
static unsigned colour_of(uint32_t a, uint32_t b)
{
    uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca6bu;
    return (x ^ x >> 15) & (RNL_SMALL0 - 1);
}

static int map_all(struct rnl_pair *p)
{
    const struct {
        size_t at, bytes;
        int writable;
    } part[4] = {{RNL_PAIR_SIDE(p->my_index), sizeof(struct rnl_side), 1},
                 {RNL_PAIR_FAR(p->my_index), RNL_FAR_BYTES, 1},
                 {RNL_PAIR_SIDE(p->their_index), sizeof(struct rnl_side), 0},
                 {RNL_PAIR_FAR(p->their_index), RNL_FAR_BYTES, 0}};
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
    p->far_mine = at[1];
    p->theirs = at[parts - 2];
    p->far_theirs = at[parts - 1];
    return 0;
}

static void lanes_init(struct rnl_pair *p, struct rnl_env *env, uint32_t rank)
{
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_init(&p->tx[lane], p->mine, p->theirs, lane, colour_of(env->rank, rank));
        rnl_rx_init(&p->rx[lane], p->mine, p->theirs, lane, colour_of(rank, env->rank));
        p->tx[lane].bulk = p->far_mine + RNL_FAR_BULK(lane);
        p->rx[lane].bulk = p->far_theirs + RNL_FAR_BULK(lane);
    }
}

int rnl_pair_open(struct rnl_pair *p, struct rnl_env *env, uint32_t rank, uint64_t wait_ns)
{
    memset(p, 0, sizeof *p);
    int status = env->ops->segment_open(env, rank, RNL_PAIR_BYTES, wait_ns, &p->segment);
    if (status < 0)
        goto failed;
    p->env = env;
    p->rank = rank;
    p->my_index = env->rank > rank;
    p->their_index = rank > env->rank;
    status = map_all(p);
    if (status < 0) {
        env->ops->segment_close(env, p->segment); /* not settled: it can be opened again */
        goto failed;
    }
    env->ops->segment_settle(env, p->segment);
    p->senders_fence = 1;
    lanes_init(p, env, rank);
    rnl_side_init(p->mine, !env->facts.have_membarrier);
    return 0;

failed:
    memset(p, 0, sizeof *p);
    return status;
}

int rnl_pair_open_away(struct rnl_pair *p, struct rnl_env *env, uint32_t rank)
{
    memset(p, 0, sizeof *p);
    unsigned char *at =
        mmap(NULL, RNL_PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no %zu bytes of addresses for the connection to rank %u",
                              (size_t)RNL_PAIR_BYTES, rank);
    p->env = env;
    p->rank = rank;
    p->segment = -1;
    p->their_index = 1;
    p->mine = (struct rnl_side *)(void *)(at + RNL_PAIR_SIDE(0));
    p->theirs = (struct rnl_side *)(void *)(at + RNL_PAIR_SIDE(1));
    p->far_mine = at + RNL_PAIR_FAR(0);
    p->far_theirs = at + RNL_PAIR_FAR(1);
    lanes_init(p, env, rank);
    rnl_side_init(p->mine, 0);
    rnl_side_init(p->theirs, 0);
    atomic_store_explicit(&p->theirs->armed, RNL_ARMED_TURN | RNL_ARMED_LINES | RNL_ARMED_ROOM, memory_order_relaxed);
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        p->tx[lane].armed = &p->theirs->armed;
    p->joined = 1;
    p->away = 1;
    return 0;
}

void rnl_pair_close(struct rnl_pair *p)
{
    struct rnl_env *env = p->env;
    if (!env)
        return;
    if (p->away) {
        munmap(p->mine, RNL_PAIR_BYTES);
        memset(p, 0, sizeof *p);
        return;
    }
    if (p->my_index != p->their_index) {
        env->ops->segment_unmap(env, p->segment, p->far_theirs, RNL_FAR_BYTES);
        env->ops->segment_unmap(env, p->segment, p->theirs, sizeof(struct rnl_side));
    }
    env->ops->segment_unmap(env, p->segment, p->far_mine, RNL_FAR_BYTES);
    env->ops->segment_unmap(env, p->segment, p->mine, sizeof(struct rnl_side));
    env->ops->segment_close(env, p->segment);
    memset(p, 0, sizeof *p);
}

int rnl_pair_joined(struct rnl_pair *p)
{
    uint32_t version = atomic_load_explicit(&p->theirs->version, memory_order_acquire);
    if (version == 0)
        return 0;
    if (version != RNL_SIDE_VERSION)
        return RNL_ERR_PEER_BROKEN;
    p->joined = 1;
    /* Their heavy fence reaches registered processes only: are we one? */
    p->senders_fence =
        atomic_load_explicit(&p->theirs->senders_fence, memory_order_relaxed) != 0 || !p->env->facts.have_membarrier;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        p->tx[lane].armed = p->senders_fence ? &rnl_tx_always_armed : &p->theirs->armed;
    return 1;
}

int rnl_pair_grow_tx(struct rnl_pair *p)
{
    struct rnl_tx *t = &p->tx[0];
    int fresh = 1;
    if (p->big_tx || RNL_LINE_START(t->pos) >= t->stop)
        return RNL_NO_ROOM;
    rnl_head key = rnl_head_key(RNL_LINE_GROW, 0, 0);
    unsigned char *place = rnl_tx_place(t, key, &fresh);
    if (!place) /* a line is free: checked above */
        return RNL_NO_ROOM;
    rnl_pair_publish(p, 0, key, place, fresh, 0);
    rnl_tx_grow(t, (struct rnl_line *)(void *)p->far_mine);
    p->big_tx = 1;
    return 0;
}

int rnl_pair_grow_rx(struct rnl_pair *p)
{
    if (p->big_rx)
        return RNL_ERR_PEER_BROKEN;
    rnl_rx_grow(&p->rx[0], (struct rnl_line *)(void *)p->far_theirs);
    p->big_rx = 1;
    return 0;
}
