/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits.c - looking, arming. */
#include "waits.h"

#include "remote.h"

#include "base/error.h"

enum { HITS_A_TURN = 256, TURNS_OTHERS = 1024 };

unsigned rnl_rpc_set_look(struct rnl_rpc_set *set)
{
    unsigned ready = 0;
    if (RNL_UNLIKELY(atomic_load_explicit(&rnl_rpc_remote_links, memory_order_relaxed) != 0))
        rnl_rpc_remote_look(); /* for all of them at once: `here` does not */
    for (unsigned i = 0; i < set->count; i++) {
        struct rnl_rpc_watched *w = &set->of[i];
        struct rnl_rpc_link *link = w->server->link;
        w->ready = link->broken || link->ops->here(link);
        ready += w->ready;
    }
    return ready;
}

/* From here on the loop that asks looks by itself: nobody has to ring. */
static void disarm(struct rnl_rpc_set *set, bool crowded)
{
    for (unsigned i = 0; i < set->count; i++) {
        struct rnl_rpc_link *link = set->of[i].server->link;
        set->of[i].server->watched = true;
        if (link->armed == RNL_RPC_ARM_ONCE || (link->armed && !crowded))
            link->ops->arm(link, RNL_RPC_ARM_NONE);
    }
}

static bool only_remote(const struct rnl_rpc_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        if (!set->of[i].server->link->remote)
            return false;
    return true;
}

enum rnl_rpc_found rnl_rpc_set_spin(struct rnl_rpc_set *set, struct rnl_rpc_spinner *spinner, uint64_t limit_ns)
{
    static _Thread_local unsigned hits; /* in a row, without a look at the other descriptors */
    if (rnl_rpc_set_look(set)) {
        if (++hits < HITS_A_TURN)
            return RNL_RPC_FOUND;
        hits = 0;
        return RNL_RPC_NOTHING;
    }
    hits = 0;
    uint64_t now = rnl_rpc_now_ns();
    bool crowded = rnl_rpc_is_crowded(&rnl_rpc_crowd, now);
    if (!spinner->began_ns) {
        rnl_rpc_spinner_begin(spinner, now);
        disarm(set, crowded);
    }
    if (crowded || limit_ns == 0)
        return RNL_RPC_NOTHING;
    /* The only client waits for this processor. */
    bool same_cpu = set->count == 1 && set->of[0].server->link->peer_cpu == rnl_rpc_cpu();
    for (;;) {
        if (rnl_rpc_set_look(set))
            return RNL_RPC_FOUND;
        if (!rnl_rpc_spin(spinner, same_cpu) || spinner->looked_ns - spinner->began_ns > limit_ns) {
            if (only_remote(set)) /* looks in vain, each of which took system calls */
                rnl_rpc_crowd.until_ns = spinner->looked_ns + RNL_RPC_CROWDED_NS;
            return RNL_RPC_NOTHING;
        }
        if (spinner->turns % TURNS_OTHERS == 0)
            return RNL_RPC_OTHERS;
    }
}

unsigned rnl_rpc_set_arm(struct rnl_rpc_set *set, bool *sure)
{
    bool crowded = rnl_rpc_is_crowded(&rnl_rpc_crowd, rnl_rpc_now_ns()), fence = false;
    for (unsigned i = 0; i < set->count; i++) {
        struct rnl_rpc_link *link = set->of[i].server->link;
        link->ops->drain(link);
        if (crowded && link->armed == RNL_RPC_ARM_ALWAYS)
            continue; /* and was fenced then */
        link->ops->arm(link, crowded ? RNL_RPC_ARM_ALWAYS : RNL_RPC_ARM_ONCE);
        fence = true;
    }
    *sure = !fence || rnl_rpc_fence();
    return rnl_rpc_set_look(set);
}
