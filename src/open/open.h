/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open.h - what open's files share, and what the simulator sets of how an endpoint is opened. */
#ifndef RNL_OPEN_OPEN_H
#define RNL_OPEN_OPEN_H

#include "base/env.h"
#include "runnel/runnel.h"

/* Where it is not NULL, rnl_open gets its env from it and from nothing else. The simulator sets it, since its ranks are
 * copies of a program in one process. */
extern int (*rnl_open_virtual)(const struct rnl_options *opt, struct rnl_env **out);

/* Opens an endpoint on the env that `find` finds. It is called once the options have been checked. */
typedef int rnl_open_env(const struct rnl_options *opt, const void *arg, struct rnl_env **out);
int rnl_open_with(rnl_endpoint **out, const struct rnl_options *opt, rnl_open_env *find, const void *arg);

#endif
