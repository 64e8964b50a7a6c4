/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The membership: by hand, and random jobs against a log of what happened, in which ranks join, send, connect, close,
 * die and return. */
#include "job/membership.h"

#include "runnel/runnel.h"

#include <stdio.h>

#include "support/unit.h"

/* ---- a job ---- */

enum { RANKS = 5 };

struct job {
    struct rnl_membership *m;
    int made, released;
};

static int make(void *arg, struct rnl_segment *s)
{
    struct job *j = arg;
    j->made++;
    s->base = malloc(s->bytes);
    return 0;
}

static void release(void *arg, const struct rnl_segment *s)
{
    struct job *j = arg;
    j->released++;
    free(s->base);
}

static void start(struct job *j, uint32_t size, uint32_t joined)
{
    memset(j, 0, sizeof *j);
    const struct rnl_membership_options opt = {
        .size = size, .leads = true, .indexed = true, .arg = j, .make = make, .release = release};
    assert_int_equal(rnl_membership_new(&opt, &j->m), 0);
    for (uint32_t i = 0; i < joined; i++)
        assert_int_equal(rnl_membership_join(j->m, i, 0), 0);
}

static void stop(struct job *j)
{
    rnl_membership_free(j->m);
    assert_int_equal(j->made, j->released);
}

static struct rnl_event next(const struct job *j, uint32_t rank)
{
    struct rnl_event e = {0};
    assert_true(rnl_membership_event(j->m, rank, &e));
    return e;
}

static void hears(const struct job *j, uint32_t rank, uint32_t kind, uint64_t wave_or_rank)
{
    struct rnl_event e = next(j, rank);
    assert_int_equal(e.kind, kind);
    assert_int_equal(kind == RNL_EVENT_CLOSE_REQUEST ? e.wave : e.rank, wave_or_rank);
}

static void hears_nothing(const struct job *j, uint32_t rank)
{
    struct rnl_event e;
    assert_false(rnl_membership_event(j->m, rank, &e));
}

static void report(const struct job *j, uint32_t first, uint32_t last, uint64_t wave, uint64_t activity)
{
    for (uint32_t i = first; i <= last; i++)
        assert_int_equal(rnl_membership_report(j->m, i, wave, activity), 0);
}

/* ---- the close ---- */

static void a_quiet_job_closes_after_two_equal_waves(void **state)
{
    struct job j;
    (void)state;
    start(&j, 2, 2);
    report(&j, 0, 0, 0, 7);
    report(&j, 0, 0, 0, 8); /* the later one counts */
    hears_nothing(&j, 0);
    report(&j, 1, 1, 0, 9);
    hears(&j, 0, RNL_EVENT_CLOSE_REQUEST, 1);
    hears(&j, 1, RNL_EVENT_CLOSE_REQUEST, 1);
    report(&j, 1, 1, 0, 10); /* late */
    report(&j, 1, 1, 1, 9);
    report(&j, 0, 0, 1, 9); /* it did something */
    hears(&j, 0, RNL_EVENT_CLOSE_REQUEST, 2);
    hears(&j, 1, RNL_EVENT_CLOSE_REQUEST, 2);
    assert_false(rnl_membership_closed(j.m));
    report(&j, 0, 1, 2, 9);
    hears(&j, 0, RNL_EVENT_CLOSE_DONE, 0);
    hears(&j, 1, RNL_EVENT_CLOSE_DONE, 0);
    assert_true(rnl_membership_closed(j.m));
    rnl_membership_gone(j.m, 0, RNL_DEATH_EXIT, 0);
    assert_int_equal(rnl_membership_state(j.m, 0), RNL_RANK_LEFT);
    hears_nothing(&j, 1);
    stop(&j);
}

static void who_has_not_joined_holds_the_close_up_until_it_is_gone(void **state)
{
    struct job j;
    (void)state;
    for (int comes = 0; comes < 2; comes++) {
        start(&j, 3, 2);
        report(&j, 0, 1, 0, 1);
        hears_nothing(&j, 0);
        if (comes) {
            assert_int_equal(rnl_membership_join(j.m, 2, 0), 0);
            report(&j, 2, 2, 0, 1);
        } else {
            rnl_membership_gone(j.m, 2, RNL_DEATH_NEVER_JOINED, 0);
            rnl_membership_gone(j.m, 2, RNL_DEATH_EXIT, 0); /* known already */
            hears(&j, 0, RNL_EVENT_DEATH, 2);
        }
        hears(&j, 0, RNL_EVENT_CLOSE_REQUEST, 1);
        stop(&j);
    }
}

static void a_death_is_told_before_the_next_wave_and_makes_its_own_inconclusive(void **state)
{
    struct job j;
    (void)state;
    start(&j, 3, 3);
    report(&j, 0, 2, 0, 1);
    report(&j, 0, 1, 1, 1);
    rnl_membership_gone(j.m, 2, RNL_DEATH_SIGNAL, 9);
    for (uint32_t i = 0; i < 2; i++) {
        hears(&j, i, RNL_EVENT_CLOSE_REQUEST, 1);
        hears(&j, i, RNL_EVENT_DEATH, 2);
        hears(&j, i, RNL_EVENT_CLOSE_REQUEST, 2); /* not done */
        hears_nothing(&j, i);
    }
    report(&j, 0, 1, 2, 1);
    hears(&j, 0, RNL_EVENT_CLOSE_DONE, 0);
    stop(&j);
}

static void a_report_that_nobody_asked_for_is_wrong(void **state)
{
    struct job j;
    (void)state;
    start(&j, 3, 2);
    assert_int_equal(rnl_membership_report(j.m, 2, 0, 0), RNL_ERR_JOB);
    assert_int_equal(rnl_membership_report(j.m, 0, 1, 0), RNL_ERR_JOB);
    rnl_membership_gone(j.m, 1, RNL_DEATH_EXIT, 0);
    assert_int_equal(rnl_membership_report(j.m, 1, 0, 0), RNL_ERR_JOB);
    stop(&j);
}

/* ---- queues ---- */

static void who_lost_an_event_is_told_that_the_job_is_gone_and_nothing_else(void **state)
{
    struct job j;
    (void)state;
    start(&j, 4, 4);
    rnl_membership_gone(j.m, 3, RNL_DEATH_EXIT, 1);
    rnl_membership_cut_off(j.m, 0);
    rnl_membership_gone(j.m, 2, RNL_DEATH_EXIT, 2);
    hears(&j, 0, RNL_EVENT_DEATH, 3);
    assert_int_equal(next(&j, 0).kind, RNL_EVENT_JOB_GONE);
    hears_nothing(&j, 0);
    rnl_membership_disconnect(j.m, 1, 0);
    hears_nothing(&j, 0);
    hears(&j, 1, RNL_EVENT_DEATH, 3);
    hears(&j, 1, RNL_EVENT_DEATH, 2);
    stop(&j);
}

static void a_queue_is_bounded_whatever_ranks_do(void **state)
{
    struct job j;
    (void)state;
    start(&j, 2, 2);
    for (uint64_t i = 0; i < 1000; i++) { /* both report without listening, and one parts */
        report(&j, 0, 1, i, i);
        assert_int_equal(rnl_membership_disconnect(j.m, 1, 0), 0);
    }
    assert_true(rnl_membership_queued(j.m, 0) - rnl_membership_taken(j.m, 0) <= 3);
    hears(&j, 0, RNL_EVENT_CLOSE_REQUEST, 1);
    hears(&j, 0, RNL_EVENT_DEATH, 1);
    hears(&j, 0, RNL_EVENT_CLOSE_REQUEST, 1000);
    hears_nothing(&j, 0);
    assert_int_equal(rnl_membership_disconnect(j.m, 1, 1), RNL_ERR_JOB);
    stop(&j);
}

static void who_joins_late_or_again_hears_what_happened_before(void **state)
{
    struct job j;
    int index;
    (void)state;
    start(&j, 4, 2);
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 3, 64, &index), 0);
    rnl_membership_gone(j.m, 1, RNL_DEATH_SIGNAL, 6);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rnl_membership_join(j.m, 3, 0), 0);
        hears(&j, 3, RNL_EVENT_CONNECT, 0);
        hears(&j, 3, RNL_EVENT_DEATH, 1);
        hears_nothing(&j, 3);
        if (i == 0)
            rnl_membership_unjoin(j.m, 3);
    }
    assert_int_equal(rnl_membership_join(j.m, 3, 0), RNL_ERR_JOB);
    report(&j, 3, 3, 0, 0);
    rnl_membership_unjoin(j.m, 3); /* too late */
    assert_int_equal(rnl_membership_state(j.m, 3), RNL_RANK_JOINED);
    stop(&j);
}

/* ---- segments ---- */

static void a_segment_lives_until_both_sides_are_done(void **state)
{
    struct job j;
    struct rnl_segment *s;
    int a, b, again;
    void *at;
    (void)state;
    start(&j, 3, 3);
    assert_int_equal(rnl_membership_segment_open(j.m, 2, 0, 64, &a), 0);
    hears(&j, 0, RNL_EVENT_CONNECT, 2);
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 2, 65, &b), RNL_ERR_JOB);
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 2, 64, &b), 0);
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 2, 64, &again), RNL_ERR_JOB);
    hears_nothing(&j, 2);
    assert_int_equal(a, b);
    assert_int_equal(rnl_membership_segment_map(j.m, a, 60, 4, &at), 0);
    assert_int_equal(rnl_membership_segment_map(j.m, a, 60, 5, &at), RNL_ERR_ARG);
    s = rnl_membership_segment_at(j.m, a);
    rnl_membership_segment_close(j.m, s, 0); /* not had: it may be opened again */
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 2, 64, &b), 0);
    rnl_membership_segment_mapped(j.m, s, 0);
    rnl_membership_segment_mapped(j.m, s, 2);
    rnl_membership_segment_close(j.m, s, 0);
    rnl_membership_gone(j.m, 2, RNL_DEATH_EXIT, 0);
    assert_int_equal(j.released, 0); /* whoever died may still read */
    rnl_membership_segment_close(j.m, s, 2);
    assert_int_equal(j.released, 1);
    assert_null(rnl_membership_segment_at(j.m, a));
    assert_int_equal(rnl_membership_segment(j.m, 0, 2, 64, &s), RNL_SEGMENT_TWICE);
    assert_int_equal(rnl_membership_segment(j.m, 1, 2, 64, &s), RNL_SEGMENT_DEAD);
    stop(&j);
}

static void what_the_dead_made_is_still_had_and_what_nobody_wants_is_dropped(void **state)
{
    struct job j;
    struct rnl_segment *s;
    (void)state;
    start(&j, 3, 3);
    assert_int_equal(rnl_membership_segment_add(j.m, 0, 1, 64, &s), 0);
    rnl_membership_gone(j.m, 0, RNL_DEATH_EXIT, 0);
    hears(&j, 1, RNL_EVENT_CONNECT, 0);
    hears(&j, 1, RNL_EVENT_DEATH, 0);
    assert_int_equal(rnl_membership_segment(j.m, 1, 0, 64, &s), RNL_SEGMENT_FOUND);
    assert_int_equal(j.released, 0);
    rnl_membership_gone(j.m, 1, RNL_DEATH_EXIT, 0);
    assert_int_equal(j.released, 1);
    stop(&j);
}

static void one_that_returns_is_met_by_segments_of_its_own(void **state)
{
    struct job j;
    int old, new_one, its;
    (void)state;
    start(&j, 2, 2);
    assert_int_equal(rnl_membership_rejoin(j.m, 1, 4), RNL_ERR_JOB); /* it lives */
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 1, 64, &old), 0);
    rnl_membership_segment_mapped(j.m, rnl_membership_segment_at(j.m, old), 0);
    rnl_membership_gone(j.m, 1, RNL_DEATH_SIGNAL, 9);
    assert_int_equal(rnl_membership_rejoin(j.m, 1, 4), 0);
    assert_int_equal(rnl_membership_incarnation(j.m, 1, 1), 4);
    assert_int_equal(rnl_membership_incarnation(j.m, 0, 1), 2);
    assert_int_equal(rnl_membership_segment_open(j.m, 1, 0, 64, &its), 0);
    hears(&j, 0, RNL_EVENT_DEATH, 1);
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 1, 64, &new_one), RNL_ERR_JOB); /* it means the old one */
    hears(&j, 0, RNL_EVENT_RETURN, 1);
    hears(&j, 0, RNL_EVENT_CONNECT, 1);
    assert_int_equal(rnl_membership_incarnation(j.m, 0, 1), 4);
    assert_int_equal(rnl_membership_segment_open(j.m, 0, 1, 64, &new_one), 0);
    assert_int_equal(new_one, its);
    assert_int_not_equal(new_one, old);
    report(&j, 0, 1, 0, 3); /* it is waited for again */
    hears(&j, 0, RNL_EVENT_CLOSE_REQUEST, 1);
    hears(&j, 1, RNL_EVENT_CLOSE_REQUEST, 1);
    stop(&j);
}

/* ---- random jobs ----
 *
 * A message lies in the receiver's inbox until it is handled, which may send others, as many as its `fuel` says. A rank
 * is idle when its inbox is empty and everything it sent was handled or was for the dead. The log has what all are to
 * hear: deaths and waves in the order in which they happened. */

enum { INBOX = 64, LOG = 512 };

struct sim_rank {
    bool lives, joined, done;
    uint64_t activity, wave;
    int64_t reported_wave;
    uint64_t reported;
    struct {
        int from, fuel;
    } inbox[INBOX];
    int waiting;
    unsigned heard; /* of the log */
    bool deaf;      /* cut off: it hears what was queued, and then ... */
    bool told;      /* ... that the job is gone */
};
struct sim {
    struct job j;
    struct sim_rank rank[RANKS];
    struct rnl_event log[LOG];
    unsigned end;
    uint64_t random;
};

static unsigned draw(struct sim *s, unsigned below)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (unsigned)(s->random >> 20) % below;
}

/* What the membership would publish to other hosts is the log. */
static void note(void *arg, const struct rnl_word *w)
{
    struct sim *s = arg;
    assert_true(s->end < LOG);
    s->log[s->end++] = (struct rnl_event){.kind = w->kind == RNL_WORD_DEATH     ? RNL_EVENT_DEATH
                                                  : w->kind == RNL_WORD_REQUEST ? RNL_EVENT_CLOSE_REQUEST
                                                                                : RNL_EVENT_CLOSE_DONE,
                                          .rank = w->rank,
                                          .wave = w->wave};
    for (int i = 0; w->kind == RNL_WORD_DONE && i < RANKS; i++)
        assert_true(!s->rank[i].lives || s->rank[i].waiting == 0); /* nothing is under way */
}

static void sim_send(struct sim *s, int from, int fuel)
{
    int to = (int)draw(s, RANKS);
    struct sim_rank *r = &s->rank[to];
    s->rank[from].activity++;
    if (r->lives && r->waiting < INBOX) {
        r->inbox[r->waiting].from = from;
        r->inbox[r->waiting++].fuel = fuel;
    }
}

static bool sim_idle(const struct sim *s, int who)
{
    if (s->rank[who].waiting > 0)
        return false;
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; s->rank[i].lives && k < s->rank[i].waiting; k++)
            if (s->rank[i].inbox[k].from == who)
                return false;
    return true;
}

/* The question of a wave may be replaced by the next one's, and one of before it joined is not for it; its own death it
 * does not hear. Nothing else is lost or comes in another order. */
static void sim_hear(struct sim *s, uint32_t who)
{
    struct sim_rank *r = &s->rank[who];
    struct rnl_event e;
    if (!rnl_membership_event(s->j.m, who, &e))
        return;
    if (e.kind == RNL_EVENT_JOB_GONE) {
        assert_true(r->deaf && !r->told);
        r->told = true;
        return;
    }
    assert_false(r->told);
    const struct rnl_event *l = &s->log[r->heard++];
    while (l->kind == RNL_EVENT_CLOSE_REQUEST && !(e.kind == l->kind && e.wave == l->wave))
        l = &s->log[r->heard++];
    assert_true(r->heard <= s->end);
    assert_int_equal(l->kind, e.kind);
    assert_int_equal(l->rank, e.rank);
    r->done = e.kind == RNL_EVENT_CLOSE_DONE;
    if (e.kind == RNL_EVENT_CLOSE_REQUEST)
        r->wave = e.wave;
}

static void sim_die(struct sim *s, uint32_t who)
{
    s->rank[who].lives = false;
    rnl_membership_gone(s->j.m, who, RNL_DEATH_SIGNAL, 9);
}

static void sim_act(struct sim *s, uint32_t who, bool deaths)
{
    struct sim_rank *r = &s->rank[who];
    switch (draw(s, 5)) {
    case 0: /* handle the first message */
        if (r->waiting > 0) {
            int fuel = r->inbox[0].fuel;
            memmove(r->inbox, r->inbox + 1, (size_t)--r->waiting * sizeof r->inbox[0]);
            r->activity++;
            for (int i = 0; i < fuel && i < 2; i++)
                sim_send(s, (int)who, fuel - 1);
        }
        return;
    case 1:
        sim_hear(s, who);
        return;
    case 2: /* report, if there is something new to report */
        if (sim_idle(s, (int)who) && (r->reported_wave != (int64_t)r->wave || r->reported != r->activity)) {
            r->reported_wave = (int64_t)r->wave;
            r->reported = r->activity;
            assert_int_equal(rnl_membership_report(s->j.m, who, r->wave, r->activity), 0);
        }
        return;
    case 3: /* send a last message and die */
        if (deaths && draw(s, 40) == 0) {
            if (r->reported_wave != (int64_t)r->wave)
                sim_send(s, (int)who, 2);
            sim_die(s, who);
        }
        return;
    case 4: /* lose an event: whoever learns that the job is gone ends */
        if (deaths && draw(s, 200) == 0) {
            rnl_membership_cut_off(s->j.m, who);
            r->deaf = true;
        }
        if (r->deaf && r->told)
            sim_die(s, who);
        return;
    }
}

static void sim_run(uint64_t seed, bool deaths)
{
    struct sim s = {.random = seed * 0x9e3779b97f4a7c15u + 1};
    const struct rnl_membership_options opt = {.size = RANKS, .leads = true, .arg = &s, .publish = note};
    assert_int_equal(rnl_membership_new(&opt, &s.j.m), 0);
    for (int i = 0; i < RANKS; i++)
        s.rank[i] = (struct sim_rank){.lives = true, .reported_wave = -1};
    for (int i = 0; i < 6; i++)
        sim_send(&s, (int)draw(&s, RANKS), 3);
    int steps = 0, left = RANKS;
    while (left > 0) {
        if (steps++ > 200000)
            fail_msg("seed %llu does not close", (unsigned long long)seed);
        uint32_t who = draw(&s, RANKS);
        struct sim_rank *r = &s.rank[who];
        if (r->lives && !r->joined) {
            r->joined = draw(&s, 8) == 0 && rnl_membership_join(s.j.m, who, 0) == 0;
            if (!r->joined && deaths && draw(&s, 100) == 0)
                sim_die(&s, who);
        } else if (r->lives && !r->done) {
            sim_act(&s, who, deaths);
        }
        left = 0;
        for (int i = 0; i < RANKS; i++)
            left += s.rank[i].lives && !s.rank[i].done;
    }
    for (int i = 0; i < RANKS; i++)
        assert_true(!s.rank[i].done || s.rank[i].heard == s.end); /* each of them heard all of it */
    rnl_membership_free(s.j.m);
}

static void random_jobs_close_when_and_only_when_nothing_is_left(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++)
        sim_run(seed, false);
}

static void random_deaths_are_heard_by_all_in_one_order_and_neither_hang_the_close_nor_hasten_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10000; seed++)
        sim_run(seed, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_job_closes_after_two_equal_waves),
        cmocka_unit_test(who_has_not_joined_holds_the_close_up_until_it_is_gone),
        cmocka_unit_test(a_death_is_told_before_the_next_wave_and_makes_its_own_inconclusive),
        cmocka_unit_test(a_report_that_nobody_asked_for_is_wrong),
        cmocka_unit_test(who_lost_an_event_is_told_that_the_job_is_gone_and_nothing_else),
        cmocka_unit_test(a_queue_is_bounded_whatever_ranks_do),
        cmocka_unit_test(who_joins_late_or_again_hears_what_happened_before),
        cmocka_unit_test(a_segment_lives_until_both_sides_are_done),
        cmocka_unit_test(what_the_dead_made_is_still_had_and_what_nobody_wants_is_dropped),
        cmocka_unit_test(one_that_returns_is_met_by_segments_of_its_own),
        cmocka_unit_test(random_jobs_close_when_and_only_when_nothing_is_left),
        cmocka_unit_test(random_deaths_are_heard_by_all_in_one_order_and_neither_hang_the_close_nor_hasten_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
