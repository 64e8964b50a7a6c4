/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pm.c - PM's own calls: the same to many nodes by one upload, also where receivers refuse; jobs that take
 * turns; the pin-down cache. */
#include "runnel/runnel.h"
#include "sim/myrinet/data.h"
#include "sim/myrinet/experiments/run.h"
#include "sim/myrinet/systems/pm/gang.h"
#include "support/unit.h"

#include <malloc.h>
#include <string.h>

enum { NODES = 4 };

struct job {
    struct myri_hw *hw;
    struct myri_side side[NODES];
    struct pm pm[NODES];
    uint32_t messages, bytes;
    uint64_t sleep_ps; /* of receivers, before they look */
    uint32_t got[NODES];
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

/* ---- jobs that take turns ---- */

/* Host and bus take next to no time, so that one job's messages come soon behind the other's. */
static const char *const quick[] = {"ethernet=0",       "load=0.001",  "store=0.001", "system_call=0",
                                    "process_switch=0", "interrupt=0", NULL};

static struct myri_experiment gang(const char *quantum)
{
    struct myri_experiment x;
    struct myri_machine m;
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    assert_int_equal(myri_machine_set(&m, quantum), 0);
    myri_experiment_init(&x, myri_system_find("pm-gang"), &m, MYRI_SWITCH_TIME, 4);
    return x;
}

static struct myri_outcome turns(enum myri_measure what, const char *quantum, uint32_t senders, uint32_t bytes,
                                 uint32_t count, double slow_us, uint32_t seed)
{
    struct myri_experiment x;
    struct myri_machine m;
    struct myri_outcome out;
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    assert_int_equal(myri_machine_set(&m, quantum), 0);
    for (int i = 0; slow_us < 0 && quick[i]; i++)
        assert_int_equal(myri_machine_set(&m, quick[i]), 0);
    myri_experiment_init(&x, myri_system_find("pm-gang"), &m, what, bytes);
    x.senders = senders;
    x.count = count;
    x.slow_us = slow_us > 0 ? slow_us : 0;
    x.seed = seed;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%u senders of %u bytes, %s: %s", senders, bytes, quantum, rnl_last_error()->text);
    assert_int_equal(out.sent, 2 * senders * count);
    assert_int_equal(out.received, out.sent);
    assert_int_equal(out.wrong, 0);
    return out;
}

/* Every message is checked: it is of the job that gets it, and the next one of its sender. Quanta of odd lengths end in
 * the middle of all that processes and cards do; with receivers that compute, most of the messages are refused. */
static void a_switch_in_a_stream_loses_and_doubles_nothing(void **state)
{
    (void)state;
    static const char *const quantum[] = {"quantum=211", "quantum=353.7", "quantum=1009"};
    static const uint32_t bytes[] = {4, 1000, 8192};
    for (uint32_t q = 0; q < 3; q++)
        for (uint32_t b = 0; b < 3; b++) {
            (void)turns(MYRI_SWITCH_TIME, quantum[q], 1, bytes[b], 150, 0, q + b);
            (void)turns(MYRI_SWITCH_TIME, quantum[q], 1, bytes[b], 80, 60, q + b);
        }
    (void)turns(MYRI_SWITCH_TIME, "quantum=300", 3, 8192, 40, 200, 1);
    (void)turns(MYRI_SWITCH_TIME, "quantum=457", 7, 128, 60, 20, 2);
    (void)turns(MYRI_SWITCH_TIME, "quantum=300", 7, 4096, 20, 100, 3);
    (void)turns(MYRI_SWITCH_TIME, "quantum=211", 1, 8192, 150, -1, 3); /* quick */
}

/* A load and a store for each word that the card knows of a job; what waits to be received does not make it longer. */
static void a_switch_costs_what_its_words_cost_and_waits_for_the_network(void **state)
{
    (void)state;
    const double words = PM_CHANNEL * (0.5 + 0.121);
    double idle = turns(MYRI_SWITCH_COST, "quantum=500", 1, 4, 300, 0, 1).value;
    double full = turns(MYRI_SWITCH_COST, "quantum=500", 3, 8192, 40, 200, 1).value;
    assert_true(idle > words && idle < 1.1 * words);
    assert_true(full > words && full < 1.1 * words);
    /* eight messages of 8 KB from each of three: 65 us each, before the network holds nothing */
    double light = turns(MYRI_SWITCH_TIME, "quantum=500", 3, 4, 300, 0, 1).value;
    double heavy = turns(MYRI_SWITCH_TIME, "quantum=500", 3, 8192, 40, 0, 1).value;
    assert_true(light > idle + 5 * 100); /* letters there and back, twice, and the last one there */
    assert_true(heavy > light + 500);
}

struct alone {
    struct pm_gang gang;
    struct myri_side side[2][2]; /* of job, and node */
    struct pm pm[2][2];
    uint64_t took_ps;
    uint32_t switches;
    int quick; /* the machine; and messages of job 0 are large */
    int waits; /* for the ACK of each fourth message */
};

static void task_of_one(struct myri_task *t, void *arg)
{
    struct alone *a = arg;
    uint32_t node = t->host->id, job = a->side[1][node].task == t;
    struct pm *m = &a->pm[job][node];
    if (a->gang.jobs)
        pm_gang_join(&a->gang, job, &a->side[job][node]);
    uint64_t from = myri_hw_now(t->host->hw);
    for (uint32_t k = 0; k < 400; k++) {
        if (node == 0) {
            pm_send(m, 1, pm_get_send_buffer(m), a->quick && !job ? PM_BUFFER : 4);
            while (a->waits && k % 4 == 3 && !pm_send_done(m))
                myri_task_spend(t, 2000000, "wait");
        } else {
            assert_int_equal(pm_receive(m, RNL_SIM_NEVER), 1);
            pm_put_receive_buffer(m);
        }
    }
    if (node)
        a->took_ps = myri_hw_now(t->host->hw) - from;
    a->switches += a->gang.node[node].os.switches;
    if (a->gang.jobs)
        pm_gang_leave(&a->gang, job, &a->side[job][node]);
}

static void run_jobs(struct alone *a, uint32_t jobs, int waits, int in_no_time)
{
    struct myri_machine m;
    struct myri_hw *hw;
    const struct myri_data *object = myri_data_find("systems/pm/firmware-gang.hex");
    memset(a, 0, sizeof *a);
    a->waits = waits;
    a->quick = in_no_time;
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    assert_int_equal(myri_machine_set(&m, "quantum=500"), 0);
    for (int i = 0; in_no_time && quick[i]; i++)
        assert_int_equal(myri_machine_set(&m, quick[i]), 0);
    /* A long message has its ACK while the bus still brings it to memory. That takes longer than a switch, whose words
     * let a burst pass each. */
    if (in_no_time)
        assert_int_equal(myri_machine_set(&m, "dma_rate=16"), 0);
    if (in_no_time)
        assert_int_equal(myri_machine_set(&m, "bus_burst=4"), 0);
    assert_int_equal(myri_hw_new(&m, 2, 1, object->bytes, object->n, &hw), 0);
    hw->horizon_ps = 1000000000000u;
    if (jobs)
        assert_int_equal(pm_gang_init(&a->gang, hw, jobs), 0);
    for (uint32_t i = 0; i < (jobs ? 2 * jobs : 2); i++) {
        struct myri_side *s = &a->side[i / 2][i % 2];
        struct pm *p = &a->pm[i / 2][i % 2];
        *s =
            (struct myri_side){.hw = hw, .host = &hw->host[i % 2], .card = &hw->card[i % 2], .node = i % 2, .nodes = 2};
        assert_int_equal(jobs ? pm_gang_open(&a->gang, i / 2, p, s) : pm_open(p, s), 0);
    }
    if (jobs)
        pm_gang_start(&a->gang);
    for (uint32_t i = 0; i < (jobs ? 2 * jobs : 2); i++)
        a->side[i / 2][i % 2].task = myri_hw_task(hw, i % 2, task_of_one, a);
    assert_int_equal(myri_hw_power(hw), 0);
    if (myri_hw_run(hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    myri_hw_free(hw);
}

static void a_job_that_is_alone_pays_nothing(void **state)
{
    (void)state;
    static struct alone with, without;
    run_jobs(&without, 0, 0, 0);
    run_jobs(&with, 1, 0, 0);
    assert_true(without.took_ps > 3 * (uint64_t)500000000); /* several quanta */
    assert_int_equal(with.gang.turns, 0);
    assert_int_equal(with.switches, 4); /* on each node to the process, and to the daemon, when they begin */
    assert_true(with.took_ps < without.took_ps + 20000000); /* its switch, and the other side's */
}

static void each_job_knows_how_many_of_its_messages_have_their_ack(void **state)
{
    (void)state;
    static struct alone two;
    run_jobs(&two, 2, 1, 0);
    assert_true(two.gang.turns > 3);
    run_jobs(&two, 2, 0, 1); /* short ones soon behind long ones */
    assert_true(two.gang.turns > 3);
}

/* Letters, switches and interrupts take longer than such a quantum; each process has something of it all the same. */
static void a_quantum_is_never_too_short_to_go_on(void **state)
{
    (void)state;
    static const char *const quantum[] = {"quantum=10", "quantum=11", "quantum=14", "quantum=20", "quantum=30"};
    for (uint32_t q = 0; q < sizeof quantum / sizeof quantum[0]; q++)
        (void)turns(MYRI_SWITCH_TIME, quantum[q], 1 + q % 3, 1000, 40, 0, q);
    (void)turns(MYRI_SWITCH_TIME, "quantum=10", 1, 4, 40, -1, 1); /* quick */
    for (int slow = 0; slow < 2; slow++) { /* what it costs to begin it is all that there is, or letters take nothing */
        struct myri_experiment x = gang("quantum=10");
        struct myri_outcome out;
        assert_int_equal(myri_machine_set(&x.machine, "process_switch=1000"), 0);
        assert_int_equal(myri_machine_set(&x.machine, slow ? "ethernet=1" : "ethernet=0"), 0);
        assert_int_equal(myri_machine_set(&x.machine, slow ? "interrupt=100" : "interrupt=0"), 0);
        assert_int_equal(myri_machine_set(&x.machine, slow ? "system_call=1" : "system_call=0"), 0);
        x.count = 40;
        if (myri_experiment_run(&x, &out) < 0)
            fail_msg("%d: %s", slow, rnl_last_error()->text);
        assert_int_equal(out.received, 80);
    }
}

static void a_run_that_fails_leaves_no_event_in_memory_that_is_freed(void **state)
{
    (void)state;
    (void)mallopt(M_MMAP_THRESHOLD, 65536); /* freed memory is unmapped; sanitizers see it anyway */
    for (uint32_t k = 0; k < 40; k++) {     /* it ends while daemons sleep and their letters are on the way */
        struct myri_experiment x = gang(k % 2 ? "quantum=300" : "quantum=50");
        struct myri_outcome out;
        x.senders = 1 + k % 5;
        x.seed = k;
        x.late_per_2_32 = (uint64_t)1 << (22 + k % 8);
        assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ABORTED);
        assert_non_null(strstr(rnl_last_error()->text, "takes the network to keep packets in order"));
    }
}

static void jobs_have_the_conditions_of_the_experiment(void **state)
{
    (void)state;
    struct myri_experiment x = gang("quantum=1000");
    struct myri_outcome near, far, out;
    assert_int_equal(myri_experiment_run(&x, &near), 0);
    x.across_bus = 1;
    assert_int_equal(myri_experiment_run(&x, &far), 0);
    assert_true(far.count.loads > near.count.loads);
    for (int how = 0; how < 2; how++) {
        x = gang("quantum=1000");
        x.reorder = !how;
        x.late_per_2_32 = how ? (uint64_t)1 << 29 : 0;
        assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ABORTED);
        assert_non_null(strstr(rnl_last_error()->text, "pm-gang takes the network to keep packets in order"));
    }
    for (int what = 0; what < 3; what++) {
        static const char *const says[] = {"--cold has no effect", "--processes has no effect",
                                           "--places has no effect"};
        x = gang("quantum=1000");
        x.cold = what == 0;
        x.processes = what == 1 ? 1 : 0;
        x.places = what == 2 ? 4 : 0;
        assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ARG);
        assert_non_null(strstr(rnl_last_error()->text, says[what]));
    }
}

static void jobs_are_few_and_of_firmware_that_lets_them(void **state)
{
    (void)state;
    static struct pm_gang g;
    struct myri_experiment x;
    struct myri_machine m;
    struct myri_outcome out;
    struct myri_hw hw = {.nodes = 2};
    assert_int_equal(pm_gang_init(&g, &hw, PM_JOBS + 1), RNL_ERR_ARG);
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    myri_experiment_init(&x, myri_system_find("pm"), &m, MYRI_SWITCH_COST, 4);
    assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "those of these systems do: pm-gang"));
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
        cmocka_unit_test(a_switch_in_a_stream_loses_and_doubles_nothing),
        cmocka_unit_test(a_switch_costs_what_its_words_cost_and_waits_for_the_network),
        cmocka_unit_test(a_job_that_is_alone_pays_nothing),
        cmocka_unit_test(each_job_knows_how_many_of_its_messages_have_their_ack),
        cmocka_unit_test(a_quantum_is_never_too_short_to_go_on),
        cmocka_unit_test(a_run_that_fails_leaves_no_event_in_memory_that_is_freed),
        cmocka_unit_test(jobs_have_the_conditions_of_the_experiment),
        cmocka_unit_test(jobs_are_few_and_of_firmware_that_lets_them),
        cmocka_unit_test(the_page_used_longest_ago_loses_its_pin),
        cmocka_unit_test(the_cache_lies_between_all_pages_pinned_and_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
