/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AF_XDP on an interface with two queues: whoever has one of them gets by its rings what comes by that one, and by the
 * kernel's socket what comes by the other. A frame leaves by the sender's queue, and on a virtual wire comes by the one
 * with the same number, if the driver's hook takes it there: the kernel's counts them all to queue 0. */
#include "net/socket/xdp/xdp.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket/kernel.h"
#include "net/socket/xdp/queue.h"
#include "support/must.h"
#include "support/netns.h"
#include "support/random.h"
#include "support/unit.h"

enum { PATIENCE_MS = 30000, OTHERS_PORT = 1 };

struct end {
    struct rnl_socket *s;
    struct rnl_socket_addr at;
    struct rnl_xdp_queue *queue;
};

/* One end, which has the queue, and for up to one other endpoint of its host. */
static struct end open_ends(uint8_t side, uint32_t queue, uint32_t endpoints)
{
    struct rnl_socket_addr a = {.ip = {[10] = 0xff, 0xff, 10, 77, 0, (uint8_t)(side + 1)}};
    struct end e;
    struct rnl_socket *kernel;
    support_netns_enter(side);
    assert_int_equal(rnl_kernel_socket_open(&a, NULL, &kernel), 0);
    e.at = kernel->self;
    const uint16_t port[2] = {e.at.port, OTHERS_PORT};
    assert_int_equal(rnl_xdp_queue_open(SUPPORT_NETNS_WIRE, queue, RNL_XDP_COPY, port, endpoints, &e.queue), 0);
    assert_int_equal(rnl_xdp_queue_others(e.queue), 1);
    assert_int_equal(
        rnl_xdp_socket_new(kernel, rnl_xdp_queue_socket(e.queue, 0), rnl_xdp_queue_memory(e.queue), NULL, &e.s), 0);
    return e;
}

static struct end open_end(uint8_t side, uint32_t queue)
{
    return open_ends(side, queue, 1);
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

/* ---- a rank that writes what it likes into what the ranks of a host share ---- */

static void scribble(struct rnl_xdp_rings *r, struct test_random *random)
{
    struct rnl_xdp_ring *ring = test_random_next(random) % 2 ? &r->fill : &r->done;
    const uint64_t any = test_random_next(random), where = test_random_next(random);
    const uint64_t chunk = (where >> 8) % (2 * rnl_xdp_chunks(r->endpoints));
    switch (where % 8) {
    case 0:
        atomic_store(ring->producer, (uint32_t)any);
        break;
    case 1:
        atomic_store(ring->consumer, atomic_load(ring->producer) - (uint32_t)(any % 1024));
        break;
    case 2:
        atomic_store(&r->area->lock, any % 3 ? 0 : (uint32_t)any);
        break;
    case 3:
        atomic_store(&r->area->under_way[any % (r->endpoints * RNL_XDP_OUT)], any >> 60 & 1);
        break;
    case 4:
        memcpy(r->chunks + any % (rnl_xdp_chunks(r->endpoints) * RNL_XDP_CHUNK - 8), &where, 8);
        break;
    default:
        ((uint64_t *)ring->entries)[any % ring->entry_count] =
            where % 16 ? chunk * RNL_XDP_CHUNK + (any % 4 ? 0 : any % 4096) : any;
    }
}

static bool send_number(struct end *from, const struct end *to, uint32_t number)
{
    const struct rnl_socket_out o = {.to = to->at, .at = &number, .bytes = sizeof number};
    struct rnl_socket_result r;
    return from->s->ops->send(from->s, &o, 1, &r) == 1;
}

static bool comes(struct end *to, uint32_t *number)
{
    struct rnl_socket_in in = {.at = number, .room = sizeof *number};
    return to->s->ops->recv(to->s, &in, 1) == 1 && in.bytes == sizeof *number;
}

/* The other rank of the queue goes on, by the rings or without them, and whoever opened the queue opens it again. */
static void another_rank_writes_anything(void **state)
{
    enum { TURNS = 3000, LAST = 77777 };
    struct test_random random = test_random_of(22, 1);
    struct rnl_xdp_rings hostile;
    struct end a = open_end(0, 0), b = open_ends(1, 0, 2);
    const int theirs = rnl_xdp_queue_socket(b.queue, 1);
    uint32_t got = 0, came = 0;
    (void)state;
    assert_int_equal(rnl_xdp_rings_map(&hostile, theirs, rnl_xdp_queue_memory(b.queue), OTHERS_PORT), 0);
    assert_true(comes_by_rings(&a, &b));
    for (uint32_t i = 0; i < TURNS; i++) {
        for (uint64_t n = test_random_next(&random) % 4; n; n--)
            scribble(&hostile, &random);
        (void)send_number(&a, &b, i);
        (void)send_number(&b, &a, i);
        came += comes(&b, &got);
        (void)comes(&a, &got);
        (void)sendto(theirs, NULL, 0, MSG_DONTWAIT, NULL, 0);
    }
    printf("of %d datagrams %u came meanwhile, %llu by the rings; the other rank: %s\n", TURNS, came,
           (unsigned long long)facts(&b).frames.received, facts(&b).works ? "by rings still" : facts(&b).why);
    for (uint64_t until = test_now_ns() + PATIENCE_MS * 1000000ull; got != LAST && test_now_ns() < until;) {
        (void)send_number(&a, &b, LAST);
        (void)comes(&b, &got);
    }
    assert_int_equal(got, LAST);
    rnl_xdp_rings_unmap(&hostile);
    close(theirs);
    close_end(&b);
    b = open_end(1, 0);
    assert_true(comes_by_rings(&a, &b));
    close_end(&a);
    close_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_queue_has_what_comes_by_it),
                                       cmocka_unit_test(another_rank_writes_anything)};
    const char *why = support_netns_make_queues(2);
    if (!why)
        why = support_netns_no_xdp();
    if (why) {
        printf("%s\n", why);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
