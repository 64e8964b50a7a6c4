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
#ifndef VC_TRACE_H
#define VC_TRACE_H

#include <stdio.h>

#include "sim/cluster/net.h"
#include <stdint.h>

struct vc_trace;

/* Takes n bytes: 0, or not, and then nothing more is written. */
typedef int vc_trace_write(void *arg, const void *bytes, size_t n);
int vc_trace_to_file(void *file, const void *bytes, size_t n); /* one for a FILE */

/* about: one line that says what run this is; NULL. The times are those of the network's engine. 0,
 * RNL_ERR_NO_MEMORY. */
int vc_trace_new(const struct vc_net *, vc_trace_write *, void *arg, const char *about, struct vc_trace **out);
/* For vc_net_set_tap, with the trace. */
void vc_trace_tap(void *trace, const struct vc_net_tap_packet *);
/* Writes what is left and frees it. 0, or RNL_ERR_SYSTEM if something was not taken. NULL is fine. */
int vc_trace_end(struct vc_trace *);

struct vc_trace_filter {
    uint32_t host;        /* only what concerns it; UINT32_MAX = all */
    uint8_t only_dropped; /* 1 = only what did not arrive */
};
/* Each datagram of a trace as a line. 0; RNL_ERR_ARG: not a pcapng file with packets like ours, or damaged (what came
 * before is printed); RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM (reading or writing fails). */
int vc_trace_decode(FILE *in, FILE *out, const struct vc_trace_filter *filter);
/* What a datagram of ours holds, in words, on one line; at most `room` bytes with the 0 at the end. */
void vc_trace_describe(const unsigned char *at, size_t bytes, char *to, size_t room);

/* ---- numbers of the pcapng format ---- */

#define PCAP_SECTION 0x0a0d0d0au
#define PCAP_ORDER   0x1a2b3c4du

enum {
    PCAP_INTERFACE = 1,
    PCAP_PACKET = 6, /* the enhanced one */
    PCAP_IPV4 = 228, /* not 101: libpcap refuses several interfaces whose link type it numbers otherwise itself */
    PCAP_OPTION_COMMENT = 1,
    PCAP_SECTION_PROGRAM = 4,
    PCAP_INTERFACE_NAME = 2,
    PCAP_INTERFACE_RESOLUTION = 9,
    PCAP_PACKET_FLAGS = 2,
    PCAP_INBOUND = 1,
    PCAP_OUTBOUND = 2,
    PCAP_OPTION_MOST = 240, /* bytes, of those that we write */
    PCAP_UDP = 17,
    PCAP_IP_HEADER = 20,
    PCAP_HEADERS = 28
};

#endif
