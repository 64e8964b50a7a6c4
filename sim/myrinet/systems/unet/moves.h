/* SPDX-License-Identifier: BSD-3-Clause
 *
 * moves.h - what both firmwares of U-Net are made of: endpoints, and transfers between their pages and the card, with
 * the translations that the kernel supplies. Who includes it has `card`, and what the engine may be at. */
static volatile struct unet_message *head[UNET_ENDPOINTS];
static volatile struct unet_endpoint *endpoint[UNET_ENDPOINTS];
static uint32_t arrivals[UNET_ENDPOINTS]; /* messages that have come */

struct unet_move { /* between memory of an endpoint and SRAM */
    uint32_t at, left, sram, endpoint;
};
struct unet_loop {
    uint32_t node, nodes, shift, page, engine, turn;
    uint32_t fill, room;               /* the buffer that is filled next, and the one that is open */
    uint32_t sends, fetched, arriving; /* a message is on its way to the card; has come to it; goes to the host */
    uint32_t send_bytes, send_channel;
    uint32_t buffer, in_bytes, in_channel;
    struct unet_move out, in;
};

/* Starts the next part; 0: it waits for a translation, or the kernel has none (NO_PAGE). */
FIRMWARE uint32_t move(struct unet_loop *l, struct unet_move *m, uint32_t direction)
{
    uint32_t page = m->at >> l->shift, slot = page & (UNET_TLB - 1), fits = l->page - (m->at & (l->page - 1));
    volatile struct unet_endpoint *e = endpoint[m->endpoint];
    uint32_t asked = card.missing; /* first: the kernel supplies a translation before it says so */
    if (e->tag[slot] != page + 1) {
        if (asked)
            return 0;
        if (card.refused_page == page + 1) {
            card.refused_page = 0;
            return NO_PAGE;
        }
        card.misses++;
        card.missed = page;
        card.missing = m->endpoint + 1;
        nic_write(HIRQ, 1);
        return 0;
    }
    fits = m->left < fits ? m->left : fits;
    card.moving_endpoint = m->endpoint;
    card.moving = page + 1;
    nic_dma(e->physical[slot] | (m->at & (l->page - 1)), m->sram, direction, fits);
    l->engine = direction == TO_HOST ? DELIVERING : FETCHING;
    m->at += fits;
    m->sram += fits;
    m->left -= fits;
    return 0;
}

static void end_send(struct unet_loop *l)
{
    uint32_t i = l->out.endpoint;
    volatile struct unet_endpoint *e = endpoint[i];
    head[i]->bytes = 0;
    head[i] = head[i] + 1 == e->queue + UNET_QUEUE ? e->queue : head[i] + 1;
    l->sends = 0;
}

static void init(struct unet_loop *l)
{
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->shift = card.page_shift;
    l->page = 1u << l->shift;
    l->engine = IDLE;
    l->turn = l->fill = l->room = l->sends = l->fetched = l->arriving = 0;
    l->send_bytes = l->send_channel = l->buffer = l->in_bytes = l->in_channel = 0;
    l->out = l->in = (struct unet_move){0, 0, 0, 0};
    for (uint32_t i = 0; i < UNET_ENDPOINTS; i++) {
        endpoint[i] = &card.endpoint[i];
        head[i] = endpoint[i]->queue;
        arrivals[i] = 0;
    }
    nic_arm(SRAM_AT(card.in[0]), sizeof card.in[0]);
}
