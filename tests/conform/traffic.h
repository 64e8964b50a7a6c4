/* SPDX-License-Identifier: BSD-3-Clause
 *
 * traffic.h - random checked traffic. What packet k of a flow (from, to) holds is a function of the seed, so its
 * receiver knows each byte without being told. Each place is an actor that sends, leaves rooms reserved, polls, holds
 * views, releases and pauses at random; actors take turns in one thread, chosen by the seed, or have a thread each. */
#ifndef RNL_TESTS_CONFORM_TRAFFIC_H
#define RNL_TESTS_CONFORM_TRAFFIC_H

#include "conform/conform.h"

/* Small pseudo-random numbers, the same everywhere. */
uint64_t traffic_mix(uint64_t x);
uint64_t traffic_random(uint64_t *state);
/* 0 .. n - 1 */
uint32_t traffic_below(uint64_t *state, uint32_t n);

struct traffic_flow {
    uint64_t seed;
    uint32_t from, to, mtu;
    uint32_t least; /* bytes of the shortest packet; 8 or more: packets begin with their number */
};
/* Bytes of packet k: mostly short, some at the edges, some as long as may be. */
uint32_t traffic_bytes(const struct traffic_flow *f, uint64_t k);
/* Fills it. */
void traffic_fill(const struct traffic_flow *f, uint64_t k, void *to, uint32_t bytes);
/* 0, or 1 + the first byte that is wrong. */
uint32_t traffic_check(const struct traffic_flow *f, uint64_t k, const void *at, uint32_t bytes);

struct traffic_options {
    uint64_t packets; /* of each flow */
    uint32_t mtu;     /* longest packet, 0 = the transport's */
    uint32_t pause;   /* percent of turns that begin a pause */
};
/* Runs it and fails the case if a packet is changed or invented. */
void traffic_run(struct conform_case *c, const struct traffic_options *o);

#endif
