/* SPDX-License-Identifier: BSD-3-Clause
 *
 * swarm.c - runs schedules, each in a process of its own. One that fails is run again with one fault after the other
 * taken away, as long as it still fails; then the command that repeats it is printed.
 *
 *   swarm-seeds COUNT [FROM]            so many seeds
 *   swarm-seeds one SEED [FAULT,...]    one, without these faults, and what it was
 *   swarm-seeds here SEED [FAULT,...]   the same in this process, for a debugger
 *
 * SWARM_MARKS=1: how often each mark in the library was reached (base/sometimes.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sometimes.h"
#include "support/must.h"
#include "support/random.h"
#include "swarm/world.h"

enum {
    SECONDS_MAX = 20,
    FAILURES_MAX = 1,
    TWICE = 25 /* one in so many runs again, and must be the same */,
    MARKS_FROM = 2000 /* schedules that have to reach all marks */
};

#define SHRINK_NS ((uint64_t)30 * 1000 * 1000 * 1000)

static struct swarm_result *result;

/* ---- marks (base/sometimes.h), summed over the processes ---- */

extern struct rnl_mark __start_rnl_marks[], __stop_rnl_marks[]; /* the linker's */
static uint64_t *reached;

static size_t marks(void)
{
    return (size_t)(__stop_rnl_marks - __start_rnl_marks);
}

static void sum_marks(void)
{
    for (size_t i = 0; i < marks(); i++)
        reached[i] += __start_rnl_marks[i].reached;
}

/* How many are not reached; `all`: says how often each was. */
static unsigned print_marks(int all)
{
    unsigned missing = 0;
    for (size_t i = 0; i < marks(); i++) {
        const struct rnl_mark *m = &__start_rnl_marks[i];
        const char *file = strstr(m->file, "src/");
        missing += !reached[i];
        if (all || !reached[i])
            printf("%8llu %s:%llu %s\n", (unsigned long long)reached[i], file ? file : m->file,
                   (unsigned long long)m->line, m->what);
    }
    return missing;
}

/* ---- one schedule ---- */

/* 1 = it failed, and result->why says how. */
static int fails(uint64_t seed, uint32_t off)
{
    struct swarm_plan plan;
    int status;
    swarm_plan_of(seed, off, &plan);
    memset(result, 0, sizeof *result);
    fflush(stdout);
    pid_t child = fork();
    TEST_MUST(child >= 0);
    if (child == 0) {
        alarm(SECONDS_MAX); /* an endless loop */
        swarm_run(&plan, result);
        sum_marks();
        _exit(0);
    }
    TEST_MUST(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (!result->why[0] && WIFSIGNALED(status))
        snprintf(result->why, sizeof result->why, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (!result->why[0])
        snprintf(result->why, sizeof result->why, "ended with status %d", WEXITSTATUS(status));
    return 1;
}

/* Takes away what is not needed for it to fail. */
static uint32_t shrunk(uint64_t seed, uint32_t off)
{
    struct swarm_plan plan;
    uint64_t until = test_now_ns() + SHRINK_NS;
    for (unsigned f = 0; f < SWARM_FAULT_COUNT && test_now_ns() < until; f++) {
        swarm_plan_of(seed, off, &plan);
        if (swarm_has(&plan, f) && fails(seed, off | (uint32_t)1 << f))
            off |= (uint32_t)1 << f;
    }
    return off;
}

static void names(uint32_t off, char *to, size_t bytes)
{
    size_t at = 0;
    to[0] = 0;
    for (unsigned f = 0; f < SWARM_FAULT_COUNT; f++)
        if (off >> f & 1 && at < bytes)
            at += (size_t)snprintf(to + at, bytes - at, "%s%s", at ? "," : "", swarm_fault_name(f));
}

static void report(const char *self, uint64_t seed)
{
    struct swarm_plan plan;
    char what[500], off_names[300];
    uint32_t off = shrunk(seed, 0);
    (void)fails(seed, off);
    swarm_plan_of(seed, off, &plan);
    swarm_plan_print(&plan, what, sizeof what);
    names(off, off_names, sizeof off_names);
    printf("seed %llu fails: %s\n  %s\n  repeat with: %s one %llu %s\n", (unsigned long long)seed, result->why, what,
           self, (unsigned long long)seed, off_names);
}

static int parse_off(char *text, uint32_t *off)
{
    for (char *save, *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        unsigned f = 0;
        while (f < SWARM_FAULT_COUNT && strcmp(word, swarm_fault_name(f)) != 0)
            f++;
        if (f == SWARM_FAULT_COUNT)
            return 0;
        *off |= (uint32_t)1 << f;
    }
    return 1;
}

static int one(uint64_t seed, uint32_t off, int here)
{
    struct swarm_plan plan;
    char what[500];
    int failed = 0;
    swarm_plan_of(seed, off, &plan);
    swarm_plan_print(&plan, what, sizeof what);
    printf("%s\n", what);
    fflush(stdout);
    if (here)
        swarm_run(&plan, result);
    else
        failed = fails(seed, off);
    if (failed)
        printf("fails: %s\n", result->why);
    printf("%llu messages, %llu packets, %llu us, trace hash %016llx\n", (unsigned long long)result->messages,
           (unsigned long long)result->packets, (unsigned long long)(result->ns / 1000),
           (unsigned long long)result->hash);
    return failed;
}

static int many(const char *self, uint64_t count, uint64_t from)
{
    uint64_t failed = 0, hash = 0, messages = 0, packets = 0, i;
    for (i = 0; i < count && failed < FAILURES_MAX; i++) {
        if (fails(from + i, 0)) {
            failed++;
            printf("after %llu schedules: ", (unsigned long long)i + 1);
            report(self, from + i);
            fflush(stdout);
            continue;
        }
        uint64_t once = result->hash;
        if (i % TWICE == 0 && (fails(from + i, 0) || result->hash != once)) {
            printf("not ok - seed %llu is not the same a second time\n", (unsigned long long)(from + i));
            return 1;
        }
        hash = rnl_chance_mix(hash ^ once);
        messages += result->messages;
        packets += result->packets;
    }
    printf("%llu schedules from seed %llu on: %llu messages in %llu packets, trace hash %016llx\n",
           (unsigned long long)i, (unsigned long long)from, (unsigned long long)messages, (unsigned long long)packets,
           (unsigned long long)hash);
    printf("%s - every message, once and in order\n", failed ? "not ok" : "ok");
    if (failed || count < MARKS_FROM)
        return failed != 0;
    unsigned missing = print_marks(getenv("SWARM_MARKS") != NULL);
    printf("%s - all of %zu marks in the library were reached\n", missing ? "not ok" : "ok", marks());
    return missing != 0;
}

int main(int argc, char **argv)
{
    uint32_t off = 0;
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_MUST(result != MAP_FAILED);
    reached = mmap(NULL, marks() * sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_MUST(reached != MAP_FAILED);
    (void)test_pattern(0, 0); /* made once, for all children */
    if (argc >= 3 && (strcmp(argv[1], "one") == 0 || strcmp(argv[1], "here") == 0) &&
        (argc == 3 || parse_off(argv[3], &off)))
        return one(strtoull(argv[2], NULL, 0), off, argv[1][0] == 'h');
    if (argc >= 2 && argc <= 3 && strtoull(argv[1], NULL, 0) > 0)
        return many(argv[0], strtoull(argv[1], NULL, 0), argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    fprintf(stderr, "usage: %s COUNT [FROM] | one SEED [FAULT,...] | here SEED [FAULT,...]\n", argv[0]);
    return 64;
}
