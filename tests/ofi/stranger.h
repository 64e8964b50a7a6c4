/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stranger.h - an endpoint of the provider, and beside it in the same process one of Runnel alone, the stranger, that
 * speaks to it as a process on the provider would, but says what the test wants. */
#ifndef TEST_OFI_STRANGER_H
#define TEST_OFI_STRANGER_H

#include "adapters/ofi/ofi.h"

#include <stdlib.h>
#include <string.h>

/* These programs ask for no automatic progress and make their own, so they link no code that starts threads. */
int rnl_ofi_help(struct rnl_ofi_domain *d)
{
    (void)d;
    return -FI_ENOSYS;
}

void rnl_ofi_help_end(struct rnl_ofi_domain *d)
{
    (void)d;
}

void rnl_ofi_help_owed(struct rnl_ofi_domain *d)
{
    (void)d;
}

struct stranger {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    rnl_endpoint *rnl; /* the stranger; NULL = it has left */
    unsigned number;   /* of the provider's endpoint among its peers */
    fi_addr_t address; /* of the stranger in av */
};

static inline int stranger_drops(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    return RNL_DONE;
}

/* Both make progress. */
static inline void stranger_progress(struct stranger *z)
{
    struct fi_cq_tagged_entry e;
    struct fi_cq_err_entry error = {.err_data_size = 0};
    while (fi_cq_read(z->cq, &e, 1) == 1 || fi_cq_readerr(z->cq, &error, 0) == 1)
        ;
    if (z->rnl)
        (void)!rnl_extract(z->rnl, SIZE_MAX);
}

/* Begins a message of this kind, of at most `bound` bytes; NULL = there is no room. */
static inline rnl_stream *stranger_begin(struct stranger *z, unsigned kind, size_t bound, size_t answer)
{
    struct rnl_message m = {.peer = z->number, .handler = kind, .bound = bound, .answer = answer, .flags = RNL_NO_WAIT};
    rnl_stream *s;
    return rnl_begin(z->rnl, &m, &s) == 0 ? s : NULL;
}

static inline bool stranger_says(struct stranger *z, unsigned kind, const void *bytes, size_t n)
{
    rnl_stream *s = stranger_begin(z, kind, n, 0);
    return s && rnl_piece(s, bytes, n) == 0 && rnl_end(s) == 0;
}

/* Opens both, and introduces and greets. Returns false if something fails. */
static inline bool stranger_open(struct stranger *z)
{
    struct rnl_options o = {.size = sizeof o, .flags = RNL_ALONE, .handlers = 32, .name = "stranger"};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct rnl_ofi_name name, own;
    char text[RNL_ADDRESS_BYTES];
    size_t n = sizeof name;
    memset(z, 0, sizeof *z);
    if (rnl_ofi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, NULL, &z->info) ||
        rnl_ofi_fabric(z->info->fabric_attr, &z->fabric, NULL) || fi_domain(z->fabric, z->info, &z->domain, NULL) ||
        fi_av_open(z->domain, &av_attr, &z->av, NULL) || fi_cq_open(z->domain, &cq_attr, &z->cq, NULL) ||
        fi_endpoint(z->domain, z->info, &z->ep, NULL) || fi_ep_bind(z->ep, &z->av->fid, 0) ||
        fi_ep_bind(z->ep, &z->cq->fid, FI_TRANSMIT | FI_RECV) || fi_enable(z->ep) || fi_getname(&z->ep->fid, &name, &n))
        return false;
    if (rnl_open(&z->rnl, &o) < 0 || !rnl_ofi_name_unpack(&name, text) || rnl_insert(z->rnl, text, &z->number) < 0 ||
        rnl_address(z->rnl, NULL, NULL, NULL, text, sizeof text) < 0 || !rnl_ofi_name_pack(&own, text, 0))
        return false;
    for (unsigned kind = 1; kind < RNL_OFI_KINDS; kind++)
        if (rnl_handler_stream(z->rnl, (int)kind, stranger_drops, NULL) < 0)
            return false;
    struct rnl_ofi_domain *d = ((struct rnl_ofi_ep *)(void *)z->ep)->domain;
    bool said = false;
    for (int64_t end = rnl_ofi_now_ms() + 30000; rnl_ofi_now_ms() < end;) {
        stranger_progress(z);
        said = said || stranger_says(z, RNL_OFI_GREETING, &own, sizeof own);
        for (unsigned i = 1; said && i < d->known_count; i++)
            if (rnl_ofi_peer_at(d, i))
                return fi_av_insert(z->av, &own, 1, &z->address, 0, NULL) == 1;
    }
    return false;
}

/* The stranger leaves, and all that waits for it fails; then the endpoint is closed. Returns false if something is held
 * on to. */
static inline bool stranger_close(struct stranger *z)
{
    struct rnl_ofi_ep *e = (struct rnl_ofi_ep *)(void *)z->ep;
    if (z->rnl)
        (void)!rnl_close(z->rnl);
    z->rnl = NULL;
    for (int64_t end = rnl_ofi_now_ms() + 30000; e->under_way && rnl_ofi_now_ms() < end;)
        stranger_progress(z);
    bool closed = e->under_way == 0 && fi_close(&z->ep->fid) == 0 && fi_close(&z->cq->fid) == 0 &&
                  fi_close(&z->av->fid) == 0 && fi_close(&z->domain->fid) == 0 && fi_close(&z->fabric->fid) == 0;
    fi_freeinfo(z->info);
    return closed;
}

#endif
