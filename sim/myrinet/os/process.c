/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - the scheduler of a host; see process.h. Round robin: who is ready waits behind those that were before. */
#include "sim/myrinet/os/process.h"

#include <string.h>

static uint64_t now_of(const struct myri_process *p)
{
    return myri_hw_now(p->os->host->hw);
}

void myri_os_init(struct myri_os *os, struct myri_host *host, uint32_t processors)
{
    const struct myri_machine *m = &host->hw->machine;
    memset(os, 0, sizeof *os);
    os->host = host;
    os->processors = processors ? processors : 1;
    os->quantum_ps = myri_machine_us(m, MYRI_M_quantum);
    os->switch_ps = myri_machine_us(m, MYRI_M_process_switch);
    os->signal_ps = myri_machine_us(m, MYRI_M_system_call);
}

static void dispatch(struct myri_os *os)
{
    while (os->ready_n && os->busy < os->processors) {
        struct myri_process *p = os->ready[0];
        memmove(os->ready, os->ready + 1, --os->ready_n * sizeof os->ready[0]);
        os->busy++;
        os->switches++;
        os->switched_ps += os->switch_ps;
        p->has = 1;
        p->left_ps = os->quantum_ps;
        p->since_ps = now_of(p) + os->switch_ps;
        rnl_sim_wake(&p->task->coro, rnl_sim_ticket(&p->task->coro), p->since_ps, 1);
    }
}

/* Behind the others that are ready. */
static void queue_up(struct myri_process *p)
{
    p->os->ready[p->os->ready_n++] = p;
    dispatch(p->os);
}

static void wait_for_processor(struct myri_process *p)
{
    while ((!p->has || now_of(p) < p->since_ps) && !p->os->host->hw->fault[0])
        rnl_sim_park(&p->task->coro);
}

static void give_away(struct myri_process *p)
{
    p->has = 0;
    p->os->busy--;
}

/* What it has run since the last time; others may run when its quantum is over. */
static void charge(struct myri_process *p)
{
    uint64_t ran = now_of(p) - p->since_ps;
    p->since_ps = now_of(p);
    p->ran_ps += ran;
    p->os->ran_ps += ran;
    p->left_ps -= ran < p->left_ps ? ran : p->left_ps;
    if (p->left_ps)
        return;
    p->left_ps = p->os->quantum_ps;
    if (!p->os->ready_n)
        return;
    give_away(p);
    queue_up(p);
    wait_for_processor(p);
}

static void handle_signals(struct myri_process *p)
{
    while (p->signals && p->on_signal) {
        p->signals--;
        myri_process_spend(p, p->os->signal_ps);
        p->on_signal(p->signal_arg);
    }
}

void myri_process_join(struct myri_process *p, struct myri_os *os, struct myri_task *t)
{
    p->os = os;
    p->task = t;
    t->process = p;
    queue_up(p);
    wait_for_processor(p);
}

void myri_process_leave(struct myri_process *p)
{
    charge(p);
    give_away(p);
    p->task->process = NULL;
    dispatch(p->os);
}

void myri_process_spend(struct myri_process *p, uint64_t ps)
{
    struct myri_host *h = p->os->host;
    charge(p);
    while (!h->hw->fault[0]) {
        ps += h->stolen_ps; /* an interrupt takes one processor's time, and ours is one */
        h->stolen_ps = 0;
        if (!ps)
            break;
        uint64_t slice = ps < p->left_ps ? ps : p->left_ps, from = now_of(p);
        while (now_of(p) < from + slice && !h->hw->fault[0])
            rnl_sim_park_until(&p->task->coro, from + slice);
        ps -= slice;
        charge(p);
    }
}

void myri_process_account(struct myri_process *p)
{
    charge(p);
    handle_signals(p);
}

uint64_t myri_process_quantum_end(const struct myri_process *p)
{
    return now_of(p) + p->left_ps;
}

void myri_process_sleep(struct myri_process *p)
{
    charge(p);
    if (p->woken) {
        p->woken = 0;
    } else {
        p->sleeps = 1;
        give_away(p);
        dispatch(p->os);
        wait_for_processor(p);
    }
    handle_signals(p);
}

void myri_process_wake(struct myri_process *p)
{
    if (!p->sleeps) {
        p->woken = 1;
        return;
    }
    p->sleeps = 0;
    queue_up(p);
}

void myri_process_signal(struct myri_process *p)
{
    p->signals++;
    myri_process_wake(p);
}
