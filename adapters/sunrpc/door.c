/* SPDX-License-Identifier: BSD-3-Clause
 *
 * door.c - a server that is asked for a link: the private program, which answers over whatever transport the client
 * has, and the door, an abstract socket that the kernel names. rpcbind hears of neither.
 *
 * A link takes a descriptor more; where few are left, clients stay with libtirpc. */
#include "far.h"
#include "host.h"
#include "pair.h"
#include "preload.h"
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
    /* Who comes to the door shows its token at once. Who is slower may stay for a while, with some others. */
    GREET_MS = 5000,
    SILENT_OF_A_USER = 16,
    SILENT_OF_ALL = 64
};

/* A client that asked and has not come yet, with what the server's program is to see of it. A slot is used again after
 * TOKENS more have asked: who comes later is refused, and stays with libtirpc. */
static struct token {
    bool valid, far;
    char token[RNL_RPC_TOKEN_BYTES], proof[RNL_RPC_TOKEN_BYTES];
    struct sockaddr_storage from, to;
    socklen_t from_bytes, to_bytes;
    struct sockaddr_in6 raddr;
    int addrlen;
    char netid[16];
} tokens[TOKENS];
static unsigned next_token;

static struct door {
    SVCXPRT *transport; /* NULL = none yet */
    struct xp_ops ops;
    const struct xp_ops *real;
    pid_t pid; /* whose it is: a forked child opens its own */
    char name[RNL_RPC_NAME_BYTES];
    u_int name_bytes;
} door;

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

static struct token *take_token(const char shown[RNL_RPC_TOKEN_BYTES], bool far)
{
    struct token *t = NULL;
    for (unsigned i = 0; i < TOKENS; i++)
        if (tokens[i].valid && tokens[i].far == far && rnl_rpc_secret_equal(tokens[i].token, shown))
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
        rnl_rpc_explain("a client was turned away at the door: %s",
                        t ? "there is no memory for its link" : "it did not show a token");
    }
    if (memory >= 0)
        close(memory);
}

/* ---- the door ---- */

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

/* Drops those that came to the door and have said nothing for too long, and the oldest of too many: of the user who has
 * just come, then of all. */
static void drop_silent(uid_t uid)
{
    struct silence c = {.now_ns = rnl_rpc_now_ns(), .uid = uid};
    rnl_rpc_server_each(note_silent, &c);
    struct rnl_rpc_server *s = c.of_user > SILENT_OF_A_USER ? c.oldest_of_user
                               : c.of_all > SILENT_OF_ALL   ? c.oldest
                                                            : NULL;
    if (s) {
        rnl_rpc_explain("a client was turned away at the door: it said nothing, as did too many others");
        rnl_rpc_server_end(s);
    }
}

static bool_t door_recv(SVCXPRT *x, struct rpc_msg *msg)
{
    (void)msg;
    if (door.pid != getpid())
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

static enum xprt_stat door_stat(SVCXPRT *x)
{
    (void)x;
    return door.pid == getpid() ? XPRT_IDLE : XPRT_DIED; /* the parent's: libtirpc destroys it in this process */
}

static void door_destroy(SVCXPRT *x)
{
    if (x == door.transport)
        door.transport = NULL;
    x->xp_ops = door.real;
    x->xp_ops->xp_destroy(x);
}

static bool door_open(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t n = sizeof a;
    if (door.transport && door.pid == getpid())
        return true;
    if (door.transport) { /* inherited, with the tokens of the parent's clients */
        door_destroy(door.transport);
        memset(tokens, 0, sizeof tokens);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    SVCXPRT *x = NULL;
    rnl_rpc_take_no_descriptors(fd);
    if (rnl_rpc_has_room(fd) && bind(fd, (struct sockaddr *)&a, sizeof a.sun_family) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &n) == 0 && n > offsetof(struct sockaddr_un, sun_path) + 1 &&
        n - offsetof(struct sockaddr_un, sun_path) - 1 <= sizeof door.name)
        x = rnl_rpc_tirpc()->svc_vc_create(fd, 0, 0);
    if (!x) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    door.name_bytes = (u_int)(n - offsetof(struct sockaddr_un, sun_path) - 1);
    memcpy(door.name, a.sun_path + 1, door.name_bytes);
    door.real = x->xp_ops;
    door.ops = *x->xp_ops;
    door.ops.xp_recv = door_recv;
    door.ops.xp_stat = door_stat;
    door.ops.xp_destroy = door_destroy;
    x->xp_ops = &door.ops;
    door.transport = x;
    door.pid = getpid();
    return true;
}

/* ---- clients on other hosts ---- */

/* A transport on the descriptor that becomes readable when such a client may have come. */
static struct well {
    SVCXPRT *transport; /* NULL = none yet */
    struct xp_ops ops;
    const struct xp_ops *real;
    pid_t pid;
} well;

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
        if (!rnl_rpc_far_welcome(link, t->proof))
            link->broken = true;
        rnl_rpc_explain("a client on another host, over %s, was upgraded to Runnel's packets", t->netid);
        return;
    }
    link->ops->close(link);
    if (s)
        rnl_rpc_server_end(s);
    rnl_rpc_explain("a client on another host was turned away: %s",
                    t ? "there is no memory for its link" : "it did not show a token");
}

static bool_t well_recv(SVCXPRT *x, struct rpc_msg *msg)
{
    char shown[RNL_RPC_TOKEN_BYTES];
    struct rnl_rpc_link *link;
    uid_t uid;
    int sock;
    (void)x, (void)msg;
    while (well.pid == getpid() && (link = rnl_rpc_far_next(shown, &uid, &sock)) != NULL)
        let_in(link, shown, uid, sock);
    return FALSE;
}

static enum xprt_stat well_stat(SVCXPRT *x)
{
    (void)x;
    return well.pid == getpid() ? XPRT_IDLE : XPRT_DIED;
}

static void well_destroy(SVCXPRT *x)
{
    if (x == well.transport)
        well.transport = NULL;
    x->xp_ops = well.real;
    x->xp_ops->xp_destroy(x);
}

/* libtirpc makes transports on connected sockets only, so one gives its number to the descriptor. */
static SVCXPRT *well_transport(int ready)
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

static bool well_open(const char **service, const char **why)
{
    int ready;
    if (well.transport && well.pid != getpid()) {
        well_destroy(well.transport);
        memset(tokens, 0, sizeof tokens);
    }
    if (!rnl_rpc_far_serve(service, &ready, why))
        return false;
    if (!well.transport) {
        *why = "this process has hardly a descriptor left";
        SVCXPRT *x = well_transport(ready);
        if (x) {
            well.real = x->xp_ops;
            well.ops = *x->xp_ops;
            well.ops.xp_recv = well_recv;
            well.ops.xp_stat = well_stat;
            well.ops.xp_destroy = well_destroy;
            x->xp_ops = &well.ops;
            well.transport = x;
            well.pid = getpid();
        }
    }
    close(ready);
    return well.transport != NULL;
}

/* ---- the private program ---- */

static void keep(struct netbuf *from, struct sockaddr_storage *to, socklen_t *bytes)
{
    *bytes = from->buf && from->len <= sizeof *to ? from->len : 0;
    if (*bytes)
        memcpy(to, from->buf, *bytes);
}

/* Finds out by which way the client may come: RNL_RPC_COME, RNL_RPC_COME_FAR, or it stays with libtirpc. */
static enum rnl_rpc_refused way_for(const struct rnl_rpc_place *asked, const char **service)
{
    struct rnl_rpc_place here;
    const char *why;
    if (rnl_rpc_place_here(&here) && rnl_rpc_place_equal(asked, &here)) {
        if (door_open())
            return RNL_RPC_COME;
        rnl_rpc_explain("a client stays with libtirpc: this process has no descriptor left for a door");
        return RNL_RPC_REFUSED;
    }
    why = rnl_rpc_far_lacks();
    if (!why && well_open(service, &why))
        return RNL_RPC_COME_FAR;
    rnl_rpc_explain("a client on another host, or in another network namespace, stays with libtirpc: %s", why);
    return RNL_RPC_NO_KEY;
}

static void introduce(SVCXPRT *x, const struct rnl_rpc_place *asked, struct rnl_rpc_answer *answer)
{
    const char *service = "";
    struct token *t = &tokens[next_token++ % TOKENS];
    drop_silent((uid_t)-1);
    t->valid = false;
    answer->refused = way_for(asked, &service);
    if (answer->refused != RNL_RPC_COME && answer->refused != RNL_RPC_COME_FAR)
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
    t->far = answer->refused == RNL_RPC_COME_FAR;
    t->valid = true;
    if (t->far) {
        strncpy(answer->service, service, sizeof answer->service - 1);
    } else {
        answer->name_bytes = door.name_bytes;
        memcpy(answer->name, door.name, sizeof answer->name);
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
