/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cq.c - completion queues: a ring that grows, and a list of errors that are told first. Reading an empty one makes
 * progress. With a wait object there is a descriptor, which becomes readable by messages and by the queue's bell. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { FIRST_ENTRIES = 256 };

static struct rnl_ofi_cq *cq_of(struct fid_cq *fid)
{
    return (struct rnl_ofi_cq *)(void *)fid;
}

static ssize_t take_entries(struct rnl_ofi_cq *q, void *buf, size_t count, fi_addr_t *source)
{
    if (q->head == q->tail && !rnl_ofi_is_linked(&q->errors)) {
        int status = rnl_ofi_progress(q->domain);
        if (status < 0)
            return status;
    }
    if (RNL_UNLIKELY(rnl_ofi_is_linked(&q->errors)))
        return -FI_EAVAIL;
    if (q->head == q->tail)
        return -FI_EAGAIN;
    size_t n = 0;
    for (char *to = buf; n < count && q->head != q->tail; n++, to += q->entry_bytes) {
        const struct rnl_ofi_entry *e = &q->ring[q->head++ & q->mask];
        memcpy(to, &e->entry, q->entry_bytes);
        if (source)
            source[n] = e->source;
    }
    return (ssize_t)n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
    struct rnl_ofi_cq *q = cq_of(fid);
    rnl_ofi_lock(q->domain);
    ssize_t n = take_entries(q, buf, count, source);
    rnl_ofi_unlock(q->domain);
    return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *out, uint64_t flags)
{
    (void)flags;
    struct rnl_ofi_cq *q = cq_of(fid);
    rnl_ofi_lock(q->domain);
    struct rnl_ofi_link *l = rnl_ofi_take(&q->errors);
    rnl_ofi_unlock(q->domain);
    if (!l)
        return -FI_EAGAIN;
    struct rnl_ofi_error *e = RNL_OFI_OF(l, struct rnl_ofi_error, link);
    void *data = out->err_data;
    size_t room = out->err_data_size;
    *out = e->entry;
    out->err_data = room ? data : NULL; /* there is none */
    out->err_data_size = 0;
    free(e);
    return 1;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source, const void *cond,
                            int timeout)
{
    (void)cond;
    struct rnl_ofi_cq *q = cq_of(fid);
    if (q->bell < 0)
        return -FI_ENOSYS;
    int64_t end = rnl_ofi_now_ms() + timeout;
    rnl_ofi_lock(q->domain);
    q->sleepers++;
    const unsigned heard = q->heard;
    ssize_t n;
    for (bool signalled = false;;) {
        n = take_entries(q, buf, count, source);
        int64_t left = timeout < 0 ? INT64_MAX : end - rnl_ofi_now_ms();
        if (n != -FI_EAGAIN || left <= 0 || signalled)
            break;
        rnl_ofi_unlock(q->domain);
        rnl_ofi_sleep(q->domain, q->bell, left);
        rnl_ofi_lock(q->domain);
        eventfd_t value; /* also what rang for an entry that has been read since */
        (void)!eventfd_read(q->bell, &value);
        unsigned signals = atomic_load_explicit(&q->signals, memory_order_relaxed);
        signalled = signals != heard;
        q->heard = signals;
    }
    if (--q->sleepers && (q->heard != heard || q->head != q->tail))
        rnl_ofi_cq_ring(q); /* one of them took the bell, which may have rung for others, too */
    rnl_ofi_unlock(q->domain);
    return n;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
    return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
    struct rnl_ofi_cq *q = cq_of(fid);
    if (q->bell < 0)
        return -FI_ENOSYS;
    atomic_fetch_add_explicit(&q->signals, 1, memory_order_relaxed); /* the bell's calls keep the order */
    rnl_ofi_cq_ring(q);
    return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
    (void)fid, (void)err_data;
    const char *text = fi_strerror(prov_errno < 0 ? -prov_errno : prov_errno);
    if (buf && len) {
        strncpy(buf, text, len - 1);
        buf[len - 1] = '\0';
    }
    return text;
}

int rnl_ofi_cq_trywait(struct rnl_ofi_cq *q)
{
    int fd;
    eventfd_t value;
    rnl_ofi_lock(q->domain);
    (void)!eventfd_read(q->bell, &value);
    q->heard = atomic_load_explicit(&q->signals, memory_order_relaxed);
    int status = q->head != q->tail || rnl_ofi_is_linked(&q->errors) ? -FI_EAGAIN : rnl_ofi_progress(q->domain);
    if (status == 0 && (q->head != q->tail || rnl_ofi_is_linked(&q->errors) || rnl_ofi_arm(q->domain, &fd) != 0))
        status = -FI_EAGAIN;
    q->awaited = status == 0;
    rnl_ofi_unlock(q->domain);
    return status;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
    const struct rnl_ofi_cq *q = (const struct rnl_ofi_cq *)(const void *)fid;
    if (command != FI_GETWAIT || q->epoll < 0)
        return -FI_ENOSYS;
    *(int *)arg = q->epoll;
    return 0;
}

static void cq_free(struct rnl_ofi_cq *q)
{
    struct rnl_ofi_link *l;
    while ((l = rnl_ofi_take(&q->errors)))
        free(RNL_OFI_OF(l, struct rnl_ofi_error, link));
    if (q->bell >= 0)
        close(q->bell);
    if (q->epoll >= 0)
        close(q->epoll);
    free(q->ring);
    free(q);
}

static int cq_close(struct fid *fid)
{
    struct rnl_ofi_cq *q = (struct rnl_ofi_cq *)(void *)fid;
    struct rnl_ofi_domain *d = q->domain;
    rnl_ofi_lock(d);
    bool busy = q->users != 0;
    if (!busy) {
        d->users--;
        cq_free(q);
    }
    rnl_ofi_unlock(d);
    return busy ? -FI_EBUSY : 0;
}

static struct fi_ops cq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cq_close,
    .bind = rnl_ofi_no_bind,
    .control = cq_control,
    .ops_open = rnl_ofi_no_ops_open,
};
static struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = cq_read,
    .readfrom = cq_readfrom,
    .readerr = cq_readerr,
    .sread = cq_sread,
    .sreadfrom = cq_sreadfrom,
    .signal = cq_signal,
    .strerror = cq_strerror,
};

static bool make_wait(struct rnl_ofi_cq *q)
{
    int fd;
    if (rnl_ofi_arm(q->domain, &fd) < 0)
        return false;
    struct epoll_event event = {.events = EPOLLIN};
    q->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    q->epoll = epoll_create1(EPOLL_CLOEXEC);
    return q->bell >= 0 && q->epoll >= 0 && epoll_ctl(q->epoll, EPOLL_CTL_ADD, q->bell, &event) == 0 &&
           epoll_ctl(q->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

int rnl_ofi_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
    static const size_t bytes[] = {[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_entry),
                                   [FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
                                   [FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
                                   [FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
                                   [FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry)};
    struct rnl_ofi_domain *d = (struct rnl_ofi_domain *)(void *)fid;
    enum fi_wait_obj wait = attr ? attr->wait_obj : FI_WAIT_NONE;
    enum fi_cq_format format = attr ? attr->format : FI_CQ_FORMAT_UNSPEC;
    if ((size_t)format >= sizeof bytes / sizeof *bytes)
        return -FI_EINVAL;
    if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD)
        return -FI_ENOSYS;
    struct rnl_ofi_cq *q = calloc(1, sizeof *q);
    if (!q)
        return -FI_ENOMEM;
    q->fid.fid.fclass = FI_CLASS_CQ;
    q->fid.fid.context = context;
    q->fid.fid.ops = &cq_fid_ops;
    q->fid.ops = &cq_ops;
    q->domain = d;
    q->entry_bytes = bytes[format];
    q->mask = FIRST_ENTRIES - 1;
    q->ring = malloc(FIRST_ENTRIES * sizeof *q->ring);
    q->bell = q->epoll = -1;
    rnl_ofi_link_init(&q->errors);
    rnl_ofi_lock(d);
    bool made = q->ring && (wait == FI_WAIT_NONE || make_wait(q));
    if (made)
        d->users++;
    else
        cq_free(q);
    rnl_ofi_unlock(d);
    if (made)
        *out = &q->fid;
    return made ? 0 : -FI_ENOMEM;
}
