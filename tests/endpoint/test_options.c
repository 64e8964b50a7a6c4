/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening an endpoint: options and their limits, hubs, what is known of peers, counters. */
#include "stream/inbox.h"

#include "job/job.h"

enum { NOTE = 1 };

static struct rnl_options defaults(void)
{
    return (struct rnl_options){.size = sizeof(struct rnl_options)};
}

static void the_defaults_are_as_documented(void **state)
{
    (void)state;
    rnl_endpoint *ep;
    struct rnl_limits l;
    const struct rnl_options opt = defaults();
    assert_int_equal(rnl_open(&ep, &opt), 0);
    rnl_get_limits(ep, &l);
    assert_int_equal(l.receive_budget, (size_t)64 << 20);
    assert_int_equal(l.handlers, 1024);
    assert_int_equal(l.stacks, 64);
    assert_true(l.stack_bytes >= 64 << 10);
    assert_int_equal(l.reply_max, 64 << 10);
    assert_true(l.whole_max >= 1 << 20);
    assert_true(l.reserve_max > 0 && l.post_budget > 0);
    assert_int_equal(rnl_close(ep), 0);
}

static void options_are_checked_before_the_job_is_joined(void **state)
{
    (void)state;
    rnl_hub *hub;
    rnl_endpoint *ep = NULL, *other;
    struct rnl_options opt = defaults();
    assert_int_equal(rnl_hub_new(2, &hub), 0);
    opt.hub = hub;
    opt.hub_rank = 1;
    assert_int_equal(rnl_open(&other, &opt), 0);
    opt.hub_rank = 0;

    opt.size = 4;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "4", "sizeof(struct rnl_options)");
    opt.size = 100000;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_ARG);
    opt.size = sizeof opt;
    opt.flags = 0x40;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "0x40");
    opt.flags = 0;
    opt.handlers = 65537;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "65537", "65536");
    opt.handlers = 0;
    opt.hub_rank = 2;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_RANK);
    assert_null(ep);
    /* none of it has used up the place, nor been a death to the other */
    struct rnl_peer_info info;
    assert_int_equal(rnl_extract(other, SIZE_MAX), 0);
    assert_int_equal(rnl_peer(other, 0, &info), 0);
    assert_int_equal(info.state, RNL_PEER_NEW);
    opt.hub_rank = 0;
    int status = rnl_open(&ep, &opt);
    struct test_hub h = {.hub = hub, .size = 2, .ep = {status == 0 ? ep : NULL, other}};
    if (status < 0)
        rnl_hub_kill(hub, 0, RNL_DEATH_EXIT, 0);
    assert_int_equal(test_hub_close(&h), 0);
    assert_int_equal(status, 0);
}

static void a_budget_too_small_for_the_job_is_refused(void **state)
{
    (void)state;
    rnl_hub *hub;
    rnl_endpoint *ep;
    struct rnl_options opt = defaults();
    assert_int_equal(rnl_hub_new(2, &hub), 0);
    opt.hub = hub;
    opt.receive_budget = 1000;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "1000", "2 peers", "16384");
    rnl_hub_free(hub);
}

static void a_silence_too_short_to_tell_is_refused(void **state)
{
    (void)state;
    rnl_endpoint *ep;
    struct rnl_options opt = defaults();
    opt.silence_ms = 99;
    assert_int_equal(rnl_open(&ep, &opt), RNL_ERR_ARG);
    SAYS(RNL_ERR_ARG, "silence_ms is 99", "at least 100", "30000");
    opt.size = offsetof(struct rnl_options, silence_ms); /* a program that does not know the field */
    assert_int_equal(rnl_open(&ep, &opt), 0);
    assert_int_equal(rnl_close(ep), 0);
}

static void extremes_of_options_work(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {0};
    const struct rnl_options opt = {
        .handlers = 65536,
        .stacks = 1,
        .receive_budget = 2 * 128 * 64,
        .name = "a name of any length that is longer than the sixty-four bytes which the page of counters has for it"};
    test_hub_open(&h, 2, &opt);
    assert_int_equal(rnl_handler_stream(h.ep[1], 65535, inbox_stream, &in), 65535);
    assert_int_equal(rnl_send(h.ep[0], 1, 65535, "x", 1), 0);
    drain(h.ep[1]);
    drain(h.ep[1]);
    assert_int_equal(in.count, 1);
    const struct rnl_counters *c = rnl_get_counters(h.ep[0]);
    assert_int_equal(c->program[sizeof c->program - 1], 0);
    assert_memory_equal(c->program, opt.name, sizeof c->program - 1);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

static void the_counters_count(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {0};
    const struct rnl_options opt = {.name = "counting"};
    test_hub_open(&h, 2, &opt);
    const struct rnl_counters *a = rnl_get_counters(h.ep[0]), *b = rnl_get_counters(h.ep[1]);
    assert_int_equal(a->magic, RNL_COUNTERS_MAGIC);
    assert_int_equal(a->version, RNL_COUNTERS_VERSION);
    assert_int_equal(b->rank, 1);
    assert_int_equal(b->size, 2);
    assert_string_equal(b->program, "counting");
    assert_true(b->start_ns > 0);
    assert_int_equal(b->receive_budget_bytes, 64 << 20);
    assert_int_equal(rnl_handler_stream(h.ep[1], NOTE, inbox_stream, &in), NOTE);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(rnl_send(h.ep[0], 1, NOTE, test_pattern(0, 0), i), 0);
        assert_int_equal(post_card(h.ep[0], 1, NOTE, test_pattern(0, 0), 100), 0);
    }
    assert_int_equal(rnl_extract(h.ep[0], SIZE_MAX), 0);
    drain(h.ep[1]);
    drain(h.ep[1]);
    assert_int_equal(a->messages_sent, 20);
    assert_int_equal(a->bytes_sent, 45 + 1000);
    assert_int_equal(a->extents_sent, 10);
    assert_int_equal(b->messages_received, 20);
    assert_int_equal(b->bytes_received, 45 + 1000);
    assert_int_equal(b->extents_received, 10);
    assert_int_equal(a->connects, 1);
    assert_int_equal(b->connects, 1);
    assert_int_equal(a->deaths + b->deaths + a->broken + b->broken, 0);
    assert_int_equal(a->waiting_for_rank, 0);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_as_documented),
        cmocka_unit_test(options_are_checked_before_the_job_is_joined),
        cmocka_unit_test(a_budget_too_small_for_the_job_is_refused),
        cmocka_unit_test(a_silence_too_short_to_tell_is_refused),
        cmocka_unit_test(extremes_of_options_work),
        cmocka_unit_test(the_counters_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
