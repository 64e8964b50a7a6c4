/* SPDX-License-Identifier: BSD-3-Clause
 *
 * netns.h - two network namespaces of the test's own, joined by a wire, for sockets that need an interface. They have
 * no names and end with the process. Making them takes root; a test without it is skipped. */
#ifndef RNL_TESTS_SUPPORT_NETNS_H
#define RNL_TESTS_SUPPORT_NETNS_H

#include <stdint.h>

/* Side 0 has 10.77.0.1 and fd77::1 on its end of the wire, the interface `wire`; side 1 has .2 and ::2. Neither is
 * entered yet. Returns NULL, or why it cannot be done here. */
const char *support_netns_make(void);
/* The same, whose wire has so many queues at both ends. */
const char *support_netns_make_queues(unsigned queues);
/* From now on what this thread opens belongs to that side. */
void support_netns_enter(unsigned side);
/* Runs a command of the shell on that side, which has to succeed. */
void support_netns_do(unsigned side, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for one that may fail. Returns 1 if it succeeded. */
int support_netns_try(unsigned side, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* NULL, or why AF_XDP cannot be used on the wire (no privilege, a kernel without it). */
const char *support_netns_no_xdp(void);

#define SUPPORT_NETNS_WIRE "wire"

#endif
