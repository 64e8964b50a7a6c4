/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench.c - `runnel bench`: what is to be measured, and how it is shown. The measuring is in bench/, the processes are
 * in bench_jobs.c. */
#include "bench_jobs.h"
#include "machine.h"
#include "report.h"
#include "side.h"
#include "tool.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    MAX_SIZES = 32,
    ATTACH_MS = 15000,
    OPTION_TRANSPORT = 256,
    OPTION_API,
    OPTION_SIZE,
    OPTION_JSON,
    OPTION_MAX_TIME,
    OPTION_PLOT,
    OPTION_CHILD
};
static const uint64_t MOST_BYTES = 16 << 20;

struct asked {
    unsigned tests; /* bit per enum bench_test */
    unsigned apis;
    uint64_t size[MAX_SIZES];
    unsigned sizes;
    bool json;
    double seconds;
    const char *plot, *child, *child_api;
};

static const struct argp_option options[] = {
    {"transport", OPTION_TRANSPORT, "NAME", 0, "what carries the messages: shm, between processes of this host", 0},
    {"api", OPTION_API, "NAME[,NAME...]", 0,
     "fm (FM 2.x), fm1 (FM 1.1), native, all (default), or raw: the floors alone", 0},
    {"size", OPTION_SIZE, "N[,N...]", 0,
     "message sizes in bytes, K and M understood, at most 16M (default: 8 for latency and rate, 64K,1M for bandwidth)",
     0},
    {"json", OPTION_JSON, NULL, 0, "one JSON object a row on standard output", 0},
    {"max-time", OPTION_MAX_TIME, "SECONDS", 0, "measure for about that long (default 20)", 0},
    {"plot", OPTION_PLOT, "DIR", 0, "also write latency.png and bandwidth.png to DIR (needs gnuplot)", 0},
    {"child", OPTION_CHILD, "PATH", OPTION_HIDDEN, NULL, 0},
    {0},
};

/* The next word of a list, or NULL. */
static const char *next_word(const char **list, char *out, size_t size)
{
    if (!*list)
        return NULL;
    size_t n = strcspn(*list, ",");
    snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), *list);
    *list = (*list)[n] ? *list + n + 1 : NULL;
    return out;
}

static void parse_apis(struct argp_state *state, struct asked *q, const char *list)
{
    char word[32];
    q->child_api = list;
    q->apis = 0;
    while (next_word(&list, word, sizeof word)) {
        unsigned a = BENCH_RAW;
        while (a < BENCH_APIS && strcmp(word, bench_api_name(a)))
            a++;
        if (!strcmp(word, "all"))
            q->apis = ~0u;
        else if (a < BENCH_APIS)
            q->apis |= 1u << a;
        else
            argp_error(state, "there is no interface '%s': --api takes fm, fm1, native, raw or all", word);
    }
}

static void parse_sizes(struct argp_state *state, struct asked *q, const char *list)
{
    char word[32];
    q->sizes = 0;
    while (next_word(&list, word, sizeof word)) {
        uint64_t bytes;
        if (bench_bytes_parse(word, &bytes) || bytes < 1 || bytes > MOST_BYTES)
            argp_error(state, "--size %s: give whole bytes from 1 to 16M, such as 8, 64K or 1M", word);
        else if (q->sizes == MAX_SIZES)
            argp_error(state, "--size: more than %d sizes; give fewer", MAX_SIZES);
        else
            q->size[q->sizes++] = bytes;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct asked *q = state->input;
    char *end;
    switch (key) {
    case OPTION_TRANSPORT:
        if (strcmp(arg, "shm"))
            argp_error(state, "there is no transport '%s': this release has shm", arg);
        break;
    case OPTION_API:
        parse_apis(state, q, arg);
        break;
    case OPTION_SIZE:
        parse_sizes(state, q, arg);
        break;
    case OPTION_JSON:
        q->json = true;
        break;
    case OPTION_MAX_TIME:
        q->seconds = strtod(arg, &end);
        if (end == arg || *end || !(q->seconds >= 0.1 && q->seconds <= 86400))
            argp_error(state, "--max-time %s: give seconds from 0.1 to 86400", arg);
        break;
    case OPTION_PLOT:
        q->plot = arg;
        if (!*arg)
            argp_error(state, "--plot needs the name of a folder");
        break;
    case OPTION_CHILD:
        q->child = arg;
        break;
    case ARGP_KEY_ARG:
        if (!strcmp(arg, "latency"))
            q->tests |= 1u << BENCH_LATENCY;
        else if (!strcmp(arg, "rate"))
            q->tests |= 1u << BENCH_RATE;
        else if (!strcmp(arg, "bandwidth"))
            q->tests |= 1u << BENCH_BANDWIDTH | 1u << BENCH_BANDWIDTH_ALONE;
        else if (!strcmp(arg, "all"))
            q->tests |= ~0u;
        else
            argp_error(state, "there is no test '%s': latency, rate, bandwidth or all", arg);
        break;
    case ARGP_KEY_END:
        if (!q->tests)
            q->tests = ~0u;
        if (q->plot && !(q->tests & (1u << BENCH_LATENCY | 1u << BENCH_BANDWIDTH)))
            argp_error(state, "--plot draws latency and bandwidth: ask for one of them too");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int complain(const char *text)
{
    fprintf(stderr, "runnel bench: %s\n", text);
    return 1;
}

static unsigned apis_for(const struct asked *q, uint64_t bytes)
{
    return bytes > bench_api_fm1.most_bytes ? q->apis & ~(1u << BENCH_FM1) : q->apis;
}

static int make_plan(const struct asked *q, struct bench_plan *p)
{
    static const uint64_t small[] = {8}, large[] = {64 << 10, 1 << 20};
    static const enum bench_test tests[] = {BENCH_LATENCY, BENCH_RATE, BENCH_BANDWIDTH, BENCH_BANDWIDTH_ALONE};
    int e = 0;
    for (unsigned t = 0; t < sizeof tests / sizeof *tests; t++) {
        bool bulk = tests[t] == BENCH_BANDWIDTH || tests[t] == BENCH_BANDWIDTH_ALONE;
        const uint64_t *size = q->sizes ? q->size : bulk ? large : small;
        unsigned sizes = q->sizes ? q->sizes : bulk ? 2 : 1;
        if (!(q->tests & 1u << tests[t]))
            continue;
        for (unsigned i = 0; i < sizes && e == 0; i++)
            e = bench_plan_add(p, tests[t], size[i], apis_for(q, size[i]), true);
        if (!q->plot || q->sizes)
            continue;
        if (tests[t] == BENCH_LATENCY)
            for (uint64_t bytes = 8; bytes <= 64 << 10 && e == 0; bytes *= 2)
                e = bench_plan_add(p, tests[t], bytes, apis_for(q, bytes), false);
        if (tests[t] == BENCH_BANDWIDTH)
            for (uint64_t bytes = 64; bytes <= 4 << 20 && e == 0; bytes *= 2)
                e = bench_plan_add(p, tests[t], bytes, apis_for(q, bytes), false);
    }
    return e;
}

static void show_progress(void *arg, double seconds_left)
{
    static uint64_t last;
    uint64_t now = bench_now_ns();
    (void)arg;
    if (now - last > 500000000) {
        last = now;
        fprintf(stderr, "\rmeasuring, %.0f s left ", seconds_left);
    }
}

/* What the rows do not say. */
static void remarks(FILE *f, const struct asked *q, const struct bench_plan *p)
{
    unsigned flipped = 0, preempted = 0, empty = 0, no_fm1 = 0;
    for (size_t i = 0; i < p->units; i++) {
        flipped += p->unit[i].flipped;
        preempted += p->unit[i].preempted;
        empty += p->unit[i].rounds == 0;
        no_fm1 += p->unit[i].shown && p->unit[i].bytes > bench_api_fm1.most_bytes && q->apis & 1u << BENCH_FM1;
    }
    if (preempted)
        fprintf(f, "%u repetitions were interrupted by other programs and run again.\n", preempted);
    if (flipped)
        fprintf(f, "%u rounds were thrown away: the cores' placement changed meanwhile.\n", flipped);
    if (empty)
        fprintf(f, "%u of %zu sizes had no turn: --max-time %g is short for them.\n", empty, p->units, q->seconds);
    if (no_fm1)
        fprintf(f, "FM 1.1 was left out above 1M, its longest message.\n");
}

static int show(const struct asked *q, const struct bench_plan *p, const struct bench_area *a, const char *machine)
{
    char text[512];
    struct bench_row *row;
    size_t n;
    if (bench_rows(p, a->one_core, &row, &n))
        return complain("no memory for the results");
    if (q->json) {
        bench_report_json(stdout, row, n);
    } else {
        printf("%s\n\n", machine);
        bench_report_table(stdout, row, n);
        fputc('\n', stdout);
    }
    remarks(q->json ? stderr : stdout, q, p);
    int status = 0;
    if (q->plot && bench_plot(q->plot, row, n, q->json ? stderr : stdout, text, sizeof text))
        status = complain(text);
    if (fflush(stdout) || ferror(stdout))
        status = complain("could not write the results: is the disk full or the pipe closed?");
    free(row);
    return status;
}

static int measure(const struct asked *q, struct bench_plan *p, struct bench_area *a, int fd)
{
    struct bench_jobs jobs;
    struct bench_run run = {.area = a, .plan = p, .alive = bench_jobs_alive, .arg = &jobs};
    bool terminal = isatty(STDERR_FILENO);
    if (terminal)
        run.progress = show_progress;
    int e = bench_jobs_start(&jobs, a, fd, q->apis, p->text, sizeof p->text);
    for (unsigned pair = 0; pair < BENCH_APIS && e == 0; pair++)
        if (pair == BENCH_RAW || q->apis & 1u << pair)
            e = bench_attached(&run, pair, ATTACH_MS);
    if (e == 0) {
        run.end_ns = bench_now_ns() + (uint64_t)(q->seconds * 1e9);
        e = bench_run(&run);
    }
    bench_jobs_end(&jobs, e != 0);
    if (terminal)
        fprintf(stderr, "\r%32s\r", "");
    return e ? complain(p->text) : 0;
}

int rnl_tool_bench(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[latency|rate|bandwidth|all]...",
        .doc = "Measures messages between two processes of this host beside the fastest its memory allows.\v"
               "Rows are medians; ratio is value / floor of the same round. See runnel-bench(1).",
    };
    struct asked q = {.apis = ~0u, .seconds = 20};
    struct bench_plan plan = {.calm = 1};
    struct bench_area *area;
    char machine[256];
    int fd;
    if (argp_parse(&argp, argc, argv, 0, NULL, &q))
        return EX_USAGE;
    if (q.child)
        return bench_jobs_child(q.child, q.child_api ? q.child_api : "");
    q.apis &= ((1u << BENCH_APIS) - 1) & ~(1u << BENCH_RAW);
    if (q.plot && !bench_plot_possible())
        return complain(
            "--plot needs gnuplot, which is not in PATH; install it (Debian: gnuplot-nox) or leave --plot out");
    if (q.plot && bench_plot_folder(q.plot, plan.text, sizeof plan.text))
        return complain(plan.text);
    bench_machine_line(machine, sizeof machine);
    if (make_plan(&q, &plan))
        return complain("no memory for the plan");
    int e = bench_area_create(&area, &fd);
    if (e) {
        fprintf(stderr, "runnel bench: no shared memory (memfd_create): %s\n", strerror(-e));
        return 1;
    }
    area->one_core = bench_choose_cpus(area->cpu) < 2;
    area->ns_per_tick = bench_ns_per_tick();
    for (size_t i = 0; i < plan.units; i++)
        if (plan.unit[i].bytes > area->most_bytes)
            area->most_bytes = plan.unit[i].bytes;
    int status = measure(&q, &plan, area, fd);
    if (status == 0)
        status = show(&q, &plan, area, machine);
    bench_plan_free(&plan);
    close(fd);
    return status;
}
