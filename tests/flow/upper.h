/* SPDX-License-Identifier: BSD-3-Clause
 *
 * upper.h - the upper side of a flow, for tests: units with numbers, each sent until it is acked. It checks, with the
 * eyes of both sides, that each note is acked or lost once, that nothing is acked that has not arrived, and that the
 * bytes are right. */
#ifndef RNL_TESTS_RELIABLE_UPPER_H
#define RNL_TESTS_RELIABLE_UPPER_H

#include "net/flow/flow.h"

struct upper {
    struct rnl_flow flow;
    struct rnl_flow_counters count;
    struct upper *peer;
    uint32_t unit, units_per_packet; /* bytes of a unit, at least 8; 0 = as many as fit */
    uint32_t window;                 /* that we say our socket has */
    uint64_t known;                  /* units that there are */
    uint64_t next;                   /* the first that was never sent */
    uint64_t taken, done;            /* units of the peer that arrived; of ours that were acked */
    uint64_t again;                  /* units that arrived more than once */
    uint64_t memory, memory_most;
    int no_memory, says_end;                          /* says_end: who fills in the last unit says so */
    const char *wrong;                                /* the first thing that was, or NULL */
    void (*arrived)(struct upper *, uint64_t number); /* may be NULL */
    void *owner;
    /* -- its own -- */
    uint8_t *fate, *here;
    uint64_t room, *lost, lost_head, lost_tail, lost_room;
};
extern const struct rnl_flow_ops upper_ops;

/* Two sides of a connection; `ctx` of each flow is its upper. */
void upper_pair(struct upper *a, struct upper *b, uint32_t unit);
void upper_free(struct upper *u);
/* There are so many more units. */
void upper_send(struct upper *u, uint64_t units);

/* Ciphers and keys for pairs of flows: `i` tells the pairs apart, `forth` the directions. */
struct upper_keys {
    struct rnl_ciphers ciphers;
    struct rnl_sealer sealer;
    struct rnl_key_limits limits;
    struct rnl_suite suite;
    void *memory;
};
int upper_keys_init(struct upper_keys *keys, unsigned pairs);
void upper_keys_free(struct upper_keys *keys);
void upper_keys_make(struct upper_keys *keys, struct rnl_keys *out, unsigned i, int forth);

#endif
