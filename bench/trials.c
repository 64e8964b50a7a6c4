/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trials.c - see trials.h: running. What comes out of it is computed in rows.c. */
#include "trials.h"
#include "machine.h"
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ORDER_TIMEOUT_MS = 60000, COMPILE_TIMEOUT_MS = 300000, TRIES = 6 };

enum bench_placement bench_place(double before_ns, double after_ns)
{
    double low = before_ns < after_ns ? before_ns : after_ns, high = before_ns < after_ns ? after_ns : before_ns;
    if (high > 1.4 * low)
        return BENCH_FLIPPED;
    return (before_ns + after_ns) / 2 < 110 ? BENCH_NEAR : BENCH_FAR;
}

int bench_plan_add(struct bench_plan *p, enum bench_test test, uint64_t bytes, unsigned apis, bool shown)
{
    const struct bench_unit unit = {.test = test, .bytes = bytes, .apis = apis, .shown = shown};
    return bench_plan_insert(p, &unit);
}

/* Negative, 0 or positive, as a stands before, with or after b. */
static int order_of(const struct bench_unit *a, const struct bench_unit *b)
{
    if (a->test != b->test)
        return a->test < b->test ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->apis != b->apis)
        return a->apis < b->apis ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

int bench_plan_insert(struct bench_plan *p, const struct bench_unit *unit)
{
    for (size_t i = 0; i < p->units; i++) {
        if (order_of(unit, &p->unit[i]) == 0) {
            p->unit[i].shown |= unit->shown;
            return 0;
        }
    }
    struct bench_unit *more = realloc(p->unit, (p->units + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    p->unit = more;
    size_t at = p->units++;
    for (; at > 0 && order_of(unit, &p->unit[at - 1]) < 0; at--)
        p->unit[at] = p->unit[at - 1];
    p->unit[at] = *unit;
    return 0;
}

void bench_plan_free(struct bench_plan *p)
{
    for (size_t i = 0; i < p->units; i++) {
        struct bench_unit *u = &p->unit[i];
        for (unsigned k = 0; k < BENCH_PLACEMENTS; k++) {
            for (unsigned v = 0; v < BENCH_VARIANTS; v++)
                free(u->baseline[v].tail[k]);
            for (unsigned a = 0; a < BENCH_APIS; a++)
                free(u->api[a].tail[k]);
        }
        free(u->now_tail);
        free(u->trial);
    }
    free(p->unit);
    p->unit = NULL;
    p->units = 0;
}

static int explain(struct bench_run *r, unsigned pair, int e)
{
    const char *why = bench_pair_failure(&r->area->pair[pair]);
    char *text = r->plan->text;
    size_t size = sizeof r->plan->text;
    const char *name = bench_pair_name(r->area, pair);
    if (why)
        snprintf(text, size, "the processes for %s failed: %s", name, why);
    else if (e == -ETIMEDOUT)
        snprintf(text, size, "the processes for %s did not answer in time", name);
    else if (text[0] == 0)
        snprintf(text, size, "the processes for %s ended", name);
    return e;
}

/* The pairs of scenarios have other numbers, and roles. */
static bool is_peer(const struct bench_run *r, unsigned pair)
{
    return pair >= BENCH_OWN && pair < BENCH_APIS && !r->area->pair[pair].role[0];
}

static bool is_lost(const struct bench_run *r, unsigned pair)
{
    return is_peer(r, pair) && r->plan->lost[pair][0];
}

/* A peer that fails costs its own rows, not the run. */
static int lose(struct bench_run *r, unsigned api, const char *what, unsigned timeout_ms, int e)
{
    char *text = r->plan->lost[api];
    size_t size = sizeof r->plan->lost[api];
    const char *why = bench_pair_failure(&r->area->pair[api]);
    if (why)
        snprintf(text, size, "%s", why);
    else if (e == -ETIMEDOUT)
        snprintf(text, size, "%s within %g s", what, timeout_ms / 1e3);
    else
        return explain(r, api, e);
    if (r->drop)
        r->drop(r->peers, api);
    return 0;
}

/* what: of a peer that is late. */
static int wait_for(struct bench_run *r, unsigned pair, unsigned timeout_ms, const char *what)
{
    int e = bench_pair_wait(&r->area->pair[pair], timeout_ms, r->alive, r->arg);
    if (e && is_peer(r, pair))
        return lose(r, pair, what, timeout_ms, e);
    return e ? explain(r, pair, e) : 0;
}

/* A compiler takes long on a busy machine, and that is not the peer's time. A failure is found by who waits next. */
static void await_compiler(struct bench_run *r, struct bench_pair *p)
{
    uint64_t end = bench_now_ns() + (uint64_t)COMPILE_TIMEOUT_MS * 1000000u;
    while (!atomic_load_explicit(&p->compiled, memory_order_acquire) && !bench_pair_failure(p) &&
           bench_now_ns() < end && !(r->alive && r->alive(r->arg)))
        bench_futex_wait(&p->compiled, 0, 50);
}

int bench_attached(struct bench_run *r, unsigned pair, unsigned timeout_ms)
{
    struct bench_pair *p = &r->area->pair[pair];
    if (is_peer(r, pair))
        await_compiler(r, p);
    int e = wait_for(r, pair, timeout_ms, "it did not start");
    if (e == 0 && is_peer(r, pair) && !is_lost(r, pair))
        snprintf(r->plan->about[pair], sizeof r->plan->about[pair], "%.*s", (int)sizeof p->about - 1, p->about);
    return e;
}

int bench_await(struct bench_run *r, unsigned pair)
{
    return wait_for(r, pair, is_peer(r, pair) ? r->peer_ms : ORDER_TIMEOUT_MS, "it gave no answer");
}

int bench_order(struct bench_run *r, unsigned pair, const struct bench_order *o)
{
    bench_pair_order(&r->area->pair[pair], o);
    return bench_await(r, pair);
}

/* The rank whose clock counts. */
static const struct bench_answer *answer_of(const struct bench_area *a, unsigned pair, enum bench_test test)
{
    return &a->pair[pair].answer[test == BENCH_RATE];
}

static bool was_preempted(const struct bench_area *a, unsigned pair)
{
    const struct bench_answer *both = a->pair[pair].answer;
    return !a->one_core && (both[0].preempted || both[1].preempted);
}

int bench_probe(struct bench_run *r, double *ns)
{
    struct bench_order o = {.test = BENCH_PROBE};
    for (int try = 0; try < TRIES; try++) {
        int e = bench_order(r, BENCH_RAW, &o);
        if (e)
            return e;
        *ns = answer_of(r->area, BENCH_RAW, BENCH_PROBE)->value;
        if (!was_preempted(r->area, BENCH_RAW))
            break;
    }
    return 0;
}

/* How often an order is to repeat what took elapsed_ns for `count` times. `as`: what the processes are told to do. */
static uint64_t next_count(const struct bench_run *r, const struct bench_unit *u, enum bench_test as, uint64_t count,
                           double elapsed_ns)
{
    static const struct {
        double target_ns, low, high;
    } counts[BENCH_QUIT] = {[BENCH_LATENCY] = {3e6, 10, 20000},
                            [BENCH_RATE] = {30e6, 2000, 1000000},
                            [BENCH_BANDWIDTH] = {6e6, 1, 64},
                            [BENCH_BANDWIDTH_ALONE] = {6e6, 3, 1000},
                            [BENCH_FRESH] = {6e6, 1, 64},
                            [BENCH_FRESH_ALONE] = {6e6, 3, 1000},
                            [BENCH_WAITING] = {20e6, 10, 20000},
                            [BENCH_LOSS_TRIP] = {12e6, 1000, 20000}, /* each sees losses, or those without are kept */
                            [BENCH_AM_TRIP] = {3e6, 10, 20000},
                            [BENCH_AM_RATE] = {6e6, 600, 200000},
                            [BENCH_AM_BULK] = {6e6, 1, 64},
                            [BENCH_AM_WAITING] = {20e6, 10, 20000},
                            [BENCH_AM_LOSS_TRIP] = {60e6, 50, 20000},
                            [BENCH_AM_LOSS_RATE] = {60e6, 2000, 1000000},
                            [BENCH_AM_LOSS_BULK] = {60e6, 5, 500},
                            [BENCH_AM_CALL] = {3e6, 1000, 1000000},
                            [BENCH_PUT_LANDED] = {3e6, 20, 20000},
                            [BENCH_PUT_USED] = {3e6, 20, 20000},
                            [BENCH_PUT_NOTIFY] = {3e6, 20, 20000},
                            [BENCH_PUT_ADD] = {3e6, 20, 20000},
                            [BENCH_PUT_GET] = {3e6, 20, 20000},
                            [BENCH_PUT_IMPORT] = {20e6, 3, 100},
                            [BENCH_RPC_NULL] = {3e6, 20, 20000},
                            [BENCH_RPC_SEND] = {6e6, 10, 2000},
                            [BENCH_RPC_ONCE] = {30e6, 5, 200},
                            [BENCH_PANDA_CALL] = {3e6, 20, 20000},
                            [BENCH_PANDA_GROUP] = {3e6, 20, 20000},
                            [BENCH_PANDA_STREAM] = {6e6, 10, 1000}};
    enum bench_test test =
        u->test == BENCH_LOSS_TRIP ? u->test : as; /* what is told to the processes as another test */
    double wanted = elapsed_ns > 0 ? r->plan->calm * counts[test].target_ns * (double)count / elapsed_ns : 0;
    double least = counts[test].low;
    if (least > 3 && least * (double)u->bytes > 8 << 20) /* long messages need not be as many */
        least = 8.0 * (1 << 20) / (double)u->bytes + 3;
    return (uint64_t)(wanted < least ? least : wanted > counts[test].high ? counts[test].high : wanted);
}

int bench_repeat(struct bench_run *r, struct bench_unit *u, enum bench_test as, unsigned pair, unsigned variant,
                 struct bench_series *s, double *value, double *cpu_ns)
{
    for (int try = 0; try < TRIES; try++) {
        if (try >= 2 && bench_now_ns() >= r->end_ns) /* one to size it and one that counts, however long they take */
            return 0;
        bool sizing = s->count == 0;
        struct bench_order o = {.test = as, .variant = variant, .bytes = u->bytes, .count = s->count};
        if (sizing)
            o.count = next_count(r, u, as, 0, 0);
        if (r->order_ns)
            o.end_ns = bench_now_ns() + r->order_ns;
        int e = bench_order(r, pair, &o);
        if (e || is_lost(r, pair))
            return e;
        s->tried++;
        const struct bench_answer *a = answer_of(r->area, pair, as);
        u->cut += a->cut;
        bool preempted = was_preempted(r->area, pair);
        double calm = r->plan->calm * (preempted ? 0.5 : 1.25);
        r->plan->calm = calm > 1 ? 1 : calm < 0.02 ? 0.02 : calm;
        s->count = next_count(r, u, as, o.count, a->elapsed_ns);
        if (preempted)
            u->preempted++;
        else if (!sizing || s->count <= o.count) { /* the size that was tried is right where messages are long */
            const struct bench_answer *both = r->area->pair[pair].answer;
            *value = a->value;
            *cpu_ns = both[0].cpu_ns + both[1].cpu_ns;
            return 0;
        }
    }
    return 0;
}

int bench_take_tail(const struct bench_run *r, unsigned pair, struct rnl_hist **hist)
{
    if (!*hist && !(*hist = calloc(1, sizeof **hist)))
        return -ENOMEM;
    **hist = r->area->pair[pair].hist;
    return 0;
}

static unsigned variants_of(const struct bench_area *a, const struct bench_unit *u)
{
    if (a->net.udp) /* sizes of the window */
        return u->test == BENCH_BANDWIDTH || u->test == BENCH_FRESH ? 2 : 1;
    if (bench_is_bulk(u->test, u->bytes))
        return baseline_throughs();
    if (u->test == BENCH_LATENCY)
        return a->one_core ? 1 : BENCH_WAITS;
    return u->test == BENCH_RATE && u->bytes == 8 && raw_can_cork() ? 2 : 1;
}

/* Each unit has one whole trial, if it is begun at all; another one is broken off. */
static bool too_late(const struct bench_run *r, const struct bench_unit *u)
{
    return u->trials > 0 && bench_now_ns() >= r->end_ns;
}

/* A variant that has been far behind the best of its placement for some trials is left out: time for what matters. */
static bool still_worth(const struct bench_unit *u, unsigned variant)
{
    enum { MOST = 7, LONG_ONES = 4 };
    const size_t TRIALS = bench_is_bulk(u->test, u->bytes) ? LONG_ONES : MOST;
    const double less = bench_is_latency(u->test) ? 1 : -1; /* the sign by which the better value is the smaller */
    double value[MOST], mine = NAN, best = NAN;
    if (u->trials < TRIALS)
        return true;
    enum bench_placement placement = u->trial[u->trials - 1].placement;
    for (unsigned v = 0; v < BENCH_VARIANTS; v++) {
        size_t n = 0;
        for (size_t i = 0; i < u->trials && n < TRIALS; i++)
            if (u->trial[i].placement == placement && !isnan(u->trial[i].baseline[v]))
                value[n++] = u->trial[i].baseline[v];
        if (n < TRIALS)
            continue;
        double m = bench_median(value, n);
        if (v == variant)
            mine = m;
        if (isnan(best) || less * m < less * best)
            best = m;
    }
    return isnan(mine) || (less > 0 ? mine < 1.15 * best : mine > best / 1.15);
}

static int merge_tail(struct bench_series *s, enum bench_placement placement, const struct rnl_hist *h)
{
    if (!h)
        return 0;
    if (!s->tail[placement] && !(s->tail[placement] = calloc(1, sizeof *h)))
        return -ENOMEM;
    rnl_hist_merge(s->tail[placement], h);
    return 0;
}

static int keep_trial(struct bench_unit *u, const struct bench_trial *trial, struct rnl_hist *const *baseline_hist,
                      struct rnl_hist *const *api_hist)
{
    int e = 0;
    if (u->trials == u->room) {
        size_t room = u->room ? 2 * u->room : 32;
        struct bench_trial *more = realloc(u->trial, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        u->trial = more;
        u->room = room;
    }
    u->trial[u->trials++] = *trial;
    for (unsigned v = 0; v < BENCH_VARIANTS && e == 0; v++)
        if (!isnan(trial->baseline[v]))
            e = merge_tail(&u->baseline[v], trial->placement, baseline_hist[v]);
    for (unsigned a = 0; a < BENCH_APIS && e == 0; a++)
        if (!isnan(trial->value[a]))
            e = merge_tail(&u->api[a], trial->placement, api_hist[a]);
    return e;
}

void bench_trial_begin(struct bench_trial *trial)
{
    *trial = (struct bench_trial){.placement = BENCH_FLIPPED};
    for (unsigned v = 0; v < BENCH_VARIANTS; v++)
        trial->baseline[v] = trial->baseline_cpu_ns[v] = NAN;
    for (unsigned a = 0; a < BENCH_APIS; a++)
        trial->value[a] = trial->cpu_ns[a] = NAN;
}

int bench_trial_end(struct bench_run *r, struct bench_unit *u, struct bench_trial *trial, double before_ns,
                    double after_ns, struct rnl_hist *const *baseline_tail, struct rnl_hist *const *api_tail)
{
    trial->placement = r->area->one_core ? BENCH_ONE_CORE : bench_place(before_ns, after_ns);
    trial->probe_ns = (before_ns + after_ns) / 2;
    if (trial->placement != BENCH_FLIPPED)
        return keep_trial(u, trial, baseline_tail, api_tail);
    u->flipped++;
    return 0;
}

static int run_trial(struct bench_run *r, struct bench_unit *u)
{
    struct bench_trial trial;
    struct rnl_hist *baseline_hist[BENCH_VARIANTS] = {0}, *api_hist[BENCH_APIS] = {0};
    bool tails = bench_is_latency(u->test);
    double before = 0, after = 0;
    bench_trial_begin(&trial);
    int e = bench_probe(r, &before);
    for (unsigned v = 0; v < variants_of(r->area, u) && e == 0 && !too_late(r, u); v++) {
        if (!still_worth(u, v))
            continue;
        e = bench_repeat(r, u, u->test, BENCH_RAW, v, &u->baseline[v], &trial.baseline[v], &trial.baseline_cpu_ns[v]);
        if (e == 0 && tails)
            e = bench_take_tail(r, BENCH_RAW, &baseline_hist[v]);
    }
    for (unsigned a = BENCH_RAW + 1; a < BENCH_APIS && e == 0 && !too_late(r, u); a++) {
        if (!(u->apis & 1u << a) || r->plan->lost[a][0])
            continue;
        e = bench_repeat(r, u, u->test, a, 0, &u->api[a], &trial.value[a], &trial.cpu_ns[a]);
        if (e == 0 && tails)
            e = bench_take_tail(r, a, &api_hist[a]);
    }
    bool whole = !too_late(r, u);
    if (e == 0 && whole)
        e = bench_probe(r, &after);
    if (e == 0 && whole)
        e = bench_trial_end(r, u, &trial, before, after, baseline_hist, api_hist);
    if (e == -ENOMEM)
        snprintf(r->plan->text, sizeof r->plan->text, "no memory for the measurements");
    for (unsigned v = 0; v < BENCH_VARIANTS; v++)
        free(baseline_hist[v]);
    for (unsigned a = 0; a < BENCH_APIS; a++)
        free(api_hist[a]);
    return e;
}

bool bench_run_over(const struct bench_run *r)
{
    uint64_t now = bench_now_ns();
    if (r->progress)
        r->progress(r->arg, now < r->end_ns ? (double)(r->end_ns - now) / 1e9 : 0);
    return now >= r->end_ns;
}

int bench_run(struct bench_run *r)
{
    bool any = true;
    for (unsigned pass = 0; any; pass++) {
        any = false;
        for (size_t i = 0; i < r->plan->units; i++) {
            if (r->plan->unit[i].scenario)
                continue;
            any = true;
            /* A point of a curve needs fewer trials than a row, and a row comes first where time is short. */
            if (pass % 4 != 1 && !r->plan->unit[i].shown)
                continue;
            int e = run_trial(r, &r->plan->unit[i]);
            if (e || bench_run_over(r))
                return e;
        }
    }
    return 0;
}
