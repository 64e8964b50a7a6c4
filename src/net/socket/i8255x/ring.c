/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.c - the two circles of blocks. Where QEMU's card differs from a real one, its cure is here, harmless on a real
 * card: it says that a frame has come before it is there, and its command unit stops after 16 blocks. */
#include "net/socket/i8255x/card_internal.h"

enum { KICK_EVERY = 15, SETTLED_LOOKS = 1000000, STUCK_LOOKS = 8 };

static uint32_t bus_of(const struct rnl_i8255x *c, const void *at)
{
    return (uint32_t)(c->bus + (uint64_t)((const uint8_t *)at - c->memory));
}

static struct rnl_i8255x_rx *rx_of(const struct rnl_i8255x *c, uint32_t i)
{
    return (void *)(c->memory + RNL_I8255X_AT_RX + (size_t)(i % RNL_I8255X_RX) * RNL_I8255X_SLOT);
}

static struct rnl_i8255x_tx *tx_of(const struct rnl_i8255x *c, uint32_t i)
{
    return (void *)(c->memory + RNL_I8255X_AT_TX + (size_t)(i % RNL_I8255X_TX) * RNL_I8255X_SLOT);
}

static bool is_done(volatile _Atomic uint16_t *status)
{
    return atomic_load_explicit(status, memory_order_acquire) & RNL_I8255X_DONE; /* pairs with the card's store */
}

/* ---- beginning ---- */

/* The first block does nothing and suspends the unit: from then on, resuming it is enough. */
static bool start_sending(struct rnl_i8255x *c)
{
    struct rnl_i8255x_tx *first = tx_of(c, 0);
    for (uint32_t i = 0; i < RNL_I8255X_TX; i++) {
        struct rnl_i8255x_tx *b = tx_of(c, i);
        b->link = bus_of(c, tx_of(c, i + 1));
        atomic_store_explicit(&b->command, RNL_I8255X_DO_NOTHING, memory_order_relaxed);
        atomic_store_explicit(&b->status, i ? RNL_I8255X_DONE : 0, memory_order_relaxed);
    }
    atomic_store_explicit(&first->command, RNL_I8255X_DO_NOTHING | RNL_I8255X_SUSPEND, memory_order_release);
    c->tx_next = 1;
    c->tx_posted = c->tx_watched = c->tx_looks = 0;
    c->tx_stuck = false;
    if (!rnl_i8255x_command_at(c, RNL_I8255X_CU_START, bus_of(c, first)))
        return false;
    for (uint32_t i = 0; i < SETTLED_LOOKS; i++)
        if (is_done(&first->status))
            return true;
    return false;
}

static bool start_receiving(struct rnl_i8255x *c)
{
    for (uint32_t i = 0; i < RNL_I8255X_RX; i++) {
        struct rnl_i8255x_rx *d = rx_of(c, i);
        d->link = bus_of(c, rx_of(c, i + 1));
        d->unused = UINT32_MAX;
        d->size = RNL_I8255X_SLOT - 16;
        atomic_store_explicit(&d->command, 0, memory_order_relaxed);
        atomic_store_explicit(&d->count, 0, memory_order_relaxed);
        atomic_store_explicit(&d->status, 0, memory_order_relaxed);
    }
    c->rx_next = c->rx_ready = 0;
    c->rx_ran_out = false;
    c->rx_tail = RNL_I8255X_RX - 2;
    atomic_store_explicit(&rx_of(c, c->rx_tail)->command, RNL_I8255X_END, memory_order_release);
    return rnl_i8255x_command_at(c, RNL_I8255X_RU_START, bus_of(c, rx_of(c, 0)));
}

bool rnl_i8255x_start(struct rnl_i8255x *c)
{
    return start_sending(c) && start_receiving(c);
}

/* ---- sending ---- */

uint8_t *rnl_i8255x_room(struct rnl_i8255x *c)
{
    struct rnl_i8255x_tx *b = tx_of(c, c->tx_next);
    return !c->gone && is_done(&b->status) ? b->frame : NULL;
}

void rnl_i8255x_post(struct rnl_i8255x *c, uint32_t bytes)
{
    struct rnl_i8255x_tx *b = tx_of(c, c->tx_next), *before = tx_of(c, c->tx_next - 1);
    b->array = UINT32_MAX;
    b->bytes = (uint16_t)(bytes | 0x8000);
    b->threshold = 0x1c; /* on the wire as soon as 224 bytes are in the card */
    atomic_store_explicit(&b->status, 0, memory_order_relaxed);
    atomic_store_explicit(&b->command, RNL_I8255X_DO_TRANSMIT | RNL_I8255X_SUSPEND, memory_order_release);
    /* Only now may the unit go on to it. It reads the word, and never writes it. */
    const uint16_t command = atomic_load_explicit(&before->command, memory_order_relaxed);
    atomic_store_explicit(&before->command, (uint16_t)(command & ~RNL_I8255X_SUSPEND), memory_order_release);
    c->tx_next++;
    if (++c->tx_posted == KICK_EVERY)
        rnl_i8255x_kick(c);
}

/* Only for new blocks: a unit that is suspended and resumed without one sends its old frames again. */
void rnl_i8255x_kick(struct rnl_i8255x *c)
{
    if (c->tx_posted && !c->gone)
        (void)rnl_i8255x_command(c, RNL_I8255X_CU_RESUME);
    c->tx_posted = 0;
}

/* ---- receiving ---- */

/* QEMU's card writes that it is done, then the length, then the frame, and holds a lock meanwhile for which a read of a
 * register waits. So one such read, for all frames that have come by then, makes them whole. */
static void wait_until_whole(const struct rnl_i8255x *c)
{
    (void)get8(c, RNL_I8255X_STATUS);
}

static uint32_t receiver_state(const struct rnl_i8255x *c)
{
    return get8(c, RNL_I8255X_STATUS) >> 2 & 15;
}

/* If the unit has stopped, it goes on where the next frame is read. All that had come is taken out. */
static void restart_receiving(struct rnl_i8255x *c)
{
    c->rx_ran_out = false;
    if (rnl_i8255x_is_gone(c) || receiver_state(c) == RNL_I8255X_RU_READY)
        return;
    c->rx_restarts++;
    (void)rnl_i8255x_command_at(c, RNL_I8255X_RU_START, bus_of(c, rx_of(c, c->rx_next)));
}

/* How many frames have come behind those that were taken out. */
static uint32_t come(const struct rnl_i8255x *c)
{
    uint32_t n = 0;
    while (n < RNL_I8255X_RX - 1 && is_done(&rx_of(c, c->rx_next + n)->status))
        n++;
    return n;
}

const uint8_t *rnl_i8255x_next(struct rnl_i8255x *c, uint32_t *bytes)
{
    if (c->gone)
        return NULL;
    if (c->rx_ready == c->rx_next) {
        const uint32_t n = come(c);
        if (n == 0 && c->rx_ran_out)
            restart_receiving(c);
        if (n == 0)
            return NULL;
        wait_until_whole(c);
        c->rx_ready = c->rx_next + n;
    }
    const struct rnl_i8255x_rx *d = rx_of(c, c->rx_next);
    const uint32_t says = atomic_load_explicit(&d->count, memory_order_acquire) & 0x3fff;
    *bytes = says <= sizeof d->frame ? says : 0;
    return d->frame;
}

/* The block two behind the new END is one that nobody writes: whatever the unit read before, it stops in time. If it
 * has filled the block with END, it has stopped: to see that costs a load, and what arrives until it is restarted is
 * lost. */
void rnl_i8255x_free(struct rnl_i8255x *c)
{
    struct rnl_i8255x_rx *tail = rx_of(c, c->rx_tail), *end = rx_of(c, c->rx_tail + 1);
    atomic_store_explicit(&end->status, 0, memory_order_relaxed);
    atomic_store_explicit(&end->count, 0, memory_order_relaxed);
    atomic_store_explicit(&end->command, RNL_I8255X_END, memory_order_release);
    atomic_store_explicit(&tail->command, 0, memory_order_release);
    c->rx_ran_out |= is_done(&tail->status);
    c->rx_next++;
    c->rx_tail++;
}

/* ---- units that have stopped ---- */

/* A card whose slot is about to lose its power is not master of the bus any more, and takes nothing out of memory. Of
 * one that sends slowly the oldest block is another one at each look, or at each second one. */
static void watch_sending(struct rnl_i8255x *c)
{
    const uint32_t before = c->tx_watched;
    if (c->tx_next - c->tx_watched > RNL_I8255X_TX)
        c->tx_watched = c->tx_next - RNL_I8255X_TX;
    while (c->tx_watched != c->tx_next && is_done(&tx_of(c, c->tx_watched)->status))
        c->tx_watched++;
    c->tx_looks = c->tx_watched == c->tx_next || c->tx_watched != before ? 0 : c->tx_looks + 1;
    c->tx_stuck = c->tx_looks >= STUCK_LOOKS;
}

void rnl_i8255x_restart(struct rnl_i8255x *c)
{
    if (c->rx_ready == c->rx_next && come(c) == 0)
        restart_receiving(c);
    rnl_i8255x_kick(c);
    if (!is_done(&tx_of(c, c->tx_next - 1)->status)) {
        c->tx_restarts++;
        (void)rnl_i8255x_command(c, RNL_I8255X_CU_RESUME);
    }
    watch_sending(c);
}
