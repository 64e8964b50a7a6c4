/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.c - what must hold inside the library between any two calls; and what only its inside can be told. */
#include "endpoint/net.h"
#include "remote/remote_internal.h"
#include "ring/ring.h"
#include "support/must.h"
#include "swarm/world.h"

enum { WRAP_HOSTS = 16 };

static void say(struct rnl_credit_words *back, uint64_t granted, uint64_t bulk)
{
    atomic_store_explicit(&back->granted, granted, memory_order_relaxed); /* nobody looks yet */
    atomic_store_explicit(&back->bulk_read, bulk, memory_order_relaxed);
}

/* A connection that is still empty, as if so many lines and bulk bytes had gone each way. */
static void begin_at(struct swarm_host *h, unsigned peer, uint64_t line, uint64_t bulk)
{
    struct rnl_conn *conn;
    TEST_MUST(rnl_ep_connect(h->ep, peer, &conn) == 0);
    struct rnl_channel *p = &conn->channel;
    struct rnl_replica *m = conn->remote->replica;
    uint64_t units = line + bulk / 64;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &p->tx[lane];
        struct rnl_rx *r = &p->rx[lane];
        t->pos += 8 * line;
        t->counted = rnl_tx_records(t);
        t->acked += 8 * line;
        t->stop += t->ring ? 8 * line : 0;
        t->bulk_head = t->bulk_read = bulk;
        t->granted += units;
        r->pos += 8 * line;
        r->next_pos += 8 * line;
        r->expect += RNL_ROTATED_POS(8 * line);
        r->advertise_pos += 8 * line;
        rnl_rx_at(r, r->ring);
        r->acked_by_peer = 8 * line;
        r->bulk_next = r->bulk_read = r->advertised_bulk = bulk;
        r->advertised_grant += units;
        say(&p->mine->credit[lane], r->advertised_grant, bulk);
        say(&p->theirs->credit[lane], r->advertised_grant, bulk);
    }
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        m->out[lane].sent = rnl_tx_cell(&p->tx[lane]) << 3;
        m->in[lane].shown = ((p->rx[lane].pos >> 3) - 1) << 3;
        m->in[lane].highest = m->in[lane].shown >> 3;
        m->out[lane].bulk_sent = m->out[lane].start = bulk;
        m->in[lane].floor = m->in[lane].start = bulk;
        m->advertised[3 * lane + RNL_CREDIT_GRANTED] = p->rx[lane].advertised_grant;
        m->advertised[3 * lane + RNL_CREDIT_BULK_READ] = bulk;
    }
}

void swarm_adjust(struct swarm_host *h)
{
    const struct swarm_plan *p = &h->w->plan;
    struct rnl_remote *r = h->ep->remote;
    if (swarm_has(p, SWARM_ENCRYPT))
        r->hs.config.protect = RNL_PROTECT_ENCRYPT;
    else if (swarm_has(p, SWARM_OPEN))
        r->hs.config.protect = RNL_PROTECT_NOTHING_MEASURE_ONLY;
    r->config.ecn = p->ecn;
    r->config.keepalive_ns = p->asks_ns;
    if (p->line && p->hosts <= WRAP_HOSTS)
        for (unsigned i = 0; i < p->hosts; i++)
            if (i != h->rank)
                begin_at(h, i, p->line, p->bulk);
}

static void check_link(const struct swarm_host *h, const struct rnl_remote_conn *link)
{
    const char *wrong = link->has_flow ? rnl_flow_valid(&link->flow) : NULL;
    unsigned peer = link->rank;
    if (wrong)
        swarm_wrong("rank %u, flow to rank %u: %s", h->rank, peer, wrong);
    if (!link->replica || link->closed)
        return;
    int broken = rnl_replica_valid(link->replica);
    if (broken)
        swarm_wrong("rank %u, replica of rank %u: invariant %d does not hold", h->rank, peer, broken);
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        int tx = rnl_tx_valid(&link->channel->tx[lane]), rx = rnl_rx_valid(&link->channel->rx[lane]);
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
            .change_after = h->w->plan.key_packets, .never_after = h->w->plan.key_most, .forgeries = UINT64_MAX};
    swarm_tap_taken(h, ep->remote->count->received);
    if (ep->credit.granted > ep->credit.budget && ep->credit.granted > (uint64_t)ep->size * 3 * RNL_GRANT_MIN * 64)
        swarm_wrong("rank %u has granted %llu bytes of a budget of %llu", h->rank,
                    (unsigned long long)ep->credit.granted, (unsigned long long)ep->credit.budget);
    uint64_t standing = 0;
    for (unsigned i = 0; i < ep->size; i++) {
        const struct rnl_conn *conn = conn_of(h, i);
        if (!conn)
            continue;
        standing += conn->channel.rx[0].outstanding_max * 64;
        if (conn->remote)
            check_link(h, conn->remote);
    }
    if (standing > ep->credit.granted)
        swarm_wrong("rank %u has %llu bytes of grants standing, and thinks of %llu", h->rank,
                    (unsigned long long)standing, (unsigned long long)ep->credit.granted);
}

static uint64_t load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static int one_connection(const struct rnl_conn *ours, const struct rnl_conn *theirs)
{
    const struct rnl_remote_conn *a = ours ? ours->remote : NULL, *b = theirs ? theirs->remote : NULL;
    return a && b && a->established && b->established && a->flow.connection == b->hs.rx_connection &&
           b->flow.connection == a->hs.rx_connection;
}

/* What one knows of the other is never ahead of what the other has said, nor what it has read of what was sent. */
static void check_pair(const struct swarm_host *a, const struct swarm_host *b)
{
    const struct rnl_conn *ours = conn_of(a, b->rank), *theirs = conn_of(b, a->rank);
    if (swarm_has(&a->w->plan, SWARM_READMIT) && !one_connection(ours, theirs))
        return;
    if (!ours || !theirs || !ours->remote || !theirs->remote || ours->remote->closed || theirs->remote->closed ||
        !ours->remote->replica || !theirs->remote->replica)
        return;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        const struct rnl_credit_words *said = &theirs->channel.mine->credit[lane],
                                      *known = &ours->channel.theirs->credit[lane];
        if (load(&known->position) > load(&said->position) || load(&known->granted) > load(&said->granted) ||
            load(&known->bulk_read) > load(&said->bulk_read))
            swarm_wrong("rank %u knows of rank %u, lane %u, what that has not said: position %llu of %llu, granted "
                        "%llu of %llu, read %llu of %llu",
                        a->rank, b->rank, lane, (unsigned long long)load(&known->position),
                        (unsigned long long)load(&said->position), (unsigned long long)load(&known->granted),
                        (unsigned long long)load(&said->granted), (unsigned long long)load(&known->bulk_read),
                        (unsigned long long)load(&said->bulk_read));
        if (theirs->channel.rx[lane].pos > RNL_CELL_START(ours->channel.tx[lane].pos))
            swarm_wrong("rank %u has read up to %llu of what rank %u wrote into lane %u, up to %llu", b->rank,
                        (unsigned long long)theirs->channel.rx[lane].pos, a->rank, lane,
                        (unsigned long long)ours->channel.tx[lane].pos);
    }
}

void swarm_check_pairs(struct swarm_world *w)
{
    for (unsigned i = 0; i < w->plan.hosts; i++)
        for (unsigned k = 0; k < w->plan.hosts; k++)
            if (i != k && swarm_host_in_job(&w->host[i]) && swarm_host_in_job(&w->host[k]))
                check_pair(&w->host[i], &w->host[k]);
}
