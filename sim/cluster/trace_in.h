/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace_in.h - the numbers of the pcapng format that writer and reader use. */
#ifndef RNL_CLUSTER_TRACE_IN_H
#define RNL_CLUSTER_TRACE_IN_H

#include <stdint.h>

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
