/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exit.c - the end of a job. The workers are a tree, rank p above 2 p + 1 and 2 p + 2, and word of the end goes along
 * its edges: a worker that calls AMUDP_SPMDExit tells its neighbours (ENDS), each that hears of it for the first time
 * tells its others. So all are told, each by one message or two, however many end the job at once, and one that was
 * told has always told on. Who has been told calls its exit callback, and says so to its teller when those behind it
 * have (DONE). Then the word to go is passed on in the same way (GO): the launcher ends all workers when the first
 * leaves with a code that is not 0, and by then nobody has anything left to do. Where the words of two that end it
 * meet, neither side waits for the other. Every wait has a bound, for workers that do not poll: those the launcher
 * ends, or with code 0 they go on until they have done what they do.
 *
 * A handler that ends the job can neither send nor wait. It is left instead, and the end begins where the call into the
 * library returns that ran it. */
#include "amudp/amudp_in.h"

#include "endpoint/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEARD_NS 1000000000ull /* the longest wait for the others, each time */

void (*AMUDP_SPMDkillmyprocess)(int) = _exit;
enum { NEIGHBOURS = 3 };
static int teller = -1;                  /* who told us; -1: we end it */
static int told, done, go;               /* neighbours told; of these done; our teller's word */
static int sent_on, heard;               /* neighbours that were sent GO; of these heard it */
static unsigned char behind[NEIGHBOURS]; /* done because they were told by us */

/* The i-th neighbour; -1 = there is none. */
static int neighbour(int i)
{
    int rank = rnl_amudp_spmd.rank, other = i == 0 ? (rank + 1) / 2 - 1 : 2 * rank + i;
    return other < rnl_amudp_spmd.size ? other : -1;
}

static void on_ends(void *token, int32_t code, int32_t from)
{
    if (rnl_amudp_spmd.ends) { /* has come to us from elsewhere: nobody waits for anybody else's */
        (void)AMUDP_Reply(token, RNL_AMUDP_DONE, 1, -1);
        return;
    }
    rnl_amudp_spmd.code = code;
    teller = from;
    __atomic_store_n(&rnl_amudp_spmd.ends, 1, __ATOMIC_RELEASE); /* pairs with rnl_amudp_ended */
}

static void on_done(void *token, int32_t from)
{
    (void)token;
    done++;
    for (int i = 0; i < NEIGHBOURS; i++)
        if (from >= 0 && neighbour(i) == from)
            behind[i] = 1;
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

/* A neighbour that is dead has done what it will do. */
void rnl_amudp_exit_returned(int handler)
{
    done += handler == RNL_AMUDP_ENDS;
    go |= handler == RNL_AMUDP_DONE;
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

/* What handlers have counted, which may run in another thread. */
static int has(const int *count, int least)
{
    int held = rnl_am_hold(), enough = *count >= least;
    rnl_am_let_go(held);
    return enough;
}

static void await(const int *count, int least)
{
    struct rnl_env *env = rnl_am_get_rank(rnl_amudp_spmd.bundle->core)->env;
    uint64_t until = env->ops->now_ns(env) + HEARD_NS;
    while (!has(count, least) && env->ops->now_ns(env) < until)
        if (rnl_am_poll(rnl_amudp_spmd.bundle->core) != AM_OK)
            break;
}

static int tell(int rank, handler_t what, int n, const int32_t *args)
{
    return rnl_am_request(rnl_amudp_spmd.tree->core, rank, what, n, args) == AM_OK;
}

static int is_behind(int i)
{
    int held = rnl_am_hold(), is = behind[i];
    rnl_am_let_go(held);
    return is;
}

static void pass_on(int code)
{
    int32_t ends[] = {code, rnl_amudp_spmd.rank}, ours[] = {rnl_amudp_spmd.rank};
    for (int i = 0; i < NEIGHBOURS; i++)
        if (neighbour(i) >= 0 && neighbour(i) != teller)
            told += tell(neighbour(i), RNL_AMUDP_ENDS, 2, ends);
    await(&done, told);
    if (teller >= 0 && tell(teller, RNL_AMUDP_DONE, 1, ours))
        await(&go, 1);
    for (int i = 0; i < NEIGHBOURS; i++)
        if (is_behind(i))
            sent_on += tell(neighbour(i), RNL_AMUDP_GO, 0, NULL);
    await(&heard, sent_on);
}

_Noreturn static void leave(int code)
{
    fflush(NULL);
    rnl_amudp_stand_in_told(code);
    for (;;)
        AMUDP_SPMDkillmyprocess(code);
}

/* Word of the end may have come unseen, with the last message of a gather say: who then ends the job itself passes it
 * on all the same. A callback that ends the job again comes here a second time. */
static enum { STAYS, CALLED_BACK, PASSES_ON } stage;

/* One thread sees to the end. */
static int is_ours(void)
{
    static int taken;
    static __thread int by_us;
    if (!by_us)
        by_us = !__atomic_exchange_n(&taken, 1, __ATOMIC_RELAXED);
    return by_us;
}

_Noreturn static void end(void)
{
    rnl_am_go_on(rnl_amudp_spmd.bundle->core);
    if (stage == STAYS) {
        stage = CALLED_BACK;
        if (rnl_amudp_spmd.callback != NULL)
            rnl_amudp_spmd.callback(rnl_amudp_spmd.code);
    }
    if (stage == CALLED_BACK) {
        stage = PASSES_ON;
        pass_on(rnl_amudp_spmd.code);
    }
    leave(rnl_amudp_spmd.code);
}

void rnl_amudp_ended(void)
{
    if (RNL_UNLIKELY(__atomic_load_n(&rnl_amudp_spmd.ends, __ATOMIC_ACQUIRE)) && is_ours() && stage == STAYS)
        end();
}

int AMUDP_SPMDExit(int code)
{
    if (!rnl_amudp_spmd.started)
        return rnl_amudp_wrong(AM_ERR_NOT_INIT, __func__, "there is no job: AMUDP_SPMDStartup has not made one");
    int held = rnl_am_hold();
    if (!rnl_amudp_spmd.ends) {
        rnl_amudp_spmd.code = code;
        __atomic_store_n(&rnl_amudp_spmd.ends, 1, __ATOMIC_RELEASE);
    }
    rnl_am_let_go(held);
    /* What another thread is passing on is not to be given up. */
    rnl_am_leave_handler(rnl_amudp_spmd.bundle->core, is_ours());
    while (!is_ours())
        pause(); /* the other one ends the process */
    end();
}

int AMUDP_SPMDHandleControlTraffic(int *serviced)
{
    if (serviced != NULL)
        *serviced = 0;
    if (!rnl_amudp_spmd.started)
        return AM_OK;
    return AM_Poll(rnl_amudp_spmd.bundle);
}
