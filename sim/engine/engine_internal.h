/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine_internal.h - what the parts of the engine share. */
#ifndef RNL_SIM_ENGINE_INTERNAL_H
#define RNL_SIM_ENGINE_INTERNAL_H

#include "sim/engine/coro.h"
#include "sim/engine/engine.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct rnl_sim_entry {
    uint64_t at, sequence;
    struct rnl_sim_event *event;
    uint32_t tie;
};

struct rnl_sim {
    struct rnl_sim_entry *heap;
    size_t waiting, room;
    uint64_t now, sequence, events, seed;
    rnl_sim_tie *tie;
    rnl_sim_fn *ahead;
    int stopped;
    struct rnl_sim_coro *running; /* NULL: an event's own function */
    void *owner;
    rnl_sim_observer *observer;
    void *observer_arg;
    XXH64_state_t hash;
};

void rnl_sim_hash_note(struct rnl_sim *, uint32_t kind, uint32_t entity, uint64_t a, uint64_t b);

#endif
