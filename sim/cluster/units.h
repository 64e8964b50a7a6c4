/* SPDX-License-Identifier: BSD-3-Clause
 *
 * units.h - what all parts of the virtual cluster agree on: the length of a tick, and the streams of chance. */
#ifndef RNL_CLUSTER_UNITS_H
#define RNL_CLUSTER_UNITS_H

#include <stdint.h>

/* A tick is a picosecond: a byte on a link of 10 or 100 Gb/s takes a whole number of them, and 64 bits last 213 days.
 */
#define RNL_TICKS_PER_NS ((uint64_t)1000)

/* Streams of rnl_sim_random: each decision has its own. Their numbers are part of what a seed means: new ones at the
 * end. */
enum rnl_cluster_stream {
    RNL_STREAM_ENV = 1,   /* what env->random says; entity: life of a rank */
    RNL_STREAM_GUEST,     /* a program's own rand, random, getrandom; entity: life of a rank */
    RNL_STREAM_CLOCK,     /* drift and offset of a host's clock; entity: host */
    RNL_STREAM_STALL,     /* when a host stalls and for how long; entity: host */
    RNL_STREAM_CRASH,     /* entity: rank */
    RNL_STREAM_NET = 256, /* from here on: the network's */
};

#endif
