/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.c - how an endpoint waits: spin a little, yield while that is enough, then sleep. How little is learnt: a yield
 * that took long means that somebody else needed this processor, one that came back at once means that we are alone.
 *
 * Sleeping is a handshake with senders that use no fence: arm every ring, a heavy fence, look at everything once more,
 * sleep. A sender that published before the fence is seen by the look; one after it sees `armed` and rings.
 * tests/model/sleep_wake.pml.
 *
 * With a socket that rings no bell (by_fd), one sleeps on descriptors instead of the bell's word: the socket's, and our
 * own, which peers of this host raise as they do for event loops. It is drained before the look, so what had raised it
 * is seen by the look. */
#include "endpoint/endpoint.h"
#include "endpoint/remote.h"

#if defined(__x86_64__) || defined(__i386__)
#define pause_once() __builtin_ia32_pause()
#else
#define pause_once() atomic_signal_fence(memory_order_seq_cst)
#endif

enum {
    SPIN_MAX = 4096,
    OTHERS_RAN_NS = 1500, /* a yield longer than this let somebody else run */
    PEER_RAN_NS = 600,    /* ... this, if a message was there after it: two switches take longer, a call does not */
    YIELDS_BEFORE_SLEEP = 100,
    PARKED = YIELDS_BEFORE_SLEEP + 1, /* rnl_idle.yields: the last sleep was for nothing */
    POLLS_AS_YIELD = 64,              /* polls that bring sleep as near as a yield does */
    EMPTIES_MIN = 2,                  /* extracts in vain before giving way, at least */
    EMPTIES_TIDY = 64,                /* ... before looking after credit, rounds and news */
    PEERS_PER_POLL = 8,               /* looked at in the time that a poll takes in any case */
    POLLS_PER_RECEIVE = 16,           /* asking a network takes as long as so many */
    POLLS_PER_CLOCK = 32
};
#define TIDY_EVERY_NS     ((uint64_t)100 * 1000)
#define SLEEP_NS          ((uint64_t)100 * 1000 * 1000) /* a lost hint costs at most this */
#define SLEEP_UNFENCED_NS ((uint64_t)1000 * 1000)       /* no heavy fence here: a lost wake-up costs at most this */

void rnl_ep_relax(const struct rnl_endpoint *ep)
{
    for (unsigned i = ep->pauses; i > 0; i--)
        pause_once();
}

/* The lock of an endpoint that threads share; 0 = it has none, or a call of its rank's own holds none. */
static int let_go(struct rnl_endpoint *ep)
{
    return ep->flags & (RNL_SHARED | RNL_EP_GUARDED) && pthread_mutex_unlock(&ep->lock) == 0;
}

static int answer_fits(struct rnl_conn *conn)
{
    uint64_t start;
    struct rnl_tx *t = &conn->pair.tx[1];
    return rnl_tx_refresh(t, NULL, NULL) != 0 &&
           (conn->stuck_answer <= RNL_LINE_PAYLOAD || rnl_tx_bulk_room(t, conn->stuck_answer, &start) != 0);
}

/* The peer has read on since we last asked: a queued post may go, or the last bytes before a close have arrived. */
static int moved(struct rnl_conn *conn)
{
    const struct rnl_back *back = &conn->pair.theirs->back[0];
    uint64_t now = atomic_load_explicit(&back->position, memory_order_relaxed) +
                   atomic_load_explicit(&back->bulk_read, memory_order_relaxed) +
                   atomic_load_explicit(&back->granted, memory_order_relaxed); /* hints: what is used is loaded again */
    if (now == conn->back_seen)
        return 0;
    conn->back_seen = now;
    return 1;
}

int rnl_ep_look(struct rnl_endpoint *ep)
{
    if (ep->calls || atomic_load_explicit(ep->news, memory_order_relaxed) != ep->news_seen)
        return 1;
    for (uint32_t i = 0; i < ep->live; i++) {
        struct rnl_conn *conn = ep->hot[i];
        if (rnl_ep_has_lines(conn)) {
            rnl_ep_warm(ep, conn);
            return 1;
        }
        if (conn->stuck[0] == RNL_STUCK_ANSWER && answer_fits(conn))
            return 1;
        if ((conn->post_first || conn->wants_room || ep->closing) && moved(conn))
            return 1;
    }
    return 0;
}

static int has_room(struct rnl_idle *w)
{
    struct rnl_tx *t;
    if (!w->room)
        return 0;
    if (w->room->gone || w->room->dying)
        return 1;
    t = &w->room->pair.tx[w->room_lane];
    if (rnl_tx_refresh(t, NULL, NULL) == 0)
        return 0;
    return w->bulk == 0 || rnl_tx_bulk_piece(t, w->bulk, w->bulk) != 0;
}

static void tell_all(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->live; i++)
        rnl_ep_tell(ep, ep->hot[i]);
    if (ep->remote) {
        rnl_remote_tidy(ep);
        rnl_remote_send(ep);
    }
}

/* There is no heavy fence, or not any more (a sandbox may have forbidden it): senders have to fence. Those that read
 * this late cost a short sleep. */
static void fence_alone(struct rnl_endpoint *ep)
{
    if (ep->env->facts.have_membarrier) {
        ep->env->facts.have_membarrier = 0;
        for (uint32_t i = 0; i < ep->live; i++)
            atomic_store_explicit(&ep->hot[i]->pair.mine->senders_fence, 1, memory_order_relaxed);
    }
    rnl_full_fence();
}

void rnl_ep_fence(struct rnl_endpoint *ep)
{
    if (ep->env->ops->heavy_fence(ep->env) < 0)
        fence_alone(ep);
}

/* Armed, fenced and looked: 1 = something is there after all. */
static int arm_and_look(struct rnl_endpoint *ep, struct rnl_idle *w)
{
    rnl_ep_credit(ep);
    tell_all(ep);
    rnl_ep_arm_all(ep);
    if (!rnl_remote_all_away(ep)) /* who is on another host does not write here */
        rnl_ep_fence(ep);
    if (ep->remote && rnl_remote_look(ep, ep->env->ops->now_ns(ep->env)))
        return 1;
    return rnl_ep_look(ep) || (w && has_room(w));
}

/* 1 = a descriptor is readable. */
static int park(struct rnl_endpoint *ep, uint32_t word, uint64_t until_ns)
{
    struct rnl_env *env = ep->env;
    if (!ep->by_fd) {
        env->ops->park(env, &env->bell->word, word, until_ns);
        return 0;
    }
    if (ep->fd_mode && ep->fd_until_ns < until_ns) /* or our own would be readable before */
        env->ops->fd_until(env, ep->fd_until_ns = until_ns);
    return env->ops->park_on(env, rnl_remote_fd(ep), until_ns);
}

/* 1 = something is there, or somebody rang. */
static int sleep_until(struct rnl_endpoint *ep, struct rnl_idle *w, uint64_t now_ns)
{
    struct rnl_env *env = ep->env;
    if (ep->by_fd)
        env->ops->fd_drain(env);
    uint32_t word = atomic_load_explicit(&env->bell->word, memory_order_acquire);
    w->next = ep->asleep;
    ep->asleep = w;
    int woken = arm_and_look(ep, w);
    if (!woken) {
        uint64_t until = now_ns + (env->facts.have_membarrier ? SLEEP_NS : SLEEP_UNFENCED_NS);
        if (ep->remote && rnl_remote_deadline(ep) < until)
            until = rnl_remote_deadline(ep);
        ep->c->sleeps++;
        int locked = let_go(ep);
        woken = park(ep, word, until < w->deadline_ns ? until : w->deadline_ns);
        if (locked)
            pthread_mutex_lock(&ep->lock);
        woken |= atomic_load_explicit(&env->bell->word, memory_order_relaxed) != word; /* else its time was up */
        if (ep->by_fd)
            rnl_remote_soon(ep);
        (void)rnl_ep_look_cold(ep);
        if (!woken) {
            rnl_ep_news_slow(ep); /* the socket, not only the hint */
            rnl_ep_join_wanted(ep);
        }
    }
    struct rnl_idle **at = &ep->asleep;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    rnl_ep_arm_all(ep); /* others may sleep on */
    return woken;
}

/* What a poll in vain has time for. */
static void tidy(struct rnl_endpoint *ep)
{
    rnl_ep_credit(ep);
    rnl_ep_join_wanted(ep);
    tell_all(ep); /* a sender that must reserve much at once needs to know what is free */
}

static void spin_less(struct rnl_endpoint *ep)
{
    ep->spin = ep->spin > 2 ? ep->spin / 2 : 1;
}

static uint64_t received(const struct rnl_endpoint *ep)
{
    return ep->c->messages_received + ep->c->bytes_received;
}

/* After giving way, for so long. */
static void gave_way(struct rnl_endpoint *ep, uint64_t away)
{
    ep->c->yields++;
    ep->gave_way = away <= OTHERS_RAN_NS;
    ep->gave_way_at = away > PEER_RAN_NS ? received(ep) : UINT64_MAX;
    if (!ep->gave_way)
        spin_less(ep);
}

/* At the first poll in vain after it came back soon: did it let the peer run that we wait for, or nobody? */
static void judge(struct rnl_endpoint *ep)
{
    ep->gave_way = 0;
    if (ep->gave_way_at != UINT64_MAX && received(ep) != ep->gave_way_at)
        spin_less(ep);
    else
        ep->spin = ep->spin < SPIN_MAX / 2 ? ep->spin * 2 : SPIN_MAX;
}

/* Counts a poll, as heavy as it is: looking at many peers takes longer. 1 = enough of them, or time to look at the
 * clock. */
static int polled_enough(const struct rnl_endpoint *ep, struct rnl_idle *w)
{
    uint32_t before = w->polls;
    w->polls += 1 + ep->hot_count / PEERS_PER_POLL + (ep->remote ? POLLS_PER_RECEIVE : 0);
    if (w->yields == PARKED || w->polls >= ep->spin)
        return 1;
    return w->deadline_ns != UINT64_MAX && (before == 0 || before / POLLS_PER_CLOCK != w->polls / POLLS_PER_CLOCK);
}

int rnl_ep_idle(struct rnl_endpoint *ep, struct rnl_idle *w)
{
    if (RNL_UNLIKELY(ep->gave_way))
        judge(ep);
    if (!polled_enough(ep, w)) {
        rnl_ep_relax(ep);
        return 0;
    }
    struct rnl_env *env = ep->env;
    uint64_t now = env->ops->now_ns(env);
    if (now - ep->tidied_ns >= TIDY_EVERY_NS) {
        ep->tidied_ns = now;
        tidy(ep);
        rnl_ep_round(ep, now);
    }
    if (now >= w->deadline_ns)
        return RNL_TIMED_OUT;
    if (w->yields != PARKED) {
        if (w->polls < ep->spin)
            return 0;
        w->polls = 0;
        w->yields += 1 + ep->spin / POLLS_AS_YIELD;
        int locked = let_go(ep); /* other threads get their turn */
        uint64_t away = env->ops->yield(env);
        if (locked)
            pthread_mutex_lock(&ep->lock);
        gave_way(ep, away);
        if (w->yields <= YIELDS_BEFORE_SLEEP)
            return 0;
    }
    w->polls = 0;
    /* Woken: a few more looks, then sleep again. Slept for nothing: one look. */
    w->yields = sleep_until(ep, w, now) ? YIELDS_BEFORE_SLEEP - 4 : PARKED;
    return 0;
}

/* Extracts in vain, many in a row or the first after giving way. */
static RNL_NOINLINE void often_empty(struct rnl_endpoint *ep)
{
    if (ep->gave_way)
        judge(ep);
    uint32_t enough = ep->spin > EMPTIES_MIN ? ep->spin : EMPTIES_MIN;
    ep->untidied += ep->empties < EMPTIES_TIDY ? ep->empties : EMPTIES_TIDY;
    if (ep->untidied >= EMPTIES_TIDY)
        rnl_ep_round(ep, ep->env->ops->now_ns(ep->env));
    if (ep->empties >= enough) {
        ep->empties = 0;
        if (ep->untidied >= EMPTIES_TIDY) {
            ep->untidied = 0;
            tidy(ep);
            rnl_ep_news_slow(ep);
        }
        int locked = let_go(ep); /* else the threads that give way is for cannot go on */
        uint64_t away = ep->env->ops->yield(ep->env);
        if (locked)
            pthread_mutex_lock(&ep->lock);
        gave_way(ep, away);
    }
    uint32_t next = ep->empties + EMPTIES_TIDY;
    ep->empties_enough = ep->gave_way ? 1 : next < enough ? next : enough;
}

/* The descriptor has to be readable by then. */
static void readable_by(struct rnl_endpoint *ep, uint64_t ns)
{
    ep->fd_until_ns = ns;
    ep->env->ops->fd_until(ep->env, ns);
}

static RNL_NOINLINE void arm_fd(struct rnl_endpoint *ep)
{
    /* Armed already, and nobody rang since: the descriptor is as it should be. */
    uint32_t word = atomic_load_explicit(&ep->env->bell->word, memory_order_acquire);
    uint64_t now = ep->env->ops->now_ns(ep->env);
    if (!ep->fd_armed || word != ep->fd_word || now >= ep->fd_until_ns) {
        if (ep->fd_armed && now >= ep->fd_until_ns) { /* what a lost hint hid, if there was one */
            rnl_ep_news_slow(ep);
            rnl_ep_join_wanted(ep);
        }
        readable_by(ep, now + (ep->env->facts.have_membarrier ? SLEEP_NS : SLEEP_UNFENCED_NS));
        ep->env->ops->fd_drain(ep->env);
        ep->fd_word = word; /* from before the look: a ring meanwhile raises the descriptor again */
        ep->fd_armed = 1;
        rnl_ep_chores(ep);
        if (arm_and_look(ep, NULL))
            rnl_ep_busy(ep);
    }
    if (ep->fd_armed && ep->by_fd) { /* what came moves times, too */
        uint64_t due = rnl_remote_deadline(ep);
        if (!rnl_remote_drained(ep))
            rnl_ep_busy(ep);
        else if (due < ep->fd_until_ns)
            readable_by(ep, due);
    }
}

int rnl_ep_empty(struct rnl_endpoint *ep)
{
    if (ep->fd_mode)
        arm_fd(ep);
    if (RNL_UNLIKELY(ep->remote != NULL) && rnl_remote_time(ep))
        rnl_remote_soon(ep); /* to ask the network is a gap, too */
    else
        rnl_ep_relax(ep);
    if (RNL_UNLIKELY(++ep->empties >= ep->empties_enough))
        often_empty(ep);
    return 0;
}

void rnl_ep_busy(struct rnl_endpoint *ep)
{
    if (!ep->fd_armed)
        return;
    ep->fd_armed = 0;
    rnl_ep_chores(ep);
    rnl_ep_arm_all(ep);
    ep->env->ops->fd_raise(ep->env, ep->rank); /* stays readable until an extract finds nothing */
}

void rnl_ep_look_again(struct rnl_endpoint *ep)
{
    struct rnl_env *env = ep->env;
    rnl_ep_busy(ep);
    if (ep->asleep) {
        atomic_fetch_add_explicit(&env->bell->word, 1, memory_order_release);
        env->ops->wake(env, &env->bell->word);
        if (ep->by_fd)
            env->ops->fd_raise(env, ep->rank);
    }
}

int rnl_ep_fd(struct rnl_endpoint *ep)
{
    int fd = ep->env->ops->fd(ep->env);
    if (fd < 0 || ep->fd_mode)
        return fd;
    if (ep->by_fd) {
        int status = ep->env->ops->fd_watch(ep->env, rnl_remote_fd(ep));
        if (status < 0)
            return status;
    }
    ep->fd_mode = 1;
    ep->fd_armed = 0;
    rnl_ep_chores(ep);
    ep->env->ops->fd_raise(ep->env, ep->rank); /* readable until the first extract finds nothing */
    return fd;
}
