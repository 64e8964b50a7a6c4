/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.h - what the tests of the papers' machine set up: a machine by its name, hardware of two nodes with a
 * firmware that is built in, an experiment. */
#ifndef RNL_TESTS_PAPER_MACHINE_H
#define RNL_TESTS_PAPER_MACHINE_H

#include "runnel/runnel.h"
#include "sim/myrinet/data.h"
#include "sim/myrinet/experiments/run.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static inline struct myri_machine machine(const char *name)
{
    struct myri_machine m;
    assert_int_equal(myri_machine_builtin(name, &m), 0);
    return m;
}

static inline struct myri_experiment experiment(const char *system, const char *on, enum myri_measure what,
                                                uint32_t bytes)
{
    struct myri_experiment x;
    struct myri_machine m = machine(on);
    myri_experiment_init(&x, myri_system_find(system), &m, what, bytes);
    return x;
}

/* Makes the machine of a system: the first one that its paper has. */
static inline struct myri_experiment experiment_at_home(const struct myri_system *s, enum myri_measure what,
                                                        uint32_t bytes)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(s->machines, " "), s->machines);
    return experiment(s->name, name, what, bytes);
}

static inline struct myri_hw *new_hw(const char *on, const char *firmware)
{
    struct myri_machine m = machine(on);
    struct myri_hw *hw;
    const struct myri_data *d = myri_data_find(firmware);
    assert_non_null(d);
    assert_int_equal(myri_hw_new(&m, 2, 1, d->bytes, d->n, &hw), 0);
    return hw;
}

/* As an instruction of the card does it now. */
static inline void write_register(struct myri_card *c, uint32_t reg, uint32_t value)
{
    if (c->cpu.now_ps < myri_hw_now(c->hw))
        c->cpu.now_ps = myri_hw_now(c->hw);
    c->cpu.store(&c->cpu, reg, value);
}

#endif
