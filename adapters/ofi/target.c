/* SPDX-License-Identifier: BSD-3-Clause
 *
 * target.c - PUT, GET and ATOMIC, as the owner of the memory sees them. Each is checked against what is registered when
 * its bytes are touched: a handler may be suspended for bytes, and a region be closed meanwhile. */
#include "ofi.h"

#include <string.h>

enum { TASTE = 64 /* bytes that are received to learn that more have come */ };

static void reply(rnl_stream *s, uint32_t request, int status, const void *bytes, size_t n)
{
    struct rnl_ofi_ack a = {.request = request, .status = status};
    struct rnl_buffer piece[2] = {{&a, sizeof a}, {bytes, n}};
    (void)!rnl_reply_pieces(s, RNL_OFI_RESULT, piece, n && status == 0 ? 2 : 1); /* fails if the peer is gone */
}

/* Tells the program that a peer has read or written, as far as it wants to know. */
static void tell(struct rnl_ofi_domain *d, const struct rnl_ofi_peer *p, const struct rnl_ofi_rma_head *h,
                 const struct rnl_ofi_mr *m, bool wrote)
{
    struct rnl_ofi_ep *e = d->ep[h->to];
    rnl_ofi_count(wrote ? m->count_write : m->count_read);
    if (!e)
        return;
    rnl_ofi_count(wrote ? e->count_remote_write : e->count_remote_read);
    if (wrote && h->flags & RNL_OFI_HAS_DATA && e->received) {
        struct fi_cq_tagged_entry entry = {
            .flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .len = h->length, .data = h->data};
        uint64_t source = rnl_ofi_source_of(p, h->from);
        rnl_ofi_cq_push(e->received, &entry,
                        e->tells_source && e->av ? rnl_ofi_av_source(e->av, source) : FI_ADDR_NOTAVAIL);
    }
}

/* Takes the bytes of a PUT straight to memory, but for the first that come after a pause. */
static int take_put(struct rnl_ofi_domain *d, rnl_stream *s, const struct rnl_ofi_rma_head *h)
{
    struct rnl_ofi_mr *m;
    unsigned char *at, taste[TASTE];
    int error = rnl_ofi_mr_find(d, h, FI_REMOTE_WRITE, &m, &at);
    for (size_t done = 0, n; done < h->length && error == 0; done += n) {
        size_t here = rnl_peek(s, NULL), left = h->length - done;
        int status;
        if (here) {
            n = here < left ? here : left;
            status = rnl_receive(s, at + done, n);
        } else {
            n = left < TASTE ? left : TASTE;
            status = rnl_receive(s, taste, n);
            error = rnl_ofi_mr_find(d, h, FI_REMOTE_WRITE, &m, &at);
            if (status == 0 && error == 0)
                memcpy(at + done, taste, n);
        }
        if (status < 0)
            return rnl_ofi_errno(status);
    }
    return error;
}

int rnl_ofi_on_put(rnl_stream *s, unsigned number, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_rma_head h;
    struct rnl_ofi_mr *m;
    unsigned char *at;
    struct rnl_ofi_peer *p = rnl_ofi_peer_at(d, number);
    if (RNL_UNLIKELY(!p) || rnl_receive(s, &h, sizeof h) < 0)
        return RNL_DONE;
    int error = take_put(d, s, &h);
    if (error == 0 && (error = rnl_ofi_mr_find(d, &h, FI_REMOTE_WRITE, &m, &at)) == 0)
        tell(d, p, &h, m, true);
    reply(s, h.request, error, NULL, 0);
    return RNL_DONE;
}

int rnl_ofi_on_get(rnl_stream *s, unsigned number, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_rma_head h;
    struct rnl_ofi_mr *m;
    unsigned char *at = NULL;
    struct rnl_ofi_peer *p = rnl_ofi_peer_at(d, number);
    if (RNL_UNLIKELY(!p) || rnl_receive(s, &h, sizeof h) < 0)
        return RNL_DONE;
    int error = h.length > RNL_OFI_GET_BYTES ? -FI_EINVAL : rnl_ofi_mr_find(d, &h, FI_REMOTE_READ, &m, &at);
    if (error == 0)
        tell(d, p, &h, m, false);
    reply(s, h.request, error, at, h.length);
    return RNL_DONE;
}

/* Receives the operands, and what they are compared with. Returns the number of elements, or a negative fi_errno. */
static int take_operands(rnl_stream *s, const struct rnl_ofi_rma_head *h, unsigned char *operand,
                         unsigned char *compare)
{
    bool compares = rnl_ofi_atomic_bytes(h->type, h->op, RNL_OFI_COMPARE) != 0;
    size_t bytes = rnl_ofi_atomic_bytes(h->type, h->op, compares ? RNL_OFI_COMPARE : RNL_OFI_FETCH);
    if (bytes == 0)
        return -FI_EOPNOTSUPP;
    if (h->length == 0 || h->length > RNL_OFI_ATOMIC_BYTES || h->length % bytes)
        return -FI_EINVAL;
    int status = h->op == FI_ATOMIC_READ ? 0 : rnl_receive(s, operand, h->length);
    if (status == 0 && compares)
        status = rnl_receive(s, compare, h->length);
    return status < 0 ? rnl_ofi_errno(status) : (int)(h->length / bytes);
}

int rnl_ofi_on_atomic(rnl_stream *s, unsigned number, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_rma_head h;
    struct rnl_ofi_mr *m;
    unsigned char *at, operand[RNL_OFI_ATOMIC_BYTES], compare[RNL_OFI_ATOMIC_BYTES], before[RNL_OFI_ATOMIC_BYTES];
    struct rnl_ofi_peer *p = rnl_ofi_peer_at(d, number);
    if (RNL_UNLIKELY(!p) || rnl_receive(s, &h, sizeof h) < 0)
        return RNL_DONE;
    bool fetches = (h.flags & RNL_OFI_FETCHES) != 0, writes = h.op != FI_ATOMIC_READ;
    int count = take_operands(s, &h, operand, compare), error = count < 0 ? count : 0;
    if (error == 0)
        error = rnl_ofi_mr_find(d, &h, (fetches ? FI_REMOTE_READ : 0) | (writes ? FI_REMOTE_WRITE : 0), &m, &at);
    if (error == 0) {
        rnl_ofi_atomic_apply(h.type, h.op, at, operand, compare, before, (size_t)count);
        if (fetches)
            tell(d, p, &h, m, false);
        if (writes) /* what fetches, too: Sandia's OpenSHMEM waits for this counter to see a swap */
            tell(d, p, &h, m, true);
    }
    reply(s, h.request, error, before, fetches ? h.length : 0);
    return RNL_DONE;
}
