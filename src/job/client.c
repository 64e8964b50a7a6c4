/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.c - the env of a rank that a launcher started: joins the job, takes in events, leaves.
 *
 * A request for a segment is one packet, its reply another; a caller that may not wait takes the reply in later, among
 * the events. Events that arrive while a reply is awaited are kept in order. If a reply's descriptor finds no room in
 * this process's table, it is lost, and the request fails and can be repeated.
 *
 * For one thread at a time. A forked child leaves the parent's connection alone. */
#include "job/client_internal.h"

#include "base/error.h"
#include "base/secret.h"
#include "job/fds.h"
#include "job/job.h"
#include "net/socket/i8255x/i8255x.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
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

/* Fails with the reason for which the agent counts as gone. RNL_ERR_JOB. */
static int agent_gone(struct client *c)
{
    if (c->gone == 0)
        c->gone = 1;
    return rnl_fail_errno(RNL_ERR_JOB, c->lost_errno, "%s", why_gone(c));
}

static int garbled(struct client *c)
{
    c->garbled = !c->gone;
    return agent_gone(c);
}

/* The socket failed with this status. Not every error means that the agent is gone, but a message was lost in any case,
 * so the agent counts as gone from now on. RNL_ERR_JOB. */
static int agent_lost(struct client *c, int status)
{
    if (c->gone == 0 && status == RNL_ERR_SYSTEM)
        c->lost_errno = rnl_last_error()->sys_errno;
    return agent_gone(c);
}

/* 0, RNL_NO_ROOM (only if not `wait`), RNL_ERR_JOB. */
static int send_msg(struct client *c, const struct rnl_msg *msg, int wait)
{
    int status = c->gone ? RNL_ERR_JOB : rnl_msg_send(c->sock, msg, NULL, wait);
    if (status == RNL_NO_ROOM)
        return rnl_fail(RNL_NO_ROOM, "the launcher of this job does not take in requests now; try again later");
    return status < 0 ? agent_lost(c, status) : 0;
}

/* Whether a packet comes within wait_ns. An interrupted wait ends early. */
static bool comes(const struct client *c, uint64_t wait_ns)
{
    struct pollfd p = {.fd = c->sock, .events = POLLIN};
    const struct timespec t = {(time_t)(wait_ns / 1000000000u), (long)(wait_ns % 1000000000u)};
    return ppoll(&p, 1, &t, NULL) != 0;
}

/* Receives the agent's next message; *fd is its descriptor or -1. 0; RNL_NO_ROOM, without an error record: there is
 * none within wait_ns; RNL_ERR_JOB. */
static int receive_msg(struct client *c, struct rnl_msg *msg, int *fd, uint64_t wait_ns)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    *fd = -1;
    if (c->gone)
        return agent_gone(c);
    int status = rnl_seqpacket_receive(c->sock, bytes, sizeof bytes, 2, &p, wait_ns == UINT64_MAX);
    if (status == RNL_NO_ROOM && wait_ns > 0 && comes(c, wait_ns))
        status = rnl_seqpacket_receive(c->sock, bytes, sizeof bytes, 2, &p, 0);
    if (status < 0)
        return status == RNL_NO_ROOM ? status : agent_lost(c, status);
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

/* Takes in a message and its descriptor. 1: *event is to be reported; RNL_ERR_JOB. */
static int take_msg(struct client *c, const struct rnl_msg *msg, int fd, struct rnl_event *event)
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
        status = send_msg(c, &question, end == UINT64_MAX);
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
        status = receive_msg(c, &msg, &fd, end == UINT64_MAX ? UINT64_MAX : now < end ? end - now : 0);
        if (status == RNL_NO_ROOM && end != UINT64_MAX && now < end)
            continue; /* a signal interrupted the wait */
        if (status == RNL_NO_ROOM)
            return wait_ns == 0 ? status
                                : rnl_fail(status, "the launcher of this job has not replied yet: try again later");
        if (status == 0)
            status = take_msg(c, &msg, fd, &event);
        if (status == 1 && s->state == RNL_SEGMENT_REQUESTED) /* the caller takes in its own reply */
            status = keep_event(c, &event);
        if (status < 0)
            return status;
    }
    return 0;
}

/* Fails with the reason for which the agent gave no descriptor. */
static int no_segment(struct rnl_rank_segment *s, uint32_t rank)
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

static int client_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
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
        return no_segment(s, rank);
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

static void client_segment_mapped(struct rnl_env *env, int segment)
{
    struct client *c = rnl_client_of(env);
    const struct rnl_msg msg = {.kind = RNL_MSG_HAVE, .u.peer = {.rank = (uint32_t)segment}};
    rnl_rank_segment_mapped(env, segment);
    if (msg.u.peer.rank != env->rank && !c->gone)
        (void)!send_msg(c, &msg, 0); /* if lost, the agent keeps a descriptor until one rank is gone */
}

/* ---- events ---- */

static int client_event(struct rnl_env *env, struct rnl_event *out)
{
    struct client *c = rnl_client_of(env);
    struct rnl_msg msg;
    int fd;
    if (c->waiting > 0) {
        *out = c->waits[c->first];
        c->first = (c->first + 1) % c->room;
        c->waiting--;
        return 1;
    }
    if (getpid() != c->base.owner)
        return 0;
    if (!c->gone) {
        int status = receive_msg(c, &msg, &fd, 0);
        if (status == RNL_NO_ROOM)
            return 0;
        if (status == 0 && take_msg(c, &msg, fd, out) == 1)
            return 1;
    }
    if (c->gone != 1)
        return 0;
    c->gone = 2;
    *out = (struct rnl_event){.kind = RNL_EVENT_JOB_GONE};
    return 1;
}

static int client_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    const struct rnl_msg msg = {.kind = RNL_MSG_REPORT, .u.report = {.wave = wave, .activity = activity}};
    int status = rnl_rank_env_forked(env);
    return status < 0 ? status : send_msg(rnl_client_of(env), &msg, 1);
}

static int client_disconnect(struct rnl_env *env, uint32_t rank, int why)
{
    const struct rnl_msg msg = {.kind = RNL_MSG_DISCONNECT, .u.peer = {.rank = rank}};
    if (why != RNL_DEATH_BROKEN) /* a suspected rank learns it from its connection when it runs again */
        return 0;
    int status = rnl_rank_env_forked(env);
    return status < 0 ? status : send_msg(rnl_client_of(env), &msg, 0);
}

/* Called in a signal handler. A message that finds no room is left out. */
static void client_overran(struct rnl_env *env, uint32_t handler, uint32_t stack_bytes)
{
    const struct client *c = rnl_client_of(env);
    const struct rnl_msg msg = {.kind = RNL_MSG_OVERRAN, .u.overran = {handler, stack_bytes}};
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    if (getpid() == c->base.owner)
        (void)!send(c->sock, bytes, rnl_msg_encode(&msg, bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- other hosts ---- */

static bool address(struct rnl_env *env, uint32_t rank, const uint8_t ip[16], uint32_t scope,
                    struct rnl_rank_address *out)
{
    const struct client *c = rnl_client_of(env);
    const struct rnl_status_rank *r = &c->status->rank[rank];
    if (!c->networked || r->place.host == c->status->rank[env->rank].place.host)
        return false;
    rnl_rank_address(ip, scope, r->place.at.port, r->place.same_kernel != 0,
                     atomic_load_explicit(&r->incarnation, memory_order_relaxed), out);
    return true;
}

/* A rank's addresses: of the cards on wires that this rank has a card on, too, then those of its UDP socket. */
static int nth_address(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    static const uint8_t none[16];
    const struct rnl_rank_location *p = &rnl_client_of(env)->status->rank[rank].place;
    for (uint32_t wire = 1; wire <= RNL_JOB_CARDS_MAX; wire++) {
        const uint8_t *mac = p->card[wire - 1];
        struct rnl_socket_addr at;
        if (!(rnl_client_of(env)->base.wires >> wire & 1) || memcmp(mac, none, sizeof p->card[0]) == 0 || n-- > 0)
            continue;
        rnl_i8255x_address_of(mac, wire, p->at.port, &at);
        return address(env, rank, at.ip, wire, out);
    }
    if (n == 0)
        return address(env, rank, p->at.ip, 0, out);
    if (n > RNL_RANK_ALTERNATES || memcmp(p->further[n - 1], none, sizeof none) == 0)
        return 0;
    return address(env, rank, p->further[n - 1], 0, out);
}

static int client_place(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    return nth_address(env, rank, 0, out);
}

static int client_alternate(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    return nth_address(env, rank, n + 1, out);
}

static uint32_t client_host_of(struct rnl_env *env, uint32_t rank)
{
    return rnl_client_of(env)->status->rank[rank].place.host;
}

static uint64_t client_liveness(struct rnl_env *env, uint32_t rank)
{
    return atomic_load_explicit(&rnl_client_of(env)->status->rank[rank].attested_ns, memory_order_relaxed);
}

/* ---- life ---- */

static struct rnl_bell *client_bell_of(struct rnl_env *env, uint32_t rank)
{
    return &rnl_client_of(env)->bells[rank];
}

static void client_free(struct client *c)
{
    if (c->sock >= 0)
        close(c->sock);
    rnl_rank_env_end(&c->base);
    if (c->status)
        munmap((void *)(uintptr_t)c->status, c->status_bytes);
    if (c->bells)
        munmap(c->bells, c->bells_bytes);
    free(c->waits);
    rnl_secret_free(c, sizeof *c);
}

static void client_close(struct rnl_env *env)
{
    struct client *c = rnl_client_of(env);
    const struct rnl_msg msg = {.kind = RNL_MSG_LEAVE};
    if (!c->gone && getpid() == c->base.owner)
        (void)send_msg(c, &msg, 1);
    client_free(c);
}

/* The status page has pids as the agent calls them. If it calls this process as this process calls itself, so are the
 * others. */
static int32_t client_pid_of(struct rnl_env *env, uint32_t rank)
{
    const struct client *c = rnl_client_of(env);
    const struct rnl_status_rank *r = c->status->rank;
    const pid_t own = getpid();
    if (rank == env->rank)
        return own;
    uint32_t called = atomic_load_explicit(&r[env->rank].pid, memory_order_relaxed);
    return called == (uint32_t)own ? (int32_t)atomic_load_explicit(&r[rank].pid, memory_order_relaxed) : 0;
}

static const struct rnl_env_ops client_ops = {
    RNL_RANK_ENV_OPS,
    .pid_of = client_pid_of,
    .segment_open = client_segment_open,
    .segment_map = rnl_rank_segment_map,
    .segment_unmap = rnl_rank_segment_unmap,
    .segment_mapped = client_segment_mapped,
    .segment_close = rnl_rank_segment_close,
    .event = client_event,
    .close_report = client_close_report,
    .disconnect = client_disconnect,
    .close = client_close,
    .rank_address = client_place,
    .alternate_address = client_alternate,
    .liveness = client_liveness,
    .host_of = client_host_of,
    .overran = client_overran,
};

/* Sends HELLO over the bootstrap socket, with one end of a new pair of sockets. */
static int greet(struct client *c, int bootstrap)
{
    const struct rnl_msg hello = {.kind = RNL_MSG_HELLO};
    int pair[2];
    int status = rnl_seqpacket_pair(pair);
    if (status < 0)
        return status;
    c->sock = pair[0];
    status = rnl_msg_send(bootstrap, &hello, &pair[1], 1);
    close(pair[1]); /* so that the agent's death shows as end of file at the other end */
    return status != RNL_ERR_JOB
               ? status
               : rnl_fail(status,
                          "the launcher that RUNNEL_FD leads to is gone: start the job again with `runnel run`, "
                          "or unset RUNNEL_FD to run alone");
}

static int rejected(const struct rnl_msg *msg, enum rnl_msg_verdict verdict)
{
    if (verdict == RNL_MSG_OTHER_VERSION)
        return rnl_fail(RNL_ERR_JOB,
                        "the launcher speaks version %u of its protocol and this program version %u: "
                        "use `runnel run` and the library of one release",
                        msg->u.hello.version, (unsigned)RNL_PROTO_VERSION);
    switch (msg->u.rejected.why) {
    case RNL_REJECTED_VERSION:
        return rnl_fail(
            RNL_ERR_JOB,
            "the launcher rejected version %u of its protocol: use `runnel run` and the library of one release",
            (unsigned)RNL_PROTO_VERSION);
    case RNL_REJECTED_TWICE:
        return rnl_fail(
            RNL_ERR_JOB,
            "this rank has joined its job before: a job has one endpoint a rank, opened once, by one process; "
            "unset RUNNEL_FD for programs that should run alone");
    case RNL_REJECTED_NO_ROOM:
        return rnl_fail(RNL_ERR_JOB,
                        "the launcher ran out of descriptors: raise their limit (ulimit -n) where it is started");
    }
    return rnl_fail(RNL_ERR_JOB, "the launcher holds this rank for dead: its first process has ended; "
                                 "a rank's program must not outlive what the launcher started");
}

/* Checks and maps the status page and the doorbells. */
static int map_pages(struct client *c, uint32_t size, const int fds[2])
{
    c->status_bytes = rnl_status_bytes(size);
    c->bells_bytes = (size_t)size * RNL_BELL_BYTES;
    if (rnl_memfd_check(fds[0], c->status_bytes, 0) < 0 || rnl_memfd_check(fds[1], c->bells_bytes, 0) < 0)
        return rnl_fail(RNL_ERR_JOB,
                        "the launcher's pages are not sealed or not of the size of a job of %u rank%s: refused", size,
                        RNL_S(size));
    void *status = mmap(NULL, c->status_bytes, PROT_READ, MAP_SHARED, fds[0], 0);
    c->status = status == MAP_FAILED ? NULL : status;
    void *bells = mmap(NULL, c->bells_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    c->bells = bells == MAP_FAILED ? NULL : bells;
    if (!c->status || !c->bells)
        return rnl_fail(RNL_ERR_NO_MEMORY,
                        "cannot map the launcher's pages for a job of %u rank%s: raise the limit of address space "
                        "(ulimit -v)",
                        size, RNL_S(size));
    if (c->status->magic != RNL_STATUS_MAGIC || c->status->version != RNL_STATUS_VERSION || c->status->size != size)
        return rnl_fail(RNL_ERR_JOB, "the launcher's status page is of another version: use `runnel run` and the "
                                     "library of one release");
    return 0;
}

static int take_welcome(struct client *c, const struct rnl_msg_welcome *w, struct rnl_seqpacket *p)
{
    struct rnl_env *env = &c->base.env;
    env->rank = w->rank;
    env->size = w->size;
    env->incarnation = w->incarnation;
    env->facts.keep_going = (w->flags & RNL_WELCOME_KEEP_GOING) != 0;
    env->facts.launched = 1;
    memcpy(env->host, w->host, sizeof env->host);
    memcpy(env->job_key, w->key, sizeof env->job_key);
    static_assert(sizeof env->job_key == sizeof w->key, "one key");
    int status = rnl_rank_env_segments(&c->base, w->size, w->rank);
    if (status == 0)
        status = map_pages(c, w->size, p->fds);
    if (status < 0)
        return status;
    env->facts.silence_ms = c->status->silence_ms;
    env->event_seq = &c->status->rank[w->rank].news;
    env->bell = &c->bells[w->rank];
    c->networked = (w->flags & RNL_WELCOME_NETWORK) != 0;
    if (!c->networked)
        return 0;
    int udp = fcntl(p->fds[2], F_DUPFD_CLOEXEC, 0); /* a copy, since the packet's descriptors are closed */
    const struct rnl_rank_beside beside = {.rings = w->flags & RNL_WELCOME_RINGS ? p->fds[3] : -1,
                                           .memory = p->fds[4],
                                           .cards = w->cards,
                                           .card = p->fds + 3};
    if (udp >= 0)
        return rnl_rank_env_connect(&c->base, udp, &beside);
    return rnl_fail(RNL_ERR_SYSTEM,
                    "this process has no free descriptor to join its job: raise their limit (ulimit -n)");
}

static int receive_welcome(struct client *c)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_msg msg;
    int status = rnl_seqpacket_receive(c->sock, bytes, sizeof bytes, RNL_SEQPACKET_FDS_MAX, &p, 1);
    if (status == RNL_ERR_JOB)
        return rnl_fail(status,
                        "the launcher did not let this rank in: it is gone, or out of descriptors; start the job "
                        "again, with a higher limit of descriptors (ulimit -n)");
    if (status < 0)
        return agent_lost(c, status);
    enum rnl_msg_verdict verdict = rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, RNL_JOB_RANKS_MAX, &msg);
    if (verdict == RNL_MSG_OTHER_VERSION || (verdict == RNL_MSG_GOOD && msg.kind == RNL_MSG_REJECTED))
        status = rejected(&msg, verdict);
    else if (verdict != RNL_MSG_GOOD || msg.kind != RNL_MSG_WELCOME)
        status = rnl_fail(RNL_ERR_JOB, "what replies at RUNNEL_FD is no launcher: start the program with `runnel run`, "
                                       "or unset RUNNEL_FD to run alone");
    else if (p.nfds != rnl_msg_fds(&msg))
        status = rnl_fail(RNL_ERR_SYSTEM,
                          "this process has no free descriptors to join its job: raise their limit (ulimit -n)");
    else
        status = take_welcome(c, &msg.u.welcome, &p);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(&msg, sizeof msg);
    rnl_seqpacket_drop(&p);
    return status;
}

int rnl_client_env(int bootstrap, struct rnl_env **out)
{
    struct client *c = rnl_secret_new(sizeof *c); /* since it holds the key of the job */
    if (!c)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to join a job");
    rnl_rank_env_init(&c->base, &client_ops);
    c->base.env.bell_of = client_bell_of;
    c->sock = -1;
    int status = greet(c, bootstrap);
    if (status == 0)
        status = receive_welcome(c);
    if (status < 0)
        client_free(c);
    else
        *out = &c->base.env;
    return status;
}
