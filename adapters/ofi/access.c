/* SPDX-License-Identifier: BSD-3-Clause
 *
 * access.c - PUT, GET and ATOMIC, as their sender sees them: they go into the same queues as messages, so all of them
 * reach a peer in the order of the calls; each is complete when RESULT has come, which is when it was done there.
 *
 * RESULT is a reply, whose handler may run inside any call of the library, even one that sends the request itself. So a
 * request awaits its RESULT before it is sent, and goes back to the queue if it was not. */
#include "ofi.h"

#include <string.h>

static void settle(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    if (s->posted || s->receiving)
        return;
    if (s->gone || (s->parts == 0 && (s->asked >= s->length || s->error)))
        rnl_ofi_send_finish(d, s, s->error);
}

static void access_fail(struct rnl_ofi_domain *d, struct rnl_ofi_send *s, int error)
{
    s->gone = true;
    s->error = error;
    settle(d, s);
}

/* ---- sending ---- */

static void put_posted(void *arg, int status)
{
    struct rnl_ofi_send *s = arg;
    s->posted = false;
    if (status < 0 && !s->gone) {
        s->gone = true; /* no RESULT will come */
        s->error = rnl_ofi_errno(status);
    }
    settle(s->ep->domain, s);
}

/* Posts the bytes of a PUT that is too long to be composed at once, or for which the grant is too small by now. */
static int post_put(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    struct rnl_buffer piece[RNL_OFI_IOV + 1] = {{&s->rma, sizeof s->rma}};
    unsigned count = 1;
    for (uint32_t i = 0; i < s->pieces; i++)
        if (s->iov[i].iov_len)
            piece[count++] = (struct rnl_buffer){s->iov[i].iov_base, s->iov[i].iov_len};
    struct rnl_message b = {.peer = s->peer->number,
                            .handler = RNL_OFI_PUT,
                            .bound = sizeof s->rma + s->length,
                            .answer = sizeof(struct rnl_ofi_ack)};
    rnl_posted *p;
    int status = rnl_post_held(d->rnl, &b, piece, count, put_posted, s, &p);
    s->posted = status == 0;
    return status;
}

/* Sends a request that is one message. */
static int send_whole(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    size_t back = s->rma.flags & RNL_OFI_FETCHES ? s->length : 0, bytes = 0;
    for (uint32_t i = 0; i < s->pieces; i++)
        bytes += s->iov[i].iov_len;
    enum rnl_ofi_room room = bytes > RNL_OFI_EAGER ? RNL_OFI_ROOM_TO_ANNOUNCE : rnl_ofi_send_room(d, s->peer, bytes);
    if (room == RNL_OFI_ROOM_LATER)
        return RNL_NO_ROOM;
    s->asked = s->length;
    s->parts = 1;
    if (room == RNL_OFI_ROOM_TO_ANNOUNCE && s->kind == RNL_OFI_PUT)
        return post_put(d, s);
    return rnl_ofi_put_message(d, s->peer, s->kind, sizeof(struct rnl_ofi_ack) + back, &s->rma, sizeof s->rma, s->iov,
                               s->pieces, bytes);
}

/* Asks for the next bytes of a GET. */
static int ask_part(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    struct rnl_ofi_rma_head h = s->rma;
    size_t left = s->length - s->asked;
    h.length = left < RNL_OFI_GET_BYTES ? left : RNL_OFI_GET_BYTES;
    h.address += s->asked;
    s->asked += h.length;
    s->parts++;
    int status =
        rnl_ofi_put_message(d, s->peer, RNL_OFI_GET, sizeof(struct rnl_ofi_ack) + h.length, &h, sizeof h, NULL, 0, 0);
    if (status == RNL_NO_ROOM) { /* so no RESULT of this part has come */
        s->asked -= h.length;
        s->parts--;
    }
    return status;
}

static bool access_go(struct rnl_ofi_domain *d, struct rnl_ofi_send *s)
{
    for (bool last = false; !last;) {
        bool whole = s->kind != RNL_OFI_GET;
        last = whole || s->length - s->asked <= RNL_OFI_GET_BYTES;
        if (last)
            rnl_ofi_send_await(s, RNL_OFI_AWAITS_RESULT);
        int status = whole ? send_whole(d, s) : ask_part(d, s);
        if (status == RNL_NO_ROOM) {
            if (last)
                rnl_ofi_send_again(s);
            if (whole)
                s->asked = s->parts = 0;
            return false;
        }
        if (status < 0) {
            access_fail(d, s, rnl_ofi_errno(status));
            return true;
        }
        if (!last && s->error) { /* the first parts were refused */
            rnl_ofi_send_await(s, RNL_OFI_AWAITS_RESULT);
            settle(d, s);
            return true;
        }
    }
    return true;
}

static const struct rnl_ofi_sender access_sender = {.go = access_go, .fail = access_fail};

/* ---- the answer ---- */

/* Takes n bytes of a RESULT to where they belong. */
static int take_bytes(rnl_stream *stream, struct rnl_ofi_send *s, size_t n)
{
    const struct iovec *to = s->kind == RNL_OFI_GET ? s->iov : s->result;
    uint32_t count = s->kind == RNL_OFI_GET ? s->pieces : s->results;
    size_t skip = s->got;
    int status = 0;
    s->receiving = true;
    for (uint32_t i = 0; i < count && n && status == 0; i++) {
        if (skip >= to[i].iov_len) {
            skip -= to[i].iov_len;
            continue;
        }
        size_t part = to[i].iov_len - skip < n ? to[i].iov_len - skip : n;
        status = rnl_receive(stream, (char *)to[i].iov_base + skip, part);
        s->got += part;
        n -= part;
        skip = 0;
    }
    s->receiving = false;
    return status;
}

int rnl_ofi_on_result(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct rnl_ofi_domain *d = ctx;
    struct rnl_ofi_ack ack;
    if (rnl_receive(stream, &ack, sizeof ack) < 0)
        return RNL_DONE;
    struct rnl_ofi_send *s = ack.request < d->sends ? d->send[ack.request] : NULL;
    if (!s || (s->state != RNL_OFI_QUEUED && s->state != RNL_OFI_AWAITS_RESULT) || s->kind == RNL_OFI_MESSAGE ||
        s->peer->number != peer || s->parts == 0 || s->receiving || s->gone)
        return RNL_DONE;
    int status = rnl_ofi_told(ack.status);
    if (status == 0 && (s->kind == RNL_OFI_GET || s->rma.flags & RNL_OFI_FETCHES)) {
        size_t left = s->length - s->got, most = s->kind == RNL_OFI_GET ? RNL_OFI_GET_BYTES : RNL_OFI_ATOMIC_BYTES;
        status = rnl_ofi_errno(take_bytes(stream, s, left < most ? left : most));
    }
    s->parts--;
    if (status && !s->error)
        s->error = status;
    settle(d, s);
    return RNL_DONE;
}

/* ---- calls ---- */

static size_t bytes_of(const struct iovec *iov, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += iov[i].iov_len;
    return n;
}

static void keep_own(struct rnl_ofi_send *s, const struct rnl_ofi_access *a, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < a->pieces; at += a->iov[i++].iov_len)
        if (a->iov[i].iov_len)
            memcpy(s->own + at, a->iov[i].iov_base, a->iov[i].iov_len);
    s->iov[0] = (struct iovec){s->own, bytes};
    s->pieces = 1;
}

ssize_t rnl_ofi_access(struct rnl_ofi_ep *e, const struct rnl_ofi_access *a)
{
    const struct rnl_ofi_av *av = e->av;
    struct rnl_ofi_domain *d = e->domain;
    if (RNL_UNLIKELY(!e->enabled || !av))
        return -FI_EOPBADSTATE;
    if (RNL_UNLIKELY(a->to >= av->count || !av->entry[a->to].peer || a->pieces > RNL_OFI_IOV ||
                     a->mores > RNL_OFI_IOV || a->results > RNL_OFI_IOV))
        return -FI_EINVAL;
    struct rnl_ofi_peer *p = av->entry[a->to].peer;
    size_t bytes = bytes_of(a->iov, a->pieces);
    if (RNL_UNLIKELY(a->flags & FI_INJECT && (bytes > RNL_OFI_INJECT || a->kind == RNL_OFI_GET || a->mores)))
        return -FI_EINVAL;
    if (RNL_UNLIKELY(a->flags & FI_INJECT && p->injects >= RNL_OFI_INJECTS))
        return -FI_EAGAIN;
    int error = a->flags & RNL_OFI_SILENT ? rnl_ofi_peer_connect_first(d, p) : rnl_ofi_peer_connect(d, p);
    struct rnl_ofi_send *s = error ? NULL : rnl_ofi_send_new(d);
    if (!s)
        return error ? error : -FI_EAGAIN;
    s->ep = e;
    s->peer = p;
    s->context = a->context;
    s->flags = a->flags;
    s->completes = a->completes;
    s->kind = (uint8_t)a->kind;
    s->sender = &access_sender;
    s->length = a->kind == RNL_OFI_ATOMIC ? a->length : bytes;
    s->rma = (struct rnl_ofi_rma_head){.key = a->key,
                                       .address = a->address,
                                       .length = s->length,
                                       .data = (uint32_t)a->data,
                                       .to = (uint8_t)av->entry[a->to].ep,
                                       .from = (uint8_t)e->number,
                                       .flags = (uint16_t)a->flags_there,
                                       .request = s->number,
                                       .type = (uint8_t)a->type,
                                       .op = (uint8_t)a->op};
    s->asked = s->got = s->parts = 0;
    s->posted = s->receiving = s->gone = false;
    s->error = 0;
    if (a->flags & FI_INJECT) {
        keep_own(s, a, bytes);
    } else {
        memcpy(s->iov, a->iov, a->pieces * sizeof *a->iov);
        if (a->mores)
            memcpy(s->iov + a->pieces, a->more, a->mores * sizeof *a->more);
        s->pieces = (uint32_t)(a->pieces + a->mores);
    }
    if (a->results)
        memcpy(s->result, a->result, a->results * sizeof *a->result);
    s->results = (uint32_t)a->results;
    rnl_ofi_send_queue(d, s);
    return 0;
}
