/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_vmmc2.c - VMMC-2: whatever the network loses, spoils or has overtaken, each message comes once and in order;
 * pages come and go; what a process has no reference to, the card does not touch. */
#include "sim/myrinet/systems/added.h"
#include "sim/myrinet/systems/vmmc2/host.h"
#include "tests/myrinet/sides.h"

static uint64_t part(double of_all)
{
    return (uint64_t)(of_all * 4294967296.0);
}

static const char *const kinds[] = {"vmmc2", "vmmc2-tuned"};

static void every_message_comes_whatever_the_network_does(void **state)
{
    (void)state;
    static const double faults[][3] = {{0, 0, 0}, {0.1, 0, 0}, {0, 0.1, 0}, {0, 0, 0.2}, {0.1, 0.1, 0.1}};
    static const uint32_t senders[] = {1, 2, 7, 31}, bytes[] = {20, 6000};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 5; k++)
            for (int slow = 0; slow < 2; slow++) {
                struct myri_outcome out;
                struct myri_experiment x = experiment(kinds[i / 4], "H-PP", MYRI_GOODPUT, bytes[k & 1]);
                x.senders = senders[i & 3];
                x.count = 20;
                x.slow_us = slow ? 100 : 0;
                x.seed = (uint64_t)(7 * (i & 3) + k);
                x.lost_per_2_32 = part(faults[k][0]);
                x.bad_per_2_32 = part(faults[k][1]);
                x.late_per_2_32 = part(faults[k][2]);
                if (myri_experiment_run(&x, &out) < 0)
                    fail_msg("%s, %u senders, faults %d: %s", kinds[i / 4], senders[i & 3], k, rnl_last_error()->text);
                assert_int_equal(out.sent, 20 * senders[i & 3]);
                assert_int_equal(out.received, out.sent);
                assert_int_equal(out.wrong, 0);
            }
}

/* ---- two processes of node 0 send to one of node 1 ---- */

enum { MESSAGES = 30, BYTES = 9000, SOME = 3 };
struct two {
    struct myri_hw *hw;
    struct myri_space space[SOME];
    struct vmmc2 v[SOME];
    uint32_t at[SOME], in[2], export[2], import[2], got[2], wrong, tuned, identity, unreferred, paged_out;
};

static void sender(struct myri_task *t, void *arg)
{
    struct two *w = arg;
    uint32_t k = t->host->task[0] == t ? 0 : 1;
    struct vmmc2 *v = &w->v[k];
    v->task = t;
    for (uint32_t m = 0; m < MESSAGES && !w->hw->fault[0]; m++) {
        for (uint32_t i = 0; i < BYTES; i += 4)
            myri_space_set_word(v->space, NULL, w->at[k] + i, k << 16 | m);
        vmmc2_send(v, w->at[k], w->import[k], BYTES);
        for (uint32_t i = 0; w->paged_out && i < BYTES; i += 4096) /* the system wants the memory */
            (void)myri_space_page_out(v->space, w->at[k] + i);
    }
}

static void receiver(struct myri_task *t, void *arg)
{
    struct two *w = arg;
    struct vmmc2 *v = &w->v[2];
    v->task = t;
    int posted[2] = {0, 0};
    while (w->got[0] + w->got[1] < 2 * MESSAGES && !w->hw->fault[0]) {
        for (uint32_t k = 0; k < 2; k++)
            if (!posted[k]) {
                vmmc2_redirect(v, w->export[k], w -> in[k], BYTES);
                posted[k] = 1;
            }
        uint32_t k = vmmc2_poll(v, w->export, 2, 0, RNL_SIM_NEVER);
        if (k == 2)
            return;
        uint32_t bytes = vmmc2_take(v, w->export[k]);
        posted[k] = 0;
        w->wrong += bytes != BYTES;
        for (uint32_t i = 0; i < BYTES; i += 4)
            w->wrong += myri_space_word(v->space, NULL, w->in[k] + i) != (k << 16 | w->got[k]);
        w->got[k]++;
    }
}

static int run_two(struct two *w)
{
    struct myri_machine m = machine("H-PP");
    const struct myri_data *d = myri_system_object(myri_system_find(kinds[w->tuned]));
    assert_int_equal(myri_hw_new(&m, 2, 3, d->bytes, d->n, &w->hw), 0);
    w->hw->horizon_ps = 5000000000000u;
    for (uint32_t i = 0; i < SOME; i++) {
        assert_int_equal(myri_space_init(&w->space[i], &w->hw->host[i / 2]), 0);
        w->at[i] = myri_space_map(&w->space[i], BYTES + 4096) + 1000;
        assert_int_equal(vmmc2_attach(&w->v[i], w->hw, i / 2, i % 2, &w->space[i]), 0);
        w->v[i].keeps = !w->paged_out;
    }
    for (uint32_t k = 0; k < 2; k++) {
        w->in[k] = myri_space_map(&w->space[2], 2 * BYTES) + 4 + 2000 * k;
        w->export[k] = (uint32_t)vmmc2_export(&w->v[2], 0, 2, 4096, 0);
        w->import[k] = (uint32_t)vmmc2_import(&w->v[k], &w->v[2], w->export[k]);
    }
    assert_int_equal(vmmc2_import(&w->v[2], &w->v[2], 0), -1); /* not for that node */
    struct myri_task *t[SOME] = {myri_hw_task(w->hw, 0, sender, w), myri_hw_task(w->hw, 0, sender, w),
                                 myri_hw_task(w->hw, 1, receiver, w)};
    assert_non_null(t[2]);
    if (w->identity) /* a table that says that virtual is physical */
        for (uint32_t page = 1; page <= w->space[0].pages; page++) {
            w->v[0].used[page] = 1;
            myri_host_set_word(&w->hw->host[0], w->v[0].table + 4 * page,
                               MYRI_SPACE_ADDRESS(w->space[0].id, page * 4096));
        }
    if (w->unreferred) /* what the library thinks that it has referred to */
        for (uint32_t page = 1; page <= w->space[0].pages; page++)
            w->v[0].used[page] = 1;
    assert_string_equal(w->hw->fault, "");
    assert_int_equal(myri_hw_power(w->hw), 0);
    return myri_hw_run(w->hw);
}

static void end_two(struct two *w)
{
    for (uint32_t i = 0; i < SOME; i++)
        myri_space_fini(&w->space[i]);
    myri_hw_free(w->hw);
    memset(w, 0, sizeof *w);
}

static void two_processes_share_a_card_and_pages_come_and_go(void **state)
{
    (void)state;
    static struct two w;
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t out = k & 1;
        w.tuned = k / 2;
        w.paged_out = out;
        if (run_two(&w) < 0)
            fail_msg("%s", rnl_last_error()->text);
        assert_int_equal(w.got[0] + w.got[1], 2 * MESSAGES);
        assert_int_equal(w.wrong, 0);
        if (out)
            assert_true(w.space[0].page_outs > MESSAGES && w.v[0].releases > MESSAGES);
        else
            assert_int_equal(w.v[0].releases, 0);
        end_two(&w);
    }
}

static void virtual_is_not_physical(void **state)
{
    (void)state;
    static struct two w;
    for (uint32_t tuned = 0; tuned < 2; tuned++) {
        w.tuned = tuned;
        w.identity = 1;
        assert_true(run_two(&w) < 0);
        assert_non_null(strstr(w.hw->fault, "node 0: a DMA of"));
        end_two(&w);
    }
}

static void a_page_without_a_reference_is_not_sent(void **state)
{
    (void)state;
    static struct two w;
    for (uint32_t tuned = 0; tuned < 2; tuned++) {
        w.tuned = tuned;
        w.unreferred = 1;
        w.hw = NULL;
        assert_true(run_two(&w) < 0); /* the messages of process 0 never come, those of the other do */
        assert_int_equal(w.got[0], 0);
        assert_int_equal(w.got[1], MESSAGES);
        uint32_t errors = myri_card_symbol(w.hw, "card") + (uint32_t)offsetof(struct vmmc2_card, errors);
        assert_int_equal(myri_card_peek(&w.hw->card[0], errors), 3 * MESSAGES);
        end_two(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_comes_whatever_the_network_does),
        cmocka_unit_test(two_processes_share_a_card_and_pages_come_and_go),
        cmocka_unit_test(virtual_is_not_physical),
        cmocka_unit_test(a_page_without_a_reference_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
