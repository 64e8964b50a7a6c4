/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits.h - looking into links before a server sleeps in poll, select or epoll_wait. A wait collects those of its
 * descriptors that are transports of ours; the calls that wait for them are in wait_calls.c. */
#ifndef RNL_RPC_WAITS_H
#define RNL_RPC_WAITS_H

#include "host.h"
#include "server.h"

enum { RNL_RPC_WATCHED_MAX = 128 }; /* those beyond ring for each record, which the loop sees without our help */

struct rnl_rpc_watched {
    struct rnl_rpc_server *server;
    size_t index; /* the caller's */
    bool ready;   /* a call is there, or the client is gone */
};
struct rnl_rpc_set {
    struct rnl_rpc_watched of[RNL_RPC_WATCHED_MAX];
    unsigned count;
};

enum rnl_rpc_found {
    RNL_RPC_FOUND,  /* members are ready */
    RNL_RPC_OTHERS, /* the other descriptors are due for a look; then call again */
    RNL_RPC_NOTHING /* it is time to sleep */
};

static inline void rnl_rpc_set_add(struct rnl_rpc_set *set, struct rnl_rpc_server *s, size_t index)
{
    if (set->count < RNL_RPC_WATCHED_MAX)
        set->of[set->count++] = (struct rnl_rpc_watched){s, index, false};
}
/* Marks the members that are ready, and returns how many. */
unsigned rnl_rpc_set_look(struct rnl_rpc_set *);
/* Looks at once, then again and again for at most limit_ns, or as long as looking makes sense. `spinner` is all zero
 * at the first call of a wait. */
enum rnl_rpc_found rnl_rpc_set_spin(struct rnl_rpc_set *, struct rnl_rpc_spinner *spinner, uint64_t limit_ns);
/* Lets every member ring, and looks once more. Returns how many are ready. *sure becomes false if a ring may be
 * missed, so that the sleep has to be short. */
unsigned rnl_rpc_set_arm(struct rnl_rpc_set *, bool *sure);

#endif
