/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.c - ranks' lives and news; what they ask for is in agent_give.c. */
#include "job/agent.h"

#include "base/bell.h"
#include "base/env.h"
#include "base/error.h"
#include "job/agent_in.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum source { DOOR, SOCK, WATCH };
enum {
    PACKETS_PER_TURN = 32,      /* of one rank before another's turn */
    EXIT_FOLLOWS_NS = 40000000, /* a process that ends closes its sockets a little before it can be waited for */
    RETRY_NS = 10000000         /* after the kernel refused a packet for want of memory */
};
static const uint64_t refused_ns_max = 3000000000; /* so long a rank may hear nothing for that reason */

/* ---- watching ---- */

static int watch(struct rnl_agent *a, int fd, enum source source, uint32_t rank, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 32 | rank};
    if (epoll_ctl(a->epoll, EPOLL_CTL_MOD, fd, &e) == 0)
        return 0;
    return errno == ENOENT && epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -errno;
}

static void drop_fd(struct rnl_agent *a, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, *fd, NULL); /* not by close: others may hold the same file open */
    close(*fd);
    *fd = -1;
}

static void wish(struct rnl_agent *a, uint64_t at_ns)
{
    if (at_ns < a->deadline_ns)
        a->deadline_ns = at_ns;
}

/* ---- telling ---- */

static void wake(struct rnl_agent *a, uint32_t rank)
{
    const uint64_t one = 1;
    struct agent_rank *r = &a->rank[rank];
    /* Pairs with the owner's relaxed polling: the event itself travels through the socket. */
    atomic_fetch_add_explicit(&a->status->rank[rank].news, 1, memory_order_release);
    /* Before the bell: whoever sees its word change must find the descriptor raised. */
    while (r->raise >= 0 && write(r->raise, &one, sizeof one) < 0 && errno == EINTR)
        ;
    atomic_fetch_add_explicit(&a->bells[rank].word, 1, memory_order_release); /* pairs with the load before park */
    rnl_host_wake(NULL, &a->bells[rank].word);
}

static void pop(struct agent_rank *r)
{
    struct agent_out *o = r->first;
    r->first = o->next;
    if (r->first == NULL)
        r->last = NULL;
    r->queued--;
    r->answers -= o->is_answer;
    if (o->owned >= 0)
        close(o->owned);
    free(o);
}

/* The system does not let us serve this rank: it is to be declared broken, which is not its fault. */
static void fail_rank(struct rnl_agent *a, uint32_t rank, int e)
{
    a->rank[rank].broken = 1;
    a->rank[rank].sys_errno = e;
    wish(a, a->now_ns);
}

/* Sends what the socket takes. Never ends a rank's life: a broken socket shows itself to the loop. */
static void flush(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    int news = 0, e = 0; /* news: also answers, since nobody need wait for them in a call */
    if (r->sock < 0 || r->state != RNL_RANK_JOINED)
        return;
    while (r->first != NULL && e == 0) {
        const struct agent_out *o = r->first;
        const int pages[2] = {a->status_fd, a->bells_fd};
        if (o->is_welcome)
            e = rnl_packet_send(r->sock, o->bytes, o->n, pages, 2, 0);
        else
            e = rnl_packet_send(r->sock, o->bytes, o->n, &o->owned, o->owned >= 0, 0);
        if (e == 0) {
            news |= !o->is_welcome;
            r->refused_ns = 0;
            pop(r);
        }
    }
    if (e < 0 && e != -EAGAIN && e != -EPIPE && e != -ECONNRESET) { /* ENOBUFS, ETOOMANYREFS */
        r->retry = 1;
        wish(a, a->now_ns + RETRY_NS);
        if (r->refused_ns == 0)
            r->refused_ns = a->now_ns;
        else if (a->now_ns > r->refused_ns + refused_ns_max)
            fail_rank(a, rank, -e);
    }
    uint32_t interest = (r->answers > 0 ? 0u : EPOLLIN) | (e == -EAGAIN ? EPOLLOUT : 0u);
    if (!r->hung_up && interest != r->interest && watch(a, r->sock, SOCK, rank, interest) == 0)
        r->interest = interest;
    if (news)
        wake(a, rank);
}

void rnl_agent_tell(struct rnl_agent *a, uint32_t rank, const struct rnl_msg *msg, int owned)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->state != RNL_RANK_JOINED) {
        if (owned >= 0)
            close(owned);
        return;
    }
    struct agent_out *o = malloc(sizeof *o);
    if (o == NULL || r->queued > 3 * a->size + 64) {
        fail_rank(a, rank, o == NULL ? ENOMEM : 0); /* or it makes us queue without end */
        if (owned >= 0)
            close(owned);
        free(o);
        return;
    }
    o->next = NULL;
    o->owned = owned;
    o->is_answer = msg->kind == RNL_MSG_GIVE;
    o->is_welcome = msg->kind == RNL_MSG_WELCOME;
    o->n = rnl_msg_encode(msg, o->bytes);
    if (r->last != NULL)
        r->last->next = o;
    else
        r->first = o;
    r->last = o;
    r->queued++;
    r->answers += o->is_answer;
    flush(a, rank);
}

static void step_waves(struct rnl_agent *a, enum rnl_waves_step step)
{
    struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
    msg.u.event.kind = RNL_EVENT_CLOSE_ASK;
    msg.u.event.wave = rnl_waves_now(a->waves);
    if (step == RNL_WAVES_DONE) {
        msg.u.event.kind = RNL_EVENT_CLOSE_DONE;
        a->close_done = 1;
    } else if (step != RNL_WAVES_ASK) {
        return;
    }
    for (uint32_t i = 0; i < a->size; i++)
        if (a->rank[i].state == RNL_RANK_JOINED)
            rnl_agent_tell(a, i, &msg, -1);
}

/* ---- life and death ---- */

static void set_state(struct rnl_agent *a, uint32_t rank, enum rnl_rank_state state)
{
    a->rank[rank].state = state;
    atomic_store_explicit(&a->status->rank[rank].state, state, memory_order_release); /* pairs with readers of why */
}

static void forget(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    drop_fd(a, &r->sock);
    drop_fd(a, &r->watch);
    drop_fd(a, &r->raise);
    while (r->first != NULL)
        pop(r);
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

static void gone(struct rnl_agent *a, uint32_t rank, int why, int detail)
{
    struct agent_rank *r = &a->rank[rank];
    if (r->state != RNL_RANK_STARTING && r->state != RNL_RANK_JOINED)
        return;
    if (a->close_done) { /* nobody owes or expects anything any more */
        set_state(a, rank, RNL_RANK_LEFT);
        forget(a, rank);
        return;
    }
    r->why = why;
    r->detail = detail;
    atomic_store_explicit(&a->status->rank[rank].why, why, memory_order_relaxed);
    atomic_store_explicit(&a->status->rank[rank].detail, detail, memory_order_relaxed);
    set_state(a, rank, RNL_RANK_DEAD);
    forget(a, rank);
    for (uint32_t i = 0; i < a->size; i++)
        tell_death(a, i, rank);
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
    gone(a, rank, why, detail);
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
    if (watch(a, sock, SOCK, rank, EPOLLIN) < 0) {
        refuse(sock, RNL_REFUSED_NO_ROOM);
        return;
    }
    r->sock = sock;
    r->interest = EPOLLIN;
    r->joined = pid;
    if (pid > 0 && pid != r->started) { /* below a wrapper; without a watch its socket tells nearly as well */
        r->watch = (int)syscall(SYS_pidfd_open, pid, 0);
        if (r->watch >= 0 && watch(a, r->watch, WATCH, rank, EPOLLIN) < 0)
            drop_fd(a, &r->watch);
    }
    atomic_store_explicit(&a->status->rank[rank].pid, (uint32_t)pid, memory_order_relaxed);
    set_state(a, rank, RNL_RANK_JOINED);
    rnl_waves_join(a->waves, rank);
    struct rnl_msg msg = {.kind = RNL_MSG_WELCOME};
    struct rnl_msg_welcome *w = &msg.u.welcome;
    w->rank = rank;
    w->size = a->size;
    w->incarnation = r->incarnation;
    w->flags = a->keep_going ? RNL_WELCOME_KEEP_GOING : 0;
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
    wish(a, a->now_ns + EXIT_FOLLOWS_NS);
}

/* Its open failed after it had joined (an option that does not fit this job): it may try again. */
static void unjoin(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    drop_fd(a, &r->sock);
    drop_fd(a, &r->watch);
    while (r->first != NULL)
        pop(r);
    r->interest = 0;
    r->joined = 0;
    set_state(a, rank, RNL_RANK_STARTING);
    rnl_waves_unjoin(a->waves, rank);
}

/* 0 = go on, 1 = the rank left, died or broke the protocol. */
static int heard(struct rnl_agent *a, uint32_t rank, const struct rnl_msg *msg)
{
    uint8_t asked = a->rank[rank].asked;
    a->rank[rank].asked = 1;
    switch (msg->kind) {
    case RNL_MSG_SEGMENT:
        return rnl_agent_give_segment(a, rank, &msg->u.segment) < 0;
    case RNL_MSG_HAVE:
        return rnl_agent_give_had(a, rank, msg->u.peer.rank) < 0;
    case RNL_MSG_PART:
        return rnl_agent_part(a, rank, msg->u.peer.rank) < 0;
    case RNL_MSG_FD:
        rnl_agent_give_fd(a, rank, &msg->u.fd);
        return 0;
    case RNL_MSG_REPORT: {
        enum rnl_waves_step step = rnl_waves_report(a->waves, rank, msg->u.report.wave, msg->u.report.activity);
        if (step == RNL_WAVES_WRONG)
            return 1;
        step_waves(a, step);
        return 0;
    }
    case RNL_MSG_LEAVE:
        if (!asked) {
            a->rank[rank].asked = 0;
            unjoin(a, rank);
            return 0;
        }
        gone(a, rank, RNL_DEATH_EXIT, 0); /* after the close: just gone */
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
        int e = rnl_packet_receive(r->sock, bytes, sizeof bytes, &p, 0);
        if (e == -EAGAIN)
            return;
        if (e < 0) {
            if (e == -EPIPE)
                hung_up(a, rank);
            else
                fail_rank(a, rank, -e);
            return;
        }
        unsigned came = p.nfds;
        rnl_packet_drop(&p);
        if (p.cut || came != 0 || rnl_msg_decode(RNL_FROM_RANK, bytes, p.n, a->size, &msg) != RNL_MSG_GOOD ||
            heard(a, rank, &msg)) {
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
    int e = rnl_packet_receive(r->door, bytes, sizeof bytes, &p, 0);
    if (e == -EAGAIN)
        return;
    if (e < 0) {
        drop_fd(a, &r->door);
        if (e != -EPIPE) /* else nobody holds the other end any more */
            fail_rank(a, rank, -e);
        return;
    }
    enum rnl_msg_verdict verdict = rnl_msg_decode(RNL_FROM_RANK, bytes, p.n, a->size, &msg);
    if (verdict == RNL_MSG_BAD || msg.kind != RNL_MSG_HELLO || p.cut || p.nfds != 1 ||
        rnl_packet_socket_check(p.fds[0]) < 0) {
        rnl_packet_drop(&p);
        if (verdict == RNL_MSG_BAD || msg.kind != RNL_MSG_HELLO)
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

static void late(struct rnl_agent *a)
{
    a->deadline_ns = UINT64_MAX;
    for (uint32_t i = 0; i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        if (r->state != RNL_RANK_STARTING && r->state != RNL_RANK_JOINED)
            continue;
        if (r->broken || (r->hung_up && a->now_ns >= r->hung_up_ns + EXIT_FOLLOWS_NS)) {
            found_gone(a, i, RNL_DEATH_BROKEN, 0);
            continue;
        }
        if (r->hung_up)
            wish(a, r->hung_up_ns + EXIT_FOLLOWS_NS);
        if (r->retry) {
            r->retry = 0;
            flush(a, i);
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
        switch ((enum source)(events[i].data.u64 >> 32)) {
        case DOOR:
            hear_door(a, rank);
            break;
        case SOCK:
            if (events[i].events & EPOLLOUT)
                flush(a, rank);
            if (events[i].events & EPOLLIN)
                hear_sock(a, rank);
            else if ((events[i].events & (EPOLLHUP | EPOLLERR)) && r->state == RNL_RANK_JOINED && !r->hung_up)
                hung_up(a, rank); /* it takes in no answers any more */
            break;
        case WATCH:
            found_gone(a, rank, RNL_DEATH_EXIT, -1);
            drop_fd(a, &r->watch);
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

int rnl_agent_door(struct rnl_agent *a, uint32_t rank, int *childs_end)
{
    const int on = 1;
    int pair[2];
    int e = rnl_packet_pair(pair);
    if (e == 0 && setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        e = -errno;
    else if (e == 0)
        e = watch(a, pair[0], DOOR, rank, EPOLLIN);
    else
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                              "cannot make the socket of rank %u: raise the limit of descriptors (ulimit -n)", rank);
    if (e < 0) {
        close(pair[0]);
        close(pair[1]);
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot watch the socket of rank %u: start fewer ranks", rank);
    }
    a->rank[rank].door = pair[0];
    *childs_end = pair[1];
    return 0;
}

void rnl_agent_started(struct rnl_agent *a, uint32_t rank, pid_t pid)
{
    a->rank[rank].started = pid;
}

void rnl_agent_exited(struct rnl_agent *a, uint32_t rank, int signal, int status, uint64_t now_ns)
{
    struct agent_rank *r = &a->rank[rank];
    a->now_ns = now_ns;
    if (signal != 0)
        gone(a, rank, RNL_DEATH_SIGNAL, signal);
    else
        gone(a, rank, r->state == RNL_RANK_STARTING ? RNL_DEATH_NEVER_JOINED : RNL_DEATH_EXIT, status);
    drop_fd(a, &r->door);
}

static int pages(struct rnl_agent *a)
{
    size_t status_bytes = rnl_status_bytes(a->size), bells_bytes = (size_t)a->size * RNL_BELL_BYTES;
    int e = rnl_memfd_new("runnel-status", status_bytes, 0, &a->status_fd);
    if (e == 0)
        e = rnl_memfd_new("runnel-bells", bells_bytes, F_SEAL_SEAL, &a->bells_fd);
    if (e < 0)
        return e;
    void *status = mmap(NULL, status_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->status_fd, 0);
    a->status = status == MAP_FAILED ? NULL : status;
    void *bells = mmap(NULL, bells_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->bells_fd, 0);
    a->bells = bells == MAP_FAILED ? NULL : bells;
    if (a->status == NULL || a->bells == NULL)
        return -errno;
    /* Mapped by us before: ranks can read it only. */
    if (fcntl(a->status_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    a->status->magic = RNL_STATUS_MAGIC;
    a->status->version = RNL_STATUS_VERSION;
    a->status->size = a->size;
    for (uint32_t i = 0; i < a->size; i++) {
        struct rnl_status_rank *s = &a->status->rank[i];
        atomic_store_explicit(&s->incarnation, a->rank[i].incarnation, memory_order_relaxed);
        memcpy(s->host, a->host, sizeof s->host);
    }
    return 0;
}

int rnl_agent_new(const struct rnl_agent_options *opt, struct rnl_agent **out)
{
    struct rnl_agent *a = calloc(1, sizeof *a + opt->size * sizeof a->rank[0]);
    if (a == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", opt->size, RNL_S(opt->size));
    a->size = opt->size;
    a->keep_going = opt->keep_going != 0;
    a->deadline_ns = UINT64_MAX;
    a->status_fd = a->bells_fd = -1;
    memcpy(a->key, opt->key, sizeof a->key);
    memcpy(a->host, opt->host, sizeof a->host);
    for (uint32_t i = 0; i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        r->door = r->sock = r->watch = r->raise = -1;
        r->incarnation = i + 1;
    }
    int e = 0;
    size_t bytes = rnl_status_bytes(a->size) + (size_t)a->size * RNL_BELL_BYTES;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->had = calloc(((size_t)a->size * a->size + 7) / 8, 1);
    a->parted = calloc(((size_t)a->size * a->size + 7) / 8, 1);
    if (a->epoll < 0)
        e = -errno;
    else if (a->had == NULL || a->parted == NULL || rnl_waves_new(a->size, &a->waves) < 0)
        e = -ENOMEM;
    else
        e = pages(a);
    if (e < 0) {
        rnl_agent_free(a);
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot make the pages of a job of %u rank%s, %zu bytes: %s",
                              opt->size, RNL_S(opt->size), bytes, rnl_memfd_remedy(-e));
    }
    *out = a;
    return 0;
}

void rnl_agent_free(struct rnl_agent *a)
{
    if (a == NULL)
        return;
    for (uint32_t i = 0; i < a->size; i++) {
        forget(a, i);
        drop_fd(a, &a->rank[i].door);
    }
    rnl_agent_give_free(a);
    rnl_waves_free(a->waves);
    if (a->status != NULL)
        munmap(a->status, rnl_status_bytes(a->size));
    if (a->bells != NULL)
        munmap(a->bells, (size_t)a->size * RNL_BELL_BYTES);
    if (a->status_fd >= 0)
        close(a->status_fd);
    if (a->bells_fd >= 0)
        close(a->bells_fd);
    if (a->epoll >= 0)
        close(a->epoll);
    free(a->had);
    free(a->parted);
    explicit_bzero(a->key, sizeof a->key);
    free(a);
}
