/* SPDX-License-Identifier: BSD-3-Clause
 *
 * VMMC on the card (paper 002, section 4.5). Two packet buffers each way. The host DMA engine is shared by the chunks
 * of a long send, arrived packets, and completion words; an arrived packet goes first, so that the network drains.
 * While nothing arrives, a long send stays in its tight loop. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/vmmc/layout.h"

volatile struct vmmc_card card;

enum { IDLE, FETCHING, DELIVERING, REPORTING };

static volatile struct vmmc_request *head[VMMC_PROCESSES]; /* of each queue */

struct vmmc_firmware_loop {
    uint32_t engine;
    uint32_t shift, page;                  /* of the host's pages: bytes, and their logarithm */
    uint32_t turn;                         /* whose queue is looked at first */
    uint32_t fill;                         /* the outgoing buffer that is filled next */
    volatile struct vmmc_request *request; /* the long send at work, or 0 */
    volatile struct vmmc_process *sender;
    uint32_t sender_index, left, address, proxy, fetched, chunk, chunk_route, waits_for_tlb;
    uint32_t room, second_at, second_bytes, notify; /* room: the incoming buffer that is open */
};

FIRMWARE void open_for_packet(struct vmmc_firmware_loop *l)
{
    nic_arm(SRAM_AT(card.in[l->room]), sizeof card.in[0]);
}

FIRMWARE volatile struct vmmc_request *after(volatile struct vmmc_process *p, volatile struct vmmc_request *e)
{
    return e + 1 == p->queue + VMMC_QUEUE ? p->queue : e + 1;
}

/* Proxy address to header and route; 0 when it is not imported. */
FIRMWARE uint32_t header(const struct vmmc_firmware_loop *l, volatile struct vmmc_process *p, volatile uint32_t *h,
                         uint32_t to, uint32_t bytes)
{
    uint32_t page = to >> l->shift, offset = to & (l->page - 1), second = 0;
    if (page >= VMMC_PAGES)
        return 0;
    uint32_t entry = p->outgoing[page];
    if (!(entry & VMMC_VALID))
        return 0;
    if (offset + bytes > l->page) {
        if (page + 1 >= VMMC_PAGES)
            return 0;
        uint32_t next = p->outgoing[page + 1];
        if ((next ^ entry) & VMMC_LOW) /* not valid, or on another node */
            return 0;
        second = next & ~VMMC_LOW;
    }
    h[0] = bytes;
    h[1] = (entry & ~VMMC_LOW) | offset;
    h[2] = second;
    return card.route[entry & (VMMC_NODES - 1)];
}

/* 1: the translation is not there. */
FIRMWARE uint32_t translate(const struct vmmc_firmware_loop *l, volatile struct vmmc_process *p, uint32_t virtual)
{
    uint32_t page = virtual >> l->shift, set = page & (VMMC_SETS - 1);
    if (p->tag[set][0] == page)
        return p->physical[set][0] | (virtual & (l->page - 1));
    if (p->tag[set][1] == page)
        return p->physical[set][1] | (virtual & (l->page - 1));
    return 1;
}

/* ---- arrivals ---- */

FIRMWARE void receive(struct vmmc_firmware_loop *l, uint32_t status)
{
    volatile uint32_t *h = card.in[l->room];
    uint32_t bytes = h[0], to = h[1], frame = to >> l->shift, fits = l->page - (to & (l->page - 1)), first = bytes;
    if (status & CRCERR) { /* detected, not recovered: section 4.2 */
        card.errors++;
        goto drop;
    }
    if (frame >= VMMC_FRAMES)
        goto refuse;
    l->notify = card.incoming[frame];
    if (!(l->notify & VMMC_MAY_WRITE) || bytes > l->page || !bytes || bytes + VMMC_HEADER != nic_read(RLEN))
        goto refuse;
    l->second_bytes = 0;
    if (bytes > fits) {
        l->second_at = h[2];
        uint32_t next = l->second_at >> l->shift;
        if (!l->second_at || (l->second_at & (l->page - 1)) || next >= VMMC_FRAMES ||
            !(card.incoming[next] & VMMC_MAY_WRITE)) /* from its start, it does not reach the page after it */
            goto refuse;
        first = fits;
        l->second_bytes = bytes - fits;
    }
    nic_dma(to, SRAM_AT(h + VMMC_HEADER / 4), TO_HOST, first);
    l->engine = DELIVERING;
    if (l->notify & VMMC_NOTIFY)
        card.notified = frame;
    l->room ^= 1;
    open_for_packet(l);
    return;
refuse:
    card.refused++;
drop:
    open_for_packet(l);
}

FIRMWARE void delivered(struct vmmc_firmware_loop *l)
{
    if (l->second_bytes) {
        volatile uint32_t *h = card.in[l->room ^ 1];
        nic_dma(l->second_at, SRAM_AT(h + VMMC_HEADER / 4) + (h[0] - l->second_bytes), TO_HOST, l->second_bytes);
        l->second_bytes = 0;
        return;
    }
    l->engine = IDLE;
    if (l->notify & VMMC_NOTIFY)
        nic_write(HIRQ, VMMC_INTERRUPT_NOTIFY);
}

/* ---- long sends ---- */

FIRMWARE void end_request(struct vmmc_firmware_loop *l)
{
    l->request->bytes = 0;
    head[l->sender_index] = after(l->sender, l->request);
    l->request = 0;
}

/* Starts to fetch the next chunk, and makes its header meanwhile. */
FIRMWARE void fetch(struct vmmc_firmware_loop *l)
{
    uint32_t physical = translate(l, l->sender, l->address), fits = l->page - (l->address & (l->page - 1));
    volatile uint32_t *h = card.out[l->fill];
    if (physical & 1) {
        if (!l->waits_for_tlb) {
            card.missed = l->address;
            card.missing_process = l->sender_index;
            card.misses++;
            l->waits_for_tlb = 1;
            nic_write(HIRQ, VMMC_INTERRUPT_MISS);
        }
        return;
    }
    l->waits_for_tlb = 0;
    l->chunk = l->left < fits ? l->left : fits;
    nic_dma(physical, SRAM_AT(h + VMMC_HEADER / 4), FROM_HOST, l->chunk);
    l->engine = FETCHING;
    l->chunk_route = header(l, l->sender, h, l->proxy, l->chunk);
    l->address += l->chunk;
    l->proxy += l->chunk;
    l->left -= l->chunk;
}

/* A chunk is here and the wire is free: the next fetch first, then this one leaves. */
FIRMWARE void launch(struct vmmc_firmware_loop *l)
{
    volatile uint32_t *h = card.out[l->fill];
    uint32_t bytes = l->chunk, route = l->chunk_route;
    l->fetched = 0;
    if (!route) { /* not imported: nothing more of it is sent */
        card.errors++;
        l->left = 0;
    } else {
        l->fill ^= 1;
    }
    if (l->engine == IDLE) {
        if (l->left) {
            fetch(l);
        } else {
            l->sender->done++;
            nic_dma(l->sender->status_at, SRAM_AT(&l->sender->done), TO_HOST, 4);
            l->engine = REPORTING;
        }
    }
    if (route)
        nic_send(route, SRAM_AT(h), VMMC_HEADER + bytes);
    if (l->engine == REPORTING)
        end_request(l);
}

FIRMWARE void report(struct vmmc_firmware_loop *l)
{
    l->sender->done++;
    nic_dma(l->sender->status_at, SRAM_AT(&l->sender->done), TO_HOST, 4);
    l->engine = REPORTING;
    end_request(l);
}

/* The tight loop: nothing but this send, until something arrives. */
FIRMWARE void long_send(struct vmmc_firmware_loop *l, uint32_t status)
{
    do {
        if (l->engine != IDLE && l->engine != DELIVERING && (status & HDONE)) {
            if (l->engine == FETCHING)
                l->fetched = 1;
            l->engine = IDLE;
        }
        if (l->fetched) {
            if (status & SDONE)
                launch(l);
        } else if (l->engine == IDLE) {
            if (l->left)
                fetch(l);
            else
                report(l);
        }
        if (!l->request || l->engine == DELIVERING)
            return;
        status = nic_read(ISR);
    } while (!(status & RECV));
}

/* ---- requests ---- */

#ifdef VMMC_TUNED
/* Two words at a time, loaded before the first is stored; so perhaps one behind the last, which is the request's. */
FIRMWARE void copy_words(volatile uint32_t *to, volatile uint32_t *from, uint32_t words)
{
    volatile uint32_t *end = from + words;
    if (!RARELY(words > 1)) {
        *to = *from;
        return;
    }
    do {
        uint32_t a = from[0], b = from[1];
        to[0] = a;
        to[1] = b;
        from += 2;
        to += 2;
    } while (from < end);
}
#endif

FIRMWARE void look_for_request(struct vmmc_firmware_loop *l, uint32_t status)
{
    uint32_t i = l->turn, attached = card.processes, bytes = 0;
    for (uint32_t k = attached; k; k--) { /* every attached process, from the next in turn */
        bytes = head[i]->bytes;
        if (bytes)
            break;
        i++;
        if (i >= attached)
            i = 0;
    }
    if (!RARELY(bytes))
        return;
    volatile struct vmmc_process *p = &card.process[i];
    volatile struct vmmc_request *e = head[i];
    if (e->kind == VMMC_IS_SHORT) {
        volatile uint32_t *h = card.out[l->fill];
        if (!(status & SDONE))
            return;
        uint32_t route = bytes <= VMMC_SHORT ? header(l, p, h, e->proxy, bytes) : 0;
        if (route) {
            uint32_t words = (bytes + 3) >> 2;
#ifdef VMMC_TUNED
            copy_words(h + VMMC_HEADER / 4, e->data, words);
#else
            for (uint32_t k = 0; k < words; k++)
                h[VMMC_HEADER / 4 + k] = e->data[k];
#endif
            nic_send(route, SRAM_AT(h), VMMC_HEADER + bytes);
            l->fill ^= 1;
        } else {
            card.errors++;
        }
        e->bytes = 0;
        head[i] = after(p, e);
        l->turn = i + 1 < attached ? i + 1 : 0;
    } else if (e->address & 3) { /* words only: an odd one would look like a translation that never comes */
        card.errors++;
        e->bytes = 0;
        head[i] = after(p, e);
    } else {
        l->turn = i + 1 < attached ? i + 1 : 0;
        l->sender_index = i;
        l->sender = p;
        l->request = e;
        l->address = e->address;
        l->proxy = e->proxy;
        l->left = bytes;
        l->fetched = l->waits_for_tlb = 0;
        long_send(l, status);
    }
}

FIRMWARE void step(struct vmmc_firmware_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(l->engine != IDLE) && (status & HDONE)) {
        if (l->engine == DELIVERING)
            delivered(l);
        else {
            if (l->engine == FETCHING)
                l->fetched = 1;
            l->engine = IDLE;
        }
    }
    if (RARELY(status & RECV) && l->engine == IDLE) {
        receive(l, status);
        return;
    }
    if (RARELY(l->request))
        long_send(l, status);
    else
        look_for_request(l, status);
}

FIRMWARE void init(struct vmmc_firmware_loop *l)
{
    *l = (struct vmmc_firmware_loop){0};
    l->shift = card.page_shift;
    l->page = 1u << l->shift;
    for (uint32_t i = 0; i < VMMC_PROCESSES; i++)
        head[i] = card.process[i].queue;
    open_for_packet(l);
}

LOOP_OF_CARD(struct vmmc_firmware_loop)
