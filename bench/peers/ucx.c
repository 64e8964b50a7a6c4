/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ucx.c - UCX under measurement, over its protocol layer (UCP), in two ways: active messages, whose handler copies the
 * bytes out, and tagged messages into posted receives. Loops as in ucx_perftest: up to 64 sends in flight, no answers;
 * unlike there, active messages are copied out and the data is fresh. */
#include "common.h"

#include <stdlib.h>
#include <ucp/api/ucp.h>

enum { AM = 1, TAG = 1 };

struct ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    bool tagged;
    unsigned sending; /* not complete */
    /* tagged: receives posted and wanted; active messages: arrived. Counted as s->got. */
    uint64_t posted, wanted;
};
static struct ucx ucx;
static struct bench_side *self; /* the handler of a send has no argument for it */

static void on_sent(void *request, ucs_status_t status, void *unused)
{
    (void)unused;
    if (status != UCS_OK)
        bench_side_fail(self, "a send failed: %s", ucs_status_string(status));
    ucx.sending--;
    ucp_request_free(request);
}

static int progress(struct bench_side *s)
{
    if (ucp_worker_progress(ucx.worker) == 0 && s->one_core)
        sched_yield();
    return s->status;
}

static int finish_sends(struct bench_side *s, unsigned most)
{
    while (ucx.sending > most)
        if (progress(s))
            return -1;
    return 0;
}

static int settle(struct bench_side *s)
{
    return finish_sends(s, 0) ? -1 : peer_settle(s, progress);
}

static inline int give(struct bench_side *s, const void *from, size_t n)
{
    static const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};
    ucs_status_ptr_t p =
        ucx.tagged ? ucp_tag_send_nbx(ucx.ep, from, n, TAG, &how) : ucp_am_send_nbx(ucx.ep, AM, NULL, 0, from, n, &how);
    if (p == NULL)
        return 0;
    if (UCS_PTR_IS_ERR(p))
        return bench_side_fail(s, "a send failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    ucx.sending++;
    return finish_sends(s, PEER_DEPTH - 1);
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
    unsigned char *to = s->to + (s->slots > 1 ? ucx.posted % s->slots * s->bytes : 0);
    (void)header;
    (void)header_bytes;
    ucx.posted++;
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
    uint64_t most = slots < PEER_DEPTH ? slots : PEER_DEPTH;
    while (ucx.posted < ucx.wanted && ucx.posted - s->got < most) {
        unsigned char *at = to + ucx.posted++ % slots * s->bytes;
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
    ucx.posted = ucx.wanted = 0;
    return settle(s);
}

static int take_one(struct bench_side *s)
{
    uint64_t target = s->got + 1;
    ucx.wanted = ucx.posted + 1;
    if (ucx.tagged && post(s, s->to, 1))
        return -1;
    while (s->got < target)
        if (progress(s))
            return -1;
    return 0;
}

static int ucx_ping(struct bench_side *s, uint64_t n, struct rnl_hist *h)
{
    ucx.posted = s->got;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        if ((s->side == 0 && give(s, s->pool, s->bytes)) || take_one(s) || (s->side == 1 && give(s, s->pool, s->bytes)))
            return -1;
        if (h)
            bench_lap(s, h, t0);
    }
    return settle(s);
}

static int ucx_stream(struct bench_side *s, uint64_t n)
{
    uint64_t depth = peer_depth(s);
    if (s->side == 0) {
        for (uint64_t i = 0; i < n; i++) {
            unsigned char *at = s->pool + i % depth * s->bytes;
            memcpy(at, &i, s->bytes < 8 ? s->bytes : 8);
            if (give(s, at, s->bytes) || (ucx.sending >= depth && finish_sends(s, (unsigned)depth - 1)))
                return -1;
        }
        return settle(s);
    }
    ucx.posted = s->got;
    ucx.wanted = n;
    while (s->got < n)
        if ((ucx.tagged && post(s, s->spare, depth)) || progress(s))
            return -1;
    return settle(s);
}

static int ucx_expect(struct bench_side *s)
{
    if (settle(s))
        return -1;
    ucx.posted = s->got;
    ucx.wanted = s->got + s->slots;
    return ucx.tagged && s->side == 1 ? post(s, s->to, s->slots) : 0;
}

static int ucx_put(struct bench_side *s, const void *from, size_t n)
{
    return give(s, from, n);
}

static int ucx_poll(struct bench_side *s)
{
    unsigned pushes = 0;
    do {
        if (progress(s))
            return -1;
    } while (s->side == 0 && ucx.sending && ++pushes < PEER_PUSHES);
    return ucx.tagged && s->side == 1 ? post(s, s->to, s->slots) : 0;
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
    settle(s);
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
    .put = ucx_put,
    .poll = ucx_poll,
    .expect = ucx_expect,
};

int main(int argc, char **argv)
{
    struct peer_args a = peer_start(argc, argv);
    ucx.tagged = !strcmp(a.way, "tag");
    return bench_side_run(a.area, a.pair, &api, a.side);
}
