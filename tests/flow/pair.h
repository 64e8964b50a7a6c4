/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pair.h - two flows and a wire without a limit between them, 10 us each way, on virtual time. Each datagram asks for
 * its fate. A side can be left uncalled for a while, like a program that computes, or that was stopped. */
#ifndef RNL_TESTS_RELIABLE_PAIR_H
#define RNL_TESTS_RELIABLE_PAIR_H

#include "flow/upper.h"

enum { PAIR_DELAY_NS = 10000, PAIR_FLIGHTS = 8192, PAIR_DATAGRAM = 9216 };
struct pair;
struct pair_fate {
    int drop, twice;
    uint64_t late_ns;
};
struct pair_flight {
    uint64_t at, order;
    uint32_t bytes, to, ecn;
    unsigned char data[PAIR_DATAGRAM];
};
struct pair {
    struct upper side[2];
    struct rnl_flow_config config[2];
    struct rnl_path path[2];
    struct upper_keys keys;
    uint64_t now;
    uint64_t away_until[2]; /* that side is not called before */
    uint64_t sent;          /* datagrams, of both */
    uint64_t broken;        /* how often input said so */
    /* may be NULL: all arrive. `index`: how many there were before */
    void (*fate)(struct pair *, uint64_t index, unsigned from, struct pair_flight *, struct pair_fate *);
    uint64_t fate_arg[4];
    unsigned flights;
    uint64_t order;
    struct pair_flight *flight[PAIR_FLIGHTS];
};

/* `set` changes the configurations before the flows begin; may be NULL. NULL if there is no cipher. */
struct pair *pair_new(uint32_t unit, void (*set)(struct pair *));
void pair_free(struct pair *p);
/* Until then, or until `done` says so (asked after each step); returns whether it did. */
int pair_run(struct pair *p, uint64_t until_ns, int (*done)(struct pair *));
/* All units that there are have been acked, of both sides. */
int pair_all_done(struct pair *p);
/* Fails the cmocka test if anything was wrong. */
void pair_check(struct pair *p);

#endif
