/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine.c - the queue of events and the trace hash. The queue is a heap with four children to a node, which touches
 * half as many cache lines as one with two; each event knows its place in it. */
#include "sim/engine/engine_internal.h"

#include "base/error.h"
#include "sim/engine/random.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 4, HEAP_FIRST = 1024, TIE_STREAM = 0x746965 };

int rnl_sim_new(uint64_t seed, struct rnl_sim **out)
{
    struct rnl_sim *s = calloc(1, sizeof *s);
    if (!s)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a simulation");
    s->seed = seed;
    XXH64_reset(&s->hash, 0);
    *out = s;
    return 0;
}

void rnl_sim_free(struct rnl_sim *s)
{
    if (!s)
        return;
    free(s->heap);
    free(s);
}

uint64_t rnl_sim_seed(const struct rnl_sim *s)
{
    return s->seed;
}

uint64_t rnl_sim_now(const struct rnl_sim *s)
{
    return s->now;
}

void rnl_sim_set_owner(struct rnl_sim *s, void *owner)
{
    s->owner = owner;
}

void *rnl_sim_owner(const struct rnl_sim *s)
{
    return s->owner;
}

void rnl_sim_set_ahead(struct rnl_sim *s, rnl_sim_fn *ahead)
{
    s->ahead = ahead;
}

void rnl_sim_set_tie(struct rnl_sim *s, rnl_sim_tie *tie)
{
    s->tie = tie;
}

uint32_t rnl_sim_tie_by_seed(uint64_t seed, uint64_t at, uint32_t entity)
{
    return (uint32_t)(rnl_sim_random(seed, TIE_STREAM, entity, at) >> 32);
}

/* ---- the heap ---- */

static bool before(const struct rnl_sim_entry *a, const struct rnl_sim_entry *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if (a->tie != b->tie)
        return a->tie < b->tie;
    return a->sequence < b->sequence;
}

static void put(struct rnl_sim *s, size_t i, const struct rnl_sim_entry *e)
{
    s->heap[i] = *e;
    e->event->place = (uint32_t)i + 1;
}

/* Settles e, for which place i is free. */
static void rise(struct rnl_sim *s, size_t i, struct rnl_sim_entry e)
{
    while (i > 0 && before(&e, &s->heap[(i - 1) / CHILDREN])) {
        put(s, i, &s->heap[(i - 1) / CHILDREN]);
        i = (i - 1) / CHILDREN;
    }
    put(s, i, &e);
}

static void sink(struct rnl_sim *s, size_t i, struct rnl_sim_entry e)
{
    for (size_t child; (child = CHILDREN * i + 1) < s->waiting;) {
        size_t end = child + CHILDREN < s->waiting ? child + CHILDREN : s->waiting, least = child;
        while (++child < end)
            if (before(&s->heap[child], &s->heap[least]))
                least = child;
        if (!before(&s->heap[least], &e))
            break;
        put(s, i, &s->heap[least]);
        i = least;
    }
    put(s, i, &e);
}

static void settle(struct rnl_sim *s, size_t i, struct rnl_sim_entry e)
{
    if (i > 0 && before(&e, &s->heap[(i - 1) / CHILDREN]))
        rise(s, i, e);
    else
        sink(s, i, e);
}

static int grow(struct rnl_sim *s)
{
    size_t room = s->room ? 2 * s->room : HEAP_FIRST;
    struct rnl_sim_entry *heap = room <= UINT32_MAX ? realloc(s->heap, room * sizeof *heap) : NULL;
    if (!heap)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %zu events at a time", room);
    s->heap = heap;
    s->room = room;
    return 0;
}

int rnl_sim_at(struct rnl_sim *s, struct rnl_sim_event *event, uint64_t at)
{
    at = at > s->now ? at : s->now;
    struct rnl_sim_entry e = {at, s->sequence++, event, s->tie ? s->tie(s->seed, at, event->entity) : 0};
    if (event->place != 0) {
        settle(s, event->place - 1, e);
        return 0;
    }
    if (s->waiting == s->room) {
        int status = grow(s);
        if (status < 0)
            return status;
    }
    rise(s, s->waiting++, e);
    return 0;
}

void rnl_sim_cancel(struct rnl_sim *s, struct rnl_sim_event *event)
{
    if (event->place == 0)
        return;
    size_t i = event->place - 1;
    struct rnl_sim_entry last = s->heap[--s->waiting];
    event->place = 0;
    if (i < s->waiting)
        settle(s, i, last);
}

uint64_t rnl_sim_when(const struct rnl_sim *s, const struct rnl_sim_event *event)
{
    return s->heap[event->place - 1].at;
}

/* ---- running ---- */

uint64_t rnl_sim_next(const struct rnl_sim *s)
{
    return s->waiting > 0 ? s->heap[0].at : RNL_SIM_NEVER;
}

/* With many hosts nothing of an event is in the caches when its turn comes. It is fetched while those before it run:
 * the next one is at the top of the heap, and the one after it among the children. */
static void fetch_ahead(struct rnl_sim *s)
{
    enum { LINE = 64, NEXT_LINES = 6 };
    size_t soon = s->waiting < 1 + CHILDREN ? s->waiting : 1 + CHILDREN;
    for (size_t i = 1; i < soon; i++)
        __builtin_prefetch(s->heap[i].event);
    if (soon == 0)
        return;
    struct rnl_sim_event *next = s->heap[0].event;
    for (size_t i = 0; i < NEXT_LINES; i++)
        __builtin_prefetch((const char *)next + i * LINE);
    if (s->ahead)
        s->ahead(s, next);
}

size_t rnl_sim_run(struct rnl_sim *s, uint64_t until)
{
    s->stopped = 0;
    while (s->waiting > 0 && s->heap[0].at <= until && !s->stopped) {
        struct rnl_sim_event *event = s->heap[0].event;
        s->now = s->heap[0].at;
        rnl_sim_cancel(s, event);
        s->events++;
        fetch_ahead(s);
        rnl_sim_hash_note(s, RNL_SIM_NOTE_EVENT, event->entity, s->waiting, 0);
        event->fn(s, event);
    }
    if (!s->stopped && until != RNL_SIM_NEVER && until > s->now)
        s->now = until;
    return s->waiting;
}

void rnl_sim_stop(struct rnl_sim *s)
{
    s->stopped = 1;
}

uint64_t rnl_sim_events(const struct rnl_sim *s)
{
    return s->events;
}

/* ---- the trace ---- */

void rnl_sim_hash_note(struct rnl_sim *s, uint32_t kind, uint32_t entity, uint64_t a, uint64_t b)
{
    const uint64_t words[4] = {htole64(s->now), htole64((uint64_t)kind << 32 | entity), htole64(a), htole64(b)};
    XXH64_update(&s->hash, words, sizeof words);
}

void rnl_sim_note(struct rnl_sim *s, uint32_t kind, uint32_t entity, uint64_t a, uint64_t b)
{
    rnl_sim_hash_note(s, kind, entity, a, b);
    if (s->observer) {
        const struct rnl_sim_noted noted = {.at = s->now, .a = a, .b = b, .kind = kind, .entity = entity};
        s->observer(s->observer_arg, &noted);
    }
}

void rnl_sim_note_bytes(struct rnl_sim *s, uint32_t kind, uint32_t entity, uint64_t a, const void *bytes, size_t n)
{
    rnl_sim_hash_note(s, kind, entity, a, n);
    if (n > 0)
        XXH64_update(&s->hash, bytes, n);
    if (s->observer) {
        const struct rnl_sim_noted noted = {
            .at = s->now, .a = a, .b = n, .kind = kind, .entity = entity, .bytes = bytes};
        s->observer(s->observer_arg, &noted);
    }
}

void rnl_sim_observe(struct rnl_sim *s, rnl_sim_observer *observer, void *arg)
{
    s->observer = observer;
    s->observer_arg = arg;
}

uint64_t rnl_sim_hash(const struct rnl_sim *s)
{
    return XXH64_digest(&s->hash);
}
