/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.c - the public calls: which connection gets a datagram that came, and whose turn it is to send, and when. */
#include "remote/remote_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    POLLS = 4,           /* polls in one extract, at most, so that it comes to its handlers */
    TAKEN = 64 << 10,    /* bytes after which it polls no more: they are to be read while they are in the cache */
    BACKLOG = 64 << 10,  /* bytes of a full run of datagrams, whatever their size */
    RINGS_PER_LOOK = 16, /* publications between two looks at the backlog */
    FETCHED = 32         /* active connections above which they are not in the caches */
};

/* ---- prefetching ---- */

/* With many peers, all of a connection has left the caches when its turn comes. So its lines are fetched while others
 * have their turns, all at once and not each when it is needed; the pointers to them are fetched before. */
static void fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; at && i < bytes; i += RNL_CELL_BYTES)
        __builtin_prefetch((const char *)at + i);
}

/* Prefetches the connections of all senders of the packets. */
static void fetch_senders(const struct rnl_remote *r, const struct rnl_view *v, int n)
{
    const struct rnl_remote_conn *conn[RNL_REMOTE_POLL];
    int count = 0;
    if (r->active_count < FETCHED)
        return;
    for (int k = 0; k < n; k++)
        fetch(v[k].peer < r->env->size ? &r->conn[v[k].peer] : NULL, 1);
    for (int k = 0; k < n; k++) {
        const struct rnl_remote_conn *rc = v[k].peer < r->env->size ? r->conn[v[k].peer] : NULL;
        if (!rc || (count && conn[count - 1] == rc))
            continue;
        conn[count++] = rc;
        fetch(rc, sizeof *rc);
    }
    for (int k = 0; k < count; k++) {
        fetch(conn[k]->channel, sizeof *conn[k]->channel);
        fetch(conn[k]->replica, conn[k]->replica ? sizeof *conn[k]->replica : 0);
    }
}

/* ---- output ---- */

static void send_one(struct rnl_remote_conn *rc, uint64_t backlog, uint64_t now_ns, bool last)
{
    rc->scheduled = 0;
    if (rnl_remote_output(rc, backlog, now_ns, last))
        rnl_remote_schedule(rc, RNL_REMOTE_URGENT);
}

static const struct rnl_remote_conn *last_of(const struct rnl_remote *r)
{
    return r->first ? (const struct rnl_remote_conn *)(const void *)((const char *)r->last -
                                                                     offsetof(struct rnl_remote_conn, next))
                    : NULL;
}

static void send_at(struct rnl_remote *r, uint64_t now)
{
    r->sent_ns = now;
    while (r->heap_count && r->heap[0].due_ns <= now) {
        struct rnl_remote_conn *rc = r->heap[0].rc;
        rnl_remote_not_due(rc);
        rnl_remote_schedule(rc, RNL_REMOTE_URGENT);
    }
    r->deferred = r->urgent = 0;                     /* connections that are due have their turn now, too */
    const struct rnl_remote_conn *last = last_of(r); /* those scheduled again wait for the next call */
    for (struct rnl_remote_conn *rc = NULL; last && rc != last;) {
        rc = rnl_remote_dequeue(r);
        if (r->active_count >= FETCHED)
            fetch(r->first, sizeof *r->first);
        if (rc->scheduled)
            send_one(rc, 0, now, rc == last);
    }
    (void)r->t->ops->flush(r->t, now);
    if (r->active_count > r->active_few && r->activated > r->active_few / 4)
        rnl_remote_find_idle(r, now);
}

static void send_all(struct rnl_remote *r)
{
    if (r->first || r->heap_count)
        send_at(r, r->env->ops->now_ns(r->env));
}

unsigned rnl_remote_send(struct rnl_remote *r)
{
    send_all(r);
    return rnl_remote_result(r);
}

unsigned rnl_remote_send_after(struct rnl_remote *r)
{
    if (r->first || (r->heap_count && r->heap[0].due_ns <= r->received_ns) || r->active_count > r->active_few)
        send_at(r, r->sent_ns > r->received_ns ? r->sent_ns : r->received_ns); /* handlers may have sent since */
    else if (r->t->ops->deadline(r->t) <= r->received_ns)
        (void)r->t->ops->flush(r->t, r->received_ns);
    return rnl_remote_result(r);
}

unsigned rnl_remote_send_urgent(struct rnl_remote *r)
{
    r->deferred = r->first != NULL;
    if (r->urgent)
        return rnl_remote_send(r);
    if ((r->heap_count && r->heap[0].due_ns <= r->received_ns) || r->t->ops->deadline(r->t) <= r->received_ns)
        return rnl_remote_send_after(r); /* peers of this host may keep the endpoint busy for ever */
    return rnl_remote_result(r);
}

/* ---- input ---- */

static struct rnl_remote_conn *conn_of(const struct rnl_remote *r, uint32_t rank)
{
    return rank < r->env->size ? r->conn[rank] : NULL;
}

/* Answers a packet whose connection does not exist. Until it has a connection, the process of a restarted rank knows
 * only the peer's first address. */
static void stray(struct rnl_remote *r, const struct rnl_view *v, uint64_t now_ns)
{
    unsigned char out[RNL_UNKNOWN_BYTES];
    struct rnl_packet p;
    struct rnl_addr first;
    r->c->strays++;
    if (r->pair_keys) /* without a connection there is no key that the answer could be made with */
        return;
    if (rnl_packet_decode(v->at, v->bytes, &p) != RNL_PACKET_GOOD)
        return;
    uint32_t rank = rnl_hs_connection_rank(rnl_packet_connection(v->at, v->bytes));
    if (v->peer == RNL_PEER_STRANGER && !(rank < r->env->size && rnl_remote_is_of(r, rank, v, &first)))
        return;
    uint32_t bytes = rnl_hs_unknown(&r->hs, &p, now_ns, out, sizeof out);
    if (bytes)
        rnl_remote_reply(r, v, out, bytes, now_ns);
}

/* Answers a peer that goes on after we have ended the connection. The end was repeated while the flow ended; if nothing
 * of that arrived, the peer learns now that there is no connection. */
static void late(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns)
{
    if (rnl_flow_state(&rc->flow) >= RNL_FLOW_CLOSED)
        stray(rc->remote, v, now_ns);
}

/* Two endpoints may be introduced more than once, and all of these connections have one address. */
static bool shares_address(struct rnl_remote *r, const struct rnl_remote_conn *rc, const struct rnl_view *v)
{
    struct rnl_addr first;
    return r->pair_keys && rnl_remote_is_of(r, rc->rank, v, &first);
}

/* Takes in one packet. Returns true if it is to be kept, since it is a HELLO that waits for the endpoint. */
static bool take_in(struct rnl_remote *r, const struct rnl_view *v, uint64_t now_ns)
{
    uint32_t number = rnl_packet_connection(v->at, v->bytes), src, dst;
    if (rnl_hello_peek(v->at, v->bytes, &src, &dst))
        return rnl_remote_hello(r, conn_of(r, src), v, now_ns);
    struct rnl_packet p;
    if (v->bytes == RNL_UNKNOWN_BYTES && rnl_packet_decode(v->at, v->bytes, &p) == RNL_PACKET_GOOD &&
        p.type == RNL_PACKET_UNKNOWN) {
        struct rnl_remote_conn *rc = conn_of(r, v->peer);
        if (rc && rc->has_flow && !rc->closed && !r->pair_keys)
            rnl_remote_unknown(rc, v, now_ns);
        return false;
    }
    struct rnl_remote_conn *rc = conn_of(r, rnl_hs_connection_rank(number));
    bool there = rc && rc->has_flow && rc->hs.rx_connection == number;
    if (!there)
        stray(r, v, now_ns);
    else if (rc->rank != v->peer &&
             !shares_address(r, rc, v)) /* a replay: an UNKNOWN to the peer would end the connection */
        r->c->strays++;
    else if (rc->closed)
        late(rc, v, now_ns);
    else if (!rc->refused)
        rnl_remote_input(rc, v, now_ns);
    return false;
}

static void release(struct rnl_remote *r)
{
    if (r->views)
        r->t->ops->release(r->t, r->view, (int)r->views);
    r->views = 0;
    r->hellos = r->hello_next = 0;
}

/* Polls once. Returns how many packets came. */
static int poll_once(struct rnl_remote *r, uint64_t now)
{
    int n = r->t->ops->poll(r->t, r->view, RNL_REMOTE_POLL, now);
    if (n <= 0)
        return 0;
    r->views = (uint32_t)n;
    fetch_senders(r, r->view, n);
    for (int k = 0; k < n; k++)
        if (take_in(r, &r->view[k], now))
            r->hello[r->hellos++] = (uint8_t)k;
    if (!r->hellos)
        release(r);
    return n;
}

static void copy_frames(struct rnl_remote *r)
{
    const struct rnl_socket_frames *f = r->t->frames;
    r->c->frames_sent = f->sent;
    r->c->frames_received = f->received;
    r->c->frames_refused = f->refused;
}

static void receive(struct rnl_remote *r)
{
    if (r->hello_next < r->hellos) /* the endpoint has to take these events first */
        return;
    if (r->deferred)
        send_all(r);
    uint64_t now = r->env->ops->now_ns(r->env);
    int n = RNL_REMOTE_POLL;
    bool came = false;
    uint64_t enough = r->count->received_bytes + TAKEN;
    r->received_ns = now;
    r->receiving = 1;
    for (int i = 0; n == RNL_REMOTE_POLL && i < POLLS && r->count->received_bytes < enough && !r->hellos; i++) {
        n = poll_once(r, now);
        came |= n > 0;
    }
    r->receiving = 0;
    if (r->t->frames) {
        copy_frames(r);
        if (RNL_UNLIKELY(r->links != r->t->frames->links))
            rnl_remote_links_changed(r);
    }
    r->drained = n < RNL_REMOTE_POLL;
    r->polled |= RNL_REMOTE_POLLED | (came ? RNL_REMOTE_CAME : 0);
    if (r->replied)
        (void)r->t->ops->flush(r->t, now);
    r->replied = 0;
    if (RNL_UNLIKELY(now >= r->probe_ns))
        rnl_remote_probe_idle(r, now);
}

unsigned rnl_remote_receive(struct rnl_remote *r)
{
    receive(r);
    return rnl_remote_result(r);
}

unsigned rnl_remote_accept(struct rnl_remote *r, struct rnl_remote_conn *rc)
{
    const struct rnl_view *v = &r->view[r->hello[r->hello_next++]];
    if (rc)
        (void)rnl_remote_hello(r, rc, v, r->received_ns);
    if (r->hello_next < r->hellos)
        return rnl_remote_result(r);
    release(r);
    if (r->replied)
        (void)r->t->ops->flush(r->t, r->received_ns);
    r->replied = 0;
    return rnl_remote_result(r);
}

/* ---- what is published ---- */

static void output_now(struct rnl_remote_conn *rc, uint64_t backlog, uint64_t now_ns)
{
    struct rnl_remote *r = rc->remote;
    r->sent_ns = now_ns;
    send_one(rc, backlog, now_ns, true);
    (void)r->t->ops->flush(r->t, now_ns);
}

/* Returns true if nothing of the connection is in flight; a process that only sends, and never extracts, finds that out
 * here. A handler that has others behind it, which may reply, too, does not count as single: what they all send goes
 * when the extract ends. Nor does a message to a peer whose replies are awaited. */
static bool is_single(struct rnl_remote_conn *rc, unsigned use)
{
    bool in_handler = use & RNL_REMOTE_IN_HANDLER;
    if (in_handler ? rc->replica && rnl_replica_unread(rc->replica) : use & RNL_REMOTE_AWAITS)
        return false;
    if (rc->established && rc->flow.sent.count && !in_handler)
        receive(rc->remote);
    return rc->established && !rc->closed && !rc->flow.sent.count;
}

/* Sends a backlog. A process that sends much extracts seldom, so acknowledgements and credit words are taken in here,
 * and not only when the window is closed: until then a MiB would count as in flight that has long been read, and each
 * round trip would seem as long as the window lasts. */
static void output_backlog(struct rnl_remote_conn *rc, unsigned use, uint64_t backlog)
{
    struct rnl_remote *r = rc->remote;
    uint64_t now = r->env->ops->now_ns(r->env);
    if (rc->established && (rc->flow.flight >= BACKLOG || !rnl_remote_may_send(rc, now)) &&
        !(use & RNL_REMOTE_IN_HANDLER)) {
        receive(r);
        now = r->env->ops->now_ns(r->env); /* receive sends, too, and the flow's time never goes back */
    }
    if (!rc->closed && rc->has_flow && (!rc->established || rnl_remote_may_send(rc, now)))
        output_now(rc, backlog, now);
}

static void published_more(struct rnl_remote_conn *rc, unsigned use, uint64_t composing)
{
    uint64_t backlog = rnl_replica_bulk_backlog(rc->replica);
    backlog = backlog > composing ? backlog - composing : 0;
    rnl_flow_has_data(&rc->flow);
    if (backlog >= BACKLOG)
        output_backlog(rc, use, backlog);
    else if (++rc->rings % RINGS_PER_LOOK == 0 &&
             (rnl_replica_backlog(rc->replica, BACKLOG) >= BACKLOG || is_single(rc, use)))
        output_backlog(rc, use, 0);
}

bool rnl_remote_joins_burst(struct rnl_remote_conn *rc)
{
    if (rc->scheduled != RNL_REMOTE_URGENT || !rc->has_flow || rc->closed || (rc->rings + 1) % RINGS_PER_LOOK == 0 ||
        !rc->replica || rnl_replica_bulk_backlog(rc->replica) > 0)
        return false;
    rc->rings++;
    rnl_flow_has_data(&rc->flow);
    return true;
}

uint64_t rnl_remote_unsent(const struct rnl_remote_conn *rc)
{
    return rc->replica ? rnl_replica_bulk_backlog(rc->replica) : 0;
}

unsigned rnl_remote_published(struct rnl_remote_conn *rc, unsigned use, uint64_t composing)
{
    struct rnl_remote *r = rc->remote;
    if (rc->closed || !rc->replica)
        return rnl_remote_result(r);
    if (rc->scheduled == RNL_REMOTE_URGENT && rc->has_flow) {
        published_more(rc, use, composing);
        return rnl_remote_result(r);
    }
    bool single = is_single(rc, use);
    if (rc->closed) /* receive may have closed it just now */
        return rnl_remote_result(r);
    uint64_t now = rc->has_flow && !single ? 0 : r->env->ops->now_ns(r->env);
    rnl_remote_want(rc, now);
    if (single)
        output_now(rc, 0, now);
    else
        rnl_remote_schedule(rc, RNL_REMOTE_URGENT);
    return rnl_remote_result(r);
}

/* Announces what has been read. That makes room at a peer that seldom waits for it, and an acknowledgement of the same
 * goes soon in any case: one packet for both. */
static void advertise(struct rnl_remote_conn *rc, bool at_once)
{
    struct rnl_remote *r = rc->remote;
    if (rc->closed || !rc->replica)
        return;
    if (!at_once && rc->established && rnl_flow_owes_ns(&rc->flow) != UINT64_MAX &&
        !rnl_replica_much_read(rc->replica)) {
        rc->advertise_pending = 1;
        return;
    }
    rnl_remote_want(rc, rc->has_flow ? 0 : r->env->ops->now_ns(r->env));
    rnl_remote_schedule(rc, rnl_replica_urgent(rc->replica) ? RNL_REMOTE_URGENT : RNL_REMOTE_CAN_WAIT);
}

unsigned rnl_remote_advertise(struct rnl_remote_conn *rc, bool at_once)
{
    advertise(rc, at_once);
    return rnl_remote_result(rc->remote);
}

unsigned rnl_remote_tidy(struct rnl_remote *r)
{
    for (uint32_t i = 0; i < r->active_count; i++) {
        struct rnl_remote_conn *rc = r->active[i].rc;
        if (!rc->closed && rnl_replica_pending(rc->replica))
            advertise(rc, true); /* nothing that can go now has to end the sleep that follows */
    }
    rnl_remote_find_idle(r, r->env->ops->now_ns(r->env));
    return rnl_remote_result(r);
}

/* ---- state ---- */

int rnl_remote_bell(struct rnl_remote *r, const _Atomic uint32_t **at, uint32_t *bits)
{
    return r->t->ops->bell ? r->t->ops->bell(r->t, at, bits) : RNL_ERR_UNSUPPORTED;
}

bool rnl_remote_drained(const struct rnl_remote *r)
{
    return r->drained && r->t->ops->arm(r->t) == 0;
}

void rnl_remote_rearm(struct rnl_remote *r)
{
    (void)r->t->ops->arm(r->t);
}

bool rnl_remote_asleep(struct rnl_remote *r, uint64_t now_ns)
{
    return r->drained && rnl_remote_deadline(r) > now_ns && r->t->ops->arm(r->t) == 0;
}

bool rnl_remote_at_rest(const struct rnl_remote *r)
{
    for (uint32_t i = 0; i < r->env->size; i++) {
        const struct rnl_remote_conn *rc = r->conn[i];
        if (!rc || rc->closed)
            continue;
        if (rc->established ? !rnl_remote_flows_idle(rc) || (rc->replica && rnl_replica_pending(rc->replica))
                            : rc->hs.state != RNL_HS_IDLE)
            return false;
    }
    return true;
}

bool rnl_remote_all_left(const struct rnl_remote *r)
{
    for (uint32_t i = 0; i < r->env->size; i++) {
        const struct rnl_remote_conn *rc = r->conn[i];
        if (!rc || rc->closed)
            continue;
        if (rc->established ? rc->replica && rnl_replica_pending(rc->replica) : rc->hs.state != RNL_HS_IDLE)
            return false;
    }
    return true;
}

int rnl_remote_fd(const struct rnl_remote *r)
{
    return r->t->ops->fd(r->t);
}

bool rnl_remote_by_fd(const struct rnl_remote *r)
{
    return r->by_fd;
}

uint32_t rnl_remote_active(const struct rnl_remote *r)
{
    return r->active_count;
}

uint64_t rnl_remote_deadline(const struct rnl_remote *r)
{
    uint64_t due = r->heap_count ? r->heap[0].due_ns : UINT64_MAX, theirs = r->t->ops->deadline(r->t);
    return theirs < due ? theirs : due;
}

void rnl_remote_free(struct rnl_remote *r)
{
    if (!r)
        return;
    release(r);
    r->t->ops->close(r->t);
    r->env->datagrams = NULL;
    rnl_sealer_wipe(&r->sealer);
    rnl_remote_free_tables(r);
}
