/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_engine.c - virtual time: the order of events, coroutines and their lives, chance as a pure function, the hash.
 */
#include "sim/engine/coro.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"
#include "support/must.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { STACK = 64 << 10 };

static int open_sim(void **state)
{
    struct rnl_sim *s;
    if (rnl_sim_new(7, &s) < 0)
        return -1;
    *state = s;
    return 0;
}

static int close_sim(void **state)
{
    rnl_sim_free(*state);
    return 0;
}

/* ---- events ---- */

struct ping {
    struct rnl_sim_event event; /* first */
    uint64_t at;
    int ran;
};
static struct ping *order[4096];
static int ran;

static void on_ping(struct rnl_sim *s, struct rnl_sim_event *e)
{
    struct ping *p = (struct ping *)(void *)e;
    TEST_MUST(p->at == rnl_sim_now(s));
    p->ran++;
    order[ran++] = p;
}

static void at(struct rnl_sim *s, struct ping *p, uint64_t when)
{
    p->at = when;
    assert_int_equal(rnl_sim_at(s, &p->event, when), 0);
}

static void events_run_in_the_order_of_time_then_of_scheduling(void **state)
{
    struct rnl_sim *s = *state;
    static struct ping p[1000];
    memset(p, 0, sizeof p);
    ran = 0;
    for (int i = 0; i < 1000; i++) {
        rnl_sim_event_init(&p[i].event, on_ping, (uint32_t)i);
        at(s, &p[i], rnl_sim_below(rnl_sim_random(1, 1, 1, (uint64_t)i), 50));
    }
    assert_int_equal(rnl_sim_run(s, RNL_SIM_NEVER), 0);
    assert_int_equal(ran, 1000);
    for (int i = 1; i < 1000; i++)
        assert_true(order[i - 1]->at < order[i]->at || (order[i - 1]->at == order[i]->at && order[i - 1] < order[i]));
}

static void a_moved_event_runs_once_at_its_last_time_and_a_cancelled_one_never(void **state)
{
    struct rnl_sim *s = *state;
    static struct ping p[2000];
    memset(p, 0, sizeof p);
    ran = 0;
    for (int i = 0; i < 2000; i++) {
        rnl_sim_event_init(&p[i].event, on_ping, (uint32_t)i);
        at(s, &p[i], rnl_sim_below(rnl_sim_random(1, 2, 1, (uint64_t)i), 100000));
    }
    for (int i = 0; i < 2000; i++) {
        if (i % 3 == 0)
            at(s, &p[i], rnl_sim_below(rnl_sim_random(1, 3, 1, (uint64_t)i), 100000));
        else if (i % 3 == 1)
            rnl_sim_cancel(s, &p[i].event);
        assert_int_equal(rnl_sim_scheduled(&p[i].event), i % 3 != 1);
        if (i % 3 != 1)
            assert_int_equal(rnl_sim_when(s, &p[i].event), p[i].at);
    }
    rnl_sim_run(s, RNL_SIM_NEVER);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(p[i].ran, i % 3 != 1);
    for (int i = 1; i < ran; i++)
        assert_true(order[i - 1]->at <= order[i]->at);
}

static void the_clock_stops_at_the_limit_and_never_runs_back(void **state)
{
    struct rnl_sim *s = *state;
    static struct ping p[2];
    memset(p, 0, sizeof p);
    ran = 0;
    rnl_sim_event_init(&p[0].event, on_ping, 0);
    rnl_sim_event_init(&p[1].event, on_ping, 1);
    at(s, &p[0], 10);
    at(s, &p[1], 30);
    assert_int_equal(rnl_sim_run(s, 20), 1);
    assert_int_equal(rnl_sim_now(s), 20);
    assert_int_equal(ran, 1);
    p[0].at = 20;
    assert_int_equal(rnl_sim_at(s, &p[0].event, 5), 0); /* that is past: now */
    assert_int_equal(rnl_sim_run(s, RNL_SIM_NEVER), 0);
    assert_int_equal(rnl_sim_now(s), 30);
    assert_int_equal(ran, 3);
}

static int with_ties(uint64_t seed, uint32_t *first)
{
    struct rnl_sim *s;
    static struct ping p[64];
    int kept = 1;
    memset(p, 0, sizeof p);
    ran = 0;
    if (rnl_sim_new(seed, &s) < 0)
        return -1;
    rnl_sim_set_tie(s, rnl_sim_tie_by_seed);
    for (int i = 0; i < 64; i++) {
        rnl_sim_event_init(&p[i].event, on_ping, (uint32_t)i / 4);
        at(s, &p[i], 5);
    }
    rnl_sim_run(s, RNL_SIM_NEVER);
    for (int i = 0; i < 64; i++)
        for (int k = 0; k < i; k++)
            kept = kept && (order[k]->event.entity != order[i]->event.entity || order[k] < order[i]);
    *first = order[0]->event.entity * 16 + order[4]->event.entity;
    rnl_sim_free(s);
    return kept;
}

static void ties_differ_by_seed_and_keep_each_entitys_order(void **state)
{
    uint32_t first[8];
    int different = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        assert_int_equal(with_ties(seed, &first[seed]), 1);
        different += first[seed] != first[0];
    }
    assert_true(different >= 4);
}

/* ---- chance ---- */

static void chance_is_a_pure_function_with_known_values(void **state)
{
    (void)state;
    assert_true(rnl_sim_random(1, 2, 3, 4) == rnl_sim_random(1, 2, 3, 4));
    assert_true(rnl_sim_random(0, 0, 0, 0) == UINT64_C(0x08d3094b2c6cb273));
    assert_true(rnl_sim_random(7, 1, 2, 3) == UINT64_C(0x5f4fae8e95e6e727));
    /* No argument can stand for another. */
    assert_true(rnl_sim_random(1, 0, 0, 0) != rnl_sim_random(0, 1, 0, 0));
    assert_true(rnl_sim_random(0, 1, 0, 0) != rnl_sim_random(0, 0, 1, 0));
    assert_true(rnl_sim_random(0, 0, 1, 0) != rnl_sim_random(0, 0, 0, 1));
    assert_true(rnl_sim_random(0, 1, 2, 0) != rnl_sim_random(0, 2, 1, 0));
}

static void chance_is_even(void **state)
{
    unsigned bits[64] = {0}, below[10] = {0}, often = 0;
    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t r = rnl_sim_random(3, 1, i % 7, i / 7);
        for (int b = 0; b < 64; b++)
            bits[b] += r >> b & 1;
        below[rnl_sim_below(r, 10)]++;
        often += (unsigned)rnl_sim_chance(r, RNL_SIM_ALWAYS / 100);
        assert_true(rnl_sim_chance(r, RNL_SIM_ALWAYS) && !rnl_sim_chance(r, 0));
        assert_true(rnl_sim_below(r, 0) == 0 && rnl_sim_below(r, 1) == 0);
        assert_true(rnl_sim_below(r, UINT64_MAX) <= r);
    }
    for (int b = 0; b < 64; b++)
        assert_in_range(bits[b], 49000, 51000);
    for (int d = 0; d < 10; d++)
        assert_in_range(below[d], 9500, 10500);
    assert_in_range(often, 850, 1150);
}

/* ---- coroutines ---- */

struct thread {
    struct rnl_sim_coro coro;
    int steps, entered, left, value;
    uint64_t woken_at, given;
};
static unsigned char stack[3][STACK] __attribute__((aligned(64)));
static struct thread thread[3];

static void start(struct rnl_sim *s, int i, rnl_sim_coro_fn *fn)
{
    memset(&thread[i], 0, sizeof thread[i]);
    rnl_sim_coro_init(&thread[i].coro, s, (uint32_t)i, stack[i], STACK);
    thread[i].coro.owner = &thread[i];
    assert_int_equal(rnl_sim_coro_start(&thread[i].coro, 10, fn, &thread[i]), 0);
}

static void steps(struct rnl_sim_coro *c, void *arg)
{
    struct thread *t = arg;
    for (t->steps = 1; t->steps < 5; t->steps++) {
        TEST_MUST(rnl_sim_running(c->sim) == c);
        TEST_MUST(rnl_sim_now(c->sim) == 10 + 100 * (uint64_t)(t->steps - 1));
        TEST_MUST(rnl_sim_park_until(c, rnl_sim_now(c->sim) + 100) == 0);
    }
}

static void sleepers_take_turns_on_virtual_time(void **state)
{
    struct rnl_sim *s = *state;
    for (int i = 0; i < 3; i++)
        start(s, i, steps);
    assert_int_equal(rnl_sim_run(s, RNL_SIM_NEVER), 0);
    assert_int_equal(rnl_sim_now(s), 410);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(thread[i].steps, 5);
        assert_int_equal(thread[i].coro.state, RNL_SIM_CORO_ENDED);
        assert_int_equal(thread[i].coro.runs, 5);
    }
    assert_null(rnl_sim_running(s));
}

static void waits(struct rnl_sim_coro *c, void *arg)
{
    struct thread *t = arg;
    for (;;) {
        t->given = rnl_sim_park(c);
        t->woken_at = rnl_sim_now(c->sim);
        t->steps++;
    }
}

static void a_wake_counts_for_its_own_wait_of_its_own_life(void **state)
{
    struct rnl_sim *s = *state;
    start(s, 0, waits);
    struct rnl_sim_coro *c = &thread[0].coro;
    rnl_sim_run(s, 20);
    struct rnl_sim_coro_ticket first = rnl_sim_ticket(c);
    assert_int_equal(rnl_sim_wake(c, first, 50, 5), 1);
    assert_int_equal(rnl_sim_wake(c, first, 40, 4), 1); /* sooner */
    assert_int_equal(rnl_sim_wake(c, first, 60, 6), 1); /* it will be over by then */
    rnl_sim_run(s, 100);
    assert_int_equal(thread[0].steps, 1);
    assert_int_equal(thread[0].woken_at, 40);
    assert_int_equal(thread[0].given, 4);
    assert_int_equal(rnl_sim_wake(c, first, 100, 1), 0);

    struct rnl_sim_coro_ticket second = rnl_sim_ticket(c);
    rnl_sim_coro_kill(c);
    assert_int_equal(rnl_sim_wake(c, second, 100, 1), 0);
    assert_int_equal(rnl_sim_coro_start(c, 110, waits, &thread[0]), 0);
    rnl_sim_run(s, 120);
    assert_int_equal(rnl_sim_ticket(c).wait, first.wait); /* the same wait of another life */
    assert_int_equal(rnl_sim_wake(c, first, 125, 1), 0);
    rnl_sim_coro_kill(c);
    assert_int_equal(rnl_sim_coro_start(c, 130, waits, &thread[0]), 0);
    rnl_sim_run(s, 140);
    assert_int_equal(rnl_sim_wake(c, second, 150, 1), 0);
    rnl_sim_run(s, 200);
    assert_int_equal(thread[0].steps, 1);
    rnl_sim_coro_kill(c);
}

static void a_delayed_one_does_not_run_before(void **state)
{
    struct rnl_sim *s = *state;
    start(s, 0, waits);
    rnl_sim_run(s, 20);
    assert_int_equal(rnl_sim_wake(&thread[0].coro, rnl_sim_ticket(&thread[0].coro), 30, 9), 1);
    rnl_sim_delay(&thread[0].coro, 25); /* it does not run before that in any case */
    rnl_sim_delay(&thread[0].coro, 70);
    rnl_sim_run(s, 200);
    assert_int_equal(thread[0].woken_at, 70);
    assert_int_equal(thread[0].given, 9);
    rnl_sim_coro_kill(&thread[0].coro);
}

static void kills_itself(struct rnl_sim_coro *c, void *arg)
{
    struct thread *t = arg;
    t->steps = 1;
    TEST_MUST(rnl_sim_wake(c, rnl_sim_ticket(c), 30, 1) == 1); /* a wait it does not come to */
    rnl_sim_coro_kill(c);
    t->steps = 2;
}

static void who_kills_itself_goes_no_further(void **state)
{
    struct rnl_sim *s = *state;
    start(s, 0, kills_itself);
    rnl_sim_run(s, RNL_SIM_NEVER);
    assert_int_equal(thread[0].steps, 1);
    assert_int_equal(thread[0].coro.state, RNL_SIM_CORO_NONE);
}

static void on_enter(struct rnl_sim_coro *c)
{
    struct thread *t = c->owner;
    t->entered++;
    errno = t->value;
}

static void on_leave(struct rnl_sim_coro *c)
{
    struct thread *t = c->owner;
    t->left++;
    t->value = errno;
}

static void keeps_errno(struct rnl_sim_coro *c, void *arg)
{
    struct thread *t = arg;
    errno = 1000 + (int)c->wake.entity;
    for (int i = 0; i < 3; i++) {
        rnl_sim_park_until(c, rnl_sim_now(c->sim) + 7);
        TEST_MUST(errno == 1000 + (int)c->wake.entity);
        t->steps++;
    }
}

static void enter_and_leave_swap_what_is_its_own(void **state)
{
    struct rnl_sim *s = *state;
    for (int i = 0; i < 3; i++) {
        start(s, i, keeps_errno);
        thread[i].coro.enter = on_enter;
        thread[i].coro.leave = on_leave;
    }
    rnl_sim_run(s, RNL_SIM_NEVER);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(thread[i].steps, 3);
        assert_int_equal(thread[i].entered, 4);
        assert_int_equal(thread[i].left, 4);
    }
}

/* ---- the trace ---- */

static void on_note(struct rnl_sim *s, struct rnl_sim_event *e)
{
    rnl_sim_note(s, RNL_SIM_NOTE_FIRST, e->entity, 1, 2);
    rnl_sim_note_bytes(s, RNL_SIM_NOTE_FIRST, e->entity, 3, "bytes", 5);
}

static void watch(void *arg, const struct rnl_sim_noted *n)
{
    uint64_t *sum = arg;
    *sum += n->at + n->a + n->b + n->entity + (n->bytes ? ((const char *)n->bytes)[0] == 'b' : 0);
}

static uint64_t noted(uint64_t first, uint32_t entity, uint64_t *sum)
{
    struct rnl_sim *s;
    struct rnl_sim_event e;
    assert_int_equal(rnl_sim_new(1, &s), 0);
    if (sum)
        rnl_sim_observe(s, watch, sum);
    rnl_sim_event_init(&e, on_note, entity);
    assert_int_equal(rnl_sim_at(s, &e, first), 0);
    rnl_sim_run(s, RNL_SIM_NEVER);
    uint64_t hash = rnl_sim_hash(s);
    rnl_sim_free(s);
    return hash;
}

static void the_hash_depends_on_what_happened_and_on_nothing_else(void **state)
{
    uint64_t sum = 0;
    (void)state;
    uint64_t h = noted(10, 3, NULL);
    assert_true(h == noted(10, 3, &sum));
    assert_int_equal(sum, 10 + 1 + 2 + 3 + 10 + 3 + 5 + 3 + 1);
    assert_true(h != noted(11, 3, NULL));
    assert_true(h != noted(10, 4, NULL));
    assert_true(h == UINT64_C(0x05da481537971c54));
}

/* ---- how fast: reported, never judged ---- */

static uint64_t left;
static void on_busy(struct rnl_sim *s, struct rnl_sim_event *e)
{
    if (left-- > 0)
        TEST_MUST(rnl_sim_at(s, e, rnl_sim_now(s) + 1 + rnl_sim_random(1, 1, e->entity, left) % 1000) == 0);
    else
        rnl_sim_stop(s);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void a_million_events(void **state)
{
    struct rnl_sim *s = *state;
    static struct rnl_sim_event e[1000];
    left = 1000000;
    for (uint32_t i = 0; i < 1000; i++) {
        rnl_sim_event_init(&e[i], on_busy, i);
        assert_int_equal(rnl_sim_at(s, &e[i], i), 0);
    }
    double began = seconds();
    rnl_sim_run(s, RNL_SIM_NEVER);
    printf("1,000 timers: %.0f ns of processor time an event\n", (seconds() - began) * 1e9 / (double)rnl_sim_events(s));
    assert_in_range(rnl_sim_events(s), 1000000, 1001000);
}

/* ---- looking ahead ---- */

static struct rnl_sim_event *likely, *next; /* looked at before this event; and before the one that runs then */
static uint32_t guessed, looked;

static void on_likely(struct rnl_sim *s, struct rnl_sim_event *e)
{
    (void)s;
    likely = next;
    next = e;
    looked++;
}

static void on_guessed(struct rnl_sim *s, struct rnl_sim_event *e)
{
    (void)s;
    if (rnl_sim_next(s) == RNL_SIM_NEVER)
        likely = next; /* nobody looked behind the last one */
    guessed += likely == e;
}

static void what_looks_ahead_is_given_the_next_event_and_changes_nothing(void **state)
{
    enum { EVENTS = 300 };
    static struct rnl_sim_event e[EVENTS];
    uint64_t hash[2];
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct rnl_sim *s;
        assert_int_equal(rnl_sim_new(3, &s), 0);
        rnl_sim_set_tie(s, rnl_sim_tie_by_seed);
        if (ahead)
            rnl_sim_set_ahead(s, on_likely);
        guessed = looked = 0;
        likely = next = NULL;
        for (uint32_t i = 0; i < EVENTS; i++) {
            rnl_sim_event_init(&e[i], on_guessed, i);
            assert_int_equal(rnl_sim_at(s, &e[i], i * 7 % 50), 0);
        }
        rnl_sim_run(s, RNL_SIM_NEVER);
        hash[ahead] = rnl_sim_hash(s);
        rnl_sim_free(s);
        assert_int_equal(looked, ahead ? EVENTS - 1 : 0); /* behind the last one is none */
    }
    assert_int_equal(guessed, EVENTS - 1); /* all but the first, which nobody looked for */
    assert_true(hash[0] == hash[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_run_in_the_order_of_time_then_of_scheduling, open_sim, close_sim),
        cmocka_unit_test_setup_teardown(a_moved_event_runs_once_at_its_last_time_and_a_cancelled_one_never, open_sim,
                                        close_sim),
        cmocka_unit_test_setup_teardown(the_clock_stops_at_the_limit_and_never_runs_back, open_sim, close_sim),
        cmocka_unit_test(ties_differ_by_seed_and_keep_each_entitys_order),
        cmocka_unit_test(chance_is_a_pure_function_with_known_values),
        cmocka_unit_test(chance_is_even),
        cmocka_unit_test_setup_teardown(sleepers_take_turns_on_virtual_time, open_sim, close_sim),
        cmocka_unit_test_setup_teardown(a_wake_counts_for_its_own_wait_of_its_own_life, open_sim, close_sim),
        cmocka_unit_test_setup_teardown(a_delayed_one_does_not_run_before, open_sim, close_sim),
        cmocka_unit_test_setup_teardown(who_kills_itself_goes_no_further, open_sim, close_sim),
        cmocka_unit_test_setup_teardown(enter_and_leave_swap_what_is_its_own, open_sim, close_sim),
        cmocka_unit_test(the_hash_depends_on_what_happened_and_on_nothing_else),
        cmocka_unit_test(what_looks_ahead_is_given_the_next_event_and_changes_nothing),
        cmocka_unit_test_setup_teardown(a_million_events, open_sim, close_sim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
