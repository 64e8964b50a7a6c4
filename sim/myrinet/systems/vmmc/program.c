/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.c - see program.h: the calls of runnel/vmmc.h over VMMC's library on the papers' machine (host.h).
 *
 * An exporter's pages interrupt its host at each message or at none; that a message asks for a notification is not in
 * its packet. So each node has, besides, a page for each other one, in which that one enters its notifications behind
 * the message that they are of; they are taken out of it when the program looks. */
#include "sim/myrinet/systems/vmmc/program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sim/myrinet/systems/vmmc/host.h"

enum {
    EXPORTS = 16,
    IMPORTS = 32,
    LOOK = 12 /* host operations */,
    IMPORT_LOOK_PS = 10000000,
    EXIT_LOOK_PS = 100000000
};

struct note {
    uint32_t id, offset, bytes, number; /* number: last, counts from 1 */
};
enum { NOTES = 1024 / sizeof(struct note) }; /* a page has room for them on each machine */

struct exported {
    uint32_t id, at, bytes;
    VMMC_MsgHandler *handler;
    int used;
};
struct imported {
    uint32_t proxy, bytes, node, id;
};

struct node {
    struct vmmc vmmc;
    struct exported exported[EXPORTS];
    struct imported imported[IMPORTS];
    uint32_t imports;
    uint32_t inbox;                                           /* of notifications: a page for each node */
    uint32_t note_proxy[MYRI_HW_NODES], noted[MYRI_HW_NODES]; /* where own ones go; how many went */
    uint32_t seen[MYRI_HW_NODES];
    uint32_t scratch; /* a note that is being sent */
    unsigned blocked, in_handler;
    int status;
};

static struct program {
    struct myri_hw *hw;
    int (*main)(int, char **);
    int argc;
    char **argv;
    struct node *node;
    uint32_t left;    /* nodes that have ended their session */
    struct node *now; /* whose task runs: each call that lets others run sets it again */
} program;

static uint32_t address_of(const struct node *n, const void *at, size_t bytes)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)n->vmmc.host->memory,
              size = (uintptr_t)n->vmmc.hw->page * n->vmmc.hw->pages;
    return offset < size && bytes <= size - offset ? (uint32_t)offset : 0;
}

static void *pointer_to(const struct node *n, uint32_t at)
{
    return n->vmmc.host->memory + at;
}

static void look(struct node *n)
{
    myri_task_operate(n->vmmc.task, LOOK, "look");
    program.now = n;
}

/* ---- the session ---- */

int VMMC_Init(rnl_endpoint *ep)
{
    return ep ? rnl_fail(RNL_ERR_ARG, "a node of the papers' machine has no endpoint") : 0;
}

/* Waits until all nodes are here and what they have sent has landed. */
int VMMC_Exit(void)
{
    struct node *n = program.now;
    if (n->in_handler)
        return rnl_fail(RNL_ERR_CONTEXT, "VMMC_Exit was called in a handler; call it from the program");
    n->blocked = 0;
    program.left++;
    for (int more = 1; more >= 0;) {
        more = program.left < program.hw->nodes ? 1 : more - 1;
        myri_task_spend(n->vmmc.task, EXIT_LOOK_PS, "wait");
        program.now = n;
        (void)VMMC_Poll();
    }
    return 0;
}

rnl_endpoint *VMMC_Endpoint(void)
{
    return NULL;
}

VMMC_NodeID VMMC_Node(void)
{
    return program.now->vmmc.host->id;
}

unsigned VMMC_Nodes(void)
{
    return program.hw->nodes;
}

int VMMC_ProcessOf(VMMC_NodeID node, VMMC_Process *process)
{
    (void)node;
    *process = 0;
    return 0;
}

static struct exported *find_export(struct node *n, uint32_t id)
{
    for (unsigned i = 0; i < EXPORTS; i++)
        if (n->exported[i].used && n->exported[i].id == id)
            return &n->exported[i];
    return NULL;
}

static void notify(struct node *n, uint32_t from, struct note note)
{
    const struct exported *e = find_export(n, note.id);
    if (!e || !e->handler)
        return;
    n->in_handler = 1;
    e->handler(e->id, pointer_to(n, e->at + note.offset), note.bytes, from);
    n->in_handler = 0;
    program.now = n;
}

int VMMC_Poll(void)
{
    struct node *n = program.now;
    look(n);
    for (uint32_t from = 0; from < program.hw->nodes && !n->blocked && !n->in_handler; from++)
        for (struct note note;; n->seen[from]++, notify(n, from, note)) {
            uint32_t place = n->seen[from] % NOTES * (uint32_t)sizeof note;
            memcpy(&note, pointer_to(n, n->inbox + from * program.hw->page + place), sizeof note);
            if (note.number != n->seen[from] + 1)
                break;
        }
    return 0;
}

int VMMC_Wait(int64_t timeout_ns)
{
    (void)timeout_ns;
    return VMMC_Poll();
}

/* ---- receive buffers ---- */

int VMMC_Alloc(size_t nbytes, void **at)
{
    struct node *n = program.now;
    uint32_t got = nbytes && nbytes < 1u << 30 ? myri_host_take(n->vmmc.host, (uint32_t)nbytes, 0) : MYRI_HW_NO_WATCH;
    if (got == MYRI_HW_NO_WATCH)
        return rnl_fail(RNL_ERR_NO_MEMORY, "node %u has no %zu bytes left", n->vmmc.host->id, nbytes);
    *at = pointer_to(n, got);
    return 0;
}

int VMMC_Free(void *at)
{
    (void)at; /* pages are given out once */
    return 0;
}

int VMMC_ExportRecvBuf(void *buf, size_t nbytes, uint32_t rbufid, VMMC_MsgHandler *handler, const VMMC_ExportOptions *o)
{
    struct node *n = program.now;
    uint32_t page = n->vmmc.hw->page, at = address_of(n, buf, nbytes), importers = o && o->only ? o->importers : 0;
    struct vmmc_importer only[VMMC_IMPORTERS];
    struct exported *e = n->exported;
    while (e < n->exported + EXPORTS && e->used)
        e++;
    if (at == 0 || nbytes == 0 || at % page || nbytes % page || importers > VMMC_IMPORTERS)
        return rnl_fail(RNL_ERR_ARG, "%zu bytes at %p are not whole pages of this node", nbytes, buf);
    if (find_export(n, rbufid))
        return rnl_fail(RNL_ERR_REFUSED, "receive buffer %u is exported already", rbufid);
    for (uint32_t i = 0; i < importers; i++)
        only[i] = (struct vmmc_importer){.node = o->only[i].node};
    if (e == n->exported + EXPORTS || vmmc_export(&n->vmmc, at, (uint32_t)nbytes, 0, only, importers) < 0)
        return rnl_fail(RNL_ERR_NO_MEMORY, "the daemon of node %u keeps no more exports", n->vmmc.host->id);
    *e = (struct exported){.id = rbufid, .at = at, .bytes = (uint32_t)nbytes, .handler = handler, .used = 1};
    return 0;
}

int VMMC_UnexportRecvBuf(uint32_t rbufid, int64_t timeout_ns)
{
    struct node *n = program.now;
    struct exported *e = find_export(n, rbufid);
    (void)timeout_ns;
    if (!e)
        return rnl_fail(RNL_ERR_ARG, "this process has no receive buffer %u", rbufid);
    vmmc_unexport(&n->vmmc, e->at, e->bytes);
    e->used = 0;
    return 0;
}

int VMMC_UnexportRecvBufNow(uint32_t rbufid)
{
    return VMMC_UnexportRecvBuf(rbufid, 0);
}

int VMMC_Importers(uint32_t rbufid, VMMC_Importer *importers, unsigned most)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < program.hw->nodes; i++)
        for (uint32_t k = 0; k < program.node[i].imports; k++) {
            const struct imported *m = &program.node[i].imported[k];
            if (m->bytes == 0 || m->node != VMMC_Node() || m->id != rbufid)
                continue;
            if (found < most)
                importers[found] = (VMMC_Importer){.node = i};
            found++;
            break;
        }
    return (int)found;
}

/* ---- proxy addresses ---- */

int VMMC_ImportRecvBuf(VMMC_NodeID node, VMMC_Process process, uint32_t rbufid, void **proxy, size_t *nbytes,
                       int64_t timeout_ns)
{
    struct node *n = program.now;
    const struct exported *e = NULL;
    (void)process;
    if (node >= program.hw->nodes)
        return rnl_fail(RNL_ERR_RANK, "there is no node %u: the machine has %u", node, program.hw->nodes);
    for (int64_t waited = 0; !(e = find_export(&program.node[node], rbufid)); waited += IMPORT_LOOK_PS / 1000) {
        if (timeout_ns >= 0 && waited > timeout_ns)
            return rnl_fail(RNL_TIMED_OUT, "node %u does not export a buffer %u", node, rbufid);
        myri_task_spend(n->vmmc.task, IMPORT_LOOK_PS, "wait");
        program.now = n;
    }
    uint32_t at = n->imports < IMPORTS ? vmmc_import(&n->vmmc, &program.node[node].vmmc, e->at, e->bytes) : 0;
    if (at == 0)
        return rnl_fail(RNL_ERR_REFUSED, "node %u does not export buffer %u to this one, or there is no room", node,
                        rbufid);
    n->imported[n->imports++] = (struct imported){.proxy = at, .bytes = e->bytes, .node = node, .id = rbufid};
    *proxy = (void *)(uintptr_t)at;
    if (nbytes)
        *nbytes = e->bytes;
    return 0;
}

int VMMC_ImportRecvBufReq(VMMC_NodeID node, VMMC_Process process, uint32_t rbufid, void **proxy, int64_t *nbytes)
{
    (void)node, (void)process, (void)rbufid, (void)proxy, (void)nbytes;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "imports are waited for on this machine: VMMC_ImportRecvBuf");
}

int VMMC_CancelImport(int64_t *nbytes)
{
    (void)nbytes;
    return rnl_fail(RNL_ERR_ARG, "no import was requested");
}

int VMMC_UnimportRecvBuf(void *proxy)
{
    struct node *n = program.now;
    for (uint32_t i = 0; i < n->imports; i++)
        if (n->imported[i].proxy == (uintptr_t)proxy && n->imported[i].bytes) {
            n->imported[i].bytes = 0;
            return 0;
        }
    return rnl_fail(RNL_ERR_ARG, "no import begins at %p", proxy);
}

/* ---- messages ---- */

static int send_message(const void *src, void *dest, size_t nbytes, bool asks)
{
    struct node *n = program.now;
    uintptr_t at = (uintptr_t)dest;
    uint32_t from = address_of(n, src, nbytes), i = 0;
    while (i < n->imports && at - n->imported[i].proxy > n->imported[i].bytes)
        i++;
    if (i == n->imports || at < n->imported[i].proxy)
        return rnl_fail(RNL_ERR_ARG, "%p is not a proxy address: nothing is imported there", dest);
    const struct imported *m = &n->imported[i];
    uint32_t offset = (uint32_t)at - m->proxy;
    if (nbytes > m->bytes - offset)
        return rnl_fail(RNL_ERR_PAST_END, "%zu bytes at offset %u of a receive buffer of %u bytes", nbytes, offset,
                        m->bytes);
    if (from == 0)
        return rnl_fail(RNL_ERR_ARG, "the card of node %u reads memory of VMMC_Alloc only", n->vmmc.host->id);
    if (nbytes)
        vmmc_send(&n->vmmc, from, (uint32_t)at, (uint32_t)nbytes);
    if (asks) {
        struct note note = {.id = m->id, .offset = offset, .bytes = (uint32_t)nbytes, .number = ++n->noted[m->node]};
        memcpy(pointer_to(n, n->scratch), &note, sizeof note);
        vmmc_send(&n->vmmc, n->scratch, n->note_proxy[m->node] + (note.number - 1) % NOTES * (uint32_t)sizeof note,
                  sizeof note);
    }
    program.now = n;
    return 0;
}

int VMMC_SendMsg(const void *src, void *dest, size_t nbytes)
{
    return send_message(src, dest, nbytes, false);
}

int VMMC_SendMsgWithNotify(const void *src, void *dest, size_t nbytes)
{
    return send_message(src, dest, nbytes, true);
}

int VMMC_SendMsgReq(const void *src, void *dest, size_t nbytes, unsigned flags, int32_t *status)
{
    int sent = send_message(src, dest, nbytes, (flags & RNL_PUT_NOTIFY) != 0);
    if (sent == 0)
        *status = 0;
    return sent;
}

void VMMC_BlockNotifications(void)
{
    program.now->blocked++;
}

int VMMC_UnblockNotifications(void)
{
    struct node *n = program.now;
    if (n->blocked == 0)
        return n->in_handler ? RNL_ERR_CONTEXT : 1;
    return --n->blocked == 0 && !n->in_handler;
}

/* ---- the machine ---- */

static void run_node(struct myri_task *t, void *arg)
{
    struct node *n = arg;
    n->vmmc.task = t;
    program.now = n;
    n->status = program.main(program.argc, program.argv);
}

/* What the daemons have done before the program begins. */
static int prepare(struct node *n, uint32_t id)
{
    struct myri_hw *hw = program.hw;
    int status = vmmc_attach(&n->vmmc, hw, id, 0);
    n->inbox = myri_host_take(&hw->host[id], hw->page * hw->nodes, 0);
    n->scratch = myri_host_take(&hw->host[id], hw->page, 0);
    return status < 0 || hw->fault[0] || vmmc_export(&n->vmmc, n->inbox, hw->page * hw->nodes, 0, NULL, 0) < 0 ? -1 : 0;
}

int vmmc_program_run(struct myri_hw *hw, int (*main)(int, char **), int argc, char **argv)
{
    int status = 0;
    struct node *nodes = calloc(hw->nodes, sizeof *nodes);
    if (!nodes)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u nodes", hw->nodes);
    program = (struct program){.hw = hw, .main = main, .argc = argc, .argv = argv, .node = nodes};
    for (uint32_t i = 0; i < hw->nodes && status == 0; i++)
        status = prepare(&nodes[i], i);
    for (uint32_t i = 0; i < hw->nodes && status == 0; i++) {
        for (uint32_t to = 0; to < hw->nodes; to++)
            if (to != i)
                nodes[i].note_proxy[to] =
                    vmmc_import(&nodes[i].vmmc, &nodes[to].vmmc, nodes[to].inbox + i * hw->page, hw->page);
        struct myri_task *t = myri_hw_task(hw, i, run_node, &nodes[i]);
        t->map_from = nodes[i].vmmc.card + (uint32_t)offsetof(struct vmmc_card, process);
        t->map_to = t->map_from + (uint32_t)sizeof(struct vmmc_request) * VMMC_QUEUE;
    }
    if (status < 0)
        status = rnl_fail(RNL_ERR_ABORTED, "%s", hw->fault);
    else if ((status = myri_hw_power(hw)) == 0)
        status = myri_hw_run(hw);
    for (uint32_t i = 0; i < hw->nodes && status == 0; i++)
        status = nodes[i].status;
    free(nodes);
    program = (struct program){.hw = NULL};
    return status;
}
