/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Grants follow use: what a message needs that must not wait can be had, in a job of many with a small budget, and
 * comes back after it was asked back; what can never be had is an error. Four ranks, all driven by this thread. */
#include "stream/inbox.h"

#include "support/seam.h"

enum { NOTE = 1, SIZE = 4, RESERVE_MAX = 512 << 10, LEAST_BUDGET = 8192 /* for each peer */ };

static struct inbox in;
static unsigned char bytes[RESERVE_MAX];

static void open_all(struct test_hub *h, size_t budget)
{
    struct rnl_options opt = {.receive_budget = budget};
    test_hub_open(h, SIZE, &opt);
    in.count = 0;
    for (unsigned i = 0; i < SIZE; i++)
        TEST_MUST(rnl_handler_stream(h->ep[i], NOTE, inbox_stream, &in) == NOTE);
    acquaint(h);
    in.count = 0;
}

/* Long enough for what a receiver does now and then. */
static void rest(rnl_endpoint *ep)
{
    int64_t r = rnl_wait(ep, 1000000);
    TEST_MUST(r >= 0 || r == RNL_TIMED_OUT);
}

static int begin(rnl_endpoint *ep, unsigned peer, size_t bound, rnl_stream **s)
{
    const struct rnl_message b = {.peer = peer, .handler = NOTE, .bound = bound, .flags = RNL_NO_WAIT};
    return rnl_begin(ep, &b, s);
}

static int send_reserved(struct test_hub *h, unsigned from, unsigned to, size_t bound)
{
    rnl_stream *s;
    int status = begin(h->ep[from], to, bound, &s);
    if (status < 0)
        return status;
    assert_int_equal(rnl_piece(s, bytes, bound), 0);
    assert_int_equal(rnl_end(s), 0);
    for (unsigned had = in.count, i = 0; in.count == had && i < 100; i++)
        rest(h->ep[to]);
    rest(h->ep[from]);
    return 0;
}

static void what_may_be_reserved_can_be(void **state)
{
    (void)state;
    struct test_hub h;
    open_all(&h, 2 << 20);
    struct rnl_limits limits;
    rnl_get_limits(h.ep[0], &limits);
    assert_int_equal(limits.reserve_max, RESERVE_MAX);
    assert_int_equal(send_reserved(&h, 0, 1, RESERVE_MAX), RNL_NO_ROOM);
    rest(h.ep[1]);
    for (int i = 0; i < 5; i++) /* wherever the bulk area goes round */
        assert_int_equal(send_reserved(&h, 0, 1, RESERVE_MAX - (size_t)i * 9000), 0);
    assert_int_equal(test_hub_close(&h), 0);
}

/* The budget holds one such message: whoever does not use its grant gives it back for others. */
static void a_budget_goes_to_who_needs_it(void **state)
{
    (void)state;
    struct test_hub h;
    open_all(&h, 1300 << 10);
    for (unsigned i = 0; i < 6; i++) {
        unsigned from = 1 + i % 3;
        int status = RNL_NO_ROOM;
        for (int tries = 0; status == RNL_NO_ROOM && tries < 20; tries++) {
            status = send_reserved(&h, from, 0, RESERVE_MAX);
            for (unsigned k = 0; k < SIZE; k++)
                rest(h.ep[k]);
        }
        assert_int_equal(status, 0);
    }
    assert_int_equal(test_hub_close(&h), 0);
}

static void what_can_never_be_reserved_is_said(void **state)
{
    (void)state;
    struct test_hub h;
    open_all(&h, SIZE * LEAST_BUDGET);
    assert_int_equal(send_reserved(&h, 0, 1, RESERVE_MAX), RNL_ERR_TOO_LONG);
    SAYS(RNL_ERR_TOO_LONG, "receive_budget", "rank 1");
    assert_int_equal(send_reserved(&h, 0, 1, 4000), 0);
    assert_int_equal(test_hub_close(&h), 0);
}

/* Without any waiting: a receiver that always finds something grants too. */
static void a_grant_grows_with_use(void **state)
{
    (void)state;
    struct test_hub h;
    open_all(&h, 3 << 20);
    uint64_t first = test_seam_granted(h.ep[1], 0);
    for (int i = 0; i < 400; i++) {
        const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 20000};
        const struct rnl_buffer piece = {bytes, 20000};
        while (i == 0 && rnl_post(h.ep[0], &b, &piece, 1, NULL, NULL) == 0)
            ;
        assert_true(rnl_extract(h.ep[1], 1) > 0); /* one of them, and no empty extract ever */
        assert_true(rnl_extract(h.ep[0], 0) >= 0);
    }
    assert_true(test_seam_granted(h.ep[1], 0) > first);
    assert_int_equal(test_hub_close(&h), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_reserved_can_be),
        cmocka_unit_test(a_budget_goes_to_who_needs_it),
        cmocka_unit_test(what_can_never_be_reserved_is_said),
        cmocka_unit_test(a_grant_grows_with_use),
    };
    return cmocka_run_group_tests_name("endpoint/grants", tests, NULL, NULL);
}
