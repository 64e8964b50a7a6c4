/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coro.h - threads of execution on virtual time. A coroutine runs until it parks; virtual time passes only while all
 * are parked. Its stack is the owner's: it may lie at an address of the owner's choosing, and a killed one leaves
 * nothing behind there.
 *
 * A coroutine has lives, one after another (kill and start), and within each the waits are numbered. Whoever is to wake
 * it later holds a ticket for one wait of one life: woken with another, it sleeps on. Code on the coroutine may switch
 * stacks by itself (the library's handler coroutines do) and park there. */
#ifndef RNL_SIM_CORO_H
#define RNL_SIM_CORO_H

#include "base/coro.h"
#include "sim/engine/engine.h"
#include <stdbool.h>

typedef void rnl_sim_coro_fn(struct rnl_sim_coro *, void *arg);
enum rnl_sim_coro_state {
    RNL_SIM_CORO_NONE = 0, /* never started, or killed */
    RNL_SIM_CORO_PARKED,
    RNL_SIM_CORO_RUNNING,
    RNL_SIM_CORO_ENDED /* its function returned */
};
struct rnl_sim_coro_ticket {
    uint32_t life, wait;
};

struct rnl_sim_coro {
    struct rnl_sim_event wake; /* first; scheduled while it is to run */
    struct rnl_sim *sim;
    /* Around each run, on the stack that run() was called on: what belongs to it alone is swapped here. May be NULL. */
    void (*enter)(struct rnl_sim_coro *), (*leave)(struct rnl_sim_coro *);
    void *owner;
    unsigned char *stack; /* the lowest byte */
    size_t stack_bytes;
    struct rnl_sim_coro_ticket now;
    uint8_t state; /* enum rnl_sim_coro_state */
    uint64_t runs;
    /* -- the engine's -- */
    rnl_sim_coro_fn *fn;
    void *arg;
    uint64_t value; /* it is woken with */
    struct rnl_context context;
};

/* A coroutine without a life yet. Fields that are the owner's (enter, leave, owner) are left alone later. */
void rnl_sim_coro_init(struct rnl_sim_coro *, struct rnl_sim *, uint32_t entity, void *stack, size_t stack_bytes);
/* A new life: fn(coro, arg) runs from tick `at`. The old one must have ended or been killed. 0, RNL_ERR_NO_MEMORY. */
int rnl_sim_coro_start(struct rnl_sim_coro *, uint64_t at, rnl_sim_coro_fn *fn, void *arg);
/* Ends this life wherever it stands, without unwinding: its stack can be used again. Called by the coroutine itself it
 * does not return. */
void rnl_sim_coro_kill(struct rnl_sim_coro *);

/* The coroutine whose turn the event is, or NULL. */
struct rnl_sim_coro *rnl_sim_coro_of(struct rnl_sim_event *);
/* The one that runs, or NULL. */
struct rnl_sim_coro *rnl_sim_running(const struct rnl_sim *);

/* -- from inside -- */

/* Sleeps until woken; returns what wake gave. */
uint64_t rnl_sim_park(struct rnl_sim_coro *);
/* Sleeps until tick `at`, or until woken: then what wake gave, else 0. */
uint64_t rnl_sim_park_until(struct rnl_sim_coro *, uint64_t at);

/* -- from anywhere -- */

/* For the wait that it is in, or that it comes to next if it runs. */
static inline struct rnl_sim_coro_ticket rnl_sim_ticket(const struct rnl_sim_coro *c)
{
    return c->now;
}
/* Ends that wait at tick `at`, unless it is to end sooner already; value != 0. Returns true, or false: this ticket's
 * wait is over, or its life is; it parks no more. */
bool rnl_sim_wake(struct rnl_sim_coro *, struct rnl_sim_coro_ticket, uint64_t at, uint64_t value);
/* Moves whatever is to wake it to `at`, if that is later: it does not run before. */
void rnl_sim_delay(struct rnl_sim_coro *, uint64_t at);

#endif
