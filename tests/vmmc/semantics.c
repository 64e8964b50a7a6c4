/* SPDX-License-Identifier: BSD-3-Clause
 *
 * semantics.c - what VMMC promises of exports, imports, messages and notifications: vmmc-semantics CASE.
 *
 *   errors       what is refused, and with which status
 *   import       waits until the export is there; by request; times out; is refused; names a process that is gone
 *   send         any source, alignment and length, to the end of the buffer and not beyond; one buffer among several
 *   order        messages land in the order sent, before their notification
 *   async        the status word; the source may change once it is 0
 *   notify       handler by buffer, wish by message; no handler, no notification; handlers send
 *   block        levels count; what is blocked waits; a handler cannot unblock itself
 *   importers    come and go */
#include "nodes.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 500 };
static uint32_t heard;
static unsigned char *landed;
static VMMC_NodeID told_by;
static void *back; /* node 0's way to node 1 */
static unsigned in_handler;

static void case_errors(void)
{
    enum { MANY = 40 };
    unsigned char *at, *area;
    VMMC_Importer nobody[MANY] = {{7, 0}};
    VMMC_ExportOptions wrong = {.size = 4}, bits = {.size = sizeof bits, .flags = 64},
                       list = {.size = sizeof list, .importers = 1},
                       many = {.size = sizeof many, .only = nobody, .importers = MANY},
                       direct = {.size = sizeof direct, .flags = VMMC_DIRECT};
    void *p;
    IS(VMMC_Init(NULL), RNL_ERR_CONTEXT);
    CHECK(VMMC_Endpoint() && rnl_rank(VMMC_Endpoint()) == me);
    at = pages(8);
    /* whole pages only */
    IS(VMMC_ExportRecvBuf(at + 8, PAGE, BUFFER, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, PAGE - 4, BUFFER, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, PAGE + 4, BUFFER, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, 0, BUFFER, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(NULL, PAGE, BUFFER, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, SIZE_MAX - PAGE + 1, BUFFER, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, PAGE, BUFFER, NULL, &wrong), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, PAGE, BUFFER, NULL, &bits), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, PAGE, BUFFER, NULL, &list), RNL_ERR_ARG);
    /* a number and a page are exported once */
    IS(VMMC_ExportRecvBuf(at + 2 * PAGE, 2 * PAGE, BUFFER, NULL, NULL), 0);
    IS(VMMC_ExportRecvBuf(at, 3 * PAGE, SECOND, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at + 3 * PAGE, PAGE, SECOND, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at + 2 * PAGE, 2 * PAGE, SECOND, NULL, NULL), RNL_ERR_ARG);
    IS(VMMC_ExportRecvBuf(at, PAGE, BUFFER, NULL, NULL), RNL_ERR_REFUSED);
    IS(VMMC_ExportRecvBuf(at, 2 * PAGE, SECOND, NULL, &many), 0);
    IS(VMMC_ExportRecvBuf(at + 4 * PAGE, PAGE, 3, NULL, NULL), 0);
    IS(VMMC_UnexportRecvBuf(BUFFER, 0), 0);
    IS(VMMC_ExportRecvBuf(at + 2 * PAGE, PAGE, BUFFER, NULL, NULL), 0);
    /* memory */
    IS(VMMC_Alloc(0, &p), RNL_ERR_ARG);
    IS(VMMC_Alloc(PAGE + 1, &p), 0);
    area = p;
    CHECK((uintptr_t)area % PAGE == 0 && area[0] == 0 && area[2 * PAGE - 1] == 0);
    IS(VMMC_ExportRecvBuf(area, PAGE, 4, NULL, &direct), RNL_ERR_UNSUPPORTED);
    IS(VMMC_ExportRecvBuf(area, 2 * PAGE, 4, NULL, &direct), 0);
    IS(VMMC_Free(area), RNL_BUSY);
    IS(VMMC_UnexportRecvBufNow(4), 0);
    IS(VMMC_UnexportRecvBufNow(4), RNL_ERR_ARG);
    IS(VMMC_Free(area + PAGE), RNL_ERR_ARG);
    IS(VMMC_Free(area), 0);
    IS(VMMC_Free(area), RNL_ERR_ARG);
}

static void case_import(void)
{
    void *buffer = NULL, *proxy = NULL, *later = NULL;
    size_t bytes = 0;
    int64_t word = 77, never = 77;
    VMMC_Process process = 0;
    VMMC_Importer only_one = {1, 0};
    const VMMC_ExportOptions to_one = {.size = sizeof to_one, .only = &only_one, .importers = 1};
    if (me == 0) {
        hear(1, 1); /* node 1 has waited in vain, and waits again */
        buffer = pages(3);
        IS(VMMC_ExportRecvBuf(buffer, 2 * PAGE, BUFFER, NULL, NULL), 0);
        IS(VMMC_ExportRecvBuf((char *)buffer + 2 * PAGE, PAGE, SECOND, NULL, &to_one), 0);
    } else {
        if (me == 1) {
            IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, &bytes, SHORT_NS), RNL_TIMED_OUT);
            IS(VMMC_ImportRecvBufReq(0, 0, 4711, &later, &never), 0);
            IS(VMMC_ImportRecvBufReq(0, 0, SECOND, &later, &word), 0);
            CHECK(word == 0 && never == 0 && !later);
            tell(0);
        }
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, &bytes, LONG_NS), 0);
        CHECK(bytes == 2 * PAGE && proxy);
        IS(VMMC_ProcessOf(0, &process), 0);
        if (process) /* another one had this node, once */
            IS(VMMC_ImportRecvBuf(0, process + 1, BUFFER, &proxy, &bytes, LONG_NS), RNL_ERR_PEER_DEAD);
        IS(VMMC_ImportRecvBuf(0, process, BUFFER, &proxy, &bytes, LONG_NS), 0);
        IS(VMMC_ImportRecvBuf(NODES, 0, BUFFER, &proxy, &bytes, LONG_NS), RNL_ERR_RANK);
        if (me == 2) {
            IS(VMMC_ImportRecvBuf(0, 0, SECOND, &proxy, &bytes, LONG_NS), RNL_ERR_REFUSED);
            IS(VMMC_ImportRecvBufReq(0, 0, SECOND, &later, &word), 0);
            while (word == 0)
                poll_once();
            CHECK(word == RNL_ERR_REFUSED);
        } else {
            while (word == 0)
                poll_once();
            CHECK(word == PAGE && later && never == 0);
            IS(VMMC_CancelImport(&never), 0);
            IS(VMMC_CancelImport(&never), RNL_ERR_ARG);
        }
    }
    if (me != 0)
        IS(VMMC_UnimportRecvBuf(proxy), proxy ? 0 : RNL_ERR_ARG);
}

static void case_send(void)
{
    enum { BYTES = 64 * PAGE };
    unsigned char *buffer = NULL, *other = NULL, *from = malloc(BYTES + 64);
    void *a, *b;
    CHECK(from);
    if (me == 0) {
        IS(VMMC_Alloc(BYTES, (void **)&buffer), 0);
        IS(VMMC_Alloc(PAGE, (void **)&other), 0);
        IS(VMMC_ExportRecvBuf(buffer, BYTES, BUFFER, NULL, NULL), 0);
        IS(VMMC_ExportRecvBuf(other, PAGE, SECOND, NULL, NULL), 0);
    }
    static const size_t at[] = {0, 1, 7, 8, 4095, 5000}, n[] = {0, 1, 3, 4, 8, 9, 48, 129, 4096, 5001, 200000};
    enum { ATS = sizeof at / sizeof *at, NS = sizeof n / sizeof *n };
    if (me == 1) {
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &a, NULL, LONG_NS), 0);
        IS(VMMC_ImportRecvBuf(0, 0, SECOND, &b, NULL, LONG_NS), 0);
        for (unsigned i = 0; i < ATS; i++)
            for (unsigned k = 0; k < NS; k++) {
                fill(from + i + k, n[k], i + 11 * k);
                IS(VMMC_SendMsg(from + i + k, (char *)a + at[i], n[k]), 0);
                memset(from, 0xee, BYTES); /* it may be used again */
                IS(rnl_quiet(VMMC_Endpoint(), 0, LONG_NS), 0);
                tell(0);
                hear(0, i * NS + k + 1);
            }
        IS(VMMC_SendMsg(from, (char *)a + BYTES - 8, 8), 0);
        IS(VMMC_SendMsg(from, (char *)a + BYTES, 0), 0);
        IS(VMMC_SendMsg(from, (char *)a + BYTES - 8, 9), RNL_ERR_PAST_END);
        IS(VMMC_SendMsg(from, a, BYTES + 1), RNL_ERR_PAST_END);
        IS(VMMC_SendMsg(from, (char *)a + 8, SIZE_MAX - 4), RNL_ERR_PAST_END);
        IS(VMMC_SendMsgWithNotify(from, (char *)b + PAGE - 1, 2), RNL_ERR_PAST_END);
        IS(VMMC_SendMsg(from, (char *)a + BYTES + 8, 8), RNL_ERR_ARG);
        IS(VMMC_SendMsg(from, (char *)a - 8, 8), RNL_ERR_ARG);
        IS(VMMC_SendMsg(from, from, 8), RNL_ERR_ARG);
        IS(VMMC_SendMsg(from, NULL, 8), RNL_ERR_ARG);
        fill(from, 8, 99);
        IS(VMMC_SendMsg(from, b, 8), 0); /* back and forth between two buffers */
        IS(VMMC_SendMsg(from, (char *)a + 16, 8), 0);
        IS(VMMC_SendMsg(from, (char *)b + 8, 8), 0);
        IS(VMMC_UnimportRecvBuf((char *)b + 8), RNL_ERR_ARG);
        IS(VMMC_UnimportRecvBuf(b), 0);
        IS(VMMC_UnimportRecvBuf(b), RNL_ERR_ARG);
        IS(VMMC_SendMsg(from, b, 8), RNL_ERR_ARG);
        IS(rnl_quiet(VMMC_Endpoint(), 0, LONG_NS), 0);
        tell(0);
    } else if (me == 0) {
        unsigned char *before = malloc(BYTES);
        CHECK(before);
        for (unsigned i = 0; i < ATS; i++)
            for (unsigned k = 0; k < NS; k++) {
                hear(1, i * NS + k + 1);
                CHECK(filled(buffer + at[i], n[k], i + 11 * k));
                if (i + k > 0) { /* nothing beside it has changed */
                    CHECK(memcmp(buffer, before, at[i]) == 0);
                    CHECK(memcmp(buffer + at[i] + n[k], before + at[i] + n[k], BYTES - at[i] - n[k]) == 0);
                }
                memcpy(before, buffer, BYTES);
                tell(1);
            }
        hear(1, ATS * NS + 1);
        CHECK(filled(other, 8, 99) && filled(other + 8, 8, 99) && filled(buffer + 16, 8, 99));
        free(before);
    }
    free(from);
}

static void on_order(uint32_t rbufid, void *at, size_t nbytes, VMMC_NodeID node)
{
    uint32_t word;
    (void)node;
    memcpy(&word, (char *)at + nbytes - 4, 4);
    CHECK(rbufid == BUFFER && nbytes == 128);
    CHECK(word >= heard + 1); /* what it tells of is there, and perhaps what came behind it */
    heard++;
}

static void case_order(void)
{
    void *proxy;
    uint32_t words[32];
    if (me == 0) {
        IS(VMMC_Alloc(PAGE, (void **)&landed), 0);
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, on_order, NULL), 0);
        const uint32_t *w = (const uint32_t *)(void *)landed;
        uint32_t last = 0;
        while (heard < COUNT) {
            /* The last words are stored last: who sees them sees the rest of that message, or of a later one. */
            uint32_t end = __atomic_load_n(&w[31], __ATOMIC_ACQUIRE), front = __atomic_load_n(&w[0], __ATOMIC_ACQUIRE);
            CHECK(end >= last && front >= end);
            last = end;
            poll_once();
        }
        CHECK(w[31] == COUNT && heard == COUNT);
    } else if (me == 1) {
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
        for (uint32_t i = 1; i <= COUNT; i++) {
            for (unsigned k = 0; k < 32; k++)
                words[k] = i;
            IS(VMMC_SendMsgWithNotify(words, proxy, sizeof words), 0);
        }
    }
}

static void case_async(void)
{
    enum { MESSAGES = 40, BYTES = 8192 };
    static int32_t state[MESSAGES];
    unsigned char *buffer = NULL;
    void *proxy;
    if (me == 0) {
        IS(VMMC_Alloc(MESSAGES * BYTES, (void **)&buffer), 0);
        IS(VMMC_ExportRecvBuf(buffer, MESSAGES * BYTES, BUFFER, NULL, NULL), 0);
    }
    meet();
    if (me == 1) {
        unsigned char *from = malloc(MESSAGES * BYTES);
        CHECK(from);
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
        state[0] = 5;
        IS(VMMC_SendMsgReq(from, (char *)proxy + MESSAGES * BYTES - 1, 2, 0, &state[0]), RNL_ERR_PAST_END);
        IS(VMMC_SendMsgReq(from, proxy, 2, 8, &state[0]), RNL_ERR_ARG);
        CHECK(state[0] == 5);
        for (unsigned i = 0; i < MESSAGES; i++) {
            int status;
            fill(from + i * BYTES, BYTES, i);
            while ((status = VMMC_SendMsgReq(from + i * BYTES, (char *)proxy + i * BYTES, BYTES, 0, &state[i])) ==
                   RNL_NO_ROOM)
                poll_once();
            IS(status, 0);
        }
        for (unsigned i = 0; i < MESSAGES; i++) {
            while (__atomic_load_n(&state[i], __ATOMIC_ACQUIRE) == 1)
                poll_once();
            CHECK(state[i] == 0);
            memset(from + i * BYTES, 0xee, BYTES); /* it may change now */
        }
        IS(rnl_quiet(VMMC_Endpoint(), 0, LONG_NS), 0);
        free(from);
    }
    meet();
    for (unsigned i = 0; me == 0 && i < MESSAGES; i++)
        CHECK(filled(buffer + i * BYTES, BYTES, i));
}

static void on_note(uint32_t rbufid, void *at, size_t nbytes, VMMC_NodeID node)
{
    uint32_t word[2] = {0, 0};
    CHECK(rbufid == BUFFER && at == landed + 100 && nbytes == 40);
    told_by = node;
    heard++;
    word[1] = heard;
    IS(VMMC_SendMsg(word, back, sizeof word), 0); /* handlers may send */
}

static void case_notify(void)
{
    unsigned char *silent = NULL;
    uint32_t *answer = NULL;
    void *proxy, *quiet;
    char bytes[40] = "notify";
    if (me == 0) {
        IS(VMMC_Alloc(PAGE, (void **)&landed), 0);
        IS(VMMC_Alloc(PAGE, (void **)&silent), 0);
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, on_note, NULL), 0);
        IS(VMMC_ExportRecvBuf(silent, PAGE, SECOND, NULL, NULL), 0);
        IS(VMMC_ImportRecvBuf(1, 0, BUFFER, &back, NULL, LONG_NS), 0);
    } else if (me == 1) {
        IS(VMMC_Alloc(PAGE, (void **)&answer), 0);
        IS(VMMC_ExportRecvBuf(answer, PAGE, BUFFER, NULL, NULL), 0);
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
        IS(VMMC_ImportRecvBuf(0, 0, SECOND, &quiet, NULL, LONG_NS), 0);
    }
    meet();
    if (me == 1) {
        IS(VMMC_SendMsg(bytes, (char *)proxy + 100, sizeof bytes), 0);           /* nobody asks */
        IS(VMMC_SendMsgWithNotify(bytes, (char *)quiet + 100, sizeof bytes), 0); /* nobody listens */
        IS(VMMC_SendMsgWithNotify(bytes, (char *)proxy + 100, sizeof bytes), 0);
        until(&answer[1], 1);
        IS(VMMC_SendMsgWithNotify(bytes, (char *)proxy + 100, sizeof bytes), 0);
        until(&answer[1], 2);
    }
    while (me == 0 && heard < 2)
        IS(VMMC_Wait(LONG_NS), 0);
    meet();
    if (me == 0) {
        CHECK(heard == 2 && told_by == 1);
        CHECK(strcmp((char *)silent + 100, "notify") == 0 && strcmp((char *)landed + 100, "notify") == 0);
    }
}

static void on_block(uint32_t rbufid, void *at, size_t nbytes, VMMC_NodeID node)
{
    (void)rbufid, (void)at, (void)nbytes, (void)node;
    CHECK(++in_handler == 1); /* blocked while a handler runs */
    IS(VMMC_UnblockNotifications(), RNL_ERR_CONTEXT);
    VMMC_BlockNotifications();
    IS(VMMC_UnblockNotifications(), 0);
    IS(VMMC_UnblockNotifications(), RNL_ERR_CONTEXT);
    IS(VMMC_Exit(), RNL_ERR_CONTEXT);
    in_handler--;
    heard++;
}

static void case_block(void)
{
    enum { NOTES = 300 };
    void *proxy;
    uint64_t word = 1;
    if (me == 0) {
        IS(VMMC_Alloc(PAGE, (void **)&landed), 0);
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, on_block, NULL), 0);
        IS(VMMC_UnblockNotifications(), 1); /* nobody blocks */
        VMMC_BlockNotifications();
        VMMC_BlockNotifications();
        VMMC_BlockNotifications();
    } else if (me == 1) {
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
    }
    meet();
    for (unsigned i = 0; me == 1 && i < NOTES; i++)
        IS(VMMC_SendMsgWithNotify(&word, proxy, sizeof word), 0);
    meet();
    if (me == 0) {
        for (unsigned i = 0; i < 20; i++)
            poll_once();
        CHECK(heard == 0);
        IS(VMMC_UnblockNotifications(), 0);
        IS(VMMC_UnblockNotifications(), 0);
        poll_once();
        CHECK(heard == 0);
        CHECK(VMMC_UnblockNotifications() == 1);
        while (heard < NOTES)
            poll_once();
        CHECK(heard == NOTES);
    }
    meet();
}

static void case_importers(void)
{
    void *proxy = NULL, *again = NULL;
    VMMC_Importer who[4] = {{77, 0}};
    if (me == 0) {
        IS(VMMC_Alloc(PAGE, (void **)&landed), 0);
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, NULL, NULL), 0);
        CHECK(VMMC_Importers(BUFFER, who, 4) == 0 && who[0].node == 77);
        IS(VMMC_Importers(SECOND, who, 4), RNL_ERR_ARG);
    }
    meet();
    if (me == 1)
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
    meet();
    if (me == 0)
        CHECK(VMMC_Importers(BUFFER, who, 4) == 1 && who[0].node == 1);
    meet();
    if (me == 2)
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &again, NULL, LONG_NS), 0);
    if (me == 1)
        IS(VMMC_UnimportRecvBuf(proxy), 0);
    meet();
    while (me == 0 && (VMMC_Importers(BUFFER, who, 4) != 1 || who[0].node != 2))
        poll_once(); /* word of it is under way */
    meet();
}

const struct node_case node_cases[] = {
    {"errors", case_errors, 1}, {"import", case_import, 1},       {"send", case_send, 1},
    {"order", case_order, 1},   {"async", case_async, 1},         {"notify", case_notify, 1},
    {"block", case_block, 1},   {"importers", case_importers, 1}, {NULL, NULL, 0},
};
