/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_refused.c - names what nobody stands in for. */
#include <sys/epoll.h>
#include <sys/socket.h>

int main(void)
{
    return socket(AF_INET, SOCK_DGRAM, 0) + epoll_create1(0);
}
