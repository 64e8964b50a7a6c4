/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AM_PAR by AMUDP's interface: threads call for one bundle at once, not only to send and poll. They make endpoints,
 * map, grow tables, move and free, set handlers and callbacks and read counters, while handlers of others run. No
 * message is lost, no endpoint forgotten, and counters have counted each. */
#include "api/amudp/amudp_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "support/must.h"
#include "support/random.h"
#include "support/unit.h"

enum { ASK = 1, ANSWER, THREADS = 4, ROUNDS = 20000, BURST = 4, GROWN = 1000, AT = 3 };

static eb_t one, two;
static ep_t common; /* all of them send by it, and it answers */
static en_t name_of_common;
static unsigned rounds;
static uint64_t answers[THREADS], asked, called;

static void on_ask(void *token, int32_t thread)
{
    ep_t ep;
    en_t from;
    int index;
    TEST_MUST(AM_GetDestEndpoint(token, &ep) == AM_OK && ep == common);
    TEST_MUST(AM_GetSourceEndpoint(token, &from) == AM_OK);
    if (AMUDP_enEqual(from, name_of_common))
        TEST_MUST(AMUDP_GetSourceId(token, &index) == AM_OK && index == AT);
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    TEST_MUST(AM_Reply1(token, ANSWER, thread) == AM_OK);
}

static void on_answer(void *token, int32_t thread)
{
    ep_t ep;
    TEST_MUST(AM_GetDestEndpoint(token, &ep) == AM_OK);
    __atomic_fetch_add(&answers[thread], 1, __ATOMIC_RELAXED);
}

static void before(amudp_category_t category, int is_request, int handler, void *token, void *buf, size_t nbytes,
                   int numargs, uint32_t *args)
{
    TEST_MUST(category == amudp_Short && handler == (is_request ? ASK : ANSWER) && token != NULL && !buf);
    TEST_MUST(nbytes == 0 && numargs == 1 && args[0] < THREADS);
    __atomic_fetch_add(&called, 1, __ATOMIC_RELAXED);
}

static void until(int thread, uint64_t n)
{
    uint64_t last = test_now_ns() + 30000000000ull;
    while (__atomic_load_n(&answers[thread], __ATOMIC_RELAXED) < n) {
        TEST_MUST(AM_Poll(thread % 2 ? one : two) == AM_OK);
        TEST_MUST(test_now_ns() < last);
    }
}

/* An endpoint of its own asks the common one, by a table that grows and shrinks. */
static void visit(int thread, uint64_t *due)
{
    amudp_stats_t s;
    handler_t any;
    ep_t ep;
    en_t name, back;
    tag_t tag;
    int at, n;
    TEST_MUST(AM_AllocateEndpoint(one, &ep, &name) == AM_OK);
    TEST_MUST(AM_SetTag(ep, AM_ALL) == AM_OK && AM_SetHandler(ep, ANSWER, on_answer) == AM_OK);
    TEST_MUST(AM_SetHandlerAny(ep, &any, on_answer) == AM_OK);
    TEST_MUST(AM_MapAny(ep, &at, name_of_common, 7) == AM_OK && AM_SetNumTranslations(ep, GROWN) == AM_OK);
    TEST_MUST(AM_Map(ep, GROWN - 1, name_of_common, 8) == AM_OK);
    TEST_MUST(AMUDP_SetTranslationTag(ep, GROWN - 1, 7) == AM_OK);
    TEST_MUST(AM_GetTranslationName(ep, at, &back) == AM_OK && AMUDP_enEqual(back, name_of_common));
    TEST_MUST(AM_Request1(ep, at, ASK, thread) == AM_OK);
    TEST_MUST(AM_MoveEndpoint(ep, one, two) == AM_OK);
    TEST_MUST(AM_Request1(ep, GROWN - 1, ASK, thread) == AM_OK);
    until(thread, *due += 2);
    TEST_MUST(AM_UnMap(ep, GROWN - 1) == AM_OK && AM_SetNumTranslations(ep, 8) == AM_OK);
    TEST_MUST(AM_GetNumTranslations(ep, &n) == AM_OK && n == 8);
    TEST_MUST(AM_GetTranslationTag(ep, at, &tag) == AM_OK && tag == 7);
    TEST_MUST(AMUDP_GetEndpointStatistics(ep, &s) == AM_OK && s.RequestsSent[amudp_Short] == 2);
    TEST_MUST(s.RepliesReceived[amudp_Short] == 2);
    TEST_MUST(AM_FreeEndpoint(ep) == AM_OK);
}

static void *work(void *arg)
{
    int thread = *(int *)arg;
    uint64_t due = 0;
    amudp_stats_t s;
    for (unsigned i = 0; i < rounds; i++) {
        for (int k = 0; k < BURST; k++)
            TEST_MUST(AM_Request1(common, AT, ASK, thread) == AM_OK);
        until(thread, due += BURST);
        visit(thread, &due);
        TEST_MUST(AMUDP_GetEndpointStatistics(common, &s) == AM_OK);
        if (thread == 0) { /* what is looked up in it lies elsewhere now */
            TEST_MUST(AM_SetNumTranslations(common, i % 2 ? GROWN : AT + 1) == AM_OK);
            TEST_MUST(AMUDP_SetHandlerCallbacks(common, i % 2 ? before : NULL, NULL) == AM_OK);
        }
    }
    return NULL;
}

static void run(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    amudp_stats_t s;
    memset(answers, 0, sizeof answers);
    asked = called = 0;
    assert_int_equal(AM_Init(), AM_OK);
    assert_int_equal(AM_AllocateBundle(AM_PAR, &one), AM_OK);
    assert_int_equal(AM_AllocateBundle(AM_PAR, &two), AM_OK);
    assert_int_equal(AM_AllocateEndpoint(one, &common, &name_of_common), AM_OK);
    assert_int_equal(AM_SetTag(common, 7), AM_OK);
    assert_int_equal(AM_SetHandler(common, ASK, on_ask), AM_OK);
    assert_int_equal(AM_SetHandler(common, ANSWER, on_answer), AM_OK);
    assert_int_equal(AM_Map(common, AT, name_of_common, 7), AM_OK);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, work, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    const uint64_t own = (uint64_t)THREADS * rounds * BURST, all = own + (uint64_t)THREADS * rounds * 2;
    for (int i = 0; i < THREADS; i++)
        assert_true(answers[i] == all / THREADS);
    assert_true(asked == all && (rounds < 2 || called > 0));
    assert_int_equal(AMUDP_GetEndpointStatistics(common, &s), AM_OK);
    assert_true(s.RequestsSent[amudp_Short] == own && s.RepliesReceived[amudp_Short] == own);
    assert_true(s.RequestsReceived[amudp_Short] == all && s.RepliesSent[amudp_Short] == all);
    assert_true(s.RequestDataBytesSent[amudp_Short] == 4 * own && s.ReplyDataBytesSent[amudp_Short] == 4 * all);
    assert_true(s.TotalBytesSent == s.RequestTotalBytesSent[amudp_Short] + s.ReplyTotalBytesSent[amudp_Short]);
    assert_true(one->first == common && !common->next && !two->first);
    assert_int_equal(AM_Terminate(), AM_OK);
    assert_null(rnl_amudp_bundles);
}

static void threads_do_anything_with_a_bundle(void **state)
{
    (void)state;
    rounds = ROUNDS / test_slowness();
    run();
}

static void *make_one(void *arg)
{
    int *came = arg;
    ep_t ep;
    en_t name;
    __atomic_store_n(came, 1, __ATOMIC_RELEASE);
    TEST_MUST(AM_AllocateEndpoint(one, &ep, &name) == AM_OK);
    __atomic_store_n(came, 2, __ATOMIC_RELEASE);
    TEST_MUST(AM_FreeEndpoint(ep) == AM_OK);
    return NULL;
}

/* Whether two threads meet by chance is the first test's; that one waits for the other is seen here each time. */
static void a_call_waits_for_who_is_within_another(void **state)
{
    pthread_t thread;
    int came = 0;
    (void)state;
    assert_int_equal(AM_Init(), AM_OK);
    assert_int_equal(AM_AllocateBundle(AM_PAR, &one), AM_OK);
    int held = rnl_am_hold();
    assert_true(held);
    assert_int_equal(pthread_create(&thread, NULL, make_one, &came), 0);
    while (!__atomic_load_n(&came, __ATOMIC_ACQUIRE))
        usleep(1000);
    usleep(20000);
    assert_int_equal(__atomic_load_n(&came, __ATOMIC_ACQUIRE), 1);
    rnl_am_let_go(held);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(came, 2);
    assert_int_equal(AM_Terminate(), AM_OK);
}

static void also_where_messages_are_lost_on_purpose(void **state)
{
    (void)state;
    rounds = ROUNDS / 200 / test_slowness() + 1;
    AMX_SilentMode = 1;
    setenv("AMUDP_FAULT_RATE", "0.1", 1);
    setenv("REQUESTTIMEOUT_INITIAL", "500", 1);
    run();
    unsetenv("AMUDP_FAULT_RATE");
    unsetenv("REQUESTTIMEOUT_INITIAL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_anything_with_a_bundle),
        cmocka_unit_test(a_call_waits_for_who_is_within_another),
        cmocka_unit_test(also_where_messages_are_lost_on_purpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
