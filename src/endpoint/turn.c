/* SPDX-License-Identifier: BSD-3-Clause
 *
 * turn.c - the hand-over of an endpoint between its owner and the thread that serves it while the owner computes
 * (turn.h). The owner's calls cost it no lock and no system call, but for the first one after the thread has served:
 * that one waits for at most one pass of the thread, and wakes it if it sleeps. While the owner calls now and then, the
 * thread naps, and looks once in NAP_NS whether it still does. */
#include "endpoint/turn.h"
#include "base/bug.h"

#include "endpoint/poll.h"

enum { ASKS_PER_YIELD = 256 };
#define NAP_NS      ((uint64_t)1000 * 1000)
#define LONG_NAP_NS ((uint64_t)100 * 1000 * 1000)

bool rnl_turn_is_threads(const struct rnl_endpoint *ep)
{
    const struct rnl_turn *t = &ep->turn;
    /* Set by the thread itself, which always sees it; `self` was stored before it. */
    return atomic_load_explicit(&t->serves, memory_order_acquire) && pthread_equal(t->self, pthread_self());
}

/* ---- the owner ---- */

/* The turn is the owner's again: what the thread had armed for its sleep, and left at the heads of lanes, is undone. */
static void back(struct rnl_endpoint *ep)
{
    ep->wait.asleep = NULL;
    rnl_ep_arm_all(ep);
    if (ep->turn.heads) {
        ep->turn.heads = 0;
        rnl_ep_look_at_heads(ep);
    }
}

/* Ends the sleep of the thread in which the owner took its turn. */
static void end_sleep(struct rnl_endpoint *ep)
{
    struct rnl_env *env = ep->env;
    if (ep->wait.by_fd)
        env->ops->fd_raise(env, ep->rank);
    atomic_fetch_add_explicit(&env->bell->word, 1, memory_order_release); /* pairs with the load before park */
    env->ops->wake(env, &env->bell->word);
}

RNL_NOINLINE void rnl_turn_request(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    uint32_t was = RNL_TURN_ASLEEP;
    atomic_store_explicit(&t->asked, 1, memory_order_relaxed); /* a hint; the turn comes through `holder` */
    for (unsigned n = 1; !atomic_compare_exchange_weak_explicit(&t->holder, &was, RNL_TURN_OWNER, memory_order_acquire,
                                                                memory_order_acquire) && /* pairs with its giving */
                         was != RNL_TURN_OWNER;
         n++) {
        was = RNL_TURN_ASLEEP;
        if (n % ASKS_PER_YIELD == 0)
            (void)ep->env->ops->yield(ep->env);
    }
    atomic_store_explicit(&t->asked, 0, memory_order_relaxed);
    back(ep);
    if (was == RNL_TURN_ASLEEP)
        end_sleep(ep); /* it is to nap: nobody rings for it any more */
}

void rnl_turn_begin(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    if (RNL_UNLIKELY(rnl_turn_is_threads(ep)))
        return;
    if (t->depth++)
        return;
    if (RNL_UNLIKELY(!rnl_turn_begin_only(t)))
        rnl_turn_request(ep);
    rnl_ep_unhide_short(ep);
}

void rnl_turn_end(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    if (RNL_UNLIKELY(rnl_turn_is_threads(ep)))
        return;
    if (--t->depth)
        return;
    rnl_ep_hide_short(ep);
    rnl_turn_end_only(t);
}

void rnl_turn_parks(struct rnl_endpoint *ep)
{
    if (ep->turn.runs)
        atomic_store(&ep->turn.parked, 1);
}

/* Wakes the thread from its nap. Its word is between threads of one process: it is no bell, and for the env of
 * introduced peers every word that is woken is one. */
static void ring(struct rnl_endpoint *ep)
{
    atomic_fetch_add(&ep->turn.bell, 1);
    rnl_host_wake(ep->env, &ep->turn.bell);
}

void rnl_turn_parked(struct rnl_endpoint *ep)
{
    if (!ep->turn.runs)
        return;
    atomic_store(&ep->turn.parked, 0);
    if (atomic_load(&ep->turn.far))
        ring(ep);
}

void rnl_turn_stop(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    if (!t->runs)
        return;
    rnl_turn_begin(ep);
    atomic_store(&t->ends, 1);
    ring(ep);
    end_sleep(ep); /* it may not have left it yet */
    pthread_join(t->thread, NULL);
    atomic_store(&t->holder, RNL_TURN_OWNER);
    t->runs = 0;
    back(ep);
    rnl_turn_end(ep);
}

/* ---- the thread ---- */

/* Sleeps, for long if the owner does. */
static void nap(struct rnl_endpoint *ep, bool is_long)
{
    struct rnl_turn *t = &ep->turn;
    struct rnl_env *env = ep->env;
    uint32_t word = atomic_load(&t->bell);
    atomic_store(&t->far, 1);
    if (atomic_load(&t->parked)) /* after far is set: the owner looks the other way round */
        is_long = true;
    else
        atomic_store(&t->far, 0);
    uint64_t until = env->ops->now_ns(env) + (is_long ? LONG_NAP_NS : NAP_NS);
    if (!atomic_load(&t->ends))
        rnl_host_park(env, &t->bell, word, until);
    atomic_store(&t->far, 0);
}

/* From now on handlers of the program are not found. */
static void begin_serving(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    t->handlers = ep->fast.handlers;
    ep->fast.handlers = 0;
    atomic_store_explicit(&t->serves, 1, memory_order_release); /* pairs with rnl_turn_is_threads */
    rnl_ep_unhide_short(ep);
    t->promote(ep);
}

static void end_serving(struct rnl_endpoint *ep, enum rnl_turn_holder next)
{
    struct rnl_turn *t = &ep->turn;
    ep->fast.handlers = t->handlers;
    atomic_store_explicit(&t->serves, 0, memory_order_relaxed);
    atomic_store_explicit(&t->holder, next, memory_order_release); /* pairs with the owner's acquire */
}

/* Takes the turn from an owner that has called nothing since `calls` was read. */
static bool take_from_owner(struct rnl_endpoint *ep, uint32_t calls)
{
    struct rnl_turn *t = &ep->turn;
    uint32_t was = RNL_TURN_OWNER;
    if (!atomic_compare_exchange_strong_explicit(&t->holder, &was, RNL_TURN_THREAD, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    bool fenced = t->no_fence ? (rnl_full_fence(), true) : ep->env->ops->heavy_fence(ep->env) == 0;
    if (fenced && atomic_load_explicit(&t->calls, memory_order_acquire) == calls) /* pairs with rnl_turn_end */
        return true;
    atomic_store_explicit(&t->holder, RNL_TURN_OWNER, memory_order_release);
    return false;
}

void rnl_turn_thread_begins(struct rnl_endpoint *ep)
{
    ep->turn.self = pthread_self(); /* once: the owner may read it from then on */
}

bool rnl_turn_take(struct rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    bool is_long = false;
    for (;;) {
        uint32_t calls = atomic_load_explicit(&t->calls, memory_order_relaxed);
        nap(ep, is_long);
        is_long = false;
        if (atomic_load(&t->ends))
            return false;
        if ((calls % 2 && !RNL_BUG(turn_taken_in_a_call)) ||
            calls != atomic_load_explicit(&t->calls, memory_order_relaxed) || !take_from_owner(ep, calls))
            continue;
        if (ep->wait.fd_mode == RNL_FD_NONE) {
            begin_serving(ep);
            return true;
        }
        atomic_store_explicit(&t->holder, RNL_TURN_OWNER, memory_order_release);
        is_long = true; /* the program waits by its own loop, and a sleep of ours would take its wake-ups */
    }
}

void rnl_turn_give(struct rnl_endpoint *ep)
{
    end_serving(ep, RNL_TURN_OWNER);
}

void rnl_turn_sleeps(struct rnl_endpoint *ep)
{
    end_serving(ep, RNL_TURN_ASLEEP);
}

void rnl_turn_slept(struct rnl_endpoint *ep)
{
    uint32_t was = RNL_TURN_ASLEEP;
    /* An owner that has marked a call since changes `holder` itself, or waits until it is not THREAD. */
    if (atomic_compare_exchange_strong_explicit(&ep->turn.holder, &was, RNL_TURN_THREAD, memory_order_acquire,
                                                memory_order_relaxed))
        begin_serving(ep);
    else
        (void)rnl_turn_take(ep);
}
