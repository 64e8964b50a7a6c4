/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mr.c - memory that peers may reach, by a key that the program chose, or the provider if it asked for FI_MR_BASIC.
 * Local buffers need no registration; a descriptor of one is taken and not looked at. */
#include "ofi.h"

#include <stdlib.h>

int rnl_ofi_mr_find(struct rnl_ofi_domain *d, const struct rnl_ofi_rma_head *h, uint64_t access,
                    struct rnl_ofi_mr **out, unsigned char **at)
{
    struct rnl_ofi_mr *m;
    HASH_FIND(hh, d->regions, &h->key, sizeof h->key, m);
    if (RNL_UNLIKELY(!m))
        return -FI_ENOKEY;
    uint64_t offset = h->address - (d->basic ? (uintptr_t)m->base : 0);
    if (RNL_UNLIKELY(offset > m->length || h->length > m->length - offset || (m->access & access) != access))
        return -FI_EACCES;
    *out = m;
    *at = (unsigned char *)((uintptr_t)m->base + offset); /* the base may be NULL: all memory is registered */
    return 0;
}

static int mr_close(struct fid *fid)
{
    struct rnl_ofi_mr *m = (struct rnl_ofi_mr *)(void *)fid;
    struct rnl_ofi_domain *d = m->domain;
    rnl_ofi_lock(d);
    HASH_DELETE(hh, d->regions, m);
    if (m->count_read)
        m->count_read->users--;
    if (m->count_write)
        m->count_write->users--;
    d->users--;
    rnl_ofi_unlock(d);
    free(m);
    return 0;
}

/* Counters of what peers do to this region; endpoints need not be bound. */
static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct rnl_ofi_mr *m = (struct rnl_ofi_mr *)(void *)fid;
    struct rnl_ofi_counter *c = (struct rnl_ofi_counter *)(void *)other;
    if (other->fclass == FI_CLASS_EP)
        return 0;
    if (other->fclass != FI_CLASS_CNTR || c->domain != m->domain || !(flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) ||
        flags & ~(uint64_t)(FI_REMOTE_READ | FI_REMOTE_WRITE))
        return -FI_EINVAL;
    rnl_ofi_lock(m->domain);
    bool taken = (flags & FI_REMOTE_READ && m->count_read) || (flags & FI_REMOTE_WRITE && m->count_write);
    if (!taken && flags & FI_REMOTE_READ) {
        m->count_read = c;
        c->users++;
    }
    if (!taken && flags & FI_REMOTE_WRITE) {
        m->count_write = c;
        c->users++;
    }
    rnl_ofi_unlock(m->domain);
    return taken ? -FI_EINVAL : 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
    (void)fid, (void)arg;
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = mr_close,
    .bind = mr_bind,
    .control = mr_control,
    .ops_open = rnl_ofi_no_ops_open,
};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **out)
{
    struct rnl_ofi_domain *d = (struct rnl_ofi_domain *)(void *)fid;
    struct rnl_ofi_mr *m, *other, *added;
    if (fid->fclass != FI_CLASS_DOMAIN || attr->iov_count != 1 || flags & ~(uint64_t)FI_RMA_EVENT)
        return -FI_EINVAL;
    m = calloc(1, sizeof *m);
    if (!m)
        return -FI_ENOMEM;
    m->fid.fid.fclass = FI_CLASS_MR;
    m->fid.fid.context = attr->context;
    m->fid.fid.ops = &mr_fid_ops;
    m->fid.mem_desc = m;
    m->fid.key = attr->requested_key;
    m->domain = d;
    m->base = attr->mr_iov[0].iov_base;
    m->length = attr->mr_iov[0].iov_len;
    m->access = attr->access;
    rnl_ofi_lock(d);
    if (d->basic)
        m->fid.key = ++d->next_key;
    HASH_FIND(hh, d->regions, &m->fid.key, sizeof m->fid.key, other);
    if (!other)
        HASH_ADD(hh, d->regions, fid.key, sizeof m->fid.key, m);
    HASH_FIND(hh, d->regions, &m->fid.key, sizeof m->fid.key, added);
    d->users += added == m;
    rnl_ofi_unlock(d);
    if (added != m) {
        free(m);
        return other ? -FI_ENOKEY : -FI_ENOMEM;
    }
    *out = &m->fid;
    return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
                   uint64_t key, uint64_t flags, struct fid_mr **out, void *context)
{
    struct fi_mr_attr attr = {.mr_iov = iov,
                              .iov_count = count,
                              .access = access,
                              .offset = offset,
                              .requested_key = key,
                              .context = context};
    return mr_regattr(fid, &attr, flags, out);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
                  uint64_t flags, struct fid_mr **out, void *context)
{
    struct iovec iov = {(void *)(uintptr_t)buf, len};
    return mr_regv(fid, &iov, 1, access, offset, key, flags, out, context);
}

struct fi_ops_mr rnl_ofi_mr_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = mr_reg,
    .regv = mr_regv,
    .regattr = mr_regattr,
};
