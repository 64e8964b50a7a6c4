/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dying.c - parties of an introduction that end with SIGKILL at a step of it: dying server STEP, which prints the port
 * of its TCP transport, and dying client STEP PORT. A step is done, and then its process ends.
 *
 *   server  1 was asked   2 has answered   3 has accepted   4 has read the token   5 has sent half of the welcome's
 *           bytes   6 has sent the welcome   7 has begun a reply over the link
 *   client  1 has asked   2 has connected   3 has sent half of its token   4 has sent it   5 was welcomed
 *           6 has begun a call over the link   7 has sent a call, and not taken its reply */
#include "adapters/sunrpc/greeting.h"
#include "adapters/sunrpc/host.h"
#include "adapters/sunrpc/pair.h"
#include "adapters/sunrpc/stream.h"

#include "calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int last_step, listener, bell;
static struct rnl_rpc_answer answer;

static void did(int step)
{
    if (step == last_step) {
        fflush(stdout);
        kill(getpid(), SIGKILL);
    }
}

static void fail(const char *what)
{
    fprintf(stderr, "dying: %s\n", what);
    exit(1);
}

/* Steps that need the other side to move first wait for it, but not for ever. */
static void await(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 10000) <= 0)
        fail("the other side does not move");
}

/* ---- the server ---- */

static struct rnl_rpc_link *welcome(void)
{
    struct rnl_rpc_hello hello;
    int memory = rnl_rpc_segment_new();
    await(listener);
    bell = accept(listener, NULL, NULL);
    did(3);
    await(bell);
    if (memory < 0 || bell < 0 || rnl_rpc_hello_receive(bell, &hello, NULL) <= 0)
        fail("no greeting");
    did(4);
    if (last_step == 5)
        (void)!send(bell, &hello, sizeof hello / 2, MSG_NOSIGNAL);
    did(5);
    struct rnl_rpc_segment *s = rnl_rpc_segment_map(memory);
    struct rnl_rpc_link *link = s ? rnl_rpc_pair_new(s, bell, true, false) : NULL;
    if (!link || !rnl_rpc_hello_send(bell, answer.proof, memory))
        fail("no welcome");
    did(6);
    return link;
}

static void begin_a_reply(struct rnl_rpc_link *link)
{
    /* The first part of a reply that never ends. */
    static const char reply[100];
    if (!link->ops->wait(link, rnl_rpc_now_ns() + 10000000000u) || !rnl_rpc_stream_put(link, reply, sizeof reply))
        fail("no call");
    did(7);
}

static void serve(struct svc_req *request, SVCXPRT *x)
{
    struct rnl_rpc_place place;
    if (request->rq_prog == RNL_RPC_PROGRAM) {
        if (!svc_getargs(x, (xdrproc_t)rnl_rpc_xdr_place, (void *)&place))
            fail("no place");
        did(1);
        svc_sendreply(x, (xdrproc_t)rnl_rpc_xdr_answer, (void *)&answer);
        did(2);
        return;
    }
    /* The welcome comes before the reply, so the client's next call goes over the link. */
    struct rnl_rpc_link *link = bell == 0 ? welcome() : NULL;
    svc_sendreply(x, (xdrproc_t)(void (*)(void))xdr_void, NULL);
    if (link)
        begin_a_reply(link);
}

static int server_main(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t n = sizeof a;
    SVCXPRT *x = svctcp_create(RPC_ANYSOCK, 0, 0);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!x || !svc_reg(x, RNL_RPC_PROGRAM, RNL_RPC_VERSION, serve, NULL) ||
        !svc_reg(x, CALLS_PROGRAM, CALLS_VERSION, serve, NULL) || listener < 0 ||
        bind(listener, (struct sockaddr *)&a, sizeof a.sun_family) < 0 || listen(listener, 1) < 0 ||
        getsockname(listener, (struct sockaddr *)&a, &n) < 0)
        fail("no server");
    answer.name_bytes = (u_int)(n - offsetof(struct sockaddr_un, sun_path) - 1);
    memcpy(answer.name, a.sun_path + 1, answer.name_bytes);
    printf("%d\n", x->xp_port);
    fflush(stdout);
    svc_run();
    return 1;
}

/* ---- the client ---- */

static int client_main(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct rnl_rpc_place place;
    struct rnl_rpc_hello hello = {RNL_RPC_MAGIC, RNL_RPC_VERSION, 0, {0}};
    int sock = RPC_ANYSOCK, memory = -1;
    CLIENT *c = clnttcp_create(&a, RNL_RPC_PROGRAM, RNL_RPC_VERSION, &sock, 0, 0);
    if (!c || !rnl_rpc_place_here(&place) ||
        clnt_call(c, RNL_RPC_INTRODUCE, (xdrproc_t)rnl_rpc_xdr_place, (char *)&place, (xdrproc_t)rnl_rpc_xdr_answer,
                  (char *)&answer, ((struct timeval){10, 0})) != RPC_SUCCESS)
        fail("no answer");
    did(1);
    memcpy(to.sun_path + 1, answer.name, answer.name_bytes);
    bell = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(bell, (struct sockaddr *)&to,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + answer.name_bytes)) < 0)
        fail("the listener is closed");
    did(2);
    memcpy(hello.secret, answer.token, sizeof hello.secret);
    if (last_step == 3)
        (void)!send(bell, &hello, sizeof hello / 2, MSG_NOSIGNAL);
    did(3);
    if (!rnl_rpc_hello_send(bell, answer.token, -1))
        fail("no greeting");
    did(4);
    await(bell);
    struct rnl_rpc_segment *s = rnl_rpc_hello_receive(bell, &hello, &memory) > 0 ? rnl_rpc_segment_map(memory) : NULL;
    struct rnl_rpc_link *link = s ? rnl_rpc_pair_new(s, bell, false, false) : NULL;
    if (!link)
        fail("not welcomed");
    did(5);
    static const uint32_t zero[30];
    uint32_t head[10] = {htonl(1), htonl(CALL), htonl(RPC_MSG_VERSION), htonl(CALLS_PROGRAM), htonl(CALLS_VERSION), 0};
    if (last_step == 6)
        (void)(rnl_rpc_stream_put(link, head, sizeof head) && rnl_rpc_stream_put(link, zero, sizeof zero));
    did(6);
    if (!rnl_rpc_stream_put(link, head, sizeof head) || !link->ops->end(link))
        fail("no call");
    did(7);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        fail("usage: dying server STEP, or dying client STEP PORT");
    alarm(60);
    signal(SIGPIPE, SIG_IGN);
    rnl_rpc_host_begin();
    last_step = atoi(argv[2]);
    return strcmp(argv[1], "server") == 0 ? server_main() : client_main((uint16_t)(argc > 3 ? atoi(argv[3]) : 0));
}
