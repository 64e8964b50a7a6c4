/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bug.h - named bugs that the tests must find. RNL_BUG(name) is the constant false in every build except those
 * configured with -Dbugs=true, where it is true while the environment variable RNL_BUG holds that name. The files in
 * tests/bugs/list says which test has to fail for each name; one build serves them all. */
#ifndef RNL_BASE_BUG_H
#define RNL_BASE_BUG_H

#include <stdbool.h>

#if defined(RNL_BUGS) && RNL_BUGS
bool rnl_bug_is(const char *name);
#define RNL_BUG(name) rnl_bug_is(#name)
#else
#define RNL_BUG(name) false
#endif

#endif
