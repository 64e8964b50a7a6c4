/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_send.c - manages what the agent's epoll watches, sends to ranks, and serves their requests for segments.
 * Replies that a rank's socket has no room for are queued here, events in the membership. Nothing here declares a rank
 * dead.
 *
 * A segment is made when the first of its two ranks asks for it; the other gets an event and asks when it likes, so
 * descriptors do not pile up in sockets. A rank that could not take in its descriptor, or could not map the segment,
 * asks again; the agent keeps its own descriptor until both ranks have sent HAVE. */
#include "base/error.h"
#include "job/agent_internal.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { RETRY_NS = 10000000 /* after the kernel refused a packet for want of memory */ };
static const uint64_t refused_ns_max = 3000000000; /* after so long the rank is declared broken */
static const uint64_t segment_bytes_max = (uint64_t)1 << 40;

/* ---- watching ---- */

int rnl_agent_watch(struct rnl_agent *a, int fd, enum rnl_agent_source source, uint32_t rank, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 32 | rank};
    if (epoll_ctl(a->epoll, EPOLL_CTL_MOD, fd, &e) == 0 ||
        (errno == ENOENT && epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e) == 0))
        return 0;
    return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot watch a socket of rank %u: start fewer ranks", rank);
}

void rnl_agent_drop_fd(struct rnl_agent *a, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(a->epoll, EPOLL_CTL_DEL, *fd, NULL); /* close alone would not do it: others may hold the file open */
    close(*fd);
    *fd = -1;
}

void rnl_agent_wish(struct rnl_agent *a, uint64_t at_ns)
{
    if (at_ns < a->deadline_ns)
        a->deadline_ns = at_ns;
}

/* ---- sending ---- */

static void pop(struct agent_rank *r)
{
    struct agent_reply *reply = r->first;
    r->first = reply->next;
    if (!r->first)
        r->last = NULL;
    if (reply->owned >= 0)
        close(reply->owned);
    free(reply);
}

void rnl_agent_drop_cards(struct agent_rank *r)
{
    for (uint32_t i = 0; i < r->cards.count * RNL_JOB_CARD_FDS; i++)
        close(r->cards.fd[i]);
    r->cards.count = 0;
}

void rnl_agent_drop_replies(struct agent_rank *r)
{
    while (r->first)
        pop(r);
}

void rnl_agent_fail(struct rnl_agent *a, uint32_t rank, int e)
{
    a->rank[rank].broken = true;
    a->rank[rank].sys_errno = e;
    rnl_agent_wish(a, a->now_ns);
}

int rnl_agent_welcome(struct rnl_agent *a, uint32_t rank)
{
    const int rings = a->rank[rank].rings;
    const struct rnl_agent_cards *cards = &a->rank[rank].cards;
    int fds[RNL_SEQPACKET_FDS_MAX] = {a->status_fd, a->bells_fd, a->rank[rank].net, rings, a->rings_memory};
    struct rnl_msg msg = {.kind = RNL_MSG_WELCOME,
                          .u.welcome = {.rank = rank,
                                        .size = a->size,
                                        .incarnation = rank + 1,
                                        .flags = (a->keep_going ? RNL_WELCOME_KEEP_GOING : 0u) |
                                                 (a->networked ? RNL_WELCOME_NETWORK : 0u) |
                                                 (a->networked && rings >= 0 ? RNL_WELCOME_RINGS : 0u),
                                        .cards = cards->count}};
    if (cards->count)
        memcpy(fds + 3, cards->fd, cards->count * RNL_JOB_CARD_FDS * sizeof fds[0]);
    memcpy(msg.u.welcome.key, a->key, sizeof msg.u.welcome.key);
    memcpy(msg.u.welcome.host, a->host, sizeof msg.u.welcome.host);
    int status = rnl_msg_send(a->rank[rank].sock, &msg, fds, 0);
    explicit_bzero(&msg, sizeof msg);
    if (status == 0) { /* a copy here would keep what comes for a rank that has left its rings, or a card running */
        rnl_agent_drop_fd(a, &a->rank[rank].rings);
        rnl_agent_drop_cards(&a->rank[rank]);
    }
    return status;
}

/* Sends the next reply or event, whichever was queued first. Returns 1 if there is none, else what rnl_seqpacket_send
 * does. */
static int send_next(struct rnl_agent *a, uint32_t rank)
{
    struct agent_rank *r = &a->rank[rank];
    const struct rnl_event *event = rnl_membership_next(a->members, rank);
    const struct agent_reply *reply = r->first;
    struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
    int status = 1;
    if (reply && reply->after <= rnl_membership_taken(a->members, rank)) {
        status = rnl_msg_send(r->sock, &reply->msg, &reply->owned, 0);
        if (status == 0)
            pop(r);
    } else if (event && event->kind == RNL_EVENT_JOB_GONE) {
        rnl_agent_fail(a, rank, ENOMEM); /* an event was lost for want of memory */
    } else if (event) {
        msg.u.event = *event;
        status = rnl_msg_send(r->sock, &msg, NULL, 0);
        if (status == 0)
            rnl_membership_took(a->members, rank);
    }
    return status;
}

void rnl_agent_flush(void *agent, uint32_t rank)
{
    struct rnl_agent *a = agent;
    struct agent_rank *r = &a->rank[rank];
    bool news = false; /* replies are news, too, since a rank may take them in without waiting for them */
    int status;
    if (r->sock < 0 || rnl_membership_state(a->members, rank) != RNL_RANK_JOINED)
        return;
    while ((status = send_next(a, rank)) == 0) {
        news = true;
        r->refused_ns = 0;
    }
    if (status == RNL_ERR_SYSTEM) { /* ENOBUFS, ETOOMANYREFS */
        r->retry = true;
        rnl_agent_wish(a, a->now_ns + RETRY_NS);
        if (r->refused_ns == 0)
            r->refused_ns = a->now_ns;
        else if (a->now_ns > r->refused_ns + refused_ns_max)
            rnl_agent_fail(a, rank, rnl_last_error()->sys_errno);
    }
    uint32_t interest = (r->first ? 0u : EPOLLIN) | (status == RNL_NO_ROOM ? EPOLLOUT : 0u);
    if (!r->hung_up && interest != r->interest && rnl_agent_watch(a, r->sock, RNL_AGENT_SOCK, rank, interest) == 0)
        r->interest = interest;
    if (news)
        rnl_waitfd_announce(&a->wait, &a->status->rank[rank].news, &a->bells[rank]);
}

/* ---- segments ---- */

/* Replies, with a copy of fd if the verdict is FOUND. */
static void reply(struct rnl_agent *a, uint32_t rank, uint32_t other, enum rnl_segment_verdict verdict, int fd,
                  int sys_errno)
{
    struct agent_rank *r = &a->rank[rank];
    struct agent_reply *new = malloc(sizeof *new);
    if (!new) {
        rnl_agent_fail(a, rank, ENOMEM);
        return;
    }
    const int copy = verdict == RNL_SEGMENT_FOUND ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (verdict == RNL_SEGMENT_FOUND && copy < 0) {
        verdict = RNL_SEGMENT_NONE;
        sys_errno = errno;
    }
    *new = (struct agent_reply){
        .after = rnl_membership_queued(a->members, rank),
        .msg = {.kind = RNL_MSG_REPLY, .u.reply = {.rank = other, .result = verdict, .sys_errno = sys_errno}},
        .owned = copy};
    if (r->last)
        r->last->next = new;
    else
        r->first = new;
    r->last = new;
    rnl_agent_flush(a, rank);
}

int rnl_agent_give_segment(struct rnl_agent *a, uint32_t rank, const struct rnl_msg_segment *q)
{
    struct rnl_segment *s = NULL;
    int e = 0;
    if (q->rank == rank)
        return rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment with itself", rank);
    if (a->status->rank[q->rank].place.host != a->status->rank[rank].place.host)
        return rnl_fail(RNL_ERR_JOB, "rank %u asked for a segment with rank %u of another host", rank, q->rank);
    enum rnl_segment_verdict verdict = rnl_membership_segment(a->members, rank, q->rank, q->bytes, &s);
    if (verdict == RNL_SEGMENT_NONE && q->bytes > segment_bytes_max)
        verdict = RNL_SEGMENT_BYTES;
    if (verdict == RNL_SEGMENT_NONE && rnl_membership_segment_add(a->members, rank, q->rank, q->bytes, &s) == 0)
        verdict = RNL_SEGMENT_FOUND;
    else if (verdict == RNL_SEGMENT_NONE)
        e = rnl_last_error()->sys_errno ? rnl_last_error()->sys_errno : ENOMEM;
    reply(a, rank, q->rank, verdict, s ? s->fd : -1, e);
    return 0;
}

int rnl_agent_had_segment(struct rnl_agent *a, uint32_t rank, uint32_t other)
{
    struct rnl_segment *s;
    if (rnl_membership_segment(a->members, rank, other, 0, &s) != RNL_SEGMENT_FOUND)
        return rnl_fail(RNL_ERR_JOB, "rank %u claims a segment with rank %u that it was not given", rank, other);
    rnl_membership_segment_mapped(a->members, s, rank);
    rnl_membership_segment_close(a->members, s, rank);
    return 0;
}
