/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads.c - what threads cost where a program waits; see panda.h. In the final system they are the user's, the
 * scheduler's idle loop turns interrupts off and polls, and a handler is called like a function (paper 003, 4.1). In
 * the initial one they are the kernel's: one of low priority polls, to which the processor goes when the program waits,
 * and what the program's own calls took in is handed to a thread that handles it (section 3.1). Over Ethernet nobody
 * polls: the kernel wakes a thread for what has come. */
#include "sim/myrinet/systems/panda/panda.h"

static void switch_threads(struct panda *p)
{
    enum myri_machine_value v = p->lacks.threads ? MYRI_M_process_switch : MYRI_M_thread_switch;
    myri_task_spend(p->side->task, myri_machine_us(&p->side->hw->machine, v), "switch of threads");
}

static void set_interrupts(struct panda *p, int on)
{
    if (!p->lacks.threads && p->fm->interrupts)
        p->fm->interrupts(p, on);
}

/* The kernel's threads share FM by a lock, and whoever has it handles nothing. */
static void extract(struct panda *p)
{
    p->interrupts_seen = p->side->host->interrupts;
    if (p->lacks.threads && !p->fm->kernel)
        panda_mutex(p);
    p->within += p->lacks.threads;
    p->fm->extract(p);
    p->within -= p->lacks.threads;
    panda_handle(p);
}

void panda_handle(struct panda *p)
{
    if (p->handling || p->within || !p->arrived)
        return;
    int other = p->busy && p->lacks.threads;
    p->handling = 1;
    if (other)
        switch_threads(p);
    panda_dispatch(p);
    if (other)
        switch_threads(p);
    p->handling = 0;
}

/* Nobody runs until the kernel has something, and then its thread of Panda does. Whether it has. */
static int sleep_until(struct panda *p, uint64_t until)
{
    uint32_t flag = p->fm->flag(p);
    if (myri_host_word(p->side->host, flag))
        return 1;
    if (!myri_task_poll(p->side->task, flag, 0, until))
        return 0;
    switch_threads(p);
    return 1;
}

int panda_wait(struct panda *p, const int *done, uint64_t until)
{
    struct myri_task *t = p->side->task;
    const char *fault = p->side->hw->fault;
    myri_task_operate(t, PANDA_CALL, "condition");
    panda_handle(p);
    if (until <= myri_hw_now(p->side->hw) && !*done) { /* who only looks gives the processor to nobody */
        extract(p);
        return *done != 0;
    }
    if (*done)
        return 1;
    p->busy = 0;
    if (p->fm->kernel) {
        while (!*done && !fault[0] && sleep_until(p, until))
            extract(p);
        switch_threads(p);
        p->busy = 1;
        return *done != 0;
    }
    myri_task_operate(t, PANDA_CALL, "scheduler");
    if (p->lacks.threads)
        switch_threads(p);
    else
        set_interrupts(p, 0);
    while (!*done && !fault[0] && myri_task_poll_by_call(t, p->fm->flag(p), 0, until, PANDA_CALL))
        extract(p);
    set_interrupts(p, 1);
    switch_threads(p);
    p->busy = 1;
    return *done != 0;
}

void panda_signal(struct panda *p, int *done)
{
    myri_task_operate(p->side->task, PANDA_CALL, "signal");
    *done = 1;
}

void panda_mutex(struct panda *p)
{
    myri_task_operate(p->side->task, PANDA_MUTEX, "mutex");
}

void panda_deep(struct panda *p, uint32_t frames)
{
    if (p->lacks.flat)
        myri_task_nest(p->side->task, frames);
}

void panda_compute(struct panda *p, uint64_t ps)
{
    struct myri_task *t = p->side->task;
    while (ps && !p->side->hw->fault[0]) {
        if (t->host->interrupts != p->interrupts_seen || myri_task_look(t, p->fm->flag(p)) != 0)
            extract(p);
        ps = myri_task_compute(t, ps, p->interrupts_seen);
    }
}
