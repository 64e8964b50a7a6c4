/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mtu.h - path MTU discovery (RFC 8899). The sizes of a table are tried with padded probes, which carry no data and
 * whose loss is no sign of congestion; the search begins after the first full packet. When large packets are lost and
 * smaller ones are acknowledged, datagrams fall back to the first size at once, and the search begins again. */
#ifndef RNL_NET_FLOW_MTU_H
#define RNL_NET_FLOW_MTU_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RNL_MTU_SIZES = 6,      /* entries of a table: rising sizes, the first passes everywhere; 0 = end of the table */
    RNL_MTU_TRIES = 4,      /* probes of one size */
    RNL_MTU_MISSES_MAX = 3, /* probe timeouts between two probes of one size */
    RNL_MTU_VANISHED = 4,   /* consecutive losses of large packets after which datagrams fall back */
    RNL_MTU_AGAIN_S = 60    /* seconds after which a size that did not pass is tried again, if packets are full */
};
struct rnl_mtu {
    const uint16_t *table;
    uint64_t due_ns;      /* when the next probe is due; UINT64_MAX = never */
    uint64_t again_ns;    /* no search begins before */
    uint64_t large_acked; /* the largest number of an acknowledged packet above the first size */
    uint16_t bytes;       /* of the largest datagram of data */
    uint16_t limit;       /* bytes of the largest probe */
    uint8_t at, tries;    /* index in the table that is being tried, and how often it was */
    uint8_t vanished;     /* large packets lost since a large one was acknowledged */
    uint8_t cramped : 1;  /* the last room was too small for the probe */
    uint8_t put_off : 1;  /* the second probe was put off, because the path was full */
};
void rnl_mtu_init(struct rnl_mtu *mtu, const uint16_t *table, uint32_t limit);
/* Notes that data filled a packet of the present size. */
void rnl_mtu_filled(struct rnl_mtu *mtu, uint64_t now_ns);
/* Returns the size to probe now, at most `room`, and counts it as tried; 0 = none. If `room` is too small, the probe
 * stays due once, since the next room may be larger. A size is tried again after RNL_MTU_MISSES_MAX probe timeouts, but
 * the first time after half of one if `spare` says that the path is not full: then the probe was lost by chance, and
 * until it passes data goes in small packets. */
uint32_t rnl_mtu_probe(struct rnl_mtu *mtu, uint32_t room, int spare, uint64_t pto_ns, uint64_t now_ns);
/* The peer has received a probe of that size. true = datagrams become larger. */
bool rnl_mtu_passed(struct rnl_mtu *mtu, uint32_t bytes, uint64_t now_ns);
/* A data packet was acknowledged; was lost. 1 = datagrams fell back to the first size. */
void rnl_mtu_acked(struct rnl_mtu *mtu, uint64_t number, uint32_t bytes);
int rnl_mtu_lost(struct rnl_mtu *mtu, uint64_t number, uint32_t bytes, uint64_t now_ns);
/* Our host rejects datagrams of that size. 1 = datagrams fell back to the first size. */
int rnl_mtu_refused(struct rnl_mtu *mtu, uint32_t bytes, uint64_t now_ns);
/* Returns the first size, which is for probes of a silent peer, since its path may have changed. */
uint32_t rnl_mtu_first(const struct rnl_mtu *mtu);

#endif
