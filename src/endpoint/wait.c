/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait.c - how an endpoint waits: it spins a little, yields while that is enough, then sleeps. How long it spins is
 * learnt: a yield that took long means that somebody else needed this processor, one that returned at once that nobody
 * did. Where processes that do not yield have the processor, each yield takes a time slice of theirs: waits sleep at
 * once then, and a program that polls keeps the processor for a while, unless it shares it with peers.
 *
 * Sleeping is a handshake with senders that use no fence: arm every ring, issue a heavy fence, look at everything once
 * more, sleep. A sender that published before the fence is seen by the look; one that publishes after it sees `armed`
 * and rings (tests/model/sleep_wake.pml).
 *
 * With a socket that rings no bell (by_fd), an endpoint sleeps on descriptors instead of the bell's word: the
 * socket's, and its own, which peers of this host raise as they do for event loops. It drains its own before the
 * look, so the look sees what had raised it. */
#include "endpoint/endpoint.h"
#include "endpoint/net.h"
#include "endpoint/poll.h"

#if defined(__x86_64__) || defined(__i386__)
#define pause_once() __builtin_ia32_pause()
#else
#define pause_once() atomic_signal_fence(memory_order_seq_cst)
#endif

enum {
    SPIN_MAX = 4096,
    OTHERS_RAN_NS = 1500, /* ns: a yield longer than this, and than two in vain, let another process run */
    PEER_RAN_NS =
        600, /* ns: one longer than this, and than one and a half, with a message after it, let the peer run */
    HOGGED_NS = 1000000, /* ns: a yield longer than this let a process run that does not yield */
    HOGGED_WAITS = 250,  /* waits after that sleep instead: before such a process runs who is woken, not who yielded */
    STAYS_SKIPPED = 8,   /* after a stay that brought nothing so many such yields are followed by none */
    YIELDS_BEFORE_SLEEP = 100,
    PARKED = YIELDS_BEFORE_SLEEP + 1, /* value of rnl_idle.yields: the last sleep brought nothing */
    POLLS_AS_YIELD = 64,              /* polls that bring sleep as near as one yield does */
    EMPTY_POLLS_MIN = 2,              /* least number of empty extracts before yielding */
    EMPTY_POLLS_MAINTAIN = 64,        /* empty extracts before looking after credit, rounds and news */
    PEERS_PER_POLL = 8,               /* peers that can be looked at in the time of one poll */
    POLLS_PER_RECEIVE = 16,           /* polls that take as long as one poll of the network */
    POLLS_PER_CLOCK = 32
};
#define MAINTAIN_EVERY_NS ((uint64_t)100 * 1000)
#define SLEEP_NS          ((uint64_t)100 * 1000 * 1000) /* longest sleep, since a hint may be lost */
#define SLEEP_UNFENCED_NS ((uint64_t)1000 * 1000)       /* without a heavy fence wake-ups may be lost */

static bool is_woken(const struct rnl_endpoint *ep, const struct rnl_idle *w)
{
    return w->by_wake && atomic_load_explicit(&ep->wait.woken, memory_order_acquire) != 0; /* pairs with rnl_ep_wake */
}

void rnl_ep_wake(struct rnl_endpoint *ep)
{
    struct rnl_env *env = ep->env;
    atomic_store_explicit(&ep->wait.woken, 1, memory_order_release); /* pairs with the loads of a wait */
    env->ops->fd_raise(env, ep->rank);
    atomic_fetch_add_explicit(&env->bell->word, 1, memory_order_release); /* pairs with the load before park */
    env->ops->wake(env, &env->bell->word);
}

void rnl_ep_relax(const struct rnl_endpoint *ep)
{
    for (unsigned i = ep->wait.pauses; i > 0; i--)
        pause_once();
}

/* Lets others work on an endpoint that threads share, or that a thread serves. Returns what take_back is to be told. */
enum let_go { KEPT, UNLOCKED, LENT };
static enum let_go let_go(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(ep->turn.runs) && rnl_turn_is_threads(ep)) {
        rnl_turn_sleeps(ep);
        return LENT;
    }
    return ep->flags & (RNL_SHARED | RNL_EP_GUARDED) && pthread_mutex_unlock(&ep->lock) == 0 ? UNLOCKED : KEPT;
}

static void take_back(struct rnl_endpoint *ep, enum let_go how)
{
    if (how == LENT)
        rnl_turn_slept(ep);
    else if (how == UNLOCKED)
        pthread_mutex_lock(&ep->lock);
}

static bool reply_fits(struct rnl_conn *conn)
{
    struct rnl_tx *t = &conn->channel.tx[1];
    return rnl_tx_refresh(t, NULL, NULL) != 0 &&
           (conn->blocked_reply <= RNL_CELL_PAYLOAD || rnl_tx_reply_room(t, conn->blocked_reply) != 0);
}

/* Returns true if the peer has read on since the last call: a queued post may go, or the last bytes before a close have
 * arrived. */
static bool moved(struct rnl_conn *conn)
{
    const struct rnl_credit_words *words = &conn->channel.theirs->credit[0];
    uint64_t now =
        atomic_load_explicit(&words->position, memory_order_relaxed) +
        atomic_load_explicit(&words->bulk_read, memory_order_relaxed) +
        atomic_load_explicit(&words->granted, memory_order_relaxed); /* hints; what is used is loaded again */
    if (now == conn->credit_seen)
        return false;
    conn->credit_seen = now;
    return true;
}

/* Looks at the first `count` connections. */
static bool look_at(struct rnl_endpoint *ep, uint32_t count)
{
    if (atomic_load_explicit(ep->fast.event_seq, memory_order_relaxed) != ep->fast.event_seq_seen)
        return true;
    if (ep->work.calls && !rnl_turn_is_threads(ep)) /* they are the owner's */
        return true;
    if (ep->polls_windows && ep->window_ops->has(ep))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        struct rnl_conn *conn = ep->fast.conns[i];
        if (rnl_ep_has_cells(conn)) {
            rnl_ep_promote(ep, conn);
            return true;
        }
        if (conn->blocked[0] == RNL_BLOCKED_REPLY && reply_fits(conn))
            return true;
        if ((conn->post_first || conn->bulk_posts || conn->wants_room || ep->close.closing) && moved(conn))
            return true;
    }
    return false;
}

int rnl_ep_look(struct rnl_endpoint *ep)
{
    return look_at(ep, ep->poll.connected);
}

int rnl_ep_look_polled(struct rnl_endpoint *ep)
{
    rnl_ep_check_bell(ep);
    return look_at(ep, ep->fast.polled);
}

static int has_room(struct rnl_idle *w)
{
    struct rnl_tx *t;
    if (!w->room)
        return 0;
    if (w->room->gone || w->room->dying)
        return 1;
    t = &w->room->channel.tx[w->room_lane];
    if (rnl_tx_refresh(t, NULL, NULL) == 0)
        return 0;
    return w->bulk == 0 || rnl_tx_bulk_piece(t, w->bulk, w->bulk) != 0;
}

static void advertise_all(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->poll.connected; i++)
        rnl_ep_advertise(ep, ep->fast.conns[i]);
    if (ep->remote) {
        rnl_ep_net_maintain(ep);
        rnl_ep_net_send(ep);
    }
}

/* Arms, fences and looks. Returns 1 if something is there after all. */
static int arm_and_look(struct rnl_endpoint *ep, struct rnl_idle *w)
{
    rnl_ep_credit(ep);
    advertise_all(ep);
    rnl_ep_arm_all(ep);
    if (!rnl_ep_net_all(ep)) /* peers on other hosts do not write here */
        rnl_ep_fence(ep);
    if (ep->remote && rnl_ep_net_look(ep, ep->env->ops->now_ns(ep->env)))
        return 1;
    if (ep->polls_windows && ep->window_ops->arm(ep))
        return 1;
    return rnl_ep_look(ep) || (w && has_room(w));
}

/* Sleeps. Returns 1 if a descriptor is readable. How it sleeps was read before the endpoint was let go, since its owner
 * may open the endpoint of its windows meanwhile. */
static int park(struct rnl_endpoint *ep, bool by_fd, uint32_t word, uint64_t until_ns)
{
    struct rnl_env *env = ep->env;
    if (!by_fd) {
        env->ops->park(env, &env->bell->word, word, until_ns);
        return 0;
    }
    if (ep->wait.fd_mode && ep->wait.fd_until_ns < until_ns) /* else our own would be readable before */
        env->ops->fd_until(env, ep->wait.fd_until_ns = until_ns);
    return env->ops->park_on(env, ep->remote ? rnl_remote_fd(ep->remote) : -1, until_ns);
}

/* Sleeps unless a look finds something. Returns 1 if something is there, or somebody rang. */
static int sleep_until(struct rnl_endpoint *ep, struct rnl_idle *w, uint64_t now_ns)
{
    struct rnl_env *env = ep->env;
    if (ep->wait.by_fd)
        env->ops->fd_drain(env);
    uint32_t word = atomic_load_explicit(&env->bell->word, memory_order_acquire);
    w->next = ep->wait.asleep;
    ep->wait.asleep = w;
    int woken = arm_and_look(ep, w) || is_woken(ep, w); /* after the load of the bell, which rnl_wake rings */
    if (!woken) {
        uint64_t until = now_ns + (env->facts.have_membarrier ? SLEEP_NS : SLEEP_UNFENCED_NS);
        if (ep->remote && rnl_remote_deadline(ep->remote) < until)
            until = rnl_remote_deadline(ep->remote);
        ep->c->sleeps++;
        const bool by_fd = ep->wait.by_fd;
        rnl_ep_away(ep);
        enum let_go gone = let_go(ep);
        if (gone == KEPT)
            rnl_turn_parks(ep);
        woken = park(ep, by_fd, word, until < w->deadline_ns ? until : w->deadline_ns);
        if (gone == KEPT)
            rnl_turn_parked(ep);
        take_back(ep, gone);
        rnl_ep_back(ep);
        woken |= atomic_load_explicit(&env->bell->word, memory_order_relaxed) != word; /* else the time was up */
        if (ep->wait.by_fd && ep->remote)
            rnl_ep_net_soon(ep);
        (void)rnl_ep_look_armed(ep);
        if (!woken || env->facts.must_look) {
            rnl_ep_take_events_slow(ep); /* events themselves, not only the hint */
            rnl_ep_join_pending(ep);
        }
    }
    struct rnl_idle **at = &ep->wait.asleep;
    while (*at && *at != w) /* the owner has taken the thread's out, if it took its turn */
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    rnl_ep_arm_all(ep); /* others may still sleep */
    return woken;
}

void rnl_ep_round(struct rnl_endpoint *ep, uint64_t now_ns)
{
    if (ep->poll.round_due) {
        ep->poll.round_due = 0;
        rnl_ep_set_pending(ep);
    }
    if (ep->env->facts.must_look && now_ns - ep->poll.looked_ns >= RNL_LOOK_NS) {
        ep->poll.looked_ns = now_ns;
        rnl_ep_take_events_slow(ep);
    }
    uint32_t demoted = rnl_ep_demote(ep, now_ns);
    if (!demoted)
        return;
    for (uint32_t i = ep->fast.polled, end = i + demoted; i < end; i++)
        rnl_ep_advertise(ep, ep->fast.conns[i]);
    rnl_ep_fence(ep);
    (void)rnl_ep_look_armed(ep);
}

void rnl_ep_maintain(struct rnl_endpoint *ep)
{
    rnl_ep_credit(ep);
    rnl_ep_join_pending(ep);
    advertise_all(ep); /* a sender that must reserve much at once needs to know what is free */
}

static void spin_less(struct rnl_endpoint *ep)
{
    ep->wait.spin = ep->wait.spin > 2 ? ep->wait.spin / 2 : 1;
}

static uint64_t received(const struct rnl_endpoint *ep)
{
    return ep->c->messages_received + ep->c->bytes_received;
}

/* Notes how long a yield took. */
static void yielded(struct rnl_endpoint *ep, uint64_t away)
{
    /* Where system calls are slow, as in some virtual machines, a yield to nobody takes longer than these bounds. */
    uint64_t useless_ns = ep->env->facts.yield_ns;
    if (away < useless_ns)
        ep->env->facts.yield_ns = (uint32_t)(useless_ns = away);
    ep->c->yields++;
    ep->wait.yielded = away <= OTHERS_RAN_NS || away <= useless_ns * 2;
    ep->wait.yielded_at = away > PEER_RAN_NS && away > useless_ns * 3 / 2 ? received(ep) : UINT64_MAX;
    if (!ep->wait.yielded)
        spin_less(ep);
    if (away > HOGGED_NS) {
        ep->wait.hogged = HOGGED_WAITS;
        if (ep->poll.connected > ep->env->facts.cpus) { /* it may be a peer that had the processor, and works */
            ep->wait.stay_until_ns = 0;
        } else if (ep->wait.stays_skipped > 0) {
            ep->wait.stays_skipped--;
        } else {
            ep->wait.stay_until_ns = ep->env->ops->now_ns(ep->env) + away;
            ep->wait.stay_seen = UINT64_MAX;
        }
    }
}

/* Judges the last yield at the first empty poll after it: did it let the peer run that we wait for, or nobody? */
static void judge(struct rnl_endpoint *ep)
{
    ep->wait.yielded = 0;
    if (ep->wait.yielded_at != UINT64_MAX && received(ep) != ep->wait.yielded_at)
        spin_less(ep);
    else
        ep->wait.spin = ep->wait.spin < SPIN_MAX / 2 ? ep->wait.spin * 2 : SPIN_MAX;
}

static void yield(struct rnl_endpoint *ep)
{
    rnl_ep_away(ep);
    enum let_go gone = let_go(ep); /* the threads that this yields to may need it */
    uint64_t away = ep->env->ops->yield(ep->env);
    take_back(ep, gone);
    rnl_ep_back(ep);
    yielded(ep, away);
}

/* Counts a poll with its weight: looking at many peers takes longer. Returns true when there were enough, or when it is
 * time to look at the clock. */
static bool polled_enough(const struct rnl_endpoint *ep, struct rnl_idle *w)
{
    uint32_t before = w->polls;
    w->polls += 1 + ep->fast.polled / PEERS_PER_POLL + (ep->remote ? POLLS_PER_RECEIVE : 0);
    if (w->yields == PARKED || w->polls >= ep->wait.spin)
        return true;
    return w->deadline_ns != UINT64_MAX && (before == 0 || before / POLLS_PER_CLOCK != w->polls / POLLS_PER_CLOCK);
}

/* Lets other processes see what the call waits for, while it is away. */
static void show(struct rnl_endpoint *ep, struct rnl_idle *w, uint64_t now_ns)
{
    if (w->since_ns == 0)
        w->since_ns = now_ns;
    ep->c->wait_since_ns = w->since_ns;
    ep->c->wait_for = w->room             ? RNL_WAITS_ROOM
                      : ep->close.closing ? RNL_WAITS_CLOSE
                      : w->what           ? w->what
                                          : RNL_WAITS_OPERATION;
}

int rnl_ep_idle(struct rnl_endpoint *ep, struct rnl_idle *w)
{
    if (RNL_UNLIKELY(ep->wait.yielded))
        judge(ep);
    if (!polled_enough(ep, w)) {
        rnl_ep_relax(ep);
        return 0;
    }
    struct rnl_env *env = ep->env;
    uint64_t now = env->ops->now_ns(env);
    if (now - ep->wait.maintained_ns >= MAINTAIN_EVERY_NS) {
        ep->wait.maintained_ns = now;
        rnl_ep_maintain(ep);
        rnl_ep_round(ep, now);
    }
    if (is_woken(ep, w)) {
        atomic_store_explicit(&ep->wait.woken, 0, memory_order_relaxed);
        return RNL_INTERRUPTED;
    }
    if (now >= w->deadline_ns)
        return RNL_TIMED_OUT;
    if (w->yields != PARKED) {
        if (w->polls < ep->wait.spin)
            return 0;
        w->polls = 0;
        if (ep->wait.hogged) {
            ep->wait.hogged--;
        } else {
            w->yields += 1 + ep->wait.spin / POLLS_AS_YIELD;
            show(ep, w, now);
            yield(ep);
            if (!rnl_ep_forked(ep))
                ep->c->wait_for = RNL_WAITS_NOT;
            if (w->yields <= YIELDS_BEFORE_SLEEP)
                return 0;
        }
    }
    w->polls = 0;
    /* After a wake-up: a few more looks before the next sleep. After a sleep that brought nothing: one look. */
    show(ep, w, now);
    w->yields = sleep_until(ep, w, now) ? YIELDS_BEFORE_SLEEP - 4 : PARKED;
    if (!rnl_ep_forked(ep))
        ep->c->wait_for = RNL_WAITS_NOT;
    return 0;
}

/* Whether extracts keep the processor: as long as the last yield took, if that gave a time slice to another process.
 * While a peer waits for this very processor nothing comes; then it is given up again. */
static bool stays(struct rnl_endpoint *ep)
{
    if (ep->wait.stay_until_ns == 0)
        return false;
    if (ep->wait.stay_seen == UINT64_MAX) /* what came during the yield has been received */
        ep->wait.stay_seen = received(ep);
    if (ep->env->ops->now_ns(ep->env) < ep->wait.stay_until_ns)
        return true;
    ep->wait.stay_until_ns = 0;
    ep->wait.stays_skipped = received(ep) == ep->wait.stay_seen ? STAYS_SKIPPED : 0;
    return false;
}

/* Handles empty extracts: many in a row, or the first after a yield. */
static RNL_NOINLINE void often_empty(struct rnl_endpoint *ep, bool may_yield)
{
    if (ep->wait.yielded)
        judge(ep);
    uint32_t enough = ep->wait.spin > EMPTY_POLLS_MIN ? ep->wait.spin : EMPTY_POLLS_MIN;
    if (RNL_UNLIKELY(stays(ep))) {
        enough = enough > EMPTY_POLLS_MAINTAIN ? enough : EMPTY_POLLS_MAINTAIN;
        may_yield = false;
    }
    ep->wait.since_maintained +=
        ep->fast.empty_polls < EMPTY_POLLS_MAINTAIN ? ep->fast.empty_polls : EMPTY_POLLS_MAINTAIN;
    if (ep->wait.since_maintained >= EMPTY_POLLS_MAINTAIN)
        rnl_ep_round(ep, ep->env->ops->now_ns(ep->env));
    if (ep->fast.empty_polls >= enough) {
        ep->fast.empty_polls = 0;
        if (ep->wait.since_maintained >= EMPTY_POLLS_MAINTAIN) {
            ep->wait.since_maintained = 0;
            rnl_ep_maintain(ep);
            rnl_ep_take_events_slow(ep);
        }
        if (may_yield)
            yield(ep);
    }
    uint32_t next = ep->fast.empty_polls + EMPTY_POLLS_MAINTAIN;
    ep->wait.empty_polls_limit = ep->wait.yielded ? 1 : next < enough ? next : enough;
}

/* Makes the descriptor readable at that time. */
static void readable_by(struct rnl_endpoint *ep, uint64_t ns)
{
    ep->wait.fd_until_ns = ns;
    ep->env->ops->fd_until(ep->env, ns);
}

static RNL_NOINLINE void arm_fd(struct rnl_endpoint *ep)
{
    /* If it is armed already, and nobody rang since, the descriptor is as it should be. */
    uint32_t word = atomic_load_explicit(&ep->env->bell->word, memory_order_acquire);
    uint64_t now = ep->env->ops->now_ns(ep->env);
    if (!ep->wait.fd_armed || word != ep->wait.fd_word || now >= ep->wait.fd_until_ns) {
        if (ep->wait.fd_armed && now >= ep->wait.fd_until_ns) { /* a hint may have been lost */
            rnl_ep_take_events_slow(ep);
            rnl_ep_join_pending(ep);
        }
        readable_by(ep, now + (ep->env->facts.have_membarrier ? SLEEP_NS : SLEEP_UNFENCED_NS));
        ep->env->ops->fd_drain(ep->env);
        ep->wait.fd_word = word; /* loaded before the look: a later ring raises the descriptor again */
        ep->wait.fd_armed = 1;
        rnl_ep_set_pending(ep);
        if (arm_and_look(ep, NULL))
            rnl_ep_busy(ep);
    }
    if (ep->wait.fd_armed && ep->remote) { /* what came may have changed deadlines */
        uint64_t due = rnl_remote_deadline(ep->remote);
        if (!rnl_remote_drained(ep->remote))
            rnl_ep_busy(ep);
        else if (due < ep->wait.fd_until_ns)
            readable_by(ep, due);
    }
}

int rnl_ep_empty(struct rnl_endpoint *ep)
{
    if (ep->wait.fd_mode == RNL_FD_ALWAYS)
        arm_fd(ep);
    if (RNL_UNLIKELY(ep->remote) && rnl_ep_net_time(ep))
        rnl_ep_net_soon(ep); /* a poll of the network is a pause, too */
    else
        rnl_ep_relax(ep);
    if (RNL_UNLIKELY(++ep->fast.empty_polls >= ep->wait.empty_polls_limit))
        often_empty(ep, !(ep->flags & RNL_NO_YIELD));
    return 0;
}

void rnl_ep_looked(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(++ep->fast.empty_polls >= ep->wait.empty_polls_limit))
        often_empty(ep, false);
}

/* Makes the descriptor, if there is none yet. */
static int open_fd(struct rnl_endpoint *ep, enum rnl_fd_mode mode)
{
    int fd = ep->env->ops->fd(ep->env);
    if (fd < 0 || ep->wait.fd_mode >= mode)
        return fd;
    if (ep->wait.by_fd && ep->remote && ep->wait.fd_mode == RNL_FD_NONE) {
        int status = ep->env->ops->fd_watch(ep->env, rnl_remote_fd(ep->remote));
        if (status < 0)
            return status;
    }
    ep->wait.fd_mode = (uint8_t)mode;
    return fd;
}

int rnl_ep_fd(struct rnl_endpoint *ep)
{
    bool again = ep->wait.fd_mode == RNL_FD_ALWAYS;
    int fd = open_fd(ep, RNL_FD_ALWAYS);
    if (fd < 0 || again)
        return fd;
    ep->wait.fd_armed = 0;
    rnl_ep_set_pending(ep);
    ep->env->ops->fd_raise(ep->env, ep->rank); /* readable until the first extract finds nothing */
    return fd;
}

int rnl_ep_arm_fd(struct rnl_endpoint *ep, int *fd)
{
    int status = open_fd(ep, RNL_FD_ASKED);
    if (status < 0)
        return status;
    *fd = status;
    arm_fd(ep);
    return !ep->wait.fd_armed;
}
