/* SPDX-License-Identifier: BSD-3-Clause
 *
 * received.h - which packets of the peer have come, and when to say so. A window of the last numbers: what is older, or
 * has come before, is refused, so nothing is taken twice and nothing can be replayed.
 *
 * Acknowledgements are sent at once if the peer asks, or if something is missing or came late; else after `every`
 * packets, or `delay` after the first. Those packets themselves are not acknowledged. What the peer is known to have
 * been told is not repeated. */
#ifndef RNL_RELIABLE_RECEIVED_H
#define RNL_RELIABLE_RECEIVED_H

#include "wire/packet.h"

enum { RNL_RECEIVED_BITS = 512, RNL_RECEIVED_WORDS = RNL_RECEIVED_BITS / 64, RNL_RECEIVED_JUMBO = 8972 };

struct rnl_received {
    uint64_t largest;                  /* 0 = none yet */
    uint64_t floor;                    /* below, everything has been told and heard */
    uint64_t control;                  /* largest number of the control space */
    uint64_t control_seen;             /* bit n: so has control - n */
    uint64_t largest_ns;               /* when `largest` came */
    uint64_t due_ns;                   /* an acknowledgement is owed by then; UINT64_MAX = none */
    uint64_t word[RNL_RECEIVED_WORDS]; /* bit n % RNL_RECEIVED_BITS, for largest - RNL_RECEIVED_BITS < n <= largest */
    uint32_t ce, ect;                  /* how they were marked */
    uint16_t unsaid;                   /* packets since the last acknowledgement */
    uint8_t ack_now;
};

void rnl_received_init(struct rnl_received *received);
/* Numbers of data; of control packets, which have nothing to say once a later one has come; of those that have (PATH,
 * which may go another way than the rest). */
enum rnl_received_space { RNL_RECEIVED_DATA = 0, RNL_RECEIVED_CONTROL, RNL_RECEIVED_LATE_CONTROL };
/* May this number still be new? To be asked before anything is believed, and again says the same until it is noted. */
int rnl_received_is_new(const struct rnl_received *received, enum rnl_received_space space, uint64_t number);
/* It has come, and its tag was right. */
void rnl_received_control(struct rnl_received *received, uint64_t number);
/* How many packets as long as this one are acknowledged together, where it is `every` of usual ones. Of those that are
 * longer than a jumbo frame fewer, for as many bytes: the window is a few of them. */
RNL_INLINE unsigned rnl_received_every(unsigned every, uint32_t bytes)
{
    unsigned fewer = bytes <= RNL_RECEIVED_JUMBO ? every : every * RNL_RECEIVED_JUMBO / bytes;
    return fewer ? fewer : 1;
}
void rnl_received_data(struct rnl_received *received, uint64_t number, int asked, unsigned ecn, unsigned every,
                       uint32_t delay_ns, uint64_t now_ns);
/* What can be said now; returns 0 if nothing has ever come. The caller adds the window. */
int rnl_received_tell(const struct rnl_received *received, uint64_t now_ns, struct rnl_ack *ack);
/* It is on its way. */
RNL_INLINE void rnl_received_told(struct rnl_received *received)
{
    received->unsaid = 0;
    received->ack_now = 0;
    received->due_ns = UINT64_MAX;
}
/* The peer has heard an acknowledgement whose largest number ended in these 32 bits. */
void rnl_received_heard(struct rnl_received *received, uint32_t told);

#endif
