/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.c - see coro.h: lives and waits. How stacks are switched is base/context.c's. */
#include "sim/engine/engine_internal.h"

#include <stdbool.h>
#include <string.h>

/* The life ends here if its state says so. */
static void switch_out(struct rnl_sim_coro *c)
{
    rnl_context_leave(&c->context, c->state != RNL_SIM_CORO_PARKED);
}

static void body(void *arg)
{
    struct rnl_sim_coro *c = arg;
    c->fn(c, c->arg);
    c->state = RNL_SIM_CORO_ENDED;
    switch_out(c);
}

/* ---- lives ---- */

static void run(struct rnl_sim *s, struct rnl_sim_event *event)
{
    struct rnl_sim_coro *c = (struct rnl_sim_coro *)(void *)event;
    c->now.wait++;
    c->runs++;
    c->state = RNL_SIM_CORO_RUNNING;
    s->running = c;
    if (c->enter)
        c->enter(c);
    rnl_context_enter(&c->context);
    if (c->leave)
        c->leave(c);
    s->running = NULL;
    if (c->state != RNL_SIM_CORO_PARKED) {
        rnl_sim_cancel(s, &c->wake); /* somebody may have woken the wait it did not come to */
        rnl_context_forget(&c->context);
    }
}

void rnl_sim_coro_init(struct rnl_sim_coro *c, struct rnl_sim *s, uint32_t entity, void *stack, size_t stack_bytes)
{
    memset(c, 0, sizeof *c);
    rnl_sim_event_init(&c->wake, run, entity);
    c->sim = s;
    c->stack = stack;
    c->stack_bytes = stack_bytes;
}

int rnl_sim_coro_start(struct rnl_sim_coro *c, uint64_t at, rnl_sim_coro_fn *fn, void *arg)
{
    int status = rnl_sim_at(c->sim, &c->wake, at);
    if (status < 0)
        return status;
    c->now.life++;
    c->now.wait = 0;
    c->fn = fn;
    c->arg = arg;
    c->value = 0;
    c->state = RNL_SIM_CORO_PARKED;
    rnl_context_make(&c->context, c->stack, c->stack_bytes, body, c);
    return 0;
}

void rnl_sim_coro_kill(struct rnl_sim_coro *c)
{
    rnl_sim_cancel(c->sim, &c->wake);
    c->now.life++;
    c->now.wait = 0;
    if (c->state == RNL_SIM_CORO_RUNNING) {
        c->state = RNL_SIM_CORO_NONE;
        switch_out(c);
    }
    c->state = RNL_SIM_CORO_NONE;
    rnl_context_forget(&c->context);
}

struct rnl_sim_coro *rnl_sim_coro_of(struct rnl_sim_event *event)
{
    return event->fn == run ? (struct rnl_sim_coro *)(void *)event : NULL;
}

struct rnl_sim_coro *rnl_sim_running(const struct rnl_sim *s)
{
    return s->running;
}

/* ---- waits ---- */

uint64_t rnl_sim_park(struct rnl_sim_coro *c)
{
    c->state = RNL_SIM_CORO_PARKED;
    switch_out(c);
    uint64_t value = c->value;
    c->value = 0;
    return value;
}

uint64_t rnl_sim_park_until(struct rnl_sim_coro *c, uint64_t at)
{
    if (at != RNL_SIM_NEVER && (!rnl_sim_scheduled(&c->wake) || at < rnl_sim_when(c->sim, &c->wake))) {
        if (rnl_sim_at(c->sim, &c->wake, at) < 0)
            return 0; /* no memory to sleep */
        c->value = 0;
    }
    return rnl_sim_park(c);
}

bool rnl_sim_wake(struct rnl_sim_coro *c, struct rnl_sim_coro_ticket ticket, uint64_t at, uint64_t value)
{
    if (ticket.life != c->now.life || ticket.wait != c->now.wait ||
        (c->state != RNL_SIM_CORO_PARKED && c->state != RNL_SIM_CORO_RUNNING))
        return false;
    at = at > c->sim->now ? at : c->sim->now;
    if (!rnl_sim_scheduled(&c->wake) || at < rnl_sim_when(c->sim, &c->wake)) {
        if (rnl_sim_at(c->sim, &c->wake, at) < 0)
            return false;
        c->value = value;
    }
    return true;
}

void rnl_sim_delay(struct rnl_sim_coro *c, uint64_t at)
{
    if (rnl_sim_scheduled(&c->wake) && at > rnl_sim_when(c->sim, &c->wake))
        (void)rnl_sim_at(c->sim, &c->wake, at); /* moving needs no memory */
}
