/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bus.c - the I/O bus of a host: stores and loads of its processor, and the DMA engine of its card, one at a time.
 * A transfer runs in bursts. Whoever comes while one runs waits for its end, then goes first, and the transfer ends
 * that much later; before its first burst a transfer waits for whoever is on the bus. One that has come to its limit
 * leaves the bus, and goes on without another set-up: an assumption, as no paper says what that takes. */
#include "base/bug.h"
#include "sim/myrinet/os/process.h"

#include <string.h>

static void show_bursts(struct myri_card *c, uint64_t to)
{
    uint64_t from = c->dma.shown_ps > c->dma.from_ps ? c->dma.shown_ps : c->dma.from_ps;
    myri_hw_trace(c->hw, c->id, MYRI_LANE_BUS, from, to, c->dma.direction == TO_HOST ? "to host" : "from host", 0);
}

/* The engine's bytes come to a halt between two bursts. */
static void pause_engine(struct myri_card *c, uint64_t from, uint64_t ps)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->dma.pauses; i++)
        if (c->dma.pause[i].to_ps > myri_hw_now(c->hw))
            c->dma.pause[kept++] = c->dma.pause[i];
    if (kept == MYRI_HW_PAUSES)
        kept--; /* more than a host has tasks: its marks tell of less than there is */
    c->dma.pause[kept].from_ps = from;
    c->dma.pause[kept].to_ps = from + ps;
    c->dma.pauses = kept + 1;
}

/* From when on the processor has the bus for this long. */
static uint64_t take_bus(struct myri_host *h, uint64_t now, uint64_t ps)
{
    struct myri_card *c = &h->hw->card[h->id];
    uint64_t at = now > h->bus_free_ps ? now : h->bus_free_ps;
    if (rnl_sim_scheduled(&c->dma.done) && at < c->dma.to_ps) {
        uint64_t late = 0;
        if (at >= c->dma.from_ps) {
            uint64_t since = at > c->dma.burst_ps ? at - c->dma.burst_ps : 0;
            uint64_t bursts = (since + h->hw->t.burst - 1) / h->hw->t.burst;
            at = c->dma.burst_ps + (bursts ? bursts : 1) * h->hw->t.burst; /* one at least between two of ours */
            if (at >= c->dma.to_ps) {
                at = c->dma.to_ps;
            } else {
                late = ps;
                c->dma.burst_ps = at + ps;
                pause_engine(c, at, ps);
                show_bursts(c, at);
                c->dma.shown_ps = at + ps;
            }
        } else if (at + ps > c->dma.from_ps) {
            late = at + ps - c->dma.from_ps;
            c->dma.from_ps += late;
            c->dma.burst_ps = c->dma.from_ps;
            rnl_sim_at(h->hw->sim, &c->dma.begin, c->dma.from_ps);
        }
        c->dma.to_ps += late;
        if (late)
            rnl_sim_at(h->hw->sim, &c->dma.done, c->dma.to_ps);
    }
    h->bus_free_ps = at + ps;
    return at;
}

static void wait_until(struct myri_task *t, uint64_t at)
{
    while (myri_hw_now(t->host->hw) < at)
        rnl_sim_park_until(&t->coro, at);
}

/* Only when the cycle has done what it is for: the processor may now be another's, or a signal's handler may run. */
static void account(struct myri_task *t)
{
    if (t->process)
        myri_process_account(t->process);
}

static int allowed(struct myri_task *t, uint32_t at, uint32_t words)
{
    if (!(at & 3) && at >= t->map_from && at < t->map_to && words <= (t->map_to - at) / 4)
        return 1;
    t->host->hw->count.refused++;
    return 0;
}

static void arrive(struct myri_task *t, uint32_t at, const uint32_t *words, uint32_t n)
{
    struct myri_card *c = &t->host->hw->card[t->host->id];
    myri_card_wake(c, myri_hw_now(t->host->hw));
    for (uint32_t i = 0; i < n; i++)
        c->cpu.sram[(at >> 2) + i] = words[i];
}

static int put_words(struct myri_task *t, uint32_t at, const uint32_t *words, uint32_t n, uint32_t group, uint64_t each)
{
    struct myri_hw *hw = t->host->hw;
    uint64_t from = myri_hw_now(hw);
    if (!allowed(t, at, n))
        return -1;
    for (uint32_t i = 0; i < n; i += group) {
        uint32_t k = n - i < group ? n - i : group;
        uint64_t at_bus = take_bus(t->host, myri_hw_now(hw), each);
        myri_hw_trace(hw, t->host->id, MYRI_LANE_BUS, at_bus, at_bus + each, "store", 4 * k);
        wait_until(t, at_bus + each);
        arrive(t, at + 4 * i, words + i, k);
        hw->count.stores++;
        hw->count.bytes_stored += 4 * k;
        account(t);
    }
    myri_hw_trace(hw, t->host->id, MYRI_LANE_HOST, from, myri_hw_now(hw), "store", 4 * n);
    return 0;
}

int myri_task_store_words(struct myri_task *t, uint32_t at, const uint32_t *words, uint32_t n)
{
    uint32_t group = (uint32_t)t->host->hw->machine.v[MYRI_M_store_bytes] / 4;
    return put_words(t, at, words, n, group, t->host->hw->t.store);
}

int myri_task_store(struct myri_task *t, uint32_t at, uint32_t value)
{
    return put_words(t, at, &value, 1, 1, t->host->hw->t.store);
}

int myri_task_combine(struct myri_task *t, uint32_t at, const uint32_t *words, uint32_t n)
{
    enum { LINE = 32 / 4 };
    if (t->host->hw->t.combined == 0)
        return myri_task_store_words(t, at, words, n);
    return put_words(t, at, words, n, LINE, t->host->hw->t.combined);
}

int myri_task_load(struct myri_task *t, uint32_t at, uint32_t *out)
{
    struct myri_hw *hw = t->host->hw;
    uint64_t from = myri_hw_now(hw);
    if (!allowed(t, at, 1))
        return -1;
    int entered = myri_task_enters(t, "myri_task_load", at, 0);
    uint64_t at_bus = take_bus(t->host, from, hw->t.load);
    myri_hw_trace(hw, t->host->id, MYRI_LANE_BUS, at_bus, at_bus + hw->t.load, "load", 4);
    wait_until(t, at_bus + hw->t.load);
    myri_card_wake(&hw->card[t->host->id], myri_hw_now(hw));
    *out = myri_card_peek(&hw->card[t->host->id], at);
    hw->count.loads++;
    account(t);
    myri_hw_trace(hw, t->host->id, MYRI_LANE_HOST, from, myri_hw_now(hw), "load", 4);
    myri_task_leaves(t, entered);
    return 0;
}

void myri_task_enable(struct myri_task *t, uint32_t mask)
{
    struct myri_hw *hw = t->host->hw;
    uint64_t at_bus = take_bus(t->host, myri_hw_now(hw), hw->t.store);
    myri_hw_trace(hw, t->host->id, MYRI_LANE_BUS, at_bus, at_bus + hw->t.store, "store", 4);
    wait_until(t, at_bus + hw->t.store);
    myri_card_wake(&hw->card[t->host->id], myri_hw_now(hw));
    myri_card_enable(&hw->card[t->host->id], mask);
    hw->count.stores++;
    hw->count.bytes_stored += 4;
    account(t);
}

void myri_task_restart(struct myri_task *t)
{
    struct myri_hw *hw = t->host->hw;
    uint64_t at_bus = take_bus(t->host, myri_hw_now(hw), hw->t.store);
    myri_hw_trace(hw, t->host->id, MYRI_LANE_BUS, at_bus, at_bus + hw->t.store, "store", 4);
    wait_until(t, at_bus + hw->t.store);
    myri_card_restart(&hw->card[t->host->id]);
    hw->count.stores++;
    hw->count.bytes_stored += 4;
    account(t);
}

static int await(struct myri_task *t, uint32_t at, uint32_t wanted, int counter, uint32_t *out)
{
    for (;;) {
        uint32_t is = 0;
        if (t->host->hw->fault[0] || myri_task_load(t, at, &is) < 0)
            return -1;
        if (counter ? (int32_t)(is - wanted) >= 0 : is == wanted) {
            *out = is;
            return 0;
        }
        myri_task_spend(t, myri_machine_us(&t->host->hw->machine, MYRI_M_look_pause), "pause");
    }
}

int myri_task_await(struct myri_task *t, uint32_t at, uint32_t wanted, int counter, uint32_t *out)
{
    int entered = myri_task_enters(t, "myri_task_await", at, 0), rc = await(t, at, wanted, counter, out);
    myri_task_leaves(t, entered);
    return rc;
}

/* ---- the card's engine ---- */

static void dma_begins(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    myri_card_wake(c, rnl_sim_now(sim));
    c->dma.moving = 1;
    myri_card_share(c);
}

/* Before a transfer to the host: does it end a place of the host's ring that has not been taken yet? */
static int overruns(struct myri_host *h, uint32_t host, uint32_t n)
{
    uint32_t place = host + n - 4 - h->ring.flag;
    if (n < 4 || host + n - 4 < h->ring.flag || place % h->ring.stride || place / h->ring.stride >= h->ring.count ||
        myri_host_word(h, host + n - 4) == 0)
        return 0;
    myri_hw_fault(
        h->hw,
        "node %u: its ring is overrun: a packet comes to place %u of %u, where the last one has not been taken; "
        "send fewer without an answer (--count)",
        h->id, place / h->ring.stride, h->ring.count);
    return 1;
}

static void shown(struct myri_card *c, uint64_t now)
{
    const char *way = c->dma.direction == TO_HOST ? "to host" : "from host";
    show_bursts(c, now);
    c->dma.shown_ps = now;
    myri_hw_trace(c->hw, c->id, MYRI_LANE_DMA, c->dma.asked_ps, c->dma.from_ps, c->dma.base ? "limit" : "set-up", 0);
    myri_hw_trace(c->hw, c->id, MYRI_LANE_DMA, c->dma.from_ps, now, way, c->dma.reach - c->dma.base);
}

static void dma_done(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    struct myri_host *h = &hw->host[e->entity];
    uint64_t now = rnl_sim_now(sim);
    uint32_t n = c->dma.n;
    myri_card_wake(c, now);
    int from_host = c->dma.direction == FROM_HOST,
        same = from_host && memcmp(h->memory + c->dma.host, c->dma.snapshot, n) == 0;
    for (uint32_t i = 0; i < n && from_host && !same; i++) {
        int table = h->pins[(c->dma.host + i) / hw->page] == MYRI_PIN_TABLE;
        if (h->memory[c->dma.host + i] != c->dma.snapshot[i] && !table) {
            myri_hw_fault(hw, "node %u: byte %u of %u changed in its buffer while it crossed the I/O bus", c->id, i, n);
            return;
        }
    }
    myri_card_settle(c, now);
    if (hw->fault[0])
        return;
    c->dma.moving = 0;
    if (c->dma.reach < n) {
        c->dma.stalled = 1;
        shown(c, now);
        c->dma.asked_ps = now;
        myri_card_share(c);
        return;
    }
    if (c->dma.direction == TO_HOST) {
        if (h->ring.count && overruns(h, c->dma.host, n))
            return;
        memcpy(h->memory + c->dma.host, c->dma.snapshot, n);
        hw->count.dma_to_host += n;
    } else {
        hw->count.dma_from_host += n;
    }
    c->status |= HDONE;
    c->reg[HMARK] = n;
    myri_card_share(c);
    shown(c, now);
    if (c->dma.direction == TO_HOST)
        myri_host_written(h, c->dma.host, n);
}

int myri_bus_dma(struct myri_card *c, uint64_t at)
{
    struct myri_hw *hw = c->hw;
    struct myri_host *h = &hw->host[c->id];
    uint32_t limit = c->dma.limit, reach;
    uint32_t space = c->reg[EAR] >> 24, host = c->reg[EAR] & (MYRI_HW_MEMORY - 1), sram = c->reg[LAR], n = c->reg[CTR];
    if (!space)
        host = c->reg[EAR];
    if (!(c->status & HDONE)) {
        myri_hw_fault(hw, "node %u starts its host DMA engine while it works", c->id);
        return -1;
    }
    if (n == 0 || n > c->cpu.sram_bytes || sram < c->cpu.code_end || sram > c->cpu.sram_bytes - n ||
        (uint64_t)host + n > MYRI_HW_MEMORY) {
        myri_hw_fault(hw, "node %u: a DMA of %u bytes between host address %u and SRAM address %u leaves one of them",
                      c->id, n, host, sram);
        return -1;
    }
    for (uint32_t page = host / hw->page; page <= (host + n - 1) / hw->page; page++)
        if (!h->pins[page] && !RNL_BUG(myrinet_pins_unchecked)) {
            myri_hw_fault(hw, "node %u: a DMA of %u bytes %s host address %u; its page %u is not pinned", c->id, n,
                          c->reg[DIR] == TO_HOST ? "to" : "from", host, page);
            return -1;
        }
    for (uint32_t page = host / hw->page; page <= (host + n - 1) / hw->page; page++)
        if (space && h->owner[page] != space && !RNL_BUG(myrinet_owners_unchecked)) {
            myri_hw_fault(hw, "node %u: a DMA of %u bytes for space %u %s host address %u; its page %u is of space %u",
                          c->id, n, space, c->reg[DIR] == TO_HOST ? "to" : "from", host, page, h->owner[page]);
            return -1;
        }
    c->dma.limit = 0;
    if (!myri_card_limited(c, limit, sram, n, "host DMA"))
        return -1;
    reach = limit ? limit - sram : n;
    if (reach < n && c->reg[DIR] != TO_HOST) {
        myri_hw_fault(hw, "node %u sets a limit for a transfer from its host, whose bytes are all there", c->id);
        return -1;
    }
    if (c->reg[DIR] == TO_HOST && !myri_card_there(c, sram, sram + reach, "a transfer"))
        return -1;
    c->dma.host = host;
    c->dma.sram = sram;
    c->dma.n = n;
    c->dma.direction = c->reg[DIR];
    c->dma.reach = reach;
    c->dma.base = c->dma.settled = c->dma.pauses = 0;
    c->dma.stalled = 0;
    c->reg[HMARK] = 0;
    if (c->dma.direction == TO_HOST)
        myri_lanai_read(&c->cpu, sram, c->dma.snapshot, reach);
    else
        memcpy(c->dma.snapshot, h->memory + host, reach);
    rnl_sim_event_init(&c->dma.begin, dma_begins, c->id);
    rnl_sim_event_init(&c->dma.done, dma_done, c->id);
    c->dma.asked_ps = at;
    at += hw->t.dma_start;
    c->dma.from_ps = (at > h->bus_free_ps ? at : h->bus_free_ps) +
                     hw->t.dma_setup[c->dma.direction == TO_HOST ? TO_HOST : FROM_HOST];
    c->dma.burst_ps = c->dma.from_ps;
    c->dma.to_ps = c->dma.from_ps + myri_machine_bytes(&hw->machine, MYRI_M_dma_rate, reach);
    rnl_sim_at(hw->sim, &c->dma.begin, c->dma.from_ps);
    rnl_sim_at(hw->sim, &c->dma.done, c->dma.to_ps);
    return 0;
}

void myri_bus_move_limit(struct myri_card *c, uint32_t reach, uint64_t at)
{
    struct myri_hw *hw = c->hw;
    struct myri_host *h = &hw->host[c->id];
    uint64_t more = myri_machine_bytes(&hw->machine, MYRI_M_dma_rate, reach - c->dma.reach);
    if (reach == c->dma.reach)
        return;
    myri_lanai_read(&c->cpu, c->dma.sram + c->dma.reach, c->dma.snapshot + c->dma.reach, reach - c->dma.reach);
    if (c->dma.stalled) {
        c->dma.stalled = 0;
        c->dma.pauses = 0;
        c->dma.base = c->dma.reach;
        c->dma.from_ps = c->dma.burst_ps = at > h->bus_free_ps ? at : h->bus_free_ps;
        c->dma.to_ps = c->dma.from_ps;
        rnl_sim_at(hw->sim, &c->dma.begin, c->dma.from_ps);
    }
    c->dma.reach = reach;
    c->dma.to_ps += more;
    rnl_sim_at(hw->sim, &c->dma.done, c->dma.to_ps);
}
