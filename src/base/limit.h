/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit.h - the limit of file sizes, to which memory files are held as well. A process that exceeds it is killed by
 * SIGXFSZ unless the program has arranged otherwise. The library must not change that arrangement, so it asks first. */
#ifndef RNL_BASE_LIMIT_H
#define RNL_BASE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* Returns whether this process may make a file of so many bytes. */
static inline bool rnl_limit_allows_file(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

#endif
