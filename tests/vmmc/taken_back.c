/* SPDX-License-Identifier: BSD-3-Clause
 *
 * taken_back.c - how VMMC's receive buffers end, and what becomes of their memory: vmmc-taken_back CASE.
 *
 *   unexport     nothing arrives any more: politely, at once, and under fire; the number can be used again
 *   memory       static data, malloc, parts of VMMC_Alloc's: the address stays, and the content
 *   death        (node 2 dies) of an importer, of an exporter */
#include "nodes.h"

#include <runnel/adapter.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char *landed;
_Alignas(PAGE) static unsigned char of_program[2 * PAGE] = "static";

static void case_unexport(void)
{
    enum { ROUNDS = 12 };
    void *proxy = NULL;
    uint64_t word = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        int now = round % 2, own = round % 4 < 2; /* at once, or politely; memory of VMMC_Alloc, or adopted */
        if (me == 0) {
            if (own)
                IS(VMMC_Alloc(2 * PAGE, (void **)&landed), 0);
            else
                landed = pages(2);
            memset(landed, 0x55, 2 * PAGE);
            IS(VMMC_ExportRecvBuf(landed, 2 * PAGE, BUFFER, NULL, NULL), 0);
            IS(VMMC_UnexportRecvBuf(SECOND, 0), RNL_ERR_ARG);
        }
        meet();
        if (me == 1)
            IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
        int status = 0;
        if (me == 1) { /* under fire */
            while ((status = VMMC_SendMsg(&word, (char *)proxy + 8 * (word % 512), 8)) == 0)
                if (++word % 64 == 0)
                    poll_once();
            CHECK(status == RNL_ERR_REVOKED);
            IS(VMMC_SendMsg(&word, proxy, 8), RNL_ERR_REVOKED);
            IS(VMMC_UnimportRecvBuf(proxy), 0);
        } else if (me == 0) {
            while (__atomic_load_n((uint32_t *)(void *)(landed + 8), __ATOMIC_ACQUIRE) == 0x55555555u)
                poll_once(); /* it arrives */
            IS(now ? VMMC_UnexportRecvBufNow(BUFFER) : VMMC_UnexportRecvBuf(BUFFER, LONG_NS), 0);
            CHECK(landed[2 * PAGE - 1] == 0x55); /* where nothing was written, the content is as it was */
            memset(landed, 0x77, 2 * PAGE);
            IS(VMMC_UnexportRecvBuf(BUFFER, 0), RNL_ERR_ARG);
        }
        meet();
        for (unsigned i = 0; me == 0 && i < 2 * PAGE; i++)
            CHECK(landed[i] == 0x77);
        if (me == 0 && own)
            IS(VMMC_Free(landed), 0);
        else if (me == 0)
            free(landed);
    }
}

static void case_memory(void)
{
    void *proxy[4];
    unsigned char *heap = NULL, *area = NULL;
    if (me == 0) {
        heap = pages(4);
        strcpy((char *)heap, "heap");
        IS(VMMC_Alloc(3 * PAGE, (void **)&area), 0);
        strcpy((char *)area + PAGE, "part");
        IS(VMMC_ExportRecvBuf(of_program, sizeof of_program, 10, NULL, NULL), 0);
        IS(VMMC_ExportRecvBuf(heap, 4 * PAGE, 11, NULL, NULL), 0);
        IS(VMMC_ExportRecvBuf(area + PAGE, PAGE, 12, NULL, NULL), 0);
        CHECK(!strcmp((char *)of_program, "static") && !strcmp((char *)heap, "heap") &&
              !strcmp((char *)area + PAGE, "part"));
    }
    meet();
    for (unsigned i = 0; me == 1 && i < 3; i++) {
        IS(VMMC_ImportRecvBuf(0, 0, 10 + i, &proxy[i], NULL, LONG_NS), 0);
        IS(VMMC_SendMsg("landed", (char *)proxy[i] + 100, 7), 0);
        IS(rnl_quiet(VMMC_Endpoint(), 0, LONG_NS), 0);
    }
    meet();
    if (me == 0) {
        const unsigned char *at[] = {of_program, heap, area + PAGE};
        for (unsigned i = 0; i < 3; i++)
            CHECK(!strcmp((const char *)at[i] + 100, "landed"));
        IS(VMMC_Free(area), RNL_BUSY);
        IS(VMMC_UnexportRecvBuf(12, LONG_NS), 0);
        IS(VMMC_UnexportRecvBuf(11, LONG_NS), 0);
        IS(VMMC_UnexportRecvBuf(10, LONG_NS), 0);
        for (unsigned i = 0; i < 3; i++)
            CHECK(!strcmp((const char *)at[i] + 100, "landed"));
        IS(VMMC_Free(area), 0);
        free(heap);
    }
}

/* Node 2 dies; it has imported from node 0, and exported to node 1. The job goes on without it. */
static void case_death(void)
{
    void *proxy = NULL;
    uint64_t word = 3;
    VMMC_Importer who[4];
    struct rnl_place place = {.size = sizeof place};
    int status = 0;
    IS(rnl_peer_place(VMMC_Endpoint(), 2, &place), 0);
    if (me != 1) {
        IS(VMMC_Alloc(PAGE, (void **)&landed), 0);
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, NULL, NULL), 0);
    }
    meet();
    if (me != 0)
        IS(VMMC_ImportRecvBuf(me == 1 ? 2 : 0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
    meet();
    if (me != 2)
        tell(2);
    if (me == 2) { /* the others have heard it at the meeting: what a node that ends has not sent yet is lost */
        hear(0, 1);
        hear(1, 1);
        _exit(3);
    }
    if (me == 1) {
        /* To another host a message waits for room in the end. What is mapped never waits, and must look by itself. */
        for (unsigned sent = 0; (status = VMMC_SendMsg(&word, proxy, 8)) == 0; sent++)
            if (place.where != RNL_ON_OTHER_HOST || sent % (1 << 20) == 0)
                poll_once();
        IS(status, RNL_ERR_PEER_DEAD);
        CHECK(!strstr(rnl_last_error()->text, "nothing was heard")); /* the launcher tells it */
        IS(VMMC_SendMsg(&word, proxy, 8), RNL_ERR_PEER_DEAD);
        IS(VMMC_ImportRecvBuf(2, 0, BUFFER, &proxy, NULL, LONG_NS), RNL_ERR_PEER_DEAD);
        IS(VMMC_UnimportRecvBuf(proxy), 0);
    } else {
        while (VMMC_Importers(BUFFER, who, 4) != 0)
            poll_once();
        IS(VMMC_UnexportRecvBuf(BUFFER, LONG_NS), 0); /* waits for nobody */
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, NULL, NULL), 0);
    }
}

const struct node_case node_cases[] = {
    {"unexport", case_unexport, 1},
    {"memory", case_memory, 1},
    {"death", case_death, 0},
    {NULL, NULL, 0},
};
