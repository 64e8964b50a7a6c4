/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.h - AMUDP's fault injection, FAULT_RATE: that share of what goes to others is lost and has to be sent again.
 * Between ranks that exchange datagrams it is these that are lost, below all that sends them again; the master starts a
 * job with FAULT_RATE so that all do. What goes through shared memory all the same, and to oneself, has no packets to
 * lose: a request that is chosen is held back for as long as AMUDP would have waited before it sent
 * it again (REQUESTTIMEOUT_INITIAL, _BACKOFF, _MAX), and may then be chosen again. The loss of a reply looks the same
 * to who asked, so it is drawn with its request. */
#ifndef RNL_AMUDP_FAULT_H
#define RNL_AMUDP_FAULT_H

#include "amudp/amudp_in.h"

struct rnl_amudp_request {
    int dest;
    amudp_category_t category;
    handler_t handler;
    uint8_t async;
    int numargs;
    size_t nbytes;
    uintptr_t dest_offset;
    const void *from;
    uint64_t since_ns; /* it was held back; 0 */
};

/* To the core. */
int rnl_amudp_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args);
/* The same, or later. */
int rnl_amudp_fault_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args);
/* Sends what is due, of all endpoints, as a poll of one bundle takes in what comes for all. Returns ns until the next
 * is, -1 = none. */
int64_t rnl_amudp_fault_poll(void);

#endif
