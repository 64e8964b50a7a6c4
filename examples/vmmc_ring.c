/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vmmc_ring - processes that write into each other's memory: runnel run -n 4 vmmc_ring [LAPS]
 *
 * Each process exports a page and imports that of the next one. A list goes round: who finds it in its page adds its
 * own line and sends it on, straight into the next page. Nobody receives anything; each looks at the last word of its
 * page. On the last lap node 0 asks for a notification as well.
 *
 * What is sent lies in memory of VMMC_Alloc, and nothing is kept in static variables: so the program also runs on the
 * machine of the VMMC paper, whose nodes share a process here (tests/myrinet/test_vmmc_program.c). */
#include <runnel/vmmc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, LINES = 1000, INBOX = 1, PATIENCE_S = 20 };

struct list {
    uint32_t lines[LINES]; /* the nodes it has passed, in order */
    uint32_t used;
    uint32_t lap; /* last: whoever sees it has the rest */
};

static int fail(const char *what)
{
    fprintf(stderr, "vmmc_ring: %s: %s\n", what, rnl_last_error()->text);
    return 1;
}

static void on_last(uint32_t rbufid, void *at, size_t nbytes, VMMC_NodeID node)
{
    (void)at;
    printf("node %u notifies: %zu bytes are in buffer %u\n", (unsigned)node, nbytes, (unsigned)rbufid);
}

/* Waits until the list is here for this lap. */
static int await(const struct list *inbox, uint32_t lap)
{
    while (__atomic_load_n(&inbox->lap, __ATOMIC_ACQUIRE) != lap)
        if (VMMC_Poll() < 0)
            return fail("VMMC_Poll");
    return 0;
}

static int in_order(const struct list *l, unsigned nodes)
{
    for (uint32_t i = 0; i < l->used; i++)
        if (l->lines[i] != i % nodes)
            return 0;
    return 1;
}

static int go_round(struct list *inbox, struct list *out, unsigned char *next, uint32_t laps)
{
    unsigned me = VMMC_Node(), nodes = VMMC_Nodes();
    for (uint32_t lap = 1; lap <= laps; lap++) {
        if (me != 0 && await(inbox, lap))
            return 1;
        memcpy(out, inbox, sizeof *out);
        out->lines[out->used++] = me;
        out->lap = lap;
        int last = me == 0 && lap == laps;
        if ((last ? VMMC_SendMsgWithNotify : VMMC_SendMsg)(out, next, sizeof *out) < 0)
            return fail("VMMC_SendMsg");
        if (me == 0 && await(inbox, lap))
            return 1;
    }
    if (me == 0)
        printf("%u lines of %u nodes, %s\n", (unsigned)inbox->used, nodes,
               in_order(inbox, nodes) ? "in order" : "out of order");
    return me == 0 && (inbox->used != laps * nodes || !in_order(inbox, nodes));
}

int main(int argc, char **argv)
{
    uint32_t laps = argc > 1 ? (uint32_t)atoi(argv[1]) : 3;
    void *inbox, *out, *next;
    size_t bytes;
    if (VMMC_Init(NULL) < 0)
        return fail("VMMC_Init");
    unsigned me = VMMC_Node(), nodes = VMMC_Nodes();
    if (laps < 1 || laps * nodes > LINES)
        laps = 1;
    if (VMMC_Alloc(PAGE, &inbox) < 0 || VMMC_Alloc(PAGE, &out) < 0 ||
        VMMC_ExportRecvBuf(inbox, PAGE, INBOX, on_last, NULL) < 0)
        return fail("cannot export a page");
    if (VMMC_ImportRecvBuf((me + 1) % nodes, 0, INBOX, &next, &bytes, PATIENCE_S * (int64_t)1000000000) < 0)
        return fail("cannot import the next node's page");
    int failed = go_round(inbox, out, next, laps);
    if (VMMC_Exit() < 0)
        failed = fail("VMMC_Exit");
    return failed;
}
