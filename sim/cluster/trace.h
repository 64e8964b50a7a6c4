/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.h - what was on the virtual network, as a pcapng file that Wireshark and tcpdump open too, and as lines to
 * read.
 *
 * The file: one interface per host ("host 7"), link type 228 (raw IPv4), times in virtual nanoseconds from 0. Each
 * datagram has the IPv4 and UDP headers that it would have had: addresses are 10.0.0.1 for host 0 and on, the ECN bits
 * are in the IP header, the UDP checksum is 0 (none). It stands there when it was sent (direction outbound, at the
 * sender), and again when it was delivered (inbound, at the receiver) or dropped (at the sender, with a comment that
 * says where and why). */
#ifndef RNL_CLUSTER_TRACE_H
#define RNL_CLUSTER_TRACE_H

#include <stdio.h>

#include "sim/cluster/net.h"

struct rnl_trace;

/* Takes n bytes: 0, or not, and then nothing more is written. */
typedef int rnl_trace_write(void *arg, const void *bytes, size_t n);
int rnl_trace_to_file(void *file, const void *bytes, size_t n); /* one for a FILE */

/* about: one line that says what run this is; NULL. The times are those of the network's engine. 0,
 * RNL_ERR_NO_MEMORY. */
int rnl_trace_new(const struct rnl_net *, rnl_trace_write *, void *arg, const char *about, struct rnl_trace **out);
/* For rnl_net_set_tap, with the trace. */
void rnl_trace_tap(void *trace, const struct rnl_net_tap_packet *);
/* Writes what is left and frees it. 0, or RNL_ERR_SYSTEM if something was not taken. NULL is fine. */
int rnl_trace_end(struct rnl_trace *);

struct rnl_trace_filter {
    uint32_t host;        /* only what concerns it; UINT32_MAX = all */
    uint8_t only_dropped; /* 1 = only what did not arrive */
};
/* Each datagram of a trace as a line. 0; RNL_ERR_ARG: not a pcapng file with packets like ours, or damaged (what came
 * before is printed); RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM (reading or writing fails). */
int rnl_trace_decode(FILE *in, FILE *out, const struct rnl_trace_filter *filter);
/* What a datagram of ours holds, in words, on one line; at most `room` bytes with the 0 at the end. */
void rnl_trace_describe(const unsigned char *at, size_t bytes, char *to, size_t room);

#endif
