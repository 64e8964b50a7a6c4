/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exit.c - the end of a job. The worker that calls AMUDP_SPMDExit tells two others (ENDS), those tell two more, and so
 * on. Each that polls calls its exit callback, and says so when those behind it have (DONE). Then the word to go is
 * passed on in the same way (GO): the launcher ends all workers when the first leaves with a code that is not 0, and by
 * then nobody has anything left to do. Every wait has a bound, for workers that do not poll: those the launcher ends,
 * or with code 0 they go on until they have done what they do. */
#include "amudp/amudp_in.h"

#include "endpoint/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEARD_NS 1000000000ull /* the longest wait for the others, each time */

void (*AMUDP_SPMDkillmyprocess)(int) = _exit;
static int told, done, sent_on, heard,
    go; /* children: told of the end, done, sent on, that heard it; our parent's word */

static void on_ends(void *token, int32_t code, int32_t from)
{
    if (rnl_amudp_spmd.ends) { /* several end it at once: nobody waits for anybody else's */
        (void)AMUDP_Reply(token, RNL_AMUDP_DONE, 0);
        return;
    }
    rnl_amudp_spmd.ends = 1;
    rnl_amudp_spmd.code = code;
    rnl_amudp_spmd.ender = from;
}

static void on_done(void *token)
{
    (void)token;
    done++;
}

static void on_go(void *token)
{
    go = 1;
    (void)AMUDP_Reply(token, RNL_AMUDP_HEARD, 0);
}

static void on_heard(void *token)
{
    (void)token;
    heard++;
}

/* A child that is dead has done what it will do. */
void rnl_amudp_exit_returned(int handler)
{
    done += handler == RNL_AMUDP_ENDS;
    heard += handler == RNL_AMUDP_GO;
}

int rnl_amudp_exit_handlers(struct amudp_ep *tree)
{
    int r = AM_SetHandler(tree, RNL_AMUDP_ENDS, on_ends);
    if (r == AM_OK)
        r = AM_SetHandler(tree, RNL_AMUDP_DONE, on_done);
    if (r == AM_OK)
        r = AM_SetHandler(tree, RNL_AMUDP_GO, on_go);
    return r == AM_OK ? AM_SetHandler(tree, RNL_AMUDP_HEARD, on_heard) : r;
}

int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback)
{
    rnl_amudp_spmd.callback = callback;
    return AM_OK;
}

static void await(const int *count, const int *least)
{
    struct rnl_env *env = rnl_am_get_rank(rnl_amudp_spmd.bundle->core)->env;
    uint64_t until = env->ops->now_ns(env) + HEARD_NS;
    while (*count < *least && env->ops->now_ns(env) < until)
        if (rnl_am_poll(rnl_amudp_spmd.bundle->core) != AM_OK)
            break; /* inside a handler nothing can be waited for */
}

/* Ranks seen from the one that ends the job: place p has the children 2 p + 1 and 2 p + 2. Returns how many were told.
 */
static int tell_children(handler_t what, int code, int from)
{
    int size = rnl_amudp_spmd.size, place = (rnl_amudp_spmd.rank - from + size) % size, n = 0;
    int32_t args[] = {code, from};
    for (int child = 2 * place + 1; child <= 2 * place + 2 && child < size; child++)
        n += rnl_am_request(rnl_amudp_spmd.tree->core, (child + from) % size, what, 2, args) == AM_OK;
    return n;
}

static void pass_on(int code, int from)
{
    static const int one = 1;
    int size = rnl_amudp_spmd.size, place = (rnl_amudp_spmd.rank - from + size) % size;
    told = tell_children(RNL_AMUDP_ENDS, code, from);
    await(&done, &told);
    if (place != 0 &&
        rnl_am_request(rnl_amudp_spmd.tree->core, ((place - 1) / 2 + from) % size, RNL_AMUDP_DONE, 0, NULL) == AM_OK)
        await(&go, &one);
    sent_on = tell_children(RNL_AMUDP_GO, code, from);
    await(&heard, &sent_on);
}

_Noreturn static void leave(int code)
{
    fflush(NULL);
    rnl_amudp_stand_in_told(code);
    for (;;)
        AMUDP_SPMDkillmyprocess(code);
}

void rnl_amudp_ended(void)
{
    static int leaving;
    if (RNL_LIKELY(!rnl_amudp_spmd.ends) || leaving)
        return;
    leaving = 1;
    if (rnl_amudp_spmd.callback != NULL)
        rnl_amudp_spmd.callback(rnl_amudp_spmd.code);
    pass_on(rnl_amudp_spmd.code, rnl_amudp_spmd.ender);
    leave(rnl_amudp_spmd.code);
}

int AMUDP_SPMDExit(int code)
{
    if (!rnl_amudp_spmd.started)
        return rnl_amudp_wrong(AM_ERR_NOT_INIT, __func__, "there is no job: AMUDP_SPMDStartup has not made one");
    if (!rnl_amudp_spmd.ends) {
        rnl_amudp_spmd.ends = 1;
        rnl_amudp_spmd.code = code;
        rnl_amudp_spmd.ender = rnl_amudp_spmd.rank;
        if (rnl_amudp_spmd.callback != NULL)
            rnl_amudp_spmd.callback(code);
        pass_on(code, rnl_amudp_spmd.rank);
    }
    leave(rnl_amudp_spmd.code);
}

int AMUDP_SPMDHandleControlTraffic(int *serviced)
{
    if (serviced != NULL)
        *serviced = 0;
    if (!rnl_amudp_spmd.started)
        return AM_OK;
    return AM_Poll(rnl_amudp_spmd.bundle);
}
