/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loss.h - when a packet is taken for lost (RFC 9002 6.1): so many later ones were acknowledged, or one later one and
 * so much time is over. Both thresholds grow when a verdict proves wrong, and shrink slowly. */
#ifndef RNL_RELIABLE_LOSS_H
#define RNL_RELIABLE_LOSS_H

#include "reliable/rtt.h"

enum {
    RNL_LOSS_PACKETS = 3,
    RNL_LOSS_PACKETS_MAX = 512,
    RNL_LOSS_EIGHTHS = 9, /* of a round trip */
    RNL_LOSS_EIGHTHS_MAX = 32,
    RNL_LOSS_CALM = 256 /* round trips without a wrong verdict, then a threshold shrinks */
};
struct rnl_loss {
    uint64_t largest;    /* acknowledged */
    uint64_t verdict_ns; /* the next packet is lost then; UINT64_MAX = none waits for time */
    uint16_t packets, eighths, calm;
};
void rnl_loss_init(struct rnl_loss *loss);
uint64_t rnl_loss_wait_ns(const struct rnl_loss *loss, const struct rnl_rtt *rtt, uint32_t granularity_ns);
/* A packet judged lost came after all, so many numbers late, so long after it was sent. */
void rnl_loss_was_wrong(struct rnl_loss *loss, const struct rnl_rtt *rtt, uint64_t late_numbers, uint64_t late_ns);
/* A round trip is over. */
void rnl_loss_round(struct rnl_loss *loss);

#endif
