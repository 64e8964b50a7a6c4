/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waves.c - see waves.h. A report costs constant time, the end of a wave one pass over the ranks. */
#include "job/waves.h"

#include "base/error.h"

#include <stdlib.h>

enum rank_state { ABSENT, HERE, GONE };

struct rank {
    uint8_t state;
    uint8_t reported;          /* in this wave */
    uint64_t activity, before; /* as of this wave's report, and of the last one's */
};

struct rnl_waves {
    uint64_t wave;
    uint32_t size, absent, here, reported;
    uint8_t inconclusive; /* a rank that was here went during this wave */
    uint8_t done;
    struct rank rank[];
};

int rnl_waves_new(uint32_t size, struct rnl_waves **out)
{
    struct rnl_waves *w = calloc(1, sizeof *w + size * sizeof w->rank[0]);
    if (w == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to watch the close of a job of %u rank%s", size, RNL_S(size));
    w->size = w->absent = size;
    *out = w;
    return 0;
}

void rnl_waves_free(struct rnl_waves *w)
{
    free(w);
}

uint64_t rnl_waves_now(const struct rnl_waves *w)
{
    return w->wave;
}

int rnl_waves_lacks(const struct rnl_waves *w, uint32_t rank)
{
    return !w->done && w->absent == 0 && w->reported > 0 && rank < w->size && w->rank[rank].state == HERE &&
           !w->rank[rank].reported;
}

void rnl_waves_join(struct rnl_waves *w, uint32_t rank)
{
    if (rank >= w->size || w->rank[rank].state == HERE || w->done)
        return;
    if (w->rank[rank].state == ABSENT)
        w->absent--;
    else
        w->inconclusive = 1;
    w->rank[rank].state = HERE;
    w->here++;
}

void rnl_waves_unjoin(struct rnl_waves *w, uint32_t rank)
{
    if (rank >= w->size || w->rank[rank].state != HERE || w->rank[rank].reported)
        return;
    w->rank[rank].state = ABSENT;
    w->absent++;
    w->here--;
}

/* The wave ends when the last report is in. */
static enum rnl_waves_step look(struct rnl_waves *w)
{
    if (w->done || w->absent > 0 || w->here == 0 || w->reported < w->here)
        return RNL_WAVES_WAIT;
    int quiet = w->wave > 0 && !w->inconclusive;
    for (uint32_t i = 0; i < w->size; i++) {
        struct rank *r = &w->rank[i];
        if (r->state != HERE)
            continue;
        quiet = quiet && r->activity == r->before;
        r->before = r->activity;
        r->reported = 0;
    }
    if (quiet) {
        w->done = 1;
        return RNL_WAVES_DONE;
    }
    w->reported = 0;
    w->inconclusive = 0;
    w->wave++;
    return RNL_WAVES_ASK;
}

enum rnl_waves_step rnl_waves_gone(struct rnl_waves *w, uint32_t rank)
{
    if (rank >= w->size || w->rank[rank].state == GONE)
        return RNL_WAVES_WAIT;
    struct rank *r = &w->rank[rank];
    if (r->state == ABSENT) {
        w->absent--;
    } else {
        w->here--;
        w->reported -= r->reported;
        w->inconclusive = 1;
    }
    r->state = GONE;
    r->reported = 0;
    return look(w);
}

enum rnl_waves_step rnl_waves_report(struct rnl_waves *w, uint32_t rank, uint64_t wave, uint64_t activity)
{
    if (rank >= w->size || w->rank[rank].state != HERE || wave > w->wave)
        return RNL_WAVES_WRONG;
    if (w->done || wave < w->wave)
        return RNL_WAVES_WAIT;
    struct rank *r = &w->rank[rank];
    r->activity = activity;
    w->reported += !r->reported;
    r->reported = 1;
    return look(w);
}
