/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_ofi.c - the libfabric provider against a peer that says anything: heads that lie, messages cut in two or given
 * up, answers that nobody asked for. Between them the program posts, probes, sends, reads, writes, cancels and closes
 * registered memory. Nothing is written beside what was posted and registered, and in the end all can be closed. */
#include "ofi/stranger.h"

#include "fuzz/input.h"

enum { STEPS = 60, RECVS = 32, RECV_BYTES = 200, GUARD = 32, WINDOW = 500, BIG = 70000, KEY = 5, MARK = 0xa5 };

static struct {
    struct stranger s;
    struct fuzz_input in;
    struct fid_mr *mr;
    rnl_stream *open; /* a message that is only half said */
    unsigned recvs;
    unsigned char to[RECVS][RECV_BYTES + GUARD], window[GUARD + WINDOW + GUARD], big[BIG], back[BIG + GUARD];
    struct fi_context context[STEPS];
} z;

static void cut(rnl_stream *s, const unsigned char *bytes, size_t n)
{
    unsigned how = fuzz_below(&z.in, 6);
    size_t first = how == 0 ? n : n * fuzz_below(&z.in, 256) / 256;
    (void)!rnl_piece(s, bytes, first);
    if (how == 1) { /* the rest comes later, or never */
        (void)!rnl_flush(z.s.rnl);
        z.open = s;
        return;
    }
    if (how == 2) {
        (void)rnl_abort(s);
        return;
    }
    (void)!rnl_piece(s, bytes + first, how > 3 ? n - first : 0);
    (void)!rnl_end(s);
}

/* Says something of one of the kinds. */
static void say(void)
{
    static unsigned char bytes[3000];
    struct fuzz_input *in = &z.in;
    unsigned kind = fuzz_below(in, RNL_OFI_KINDS + 1);
    struct rnl_ofi_long_head m = {.head = {.tag = fuzz_below(in, 3), .data = 9}};
    struct rnl_ofi_rma_head r = {.key = KEY};
    size_t n, answer = 0;
    if (z.open) {
        (void)!rnl_end(z.open);
        z.open = NULL;
    }
    memset(bytes, 0x33, sizeof bytes);
    switch (kind) {
    case RNL_OFI_MESSAGE:
    case RNL_OFI_ANNOUNCE:
        m.head.to = (uint8_t)(fuzz_below(in, 16) ? 0 : fuzz_below(in, 256));
        m.head.flags = (uint16_t)fuzz_number(in, fuzz_below(in, 16));
        m.request = (uint32_t)fuzz_number(in, 0);
        m.length = fuzz_number(in, 100);
        memcpy(bytes, &m, sizeof m);
        n = sizeof m + fuzz_below(in, 300);
        break;
    case RNL_OFI_PUT:
    case RNL_OFI_GET:
    case RNL_OFI_ATOMIC:
        n = fuzz_below(in, 600);
        r.key = fuzz_below(in, 8) ? KEY : fuzz_number(in, KEY);
        r.length = fuzz_number(in, n);
        r.address = fuzz_number(in, fuzz_below(in, WINDOW));
        r.flags = (uint16_t)fuzz_below(in, 64);
        r.type = (uint8_t)fuzz_below(in, 18);
        r.op = (uint8_t)fuzz_below(in, 22);
        r.request = (uint32_t)fuzz_number(in, 1);
        memcpy(bytes, &r, sizeof r);
        n = kind == RNL_OFI_GET ? sizeof r : sizeof r + n * (1 + fuzz_below(in, 2));
        answer = fuzz_below(in, 4) ? 3000 : fuzz_below(in, 3000);
        break;
    case RNL_OFI_ASK: {
        struct rnl_ofi_ask a = {fuzz_number(in, BIG), fuzz_below(in, 4), (uint32_t)fuzz_number(in, 0)};
        memcpy(bytes, &a, sizeof a);
        n = sizeof a;
        break;
    }
    case RNL_OFI_DATA:
    case RNL_OFI_ACK:
    case RNL_OFI_RESULT: {
        struct rnl_ofi_ack a = {(uint32_t)fuzz_number(in, fuzz_below(in, 4)), (int32_t)fuzz_number(in, 0)};
        memcpy(bytes, &a, sizeof a);
        n = sizeof a + fuzz_below(in, 1000);
        break;
    }
    default:
        fuzz_bytes(in, bytes, 64);
        n = 64;
    }
    rnl_stream *s = stranger_begin(&z.s, kind, n, answer);
    if (s)
        cut(s, bytes, n);
}

static void program(unsigned step)
{
    struct fuzz_input *in = &z.in;
    void *context = &z.context[step];
    unsigned what = fuzz_below(in, 10), tag = fuzz_below(in, 3), old = fuzz_below(in, STEPS);
    size_t n = fuzz_below(in, 4) ? fuzz_below(in, RECV_BYTES + 1) : BIG;
    fi_addr_t peer = z.s.address, from = fuzz_below(in, 2) ? peer : FI_ADDR_UNSPEC;
    struct iovec iov = {z.back, n};
    struct fi_msg_tagged m = {&iov, NULL, 1, from, tag, fuzz_below(in, 2), context, 0};
    uint64_t one[2] = {1, 2};
    ssize_t status = 0;
    switch (what) {
    case 0:
    case 1:
        if (z.recvs < RECVS && n <= RECV_BYTES)
            status = what == 0 ? fi_trecv(z.s.ep, z.to[z.recvs++], n, NULL, from, tag, m.ignore, context)
                               : fi_recv(z.s.ep, z.to[z.recvs++], n, NULL, from, context);
        break;
    case 2:
        status = fi_trecvmsg(z.s.ep, &m, FI_PEEK | (tag ? FI_DISCARD : 0));
        break;
    case 3:
        m.addr = peer;
        status = fi_tsendmsg(z.s.ep, &m, fuzz_below(in, 2) ? FI_MATCH_COMPLETE : 0);
        break;
    case 4:
        status = fi_write(z.s.ep, z.big, n, NULL, peer, 0, KEY, context);
        break;
    case 5:
        status = fi_read(z.s.ep, z.back, n, NULL, peer, 0, KEY, context);
        break;
    case 6:
        status = fi_fetch_atomic(z.s.ep, one, 2, NULL, z.back, NULL, peer, 0, KEY, FI_UINT64, FI_SUM, context);
        break;
    case 7:
        (void)fi_cancel(&z.s.ep->fid, &z.context[old]);
        break;
    case 8:
        FUZZ_MUST(fi_close(&z.mr->fid) == 0);
        FUZZ_MUST(fi_mr_reg(z.s.domain, z.window + GUARD, WINDOW, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &z.mr,
                            NULL) == 0);
        break;
    default:
        stranger_progress(&z.s);
    }
    FUZZ_MUST(status == 0 || status == -FI_EAGAIN || status == -FI_ECONNRESET);
}

static void untouched(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        FUZZ_MUST(at[i] == MARK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(&z, 0, sizeof z);
    z.in = (struct fuzz_input){data, data + size};
    memset(z.to, MARK, sizeof z.to);
    memset(z.window, MARK, sizeof z.window);
    memset(z.back, MARK, sizeof z.back);
    FUZZ_MUST(stranger_open(&z.s));
    FUZZ_MUST(
        fi_mr_reg(z.s.domain, z.window + GUARD, WINDOW, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &z.mr, NULL) == 0);
    for (unsigned step = 0; step < STEPS && fuzz_more(&z.in); step++) {
        if (fuzz_below(&z.in, 2))
            say();
        else
            program(step);
        if (fuzz_below(&z.in, 4) == 0)
            stranger_progress(&z.s);
    }
    stranger_progress(&z.s);
    if (z.open && fuzz_below(&z.in, 2))
        (void)rnl_abort(z.open);
    FUZZ_MUST(fi_close(&z.mr->fid) == 0);
    FUZZ_MUST(stranger_close(&z.s));
    for (unsigned i = 0; i < RECVS; i++)
        untouched(z.to[i] + RECV_BYTES, GUARD);
    untouched(z.window, GUARD);
    untouched(z.window + GUARD + WINDOW, GUARD);
    untouched(z.back + BIG, GUARD);
    return 0;
}
