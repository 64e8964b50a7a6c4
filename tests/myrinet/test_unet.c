/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_unet.c - U-Net: what comes is right, what is lost has been dropped for want of a buffer, or by the network; a
 * page without a translation interrupts the host once, pages come and go; channels are their endpoints' own. */
#include "sim/myrinet/systems/added.h"
#include "sim/myrinet/systems/unet/host.h"
#include "tests/myrinet/sides.h"

static uint32_t on_card(const struct myri_hw *hw, uint32_t node, size_t field)
{
    return myri_card_peek(&hw->card[node], myri_card_symbol((struct myri_hw *)(uintptr_t)hw, "card") + (uint32_t)field);
}

struct counted {
    uint32_t dropped, errors, misses;
};

static void count(void *arg, const struct myri_hw *hw, const struct myri_side *sides)
{
    struct counted *c = arg;
    (void)sides;
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < hw->nodes; i++) {
        c->dropped += on_card(hw, i, offsetof(struct unet_card, dropped));
        c->errors += on_card(hw, i, offsetof(struct unet_card, errors));
        c->misses += on_card(hw, i, offsetof(struct unet_card, misses));
    }
}

static void what_is_lost_has_been_dropped_for_a_reason(void **state)
{
    (void)state;
    static const char *const kinds[] = {"unet", "unet-mm", "unet-tuned", "unet-mm-tuned"};
    static const uint32_t senders[] = {1, 3, 31};
    for (int s = 0; s < 4; s++)
        for (int n = 0; n < 3; n++)
            for (int slow = 0; slow < 2; slow++) {
                struct myri_outcome out;
                struct counted c;
                struct myri_experiment x = experiment(kinds[s], "H-PP", MYRI_GOODPUT, 1000);
                x.senders = senders[n];
                x.count = 60;
                x.slow_us = slow ? 200 : 0;
                x.lost_per_2_32 = slow ? 0 : 1u << 27;
                x.bad_per_2_32 = slow ? 0 : 1u << 27;
                x.inspect = count;
                x.inspect_arg = &c;
                if (myri_experiment_run(&x, &out) < 0)
                    fail_msg("%s: %s", kinds[s], rnl_last_error()->text);
                assert_int_equal(out.wrong, 0);
                assert_int_equal(c.errors, out.count.packets_bad);
                assert_int_equal(out.received + c.dropped + out.count.packets_lost + out.count.packets_bad, out.sent);
                if (slow)
                    assert_true(c.dropped > 0 && out.received > 30);
            }
}

static void a_page_without_a_translation_interrupts_once(void **state)
{
    (void)state;
    for (int tuned = 0; tuned < 2; tuned++) {
        struct myri_outcome out;
        struct counted c;
        struct myri_experiment x = experiment(tuned ? "unet-mm-tuned" : "unet-mm", "H-PP", MYRI_ONE_WAY, 4096);
        x.count = 100;
        x.cold = 1;
        x.inspect = count;
        x.inspect_arg = &c;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(out.wrong, 0);
        assert_int_equal(out.count.interrupts, c.misses);
        assert_in_range(c.misses, 2 * 31, 2 * 32); /* of each host a page to send from, and thirty buffers */
        x = experiment(tuned ? "unet-tuned" : "unet", "H-PP", MYRI_ONE_WAY, 4096);
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(out.count.interrupts, 0);
    }
}

/* ---- two endpoints of node 0 send to two of node 1, whose kernel wants memory back ---- */

enum { MESSAGES = 60, BYTES = 3000, SOME = 4 };
struct four {
    struct myri_hw *hw;
    struct myri_space space[SOME];
    struct unet u[SOME];
    uint32_t at[SOME], channel[SOME], got, wrong, outs, tuned, of_another, unmapped;
};

static void sender(struct myri_task *t, void *arg)
{
    struct four *w = arg;
    uint32_t k = t->host->task[0] == t ? 0 : 1;
    struct unet *u = &w->u[k];
    u->task = t;
    for (uint32_t m = 0; m < MESSAGES && !w->hw->fault[0]; m++) {
        for (uint32_t i = 0; i < BYTES; i += 4)
            myri_space_set_word(u->space, NULL, w->at[k] + i, k << 16 | m);
        uint32_t from = w->unmapped && k == 0 ? 1u << 25 : w->at[k];
        unet_sent(u, unet_send(u, w->channel[w->of_another && k == 0 ? 1 : k], from, BYTES));
        w->outs += unet_page_out(u, w->at[k]) == 0;
        myri_task_spend(t, 300000000, "compute");
    }
}

static void receiver(struct myri_task *t, void *arg)
{
    struct four *w = arg;
    uint32_t k = t->host->task[0] == t ? 2 : 3;
    struct unet *u = &w->u[k];
    u->task = t;
    unet_free_push(u, w->at[k]);
    uint32_t channel, at, bytes;
    for (uint32_t m = 0; m < MESSAGES; m++) {
        if (!(bytes = unet_recv_poll(u, &channel, &at, myri_hw_now(w->hw) + 20000000000u)))
            return;
        w->wrong += bytes != BYTES || at != w->at[k] || channel != w->channel[k];
        for (uint32_t i = 0; i < BYTES; i += 4)
            w->wrong += myri_space_word(u->space, NULL, at + i) != ((k - 2) << 16 | m);
        w->got += 1u << 16 * (k - 2);
        w->outs += unet_page_out(u, at) == 0;
        unet_free_push(u, at);
    }
}

static void run_four(struct four *w)
{
    struct myri_machine m = machine("H-PP");
    const struct myri_data *d = myri_system_object(myri_system_find(w->tuned ? "unet-mm-tuned" : "unet-mm"));
    assert_int_equal(myri_hw_new(&m, 2, 5, d->bytes, d->n, &w->hw), 0);
    w->hw->horizon_ps = 5000000000000u;
    for (uint32_t i = 0; i < SOME; i++) {
        assert_int_equal(myri_space_init(&w->space[i], &w->hw->host[i / 2]), 0);
        w->at[i] = myri_space_map(&w->space[i], 2 * 4096) + 2000; /* two pages */
        assert_int_equal(unet_ep_create(&w->u[i], w->hw, i / 2, i % 2, &w->space[i], 0, 0), 0);
    }
    for (uint32_t k = 0; k < 2; k++)
        assert_int_equal(unet_chan_open(&w->u[k], &w->u[2 + k], &w->channel[k], &w->channel[2 + k]), 0);
    for (uint32_t i = 0; i < SOME; i++)
        assert_non_null(myri_hw_task(w->hw, i / 2, i < 2 ? sender : receiver, w));
    assert_int_equal(myri_hw_power(w->hw), 0);
    if (myri_hw_run(w->hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(w->wrong, 0);
}

static void end_four(struct four *w)
{
    for (uint32_t i = 0; i < SOME; i++)
        myri_space_fini(&w->space[i]);
    myri_hw_free(w->hw);
    memset(w, 0, sizeof *w);
}

static void two_processes_share_a_card_and_pages_come_and_go(void **state)
{
    (void)state;
    static struct four w;
    for (uint32_t tuned = 0; tuned < 2; tuned++) {
        w.tuned = tuned;
        run_four(&w);
        assert_int_equal(w.got, MESSAGES << 16 | MESSAGES);
        assert_true(w.outs > MESSAGES);
        assert_true(on_card(w.hw, 1, offsetof(struct unet_card, misses)) > MESSAGES);
        end_four(&w);
    }
}

static void what_is_not_its_own_is_refused(void **state)
{
    (void)state;
    static struct four w;
    for (uint32_t k = 0; k < 4; k++) {
        w.tuned = k >> 1;
        w.of_another = !(k & 1); /* another endpoint's channel, and a page that the space has not */
        w.unmapped = k & 1;
        run_four(&w);
        assert_int_equal(w.got, MESSAGES << 16);
        assert_int_equal(on_card(w.hw, 0, offsetof(struct unet_card, errors)), MESSAGES);
        end_four(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lost_has_been_dropped_for_a_reason),
        cmocka_unit_test(a_page_without_a_translation_interrupts_once),
        cmocka_unit_test(two_processes_share_a_card_and_pages_come_and_go),
        cmocka_unit_test(what_is_not_its_own_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
