/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hamlyn written again for speed alone: what a turn needs is in registers, apart from what stages.h keeps for refusals
 * and long messages. A turn that finds nothing looks at the status by one mask and at one process's next request; a
 * stored message leaves in the turn that finds it, if the wire is free; what was fetched leaves in the turn in which it
 * has come. Checks are those of firmware.c, and what a process has asked for is read once here, too. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/hamlyn/layout.h"

volatile struct ham_card card;

enum { IDLE, FETCHING, DELIVERING, RECORDING, TELLING };
#include "sim/myrinet/systems/hamlyn/stages.h"

static struct ham_loop rare; /* what stages.h works on: `fill` and `room` are set just before it does */

enum { BLOCKED = 1 << 30 }; /* no bit of the status: the buffer that is filled next is not free */

struct ham_tuned_loop {
    uint32_t wakes;  /* bits of the status that there is something to do for; BLOCKED */
    uint32_t engine; /* what it does */
    uint32_t node, nodes, processes;
    uint32_t turn; /* the process that is looked at, and the request that it writes next */
    volatile struct ham_request *request;
    volatile uint32_t *out, *in;     /* the buffer that is filled next; the one that is open */
    uint32_t ready, route;           /* a packet is ready, so long, or 0; for there */
    uint32_t record_at, interrupted; /* behind the data that go to the host, or 0 */
};

/* After each change of what it is made of. */
FIRMWARE void note(struct ham_tuned_loop *l)
{
    uint32_t wakes = l->engine == IDLE ? RECV : HDONE;
    if (RARELY(rare.troubles))
        wakes |= HDONE; /* an idle engine's */
    if (l->ready)
        wakes |= SDONE | BLOCKED;
    if (l->engine == FETCHING)
        wakes |= BLOCKED;
    l->wakes = wakes;
}

FIRMWARE volatile uint32_t *other(volatile uint32_t *is, volatile uint32_t *first, volatile uint32_t *second)
{
    return is == first ? second : first;
}

FIRMWARE void next_turn(struct ham_tuned_loop *l)
{
    l->turn = l->turn + 1 < l->processes ? l->turn + 1 : 0;
    l->request = head[l->turn];
}

/* ---- arrivals ---- */

static void refuse_it(uint32_t i, uint32_t reason, volatile uint32_t *h)
{
    rare.room = h != card.in[0];
    refuse(&rare, i, reason, h);
}

FIRMWARE void arrived(struct ham_tuned_loop *l, uint32_t status)
{
    volatile uint32_t *h = l->in;
    uint32_t source = h[0], what = h[1], offset = h[4], begins = h[6], whole = h[7];
    uint32_t bytes = source & 0xffff, i = what >> 16 & 0xff, k = what & 0xffff;
    if (RARELY(status & CRCERR || nic_read(RLEN) != HAM_HEADER + bytes || !bytes || i >= l->processes ||
               source >> 24 >= l->nodes || (source >> 16 & 0xff) >= HAM_PROCESSES)) {
        card.errors++;
        nic_arm(SRAM_AT(h), sizeof card.in[0]);
        return;
    }
    volatile struct ham_process *p = process[i];
    volatile struct ham_slot *s = &p->slot[k & (HAM_SLOTS - 1)];
    uint32_t reason = HAM_OUT_OF_BOUNDS, is_last = 1, records = what >> 24 & HAM_WITH_RECORD, room;
    card.moving = (i << 16 | k) + 1; /* first: the kernel takes a slot back, and looks at this then */
    room = s->bytes;
    if (RARELY(k >= HAM_SLOTS || !s->valid))
        reason = HAM_BAD_SLOT;
    else if (RARELY(s->key[0] != h[2] || s->key[1] != h[3]))
        reason = HAM_BAD_KEY;
    else if (!(offset & 3) && begins <= room && whole <= room - begins && offset >= begins &&
             offset - begins <= whole && bytes <= whole - (offset - begins))
        reason = 0;
    if (RARELY(reason)) {
        refuse_it(i, reason, h);
        return;
    }
    if (RARELY(bytes != whole)) {
        reason = count(&rare, i, h);
        is_last = !counter_of(h)->left;
        records = counter_of(h)->reserved; /* what its first packet wanted */
    } else if (records) {
        if (RARELY(queue_is_full(p)))
            reason = HAM_QUEUE_FULL;
        else
            p->promised++;
    }
    if (RARELY(reason)) {
        refuse_it(i, reason, h);
        return;
    }
    nic_dma(s->at + offset, SRAM_AT(h) + HAM_HEADER, TO_HOST, bytes);
    l->engine = DELIVERING;
    l->in = other(h, card.in[0], card.in[1]);
    nic_arm(SRAM_AT(l->in), sizeof card.in[0]);
    l->record_at = l->interrupted = 0;
    if (is_last) {
        if (what >> 24 & HAM_WITH_INTERRUPT)
            l->interrupted = p->notify;
        if (records) {
            uint32_t posted = p->posted;
            l->record_at = p->records_at + (posted & (HAM_RECORDS - 1)) * HAM_RECORD;
            card.record[0] = p->posted = posted + 1;
            card.record[1] = source >> 16;
            card.record[2] = k;
            card.record[3] = begins;
            card.record[4] = whole;
        }
    }
}

/* ---- sends ---- */

FIRMWARE void launch(struct ham_tuned_loop *l, uint32_t route, uint32_t bytes)
{
    nic_send(route, SRAM_AT(l->out), bytes);
    l->out = other(l->out, card.out[0], card.out[1]);
    l->ready = 0;
}

FIRMWARE void fetch_next(struct ham_tuned_loop *l)
{
    rare.fill = l->out != card.out[0];
    fetch(&rare, l->turn);
    l->engine = FETCHING;
    l->wakes = HDONE | BLOCKED;
}

/* A message that lies in its process's area. */
FIRMWARE void begin_long(struct ham_tuned_loop *l, volatile struct ham_request *r, uint32_t bytes, uint32_t to,
                         uint32_t what)
{
    uint32_t i = l->turn, at = r->at;
    volatile struct ham_process *p = process[i];
    if (l->engine != IDLE)
        return; /* it has its turn when the engine has */
    if (!bytes || to >> 24 >= l->nodes || to >> 24 == l->node || at & 3 || at > p->area_bytes ||
        bytes > p->area_bytes - at) {
        card.errors++;
        end_request(i);
        return;
    }
    active[i].at = at;
    active[i].left = active[i].bytes = bytes;
    active[i].done = 0;
    active[i].to = to;
    active[i].what = what & (HAM_WITH_RECORD | HAM_WITH_INTERRUPT);
    active[i].key[0] = r->key[0];
    active[i].key[1] = r->key[1];
    active[i].offset = r->offset;
    active[i].number = bytes > rare.packet ? ++numbers[i << 5 | (to >> 24)] : 0;
    fetch_next(l);
}

/* A message that lies in the request. */
FIRMWARE void send_stored(struct ham_tuned_loop *l, volatile struct ham_request *r, uint32_t bytes, uint32_t to,
                          uint32_t what, uint32_t status)
{
    uint32_t i = l->turn;
    if (RARELY(!bytes || bytes > HAM_SHORT || to >> 24 >= l->nodes || to >> 24 == l->node)) {
        card.errors++;
    } else {
        volatile uint32_t *h = l->out;
        uint32_t offset = r->offset, route = card.route[to >> 24];
        h[0] = l->node << 24 | i << 16 | bytes;
        h[1] = what << 24 | (to & 0xffffff);
        h[2] = r->key[0];
        h[3] = r->key[1];
        h[4] = h[6] = offset;
        h[7] = bytes;
        for (uint32_t k = 0, words = (bytes + 3) >> 2; k < words; k++)
            h[HAM_HEADER / 4 + k] = r->data[k];
        if (status & SDONE) {
            launch(l, route, HAM_HEADER + bytes);
        } else {
            l->ready = HAM_HEADER + bytes;
            l->route = route;
            l->wakes |= SDONE | BLOCKED;
        }
    }
    end_request(i);
}

/* A process that clears its request while a long message is under way keeps nobody waiting but itself. */
FIRMWARE void begin_send(struct ham_tuned_loop *l, uint32_t status)
{
    volatile struct ham_request *r = l->request;
    uint32_t bytes = r->bytes, to = r->to, what = r->what;
    if (RARELY(active[l->turn].left)) {
        if (l->engine == IDLE)
            fetch_next(l);
    } else if (what & HAM_STORED) {
        send_stored(l, r, bytes, to, what, status);
    } else {
        begin_long(l, r, bytes, to, what);
    }
    next_turn(l);
}

/* ---- turns ---- */

FIRMWARE void engine_is_done(struct ham_tuned_loop *l)
{
    uint32_t was = l->engine;
    l->engine = IDLE;
    if (was == DELIVERING) {
        if (l->record_at) {
            nic_dma(l->record_at, SRAM_AT(card.record), TO_HOST, sizeof card.record);
            l->engine = RECORDING;
        }
        card.moving = 0;
        if (l->record_at)
            return;
    } else if (was == FETCHING) {
        uint32_t i = rare.fetching;
        l->ready = HAM_HEADER + rare.bytes;
        l->route = card.route[rare.to];
        if (!active[i].left) {
            end_request(i);
            l->request = head[l->turn];
        }
        return;
    }
    if (was != TELLING && l->interrupted)
        nic_write(HIRQ, 1);
}

/* What the status has a bit for. */
FIRMWARE void attend(struct ham_tuned_loop *l, uint32_t status)
{
    if (l->engine != IDLE && (status & HDONE))
        engine_is_done(l);
    if (l->ready && (status & SDONE))
        launch(l, l->route, l->ready);
    if (l->engine == IDLE) {
        if (status & RECV) {
            arrived(l, status);
        } else if (RARELY(rare.troubles)) {
            tell_host(&rare);
            l->engine = TELLING;
        }
    }
    note(l);
}

FIRMWARE void step(struct ham_tuned_loop *l)
{
    uint32_t status = nic_read(ISR);
    if (RARELY(status & l->wakes))
        attend(l, status);
    else if (l->wakes & BLOCKED)
        return;
    else if (RARELY(l->request->bytes))
        begin_send(l, status);
    else if (l->processes > 1)
        next_turn(l);
}

static void init_tuned(struct ham_tuned_loop *l)
{
    init(&rare);
    *l = (struct ham_tuned_loop){0};
    l->engine = IDLE;
    l->node = rare.node;
    l->nodes = rare.nodes;
    l->processes = rare.processes;
    l->request = head[0];
    l->out = card.out[0];
    l->in = card.in[0];
    note(l);
}
#define init init_tuned
LOOP_OF_CARD(struct ham_tuned_loop)
