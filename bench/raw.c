/* SPDX-License-Identifier: BSD-3-Clause
 *
 * raw.c - see raw.h: what the baseline's ring does rarely, and its bulk half. */
#include "raw.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

void raw_start(struct raw_end *e, struct raw_direction *out, struct raw_direction *in)
{
    memset(e, 0, sizeof *e);
    e->out = out;
    e->in = in;
    e->peer_read = 8; /* lines are numbered from 1 */
    e->in_line = e->credit_written = 1;
    e->pauses = 1;
    e->ring = RAW_RING;
}

void raw_wait_credit(struct raw_end *e)
{
    uint64_t credit = atomic_load_explicit(&e->out->credit, memory_order_acquire); /* A2 */
    if (credit > e->peer_read)
        e->peer_read = credit;
    else
        raw_relax(e);
}

#if defined(__x86_64__)
bool raw_can_cork(void)
{
    return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx512f"))) static void write_past_avx512(struct raw_line *line, const uint64_t *from)
{
    _mm512_stream_si512((void *)line, _mm512_loadu_si512(from));
}

__attribute__((target("avx2"))) static void write_past_avx2(struct raw_line *line, const uint64_t *from)
{
    const __m256i *f = (const __m256i *)(const void *)from;
    __m256i *t = (__m256i *)(void *)line;
    /* The half with the header last: it may become visible by itself. */
    _mm256_stream_si256(t + 1, _mm256_loadu_si256(f + 1));
    _mm_sfence();
    _mm256_stream_si256(t, _mm256_loadu_si256(f));
}

static void write_past(struct raw_line *line, const uint64_t *from)
{
    if (__builtin_cpu_supports("avx512f"))
        write_past_avx512(line, from);
    else
        write_past_avx2(line, from);
}

static void settle_past(void)
{
    _mm_sfence();
}
#else
bool raw_can_cork(void)
{
    return false;
}

static void write_past(struct raw_line *line, const uint64_t *from)
{
    memcpy(line->payload, from + 1, RAW_PAYLOAD);
    atomic_store_explicit(&line->header, from[0], memory_order_release); /* R1 */
}

static void settle_past(void) {}
#endif

void raw_uncork_line(struct raw_end *e, uint32_t handler)
{
    if (e->corked == 0)
        return;
    e->out_line++;
    e->out_n = 0; /* nothing is appended to it */
    while (e->out_line - (e->peer_read >> 3) >= RAW_LINES)
        raw_wait_credit(e);
    uint64_t ack = (uint16_t)(e->in_line * 8 + e->in_n);
    e->staged[0] = (uint64_t)(uint16_t)e->out_line | ack << 16 | (uint64_t)e->corked << 32 | (uint64_t)handler << 40 |
                   (uint64_t)8 << 48;
    write_past(&e->out->line[e->out_line % RAW_LINES], e->staged);
    e->corked = 0;
}

void raw_uncork(struct raw_end *e, uint32_t handler)
{
    raw_uncork_line(e, handler);
    settle_past();
}

/* The place of the next n bytes: whole cache lines, never across the end of the ring. Both ranks compute it. */
static uint64_t bulk_place(const struct raw_end *e, uint64_t at, size_t n)
{
    uint64_t in_ring = at % e->ring;
    return in_ring + n > e->ring ? at + e->ring - in_ring : at;
}

static uint64_t bulk_after(uint64_t at, size_t n)
{
    return at + ((n + 63) & ~(uint64_t)63);
}

void raw_send_bulk(struct raw_end *e, uint32_t handler, const void *from, size_t n)
{
    const unsigned char *bytes = from;
    /* Up to 64 KiB half-size pieces: the receiver starts earlier, which a single message gains from. */
    size_t chunk = n <= 64u << 10 ? RAW_CHUNK / 2 : RAW_CHUNK;
    for (size_t done = 0; done < n || n == 0; done += chunk) {
        size_t piece = n - done < chunk ? n - done : chunk;
        uint64_t at = bulk_place(e, e->bulk_out, piece), end = bulk_after(at, piece);
        while (end - e->peer_taken > e->ring) {
            uint64_t taken = atomic_load_explicit(&e->out->taken, memory_order_acquire); /* A3 */
            if (taken == e->peer_taken)
                raw_relax(e);
            e->peer_taken = taken;
        }
        if (piece < 2048)
            memcpy(e->out->bulk + at % e->ring, bytes + done, piece);
        else
            e->copy_in(e->out->bulk + at % e->ring, bytes + done, piece);
        e->bulk_out = end;
        uint64_t announcement = (uint64_t)piece << 32 | (uint32_t)done;
        raw_send(e, handler, &announcement, 8); /* R1 orders the copy too */
        if (n == 0)
            break;
    }
}

bool raw_take(struct raw_end *e, const void *announcement)
{
    uint64_t a;
    memcpy(&a, announcement, 8);
    size_t piece = a >> 32, offset = (uint32_t)a;
    uint64_t at = bulk_place(e, e->bulk_in, piece);
    if (piece < 2048)
        memcpy(e->to + offset, e->in->bulk + at % e->ring, piece);
    else
        e->copy_out(e->to + offset, e->in->bulk + at % e->ring, piece);
    e->bulk_in = bulk_after(at, piece);
    if (e->bulk_in - e->taken_written >= e->ring / 8) {
        e->taken_written = e->bulk_in;
        atomic_store_explicit(&e->in->taken, e->bulk_in, memory_order_release); /* R3 pairs with A3: room again */
    }
    return offset + piece >= e->to_bytes;
}
