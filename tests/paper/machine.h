/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.h - what the tests of the papers' machine set up: a machine by its name, hardware of two nodes with a
 * firmware that is built in, an experiment. */
#ifndef RNL_TESTS_PAPER_MACHINE_H
#define RNL_TESTS_PAPER_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runnel/runnel.h"
#include "sim/paper/data.h"
#include "sim/paper/experiments/run.h"

static inline struct rnl_machine machine(const char *name)
{
    struct rnl_machine m;
    assert_int_equal(rnl_machine_builtin(name, &m), 0);
    return m;
}

static inline struct rnl_experiment experiment(const char *system, const char *on, enum rnl_measure what,
                                               uint32_t bytes)
{
    struct rnl_experiment x;
    struct rnl_machine m = machine(on);
    rnl_experiment_init(&x, rnl_system_find(system), &m, what, bytes);
    return x;
}

static inline struct rnl_hw *new_hw(const char *on, const char *firmware)
{
    struct rnl_machine m = machine(on);
    struct rnl_hw *hw;
    const struct rnl_data *d = rnl_data_find(firmware);
    assert_non_null(d);
    assert_int_equal(rnl_hw_new(&m, 2, 1, d->bytes, d->n, &hw), 0);
    return hw;
}

#endif
