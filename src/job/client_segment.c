/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client_segment.c - a launched rank's messages to and from the agent, and its requests for segments. A request is one
 * packet, its reply another; a caller that may not wait takes the reply in later, among the events. Events that arrive
 * while a reply is awaited are kept in order. If a reply's descriptor finds no room in this process's table, it is
 * lost, and the request fails and can be repeated. */
#include "base/error.h"
#include "job/client_internal.h"
#include "job/fds.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ---- */

/* Says why the agent counts as gone, by what was found first. */
static const char *why_gone(const struct client *c)
{
    if (c->garbled)
        return "a message of this job's launcher is not understood, so that nothing can be asked of it any more; start "
               "the job again, with the runnel command of the release that the program is linked with";
    if (c->lost_errno != 0)
        return "the system lost a message between this process and its launcher, so that nothing can be asked of it "
               "any more; start the job again, with more memory or fewer ranks";
    return "the launcher of this job is gone, or holds this rank for dead: nothing can be asked of it any more; start "
           "the job again";
}

int rnl_client_agent_gone(struct client *c)
{
    if (c->gone == 0)
        c->gone = 1;
    return rnl_fail_errno(RNL_ERR_JOB, c->lost_errno, "%s", why_gone(c));
}

static int garbled(struct client *c)
{
    c->garbled = !c->gone;
    return rnl_client_agent_gone(c);
}

int rnl_client_agent_lost(struct client *c, int status)
{
    if (c->gone == 0 && status == RNL_ERR_SYSTEM)
        c->lost_errno = rnl_last_error()->sys_errno;
    return rnl_client_agent_gone(c);
}

int rnl_client_send(struct client *c, const struct rnl_msg *msg, int wait)
{
    int status = c->gone ? RNL_ERR_JOB : rnl_msg_send(c->sock, msg, NULL, wait);
    if (status == RNL_NO_ROOM)
        return rnl_fail(RNL_NO_ROOM, "the launcher of this job does not take in requests now; try again later");
    return status < 0 ? rnl_client_agent_lost(c, status) : 0;
}

/* Whether a packet comes within wait_ns. An interrupted wait ends early. */
static bool comes(const struct client *c, uint64_t wait_ns)
{
    struct pollfd p = {.fd = c->sock, .events = POLLIN};
    const struct timespec t = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    return ppoll(&p, 1, &t, NULL) != 0;
}

int rnl_client_receive(struct client *c, struct rnl_msg *msg, int *fd, uint64_t wait_ns)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    *fd = -1;
    if (c->gone)
        return rnl_client_agent_gone(c);
    int status = rnl_seqpacket_receive(c->sock, bytes, sizeof bytes, 2, &p, wait_ns == UINT64_MAX);
    if (status == RNL_NO_ROOM && wait_ns > 0 && comes(c, wait_ns))
        status = rnl_seqpacket_receive(c->sock, bytes, sizeof bytes, 2, &p, 0);
    if (status < 0)
        return status == RNL_NO_ROOM ? status : rnl_client_agent_lost(c, status);
    if (rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, c->base.env.size, msg) == RNL_MSG_GOOD) {
        const unsigned due = rnl_msg_fds(msg);
        if (due == 1 && p.nfds == 1)
            *fd = p.fds[0];
        if (due == p.nfds || (due == 1 && p.nfds == 0)) /* 0: the descriptor table of this process is full */
            return 0;
    }
    rnl_seqpacket_drop(&p);
    return garbled(c);
}

static int keep_event(struct client *c, const struct rnl_event *event)
{
    if (c->waiting == c->room) {
        /* A correct agent sends at most a few events for each peer, and the waves of the close. */
        if (c->room > 8 * c->base.env.size + 64)
            return garbled(c);
        uint32_t room = c->room == 0 ? 16 : 2 * c->room;
        struct rnl_event *waits = malloc(room * sizeof *waits);
        if (!waits)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u waiting events", room);
        for (uint32_t i = 0; i < c->waiting; i++)
            waits[i] = c->waits[(c->first + i) % c->room];
        free(c->waits);
        c->waits = waits;
        c->first = 0;
        c->room = room;
    }
    c->waits[(c->first + c->waiting++) % c->room] = *event;
    return 0;
}

int rnl_client_take(struct client *c, const struct rnl_msg *msg, int fd, struct rnl_event *event)
{
    const struct rnl_msg_reply *reply = &msg->u.reply;
    if (msg->kind == RNL_MSG_EVENT) {
        *event = msg->u.event;
        return 1;
    }
    if (msg->kind != RNL_MSG_REPLY || c->base.segment[reply->rank].state != RNL_SEGMENT_REQUESTED) {
        if (fd >= 0)
            close(fd);
        return garbled(c);
    }
    c->base.segment[reply->rank] = (struct rnl_rank_segment){.state = fd >= 0 ? RNL_SEGMENT_HERE : RNL_SEGMENT_REJECTED,
                                                             .result = (uint8_t)reply->result,
                                                             .sys_errno = reply->sys_errno,
                                                             .fd = fd};
    *event = (struct rnl_event){.kind = RNL_EVENT_CONNECT, .rank = reply->rank};
    event->incarnation = atomic_load_explicit(&c->status->rank[reply->rank].incarnation, memory_order_relaxed);
    return 1;
}

/* ---- segments: a segment's number is the rank it is shared with ---- */

/* Sends the request unless it is pending, and waits for the reply. 0 = it is there; RNL_NO_ROOM, RNL_ERR_JOB,
 * RNL_ERR_NO_MEMORY. */
static int request(struct client *c, uint32_t rank, size_t bytes, uint64_t wait_ns)
{
    const struct rnl_msg question = {.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = rank, .bytes = bytes}};
    struct rnl_rank_segment *s = &c->base.segment[rank];
    uint64_t now = rnl_host_now_ns(NULL), end = wait_ns < UINT64_MAX - now ? now + wait_ns : UINT64_MAX;
    int status = 0;
    if (s->state == RNL_SEGMENT_ABSENT) {
        status = rnl_client_send(c, &question, end == UINT64_MAX);
        if (status < 0)
            return status;
        s->state = RNL_SEGMENT_REQUESTED;
    }
    while (s->state == RNL_SEGMENT_REQUESTED) {
        struct rnl_msg msg;
        struct rnl_event event;
        int fd;
        if (end != UINT64_MAX)
            now = rnl_host_now_ns(NULL);
        status = rnl_client_receive(c, &msg, &fd, end == UINT64_MAX ? UINT64_MAX : now < end ? end - now : 0);
        if (status == RNL_NO_ROOM && end != UINT64_MAX && now < end)
            continue; /* a signal interrupted the wait */
        if (status == RNL_NO_ROOM)
            return wait_ns == 0 ? status
                                : rnl_fail(status, "the launcher of this job has not replied yet: try again later");
        if (status == 0)
            status = rnl_client_take(c, &msg, fd, &event);
        if (status == 1 && s->state == RNL_SEGMENT_REQUESTED) /* the caller takes in its own reply */
            status = keep_event(c, &event);
        if (status < 0)
            return status;
    }
    return 0;
}

/* Fails with the reason for which the agent gave no descriptor. */
static int rejected(struct rnl_rank_segment *s, uint32_t rank)
{
    s->state = RNL_SEGMENT_ABSENT;
    switch ((enum rnl_segment_verdict)s->result) {
    case RNL_SEGMENT_FOUND:
        return rnl_fail(RNL_ERR_SYSTEM,
                        "this process has no free descriptor for the segment of rank %u: raise its limit (ulimit -n)",
                        rank);
    case RNL_SEGMENT_DEAD:
        return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no segment to share with it", rank);
    case RNL_SEGMENT_BYTES:
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u asked for another size of the segment: build all programs of a job with one release",
                        rank);
    case RNL_SEGMENT_NONE:
        return rnl_fail_errno(RNL_ERR_SYSTEM, s->sys_errno,
                              "the launcher could not make the segment of rank %u: where it was started, %s", rank,
                              rnl_memfd_remedy(s->sys_errno));
    case RNL_SEGMENT_TWICE:
        break;
    }
    return rnl_fail(RNL_ERR_JOB, "the segment of rank %u has been handed out to this rank before", rank);
}

int rnl_client_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct client *c = rnl_client_of(env);
    if (rank >= env->size || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, env->size);
    int status = rnl_rank_segment_check(&c->base, rank, rank);
    struct rnl_rank_segment *s = &c->base.segment[rank];
    if (status == 0 && rank == env->rank)
        status = rnl_memfd_new("runnel-self", bytes, F_SEAL_SEAL, &s->fd);
    else if (status == 0)
        status = request(c, rank, bytes, wait_ns);
    if (status == RNL_ERR_JOB && c->gone)
        return rnl_fail_errno(RNL_ERR_JOB, c->lost_errno, "rank %u cannot be connected: %s", rank, why_gone(c));
    if (status < 0)
        return status;
    if (s->state == RNL_SEGMENT_REJECTED)
        return rejected(s, rank);
    /* The seals are checked here and not left to the agent: a file that shrinks would kill this process by SIGBUS. */
    if (rnl_memfd_check(s->fd, bytes, F_SEAL_SEAL) < 0) {
        close(s->fd);
        s->state = RNL_SEGMENT_ABSENT;
        return rnl_fail(RNL_ERR_JOB, "the segment shared with rank %u is not sealed or not of %zu bytes: refused", rank,
                        bytes);
    }
    s->state = RNL_SEGMENT_OPEN;
    *segment = (int)rank;
    return 0;
}

void rnl_client_segment_mapped(struct rnl_env *env, int segment)
{
    struct client *c = rnl_client_of(env);
    const struct rnl_msg msg = {.kind = RNL_MSG_HAVE, .u.peer = {.rank = (uint32_t)segment}};
    rnl_rank_segment_mapped(env, segment);
    if (msg.u.peer.rank != env->rank && !c->gone)
        (void)!rnl_client_send(c, &msg, 0); /* if lost, the agent keeps a descriptor until one rank is gone */
}
