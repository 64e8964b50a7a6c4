/* SPDX-License-Identifier: BSD-3-Clause
 *
 * top.c - `runnel top`: what the ranks of a job do now: rates, waits, packets sent again, queues. It reads their
 * pages of counters, as `runnel why` does, and changes nothing. */
#include "top.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

enum { OPTION_ONCE = 256, OPTION_JSON, OPTION_METRICS, OPTION_SORT };
static const double interval_least = 0.05, interval_most = 3600;

struct wish {
    int job;
    bool once, json;
    const char *metrics;
    double interval;
    enum top_sort by;
};

static const struct argp_option options[] = {
    {"interval", 'i', "SECONDS", 0, "Between two looks (default: 1)", 0},
    {"sort", OPTION_SORT, "WHAT", 0, "rank (default), sent, received, bytes, cpu, lost, kept or waits", 0},
    {"once", OPTION_ONCE, NULL, 0, "Print the table once, after one interval", 1},
    {"json", OPTION_JSON, NULL, 0, "The same as one JSON object", 1},
    {"metrics", OPTION_METRICS, "PORT|FILE", 0,
     "Serve all counters for Prometheus at this port of the loopback interface, or at ADDRESS:PORT; or write them to a "
     "file",
     2},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wish *w = state->input;
    char *end;
    switch (key) {
    case 'i':
        w->interval = strtod(arg, &end);
        if (end == arg || *end != '\0' || !(w->interval >= interval_least && w->interval <= interval_most))
            argp_error(state, "--interval takes seconds from %.2f to %.0f, not '%s'", interval_least, interval_most,
                       arg);
        return 0;
    case OPTION_SORT:
        for (w->by = 0; w->by < TOP_SORTS && strcmp(arg, top_sort_word[w->by]) != 0;)
            w->by++;
        if (w->by == TOP_SORTS)
            argp_error(state, "--sort takes rank, sent, received, bytes, cpu, lost, kept or waits, not '%s'", arg);
        return 0;
    case OPTION_ONCE:
        w->once = true;
        return 0;
    case OPTION_JSON:
        w->once = w->json = true;
        return 0;
    case OPTION_METRICS:
        w->metrics = arg;
        return 0;
    case ARGP_KEY_ARG: {
        const long n = strtol(arg, &end, 10);
        if (w->job)
            argp_error(state, "'%s' is one argument too many", arg);
        if (*end != '\0' || end == arg || n <= 0 || n > INT_MAX)
            argp_error(state,
                       "JOB is the process of a runnel run, or of one of its ranks, not '%s'; runnel info lists them",
                       arg);
        w->job = (int)n;
        return 0;
    }
    case ARGP_KEY_END:
        if (!w->job)
            argp_error(state,
                       "which job? Give the process of its runnel run, or of one of its ranks; runnel info lists them");
        if (w->metrics && w->once)
            argp_error(state, "--metrics goes on until the job ends: leave out --once and --json");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print(const struct top_table *t, enum top_sort by)
{
    char line[256];
    for (unsigned i = 0; i < TOP_HEAD_LINES; i++) {
        top_put_head(t, by, i, sizeof line - 1, line, sizeof line);
        puts(line);
    }
    for (unsigned k = 0; k < t->size; k++) {
        top_put_row(t, &t->row[k], sizeof line - 1, line, sizeof line);
        puts(line);
    }
}

static int once(struct job_look *l, const struct wish *w)
{
    const struct timespec pause = {(time_t)w->interval, (long)(fmod(w->interval, 1) * 1e9)};
    struct job_rank *before = malloc(l->size * sizeof *before);
    const uint64_t before_ns = l->now_ns;
    struct top_table t;
    if (before)
        memcpy(before, l->rank, l->size * sizeof *before);
    (void)nanosleep(&pause, NULL);
    (void)job_look_again(l);
    if (!before || top_table_make(l, before, before_ns, w->by, false, &t) < 0) {
        fprintf(stderr, "runnel top: no memory for %u ranks\n", l->size);
        free(before);
        return EX_OSERR;
    }
    if (w->json)
        top_put_json(&t, stdout);
    else
        print(&t, w->by);
    top_table_free(&t);
    free(before);
    return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

int rnl_tool_top(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .args_doc = "JOB",
        .doc = "Show what the ranks of a job do now: rates, waits, packets that were sent again, queues.\v"
               "Keys: q quits, s sorts by the next column, r reverses, p pauses, arrows scroll. See runnel-top(1).",
    };
    struct wish w = {.interval = 1};
    struct job_look l;
    argp_err_exit_status = EX_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &w) != 0)
        return EX_USAGE;
    int status;
    if (job_look_find(&l, w.job) <= 0) {
        fprintf(stderr,
                "runnel top: process %d has no rank with an endpoint that you may look into; runnel info lists the "
                "jobs of this "
                "host\n",
                w.job);
        status = EX_UNAVAILABLE;
    } else if (w.metrics) {
        status = top_metrics(&l, w.metrics, w.interval);
    } else {
        status = w.once ? once(&l, &w) : top_screen(&l, w.interval, w.by);
    }
    job_look_free(&l);
    return status;
}
