/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seam.c - what a test does to an endpoint from outside its program. */
#include "support/seam.h"

#include "endpoint/endpoint.h"
#include "remote/remote_internal.h"
#include "stream/stream.h"
#include "support/must.h"

void test_seam_open(struct test_seam *s, rnl_endpoint *ep)
{
    s->env = ep->env;
    s->was = ep->env->ops;
    s->ops = *s->was;
    ep->env->ops = &s->ops;
}

void test_seam_close(struct test_seam *s)
{
    s->env->ops = s->was;
}

void test_seam_hide_ring(rnl_endpoint *ep)
{
    ep->env->ops->fd_drain(ep->env);
    atomic_fetch_sub(&ep->env->bell->word, 1);
}

void test_seam_break_protocol(rnl_endpoint *ep, unsigned peer)
{
    struct rnl_conn *conn = ep->peer[peer].conn;
    rnl_header key = rnl_header_key(RNL_CELL_KINDS, 0, 0); /* there is no such kind */
    int fresh = 1;
    unsigned char *at = rnl_tx_place(&conn->channel.tx[0], key, &fresh);
    TEST_MUST(at != NULL);
    rnl_channel_publish(&conn->channel, 0, key, at, fresh, 0);
    (void)rnl_ep_ring_bell(ep, conn, RNL_ARMED_CELLS);
}

void test_seam_register_dropped(rnl_endpoint *ep, int id, rnl_stream_handler *f, void *ctx)
{
    const struct rnl_handler h = {.stream = f, .ctx = ctx, .flags = RNL_HANDLER_DROP};
    TEST_MUST(rnl_stream_register(ep, id, &h) == id);
}

bool test_seam_is_in_bulk(const rnl_endpoint *ep, unsigned peer, const void *at)
{
    const struct rnl_rx *r = &ep->peer[peer].conn->channel.rx[0];
    const unsigned char *p = at;
    return r->bulk && p >= r->bulk && p < r->bulk + RNL_BULK_BYTES;
}

uint64_t test_seam_granted(const rnl_endpoint *ep, unsigned peer)
{
    return ep->peer[peer].conn->channel.rx[0].outstanding_max;
}

uint64_t test_seam_deferred_bytes(const rnl_endpoint *ep, unsigned peer)
{
    return ep->peer[peer].conn->channel.tx[1].held_bytes;
}

const unsigned char *test_seam_job_key(const rnl_endpoint *ep, size_t *n)
{
    *n = sizeof ep->env->job_key;
    return ep->env->job_key;
}

size_t test_seam_post_bytes(const rnl_endpoint *ep)
{
    return ep->credit.post_bytes;
}

size_t test_seam_set_budget(rnl_endpoint *ep, size_t bytes)
{
    size_t before = ep->credit.budget;
    ep->credit.budget = bytes;
    return before;
}

void test_seam_stay_active(rnl_endpoint *ep)
{
    if (ep->remote)
        ep->remote->idle_after_ns = UINT64_MAX / 2;
}
