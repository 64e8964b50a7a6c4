/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fork: the child's endpoint answers RNL_ERR_FORKED to every call, the parent's is unharmed; exec: no descriptor is
 * left open. */
#include "stream/inbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOTE = 1, HALF = 2 };

struct fixture {
    rnl_endpoint *ep;
    struct inbox in;
    rnl_kept *kept;
    int in_child; /* number of the check that failed, 0 = none */
};

static int keep(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    (void)peer;
    TEST_MUST(rnl_keep(s, &f->kept) == 0);
    return RNL_KEEP;
}

/* cmocka catches what would end the child. */
static void die_as_usual(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
}

/* In the child. Returns the number of the first call that did not refuse. */
static int child(struct fixture *f, rnl_stream *open)
{
    struct rnl_message b = {.peer = 0, .handler = NOTE, .bound = 8};
    const struct rnl_buffer piece = {"x", 1};
    struct rnl_peer_info info;
    struct rnl_limits limits;
    rnl_stream *s;
    char buf[8] = "";
    if (rnl_send(f->ep, 0, NOTE, buf, 8) != RNL_ERR_FORKED || !strstr(sentence(), "fork"))
        return 1;
    if (rnl_begin(f->ep, &b, &s) != RNL_ERR_FORKED)
        return 2;
    b.bound = 100000;
    if (rnl_begin(f->ep, &b, &s) != RNL_ERR_FORKED)
        return 3;
    if (rnl_post(f->ep, &b, &piece, 1, NULL, NULL) != RNL_ERR_FORKED)
        return 4;
    if (rnl_extract(f->ep, SIZE_MAX) != RNL_ERR_FORKED || rnl_extract(f->ep, 0) != RNL_ERR_FORKED)
        return 5;
    if (rnl_wait(f->ep, 0) != RNL_ERR_FORKED || rnl_wait(f->ep, -1) != RNL_ERR_FORKED)
        return 6;
    if (rnl_fd(f->ep) != RNL_ERR_FORKED)
        return 7;
    if (rnl_flush(f->ep) != RNL_ERR_FORKED)
        return 8;
    if (rnl_handler_stream(f->ep, NOTE, inbox_stream, NULL) != RNL_ERR_FORKED)
        return 9;
    if (rnl_handler_whole(f->ep, NOTE, inbox_whole, NULL, 0) != RNL_ERR_FORKED)
        return 10;
    if (rnl_peer(f->ep, 0, &info) != RNL_ERR_FORKED)
        return 11;
    if (rnl_piece(open, "x", 1) != RNL_ERR_FORKED)
        return 12;
    if (rnl_end(open) != RNL_ERR_FORKED)
        return 13;
    rnl_on_death(f->ep, NULL, NULL);
    rnl_on_rejected(f->ep, NULL, NULL);
    rnl_kept_free(f->kept);
    rnl_get_limits(f->ep, &limits);
    (void)rnl_get_counters(f->ep);
    (void)rnl_rank(f->ep);
    (void)rnl_size(f->ep);
    if (rnl_close(f->ep) != RNL_ERR_FORKED)
        return 14;
    return 0;
}

static int fork_and_try(struct fixture *f, rnl_stream *open)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        die_as_usual();
        _exit(child(f, open));
    }
    TEST_MUST(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void a_childs_endpoint_is_closed_and_the_parents_unharmed(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= RNL_SHARED; flags++) {
        struct fixture f = {.ep = NULL};
        const struct rnl_options opt = {.size = sizeof opt, .flags = flags};
        rnl_stream *s;
        assert_int_equal(rnl_open(&f.ep, &opt), 0);
        assert_int_equal(rnl_handler_stream(f.ep, NOTE, inbox_stream, &f.in), NOTE);
        assert_int_equal(rnl_handler_stream(f.ep, HALF, keep, &f), HALF);
        assert_int_equal(rnl_send(f.ep, 0, HALF, "kept", 4), 0);
        assert_int_equal(rnl_extract(f.ep, SIZE_MAX), 4);
        for (size_t bound = 8; bound < 100000; bound += 50000) {
            assert_int_equal(rnl_send(f.ep, 0, NOTE, "before", 6), 0);
            assert_int_equal(open_stream(f.ep, 0, NOTE, bound, &s), 0);
            assert_int_equal(rnl_piece(s, "1234", 4), 0);
            assert_int_equal(fork_and_try(&f, s), 0);
            assert_int_equal(rnl_piece(s, "5678", 4), 0);
            assert_int_equal(rnl_end(s), 0);
            assert_int_equal(rnl_send(f.ep, 0, NOTE, "after", 5), 0);
            drain(f.ep);
            assert_int_equal(f.in.count, 3);
            assert_memory_equal(f.in.buf, "after", 5);
            assert_int_equal(f.in.got[1].n, 8);
            f.in.count = 0;
        }
        rnl_kept_free(f.kept);
        assert_int_equal(rnl_close(f.ep), 0);
        inbox_free(&f.in);
    }
}

/* A handler that forks: what it may call in the child. */
static int forks(rnl_stream *s, unsigned peer, void *ctx)
{
    struct fixture *f = ctx;
    char buf[8];
    int status;
    (void)peer;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        rnl_kept *k;
        die_as_usual();
        if (rnl_reply(s, NOTE, "no", 2) >= 0)
            _exit(1);
        if (rnl_keep(s, &k) >= 0)
            _exit(2);
        if (rnl_send(f->ep, 0, NOTE, "no", 2) != RNL_ERR_FORKED)
            _exit(3);
        (void)!rnl_receive(s, buf, 4);
        _exit(0);
    }
    TEST_MUST(waitpid(pid, &status, 0) == pid);
    f->in_child = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    TEST_MUST(rnl_receive(s, buf, 4) == 0 && memcmp(buf, "1234", 4) == 0);
    TEST_MUST(rnl_reply(s, NOTE, "yes", 3) == 0);
    return RNL_DONE;
}

static void a_handler_may_fork(void **state)
{
    (void)state;
    struct fixture f = {.ep = NULL, .in_child = -1};
    rnl_stream *s;
    assert_int_equal(rnl_open(&f.ep, NULL), 0);
    assert_int_equal(rnl_handler_stream(f.ep, NOTE, inbox_stream, &f.in), NOTE);
    assert_int_equal(rnl_handler_stream(f.ep, HALF, forks, &f), HALF);
    const struct rnl_message b = {.peer = 0, .handler = HALF, .bound = 4, .answer = 10};
    assert_int_equal(rnl_begin(f.ep, &b, &s), 0);
    assert_int_equal(rnl_piece(s, "1234", 4), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(f.ep);
    drain(f.ep);
    assert_int_equal(f.in_child, 0);
    assert_int_equal(f.in.count, 1);
    assert_memory_equal(f.in.buf, "yes", 3);
    assert_int_equal(rnl_close(f.ep), 0);
    inbox_free(&f.in);
}

/* ---- a child that returns from where it was forked ---- */

static unsigned open_descriptors(int *not_cloexec)
{
    unsigned n = 0;
    *not_cloexec = 0;
    for (int fd = 3; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0)
            continue;
        n++;
        *not_cloexec += !(flags & FD_CLOEXEC);
    }
    return n;
}

static void nothing_is_left_for_exec_or_after_close(void **state)
{
    (void)state;
    int leaks_before, leaks;
    unsigned before = open_descriptors(&leaks_before);
    for (unsigned round = 0; round < 3; round++) {
        struct test_hub h;
        struct inbox in = {0};
        test_hub_open(&h, 3, NULL);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(rnl_handler_stream(h.ep[i], NOTE, inbox_stream, &in), NOTE);
            assert_true(rnl_fd(h.ep[i]) >= 0);
        }
        acquaint(&h);
        assert_true(open_descriptors(&leaks) > before);
        assert_int_equal(leaks, leaks_before);
        assert_int_equal(test_hub_close(&h), 0);
        inbox_free(&in);
        assert_int_equal(open_descriptors(&leaks), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_childs_endpoint_is_closed_and_the_parents_unharmed),
        cmocka_unit_test(a_handler_may_fork),
        cmocka_unit_test(nothing_is_left_for_exec_or_after_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
