/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client_find.c - a client looks for the link to its server: over the very CLIENT that it has. A server that is not on
 * this host is asked only if there may be a key for other hosts. */
#include "client.h"
#include "host.h"
#include "pair.h"
#include "preload.h"
#include "remote.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CALLS_BEFORE = 2,
    ANSWER_S = 1,
    /* A server that does not answer in time may be busy: it is asked again after ever more calls. */
    TRIES_MAX = 4,
    CALLS_BETWEEN = 16,
    TIMES_MORE = 8,
    LATE_MAX = 64,
    LATE_CALLS = 2,
    LATE_MS = 50,
    LOOKS_MAX = 1000,
    FAR_MS = 60000
};

void rnl_rpc_client_begin(struct rnl_rpc_client *c)
{
    c->calls = c->tries = 0;
    c->late = 0;
    c->calls_before = rnl_rpc_settings()->now ? 0 : CALLS_BEFORE;
}

static bool is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24) == 127;
    if (a->ss_family == AF_INET6) {
        const struct in6_addr *to = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(to) || (IN6_IS_ADDR_V4MAPPED(to) && to->s6_addr[12] == 127);
    }
    return a->ss_family == AF_UNIX;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* An address is this host's own if packets to it leave from it. */
static bool is_own(const struct sockaddr_storage *a, socklen_t bytes)
{
    struct sockaddr_storage from;
    socklen_t n = sizeof from;
    if (is_loopback(a))
        return true;
    if (a->ss_family != AF_INET && a->ss_family != AF_INET6)
        return false;
    int fd = socket(a->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* connecting it sends nothing */
    bool own = fd >= 0 && connect(fd, (const struct sockaddr *)a, bytes) == 0 &&
               getsockname(fd, (struct sockaddr *)&from, &n) == 0 && same_address(a, &from);
    if (fd >= 0)
        close(fd);
    return own;
}

static bool server_is_here(CLIENT *cl, struct rnl_rpc_client *c, struct sockaddr_storage *a)
{
    struct netbuf address = {0};
    *a = (struct sockaddr_storage){0};
    if (!c->real->cl_control(cl, CLGET_SVC_ADDR, &address) || !address.buf || address.len > sizeof *a ||
        address.len < sizeof a->ss_family)
        return false;
    memcpy(a, address.buf, address.len);
    return is_own(a, address.len);
}

/* Writes "SERVICE@HOST", by the address at which the server answers. Returns false if it has none that other programs
 * could use. */
static bool name_remote(const struct sockaddr_storage *a, const char *service, char *to, size_t n)
{
    char ip[INET6_ADDRSTRLEN];
    unsigned uid;
    int at = 0;
    const void *from = a->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
                                               : &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    if ((a->ss_family != AF_INET && a->ss_family != AF_INET6) || !inet_ntop(a->ss_family, from, ip, sizeof ip))
        return false;
    if (a->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)from))
        return false;
    /* Daemons of users know the own user by the key, whatever its number is there. */
    if (sscanf(service, "%10u/%n", &uid, &at) == 1 && at > 0 && uid == (unsigned)geteuid())
        service += at;
    return (size_t)snprintf(to, n, a->ss_family == AF_INET ? "%s@%s" : "%s@[%s]", service, ip) < n;
}

static void stay(struct rnl_rpc_client *c, const char *why)
{
    rnl_rpc_explain("program %u version %u stays with libtirpc: %s", c->program, c->version, why);
    c->late = 0;
    atomic_store_explicit(&c->state, RNL_RPC_CLIENT_OLD, memory_order_release);
}

void rnl_rpc_client_drain(CLIENT *cl, struct rnl_rpc_client *c)
{
    char byte;
    int fd, came = 0;
    if (!c->real->cl_control(cl, CLGET_FD, &fd))
        return;
    while (came < LATE_MAX && rnl_rpc_sleep_on(fd, LATE_MS) > 0 && recv(fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0)
        came++;
    c->late = came ? LATE_CALLS : c->late - 1;
}

/* A UDP client stays NEW for good, since its calls have to take in what comes late, one after the other. */
static void retry_later(struct rnl_rpc_client *c)
{
    c->late = c->datagram ? LATE_CALLS : 0;
    c->calls = 0;
    c->calls_before = ++c->tries == 1 ? CALLS_BETWEEN : c->calls_before * TIMES_MORE;
    if (c->tries >= TRIES_MAX)
        c->calls_before = UINT_MAX;
    rnl_rpc_explain(
        "program %u version %u: its server did not answer in time whether it has this library, and is asked again "
        "%u calls later",
        c->program, c->version, c->calls_before);
}

/* The private program is called over the CLIENT, with its numbers, credentials and time-out replaced for this one
 * call. */
static enum clnt_stat introduce(CLIENT *cl, struct rnl_rpc_client *c, struct timeval limit, struct rnl_rpc_place *place,
                                struct rnl_rpc_answer *answer)
{
    u_int32_t program = RNL_RPC_PROGRAM, version = RNL_RPC_VERSION;
    AUTH *auth = cl->cl_auth;
    if (c->late)
        rnl_rpc_client_drain(cl, c);
    c->real->cl_control(cl, CLSET_PROG, &program);
    c->real->cl_control(cl, CLSET_VERS, &version);
    if (c->wait_set)
        c->real->cl_control(cl, CLSET_TIMEOUT, &limit);
    cl->cl_auth = rnl_rpc_tirpc()->authnone_create();
    enum clnt_stat status = c->real->cl_call(cl, RNL_RPC_INTRODUCE, (xdrproc_t)rnl_rpc_xdr_place, (void *)place,
                                             (xdrproc_t)rnl_rpc_xdr_answer, (void *)answer, limit);
    cl->cl_auth = auth;
    if (c->wait_set)
        c->real->cl_control(cl, CLSET_TIMEOUT, &c->wait);
    c->real->cl_control(cl, CLSET_PROG, &c->program);
    c->real->cl_control(cl, CLSET_VERS, &c->version);
    return status;
}

static void greeted(struct rnl_rpc_client *c, const struct rnl_rpc_answer *answer, int sock)
{
    memcpy(c->proof, answer->proof, sizeof c->proof);
    c->sock = sock;
    c->calls = 0;
    c->greeted_ns = rnl_rpc_now_ns();
    atomic_store_explicit(&c->state, RNL_RPC_CLIENT_GREETED, memory_order_release);
}

static void greet_remote(CLIENT *cl, struct rnl_rpc_client *c, const struct rnl_rpc_answer *answer,
                         const struct sockaddr_storage *a)
{
    char service[RNL_RPC_SERVICE_BYTES + INET6_ADDRSTRLEN + 4];
    const char *why = "its server has no address by which daemons could find its host";
    int fd;
    if (memchr(answer->service, '\0', sizeof answer->service) &&
        name_remote(a, answer->service, service, sizeof service))
        c->link = rnl_rpc_remote_reach(service, answer->token, answer->proof, &why);
    if (!c->link) {
        stay(c, why);
        return;
    }
    if (!c->datagram && c->real->cl_control(cl, CLGET_FD, &fd))
        rnl_rpc_remote_watch(c->link, fd);
    greeted(c, answer, c->link->fd);
}

void rnl_rpc_client_greet(CLIENT *cl, struct rnl_rpc_client *c, struct timeval limit)
{
    struct rnl_rpc_place place;
    struct rnl_rpc_answer answer = {.refused = RNL_RPC_REFUSED};
    struct sockaddr_un listener = {.sun_family = AF_UNIX};
    struct sockaddr_storage address;
    if (!rnl_rpc_tirpc()) {
        stay(c, "this release of libtirpc lacks functions that are needed");
        return;
    }
    c->remote = !server_is_here(cl, c, &address);
    const char *lacks = c->remote ? rnl_rpc_remote_lacks() : NULL;
    if (lacks) {
        rnl_rpc_explain("its server is not on this host, and %s", lacks);
        stay(c, "its server is not on this host");
        return;
    }
    if (!rnl_rpc_place_here(&place)) {
        stay(c, "/proc does not say which host and network namespace this is");
        return;
    }
    if (limit.tv_sec >= ANSWER_S)
        limit = (struct timeval){ANSWER_S, 0};
    enum clnt_stat status = introduce(cl, c, limit, &place, &answer);
    if (status == RPC_CANTRECV && c->datagram) { /* nobody has the port: somebody may have it later */
        c->calls = 0;
        return;
    }
    if (status == RPC_TIMEDOUT && (c->datagram || c->tries + 1 < TRIES_MAX)) {
        retry_later(c);
        return;
    }
    if (status != RPC_SUCCESS) {
        stay(c, status == RPC_PROGUNAVAIL || status == RPC_PROGVERSMISMATCH
                    ? "its server runs without this library: start it with `runnel rpc`"
                    : "its server did not answer whether it has this library");
        return;
    }
    if (c->remote && answer.refused == RNL_RPC_COME_REMOTE) {
        greet_remote(cl, c, &answer, &address);
        return;
    }
    if (c->remote && answer.refused == RNL_RPC_NO_KEY) {
        stay(c, "its server's host has no key for other hosts, or no daemon (see `runnel key`)");
        return;
    }
    if (answer.refused || c->remote || answer.name_bytes == 0 || answer.name_bytes > sizeof answer.name) {
        stay(c, "its server refuses: it is in another network namespace or on another host, or has no room");
        return;
    }
    memcpy(listener.sun_path + 1, answer.name, answer.name_bytes);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!rnl_rpc_has_room(fd) ||
        connect(fd, (struct sockaddr *)&listener,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + answer.name_bytes)) < 0 ||
        !rnl_rpc_hello_send(fd, answer.token, -1)) {
        if (fd >= 0)
            close(fd);
        stay(c, "its server's listener does not open, or this process has hardly a descriptor left");
        return;
    }
    greeted(c, &answer, fd);
}

static void enter_remote(struct rnl_rpc_client *c)
{
    const char *why;
    int up = rnl_rpc_remote_is_up(c->link, &why);
    if (up == 0 && rnl_rpc_now_ns() - c->greeted_ns < FAR_MS * (uint64_t)1000000)
        return;
    if (up > 0) {
        atomic_store_explicit(&c->state, RNL_RPC_CLIENT_UPGRADED, memory_order_release);
        rnl_rpc_explain("program %u version %u: upgraded to Runnel's packets", c->program, c->version);
        return;
    }
    c->link->ops->close(c->link);
    c->link = NULL;
    close(c->sock);
    c->sock = -1;
    stay(c, up == 0 ? "the two processes were not introduced in time" : why);
}

void rnl_rpc_client_enter(struct rnl_rpc_client *c)
{
    struct rnl_rpc_hello welcome;
    struct rnl_rpc_segment *segment = NULL;
    if (c->remote) {
        enter_remote(c);
        return;
    }
    int fd, came = rnl_rpc_hello_receive(c->sock, &welcome, &fd);
    if (came == 0 && ++c->calls < LOOKS_MAX)
        return;
    if (came > 0 && fd >= 0 && rnl_rpc_secret_equal(welcome.secret, c->proof))
        segment = rnl_rpc_segment_map(fd);
    if (fd >= 0)
        close(fd);
    if (segment)
        c->link = rnl_rpc_pair_new(segment, c->sock, false, welcome.barrier != 0);
    if (!c->link) {
        close(c->sock);
        c->sock = -1;
        stay(c, came == 0 ? "its server does not look at its listener"
                          : "what came through its server's listener is no segment");
        return;
    }
    atomic_store_explicit(&c->state, RNL_RPC_CLIENT_UPGRADED, memory_order_release);
    rnl_rpc_explain("program %u version %u: upgraded to shared memory", c->program, c->version);
}
