/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fence.c - fences over all hosts of a job: each brings bytes, and gets those of all, in the order of hosts. A host
 * that is lost, or whose ranks have all ended, is not waited for. */
#include "launcher/mpi/mpi.h"
#include "launcher/node.h"

int rnl_fence_receive(struct rnl_node *n, struct rnl_unpack *u)
{
    const uint32_t which = rnl_unpack_32(u);
    if (u->bad || which >= RNL_FENCES || n->fenced[which] || n->launcher->phase != RNL_LAUNCH_RUNNING)
        return -1;
    n->fenced[which] = true;
    rnl_pack_bytes(&n->fence[which], u->at, u->left);
    return 0;
}

static bool is_complete(const struct rnl_launcher *l, uint32_t which)
{
    bool any = false;
    for (uint32_t i = 0; i < l->hosts; i++) {
        const struct rnl_node *n = l->node[i];
        if (n->state < RNL_NODE_DONE && !n->fenced[which])
            return false;
        any |= n->fenced[which];
    }
    return any;
}

static void complete(struct rnl_launcher *l, uint32_t which)
{
    struct rnl_pack all = {.at = NULL};
    rnl_pack_bytes(&all, &which, sizeof which);
    for (uint32_t i = 0; i < l->hosts; i++) {
        struct rnl_node *n = l->node[i];
        all.failed |= n->fence[which].failed;
        rnl_pack_bytes(&all, n->fence[which].at, n->fence[which].bytes);
        rnl_pack_free(&n->fence[which]);
        n->fenced[which] = false;
    }
    if (all.failed || all.bytes > RNL_CONTROL_FRAME_MAX) {
        rnl_launcher_report(l, "the ranks exchange more at their start than there is room for: start fewer ranks");
        rnl_launcher_give_up(l, RNL_EXIT_SYSTEM);
    }
    for (uint32_t i = 0; i < l->hosts && l->phase == RNL_LAUNCH_RUNNING; i++)
        if (rnl_node_talks(l->node[i]))
            rnl_control_send_pack(&l->node[i]->control, RNL_CONTROL_FENCE, &all);
    rnl_pack_free(&all);
}

void rnl_fence_work(struct rnl_launcher *l)
{
    for (uint32_t which = 0; which < RNL_FENCES && l->phase == RNL_LAUNCH_RUNNING; which++)
        if (is_complete(l, which))
            complete(l, which);
}
