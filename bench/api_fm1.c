/* SPDX-License-Identifier: BSD-3-Clause
 *
 * api_fm1.c - FM 1.1 under measurement: FM_send_4 for 16 bytes and fewer, FM_send above; the handler is given the whole
 * message and copies it to where the program wants it, which is what FM 1.1 programs have to do. */
#include "process.h"

#include "runnel/fm1.h"

enum { HANDLER = 1, HANDLER_4 = 2 };

static struct bench_process *self; /* FM handlers have no argument for it */

static void on_message(void *buffer, unsigned size)
{
    struct bench_process *s = self;
    unsigned char *to = bench_slot(s);
    if (size == s->bytes)
        memcpy(to, buffer, size);
    bench_count(s, buffer, size);
}

/* FM_send_4 always carries 16 bytes; the message is their beginning. */
static void on_words(void *buffer, unsigned size)
{
    struct bench_process *s = self;
    if (size == 16 && s->bytes <= 16)
        memcpy(bench_slot(s), buffer, 16 <= s->bytes ? 16 : s->bytes);
    bench_count(s, buffer, size);
}

static void on_error(int status, unsigned long peer, const char *sentence)
{
    (void)status;
    (void)peer;
    bench_process_fail(self, "%s", sentence);
}

static int fm1_open(struct bench_process *s)
{
    self = s;
    FM_set_parameter(FM_ERROR_HANDLER, on_error);
    FM_initialize();
    if (s->status)
        return -1;
    s->rank = (unsigned)FM_nodeid;
    FM_register_handler(HANDLER, on_message);
    FM_register_handler(HANDLER_4, on_words);
    return bench_process_check_size(s, FM_numnodes) ? -1 : s->status;
}

static void fm1_close(struct bench_process *s)
{
    (void)s;
    FM_finalize();
}

static inline void put(struct bench_process *s, const void *from, size_t n)
{
    if (n > 16) {
        FM_send(1 - s->rank, HANDLER, from, n);
        return;
    }
    int word[4] = {0};
    memcpy(word, from, n);
    FM_send_4(1 - s->rank, HANDLER_4, word[0], word[1], word[2], word[3]);
}

static int fm1_put(struct bench_process *s, const void *from, size_t n)
{
    put(s, from, n);
    return s->status;
}

static int fm1_poll(struct bench_process *s)
{
    FM_extract();
    return s->status;
}

static int fm1_ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    uint64_t target = s->due;
    s->due += n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        target++;
        if (s->rank == 0)
            put(s, s->pool, s->bytes);
        while (s->got < target)
            if (fm1_poll(s))
                return -1;
        if (s->rank == 1)
            put(s, s->pool, s->bytes);
        if (h)
            bench_lap(s, h, t0);
    }
    return s->status;
}

static int fm1_stream(struct bench_process *s, uint64_t n)
{
    if (s->rank == 1) {
        while (s->got < n)
            if (fm1_poll(s))
                return -1;
        return 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(s->pool, &i, s->bytes < 8 ? s->bytes : 8);
        put(s, s->pool, s->bytes);
    }
    return s->status;
}

const struct bench_api bench_api_fm1 = {
    .name = "fm1",
    .moves_when_called = true,
    .most_bytes = FM1_MAX,
    .open = fm1_open,
    .close = fm1_close,
    .ping = fm1_ping,
    .stream = fm1_stream,
    .put = fm1_put,
    .poll = fm1_poll,
};
