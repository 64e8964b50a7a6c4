/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench_options.h - what `runnel bench` is asked to measure. */
#ifndef RNL_TOOLS_BENCH_OPTIONS_H
#define RNL_TOOLS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "net.h"
#include "peer.h"

enum { BENCH_MAX_SIZES = 32 };
enum { BENCH_FRESH_TESTS = 1u << BENCH_FRESH | 1u << BENCH_FRESH_ALONE };

struct bench_options {
    unsigned tests;     /* of the pairs: bit per enum bench_test */
    unsigned scenarios; /* bit per place in bench_scenarios: asked for by name, or by `all` */
    unsigned named;
    bool all, mpi;            /* the words */
    unsigned apis, peer_apis; /* our own; of peers, in the tests of the pairs alone */
    uint64_t size[BENCH_MAX_SIZES];
    unsigned sizes;
    bool json, check;
    double seconds;
    unsigned ranks; /* 0: not said */
    const char *plot, *child;
    unsigned part;
    struct bench_peers peers;
    double peer_seconds;
    struct bench_net net, beside; /* beside: see area.h */
    bool netns, shm;              /* shm: asked for by name */
};

/* Reads the command line: 0, or EX_USAGE after a sentence on standard error. */
int bench_options_parse(int argc, char **argv, struct bench_options *q);

#endif
