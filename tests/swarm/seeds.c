/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seeds.c - runs schedules, each in a process of its own. One that fails is run again with one fault after the other
 * taken away, and then with fewer hosts and less to say, as long as it still fails; then the command that repeats it is
 * printed.
 *
 *   swarm-seeds COUNT [FROM]           so many seeds
 *   swarm-seeds one SEED [LESS,...]    one, and what it was. LESS: a fault that is left out, or hosts=N, messages=N,
 *                                      longest=N, total=N: at most so many
 *   swarm-seeds here SEED [LESS,...]   the same in this process, for a debugger
 *
 * SWARM_MARKS=1: how often each mark in the library was reached (base/sometimes.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/sometimes.h"
#include "support/must.h"
#include "support/random.h"
#include "swarm/try.h"

enum {
    FAILURES_MAX = 1,
    TWICE = 25 /* one in so many runs again, and must be the same */,
    MARKS_FROM = 2000 /* schedules that have to reach all marks */
};

#define SHRINK_NS ((uint64_t)30 * 1000 * 1000 * 1000)

static struct swarm_result *result;
static const struct swarm_less whole; /* nothing is taken away */

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
static int fails(uint64_t seed, const struct swarm_less *less)
{
    struct swarm_plan plan;
    swarm_plan_of(seed, less, &plan);
    return swarm_try(&plan, sum_marks);
}

/* Of all that a schedule has: does it still fail with that much? */
static int still(uint64_t seed, struct swarm_less *less, const struct swarm_less *tried)
{
    if (!fails(seed, tried))
        return 0;
    *less = *tried;
    return 1;
}

/* Half of it, as long as it fails so. */
#define SHRINK(field, least)                                                         \
    for (size_t n = plan.field / 2; n >= (least) && test_now_ns() < until; n /= 2) { \
        tried = *less;                                                               \
        tried.field = (unsigned)n;                                                   \
        if (!still(seed, less, &tried))                                              \
            break;                                                                   \
    }

/* Takes away what is not needed for it to fail: faults, one after the other, and then half of all sizes, and half of
 * what is left. */
static void shrink(uint64_t seed, struct swarm_less *less)
{
    struct swarm_plan plan;
    struct swarm_less tried;
    uint64_t until = test_now_ns() + SHRINK_NS;
    for (unsigned f = 0; f < SWARM_FAULT_COUNT && test_now_ns() < until; f++) {
        swarm_plan_of(seed, less, &plan);
        tried = *less;
        tried.off |= (uint64_t)1 << f;
        if (swarm_has(&plan, f))
            (void)still(seed, less, &tried);
    }
    swarm_plan_of(seed, less, &plan);
    for (unsigned n = 2; n < plan.hosts && test_now_ns() < until; n++) {
        tried = *less;
        tried.hosts = n;
        if (still(seed, less, &tried))
            break;
    }
    SHRINK(messages, 1)
    SHRINK(longest, 8)
    SHRINK(total, 64)
}

/* As it is given on the command line. */
static void print_less(const struct swarm_less *less, char *to, size_t bytes)
{
    size_t at = 0;
    const struct {
        const char *name;
        size_t n;
    } size[] = {
        {"hosts", less->hosts}, {"messages", less->messages}, {"longest", less->longest}, {"total", less->total}};
    to[0] = 0;
    for (unsigned f = 0; f < SWARM_FAULT_COUNT; f++)
        if (less->off >> f & 1 && at < bytes)
            at += (size_t)snprintf(to + at, bytes - at, "%s%s", at ? "," : "", swarm_fault_name(f));
    for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++)
        if (size[i].n && at < bytes)
            at += (size_t)snprintf(to + at, bytes - at, "%s%s=%zu", at ? "," : "", size[i].name, size[i].n);
}

static void report(const char *self, uint64_t seed)
{
    struct swarm_plan plan;
    struct swarm_less less = {0};
    char what[500], text[400];
    shrink(seed, &less);
    (void)fails(seed, &less);
    swarm_plan_of(seed, &less, &plan);
    swarm_plan_print(&plan, what, sizeof what);
    print_less(&less, text, sizeof text);
    printf("seed %llu fails: %s\n  %s\n  repeat with: %s one %llu %s\n", (unsigned long long)seed, result->why, what,
           self, (unsigned long long)seed, text);
}

static int parse_size(const char *word, struct swarm_less *less)
{
    unsigned long n;
    int end = 0;
    if (sscanf(word, "hosts=%lu%n", &n, &end) == 1 && n > 1)
        less->hosts = (unsigned)n;
    else if (sscanf(word, "messages=%lu%n", &n, &end) == 1 && n > 0)
        less->messages = (unsigned)n;
    else if (sscanf(word, "longest=%lu%n", &n, &end) == 1 && n > 0)
        less->longest = n;
    else if (sscanf(word, "total=%lu%n", &n, &end) == 1 && n > 0)
        less->total = n;
    return end > 0 && word[end] == 0;
}

static int parse_less(char *text, struct swarm_less *less)
{
    for (char *save, *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        unsigned f = 0;
        while (f < SWARM_FAULT_COUNT && strcmp(word, swarm_fault_name(f)) != 0)
            f++;
        if (f < SWARM_FAULT_COUNT)
            less->off |= (uint64_t)1 << f;
        else if (!parse_size(word, less))
            return 0;
    }
    return 1;
}

static void print_events(const struct swarm_plan *plan)
{
    for (unsigned i = 0; i < plan->events; i++) {
        const struct swarm_event *e = &plan->event[i];
        printf("  %10llu us: host %u %s", (unsigned long long)(e->at_ns / 1000), e->host, swarm_event_name(e->kind));
        if (e->for_ns)
            printf(" for %llu us", (unsigned long long)(e->for_ns / 1000));
        printf(e->other ? " (%u)\n" : "\n", e->other);
    }
    printf("  silent for %llu us is dead\n", (unsigned long long)(plan->silent_ns / 1000));
}

static int one(uint64_t seed, const struct swarm_less *less, int here)
{
    struct swarm_plan plan;
    char what[500];
    int failed = 0;
    swarm_plan_of(seed, less, &plan);
    swarm_plan_print(&plan, what, sizeof what);
    printf("%s\n", what);
    print_events(&plan);
    fflush(stdout);
    if (here)
        swarm_run(&plan, result);
    else
        failed = fails(seed, less);
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
        if (fails(from + i, &whole)) {
            failed++;
            printf("after %llu schedules: ", (unsigned long long)i + 1);
            report(self, from + i);
            fflush(stdout);
            continue;
        }
        uint64_t once = result->hash;
        if (i % TWICE == 0 && (fails(from + i, &whole) || result->hash != once)) {
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
    struct swarm_less less = {0};
    result = swarm_try_new();
    reached = mmap(NULL, marks() * sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TEST_MUST(reached != MAP_FAILED);
    if (argc >= 3 && (strcmp(argv[1], "one") == 0 || strcmp(argv[1], "here") == 0) &&
        (argc == 3 || parse_less(argv[3], &less)))
        return one(strtoull(argv[2], NULL, 0), &less, argv[1][0] == 'h');
    if (argc >= 2 && argc <= 3 && strtoull(argv[1], NULL, 0) > 0)
        return many(argv[0], strtoull(argv[1], NULL, 0), argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    fprintf(stderr, "usage: %s COUNT [FROM] | one SEED [LESS,...] | here SEED [LESS,...]\n", argv[0]);
    return 64;
}
