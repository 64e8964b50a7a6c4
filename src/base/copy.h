/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.h - copies for bulk areas. The instruction is chosen at run time by what the processor has, never by -march. The
 * best copy differs from memcpy because the other side's core holds the cache lines. */
#ifndef RNL_BASE_COPY_H
#define RNL_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/copies.h"
#include "base/error.h"

enum rnl_copy_wide { RNL_COPY_PLAIN = 0, RNL_COPY_AVX2 = 1, RNL_COPY_AVX512 = 2 };

uint8_t rnl_copy_detect(void);
/* Returns whether rep movsb is slow for these two addresses. Where the target lies 1 to 31 bytes behind the source,
 * seen as offsets in their pages, some processors (AMD's family 25) take 15 to 25 times as long. The memcpy of C
 * libraries that use rep movsb does so, too, and the kernel when it copies to or from a buffer; therefore our buffers
 * begin on pages, and their parts on multiples of 32. */
bool rnl_copy_trips(const void *to, const void *from);
/* Copies into memory that another process will read: memcpy below 2 KiB, above that rep movsb unless rnl_copy_trips. */
void rnl_copy_in(void *to, const void *from, size_t n);
/* Copies in as a word of copies.h says. What is stored past the caches is ordered by a fence before the return. */
void rnl_copy_in_by(uint64_t word, void *to, const void *from, size_t n);
/* Copies in by one kind, whatever the size. */
void rnl_copy_in_kind(enum rnl_copy_kind kind, void *to, const void *from, size_t n);
/* Copies into memory of another process that lies near or far, where it has been read before. Far, what is written with
 * plain stores is fetched first, line by line; so bulk goes past the caches, and is ordered by a fence. */
void rnl_copy_put(void *to, const void *from, size_t n, int far);
/* Copies out of shared memory that a peer has just written: plain vector loads and stores, as wide as `wide` says. */
void rnl_copy_out(void *to, const void *from, size_t n, uint8_t wide);

/* Copies up to 64 bytes with no call and no loop, visibly to TSan and ASan. For a memcpy of a few bytes of unknown
 * number, compilers emit an instruction that takes 15 ns to begin. */
RNL_INLINE void rnl_copy_short(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    struct {
        unsigned char b[16];
    } a, b, c, d;
    if (RNL_LIKELY(n == 8)) {
        memcpy(t, f, 8);
    } else if (n > 32) { /* two words of 16 bytes from the front, two from the back */
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

/* Copies a few bytes that were just stored as words of eight: such a load waits for no store, but one that is wider
 * than the store before it waits until that has left the processor. */
RNL_INLINE void rnl_copy_words(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    for (; n >= 8; n -= 8, t += 8, f += 8)
        memcpy(t, f, 8);
    if (n)
        rnl_copy_short(t, f, n);
}

#endif
