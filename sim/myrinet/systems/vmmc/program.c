/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.c - see program.h: the calls of runnel/vmmc.h over VMMC's library on the papers' machine (host.h).
 *
 * Each node has a daemon, which is asked for exports and imports, and one process, in which the program runs; what
 * notifies it runs its handlers as signals, also in the middle of a call. */
#include "sim/myrinet/systems/vmmc/program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sim/myrinet/systems/vmmc/daemon.h"

enum { EXPORTS = 16, IMPORTS = 32, LOOK = 12 /* host operations */, EXIT_LOOK_PS = 100000000 };

struct exported {
    uint32_t id, at, bytes;
    VMMC_MsgHandler *handler;
    int used;
};
struct imported {
    uint32_t proxy, bytes, node, id;
};

struct node {
    struct vmmc_user user;
    struct exported exported[EXPORTS];
    struct imported imported[IMPORTS];
    uint32_t imports;
    unsigned blocked, in_handler;
    int status;
};

static struct program {
    struct myri_hw *hw;
    int (*main)(int, char **);
    int argc;
    char **argv;
    struct node *node;
    struct vmmc_daemons daemons;
    uint32_t left;    /* nodes that have ended their session */
    struct node *now; /* whose task runs: each call that lets others run sets it again */
} program;

static uint32_t address_of(const struct node *n, const void *at, size_t bytes)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)n->user.vmmc.host->memory,
              size = (uintptr_t)n->user.vmmc.hw->page * n->user.vmmc.hw->pages;
    return offset < size && bytes <= size - offset ? (uint32_t)offset : 0;
}

static void *pointer_to(const struct node *n, uint32_t at)
{
    return n->user.vmmc.host->memory + at;
}

static void look(struct node *n)
{
    myri_task_operate(n->user.vmmc.task, LOOK, "look");
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
    while (n->blocked)
        (void)VMMC_UnblockNotifications();
    program.left++;
    for (int more = 1; more >= 0;) {
        more = program.left < program.hw->nodes ? 1 : more - 1;
        myri_task_spend(n->user.vmmc.task, EXIT_LOOK_PS, "wait");
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
    return program.now->user.vmmc.host->id;
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

/* A signal of the process: whatever call it is in the middle of goes on behind it. */
static void on_note(struct vmmc_user *u, uint32_t id, uint32_t offset, uint32_t bytes, struct vmmc_importer from)
{
    struct node *n = u->arg;
    const struct exported *e = find_export(n, id);
    if (!e || !e->handler)
        return;
    program.now = n;
    n->in_handler = 1;
    e->handler(id, pointer_to(n, e->at + offset), bytes, from.node);
    n->in_handler = 0;
    program.now = n;
}

int VMMC_Poll(void)
{
    look(program.now);
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
    uint32_t got =
        nbytes && nbytes < 1u << 30 ? myri_host_take(n->user.vmmc.host, (uint32_t)nbytes, 0) : MYRI_HW_NO_WATCH;
    if (got == MYRI_HW_NO_WATCH)
        return rnl_fail(RNL_ERR_NO_MEMORY, "node %u has no %zu bytes left", n->user.vmmc.host->id, nbytes);
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
    uint32_t page = n->user.vmmc.hw->page, at = address_of(n, buf, nbytes), importers = o && o->only ? o->importers : 0;
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
    if (e == n->exported + EXPORTS)
        return rnl_fail(RNL_ERR_NO_MEMORY, "node %u keeps %d exports", n->user.vmmc.host->id, EXPORTS);
    *e = (struct exported){.id = rbufid, .at = at, .bytes = (uint32_t)nbytes, .handler = handler, .used = 1};
    enum vmmc_answer answer = vmmc_user_export(&n->user, rbufid, at, (uint32_t)nbytes, on_note, only, importers);
    program.now = n;
    e->used = answer == VMMC_GRANTED;
    return e->used ? 0
                   : rnl_fail(RNL_ERR_NO_MEMORY, "node %u does not export buffer %u: %s", n->user.vmmc.host->id, rbufid,
                              vmmc_answer_text(answer));
}

int VMMC_UnexportRecvBuf(uint32_t rbufid, int64_t timeout_ns)
{
    struct node *n = program.now;
    struct exported *e = find_export(n, rbufid);
    (void)timeout_ns;
    if (!e)
        return rnl_fail(RNL_ERR_ARG, "this process has no receive buffer %u", rbufid);
    (void)vmmc_user_unexport(&n->user, rbufid);
    program.now = n;
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
    uint32_t at = 0, bytes = 0;
    if (node >= program.hw->nodes)
        return rnl_fail(RNL_ERR_RANK, "there is no node %u: the machine has %u", node, program.hw->nodes);
    if (n->imports == IMPORTS)
        return rnl_fail(RNL_ERR_REFUSED, "node %u has imported %d buffers", n->user.vmmc.host->id, IMPORTS);
    uint64_t now = myri_hw_now(program.hw), most = (RNL_SIM_NEVER - 1 - now) / 1000;
    uint64_t until = timeout_ns < 0 || (uint64_t)timeout_ns > most ? RNL_SIM_NEVER : now + 1000 * (uint64_t)timeout_ns;
    enum vmmc_answer answer = vmmc_user_import(&n->user, node, process, rbufid, until, &at, &bytes);
    program.now = n;
    if (answer != VMMC_GRANTED)
        return rnl_fail(answer == VMMC_NOT_EXPORTED ? RNL_TIMED_OUT : RNL_ERR_REFUSED, "buffer %u of node %u: %s",
                        rbufid, node, vmmc_answer_text(answer));
    n->imported[n->imports++] = (struct imported){.proxy = at, .bytes = bytes, .node = node, .id = rbufid};
    *proxy = (void *)(uintptr_t)at;
    if (nbytes)
        *nbytes = bytes;
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
        return rnl_fail(RNL_ERR_ARG, "the card of node %u reads memory of VMMC_Alloc only", n->user.vmmc.host->id);
    if (asks)
        (void)vmmc_user_notify(&n->user, from, (uint32_t)at, (uint32_t)nbytes);
    else if (nbytes)
        vmmc_user_send(&n->user, from, (uint32_t)at, (uint32_t)nbytes);
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
    struct node *n = program.now;
    n->blocked++;
    myri_process_block(&n->user.process);
    program.now = n;
}

int VMMC_UnblockNotifications(void)
{
    struct node *n = program.now;
    if (n->blocked == 0)
        return n->in_handler ? RNL_ERR_CONTEXT : 1;
    n->blocked--;
    myri_process_unblock(&n->user.process);
    program.now = n;
    return n->blocked == 0 && !n->in_handler;
}

/* ---- the machine ---- */

static void run_node(struct myri_task *t, void *arg)
{
    struct node *n = arg;
    vmmc_user_join(&n->user, t);
    program.now = n;
    n->status = program.main(program.argc, program.argv);
    vmmc_user_leave(&n->user);
}

int vmmc_program_run(struct myri_hw *hw, int (*main)(int, char **), int argc, char **argv)
{
    int status = 0;
    struct node *nodes = calloc(hw->nodes, sizeof *nodes);
    if (!nodes)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u nodes", hw->nodes);
    program = (struct program){.hw = hw, .main = main, .argc = argc, .argv = argv, .node = nodes};
    vmmc_daemons_init(&program.daemons, hw, 1);
    for (uint32_t i = 0; i < hw->nodes && status == 0; i++)
        status = vmmc_user_open(&nodes[i].user, &program.daemons, i, 0);
    for (uint32_t i = 0; i < hw->nodes && status == 0; i++) {
        nodes[i].user.arg = &nodes[i];
        (void)myri_hw_task(hw, i, run_node, &nodes[i]);
    }
    if (status < 0)
        status = rnl_fail(RNL_ERR_ABORTED, "%s", hw->fault);
    else if ((status = myri_hw_power(hw)) == 0)
        status = myri_hw_run(hw);
    for (uint32_t i = 0; i < hw->nodes && status == 0; i++)
        status = nodes[i].status;
    for (uint32_t i = 0; i < hw->nodes; i++)
        vmmc_user_close(&nodes[i].user);
    free(nodes);
    program = (struct program){.hw = NULL};
    return status;
}
