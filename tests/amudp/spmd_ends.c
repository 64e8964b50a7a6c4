/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spmd_ends.c - the cases of spmd.c in which a worker ends the job: while the others poll, from several threads, from
 * each kind of handler, and by way of the call that only looks for that. */
#include "spmd.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { END_IT = 20, END_IT_BY_DATA, ASK_FOR_END, NOT_REGISTERED = 99, DATA_BYTES = SEGMENT_BYTES / 5 };

static void callback(int code)
{
    printf("rank %d: the job ends with %d\n", rank, code);
    fflush(stdout);
}

static void slow_callback(int code)
{
    callback(code);
    usleep(20000); /* others get here meanwhile, if they can */
}

static void own_end(int code)
{
    printf("rank %d ends itself with %d\n", rank, code);
    fflush(stdout);
    _exit(code);
}

/* One worker ends the job while the others poll. */
static void exits(int code)
{
    OK(AMUDP_SPMDSetExitCallback(callback));
    AMUDP_SPMDkillmyprocess = own_end;
    OK(AMUDP_SPMDBarrier());
    if (rank == size - 1)
        AMUDP_SPMDExit(code);
    for (;;)
        OK(AM_Poll(eb));
}

static eb_t shared;
static int ends_with;

static void *end_by_thread(void *arg)
{
    while (rank == size - 1)
        AMUDP_SPMDExit(ends_with);
    for (;;)
        OK(AM_Poll(shared));
    return arg;
}

/* Threads of all workers poll, and those of the last one all end the job. */
static void exits_in_threads(int code)
{
    pthread_t thread;
    ends_with = code;
    OK(AMUDP_SPMDSetExitCallback(slow_callback));
    OK(AM_AllocateBundle(AM_PAR, &shared));
    OK(AMUDP_SPMDBarrier());
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&thread, NULL, end_by_thread, NULL) == 0);
    (void)end_by_thread(NULL);
}

/* Ends the job from where nothing can be sent, and comes back from nowhere. */
static void end_it(void *token, int32_t code)
{
    (void)token;
    AMUDP_SPMDExit(code);
    fprintf(stderr, "rank %d: the end of the job returned\n", rank);
    _exit(98);
}

static int code_of_return;
static void end_in_returned(int status, op_t opcode, void *token)
{
    (void)opcode;
    MUST(status == EBADHANDLER);
    end_it(token, code_of_return);
}

static void end_it_by_data(void *token, void *buf, size_t n, int32_t code)
{
    (void)buf;
    MUST(n == DATA_BYTES);
    end_it(token, code);
}

static void ask_for_end(void *token, int32_t code)
{
    OK(AM_Reply1(token, END_IT, code));
}

/* A handler ends the job: of a short or long message, of a reply, of a message that came back; or (w) of a short one,
 * run while its worker waits for one that is stuck. */
static void exits_in_handler(char how, int code)
{
    int last = size - 1;
    OK(AM_SetHandler(ep, END_IT, end_it));
    OK(AM_SetHandler(ep, END_IT_BY_DATA, end_it_by_data));
    OK(AM_SetHandler(ep, ASK_FOR_END, ask_for_end));
    OK(AMUDP_SPMDSetExitCallback(callback));
    OK(AMUDP_SPMDBarrier());
    if (rank == 0 && how == 's')
        OK(AM_Request1(ep, last, END_IT, code));
    else if (rank == 0 && how == 'l')
        OK(AM_RequestI1(ep, last, END_IT_BY_DATA, segment, DATA_BYTES, code));
    else if (rank == last && how == 'r')
        OK(AM_Request1(ep, 0, ASK_FOR_END, code));
    else if (rank == last && how == '0') {
        OK(AM_SetHandler(ep, 0, end_in_returned));
        code_of_return = code;
        OK(AM_Request0(ep, 0, NOT_REGISTERED));
    } else if (how == 'w') {
        if (rank == 0) {
            usleep(300000);
            OK(AM_Request1(ep, last, END_IT, code));
        }
        while (rank == 1)
            pause();
        while (rank == last)
            OK(AM_RequestI1(ep, 1, END_IT_BY_DATA, segment, DATA_BYTES, code));
    }
    for (;;)
        OK(AM_Poll(eb));
}

static void exits_under_control(int code)
{
    OK(AMUDP_SPMDSetExitCallback(callback));
    OK(AMUDP_SPMDBarrier());
    if (rank == 0)
        AMUDP_SPMDExit(code);
    for (;;)
        OK(AMUDP_SPMDHandleControlTraffic(NULL));
}

void spmd_ends(const char *what, char **argv)
{
    if (strcmp(what, "exit") == 0)
        exits(atoi(argv[2]));
    else if (strcmp(what, "exit-threads") == 0)
        exits_in_threads(atoi(argv[2]));
    else if (strcmp(what, "exit-in") == 0)
        exits_in_handler(argv[2][0], atoi(argv[3]));
    else if (strcmp(what, "control") == 0)
        exits_under_control(atoi(argv[2]));
}
