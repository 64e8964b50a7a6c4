/* SPDX-License-Identifier: BSD-3-Clause
 *
 * domain.c - fabrics and domains: what they open and close. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HANDLERS = 32, PEERS = 1023, CLOSE_MS = 30000 };

/* ---- domains ---- */

static bool open_endpoint(struct rnl_ofi_domain *d, int *error)
{
    static const struct {
        enum rnl_ofi_kind kind;
        rnl_stream_handler *handler;
    } handlers[] = {
        {RNL_OFI_MESSAGE, rnl_ofi_on_message}, {RNL_OFI_ANNOUNCE, rnl_ofi_on_announce},
        {RNL_OFI_ASK, rnl_ofi_on_ask},         {RNL_OFI_DATA, rnl_ofi_on_data},
        {RNL_OFI_ACK, rnl_ofi_on_ack},         {RNL_OFI_GREETING, rnl_ofi_on_greeting},
        {RNL_OFI_PUT, rnl_ofi_on_put},         {RNL_OFI_GET, rnl_ofi_on_get},
        {RNL_OFI_ATOMIC, rnl_ofi_on_atomic},   {RNL_OFI_RESULT, rnl_ofi_on_result},
    };
    struct rnl_options o = {.size = sizeof o,
                            .flags = RNL_ALONE, /* the domain has a lock of its own around all calls */
                            .handlers = HANDLERS,
                            .name = "libfabric",
                            .peers = PEERS};
    char address[RNL_ADDRESS_BYTES];
    int status = rnl_open(&d->rnl, &o);
    if (status < 0)
        d->rnl = NULL;
    for (size_t i = 0; status >= 0 && i < sizeof handlers / sizeof *handlers; i++)
        status = rnl_handler_stream(d->rnl, (int)handlers[i].kind, handlers[i].handler, d);
    if (status >= 0)
        status = rnl_address(d->rnl, NULL, NULL, NULL, address, sizeof address);
    *error = rnl_ofi_errno(status);
    if (status >= 0 && !rnl_ofi_name_pack(&d->name, address, 0))
        *error = -FI_EADDRNOTAVAIL;
    if (*error)
        return false;
    rnl_on_death(d->rnl, rnl_ofi_on_death, d);
    d->known_count = rnl_size(d->rnl);
    d->known = calloc(d->known_count, sizeof(void *));
    struct rnl_ofi_peer *self = d->known ? rnl_ofi_peer_find(d, &d->name) : NULL;
    if (!self) {
        *error = -FI_ENOMEM;
        return false;
    }
    d->known[0] = self;
    self->number = 0;
    self->state = RNL_OFI_UP;
    self->heard = true;
    return true;
}

static void free_domain(struct rnl_ofi_domain *d)
{
    struct rnl_ofi_link *l;
    if (d->rnl)
        (void)!rnl_close(d->rnl);
    for (uint32_t i = 0; i < d->sends; i++)
        free(d->send[i]);
    for (uint32_t i = 0; i < d->recvs; i++)
        free(d->recv[i]);
    while ((l = rnl_ofi_take(&d->free_messages)))
        free(RNL_OFI_OF(l, struct rnl_ofi_message, order));
    rnl_ofi_peers_free(d);
    free(d->send);
    free(d->recv);
    free(d->known);
    if (d->lock) {
        pthread_mutex_destroy(d->lock);
        (void)munmap(d->lock, sizeof *d->lock);
    }
    free(d);
}

static int domain_close(struct fid *fid)
{
    struct rnl_ofi_domain *d = (struct rnl_ofi_domain *)(void *)fid;
    rnl_ofi_lock(d);
    bool used = d->users != 0;
    rnl_ofi_unlock(d);
    if (used)
        return -FI_EBUSY;
    int64_t end = rnl_ofi_now_ms() + CLOSE_MS;
    for (;;) { /* what was injected is complete for the program already */
        rnl_ofi_lock(d);
        int status = rnl_ofi_progress(d);
        bool queued = rnl_ofi_has_queued(d, NULL);
        rnl_ofi_unlock(d);
        if (!queued || status < 0 || rnl_ofi_now_ms() >= end)
            break;
        rnl_ofi_sleep(d, -1, 1);
    }
    rnl_ofi_help_end(d);
    free_domain(d);
    return 0;
}

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
{
    (void)domain, (void)info, (void)sep, (void)context;
    return -FI_ENOSYS;
}

static int no_poll(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set)
{
    (void)domain, (void)attr, (void)set;
    return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context)
{
    (void)domain, (void)attr, (void)stx, (void)context;
    return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx, void *context)
{
    (void)domain, (void)attr, (void)rx, (void)context;
    return -FI_ENOSYS;
}

static struct fi_ops domain_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = domain_close,
    .bind = rnl_ofi_no_bind,
    .control = rnl_ofi_no_control,
    .ops_open = rnl_ofi_no_ops_open,
};
static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain),
    .av_open = rnl_ofi_av_open,
    .cq_open = rnl_ofi_cq_open,
    .endpoint = rnl_ofi_ep_open,
    .scalable_ep = no_scalable_ep,
    .cntr_open = rnl_ofi_counter_open,
    .poll_open = no_poll,
    .stx_ctx = no_stx,
    .srx_ctx = no_srx,
    .query_atomic = rnl_ofi_query_atomic,
};

/* The library refuses a forked child's calls. Before that they must not wait for a thread that the child has not. */
static bool make_lock(struct rnl_ofi_domain *d)
{
    void *page = mmap(NULL, sizeof *d->lock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    (void)madvise(page, sizeof *d->lock, MADV_WIPEONFORK); /* a kernel without it leaves the child the parent's */
    d->lock = page;
    return pthread_mutex_init(d->lock, NULL) == 0;
}

int rnl_ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
    (void)fabric;
    int error;
    struct rnl_ofi_domain *d = calloc(1, sizeof *d);
    if (!d)
        return -FI_ENOMEM;
    d->fid.fid.fclass = FI_CLASS_DOMAIN;
    d->fid.fid.context = context;
    d->fid.fid.ops = &domain_fid_ops;
    d->fid.ops = &domain_ops;
    d->fid.mr = &rnl_ofi_mr_ops;
    const struct fi_domain_attr *a = info->domain_attr;
    d->automatic = a && (a->data_progress == FI_PROGRESS_AUTO || a->control_progress == FI_PROGRESS_AUTO);
    d->help_owed = rnl_ofi_help_owed;
    d->locks = d->automatic || !a || a->threading != FI_THREAD_DOMAIN;
    d->basic = a && a->mr_mode == FI_MR_BASIC;
    error = make_lock(d) ? 0 : -FI_ENOMEM;
    rnl_ofi_link_init(&d->busy);
    rnl_ofi_link_init(&d->asked);
    rnl_ofi_link_init(&d->unmet);
    rnl_ofi_link_init(&d->free_sends);
    rnl_ofi_link_init(&d->free_recvs);
    rnl_ofi_link_init(&d->free_messages);
    if (error == 0 && open_endpoint(d, &error) && d->automatic)
        error = rnl_ofi_help(d);
    if (error) {
        free_domain(d);
        return error;
    }
    *out = &d->fid;
    return 0;
}

/* ---- fabrics ---- */

static int fabric_close(struct fid *fid)
{
    free(fid);
    return 0;
}

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context)
{
    (void)fabric, (void)info, (void)pep, (void)context;
    return -FI_ENOSYS;
}

static int no_wait_set(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set)
{
    (void)fabric, (void)attr, (void)set;
    return -FI_ENOSYS;
}

static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
    (void)fabric;
    int status = 0;
    for (int i = 0; i < count && status == 0; i++) {
        if (fids[i]->fclass != FI_CLASS_CQ || ((struct rnl_ofi_cq *)(void *)fids[i])->bell < 0)
            return -FI_EINVAL;
        status = rnl_ofi_cq_trywait((struct rnl_ofi_cq *)(void *)fids[i]);
    }
    return status;
}

static struct fi_ops fabric_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = fabric_close,
    .bind = rnl_ofi_no_bind,
    .control = rnl_ofi_no_control,
    .ops_open = rnl_ofi_no_ops_open,
};
static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = rnl_ofi_domain_open,
    .passive_ep = no_passive_ep,
    .eq_open = rnl_ofi_eq_open,
    .wait_open = no_wait_set,
    .trywait = fabric_trywait,
};

int rnl_ofi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
    (void)attr;
    struct fid_fabric *f = calloc(1, sizeof *f);
    if (!f)
        return -FI_ENOMEM;
    f->fid.fclass = FI_CLASS_FABRIC;
    f->fid.context = context;
    f->fid.ops = &fabric_fid_ops;
    f->ops = &fabric_ops;
    *out = f;
    return 0;
}
