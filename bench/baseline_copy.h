/* SPDX-License-Identifier: BSD-3-Clause
 *
 * baseline_copy.h - copies for the bulk baseline, chosen at run time by what the processor has, never by -march. */
#ifndef RNL_BENCH_BASELINE_COPY_H
#define RNL_BENCH_BASELINE_COPY_H

#include <stddef.h>

typedef void baseline_copy(void *to, const void *from, size_t n);

/* Ways to copy into shared memory, best first on no machine in particular: the baseline runs each and keeps the
 * best. */
unsigned baseline_copies_in(void);
baseline_copy *baseline_copy_in(unsigned variant);
/* Out of it: vector loads and stores, as wide as there are. */
baseline_copy *baseline_copy_out(void);

/* Ways to put bytes where another process reads them, each by its name. NULL: this processor has no such way. */
enum baseline_copy_way { BASELINE_COPY_PLAIN, BASELINE_COPY_STRING, BASELINE_COPY_STREAM, BASELINE_COPY_WAYS };
/* BASELINE_COPY_STREAM: past the caches, and done on return. */
baseline_copy *baseline_copy_way(enum baseline_copy_way way);

#endif
