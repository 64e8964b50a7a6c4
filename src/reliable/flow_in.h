/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_in.h - what flow.c, flow_out.c and flow_time.c have in common. */
#ifndef RNL_RELIABLE_FLOW_IN_H
#define RNL_RELIABLE_FLOW_IN_H

#include "reliable/flow.h"

enum {
    RNL_FLOW_CLOSE_TRIES = 8,
    RNL_FLOW_SPARE = 128,   /* a packet with less left over is a full one */
    RNL_FLOW_KEY_SPARE = 8, /* packets of a key that are kept for asking whether the peer has it */
    RNL_FLOW_LOWER_MTU = 2, /* timeouts in a row, then probes are of the first size */
    RNL_FLOW_STUCK_TIMEOUTS = 3,
    RNL_FLOW_SUSPECT_TIMEOUTS = 2,
    RNL_FLOW_DEAD_TIMEOUTS = 3,
    RNL_FLOW_COLLAPSE = 3,      /* PTO during which all was lost */
    RNL_FLOW_RETRY_NS = 1000000 /* to ask for memory again */
};

/* A datagram of so many bytes, on the wire and in a socket's buffer. */
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

/* The upper side gets its notes back. */
void rnl_flow_give_back(struct rnl_flow *f, struct rnl_sent_packet *record);
/* An open packet leaves what is in flight. */
void rnl_flow_landed(struct rnl_flow *f, const struct rnl_sent_packet *record);
/* Header and tag around a body of `body` bytes that is at its place. 0 = it cannot go, and its number was not used. */
uint32_t rnl_flow_finish(struct rnl_flow *f, unsigned char *at, uint32_t room, struct rnl_packet *p, uint32_t body);
/* May a data packet go, as far as windows, memory and keys are concerned? */
int rnl_flow_window_open(const struct rnl_flow *f, uint64_t now_ns);
/* Packets that need not go now may go, as far as the key is concerned. */
int rnl_flow_keys_open(const struct rnl_flow *f);
/* One PTO, without the doubling. */
uint64_t rnl_flow_pto_ns(const struct rnl_flow *f);
/* When the peer should have answered. */
uint64_t rnl_flow_timeout_at(const struct rnl_flow *f);
/* What came since the last output; then what time says. May end the flow. */
void rnl_flow_judge(struct rnl_flow *f, uint64_t now_ns);
void rnl_flow_timers(struct rnl_flow *f, uint64_t now_ns);
/* CLOSE came. The highest bit of its reason says that it answers ours. */
#define RNL_FLOW_CLOSE_ANSWER 0x80000000u
void rnl_flow_peer_closes(struct rnl_flow *f, uint32_t reason, uint64_t now_ns);
/* A CLOSE is to be sent now: its reason goes to *reason. */
int rnl_flow_close_due(const struct rnl_flow *f, uint64_t now_ns, uint32_t *reason);
void rnl_flow_close_sent(struct rnl_flow *f, uint64_t now_ns);
/* Data may go: not once it is over, nor when it is to end at once. */
RNL_INLINE int rnl_flow_delivers(const struct rnl_flow *f)
{
    return f->state < RNL_FLOW_CLOSING || (f->state == RNL_FLOW_CLOSING && f->drain);
}
/* All that was to be delivered before the end has been. */
int rnl_flow_drained(const struct rnl_flow *f);

#endif
