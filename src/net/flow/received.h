/* SPDX-License-Identifier: BSD-3-Clause
 *
 * received.h - which packets of the peer have arrived, and when to acknowledge them. It keeps a window of the last
 * numbers and rejects what is older or has arrived before, so nothing is taken in twice and nothing can be replayed.
 *
 * An acknowledgement is sent at once if the peer requests it, or if a packet is missing or out of order; otherwise
 * after `every` packets, or `delay` after the first. Where the one before was of several packets, a missing one only
 * makes it due after half as many: at once, 5 % of loss would double the acknowledgements of a long stream, and their
 * cost. Packets that carry only an acknowledgement are not acknowledged, and numbers that the peer is known to have
 * seen acknowledged are not repeated. */
#ifndef RNL_NET_FLOW_RECEIVED_H
#define RNL_NET_FLOW_RECEIVED_H

#include "net/wire/packet.h"
#include <stdbool.h>

enum {
    RNL_RECEIVED_BITS = 512,
    RNL_RECEIVED_WORDS = RNL_RECEIVED_BITS / 64,
    RNL_RECEIVED_JUMBO = 8972,
    RNL_RECEIVED_RUN = 4
};

struct rnl_received {
    uint64_t largest;                  /* 0 = none yet */
    uint64_t floor;                    /* the peer has seen everything below acknowledged */
    uint64_t control;                  /* largest number of the control space */
    uint64_t control_seen;             /* bit n: number control - n has arrived */
    uint64_t largest_ns;               /* when `largest` arrived */
    uint64_t due_ns;                   /* an acknowledgement is owed by then; UINT64_MAX = none */
    uint64_t word[RNL_RECEIVED_WORDS]; /* bit n % RNL_RECEIVED_BITS, for largest - RNL_RECEIVED_BITS < n <= largest */
    uint32_t ce, ect;                  /* packets that arrived marked, and as ECN-capable without a mark */
    uint16_t unacknowledged;           /* packets since the last acknowledgement */
    uint8_t gap;                       /* since then a packet was found missing */
    uint8_t in_runs;                   /* the last acknowledgement was of RNL_RECEIVED_RUN packets or more */
    uint8_t ack_now;                   /* an acknowledgement is sent at once */
};

void rnl_received_init(struct rnl_received *received);
/* Which numbers count as new. LATE_CONTROL is for PATH, which may take another path than the rest and may therefore
 * arrive after later control packets; CONTROL is for the others, which are void once a later one has arrived. */
enum rnl_received_space { RNL_RECEIVED_DATA = 0, RNL_RECEIVED_CONTROL, RNL_RECEIVED_LATE_CONTROL };
/* true = this number may be new. To be called before a packet is opened; the result stays the same until the number is
 * noted by one of the calls below. */
bool rnl_received_is_new(const struct rnl_received *received, enum rnl_received_space space, uint64_t number);
/* Notes the number of a control packet whose tag was right. */
void rnl_received_control(struct rnl_received *received, uint64_t number);
/* Returns how many packets of this length are acknowledged together, if it is `every` of usual ones. Packets longer
 * than a jumbo frame are acknowledged as often by bytes, since a window holds only a few of them. */
RNL_INLINE unsigned rnl_received_every(unsigned every, uint32_t bytes)
{
    unsigned fewer = bytes <= RNL_RECEIVED_JUMBO ? every : every * RNL_RECEIVED_JUMBO / bytes;
    return fewer ? fewer : 1;
}
/* Notes the number of a data packet whose tag was right. `asked` says that it requests an acknowledgement at once. */
void rnl_received_data(struct rnl_received *received, uint64_t number, int asked, unsigned ecn, unsigned every,
                       uint32_t delay_ns, uint64_t now_ns);
/* Fills in what can be acknowledged now, except for the window, which the caller adds. false = nothing has ever
 * arrived. */
bool rnl_received_ack(const struct rnl_received *received, uint64_t now_ns, struct rnl_ack *ack);
/* Notes that this acknowledgement was sent. */
RNL_INLINE void rnl_received_ack_sent(struct rnl_received *received)
{
    received->in_runs = received->unacknowledged >= RNL_RECEIVED_RUN;
    received->unacknowledged = 0;
    received->gap = 0;
    received->ack_now = 0;
    received->due_ns = UINT64_MAX;
}
/* The peer has received an acknowledgement of ours whose largest number has these low 32 bits. */
void rnl_received_heard(struct rnl_received *received, uint32_t acked);

#endif
