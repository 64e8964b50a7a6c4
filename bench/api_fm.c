/* SPDX-License-Identifier: BSD-3-Clause
 *
 * api_fm.c - FM 2.x under measurement, as a program written from the paper uses it: begin, one piece, end; FM_receive
 * in the handler; FM_extract in a loop. */
#include "process.h"

#include "runnel/fm.h"

#include <limits.h>

enum { HANDLER = 1, EIGHT };

static struct bench_process *self; /* FM handlers have no argument for it */

static int on_message(FM_stream *stream, unsigned sender)
{
    struct bench_process *s = self;
    unsigned char *to = bench_slot(s);
    (void)sender;
    FM_receive(to, stream, s->bytes);
    bench_count(s, to, s->bytes);
    return FM_CONTINUE;
}

static int on_eight(FM_stream *stream, unsigned sender)
{
    struct bench_process *s = self;
    uint64_t v;
    (void)sender;
    FM_receive(&v, stream, 8);
    memcpy(s->to, &v, 8);
    s->got++;
    s->sum += v;
    return FM_CONTINUE;
}

static void on_error(int status, unsigned long peer, const char *sentence)
{
    (void)status;
    (void)peer;
    bench_process_fail(self, "%s", sentence);
}

static int fm_open(struct bench_process *s)
{
    self = s;
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    if (s->status)
        return -1;
    s->rank = (unsigned)FM_nodeid;
    FM_register_handler(HANDLER, on_message);
    FM_register_handler(EIGHT, on_eight);
    if (bench_process_check_size(s, FM_numnodes))
        return -1;
    return s->pair->resting ? bench_connect_fm(s, 2) : s->status;
}

static void fm_close(struct bench_process *s)
{
    (void)s;
    FM_finalize();
}

static inline int put(struct bench_process *s, unsigned handler, const void *from, size_t n)
{
    FM_stream *stream = FM_begin_message(1 - s->rank, n, handler);
    if (!stream)
        return bench_process_fail(s, "FM_begin_message returned NULL outside a handler");
    FM_send_piece(stream, from, n);
    FM_end_message(stream);
    return 0;
}

static int fm_put(struct bench_process *s, const void *from, size_t n)
{
    return put(s, HANDLER, from, n) ? -1 : s->status;
}

static int fm_poll(struct bench_process *s)
{
    FM_extract(ULONG_MAX);
    return s->status;
}

static int fm_sleep(struct bench_process *s)
{
    (void)FM_wait(-1);
    return s->status;
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
        if (s->rank == 0 && put(s, handler, s->pool, bytes))
            return -1;
        while (s->got < target)
            if (s->asleep ? fm_sleep(s) : fm_poll(s))
                return -1;
        if (s->rank == 1 && put(s, handler, s->pool, bytes))
            return -1;
        if (h)
            bench_lap(s, h, t0);
    }
    return s->status;
}

static int fm_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    return s->bytes == 8 ? ping(s, n, h, EIGHT, 8) : ping(s, n, h, HANDLER, s->bytes);
}

static int fm_stream(struct bench_process *s, uint64_t n)
{
    if (s->rank == 1) {
        while (s->got < n)
            if (fm_poll(s))
                return -1;
        return 0;
    }
    if (s->bytes == 8) {
        for (uint64_t i = 0; i < n; i++)
            if (put(s, EIGHT, &i, 8))
                return -1;
        return s->status;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(s->pool, &i, s->bytes < 8 ? s->bytes : 8);
        if (put(s, HANDLER, s->pool, s->bytes))
            return -1;
    }
    return s->status;
}

const struct bench_api bench_api_fm = {
    .name = "fm",
    .moves_when_called = true,
    .open = fm_open,
    .close = fm_close,
    .ping = fm_ping,
    .stream = fm_stream,
    .put = fm_put,
    .poll = fm_poll,
};
