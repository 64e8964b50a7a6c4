/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_os.c - processes on few processors, against closed forms: quanta and switches, sleep, stops, signals, and that
 * a cycle of the bus is over before anybody else runs. */
#include "sim/myrinet/os/process.h"
#include "tests/myrinet/machine.h"

#include <string.h>

/* ---- processes ---- */

struct ran {
    struct myri_os os;
    struct myri_process p[3];
    uint64_t ended_ps[3], slept_ps;
    uint32_t signals;
};

static void task_of_work(struct myri_task *t, void *arg)
{
    struct ran *r = arg;
    uint32_t k = 0;
    while (t->host->task[k] != t)
        k++;
    myri_process_join(&r->p[k], &r->os, t);
    myri_task_spend(t, 25000000000u * (k + 1), "work"); /* 25, 50, 75 ms */
    r->ended_ps[k] = myri_hw_now(t->host->hw);
    myri_process_leave(&r->p[k]);
}

static void run_three(struct ran *r, uint32_t processors)
{
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    memset(r, 0, sizeof *r);
    myri_os_init(&r->os, &hw->host[0], processors);
    for (int i = 0; i < 3; i++)
        myri_hw_task(hw, 0, task_of_work, r);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    myri_hw_free(hw);
}

static void processes_share_processors_by_quantum_and_time_adds_up(void **state)
{
    (void)state;
    static struct ran r;
    const uint64_t ms = 1000000000, change = 8000000; /* quanta of 10 ms, switches of 8 us */
    run_three(&r, 1);
    /* 0 1 2 0 1 2 0' 1 2 1 2 1' 2 2 2': the sixth quantum of process 0's 25 ms is half of one; who is alone is not
     * switched */
    assert_int_equal(r.os.ran_ps, 150 * ms);
    assert_int_equal(r.ended_ps[0], 65 * ms + 7 * change);
    assert_int_equal(r.ended_ps[2], r.os.ran_ps + r.os.switched_ps);
    assert_int_equal(r.os.switched_ps, r.os.switches * change);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r.p[i].ran_ps, 25 * ms * (uint64_t)(i + 1));
    run_three(&r, 3);
    assert_int_equal(r.os.switches, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r.ended_ps[i], 25 * ms * (uint64_t)(i + 1) + change);
}

static void on_signal(void *arg)
{
    ((struct ran *)arg)->signals++;
}

static void task_that_sleeps(struct myri_task *t, void *arg)
{
    struct ran *r = arg;
    r->p[0].on_signal = on_signal;
    r->p[0].signal_arg = r;
    myri_process_join(&r->p[0], &r->os, t);
    myri_process_sleep(&r->p[0]);
    r->slept_ps = myri_hw_now(t->host->hw);
    myri_process_sleep(&r->p[0]); /* woken before: at once */
    r->ended_ps[0] = myri_hw_now(t->host->hw);
    myri_process_leave(&r->p[0]);
}

static void task_that_wakes(struct myri_task *t, void *arg)
{
    struct ran *r = arg;
    myri_process_join(&r->p[1], &r->os, t);
    myri_task_spend(t, 3000000, "work");
    myri_process_wake(&r->p[0]);
    myri_process_signal(&r->p[0]);
    myri_task_spend(t, 1000000, "work");
    r->ended_ps[1] = myri_hw_now(t->host->hw);
    myri_process_leave(&r->p[1]);
}

static void who_sleeps_gives_its_processor_away_until_it_is_woken(void **state)
{
    (void)state;
    static struct ran r;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    memset(&r, 0, sizeof r);
    myri_os_init(&r.os, &hw->host[0], 1);
    myri_hw_task(hw, 0, task_that_sleeps, &r);
    myri_hw_task(hw, 0, task_that_wakes, &r);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(r.ended_ps[1], 8000000 + 8000000 + 4000000);
    assert_int_equal(r.signals, 1);
    assert_int_equal(r.slept_ps, r.ended_ps[1] + 8000000 + 2000000); /* a switch, and the signal's way in */
    assert_int_equal(r.ended_ps[0], r.slept_ps);
    assert_int_equal(r.os.busy, 0);
    myri_hw_free(hw);
}

/* ---- stops, daemons, signals ---- */

struct governed {
    struct myri_os os;
    struct myri_process worker, other, daemon;
    uint64_t worked_ps, stopped_ps, resumed_ps, came_ps, handled_ps, unblocked_ps;
    uint32_t signals, during;
    int runs;
};

static void task_that_is_stopped(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    myri_process_join(&g->worker, &g->os, t);
    myri_task_spend(t, 5000000000, "work"); /* 5 ms */
    g->worked_ps = myri_hw_now(t->host->hw);
    myri_process_leave(&g->worker);
}

/* A daemon: it has the one processor as soon as its alarm rings. */
static void task_that_stops(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    g->daemon.first = 1;
    myri_process_join(&g->daemon, &g->os, t);
    myri_process_sleep_until(&g->daemon, 2000000000);
    g->stopped_ps = myri_hw_now(t->host->hw);
    assert_int_equal(g->worker.has, g->os.processors == 2);
    myri_process_stop(&g->worker);
    myri_process_sleep_until(&g->daemon, 4000000000);
    g->runs = g->worker.has;
    myri_process_resume(&g->worker);
    g->resumed_ps = myri_hw_now(t->host->hw);
    myri_process_leave(&g->daemon);
}

static void a_daemon_goes_first_and_who_is_stopped_does_not_run(void **state)
{
    (void)state;
    static struct governed g;
    const uint64_t change = 8000000;
    for (uint32_t processors = 1; processors <= 2; processors++) {
        struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
        memset(&g, 0, sizeof g);
        myri_os_init(&g.os, &hw->host[0], processors);
        myri_hw_task(hw, 0, task_that_is_stopped, &g);
        myri_hw_task(hw, 0, task_that_stops, &g);
        assert_int_equal(myri_hw_power(hw), 0);
        assert_int_equal(myri_hw_run(hw), 0);
        assert_int_equal(g.stopped_ps, 2000000000 + change);
        assert_int_equal(g.resumed_ps, 4000000000 + change);
        assert_int_equal(g.runs, 0);
        /* 5 ms, the two between stop and go, and five switches: to it, to the daemon and back; the alarm's, and the
         * last. With a processor of its own it has the first one and the last. */
        assert_int_equal(g.worked_ps, 5000000000 + 2000000000 + (processors == 1 ? 5 : 2) * change);
        assert_int_equal(g.worker.ran_ps, 5000000000);
        myri_hw_free(hw);
    }
}

static void task_that_computes(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    struct myri_process *p = t == t->host->task[0] ? &g->worker : &g->other;
    myri_process_join(p, &g->os, t);
    myri_task_spend(t, 5000000000, "work");
    myri_process_leave(p);
}

static void task_of_a_daemon(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    g->daemon.first = 1;
    myri_process_join(&g->daemon, &g->os, t);
    myri_process_sleep_until(&g->daemon, 2000000000);
    g->stopped_ps = myri_hw_now(t->host->hw);
    myri_process_leave(&g->daemon);
}

static void a_daemon_goes_before_those_that_were_ready_before_it(void **state)
{
    (void)state;
    static struct governed g;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    memset(&g, 0, sizeof g);
    myri_os_init(&g.os, &hw->host[0], 1);
    myri_hw_task(hw, 0, task_that_computes, &g);
    myri_hw_task(hw, 0, task_that_computes, &g);
    myri_hw_task(hw, 0, task_of_a_daemon, &g);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(g.stopped_ps, 2000000000 + 8000000); /* one has the processor then, and one is ready */
    assert_int_equal(g.worker.ran_ps, 5000000000);
    assert_int_equal(g.other.ran_ps, 5000000000);
    myri_hw_free(hw);
}

static void counts(void *arg)
{
    struct governed *g = arg;
    g->signals++;
    g->during += g->worker.handles != 1;
    if (g->signals == 1)
        g->handled_ps = myri_hw_now(g->os.host->hw);
    myri_task_spend(g->worker.task, 100000000, "handle");
}

static void task_with_signals(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    g->worker.on_signal = counts;
    g->worker.signal_arg = g;
    myri_process_join(&g->worker, &g->os, t);
    myri_task_spend(t, 2000000000, "work"); /* one comes in the middle of it */
    assert_int_equal(g->signals, 1);
    myri_process_block(&g->worker);
    myri_task_spend(t, 2000000000, "work"); /* three come */
    assert_int_equal(g->signals, 1);
    assert_int_equal(g->worker.signals, 3);
    g->unblocked_ps = myri_hw_now(t->host->hw);
    myri_process_unblock(&g->worker);
    assert_int_equal(g->signals, 4);
    g->worked_ps = myri_hw_now(t->host->hw);
    myri_process_leave(&g->worker);
}

static void task_that_signals(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    myri_task_spend(t, 1000000000, "wait");
    myri_process_signal(&g->worker);
    g->came_ps = myri_hw_now(t->host->hw);
    myri_task_spend(t, 2000000000, "wait");
    for (int i = 0; i < 3; i++)
        myri_process_signal(&g->worker);
}

static void a_signal_runs_in_the_middle_of_what_a_process_is_at_and_waits_while_blocked(void **state)
{
    (void)state;
    static struct governed g;
    const uint64_t call = 2000000;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    memset(&g, 0, sizeof g);
    myri_os_init(&g.os, &hw->host[0], 1);
    myri_hw_task(hw, 0, task_with_signals, &g);
    myri_hw_task(hw, 0, task_that_signals, &g);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(g.signals, 4);
    assert_int_equal(g.during, 0);
    assert_int_equal(g.handled_ps, g.came_ps + call);
    assert_int_equal(g.unblocked_ps, 8000000 + 4000000000 + call + 100000000 + call);
    assert_int_equal(g.worked_ps, g.unblocked_ps + call + 3 * (call + 100000000));
    myri_hw_free(hw);
}

/* ---- cycles of the bus ---- */

enum cycle { STORE, LOAD, ENABLE, RESTART, CYCLES };
static const char *const cycle_names[] = {"store", "load", "enable", "restart"};
struct crossing {
    struct myri_os os;
    struct myri_process worker, other;
    enum cycle cycle;
    uint32_t at, began, loaded, intrusions, cycles, came; /* the last two: when somebody else had the processor */
};

/* Whoever has the worker's processor in the middle of a call, or runs in between: its cycle is over. */
static void intrude(void *arg)
{
    struct crossing *x = arg;
    struct myri_hw *hw = x->os.host->hw;
    struct myri_card *c = &hw->card[x->os.host->id];
    x->intrusions++;
    x->came = x->cycle == ENABLE ? c->reg[HIEN] : myri_card_peek(c, x->at);
    x->cycles = (uint32_t)(hw->count.stores + hw->count.loads);
    myri_card_poke(c, x->at, 0xbad);
}

static void task_that_crosses(struct myri_task *t, void *arg)
{
    struct crossing *x = arg;
    x->worker.on_signal = intrude;
    x->worker.signal_arg = x;
    myri_process_join(&x->worker, &x->os, t);
    while (!x->intrusions && x->began < 400000) {
        x->began++;
        if (x->cycle == STORE)
            assert_int_equal(myri_task_store(t, x->at, x->began), 0);
        else if (x->cycle == LOAD)
            assert_int_equal(myri_task_load(t, x->at, &x->loaded), 0);
        else if (x->cycle == ENABLE)
            myri_task_enable(t, x->began);
        else
            myri_task_restart(t);
    }
    myri_process_leave(&x->worker);
}

static void task_that_is_next(struct myri_task *t, void *arg)
{
    struct crossing *x = arg;
    myri_process_join(&x->other, &x->os, t);
    intrude(x);
    myri_process_leave(&x->other);
}

static void task_that_signals_in_a_cycle(struct myri_task *t, void *arg)
{
    struct crossing *x = arg;
    myri_task_spend(t, 50005000, "wait");
    myri_process_signal(&x->worker);
}

/* Who has the processor when a quantum ends with a cycle finds the store there, and is too late for what is loaded. */
static void a_cycle_is_over_before_anybody_else_has_the_processor(void **state)
{
    (void)state;
    static struct crossing x;
    for (uint32_t k = 0; k < 2 * CYCLES; k++) {
        struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
        memset(&x, 0, sizeof x);
        x.cycle = k / 2;
        x.at = hw->card[0].cpu.code_end + 64;
        myri_os_init(&x.os, &hw->host[0], 1);
        myri_hw_task(hw, 0, task_that_crosses, &x);
        if (k % 2)
            myri_hw_task(hw, 1, task_that_signals_in_a_cycle, &x);
        else
            myri_hw_task(hw, 0, task_that_is_next, &x);
        assert_int_equal(myri_hw_power(hw), 0);
        assert_int_equal(myri_hw_run(hw), 0);
        uint32_t came = x.cycle == STORE || x.cycle == ENABLE ? x.began : 0;
        if (x.intrusions != 1 || x.cycles != x.began || x.came != came || x.loaded != 0)
            fail_msg("%s, %s: %u times in cycle %u, when %u were over; %u had come, %u was loaded",
                     cycle_names[x.cycle], k % 2 ? "a signal" : "a switch", x.intrusions, x.began, x.cycles, x.came,
                     x.loaded);
        assert_int_equal(myri_card_peek(&hw->card[0], x.at), 0xbad);
        myri_hw_free(hw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_share_processors_by_quantum_and_time_adds_up),
        cmocka_unit_test(who_sleeps_gives_its_processor_away_until_it_is_woken),
        cmocka_unit_test(a_daemon_goes_first_and_who_is_stopped_does_not_run),
        cmocka_unit_test(a_daemon_goes_before_those_that_were_ready_before_it),
        cmocka_unit_test(a_signal_runs_in_the_middle_of_what_a_process_is_at_and_waits_while_blocked),
        cmocka_unit_test(a_cycle_is_over_before_anybody_else_has_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
