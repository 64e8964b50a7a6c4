/* SPDX-License-Identifier: BSD-3-Clause
 *
 * marks.c - how far the engines of a card have come, and limits that firmware moves: so what is still on its way in may
 * be on its way out already.
 *
 * Bytes get into the SRAM, and are compared with what they were when they were let out of it, no later than a mark that
 * tells of them is read, and at each event of an engine. What has left may be written again; what has not may not. A
 * limit may only be moved over bytes of which a mark, or the status, has told that they have come: when they would have
 * left does not matter. */
#include "sim/myrinet/hw/hw.h"

static int host_dma(const struct myri_card *c, uint32_t direction)
{
    return !(c->status & HDONE) && (c->dma.direction == TO_HOST) == (direction == TO_HOST);
}

static int comes_in(const struct myri_card *c)
{
    return c->port.flowing && !c->port.first->gone;
}

/* Bytes on the right side of the bus by this tick. */
static uint32_t moved(const struct myri_card *c, uint64_t at)
{
    if (c->dma.stalled || at >= c->dma.to_ps)
        return c->dma.reach;
    if (!c->dma.moving || at <= c->dma.from_ps)
        return c->dma.base;
    uint64_t left = c->dma.to_ps - at;
    for (uint32_t i = 0; i < c->dma.pauses; i++)
        if (c->dma.pause[i].to_ps > at) {
            uint64_t pause = c->dma.pause[i].to_ps - (c->dma.pause[i].from_ps > at ? c->dma.pause[i].from_ps : at);
            left -= pause < left ? pause : left;
        }
    uint32_t is = myri_machine_done(&c->hw->machine, MYRI_M_dma_rate,
                                    myri_machine_bytes(&c->hw->machine, MYRI_M_dma_rate, c->dma.reach), left);
    return is > c->dma.settled ? is : c->dma.settled;
}

/* What has flowed since it was looked at last. */
uint64_t myri_net_flowed(const struct myri_card *c, uint64_t now)
{
    const struct myri_hw_packet *p = c->port.first;
    uint64_t most = c->port.left_ps - (p->duration_ps - p->released_ps);
    uint64_t went = now > c->port.paced_ps ? (now - c->port.paced_ps) * c->port.speed / 1000000 : 0;
    return went < most ? went : most;
}

/* Bytes that have come, a receiver's start after they were here. */
static uint32_t came(const struct myri_card *c, uint64_t at)
{
    const struct myri_hw_packet *p = c->port.first;
    uint64_t start = c->hw->t.receive_start, left = c->port.left_ps;
    if (at >= c->port.paced_ps + start)
        left -= myri_net_flowed(c, at - start);
    else if (!c->port.stalled)
        left += (c->port.paced_ps + start - at) * c->port.speed / 1000000;
    uint32_t is = myri_machine_done(&c->hw->machine, MYRI_M_link_rate, p->duration_ps, left);
    is = is < p->n ? is : p->n;
    return is > c->port.settled ? is : c->port.settled;
}

/* Bytes that have left: a head's time before they come. */
static uint32_t left(const struct myri_card *c, uint64_t at)
{
    const struct myri_hw_packet *p = c->send.on;
    uint32_t is = 0;
    if (!p) { /* all of it is there, or it goes into the network's slack */
        if (c->send.moving)
            is = myri_machine_done(&c->hw->machine, MYRI_M_link_rate, at - c->send.entered_ps, 0);
        if (c->send.flowing || is > c->send.n)
            is = c->send.n;
    } else if (c->send.flowing) {
        const struct myri_card *to = &c->hw->card[c->send.to];
        uint64_t whole = p->duration_ps, most = whole - p->released_ps;
        uint64_t yet = to->port.left_ps - myri_net_flowed(to, at), ahead = c->hw->t.head * to->port.speed / 1000000;
        yet = yet > most + ahead ? yet - ahead : most;
        is = myri_machine_done(&c->hw->machine, MYRI_M_link_rate, whole,
                               c->send.moving || c->send.stalled ? yet : whole);
        is = is < c->send.n ? is : c->send.n;
    }
    return is > c->send.settled ? is : c->send.settled;
}

static void look_at_packet(struct myri_card *c, uint32_t reach)
{
    uint32_t is = c->send.settled;
    if (is >= reach)
        return;
    c->send.settled += myri_lanai_same(&c->cpu, c->send.at + is, c->send.snapshot + is, reach - is);
    if (c->send.settled < reach)
        myri_hw_fault(c->hw, "node %u: byte %u of a packet changed in its buffer while it was on the wire", c->id,
                      c->send.settled);
}

static void look_at_transfer(struct myri_card *c, uint32_t reach)
{
    uint32_t is = c->dma.settled;
    if (is >= reach)
        return;
    c->dma.settled += myri_lanai_same(&c->cpu, c->dma.sram + is, c->dma.snapshot + is, reach - is);
    if (c->dma.settled < reach)
        myri_hw_fault(c->hw, "node %u: byte %u of %u changed in its buffer while it crossed the I/O bus", c->id,
                      c->dma.settled, c->dma.n);
}

/* Bytes up to `reach` of what an engine brings, which begins at `base`, get into the SRAM. */
static void put(struct myri_card *c, uint32_t base, const uint8_t *bytes, uint32_t *settled, uint32_t reach)
{
    if (*settled >= reach)
        return;
    myri_lanai_write(&c->cpu, base + *settled, bytes + *settled, reach - *settled);
    *settled = reach;
}

void myri_card_settle(struct myri_card *c, uint64_t at)
{
    if (!(c->status & SDONE))
        look_at_packet(c, left(c, at));
    if (host_dma(c, TO_HOST))
        look_at_transfer(c, moved(c, at));
    if (host_dma(c, FROM_HOST))
        put(c, c->dma.sram, c->dma.snapshot, &c->dma.settled, moved(c, at));
    if (comes_in(c))
        put(c, c->reg[RMP], c->port.first->bytes, &c->port.settled, came(c, at));
}

uint32_t myri_card_mark(struct myri_card *c, uint32_t reg, uint64_t at)
{
    int works = reg == HMARK ? !(c->status & HDONE) : reg == SMARK ? !(c->status & SDONE) : comes_in(c);
    int moves = reg == HMARK ? c->dma.moving : reg == SMARK ? c->send.moving : !c->port.stalled;
    if (!works)
        return c->reg[reg];
    if (moves)
        c->turn.valid = 0; /* the next turn reads another mark */
    myri_card_settle(c, at);
    return reg == HMARK ? c->dma.settled : reg == SMARK ? c->send.settled : c->port.settled;
}

/* Are these bytes of the SRAM there, that an engine is let out? */
int myri_card_there(struct myri_card *c, uint32_t from, uint32_t to, const char *what)
{
    const struct {
        uint32_t from, to;
        const char *by;
    } missing[2] = {{c->dma.sram + c->dma.settled, c->dma.sram + c->dma.n, "host"},
                    {c->reg[RMP] + c->port.settled, comes_in(c) ? c->reg[RMP] + c->port.first->n : 0, "network"}};
    for (int i = 0; i < 2; i++) {
        uint32_t first = from > missing[i].from ? from : missing[i].from, end = to < missing[i].to ? to : missing[i].to;
        if (first < end && (i ? comes_in(c) : host_dma(c, FROM_HOST))) {
            myri_hw_fault(c->hw,
                          "node %u: SRAM address %u is let out as a byte of %s, and no mark has said that it has come "
                          "from the %s",
                          c->id, first, what, missing[i].by);
            return 0;
        }
    }
    return 1;
}
