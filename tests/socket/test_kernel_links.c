/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links that the kernel announces: a socket on a wire between two namespaces says to which addresses datagrams do not
 * leave any more, tells of each change, and wakes who sleeps. */
#include <poll.h>
#include <stdio.h>

#include "net/socket/kernel.h"
#include "support/must.h"
#include "support/netns.h"
#include "support/unit.h"

enum { PATIENCE_MS = 30000 };
static const struct rnl_socket_addr over_wire = {.ip = {[10] = 0xff, 0xff, 10, 77, 0, 2}, .port = 7},
                                    over_wire6 = {.ip = {0xfd, 0x77, [15] = 2}, .port = 7},
                                    own = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}, .port = 7};
static struct rnl_socket *s;

static void look(void)
{
    uint8_t byte[16];
    struct rnl_socket_in in = {.at = byte, .room = sizeof byte};
    assert_true(s->ops->recv(s, &in, 1) >= 0);
}

/* Waits asleep, as an endpoint does, until another change has been told. */
static void is_woken_after(uint64_t links)
{
    const uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
    while (s->frames->links == links && test_now_ns() < until) {
        struct pollfd any = {.fd = s->ops->fd(s), .events = POLLIN};
        if (s->ops->arm(s) == 0)
            assert_int_equal(poll(&any, 1, PATIENCE_MS), 1);
        look();
    }
    assert_true(s->frames->links > links);
}

static void is_down(bool wire)
{
    assert_int_equal(s->ops->is_down(s, &over_wire), wire);
    assert_int_equal(s->ops->is_down(s, &over_wire6), wire);
    assert_false(s->ops->is_down(s, &own));
}

static void change(unsigned side, const char *state)
{
    const uint64_t before = s->frames->links;
    support_netns_do(side, "ip link set wire %s", state);
    is_woken_after(before);
}

static void a_link_is_a_hint(void **state)
{
    const struct rnl_socket_addr any = {.port = 0};
    (void)state;
    support_netns_enter(0);
    assert_int_equal(rnl_kernel_socket_open(&any, NULL, &s), 0);
    is_down(false);
    for (int times = 0; times < 2; times++) {
        change(1, "down"); /* the carrier of this side goes, and its routes stay */
        is_down(true);
        change(1, "up");
        for (const uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull;
             s->ops->is_down(s, &over_wire) && test_now_ns() < until;)
            look();
        is_down(false);
    }
    change(0, "down"); /* its routes go, too */
    is_down(true);
    s->ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_link_is_a_hint)};
    const char *why = support_netns_make();
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
