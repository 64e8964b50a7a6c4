/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.c - the env of a rank that a launcher started: joining, news, leaving. What it asks of the agent is in
 * client_ask.c.
 *
 * One thread at a time. In a forked child every operation refuses, and close leaves the parent's place alone. */
#include "base/bell.h"
#include "base/error.h"
#include "job/client_in.h"
#include "job/fds.h"
#include "job/job.h"
#include "transport/udp/kernel.h"
#include "transport/udp/udp.h"
#include "wire/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    struct client *c = rnl_client_of(env);
    struct rnl_msg msg;
    int fd;
    if (c->waiting > 0) {
        const struct rnl_msg_event *e = &c->waits[c->first];
        c->first = (c->first + 1) % c->room;
        c->waiting--;
        return deliver(e, out);
    }
    while (!c->gone && getpid() == c->owner) {
        struct rnl_msg_event connect;
        int r = rnl_client_hear(c, &msg, &fd, 0);
        if (r == -EAGAIN)
            return 0;
        if (r == 0 && msg.kind == RNL_MSG_EVENT)
            return deliver(&msg.u.event, out);
        if (r == 0 && rnl_client_given(c, &msg, fd, &connect) == 1)
            return deliver(&connect, out);
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
    struct client *c = rnl_client_of(env);
    int r = rnl_client_forked(c);
    if (r < 0)
        return r;
    struct rnl_msg m = {.kind = RNL_MSG_REPORT};
    m.u.report.wave = wave;
    m.u.report.activity = activity;
    return rnl_client_say(c, &m, 1);
}

static int client_part(struct rnl_env *env, uint32_t rank, int why)
{
    struct client *c = rnl_client_of(env);
    const struct rnl_msg m = {.kind = RNL_MSG_PART, .u.peer = {.rank = rank, .why = (uint32_t)why}};
    int r = rnl_client_forked(c);
    return r < 0 ? r : rnl_client_say(c, &m, 0);
}

/* ---- other hosts ---- */

static int client_place(struct rnl_env *env, uint32_t rank, struct rnl_place *out)
{
    const struct rnl_places *p = rnl_client_of(env)->places;
    struct rnl_addr addr;
    if (p == NULL || p->rank[rank].host == p->rank[env->rank].host)
        return 0;
    rnl_udp_addr_of(&p->rank[rank].at, &addr);
    *out = (struct rnl_place){.incarnation = p->rank[rank].incarnation,
                              .same_kernel = p->rank[rank].same_kernel != 0,
                              .addr_bytes = addr.len};
    static_assert(sizeof out->addr == sizeof addr.bytes, "an address is an address");
    memcpy(out->addr, addr.bytes, addr.len);
    return 1;
}

static int client_way(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_place *out)
{
    static const uint8_t none[16];
    const struct rnl_places *p = rnl_client_of(env)->places;
    struct rnl_addr addr;
    if (n >= RNL_PLACE_FURTHER || client_place(env, rank, out) != 1 ||
        memcmp(p->rank[rank].further[n], none, sizeof none) == 0)
        return 0;
    struct rnl_socket_addr at = p->rank[rank].at;
    memcpy(at.ip, p->rank[rank].further[n], sizeof at.ip);
    rnl_udp_addr_of(&at, &addr);
    memcpy(out->addr, addr.bytes, addr.len);
    return 1;
}

static uint64_t client_vouched(struct rnl_env *env, uint32_t rank)
{
    return atomic_load_explicit(&rnl_client_of(env)->status->rank[rank].vouched_ns, memory_order_relaxed);
}

/* The table of places, and our socket, which becomes the env's way to other hosts. */
static int connect_net(struct client *c, const struct rnl_packet *p)
{
    struct rnl_socket *socket;
    int r = rnl_places_map(p->fds[2], c->env.size, &c->places);
    if (r == -EINVAL)
        return rnl_fail(RNL_ERR_JOB,
                        "the launcher's table of places is not sealed, or not that of a job of %u rank%s: "
                        "use `runnel run` and the library of one release",
                        c->env.size, RNL_S(c->env.size));
    if (r < 0)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, -r, "cannot map the launcher's table of places for a job of %u rank%s",
                              c->env.size, RNL_S(c->env.size));
    int fd = fcntl(p->fds[3], F_DUPFD_CLOEXEC, 0); /* the packet's own are dropped */
    if (fd < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                              "this process has no free descriptor to join its job: raise their limit (ulimit -n)");
    const struct rnl_kernel_options options = {.claims = rnl_wire_claims};
    r = rnl_kernel_socket_adopt(fd, &options, &socket);
    if (r < 0) {
        close(fd);
        return r;
    }
    r = rnl_udp_transport_new(&c->env, socket, NULL, &c->env.datagrams);
    if (r < 0)
        socket->ops->close(socket);
    return r;
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
    if (c->env.datagrams != NULL) /* no endpoint had it */
        c->env.datagrams->ops->close(c->env.datagrams);
    rnl_client_forget(c);
    if (c->places != NULL)
        rnl_places_unmap(c->places, c->env.size);
    if (c->status != NULL)
        munmap((void *)(uintptr_t)c->status, c->status_bytes);
    if (c->bells != NULL)
        munmap(c->bells, c->bells_bytes);
    explicit_bzero(c->key, sizeof c->key);
    explicit_bzero(c->env.job_key, sizeof c->env.job_key);
    free(c->waits);
    free(c);
}

static void client_close(struct rnl_env *env)
{
    struct client *c = rnl_client_of(env);
    struct rnl_msg m = {.kind = RNL_MSG_LEAVE};
    if (!c->gone && getpid() == c->owner)
        (void)rnl_client_say(c, &m, 1);
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
    .segment_open = rnl_client_segment_open,
    .segment_map = rnl_client_segment_map,
    .segment_unmap = rnl_client_segment_unmap,
    .segment_settle = rnl_client_segment_settle,
    .segment_close = rnl_client_segment_close,
    .event = client_event,
    .close_report = client_close_report,
    .part = client_part,
    .fd = rnl_client_fd,
    .fd_drain = rnl_client_fd_drain,
    .fd_until = rnl_client_fd_until,
    .fd_raise = rnl_client_fd_raise,
    .close = client_close,
    .place = client_place,
    .way = client_way,
    .vouched = client_vouched,
    .park_on = rnl_host_park_on,
    .fd_watch = rnl_client_fd_watch,
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
    int r = rnl_packet_receive(c->sock, bytes, sizeof bytes, RNL_PACKET_FDS_MAX, &p, 1);
    if (r == -EPIPE)
        return rnl_fail(RNL_ERR_JOB, "the launcher did not let this rank in: it is gone, or out of descriptors; start "
                                     "the job again, with a higher limit of descriptors (ulimit -n)");
    if (r < 0)
        return rnl_client_agent_lost(c, r);
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
    if (p.nfds != rnl_msg_fds(&msg)) {
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
    memcpy(c->env.job_key, w->key, sizeof c->env.job_key);
    static_assert(sizeof c->env.job_key == sizeof w->key, "one key");
    explicit_bzero(bytes, sizeof bytes);
    c->status_bytes = rnl_status_bytes(w->size);
    c->segment = calloc(w->size, sizeof *c->segment);
    c->raise = calloc(w->size, sizeof *c->raise);
    c->bells_bytes = (size_t)w->size * RNL_BELL_BYTES;
    if (c->segment == NULL || c->raise == NULL) {
        r = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u ranks", w->size);
        goto out;
    }
    r = RNL_ERR_JOB;
    if (rnl_memfd_check(p.fds[0], c->status_bytes, 0) < 0 || rnl_memfd_check(p.fds[1], c->bells_bytes, 0) < 0) {
        rnl_fail(r, "the launcher's pages are not sealed or not of the size of a job of %u rank%s: refused", w->size,
                 RNL_S(w->size));
        goto out;
    }
    void *status = mmap(NULL, c->status_bytes, PROT_READ, MAP_SHARED, p.fds[0], 0);
    void *bells = mmap(NULL, c->bells_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p.fds[1], 0);
    int e = errno;
    c->status = status == MAP_FAILED ? NULL : status;
    c->bells = bells == MAP_FAILED ? NULL : bells;
    if (c->status == NULL || c->bells == NULL) {
        r = rnl_fail_errno(RNL_ERR_NO_MEMORY, e, "cannot map the launcher's pages for a job of %u rank%s", w->size,
                           RNL_S(w->size));
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
    r = w->flags & RNL_WELCOME_NETWORK ? connect_net(c, &p) : 0;
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
    c->sock = -1;
    c->wait = RNL_WAITFD_NONE;
    int r = knock(c, door);
    if (r == 0)
        r = enter(c);
    if (r < 0) {
        client_free(c);
        return r;
    }
    rnl_host_facts(&c->env.facts);
    if (c->env.datagrams != NULL)
        c->env.facts.trip_ns = rnl_host_trip_ns();
    c->env.facts.launched = 1;
    *out = &c->env;
    return 0;
}
