/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.c - the calls of runnel/meet.h. How processes are introduced is the env's (rnl_meet_ops); here is what waits for
 * it. post.c asks the program whom to admit. */
#include "runnel/meet.h"

#include "stream/stream_internal.h"

#define DAEMON_WAIT_NS ((uint64_t)10 * 1000 * 1000 * 1000) /* to start the daemon on a busy host, and be answered */

static int enter(struct rnl_endpoint *ep)
{
    int status = rnl_ep_enter(ep);
    if (status < 0 || ep->env->meet)
        return status;
    rnl_ep_leave(ep);
    return rnl_fail(RNL_ERR_UNSUPPORTED,
                    "this endpoint belongs to a job, whose ranks are its peers: introductions need "
                    "one that was opened with RNL_ALONE");
}

static int may_wait(const struct rnl_endpoint *ep)
{
    return ep->fast.in_handler ? rnl_fail(RNL_ERR_CONTEXT, "waiting for an introduction does not belong inside a "
                                                           "handler: give the timeout 0, or return from it first")
                               : 0;
}

/* One turn of waiting. Returns 0 = look again, RNL_TIMED_OUT, or RNL_ERR_FORKED, after which ep is not to be used. */
static int turn(struct rnl_endpoint *ep, struct rnl_idle *w)
{
    unsigned things;
    (void)rnl_stream_extract(ep, UINT64_MAX, &things);
    if (rnl_ep_forked(ep))
        return rnl_ep_enter_slow(ep);
    if (things) {
        w->polls = w->yields = 0;
        return 0;
    }
    return rnl_ep_idle(ep, w);
}

/* ---- to serve ---- */

static int serve(struct rnl_endpoint *ep, const char *service, const struct rnl_admit *who, rnl_connection_request *f,
                 void *ctx)
{
    struct rnl_env *env = ep->env;
    struct rnl_idle w = {.deadline_ns = env->ops->now_ns(env) + DAEMON_WAIT_NS};
    int status = may_wait(ep);
    if (status == 0)
        status = env->meet->serve(env, service, who, f, ctx);
    while (status == 0) {
        status = env->meet->served(env, service);
        if (status != 0)
            break;
        status = turn(ep, &w);
        if (status == RNL_TIMED_OUT) {
            (void)env->meet->unserve(env, service);
            status = rnl_fail(RNL_ERR_UNREACHABLE,
                              "the daemon that keeps the names of services does not answer: start `runnel daemon`, or "
                              "set PATH so that it can be started");
        }
    }
    return status > 0 ? 0 : status;
}

int rnl_serve(rnl_endpoint *ep, const char *service, const struct rnl_admit *who, rnl_connection_request *f, void *ctx)
{
    int status = enter(ep);
    if (status < 0)
        return status;
    status = serve(ep, service, who, f, ctx);
    if (status != RNL_ERR_FORKED)
        rnl_ep_leave(ep);
    return status;
}

int rnl_unserve(rnl_endpoint *ep, const char *service)
{
    int status = enter(ep);
    if (status < 0)
        return status;
    status = ep->env->meet->unserve(ep->env, service);
    rnl_ep_leave(ep);
    return status;
}

/* ---- to reach ---- */

/* Waits until the peer is introduced and connected. */
static int await(struct rnl_endpoint *ep, uint32_t rank, int64_t timeout_ns)
{
    struct rnl_env *env = ep->env;
    struct rnl_idle w = {.deadline_ns = timeout_ns < 0 ? UINT64_MAX : env->ops->now_ns(env) + (uint64_t)timeout_ns};
    for (;;) {
        env->meet->look(env);
        int status = env->meet->met(env, rank);
        if (status < 0)
            return status;
        rnl_ep_take_events(ep);
        if (status == 1 && ep->peer[rank].state >= RNL_PEER_IS_UP)
            return 0;
        status = turn(ep, &w);
        if (status == RNL_TIMED_OUT)
            return rnl_fail(RNL_TIMED_OUT, "nobody has let this process in within the time given: is the service "
                                           "offered, and does its process extract?");
        if (status < 0)
            return status;
    }
}

static int introduced(struct rnl_endpoint *ep, int status, uint32_t rank, int64_t timeout_ns, unsigned *peer)
{
    if (status == 0 && timeout_ns != 0)
        status = await(ep, rank, timeout_ns);
    else if (status < 0)
        return status;
    if (status == RNL_ERR_FORKED)
        return status;
    if (status < 0)
        (void)rnl_ep_quit(ep, rank);
    else
        *peer = rank;
    return status;
}

int rnl_reach(rnl_endpoint *ep, const char *service, int64_t timeout_ns, unsigned *peer)
{
    uint32_t rank = 0;
    int status = enter(ep);
    if (status < 0)
        return status;
    status = timeout_ns ? may_wait(ep) : 0;
    if (status == 0)
        status = ep->env->meet->reach(ep->env, service, timeout_ns != 0, &rank);
    status = introduced(ep, status, rank, timeout_ns, peer);
    if (status != RNL_ERR_FORKED)
        rnl_ep_leave(ep);
    return status;
}

int rnl_introduce(rnl_endpoint *ep, int socket, enum rnl_introduce_side side, const struct rnl_admit *who,
                  int64_t timeout_ns, unsigned *peer)
{
    uint32_t rank = 0;
    int status = enter(ep);
    if (status < 0)
        return status;
    status = timeout_ns ? may_wait(ep) : 0;
    if (status == 0 && side != RNL_OFFER && side != RNL_ACCEPT)
        status = rnl_fail(RNL_ERR_ARG, "side %d of an introduction: it is RNL_OFFER or RNL_ACCEPT", (int)side);
    if (status == 0)
        status = ep->env->meet->introduce(ep->env, socket, side == RNL_OFFER, who, timeout_ns != 0, &rank);
    status = introduced(ep, status, rank, timeout_ns, peer);
    if (status != RNL_ERR_FORKED)
        rnl_ep_leave(ep);
    return status;
}

int rnl_address(rnl_endpoint *ep, const struct rnl_admit *who, rnl_connection_request *f, void *ctx, char *buf,
                size_t n)
{
    int status = enter(ep);
    if (status < 0)
        return status;
    status = ep->env->meet->address(ep->env, who, f, ctx, buf, n);
    rnl_ep_leave(ep);
    return status;
}

int rnl_insert(rnl_endpoint *ep, const char *address, unsigned *peer)
{
    uint32_t rank;
    int status = enter(ep);
    if (status < 0)
        return status;
    status = ep->env->meet->insert(ep->env, address, &rank);
    if (status == 0)
        *peer = rank;
    rnl_ep_leave(ep);
    return status;
}

/* ---- peers ---- */

static int no_peer(const rnl_endpoint *ep, unsigned peer)
{
    return rnl_fail(RNL_ERR_RANK, "there is no peer %u: this endpoint has at most %u", peer, ep->size - 1);
}

int rnl_peer_cred(rnl_endpoint *ep, unsigned peer, struct rnl_cred *out)
{
    int status = enter(ep);
    if (status < 0)
        return status;
    status = peer < ep->size ? ep->env->meet->cred(ep->env, peer, out) : no_peer(ep, peer);
    rnl_ep_leave(ep);
    return status;
}

int rnl_peer_is(rnl_endpoint *ep, unsigned peer, const char *address)
{
    int status = enter(ep);
    if (status < 0)
        return status;
    status = peer < ep->size ? ep->env->meet->is(ep->env, peer, address) : no_peer(ep, peer);
    rnl_ep_leave(ep);
    return status;
}

int rnl_leave(rnl_endpoint *ep, unsigned peer)
{
    int status = enter(ep);
    if (status < 0)
        return status;
    status = rnl_ep_quit(ep, peer);
    rnl_ep_leave(ep);
    return status;
}
