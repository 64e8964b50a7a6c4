/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bell.h - the doorbell: the word by which others wake an endpoint. Every process of the job on this host can write it,
 * so it is a hint only: whoever sleeps on it looks at everything first and bounds its sleep. What a sender needs to
 * know before it rings lies in the control page of the channel, where no third process can spoil it (enum rnl_armed,
 * ring/ring.h).
 *
 *   0          4           8                                            128
 *   +----------+-----------+--------------------------------------------+
 *   | word     | waitfd    | 0                                          |
 *   +----------+-----------+--------------------------------------------+
 *    written by  its owner, once
 *    whoever rings */
#ifndef RNL_BASE_BELL_H
#define RNL_BASE_BELL_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_BELL_BYTES = 128 }; /* two cache lines, since processors fetch lines in pairs */

struct rnl_bell {
    _Atomic uint32_t word; /* futex: whoever rings adds 1, then wakes the sleeper */
    /* how others make the owner's event loop wake up (job/waitfd.h); 0 = the owner waits in none */
    _Atomic uint32_t waitfd;
    unsigned char zero[120];
};
static_assert(offsetof(struct rnl_bell, word) == 0, "bell.word");
static_assert(offsetof(struct rnl_bell, waitfd) == 4, "bell.waitfd");
static_assert(sizeof(struct rnl_bell) == RNL_BELL_BYTES, "a bell is a pair of lines");

#endif
