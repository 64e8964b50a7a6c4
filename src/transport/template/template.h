/* SPDX-License-Identifier: BSD-3-Clause
 *
 * template.h - the least that is a transport: packets to oneself, through an array. To copy when you write a real one;
 * README.md beside it is the form to fill in. Built by the tests only. */
#ifndef RNL_TRANSPORT_TEMPLATE_TEMPLATE_H
#define RNL_TRANSPORT_TEMPLATE_TEMPLATE_H

#include "transport/contract.h"

enum { RNL_TEMPLATE_MTU = 1500, RNL_TEMPLATE_LANES = 3, RNL_TEMPLATE_SLOTS = 32 };

/* env stays the caller's and must outlive the transport. 0, RNL_ERR_NO_MEMORY. */
int rnl_template_transport_new(struct rnl_env *env, struct rnl_transport **out);

#endif
