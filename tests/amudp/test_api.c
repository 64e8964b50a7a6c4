/* SPDX-License-Identifier: BSD-3-Clause
 *
 * AMUDP's interface in one process: two endpoints that send to each other and to themselves. What needs more processes
 * is in spmd.c; what AM-2 promises of messages is tested with the core, tests/am. Cases called w6, w9 ... are about
 * known faults of AMUDP that this library does not have. */
#include "api/amudp/amudp_internal.h"

#include <pthread.h>
#include <stdio.h>

#include "support/must.h"
#include "support/unit.h"

enum { ASK = 1, ANSWER, DATA, DATA_BACK, TWICE, FROM_REPLY };

static eb_t eb;
static ep_t a, b;
static en_t name_a, name_b;
static char memory[2 * AMUDP_MAX_LONG];
static int asked, answered, status_back, opcode_back, returns, second_reply, nested;
static handler_t handler_back;
static amudp_category_t category_back;
static int32_t last[AMUDP_MAX_SHORT];
static size_t last_bytes;

static void on_ask(void *token, int32_t x)
{
    asked++;
    last[0] = x;
    TEST_MUST(AM_Reply1(token, ANSWER, x + 1) == AM_OK);
}

static void on_answer(void *token, int32_t x)
{
    (void)token;
    answered++;
    last[1] = x;
}

static void on_data(void *token, void *buf, size_t n, int32_t x)
{
    asked++;
    last_bytes = n;
    TEST_MUST(AM_ReplyI1(token, DATA_BACK, buf, n, x) == AM_OK);
}

static void on_data_back(void *token, void *buf, size_t n, int32_t x)
{
    (void)token;
    (void)buf;
    (void)x;
    answered++;
    last_bytes = n;
}

static void on_twice(void *token)
{
    TEST_MUST(AM_Reply1(token, ANSWER, 1) == AM_OK);
    second_reply = AM_Reply1(token, ANSWER, 2);
    nested = AM_Poll(eb);
}

static void on_from_reply(void *token, int32_t x)
{
    (void)x;
    second_reply = AM_Reply0(token, ANSWER);
    nested = AM_Request1(a, 1, ASK, 0);
}

static void on_returned(int status, op_t opcode, void *token)
{
    int request;
    returns++;
    status_back = status;
    opcode_back = opcode;
    TEST_MUST(AMUDP_GetTokenInfo(token, &handler_back, &category_back, &request) == AM_OK);
}

static void poll_until(const int *counter, int n)
{
    uint64_t until = test_now_ns() + 20000000000ull;
    while (*counter < n) {
        TEST_MUST(AM_Poll(eb) == AM_OK);
        TEST_MUST(test_now_ns() < until);
    }
}

static void set_up_endpoint(ep_t *ep, en_t *name)
{
    assert_int_equal(AM_AllocateEndpoint(eb, ep, name), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, 0, on_returned), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, ASK, on_ask), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, ANSWER, on_answer), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, DATA, on_data), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, DATA_BACK, on_data_back), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, TWICE, on_twice), AM_OK);
    assert_int_equal(AM_SetHandler(*ep, FROM_REPLY, on_from_reply), AM_OK);
}

static int set_up(void **state)
{
    (void)state;
    asked = answered = returns = status_back = opcode_back = second_reply = nested = 0;
    assert_int_equal(AM_Init(), AM_OK);
    assert_int_equal(AM_AllocateBundle(AM_SEQ, &eb), AM_OK);
    set_up_endpoint(&a, &name_a);
    set_up_endpoint(&b, &name_b);
    assert_int_equal(AM_SetTag(a, 77), AM_OK);
    assert_int_equal(AM_SetTag(b, 88), AM_OK);
    assert_int_equal(AM_Map(a, 0, name_a, 77), AM_OK);
    assert_int_equal(AM_Map(a, 1, name_b, 88), AM_OK);
    assert_int_equal(AM_Map(b, 0, name_a, 77), AM_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(AM_Terminate(), AM_OK);
    assert_null(rnl_amudp_bundles);
    return 0;
}

static void a_request_is_answered_also_to_oneself(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(AM_Request1(a, i, ASK, 5 + i), AM_OK);
        poll_until(&answered, i + 1);
        assert_int_equal(last[0], 5 + i);
        assert_int_equal(last[1], 6 + i);
    }
}

static void a_message_comes_back_with_what_it_was(void **state)
{
    char bytes[100] = "x";
    (void)state;
    assert_int_equal(AM_Request0(a, 1, 200), AM_OK);
    poll_until(&returns, 1);
    assert_int_equal(status_back, EBADHANDLER);
    assert_int_equal(opcode_back, AM_REQUEST_M);
    assert_int_equal(handler_back, 200);
    assert_int_equal(category_back, amudp_Short);
    assert_int_equal(AMUDP_SetTranslationTag(a, 1, 5), AM_OK);
    assert_int_equal(AM_RequestI0(a, 1, DATA, bytes, sizeof bytes), AM_OK);
    poll_until(&returns, 2);
    assert_int_equal(status_back, EBADTAG);
    assert_int_equal(opcode_back, AM_REQUEST_IM);
    assert_int_equal(AMUDP_SetTranslationTag(a, 1, 88), AM_OK);
    assert_int_equal(AM_RequestXfer0(a, 1, 0, DATA, bytes, sizeof bytes), AM_OK); /* b has no segment */
    poll_until(&returns, 3);
    assert_true(status_back == EBADSEGOFF || status_back == EBADLENGTH);
    assert_int_equal(opcode_back, AM_REQUEST_XFER_M);
    assert_int_equal(AM_Request0(a, 9, ASK), AM_OK); /* nobody is mapped there */
    poll_until(&returns, 4);
    assert_int_equal(status_back, EBADENTRY);
    amudp_stats_t stats;
    assert_int_equal(AMUDP_GetEndpointStatistics(a, &stats), AM_OK);
    assert_int_equal(stats.ReturnedMessages, 4);
}

static void mistakes_are_told_in_release_builds_too(void **state)
{
    char bytes[8];
    ep_t none = NULL;
    (void)state;
    assert_int_equal(AM_Request0(none, 0, ASK), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_Request(a, 0, ASK, 17), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_Request(a, 0, ASK, -1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_RequestI0(a, 0, DATA, bytes, AMUDP_MAX_MEDIUM + 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_RequestI0(a, 0, DATA, NULL, 5), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Request0(a, 0x80000000u, ASK), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Reply0(NULL, ASK), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Poll(NULL), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetHandler(a, 3, NULL), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetEventMask(eb, AM_NOEVENTS), AM_OK);
    assert_int_equal(AM_WaitSema(eb), AM_ERR_RESOURCE);
    assert_int_equal(AM_SetExpectedResources(a, 2, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetExpectedResources(a, 2, AMUDP_MAX_NETWORKDEPTH + 1), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_SPMDBarrier(), AM_ERR_NOT_INIT);
    assert_int_equal(AM_Request0(a, 1, TWICE), AM_OK);
    poll_until(&answered, 1);
    assert_int_equal(second_reply, AM_ERR_RESOURCE);
    assert_int_equal(nested, AM_ERR_RESOURCE);
}

static void a_reply_handler_can_neither_reply_nor_ask(void **state)
{
    (void)state;
    assert_int_equal(AM_SetHandler(a, ANSWER, on_from_reply), AM_OK);
    assert_int_equal(AM_Request1(a, 1, ASK, 1), AM_OK);
    poll_until(&second_reply, 1);
    assert_int_equal(second_reply, AM_ERR_RESOURCE);
    assert_int_equal(nested, AM_ERR_RESOURCE);
}

static void names_are_compared_and_copied_as_a_whole(void **state)
{
    en_t strange, got;
    (void)state;
    assert_true(AMUDP_enEqual(name_a, name_a));
    assert_false(AMUDP_enEqual(name_a, name_b));
    assert_int_equal(name_a.sin_family, AF_INET);
    assert_int_not_equal(name_a.sin_addr.s_addr, 0);
    assert_int_not_equal(name_a.sin_port, name_b.sin_port);
    memset(&strange, 0, sizeof strange);
    strange.sin_family = AF_INET;
    assert_int_equal(AM_Map(a, 5, strange, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetTranslationName(a, 1, &got), AM_OK);
    assert_memory_equal(&got, &name_b, sizeof got);
}

static void w15_translations_change_at_any_time(void **state)
{
    int n;
    tag_t tag;
    en_t name;
    (void)state;
    assert_int_equal(AM_SetExpectedResources(a, 2, 16), AM_OK);
    assert_int_equal(AM_SetExpectedResources(a, 2, 32), AM_OK);
    assert_int_equal(AM_UnMap(a, 1), AM_OK);
    assert_int_equal(AM_UnMap(a, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetTranslationInuse(a, 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_GetTranslationName(a, 1, &name), AM_ERR_BAD_ARG);
    assert_int_equal(AM_MapAny(a, &n, name_b, 88), AM_OK);
    assert_int_equal(n, 1);
    assert_int_equal(AM_Map(a, 1, name_b, 88), AM_ERR_RESOURCE);
    assert_int_equal(AM_GetTranslationInuse(a, 1), AM_OK);
    assert_int_equal(AM_GetTranslationTag(a, 1, &tag), AM_OK);
    assert_int_equal(tag, 88);
    assert_int_equal(AM_GetNumTranslations(a, &n), AM_OK);
    assert_int_equal(n, 256);
    assert_int_equal(AM_Map(a, 999, name_b, 88), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetExpectedResources(a, 1000, 10), AM_OK); /* a hint: its table is as it was */
    assert_int_equal(AM_GetNumTranslations(a, &n), AM_OK);
    assert_int_equal(n, 256);
    assert_int_equal(AM_Map(a, 999, name_b, 88), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetNumTranslations(a, 1000), AM_OK);
    assert_int_equal(AM_Map(a, 999, name_b, 88), AM_OK);
    assert_int_equal(AM_SetNumTranslations(a, 999), AM_ERR_RESOURCE);
    assert_int_equal(AM_SetNumTranslations(a, (int)AMUDP_MAX_NUMTRANSLATIONS + 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_Request1(a, 999, ASK, 3), AM_OK);
    poll_until(&answered, 1);
    assert_int_equal(AM_UnMap(a, 999), AM_OK);
    assert_int_equal(AM_SetNumTranslations(a, 2), AM_OK);
    assert_int_equal(AM_Request1(a, 1, ASK, 3), AM_OK);
    poll_until(&answered, 2);
}

static int calls_before, calls_after, before_bytes;
static uint32_t before_arg;

static void before(amudp_category_t category, int is_request, int handler, void *token, void *buf, size_t nbytes,
                   int numargs, uint32_t *args)
{
    (void)token;
    calls_before++;
    before_bytes = (int)nbytes;
    before_arg = numargs > 0 ? args[0] : 0;
    TEST_MUST(category == (buf != NULL ? amudp_Medium : amudp_Short) && numargs == 1);
    TEST_MUST(handler == (is_request ? (buf != NULL ? DATA : ASK) : buf != NULL ? DATA_BACK : ANSWER));
}

static void after(amudp_category_t category, int is_request)
{
    (void)category;
    (void)is_request;
    calls_after++;
}

static void callbacks_and_counters_see_each_message(void **state)
{
    char bytes[1000] = "";
    amudp_stats_t s, t, sum = AMUDP_initial_stats;
    (void)state;
    assert_int_equal(AMUDP_SetHandlerCallbacks(b, before, after), AM_OK);
    assert_int_equal(AM_Request1(a, 1, ASK, 9), AM_OK);
    poll_until(&answered, 1);
    assert_int_equal(calls_before, 1);
    assert_int_equal(calls_after, 1);
    assert_int_equal(before_arg, 9);
    assert_int_equal(AM_RequestI1(a, 1, DATA, bytes, sizeof bytes, 9), AM_OK);
    poll_until(&answered, 2);
    assert_int_equal(calls_before, 2);
    assert_int_equal(before_bytes, 1000);
    assert_int_equal(AMUDP_SetHandlerCallbacks(b, NULL, NULL), AM_OK);
    assert_int_equal(AMUDP_GetEndpointStatistics(a, &s), AM_OK);
    assert_int_equal(AMUDP_GetEndpointStatistics(b, &t), AM_OK);
    assert_int_equal(s.RequestsSent[amudp_Short], 1);
    assert_int_equal(s.RequestsSent[amudp_Medium], 1);
    assert_int_equal(s.RepliesReceived[amudp_Short] + s.RepliesReceived[amudp_Medium], 2);
    assert_int_equal(t.RequestsReceived[amudp_Short], 1);
    assert_int_equal(t.RepliesSent[amudp_Medium], 1);
    assert_int_equal(s.RequestDataBytesSent[amudp_Medium], 1004);
    assert_int_equal(s.RequestTotalBytesSent[amudp_Medium], AMUDP_HEADER_BYTES + 8 + 1000);
    assert_int_equal(AMUDP_AggregateStatistics(&sum, &s), AM_OK);
    assert_int_equal(AMUDP_AggregateStatistics(&sum, &t), AM_OK);
    assert_int_equal(sum.RequestsSent[amudp_Short], sum.RequestsReceived[amudp_Short]);
    assert_non_null(strstr(AMUDP_DumpStatistics(NULL, &sum, 1), "requests sent"));
    assert_int_equal(AMUDP_ResetEndpointStatistics(a), AM_OK);
    assert_int_equal(AMUDP_GetEndpointStatistics(a, &s), AM_OK);
    assert_memory_equal(&s, &AMUDP_initial_stats, sizeof s);
}

enum { SLOW = 20, SILENT, SLOW_MS = 5 };

static void on_slow(void *token)
{
    test_sleep_ms(SLOW_MS);
    TEST_MUST(AM_Reply1(token, ANSWER, 1) == AM_OK);
}
static void on_silent(void *token)
{
    (void)token;
    asked++;
}

static void latencies_are_those_of_requests_with_a_reply(void **state)
{
    amudp_stats_t s, sum = AMUDP_initial_stats;
    uint64_t before_ns;
    tear_down(state);
    setenv("AMUDP_LATENCY_STATS", "1", 1);
    set_up(state);
    unsetenv("AMUDP_LATENCY_STATS");
    assert_int_equal(AM_SetHandler(b, SLOW, on_slow), AM_OK);
    assert_int_equal(AM_SetHandler(b, SILENT, on_silent), AM_OK);
    assert_int_equal(AM_Request0(a, 1, SILENT), AM_OK);
    poll_until(&asked, 1);
    assert_int_equal(AM_Request0(a, 1, 99), AM_OK); /* comes back */
    poll_until(&returns, 1);
    assert_int_equal(AMUDP_GetEndpointStatistics(a, &s), AM_OK);
    assert_true(s.RequestMinLatency == UINT64_MAX && s.RequestMaxLatency == 0 && s.RequestSumLatency == 0);
    assert_null(strstr(AMUDP_DumpStatistics(NULL, &s, 0), "ns to a reply"));
    before_ns = test_now_ns();
    assert_int_equal(AM_Request1(a, 1, ASK, 9), AM_OK);
    poll_until(&answered, 1);
    assert_int_equal(AM_Request0(a, 1, SLOW), AM_OK);
    poll_until(&answered, 2);
    uint64_t most = test_now_ns() - before_ns;
    assert_int_equal(AMUDP_GetEndpointStatistics(a, &s), AM_OK);
    assert_true(s.RequestMinLatency > 0 && s.RequestMinLatency <= s.RequestMaxLatency);
    assert_true(s.RequestMaxLatency >= (uint64_t)SLOW_MS * 1000000);
    assert_true(s.RequestSumLatency == s.RequestMinLatency + s.RequestMaxLatency && s.RequestSumLatency <= most);
    assert_non_null(strstr(AMUDP_DumpStatistics(NULL, &s, 0), "ns to a reply"));
    assert_int_equal(AMUDP_AggregateStatistics(&sum, &s), AM_OK);
    assert_int_equal(AMUDP_AggregateStatistics(&sum, &s), AM_OK);
    assert_true(sum.RequestMinLatency == s.RequestMinLatency && sum.RequestSumLatency == 2 * s.RequestSumLatency);
    for (int i = 0; i < 3000; i++) { /* more than are noted at a time */
        assert_int_equal(AM_Request1(a, 1, ASK, i), AM_OK);
        assert_int_equal(AM_Request0(a, 1, SILENT), AM_OK);
    }
    poll_until(&answered, 3002);
    assert_int_equal(AMUDP_GetEndpointStatistics(b, &s), AM_OK); /* it has asked nothing */
    assert_true(s.RequestMaxLatency == 0);
}

static void settings_are_found_under_three_names(void **state)
{
    (void)state;
    setenv("NETWORKDEPTH", "3", 1);
    assert_string_equal(AMUDP_getenv_prefixed("NETWORKDEPTH"), "3");
    setenv("AMUDP_NETWORKDEPTH", "4", 1);
    assert_string_equal(AMUDP_getenv_prefixed("NETWORKDEPTH"), "4");
    setenv("GASNET_NETWORKDEPTH", "5", 1);
    assert_string_equal(AMUDP_getenv_prefixed("NETWORKDEPTH"), "5");
    assert_int_equal(rnl_amudp_env_long("NETWORKDEPTH", 1, 1024, 128), 5);
    setenv("GASNET_NETWORKDEPTH", "50x", 1);
    assert_int_equal(rnl_amudp_env_long("NETWORKDEPTH", 1, 1024, 128), 128);
    unsetenv("NETWORKDEPTH");
    unsetenv("AMUDP_NETWORKDEPTH");
    unsetenv("GASNET_NETWORKDEPTH");
    assert_null(AMUDP_getenv_prefixed("NETWORKDEPTH"));
}

static int set_up_losing(void **state)
{
    setenv("AMUDP_FAULT_RATE", "0.3", 1);
    setenv("REQUESTTIMEOUT_INITIAL", "20000", 1);
    setenv("REQUESTTIMEOUT_MAX", "100000", 1); /* or a dozen losses of one in a row take a minute */
    AMX_SilentMode = 1;
    int r = set_up(state);
    unsetenv("AMUDP_FAULT_RATE");
    unsetenv("REQUESTTIMEOUT_INITIAL");
    unsetenv("REQUESTTIMEOUT_MAX");
    return r;
}

/* 49 in 51 requests: most are lost once or more, none for good, and those behind a lost one do not wait for it. */
/* What mpirun and srun set makes a worker, where PMIx was there when the library was built. */
static void ranks_of_other_launchers_are_workers(void **state)
{
    (void)state;
    assert_false(AMUDP_SPMDIsWorker(NULL));
    setenv("PMIX_NAMESPACE", "a-job", 1);
    assert_false(AMUDP_SPMDIsWorker(NULL));
    setenv("PMIX_RANK", "0", 1);
    assert_int_equal(AMUDP_SPMDIsWorker(NULL), RNL_HAVE_PMIX);
    unsetenv("PMIX_NAMESPACE");
    unsetenv("PMIX_RANK");
}

static void w6_a_lost_message_holds_no_other_up(void **state)
{
    amudp_stats_t s;
    uint64_t most_ahead = 0;
    (void)state;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(AM_Request1(a, 1, ASK, i), AM_OK);
        assert_int_equal(AM_Poll(eb), AM_OK);
        if (asked > 0 && (uint64_t)last[0] + 1 > (uint64_t)asked &&
            (uint64_t)last[0] + 1 - (uint64_t)asked > most_ahead)
            most_ahead = (uint64_t)last[0] + 1 - (uint64_t)asked;
    }
    assert_true(most_ahead > 10);
    assert_int_equal(AM_SetEventMask(eb, AM_NOTEMPTY), AM_OK);
    while (answered < 200)
        assert_int_equal(AM_WaitSema(eb), AM_OK);
    assert_int_equal(asked, 200);
    assert_int_equal(AMUDP_GetEndpointStatistics(a, &s), AM_OK);
    assert_int_equal(s.RequestsSent[amudp_Short], 200);
    assert_in_range(s.RequestsRetransmitted[amudp_Short], 100, 1000);
}

static void what_was_held_back_goes_out_before_the_end(void **state)
{
    char bytes[500] = "";
    (void)state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(AM_RequestI1(a, 1, DATA, bytes, sizeof bytes, i), AM_OK);
    assert_int_equal(AM_FreeEndpoint(a), AM_OK);
    poll_until(&asked, 50);
}

/* AMUDP frees every other one, and loses count. */
static void w9_many_bundles_and_endpoints_are_all_freed(void **state)
{
    eb_t bundles[7];
    ep_t ep;
    en_t name;
    (void)state;
    assert_int_equal(AM_Init(), AM_OK);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(AM_AllocateBundle(AM_SEQ, &bundles[i]), AM_OK);
        for (int k = 0; k < 5; k++)
            assert_int_equal(AM_AllocateEndpoint(bundles[i], &ep, &name), AM_OK);
    }
    assert_int_equal(AM_FreeBundle(bundles[3]), AM_OK);
    int count = 0;
    for (struct amudp_eb *e = rnl_amudp_bundles; e != NULL; e = e->next)
        for (struct amudp_ep *p = e->first; p != NULL; p = p->next)
            count++;
    assert_int_equal(count, 2 + 6 * 5);
    assert_int_equal(AM_MoveEndpoint(b, eb, bundles[0]), AM_OK);
    assert_int_equal(AM_MoveEndpoint(b, eb, bundles[0]), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Request1(a, 1, ASK, 1), AM_OK);
    poll_until(&answered, 1);
    assert_int_equal(AM_Terminate(), AM_OK); /* the inner one */
    assert_non_null(rnl_amudp_bundles);
}

static void the_segment_can_be_all_of_memory(void **state)
{
    static char source[100] = "to an address";
    void *at;
    uintptr_t n;
    (void)state;
    assert_int_equal(AM_SetSeg(b, NULL, (uintptr_t)-1), AM_OK);
    assert_int_equal(AM_GetSeg(b, &at, &n), AM_OK);
    assert_true(!at && n == (uintptr_t)-1);
    assert_int_equal(AM_RequestXfer1(a, 1, (uintptr_t)memory, DATA, source, sizeof source, 0), AM_OK);
    poll_until(&answered, 1);
    assert_string_equal(memory, "to an address");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_is_answered_also_to_oneself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_message_comes_back_with_what_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mistakes_are_told_in_release_builds_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reply_handler_can_neither_reply_nor_ask, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_compared_and_copied_as_a_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(callbacks_and_counters_see_each_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(latencies_are_those_of_requests_with_a_reply, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_segment_can_be_all_of_memory, set_up, tear_down),
        cmocka_unit_test(settings_are_found_under_three_names),
        cmocka_unit_test(ranks_of_other_launchers_are_workers),
        cmocka_unit_test_setup_teardown(w6_a_lost_message_holds_no_other_up, set_up_losing, tear_down),
        cmocka_unit_test_setup_teardown(what_was_held_back_goes_out_before_the_end, set_up_losing, tear_down),
        cmocka_unit_test_setup_teardown(w9_many_bundles_and_endpoints_are_all_freed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(w15_translations_change_at_any_time, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
