/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.c - the env of a rank that a launcher started: joins the job, takes in events, leaves. client_segment.c has
 * its messages to the agent.
 *
 * For one thread at a time. A forked child leaves the parent's connection alone. */
#include "base/error.h"
#include "base/secret.h"
#include "job/client_internal.h"
#include "job/fds.h"
#include "job/job.h"
#include "net/socket/i8255x/i8255x.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
        int status = rnl_client_receive(c, &msg, &fd, 0);
        if (status == RNL_NO_ROOM)
            return 0;
        if (status == 0 && rnl_client_take(c, &msg, fd, out) == 1)
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
    return status < 0 ? status : rnl_client_send(rnl_client_of(env), &msg, 1);
}

static int client_disconnect(struct rnl_env *env, uint32_t rank, int why)
{
    const struct rnl_msg msg = {.kind = RNL_MSG_DISCONNECT, .u.peer = {.rank = rank}};
    if (why != RNL_DEATH_BROKEN) /* a suspected rank learns it from its connection when it runs again */
        return 0;
    int status = rnl_rank_env_forked(env);
    return status < 0 ? status : rnl_client_send(rnl_client_of(env), &msg, 0);
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
        (void)rnl_client_send(c, &msg, 1);
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
    .segment_open = rnl_client_segment_open,
    .segment_map = rnl_rank_segment_map,
    .segment_unmap = rnl_rank_segment_unmap,
    .segment_mapped = rnl_client_segment_mapped,
    .segment_close = rnl_rank_segment_close,
    .event = client_event,
    .close_report = client_close_report,
    .disconnect = client_disconnect,
    .close = client_close,
    .rank_address = client_place,
    .alternate_address = client_alternate,
    .liveness = client_liveness,
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
        return rnl_client_agent_lost(c, status);
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
