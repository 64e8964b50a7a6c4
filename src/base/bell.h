/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bell.h - the word by which others wake an endpoint. Every process of the job on this host can write it, so it is a
 * hint only: whoever sleeps on it looks at everything first and bounds its sleep. What a sender needs to know to ring
 * it stands in the segment of the pair, where no third process can spoil it (enum rnl_armed, ring/ring.h).
 *
 *   0          4                                                        128
 *   +----------+--------------------------------------------------------+
 *   | word     | 0                                                      |
 *   +----------+--------------------------------------------------------+
 *    who rings */
#ifndef RNL_BASE_BELL_H
#define RNL_BASE_BELL_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_BELL_BYTES = 128 }; /* processors fetch lines in pairs */

struct rnl_bell {
    _Atomic uint32_t word; /* futex: whoever rings adds 1, then wakes */
    unsigned char zero[124];
};
static_assert(offsetof(struct rnl_bell, word) == 0, "bell.word");
static_assert(sizeof(struct rnl_bell) == RNL_BELL_BYTES, "a bell is a pair of lines");

#endif
