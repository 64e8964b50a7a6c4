/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window.h - what folders above need of windows: to give them to a new endpoint. */
#ifndef RNL_WINDOW_WINDOW_H
#define RNL_WINDOW_WINDOW_H

#include "base/iface.h"

struct rnl_endpoint;

/* Lets a new endpoint have windows. They cost it nothing until the first call of runnel/window.h, or until a peer asks
 * for one. */
void rnl_window_attach(struct rnl_endpoint *ep);

extern const struct rnl_iface rnl_window_iface; /* for its counters */

#endif
