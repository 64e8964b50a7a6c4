/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bell.h - the page by which others wake an endpoint. Every process of the job on this host can write it, so it is a
 * hint only: whoever sleeps on it looks at everything first and bounds its sleep, and nothing in it is ever used as a
 * length or an offset unchecked.
 *
 *   0          4          8                     64        128                            2048          4096
 *   +----------+----------+---------------------+---------+------------------------------+-------------+
 *   | word     | want_fd  | 0                   | 0       | from[1920], by rank mod 1920 | 0           |
 *   +----------+----------+---------------------+---------+------------------------------+-------------+
 *    senders    owner                                       sender 1, owner 0 */
#ifndef RNL_BASE_BELL_H
#define RNL_BASE_BELL_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { RNL_BELL_BYTES = 4096, RNL_BELL_FROM = 1920 };

struct rnl_bell {
    _Atomic uint32_t word;    /* futex: whoever rings adds 1, then wakes */
    _Atomic uint32_t want_fd; /* 1 = the owner waits in poll: also raise its descriptor */
    unsigned char zero0[120];
    _Atomic uint8_t from[RNL_BELL_FROM]; /* 1 = rank published into a ring that was armed */
    unsigned char zero1[2048];
};
static_assert(offsetof(struct rnl_bell, want_fd) == 4, "bell.want_fd");
static_assert(offsetof(struct rnl_bell, from) == 128, "bell.from");
static_assert(sizeof(struct rnl_bell) == RNL_BELL_BYTES, "a bell is one page");

#endif
