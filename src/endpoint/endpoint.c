/* SPDX-License-Identifier: BSD-3-Clause
 *
 * endpoint.c - makes and frees an endpoint. */
#include "endpoint/endpoint.h"
#include "endpoint/net.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { DEFAULT_HANDLERS = 1024, MAX_HANDLERS = 65536, DEFAULT_STACKS = 64, SPIN_START = 1024 };
enum { DEFAULT_SILENCE_MS = 30000, SILENCE_LEAST_MS = 100 };
#define DEFAULT_BUDGET ((uint64_t)64 << 20)

int rnl_ep_check(const struct rnl_options *opt, uint32_t size)
{
    if (!opt)
        return 0;
    if (opt->size < offsetof(struct rnl_options, name) || opt->size > 4096)
        return rnl_fail(RNL_ERR_ARG, "rnl_options.size is %u; set it to sizeof(struct rnl_options)", opt->size);
    if (opt->handlers > MAX_HANDLERS)
        return rnl_fail(RNL_ERR_ARG, "%u handlers asked for; at most %d fit in a message header", opt->handlers,
                        MAX_HANDLERS);
    if (opt->flags & ~(uint32_t)(RNL_SHARED | RNL_NO_RUN_IN_SEND | RNL_RESTARTED | RNL_ALONE | RNL_NO_YIELD))
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in rnl_options.flags", opt->flags);
    uint32_t silence_ms =
        opt->size >= offsetof(struct rnl_options, silence_ms) + sizeof opt->silence_ms ? opt->silence_ms : 0;
    if (silence_ms && silence_ms < SILENCE_LEAST_MS)
        return rnl_fail(RNL_ERR_ARG,
                        "rnl_options.silence_ms is %u: a peer may be without a processor for as long; set at least %d, "
                        "or 0 for %d",
                        silence_ms, SILENCE_LEAST_MS, DEFAULT_SILENCE_MS);
    uint64_t least = (uint64_t)size * RNL_GRANT_MIN * 64;
    if (opt->receive_budget && opt->receive_budget < least)
        return rnl_fail(RNL_ERR_ARG, "a receive budget of %zu bytes is too small for %u peer%s; set at least %llu",
                        opt->receive_budget, size, RNL_S(size), (unsigned long long)least);
    return 0;
}

/* Copies the options, with the job's and the library's defaults where they leave something open. */
static int complete(const struct rnl_options *opt, const struct rnl_env *env, struct rnl_options *out)
{
    const uint32_t size = env->size;
    int status = rnl_ep_check(opt, size);
    if (status < 0)
        return status;
    memset(out, 0, sizeof *out);
    if (opt)
        memcpy(out, opt, opt->size < sizeof *out ? opt->size : sizeof *out);
    if (out->handlers == 0)
        out->handlers = DEFAULT_HANDLERS;
    if (out->stacks == 0)
        out->stacks = size > DEFAULT_STACKS ? size : DEFAULT_STACKS;
    if (out->silence_ms == 0)
        out->silence_ms = env->facts.silence_ms ? env->facts.silence_ms : DEFAULT_SILENCE_MS;
    if (out->receive_budget == 0)
        out->receive_budget = DEFAULT_BUDGET > (uint64_t)size * RNL_GRANT_MIN * 128
                                  ? DEFAULT_BUDGET
                                  : (uint64_t)size * RNL_GRANT_MIN * 128;
    return 0;
}

static void lock_new(struct rnl_endpoint *ep)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE); /* handlers call back in */
    pthread_mutex_init(&ep->lock, &a);
    pthread_mutexattr_destroy(&a);
}

int rnl_ep_new(struct rnl_env *env, const struct rnl_options *opt, struct rnl_endpoint **out)
{
    struct rnl_options o;
    struct rnl_endpoint *ep;
    int status = complete(opt, env, &o);
    if (status < 0)
        return status;

    /* In a forked child this memory reads as zeros, so `open` is RNL_EP_FORKED there, and every call fails with
     * that. */
    ep = mmap(NULL, sizeof *ep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ep == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_NO_MEMORY, errno, "no memory for an endpoint (%zu bytes)", sizeof *ep);
    madvise(ep, sizeof *ep, MADV_WIPEONFORK);
    ep->map_bytes = sizeof *ep;
    ep->rank = env->rank;
    ep->size = env->size;
    ep->fast.handlers = o.handlers;
    ep->flags = o.flags;
    ep->silence_ns = o.silence_ms * (uint64_t)1000 * 1000;
    ep->send_timeout_ns = UINT64_MAX;
    ep->credit.budget = o.receive_budget;
    ep->wait.spin = SPIN_START;
    ep->wait.pauses_for[RNL_NEAR] = ep->wait.pauses = env->facts.pauses_near;
    ep->wait.pauses_for[RNL_FAR] = env->facts.pauses_far;
    ep->wait.fence_near = env->facts.fence_near;
    ep->fast.bell = &ep->poll.masked;
    ep->net.bell = &ep->poll.masked;
    ep->fast.event_seq = env->event_seq;
    ep->fast.event_seq_seen = atomic_load_explicit(env->event_seq, memory_order_relaxed) - 1; /* look at once */
    ep->peer = calloc(env->size, sizeof *ep->peer);
    ep->fast.conn = malloc(env->size * sizeof(struct rnl_conn *));
    ep->fast.conns = calloc(env->size, sizeof(struct rnl_conn *));
    ep->fast.handler = calloc(o.handlers, RNL_HANDLER_BYTES);
    if (!ep->peer || !ep->fast.conn || !ep->fast.conns || !ep->fast.handler) {
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for tables of %u peers and %u handlers", env->size, o.handlers);
        goto free_tables;
    }
    for (uint32_t i = 0; i < env->size; i++)
        ep->fast.conn[i] = &rnl_not_connected;
    status = rnl_coro_pool_new(o.stacks, RNL_STACK_BYTES, &ep->coros);
    if (status < 0)
        goto free_tables;
    status = rnl_counters_new(env->rank, env->size, o.name, env->ops->now_ns(env), &ep->c);
    if (status < 0)
        goto free_pool;
    ep->c->receive_budget_bytes = ep->credit.budget;
    if (o.flags & RNL_SHARED)
        lock_new(ep);
    ep->env = env;
    ep->wait.owner = pthread_self();
    status = env->datagrams ? rnl_ep_net_new(ep, NULL) : 0;
    if (status < 0)
        goto free_counters;
    ep->fast.open = o.flags & RNL_SHARED ? RNL_EP_SHARED : RNL_EP_OPEN;
    rnl_ep_set_fast(ep);
    rnl_ep_set_pending(ep);
    *out = ep;
    return 0;

free_counters:
    if (o.flags & RNL_SHARED)
        pthread_mutex_destroy(&ep->lock);
    rnl_counters_free(ep->c);
free_pool:
    rnl_coro_pool_free(ep->coros);
free_tables:
    free(ep->peer);
    free(ep->fast.conn);
    free(ep->fast.conns);
    free(ep->fast.handler);
    munmap(ep, sizeof *ep);
    return status;
}

void rnl_ep_guard(struct rnl_endpoint *ep)
{
    lock_new(ep);
    ep->flags |= RNL_EP_GUARDED;
}

void rnl_ep_unguard(struct rnl_endpoint *ep)
{
    ep->flags &= ~(uint32_t)RNL_EP_GUARDED;
    pthread_mutex_destroy(&ep->lock);
}

void rnl_ep_free(struct rnl_endpoint *ep)
{
    struct rnl_env *env = ep->env;
    rnl_turn_stop(ep);
    if (ep->windows)
        ep->window_ops->free(ep);
    for (uint32_t i = 0; i < ep->size; i++) {
        if (!ep->peer[i].conn)
            continue;
        if (ep->peer[i].conn->remote) {
            (void)rnl_remote_disconnect(ep->peer[i].conn->remote, false);
            rnl_remote_conn_free(ep->peer[i].conn->remote);
        }
        rnl_channel_close(&ep->peer[i].conn->channel);
        rnl_conn_free(ep->peer[i].conn);
    }
    for (struct rnl_conn *conn = ep->retired, *next; conn; conn = next) {
        next = conn->next_retired;
        rnl_conn_free(conn);
    }
    rnl_remote_free(ep->remote);
    if (ep->flags & (RNL_SHARED | RNL_EP_GUARDED))
        pthread_mutex_destroy(&ep->lock);
    rnl_coro_pool_free(ep->coros);
    rnl_coro_pool_free(ep->bulk_coros);
    rnl_counters_free(ep->c);
    free(ep->peer);
    free(ep->fast.conn);
    free(ep->fast.conns);
    free(ep->fast.handler);
    free(ep->later);
    munmap(ep, ep->map_bytes);
    env->ops->close(env);
}
