/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.c - the agent's side of ranks' sockets and processes: admits ranks, takes in their messages, and finds deaths.
 * agent_send.c sends to ranks and serves segments, agent_new.c makes and frees the agent. */
#include "job/agent.h"

#include "base/env.h"
#include "base/error.h"
#include "job/agent_internal.h"
#include "job/fds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PACKETS_PER_TURN = 32,      /* packets read from one rank before the next rank's turn */
    EXIT_FOLLOWS_NS = 40000000, /* time between a process closing its sockets and its exit being reported */
    EXIT_ROUNDS = 25            /* how often that time is granted again while the process is seen to be ending */
};

/* ---- which of the ranks' processes run, are stopped, or are ending: read from /proc, whose files the kernel makes up
 * by itself, so that reading them never blocks ---- */

enum { ENDING = 4 /* the kernel's process flag PF_EXITING */ };

/* Returns the state letter of a process or thread, '?' if it cannot be read, and its flags. */
static char state_in(const char *path, unsigned *flags)
{
    char text[512], state = '?';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    *flags = 0;
    const char *after = strrchr(text, ')'); /* ") S PARENT GROUP SESSION TERMINAL ITS-GROUP FLAGS" */
    if (!after || sscanf(after, ") %c %*d %*d %*d %*d %*d %u", &state, flags) < 1)
        return '?';
    return state;
}

static bool is_stop(char state)
{
    return state == 'T' || state == 't';
}

/* Whether all threads of a process are stopped; a debugger may stop only some. False if that cannot be read. */
static bool is_stopped(pid_t pid)
{
    char path[64];
    unsigned flags;
    bool some = false, all = true;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (const struct dirent *d; tasks && all && (d = readdir(tasks));) {
        if (d->d_name[0] == '.')
            continue;
        some = true;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, d->d_name);
        all = is_stop(state_in(path, &flags));
    }
    if (tasks)
        closedir(tasks);
    return some && all;
}

static pid_t pid_of(const struct agent_rank *r)
{
    return r->joined > 0 ? r->joined : r->started;
}

static bool lives(const struct rnl_agent *a, uint32_t rank)
{
    enum rnl_rank_state state = rnl_membership_state(a->members, rank);
    return !a->rank[rank].is_remote && (state == RNL_RANK_JOINED || state == RNL_RANK_STARTING);
}

bool rnl_agent_runs(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    struct agent_rank *r = &a->rank[rank];
    char path[32];
    unsigned flags;
    if (!lives(a, rank) || pid_of(r) <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid_of(r));
    char state = state_in(path, &flags);
    if (!is_stop(state) || !is_stopped(pid_of(r)))
        r->stopped_ns = 0;
    else if (r->stopped_ns == 0)
        r->stopped_ns = now_ns;
    return !strchr("TtZX", state); /* '?' (no /proc) counts as running: its end is found by other means */
}

bool rnl_agent_stopped(const struct rnl_agent *a, uint32_t rank, uint64_t *since_ns)
{
    *since_ns = a->rank[rank].stopped_ns;
    return *since_ns > 0 && lives(a, rank);
}

/* Whether the rank's process is ending, though it cannot be waited for yet. */
static bool is_ending(const struct agent_rank *r)
{
    char path[32];
    unsigned flags;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid_of(r));
    state_in(path, &flags);
    return flags & ENDING;
}

/* ---- life and death ---- */

void rnl_agent_forget(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    rnl_agent_drop_fd(a, &r->sock);
    rnl_agent_drop_fd(a, &r->watch);
    rnl_agent_drop_fd(a, &r->net);
    rnl_agent_drop_fd(a, &r->rings);
    rnl_agent_drop_cards(r);
    rnl_agent_drop_replies(r);
}

void rnl_agent_changed(void *agent, uint32_t rank)
{
    struct rnl_agent *a = agent;
    struct rnl_status_rank *s = &a->status->rank[rank];
    enum rnl_rank_state state = rnl_membership_state(a->members, rank);
    int32_t why, detail;
    rnl_membership_death(a->members, rank, &why, &detail);
    atomic_store_explicit(&s->why, why, memory_order_relaxed);
    atomic_store_explicit(&s->detail, detail, memory_order_relaxed);
    atomic_store_explicit(&s->state, state, memory_order_release); /* pairs with readers of why */
    if (state == RNL_RANK_DEAD || state == RNL_RANK_LEFT)
        rnl_agent_forget(a, rank);
}

static bool is_gone(const struct rnl_agent *a, uint32_t rank)
{
    enum rnl_rank_state state = rnl_membership_state(a->members, rank);
    return state == RNL_RANK_DEAD || state == RNL_RANK_LEFT;
}

static bool is_joined(const struct rnl_agent *a, uint32_t rank)
{
    return rnl_membership_state(a->members, rank) == RNL_RANK_JOINED;
}

static void found_gone(struct rnl_agent *a, uint32_t rank, int why, int detail)
{
    struct agent_rank *r = &a->rank[rank];
    if (is_gone(a, rank))
        return;
    if (!rnl_membership_closed(a->members) || why == RNL_DEATH_BROKEN) {
        r->found = true;
        r->why = why;
        r->detail = detail;
        a->found++;
    }
    rnl_membership_gone(a->members, rank, why, detail);
}

bool rnl_agent_overran(const struct rnl_agent *a, uint32_t rank, uint32_t *handler, uint32_t *stack_bytes)
{
    *handler = a->rank[rank].overran.handler;
    *stack_bytes = a->rank[rank].overran.stack_bytes;
    return *stack_bytes > 0;
}

bool rnl_agent_next_death(struct rnl_agent *a, struct rnl_agent_death *out)
{
    for (uint32_t i = 0; a->found > 0 && i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        if (!r->found)
            continue;
        r->found = false;
        a->found--;
        *out = (struct rnl_agent_death){.rank = i, .why = r->why, .detail = r->detail, .sys_errno = r->sys_errno};
        return true;
    }
    return false;
}

static void reject(int sock, enum rnl_rejected why)
{
    const struct rnl_msg msg = {.kind = RNL_MSG_REJECTED, .u.rejected = {.why = why}};
    (void)rnl_msg_send(sock, &msg, NULL, 0); /* a rank that does not get it sees its socket closed */
    close(sock);
}

static void admit(struct rnl_agent *a, uint32_t rank, int sock, pid_t pid)
{
    struct agent_rank *r = &a->rank[rank];
    r->sock = sock;
    if (rnl_agent_watch(a, sock, RNL_AGENT_SOCK, rank, EPOLLIN) < 0 || rnl_agent_welcome(a, rank) < 0) {
        epoll_ctl(a->epoll, EPOLL_CTL_DEL, sock, NULL);
        r->sock = -1;
        reject(sock, RNL_REJECTED_NO_ROOM);
        return;
    }
    r->interest = EPOLLIN;
    r->joined = pid;
    r->stopped_ns = 0;
    if (pid > 0 && pid != r->started) { /* started by a wrapper; without a pidfd its socket shows its end, too */
        r->watch = (int)syscall(SYS_pidfd_open, pid, 0);
        if (r->watch >= 0 && rnl_agent_watch(a, r->watch, RNL_AGENT_WATCH, rank, EPOLLIN) < 0)
            rnl_agent_drop_fd(a, &r->watch);
    }
    atomic_store_explicit(&a->status->rank[rank].pid, (uint32_t)pid, memory_order_relaxed);
    if (rnl_membership_join(a->members, rank, 0) < 0)
        rnl_agent_fail(a, rank, ENOMEM);
    rnl_agent_flush(a, rank);
}

/* ---- listening ---- */

static void hung_up(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->joined > 0 && r->joined != r->started) { /* not the launcher's child: no exit status will come */
        found_gone(a, rank, RNL_DEATH_EXIT, -1);
        return;
    }
    r->hung_up = true;
    r->hung_up_ns = a->now_ns;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, r->sock, NULL);
    rnl_agent_wish(a, a->now_ns + EXIT_FOLLOWS_NS);
}

/* Takes back the join of a rank whose open failed afterwards (an option does not fit this job). It may try again. */
static void unjoin(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    rnl_agent_drop_fd(a, &r->sock);
    rnl_agent_drop_fd(a, &r->watch);
    rnl_agent_drop_replies(r);
    r->interest = 0;
    r->joined = 0;
    r->has_sent = false;
    rnl_membership_unjoin(a->members, rank);
}

/* Handles a message of a rank. Returns 1 if the rank left or broke the protocol, else 0. */
static int heard(struct rnl_agent *a, uint32_t rank, const struct rnl_msg *msg)
{
    bool had_sent = a->rank[rank].has_sent;
    a->rank[rank].has_sent = true;
    a->rank[rank].stopped_ns = 0; /* it sent, so it is not stopped */
    switch (msg->kind) {
    case RNL_MSG_SEGMENT:
        return rnl_agent_give_segment(a, rank, &msg->u.segment) < 0;
    case RNL_MSG_HAVE:
        return rnl_agent_had_segment(a, rank, msg->u.peer.rank) < 0;
    case RNL_MSG_DISCONNECT:
        return rnl_membership_disconnect(a->members, rank, msg->u.peer.rank) < 0;
    case RNL_MSG_REPORT:
        return rnl_membership_report(a->members, rank, msg->u.report.wave, msg->u.report.activity) < 0;
    case RNL_MSG_OVERRAN:
        a->rank[rank].overran = msg->u.overran;
        return 0;
    case RNL_MSG_LEAVE:
        if (!had_sent) {
            unjoin(a, rank);
            return 0;
        }
        rnl_membership_gone(a->members, rank, RNL_DEATH_EXIT, 0); /* after the close this is no death */
        return 1;
    }
    return 1;
}

static void receive_sock(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_msg msg;
    for (int i = 0; i < PACKETS_PER_TURN && is_joined(a, rank) && !r->first && !r->hung_up; i++) {
        int e = rnl_seqpacket_receive(r->sock, bytes, sizeof bytes, 0, &p, 0);
        if (e == RNL_ERR_JOB)
            hung_up(a, rank);
        else if (e == RNL_ERR_SYSTEM)
            rnl_agent_fail(a, rank, rnl_last_error()->sys_errno);
        if (e < 0)
            return;
        if (p.cut || rnl_msg_decode(RNL_FROM_RANK, bytes, p.n, a->size, &msg) != RNL_MSG_GOOD || heard(a, rank, &msg)) {
            found_gone(a, rank, RNL_DEATH_BROKEN, 0); /* no effect on a rank that has just left */
            return;
        }
    }
}

static void receive_bootstrap(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_msg msg;
    if (r->bootstrap < 0)
        return;
    int e = rnl_seqpacket_receive(r->bootstrap, bytes, sizeof bytes, 1, &p, 0);
    if (e == RNL_NO_ROOM)
        return;
    if (e < 0) {
        rnl_agent_drop_fd(a, &r->bootstrap);
        if (e == RNL_ERR_SYSTEM) /* RNL_ERR_JOB: no process holds the other end any more */
            rnl_agent_fail(a, rank, rnl_last_error()->sys_errno);
        else if (rnl_membership_state(a->members, rank) == RNL_RANK_STARTING && !r->started) /* its exit is not seen */
            found_gone(a, rank, RNL_DEATH_NEVER_JOINED, -1);
        return;
    }
    enum rnl_msg_verdict verdict = rnl_msg_decode(RNL_FROM_RANK, bytes, p.n, a->size, &msg);
    if (verdict == RNL_MSG_BAD || msg.kind != RNL_MSG_HELLO || p.cut || p.nfds != 1 ||
        !rnl_seqpacket_is_socket(p.fds[0])) {
        const bool stays = p.nfds == 1 && rnl_seqpacket_refuse_fd(p.fds[0]) < 0;
        if (stays) /* so at most one such descriptor stays open for each rank */
            rnl_agent_drop_fd(a, &r->bootstrap);
        if (stays || verdict == RNL_MSG_BAD || msg.kind != RNL_MSG_HELLO)
            found_gone(a, rank, RNL_DEATH_BROKEN, 0);
        return; /* a good HELLO: this process may be out of descriptors, and the rank sees its socket closed */
    }
    if (is_joined(a, rank))
        receive_sock(a, rank); /* its LEAVE may wait there, sent before this HELLO */
    enum rnl_rank_state state = rnl_membership_state(a->members, rank);
    if (verdict == RNL_MSG_OTHER_VERSION)
        reject(p.fds[0], RNL_REJECTED_VERSION);
    else if (state == RNL_RANK_STARTING)
        admit(a, rank, p.fds[0], p.pid);
    else
        reject(p.fds[0], state == RNL_RANK_DEAD ? RNL_REJECTED_DEAD : RNL_REJECTED_TWICE);
}

void rnl_agent_attest(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    atomic_store_explicit(&a->status->rank[rank].attested_ns, now_ns, memory_order_relaxed); /* orders no other data */
}

/* Declares a rank dead that closed its socket without its process ending, since it cannot be reached any more; waits
 * longer if the process is seen to be ending. */
static void left(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->rounds < EXIT_ROUNDS && is_ending(r)) {
        r->rounds++;
        r->hung_up_ns = a->now_ns;
        rnl_agent_wish(a, a->now_ns + EXIT_FOLLOWS_NS);
    } else {
        found_gone(a, rank, RNL_DEATH_LEFT, 0);
    }
}

static void late(struct rnl_agent *a)
{
    a->deadline_ns = UINT64_MAX;
    for (uint32_t i = 0; i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        if (is_gone(a, i))
            continue;
        if (r->broken) {
            found_gone(a, i, RNL_DEATH_BROKEN, 0);
            continue;
        }
        if (r->hung_up && a->now_ns >= r->hung_up_ns + EXIT_FOLLOWS_NS) {
            left(a, i);
            continue;
        }
        if (r->hung_up)
            rnl_agent_wish(a, r->hung_up_ns + EXIT_FOLLOWS_NS);
        if (r->retry) {
            r->retry = false;
            rnl_agent_flush(a, i);
        }
    }
}

void rnl_agent_step(struct rnl_agent *a, uint64_t now_ns)
{
    struct epoll_event events[64];
    a->now_ns = now_ns;
    int n = epoll_wait(a->epoll, events, 64, 0);
    for (int i = 0; i < n; i++) {
        uint32_t rank = (uint32_t)events[i].data.u64;
        struct agent_rank *r = &a->rank[rank];
        switch ((enum rnl_agent_source)(events[i].data.u64 >> 32)) {
        case RNL_AGENT_BOOTSTRAP:
            receive_bootstrap(a, rank);
            break;
        case RNL_AGENT_SOCK:
            if (events[i].events & EPOLLOUT)
                rnl_agent_flush(a, rank);
            if (events[i].events & EPOLLIN)
                receive_sock(a, rank);
            else if ((events[i].events & (EPOLLHUP | EPOLLERR)) && is_joined(a, rank) && !r->hung_up)
                hung_up(a, rank); /* found although the rank is not read from while replies are queued */
            break;
        case RNL_AGENT_WATCH:
            found_gone(a, rank, RNL_DEATH_EXIT, -1);
            rnl_agent_drop_fd(a, &r->watch);
            break;
        }
    }
    if (now_ns >= a->deadline_ns)
        late(a);
}

uint64_t rnl_agent_deadline_ns(const struct rnl_agent *a)
{
    return a->deadline_ns;
}

int rnl_agent_fd(const struct rnl_agent *a)
{
    return a->epoll;
}

/* ---- the launcher's side ---- */

int rnl_agent_word(struct rnl_agent *a, const struct rnl_word *w, uint64_t now_ns)
{
    a->now_ns = now_ns;
    return rnl_membership_receive(a->members, w);
}

void rnl_agent_lost(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    a->now_ns = now_ns;
    rnl_membership_gone(a->members, rank, RNL_DEATH_HOST, 0);
}

void rnl_agent_started(struct rnl_agent *a, uint32_t rank, pid_t pid)
{
    a->rank[rank].started = pid;
}

void rnl_agent_exited(struct rnl_agent *a, uint32_t rank, int signal, int status, uint64_t now_ns)
{
    enum rnl_rank_state state = rnl_membership_state(a->members, rank);
    a->now_ns = now_ns;
    if (signal == SIGSEGV && is_joined(a, rank) && a->rank[rank].sock >= 0)
        receive_sock(a, rank); /* it may have said why */
    if (signal != 0)
        rnl_membership_gone(a->members, rank, RNL_DEATH_SIGNAL, signal);
    else
        rnl_membership_gone(a->members, rank, state == RNL_RANK_STARTING ? RNL_DEATH_NEVER_JOINED : RNL_DEATH_EXIT,
                            status);
    rnl_agent_drop_fd(a, &a->rank[rank].bootstrap);
}
