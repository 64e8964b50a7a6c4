/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.h - copies for bulk areas, the instruction chosen at run time by what the processor has (never by -march): what
 * is best differs from memcpy because the other side's core holds the lines (DESIGN.md, bulk copies). */
#ifndef RNL_BASE_COPY_H
#define RNL_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>

enum rnl_copy_wide { RNL_COPY_PLAIN = 0, RNL_COPY_AVX2 = 1, RNL_COPY_AVX512 = 2 };

uint8_t rnl_copy_detect(void);
/* Into shared memory that a peer will read: memcpy below 2 KiB, rep movsb above. */
void rnl_copy_in(void *to, const void *from, size_t n);
/* Out of shared memory that a peer has just written: plain vector loads and stores, as wide as `wide` says. */
void rnl_copy_out(void *to, const void *from, size_t n, uint8_t wide);

#endif
