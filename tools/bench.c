/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench.c - `runnel bench`: what is to be measured, and how it is shown. The measuring is in bench/, the processes are
 * in bench_jobs.c. */
#include "bench_jobs.h"
#include "launch.h"
#include "machine.h"
#include "peer.h"
#include "process.h"
#include "report.h"
#include "scenario.h"
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
    ATTACH_MS = 60000, /* a hundred and more processes may have to start */
    OPTION_TRANSPORT = 256,
    OPTION_API,
    OPTION_SIZE,
    OPTION_JSON,
    OPTION_MAX_TIME,
    OPTION_PLOT,
    OPTION_RANKS,
    OPTION_PEER,
    OPTION_PEER_PREFIX,
    OPTION_PEER_TIMEOUT,
    OPTION_NETNS,
    OPTION_MTU,
    OPTION_PROTECT,
    OPTION_CHECK,
    OPTION_CHILD,
    OPTION_PART
};
enum { PAIR_TESTS = 1u << BENCH_LATENCY | 1u << BENCH_RATE | 1u << BENCH_BANDWIDTH | 1u << BENCH_BANDWIDTH_ALONE };
enum { FRESH_TESTS = 1u << BENCH_FRESH | 1u << BENCH_FRESH_ALONE };
enum { MOST_WAITING = 1024 }; /* one datagram */
enum { STATUS_ABOVE = 2 };
enum { PAIR_SHARE = 5, RANKS = 16, MOST_RANKS = 256 };
static const uint64_t MOST_BYTES = 16 << 20;

struct bench_options {
    unsigned tests;     /* of the pairs: bit per enum bench_test */
    unsigned scenarios; /* bit per place in bench_scenarios: asked for by name, or by `all` */
    unsigned named;
    bool all;                 /* the word */
    unsigned apis, peer_apis; /* our own; of peers, in the tests of the pairs alone */
    uint64_t size[MAX_SIZES];
    unsigned sizes;
    bool json, check;
    double seconds;
    unsigned ranks; /* 0: not said */
    const char *plot, *child;
    unsigned part;
    struct bench_peers peers;
    double peer_seconds;
    struct bench_net net;
    bool netns, shm; /* shm: asked for by name */
};

static const struct argp_option options[] = {
    {"transport", OPTION_TRANSPORT, "NAME", 0,
     "what carries the messages: shm, shared memory (default), or udp, datagrams over loopback", 0},
    {"netns", OPTION_NETNS, NULL, 0, "udp between two network namespaces that are made for it (takes root)", 0},
    {"mtu", OPTION_MTU, "BYTES", 0, "of the interfaces between the namespaces (default 1500)", 0},
    {"protect", OPTION_PROTECT, "HOW", 0, "how our packets are protected: off, auth (default) or encrypt", 0},
    {"api", OPTION_API, "NAME[,NAME...]", 0,
     "fm (FM 2.x), fm1 (FM 1.1), native, am (AM-2), tcp (bare, with udp), all (default), or raw: the baselines alone",
     0},
    {"size", OPTION_SIZE, "N[,N...]", 0,
     "message sizes in bytes, K and M understood, at most 16M (default: 8 for latency, rate and peers, 64K,1M for "
     "bandwidth, 4K,64K,1M,4M for fresh, 16,1K,64K for layered)",
     0},
    {"json", OPTION_JSON, NULL, 0, "one JSON object a row on standard output", 0},
    {"check", OPTION_CHECK, NULL, 0,
     "end with 2 if a row of ours is more than 5 % better than its baseline, which then is none", 0},
    {"max-time", OPTION_MAX_TIME, "SECONDS", 0, "measure for about that long (default 20)", 0},
    {"plot", OPTION_PLOT, "DIR", 0,
     "also write latency.png, bandwidth.png, layered.png and am-rate.png to DIR (needs gnuplot)", 0},
    {"ranks", OPTION_RANKS, "N", 0, "processes at the barrier (default 16)", 0},
    {"peer", OPTION_PEER, "NAME[,NAME...]", 0,
     "measure these beside, in the same trials: openmpi, mpich, ucx, libfabric (scripts/setup peers installs them)", 0},
    {"peer-prefix", OPTION_PEER_PREFIX, "NAME=DIR", 0, "that peer is the one installed under DIR", 0},
    {"peer-timeout", OPTION_PEER_TIMEOUT, "SECONDS", 0,
     "how long a peer may take to start, or to measure a size once (default 60)", 0},
    {"child", OPTION_CHILD, "PATH", OPTION_HIDDEN, NULL, 0},
    {"part", OPTION_PART, "N", OPTION_HIDDEN, NULL, 0},
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

static void parse_apis(struct argp_state *state, struct bench_options *q, const char *list)
{
    char word[32];
    q->apis = 0;
    while (next_word(&list, word, sizeof word)) {
        unsigned a = BENCH_RAW;
        while (a < BENCH_MEMCPY && strcmp(word, bench_api_name(a)))
            a++;
        if (!strcmp(word, "all"))
            q->apis = ~0u;
        else if (a < BENCH_MEMCPY)
            q->apis |= 1u << a;
        else
            argp_error(state, "there is no interface '%s': --api takes am, fm, fm1, native, tcp, raw or all", word);
    }
}

static void parse_sizes(struct argp_state *state, struct bench_options *q, const char *list)
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

static void parse_scenario(struct argp_state *state, struct bench_options *q, const char *name)
{
    for (unsigned i = 0; bench_scenarios[i]; i++)
        if (!strcmp(name, bench_scenarios[i]->name)) {
            q->scenarios |= 1u << i;
            q->named |= 1u << i;
            return;
        }
    argp_error(state,
               "there is no test '%s': latency, waiting, rate, bandwidth, fresh, peers, idle, wake, barrier, layered, "
               "startup, memory, loss, am, put, rpc or all",
               name);
}

/* A folder for a peer that is not measured. */
static void check_prefixes(struct argp_state *state, const struct bench_options *q)
{
    unsigned wanted = 0;
    for (unsigned a = BENCH_OWN; a < BENCH_APIS; a++)
        if (q->peer_apis & 1u << a)
            wanted |= 1u << bench_peer_family(a);
    for (unsigned f = 0; f < BENCH_PEER_FAMILIES; f++)
        if (q->peers.prefix[f] && !(wanted & 1u << f))
            argp_error(state, "--peer-prefix says where %s is, but --peer does not ask for it: give --peer %s too",
                       bench_peer_name(f), bench_peer_name(f));
}

/* Options that mean nothing to what was asked for are errors; `all` leaves out what they exclude. */
static void check(struct argp_state *state, struct bench_options *q)
{
    bool plots = false, sizes = false, ranks = false, peers = false;
    unsigned unnamed = 0; /* peers */
    char text[1024];
    if (q->shm && q->netns)
        argp_error(state, "--netns is for datagrams, and --transport shm for shared memory: give one of the two");
    q->net.udp |= q->netns;
    if ((q->net.mtu || *q->net.protect) && !q->net.udp)
        argp_error(state, "--mtu and --protect are for datagrams: give --transport udp or --netns too");
    if (q->net.mtu && !q->netns)
        argp_error(state, "--mtu is for the interfaces that --netns makes: give that too");
    if (!q->net.mtu)
        q->net.mtu = q->netns ? BENCH_NET_ETHERNET_MTU : BENCH_NET_LOOPBACK_MTU;
    if (!q->net.udp) {
        if (q->tests & 1u << BENCH_WAITING && !q->all)
            argp_error(state, "waiting is for --transport udp; over shared memory wake times sleepers");
        if (q->apis == 1u << BENCH_TCP)
            argp_error(state, "--api tcp is for --transport udp");
        q->tests &= ~(1u << BENCH_WAITING);
        q->apis &= ~(1u << BENCH_TCP);
    }
    if (q->apis == 1u << BENCH_AM && q->tests)
        argp_error(state, "--api am is for the test am, which has figures of its own");
    if (!q->tests && !q->scenarios)
        q->tests = q->net.udp ? PAIR_TESTS | 1u << BENCH_WAITING : PAIR_TESTS;
    for (unsigned i = 0; bench_scenarios[i]; i++) {
        const struct bench_scenario *scenario = bench_scenarios[i];
        if (!(q->scenarios & 1u << i))
            continue;
        const char *why = NULL;
        if (!(q->apis & scenario->apis))
            why = "not measured over the interfaces that --api names; runnel-bench(1) says over which";
        else if (scenario->netns && !q->netns)
            why = "measured between namespaces: give --netns too";
        else if (scenario->shm && q->net.udp)
            why = "measured on one host: leave out --transport udp and --netns";
        if (why) {
            if (q->named & 1u << i)
                argp_error(state, "%s is %s", scenario->name, why);
            q->scenarios &= ~(1u << i);
            continue;
        }
        if (scenario->of_peers && !(q->named & 1u << i) &&
            bench_peers_present(&q->peers, scenario->peers, text, sizeof text)) {
            q->scenarios &= ~(1u << i); /* `all` needs nothing that is not there */
            continue;
        }
        plots |= scenario->plots;
        ranks |= scenario->ranks;
        sizes |= scenario->sizes;
        peers |= scenario->peers && !scenario->of_peers;
        unnamed |= scenario->of_peers ? scenario->peers : 0;
    }
    if (q->plot && !plots && !(q->tests & (1u << BENCH_LATENCY | 1u << BENCH_BANDWIDTH)))
        argp_error(state, "--plot draws latency, bandwidth, layered and am: ask for one of them too");
    if (q->sizes && !sizes && !q->tests)
        argp_error(state, "--size is for latency, rate, bandwidth, fresh, peers and layered: ask for one of them too");
    if (q->ranks && !ranks)
        argp_error(state, "--ranks is for barrier: ask for it too");
    if (!q->ranks)
        q->ranks = RANKS;
    check_prefixes(state, q);
    if (q->peer_apis && !q->tests && !peers)
        argp_error(state, "--peer is for latency, rate, bandwidth, fresh and put: ask for one of them too");
    q->peer_apis |= unnamed;
}

static void parse_peer(struct argp_state *state, struct bench_options *q, int key, const char *arg)
{
    char text[512], *end;
    int e = 0;
    if (key == OPTION_PEER)
        e = bench_peers_parse(arg, &q->peer_apis, text, sizeof text);
    else if (key == OPTION_PEER_PREFIX)
        e = bench_peers_prefix(&q->peers, arg, text, sizeof text);
    else {
        q->peer_seconds = strtod(arg, &end);
        if (end == arg || *end || !(q->peer_seconds >= 0.1 && q->peer_seconds <= 3600))
            argp_error(state, "--peer-timeout %s: give seconds from 0.1 to 3600", arg);
    }
    if (e)
        argp_error(state, "%s", text);
}

static void parse_protect(struct argp_state *state, struct bench_options *q, const char *arg)
{
    static const char *const word[][2] = {
        {"off", "nothing-measure-only"}, {"auth", "authenticate"}, {"encrypt", "encrypt"}};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (!strcmp(arg, word[i][0])) {
            snprintf(q->net.protect, sizeof q->net.protect, "%s", word[i][1]);
            return;
        }
    argp_error(state, "--protect %s: off, auth or encrypt", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct bench_options *q = state->input;
    char *end;
    switch (key) {
    case OPTION_TRANSPORT:
        if (strcmp(arg, "shm") && strcmp(arg, "udp"))
            argp_error(state, "there is no transport '%s': this release has shm and udp", arg);
        q->net.udp = !strcmp(arg, "udp");
        q->shm = !q->net.udp;
        break;
    case OPTION_NETNS:
        q->netns = true;
        break;
    case OPTION_MTU:
        q->net.mtu = (uint32_t)strtoul(arg, &end, 10);
        if (*arg < '0' || *arg > '9' || *end || q->net.mtu < BENCH_NET_LEAST_MTU || q->net.mtu > 65535)
            argp_error(state, "--mtu %s: give bytes from %d to 65535", arg, BENCH_NET_LEAST_MTU);
        break;
    case OPTION_PROTECT:
        parse_protect(state, q, arg);
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
    case OPTION_CHECK:
        q->check = true;
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
    case OPTION_RANKS:
        q->ranks = (unsigned)strtoul(arg, &end, 10);
        if (*arg < '0' || *arg > '9' || *end || q->ranks < 2 || q->ranks > MOST_RANKS)
            argp_error(state, "--ranks %s: a barrier has 2 to %d processes", arg, MOST_RANKS);
        break;
    case OPTION_PEER:
    case OPTION_PEER_PREFIX:
    case OPTION_PEER_TIMEOUT:
        parse_peer(state, q, key, arg);
        break;
    case OPTION_CHILD:
        q->child = arg;
        break;
    case OPTION_PART:
        q->part = (unsigned)strtoul(arg, NULL, 10);
        break;
    case ARGP_KEY_ARG:
        if (!strcmp(arg, "latency"))
            q->tests |= 1u << BENCH_LATENCY;
        else if (!strcmp(arg, "rate"))
            q->tests |= 1u << BENCH_RATE;
        else if (!strcmp(arg, "bandwidth"))
            q->tests |= 1u << BENCH_BANDWIDTH | 1u << BENCH_BANDWIDTH_ALONE;
        else if (!strcmp(arg, "fresh"))
            q->tests |= FRESH_TESTS;
        else if (!strcmp(arg, "waiting"))
            q->tests |= 1u << BENCH_WAITING;
        else if (!strcmp(arg, "all"))
            q->tests = PAIR_TESTS | FRESH_TESTS | 1u << BENCH_WAITING, q->scenarios = ~0u, q->all = true;
        else
            parse_scenario(state, q, arg);
        break;
    case ARGP_KEY_END:
        check(state, q);
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

static unsigned apis_for(const struct bench_options *q, enum bench_test test, uint64_t bytes)
{
    unsigned apis = (q->apis | q->peer_apis) & BENCH_OF_PAIRS;
    if (test == BENCH_WAITING)
        apis &= 1u << BENCH_NATIVE | 1u << BENCH_FM | 1u << BENCH_TCP;
    return bytes > bench_api_fm1.most_bytes ? apis & ~(1u << BENCH_FM1) : apis;
}

static int make_plan(const struct bench_options *q, const struct bench_wish *w, struct bench_plan *p)
{
    enum { SMALL, LARGE, FRESH };
    static const struct {
        unsigned sizes;
        uint64_t size[4];
    } default_sizes[] = {
        [SMALL] = {1, {8}}, [LARGE] = {2, {64 << 10, 1 << 20}}, [FRESH] = {4, {4 << 10, 64 << 10, 1 << 20, 4 << 20}}};
    static const enum bench_test tests[] = {BENCH_LATENCY, BENCH_RATE,        BENCH_BANDWIDTH, BENCH_BANDWIDTH_ALONE,
                                            BENCH_FRESH,   BENCH_FRESH_ALONE, BENCH_WAITING};
    int e = 0;
    p->udp = q->net.udp;
    for (unsigned t = 0; t < sizeof tests / sizeof *tests; t++) {
        int of = 1u << tests[t] & FRESH_TESTS                                       ? FRESH
                 : tests[t] == BENCH_BANDWIDTH || tests[t] == BENCH_BANDWIDTH_ALONE ? LARGE
                                                                                    : SMALL;
        const uint64_t *size = q->sizes ? q->size : default_sizes[of].size;
        unsigned sizes = q->sizes ? q->sizes : default_sizes[of].sizes;
        if (!(q->tests & 1u << tests[t]))
            continue;
        for (unsigned i = 0; i < sizes && e == 0; i++)
            if (tests[t] != BENCH_WAITING || size[i] <= MOST_WAITING)
                e = bench_plan_add(p, tests[t], size[i], apis_for(q, tests[t], size[i]), true);
        if (!q->plot || q->sizes)
            continue;
        if (tests[t] == BENCH_LATENCY)
            for (uint64_t bytes = 8; bytes <= 64 << 10 && e == 0; bytes *= 2)
                e = bench_plan_add(p, tests[t], bytes, apis_for(q, tests[t], bytes), false);
        if (tests[t] == BENCH_BANDWIDTH)
            for (uint64_t bytes = 64; bytes <= 4 << 20 && e == 0; bytes *= 2)
                e = bench_plan_add(p, tests[t], bytes, apis_for(q, tests[t], bytes), false);
    }
    for (unsigned i = 0; bench_scenarios[i] && e == 0; i++)
        if (q->scenarios & 1u << i)
            e = bench_scenarios[i]->plan(p, w);
    return e;
}

static const char *measuring; /* what show_progress speaks of */

static void show_progress(void *arg, double seconds_left)
{
    static uint64_t last;
    uint64_t now = bench_now_ns();
    (void)arg;
    if (now - last > 500000000) {
        last = now;
        fprintf(stderr, "\rmeasuring %s, %.0f s left ", measuring, seconds_left);
    }
}

/* A trial can be there without one value: each repetition in it was interrupted. */
static bool has_value(const struct bench_unit *u)
{
    for (size_t i = 0; i < u->trials; i++) {
        for (unsigned v = 0; v < BENCH_VARIANTS; v++)
            if (!isnan(u->trial[i].baseline[v]))
                return true;
        for (unsigned a = 0; a < BENCH_APIS; a++)
            if (!isnan(u->trial[i].value[a]))
                return true;
    }
    return false;
}

/* What the rows do not say. False if there is nothing else to say: nothing was measured. */
static bool remarks(FILE *f, const struct bench_options *q, const struct bench_plan *p)
{
    unsigned flipped = 0, preempted = 0, empty = 0, no_fm1 = 0;
    for (size_t i = 0; i < p->units; i++) {
        flipped += p->unit[i].flipped;
        preempted += p->unit[i].preempted;
        const struct bench_unit *u = &p->unit[i];
        empty += !has_value(u);
        bool with_fm1 = q->apis & 1u << BENCH_FM1 && (!u->scenario || u->scenario->apis & 1u << BENCH_FM1);
        no_fm1 += u->shown && u->bytes > bench_api_fm1.most_bytes && with_fm1;
    }
    if (preempted)
        fprintf(f, "%u repetitions were interrupted by other programs and run again.\n", preempted);
    if (flipped)
        fprintf(f, "%u trials were thrown away: the cores' placement changed meanwhile.\n", flipped);
    if (empty)
        fprintf(f, "%u of %zu measurements had no undisturbed turn: --max-time %g is short for them.\n", empty,
                p->units, q->seconds);
    if (no_fm1)
        fprintf(f, "FM 1.1 was left out above 1M, its longest message.\n");
    return empty < p->units;
}

/* Names the rows that are better than their baseline; returns how many. */
static unsigned name_above(FILE *f, const struct bench_row *row, size_t n)
{
    unsigned above = 0;
    for (size_t i = 0; i < n; i++) {
        char bytes[24];
        if (!bench_row_above(&row[i]))
            continue;
        bench_bytes_text(row[i].bytes, bytes);
        fprintf(f, "%s %s, %s, %s: %.2f of its baseline, so the baseline is not the best that this machine allows.\n",
                bench_test_name(row[i].test), bytes, bench_api_name(row[i].api), bench_placement_name(row[i].placement),
                row[i].ratio);
        above++;
    }
    return above;
}

static int show(const struct bench_options *q, const struct bench_plan *p, bool one_core, const char *machine)
{
    char text[512];
    struct bench_row *row;
    size_t n;
    if (bench_rows(p, one_core, &row, &n))
        return complain("no memory for the results");
    if (q->json) {
        bench_report_json(stdout, row, n);
    } else {
        printf("%s\n", machine);
        if (q->netns)
            printf("over udp, between two network namespaces\n");
        else if (q->net.udp)
            printf("over udp, on the loopback interface\n");
        fputc('\n', stdout);
        bench_report_table(stdout, row, n);
        fputc('\n', stdout);
    }
    bench_report_peers(q->json ? stderr : stdout, p);
    int status = 0;
    if (!remarks(q->json ? stderr : stdout, q, p)) {
        complain(
            "nothing was measured: other programs got in between each time. Give a longer --max-time, or stop them");
        status = EX_TEMPFAIL;
    }
    if (name_above(q->json ? stderr : stdout, row, n) && q->check && status == 0)
        status = STATUS_ABOVE;
    if (q->plot && bench_plot(q->plot, row, n, q->json ? stderr : stdout, text, sizeof text))
        status = complain(text);
    if (fflush(stdout) || ferror(stdout))
        status = complain("could not write the results: is the disk full or the pipe closed?");
    free(row);
    return status;
}

/* The pairs (!scenario) or one scenario: with processes of its own, which are gone when it returns. */
static int measure(struct bench_options *q, const struct bench_wish *w, struct bench_plan *p,
                   const struct bench_scenario *scenario, double seconds, bool *one_core)
{
    struct bench_area *a;
    struct bench_jobs jobs;
    int fd, e = bench_area_create(&a, &fd);
    if (e) {
        fprintf(stderr, "runnel bench: no shared memory (memfd_create): %s\n", strerror(-e));
        return 1;
    }
    *one_core = bench_choose_cpus(a->cpu) < 2;
    a->one_core = *one_core;
    a->net = q->net;
    a->ns_per_tick = bench_ns_per_tick();
    for (size_t i = 0; i < p->units; i++)
        if (p->unit[i].bytes > a->most_bytes)
            a->most_bytes = p->unit[i].bytes;
    for (unsigned api = BENCH_RAW + 1; api < BENCH_TCP && !scenario; api++)
        if (q->apis & 1u << api)
            bench_assign_role(a, api, bench_api_name(api), 2, 0);
    if (scenario && scenario->assign_roles)
        scenario->assign_roles(a, w);
    unsigned peer_apis = q->peer_apis & (scenario ? scenario->peers : BENCH_OF_PAIRS);
    unsigned bare =
        scenario ? (scenario->sockets ? 1u << BENCH_RAW : 0) : (q->apis & 1u << BENCH_TCP) | 1u << BENCH_RAW;
    e = bench_jobs_start(&jobs, a, fd, bare, p->text, sizeof p->text);
    if (e == 0)
        e = bench_peers_start(&q->peers, a, fd, peer_apis, p->text, sizeof p->text);
    struct bench_run run = {.area = a,
                            .area_path = jobs.area_path,
                            .plan = p,
                            .alive = bench_jobs_alive,
                            .arg = &jobs,
                            .peer_ms = (unsigned)(q->peer_seconds * 1e3),
                            .drop = bench_peers_drop,
                            .peers = &q->peers};
    measuring = scenario ? scenario->name : "pairs";
    bool terminal = isatty(STDERR_FILENO);
    if (terminal)
        run.progress = show_progress;
    for (unsigned pair = 0; pair < BENCH_MAX_PAIRS && e == 0; pair++)
        if (pair == BENCH_RAW || a->pair[pair].role[0] || bare & 1u << pair)
            e = bench_attached(&run, pair, ATTACH_MS);
        else if (peer_apis & 1u << pair)
            e = bench_attached(&run, pair, run.peer_ms);
    if (e == 0) {
        run.end_ns = bench_now_ns() + (uint64_t)(seconds * 1e9);
        size_t n;
        struct bench_unit *first = scenario ? bench_scenario_units(p, scenario, &n) : NULL;
        e = scenario ? bench_scenario_run(&run, scenario, first, n) : bench_run(&run);
    }
    bench_peers_end(&q->peers, e != 0);
    bench_jobs_end(&jobs, e != 0);
    if (terminal)
        fprintf(stderr, "\r%40s\r", "");
    bench_area_free(a, fd);
    return e ? complain(p->text) : 0;
}

static int measure_all(struct bench_options *q, const struct bench_wish *w, struct bench_plan *p, bool *one_core)
{
    double shares = q->tests ? PAIR_SHARE : 0;
    for (unsigned i = 0; bench_scenarios[i]; i++)
        shares += q->scenarios & 1u << i ? bench_scenarios[i]->share : 0;
    int status = q->tests ? measure(q, w, p, NULL, q->seconds * PAIR_SHARE / shares, one_core) : 0;
    for (unsigned i = 0; bench_scenarios[i] && status == 0; i++)
        if (q->scenarios & 1u << i)
            status = measure(q, w, p, bench_scenarios[i], q->seconds * bench_scenarios[i]->share / shares, one_core);
    return status;
}

int rnl_tool_bench(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .args_doc = "[latency|waiting|rate|bandwidth|fresh|peers|idle|wake|barrier|layered|startup|memory|loss|am|put|"
                    "rpc|all]...",
        .doc = "Measures messages between processes of this host beside the fastest that the machine allows. "
               "Without a test: latency, rate and bandwidth.\v"
               "Rows are medians; ratio is value / baseline of the same trial. See runnel-bench(1).",
    };
    struct bench_options q = {.apis = ~0u, .seconds = 20, .peer_seconds = 60};
    struct bench_plan plan = {.calm = 1};
    char machine[256], text[1024];
    if (argp_parse(&argp, argc, argv, 0, NULL, &q))
        return EX_USAGE;
    if (q.child)
        return bench_jobs_child(q.child, q.part);
    q.apis &= ((1u << BENCH_OWN) - 1) & ~(1u << BENCH_RAW);
    if (bench_peers_present(&q.peers, q.peer_apis, text, sizeof text))
        return complain(text);
    if (q.plot && !bench_plot_possible())
        return complain(
            "--plot needs gnuplot, which is not in PATH; install it (Debian: gnuplot-nox) or leave --plot out");
    if (q.plot && bench_plot_folder(q.plot, plan.text, sizeof plan.text))
        return complain(plan.text);
    bench_machine_line(machine, sizeof machine);
    const struct bench_wish wish = {.apis = q.apis,
                                    .size = q.size,
                                    .sizes = q.sizes,
                                    .ranks = q.ranks,
                                    .plot = q.plot != NULL,
                                    .udp = q.net.udp,
                                    .netns = q.netns,
                                    .peers = q.peer_apis};
    bool one_core = false;
    struct bench_wires *wires = NULL;
    if (make_plan(&q, &wish, &plan))
        return complain("no memory for the plan");
    for (unsigned i = 0; i < 2; i++)
        snprintf(q.net.address[i], sizeof q.net.address[i], "127.0.0.1");
    if (*q.net.protect)
        setenv("RNL_PROTECT", q.net.protect, 1); /* for the launchers, which hand it on */
    if (q.netns && bench_net_plug(&q.net, &wires, text, sizeof text)) {
        bench_plan_free(&plan);
        return complain(text);
    }
    int status = measure_all(&q, &wish, &plan, &one_core);
    bench_net_unplug(wires);
    if (status == 0)
        status = show(&q, &plan, one_core, machine);
    bench_plan_free(&plan);
    return status;
}
