/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim.c - `runnel sim`: reads the options, runs the job on a virtual cluster, prints what the ranks print, and last the
 * hash of all that happened. */
#include "base/error.h"
#include "launcher/launcher.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/net.h"
#include "sim/cluster/trace.h"
#include "tool.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    OPT_HOSTS = 256,
    OPT_LOSS,
    OPT_FAULT,
    OPT_SCENARIO,
    OPT_REPLAY,
    OPT_TRACE,
    OPT_KEEP_GOING,
    OPT_TAG,
    OPT_TIMEOUT,
    OPT_NO_GUARDS,
    OPT_SPEED
};
#define BILLION ((uint64_t)1000000000)

struct sim_options {
    struct vc_cluster_options cluster;
    int tag, speed;
    char faults[256];
    const char *trace;
    char *scenario; /* the text, ours to free */
};

static const struct argp_option options[] = {
    {"ranks", 'n', "N", 0, "N copies of the program (default: 2)", 0},
    {"hosts", OPT_HOSTS, "H", 0, "On H virtual hosts (default: 1, or what the scenario says)", 0},
    {"seed", 's', "S", 0, "What chance makes of this number (default: 1)", 0},
    {"loss", OPT_LOSS, "P", 0, "Each link loses this part of its packets, like 1%", 0},
    {"fault", OPT_FAULT, "FAULTS", 0, "What befalls packets on each link, like loss=1%,delay=1us..50us", 0},
    {"scenario", OPT_SCENARIO, "FILE", 0, "What the network is, and what happens, stands in this file", 0},
    {"replay", OPT_REPLAY, "S", 0, "As --seed S --verbose", 0},
    {"trace", OPT_TRACE, "FILE", 0, "Write the packets of the virtual network there, as pcapng", 0},
    {"timeout", OPT_TIMEOUT, "SECONDS", 0, "End the job after this much virtual time, with status 124 (default: 1000)",
     0},
    {"keep-going", OPT_KEEP_GOING, NULL, 0, "Let the others go on when a process fails", 0},
    {"tag-output", OPT_TAG, NULL, 0, "Put the rank before each line of output", 0},
    {"verbose", 'v', NULL, 0, "Tell of crashes and restarts", 0},
    {"no-guards", OPT_NO_GUARDS, NULL, 0, "Do not catch system calls and time-stamp reads of the program's own", 0},
    {"speed", OPT_SPEED, NULL, 0, "Tell how fast the run was, and what memory it took", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static uint64_t number(const char *what, const char *text, uint64_t low, uint64_t high, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 0);
    if (end == text || *end != '\0' || text[0] == '-' || text[0] == ' ' || errno != 0 || n < low || n > high)
        argp_error(state, "%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%s'", what, low, high, text);
    return n;
}

/* Seconds with up to nine decimals, in ns; few enough that a clock of picoseconds has them. */
static uint64_t seconds(const char *what, const char *text, struct argp_state *state)
{
    uint64_t ns = 0, unit = BILLION;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && ns < UINT64_MAX / 100000; p++)
        ns = 10 * ns + (uint64_t)(*p - '0') * BILLION;
    if (p != text && *p == '.')
        for (p++; *p >= '0' && *p <= '9' && unit > 1; p++)
            ns += (uint64_t)(*p - '0') * (unit /= 10);
    if (p == text || *p != '\0' || ns == 0)
        argp_error(state, "%s takes a number of seconds above 0, not '%s'", what, text);
    return ns;
}

static void add_fault(struct sim_options *plan, const char *name, const char *text, struct argp_state *state)
{
    size_t have = strlen(plan->faults);
    int n = snprintf(plan->faults + have, sizeof plan->faults - have, "%s%s%s", have ? "," : "", name, text);
    if (n >= (int)(sizeof plan->faults - have))
        argp_error(state, "the faults are more than %zu letters", sizeof plan->faults);
    plan->cluster.faults = plan->faults;
}

/* The whole of it, to be freed. */
static char *read_file(const char *path, struct argp_state *state)
{
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 1);
    FILE *f = text ? fopen(path, "re") : NULL;
    size_t n = f ? fread(text, 1, MOST + 1, f) : 0;
    if (!f || ferror(f))
        argp_failure(state, RNL_EXIT_SYSTEM, errno, "cannot read the scenario %s", path);
    else if (n > MOST)
        argp_error(state, "%s is longer than a scenario can be", path);
    else if (memchr(text, '\0', n))
        argp_error(state, "%s is no text: it has a byte 0", path);
    if (f)
        fclose(f);
    if (text)
        text[n < MOST ? n : MOST] = '\0';
    return text;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct sim_options *plan = state->input;
    struct vc_cluster_options *o = &plan->cluster;
    switch (key) {
    case 'n':
        o->ranks = (uint32_t)number("-n", arg, 1, VC_RANKS_MAX, state);
        return 0;
    case OPT_HOSTS:
        o->hosts = (uint32_t)number("--hosts", arg, 1, VC_RANKS_MAX, state);
        return 0;
    case 's':
        o->seed = number("--seed", arg, 0, UINT64_MAX, state);
        return 0;
    case OPT_REPLAY:
        o->seed = number("--replay", arg, 0, UINT64_MAX, state);
        o->verbose = 1;
        return 0;
    case OPT_LOSS:
        add_fault(plan, "loss=", arg, state);
        return 0;
    case OPT_FAULT:
        add_fault(plan, "", arg, state);
        return 0;
    case OPT_SCENARIO:
        free(plan->scenario); /* the last one counts */
        o->scenario = plan->scenario = read_file(arg, state);
        o->scenario_name = arg;
        return 0;
    case OPT_TRACE:
        plan->trace = arg;
        return 0;
    case OPT_TIMEOUT:
        o->limit_ns = seconds("--timeout", arg, state);
        return 0;
    case OPT_KEEP_GOING:
        o->keep_going = 1;
        return 0;
    case OPT_TAG:
        plan->tag = 1;
        return 0;
    case OPT_NO_GUARDS:
        o->no_guards = 1;
        return 0;
    case OPT_SPEED:
        plan->speed = 1;
        return 0;
    case 'v':
        o->verbose = 1;
        return 0;
    case ARGP_KEY_ARG: /* the program: what follows is its own */
        o->program = arg;
        o->argv = &state->argv[state->next - 1];
        o->argc = state->argc - state->next + 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (getenv("RNL_FAULT") && *getenv("RNL_FAULT") != '\0') /* its words mean links here, not ranks */
            argp_error(state, "RNL_FAULT is for live jobs: unset it, and say --fault '%s'", getenv("RNL_FAULT"));
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name the program to run behind the options: a shared object (cc -fPIC -shared)");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- what is printed ---- */

static void on_output(void *arg, uint32_t rank, int stream, const char *bytes, size_t n)
{
    const struct sim_options *plan = arg;
    FILE *to = stream == 2 ? stderr : stdout;
    if (plan->tag)
        fprintf(to, "[%u] ", rank);
    fwrite(bytes, 1, n, to);
}

static void on_say(void *arg, const char *line)
{
    (void)arg;
    fflush(stdout);
    fprintf(stderr, "runnel: %s\n", line);
}

/* A page of counters for each rank is a file in memory. */
static void raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ---- the packets ---- */

static FILE *begin_trace(struct vc_cluster *cluster, const struct sim_options *plan, struct vc_trace **trace)
{
    char about[200];
    struct vc_net *net = vc_cluster_net(cluster);
    FILE *file = fopen(plan->trace, "we");
    if (!file) {
        fprintf(stderr, "runnel: cannot write %s: %s\n", plan->trace, strerror(errno));
        return NULL;
    }
    snprintf(about, sizeof about, "runnel sim -n %" PRIu32 " --seed %" PRIu64 " %s", plan->cluster.ranks,
             plan->cluster.seed, plan->cluster.program);
    if (vc_trace_new(net, vc_trace_to_file, file, about, trace) < 0) {
        fprintf(stderr, "runnel: %s\n", rnl_last_error()->text);
        fclose(file);
        return NULL;
    }
    vc_net_set_tap(net, vc_trace_tap, *trace);
    return file;
}

/* 0 or the exit status. */
static int end_trace(FILE *file, struct vc_trace *trace, const char *path)
{
    int status = vc_trace_end(trace);
    if (fclose(file) == 0 && status == 0)
        return 0;
    fprintf(stderr, "runnel: %s could not be written whole\n", path);
    return RNL_EXIT_OUTPUT;
}

/* ---- how fast it was ---- */

static double cpu_seconds(void)
{
    struct rusage use = {0};
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* A packet's events: it is sent, and it arrives at each node of its way. */
static void say_speed(const struct vc_net *net, const struct vc_cluster_result *result, double seconds)
{
    struct vc_net_counts c;
    struct rusage use = {0};
    vc_net_counts(net, &c);
    getrusage(RUSAGE_SELF, &use);
    fprintf(stderr,
            "runnel: %.2f s of processor time: %" PRIu64 " packets, %" PRIu64
            " packet events, %.3f M a second; %" PRIu64 " events, %" PRIu64 " switches; %.1f MB at most\n",
            seconds, c.sent, c.sent + c.hops, seconds > 0 ? (double)(c.sent + c.hops) / seconds / 1e6 : 0.0,
            result->events, result->switches, (double)use.ru_maxrss * 1024 / 1e6);
}

static int run(struct sim_options *plan)
{
    FILE *file = NULL;
    struct vc_trace *trace = NULL;
    struct vc_cluster *cluster;
    struct vc_cluster_result result;
    plan->cluster.output = on_output;
    plan->cluster.say = on_say;
    plan->cluster.arg = plan;
    raise_files();
    int status = vc_cluster_new(&plan->cluster, &cluster);
    if (status < 0) {
        fprintf(stderr, "runnel: %s\n", rnl_last_error()->text);
        return status == RNL_ERR_UNSUPPORTED ? RNL_EXIT_NOT_EXECUTABLE
               : status == RNL_ERR_ARG       ? RNL_EXIT_USAGE
                                             : RNL_EXIT_SYSTEM;
    }
    if (plan->trace && !(file = begin_trace(cluster, plan, &trace))) {
        vc_cluster_free(cluster);
        return RNL_EXIT_OUTPUT;
    }
    double began = cpu_seconds();
    vc_cluster_run(cluster, &result);
    if (plan->speed)
        say_speed(vc_cluster_net(cluster), &result, cpu_seconds() - began);
    if (file) {
        vc_net_set_tap(vc_cluster_net(cluster), NULL, NULL);
        if ((status = end_trace(file, trace, plan->trace)) != 0 && result.status == 0)
            result.status = status;
    }
    vc_cluster_free(cluster);
    printf("runnel: %" PRIu64 ".%06" PRIu64 " s, %" PRIu64 " events, hash %016" PRIx64 "\n", result.ns / BILLION,
           result.ns / 1000 % 1000000, result.events, result.hash);
    return fflush(stdout) == 0 ? result.status : RNL_EXIT_OUTPUT;
}

int rnl_tool_sim(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .args_doc = "PROGRAM.so [ARGUMENT...]",
        .doc = "Run a job on a virtual cluster: in this one process, on virtual time, the same in each run.\v"
               "PROGRAM.so is the program as a shared object (cc -fPIC -shared). The exit status is that of the job, "
               "as with runnel run; the last line of output ends with a hash of all that happened. See runnel-sim(1).",
    };
    struct sim_options plan = {.cluster = {.ranks = 2, .seed = 1}};
    if (argc > 1 && strcmp(argv[1], "decode") == 0) {
        argv[1] = (char *)(uintptr_t) "runnel sim decode"; /* for messages about its options */
        return rnl_tool_sim_decode(argc - 1, argv + 1);
    }
    argp_err_exit_status = RNL_EXIT_USAGE;
    int e = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &plan);
    if (e != 0) { /* what is wrong with the options has been said, and has ended us */
        fprintf(stderr, "runnel: cannot read the options: %s\n", strerror(e));
        return RNL_EXIT_SYSTEM;
    }
    int status = run(&plan);
    free(plan.scenario);
    return status;
}
