/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface.c - registers groups as an interface (base/iface.h): counters and `runnel info`. All else hangs from the
 * endpoint. */
#include "api/group/group.h"

static void abandon(struct rnl_endpoint *ep)
{
    for (uint32_t i = 0; i < ep->fast.handlers; i++)
        if (ep->fast.handler[i].stream == rnl_group_take)
            rnl_group_free(ep->fast.handler[i].ctx);
}

static const struct rnl_counter_text counters[] = {
    [RNL_GROUP_SENT] = {"sent", "messages that this rank sent to groups"},
    [RNL_GROUP_DELIVERED] = {"delivered", "messages of groups that were delivered here"},
    [RNL_GROUP_VIEWS] = {"views", "views of groups that were delivered here"},
    [RNL_GROUP_WAITS] = {"waits", "waits of sends to groups for members that have not taken in enough"},
    [RNL_GROUP_COUNTERS] = {NULL, NULL},
};
static const struct rnl_iface_row info[] = {
    {"interface", "groups", 0, "runnel/group.h"},
    {"message", NULL, RNL_GROUP_MESSAGE_MAX, "bytes at most"},
    {"members", NULL, RNL_GROUP_MEMBERS_MAX, "at most"},
    {NULL, NULL, 0, NULL},
};

const struct rnl_iface rnl_group_iface = {
    .name = "Group",
    .abandon = abandon,
    .counters = counters,
    .info = info,
};
