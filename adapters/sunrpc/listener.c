/* SPDX-License-Identifier: BSD-3-Clause
 *
 * listener.c - a server that is asked for a link: the private program, which answers over whatever transport the client
 * has, and the listener, an abstract socket that the kernel names. rpcbind hears of neither.
 *
 * A link takes a descriptor more; where few are left, clients stay with libtirpc. */
#include "host.h"
#include "pair.h"
#include "preload.h"
#include "remote.h"
#include "server.h"
#include "stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    TOKENS = 64,
    BACKLOG = 128,
    /* Who comes to the listener shows its token at once. Who is slower may stay for a while, with some others. */
    GREET_MS = 5000,
    SILENT_OF_A_USER = 16,
    SILENT_OF_ALL = 64
};

/* A client that asked and has not come yet, with what the server's program is to see of it. A slot is used again after
 * TOKENS more have asked: who comes later is refused, and stays with libtirpc. */
struct token {
    bool valid, remote;
    char token[RNL_RPC_TOKEN_BYTES], proof[RNL_RPC_TOKEN_BYTES];
    struct sockaddr_storage from, to;
    socklen_t from_bytes, to_bytes;
    struct sockaddr_in6 raddr;
    int addrlen;
    char netid[16];
};
static struct token *tokens; /* TOKENS of them, since the first has asked: programs that serve nobody do not map them */
static unsigned next_token;

static struct listener {
    SVCXPRT *transport; /* NULL = none yet */
    struct xp_ops ops;
    const struct xp_ops *real;
    pid_t pid; /* whose it is: a forked child opens its own */
    char name[RNL_RPC_NAME_BYTES];
    u_int name_bytes;
} listener;

/* ---- greeting ---- */

static bool set_bytes(struct netbuf *b, const void *from, socklen_t n)
{
    void *copy = malloc(n ? n : 1);
    if (!copy)
        return false;
    memcpy(copy, from, n);
    free(b->buf);
    b->buf = copy;
    b->len = b->maxlen = n;
    return true;
}

/* The server's program sees the client that asked, not a Unix socket. */
static bool set_identity(SVCXPRT *x, const struct token *t)
{
    char *netid = strdup(t->netid);
    if (!netid || !set_bytes(&x->xp_rtaddr, &t->from, t->from_bytes) ||
        !set_bytes(&x->xp_ltaddr, &t->to, t->to_bytes)) {
        free(netid);
        return false;
    }
    free(x->xp_netid);
    x->xp_netid = netid;
    x->xp_raddr = t->raddr;
    x->xp_addrlen = t->addrlen;
    return true;
}

static struct token *take_token(const char shown[RNL_RPC_TOKEN_BYTES], bool remote)
{
    struct token *t = NULL;
    for (unsigned i = 0; tokens && i < TOKENS; i++)
        if (tokens[i].valid && tokens[i].remote == remote && rnl_rpc_secret_equal(tokens[i].token, shown))
            t = &tokens[i];
    if (t)
        t->valid = false;
    return t;
}

static struct rnl_rpc_link *make_link(SVCXPRT *x, const struct rnl_rpc_hello *hello, int *memory)
{
    struct rnl_rpc_segment *segment = NULL;
    *memory = rnl_rpc_segment_new();
    if (*memory >= 0)
        segment = rnl_rpc_segment_map(*memory);
    return segment ? rnl_rpc_pair_new(segment, x->xp_fd, true, hello->barrier != 0) : NULL;
}

static void greeted(SVCXPRT *x, struct rnl_rpc_server *s)
{
    struct rnl_rpc_hello hello;
    struct rnl_rpc_link *link = NULL;
    int memory = -1, came = rnl_rpc_hello_receive(x->xp_fd, &hello, NULL);
    if (came == 0)
        return;
    struct token *t = came > 0 ? take_token(hello.secret, false) : NULL;
    if (t && set_identity(x, t))
        link = make_link(x, &hello, &memory);
    if (link) {
        rnl_rpc_server_open(s, link);
        if (!rnl_rpc_hello_send(x->xp_fd, t->proof, memory))
            link->broken = true;
        rnl_rpc_explain("a client over %s was upgraded to shared memory", t->netid);
    } else {
        rnl_rpc_server_end(s);
        rnl_rpc_explain("a client was refused at the listener: %s",
                        t ? "there is no memory for its link" : "it did not show a token");
    }
    if (memory >= 0)
        close(memory);
}

/* ---- the listener ---- */

struct silence {
    uint64_t now_ns;
    uid_t uid;
    unsigned of_user, of_all;
    struct rnl_rpc_server *oldest_of_user, *oldest; /* those that came first */
};

static void note_silent(struct rnl_rpc_server *s, void *context)
{
    struct silence *c = context;
    if (s->dead || atomic_load_explicit(&s->open, memory_order_relaxed))
        return;
    if (c->now_ns - s->began_ns >= (uint64_t)GREET_MS * 1000000u) {
        rnl_rpc_server_end(s);
        return;
    }
    c->of_all++;
    if (!c->oldest || s->began_ns < c->oldest->began_ns)
        c->oldest = s;
    if (s->uid != c->uid)
        return;
    c->of_user++;
    if (!c->oldest_of_user || s->began_ns < c->oldest_of_user->began_ns)
        c->oldest_of_user = s;
}

/* Drops those that came to the listener and have sent nothing for too long, and the oldest of too many: of the user who
 * has just come, then of all. */
static void drop_silent(uid_t uid)
{
    struct silence c = {.now_ns = rnl_rpc_now_ns(), .uid = uid};
    rnl_rpc_server_each(note_silent, &c);
    struct rnl_rpc_server *s = c.of_user > SILENT_OF_A_USER ? c.oldest_of_user
                               : c.of_all > SILENT_OF_ALL   ? c.oldest
                                                            : NULL;
    if (s) {
        rnl_rpc_explain("a client was refused at the listener: it said nothing, as did too many others");
        rnl_rpc_server_end(s);
    }
}

static bool_t listener_recv(SVCXPRT *x, struct rpc_msg *msg)
{
    (void)msg;
    if (listener.pid != getpid())
        return FALSE;
    int fd = accept4(x->xp_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (rnl_rpc_has_room(fd)) {
        SVCXPRT *made;
        struct rnl_rpc_server *s = rnl_rpc_server_new(fd, greeted, &made);
        if (s) {
            greeted(made, s); /* a good client has said what it has to say */
            drop_silent(s->uid);
        }
    } else if (fd >= 0) {
        close(fd);
    }
    return FALSE;
}

static enum xprt_stat listener_stat(SVCXPRT *x)
{
    (void)x;
    return listener.pid == getpid() ? XPRT_IDLE : XPRT_DIED; /* the parent's: libtirpc destroys it in this process */
}

static void listener_destroy(SVCXPRT *x)
{
    if (x == listener.transport)
        listener.transport = NULL;
    x->xp_ops = listener.real;
    x->xp_ops->xp_destroy(x);
}

static bool listener_open(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t n = sizeof a;
    if (listener.transport && listener.pid == getpid())
        return true;
    if (listener.transport) { /* inherited, with the tokens of the parent's clients */
        listener_destroy(listener.transport);
        memset(tokens, 0, TOKENS * sizeof *tokens);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    SVCXPRT *x = NULL;
    rnl_rpc_take_no_descriptors(fd);
    if (rnl_rpc_has_room(fd) && bind(fd, (struct sockaddr *)&a, sizeof a.sun_family) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &n) == 0 && n > offsetof(struct sockaddr_un, sun_path) + 1 &&
        n - offsetof(struct sockaddr_un, sun_path) - 1 <= sizeof listener.name)
        x = rnl_rpc_tirpc()->svc_vc_create(fd, 0, 0);
    if (!x) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    listener.name_bytes = (u_int)(n - offsetof(struct sockaddr_un, sun_path) - 1);
    memcpy(listener.name, a.sun_path + 1, listener.name_bytes);
    listener.real = x->xp_ops;
    listener.ops = *x->xp_ops;
    listener.ops.xp_recv = listener_recv;
    listener.ops.xp_stat = listener_stat;
    listener.ops.xp_destroy = listener_destroy;
    x->xp_ops = &listener.ops;
    listener.transport = x;
    listener.pid = getpid();
    return true;
}

/* ---- clients on other hosts ---- */

/* A transport on the descriptor that becomes readable when such a client may have come. */
static struct remote_listener {
    SVCXPRT *transport; /* NULL = none yet */
    struct xp_ops ops;
    const struct xp_ops *real;
    pid_t pid;
} remote_listener;

static void never_greeted(SVCXPRT *x, struct rnl_rpc_server *s)
{
    (void)x, (void)s;
}

static void let_in(struct rnl_rpc_link *link, const char shown[RNL_RPC_TOKEN_BYTES], uid_t uid, int sock)
{
    SVCXPRT *x = NULL;
    struct token *t = take_token(shown, true);
    struct rnl_rpc_server *s = t ? rnl_rpc_server_new(sock, never_greeted, &x) : NULL;
    if (!t)
        close(sock);
    if (s && set_identity(x, t)) {
        s->uid = uid;
        s->uid_known = uid != (uid_t)-1;
        rnl_rpc_server_open(s, link);
        if (!rnl_rpc_remote_welcome(link, t->proof))
            link->broken = true;
        rnl_rpc_explain("a client on another host, over %s, was upgraded to Runnel's packets", t->netid);
        return;
    }
    link->ops->close(link);
    if (s)
        rnl_rpc_server_end(s);
    rnl_rpc_explain("a client on another host was refused: %s",
                    t ? "there is no memory for its link" : "it did not show a token");
}

static bool_t remote_listener_recv(SVCXPRT *x, struct rpc_msg *msg)
{
    char shown[RNL_RPC_TOKEN_BYTES];
    struct rnl_rpc_link *link;
    uid_t uid;
    int sock;
    (void)x, (void)msg;
    while (remote_listener.pid == getpid() && (link = rnl_rpc_remote_next(shown, &uid, &sock)) != NULL)
        let_in(link, shown, uid, sock);
    return FALSE;
}

static enum xprt_stat remote_listener_stat(SVCXPRT *x)
{
    (void)x;
    return remote_listener.pid == getpid() ? XPRT_IDLE : XPRT_DIED;
}

static void remote_listener_destroy(SVCXPRT *x)
{
    if (x == remote_listener.transport)
        remote_listener.transport = NULL;
    x->xp_ops = remote_listener.real;
    x->xp_ops->xp_destroy(x);
}

/* libtirpc makes transports on connected sockets only, so one gives its number to the descriptor. */
static SVCXPRT *remote_listener_transport(int ready)
{
    int pair[2];
    SVCXPRT *x = NULL;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return NULL;
    if (rnl_rpc_has_room(pair[0]))
        x = rnl_rpc_tirpc()->svc_fd_create(pair[0], 0, 0);
    close(pair[1]);
    if (!x) {
        close(pair[0]);
    } else if (dup3(ready, pair[0], O_CLOEXEC) < 0) {
        x->xp_ops->xp_destroy(x);
        x = NULL;
    }
    return x;
}

static bool remote_listener_open(const char **service, const char **why)
{
    int ready;
    if (remote_listener.transport && remote_listener.pid != getpid()) {
        remote_listener_destroy(remote_listener.transport);
        memset(tokens, 0, TOKENS * sizeof *tokens);
    }
    if (!rnl_rpc_remote_serve(service, &ready, why))
        return false;
    if (!remote_listener.transport) {
        *why = "this process has hardly a descriptor left";
        SVCXPRT *x = remote_listener_transport(ready);
        if (x) {
            remote_listener.real = x->xp_ops;
            remote_listener.ops = *x->xp_ops;
            remote_listener.ops.xp_recv = remote_listener_recv;
            remote_listener.ops.xp_stat = remote_listener_stat;
            remote_listener.ops.xp_destroy = remote_listener_destroy;
            x->xp_ops = &remote_listener.ops;
            remote_listener.transport = x;
            remote_listener.pid = getpid();
        }
    }
    close(ready);
    return remote_listener.transport != NULL;
}

/* ---- the private program ---- */

static void keep(struct netbuf *from, struct sockaddr_storage *to, socklen_t *bytes)
{
    *bytes = from->buf && from->len <= sizeof *to ? from->len : 0;
    if (*bytes)
        memcpy(to, from->buf, *bytes);
}

/* Finds out how the client may come: RNL_RPC_COME, RNL_RPC_COME_REMOTE, or it stays with libtirpc. */
static enum rnl_rpc_refused way_for(const struct rnl_rpc_place *asked, const char **service)
{
    struct rnl_rpc_place here;
    const char *why;
    if (rnl_rpc_place_here(&here) && rnl_rpc_place_equal(asked, &here)) {
        if (listener_open())
            return RNL_RPC_COME;
        rnl_rpc_explain("a client stays with libtirpc: this process has no descriptor left for a listener");
        return RNL_RPC_REFUSED;
    }
    why = rnl_rpc_remote_lacks();
    if (!why && remote_listener_open(service, &why))
        return RNL_RPC_COME_REMOTE;
    rnl_rpc_explain("a client on another host, or in another network namespace, stays with libtirpc: %s", why);
    return RNL_RPC_NO_KEY;
}

static void introduce(SVCXPRT *x, const struct rnl_rpc_place *asked, struct rnl_rpc_answer *answer)
{
    const char *service = "";
    drop_silent((uid_t)-1);
    if (!tokens)
        tokens = calloc(TOKENS, sizeof *tokens);
    struct token *t = tokens ? &tokens[next_token++ % TOKENS] : NULL;
    if (t)
        t->valid = false;
    answer->refused = t ? way_for(asked, &service) : RNL_RPC_REFUSED;
    if (answer->refused != RNL_RPC_COME && answer->refused != RNL_RPC_COME_REMOTE)
        return;
    if (getrandom(t->token, sizeof t->token, 0) != (ssize_t)sizeof t->token ||
        getrandom(t->proof, sizeof t->proof, 0) != (ssize_t)sizeof t->proof) {
        answer->refused = RNL_RPC_REFUSED;
        return;
    }
    keep(&x->xp_rtaddr, &t->from, &t->from_bytes);
    keep(&x->xp_ltaddr, &t->to, &t->to_bytes);
    t->raddr = x->xp_raddr;
    t->addrlen = x->xp_addrlen;
    strncpy(t->netid, x->xp_netid ? x->xp_netid : "", sizeof t->netid - 1);
    t->remote = answer->refused == RNL_RPC_COME_REMOTE;
    t->valid = true;
    if (t->remote) {
        strncpy(answer->service, service, sizeof answer->service - 1);
    } else {
        answer->name_bytes = listener.name_bytes;
        memcpy(answer->name, listener.name, sizeof answer->name);
    }
    memcpy(answer->token, t->token, sizeof answer->token);
    memcpy(answer->proof, t->proof, sizeof answer->proof);
}

static void dispatch(struct svc_req *request, SVCXPRT *x)
{
    const struct rnl_rpc_tirpc *t = rnl_rpc_tirpc();
    struct rnl_rpc_place place;
    struct rnl_rpc_answer answer = {0};
    switch (request->rq_proc) {
    case RNL_RPC_NULL:
        t->svc_sendreply(x, rnl_rpc_xdr_nothing, NULL);
        break;
    case RNL_RPC_INTRODUCE:
        if (!svc_getargs(x, (xdrproc_t)rnl_rpc_xdr_place, (void *)&place)) {
            t->svcerr_decode(x);
            break;
        }
        introduce(x, &place, &answer);
        t->svc_sendreply(x, (xdrproc_t)rnl_rpc_xdr_answer, (void *)&answer);
        break;
    default:
        t->svcerr_noproc(x);
        break;
    }
}

RNL_RPC_REAL(xprt_register, rnl_rpc_next_tirpc)

RNL_RPC_INTERPOSED void xprt_register(SVCXPRT *x)
{
    static bool registered;
    real_xprt_register()(x);
    if (!registered && !rnl_rpc_settings()->off && rnl_rpc_tirpc()) {
        registered = true; /* svc_reg may come back here */
        registered = rnl_rpc_tirpc()->svc_reg(x, RNL_RPC_PROGRAM, RNL_RPC_VERSION, dispatch, NULL);
    }
}
