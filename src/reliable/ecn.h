/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ecn.h - marks of congestion, believed only after they have been checked (RFC 9000 13.4.2). Packets go out marked as
 * capable; the peer says how many came so and how many marked. Marks that disappear on the way, or that are on every
 * packet although there is no queue, are no marks of congestion, and ECN is left alone for the rest of the flow. */
#ifndef RNL_RELIABLE_ECN_H
#define RNL_RELIABLE_ECN_H

#include <stdint.h>

#include "base/error.h"

enum { RNL_ECT_NOT = 0, RNL_ECT_1 = 1, RNL_ECT_0 = 2, RNL_ECT_CE = 3 }; /* in the IP header */

enum rnl_ecn_state { RNL_ECN_OFF = 0, RNL_ECN_TESTING, RNL_ECN_BELIEVED, RNL_ECN_FAILED };
enum {
    RNL_ECN_TEST = 10,   /* packets that must come through before marks are believed */
    RNL_ECN_ALWAYS = 256 /* this many in a row marked, and no queue: the network marks everything */
};
struct rnl_ecn_trust {
    uint32_t ce, ect; /* the peer's last counts */
    uint32_t sent;    /* capable ones sent, low half */
    uint16_t row;     /* marked ones in a row */
    uint8_t state;    /* enum rnl_ecn_state */
    uint8_t good;     /* that came through, of RNL_ECN_TEST */
};
void rnl_ecn_init(struct rnl_ecn_trust *ecn, int use);
RNL_INLINE unsigned rnl_ecn_codepoint(const struct rnl_ecn_trust *ecn)
{
    return ecn->state == RNL_ECN_TESTING || ecn->state == RNL_ECN_BELIEVED ? RNL_ECT_0 : RNL_ECT_NOT;
}
/* `capable` of the newly acknowledged packets went out so; the peer's counts, if its block had any; was there a queue?
 * Returns how many marks are to be believed. */
uint32_t rnl_ecn_acked(struct rnl_ecn_trust *ecn, uint32_t capable, int has_counts, uint32_t ce, uint32_t ect,
                       int queue);
/* Capable packets were lost: if that happens to all of the first, then perhaps because they were capable. */
void rnl_ecn_lost(struct rnl_ecn_trust *ecn, uint32_t capable);

#endif
