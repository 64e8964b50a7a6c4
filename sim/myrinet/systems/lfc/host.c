/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - LFC's library; see host.h. */
#include "sim/myrinet/systems/lfc/host.h"

#include <stddef.h>

/* Host operations, as everywhere: of a call, of a packet, of an upcall. */
enum { LIBRARY = 35, PACKET = 15, UPCALL = 12, INTD_US = 70, FRAGMENT = LFC_DATA - 8 };

#define IN_CARD(f, field) ((f)->card + (uint32_t)offsetof(struct lfc_card, field))

static uint32_t flag_at(const struct lfc *f)
{
    return f->ring + (f->next % LFC_RING + 1) * LFC_PLACE - 4;
}

/* The card is told, once for all that a look has found: by that it knows that somebody polls. */
static void tell(struct lfc *f)
{
    if (f->told != f->taken)
        myri_task_store(f->side->task, IN_CARD(f, taken), f->told = f->taken);
}

static void release(struct lfc *f)
{
    while (f->taken != f->next && !f->kept[f->taken % LFC_RING]) {
        myri_host_set_word(f->side->host, f->ring + (f->taken % LFC_RING + 1) * LFC_PLACE - 4, 0);
        f->taken++;
    }
}

static void take_packet(struct lfc *f)
{
    struct myri_host *h = f->side->host;
    uint32_t end = flag_at(f) + 4, place = f->next % LFC_RING, mark = myri_host_word(h, end - 4);
    uint32_t bytes = myri_host_word(h, end - 8), at = end - 8 - ((bytes + 3) & ~3u), from = mark >> 24 & 0x7f;
    if (from >= f->side->nodes || bytes > LFC_DATA)
        return;
    myri_task_operate(f->side->task, PACKET + UPCALL, "upcall");
    f->kept[place] = 1;
    f->next++;
    f->handled++;
    if (!f->upcall(f, from, at, bytes, (struct lfc_packet){place}))
        f->kept[place] = 0;
    release(f);
}

uint32_t lfc_poll(struct lfc *f)
{
    uint32_t before = f->handled;
    while (f->next - f->taken < LFC_RING && myri_task_look(f->side->task, flag_at(f)) && !f->side->hw->fault[0])
        take_packet(f);
    tell(f);
    return f->handled - before;
}

void lfc_packet_free(struct lfc *f, struct lfc_packet p)
{
    myri_task_operate(f->side->task, PACKET, "free");
    f->kept[p.place] = 0;
    release(f);
    if (f->taken - f->told >= LFC_RING / 8)
        tell(f);
}

/* ---- sending ---- */

uint32_t lfc_send_alloc(struct lfc *f)
{
    struct myri_task *t = f->side->task;
    uint32_t slot = f->posted % LFC_SLOTS, what = 1;
    myri_task_operate(t, LIBRARY, "library");
    if (f->posted < LFC_SLOTS)
        return slot;
    while (!f->side->hw->fault[0] && myri_task_load(t, IN_CARD(f, what) + 4 * slot, &what) == 0 && what) {
        (void)lfc_poll(f);
        myri_task_spend(t, myri_machine_us(&f->side->hw->machine, MYRI_M_look_pause), "pause");
    }
    return slot;
}

static void launch(struct lfc *f, uint32_t slot, uint32_t what, uint32_t from, uint32_t bytes)
{
    struct myri_task *t = f->side->task;
    uint32_t words[LFC_WORDS], n = (bytes + 3) / 4, to_all = what >> 24 & 1;
    myri_task_gather(t, from, words, n);
    words[n] = bytes;
    words[n + 1] = LFC_VALID | f->side->node << 24 | to_all;
    myri_task_operate(t, PACKET, "packet");
    myri_task_combine(t, IN_CARD(f, packet) + (LFC_BUFFERS + slot) * 4 * LFC_WORDS + 4, words, n + 2);
    myri_task_store(t, IN_CARD(f, what) + 4 * slot, what | bytes);
    myri_task_store(t, IN_CARD(f, posted), ++f->posted);
}

void lfc_ucast_launch(struct lfc *f, uint32_t to, uint32_t slot, uint32_t from, uint32_t bytes)
{
    launch(f, slot, to << 16 | 1u << 25, from, bytes); /* never 0, which says that it is free */
}

void lfc_bcast_launch(struct lfc *f, uint32_t slot, uint32_t from, uint32_t bytes)
{
    launch(f, slot, 1u << 24 | 1u << 25, from, bytes);
}

void lfc_intr_disable(struct lfc *f)
{
    if (f->disabled++ == 0)
        myri_task_store(f->side->task, IN_CARD(f, interrupt), 0);
}

void lfc_intr_enable(struct lfc *f)
{
    if (f->disabled && --f->disabled == 0)
        myri_task_store(f->side->task, IN_CARD(f, interrupt), 1);
}

uint32_t lfc_fetch_and_add(struct lfc *f, uint32_t node, uint32_t variable, uint32_t addend)
{
    struct myri_task *t = f->side->task;
    const uint32_t none[2] = {0, 0}, what[2] = {node, variable << 24 | (addend & 0xffffff)};
    myri_task_operate(t, LIBRARY, "library");
    myri_task_store_words(t, IN_CARD(f, ask_node), what, 2);
    myri_task_store(t, IN_CARD(f, question), ++f->asked);
    while (!f->side->hw->fault[0]) {
        const uint32_t at[2] = {f->value + 4, flag_at(f)};
        if (myri_task_poll_among(t, at, none, 2, 0, RNL_SIM_NEVER) == 0)
            break;
        (void)lfc_poll(f);
    }
    myri_host_set_word(f->side->host, f->value + 4, 0);
    return myri_host_word(f->side->host, f->value);
}

int lfc_start(struct lfc *f, struct myri_side *side)
{
    struct myri_card *c = side->card;
    f->side = side;
    f->card = myri_card_symbol(side->hw, "card");
    f->ring = myri_host_take(side->host, LFC_RING * LFC_PLACE, 1);
    f->value = myri_host_take(side->host, 8, 1);
    if (side->hw->fault[0])
        return -1;
    myri_host_ring(side->host, f->ring, LFC_PLACE, LFC_RING);
    myri_card_poke(c, IN_CARD(f, ring_at), f->ring);
    myri_card_poke(c, IN_CARD(f, value_at), f->value);
    myri_card_poke(c, IN_CARD(f, nodes), side->nodes);
    uint32_t buffers = (side->buffers ? side->buffers : LFC_BUFFERS) - 2;
    myri_card_poke(c, IN_CARD(f, credits), buffers / (side->nodes > 1 ? side->nodes - 1 : 1));
    myri_card_poke(c, IN_CARD(f, interrupt), (uint32_t)side->notify);
    myri_card_poke(c, IN_CARD(f, watchdog), 2 * INTD_US);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(c, IN_CARD(f, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

/* ---- experiments: messages of several packets, each with the bytes of the message and where in it it belongs ---- */

struct lfc_host_state {
    struct lfc lfc;
    uint32_t in[MYRI_HW_NODES], filled[MYRI_HW_NODES];
    uint32_t staging;
    struct {
        uint32_t at, bytes, from;
        struct lfc_packet packet;
        int in_place;
    } here[LFC_RING];
    uint32_t came, looked;
    struct lfc_packet kept;
    int keeps;
};

static int on_packet(struct lfc *f, uint32_t from, uint32_t at, uint32_t bytes, struct lfc_packet p)
{
    struct lfc_host_state *st = f->owner;
    struct myri_host *h = f->side->host;
    uint32_t whole = myri_host_word(h, at + bytes - 8), n = bytes - 8, k = st->came % LFC_RING;
    if (bytes < 8 || whole > f->side->largest || st->filled[from] + n > whole)
        return 0;
    st->here[k].from = from;
    st->here[k].bytes = whole;
    if (n == whole) {
        st->here[k].at = at;
        st->here[k].packet = p;
        st->here[k].in_place = 1;
        st->came++;
        return 1;
    }
    myri_task_copy(f->side->task, st->in[from] + st->filled[from], at, n);
    st->filled[from] += n;
    if (st->filled[from] == whole) {
        st->filled[from] = 0;
        st->here[k].at = st->in[from];
        st->here[k].in_place = 0;
        st->came++;
    }
    return 0;
}

static int open_side(struct myri_side *side)
{
    struct lfc_host_state *st = side->state;
    st->lfc.owner = st;
    st->lfc.upcall = on_packet;
    for (uint32_t i = 0; i < side->nodes && side->largest > FRAGMENT; i++)
        st->in[i] = i == side->node ? 0 : myri_host_take(side->host, side->largest, 0);
    st->staging = myri_host_take(side->host, LFC_DATA, 0);
    return lfc_start(&st->lfc, side);
}

/* The program's own header lies behind its data; gathering both is the copy of the launch. */
static void put(struct myri_side *side, uint32_t to, uint32_t bytes, int all)
{
    struct lfc_host_state *st = side->state;
    for (uint32_t at = 0; at < bytes; at += FRAGMENT) {
        uint32_t n = bytes - at < FRAGMENT ? bytes - at : FRAGMENT, slot = lfc_send_alloc(&st->lfc);
        for (uint32_t i = 0; i < n; i += 4)
            myri_host_set_word(side->host, st->staging + i, myri_host_word(side->host, side->out + at + i));
        myri_host_set_word(side->host, st->staging + n, bytes);
        myri_host_set_word(side->host, st->staging + n + 4, at);
        if (all)
            lfc_bcast_launch(&st->lfc, slot, st->staging, n + 8);
        else
            lfc_ucast_launch(&st->lfc, to, slot, st->staging, n + 8);
    }
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    put(side, to, bytes, 0);
}

static void send_to_all(struct myri_side *side, uint32_t bytes)
{
    put(side, 0, bytes, 1);
}

static uint32_t fetch_number(struct myri_side *side)
{
    struct lfc_host_state *st = side->state;
    return lfc_fetch_and_add(&st->lfc, 0, 0, 1);
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct lfc_host_state *st = side->state;
    (void)bytes;
    if (st->keeps)
        lfc_packet_free(&st->lfc, st->kept);
    st->keeps = 0;
    while (st->came == st->looked) {
        if (side->hw->fault[0] || !myri_task_poll_by_call(side->task, flag_at(&st->lfc), 0, until, LIBRARY)) {
            tell(&st->lfc);
            return 0;
        }
        take_packet(&st->lfc);
        if (st->lfc.taken - st->lfc.told >= LFC_RING / 8)
            tell(&st->lfc);
    }
    tell(&st->lfc);
    uint32_t k = st->looked++ % LFC_RING;
    side->got = st->here[k].at;
    side->from = st->here[k].from;
    st->keeps = st->here[k].in_place;
    st->kept = st->here[k].packet;
    return st->here[k].bytes;
}

static const struct myri_issues issues = {.transfer = "stores, combined",
                                          .translation = "none to send",
                                          .protection = "none",
                                          .control = "both, watchdog",
                                          .reliability = "card credits",
                                          .to_many = "cards forward"};
#define LFC_SYSTEM(called, titled, firmware)                                                                          \
    {                                                                                                                 \
        .name = called, .title = titled, .source = "Bhoedjang et al. 1998, table 1 and text",                         \
        .object = "systems/lfc/" firmware, .machines = "H-PP", .state_bytes = sizeof(struct lfc_host_state),          \
        .most = 65536, .look = LIBRARY, .buffers_least = 2, .buffers_most = LFC_BUFFERS, .notifies = 1,               \
        .issues = &issues, .on_crc = LFC_ON_CRC, .open = open_side, .send = send_message, .receive = receive_message, \
        .to_all = send_to_all, .fetch = fetch_number                                                                  \
    }

const struct myri_system myri_system_lfc = LFC_SYSTEM("lfc", "LFC", "firmware");
const struct myri_system myri_system_lfc_tuned =
    LFC_SYSTEM("lfc-tuned", "LFC with firmware written for speed alone", "firmware-tuned");
