/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - VMMC's library, its driver and what its daemons set up; see host.h. */
#include "sim/myrinet/systems/vmmc/host.h"

#include <stddef.h>

enum { LIBRARY = 35 }; /* host operations of a call */

static uint32_t at_process(const struct vmmc *v, size_t field)
{
    return v->card + (uint32_t)(offsetof(struct vmmc_card, process) + v->process * sizeof(struct vmmc_process) + field);
}

#define IN_PROCESS(v, field) at_process(v, offsetof(struct vmmc_process, field))
#define IN_CARD(v, field)    ((v)->card + (uint32_t)offsetof(struct vmmc_card, field))

/* ---- driver ---- */

static void put_translation(struct myri_card *c, uint32_t process_at, uint32_t page)
{
    uint32_t set = page & (VMMC_SETS - 1), tags = process_at + (uint32_t)offsetof(struct vmmc_process, tag) + 8 * set;
    uint32_t physical = process_at + (uint32_t)offsetof(struct vmmc_process, physical) + 8 * set;
    uint32_t way = myri_card_peek(c, tags) == page || myri_card_peek(c, tags) == 0 ? 0 : 4;
    myri_card_poke(c, physical + way, page * c->hw->page);
    myri_card_poke(c, tags + way, page);
}

static uint64_t driver_cost(struct myri_host *h, uint32_t value)
{
    return value & VMMC_INTERRUPT_MISS ? VMMC_MISSES * myri_machine_us(&h->hw->machine, MYRI_M_pin_page) : 0;
}

/* Translations for the page that is missing and those behind it, which are pinned for good. */
void vmmc_driver(struct myri_host *h, uint32_t value)
{
    struct myri_card *c = &h->hw->card[h->id];
    uint32_t card = myri_card_symbol(h->hw, "card");
    if (!(value & VMMC_INTERRUPT_MISS))
        return;
    uint32_t page = myri_card_peek(c, card + (uint32_t)offsetof(struct vmmc_card, missed)) / h->hw->page;
    uint32_t process = myri_card_peek(c, card + (uint32_t)offsetof(struct vmmc_card, missing_process));
    uint32_t at = card + (uint32_t)(offsetof(struct vmmc_card, process) + process * sizeof(struct vmmc_process));
    myri_card_wake(c, myri_hw_now(h->hw));
    for (uint32_t k = 0; k < VMMC_MISSES && page + k < h->hw->pages; k++) {
        h->pins[page + k] = 1;
        put_translation(c, at, page + k);
    }
}

/* ---- daemons ---- */

int vmmc_attach(struct vmmc *v, struct myri_hw *hw, uint32_t node, uint32_t process)
{
    v->hw = hw;
    v->host = &hw->host[node];
    v->card_of = &hw->card[node];
    v->process = process;
    v->known_free = VMMC_QUEUE;
    v->card = myri_card_symbol(hw, "card");
    v->status = myri_host_take(v->host, hw->page, 1);
    v->imported = 1; /* proxy page 0 is none */
    if (hw->fault[0] || process >= VMMC_PROCESSES)
        return -1;
    v->host->driver = vmmc_driver;
    v->host->driver_cost = driver_cost;
    uint32_t shift = 0;
    while (1u << shift < hw->page)
        shift++;
    myri_card_poke(v->card_of, IN_CARD(v, page_shift), shift);
    myri_card_poke(v->card_of, IN_PROCESS(v, status_at), v->status);
    if (myri_card_peek(v->card_of, IN_CARD(v, processes)) <= process)
        myri_card_poke(v->card_of, IN_CARD(v, processes), process + 1);
    for (uint32_t i = 0; i < hw->nodes; i++)
        myri_card_poke(v->card_of, IN_CARD(v, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

static void set_incoming(struct vmmc *v, uint32_t at, uint32_t bytes, uint8_t what)
{
    uint32_t size = v->hw->page;
    for (uint32_t page = at / size; bytes && page <= (at + bytes - 1) / size; page++) {
        v->host->pins[page] = what != 0;
        myri_card_poke_byte(v->card_of, IN_CARD(v, incoming) + page, what);
    }
}

int vmmc_export(struct vmmc *v, uint32_t at, uint32_t bytes, int notify, const struct vmmc_importer *only, uint32_t n)
{
    uint32_t k = 0;
    while (k < VMMC_EXPORTS && v->exported[k].bytes)
        k++;
    if (k == VMMC_EXPORTS || n > VMMC_IMPORTERS)
        return -1;
    v->exported[k].at = at;
    v->exported[k].bytes = bytes;
    v->exported[k].importers = n;
    for (uint32_t i = 0; i < n; i++)
        v->exported[k].importer[i] = only[i];
    set_incoming(v, at, bytes, (uint8_t)(VMMC_MAY_WRITE | (notify ? VMMC_NOTIFY : 0)));
    return 0;
}

void vmmc_unexport(struct vmmc *v, uint32_t at, uint32_t bytes)
{
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++)
        if (v->exported[k].at < at + bytes && at < v->exported[k].at + v->exported[k].bytes)
            v->exported[k].bytes = 0;
    set_incoming(v, at, bytes, 0);
}

int vmmc_permits(const struct vmmc *exporter, const struct vmmc *importer, uint32_t at, uint32_t bytes)
{
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++) {
        uint32_t from = exporter->exported[k].at, size = exporter->exported[k].bytes;
        if (at < from || at - from >= size || bytes > size - (at - from))
            continue;
        uint32_t n = exporter->exported[k].importers, i = 0;
        while (i < n && (exporter->exported[k].importer[i].node != importer->host->id ||
                         exporter->exported[k].importer[i].process != importer->process))
            i++;
        if (n == 0 || i < n)
            return 1;
    }
    return 0;
}

uint32_t vmmc_import(struct vmmc *v, const struct vmmc *exporter, uint32_t at, uint32_t bytes)
{
    uint32_t size = v->hw->page, first = v->imported, pages = (at % size + bytes + size - 1) / size;
    if (!vmmc_permits(exporter, v, at, bytes) || pages > VMMC_PAGES - first)
        return 0;
    for (uint32_t k = 0; k < pages; k++)
        myri_card_poke(v->card_of, IN_PROCESS(v, outgoing) + 4 * (first + k),
                       (at / size + k) * size | VMMC_VALID | exporter->host->id);
    v->imported += pages;
    return first * size + at % size;
}

void vmmc_translate(struct vmmc *v, uint32_t address, uint32_t pages)
{
    for (uint32_t page = address / v->hw->page; pages; page++, pages--) {
        v->host->pins[page] = 1;
        put_translation(v->card_of, at_process(v, 0), page);
    }
}

/* ---- library ---- */

/* Posting takes "only writes" where reads are off the critical path (002, 5.2, which calls it preallocation): the entry
 * behind is looked at when the one before has been posted. */
static void prepare_entry(struct vmmc *v)
{
    uint32_t bytes = 1, next = v->posted & (VMMC_QUEUE - 1);
    if (v->known_free)
        return;
    (void)myri_task_load(v->task, IN_PROCESS(v, queue) + next * (uint32_t)sizeof(struct vmmc_request), &bytes);
    v->known_free = bytes == 0;
}

/* When that was in use still, half of the queue is waited for. */
static void want_entry(struct vmmc *v)
{
    if (v->known_free == 0) {
        uint32_t bytes, ahead = (v->posted + VMMC_QUEUE / 2 - 1) & (VMMC_QUEUE - 1);
        uint32_t at = IN_PROCESS(v, queue) + ahead * (uint32_t)sizeof(struct vmmc_request);
        if (myri_task_await(v->task, at, 0, 0, &bytes) < 0)
            return;
        v->known_free = VMMC_QUEUE / 2;
    }
    v->known_free--;
}

void vmmc_post(struct vmmc *v, uint32_t from, uint32_t proxy, uint32_t bytes)
{
    uint32_t entry = IN_PROCESS(v, queue) + (v->posted & (VMMC_QUEUE - 1)) * (uint32_t)sizeof(struct vmmc_request);
    myri_task_operate(v->task, LIBRARY, "library");
    want_entry(v);
    if (bytes <= VMMC_SHORT) {
        uint32_t words[3 + VMMC_SHORT / 4] = {proxy, 0, VMMC_IS_SHORT}, n = (bytes + 3) / 4;
        myri_task_gather(v->task, from, words + 3, n);
        myri_task_store(v->task, entry + 4, words[0]); /* a short request has no address */
        myri_task_store_words(v->task, entry + 12, words + 2, 1 + n);
    } else {
        const uint32_t words[3] = {proxy, from, VMMC_IS_LONG};
        myri_task_store_words(v->task, entry + 4, words, 3);
        v->longs++;
    }
    myri_task_store(v->task, entry, bytes);
    v->posted++;
    prepare_entry(v);
}

void vmmc_wait(struct vmmc *v)
{
    for (;;) {
        uint32_t done = myri_host_word(v->host, v->status);
        if (done == v->longs)
            return;
        myri_task_poll(v->task, v->status, done, RNL_SIM_NEVER);
        if (v->hw->fault[0])
            return;
    }
}

int vmmc_check(struct vmmc *v, uint32_t longs)
{
    myri_task_operate(v->task, LIBRARY, "library");
    return (int32_t)(myri_task_look(v->task, v->status) - longs) >= 0;
}

void vmmc_send(struct vmmc *v, uint32_t from, uint32_t proxy, uint32_t bytes)
{
    vmmc_post(v, from, proxy, bytes);
    if (bytes > VMMC_SHORT)
        vmmc_wait(v);
}

/* ---- experiments ---- */

struct vmmc_host_state {
    struct vmmc vmmc;
    struct myri_side *sides;
    uint32_t in[MYRI_HW_NODES];    /* what each peer writes into */
    uint32_t proxy[MYRI_HW_NODES]; /* of what this side writes into, at that peer */
    uint32_t last[MYRI_HW_NODES];  /* word seen there */
    uint32_t turn;                 /* whose word is looked at first */
};

static int open_side(struct myri_side *side)
{
    struct vmmc_host_state *st = side->state;
    if (vmmc_attach(&st->vmmc, side->hw, side->node, 0) < 0)
        return -1;
    myri_card_poke(side->card, IN_CARD(&st->vmmc, processes), side->processes);
    for (uint32_t peer = 0; peer < side->nodes; peer++) {
        if (peer == side->node)
            continue;
        st->in[peer] = myri_host_take(side->host, side->largest, 0);
        if (side->hw->fault[0] || vmmc_export(&st->vmmc, st->in[peer], side->largest, side->notify, NULL, 0) < 0)
            return -1;
    }
    if (!side->cold)
        vmmc_translate(&st->vmmc, side->out, side->reach / side->hw->page + 2);
    return 0;
}

static void joined(struct myri_side *sides, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct vmmc_host_state *st = sides[i].state;
        st->vmmc.task = sides[i].task;
        for (uint32_t peer = 0; peer < n; peer++) {
            const struct vmmc_host_state *other = sides[peer].state;
            if (peer != i)
                st->proxy[peer] = vmmc_import(&st->vmmc, &other->vmmc, other->in[i], sides[i].largest);
        }
        sides[i].task->map_from = IN_PROCESS(&st->vmmc, queue);
        sides[i].task->map_to = IN_PROCESS(&st->vmmc, outgoing);
    }
}

static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct vmmc_host_state *st = side->state;
    vmmc_send(&st->vmmc, side->out, st->proxy[to], bytes);
}

static void post_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct vmmc_host_state *st = side->state;
    vmmc_post(&st->vmmc, side->out, st->proxy[to], bytes);
}

/* Looks at the last word of what each peer writes, in turn. Nobody asks whether it has been looked at: what a peer
 * sends meanwhile lies over it (002, 2: there is no receive). */
static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct vmmc_host_state *st = side->state;
    uint32_t at[MYRI_HW_NODES], old[MYRI_HW_NODES], n = 0;
    for (uint32_t peer = 0; peer < side->nodes; peer++)
        if (peer != side->node) {
            at[n] = st->in[peer] + bytes - 4;
            old[n++] = st->last[peer];
        }
    uint32_t found = myri_task_poll_among(side->task, at, old, n, st->turn, until);
    if (found == n)
        return 0;
    myri_task_operate(side->task, 12, "handler");
    uint32_t peer = found + (found >= side->node);
    st->turn = found + 1 < n ? found + 1 : 0;
    st->last[peer] = myri_host_word(side->host, at[found]);
    side->got = st->in[peer];
    side->from = peer;
    return bytes;
}

static const struct myri_issues issues = {.transfer = "stores to 128 B, DMA",
                                          .translation = "TLB on card",
                                          .protection = "yes",
                                          .control = "both",
                                          .reliability = "back-pressure",
                                          .to_many = "no"};
#define VMMC_SYSTEM(called, titled, firmware)                                                                  \
    {                                                                                                          \
        .name = called, .title = titled, .object = "systems/vmmc/" firmware, .source = "Dubnicki et al. 1997", \
        .machines = "H-P", .state_bytes = sizeof(struct vmmc_host_state), .most = 1 << 20, .overwrites = 1,    \
        .processes_most = VMMC_PROCESSES, .translates = 1, .notifies = 1, .open = open_side, .joined = joined, \
        .send = send_message, .post = post_message, .receive = receive_message, .issues = &issues,             \
        .on_crc = "VMMC checks for it, and does no more (Dubnicki et al. 1997, section 4.2)"                   \
    }

const struct myri_system myri_system_vmmc =
    VMMC_SYSTEM("vmmc", "VMMC, virtual memory-mapped communication", "firmware");
const struct myri_system myri_system_vmmc_tuned =
    VMMC_SYSTEM("vmmc-tuned", "VMMC with firmware written for speed alone", "firmware-tuned");
