/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls of AMUDP's interface that the other tests make by macros, or not at all: those that take a va_list, which are
 * all that GASNet uses, what tokens and bundles tell, chosen addresses, the table of spawners, the fatal error, and
 * what is asked of a job that there is none of. */
#include "api/amudp/amudp_internal.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/rendezvous.h"
#include "support/must.h"
#include "support/unit.h"

enum { SHORT = 1, MEDIUM, BULK, SHORT_BACK, MEDIUM_BACK, BULK_BACK, TAG = 4711, BYTES = 3000, AT = 64, BACK_AT = 8000 };

static eb_t eb;
static ep_t ep;
static char memory[16384], bytes[BYTES];
static int back;

#define VA_CALL(name, function, parameters, ...) \
    static int name parameters                   \
    {                                            \
        va_list args;                            \
        va_start(args, numargs);                 \
        int r = function(__VA_ARGS__, args);     \
        va_end(args);                            \
        return r;                                \
    }
VA_CALL(request, AMUDP_RequestVA, (handler_t h, int numargs, ...), ep, 0, h, numargs)
VA_CALL(request_i, AMUDP_RequestIVA, (handler_t h, int numargs, ...), ep, 0, h, bytes, BYTES, numargs)
VA_CALL(request_xfer, AMUDP_RequestXferVA, (handler_t h, int async, int numargs, ...), ep, 0, h, bytes, BYTES, AT,
        async, numargs)
VA_CALL(reply, AMUDP_ReplyVA, (void *token, handler_t h, int numargs, ...), token, h, numargs)
VA_CALL(reply_i, AMUDP_ReplyIVA, (void *token, handler_t h, int numargs, ...), token, h, bytes, BYTES, numargs)
VA_CALL(reply_xfer, AMUDP_ReplyXferVA, (void *token, handler_t h, int numargs, ...), token, h, bytes, BYTES, BACK_AT,
        numargs)

static void on_short(void *token, int32_t a, int32_t b)
{
    tag_t tag;
    TEST_MUST(AM_GetMsgTag(token, &tag) == AM_OK && tag == TAG && a == 1 && b == -2);
    TEST_MUST(reply(token, SHORT_BACK, 17, 0) == AM_ERR_BAD_ARG); /* and counts as none */
    TEST_MUST(reply(token, SHORT_BACK, 3, 7, 8, 9) == AM_OK);
    TEST_MUST(reply(token, SHORT_BACK, 3, 7, 8, 9) == AM_ERR_RESOURCE);
}

static void on_medium(void *token, void *buf, size_t n, int32_t a)
{
    TEST_MUST(n == BYTES && memcmp(buf, bytes, n) == 0 && a == 5);
    TEST_MUST(reply_i(token, MEDIUM_BACK, 0) == AM_OK);
}

static void on_bulk(void *token, void *buf, size_t n, int32_t a, int32_t b)
{
    TEST_MUST(buf == memory + AT && n == BYTES && memcmp(buf, bytes, n) == 0 && a == 6 && b == 7);
    memset(buf, 0, n);
    TEST_MUST(reply_xfer(token, BULK_BACK, 1, 99) == AM_OK);
}

static void on_short_back(void *token, int32_t a, int32_t b, int32_t c)
{
    TEST_MUST(token != NULL && a == 7 && b == 8 && c == 9);
    back++;
}

static void on_medium_back(void *token, void *buf, size_t n)
{
    TEST_MUST(token != NULL && n == BYTES && memcmp(buf, bytes, n) == 0);
    back++;
}

static void on_bulk_back(void *token, void *buf, size_t n, int32_t a)
{
    TEST_MUST(token != NULL && buf == memory + BACK_AT && n == BYTES && memcmp(buf, bytes, n) == 0 && a == 99);
    back++;
}

static int set_up(void **state)
{
    en_t name;
    (void)state;
    back = 0;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 100);
    assert_int_equal(AM_Init(), AM_OK);
    assert_int_equal(AM_AllocateBundle(AM_SEQ, &eb), AM_OK);
    assert_int_equal(AM_AllocateEndpoint(eb, &ep, &name), AM_OK);
    assert_int_equal(AM_SetTag(ep, TAG), AM_OK);
    assert_int_equal(AM_SetSeg(ep, memory, sizeof memory), AM_OK);
    assert_int_equal(AM_Map(ep, 0, name, TAG), AM_OK);
    assert_int_equal(AM_SetHandler(ep, SHORT, on_short), AM_OK);
    assert_int_equal(AM_SetHandler(ep, MEDIUM, on_medium), AM_OK);
    assert_int_equal(AM_SetHandler(ep, BULK, on_bulk), AM_OK);
    assert_int_equal(AM_SetHandler(ep, SHORT_BACK, on_short_back), AM_OK);
    assert_int_equal(AM_SetHandler(ep, MEDIUM_BACK, on_medium_back), AM_OK);
    assert_int_equal(AM_SetHandler(ep, BULK_BACK, on_bulk_back), AM_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(AM_Terminate(), AM_OK);
    return 0;
}

static void poll_until(int n)
{
    for (uint64_t until = test_now_ns() + 20000000000ull; back < n;)
        assert_true(AM_Poll(eb) == AM_OK && test_now_ns() < until);
}

static void calls_with_a_list_of_arguments_are_those_without(void **state)
{
    (void)state;
    assert_int_equal(request(SHORT, 2, 1, -2), AM_OK);
    poll_until(1);
    assert_int_equal(request_i(MEDIUM, 1, 5), AM_OK);
    poll_until(2);
    assert_int_equal(request_xfer(BULK, 0, 2, 6, 7), AM_OK);
    poll_until(3);
    assert_int_equal(request_xfer(BULK, 1, 2, 6, 7), AM_OK);
    poll_until(4);
    assert_int_equal(request(SHORT, 17, 0), AM_ERR_BAD_ARG);
    assert_int_equal(request_i(SHORT, -1, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_RequestI(ep, 0, MEDIUM, bytes, AMUDP_MAX_MEDIUM + 1, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_RequestXfer(ep, 0, BULK, NULL, 1, 0, 0, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_Reply(NULL, SHORT, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_ReplyI(NULL, SHORT, bytes, 1, 0), AM_ERR_BAD_ARG);
    assert_int_equal(AMUDP_ReplyXfer(NULL, SHORT, bytes, 1, 0, 0), AM_ERR_BAD_ARG);
}

static void a_bundle_tells_its_mask_and_an_endpoint_its_limits(void **state)
{
    int mask = 9;
    uintptr_t most = 0;
    (void)state;
    assert_int_equal(AM_GetEventMask(eb, &mask), AM_OK);
    assert_int_equal(mask, AM_NOEVENTS);
    assert_int_equal(AM_WaitSema(eb), AM_ERR_RESOURCE);
    assert_int_equal(AM_SetEventMask(eb, AM_NOTEMPTY), AM_OK);
    assert_int_equal(AM_GetEventMask(eb, &mask), AM_OK);
    assert_int_equal(mask, AM_NOTEMPTY);
    assert_int_equal(AM_GetEventMask(NULL, &mask), AM_ERR_BAD_ARG);
    assert_int_equal(AM_SetEventMask(eb, 2), AM_ERR_BAD_ARG);
    assert_int_equal(AM_MaxSegLength(&most), AM_OK);
    assert_true(most == (uintptr_t)-1);
    assert_int_equal(AM_MaxSegLength(NULL), AM_ERR_BAD_ARG);
}

static void names_have_the_address_that_was_chosen(void **state)
{
    ep_t other;
    en_t name;
    (void)state;
    assert_int_equal(AMUDP_SetUDPInterface(0x0a010203), AM_OK);
    assert_int_equal(AM_AllocateEndpoint(eb, &other, &name), AM_OK);
    assert_int_equal(name.sin_addr.s_addr, htonl(0x0a010203));
    assert_int_equal(AMUDP_SetUDPInterface(0), AM_OK);
    assert_int_equal(AM_FreeEndpoint(other), AM_OK);
}

static void spawners_are_found_by_their_letters(void **state)
{
    (void)state;
    assert_int_equal(AMUDP_Spawnfn_Desc[0].abbrev, 'S');
    assert_ptr_equal(AMUDP_Spawnfn_Desc[0].fnptr, AMUDP_SPMDSshSpawn);
    assert_int_equal(AMUDP_Spawnfn_Desc[1].abbrev, 'L');
    assert_ptr_equal(AMUDP_Spawnfn_Desc[1].fnptr, AMUDP_SPMDLocalSpawn);
    assert_int_equal(AMUDP_Spawnfn_Desc[2].abbrev, 'C');
    assert_ptr_equal(AMUDP_Spawnfn_Desc[2].fnptr, AMUDP_SPMDCustomSpawn);
    assert_true(AMUDP_Spawnfn_Desc[3].abbrev == 0 && !AMUDP_Spawnfn_Desc[3].fnptr);
    for (int i = 0; i < 3; i++)
        assert_true(strlen(AMUDP_Spawnfn_Desc[i].desc) > 0);
}

static void the_fatal_error_says_what_and_aborts(void **state)
{
    char said[200] = "";
    int fds[2], status;
    (void)state;
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        dup2(fds[1], STDERR_FILENO);
        AMX_ProcessLabel = "someone";
        AMX_FatalErr("number %d", 3);
    }
    close(fds[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(fds[0], said, sizeof said - 1) > 0);
    close(fds[0]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(said, "someone: fatal: number 3\n");
}

static void on_signal(int s)
{
    (void)s;
}

/* What the bootstrap socket or a spawn helper forks ends by the signals that end any process, whatever the program does
 * with them. */
static void what_is_forked_has_none_of_the_programs_ways_with_signals(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGPIPE, SIGCHLD};
    enum { SIGNALS = sizeof signals / sizeof *signals };
    struct sigaction ours = {.sa_handler = on_signal}, before[SIGNALS], now;
    sigset_t blocked;
    int status, ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < SIGNALS; i++) {
        ours.sa_handler = i % 2 ? on_signal : SIG_IGN;
        assert_int_equal(sigaction(signals[i], &ours, &before[i]), 0);
    }
    pid_t child = rnl_join_fork();
    if (child == 0) {
        int wrong = 0;
        char none;
        close(ends[1]);
        for (int i = 0; i < SIGNALS; i++)
            wrong += sigaction(signals[i], NULL, &now) != 0 || now.sa_handler != SIG_DFL;
        wrong += sigprocmask(SIG_SETMASK, NULL, &blocked) != 0 || !sigisemptyset(&blocked);
        wrong += read(ends[0], &none, 1) != 0; /* no status is kept of who ends while SIGCHLD is ignored */
        _exit(wrong);
    }
    close(ends[0]);
    for (int i = 0; i < SIGNALS; i++) {
        assert_int_equal(sigaction(signals[i], NULL, &now), 0); /* here they are as they were */
        assert_true(now.sa_handler == (i % 2 ? on_signal : SIG_IGN));
        assert_int_equal(sigaction(signals[i], &before[i], NULL), 0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void without_a_job_there_is_nothing_to_ask(void **state)
{
    int served = 9;
    char block[4];
    (void)state;
    assert_int_equal(AMUDP_SPMDBarrier(), AM_ERR_NOT_INIT);
    assert_int_equal(AMUDP_SPMDAllGather(block, block, 1), AM_ERR_NOT_INIT);
    assert_int_equal(AMUDP_SPMDExit(1), AM_ERR_NOT_INIT);
    assert_int_equal(AMUDP_SPMDNumProcs(), -1);
    assert_int_equal(AMUDP_SPMDMyProc(), -1);
    assert_null(AMUDP_SPMDgetenvMaster("PATH"));
    assert_null(AMUDP_check_env_prefix("PATH"));
    assert_int_equal(AMUDP_SPMDHandleControlTraffic(&served), AM_OK);
    assert_int_equal(served, 0);
    assert_ptr_equal(AMUDP_SPMDkillmyprocess, _exit);
    assert_false(AMUDP_SPMDIsWorker(NULL));
    assert_int_equal(AMUDP_PoliteSync, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_with_a_list_of_arguments_are_those_without, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bundle_tells_its_mask_and_an_endpoint_its_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_have_the_address_that_was_chosen, set_up, tear_down),
        cmocka_unit_test(spawners_are_found_by_their_letters),
        cmocka_unit_test(the_fatal_error_says_what_and_aborts),
        cmocka_unit_test(what_is_forked_has_none_of_the_programs_ways_with_signals),
        cmocka_unit_test(without_a_job_there_is_nothing_to_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
