/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shapes.c - what the survey says in words: which way is better, and how it grows. Each row's note in rows.csv has the
 * sizes and counts by which its statement is judged; they were written down before ours was looked at, but for 79a's
 * and the machine of 71d, 72c and 72d, and 71c to 72d were split by system afterwards (results/log.md 55, 66). */
#include "sim/myrinet/experiments/rows.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

enum { MANY = 20 }; /* messages, where many hosts take part */
static const uint32_t receivers[] = {1, 2, 4, 8, 16, 31};
enum { COUNTS = sizeof receivers / sizeof receivers[0], MIDDLE = 15 };

/* Whether it is the second firmwares that are looked at. The probe has one firmware, and is what others are held
 * against. */
static _Thread_local int by_tuned;
static const struct myri_system *find(const char *system)
{
    return by_tuned && strcmp(system, "probe") != 0 ? myri_system_tuned(system) : myri_system_find(system);
}

static void begin(const struct myri_machine *m, const char *system, enum myri_measure measure, uint32_t bytes,
                  struct myri_experiment *x)
{
    myri_experiment_init(x, find(system), m, measure, bytes);
}

/* Whether the next point is looked at: what is false at one is false, and the rest only shows by how much. */
static _Thread_local int by_the_first;
static int goes_on(int rc, const int *truth)
{
    return rc == 0 && (*truth || !by_the_first);
}

static int value_of(const struct myri_experiment *x, double *out)
{
    struct myri_outcome o = {0};
    int rc = myri_experiment_once(x, &o);
    *out = o.value;
    return rc;
}

/* ---- one to several ---- */

static int to_all(const struct myri_machine *m, const char *system, uint32_t bytes, uint32_t to,
                  enum myri_bringer bringer, enum myri_attention attention, double *out)
{
    struct myri_experiment x;
    begin(m, system, MYRI_TO_ALL, bytes, &x);
    x.receivers = to;
    x.bringer = bringer;
    x.attention = attention;
    x.count = MANY;
    return value_of(&x, out);
}

static int multi_send_beats_repeats(const struct myri_machine *m, const char *const *systems, int *truth)
{
    enum { TO = 8, MOST = 8192 };
    int rc = 0;
    *truth = 1;
    for (uint32_t bytes = 4; bytes <= MOST && goes_on(rc, truth); bytes *= 2) {
        double once = 0, repeated = 0;
        rc = to_all(m, systems[0], bytes, TO, MYRI_BY_SYSTEM, MYRI_BY_POLLS, &once);
        rc = rc < 0 ? rc : to_all(m, systems[0], bytes, TO, MYRI_BY_REPEATS, MYRI_BY_POLLS, &repeated);
        *truth &= once < repeated;
    }
    return rc;
}

/* What the line through the points that is nearest to them leaves: the sum of squares. */
static double left_by_line(const double *x, const double *y, int n)
{
    double mx = 0, my = 0, xx = 0, xy = 0, left = 0;
    for (int i = 0; i < n; i++) {
        mx += x[i] / n;
        my += y[i] / n;
    }
    for (int i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    for (int i = 0; i < n; i++) {
        double d = y[i] - my - xy / xx * (x[i] - mx);
        left += d * d;
    }
    return left;
}

/* What a line over the number of receivers leaves of the time to the last of them, and one over the logarithm of the
 * nodes. */
static int growth(const struct myri_machine *m, const char *system, double *linear, double *logarithmic)
{
    double n[COUNTS], log_n[COUNTS], us[COUNTS];
    for (int i = 0; i < COUNTS; i++) {
        n[i] = receivers[i];
        log_n[i] = log2(receivers[i] + 1.0);
        int rc = to_all(m, system, 4, receivers[i], MYRI_BY_SYSTEM, MYRI_BY_POLLS, &us[i]);
        if (rc < 0)
            return rc;
    }
    *linear = left_by_line(n, us, COUNTS);
    *logarithmic = left_by_line(log_n, us, COUNTS);
    return 0;
}

static int is_linear(const struct myri_machine *m, const char *const *systems, int *truth)
{
    double linear = 0, logarithmic = 0;
    int rc = growth(m, systems[0], &linear, &logarithmic);
    *truth = linear < logarithmic;
    return rc;
}

static int is_logarithmic(const struct myri_machine *m, const char *const *systems, int *truth)
{
    double linear = 0, logarithmic = 0;
    int rc = growth(m, systems[0], &linear, &logarithmic);
    *truth = logarithmic < linear;
    return rc;
}

/* How many us sooner the last receiver has it when cards send it on instead of hosts. */
static int saved_by_cards(const struct myri_machine *m, const char *system, uint32_t bytes,
                          enum myri_attention attention, double *out)
{
    double cards = 0, hosts = 0;
    int rc = to_all(m, system, bytes, MIDDLE, MYRI_BY_SYSTEM, attention, &cards);
    rc = rc < 0 ? rc : to_all(m, system, bytes, MIDDLE, MYRI_BY_HOSTS, attention, &hosts);
    *out = hosts - cards;
    return rc;
}

static const uint32_t forwarded[] = {4, 1024};
enum { FORWARDED = sizeof forwarded / sizeof forwarded[0] };

static int cards_beat_hosts(const struct myri_machine *m, const char *const *systems, int *truth)
{
    int rc = 0;
    *truth = 1;
    for (int i = 0; i < FORWARDED && goes_on(rc, truth); i++) {
        double saved = 0;
        rc = saved_by_cards(m, systems[0], forwarded[i], MYRI_BY_POLLS, &saved);
        *truth &= saved > 0;
    }
    return rc;
}

static int by_more_with_interrupts(const struct myri_machine *m, const char *const *systems, int *truth)
{
    int rc = 0;
    *truth = 1;
    for (int i = 0; i < FORWARDED && goes_on(rc, truth); i++) {
        double polled = 0, interrupted = 0;
        rc = saved_by_cards(m, systems[0], forwarded[i], MYRI_BY_POLLS, &polled);
        rc = rc < 0 ? rc : saved_by_cards(m, systems[0], forwarded[i], MYRI_BY_INTERRUPTS, &interrupted);
        *truth &= interrupted > polled;
    }
    return rc;
}

/* ---- packets, and what overload costs ---- */

static int larger_packets_are_faster(const struct myri_machine *m, const char *const *systems, int *truth)
{
    enum { LEAST = 128, MOST = 1024, BYTES = 65536 };
    int rc = 0;
    *truth = 1;
    for (int i = 0; systems[i] && goes_on(rc, truth); i++) {
        double before = 0, is = 0;
        for (uint32_t packet = LEAST; packet <= MOST && goes_on(rc, truth); packet *= 2, before = is) {
            struct myri_experiment x;
            begin(m, systems[i], strcmp(systems[i], "bip") == 0 ? MYRI_PING_RATE : MYRI_STREAM_RATE, BYTES, &x);
            x.packet = packet;
            rc = value_of(&x, &is);
            *truth &= is > before;
        }
    }
    return rc;
}

/* Bytes on the wire for each that a program gets, with four senders to a receiver that computes, against those with one
 * and no computing. */
static int wasted(const struct myri_machine *m, const char *system, double *out)
{
    enum { SENDERS = 4, BYTES = 128, SLOW_US = 40, COUNT = 100 };
    struct myri_experiment x;
    double calm = 0, overload = 0;
    begin(m, system, MYRI_WIRE_COST, BYTES, &x);
    x.count = COUNT;
    x.senders = 1;
    int rc = value_of(&x, &calm);
    x.senders = SENDERS;
    x.slow_us = SLOW_US;
    rc = rc < 0 ? rc : value_of(&x, &overload);
    *out = overload / calm - 1;
    return rc;
}

static int waste_is(const struct myri_machine *m, const char *const *systems, int high, int *truth)
{
    const double little = 0.1;
    int rc = 0;
    *truth = 1;
    for (; *systems && goes_on(rc, truth); systems++) {
        double is = 0;
        rc = wasted(m, *systems, &is);
        *truth &= high ? is > little : is <= little;
    }
    return rc;
}

static int credits_waste_nothing(const struct myri_machine *m, const char *const *systems, int *truth)
{
    return waste_is(m, systems, 0, truth);
}

static int refusals_and_drops_waste(const struct myri_machine *m, const char *const *systems, int *truth)
{
    return waste_is(m, systems, 1, truth);
}

/* ---- how messages are noticed ---- */

static int lower_across_bus(struct myri_experiment *x, int *truth)
{
    double cached = 0, across = 0;
    int rc = value_of(x, &cached);
    x->across_bus = 1;
    rc = rc < 0 ? rc : value_of(x, &across);
    *truth &= across < cached;
    return rc;
}

static int polls_across_slow_transfers(const struct myri_machine *m, const char *const *systems, int *truth)
{
    enum { LEAST = 256, MOST = 65536 };
    struct myri_experiment x;
    int rc = 0;
    *truth = 1;
    for (uint32_t bytes = LEAST; bytes <= MOST && goes_on(rc, truth); bytes *= 2) {
        begin(m, "probe", MYRI_LOCAL_RATE, bytes, &x);
        rc = lower_across_bus(&x, truth);
    }
    begin(m, systems[0], MYRI_STREAM_RATE, MOST, &x);
    return rc < 0 ? rc : lower_across_bus(&x, truth);
}

/* How many interrupts one question costs a program that looks now and then, or not at all. */
static int interrupts_of(const struct myri_machine *m, const char *system, enum myri_attention attention, double *out)
{
    enum { QUESTIONS = 100, LOOK_US = 20 };
    struct myri_experiment x;
    struct myri_outcome o = {0};
    begin(m, system, MYRI_ANSWER, 4, &x);
    x.count = QUESTIONS;
    x.slow_us = LOOK_US;
    x.attention = attention;
    x.notify = 1;
    int rc = myri_experiment_once(&x, &o);
    *out = (double)o.count.interrupts / QUESTIONS;
    return rc;
}

static int watchdog_spares_who_polls(const struct myri_machine *m, const char *const *systems, int *truth)
{
    double polls = 0, does_not = 0, without = 0;
    int rc = interrupts_of(m, systems[0], MYRI_BY_POLLS, &polls);
    rc = rc < 0 ? rc : interrupts_of(m, systems[0], MYRI_BY_INTERRUPTS, &does_not);
    rc = rc < 0 ? rc : interrupts_of(m, systems[1], MYRI_BY_POLLS, &without);
    *truth = polls == 0 && does_not == 1 && without == 1;
    return rc;
}

/* ---- translations ---- */

static const uint32_t blocks[] = {1024, 2048, 4096, 8192, 16384, 32768, 65536};
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };

static int rate(const struct myri_machine *m, const char *system, enum myri_measure measure, uint32_t bytes,
                double *out)
{
    struct myri_experiment x;
    begin(m, system, measure, bytes, &x);
    return value_of(&x, out);
}

static int alike(double a, double b)
{
    return fabs(a / b - 1) <= 0.1;
}

static int follows(const struct myri_machine *m, const char *system, enum myri_measure curve, int *truth)
{
    int rc = 0;
    *truth = 1;
    for (int i = 0; i < BLOCKS && goes_on(rc, truth); i++) {
        double ours = 0, it = 0;
        rc = rate(m, system, MYRI_STREAM_RATE, blocks[i], &ours);
        rc = rc < 0 ? rc : rate(m, "probe", curve, blocks[i], &it);
        *truth &= alike(ours, it);
    }
    return rc;
}

static int hits_follow_the_upper(const struct myri_machine *m, const char *const *systems, int *truth)
{
    return follows(m, systems[0], MYRI_LOCAL_RATE, truth);
}

static int misses_follow_the_lower(const struct myri_machine *m, const char *const *systems, int *truth)
{
    return follows(m, systems[0], MYRI_PIN_RATE, truth);
}

static int hits_to_misses(const struct myri_machine *m, const char *const *systems, int *truth)
{
    int rc = 0;
    *truth = 1;
    for (int i = 0; i < BLOCKS && goes_on(rc, truth); i++) {
        double hits = 0, misses = 0, upper = 0, lower = 0;
        rc = rate(m, systems[0], MYRI_STREAM_RATE, blocks[i], &hits);
        rc = rc < 0 ? rc : rate(m, systems[1], MYRI_STREAM_RATE, blocks[i], &misses);
        rc = rc < 0 ? rc : rate(m, "probe", MYRI_LOCAL_RATE, blocks[i], &upper);
        rc = rc < 0 ? rc : rate(m, "probe", MYRI_PIN_RATE, blocks[i], &lower);
        *truth &= alike(hits / misses, upper / lower);
    }
    return rc;
}

/* Interrupts of so many messages from several pages, with empty caches. */
enum { PLACES = 16 };
static int of_misses(const struct myri_machine *m, const char *system, uint32_t count, uint64_t *out)
{
    enum { BYTES = 4096 };
    struct myri_experiment x;
    struct myri_outcome o = {0};
    begin(m, system, MYRI_STREAM_RATE, BYTES, &x);
    x.places = PLACES;
    x.count = count;
    x.cold = 1;
    int rc = myri_experiment_once(&x, &o);
    *out = o.count.interrupts;
    return rc;
}

static int misses_interrupt(const struct myri_machine *m, const char *const *systems, int *truth)
{
    enum { COUNT = 64 };
    uint64_t unet = 0, twice = 0, vmmc2 = 0;
    int rc = of_misses(m, systems[0], COUNT, &unet);
    rc = rc < 0 ? rc : of_misses(m, systems[0], 2 * COUNT, &twice);
    rc = rc < 0 ? rc : of_misses(m, systems[1], COUNT, &vmmc2);
    *truth = unet >= PLACES && twice == unet && vmmc2 == 0;
    return rc;
}

static int copies_cost_throughput(const struct myri_machine *m, const char *const *systems, int *truth)
{
    int rc = 0;
    *truth = 1;
    for (uint32_t bytes = 64; bytes <= 4096 && goes_on(rc, truth); bytes *= 2) {
        double copied = 0, direct = 0;
        rc = rate(m, systems[0], MYRI_STREAM_RATE, bytes, &copied);
        rc = rc < 0 ? rc : rate(m, systems[1], MYRI_STREAM_RATE, bytes, &direct);
        *truth &= direct > copied;
    }
    return rc;
}

/* ---- data transfers: cut through ---- */

static int cut_through_pays(const struct myri_machine *m, const char *const *systems, int *truth)
{
    int rc = 0;
    *truth = 1;
    for (uint32_t bytes = 1024; bytes <= 8192 && goes_on(rc, truth); bytes *= 2) {
        double cut = 0, stored = 0;
        rc = rate(m, systems[0], MYRI_ONE_WAY, bytes, &cut);
        rc = rc < 0 ? rc : rate(m, systems[1], MYRI_ONE_WAY, bytes, &stored);
        *truth &= cut < stored;
    }
    return rc;
}

/* ---- the rows ---- */

enum { SYSTEMS = 5 };
static const struct shape {
    const char *id, *systems[SYSTEMS]; /* the last is NULL */
    int (*judge)(const struct myri_machine *, const char *const *systems, int *truth);
} shapes[] = {
    {"71a", {"pm"}, multi_send_beats_repeats},
    {"71b", {"pm"}, is_linear},
    {"71c", {"lfc"}, is_logarithmic},
    {"71d", {"fmmc"}, is_logarithmic},
    {"72a", {"lfc"}, cards_beat_hosts},
    {"72b", {"lfc"}, by_more_with_interrupts},
    {"72c", {"fmmc"}, cards_beat_hosts},
    {"72d", {"fmmc"}, by_more_with_interrupts},
    {"73", {"simple"}, polls_across_slow_transfers},
    {"74", {"lfc", "vmmc"}, watchdog_spares_who_polls},
    {"75", {"simple", "fm2", "bip"}, larger_packets_are_faster},
    {"76a", {"fm1", "fm2", "fmmc", "lfc"}, credits_waste_nothing},
    {"76b", {"pm", "simple"}, refusals_and_drops_waste},
    {"77a", {"vmmc2"}, hits_follow_the_upper},
    {"77b", {"vmmc2-misses"}, misses_follow_the_lower},
    {"77c", {"vmmc2", "vmmc2-misses"}, hits_to_misses},
    {"80b", {"trapeze", "trapeze-store"}, cut_through_pays},
    {"79a", {"unet-mm", "vmmc2"}, misses_interrupt},
    {"79b", {"unet", "unet-mm"}, copies_cost_throughput},
};

int myri_shape_judge(const char *row, const struct myri_machine *machine, int tuned, int whole, int *truth)
{
    by_the_first = !whole;
    by_tuned = tuned;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i].id, row) != 0)
            continue;
        for (const char *const *s = shapes[i].systems; *s; s++)
            if (!find(*s))
                return 0;
        int rc = shapes[i].judge(machine, shapes[i].systems, truth);
        return rc < 0 ? rc : 1;
    }
    return 0;
}
