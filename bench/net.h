/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.h - the path that datagrams take under measurement: this host's loopback, or two network namespaces joined by a
 * pair of virtual Ethernet interfaces, which exist as long as `runnel bench` does. */
#ifndef RNL_BENCH_NET_H
#define RNL_BENCH_NET_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_NET_LOOPBACK_MTU = 65536, BENCH_NET_ETHERNET_MTU = 1500, BENCH_NET_LEAST_MTU = 1280 };

/* In the area: every process of the benchmark reads it. */
struct bench_net {
    uint32_t udp;        /* 0: shared memory, and the rest means nothing */
    uint32_t mtu;        /* of the interfaces */
    char space[2][32];   /* the namespaces' names, one a process; "" = this one, over loopback */
    char address[2][16]; /* IPv4 */
    char via[8];         /* xdp, i8255x: what carries the library's datagrams past the kernel; "" = the kernel does */
    char protect[24];    /* how packets of the library are protected, for the reader; "" = as it is by default */
};

#define BENCH_NET_INTERFACE "rnl0" /* of both namespaces */

struct bench_wires; /* of who made the namespaces */

/* Makes two namespaces with interfaces of net->mtu, names them in *net. They are removed when bench_net_unplug is
 * called or this process dies. 0, or negative with a sentence in text: needs root or the like. */
int bench_net_plug(struct bench_net *net, struct bench_wires **out, char *text, size_t size);
void bench_net_unplug(struct bench_wires *);

/* Moves this thread into the namespace of a process. 0 or -errno; over loopback nothing is to be done. */
int bench_net_enter(const struct bench_net *, unsigned rank);

/* ---- net_drop.c: a filter at both ends loses datagrams; runs of them are cut before, and each is lost alone ---- */

struct bench_drop {
    int link[2]; /* -1: no filter yet; closed with this process, they are gone */
};

/* From now on so many of a thousand packets are dropped; 0 leaves the filter and drops none. 0, or negative with a
 * sentence in text. */
int bench_net_drop(struct bench_drop *, const struct bench_net *, unsigned per_mille, char *text, size_t size);
void bench_net_drop_end(struct bench_drop *);

#endif
