/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest_cubic.c - CUBIC (RFC 9438): the window grows as a cubic function of the time since the last loss, and at
 * least as fast as NewReno's would. On round trips of microseconds, NewReno's growth is the one that counts. */
#include "net/flow/congest.h"

enum { LEAST_Q8 = 2 * 256, BETA_Q10 = 717 /* 0.7 */, ALPHA_Q10 = 542 /* 3 (1 - beta) / (1 + beta) */ };

static uint64_t cube_root(uint64_t x)
{
    uint64_t r = 0;
    for (int bit = 21; bit >= 0; bit--) {
        uint64_t try = r | (uint64_t)1 << bit;
        if (try <= 2097151 && try * try * try <= x)
            r = try;
    }
    return r;
}

static void lost(struct rnl_congest *c, const struct rnl_congest_news *news, uint64_t number)
{
    if (number < c->state.cubic.recovery)
        return;
    c->state.cubic.recovery = news->next;
    /* Fast convergence (RFC 9438, 4.7): a flow that loses below its last W_max leaves room for other flows. */
    c->state.cubic.most = c->window < c->state.cubic.most ? c->window * (1024 + BETA_Q10) / 2048 : c->window;
    c->window = c->window * BETA_Q10 / 1024;
    c->threshold = c->window;
    c->cut_ns = news->now_ns;
    c->state.cubic.began_ns = 0;
}

/* W_cubic(t) = 0.4 (t - K)^3 + W_max, in packets and seconds. */
static uint64_t cubic_window(const struct rnl_congest *c, uint64_t packet, uint64_t t_us)
{
    uint64_t k_us = c->state.cubic.k_us, away = t_us > k_us ? t_us - k_us : k_us - t_us;
    if (away > 22000000)
        away = 22000000; /* the window would be clamped beyond anyway */
    uint64_t grown = away * away / 1000000 * away / 1000000 * (packet * 2 / 5) / 1000000;
    if (t_us > k_us)
        return c->state.cubic.most + grown;
    return c->state.cubic.most > grown ? c->state.cubic.most - grown : 0;
}

static void acked(struct rnl_congest *c, const struct rnl_congest_limits *limits, const struct rnl_congest_news *news,
                  int round)
{
    (void)limits;
    (void)round;
    uint64_t packet = (uint64_t)news->packet << 8;
    if (news->marked)
        lost(c, news, news->number);
    if (news->number < c->state.cubic.recovery || !news->limited)
        return;
    if (c->window < c->threshold) {
        c->window += (uint64_t)news->acked << 8;
        return;
    }
    if (c->state.cubic.began_ns == 0) {
        c->state.cubic.began_ns = news->now_ns ? news->now_ns : 1;
        c->state.cubic.reno = c->window;
        uint64_t below = c->state.cubic.most > c->window ? c->state.cubic.most - c->window : 0;
        /* K^3 = (W_max - window) / 0.4, in seconds and packets; the root is taken in milliseconds. */
        c->state.cubic.k_us = cube_root(below * 1000 / packet * 2500000) * 1000;
        if (c->state.cubic.most < c->window)
            c->state.cubic.most = c->window;
    }
    uint64_t t_us = (news->now_ns - c->state.cubic.began_ns + news->smoothed_ns) / 1000;
    uint64_t want = cubic_window(c, packet, t_us);
    c->state.cubic.reno += packet * ALPHA_Q10 / 1024 * news->acked / (c->window >> 8);
    if (want < c->state.cubic.reno)
        want = c->state.cubic.reno;
    if (want > c->window + c->window / 2)
        want = c->window + c->window / 2;
    if (want > c->window)
        c->window += (want - c->window) / (c->window / packet + 1) * (news->acked / news->packet + 1);
}

static void collapse(struct rnl_congest *c, const struct rnl_congest_news *news)
{
    (void)news;
    c->window = 0; /* the caller raises it to the least window */
    c->state.cubic.recovery = 0;
    c->state.cubic.began_ns = 0;
}

const struct rnl_congest_ops rnl_congest_cubic = {LEAST_Q8, acked, lost, collapse};
