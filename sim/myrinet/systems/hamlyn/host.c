/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - Hamlyn's library and kernel; see host.h. */
#include "sim/myrinet/systems/hamlyn/host.h"

#include "sim/engine/random.h"

#include <stddef.h>
#include <string.h>

/* Host operations, as everywhere: of a call, of a handler. */
enum { LIBRARY = 35, HANDLER = 12, STREAM_KEY = 0x4b45 };

#define IN_CARD(h, field) ((h)->card + (uint32_t)offsetof(struct ham_card, field))

static uint32_t in_process(const struct ham *h, size_t field)
{
    return IN_CARD(h, process) + (uint32_t)(h->process * sizeof(struct ham_process) + field);
}

#define IN_PROCESS(h, field) in_process(h, offsetof(struct ham_process, field))

/* ---- the kernel ---- */

int ham_open(struct ham *h, struct myri_hw *hw, uint32_t node, uint32_t process, struct myri_space *space,
             uint32_t area_bytes, int notify)
{
    memset(h, 0, sizeof *h);
    h->hw = hw;
    h->host = &hw->host[node];
    h->card_of = &hw->card[node];
    h->space = space;
    h->process = process;
    h->area_bytes = area_bytes;
    h->card = myri_card_symbol(hw, "card");
    h->area = myri_space_map_area(space, area_bytes);
    uint32_t queue = myri_space_map_area(space, HAM_RECORDS * HAM_RECORD + 4 * HAM_TROUBLE_WORDS);
    if (process >= HAM_PROCESSES || hw->fault[0])
        return -1;
    struct myri_card *c = h->card_of;
    uint32_t records_at = myri_space_pin(space, queue);
    h->records = myri_space_at(space, NULL, queue);
    h->trouble = h->records + HAM_RECORDS * HAM_RECORD;
    myri_card_poke(c, IN_PROCESS(h, area_at), myri_space_pin(space, h->area));
    myri_card_poke(c, IN_PROCESS(h, area_bytes), area_bytes);
    myri_card_poke(c, IN_PROCESS(h, records_at), records_at);
    myri_card_poke(c, IN_PROCESS(h, trouble_at), records_at + HAM_RECORDS * HAM_RECORD);
    myri_card_poke(c, IN_PROCESS(h, notify), notify != 0);
    myri_card_poke(c, IN_CARD(h, nodes), hw->nodes);
    myri_card_poke(c, IN_CARD(h, packet), HAM_PACKET);
    if (myri_card_peek(c, IN_CARD(h, processes)) <= process)
        myri_card_poke(c, IN_CARD(h, processes), process + 1);
    for (uint32_t i = 0; i < hw->nodes; i++)
        myri_card_poke(c, IN_CARD(h, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

static void system_call(const struct ham *h)
{
    if (h->task)
        myri_task_spend(h->task, myri_machine_us(&h->hw->machine, MYRI_M_system_call), "slot");
    myri_card_wake(h->card_of, myri_hw_now(h->hw));
}

static uint32_t in_slot(const struct ham *h, uint32_t k, size_t field)
{
    return IN_PROCESS(h, slot) + (uint32_t)(k * sizeof(struct ham_slot) + field);
}

#define IN_SLOT(h, k, field) in_slot(h, k, offsetof(struct ham_slot, field))

int ham_slot_create(struct ham *h, uint32_t at, uint32_t bytes, struct ham_address *out)
{
    uint32_t k = 0, offset = at - h->area;
    struct myri_card *c = h->card_of;
    system_call(h);
    while (k < HAM_SLOTS && myri_card_peek(c, IN_SLOT(h, k, valid)))
        k++;
    if (k == HAM_SLOTS || at % 4 || at < h->area || offset > h->area_bytes || bytes > h->area_bytes - offset)
        return -1;
    uint64_t key = rnl_sim_random(rnl_sim_seed(h->hw->sim), STREAM_KEY, h->host->id << 8 | h->process, h->slots++);
    *out = (struct ham_address){h->host->id, h->process, k, bytes, {(uint32_t)(key >> 32), (uint32_t)key}};
    myri_card_poke(c, IN_SLOT(h, k, at), myri_card_peek(c, IN_PROCESS(h, area_at)) + offset);
    myri_card_poke(c, IN_SLOT(h, k, bytes), bytes);
    myri_card_poke(c, IN_SLOT(h, k, key), out->key[0]);
    myri_card_poke(c, IN_SLOT(h, k, key) + 4, out->key[1]);
    myri_card_poke(c, IN_SLOT(h, k, valid), 1);
    return 0;
}

void ham_slot_revoke(struct ham *h, const struct ham_address *slot)
{
    system_call(h);
    myri_card_poke(h->card_of, IN_SLOT(h, slot->slot, valid), 0);
    while (h->task && !h->hw->fault[0] &&
           myri_card_peek(h->card_of, IN_CARD(h, moving)) == (h->process << 16 | slot->slot) + 1) {
        myri_task_spend(h->task, 1000000, "slot"); /* what the engine moves just now comes to its end */
        myri_card_wake(h->card_of, myri_hw_now(h->hw));
    }
}

/* ---- library ---- */

void ham_sent(struct ham *h, uint32_t number)
{
    uint32_t is, at = IN_PROCESS(h, queue) + number % HAM_QUEUE * (uint32_t)sizeof(struct ham_request);
    if ((int32_t)(number - h->left) < 0 || myri_task_await(h->task, at, 0, 0, &is) < 0)
        return;
    h->left = number + 1; /* and those before it, as they go in turn */
}

uint32_t ham_send(struct ham *h, const struct ham_address *to, uint32_t offset, uint32_t at, uint32_t bytes,
                  uint32_t what)
{
    uint32_t entry = IN_PROCESS(h, queue) + h->sent % HAM_QUEUE * (uint32_t)sizeof(struct ham_request), stored = 0;
    uint32_t words[sizeof(struct ham_request) / 4 - 1] = {
        to->node << 24 | to->process << 16 | to->slot, what, to->key[0], to->key[1], offset, at - h->area};
    myri_task_operate(h->task, LIBRARY, "library");
    if (h->sent - h->left == HAM_QUEUE) /* half of it is waited for at once */
        ham_sent(h, h->sent - HAM_QUEUE / 2 - 1);
    if (bytes <= HAM_SHORT) {
        uint8_t data[HAM_SHORT] = {0};
        stored = (bytes + 3) / 4;
        words[1] |= HAM_STORED;
        myri_task_copy_loop(h->task, stored);
        myri_space_read(h->space, h->task, at, data, bytes);
        for (uint32_t i = 0; i < stored; i++)
            words[6 + i] = (uint32_t)data[4 * i] << 24 | (uint32_t)data[4 * i + 1] << 16 |
                           (uint32_t)data[4 * i + 2] << 8 | data[4 * i + 3];
    }
    myri_task_combine(h->task, entry + 4, words, 6 + stored);
    myri_task_store(h->task, entry, bytes);
    return h->sent++;
}

int ham_meta_poll(struct ham *h, struct ham_record *out, uint64_t until)
{
    uint32_t at = h->records + h->taken % HAM_RECORDS * HAM_RECORD;
    uint32_t old = h->taken >= HAM_RECORDS ? h->taken + 1 - HAM_RECORDS : 0;
    if (myri_task_poll(h->task, at, old, until) == old)
        return 0;
    myri_task_operate(h->task, LIBRARY + HANDLER, "handler");
    uint32_t sender = myri_host_word(h->host, at + 4);
    *out = (struct ham_record){sender >> 8, sender & 0xff, myri_host_word(h->host, at + 8),
                               myri_host_word(h->host, at + 12), myri_host_word(h->host, at + 16)};
    if (++h->taken - h->told >= HAM_RECORDS / 2) {
        h->told = h->taken;
        myri_task_store(h->task, IN_PROCESS(h, taken), h->told);
    }
    return 1;
}

struct ham_trouble ham_trouble(const struct ham *h)
{
    uint32_t w[HAM_TROUBLE_WORDS];
    for (uint32_t i = 0; i < HAM_TROUBLE_WORDS; i++)
        w[i] = myri_host_word(h->host, h->trouble + 4 * i);
    return (struct ham_trouble){w[0], w[1] >> 24, w[1] >> 8 & 0xff, w[1] & 0xff, w[2], w[3]};
}

/* ---- experiments ---- */

/* Who sends manages places of a slot that the receiver has made for it, and the receiver says which of them it is done
 * with, in words of a slot that the sender has made: the n-th such message into the n-th word in a ring, so that they
 * may overtake each other. A word is n + 1 and, in its low bits, places. */
enum { PLACES = HAM_OPEN, STAGES = 4, RETURNS = 16, FOR_SLOTS = 4 << 20 };
struct ham_peer {
    struct ham_address data, returns;       /* of slots at the peer */
    struct ham_address its_data, its_words; /* of slots here */
    uint32_t free, seen;                    /* places there; returns of them that have been read */
    uint32_t its_places;                    /* here, that it may write into */
    uint32_t due, due_n, returned;          /* places here that are to be given back; how many; times that some were */
};
struct ham_host_state {
    struct ham ham;
    struct ham_peer peer[MYRI_HW_NODES];
    uint32_t places, place_bytes, in, words, stage; /* addresses: slots, words, where long messages are sent from */
    uint32_t stage_of[STAGES], staged, stages;      /* number + 1 of the message that was sent from there */
    uint32_t word_of;                               /* what is stored from: a word for each return under way */
};

static uint32_t whole_pages(const struct myri_side *side, uint32_t bytes)
{
    return (bytes + side->hw->page - 1) & ~(side->hw->page - 1);
}

static int open_side(struct myri_side *side)
{
    struct ham_host_state *st = side->state;
    struct ham *h = &st->ham;
    uint32_t peers = side->nodes - 1, places = PLACES, stages = STAGES;
    st->place_bytes = (side->largest + 3) & ~3u;
    while (places > 2 && (uint64_t)peers * places * st->place_bytes > FOR_SLOTS)
        places /= 2;
    while (stages > 2 && stages * st->place_bytes > FOR_SLOTS / 4)
        stages /= 2;
    st->places = places;
    st->stages = stages;
    _Static_assert(MYRI_HW_NODES * PLACES <= HAM_RECORDS / 2, "what senders may send has a place in the queue");
    uint32_t slots = whole_pages(side, peers * places * st->place_bytes), words = 4 * RETURNS * side->nodes;
    if (ham_open(h, side->hw, side->node, 0, side->space, slots + whole_pages(side, words) + stages * st->place_bytes,
                 side->notify) < 0)
        return -1;
    myri_card_poke(side->card, IN_CARD(h, processes), side->processes);
    if (side->packet)
        myri_card_poke(side->card, IN_CARD(h, packet), side->packet);
    st->words = h->area + slots;
    st->stage = st->words + whole_pages(side, words);
    st->in = myri_space_map(side->space, st->place_bytes);
    st->word_of = myri_space_map(side->space, 4);
    for (uint32_t peer = 0, at = h->area; peer < side->nodes; peer++) {
        struct ham_peer *p = &st->peer[peer];
        p->free = p->its_places = (1u << places) - 1;
        if (peer == side->node)
            continue;
        if (ham_slot_create(h, at, places * st->place_bytes, &p->its_data) < 0 ||
            ham_slot_create(h, st->words + 4 * RETURNS * peer, 4 * RETURNS, &p->its_words) < 0)
            return -1;
        at += places * st->place_bytes;
    }
    return side->hw->fault[0] ? -1 : 0;
}

static void joined(struct myri_side *sides, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct ham_host_state *st = sides[i].state;
        st->ham.task = sides[i].task;
        for (uint32_t peer = 0; peer < n; peer++) {
            const struct ham_host_state *other = sides[peer].state;
            st->peer[peer].data = other->peer[i].its_data;
            st->peer[peer].returns = other->peer[i].its_words;
        }
        sides[i].task->map_from = IN_PROCESS(&st->ham, queue);
        sides[i].task->map_to = IN_PROCESS(&st->ham, area_at);
    }
}

/* Places of that peer are its own again. */
static void give_back(struct myri_side *side, struct ham_peer *p)
{
    struct ham_host_state *st = side->state;
    uint32_t k = p->returned % RETURNS;
    if (!p->due)
        return;
    myri_side_set_word(side, st->word_of, ++p->returned << PLACES | p->due);
    p->its_places |= p->due;
    p->due = p->due_n = 0;
    (void)ham_send(&st->ham, &p->returns, 4 * k, st->word_of, 4, 0);
}

static void give_all_back(struct myri_side *side)
{
    struct ham_host_state *st = side->state;
    for (uint32_t peer = 0; peer < side->nodes; peer++)
        give_back(side, &st->peer[peer]);
}

/* A place at the peer, when it has given one back. */
static uint32_t want_place(struct myri_side *side, struct ham_peer *p, uint32_t peer)
{
    struct ham_host_state *st = side->state;
    uint32_t place = 0;
    while (!p->free && !side->hw->fault[0]) {
        uint32_t at = myri_space_at(side->space, side->task, st->words + 4 * (RETURNS * peer + p->seen % RETURNS));
        uint32_t is = myri_host_word(side->host, at);
        if (is >> PLACES != p->seen + 1) {
            give_all_back(side); /* or two who send wait for each other */
            is = myri_task_poll(side->task, at, is, RNL_SIM_NEVER);
        }
        p->free |= is & ((1u << PLACES) - 1);
        p->seen++;
    }
    while (!(p->free >> place & 1) && place + 1 < PLACES)
        place++;
    p->free &= ~(1u << place);
    return place;
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct ham_host_state *st = side->state;
    struct ham *h = &st->ham;
    uint32_t from = side->out, place = want_place(side, &st->peer[to], to), k = st->staged % st->stages;
    if (bytes > HAM_SHORT) {
        from = st->stage + k * st->place_bytes;
        if (st->stage_of[k])
            ham_sent(h, st->stage_of[k] - 1);
        myri_side_copy(side, from, side->out, bytes);
        st->stage_of[k] = h->sent + 1;
        st->staged++;
    }
    (void)ham_send(h, &st->peer[to].data, place * st->place_bytes, from, bytes, HAM_WITH_RECORD | HAM_WITH_INTERRUPT);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct ham_host_state *st = side->state;
    struct ham_record r;
    (void)bytes;
    for (uint32_t peer = 0; peer < side->nodes; peer++)
        if (st->peer[peer].due_n >= st->places / 2)
            give_back(side, &st->peer[peer]);
    if (!ham_meta_poll(&st->ham, &r, until))
        return 0;
    struct ham_peer *p = &st->peer[r.node % MYRI_HW_NODES];
    if (r.slot != p->its_data.slot || r.bytes > st->place_bytes) {
        myri_hw_fault(side->hw, "node %u: a record of slot %u and %u bytes, which its sender has none of", side->node,
                      r.slot, r.bytes);
        return 0;
    }
    uint32_t place = 0, at = 0;
    while (at + st->place_bytes <= r.offset)
        place++, at += st->place_bytes;
    myri_side_copy(side, st->in, st->ham.area + (r.node - (r.node > side->node)) * st->places * st->place_bytes + at,
                   r.bytes);
    if (!(p->its_places >> place & 1)) {
        myri_hw_fault(side->hw, "node %u: node %u has written into place %u, which it was not given back", side->node,
                      r.node, place);
        return 0;
    }
    p->its_places &= ~(1u << place);
    p->due |= 1u << place;
    p->due_n++;
    side->got = st->in;
    side->from = r.node;
    return r.bytes;
}

static const struct myri_issues issues = {.transfer = "stores to 96 B, DMA",
                                          .translation = "DMA areas",
                                          .protection = "yes",
                                          .control = "both",
                                          .reliability = "back-pressure, slots",
                                          .to_many = "no"};
#define HAM_SYSTEM(id, called, titled, of)                                                                           \
    const struct myri_system myri_system_##id = {                                                                    \
        .name = called,                                                                                              \
        .title = titled,                                                                                             \
        .source = "Bhoedjang et al. 1998, table 1 and text",                                                         \
        .object = of,                                                                                                \
        .machines = "H-PP",                                                                                          \
        .state_bytes = sizeof(struct ham_host_state),                                                                \
        .most = 1 << 20,                                                                                             \
        .packet_least = HAM_PACKET_LEAST,                                                                            \
        .packet_most = HAM_PACKET,                                                                                   \
        .processes_most = HAM_PROCESSES,                                                                             \
        .notifies = 1,                                                                                               \
        .virtual = 1,                                                                                                \
        .any_order = 1,                                                                                              \
        .issues = &issues,                                                                                           \
        .on_crc =                                                                                                    \
            "it takes the network to be reliable, and has its back-pressure alone (Bhoedjang et al. 1998, table 1)", \
        .open = open_side,                                                                                           \
        .joined = joined,                                                                                            \
        .send = send_message,                                                                                        \
        .receive = receive_message,                                                                                  \
    }
HAM_SYSTEM(hamlyn, "hamlyn", "Hamlyn", "systems/hamlyn/firmware");
HAM_SYSTEM(hamlyn_tuned, "hamlyn-tuned", "Hamlyn with firmware written for speed alone",
           "systems/hamlyn/firmware-tuned");
