/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_options.c - the command line of `runnel bench`. */
#include "bench_options.h"
#include "report.h"
#include "scenario.h"
#include "tool.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
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
enum { RANKS = 16, MOST_RANKS = 256 };
static const uint64_t MOST_BYTES = 16 << 20;

static const struct argp_option options[] = {
    {"transport", OPTION_TRANSPORT, "NAME", 0,
     "what carries the messages: shm, shared memory (default); udp, datagrams over loopback; xdp or i8255x, datagrams "
     "past "
     "the kernel between two network namespaces",
     0},
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
     "also write latency.png, bandwidth.png, layered.png, mpi.png and am-rate.png to DIR (needs gnuplot)", 0},
    {"ranks", OPTION_RANKS, "N", 0, "processes at the barrier (default 16)", 0},
    {"peer", OPTION_PEER, "NAME[,NAME...]", 0,
     "measure these beside, in the same trials: openmpi, mpich, ucx, libfabric, corosync (scripts/setup peers installs "
     "them); "
     "and what stands on Runnel: provider, ompi-rnl, mpich-rnl",
     0},
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
        else if (q->sizes == BENCH_MAX_SIZES)
            argp_error(state, "--size: more than %d sizes; give fewer", BENCH_MAX_SIZES);
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
    argp_error(
        state,
        "there is no test '%s': latency, waiting, rate, bandwidth, fresh, mpi, peers, idle, wake, barrier, layered, "
        "startup, memory, loss, am, sweep, sweep-loss, put, rpc, panda, orca or all",
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

/* For the test mpi: all that is here, of MPICH on the provider only a build that may have been made for libfabric. */
static void choose_mpi(struct bench_options *q)
{
    static const unsigned peers[] = {BENCH_OPENMPI,  BENCH_OPENMPI_UCX, BENCH_MPICH,    BENCH_UCX_TAG,
                                     BENCH_PROVIDER, BENCH_OPENMPI_RNL, BENCH_MPICH_RNL};
    char text[1024];
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        if ((peers[i] != BENCH_MPICH_RNL || q->peers.prefix[BENCH_PEER_MPICH]) &&
            bench_peers_present(&q->peers, 1u << peers[i], text, sizeof text) == 0)
            q->peer_apis |= 1u << peers[i];
}

/* Bit per scenario that is measured past the kernel only. */
static unsigned scenarios_past(void)
{
    unsigned past = 0;
    for (unsigned i = 0; bench_scenarios[i]; i++)
        past |= bench_scenarios[i]->past ? 1u << i : 0;
    return past;
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
    const unsigned past = scenarios_past();
    const bool sweeps = q->named && !(q->named & ~past) && !q->tests;
    if (*q->net.via && !sweeps && (q->apis & (q->apis - 1) || q->apis == 1u << BENCH_TCP || q->named))
        argp_error(state,
                   "--transport %s is for pairs of one interface, since one job has the queue or the cards: give "
                   "--api fm, or another, or ask for the tests sweep and sweep-loss alone",
                   q->net.via);
    if (*q->net.via)
        q->scenarios &= sweeps ? past : 0;
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
        else if (scenario->past && !*q->net.via)
            why = "measured past the kernel: give --transport xdp or i8255x too";
        else if (scenario->shm && q->net.udp)
            why = "measured on one host: leave out --transport udp and --netns";
        if (why) {
            if (q->named & 1u << i)
                argp_error(state, "%s is %s", scenario->name, why);
            q->scenarios &= ~(1u << i);
            continue;
        }
        const char *missing = scenario->missing ? scenario->missing() : NULL;
        if (missing && q->named & 1u << i)
            argp_error(state, "%s needs %s", scenario->name, missing);
        if (missing) {
            q->scenarios &= ~(1u << i); /* as below */
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
    if (q->mpi)
        choose_mpi(q);
    if (q->peer_apis & BENCH_ON_PROVIDER && q->net.udp)
        argp_error(state, "provider, ompi-rnl, mpich-rnl and the test mpi are measured on one host: leave out "
                          "--transport udp and --netns");
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
        q->net.via[0] = '\0';
        q->shm = !strcmp(arg, "shm");
        q->net.udp = !q->shm;
        if (!strcmp(arg, "xdp") || !strcmp(arg, "i8255x")) {
            snprintf(q->net.via, sizeof q->net.via, "%s", arg);
            q->netns = true;
        } else if (!q->shm && strcmp(arg, "udp")) {
            argp_error(state, "there is no transport '%s': this release has shm, udp, xdp and i8255x", arg);
        }
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
            q->tests |= BENCH_FRESH_TESTS;
        else if (!strcmp(arg, "waiting"))
            q->tests |= 1u << BENCH_WAITING;
        else if (!strcmp(arg, "mpi"))
            q->tests |= PAIR_TESTS | BENCH_FRESH_TESTS, q->mpi = true;
        else if (!strcmp(arg, "all"))
            q->tests = PAIR_TESTS | BENCH_FRESH_TESTS | 1u << BENCH_WAITING, q->scenarios = ~0u, q->all = true;
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

int bench_options_parse(int argc, char **argv, struct bench_options *q)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .args_doc = "[latency|waiting|rate|bandwidth|fresh|mpi|peers|idle|wake|barrier|layered|startup|memory|loss|am|"
                    "sweep|sweep-loss|put|"
                    "rpc|panda|orca|all]...",
        .doc = "Measures messages between processes of this host beside the fastest that the machine allows. "
               "Without a test: latency, rate and bandwidth.\v"
               "Rows are medians; ratio is value / baseline of the same trial. See runnel-bench(1).",
    };
    *q = (struct bench_options){.apis = ~0u, .seconds = 20, .peer_seconds = 60};
    if (rnl_tool_find("adapters/ofi/librnl-fi.so", "libfabric/librnl-fi.so", q->peers.provider))
        *strrchr(q->peers.provider, '/') = '\0'; /* its folder */
    else
        *q->peers.provider = '\0';
    return argp_parse(&argp, argc, argv, 0, NULL, q) ? EX_USAGE : 0;
}
