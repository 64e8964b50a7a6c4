/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stripe.c - striping: a peer that has several addresses gets its long messages over several paths at once, by one flow
 * for each. Flow 0 is that of every connection and moves from path to path (paths.c). Further flows have keys, numbers,
 * round trips, windows and losses of their own, and stay on one path each; so a slow or lossy path is felt by its own
 * flow alone, and acknowledgements come back the way that the packets went.
 *
 * All flows take from one replica, whose frames may arrive in any order: it is the replica that restores the order.
 * One flow leads. It sends cells, replies, credit words and what was lost. The others take stretches of the bulk area
 * of lane 0, while the backlog would keep the leading flow busy for longer than they need. So they never have the end
 * of a message, and a short message never waits for them. Flow 0 leads, unless it is cut off, or another has less than
 * half of its round trip.
 *
 * A path is at fault when its flow gets no answer while the peer is heard on another: then its content goes by the
 * others at once. Afterwards its flow asks now and then, while there is a backlog, whether the path works again. When
 * flow 0 moves to the path of another, that one leads until something of flow 0 is acknowledged there.
 *
 * The process with the lower rank decides which path a further flow takes; the other one sends to where it came from.
 * What a process has to send is striped if env->stripe is set; what comes is taken in either case. */
#include "base/sometimes.h"
#include "remote/remote_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    BACKLOG = 64 << 10, /* bytes of bulk area from which on further flows are begun, and cut ones tried again */
    STRETCH = 32 << 10, /* most bytes that a flow takes at a time; an area of 2 MiB then has few gaps */
    LEAST = 4 << 10,    /* fewer are not worth another path */
    TRIES = 3           /* timeouts after which a path that does not answer is left alone for a while */
};
static const uint64_t first_gap_ns = (uint64_t)50 * 1000 * 1000, most_gap_ns = (uint64_t)4000 * 1000 * 1000;

static struct rnl_flow *flow_of(struct rnl_remote_conn *rc, unsigned number)
{
    return number ? &rc->paths->stripe[number - 1]->flow : &rc->flow;
}

static struct rnl_remote_stripe *stripe_of(const struct rnl_remote_conn *rc, unsigned number)
{
    return number && rc->paths && number < RNL_FLOW_PATHS_MAX ? rc->paths->stripe[number - 1] : NULL;
}

/* ---- what a flow may take ---- */

/* Returns how many bytes a flow that does not lead may take now. */
static uint32_t share(struct rnl_remote_conn *rc, const struct rnl_flow *f)
{
    uint64_t backlog = rnl_replica_bulk_backlog(rc->replica), most = backlog / 2 < STRETCH ? backlog / 2 : STRETCH;
    if (backlog && !f->timeouts && RNL_BUGGIFY("a flow takes what another would deliver sooner"))
        return STRETCH;
    if (most < LEAST || f->timeouts ||
        rnl_flow_takes_ns(f, most) > rnl_flow_takes_ns(flow_of(rc, rc->paths->lead), backlog))
        return 0;
    return (uint32_t)most;
}

uint32_t rnl_remote_stripe_fill(struct rnl_remote_conn *rc, unsigned number, unsigned char *at, uint32_t room,
                                struct rnl_flow_note *notes, unsigned *count)
{
    struct rnl_remote_paths *w = rc->paths;
    uint32_t used = number == 0 ? rnl_replica_emit_falling(rc->replica, at, room, notes, count) : 0;
    if (used)
        return used;
    if (number == w->lead) {
        used = rnl_replica_emit_rising(rc->replica, at, room, notes, count);
        if (rc->replica->emitted_all)
            rnl_flow_no_more_data(flow_of(rc, number));
        return used;
    }
    const struct rnl_remote_stripe *s = stripe_of(rc, number);
    return !s || s->works ? rnl_replica_emit_stretch(rc->replica, &w->own[number], share(rc, flow_of(rc, number)), at,
                                                     room, notes, count)
                          : 0;
}

/* ---- the flow's operations ---- */

static uint32_t fill(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count)
{
    struct rnl_remote_stripe *s = ctx;
    *count = 0;
    return s->rc->replica ? rnl_remote_stripe_fill(s->rc, s->flow.number, at, room, notes, count) : 0;
}

static void acked(void *ctx, const struct rnl_flow_note *note)
{
    const struct rnl_remote_stripe *s = ctx;
    if (s->rc->replica)
        rnl_replica_acked(s->rc->replica, note);
}

static void lost(void *ctx, const struct rnl_flow_note *note)
{
    const struct rnl_remote_stripe *s = ctx;
    if (!s->rc->replica)
        return;
    rnl_replica_lost(s->rc->replica, note);
    rnl_flow_has_data(flow_of(s->rc, s->rc->paths->lead));
}

/* Words that may fall do not come this way from an honest peer; those of another do not count as new (take_words). */
static int frames(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    const struct rnl_remote_stripe *s = ctx;
    (void)number;
    return rnl_remote_frames(s->rc, at, bytes, 0);
}

static uint32_t window(void *ctx)
{
    const struct rnl_remote_stripe *s = ctx;
    return rnl_remote_window(s->rc, &s->flow);
}

static const struct rnl_flow_ops flow_ops = {.fill = fill,
                                             .acked = acked,
                                             .lost = lost,
                                             .frames = frames,
                                             .alloc = rnl_remote_take_memory,
                                             .free = rnl_remote_give_memory,
                                             .window = window};

/* ---- the transport, as such a flow sees it ---- */

static uint32_t port_mtu(void *ctx)
{
    const struct rnl_remote_stripe *s = ctx;
    struct rnl_transport *t = s->rc->remote->t;
    return t->ops->mtu(t, s->rc->rank);
}

static int port_reserve(void *ctx, uint32_t bytes, struct rnl_room *room, int most)
{
    const struct rnl_remote_stripe *s = ctx;
    struct rnl_transport *t = s->rc->remote->t;
    return t->ops->reserve(t, s->rc->rank, bytes, room, most);
}

static void port_commit(void *ctx, const struct rnl_room *room, const uint32_t *used, int n, bool ecn, uint64_t now_ns)
{
    const struct rnl_remote_stripe *s = ctx;
    struct rnl_transport *t = s->rc->remote->t;
    (void)t->ops->commit_on_path(t, s->rc->rank, s->path, room, used, n, ecn, now_ns);
}

static void port_flush(void *ctx, uint64_t now_ns)
{
    const struct rnl_remote_stripe *s = ctx;
    struct rnl_transport *t = s->rc->remote->t;
    (void)t->ops->flush(t, now_ns);
}

static const struct rnl_flow_port port = {
    .mtu = port_mtu, .reserve = port_reserve, .commit = port_commit, .flush = port_flush};

/* ---- beginning and end ---- */

void rnl_remote_stripes_keys(struct rnl_remote_conn *rc, const struct rnl_hs_made *made)
{
    struct rnl_remote_paths *w = rc->paths;
    if (!w)
        return;
    w->made = *made;
    rnl_flow_key(w->made.tx, made->tx, 0); /* not the key of flow 0, from which those of its later phases follow */
    rnl_flow_key(w->made.rx, made->rx, 0);
}

void rnl_remote_stripes_end(struct rnl_remote_conn *rc)
{
    struct rnl_remote_paths *w = rc->paths;
    if (!w)
        return;
    for (unsigned k = 0; k < RNL_FLOW_PATHS_MAX - 1; k++) {
        if (w->stripe[k])
            rnl_flow_fini(&w->stripe[k]->flow);
        free(w->stripe[k]);
        w->stripe[k] = NULL;
    }
    w->stripes = w->lead = w->moved_from = 0;
    memset(w->own, 0, sizeof w->own);
    rnl_wipe(&w->made, sizeof w->made);
}

static struct rnl_remote_stripe *begin(struct rnl_remote_conn *rc, unsigned number, unsigned path, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    const struct rnl_hs_made *made = &w->made;
    struct rnl_remote_stripe *s = calloc(1, sizeof *s);
    unsigned char tx[RNL_KEY_BYTES], rx[RNL_KEY_BYTES];
    struct rnl_keys keys;
    if (!s)
        return NULL; /* the other flows do without it */
    rnl_flow_key(tx, made->tx, number);
    rnl_flow_key(rx, made->rx, number);
    rnl_keys_init(&keys, made->suite, tx, rx, &rc->remote->limits);
    s->rc = rc;
    s->path = (uint8_t)path;
    s->gap_ns = first_gap_ns;
    const struct rnl_flow_setup setup = {.config = rc->flow.config,
                                         .ops = &flow_ops,
                                         .path = &s->way,
                                         .count = rc->remote->count,
                                         .ctx = s,
                                         .connection = made->tx_connection,
                                         .number = (uint8_t)number,
                                         .window_bytes = made->window_bytes / 2,
                                         .mtu_bytes = made->mtu_bytes,
                                         .peer_ack_delay_ns = made->ack_delay_ns,
                                         .sealer = &rc->remote->sealer,
                                         .keys = &keys};
    rnl_flow_init(&s->flow, &setup, now_ns);
    rnl_keys_wipe(&keys);
    rnl_wipe(tx, sizeof tx);
    rnl_wipe(rx, sizeof rx);
    w->stripe[number - 1] = s;
    w->stripes++;
    return s;
}

struct rnl_flow *rnl_remote_flow(struct rnl_remote_conn *rc, unsigned number, const struct rnl_view *v, uint64_t now_ns)
{
    if (RNL_LIKELY(number == 0))
        return &rc->flow;
    struct rnl_remote_stripe *s = stripe_of(rc, number);
    if (!s && rc->paths && number < rc->paths->set.count) {
        int path = rnl_remote_path_of(rc, v);
        s = path < 0 ? NULL : begin(rc, number, (unsigned)path, now_ns);
    }
    return s ? &s->flow : NULL;
}

void rnl_remote_heard(struct rnl_remote_conn *rc, unsigned number, const struct rnl_view *v, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    struct rnl_remote_stripe *s = stripe_of(rc, number);
    if (!w || number >= RNL_FLOW_PATHS_MAX)
        return;
    w->heard_ns[number] = now_ns;
    if (!s)
        return;
    int path = rc->remote->env->rank < rc->rank ? -1
               : v->flags & RNL_VIEW_ASIDE      ? rnl_remote_path_of(rc, v)
                                                : w->set.active;
    if (path >= 0)
        s->path = (uint8_t)path;
    if (rnl_flow_acked(&s->flow) <= s->acked)
        return;
    RNL_SOMETIMES(s->acked && !s->works, "a path of a further flow works again");
    s->acked = rnl_flow_acked(&s->flow);
    s->works = 1;
    s->gap_ns = first_gap_ns;
}

/* ---- which flows work, and which one leads ---- */

static uint64_t heard_elsewhere_ns(const struct rnl_remote_paths *w, unsigned number)
{
    uint64_t last = 0;
    for (unsigned k = 0; k < w->set.count; k++)
        if (k != number && w->heard_ns[k] > last)
            last = w->heard_ns[k];
    return last;
}

/* What this flow has not delivered goes by the others. */
static void leave(struct rnl_remote_conn *rc, unsigned number)
{
    struct rnl_remote_stripe *s = stripe_of(rc, number);
    RNL_SOMETIMES(1, "the content of a flow goes by others");
    if (s)
        s->works = 0;
    rnl_flow_hand_over(flow_of(rc, number));
    if (rc->replica)
        rnl_replica_give_back(rc->replica, &rc->paths->own[number]);
}

/* The path does not answer: what is in flight there is forgotten, and it is tried again later. */
static void rest(struct rnl_remote_stripe *s, uint64_t now_ns)
{
    uint64_t trip_ns = s->flow.rtt.smoothed_ns ? s->flow.rtt.smoothed_ns : s->flow.config->first_pto_ns;
    rnl_flow_migrate(&s->flow, trip_ns, now_ns);
    s->flow.ping = s->flow.wanted = 0;
    s->retry_ns = now_ns + s->gap_ns;
    s->gap_ns = 2 * s->gap_ns < most_gap_ns ? 2 * s->gap_ns : most_gap_ns;
}

static void look_at_stripe(struct rnl_remote_conn *rc, unsigned number, bool busy, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    struct rnl_remote_stripe *s = w->stripe[number - 1];
    const bool down = w->set.down >> s->path & 1;
    if (s->works && (down || rnl_flow_is_cut(&s->flow, heard_elsewhere_ns(w, number))))
        leave(rc, number);
    if (s->works) {
        if (rc->flow.timeouts) /* is it the peer that is silent, or its path? */
            rnl_flow_ping(&s->flow);
        return;
    }
    if (s->flow.timeouts >= TRIES)
        rest(s, now_ns);
    else if (busy && !down && now_ns >= s->retry_ns)
        rnl_flow_ping(&s->flow);
}

static unsigned leading(struct rnl_remote_conn *rc)
{
    struct rnl_remote_paths *w = rc->paths;
    bool is_cut = w->moved_from || rnl_flow_is_cut(&rc->flow, heard_elsewhere_ns(w, 0));
    uint64_t trip_ns = is_cut ? UINT64_MAX : rc->flow.rtt.smoothed_ns / 2;
    unsigned lead = 0;
    for (unsigned k = 1; k < RNL_FLOW_PATHS_MAX; k++) {
        const struct rnl_remote_stripe *s = w->stripe[k - 1];
        if (!s || !s->works || s->flow.timeouts || s->flow.rtt.smoothed_ns >= trip_ns)
            continue;
        trip_ns = s->flow.rtt.smoothed_ns;
        lead = k;
    }
    if (is_cut && lead)
        leave(rc, 0);
    return lead;
}

/* Each flow but flow 0 takes a path of its own. */
static void begin_all(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    unsigned number = 1;
    for (unsigned path = 0; path < w->set.count; path++) {
        if (path == w->set.active)
            continue;
        if (!w->stripe[number - 1])
            (void)begin(rc, number, path, now_ns);
        number++;
    }
}

/* Flow 0 has moved to another path, where packets and acknowledgements arrive: a further flow there changes places with
 * it. */
static void change_places(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    for (unsigned k = 1; k < RNL_FLOW_PATHS_MAX && rc->remote->env->rank < rc->rank; k++) {
        struct rnl_remote_stripe *s = w->stripe[k - 1];
        if (!s || s->path != w->set.active)
            continue;
        leave(rc, k);
        s->path = (uint8_t)(w->moved_from - 1);
        rest(s, now_ns);
    }
    w->moved_from = 0;
    rnl_flow_has_data(&rc->flow);
}

void rnl_remote_stripes_step(struct rnl_remote_conn *rc, uint64_t now_ns)
{
    struct rnl_remote_paths *w = rc->paths;
    const bool stripes = rc->remote->env->stripe && rc->replica;
    const uint64_t backlog = stripes ? rnl_replica_bulk_backlog(rc->replica) : 0;
    const bool busy = backlog >= BACKLOG || (backlog && RNL_BUGGIFY("further flows are used for little"));
    if (busy && w->stripes + 1u < w->set.count)
        begin_all(rc, now_ns);
    if (w->moved_from && rnl_flow_acked(&rc->flow) >= w->moved_at)
        change_places(rc, now_ns);
    if (!w->stripes)
        return;
    rnl_remote_show(rc->remote, now_ns);
    for (unsigned k = 1; k < RNL_FLOW_PATHS_MAX; k++)
        if (w->stripe[k - 1])
            look_at_stripe(rc, k, busy, now_ns);
    w->lead = (uint8_t)(stripes ? leading(rc) : 0);
    if (rc->replica)
        rnl_replica_give_back(rc->replica, &w->own[w->lead]); /* as the leading flow it sends all that is left */
    if (stripes && (w->lead ? rnl_replica_pending(rc->replica) : rc->replica->lost_count > 0))
        rnl_flow_has_data(flow_of(rc, w->lead));
    for (unsigned k = 0; stripes && k < RNL_FLOW_PATHS_MAX; k++) {
        const struct rnl_remote_stripe *s = stripe_of(rc, k);
        if (k != w->lead && (s ? s->works : k == 0) &&
            (rnl_replica_wants(rc->replica, &w->own[k]) || share(rc, flow_of(rc, k))))
            rnl_flow_has_data(flow_of(rc, k));
    }
}

bool rnl_remote_stripes_turn(struct rnl_remote_conn *rc, bool flush, uint64_t now_ns, uint64_t *due_ns)
{
    const struct rnl_flow_want want = {.flush = flush};
    bool more = false;
    if (rc->paths->lead && rc->replica &&
        rnl_replica_pending(rc->replica)) /* flow 0 may have lost something just now */
        rnl_flow_has_data(flow_of(rc, rc->paths->lead));
    for (unsigned k = 0; k < RNL_FLOW_PATHS_MAX - 1; k++) {
        struct rnl_remote_stripe *s = rc->paths->stripe[k];
        if (!s)
            continue;
        uint64_t due = UINT64_MAX;
        more |= rnl_flow_turn(&s->flow, &port, &want, now_ns, &due);
        if (due < *due_ns)
            *due_ns = due;
    }
    uint64_t due = rnl_flow_deadline(&rc->flow); /* which may have got what was lost */
    if (due < *due_ns)
        *due_ns = due;
    return more;
}
