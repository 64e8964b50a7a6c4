/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_stamp.c - when a datagram came to the host (rnl_socket_in.came_ns), which a process that had no turn for long
 * learns from the kernel alone. */
#include "socket/kernel_fixture.h"
#include "support/unit.h"

#include <time.h>

enum {
    LONG = 1200,        /* what a sender of much sends */
    SHORT = 100,        /* and what acknowledges it */
    SINGLES = 40,       /* enough to be received without control data */
    TRIES = 10000,      /* the kernel begins to stamp a while after it was asked to */
    PAUSE_NS = 2000000, /* for which the process does not look */
    SLACK_NS = 10000    /* by which a stamp may be early: two clocks are compared */
};

static uint32_t claims(const void *at, uint32_t bytes)
{
    (void)at;
    return bytes;
}

static struct rnl_socket *open_here(uint32_t without)
{
    const struct rnl_kernel_options o = {.claims = claims, .without = without};
    struct rnl_socket_addr a = {.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
    struct rnl_socket *s = NULL;
    assert_int_equal(rnl_kernel_socket_open(&a, &o, &s), 0);
    return s;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static unsigned char room[65536];

static void put(struct rnl_socket *s, const struct rnl_socket *to, uint32_t bytes)
{
    static unsigned char data[LONG];
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = to->self, .at = data, .bytes = bytes};
    assert_int_equal(s->ops->send(s, &o, 1, &r), 1);
}

static struct rnl_socket_in get(struct rnl_socket *s)
{
    struct rnl_socket_in in = {.at = room, .room = sizeof room, .came_ns = 1};
    uint64_t until = now_ns() + 60000000000u;
    while (s->ops->recv(s, &in, 1) == 0)
        assert_true(now_ns() < until);
    return in;
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = PAUSE_NS};
    nanosleep(&t, NULL);
}

static void what_waited_for_the_process_is_told_by_when_it_came(void **state)
{
    struct rnl_socket *a = open_here(0), *b = open_here(0);
    int told = 0;
    (void)state;
    if (!(facts_of(b).features & RNL_KERNEL_STAMP))
        skip();
    for (int i = 0; !told && i < TRIES; i++) {
        uint64_t before = now_ns();
        put(a, b, LONG);
        uint64_t after = now_ns();
        nap();
        uint64_t came = get(b).came_ns, now = now_ns();
        assert_true(came == 0 || (came + SLACK_NS >= before && came <= now));
        told = came && came <= after;
    }
    assert_true(told);
    a->ops->close(a);
    b->ops->close(b);
}

/* Receiving without control data is quicker; who sends much asks for it, to tell its own waits from the network's. */
static void who_sends_much_learns_when_the_answers_came(void **state)
{
    struct rnl_socket *a = open_here(0), *b = open_here(0);
    (void)state;
    if (!(facts_of(a).features & RNL_KERNEL_STAMP))
        skip();
    for (int round = 0; round < 2; round++) {
        int without = 0;
        for (int i = 0; i < 2 * TRIES && without < SINGLES; i++) {
            put(b, a, SHORT);
            without += get(a).came_ns == 0;
        }
        assert_int_equal(without, SINGLES);
        put(a, b, LONG);
        (void)get(b);
        put(b, a, SHORT);
        assert_true(get(a).came_ns != 0);
    }
    a->ops->close(a);
    b->ops->close(b);
}

static void without_stamps_nothing_is_told(void **state)
{
    struct rnl_socket *a = open_here(RNL_KERNEL_STAMP), *b = open_here(RNL_KERNEL_STAMP);
    (void)state;
    assert_int_equal(facts_of(b).features & RNL_KERNEL_STAMP, 0);
    for (int i = 0; i < SINGLES; i++) {
        put(a, b, i % 2 ? LONG : SHORT);
        assert_int_equal(get(b).came_ns, 0);
    }
    a->ops->close(a);
    b->ops->close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waited_for_the_process_is_told_by_when_it_came),
        cmocka_unit_test(who_sends_much_learns_when_the_answers_came),
        cmocka_unit_test(without_stamps_nothing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
