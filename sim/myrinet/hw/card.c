/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.c - the registers of the card, the sharing of its SRAM, and its idle loop.
 *
 * Idle turns. A program that waits reads the status again and again. If at two reads in a row all registers and flags
 * of the processor are equal, nothing was stored in between and no event reached the card, then the turn between them
 * repeats until an event does: whole turns are added up instead of executed. tests/myrinet compares both to the bit. A
 * turn that reads the mark of an engine that moves repeats none; one that stands begins to move in an event. */
#include "sim/myrinet/hw/hw.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { HALF_US = 500000 }; /* ps */

static void look_again(struct myri_card *c)
{
    c->turn.valid = 0;
    if (c->idle) {
        struct myri_hw *hw = c->hw;
        c->idle = 0;
        c->busy_from_ps = c->cpu.now_ps;
        if (!rnl_sim_scheduled(&hw->processors) || rnl_sim_when(hw->sim, &hw->processors) > c->cpu.now_ps)
            rnl_sim_at(hw->sim, &hw->processors, c->cpu.now_ps);
    }
}

/* The SRAM has so many accesses in a cycle. The host DMA engine takes what the bus brings, packets that leave and come
 * share the rest alike, and the processor has what is left, never less than a quarter of an access per cycle (which is
 * not taken from the engines). That quarter, and who goes first, are assumptions: no paper says it of this card. */
void myri_card_share(struct myri_card *c)
{
    const double *v = c->hw->machine.v;
    double all = v[MYRI_M_sram_accesses], one_rate = 4 * v[MYRI_M_ni_clock]; /* MB/s of one access per cycle */
    double cycle = 1e6 / v[MYRI_M_ni_clock] * v[MYRI_M_ni_time] * v[MYRI_M_ni_instruction], one = cycle, two = cycle;
    uint64_t speed = 1000000;
    if (all > 0) {
        const double kept = 0.25;
        double left = all - (c->dma.moving ? v[MYRI_M_dma_rate] / one_rate : 0), link = v[MYRI_M_link_rate] / one_rate;
        int packets = c->send.moving + (c->port.flowing && !c->port.stalled);
        double each = packets ? left / packets : link;
        if (each < link)
            speed = each > 0 ? (uint64_t)(1e6 * each / link) : 0;
        if (speed < 10000) /* a fast bus alone may take everything: packets crawl, but do not stop */
            speed = 10000;
        left -= packets * (each < link ? each : link);
        if (left < kept)
            left = kept;
        /* an instruction of several cycles spreads its accesses over them */
        double per_cycle = left * v[MYRI_M_ni_instruction];
        if (per_cycle < 1)
            one = cycle / per_cycle;
        if (per_cycle < 2)
            two = 2 * cycle / per_cycle;
    }
    c->cpu.step1_ps = (uint32_t)(one + 0.5);
    c->cpu.step2_ps = (uint32_t)(two + 0.5);
    c->net_speed = speed;
    myri_net_pace(c);
}

static uint32_t flags_of(const struct myri_lanai *m)
{
    return m->zero | m->negative << 1 | m->overflow << 2 | m->carry << 3 | m->delay << 4;
}

static void at_status(struct myri_card *c)
{
    struct myri_lanai *m = &c->cpu;
    if (c->idle) /* being brought up to an event: myri_card_wake */
        return;
    if (c->turn.valid && c->turn.status == c->status && c->turn.flags == flags_of(m) && c->turn.stores == m->stores &&
        c->turn.waited == m->waited && memcmp(c->turn.r, m->r, sizeof m->r) == 0) {
        if (!c->hw->no_skip) {
            c->idle = 1;
            c->period.ps = m->now_ps - c->turn.at_ps;
            c->period.instructions = m->instructions - c->turn.instructions;
            c->period.stalls = m->stalls - c->turn.stalls;
            c->period.accesses = m->accesses - c->turn.accesses;
            if (!c->hw->parts)
                myri_hw_trace(c->hw, c->id, MYRI_LANE_FIRMWARE, c->busy_from_ps, c->turn.at_ps, "firmware", 0);
            m->stop = 1;
            return;
        }
    }
    c->turn.valid = 1;
    c->turn.status = c->status;
    c->turn.flags = flags_of(m);
    memcpy(c->turn.r, m->r, sizeof m->r);
    c->turn.stores = m->stores;
    c->turn.waited = m->waited;
    c->turn.instructions = m->instructions;
    c->turn.stalls = m->stalls;
    c->turn.accesses = m->accesses;
    c->turn.at_ps = m->now_ps;
}

void myri_card_wake(struct myri_card *c, uint64_t at)
{
    struct myri_lanai *m = &c->cpu;
    if (c->idle && m->now_ps < at) {
        uint64_t turns = (at - m->now_ps) / c->period.ps, from = m->now_ps;
        m->now_ps += turns * c->period.ps;
        if (turns)
            myri_card_turn(c, from, m->now_ps);
        m->instructions += turns * c->period.instructions;
        m->stalls += turns * c->period.stalls;
        m->accesses += turns * c->period.accesses;
        c->began.instructions += turns * c->period.instructions;
        c->skipped += turns * c->period.instructions;
        if (myri_lanai_run(m, at) < 0)
            myri_card_fault(c);
    }
    look_again(c);
}

void myri_card_pause(struct myri_card *c, uint64_t ps)
{
    myri_card_wake(c, myri_hw_now(c->hw));
    myri_card_turn(c, c->cpu.now_ps, c->cpu.now_ps + ps);
    c->cpu.now_ps += ps;
}

void myri_card_restart(struct myri_card *c)
{
    myri_card_wake(c, myri_hw_now(c->hw));
    if (c->cpu.now_ps < myri_hw_now(c->hw)) /* it is busy, and its turn to run comes behind this event */
        c->cpu.now_ps = myri_hw_now(c->hw);
    myri_lanai_restart(&c->cpu, myri_lanai_find(&c->cpu, "fw_main")->at);
}

/* ---- registers ---- */

/* What they have not done yet may slow this one's engines down: marks are read when they have. */
static int others_are_behind(const struct myri_card *c)
{
    for (uint32_t i = 0; i < c->hw->nodes; i++)
        if (!c->hw->card[i].idle && c->hw->card[i].cpu.now_ps < c->cpu.now_ps)
            return 1;
    return 0;
}

static uint32_t load(struct myri_lanai *m, uint32_t reg)
{
    struct myri_card *c = (struct myri_card *)m;
    switch (reg) {
    case ISR:
        myri_card_turn(c, m->now_ps, m->now_ps);
        if (m->stores != c->began.stores)
            c->worked += m->instructions - c->began.instructions;
        c->began.stores = m->stores;
        c->began.instructions = m->instructions;
        at_status(c);
        return c->status;
    case CLK:
        m->stores++; /* what it reads differs each time: this turn is none that repeats */
        return (uint32_t)(m->now_ps / HALF_US);
    case NODE:
        return c->id;
    case HMARK:
    case SMARK:
    case RMARK:
        if (c->hw->executing == c && others_are_behind(c)) {
            m->again = 1;
            return 0;
        }
        return myri_card_mark(c, reg, m->now_ps);
    default:
        return reg < NIC_REGISTERS ? c->reg[reg] : 0;
    }
}

/* The firmware has stored a limit: of the next start, or, while the engine works, moved forward. */
static void set_limit(struct myri_card *c, uint32_t reg, uint64_t at)
{
    int host = reg == HML;
    uint32_t value = c->reg[reg], base = host ? c->dma.sram : c->send.at, n = host ? c->dma.n : c->send.n,
             old = host ? c->dma.reach : c->send.reach;
    if (c->status & (uint32_t)(host ? HDONE : SDONE)) {
        *(host ? &c->dma.limit : &c->send.limit) = value;
        return;
    }
    if (value - base < old || value - base > n) {
        myri_hw_fault(c->hw, "node %u moves the limit of its %s to SRAM address %u; it can be from %u to %u", c->id,
                      host ? "host DMA" : "send engine", value, base + old, base + n);
        return;
    }
    if (!myri_card_there(c, base + old, value, host ? "a transfer" : "a packet"))
        return;
    if (host)
        myri_bus_move_limit(c, value - base, at);
    else
        myri_net_release(c, value - base, at);
}

int myri_card_limited(struct myri_card *c, uint32_t limit, uint32_t from, uint32_t n, const char *engine)
{
    if (!limit || limit - from <= n)
        return 1;
    myri_hw_fault(c->hw, "node %u starts its %s with a limit at SRAM address %u; it can be from %u to %u", c->id,
                  engine, limit, from, from + n);
    return 0;
}

static void start_send(struct myri_card *c, uint64_t at)
{
    uint32_t from = c->reg[SMP], n = c->reg[SMLT] - from, limit = c->send.limit;
    uint32_t reach = limit ? limit - from : n;
    struct myri_hw *hw = c->hw;
    c->send.limit = 0;
    if (!(c->status & SDONE)) {
        myri_hw_fault(hw, "node %u starts its send engine while it works", c->id);
        return;
    }
    if (n == 0 || n > MYRI_HW_PACKET || from >= c->cpu.sram_bytes || n > c->cpu.sram_bytes - from) {
        myri_hw_fault(hw, "node %u sends %u bytes from SRAM address %u: 1 to %d bytes within SRAM can be sent", c->id,
                      n, from, MYRI_HW_PACKET);
        return;
    }
    if (!myri_card_limited(c, limit, from, n, "send engine"))
        return;
    uint32_t to = c->reg[SRT] & 0xffff;
    if (!(c->reg[SRT] & ROUTE_VALID) || to >= hw->nodes || to == c->id) {
        myri_hw_fault(hw, "node %u sends along a route %08x, which leads nowhere", c->id, c->reg[SRT]);
        return;
    }
    struct myri_hw_packet *p = hw->free_packets;
    if (p)
        hw->free_packets = p->next;
    else if ((p = malloc(sizeof *p)) != NULL) {
        p->chain = hw->all_packets;
        hw->all_packets = p;
    } else {
        myri_hw_fault(hw, "no memory for a packet");
        return;
    }
    p->hw = hw;
    p->next = NULL;
    p->from = c->id;
    p->to = to;
    p->n = n;
    c->send.packet = p;
    c->send.at = from;
    c->send.n = n;
    c->send.from_ps = at;
    c->reg[SMARK] = 0;
    if (!myri_card_there(c, from, from + reach, "a packet"))
        return;
    myri_net_begin(c, reach);
    c->status &= ~(uint32_t)SDONE;
    rnl_sim_at(hw->sim, &c->send.enter, at + hw->t.send_start);
}

/* Bits that the firmware, or the host, lets through. */
static void interrupt_enabled(struct myri_card *c, uint64_t at)
{
    uint32_t now = c->irq_waits & c->reg[HIEN];
    c->irq_waits &= ~now;
    if (now)
        myri_host_interrupt(&c->hw->host[c->id], at, now);
}

void myri_card_enable(struct myri_card *c, uint32_t mask)
{
    c->reg[HIEN] = mask;
    interrupt_enabled(c, myri_hw_now(c->hw));
}

static void ran_down(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    myri_card_wake(c, rnl_sim_now(sim));
    c->status |= TIMER;
}

static void store(struct myri_lanai *m, uint32_t reg, uint32_t value)
{
    struct myri_card *c = (struct myri_card *)m;
    uint64_t at = m->now_ps + m->step1_ps;
    if (reg >= NIC_REGISTERS) {
        myri_hw_fault(c->hw, "node %u stores to register %u; there are %d", c->id, reg, NIC_REGISTERS);
        return;
    }
    c->reg[reg] = value;
    switch (reg) {
    case HML:
    case SML:
        set_limit(c, reg, at);
        break;
    case CTR:
        if (myri_bus_dma(c, at) == 0)
            c->status &= ~(uint32_t)HDONE;
        break;
    case SMLT:
        start_send(c, at);
        break;
    case RML:
        if (c->port.flowing)
            myri_hw_fault(c->hw, "node %u moves its room for a packet while one comes in", c->id);
        c->status &= ~(uint32_t)(RECV | CRCERR);
        c->reg[RMARK] = 0;
        c->port.open = 0; /* from the event on */
        rnl_sim_at(c->hw->sim, &c->port.arm, at);
        break;
    case HIRQ:
        c->irq_waits |= value;
        interrupt_enabled(c, at);
        break;
    case HIEN:
        interrupt_enabled(c, at);
        break;
    case TMR:
        c->status &= ~(uint32_t)TIMER;
        rnl_sim_cancel(c->hw->sim, &c->timer);
        if (value)
            rnl_sim_at(c->hw->sim, &c->timer, at + value * (uint64_t)HALF_US);
        break;
    default:
        return;
    }
    m->stop = 1; /* the next event may be nearer now */
}

int myri_card_init(struct myri_card *c, struct myri_hw *hw, uint32_t id, const void *object, size_t bytes)
{
    int rc = myri_lanai_load(&c->cpu, object, bytes);
    rc = rc < 0 ? rc : myri_lanai_limit(&c->cpu, 1024 * (uint32_t)hw->machine.v[MYRI_M_sram]);
    if (rc < 0)
        return rc;
    c->hw = hw;
    c->id = id;
    c->status = HDONE | SDONE;
    c->reg[HIEN] = ~0u;
    rnl_sim_event_init(&c->timer, ran_down, id);
    c->cpu.load = load;
    c->cpu.store = store;
    c->dma.snapshot = myri_memory_new(MYRI_LANAI_SRAM);
    c->send.snapshot = malloc(MYRI_HW_PACKET);
    if (!c->dma.snapshot || !c->send.snapshot)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the engines of a card");
    myri_net_init(c);
    myri_card_share(c);
    return 0;
}

void myri_card_fini(struct myri_card *c)
{
    myri_lanai_fini(&c->cpu);
    myri_memory_free(c->dma.snapshot, MYRI_LANAI_SRAM);
    free(c->send.snapshot);
}

void myri_card_poke(struct myri_card *c, uint32_t at, uint32_t value)
{
    c->cpu.sram[at >> 2] = value;
}

uint32_t myri_card_peek(const struct myri_card *c, uint32_t at)
{
    return c->cpu.sram[at >> 2];
}

void myri_card_poke_byte(struct myri_card *c, uint32_t at, uint8_t value)
{
    myri_lanai_set_byte(&c->cpu, at, value);
}
