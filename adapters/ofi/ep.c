/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ep.c - endpoints: what is bound to them, options, names, the end. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>

enum { CLOSE_MS = 10000, MULTI_RECV_LEAST = 64 };

static struct rnl_ofi_ep *ep_of(struct fid *fid)
{
    return (struct rnl_ofi_ep *)(void *)fid;
}

/* ---- binding ---- */

static int bind_cq(struct rnl_ofi_ep *e, struct rnl_ofi_cq *q, uint64_t flags)
{
    if (q->domain != e->domain || (flags & FI_TRANSMIT && e->sent) || (flags & FI_RECV && e->received) ||
        flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) || !(flags & (FI_TRANSMIT | FI_RECV)))
        return -FI_EINVAL;
    bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
    if (flags & FI_TRANSMIT) {
        e->sent = q;
        e->sent_selective = selective;
        q->users++;
    }
    if (flags & FI_RECV) {
        e->received = q;
        e->received_selective = selective;
        q->users++;
    }
    return 0;
}

static int bind_counter(struct rnl_ofi_ep *e, struct rnl_ofi_counter *c, uint64_t flags)
{
    struct {
        uint64_t flag;
        struct rnl_ofi_counter **at;
    } const all[] = {{FI_SEND, &e->count_send},
                     {FI_RECV, &e->count_recv},
                     {FI_READ, &e->count_read},
                     {FI_WRITE, &e->count_write},
                     {FI_REMOTE_READ, &e->count_remote_read},
                     {FI_REMOTE_WRITE, &e->count_remote_write}};
    if (c->domain != e->domain || flags == 0)
        return -FI_EINVAL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(flags & all[i].flag))
            continue;
        if (*all[i].at)
            return -FI_EINVAL;
        *all[i].at = c;
        c->users++;
        flags &= ~all[i].flag;
    }
    return flags ? -FI_EINVAL : 0;
}

static int bind(struct rnl_ofi_ep *e, struct fid *other, uint64_t flags)
{
    struct rnl_ofi_av *av = (struct rnl_ofi_av *)(void *)other;
    if (e->enabled && other->fclass != FI_CLASS_CNTR) /* OpenSHMEM's counters come later */
        return -FI_EOPBADSTATE;
    switch (other->fclass) {
    case FI_CLASS_CQ:
        return bind_cq(e, (struct rnl_ofi_cq *)(void *)other, flags);
    case FI_CLASS_CNTR:
        return bind_counter(e, (struct rnl_ofi_counter *)(void *)other, flags);
    case FI_CLASS_EQ:
        return 0; /* nothing happens that an event would tell */
    case FI_CLASS_AV:
        if (av->domain != e->domain || e->av)
            return -FI_EINVAL;
        e->av = av;
        av->users++;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

static int ep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct rnl_ofi_ep *e = ep_of(fid);
    rnl_ofi_lock(e->domain);
    int status = bind(e, other, flags);
    rnl_ofi_unlock(e->domain);
    return status;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
    struct rnl_ofi_ep *e = ep_of(fid);
    (void)arg;
    if (command != FI_ENABLE)
        return -FI_ENOSYS;
    rnl_ofi_lock(e->domain);
    int status = !e->av ? -FI_ENOAV : 0;
    e->enabled = status == 0;
    rnl_ofi_unlock(e->domain);
    return status;
}

/* ---- the end ---- */

static void unbind(struct rnl_ofi_ep *e)
{
    struct rnl_ofi_counter *counters[] = {e->count_send,  e->count_recv,        e->count_read,
                                          e->count_write, e->count_remote_read, e->count_remote_write};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (counters[i])
            counters[i]->users--;
    if (e->sent)
        e->sent->users--;
    if (e->received)
        e->received->users--;
    if (e->av)
        e->av->users--;
}

static int ep_close(struct fid *fid)
{
    struct rnl_ofi_ep *e = ep_of(fid);
    struct rnl_ofi_domain *d = e->domain;
    int64_t end = rnl_ofi_now_ms() + CLOSE_MS;
    rnl_ofi_lock(d);
    d->ep[e->number] = NULL;
    rnl_ofi_recvs_drop(e);
    while (e->under_way && rnl_ofi_now_ms() < end) {
        (void)rnl_ofi_progress(d);
        if (!e->under_way)
            break;
        rnl_ofi_unlock(d);
        rnl_ofi_sleep(d, -1, 1);
        rnl_ofi_lock(d);
    }
    bool busy = e->under_way != 0;
    if (busy) {
        d->ep[e->number] = e;
    } else {
        unbind(e);
        d->users--;
    }
    rnl_ofi_unlock(d);
    if (busy)
        return -FI_EBUSY;
    rnl_ofi_match_free(e->match[0]);
    rnl_ofi_match_free(e->match[1]);
    free(e);
    return 0;
}

/* ---- options and names ---- */

static ssize_t ep_cancel(struct fid *fid, void *context)
{
    struct rnl_ofi_ep *e = ep_of(fid);
    rnl_ofi_lock(e->domain);
    ssize_t status = rnl_ofi_recv_cancel(e, context);
    rnl_ofi_unlock(e->domain);
    return status;
}

static int ep_getopt(struct fid *fid, int level, int name, void *value, size_t *len)
{
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (*len < sizeof(size_t))
        return -FI_ETOOSMALL;
    *(size_t *)value = ep_of(fid)->multi_recv_least;
    *len = sizeof(size_t);
    return 0;
}

static int ep_setopt(struct fid *fid, int level, int name, const void *value, size_t len)
{
    struct rnl_ofi_ep *e = ep_of(fid);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
        return -FI_ENOPROTOOPT;
    if (len != sizeof(size_t))
        return -FI_EINVAL;
    rnl_ofi_lock(e->domain);
    e->multi_recv_least = *(const size_t *)value;
    rnl_ofi_unlock(e->domain);
    return 0;
}

static int no_context(struct fid_ep *ep, int index, struct fi_tx_attr *attr, struct fid_ep **out, void *context)
{
    (void)ep, (void)index, (void)attr, (void)out, (void)context;
    return -FI_ENOSYS;
}

static int no_rx_context(struct fid_ep *ep, int index, struct fi_rx_attr *attr, struct fid_ep **out, void *context)
{
    (void)ep, (void)index, (void)attr, (void)out, (void)context;
    return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *ep)
{
    (void)ep;
    return -FI_ENOSYS;
}

static struct fi_ops_ep ep_ops = {
    .size = sizeof(struct fi_ops_ep),
    .cancel = ep_cancel,
    .getopt = ep_getopt,
    .setopt = ep_setopt,
    .tx_ctx = no_context,
    .rx_ctx = no_rx_context,
    .rx_size_left = no_size_left,
    .tx_size_left = no_size_left,
};

static int cm_getname(struct fid *fid, void *addr, size_t *len)
{
    const struct rnl_ofi_ep *e = ep_of(fid);
    struct rnl_ofi_name name = e->domain->name;
    size_t room = *len;
    name.ep = (uint8_t)e->number;
    *len = sizeof name;
    if (addr)
        memcpy(addr, &name, room < sizeof name ? room : sizeof name);
    return !addr || room < sizeof name ? -FI_ETOOSMALL : 0;
}

static int no_setname(struct fid *fid, void *addr, size_t len)
{
    (void)fid, (void)addr, (void)len;
    return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *len)
{
    (void)ep, (void)addr, (void)len;
    return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len)
{
    (void)ep, (void)addr, (void)param, (void)len;
    return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
    (void)pep;
    return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t len)
{
    (void)ep, (void)param, (void)len;
    return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, struct fid *handle, const void *param, size_t len)
{
    (void)pep, (void)handle, (void)param, (void)len;
    return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
    (void)ep, (void)flags;
    return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
    (void)ep, (void)addr, (void)flags, (void)mc, (void)context;
    return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
    .size = sizeof(struct fi_ops_cm),
    .setname = no_setname,
    .getname = cm_getname,
    .getpeer = no_getpeer,
    .connect = no_connect,
    .listen = no_listen,
    .accept = no_accept,
    .reject = no_reject,
    .shutdown = no_shutdown,
    .join = no_join,
};

static struct fi_ops ep_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = ep_close,
    .bind = ep_bind,
    .control = ep_control,
    .ops_open = rnl_ofi_no_ops_open,
};

static int take_number(struct rnl_ofi_domain *d, struct rnl_ofi_ep *e)
{
    for (uint32_t i = 0; i < RNL_OFI_EPS; i++)
        if (!d->ep[i]) {
            d->ep[i] = e;
            e->number = i;
            d->users++;
            return 0;
        }
    return -FI_EMFILE;
}

int rnl_ofi_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
    struct rnl_ofi_domain *d = (struct rnl_ofi_domain *)(void *)fid;
    if (!info || (info->ep_attr && info->ep_attr->type != FI_EP_UNSPEC && info->ep_attr->type != FI_EP_RDM))
        return -FI_EINVAL;
    struct rnl_ofi_ep *e = calloc(1, sizeof *e);
    if (!e)
        return -FI_ENOMEM;
    e->fid.fid.fclass = FI_CLASS_EP;
    e->fid.fid.context = context;
    e->fid.fid.ops = &ep_fid_ops;
    e->fid.ops = &ep_ops;
    e->fid.cm = &cm_ops;
    e->fid.msg = &rnl_ofi_msg_ops;
    e->fid.tagged = &rnl_ofi_tagged_ops;
    e->fid.rma = &rnl_ofi_rma_ops;
    e->fid.atomic = &rnl_ofi_atomic_ops;
    e->domain = d;
    e->multi_recv_least = MULTI_RECV_LEAST;
    e->send_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
    e->recv_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
    e->tells_source = (info->caps & FI_SOURCE) != 0;
    e->directs = (info->caps & FI_DIRECTED_RECV) != 0;
    e->match[0] = rnl_ofi_match_new();
    e->match[1] = rnl_ofi_match_new();
    int status = e->match[0] && e->match[1] ? 0 : -FI_ENOMEM;
    if (status == 0) {
        rnl_ofi_lock(d);
        status = take_number(d, e);
        rnl_ofi_unlock(d);
    }
    if (status) {
        rnl_ofi_match_free(e->match[0]);
        rnl_ofi_match_free(e->match[1]);
        free(e);
        return status;
    }
    *out = &e->fid;
    return 0;
}
