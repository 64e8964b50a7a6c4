/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client_ask.c - what a rank asks of the agent: segments, and descriptors to raise. A question is one packet, its
 * answer another; who may not wait for it takes it in later, as news. Events that arrive while an answer is awaited are
 * kept in order. An answer whose descriptor found no room in our table is lost: the question is asked again. */
#include "base/error.h"
#include "job/client_in.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define RAISE_WAIT_NS ((uint64_t)10 * 1000 * 1000) /* a hint: its owner looks by itself now and then */

/* Of a question: the rank, and which of the two it is about. */
static const uint32_t raise_ticket = (uint32_t)1 << 31;

int rnl_client_forked(const struct client *c)
{
    if (RNL_LIKELY(getpid() == c->owner))
        return 0;
    return rnl_fail(RNL_ERR_FORKED,
                    "this process is a fork of rank %u: only the process that opened an endpoint can use it; "
                    "open before the fork is for the parent alone",
                    c->env.rank);
}

/* ---- talking to the agent ---- */

/* What was found out first: calls may come long after that. */
static const char *why_gone(const struct client *c)
{
    if (c->garbled)
        return "what the launcher of this job says is not understood, so that nothing can be asked of it any more; "
               "start "
               "the job again, with the runnel command of the release that the program is linked with";
    if (c->lost_errno != 0)
        return "the system let a word between this process and its launcher be lost, so that nothing can be asked of "
               "it "
               "any more; start the job again, with more memory or fewer ranks";
    return "the launcher of this job is gone, or holds this rank for dead: nothing can be asked of it any more; start "
           "the "
           "job again";
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

int rnl_client_agent_lost(struct client *c, int e)
{
    if (c->gone == 0 && e != -EPIPE && e != -ECONNRESET && e != -ENOTCONN)
        c->lost_errno = -e;
    return rnl_client_agent_gone(c);
}

int rnl_client_say(struct client *c, const struct rnl_msg *msg, int wait)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    size_t n = rnl_msg_encode(msg, bytes);
    int r = c->gone ? -EPIPE : rnl_packet_send(c->sock, bytes, n, NULL, 0, wait);
    if (r == -EAGAIN)
        return rnl_fail(RNL_NO_ROOM, "the launcher of this job does not take in questions now; try again later");
    return r < 0 ? rnl_client_agent_lost(c, r) : 0;
}

/* Whether a packet comes within wait_ns. An interrupted wait ends early. */
static int comes(const struct client *c, uint64_t wait_ns)
{
    struct pollfd p = {.fd = c->sock, .events = POLLIN};
    const struct timespec t = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    return ppoll(&p, 1, &t, NULL) != 0;
}

int rnl_client_hear(struct client *c, struct rnl_msg *msg, int *fd, uint64_t wait_ns)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_packet p;
    *fd = -1;
    if (c->gone)
        return rnl_client_agent_gone(c);
    int r = rnl_packet_receive(c->sock, bytes, sizeof bytes, 2, &p, wait_ns == UINT64_MAX);
    if (r == -EAGAIN && wait_ns > 0 && comes(c, wait_ns))
        r = rnl_packet_receive(c->sock, bytes, sizeof bytes, 2, &p, 0);
    if (r == -EAGAIN)
        return r;
    if (r < 0)
        return rnl_client_agent_lost(c, r);
    if (rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, c->env.size, msg) != RNL_MSG_GOOD) {
        rnl_packet_drop(&p);
        return garbled(c);
    }
    unsigned due = rnl_msg_fds(msg);
    if (due == 1 && p.nfds == 1) {
        *fd = p.fds[0];
        return 0;
    }
    unsigned came = p.nfds;
    rnl_packet_drop(&p);
    if (due == 1 && came == 0) /* the kernel had no room for it in our table */
        return 0;
    return due == came ? 0 : garbled(c);
}

static int keep_event(struct client *c, const struct rnl_msg_event *event)
{
    if (c->waiting == c->room) {
        /* At most a few per peer, and the close. An agent that sends more is broken. */
        if (c->room > 8 * c->env.size + 64)
            return garbled(c);
        uint32_t room = c->room == 0 ? 16 : 2 * c->room;
        struct rnl_msg_event *waits = malloc(room * sizeof *waits);
        if (waits == NULL)
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

static void raise_fd(int fd)
{
    const uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

int rnl_client_given(struct client *c, const struct rnl_msg *msg, int fd, struct rnl_msg_event *connect)
{
    const struct rnl_msg_give *give = &msg->u.give;
    uint32_t rank = give->ticket & ~raise_ticket;
    int raise = (give->ticket & raise_ticket) != 0;
    struct client_given *g = msg->kind != RNL_MSG_GIVE || rank >= c->env.size ? NULL
                             : raise                                          ? &c->raise[rank]
                                                                              : &c->segment[rank];
    if (g == NULL || g->state != CLIENT_ASKED) { /* an answer to nothing */
        if (fd >= 0)
            close(fd);
        return garbled(c);
    }
    g->fd = fd;
    g->result = (uint8_t)give->result;
    g->sys_errno = give->sys_errno;
    g->state = fd >= 0 ? CLIENT_HERE : CLIENT_REFUSED;
    if (raise && fd >= 0 && g->wished)
        raise_fd(fd);
    g->wished = 0;
    if (raise)
        return 0;
    memset(connect, 0, sizeof *connect);
    connect->kind = RNL_EVENT_CONNECT;
    connect->rank = rank;
    connect->incarnation = atomic_load_explicit(&c->status->rank[rank].incarnation, memory_order_relaxed);
    return 1;
}

/* Asks if that has not been done, and waits for the answer: 0 = it is in *g, RNL_NO_ROOM, RNL_ERR_JOB, _NO_MEMORY. */
static int ask(struct client *c, const struct rnl_msg *question, struct client_given *g, uint64_t wait_ns)
{
    uint64_t now = rnl_host_now_ns(&c->env), end = wait_ns < UINT64_MAX - now ? now + wait_ns : UINT64_MAX;
    int r = 0;
    if (g->state == CLIENT_NONE) {
        r = rnl_client_say(c, question, end == UINT64_MAX);
        if (r < 0)
            return r;
        g->state = CLIENT_ASKED;
    }
    while (g->state == CLIENT_ASKED) {
        struct rnl_msg answer;
        struct rnl_msg_event connect;
        int fd;
        if (end != UINT64_MAX)
            now = rnl_host_now_ns(&c->env);
        r = rnl_client_hear(c, &answer, &fd, end == UINT64_MAX ? UINT64_MAX : now < end ? end - now : 0);
        if (r == -EAGAIN && end != UINT64_MAX && now < end)
            continue; /* interrupted */
        if (r == -EAGAIN)
            return end == UINT64_MAX ? rnl_client_agent_gone(c)
                   : wait_ns == 0    ? RNL_NO_ROOM
                                     : rnl_fail(RNL_NO_ROOM, "the launcher of this job has not answered yet: "
                                                                "try again later");
        if (r < 0)
            return r;
        if (answer.kind == RNL_MSG_EVENT)
            r = keep_event(c, &answer.u.event);
        else
            r = rnl_client_given(c, &answer, fd, &connect);
        if (r == 1)
            r = g->state == CLIENT_ASKED ? keep_event(c, &connect) : 0; /* ours is taken in by who asks */
        if (r < 0)
            return r;
    }
    return 0;
}

/* Why there is no descriptor. */
static int refused(struct client_given *g, uint32_t rank, const char *what)
{
    g->state = CLIENT_NONE;
    switch (g->result) {
    case RNL_GIVE_OK:
        return rnl_fail(RNL_ERR_SYSTEM,
                        "this process has no free descriptor for the %s of rank %u: raise its limit (ulimit -n)", what,
                        rank);
    case RNL_GIVE_DEAD:
        return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no %s to share with it", rank, what);
    case RNL_GIVE_BYTES:
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u asked for another size of the %s: build all programs of a job with one release", rank,
                        what);
    case RNL_GIVE_NO_ROOM:
        return rnl_fail_errno(RNL_ERR_SYSTEM, g->sys_errno,
                              "the launcher could not make the %s of rank %u: where it was started, %s", what, rank,
                              rnl_memfd_remedy(g->sys_errno));
    }
    return rnl_fail(RNL_ERR_JOB, "the %s of rank %u has been handed out to this rank before", what, rank);
}

void rnl_client_forget(struct client *c)
{
    for (uint32_t i = 0; i < c->env.size; i++) {
        if (c->segment != NULL && (c->segment[i].state == CLIENT_HERE || c->segment[i].state == CLIENT_OPEN))
            close(c->segment[i].fd);
        if (c->raise != NULL && c->raise[i].state == CLIENT_HERE)
            close(c->raise[i].fd);
    }
    rnl_waitfd_free(&c->wait);
    if (c->heads != NULL)
        munmap(c->heads, (size_t)c->env.size * RNL_SEGMENT_HEAD);
    free(c->segment);
    free(c->raise);
}

/* ---- memory: a segment's number is the rank it is shared with ---- */

int rnl_client_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct client *c = rnl_client_of(env);
    int r = rnl_client_forked(c);
    if (r < 0)
        return r;
    if (rank >= env->size || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, env->size);
    struct client_given *g = &c->segment[rank];
    if (g->state == CLIENT_OPEN || g->state == CLIENT_SETTLED)
        return rnl_fail(RNL_ERR_JOB, "the segment of rank %u has been handed out to this rank before", rank);
    if (rank == env->rank) {
        r = rnl_memfd_new("runnel-self", bytes, F_SEAL_SEAL, &g->fd);
        if (r < 0)
            return rnl_fail_errno(RNL_ERR_SYSTEM, -r, "cannot make a segment of %zu bytes to talk to ourselves: %s",
                                  bytes, rnl_memfd_remedy(-r));
    } else {
        struct rnl_msg m = {.kind = RNL_MSG_SEGMENT, .u.segment = {.ticket = rank, .rank = rank, .bytes = bytes}};
        r = ask(c, &m, g, wait_ns);
        if (r == RNL_ERR_JOB)
            return rnl_fail_errno(RNL_ERR_JOB, c->lost_errno, "rank %u cannot be connected: %s", rank, why_gone(c));
        if (r < 0)
            return r;
        if (g->state == CLIENT_REFUSED)
            return refused(g, rank, "segment");
    }
    /* Not the agent's word but the file's: one that could shrink would kill us by SIGBUS. */
    if (rnl_memfd_check(g->fd, bytes, F_SEAL_SEAL) < 0) {
        close(g->fd);
        g->state = CLIENT_NONE;
        return rnl_fail(RNL_ERR_JOB, "the segment shared with rank %u is not sealed or not of %zu bytes: refused", rank,
                        bytes);
    }
    g->state = CLIENT_OPEN;
    *segment = (int)rank;
    return 0;
}

/* Where the first bytes of segment 0 would lie: they lie together, so that a page of page tables serves many peers. */
static int reserve_heads(struct client *c)
{
    if (c->heads != NULL)
        return 0;
    void *p = mmap(NULL, (size_t)c->env.size * RNL_SEGMENT_HEAD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    c->heads = p;
    return 0;
}

int rnl_client_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    struct client *c = rnl_client_of(env);
    int head = offset < RNL_SEGMENT_HEAD && bytes <= RNL_SEGMENT_HEAD - offset;
    void *p = MAP_FAILED;
    int e = head ? reserve_heads(c) : 0;
    if (e == 0) {
        p = mmap(head ? c->heads + (size_t)segment * RNL_SEGMENT_HEAD + offset : NULL, bytes,
                 PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | (head ? MAP_FIXED : 0), c->segment[segment].fd,
                 (off_t)offset);
        e = -errno;
    }
    if (p == MAP_FAILED)
        return rnl_fail_errno(e == -ENOMEM ? RNL_ERR_NO_MEMORY : RNL_ERR_SYSTEM, -e,
                              "cannot map %zu bytes of a segment at offset %zu: raise the limit of address space "
                              "(ulimit -v) or of mappings (vm.max_map_count)",
                              bytes, offset);
    *at = p;
    return 0;
}

void rnl_client_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    const struct client *c = rnl_client_of(env);
    (void)segment;
    int head =
        c->heads != NULL && (char *)at >= c->heads && (char *)at < c->heads + (size_t)env->size * RNL_SEGMENT_HEAD;
    if (!head ||
        mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        munmap(at, bytes);
}

void rnl_client_segment_settle(struct rnl_env *env, int segment)
{
    struct client *c = rnl_client_of(env);
    struct rnl_msg m = {.kind = RNL_MSG_HAVE, .u.peer = {.rank = (uint32_t)segment}};
    close(c->segment[segment].fd);
    c->segment[segment].state = CLIENT_SETTLED;
    if (m.u.peer.rank != env->rank && !c->gone)
        (void)!rnl_client_say(c, &m, 0); /* lost, it costs the agent a descriptor until one of the two is gone */
}

void rnl_client_segment_close(struct rnl_env *env, int segment)
{
    struct client_given *g = &rnl_client_of(env)->segment[segment];
    if (g->state == CLIENT_OPEN)
        close(g->fd);
    if (g->state == CLIENT_OPEN || (uint32_t)segment == env->rank)
        g->state = CLIENT_NONE;
}

/* ---- event loops ---- */

static int fetch_fd(struct client *c, uint32_t rank, uint64_t wait_ns)
{
    struct rnl_msg m = {.kind = RNL_MSG_FD, .u.fd = {.ticket = raise_ticket | rank, .rank = rank}};
    struct client_given *g = &c->raise[rank];
    int r = rnl_client_forked(c);
    if (r == 0)
        r = ask(c, &m, g, wait_ns);
    if (r < 0)
        return r;
    return g->state == CLIENT_REFUSED ? refused(g, rank, "descriptor") : g->fd;
}

int rnl_client_fd(struct rnl_env *env)
{
    struct client *c = rnl_client_of(env);
    if (c->wait.epoll >= 0)
        return c->wait.epoll;
    int fd = fetch_fd(c, env->rank, UINT64_MAX);
    int r = fd < 0 ? 0 : rnl_waitfd_new(fd, &c->wait);
    if (r < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, -r, "cannot make a descriptor to wait on: raise their limit (ulimit -n)");
    return fd < 0 ? fd : c->wait.epoll;
}

void rnl_client_fd_until(struct rnl_env *env, uint64_t ns)
{
    rnl_waitfd_until(&rnl_client_of(env)->wait, ns);
}

int rnl_client_fd_watch(struct rnl_env *env, int fd)
{
    int e = -rnl_waitfd_watch(&rnl_client_of(env)->wait, fd);
    return e ? rnl_fail_errno(RNL_ERR_SYSTEM, e, "the descriptor to wait on takes no other one in") : 0;
}

void rnl_client_fd_drain(struct rnl_env *env)
{
    const struct client_given *g = &rnl_client_of(env)->raise[env->rank];
    uint64_t count;
    while (g->state == CLIENT_HERE && read(g->fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

void rnl_client_fd_raise(struct rnl_env *env, uint32_t rank)
{
    struct client *c = rnl_client_of(env);
    if (rank >= env->size)
        return;
    struct client_given *g = &c->raise[rank];
    if (g->state != CLIENT_HERE && rank != env->rank) {
        uint64_t wait_ns = g->state == CLIENT_ASKED ? 0 : RAISE_WAIT_NS; /* waited for once */
        g->wished = 1;
        (void)!fetch_fd(c, rank, wait_ns); /* raised when it comes */
    } else if (g->state == CLIENT_HERE) {
        raise_fd(g->fd);
    }
}
