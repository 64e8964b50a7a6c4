/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.c - ranks' lives and what is heard of them; what they are told goes by agent_tell.c, what they ask for is in
 * agent_give.c, the agent's own beginning in agent_new.c. */
#include "job/agent.h"

#include "base/env.h"
#include "base/error.h"
#include "job/agent_in.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PACKETS_PER_TURN = 32,      /* of one rank before another's turn */
    EXIT_FOLLOWS_NS = 40000000, /* a process that ends closes its sockets a little before it can be waited for */
    EXIT_ROUNDS = 25,           /* ... so often longer if it is seen to be ending */
    ENDING = 4                  /* a flag of the kernel's, PF_EXITING */
};
/* ---- telling ---- */

static void tell_wave(struct rnl_agent *a, enum rnl_word_kind kind, uint64_t wave)
{
    struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
    msg.u.event.kind = kind == RNL_WORD_DONE ? RNL_EVENT_CLOSE_DONE : RNL_EVENT_CLOSE_ASK;
    msg.u.event.wave = wave;
    a->close_done |= kind == RNL_WORD_DONE;
    for (uint32_t i = 0; i < a->size; i++)
        if (a->rank[i].state == RNL_RANK_JOINED)
            rnl_agent_tell(a, i, &msg, -1);
}

static void step_waves(struct rnl_agent *a, enum rnl_waves_step step)
{
    if (step == RNL_WAVES_WAIT)
        rnl_agent_close_without(a);
    if (step != RNL_WAVES_DONE && step != RNL_WAVES_ASK)
        return;
    const struct rnl_word word = {.kind = step == RNL_WAVES_DONE ? RNL_WORD_DONE : RNL_WORD_ASK,
                                  .wave = rnl_waves_now(a->waves)};
    rnl_agent_spread(a, &word);
    tell_wave(a, word.kind, word.wave);
}
/* ---- life and death ---- */

static void set_state(struct rnl_agent *a, uint32_t rank, enum rnl_rank_state state)
{
    a->rank[rank].state = state;
    atomic_store_explicit(&a->status->rank[rank].state, state, memory_order_release); /* pairs with readers of why */
}

void rnl_agent_forget(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    rnl_agent_drop_fd(a, &r->sock);
    rnl_agent_drop_fd(a, &r->watch);
    rnl_agent_drop_fd(a, &r->raise);
    rnl_agent_drop_fd(a, &r->net);
    rnl_agent_tell_none(r);
    rnl_agent_give_gone(a, rank);
}

static void tell_death(struct rnl_agent *a, uint32_t rank, uint32_t dead)
{
    const struct agent_rank *d = &a->rank[dead];
    struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
    msg.u.event.kind = RNL_EVENT_DEATH;
    msg.u.event.rank = dead;
    msg.u.event.incarnation = d->incarnation;
    msg.u.event.why = d->why;
    msg.u.event.detail = d->detail;
    rnl_agent_tell(a, rank, &msg, -1);
}

void rnl_agent_gone(struct rnl_agent *a, uint32_t rank, int why, int detail)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->state != RNL_RANK_STARTING && r->state != RNL_RANK_JOINED)
        return;
    if (a->close_done) { /* nobody owes or expects anything any more */
        set_state(a, rank, RNL_RANK_LEFT);
        rnl_agent_forget(a, rank);
        return;
    }
    r->why = why;
    r->detail = detail;
    atomic_store_explicit(&a->status->rank[rank].why, why, memory_order_relaxed);
    atomic_store_explicit(&a->status->rank[rank].detail, detail, memory_order_relaxed);
    set_state(a, rank, RNL_RANK_DEAD);
    r->still = 0;
    rnl_agent_forget(a, rank);
    for (uint32_t i = 0; i < a->size; i++)
        tell_death(a, i, rank);
    if (!a->leads && r->away) /* the leader told us */
        return;
    const struct rnl_word word = {
        .kind = a->leads ? RNL_WORD_DEATH : RNL_WORD_GONE, .rank = rank, .why = why, .detail = detail};
    rnl_agent_spread(a, &word);
    if (a->leads)
        step_waves(a, rnl_waves_gone(a->waves, rank));
}

static void found_gone(struct rnl_agent *a, uint32_t rank, int why, int detail)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->state != RNL_RANK_STARTING && r->state != RNL_RANK_JOINED)
        return;
    if (!a->close_done || why == RNL_DEATH_BROKEN) {
        r->found = 1;
        r->why = why;
        r->detail = detail;
        a->found++;
    }
    rnl_agent_gone(a, rank, why, detail);
}

int rnl_agent_next_death(struct rnl_agent *a, struct rnl_agent_death *out)
{
    for (uint32_t i = 0; a->found > 0 && i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        if (!r->found)
            continue;
        r->found = 0;
        a->found--;
        *out = (struct rnl_agent_death){.rank = i, .why = r->why, .detail = r->detail, .sys_errno = r->sys_errno};
        return 1;
    }
    return 0;
}

static void joins(struct rnl_agent *a, uint32_t rank)
{
    const struct rnl_word word = {.kind = RNL_WORD_JOINED, .rank = rank};
    a->rank[rank].still = 0;
    a->rank[rank].still_ns = 0;
    set_state(a, rank, RNL_RANK_JOINED);
    if (a->leads)
        rnl_waves_join(a->waves, rank);
    else
        rnl_agent_spread(a, &word);
}

static void unjoins(struct rnl_agent *a, uint32_t rank)
{
    const struct rnl_word word = {.kind = RNL_WORD_UNJOINED, .rank = rank};
    set_state(a, rank, RNL_RANK_STARTING);
    if (a->leads)
        rnl_waves_unjoin(a->waves, rank);
    else
        rnl_agent_spread(a, &word);
}

/* 0, -1: it was not asked for that. */
static int reports(struct rnl_agent *a, uint32_t rank, uint64_t wave, uint64_t activity)
{
    const struct rnl_word word = {.kind = RNL_WORD_REPORT, .rank = rank, .wave = wave, .activity = activity};
    if (!a->leads) {
        if (wave > a->wave)
            return -1;
        rnl_agent_spread(a, &word);
        return 0;
    }
    enum rnl_waves_step step = rnl_waves_report(a->waves, rank, wave, activity);
    if (step == RNL_WAVES_WRONG)
        return -1;
    step_waves(a, step);
    return 0;
}

static void refuse(int sock, enum rnl_refused why)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_msg msg = {.kind = RNL_MSG_REFUSED};
    msg.u.refused.why = why;
    rnl_packet_send(sock, bytes, rnl_msg_encode(&msg, bytes), NULL, 0, 0);
    close(sock);
}

static void admit(struct rnl_agent *a, uint32_t rank, int sock, pid_t pid)
{
    struct agent_rank *r = &a->rank[rank];
    if (rnl_agent_watch(a, sock, RNL_AGENT_SOCK, rank, EPOLLIN) < 0) {
        refuse(sock, RNL_REFUSED_NO_ROOM);
        return;
    }
    r->sock = sock;
    r->interest = EPOLLIN;
    r->joined = pid;
    if (pid > 0 && pid != r->started) { /* below a wrapper; without a watch its socket tells nearly as well */
        r->watch = (int)syscall(SYS_pidfd_open, pid, 0);
        if (r->watch >= 0 && rnl_agent_watch(a, r->watch, RNL_AGENT_WATCH, rank, EPOLLIN) < 0)
            rnl_agent_drop_fd(a, &r->watch);
    }
    atomic_store_explicit(&a->status->rank[rank].pid, (uint32_t)pid, memory_order_relaxed);
    joins(a, rank);
    struct rnl_msg msg = {.kind = RNL_MSG_WELCOME};
    struct rnl_msg_welcome *w = &msg.u.welcome;
    w->rank = rank;
    w->size = a->size;
    w->incarnation = r->incarnation;
    w->flags = (a->keep_going ? RNL_WELCOME_KEEP_GOING : 0u) | (a->places_fd < 0 ? 0u : RNL_WELCOME_NETWORK);
    memcpy(w->key, a->key, sizeof w->key);
    memcpy(w->host, a->host, sizeof w->host);
    rnl_agent_tell(a, rank, &msg, -1);
    explicit_bzero(&msg, sizeof msg);
    /* What happened before: nothing was kept for it while it might never come. */
    rnl_agent_give_connects(a, rank);
    for (uint32_t i = 0; i < a->size; i++)
        if (a->rank[i].state == RNL_RANK_DEAD)
            tell_death(a, rank, i);
}

/* ---- listening ---- */

static void hung_up(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->joined > 0 && r->joined != r->started) { /* not the launcher's child: nobody can tell us more */
        found_gone(a, rank, RNL_DEATH_EXIT, -1);
        return;
    }
    r->hung_up = 1;
    r->hung_up_ns = a->now_ns;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, r->sock, NULL);
    rnl_agent_wish(a, a->now_ns + EXIT_FOLLOWS_NS);
}

/* Its open failed after it had joined (an option that does not fit this job): it may try again. */
static void unjoin(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    rnl_agent_drop_fd(a, &r->sock);
    rnl_agent_drop_fd(a, &r->watch);
    rnl_agent_tell_none(r);
    r->interest = 0;
    r->joined = 0;
    unjoins(a, rank);
}

/* 0 = go on, 1 = the rank left, died or broke the protocol. */
static int heard(struct rnl_agent *a, uint32_t rank, const struct rnl_msg *msg)
{
    uint8_t asked = a->rank[rank].asked;
    a->rank[rank].asked = 1;
    rnl_agent_goes_on(a, rank);
    switch (msg->kind) {
    case RNL_MSG_SEGMENT:
        return rnl_agent_give_segment(a, rank, &msg->u.segment) < 0;
    case RNL_MSG_HAVE:
        return rnl_agent_give_had(a, rank, msg->u.peer.rank) < 0;
    case RNL_MSG_PART:
        return rnl_agent_part(a, rank, msg->u.peer.rank, (int)msg->u.peer.why) < 0;
    case RNL_MSG_FD:
        rnl_agent_give_fd(a, rank, &msg->u.fd);
        return 0;
    case RNL_MSG_REPORT:
        return reports(a, rank, msg->u.report.wave, msg->u.report.activity) < 0;
    case RNL_MSG_LEAVE:
        if (!asked) {
            a->rank[rank].asked = 0;
            unjoin(a, rank);
            return 0;
        }
        rnl_agent_gone(a, rank, RNL_DEATH_EXIT, 0); /* after the close: just gone */
        return 1;
    }
    return 1;
}

static void hear_sock(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_packet p;
    struct rnl_msg msg;
    for (int i = 0; i < PACKETS_PER_TURN && r->state == RNL_RANK_JOINED && r->answers == 0 && !r->hung_up; i++) {
        int e = rnl_packet_receive(r->sock, bytes, sizeof bytes, 0, &p, 0);
        if (e == -EAGAIN)
            return;
        if (e < 0) {
            if (e == -EPIPE)
                hung_up(a, rank);
            else
                rnl_agent_fail(a, rank, -e);
            return;
        }
        if (p.cut || rnl_msg_decode(RNL_FROM_RANK, bytes, p.n, a->size, &msg) != RNL_MSG_GOOD || heard(a, rank, &msg)) {
            found_gone(a, rank, RNL_DEATH_BROKEN, 0); /* unless it left */
            return;
        }
    }
}

static void hear_door(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_packet p;
    struct rnl_msg msg;
    if (r->door < 0)
        return;
    int e = rnl_packet_receive(r->door, bytes, sizeof bytes, 1, &p, 0);
    if (e == -EAGAIN)
        return;
    if (e < 0) {
        rnl_agent_drop_fd(a, &r->door);
        if (e != -EPIPE) /* else nobody holds the other end any more */
            rnl_agent_fail(a, rank, -e);
        else if (r->state == RNL_RANK_STARTING && !r->started) /* ... and nobody sees its process end */
            found_gone(a, rank, RNL_DEATH_NEVER_JOINED, -1);
        return;
    }
    enum rnl_msg_verdict verdict = rnl_msg_decode(RNL_FROM_RANK, bytes, p.n, a->size, &msg);
    if (verdict == RNL_MSG_BAD || msg.kind != RNL_MSG_HELLO || p.cut || p.nfds != 1 ||
        rnl_packet_socket_check(p.fds[0]) < 0) {
        int stays = p.nfds == 1 && rnl_packet_refuse_fd(p.fds[0]) < 0;
        if (stays) /* one for each rank */
            rnl_agent_drop_fd(a, &r->door);
        if (stays || verdict == RNL_MSG_BAD || msg.kind != RNL_MSG_HELLO)
            found_gone(a, rank, RNL_DEATH_BROKEN, 0);
        return; /* else we may have run out of descriptors: it sees its socket closed */
    }
    if (r->state == RNL_RANK_JOINED)
        hear_sock(a, rank); /* it may have left before it knocks again */
    if (verdict == RNL_MSG_OTHER_VERSION)
        refuse(p.fds[0], RNL_REFUSED_VERSION);
    else if (r->state == RNL_RANK_STARTING)
        admit(a, rank, p.fds[0], p.pid);
    else
        refuse(p.fds[0], r->state == RNL_RANK_DEAD ? RNL_REFUSED_DEAD : RNL_REFUSED_TWICE);
}

uint32_t rnl_agent_here(const struct rnl_agent *a)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->size; i++) /* who closed keeps its door open for a second open, and cannot use it */
        n += a->rank[i].state == RNL_RANK_JOINED || (a->rank[i].state == RNL_RANK_STARTING && a->rank[i].door >= 0);
    return n;
}

void rnl_agent_vouch(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    atomic_store_explicit(&a->status->rank[rank].vouched_ns, now_ns, memory_order_relaxed); /* a time, and no more */
}

/* Its process ends, and cannot be waited for yet. Of this file the kernel asks nobody, so that it never blocks. */
static int is_ending(const struct agent_rank *r)
{
    char path[32], text[512];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)(r->joined > 0 ? r->joined : r->started));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *after = strrchr(text, ')'); /* ") S PARENT GROUP SESSION TERMINAL ITS-GROUP FLAGS" */
    return after != NULL && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & ENDING);
}

/* Its socket is closed, and no exit has followed. It cannot be reached any more, and cannot reach us. */
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
        if (r->state != RNL_RANK_STARTING && r->state != RNL_RANK_JOINED)
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
            r->retry = 0;
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
        case RNL_AGENT_DOOR:
            hear_door(a, rank);
            break;
        case RNL_AGENT_SOCK:
            if (events[i].events & EPOLLOUT)
                rnl_agent_flush(a, rank);
            if (events[i].events & EPOLLIN)
                hear_sock(a, rank);
            else if ((events[i].events & (EPOLLHUP | EPOLLERR)) && r->state == RNL_RANK_JOINED && !r->hung_up)
                hung_up(a, rank); /* it takes in no answers any more */
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

/* ---- other agents ---- */

static int hear_leader(struct rnl_agent *a, const struct rnl_word *w)
{
    switch (w->kind) {
    case RNL_WORD_DEATH:
        if (a->rank[w->rank].away)
            rnl_agent_gone(a, w->rank, w->why, w->detail);
        return 0;
    case RNL_WORD_ASK:
    case RNL_WORD_DONE:
        a->wave = w->wave;
        tell_wave(a, w->kind, w->wave);
        return 0;
    case RNL_WORD_PART:
        rnl_agent_tell_part(a, w->rank, w->other, w->why);
        return 0;
    case RNL_WORD_GIVE_UP:
        if (!a->rank[w->rank].away)
            rnl_agent_give_up(a, w->rank);
        return 0;
    }
    return -1;
}

static int hear_follower(struct rnl_agent *a, const struct rnl_word *w)
{
    enum rnl_rank_state state = a->rank[w->rank].state;
    switch (w->kind) {
    case RNL_WORD_JOINED:
        if (state == RNL_RANK_STARTING)
            joins(a, w->rank);
        return 0;
    case RNL_WORD_UNJOINED:
        if (state == RNL_RANK_JOINED)
            unjoins(a, w->rank);
        return 0;
    case RNL_WORD_REPORT:
        return reports(a, w->rank, w->wave, w->activity) < 0 && state == RNL_RANK_JOINED ? -1 : 0;
    case RNL_WORD_GONE:
        rnl_agent_gone(a, w->rank, w->why, w->detail);
        return 0;
    case RNL_WORD_STOPPED:
        rnl_agent_stands_still(a, w->rank);
        return 0;
    case RNL_WORD_RUNS:
        a->rank[w->rank].still = 0;
        return 0;
    case RNL_WORD_PART:
        if (a->rank[w->other].away)
            rnl_agent_spread(a, w);
        else
            rnl_agent_tell_part(a, w->rank, w->other, w->why);
        return 0;
    }
    return -1;
}

int rnl_agent_word(struct rnl_agent *a, const struct rnl_word *w, uint64_t now_ns)
{
    a->now_ns = now_ns;
    int bad = w->rank >= a->size || w->other >= a->size || (w->why < 0 || w->why > RNL_DEATH_HOST);
    if (!bad)
        bad = (a->leads ? hear_follower(a, w) : hear_leader(a, w)) < 0;
    return bad ? rnl_fail(RNL_ERR_JOB, "an agent said something about rank %u that is not understood", w->rank) : 0;
}

void rnl_agent_lost(struct rnl_agent *a, uint32_t rank, uint64_t now_ns)
{
    a->now_ns = now_ns;
    rnl_agent_gone(a, rank, RNL_DEATH_HOST, 0);
}

/* ---- the launcher's side ---- */

void rnl_agent_started(struct rnl_agent *a, uint32_t rank, pid_t pid)
{
    a->rank[rank].started = pid;
}

void rnl_agent_exited(struct rnl_agent *a, uint32_t rank, int signal, int status, uint64_t now_ns)
{
    struct agent_rank *r = &a->rank[rank];
    a->now_ns = now_ns;
    if (signal != 0)
        rnl_agent_gone(a, rank, RNL_DEATH_SIGNAL, signal);
    else
        rnl_agent_gone(a, rank, r->state == RNL_RANK_STARTING ? RNL_DEATH_NEVER_JOINED : RNL_DEATH_EXIT, status);
    rnl_agent_drop_fd(a, &r->door);
}
