/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kept.h - what both firmwares of VMMC-2 are made of: translations of pages, packets that are kept until the other card
 * has acknowledged them, answers, and where a message is to lie. Who includes it has `card`, what the engine may be at,
 * and the loop's turn. */
static uint32_t next_of[VMMC2_BUFFERS], bytes_of[VMMC2_BUFFERS]; /* of packets that are kept: a list for each node */
static uint32_t oldest[VMMC2_NODES], last[VMMC2_NODES], unsent[VMMC2_NODES], kept[VMMC2_NODES], age[VMMC2_NODES];
static uint32_t number[VMMC2_NODES], expected[VMMC2_NODES], dropping[VMMC2_NODES]; /* dropping: for want of a place */
static uint32_t listed[VMMC2_NODES], wants[VMMC2_NODES], answer_due[VMMC2_NODES], in_answers[VMMC2_NODES],
    answers[VMMC2_NODES]; /* rings of nodes to which packets, and answers, are to go */
static uint32_t free_buffer[VMMC2_BUFFERS], message[VMMC2_PROCESSES * VMMC2_EXPORTS],
    begun[VMMC2_PROCESSES * VMMC2_EXPORTS]; /* begun: 0, or where the message lies, + 1 */
static volatile struct vmmc2_request *head[VMMC2_PROCESSES];
static volatile struct vmmc2_process *process_of[VMMC2_PROCESSES];
static volatile uint32_t *packet[VMMC2_BUFFERS];

struct vmmc2_loop {
    uint32_t node, nodes, shift, page, engine;
    uint32_t turn, frees, frees_at;
    uint32_t wants_n, wants_at, answers_n, answers_at;
    uint32_t sending;                                               /* the packet on the wire, or NONE */
    uint32_t unacked, ticking;                                      /* packets that are kept */
    uint32_t filling, fill_process, fill_node, fill_last, bulk;     /* the send that is fetched */
    uint32_t report;                                                /* process + 1 that is told how many have left */
    uint32_t look_process, look_reference, look_generation, looked; /* looked: tag that the table did not have */
    uint32_t room;                                                  /* the open one of two */
    uint32_t arriving, in_process, in_reference, in_at, in_left, in_from, in_export, in_last; /* in_from: SRAM */
};

static uint32_t tag_of(uint32_t process, uint32_t reference)
{
    return (process << TAG_SHIFT | reference) + 1;
}

/* 0: it is looked for, or there is none, which `looked` says. */
FIRMWARE uint32_t translate(struct vmmc2_loop *l, uint32_t i, uint32_t reference)
{
    volatile struct vmmc2_process *p = process_of[i];
    uint32_t tag = tag_of(i, reference), slot = (reference + (i << 6)) & (VMMC2_CACHE - 1);
    if (reference >= p->references) {
        l->looked = tag;
        return 0;
    }
    if (card.tag[slot] == tag)
        return card.physical[slot];
    if (l->looked == tag)
        return 0;
    card.misses++;
    l->look_process = i;
    l->look_reference = reference;
    l->look_generation = card.generation;
    l->engine = LOOKING;
    nic_dma(p->table_at + 4 * (reference & ~(uint32_t)(VMMC2_LINE - 1)), SRAM_AT(card.line), FROM_HOST, 4 * VMMC2_LINE);
    return 0;
}

static void looked_up(struct vmmc2_loop *l)
{
    uint32_t begins = l->look_reference & ~(uint32_t)(VMMC2_LINE - 1), i = l->look_process;
    if (card.generation != l->look_generation)
        return; /* something has been taken out meanwhile: once more */
    for (uint32_t k = 0; k < VMMC2_LINE; k++) {
        uint32_t slot = (begins + k + (i << 6)) & (VMMC2_CACHE - 1);
        if (card.line[k]) {
            card.tag[slot] = tag_of(i, begins + k);
            card.physical[slot] = card.line[k];
        }
    }
    if (!card.line[l->look_reference & (VMMC2_LINE - 1)])
        l->looked = tag_of(i, l->look_reference);
}

/* ---- to other cards ---- */

static void want(struct vmmc2_loop *l, uint32_t to)
{
    if (listed[to])
        return;
    listed[to] = 1;
    wants[(l->wants_at + l->wants_n++) & (VMMC2_NODES - 1)] = to;
}

static void answer(struct vmmc2_loop *l, uint32_t to, uint32_t kind)
{
    if (answer_due[to] < kind)
        answer_due[to] = kind;
    if (in_answers[to])
        return;
    in_answers[to] = 1;
    answers[(l->answers_at + l->answers_n++) & (VMMC2_NODES - 1)] = to;
}

static void again(struct vmmc2_loop *l, uint32_t to)
{
    age[to] = 0;
    if (oldest[to] == NONE)
        return;
    unsent[to] = oldest[to];
    card.resent += kept[to];
    want(l, to);
}

static void acknowledged(struct vmmc2_loop *l, uint32_t from, uint32_t up_to)
{
    uint32_t b;
    while ((b = oldest[from]) != NONE && (int32_t)(up_to - packet[b][1]) > 0 && (int32_t)(up_to - number[from]) <= 0) {
        if (unsent[from] == b)
            unsent[from] = next_of[b];
        oldest[from] = next_of[b];
        free_buffer[(l->frees_at + l->frees++) & (VMMC2_BUFFERS - 1)] = b;
        kept[from]--;
        l->unacked--;
        card.acked++;
        age[from] = 0;
    }
}

static void send_answer(struct vmmc2_loop *l)
{
    uint32_t to = answers[l->answers_at & (VMMC2_NODES - 1)], kind = answer_due[to];
    l->answers_at++;
    l->answers_n--;
    in_answers[to] = answer_due[to] = 0;
    l->sending = NONE;
    if (!kind)
        return; /* it went with a packet */
    card.answer[0] = kind << 24 | l->node << 16;
    card.answer[2] = expected[to];
    nic_send(card.route[to], SRAM_AT(card.answer), VMMC2_ANSWER);
}

static void send_packet(struct vmmc2_loop *l)
{
    uint32_t to = wants[l->wants_at & (VMMC2_NODES - 1)], b = unsent[to];
    l->wants_at++;
    l->wants_n--;
    listed[to] = 0;
    if (b == NONE)
        return;
    unsent[to] = next_of[b];
    if (unsent[to] != NONE)
        want(l, to);
    packet[b][2] = expected[to];
    if (answer_due[to] == VMMC2_KIND_ACK)
        answer_due[to] = 0;
    l->sending = b;
    nic_send(card.route[to], SRAM_AT(packet[b]), bytes_of[b]);
}

/* ---- messages ---- */

static void end_request(struct vmmc2_loop *l, uint32_t i, uint32_t is_last)
{
    volatile struct vmmc2_process *p = process_of[i];
    head[i]->bytes = 0;
    head[i] = head[i] + 1 == p->queue + VMMC2_QUEUE ? p->queue : head[i] + 1;
    if (is_last) {
        p->done++;
        l->report = i + 1;
    }
}

/* Where this packet of a message is to lie; 0: there is no place now. */
static uint32_t place(struct vmmc2_loop *l, volatile uint32_t *h, uint32_t from)
{
    uint32_t k = h[3] & 0xffff, bytes = h[0] & 0xffff, offset = h[4], whole = h[5], wrong = 1, limit;
    if (k >= VMMC2_PROCESSES * VMMC2_EXPORTS)
        goto out;
    volatile struct vmmc2_export *x = &card.export[k];
    volatile struct vmmc2_post *post = &process_of[k / VMMC2_EXPORTS]->post[k & (VMMC2_EXPORTS - 1)];
    if (!x->valid || x->importer != from || (offset != 0) != (begun[k] != 0))
        goto out;
    if (!begun[k]) {
        if (post->number == message[k] + 1)
            begun[k] = 1 + VMMC2_DIRECT;
        else if (message[k] - post->taken < x->places && whole <= x->place_bytes)
            begun[k] = 1 + VMMC2_STAGED;
        else
            return 0;
    }
    uint32_t direct = begun[k] == 1 + VMMC2_DIRECT;
    limit = direct ? post->bytes : x->place_bytes;
    if (begun[k] == 1 + VMMC2_REFUSED || offset > limit || bytes > limit - offset) {
        begun[k] = 1 + VMMC2_REFUSED;
        bytes = 0;
        card.refused++;
    }
    uint32_t begins = direct ? post->at : x->at + ((message[k] & (x->places - 1)) << x->place_shift);
    begins += offset;
    l->in_reference = ((direct ? post->reference : x->reference) + (begins >> l->shift)) & 0xffff;
    l->in_at = begins & (l->page - 1);
    l->in_process = k / VMMC2_EXPORTS;
    l->in_left = bytes;
    l->in_from = SRAM_AT(h + VMMC2_HEADER / 4);
    l->in_export = k;
    l->in_last = h[3] & VMMC2_LAST;
    l->arriving = bytes || l->in_last;
    wrong = 0;
out:
    card.refused += wrong;
    return 1;
}

static void tick(struct vmmc2_loop *l)
{
    for (uint32_t to = 0; to < l->nodes; to++)
        if (oldest[to] != NONE && ++age[to] > card.patience)
            again(l, to);
    l->ticking = l->unacked != 0;
    nic_write(TMR, l->unacked ? card.tick : 0);
}

static void init(struct vmmc2_loop *l)
{
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->shift = card.page_shift;
    l->page = 1u << l->shift;
    l->engine = IDLE;
    l->turn = l->frees_at = l->wants_n = l->wants_at = l->answers_n = l->answers_at = 0;
    l->unacked = l->ticking = l->report = l->looked = l->room = l->arriving = 0;
    l->sending = l->filling = NONE;
    l->fill_process = l->fill_node = l->fill_last = l->bulk = 0;
    l->look_process = l->look_reference = l->look_generation = 0;
    l->in_process = l->in_reference = l->in_at = l->in_left = l->in_from = l->in_export = l->in_last = 0;
    for (uint32_t i = 0; i < VMMC2_NODES; i++) {
        oldest[i] = last[i] = unsent[i] = NONE;
        kept[i] = age[i] = number[i] = expected[i] = listed[i] = dropping[i] = 0;
        answer_due[i] = in_answers[i] = 0;
    }
    for (l->frees = 0; l->frees < VMMC2_BUFFERS; l->frees++)
        free_buffer[l->frees] = l->frees;
    for (uint32_t i = 0; i < VMMC2_PROCESSES * VMMC2_EXPORTS; i++)
        message[i] = begun[i] = 0;
    for (uint32_t i = 0; i < VMMC2_BUFFERS; i++)
        packet[i] = card.out[i];
    for (uint32_t i = 0; i < VMMC2_PROCESSES; i++)
        process_of[i] = &card.process[i];
    for (uint32_t i = 0; i < VMMC2_PROCESSES; i++)
        head[i] = process_of[i]->queue;
    nic_arm(SRAM_AT(card.in[0]), sizeof card.in[0]);
}
