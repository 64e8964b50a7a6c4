/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_local.c - the memory file of the ranks of one host (job/local.h), with a rank in this process and another in a
 * child of it. */
#include "job/local.h"

#include "base/error.h"
#include "job/fds.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/must.h"
#include "support/unit.h"

enum { BYTES = 16 * 4096, WATCH_MS = 10000 };
#define MS ((uint64_t)1000 * 1000)
static const unsigned char nonce[RNL_LOCAL_NONCE] = "0123456789abcde";
static const uint32_t ranks[2] = {1, 3}; /* of a job of 5 */

static const struct rnl_env_ops no_ops;

static void init(struct rnl_local *l, uint32_t rank)
{
    memset(l, 0, sizeof *l);
    rnl_rank_env_init(&l->base, &no_ops);
    l->base.env.bell_of = rnl_local_bell_of;
    l->base.env.size = 5;
    l->base.env.rank = rank;
    assert_int_equal(rnl_local_init(l, ranks, 2), 0);
}

/* Asleep on the bell, as an endpoint is. */
static struct rnl_event await(struct rnl_local *l)
{
    struct rnl_event e = {.kind = 0};
    for (uint64_t end = rnl_host_now_ns(NULL) + WATCH_MS * MS; rnl_host_now_ns(NULL) < end;) {
        uint32_t word = atomic_load(&l->base.env.bell->word);
        if (rnl_local_event(&l->base.env, &e))
            return e;
        rnl_host_park(&l->base.env, &l->base.env.bell->word, word, rnl_host_now_ns(NULL) + 100 * MS);
    }
    return e;
}

static pid_t child_of(void (*body)(struct rnl_local *), pid_t parent, int fd)
{
    pid_t child = fork();
    if (child == 0) {
        struct rnl_local l;
        init(&l, 3);
        TEST_MUST(rnl_local_open(&l, parent, fd, nonce) == 0 && rnl_local_join(&l) == 0);
        body(&l);
        rnl_local_close(&l, true);
        _exit(0);
    }
    assert_true(child > 0);
    return child;
}

static int end_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void begin(struct rnl_local *l)
{
    init(l, 1);
    assert_int_equal(rnl_local_create(l, nonce), 0);
    assert_int_equal(rnl_local_join(l), 0);
}

/* ---- two ranks share memory and wake each other ---- */

static void answer(struct rnl_local *l)
{
    int segment;
    void *at;
    struct rnl_event e = await(l);
    TEST_MUST(e.kind == RNL_EVENT_CONNECT && e.rank == 1 && e.incarnation == 2);
    TEST_MUST(rnl_local_segment_open(&l->base.env, 1, BYTES, 0, &segment) == 0);
    TEST_MUST(rnl_rank_segment_map(&l->base.env, segment, 0, 4096, 1, &at) == 0);
    for (int ms = 0; ms < WATCH_MS && *(volatile char *)at == '\0'; ms++)
        usleep(1000);
    TEST_MUST(strcmp(at, "from 1") == 0);
    strcpy(at, "from 3");
    rnl_rank_segment_mapped(&l->base.env, segment);
    rnl_rank_env_fd_raise(&l->base.env, 1);
    TEST_MUST(rnl_local_disconnect(&l->base.env, 1, RNL_DEATH_BROKEN) == 0);
    rnl_rank_segment_unmap(&l->base.env, segment, at, 4096);
    rnl_rank_segment_close(&l->base.env, segment);
}

static void test_share(void **state)
{
    struct rnl_local l;
    struct rnl_event e;
    int segment, self;
    void *at, *far, *own;
    (void)state;
    begin(&l);
    struct pollfd fd = {.fd = rnl_rank_env_fd(&l.base.env), .events = POLLIN};
    assert_true(fd.fd >= 0);
    assert_int_equal(poll(&fd, 1, 0), 0);
    pid_t child = child_of(answer, getpid(), l.base.file);
    assert_int_equal(rnl_local_segment_open(&l.base.env, 3, BYTES, 0, &segment), 0);
    assert_int_equal(rnl_rank_segment_map(&l.base.env, segment, 0, 4096, 1, &at), 0);
    assert_int_equal(rnl_rank_segment_map(&l.base.env, segment, 8192, BYTES - 8192, 1, &far), 0);
    strcpy(at, "from 1");
    assert_int_equal(poll(&fd, 1, WATCH_MS), 1);
    rnl_rank_env_fd_drain(&l.base.env);
    e = await(&l);
    if (e.kind == RNL_EVENT_CONNECT) /* its own opening is news, too */
        e = await(&l);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.why, RNL_DEATH_DISCONNECTED);
    assert_int_equal(e.rank, 3);
    assert_string_equal(at, "from 3");
    for (size_t i = 0; i < BYTES - 8192; i++)
        assert_int_equal(((char *)far)[i], 0);
    assert_int_equal(end_of(child), 0);
    /* Who left after the close is no death, and is not had again. */
    rnl_host_park(&l.base.env, &l.base.env.bell->word, atomic_load(&l.base.env.bell->word),
                  rnl_host_now_ns(NULL) + 120 * MS);
    assert_int_equal(rnl_local_event(&l.base.env, &e), 0);
    assert_int_equal(rnl_local_segment_open(&l.base.env, 3, BYTES, 0, &segment), RNL_ERR_JOB);
    assert_int_equal(rnl_local_segment_open(&l.base.env, 2, BYTES, 0, &segment), RNL_ERR_RANK);
    assert_int_equal(rnl_local_segment_open(&l.base.env, 1, BYTES / 2, 0, &self), RNL_ERR_JOB);
    assert_int_equal(rnl_local_segment_open(&l.base.env, 1, BYTES, 0, &self), 0);
    assert_int_equal(rnl_rank_segment_map(&l.base.env, self, 0, 4096, 1, &own), 0);
    assert_int_equal(*(char *)own, 0);
    rnl_local_close(&l, true);
}

/* ---- deaths ---- */

static void sleep_on(struct rnl_local *l)
{
    (void)l;
    for (;;)
        pause();
}

static void test_death(void **state)
{
    struct rnl_local l;
    int segment;
    (void)state;
    begin(&l);
    pid_t child = child_of(sleep_on, getpid(), l.base.file);
    while (atomic_load(&l.page->rank[1].state) != RNL_LOCAL_JOINED)
        usleep(1000);
    struct rnl_event e;
    assert_int_equal(rnl_local_event(&l.base.env, &e), 0);
    kill(child, SIGKILL);
    assert_true(WIFSIGNALED(end_of(child)));
    e = await(&l);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.rank, 3);
    assert_int_equal(e.why, RNL_DEATH_EXIT);
    assert_int_equal(l.deaths, 1);
    assert_int_equal(rnl_local_segment_open(&l.base.env, 3, BYTES, 0, &segment), RNL_ERR_PEER_DEAD);
    rnl_local_close(&l, true);
}

/* ---- what is refused ---- */

static void refuse(struct rnl_local *l)
{
    struct rnl_local other;
    unsigned char wrong[RNL_LOCAL_NONCE] = "0123456789abcdX";
    int fd, number = (int)l->base.env.incarnation;
    init(&other, 3);
    TEST_MUST(rnl_local_open(&other, getppid(), number, wrong) == RNL_ERR_JOB);
    rnl_local_close(&other, false);
    init(&other, 3);
    TEST_MUST(rnl_local_open(&other, getppid(), number + 1000, nonce) == RNL_ERR_JOB);
    rnl_local_close(&other, false);
    /* One that could shrink below what is mapped would kill this process. */
    char copy[4096];
    struct rnl_local_page *head = (void *)copy;
    memset(copy, 0, sizeof copy);
    head->magic = RNL_LOCAL_MAGIC;
    head->version = RNL_LOCAL_VERSION;
    head->ranks = 2;
    memcpy(head->nonce, nonce, sizeof nonce);
    TEST_MUST((fd = memfd_create("unsealed", MFD_CLOEXEC)) >= 0 &&
              write(fd, copy, sizeof copy) == (ssize_t)sizeof copy);
    init(&other, 3);
    TEST_MUST(rnl_local_open(&other, getpid(), fd, nonce) == RNL_ERR_JOB);
    rnl_local_close(&other, false);
}

static void test_refused(void **state)
{
    struct rnl_local l;
    int segment;
    (void)state;
    begin(&l);
    pid_t child = fork();
    if (child == 0) {
        l.base.env.incarnation = (uint64_t)l.base.file;
        refuse(&l);
        /* A fork is not the rank, and another process cannot become it. */
        TEST_MUST(rnl_local_segment_open(&l.base.env, 3, BYTES, 0, &segment) == RNL_ERR_FORKED);
        TEST_MUST(rnl_rank_env_fd(&l.base.env) == RNL_ERR_FORKED);
        TEST_MUST(rnl_local_join(&l) == RNL_ERR_JOB);
        rnl_local_close(&l, true);
        _exit(0);
    }
    assert_int_equal(end_of(child), 0);
    assert_int_equal(atomic_load(&l.page->rank[0].state), RNL_LOCAL_JOINED);
    rnl_local_close(&l, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_share), cmocka_unit_test(test_death),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
