/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - AM-II's library; see host.h. */
#include "sim/myrinet/systems/am2/host.h"

#include <stddef.h>

/* Host operations, as everywhere: of a call, of a message, of a handler. */
enum { LIBRARY = 35, MESSAGE = 15, HANDLER = 12, TICK_US = 100, PATIENCE = 4, TRIES = 100, FOR_EXPERIMENTS = 1 };

#define IN_CARD(f, field) ((f)->card + (uint32_t)offsetof(struct am2_card, field))

/* Whether the slot can be used; what came back is told. */
static int slot_is_free(struct am2 *f, uint32_t slot)
{
    struct myri_task *t = f->side->task;
    uint32_t state = AM2_FREE, to = 0, reason = 0;
    if (!f->used[slot])
        return 1;
    if (myri_task_load(t, IN_CARD(f, state) + 4 * slot, &state) < 0 || (state != AM2_FREE && state != AM2_RETURNED))
        return 0;
    f->used[slot] = 0;
    if (state == AM2_RETURNED) {
        (void)myri_task_load(t, IN_CARD(f, to) + 4 * slot, &to);
        (void)myri_task_load(t, IN_CARD(f, reason) + 4 * slot, &reason);
        myri_task_store(t, IN_CARD(f, state) + 4 * slot, AM2_FREE);
        myri_task_operate(t, HANDLER, "handler");
        f->handled++;
        f->back++;
        f->why = reason;
        if (f->returned)
            f->returned(f, to, reason);
    }
    return 1;
}

void am2_request(struct am2 *f, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes)
{
    struct myri_task *t = f->side->task;
    uint32_t slot = f->next++ % AM2_SLOTS, words[AM2_SHORT / 4 + 2], at = IN_CARD(f, slot) + slot * 4 * AM2_WORDS;
    myri_task_operate(t, LIBRARY, "library");
    while (!slot_is_free(f, slot) && !f->side->hw->fault[0])
        (void)am2_poll(f);
    f->used[slot] = 1;
    words[0] = handler << 24 | bytes;
    myri_task_operate(t, MESSAGE, "message");
    if (bytes <= AM2_SHORT) {
        myri_task_gather(t, from, words + 1, (bytes + 3) / 4);
        myri_task_combine(t, at + 4, words, 1 + (bytes + 3) / 4);
    } else {
        myri_task_copy(t, f->out + slot * AM2_PLACE, from, bytes);
        myri_task_store(t, at + 4, words[0]);
    }
    myri_task_store(t, IN_CARD(f, to) + 4 * slot, to);
    myri_task_store(t, IN_CARD(f, state) + 4 * slot, bytes <= AM2_SHORT ? AM2_POSTED : AM2_FETCH);
}

static void take_message(struct am2 *f)
{
    struct myri_task *t = f->side->task;
    uint32_t k = f->taken % AM2_RING, sram = IN_CARD(f, ring) + k * 4 * AM2_WORDS, first = 0, second = 0, word = 0;
    uint32_t at = f->in + k * AM2_PLACE;
    (void)myri_task_load(t, sram, &first);
    (void)myri_task_load(t, sram + 4, &second);
    uint32_t bytes = second & 0xffff;
    if (bytes <= AM2_SHORT) {
        at = f->words;
        for (uint32_t i = 0; i < bytes; i += 4) {
            (void)myri_task_load(t, sram + 8 + i, &word);
            myri_host_set_word(f->side->host, at + i, word);
        }
    }
    myri_task_operate(t, MESSAGE + HANDLER, "handler");
    f->handled++;
    if (f->handler[second >> 24])
        f->handler[second >> 24](f, first >> 24 & 0x7f, at, bytes);
    myri_task_store(t, IN_CARD(f, taken), ++f->taken);
}

uint32_t am2_poll(struct am2 *f)
{
    uint32_t before = f->handled;
    myri_task_operate(f->side->task, LIBRARY, "poll");
    if (f->ready == f->taken)
        (void)myri_task_load(f->side->task, IN_CARD(f, ready), &f->ready);
    while (f->taken != f->ready && !f->side->hw->fault[0])
        take_message(f);
    for (uint32_t slot = 0; slot < AM2_SLOTS && f->handled == before; slot++)
        if (f->used[slot] && f->returned) /* who wants to hear of them looks for them */
            (void)slot_is_free(f, slot);
    return f->handled - before;
}

int am2_init(struct am2 *f, struct myri_side *side)
{
    struct myri_card *c = side->card;
    f->side = side;
    f->card = myri_card_symbol(side->hw, "card");
    f->out = myri_host_take(side->host, AM2_SLOTS * AM2_PLACE, 1);
    f->in = myri_host_take(side->host, AM2_RING * AM2_PLACE, 1);
    f->words = myri_host_take(side->host, AM2_SHORT, 0);
    if (side->hw->fault[0])
        return -1;
    myri_card_poke(c, IN_CARD(f, out_at), f->out);
    myri_card_poke(c, IN_CARD(f, in_at), f->in);
    myri_card_poke(c, IN_CARD(f, nodes), side->nodes);
    myri_card_poke(c, IN_CARD(f, tick), 2 * TICK_US);
    myri_card_poke(c, IN_CARD(f, patience), PATIENCE);
    myri_card_poke(c, IN_CARD(f, tries), TRIES);
    myri_card_poke(c, IN_CARD(f, open), 1);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(c, IN_CARD(f, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

/* ---- experiments ---- */

enum { WAITING = 32 }; /* messages that came while this host sent */
struct am2_host_state {
    struct am2 am;
    uint32_t in, came, looked, bytes[WAITING], from[WAITING];
};

static void on_message(struct am2 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct am2_host_state *st = f->owner;
    uint32_t k = st->came % WAITING, to = st->in + k * f->side->largest;
    if (st->came - st->looked == WAITING || bytes > f->side->largest) {
        myri_hw_fault(f->side->hw, "node %u: %d messages wait for a program that only sends", f->side->node, WAITING);
        return;
    }
    if (bytes > AM2_SHORT)
        myri_task_copy(f->side->task, to, at, bytes);
    for (uint32_t i = 0; i < bytes && bytes <= AM2_SHORT; i += 4) /* read by loads, to where they belong */
        myri_host_set_word(f->side->host, to + i, myri_host_word(f->side->host, at + i));
    st->bytes[k] = bytes;
    st->from[k] = from;
    st->came++;
}

static int open_side(struct myri_side *side)
{
    struct am2_host_state *st = side->state;
    st->am.owner = st;
    st->am.handler[FOR_EXPERIMENTS] = on_message;
    st->in = myri_host_take(side->host, WAITING * side->largest, 0);
    return am2_init(&st->am, side);
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct am2_host_state *st = side->state;
    am2_request(&st->am, to, FOR_EXPERIMENTS, side->out, bytes);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct am2_host_state *st = side->state;
    (void)bytes;
    while (st->came == st->looked) {
        (void)am2_poll(&st->am);
        if (st->came == st->looked && (myri_hw_now(side->hw) >= until || side->hw->fault[0]))
            return 0;
    }
    uint32_t k = st->looked++ % WAITING;
    side->got = st->in + k * side->largest;
    side->from = st->from[k];
    return st->bytes[k];
}

/* Those that the library has seen, and those that lie on the card. */
static uint32_t returned(const struct myri_side *side, const char **why)
{
    static const char *const reasons[] = {"", "the receiver's ring was full", "the node has no endpoint",
                                          "no answer came, however often they were sent"};
    const struct am2_host_state *st = side->state;
    uint32_t n = st->am.back, reason = st->am.why;
    for (uint32_t slot = 0; slot < AM2_SLOTS; slot++)
        if (st->am.used[slot] && myri_card_peek(side->card, IN_CARD(&st->am, state) + 4 * slot) == AM2_RETURNED) {
            n++;
            reason = myri_card_peek(side->card, IN_CARD(&st->am, reason) + 4 * slot);
        }
    *why = reasons[reason <= AM2_UNREACHABLE ? reason : 0];
    return n;
}

static const struct myri_issues issues = {.transfer = "stores to 128 B, DMA",
                                          .translation = "DMA areas",
                                          .protection = "none",
                                          .control = "poll",
                                          .reliability = "card, alternating bit",
                                          .to_many = "no"};
#define AM2_SYSTEM(called, titled, firmware)                                                             \
    .name = called, .title = titled, .source = "Bhoedjang et al. 1998, table 1 and text",                \
    .object = "systems/am2/" firmware, .machines = "H-PP", .state_bytes = sizeof(struct am2_host_state), \
    .most = AM2_DATA, .look = LIBRARY, .issues = &issues, .open = open_side, .send = send_message,       \
    .receive = receive_message, .returned = returned, .looks_across = 1

static const char AM2_BARE_ON_CRC[] = "nobody answers, which is what it is for";

const struct myri_system myri_system_am2 = {AM2_SYSTEM("am2", "AM-II", "firmware"), .recovers = 1, .any_order = 1};
const struct myri_system myri_system_am2_bare = {
    AM2_SYSTEM("am2-bare", "AM-II without answers and timers", "firmware-bare"), .lossy = 1, .on_crc = AM2_BARE_ON_CRC};
const struct myri_system myri_system_am2_tuned = {
    AM2_SYSTEM("am2-tuned", "AM-II with firmware written for speed alone", "firmware-tuned"), .recovers = 1,
    .any_order = 1};
const struct myri_system myri_system_am2_tuned_bare = {
    AM2_SYSTEM("am2-tuned-bare", "AM-II without answers and timers, written for speed alone", "firmware-tuned-bare"),
    .lossy = 1, .on_crc = AM2_BARE_ON_CRC};
