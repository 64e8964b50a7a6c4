/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wires.h - endpoints of one hub as if each ran on a host of its own: what they send each other goes through the
 * datagram transport, over sockets of a small network in memory. Tests of streams and interfaces run so, too:
 *
 *   RNL_TEST_REMOTE=""           over datagrams that all arrive, in order
 *   RNL_TEST_REMOTE="loss=5%"    and what net/fault/fault.h can do to them
 *   RNL_TEST_PER_HOST=2          so many ranks share a host, and memory; else one
 *   RNL_TEST_EAGER=1             for tests of one thread that look for what they have just sent: test_wires_settle
 *                                lets all that is on its way arrive, and all are connected from the start */
#ifndef RNL_TESTS_SUPPORT_WIRES_H
#define RNL_TESTS_SUPPORT_WIRES_H

#include <stdint.h>

#include "runnel/runnel.h"

struct test_wires;

/* A network for the ranks of a hub; NULL if the environment does not ask for one. */
struct test_wires *test_wires_wanted(unsigned size);
struct test_wires *test_wires_new(unsigned size, const char *faults, unsigned per_host);
/* What links are told; else the defaults. */
struct rnl_remote_options;
void test_wires_options(struct test_wires *w, const struct rnl_remote_options *opt);
/* Who is attached from now on has a clock that goes on by a little whenever it is looked at, and in sleeps, which are
 * short: one thread sees the same on every machine, however slow. */
void test_wires_ticks(struct test_wires *w);
/* What that clock shows, and so much later. */
uint64_t test_wires_now_ns(struct test_wires *w);
void test_wires_pass(struct test_wires *w, uint64_t ns);
/* Whenever a rank with that clock waits in a call, and one thread drives all, this is to drive the others. NULL: nobody
 * does. */
typedef void test_wires_idle(unsigned waits);
void test_wires_idles(test_wires_idle *fn);
/* It stands still, but for that. */
void test_wires_stop(struct test_wires *w, int yes);
/* A fresh endpoint of `rank` reaches the others through the network from now on. */
void test_wires_attach(struct test_wires *w, rnl_endpoint *ep);
/* Connects all who are attached; then test_wires_settle lets arrive what is on its way. */
void test_wires_connect(struct test_wires *w);
/* ... if RNL_TEST_EAGER says so. Fine with NULL. */
void test_wires_connect_wanted(struct test_wires *w);
void test_wires_settle(void);
/* From now on the endpoints are of different threads. Fine with NULL. */
void test_wires_threads(struct test_wires *w);
/* When all endpoints are freed. Fine with NULL. */
void test_wires_free(struct test_wires *w);

/* From now on the host takes no more of each every-th call that hands it datagrams: it says `why` (enum
 * rnl_socket_stop). 0 = it takes all. */
void test_wires_refuse(struct test_wires *w, unsigned every, unsigned why);
/* From now on (before anybody is attached) each rank has so many addresses, at most 4. */
void test_wires_addresses(struct test_wires *w, unsigned n);
/* The address of a rank: what is sent to it arrives, what is sent from it leaves. 0: it is lost, and nobody says so. */
void test_wires_address(struct test_wires *w, unsigned rank, unsigned way, int in, int out);
/* Sees each datagram before it travels, and may change it; 0 = it is lost. Called with the network locked: it may not
 * call back. */
typedef int test_wires_tap(void *arg, unsigned from, unsigned to, unsigned way, unsigned char *at, uint32_t bytes);
void test_wires_tapped(struct test_wires *w, test_wires_tap *tap, void *arg);
/* The card of this address of a rank says that it has a link, or none. What is sent goes as before. */
void test_wires_link(struct test_wires *w, unsigned rank, unsigned which, int up);
/* A datagram arrives at `to` as if from that address of `from`; way = 9: from one that nobody has. */
void test_wires_forge(struct test_wires *w, unsigned from, unsigned way, unsigned to, const void *at, uint32_t bytes);
/* How often it did. */
unsigned long test_wires_refused(struct test_wires *w);
/* Datagrams that were handed to the network. */
unsigned long test_wires_sent(struct test_wires *w);
/* How often anybody handed it some. */
unsigned long test_wires_calls(struct test_wires *w);
/* How often anybody asked it for some. */
unsigned long test_wires_looks(struct test_wires *w);

#endif
