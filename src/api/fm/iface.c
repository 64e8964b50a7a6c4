/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - registers Fast Messages as an interface (base/iface.h): its process state, counters and `runnel info`. */
#include "api/fm/process.h"

#include "runnel/fm.h"

struct rnl_fm rnl_fm = RNL_FM_NEW;

static const struct rnl_fm initial = RNL_FM_NEW;
static const struct rnl_counter_text counters[] = {
    [RNL_FM_ERRORS] = {"errors", "errors that FM_ERROR_HANDLER was called with"},
    [RNL_FM_COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"interfaces", "FM 2.x, FM 1.1", 0, "runnel/fm.h, runnel/fm1.h"},
    {"handlers", NULL, RNL_FM_HANDLERS, "FM_MAX_HANDLERS; at most 65536"},
    {"exit status", NULL, RNL_FM_EXIT_STATUS, "of the default error handler"},
    {NULL, NULL, 0, NULL},
};

const struct rnl_iface rnl_fm_iface = {
    .name = "FM",
    .state = &rnl_fm,
    .state_bytes = sizeof rnl_fm,
    .initial = &initial,
    .death_drops_handlers = true,
    .counters = counters,
    .info = info,
};
