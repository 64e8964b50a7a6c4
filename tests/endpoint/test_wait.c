/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waiting: rnl_wait and rnl_fd, asleep and awake, woken by messages and by room. Times are only bounded from far away:
 * what a lost wake-up would cost (100 ms each) is many times what these allow in sum. */
#include "stream/inbox.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/counters.h"
#include "support/seam.h"

enum { NOTE = 1, EMPTY = 2, ASK = 3, ANSWER = 4, ROUNDS = 6 };
#define MS ((int64_t)1000000)

struct fixture {
    INBOX_FIXTURE;
};

static int empty(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    return RNL_DONE;
}

static int answer(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)peer, (void)ctx;
    TEST_MUST(rnl_reply(s, ANSWER, "yes", 3) == 0);
    return RNL_DONE;
}

static void handlers(rnl_endpoint *ep, void *fixture)
{
    struct fixture *f = fixture;
    TEST_MUST(rnl_handler_stream(ep, NOTE, inbox_stream, &f->in) == NOTE);
    TEST_MUST(rnl_handler_stream(ep, EMPTY, empty, NULL) == EMPTY);
    TEST_MUST(rnl_handler_stream(ep, ASK, answer, NULL) == ASK);
    TEST_MUST(rnl_handler_stream(ep, ANSWER, inbox_stream, &f->in) == ANSWER);
}

static int set_up(void **state)
{
    return inbox_open(state, sizeof(struct fixture), 2, NULL, handlers);
}

#define tear_down inbox_close

/* ---- rnl_wait ---- */

static void a_wait_ends_with_its_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_wait(f->b, 0), RNL_TIMED_OUT);
    for (unsigned ms = 1; ms <= 300; ms *= 17) {
        uint64_t then = test_now_ns();
        assert_int_equal(rnl_wait(f->b, ms * MS), RNL_TIMED_OUT);
        assert_true(test_now_ns() - then >= ms * (uint64_t)MS);
    }
}

static void a_wait_returns_what_was_taken_in(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(rnl_send(f->a, 1, NOTE, "12345", 5), 0);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "123", 3), 0);
    assert_int_equal(rnl_wait(f->b, -1), 8);
    assert_int_equal(rnl_send(f->a, 1, EMPTY, NULL, 0), 0);
    assert_int_equal(rnl_wait(f->b, -1), 0); /* a message without payload */
    const struct rnl_message b = {.peer = 1, .handler = ASK, .answer = 3};
    rnl_stream *s;
    assert_int_equal(rnl_begin(f->a, &b, &s), 0);
    assert_int_equal(rnl_end(s), 0);
    assert_int_equal(rnl_wait(f->b, -1), 0);
    assert_int_equal(rnl_wait(f->a, -1), 0); /* an answer */
    assert_int_equal(f->in.count, 3);
    assert_int_equal(rnl_wait(f->a, 0), RNL_TIMED_OUT);
}

/* How often that rank has gone to sleep, read as from outside. */
static uint64_t sleeps_of(unsigned rank)
{
    struct rnl_counters_page c[4];
    int n = rnl_counters_read((int)getpid(), c, 4);
    for (int i = 0; i < n; i++)
        if (c[i].core.rank == rank)
            return c[i].core.sleeps;
    return 0;
}

/* The other thread: acts when the endpoint of the main thread has gone to sleep. */
struct other {
    struct fixture *f;
    unsigned handler;
    _Atomic int go, done;
    _Atomic uint64_t acted_ns;
};

static void let_sleep(struct other *o, unsigned rank, uint64_t before)
{
    while (sleeps_of(rank) == before)
        test_sleep_ms(2);
    atomic_store(&o->acted_ns, test_now_ns());
}

static void *reader(void *arg)
{
    struct other *o = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (!atomic_exchange(&o->go, 0))
            test_sleep_ms(1);
        let_sleep(o, 0, sleeps_of(0));
        drain(o->f->b);
        o->f->in.count = 0;
        atomic_store(&o->done, 1);
    }
    return NULL;
}

static void a_sleeper_is_woken_by_room(void **state)
{
    static const size_t lengths[] = {48, 200000};
    struct fixture *f = *state;
    for (size_t k = 0; k < 2; k++) {
        struct other o = {.f = f};
        pthread_t thread;
        unsigned late = 0;
        assert_int_equal(pthread_create(&thread, NULL, reader, &o), 0);
        for (unsigned i = 0; i < ROUNDS; i++) {
            for (size_t n = lengths[k]; n > 0; n /= 8) /* to the last line */
                while (post_card(f->a, 1, NOTE, test_pattern(i, 0), n) == 0)
                    ;
            atomic_store(&o.go, 1);
            const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = lengths[k]};
            rnl_stream *s;
            assert_int_equal(rnl_begin(f->a, &b, &s), 0); /* asleep until the reader has read */
            assert_int_equal(rnl_piece(s, test_pattern(i, 0), lengths[k]), 0);
            assert_int_equal(rnl_end(s), 0);
            late += test_now_ns() - atomic_load(&o.acted_ns) > 50 * (uint64_t)MS;
            while (!atomic_exchange(&o.done, 0))
                test_sleep_ms(1);
        }
        pthread_join(thread, NULL);
        drain(f->b);
        f->in.count = 0;
        assert_true(rnl_get_counters(f->a)->no_room_wait_ns > 0);
        if (late >= ROUNDS / 2)
            fail_msg("%u of %u wake-ups for room came late (%zu bytes)", late, (unsigned)ROUNDS, lengths[k]);
    }
}

/* ---- rnl_wake ---- */

static int readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, ms);
    TEST_MUST(n >= 0);
    return n && p.revents & POLLIN;
}

static void a_wake_ends_one_wait_that_finds_nothing(void **state)
{
    struct fixture *f = *state;
    rnl_wake(f->b);
    rnl_wake(f->b);
    assert_int_equal(rnl_send(f->a, 1, NOTE, "123", 3), 0);
    assert_int_equal(rnl_wait(f->b, -1), 3);
    assert_int_equal(rnl_wait(f->b, -1), RNL_INTERRUPTED);
    assert_int_equal(rnl_last_error()->status, RNL_INTERRUPTED);
    assert_int_equal(rnl_wait(f->b, MS), RNL_TIMED_OUT);
}

static void *waker(void *arg)
{
    struct other *o = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (!atomic_exchange(&o->go, 0))
            test_sleep_ms(1);
        let_sleep(o, 1, sleeps_of(1));
        rnl_wake(o->f->b);
    }
    return NULL;
}

static void a_wake_of_another_thread_ends_a_sleep(void **state)
{
    struct other o = {.f = *state};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, waker, &o), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        atomic_store(&o.go, 1);
        assert_int_equal(rnl_wait(o.f->b, -1), RNL_INTERRUPTED);
    }
    pthread_join(thread, NULL);
}

static rnl_endpoint *volatile of_handler;

static void on_alarm(int signal)
{
    (void)signal;
    rnl_wake(of_handler);
}

static void a_signal_handler_may_wake(void **state)
{
    struct fixture *f = *state;
    const struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigaction before;
    of_handler = f->b;
    assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
    for (unsigned with_fd = 0; with_fd < 2; with_fd++) {
        for (unsigned us = 1; us <= 64000; us *= 4) { /* while it spins, yields and sleeps */
            const struct itimerval once = {.it_value = {.tv_usec = us}};
            assert_int_equal(setitimer(ITIMER_REAL, &once, NULL), 0);
            assert_int_equal(rnl_wait(f->b, -1), RNL_INTERRUPTED);
        }
        int fd = rnl_fd(f->b);
        while (readable(fd, 0))
            assert_int_equal(rnl_extract(f->b, SIZE_MAX), 0);
        rnl_wake(f->b);
        assert_true(readable(fd, 1000));
        assert_int_equal(rnl_wait(f->b, -1), RNL_INTERRUPTED);
    }
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

/* ---- rnl_fd ---- */

/* Extracts until the descriptor is quiet; at most a few times when nothing comes. */
static void quiet(rnl_endpoint *ep, int fd)
{
    for (unsigned i = 0; i < 10 && readable(fd, 0); i++)
        TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0);
    TEST_MUST(!readable(fd, 0));
}

static void a_descriptor_is_readable_while_there_is_something(void **state)
{
    struct fixture *f = *state;
    int fd = rnl_fd(f->b);
    assert_true(fd >= 0);
    assert_int_equal(rnl_fd(f->b), fd);
    quiet(f->b, fd);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_send(f->a, 1, NOTE, "12345678", 8), 0);
        assert_true(readable(fd, 1000));
        assert_true(readable(fd, 0)); /* level, not edge */
        assert_int_equal(rnl_extract(f->b, 0), 0);
        assert_true(readable(fd, 0));
        assert_int_equal(rnl_extract(f->b, 1), 8);
        assert_true(readable(fd, 0)); /* more is there */
        assert_int_equal(rnl_extract(f->b, SIZE_MAX), 16);
        quiet(f->b, fd);
    }
    /* what is sent before the first extract after rnl_fd, too */
    int fa = rnl_fd(f->a);
    assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0);
    assert_true(readable(fa, 1000));
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    quiet(f->a, fa);
    assert_int_equal(rnl_send(f->a, 0, NOTE, "x", 1), 0); /* messages to oneself */
    assert_true(readable(fa, 1000));
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 1);
    quiet(f->a, fa);
}

static void a_descriptor_tells_of_answers_room_and_deaths(void **state)
{
    (void)state;
    struct test_hub h;
    struct inbox in = {0};
    test_hub_open(&h, 3, NULL);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(rnl_handler_stream(h.ep[i], NOTE, inbox_stream, &in), NOTE);
        assert_int_equal(rnl_handler_stream(h.ep[i], ASK, answer, NULL), ASK);
        assert_int_equal(rnl_handler_stream(h.ep[i], ANSWER, inbox_stream, &in), ANSWER);
    }
    acquaint(&h);
    int fd = rnl_fd(h.ep[0]);
    quiet(h.ep[0], fd);
    const struct rnl_message ask = {.peer = 1, .handler = ASK, .answer = 3};
    rnl_stream *s;
    assert_int_equal(rnl_begin(h.ep[0], &ask, &s), 0);
    assert_int_equal(rnl_end(s), 0);
    quiet(h.ep[0], fd);
    drain(h.ep[1]);
    assert_true(readable(fd, 1000)); /* an answer */
    quiet(h.ep[0], fd);
    /* a queued post goes on when the peer has read */
    const struct rnl_message b = {.peer = 1, .handler = NOTE, .bound = 2 << 20};
    const struct rnl_buffer piece = {test_pattern(1, 0), 2 << 20};
    in.count = 0;
    assert_int_equal(rnl_post(h.ep[0], &b, &piece, 1, NULL, NULL), 0);
    quiet(h.ep[0], fd);
    for (unsigned i = 0; i < 100 && in.count == 0; i++) {
        drain(h.ep[1]);
        if (in.count == 0)
            assert_true(readable(fd, 1000));
        quiet(h.ep[0], fd);
    }
    assert_int_equal(in.count, 1);
    test_hub_kill(&h, 2, RNL_DEATH_SIGNAL, 9);
    assert_true(readable(fd, 1000));
    quiet(h.ep[0], fd);
    assert_int_equal(test_hub_close(&h), 0);
    inbox_free(&in);
}

/* Any rank of the job can write our bell and drain our eventfd. That delays a message, and hides none. */
static void a_stranger_hides_nothing_from_poll(void **state)
{
    struct fixture *f = *state;
    struct pollfd p = {.fd = rnl_fd(f->a), .events = POLLIN};
    for (int i = 0; i < 3; i++) {
        while (poll(&p, 1, 0) == 1)
            assert_int_equal(rnl_extract(f->a, SIZE_MAX), 0);
        assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0);
        assert_int_equal(poll(&p, 1, 0), 1);
        test_seam_hide_ring(f->a);                            /* as a stranger would */
        assert_int_equal(rnl_send(f->b, 0, NOTE, "x", 1), 0); /* it has rung already */
        assert_int_equal(poll(&p, 1, 10000), 1);
        while (poll(&p, 1, 0) == 1)
            assert_true(rnl_extract(f->a, SIZE_MAX) >= 0);
        assert_int_equal(f->in.count, 2 * (i + 1));
    }
}

/* ---- two threads in one endpoint that is not shared ---- */

static struct {
    struct test_seam seam;
    rnl_endpoint *ep;
    unsigned parks, refused;
} two;

static void refused(int64_t status)
{
    two.refused += status == RNL_ERR_CONTEXT && strstr(rnl_last_error()->text, "another thread") &&
                   strstr(rnl_last_error()->text, "RNL_SHARED");
}

static void *intrude(void *arg)
{
    rnl_stream *s;
    const struct rnl_message b = {.peer = 0, .handler = NOTE, .bound = 8}, far = {.handler = NOTE, .bound = 5000};
    (void)arg;
    refused(rnl_send(two.ep, 0, NOTE, "12345678", 8));
    refused(rnl_begin(two.ep, &b, &s));
    refused(rnl_begin(two.ep, &far, &s));
    refused(rnl_extract(two.ep, SIZE_MAX));
    refused(rnl_wait(two.ep, 0));
    refused(rnl_flush(two.ep));
    refused(rnl_close(two.ep));
    return NULL;
}

/* The other thread calls while the first is asleep, for certain: it lives inside that sleep. */
static void park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    pthread_t t;
    (void)env, (void)word, (void)expected, (void)deadline_ns;
    if (two.parks++ == 0) {
        TEST_MUST(pthread_create(&t, NULL, intrude, NULL) == 0);
        TEST_MUST(pthread_join(t, NULL) == 0);
    }
    rnl_wake(two.ep);
}

static void a_second_thread_in_an_endpoint_that_is_not_shared_is_told(void **state)
{
    struct fixture *f = *state;
    two.ep = f->b;
    two.parks = two.refused = 0;
    for (unsigned i = 0; i < 20; i++) { /* the short path is warm */
        assert_int_equal(rnl_send(f->b, 0, NOTE, "12345678", 8), 0);
        assert_int_equal(rnl_extract(f->a, SIZE_MAX), 8);
    }
    test_seam_open(&two.seam, f->b);
    two.seam.ops.park = park;
    assert_int_equal(rnl_wait(f->b, -1), RNL_INTERRUPTED);
    test_seam_close(&two.seam);
    assert_int_equal(two.refused, 7);
    f->in.count = 0;
    assert_int_equal(rnl_send(f->b, 0, NOTE, "12345678", 8), 0); /* nothing has come to harm */
    assert_int_equal(rnl_extract(f->a, SIZE_MAX), 8);
    assert_int_equal(f->in.count, 1);
    test_seam_break_protocol(f->a, 1);
    while (rnl_extract(f->b, SIZE_MAX) != RNL_ERR_PEER_BROKEN && rnl_get_counters(f->b)->broken == 0)
        ;
    /* It need not be the peer's fault. */
    SAYS(RNL_ERR_PEER_BROKEN, "rank 0", "several threads", "RNL_SHARED", "option for threads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_ends_with_its_time),
        TEST(a_wait_returns_what_was_taken_in),
        TEST(a_sleeper_is_woken_by_room),
        TEST(a_wake_ends_one_wait_that_finds_nothing),
        TEST(a_wake_of_another_thread_ends_a_sleep),
        TEST(a_signal_handler_may_wake),
        TEST(a_descriptor_is_readable_while_there_is_something),
        cmocka_unit_test(a_descriptor_tells_of_answers_room_and_deaths),
        TEST(a_stranger_hides_nothing_from_poll),
        TEST(a_second_thread_in_an_endpoint_that_is_not_shared_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
