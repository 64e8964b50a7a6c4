/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest_dlf.c - DLF, "delay and loss fraction". The queueing delay of the path, which is the round trip above the
 * least one, is held at a target. The response to losses and marks is in proportion to them: a round with losses
 * reduces the window by half their smoothed fraction, so that random losses cost hardly more than themselves.
 *
 * On a slow wire a full packet takes longer than a short one by more than that target. So what it takes longer
 * without a queue is none, and the target is at least that: a queue of about one packet.
 *
 * Hosts that sleep wake late, by more than the target. A queue that is shorter than that is empty before they send
 * again, so a variation above the target counts more: the queue may be as long as hosts are late.
 *
 * The target is higher for windows of few packets, because many flows that share a queue must be allowed a queue of at
 * least a few packets, and the flow with the smaller window has to gain. Variation of the round trip (hosts that pause,
 * a network that delays at random) is estimated and not counted as queueing. Windows of a few packets, which many flows
 * that share a link have, grow more slowly near the target and are reduced by the whole excess above it.
 *
 * Loss-based flows fill a queue until it overflows, and a flow that holds a target beside them gets nothing. So when a
 * queue stays far above the target although our window is very small, the flow is loss-based, too, for a while. */
#include "net/flow/congest.h"

enum {
    LEAST_Q8 = 13,          /* the least window: 0.05 of a packet */
    SPREAD_NS = 9797,       /* a window of w packets adds SPREAD_NS * (1 / sqrt(w) - 0.1) to the target, */
    SPREAD_MAX_NS = 30000,  /* at most this: 30 us at 0.1 packets, none at 100 */
    CUT_DELAY_Q16 = 52429,  /* the reduction is 0.8 of the excess above the target, as a part of the round trip */
    CUT_MOST_Q16 = 1 << 15, /* the largest reduction at once: half */
    MANY_LEAST = 3,         /* many flows share a link if the window has at least so many packets, */
    MANY_MOST = 16,         /* and fewer than these: then the reduction is 1.0 of the excess, */
    NEAR_PART = 2,          /* and from half the target on a round trip adds one packet divided by this */
    SMOOTH = 4,             /* the weight of a round in the smoothed fractions is 1/4 */
    FAST_PACKETS = 4,       /* packets that a round trip adds while the queue is below half the target; */
    FAST_SHIFT = 4,         /* 1/16 of the window if that is more, and the loss fraction is below the next line */
    FAST_LOSS_Q16 = 655,    /* 1 % */
    NOISE_FREE_NS = 3000,   /* the decrease from one round trip to the next that is normal in a steady queue; */
    NOISE_TIMES = 4,        /* this many times the average decrease beyond is not counted as queue, */
    NOISE_MORE = 4,         /* and so many times more what exceeds the target, since then hosts wake late */
    ROUGH_TARGETS = 5,      /* a decrease of so many targets at once shows that a host paused, */
    ROUGH_ROUNDS = 32,      /* which it may do again within so many round trips */
    RIVAL_WINDOW_Q8 = 32,   /* flows compete with ours if our window is below 1/8 packet, */
    RIVAL_AFTER = 16,       /* and the queue is an eighth above the target for so many round trips; */
    RIVAL_FOR = 512,        /* then the flow is loss-based for so many round trips */
    SMALL_STEP = 4,         /* a window below a packet grows by a quarter of what is acknowledged */
    START_QUEUE = 8,        /* slow start goes on while the queue is below this part of the least round trip */
    START_LOSS = 10         /* slow start ends when one byte in so many was lost */
};

/* Returns the square root, rounded down. */
static uint64_t root(uint64_t x)
{
    if (x < 2)
        return x;
    uint64_t r = (uint64_t)1 << ((65 - __builtin_clzll(x)) / 2);
    for (;;) {
        uint64_t better = (r + x / r) / 2;
        if (better >= r)
            return r;
        r = better;
    }
}

/* Returns the target queueing delay. A queue below half of the least target needs no square root, since the result is
 * the same for any target. */
static uint32_t target_ns(const struct rnl_congest *c, const struct rnl_congest_limits *limits,
                          const struct rnl_congest_news *news, uint32_t queue)
{
    if (rnl_congest_near(limits, news->base_ns))
        return limits->near_target_ns;
    uint32_t least = limits->target_ns > news->wire_ns ? limits->target_ns : news->wire_ns;
    if (queue < least / 2)
        return least;
    uint64_t packets_q16 = (c->window << 8) / news->packet;
    uint64_t extra = ((uint64_t)SPREAD_NS << 16) / (root(packets_q16 << 16) + 1);
    extra = extra > SPREAD_NS / 10 ? extra - SPREAD_NS / 10 : 0;
    return least + (extra < SPREAD_MAX_NS ? (uint32_t)extra : SPREAD_MAX_NS);
}

/* Reduces the window by a fraction of it, at most once in a round trip. */
static void cut(struct rnl_congest *c, const struct rnl_congest_news *news, uint64_t fraction_q16)
{
    if (news->now_ns - c->cut_ns < news->smoothed_ns)
        return;
    if (fraction_q16 > CUT_MOST_Q16)
        fraction_q16 = CUT_MOST_Q16;
    c->window -= (c->window >> 16) * fraction_q16 + ((c->window & 0xffff) * fraction_q16 >> 16);
    c->threshold = c->window;
    c->cut_ns = news->now_ns;
}

/* true = the window has the size of those of many flows that share a link. A flow that is alone has a larger one, and
 * should not follow each round trip of a network that delays at random; a flow with a smaller one has to gain. */
static bool one_of_many(const struct rnl_congest *c, const struct rnl_congest_news *news)
{
    uint64_t packet = (uint64_t)news->packet << 8;
    return c->window >= MANY_LEAST * packet && c->window < MANY_MOST * packet;
}

/* Returns by which fraction to reduce the window for a queue that is above_ns above the target. */
static uint64_t excess_q16(const struct rnl_congest *c, const struct rnl_congest_news *news, uint64_t above_ns)
{
    return above_ns * (one_of_many(c, news) ? 1 << 16 : CUT_DELAY_Q16) / news->rtt_ns;
}

static void grow(struct rnl_congest *c, const struct rnl_congest_news *news, uint32_t queue, uint32_t target)
{
    uint64_t packet = (uint64_t)news->packet << 8, got = (uint64_t)news->acked << 8;
    if (c->window < packet) {
        c->window += got / SMALL_STEP;
        return;
    }
    if (c->window < c->threshold && !c->state.dlf.rival_ns) {
        c->window += got;
        return;
    }
    uint64_t step = packet;
    if (queue >= target / 2 && one_of_many(c, news) && !c->state.dlf.rival_ns) {
        step = packet / NEAR_PART; /* what many flows add in one round trip exceeds the target until they see it */
    } else if (queue < target / 2 && c->window >= FAST_PACKETS * packet && !c->state.dlf.rival_ns) {
        step = FAST_PACKETS * packet;
        if (c->state.dlf.loss_q16 < FAST_LOSS_Q16 && c->window >> FAST_SHIFT > step)
            step = c->window >> FAST_SHIFT;
    }
    c->window += step * news->acked / (c->window >> 8);
}

/* Returns the queueing delay: the round trip above the least one, without its variation, which has other reasons. */
static uint32_t queue_ns(struct rnl_congest *c, const struct rnl_congest_limits *limits,
                         const struct rnl_congest_news *news)
{
    uint32_t fell = c->state.dlf.last_ns > news->rtt_ns ? c->state.dlf.last_ns - news->rtt_ns : 0;
    c->state.dlf.last_ns = news->rtt_ns;
    if (fell > ROUGH_TARGETS * (uint64_t)limits->target_ns)
        c->rough = ROUGH_ROUNDS;
    c->state.dlf.noise_ns = (uint32_t)(((uint64_t)7 * c->state.dlf.noise_ns + fell) / 8);
    uint64_t noise = 0;
    if (c->state.dlf.noise_ns > NOISE_FREE_NS)
        noise = (uint64_t)NOISE_TIMES * (c->state.dlf.noise_ns - NOISE_FREE_NS);
    if (c->state.dlf.noise_ns > limits->target_ns)
        noise += (uint64_t)NOISE_MORE * (c->state.dlf.noise_ns - limits->target_ns);
    uint64_t base = news->base_ns + news->wire_ns + noise;
    return news->rtt_ns > base ? (uint32_t)(news->rtt_ns - base) : 0;
}

/* A queue that stays far above the target, however small our window is, is filled by loss-based flows. To get a share,
 * this flow becomes loss-based for a while; then it looks again. */
static void look_for_rival(struct rnl_congest *c, const struct rnl_congest_news *news, uint32_t queue, uint32_t target)
{
    if (c->state.dlf.rival_ns) {
        if (queue >= target / 2 && news->now_ns < c->state.dlf.rival_ns)
            return;
        c->state.dlf.rival_ns = 0;
        c->state.dlf.high = 0;
        c->threshold = c->window;
    } else if (queue < target) {
        c->state.dlf.high = 0;
    } else if (news->now_ns - c->cut_ns >= news->smoothed_ns && queue > target + target / 8 &&
               c->window < (uint64_t)news->packet * RIVAL_WINDOW_Q8 && ++c->state.dlf.high >= RIVAL_AFTER) {
        c->state.dlf.rival_ns = news->now_ns + RIVAL_FOR * (uint64_t)news->smoothed_ns;
        c->state.dlf.recovery = 0;
    }
}

static void smooth(uint32_t *fraction_q16, uint64_t part, uint64_t whole)
{
    int64_t now_q16 = (int64_t)((part << 16) / whole);
    *fraction_q16 = (uint32_t)(*fraction_q16 + (now_q16 - (int64_t)*fraction_q16) / SMOOTH);
}

static void acked(struct rnl_congest *c, const struct rnl_congest_limits *limits, const struct rnl_congest_news *news,
                  int round)
{
    if (news->rtt_ns && news->base_ns) {
        uint32_t least = news->base_ns + news->wire_ns;
        uint32_t longer = news->rtt_ns > least ? news->rtt_ns - least : 0;
        uint32_t queue = queue_ns(c, limits, news), target = target_ns(c, limits, news, longer);
        look_for_rival(c, news, longer, target);
        /* A flow that does not use its window makes no queue; its long round trips come from busy hosts. */
        uint64_t spared = (uint64_t)limits->initial_packets * news->packet << 8;
        /* On a long path a host that wakes late exceeds the target, so slow start ends at a part of the round trip. */
        if (c->threshold == RNL_CONGEST_NO_THRESHOLD && target < news->base_ns / START_QUEUE)
            target = news->base_ns / START_QUEUE;
        if (queue >= target && !c->state.dlf.rival_ns && (news->limited || news->credited || c->window > spared))
            cut(c, news, excess_q16(c, news, queue - target));
        else if (news->limited)
            grow(c, news, queue, target);
    }
    uint64_t whole = (uint64_t)c->acked + c->lost;
    if (!round || whole == 0)
        return;
    if (c->rough)
        c->rough--;
    smooth(&c->state.dlf.loss_q16, c->lost, whole);
    smooth(&c->state.dlf.mark_q16, c->marked, whole);
    uint64_t fraction = (c->lost ? c->state.dlf.loss_q16 : 0) + (uint64_t)(c->marked ? c->state.dlf.mark_q16 : 0);
    if (fraction)
        cut(c, news, fraction / 2);
}

static void lost(struct rnl_congest *c, const struct rnl_congest_news *news, uint64_t number)
{
    if (c->state.dlf.rival_ns) {
        if (number < c->state.dlf.recovery)
            return;
        c->state.dlf.recovery = news->next;
        c->window /= 2;
        c->threshold = c->window;
        c->cut_ns = news->now_ns;
        return;
    }
    /* Only slow start responds here, when it has overshot and loses a large part of a round; acked() does the rest. */
    if (c->threshold != RNL_CONGEST_NO_THRESHOLD || c->lost < 2 * news->packet ||
        (uint64_t)c->lost * START_LOSS <= (uint64_t)c->lost + c->acked)
        return;
    c->window /= 2;
    c->threshold = c->window;
    c->cut_ns = news->now_ns;
}

static void collapse(struct rnl_congest *c, const struct rnl_congest_news *news)
{
    cut(c, news, CUT_MOST_Q16);
}

const struct rnl_congest_ops rnl_congest_dlf = {LEAST_Q8, acked, lost, collapse};
