/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unit.h - cmocka, behind the headers that it needs before it and that every test uses. */
#ifndef RNL_TESTS_SUPPORT_UNIT_H
#define RNL_TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* not sorted in among them */

/* A case between the set_up and the tear_down of its file. */
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
