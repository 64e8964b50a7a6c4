/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_bell.c - a network that is silent tells an endpoint in memory that something came: the next extract takes it in,
 * however seldom it would ask. Only where one thread asks. */
#include "support/hub.h"
#include "support/loop.h"
#include "support/must.h"
#include "support/unit.h"

enum { NOTE = 1, MISSES = 40000 /* enough to ask as seldom as can be */, ROUNDS = 20, SOON = 200 };

static unsigned heard[3];

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer;
    ++*(unsigned *)ctx;
    return RNL_DONE;
}

/* Ranks 0 and 1 share memory, 2 is elsewhere and has been heard by 0. */
static void open_three(struct test_hub *h, const struct rnl_options *opt, uint32_t without)
{
    const struct test_loop loop = {.local = 1 << 0 | 1 << 1, .kernel.without = without};
    uint32_t what = 0;
    unsetenv("RNL_TEST_REMOTE"); /* a network of this test's own */
    test_hub_open(h, 3, opt);
    for (unsigned i = 0; i < 3; i++) {
        test_loop_attach(h->ep[i], &loop);
        heard[i] = 0;
        assert_int_equal(rnl_handler_whole(h->ep[i], NOTE, on_note, &heard[i], 0), NOTE);
    }
    assert_int_equal(rnl_send(h->ep[1], 0, NOTE, &what, sizeof what), 0);
    assert_int_equal(rnl_send(h->ep[2], 0, NOTE, &what, sizeof what), 0);
    uint64_t end = test_now_ns() + (uint64_t)60 * 1000000000;
    while (heard[0] < 2 && test_now_ns() < end)
        for (unsigned i = 0; i < 3; i++)
            assert_true(rnl_extract(h->ep[i], SIZE_MAX) >= 0);
    assert_int_equal(heard[0], 2);
}

static void fall_silent(struct test_hub *h)
{
    for (unsigned i = 0; i < MISSES; i++)
        for (unsigned k = 0; k < 3; k++)
            assert_true(rnl_extract(h->ep[k], SIZE_MAX) >= 0);
}

static int has_bell(void)
{
    struct rnl_kernel_facts f;
    rnl_kernel_socket_facts(test_loop_socket(0), &f);
    return !!(f.features & RNL_KERNEL_BELL);
}

/* Extracts of rank 0 until it has heard what was sent after a silence: all rounds. */
static unsigned extracts_until_heard(struct test_hub *h)
{
    unsigned extracts = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t what = round;
        unsigned before = heard[0];
        fall_silent(h);
        for (unsigned i = 0; i < 17 * round; i++) /* wherever it is between two looks */
            assert_true(rnl_extract(h->ep[0], SIZE_MAX) >= 0);
        assert_int_equal(rnl_send(h->ep[2], 0, NOTE, &what, sizeof what), 0);
        uint64_t end = test_now_ns() + (uint64_t)60 * 1000000000;
        while (heard[0] == before && test_now_ns() < end) {
            assert_true(rnl_extract(h->ep[2], SIZE_MAX) >= 0); /* what was lost */
            assert_true(rnl_extract(h->ep[0], SIZE_MAX) >= 0);
            extracts++;
        }
        assert_int_equal(heard[0], before + 1);
    }
    return extracts;
}

static void what_breaks_a_silence_is_taken_in_at_once(void **state)
{
    struct test_hub h;
    (void)state;
    open_three(&h, NULL, 0);
    fall_silent(&h);
    if (!has_bell()) {
        (void)test_hub_close(&h);
        print_message("skip: no io_uring here, or none that defers its work\n");
        skip();
    }
    assert_true(extracts_until_heard(&h) < SOON);
    assert_int_equal(test_hub_close(&h), 0);
}

static void without_it_nothing_is_lost(void **state)
{
    struct test_hub h;
    (void)state;
    open_three(&h, NULL, RNL_KERNEL_BELL);
    (void)extracts_until_heard(&h);
    assert_false(has_bell());
    assert_int_equal(test_hub_close(&h), 0);
}

static void an_endpoint_of_several_threads_has_none(void **state)
{
    const struct rnl_options shared = {.size = sizeof shared, .flags = RNL_SHARED};
    struct test_hub h;
    (void)state;
    open_three(&h, &shared, 0);
    (void)extracts_until_heard(&h);
    assert_false(has_bell());
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_breaks_a_silence_is_taken_in_at_once),
        cmocka_unit_test(without_it_nothing_is_lost),
        cmocka_unit_test(an_endpoint_of_several_threads_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
