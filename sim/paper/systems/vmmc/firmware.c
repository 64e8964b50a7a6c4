/* SPDX-License-Identifier: BSD-3-Clause
 *
 * VMMC on the card (paper 002, section 4.5). Two packet buffers each way. The host DMA engine is shared by the chunks
 * of a long send, arrived packets, and completion words; an arrived packet goes first, so that the network drains.
 * While nothing arrives, a long send stays in its tight loop. */
#include "sim/paper/hw/nic.h"
#include "sim/paper/systems/vmmc/layout.h"

volatile struct vmmc_card card;

enum { IDLE, FETCHING, DELIVERING, REPORTING };
static uint32_t engine;

static volatile struct vmmc_request *head[VMMC_PROCESSES]; /* of each queue */
static uint32_t turn;                                      /* whose queue is looked at first */
static uint32_t fill;                                      /* the outgoing buffer that is filled next */

static volatile struct vmmc_request *request; /* the long send at work, or 0 */
static volatile struct vmmc_process *sender;
static uint32_t sender_index, left, address, proxy, fetched, chunk, chunk_route, waits_for_tlb;

static uint32_t room, second_at, second_bytes, notify; /* room: the incoming buffer that is open */

FIRMWARE void open_for_packet(void)
{
    nic_arm(SRAM_AT(card.in[room]), sizeof card.in[0]);
}

FIRMWARE volatile struct vmmc_request *after(volatile struct vmmc_process *p, volatile struct vmmc_request *e)
{
    return e + 1 == p->queue + VMMC_QUEUE ? p->queue : e + 1;
}

/* Proxy address to header and route; 0 when it is not imported. */
FIRMWARE uint32_t header(volatile struct vmmc_process *p, volatile uint32_t *h, uint32_t to, uint32_t bytes)
{
    uint32_t page = to >> 12, offset = to & (VMMC_PAGE - 1), second = 0;
    if (page >= VMMC_PAGES)
        return 0;
    uint32_t entry = p->outgoing[page];
    if (!(entry & VMMC_VALID))
        return 0;
    if (offset + bytes > VMMC_PAGE) {
        if (page + 1 >= VMMC_PAGES)
            return 0;
        uint32_t next = p->outgoing[page + 1];
        if ((next ^ entry) >> 20) /* not valid, or on another node */
            return 0;
        second = next << 12;
    }
    h[0] = bytes;
    h[1] = entry << 12 | offset;
    h[2] = second;
    return card.route[entry >> 20 & (VMMC_NODES - 1)];
}

/* 1: the translation is not there. */
FIRMWARE uint32_t translate(volatile struct vmmc_process *p, uint32_t virtual)
{
    uint32_t page = virtual >> 12, set = page & (VMMC_SETS - 1);
    if (p->tag[set][0] == page)
        return p->physical[set][0] | (virtual & (VMMC_PAGE - 1));
    if (p->tag[set][1] == page)
        return p->physical[set][1] | (virtual & (VMMC_PAGE - 1));
    return 1;
}

/* ---- arrivals ---- */

FIRMWARE void receive(uint32_t status)
{
    volatile uint32_t *h = card.in[room];
    uint32_t bytes = h[0], to = h[1], frame = to >> 12, fits = VMMC_PAGE - (to & (VMMC_PAGE - 1)), first = bytes;
    if (status & CRCERR) { /* detected, not recovered: section 4.2 */
        card.errors++;
        goto drop;
    }
    if (frame >= VMMC_FRAMES)
        goto refuse;
    notify = card.incoming[frame];
    if (!(notify & VMMC_MAY_WRITE) || bytes > VMMC_PAGE || !bytes || bytes + VMMC_HEADER != nic_read(RLEN))
        goto refuse;
    second_bytes = 0;
    if (bytes > fits) {
        second_at = h[2];
        uint32_t next = second_at >> 12;
        if (!second_at || next >= VMMC_FRAMES || !(card.incoming[next] & VMMC_MAY_WRITE))
            goto refuse;
        first = fits;
        second_bytes = bytes - fits;
    }
    nic_dma(to, SRAM_AT(h + VMMC_HEADER / 4), TO_HOST, first);
    engine = DELIVERING;
    if (notify & VMMC_NOTIFY)
        card.notified = frame;
    room ^= 1;
    open_for_packet();
    return;
refuse:
    card.refused++;
drop:
    open_for_packet();
}

FIRMWARE void delivered(void)
{
    if (second_bytes) {
        volatile uint32_t *h = card.in[room ^ 1];
        nic_dma(second_at, SRAM_AT(h + VMMC_HEADER / 4) + (h[0] - second_bytes), TO_HOST, second_bytes);
        second_bytes = 0;
        return;
    }
    engine = IDLE;
    if (notify & VMMC_NOTIFY)
        nic_write(HIRQ, VMMC_INTERRUPT_NOTIFY);
}

/* ---- long sends ---- */

FIRMWARE void end_request(void)
{
    request->bytes = 0;
    head[sender_index] = after(sender, request);
    request = 0;
}

/* Starts to fetch the next chunk, and makes its header meanwhile. */
FIRMWARE void fetch(void)
{
    uint32_t physical = translate(sender, address), fits = VMMC_PAGE - (address & (VMMC_PAGE - 1));
    volatile uint32_t *h = card.out[fill];
    if (physical & 1) {
        if (!waits_for_tlb) {
            card.missed = address;
            card.missing_process = sender_index;
            card.misses++;
            waits_for_tlb = 1;
            nic_write(HIRQ, VMMC_INTERRUPT_MISS);
        }
        return;
    }
    waits_for_tlb = 0;
    chunk = left < fits ? left : fits;
    nic_dma(physical, SRAM_AT(h + VMMC_HEADER / 4), FROM_HOST, chunk);
    engine = FETCHING;
    chunk_route = header(sender, h, proxy, chunk);
    address += chunk;
    proxy += chunk;
    left -= chunk;
}

/* A chunk is here and the wire is free: the next fetch first, then this one leaves. */
FIRMWARE void launch(void)
{
    volatile uint32_t *h = card.out[fill];
    uint32_t bytes = chunk, route = chunk_route;
    fetched = 0;
    if (!route) { /* not imported: nothing more of it is sent */
        card.errors++;
        left = 0;
    } else {
        fill ^= 1;
    }
    if (engine == IDLE) {
        if (left) {
            fetch();
        } else {
            sender->done++;
            nic_dma(sender->status_at, SRAM_AT(&sender->done), TO_HOST, 4);
            engine = REPORTING;
        }
    }
    if (route)
        nic_send(route, SRAM_AT(h), VMMC_HEADER + bytes);
    if (engine == REPORTING)
        end_request();
}

FIRMWARE void report(void)
{
    sender->done++;
    nic_dma(sender->status_at, SRAM_AT(&sender->done), TO_HOST, 4);
    engine = REPORTING;
    end_request();
}

/* The tight loop: nothing but this send, until something arrives. */
static void long_send(uint32_t status)
{
    do {
        if (engine != IDLE && engine != DELIVERING && (status & HDONE)) {
            if (engine == FETCHING)
                fetched = 1;
            engine = IDLE;
        }
        if (fetched) {
            if (status & SDONE)
                launch();
        } else if (engine == IDLE) {
            if (left)
                fetch();
            else
                report();
        }
        if (!request || engine == DELIVERING)
            return;
        status = nic_read(ISR);
    } while (!(status & RECV));
}

/* ---- requests ---- */

FIRMWARE void look_for_request(uint32_t status)
{
    uint32_t i = turn, attached = card.processes, bytes = 0;
    for (uint32_t k = attached; k; k--) { /* every attached process, from the next in turn */
        bytes = head[i]->bytes;
        if (bytes)
            break;
        i++;
        if (i >= attached)
            i = 0;
    }
    if (!bytes)
        return;
    volatile struct vmmc_process *p = &card.process[i];
    volatile struct vmmc_request *e = head[i];
    if (e->kind == VMMC_IS_SHORT) {
        volatile uint32_t *h = card.out[fill];
        if (!(status & SDONE))
            return;
        uint32_t route = bytes <= VMMC_SHORT ? header(p, h, e->proxy, bytes) : 0;
        if (route) {
            uint32_t words = (bytes + 3) >> 2;
            for (uint32_t k = 0; k < words; k++)
                h[VMMC_HEADER / 4 + k] = e->data[k];
            nic_send(route, SRAM_AT(h), VMMC_HEADER + bytes);
            fill ^= 1;
        } else {
            card.errors++;
        }
        e->bytes = 0;
        head[i] = after(p, e);
        turn = i + 1 < attached ? i + 1 : 0;
    } else if (e->address & 3) { /* words only: an odd one would look like a translation that never comes */
        card.errors++;
        e->bytes = 0;
        head[i] = after(p, e);
    } else {
        turn = i + 1 < attached ? i + 1 : 0;
        sender_index = i;
        sender = p;
        request = e;
        address = e->address;
        proxy = e->proxy;
        left = bytes;
        fetched = waits_for_tlb = 0;
        long_send(status);
    }
}

FIRMWARE void step(void)
{
    uint32_t status = nic_read(ISR);
    if (engine != IDLE && (status & HDONE)) {
        if (engine == DELIVERING)
            delivered();
        else {
            if (engine == FETCHING)
                fetched = 1;
            engine = IDLE;
        }
    }
    if ((status & RECV) && engine == IDLE) {
        receive(status);
        return;
    }
    if (request)
        long_send(status);
    else
        look_for_request(status);
}

void fw_init(void);
void fw_init(void)
{
    for (uint32_t i = 0; i < VMMC_PROCESSES; i++)
        head[i] = card.process[i].queue;
    open_for_packet();
}

void fw_step(void);
void fw_step(void)
{
    step();
}

void fw_main(void);
void fw_main(void)
{
    fw_init();
    for (;;)
        step();
}
