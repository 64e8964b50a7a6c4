/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.h - copies for bulk areas, the instruction chosen at run time by what the processor has (never by -march): what
 * is best differs from memcpy because the other side's core holds the lines (DESIGN.md, bulk copies). */
#ifndef RNL_BASE_COPY_H
#define RNL_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

enum rnl_copy_wide { RNL_COPY_PLAIN = 0, RNL_COPY_AVX2 = 1, RNL_COPY_AVX512 = 2 };

uint8_t rnl_copy_detect(void);
/* Does rep movsb trip over these two? Where the target lies 1 to 31 bytes behind the source, seen in their pages, some
 * processors (AMD's family 25) take 15 to 25 times as long. So does the memcpy of C libraries that use it, and the
 * kernel when it copies to or from a buffer: ours begin on pages, and what is in them on multiples of 32. */
int rnl_copy_trips(const void *to, const void *from);
/* Into memory that another will read: memcpy below 2 KiB, rep movsb above unless it trips. */
void rnl_copy_in(void *to, const void *from, size_t n);
/* Out of shared memory that a peer has just written: plain vector loads and stores, as wide as `wide` says. */
void rnl_copy_out(void *to, const void *from, size_t n, uint8_t wide);

/* Up to 64 bytes, with no call and no loop; TSan and ASan see them. Compilers make of a memcpy of a few bytes, how many
 * is not known, an instruction that takes 15 ns to begin. */
RNL_INLINE void rnl_copy_short(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    struct {
        unsigned char b[16];
    } a, b, c, d;
    if (RNL_LIKELY(n == 8)) {
        memcpy(t, f, 8);
    } else if (n > 32) { /* two from the front, two from the back */
        memcpy(&a, f, 16);
        memcpy(&b, f + 16, 16);
        memcpy(&c, f + n - 32, 16);
        memcpy(&d, f + n - 16, 16);
        memcpy(t, &a, 16);
        memcpy(t + 16, &b, 16);
        memcpy(t + n - 32, &c, 16);
        memcpy(t + n - 16, &d, 16);
    } else if (n >= 16) {
        memcpy(&a, f, 16);
        memcpy(&b, f + n - 16, 16);
        memcpy(t, &a, 16);
        memcpy(t + n - 16, &b, 16);
    } else if (n > 8) {
        uint64_t x, y;
        memcpy(&x, f, 8);
        memcpy(&y, f + n - 8, 8);
        memcpy(t, &x, 8);
        memcpy(t + n - 8, &y, 8);
    } else if (n >= 4) {
        uint32_t x, y;
        memcpy(&x, f, 4);
        memcpy(&y, f + n - 4, 4);
        memcpy(t, &x, 4);
        memcpy(t + n - 4, &y, 4);
    } else if (n) {
        unsigned char x = f[0], y = f[n / 2], z = f[n - 1];
        t[0] = x;
        t[n / 2] = y;
        t[n - 1] = z;
    }
}

#endif
