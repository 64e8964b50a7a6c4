/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short requests and replies that come one at a time go a way that looks at nothing else: what that must not skip. */
#include "am/world.h"
#include "runnel/counters.h"

enum { ASK = 1, ANSWERED, PLAIN, REFUSING, ROUNDS = 40 };

static unsigned asked, answered, plain;

static void on_ask(void *token, int32_t x)
{
    asked++;
    assert_int_equal(AM_Reply1(token, ANSWERED, x), AM_OK);
}

static void on_answered(void *token, int32_t x)
{
    (void)token, (void)x;
    answered++;
}

static void on_plain(void *token)
{
    (void)token;
    plain++;
}

/* Replies as often as it may, and asks for what it may not. */
static void on_refusing(void *token)
{
    eb_t bundle;
    assert_int_equal(AM_Reply1(token, ANSWERED, 1), AM_OK);
    assert_int_equal(AM_Reply1(token, ANSWERED, 1), AM_ERR_RESOURCE);
    SAYS("one reply each");
    assert_int_equal(AM_Request0(world.ep[1], 0, PLAIN), AM_ERR_RESOURCE);
    assert_int_equal(AM_Poll(world.eb[1]), AM_ERR_RESOURCE);
    assert_int_equal(AM_AllocateBundleOn(world.h.ep[1], AM_SEQ, &bundle), AM_ERR_RESOURCE);
    SAYS("AM_AllocateBundle is not allowed");
}

static int setup(void **state)
{
    (void)state;
    world_open(3, AM_SEQ);
    for (unsigned i = 0; i < world.ranks; i++)
        TEST_MUST(AM_SetHandler(world.ep[i], ASK, on_ask) == AM_OK &&
                  AM_SetHandler(world.ep[i], ANSWERED, on_answered) == AM_OK &&
                  AM_SetHandler(world.ep[i], PLAIN, on_plain) == AM_OK &&
                  AM_SetHandler(world.ep[i], REFUSING, on_refusing) == AM_OK);
    asked = answered = plain = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* 0 asks 1, one at a time: both go the short way then. */
static void warm(void)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(AM_Request1(world.ep[0], 1, ASK, (int32_t)i), AM_OK);
        assert_int_equal(AM_Poll(world.eb[1]), AM_OK);
        assert_int_equal(AM_Poll(world.eb[0]), AM_OK);
        assert_int_equal(asked, i + 1);
        assert_int_equal(answered, i + 1);
    }
    asked = answered = 0;
}

/* All that is there, of requests in lines of their own. */
static void a_poll_takes_all_that_is_there(void **state)
{
    (void)state;
    warm();
    for (unsigned n = 1; n < 8; n++) {
        asked = answered = 0;
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(AM_Request1(world.ep[0], 1, ASK, 0), AM_OK);
        assert_int_equal(AM_Poll(world.eb[1]), AM_OK);
        assert_int_equal(asked, n);
        assert_int_equal(AM_Poll(world.eb[0]), AM_OK);
        assert_int_equal(answered, n);
    }
}

static void requests_and_replies_are_counted_once(void **state)
{
    (void)state;
    warm();
    const struct rnl_counters *c[2] = {rnl_get_counters(world.h.ep[0]), rnl_get_counters(world.h.ep[1])};
    (void)!rnl_wait(world.h.ep[0], 0);
    (void)!rnl_wait(world.h.ep[1], 0);
    uint64_t sent = c[0]->messages_sent, bytes = c[0]->bytes_sent, got = c[1]->messages_received,
             replies = c[1]->replies_sent, back = c[0]->replies_received;
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(AM_Request1(world.ep[0], 1, ASK, 0), AM_OK);
        assert_int_equal(AM_Request0(world.ep[0], 1, PLAIN), AM_OK);
        assert_int_equal(AM_Poll(world.eb[1]), AM_OK);
        assert_int_equal(AM_Poll(world.eb[0]), AM_OK);
    }
    (void)!rnl_wait(world.h.ep[0], 0);
    (void)!rnl_wait(world.h.ep[1], 0);
    assert_int_equal(c[0]->messages_sent - sent, 2 * ROUNDS);
    assert_int_equal(c[0]->bytes_sent - bytes, (24 + 4 + 24) * ROUNDS);
    assert_int_equal(c[1]->messages_received - got, 2 * ROUNDS);
    assert_int_equal(c[1]->replies_sent - replies, ROUNDS);
    assert_int_equal(c[0]->replies_received - back, ROUNDS);
}

/* Hooks that are set stand around the next handler, and a thread that waits is woken: asked for each message. */
static void count(void *arg, void *token, const struct rnl_am_token_info *info, void *buf)
{
    (void)token, (void)info, (void)buf;
    ++*(unsigned *)arg;
}

static void hooks_are_for_the_next_message(void **state)
{
    unsigned hooked = 0;
    struct rnl_am_hooks hooks = {count, NULL, &hooked};
    (void)state;
    warm();
    assert_int_equal(AM_SetHooks(world.ep[1], &hooks), AM_OK);
    assert_int_equal(AM_Request1(world.ep[0], 1, ASK, 0), AM_OK);
    settle();
    assert_int_equal(hooked, 1);
    assert_int_equal(AM_SetHooks(world.ep[1], NULL), AM_OK);
    assert_int_equal(AM_Request1(world.ep[0], 1, ASK, 0), AM_OK);
    settle();
    assert_int_equal(hooked, 1);
    assert_int_equal(answered, 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_poll_takes_all_that_is_there),
        CASE(requests_and_replies_are_counted_once),
        CASE(hooks_are_for_the_next_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
