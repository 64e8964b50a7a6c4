/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon.c - VMMC's daemons, and the notifications of its driver; see daemon.h. */
#include "sim/myrinet/systems/vmmc/daemon.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { EXPORT = 1, UNEXPORT, IMPORT, CANCEL, ASK, FORGET, PAGES, ANSWER };
enum { SERVE = 35 /* host operations of a request */, PAGES_OF_LETTER = 64 };
/* Words of a letter. EXPORT: buffer, address, bytes, importers, and these; IMPORT and what follows from it: buffer,
 * exporter's node and process, importer's node and process. */
enum { ID, TO_NODE, TO_PROCESS, BY_NODE, BY_PROCESS, RESULT, AT, BYTES, MORE };

const char *vmmc_answer_text(enum vmmc_answer a)
{
    static const char *const texts[VMMC_ANSWERS] = {
        "granted",
        "there is no such node, or it has no such process",
        "whole pages of the host's memory can be exported",
        "the process exports a buffer of that number already",
        "the daemon keeps no more buffers of a process, or importers of a buffer",
        "the buffer is not exported to this process",
        "the process has imported 8 MB already, as much as its outgoing table holds",
        "the buffer is not exported"};
    return a < VMMC_ANSWERS ? texts[a] : "no answer";
}

static uint32_t on_card(const struct vmmc_node *n, size_t field)
{
    return myri_card_symbol(n->all->hw, "card") + (uint32_t)field;
}

/* ---- what a daemon does with tables ---- */

/* An entry for each of these pages of the host crosses the bus; four of them are a word. */
static void write_incoming(struct vmmc_node *n, uint32_t at, uint32_t bytes)
{
    uint32_t page = n->all->hw->page, first = at / page, last = (at + bytes - 1) / page;
    uint32_t table = on_card(n, offsetof(struct vmmc_card, incoming));
    for (uint32_t word = first / 4; word <= last / 4; word++)
        (void)myri_task_store(n->daemon.task, table + 4 * word,
                              myri_card_peek(&n->all->hw->card[n->id], table + 4 * word));
}

static enum vmmc_answer do_export(struct vmmc_node *n, struct vmmc_user *u, const struct myri_letter *l)
{
    struct myri_hw *hw = n->all->hw;
    uint32_t at = l->word[1], bytes = l->word[2], importers = l->word[3], k = 0, page = hw->page;
    struct vmmc_importer only[VMMC_IMPORTERS];
    if (at == 0 || bytes == 0 || at % page || bytes % page || (uint64_t)at + bytes > (uint64_t)page * hw->pages)
        return VMMC_NO_PAGES;
    for (uint32_t i = 0; i < VMMC_EXPORTS; i++)
        if (u->exported[i].bytes && u->exported[i].id == l->word[ID])
            return VMMC_TAKEN;
    while (k < VMMC_EXPORTS && u->exported[k].bytes)
        k++;
    if (k == VMMC_EXPORTS || importers > VMMC_IMPORTERS)
        return VMMC_TOO_MANY;
    for (uint32_t i = 0; i < importers; i++)
        only[i] = (struct vmmc_importer){.node = l->word[4 + i] >> 8, .process = l->word[4 + i] & 0xff};
    myri_task_spend(n->daemon.task, bytes / page * myri_machine_us(&hw->machine, MYRI_M_pin_page), "pin");
    if (vmmc_export(&u->vmmc, at, bytes, 0, only, importers) < 0)
        return VMMC_TOO_MANY;
    write_incoming(n, at, bytes);
    u->exported[k].id = l->word[ID];
    u->exported[k].at = at;
    u->exported[k].bytes = bytes;
    u->exported[k].handler = u->asked;
    return VMMC_GRANTED;
}

static enum vmmc_answer do_unexport(struct vmmc_node *n, struct vmmc_user *u, uint32_t id)
{
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++)
        if (u->exported[k].bytes && u->exported[k].id == id) {
            vmmc_unexport(&u->vmmc, u->exported[k].at, u->exported[k].bytes);
            write_incoming(n, u->exported[k].at, u->exported[k].bytes);
            u->exported[k].bytes = 0;
            return VMMC_GRANTED;
        }
    return VMMC_NOT_EXPORTED;
}

/* The importer's table, from what the exporter's daemon has said; with the page of its notes, once. */
static void do_import(struct vmmc_node *n, struct vmmc_user *u, struct myri_letter *l)
{
    struct vmmc_user *exporter = n->all->node[l->word[TO_NODE]].user[l->word[TO_PROCESS]];
    uint32_t *notes = &u->note_proxy[l->word[TO_NODE]][l->word[TO_PROCESS]], page = n->all->hw->page;
    uint32_t before = u->vmmc.imported, proxy = 0;
    if (u->imports < VMMC_EXPORTS) {
        proxy = vmmc_import(&u->vmmc, &exporter->vmmc, l->word[AT], l->word[BYTES]);
        if (proxy && !*notes)
            *notes = vmmc_import(&u->vmmc, &exporter->vmmc,
                                 exporter->inbox + (n->id * VMMC_PROCESSES + u->vmmc.process) * page, page);
    }
    if (!proxy || !*notes) {
        u->vmmc.imported = before; /* nobody knows of these pages */
        l->word[RESULT] = VMMC_NO_ROOM;
        return;
    }
    for (uint32_t k = before; k < u->vmmc.imported; k++) {
        uint32_t entry =
            on_card(n, offsetof(struct vmmc_card, process) + u->vmmc.process * sizeof(struct vmmc_process) +
                           offsetof(struct vmmc_process, outgoing) + 4 * k);
        (void)myri_task_store(n->daemon.task, entry, myri_card_peek(&n->all->hw->card[n->id], entry));
    }
    l->word[AT] = proxy;
}

/* ---- a daemon ---- */

static void pass_on(struct vmmc_node *n, struct myri_letter *l, uint32_t kind, uint32_t to)
{
    l->kind = kind;
    myri_mail_send(&n->daemon, &n->all->node[to].box, l);
}

static void answer(struct vmmc_node *n, struct vmmc_user *u, struct myri_letter *l, enum vmmc_answer a)
{
    l->kind = ANSWER;
    l->word[RESULT] = a;
    myri_mail_send(&n->daemon, &u->box, l);
}

/* An import of a buffer of this node: 0 while it is not exported. */
static int match(struct vmmc_node *n, struct myri_letter *l)
{
    const struct vmmc_user *u = n->user[l->word[TO_PROCESS]], *by;
    uint32_t k = 0;
    while (u && k < VMMC_EXPORTS && (!u->exported[k].bytes || u->exported[k].id != l->word[ID]))
        k++;
    if (!u || k == VMMC_EXPORTS)
        return 0;
    by = n->all->node[l->word[BY_NODE]].user[l->word[BY_PROCESS]];
    l->word[AT] = u->exported[k].at;
    l->word[BYTES] = u->exported[k].bytes;
    l->word[RESULT] = vmmc_permits(&u->vmmc, &by->vmmc, l->word[AT], l->word[BYTES]) ? VMMC_GRANTED : VMMC_FORBIDDEN;
    uint32_t pages = l->word[RESULT] == VMMC_GRANTED ? l->word[BYTES] / n->all->hw->page : 0;
    do { /* the physical addresses of the pages, in as many letters as they need */
        l->word[MORE] = pages > PAGES_OF_LETTER;
        pass_on(n, l, PAGES, l->word[BY_NODE]);
        pages -= pages < PAGES_OF_LETTER ? pages : PAGES_OF_LETTER;
    } while (l->word[MORE]);
    return 1;
}

static void ask(struct vmmc_node *n, struct myri_letter *l)
{
    if (match(n, l))
        return;
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++)
        if (!n->waits[k].kind) {
            n->waits[k] = *l;
            return;
        }
    l->word[RESULT] = VMMC_TOO_MANY;
    l->word[MORE] = 0;
    pass_on(n, l, PAGES, l->word[BY_NODE]);
}

/* The importer does not wait any longer. What is not here has been answered, and the answer is on its way. */
static void forget(struct vmmc_node *n, struct myri_letter *l)
{
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++)
        if (n->waits[k].kind && memcmp(n->waits[k].word, l->word, (BY_PROCESS + 1) * sizeof l->word[0]) == 0) {
            n->waits[k].kind = 0;
            l->word[RESULT] = VMMC_NOT_EXPORTED;
            l->word[MORE] = 0;
            pass_on(n, l, PAGES, l->word[BY_NODE]);
            return;
        }
}

static void match_those_that_wait(struct vmmc_node *n)
{
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++)
        if (n->waits[k].kind) {
            struct myri_letter l = n->waits[k];
            n->waits[k].kind = 0;
            if (!match(n, &l))
                n->waits[k] = l;
        }
}

static int exists(const struct vmmc_node *n, const struct myri_letter *l)
{
    return l->word[TO_NODE] < n->all->hw->nodes && l->word[TO_PROCESS] < VMMC_PROCESSES;
}

static void serve(struct vmmc_node *n, struct myri_letter *l)
{
    struct vmmc_user *u = l->node == n->id && l->process < VMMC_PROCESSES ? n->user[l->process] : NULL;
    myri_task_operate(n->daemon.task, SERVE, "daemon");
    switch (l->kind) {
    case EXPORT:
        answer(n, u, l, do_export(n, u, l));
        break;
    case UNEXPORT:
        answer(n, u, l, do_unexport(n, u, l->word[ID]));
        break;
    case IMPORT:
        if (!exists(n, l))
            answer(n, u, l, VMMC_NO_NODE);
        else
            pass_on(n, l, ASK, l->word[TO_NODE]);
        break;
    case CANCEL: /* what was to come from nowhere has been refused */
        if (exists(n, l))
            pass_on(n, l, FORGET, l->word[TO_NODE]);
        break;
    case ASK:
        ask(n, l);
        break;
    case FORGET:
        forget(n, l);
        break;
    case PAGES:
        if (l->word[MORE])
            break;
        u = n->user[l->word[BY_PROCESS]];
        if (l->word[RESULT] == VMMC_GRANTED)
            do_import(n, u, l);
        answer(n, u, l, (enum vmmc_answer)l->word[RESULT]);
        break;
    }
}

static void run_daemon(struct myri_task *t, void *arg)
{
    struct vmmc_node *n = arg;
    struct myri_letter l;
    myri_process_join(&n->daemon, &n->os, t);
    while (myri_mail_take(&n->box, &l, RNL_SIM_NEVER)) {
        uint32_t kind = l.kind;
        serve(n, &l);
        if (kind == EXPORT)
            match_those_that_wait(n);
    }
}

/* ---- notifications ---- */

static uint32_t place_of(const struct vmmc_user *u, uint32_t node, uint32_t process, uint32_t number)
{
    uint32_t page = u->vmmc.hw->page, notes = page / (uint32_t)sizeof(struct vmmc_note);
    return u->inbox + (node * VMMC_PROCESSES + process) * page +
           (number - 1) % notes * (uint32_t)sizeof(struct vmmc_note);
}

static void enqueue(struct vmmc_user *u, const struct vmmc_queued *q)
{
    if (u->queued == u->room) {
        uint32_t room = u->room ? 2 * u->room : 64;
        struct vmmc_queued *more = malloc(room * sizeof *more);
        if (!more) {
            myri_hw_fault(u->vmmc.hw, "no memory for %u notifications", room);
            return;
        }
        for (uint32_t i = 0; i < u->queued; i++)
            more[i] = u->queue[(u->first + i) % u->room];
        free(u->queue);
        u->queue = more;
        u->room = room;
        u->first = 0;
    }
    u->queue[(u->first + u->queued++) % u->room] = *q;
    myri_process_signal(&u->process);
}

static void take_notes(struct vmmc_user *u, uint32_t node, uint32_t process)
{
    struct vmmc_queued q = {.from = {node, process}};
    struct myri_host *h = u->vmmc.host;
    for (;;) {
        uint32_t *seen = &u->seen[node][process], at = place_of(u, node, process, *seen + 1);
        q.note = (struct vmmc_note){myri_host_word(h, at), myri_host_word(h, at + 4), myri_host_word(h, at + 8),
                                    myri_host_word(h, at + 12)};
        if (q.note.number > *seen + 1)
            myri_hw_fault(h->hw, "node %u: notification %u of process %u on node %u lies over one that was not taken",
                          h->id, q.note.number, process, node);
        if (q.note.number != *seen + 1)
            return;
        ++*seen;
        enqueue(u, &q);
    }
}

static void driver(struct myri_host *h, uint32_t value)
{
    struct vmmc_node *n = h->driver_arg;
    vmmc_driver(h, value);
    for (uint32_t k = 0; value & VMMC_INTERRUPT_NOTIFY && k < VMMC_PROCESSES; k++)
        for (uint32_t from = 0; n->user[k] && from < h->hw->nodes * VMMC_PROCESSES; from++)
            take_notes(n->user[k], from / VMMC_PROCESSES, from % VMMC_PROCESSES);
}

static void on_signal(void *arg)
{
    struct vmmc_user *u = arg;
    if (!u->queued)
        return;
    struct vmmc_queued q = u->queue[u->first];
    u->first = (u->first + 1) % u->room;
    u->queued--;
    for (uint32_t k = 0; k < VMMC_EXPORTS; k++)
        if (u->exported[k].bytes && u->exported[k].id == q.note.id && u->exported[k].handler) {
            u->handled++;
            u->exported[k].handler(u, q.note.id, q.note.offset, q.note.bytes, q.from);
            return;
        }
    u->dropped++;
}

/* ---- set-up ---- */

void vmmc_daemons_init(struct vmmc_daemons *d, struct myri_hw *hw, uint32_t processors)
{
    memset(d, 0, sizeof *d);
    d->hw = hw;
    for (uint32_t i = 0; i < hw->nodes; i++) {
        struct vmmc_node *n = &d->node[i];
        n->all = d;
        n->id = i;
        myri_os_init(&n->os, &hw->host[i], processors);
        myri_mail_init(&n->box, &hw->host[i]);
        n->box.owner = &n->daemon;
        n->daemon.first = 1;
        hw->host[i].driver_arg = n;
        myri_hw_daemon(myri_hw_task(hw, i, run_daemon, n));
    }
}

int vmmc_user_open(struct vmmc_user *u, struct vmmc_daemons *d, uint32_t node, uint32_t process)
{
    struct myri_hw *hw = d->hw;
    memset(u, 0, sizeof *u);
    u->node = &d->node[node];
    if (vmmc_attach(&u->vmmc, hw, node, process) < 0)
        return -1;
    hw->host[node].driver = driver;
    u->inbox = myri_host_take(&hw->host[node], hw->page * hw->nodes * VMMC_PROCESSES, 0);
    u->scratch = myri_host_take(&hw->host[node], hw->page, 0);
    if (hw->fault[0] || vmmc_export(&u->vmmc, u->inbox, hw->page * hw->nodes * VMMC_PROCESSES, 1, NULL, 0) < 0)
        return -1;
    myri_mail_init(&u->box, &hw->host[node]);
    u->box.owner = &u->process;
    u->process.on_signal = on_signal;
    u->process.signal_arg = u;
    u->node->user[process] = u;
    return 0;
}

void vmmc_user_close(struct vmmc_user *u)
{
    free(u->queue);
}

void vmmc_user_join(struct vmmc_user *u, struct myri_task *t)
{
    u->vmmc.task = t;
    t->map_from = on_card(u->node, offsetof(struct vmmc_card, process) + u->vmmc.process * sizeof(struct vmmc_process));
    t->map_to = t->map_from + (uint32_t)sizeof(struct vmmc_request) * VMMC_QUEUE;
    myri_process_join(&u->process, &u->node->os, t);
}

void vmmc_user_leave(struct vmmc_user *u)
{
    myri_process_leave(&u->process);
}

/* ---- requests ---- */

static void request(struct vmmc_user *u, struct myri_letter *l, uint32_t kind)
{
    l->kind = kind;
    l->node = u->node->id;
    l->process = u->vmmc.process;
    myri_mail_send(&u->process, &u->node->box, l);
}

enum vmmc_answer vmmc_user_export(struct vmmc_user *u, uint32_t id, uint32_t at, uint32_t bytes, vmmc_handler *handler,
                                  const struct vmmc_importer *only, uint32_t n)
{
    struct myri_letter l = {.word = {id, at, bytes, n}};
    if (n > VMMC_IMPORTERS)
        return VMMC_TOO_MANY;
    for (uint32_t i = 0; i < n; i++)
        l.word[4 + i] = only[i].node << 8 | only[i].process;
    u->asked = handler;
    request(u, &l, EXPORT);
    return myri_mail_take(&u->box, &l, RNL_SIM_NEVER) ? (enum vmmc_answer)l.word[RESULT] : VMMC_NOT_EXPORTED;
}

enum vmmc_answer vmmc_user_unexport(struct vmmc_user *u, uint32_t id)
{
    struct myri_letter l = {.word = {id}};
    request(u, &l, UNEXPORT);
    return myri_mail_take(&u->box, &l, RNL_SIM_NEVER) ? (enum vmmc_answer)l.word[RESULT] : VMMC_NOT_EXPORTED;
}

enum vmmc_answer vmmc_user_import(struct vmmc_user *u, uint32_t node, uint32_t process, uint32_t id, uint64_t until,
                                  uint32_t *proxy, uint32_t *bytes)
{
    struct myri_letter l = {.word = {id, node, process, u->node->id, u->vmmc.process}}, cancel = l;
    request(u, &l, IMPORT);
    if (!myri_mail_take(&u->box, &l, until)) {
        request(u, &cancel, CANCEL);
        if (!myri_mail_take(&u->box, &l, RNL_SIM_NEVER))
            return VMMC_NOT_EXPORTED;
    }
    if (l.word[RESULT] != VMMC_GRANTED)
        return (enum vmmc_answer)l.word[RESULT];
    u->imported[u->imports].node = node;
    u->imported[u->imports].process = process;
    u->imported[u->imports].id = id;
    u->imported[u->imports].proxy = *proxy = l.word[AT];
    u->imported[u->imports++].bytes = *bytes = l.word[BYTES];
    return VMMC_GRANTED;
}

/* The library is in the middle of a request of the card's: a handler that sends would write into it. */
static void enter(struct vmmc_user *u)
{
    u->process.blocked++;
}

static void leave(struct vmmc_user *u)
{
    u->process.blocked--;
    myri_process_account(&u->process);
}

void vmmc_user_send(struct vmmc_user *u, uint32_t from, uint32_t proxy, uint32_t bytes)
{
    enter(u);
    vmmc_send(&u->vmmc, from, proxy, bytes);
    leave(u);
}

int vmmc_user_notify(struct vmmc_user *u, uint32_t from, uint32_t proxy, uint32_t bytes)
{
    uint32_t k = 0;
    while (k < u->imports && (proxy < u->imported[k].proxy || proxy - u->imported[k].proxy >= u->imported[k].bytes ||
                              bytes > u->imported[k].bytes - (proxy - u->imported[k].proxy)))
        k++;
    if (k == u->imports)
        return -1;
    enter(u);
    uint32_t node = u->imported[k].node, process = u->imported[k].process, number = ++u->noted[node][process];
    uint32_t page = u->vmmc.hw->page, notes = page / (uint32_t)sizeof(struct vmmc_note);
    const uint32_t words[4] = {u->imported[k].id, proxy - u->imported[k].proxy, bytes, number};
    vmmc_send(&u->vmmc, from, proxy, bytes);
    for (uint32_t i = 0; i < 4; i++)
        myri_host_set_word(u->vmmc.host, u->scratch + 4 * i, words[i]);
    vmmc_send(&u->vmmc, u->scratch,
              u->note_proxy[node][process] + (number - 1) % notes * (uint32_t)sizeof(struct vmmc_note), sizeof words);
    leave(u);
    return 0;
}
