/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_rpc_greeting.c - what a client or a server of SunRPC may say while they find each other: the input arrives at a
 * doorbell, in one or two parts, and as the arguments and results of the private program. What was taken in says the
 * same when it is written again. */
#include "adapters/sunrpc/greeting.h"

#include "fuzz/input.h"

#include <rpc/rpc.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 512 };

static void at_the_door(const uint8_t *data, size_t size)
{
    struct rnl_rpc_hello hello, true_one = {RNL_RPC_MAGIC, RNL_RPC_VERSION, 0, {0}};
    int fd[2], got = -2;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return;
    FUZZ_MUST(rnl_rpc_hello_receive(fd[1], &hello, NULL) == 0);
    if (size > 0 && send(fd[0], data, size, MSG_DONTWAIT) == (ssize_t)size) {
        int came = rnl_rpc_hello_receive(fd[1], &hello, size % 2 ? &got : NULL);
        FUZZ_MUST(came == (size >= sizeof hello && memcmp(data, &true_one, 8) == 0 ? 1 : -1));
        FUZZ_MUST(came < 0 || memcmp(&hello, data, sizeof hello) == 0);
        FUZZ_MUST(got < 0);
    }
    close(fd[0]);
    while (size > 0 && rnl_rpc_hello_receive(fd[1], &hello, NULL) > 0)
        ;
    close(fd[1]);
}

static void in_words(const uint8_t *data, size_t size, xdrproc_t proc, void *to, size_t bytes)
{
    static char at[BYTES], again[BYTES];
    XDR x;
    memcpy(at, data, size);
    memset(to, 0, bytes);
    xdrmem_create(&x, at, (u_int)size, XDR_DECODE);
    if (!proc(&x, to))
        return;
    u_int read = xdr_getpos(&x);
    xdrmem_create(&x, again, sizeof again, XDR_ENCODE);
    FUZZ_MUST(proc(&x, to) && xdr_getpos(&x) == read && memcmp(at, again, read) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rnl_rpc_place place;
    struct rnl_rpc_answer answer;
    if (size > BYTES)
        return 0;
    at_the_door(data, size);
    in_words(data, size, (xdrproc_t)rnl_rpc_xdr_place, &place, sizeof place);
    in_words(data, size, (xdrproc_t)rnl_rpc_xdr_answer, &answer, sizeof answer);
    return 0;
}
