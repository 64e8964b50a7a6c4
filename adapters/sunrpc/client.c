/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.c - calls over a link, with the semantics of libtirpc's clnt_vc and clnt_dg.
 *
 * What differs: signals are not blocked during a call; a call of a UDP client arrives once, whatever its size. */
#include "client.h"

#include "host.h"
#include "preload.h"
#include "remote.h"
#include "stream.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { REFRESHES = 2 };

static struct rnl_rpc_client *client_of(CLIENT *cl)
{
    return (struct rnl_rpc_client *)(void *)cl->cl_ops;
}

static bool is_zero(struct timeval t)
{
    return t.tv_sec == 0 && t.tv_usec == 0;
}

/* What libtirpc takes for no time, and ignores. */
static bool is_no_time(const struct timeval *t)
{
    return t->tv_sec < -1 || t->tv_sec > 100000000 || t->tv_usec < -1 || t->tv_usec > 1000000;
}

static uint64_t deadline(struct timeval t)
{
    int64_t ns = (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
    return rnl_rpc_now_ns() + (uint64_t)(ns > 0 ? ns : 0);
}

static void part(struct rnl_rpc_client *c, enum rnl_rpc_client_state state)
{
    if (c->link && c->unanswered)
        rnl_rpc_remote_flush(c->link);
    if (c->link && c->remote)
        rnl_rpc_explain("program %u version %u: %u calls went over Runnel's packets", c->program, c->version,
                        c->calls_remote);
    if (c->link)
        c->link->ops->close(c->link);
    if (c->sock >= 0)
        close(c->sock);
    c->link = NULL;
    c->sock = -1;
    c->unanswered = false;
    c->calls_remote = 0;
    rnl_rpc_client_begin(c);
    atomic_store_explicit(&c->state, state, memory_order_release);
}

/* Replies of calls that were given up or sent in a batch are taken in while there is no room for this call, so that
 * client and server never wait for each other. The reply of this call stays: an error may come before all was sent. */
static void take_stale(struct rnl_rpc_link *link)
{
    struct rnl_rpc_client *c = link->owner;
    uint32_t xid;
    while (!link->broken && link->ops->here(link)) {
        if (link->ops->peek(link, &xid, sizeof xid) && ntohl(xid) == c->xid)
            return;
        if (!link->ops->next(link) || !link->ops->leave(link))
            return;
    }
}

/* ---- one call ---- */

enum outcome { CALL_DONE, CALL_LOST, CALL_GOES_ON };

static enum outcome done(struct rnl_rpc_client *c, enum clnt_stat status)
{
    c->error.re_status = status;
    return CALL_DONE;
}

static enum outcome send_call(CLIENT *cl, struct rnl_rpc_client *c, rpcproc_t procedure, xdrproc_t xargs, void *args)
{
    struct rnl_rpc_link *link = c->link;
    uint32_t head[6] = {htonl(--c->xid),   htonl(CALL),       htonl(RPC_MSG_VERSION),
                        htonl(c->program), htonl(c->version), htonl((uint32_t)procedure)};
    c->error.re_status = RPC_SUCCESS;
    link->deadline_ns = 0;
    c->out.x_op = XDR_ENCODE;
    if (!rnl_rpc_stream_put(link, head, sizeof head))
        return CALL_LOST;
    if (!AUTH_MARSHALL(cl->cl_auth, &c->out) || !AUTH_WRAP(cl->cl_auth, &c->out, xargs, args)) {
        if (link->broken)
            return CALL_LOST;
        /* If a part is on its way the server gets what there is, as from libtirpc, and answers GARBAGE_ARGS, for which
         * nobody waits. */
        if (!link->ops->drop(link) && !link->ops->end(link))
            return CALL_LOST;
        return done(c, RPC_CANTENCODEARGS);
    }
    return link->ops->end(link) ? CALL_GOES_ON : CALL_LOST;
}

/* Brings the reply of this call up to its results. Older replies are skipped. */
static enum outcome find_reply(struct rnl_rpc_client *c, struct rpc_msg *reply)
{
    struct rnl_rpc_link *link = c->link;
    static const uint32_t usual[5] = {0x01000000, 0, 0, 0, 0}; /* of words: REPLY, accepted, no verifier, SUCCESS */
    const bool little = htonl(1) != 1;
    for (;;) {
        if (!link->ops->here(link)) {
            if (!link->deadline_ns)
                link->deadline_ns = deadline(c->wait);
            if (!link->ops->wait(link, link->deadline_ns))
                return link->broken ? CALL_LOST : done(c, RPC_TIMEDOUT);
        }
        if (!link->ops->next(link))
            return CALL_LOST;
        memset(reply, 0, sizeof *reply);
        uint32_t xid;
        if (little && link->in_private && link->in_end - link->in_at >= 24 &&
            memcmp(link->in_at + 4, usual, sizeof usual) == 0) {
            memcpy(&xid, link->in_at, sizeof xid);
            link->in_at += 24;
            reply->rm_xid = ntohl(xid);
            reply->rm_direction = REPLY;
        } else {
            reply->acpted_rply.ar_results.proc = rnl_rpc_xdr_nothing;
            c->in.x_op = XDR_DECODE;
            if (!rnl_rpc_tirpc()->xdr_replymsg(&c->in, reply)) {
                if (link->broken || !link->ops->leave(link))
                    return CALL_LOST;
                continue;
            }
        }
        if (reply->rm_xid == c->xid)
            return CALL_GOES_ON;
        if (!link->ops->leave(link))
            return CALL_LOST;
    }
}

static enum outcome take_results(CLIENT *cl, struct rnl_rpc_client *c, struct rpc_msg *reply, xdrproc_t xres, void *res)
{
    rnl_rpc_tirpc()->seterr_reply(reply, &c->error);
    if (c->error.re_status != RPC_SUCCESS)
        return CALL_GOES_ON;
    if (!AUTH_VALIDATE(cl->cl_auth, &reply->acpted_rply.ar_verf)) {
        c->error.re_status = RPC_AUTHERROR;
        c->error.re_why = AUTH_INVALIDRESP;
    } else {
        c->in.x_op = XDR_DECODE;
        if (!AUTH_UNWRAP(cl->cl_auth, &c->in, xres, res))
            c->error.re_status = RPC_CANTDECODERES;
    }
    if (reply->acpted_rply.ar_verf.oa_base) {
        c->in.x_op = XDR_FREE;
        (void)rnl_rpc_tirpc()->xdr_opaque_auth(&c->in, &reply->acpted_rply.ar_verf);
    }
    return c->link->broken ? CALL_LOST : CALL_DONE;
}

/* Returns false if the link is lost. */
static bool call_by_link(CLIENT *cl, struct rnl_rpc_client *c, rpcproc_t procedure, xdrproc_t xargs, void *args,
                         xdrproc_t xres, void *res, struct timeval timeout)
{
    struct rnl_rpc_link *link = c->link;
    struct rpc_msg reply;
    atomic_store_explicit(&c->by_link, true, memory_order_relaxed);
    if (!c->wait_set && !is_no_time(&timeout))
        c->wait = timeout;
    link->deadline_ns = 0;
    if (link->in_open && !link->ops->leave(link))
        return false;
    for (int refreshes = REFRESHES;;) {
        enum outcome o = send_call(cl, c, procedure, xargs, args);
        if (o != CALL_GOES_ON)
            return o == CALL_DONE;
        c->unanswered = is_zero(timeout);
        if (c->unanswered) { /* batched, or a message */
            c->error.re_status = xres ? RPC_TIMEDOUT : RPC_SUCCESS;
            return true;
        }
        if ((o = find_reply(c, &reply)) == CALL_GOES_ON)
            o = take_results(cl, c, &reply, xres, res);
        if (o == CALL_LOST)
            return false;
        if (c->error.re_status == RPC_TIMEDOUT && !link->in_open)
            return true;
        if (!link->ops->leave(link))
            return false;
        if (o == CALL_DONE || refreshes-- == 0 || !AUTH_REFRESH(cl->cl_auth, &reply))
            return true;
    }
}

/* ---- the table ---- */

static bool by_gss(CLIENT *cl)
{
    return cl->cl_auth && cl->cl_auth->ah_cred.oa_flavor == RPCSEC_GSS;
}

static enum clnt_stat call_old(CLIENT *cl, struct rnl_rpc_client *c, rpcproc_t procedure, xdrproc_t xargs, void *args,
                               xdrproc_t xres, void *res, struct timeval timeout)
{
    atomic_store_explicit(&c->by_link, false, memory_order_relaxed);
    if (RNL_UNLIKELY(c->late))
        rnl_rpc_client_drain(cl, c);
    return c->real->cl_call(cl, procedure, xargs, args, xres, res, timeout);
}

static enum clnt_stat call_locked(CLIENT *cl, struct rnl_rpc_client *c, rpcproc_t procedure, xdrproc_t xargs,
                                  void *args, xdrproc_t xres, void *res, struct timeval timeout)
{
    int state = atomic_load_explicit(&c->state, memory_order_relaxed);
    if (RNL_UNLIKELY(c->link && c->remote &&
                     rnl_rpc_remote_is_forked(c->link))) { /* the connection is shared, the link not */
        part(c, RNL_RPC_CLIENT_OLD);
        state = RNL_RPC_CLIENT_OLD;
    }
    /* libtirpc's UDP client does not send a call whose time is zero. */
    bool old = by_gss(cl) || (c->datagram && is_zero(c->wait_set ? c->wait : timeout));
    if (state == RNL_RPC_CLIENT_NEW && !old && !is_zero(timeout) && ++c->calls > c->calls_before) {
        rnl_rpc_client_greet(cl, c, timeout);
        state = atomic_load_explicit(&c->state, memory_order_relaxed);
    }
    if (state == RNL_RPC_CLIENT_GREETED) {
        rnl_rpc_client_enter(c);
        state = atomic_load_explicit(&c->state, memory_order_relaxed);
        if (state == RNL_RPC_CLIENT_UPGRADED) {
            rnl_rpc_stream_out(&c->out, c->link);
            rnl_rpc_stream_in(&c->in, c->link);
            c->link->blocked = take_stale;
            c->link->owner = c;
        }
    }
    if (state != RNL_RPC_CLIENT_UPGRADED || old)
        return call_old(cl, c, procedure, xargs, args, xres, res, timeout);
    if (call_by_link(cl, c, procedure, xargs, args, xres, res, timeout)) {
        c->calls_remote += c->remote;
        return c->error.re_status;
    }
    rnl_rpc_explain("program %u version %u: the server has gone, or has dropped its link", c->program, c->version);
    if (c->datagram) { /* as if the datagram had been lost: libtirpc sends it again, to whoever has the port now */
        part(c, RNL_RPC_CLIENT_NEW);
        return call_old(cl, c, procedure, xargs, args, xres, res, timeout);
    }
    bool late = c->link->deadline_ns && rnl_rpc_now_ns() >= c->link->deadline_ns;
    part(c, RNL_RPC_CLIENT_OLD);
    c->error.re_status = late ? RPC_TIMEDOUT : RPC_CANTRECV;
    c->error.re_errno = ECONNRESET;
    return c->error.re_status;
}

static enum clnt_stat my_call(CLIENT *cl, rpcproc_t procedure, xdrproc_t xargs, void *args, xdrproc_t xres, void *res,
                              struct timeval timeout)
{
    struct rnl_rpc_client *c = client_of(cl);
    /* pairs with the releases of whoever gave up; libtirpc has locks of its own */
    if (atomic_load_explicit(&c->state, memory_order_acquire) == RNL_RPC_CLIENT_OLD)
        return call_old(cl, c, procedure, xargs, args, xres, res, timeout);
    pthread_mutex_lock(&c->lock);
    enum clnt_stat status = call_locked(cl, c, procedure, xargs, args, xres, res, timeout);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static void my_geterr(CLIENT *cl, struct rpc_err *error)
{
    struct rnl_rpc_client *c = client_of(cl);
    if (atomic_load_explicit(&c->by_link, memory_order_relaxed))
        *error = c->error;
    else
        c->real->cl_geterr(cl, error);
}

static void my_abort(CLIENT *cl)
{
    client_of(cl)->real->cl_abort(cl);
}

static bool_t my_freeres(CLIENT *cl, xdrproc_t xres, void *res)
{
    XDR x = {.x_op = XDR_FREE};
    (void)cl;
    return xres(&x, res);
}

static bool_t my_control(CLIENT *cl, u_int request, void *info)
{
    struct rnl_rpc_client *c = client_of(cl);
    pthread_mutex_lock(&c->lock);
    bool_t ok = c->real->cl_control(cl, request, info);
    bool upgraded = atomic_load_explicit(&c->state, memory_order_relaxed) == RNL_RPC_CLIENT_UPGRADED;
    if (ok)
        switch (request) {
        case CLSET_TIMEOUT:
            c->wait = *(struct timeval *)info;
            c->wait_set = true;
            break;
        case CLGET_TIMEOUT:
            if (upgraded && !c->datagram)
                *(struct timeval *)info = c->wait;
            break;
        case CLSET_VERS:
            c->version = *(u_int32_t *)info;
            break;
        case CLSET_PROG:
            c->program = *(u_int32_t *)info;
            break;
        case CLSET_XID:
            c->xid = *(u_int32_t *)info + 1;
            break;
        case CLGET_XID:
            if (upgraded)
                *(u_int32_t *)info = c->xid;
            break;
        case CLSET_SVC_ADDR: /* another server, of which nothing is known */
            part(c, RNL_RPC_CLIENT_NEW);
            break;
        case CLSET_ASYNC: /* replies are to be taken in without their calls */
            if (*(int *)info)
                part(c, RNL_RPC_CLIENT_OLD);
            break;
        default:
            break;
        }
    pthread_mutex_unlock(&c->lock);
    return ok;
}

static void my_destroy(CLIENT *cl)
{
    struct rnl_rpc_client *c = client_of(cl);
    cl->cl_ops = c->real;
    part(c, RNL_RPC_CLIENT_OLD);
    pthread_mutex_destroy(&c->lock);
    free(c);
    cl->cl_ops->cl_destroy(cl);
}

CLIENT *rnl_rpc_client_adopt(CLIENT *cl, rpcprog_t program, rpcvers_t version, bool datagram)
{
    static const struct clnt_ops ops = {my_call, my_abort, my_geterr, my_freeres, my_destroy, my_control};
    struct rnl_rpc_client *c;
    if (!cl || rnl_rpc_settings()->off || program == PMAPPROG || (c = calloc(1, sizeof *c)) == NULL)
        return cl;
    c->ops = ops;
    c->real = cl->cl_ops;
    c->sock = -1;
    pthread_mutex_init(&c->lock, NULL);
    rnl_rpc_client_begin(c);
    atomic_init(&c->state, RNL_RPC_CLIENT_NEW);
    c->datagram = datagram;
    c->program = (uint32_t)program;
    c->version = (uint32_t)version;
    if (getrandom(&c->xid, sizeof c->xid, GRND_NONBLOCK) < 0)
        c->xid = (uint32_t)rnl_rpc_now_ns();
    cl->cl_ops = &c->ops;
    return cl;
}

RNL_RPC_REAL(clnt_vc_create, rnl_rpc_next_tirpc)
RNL_RPC_REAL(clnt_dg_create, rnl_rpc_next_tirpc)

RNL_RPC_INTERPOSED CLIENT *clnt_vc_create(int fd, const struct netbuf *address, const rpcprog_t program,
                                          const rpcvers_t version, u_int send_bytes, u_int receive_bytes)
{
    CLIENT *cl = real_clnt_vc_create()(fd, address, program, version, send_bytes, receive_bytes);
    return rnl_rpc_client_adopt(cl, program, version, false);
}

RNL_RPC_INTERPOSED CLIENT *clnt_dg_create(int fd, const struct netbuf *address, const rpcprog_t program,
                                          const rpcvers_t version, u_int send_bytes, u_int receive_bytes)
{
    CLIENT *cl = real_clnt_dg_create()(fd, address, program, version, send_bytes, receive_bytes);
    return rnl_rpc_client_adopt(cl, program, version, true);
}
