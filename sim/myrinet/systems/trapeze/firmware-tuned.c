/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trapeze written again for speed alone: a turn that finds nothing looks at the status, at the mark of what comes in
 * and at one place, and what has been posted leaves, or begins to, in the turn that finds it. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/trapeze/layout.h"

volatile struct tpz_card card;

#ifdef STORE
enum { CUT = 0 };
#else
enum { CUT = 1 };
#endif
enum { IDLE, FETCH, PART, RECORD };
#include "sim/myrinet/systems/trapeze/stages.h"

FIRMWARE void step(struct tpz_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(status & RECV) && l->open) /* first: what opens the port below knows of no packet yet */
        arrived(l, status);
    if (RARELY(l->engine != IDLE) && (status & HDONE))
        engine_is_done(l);
    if (l->engine == IDLE) {
        uint32_t came = CUT && !l->full ? nic_read(RMARK) : 0;
        if (RARELY(l->full || came > 4))
            deliver(l, came);
        if (l->engine == IDLE && RARELY(l->fetch->posted) && l->begun - l->sent < TPZ_SENDS)
            look_for_message(l);
    }
    send(l, status);
}

LOOP_OF_CARD(struct tpz_loop)
