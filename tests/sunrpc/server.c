/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server.c - an ordinary server on libtirpc, which knows nothing of Runnel: server KIND LOOP. Prints where it listens,
 * a line for each transport ("tcp PORT", "udp PORT"), and "ready PID", then serves for at most two minutes.
 *
 * KIND: tcp, udp, both, unix (path in $CALLS_PATH), vc, dg, bufcreate, tli, bind (svc_create: needs rpcbind)
 * LOOP: run, select, poll, epoll, epoll2 (epoll_pwait2); daemon: svc_run in a forked child; prefork: svc_run in three
 *       processes
 * $CALLS_PORT: the port of tcp and udp, else one that is free; $CALLS_HOST: their address, else the loopback's;
 * $CALLS_SECONDS: how long to serve */
#include "calls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netconfig.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SECONDS = 120 };
static int *total; /* forked children add to it, too */

static void reply(SVCXPRT *x, xdrproc_t proc, void *at)
{
    if (!svc_sendreply(x, proc, at) && x)
        fprintf(stderr, "server: a reply could not be encoded\n");
}

#define TAKE(proc, args)                                               \
    do {                                                               \
        memset(&(args), 0, sizeof(args));                              \
        if (!svc_getargs(x, (xdrproc_t)(proc), (void *)&(args))) {     \
            svcerr_decode(x);                                          \
            (void)svc_freeargs(x, (xdrproc_t)(proc), (void *)&(args)); \
            return;                                                    \
        }                                                              \
    } while (0)
#define ECHO(proc, args)                                               \
    do {                                                               \
        TAKE(proc, args);                                              \
        reply(x, (xdrproc_t)(proc), &(args));                          \
        if (!svc_freeargs(x, (xdrproc_t)(proc), (void *)&(args)))      \
            fprintf(stderr, "server: arguments could not be freed\n"); \
    } while (0)

static void who(struct svc_req *request, SVCXPRT *x)
{
    static char none[] = "";
    struct calls_who w = {.flavor = request->rq_cred.oa_flavor, .uid = -1, .gid = -1};
    struct sockaddr_storage *from = svc_getrpccaller(x)->buf;
    if (request->rq_cred.oa_flavor == AUTH_UNIX) {
        struct authunix_parms *p = (struct authunix_parms *)(void *)request->rq_clntcred;
        w.uid = (int)p->aup_uid;
        w.gid = (int)p->aup_gid;
        w.gids = (int)p->aup_len;
    }
    w.netid = x->xp_netid ? x->xp_netid : none;
    w.family = from ? from->ss_family : -1;
    w.addrlen = x->xp_addrlen;
    reply(x, (xdrproc_t)xdr_calls_who, &w);
}

static void serve_forked(SVCXPRT *x)
{
    struct calls_bytes b;
    TAKE(xdr_calls_bytes, b);
    usleep(b.count ? (useconds_t)(unsigned char)b.at[0] * 1000 : 0);
    reply(x, (xdrproc_t)xdr_calls_bytes, &b);
}

static void dispatch(struct svc_req *request, SVCXPRT *x)
{
    union {
        struct calls_pair pair;
        char *string;
        struct calls_bytes bytes;
        struct calls_ints ints;
        struct calls_hypers hypers;
        struct calls_shape shape;
        struct calls_list *list;
        struct calls_vector vector;
        int number;
    } u;
    int sum;
    switch (request->rq_proc) {
    case CALLS_NULL:
        reply(x, (xdrproc_t)(void (*)(void))xdr_void, NULL);
        break;
    case CALLS_ADD:
        TAKE(xdr_calls_pair, u.pair);
        sum = u.pair.a + u.pair.b + (int)(request->rq_vers == CALLS_VERSION_2 ? 1000 : 0);
        reply(x, (xdrproc_t)xdr_int, &sum);
        break;
    case CALLS_STRING:
        ECHO(xdr_calls_string, u.string);
        break;
    case CALLS_BYTES:
        ECHO(xdr_calls_bytes, u.bytes);
        break;
    case CALLS_INTS:
        ECHO(xdr_calls_ints, u.ints);
        break;
    case CALLS_HYPERS:
        ECHO(xdr_calls_hypers, u.hypers);
        break;
    case CALLS_SHAPE:
        ECHO(xdr_calls_shape, u.shape);
        break;
    case CALLS_LIST:
        ECHO(xdr_calls_list, u.list);
        break;
    case CALLS_VECTOR:
        ECHO(xdr_calls_vector, u.vector);
        break;
    case CALLS_WHO:
        who(request, x);
        break;
    case CALLS_SLEEP:
        TAKE(xdr_int, u.number);
        usleep((useconds_t)u.number * 1000);
        reply(x, (xdrproc_t)xdr_int, &u.number);
        break;
    case CALLS_PID:
        sum = (int)getpid();
        reply(x, (xdrproc_t)xdr_int, &sum);
        break;
    case CALLS_HANG:
        TAKE(xdr_int, u.number);
        if (u.number == (int)getpid())
            sleep(30);
        reply(x, (xdrproc_t)xdr_int, &u.number);
        break;
    case CALLS_COUNT:
        TAKE(xdr_int, u.number);
        __atomic_fetch_add(total, u.number, __ATOMIC_RELAXED);
        break;
    case CALLS_TOTAL:
        sum = __atomic_exchange_n(total, 0, __ATOMIC_RELAXED);
        reply(x, (xdrproc_t)xdr_int, &sum);
        break;
    case CALLS_REFUSE:
        TAKE(xdr_int, u.number);
        if (u.number == 0)
            svcerr_weakauth(x);
        else if (u.number == 100)
            svcerr_systemerr(x);
        else
            svcerr_auth(x, (enum auth_stat)u.number);
        break;
    case CALLS_SIZE:
        TAKE(xdr_int, u.number);
        sum = u.number;
        u.bytes = (struct calls_bytes){(u_int)sum, calloc(1, (size_t)sum + 1)};
        memset(u.bytes.at, 'x', (size_t)sum);
        reply(x, (xdrproc_t)xdr_calls_bytes, &u.bytes);
        free(u.bytes.at);
        break;
    case CALLS_FORK: /* the parent goes on without a look at the arguments, as servers do that fork for each call */
        if (fork() == 0) {
            serve_forked(x);
            _exit(0);
        }
        break;
    case CALLS_FORKED:
        if (fork() == 0) {
            usleep(2000); /* the parent has taken in the next calls meanwhile */
            if (svc_getargs(x, (xdrproc_t)xdr_int, (void *)&u.number))
                __atomic_fetch_add(total, u.number, __ATOMIC_RELAXED);
            _exit(0);
        }
        break;
    case CALLS_EXIT:
        _exit(0);
    default:
        svcerr_noproc(x);
        break;
    }
}

/* ---- transports ---- */

static int bound_socket(int type)
{
    const char *port = getenv("CALLS_PORT");
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, type, 0);
    a.sin_port = htons((uint16_t)(port ? atoi(port) : 0));
    if (getenv("CALLS_HOST"))
        inet_pton(AF_INET, getenv("CALLS_HOST"), &a.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || (type == SOCK_STREAM && listen(fd, 64) < 0)) {
        perror("server: socket");
        exit(1);
    }
    return fd;
}

static void say(SVCXPRT *x, const char *kind)
{
    struct sockaddr_in a = {0};
    socklen_t n = sizeof a;
    if (!x || getsockname(x->xp_fd, (struct sockaddr *)&a, &n) < 0) {
        fprintf(stderr, "server: no %s transport\n", kind);
        exit(1);
    }
    for (int v = CALLS_VERSION; v <= CALLS_VERSION_2; v += CALLS_VERSION_2 - CALLS_VERSION)
        if (!svc_reg(x, CALLS_PROGRAM, (rpcvers_t)v, dispatch, NULL))
            fprintf(stderr, "server: svc_reg failed\n");
    if (!svc_reg(x, CALLS_OTHER, CALLS_VERSION, dispatch, NULL))
        fprintf(stderr, "server: svc_reg failed\n");
    printf("%s %d\n", kind, ntohs(a.sin_port));
}

static SVCXPRT *by_netid(const char *netid, int type)
{
    struct netconfig *n = getnetconfigent(netid);
    return n ? svc_tli_create(bound_socket(type), n, NULL, 0, 0) : NULL;
}

static void make(const char *kind)
{
    if (strcmp(kind, "tcp") == 0 || strcmp(kind, "both") == 0)
        say(svctcp_create(bound_socket(SOCK_STREAM), 0, 0), "tcp");
    if (strcmp(kind, "udp") == 0 || strcmp(kind, "both") == 0)
        say(svcudp_create(bound_socket(SOCK_DGRAM)), "udp");
    if (strcmp(kind, "bufcreate") == 0)
        say(svcudp_bufcreate(bound_socket(SOCK_DGRAM), 30000, 30000), "udp");
    if (strcmp(kind, "vc") == 0)
        say(svc_vc_create(bound_socket(SOCK_STREAM), 0, 0), "tcp");
    if (strcmp(kind, "dg") == 0)
        say(svc_dg_create(bound_socket(SOCK_DGRAM), 0, 0), "udp");
    if (strcmp(kind, "tli") == 0) {
        say(by_netid("tcp", SOCK_STREAM), "tcp");
        say(by_netid("udp", SOCK_DGRAM), "udp");
    }
    if (strcmp(kind, "unix") == 0) {
        char *path = getenv("CALLS_PATH");
        SVCXPRT *x = svcunix_create(RPC_ANYSOCK, 0, 0, path);
        say(x, "unix");
    }
    if (strcmp(kind, "bind") == 0 && (svc_create(dispatch, CALLS_PROGRAM, CALLS_VERSION, "netpath") == 0 ||
                                      svc_create(dispatch, CALLS_PROGRAM, CALLS_VERSION_2, "netpath") == 0)) {
        fprintf(stderr, "server: svc_create failed\n");
        exit(1);
    }
}

/* ---- loops ---- */

static void loop_select(void)
{
    for (;;) {
        fd_set set = svc_fdset;
        if (select(FD_SETSIZE, &set, NULL, NULL, NULL) > 0)
            svc_getreqset(&set);
    }
}

static void loop_poll(void)
{
    for (;;) {
        struct pollfd fds[256];
        int n = svc_max_pollfd < 256 ? svc_max_pollfd : 256;
        memcpy(fds, svc_pollfd, (size_t)n * sizeof fds[0]);
        int ready = poll(fds, (nfds_t)n, 500);
        if (ready > 0)
            svc_getreq_poll(fds, ready);
    }
}

static int wait_epoll(int set, struct epoll_event *events, int max, int precise)
{
#if __GLIBC_PREREQ(2, 35)
    static const struct timespec half = {0, 500000000};
    if (precise)
        return epoll_pwait2(set, events, max, &half, NULL);
#endif
    (void)precise;
    return epoll_wait(set, events, max, 500);
}

static void loop_epoll(int precise)
{
    static char in[FD_SETSIZE];
    int set = epoll_create1(0);
    for (;;) {
        for (int fd = 0; fd < FD_SETSIZE; fd++) {
            struct epoll_event e = {EPOLLIN, {.fd = fd}};
            if (FD_ISSET(fd, &svc_fdset) && !in[fd])
                in[fd] = epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) == 0;
            else if (!FD_ISSET(fd, &svc_fdset))
                in[fd] = 0;
        }
        struct epoll_event events[16];
        int n = wait_epoll(set, events, 16, precise);
        for (int i = 0; i < n; i++)
            svc_getreq_common(events[i].data.fd);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: server KIND LOOP\n");
        return 64;
    }
    const char *text = getenv("CALLS_SECONDS");
    const unsigned seconds = text ? (unsigned)atoi(text) : SECONDS;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    total = mmap(NULL, sizeof *total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    alarm(seconds);
    make(argv[1]);
    if (strcmp(argv[2], "daemon") == 0 && fork() != 0)
        _exit(0);
    /* Several processes wake for one connection: who does not get it must not stay in accept. */
    for (int i = 0; strcmp(argv[2], "prefork") == 0 && i < svc_max_pollfd; i++)
        if (svc_pollfd[i].fd >= 0)
            fcntl(svc_pollfd[i].fd, F_SETFL, O_NONBLOCK);
    for (int i = 0; strcmp(argv[2], "prefork") == 0 && i < 2; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            svc_run();
        }
    alarm(seconds); /* forked children have none */
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (strcmp(argv[2], "select") == 0)
        loop_select();
    else if (strcmp(argv[2], "poll") == 0)
        loop_poll();
    else if (strcmp(argv[2], "epoll") == 0)
        loop_epoll(0);
    else if (strcmp(argv[2], "epoll2") == 0)
        loop_epoll(1);
    svc_run();
    return 1;
}
