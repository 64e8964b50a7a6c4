/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_facts.h - what of a host bears on jobs: cores, limits, settings of its kernel. The node agent collects them
 * where the ranks would run, so they are those of its login, its container and its namespace. */
#ifndef RNL_LAUNCHER_HOST_FACTS_H
#define RNL_LAUNCHER_HOST_FACTS_H

#include <assert.h>
#include <stdint.h>

#define RNL_FACTS_NO_LIMIT UINT64_MAX

enum rnl_host_can { /* what was tried, and worked */
                    RNL_CAN_MEMFD = 1,
                    RNL_CAN_PASS = 2, /* a descriptor through a socket of this host */
                    RNL_CAN_PIDFD = 4,
                    RNL_CAN_MEMBARRIER = 8,
                    RNL_CAN_UDP = 16,
                    RNL_CAN_LOOPBACK = 32, /* a datagram to itself arrives */
                    RNL_CAN_PROC = 64,
                    RNL_CAN_ALL = 127
};

struct rnl_host_facts { /* travels in EXAMINED as it is */
    char release[48];   /* of Runnel */
    char kernel[48];    /* of the system, as uname says */
    char clock[16];     /* the clock source of the kernel; empty = not known */
    uint32_t kernel_major, kernel_minor;
    uint32_t cores, allowed;                                   /* online; that this login may use */
    uint32_t quota_percent;                                    /* of one core, for the control group; 0 = no limit */
    int32_t ptrace_scope;                                      /* of Yama; -1 = there is none */
    uint32_t can;                                              /* enum rnl_host_can */
    uint32_t interfaces;                                       /* that are up and lead elsewhere */
    uint32_t load_percent;                                     /* the load average of the last minute, of one core */
    uint32_t port_first, port_last;                            /* the range of the kernel's ports */
    uint32_t root;                                             /* 1 = the login may do anything */
    uint64_t files, files_hard, processes, addresses, memlock; /* ulimits; the last two in bytes */
    uint64_t memory, memory_free;                              /* bytes, of the host */
    uint64_t group_memory;  /* bytes that the control group may use; RNL_FACTS_NO_LIMIT */
    uint64_t receive_bytes; /* net.core.rmem_max */
    uint64_t wall_ns;       /* the time of day */
};
static_assert(sizeof(struct rnl_host_facts) == 112 + 48 + 10 * 8, "the layout of EXAMINED");

void rnl_host_facts_collect(struct rnl_host_facts *);
/* Ends texts that have no end. */
void rnl_host_facts_sanitize(struct rnl_host_facts *);

#endif
