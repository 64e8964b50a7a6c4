/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bug.c - looks up which named bug a test has switched on. Empty in builds that have no planted bugs. */
#include "base/bug.h"

#if defined(RNL_BUGS) && RNL_BUGS
#include <stdlib.h>
#include <string.h>

bool rnl_bug_is(const char *name)
{
    const char *wanted = getenv("RNL_BUG");
    return wanted && strcmp(wanted, name) == 0;
}
#else
typedef int rnl_bug_none; /* ISO C requires a declaration in each translation unit. */
#endif
