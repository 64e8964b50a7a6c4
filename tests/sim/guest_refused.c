/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guest_refused.c - names what nobody stands in for. */
#include <poll.h>
#include <sys/socket.h>

int main(void)
{
    struct pollfd p = {.fd = socket(AF_INET, SOCK_DGRAM, 0), .events = POLLIN};
    return poll(&p, 1, 0);
}
