/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link_rest.c - which links are awake, and when one rests. Those that are lie in a list, each with a time at which it
 * did not rest yet for sure: so whoever goes over them touches only those that may, and not what has left the caches
 * since. */
#include "base/sometimes.h"
#include "endpoint/link.h"

#define STILL_LEAST_NS ((uint64_t)100 * 1000)
enum { AHEAD = 4 /* of those that may rest, what is looked at is fetched so many places before */ };

void rnl_link_awakes(struct rnl_link *link)
{
    struct rnl_remote *r = link->remote;
    r->awakes[r->awake++] = (struct rnl_link_awake){0, link}; /* there is a place for each rank */
    r->woke++;
    link->awake = r->awake;
}

void rnl_remote_sleeps(struct rnl_conn *conn)
{
    struct rnl_link *link = conn->link;
    struct rnl_remote *r = link->remote;
    if (!link->awake)
        return;
    struct rnl_link_awake last = r->awakes[--r->awake];
    r->awakes[link->awake - 1] = last;
    last.link->awake = link->awake;
    link->awake = 0;
}

/* Nothing that an extract or a call waits for. */
static int conn_still(const struct rnl_conn *conn)
{
    const struct rnl_conn lane1 = {.lane1_hot = 1};
    return !conn->post_first && !conn->wants_room && !conn->waits && !conn->dying && !conn->gone &&
           !(conn->odd & ~lane1.odd) && conn->out[0].state == RNL_STREAM_FREE && conn->in[0].state == RNL_STREAM_FREE &&
           conn->in[1].state == RNL_STREAM_FREE && conn->link->remote->ep->open_short != &conn->out[0];
}

/* Gives its memory back if nothing has happened for so long. */
static void rest(struct rnl_link *link, uint64_t now_ns, uint64_t still_ns)
{
    struct rnl_conn *conn = link->conn;
    if (!link->up || link->over || link->marked || now_ns - rnl_flow_moved_ns(&link->flow) < still_ns ||
        !rnl_flow_idle(&link->flow) || !conn_still(conn) || !rnl_mirror_can_rest(link->mirror, &link->rest))
        return;
    rnl_flow_relax(&link->flow);
    if (rnl_flow_deadline(&link->flow) != UINT64_MAX)
        return;
    rnl_remote_not_due(link);
    rnl_ep_warm(link->remote->ep, conn); /* only hot ones can be taken out */
    rnl_ep_remove_hot(link->remote->ep, conn);
    rnl_pair_rest(&conn->pair, link->words);
    link->mirror = NULL; /* it was in there */
    rnl_remote_sleeps(conn);
    rnl_conn_shut(conn, RNL_SHUT_RESTS);
    RNL_SOMETIMES(1, "a link rests");
}

int rnl_remote_wake(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_link *link = conn->link;
    if (link->mirror)
        return 0;
    int status = rnl_pair_wake(&conn->pair, link->words);
    if (status < 0)
        return status;
    link->mirror = conn->pair.own;
    rnl_link_awakes(link);
    rnl_mirror_wake(link->mirror, &conn->pair, &link->rest);
    conn->shut &= (uint8_t)~RNL_SHUT_RESTS;
    RNL_SOMETIMES(1, "a link wakes");
    rnl_ep_add_hot(ep, conn);
    return 0;
}

void rnl_link_tell(struct rnl_link *link)
{
    for (unsigned lane = 0; link->mirror && lane < RNL_LANES; lane++) {
        struct rnl_rx *r = &link->conn->pair.rx[lane];
        if (!rnl_rx_untold(r))
            continue;
        rnl_rx_tell(r);
        r->told = 0; /* what a bell would do is done here */
        link->untold = 1;
    }
}

/* The more are awake, the sooner they rest: so their memory is bounded, whatever connects. What rests costs a few us
 * when it is used again. */
static uint64_t still_enough(const struct rnl_remote *r)
{
    uint64_t over = (uint64_t)r->awake * 16 / r->few, still = r->rest_after_ns;
    if (over > 16)
        still = still * 256 / (over * over);
    return still > STILL_LEAST_NS ? still : STILL_LEAST_NS;
}

static void fetch(const struct rnl_link_awake *a, uint64_t now_ns, uint64_t still_ns)
{
    if (now_ns - a->moved_ns < still_ns)
        return;
    __builtin_prefetch(&a->link->up);
    __builtin_prefetch(&a->link->flow.last_sent_ns);
    __builtin_prefetch(&a->link->flow.received.largest_ns);
    __builtin_prefetch(&a->link->flow.sent.count);
}

void rnl_link_let_rest(struct rnl_endpoint *ep, uint64_t now_ns)
{
    struct rnl_remote *r = ep->remote;
    uint64_t still = still_enough(r);
    if (now_ns < r->rest_ns && r->rest_ns - now_ns <= still)
        return;
    r->rest_ns = now_ns + still;
    r->woke = 0;
    for (uint32_t i = r->awake; i-- > 0;) { /* who rests leaves its place to one that was looked at */
        struct rnl_link *link = r->awakes[i].link;
        if (i >= AHEAD)
            fetch(&r->awakes[i - AHEAD], now_ns, still);
        if (now_ns - r->awakes[i].moved_ns < still)
            continue;
        if (r->awake > r->few) /* else its peer keeps what has been read, and neither side can rest */
            rnl_ep_tell(ep, link->conn);
        rest(link, now_ns, still);
        if (link->awake)
            r->awakes[link->awake - 1].moved_ns = link->up ? rnl_flow_moved_ns(&link->flow) : now_ns;
    }
}
