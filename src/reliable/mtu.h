/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mtu.h - the largest datagram that passes (RFC 8899): sizes from a table are asked about with padded probes, which are
 * not data and no sign of congestion. When large packets vanish while smaller ones pass, it falls back to the first
 * size at once and begins to ask again. */
#ifndef RNL_RELIABLE_MTU_H
#define RNL_RELIABLE_MTU_H

#include <stdint.h>

enum {
    RNL_MTU_SIZES = 6,
    RNL_MTU_TRIES = 3,    /* probes of one size */
    RNL_MTU_VANISHED = 4, /* large packets lost with no later large one acknowledged */
    RNL_MTU_AGAIN_S = 60  /* then what did not pass is tried once more */
};
struct rnl_mtu {
    uint64_t due_ns;      /* the next probe; UINT64_MAX = none */
    uint64_t large_acked; /* the largest number of a packet above the first size that was acknowledged */
    uint16_t bytes;       /* datagrams of data are at most this */
    uint16_t limit;       /* and of probes this */
    uint8_t at, tries;    /* the size that is asked about, as an index, and how often it was */
    uint8_t vanished;
};
void rnl_mtu_init(struct rnl_mtu *mtu, const uint16_t *table, uint32_t limit, uint64_t now_ns);
/* The size to ask about now, at most `room`; 0 = none. It counts as asked, and is asked again after wait_ns. */
uint32_t rnl_mtu_probe(struct rnl_mtu *mtu, const uint16_t *table, uint32_t room, uint64_t wait_ns, uint64_t now_ns);
/* Datagrams of that size pass. 1 = it was news. */
int rnl_mtu_passed(struct rnl_mtu *mtu, const uint16_t *table, uint32_t bytes, uint64_t now_ns);
/* Data packets' fates. lost: 1 = fell back. */
void rnl_mtu_acked(struct rnl_mtu *mtu, const uint16_t *table, uint64_t number, uint32_t bytes);
int rnl_mtu_lost(struct rnl_mtu *mtu, const uint16_t *table, uint64_t number, uint32_t bytes, uint64_t now_ns);
/* The own network refuses that size. 1 = fell back. */
int rnl_mtu_refused(struct rnl_mtu *mtu, const uint16_t *table, uint32_t bytes, uint64_t now_ns);

#endif
