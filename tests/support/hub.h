/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hub.h - endpoints of one process: all driven by one thread, or one thread each.
 */
#ifndef RNL_TESTS_SUPPORT_HUB_H
#define RNL_TESTS_SUPPORT_HUB_H

#include "runnel/runnel.h"
#include "support/must.h"

enum { TEST_HUB_MAX = 16 };
struct test_wires;
struct test_hub {
    rnl_hub *hub;
    struct test_wires *wires; /* the ranks are on different hosts; NULL = on one */
    unsigned size;
    rnl_endpoint *ep[TEST_HUB_MAX];
    int closed[TEST_HUB_MAX]; /* what rnl_close returned */
    int dead[TEST_HUB_MAX];
};
/* Opens a hub and all its endpoints. opt may be NULL; its hub, hub_rank and size are filled in. */
void test_hub_open(struct test_hub *h, unsigned size, const struct rnl_options *opt);
/* That rank is dead for its hub and for the others from now on; test_hub_close frees what is left of it. */
void test_hub_kill(struct test_hub *h, unsigned rank, enum rnl_death_reason why, int detail);
/* Closes all living endpoints that are not NULL, a thread each, and frees the hub. The largest loss: 0 or a negative
 * status.
 */
int test_hub_close(struct test_hub *h);

struct test_thread {
    unsigned rank, size;
    rnl_hub *hub;
    struct test_wires *wires;
    rnl_endpoint *ep; /* open; the body must not close it */
    void *arg;
    int closed;
};
/* Runs body on `size` threads with an endpoint each, closes them (collective) and returns the largest loss. */
int test_hub_threads(unsigned size, const struct rnl_options *opt, void (*body)(struct test_thread *), void *arg);

#endif
