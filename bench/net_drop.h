/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_drop.h - datagrams lost by the kernel: a filter at both ends of the path between two namespaces, which drops what
 * arrives by chance. With a filter there the kernel cuts runs of datagrams before they cross, so each is lost alone. */
#ifndef RNL_BENCH_NET_DROP_H
#define RNL_BENCH_NET_DROP_H

#include "net.h"

struct bench_drop {
    int link[2]; /* -1: no filter yet; closed with this process, they are gone */
};

/* From now on so many of a thousand packets are dropped; 0 leaves the filter and drops none. 0, or negative with a
 * sentence in text. */
int bench_net_drop(struct bench_drop *, const struct bench_net *, unsigned per_mille, char *text, size_t size);
void bench_net_drop_end(struct bench_drop *);

#endif
