/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loop.h - endpoints that take each other for processes of different hosts, over the kernel's sockets on loopback: in
 * one process, or in a process each. */
#ifndef RNL_TESTS_SUPPORT_LOOP_H
#define RNL_TESTS_SUPPORT_LOOP_H

#include <stdatomic.h>

#include "endpoint/net.h"
#include "net/datagram/transport.h"
#include "net/socket/kernel.h"
#include "remote/remote.h"
#include "runnel/runnel.h"

enum { TEST_LOOP_MAX = 16 };

struct test_loop { /* 0 = the default */
    struct rnl_kernel_options kernel;
    struct rnl_remote_options remote;
    uint32_t trip_ns; /* what calls of the kernel are said to cost; as measured */
    uint8_t protect;  /* enum rnl_protect */
    uint8_t ipv6;
    uint8_t local;     /* bits: ranks that are reached by shared memory, if they are in one process */
    uint8_t apart;     /* bits: ranks that are said to run under other kernels */
    uint8_t strangers; /* bits: ranks with another key, which the rest knows by their addresses only */
    struct rnl_socket *(*wrap)(struct rnl_socket *, unsigned rank); /* something between transport and kernel */
};
/* ep, of a hub, gets a socket; all of a job have to have theirs before one of them sends. opt may be NULL. */
void test_loop_attach(rnl_endpoint *ep, const struct test_loop *opt);
/* The address of a rank that is attached, here or in test_loop_run. */
struct rnl_socket_addr test_loop_addr(unsigned rank);
/* The socket of one of this process. */
struct rnl_socket *test_loop_socket(unsigned rank);

struct test_loop_run {                  /* what the processes of a run share */
    _Atomic uint32_t at[TEST_LOOP_MAX]; /* steps of each: test_loop_meet */
    struct rnl_addr address[TEST_LOOP_MAX];
    _Atomic uint64_t word[64]; /* the test's own */
};
struct test_loop_side {
    rnl_endpoint *ep;
    unsigned rank, size;
    struct test_loop_run *run;
    void *arg;
};
/* `size` processes with an endpoint each run body; none of them is ours. It returns when all are through. An endpoint
 * is not closed, the process ends with it. 0 = all ended well. */
int test_loop_run(unsigned size, const struct test_loop *opt, void (*body)(struct test_loop_side *), void *arg);
/* All have come so far. Messages are taken in meanwhile. */
void test_loop_meet(struct test_loop_side *s);
/* This process on that processor, if it may be. */
void test_loop_pin(unsigned cpu);

#endif
