/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - AM-II's library; see host.h. */
#include "sim/myrinet/systems/am2/host.h"

#include <stddef.h>

/* Host operations, as everywhere: of a call, of a message, of a handler. */
enum { LIBRARY = 35, MESSAGE = 15, HANDLER = 12, FOR_EXPERIMENTS = 1 };

/* In the frame where the endpoint is just now. */
static uint32_t in_frame(const struct am2 *f, size_t offset)
{
    return f->resident.kernel->card +
           (uint32_t)(offsetof(struct am2_card, frame) + f->resident.frame * sizeof(struct am2_frame) + offset);
}

static uint32_t in_slot(const struct am2 *f, uint32_t slot, size_t offset)
{
    return in_frame(f, offsetof(struct am2_frame, slot) + slot * sizeof(struct am2_slot) + offset);
}

static uint32_t less(uint32_t from, uint32_t n)
{
    return from > n ? from - n : 0;
}

static void came_back(struct am2 *f, uint32_t slot)
{
    struct myri_task *t = f->resident.task;
    uint32_t reason = 0, to = f->to[slot];
    (void)myri_task_load(t, in_slot(f, slot, offsetof(struct am2_slot, reason)), &reason);
    myri_task_store(t, in_slot(f, slot, offsetof(struct am2_slot, state)), AM2_FREE);
    if (to < AM2_NAMES) {
        f->sent[to] = less(f->sent[to], f->counted[slot]);
        f->owed[to] += f->carried[slot];
    }
    if (!f->counted[slot]) /* credits alone, which go again with others */
        return;
    myri_task_operate(t, HANDLER, "handler");
    f->handled++;
    f->back++;
    f->why = reason;
    if (f->returned)
        f->returned(f, to, reason);
}

/* Whether the slot can be used; what came back is told. */
static int slot_is_free(struct am2 *f, uint32_t slot)
{
    uint32_t state = AM2_FREE;
    if (!f->used[slot])
        return 1;
    if (myri_task_load(f->resident.task, in_slot(f, slot, offsetof(struct am2_slot, state)), &state) < 0 ||
        (state != AM2_FREE && state != AM2_RETURNED))
        return 0;
    f->used[slot] = 0;
    if (state == AM2_RETURNED)
        came_back(f, slot);
    return 1;
}

/* Into a free slot: with the credits that are owed there. */
static void fill(struct am2 *f, uint32_t slot, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes)
{
    struct myri_task *t = f->resident.task;
    uint32_t words[AM2_SHORT / 4 + 1], at = in_slot(f, slot, offsetof(struct am2_slot, word));
    uint32_t owed = to < AM2_NAMES && f->window ? f->owed[to] : 0;
    uint32_t credits = owed < AM2_CREDITS_MOST ? owed : AM2_CREDITS_MOST;
    f->used[slot] = 1;
    f->to[slot] = to;
    f->carried[slot] = credits;
    f->counted[slot] = handler != AM2_CREDITS_ONLY;
    f->next++;
    if (to < AM2_NAMES) {
        f->owed[to] -= credits;
        f->sent[to] += f->counted[slot];
        f->owes &= ~(1u << to);
    }
    words[0] = handler << 24 | credits << 14 | bytes;
    myri_task_operate(t, MESSAGE, "message");
    if (bytes <= AM2_SHORT) {
        for (uint32_t i = 0; i < (bytes + 3) / 4; i++)
            words[1 + i] = myri_space_word(f->resident.space, t, from + 4 * i);
        myri_task_copy_loop(t, (bytes + 3) / 4);
        myri_task_combine(t, at + 4, words, 1 + (bytes + 3) / 4);
    } else {
        myri_space_copy(f->resident.space, t, f->out + slot * AM2_PLACE, from, bytes);
        myri_task_store(t, at + 4, words[0]);
    }
    myri_task_store(t, in_slot(f, slot, offsetof(struct am2_slot, to)), to);
    myri_task_store(t, in_slot(f, slot, offsetof(struct am2_slot, state)), bytes <= AM2_SHORT ? AM2_POSTED : AM2_FETCH);
}

/* The window to that name is closed: a credit may come, or a message come back. */
static void wait_for_window(struct am2 *f)
{
    f->held_back++;
    am2_hold(&f->resident);
    (void)slot_is_free(f, f->looked++ % AM2_SLOTS);
    am2_release(&f->resident);
    (void)am2_poll(f);
}

void am2_request(struct am2 *f, uint32_t to, uint32_t handler, uint32_t from, uint32_t bytes)
{
    myri_task_operate(f->resident.task, LIBRARY, "library");
    while (f->window && to < AM2_NAMES && f->sent[to] >= f->window && !f->hw->fault[0])
        wait_for_window(f);
    am2_hold(&f->resident);
    while (!slot_is_free(f, f->next % AM2_SLOTS) && !f->hw->fault[0]) {
        am2_release(&f->resident); /* others may have the frame meanwhile */
        (void)am2_poll(f);
        am2_hold(&f->resident);
    }
    if (!f->hw->fault[0])
        fill(f, f->next % AM2_SLOTS, to, handler, from, bytes);
    am2_release(&f->resident);
}

/* Credits that no message has taken along. Without a free slot they wait for the next poll. */
static void send_credits(struct am2 *f)
{
    uint32_t to = 0;
    while (!(f->owes >> to & 1))
        to++;
    if (slot_is_free(f, f->next % AM2_SLOTS))
        fill(f, f->next % AM2_SLOTS, to, AM2_CREDITS_ONLY, f->words, 0);
}

static void take_message(struct am2 *f)
{
    struct myri_task *t = f->resident.task;
    uint32_t k = f->taken % AM2_RING, first = 0, second = 0, word = 0, at = f->in + k * AM2_PLACE;
    uint32_t sram = in_frame(f, offsetof(struct am2_frame, ring) + k * 4 * AM2_SHORT_WORDS);
    (void)myri_task_load(t, sram, &first);
    (void)myri_task_load(t, sram + 4, &second);
    uint32_t bytes = second & AM2_BYTES, handler = second >> 24, credits = second >> 14 & 3;
    uint32_t from = f->number[first >> 24 & (AM2_NODES - 1)][first >> 1 & (AM2_ENDPOINTS - 1)];
    from = from ? from - 1 : AM2_NAMES;
    if (from < AM2_NAMES)
        f->sent[from] = less(f->sent[from], credits);
    if (bytes <= AM2_SHORT) {
        at = f->words;
        for (uint32_t i = 0; i < bytes; i += 4) {
            (void)myri_task_load(t, sram + 8 + i, &word);
            myri_space_set_word(f->resident.space, t, at + i, word);
        }
    }
    if (handler != AM2_CREDITS_ONLY) {
        myri_task_operate(t, MESSAGE + HANDLER, "handler");
        f->handled++;
        if (f->handler[handler])
            f->handler[handler](f, from, at, bytes);
        if (from < AM2_NAMES && f->window && ++f->owed[from] >= AM2_CREDITS_MOST)
            f->owes |= 1u << from;
    }
    myri_task_store(t, in_frame(f, offsetof(struct am2_frame, taken)), ++f->taken);
}

uint32_t am2_poll(struct am2 *f)
{
    uint32_t before = f->handled;
    myri_task_operate(f->resident.task, LIBRARY, "poll");
    am2_hold(&f->resident);
    if (f->ready == f->taken)
        (void)myri_task_load(f->resident.task, in_frame(f, offsetof(struct am2_frame, ready)), &f->ready);
    while (f->taken != f->ready && !f->hw->fault[0])
        take_message(f);
    for (uint32_t slot = 0; slot < AM2_SLOTS && f->handled == before; slot++)
        if (f->used[slot] && f->returned) /* who wants to hear of them looks for them */
            (void)slot_is_free(f, slot);
    if (f->owes && !f->hw->fault[0])
        send_credits(f);
    am2_release(&f->resident);
    return f->handled - before;
}

int am2_open(struct am2 *f, struct myri_hw *hw, uint32_t node, uint32_t endpoint, struct myri_space *space)
{
    f->hw = hw;
    f->window = AM2_WINDOW;
    f->out = myri_space_map_area(space, AM2_SLOTS * AM2_PLACE);
    f->in = myri_space_map_area(space, AM2_RING * AM2_PLACE);
    f->words = myri_space_map(space, AM2_SHORT);
    if (hw->fault[0])
        return -1;
    return am2_kernel_open(&f->resident, &f->kernel, hw, node, endpoint, space, myri_space_pin(space, f->out),
                           myri_space_pin(space, f->in));
}

void am2_map(struct am2 *f, uint32_t k, uint32_t node, uint32_t endpoint)
{
    if (k >= AM2_NAMES || node >= AM2_NODES || endpoint >= AM2_ENDPOINTS)
        return;
    f->number[node][endpoint] = (uint8_t)(k + 1);
    am2_kernel_name(&f->resident, k, node, endpoint);
}

void am2_close(struct am2 *f)
{
    am2_kernel_close(&f->resident);
}

/* ---- experiments ---- */

enum { WAITING = 32 }; /* messages that came while this host sent */
struct am2_host_state {
    struct am2 am;
    struct am2_resident other[AM2_FRAMES]; /* endpoints of processes that send nothing */
    struct myri_side *side;
    uint32_t in, came, looked, bytes[WAITING], from[WAITING];
};

static void on_message(struct am2 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct am2_host_state *st = f->owner;
    struct myri_side *side = st->side;
    uint32_t k = st->came % WAITING, to = st->in + k * ((side->largest + 3) & ~3u);
    if (st->came - st->looked == WAITING || bytes > side->largest) {
        myri_hw_fault(f->hw, "node %u: %d messages wait for a program that only sends", side->node, WAITING);
        return;
    }
    if (bytes > AM2_SHORT)
        myri_side_copy(side, to, at, bytes);
    for (uint32_t i = 0; i < bytes && bytes <= AM2_SHORT; i += 4) /* read by loads, to where they belong */
        myri_side_set_word(side, to + i, myri_side_word(side, at + i));
    st->bytes[k] = bytes;
    st->from[k] = from;
    st->came++;
}

static int open_side(struct myri_side *side)
{
    struct am2_host_state *st = side->state;
    st->side = side;
    st->am.owner = st;
    st->am.handler[FOR_EXPERIMENTS] = on_message;
    st->in = myri_space_map(side->space, WAITING * ((side->largest + 3) & ~3u));
    int result = am2_open(&st->am, side->hw, side->node, side->process, side->space);
    for (uint32_t k = 1; k < side->processes && result == 0; k++)
        result = am2_kernel_open(&st->other[k], NULL, side->hw, side->node, side->process + k, side->space, 0, 0);
    return result;
}

static int open_bare(struct myri_side *side)
{
    struct am2_host_state *st = side->state;
    int result = open_side(side);
    st->am.window = 0; /* a message that is lost would close it */
    return result;
}

static void joined(struct myri_side *sides, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct am2_host_state *st = sides[i].state;
        st->am.resident.task = sides[i].task;
        for (uint32_t peer = 0; peer < n; peer++)
            if (peer != i)
                am2_map(&st->am, peer, sides[peer].node, sides[peer].process);
    }
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
    side->got = st->in + k * ((side->largest + 3) & ~3u);
    side->from = st->from[k];
    return st->bytes[k];
}

/* Until all that was sent is answered, also credits, so that a run ends with nothing on its way. */
static void finish(struct myri_side *side)
{
    struct am2_host_state *st = side->state;
    am2_hold(&st->am.resident);
    for (uint32_t slot = 0; slot < AM2_SLOTS; slot++)
        while (!slot_is_free(&st->am, slot) && !side->hw->fault[0])
            ;
    am2_release(&st->am.resident);
}

/* Those that the library has seen, and those that lie on the card. */
static uint32_t returned(const struct myri_side *side, const char **why)
{
    static const char *const reasons[] = {"", "the receiver's ring was full", "the node has no endpoint",
                                          "no answer came, however often they were sent",
                                          "the endpoint was in the host"};
    const struct am2_host_state *st = side->state;
    uint32_t n = st->am.back, reason = st->am.why;
    for (uint32_t slot = 0; slot < AM2_SLOTS; slot++) {
        uint32_t at = (uint32_t)(offsetof(struct am2_frame, slot) + slot * sizeof(struct am2_slot));
        if (!st->am.used[slot] || !st->am.counted[slot] ||
            am2_kernel_peek(&st->am.resident, at + (uint32_t)offsetof(struct am2_slot, state)) != AM2_RETURNED)
            continue;
        n++;
        reason = am2_kernel_peek(&st->am.resident, at + (uint32_t)offsetof(struct am2_slot, reason));
    }
    *why = reasons[reason <= AM2_ABSENT ? reason : 0];
    return n;
}

static const struct myri_issues issues = {.transfer = "stores to 128 B, DMA",
                                          .translation = "DMA areas",
                                          .protection = "yes",
                                          .control = "poll",
                                          .reliability = "card, alternating bit",
                                          .to_many = "no"};
#define AM2_SYSTEM(called, titled, firmware, opener)                                                      \
    .name = called, .title = titled, .source = "Bhoedjang et al. 1998, table 1 and text",                 \
    .object = "systems/am2/" firmware, .machines = "H-PP", .state_bytes = sizeof(struct am2_host_state),  \
    .most = AM2_DATA, .look = LIBRARY, .issues = &issues, .open = opener, .joined = joined, .virtual = 1, \
    .processes_most = AM2_FRAMES, .send = send_message, .receive = receive_message, .returned = returned, \
    .finish = finish, .looks_across = 1

static const char AM2_BARE_ON_CRC[] = "nobody answers, which is what it is for";

const struct myri_system myri_system_am2 = {AM2_SYSTEM("am2", "AM-II", "firmware", open_side), .recovers = 1,
                                            .any_order = 1};
const struct myri_system myri_system_am2_bare = {
    AM2_SYSTEM("am2-bare", "AM-II without answers and timers", "firmware-bare", open_bare), .lossy = 1,
    .on_crc = AM2_BARE_ON_CRC};
const struct myri_system myri_system_am2_tuned = {
    AM2_SYSTEM("am2-tuned", "AM-II with firmware written for speed alone", "firmware-tuned", open_side), .recovers = 1,
    .any_order = 1};
const struct myri_system myri_system_am2_tuned_bare = {
    AM2_SYSTEM("am2-tuned-bare", "AM-II without answers and timers, written for speed alone", "firmware-tuned-bare",
               open_bare),
    .lossy = 1, .on_crc = AM2_BARE_ON_CRC};
