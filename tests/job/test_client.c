/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The client: ranks in processes of their own, with an agent in this one. */
#include "base/bell.h"
#include "base/env.h"
#include "job/agent.h"
#include "job/fds.h"
#include "job/job.h"
#include "job/played.h"
#include "open/open.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"

/* ---- the client, in processes of its own ---- */

enum { WATCH_MS = 20000 };

/* Drives the agent until all children have exited; returns the sum of their statuses. */
static int drive(struct rnl_agent *a, const pid_t *pids, int n)
{
    int left = n, sum = 0;
    for (int ms = 0; left > 0 && ms < WATCH_MS; ms++) {
        struct pollfd p = {.fd = rnl_agent_fd(a), .events = POLLIN};
        poll(&p, 1, 1);
        now += MS;
        rnl_agent_step(a, now);
        for (int i = 0; i < n; i++) {
            int status;
            if (waitpid(pids[i], &status, WNOHANG) != pids[i])
                continue;
            left--;
            sum += WIFSIGNALED(status) ? 0 : WEXITSTATUS(status);
            rnl_agent_exited(a, (uint32_t)i, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                             WIFSIGNALED(status) ? 0 : WEXITSTATUS(status), now);
        }
    }
    for (int i = 0; left > 0 && i < n; i++)
        kill(pids[i], SIGKILL);
    assert_int_equal(left, 0);
    return sum;
}

#define MUST(what)                                                                                         \
    do {                                                                                                   \
        if (!(what)) {                                                                                     \
            fprintf(stderr, "rank %d, line %d: %s (%s)\n", rank, __LINE__, #what, rnl_last_error()->text); \
            _exit(1);                                                                                      \
        }                                                                                                  \
    } while (0)

static struct rnl_event await(int rank, struct rnl_env *env)
{
    struct rnl_event e;
    for (int i = 0; i < WATCH_MS; i++) {
        uint32_t word = atomic_load(&env->bell->word);
        if (env->ops->event(env, &e))
            return e;
        env->ops->park(env, &env->bell->word, word, env->ops->now_ns(env) + MS);
    }
    MUST(!"an event came");
    return e;
}

/* Two ranks share words, wake each other, refuse what is wrong, close in waves. */
static void client_body(int rank, int door)
{
    struct rnl_env *env, *second;
    int segment, self;
    _Atomic uint32_t *word;
    void *at;
    MUST(rnl_client_env(door, &env) == 0);
    MUST((int)env->rank == rank && env->size == 2 && env->facts.launched && strcmp(env->host, "here") == 0);
    MUST(memcmp(env->job_key, "a key of thirty-two bytes......", 32) == 0);
    MUST(is_dumped(env->job_key) == 0);
    MUST(rnl_client_env(door, &second) == RNL_ERR_JOB && strstr(rnl_last_error()->text, "joined its job before"));
    MUST(env->ops->segment_open(env, 9, 4096, UINT64_MAX, &segment) == RNL_ERR_RANK);
    uint32_t peer = 1 - env->rank;
    if (rank == 1)
        MUST(await(rank, env).kind == RNL_EVENT_CONNECT);
    MUST(env->ops->segment_open(env, peer, 65536, UINT64_MAX, &segment) == 0);
    MUST(env->ops->segment_open(env, peer, 65536, UINT64_MAX, &self) == RNL_ERR_JOB);
    MUST(env->ops->segment_map(env, segment, 4096, 4096, 1, &at) == 0);
    word = at;
    MUST(env->ops->segment_open(env, env->rank, 4096, UINT64_MAX, &self) == 0);
    env->ops->segment_close(env, self);
    /* through event loops */
    int fd = env->ops->fd(env);
    MUST(fd >= 0 && env->ops->fd(env) == fd);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    atomic_fetch_add(word, 1);
    while (atomic_load(word) < 2)
        usleep(1000);
    env->ops->fd_raise(env, peer);
    MUST(poll(&p, 1, WATCH_MS) == 1);
    env->ops->fd_drain(env);
    /* a fork may look at nothing of ours */
    pid_t pid = fork();
    if (pid == 0) {
        struct rnl_event e;
        int bad = env->ops->event(env, &e) != 0 ||
                  env->ops->segment_open(env, peer, 65536, UINT64_MAX, &self) != RNL_ERR_FORKED ||
                  env->ops->close_report(env, 0, 0) != RNL_ERR_FORKED || rnl_client_env(door, &second) != RNL_ERR_JOB;
        env->ops->close(env);
        _exit(bad);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    MUST(env->ops->close_report(env, 0, 7) == 0);
    struct rnl_event e = await(rank, env);
    MUST(e.kind == RNL_EVENT_CLOSE_REQUEST && e.wave == 1);
    MUST(env->ops->close_report(env, 1, 7) == 0);
    MUST(await(rank, env).kind == RNL_EVENT_CLOSE_DONE);
    env->ops->segment_unmap(env, segment, at, 4096);
    env->ops->segment_close(env, segment);
    env->ops->close(env);
    MUST(rnl_client_env(door, &env) == RNL_ERR_JOB);
    _exit(0);
}

static void run_two(void (*body)(int, int), int expected)
{
    int before = descriptors();
    struct rnl_agent *a = agent_of(2);
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        int door;
        assert_int_equal(rnl_agent_bootstrap(a, (uint32_t)i, &door), 0);
        fflush(NULL);
        pids[i] = fork();
        if (pids[i] == 0)
            body(i, door);
        close(door);
        rnl_agent_started(a, (uint32_t)i, pids[i]);
    }
    assert_int_equal(drive(a, pids, 2), expected);
    rnl_agent_free(a);
    assert_int_equal(descriptors(), before);
}

static void clients_live_and_close_together(void **state)
{
    (void)state;
    run_two(client_body, 0);
}

/* Rank 0 is a wrapper whose program joins and is killed; rank 1 must learn of it although the wrapper lives. */
static void wrapped_body(int rank, int door)
{
    struct rnl_env *env;
    if (rank == 0) {
        pid_t pid = fork();
        if (pid == 0) {
            MUST(rnl_client_env(door, &env) == 0);
            if (fork() == 0) { /* holds the socket open, so the end of its file tells nothing */
                usleep(1000000);
                _exit(0);
            }
            raise(SIGKILL);
        }
        waitpid(pid, NULL, 0);
        usleep(200000);
        _exit(0);
    }
    MUST(rnl_client_env(door, &env) == 0);
    uint64_t start = env->ops->now_ns(env);
    struct rnl_event e = await(rank, env);
    MUST(e.kind == RNL_EVENT_DEATH && e.rank == 0 && e.why == RNL_DEATH_EXIT && e.detail == -1);
    MUST(env->ops->now_ns(env) - start < 190 * (uint64_t)MS);
    _exit(3);
}

static void a_program_below_a_wrapper_is_watched(void **state)
{
    (void)state;
    run_two(wrapped_body, 3);
}

/* With no descriptor free what the agent gives is lost on its way; later it is given again. Once a segment is mapped it
 * needs none. */
static void crowded_body(int rank, int door)
{
    struct rnl_env *env;
    struct rlimit limit, none;
    int segment, before;
    void *at, *far;
    MUST(rnl_client_env(door, &env) == 0);
    uint32_t peer = 1 - env->rank;
    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    before = descriptors();
    none = limit;
    none.rlim_cur = 3; /* all below are in use */
    MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
    MUST(env->ops->segment_open(env, peer, 65536, UINT64_MAX, &segment) == RNL_ERR_SYSTEM);
    MUST(strstr(rnl_last_error()->text, "ulimit -n"));
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    MUST(env->ops->segment_open(env, peer, 65536, UINT64_MAX, &segment) == 0);
    MUST(env->ops->segment_map(env, segment, 4096, 4096, 1, &at) == 0);
    MUST(env->ops->segment_map(env, segment, 8192, 8192, 1, &far) == 0);
    env->ops->segment_mapped(env, segment);
    MUST(descriptors() == before);
    MUST(env->ops->segment_open(env, peer, 65536, UINT64_MAX, &segment) == RNL_ERR_JOB);
    atomic_fetch_add((_Atomic uint32_t *)at, 1);
    while (atomic_load((_Atomic uint32_t *)at) < 2)
        usleep(1000);
    env->ops->segment_unmap(env, (int)peer, at, 4096);
    env->ops->segment_unmap(env, (int)peer, far, 8192);
    env->ops->segment_close(env, (int)peer);
    env->ops->close(env);
    _exit(5);
}

static void a_lost_descriptor_is_given_again(void **state)
{
    (void)state;
    run_two(crowded_body, 10);
}

/* Who may not wait gets an answer by and by. */
static void patient_body(int rank, int door)
{
    struct rnl_env *env;
    struct rnl_event e = {0};
    int segment, tries = 0;
    MUST(rnl_client_env(door, &env) == 0);
    uint32_t peer = 1 - env->rank;
    if (rank == 1) {
        MUST(await(rank, env).kind == RNL_EVENT_CONNECT); /* rank 0 asked */
        env->ops->close(env);
        _exit(0);
    }
    usleep(300000); /* the other is there */
    int r = env->ops->segment_open(env, peer, 65536, 0, &segment);
    if (r == RNL_NO_ROOM) /* unless the agent is very quick */
        r = env->ops->segment_open(env, peer, 65536, 0, &segment);
    if (r == RNL_NO_ROOM) { /* asked once */
        while (!env->ops->event(env, &e) && tries++ < WATCH_MS)
            usleep(1000);
        MUST(e.kind == RNL_EVENT_CONNECT && e.rank == peer && e.incarnation != 0);
        r = env->ops->segment_open(env, peer, 65536, 0, &segment);
    }
    MUST(r == 0);
    env->ops->segment_close(env, segment);
    env->ops->close(env);
    _exit(3);
}

static void a_segment_can_be_asked_for_without_waiting(void **state)
{
    (void)state;
    run_two(patient_body, 3);
}

/* An option that does not fit a job of this size shows only after joining, and costs nothing. What a rank starts is no
 * rank; a second open of its own is refused. */
static void second_try_body(int rank, int door)
{
    struct rnl_options opt = {.size = sizeof opt, .receive_budget = 100};
    rnl_endpoint *ep, *second;
    char text[16];
    snprintf(text, sizeof text, "%d", door);
    setenv("RUNNEL_FD", text, 1);
    MUST(rnl_open(&ep, &opt) == RNL_ERR_ARG && strstr(rnl_last_error()->text, "receive budget"));
    opt.receive_budget = 0;
    MUST(rnl_open(&ep, &opt) == 0);
    MUST(rnl_rank(ep) == (unsigned)rank && rnl_size(ep) == 2);
    MUST(rnl_open(&second, NULL) == RNL_ERR_JOB && strstr(rnl_last_error()->text, "joined its job before"));
    pid_t pid = fork();
    if (pid == 0) {
        close(door); /* as executing something does */
        MUST(rnl_open(&second, NULL) == 0);
        MUST(rnl_size(second) == 1);
        MUST(rnl_close(second) == 0);
        _exit(0);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    MUST(rnl_close(ep) == 0);
    _exit(4);
}

static void a_failed_open_keeps_the_place_and_children_run_alone(void **state)
{
    (void)state;
    run_two(second_try_body, 8);
    unsetenv("RUNNEL_FD");
}

static void orphan_body(int rank, int door)
{
    struct rnl_env *env;
    struct rnl_event e = {0};
    int segment;
    MUST(rnl_client_env(door, &env) == 0);
    while (!env->ops->event(env, &e))
        usleep(1000);
    MUST(e.kind == RNL_EVENT_JOB_GONE);
    MUST(env->ops->event(env, &e) == 0); /* said once */
    MUST(env->ops->segment_open(env, 1 - env->rank, 4096, UINT64_MAX, &segment) == RNL_ERR_JOB);
    MUST(strstr(rnl_last_error()->text, "rank 1 cannot be connected: the launcher of this job is gone"));
    MUST(env->ops->close_report(env, 0, 0) == RNL_ERR_JOB);
    env->ops->fd_raise(env, 1 - env->rank);
    env->ops->close(env);
    _exit(7);
}

static void clients_notice_that_the_agent_is_gone(void **state)
{
    (void)state;
    struct rnl_agent *a = agent_of(2);
    pid_t pid;
    int door, status;
    assert_int_equal(rnl_agent_bootstrap(a, 0, &door), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        for (int fd = 3; fd < 100; fd++) /* our copies of the agent's ends */
            if (fd != door)
                close(fd);
        orphan_body(0, door);
    }
    close(door);
    for (int i = 0; i < 100; i++) {
        usleep(1000);
        rnl_agent_step(a, now);
    }
    rnl_agent_free(a);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void a_bad_RUNNEL_FD_is_explained(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "-1", "3x", "99999999999999999999", "9999", "0", ",1", "x,1"};
    struct rnl_env *env;
    int null = open("/dev/null", O_RDONLY);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("RUNNEL_FD", bad[i], 1);
        assert_int_equal(rnl_job_env(NULL, &env), RNL_ERR_JOB);
        assert_non_null(strstr(rnl_last_error()->text, "runnel run"));
    }
    char text[16];
    snprintf(text, sizeof text, "%d", null);
    setenv("RUNNEL_FD", text, 1);
    assert_int_equal(rnl_job_env(NULL, &env), RNL_ERR_JOB);
    close(null);
    /* something of the right kind that is no launcher */
    int pair[2];
    assert_int_equal(rnl_seqpacket_pair(pair), 0);
    close(pair[1]);
    snprintf(text, sizeof text, "%d", pair[0]);
    setenv("RUNNEL_FD", text, 1);
    assert_int_equal(rnl_job_env(NULL, &env), RNL_ERR_JOB);
    assert_non_null(strstr(rnl_last_error()->text, "gone"));
    close(pair[0]);
    unsetenv("RUNNEL_FD");
}

/* What an end has said before it closed is heard, although it closed with something unread: the kernel tells that
 * first, and once. */
static void the_last_word_of_an_end_with_something_unread_is_heard(void **state)
{
    struct rnl_seqpacket p;
    unsigned char bytes[8];
    int pair[2];
    (void)state;
    assert_int_equal(rnl_seqpacket_pair(pair), 0);
    assert_int_equal(rnl_seqpacket_send(pair[0], "unread", 6, NULL, 0, 0), 0);
    assert_int_equal(rnl_seqpacket_send(pair[1], "leave", 5, NULL, 0, 0), 0);
    close(pair[1]);
    assert_int_equal(rnl_seqpacket_receive(pair[0], bytes, sizeof bytes, 0, &p, 0), 0);
    assert_int_equal(p.n, 5);
    assert_memory_equal(bytes, "leave", 5);
    assert_int_equal(rnl_seqpacket_receive(pair[0], bytes, sizeof bytes, 0, &p, 0), RNL_ERR_JOB);
    close(pair[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_live_and_close_together),
        cmocka_unit_test(a_program_below_a_wrapper_is_watched),
        cmocka_unit_test(a_lost_descriptor_is_given_again),
        cmocka_unit_test(a_segment_can_be_asked_for_without_waiting),
        cmocka_unit_test(clients_notice_that_the_agent_is_gone),
        cmocka_unit_test(a_failed_open_keeps_the_place_and_children_run_alone),
        cmocka_unit_test(a_bad_RUNNEL_FD_is_explained),
        cmocka_unit_test(the_last_word_of_an_end_with_something_unread_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
