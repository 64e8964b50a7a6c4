/* SPDX-License-Identifier: BSD-3-Clause
 *
 * resend.h - a stream of bytes that survives its connection. Both sides count what they take in, and keep what they
 * have sent until the other says that it has it; on a new connection each tells how far it got, and the other goes on
 * from there: nothing is lost, and nothing comes twice. Pure: no clock, no system calls.
 *
 *   at   [ .. first: has it | first .. next: has left, kept | next .. end: is to leave ]
 *
 * `base` is the number of at[first] in the stream. */
#ifndef RNL_JOB_RESEND_H
#define RNL_JOB_RESEND_H

#include <stddef.h>
#include <stdint.h>

struct rnl_resend {
    unsigned char *at;
    size_t room, first, next, end;
    uint64_t base;
    uint64_t taken, told; /* of the other direction: bytes taken in, and of how many the other side has been told */
    uint8_t keeps;        /* 0: what has left is forgotten, since there will be no other connection */
};

void rnl_resend_free(struct rnl_resend *); /* what was in it is wiped */

/* Behind what is there: 0, or -1: no memory, and nothing is changed. */
int rnl_resend_put(struct rnl_resend *, const void *bytes, size_t n);
/* What is to leave next: how many bytes from *at. */
size_t rnl_resend_ready(const struct rnl_resend *, const unsigned char **at);
void rnl_resend_left(struct rnl_resend *, size_t n);

/* The other side has all before `through`. 0, or -1: more than has left, which it cannot say. What it said before, and
 * comes again, changes nothing. */
int rnl_resend_acknowledged(struct rnl_resend *, uint64_t through);
/* A new connection, and that is how far the other side got: the rest leaves again. 0, or -1: it has not got so far, or
 * wants what is kept no more. */
int rnl_resend_again(struct rnl_resend *, uint64_t through);

#endif
