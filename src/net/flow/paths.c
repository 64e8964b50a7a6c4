/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paths.c - the state machine that paths.h draws. */
#include "net/flow/paths.h"

#include <stdbool.h>
#include <string.h>

#define MS ((uint64_t)1000 * 1000)
static const uint64_t first_gap_ns = 50 * MS, most_gap_ns = 1000 * MS;
enum { WANTED_TRIES = 8 }; /* challenges of the first path, within 5 s */
/* The active path may take twice the round trip of the other path that has responded, and at least this time. */
static const uint64_t least_chance_ns = 10 * MS;
/* After a hint paths are challenged sooner; a hint is repeated at this interval, and counts for so long. */
static const uint64_t hinted_stall_ns = 10 * MS, hint_every_ns = 250 * MS, hint_counts_ns = 1000 * MS;

void rnl_paths_init(struct rnl_paths *w, unsigned count, unsigned active, uint64_t stall_limit_ns,
                    uint64_t confirmed_ns)
{
    memset(w, 0, sizeof *w);
    w->count = (uint8_t)(count < RNL_FLOW_PATHS_MAX ? count : RNL_FLOW_PATHS_MAX);
    w->active = (uint8_t)active;
    w->stall_limit_ns = stall_limit_ns;
    w->confirmed_ns = confirmed_ns;
    w->limit_ns = UINT64_MAX;
}

static void no_hint(struct rnl_paths *w, unsigned from)
{
    w->from = (uint8_t)from;
    w->hint_number = 0;
}

void rnl_paths_set_active(struct rnl_paths *w, unsigned path)
{
    w->active = (uint8_t)path;
    w->hinted_ns = w->asked_number = 0;
    no_hint(w, 0);
}

/* Ends the challenges: their responses are no longer accepted. */
static void end_challenges(struct rnl_paths *w)
{
    memset(w->path, 0, sizeof w->path);
    w->challenging = w->proved = 0;
    w->gap_ns = first_gap_ns;
    w->next_ns = 0;
}

static bool is_active_down(const struct rnl_paths *w)
{
    return w->down >> w->active & 1;
}

/* A path that is better than the one that has responded may respond, too. */
static bool may_be_better(const struct rnl_paths *w)
{
    const unsigned better = w->ranked && w->proved ? (1u << (w->proved - 1)) - 1 : 0;
    return better & ~w->down & ~(1u << w->active);
}

static uint64_t chance_until(const struct rnl_paths *w)
{
    if (is_active_down(w))
        return w->proved_ns + (may_be_better(w) ? least_chance_ns : 0);
    return w->proved_ns + (2 * w->rtt_ns > least_chance_ns ? 2 * w->rtt_ns : least_chance_ns);
}

static uint64_t stall_limit(const struct rnl_paths *w, uint64_t now_ns)
{
    int hinted = w->hinted_ns && now_ns < w->hinted_ns + hint_counts_ns;
    return hinted && hinted_stall_ns < w->stall_limit_ns ? hinted_stall_ns : w->stall_limit_ns;
}

void rnl_paths_want_first(struct rnl_paths *w)
{
    end_challenges(w);
    w->wanted = w->active ? WANTED_TRIES : 0;
}

static uint64_t next_gap(const struct rnl_paths *w)
{
    return 2 * w->gap_ns < most_gap_ns ? 2 * w->gap_ns : most_gap_ns;
}

static void move_to(struct rnl_paths *w, unsigned path, int *move)
{
    rnl_paths_set_active(w, path);
    end_challenges(w);
    w->works_ns = 0;
    w->wanted = 0;
    *move = 1;
}

/* The active path works, and the first is wanted all the same. */
static unsigned step_wanted(struct rnl_paths *w, uint64_t now_ns, int *move)
{
    if (w->proved == 1) {
        move_to(w, 0, move);
        return 0;
    }
    if (now_ns < w->next_ns)
        return 0;
    if (--w->wanted == 0) {
        end_challenges(w);
        return 0;
    }
    w->challenging = 1;
    w->next_ns = now_ns + w->gap_ns;
    w->gap_ns = next_gap(w);
    return 1;
}

unsigned rnl_paths_step(struct rnl_paths *w, uint64_t stuck_ns, uint64_t looked_ns, uint64_t now_ns, int *move)
{
    *move = 0;
    if (w->works_ns && now_ns - w->works_ns < stuck_ns)
        stuck_ns = now_ns - w->works_ns;
    const uint64_t limit_ns = stall_limit(w, now_ns);
    const uint64_t unsure_ns = w->asked_number ? w->asked_ns + hinted_stall_ns : UINT64_MAX;
    const bool silent = stuck_ns >= limit_ns || is_active_down(w) || now_ns >= unsure_ns;
    const uint64_t stalls_ns = stuck_ns && !silent ? now_ns + limit_ns - stuck_ns : UINT64_MAX;
    w->limit_ns = stalls_ns < unsure_ns ? stalls_ns : unsure_ns;
    if (!silent) {
        if (w->wanted)
            return step_wanted(w, now_ns, move);
        if (w->challenging)
            end_challenges(w);
        return 0;
    }
    if (!w->challenging) {
        end_challenges(w);
        w->challenging = 1;
    }
    if (w->proved && looked_ns >= chance_until(w)) {
        move_to(w, w->proved - 1u, move);
        return 0;
    }
    if (now_ns < w->next_ns)
        return 0;
    w->next_ns = now_ns + w->gap_ns;
    w->gap_ns = next_gap(w);
    return (1u << w->count) - 1;
}

void rnl_paths_challenged(struct rnl_paths *w, unsigned path, uint64_t value, uint64_t number, uint64_t now_ns)
{
    struct rnl_path_challenges *a = &w->path[path];
    a->value[a->next] = value;
    a->number[a->next] = number;
    a->sent_ns[a->next] = now_ns;
    a->next = (uint8_t)((a->next + 1) % RNL_PATHS_CHALLENGES);
}

bool rnl_paths_response(struct rnl_paths *w, unsigned path, uint64_t value, uint64_t now_ns)
{
    if (!w->challenging || path >= w->count || value == 0)
        return false;
    for (unsigned k = 0; k < RNL_PATHS_CHALLENGES; k++) {
        struct rnl_path_challenges *a = &w->path[path];
        if (a->value[k] != value)
            continue;
        a->value[k] = 0;
        w->down &= (uint8_t) ~(1u << path);
        uint64_t took_ns = now_ns - a->sent_ns[k];
        if (path == w->active) {
            end_challenges(w);
            w->works_ns = now_ns;
            w->hinted_ns = w->asked_number = 0;
        } else if (!w->proved) {
            w->proved = (uint8_t)(path + 1);
            w->proved_ns = w->next_ns = now_ns; /* all are challenged once more, since the peer responds now */
            w->rtt_ns = took_ns;
        } else if (w->ranked && path + 1 < w->proved) {
            w->proved = (uint8_t)(path + 1);
            w->rtt_ns = took_ns;
        } else if (w->proved == path + 1 && took_ns < w->rtt_ns) {
            w->rtt_ns = took_ns; /* the first response may have waited until the peer made a call */
        }
        return true;
    }
    return false;
}

int rnl_paths_pending(const struct rnl_paths *w, unsigned path, uint64_t number)
{
    for (unsigned k = 0; path < w->count && k < RNL_PATHS_CHALLENGES; k++)
        if (w->path[path].value[k] != 0 && w->path[path].number[k] == number)
            return w->challenging;
    return 0;
}

uint64_t rnl_paths_deadline(const struct rnl_paths *w)
{
    if (w->wanted)
        return w->proved == 1 ? w->proved_ns : w->next_ns;
    if (w->proved)
        return chance_until(w);
    if (w->asked_number && w->challenging)
        return w->next_ns;
    return w->limit_ns;
}

void rnl_paths_acked(struct rnl_paths *w, uint64_t acked)
{
    if (acked >= w->asked_number)
        w->asked_number = 0;
}

bool rnl_paths_hint(struct rnl_paths *w, unsigned path, uint64_t next, uint64_t acked, uint64_t now_ns)
{
    unsigned from = path == w->active ? 0 : path + 1;
    rnl_paths_acked(w, acked);
    if (from != w->from)
        no_hint(w, from);
    if (from == 0)
        return false;
    if (w->hint_number && acked >= w->hint_number) {
        w->hinted_ns = 0;
        if (now_ns < w->hint_sent_ns + w->confirmed_ns)
            return false;
    }
    if (w->hinted_ns && now_ns < w->hinted_ns + hint_every_ns)
        return false;
    w->hinted_ns = w->hint_sent_ns = now_ns;
    w->hint_number = next;
    if (!w->asked_number) {
        w->asked_number = next;
        w->asked_ns = now_ns;
    }
    return true;
}

void rnl_paths_down(struct rnl_paths *w, unsigned down)
{
    w->down = (uint8_t)down;
}

void rnl_paths_doubt(struct rnl_paths *w, unsigned path)
{
    if (path != w->active)
        no_hint(w, w->from);
}
