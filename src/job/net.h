/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.h - opens the UDP sockets of ranks before any rank starts. So every address is known when the first rank starts,
 * early datagrams wait in the socket's buffer, and ranks need not exchange their addresses. */
#ifndef RNL_JOB_NET_H
#define RNL_JOB_NET_H

#include "net/socket/socket.h"

#include <stdint.h>

enum rnl_net_where {
    RNL_NET_LOOPBACK, /* 127.0.0.1, or ::1 on a host without IPv4 */
    RNL_NET_ANY       /* every address of this host, of IPv6 and IPv4 where it has both */
};

/* Opens n sockets, close-on-exec, on ports that the system chooses; `at` gets the addresses they are bound to. Returns
 * 0, or -errno, and then none is open. */
int rnl_net_open(enum rnl_net_where where, uint32_t n, int *fd, struct rnl_socket_addr *at);
void rnl_net_close(uint32_t n, int *fd);
/* Returns the remedy, to be put behind a colon, for a failure of rnl_net_open with errno `e`. */
const char *rnl_net_remedy(int e);

#endif
