/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_internal.h - what flow.c, flow_out.c, flow_turn.c and flow_time.c have in common. */
#ifndef RNL_NET_FLOW_FLOW_INTERNAL_H
#define RNL_NET_FLOW_FLOW_INTERNAL_H

#include "net/flow/flow.h"

enum {
    RNL_FLOW_CLOSE_TRIES = 8,
    RNL_FLOW_SPARE = 128,   /* bytes; a packet with less unused room counts as a full one */
    RNL_FLOW_KEY_SPARE = 8, /* packets of a key that are kept for probes, whose acknowledgement confirms the key */
    RNL_FLOW_LOWER_MTU = 2, /* consecutive timeouts after which probes have the first size of the table */
    RNL_FLOW_STUCK_TIMEOUTS = 2,
    RNL_FLOW_STUCK_PTO = 3, /* what so many timeouts take, of which each is twice as long as the one before */
    RNL_FLOW_SUSPECT_TIMEOUTS = 2,
    RNL_FLOW_DEAD_TIMEOUTS = 3,
    RNL_FLOW_COLLAPSE = 3,      /* PTO: losing everything for so long is persistent congestion (RFC 9002, 7.6) */
    RNL_FLOW_RETRY_NS = 1000000 /* the interval between requests for memory */
};

/* What a datagram of `bytes` takes on the wire, and in the peer's socket buffer. */
RNL_INLINE uint64_t rnl_flow_cost(const struct rnl_flow *f, uint32_t bytes)
{
    return (uint64_t)bytes + f->config->wire_bytes;
}
RNL_INLINE uint64_t rnl_flow_charge(const struct rnl_flow *f, uint32_t bytes)
{
    return (uint64_t)bytes + f->config->buffer_bytes;
}
RNL_INLINE uint32_t rnl_flow_packet(const struct rnl_flow *f)
{
    return f->mtu.bytes + f->config->wire_bytes;
}
RNL_INLINE uint64_t rnl_flow_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Reports the notes of a packet as lost to the upper side, which will send their content again, and frees them. */
void rnl_flow_free_records(struct rnl_flow *f, struct rnl_sent_packet *record);
/* Takes an open packet off the bytes in flight. */
void rnl_flow_landed(struct rnl_flow *f, const struct rnl_sent_packet *record);
/* Writes header and tag around a body of `body` bytes that is at its place already. Returns the bytes of the datagram;
 * 0 = it cannot be sent, and its number was not used. */
uint32_t rnl_flow_finish(struct rnl_flow *f, unsigned char *at, uint32_t room, struct rnl_packet *p, uint32_t body);
/* true = the congestion window and the peer's socket buffer allow one more data packet. */
bool rnl_flow_window_open(const struct rnl_flow *f, uint64_t now_ns);
/* true = the key still has room for packets other than probes. */
bool rnl_flow_keys_open(const struct rnl_flow *f);
/* Returns one probe timeout, without the doubling. */
uint64_t rnl_flow_pto_ns(const struct rnl_flow *f);
/* Returns when the probe timeout expires. */
uint64_t rnl_flow_timeout_at(const struct rnl_flow *f);
/* Draws the conclusions from the acknowledgements that arrived since the last output, and from the time. Both may end
 * the flow. */
void rnl_flow_judge(struct rnl_flow *f, uint64_t now_ns);
void rnl_flow_timers(struct rnl_flow *f, uint64_t now_ns);
/* Takes in a CLOSE of the peer. The highest bit of its reason says that it answers ours. */
#define RNL_FLOW_CLOSE_REPLY 0x80000000u
void rnl_flow_peer_closes(struct rnl_flow *f, uint32_t reason, uint64_t now_ns);
/* true = a CLOSE with *reason has to be sent now. */
bool rnl_flow_close_due(const struct rnl_flow *f, uint64_t now_ns, uint32_t *reason);
void rnl_flow_close_sent(struct rnl_flow *f, uint64_t now_ns);
/* true = data may be sent: the flow has not ended, and is not closing without a drain. */
RNL_INLINE bool rnl_flow_delivers(const struct rnl_flow *f)
{
    return f->state < RNL_FLOW_CLOSING || (f->state == RNL_FLOW_CLOSING && f->drain);
}
/* true = everything that has to be delivered before the end is acknowledged. */
bool rnl_flow_drained(const struct rnl_flow *f);

#endif
