/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - `runnel run`: reads the options, hands over to launcher/launcher.c. */
#include "job/proto.h"
#include "launcher/copy_measure.h"
#include "launcher/hosts.h"
#include "launcher/launcher.h"
#include "launcher/spawn.h"
#include "meet/daemon.h"
#include "meet/node_key.h"
#include "tool.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_BIND = 256,
    OPT_TAG,
    OPT_TIMEOUT,
    OPT_KEEP_GOING,
    OPT_MPI,
    OPT_HOSTS,
    OPT_HOSTFILE,
    OPT_LAUNCHER,
    OPT_AGENT,
    OPT_FAN_OUT,
    OPT_TRANSPORT,
    OPT_STOPPED_AFTER,
    OPT_SILENCE,
    OPT_WAIT_FOR,
    OPT_RENDEZVOUS,
    OPT_ADDRESS
};
static const double longest_timeout_s = 1e9;
enum { FAN_OUT = 16, SILENCE_LEAST_MS = 100 /* as of rnl_options */, SILENCE_MOST_MS = 86400 * 1000 };

/* argp sorts by the last number, then by name. */
static const struct argp_option options[] = {
    {"ranks", 'n', "N", 0, "Start N processes (default: as many as there are cores to run on)", 0},
    {"bind", OPT_BIND, "WHERE", 0, "core: bind each process to one core; none: leave it to the system (default)", 0},
    {"transport", OPT_TRANSPORT, "WHAT", 0,
     "auto: shared memory between processes of one host (default); udp: datagrams between all of them; xdp: as auto, "
     "and datagrams to other hosts go by AF_XDP where they can; i8255x: as auto, and they go by cards of that family "
     "that "
     "ranks drive",
     0},
    {"tag-output", OPT_TAG, NULL, 0, "Put the rank before each line of output", 0},
    {"timeout", OPT_TIMEOUT, "SECONDS", 0, "End the job after this time, with status 124", 0},
    {"stopped-after", OPT_STOPPED_AFTER, "SECONDS", 0, "Kill a process that has been stopped for this time", 0},
    {"silence", OPT_SILENCE, "SECONDS", 0, "A process of another host that is silent for so long is dead (default: 30)",
     0},
    {"keep-going", OPT_KEEP_GOING, NULL, 0, "Let the others go on when a process fails", 0},
    {"mpi", OPT_MPI, NULL, 0, "The program is one of MPI, though it may not look like it: a script", 0},
    {"env", 'x', "NAME[=VALUE]", 0, "Pass this variable of the environment (give it this value first)", 0},
    {"hosts", OPT_HOSTS, "HOST[:N],...", 0, "Start the processes on these hosts, N each, in this order", 1},
    {"host", 'H', "HOSTS", OPTION_HIDDEN, NULL, 1},
    {"hostfile", OPT_HOSTFILE, "FILE", 0, "The same from a file, a host a line", 2},
    {"launcher", OPT_LAUNCHER, "HOW", 0,
     "ssh: reach hosts over ssh (default); netns: hosts are network namespaces of this machine", 3},
    {"agent", OPT_AGENT, "PATH", 0, "Where the runnel command is on the hosts (default: where it is here)", 3},
    {"fan-out", OPT_FAN_OUT, "N", 0, "Start the agents of so many hosts at a time (default: 16)", 3},
    {"wait-for", OPT_WAIT_FOR, "N", 0, "Start nothing: wait for N processes that join by themselves", 4},
    {"rendezvous", OPT_RENDEZVOUS, "FILE", 0, "... by this file, which is made and removed (RUNNEL_RENDEZVOUS=FILE)",
     4},
    {"rendezvous-address", OPT_ADDRESS, "ADDRESS", 0, "... at this address of this host (default: at all)", 4},
    {"np", 'n', "N", OPTION_HIDDEN, NULL, 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct options {
    struct rnl_launch job;
    struct rnl_hosts hosts;
    bool file; /* they come from a file */
};

/* A whole number from 1 to `most`, or 0 if it is none. */
static uint32_t number(const char *text, long most)
{
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && n <= most ? (uint32_t)n : 0;
}

static uint32_t number_of_ranks(const char *text, struct argp_state *state)
{
    const uint32_t n = number(text, RNL_JOB_RANKS_MAX);
    if (strcmp(text, "p") == 0)
        argp_error(state, "the number of processes is given as -n N, not -np N");
    else if (n == 0 && text[strspn(text, "-0123456789")] != '\0')
        argp_error(state, "-n takes a number of processes, not '%s'", text);
    else if (n == 0)
        argp_error(state, "-n %s: a job has 1 to %d processes, on all its hosts together", text, RNL_JOB_RANKS_MAX);
    return n;
}

static uint64_t seconds(const char *option, const char *text, struct argp_state *state)
{
    char *end;
    const double s = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(s) || s <= 0 || s > longest_timeout_s)
        argp_error(state, "%s takes a number of seconds above 0, not '%s'", option, text);
    return (uint64_t)(s * 1e9) + 1;
}

/* Whether the argument is the first of two words, and not the second. */
static bool is_first(const char *option, const char *text, const char *first, const char *second,
                     struct argp_state *state)
{
    if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
        argp_error(state, "%s takes %s or %s, not '%s'", option, first, second, text);
    return strcmp(text, first) == 0;
}

/* The environment is passed on as it is: a name alone only has to exist. */
static void variable(const char *text, struct argp_state *state)
{
    const char *equals = strchr(text, '=');
    if (text[0] == '\0' || equals == text)
        argp_error(state, "-x takes NAME or NAME=VALUE, not '%s'", text);
    else if (!equals && !getenv(text))
        argp_error(state, "-x %s: there is no such variable in the environment; give it a value with -x %s=VALUE", text,
                   text);
    else if (equals && putenv((char *)(uintptr_t)text) != 0)
        argp_failure(state, RNL_EXIT_SYSTEM, errno, "-x %s", text);
}

static void hosts(struct options *all, const char *text, bool file, struct argp_state *state)
{
    char sentence[400];
    if (all->file || (file && all->hosts.n > 0))
        argp_error(state,
                   "--hosts and --hostfile both name the hosts, or --hostfile stands there twice: give one of them");
    if ((file ? rnl_hosts_file : rnl_hosts_read)(&all->hosts, text, sentence, sizeof sentence) < 0)
        argp_error(state, "%s: %s", file ? "--hostfile" : "--hosts", sentence);
    all->file = file;
}

static void check(const struct options *all, struct argp_state *state)
{
    const struct rnl_launch *job = &all->job;
    if (job->expected != (job->rendezvous_file != NULL))
        argp_error(state, "--wait-for N and --rendezvous FILE belong together: give both");
    if (job->expected && (all->hosts.n > 0 || job->bind_core || job->argv))
        argp_error(state, "--wait-for starts nothing: leave out the program, --hosts and --bind");
    if (job->start == RNL_START_NETNS && all->hosts.n == 0)
        argp_error(state, "--launcher netns needs the namespaces that are the hosts: --hosts or --hostfile");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *all = state->input;
    struct rnl_launch *job = &all->job;
    switch (key) {
    case OPT_WAIT_FOR:
        job->expected = true;
        job->size = number_of_ranks(arg, state);
        break;
    case 'n':
        job->size = number_of_ranks(arg, state);
        break;
    case OPT_RENDEZVOUS:
        job->rendezvous_file = arg;
        break;
    case OPT_ADDRESS:
        job->rendezvous_address = arg;
        break;
    case OPT_BIND:
        job->bind_core = is_first("--bind", arg, "core", "none", state);
        break;
    case OPT_TRANSPORT:
        job->rings = strcmp(arg, "xdp") == 0;
        job->cards = strcmp(arg, "i8255x") == 0;
        job->datagrams = strcmp(arg, "udp") == 0;
        if (!job->rings && !job->cards && !job->datagrams && strcmp(arg, "auto") != 0)
            argp_error(state, "--transport takes auto, udp, xdp or i8255x, not '%s'", arg);
        break;
    case OPT_TAG:
        job->tag = true;
        break;
    case OPT_TIMEOUT:
        job->timeout_ns = seconds("--timeout", arg, state);
        job->timeout_text = arg;
        break;
    case OPT_MPI:
        job->mpi = true;
        break;
    case OPT_KEEP_GOING:
        job->keep_going = true;
        break;
    case OPT_HOSTS:
    case 'H':
        hosts(all, arg, false, state);
        break;
    case OPT_HOSTFILE:
        hosts(all, arg, true, state);
        break;
    case OPT_LAUNCHER:
        job->start = is_first("--launcher", arg, "ssh", "netns", state) ? RNL_START_SSH : RNL_START_NETNS;
        break;
    case OPT_AGENT:
        if (arg[0] != '/')
            argp_error(state, "--agent takes a path from the root, not '%s'", arg);
        job->agent = arg;
        break;
    case OPT_FAN_OUT:
        job->fan_out = number(arg, RNL_HOSTS_MAX);
        if (job->fan_out == 0)
            argp_error(state, "--fan-out takes a number of hosts, 1 to %d, not '%s'", RNL_HOSTS_MAX, arg);
        break;
    case OPT_STOPPED_AFTER:
        job->stopped_after_ns = seconds("--stopped-after", arg, state);
        break;
    case OPT_SILENCE: {
        const uint64_t ms = seconds("--silence", arg, state) / 1000000;
        if (ms < SILENCE_LEAST_MS || ms > SILENCE_MOST_MS)
            argp_error(state, "--silence takes seconds from %.1f to %d, not '%s'", SILENCE_LEAST_MS / 1e3,
                       SILENCE_MOST_MS / 1000, arg);
        job->silence_ms = (uint32_t)ms;
        break;
    }
    case 'x':
        variable(arg, state);
        break;
    case ARGP_KEY_ARG: /* the program: what follows is its own */
        job->argv = &state->argv[state->next - 1];
        state->next = state->argc;
        break;
    case ARGP_KEY_SUCCESS:
        check(all, state);
        break;
    case ARGP_KEY_NO_ARGS:
        if (!job->expected)
            argp_error(state, "name the program to start behind the options");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int rnl_tool_find_self(struct rnl_launch *job, char *self, size_t room)
{
    const ssize_t n = job->agent ? 0 : readlink("/proc/self/exe", self, room - 1);
    if (n < 0) {
        fprintf(stderr, "runnel: cannot learn where this command is: %s; say where it is on the hosts with --agent\n",
                strerror(errno));
        return -1;
    }
    if (!job->agent) {
        self[n] = '\0';
        job->agent = self;
    }
    return 0;
}

/* The hosts of the job, and their ranks. 0, or -1: it has been said why. */
static int deal(const struct options *all, struct rnl_launch *job, struct rnl_job_host *at, char *self, size_t room)
{
    if (job->size == 0)
        job->size = rnl_hosts_slots(&all->hosts);
    if (job->size > RNL_JOB_RANKS_MAX) {
        fprintf(stderr, "runnel: %u processes on %u hosts: a job has at most %d\n", job->size, all->hosts.n,
                RNL_JOB_RANKS_MAX);
        return -1;
    }
    if (rnl_tool_find_self(job, self, room) < 0)
        return -1;
    memset(at, 0, RNL_HOSTS_MAX * sizeof *at);
    job->hosts = rnl_hosts_deal(&all->hosts, job->size, at);
    job->at = at;
    if (job->fan_out == 0)
        job->fan_out = FAN_OUT;
    const char *ssh = getenv("RUNNEL_SSH");
    job->ssh = ssh && ssh[0] != '\0' ? ssh : "ssh";
    return 0;
}

int rnl_tool_agent(int argc, char **argv)
{
    if (argc > 1) {
        fprintf(stderr, "runnel: `runnel agent` takes no argument such as '%s': `runnel run` starts it\n", argv[1]);
        return RNL_EXIT_USAGE;
    }
    return rnl_launch_agent();
}

/* What is large for a stack. */
struct room {
    struct options all;
    struct rnl_job_host at[RNL_HOSTS_MAX];
    char self[4096];
};

static int launch(struct room *room)
{
    const struct options *all = &room->all;
    struct rnl_launch job = all->job;
    if (all->hosts.n > 0 && deal(all, &job, room->at, room->self, sizeof room->self) < 0)
        return RNL_EXIT_SYSTEM;
    if (job.expected && rnl_tool_find_self(&job, room->self, sizeof room->self) < 0)
        return RNL_EXIT_SYSTEM;
    if (rnl_tool_below_mpi() && job.hosts > 1 && !rnl_daemon_named() && !rnl_node_key_present())
        fprintf(
            stderr,
            "runnel: the provider of `runnel mpi` needs a key to reach ranks on other hosts, and this one has none: "
            "make one with `runnel key --new`, and install it on each host with `runnel key --install`; or start "
            "the job with --mpi and without `runnel mpi`, and MPI takes transports of its own\n");
    job.mpi |= rnl_tool_below_mpi();
    if (job.size == 0) {
        int cores = rnl_bind_count();
        job.size = cores < RNL_JOB_RANKS_MAX ? (uint32_t)cores : RNL_JOB_RANKS_MAX;
    }
    /* Programs show progress on standard error, and cannot see through our pipe what it leads to. */
    if (isatty(STDERR_FILENO))
        setenv("RUNNEL_TERMINAL", "1", 1);
    else
        unsetenv("RUNNEL_TERMINAL");
    struct rnl_copies copies;
    if (job.hosts == 0)
        (void)rnl_copies_complete(&copies); /* now, while nobody of the job runs; the ranks read it */
    return rnl_launch(&job);
}

int rnl_tool_run(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = rnl_tool_help,
        .args_doc = "PROGRAM [ARGUMENT...]",
        .doc = "Start the processes of a job, on this host or on several, and end them together.\v"
               "The exit status is 0 if every process ended with 0, else that of the first failure (128 + S for signal "
               "S). "
               "See runnel-run(1).",
    };
    struct room *room = calloc(1, sizeof *room);
    if (!room) {
        fprintf(stderr, "runnel: no memory for %zu bytes of options; raise ulimit -v, or free memory\n", sizeof *room);
        return RNL_EXIT_SYSTEM;
    }
    room->all.job.stopped_after_ns = UINT64_MAX;
    argp_err_exit_status = RNL_EXIT_USAGE;
    int e = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &room->all);
    if (e != 0) { /* what is wrong with the options has been said, and has ended us */
        fprintf(stderr, "runnel: cannot read the options: %s\n", strerror(e));
        free(room);
        return RNL_EXIT_SYSTEM;
    }
    int status = launch(room);
    free(room);
    return status;
}
