/* SPDX-License-Identifier: BSD-3-Clause
 *
 * raw.c - see raw.h: what the baseline's ring does rarely, and its bulk half. */
#include "raw.h"

void raw_start(struct raw_end *e, struct raw_direction *out, struct raw_direction *in)
{
    memset(e, 0, sizeof *e);
    e->out = out;
    e->in = in;
    e->peer_read = 8; /* lines are numbered from 1 */
    e->in_line = e->credit_written = 1;
    e->pauses = 1;
}

void raw_wait_credit(struct raw_end *e)
{
    uint64_t credit = atomic_load_explicit(&e->out->credit, memory_order_acquire); /* A2 */
    if (credit > e->peer_read)
        e->peer_read = credit;
    else
        raw_relax(e);
}

/* The place of the next n bytes: whole cache lines, never across the end of the area. Both ranks compute it. */
static uint64_t bulk_place(uint64_t at, size_t n)
{
    uint64_t in_area = at % RAW_BULK;
    return in_area + n > RAW_BULK ? at + RAW_BULK - in_area : at;
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
        uint64_t at = bulk_place(e->bulk_out, piece), end = bulk_after(at, piece);
        while (end - e->peer_taken > RAW_BULK) {
            uint64_t taken = atomic_load_explicit(&e->out->taken, memory_order_acquire); /* A3 */
            if (taken == e->peer_taken)
                raw_relax(e);
            e->peer_taken = taken;
        }
        if (piece < 2048)
            memcpy(e->out->bulk + at % RAW_BULK, bytes + done, piece);
        else
            e->copy_in(e->out->bulk + at % RAW_BULK, bytes + done, piece);
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
    uint64_t at = bulk_place(e->bulk_in, piece);
    if (piece < 2048)
        memcpy(e->to + offset, e->in->bulk + at % RAW_BULK, piece);
    else
        e->copy_out(e->to + offset, e->in->bulk + at % RAW_BULK, piece);
    e->bulk_in = bulk_after(at, piece);
    if (e->bulk_in - e->taken_written >= RAW_BULK / 8) {
        e->taken_written = e->bulk_in;
        atomic_store_explicit(&e->in->taken, e->bulk_in, memory_order_release); /* R3 pairs with A3: room again */
    }
    return offset + piece >= e->to_bytes;
}
