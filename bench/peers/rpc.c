/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rpc.c - calls of SunRPC under measurement, by libtirpc over TCP, UDP or AF_UNIX, as the program is told; with
 * librunnel-rpc preloaded it is the same program, and its TCP becomes shared memory. Rank 0 calls, rank 1 serves in the
 * loop that svc_run has: it is in no other call while an order lasts, and the last call of an order ends that.
 *
 *     PROGRAM --once WAY WHERE CALLS
 *
 * is a client that makes so many calls and ends; rank 0 starts it to see how long such a one takes. */
#include "common.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAM = 0x20000777, VERSION = 1, PROC_TAKE = 1, PROC_WAY, PROC_END, BYTES_MAX = 1 << 20 };
enum { WARM = 8, CALL_S = 20, POLL_MS = 1000, DESCRIPTORS = 64 };
#define LIMIT_NS ((uint64_t)20 * 1000 * 1000 * 1000)
extern char **environ;

struct bytes {
    u_int count;
    char *at;
};

static char room[BYTES_MAX]; /* what rank 0 sends, and rank 1 has decoded */
static char where[PEER_BOARD];
static const char *way;
static bool ended,
    upgraded; /* of the order; was the last PROC_WAY over a Unix socket, and so in memory, if way is tcp? */
static CLIENT *client;

static bool is_way(const char *name)
{
    return strcmp(way, name) == 0;
}

static bool is_preloaded(void)
{
    return is_way("upgraded");
}

static bool_t xdr_taken(XDR *x, struct bytes *b)
{
    return xdr_bytes(x, &b->at, &b->count, BYTES_MAX);
}

/* ---- rank 1 ---- */

static bool is_in_memory(const SVCXPRT *x)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    return getsockname(x->xp_fd, (struct sockaddr *)&a, &n) == 0 && a.ss_family == AF_UNIX;
}

/* What is measured must cost no system call here. */
static void dispatch(struct svc_req *request, SVCXPRT *x)
{
    struct bytes b = {0, room}; /* nothing is allocated */
    if (request->rq_proc == PROC_WAY || request->rq_proc == PROC_END) {
        int answer = is_in_memory(request->rq_xprt);
        svc_sendreply(x, (xdrproc_t)xdr_int, &answer);
    } else if (request->rq_proc == PROC_TAKE && !svc_getargs(x, (xdrproc_t)xdr_taken, (void *)&b)) {
        svcerr_decode(x);
    } else {
        svc_sendreply(x, (xdrproc_t)xdr_void, NULL);
    }
    ended |= request->rq_proc == PROC_END;
}

static int open_server(struct bench_process *s)
{
    const char *folder = getenv("TMPDIR");
    char path[PEER_BOARD];
    snprintf(path, sizeof path, "%s/rpc-socket", folder ? folder : "/tmp");
    SVCXPRT *x = is_way("udp")    ? svcudp_create(RPC_ANYSOCK)
                 : is_way("unix") ? svcunix_create(RPC_ANYSOCK, 0, 0, path)
                                  : svctcp_create(RPC_ANYSOCK, 0, 0);
    if (!x || !svc_reg(x, PROGRAM, VERSION, dispatch, NULL))
        return bench_process_fail(s, "libtirpc makes no server over %s", way);
    if (is_way("unix"))
        snprintf((char *)peer_board(s, 1), PEER_BOARD, "%s", path);
    else
        snprintf((char *)peer_board(s, 1), PEER_BOARD, "%d", x->xp_port);
    return 0;
}

static int serve(struct bench_process *s)
{
    struct pollfd fds[DESCRIPTORS];
    for (ended = false; !ended;) {
        if (svc_max_pollfd > DESCRIPTORS)
            return bench_process_fail(s, "more than %d clients", DESCRIPTORS);
        memcpy(fds, svc_pollfd, (size_t)svc_max_pollfd * sizeof *fds);
        int n = poll(fds, (nfds_t)svc_max_pollfd, POLL_MS);
        if (n > 0)
            svc_getreq_poll(fds, n);
    }
    return 0;
}

/* ---- rank 0 ---- */

static CLIENT *connect_to(const char *at)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un u = {.sun_family = AF_UNIX};
    int sock = RPC_ANYSOCK;
    a.sin_port = htons((uint16_t)atoi(at));
    snprintf(u.sun_path, sizeof u.sun_path, "%s", at);
    return is_way("udp")    ? clntudp_create(&a, PROGRAM, VERSION, (struct timeval){CALL_S / 4, 0}, &sock)
           : is_way("unix") ? clntunix_create(&u, PROGRAM, VERSION, &sock, 0, 0)
                            : clnttcp_create(&a, PROGRAM, VERSION, &sock, 0, 0);
}

static enum clnt_stat call(u_long proc, size_t n)
{
    const struct timeval limit = {CALL_S, 0};
    struct bytes b = {(u_int)n, room};
    int answer = 0;
    if (proc == PROC_TAKE)
        return clnt_call(client, proc, (xdrproc_t)xdr_taken, (char *)&b, (xdrproc_t)xdr_void, NULL, limit);
    if (proc == NULLPROC)
        return clnt_call(client, proc, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, limit);
    enum clnt_stat status =
        clnt_call(client, proc, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_int, (char *)&answer, limit);
    upgraded = status == RPC_SUCCESS && answer && !is_way("unix");
    return status;
}

static int calls(struct bench_process *s, uint64_t count, size_t n)
{
    for (uint64_t i = 0; i < count; i++) {
        enum clnt_stat status = call(n ? PROC_TAKE : NULLPROC, n);
        if (status != RPC_SUCCESS)
            return bench_process_fail(s, "a call over %s failed: %s", way, clnt_sperrno(status));
    }
    return 0;
}

/* Starts clients that make one call, or none, one after another. */
static int shots(struct bench_process *s, uint64_t count, const char *made)
{
    char *argv[] = {
        (char[]){"/proc/self/exe"}, (char[]){"--once"}, (char *)(uintptr_t)way, where, (char *)(uintptr_t)made, NULL};
    for (uint64_t i = 0; i < count; i++) {
        pid_t pid;
        int status = -1, e = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
        if (e || waitpid(pid, &status, 0) != pid || status)
            return bench_process_fail(s, "a client of one call %s", e ? strerror(e) : "failed");
    }
    return 0;
}

static int await_upgrade(struct bench_process *s)
{
    uint64_t end = bench_now_ns() + LIMIT_NS;
    while (!upgraded) {
        enum clnt_stat status = call(PROC_WAY, 0);
        if (status != RPC_SUCCESS)
            return bench_process_fail(s, "a call failed before it was upgraded: %s", clnt_sperrno(status));
        if (!upgraded && bench_now_ns() > end)
            return bench_process_fail(s, "calls were not upgraded to shared memory; RUNNEL_RPC=explain says why");
    }
    return 0;
}

static int ask(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    const char *made = o->variant ? "0" : "1";
    bool once = o->test == BENCH_RPC_ONCE;
    bench_fill(room, o->bytes, o->count);
    if (is_preloaded() && await_upgrade(s))
        return -1;
    if (once ? shots(s, 1, made) : calls(s, o->count / 8 + WARM, o->bytes))
        return -1;
    uint64_t t0 = bench_now_ns();
    if (once ? shots(s, o->count, made) : calls(s, o->count, o->bytes))
        return -1;
    a->value = (double)(bench_now_ns() - t0) / (double)o->count / (once ? 1e3 : 1);
    if (call(PROC_END, 0) != RPC_SUCCESS || upgraded != is_preloaded())
        return bench_process_fail(s, "the last call of an order over %s failed, or went another way", way);
    return 0;
}

static int run(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    if (o->bytes > BYTES_MAX)
        return bench_process_fail(s, "an order asks for %llu bytes", (unsigned long long)o->bytes);
    if (s->rank == 0)
        return ask(s, o, a);
    memset(room, 0, o->bytes);
    if (serve(s))
        return -1;
    if (!bench_filled(room, o->bytes, o->count))
        return bench_process_fail(s, "bytes of a call differ from what was sent");
    return 0;
}

static int open_rpc(struct bench_process *s)
{
    if (s->rank == 1 && open_server(s))
        return -1;
    peer_meet(s);
    snprintf(where, sizeof where, "%s", (char *)peer_board(s, 1));
    if (s->rank == 0 && !(client = connect_to(where)))
        return bench_process_fail(s, "no client over %s: %s", way, clnt_spcreateerror("libtirpc"));
    peer_about(s, is_preloaded() ? "libtirpc over TCP, its calls upgraded to shared memory" : "libtirpc over %s", way);
    peer_meet(s);
    return 0;
}

static void close_rpc(struct bench_process *s)
{
    (void)s;
    if (client)
        clnt_destroy(client);
}

static int shoot(const char *at, const char *made)
{
    client = connect_to(at);
    return client && (*made == '0' || call(NULLPROC, 0) == RPC_SUCCESS) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct bench_api api = {.name = "rpc", .open = open_rpc, .close = close_rpc, .run = run};
    if (argc == 5 && strcmp(argv[1], "--once") == 0) {
        way = argv[2];
        return shoot(argv[3], argv[4]);
    }
    struct peer_args args = peer_start(argc, argv);
    way = args.way;
    return bench_process_run(args.area, args.pair, &api, args.rank);
}
