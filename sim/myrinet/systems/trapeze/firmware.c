/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trapeze on the card: messages are cut through. One starts to leave when the host's transfer of its payload has been
 * started, and goes on with each look at that engine's mark; at the other end each transfer to the host moves what has
 * come until then, so these are the larger the more has piled up. With STORE, each stage waits for the end of the one
 * before it. Nothing is sent again; what finds no frame is dropped. */
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
    uint32_t status = nic_read(ISR), came = 0;
    if (RARELY(status & RECV) && l->open) /* first: what opens the port below knows of no packet yet */
        arrived(l, status);
    if (RARELY(l->engine != IDLE) && (status & HDONE))
        engine_is_done(l);
    send(l, status);
    if (l->engine != IDLE)
        return;
    if (CUT && !l->full)
        came = nic_read(RMARK);
    if (RARELY(l->full || came > 4))
        deliver(l, came);
    if (l->engine == IDLE && RARELY(l->fetch->posted) && l->begun - l->sent < TPZ_SENDS)
        look_for_message(l);
}

LOOP_OF_CARD(struct tpz_loop)
