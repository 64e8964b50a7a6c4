/* SPDX-License-Identifier: BSD-3-Clause
 *
 * api_native.c - runnel.h under measurement: messages that fit go by rnl_send to a handler of whole messages, longer
 * ones as streams to a handler that receives straight into place. */
#include "process.h"

#include "runnel/runnel.h"

enum { SHORT = 1, LONG, EIGHT };

struct native {
    rnl_endpoint *ep;
    unsigned peer;
};
static struct native self;

static int failed(struct bench_process *s)
{
    return bench_process_fail(s, "%s", rnl_last_error()->text);
}

static int on_short(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct bench_process *s = ctx;
    (void)peer;
    memcpy(bench_slot(s), buf, n < s->bytes ? n : s->bytes);
    bench_count(s, buf, n);
    return RNL_DONE;
}

static int on_eight(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct bench_process *s = ctx;
    uint64_t v;
    (void)n;
    (void)peer;
    memcpy(&v, buf, 8);
    memcpy(s->to, &v, 8);
    s->got++;
    s->sum += v;
    return RNL_DONE;
}

static int on_long(rnl_stream *stream, unsigned peer, void *ctx)
{
    struct bench_process *s = ctx;
    unsigned char *to = bench_slot(s);
    (void)peer;
    if (rnl_receive(stream, to, s->bytes))
        failed(s);
    else
        bench_count(s, to, s->bytes);
    return RNL_DONE;
}

static int native_open(struct bench_process *s)
{
    if (rnl_open(&self.ep, NULL))
        return failed(s);
    s->rank = rnl_rank(self.ep);
    self.peer = 1 - s->rank;
    if (bench_process_check_size(s, rnl_size(self.ep)))
        return -1;
    if (rnl_handler_whole(self.ep, SHORT, on_short, s, 0) < 0 ||
        rnl_handler_whole(self.ep, EIGHT, on_eight, s, 0) < 0 || rnl_handler_stream(self.ep, LONG, on_long, s) < 0)
        return failed(s);
    return s->pair->resting ? bench_connect_native(s, self.ep, 2) : 0;
}

static void native_close(struct bench_process *s)
{
    if (rnl_close(self.ep))
        failed(s);
}

static inline int put(unsigned handler, const void *from, size_t n) /* handler: of short ones */
{
    if (n <= RNL_SHORT_MAX)
        return rnl_send(self.ep, self.peer, handler, from, n);
    rnl_stream *stream;
    struct rnl_message b = {.peer = self.peer, .handler = LONG, .bound = n};
    int e = rnl_begin(self.ep, &b, &stream);
    if (e)
        return e;
    e = rnl_piece(stream, from, n);
    int end = rnl_end(stream);
    return e ? e : end;
}

static int native_put(struct bench_process *s, const void *from, size_t n)
{
    return put(SHORT, from, n) ? failed(s) : 0;
}

static int native_poll(struct bench_process *s)
{
    return rnl_extract(self.ep, SIZE_MAX) < 0 ? failed(s) : s->status;
}

static int native_sleep(struct bench_process *s)
{
    return rnl_wait(self.ep, -1) < 0 ? failed(s) : s->status;
}

/* Inlined twice: with a constant length it is the loop that a program for 8-byte messages would be, as the
 * baseline's. */
static inline __attribute__((always_inline)) int ping(struct bench_process *s, uint64_t n, struct rnl_hist *h,
                                                      unsigned handler, size_t bytes)
{
    uint64_t target = s->due;
    s->due += n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        target++;
        if (s->rank == 0 && put(handler, s->pool, bytes))
            return failed(s);
        while (s->got < target)
            if (s->asleep ? native_sleep(s) : native_poll(s))
                return -1;
        if (s->rank == 1 && put(handler, s->pool, bytes))
            return failed(s);
        if (h)
            bench_lap(s, h, t0);
    }
    return 0;
}

static int native_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    return s->bytes == 8 ? ping(s, n, h, EIGHT, 8) : ping(s, n, h, SHORT, s->bytes);
}

static int native_stream(struct bench_process *s, uint64_t n)
{
    if (s->rank == 1) {
        while (s->got < n)
            if (native_poll(s))
                return -1;
        return 0;
    }
    if (s->bytes == 8) {
        for (uint64_t i = 0; i < n; i++)
            if (put(EIGHT, &i, 8))
                return failed(s);
        return 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(s->pool, &i, s->bytes < 8 ? s->bytes : 8);
        if (put(SHORT, s->pool, s->bytes))
            return failed(s);
    }
    return 0;
}

const struct bench_api bench_api_native = {
    .name = "native",
    .moves_when_called = true,
    .open = native_open,
    .close = native_close,
    .ping = native_ping,
    .stream = native_stream,
    .put = native_put,
    .poll = native_poll,
};
