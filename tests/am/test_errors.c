/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each call refuses, and what handlers must not do: in every build. */
#include "am/world.h"

#include <sys/wait.h>
#include <unistd.h>

static int setup(void **state)
{
    (void)state;
    world_open(2, AM_SEQ);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_close();
    return 0;
}

static void arguments_are_checked(void **state)
{
    static const int32_t words[17];
    ep_t ep = world.ep[0];
    int n;
    void *p;
    tag_t tag;
    en_t name = world.name[1];
    uintptr_t bytes;
    handler_t h;
    (void)state;
    assert_int_equal(AM_Request0(NULL, 0, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Request0(ep, -1, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Request0(ep, 256, 1), AM_ERR_BAD_ARG);
    SAYS("256");
    assert_int_equal(rnl_am_request(ep, 1, 1, 17, words), AM_ERR_BAD_ARG);
    assert_int_equal(rnl_am_request(ep, 1, 1, -1, words), AM_ERR_BAD_ARG);
    assert_int_equal(AM_RequestI0(ep, 1, 1, words, RNL_AM_MEDIUM + 1), AM_ERR_BAD_ARG);
    SAYS("65000");
    assert_int_equal(AM_RequestI0(ep, 1, 1, NULL, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_RequestXfer0(ep, 1, 0, 1, words, (size_t)RNL_AM_LONG + 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_RequestXferAsync0(ep, 1, 0, 1, words, RNL_AM_ASYNC + 1), AM_ERR_RESOURCE);
    SAYS("never");
    assert_int_equal(AM_GetXfer0(ep, 1, 0, 1, 0, RNL_AM_MEDIUM + 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Map(ep, 1, name, TAG), AM_ERR_IN_USE);
    assert_int_equal(AM_Map(ep, -1, name, TAG), AM_ERR_BAD_ARG);
    name.rank = 2;
    assert_int_equal(AM_Map(ep, 5, name, TAG), AM_ERR_BAD_ARG);
    assert_int_equal(AM_MapAny(ep, &n, name, TAG), AM_ERR_BAD_ARG);
    assert_int_equal(AM_UnMap(ep, 5), AM_ERR_BAD_ARG);
    assert_int_equal(AM_UnMap(ep, 500), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetTranslationTag(ep, 5, &tag), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetTranslationName(ep, 5, &name), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetTranslationTag(ep, 5, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetTranslationInuse(ep, 500), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetNumTranslations(ep, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetNumTranslations(ep, (1 << 20) + 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_SetExpectedResources(ep, 0, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetExpectedResources(ep, 1, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetHandlerAny(ep, &h, NULL), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetSeg(ep, (void *)16, UINTPTR_MAX), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetSeg(ep, &p, NULL), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetSeg(ep, &p, &bytes), AM_OK);
    assert_ptr_equal(p, world.seg[0]);
    assert_int_equal(bytes, SEG);
    assert_int_equal(AM_Poll(NULL), AM_ERR_BAD_ARG);
    assert_int_equal(AM_WaitSema(NULL), AM_ERR_BAD_ARG);
    assert_int_equal(AM_GetSourceEndpoint(NULL, &name), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Reply0(NULL, 1), AM_ERR_BAD_ARG);
    eb_t eb;
    assert_int_equal(AM_AllocateBundle(2, &eb), AM_ERR_BAD_ARG);
    assert_int_equal(AM_AllocateBundleOn(NULL, AM_SEQ, &eb), AM_ERR_BAD_ARG);
    assert_int_equal(AM_MaxSegLength(&bytes), AM_OK);
    assert_int_equal(bytes, UINTPTR_MAX);
}

/* ---- handlers ---- */

static unsigned ran;
static void *kept_token;

/* What no handler may do. */
static void forbidden(void *token)
{
    eb_t eb = world.eb[1];
    ep_t ep = world.ep[1], other;
    en_t name;
    assert_int_equal(AM_Request0(ep, 0, 1), AM_ERR_RESOURCE);
    SAYS("handler");
    assert_int_equal(AM_RequestI0(ep, 0, 1, "x", 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_RequestXferAsync0(ep, 0, 0, 1, "x", 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_GetXfer0(ep, 0, 0, 1, 0, 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_Poll(eb), AM_ERR_RESOURCE);
    assert_int_equal(AM_WaitSema(eb), AM_ERR_RESOURCE);
    assert_int_equal(AM_AllocateEndpoint(eb, &other, &name), AM_ERR_RESOURCE);
    assert_int_equal(AM_FreeEndpoint(ep), AM_ERR_RESOURCE);
    assert_int_equal(AM_MoveEndpoint(ep, eb, eb), AM_ERR_RESOURCE);
    assert_int_equal(AM_FreeBundle(eb), AM_ERR_RESOURCE);
    assert_int_equal(AM_SetTag(ep, TAG), AM_OK); /* and what they may */
    assert_int_equal(AM_SetSeg(ep, world.seg[1], SEG), AM_OK);
    assert_int_equal(AM_Map(ep, 9, world.name[0], TAG), AM_OK);
    assert_int_equal(AM_UnMap(ep, 9), AM_OK);
    assert_int_equal(AM_GetSourceEndpoint(token, NULL), AM_ERR_BAD_ARG);
    ran++;
}

static void one_reply_each(void *token)
{
    static const int32_t words[17];
    forbidden(token);
    assert_int_equal(rnl_am_reply(token, 2, 17, words), AM_ERR_BAD_ARG); /* does not count as one */
    assert_int_equal(AM_ReplyI0(token, 2, "x", RNL_AM_MEDIUM + 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_ReplyI0(token, 2, NULL, 1), AM_ERR_BAD_ARG);
    assert_int_equal(AM_Reply0(token, 2), AM_OK);
    assert_int_equal(AM_Reply0(token, 2), AM_ERR_RESOURCE);
    SAYS("already");
    assert_int_equal(AM_ReplyXfer0(token, 0, 2, "x", 1), AM_ERR_RESOURCE);
    kept_token = token;
}

static void no_reply_to_a_reply(void *token)
{
    assert_int_equal(AM_Reply0(token, 2), AM_ERR_RESOURCE);
    SAYS("request");
    assert_int_equal(AM_Request0(world.ep[0], 1, 1), AM_ERR_RESOURCE);
    assert_int_equal(AM_Poll(world.eb[0]), AM_ERR_RESOURCE);
    ran++;
}

static void no_reply_to_what_came_back(int status, op_t opcode, void *token)
{
    (void)status, (void)opcode;
    no_reply_to_a_reply(token);
}

static void handlers_reply_once_and_do_nothing_else_that_waits(void **state)
{
    (void)state;
    ran = 0;
    assert_int_equal(AM_SetHandler(world.ep[1], 1, one_reply_each), AM_OK);
    assert_int_equal(AM_SetHandler(world.ep[0], 2, no_reply_to_a_reply), AM_OK);
    assert_int_equal(AM_SetHandler(world.ep[0], 0, no_reply_to_what_came_back), AM_OK);
    assert_int_equal(AM_Request0(world.ep[0], 1, 1), AM_OK);
    settle();
    assert_int_equal(ran, 2);
    assert_int_equal(AM_Request0(world.ep[0], 1, 99), AM_OK);
    settle();
    assert_int_equal(ran, 3);
    assert_int_equal(AM_UnMap(world.ep[0], 1), AM_OK);
    assert_int_equal(AM_Request0(world.ep[0], 1, 1), AM_OK); /* comes back inside the call */
    assert_int_equal(ran, 4);
}

static void a_call_for_a_forked_child_is_refused(void **state)
{
    (void)state;
    for (int par = 0; par < 2; par++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(10);
            for (int again = 0; again < 2; again++)
                if (AM_Poll(world.eb[0]) != AM_ERR_NOT_INIT || AM_Request0(world.ep[0], 1, 1) != AM_ERR_NOT_INIT ||
                    AM_SetTag(world.ep[0], 1) != AM_ERR_NOT_INIT)
                    _exit(1);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        world_close();
        world_open(2, AM_PAR); /* whose calls lock */
    }
}

/* ---- sessions ---- */

static void sessions_nest_and_a_lone_process_is_a_job_of_one(void **state)
{
    eb_t eb, second;
    ep_t ep;
    en_t name;
    (void)state;
    assert_int_equal(AM_AllocateBundle(AM_SEQ, &eb), AM_ERR_NOT_INIT);
    assert_int_equal(AM_Terminate(), AM_ERR_NOT_INIT);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(AM_Init(), AM_OK);
        assert_int_equal(AM_Init(), AM_OK);
        assert_int_equal(AM_AllocateBundle(AM_SEQ, &eb), AM_OK);
        assert_int_equal(AM_AllocateBundle(AM_PAR, &second), AM_OK);
        assert_int_equal(AM_AllocateEndpoint(eb, &ep, &name), AM_OK);
        assert_int_equal(AM_Terminate(), AM_OK); /* all is still there */
        assert_int_equal(rnl_size(AM_GetRank(eb)), 1);
        assert_int_equal(AM_SetTag(ep, TAG), AM_OK);
        assert_int_equal(AM_Map(ep, 0, name, TAG), AM_OK);
        assert_int_equal(AM_SetHandler(ep, 1, note), AM_OK);
        noted.dest = NULL;
        assert_int_equal(AM_Request0(ep, 0, 1), AM_OK);
        assert_int_equal(AM_Poll(second), AM_OK);
        assert_ptr_equal(noted.dest, ep);
        assert_int_equal(AM_Terminate(), AM_OK);
        assert_int_equal(AM_Terminate(), AM_ERR_NOT_INIT);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(arguments_are_checked),
        CASE(handlers_reply_once_and_do_nothing_else_that_waits),
        CASE(a_call_for_a_forked_child_is_refused),
        cmocka_unit_test(sessions_nest_and_a_lone_process_is_a_job_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
