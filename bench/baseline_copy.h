/* SPDX-License-Identifier: BSD-3-Clause
 *
 * baseline_copy.h - copies for the bulk baseline, chosen at run time by what the processor has, never by -march. */
#ifndef RNL_BENCH_BASELINE_COPY_H
#define RNL_BENCH_BASELINE_COPY_H

#include <stddef.h>

typedef void baseline_copy(void *to, const void *from, size_t n);

/* Ways to put bytes where another process reads them, each by its name. */
enum baseline_copy_way {
    BASELINE_COPY_PLAIN,    /* memcpy */
    BASELINE_COPY_STRING,   /* rep movsb */
    BASELINE_COPY_STREAM,   /* past the caches, as wide as the processor can, and done on return */
    BASELINE_COPY_VECTOR,   /* loads and stores through the caches, as wide as the processor can */
    BASELINE_COPY_STREAM32, /* past the caches in words of 32 bytes, where STREAM is wider */
    BASELINE_COPY_WAYS
};
/* NULL: this processor has no such way. */
baseline_copy *baseline_copy_way(enum baseline_copy_way way);

/* A way through a ring: copy in, copy out, and the bytes of the ring that are in use. */
struct baseline_through {
    enum baseline_copy_way in, out;
    size_t ring;
};
enum { BASELINE_THROUGH_MAX = 24 };
/* How many this processor has, and the one of that number. The baseline runs each, and keeps the best. */
unsigned baseline_throughs(void);
struct baseline_through baseline_through(unsigned number);
/* Text such as "movsb in, vector out, ring of 512K". */
void baseline_through_text(unsigned number, char *out, size_t size);

#endif
