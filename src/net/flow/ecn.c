/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ecn.c - compares the peer's ECN counts with what was sent (RFC 9000, 13.4.2.1). */
#include "net/flow/ecn.h"

void rnl_ecn_init(struct rnl_ecn_trust *ecn, int use)
{
    *ecn = (struct rnl_ecn_trust){.state = use ? RNL_ECN_TESTING : RNL_ECN_OFF};
}

uint32_t rnl_ecn_acked(struct rnl_ecn_trust *ecn, uint32_t capable, int has_counts, uint32_t ce, uint32_t ect,
                       int queue)
{
    if (rnl_ecn_codepoint(ecn) == RNL_ECT_NOT || capable == 0)
        return 0;
    uint32_t marked = ce - ecn->ce, plain = ect - ecn->ect;
    /* The network removed the marks, or a count fell. */
    if (!has_counts || marked > INT32_MAX || plain > INT32_MAX || (uint64_t)marked + plain < capable) {
        ecn->state = RNL_ECN_FAILED;
        return 0;
    }
    ecn->ce = ce;
    ecn->ect = ect;
    if (marked > capable)
        marked = capable;
    if (marked < capable || queue)
        ecn->row = 0;
    else if ((ecn->row = (uint16_t)(capable < RNL_ECN_ALWAYS ? ecn->row + capable : RNL_ECN_ALWAYS)) >=
             RNL_ECN_ALWAYS) {
        ecn->state = RNL_ECN_FAILED;
        return 0;
    }
    if (ecn->state == RNL_ECN_TESTING) {
        ecn->good = (uint8_t)(capable < RNL_ECN_TEST ? ecn->good + capable : RNL_ECN_TEST);
        if (ecn->good < RNL_ECN_TEST)
            return 0;
        ecn->state = RNL_ECN_BELIEVED;
    }
    return marked;
}

void rnl_ecn_lost(struct rnl_ecn_trust *ecn, uint32_t capable)
{
    if (ecn->state != RNL_ECN_TESTING || ecn->good)
        return;
    ecn->row = (uint16_t)(capable < RNL_ECN_TEST ? ecn->row + capable : RNL_ECN_TEST);
    if (ecn->row >= RNL_ECN_TEST)
        ecn->state = RNL_ECN_FAILED;
}
