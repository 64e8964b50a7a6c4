/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ucx.c - UCX under measurement, over its protocol layer (UCP), in three ways: active messages, whose handler copies
 * the bytes out, tagged messages into posted receives, and puts. Loops as in ucx_perftest: up to 64 sends in flight,
 * no answers; unlike there, active messages are copied out and the data is fresh. Puts, gets and fetch-and-add go to
 * and fro as in job_put.c. */
#include "posted.h"

#include <stdlib.h>
#include <ucp/api/ucp.h>

enum { AM = 1, TAG = 1 };

enum {
    WORD = 8,
    PUT_BYTES = 1 << 20,
    PUT_AREA = PUT_BYTES + 4096,
    PUT_WORD = 2048,
    LOOKS = 64
}; /* LOOKS: at what a put brings, between two calls */
struct ucx_put {
    ucp_mem_h memory;
    ucp_rkey_h key;
    unsigned char *own, *source,
        *copy; /* PUT_AREA, PUT_BYTES, PUT_BYTES: what the other process writes, what is put, what was copied out */
    uint64_t theirs, turns, sum; /* sum: of what was added */
};
struct ucx_name { /* of what a process lets the other write */
    uint64_t at, bytes;
    unsigned char key[PEER_BOARD - 16];
};

struct ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    bool tagged, puts;
    struct ucx_put put;
    struct peer_posted p; /* active messages are not posted */
    uint64_t places;      /* for active messages that arrive at the same time; 0 = one a slot */
};
static struct ucx ucx;
static struct bench_process *self; /* the handler of a send has no argument for it */

static void on_sent(void *request, ucs_status_t status, void *unused)
{
    (void)unused;
    if (status != UCS_OK)
        bench_process_fail(self, "a send failed: %s", ucs_status_string(status));
    ucx.p.sending--;
    ucp_request_free(request);
}

static int progress(struct bench_process *s)
{
    if (ucp_worker_progress(ucx.worker) == 0 && s->one_core)
        sched_yield();
    return s->status;
}

static int give(struct bench_process *s, const void *from, size_t n);
static int post(struct bench_process *s, unsigned char *to, uint64_t slots);
static const struct peer_ways ways = {.give = give, .post = post, .progress = progress};

static int give(struct bench_process *s, const void *from, size_t n)
{
    static const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = on_sent};
    ucs_status_ptr_t p =
        ucx.tagged ? ucp_tag_send_nbx(ucx.ep, from, n, TAG, &how) : ucp_am_send_nbx(ucx.ep, AM, NULL, 0, from, n, &how);
    if (!p)
        return 0;
    if (UCS_PTR_IS_ERR(p))
        return bench_process_fail(s, "a send failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    ucx.p.sending++;
    return peer_finish(s, &ucx.p, &ways, PEER_DEPTH - 1);
}

/* ---- active messages ---- */

static void on_fetched(void *request, ucs_status_t status, size_t n, void *to)
{
    if (status != UCS_OK)
        bench_process_fail(self, "a receive failed: %s", ucs_status_string(status));
    bench_count(self, to, n);
    ucp_request_free(request);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data, size_t n,
                               const ucp_am_recv_param_t *about)
{
    struct bench_process *s = arg;
    unsigned char *to = s->to + ucx.p.posted % (ucx.places ? ucx.places : s->slots) * s->bytes;
    (void)header;
    (void)header_bytes;
    ucx.p.posted++;
    if (n != s->bytes) {
        bench_process_fail(s, "a message of %zu bytes came instead of %zu", n, (size_t)s->bytes);
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
    if (!p)
        bench_count(s, to, n);
    else if (UCS_PTR_IS_ERR(p))
        bench_process_fail(s, "a receive failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    return UCS_INPROGRESS;
}

/* ---- tagged messages ---- */

static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *to)
{
    if (status != UCS_OK)
        bench_process_fail(self, "a receive failed: %s", ucs_status_string(status));
    bench_count(self, to, info->length);
    ucp_request_free(request);
}

static int post(struct bench_process *s, unsigned char *to, uint64_t slots)
{
    uint64_t most = !ucx.tagged ? 0 : slots < PEER_DEPTH ? slots : PEER_DEPTH;
    while (ucx.p.posted < ucx.p.wanted && ucx.p.posted - s->got < most) {
        unsigned char *at = to + ucx.p.posted++ % slots * s->bytes;
        const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                         .cb.recv = on_received,
                                         .user_data = at};
        ucs_status_ptr_t p = ucp_tag_recv_nbx(ucx.worker, at, s->bytes, TAG, ~(ucp_tag_t)0, &how);
        if (!p)
            bench_count(s, at, s->bytes);
        else if (UCS_PTR_IS_ERR(p))
            return bench_process_fail(s, "a receive failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    }
    return 0;
}

/* ---- the loops ---- */

static int ucx_prepare(struct bench_process *s, const struct bench_order *o)
{
    (void)o;
    return peer_prepare(s, &ucx.p, &ways);
}

static int ucx_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    return peer_ping(s, &ucx.p, &ways, n, h);
}

static int ucx_stream(struct bench_process *s, uint64_t n)
{
    ucx.places = peer_depth(s);
    int e = peer_stream(s, &ucx.p, &ways, n);
    ucx.places = 0;
    return e;
}

static int ucx_expect(struct bench_process *s)
{
    return peer_expect(s, &ucx.p, &ways);
}

static int ucx_poll(struct bench_process *s)
{
    return peer_poll(s, &ucx.p, &ways);
}

/* ---- puts ---- */

static int finish(struct bench_process *s, ucs_status_ptr_t p)
{
    if (UCS_PTR_IS_ERR(p))
        return bench_process_fail(s, "an access failed: %s", ucs_status_string(UCS_PTR_STATUS(p)));
    if (!p)
        return 0;
    while (ucp_request_check_status(p) == UCS_INPROGRESS)
        ucp_worker_progress(ucx.worker);
    ucp_request_free(p);
    return 0;
}

/* UCX orders nothing inside a put: memcpy(3) may well store the first bytes last. So the word that says the turn is a
 * put of its own, after a fence. */
static int put_turn(struct bench_process *s, unsigned char *from, size_t n)
{
    static const ucp_request_param_t plain = {0};
    const size_t first = n - WORD;
    memcpy(from + first, &ucx.put.turns, WORD);
    if (first) {
        if (finish(s, ucp_put_nbx(ucx.ep, from, first, ucx.put.theirs, ucx.put.key, &plain)))
            return -1;
        ucs_status_t e = ucp_worker_fence(ucx.worker);
        if (e != UCS_OK)
            return bench_process_fail(s, "a fence failed: %s", ucs_status_string(e));
    }
    return finish(s, ucp_put_nbx(ucx.ep, from + first, WORD, ucx.put.theirs + first, ucx.put.key, &plain));
}

/* Writes n bytes to the own memory, and says so in a word of the other process's. */
static int offer_turn(struct bench_process *s, size_t n)
{
    static const ucp_request_param_t plain = {0};
    memcpy(ucx.put.own, ucx.put.source, n);
    return finish(s, ucp_put_nbx(ucx.ep, &ucx.put.turns, WORD, ucx.put.theirs + PUT_BYTES, ucx.put.key, &plain));
}

static int get_turn(struct bench_process *s, size_t n)
{
    static const ucp_request_param_t plain = {0};
    return finish(s, ucp_get_nbx(ucx.ep, ucx.put.copy, n, ucx.put.theirs, ucx.put.key, &plain));
}

static int add_turn(struct bench_process *s)
{
    static uint64_t before;
    static const uint64_t one = 1;
    const ucp_request_param_t how = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                     .datatype = ucp_dt_make_contig(WORD),
                                     .reply_buffer = &before};
    return finish(s, ucp_atomic_op_nbx(ucx.ep, UCP_ATOMIC_OP_ADD, &one, 1, ucx.put.theirs + PUT_BYTES + PUT_WORD,
                                       ucx.put.key, &how));
}

static void await_turn(struct bench_process *s, size_t at, uint64_t wanted)
{
    const _Atomic uint64_t *last = (const _Atomic uint64_t *)(const void *)(ucx.put.own + at);
    for (unsigned looks = 1; atomic_load_explicit(last, memory_order_acquire) != wanted; looks++)
        if (looks % LOOKS == 0 && ucp_worker_progress(ucx.worker) == 0 && s->one_core)
            sched_yield();
}

static int run_puts(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    bool used = o->test == BENCH_PUT_USED, get = o->test == BENCH_PUT_GET, add = o->test == BENCH_PUT_ADD;
    unsigned char *from = used ? ucx.put.copy : ucx.put.source;
    uint64_t seed = ucx.put.turns + 1;
    size_t n = o->bytes, at = add ? PUT_BYTES + PUT_WORD : get ? PUT_BYTES : n - WORD;
    if ((o->test != BENCH_PUT_LANDED && !used && !get && !add) || n < WORD || n > PUT_BYTES)
        return bench_process_fail(s, "an order names test %u, which is not for these processes", o->test);
    bench_fill(from, n, seed);
    for (int timed = 0; timed < 2; timed++) {
        uint64_t count = timed ? o->count : o->count / 8 + 2;
        if (peer_settle(s, progress))
            return -1;
        uint64_t t0 = bench_now_ns();
        for (uint64_t i = 0; i < count; i++) {
            ucx.put.turns++;
            ucx.put.sum += add;
            for (unsigned turn = 0; turn < 2; turn++) {
                if (turn == s->rank) {
                    if (add ? add_turn(s) : get ? offer_turn(s, n) : put_turn(s, from, n))
                        return -1;
                    continue;
                }
                await_turn(s, at, add ? ucx.put.sum : ucx.put.turns);
                if (get && get_turn(s, n))
                    return -1;
                if (used)
                    memcpy(ucx.put.copy, ucx.put.own, n);
            }
        }
        a->value = (double)(bench_now_ns() - t0) / (double)count / 2;
    }
    if (peer_settle(s, progress))
        return -1;
    if (n > WORD && !bench_filled(used || get ? ucx.put.copy : ucx.put.own, n - WORD, seed))
        return bench_process_fail(s, "bytes of a put of %zu bytes differ from what was put", n);
    return 0;
}

/* ---- start and end ---- */

static int failed(struct bench_process *s, const char *what, ucs_status_t status)
{
    return bench_process_fail(s, "%s failed: %s", what, ucs_status_string(status));
}

static int connect_both(struct bench_process *s)
{
    ucp_address_t *mine;
    size_t bytes;
    ucs_status_t e = ucp_worker_get_address(ucx.worker, &mine, &bytes);
    if (e != UCS_OK)
        return failed(s, "ucp_worker_get_address", e);
    if (bytes > PEER_BOARD)
        return bench_process_fail(s, "its address has %zu bytes, more than the %d there is room for", bytes,
                                  PEER_BOARD);
    memcpy(peer_board(s, s->rank), mine, bytes);
    ucp_worker_release_address(ucx.worker, mine);
    peer_meet(s);
    static _Alignas(64) unsigned char theirs[PEER_BOARD];
    memcpy(theirs, peer_board(s, 1 - s->rank), sizeof theirs);
    const ucp_ep_params_t how = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                 .address = (const ucp_address_t *)theirs};
    e = ucp_ep_create(ucx.worker, &how, &ucx.ep);
    peer_meet(s);
    return e == UCS_OK ? 0 : failed(s, "ucp_ep_create", e);
}

static int open_puts(struct bench_process *s)
{
    const ucp_mem_map_params_t how = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                      .length = PUT_AREA,
                                      .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    struct ucx_name *name = (struct ucx_name *)(void *)peer_board(s, s->rank);
    static struct ucx_name other;
    void *key;
    size_t bytes;
    ucs_status_t e = ucp_mem_map(ucx.context, &how, &ucx.put.memory);
    if (e == UCS_OK)
        e = ucp_mem_query(ucx.put.memory, &attr);
    if (e == UCS_OK)
        e = ucp_rkey_pack(ucx.context, ucx.put.memory, &key, &bytes);
    if (e != UCS_OK)
        return failed(s, "memory for puts", e);
    ucx.put.own = attr.address;
    ucx.put.source = aligned_alloc(4096, PUT_BYTES);
    ucx.put.copy = aligned_alloc(4096, PUT_BYTES);
    if (bytes > sizeof name->key || !ucx.put.source || !ucx.put.copy)
        return bench_process_fail(s, "no memory for two buffers, or a key of %zu bytes", bytes);
    memset(ucx.put.own, 0, PUT_AREA);
    name->at = (uintptr_t)attr.address;
    name->bytes = bytes;
    memcpy(name->key, key, bytes);
    ucp_rkey_buffer_release(key);
    peer_meet(s);
    memcpy(&other, peer_board(s, !s->rank), sizeof other);
    ucx.put.theirs = other.at;
    e = ucp_ep_rkey_unpack(ucx.ep, other.key, &ucx.put.key);
    if (e != UCS_OK)
        return failed(s, "ucp_ep_rkey_unpack", e);
    return peer_settle(s, progress);
}

static void close_puts(void)
{
    ucp_rkey_destroy(ucx.put.key);
    ucp_mem_unmap(ucx.context, ucx.put.memory);
    free(ucx.put.source);
    free(ucx.put.copy);
}

static int ucx_open(struct bench_process *s)
{
    const char *ways = getenv("UCX_TLS");
    self = s;
    s->own = &ucx;
    bool may = peer_may_read(s);
    peer_about(s, "UCX %s, UCP %s, UCX_TLS=%s, process_vm_readv %s", ucp_get_version_string(),
               ucx.puts     ? "puts"
               : ucx.tagged ? "tagged messages"
                            : "active messages",
               ways ? ways : "all", may ? "allowed" : "refused");
    ucp_config_t *config;
    ucs_status_t e = ucp_config_read(NULL, NULL, &config);
    if (e != UCS_OK)
        return failed(s, "ucp_config_read", e);
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = ucx.puts     ? UCP_FEATURE_RMA | UCP_FEATURE_AMO64
                                             : ucx.tagged ? UCP_FEATURE_TAG
                                                          : UCP_FEATURE_AM};
    e = ucp_init(&params, config, &ucx.context);
    ucp_config_release(config);
    if (e != UCS_OK)
        return failed(s, "ucp_init", e);
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    e = ucp_worker_create(ucx.context, &single, &ucx.worker);
    if (e != UCS_OK)
        return failed(s, "ucp_worker_create", e);
    if (!ucx.tagged && !ucx.puts) {
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
    if (connect_both(s))
        return -1;
    return ucx.puts ? open_puts(s) : 0;
}

static void ucx_close(struct bench_process *s)
{
    peer_finish_all(s, &ucx.p, &ways);
    if (ucx.puts)
        close_puts();
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
    .run = run_puts,
};

int main(int argc, char **argv)
{
    struct peer_args a = peer_start(argc, argv);
    ucx.tagged = !strcmp(a.way, "tag");
    ucx.puts = !strcmp(a.way, "put");
    return bench_process_run(a.area, a.pair, &api, a.rank);
}
