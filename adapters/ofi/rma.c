/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma.c - the tables of functions by which programs read, write and change memory of peers. */
#include "ofi.h"

static ssize_t locked_access(struct fid_ep *fid, const struct rnl_ofi_access *a)
{
    struct rnl_ofi_ep *e = (struct rnl_ofi_ep *)(void *)fid;
    rnl_ofi_lock(e->domain);
    ssize_t status = rnl_ofi_access(e, a);
    rnl_ofi_unlock(e->domain);
    return status;
}

static uint64_t send_flags(const struct fid_ep *fid)
{
    return ((const struct rnl_ofi_ep *)(const void *)fid)->send_flags;
}

/* ---- reading and writing ---- */

static ssize_t rma(struct fid_ep *ep, bool writes, const struct iovec *iov, size_t count, fi_addr_t to,
                   uint64_t address, uint64_t key, uint64_t data, void *context, uint64_t flags)
{
    struct rnl_ofi_access a = {.kind = writes ? RNL_OFI_PUT : RNL_OFI_GET,
                               .iov = iov,
                               .pieces = count,
                               .to = to,
                               .address = address,
                               .key = key,
                               .data = data,
                               .flags_there = flags & FI_REMOTE_CQ_DATA ? RNL_OFI_HAS_DATA : 0,
                               .context = context,
                               .flags = flags,
                               .completes = FI_RMA | (writes ? FI_WRITE : FI_READ)};
    return locked_access(ep, &a);
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t from, uint64_t address,
                        uint64_t key, void *context)
{
    (void)desc;
    struct iovec iov = {buf, len};
    return rma(ep, false, &iov, 1, from, address, key, 0, context, send_flags(ep) & ~(uint64_t)FI_INJECT);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t from,
                         uint64_t address, uint64_t key, void *context)
{
    (void)desc;
    return rma(ep, false, iov, count, from, address, key, 0, context, send_flags(ep) & ~(uint64_t)FI_INJECT);
}

static ssize_t rma_msg(struct fid_ep *ep, bool writes, const struct fi_msg_rma *m, uint64_t flags)
{
    size_t here = 0;
    for (size_t i = 0; i < m->iov_count; i++)
        here += m->msg_iov[i].iov_len;
    if (m->rma_iov_count != 1 || m->rma_iov[0].len != here)
        return -FI_EINVAL;
    return rma(ep, writes, m->msg_iov, m->iov_count, m->addr, m->rma_iov[0].addr, m->rma_iov[0].key, m->data,
               m->context, flags);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *m, uint64_t flags)
{
    return rma_msg(ep, false, m, flags);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to, uint64_t address,
                         uint64_t key, void *context)
{
    (void)desc;
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return rma(ep, true, &iov, 1, to, address, key, 0, context, send_flags(ep));
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t to,
                          uint64_t address, uint64_t key, void *context)
{
    (void)desc;
    return rma(ep, true, iov, count, to, address, key, 0, context, send_flags(ep));
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *m, uint64_t flags)
{
    return rma_msg(ep, true, m, flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t address, uint64_t key)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return rma(ep, true, &iov, 1, to, address, key, 0, NULL, FI_INJECT | RNL_OFI_SILENT);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t to,
                             uint64_t address, uint64_t key, void *context)
{
    (void)desc;
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return rma(ep, true, &iov, 1, to, address, key, data, context, send_flags(ep) | FI_REMOTE_CQ_DATA);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t to,
                              uint64_t address, uint64_t key)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return rma(ep, true, &iov, 1, to, address, key, data, NULL, FI_INJECT | FI_REMOTE_CQ_DATA | RNL_OFI_SILENT);
}

struct fi_ops_rma rnl_ofi_rma_ops = {
    .size = sizeof(struct fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};

/* ---- atomics: each becomes one of the forms with fi_msg_atomic ---- */

/* Returns the elements of the pieces, which become bytes in iov. */
static size_t to_bytes(struct iovec *iov, const struct fi_ioc *ioc, size_t count, size_t bytes)
{
    size_t elements = 0;
    for (size_t i = 0; i < count; elements += ioc[i++].count)
        iov[i] = (struct iovec){ioc[i].addr, ioc[i].count * bytes};
    return elements;
}

struct ofi_operands {
    const struct fi_ioc *compare;
    size_t compares;
    const struct fi_ioc *result;
    size_t results;
};

static ssize_t atomic(struct fid_ep *ep, enum rnl_ofi_atomic_way way, const struct fi_msg_atomic *m,
                      const struct ofi_operands *o, uint64_t flags)
{
    size_t bytes = rnl_ofi_atomic_bytes((unsigned)m->datatype, (unsigned)m->op, way), count = 0;
    struct iovec iov[RNL_OFI_IOV], more[RNL_OFI_IOV], result[RNL_OFI_IOV];
    bool reads = m->op == FI_ATOMIC_READ;
    if (bytes == 0)
        return -FI_EOPNOTSUPP;
    if (m->iov_count > RNL_OFI_IOV || o->compares > RNL_OFI_IOV || o->results > RNL_OFI_IOV || m->rma_iov_count != 1 ||
        flags & FI_REMOTE_CQ_DATA)
        return -FI_EINVAL;
    count = m->rma_iov[0].count;
    if (count == 0 || count > RNL_OFI_ATOMIC_BYTES / bytes ||
        (!reads && to_bytes(iov, m->msg_iov, m->iov_count, bytes) != count) ||
        (way != RNL_OFI_BASE && to_bytes(result, o->result, o->results, bytes) != count) ||
        (way == RNL_OFI_COMPARE && to_bytes(more, o->compare, o->compares, bytes) != count))
        return -FI_EINVAL;
    struct rnl_ofi_access a = {.kind = RNL_OFI_ATOMIC,
                               .iov = iov,
                               .more = more,
                               .result = result,
                               .pieces = reads ? 0 : m->iov_count,
                               .mores = way == RNL_OFI_COMPARE ? o->compares : 0,
                               .results = way == RNL_OFI_BASE ? 0 : o->results,
                               .to = m->addr,
                               .address = m->rma_iov[0].addr,
                               .key = m->rma_iov[0].key,
                               .flags_there = way == RNL_OFI_BASE ? 0 : RNL_OFI_FETCHES,
                               .length = count * bytes,
                               .type = m->datatype,
                               .op = m->op,
                               .context = m->context,
                               .flags = way == RNL_OFI_BASE ? flags : flags & ~(uint64_t)FI_INJECT,
                               .completes = FI_ATOMIC | (way == RNL_OFI_BASE ? FI_WRITE : FI_READ)};
    return locked_access(ep, &a);
}

static ssize_t atomic_pieces(struct fid_ep *ep, enum rnl_ofi_atomic_way way, const struct fi_ioc *iov, size_t count,
                             const struct ofi_operands *o, fi_addr_t to, uint64_t address, uint64_t key,
                             enum fi_datatype type, enum fi_op op, void *context, uint64_t flags)
{
    struct fi_rma_ioc there = {.addr = address, .key = key};
    const struct fi_ioc *first = op == FI_ATOMIC_READ ? o->result : iov;
    size_t n = op == FI_ATOMIC_READ ? o->results : count;
    for (size_t i = 0; i < n; i++)
        there.count += first[i].count;
    struct fi_msg_atomic m = {.msg_iov = iov,
                              .iov_count = count,
                              .addr = to,
                              .rma_iov = &there,
                              .rma_iov_count = 1,
                              .datatype = type,
                              .op = op,
                              .context = context};
    return atomic(ep, way, &m, o, flags);
}

static const struct ofi_operands no_operands;

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *m, uint64_t flags)
{
    return atomic(ep, RNL_OFI_BASE, m, &no_operands, flags);
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t to,
                             uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    (void)desc;
    return atomic_pieces(ep, RNL_OFI_BASE, iov, count, &no_operands, to, address, key, type, op, context,
                         send_flags(ep));
}

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t to,
                            uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    (void)desc;
    struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
    return atomic_writev(ep, &iov, NULL, 1, to, address, key, type, op, context);
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t to, uint64_t address,
                             uint64_t key, enum fi_datatype type, enum fi_op op)
{
    struct fi_ioc iov = {(void *)(uintptr_t)buf, count};
    return atomic_pieces(ep, RNL_OFI_BASE, &iov, 1, &no_operands, to, address, key, type, op, NULL,
                         FI_INJECT | RNL_OFI_SILENT);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *m, struct fi_ioc *result, void **desc,
                                   size_t results, uint64_t flags)
{
    (void)desc;
    struct ofi_operands o = {.result = result, .results = results};
    return atomic(ep, RNL_OFI_FETCH, m, &o, flags);
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                                 struct fi_ioc *result, void **result_desc, size_t results, fi_addr_t to,
                                 uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    (void)desc, (void)result_desc;
    struct ofi_operands o = {.result = result, .results = results};
    return atomic_pieces(ep, RNL_OFI_FETCH, iov, count, &o, to, address, key, type, op, context, send_flags(ep));
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
                                void *result_desc, fi_addr_t to, uint64_t address, uint64_t key, enum fi_datatype type,
                                enum fi_op op, void *context)
{
    (void)desc, (void)result_desc;
    struct fi_ioc iov = {(void *)(uintptr_t)buf, count}, back = {result, count};
    return atomic_readwritev(ep, &iov, NULL, 1, &back, NULL, 1, to, address, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *m, const struct fi_ioc *compare,
                                   void **compare_desc, size_t compares, struct fi_ioc *result, void **result_desc,
                                   size_t results, uint64_t flags)
{
    (void)compare_desc, (void)result_desc;
    struct ofi_operands o = {compare, compares, result, results};
    return atomic(ep, RNL_OFI_COMPARE, m, &o, flags);
}

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                                 const struct fi_ioc *compare, void **compare_desc, size_t compares,
                                 struct fi_ioc *result, void **result_desc, size_t results, fi_addr_t to,
                                 uint64_t address, uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    (void)desc, (void)compare_desc, (void)result_desc;
    struct ofi_operands o = {compare, compares, result, results};
    return atomic_pieces(ep, RNL_OFI_COMPARE, iov, count, &o, to, address, key, type, op, context, send_flags(ep));
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
                                void *compare_desc, void *result, void *result_desc, fi_addr_t to, uint64_t address,
                                uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    (void)desc, (void)compare_desc, (void)result_desc;
    struct fi_ioc iov = {(void *)(uintptr_t)buf, count}, with = {(void *)(uintptr_t)compare, count},
                  back = {result, count};
    return atomic_compwritev(ep, &iov, NULL, 1, &with, NULL, 1, &back, NULL, 1, to, address, key, type, op, context);
}

static int valid(enum fi_datatype type, enum fi_op op, enum rnl_ofi_atomic_way way, size_t *count)
{
    size_t bytes = rnl_ofi_atomic_bytes((unsigned)type, (unsigned)op, way);
    if (bytes && count)
        *count = RNL_OFI_ATOMIC_BYTES / bytes;
    return bytes ? 0 : -FI_EOPNOTSUPP;
}

static int atomic_writevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
    (void)ep;
    return valid(type, op, RNL_OFI_BASE, count);
}

static int atomic_readwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
    (void)ep;
    return valid(type, op, RNL_OFI_FETCH, count);
}

static int atomic_compwritevalid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
    (void)ep;
    return valid(type, op, RNL_OFI_COMPARE, count);
}

int rnl_ofi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, struct fi_atomic_attr *attr,
                         uint64_t flags)
{
    (void)domain;
    enum rnl_ofi_atomic_way way = flags & FI_COMPARE_ATOMIC ? RNL_OFI_COMPARE
                                  : flags & FI_FETCH_ATOMIC ? RNL_OFI_FETCH
                                                            : RNL_OFI_BASE;
    if (flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC) || flags == (FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC))
        return -FI_EOPNOTSUPP;
    attr->size = rnl_ofi_atomic_bytes((unsigned)type, (unsigned)op, way);
    return valid(type, op, way, &attr->count);
}

struct fi_ops_atomic rnl_ofi_atomic_ops = {
    .size = sizeof(struct fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = atomic_writevalid,
    .readwritevalid = atomic_readwritevalid,
    .compwritevalid = atomic_compwritevalid,
};
