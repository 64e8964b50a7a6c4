/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.c - datagrams to links and links to datagrams: who gets what came, whose turn it is, and when. */
#include "endpoint/link.h"

#include <stdlib.h>

enum {
    POLL = 16,           /* views at a time */
    POLLS = 4,           /* ... so often in one extract: it has to come to its handlers, */
    TAKEN = 64 << 10,    /* ... or as long as this has not come: it is to be read while it is in the cache */
    VAIN = 64,           /* looks in vain before it is asked less often */
    SKIP_MOST = 1023,    /* extracts in vain between two looks: some 20 us */
    SLOTS = 64,          /* of expanded keys, two a peer, ... */
    SLOTS_FEW = 8,       /* ... where most would have left the caches before they are used again */
    PILED = 64 << 10,    /* bytes: a full run of datagrams, whatever their size */
    RINGS_PER_LOOK = 16, /* at how much has piled up */
    AWAKE_FEW = 256,     /* links, some 12 KB each, and 8 more with answers */
    NEAR_TRIPS = 10,     /* what four calls of the kernel cost, so many times: a run sent, taken in and acknowledged */
    FETCHED = 32,        /* links awake: more are not in the caches */
    AWAKE_LEAST = 8      /* ... where many endpoints share a process's memory */
};
#define REST_NS          ((uint64_t)50 * 1000 * 1000)
#define HELLO_FIRST_NS   ((uint64_t)20 * 1000 * 1000)
#define HELLO_MOST_NS    ((uint64_t)1000 * 1000 * 1000)
#define NEAR_MOST_NS     ((uint32_t)45 * 1000)
#define HELLO_GIVE_UP_NS ((uint64_t)30 * 1000 * 1000 * 1000)

/* ---- fetching ahead ---- */

/* With many peers all of a link has left the caches when its turn comes. So its lines are fetched while others have
 * theirs, all at once and not each when it is needed; what points to them is fetched before. */
static void fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; at && i < bytes; i += RNL_LINE_BYTES)
        __builtin_prefetch((const char *)at + i);
}

static void fetch_link(const struct rnl_conn *conn)
{
    fetch(conn->link, sizeof *conn->link);
    fetch(conn->pair.own, sizeof(struct rnl_mirror));
}

/* Of all whose packets came. */
static void fetch_senders(const struct rnl_endpoint *ep, const struct rnl_view *v, int n)
{
    const struct rnl_conn *conn[POLL];
    int count = 0;
    if (ep->remote->awake < FETCHED)
        return;
    for (int k = 0; k < n; k++)
        fetch(v[k].peer < ep->size ? &ep->peer[v[k].peer].conn : NULL, 1);
    for (int k = 0; k < n; k++) {
        const struct rnl_conn *c = v[k].peer < ep->size ? ep->peer[v[k].peer].conn : NULL;
        if (!c || (count && conn[count - 1] == c))
            continue;
        conn[count++] = c;
        fetch(&c->link, 1);
        fetch(&c->pair, sizeof c->pair);
    }
    for (int k = 0; k < count; k++)
        fetch_link(conn[k]);
}

/* ---- whose turn it is ---- */

void rnl_remote_mark(struct rnl_link *link, enum rnl_link_mark how)
{
    struct rnl_remote *r = link->remote;
    if (!link->marked)
        link->rings = 0;
    if (link->marked < how)
        link->marked = (uint8_t)how;
    r->presses |= how == RNL_LINK_PRESSES;
    rnl_remote_soon(r->ep);
    if (link->queued)
        return;
    link->queued = 1;
    link->next = NULL;
    *r->last = link;
    r->last = &link->next;
}

static struct rnl_link *dequeue(struct rnl_remote *r)
{
    struct rnl_link *link = r->first;
    r->first = link->next;
    if (!r->first)
        r->last = &r->first;
    link->queued = 0;
    return link;
}

static const struct rnl_link *last_of(const struct rnl_remote *r)
{
    return r->first ? (const struct rnl_link *)(const void *)((const char *)r->last - offsetof(struct rnl_link, next))
                    : NULL;
}

static void give_out(struct rnl_link *link, uint64_t piled, uint64_t now_ns, int last)
{
    link->marked = 0;
    if (rnl_link_output(link, piled, now_ns, last))
        rnl_remote_mark(link, RNL_LINK_PRESSES);
}

static void send_at(struct rnl_endpoint *ep, uint64_t now)
{
    struct rnl_remote *r = ep->remote;
    r->sent_ns = now;
    while (r->heap_count && r->heap[0].due_ns <= now) {
        struct rnl_link *link = r->heap[0].link;
        rnl_remote_not_due(link);
        rnl_remote_mark(link, RNL_LINK_PRESSES);
    }
    r->left = r->presses = 0;                 /* those that are due have their turn now, too */
    const struct rnl_link *last = last_of(r); /* those that are marked again have another turn in the next call */
    for (struct rnl_link *link = NULL; last && link != last;) {
        link = dequeue(r);
        if (r->awake >= FETCHED)
            fetch(r->first, sizeof *r->first);
        if (link->marked)
            give_out(link, 0, now, link == last);
    }
    (void)r->t->ops->flush(r->t, now);
    if (r->awake > r->few && r->woke > r->few / 4)
        rnl_link_let_rest(ep, now);
}

void rnl_remote_send(struct rnl_endpoint *ep)
{
    const struct rnl_remote *r = ep->remote;
    if (r->first || r->heap_count)
        send_at(ep, ep->env->ops->now_ns(ep->env));
}

void rnl_remote_send_after(struct rnl_endpoint *ep)
{
    const struct rnl_remote *r = ep->remote;
    if (r->first || (r->heap_count && r->heap[0].due_ns <= r->received_ns) || r->awake > r->few)
        send_at(ep, r->sent_ns > r->received_ns ? r->sent_ns : r->received_ns); /* handlers may have sent since */
    else if (r->t->ops->deadline(r->t) <= r->received_ns)
        (void)r->t->ops->flush(r->t, r->received_ns);
}

void rnl_remote_leave(struct rnl_endpoint *ep)
{
    struct rnl_remote *r = ep->remote;
    r->left = r->first != NULL;
    if (r->presses)
        rnl_remote_send(ep);
    else if ((r->heap_count && r->heap[0].due_ns <= r->received_ns) || r->t->ops->deadline(r->t) <= r->received_ns)
        rnl_remote_send_after(ep); /* peers of this host may keep it busy for ever */
}

static void output_now(struct rnl_link *link, uint64_t piled, uint64_t now_ns)
{
    struct rnl_remote *r = link->remote;
    r->sent_ns = now_ns;
    give_out(link, piled, now_ns, 1);
    (void)r->t->ops->flush(r->t, now_ns);
}

/* Nothing of it is in flight: who only sends, and never extracts, finds that out here. A handler that has others behind
 * it, which may answer, too, is not alone: all of theirs goes when the extract ends. Nor is what goes to a peer from
 * whom much is awaited. */
static int is_lone(struct rnl_endpoint *ep, struct rnl_link *link)
{
    if (ep->in_handler ? link->mirror && rnl_mirror_unread(link->mirror) : link->conn->awaited)
        return 0;
    if (link->up && link->flow.sent.count && !ep->in_handler && !ep->remote->receiving)
        rnl_remote_receive(ep);
    return link->up && !link->over && !link->flow.sent.count;
}

/* Who sends much extracts seldom: acknowledgements, and what the peer has read, are looked for here. Not only when the
 * window is closed: until then a MiB would be taken for on its way that has long been read, and each trip for as long
 * as the window lasts. */
static void output_piled(struct rnl_endpoint *ep, struct rnl_link *link, uint64_t piled)
{
    uint64_t now = ep->env->ops->now_ns(ep->env);
    if (link->up && (link->flow.flight >= PILED || !rnl_flow_may_send(&link->flow, now)) && !ep->in_handler &&
        !ep->remote->receiving) {
        rnl_remote_receive(ep);
        now = ep->env->ops->now_ns(ep->env); /* it sends, too, and the flow's time never goes back */
    }
    if (!link->over && link->flows && (!link->up || rnl_flow_may_send(&link->flow, now)))
        output_now(link, piled, now);
}

/* Bulk bytes that wait for packets, without those that are only reserved. */
static uint64_t composed(const struct rnl_conn *conn)
{
    const struct rnl_stream *s = &conn->out[0];
    uint64_t piled = rnl_mirror_bulk_piled(conn->link->mirror);
    int reserves = (s->state == RNL_STREAM_EXTENT || s->state == RNL_STREAM_CHUNKS) && s->base;
    uint64_t open = reserves ? s->reserved - (uint64_t)(s->at - s->base) : 0;
    return piled > open ? piled - open : 0;
}

static void ring(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what)
{
    struct rnl_link *link = conn->link;
    if (link->over)
        return;
    if (link->marked == RNL_LINK_PRESSES && link->flows) {
        rnl_flow_want(&link->flow);
        uint64_t piled = composed(conn);
        if (piled >= PILED)
            output_piled(ep, link, piled);
        else if (++link->rings % RINGS_PER_LOOK == 0 &&
                 (rnl_mirror_piled(link->mirror, PILED) >= PILED || is_lone(ep, link)))
            output_piled(ep, link, 0);
        return;
    }
    int lone = (what & RNL_ARMED_LINES) && is_lone(ep, link);
    if (link->over) /* as was found out just now */
        return;
    uint64_t now = link->flows && !lone ? 0 : ep->env->ops->now_ns(ep->env);
    rnl_link_want(link, now);
    if (lone)
        output_now(link, 0, now);
    else
        rnl_remote_mark(link, what & RNL_ARMED_LINES || rnl_mirror_presses(link->mirror) ? RNL_LINK_PRESSES
                                                                                         : RNL_LINK_CAN_WAIT);
}

/* What has been read makes room at a peer that seldom waits for it. An acknowledgement of the same goes soon in any
 * case: one packet for both. Whoever closes does wait for it. */
void rnl_remote_ring(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what)
{
    struct rnl_link *link = conn->link;
    if (what == RNL_ARMED_LINES && link->marked == RNL_LINK_PRESSES && link->flows && !link->over &&
        (link->rings + 1) % RINGS_PER_LOOK && rnl_mirror_bulk_piled(link->mirror) == 0) {
        link->rings++; /* one of a burst: what ring would do */
        rnl_flow_want(&link->flow);
    } else if (what == RNL_ARMED_ROOM && link->up && !link->over && !ep->closing && link->mirror &&
               rnl_flow_owes_ns(&link->flow) != UINT64_MAX && !rnl_mirror_much_read(link->mirror))
        link->untold = 1;
    else
        ring(ep, conn, what);
}

void rnl_remote_tidy(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->live; i++) {
        struct rnl_link *link = ep->hot[i]->link;
        if (link && !link->over && rnl_mirror_unsaid(link->mirror))
            ring(ep, ep->hot[i], RNL_ARMED_ROOM); /* whoever sleeps next wakes for nothing that can go now */
    }
    rnl_link_let_rest(ep, ep->env->ops->now_ns(ep->env));
}

/* ---- what comes in ---- */

static struct rnl_link *link_of(struct rnl_remote *r, uint32_t rank)
{
    struct rnl_conn *conn = rank < r->ep->size ? r->ep->peer[rank].conn : NULL;
    return conn ? conn->link : NULL;
}

void rnl_remote_answer(struct rnl_remote *r, const struct rnl_view *v, const void *at, uint32_t bytes, uint64_t now_ns)
{
    (void)r->t->ops->answer(r->t, v, at, bytes, now_ns);
    r->answered = 1;
}

/* The process of a rank that was started again knows the peer's first address only, until it has a connection. */
static int known(struct rnl_remote *r, const struct rnl_view *v)
{
    uint32_t rank = rnl_hs_connection_rank(rnl_packet_connection(v->at, v->bytes));
    struct rnl_addr from, first;
    if (v->peer != RNL_PEER_STRANGER)
        return 1;
    return rank < r->ep->size && r->t->ops->source(r->t, v, &from) == 0 && rnl_link_is_of(r, rank, &from, &first);
}

/* Whose connection is not there. */
static void stray(struct rnl_remote *r, const struct rnl_view *v, uint64_t now_ns)
{
    unsigned char out[RNL_UNKNOWN_BYTES];
    struct rnl_packet p;
    r->ep->c->strays++;
    if (rnl_packet_decode(v->at, v->bytes, &p) != RNL_PACKET_GOOD || !known(r, v))
        return;
    uint32_t bytes = rnl_hs_unknown(&r->hs, &p, now_ns, out, sizeof out);
    if (bytes)
        rnl_remote_answer(r, v, out, bytes, now_ns);
}

static void take_in(struct rnl_remote *r, const struct rnl_view *v, uint64_t now_ns)
{
    uint32_t number = rnl_packet_connection(v->at, v->bytes), src, dst;
    if (rnl_hello_peek(v->at, v->bytes, &src, &dst)) {
        rnl_link_hello(r, link_of(r, src), v, now_ns);
        return;
    }
    struct rnl_packet p;
    if (v->bytes == RNL_UNKNOWN_BYTES && rnl_packet_decode(v->at, v->bytes, &p) == RNL_PACKET_GOOD &&
        p.type == RNL_PACKET_UNKNOWN) {
        struct rnl_link *link = link_of(r, v->peer);
        if (link && link->flows && !link->over)
            rnl_link_unknown(link, v, now_ns);
        return;
    }
    struct rnl_link *link = link_of(r, rnl_hs_connection_rank(number));
    int there = link && link->flows && link->hs.rx_connection == number;
    if (there && link->conn->rank == v->peer) {
        if (!link->over)
            rnl_link_input(link, v, now_ns);
        return;
    }
    if (there) /* repeated from elsewhere; an UNKNOWN that its peer can be given in turn would end the connection */
        r->ep->c->strays++;
    else
        stray(r, v, now_ns);
}

void rnl_remote_soon(struct rnl_endpoint *ep)
{
    if (ep->net_due)
        return;
    ep->net_due = 1;
    rnl_ep_chores(ep);
}

/* Cold, it tells by itself when something comes, if it can, and only one thread asks. */
static int is_told(struct rnl_endpoint *ep)
{
    struct rnl_remote *r = ep->remote;
    int may = r->vain >= VAIN && r->t->ops->bell && !ep->fd_mode && !(ep->flags & (RNL_SHARED | RNL_EP_GUARDED));
    int status = may ? r->t->ops->bell(r->t, &ep->net_bell, &ep->net_bits) : RNL_ERR_UNSUPPORTED;
    ep->net_bits = status == 0 ? ep->net_bits : 0;
    return status;
}

/* How soon it is asked again. */
static void adapt(struct rnl_endpoint *ep, int came)
{
    struct rnl_remote *r = ep->remote;
    r->vain = came ? 0 : r->vain + 1;
    int here = is_told(ep) == 1;
    if (came || ep->fd_mode || rnl_remote_all_away(ep)) /* nobody of this host is connected */
        ep->net_skip = 0;
    else if (r->vain >= VAIN && ep->net_skip < SKIP_MOST)
        ep->net_skip = 2 * ep->net_skip + 1;
    ep->net_skipped = 0;
    ep->net_due = ep->net_skip == 0 || r->first != NULL || here;
    rnl_ep_chores(ep);
}

void rnl_remote_receive(struct rnl_endpoint *ep)
{
    struct rnl_remote *r = ep->remote;
    struct rnl_view view[POLL];
    if (r->left && !r->receiving)
        rnl_remote_send(ep);
    uint64_t now = ep->env->ops->now_ns(ep->env);
    int n = POLL, came = 0;
    uint64_t enough = r->count->received_bytes + TAKEN;
    r->received_ns = now;
    r->receiving = 1;
    for (int i = 0; n == POLL && i < POLLS && r->count->received_bytes < enough; i++) {
        n = r->t->ops->poll(r->t, view, POLL, now);
        came |= n > 0;
        fetch_senders(ep, view, n);
        for (int k = 0; k < n; k++)
            take_in(r, &view[k], now);
        if (n > 0)
            r->t->ops->release(r->t, view, n);
    }
    r->receiving = 0;
    adapt(ep, came);
    r->drained = n < POLL;
    if (came && ep->by_fd && (ep->asleep || ep->fd_armed))
        (void)r->t->ops->arm(r->t); /* somebody sleeps on it still, and looks without an arm may have ended that */
    if (r->answered)
        (void)r->t->ops->flush(r->t, now);
    r->answered = 0;
    if (RNL_UNLIKELY(now >= r->ask_ns))
        rnl_link_ask_idle(ep, now);
}

int rnl_remote_drained(const struct rnl_endpoint *ep)
{
    const struct rnl_remote *r = ep->remote;
    return r->drained && r->t->ops->arm(r->t) == 0;
}

int rnl_remote_at_rest(const struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->size; i++) {
        const struct rnl_link *link = ep->peer[i].conn ? ep->peer[i].conn->link : NULL;
        if (!link || link->over)
            continue;
        if (link->up ? !rnl_flow_idle(&link->flow) || (link->mirror && rnl_mirror_unsaid(link->mirror))
                     : link->hs.state != RNL_HS_IDLE)
            return 0;
    }
    return 1;
}

int rnl_remote_all_left(const struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->size; i++) {
        const struct rnl_link *link = ep->peer[i].conn ? ep->peer[i].conn->link : NULL;
        if (!link || link->over)
            continue;
        if (link->up ? link->mirror && rnl_mirror_unsaid(link->mirror) : link->hs.state != RNL_HS_IDLE)
            return 0;
    }
    return 1;
}

int rnl_remote_look(struct rnl_endpoint *ep, uint64_t now_ns)
{
    struct rnl_remote *r = ep->remote;
    if (r->drained && rnl_remote_deadline(ep) > now_ns && r->t->ops->arm(r->t) == 0)
        return 0;
    rnl_remote_soon(ep);
    return 1;
}

int rnl_remote_fd(const struct rnl_endpoint *ep)
{
    return ep->remote->t->ops->fd(ep->remote->t);
}

int rnl_remote_all_away(const struct rnl_endpoint *ep)
{
    return ep->remote && ep->live == ep->remote->awake;
}

uint64_t rnl_remote_deadline(struct rnl_endpoint *ep)
{
    struct rnl_remote *r = ep->remote;
    uint64_t due = r->heap_count ? r->heap[0].due_ns : UINT64_MAX, theirs = r->t->ops->deadline(r->t);
    return theirs < due ? theirs : due;
}

/* ---- beginning and end ---- */

int rnl_remote_away(struct rnl_endpoint *ep, uint32_t rank)
{
    struct rnl_place place;
    return ep->remote && rank != ep->rank && ep->env->ops->place(ep->env, rank, &place) == 1;
}

int rnl_remote_link(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    return rnl_link_new(ep->remote, conn, &conn->link);
}

void rnl_remote_unlink(struct rnl_conn *conn)
{
    struct rnl_link *link = conn->link;
    struct rnl_remote *r = link->remote;
    rnl_remote_not_due(link);
    for (struct rnl_link **at = &r->first; link->queued && *at; at = &(*at)->next) {
        if (*at != link)
            continue;
        *at = link->next;
        if (!link->next)
            r->last = at;
        break;
    }
    if (link->flows)
        rnl_flow_fini(&link->flow);
    rnl_remote_sleeps(conn);
    free(link->why);
    free(link->ways);
    free(link);
    conn->link = NULL;
}

void rnl_remote_forget(struct rnl_conn *conn)
{
    struct rnl_remote *r = conn->link->remote;
    rnl_hs_peer_drop(&r->hs, &conn->link->hs);
    rnl_remote_unlink(conn);
    (void)r->t->ops->disconnect(r->t, conn->rank); /* it was connected: nothing to fail */
}

int rnl_remote_may_be(const struct rnl_conn *conn, uint64_t incarnation)
{
    const struct rnl_hs_peer *hs = &conn->link->hs;
    return !conn->link->flows || hs->incarnation == incarnation;
}

static int begin_handshakes(struct rnl_remote *r, uint64_t give_up_ns)
{
    struct rnl_env *env = r->ep->env;
    struct rnl_hs_config c = {.rank = env->rank,
                              .ranks = env->size,
                              .incarnation = env->incarnation,
                              .job = &r->keys,
                              .protect = env->protect,
                              .ciphers = (uint8_t)r->ciphers.have,
                              .ack_delay_ns = r->config.ack_delay_ns,
                              .window_bytes = r->window,
                              .first_ns = HELLO_FIRST_NS,
                              .most_ns = HELLO_MOST_NS,
                              .give_up_ns = give_up_ns ? give_up_ns : HELLO_GIVE_UP_NS};
    uint32_t most = RNL_REMOTE_MTU_NEAR; /* what is taken, whoever asks; others are not asked for as much */
    for (unsigned i = 0; i < RNL_MTU_SIZES; i++)
        if (r->config.mtu[i] > most)
            most = r->config.mtu[i];
    c.mtu_bytes = (uint16_t)most;
    for (unsigned i = 0; i < sizeof c.secret; i += 8) {
        uint64_t random = env->ops->random(env);
        memcpy(c.secret + i, &random, sizeof random);
    }
    return rnl_hs_init(&r->hs, &c);
}

/* What is near among processes of one kernel depends on what its calls cost: on some machines four times what they do
 * on others. Who streams never sees less than a run takes. To others no network answers below the least. */
static uint32_t near_ns(uint32_t least_ns, uint32_t trip_ns)
{
    uint64_t ns = (uint64_t)NEAR_TRIPS * trip_ns;
    ns = ns < NEAR_MOST_NS ? ns : NEAR_MOST_NS;
    return ns > least_ns ? (uint32_t)ns : least_ns;
}

#define SAME(flows, page)                                                                              \
    static_assert(offsetof(struct rnl_counters, page) - offsetof(struct rnl_counters, packets_sent) == \
                      offsetof(struct rnl_flow_counters, flows),                                       \
                  "the flows count in the page")
SAME(sent_bytes, packet_bytes_sent);
SAME(received, packets_received);
SAME(received_bytes, packet_bytes_received);
SAME(acks_sent, acks_sent);
SAME(lost, packets_lost);
SAME(spurious, packets_not_lost);
SAME(probes, probe_timeouts);
SAME(duplicates, packets_again);
SAME(refused, packets_refused);
SAME(mtu_raised, mtu_raised);
SAME(mtu_fell, mtu_fell);
SAME(undone, cuts_undone);
static_assert(sizeof(struct rnl_flow_counters) ==
                  offsetof(struct rnl_counters, strays) - offsetof(struct rnl_counters, packets_sent),
              "all of them");

int rnl_remote_new(struct rnl_endpoint *ep, const struct rnl_remote_options *opt)
{
    static const struct rnl_remote_options defaults;
    if (ep->env->facts.guessable)
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "packets to other hosts need secret random numbers, and getrandom does not give "
                        "any: let the filter of this process allow it");
    struct rnl_remote *r = calloc(1, sizeof *r);
    struct rnl_link_due *heap = calloc(ep->size, sizeof *heap);
    struct rnl_link_awake *awakes = calloc(ep->size, sizeof *awakes);
    uint32_t slots = ep->env->facts.crowd > SLOTS / 2 ? SLOTS_FEW : SLOTS;
    size_t bytes = rnl_sealer_bytes(slots);
    void *memory = aligned_alloc(RNL_SEALER_ALIGN, (bytes + RNL_SEALER_ALIGN - 1) & ~(size_t)(RNL_SEALER_ALIGN - 1));
    int status = RNL_ERR_NO_MEMORY;
    if (!r || !heap || !awakes || !memory) {
        rnl_fail(status, "no memory for connections to other hosts (%zu bytes)",
                 sizeof *r + bytes + ep->size * (sizeof *heap + sizeof *awakes));
        goto failed;
    }
    *r = (struct rnl_remote){
        .ep = ep, .t = ep->env->datagrams, .heap = heap, .awakes = awakes, .sealer_memory = memory, .drained = 1};
    r->count = (struct rnl_flow_counters *)(void *)&ep->c->packets_sent;
    r->last = &r->first;
    status = rnl_ciphers_init(&r->ciphers, ~0u);
    if (status == 0)
        status = rnl_sealer_init(&r->sealer, &r->ciphers, memory, slots);
    if (status < 0)
        goto failed;
    rnl_job_keys_derive(&r->keys, ep->env->job_key);
    opt = opt ? opt : &defaults;
    rnl_flow_defaults(&r->config);
    r->config.law = ep->env->law;
    r->near_ns = near_ns(r->config.congest.near_ns, ep->env->facts.trip_ns);
    if (opt->silent_ns)
        r->config.dead_ns = opt->silent_ns;
    if (r->config.suspect_ns > r->config.dead_ns / 2) /* who is suspect is asked about before it is taken for dead */
        r->config.suspect_ns = r->config.dead_ns / 2;
    r->rest_after_ns = opt->rest_ns ? opt->rest_ns : REST_NS;
    if (r->config.linger_ns > r->rest_after_ns)
        r->config.linger_ns = r->rest_after_ns;
    r->few = AWAKE_FEW;
    if (ep->env->facts.crowd > 1)
        r->few = AWAKE_FEW / ep->env->facts.crowd > AWAKE_LEAST ? AWAKE_FEW / ep->env->facts.crowd : AWAKE_LEAST;
    /* Who sleeps does so on our own descriptor, too. */
    ep->by_fd = r->t->caps & RNL_CAP_FD && ep->env->ops->park_on;
    status = ep->by_fd ? ep->env->ops->fd(ep->env) : 0;
    if (status < 0)
        goto failed;
    r->window = r->t->ops->holds(r->t, r->config.mtu[0]) * (r->config.mtu[0] + r->config.buffer_bytes);
    status = begin_handshakes(r, opt->open_ns);
    if (status < 0)
        goto failed;
    ep->remote = r;
    ep->c->protection = (uint64_t)ep->env->protect + 1;
    return 0;

failed:
    free(r);
    free(heap);
    free(awakes);
    free(memory);
    return status;
}

void rnl_remote_free(struct rnl_endpoint *ep)
{
    struct rnl_remote *r = ep->remote;
    if (!r)
        return;
    r->t->ops->close(r->t);
    ep->env->datagrams = NULL;
    rnl_sealer_wipe(&r->sealer);
    free(r->sealer_memory);
    free(r->heap);
    free(r->awakes);
    rnl_wipe(r, sizeof *r); /* the keys of the job, and our secret */
    free(r);
    ep->remote = NULL;
}
