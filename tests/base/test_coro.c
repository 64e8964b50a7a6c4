/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_coro.c - coroutines on pooled stacks. Nothing is asserted on a coroutine's stack: a failed assertion jumps to
 * main's. */
#include "base/coro.h"
#include "base/error.h"
#include "support/unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { STACK = 64 << 10 };

static struct rnl_coro_pool *pool_of(uint32_t max)
{
    struct rnl_coro_pool *p = NULL;
    assert_int_equal(rnl_coro_pool_new(max, STACK, &p), 0);
    return p;
}

static void count_once(struct rnl_coro *self, void *arg)
{
    (void)self;
    ++*(int *)arg;
}

static void count_twice(struct rnl_coro *self, void *arg)
{
    ++*(int *)arg;
    rnl_coro_yield(self);
    ++*(int *)arg;
}

static void count_for_ever(struct rnl_coro *self, void *arg)
{
    for (;; rnl_coro_yield(self))
        ++*(int *)arg;
}

struct walk {
    unsigned steps, depth;
    uint64_t sum;
};

/* Locals at every depth must survive the switches. */
static uint64_t deeper(struct rnl_coro *self, const struct walk *w, unsigned depth)
{
    uint64_t a = w->steps * 3 + depth, b = a * a;
    rnl_coro_yield(self);
    if (depth < w->depth)
        b += deeper(self, w, depth + 1);
    rnl_coro_yield(self);
    return a + b;
}

static void walk(struct rnl_coro *self, void *arg)
{
    struct walk *w = arg;
    w->sum = deeper(self, w, 0);
}

static void a_used_up_pool_says_no_room_and_runs_nothing(void **state)
{
    struct rnl_coro_pool *p = pool_of(3);
    struct rnl_coro *c[3], *d = NULL;
    int n = 0, other = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(rnl_coro_start(p, count_twice, &n, &c[i]), 0);
    assert_int_equal(rnl_coro_start(p, count_once, &other, &d), RNL_NO_ROOM);
    assert_int_equal(other, 0);
    assert_int_equal(rnl_coro_in_use(p), 3);
    assert_int_equal(rnl_coro_resume(c[1]), 0);
    assert_int_equal(rnl_coro_start(p, count_once, &other, &d), 0);
    assert_int_equal(other, 1);
    rnl_coro_pool_free(p);
    p = pool_of(0);
    assert_int_equal(rnl_coro_start(p, count_once, &other, &d), RNL_NO_ROOM);
    rnl_coro_pool_free(p);
}

static void a_dropped_one_never_runs_again(void **state)
{
    struct rnl_coro_pool *p = pool_of(2);
    struct rnl_coro *c = NULL;
    int n = 0, m = 0;
    (void)state;
    for (int i = 1; i <= 5000; i++) {
        struct walk w = {1, 30, 0};
        assert_int_equal(rnl_coro_start(p, walk, &w, &c), 0);
        for (int k = 0; k < i % 30; k++)
            assert_int_equal(rnl_coro_resume(c), 1);
        rnl_coro_drop(c);
        assert_int_equal(rnl_coro_in_use(p), 0);
        assert_int_equal(rnl_coro_start(p, count_for_ever, &n, &c), 0);
        assert_int_equal(n, i);
        rnl_coro_drop(c);
        assert_int_equal(rnl_coro_start(p, count_twice, &m, &c), 0);
        assert_int_equal(rnl_coro_resume(c), 0);
        assert_int_equal(m, 2 * i);
    }
    rnl_coro_pool_free(p);
}

static void *resume_elsewhere(void *arg)
{
    struct rnl_coro *c = arg;
    volatile char mine[1000];
    for (size_t i = 0; i < sizeof mine; i++)
        mine[i] = 7;
    int more = rnl_coro_resume(c);
    for (size_t i = 0; i < sizeof mine; i++)
        if (mine[i] != 7)
            return NULL;
    return more ? c : NULL;
}

static void each_resume_may_come_from_another_thread(void **state)
{
    struct rnl_coro_pool *p = pool_of(4);
    struct rnl_coro *c = NULL;
    int n = 0;
    (void)state;
    assert_int_equal(rnl_coro_start(p, count_for_ever, &n, &c), 0);
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        void *got = NULL;
        assert_int_equal(pthread_create(&t, NULL, resume_elsewhere, c), 0);
        assert_int_equal(pthread_join(t, &got), 0);
        assert_ptr_equal(got, c);
        assert_int_equal(rnl_coro_resume(c), 1);
    }
    assert_int_equal(n, 201);
    rnl_coro_pool_free(p);
}

#if defined(__x86_64__)
static void round_up(struct rnl_coro *self, void *arg)
{
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
    rnl_coro_yield(self);
    *(unsigned *)arg = _MM_GET_ROUNDING_MODE();
}

static void rounding_stays_with_its_side(void **state)
{
    struct rnl_coro_pool *p = pool_of(1);
    struct rnl_coro *c = NULL;
    unsigned inside = 0;
    (void)state;
    assert_int_equal(rnl_coro_start(p, round_up, &inside, &c), 0);
    assert_int_equal(_MM_GET_ROUNDING_MODE(), _MM_ROUND_NEAREST);
    assert_int_equal(rnl_coro_resume(c), 0);
    assert_int_equal(inside, _MM_ROUND_UP);
    assert_int_equal(_MM_GET_ROUNDING_MODE(), _MM_ROUND_NEAREST);
    rnl_coro_pool_free(p);
}

static void skip_without_flags(void)
{
    _MM_SET_EXCEPTION_STATE(_MM_EXCEPT_INEXACT);
    unsigned got = _MM_GET_EXCEPTION_STATE();
    _MM_SET_EXCEPTION_STATE(0);
    if ((got & _MM_EXCEPT_INEXACT) == 0) {
        print_message("skip: valgrind keeps no exception flags\n");
        skip();
    }
}

static void raised_exceptions_stay_raised(void **state)
{
    struct rnl_coro_pool *p;
    struct rnl_coro *c = NULL;
    int n = 0;
    (void)state;
    skip_without_flags();
    p = pool_of(1);
    assert_int_equal(rnl_coro_start(p, count_for_ever, &n, &c), 0);
    _MM_SET_EXCEPTION_STATE(_MM_EXCEPT_DIV_ZERO);
    assert_int_equal(rnl_coro_resume(c), 1);
    assert_int_equal(_MM_GET_EXCEPTION_STATE() & _MM_EXCEPT_DIV_ZERO, _MM_EXCEPT_DIV_ZERO);
    assert_int_equal(rnl_coro_resume(c), 1);
    assert_int_equal(_MM_GET_EXCEPTION_STATE() & _MM_EXCEPT_DIV_ZERO, _MM_EXCEPT_DIV_ZERO);
    _MM_SET_EXCEPTION_STATE(0);
    rnl_coro_pool_free(p);
}

#if RNL_HAVE_FCONTEXT
static void raise_exceptions(struct rnl_coro *self, void *arg)
{
    *(unsigned *)arg = _MM_GET_EXCEPTION_STATE();
    _MM_SET_EXCEPTION_STATE(_MM_EXCEPT_OVERFLOW | _MM_GET_EXCEPTION_STATE());
    rnl_coro_yield(self);
    *(unsigned *)arg = _MM_GET_EXCEPTION_STATE();
}

/* As with a call. It also makes a switch cheap: see coro.c. */
static void raised_exceptions_show_on_the_other_side(void **state)
{
    struct rnl_coro_pool *p;
    struct rnl_coro *c = NULL;
    unsigned inside = 0;
    (void)state;
    skip_without_flags();
    p = pool_of(1);
    _MM_SET_EXCEPTION_STATE(_MM_EXCEPT_DIV_ZERO);
    assert_int_equal(rnl_coro_start(p, raise_exceptions, &inside, &c), 0);
    unsigned outside = _MM_GET_EXCEPTION_STATE();
    _MM_SET_EXCEPTION_STATE(_MM_EXCEPT_UNDERFLOW);
    assert_int_equal(inside & _MM_EXCEPT_DIV_ZERO, _MM_EXCEPT_DIV_ZERO);
    assert_int_equal(outside & _MM_EXCEPT_OVERFLOW, _MM_EXCEPT_OVERFLOW);
    assert_int_equal(rnl_coro_resume(c), 0);
    _MM_SET_EXCEPTION_STATE(0);
    assert_int_equal(inside & _MM_EXCEPT_UNDERFLOW, _MM_EXCEPT_UNDERFLOW);
    rnl_coro_pool_free(p);
}
#endif
#endif

/* Calls nothing: binding a function at its first call saves all vector registers on the stack. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void fill(struct rnl_coro *self, void *arg)
{
    volatile char all[STACK - 512];
    (void)self;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = 1;
    *(int *)arg = all[0] + all[sizeof all - 1];
}

static void a_stack_is_as_large_as_asked_for(void **state)
{
    struct rnl_coro_pool *p = pool_of(9);
    struct rnl_coro *c[9];
    int n = 0;
    (void)state;
    for (int i = 0; i < 8; i++) /* the colours differ */
        assert_int_equal(rnl_coro_start(p, count_twice, &n, &c[i]), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(rnl_coro_resume(c[i]), 0);
    for (int i = 0; i < 8; i++) {
        n = 0;
        assert_int_equal(rnl_coro_start(p, fill, &n, &c[i]), 0);
        assert_int_equal(n, 2);
        assert_int_equal(rnl_coro_start(p, count_for_ever, &n, &c[i]), 0); /* keeps this stack out of the next turn */
    }
    rnl_coro_pool_free(p);
}

static unsigned recurse(unsigned n)
{
    volatile char frame[200];
    frame[0] = (char)n;
    return n == 0 ? 0 : recurse(n - 1) + (unsigned)frame[0];
}

static void overflow(struct rnl_coro *self, void *arg)
{
    (void)self;
    *(volatile unsigned *)arg = recurse(1000000);
}

/* Whatever is mapped below the stack, an overflow ends in the guard page. */
static unsigned spoil(struct rnl_coro *self, unsigned depth)
{
    volatile unsigned char a[40], b[100];
    a[depth % sizeof a] = b[depth % sizeof b] = 1;
    rnl_coro_yield(self);
    return (depth > 0 ? spoil(self, depth - 1) : 0) + a[depth % sizeof a] + b[depth % sizeof b];
}

static void fill_most(struct rnl_coro *self, void *arg)
{
    volatile char most[STACK - 16384];
    (void)self;
    for (size_t i = 0; i < sizeof most; i++)
        most[i] = 1;
    *(int *)arg = most[0] + most[sizeof most - 1];
}

static void spoiler(struct rnl_coro *self, void *arg)
{
    *(int *)arg = (int)spoil(self, 50);
}

/* The address sanitizer marks parts of frames, and a dropped coroutine never takes its marks back. */
static void a_dropped_stack_is_as_good_as_new(void **state)
{
    struct rnl_coro_pool *p = pool_of(1);
    struct rnl_coro *c = NULL;
    int n = 0;
    (void)state;
    assert_int_equal(rnl_coro_start(p, spoiler, &n, &c), 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(rnl_coro_resume(c), 1);
    rnl_coro_drop(c);
    assert_int_equal(rnl_coro_start(p, fill_most, &n, &c), 0);
    assert_int_equal(n, 2);
    rnl_coro_pool_free(p);
}

static void an_overflow_hits_the_guard_page(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rnl_coro_pool *p;
        struct rnl_coro *c;
        unsigned n = 0;
        signal(SIGSEGV, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (rnl_coro_pool_new(2, STACK, &p) == 0)
            (void)!rnl_coro_start(p, overflow, &n, &c);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void neighbour(struct rnl_coro *self, void *arg)
{
    *(uintptr_t *)arg = (uintptr_t)__builtin_frame_address(0);
    rnl_coro_yield(self);
}

/* The page below each stack cannot be written, even where two stacks are neighbours. */
static void below_each_stack_nothing_is_writable(void **state)
{
    enum { N = 6 };
    struct rnl_coro_pool *p = pool_of(N);
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < N; i++) {
        uintptr_t at = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);
        struct rnl_coro *c;
        int guards = 0;
        assert_int_equal(rnl_coro_start(p, neighbour, &at, &c), 0);
        for (uintptr_t q = at / page * page; q > at - STACK - 4 * page && guards == 0; q -= page)
            guards = syscall(SYS_write, pipes[1], q, 1) < 0; /* EFAULT: not readable, so neither writable */
        assert_int_equal(guards, 1);
    }
    close(pipes[0]);
    close(pipes[1]);
    rnl_coro_pool_free(p);
}

/* Below the lowest byte of a stack that can be written lie 256 KiB that cannot: a frame with a large array does not
 * step over them into the next stack. */
static void a_large_frame_does_not_reach_the_next_stack(void **state)
{
    enum { N = 6 };
    struct rnl_coro_pool *p = pool_of(N);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < N; i++) {
        uintptr_t at = 0;
        struct rnl_coro *c;
        assert_int_equal(rnl_coro_start(p, neighbour, &at, &c), 0);
        at &= ~(page - 1);
        while (syscall(SYS_write, pipes[1], at - page, 1) == 1)
            at -= page;
        for (uintptr_t below = page; below <= 256 << 10; below += page)
            assert_true(syscall(SYS_write, pipes[1], at - below, 1) < 0);
    }
    close(pipes[0]);
    close(pipes[1]);
    rnl_coro_pool_free(p);
}

static void without_memory_nothing_runs(void **state)
{
    struct rnl_coro_pool *p = NULL;
    struct rnl_coro *c = NULL;
    int n = 0;
    (void)state;
    assert_int_equal(rnl_coro_pool_new(1, SIZE_MAX, &p), RNL_ERR_NO_MEMORY);
    assert_null(p);
    assert_int_equal(rnl_coro_pool_new(1, SIZE_MAX / 4, &p), 0);
    assert_int_equal(rnl_coro_start(p, count_once, &n, &c), RNL_ERR_NO_MEMORY);
    assert_int_equal(rnl_last_error()->status, RNL_ERR_NO_MEMORY);
    assert_int_equal(n, 0);
    assert_int_equal(rnl_coro_in_use(p), 0);
    rnl_coro_pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_used_up_pool_says_no_room_and_runs_nothing),
        cmocka_unit_test(a_dropped_one_never_runs_again),
        cmocka_unit_test(each_resume_may_come_from_another_thread),
#if defined(__x86_64__)
        cmocka_unit_test(rounding_stays_with_its_side),
        cmocka_unit_test(raised_exceptions_stay_raised),
#if RNL_HAVE_FCONTEXT
        cmocka_unit_test(raised_exceptions_show_on_the_other_side),
#endif
#endif
        cmocka_unit_test(a_stack_is_as_large_as_asked_for),
        cmocka_unit_test(a_dropped_stack_is_as_good_as_new),
        cmocka_unit_test(an_overflow_hits_the_guard_page),
        cmocka_unit_test(a_large_frame_does_not_reach_the_next_stack),
        cmocka_unit_test(below_each_stack_nothing_is_writable),
        cmocka_unit_test(without_memory_nothing_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
