/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pm.c - PM's own calls: the same to many nodes by one upload, also where receivers refuse; a context switch only
 * when the network holds nothing of this node's. */
#include "runnel/runnel.h"
#include "sim/myrinet/data.h"
#include "sim/myrinet/experiments/run.h"
#include "sim/myrinet/systems/pm/host.h"
#include "support/unit.h"

enum { NODES = 4 };

struct job {
    struct myri_hw *hw;
    struct myri_side side[NODES];
    struct pm pm[NODES];
    uint32_t messages, bytes;
    uint64_t sleep_ps; /* of receivers, before they look */
    uint32_t got[NODES];
    int switches;
};

static void new_job(struct job *j, void (*task)(struct myri_task *, void *))
{
    struct myri_machine m;
    const struct myri_data *object = myri_data_find("systems/pm/firmware.hex");
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    assert_int_equal(myri_hw_new(&m, NODES, 1, object->bytes, object->n, &j->hw), 0);
    j->hw->horizon_ps = 1000000000000u; /* a second */
    for (uint32_t i = 0; i < NODES; i++) {
        j->side[i] = (struct myri_side){.hw = j->hw,
                                        .host = &j->hw->host[i],
                                        .card = &j->hw->card[i],
                                        .node = i,
                                        .nodes = NODES,
                                        .largest = PM_BUFFER};
        assert_int_equal(pm_open(&j->pm[i], &j->side[i]), 0);
        j->side[i].task = myri_hw_task(j->hw, i, task, j);
    }
    assert_int_equal(myri_hw_power(j->hw), 0);
}

static void run(struct job *j)
{
    if (myri_hw_run(j->hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
}

static uint32_t field(const struct job *j, uint32_t node, size_t offset)
{
    return myri_card_peek(&j->hw->card[node], myri_card_symbol(j->hw, "card") + (uint32_t)offset);
}

static uint32_t node_of(const struct job *j, const struct myri_task *t)
{
    for (uint32_t i = 0; i < NODES; i++)
        if (j->side[i].task == t)
            return i;
    return NODES;
}

/* Node 0 says the same to all others; they take `messages` of it, in order. */
static void to_all(struct myri_task *t, void *arg)
{
    struct job *j = arg;
    uint32_t node = node_of(j, t);
    struct pm *m = &j->pm[node];
    if (node == 0) {
        static const uint32_t others[] = {1, 2, 3};
        for (uint32_t k = 0; k < j->messages; k++) {
            uint32_t at = pm_get_send_buffer(m);
            for (uint32_t w = 0; w < j->bytes / 4; w++)
                myri_host_set_word(t->host, at + 4 * w, k << 16 | w);
            pm_send_many(m, others, 3, at, j->bytes);
            while (!pm_send_done(m)) /* the buffer may be composed in again */
                myri_task_spend(t, 5000000, "wait");
        }
        return;
    }
    myri_task_spend(t, j->sleep_ps, "sleep");
    for (; j->got[node] < j->messages; j->got[node]++) {
        assert_int_equal(pm_receive(m, RNL_SIM_NEVER), 1);
        assert_int_equal(m->got_bytes, j->bytes);
        assert_int_equal(m->got_from, 0);
        for (uint32_t w = 0; w < j->bytes / 4; w++)
            assert_int_equal(myri_host_word(t->host, m->got_at + 4 * w), j->got[node] << 16 | w);
        pm_put_receive_buffer(m);
    }
}

static void one_upload_serves_all_receivers(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 100, 4096, 8192};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct job j = {.messages = 5, .bytes = sizes[i]};
        new_job(&j, to_all);
        run(&j);
        assert_int_equal(j.hw->count.dma_from_host, 5 * j.bytes);
        assert_int_equal(j.hw->count.packets_sent, 5 * 3 * 2); /* and their ACKs */
        myri_hw_free(j.hw);
    }
}

/* Receivers that sleep until their buffers are full and more is refused: it is sent again, and comes in order. */
static void refused_copies_come_again(void **state)
{
    (void)state;
    struct job j = {.messages = PM_RING + 4, .bytes = 1024, .sleep_ps = 2000000000u};
    new_job(&j, to_all);
    run(&j);
    assert_true(field(&j, 1, offsetof(struct pm_card, refused)) > 3); /* the copies behind it wait for this one */
    assert_true(field(&j, 0, offsetof(struct pm_card, resent)) > 3);
    assert_int_equal(field(&j, 0, offsetof(struct pm_card, done)), 3 * j.messages);
    myri_hw_free(j.hw);
}

static void switches(struct myri_task *t, void *arg)
{
    struct job *j = arg;
    uint32_t node = node_of(j, t);
    struct pm *m = &j->pm[node];
    if (node == 0) {
        pm_send(m, 1, pm_get_send_buffer(m), 1024);
        assert_int_equal(pm_switch(m), -1); /* it is still under way */
        while (!pm_send_done(m))
            myri_task_spend(t, 1000000, "wait");
        uint64_t from = myri_hw_now(j->hw);
        assert_int_equal(pm_switch(m), 0);
        assert_true(myri_hw_now(j->hw) - from > 100 * (500000 + 121000)); /* a load and a store for each word kept */
        pm_send(m, 1, pm_get_send_buffer(m), 2048);                       /* and its channel is as it was */
        while (!pm_send_done(m))
            myri_task_spend(t, 1000000, "wait");
        j->switches = 1;
    } else if (node == 1) {
        for (uint32_t bytes = 1024; bytes <= 2048; bytes *= 2) {
            assert_int_equal(pm_receive(m, RNL_SIM_NEVER), 1);
            assert_int_equal(m->got_bytes, bytes);
            pm_put_receive_buffer(m);
        }
    }
}

static void a_switch_waits_until_nothing_is_under_way(void **state)
{
    (void)state;
    struct job j = {0};
    new_job(&j, switches);
    run(&j);
    assert_int_equal(j.switches, 1);
    myri_hw_free(j.hw);
}

/* ---- the pin-down cache ---- */

struct pinning {
    struct pm_pins pins;
    uint64_t first_ps, again_ps, one_more_ps, back_ps;
    int oldest_kept, pinned;
};

static uint64_t pinned_in(struct pinning *p, struct myri_task *t, uint32_t at, uint32_t bytes)
{
    uint64_t from = myri_hw_now(t->host->hw);
    pm_pin(&p->pins, t, at, bytes);
    return myri_hw_now(t->host->hw) - from;
}

static void pins(struct myri_task *t, void *arg)
{
    struct pinning *p = arg;
    struct myri_host *h = t->host;
    uint32_t page = h->hw->page, at = myri_host_take(h, PM_PINNED + page, 0), places = PM_PINNED / page;
    p->first_ps = pinned_in(p, t, at, PM_PINNED);
    p->again_ps = pinned_in(p, t, at + page / 2, PM_PINNED - page); /* parts of the first and of the last page */
    p->again_ps += pinned_in(p, t, at, page);                       /* so the second one is the oldest now */
    p->one_more_ps = pinned_in(p, t, at + PM_PINNED, 4);
    p->oldest_kept = h->pins[at / page + 1];
    for (uint32_t i = 0; i <= places; i++)
        p->pinned += h->pins[at / page + i];
    p->back_ps = pinned_in(p, t, at + page, 4);
}

static void the_page_used_longest_ago_loses_its_pin(void **state)
{
    (void)state;
    struct pinning p = {0};
    struct myri_machine m;
    struct myri_hw *hw;
    const struct myri_data *object = myri_data_find("systems/pm/firmware.hex");
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    assert_int_equal(myri_hw_new(&m, 1, 1, object->bytes, object->n, &hw), 0);
    myri_hw_task(hw, 0, pins, &p);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), 0);
    assert_int_equal(p.first_ps, 256 * 14400000u);
    assert_int_equal(p.again_ps, 0);
    assert_int_equal(p.one_more_ps, 14400000);
    assert_false(p.oldest_kept);
    assert_int_equal(p.pinned, 256);
    assert_int_equal(p.back_ps, 14400000);
    assert_int_equal(p.pins.misses, 258);
    assert_int_equal(p.pins.hits, 256 + 1);
    myri_hw_free(hw);
}

static double rate_of(const char *system, uint32_t places)
{
    struct myri_experiment x;
    struct myri_machine m;
    struct myri_outcome out;
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    myri_experiment_init(&x, myri_system_find(system), &m, MYRI_STREAM_RATE, 65536);
    x.places = places;
    x.count = 60;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%s: %s", system, rnl_last_error()->text);
    assert_int_equal(out.received, 60);
    assert_int_equal(out.wrong, 0);
    return out.value;
}

/* Its two ends are the systems whose figures are published. */
static void the_cache_lies_between_all_pages_pinned_and_none(void **state)
{
    (void)state;
    double all = rate_of("pm-cached", 20), none = rate_of("pm-uncached", 20), one = rate_of("pm-cache", 1);
    double some = rate_of("pm-cache", 24), many = rate_of("pm-cache", 200);
    assert_true(one < all && one > 0.99 * all);
    assert_true(some < 0.97 * one && some > 1.03 * many);
    assert_true(many > 0.99 * none && many < 1.05 * none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_upload_serves_all_receivers),
        cmocka_unit_test(refused_copies_come_again),
        cmocka_unit_test(a_switch_waits_until_nothing_is_under_way),
        cmocka_unit_test(the_page_used_longest_ago_loses_its_pin),
        cmocka_unit_test(the_cache_lies_between_all_pages_pinned_and_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
