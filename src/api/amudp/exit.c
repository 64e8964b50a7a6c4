/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exit.c - the end of a job. The workers form a tree in which rank p is the parent of 2 p + 1 and 2 p + 2, and the end
 * is broadcast along its edges. A worker that calls AMUDP_SPMDExit sends END to its neighbours, and each worker that
 * gets END for the first time forwards it to its other neighbours. So all workers get one or two messages, however many
 * of them end the job at once. A worker that got END calls its exit callback, waits for DONE from those to which it
 * forwarded END, and sends DONE to its sender. Then GO is broadcast in the same way, and acknowledged: the launcher
 * ends all workers when the first exits with a code that is not 0, and by then all callbacks have returned. Where the
 * broadcasts of two workers meet, neither side waits for the other. Every wait has a bound, because a worker may not
 * poll. The launcher ends such a worker, or, with code 0, it goes on until it exits by itself.
 *
 * A handler that ends the job can neither send nor wait. The handler is left by a jump instead, and the end begins
 * where the call into the library that ran it returns. */
#include "api/amudp/amudp_internal.h"

#include "endpoint/endpoint.h"
#include "job/rendezvous.h"
#include "pmix/pmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_NS 1000000000ull /* the longest wait for others in each phase */

void (*AMUDP_SPMDkillmyprocess)(int) = _exit;
enum { NEIGHBOURS = 3 };
static int end_sender = -1;                /* the neighbour that sent END; -1 = this worker ends the job */
static int ends_sent, done, go;            /* END sent; DONE received; GO received */
static int gos_sent, go_acks;              /* GO sent; GO acknowledged */
static unsigned char is_child[NEIGHBOURS]; /* this neighbour has sent DONE in reply to our END */

/* Returns the i-th neighbour, or -1 if there is none. */
static int neighbour(int i)
{
    int rank = rnl_amudp_spmd.rank, other = i == 0 ? (rank + 1) / 2 - 1 : 2 * rank + i;
    return other < rnl_amudp_spmd.size ? other : -1;
}

static void on_end(void *token, int32_t code, int32_t from)
{
    if (rnl_amudp_spmd.ends) { /* two broadcasts meet: neither worker waits for the other's children */
        (void)AMUDP_Reply(token, RNL_AMUDP_DONE, 1, -1);
        return;
    }
    rnl_amudp_spmd.code = code;
    end_sender = from;
    __atomic_store_n(&rnl_amudp_spmd.ends, 1, __ATOMIC_RELEASE); /* pairs with rnl_amudp_exit_if_ended */
}

static void on_done(void *token, int32_t from)
{
    (void)token;
    done++;
    for (int i = 0; i < NEIGHBOURS; i++)
        if (from >= 0 && neighbour(i) == from)
            is_child[i] = 1;
}

static void on_go(void *token)
{
    go = 1;
    (void)AMUDP_Reply(token, RNL_AMUDP_END_ACK, 0);
}

static void on_go_ack(void *token)
{
    (void)token;
    go_acks++;
}

/* A message to a dead neighbour counts as replied to. */
void rnl_amudp_exit_returned(int handler)
{
    done += handler == RNL_AMUDP_END;
    go |= handler == RNL_AMUDP_DONE;
    go_acks += handler == RNL_AMUDP_GO;
}

int rnl_amudp_exit_handlers(struct amudp_ep *tree)
{
    int r = AM_SetHandler(tree, RNL_AMUDP_END, on_end);
    if (r == AM_OK)
        r = AM_SetHandler(tree, RNL_AMUDP_DONE, on_done);
    if (r == AM_OK)
        r = AM_SetHandler(tree, RNL_AMUDP_GO, on_go);
    return r == AM_OK ? AM_SetHandler(tree, RNL_AMUDP_END_ACK, on_go_ack) : r;
}

int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback)
{
    rnl_amudp_spmd.callback = callback;
    return AM_OK;
}

/* Reads a count of the handlers, which may run in another thread. */
static int has(const int *count, int least)
{
    int held = rnl_am_hold(), enough = *count >= least;
    rnl_am_let_go(held);
    return enough;
}

static void wait_for(const int *count, int least)
{
    struct rnl_env *env = rnl_am_get_rank(rnl_amudp_spmd.bundle->core)->env;
    uint64_t until = env->ops->now_ns(env) + WAIT_NS;
    while (!has(count, least) && env->ops->now_ns(env) < until)
        if (rnl_am_poll(rnl_amudp_spmd.bundle->core) != AM_OK)
            break;
}

static bool send_to(int rank, handler_t what, int n, const int32_t *args)
{
    return rnl_am_request(rnl_amudp_spmd.tree->core, rank, what, n, args) == AM_OK;
}

static int has_child(int i)
{
    int held = rnl_am_hold(), is = is_child[i];
    rnl_am_let_go(held);
    return is;
}

static void forward(int code)
{
    int32_t ends[] = {code, rnl_amudp_spmd.rank}, ours[] = {rnl_amudp_spmd.rank};
    for (int i = 0; i < NEIGHBOURS; i++)
        if (neighbour(i) >= 0 && neighbour(i) != end_sender)
            ends_sent += send_to(neighbour(i), RNL_AMUDP_END, 2, ends);
    wait_for(&done, ends_sent);
    if (end_sender >= 0 && send_to(end_sender, RNL_AMUDP_DONE, 1, ours))
        wait_for(&go, 1);
    for (int i = 0; i < NEIGHBOURS; i++)
        if (has_child(i))
            gos_sent += send_to(neighbour(i), RNL_AMUDP_GO, 0, NULL);
    wait_for(&go_acks, gos_sent);
}

_Noreturn static void leave(int code)
{
    fflush(NULL);
    rnl_join_exits(code);
    if (code == 0)
        rnl_pmix_leave(); /* with another code PMIx shall end the workers that did not get END */
    for (;;)
        AMUDP_SPMDkillmyprocess(code);
}

/* END may have arrived unnoticed, for instance with the last message of a gather: a worker that then ends the job
 * itself forwards it all the same. A callback that ends the job again enters end() a second time. */
static enum { RUNNING, CALLED_BACK, FORWARDING } stage;

/* Returns true in the one thread that ends the process: the first that asks. */
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
    if (stage == RUNNING) {
        stage = CALLED_BACK;
        if (rnl_amudp_spmd.callback)
            rnl_amudp_spmd.callback(rnl_amudp_spmd.code);
    }
    if (stage == CALLED_BACK) {
        stage = FORWARDING;
        forward(rnl_amudp_spmd.code);
    }
    leave(rnl_amudp_spmd.code);
}

void rnl_amudp_exit_if_ended(void)
{
    if (RNL_UNLIKELY(__atomic_load_n(&rnl_amudp_spmd.ends, __ATOMIC_ACQUIRE)) && is_ours() && stage == RUNNING)
        end();
}

int AMUDP_SPMDExit(int code)
{
    if (!rnl_amudp_spmd.started)
        return rnl_amudp_fail(AM_ERR_NOT_INIT, __func__, "there is no job: AMUDP_SPMDStartup has not made one");
    int held = rnl_am_hold();
    if (!rnl_amudp_spmd.ends) {
        rnl_amudp_spmd.code = code;
        __atomic_store_n(&rnl_amudp_spmd.ends, 1, __ATOMIC_RELEASE);
    }
    rnl_am_let_go(held);
    /* What another thread is forwarding is not to be given up. */
    rnl_am_leave_handler(rnl_amudp_spmd.bundle->core, is_ours());
    while (!is_ours())
        pause(); /* the other one ends the process */
    end();
}

int AMUDP_SPMDHandleControlTraffic(int *serviced)
{
    if (serviced)
        *serviced = 0;
    if (!rnl_amudp_spmd.started)
        return AM_OK;
    return AM_Poll(rnl_amudp_spmd.bundle);
}
