/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - U-Net's library and kernel; see host.h. */
#include "sim/myrinet/systems/unet/host.h"

#include <stddef.h>
#include <string.h>

enum { LIBRARY = 35, HANDLER = 12 };

#define IN_CARD(u, field) ((u)->card + (uint32_t)offsetof(struct unet_card, field))

static uint32_t in_endpoint(const struct unet *u, size_t field)
{
    return IN_CARD(u, endpoint) + (uint32_t)(u->endpoint * sizeof(struct unet_endpoint) + field);
}

#define IN_ENDPOINT(u, field) in_endpoint(u, offsetof(struct unet_endpoint, field))

/* ---- the kernel ---- */

/* Whether a place of the cache is free now: what was there is pinned no more, unless the engine moves it. */
static int empty(struct unet *u, uint32_t slot)
{
    uint32_t tag = myri_card_peek(u->card_of, IN_ENDPOINT(u, tag) + 4 * slot);
    if (!tag)
        return 1;
    if (myri_card_peek(u->card_of, IN_CARD(u, moving)) == tag &&
        myri_card_peek(u->card_of, IN_CARD(u, moving_endpoint)) == u->endpoint)
        return 0;
    myri_card_poke(u->card_of, IN_ENDPOINT(u, tag) + 4 * slot, 0);
    myri_space_unpin(u->space, (tag - 1) * u->hw->page);
    u->releases++;
    return 1;
}

/* 0, or -1: there is no such page, or no place for it now (1). */
static int install(struct unet *u, uint32_t page)
{
    uint32_t slot = page & (UNET_TLB - 1);
    if (!empty(u, slot))
        return 1;
    uint32_t physical = myri_space_pin(u->space, page * u->hw->page);
    if (!physical)
        return -1;
    myri_card_poke(u->card_of, IN_ENDPOINT(u, physical) + 4 * slot, physical);
    myri_card_poke(u->card_of, IN_ENDPOINT(u, tag) + 4 * slot, page + 1);
    u->pins++;
    return 0;
}

static uint64_t driver_cost(struct myri_host *h, uint32_t value)
{
    return value & 1 ? myri_machine_us(&h->hw->machine, MYRI_M_pin_page) : 0;
}

static void driver(struct myri_host *h, uint32_t value)
{
    struct unet_kernel *kernel = h->driver_arg;
    struct myri_card *c = &h->hw->card[h->id];
    uint32_t card = myri_card_symbol(h->hw, "card");
    uint32_t i = myri_card_peek(c, card + (uint32_t)offsetof(struct unet_card, missing));
    if (!(value & 1) || !i || i > UNET_ENDPOINTS || !kernel->of[i - 1])
        return;
    struct unet *u = kernel->of[i - 1];
    uint32_t page = myri_card_peek(c, IN_CARD(u, missed));
    myri_card_wake(c, myri_hw_now(h->hw));
    if (u->area_bytes || install(u, page) < 0)
        myri_card_poke(c, IN_CARD(u, refused_page), page + 1);
    myri_card_poke(c, IN_CARD(u, missing), 0);
}

int unet_ep_create(struct unet *u, struct myri_hw *hw, uint32_t node, uint32_t endpoint, struct myri_space *space,
                   uint32_t area_bytes, int notify)
{
    uint32_t shift = 0, page = hw->page;
    memset(u, 0, sizeof *u);
    u->hw = hw;
    u->host = &hw->host[node];
    u->card_of = &hw->card[node];
    u->space = space;
    u->endpoint = endpoint;
    u->area_bytes = area_bytes;
    u->card = myri_card_symbol(hw, "card");
    u->records = myri_space_map(space, page);
    u->area = area_bytes ? myri_space_map(space, area_bytes) : 0;
    if (endpoint >= UNET_ENDPOINTS || area_bytes / page > UNET_TLB || hw->fault[0])
        return -1;
    while (1u << shift < page)
        shift++;
    myri_card_poke(u->card_of, IN_CARD(u, page_shift), shift);
    myri_card_poke(u->card_of, IN_CARD(u, nodes), hw->nodes);
    myri_card_poke(u->card_of, IN_ENDPOINT(u, records_at), myri_space_pin(space, u->records));
    myri_card_poke(u->card_of, IN_ENDPOINT(u, notify), (uint32_t)notify);
    if (myri_card_peek(u->card_of, IN_CARD(u, endpoints)) <= endpoint)
        myri_card_poke(u->card_of, IN_CARD(u, endpoints), endpoint + 1);
    for (uint32_t i = 0; i < hw->nodes; i++)
        myri_card_poke(u->card_of, IN_CARD(u, route) + 4 * i, ROUTE_VALID | i);
    for (uint32_t at = u->area; at < u->area + area_bytes; at += page)
        if (install(u, at / page))
            return -1;
    if (!u->host->driver_arg)
        u->host->driver_arg = &u->kernel;
    ((struct unet_kernel *)u->host->driver_arg)->of[endpoint] = u;
    u->host->driver = driver;
    u->host->driver_cost = driver_cost;
    return 0;
}

static int free_channel(const struct unet *u)
{
    for (uint32_t k = 0; k < UNET_CHANNELS; k++)
        if (!myri_card_peek(u->card_of, IN_CARD(u, channel) + k * (uint32_t)sizeof(struct unet_channel)))
            return (int)k;
    return -1;
}

static void set_channel(const struct unet *u, uint32_t k, const struct unet *other, uint32_t its)
{
    const uint32_t words[] = {UNET_VALID, other->host->id, its, u->endpoint};
    for (uint32_t i = 0; i < 4; i++)
        myri_card_poke(u->card_of, IN_CARD(u, channel) + k * (uint32_t)sizeof(struct unet_channel) + 4 * i, words[i]);
}

int unet_chan_open(struct unet *u, struct unet *other, uint32_t *mine, uint32_t *its)
{
    int here = free_channel(u), there = free_channel(other);
    if (here < 0 || there < 0 || u->host == other->host)
        return -1;
    *mine = (uint32_t)here;
    *its = (uint32_t)there;
    set_channel(u, *mine, other, *its);
    set_channel(other, *its, u, *mine);
    return 0;
}

int unet_page_out(struct unet *u, uint32_t at)
{
    uint32_t page = at / u->hw->page, slot = page & (UNET_TLB - 1);
    myri_card_wake(u->card_of, myri_hw_now(u->hw));
    if (u->area_bytes)
        return -1; /* that is pinned for good */
    if (myri_card_peek(u->card_of, IN_ENDPOINT(u, tag) + 4 * slot) == page + 1 && !empty(u, slot))
        return -1;
    return myri_space_page_out(u->space, at);
}

/* ---- library ---- */

uint32_t unet_send(struct unet *u, uint32_t channel, uint32_t at, uint32_t bytes)
{
    uint32_t entry = IN_ENDPOINT(u, queue) + u->sent % UNET_QUEUE * (uint32_t)sizeof(struct unet_message);
    const uint32_t words[] = {channel, at};
    myri_task_operate(u->task, LIBRARY, "library");
    if (u->sent >= UNET_QUEUE)
        unet_sent(u, u->sent - UNET_QUEUE);
    myri_task_store_words(u->task, entry + 4, words, 2);
    myri_task_store(u->task, entry, bytes);
    return u->sent++;
}

void unet_sent(struct unet *u, uint32_t number)
{
    uint32_t is;
    if (u->sent - number <= UNET_QUEUE)
        (void)myri_task_await(
            u->task, IN_ENDPOINT(u, queue) + number % UNET_QUEUE * (uint32_t)sizeof(struct unet_message), 0, 0, &is);
}

void unet_free_push(struct unet *u, uint32_t at)
{
    myri_task_store(u->task, IN_ENDPOINT(u, free) + 4 * (u->freed % UNET_FREE), at);
    myri_task_store(u->task, IN_ENDPOINT(u, freed), ++u->freed);
}

uint32_t unet_recv_poll(struct unet *u, uint32_t *channel, uint32_t *at, uint64_t until)
{
    uint32_t record = myri_space_at(u->space, u->task, u->records) + u->received % UNET_RECORDS * UNET_RECORD;
    uint32_t old = u->received >= UNET_RECORDS ? u->received + 1 - UNET_RECORDS : 0;
    if (myri_task_poll(u->task, record, old, until) == old)
        return 0;
    myri_task_operate(u->task, LIBRARY + HANDLER, "handler");
    u->received++;
    *at = myri_host_word(u->host, record + 4);
    *channel = myri_host_word(u->host, record + 12);
    return myri_host_word(u->host, record + 8);
}

/* ---- experiments ---- */

enum { BUFFERS = UNET_FREE - 2 };
struct unet_host_state {
    struct unet unet;
    uint32_t buffers, in, mine[MYRI_HW_NODES], node_of[UNET_CHANNELS]; /* in: where what came is copied to (U-Net) */
    uint32_t held;                                                     /* buffer that the program looks at, or 0 */
};

static int opened(struct myri_side *side, int mm)
{
    struct unet_host_state *st = side->state;
    struct unet *u = &st->unet;
    uint32_t all = (BUFFERS + UNET_QUEUE) * UNET_DATA;
    if (unet_ep_create(u, side->hw, side->node, 0, side->space, mm ? 0 : all, side->notify) < 0)
        return -1;
    myri_card_poke(u->card_of, IN_CARD(u, endpoints), side->processes);
    st->buffers = mm ? myri_space_map(side->space, all) : u->area;
    st->in = mm ? 0 : myri_space_map(side->space, UNET_DATA);
    if (side->hw->fault[0])
        return -1;
    for (uint32_t k = 0; k < BUFFERS; k++)
        myri_card_poke(u->card_of, IN_ENDPOINT(u, free) + 4 * k, st->buffers + k * UNET_DATA);
    u->freed = BUFFERS;
    myri_card_poke(u->card_of, IN_ENDPOINT(u, freed), BUFFERS);
    for (uint32_t page = st->buffers / side->hw->page; mm && !side->cold && page < (st->buffers + all) / side->hw->page;
         page++)
        if (install(u, page) < 0)
            return -1;
    return 0;
}

static int open_area(struct myri_side *side)
{
    return opened(side, 0);
}

static int open_mm(struct myri_side *side)
{
    return opened(side, 1);
}

static void joined(struct myri_side *sides, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct unet_host_state *st = sides[i].state;
        st->unet.task = sides[i].task;
        for (uint32_t peer = 0; peer < i; peer++) {
            struct unet_host_state *other = sides[peer].state;
            (void)unet_chan_open(&st->unet, &other->unet, &st->mine[peer], &other->mine[i]);
            st->node_of[st->mine[peer]] = peer;
            other->node_of[other->mine[i]] = i;
        }
        sides[i].task->map_from = IN_ENDPOINT(&st->unet, queue);
        sides[i].task->map_to = IN_ENDPOINT(&st->unet, used);
    }
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct unet_host_state *st = side->state;
    struct unet *u = &st->unet;
    if (!u->area_bytes) {
        unet_sent(u, unet_send(u, st->mine[to], side->out, bytes));
        return;
    }
    uint32_t place = st->buffers + (BUFFERS + u->sent % UNET_QUEUE) * UNET_DATA;
    if (u->sent >= UNET_QUEUE)
        unet_sent(u, u->sent - UNET_QUEUE);
    myri_side_copy(side, place, side->out, bytes);
    (void)unet_send(u, st->mine[to], place, bytes);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct unet_host_state *st = side->state;
    uint32_t channel, at;
    (void)bytes;
    if (st->held)
        unet_free_push(&st->unet, st->held);
    st->held = 0;
    uint32_t n = unet_recv_poll(&st->unet, &channel, &at, until);
    if (!n)
        return 0;
    side->from = st->node_of[channel % UNET_CHANNELS];
    side->got = st->held = at;
    if (st->unet.area_bytes) {
        myri_side_copy(side, st->in, at, n);
        side->got = st->in;
        unet_free_push(&st->unet, at);
        st->held = 0;
    }
    return n;
}

static int page_out(struct myri_side *side, uint32_t at)
{
    struct unet_host_state *st = side->state;
    return unet_page_out(&st->unet, at);
}

static const struct myri_issues area_issues = {.transfer = "DMA, pinned area",
                                               .translation = "offset in area",
                                               .protection = "yes",
                                               .control = "both",
                                               .reliability = "none: drops",
                                               .to_many = "no"};
static const struct myri_issues mm_issues = {.transfer = "DMA",
                                             .translation = "TLB on card",
                                             .protection = "yes",
                                             .control = "both",
                                             .reliability = "none: drops",
                                             .to_many = "no"};
#define UNET_SYSTEM(id, called, titled, firmware, opener, mm)             \
    const struct myri_system myri_system_##id = {                         \
        .name = called,                                                   \
        .title = titled,                                                  \
        .source = "Lauria et al. 1998, section 5; Bhoedjang et al. 1998", \
        .object = "systems/unet/" firmware,                               \
        .machines = "H-PP",                                               \
        .state_bytes = sizeof(struct unet_host_state),                    \
        .most = UNET_DATA,                                                \
        .virtual = 1,                                                     \
        .processes_most = UNET_ENDPOINTS,                                 \
        .lossy = 1,                                                       \
        .any_order = 1, /* a message is a packet */                       \
        .translates = mm,                                                 \
        .notifies = 1,                                                    \
        .issues = mm ? &mm_issues : &area_issues,                         \
        .on_crc = "it is unreliable (Bhoedjang et al. 1998, table 1)",    \
        .open = opener,                                                   \
        .joined = joined,                                                 \
        .page_out = mm ? page_out : NULL,                                 \
        .send = send_message,                                             \
        .receive = receive_message,                                       \
    }
UNET_SYSTEM(unet, "unet", "U-Net", "firmware", open_area, 0);
UNET_SYSTEM(unet_mm, "unet-mm", "U-Net/MM", "firmware", open_mm, 1);
UNET_SYSTEM(unet_tuned, "unet-tuned", "U-Net with firmware written for speed alone", "firmware-tuned", open_area, 0);
UNET_SYSTEM(unet_mm_tuned, "unet-mm-tuned", "U-Net/MM with firmware written for speed alone", "firmware-tuned", open_mm,
            1);
