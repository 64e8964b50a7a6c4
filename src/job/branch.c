/* SPDX-License-Identifier: BSD-3-Clause
 *
 * branch.c - see branch.h. */
#include "job/branch.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS ((uint64_t)1000 * 1000)
static const uint64_t greet_ns = 40000 * MS; /* for the agent's first word; ssh gives up after 20 s */
static const uint64_t here_ns = 20000 * MS;  /* and for where its host is */
static const uint64_t reap_ns = 300 * MS;    /* from the end of what it says to how it ended */
static const uint64_t leave_ns = 2000 * MS;  /* for agents to end */
static const uint64_t back_ns = 10000 * MS;  /* for one to come back whose connection was cut */

/* ---- the beginning ---- */

static int watch(struct rnl_launcher *l, const struct rnl_branch *b, uint32_t index)
{
    int e = rnl_source_add(l->epoll, b->trunk.in, RNL_SOURCE_BRANCH, index, EPOLLIN);
    return e < 0 ? e : rnl_source_add(l->epoll, b->trunk.out, RNL_SOURCE_BRANCH_ROOM, index, EPOLLOUT | EPOLLET);
}

static int start(struct rnl_launcher *l, struct rnl_branch *b, const struct rnl_spawn *how, uint32_t index)
{
    const char *name = l->job->at[b->host].name;
    int pipes[3], e = rnl_reach_start(l->job, b->host, how, pipes, &b->pid);
    if (e < 0) {
        rnl_launch_say(l, "cannot start the agent of host %s: %s; name fewer hosts, or raise the limits (ulimit -a)",
                       name, strerror(-e));
        return e;
    }
    b->err = pipes[2];
    e = rnl_trunk_open(&b->trunk, pipes[1], pipes[0]);
    b->heard_ns = rnl_host_now_ns(NULL);
    if (e == 0 && fcntl(b->err, F_SETFL, O_NONBLOCK) < 0)
        e = -errno;
    if (e == 0)
        e = watch(l, b, index);
    if (e == 0)
        e = rnl_source_add(l->epoll, b->err, RNL_SOURCE_BRANCH_ERROR, index, EPOLLIN);
    if (e < 0)
        rnl_launch_say(l, "cannot watch the agent of host %s: %s", name, strerror(-e));
    return e;
}

int rnl_branches_start(struct rnl_launcher *l, uint32_t first, uint32_t end, const struct rnl_spawn *how,
                       struct rnl_branch **out, uint32_t *n)
{
    uint32_t all = rnl_tree_branches(first, end, l->job->fan);
    struct rnl_branch *b = calloc(all, sizeof *b);
    if (b == NULL && all > 0) {
        rnl_launch_say(l, "no memory for the agents of %u host%s", all, RNL_S(all));
        return -1;
    }
    *out = b;
    *n = all;
    for (uint32_t k = 0; k < all; k++) {
        rnl_tree_block(first, end, l->job->fan, k, &b[k].host, &b[k].end);
        b[k].err = b[k].trunk.in = b[k].trunk.out = b[k].pid = -1;
    }
    if (all > 0 && l->job->reach == RNL_REACH_SSH && !l->job->no_call_back)
        (void)rnl_back_open(l->epoll, &l->back);
    for (uint32_t k = 0; k < all; k++)
        if (start(l, &b[k], how, k) < 0)
            return -1;
    return 0;
}

struct rnl_branch *rnl_branch_of(struct rnl_branch *b, uint32_t n, uint32_t host)
{
    for (uint32_t k = 0; k < n; k++)
        if (host >= b[k].host && host < b[k].end)
            return &b[k];
    return NULL;
}

/* ---- what it says ---- */

int rnl_branch_read(struct rnl_launcher *l, struct rnl_branch *b, uint64_t now)
{
    char release[sizeof b->release];
    int r = 0;
    if (b->lost)
        return 0;
    rnl_trunk_read(&b->trunk);
    b->heard_ns = now;
    if (!b->greeted) {
        r = rnl_trunk_greeting(&b->trunk, release, sizeof release, b->noise, sizeof b->noise);
        b->greeted = r > 0;
        if (r < 0) {
            memcpy(b->release, release, sizeof release);
            b->garbled = 1;
        }
    }
    if (b->trunk.ended)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, b->trunk.in, NULL);
    return r > 0;
}

int rnl_branch_next(struct rnl_branch *b, struct rnl_frame *f)
{
    if (b->lost || b->garbled || !b->greeted || !rnl_trunk_next(&b->trunk, f))
        return 0;
    b->garbled = f->host < b->host || f->host >= b->end;
    b->here |= f->kind == RNL_FRAME_HERE && f->host == b->host;
    return !b->garbled;
}

void rnl_branch_hear_error(struct rnl_launcher *l, struct rnl_branch *b)
{
    char text[512];
    ssize_t n;
    while (b->err >= 0 && (n = read(b->err, text, sizeof text)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return;
        for (ssize_t i = 0; i < n; i++) { /* the last line that says something */
            if (text[i] == '\n') {
                b->said_ended = 1;
            } else if (text[i] >= ' ' || text[i] < 0) {
                if (b->said_ended)
                    b->said_bytes = b->said_ended = 0;
                if (b->said_bytes < sizeof b->said - 1)
                    b->said[b->said_bytes++] = text[i];
            }
        }
        b->said[b->said_bytes] = '\0';
    }
    if (b->err >= 0) {
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, b->err, NULL);
        close(b->err);
        b->err = -1;
    }
}

/* ---- another connection to it ---- */

void rnl_branch_may_return(struct rnl_launcher *l, struct rnl_branch *b, struct rnl_back_at *out)
{
    memset(out, 0, sizeof *out);
    if (l->back == NULL)
        return;
    *out = l->back->at;
    rnl_trunk_keep(&b->trunk);
}

static void forget_pipes(struct rnl_launcher *l, struct rnl_branch *b)
{
    if (b->trunk.in >= 0)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, b->trunk.in, NULL);
    if (b->trunk.out >= 0)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, b->trunk.out, NULL);
}

void rnl_branches_back(struct rnl_launcher *l, struct rnl_branch *all, uint32_t n, uint32_t index, uint64_t now)
{
    struct rnl_back_come come;
    if (l->back == NULL || rnl_back_event(l->back, index, now, &come) == 0)
        return;
    struct rnl_branch *b = rnl_branch_of(all, n, come.host);
    /* One that was late: its agent has said more since, on another. */
    int late = b != NULL && come.taken < b->trunk.kept.base;
    if (b == NULL || b->host != come.host || b->lost || b->garbled || late || !rnl_trunk_may_go_on(&b->trunk) ||
        rnl_back_answer(come.channel, 1, b->trunk.kept.taken) < 0) {
        (void)rnl_back_answer(come.channel, 0, 0);
        rnl_channel_free(come.channel);
        return;
    }
    forget_pipes(l, b);
    if (rnl_trunk_go_on(&b->trunk, come.channel, come.taken) < 0) {
        b->garbled = 1;
    } else if (b->trunk.ended || watch(l, b, (uint32_t)(b - all)) < 0) { /* resources are short: it comes again */
        forget_pipes(l, b);
        rnl_trunk_cut(&b->trunk);
    }
    if (!b->returned && b->pid > 0 && !b->reaped)
        kill(b->pid, SIGTERM); /* what carried the pipes */
    b->returned = 1;
    b->away = 0;
    b->ended_ns = 0; /* if it has ended again already, that counts from now */
    b->heard_ns = now;
}

/* Its connection was cut, but perhaps not its life: a command that carries pipes ends with 255 then, or has not ended
 * yet. With any other status it is the agent's own end. */
static int is_away(struct rnl_launcher *l, struct rnl_branch *b, uint64_t now)
{
    if (!b->trunk.ended || !b->greeted || b->garbled || !rnl_trunk_may_go_on(&b->trunk))
        return 0;
    if (!b->returned) {
        rnl_branch_hear_error(l, b);
        if (b->reaped && (!WIFEXITED(b->how) || WEXITSTATUS(b->how) != 255))
            return 0;
    }
    b->away = 1;
    return now < b->ended_ns + back_ns;
}

/* ---- its end ---- */

static int reap(struct rnl_branch *b)
{
    if (!b->reaped && b->pid > 0 && waitpid(b->pid, &b->how, WNOHANG) == b->pid)
        b->reaped = 1;
    return b->reaped;
}

/* Why it never ran, or runs no more. */
static void explain(const struct rnl_launcher *l, const struct rnl_branch *b, char *why, size_t room)
{
    const struct rnl_launch *job = l->job;
    const char *said = b->said_bytes > 0 ? b->said : b->noise;
    char own[RNL_RELEASE_BYTES];
    char addresses[160];
    int code = b->reaped && WIFEXITED(b->how) ? WEXITSTATUS(b->how) : -1;
    int over_ssh = job->reach == RNL_REACH_SSH;
    if (b->release[0] != '\0')
        snprintf(why, room, "%s is of protocol and release %s, this command of %s: install one release everywhere",
                 job->agent, b->release, rnl_here_release(own));
    else if (b->garbled)
        snprintf(why, room, "what its agent says is not understood: install one release everywhere");
    else if (b->silent)
        snprintf(why, room, "%s has not answered in time%s%s", job->agent, *said ? ": " : "", said);
    else if (b->away)
        snprintf(why, room, "its connection has failed%s%s, and it has not come back within %d s by way of %s, port %u",
                 *said ? ": " : "", said, (int)(back_ns / (1000 * MS)),
                 rnl_back_addresses(&l->back->at, addresses, sizeof addresses), l->back->at.port);
    else if (b->greeted && b->reaped && WIFSIGNALED(b->how))
        snprintf(why, room, "its agent was killed by signal %d", WTERMSIG(b->how));
    else if (b->greeted)
        snprintf(why, room, "its agent has ended%s%s", *said ? ": " : "", said);
    else if (code == 127)
        snprintf(why, room,
                 "there is no %s on it%s%s%s: install the same release there, or say where it is with --agent",
                 job->agent, *said ? " (" : "", said, *said ? ")" : "");
    else if (code == 126)
        snprintf(why, room, "%s cannot be executed on it%s%s", job->agent, *said ? ": " : "", said);
    else if (over_ssh && code == 255 && strstr(job->ssh, " --reach ") != NULL) /* amudprun: no ssh, no password */
        snprintf(why, room, "it cannot be reached through its worker%s%s", *said ? ": " : "", said);
    else if (over_ssh && code == 255)
        snprintf(why, room, "%s cannot reach it%s%s; `%s %s true` has to work without a password", job->ssh,
                 *said ? ": " : "", said, job->ssh, job->at[b->host].name);
    else if (code == RNL_EXIT_SYSTEM && *said) /* of ours, which says all */
        snprintf(why, room, "%s", said);
    else
        snprintf(why, room,
                 "%s%s%s did not become its agent: it ended (%s %d) and said %.160s; say with --agent where the runnel "
                 "command is there",
                 job->agent, over_ssh ? ", started by " : "", over_ssh ? job->ssh : "", code < 0 ? "signal" : "status",
                 code < 0 ? WTERMSIG(b->how) : code, *said ? said : "nothing");
}

int rnl_branch_gone(struct rnl_launcher *l, struct rnl_branch *b, uint64_t now, char *why, size_t room)
{
    if (b->lost)
        return 0;
    b->garbled |= b->trunk.ended && b->trunk.error == EPROTO;
    b->silent = !b->here && now >= b->heard_ns + (b->greeted ? here_ns : greet_ns);
    if (b->trunk.ended && b->ended_ns == 0)
        b->ended_ns = now;
    if (!b->garbled && !b->silent && !(b->trunk.ended && (reap(b) || now >= b->ended_ns + reap_ns)))
        return 0;
    if (!b->silent && is_away(l, b, now))
        return 0;
    rnl_branch_hear_error(l, b);
    explain(l, b, why, room);
    rnl_branch_lose(l, b);
    return 1;
}

static void close_trunk(struct rnl_launcher *l, struct rnl_branch *b)
{
    forget_pipes(l, b);
    rnl_trunk_close(&b->trunk);
}

void rnl_branch_lose(struct rnl_launcher *l, struct rnl_branch *b)
{
    b->lost = 1;
    close_trunk(l, b);
    if (!b->reaped && b->pid > 0)
        kill(b->pid, SIGKILL);
}

int rnl_branches_ending(const struct rnl_branch *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (!b[k].lost && b[k].trunk.ended && (!b[k].away || (!b[k].returned && !b[k].reaped)))
            return 1;
    return 0;
}

/* ---- what is said to it ---- */

void rnl_branches_send(struct rnl_branch *b, uint32_t n, enum rnl_frame_kind kind, const void *body, size_t bytes)
{
    for (uint32_t k = 0; k < n; k++)
        if (b[k].greeted && !b[k].lost)
            rnl_trunk_send_to(&b[k].trunk, kind, RNL_FRAME_TO_ALL, body, bytes);
}

void rnl_branches_send_to(struct rnl_branch *b, uint32_t n, uint32_t host, enum rnl_frame_kind kind,
                          const struct rnl_pack *p)
{
    struct rnl_branch *to = rnl_branch_of(b, n, host);
    if (to == NULL || !to->greeted || to->lost)
        return;
    if (p->failed)
        rnl_trunk_send_pack(&to->trunk, kind, p); /* which fails it */
    else
        rnl_trunk_send_to(&to->trunk, kind, host, p->at, p->bytes);
}

/* ---- the end ---- */

/* One that came back has no process here: its end is that of the connection. */
static int has_left(struct rnl_launcher *l, struct rnl_branch *b)
{
    if (b->returned && !b->trunk.ended) {
        rnl_trunk_flush(&b->trunk);
        if (!rnl_trunk_waits(&b->trunk))
            (void)shutdown(b->trunk.in, SHUT_WR);
        rnl_trunk_read(&b->trunk);
        b->trunk.got = b->trunk.taken = 0; /* nobody listens any more */
        if (!b->trunk.ended)
            return 0;
        close_trunk(l, b);
    }
    return b->pid <= 0 || reap(b);
}

void rnl_branches_end(struct rnl_launcher *l, struct rnl_branch *b, uint32_t n)
{
    uint64_t end = rnl_host_now_ns(NULL) + leave_ns;
    uint32_t left = n;
    rnl_branches_send(b, n, RNL_FRAME_END, NULL, 0);
    for (uint32_t k = 0; k < n; k++)
        if (!b[k].returned)
            close_trunk(l, &b[k]);
    for (int ms = 1; left > 0 && rnl_host_now_ns(NULL) < end; ms = ms < 20 ? 2 * ms : ms) {
        left = 0;
        for (uint32_t k = 0; k < n; k++)
            left += !has_left(l, &b[k]);
        if (left > 0)
            poll(NULL, 0, ms);
    }
}

void rnl_branches_free(struct rnl_branch *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (b[k].pid > 0 && !b[k].reaped) {
            kill(b[k].pid, SIGKILL);
            while (waitpid(b[k].pid, NULL, 0) < 0 && errno == EINTR)
                ;
        }
        rnl_trunk_close(&b[k].trunk);
        if (b[k].err >= 0)
            close(b[k].err);
    }
    free(b);
}
