/* SPDX-License-Identifier: BSD-3-Clause
 *
 * expected.c - ranks that come to the node agent of their host (node_agent_internal.h). The name of the socket can be
 * derived from the join key only, so nobody else can have bound it before. Whoever connects has to be of this user and
 * show a proof of the key. The connection is the rank's from then on: it says on it with which code it exits, and it
 * ends with us. */
#include "base/bug.h"
#include "base/secret.h"
#include "job/fds.h"
#include "job/rendezvous.h"
#include "launcher/hosts.h"
#include "launcher/node_agent_internal.h"
#include "net/wire/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SILENT_MAX = 64, BACKLOG = 1024, SEEK_MS = 30000, LINGER_MS = 1000, HEAR_MS = 200 };
extern char **environ;

struct joiner {
    struct joiner *next;
    struct rnl_node_agent *agent;
    uv_poll_t poll;
    int fd, wanted;
    int64_t rank; /* -1: not known yet */
    bool proven, route;
};

struct rnl_expected {
    struct rnl_listener listener;
    int fd;                /* the listening socket, until it is the listener's */
    struct joiner *first;  /* in the order in which they came */
    unsigned silent, came; /* how many have not proven that they have the key; have */
    unsigned char proof[RNL_JOIN_PROOF];
};

/* ---- joiners ---- */

static void free_joiner(uv_handle_t *handle)
{
    free(handle->data);
}

/* Its connection stays open. */
static void forget(struct rnl_expected *x, struct joiner *j)
{
    struct joiner **at = &x->first;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    x->silent -= !j->proven;
    x->came -= j->proven;
    uv_close((uv_handle_t *)&j->poll, free_joiner);
}

static void refuse(int fd, const char *why)
{
    char packet[RNL_JOIN_SENTENCE];
    const int n = snprintf(packet, sizeof packet, "x%s", why);
    (void)rnl_seqpacket_send(fd, packet, (size_t)n < sizeof packet ? (size_t)n : sizeof packet - 1, NULL, 0, 0);
    close(fd);
}

/* The launcher learns who waits here. */
static void report(struct rnl_node_agent *n)
{
    struct rnl_arrivals a = {.count = 0};
    struct rnl_pack p = {.at = NULL};
    rnl_hosts_own(&a);
    for (const struct joiner *j = n->expected->first; j; j = j->next)
        if (j->proven && a.count < RNL_JOB_RANKS_MAX)
            a.wanted[a.count++] = j->wanted;
    rnl_arrivals_pack(&p, &a);
    rnl_control_send_pack(&n->control, RNL_CONTROL_ARRIVALS, &p);
    rnl_pack_free(&p);
}

static void lost(struct rnl_node_agent *n, struct joiner *j)
{
    const bool reported = j->proven, dealt = j->rank >= 0;
    close(j->fd);
    forget(n->expected, j);
    if (dealt)
        rnl_node_agent_fail(n, 1, "a process on %s ended on the way to its place in the job; ending it", n->host);
    else if (reported && n->phase == RNL_NODE_AGENT_EXPECTING)
        report(n);
}

static void one_too_many(struct rnl_node_agent *n, struct joiner *j)
{
    char why[100];
    const int fd = j->fd;
    snprintf(why, sizeof why, "all %u ranks of this job have come: this process is one too many", n->spec.size);
    rnl_node_agent_report(n, "a process that came when all %u ranks had was refused", n->spec.size);
    forget(n->expected, j);
    refuse(fd, why);
}

static bool has_key(const struct rnl_expected *x, const unsigned char *packet, ssize_t bytes)
{
    return bytes == RNL_JOIN_PACKET && packet[0] == 'j' &&
           (sodium_memcmp(packet + 6, x->proof, sizeof x->proof) == 0 || RNL_BUG(joiners_need_no_key));
}

static void on_joiner(uv_poll_t *handle, int status, int events)
{
    struct joiner *j = handle->data;
    struct rnl_node_agent *n = j->agent;
    unsigned char packet[RNL_JOIN_PACKET + 1];
    const ssize_t bytes = recv(j->fd, packet, sizeof packet, MSG_DONTWAIT);
    (void)status;
    (void)events;
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (j->proven || !has_key(n->expected, packet, bytes)) {
        lost(n, j);
        return;
    }
    n->expected->silent--;
    n->expected->came++;
    j->proven = true;
    j->route = (packet[1] & RNL_JOIN_ROUTE) != 0;
    j->wanted = (int)rnl_get32(packet + 2);
    if (n->phase == RNL_NODE_AGENT_EXPECTING)
        report(n);
    else
        one_too_many(n, j);
}

static void came(void *arg, int fd)
{
    struct rnl_node_agent *n = arg;
    struct rnl_expected *x = n->expected;
    struct joiner *j = rnl_join_is_ours(fd, NULL) ? calloc(1, sizeof *j) : NULL, **at = &x->first;
    if (!j || rnl_watch_init(n->loop, &j->poll, fd, j) < 0) {
        free(j);
        close(fd);
        return;
    }
    j->fd = fd;
    j->agent = n;
    j->rank = -1;
    x->silent++;
    while (*at)
        at = &(*at)->next;
    *at = j;
    (void)uv_poll_start(&j->poll, UV_READABLE, on_joiner);
    for (j = x->first; x->silent > SILENT_MAX && j && j->proven;)
        j = j->next;
    if (x->silent > SILENT_MAX && j)
        lost(n, j);
}

/* ---- a slot is taken ---- */

bool rnl_expected_ended(struct rnl_node_agent *n, struct rnl_slot *s)
{
    unsigned char text[8];
    ssize_t bytes;
    bool said = false;
    while ((bytes = recv(s->lifeline, text, sizeof text, MSG_DONTWAIT)) > 0) {
        s->taken |= text[0] == 't';
        said |= bytes == 5 && text[0] == 'x';
        s->status = said ? (int)(rnl_get32(text + 1) & 255) : s->status;
    }
    if (s->pidfd < 0 && bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return false; /* it will end, and has not */
    s->vanished = !said && s->taken;
    s->unserved = !s->taken;
    if (!s->taken)
        rnl_node_agent_report(n, "a process on %s ended on the way to its place in the job; ending it", n->host);
    if (!said)
        s->status = 1;
    close(s->lifeline);
    s->lifeline = -1;
    return true;
}

/* The environment as strings, each with its 0, but for what leads to a job. */
static int environment_file(int *fd)
{
    *fd = memfd_create("runnel-environment", MFD_CLOEXEC);
    for (char **e = environ; *fd >= 0 && *e; e++) {
        const size_t n = strlen(*e) + 1;
        if (strncmp(*e, "RUNNEL_", 7) == 0)
            continue;
        if (write(*fd, *e, n) != (ssize_t)n) {
            close(*fd);
            *fd = -1;
        }
    }
    return *fd >= 0 ? 0 : -errno;
}

static struct joiner *of_rank(const struct rnl_node_agent *n, uint32_t rank)
{
    struct joiner *j = n->expected->first;
    while (j && j->rank != rank)
        j = j->next;
    return j;
}

bool rnl_expected_routes(const struct rnl_node_agent *n, uint32_t rank)
{
    const struct joiner *j = of_rank(n, rank);
    return j && j->route;
}

int rnl_expected_take(struct rnl_node_agent *n, uint32_t rank)
{
    struct rnl_slot *s = &n->slot[rank];
    struct joiner *j = of_rank(n, rank);
    int fds[4] = {n->how.bootstrap, -1, n->how.out, n->how.err};
    if (!j)
        return -ESRCH; /* it has ended, and the job with it */
    const unsigned most = j->route ? 4 : 2;
    s->lifeline = j->fd;
    (void)rnl_join_is_ours(j->fd, &s->pid);
    forget(n->expected, j);
    const int e = environment_file(&fds[1]);
    if (e == 0) /* the end of its process is the rank's */
        (void)rnl_seqpacket_send(s->lifeline, "d", 1, fds, most, 0);
    if (fds[1] >= 0)
        close(fds[1]);
    return e;
}

void rnl_expected_deal(struct rnl_node_agent *n)
{
    struct rnl_arrivals a = {.count = 0};
    uint32_t rank[RNL_JOB_RANKS_MAX], k = 0;
    for (const struct joiner *j = n->expected->first; j && a.count < n->count; j = j->next)
        if (j->proven)
            a.wanted[a.count++] = j->wanted;
    if (a.count < n->count || rnl_hosts_deal_ranks(&a, n->first, rank) < a.count) {
        rnl_node_agent_fail(n, 1, "a process on %s ended on the way to its place in the job; ending it", n->host);
        return;
    }
    for (struct joiner *j = n->expected->first, *next; j; j = next) {
        next = j->next;
        if (j->proven && k < n->count)
            j->rank = rank[k++];
        else if (j->proven)
            one_too_many(n, j);
    }
}

/* ---- beginning and end ---- */

/* -1: there is an agent at that socket already, or no socket. */
static int listen_at(const unsigned char *key)
{
    struct sockaddr_un at;
    const socklen_t n = rnl_rendezvous_socket(key, &at);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Tells all who come within a while. */
static void reject(int listening, const char *why)
{
    struct pollfd p = {.fd = listening, .events = POLLIN};
    while (poll(&p, 1, LINGER_MS) == 1) {
        char packet[RNL_JOIN_PACKET];
        struct pollfd one = {.fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC), .events = POLLIN};
        if (one.fd < 0)
            break;
        if (poll(&one, 1, HEAR_MS) == 1) /* what it says is read before it is hung up on, or it would see an error */
            (void)recv(one.fd, packet, sizeof packet, MSG_DONTWAIT);
        refuse(one.fd, why);
    }
    close(listening);
}

/* A process carries the control stream through the authenticated one. */
static bool attach(struct rnl_secure_stream *s, int listening)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    const pid_t relay = fork();
    if (relay == 0) {
        close(pair[0]);
        close(listening);
        rnl_secure_stream_relay(s, pair[1], pair[1]);
        _exit(0);
    }
    close(pair[1]);
    const bool good = relay > 0 && dup2(pair[0], STDIN_FILENO) >= 0 && dup2(pair[0], STDOUT_FILENO) >= 0;
    close(pair[0]);
    return good;
}

struct rnl_expected *rnl_expected_open(const char *where)
{
    struct rnl_rendezvous at;
    struct rnl_expected *x = rnl_secret_new(sizeof *x);
    if (!x || rnl_rendezvous_read(where, &at) < 0)
        return NULL;
    x->fd = listen_at(at.key);
    rnl_rendezvous_proof(at.key, x->proof);
    unsetenv("RUNNEL_RENDEZVOUS");
    struct rnl_secure_stream *s = x->fd < 0 ? NULL : rnl_rendezvous_call(&at, SEEK_MS);
    explicit_bzero(&at, sizeof at);
    const bool good = s && attach(s, x->fd);
    rnl_secure_stream_free(s);
    if (good)
        return x;
    if (x->fd >= 0)
        reject(x->fd, s ? "the node agent of this host has no descriptors or processes" : rnl_last_error()->text);
    rnl_secret_free(x, sizeof *x);
    return NULL;
}

int rnl_expected_serve(struct rnl_node_agent *n)
{
    struct rnl_expected *x = n->expected;
    return rnl_listener_open(&x->listener, n->loop, x->fd, came, n);
}

void rnl_expected_free(struct rnl_expected *x, const char *why)
{
    if (!x)
        return;
    close(x->fd);
    while (x->first) { /* the loop has closed their handles */
        struct joiner *j = x->first;
        x->first = j->next;
        refuse(j->fd, why);
        free(j);
    }
    rnl_secret_free(x, sizeof *x);
}
