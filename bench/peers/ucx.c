/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ucx.c - UCX under measurement, over its protocol layer (UCP), in two ways: active messages, whose handler copies the
 * bytes out, and tagged messages into posted receives. Loops as in ucx_perftest: up to 64 sends in flight, no answers;
 * unlike there, active messages are copied out and the data is fresh. */
#include "posted.h"

#include <stdlib.h>
#include <ucp/api/ucp.h>

enum { AM = 1, TAG = 1 };

struct ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    bool tagged;
    struct peer_posted p; /* active messages are not posted */
    uint64_t places;      /* for active messages that arrive at the same time; 0 = one a slot */
};
static struct ucx ucx;
static struct bench_side *self; /* the handler of a send has no argument for it */

static void on_sent(void *request, ucs_status_t status, void *unused)
{
    (void)unused;
    if (status != UCS_OK)
        bench_side_fail(self, "a send failed: %s", ucs_status_string(status));
    ucx.p.sending--;
    ucp_request_free(request);
}

static int progress(struct bench_side *s)
{
    if (ucp_worker_progress(ucx.worker) == 0 && s->one_core)
        sched_yield();
    return s->status;
}

static int give(struct bench_side *s, const void *from, size_t n);
static int post(struct bench_side *s, unsigned char *to, uint64_t slots);
static const struct peer_ways ways = {.give = give, .post = post, .progress = progress};

static int give(struct bench_side *s, const void *from, size_t n)
{
    static const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};
    ucs_status_ptr_t p =
        ucx.tagged ? ucp_tag_send_nbx(ucx.ep, from, n, TAG, &how) : ucp_am_send_nbx(ucx.ep, AM, NULL, 0, from, n, &how);
    if (p == NULL)
        return 0;
    if (UCS_PTR_IS_ERR(p))
        return bench_side_fail(s, "a send failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    ucx.p.sending++;
    return peer_finish(s, &ucx.p, &ways, PEER_DEPTH - 1);
}

/* ---- active messages ---- */

static void on_fetched(void *request, ucs_status_t status, size_t n, void *to)
{
    if (status != UCS_OK)
        bench_side_fail(self, "a receive failed: %s", ucs_status_string(status));
    bench_count(self, to, n);
    ucp_request_free(request);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data, size_t n,
                               const ucp_am_recv_param_t *about)
{
    struct bench_side *s = arg;
    unsigned char *to = s->to + ucx.p.posted % (ucx.places ? ucx.places : s->slots) * s->bytes;
    (void)header;
    (void)header_bytes;
    ucx.p.posted++;
    if (n != s->bytes) {
        bench_side_fail(s, "a message of %zu bytes came instead of %zu", n, (size_t)s->bytes);
        return UCS_OK;
    }
    if (!(about->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(to, data, n);
        bench_count(s, to, n);
        return UCS_OK;
    }
    const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb.recv_am = on_fetched,
                                     .user_data = to};
    ucs_status_ptr_t p = ucp_am_recv_data_nbx(ucx.worker, data, to, n, &how);
    if (p == NULL)
        bench_count(s, to, n);
    else if (UCS_PTR_IS_ERR(p))
        bench_side_fail(s, "a receive failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    return UCS_INPROGRESS;
}

/* ---- tagged messages ---- */

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *to)
{
    if (status != UCS_OK)
        bench_side_fail(self, "a receive failed: %s", ucs_status_string(status));
    bench_count(self, to, info->length);
    ucp_request_free(request);
}

static int post(struct bench_side *s, unsigned char *to, uint64_t slots)
{
    uint64_t most = !ucx.tagged ? 0 : slots < PEER_DEPTH ? slots : PEER_DEPTH;
    while (ucx.p.posted < ucx.p.wanted && ucx.p.posted - s->got < most) {
        unsigned char *at = to + ucx.p.posted++ % slots * s->bytes;
        const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                         .cb.recv = on_received,
                                         .user_data = at};
        ucs_status_ptr_t p = ucp_tag_recv_nbx(ucx.worker, at, s->bytes, TAG, ~(ucp_tag_t)0, &how);
        if (p == NULL)
            bench_count(s, at, s->bytes);
        else if (UCS_PTR_IS_ERR(p))
            return bench_side_fail(s, "a receive failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    }
    return 0;
}

/* ---- the loops ---- */

static int ucx_prepare(struct bench_side *s, const struct bench_order *o)
{
    (void)o;
    return peer_prepare(s, &ucx.p, &ways);
}

static int ucx_ping(struct bench_side *s, uint64_t n, struct rnl_hist *h)
{
    return peer_ping(s, &ucx.p, &ways, n, h);
}

static int ucx_stream(struct bench_side *s, uint64_t n)
{
    ucx.places = peer_depth(s);
    int e = peer_stream(s, &ucx.p, &ways, n);
    ucx.places = 0;
    return e;
}

static int ucx_expect(struct bench_side *s)
{
    return peer_expect(s, &ucx.p, &ways);
}

static int ucx_poll(struct bench_side *s)
{
    return peer_poll(s, &ucx.p, &ways);
}

/* ---- start and end ---- */

static int failed(struct bench_side *s, const char *what, ucs_status_t status)
{
    return bench_side_fail(s, "%s failed: %s", what, ucs_status_string(status));
}

static int connect_both(struct bench_side *s)
{
    ucp_address_t *mine;
    size_t bytes;
    ucs_status_t e = ucp_worker_get_address(ucx.worker, &mine, &bytes);
    if (e != UCS_OK)
        return failed(s, "ucp_worker_get_address", e);
    if (bytes > PEER_BOARD)
        return bench_side_fail(s, "its address has %zu bytes, more than the %d there is room for", bytes, PEER_BOARD);
    memcpy(peer_board(s, s->side), mine, bytes);
    ucp_worker_release_address(ucx.worker, mine);
    peer_meet(s);
    static _Alignas(64) unsigned char theirs[PEER_BOARD];
    memcpy(theirs, peer_board(s, 1 - s->side), sizeof theirs);
    const ucp_ep_params_t how = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                 .address = (const ucp_address_t *)theirs};
    e = ucp_ep_create(ucx.worker, &how, &ucx.ep);
    peer_meet(s);
    return e == UCS_OK ? 0 : failed(s, "ucp_ep_create", e);
}

static int ucx_open(struct bench_side *s)
{
    const char *ways = getenv("UCX_TLS");
    self = s;
    s->own = &ucx;
    bool may = peer_may_read(s);
    peer_about(s, "UCX %s, UCP %s, UCX_TLS=%s, process_vm_readv %s", ucp_get_version_string(),
               ucx.tagged ? "tagged messages" : "active messages", ways ? ways : "all", may ? "allowed" : "refused");
    ucp_config_t *config;
    ucs_status_t e = ucp_config_read(NULL, NULL, &config);
    if (e != UCS_OK)
        return failed(s, "ucp_config_read", e);
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = ucx.tagged ? UCP_FEATURE_TAG : UCP_FEATURE_AM};
    e = ucp_init(&params, config, &ucx.context);
    ucp_config_release(config);
    if (e != UCS_OK)
        return failed(s, "ucp_init", e);
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    e = ucp_worker_create(ucx.context, &single, &ucx.worker);
    if (e != UCS_OK)
        return failed(s, "ucp_worker_create", e);
    if (!ucx.tagged) {
        const ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                              UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                              UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                                .id = AM,
                                                .cb = on_message,
                                                .arg = s};
        e = ucp_worker_set_am_recv_handler(ucx.worker, &handler);
        if (e != UCS_OK)
            return failed(s, "ucp_worker_set_am_recv_handler", e);
    }
    return connect_both(s);
}

static void ucx_close(struct bench_side *s)
{
    peer_finish_all(s, &ucx.p, &ways);
    static const ucp_request_param_t gently = {0};
    ucs_status_ptr_t p = ucp_ep_close_nbx(ucx.ep, &gently);
    if (UCS_PTR_IS_PTR(p)) {
        while (ucp_request_check_status(p) == UCS_INPROGRESS)
            ucp_worker_progress(ucx.worker);
        ucp_request_free(p);
    }
    peer_meet(s);
    ucp_worker_destroy(ucx.worker);
    ucp_cleanup(ucx.context);
}

static const struct bench_api api = {
    .name = "ucx",
    .open = ucx_open,
    .close = ucx_close,
    .prepare = ucx_prepare,
    .ping = ucx_ping,
    .stream = ucx_stream,
    .put = give,
    .poll = ucx_poll,
    .expect = ucx_expect,
};

int main(int argc, char **argv)
{
    struct peer_args a = peer_start(argc, argv);
    ucx.tagged = !strcmp(a.way, "tag");
    return bench_side_run(a.area, a.pair, &api, a.side);
}
