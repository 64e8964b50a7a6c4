/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.h - the UDP sockets of ranks, opened before the ranks are: so every address is known when the first of them
 * starts, what comes early waits in the socket's buffer, and ranks need not tell anybody where they are. */
#ifndef RNL_JOB_NET_H
#define RNL_JOB_NET_H

#include "transport/socket.h"

#include <stdint.h>

enum rnl_net_where {
    RNL_NET_LOOPBACK, /* 127.0.0.1, or ::1 where there is no such */
    RNL_NET_ANY       /* every address of this host; both families where there are both */
};

/* n sockets, close-on-exec, on ports that the system chooses; `at` says where they are bound. 0; or -errno, and none
 * is open. */
int rnl_net_open(enum rnl_net_where where, uint32_t n, int *fd, struct rnl_socket_addr *at);
void rnl_net_close(uint32_t n, int *fd);
/* What to change when that failed with errno `e`, to stand behind a colon. */
const char *rnl_net_remedy(int e);

#endif
