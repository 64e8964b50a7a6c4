/* SPDX-License-Identifier: BSD-3-Clause
 *
 * api_sockets.c - bare sockets under measurement, as two more interfaces. UDP is the baseline of what goes over
 * datagrams: one datagram a message for latency; short messages packed into runs of full datagrams, which the kernel
 * cuts and merges, for rate; and for bandwidth the same runs straight from where the program has its bytes to where it
 * wants them. No headers, no protection, nothing sent again. TCP is what a program would use that wants order and
 * safety, and no more. */
#include "sockets.h"

#include <stdlib.h>

struct raw_sockets {
    struct sockets k;
    const unsigned char *pending; /* put, and not sent: what follows it in memory may join it */
    size_t pending_bytes;
    unsigned char *packed; /* stream: a run in the making, or one that came */
    size_t used;
    uint64_t partial; /* stream: bytes of a message that is not whole yet */
};
static struct raw_sockets raw;

enum { PACKED = 1 << 16 };
/* Bytes in flight: what a receive buffer holds in any case, and what stays in the second-level cache. */
static const uint64_t windows[] = {1 << 20, 256 << 10};

static int open_kind(struct bench_process *s, bool tcp)
{
    s->own = &raw;
    raw.packed = malloc(PACKED);
    return raw.packed ? sockets_open(s, &raw.k, tcp) : bench_process_fail(s, "no memory");
}

static int open_udp(struct bench_process *s)
{
    return open_kind(s, false);
}

static int open_tcp(struct bench_process *s)
{
    return open_kind(s, true);
}

static void close_kind(struct bench_process *s)
{
    (void)s;
    sockets_close(&raw.k);
    free(raw.packed);
}

static int prepare(struct bench_process *s, const struct bench_order *o)
{
    raw.pending_bytes = raw.used = 0;
    raw.partial = 0;
    return sockets_reset(s, &raw.k, windows[o->variant % (sizeof windows / sizeof *windows)]);
}

static int send_all(struct bench_process *s, const unsigned char *from, size_t n)
{
    while (n > 0) {
        ssize_t went = sockets_send(s, &raw.k, from, n);
        if (went < 0)
            return -1;
        from += went;
        n -= (size_t)went;
    }
    return 0;
}

static int receive_all(struct bench_process *s, unsigned char *to, size_t n)
{
    while (n > 0) {
        ssize_t got = sockets_receive(s, &raw.k, to, n);
        if (got < 0)
            return -1;
        to += got;
        n -= (size_t)got;
    }
    return 0;
}

/* A short message is one datagram, a longer one runs of them. */
static int ping(struct bench_process *s, uint64_t n, struct rnl_hist *h)
{
    bool single = s->bytes <= raw.k.segment || s->asleep;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t t0 = h ? bench_ticks() : 0;
        for (unsigned turn = 0; turn < 2; turn++) {
            int e = turn == s->rank
                        ? single ? sockets_give(s, &raw.k, s->pool, s->bytes) : send_all(s, s->pool, s->bytes)
                    : single ? sockets_take(s, &raw.k, s->to, s->bytes, s->asleep)
                             : receive_all(s, s->to, s->bytes);
            if (e)
                return -1;
        }
        s->got++;
        if (h)
            bench_lap(s, h, t0);
    }
    return 0;
}

static int send_stream(struct bench_process *s, uint64_t n)
{
    size_t full = raw.k.tcp ? SOCKETS_RUN : raw.k.run;
    raw.used = 0;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(s->pool, &i, s->bytes < 8 ? s->bytes : 8);
        for (size_t at = 0; at < s->bytes;) {
            size_t piece = s->bytes - at < full - raw.used ? s->bytes - at : full - raw.used;
            if (piece == 8)
                memcpy(raw.packed + raw.used, s->pool + at, 8);
            else
                memcpy(raw.packed + raw.used, s->pool + at, piece);
            raw.used += piece;
            at += piece;
            if (raw.used == full) {
                if (send_all(s, raw.packed, raw.used))
                    return -1;
                raw.used = 0;
            }
        }
    }
    return send_all(s, raw.packed, raw.used);
}

/* Copies each message to its place, and counts it once it is whole. */
static void unpack(struct bench_process *s, const unsigned char *at, size_t n)
{
    while (n > 0) {
        unsigned char *to = bench_slot(s);
        size_t piece = s->bytes - raw.partial < n ? s->bytes - raw.partial : n;
        if (piece == 8)
            memcpy(to + raw.partial, at, 8);
        else
            memcpy(to + raw.partial, at, piece);
        at += piece;
        n -= piece;
        raw.partial += piece;
        if (raw.partial == s->bytes) {
            raw.partial = 0;
            bench_count(s, to, s->bytes);
        }
    }
}

static int stream(struct bench_process *s, uint64_t n)
{
    if (s->rank == 0)
        return send_stream(s, n);
    while (s->got < n) {
        ssize_t got = sockets_receive(s, &raw.k, raw.packed, PACKED);
        if (got < 0)
            return -1;
        unpack(s, raw.packed, (size_t)got);
    }
    return 0;
}

/* Sends the full runs of what is pending; all of it if `last`. */
static int push(struct bench_process *s, bool last)
{
    while (raw.pending_bytes >= (last ? 1 : raw.k.run)) {
        ssize_t went = sockets_send(s, &raw.k, raw.pending, raw.pending_bytes);
        if (went < 0)
            return -1;
        raw.pending += went;
        raw.pending_bytes -= (size_t)went;
    }
    return 0;
}

static int put(struct bench_process *s, const void *from, size_t n)
{
    if (raw.pending_bytes && raw.pending + raw.pending_bytes != from && push(s, true))
        return -1;
    if (raw.pending_bytes == 0)
        raw.pending = from;
    raw.pending_bytes += n;
    return push(s, false);
}

/* The sender waits until all is taken in: what it has put has to go. A window's slots lie behind one another. */
static int look(struct bench_process *s)
{
    if (s->rank == 0)
        return push(s, true);
    uint64_t window = s->slots * s->bytes, at = raw.k.taken % window;
    ssize_t got = sockets_receive(s, &raw.k, s->to + at, window - at);
    if (got < 0)
        return -1;
    s->got = raw.k.taken / s->bytes;
    return 0;
}

/* The baseline of AM-2's requests: a datagram each, and one each to answer it, so many unanswered. */
static int flood(struct bench_process *s, const struct bench_order *o, struct bench_answer *a)
{
    uint64_t sent = 0, got = 0, word = 0, t0 = bench_now_ns();
    if (o->test != BENCH_AM_RATE)
        return bench_process_fail(s, "an order names test %u, which has no baseline here", o->test);
    while (got < o->count) {
        while (s->rank == 0 && sent < o->count && sent - got < o->variant) {
            if (sockets_give(s, &raw.k, &sent, sizeof sent))
                return -1;
            sent++;
        }
        if (sockets_take(s, &raw.k, &word, sizeof word, false) ||
            (s->rank == 1 && sockets_give(s, &raw.k, &word, sizeof word)))
            return -1;
        got++;
    }
    a->value = (double)o->count * 1e3 / (double)(bench_now_ns() - t0);
    return 0;
}

const struct bench_api bench_api_udp = {
    .name = "raw",
    .open = open_udp,
    .close = close_kind,
    .prepare = prepare,
    .ping = ping,
    .stream = stream,
    .put = put,
    .poll = look,
    .run = flood,
};

const struct bench_api bench_api_tcp = {
    .name = "tcp",
    .open = open_tcp,
    .close = close_kind,
    .prepare = prepare,
    .ping = ping,
    .stream = stream,
    .put = put,
    .poll = look,
};
