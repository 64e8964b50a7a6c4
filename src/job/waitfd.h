/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waitfd.h - the descriptor that a program waits on in its event loop: readable when the endpoint's eventfd is, which
 * every rank of the job can raise and also drain, or when a timer runs out that nobody else has. So a hint that is lost
 * or stolen costs a bounded time. */
#ifndef RNL_JOB_WAITFD_H
#define RNL_JOB_WAITFD_H

#include <stdint.h>

struct rnl_waitfd {
    int epoll, timer; /* -1 = none */
};

#define RNL_WAITFD_NONE ((struct rnl_waitfd){-1, -1})

/* `raise` stays the caller's. 0 or -errno. */
int rnl_waitfd_new(int raise, struct rnl_waitfd *out);
/* From now on readable when fd is, too; 0 or -errno. fd stays the caller's, who closes it not before it is done. */
int rnl_waitfd_watch(const struct rnl_waitfd *w, int fd);
/* The timer runs out at this time of CLOCK_MONOTONIC, UINT64_MAX = never; until then it is not what makes it readable.
 */
void rnl_waitfd_until(const struct rnl_waitfd *w, uint64_t ns);
void rnl_waitfd_free(struct rnl_waitfd *w); /* fine on none */

#endif
