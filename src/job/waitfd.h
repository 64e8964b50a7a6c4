/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waitfd.h - the descriptor that a program waits on in its event loop. It is readable when this or another process of
 * the host raises it, when a watched descriptor is readable, or when its timer runs out.
 *
 * It is raised by a datagram to an abstract unix socket, whose name the kernel chose when its owner bound it: five
 * hexadecimal digits, of which the owner writes the value into its doorbell (base/bell.h). Sending never blocks, and
 * nobody but the owner holds the socket. A doorbell that another rank has overwritten, or a rank in another network
 * namespace, makes wake-ups get lost; no other process can touch the timer, so that costs a bounded time. */
#ifndef RNL_JOB_WAITFD_H
#define RNL_JOB_WAITFD_H

#include "base/bell.h"

#include <stdint.h>

struct rnl_waitfd {
    int epoll, timer; /* -1 = none */
    int socket;       /* raises others, and is sent to by them if `epoll` is there; -1 = none */
};

#define RNL_WAITFD_NONE ((struct rnl_waitfd){-1, -1, -1})

/* Makes the descriptor, `epoll`, and publishes it in `own`. 0 or RNL_ERR_SYSTEM. */
int rnl_waitfd_new(struct rnl_waitfd *, struct rnl_bell *own);
/* Makes it readable whenever fd is. The caller keeps fd and must close it only after rnl_waitfd_free. 0 or
 * RNL_ERR_SYSTEM. */
int rnl_waitfd_watch(const struct rnl_waitfd *, int fd);
/* Makes the descriptor that is published in `of` readable until it is drained; no effect if there is none. */
void rnl_waitfd_raise(struct rnl_waitfd *from, const struct rnl_bell *of);
/* Announces an event to the owner of `bell`, who polls `news`, waits on its descriptor or sleeps on the doorbell. */
void rnl_waitfd_announce(struct rnl_waitfd *from, _Atomic uint32_t *news, struct rnl_bell *bell);
void rnl_waitfd_drain(const struct rnl_waitfd *); /* no effect on RNL_WAITFD_NONE */
/* Sets the timer to this time of CLOCK_MONOTONIC, UINT64_MAX = never. */
void rnl_waitfd_until(const struct rnl_waitfd *, uint64_t ns);
void rnl_waitfd_free(struct rnl_waitfd *); /* no effect on RNL_WAITFD_NONE */

#endif
