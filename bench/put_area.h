/* SPDX-License-Identifier: BSD-3-Clause
 *
 * put_area.h - what the processes and the rows of the test of puts have in common, and bare memory of one process
 * that another one writes: the baselines of windows. It is a memory file, mapped by both; who maps it finds it through
 * /proc, so nothing of a library takes part. */
#ifndef RNL_BENCH_PUT_AREA_H
#define RNL_BENCH_PUT_AREA_H

#include "baseline_copy.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { PUT_BYTES_MAX = 1 << 20 }; /* of a put or get at most */
/* Variants of an order. */
enum put_way {
    BARE_PLAIN = BASELINE_COPY_PLAIN,
    BARE_STRING = BASELINE_COPY_STRING,
    BARE_STREAM = BASELINE_COPY_STREAM,
    BY_MESSAGE,
    BY_WINDOW
};

/* How another process finds it; in memory that both share. */
struct put_name {
    _Atomic uint64_t number; /* counts the areas that were published; 0 = none yet */
    int32_t pid, file;
};

/* Makes an area of whole pages, as a window of a peer is made: sealed, mapped, with all of its pages there. 0, or
 * -errno. */
int put_area_make(size_t bytes, void **at, int *file);
/* Publishes it as number `number`. */
void put_area_publish(struct put_name *, int file, uint64_t number);
/* Maps the area that was published, with all of its pages. 0, or -errno. */
int put_area_map(const struct put_name *, size_t bytes, void **at);

#endif
