/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon.c - `runnel daemon`: keeps the names of services (meet/daemon.h) for the processes of a user, or for all of
 * this host. The first process that needs it starts it; it ends when nobody has been connected to it for a while. */
#include "meet/daemon.h"
#include "base/env.h"
#include "runnel/runnel.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { IDLE_S = 3, ATTEMPTS = 20, EXIT_USAGE = 64, EXIT_OSERR = 71, DESCRIPTORS = 65536 };

struct daemon_arguments {
    struct rnl_daemon_options opt;
    int background;
    long idle_s; /* -1 = never */
};

static const struct argp_option options[] = {
    {"background", 'b', NULL, 0, "go to the background at once, and say nothing", 0},
    {"idle", 'i', "SECONDS", 0, "end when nobody has been connected for so long (3; with --node: never)", 0},
    {"key", 'k', "FILE", 0, "the key of the hosts, instead of /etc/runnel/key (root) or ~/.config/runnel/key", 0},
    {"node", 'n', NULL, 0, "keep the services of all users; for root", 0},
    {"port", 'p', "PORT", 0, "listen there for daemons of other hosts, instead of at the key's port", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct daemon_arguments *a = state->input;
    char *end;
    switch (key) {
    case 'b':
        a->background = 1;
        return 0;
    case 'i':
        a->idle_s = strtol(arg, &end, 10);
        if (end == arg || *end != '\0' || a->idle_s < 0 || a->idle_s > 1000000000)
            argp_error(state, "--idle takes a number of seconds, not '%s'", arg);
        return 0;
    case 'k':
        a->opt.key = arg;
        return 0;
    case 'p':
        a->opt.port = (uint16_t)strtol(arg, &end, 10);
        if (end == arg || *end != '\0' || strtol(arg, NULL, 10) < 1 || strtol(arg, NULL, 10) > UINT16_MAX)
            argp_error(state, "--port takes a number from 1 to %d, not '%s'", UINT16_MAX, arg);
        return 0;
    case 'n':
        a->opt.of_node = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "it takes no argument '%s'", arg);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Keeps the names of the services that processes of this user offer to each other (rnl_serve(3)). Programs "
           "start it by themselves.\v"
           "RUNNEL_DAEMON names it, for trials beside the usual one.",
    .children = rnl_tool_help};

static int into_background(void)
{
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid < 0 ? EXIT_OSERR : 0);
    (void)setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    if (null > 2)
        close(null);
    return chdir("/");
}

/* Callers take a descriptor each. */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Returns the milliseconds to poll for, -1 = for ever. */
static int poll_ms(uint64_t now_ns, uint64_t until_ns)
{
    uint64_t ms = until_ns <= now_ns ? 0 : (until_ns - now_ns + 999999) / 1000000;
    return until_ns == UINT64_MAX ? -1 : ms > 1000000 ? 1000000 : (int)ms;
}

static void serve(struct rnl_daemon *d, int ends, long idle_s)
{
    struct pollfd p[2] = {{.fd = rnl_daemon_fd(d), .events = POLLIN}, {.fd = ends, .events = POLLIN}};
    uint64_t idle_since_ns = rnl_host_now_ns(NULL);
    for (;;) {
        uint64_t now = rnl_host_now_ns(NULL), until = rnl_daemon_deadline_ns(d);
        struct rnl_daemon_state state;
        rnl_daemon_state(d, &state);
        if (state.callers > 0)
            idle_since_ns = now;
        uint64_t end = idle_s < 0 || state.callers > 0 ? UINT64_MAX : idle_since_ns + (uint64_t)idle_s * 1000000000u;
        if (now >= end)
            return;
        if (poll(p, 2, poll_ms(now, until < end ? until : end)) < 0 && errno != EINTR)
            return;
        if (p[1].revents)
            return;
        rnl_daemon_step(d, rnl_host_now_ns(NULL));
    }
}

int rnl_tool_daemon(int argc, char **argv)
{
    struct daemon_arguments a = {.opt = {.attempts = ATTEMPTS}, .idle_s = -2};
    struct rnl_daemon *d;
    if (argp_parse(&argp, argc, argv, ARGP_NO_EXIT, NULL, &a) != 0)
        return EXIT_USAGE;
    if (a.idle_s == -2)
        a.idle_s = a.opt.of_node ? -1 : IDLE_S;
    a.opt.name = rnl_daemon_named();
    if (a.background && into_background() < 0)
        return EXIT_OSERR;
    raise_limit();
    int status = rnl_daemon_new(&a.opt, &d);
    if (status < 0) {
        fprintf(stderr, "runnel daemon: %s\n", rnl_last_error()->text);
        return EXIT_OSERR;
    }
    int ends = signals();
    serve(d, ends, a.idle_s);
    rnl_daemon_free(d);
    if (ends >= 0)
        close(ends);
    return 0;
}
