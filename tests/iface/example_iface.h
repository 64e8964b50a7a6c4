/* SPDX-License-Identifier: BSD-3-Clause
 *
 * example_iface.h - Tally, the smallest interface: each rank keeps a sum to which the others add. It shows what an
 * interface consists of (CONTRIBUTING.md, "An interface"); the tests of src/base/iface.h use it. */
#ifndef RNL_TESTS_EXAMPLE_IFACE_H
#define RNL_TESTS_EXAMPLE_IFACE_H

#include "runnel/runnel.h"

struct tally;

/* The tally of an endpoint, which has none yet. Collective. 0; RNL_ERR_NO_MEMORY, _HANDLER, _FORKED. */
RNL_PUBLIC int tally_new(rnl_endpoint *ep, struct tally **out);
/* After rnl_close of the endpoint. */
RNL_PUBLIC void tally_free(struct tally *);
/* Adds all n numbers to the sum of `rank`, as one message. May wait, and run handlers meanwhile. As rnl_begin. */
RNL_PUBLIC int tally_add(struct tally *, unsigned rank, const uint64_t *numbers, size_t n);
RNL_PUBLIC uint64_t tally_sum(const struct tally *);
/* Messages whose sender died before they were complete, and whose handler was told. */
RNL_PUBLIC unsigned tally_cut(const struct tally *);
/* How many tallies this process has made so far, beginning at TALLY_FIRST. */
RNL_PUBLIC unsigned tally_made(void);
enum { TALLY_FIRST = 100 };

/* For tests: tallies that exist in this real process, whichever virtual process made them. */
extern int tally_living;

#endif
