/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit.h - the limit of file sizes, which memory files are held to as well. Who crosses it is killed by SIGXFSZ unless
 * the program has arranged otherwise, and that is not the library's to arrange: so it asks first. */
#ifndef RNL_BASE_LIMIT_H
#define RNL_BASE_LIMIT_H

#include <stddef.h>
#include <sys/resource.h>

/* May this process make a file of so many bytes? */
static inline int rnl_limit_allows_file(size_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

#endif
