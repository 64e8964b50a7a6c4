/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM_PAR: several threads call for the same bundle, endpoints and rank at once, poll, wait and change tables; two ranks
 * of one process. Also what threads with a rank each share: nothing that is written. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "am/world.h"

enum { THREADS = 3, ROUNDS = 2000, COUNT = 1, ANSWER, TAKE, GOT };

struct slot { /* of one thread of one rank */
    unsigned rank, number, rounds;
    atomic_uint answers, got;
    pthread_t thread;
};
static struct slot slot[2][THREADS];
static atomic_uint counted, taken, came_back;
static atomic_uint working;

static void count(void *token, int32_t rank, int32_t number)
{
    atomic_fetch_add(&counted, 1);
    TEST_MUST(AM_Reply2(token, ANSWER, rank, number) == AM_OK);
}
static void answer(void *token, int32_t rank, int32_t number)
{
    (void)token;
    atomic_fetch_add(&slot[rank][number].answers, 1);
}
static void take(void *token, void *buf, size_t nbytes, int32_t rank, int32_t number)
{
    TEST_MUST(memcmp(buf, test_pattern((uint64_t)number, 0), nbytes) == 0);
    atomic_fetch_add(&taken, 1);
    TEST_MUST(AM_ReplyXfer2(token, (uintptr_t)(THREADS + number) * 70000, GOT, buf, nbytes, rank, number) == AM_OK);
}
static void got(void *token, void *buf, size_t nbytes, int32_t rank, int32_t number)
{
    (void)token;
    TEST_MUST(memcmp(buf, test_pattern((uint64_t)number, 0), nbytes) == 0);
    atomic_fetch_add(&slot[rank][number].got, 1);
}
static void returned(int status, op_t opcode, void *token)
{
    (void)opcode, (void)token;
    TEST_MUST(status == AM_EBADENTRY);
    atomic_fetch_add(&came_back, 1);
}

static void *work(void *arg)
{
    struct slot *s = arg;
    ep_t ep = world.ep[s->rank];
    eb_t eb = world.eb[s->rank];
    int me = (int)s->number, at;
    int32_t rank = (int32_t)s->rank;
    for (unsigned i = 0; i < s->rounds; i++) {
        int to = (int)((i + s->number) & 1);
        size_t nbytes = i * 977 % RNL_AM_MEDIUM;
        const unsigned char *bytes = test_pattern((uint64_t)me, 0);
        TEST_MUST(AM_Request2(ep, to, COUNT, rank, me) == AM_OK);
        if (i % 16 == 0)
            TEST_MUST(AM_RequestXfer2(ep, to, (uintptr_t)me * 70000, TAKE, bytes, nbytes, rank, me) == AM_OK);
        if (i % 32 == 0) {
            TEST_MUST(AM_MapAny(ep, &at, world.name[to], TAG) == AM_OK);
            TEST_MUST(AM_UnMap(ep, at) == AM_OK);
            TEST_MUST(AM_Request0(ep, 100, COUNT) == AM_OK); /* not in use */
        }
        while (atomic_load(&s->answers) <= i || atomic_load(&s->got) <= i / 16) {
            int status = i & 1 ? AM_Poll(eb) : AM_WaitSemaFor(eb, 1000000);
            TEST_MUST(status == AM_OK || status == AM_ERR_NOT_SENT);
        }
    }
    atomic_fetch_sub(&working, 1);
    while (atomic_load(&working)) /* others want replies */
        TEST_MUST(AM_Poll(eb) == AM_OK);
    return NULL;
}

static void threads_share_bundles_and_endpoints(void **state)
{
    unsigned rounds = ROUNDS / test_slowness();
    (void)state;
    world_open(2, AM_PAR);
    for (unsigned i = 0; i < 2; i++) {
        ep_t ep = world.ep[i];
        assert_int_equal(AM_SetHandler(ep, COUNT, count), AM_OK);
        assert_int_equal(AM_SetHandler(ep, ANSWER, answer), AM_OK);
        assert_int_equal(AM_SetHandler(ep, TAKE, take), AM_OK);
        assert_int_equal(AM_SetHandler(ep, GOT, got), AM_OK);
        assert_int_equal(AM_SetHandler(ep, 0, returned), AM_OK);
        assert_int_equal(AM_SetEventMask(world.eb[i], AM_NOTEMPTY), AM_OK);
    }
    test_wires_threads(world.h.wires);
    atomic_store(&working, 2 * THREADS);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned t = 0; t < THREADS; t++) {
            slot[i][t].rank = i;
            slot[i][t].number = t;
            slot[i][t].rounds = rounds;
            assert_int_equal(pthread_create(&slot[i][t].thread, NULL, work, &slot[i][t]), 0);
        }
    for (unsigned i = 0; i < 2; i++)
        for (unsigned t = 0; t < THREADS; t++)
            assert_int_equal(pthread_join(slot[i][t].thread, NULL), 0);
    assert_int_equal(atomic_load(&counted), 2 * THREADS * rounds);
    assert_int_equal(atomic_load(&taken), 2 * THREADS * ((rounds + 15) / 16));
    assert_int_equal(atomic_load(&came_back), 2 * THREADS * ((rounds + 31) / 32));
    world_close();
}

/* A thread that sleeps learns that another one took its message in. */
static atomic_int sleeping;
static void *sleeper(void *arg)
{
    (void)arg;
    atomic_store(&sleeping, 1);
    TEST_MUST(AM_WaitSema(world.eb[1]) == AM_OK);
    atomic_store(&sleeping, 2);
    return NULL;
}

static void a_sleeper_wakes_for_what_another_thread_took_in(void **state)
{
    pthread_t thread;
    (void)state;
    world_open(2, AM_PAR);
    assert_int_equal(AM_SetHandler(world.ep[1], COUNT, note), AM_OK);
    assert_int_equal(AM_SetEventMask(world.eb[1], AM_NOTEMPTY), AM_OK);
    assert_int_equal(pthread_create(&thread, NULL, sleeper, NULL), 0);
    while (!atomic_load(&sleeping))
        test_sleep_ms(1);
    test_sleep_ms(20);
    assert_int_equal(atomic_load(&sleeping), 1);
    uint64_t begin = test_now_ns();
    assert_int_equal(AM_Request0(world.ep[0], 1, COUNT), AM_OK);
    while (atomic_load(&sleeping) != 2 && test_now_ns() - begin < 20000000000u)
        assert_int_equal(AM_Poll(world.eb[1]), AM_OK);
    assert_int_equal(atomic_load(&sleeping), 2);
    assert_int_equal(pthread_join(thread, NULL), 0);
    world_close();
}

static void endpoints_of_two_ranks_share_no_cache_line(void **state)
{
    (void)state;
    world_open(2, AM_PAR);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal((uintptr_t)world.ep[i] % 64, 0);
        assert_int_equal((uintptr_t)world.eb[i] % 64, 0);
    }
    world_close();
}

/* A thread that composes waits for room, and another with a short request for it: each gives up the lock as it waits,
 * however it came to hold it. */
static atomic_uint fetched, served;
static void on_fetched(void *token, void *buf, size_t nbytes, int32_t x)
{
    (void)token, (void)buf, (void)nbytes, (void)x;
    atomic_fetch_add(&fetched, 1);
}
static void *fetches(void *arg)
{
    for (unsigned i = 0; i < *(unsigned *)arg; i++)
        TEST_MUST(AM_GetXfer1(world.ep[0], 1, 0, GOT, 100, 1000, 0) == AM_OK);
    while (atomic_load(&fetched) < *(unsigned *)arg)
        TEST_MUST(AM_Poll(world.eb[0]) == AM_OK);
    return NULL;
}
static void *asks(void *arg)
{
    for (unsigned i = 0; i < *(unsigned *)arg; i++)
        TEST_MUST(AM_Request2(world.ep[0], 1, COUNT, 0, 0) == AM_OK);
    while (atomic_load(&slot[0][0].answers) < *(unsigned *)arg)
        TEST_MUST(AM_Poll(world.eb[0]) == AM_OK);
    return NULL;
}
static void *serves(void *arg)
{
    (void)arg;
    while (!atomic_load(&served))
        TEST_MUST(AM_Poll(world.eb[1]) == AM_OK);
    return NULL;
}

static void a_short_request_waits_beside_one_that_is_composed(void **state)
{
    unsigned rounds = ROUNDS / test_slowness();
    pthread_t thread[3];
    (void)state;
    world_open(2, AM_PAR);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(AM_SetHandler(world.ep[i], COUNT, count), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], ANSWER, answer), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], GOT, on_fetched), AM_OK);
    }
    test_wires_threads(world.h.wires);
    atomic_store(&slot[0][0].answers, 0);
    assert_int_equal(pthread_create(&thread[0], NULL, fetches, &rounds), 0);
    assert_int_equal(pthread_create(&thread[1], NULL, asks, &rounds), 0);
    assert_int_equal(pthread_create(&thread[2], NULL, serves, NULL), 0);
    assert_int_equal(pthread_join(thread[0], NULL), 0);
    assert_int_equal(pthread_join(thread[1], NULL), 0);
    atomic_store(&served, 1);
    assert_int_equal(pthread_join(thread[2], NULL), 0);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_bundles_and_endpoints),
        cmocka_unit_test(a_short_request_waits_beside_one_that_is_composed),
        cmocka_unit_test(a_sleeper_wakes_for_what_another_thread_took_in),
        cmocka_unit_test(endpoints_of_two_ranks_share_no_cache_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
