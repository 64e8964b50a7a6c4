/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - VMMC-2's library and its kernel module; see host.h. */
#include "sim/myrinet/systems/vmmc2/host.h"

#include <stddef.h>

/* Host operations, as everywhere: of a call, of a page of it, of a handler. */
enum { LIBRARY = 35, PAGE = 15, HANDLER = 12, TICK_US = 100, PATIENCE = 4, IN_USE = 0x7fffffff };

#define IN_CARD(v, field) ((v)->card + (uint32_t)offsetof(struct vmmc2_card, field))

static uint32_t in_process(const struct vmmc2 *v, size_t field)
{
    return IN_CARD(v, process) + (uint32_t)(v->process * sizeof(struct vmmc2_process) + field);
}

#define IN_PROCESS(v, field) in_process(v, offsetof(struct vmmc2_process, field))

/* ---- the kernel module ---- */

static void put_reference(struct vmmc2 *v, uint32_t page)
{
    uint32_t address = myri_space_pin(v->space, page * v->hw->page);
    myri_host_set_word(v->host, v->table + 4 * page, address);
    v->pinned++;
    v->pins++;
}

/* Takes it out of the table, and of the card's cache. */
static void drop_reference(struct vmmc2 *v, uint32_t page)
{
    uint32_t tag = (v->process << 16 | page) + 1, slot = (page + (v->process << 6)) & (VMMC2_CACHE - 1);
    myri_host_set_word(v->host, v->table + 4 * page, 0);
    myri_card_wake(v->card_of, myri_hw_now(v->hw));
    myri_card_poke(v->card_of, IN_CARD(v, generation), myri_card_peek(v->card_of, IN_CARD(v, generation)) + 1);
    if (myri_card_peek(v->card_of, IN_CARD(v, tag) + 4 * slot) == tag)
        myri_card_poke(v->card_of, IN_CARD(v, tag) + 4 * slot, 0);
    myri_space_unpin(v->space, page * v->hw->page);
    v->used[page] = 0;
    v->pinned--;
    v->releases++;
}

/* ---- references ---- */

static uint32_t done(const struct vmmc2 *v)
{
    return myri_host_word(v->host, v->status);
}

/* Nothing is sent from a page that is referred to, and nothing comes to it. */
static int at_rest(const struct vmmc2 *v, uint32_t page, uint32_t sent)
{
    return !v->locked[page] && v->used[page] - 1 <= sent;
}

/* The page used longest ago, of those at rest; it is given up. 0: there is none. */
static int give_up_one(struct vmmc2 *v)
{
    uint32_t found = 0, sent = done(v);
    for (uint32_t page = 1; page <= v->space->pages; page++)
        if (v->used[page] && at_rest(v, page, sent) && (!found || v->used[page] < v->used[found]))
            found = page;
    if (found)
        drop_reference(v, found);
    return found != 0;
}

/* Pages from there on are pinned, and the kernel's table has them. */
static void refer(struct vmmc2 *v, uint32_t at, uint32_t bytes, uint32_t message)
{
    const struct myri_machine *m = &v->hw->machine;
    uint32_t first = at / v->hw->page, last = (at + bytes - 1) / v->hw->page, lacks = 0;
    for (uint32_t page = first; page <= last; page++)
        lacks += v->used[page] == 0;
    for (uint32_t k = 0; v->task && k < lacks && v->pinned + lacks > VMMC2_PINNED; k++)
        if (!give_up_one(v))
            break;
    if (lacks && v->task)
        myri_task_spend(v->task, myri_machine_us(m, MYRI_M_system_call) + lacks * myri_machine_us(m, MYRI_M_pin_page),
                        "pin");
    for (uint32_t page = first; page <= last; page++) {
        if (!v->used[page])
            put_reference(v, page);
        v->used[page] = message + 1;
    }
}

static void lock(struct vmmc2 *v, uint32_t at, uint32_t bytes, int by)
{
    for (uint32_t page = at / v->hw->page; bytes && page <= (at + bytes - 1) / v->hw->page; page++)
        v->locked[page] = (uint8_t)(v->locked[page] + by);
}

/* Nothing stays pinned: what was sent from, or received into, is given up. */
static void release(struct vmmc2 *v, uint32_t at, uint32_t bytes)
{
    if (v->keeps)
        return;
    myri_task_spend(v->task, myri_machine_us(&v->hw->machine, MYRI_M_system_call), "unpin");
    for (uint32_t page = at / v->hw->page; page <= (at + bytes - 1) / v->hw->page; page++)
        if (v->used[page] && !v->locked[page])
            drop_reference(v, page);
}

/* ---- daemons ---- */

int vmmc2_attach(struct vmmc2 *v, struct myri_hw *hw, uint32_t node, uint32_t process, struct myri_space *space)
{
    uint32_t shift = 0, references = MYRI_SPACE_PAGES + VMMC2_LINE;
    v->hw = hw;
    v->host = &hw->host[node];
    v->card_of = &hw->card[node];
    v->space = space;
    v->process = process;
    v->keeps = 1;
    v->card = myri_card_symbol(hw, "card");
    v->table = myri_host_take_table(v->host, 4 * references);
    uint32_t status = myri_space_map(space, hw->page);
    if (process >= VMMC2_PROCESSES || hw->fault[0])
        return -1;
    uint32_t status_at = myri_space_pin(space, status);
    v->status = myri_space_at(space, NULL, status);
    while (1u << shift < hw->page)
        shift++;
    struct myri_card *c = v->card_of;
    myri_card_poke(c, IN_CARD(v, page_shift), shift);
    myri_card_poke(c, IN_CARD(v, nodes), hw->nodes);
    myri_card_poke(c, IN_CARD(v, tick), 2 * TICK_US);
    myri_card_poke(c, IN_CARD(v, patience), PATIENCE);
    if (myri_card_peek(c, IN_CARD(v, processes)) <= process)
        myri_card_poke(c, IN_CARD(v, processes), process + 1);
    myri_card_poke(c, IN_PROCESS(v, table_at), v->table);
    myri_card_poke(c, IN_PROCESS(v, references), references);
    myri_card_poke(c, IN_PROCESS(v, status_at), status_at);
    for (uint32_t i = 0; i < hw->nodes; i++)
        myri_card_poke(c, IN_CARD(v, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

static uint32_t export_at(const struct vmmc2 *v, uint32_t k, size_t field)
{
    return IN_CARD(v, export) + (uint32_t)((v->process * VMMC2_EXPORTS + k) * sizeof(struct vmmc2_export) + field);
}

int vmmc2_export(struct vmmc2 *v, uint32_t importer, uint32_t places, uint32_t bytes, int notify)
{
    uint32_t k = v->exports, shift = 2;
    while (1u << shift < bytes)
        shift++;
    if (k == VMMC2_EXPORTS || places > VMMC2_RECORDS / 2 || (places & (places - 1)))
        return -1;
    uint32_t staging = myri_space_map(v->space, places << shift), records = myri_space_map(v->space, v->hw->page);
    if (v->hw->fault[0])
        return -1;
    refer(v, staging, places << shift, 0);
    lock(v, staging, places << shift, 1);
    const uint32_t words[] = {1,
                              importer,
                              staging / v->hw->page,
                              staging % v->hw->page,
                              places,
                              1u << shift,
                              shift,
                              myri_space_pin(v->space, records),
                              notify != 0};
    _Static_assert(sizeof words == offsetof(struct vmmc2_export, unused), "all of it is filled");
    for (uint32_t i = 0; i < sizeof words / 4; i++)
        myri_card_poke(v->card_of, export_at(v, k, 4 * i), words[i]);
    v->export[k].staging = staging;
    v->export[k].place_bytes = 1u << shift;
    v->export[k].places = places;
    v->export[k].records = records;
    return (int)v->exports++;
}

int vmmc2_import(struct vmmc2 *v, const struct vmmc2 *exporter, uint32_t export)
{
    if (v->imports == VMMC2_IMPORTS || export >= exporter->exports ||
        myri_card_peek(exporter->card_of, export_at(exporter, export, offsetof(struct vmmc2_export, importer))) !=
            v->host->id)
        return -1;
    myri_card_poke(v->card_of, IN_PROCESS(v, outgoing) + 4 * v->imports,
                   VMMC2_VALID | exporter->host->id << 16 | (exporter->process * VMMC2_EXPORTS + export));
    return (int)v->imports++;
}

int vmmc2_page_out(struct vmmc2 *v, uint32_t at)
{
    uint32_t page = at / v->hw->page;
    if (v->used[page] && !at_rest(v, page, done(v)))
        return -1;
    if (v->used[page])
        drop_reference(v, page);
    return myri_space_page_out(v->space, at);
}

/* ---- library ---- */

void vmmc2_redirect(struct vmmc2 *v, uint32_t k, uint32_t at, uint32_t bytes)
{
    uint32_t post = IN_PROCESS(v, post) + k * (uint32_t)sizeof(struct vmmc2_post), page = v->hw->page;
    myri_task_operate(v->task, LIBRARY, "library");
    refer(v, at, bytes, v->messages);
    lock(v, at, bytes, 1);
    v->export[k].posted = (struct vmmc2_buffer){at, bytes, 0};
    const uint32_t words[] = {at / page, at % page, bytes};
    myri_task_store_words(v->task, post + 4, words, 3);
    myri_task_store(v->task, post, v->export[k].taken + 1);
}

static uint32_t record_at(const struct vmmc2 *v, uint32_t k)
{
    return v->export[k].records + v->export[k].taken % VMMC2_RECORDS * VMMC2_RECORD;
}

uint32_t vmmc2_poll(struct vmmc2 *v, const uint32_t *exports, uint32_t n, uint32_t turn, uint64_t until)
{
    uint32_t at[VMMC2_EXPORTS], old[VMMC2_EXPORTS];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = exports[i], number = v->export[k].taken + 1;
        at[i] = myri_space_at(v->space, v->task, record_at(v, k));
        old[i] = number > VMMC2_RECORDS ? number - VMMC2_RECORDS : 0;
    }
    return myri_task_poll_among(v->task, at, old, n, turn, until);
}

uint32_t vmmc2_take(struct vmmc2 *v, uint32_t k)
{
    uint32_t record = record_at(v, k), where = myri_space_word(v->space, v->task, record + 4);
    uint32_t bytes = myri_space_word(v->space, v->task, record + 8), place = v->export[k].taken % v->export[k].places;
    struct vmmc2_buffer to = v->export[k].posted;
    myri_task_operate(v->task, HANDLER, "handler");
    if (where == VMMC2_STAGED && bytes <= to.bytes)
        myri_space_copy(v->space, v->task, to.at, v->export[k].staging + place * v->export[k].place_bytes, bytes);
    myri_task_store(v->task,
                    IN_PROCESS(v, post) + k * (uint32_t)sizeof(struct vmmc2_post) +
                        (uint32_t)offsetof(struct vmmc2_post, taken),
                    ++v->export[k].taken);
    lock(v, to.at, to.bytes, -1);
    if (to.bytes)
        release(v, to.at, to.bytes);
    v->export[k].posted.bytes = 0;
    return where != VMMC2_REFUSED && bytes <= to.bytes ? bytes : 0;
}

/* A place in the queue: those of messages that have left are known to be free, others are looked at across the bus. */
static void want_entry(struct vmmc2 *v)
{
    uint32_t k = v->requests % VMMC2_QUEUE, is;
    if (v->requests < VMMC2_QUEUE || (v->end_of[k] && (int32_t)(done(v) - v->end_of[k]) >= 0))
        return;
    (void)myri_task_await(v->task, IN_PROCESS(v, queue) + k * (uint32_t)sizeof(struct vmmc2_request), 0, 0, &is);
}

void vmmc2_post(struct vmmc2 *v, uint32_t from, uint32_t import, uint32_t bytes)
{
    uint32_t page = v->hw->page, most = page < VMMC2_DATA ? page : VMMC2_DATA, offset = 0;
    myri_task_operate(v->task, LIBRARY, "library");
    v->messages++;
    refer(v, from, bytes, v->messages);
    while (offset < bytes && !v->hw->fault[0]) {
        uint32_t at = from + offset, fits = page - at % page, n = bytes - offset < fits ? bytes - offset : fits;
        n = n < most ? n : most;
        uint32_t is_last = offset + n == bytes, k = v->requests % VMMC2_QUEUE;
        uint32_t entry = IN_PROCESS(v, queue) + k * (uint32_t)sizeof(struct vmmc2_request);
        myri_task_operate(v->task, PAGE, "page");
        want_entry(v);
        const uint32_t words[] = {(is_last ? VMMC2_LAST : 0) | import, offset, bytes, at / page, at % page};
        v->end_of[k] = is_last ? v->messages : 0;
        myri_task_store_words(v->task, entry + 4, words, 5);
        myri_task_store(v->task, entry, n);
        v->requests++;
        offset += n;
    }
}

void vmmc2_wait(struct vmmc2 *v)
{
    uint32_t is;
    while ((is = done(v)) != v->messages && !v->hw->fault[0])
        myri_task_poll(v->task, v->status, is, RNL_SIM_NEVER);
}

void vmmc2_send(struct vmmc2 *v, uint32_t from, uint32_t import, uint32_t bytes)
{
    vmmc2_post(v, from, import, bytes);
    vmmc2_wait(v);
    release(v, from, bytes);
}

/* ---- experiments ---- */

enum { STAGED_BYTES = 16384, STAGED = 4 };
struct vmmc2_host_state {
    struct vmmc2 vmmc;
    uint32_t in[MYRI_HW_NODES], import[MYRI_HW_NODES], exports[MYRI_HW_NODES]; /* of the peers, but for exports */
    uint32_t posted[MYRI_HW_NODES], turn;
};

static int opened(struct myri_side *side, uint32_t keeps)
{
    struct vmmc2_host_state *st = side->state;
    uint32_t staged = side->largest < STAGED_BYTES ? side->largest : STAGED_BYTES;
    if (vmmc2_attach(&st->vmmc, side->hw, side->node, 0, side->space) < 0)
        return -1;
    myri_card_poke(side->card, IN_CARD(&st->vmmc, processes), side->processes);
    st->vmmc.keeps = keeps;
    for (uint32_t peer = 0, n = 0; peer < side->nodes; peer++) {
        if (peer == side->node)
            continue;
        int k = vmmc2_export(&st->vmmc, peer, STAGED, staged, side->notify);
        st->in[peer] = myri_space_map(side->space, side->largest);
        if (k < 0 || side->hw->fault[0])
            return -1;
        st->exports[n++] = (uint32_t)k;
    }
    if (keeps && !side->cold) /* as it is once each page has been used */
        refer(&st->vmmc, side->out, side->reach, 0);
    return 0;
}

static int open_side(struct myri_side *side)
{
    return opened(side, 1);
}

static int open_without(struct myri_side *side)
{
    return opened(side, 0);
}

static void joined(struct myri_side *sides, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vmmc2_host_state *st = sides[i].state;
        st->vmmc.task = sides[i].task;
        for (uint32_t peer = 0; peer < n; peer++) {
            const struct vmmc2_host_state *other = sides[peer].state;
            if (peer != i)
                st->import[peer] = (uint32_t)vmmc2_import(&st->vmmc, &other->vmmc, other->exports[i - (i > peer)]);
        }
        sides[i].task->map_from = IN_PROCESS(&st->vmmc, queue);
        sides[i].task->map_to = IN_PROCESS(&st->vmmc, outgoing);
    }
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct vmmc2_host_state *st = side->state;
    vmmc2_send(&st->vmmc, side->out, st->import[to], bytes);
}

static void post_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct vmmc2_host_state *st = side->state;
    vmmc2_post(&st->vmmc, side->out, st->import[to], bytes);
}

/* The buffer of each peer is posted again when the program has looked at what was there. */
static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct vmmc2_host_state *st = side->state;
    uint32_t n = side->nodes - 1;
    for (uint32_t peer = 0; peer < side->nodes; peer++) {
        if (peer == side->node || st->posted[peer])
            continue;
        vmmc2_redirect(&st->vmmc, st->exports[peer - (peer > side->node)], st->in[peer], bytes);
        st->posted[peer] = 1;
    }
    uint32_t found = vmmc2_poll(&st->vmmc, st->exports, n, st->turn, until);
    if (found == n)
        return 0;
    uint32_t peer = found + (found >= side->node), got = vmmc2_take(&st->vmmc, st->exports[found]);
    st->turn = found + 1 < n ? found + 1 : 0;
    st->posted[peer] = 0;
    side->got = st->in[peer];
    side->from = peer;
    return got;
}

static int page_out(struct myri_side *side, uint32_t at)
{
    struct vmmc2_host_state *st = side->state;
    return vmmc2_page_out(&st->vmmc, at);
}

static const struct myri_issues issues = {.transfer = "DMA",
                                          .translation = "UTLB, card caches",
                                          .protection = "yes",
                                          .control = "both",
                                          .reliability = "card, sent again",
                                          .to_many = "no"};
#define VMMC2_SYSTEM(id, called, titled, firmware, opener, keeps)                              \
    const struct myri_system myri_system_##id = {                                              \
        .name = called,                                                                        \
        .title = titled,                                                                       \
        .source = "Lauria et al. 1998, section 5; Bhoedjang et al. 1998, address translation", \
        .object = "systems/vmmc2/" firmware,                                                   \
        .machines = "H-PP",                                                                    \
        .state_bytes = sizeof(struct vmmc2_host_state),                                        \
        .most = 1 << 20,                                                                       \
        .virtual = 1,                                                                          \
        .processes_most = VMMC2_PROCESSES,                                                     \
        .translates = keeps, /* what is dropped at once has no cache */                        \
        .by_place = !keeps,                                                                    \
        .notifies = 1,                                                                         \
        .recovers = 1,                                                                         \
        .issues = &issues,                                                                     \
        .any_order = 1,                                                                        \
        .open = opener,                                                                        \
        .joined = joined,                                                                      \
        .page_out = page_out,                                                                  \
        .send = send_message,                                                                  \
        .post = post_message,                                                                  \
        .receive = receive_message,                                                            \
    }
VMMC2_SYSTEM(vmmc2, "vmmc2", "VMMC-2", "firmware", open_side, 1);
VMMC2_SYSTEM(vmmc2_misses, "vmmc2-misses", "VMMC-2, no page stays pinned", "firmware", open_without, 0);
VMMC2_SYSTEM(vmmc2_tuned, "vmmc2-tuned", "VMMC-2 with firmware written for speed alone", "firmware-tuned", open_side,
             1);
VMMC2_SYSTEM(vmmc2_tuned_misses, "vmmc2-tuned-misses", "VMMC-2-tuned, no page stays pinned", "firmware-tuned",
             open_without, 0);
