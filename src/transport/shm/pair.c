/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.c - opening, mapping and growing the segment of a pair. */
#include "transport/shm/pair.h"

#include <errno.h>
#include <stdlib.h>
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
        if (p->far_mine) {
            p->tx[lane].bulk = p->far_mine + RNL_FAR_BULK(lane);
            p->rx[lane].bulk = p->far_theirs + RNL_FAR_BULK(lane);
        }
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

/* ---- away ---- */

/* Lines begin cache lines. Not with aligned_alloc, which takes more and gives the rest back each time. */
#define AWAY_BYTES (RNL_LINE_BYTES + 2 * sizeof(struct rnl_side))

static void **memory_of(const struct rnl_pair *p)
{
    return (void **)(void *)((unsigned char *)p->own + RNL_PAIR_OWN);
}

static int take_sides(struct rnl_pair *p)
{
    unsigned char *at = calloc(1, AWAY_BYTES);
    if (!at)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the connection to rank %u (%zu bytes)", p->rank, AWAY_BYTES);
    p->mine = (struct rnl_side *)(void *)(at + (-(uintptr_t)at & (RNL_LINE_BYTES - 1)));
    p->theirs = p->mine + 1;
    p->own = p->mine->lane1;
    *memory_of(p) = at;
    rnl_side_init(p->mine, 0);
    rnl_side_init(p->theirs, 0);
    atomic_store_explicit(&p->theirs->armed, RNL_ARMED_TURN | RNL_ARMED_LINES | RNL_ARMED_ROOM, memory_order_relaxed);
    return 0;
}

static int reach(struct rnl_pair *p, size_t bytes, unsigned char **out)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no %zu bytes of addresses for the connection to rank %u",
                              bytes, p->rank);
    *out = at;
    return 0;
}

int rnl_pair_reach_mine(struct rnl_pair *p)
{
    int status = p->far_mine ? 0 : reach(p, RNL_AWAY_BYTES, &p->far_mine);
    for (unsigned lane = 0; lane < RNL_LANES && status == 0; lane++)
        p->tx[lane].bulk = p->far_mine + RNL_AWAY_BULK(lane);
    return status;
}

int rnl_pair_reach_theirs(struct rnl_pair *p)
{
    int status = p->far_theirs ? 0 : reach(p, RNL_AWAY_BYTES + RNL_PAIR_BESIDE, &p->far_theirs);
    for (unsigned lane = 0; lane < RNL_LANES && status == 0; lane++)
        p->rx[lane].bulk = p->far_theirs + RNL_AWAY_BULK(lane);
    return status;
}

static struct rnl_line *new_ring(const struct rnl_pair *p)
{
    struct rnl_line *ring = aligned_alloc(RNL_LINE_BYTES, RNL_AWAY1 * sizeof *ring);
    if (ring)
        return memset(ring, 0, RNL_AWAY1 * sizeof *ring);
    rnl_fail(RNL_ERR_NO_MEMORY, "no memory for answers of the connection to rank %u (%zu bytes)", p->rank,
             RNL_AWAY1 * sizeof *ring);
    return NULL;
}

int rnl_pair_reach_answers(struct rnl_pair *p)
{
    struct rnl_tx *t = &p->tx[1];
    if (!t->ring && !(t->ring = new_ring(p)))
        return RNL_ERR_NO_MEMORY;
    (void)!rnl_tx_refresh(t, NULL, NULL); /* a wrong position is still there when somebody asks who can say so */
    return 0;
}

int rnl_pair_reach_asked(struct rnl_pair *p)
{
    struct rnl_line *ring = p->rx[1].ring ? p->rx[1].ring : new_ring(p);
    if (!ring)
        return RNL_ERR_NO_MEMORY;
    rnl_rx_at(&p->rx[1], ring);
    return 0;
}

static void give_away(struct rnl_pair *p)
{
    if (p->own)
        free(*memory_of(p));
    free(p->tx[1].ring);
    free(p->rx[1].ring);
    if (p->far_mine)
        munmap(p->far_mine, RNL_AWAY_BYTES);
    if (p->far_theirs)
        munmap(p->far_theirs, RNL_AWAY_BYTES + RNL_PAIR_BESIDE);
    p->own = NULL;
    p->mine = p->theirs = NULL;
    rnl_tx_at(&p->tx[1], NULL);
    rnl_rx_at(&p->rx[1], NULL);
    p->far_mine = p->far_theirs = NULL;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        p->tx[lane].bulk = NULL;
        p->rx[lane].bulk = NULL;
    }
}

int rnl_pair_open_away(struct rnl_pair *p, struct rnl_env *env, uint32_t rank)
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
    p->tx[0].bulk_mask = p->rx[0].bulk_mask = RNL_BULK_AWAY - 1;
    rnl_tx_move(&p->tx[1], NULL, RNL_AWAY1);
    rnl_rx_move(&p->rx[1], NULL, RNL_AWAY1);
    p->joined = 1;
    p->away = 1;
    return 0;
}

/* Both ways by one list. */
static void move_words(struct rnl_side *side, struct rnl_words *w, int save)
{
    _Atomic uint64_t *const at[] = {&side->asked_back, &side->gave_back, &side->wants, &side->most};
    uint64_t *const word[] = {&w->asked_back, &w->gave_back, &w->wants, &w->most};
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_back *back = &side->back[lane];
        _Atomic uint64_t *const of_lane[] = {&back->position, &back->granted, &back->bulk_read};
        for (unsigned i = 0; i < 3; i++)
            if (save)
                w->back[lane][i] = atomic_load_explicit(of_lane[i], memory_order_relaxed); /* nobody else has it */
            else
                atomic_store_explicit(of_lane[i], w->back[lane][i], memory_order_relaxed);
    }
    for (unsigned i = 0; i < 4; i++)
        if (save)
            *word[i] = atomic_load_explicit(at[i], memory_order_relaxed);
        else
            atomic_store_explicit(at[i], *word[i], memory_order_relaxed);
}

void rnl_pair_rest(struct rnl_pair *p, struct rnl_words words[2])
{
    move_words(p->mine, &words[0], 1);
    move_words(p->theirs, &words[1], 1);
    give_away(p);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        rnl_tx_close_line(&p->tx[lane]);
        p->tx[lane].armed = &rnl_tx_always_armed;
    }
}

/* Where the lines of a lane to another host are, in its first ring or the big one. */
static struct rnl_line *ring_at(struct rnl_side *side, unsigned char *far, unsigned lane, int big)
{
    if (lane == 0)
        return big ? (struct rnl_line *)(void *)far : side->lane0;
    return lane == 1 ? NULL : side->lane2;
}

int rnl_pair_wake(struct rnl_pair *p, const struct rnl_words words[2])
{
    struct rnl_words copy[2] = {words[0], words[1]};
    int status = take_sides(p);
    if (status == 0 && p->big_tx)
        status = rnl_pair_reach_mine(p);
    if (status == 0 && p->big_rx)
        status = rnl_pair_reach_theirs(p);
    if (status == 0 && p->rx[1].pos & 7) /* items may be appended to its last line */
        status = rnl_pair_reach_asked(p);
    if (status < 0) {
        give_away(p);
        return status;
    }
    move_words(p->mine, &copy[0], 0);
    move_words(p->theirs, &copy[1], 0);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &p->tx[lane];
        struct rnl_rx *r = &p->rx[lane];
        rnl_tx_at(t, ring_at(p->mine, p->far_mine, lane, p->big_tx));
        t->mine = p->mine;
        t->peer = p->theirs;
        t->armed = &p->theirs->armed;
        if (lane != 1)
            rnl_rx_at(r, ring_at(p->theirs, p->far_theirs, lane, p->big_rx));
        r->mine = p->mine;
        r->theirs = p->theirs;
        if (r->pos & 7)                                                           /* items may be appended to it */
            atomic_store_explicit(&r->last->head, r->seen, memory_order_relaxed); /* nobody else has it */
        else
            r->seen = 0;
    }
    return 0;
}

void rnl_pair_close(struct rnl_pair *p)
{
    struct rnl_env *env = p->env;
    if (!env)
        return;
    if (p->away) {
        give_away(p);
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
    if (p->away && rnl_pair_reach_mine(p) < 0)
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
