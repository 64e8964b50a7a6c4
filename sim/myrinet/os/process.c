/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - the scheduler of a host; see process.h. Round robin: who is ready waits behind those that were before,
 * daemons before those that are none. */
#include "sim/myrinet/os/process.h"

#include <stddef.h>
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

/* Has a process look at once whether it may go on. */
static void interrupt(struct myri_process *p)
{
    rnl_sim_wake(&p->task->coro, rnl_sim_ticket(&p->task->coro), now_of(p), 1);
}

/* One that is no daemon has a processor less. */
static void preempt(struct myri_os *os)
{
    for (uint32_t i = 0; i < os->host->tasks; i++) {
        struct myri_process *p = os->host->task[i]->process;
        if (p && p->os == os && p->has && !p->first && !p->yields) {
            p->yields = 1;
            interrupt(p);
            return;
        }
    }
}

/* Puts a process behind the others that are ready, a daemon before those that are none. */
static void queue_up(struct myri_process *p)
{
    struct myri_os *os = p->os;
    uint32_t at = os->ready_n;
    if (p->stopped) {
        p->off = 1;
        return;
    }
    while (p->first && at && !os->ready[at - 1]->first) {
        os->ready[at] = os->ready[at - 1];
        at--;
    }
    os->ready[at] = p;
    os->ready_n++;
    dispatch(os);
    if (p->first && !p->has)
        preempt(os);
}

static void wait_for_processor(struct myri_process *p)
{
    while ((!p->has || now_of(p) < p->since_ps) && !p->os->host->hw->fault[0])
        if (p->has) /* the switch is under way, and nobody else wakes it behind that */
            rnl_sim_park_until(&p->task->coro, p->since_ps);
        else
            rnl_sim_park(&p->task->coro);
}

static void give_away(struct myri_process *p)
{
    p->has = p->yields = 0;
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
    if (p->left_ps && !p->stopped && !p->yields)
        return;
    p->left_ps = p->os->quantum_ps;
    if (!p->stopped && !p->os->ready_n) {
        p->yields = 0;
        return;
    }
    give_away(p);
    queue_up(p);
    dispatch(p->os);
    wait_for_processor(p);
}

static int has_signal(const struct myri_process *p)
{
    return p->signals && p->on_signal && !p->blocked && !p->handles;
}

static void handle_signals(struct myri_process *p)
{
    while (has_signal(p) && !p->os->host->hw->fault[0]) {
        p->signals--;
        p->handles = 1;
        myri_process_spend(p, p->os->signal_ps);
        p->on_signal(p->signal_arg);
        p->handles = 0;
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
        while (now_of(p) < from + slice && !p->stopped && !p->yields && !has_signal(p) && !h->hw->fault[0])
            rnl_sim_park_until(&p->task->coro, from + slice);
        slice = now_of(p) - from < slice ? now_of(p) - from : slice;
        ps -= slice;
        charge(p);
        handle_signals(p);
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
    } else if (!has_signal(p)) {
        p->sleeps = 1;
        give_away(p);
        dispatch(p->os);
        wait_for_processor(p);
    }
    handle_signals(p);
}

static void rings(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    (void)sim;
    myri_process_wake((struct myri_process *)((char *)e - offsetof(struct myri_process, alarm)));
}

void myri_process_sleep_until(struct myri_process *p, uint64_t until)
{
    struct rnl_sim *sim = p->os->host->hw->sim;
    if (until <= now_of(p))
        return;
    if (until != RNL_SIM_NEVER) {
        rnl_sim_event_init(&p->alarm, rings, p->os->host->id);
        rnl_sim_at(sim, &p->alarm, until);
    }
    myri_process_sleep(p);
    if (until != RNL_SIM_NEVER)
        rnl_sim_cancel(sim, &p->alarm);
}

void myri_process_block(struct myri_process *p)
{
    p->blocked++;
    myri_process_spend(p, p->os->signal_ps);
}

void myri_process_unblock(struct myri_process *p)
{
    myri_process_spend(p, p->os->signal_ps);
    p->blocked -= p->blocked > 0;
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
    if (p->has)
        interrupt(p);
    else
        myri_process_wake(p);
}

void myri_process_stop(struct myri_process *p)
{
    struct myri_os *os = p->os;
    p->stopped = 1;
    if (p->has) {
        interrupt(p);
        return;
    }
    for (uint32_t i = 0; i < os->ready_n; i++)
        if (os->ready[i] == p) {
            memmove(os->ready + i, os->ready + i + 1, (--os->ready_n - i) * sizeof os->ready[0]);
            p->off = 1;
            return;
        }
}

void myri_process_resume(struct myri_process *p)
{
    p->stopped = 0;
    if (!p->off)
        return;
    p->off = 0;
    queue_up(p);
}
