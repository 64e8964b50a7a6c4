/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 2.x as a job of one: what a process can say to itself. Its errors are in test_fm_errors.c, programs of several
 * processes in tests/multi. */
#include "fm/sized.h"

#include "api/fm/process.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- messages ---- */

static void a_process_is_node_0_of_1_when_alone(void **state)
{
    (void)state;
    assert_int_equal(FM_nodeid, 0);
    assert_int_equal(FM_numnodes, 1);
}

static void pieces_are_independent_on_the_two_sides_and_lengths_upper_bounds(void **state)
{
    static const uint32_t lengths[] = {4, 5, 8, 48, 56, 57, 100, 4096, 50000, 262144};
    static const size_t pieces[] = {1, 3, 56, 1000, 1 << 20};
    (void)state;
    unsigned long id = FM_register_handler(FM_ANY_ID, sized);
    assert_int_equal(id, 1);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (size_t p = 0; p < 5; p++) {
            for (size_t more = 0; more < 2; more++) {
                uint32_t n = lengths[l];
                if (n / pieces[p] > 60000 || n / pieces[(p + 2) % 5] > 60000)
                    continue;
                clear();
                in.piece = pieces[(p + 2) % 5];
                send_sized(id, n, pieces[p], n + more * 777);
                assert_int_equal(FM_extract(~0ul), n);
                assert_int_equal(in.count, 1);
                assert_int_equal(in.n, n);
                assert_int_equal(in.sender, 0);
                assert_memory_equal(in.buf + 4, test_pattern(n, 4), n - 4);
            }
        }
    }
    assert_int_equal(told.count, 0);
}

/* ---- half a message, and the answer to that half ---- */

static void a_handler_starts_on_the_first_half(void **state)
{
    (void)state;
    for (size_t first = 4; first <= 1000; first += 332) {
        clear();
        unsigned long id = FM_register_handler(1, sized);
        uint32_t n = 2000;
        FM_stream *s = FM_begin_message(0, n, id);
        assert_non_null(s);
        FM_send_piece(s, &n, 4);
        FM_send_piece(s, test_pattern(n, 4), first - 4);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(FM_extract(~0ul), i == 0 ? first : 0);
        assert_int_equal(in.started, 1);
        assert_int_equal(in.count, 0);
        FM_send_piece(s, test_pattern(n, first), n - first);
        FM_end_message(s);
        assert_int_equal(FM_extract(~0ul), n - first);
        assert_int_equal(in.count, 1);
        assert_memory_equal(in.buf + 4, test_pattern(n, 4), n - 4);
    }
}

/* ---- extract ---- */

static void extract_is_limited_in_bytes_and_by_quit(void **state)
{
    (void)state;
    unsigned long id = FM_register_handler(1, sized);
    clear();
    for (unsigned i = 0; i < 6; i++)
        send_sized(id, 40, 40, 40);
    assert_int_equal(FM_extract(0), 0);
    assert_int_equal(in.count, 0);
    assert_int_equal(FM_extract(1), 40);
    assert_int_equal(FM_extract(41), 80);
    assert_int_equal(in.count, 3);
    in.quit = 1;
    assert_int_equal(FM_extract(~0ul), 40);
    assert_int_equal(FM_extract(~0ul), 40);
    in.quit = 0;
    assert_int_equal(FM_extract(~0ul), 40);
    assert_int_equal(FM_extract(~0ul), 0);
    assert_int_equal(in.count, 6);
}

static int extracts_inside(FM_stream *s, unsigned sender)
{
    (void)s, (void)sender;
    TEST_MUST(FM_extract(~0ul) == 0);
    TEST_MUST(told.count == 1 && told.status == RNL_ERR_CONTEXT);
    TEST_MUST(FM_wait(0) == 0);
    TEST_MUST(told.count == 2 && told.status == RNL_ERR_CONTEXT);
    FM_finalize();
    TEST_MUST(told.count == 3 && told.status == RNL_ERR_CONTEXT && strstr(told.sentence, "FM_finalize"));
    told.count = 0;
    in.count++;
    return FM_CONTINUE;
}

static void no_extract_inside_a_handler(void **state)
{
    (void)state;
    clear();
    FM_register_handler(1, extracts_inside);
    FM_stream *s = FM_begin_message(0, 8, 1);
    FM_send_piece(s, "12345678", 8);
    FM_end_message(s);
    assert_int_equal(FM_extract(~0ul), 8);
    assert_int_equal(in.count, 1);
    assert_int_equal(FM_nodeid, 0); /* still open */
}

static void waiting_and_the_descriptor(void **state)
{
    (void)state;
    unsigned long id = FM_register_handler(1, sized);
    uint64_t then = test_now_ns();
    assert_int_equal(FM_wait(20000), 0);
    assert_true(test_now_ns() - then >= 20000000);
    clear();
    send_sized(id, 40, 40, 40);
    assert_int_equal(FM_wait(-1), 40);
    int fd = FM_fd();
    assert_true(fd >= 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (unsigned i = 0; i < 10 && poll(&p, 1, 0); i++)
        assert_int_equal(FM_extract(~0ul), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    send_sized(id, 40, 40, 40);
    assert_int_equal(poll(&p, 1, 1000), 1);
    assert_int_equal(FM_extract(~0ul), 40);
    for (unsigned i = 0; i < 10 && poll(&p, 1, 0); i++)
        assert_int_equal(FM_extract(~0ul), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(told.count, 0);
}

/* ---- life ---- */

static void finalize_drops_what_nobody_handles_and_tells(void **state)
{
    (void)state;
    set_up(NULL);
    FM_register_handler(1, sized);
    clear();
    send_sized(33, 8, 8, 8);
    send_sized(33, 5000, 5000, 5000);
    send_sized(1, 8, 8, 8); /* behind them */
    FM_finalize();
    TOLD(RNL_ERR_HANDLER, "2 messages", "33");
    assert_int_equal(in.count, 1);
    set_up(NULL);
    send_sized(33, 8, 8, 8);
    FM_finalize();
    TOLD(RNL_ERR_HANDLER, "1 message was dropped", "33");
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 3000 };
static unsigned long counted;

static int count(FM_stream *s, unsigned sender)
{
    uint64_t x;
    (void)sender;
    FM_receive(&x, s, 8);
    counted += x;
    return FM_CONTINUE;
}

static void *chatter(void *arg)
{
    uint64_t one = 1;
    (void)arg;
    for (unsigned i = 0; i < EACH / test_slowness(); i++) {
        FM_stream *s = FM_begin_message(0, 8, 1); /* waits while another thread has a message open */
        TEST_MUST(s);
        FM_send_piece(s, &one, 8);
        FM_end_message(s);
        if (i % 7 == 0)
            FM_extract(100);
    }
    return NULL;
}

static void with_fm_threads_any_thread_may_call(void **state)
{
    (void)state;
    pthread_t t[THREADS];
    FM_set_parameter(FM_THREADS, 1);
    set_up(NULL);
    counted = 0;
    FM_register_handler(1, count);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, chatter, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    FM_finalize();
    assert_int_equal(counted, THREADS * (EACH / test_slowness()));
    assert_int_equal(told.count, 0);
    FM_set_parameter(FM_THREADS, 0);
}

static _Atomic int second_ended;

static void *second(void *arg)
{
    uint64_t one = 1;
    FM_stream *s = FM_begin_message(0, 8, 1);
    *(FM_stream **)arg = s;
    if (s) {
        FM_send_piece(s, &one, 8);
        FM_end_message(s);
    }
    atomic_store(&second_ended, 1);
    return NULL;
}

static void with_fm_threads_a_begin_waits_for_the_message_of_another_thread(void **state)
{
    (void)state;
    pthread_t t;
    FM_stream *theirs = NULL;
    uint64_t one = 1;
    FM_set_parameter(FM_THREADS, 1);
    set_up(NULL);
    counted = 0;
    second_ended = 0;
    FM_register_handler(1, count);
    FM_stream *mine = FM_begin_message(0, 8, 1);
    assert_non_null(mine);
    assert_int_equal(pthread_create(&t, NULL, second, &theirs), 0);
    for (unsigned waits = 0; !waits && !atomic_load(&second_ended);) { /* it waits, or has returned too early */
        pthread_mutex_lock(&rnl_fm.ep->lock);
        waits = rnl_fm.ep->peer[0].conn->waits;
        pthread_mutex_unlock(&rnl_fm.ep->lock);
    }
    assert_int_equal(second_ended, 0);
    assert_null(FM_begin_message(0, 8, 1)); /* but nobody waits for himself */
    TOLD(RNL_BUSY, "this thread", "rank 0", "end it first");
    FM_send_piece(mine, &one, 8);
    FM_end_message(mine);
    pthread_join(t, NULL);
    assert_non_null(theirs);
    FM_finalize();
    assert_int_equal(counted, 2);
    assert_int_equal(told.count, 0);
    FM_set_parameter(FM_THREADS, 0);
}

static void finalize_tells_of_a_message_that_was_never_ended(void **state)
{
    (void)state;
    uint64_t one = 1;
    for (size_t bound = 8; bound <= 100000; bound += 99992) {
        set_up(NULL);
        counted = 0;
        FM_register_handler(7, count);
        FM_stream *s = FM_begin_message(0, bound, 7);
        FM_send_piece(s, &one, 8);
        FM_finalize();
        assert_int_equal(counted, 0);
        TOLD(RNL_ERR_ABORTED, "1 message", "never ended", "handler 7", "rank 0");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_is_node_0_of_1_when_alone),
        TEST(pieces_are_independent_on_the_two_sides_and_lengths_upper_bounds),
        TEST(a_handler_starts_on_the_first_half),
        TEST(extract_is_limited_in_bytes_and_by_quit),
        TEST(no_extract_inside_a_handler),
        TEST(waiting_and_the_descriptor),
        cmocka_unit_test(finalize_drops_what_nobody_handles_and_tells),
        cmocka_unit_test(finalize_tells_of_a_message_that_was_never_ended),
        cmocka_unit_test(with_fm_threads_any_thread_may_call),
        cmocka_unit_test(with_fm_threads_a_begin_waits_for_the_message_of_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
