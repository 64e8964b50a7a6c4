/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ecn.h - ECN marks, which are used only once the path is validated (RFC 9000, 13.4.2). Packets are sent as
 * ECN-capable, and the peer counts how many arrive as such and how many with a mark. If the network removes the marks,
 * or marks every packet although there is no queue, ECN is off for the rest of the flow. */
#ifndef RNL_NET_FLOW_ECN_H
#define RNL_NET_FLOW_ECN_H

#include <stdint.h>

#include "base/error.h"

enum { RNL_ECT_NOT = 0, RNL_ECT_1 = 1, RNL_ECT_0 = 2, RNL_ECT_CE = 3 }; /* in the IP header */

enum rnl_ecn_state { RNL_ECN_OFF = 0, RNL_ECN_TESTING, RNL_ECN_BELIEVED, RNL_ECN_FAILED };
enum {
    RNL_ECN_TEST = 10,   /* packets that must arrive before marks are believed */
    RNL_ECN_ALWAYS = 256 /* consecutive marked packets without a queue that show that the network marks everything */
};
struct rnl_ecn_trust {
    uint32_t ce, ect; /* the peer's last counts */
    uint32_t sent;    /* ECN-capable packets sent, low half */
    uint16_t row;     /* consecutive marked packets; while testing, consecutive lost ones */
    uint8_t state;    /* enum rnl_ecn_state */
    uint8_t good;     /* packets that have arrived, up to RNL_ECN_TEST */
};
void rnl_ecn_init(struct rnl_ecn_trust *ecn, int use);
RNL_INLINE unsigned rnl_ecn_codepoint(const struct rnl_ecn_trust *ecn)
{
    return ecn->state == RNL_ECN_TESTING || ecn->state == RNL_ECN_BELIEVED ? RNL_ECT_0 : RNL_ECT_NOT;
}
/* `capable` of the newly acknowledged packets were sent as ECN-capable. has_counts says that the peer's block had
 * counts (ce and ect), and `queue` that the round trip shows a queue. Returns how many marks are to be believed. */
uint32_t rnl_ecn_acked(struct rnl_ecn_trust *ecn, uint32_t capable, int has_counts, uint32_t ce, uint32_t ect,
                       int queue);
/* ECN-capable packets were lost. If that happens to all of the first ones, the path may drop them for being
 * ECN-capable, and ECN is turned off. */
void rnl_ecn_lost(struct rnl_ecn_trust *ecn, uint32_t capable);

#endif
