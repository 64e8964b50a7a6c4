/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info.c - what the provider says it can do, and whether that is what a program wants; where libfabric finds it. */
#include "ofi.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/providers/fi_prov.h>

static const char name[] = "rnl";
enum { VERSION_MAJOR = 0, VERSION_MINOR = 1, QUEUE = 1024, DATA_BYTES = 4 };

#define SEND_CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)
#define RECV_CAPS                                                                                       \
    (FI_MSG | FI_TAGGED | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_RMA | FI_ATOMIC | \
     FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT)
#define PLACES (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define CAPS   (SEND_CAPS | RECV_CAPS | PLACES)
/* Everything goes to a peer in the order of the calls. The bytes of long messages alone come later than what announced
 * them, so what reads or writes after a send may overtake those. */
#define MSG_ORDER                                                                                             \
    (FI_ORDER_SAS | FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | \
     FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |        \
     FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define LONGEST (SIZE_MAX / 2)
#define OP_FLAGS \
    (FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_INJECT)

static struct fi_provider provider;
static const char automatic_param[] = "auto_progress";

/* FI_RNL_AUTO_PROGRESS: for programs that do not ask for it themselves, such as MPI below one that computes. */
static bool environment_wants_automatic(void)
{
    int wanted = 0;
    return fi_param_get_bool(&provider, automatic_param, &wanted) == 0 && wanted;
}

static bool wants_other_name(const char *wanted)
{
    return wanted && strcmp(wanted, name) != 0;
}

static bool domain_suits(const struct fi_domain_attr *a, bool old)
{
    if (wants_other_name(a->name) || a->cq_data_size > DATA_BYTES || a->caps & ~(uint64_t)PLACES ||
        a->ep_cnt > RNL_OFI_EPS || a->max_ep_tx_ctx > 1 || a->max_ep_rx_ctx > 1 || a->mr_key_size > sizeof(uint64_t) ||
        a->max_err_data || a->auth_key_size)
        return false;
    return !old || a->mr_mode == FI_MR_UNSPEC || a->mr_mode == FI_MR_BASIC || a->mr_mode == FI_MR_SCALABLE;
}

static const struct rnl_ofi_name not_yet = {.magic = {'R', 'N'}, .kind = RNL_OFI_NAME_NOT_YET};

static bool is_name(const void *addr, size_t bytes)
{
    struct rnl_ofi_name n;
    char text[RNL_ADDRESS_BYTES];
    if (bytes != sizeof n)
        return false;
    memcpy(&n, addr, sizeof n);
    return rnl_ofi_name_unpack(&n, text);
}

static bool suits(const struct fi_info *h, bool old)
{
    const struct fi_ep_attr *ep = h->ep_attr;
    const struct fi_tx_attr *tx = h->tx_attr;
    const struct fi_rx_attr *rx = h->rx_attr;
    if (h->caps & ~(uint64_t)CAPS || h->addr_format != FI_FORMAT_UNSPEC ||
        (h->src_addr && (h->src_addrlen != sizeof not_yet || memcmp(h->src_addr, &not_yet, sizeof not_yet) != 0)) ||
        (h->dest_addr && !is_name(h->dest_addr, h->dest_addrlen)))
        return false;
    if (ep && ((ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM) || ep->protocol != FI_PROTO_UNSPEC ||
               ep->tx_ctx_cnt > 1 || ep->rx_ctx_cnt > 1 || ep->auth_key_size))
        return false;
    if (tx && (tx->caps & ~(uint64_t)CAPS || tx->msg_order & ~(uint64_t)MSG_ORDER || tx->comp_order & FI_ORDER_DATA ||
               tx->inject_size > RNL_OFI_INJECT || tx->iov_limit > RNL_OFI_IOV || tx->rma_iov_limit > 1 ||
               tx->op_flags & ~(uint64_t)OP_FLAGS))
        return false;
    if (rx && (rx->caps & ~(uint64_t)CAPS || rx->msg_order & ~(uint64_t)MSG_ORDER || rx->comp_order & FI_ORDER_DATA ||
               rx->iov_limit > RNL_OFI_IOV || rx->op_flags & ~(uint64_t)(FI_COMPLETION | FI_MULTI_RECV)))
        return false;
    if (h->fabric_attr && wants_other_name(h->fabric_attr->name))
        return false;
    return !h->domain_attr || domain_suits(h->domain_attr, old);
}

static uint64_t caps_for(const struct fi_info *h)
{
    uint64_t caps = h && h->caps ? h->caps : CAPS;
    if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
        caps |= FI_SEND | FI_RECV;
    if (caps & (FI_RMA | FI_ATOMIC) && !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
        caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    return caps | PLACES;
}

static void fill_domain(struct fi_domain_attr *a, const struct fi_domain_attr *h, bool old)
{
    a->threading = h && h->threading != FI_THREAD_UNSPEC ? h->threading : FI_THREAD_SAFE;
    bool automatic = environment_wants_automatic() ||
                     (h && (h->data_progress == FI_PROGRESS_AUTO || h->control_progress == FI_PROGRESS_AUTO));
    a->control_progress = a->data_progress = automatic ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
    a->resource_mgmt = FI_RM_ENABLED;
    a->av_type = h && h->av_type != FI_AV_UNSPEC ? h->av_type : FI_AV_TABLE;
    int wanted = h ? h->mr_mode : FI_MR_UNSPEC; /* programs of today may still name the two old modes */
    a->mr_mode = wanted == FI_MR_BASIC ? FI_MR_BASIC : old || wanted == FI_MR_SCALABLE ? FI_MR_SCALABLE : 0;
    a->mr_key_size = sizeof(uint64_t);
    a->cq_data_size = DATA_BYTES;
    a->cq_cnt = a->cntr_cnt = QUEUE;
    a->ep_cnt = a->tx_ctx_cnt = a->rx_ctx_cnt = RNL_OFI_EPS;
    a->max_ep_tx_ctx = a->max_ep_rx_ctx = 1;
    a->mr_iov_limit = 1;
    a->mr_cnt = 1 << 16;
    a->caps = PLACES;
}

/* Both return false without memory. */
static bool copy(const void *from, size_t bytes, void **to, size_t *to_bytes)
{
    *to = malloc(bytes);
    if (!*to)
        return false;
    memcpy(*to, from, bytes);
    *to_bytes = bytes;
    return true;
}

static bool fill(struct fi_info *i, const struct fi_info *h, bool old)
{
    i->caps = caps_for(h);
    i->addr_format = FI_FORMAT_UNSPEC;
    *i->tx_attr = (struct fi_tx_attr){.caps = i->caps & SEND_CAPS,
                                      .op_flags = h && h->tx_attr ? h->tx_attr->op_flags : 0,
                                      .msg_order = MSG_ORDER,
                                      .comp_order = FI_ORDER_NONE,
                                      .inject_size = RNL_OFI_INJECT,
                                      .size = QUEUE,
                                      .iov_limit = RNL_OFI_IOV,
                                      .rma_iov_limit = 1};
    *i->rx_attr = (struct fi_rx_attr){.caps = i->caps & RECV_CAPS,
                                      .op_flags = h && h->rx_attr ? h->rx_attr->op_flags : 0,
                                      .msg_order = MSG_ORDER,
                                      .comp_order = FI_ORDER_NONE,
                                      .total_buffered_recv = 0,
                                      .size = QUEUE,
                                      .iov_limit = RNL_OFI_IOV};
    *i->ep_attr = (struct fi_ep_attr){.type = FI_EP_RDM,
                                      .protocol = FI_PROTO_UNSPEC,
                                      .protocol_version = 1,
                                      .max_msg_size = LONGEST,
                                      .max_order_raw_size = LONGEST,
                                      .max_order_war_size = LONGEST,
                                      .max_order_waw_size = LONGEST,
                                      .mem_tag_format = UINT64_C(0xaaaaaaaaaaaaaaaa),
                                      .tx_ctx_cnt = 1,
                                      .rx_ctx_cnt = 1};
    fill_domain(i->domain_attr, h ? h->domain_attr : NULL, old);
    i->domain_attr->name = strdup(name);
    i->fabric_attr->name = strdup(name);
    i->fabric_attr->prov_version = FI_VERSION(VERSION_MAJOR, VERSION_MINOR);
    return i->domain_attr->name && i->fabric_attr->name &&
           copy(&not_yet, sizeof not_yet, &i->src_addr, &i->src_addrlen) &&
           (!h || !h->dest_addr || copy(h->dest_addr, h->dest_addrlen, &i->dest_addr, &i->dest_addrlen));
}

int rnl_ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
                    const struct fi_info *hints, struct fi_info **out)
{
    bool old = FI_VERSION_LT(version, FI_VERSION(1, 5)); /* MPICH asks so first */
    (void)service;
    if ((node && !(flags & FI_SOURCE)) || (hints && !suits(hints, old)))
        return -FI_ENODATA; /* names of hosts are no addresses here */
    struct fi_info *i = fi_allocinfo();
    if (!i)
        return -FI_ENOMEM;
    if (!fill(i, hints, old)) {
        fi_freeinfo(i);
        return -FI_ENOMEM;
    }
    *out = i;
    return 0;
}

static struct fi_provider provider = {
    .version = FI_VERSION(VERSION_MAJOR, VERSION_MINOR),
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .name = name,
    .getinfo = rnl_ofi_getinfo,
    .fabric = rnl_ofi_fabric,
};

FI_EXT_INI;
FI_EXT_INI
{
    fi_param_define(&provider, automatic_param, FI_PARAM_BOOL,
                    "a thread makes progress for processes that call nothing (default: only if they ask for it)");
    return &provider;
}
