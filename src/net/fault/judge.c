/* SPDX-License-Identifier: BSD-3-Clause
 *
 * judge.c - judges a packet: a pure function of the description, the state of its flow and its length. Each decision
 * has a stream of random numbers of its own, so that the other faults hit the same packets when one is taken out. */
#include <string.h>

#include "net/fault/fault.h"

enum fault_stream {
    LOSS = 1,
    BURST,
    DUP,
    DELAY,
    DUP_DELAY,
    REORDER,
    CORRUPT,
    CORRUPT_WHERE,
    CUT,
    CUT_WHERE,
    CE,
    BLEACH
};

bool rnl_fault_names(const struct rnl_fault_ranks *r, uint32_t rank)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (rank >= r->range[i].first && rank <= r->range[i].last)
            return true;
    return false;
}

static uint8_t lost_why(const struct rnl_fault *f, struct rnl_fault_flow *w, uint64_t entity, uint32_t bytes)
{
    uint64_t k = w->packets;
    /* Every packet advances the state of bursts, whatever else happens to it. */
    if (f->burst_begin) {
        uint32_t turns = w->burst ? f->burst_end : f->burst_begin;
        w->burst ^= (uint8_t)rnl_chance_is(rnl_chance(f->seed, BURST, entity, k), turns);
    } else {
        w->burst = 0;
    }
    if (f->mtu && bytes > f->mtu)
        return RNL_FAULT_MTU;
    if (w->burst)
        return RNL_FAULT_BURST;
    if (f->nth && k % f->nth == 0)
        return RNL_FAULT_NTH;
    for (uint32_t i = 0; i < f->drops; i++)
        if (f->drop[i] == k)
            return RNL_FAULT_DROP;
    if (f->loss && rnl_chance_is(rnl_chance(f->seed, LOSS, entity, k), f->loss))
        return RNL_FAULT_LOSS;
    return RNL_FAULT_NONE;
}

static bool happens(const struct rnl_fault *f, enum fault_stream what, uint32_t parts, uint64_t entity, uint64_t k)
{
    return parts != 0 && rnl_chance_is(rnl_chance(f->seed, what, entity, k), parts);
}

static uint64_t delay_of(const struct rnl_fault *f, enum fault_stream what, uint64_t entity, uint64_t k)
{
    uint64_t span = f->delay_most_ns - f->delay_least_ns;
    if (span == 0)
        return f->delay_least_ns;
    return f->delay_least_ns + rnl_chance_below(rnl_chance(f->seed, what, entity, k), span + 1);
}

void rnl_fault_judge(const struct rnl_fault *f, struct rnl_fault_flow *w, uint64_t entity, uint32_t bytes,
                     struct rnl_fault_verdict *v)
{
    uint64_t k = ++w->packets;
    memset(v, 0, sizeof *v);
    v->bytes = bytes;
    v->lost = lost_why(f, w, entity, bytes);
    if (v->lost)
        return;
    v->delay_ns = delay_of(f, DELAY, entity, k);
    if (happens(f, REORDER, f->reorder, entity, k)) {
        v->late = 1;
        v->delay_ns += f->reorder_ns;
    }
    if (happens(f, DUP, f->dup, entity, k)) {
        v->twice = 1;
        v->twice_ns = delay_of(f, DUP_DELAY, entity, k);
    }
    if (bytes && happens(f, CUT, f->cut, entity, k))
        v->bytes = (uint32_t)rnl_chance_below(rnl_chance(f->seed, CUT_WHERE, entity, k), bytes);
    if (v->bytes && happens(f, CORRUPT, f->corrupt, entity, k)) {
        v->corrupt = 1;
        v->corrupt_draw = rnl_chance(f->seed, CORRUPT_WHERE, entity, k);
    }
    v->bleach = (uint8_t)happens(f, BLEACH, f->bleach, entity, k);
    v->ce = (uint8_t)happens(f, CE, f->ce, entity, k);
}

void rnl_fault_corrupt(void *at, uint32_t bytes, uint64_t draw)
{
    unsigned char *p = at;
    uint32_t where = (uint32_t)rnl_chance_below(draw, bytes);
    uint64_t noise = rnl_chance_mix(draw);
    /* One bit, as errors of memory, or up to eight bytes, as errors of a link. */
    if (noise & 1) {
        p[where] ^= (unsigned char)(1u << (noise >> 1 & 7));
        return;
    }
    uint32_t n = 1 + (uint32_t)(noise >> 4 & 7);
    for (uint32_t i = 0; i < n && where + i < bytes; i++)
        p[where + i] ^= (unsigned char)(1 | noise >> (8 + 7 * i));
}
