/* SPDX-License-Identifier: BSD-3-Clause
 *
 * In which mode a queue is opened, by what the driver of the interface has: without copies, with a copy in the driver's
 * hook, or with one in the kernel's. This test has the system call that asks for a mode, so it sees each question, and
 * plays a driver that has what no virtual interface has. */
#include <errno.h>
#include <linux/if_xdp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/socket/xdp/queue.h"
#include "support/netns.h"
#include "support/unit.h"

enum { MOST = 8 };

static uint16_t asked[MOST]; /* the modes that were asked for, in order; one that was busy counts once */
static unsigned asks;
static bool has_zero_copy; /* the driver that is played */

int bind(int fd, __CONST_SOCKADDR_ARG to, socklen_t bytes)
{
    const struct sockaddr *at = to.__sockaddr__;
    struct sockaddr_xdp a;
    if (at->sa_family != AF_XDP || bytes != sizeof a)
        return (int)syscall(SYS_bind, fd, at, bytes);
    memcpy(&a, at, sizeof a);
    const uint16_t mode = a.sxdp_flags & (XDP_ZEROCOPY | XDP_COPY);
    if (asks == 0 || asked[asks - 1] != mode) {
        assert_true(asks < MOST);
        asked[asks++] = mode;
    }
    if (has_zero_copy && mode == XDP_ZEROCOPY)
        a.sxdp_flags = (uint16_t)((a.sxdp_flags & ~XDP_ZEROCOPY) | XDP_COPY);
    return (int)syscall(SYS_bind, fd, &a, bytes);
}

static enum rnl_xdp_mode open_any(const char *interface)
{
    const uint16_t port = 7;
    struct rnl_xdp_queue *q;
    asks = 0;
    assert_int_equal(rnl_xdp_queue_open(interface, 0, RNL_XDP_ANY, &port, 1, &q), 0);
    const enum rnl_xdp_mode mode = rnl_xdp_queue_mode(q);
    rnl_xdp_queue_close(q);
    return mode;
}

/* An interface with a hook in its driver, and no more. */
static void need_hook(void)
{
    support_netns_enter(0);
    if (!support_netns_try(
            0, "ip link show hook >/dev/null 2>&1 || { ip tuntap add name hook mode tap && ip link set hook "
               "up; } 2>/dev/null"))
        skip();
}

static void a_driver_is_asked_for_no_copies_first_and_then_for_one(void **state)
{
    (void)state;
    need_hook();
    has_zero_copy = false;
    assert_int_equal(open_any("hook"), RNL_XDP_COPY);
    assert_int_equal(asks, 2);
    assert_int_equal(asked[0], XDP_ZEROCOPY);
    assert_int_equal(asked[1], XDP_COPY);
}

static void one_that_has_no_copies_is_asked_for_nothing_else(void **state)
{
    (void)state;
    need_hook();
    has_zero_copy = true;
    assert_int_equal(open_any("hook"), RNL_XDP_ZERO_COPY);
    assert_int_equal(asks, 1);
    assert_int_equal(asked[0], XDP_ZEROCOPY);
}

static void one_without_a_hook_gets_the_kernels(void **state)
{
    (void)state;
    support_netns_enter(0);
    if (!support_netns_try(0, "ip link add plain type bridge 2>/dev/null && ip link set plain up"))
        skip();
    has_zero_copy = false;
    assert_int_equal(open_any("plain"), RNL_XDP_GENERIC);
    assert_int_equal(asks, 1);
    assert_int_equal(asked[0], XDP_COPY);
}

/* The hook of a virtual wire is slower than the kernel's. */
static void a_virtual_wire_is_asked_for_the_kernels_hook_alone(void **state)
{
    (void)state;
    support_netns_enter(0);
    has_zero_copy = true;
    assert_int_equal(open_any(SUPPORT_NETNS_WIRE), RNL_XDP_GENERIC);
    assert_int_equal(asks, 1);
    assert_int_equal(asked[0], XDP_COPY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_is_asked_for_no_copies_first_and_then_for_one),
        cmocka_unit_test(one_that_has_no_copies_is_asked_for_nothing_else),
        cmocka_unit_test(one_without_a_hook_gets_the_kernels),
        cmocka_unit_test(a_virtual_wire_is_asked_for_the_kernels_hook_alone),
    };
    const char *why = support_netns_make();
    if (!why)
        why = support_netns_no_xdp();
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
