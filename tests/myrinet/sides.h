/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sides.h - nodes with a system's library on each, for tests that call the library themselves. */
#ifndef RNL_TESTS_PAPER_SIDES_H
#define RNL_TESTS_PAPER_SIDES_H

#include "tests/myrinet/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sides {
    struct myri_hw *hw;
    uint32_t n;
    struct myri_side side[MYRI_HW_NODES];
    void *arg;
};

/* The side of a task, inside it. */
static inline struct myri_side *side_of(const struct sides *s, const struct myri_task *t)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->side[i].task == t)
            return (struct myri_side *)(uintptr_t)&s->side[i];
    return NULL;
}

static inline void make_sides(struct sides *s, const char *system, const char *on, uint32_t n, uint32_t largest,
                              uint64_t seed)
{
    const struct myri_system *sys = myri_system_find(system);
    struct myri_machine m = machine(on);
    char name[80];
    assert_non_null(sys);
    snprintf(name, sizeof name, "%s.hex", sys->object);
    const struct myri_data *d = myri_data_find(name);
    assert_non_null(d);
    memset(s, 0, sizeof *s);
    s->n = n;
    assert_int_equal(myri_hw_new(&m, n, seed, d->bytes, d->n, &s->hw), 0);
    s->hw->horizon_ps = 20000000000000u;
    for (uint32_t i = 0; i < n; i++) {
        struct myri_side *one = &s->side[i];
        one->system = sys;
        one->hw = s->hw;
        one->host = &s->hw->host[i];
        one->card = &s->hw->card[i];
        one->node = i;
        one->nodes = n;
        one->processes = 1;
        one->largest = one->reach = largest;
        assert_int_equal(myri_side_begin(one, 2 * largest + 2 * s->hw->page), 0);
        one->state = calloc(1, sys->state_bytes);
        assert_non_null(one->state);
    }
}

/* After the test has opened them. */
static inline void start_sides(struct sides *s, void (*fn)(struct myri_task *, void *))
{
    for (uint32_t i = 0; i < s->n; i++)
        s->side[i].task = myri_hw_task(s->hw, i, fn, s);
    assert_string_equal(s->hw->fault, "");
    assert_int_equal(myri_hw_power(s->hw), 0);
}

static inline void open_sides(struct sides *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        assert_int_equal(s->side[i].system->open(&s->side[i]), 0);
    if (s->side[0].system->joined)
        s->side[0].system->joined(s->side, s->n);
}

static inline void free_sides(struct sides *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->side[i].system->close)
            s->side[i].system->close(&s->side[i]);
        myri_side_end(&s->side[i]);
        free(s->side[i].state);
    }
    myri_hw_free(s->hw);
}

#endif
