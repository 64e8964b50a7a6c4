/* SPDX-License-Identifier: BSD-3-Clause
 *
 * site_start.c - how an agent begins and ends: what it is to do, where its host is, the agents behind it. */
#include "job/net.h"
#include "job/site_in.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MS ((uint64_t)1000 * 1000)
static const uint64_t brief_ms = 60000;

/* The pipes out of the way of what the ranks, and libraries that print, take for 0, 1 and 2. */
static int take_trunk(struct rnl_trunk *t)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return -errno;
    if (null > 2)
        close(null);
    return rnl_trunk_open(t, in, out);
}

/* The launcher's first frame. 0 or -1. */
static int take_brief(struct rnl_site *s)
{
    struct rnl_frame f;
    uint64_t end = rnl_host_now_ns(NULL) + brief_ms * MS;
    rnl_trunk_greet(&s->trunk);
    while (!rnl_trunk_next(&s->trunk, &f)) {
        uint64_t now = rnl_host_now_ns(NULL);
        struct pollfd p = {.fd = s->trunk.in, .events = POLLIN};
        if (s->trunk.ended || now >= end)
            return -1;
        (void)poll(&p, 1, (int)((end - now) / MS) + 1);
        rnl_trunk_read(&s->trunk);
    }
    if (f.kind != RNL_FRAME_JOB || rnl_brief_unpack(f.body, f.bytes, &s->brief) < 0)
        return -1;
    if (s->brief.back.ways > 0) {
        rnl_trunk_keep(&s->trunk);
        s->trunk.kept.taken = RNL_FRAME_HEAD + f.bytes; /* this one counts */
        rnl_rejoin_back(&s->rejoin, rnl_host_now_ns(NULL));
    }
    return 0;
}

static int set_environment(char **environment)
{
    if (clearenv() != 0)
        return -ENOMEM;
    for (char **e = environment; *e != NULL; e++)
        if (strchr(*e, '=') != NULL && strncmp(*e, "RUNNEL_FD=", sizeof "RUNNEL_FD=" - 1) != 0 && putenv(*e) != 0)
            return -ENOMEM;
    return 0;
}

/* 0, or an exit status and a sentence. */
static int prepare(struct rnl_site *s, char *sentence, size_t room)
{
    const struct rnl_brief *b = &s->brief;
    s->job = (struct rnl_launch){.size = b->size,
                                 .bind_core = (b->flags & RNL_BRIEF_BIND) != 0,
                                 .datagrams = (b->flags & RNL_BRIEF_DATAGRAMS) != 0,
                                 .tag = (b->flags & RNL_BRIEF_TAG) != 0,
                                 .keep_going = (b->flags & RNL_BRIEF_KEEP_GOING) != 0,
                                 .no_call_back = (b->flags & RNL_BRIEF_NO_CALL_BACK) != 0,
                                 .argv = b->argv,
                                 .at = b->at,
                                 .reach = (enum rnl_reach)b->reach,
                                 .fan = b->fan,
                                 .ssh = b->ssh,
                                 .agent = b->agent};
    if (set_environment(b->environment) < 0) {
        snprintf(sentence, room, "no memory for the environment");
        return RNL_EXIT_SYSTEM;
    }
    if (chdir(b->folder) < 0) {
        snprintf(sentence, room,
                 "cannot enter the working directory '%.200s': %s; start the job in one that is there on "
                 "all hosts",
                 b->folder, strerror(errno));
        return RNL_EXIT_SYSTEM;
    }
    return rnl_spawn_find(b->argv[0], &s->path, sentence, room);
}

static int open_sockets(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    struct rnl_here *here = &s->here[s->brief.host];
    struct rnl_socket_addr at, *of = calloc(l->count, sizeof *of);
    s->sockets = calloc(l->count, sizeof *s->sockets);
    here->port = calloc(l->count, sizeof *here->port);
    int e = of == NULL || s->sockets == NULL || here->port == NULL ? -ENOMEM : 0;
    if (e == 0)
        e = rnl_net_open(RNL_NET_ANY, l->count, s->sockets, of);
    if (e < 0 && s->sockets != NULL)
        for (uint32_t i = 0; i < l->count; i++)
            s->sockets[i] = -1;
    if (e == 0)
        e = rnl_net_open(RNL_NET_ANY, 1, &s->probe_fd, &at);
    if (e == 0)
        e = rnl_search_ways(here);
    if (e == 0) {
        here->host = s->brief.host;
        here->ranks = l->count;
        here->probe_port = at.port;
        for (uint32_t i = 0; i < l->count; i++)
            here->port[i] = of[i].port;
    }
    free(of);
    if (e < 0)
        rnl_launch_say(l, "cannot open the UDP sockets of %u rank%s: %s; %s", l->count, RNL_S(l->count), strerror(-e),
                       rnl_net_remedy(-e));
    return e;
}

static int begin(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    const struct rnl_host *at = &s->brief.at[s->brief.host];
    struct rnl_pack p = {.at = NULL};
    uint32_t parent;
    l->first = at->first;
    l->count = at->count;
    l->shares_cores = (s->brief.flags & RNL_BRIEF_ONE_MACHINE) != 0;
    memcpy(l->host, at->name, sizeof l->host);
    s->how.path = s->path;
    l->below = s->brief.host + 1;
    l->below_end = rnl_tree_end(s->brief.hosts, s->brief.fan, s->brief.host, &parent);
    /* the others first: what we do meanwhile costs them nothing */
    if (rnl_launch_set_up(l, &s->how) < 0 ||
        rnl_branches_start(l, l->below, l->below_end, &s->how, &s->branch, &s->branches) < 0 || open_sockets(l) < 0)
        return -1;
    rnl_console_redirect(l->console, rnl_site_output, s, (s->brief.flags & RNL_BRIEF_OUT_TERMINAL) != 0,
                         (s->brief.flags & RNL_BRIEF_ERR_TERMINAL) != 0);
    if (rnl_source_add(l->epoll, s->trunk.in, RNL_SOURCE_TRUNK, 0, EPOLLIN) < 0 ||
        rnl_source_add(l->epoll, s->trunk.out, RNL_SOURCE_TRUNK_ROOM, 0, EPOLLOUT | EPOLLET) < 0) {
        rnl_launch_say(l, "cannot watch the pipe to the launcher: %s", strerror(errno));
        return -1;
    }
    rnl_here_pack(&p, &s->here[s->brief.host]);
    rnl_trunk_send_pack(&s->trunk, RNL_FRAME_HERE, &p);
    rnl_pack_free(&p);
    return 0;
}

static void serve(struct rnl_launcher *l)
{
    while (!l->site->over)
        rnl_launch_turn(l, 1);
    rnl_site_stop_tries(l);
    rnl_launch_signal(l, SIGKILL);
    rnl_branches_end(l, l->site->branch, l->site->branches);
}

static void free_site(struct rnl_site *s)
{
    for (uint32_t i = 0; s->here != NULL && i < s->brief.hosts; i++)
        rnl_here_free(&s->here[i]);
    if (s->sockets != NULL)
        rnl_net_close(s->brief.at[s->brief.host].count, s->sockets);
    if (s->probe != NULL)
        rnl_search_free(s->probe);
    else if (s->probe_fd >= 0)
        close(s->probe_fd);
    if (s->input >= 0)
        close(s->input);
    rnl_branches_free(s->branch, s->branches);
    rnl_pack_free(&s->given);
    rnl_trunk_close(&s->trunk);
    free(s->here);
    free(s->sockets);
    free(s->path);
    clearenv(); /* it points into the brief */
    rnl_brief_free(&s->brief);
    free(s);
}

int rnl_launch_agent(void)
{
    char sentence[512] = "no memory";
    struct rnl_site *s = calloc(1, sizeof *s);
    struct rnl_launcher *l = NULL;
    if (s == NULL)
        return RNL_EXIT_SYSTEM;
    s->probe_fd = s->input = -1;
    for (unsigned i = 0; i < RNL_BACK_WAYS_MAX; i++)
        s->way_back[i].fd = -1;
    s->trunk.in = s->trunk.out = -1;
    s->room[0] = s->room[1] = RNL_OUTPUT_ROOM;
    s->heard_ns = rnl_host_now_ns(NULL);
    signal(SIGPIPE, SIG_IGN);
    if (take_trunk(&s->trunk) < 0 || take_brief(s) < 0) {
        fprintf(stderr,
                "runnel: `runnel agent` is started by `runnel run`, and what is at its input is no such thing\n");
        free_site(s);
        return RNL_EXIT_USAGE;
    }
    s->trunk.host = s->brief.host;
    signal(SIGPIPE, SIG_DFL); /* as the ranks are to find it; the launcher's own handling comes with its set-up */
    int status = prepare(s, sentence, sizeof sentence);
    s->how.argv = s->brief.argv;
    s->how.in = STDIN_FILENO;
    s->here = calloc(s->brief.hosts, sizeof *s->here);
    if (status == 0)
        l = rnl_launch_new(&s->job);
    if (status == 0 && (l == NULL || s->here == NULL))
        status = RNL_EXIT_SYSTEM;
    if (status == 0) {
        l->site = s;
        memcpy(l->key, s->brief.key, sizeof l->key);
        if (begin(l) < 0) {
            rnl_site_fail(s, RNL_EXIT_SYSTEM);
            l->site->over = 0; /* the launcher is to have heard it */
        }
        serve(l);
    } else {
        memcpy(s->said, sentence, sizeof s->said);
        rnl_site_fail(s, status);
        struct pollfd wait = {.fd = s->trunk.in, .events = POLLIN};
        (void)poll(&wait, 1, 5000); /* the launcher says END, or goes */
    }
    if (l != NULL)
        rnl_launch_free(l);
    free_site(s);
    return status;
}
