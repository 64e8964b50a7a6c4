/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ways.c - see ways.h. */
#include "reliable/ways.h"

#include <string.h>

#define MS ((uint64_t)1000 * 1000)
static const uint64_t first_gap_ns = 50 * MS, most_gap_ns = 1000 * MS;
/* The aim gets as long as twice the round trip of the other that has answered, and no less than this. */
static const uint64_t least_chance_ns = 10 * MS;
/* With a hint the patience is short, and so long a hint counts. */
static const uint64_t hinted_patience_ns = 10 * MS, hint_every_ns = 250 * MS, hint_counts_ns = 1000 * MS;

void rnl_ways_init(struct rnl_ways *w, unsigned count, unsigned aim, uint64_t patience_ns, uint64_t settled_ns)
{
    memset(w, 0, sizeof *w);
    w->count = (uint8_t)(count < RNL_WAYS_MAX ? count : RNL_WAYS_MAX);
    w->aim = (uint8_t)aim;
    w->patience_ns = patience_ns;
    w->settled_ns = settled_ns;
}

static void no_hint(struct rnl_ways *w, unsigned from)
{
    w->from = (uint8_t)from;
    w->hint_number = 0;
}

void rnl_ways_aim(struct rnl_ways *w, unsigned way)
{
    w->aim = (uint8_t)way;
    w->hinted_ns = 0;
    no_hint(w, 0);
}

/* What is asked is of no interest any more, and no answer to it is taken. */
static void settle(struct rnl_ways *w)
{
    memset(w->way, 0, sizeof w->way);
    w->asking = w->proved = 0;
    w->gap_ns = first_gap_ns;
    w->next_ns = 0;
}

static uint64_t chance_until(const struct rnl_ways *w)
{
    return w->proved_ns + (2 * w->rtt_ns > least_chance_ns ? 2 * w->rtt_ns : least_chance_ns);
}

static uint64_t patience(const struct rnl_ways *w, uint64_t now_ns)
{
    int hinted = w->hinted_ns && now_ns < w->hinted_ns + hint_counts_ns;
    return hinted && hinted_patience_ns < w->patience_ns ? hinted_patience_ns : w->patience_ns;
}

unsigned rnl_ways_step(struct rnl_ways *w, uint64_t stuck_ns, uint64_t looked_ns, uint64_t now_ns, int *move)
{
    *move = 0;
    if (w->works_ns && now_ns - w->works_ns < stuck_ns)
        stuck_ns = now_ns - w->works_ns;
    if (stuck_ns == 0 || stuck_ns < patience(w, now_ns)) {
        if (w->asking)
            settle(w);
        return 0;
    }
    if (!w->asking) {
        settle(w);
        w->asking = 1;
    }
    if (w->proved && looked_ns >= chance_until(w)) {
        rnl_ways_aim(w, w->proved - 1u);
        settle(w);
        w->works_ns = 0;
        *move = 1;
        return 0;
    }
    if (now_ns < w->next_ns)
        return 0;
    w->next_ns = now_ns + w->gap_ns;
    w->gap_ns = 2 * w->gap_ns < most_gap_ns ? 2 * w->gap_ns : most_gap_ns;
    return (1u << w->count) - 1;
}

void rnl_ways_asked(struct rnl_ways *w, unsigned way, uint64_t value, uint64_t number, uint64_t now_ns)
{
    struct rnl_way *a = &w->way[way];
    a->value[a->next] = value;
    a->number[a->next] = number;
    a->asked_ns[a->next] = now_ns;
    a->next = (uint8_t)((a->next + 1) % RNL_WAYS_VALUES);
}

int rnl_ways_answered(struct rnl_ways *w, unsigned way, uint64_t value, uint64_t now_ns)
{
    if (!w->asking || way >= w->count || value == 0)
        return 0;
    for (unsigned k = 0; k < RNL_WAYS_VALUES; k++) {
        struct rnl_way *a = &w->way[way];
        if (a->value[k] != value)
            continue;
        a->value[k] = 0;
        uint64_t took_ns = now_ns - a->asked_ns[k];
        if (way == w->aim) {
            settle(w);
            w->works_ns = now_ns;
            w->hinted_ns = 0;
        } else if (!w->proved) {
            w->proved = (uint8_t)(way + 1);
            w->proved_ns = w->next_ns = now_ns; /* all are asked once more: the peer is there to answer */
            w->rtt_ns = took_ns;
        } else if (w->proved == way + 1 && took_ns < w->rtt_ns) {
            w->rtt_ns = took_ns; /* the first answer may have taken as long as the peer was away */
        }
        return 1;
    }
    return 0;
}

int rnl_ways_under_way(const struct rnl_ways *w, unsigned way, uint64_t number)
{
    for (unsigned k = 0; way < w->count && k < RNL_WAYS_VALUES; k++)
        if (w->way[way].value[k] != 0 && w->way[way].number[k] == number)
            return w->asking;
    return 0;
}

uint64_t rnl_ways_deadline(const struct rnl_ways *w)
{
    return w->proved ? chance_until(w) : UINT64_MAX;
}

int rnl_ways_hint(struct rnl_ways *w, unsigned way, uint64_t next, uint64_t acked, uint64_t now_ns)
{
    unsigned from = way == w->aim ? 0 : way + 1;
    if (from != w->from)
        no_hint(w, from);
    if (from == 0)
        return 0;
    if (w->hint_number && acked >= w->hint_number) {
        w->hinted_ns = 0;
        if (now_ns < w->question_ns + w->settled_ns)
            return 0;
    }
    if (w->hinted_ns && now_ns < w->hinted_ns + hint_every_ns)
        return 0;
    w->hinted_ns = w->question_ns = now_ns;
    w->hint_number = next;
    return 1;
}

void rnl_ways_doubt(struct rnl_ways *w, unsigned way)
{
    if (way != w->aim)
        no_hint(w, w->from);
}
