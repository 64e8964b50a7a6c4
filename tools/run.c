/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - `runnel run`: reads the options, hands over to job/launch.c. */
#include "job/hosts.h"
#include "job/launch.h"
#include "job/proto.h"
#include "job/spawn.h"
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
    OPT_HOSTS,
    OPT_HOSTFILE,
    OPT_LAUNCHER,
    OPT_AGENT,
    OPT_FAN_OUT,
    OPT_TRANSPORT,
    OPT_NO_CALL_BACK
};
static const double longest_timeout_s = 1e9;
enum { FAN_OUT = 16 };

/* argp sorts by the last number, then by name. */
static const struct argp_option options[] = {
    {"ranks", 'n', "N", 0, "Start N processes (default: as many as there are cores to run on)", 0},
    {"bind", OPT_BIND, "WHERE", 0, "core: bind each process to one core; none: leave it to the system (default)", 0},
    {"transport", OPT_TRANSPORT, "WHAT", 0,
     "auto: shared memory between processes of one host (default); udp: datagrams between all of them", 0},
    {"tag-output", OPT_TAG, NULL, 0, "Put the rank before each line of output", 0},
    {"timeout", OPT_TIMEOUT, "SECONDS", 0, "End the job after this time, with status 124", 0},
    {"keep-going", OPT_KEEP_GOING, NULL, 0, "Let the others go on when a process fails", 0},
    {"env", 'x', "NAME[=VALUE]", 0, "Pass this variable of the environment (give it this value first)", 0},
    {"hosts", OPT_HOSTS, "HOST[:N],...", 0, "Start the processes on these hosts, N each, in this order", 1},
    {"host", 'H', "HOSTS", OPTION_HIDDEN, NULL, 1},
    {"hostfile", OPT_HOSTFILE, "FILE", 0, "The same from a file, a host a line", 2},
    {"launcher", OPT_LAUNCHER, "HOW", 0,
     "ssh: reach hosts over ssh (default); netns: hosts are network namespaces of this machine", 3},
    {"agent", OPT_AGENT, "PATH", 0, "Where the runnel command is on the hosts (default: where it is here)", 3},
    {"fan-out", OPT_FAN_OUT, "N", 0,
     "So many hosts are reached from here, and by each of them; the others are reached through those (default: 16)", 3},
    {"no-call-back", OPT_NO_CALL_BACK, NULL, 0,
     "Listen at no port for agents whose ssh fails: their hosts are lost then", 3},
    {"np", 'n', "N", OPTION_HIDDEN, NULL, 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct options {
    struct rnl_launch job;
    struct rnl_hosts hosts;
    int file; /* they come from a file */
};

static void number_of_ranks(struct rnl_launch *job, const char *text, struct argp_state *state)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (strcmp(text, "p") == 0)
        argp_error(state, "the number of processes is given as -n N, not -np N");
    else if (end == text || *end != '\0' || text[0] == ' ')
        argp_error(state, "-n takes a number of processes, not '%s'", text);
    else if (errno != 0 || n < 1 || n > RNL_JOB_RANKS_MAX)
        argp_error(state, "-n %s: a job has 1 to %d processes, on all its hosts together", text, RNL_JOB_RANKS_MAX);
    else
        job->size = (uint32_t)n;
}

static void fan_out(struct rnl_launch *job, const char *text, struct argp_state *state)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || n < 1 || n > RNL_HOSTS_MAX)
        argp_error(state, "--fan-out takes a number of hosts, 1 to %d, not '%s'", RNL_HOSTS_MAX, text);
    else
        job->fan = (uint32_t)n;
}

static void timeout(struct rnl_launch *job, const char *text, struct argp_state *state)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(s) || s <= 0 || s > longest_timeout_s) {
        argp_error(state, "--timeout takes a number of seconds above 0, not '%s'", text);
        return;
    }
    job->timeout_ns = (uint64_t)(s * 1e9) + 1;
    job->timeout_text = text;
}

/* On one host the environment is inherited as it is: a name alone only has to exist. */
static void variable(const char *text, struct argp_state *state)
{
    const char *equals = strchr(text, '=');
    if (text[0] == '\0' || equals == text) {
        argp_error(state, "-x takes NAME or NAME=VALUE, not '%s'", text);
    } else if (equals == NULL) {
        if (getenv(text) == NULL)
            argp_error(state, "-x %s: there is no such variable in the environment; give it a value with -x %s=VALUE",
                       text, text);
    } else if (putenv((char *)(uintptr_t)text) != 0) {
        argp_failure(state, RNL_EXIT_SYSTEM, errno, "-x %s", text);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *all = state->input;
    struct rnl_launch *job = &all->job;
    char sentence[400];
    switch (key) {
    case 'n':
        number_of_ranks(job, arg, state);
        return 0;
    case OPT_BIND:
        if (strcmp(arg, "core") != 0 && strcmp(arg, "none") != 0)
            argp_error(state, "--bind takes core or none, not '%s'", arg);
        job->bind_core = strcmp(arg, "core") == 0;
        return 0;
    case OPT_TRANSPORT:
        if (strcmp(arg, "auto") != 0 && strcmp(arg, "udp") != 0)
            argp_error(state, "--transport takes auto or udp, not '%s'", arg);
        job->datagrams = strcmp(arg, "udp") == 0;
        return 0;
    case OPT_TAG:
        job->tag = 1;
        return 0;
    case OPT_TIMEOUT:
        timeout(job, arg, state);
        return 0;
    case OPT_KEEP_GOING:
        job->keep_going = 1;
        return 0;
    case OPT_HOSTS:
    case 'H':
        if (all->file)
            argp_error(state, "--hosts and --hostfile both name the hosts: give one of them");
        if (rnl_hosts_read(&all->hosts, arg, sentence, sizeof sentence) < 0)
            argp_error(state, "--hosts: %s", sentence);
        return 0;
    case OPT_HOSTFILE:
        if (all->hosts.n > 0)
            argp_error(state, "--hosts and --hostfile both name the hosts, or --hostfile stands there twice: give one "
                              "of them");
        if (rnl_hosts_file(&all->hosts, arg, sentence, sizeof sentence) < 0)
            argp_error(state, "--hostfile: %s", sentence);
        all->file = 1;
        return 0;
    case OPT_LAUNCHER:
        if (strcmp(arg, "ssh") != 0 && strcmp(arg, "netns") != 0)
            argp_error(state, "--launcher takes ssh or netns, not '%s'", arg);
        job->reach = strcmp(arg, "ssh") == 0 ? RNL_REACH_SSH : RNL_REACH_NETNS;
        return 0;
    case OPT_AGENT:
        if (arg[0] != '/')
            argp_error(state, "--agent takes a path from the root, not '%s'", arg);
        job->agent = arg;
        return 0;
    case OPT_FAN_OUT:
        fan_out(job, arg, state);
        return 0;
    case OPT_NO_CALL_BACK:
        job->no_call_back = 1;
        return 0;
    case 'x':
        variable(arg, state);
        return 0;
    case ARGP_KEY_ARG: /* the program: what follows is its own */
        job->argv = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_SUCCESS:
        if (job->reach == RNL_REACH_NETNS && all->hosts.n == 0)
            argp_error(state, "--launcher netns needs the namespaces that are the hosts: --hosts or --hostfile");
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name the program to start behind the options");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* The hosts of the job, and their ranks. 0, or -1: it has been said why. */
static int deal(const struct options *all, struct rnl_launch *job, struct rnl_host *at, char *self, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", self, room - 1);
    if (job->size == 0)
        job->size = rnl_hosts_slots(&all->hosts);
    if (job->size > RNL_JOB_RANKS_MAX) {
        fprintf(stderr, "runnel: %u processes on %u hosts: a job has at most %d\n", job->size, all->hosts.n,
                RNL_JOB_RANKS_MAX);
        return -1;
    }
    if (job->agent == NULL && n < 0) {
        fprintf(stderr, "runnel: cannot learn where this command is: %s; say where it is on the hosts with --agent\n",
                strerror(errno));
        return -1;
    }
    if (job->agent == NULL) {
        self[n] = '\0';
        job->agent = self;
    }
    memset(at, 0, RNL_HOSTS_MAX * sizeof *at);
    job->hosts = rnl_hosts_deal(&all->hosts, job->size, at);
    job->at = at;
    if (job->fan == 0)
        job->fan = FAN_OUT;
    const char *ssh = getenv("RUNNEL_SSH");
    job->ssh = ssh != NULL && ssh[0] != '\0' ? ssh : "ssh";
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
    struct rnl_host at[RNL_HOSTS_MAX];
    char self[4096];
};

static int launch(struct room *room)
{
    const struct options *all = &room->all;
    struct rnl_launch job = all->job;
    if (all->hosts.n > 0 && deal(all, &job, room->at, room->self, sizeof room->self) < 0)
        return RNL_EXIT_SYSTEM;
    if (job.size == 0) {
        int cores = rnl_bind_count();
        job.size = cores < RNL_JOB_RANKS_MAX ? (uint32_t)cores : RNL_JOB_RANKS_MAX;
    }
    /* Programs show progress on standard error, and cannot see through our pipe what it leads to. */
    if (isatty(STDERR_FILENO))
        setenv("RUNNEL_TERMINAL", "1", 1);
    else
        unsetenv("RUNNEL_TERMINAL");
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
    if (room == NULL) {
        fprintf(stderr, "runnel: no memory for %zu bytes of options; raise ulimit -v, or free memory\n", sizeof *room);
        return RNL_EXIT_SYSTEM;
    }
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
