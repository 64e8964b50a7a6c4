/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The close waves: by hand, and against a model in which ranks send, answer, die and report in random order. */
#include "job/waves.h"

#include "runnel/runnel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct rnl_waves *fresh(uint32_t size, uint32_t joined)
{
    struct rnl_waves *w;
    assert_int_equal(rnl_waves_new(size, &w), 0);
    for (uint32_t i = 0; i < joined; i++)
        rnl_waves_join(w, i);
    return w;
}

static void quiet_job_closes_after_two_equal_waves(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(2, 2);
    assert_int_equal(rnl_waves_report(w, 0, 0, 7), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 0, 9), RNL_WAVES_ASK);
    assert_int_equal(rnl_waves_now(w), 1);
    assert_int_equal(rnl_waves_report(w, 1, 1, 9), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 0, 1, 7), RNL_WAVES_DONE);
    assert_int_equal(rnl_waves_report(w, 0, 1, 8), RNL_WAVES_WAIT); /* said once */
    assert_int_equal(rnl_waves_gone(w, 1), RNL_WAVES_WAIT);
    rnl_waves_free(w);
}

static void activity_between_waves_asks_for_another(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(2, 2);
    rnl_waves_report(w, 0, 0, 1);
    assert_int_equal(rnl_waves_report(w, 1, 0, 1), RNL_WAVES_ASK);
    rnl_waves_report(w, 0, 1, 1);
    assert_int_equal(rnl_waves_report(w, 1, 1, 2), RNL_WAVES_ASK);
    assert_int_equal(rnl_waves_now(w), 2);
    rnl_waves_report(w, 0, 2, 1);
    assert_int_equal(rnl_waves_report(w, 1, 2, 2), RNL_WAVES_DONE);
    rnl_waves_free(w);
}

static void the_latest_report_of_a_wave_counts(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(2, 2);
    assert_int_equal(rnl_waves_report(w, 0, 0, 1), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 0, 0, 2), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 0, 5), RNL_WAVES_ASK);
    assert_int_equal(rnl_waves_report(w, 0, 1, 2), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 0, 1, 3), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 1, 5), RNL_WAVES_ASK);
    rnl_waves_free(w);
}

static void a_rank_that_has_not_joined_holds_the_close_up(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(3, 2);
    rnl_waves_report(w, 0, 0, 0);
    assert_int_equal(rnl_waves_report(w, 1, 0, 0), RNL_WAVES_WAIT);
    rnl_waves_join(w, 2);
    assert_int_equal(rnl_waves_report(w, 2, 0, 0), RNL_WAVES_ASK);
    rnl_waves_free(w);
}

static void a_rank_that_never_joins_is_left_out_once_gone(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(3, 2);
    rnl_waves_report(w, 0, 0, 0);
    rnl_waves_report(w, 1, 0, 0);
    assert_int_equal(rnl_waves_gone(w, 2), RNL_WAVES_ASK);
    assert_int_equal(rnl_waves_gone(w, 2), RNL_WAVES_WAIT);
    rnl_waves_report(w, 0, 1, 0);
    assert_int_equal(rnl_waves_report(w, 1, 1, 0), RNL_WAVES_DONE);
    rnl_waves_free(w);
}

static void a_death_makes_its_wave_inconclusive(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(3, 3);
    for (uint32_t i = 0; i < 3; i++)
        rnl_waves_report(w, i, 0, 0);
    rnl_waves_report(w, 0, 1, 0);
    rnl_waves_report(w, 1, 1, 0);
    assert_int_equal(rnl_waves_gone(w, 2), RNL_WAVES_ASK); /* and not DONE */
    assert_int_equal(rnl_waves_now(w), 2);
    rnl_waves_report(w, 0, 2, 0);
    assert_int_equal(rnl_waves_report(w, 1, 2, 0), RNL_WAVES_DONE);
    rnl_waves_free(w);
}

static void the_report_of_the_dead_does_not_stand_for_the_living(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(3, 3);
    rnl_waves_report(w, 0, 0, 0);
    assert_int_equal(rnl_waves_gone(w, 0), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 0, 0), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 2, 0, 0), RNL_WAVES_ASK);
    rnl_waves_free(w);
}

static void one_rank_closes_alone(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(1, 1);
    assert_int_equal(rnl_waves_report(w, 0, 0, 3), RNL_WAVES_ASK);
    assert_int_equal(rnl_waves_report(w, 0, 1, 3), RNL_WAVES_DONE);
    rnl_waves_free(w);
    w = fresh(1, 1);
    assert_int_equal(rnl_waves_gone(w, 0), RNL_WAVES_WAIT); /* nobody is left to be told */
    rnl_waves_free(w);
}

static void a_rank_that_comes_back_is_waited_for_again(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(2, 2);
    rnl_waves_report(w, 0, 0, 3);
    assert_int_equal(rnl_waves_gone(w, 1), RNL_WAVES_ASK);
    rnl_waves_join(w, 1);
    assert_int_equal(rnl_waves_report(w, 0, 1, 3), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 1, 0), RNL_WAVES_ASK); /* it may have sent something meanwhile */
    assert_int_equal(rnl_waves_report(w, 0, 2, 3), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 2, 0), RNL_WAVES_DONE);
    rnl_waves_free(w);
}

static void wrong_reports_are_told_from_late_ones(void **state)
{
    (void)state;
    struct rnl_waves *w = fresh(2, 1);
    assert_int_equal(rnl_waves_report(w, 1, 0, 0), RNL_WAVES_WRONG); /* has not joined */
    assert_int_equal(rnl_waves_report(w, 2, 0, 0), RNL_WAVES_WRONG);
    assert_int_equal(rnl_waves_report(w, 0, 1, 0), RNL_WAVES_WRONG); /* nobody asked for wave 1 */
    rnl_waves_join(w, 1);
    rnl_waves_report(w, 0, 0, 0);
    assert_int_equal(rnl_waves_report(w, 1, 0, 0), RNL_WAVES_ASK);
    assert_int_equal(rnl_waves_report(w, 0, 1, 0), RNL_WAVES_WAIT);
    assert_int_equal(rnl_waves_report(w, 1, 0, 1), RNL_WAVES_WAIT); /* late: it had not seen the question yet */
    assert_int_equal(rnl_waves_now(w), 1);
    rnl_waves_gone(w, 0);
    assert_int_equal(rnl_waves_report(w, 0, 1, 0), RNL_WAVES_WRONG);
    rnl_waves_free(w);
}

/* ---- the model ----
 *
 * A message lies in the receiver's inbox until it is handled; handling may cause others, as many as its `fuel` says. A
 * rank is idle when its inbox is empty and everything it sent has been handled or was for the dead. Events reach ranks
 * in order, after a while. */

enum { RANKS = 5, INBOX = 64, EVENTS = 64 };

struct message {
    int from, fuel;
};
struct model_rank {
    int alive, asked, knows_dead;
    uint64_t activity, wave, reported;
    uint64_t reported_wave;
    struct message inbox[INBOX];
    int waiting;
    int event[EVENTS]; /* wave asked for, or -1 - rank: a death */
    int events;
};
struct model {
    struct model_rank rank[RANKS];
    struct rnl_waves *waves;
    int done;
    uint64_t random;
};

static unsigned draw(struct model *m, unsigned below)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (unsigned)(m->random >> 20) % below;
}

static void model_send(struct model *m, int from, int fuel)
{
    int to = (int)draw(m, RANKS);
    struct model_rank *r = &m->rank[to];
    m->rank[from].activity++;
    if (r->alive && r->waiting < INBOX)
        r->inbox[r->waiting++] = (struct message){from, fuel};
}

static int model_idle(const struct model *m, int who)
{
    if (m->rank[who].waiting > 0)
        return 0;
    for (int i = 0; i < RANKS; i++)
        for (int j = 0; m->rank[i].alive && j < m->rank[i].waiting; j++)
            if (m->rank[i].inbox[j].from == who)
                return 0;
    return 1;
}

static void model_step(struct model *m, enum rnl_waves_step step)
{
    assert_int_not_equal(step, RNL_WAVES_WRONG);
    if (step == RNL_WAVES_DONE)
        m->done = 1;
    for (int i = 0; step == RNL_WAVES_ASK && i < RANKS; i++)
        if (m->rank[i].alive)
            m->rank[i].event[m->rank[i].events++] = (int)rnl_waves_now(m->waves);
}

static void model_act(struct model *m, int who, int deaths)
{
    struct model_rank *r = &m->rank[who];
    switch (draw(m, 4)) {
    case 0: /* handle the first message */
        if (r->waiting > 0) {
            struct message first = r->inbox[0];
            memmove(r->inbox, r->inbox + 1, (size_t)--r->waiting * sizeof r->inbox[0]);
            r->activity++;
            for (int i = 0; i < first.fuel && i < 2; i++)
                model_send(m, who, first.fuel - 1);
        }
        break;
    case 1: /* hear an event */
        if (r->events > 0) {
            if (r->event[0] >= 0)
                r->wave = (uint64_t)r->event[0];
            memmove(r->event, r->event + 1, (size_t)--r->events * sizeof r->event[0]);
        }
        break;
    case 2: /* report, if there is something new to report */
        if (model_idle(m, who) && (r->reported_wave != r->wave + 1 || r->reported != r->activity)) {
            r->reported_wave = r->wave + 1;
            r->reported = r->activity;
            model_step(m, rnl_waves_report(m->waves, (uint32_t)who, r->wave, r->activity));
        }
        break;
    case 3: /* say a last word and die */
        if (deaths && draw(m, 40) == 0) {
            if (r->reported_wave == 0 || r->reported_wave != r->wave + 1)
                model_send(m, who, 2);
            r->alive = 0;
            for (int i = 0; i < RANKS; i++)
                if (m->rank[i].alive)
                    m->rank[i].event[m->rank[i].events++] = -1 - who;
            model_step(m, rnl_waves_gone(m->waves, (uint32_t)who));
        }
        break;
    }
}

static int model_run(uint64_t seed, int deaths)
{
    struct model m = {.random = seed * 0x9e3779b97f4a7c15u + 1};
    m.waves = fresh(RANKS, RANKS);
    for (int i = 0; i < RANKS; i++)
        m.rank[i].alive = 1;
    for (int i = 0; i < 6; i++)
        model_send(&m, (int)draw(&m, RANKS), 3);
    int steps = 0, living = RANKS;
    while (!m.done && living > 0 && steps++ < 200000) {
        int who = (int)draw(&m, RANKS);
        if (m.rank[who].alive)
            model_act(&m, who, deaths);
        living = 0;
        for (int i = 0; i < RANKS; i++)
            living += m.rank[i].alive;
    }
    int bad = living > 0 && !m.done;
    for (int i = 0; i < RANKS; i++)
        bad |= m.rank[i].alive && m.rank[i].waiting > 0;
    if (bad)
        printf("seed %llu: %s\n", (unsigned long long)seed, m.done ? "closed over an unread message" : "never closed");
    rnl_waves_free(m.waves);
    return bad;
}

static void random_jobs_close_when_and_only_when_nothing_is_left(void **state)
{
    (void)state;
    int bad = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++)
        bad += model_run(seed, 0);
    assert_int_equal(bad, 0);
}

static void random_deaths_neither_hang_the_close_nor_hasten_it(void **state)
{
    (void)state;
    int bad = 0;
    for (uint64_t seed = 1; seed <= 10000; seed++)
        bad += model_run(seed, 1);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_job_closes_after_two_equal_waves),
        cmocka_unit_test(activity_between_waves_asks_for_another),
        cmocka_unit_test(the_latest_report_of_a_wave_counts),
        cmocka_unit_test(a_rank_that_has_not_joined_holds_the_close_up),
        cmocka_unit_test(a_rank_that_never_joins_is_left_out_once_gone),
        cmocka_unit_test(a_death_makes_its_wave_inconclusive),
        cmocka_unit_test(the_report_of_the_dead_does_not_stand_for_the_living),
        cmocka_unit_test(one_rank_closes_alone),
        cmocka_unit_test(a_rank_that_comes_back_is_waited_for_again),
        cmocka_unit_test(wrong_reports_are_told_from_late_ones),
        cmocka_unit_test(random_jobs_close_when_and_only_when_nothing_is_left),
        cmocka_unit_test(random_deaths_neither_hang_the_close_nor_hasten_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
