/* SPDX-License-Identifier: BSD-3-Clause
 *
 * server.c - calls that arrive over links, with the semantics of libtirpc's svc_vc. */
#include "server.h"

#include "host.h"
#include "preload.h"
#include "stream.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <unistd.h>

_Atomic unsigned rnl_rpc_servers;
/* Of RNL_RPC_FDS_MAX entries, made for the first transport: programs without any do not map it. */
static _Atomic(_Atomic(struct rnl_rpc_server *) *) by_fd;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows, and of `next` and `before` */
static struct rnl_rpc_server *first;
static _Atomic(struct rnl_rpc_server *) dead;
static _Atomic unsigned watching;

static struct rnl_rpc_server *server_of(SVCXPRT *x)
{
    return (struct rnl_rpc_server *)(void *)(uintptr_t)x->xp_ops;
}

/* ---- the table, and who looks into it ---- */

void rnl_rpc_watch_begin(void)
{
    if (!__libc_single_threaded)
        atomic_fetch_add_explicit(&watching, 1, memory_order_acq_rel);
}

static void sweep(void)
{
    pthread_mutex_lock(&lock);
    struct rnl_rpc_server *s = NULL;
    if (atomic_load_explicit(&watching, memory_order_acquire) == 0)
        s = atomic_exchange_explicit(&dead, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    while (s) {
        struct rnl_rpc_server *next = s->next_dead;
        if (s->link)
            s->link->ops->close(s->link);
        free(s);
        s = next;
    }
}

void rnl_rpc_watch_end(void)
{
    /* What was skipped by the one thread of a process is skipped again: it cannot start a second one in between. */
    if (!__libc_single_threaded && atomic_fetch_sub_explicit(&watching, 1, memory_order_acq_rel) == 1 &&
        RNL_UNLIKELY(atomic_load_explicit(&dead, memory_order_relaxed)))
        sweep();
}

struct rnl_rpc_server *rnl_rpc_server_at_all(int fd)
{
    _Atomic(struct rnl_rpc_server *) *table = atomic_load_explicit(&by_fd, memory_order_acquire);
    if (!table || fd < 0 || fd >= RNL_RPC_FDS_MAX)
        return NULL;
    return atomic_load_explicit(&table[fd], memory_order_acquire); /* pairs with the release in set_by_fd */
}

struct rnl_rpc_server *rnl_rpc_server_of(int fd)
{
    struct rnl_rpc_server *s = rnl_rpc_server_at_all(fd);
    return s && atomic_load_explicit(&s->open, memory_order_acquire) ? s : NULL; /* pairs with rnl_rpc_server_open */
}

static void set_by_fd(int fd, struct rnl_rpc_server *s)
{
    atomic_store_explicit(&atomic_load_explicit(&by_fd, memory_order_relaxed)[fd], s, memory_order_release);
}

static bool make_table(void)
{
    _Atomic(struct rnl_rpc_server *) *none = NULL, *table;
    if (atomic_load_explicit(&by_fd, memory_order_acquire))
        return true;
    table = mmap(NULL, RNL_RPC_FDS_MAX * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return false;
    if (!atomic_compare_exchange_strong(&by_fd, &none, table))
        munmap(table, RNL_RPC_FDS_MAX * sizeof *table);
    return true;
}

void rnl_rpc_server_each(void (*f)(struct rnl_rpc_server *, void *), void *context)
{
    pthread_mutex_lock(&lock);
    for (struct rnl_rpc_server *s = first; s; s = s->next)
        f(s, context);
    pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

static bool call_head(struct rnl_rpc_server *s, struct rpc_msg *msg)
{
    struct rnl_rpc_link *link = s->link;
    /* A call without credentials begins with ten words that lie whole in its cell. */
    if (link->in_private && link->in_end - link->in_at >= 40) {
        uint32_t w[10];
        memcpy(w, link->in_at, sizeof w);
        if (w[1] == htonl(CALL) && w[2] == htonl(RPC_MSG_VERSION) && (w[6] | w[7] | w[8] | w[9]) == 0) {
            link->in_at += sizeof w;
            msg->rm_xid = ntohl(w[0]);
            msg->rm_direction = CALL;
            msg->rm_call.cb_rpcvers = RPC_MSG_VERSION;
            msg->rm_call.cb_prog = ntohl(w[3]);
            msg->rm_call.cb_vers = ntohl(w[4]);
            msg->rm_call.cb_proc = ntohl(w[5]);
            msg->rm_call.cb_cred.oa_flavor = msg->rm_call.cb_verf.oa_flavor = AUTH_NONE;
            msg->rm_call.cb_cred.oa_length = msg->rm_call.cb_verf.oa_length = 0;
            return true;
        }
    }
    s->in.x_op = XDR_DECODE;
    /* Sessions of RPCSEC_GSS belong to the connection where they began: our clients send none of them here. */
    return rnl_rpc_tirpc()->xdr_callmsg(&s->in, msg) && msg->rm_call.cb_cred.oa_flavor != RPCSEC_GSS;
}

static bool_t my_reply(SVCXPRT *x, struct rpc_msg *msg);

/* Whether the uid that the call claims is that of the process which calls. */
static bool is_true_uid(const struct rnl_rpc_server *s, const struct opaque_auth *cred)
{
    uint32_t name_bytes, uid;
    if (cred->oa_flavor != AUTH_UNIX || s->uid == 0)
        return true;
    if (!s->uid_known || cred->oa_length < 12)
        return false;
    memcpy(&name_bytes, cred->oa_base + 4, sizeof name_bytes);
    name_bytes = ntohl(name_bytes);
    if (name_bytes > MAX_MACHINE_NAME || 8 + RNDUP(name_bytes) + sizeof uid > cred->oa_length)
        return false;
    memcpy(&uid, cred->oa_base + 8 + RNDUP(name_bytes), sizeof uid);
    return ntohl(uid) == s->uid;
}

static bool_t my_recv(SVCXPRT *x, struct rpc_msg *msg)
{
    struct rnl_rpc_server *s = server_of(x);
    struct rnl_rpc_link *link = s->link;
    if (RNL_UNLIKELY(!link)) {
        if (!s->dead)
            s->greeted(x, s);
        return FALSE;
    }
    if (RNL_UNLIKELY(s->rest))
        rnl_rpc_server_forget_rest(s);
    link->deadline_ns = 0;
    if (link->in_open && !link->ops->leave(link))
        return FALSE;
    if (!link->ops->here(link)) {
        link->ops->drain(link);
        if (!s->watched && !link->broken) { /* the next call has to ring */
            link->ops->arm(link, RNL_RPC_ARM_ONCE);
            rnl_rpc_fence();
        }
        if (!link->ops->here(link))
            return FALSE;
    }
    if (!link->ops->next(link) || !call_head(s, msg)) {
        link->broken = true; /* a stream that is not understood any more */
        return FALSE;
    }
    s->xid = msg->rm_xid;
    if (RNL_UNLIKELY(rnl_rpc_settings()->strict) && !is_true_uid(s, &msg->rm_call.cb_cred)) {
        struct rpc_msg refusal = {.rm_direction = REPLY};
        refusal.rm_reply.rp_stat = MSG_DENIED;
        refusal.rjcted_rply.rj_stat = AUTH_ERROR;
        refusal.rjcted_rply.rj_why = AUTH_BADCRED;
        rnl_rpc_explain("a call with the uid of another user was refused; its process has uid %u", (unsigned)s->uid);
        my_reply(x, &refusal);
        return FALSE;
    }
    rnl_rpc_server_serves(s);
    return TRUE;
}

static enum xprt_stat my_stat(SVCXPRT *x)
{
    struct rnl_rpc_server *s = server_of(x);
    struct rnl_rpc_link *link = s->link;
    if (RNL_UNLIKELY(!link))
        return s->dead ? XPRT_DIED : XPRT_IDLE;
    rnl_rpc_server_serves(NULL);
    if (link->ops->here(link) && !(link->broken && link->in_open))
        return XPRT_MOREREQS;
    if (!link->broken && !s->watched) { /* nobody looks into the link for us */
        link->ops->drain(link);
        link->ops->arm(link, RNL_RPC_ARM_ONCE);
        rnl_rpc_fence();
        if (link->ops->here(link))
            return XPRT_MOREREQS;
    }
    return link->broken ? XPRT_DIED : XPRT_IDLE;
}

static bool_t my_getargs(SVCXPRT *x, xdrproc_t xargs, void *args)
{
    struct rnl_rpc_server *s = server_of(x);
    s->in.x_op = XDR_DECODE;
    return s->link ? xargs(&s->in, args) : FALSE;
}

static bool_t my_freeargs(SVCXPRT *x, xdrproc_t xargs, void *args)
{
    struct rnl_rpc_server *s = server_of(x);
    s->in.x_op = XDR_FREE;
    return xargs(&s->in, args);
}

static bool write_reply(struct rnl_rpc_server *s, struct rnl_rpc_link *link, struct rpc_msg *msg)
{
    bool ok;
    link->deadline_ns = 0;
    s->out.x_op = XDR_ENCODE;
    msg->rm_xid = s->xid;
    if (msg->rm_reply.rp_stat == MSG_ACCEPTED && msg->acpted_rply.ar_stat == SUCCESS) {
        xdrproc_t xres = msg->acpted_rply.ar_results.proc;
        void *res = msg->acpted_rply.ar_results.where;
        if (msg->acpted_rply.ar_verf.oa_length == 0) {
            uint32_t head[6] = {
                htonl(s->xid), htonl(REPLY), 0, htonl((uint32_t)msg->acpted_rply.ar_verf.oa_flavor), 0, 0};
            ok = rnl_rpc_stream_put(link, head, sizeof head);
        } else {
            msg->acpted_rply.ar_results.proc = rnl_rpc_xdr_nothing;
            msg->acpted_rply.ar_results.where = NULL;
            ok = rnl_rpc_tirpc()->xdr_replymsg(&s->out, msg);
        }
        ok = ok && xres(&s->out, res);
    } else {
        ok = rnl_rpc_tirpc()->xdr_replymsg(&s->out, msg);
    }
    return !link->broken && link->ops->end(link) && ok;
}

static bool_t my_reply(SVCXPRT *x, struct rpc_msg *msg)
{
    struct rnl_rpc_server *s = server_of(x);
    struct rnl_rpc_link *link = s->link;
    if (!link || link->broken)
        return FALSE;
    if (RNL_LIKELY(!link->shared))
        return write_reply(s, link, msg);
    if (!link->ops->claim(link))
        return FALSE;
    bool ok = write_reply(s, link, msg);
    link->ops->release(link);
    return ok;
}

static void my_destroy(SVCXPRT *x)
{
    struct rnl_rpc_server *s = server_of(x);
    set_by_fd(s->fd, NULL);
    rnl_rpc_server_serves(NULL);
    rnl_rpc_server_forget_rest(s);
    if (s->link && s->link->remote)
        rnl_rpc_explain("a client on another host has gone");
    if (s->link)
        atomic_fetch_sub_explicit(&rnl_rpc_servers, 1, memory_order_relaxed);
    x->xp_ops = s->real;
    x->xp_ops->xp_destroy(x); /* unregisters it, and closes the doorbell */
    pthread_mutex_lock(&lock);
    *(s->before ? &s->before->next : &first) = s->next;
    if (s->next)
        s->next->before = s->before;
    s->next_dead = atomic_load_explicit(&dead, memory_order_relaxed);
    atomic_store_explicit(&dead, s, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    sweep();
}

void rnl_rpc_server_end(struct rnl_rpc_server *s)
{
    s->dead = true;
    (void)shutdown(s->fd, SHUT_RDWR);
}

struct rnl_rpc_server *rnl_rpc_server_new(int fd, void (*greeted)(SVCXPRT *, struct rnl_rpc_server *), SVCXPRT **made)
{
    struct rnl_rpc_server *s = fd < RNL_RPC_FDS_MAX && make_table() ? calloc(1, sizeof *s) : NULL;
    SVCXPRT *x = s ? rnl_rpc_tirpc()->svc_fd_create(fd, 0, 0) : NULL;
    if (!x) {
        free(s);
        close(fd);
        return NULL;
    }
    rnl_rpc_server_watch_forks();
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0) {
        s->uid = cred.uid;
        s->uid_known = true;
    } else {
        s->uid = (uid_t)-1;
    }
    s->fd = fd;
    s->greeted = greeted;
    s->began_ns = rnl_rpc_now_ns();
    s->epoll = -1;
    s->real = x->xp_ops;
    s->ops = (struct xp_ops){my_recv, my_stat, my_getargs, my_reply, my_freeargs, my_destroy};
    x->xp_ops = &s->ops;
    pthread_mutex_lock(&lock);
    s->next = first;
    if (first)
        first->before = s;
    first = s;
    pthread_mutex_unlock(&lock);
    set_by_fd(fd, s);
    *made = x;
    return s;
}

void rnl_rpc_server_open(struct rnl_rpc_server *s, struct rnl_rpc_link *link)
{
    rnl_rpc_stream_in(&s->in, link);
    rnl_rpc_stream_out(&s->out, link);
    s->link = link;
    link->ops->arm(link, RNL_RPC_ARM_ONCE); /* no call can have come: nobody has the segment yet */
    atomic_store_explicit(&s->open, true, memory_order_release);
    atomic_fetch_add_explicit(&rnl_rpc_servers, 1, memory_order_relaxed);
}
