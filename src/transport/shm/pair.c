/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.c - opening, mapping and growing the segment of a pair. */
#include "transport/shm/pair.h"

/* First headers of the rings of different pairs must not share a cache set (64 of them at page starts: 120 ns to scan,
 * coloured 24). */
static unsigned colour_of(uint32_t a, uint32_t b)
{
    uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca6bu;
    return (x ^ x >> 15) & (RNL_SMALL0 - 1);
}

int rnl_pair_open(struct rnl_pair *p, struct rnl_env *env, uint32_t rank)
{
    void *mine = NULL, *theirs = NULL;
    int status, segment;

    memset(p, 0, sizeof *p);
    status = env->ops->segment_open(env, rank, RNL_PAIR_BYTES, &segment);
    if (status < 0)
        return status;
    unsigned my_index = env->rank > rank, their_index = rank > env->rank;
    status = env->ops->segment_map(env, segment, RNL_PAIR_SIDE(my_index), sizeof(struct rnl_side), 1, &mine);
    if (status < 0)
        goto close_segment;
    if (my_index == their_index) {
        theirs = mine;
    } else {
        status = env->ops->segment_map(env, segment, RNL_PAIR_SIDE(their_index), sizeof(struct rnl_side), 0, &theirs);
        if (status < 0)
            goto unmap_mine;
    }
    p->mine = mine;
    p->theirs = theirs;
    p->env = env;
    p->rank = rank;
    p->segment = segment;
    p->my_index = (uint8_t)my_index;
    p->their_index = (uint8_t)their_index;
    p->senders_fence = 1;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_init(&p->tx[lane], p->mine, p->theirs, lane, colour_of(env->rank, rank));
        rnl_rx_init(&p->rx[lane], p->mine, p->theirs, lane, colour_of(rank, env->rank));
    }
    rnl_side_init(p->mine, !env->facts.have_membarrier);
    return 0;

unmap_mine:
    env->ops->segment_unmap(env, segment, mine, sizeof(struct rnl_side));
close_segment:
    env->ops->segment_close(env, segment);
    return status;
}

void rnl_pair_close(struct rnl_pair *p)
{
    struct rnl_env *env = p->env;
    if (!env)
        return;
    int self = p->my_index == p->their_index;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        if (p->tx[lane].bulk)
            env->ops->segment_unmap(env, p->segment, p->tx[lane].bulk, RNL_BULK_BYTES);
        if (p->rx[lane].bulk)
            env->ops->segment_unmap(env, p->segment, (void *)(uintptr_t)p->rx[lane].bulk, RNL_BULK_BYTES);
    }
    if (p->big_tx)
        env->ops->segment_unmap(env, p->segment, p->tx[0].ring, RNL_BIG * RNL_LINE_BYTES);
    if (p->big_rx)
        env->ops->segment_unmap(env, p->segment, p->rx[0].ring, RNL_BIG * RNL_LINE_BYTES);
    if (!self)
        env->ops->segment_unmap(env, p->segment, p->theirs, sizeof(struct rnl_side));
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
    p->senders_fence = atomic_load_explicit(&p->theirs->senders_fence, memory_order_relaxed) != 0;
    for (unsigned lane = 0; lane < RNL_LANES && !p->senders_fence; lane++)
        p->tx[lane].armed = &p->theirs->armed;
    return 1;
}

int rnl_pair_bulk_tx(struct rnl_pair *p, unsigned lane)
{
    void *at;
    if (p->tx[lane].bulk)
        return 0;
    int status = p->env->ops->segment_map(p->env, p->segment, RNL_PAIR_BULK(p->my_index, lane), RNL_BULK_BYTES, 1, &at);
    if (status < 0)
        return status;
    p->tx[lane].bulk = at;
    return 0;
}

int rnl_pair_bulk_rx(struct rnl_pair *p, unsigned lane)
{
    void *at;
    if (p->rx[lane].bulk)
        return 0;
    int status =
        p->env->ops->segment_map(p->env, p->segment, RNL_PAIR_BULK(p->their_index, lane), RNL_BULK_BYTES, 0, &at);
    if (status < 0)
        return status;
    p->rx[lane].bulk = at;
    return 0;
}

int rnl_pair_grow_tx(struct rnl_pair *p)
{
    struct rnl_tx *t = &p->tx[0];
    void *at;
    int fresh = 1;
    if (p->big_tx || RNL_LINE_START(t->pos) >= t->stop)
        return RNL_NO_ROOM;
    int status =
        p->env->ops->segment_map(p->env, p->segment, RNL_PAIR_BIG(p->my_index), RNL_BIG * RNL_LINE_BYTES, 1, &at);
    if (status < 0)
        return status;
    rnl_head key = rnl_head_key(RNL_LINE_GROW, 0, 0);
    unsigned char *place = rnl_tx_place(t, key, &fresh);
    if (!place) /* a line is free: checked above */
        return RNL_NO_ROOM;
    rnl_pair_publish(p, 0, key, place, fresh, 0);
    rnl_tx_grow(t, at);
    p->big_tx = 1;
    return 0;
}

int rnl_pair_grow_rx(struct rnl_pair *p)
{
    void *at;
    if (p->big_rx)
        return RNL_ERR_PEER_BROKEN;
    int status =
        p->env->ops->segment_map(p->env, p->segment, RNL_PAIR_BIG(p->their_index), RNL_BIG * RNL_LINE_BYTES, 0, &at);
    if (status < 0)
        return status;
    rnl_rx_grow(&p->rx[0], at);
    p->big_rx = 1;
    return 0;
}
