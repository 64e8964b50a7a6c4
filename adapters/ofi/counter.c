/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counter.c - counters of completions, and event queues, on which nothing ever happens. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_MS = 10, LOOKS = 1000 /* before a wait sleeps */ };

static struct rnl_ofi_counter *counter_of(struct fid_cntr *fid)
{
    return (struct rnl_ofi_counter *)(void *)fid;
}

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_acquire); /* pairs with the release in rnl_ofi_count */
}

static void progress(struct rnl_ofi_counter *c)
{
    rnl_ofi_lock(c->domain);
    (void)rnl_ofi_progress(c->domain);
    rnl_ofi_unlock(c->domain);
}

static uint64_t counter_read(struct fid_cntr *fid)
{
    progress(counter_of(fid));
    return load(&counter_of(fid)->value);
}

static uint64_t counter_readerr(struct fid_cntr *fid)
{
    progress(counter_of(fid));
    return load(&counter_of(fid)->errors);
}

static int counter_add(struct fid_cntr *fid, uint64_t n)
{
    atomic_fetch_add_explicit(&counter_of(fid)->value, n, memory_order_release);
    return 0;
}

static int counter_adderr(struct fid_cntr *fid, uint64_t n)
{
    atomic_fetch_add_explicit(&counter_of(fid)->errors, n, memory_order_release);
    return 0;
}

static int counter_set(struct fid_cntr *fid, uint64_t n)
{
    atomic_store_explicit(&counter_of(fid)->value, n, memory_order_release);
    return 0;
}

static int counter_seterr(struct fid_cntr *fid, uint64_t n)
{
    atomic_store_explicit(&counter_of(fid)->errors, n, memory_order_release);
    return 0;
}

static int counter_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    struct rnl_ofi_counter *c = counter_of(fid);
    uint64_t errors = load(&c->errors);
    int64_t end = rnl_ofi_now_ms() + timeout;
    for (unsigned looks = 0; load(&c->value) < threshold; looks++) {
        if (load(&c->errors) != errors)
            return -FI_EAVAIL;
        progress(c);
        if (looks < LOOKS || load(&c->value) >= threshold)
            continue;
        int64_t left = timeout < 0 ? SLICE_MS : end - rnl_ofi_now_ms();
        if (left <= 0)
            return -FI_ETIMEDOUT;
        rnl_ofi_sleep(c->domain, -1, left < SLICE_MS ? left : SLICE_MS);
    }
    return 0;
}

static int counter_close(struct fid *fid)
{
    struct rnl_ofi_counter *c = (struct rnl_ofi_counter *)(void *)fid;
    struct rnl_ofi_domain *d = c->domain;
    rnl_ofi_lock(d);
    bool busy = c->users != 0;
    if (!busy)
        d->users--;
    rnl_ofi_unlock(d);
    if (!busy)
        free(c);
    return busy ? -FI_EBUSY : 0;
}

static struct fi_ops counter_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = counter_close,
    .bind = rnl_ofi_no_bind,
    .control = rnl_ofi_no_control,
    .ops_open = rnl_ofi_no_ops_open,
};
static struct fi_ops_cntr counter_ops = {
    .size = sizeof(struct fi_ops_cntr),
    .read = counter_read,
    .readerr = counter_readerr,
    .add = counter_add,
    .set = counter_set,
    .wait = counter_wait,
    .adderr = counter_adderr,
    .seterr = counter_seterr,
};

int rnl_ofi_counter_open(struct fid_domain *fid, struct fi_cntr_attr *attr, struct fid_cntr **out, void *context)
{
    struct rnl_ofi_domain *d = (struct rnl_ofi_domain *)(void *)fid;
    if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags))
        return -FI_ENOSYS;
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -FI_ENOSYS;
    struct rnl_ofi_counter *c = calloc(1, sizeof *c);
    if (!c)
        return -FI_ENOMEM;
    c->fid.fid.fclass = FI_CLASS_CNTR;
    c->fid.fid.context = context;
    c->fid.fid.ops = &counter_fid_ops;
    c->fid.ops = &counter_ops;
    c->domain = d;
    rnl_ofi_lock(d);
    d->users++;
    rnl_ofi_unlock(d);
    *out = &c->fid;
    return 0;
}

/* ---- event queues ---- */

static ssize_t eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
    (void)eq, (void)event, (void)buf, (void)len, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
    (void)eq, (void)buf, (void)flags;
    return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
    (void)eq, (void)event, (void)buf, (void)len, (void)flags;
    return -FI_ENOSYS;
}

static ssize_t eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags)
{
    (void)eq, (void)event, (void)buf, (void)len, (void)timeout, (void)flags;
    return -FI_ENOSYS;
}

static const char *eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len)
{
    (void)eq, (void)err_data, (void)buf, (void)len;
    return fi_strerror(prov_errno);
}

static int eq_close(struct fid *fid)
{
    free(fid);
    return 0;
}

static struct fi_ops eq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = eq_close,
    .bind = rnl_ofi_no_bind,
    .control = rnl_ofi_no_control,
    .ops_open = rnl_ofi_no_ops_open,
};
static struct fi_ops_eq eq_ops = {
    .size = sizeof(struct fi_ops_eq),
    .read = eq_read,
    .readerr = eq_readerr,
    .write = eq_write,
    .sread = eq_sread,
    .strerror = eq_strerror,
};

int rnl_ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out, void *context)
{
    (void)fabric;
    if (attr && attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC)
        return -FI_ENOSYS;
    struct fid_eq *eq = calloc(1, sizeof *eq);
    if (!eq)
        return -FI_ENOMEM;
    eq->fid.fclass = FI_CLASS_EQ;
    eq->fid.context = context;
    eq->fid.ops = &eq_fid_ops;
    eq->ops = &eq_ops;
    *out = eq;
    return 0;
}
