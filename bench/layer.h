/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layer.h - the smallest layer that does what MPI does on top of Fast Messages: receives are posted with a source, a
 * tag and a context; a message brings a header of 24 bytes, the layer picks the first receive that matches, and the
 * payload belongs into its buffer. What the header says is known only when the message is here, which is the point:
 * over FM 1.1 it is too late to say where the bytes should go, over FM 2.x it is not.
 *
 * Here is what both have in common; layer_fm.c and layer_fm1.c send and take in. */
#ifndef RNL_BENCH_LAYER_H
#define RNL_BENCH_LAYER_H

#include "process.h"

struct layer_header {
    uint32_t source, tag;
    uint64_t context, bytes;
};
_Static_assert(sizeof(struct layer_header) == 24, "as in MPI-FM");

struct layer_receive {
    struct layer_receive *next;
    uint32_t source, tag;
    uint64_t context, most;
    void *to;
};

enum { LAYER_POSTED = 64, LAYER_TAG = 7, LAYER_CONTEXT = 0x4d5049 };

/* Receives wait in the order in which they were posted. */
struct layer {
    struct layer_receive receive[LAYER_POSTED];
    struct layer_receive *first, **last, *unused;
};

static inline void layer_start(struct layer *l)
{
    l->first = l->unused = NULL;
    l->last = &l->first;
    for (unsigned i = 0; i < LAYER_POSTED; i++) {
        l->receive[i].next = l->unused;
        l->unused = &l->receive[i];
    }
}

/* False: as many are posted as there may be. */
static inline bool layer_post(struct layer *l, uint32_t source, uint32_t tag, void *to, uint64_t most)
{
    struct layer_receive *r = l->unused;
    if (!r)
        return false;
    l->unused = r->next;
    *r = (struct layer_receive){.source = source, .tag = tag, .context = LAYER_CONTEXT, .most = most, .to = to};
    *l->last = r;
    l->last = &r->next;
    return true;
}

static inline bool layer_fits(const struct layer_receive *r, const struct layer_header *h)
{
    return r->source == h->source && r->tag == h->tag && r->context == h->context && h->bytes <= r->most;
}

/* The first that matches, taken off the list, or NULL. Valid until the next layer_post. */
static inline struct layer_receive *layer_match(struct layer *l, const struct layer_header *h)
{
    for (struct layer_receive **at = &l->first; *at; at = &(*at)->next) {
        struct layer_receive *r = *at;
        if (!layer_fits(r, h))
            continue;
        *at = r->next;
        if (l->last == &r->next)
            l->last = at;
        r->next = l->unused;
        l->unused = r;
        return r;
    }
    return NULL;
}

/* The program on top, the same for both: `send` one message, `post` a receive, look `poll`. Inlined with constants. */
typedef int layer_call(struct bench_process *);

static inline __attribute__((always_inline)) int layer_post_all(struct bench_process *s, struct layer *l,
                                                                layer_call *post)
{
    while (l->unused)
        if (post(s))
            return -1;
    return 0;
}

/* For the first message of an order, which may come while both meet; later ones are posted ahead, too. */
static inline int layer_post_first(struct bench_process *s, const struct bench_order *o, struct layer *l,
                                   layer_call *post)
{
    return o->test == BENCH_RATE ? layer_post_all(s, l, post) : post(s);
}

static inline __attribute__((always_inline)) int layer_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h,
                                                            layer_call *send, layer_call *post, layer_call *poll)
{
    uint64_t target = s->due;
    s->due += n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        target++;
        if (s->rank == 0 && send(s))
            return -1;
        while (s->got < target)
            if (poll(s))
                return -1;
        if (post(s) || (s->rank == 1 && send(s)))
            return -1;
        if (h)
            bench_lap(s, h, t0);
    }
    return s->status;
}

static inline __attribute__((always_inline)) int layer_stream(struct bench_process *s, uint64_t n, struct layer *l,
                                                              layer_call *send, layer_call *post, layer_call *poll)
{
    for (uint64_t i = 0; s->rank == 0 && i < n; i++) {
        memcpy(s->pool, &i, s->bytes < 8 ? s->bytes : 8);
        if (send(s))
            return -1;
    }
    while (s->rank == 1 && s->got < n) {
        if (poll(s) || layer_post_all(s, l, post))
            return -1;
    }
    return s->status;
}

#endif
