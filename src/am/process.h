/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.h - what concerns the process: the only state of AM that hangs from no endpoint, since AM_AllocateBundle has
 * no other way to know its session (the simulator keeps one for each program), and its end. */
#ifndef RNL_AM_PROCESS_H
#define RNL_AM_PROCESS_H

#include "runnel/runnel.h"

struct rnl_am_port;
struct rnl_am {
    unsigned sessions;
    struct rnl_am_port *port; /* of this process's rank; NULL before the first bundle */
};
extern struct rnl_am rnl_am;

/* The endpoint that the session opened; NULL. */
rnl_endpoint *rnl_am_rank(const struct rnl_am *am);
/* Frees all that AM has on this rank and tells nobody: its program is no more. */
void rnl_am_drop(rnl_endpoint *rank);
/* The handler that runs, of an endpoint with hooks or a handler 0, ends here, as if it returned; what it has done stays
 * done. Returns only if there is none. For whoever ends the process. gives_up: sends that wait end with RNL_ERR_JOB,
 * until rnl_am_go_on. */
struct rnl_am_bundle;
void rnl_am_leave_handler(const struct rnl_am_bundle *b, int gives_up);
void rnl_am_go_on(const struct rnl_am_bundle *b);

/* For an interface above whose bundles are all on the session's rank, and that keeps things beside them: takes the lock
 * that calls take, where several bundles or AM_PAR make them lock. Not across a call that waits, which would keep it.
 * `held` says whether there is one to let go. */
int rnl_am_hold(void);
void rnl_am_let_go(int held);
/* What its hooks are called with. */
struct rnl_am_endpoint;
void *rnl_am_hooks_arg(const struct rnl_am_endpoint *ep);

/* For measuring: the number that the next request by that translation gets, among those to its rank. 0 = there is none,
 * or other threads may call. And that of the request that the message of this token answers. */
int rnl_am_next_serial(const struct rnl_am_endpoint *ep, int index, uint32_t *rank, uint16_t *serial);
uint16_t rnl_am_answer_serial(const void *token, uint32_t *rank);

#endif
