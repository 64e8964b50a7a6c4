/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.c - see coro.h: switching between the stack that rnl_sim_run was called on and those of coroutines. Sanitizers
 * are told of each switch, and of the stack that a coroutine really parked on, which may be one that the library made
 * inside it. */
#include "sim/engine/engine_in.h"

#include <string.h>

#if !defined(RNL_HAVE_FCONTEXT)
#define RNL_HAVE_FCONTEXT 0
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define CORO_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CORO_TSAN 1
#endif
#if defined(CORO_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(CORO_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if RNL_HAVE_FCONTEXT
/* The C interface of Boost.Context, declared here because its headers are C++. */
struct transfer {
    void *from, *data;
};
extern void *make_fcontext(void *stack_top, size_t size, void (*entry)(struct transfer));
extern struct transfer jump_fcontext(void *to, void *data);
#else
#include <ucontext.h>
#endif

/* ---- switching ---- */

/* On the coroutine's stack, just arrived. */
static void arrived(struct rnl_sim_coro *c)
{
    (void)c;
#if defined(CORO_ASAN)
    __sanitizer_finish_switch_fiber(c->fake_stack, &c->sim->host.bottom, &c->sim->host.bytes);
#endif
}

/* From the coroutine to run(). The life ends here if its state says so. */
static void switch_out(struct rnl_sim_coro *c)
{
    struct rnl_sim_host_stack *host = &c->sim->host;
#if defined(CORO_ASAN)
    int last = c->state != RNL_SIM_CORO_PARKED;
    __sanitizer_start_switch_fiber(last ? NULL : &c->fake_stack, host->bottom, host->bytes);
#endif
#if defined(CORO_TSAN)
    c->fiber_now = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(host->fiber, 0);
#endif
#if RNL_HAVE_FCONTEXT
    host->context = jump_fcontext(host->context, c).from;
#else
    ucontext_t here, *to = host->context;
    c->context = &here;
    swapcontext(&here, to);
#endif
    arrived(c);
}

static void coro_main(struct rnl_sim_coro *c)
{
    arrived(c);
    c->fn(c, c->arg);
    c->state = RNL_SIM_CORO_ENDED;
    switch_out(c);
}

#if RNL_HAVE_FCONTEXT
static void entry(struct transfer t)
{
    struct rnl_sim_coro *c = t.data;
    c->sim->host.context = t.from;
    coro_main(c);
}
#else
/* makecontext passes ints only. */
static void entry(unsigned high, unsigned low)
{
    coro_main((struct rnl_sim_coro *)(uintptr_t)((uint64_t)high << 32 | low));
}

/* The context of a start lies on the stack's highest bytes: it is used once. */
static ucontext_t *make_context(struct rnl_sim_coro *c)
{
    uint64_t p = (uint64_t)(uintptr_t)c;
    size_t bytes = (c->stack_bytes - sizeof(ucontext_t)) & ~(size_t)63;
    ucontext_t *u = (ucontext_t *)(void *)(c->stack + bytes);
    getcontext(u);
    u->uc_stack.ss_sp = c->stack;
    u->uc_stack.ss_size = bytes;
    u->uc_link = NULL;
    makecontext(u, (void (*)(void))entry, 2, (unsigned)(p >> 32), (unsigned)p);
    return u;
}
#endif

/* From run() to the coroutine; back when it parks, ends, or kills itself. */
static void switch_in(struct rnl_sim_coro *c)
{
    struct rnl_sim_host_stack *host = &c->sim->host;
    (void)host;
#if defined(CORO_ASAN)
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, c->parked_bottom, c->parked_bytes);
#endif
#if defined(CORO_TSAN)
    host->fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->fiber_now, 0);
#endif
#if RNL_HAVE_FCONTEXT
    c->context = jump_fcontext(c->context, c).from;
#else
    ucontext_t here, *to = c->context;
    host->context = &here;
    swapcontext(&here, to);
#endif
#if defined(CORO_ASAN)
    __sanitizer_finish_switch_fiber(fake_stack, &c->parked_bottom, &c->parked_bytes);
#endif
}

/* What lies on its stack means nothing any more. */
static void forget(struct rnl_sim_coro *c)
{
    (void)c;
#if defined(CORO_ASAN)
    __asan_unpoison_memory_region(c->stack, c->stack_bytes);
#endif
#if defined(CORO_TSAN)
    if (c->fiber != NULL)
        __tsan_destroy_fiber(c->fiber);
    c->fiber = NULL;
#endif
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
    switch_in(c);
    if (c->leave)
        c->leave(c);
    s->running = NULL;
    if (c->state != RNL_SIM_CORO_PARKED) {
        rnl_sim_cancel(s, &c->wake); /* somebody may have woken the wait it did not come to */
        forget(c);
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
    c->parked_bottom = c->stack;
    c->parked_bytes = c->stack_bytes;
    c->fake_stack = NULL;
#if defined(CORO_TSAN)
    c->fiber = c->fiber_now = __tsan_create_fiber(0);
#endif
#if RNL_HAVE_FCONTEXT
    c->context = make_fcontext(c->stack + c->stack_bytes, c->stack_bytes, entry);
#else
    c->context = make_context(c);
#endif
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
    forget(c);
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

int rnl_sim_wake(struct rnl_sim_coro *c, struct rnl_sim_coro_ticket ticket, uint64_t at, uint64_t value)
{
    if (ticket.life != c->now.life || ticket.wait != c->now.wait ||
        (c->state != RNL_SIM_CORO_PARKED && c->state != RNL_SIM_CORO_RUNNING))
        return 0;
    at = at > c->sim->now ? at : c->sim->now;
    if (!rnl_sim_scheduled(&c->wake) || at < rnl_sim_when(c->sim, &c->wake)) {
        if (rnl_sim_at(c->sim, &c->wake, at) < 0)
            return 0;
        c->value = value;
    }
    return 1;
}

void rnl_sim_delay(struct rnl_sim_coro *c, uint64_t at)
{
    if (rnl_sim_scheduled(&c->wake) && at > rnl_sim_when(c->sim, &c->wake))
        (void)rnl_sim_at(c->sim, &c->wake, at); /* moving needs no memory */
}
