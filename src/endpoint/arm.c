/* SPDX-License-Identifier: BSD-3-Clause
 *
 * arm.c - what peers have to announce: for which of our connections they ring the bell, the fence that orders arming
 * before looking, and how this endpoint itself is made to look again. */
#include "endpoint/poll.h"

/* Returns true if a sleeping call waits for room to this peer. */
static bool room_wanted(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    const struct rnl_idle *w = ep->wait.asleep;
    while (w && w->room != conn)
        w = w->next;
    return w != NULL;
}

static bool needs_room(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return ep->close.closing || conn->post_first || conn->bulk_posts || conn->wants_room ||
           conn->blocked[0] == RNL_BLOCKED_REPLY || room_wanted(ep, conn);
}

void rnl_ep_arm(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    uint32_t how = ep->wait.fd_armed || (ep->wait.asleep && ep->wait.by_fd) ? RNL_ARMED_FD : 0;
    how |= ep->wait.asleep && !ep->wait.by_fd ? RNL_ARMED_WAKE : 0;
    if (how)
        how |= RNL_ARMED_CELLS | (needs_room(ep, conn) ? RNL_ARMED_ROOM : 0);
    if (conn->poll_index >= ep->fast.polled)
        how |= RNL_ARMED_CELLS | RNL_ARMED_BY_BELL;
    rnl_channel_arm(&conn->channel, how); /* F1 */
}

void rnl_ep_arm_all(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->poll.armed_end; i++)
        rnl_ep_arm(ep, ep->fast.conns[i]);
}

/* Fences where there is no heavy fence, or no longer one (a sandbox may have forbidden it): senders have to fence from
 * now on. A sender that sees that late costs a short sleep. */
static void fence_alone(struct rnl_endpoint *ep)
{
    if (ep->env->facts.have_membarrier) {
        ep->env->facts.have_membarrier = 0;
        for (uint32_t i = 0; i < ep->poll.connected; i++)
            atomic_store_explicit(&ep->fast.conns[i]->channel.mine->senders_fence, 1, memory_order_relaxed);
    }
    rnl_full_fence();
}

void rnl_ep_fence(struct rnl_endpoint *ep)
{
    if (ep->env->ops->heavy_fence(ep->env) < 0)
        fence_alone(ep);
}

void rnl_ep_busy(struct rnl_endpoint *ep)
{
    if (!ep->wait.fd_armed)
        return;
    ep->wait.fd_armed = 0;
    rnl_ep_set_pending(ep);
    rnl_ep_arm_all(ep);
    ep->env->ops->fd_raise(ep->env, ep->rank); /* stays readable until an extract finds nothing */
}

void rnl_ep_look_again(struct rnl_endpoint *ep)
{
    struct rnl_env *env = ep->env;
    rnl_ep_busy(ep);
    if (ep->wait.asleep) {
        atomic_fetch_add_explicit(&env->bell->word, 1, memory_order_release);
        env->ops->wake(env, &env->bell->word);
        if (ep->wait.by_fd)
            env->ops->fd_raise(env, ep->rank);
    }
}
