/* SPDX-License-Identifier: BSD-3-Clause
 *
 * floor_copy.h - copies for the bulk floor, chosen at run time by what the processor has, never by -march. */
#ifndef RNL_BENCH_FLOOR_COPY_H
#define RNL_BENCH_FLOOR_COPY_H

#include <stddef.h>

typedef void floor_copy(void *to, const void *from, size_t n);

/* Ways to copy into shared memory, best first on no machine in particular: the floor runs each and keeps the best. */
unsigned floor_copies_in(void);
floor_copy *floor_copy_in(unsigned variant);
/* Out of it: vector loads and stores, as wide as there are. */
floor_copy *floor_copy_out(void);

#endif
