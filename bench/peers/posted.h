/* SPDX-License-Identifier: BSD-3-Clause
 *
 * posted.h - the loops of libraries whose sends complete later and whose receives may be posted ahead: the same for all
 * of them, up to 64 of either in flight. A library gives its own calls; they are inlined. */
#ifndef RNL_BENCH_PEERS_POSTED_H
#define RNL_BENCH_PEERS_POSTED_H

#include "common.h"

#define PEER_INLINE static inline __attribute__((always_inline))

struct peer_posted {
    uint64_t sending; /* not complete */
    /* Receives posted and wanted, counted as s->got; where none are posted, messages that have begun to arrive. */
    uint64_t posted, wanted;
};

struct peer_ways {
    int (*give)(struct bench_process *, const void *from, size_t n);
    /* Posts what is wanted, at most `slots` behind one another from `to`. NULL: nothing is posted. */
    int (*post)(struct bench_process *, unsigned char *to, uint64_t slots);
    int (*progress)(struct bench_process *);
};

PEER_INLINE int peer_finish(struct bench_process *s, const struct peer_posted *p, const struct peer_ways *w,
                            uint64_t most)
{
    while (p->sending > most)
        if (w->progress(s))
            return -1;
    return 0;
}

PEER_INLINE int peer_finish_all(struct bench_process *s, const struct peer_posted *p, const struct peer_ways *w)
{
    return peer_finish(s, p, w, 0) ? -1 : peer_settle(s, w->progress);
}

PEER_INLINE int peer_prepare(struct bench_process *s, struct peer_posted *p, const struct peer_ways *w)
{
    p->posted = p->wanted = 0;
    return peer_finish_all(s, p, w);
}

PEER_INLINE int peer_take(struct bench_process *s, const struct peer_ways *w, uint64_t target, unsigned char *to,
                          uint64_t slots)
{
    while (s->got < target)
        if ((w->post && w->post(s, to, slots)) || w->progress(s))
            return -1;
    return 0;
}

PEER_INLINE int peer_ping(struct bench_process *s, struct peer_posted *p, const struct peer_ways *w, uint64_t n,
                          struct rnl_hist *h)
{
    p->posted = s->got;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        if (s->rank == 0 && w->give(s, s->pool, s->bytes))
            return -1;
        p->wanted = s->got + 1;
        if (peer_take(s, w, p->wanted, s->to, 1) || (s->rank == 1 && w->give(s, s->pool, s->bytes)))
            return -1;
        if (h)
            bench_lap(s, h, t0);
    }
    return peer_finish_all(s, p, w);
}

PEER_INLINE int peer_stream(struct bench_process *s, struct peer_posted *p, const struct peer_ways *w, uint64_t n)
{
    uint64_t depth = peer_depth(s);
    p->posted = s->got;
    p->wanted = n;
    for (uint64_t i = 0; i < n && s->rank == 0; i++) {
        unsigned char *at = s->pool + i % depth * s->bytes;
        if (peer_finish(s, p, w, depth - 1)) /* what is sent from there has gone */
            return -1;
        memcpy(at, &i, s->bytes < 8 ? s->bytes : 8);
        if (w->give(s, at, s->bytes))
            return -1;
    }
    if (s->rank == 1 && peer_take(s, w, n, s->spare, depth))
        return -1;
    return peer_finish_all(s, p, w);
}

PEER_INLINE int peer_expect(struct bench_process *s, struct peer_posted *p, const struct peer_ways *w)
{
    if (peer_finish_all(s, p, w))
        return -1;
    p->posted = s->got;
    p->wanted = s->got + s->slots;
    return w->post && s->rank == 1 ? w->post(s, s->to, s->slots) : 0;
}

PEER_INLINE int peer_poll(struct bench_process *s, const struct peer_posted *p, const struct peer_ways *w)
{
    unsigned pushes = 0;
    do {
        if (w->progress(s))
            return -1;
    } while (s->rank == 0 && p->sending && ++pushes < PEER_PUSHES);
    return w->post && s->rank == 1 ? w->post(s, s->to, s->slots) : 0;
}

#endif
