/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tree.c - barrier and all-gather of a job's workers, over an endpoint of their own, number 1 in each process; the
 * master takes no part. In step k each rank sends the 2^k blocks it has (its own and those of the ranks behind it)
 * to the rank 2^k before it, so after log2(ranks) steps, and as many messages, each has all. A barrier is a gather of
 * blocks of no bytes: the last step's message can only come when everybody has come.
 *
 *   arguments of a message   which gather | step | part | parts        data: up to 65,000 bytes of the blocks
 *
 * A rank can be one gather ahead of another, and no more, since it cannot end one that the other has not begun. A
 * message of the next gather waits in a list. */
#include "api/amudp/amudp_internal.h"
#include "endpoint/net.h"
#include "remote/remote.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, PART = AMUDP_MAX_MEDIUM };
#define DEATH_CHECK_NS 100000000ll /* time between two checks whether the peer is dead */
#define DRAIN_CHECK_NS 1000000ll   /* time between two checks whether everything was sent */
enum {
    DRAIN_CHECKS_MAX = 2000, /* an unreachable peer is declared dead by remote/, so this need not wait longer */
    DEATH_CHECKS_MAX = 50    /* checks that find the peer dead: if it exited in order, END arrives meanwhile */
};

struct early {
    struct early *next;
    size_t n;
    int32_t step, part, parts;
    char bytes[];
};

static struct {
    int32_t number; /* number of the gather that runs, or of the last one */
    int running;
    int wrong;    /* a message did not fit this gather: the workers do not agree on its length */
    char *blocks; /* this rank's block, then those of the next ranks */
    size_t bytes; /* bytes of all blocks */
    size_t len;
    int32_t got[STEPS], parts[STEPS];
    struct early *early; /* messages of the next gather */
} g;

static void take(int32_t step, int32_t part, int32_t parts, const void *bytes, size_t n)
{
    size_t at = step < STEPS ? ((size_t)1 << step) * g.len + (size_t)part * PART : 0;
    if (step < 0 || step >= STEPS || part < 0 || part >= parts || at > g.bytes || n > g.bytes - at) {
        g.wrong = 1;
        return;
    }
    if (n > 0)
        memcpy(g.blocks + at, bytes, n);
    g.parts[step] = parts;
    g.got[step]++;
}

static void on_allgather(void *token, void *buf, size_t n, int32_t number, int32_t step, int32_t part, int32_t parts)
{
    (void)token;
    if (g.running && number == g.number) {
        take(step, part, parts, buf, n);
        return;
    }
    struct early *e = number == g.number + 1 ? malloc(sizeof *e + n) : NULL;
    if (!e) { /* no memory, or an impossible gather: the wait for it reports this */
        g.wrong = 1;
        return;
    }
    *e = (struct early){.next = g.early, .n = n, .step = step, .part = part, .parts = parts};
    if (n > 0)
        memcpy(e->bytes, buf, n);
    g.early = e;
}

/* Only messages to dead peers are returned; the wait for such a peer finds it dead. */
static void on_returned(int status, op_t opcode, void *token)
{
    struct rnl_am_token_info info;
    (void)status, (void)opcode;
    if (rnl_am_get_token_info(token, &info) == AM_OK)
        rnl_amudp_exit_returned(info.handler);
}

int rnl_amudp_tree_new(struct amudp_eb *bundle)
{
    en_t name;
    tag_t all = AM_ALL; /* only processes of the job can send here: packets are authenticated */
    struct amudp_ep *ep;
    int r = AM_AllocateEndpoint(bundle, &ep, &name);
    if (r != AM_OK)
        return r;
    rnl_amudp_fault_free(ep);
    rnl_amudp_spmd.tree = ep;
    r = AM_SetHandler(ep, 0, on_returned);
    if (r == AM_OK)
        r = AM_SetHandler(ep, RNL_AMUDP_ALLGATHER, on_allgather);
    if (r == AM_OK)
        r = rnl_amudp_exit_handlers(ep);
    if (r == AM_OK)
        r = rnl_am_set_num_translations(ep->core, rnl_amudp_spmd.size);
    for (int i = 0; r == AM_OK && i < rnl_amudp_spmd.size; i++)
        r = rnl_am_map(ep->core, i, AM_NameOf((unsigned)i, 1), all);
    return r == AM_OK ? AM_SetTag(ep, all) : rnl_amudp_result(r, "AMUDP_SPMDStartup");
}

static int send_blocks(int to, int32_t step, size_t n)
{
    int32_t parts = n == 0 ? 1 : (int32_t)((n + PART - 1) / PART);
    for (int32_t part = 0; part < parts; part++) {
        size_t at = (size_t)part * PART, m = n - at < PART ? n - at : PART;
        int32_t args[] = {g.number, step, part, parts};
        int r = rnl_am_request_i(rnl_amudp_spmd.tree->core, to, RNL_AMUDP_ALLGATHER, m > 0 ? g.blocks + at : NULL, m, 4,
                                 args);
        if (r != AM_OK)
            return rnl_amudp_result(r, "AMUDP_SPMDAllGather");
    }
    return AM_OK;
}

/* Returns true if all parts of the step have arrived. Threads of other bundles may take them in. */
static int has_arrived(int32_t step)
{
    int held = rnl_am_hold(), all = g.wrong || (g.parts[step] > 0 && g.got[step] == g.parts[step]);
    rnl_am_let_go(held);
    return all;
}

static int wait_for(int from, int32_t step)
{
    rnl_am_eb core = rnl_amudp_spmd.bundle->core;
    int looks = 0;
    while (!has_arrived(step)) {
        struct rnl_peer_info peer;
        int r = rnl_am_wait_sema_for(core, DEATH_CHECK_NS);
        rnl_amudp_exit_if_ended();
        if (r != AM_OK && r != AM_ERR_NOT_SENT)
            return rnl_amudp_result(r, "AMUDP_SPMDAllGather");
        if (r == AM_ERR_NOT_SENT && rnl_peer(rnl_am_get_rank(core), (unsigned)from, &peer) == 0 &&
            peer.state == RNL_PEER_DEAD && !has_arrived(step) && ++looks > DEATH_CHECKS_MAX)
            return rnl_amudp_fail(AM_ERR_RESOURCE, "AMUDP_SPMDAllGather",
                                  "rank %d is dead, and all workers have to take part", from);
    }
    int held = rnl_am_hold(), wrong = g.wrong;
    rnl_am_let_go(held);
    if (wrong)
        return rnl_amudp_fail(AM_ERR_RESOURCE, "AMUDP_SPMDAllGather",
                              "no memory, or the workers gather blocks of different lengths");
    return AM_OK;
}

/* Waits until everything was sent, also to receivers that are still being connected, since a worker that has all blocks
 * may compute for long without a call. */
static int drain(void)
{
    rnl_am_eb core = rnl_amudp_spmd.bundle->core;
    const struct rnl_endpoint *ep = rnl_am_get_rank(core);
    for (int looks = 0; ep->remote && !rnl_remote_all_left(ep->remote) && looks < DRAIN_CHECKS_MAX; looks++) {
        int r = rnl_am_wait_sema_for(core, DRAIN_CHECK_NS);
        rnl_amudp_exit_if_ended();
        if (r != AM_OK && r != AM_ERR_NOT_SENT)
            return rnl_amudp_result(r, "AMUDP_SPMDAllGather");
    }
    return AM_OK;
}

static void begin(char *blocks, const void *from, size_t len, size_t all)
{
    int held = rnl_am_hold();
    struct early *early = g.early;
    g.blocks = blocks;
    g.bytes = all;
    g.number++;
    g.running = 1;
    g.len = len;
    memset(g.got, 0, sizeof g.got);
    memset(g.parts, 0, sizeof g.parts);
    if (len > 0)
        memcpy(g.blocks, from, len);
    g.early = NULL;
    while (early) {
        struct early *next = early->next;
        take(early->step, early->part, early->parts, early->bytes, early->n);
        free(early);
        early = next;
    }
    rnl_am_let_go(held);
}

int rnl_amudp_allgather(const void *from, void *to, size_t len)
{
    int size = rnl_amudp_spmd.size, rank = rnl_amudp_spmd.rank, mask = AM_NOEVENTS, r = AM_OK;
    rnl_am_eb core = rnl_amudp_spmd.bundle->core;
    char *blocks = NULL;
    if (g.running)
        return rnl_amudp_fail(AM_ERR_RESOURCE, "AMUDP_SPMDAllGather", "not from within a handler");
    if (len > SIZE_MAX / (size_t)size || (len > 0 && !(blocks = malloc(len * (size_t)size))))
        return rnl_amudp_fail(AM_ERR_RESOURCE, "AMUDP_SPMDAllGather", "no memory for %d blocks of %zu bytes", size,
                              len);
    begin(blocks, from, len, len * (size_t)size);
    (void)rnl_am_get_event_mask(core, &mask);
    (void)rnl_am_set_event_mask(core, RNL_AM_NOTEMPTY);
    for (int32_t step = 0; r == AM_OK && 1 << step < size; step++) {
        int far = 1 << step, count = far < size - far ? far : size - far;
        r = send_blocks((rank - far + size) % size, step, (size_t)count * len);
        if (r == AM_OK)
            r = wait_for((rank + far) % size, step);
    }
    if (r == AM_OK)
        r = drain();
    (void)rnl_am_set_event_mask(core, mask);
    int held = rnl_am_hold();
    g.running = 0;
    g.blocks = NULL;
    rnl_am_let_go(held);
    for (int i = 0; r == AM_OK && len > 0 && i < size; i++)
        memcpy((char *)to + (size_t)((rank + i) % size) * len, blocks + (size_t)i * len, len);
    free(blocks);
    rnl_amudp_exit_if_ended(); /* a send may have polled, and END may have arrived */
    return r;
}
