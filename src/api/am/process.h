/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - AM's state of the process, and what an interface above AM needs to end the process and to measure. The
 * state exists because AM_AllocateBundle has no parameter for its session; the simulator keeps one for each program. */
#ifndef RNL_API_AM_PROCESS_H
#define RNL_API_AM_PROCESS_H

#include "base/iface.h"
#include "runnel/runnel.h"

struct rnl_am_port;
struct rnl_am {
    unsigned sessions;
    struct rnl_am_port *port; /* the port of this process's rank; NULL before the first bundle */
};
extern struct rnl_am rnl_am;
extern const struct rnl_iface rnl_am_iface;
enum rnl_am_counter { RNL_AM_RETURNED, RNL_AM_COUNTERS };

/* Frees all that AM has on this rank without telling anybody, after its program has ended. */
void rnl_am_drop(rnl_endpoint *rank);
/* For code that ends the process: leaves the running handler, if it is a handler 0 or its endpoint has hooks, as if it
 * returned. Returns only if no such handler runs. gives_up: sends that wait end with RNL_ERR_JOB until rnl_am_go_on. */
struct rnl_am_bundle;
void rnl_am_leave_handler(const struct rnl_am_bundle *b, int gives_up);
void rnl_am_go_on(const struct rnl_am_bundle *b);

/* For an interface on AM whose bundles are all on the session's rank and that protects state of its own by AM's lock:
 * takes the lock if calls take it (with several bundles, or AM_PAR), and returns whether it did. Must not be held
 * across a call that waits, which would keep it. */
bool rnl_am_hold(void);
void rnl_am_let_go(int held);
/* Returns the argument that ep's hooks are called with. */
struct rnl_am_endpoint;
void *rnl_am_hooks_arg(const struct rnl_am_endpoint *ep);

/* For measurements. The first finds the serial number that the next request by that translation will get; false = the
 * translation is unused, or other threads may call. The second returns the serial number of the token's message. */
bool rnl_am_next_serial(const struct rnl_am_endpoint *ep, int index, uint32_t *rank, uint16_t *serial);
uint16_t rnl_am_reply_serial(const void *token, uint32_t *rank);

#endif
