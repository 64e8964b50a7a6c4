/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libfabric.c - a provider of libfabric (shm, or TCP) under measurement, with tagged messages between reliable-datagram
 * endpoints, as the tagged ping-pong and bandwidth programs of its fabtests use it: short ones injected, receives
 * posted ahead, up to 64 of either in flight, completion queues polled. */
#include "posted.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>

enum { TAG = 1, BATCH = 16 };

struct place { /* of a receive */
    struct fi_context2 context;
    unsigned char *to;
};

struct fabric {
    const char *provider;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_ep *ep;
    struct fid_cq *sent, *received;
    fi_addr_t peer;
    struct peer_posted p;
    uint64_t begun; /* sends */
    struct fi_context2 send[PEER_DEPTH];
    struct place place[PEER_DEPTH];
};
static struct fabric fab;

static int failed(struct bench_process *s, const char *what, long e)
{
    return bench_process_fail(s, "%s failed: %s", what, fi_strerror((int)-e));
}

static int failed_later(struct bench_process *s, struct fid_cq *cq, const char *what)
{
    struct fi_cq_err_entry entry = {0};
    fi_cq_readerr(cq, &entry, 0);
    return failed(s, what, -entry.err);
}

/* Reading the queues is what moves the provider on. */
static int progress(struct bench_process *s)
{
    struct fi_cq_entry entry[BATCH];
    ssize_t n = fi_cq_read(fab.received, entry, BATCH);
    if (n < 0 && n != -FI_EAGAIN)
        return n == -FI_EAVAIL ? failed_later(s, fab.received, "a receive") : failed(s, "fi_cq_read", n);
    for (ssize_t i = 0; i < n; i++) {
        const struct place *p = entry[i].op_context;
        bench_count(s, p->to, s->bytes);
    }
    if (fab.p.sending) {
        ssize_t m = fi_cq_read(fab.sent, entry, BATCH);
        if (m < 0 && m != -FI_EAGAIN)
            return m == -FI_EAVAIL ? failed_later(s, fab.sent, "a send") : failed(s, "fi_cq_read", m);
        if (m > 0)
            fab.p.sending -= (unsigned)m;
    }
    if (n <= 0 && s->one_core)
        sched_yield();
    return 0;
}

static int give(struct bench_process *s, const void *from, size_t n);
static int post(struct bench_process *s, unsigned char *to, uint64_t slots);
static const struct peer_ways ways = {.give = give, .post = post, .progress = progress};

static int give(struct bench_process *s, const void *from, size_t n)
{
    bool inject = n <= fab.info->tx_attr->inject_size;
    for (;;) {
        ssize_t e = inject ? fi_tinject(fab.ep, from, n, fab.peer, TAG)
                           : fi_tsend(fab.ep, from, n, NULL, fab.peer, TAG, &fab.send[fab.begun % PEER_DEPTH]);
        if (e == 0)
            break;
        if (e != -FI_EAGAIN)
            return failed(s, "a send", e);
        if (progress(s))
            return -1;
    }
    if (inject)
        return 0;
    fab.begun++;
    fab.p.sending++;
    return peer_finish(s, &fab.p, &ways, PEER_DEPTH - 1);
}

static int post(struct bench_process *s, unsigned char *to, uint64_t slots)
{
    uint64_t most = slots < PEER_DEPTH ? slots : PEER_DEPTH;
    while (fab.p.posted < fab.p.wanted && fab.p.posted - s->got < most) {
        struct place *p = &fab.place[fab.p.posted % PEER_DEPTH];
        p->to = to + fab.p.posted % slots * s->bytes;
        ssize_t e = fi_trecv(fab.ep, p->to, s->bytes, NULL, fab.peer, TAG, 0, &p->context);
        if (e == 0)
            fab.p.posted++;
        else if (e == -FI_EAGAIN)
            return progress(s);
        else
            return failed(s, "a receive", e);
    }
    return 0;
}

/* ---- the loops ---- */

static int fabric_prepare(struct bench_process *s, const struct bench_order *o)
{
    (void)o;
    return peer_prepare(s, &fab.p, &ways);
}

static int fabric_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    return peer_ping(s, &fab.p, &ways, n, h);
}

static int fabric_stream(struct bench_process *s, uint64_t n)
{
    return peer_stream(s, &fab.p, &ways, n);
}

static int fabric_expect(struct bench_process *s)
{
    return peer_expect(s, &fab.p, &ways);
}

static int fabric_poll(struct bench_process *s)
{
    return peer_poll(s, &fab.p, &ways);
}

/* ---- start and end ---- */

static int connect_both(struct bench_process *s)
{
    size_t bytes = PEER_BOARD - sizeof bytes;
    unsigned char *mine = peer_board(s, s->rank), *theirs = peer_board(s, 1 - s->rank);
    int e = fi_getname(&fab.ep->fid, mine, &bytes);
    if (e)
        return failed(s, "fi_getname", e);
    peer_meet(s);
    int n = fi_av_insert(fab.av, theirs, 1, &fab.peer, 0, NULL);
    peer_meet(s);
    return n == 1 ? 0 : failed(s, "fi_av_insert", n < 0 ? n : -FI_EINVAL);
}

static int open_all(struct bench_process *s)
{
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE, .size = 1024};
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = 2};
    int e;
    if ((e = fi_fabric(fab.info->fabric_attr, &fab.fabric, NULL)))
        return failed(s, "fi_fabric", e);
    if ((e = fi_domain(fab.fabric, fab.info, &fab.domain, NULL)))
        return failed(s, "fi_domain", e);
    if ((e = fi_av_open(fab.domain, &av, &fab.av, NULL)))
        return failed(s, "fi_av_open", e);
    if ((e = fi_cq_open(fab.domain, &cq, &fab.sent, NULL)) || (e = fi_cq_open(fab.domain, &cq, &fab.received, NULL)))
        return failed(s, "fi_cq_open", e);
    if ((e = fi_endpoint(fab.domain, fab.info, &fab.ep, NULL)))
        return failed(s, "fi_endpoint", e);
    if ((e = fi_ep_bind(fab.ep, &fab.av->fid, 0)) || (e = fi_ep_bind(fab.ep, &fab.sent->fid, FI_TRANSMIT)) ||
        (e = fi_ep_bind(fab.ep, &fab.received->fid, FI_RECV)))
        return failed(s, "fi_ep_bind", e);
    if ((e = fi_enable(fab.ep)))
        return failed(s, "fi_enable", e);
    return connect_both(s);
}

static int fabric_open(struct bench_process *s)
{
    s->own = &fab;
    bool may = peer_may_read(s);
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        return failed(s, "fi_allocinfo", -FI_ENOMEM);
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(fab.provider);
    int e = fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &fab.info);
    fi_freeinfo(hints);
    if (e)
        return failed(s, "fi_getinfo for the provider", e);
    uint32_t v = fi_version();
    peer_about(s, "libfabric %u.%u, provider %s, tagged messages, process_vm_readv %s", FI_MAJOR(v), FI_MINOR(v),
               fab.info->fabric_attr->prov_name, may ? "allowed" : "refused");
    return open_all(s);
}

static void fabric_close(struct bench_process *s)
{
    peer_finish_all(s, &fab.p, &ways);
    struct fid *const all[] = {&fab.ep->fid, &fab.sent->fid,   &fab.received->fid,
                               &fab.av->fid, &fab.domain->fid, &fab.fabric->fid};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        fi_close(all[i]);
    fi_freeinfo(fab.info);
}

static const struct bench_api api = {
    .name = "libfabric",
    .open = fabric_open,
    .close = fabric_close,
    .prepare = fabric_prepare,
    .ping = fabric_ping,
    .stream = fabric_stream,
    .put = give,
    .poll = fabric_poll,
    .expect = fabric_expect,
};

int main(int argc, char **argv)
{
    struct peer_args a = peer_start(argc, argv);
    fab.provider = a.way;
    return bench_process_run(a.area, a.pair, &api, a.rank);
}
