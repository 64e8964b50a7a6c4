/* SPDX-License-Identifier: BSD-3-Clause
 *
 * credit.c - the receive budget: what each peer may have outstanding, which peer gets more, and which returns some. */
#include "base/sometimes.h"
#include "endpoint/endpoint.h"

/* A peer starts with an even share of half the budget. The other half goes to peers that send much. */
uint64_t rnl_ep_first_grant(const struct rnl_endpoint *ep)
{
    uint64_t units = ep->credit.budget / 64 / (2 * (uint64_t)ep->size);
    return units < RNL_GRANT_MIN ? RNL_GRANT_MIN : units < RNL_GRANT_FULL ? units : RNL_GRANT_FULL;
}

uint64_t rnl_ep_max_grant(const struct rnl_endpoint *ep)
{
    uint64_t first = rnl_ep_first_grant(ep), others = (ep->size - 1) * first + (uint64_t)ep->size * RNL_GRANT_MIN;
    uint64_t units = ep->credit.budget / 64 > others ? ep->credit.budget / 64 - others : 0;
    return units < first ? first : units < RNL_GRANT_FULL ? units : RNL_GRANT_FULL;
}

/* Raises the standing grant to so many units. Returns true if it is that high now. */
static bool grant(struct rnl_endpoint *ep, struct rnl_rx *r, uint64_t units)
{
    uint64_t more = units > r->outstanding_max ? (units - r->outstanding_max) * 64 : 0;
    uint64_t minimum = (uint64_t)ep->size * RNL_GRANT_MIN * 64; /* reserved for peers that have not connected */
    if (more != 0 && ep->credit.granted + minimum + more > ep->credit.budget)
        return false;
    ep->credit.granted += more;
    rnl_rx_grant(r, units);
    return true;
}

void rnl_ep_grant_more(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    struct rnl_rx *r = &conn->channel.rx[0];
    uint64_t wanted = rnl_rx_credit_wanted(r);
    if (!grant(ep, r, rnl_grant_full(r->bulk_mask)) && !grant(ep, r, wanted))
        rnl_ep_reallocate(ep); /* what others do not use comes back in their calls */
}

void rnl_ep_reallocate(struct rnl_endpoint *ep)
{
    uint64_t share = rnl_ep_first_grant(ep);
    for (uint32_t i = 0; i < ep->poll.connected; i++) {
        struct rnl_rx *r = &ep->fast.conns[i]->channel.rx[0];
        if (rnl_rx_credit_wanted(r) <= r->outstanding_max) /* a peer that wants more uses what it has */
            rnl_rx_reclaim(r, share);
    }
}

/* Brings the last acknowledgement of each lane up to what is known, before it is 2^16 behind and so of no use.
 * Peers on other hosts are left out: their credit words come with the next packet, but their cells only when it is
 * their turn, or again after a loss, so an acknowledgement may be older than all that is known, by any number of rounds
 * of the ring. There it may stay behind by a multiple of 2^16: it then acknowledges less than it means, and the credit
 * words do the rest. */
static void refresh_acks(struct rnl_channel *p)
{
    uint64_t lag = RNL_BUGGIFY("acknowledgements are brought up to date early") ? 0 : RNL_ACK_LAG_MAX;
    if (p->is_remote)
        return;
    for (unsigned lane = 0; lane < 2; lane++)
        rnl_rx_refresh_ack(&p->rx[lane], &p->tx[0], lag);
}

void rnl_ep_credit(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->poll.connected; i++) {
        rnl_tx_return_credit(&ep->fast.conns[i]->channel.tx[0]);
        ep->credit.granted -= rnl_rx_reclaimed(&ep->fast.conns[i]->channel.rx[0]) * 64;
        refresh_acks(&ep->fast.conns[i]->channel);
        if (rnl_rx_credit_wanted(&ep->fast.conns[i]->channel.rx[0]) > ep->fast.conns[i]->channel.rx[0].outstanding_max)
            rnl_ep_grant_more(ep, ep->fast.conns[i]);
    }
}
