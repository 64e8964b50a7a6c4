/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.c - what must hold inside the library between any two calls; and what only its inside can be told. */
#include "endpoint/link.h"
#include "ring/ring.h"
#include "swarm/world.h"

enum { PACKETS_OF_A_KEY = 40 };

void swarm_adjust(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    struct rnl_remote *r = h->ep->remote;
    if (swarm_has(p, SWARM_ENCRYPT))
        r->hs.config.protect = RNL_PROTECT_ENCRYPT;
    else if (swarm_has(p, SWARM_OPEN))
        r->hs.config.protect = RNL_PROTECT_NOTHING_MEASURE_ONLY;
}

static void check_link(const struct swarm_host *h, const struct rnl_link *link)
{
    const char *wrong = link->flows ? rnl_flow_valid(&link->flow) : NULL;
    unsigned peer = link->conn->rank;
    if (wrong)
        swarm_wrong("rank %u, flow to rank %u: %s", h->rank, peer, wrong);
    if (!link->mirror || link->over)
        return;
    int broken = rnl_mirror_valid(link->mirror);
    if (broken)
        swarm_wrong("rank %u, mirror of rank %u: invariant %d does not hold", h->rank, peer, broken);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        int tx = rnl_tx_valid(&link->conn->pair.tx[lane]), rx = rnl_rx_valid(&link->conn->pair.rx[lane]);
        if (tx | rx)
            swarm_wrong("rank %u, lane %u of rank %u: invariants %d, %d of its rings do not hold", h->rank, lane, peer,
                        tx, rx);
    }
}

static struct rnl_conn *conn_of(const struct swarm_host *h, unsigned peer)
{
    return h->ep ? h->ep->peer[peer].conn : NULL;
}

void swarm_check_host(struct swarm_host *h)
{
    struct rnl_endpoint *ep = h->ep;
    if (!ep)
        return;
    if (swarm_has(&h->w->plan, SWARM_KEYS)) /* all keys of an endpoint share them */
        ep->remote->limits = (struct rnl_key_limits){
            .change_after = PACKETS_OF_A_KEY, .never_after = 2 * PACKETS_OF_A_KEY, .forgeries = UINT64_MAX};
    if (ep->granted > ep->budget && ep->granted > (uint64_t)ep->size * 3 * RNL_GRANT_MIN * 64)
        swarm_wrong("rank %u has granted %llu bytes of a budget of %llu", h->rank, (unsigned long long)ep->granted,
                    (unsigned long long)ep->budget);
    uint64_t standing = 0;
    for (unsigned i = 0; i < ep->size; i++) {
        const struct rnl_conn *conn = conn_of(h, i);
        if (!conn)
            continue;
        standing += conn->pair.rx[0].standing * 64;
        if (conn->link)
            check_link(h, conn->link);
    }
    if (standing > ep->granted)
        swarm_wrong("rank %u has %llu bytes of grants standing, and thinks of %llu", h->rank,
                    (unsigned long long)standing, (unsigned long long)ep->granted);
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* What one knows of the other is never ahead of what the other has said, nor what it has read of what was sent. */
static void check_pair(const struct swarm_host *a, const struct swarm_host *b)
{
    const struct rnl_conn *ours = conn_of(a, b->rank), *theirs = conn_of(b, a->rank);
    if (!ours || !theirs || !ours->link || !theirs->link || ours->link->over || theirs->link->over ||
        !ours->link->mirror || !theirs->link->mirror)
        return;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        const struct rnl_back *said = &theirs->pair.mine->back[lane], *known = &ours->pair.theirs->back[lane];
        if (load(&known->position) > load(&said->position) || load(&known->granted) > load(&said->granted) ||
            load(&known->bulk_read) > load(&said->bulk_read))
            swarm_wrong("rank %u knows of rank %u, lane %u, what that has not said: position %llu of %llu, granted "
                        "%llu of %llu, read %llu of %llu",
                        a->rank, b->rank, lane, (unsigned long long)load(&known->position),
                        (unsigned long long)load(&said->position), (unsigned long long)load(&known->granted),
                        (unsigned long long)load(&said->granted), (unsigned long long)load(&known->bulk_read),
                        (unsigned long long)load(&said->bulk_read));
        if (theirs->pair.rx[lane].pos > RNL_LINE_START(ours->pair.tx[lane].pos))
            swarm_wrong("rank %u has read up to %llu of what rank %u wrote into lane %u, up to %llu", b->rank,
                        (unsigned long long)theirs->pair.rx[lane].pos, a->rank, lane,
                        (unsigned long long)ours->pair.tx[lane].pos);
    }
}

void swarm_check_pairs(struct swarm_world *w)
{
    for (unsigned i = 0; i < w->plan.hosts; i++)
        for (unsigned k = 0; k < w->plan.hosts; k++)
            if (i != k && w->host[i].now && w->host[k].now && w->host[i].now->number == 0 &&
                w->host[k].now->number == 0)
                check_pair(&w->host[i], &w->host[k]);
}
