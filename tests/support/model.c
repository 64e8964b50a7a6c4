/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model.c - seeds in a forked worker, so that a crash or a hang is a failure like any other; every candidate while
 * shrinking in a process of its own. */
#include "support/model.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HANG_S = 20, CANDIDATE_HANG_S = 4, CANDIDATES = 3000, SHRINK_S = 60 };

struct page { /* shared with the worker */
    _Atomic uint64_t seed, done;
    struct test_why why;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int test_why(struct test_why *why, const char *format, ...)
{
    va_list args;
    if (why->text[0])
        return 1;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return 1;
}

static size_t generate(const struct test_model *m, uint64_t seed, struct test_op *ops)
{
    memset(ops, 0, m->max_ops * sizeof *ops);
    size_t n = m->generate(seed, ops, m->max_ops);
    for (size_t i = 0; i < n; i++)
        ops[i].id = (uint32_t)i;
    return n;
}

/* Waits for our child; kills it when nothing was done for hang_s. 0 = it ended well. */
static int watch(pid_t pid, struct page *page, int hang_s)
{
    uint64_t seen = 0;
    double since = now_s();
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid) {
            if (WIFSIGNALED(status))
                test_why(&page->why, "killed by signal %d", WTERMSIG(status));
            else if (WEXITSTATUS(status) != 0)
                test_why(&page->why, "ended with status %d", WEXITSTATUS(status));
            return status != 0;
        }
        if (got < 0 && errno != EINTR)
            return test_why(&page->why, "lost the worker");
        uint64_t beat = atomic_load(&page->done);
        if (beat != seen) {
            seen = beat;
            since = now_s();
        } else if (now_s() - since > hang_s) {
            test_why(&page->why, "hangs: still running after %d s", hang_s);
            kill(pid, SIGKILL);
        }
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

/* cmocka catches what must end a child. */
static void die_as_usual(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
}

static void worker(const struct test_model *m, struct page *page, uint64_t first, uint64_t last, double until)
{
    struct test_op *ops = calloc(m->max_ops, sizeof *ops);
    for (uint64_t seed = first; ops && seed <= last && now_s() < until; seed++) {
        atomic_store(&page->seed, seed);
        size_t n = generate(m, seed, ops);
        if (m->run(seed, ops, n, &page->why))
            _exit(1);
        atomic_fetch_add(&page->done, 1);
    }
    free(ops);
    exit(0); /* leaks are looked for */
}

/* 1 = this list fails. */
static int fails(const struct test_model *m, struct page *page, uint64_t seed, const struct test_op *ops, size_t n,
                 int quiet)
{
    memset(&page->why, 0, sizeof page->why);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        die_as_usual();
        int null = quiet ? open("/dev/null", O_WRONLY) : -1;
        if (null >= 0) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
        }
        if (m->run(seed, ops, n, &page->why))
            _exit(1);
        exit(0);
    }
    return pid > 0 && watch(pid, page, CANDIDATE_HANG_S);
}

struct shrinking {
    const struct test_model *m;
    struct page *page;
    uint64_t seed;
    struct test_op *ops, *candidate;
    size_t n;
    unsigned tried;
    double until;
};

static int out_of_time(const struct shrinking *s)
{
    return s->tried >= CANDIDATES || now_s() > s->until;
}

static int accept(struct shrinking *s, size_t n)
{
    s->tried++;
    if (!fails(s->m, s->page, s->seed, s->candidate, n, 1))
        return 0;
    memcpy(s->ops, s->candidate, n * sizeof *s->ops);
    s->n = n;
    return 1;
}

static int cut(struct shrinking *s)
{
    int better = 0;
    for (size_t step = (s->n + 1) / 2; step > 0; step = step > 1 ? (step + 1) / 2 : 0) {
        for (size_t at = 0; at < s->n && !out_of_time(s);) {
            size_t gone = step < s->n - at ? step : s->n - at;
            memcpy(s->candidate, s->ops, at * sizeof *s->ops);
            memcpy(s->candidate + at, s->ops + at + gone, (s->n - at - gone) * sizeof *s->ops);
            if (accept(s, s->n - gone))
                better = 1;
            else
                at += step;
        }
    }
    return better;
}

static int simplify(struct shrinking *s)
{
    int better = 0;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < sizeof s->ops[i].arg / sizeof s->ops[i].arg[0]; k++) {
            for (uint32_t down = s->ops[i].arg[k]; down > 0 && !out_of_time(s); down /= 2) {
                if (down > s->ops[i].arg[k])
                    continue;
                memcpy(s->candidate, s->ops, s->n * sizeof *s->ops);
                s->candidate[i].arg[k] -= down;
                better |= accept(s, s->n);
            }
        }
    }
    return better;
}

static void report(const struct test_model *m, struct page *page, uint64_t seed)
{
    struct test_why first = page->why;
    struct shrinking s = {.m = m, .page = page, .seed = seed, .until = now_s() + SHRINK_S};
    s.ops = calloc(m->max_ops, sizeof *s.ops);
    s.candidate = calloc(m->max_ops, sizeof *s.candidate);
    if (!s.ops || !s.candidate)
        abort();
    size_t all = s.n = generate(m, seed, s.ops);
    printf("%s: seed %llu fails: %s\n", m->name, (unsigned long long)seed, first.text);
    fflush(stdout);
    while ((cut(&s) | simplify(&s)) && !out_of_time(&s))
        ;
    int again = fails(m, page, seed, s.ops, s.n, 0);
    printf("%s: seed %llu, %zu of %zu operations are enough (%u lists tried): %s\n", m->name, (unsigned long long)seed,
           s.n, all, s.tried, again ? page->why.text : "NOT the second time");
    for (size_t i = 0; i < s.n; i++) {
        char text[200];
        m->print(&s.ops[i], text, sizeof text);
        printf("    %3u  %s\n", s.ops[i].id, text);
    }
    printf("%s: run again with RNL_TEST_SEED=%llu\n", m->name, (unsigned long long)seed);
    fflush(stdout);
    free(s.ops);
    free(s.candidate);
}

static uint64_t number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : 0;
}

int test_model_check(const struct test_model *m)
{
    uint64_t only = number("RNL_TEST_SEED"), many = number("RNL_TEST_SEEDS"), from = number("RNL_TEST_FROM");
    uint64_t first = only ? only : from ? from : 1, last = only ? only : first - 1 + (many ? many : m->seeds);
    double until = now_s() + (only || many ? 1e6 : m->seconds);
    (void)test_pattern(0, 0); /* before any fork */
    struct page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    if (only && number("RNL_TEST_NOFORK")) {
        struct test_op *ops = calloc(m->max_ops, sizeof *ops);
        if (!ops)
            abort();
        die_as_usual();
        int failed = m->run(only, ops, generate(m, only, ops), &page->why);
        printf("%s: seed %llu: %s\n", m->name, (unsigned long long)only, failed ? page->why.text : "good");
        free(ops);
        return failed;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        die_as_usual();
        worker(m, page, first, last, until);
    }
    int failed = pid < 0 || watch(pid, page, HANG_S);
    if (failed)
        report(m, page, atomic_load(&page->seed));
    else
        printf("%s: %llu seeds\n", m->name, (unsigned long long)atomic_load(&page->done));
    munmap(page, sizeof *page);
    return failed;
}
