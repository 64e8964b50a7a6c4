/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - what links need of the machine: clock, fence, and the rules of how long to look before sleeping. */
#ifndef RNL_RPC_HOST_H
#define RNL_RPC_HOST_H

#include "base/env.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    RNL_RPC_SPIN_NS = 50000,        /* how long to look before sleeping */
    RNL_RPC_DESCHEDULED_NS = 60000, /* who was away for longer has shared its processor with others */
    RNL_RPC_CROWDED_NS = 20000000,  /* and does not spin for up to so long, */
    RNL_RPC_ONCE_NS = 1000000,      /* but only for so long if it was an interrupt, or another virtual machine: */
    RNL_RPC_CALM_NS = 5000000,      /* it was, if so long had passed since the last such time was over */
    RNL_RPC_SAME_CPU_TURNS = 30     /* how often to give way to a peer that was last seen on this processor */
};

/* Learns what the machine has, and registers the process for membarrier; later calls do nothing. */
void rnl_rpc_host_begin(void);
extern struct rnl_env rnl_rpc_host; /* facts only; all zero before rnl_rpc_host_begin */

uint64_t rnl_rpc_now_ns(void);
uint32_t rnl_rpc_cpu(void); /* 1 + the processor this runs on */

/* Orders this process's stores before its later loads, as every process sees them that is registered for membarrier.
 * Returns false if the system could not: then sleep no longer than RNL_RPC_UNSURE_MS. */
enum { RNL_RPC_UNSURE_MS = 1 };
bool rnl_rpc_fence(void);

/* What a thread has noticed of how busy the machine is. A thread that spins where more want to run than there are
 * processors takes the time of the one it waits for. */
struct rnl_rpc_crowd {
    uint64_t until_ns; /* crowded until then */
    uint64_t for_ns;   /* how long the last such time was */
};
extern _Thread_local struct rnl_rpc_crowd rnl_rpc_crowd;

static inline bool rnl_rpc_is_crowded(const struct rnl_rpc_crowd *c, uint64_t now_ns)
{
    return now_ns < c->until_ns;
}

/* A wait of a thread, from its first look on. */
struct rnl_rpc_spinner {
    uint64_t began_ns, looked_ns;
    unsigned turns;
};
static inline void rnl_rpc_spinner_begin(struct rnl_rpc_spinner *p, uint64_t now_ns)
{
    *p = (struct rnl_rpc_spinner){now_ns, now_ns, 0};
}
/* Notes a look at now_ns. Returns true if the thread may go on looking, false if it shall sleep: it has looked for long
 * enough, or it was away since its last look, which makes the machine crowded. */
static inline bool rnl_rpc_spinner_look(struct rnl_rpc_spinner *p, struct rnl_rpc_crowd *c, uint64_t now_ns)
{
    if (now_ns - p->looked_ns > RNL_RPC_DESCHEDULED_NS) {
        uint64_t longer = (now_ns > c->until_ns + RNL_RPC_CALM_NS ? 0 : 2 * c->for_ns) + RNL_RPC_ONCE_NS;
        c->for_ns = longer < RNL_RPC_CROWDED_NS ? longer : RNL_RPC_CROWDED_NS;
        c->until_ns = now_ns + c->for_ns;
    }
    p->looked_ns = now_ns;
    return now_ns - p->began_ns <= RNL_RPC_SPIN_NS && !rnl_rpc_is_crowded(c, now_ns);
}

/* A turn of a spinning loop between two looks: pauses, reads the clock now and then, and now and then gives the
 * processor away. `same_cpu`: the peer was last seen on this processor, so only if this thread gives way can it
 * answer. Returns false if it is time to sleep. */
bool rnl_rpc_spin(struct rnl_rpc_spinner *, bool same_cpu);

/* Sleeps until fd is readable or `ms` have passed: a system call, since poll is interposed. Returns what ppoll does. */
int rnl_rpc_sleep_on(int fd, uint64_t ms);

#endif
