/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process.c - Orca processes as coroutines of one thread, and the queue of those that can run. */
#include "base/coro.h"
#include "rts.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { STACK_BYTES = 1 << 20, STACK_RESERVE = 1 << 15, BUDGET = 2000 };

struct coroutine {
    struct rnl_context context;
    struct orc_thread thread;
    struct coroutine *next;
    bool ended;
};

struct orc_thread *orc_self;
uint64_t orc_running;
char *orc_stack_end;
static char *first_stack_end; /* of the stack on which processes are run, and what comes in is executed */
int orc_budget = BUDGET;
static int turns_from = BUDGET; /* the budget at the last orc_spend_turns */

static struct orc_queue ready = {NULL, &ready.first};
static struct coroutine *unused; /* stacks are used again */
static struct orc_thread *threads;

static void enqueue(struct orc_thread *t)
{
    t->next = NULL;
    *ready.last = t;
    ready.last = &t->next;
}

static struct coroutine *of(struct orc_thread *t)
{
    return t->context;
}

void orc_free_args(const struct orc_process *p, void **args)
{
    for (uint32_t i = 0; i < p->params_count; i++) {
        orc_free(p->params[i].type, args[i]);
        free(args[i]);
    }
    free(args);
}

static void run(void *arg)
{
    struct coroutine *c = arg;
    for (;;) { /* the stack is given to one process after another */
        struct orc_thread *t = &c->thread;
        t->process->body(t->args);
        orc_free_args(t->process, t->args);
        if (orc_system->ended)
            orc_system->ended(t);
        c->ended = true;
        rnl_context_leave(&c->context, 0);
    }
}

struct orc_thread *orc_spawn(uint32_t process, void **args)
{
    static uint32_t numbers;
    struct coroutine *c = unused;
    if (c) {
        unused = c->next;
        c->ended = false;
    } else {
        c = orc_alloc(sizeof *c);
        void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED)
            orc_fail(0, "there is no memory for the stack of another process");
        rnl_context_make(&c->context, stack, STACK_BYTES, run, c);
    }
    c->thread = (struct orc_thread){
        .process = &orc_program->processes[process], .number = ++numbers, .args = args, .context = c};
    c->thread.all = threads;
    threads = &c->thread;
    orc_running++;
    enqueue(&c->thread);
    return &c->thread;
}

void orc_each_thread(void (*f)(struct orc_thread *, void *arg), void *arg)
{
    for (struct orc_thread *t = threads; t; t = t->all)
        f(t, arg);
}

static void yield(struct orc_thread *t)
{
    rnl_context_leave(&of(t)->context, 0);
}

void orc_sleep(void)
{
    struct orc_thread *t = orc_self;
    t->waiting = true;
    yield(t);
}

void orc_wake(struct orc_thread *t)
{
    if (!t->waiting)
        return;
    t->waiting = false;
    enqueue(t);
}

void orc_yield(void)
{
    struct orc_thread *t = orc_self;
    enqueue(t);
    yield(t);
}

bool orc_is_idle(void)
{
    return !ready.first;
}

/* Takes the time that turns of loops since the last call take more (-turn-ns). Less than a microsecond stays owed. */
void orc_spend_turns(void)
{
    static int64_t owed_ns;
    if (!orc_options.turn_ns)
        return;
    owed_ns += (int64_t)(turns_from - orc_budget) * orc_options.turn_ns;
    turns_from = orc_budget;
    if (owed_ns < 1000)
        return;
    const struct timespec t = {owed_ns / 1000000000, owed_ns % 1000000000};
    owed_ns = 0;
    nanosleep(&t, NULL);
}

/* Polls come every few microseconds, also where turns take long. */
static void refill(void)
{
    const int turns = orc_options.turn_ns ? 20000 / orc_options.turn_ns : BUDGET;
    orc_spend_turns();
    orc_budget = turns_from = turns < 1 ? 1 : turns < BUDGET ? turns : BUDGET;
}

void orc_bound_stack(void)
{
    orc_stack_end = first_stack_end = (char *)__builtin_frame_address(0) - (STACK_BYTES - STACK_RESERVE);
}

static void step(struct orc_thread *t)
{
    struct coroutine *c = of(t);
    orc_self = t;
    orc_counts.switches++;
    orc_stack_end = (char *)c->context.stack + STACK_RESERVE;
    refill();
    rnl_context_enter(&c->context);
    orc_spend_turns();
    orc_stack_end = first_stack_end;
    orc_self = NULL;
    if (!c->ended)
        return;
    orc_running--;
    for (struct orc_thread **p = &threads; *p; p = &(*p)->all)
        if (*p == t) {
            *p = t->all;
            break;
        }
    c->next = unused;
    unused = c;
}

bool orc_run_some(void)
{
    struct orc_thread *last = NULL;
    if (!ready.first)
        return false;
    for (struct orc_thread **p = &ready.first; *p; p = &(*p)->next)
        last = *p;
    for (;;) { /* those that are ready now, once each */
        struct orc_thread *t = ready.first;
        ready.first = t->next;
        if (!ready.first)
            ready.last = &ready.first;
        step(t);
        if (t == last)
            return true;
    }
}

void orc_poll(void)
{
    refill();
    if (orc_in_operation || !orc_self)
        return;
    if (!ready.first && !orc_system->poll)
        return;
    orc_yield();
}

void orc_free_threads(void)
{
    while (unused) {
        struct coroutine *c = unused;
        unused = c->next;
        rnl_context_forget(&c->context);
        munmap(c->context.stack, STACK_BYTES);
        free(c);
    }
}
