/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - registers Active Messages as an interface (base/iface.h): its process state, counters and `runnel info`. */
#include "api/am/core.h"

static const struct rnl_counter_text counters[] = {
    [RNL_AM_RETURNED] = {"returned", "messages that could not be delivered and came back"},
    [RNL_AM_COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"interface", "AM-2", 0, "runnel/am.h"},
    {"arguments", NULL, RNL_AM_SHORT, "of 4 bytes, of a message"},
    {"medium message", NULL, RNL_AM_MEDIUM, "bytes"},
    {"handlers", NULL, RNL_AM_HANDLERS, "of an endpoint"},
    {NULL, NULL, 0, NULL},
};

const struct rnl_iface rnl_am_iface = {
    .name = "AM",
    .state = &rnl_am,
    .state_bytes = sizeof rnl_am,
    .abandon = rnl_am_drop,
    .counters = counters,
    .info = info,
};
