/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stages.h - what Hamlyn's card keeps, how it refuses packets and fetches long messages, for both its firmwares,
 * which say before what the host DMA engine can be at. */

/* A message that has not left the host as a whole. */
static struct ham_active {
    uint32_t left, at, done, to, what, key[2], offset, bytes, number, unused[6];
} active[HAM_PROCESSES];
/* A message that has not come as a whole: `left` bytes lack, of a process here. */
static struct ham_counter {
    uint32_t number, left, owner, reserved;
} counter[HAM_NODES * HAM_PROCESSES * HAM_OPEN];
static uint32_t numbers[HAM_PROCESSES * HAM_NODES]; /* of messages of several packets, to each node */
static volatile struct ham_process *process[HAM_PROCESSES];
static volatile struct ham_request *head[HAM_PROCESSES];

struct ham_loop {
    uint32_t node, nodes, processes, packet, engine, turn;
    uint32_t fill, room;                   /* the buffer that is filled next, and the one that is open */
    uint32_t fetched, bytes, to, fetching; /* a packet is ready, so long, for that node; whose the next one is */
    uint32_t record_at, interrupts;        /* behind the data that go to the host, or 0 */
    uint32_t troubles;                     /* a bit for each process that has to be told */
};

FIRMWARE void open_for_packet(struct ham_loop *l)
{
    nic_arm(SRAM_AT(card.in[l->room]), sizeof card.in[0]);
}

/* ---- arrivals ---- */

static void tell(struct ham_loop *l, uint32_t i, uint32_t reason, volatile uint32_t *h)
{
    volatile struct ham_process *p = process[i];
    p->trouble[0]++;
    p->trouble[1] = reason << 24 | h[0] >> 16;
    p->trouble[2] = h[1] & 0xffff;
    p->trouble[3] = h[4];
    l->troubles |= 1u << i;
}

static struct ham_counter *counter_of(volatile uint32_t *h)
{
    uint32_t source = h[0], number = h[5];
    _Static_assert(HAM_NODES == 32 && HAM_PROCESSES == 4 && HAM_OPEN == 8, "the shifts below");
    return &counter[(source >> 24 & (HAM_NODES - 1)) << 5 | (source >> 16 & (HAM_PROCESSES - 1)) << 3 |
                    (number & (HAM_OPEN - 1))];
}

/* From now on the counter is for the message of this packet. If the message that had it still lacks packets although so
 * many have been begun behind it, it will never be whole. */
static void take_counter(struct ham_loop *l, struct ham_counter *c, uint32_t i, volatile uint32_t *h)
{
    if (c->left) {
        tell(l, c->owner, HAM_INCOMPLETE, h);
        card.refused++;
        process[c->owner]->promised -= c->reserved;
    }
    c->number = h[5];
    c->left = c->reserved = 0;
    c->owner = i;
}

FIRMWARE uint32_t queue_is_full(volatile struct ham_process *p)
{
    return p->promised - p->taken >= HAM_RECORDS;
}

/* Counts a packet of a message of several packets: why this packet is refused, or 0. */
static uint32_t count(struct ham_loop *l, uint32_t i, volatile uint32_t *h)
{
    volatile struct ham_process *p = process[i];
    struct ham_counter *c = counter_of(h);
    uint32_t bytes = h[0] & 0xffff;
    if (c->number != h[5]) {
        if ((int32_t)(h[5] - c->number) < 0)
            return HAM_STALE;
        take_counter(l, c, i, h);
        if (h[1] >> 24 & HAM_WITH_RECORD) {
            if (queue_is_full(p))
                return HAM_QUEUE_FULL;
            p->promised++;
            c->reserved = 1;
        }
        c->left = h[7];
    }
    if (c->owner != i || bytes > c->left)
        return HAM_STALE;
    c->left -= bytes;
    return 0;
}

/* A message one of whose packets has been refused is none any more. */
static void refuse(struct ham_loop *l, uint32_t i, uint32_t reason, volatile uint32_t *h)
{
    card.moving = 0;
    card.refused++;
    tell(l, i, reason, h);
    if ((h[0] & 0xffff) != h[7]) {
        struct ham_counter *c = counter_of(h);
        if (c->number == h[5]) {
            if (c->left)
                process[c->owner]->promised -= c->reserved;
            c->left = 0;
        } else if ((int32_t)(h[5] - c->number) > 0) {
            take_counter(l, c, i, h);
        }
    }
    open_for_packet(l);
}

/* ---- the host DMA engine ---- */

FIRMWARE void tell_host(struct ham_loop *l)
{
    uint32_t i = 0;
    while (!(l->troubles >> i & 1))
        i++;
    l->troubles &= ~(1u << i);
    for (uint32_t k = 0; k < HAM_TROUBLE_WORDS; k++)
        card.telling[k] = process[i]->trouble[k];
    nic_dma(process[i]->trouble_at, SRAM_AT(card.telling), TO_HOST, sizeof card.telling);
    l->engine = TELLING;
}

static void end_request(uint32_t i)
{
    head[i]->bytes = 0;
    head[i] = head[i] + 1 == process[i]->queue + HAM_QUEUE ? process[i]->queue : head[i] + 1;
}

/* ---- sends ---- */

/* The next packet of a long message. */
static void fetch(struct ham_loop *l, uint32_t i)
{
    struct ham_active *a = &active[i];
    volatile uint32_t *h = card.out[l->fill];
    uint32_t bytes = a->left < l->packet ? a->left : l->packet, to = a->to;
    nic_dma(process[i]->area_at + a->at, SRAM_AT(h) + HAM_HEADER, FROM_HOST, bytes);
    l->engine = FETCHING;
    l->fetching = i;
    h[0] = l->node << 24 | i << 16 | bytes;
    h[1] = a->what << 24 | (to & 0xffffff);
    h[2] = a->key[0];
    h[3] = a->key[1];
    h[4] = a->offset + a->done;
    h[5] = a->number;
    h[6] = a->offset;
    h[7] = a->bytes;
    l->bytes = bytes;
    l->to = to >> 24;
    a->at += bytes;
    a->done += bytes;
    a->left -= bytes;
}

static void init(struct ham_loop *l)
{
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->processes = card.processes;
    l->packet = card.packet;
    l->engine = IDLE;
    l->turn = l->fill = l->room = l->fetched = l->bytes = l->to = l->fetching = 0;
    l->record_at = l->interrupts = l->troubles = 0;
    for (uint32_t i = 0; i < HAM_PROCESSES; i++) {
        process[i] = &card.process[i];
        head[i] = process[i]->queue;
        active[i].left = 0;
    }
    for (uint32_t i = 0; i < HAM_PROCESSES * HAM_NODES; i++)
        numbers[i] = 0;
    for (uint32_t i = 0; i < HAM_NODES * HAM_PROCESSES * HAM_OPEN; i++)
        counter[i].number = counter[i].left = 0;
    open_for_packet(l);
}
