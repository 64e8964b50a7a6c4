/* SPDX-License-Identifier: BSD-3-Clause
 *
 * met.c - VMMC on an endpoint of the program: two processes that no launcher started, introduced through a socket.
 * Nodes are numbers of peers then; the session ends and the endpoint stays, so there can be another session on it. */
#include <runnel/vmmc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, BUFFER = 1 };
#define LONG_NS ((int64_t)60 * 1000 * 1000 * 1000)
#define CHECK(condition)                                                                                 \
    do {                                                                                                 \
        if (!(condition)) {                                                                              \
            fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", __FILE__, __LINE__, #condition, \
                    rnl_last_error()->text);                                                             \
            _exit(1);                                                                                    \
        }                                                                                                \
    } while (0)

static unsigned notified, other;

static void on_message(uint32_t rbufid, void *at, size_t nbytes, VMMC_NodeID node)
{
    CHECK(rbufid == BUFFER && nbytes == 6 && !memcmp(at, "hello", 6) && node == other);
    CHECK(VMMC_Exit() == RNL_ERR_CONTEXT && VMMC_Endpoint());
    notified++;
}

static void one_session(rnl_endpoint *ep, int last)
{
    VMMC_Process process = 0;
    VMMC_Importer who[2];
    void *at, *proxy;
    CHECK(VMMC_Init(ep) == 0);
    CHECK(VMMC_Init(ep) == RNL_ERR_CONTEXT);
    CHECK(VMMC_Endpoint() == ep && VMMC_Node() == 0);
    CHECK(VMMC_Alloc(PAGE, &at) == 0);
    CHECK(VMMC_ExportRecvBuf(at, PAGE, BUFFER, on_message, NULL) == 0);
    CHECK(VMMC_ProcessOf(other, &process) == 0);
    CHECK(VMMC_ImportRecvBuf(other, process, BUFFER, &proxy, NULL, LONG_NS) == 0);
    CHECK(VMMC_SendMsgWithNotify("hello", proxy, 6) == 0);
    while (notified == 0)
        CHECK(VMMC_Wait(LONG_NS) == 0);
    notified = 0;
    CHECK(VMMC_Importers(BUFFER, who, 2) == 1 && who[0].node == other && who[0].process == process);
    if (last) /* it goes on when the other one has seen the message, and unexported */
        while (VMMC_SendMsg("again", (char *)proxy + 64, 6) == 0)
            CHECK(VMMC_Poll() == 0);
    else
        CHECK(VMMC_UnexportRecvBuf(BUFFER, LONG_NS) == 0);
    CHECK(VMMC_Exit() == 0 && !VMMC_Endpoint());
    CHECK(VMMC_Exit() == RNL_ERR_CLOSED);
}

static void run(int socket, enum rnl_introduce_side side)
{
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    rnl_endpoint *ep;
    CHECK(rnl_open(&ep, &alone) == 0);
    CHECK(rnl_introduce(ep, socket, side, NULL, LONG_NS, &other) == 0);
    one_session(ep, side == RNL_OFFER);
    one_session(ep, side != RNL_OFFER);
    CHECK(rnl_close(ep) == 0);
}

int main(void)
{
    int ends[2], status;
    alarm(100);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    run(ends[child == 0], child == 0 ? RNL_OFFER : RNL_ACCEPT);
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    puts("ok - two sessions of two introduced processes");
    return 0;
}
