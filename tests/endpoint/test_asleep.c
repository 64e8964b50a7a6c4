/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What comes up while a thread sleeps in rnl_wait, or while the descriptor is quiet, and that no peer announces: a call
 * of another thread, a connection that was made. The sleep is the test's, and has no end but the bell: in it the test
 * is the other thread. */
#include "stream/inbox.h"

#include <poll.h>
#include <stdatomic.h>

#include "endpoint/endpoint.h"

enum { NOTE = 1, LATE = 9 };
#define MS ((int64_t)1000000)

static struct {
    struct rnl_env_ops ops;
    const struct rnl_env_ops *was;
    struct test_hub h;
    rnl_endpoint *a, *b;
    struct inbox in;
    void (*meanwhile)(void);
    unsigned parks, rung, done, yields;
} now;

static void park(struct rnl_env *e, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)e, (void)deadline_ns;
    if (now.parks++ == 0) {
        now.meanwhile();
        now.rung = atomic_load(word) != expected;
    }
}

static void done(void *arg, int status)
{
    (void)arg;
    TEST_MUST(status == 0);
    now.done++;
}

static void open_two(uint32_t flags)
{
    const struct rnl_options opt = {.size = sizeof opt, .flags = flags};
    memset(&now, 0, sizeof now);
    test_hub_open(&now.h, 2, &opt);
    now.a = now.h.ep[0], now.b = now.h.ep[1];
    for (unsigned i = 0; i < 2; i++)
        TEST_MUST(rnl_handler_stream(now.h.ep[i], NOTE, inbox_stream, &now.in) == NOTE);
    now.was = now.a->env->ops;
    now.ops = *now.was;
    now.ops.park = park;
    now.a->env->ops = &now.ops;
}

static void close_two(void)
{
    now.a->env->ops = now.was;
    assert_int_equal(test_hub_close(&now.h), 0);
    inbox_free(&now.in);
}

/* Another thread does that while one sleeps: which is woken. */
static void wakes(void (*meanwhile)(void))
{
    now.meanwhile = meanwhile;
    TEST_MUST(rnl_wait(now.a, 1000 * MS) != RNL_ERR_JOB);
    assert_true(now.parks > 0);
    assert_true(now.rung);
}

static void post_short(void)
{
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 8};
    const struct rnl_buffer piece = {"12345678", 8};
    TEST_MUST(rnl_post(now.a, &b, &piece, 1, done, NULL) == 0);
}

static void a_post_that_is_done_is_told_at_once(void **state)
{
    (void)state;
    open_two(RNL_SHARED);
    acquaint(&now.h);
    wakes(post_short);
    assert_int_equal(now.done, 1);
    close_two();
}

static void register_late(void)
{
    TEST_MUST(rnl_handler_stream(now.a, LATE, inbox_stream, &now.in) == LATE);
}

static void a_message_that_gets_its_handler_is_taken(void **state)
{
    (void)state;
    open_two(RNL_SHARED);
    acquaint(&now.h);
    now.in.count = 0;
    assert_int_equal(rnl_send(now.b, 0, LATE, "x", 1), 0);
    wakes(register_late);
    assert_int_equal(now.in.count, 1);
    close_two();
}

/* ---- a peer that sends before we have armed our side of a connection that we make ---- */

static void settle_slowly(struct rnl_env *e, int segment)
{
    now.was->segment_mapped(e, segment);
    TEST_MUST(rnl_extract(now.b, SIZE_MAX) == 0); /* joins */
    TEST_MUST(rnl_send(now.b, 0, NOTE, "x", 1) == 0);
}

static void connect(void)
{
    now.ops.segment_mapped = settle_slowly;
    TEST_MUST(rnl_send(now.a, 1, NOTE, "y", 1) == 0);
    now.ops.segment_mapped = now.was->segment_mapped;
}

static void a_new_connection_makes_the_descriptor_readable(void **state)
{
    (void)state;
    open_two(0);
    struct pollfd p = {.fd = rnl_fd(now.a), .events = POLLIN};
    for (unsigned i = 0; i < 10 && poll(&p, 1, 0) == 1; i++)
        assert_int_equal(rnl_extract(now.a, SIZE_MAX), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    connect();
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(rnl_extract(now.a, SIZE_MAX), 1);
    assert_int_equal(now.in.count, 1);
    close_two();
}

/* ---- waits that are too short to sleep ---- */

static uint64_t count_yield(struct rnl_env *e)
{
    (void)e;
    now.yields++;
    return 2000;
}

/* Whoever shares its processor with the peer that it waits for would wait for the end of its time slice. */
static void short_waits_give_way(void **state)
{
    static const int64_t times[] = {0, 100};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        open_two(0);
        acquaint(&now.h);
        now.ops.yield = count_yield;
        for (unsigned i = 0; i < 5000; i++)
            assert_int_equal(rnl_wait(now.a, times[k]), RNL_TIMED_OUT);
        assert_true(now.yields > 0);
        close_two();
    }
}

/* ---- room that is given back, and flags that outlive their reason ---- */

/* Whoever waits for room is rung for also where a handler ends the extract. */
static void room_is_announced_although_a_handler_quits(void **state)
{
    (void)state;
    open_two(0);
    acquaint(&now.h);
    struct rnl_conn *theirs = now.b->peer[0].conn, *ours = now.a->peer[1].conn;
    now.in.ending = RNL_QUIT;
    unsigned told = 0;
    for (unsigned i = 0; i < 3 * RNL_CELLS_LANE0 && !told; i++) {
        assert_int_equal(rnl_send(now.b, 0, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_send(now.b, 0, NOTE, "12345678", 8), 0); /* not alone in its line */
        assert_int_equal(rnl_send(now.b, 0, NOTE, "1", 1), 0);
        rnl_channel_arm(&theirs->channel, RNL_ARMED_ROOM | RNL_ARMED_WAKE);
        uint64_t position = ours->channel.rx[0].advertised_position;
        uint32_t word = atomic_load(&now.b->env->bell->word);
        for (unsigned k = 0; k < 3 && !told; k++) {
            assert_true(rnl_extract(now.a, SIZE_MAX) > 0);
            told = ours->channel.rx[0].advertised_position != position;
        }
        if (told)
            assert_int_equal(atomic_load(&now.b->env->bell->word), word + 1);
    }
    assert_true(told);
    now.in.ending = RNL_DONE;
    close_two();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_that_is_done_is_told_at_once),
        cmocka_unit_test(a_message_that_gets_its_handler_is_taken),
        cmocka_unit_test(a_new_connection_makes_the_descriptor_readable),
        cmocka_unit_test(short_waits_give_way),
        cmocka_unit_test(room_is_announced_although_a_handler_quits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
