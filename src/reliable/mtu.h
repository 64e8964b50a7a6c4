/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mtu.h - the largest datagram that passes (RFC 8899). Sizes of a table are asked about with padded probes, which are
 * not data and no sign of congestion; it begins with the first packet that was as large as allowed. When large packets
 * vanish and smaller ones pass, it falls back to the first size at once and asks again. */
#ifndef RNL_RELIABLE_MTU_H
#define RNL_RELIABLE_MTU_H

#include <stdint.h>

enum {
    RNL_MTU_SIZES = 6,    /* of a table: rising sizes, the first passes everywhere; 0 = no more */
    RNL_MTU_TRIES = 4,    /* probes of one size */
    RNL_MTU_PATIENCE = 3, /* probe timeouts between them, but after the first if the path is not full of ours */
    RNL_MTU_VANISHED = 4, /* large packets lost, and no later large one acknowledged */
    RNL_MTU_AGAIN_S = 60  /* then what did not pass is asked about again, if data wants it */
};
struct rnl_mtu {
    const uint16_t *table;
    uint64_t due_ns;      /* the next probe; UINT64_MAX = none */
    uint64_t again_ns;    /* not before */
    uint64_t large_acked; /* the largest number of an acknowledged packet above the first size */
    uint16_t bytes;       /* datagrams of data are at most this */
    uint16_t limit;       /* and of probes this */
    uint8_t at, tries;    /* the place in the table that is asked about, and how often it was */
    uint8_t vanished;
    uint8_t cramped : 1; /* the last room was too small to ask */
    uint8_t put_off : 1; /* the second question: the path was full */
};
void rnl_mtu_init(struct rnl_mtu *mtu, const uint16_t *table, uint32_t limit);
/* Data filled a packet of the present size. */
void rnl_mtu_filled(struct rnl_mtu *mtu, uint64_t now_ns);
/* The size to ask about, at most `room`; 0 = none. It counts as asked. If there is less room, it is due as before,
 * once: a larger one may follow. It is asked about again after some probe timeouts, the first time after half of one if
 * there is room to spare on the path: what gets lost there got lost by chance, and data goes in small packets
 * meanwhile. */
uint32_t rnl_mtu_probe(struct rnl_mtu *mtu, uint32_t room, int spare, uint64_t pto_ns, uint64_t now_ns);
/* The peer has got a probe of that size. 1 = datagrams become larger. */
int rnl_mtu_passed(struct rnl_mtu *mtu, uint32_t bytes, uint64_t now_ns);
/* The fates of data packets. lost: 1 = it fell back. */
void rnl_mtu_acked(struct rnl_mtu *mtu, uint64_t number, uint32_t bytes);
int rnl_mtu_lost(struct rnl_mtu *mtu, uint64_t number, uint32_t bytes, uint64_t now_ns);
/* The own network refuses that size. 1 = it fell back. */
int rnl_mtu_refused(struct rnl_mtu *mtu, uint32_t bytes, uint64_t now_ns);
/* For probes of a silent peer, whose path may have changed. */
uint32_t rnl_mtu_first(const struct rnl_mtu *mtu);

#endif
