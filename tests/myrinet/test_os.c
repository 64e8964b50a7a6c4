/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_os.c - what systems for several processes need, against closed forms: the card's timer and the bits of its
 * interrupts, packets that are lost or overtaken, processes on few processors, their stops, signals and
 * letters, datagrams, cycles of the bus, address spaces. */
#include "sim/myrinet/os/ether.h"
#include "sim/myrinet/os/mail.h"
#include "sim/myrinet/os/process.h"
#include "sim/myrinet/os/space.h"
#include "tests/myrinet/machine.h"

#include <string.h>

static void write_register(struct myri_card *c, uint32_t reg, uint32_t value)
{
    if (c->cpu.now_ps < myri_hw_now(c->hw))
        c->cpu.now_ps = myri_hw_now(c->hw);
    c->cpu.store(&c->cpu, reg, value);
}

/* ---- timer, interrupts ---- */

struct looked {
    uint32_t early, late, stopped, again;
};

static void task_of_timer(struct myri_task *t, void *arg)
{
    struct looked *l = arg;
    struct myri_card *c = &t->host->hw->card[t->host->id];
    write_register(c, TMR, 20); /* 10 us behind the instruction that stores it */
    myri_task_spend(t, 9999999, "wait");
    l->early = c->status & TIMER;
    myri_task_spend(t, 1000000, "wait");
    l->late = c->status & TIMER;
    write_register(c, TMR, 20);
    l->again = c->status & TIMER;
    write_register(c, TMR, 0);
    myri_task_spend(t, 20000000, "wait");
    l->stopped = c->status & TIMER;
}

static void the_timer_runs_down_once_and_can_be_stopped(void **state)
{
    (void)state;
    struct looked l = {0};
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    myri_hw_task(hw, 0, task_of_timer, &l);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(l.early, 0);
    assert_int_equal(l.late, TIMER);
    assert_int_equal(l.again, 0);
    assert_int_equal(l.stopped, 0);
    myri_hw_free(hw);
}

static void task_of_interrupts(struct myri_task *t, void *arg)
{
    uint64_t *took = arg, from;
    struct myri_card *c = &t->host->hw->card[t->host->id];
    myri_task_enable(t, 2);
    write_register(c, HIRQ, 1);
    myri_task_spend(t, 50000000, "wait");
    took[0] = t->host->interrupts; /* held back */
    write_register(c, HIRQ, 2);
    myri_task_spend(t, 50000000, "wait");
    took[1] = t->host->interrupts;
    myri_task_enable(t, 3);
    from = myri_hw_now(t->host->hw);
    took[2] = myri_task_await_interrupt(t, took[1]);
    took[3] = myri_hw_now(t->host->hw) - from;
    from = myri_hw_now(t->host->hw);
    myri_task_spend(t, 1000000, "compute"); /* who is interrupted pays */
    took[4] = myri_hw_now(t->host->hw) - from;
}

static void interrupts_wait_for_their_bit_and_cost_what_the_machine_says(void **state)
{
    (void)state;
    uint64_t took[5] = {0};
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    struct myri_task *t = myri_hw_task(hw, 0, task_of_interrupts, took);
    t->serves = 1; /* of those so far nothing is taken from it */
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(took[0], 0);
    assert_int_equal(took[1], 1);
    assert_int_equal(took[2], 2);
    assert_int_equal(took[3], 10000000);
    assert_int_equal(took[4], 1000000);
    myri_hw_free(hw);
}

/* ---- packets ---- */

static void packets_that_are_lost_or_overtaken_are_counted(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("simple", "H-PP", MYRI_STREAM_RATE, 64);
    x.count = 400;
    x.lost_per_2_32 = (uint64_t)1 << 28; /* one in 16 */
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_true(out.count.packets_lost > 10 && out.count.packets_lost < 50);
    assert_int_equal(out.received + out.count.packets_lost, 400);
    assert_int_equal(out.wrong, 0);
    x.lost_per_2_32 = 0;
    x.late_per_2_32 = (uint64_t)1 << 28;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.received, 400);
    assert_int_equal(out.count.packets_sent, out.count.packets_received);
}

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

/* ---- stops, daemons, signals, letters ---- */

struct governed {
    struct myri_os os[2];
    struct myri_process worker, other, daemon;
    struct myri_mailbox box;
    uint64_t worked_ps, stopped_ps, resumed_ps, came_ps[3], handled_ps, unblocked_ps;
    uint32_t got[3], seen[3], signals, during;
    int runs;
};

static void task_that_is_stopped(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    myri_process_join(&g->worker, &g->os[0], t);
    myri_task_spend(t, 5000000000, "work"); /* 5 ms */
    g->worked_ps = myri_hw_now(t->host->hw);
    myri_process_leave(&g->worker);
}

/* A daemon: it has the one processor as soon as its alarm rings. */
static void task_that_stops(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    g->daemon.first = 1;
    myri_process_join(&g->daemon, &g->os[0], t);
    myri_process_sleep_until(&g->daemon, 2000000000);
    g->stopped_ps = myri_hw_now(t->host->hw);
    assert_int_equal(g->worker.has, g->os[0].processors == 2);
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
        myri_os_init(&g.os[0], &hw->host[0], processors);
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
    myri_process_join(p, &g->os[0], t);
    myri_task_spend(t, 5000000000, "work");
    myri_process_leave(p);
}

static void task_of_a_daemon(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    g->daemon.first = 1;
    myri_process_join(&g->daemon, &g->os[0], t);
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
    myri_os_init(&g.os[0], &hw->host[0], 1);
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
        g->handled_ps = myri_hw_now(g->os[0].host->hw);
    myri_task_spend(g->worker.task, 100000000, "handle");
}

static void task_with_signals(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    g->worker.on_signal = counts;
    g->worker.signal_arg = g;
    myri_process_join(&g->worker, &g->os[0], t);
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
    g->came_ps[0] = myri_hw_now(t->host->hw);
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
    myri_os_init(&g.os[0], &hw->host[0], 1);
    myri_hw_task(hw, 0, task_with_signals, &g);
    myri_hw_task(hw, 0, task_that_signals, &g);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(g.signals, 4);
    assert_int_equal(g.during, 0);
    assert_int_equal(g.handled_ps, g.came_ps[0] + call);
    assert_int_equal(g.unblocked_ps, 8000000 + 4000000000 + call + 100000000 + call);
    assert_int_equal(g.worked_ps, g.unblocked_ps + call + 3 * (call + 100000000));
    myri_hw_free(hw);
}

static void task_that_takes_letters(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    struct myri_letter l;
    myri_process_join(&g->daemon, &g->os[1], t);
    assert_int_equal(myri_mail_take(&g->box, &l, 20000000), 0); /* none has come by then */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(myri_mail_take(&g->box, &l, RNL_SIM_NEVER), 1);
        g->got[i] = l.word[0];
        g->came_ps[i] = myri_hw_now(t->host->hw);
    }
    myri_process_leave(&g->daemon);
}

static void task_that_sends_letters(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    myri_process_join(&g->worker, &g->os[0], t);
    for (uint32_t i = 0; i < 3; i++) {
        const struct myri_letter l = {.kind = 1, .word = {10 + i}};
        myri_mail_send(&g->worker, &g->box, &l);
    }
    myri_process_leave(&g->worker);
}

/* In the middle of the first letter's interrupt, and soon behind its end. */
static void task_that_looks(struct myri_task *t, void *arg)
{
    struct governed *g = arg;
    const uint64_t there = 8000000 + 2000000 + 100000000, interrupt = 10000000;
    myri_task_spend(t, there + interrupt / 2, "wait");
    g->seen[0] = g->box.came;
    myri_task_spend(t, interrupt, "wait");
    g->seen[1] = g->box.came;
    myri_task_spend(t, interrupt, "wait");
    g->seen[2] = g->box.came;
}

static void letters_come_in_order_and_take_calls_ethernet_and_an_interrupt(void **state)
{
    (void)state;
    static struct governed g;
    const uint64_t call = 2000000, change = 8000000, ethernet = 100000000, interrupt = 10000000;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    memset(&g, 0, sizeof g);
    myri_os_init(&g.os[0], &hw->host[0], 1);
    myri_os_init(&g.os[1], &hw->host[1], 1);
    myri_mail_init(&g.box, &hw->host[1]);
    g.box.owner = &g.daemon;
    myri_hw_task(hw, 0, task_that_sends_letters, &g);
    myri_hw_task(hw, 1, task_that_takes_letters, &g);
    myri_hw_task(hw, 0, task_that_looks, &g);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(hw->count.interrupts, 3);
    for (uint32_t i = 0; i < 3; i++) /* each is there at the end of its interrupt */
        assert_int_equal(g.seen[i], i);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(g.got[i], 10 + i);
    assert_int_equal(g.came_ps[0], change + call + ethernet + change + 3 * interrupt + call);
    assert_int_equal(g.came_ps[2], g.came_ps[0] + 2 * call);
    myri_hw_free(hw);
}

/* ---- datagrams over Ethernet ---- */

struct wired {
    struct myri_ether_port port[2];
    uint32_t out, in, got[3], bytes[3], from[3];
    uint64_t sent_ps[3], there_ps[3], computed_ps;
    int computes;
};

static const uint32_t datagram[3] = {4, 1459, 4}; /* one of them in two frames */

static void task_that_sends_datagrams(struct myri_task *t, void *arg)
{
    struct wired *w = arg;
    for (uint32_t i = 0; i < 3; i++) {
        myri_host_set_word(t->host, w->out, 20 + i);
        myri_ether_send(&w->port[0], t, i == 1 ? MYRI_ETHER_ALL : 1, w->out, datagram[i]);
        w->sent_ps[i] = myri_hw_now(t->host->hw);
    }
}

static void task_that_takes_datagrams(struct myri_task *t, void *arg)
{
    struct wired *w = arg;
    if (w->computes) {
        myri_task_spend(t, 10000000000, "compute");
        w->computed_ps = myri_hw_now(t->host->hw);
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(myri_task_poll(t, w->port[1].flag, 0, RNL_SIM_NEVER), 1);
        w->there_ps[i] = myri_hw_now(t->host->hw);
        w->bytes[i] = myri_ether_take(&w->port[1], t, w->in, &w->from[i]);
        w->got[i] = myri_host_word(t->host, w->in);
    }
    assert_int_equal(myri_ether_take(&w->port[1], t, w->in, &w->from[0]), 0);
}

static void run_wired(struct wired *w, int computes)
{
    struct myri_hw *hw = new_hw("H-A", "systems/probe/firmware.hex");
    memset(w, 0, sizeof *w);
    w->computes = computes;
    for (int i = 0; i < 2; i++)
        assert_int_equal(myri_ether_open(&w->port[i], &hw->host[i], 1500), 0);
    w->out = myri_host_take(&hw->host[0], 1500, 0);
    w->in = myri_host_take(&hw->host[1], 1500, 0);
    myri_hw_task(hw, 0, task_that_sends_datagrams, w);
    myri_hw_task(hw, 1, task_that_takes_datagrams, w);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(hw->count.interrupts, 4);
    myri_hw_free(hw);
}

static void datagrams_take_calls_kernels_the_cable_and_an_interrupt(void **state)
{
    (void)state;
    static struct wired w;
    const struct myri_machine m = machine("H-A");
    const uint64_t call = myri_machine_us(&m, MYRI_M_system_call), kernel = myri_machine_us(&m, MYRI_M_datagram);
    const uint64_t interrupt = myri_machine_us(&m, MYRI_M_interrupt), miss = myri_machine_ns(&m, MYRI_M_miss);
    const uint64_t word = myri_machine_bytes(&m, MYRI_M_copy_rate, 4);
    const uint64_t large = myri_machine_bytes(&m, MYRI_M_copy_rate, 1459);
    /* 800 ns a byte: 46 of data at least, 42 of which are FLIP's; 18 around them and 8 before; 12 between two frames */
    const uint64_t least = (8 + 18 + 46) * 800000u, two = (8 + 18 + 1500 + 12 + 8 + 18 + 46) * 800000u;
    assert_int_equal(myri_ether_ps(4), least);
    assert_int_equal(myri_ether_ps(5), least + 800000);
    assert_int_equal(myri_ether_ps(1458), (8 + 18 + 1500) * 800000u);
    assert_int_equal(myri_ether_ps(1459), two);
    run_wired(&w, 0);
    assert_int_equal(w.sent_ps[0], call + word + kernel);
    assert_int_equal(w.there_ps[0], w.sent_ps[0] + least + interrupt + kernel + miss);
    /* The one before has left by then, and the cable is free: two frames in the kernel, one interrupt for the last. */
    assert_int_equal(w.sent_ps[1], w.sent_ps[0] + least + call + large + 2 * kernel);
    assert_int_equal(w.there_ps[1], w.sent_ps[1] + two + interrupt + kernel + miss);
    assert_int_equal(w.sent_ps[2], w.sent_ps[1] + two + call + word + kernel);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(w.got[i], 20 + i);
        assert_int_equal(w.bytes[i], datagram[i]);
        assert_int_equal(w.from[i], 0);
    }
    run_wired(&w, 1); /* four frames interrupt who computes */
    assert_int_equal(w.computed_ps, 10000000000 + 4 * (interrupt + kernel));
}

/* Both send at once: the second one's frame begins behind the gap. */
static void task_that_sends_one(struct myri_task *t, void *arg)
{
    struct wired *w = arg;
    uint32_t me = t->host->id;
    myri_ether_send(&w->port[me], t, 1 - me, me ? w->in : w->out, 4);
    (void)myri_task_poll(t, w->port[me].flag, 0, RNL_SIM_NEVER);
    w->there_ps[me] = myri_hw_now(t->host->hw);
}

static void the_cable_carries_one_frame_at_a_time(void **state)
{
    (void)state;
    static struct wired w;
    struct myri_hw *hw = new_hw("H-A", "systems/probe/firmware.hex");
    memset(&w, 0, sizeof w);
    for (int i = 0; i < 2; i++)
        assert_int_equal(myri_ether_open(&w.port[i], &hw->host[i], 1500), 0);
    w.out = myri_host_take(&hw->host[0], 1500, 0);
    w.in = myri_host_take(&hw->host[1], 1500, 0);
    for (uint32_t i = 0; i < 2; i++)
        myri_hw_task(hw, i, task_that_sends_one, &w);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    uint64_t first = w.there_ps[0] < w.there_ps[1] ? w.there_ps[0] : w.there_ps[1];
    assert_int_equal(w.there_ps[0] + w.there_ps[1] - 2 * first, myri_ether_ps(4) + 12 * 800000u);
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

/* ---- address spaces ---- */

static void spaces_share_no_frame_and_lie_anywhere(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    static struct myri_space a, b;
    assert_int_equal(myri_space_init(&a, &hw->host[0]), 0);
    assert_int_equal(myri_space_init(&b, &hw->host[0]), 0);
    uint32_t at = myri_space_map(&a, 100 * 4096), other = myri_space_map(&b, 100 * 4096), rows = 0;
    for (uint32_t i = 0; i < 100; i++) {
        for (uint32_t k = 0; k < 100; k++)
            assert_int_not_equal(a.frame[i], b.frame[k]);
        rows += i && a.frame[i] == a.frame[i - 1] + 1;
        assert_int_equal(hw->host[0].owner[a.frame[i]], 1);
    }
    assert_true(rows < 5);
    myri_space_set_word(&a, NULL, at + 4096, 17);
    myri_space_set_word(&b, NULL, other + 4096, 18);
    assert_int_equal(myri_space_word(&a, NULL, at + 4096), 17);
    /* pinned it stays, paged out it comes back with its bytes, elsewhere */
    uint32_t card = myri_space_pin(&a, at + 4096);
    assert_int_equal(card, MYRI_SPACE_ADDRESS(1, a.frame[1] * 4096));
    assert_int_equal(myri_space_page_out(&a, at + 4096), -1);
    assert_int_equal(hw->host[0].pins[a.frame[1]], 1);
    assert_int_equal(myri_space_pin(&a, at + 4100), card + 4); /* pins are counted */
    myri_space_unpin(&a, at + 4100);
    assert_int_equal(hw->host[0].pins[a.frame[1]], 1);
    assert_int_equal(myri_space_page_out(&a, at + 4096), -1);
    myri_space_unpin(&a, at + 4096);
    assert_int_equal(hw->host[0].pins[a.frame[1]], 0);
    uint32_t was = a.frame[1];
    assert_int_equal(myri_space_page_out(&a, at + 4096), 0);
    assert_int_equal(hw->host[0].owner[was], 0);
    assert_int_equal(myri_space_word(&a, NULL, at + 4096), 17);
    assert_int_equal(a.page_ins, 1);
    assert_int_equal(myri_space_pin(&a, 0), 0);
    assert_int_equal(myri_space_pin(&a, at + 100 * 4096), 0);
    myri_space_fini(&a);
    myri_space_fini(&b);
    myri_hw_free(hw);
}

/* A row of frames is found although pages of the same space lie all over memory: they are moved, with what they hold,
 * but for those that are pinned or another space's. */
static void an_area_lies_in_a_row_and_is_pinned(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    static struct myri_space a, b;
    enum { PAGES = 900, ROW = 1000 };
    assert_int_equal(myri_space_init(&a, &hw->host[0]), 0);
    assert_int_equal(myri_space_init(&b, &hw->host[0]), 0);
    uint32_t other = myri_space_map(&b, 4096), at = myri_space_map(&a, PAGES * 4096), moved = 0;
    static uint32_t was[PAGES];
    uint32_t pinned = myri_space_pin(&a, at + 7 * 4096);
    myri_space_set_word(&b, NULL, other, 99);
    for (uint32_t i = 0; i < PAGES; i++) {
        myri_space_set_word(&a, NULL, at + 4096 * i, i + 1);
        was[i] = a.frame[i];
    }
    uint32_t area = myri_space_map_area(&a, ROW * 4096 - 8);
    assert_string_equal(hw->fault, "");
    assert_int_equal(area, at + PAGES * 4096);
    uint32_t card = myri_space_pin(&a, area);
    for (uint32_t i = 0; i < ROW; i++) {
        uint32_t frame = a.frame[PAGES + i];
        assert_int_equal(MYRI_SPACE_ADDRESS(1, frame * 4096), card + i * 4096);
        assert_int_equal(hw->host[0].pins[frame], 1);
        assert_int_equal(hw->host[0].owner[frame], 1);
        assert_int_equal(myri_space_word(&a, NULL, area + 4096 * i), 0);
        assert_int_equal(myri_space_page_out(&a, area + 4096 * i), -1);
        assert_int_not_equal(frame, b.frame[0]);
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        assert_int_equal(myri_space_word(&a, NULL, at + 4096 * i), i + 1);
        assert_int_equal(hw->host[0].owner[a.frame[i]], 1);
        moved += a.frame[i] != was[i];
    }
    assert_true(moved > PAGES / 10 && moved < PAGES);
    assert_int_equal(MYRI_SPACE_ADDRESS(1, a.frame[7] * 4096), pinned);
    assert_int_equal(myri_space_word(&b, NULL, other), 99);
    assert_int_equal(myri_space_map_area(&b, 3000 * 4096), 0); /* no such row is left */
    assert_non_null(strstr(hw->fault, "3000 frames in a row are asked for space 2"));
    myri_space_fini(&a);
    myri_space_fini(&b);
    myri_hw_free(hw);
}

static void a_dma_to_a_frame_of_another_space_is_a_fault(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    static struct myri_space a, b;
    assert_int_equal(myri_space_init(&a, &hw->host[0]), 0);
    assert_int_equal(myri_space_init(&b, &hw->host[0]), 0);
    uint32_t at = myri_space_map(&a, 4096), card = myri_space_pin(&a, at), frame = a.frame[0];
    struct myri_card *c = &hw->card[0];
    write_register(c, EAR, card);
    write_register(c, LAR, c->cpu.code_end);
    write_register(c, DIR, TO_HOST);
    write_register(c, CTR, 4);
    assert_string_equal(hw->fault, "");
    c->status |= HDONE; /* that one is over */
    /* the page goes, and its frame is another's, while the card still has the translation */
    myri_space_unpin(&a, at);
    assert_int_equal(myri_space_page_out(&a, at), 0);
    hw->host[0].owner[frame] = (uint8_t)b.id;
    hw->host[0].pins[frame] = 1;
    write_register(c, CTR, 4);
    assert_non_null(strstr(hw->fault, "for space 1 to host address"));
    assert_non_null(strstr(hw->fault, "is of space 2"));
    myri_space_fini(&a);
    myri_space_fini(&b);
    myri_hw_free(hw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_timer_runs_down_once_and_can_be_stopped),
        cmocka_unit_test(interrupts_wait_for_their_bit_and_cost_what_the_machine_says),
        cmocka_unit_test(packets_that_are_lost_or_overtaken_are_counted),
        cmocka_unit_test(processes_share_processors_by_quantum_and_time_adds_up),
        cmocka_unit_test(who_sleeps_gives_its_processor_away_until_it_is_woken),
        cmocka_unit_test(a_daemon_goes_first_and_who_is_stopped_does_not_run),
        cmocka_unit_test(a_daemon_goes_before_those_that_were_ready_before_it),
        cmocka_unit_test(a_signal_runs_in_the_middle_of_what_a_process_is_at_and_waits_while_blocked),
        cmocka_unit_test(letters_come_in_order_and_take_calls_ethernet_and_an_interrupt),
        cmocka_unit_test(datagrams_take_calls_kernels_the_cable_and_an_interrupt),
        cmocka_unit_test(the_cable_carries_one_frame_at_a_time),
        cmocka_unit_test(a_cycle_is_over_before_anybody_else_has_the_processor),
        cmocka_unit_test(spaces_share_no_frame_and_lie_anywhere),
        cmocka_unit_test(an_area_lies_in_a_row_and_is_pinned),
        cmocka_unit_test(a_dma_to_a_frame_of_another_space_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
