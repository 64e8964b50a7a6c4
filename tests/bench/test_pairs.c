/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pairs.c - how `runnel bench` steers a pair of processes, without a launcher: the baselines measure, over shared
 * memory and over sockets; wrong bytes, wrong counts and a pair that dies are noticed. Never judges a time. */
#include "../../bench/machine.h"
#include "../../bench/process.h"
#include "../../bench/sockets.h"
#include "../../bench/trials.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    struct bench_area *area;
    int fd;
    pid_t pid[2];
    struct bench_plan plan;
    struct bench_run run;
};

static int both_live(void *arg)
{
    struct pair *p = arg;
    for (int i = 0; i < 2; i++)
        if (p->pid[i] && waitpid(p->pid[i], NULL, WNOHANG) == p->pid[i]) {
            p->pid[i] = 0;
            return -ECHILD;
        }
    return 0;
}

static void start_over(struct pair *p, const struct bench_api *api, double seconds, bool udp)
{
    memset(p, 0, sizeof *p);
    p->plan.calm = 1;
    assert_int_equal(bench_area_create(&p->area, &p->fd), 0);
    p->area->one_core = bench_choose_cpus(p->area->cpu) < 2;
    p->area->ns_per_tick = bench_ns_per_tick();
    p->area->most_bytes = 1 << 20;
    p->area->net = (struct bench_net){.udp = udp, .mtu = 1500, .address = {"127.0.0.1", "127.0.0.1"}};
    p->run = (struct bench_run){.area = p->area, .plan = &p->plan, .alive = both_live, .arg = p};
    p->run.end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
    fflush(NULL);
    for (unsigned rank = 0; rank < 2; rank++) {
        p->pid[rank] = fork();
        assert_true(p->pid[rank] >= 0);
        if (p->pid[rank] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(bench_process_run(p->area, 0, api, rank));
        }
    }
    assert_int_equal(bench_attached(&p->run, 0, 20000), 0);
}

static void start(struct pair *p, const struct bench_api *api, double seconds)
{
    start_over(p, api, seconds, false);
}

static void finish(struct pair *p, bool ask)
{
    const struct bench_order quit = {.test = BENCH_QUIT};
    if (ask)
        bench_pair_order(&p->area->pair[0], &quit);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        if (!p->pid[i])
            continue;
        if (!ask)
            kill(p->pid[i], SIGKILL);
        assert_int_equal(waitpid(p->pid[i], &status, 0), p->pid[i]);
        if (ask)
            assert_int_equal(status, 0);
    }
    bench_plan_free(&p->plan);
    close(p->fd);
}

/* Over datagrams of 1500 bytes: one, a run that is no multiple of them, and more than one run; more of it than may be
 * in flight. */
static void measure_once(const struct bench_api *api)
{
    static const uint64_t sizes[] = {8, 1, 5000, 1 << 20};
    struct pair p;
    start_over(&p, api, 60, true);
    for (enum bench_test t = BENCH_LATENCY; t <= BENCH_WAITING; t++)
        for (size_t i = 0; i < (t == BENCH_WAITING ? 2 : sizeof sizes / sizeof *sizes); i++)
            for (uint32_t variant = 0; variant < 2; variant++) {
                const struct bench_order o = {.test = t,
                                              .variant = variant,
                                              .bytes = sizes[i],
                                              .count = t != BENCH_RATE   ? 5
                                                       : sizes[i] > 5000 ? 20
                                                                         : 300};
                int e = bench_order(&p.run, 0, &o);
                if (e)
                    print_message("%s of %llu bytes: %s\n", bench_test_name(t), (unsigned long long)sizes[i],
                                  p.plan.text);
                assert_int_equal(e, 0);
                assert_true(p.area->pair[0].answer[t == BENCH_RATE].value > 0);
            }
    finish(&p, true);
}

static void bare_sockets_measure_every_test(void **state)
{
    (void)state;
    measure_once(&bench_api_udp);
    measure_once(&bench_api_tcp);
}

static int put_wrong(struct bench_process *s, const void *from, size_t n)
{
    static unsigned char copy[4096];
    assert_true(n <= sizeof copy);
    memcpy(copy, from, n);
    copy[n - 1] ^= 1;
    return bench_api_raw.put(s, copy, n);
}

static int stream_one_twice(struct bench_process *s, uint64_t n)
{
    uint64_t first = 0;
    if (s->rank == 0 && bench_api_raw.put(s, &first, 8))
        return -1;
    return s->rank == 0 ? bench_api_raw.stream(s, n - 1) : bench_api_raw.stream(s, n);
}

static void expect_failure(const struct bench_api *api, enum bench_test test, const char *text)
{
    struct pair p;
    start(&p, api, 1);
    assert_int_equal(bench_plan_add(&p.plan, test, 8, 0, true), 0);
    assert_int_equal(bench_run(&p.run), -EPROTO);
    if (!strstr(p.plan.text, text))
        print_message("said: %s\n", p.plan.text);
    assert_non_null(strstr(p.plan.text, text));
    finish(&p, false);
}

static void wrong_bytes_are_an_error(void **state)
{
    struct bench_api api = bench_api_raw;
    (void)state;
    api.put = put_wrong;
    expect_failure(&api, BENCH_BANDWIDTH, "differ from what was sent");
    expect_failure(&api, BENCH_BANDWIDTH_ALONE, "bytes of a message of 8 bytes differ");
    expect_failure(&api, BENCH_FRESH, "differ from what was sent");
    expect_failure(&api, BENCH_FRESH_ALONE, "bytes of a message of 8 bytes differ");
}

static void a_lost_or_doubled_message_is_an_error(void **state)
{
    struct bench_api api = bench_api_raw;
    (void)state;
    api.stream = stream_one_twice;
    expect_failure(&api, BENCH_RATE, "arrived with sum");
}

/* Rank 0 comes last, so that rank 1 is looking already when both have met. */
static int prepare_late(struct bench_process *s, const struct bench_order *o)
{
    static bool prepared; /* what the other process has sent must not be taken away again */
    if (!prepared && bench_api_raw.prepare(s, o))
        return -1;
    prepared = true;
    usleep(s->rank == 0 ? 20000 : 0);
    return 0;
}

/* Rank 1 does not get to run between the end of the meeting and the first ping, which it takes in where it meets. */
static int look_late(struct bench_process *s)
{
    for (int ms = 0; s->rank == 1 && s->got == s->due && ms < 100; ms++) {
        usleep(1000);
        if (bench_api_raw.poll(s))
            return -1;
    }
    return s->rank == 1 ? 0 : bench_api_raw.poll(s);
}

static void a_ping_that_comes_while_both_meet_is_answered(void **state)
{
    const struct bench_order o = {.test = BENCH_LATENCY, .bytes = 8, .count = 3};
    struct bench_api api = bench_api_raw;
    struct pair p;
    (void)state;
    api.moves_when_called = true;
    api.prepare = prepare_late;
    api.poll = look_late;
    start_over(&p, &api, 60, true);
    for (int twice = 0; twice < 2; twice++) {
        bench_pair_order(&p.area->pair[0], &o);
        assert_int_equal(bench_pair_wait(&p.area->pair[0], 20000, both_live, &p), 0);
    }
    finish(&p, true);
}

static void a_pair_that_dies_ends_the_run(void **state)
{
    struct pair p;
    (void)state;
    start(&p, &bench_api_raw, 60);
    assert_int_equal(bench_plan_add(&p.plan, BENCH_LATENCY, 8, 0, true), 0);
    assert_int_equal(kill(p.pid[1], SIGKILL), 0);
    assert_int_equal(bench_run(&p.run), -ECHILD);
    assert_string_equal(p.plan.text, "the processes for raw ended");
    finish(&p, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_sockets_measure_every_test),
        cmocka_unit_test(wrong_bytes_are_an_error),
        cmocka_unit_test(a_lost_or_doubled_message_is_an_error),
        cmocka_unit_test(a_ping_that_comes_while_both_meet_is_answered),
        cmocka_unit_test(a_pair_that_dies_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
