/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stages.h - what Trapeze's card does with a message at each stage, for both its firmwares: each says in which turn,
 * and names CUT and what the host DMA engine does. */

enum { PART_LEAST = 256 }; /* bytes for which a transfer is started while more come: what moves in the time it takes */

static uint32_t out_at[TPZ_SENDS], in_at[TPZ_INS]; /* SRAM: payload of each place; message */

struct tpz_loop {
    uint32_t engine, node;
    volatile struct tpz_send *fetch, *leave; /* the next to be fetched, and to leave */
    uint32_t fetch_i, leave_i;
    uint32_t begun, fetched, sent;   /* messages of which the fetch, or nothing, has begun; ended; that have left */
    uint32_t sending, limit, end;    /* the packet that leaves: up to where it may; where it ends */
    uint32_t open, fill, take, full; /* a port is open; for which place; the place that goes to the host; whole ones */
    uint32_t place, frame, moved; /* in the ring; its frame, 0: not looked at; bytes of the payload that went there */
    uint32_t records;             /* host address of the record's end, of that place */
};

/* ---- to the network ---- */

FIRMWARE uint32_t ahead(uint32_t bytes)
{
    return TPZ_AHEAD + (bytes >> 16 & 0xff);
}

static void look_for_message(struct tpz_loop *l)
{
    volatile struct tpz_send *s = l->fetch;
    uint32_t payload = s->bytes & 0xffff;
    s->posted = 0;
    l->begun++;
    if (payload) {
        nic_dma(s->frame, out_at[l->fetch_i], FROM_HOST, payload);
        l->engine = FETCH;
    } else {
        card.fetched = ++l->fetched;
    }
    l->fetch_i = (l->fetch_i + 1) & (TPZ_SENDS - 1);
    l->fetch = &card.send[l->fetch_i];
}

/* How far the oldest message is there. */
FIRMWARE uint32_t there(const struct tpz_loop *l, uint32_t payload_at)
{
    return l->fetched != l->sent ? l->end : payload_at + nic_read(HMARK);
}

FIRMWARE void launch(struct tpz_loop *l)
{
    uint32_t bytes = l->leave->bytes, at = out_at[l->leave_i], first = at - ahead(bytes);
    uint32_t route = card.route[l->leave->to & (TPZ_NODES - 1)];
    l->end = at + (bytes & 0xffff);
    l->sending = 1;
    if (l->fetched != l->sent) {
        l->limit = l->end;
        nic_send(route, first, l->end - first);
    } else {
        l->limit = there(l, at);
        nic_send_up_to(route, first, l->end - first, l->limit);
    }
}

FIRMWARE void send(struct tpz_loop *l, uint32_t status)
{
    if (RARELY(l->sending)) {
        if (CUT && l->limit != l->end) {
            uint32_t limit = there(l, out_at[l->leave_i]);
            if (limit != l->limit) {
                l->limit = limit;
                nic_write(SML, limit);
            }
        } else if (status & SDONE) {
            l->sending = 0;
            card.sent = ++l->sent;
            l->leave_i = (l->leave_i + 1) & (TPZ_SENDS - 1);
            l->leave = &card.send[l->leave_i];
        }
    } else if (RARELY((CUT ? l->begun : l->fetched) != l->sent)) {
        launch(l);
    }
}

/* ---- from the network ---- */

FIRMWARE void open_port(struct tpz_loop *l)
{
    nic_arm(in_at[l->fill], TPZ_PLACE);
    l->open = 1;
}

/* The message at `take` is not there any more. */
static void let_go(struct tpz_loop *l)
{
    l->frame = l->moved = 0;
    l->full--;
    l->take = l->take + 1 == TPZ_INS ? 0 : l->take + 1;
    if (!l->open)
        open_port(l);
}

FIRMWARE int is_right(uint32_t head)
{
    return !(head & 0xff000003) && (head >> 16 & 3) == 0 && (head >> 16 & 0xff) <= TPZ_CONTROL &&
           (head & 0xffff) <= TPZ_FRAME;
}

/* The packet at `fill` is all there. */
static void arrived(struct tpz_loop *l, uint32_t status)
{
    uint32_t head = *WORDS_AT(in_at[l->fill]);
    if (status & CRCERR || !is_right(head) || nic_read(RLEN) != ahead(head) + (head & 0xffff)) {
        if (l->engine == PART && !l->full)
            return; /* of its first bytes: its place is not free before that ends */
        card.errors++;
        if (!l->full)
            l->frame = l->moved = 0; /* the frame stays where it is, for the next one */
        open_port(l);
        return;
    }
    l->full++;
    l->open = 0;
    l->fill = l->fill + 1 == TPZ_INS ? 0 : l->fill + 1;
    if (l->full < TPZ_INS)
        open_port(l);
}

static void deliver(struct tpz_loop *l, uint32_t came)
{
    uint32_t at = in_at[l->take], head = *WORDS_AT(at), payload = head & 0xffff, first = ahead(head), there;
    if (!l->full && (!is_right(head) || came <= first))
        return;
    if (!l->frame) {
        l->frame = card.receive[l->place];
        if (!l->frame) {
            if (l->full) {
                card.dropped++;
                let_go(l);
            }
            return;
        }
    }
    there = l->full || came - first > payload ? payload : came - first;
    if (l->moved != payload) {
        uint32_t part = there - l->moved;
        if (!part || (part < PART_LEAST && there != payload))
            return;
        nic_dma(l->frame + l->moved, at + first + l->moved, TO_HOST, part);
        l->moved = there;
        l->engine = PART;
    } else if (l->full) {
        uint32_t bytes = first - 4;
        card.receive[l->place] = 0; /* before the transfer: who has seen its end may attach another frame */
        nic_dma(l->records - bytes, at + 4, TO_HOST, bytes);
        l->engine = RECORD;
    }
}

FIRMWARE void engine_is_done(struct tpz_loop *l)
{
    uint32_t was = l->engine;
    l->engine = IDLE;
    if (was == FETCH) {
        card.fetched = ++l->fetched;
    } else if (was == RECORD) {
        l->place = (l->place + 1) & (TPZ_RING - 1);
        l->records = l->place ? l->records + TPZ_RECORD : card.records_at + TPZ_RECORD;
        let_go(l);
        if (card.notify)
            nic_write(HIRQ, 1);
    }
}

static void init(struct tpz_loop *l)
{
    *l = (struct tpz_loop){0};
    l->node = nic_read(NODE);
    l->fetch = l->leave = &card.send[0];
    l->records = card.records_at + TPZ_RECORD;
    for (uint32_t i = 0, at = SRAM_AT(card.out); i < TPZ_SENDS; i++, at += TPZ_PLACE)
        out_at[i] = at + TPZ_AHEAD + TPZ_CONTROL;
    for (uint32_t i = 0, at = SRAM_AT(card.in); i < TPZ_INS; i++, at += TPZ_PLACE)
        in_at[i] = at;
    open_port(l);
}
