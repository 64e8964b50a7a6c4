/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll.h - which connections an extract looks at: polled, armed, idle (poll.c, arm.c).
 *
 * Every extract looks at a polled connection. It does not look at an armed one: the sender rings the bell, whose
 * word every extract compares with its value at the last look at all armed rings. The bell is a hint. Rounds, about
 * a millisecond of polling apart, look at all armed rings in any case, and so does whoever goes to sleep. */
#ifndef RNL_ENDPOINT_POLL_H
#define RNL_ENDPOINT_POLL_H

#include "endpoint/endpoint.h"

enum { RNL_ADVERTISED_PER_CLOCK = 16, RNL_POLLED_ALWAYS = 4 /* as few as these are always polled */ };
#define RNL_ROUND_NS ((uint64_t)1000 * 1000)
/* How often an endpoint that polls looks for events that come through descriptors (facts.must_look): a look costs a
 * system call, so one in this time is below one percent. */
#define RNL_LOOK_NS ((uint64_t)50 * 1000)
void rnl_ep_add_polled(struct rnl_endpoint *ep, struct rnl_conn *conn); /* conn is new */
void rnl_ep_remove_polled(struct rnl_endpoint *ep, struct rnl_conn *conn);
void rnl_ep_set_sole(struct rnl_endpoint *ep); /* after a change of what is polled or exceptional */
/* Returns the sum of conn's positions, sent and read. The sum changes with each cell that is sent or read. */
RNL_INLINE uint64_t rnl_ep_positions(const struct rnl_conn *conn)
{
    uint64_t sum = 0;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        sum += conn->channel.tx[lane].pos + conn->channel.rx[lane].pos;
    return sum;
}
/* Makes those polled connections to other hosts idle from which nothing is to be expected before a packet comes. Must
 * not be called while fast.conns is walked. */
void rnl_ep_find_idle(struct rnl_endpoint *ep);
/* Makes conn polled, if it is not. The places of other polled connections do not change. */
void rnl_ep_promote(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Arm all rings, or those of conn, as they have to be now: for whoever sleeps, and armed connections in any case.
 * Before a sleep a heavy fence and a look have to follow. */
void rnl_ep_arm_all(struct rnl_endpoint *ep);
void rnl_ep_arm(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Messages that wait at the head of their lanes for a handler are looked at again. */
void rnl_ep_look_at_heads(struct rnl_endpoint *ep);
/* Returns true if conn has cells of lane 0, parked chunks, or replies, that an extract would try to take in. */
bool rnl_ep_has_cells(struct rnl_conn *conn);
/* Looks at all armed rings and makes those that have cells polled. Returns their number. */
uint32_t rnl_ep_look_armed(struct rnl_endpoint *ep);
/* Looks at the armed rings after the bell rang. */
void rnl_ep_check_bell_slow(struct rnl_endpoint *ep);
RNL_INLINE bool rnl_ep_bell_rang(const struct rnl_endpoint *ep)
{
    return atomic_load_explicit(ep->fast.bell, memory_order_relaxed) != ep->fast.bell_seen; /* reloaded with acquire */
}
RNL_INLINE void rnl_ep_check_bell(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(rnl_ep_bell_rang(ep)))
        rnl_ep_check_bell_slow(ep);
}
/* If a round is due, looks at all armed rings, makes polled connections armed on which nothing comes, and returns their
 * number. They come next after the polled ones; what was read of them is still to be advertised, a fence and a look at
 * all armed rings have to follow. */
uint32_t rnl_ep_demote(struct rnl_endpoint *ep, uint64_t now_ns);
/* Does a round, if one is due, with all that belongs to it. Must not be called during an extract. */
void rnl_ep_round(struct rnl_endpoint *ep, uint64_t now_ns);
/* Counts for an endpoint too busy to look at the clock: the next extract does a round, if one is due. */
RNL_NOINLINE void rnl_ep_round_due(struct rnl_endpoint *ep);

/* Rings the peer's bell after an advertisement, if the peer sleeps for want of room. */
RNL_INLINE void rnl_ep_advertised(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    ep->poll.advertised += conn->channel.big_rx ? RNL_ADVERTISED_PER_CLOCK : 1; /* a quarter of a big ring takes long */
    if (RNL_UNLIKELY(ep->poll.advertised >= RNL_ADVERTISED_PER_CLOCK))          /* see stream/poll.h */
        rnl_ep_round_due(ep);
    if (RNL_UNLIKELY(rnl_tx_armed(&conn->channel.tx[0], RNL_ARMED_ROOM) | conn->channel.senders_fence))
        (void)rnl_ep_ring_bell(ep, conn, RNL_ARMED_ROOM);
}

#endif
