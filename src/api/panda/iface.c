/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - registers Panda as an interface (base/iface.h): its process state, counters and `runnel info`. */
#include "api/panda/session.h"

/* The group hangs from the endpoint's handler table, and is freed by its own interface. */
static void abandon(struct rnl_endpoint *ep)
{
    struct rnl_panda *p = rnl_panda_process.session;
    if (!p || p->ep != ep)
        return;
    rnl_pan_free(p);
    rnl_panda_process.session = NULL;
}

static const struct rnl_counter_text counters[] = {
    [RNL_PAN_CALLS] = {"calls", "remote procedure calls of this rank"},
    [RNL_PAN_SERVED] = {"served", "requests whose upcall was made here"},
    [RNL_PAN_SENT] = {"sent", "messages that this rank sent to its group"},
    [RNL_PAN_DELIVERED] = {"delivered", "messages of the group whose upcall was made here"},
    [RNL_PAN_QUEUED] = {"queued", "upcalls that waited with a copy of their message"},
    [RNL_PAN_COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"interface", "Panda 4", 0, "runnel/panda.h"},
    {"header", NULL, RNL_PAN_PROTO_MAX, "bytes at most, with Panda's own"},
    {"ports", NULL, PAN_PORTS_MAX, "of the group, at most"},
    {NULL, NULL, 0, NULL},
};

const struct rnl_iface rnl_panda_iface = {
    .name = "Panda",
    .state = &rnl_panda_process,
    .state_bytes = sizeof rnl_panda_process,
    .abandon = abandon,
    .counters = counters,
    .info = info,
};
