/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_mail.c - what goes between the systems of two hosts, against closed forms: letters of a daemon, datagrams over
 * Ethernet. */
#include "sim/myrinet/os/ether.h"
#include "sim/myrinet/os/mail.h"
#include "sim/myrinet/os/process.h"
#include "tests/myrinet/machine.h"

#include <string.h>

/* ---- letters ---- */

struct posted {
    struct myri_os os[2];
    struct myri_process worker, daemon;
    struct myri_mailbox box;
    uint64_t came_ps[3];
    uint32_t got[3], seen[3];
};

static void task_that_takes_letters(struct myri_task *t, void *arg)
{
    struct posted *g = arg;
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
    struct posted *g = arg;
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
    struct posted *g = arg;
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
    static struct posted g;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_come_in_order_and_take_calls_ethernet_and_an_interrupt),
        cmocka_unit_test(datagrams_take_calls_kernels_the_cable_and_an_interrupt),
        cmocka_unit_test(the_cable_carries_one_frame_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
