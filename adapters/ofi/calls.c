/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls.c - the tables of functions by which programs send and receive, with tags and without. */
#include "ofi.h"

static ssize_t locked_send(struct fid_ep *fid, const struct rnl_ofi_out *o)
{
    struct rnl_ofi_ep *e = (struct rnl_ofi_ep *)(void *)fid;
    rnl_ofi_lock(e->domain);
    ssize_t status = rnl_ofi_send(e, o);
    rnl_ofi_unlock(e->domain);
    return status;
}

static ssize_t locked_recv(struct fid_ep *fid, const struct rnl_ofi_in *in)
{
    struct rnl_ofi_ep *e = (struct rnl_ofi_ep *)(void *)fid;
    const bool probes = in->flags & FI_PEEK || (in->flags & FI_CLAIM && in->flags & FI_DISCARD);
    rnl_ofi_lock(e->domain);
    ssize_t status = RNL_UNLIKELY(probes) ? rnl_ofi_progress(e->domain) : 0;
    if (status >= 0)
        status = rnl_ofi_recv(e, in);
    rnl_ofi_unlock(e->domain);
    return status;
}

static uint64_t send_flags(const struct fid_ep *fid)
{
    return ((const struct rnl_ofi_ep *)(const void *)fid)->send_flags;
}

static uint64_t recv_flags(const struct fid_ep *fid)
{
    return ((const struct rnl_ofi_ep *)(const void *)fid)->recv_flags;
}

/* ---- sending, tagged or not ---- */

static ssize_t send_one(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to, uint64_t tag, uint64_t data,
                        unsigned kind, void *context, uint64_t flags)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    struct rnl_ofi_out o = {&iov, 1, to, tag, data, kind, context, flags};
    return locked_send(fid, &o);
}

static ssize_t send_pieces(struct fid_ep *fid, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag,
                           uint64_t data, unsigned kind, void *context, uint64_t flags)
{
    struct rnl_ofi_out o = {iov, count, to, tag, data, kind, context, flags};
    return locked_send(fid, &o);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, void *context)
{
    (void)desc;
    return send_one(ep, buf, len, to, 0, 0, 0, context, send_flags(ep));
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
                         void *context)
{
    (void)desc;
    return send_pieces(ep, iov, count, to, 0, 0, 0, context, send_flags(ep));
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *m, uint64_t flags)
{
    return send_pieces(ep, m->msg_iov, m->iov_count, m->addr, 0, m->data,
                       flags & FI_REMOTE_CQ_DATA ? RNL_OFI_HAS_DATA : 0, m->context, flags);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to)
{
    return send_one(ep, buf, len, to, 0, 0, 0, NULL, FI_INJECT | RNL_OFI_SILENT);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
                            void *context)
{
    (void)desc;
    return send_one(ep, buf, len, to, 0, data, RNL_OFI_HAS_DATA, context, send_flags(ep));
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to)
{
    return send_one(ep, buf, len, to, 0, data, RNL_OFI_HAS_DATA, NULL, FI_INJECT | RNL_OFI_SILENT);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t tag,
                           void *context)
{
    (void)desc;
    return send_one(ep, buf, len, to, tag, 0, RNL_OFI_TAGGED, context, send_flags(ep));
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
                            uint64_t tag, void *context)
{
    (void)desc;
    return send_pieces(ep, iov, count, to, tag, 0, RNL_OFI_TAGGED, context, send_flags(ep));
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *m, uint64_t flags)
{
    return send_pieces(ep, m->msg_iov, m->iov_count, m->addr, m->tag, m->data,
                       RNL_OFI_TAGGED | (flags & FI_REMOTE_CQ_DATA ? RNL_OFI_HAS_DATA : 0), m->context, flags);
}

static ssize_t tagged_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag)
{
    return send_one(ep, buf, len, to, tag, 0, RNL_OFI_TAGGED, NULL, FI_INJECT | RNL_OFI_SILENT);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
                               uint64_t tag, void *context)
{
    (void)desc;
    return send_one(ep, buf, len, to, tag, data, RNL_OFI_TAGGED | RNL_OFI_HAS_DATA, context, send_flags(ep));
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
                                 uint64_t tag)
{
    return send_one(ep, buf, len, to, tag, data, RNL_OFI_TAGGED | RNL_OFI_HAS_DATA, NULL, FI_INJECT | RNL_OFI_SILENT);
}

/* ---- receiving ---- */

static ssize_t recv_pieces(struct fid_ep *fid, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag,
                           uint64_t ignore, bool tagged, void *context, uint64_t flags)
{
    struct rnl_ofi_in in = {iov, count, from, tag, ignore, tagged, context, flags};
    return locked_recv(fid, &in);
}

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, void *context)
{
    (void)desc;
    struct iovec iov = {buf, len};
    return recv_pieces(ep, &iov, 1, from, 0, UINT64_MAX, false, context, recv_flags(ep));
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
                         void *context)
{
    (void)desc;
    return recv_pieces(ep, iov, count, from, 0, UINT64_MAX, false, context, recv_flags(ep));
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *m, uint64_t flags)
{
    return recv_pieces(ep, m->msg_iov, m->iov_count, m->addr, 0, UINT64_MAX, false, m->context, flags);
}

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t tag,
                           uint64_t ignore, void *context)
{
    (void)desc;
    struct iovec iov = {buf, len};
    return recv_pieces(ep, &iov, 1, from, tag, ignore, true, context, recv_flags(ep));
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
                            uint64_t tag, uint64_t ignore, void *context)
{
    (void)desc;
    return recv_pieces(ep, iov, count, from, tag, ignore, true, context, recv_flags(ep));
}

static ssize_t tagged_recvmsg(struct fid_ep *ep, const struct fi_msg_tagged *m, uint64_t flags)
{
    return recv_pieces(ep, m->msg_iov, m->iov_count, m->addr, m->tag, m->ignore, true, m->context, flags);
}

struct fi_ops_msg rnl_ofi_msg_ops = {
    .size = sizeof(struct fi_ops_msg),
    .recv = msg_recv,
    .recvv = msg_recvv,
    .recvmsg = msg_recvmsg,
    .send = msg_send,
    .sendv = msg_sendv,
    .sendmsg = msg_sendmsg,
    .inject = msg_inject,
    .senddata = msg_senddata,
    .injectdata = msg_injectdata,
};
struct fi_ops_tagged rnl_ofi_tagged_ops = {
    .size = sizeof(struct fi_ops_tagged),
    .recv = tagged_recv,
    .recvv = tagged_recvv,
    .recvmsg = tagged_recvmsg,
    .send = tagged_send,
    .sendv = tagged_sendv,
    .sendmsg = tagged_sendmsg,
    .inject = tagged_inject,
    .senddata = tagged_senddata,
    .injectdata = tagged_injectdata,
};
