/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange.c - rnl_open_exchange. It is a file of its own so that a program that only calls rnl_open does not link the
 * thread in which a fence runs. */
#include "open/open.h"
#include "pmix/pmix.h"

static int find_env(const struct rnl_options *opt, const void *exchange, struct rnl_env **out)
{
    return rnl_exchange_env(opt, exchange, out);
}

int rnl_open_exchange(rnl_endpoint **out, const struct rnl_options *opt, const struct rnl_exchange *x)
{
    return rnl_open_with(out, opt, find_env, x);
}
