/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest_dlf.c - "delay and loss fraction". The queue on the path, seen as the round trip above the least one, is held
 * at a target. Losses (and marks) say how much is wrong, not that something is: a round trip with losses cuts by half
 * their smoothed fraction, so that random losses cost hardly more than themselves.
 *
 * The target is higher for windows of few packets: many flows that share a queue must be allowed one that is at least a
 * few packets long, and the flow with the smaller window has to be the one that gains. Round trips that jump (hosts
 * that pause, a network that delays at random) are no queue: as far as they jump, they are not counted. Windows of some
 * packets, as many flows have that share a link, grow more slowly near the target and are cut by all that is above it.
 *
 * Others fill a queue until it loses. Who keeps to a target beside them gets nothing; so when a queue stays far above
 * it although our window is next to nothing, the flow does as they do for a while. */
#include "reliable/congest.h"

enum {
    LEAST_Q8 = 13,          /* of a packet: 0.05 */
    SPREAD_NS = 9797,       /* extra target of a window of w packets: SPREAD_NS * (1 / sqrt(w) - 0.1), ... */
    SPREAD_MAX_NS = 30000,  /* ... 30 us at 0.1 packets, none at 100 */
    CUT_DELAY_Q16 = 52429,  /* 0.8 of what the queue is above the target, in round trips */
    CUT_MOST_Q16 = 1 << 15, /* never more than half at once */
    MANY_LEAST = 3,         /* windows of so many packets */
    MANY_MOST = 16,         /* and less than so many: cut by 1.0 of that, */
    NEAR_PART = 2,          /* and from half the target on grown by half a packet in a round trip */
    SMOOTH = 4,             /* loss fraction: 1/4 of each round's */
    FAST_PACKETS = 4,       /* growth in a round trip while the queue is below half the target, */
    FAST_SHIFT = 4,         /* or 1/16 of the window, if the loss fraction is below ... */
    FAST_LOSS_Q16 = 655,    /* ... 1 % */
    NOISE_FREE_NS = 3000,   /* round trips fall so far from one to the next in a calm queue; what they fall beyond */
    NOISE_TIMES = 4,        /* on average, so many times, is not counted as queue */
    ROUGH_TARGETS = 5,      /* no queue that is held at a target falls so many of it at once: a host paused, */
    ROUGH_ROUNDS = 32,      /* and may do so again for so many round trips */
    RIVAL_WINDOW_Q8 = 32,   /* with less than 1/8 packet, */
    RIVAL_AFTER = 16,       /* so many round trips above the target by an eighth, */
    RIVAL_FOR = 512,        /* and so many with the loss-driven law then */
    SMALL_STEP = 4,         /* windows below a packet grow by a quarter of what is acknowledged */
    START_QUEUE = 8,        /* slow start goes on with a queue of less than this part of the way */
    START_LOSS = 10         /* slow start ends when one byte in so many was lost */
};

/* Square root, rounded down. */
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

/* For a queue so short that it is below half of any target, the least target is as good. */
static uint32_t target_ns(const struct rnl_congest *c, const struct rnl_congest_limits *limits,
                          const struct rnl_congest_news *news, uint32_t queue)
{
    if (rnl_congest_near(limits, news->base_ns))
        return limits->near_target_ns;
    if (queue < limits->target_ns / 2)
        return limits->target_ns;
    uint64_t packets_q16 = (c->window << 8) / news->packet;
    uint64_t extra = ((uint64_t)SPREAD_NS << 16) / (root(packets_q16 << 16) + 1);
    extra = extra > SPREAD_NS / 10 ? extra - SPREAD_NS / 10 : 0;
    return limits->target_ns + (extra < SPREAD_MAX_NS ? (uint32_t)extra : SPREAD_MAX_NS);
}

/* At most once in a round trip. */
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

/* What many flows that share a link have. One that is alone has more, and does better not to follow each round trip of
 * a network that delays at random; one with next to nothing has to gain. */
static int one_of_many(const struct rnl_congest *c, const struct rnl_congest_news *news)
{
    uint64_t packet = (uint64_t)news->packet << 8;
    return c->window >= MANY_LEAST * packet && c->window < MANY_MOST * packet;
}

/* What the queue is above the target, as a part of the round trip. */
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
    if (c->window < c->threshold && !c->law.dlf.rival_ns) {
        c->window += got;
        return;
    }
    uint64_t step = packet;
    if (queue >= target / 2 && one_of_many(c, news) && !c->law.dlf.rival_ns) {
        step = packet / NEAR_PART; /* what many add at once stands above the target until they see it */
    } else if (queue < target / 2 && c->window >= FAST_PACKETS * packet && !c->law.dlf.rival_ns) {
        step = FAST_PACKETS * packet;
        if (c->law.dlf.loss_q16 < FAST_LOSS_Q16 && c->window >> FAST_SHIFT > step)
            step = c->window >> FAST_SHIFT;
    }
    c->window += step * news->acked / (c->window >> 8);
}

/* The queue as far as it is one: round trips that jump up and down do so for other reasons. */
static uint32_t queue_ns(struct rnl_congest *c, const struct rnl_congest_limits *limits,
                         const struct rnl_congest_news *news)
{
    uint32_t fell = c->law.dlf.last_ns > news->rtt_ns ? c->law.dlf.last_ns - news->rtt_ns : 0;
    c->law.dlf.last_ns = news->rtt_ns;
    if (fell > ROUGH_TARGETS * (uint64_t)limits->target_ns)
        c->rough = ROUGH_ROUNDS;
    c->law.dlf.noise_ns = (uint32_t)(((uint64_t)7 * c->law.dlf.noise_ns + fell) / 8);
    uint64_t noise = 0;
    if (c->law.dlf.noise_ns > NOISE_FREE_NS)
        noise = (uint64_t)NOISE_TIMES * (c->law.dlf.noise_ns - NOISE_FREE_NS);
    uint64_t base = news->base_ns + noise;
    return news->rtt_ns > base ? (uint32_t)(news->rtt_ns - base) : 0;
}

/* A queue that stays far above the target, however small our window: somebody fills it who does not mind. To be left
 * anything we have to do as they do, for a while; then we look again. */
static void look_for_rival(struct rnl_congest *c, const struct rnl_congest_news *news, uint32_t queue, uint32_t target)
{
    if (c->law.dlf.rival_ns) {
        if (queue >= target / 2 && news->now_ns < c->law.dlf.rival_ns)
            return;
        c->law.dlf.rival_ns = 0;
        c->law.dlf.high = 0;
        c->threshold = c->window;
    } else if (queue < target) {
        c->law.dlf.high = 0;
    } else if (news->now_ns - c->cut_ns >= news->smoothed_ns && queue > target + target / 8 &&
               c->window < (uint64_t)news->packet * RIVAL_WINDOW_Q8 && ++c->law.dlf.high >= RIVAL_AFTER) {
        c->law.dlf.rival_ns = news->now_ns + RIVAL_FOR * (uint64_t)news->smoothed_ns;
        c->law.dlf.recovery = 0;
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
        uint32_t longer = news->rtt_ns > news->base_ns ? news->rtt_ns - news->base_ns : 0;
        uint32_t queue = queue_ns(c, limits, news), target = target_ns(c, limits, news, longer);
        look_for_rival(c, news, longer, target);
        /* Who does not use its window makes no queue: what such round trips tell of is a host that was busy elsewhere.
         */
        uint64_t spared = (uint64_t)limits->initial_packets * news->packet << 8;
        /* On a long way a host that wakes late makes more than the target: slow start ends by what is much of the way.
         */
        if (c->threshold == RNL_CONGEST_NO_THRESHOLD && target < news->base_ns / START_QUEUE)
            target = news->base_ns / START_QUEUE;
        if (queue >= target && !c->law.dlf.rival_ns && (news->limited || news->credited || c->window > spared))
            cut(c, news, excess_q16(c, news, queue - target));
        else if (news->limited)
            grow(c, news, queue, target);
    }
    uint64_t whole = (uint64_t)c->acked + c->lost;
    if (!round || whole == 0)
        return;
    if (c->rough)
        c->rough--;
    smooth(&c->law.dlf.loss_q16, c->lost, whole);
    smooth(&c->law.dlf.mark_q16, c->marked, whole);
    uint64_t fraction = (c->lost ? c->law.dlf.loss_q16 : 0) + (uint64_t)(c->marked ? c->law.dlf.mark_q16 : 0);
    if (fraction)
        cut(c, news, fraction / 2);
}

static void lost(struct rnl_congest *c, const struct rnl_congest_news *news, uint64_t number)
{
    if (c->law.dlf.rival_ns) {
        if (number < c->law.dlf.recovery)
            return;
        c->law.dlf.recovery = news->next;
        c->window /= 2;
        c->threshold = c->window;
        c->cut_ns = news->now_ns;
        return;
    }
    /* A slow start that overshot loses a good part of a round. */
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
