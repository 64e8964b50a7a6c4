/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cold.c - which connections are polled. One on which nothing has come for a while is cooled: armed, and found again
 * through the bell. So what an extract costs depends on how many peers send, not on how many are connected.
 *
 * Cooling is the handshake of going to sleep (wait.c), for some rings only: arm, a heavy fence, look. A sender that
 * published before the fence is seen by the look; one after it sees `armed` and rings, at each line: who rings late may
 * ring for a line that was taken before the fence. bell_seen is read before each look at all cold rings, never after.
 * tests/model/sleep_wake.pml, COLD.
 *
 * Connections to other hosts need none of this: what comes for them comes through our own hands (link.c), and makes
 * them hot. Where there are many, those that an extract has emptied are quiet: nobody looks at them at all.
 *
 *     hot[]   0 ... hot_count   ... cold_end        ... live
 *             hot               cold: armed         quiet: of other hosts
 *
 * The bell is a hint, since every process of the job can write it. A ring that it hid is found by the next round; and
 * one that rings for nothing is not listened to until then. */
#include "endpoint/endpoint.h"
#include "endpoint/remote.h"

#define ROUND_NS ((uint64_t)1000 * 1000)
enum {
    PATIENCE_MIN = 3, /* rounds without a message before a connection is cooled... */
    PATIENCE_MAX = 1024,
    SOON = 8,           /* ...doubled if it is hot again within so many times as many rounds */
    COOL_WAIT_MAX = 64, /* rounds between two heavy fences, doubled each time: they disturb every process of the job */
    VAIN_MAX = 16       /* looks in a round, one after the other, for a bell that was rung for nothing */
};

static int cold(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return conn->hot_index >= ep->hot_count;
}

static void place(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t i)
{
    ep->hot[i] = conn;
    conn->hot_index = i;
}

/* hot[from] is to lie at `to`, behind it, whose place is free. */
static void move(struct rnl_endpoint *ep, uint32_t from, uint32_t to)
{
    if (from != to)
        place(ep, ep->hot[from], to);
}

static void swap(struct rnl_endpoint *ep, uint32_t i, uint32_t k)
{
    struct rnl_conn *other = ep->hot[i];
    place(ep, ep->hot[k], i);
    place(ep, other, k);
}

/* ---- arming ---- */

/* Somebody asleep waits for room of this peer. */
static int room_wanted(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    const struct rnl_idle *w = ep->asleep;
    while (w && w->room != conn)
        w = w->next;
    return w != NULL;
}

static int needs_room(const struct rnl_endpoint *ep, const struct rnl_conn *conn)
{
    return ep->closing || conn->post_first || conn->wants_room || conn->stuck[0] == RNL_STUCK_ANSWER ||
           room_wanted(ep, conn);
}

void rnl_ep_arm(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    uint32_t how = ep->fd_armed || (ep->asleep && ep->by_fd) ? RNL_ARMED_FD : 0;
    how |= ep->asleep && !ep->by_fd ? RNL_ARMED_WAKE : 0;
    if (how)
        how |= RNL_ARMED_LINES | (needs_room(ep, conn) ? RNL_ARMED_ROOM : 0);
    if (cold(ep, conn))
        how |= RNL_ARMED_LINES | RNL_ARMED_COLD;
    rnl_pair_arm(&conn->pair, how); /* F1 */
}

void rnl_ep_arm_all(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->cold_end; i++)
        rnl_ep_arm(ep, ep->hot[i]);
}

/* ---- which are hot ---- */

/* Before the cold rings are looked at: a ring that comes meanwhile is seen by the next extract. */
static void listen(struct rnl_endpoint *ep)
{
    const struct rnl_bell *bell = ep->env->bell;
    ep->bell_seen = atomic_load_explicit(&bell->word, memory_order_acquire); /* pairs with rnl_ep_ring_bell */
    ep->bell = &bell->word;
}

void rnl_ep_set_only(struct rnl_endpoint *ep)
{
    const struct rnl_conn lane1 = {.lane1_hot = 1};
    ep->alone = ep->hot_count == 1 && !(ep->hot[0]->odd & ~lane1.odd) ? ep->hot[0] : NULL;
    ep->only = ep->alone && !ep->alone->odd ? ep->alone : NULL;
}

static void be_deaf(struct rnl_endpoint *ep)
{
    atomic_store_explicit(&ep->deaf, ep->bell_seen, memory_order_relaxed);
    ep->bell = &ep->deaf;
}

void rnl_ep_add_hot(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    uint32_t i = ep->hot_count++, end = ep->cold_end++;
    conn->patience = PATIENCE_MIN;
    move(ep, end, ep->live++);
    move(ep, i, end);
    place(ep, conn, i);
    rnl_ep_set_only(ep);
    rnl_ep_arm(ep, conn);
    rnl_ep_look_again(ep); /* what it sent before that, it did not announce */
}

void rnl_ep_remove_hot(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    ep->moved += rnl_ep_positions(conn);
    uint32_t hole = --ep->hot_count, end = --ep->cold_end;
    place(ep, ep->hot[hole], conn->hot_index);
    move(ep, end, hole);
    move(ep, --ep->live, end);
    if (ep->turn >= ep->hot_count)
        ep->turn = 0;
    rnl_ep_set_only(ep);
}

void rnl_ep_warm(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    if (!cold(ep, conn))
        return;
    if (conn->hot_index >= ep->cold_end) { /* it was quiet */
        swap(ep, conn->hot_index, ep->cold_end++);
        swap(ep, conn->hot_index, ep->hot_count++);
        rnl_ep_set_only(ep);
        return;
    }
    swap(ep, conn->hot_index, ep->hot_count++);
    rnl_ep_set_only(ep);
    ep->c->warmed++;
    conn->still = 0;
    if (ep->rounds - conn->cooled_round > (uint32_t)conn->patience * SOON)
        conn->patience = PATIENCE_MIN;
    else if (conn->patience < PATIENCE_MAX)
        conn->patience *= 2;
    rnl_ep_arm(ep, conn);
    if (ep->hot_count == ep->cold_end)
        be_deaf(ep);
}

int rnl_ep_has_lines(struct rnl_conn *conn)
{
    if (!conn->stuck[0] && rnl_rx_peek(&conn->pair.rx[0]))
        return 1;
    return conn->lane1_hot && !conn->stuck[1] && rnl_rx_peek(&conn->pair.rx[1]) != 0;
}

uint32_t rnl_ep_look_cold(struct rnl_endpoint *ep)
{
    uint32_t before = ep->hot_count;
    if (before == ep->cold_end)
        return 0;
    listen(ep);
    for (uint32_t i = before; i < ep->cold_end; i++)
        if (rnl_ep_has_lines(ep->hot[i]))
            rnl_ep_warm(ep, ep->hot[i]); /* whoever takes its place has been looked at */
    return ep->hot_count - before;
}

void rnl_ep_heard_slow(struct rnl_endpoint *ep)
{
    uint32_t found = rnl_ep_look_cold(ep);
    if (ep->fd_armed || ep->asleep)
        return; /* it may have been for a hot ring: those announce themselves, too */
    ep->vain = found ? 0 : ep->vain + 1;
    if (ep->vain >= VAIN_MAX)
        be_deaf(ep);
}

/* ---- rounds ---- */

/* Nothing is under way that an extract has to look after. */
static int needs_no_look(const struct rnl_conn *conn)
{
    const struct rnl_conn lane1 = {.lane1_hot = 1};
    return !(conn->odd & ~lane1.odd) && !conn->dying && conn->in[0].state == RNL_STREAM_FREE &&
           conn->in[1].state == RNL_STREAM_FREE;
}

/* ... and nothing has come. */
static int may_cool(const struct rnl_conn *conn)
{
    return conn->still >= conn->patience && !conn->link && !conn->post_first && !conn->wants_room &&
           needs_no_look(conn);
}

void rnl_ep_quieten(struct rnl_endpoint *ep)
{
    for (uint32_t i = ep->hot_count; i-- > 0;) {
        struct rnl_conn *conn = ep->hot[i];
        if (!conn->link || !needs_no_look(conn) || rnl_rx_peek(&conn->pair.rx[0]) || rnl_rx_peek(&conn->pair.rx[1]))
            continue;
        swap(ep, i, --ep->hot_count); /* who takes its place has been looked at */
        swap(ep, ep->hot_count, --ep->cold_end);
    }
    if (ep->turn >= ep->hot_count)
        ep->turn = 0;
    rnl_ep_set_only(ep);
}

static void note_still(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->hot_count; i++) {
        struct rnl_conn *conn = ep->hot[i];
        uint64_t at = conn->pair.rx[0].pos + conn->pair.rx[1].pos;
        conn->still = at != conn->still_at ? 0 : conn->still < UINT16_MAX ? conn->still + 1 : UINT16_MAX;
        conn->still_at = at;
    }
}

/* The least still ones come first. */
static void prefer(struct rnl_endpoint *ep)
{
    for (uint32_t k = 0; k < RNL_HOT_ALWAYS && k < ep->hot_count; k++) {
        uint32_t least = k;
        for (uint32_t i = k + 1; i < ep->hot_count; i++)
            if (ep->hot[i]->still < ep->hot[least]->still)
                least = i;
        swap(ep, k, least);
    }
}

static void cool(struct rnl_endpoint *ep)
{
    uint32_t first = ep->hot_count, all = first;
    prefer(ep);
    for (uint32_t i = all; i-- > RNL_HOT_ALWAYS;)
        if (may_cool(ep->hot[i]))
            swap(ep, i, --first); /* what was there has been asked */
    if (first == all) {
        ep->cool_wait -= ep->cool_wait > 1;
        return;
    }
    ep->cool_next = ep->rounds + ep->cool_wait;
    ep->cool_wait = ep->cool_wait < COOL_WAIT_MAX / 2 ? 2 * ep->cool_wait + 1 : COOL_WAIT_MAX;
    ep->hot_count = first;
    if (ep->turn >= first)
        ep->turn = 0;
    rnl_ep_set_only(ep);
    for (uint32_t i = first; i < all; i++) {
        rnl_ep_tell(ep, ep->hot[i]);
        ep->hot[i]->cooled_round = ep->rounds;
        rnl_ep_arm(ep, ep->hot[i]);
    }
    rnl_ep_fence(ep);
    ep->c->cooled += all - first;
    (void)rnl_ep_look_cold(ep);
}

void rnl_ep_round(struct rnl_endpoint *ep, uint64_t now_ns)
{
    if (ep->due) {
        ep->due = 0;
        rnl_ep_chores(ep);
    }
    if (ep->cold_end <= RNL_HOT_ALWAYS && ep->hot_count == ep->cold_end)
        return;
    if (now_ns - ep->round_ns < ROUND_NS)
        return;
    ep->round_ns = now_ns;
    ep->rounds++;
    ep->vain = 0;
    (void)rnl_ep_look_cold(ep);
    note_still(ep);
    if ((int32_t)(ep->rounds - ep->cool_next) >= 0)
        cool(ep);
}

void rnl_ep_round_due(struct rnl_endpoint *ep)
{
    if (ep->remote)
        rnl_remote_soon(ep);
    ep->tolds = 0;
    int news = atomic_load_explicit(ep->news, memory_order_relaxed) != ep->news_seen;
    if (news || ((ep->cold_end > RNL_HOT_ALWAYS || ep->hot_count < ep->cold_end) &&
                 ep->env->ops->now_ns(ep->env) - ep->round_ns >= ROUND_NS)) {
        ep->due = 1;
        rnl_ep_chores(ep);
    }
}
