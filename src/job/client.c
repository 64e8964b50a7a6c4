/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.c - the env of a rank that a launcher started: time from the host, memory and news from the agent (proto.h,
 * status.h).
 *
 * One thread at a time. Only opening, segments and descriptors wait for the agent; it answers at once, and if it is
 * gone the socket says so. Events that arrive while an answer is awaited are kept in order. In a forked child every
 * operation refuses, and close leaves the parent's place alone. */
#include "base/bell.h"
#include "base/error.h"
#include "job/fds.h"
#include "job/job.h"
#include "job/proto.h"
#include "job/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct client {
    struct rnl_env env; /* first */
    pid_t owner;
    int sock;
    int own_fd;   /* -1 until asked for */
    int *peer_fd; /* of each rank, 0 = not fetched; NULL until the first */
    uint8_t gone; /* the agent: 1 = found out, 2 = reported */
    uint8_t map_failed;
    int segment; /* opened last, with segment_rank; the last map of it failed if map_failed; -1 = none */
    uint32_t segment_rank;
    int *unmapped; /* 1 + segment, by rank: handed out once and for all, and then not mapped for want of memory */
    uint32_t ticket;
    unsigned char key[RNL_JOB_KEY_BYTES];
    const struct rnl_status_page *status;
    size_t status_bytes, bells_bytes;
    struct rnl_bell *bells;
    /* events that came in while an answer was awaited: [first, first + waiting) of room, a ring */
    struct rnl_msg_event *waits;
    uint32_t first, waiting, room;
};

static struct client *of(struct rnl_env *env)
{
    return (struct client *)(void *)env;
}

static int forked(const struct client *c)
{
    if (RNL_LIKELY(getpid() == c->owner))
        return 0;
    return rnl_fail(RNL_ERR_FORKED,
                    "this process is a fork of rank %u: only the process that opened an endpoint can use it; "
                    "open before the fork is for the parent alone",
                    c->env.rank);
}

/* ---- talking to the agent ---- */

static int agent_gone(struct client *c)
{
    if (c->gone == 0)
        c->gone = 1;
    return rnl_fail(RNL_ERR_JOB,
                    "the launcher of this job is gone: nothing can be asked of it any more; start the job again");
}

/* The socket failed with -e. Only some of that means that the other side is gone; but what was said or heard halfway is
 * lost, so that nothing can be asked any more in any case. */
static int agent_lost(struct client *c, int e)
{
    int status = agent_gone(c);
    if (e == -EPIPE || e == -ECONNRESET || e == -ENOTCONN)
        return status;
    return rnl_fail_errno(status, -e,
                          "the system let a word between this process and its launcher be lost: start the "
                          "job again, with more memory or fewer ranks");
}

static int say(struct client *c, const struct rnl_msg *msg)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    size_t n = rnl_msg_encode(msg, bytes);
    int r = c->gone ? -EPIPE : rnl_packet_send(c->sock, bytes, n, NULL, 0, 1);
    return r < 0 ? agent_lost(c, r) : 0;
}

/* What the agent says next; *fd is -1 unless one came with it. 0, -EAGAIN, or RNL_ERR_JOB. */
static int hear(struct client *c, struct rnl_msg *msg, int *fd, int wait)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_packet p;
    *fd = -1;
    if (c->gone)
        return agent_gone(c);
    int r = rnl_packet_receive(c->sock, bytes, sizeof bytes, &p, wait);
    if (r == -EAGAIN)
        return r;
    if (r < 0)
        return agent_lost(c, r);
    if (rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, c->env.size, msg) != RNL_MSG_GOOD) {
        rnl_packet_drop(&p);
        return agent_gone(c);
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
    return due == came ? 0 : agent_gone(c);
}

static int keep_event(struct client *c, const struct rnl_msg_event *event)
{
    if (c->waiting == c->room) {
        /* At most a connect and a death per peer, and the close. An agent that sends more is broken. */
        if (c->room > 4 * c->env.size + 64)
            return agent_gone(c);
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

static int no_descriptor(int e, const char *what, uint32_t rank)
{
    return rnl_fail_errno(RNL_ERR_SYSTEM, e,
                          "this process has no free descriptor for the %s of rank %u: raise its limit (ulimit -n)",
                          what, rank);
}

/* Asks for something that comes as a descriptor, and waits for it. */
static int ask(struct client *c, struct rnl_msg *question, uint32_t rank, const char *what, int *out)
{
    struct rnl_msg answer;
    int fd;
    uint32_t ticket = ++c->ticket;
    /* The agent gives a segment once. So a free descriptor first: without one it would be lost on its way. */
    int spare = fcntl(c->sock, F_DUPFD_CLOEXEC, 0);
    if (spare < 0)
        return no_descriptor(errno, what, rank);
    close(spare);
    if (question->kind == RNL_MSG_SEGMENT)
        question->u.segment.ticket = ticket;
    else
        question->u.fd.ticket = ticket;
    int r = say(c, question);
    if (r < 0)
        return r;
    for (;;) {
        r = hear(c, &answer, &fd, 1);
        if (r < 0)
            return r == -EAGAIN ? agent_gone(c) : r;
        if (answer.kind != RNL_MSG_EVENT)
            break;
        r = keep_event(c, &answer.u.event);
        if (r < 0)
            return r;
    }
    if (answer.kind != RNL_MSG_GIVE || answer.u.give.ticket != ticket) {
        if (fd >= 0)
            close(fd);
        return agent_gone(c);
    }
    switch (answer.u.give.result) {
    case RNL_GIVE_OK:
        if (fd < 0)
            return no_descriptor(EMFILE, what, rank);
        *out = fd;
        return 0;
    case RNL_GIVE_DEAD:
        return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no %s to share with it", rank, what);
    case RNL_GIVE_BYTES:
        return rnl_fail(RNL_ERR_JOB,
                        "rank %u asked for another size of the %s: build all programs of a job with one release", rank,
                        what);
    case RNL_GIVE_NO_ROOM:
        return rnl_fail_errno(RNL_ERR_SYSTEM, answer.u.give.sys_errno,
                              "the launcher could not make the %s of rank %u: where it was started, %s", what, rank,
                              rnl_memfd_remedy(answer.u.give.sys_errno));
    }
    return rnl_fail(RNL_ERR_JOB, "the %s of rank %u has been handed out to this rank before", what, rank);
}

/* ---- memory ---- */

static int client_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, int *segment)
{
    struct client *c = of(env);
    int fd, r = forked(c);
    if (r < 0)
        return r;
    if (rank >= env->size || bytes == 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, env->size);
    if (rank == env->rank) {
        r = rnl_memfd_new("runnel-self", bytes, F_SEAL_SEAL, &fd);
        if (r < 0)
            return rnl_fail_errno(RNL_ERR_SYSTEM, -r, "cannot make a segment of %zu bytes to talk to ourselves: %s",
                                  bytes, rnl_memfd_remedy(-r));
        *segment = fd;
        return 0;
    }
    if (c->unmapped != NULL && c->unmapped[rank] > 0) {
        fd = c->unmapped[rank] - 1;
        c->unmapped[rank] = 0;
        goto have;
    }
    struct rnl_msg m = {.kind = RNL_MSG_SEGMENT};
    m.u.segment.rank = rank;
    m.u.segment.bytes = bytes;
    r = ask(c, &m, rank, "segment", &fd);
    if (r < 0)
        return r;
have:
    /* Not the agent's word but the file's: one that could shrink would kill us by SIGBUS. */
    if (rnl_memfd_check(fd, bytes, F_SEAL_SEAL) < 0) {
        close(fd);
        return rnl_fail(RNL_ERR_JOB, "the segment shared with rank %u is not sealed or not of %zu bytes: refused", rank,
                        bytes);
    }
    c->segment = fd;
    c->segment_rank = rank;
    c->map_failed = 0;
    *segment = fd;
    return 0;
}

static int client_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    struct client *c = of(env);
    void *p = mmap(NULL, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, segment, (off_t)offset);
    if (segment == c->segment)
        c->map_failed = p == MAP_FAILED;
    if (p == MAP_FAILED)
        return rnl_fail_errno(errno == ENOMEM ? RNL_ERR_NO_MEMORY : RNL_ERR_SYSTEM, errno,
                              "cannot map %zu bytes of a segment at offset %zu", bytes, offset);
    *at = p;
    return 0;
}

static void client_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    (void)env, (void)segment;
    munmap(at, bytes);
}

static void client_segment_close(struct rnl_env *env, int segment)
{
    struct client *c = of(env);
    if (segment == c->segment) {
        c->segment = -1;
        if (c->map_failed && c->unmapped == NULL)
            c->unmapped = calloc(env->size, sizeof *c->unmapped);
        if (c->map_failed && c->unmapped != NULL) { /* for the next try */
            c->unmapped[c->segment_rank] = segment + 1;
            return;
        }
    }
    close(segment);
}

/* ---- news ---- */

static int deliver(const struct rnl_msg_event *in, struct rnl_event *out)
{
    memset(out, 0, sizeof *out);
    out->kind = in->kind;
    out->rank = in->rank;
    out->incarnation = in->incarnation;
    out->wave = in->wave;
    out->why = in->why;
    out->detail = in->detail;
    return 1;
}

static int client_event(struct rnl_env *env, struct rnl_event *out)
{
    struct client *c = of(env);
    struct rnl_msg msg;
    int fd;
    if (c->waiting > 0) {
        const struct rnl_msg_event *e = &c->waits[c->first];
        c->first = (c->first + 1) % c->room;
        c->waiting--;
        return deliver(e, out);
    }
    if (!c->gone && getpid() == c->owner) {
        int r = hear(c, &msg, &fd, 0);
        if (r == -EAGAIN)
            return 0;
        if (r == 0 && msg.kind == RNL_MSG_EVENT)
            return deliver(&msg.u.event, out);
        if (r == 0) { /* an answer to nothing */
            if (fd >= 0)
                close(fd);
            agent_gone(c);
        }
    }
    if (c->gone != 1)
        return 0;
    c->gone = 2;
    memset(out, 0, sizeof *out);
    out->kind = RNL_EVENT_JOB_GONE;
    return 1;
}

static int client_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    struct client *c = of(env);
    int r = forked(c);
    if (r < 0)
        return r;
    struct rnl_msg m = {.kind = RNL_MSG_REPORT};
    m.u.report.wave = wave;
    m.u.report.activity = activity;
    return say(c, &m);
}

/* ---- event loops ---- */

static int fetch_fd(struct client *c, uint32_t rank, int *out)
{
    struct rnl_msg m = {.kind = RNL_MSG_FD};
    m.u.fd.rank = rank;
    int r = forked(c);
    return r < 0 ? r : ask(c, &m, rank, "descriptor", out);
}

static int client_fd(struct rnl_env *env)
{
    struct client *c = of(env);
    if (c->own_fd < 0) {
        int r = fetch_fd(c, env->rank, &c->own_fd);
        if (r < 0)
            return r;
    }
    return c->own_fd;
}

static void client_fd_drain(struct rnl_env *env)
{
    struct client *c = of(env);
    uint64_t count;
    if (c->own_fd < 0)
        return;
    while (read(c->own_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
}

static void client_fd_raise(struct rnl_env *env, uint32_t rank)
{
    struct client *c = of(env);
    const uint64_t one = 1;
    int fd = c->own_fd;
    if (rank >= env->size)
        return;
    if (rank != env->rank) {
        if (c->peer_fd == NULL && (c->peer_fd = calloc(env->size, sizeof *c->peer_fd)) == NULL)
            return; /* a hint: its owner looks by itself now and then */
        if (c->peer_fd[rank] == 0 && fetch_fd(c, rank, &c->peer_fd[rank]) < 0)
            return;
        fd = c->peer_fd[rank];
    }
    if (fd < 0)
        return;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* ---- life ---- */

static struct rnl_bell *client_bell_of(struct rnl_env *env, uint32_t rank)
{
    return &of(env)->bells[rank];
}

static void client_free(struct client *c)
{
    if (c->sock >= 0)
        close(c->sock);
    if (c->own_fd >= 0)
        close(c->own_fd);
    for (uint32_t i = 0; c->peer_fd != NULL && i < c->env.size; i++)
        if (c->peer_fd[i] > 0)
            close(c->peer_fd[i]);
    for (uint32_t i = 0; c->unmapped != NULL && i < c->env.size; i++)
        if (c->unmapped[i] > 0)
            close(c->unmapped[i] - 1);
    if (c->status != NULL)
        munmap((void *)(uintptr_t)c->status, c->status_bytes);
    if (c->bells != NULL)
        munmap(c->bells, c->bells_bytes);
    explicit_bzero(c->key, sizeof c->key);
    free(c->peer_fd);
    free(c->unmapped);
    free(c->waits);
    free(c);
}

static void client_close(struct rnl_env *env)
{
    struct client *c = of(env);
    struct rnl_msg m = {.kind = RNL_MSG_LEAVE};
    if (!c->gone && getpid() == c->owner)
        (void)say(c, &m);
    client_free(c);
}

const unsigned char *rnl_client_key(const struct rnl_env *env)
{
    return env->ops->close == client_close ? ((const struct client *)(const void *)env)->key : NULL;
}

static const struct rnl_env_ops client_ops = {
    .size = sizeof client_ops,
    .now_ns = rnl_host_now_ns,
    .random = rnl_host_random,
    .yield = rnl_host_yield,
    .park = rnl_host_park,
    .wake = rnl_host_wake,
    .heavy_fence = rnl_host_heavy_fence,
    .sense_load = rnl_host_sense_load,
    .sense_fence = rnl_host_sense_fence,
    .segment_open = client_segment_open,
    .segment_map = client_segment_map,
    .segment_unmap = client_segment_unmap,
    .segment_close = client_segment_close,
    .event = client_event,
    .close_report = client_close_report,
    .fd = client_fd,
    .fd_drain = client_fd_drain,
    .fd_raise = client_fd_raise,
    .close = client_close,
};

/* HELLO through the door, with one end of our own pair of sockets. */
static int knock(struct client *c, int door)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    const struct rnl_msg hello = {.kind = RNL_MSG_HELLO};
    int pair[2];
    int r = rnl_packet_pair(pair);
    if (r < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, -r,
                              "cannot make a socket to the launcher: raise the limit of descriptors (ulimit -n)");
    c->sock = pair[0];
    r = rnl_packet_send(door, bytes, rnl_msg_encode(&hello, bytes), &pair[1], 1, 1);
    close(pair[1]); /* so that the agent's death is the end of file of ours */
    if (r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN)
        return rnl_fail_errno(RNL_ERR_JOB, -r,
                              "the launcher that RUNNEL_FD leads to is gone: start the job again with `runnel run`, "
                              "or unset RUNNEL_FD to run alone");
    return r < 0 ? rnl_fail_errno(RNL_ERR_SYSTEM, -r,
                                  "the system carries no word to the launcher: start the job with "
                                  "more memory or fewer ranks")
                 : 0;
}

static int refused(const struct rnl_msg *msg, enum rnl_msg_verdict verdict)
{
    if (verdict == RNL_MSG_OTHER_VERSION)
        return rnl_fail(RNL_ERR_JOB,
                        "the launcher speaks version %u of its protocol and this program version %u: "
                        "use `runnel run` and the library of one release",
                        msg->u.hello.version, (unsigned)RNL_PROTO_VERSION);
    switch (msg->u.refused.why) {
    case RNL_REFUSED_VERSION:
        return rnl_fail(
            RNL_ERR_JOB,
            "the launcher refused version %u of its protocol: use `runnel run` and the library of one release",
            (unsigned)RNL_PROTO_VERSION);
    case RNL_REFUSED_TWICE:
        return rnl_fail(
            RNL_ERR_JOB,
            "this rank has joined its job before: a job has one endpoint a rank, opened once, by one process; "
            "unset RUNNEL_FD for programs that should run alone");
    case RNL_REFUSED_NO_ROOM:
        return rnl_fail(RNL_ERR_JOB,
                        "the launcher ran out of descriptors: raise their limit (ulimit -n) where it is started");
    }
    return rnl_fail(RNL_ERR_JOB, "the launcher holds this rank for dead: its first process has ended; "
                                 "a rank's program must not outlive what the launcher started");
}

/* WELCOME and what comes with it. */
static int enter(struct client *c)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_packet p;
    struct rnl_msg msg;
    int r = rnl_packet_receive(c->sock, bytes, sizeof bytes, &p, 1);
    if (r == -EPIPE)
        return rnl_fail(RNL_ERR_JOB, "the launcher did not let this rank in: it is gone, or out of descriptors; start "
                                     "the job again, with a higher limit of descriptors (ulimit -n)");
    if (r < 0)
        return agent_lost(c, r);
    enum rnl_msg_verdict verdict = rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, RNL_JOB_RANKS_MAX, &msg);
    if (verdict == RNL_MSG_OTHER_VERSION || (verdict == RNL_MSG_GOOD && msg.kind == RNL_MSG_REFUSED)) {
        rnl_packet_drop(&p);
        return refused(&msg, verdict);
    }
    if (verdict != RNL_MSG_GOOD || msg.kind != RNL_MSG_WELCOME) {
        rnl_packet_drop(&p);
        return rnl_fail(RNL_ERR_JOB, "what answers at RUNNEL_FD is no launcher: start the program with `runnel run`, "
                                     "or unset RUNNEL_FD to run alone");
    }
    if (p.nfds != 2) {
        rnl_packet_drop(&p);
        return rnl_fail(RNL_ERR_SYSTEM,
                        "this process has no free descriptors to join its job: raise their limit (ulimit -n)");
    }
    const struct rnl_msg_welcome *w = &msg.u.welcome;
    c->env.rank = w->rank;
    c->env.size = w->size;
    c->env.incarnation = w->incarnation;
    c->env.facts.keep_going = (w->flags & RNL_WELCOME_KEEP_GOING) != 0;
    memcpy(c->env.host, w->host, sizeof c->env.host);
    memcpy(c->key, w->key, sizeof c->key);
    explicit_bzero(bytes, sizeof bytes);
    c->status_bytes = rnl_status_bytes(w->size);
    c->bells_bytes = (size_t)w->size * RNL_BELL_BYTES;
    r = RNL_ERR_JOB;
    if (rnl_memfd_check(p.fds[0], c->status_bytes, 0) < 0 || rnl_memfd_check(p.fds[1], c->bells_bytes, 0) < 0) {
        rnl_fail(r, "the launcher's pages are not sealed or not of the size of a job of %u ranks: refused", w->size);
        goto out;
    }
    void *status = mmap(NULL, c->status_bytes, PROT_READ, MAP_SHARED, p.fds[0], 0);
    void *bells = mmap(NULL, c->bells_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p.fds[1], 0);
    int e = errno;
    c->status = status == MAP_FAILED ? NULL : status;
    c->bells = bells == MAP_FAILED ? NULL : bells;
    if (c->status == NULL || c->bells == NULL) {
        r = rnl_fail_errno(RNL_ERR_NO_MEMORY, e, "cannot map the launcher's pages for a job of %u ranks", w->size);
        goto out;
    }
    if (c->status->magic != RNL_STATUS_MAGIC || c->status->version != RNL_STATUS_VERSION ||
        c->status->size != w->size) {
        rnl_fail(r,
                 "the launcher's status page is of another version: use `runnel run` and the library of one release");
        goto out;
    }
    c->env.news = &c->status->rank[w->rank].news;
    c->env.bell = &c->bells[w->rank];
    r = 0;
out:
    rnl_packet_drop(&p);
    return r;
}

int rnl_client_env(int door, struct rnl_env **out)
{
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a job");
    c->env.ops = &client_ops;
    c->env.bell_of = client_bell_of;
    c->owner = getpid();
    c->sock = c->own_fd = c->segment = -1;
    int r = knock(c, door);
    if (r == 0)
        r = enter(c);
    if (r < 0) {
        client_free(c);
        return r;
    }
    rnl_host_facts(&c->env.facts);
    c->env.facts.launched = 1;
    *out = &c->env;
    return 0;
}
