/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest_newreno.c - NewReno (RFC 9002, 7), with which other algorithms are compared, and beside which they must
 * get a share of a link. */
#include "net/flow/congest.h"

enum { LEAST_Q8 = 2 * 256 };

static void lost(struct rnl_congest *c, const struct rnl_congest_news *news, uint64_t number)
{
    if (number < c->state.newreno.recovery)
        return;
    c->state.newreno.recovery = news->next;
    c->window /= 2;
    c->threshold = c->window;
    c->cut_ns = news->now_ns;
}

static void acked(struct rnl_congest *c, const struct rnl_congest_limits *limits, const struct rnl_congest_news *news,
                  int round)
{
    (void)limits;
    (void)round;
    if (news->marked)
        lost(c, news, news->number);
    if (news->number < c->state.newreno.recovery || !news->limited)
        return;
    if (c->window < c->threshold)
        c->window += (uint64_t)news->acked << 8;
    else
        c->window += ((uint64_t)news->packet << 8) * news->acked / (c->window >> 8);
}

static void collapse(struct rnl_congest *c, const struct rnl_congest_news *news)
{
    (void)news;
    c->window = 0; /* the caller raises it to the least window */
    c->state.newreno.recovery = 0;
}

const struct rnl_congest_ops rnl_congest_newreno = {LEAST_Q8, acked, lost, collapse};
