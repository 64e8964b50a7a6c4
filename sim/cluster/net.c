/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - the way of a packet. When it enters a link, all of its way over that link is known: the queue is first come,
 * first served. So it needs one event, its arrival at the other end; those of a link that keep their order wait in line
 * behind one event of the link. */
#include <string.h>

#include "base/bug.h"
#include "sim/cluster/net_internal.h"

enum { LOOP_NS = 1000, MESSAGE_BYTES = 36, FETCH_LINE = 64 };

struct net_link *net_route_of(const struct vc_net *net, uint32_t node, uint32_t host, uint32_t nth)
{
    const struct net_node *n = &net->node[node];
    uint32_t link = n->routes ? n->routes[(nth < net->planes ? nth : 0) * net->hosts + host] : n->only;
    return link < net->links ? net->link[link] : NULL;
}

void net_drop(struct vc_net *net, struct net_packet *p, struct net_link *l, enum vc_net_drop why)
{
    net_unsend(p); /* if its own host drops it */
    net->counts.dropped[why]++;
    if (l)
        l->counts.dropped[why]++;
    rnl_sim_note(net->sim, NET_NOTE_DROPPED, l ? VC_NET_ENTITY + l->id : p->to, (uint64_t)p->from << 32 | p->from_port,
                 (uint64_t)why << 32 | p->bytes);
    if (p->kind == NET_DATA)
        net_tap(net, VC_NET_TAP_DROPPED, p->from, p, l, why);
    net_packet_free(net, p);
}

/* ---- queues ---- */

void net_link_settle(struct net_link *l)
{
    uint64_t now = rnl_sim_now(l->net->sim);
    while (l->queue_first && l->queue_first->left <= now) {
        struct net_packet *p = l->queue_first;
        l->queue_first = p->behind;
        l->queue_bytes -= p->wire_bytes;
        net_unsend(p);
    }
}

static uint64_t sending_ticks(const struct net_link *l, uint64_t wire_bytes)
{
    const uint64_t second = 1000000000u * VC_TICKS_PER_NS;
    if (l->config.bits_per_s == 0)
        return 0;
    return (wire_bytes * 8 * second + l->config.bits_per_s - 1) / l->config.bits_per_s;
}

/* Behind what is there: it has left when all of that has. */
static void join_queue(struct net_link *l, struct net_packet *p)
{
    uint64_t now = rnl_sim_now(l->net->sim);
    /* A token bucket sends as if it had begun earlier: by the time that filled the bucket, at most. */
    uint64_t saved = sending_ticks(l, l->config.burst_bytes), least = now > saved ? now - saved : 0;
    uint64_t begins = l->free_at > least ? l->free_at : least, lasts = sending_ticks(l, p->wire_bytes);
    if (l->waits)
        net_count_wait(l, begins > now ? begins - now : 0);
    l->free_at = begins + lasts;
    p->left = l->free_at > now ? l->free_at : now;
    l->busy += lasts;
    l->counts.packets++;
    l->counts.bytes += p->wire_bytes;
    l->queue_bytes += p->wire_bytes;
    if (l->queue_bytes > l->counts.most_bytes)
        l->counts.most_bytes = l->queue_bytes;
    p->behind = NULL;
    if (l->queue_first)
        l->queue_last->behind = p;
    else
        l->queue_first = p;
    l->queue_last = p;
}

/* ---- on the way ---- */

static void arrive(struct net_link *l, struct net_packet *p);

static void stray_arrives(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct net_packet *p = (struct net_packet *)(void *)e;
    (void)sim;
    arrive(p->link, p);
}

void net_line_arrives(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct net_link *l = (struct net_link *)(void *)e;
    struct net_packet *p = l->line_first;
    l->line_first = p->next;
    if (l->line_first)
        (void)rnl_sim_at(sim, &l->event, p->next_arrives);
    arrive(l, p);
}

void vc_net_fetch(const struct rnl_sim_event *e)
{
    if (e->fn != net_line_arrives)
        return;
    const struct net_packet *p = ((const struct net_link *)(const void *)e)->line_first;
    for (size_t i = 0; p && i < sizeof *p; i += FETCH_LINE)
        __builtin_prefetch((const char *)p + i);
}

/* In line, if it keeps the order; else with an event of its own. Without memory for an event order wins over time. */
static void set_out(struct net_link *l, struct net_packet *p, uint64_t arrives)
{
    struct rnl_sim *sim = l->net->sim;
    p->link = l;
    p->down_count = l->down_count;
    p->arrives = arrives;
    if (l->line_first && arrives < l->line_last->arrives) {
        rnl_sim_event_init(&p->event, stray_arrives, (uint32_t)VC_NET_ENTITY + l->id);
        if (rnl_sim_at(sim, &p->event, arrives) == 0)
            return;
        p->arrives = l->line_last->arrives;
    }
    p->next = NULL;
    if (l->line_first) {
        l->line_last->next = p;
        l->line_last->next_arrives = p->arrives;
    } else {
        l->line_first = p;
    }
    l->line_last = p;
    if (!rnl_sim_scheduled(&l->event))
        (void)rnl_sim_at(sim, &l->event, l->line_first->arrives);
}

static void judge(struct net_link *l, uint32_t bytes, struct rnl_fault_verdict *v)
{
    *v = (struct rnl_fault_verdict){.bytes = bytes};
    if (!l->faulty)
        return;
    uint64_t age_ns = (rnl_sim_now(l->net->sim) - l->fault_since) / VC_TICKS_PER_NS;
    if (age_ns >= l->fault.after_ns && (l->fault.for_ns == 0 || age_ns - l->fault.after_ns < l->fault.for_ns))
        rnl_fault_judge(&l->fault, &l->flow, l->id, bytes, v);
}

/* As if it had left with the first. */
static void send_twice(struct net_link *l, const struct net_packet *p, uint64_t arrives)
{
    struct vc_net *net = l->net;
    struct net_packet *q = net_packet_new(net, p->bytes);
    if (!q)
        return;
    memcpy(q->data, p->data, p->bytes);
    q->from = p->from;
    q->to = p->to;
    q->from_port = p->from_port;
    q->to_port = p->to_port;
    q->value = p->value;
    q->nth = p->nth;
    q->kind = p->kind;
    q->ecn = p->ecn;
    net->counts.twice++;
    set_out(l, q, arrives);
}

static void enter(struct net_link *l, struct net_packet *p)
{
    struct vc_net *net = l->net;
    struct rnl_fault_verdict v;
    net_link_settle(l);
    if (l->down) {
        net_drop(net, p, l, VC_NET_DROP_DOWN);
        return;
    }
    if (p->bytes > net_longest(l)) {
        if (!l->config.silent)
            net_tell(net, p, NET_TOO_LONG, l->from, net_longest(l));
        net_drop(net, p, l, VC_NET_DROP_MTU);
        return;
    }
    /* What a host sends was let into its own queue before, in whole runs. */
    p->wire_bytes = p->bytes + l->config.overhead_bytes;
    if (l->config.buffer_bytes && l->queue_bytes + p->wire_bytes > l->config.buffer_bytes && !p->socket) {
        net_drop(net, p, l, VC_NET_DROP_QUEUE);
        return;
    }
    if (l->config.mark_bytes && l->queue_bytes > l->config.mark_bytes && p->ecn != RNL_ECN_NOT) {
        l->counts.marked += p->ecn != RNL_ECN_CE;
        p->ecn = RNL_ECN_CE;
    }
    join_queue(l, p);
    judge(l, p->bytes, &v);
    uint64_t there = p->left + l->config.delay_ns * VC_TICKS_PER_NS;
    p->lost = v.lost;
    if (!v.lost) {
        p->bytes = v.bytes;
        if (v.corrupt)
            rnl_fault_corrupt(p->data, p->bytes, v.corrupt_draw);
        if (v.ce && p->ecn != RNL_ECN_NOT)
            p->ecn = RNL_ECN_CE;
        if (v.bleach)
            p->ecn = RNL_ECN_NOT;
    }
    set_out(l, p, there + v.delay_ns * VC_TICKS_PER_NS);
    if (v.twice)
        send_twice(l, p, there + v.twice_ns * VC_TICKS_PER_NS);
}

/* ---- from node to node ---- */

static bool is_blocked(const struct vc_net *net, uint32_t from, uint32_t to)
{
    uint64_t bit = (uint64_t)from * net->hosts + to;
    return net->blocked && (net->blocked[bit / 64] >> bit % 64 & 1);
}

static enum vc_net_drop apart(const struct vc_net *net, const struct net_packet *p)
{
    if (net->host[p->from].group != net->host[p->to].group)
        return VC_NET_DROP_GROUP;
    return is_blocked(net, p->from, p->to) ? VC_NET_DROP_BLOCK : VC_NET_DROP_NONE;
}

static void at_host(struct vc_net *net, struct net_packet *p, struct net_link *came)
{
    const struct net_host *h = &net->host[p->to];
    enum vc_net_drop why = h->down || h->deaf >> p->nth & 1 ? VC_NET_DROP_DOWN : apart(net, p);
    if (why)
        net_drop(net, p, came, why);
    else
        net_socket_take(net, p);
}

static void pass(struct vc_net *net, uint32_t node, struct net_packet *p, struct net_link *came)
{
    struct net_link *l;
    if (node == p->to)
        at_host(net, p, came);
    else if (!(l = net_route_of(net, node, p->to, p->nth)))
        net_drop(net, p, came, VC_NET_DROP_ROUTE);
    else
        enter(l, p);
}

static void arrive(struct net_link *l, struct net_packet *p)
{
    struct vc_net *net = l->net;
    net->counts.hops++;
    net_link_settle(l); /* it has left by now, and its fields are free for the next link */
    if (p->down_count != l->down_count && !RNL_BUG(sim_cable_cut_loses_nothing)) {
        net_drop(net, p, l, VC_NET_DROP_DOWN);
    } else if (p->lost) {
        net_drop(net, p, l, VC_NET_DROP_FAULT);
    } else {
        l->counts.delivered++;
        pass(net, l->to, p, l);
    }
}

static void loop_arrives(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct net_packet *p = (struct net_packet *)(void *)e;
    (void)sim;
    pass(p->net, p->to, p, NULL);
}

void net_send(struct vc_net *net, struct net_packet *p)
{
    const struct net_host *h = &net->host[p->from];
    enum vc_net_drop why = h->down || h->mute >> p->nth & 1 ? VC_NET_DROP_DOWN : apart(net, p);
    if (why) {
        net_drop(net, p, NULL, why);
    } else if (p->from == p->to) { /* never inside the call that sends */
        net_unsend(p);
        p->net = net;
        rnl_sim_event_init(&p->event, loop_arrives, p->to);
        if (rnl_sim_at(net->sim, &p->event, rnl_sim_now(net->sim) + LOOP_NS * VC_TICKS_PER_NS) < 0)
            net_drop(net, p, NULL, VC_NET_DROP_MEMORY);
    } else {
        pass(net, p->from, p, NULL);
    }
}

void net_tell(struct vc_net *net, const struct net_packet *p, enum net_kind kind, uint32_t at, uint32_t value)
{
    struct net_packet *q;
    if (p->kind != NET_DATA || !(q = net_packet_new(net, MESSAGE_BYTES)))
        return; /* never a message about a message */
    memset(q->data, 0, MESSAGE_BYTES);
    q->kind = (uint8_t)kind;
    q->nth = p->nth;
    q->from = p->to;
    q->from_port = p->to_port;
    q->to = p->from;
    q->to_port = p->from_port;
    q->value = value;
    pass(net, at, q, NULL);
}
