/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_rpc_stream.c - XDR streams over a pair beside libtirpc's memory stream: a list of items is written by both, and
 * makes the same bytes; the bytes are read by both as another list of items, which ends in the same place. */
#include "adapters/sunrpc/pair.h"
#include "adapters/sunrpc/stream.h"

#include "fuzz/input.h"

#include <rpc/rpc.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ITEMS = 60, ITEM_BYTES = 6000, BYTES = ITEMS * ITEM_BYTES };
static unsigned char text[ITEM_BYTES + 8];

/* One item, in the direction of x_op. Returns false if the stream has no more. */
static bool go(XDR *x, unsigned kind, unsigned n, unsigned char *at)
{
    const bool encode = x->x_op == XDR_ENCODE, ours = rnl_rpc_stream_is_ours(x);
    long v = 0;
    int32_t *place;
    switch (kind) {
    case 0:
        if (encode)
            memcpy(&v, at, 4);
        v = (int32_t)v;
        if (!(encode ? XDR_PUTLONG(x, &v) : XDR_GETLONG(x, &v)))
            return false;
        memcpy(at, &v, sizeof v);
        return true;
    case 1:
        return encode ? XDR_PUTBYTES(x, (char *)at, n) : XDR_GETBYTES(x, (char *)at, n);
    case 2:
    case 3:
        n /= kind == 2 ? 4 : 8;
        if (ours)
            return rnl_rpc_stream_numbers(x, (char *)at, n, kind == 2 ? 4 : 8);
        return xdr_vector(x, (char *)at, n, kind == 2 ? 4 : 8, kind == 2 ? (xdrproc_t)xdr_int : (xdrproc_t)xdr_int64_t);
    default:
        n = n / 4 % 32 * 4;
        place = XDR_INLINE(x, n);
        if (!place)
            return encode ? XDR_PUTBYTES(x, (char *)at, n) : XDR_GETBYTES(x, (char *)at, n);
        memcpy(encode ? (void *)place : (void *)at, encode ? (void *)at : (void *)place, n);
        return true;
    }
}

static unsigned draw(struct fuzz_input *in, unsigned *n)
{
    unsigned kind = fuzz_below(in, 5), how = fuzz_below(in, 4);
    *n = how == 0 ? fuzz_below(in, ITEM_BYTES) : how == 1 ? 4 * fuzz_below(in, 16) : fuzz_below(in, 100);
    return kind;
}

static void compare(struct fuzz_input *in, struct rnl_rpc_link *to, struct rnl_rpc_link *from)
{
    static unsigned char expected[BYTES], got[BYTES], a[ITEM_BYTES + 8], b[ITEM_BYTES + 8];
    XDR ours, theirs;
    unsigned n, kind, items = fuzz_below(in, ITEMS);
    xdrmem_create(&theirs, (char *)expected, sizeof expected, XDR_ENCODE);
    rnl_rpc_stream_out(&ours, to);
    for (unsigned i = 0; i < items; i++) {
        kind = draw(in, &n);
        memcpy(a, text, sizeof a);
        memcpy(b, text, sizeof b);
        FUZZ_MUST(go(&theirs, kind, n, a) && go(&ours, kind, n, b));
        FUZZ_MUST(xdr_getpos(&theirs) == xdr_getpos(&ours));
    }
    u_int size = xdr_getpos(&theirs);
    FUZZ_MUST(to->ops->end(to) && from->ops->here(from) && from->ops->next(from));
    unsigned as_they_are = fuzz_below(in, 2);
    rnl_rpc_stream_in(&ours, from);
    xdrmem_create(&theirs, (char *)expected, size, XDR_DECODE);
    if (as_they_are)
        FUZZ_MUST(XDR_GETBYTES(&ours, (char *)got, size) && memcmp(got, expected, size) == 0);
    for (unsigned i = 0; !as_they_are && i < ITEMS; i++) {
        kind = draw(in, &n);
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        bool more = go(&theirs, kind, n, a);
        FUZZ_MUST(go(&ours, kind, n, b) == more);
        if (!more)
            break;
        FUZZ_MUST(memcmp(a, b, sizeof a) == 0);
    }
    FUZZ_MUST(from->ops->leave(from) && !from->broken && !to->broken);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    int fd[2], memory = rnl_rpc_segment_new();
    if (memory < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return 0;
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 31 + i / 256 * 7 + 1);
    struct rnl_rpc_segment *s[2] = {rnl_rpc_segment_map(memory), rnl_rpc_segment_map(memory)};
    FUZZ_MUST(s[0] && s[1]);
    struct rnl_rpc_link *client = rnl_rpc_pair_new(s[0], fd[0], false, true);
    struct rnl_rpc_link *server = rnl_rpc_pair_new(s[1], fd[1], true, true);
    FUZZ_MUST(client && server);
    for (int records = 0; records < 8 && fuzz_more(&in); records++) {
        unsigned back = fuzz_below(&in, 2);
        compare(&in, back ? server : client, back ? client : server);
    }
    client->ops->close(client);
    server->ops->close(server);
    close(memory);
    close(fd[0]);
    close(fd[1]);
    return 0;
}
