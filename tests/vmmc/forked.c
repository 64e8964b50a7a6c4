/* SPDX-License-Identifier: BSD-3-Clause
 *
 * forked.c - a child of a process with a VMMC session has none, and a copy of what was exported: vmmc-forked fork. */
#include "nodes.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char *landed;

static void case_fork(void)
{
    void *proxy = NULL;
    uint64_t word = 3;
    if (me == 0) {
        IS(VMMC_Alloc(PAGE, (void **)&landed), 0);
        strcpy((char *)landed, "parent");
        IS(VMMC_ExportRecvBuf(landed, PAGE, BUFFER, NULL, NULL), 0);
    }
    meet();
    if (me == 1)
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &proxy, NULL, LONG_NS), 0);
    fflush(NULL);
    pid_t child = me < 2 ? fork() : 0;
    if (me < 2 && child == 0) {
        void *at;
        size_t bytes;
        IS(VMMC_Poll(), RNL_ERR_FORKED);
        IS(VMMC_Alloc(PAGE, &at), RNL_ERR_FORKED);
        IS(VMMC_ImportRecvBuf(0, 0, BUFFER, &at, &bytes, 0), RNL_ERR_FORKED);
        IS(VMMC_Exit(), RNL_ERR_FORKED);
        IS(VMMC_Init(NULL), RNL_ERR_FORKED);
        if (me == 1) {
            IS(VMMC_SendMsg(&word, proxy, 8), RNL_ERR_FORKED);
            IS(VMMC_SendMsgReq(&word, proxy, 8, 0, (int32_t *)&bytes), RNL_ERR_FORKED);
        } else {
            CHECK(!strcmp((char *)landed, "parent"));
            strcpy((char *)landed, "child");
            IS(VMMC_UnexportRecvBuf(BUFFER, 0), RNL_ERR_FORKED);
        }
        _exit(0);
    }
    int ended = -1;
    if (me < 2)
        CHECK(waitpid(child, &ended, 0) == child && ended == 0);
    if (me == 0)
        CHECK(!strcmp((char *)landed, "parent"));
    meet();
    if (me == 1)
        IS(VMMC_SendMsg("again", proxy, 6), 0);
    if (me == 1)
        IS(rnl_quiet(VMMC_Endpoint(), 0, LONG_NS), 0);
    meet();
    if (me == 0)
        CHECK(!strcmp((char *)landed, "again"));
}

const struct node_case node_cases[] = {
    {"fork", case_fork, 1},
    {NULL, NULL, 0},
};
