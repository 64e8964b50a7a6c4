/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seam.h - what a test does to an endpoint from where its program cannot: between it and the world (base/env.h), and as
 * another process of its job would. */
#ifndef RNL_TESTS_SUPPORT_SEAM_H
#define RNL_TESTS_SUPPORT_SEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/env.h"
#include "runnel/runnel.h"

/* The endpoint calls `ops`, a copy of its env's functions that the test may change, until the seam is closed. */
struct test_seam {
    struct rnl_env_ops ops;
    const struct rnl_env_ops *was;
    struct rnl_env *env;
};
void test_seam_open(struct test_seam *s, rnl_endpoint *ep);
void test_seam_close(struct test_seam *s);

/* Any process of the job can do these: drain the endpoint's descriptor and take back a ring of its bell; and write what
 * the protocol does not allow, to that peer of ep. */
void test_seam_hide_ring(rnl_endpoint *ep);
void test_seam_break_protocol(rnl_endpoint *ep, unsigned peer);

/* Registers a stream handler as an interface does that has its suspended handlers dropped when their peer dies. */
void test_seam_register_dropped(rnl_endpoint *ep, int id, rnl_stream_handler *f, void *ctx);

/* Whether that peer of ep, too, can write at this address: it is in the bulk area of lane 0. */
bool test_seam_is_in_bulk(const rnl_endpoint *ep, unsigned peer, const void *at);
/* Returns what that peer may have outstanding, in units (ring/cell.h). */
uint64_t test_seam_granted(const rnl_endpoint *ep, unsigned peer);
/* Returns the bytes of replies to that peer that are deferred. */
uint64_t test_seam_deferred_bytes(const rnl_endpoint *ep, unsigned peer);
/* Returns the key of the job, of *n bytes. */
const unsigned char *test_seam_job_key(const rnl_endpoint *ep, size_t *n);
/* Returns the bytes of the budget that queued posts take. */
size_t test_seam_post_bytes(const rnl_endpoint *ep);
/* Sets the receive budget, though peers have been granted more already. Returns the one before. */
size_t test_seam_set_budget(rnl_endpoint *ep, size_t bytes);
/* From now on no connection of ep hibernates, so that none takes memory when it becomes active. */
void test_seam_stay_active(rnl_endpoint *ep);

#endif
