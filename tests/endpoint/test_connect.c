/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that cannot be made at the first try: for want of memory, of descriptors, or because the agent has not
 * answered yet. The endpoints' env fails as told. */
#include "stream/inbox.h"

#include <pthread.h>

#include "base/error.h"
#include "support/seam.h"

enum { NOTE = 1 };
#define MS ((int64_t)1000000)

static struct test_seam failing; /* a hub's functions, but: */
static int open_status, map_status;
static uint64_t waited_ns; /* the agent was allowed */
static unsigned maps_left; /* before map_status */
static struct inbox in;

static int (*hub_open)(struct rnl_env *, uint32_t, size_t, uint64_t, int *);
static int segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    waited_ns = wait_ns;
    if (open_status < 0)
        return rnl_fail(open_status, "as told");
    return hub_open(env, rank, bytes, wait_ns, segment);
}

static int (*hub_map)(struct rnl_env *, int, size_t, size_t, int, void **);
static int segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    if (map_status < 0 && maps_left-- == 0) {
        maps_left = 0;
        return rnl_fail(map_status, "as told");
    }
    return hub_map(env, segment, offset, bytes, writable, at);
}

static void open_two(struct test_hub *h)
{
    test_hub_open(h, 2, NULL);
    test_seam_open(&failing, h->ep[1]);
    hub_open = failing.ops.segment_open;
    hub_map = failing.ops.segment_map;
    failing.ops.segment_open = segment_open;
    failing.ops.segment_map = segment_map;
    in.count = 0;
    for (unsigned i = 0; i < 2; i++)
        TEST_MUST(rnl_handler_stream(h->ep[i], NOTE, inbox_stream, &in) == NOTE);
}

static void wait_a_little(rnl_endpoint *ep)
{
    int64_t r = rnl_wait(ep, 20 * MS); /* where it fails for a second by the clock, that is told once */
    assert_true(r >= 0 || r == RNL_TIMED_OUT || (open_status | map_status) != 0);
}

static void joins_as_soon_as_it_can(int opening, int mapping, unsigned maps)
{
    struct test_hub h;
    open_two(&h);
    open_status = opening;
    map_status = mapping;
    maps_left = maps;
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, "first", 5), 0);
    do
        wait_a_little(h.ep[1]);
    while (opening != RNL_NO_ROOM && rnl_get_counters(h.ep[1])->connects_failed == 0);
    assert_int_equal(in.count, 0);
    if (opening != RNL_NO_ROOM) {
        maps_left = maps;
        assert_int_equal(rnl_send(h.ep[1], 0, NOTE, "x", 1), opening ? opening : mapping); /* and says so */
    }
    open_status = map_status = 0;
    while (in.count == 0)
        wait_a_little(h.ep[1]);
    assert_int_equal(rnl_send(h.ep[1], 0, NOTE, "second", 6), 0);
    while (in.count == 1)
        wait_a_little(h.ep[0]);
    assert_int_equal(in.count, 2);
    assert_int_equal(test_hub_close(&h), 0);
}

static void without_a_descriptor_a_connection_is_joined_later(void **state)
{
    (void)state;
    joins_as_soon_as_it_can(RNL_ERR_SYSTEM, 0, 0);
}

static uint64_t ahead_ns; /* of the clock of the endpoint that fails */
static uint64_t (*hub_now)(struct rnl_env *);
static uint64_t now_ns(struct rnl_env *env)
{
    return hub_now(env) + ahead_ns;
}

static void no_sleep(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    (void)env, (void)word, (void)expected, (void)deadline_ns; /* deadlines are of the clock that is ahead */
}

/* An hour passes at each look at the clock that the test asks for, so nothing here depends on how fast it runs. */
static void what_lacks_for_a_peer_is_told_at_both_ends(int opening, int mapping)
{
    struct test_hub h;
    struct rnl_peer_info info;
    int64_t r = 0;
    open_two(&h);
    hub_now = failing.ops.now_ns;
    failing.ops.now_ns = now_ns;
    failing.ops.park = no_sleep;
    ahead_ns = 0;
    open_status = opening;
    map_status = mapping;
    maps_left = 0;
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, "first", 5), 0);
    while (rnl_get_counters(h.ep[1])->connects_failed == 0)
        r = rnl_extract(h.ep[1], SIZE_MAX);
    ahead_ns += 2000 * MS;
    while (r == 0 || r == RNL_TIMED_OUT)
        r = rnl_wait(h.ep[1], 20 * MS);
    assert_int_equal(r, opening ? opening : mapping);
    SAYS((int)r, "rank 0", "cannot be taken in", "as told");
    assert_int_equal(rnl_wait(h.ep[1], 20 * MS), RNL_TIMED_OUT); /* once */
    ahead_ns += 3600000 * MS;
    while (rnl_peer(h.ep[1], 0, &info) == 0 && info.state != RNL_PEER_DEAD)
        assert_true((r = rnl_wait(h.ep[1], 20 * MS)) == RNL_TIMED_OUT || r == 0);
    assert_int_equal(info.reason, RNL_DEATH_NO_MEMORY);
    assert_int_equal(rnl_send(h.ep[1], 0, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 0", "lacked memory");
    while (rnl_peer(h.ep[0], 1, &info) == 0 && info.state != RNL_PEER_DEAD) /* the other end */
        assert_true(rnl_wait(h.ep[0], 60000 * MS) == 0);
    assert_int_equal(info.reason, RNL_DEATH_DISCONNECTED);
    assert_int_equal(rnl_send(h.ep[0], 1, NOTE, "x", 1), RNL_ERR_PEER_DEAD);
    SAYS(RNL_ERR_PEER_DEAD, "rank 1", "no memory");
    assert_int_equal(in.count, 0);
    open_status = map_status = 0;
    assert_int_equal(test_hub_close(&h), 0);
}

static void a_receiver_short_of_memory_says_so_and_gives_up(void **state)
{
    (void)state;
    what_lacks_for_a_peer_is_told_at_both_ends(0, RNL_ERR_NO_MEMORY);
}

static void a_receiver_short_of_descriptors_says_so_and_gives_up(void **state)
{
    (void)state;
    what_lacks_for_a_peer_is_told_at_both_ends(RNL_ERR_SYSTEM, 0);
}

static void without_an_answer_a_connection_is_joined_later(void **state)
{
    (void)state;
    joins_as_soon_as_it_can(RNL_NO_ROOM, 0, 0);
}

/* The agent stands still: whoever must not wait waits a little, once, and others as long as it takes. */
static void who_must_not_wait_does_not_wait_for_the_agent(void **state)
{
    (void)state;
    const struct rnl_message b = {.peer = 0, .handler = NOTE, .bound = 8, .flags = RNL_NO_WAIT};
    struct test_hub h;
    rnl_stream *s;
    open_two(&h);
    open_status = RNL_NO_ROOM;
    assert_int_equal(rnl_begin(h.ep[1], &b, &s), RNL_NO_ROOM);
    SAYS(RNL_NO_ROOM, "launcher", "rank 0");
    assert_in_range(waited_ns, 1, 1000 * MS);
    assert_int_equal(rnl_begin(h.ep[1], &b, &s), RNL_NO_ROOM);
    assert_int_equal(waited_ns, 0);
    assert_int_equal(rnl_post(h.ep[1], &b, NULL, 0, NULL, NULL), RNL_NO_ROOM);
    assert_int_equal(waited_ns, 0);
    open_status = 0;
    assert_int_equal(rnl_post(h.ep[1], &b, NULL, 0, NULL, NULL), 0);
    assert_int_equal(rnl_begin(h.ep[1], &b, &s), 0);
    assert_int_equal(rnl_end(s), 0);
    drain(h.ep[0]);
    assert_int_equal(in.count, 2);
    assert_int_equal(test_hub_close(&h), 0);
    open_two(&h);
    assert_int_equal(rnl_send(h.ep[1], 0, NOTE, "x", 1), 0);
    assert_true(waited_ns == UINT64_MAX);
    assert_int_equal(test_hub_close(&h), 0);
}

/* ---- two threads ---- */

static rnl_endpoint *invaded;
static int intruder_status;

static void *connects_too(void *arg)
{
    (void)arg;
    intruder_status = rnl_send(invaded, 0, NOTE, "x", 1);
    if (intruder_status == RNL_ERR_CONTEXT)
        SAYS(RNL_ERR_CONTEXT, "another thread", "RNL_SHARED");
    return NULL;
}

/* The launcher answers each request in turn. Two threads that ask at once would take each other's answers, and hold
 * the launcher for the culprit. */
static int segment_open_with_intruder(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    pthread_t t;
    failing.ops.segment_open = segment_open;
    TEST_MUST(pthread_create(&t, NULL, connects_too, NULL) == 0);
    TEST_MUST(pthread_join(t, NULL) == 0);
    return segment_open(env, rank, bytes, wait_ns, segment);
}

static void a_second_thread_that_connects_meanwhile_is_told(void **state)
{
    struct test_hub h;
    (void)state;
    open_status = map_status = 0;
    open_two(&h);
    invaded = h.ep[1];
    intruder_status = 0;
    failing.ops.segment_open = segment_open_with_intruder;
    assert_int_equal(rnl_send(h.ep[1], 0, NOTE, "y", 1), 0);
    assert_int_equal(intruder_status, RNL_ERR_CONTEXT);
    while (in.count < 1)
        assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0);
    test_seam_close(&failing);
    assert_int_equal(test_hub_close(&h), 0);
    assert_int_equal(in.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_descriptor_a_connection_is_joined_later),
        cmocka_unit_test(a_receiver_short_of_memory_says_so_and_gives_up),
        cmocka_unit_test(a_receiver_short_of_descriptors_says_so_and_gives_up),
        cmocka_unit_test(without_an_answer_a_connection_is_joined_later),
        cmocka_unit_test(who_must_not_wait_does_not_wait_for_the_agent),
        cmocka_unit_test(a_second_thread_that_connects_meanwhile_is_told),
    };
    return cmocka_run_group_tests_name("endpoint/connect", tests, NULL, NULL);
}
