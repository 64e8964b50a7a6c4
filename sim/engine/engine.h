/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine.h - virtual time: a clock of 64-bit ticks without a unit, a queue of events, and a hash of all that happens.
 * It knows no node, packet or fault; coro.h adds threads of execution, random.h chance.
 *
 * Events belong to their owners: a struct rnl_sim_event lies within what it is about, and is scheduled at most once at
 * a time. So nothing is allocated for an event, and to cancel or move one takes its address only.
 *
 * Two runs that schedule the same events have the same order, whatever compiled them: events of one tick go by the tie
 * that the owner of the engine may choose, then by the order in which they were scheduled. */
#ifndef RNL_SIM_ENGINE_H
#define RNL_SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rnl_sim;
struct rnl_sim_event;
struct rnl_sim_coro;

#define RNL_SIM_NEVER UINT64_MAX

typedef void rnl_sim_fn(struct rnl_sim *, struct rnl_sim_event *);
struct rnl_sim_event {
    rnl_sim_fn *fn;
    uint32_t entity; /* whose it is: enters the tie and the trace */
    uint32_t place;  /* the engine's: 1 + where it is queued, 0 = it is not */
};
/* Before the first use; afterwards the event is not scheduled. */
static inline void rnl_sim_event_init(struct rnl_sim_event *e, rnl_sim_fn *fn, uint32_t entity)
{
    e->fn = fn;
    e->entity = entity;
    e->place = 0;
}

/* 0 or RNL_ERR_NO_MEMORY. */
int rnl_sim_new(uint64_t seed, struct rnl_sim **out);
/* Events and coroutines that are left are forgotten. NULL is fine. */
void rnl_sim_free(struct rnl_sim *);
uint64_t rnl_sim_seed(const struct rnl_sim *);
uint64_t rnl_sim_now(const struct rnl_sim *);
/* Whatever the owner wants to find again from a function that is given the engine. */
void rnl_sim_set_owner(struct rnl_sim *, void *owner);
void *rnl_sim_owner(const struct rnl_sim *);

/* Which of the events of one tick is first: the one with the smaller tie. A pure function of its arguments; NULL (as at
 * first) = all the same. To be set before the first event. */
typedef uint32_t rnl_sim_tie(uint64_t seed, uint64_t at, uint32_t entity);
void rnl_sim_set_tie(struct rnl_sim *, rnl_sim_tie *tie);
rnl_sim_tie rnl_sim_tie_by_seed; /* entities in an order that differs from seed to seed; each one's own in order */

/* Called with the event that is likely to be the next, before another one runs: to fetch what it will touch into the
 * caches, and for nothing else. */
void rnl_sim_set_ahead(struct rnl_sim *, rnl_sim_fn *ahead);

/* Run e->fn at tick `at`, or now if that is past. One that is scheduled already is moved. 0, RNL_ERR_NO_MEMORY. */
int rnl_sim_at(struct rnl_sim *, struct rnl_sim_event *e, uint64_t at);
/* Fine for one that is not scheduled. An event is not scheduled any more when its function runs. */
void rnl_sim_cancel(struct rnl_sim *, struct rnl_sim_event *e);
static inline bool rnl_sim_scheduled(const struct rnl_sim_event *e)
{
    return e->place != 0;
}
/* When, of one that is scheduled. */
uint64_t rnl_sim_when(const struct rnl_sim *, const struct rnl_sim_event *e);

/* Runs events up to and including tick `until`, until none are left, or until one of them has called stop. Afterwards
 * the clock stands at the last event, or at `until` if nothing but time was left. Returns how many events wait. */
size_t rnl_sim_run(struct rnl_sim *, uint64_t until);
void rnl_sim_stop(struct rnl_sim *);
/* The tick of the first event that waits, or RNL_SIM_NEVER: how far something that is no event may run ahead. */
uint64_t rnl_sim_next(const struct rnl_sim *);
uint64_t rnl_sim_events(const struct rnl_sim *); /* that have run */

/* ---- the trace ---- */

/* Adds (now, kind, entity, a, b) to the hash and shows it to the observer. Kinds below RNL_SIM_NOTE_FIRST are the
 * engine's own. What is noted must be the same in each run: no addresses. */
enum rnl_sim_note_kind {
    RNL_SIM_NOTE_EVENT = 1, /* an event's function is about to run; these are only hashed, not shown */
    RNL_SIM_NOTE_FIRST = 16
};
void rnl_sim_note(struct rnl_sim *, uint32_t kind, uint32_t entity, uint64_t a, uint64_t b);
/* Notes bytes, with a number of the caller's. */
void rnl_sim_note_bytes(struct rnl_sim *, uint32_t kind, uint32_t entity, uint64_t a, const void *bytes, size_t n);
struct rnl_sim_noted {
    uint64_t at, a, b; /* b: n, of bytes */
    uint32_t kind, entity;
    const void *bytes; /* or NULL */
};
typedef void rnl_sim_observer(void *arg, const struct rnl_sim_noted *);
void rnl_sim_observe(struct rnl_sim *, rnl_sim_observer *, void *arg);
/* Of everything so far. */
uint64_t rnl_sim_hash(const struct rnl_sim *);

#endif
