/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rejoin.c - see rejoin.h. */
#include "job/rejoin.h"

#define MS ((uint64_t)1000 * 1000)

void rnl_rejoin_heard(struct rnl_rejoin *r, uint64_t now)
{
    r->heard_ns = now;
}

void rnl_rejoin_cut(struct rnl_rejoin *r, uint64_t now)
{
    if (r->cut_ns == 0)
        r->cut_ns = now > 0 ? now : 1;
}

void rnl_rejoin_back(struct rnl_rejoin *r, uint64_t now)
{
    *r = (struct rnl_rejoin){.heard_ns = now};
}

void rnl_rejoin_tries(struct rnl_rejoin *r, uint32_t n)
{
    r->tries = r->under_way = n;
    r->refused = 0;
}

void rnl_rejoin_met(struct rnl_rejoin *r)
{
    r->met = r->met_now = 1;
}

void rnl_rejoin_failed(struct rnl_rejoin *r, int refused)
{
    r->refused += refused != 0;
    if (r->under_way > 0)
        r->under_way--;
}

static uint64_t ends(const struct rnl_rejoin *r)
{
    if (r->met)
        return r->heard_ns + RNL_REJOIN_STOPPED_MOST_MS * MS;
    return r->cut_ns != 0 ? r->cut_ns + RNL_REJOIN_CUT_MS * MS : r->heard_ns + RNL_REJOIN_SILENT_MOST_MS * MS;
}

static enum rnl_rejoin_step look_at_round(struct rnl_rejoin *r, uint64_t now)
{
    if (r->under_way > 0 && now < r->round_ends_ns)
        return RNL_REJOIN_WAIT;
    r->trying = 0;
    r->met = r->met_now;
    r->next_ns = now + RNL_REJOIN_PAUSE_MS * MS;
    int all_refused = r->tries > 0 && r->refused == r->tries;
    return r->cut_ns != 0 && all_refused && !r->met ? RNL_REJOIN_GIVE_UP : RNL_REJOIN_PAUSE;
}

enum rnl_rejoin_step rnl_rejoin_look(struct rnl_rejoin *r, uint64_t now)
{
    if (r->cut_ns == 0 && now < r->heard_ns + RNL_REJOIN_SILENT_MS * MS) {
        if (!r->trying)
            return RNL_REJOIN_WAIT;
        r->trying = 0;
        return RNL_REJOIN_STOP;
    }
    if (now >= ends(r))
        return RNL_REJOIN_GIVE_UP;
    if (r->trying)
        return look_at_round(r, now);
    if (now < r->next_ns)
        return RNL_REJOIN_WAIT;
    r->trying = 1;
    r->met_now = 0; /* met: until this round ends without */
    r->tries = 0;
    r->round_ends_ns = now + RNL_REJOIN_ROUND_MS * MS;
    return RNL_REJOIN_TRY;
}

uint64_t rnl_rejoin_deadline_ns(const struct rnl_rejoin *r)
{
    uint64_t at = ends(r), next = r->trying ? r->round_ends_ns : r->next_ns;
    if (r->cut_ns == 0 && r->heard_ns + RNL_REJOIN_SILENT_MS * MS > next)
        next = r->heard_ns + RNL_REJOIN_SILENT_MS * MS;
    return next < at ? next : at;
}
