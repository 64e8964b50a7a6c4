/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_vmmc_daemon.c - VMMC's daemons as processes: exports and imports take their time, wait for each other or are
 * refused with a reason; notifications reach a handler in order, none lost, whatever the process does; the status check
 * of a send. */
#include "tests/myrinet/machine.h"

#include "sim/myrinet/systems/vmmc/daemon.h"
#include "support/must.h"

#include <string.h>

enum { PAGE = 4096, NODES = 8, NOTES = 150, US = 1000000 };

struct scene {
    struct myri_hw *hw;
    struct vmmc_daemons daemons;
    struct vmmc_user user[NODES][2];
    uint32_t nodes, at, proxy, handlers_from;
    uint64_t exported_ps, imported_ps, asked_ps, computed_ps, block_ps;
    uint32_t next[NODES], wrong, inside, nested, senders_left;
    int asks_early;
};

static void open_scene(struct scene *s, uint32_t nodes)
{
    struct myri_machine m = machine("H-P");
    const struct myri_data *d = myri_data_find("systems/vmmc/firmware.hex");
    memset(s, 0, sizeof *s);
    s->nodes = nodes;
    assert_int_equal(myri_hw_new(&m, nodes, 1, d->bytes, d->n, &s->hw), 0);
    s->hw->horizon_ps = 20000000000000u;
    vmmc_daemons_init(&s->daemons, s->hw, 1);
    for (uint32_t i = 0; i < 2 * nodes; i++)
        assert_int_equal(vmmc_user_open(&s->user[i / 2][i % 2], &s->daemons, i / 2, i % 2), 0);
}

static void run_scene(struct scene *s)
{
    assert_int_equal(myri_hw_power(s->hw), 0);
    if (myri_hw_run(s->hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    for (uint32_t i = 0; i < 2 * s->nodes; i++)
        vmmc_user_close(&s->user[i / 2][i % 2]);
    myri_hw_free(s->hw);
}

/* ---- exports and imports ---- */

static void exporter(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[1][0];
    vmmc_user_join(u, t);
    myri_task_spend(t, s->asks_early ? 5000 * (uint64_t)US : 0, "compute");
    TEST_MUST(vmmc_user_export(u, 7, s->at, 3 * PAGE, NULL, NULL, 0) == VMMC_GRANTED);
    s->exported_ps = myri_hw_now(s->hw);
    vmmc_user_leave(u);
}

static void importer(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[0][0];
    uint32_t proxy = 0, bytes = 0, from = myri_host_take(t->host, PAGE, 0);
    vmmc_user_join(u, t);
    myri_task_spend(t, s->asks_early ? 0 : 5000 * (uint64_t)US, "compute");
    s->asked_ps = myri_hw_now(s->hw);
    TEST_MUST(vmmc_user_import(u, 1, 0, 7, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_GRANTED);
    s->imported_ps = myri_hw_now(s->hw);
    TEST_MUST(bytes == 3 * PAGE);
    myri_host_set_word(t->host, from, 99);
    vmmc_send(&u->vmmc, from, proxy + 2 * PAGE, 4);
    myri_task_spend(t, 100 * (uint64_t)US, "wait");
    TEST_MUST(myri_host_word(&s->hw->host[1], s->at + 2 * PAGE) == 99);
    vmmc_user_leave(u);
}

/* On the importer's node, with the one processor that it has. */
static void worker(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    vmmc_user_join(&s->user[0][1], t);
    uint64_t from = myri_hw_now(s->hw);
    myri_task_spend(t, 4000 * (uint64_t)US, "compute");
    s->computed_ps = myri_hw_now(s->hw) - from;
    vmmc_user_leave(&s->user[0][1]);
}

static void an_import_waits_for_its_export_and_takes_the_daemons_time(void **state)
{
    (void)state;
    static struct scene s;
    const uint64_t ethernet = 100 * (uint64_t)US, call = 3 * (uint64_t)US, pin = 15 * (uint64_t)US,
                   interrupt = 20 * (uint64_t)US, change = 10 * (uint64_t)US;
    for (int early = 0; early < 2; early++) {
        open_scene(&s, 2);
        s.asks_early = early;
        s.at = myri_host_take(&s.hw->host[1], 3 * PAGE, 0);
        myri_hw_task(s.hw, 1, exporter, &s);
        myri_hw_task(s.hw, 0, importer, &s);
        if (early)
            myri_hw_task(s.hw, 0, worker, &s);
        run_scene(&s);
        if (!early) { /* to the daemon, over Ethernet and back, and its answer: four letters, each with a switch */
            uint64_t letters = 2 * (ethernet + interrupt) + 4 * (2 * call + change);
            uint64_t work = 3 * 35 * 8500 + 4 * 121000; /* operations for each letter that is served, four stores */
            assert_true(s.imported_ps - s.asked_ps >= letters + work);
            assert_true(s.imported_ps - s.asked_ps < letters + work + US);
            assert_true(s.exported_ps > 3 * pin + 4 * call && s.exported_ps < 3 * pin + 4 * call + 60 * (uint64_t)US);
        } else {
            assert_true(s.imported_ps > s.exported_ps);
            assert_true(s.imported_ps < s.exported_ps + ethernet + 100 * (uint64_t)US);
            assert_true(s.computed_ps < 4100 * (uint64_t)US); /* who waits gives its processor away */
        }
    }
}

static void refused_user(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[0][0];
    const struct vmmc_importer other = {.node = 1, .process = 1}, me = {.node = 0, .process = 0};
    const struct vmmc_importer many[VMMC_IMPORTERS + 1] = {{0, 0}};
    uint32_t proxy = 0, bytes, own = myri_host_take(t->host, PAGE, 0), pages = VMMC_PAGES - 8;
    uint32_t large = myri_host_take(t->host, pages * PAGE, 0);
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_export(u, 1, own, PAGE, NULL, &other, 1) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_export(u, 1, own, PAGE, NULL, NULL, 0) == VMMC_TAKEN);
    TEST_MUST(vmmc_user_export(u, 2, own + 4, PAGE, NULL, NULL, 0) == VMMC_NO_PAGES);
    TEST_MUST(vmmc_user_export(u, 2, own, PAGE - 4, NULL, NULL, 0) == VMMC_NO_PAGES);
    TEST_MUST(vmmc_user_export(u, 2, own, 0xfffff000u, NULL, NULL, 0) == VMMC_NO_PAGES);
    TEST_MUST(vmmc_user_export(u, 2, own, PAGE, NULL, many, VMMC_IMPORTERS + 1) == VMMC_TOO_MANY);
    TEST_MUST(vmmc_user_import(u, 0, 0, 1, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_FORBIDDEN);
    TEST_MUST(vmmc_user_import(u, 2, 0, 1, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_NO_NODE);
    TEST_MUST(vmmc_user_import(u, 1, VMMC_PROCESSES, 1, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_NO_NODE);
    /* who does not wait for the answer either takes nothing back where there is nobody */
    TEST_MUST(vmmc_user_import(u, 7, 0, 1, myri_hw_now(s->hw), &proxy, &bytes) == VMMC_NO_NODE);
    TEST_MUST(vmmc_user_import(u, 1, VMMC_PROCESSES, 1, myri_hw_now(s->hw), &proxy, &bytes) == VMMC_NO_NODE);
    uint64_t from = myri_hw_now(s->hw);
    TEST_MUST(vmmc_user_import(u, 1, 0, 1, from + 2000 * (uint64_t)US, &proxy, &bytes) == VMMC_NOT_EXPORTED);
    TEST_MUST(myri_hw_now(s->hw) > from + 2000 * (uint64_t)US);
    TEST_MUST(vmmc_user_unexport(u, 5) == VMMC_NOT_EXPORTED);
    TEST_MUST(vmmc_user_unexport(u, 1) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_import(u, 0, 0, 1, myri_hw_now(s->hw) + US, &proxy, &bytes) == VMMC_NOT_EXPORTED);
    TEST_MUST(vmmc_user_export(u, 3, large, pages * PAGE, NULL, &me, 1) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_import(u, 0, 0, 3, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_import(u, 0, 0, 3, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_NO_ROOM);
    TEST_MUST(u->vmmc.imported <= VMMC_PAGES);
    for (int a = 0; a < VMMC_ANSWERS; a++)
        TEST_MUST(strlen(vmmc_answer_text((enum vmmc_answer)a)) > 5);
    s->wrong = 17;
    vmmc_user_leave(u);
}

static void what_cannot_be_is_refused_with_a_reason(void **state)
{
    (void)state;
    static struct scene s;
    open_scene(&s, 2);
    myri_hw_task(s.hw, 0, refused_user, &s);
    run_scene(&s);
    assert_int_equal(s.wrong, 17);
}

/* ---- notifications ---- */

static uint32_t value_of(uint32_t node, uint32_t k)
{
    return node << 16 | (k + 1);
}

static void on_note(struct vmmc_user *u, uint32_t id, uint32_t offset, uint32_t bytes, struct vmmc_importer from)
{
    struct scene *s = u->arg;
    uint32_t k = s->next[from.node]++;
    s->nested += s->inside++ != 0;
    s->wrong += u->process.blocked != 0;
    s->wrong += id != 7 || bytes != 4 || offset != 4 * (from.node * NOTES + k) || from.process != 0;
    s->wrong += myri_host_word(u->vmmc.host, s->at + offset) != value_of(from.node, k); /* the message is here before */
    myri_task_spend(u->vmmc.task, 15 * (uint64_t)US, "handle");                         /* more come meanwhile */
    s->inside--;
}

static void receiver(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[0][0];
    u->arg = s;
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_export(u, 7, s->at, (4 * NODES * NOTES + PAGE - 1) / PAGE * PAGE, on_note, NULL, 0) ==
              VMMC_GRANTED);
    while (s->senders_left) {
        myri_process_block(&u->process);
        uint64_t handled = u->handled;
        myri_task_spend(t, s->block_ps, "compute");
        TEST_MUST(u->handled == handled); /* none runs while they are blocked */
        myri_process_unblock(&u->process);
        myri_task_spend(t, 200 * (uint64_t)US, "compute");
    }
    myri_task_spend(t, 100 * (uint64_t)US, "wait");
    vmmc_user_leave(u);
}

static void notifier(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    uint32_t node = t->host->id, proxy, bytes, from = myri_host_take(t->host, PAGE, 0);
    struct vmmc_user *u = &s->user[node][0];
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_import(u, 0, 0, 7, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_notify(u, from, proxy + bytes, 4) == -1);
    for (uint32_t k = 0; k < NOTES; k++) {
        myri_host_set_word(t->host, from, value_of(node, k));
        TEST_MUST(vmmc_user_notify(u, from, proxy + 4 * (node * NOTES + k), 4) == 0);
        if (k % 50 == 49) /* some of those so far are handled, and then many come */
            myri_task_spend(t, 2500 * (uint64_t)US, "compute");
    }
    myri_task_spend(t, 100 * (uint64_t)US, "wait");
    s->senders_left--;
    vmmc_user_leave(u);
}

/* Another process of the receiver's node, which computes all the time. */
static void rival(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    vmmc_user_join(&s->user[0][1], t);
    while (s->senders_left)
        myri_task_spend(t, 50 * (uint64_t)US, "compute");
    vmmc_user_leave(&s->user[0][1]);
}

/* More notes than a page of them holds while they are blocked, from one sender and from seven. */
static void notifications_are_handled_once_each_in_order_and_none_is_lost_while_blocked(void **state)
{
    (void)state;
    static struct scene s;
    static const uint32_t nodes[] = {2, 3, 8};
    static const uint64_t block[] = {20, 900, 12000};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t b = 0; b < 3; b++) {
            open_scene(&s, nodes[i]);
            s.block_ps = block[b] * US;
            s.senders_left = nodes[i] - 1;
            s.at = myri_host_take(&s.hw->host[0], 4 * NODES * NOTES, 0);
            myri_hw_task(s.hw, 0, receiver, &s);
            myri_hw_task(s.hw, 0, rival, &s);
            for (uint32_t n = 1; n < nodes[i]; n++)
                myri_hw_task(s.hw, n, notifier, &s);
            run_scene(&s);
            for (uint32_t n = 1; n < nodes[i]; n++)
                assert_int_equal(s.next[n], NOTES);
            assert_int_equal(s.user[0][0].handled, NOTES * (nodes[i] - 1));
            assert_int_equal(s.user[0][0].dropped, 0);
            assert_int_equal(s.wrong, 0);
            assert_int_equal(s.nested, 0);
        }
}

static void on_large(struct vmmc_user *u, uint32_t id, uint32_t offset, uint32_t bytes, struct vmmc_importer from)
{
    struct scene *s = u->arg;
    s->wrong += id != 7 || offset != 0 || bytes != 3 * PAGE || from.node != 0;
    s->wrong += myri_host_word(u->vmmc.host, s->at + 3 * PAGE - 4) != 4711;
}

static void receiver_of_large(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[1][0];
    u->arg = s;
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_export(u, 7, s->at, 3 * PAGE, on_large, NULL, 0) == VMMC_GRANTED);
    s->exported_ps = myri_hw_now(s->hw);
    myri_task_spend(t, 60000 * (uint64_t)US, "compute");
    vmmc_user_leave(u);
}

static void sender_of_large(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[0][0];
    uint32_t proxy, bytes, from = myri_host_take(t->host, 3 * PAGE, 0);
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_import(u, 1, 0, 7, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_GRANTED);
    myri_host_set_word(t->host, from + 3 * PAGE - 4, 4711);
    TEST_MUST(vmmc_user_notify(u, from, proxy, 3 * PAGE) == 0);
    vmmc_user_leave(u);
}

static void rival_of_large(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    vmmc_user_join(&s->user[1][1], t);
    myri_task_spend(t, 60000 * (uint64_t)US, "compute");
    vmmc_user_leave(&s->user[1][1]);
}

/* On a node where another program computes, too, a daemon does not wait for the end of that one's quantum of 10 ms; the
 * program that has asked does. */
static void a_handler_finds_the_whole_message_and_a_daemon_goes_first(void **state)
{
    (void)state;
    static struct scene s;
    open_scene(&s, 2);
    s.at = myri_host_take(&s.hw->host[1], 3 * PAGE, 0);
    myri_hw_task(s.hw, 1, receiver_of_large, &s);
    myri_hw_task(s.hw, 1, rival_of_large, &s);
    myri_hw_task(s.hw, 0, sender_of_large, &s);
    run_scene(&s);
    assert_true(s.exported_ps < 15000 * (uint64_t)US);
    assert_int_equal(s.user[1][0].handled, 1);
    assert_int_equal(s.wrong, 0);
}

enum { WORDS = 400 };

static void sends_back(struct vmmc_user *u, uint32_t id, uint32_t offset, uint32_t bytes, struct vmmc_importer from)
{
    struct scene *s = u->arg;
    (void)id, (void)bytes, (void)from;
    myri_host_set_word(u->vmmc.host, s->handlers_from, offset / 4 + 1);
    vmmc_user_send(u, s->handlers_from, s->proxy + PAGE + offset, 4);
}

static void sends_and_is_interrupted(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[0][0];
    uint32_t bytes, from = myri_host_take(t->host, PAGE, 0), own = myri_host_take(t->host, PAGE, 0);
    s->handlers_from = myri_host_take(t->host, PAGE, 0);
    u->arg = s;
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_import(u, 1, 0, 7, RNL_SIM_NEVER, &s->proxy, &bytes) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_export(u, 8, own, PAGE, sends_back, NULL, 0) == VMMC_GRANTED);
    for (uint32_t k = 0; k < WORDS || s->senders_left; k++) {
        myri_host_set_word(t->host, from, k % WORDS + 1);
        vmmc_user_send(u, from, s->proxy + 4 * (k % WORDS), 4);
    }
    myri_task_spend(t, 1000 * (uint64_t)US, "wait");
    vmmc_user_leave(u);
}

static void interrupts_it(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[1][0];
    uint32_t proxy, bytes, from = myri_host_take(t->host, PAGE, 0);
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_export(u, 7, s->at, 2 * PAGE, NULL, NULL, 0) == VMMC_GRANTED);
    TEST_MUST(vmmc_user_import(u, 0, 0, 8, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_GRANTED);
    for (uint32_t k = 0; k < WORDS; k++) {
        TEST_MUST(vmmc_user_notify(u, from, proxy + 4 * k, 4) == 0);
        myri_task_spend(t, (31 + k % 7) * (uint64_t)US, "compute");
    }
    s->senders_left--;
    vmmc_user_leave(u);
}

static void a_handler_may_send_while_its_process_sends(void **state)
{
    (void)state;
    static struct scene s;
    open_scene(&s, 2);
    s.senders_left = 1;
    s.at = myri_host_take(&s.hw->host[1], 2 * PAGE, 0);
    myri_hw_task(s.hw, 0, sends_and_is_interrupted, &s);
    myri_hw_task(s.hw, 1, interrupts_it, &s);
    assert_int_equal(myri_hw_power(s.hw), 0);
    if (myri_hw_run(s.hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    for (uint32_t k = 0; k < WORDS; k++) {
        assert_int_equal(myri_host_word(&s.hw->host[1], s.at + 4 * k), k + 1);
        assert_int_equal(myri_host_word(&s.hw->host[1], s.at + PAGE + 4 * k), k + 1);
    }
    for (uint32_t i = 0; i < 4; i++)
        vmmc_user_close(&s.user[i / 2][i % 2]);
    myri_hw_free(s.hw);
}

/* ---- the status check ---- */

static void checker(struct myri_task *t, void *arg)
{
    struct scene *s = arg;
    struct vmmc_user *u = &s->user[0][0];
    uint32_t proxy, bytes, from = myri_host_take(t->host, 4 * PAGE, 0);
    vmmc_user_join(u, t);
    TEST_MUST(vmmc_user_import(u, 1, 0, 7, RNL_SIM_NEVER, &proxy, &bytes) == VMMC_GRANTED);
    vmmc_translate(&u->vmmc, from, 4);
    uint64_t began = myri_hw_now(s->hw), loads = s->hw->count.loads;
    vmmc_post(&u->vmmc, from, proxy, 4);
    uint64_t short_ps = myri_hw_now(s->hw) - began;
    vmmc_post(&u->vmmc, from, proxy, 3 * PAGE);
    uint32_t first = u->vmmc.longs;
    vmmc_post(&u->vmmc, from, proxy, 3 * PAGE);
    began = myri_hw_now(s->hw);
    TEST_MUST(vmmc_check(&u->vmmc, first) == 0);
    uint64_t check_ps = myri_hw_now(s->hw) - began;
    TEST_MUST(check_ps == 35 * 8500 + 6000); /* a call, and a look at a word in the cache */
    TEST_MUST(check_ps < short_ps && s->hw->count.loads == loads);
    while (!vmmc_check(&u->vmmc, first))
        myri_task_spend(t, US, "compute");
    TEST_MUST(!vmmc_check(&u->vmmc, u->vmmc.longs)); /* the second one takes 100 us more */
    vmmc_wait(&u->vmmc);
    TEST_MUST(vmmc_check(&u->vmmc, u->vmmc.longs) == 1);
    s->wrong = 17;
    vmmc_user_leave(u);
}

static void a_status_check_is_a_call_and_a_look(void **state)
{
    (void)state;
    static struct scene s;
    open_scene(&s, 2);
    s.at = myri_host_take(&s.hw->host[1], 3 * PAGE, 0);
    myri_hw_task(s.hw, 1, exporter, &s);
    myri_hw_task(s.hw, 0, checker, &s);
    run_scene(&s);
    assert_int_equal(s.wrong, 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_import_waits_for_its_export_and_takes_the_daemons_time),
        cmocka_unit_test(what_cannot_be_is_refused_with_a_reason),
        cmocka_unit_test(notifications_are_handled_once_each_in_order_and_none_is_lost_while_blocked),
        cmocka_unit_test(a_handler_finds_the_whole_message_and_a_daemon_goes_first),
        cmocka_unit_test(a_handler_may_send_while_its_process_sends),
        cmocka_unit_test(a_status_check_is_a_call_and_a_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
