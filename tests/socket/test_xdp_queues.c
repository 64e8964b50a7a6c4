/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AF_XDP on an interface with two queues: whoever has one of them gets by its rings what comes by that one, and by the
 * kernel's socket what comes by the other. A frame leaves by the sender's queue, and on a virtual wire comes by the one
 * with the same number, if the driver's hook takes it there: the kernel's counts them all to queue 0. */
#include "net/socket/xdp/xdp.h"

#include <stdio.h>
#include <unistd.h>

#include "net/socket/kernel.h"
#include "net/socket/xdp/queue.h"
#include "support/must.h"
#include "support/netns.h"
#include "support/unit.h"

enum { PATIENCE_MS = 30000 };

struct end {
    struct rnl_socket *s;
    struct rnl_socket_addr at;
    struct rnl_xdp_queue *queue;
};

static struct end open_end(uint8_t side, uint32_t queue)
{
    struct rnl_socket_addr a = {.ip = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(side + 1)}};
    struct end e;
    struct rnl_socket *kernel;
    support_netns_enter(side);
    assert_int_equal(rnl_kernel_socket_open(&a, NULL, &kernel), 0);
    e.at = kernel->self;
    assert_int_equal(rnl_xdp_queue_open(SUPPORT_NETNS_WIRE, queue, RNL_XDP_COPY, &e.at.port, 1, &e.queue), 0);
    assert_int_equal(
        rnl_xdp_socket_new(kernel, rnl_xdp_queue_socket(e.queue, 0), rnl_xdp_queue_memory(e.queue), NULL, &e.s), 0);
    return e;
}

static void close_end(struct end *e)
{
    e->s->ops->close(e->s);
    rnl_xdp_queue_close(e->queue);
}

static struct rnl_xdp_facts facts(const struct end *e)
{
    struct rnl_xdp_facts f;
    rnl_xdp_socket_facts(e->s, &f);
    return f;
}

/* Sends until one that left by the rings has come, and says whether it came by those of the other end. */
static bool comes_by_rings(struct end *from, struct end *to)
{
    uint8_t got[64];
    const uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
    for (uint32_t number = 1; test_now_ns() < until; number++) {
        const struct rnl_socket_out o = {.to = to->at, .at = &number, .bytes = sizeof number};
        const struct rnl_xdp_facts sent = facts(from), before = facts(to);
        struct rnl_socket_result r;
        (void)from->s->ops->send(from->s, &o, 1, &r);
        const bool left_by_rings = facts(from).frames.sent > sent.frames.sent;
        for (const uint64_t end = test_now_ns() + 20000000; test_now_ns() < end;) {
            struct rnl_socket_in in = {.at = got, .room = sizeof got};
            if (to->s->ops->recv(to->s, &in, 1) != 1 || memcmp(got, &number, sizeof number) != 0)
                continue;
            if (left_by_rings)
                return facts(to).frames.received > before.frames.received;
            break;
        }
    }
    fail_msg("no datagram that left by the rings arrived");
    return false;
}

static void a_queue_has_what_comes_by_it(void **state)
{
    (void)state;
    for (uint32_t here = 0; here < 2; here++)
        for (uint32_t there = 0; there < 2; there++) {
            struct end a = open_end(0, here), b = open_end(1, there);
            assert_int_equal(comes_by_rings(&a, &b), here == there);
            assert_int_equal(comes_by_rings(&b, &a), here == there);
            close_end(&a);
            close_end(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_queue_has_what_comes_by_it)};
    const char *why = support_netns_make_queues(2);
    if (!why)
        why = support_netns_no_xdp();
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
