/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree.c - along which members goes what one of them, the root, sends to all (order.h): from host to host, and within
 * each host from its first member that gets it, the leader. So it crosses the network once for each other host. The
 * root leads its host, the oldest member each other one. Hosts, and the members of one host, hang straight below the
 * first if there are at most `flat` of them, else they are a binary tree. */
#include "api/group/order_internal.h"

void rnl_order_tree(struct rnl_order *o)
{
    uint32_t n = 0;
    o->hosts = 0;
    o->mark++;
    for (uint32_t k = 0; k < o->in_view; k++) {
        const uint32_t host = o->member[o->view[k]].host;
        if (o->member[o->view[k]].mark == o->mark)
            continue;
        o->host_begin[o->hosts] = n;
        for (uint32_t i = k; i < o->in_view; i++) {
            struct member *m = &o->member[o->view[i]];
            if (m->host != host)
                continue;
            m->mark = o->mark;
            m->host_at = o->hosts;
            m->at = n;
            o->by_host[n++] = o->view[i];
        }
        o->hosts++;
    }
    o->host_begin[o->hosts] = n;
    o->is_flat = o->in_view <= o->opt.flat && (o->hosts <= 1 || o->hosts == o->in_view);
}

static uint32_t leader(const struct rnl_order *o, uint32_t root, uint32_t host)
{
    return host == o->member[root].host_at ? root : o->by_host[o->host_begin[host]];
}

/* The r-th of n hangs below the first, or in a binary tree. */
static uint32_t above(const struct rnl_order *o, uint32_t r, uint32_t n)
{
    return n <= o->opt.flat ? 0 : (r - 1) / 2;
}
/* Those below the r-th of n are *first to the returned one, which is not below it. */
static uint32_t below(const struct rnl_order *o, uint32_t r, uint32_t n, uint32_t *first)
{
    const bool star = n <= o->opt.flat;
    const uint32_t from = star ? (r ? n : 1) : 2 * r + 1, end = star ? n : 2 * r + 3;
    *first = from < n ? from : n;
    return end < n ? end : n;
}

uint32_t rnl_order_parent(const struct rnl_order *o, uint32_t root)
{
    const struct member *m = &o->member[o->opt.self];
    if (o->is_flat || root == o->opt.self)
        return root;
    const uint32_t begin = o->host_begin[m->host_at], n = o->host_begin[m->host_at + 1] - begin;
    const uint32_t lead = leader(o, root, m->host_at), from = o->member[lead].at - begin;
    if (lead != o->opt.self)
        return o->by_host[begin + (above(o, (m->at - begin + n - from) % n, n) + from) % n];
    const uint32_t top = o->member[root].host_at;
    return leader(o, root, (above(o, (m->host_at + o->hosts - top) % o->hosts, o->hosts) + top) % o->hosts);
}

void rnl_order_to_all(struct rnl_order *o, uint32_t root, uint32_t but, const struct rnl_order_head *head,
                      struct rnl_order_item *item)
{
    const struct member *m = &o->member[o->opt.self];
    uint32_t r, end;
    if (o->is_flat) {
        for (uint32_t i = 0; root == o->opt.self && i < o->in_view; i++)
            if (o->view[i] != but)
                send_head(o, o->view[i], head, item);
        return;
    }
    const uint32_t begin = o->host_begin[m->host_at], n = o->host_begin[m->host_at + 1] - begin;
    const uint32_t top = o->member[root].host_at, lead = leader(o, root, m->host_at);
    const uint32_t from = o->member[lead].at - begin;
    const uint64_t forwards = root != o->opt.self;
    if (lead == o->opt.self)
        for (end = below(o, (m->host_at + o->hosts - top) % o->hosts, o->hosts, &r); r < end; r++) {
            send_head(o, leader(o, root, (r + top) % o->hosts), head, item);
            o->stats.forwarded += forwards;
        }
    for (end = below(o, (m->at - begin + n - from) % n, n, &r); r < end; r++) {
        send_head(o, o->by_host[begin + (r + from) % n], head, item);
        o->stats.forwarded += forwards;
    }
}
