/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rtt.h - round trip times and loss detection (RFC 9002, 5 and 6). A flow has a smoothed round trip; a class of paths
 * has a least one, which separates propagation delay from queueing delay. A flow that measured its own least round trip
 * in a standing queue would take the queue for distance and starve older flows, so the flows of an endpoint share
 * it. */
#ifndef RNL_NET_FLOW_RTT_H
#define RNL_NET_FLOW_RTT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* One for each class of paths of an endpoint that are equally long, e.g. to the peers of one rack; a longer distance
 * than that of the nearest peer of the class is taken for a queue. If nothing is known of distances, one for each peer.
 * Zeroed memory is a valid one that knows nothing. */
struct rnl_path {
    uint64_t base_ns;    /* the least round trip; 0 = unknown. May be set from what is known beforehand */
    uint64_t seen_ns;    /* when base_ns was last measured */
    uint64_t drain_ns;   /* until then all flows keep their windows small, so that base_ns can be measured again */
    uint64_t least_ns;   /* the least round trip during drains; 0 = none */
    uint64_t keep_ns;    /* how long base_ns is believed without being measured again; grows */
    uint32_t drains;     /* consecutive drains that did not measure base_ns */
    uint32_t full_bytes; /* of the packets that full_ns is of */
    uint64_t full_ns;    /* the least round trip of full packets, which take longer on each wire; 0 = unknown */
};
enum {
    RNL_PATH_KEEPS_S = 10,         /* seconds without measuring base_ns after which the path is drained */
    RNL_PATH_KEEPS_FIRST_US = 500, /* the same for a new path, whose base_ns may include a queue */
    RNL_PATH_DRAINS = 3            /* drains that miss base_ns after which the path counts as longer */
};
/* Takes in a round trip of one of its flows, without the time that the peer held the packet. */
void rnl_path_sample(struct rnl_path *path, uint64_t rtt_ns, uint64_t now_ns);
/* The same for a packet of so many bytes, of at most `packet`. How much longer full ones take than the least is first
 * believed of one that was `alone`: its flow had sent nothing before it that could make a queue. */
void rnl_path_sample_full(struct rnl_path *path, uint64_t rtt_ns, uint32_t bytes, uint32_t packet, bool alone);
/* Returns how much longer than base_ns a packet of so many bytes takes without any queue: its time on the wires. */
uint32_t rnl_path_wire_ns(const struct rnl_path *path, uint32_t bytes);
RNL_INLINE bool rnl_path_draining(const struct rnl_path *path, uint64_t now_ns)
{
    return now_ns < path->drain_ns;
}

struct rnl_rtt {
    uint32_t smoothed_ns; /* 0 = no sample yet */
    uint32_t variance_ns;
    uint32_t latest_ns;
    uint32_t least_ns;
};
enum { RNL_RTT_MAX_NS = 2000000000 };
/* Takes in the time sample_ns from sending a packet to its acknowledgement; the peer says that it held it for
 * hold_ns. */
void rnl_rtt_sample(struct rnl_rtt *rtt, uint64_t sample_ns, uint32_t hold_ns);
/* The probe timeout of RFC 9002, 6.2.1, without the maximum acknowledgement delay and the doubling. */
uint64_t rnl_rtt_pto_ns(const struct rnl_rtt *rtt, uint32_t granularity_ns);

/* ---- loss ---- */

/* A packet is judged lost (RFC 9002, 6.1) when a number of later ones were acknowledged, or one later one was and a
 * time has passed. Both thresholds grow when a judgement proves wrong, and shrink slowly. */
enum {
    RNL_LOSS_PACKETS = 3,
    RNL_LOSS_PACKETS_MAX = 512,
    RNL_LOSS_EIGHTHS = 9, /* of a round trip */
    RNL_LOSS_EIGHTHS_MAX = 32,
    RNL_LOSS_CALM = 256 /* rounds without a wrong judgement after which the thresholds shrink */
};
struct rnl_loss {
    uint64_t largest;                /* number of the largest acknowledged packet */
    uint64_t verdict_ns;             /* when the next packet will be judged lost; UINT64_MAX = none is waiting */
    uint16_t packets, eighths, calm; /* the thresholds, and rounds without a wrong judgement */
};
void rnl_loss_init(struct rnl_loss *loss);
uint64_t rnl_loss_wait_ns(const struct rnl_loss *loss, const struct rnl_rtt *rtt, uint32_t granularity_ns);
/* A packet judged lost has arrived after all: late_numbers behind the largest, late_ns after it was sent. */
void rnl_loss_was_wrong(struct rnl_loss *loss, const struct rnl_rtt *rtt, uint64_t late_numbers, uint64_t late_ns);
/* A round is over (rnl_congest_acked). */
void rnl_loss_round(struct rnl_loss *loss);

#endif
