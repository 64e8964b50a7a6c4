/* SPDX-License-Identifier: BSD-3-Clause
 *
 * raw.h - the baseline: the fastest two processes can exchange small messages and bulk data through memory they share,
 * with nothing else to do. A packing ring for short messages and a byte ring for long ones, inlined into the loops that
 * measure them. It checks nothing that a peer could get wrong, sleeps never, knows one handler per number and no ranks:
 * it is what a library is compared with, not a library. Independent of src/ on purpose, so that a fault there cannot
 * hide here.
 *
 * One direction:                                                     who writes
 *   line[1024], 64 bytes each:                                       sender
 *     +-----+-----+----+---+-----+---------------------------+
 *     | seq | ack | n  | h | len | payload: n items of len   |
 *     | 16  | 16  | 8  | 8 | 16  | 56 bytes                  |
 *     +-----+-----+----+---+-----+---------------------------+
 *   credit: position read, line * 8, once per quarter ring           receiver
 *   taken: bulk bytes copied out, once per eighth of the area        receiver
 *   bulk[1 MiB]                                                      sender
 *
 * seq is the low half of the line number: a stale line never matches, nobody clears anything. ack is how far the sender
 * has read the opposite ring. A line stays open: a message like the one before is appended and n goes up, unless the
 * peer has read everything, which gets a fresh line. So a single message leaves at once and a burst packs up to seven a
 * line. */
#ifndef RNL_BENCH_RAW_H
#define RNL_BENCH_RAW_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "machine.h"

enum {
    RAW_LINES = 1024,
    RAW_PAYLOAD = 56,
    RAW_PER_LINE = 7,
    RAW_BULK = 1 << 20, /* bulk: of which `ring` bytes are in use */
    RAW_RING = 512 << 10,
    RAW_CHUNK = 32 << 10, /* bulk: largest piece announced at once */
    RAW_HANDLERS = 4
};

struct raw_line {
    _Alignas(64) _Atomic uint64_t header;
    unsigned char payload[RAW_PAYLOAD];
};

struct raw_direction {
    _Alignas(128) struct raw_line line[RAW_LINES];
    _Alignas(128) _Atomic uint64_t credit;
    _Alignas(128) _Atomic uint64_t taken;
    _Alignas(4096) unsigned char bulk[RAW_BULK];
};

struct raw_end;
typedef void raw_handler(struct raw_end *, const void *payload, uint32_t len);

/* One process's end: private. */
struct raw_end {
    struct raw_direction *out, *in;
    uint64_t out_line, peer_read; /* open line; position the peer has read, line * 8 + items */
    uint32_t out_n, out_handler, out_len;
    uint32_t in_n; /* items read of in_line */
    uint64_t in_line, credit_written;
    uint64_t ring;              /* bytes of the bulk area in use */
    uint64_t bulk_out, bulk_in; /* bytes, with what was skipped at the end of the ring */
    uint64_t peer_taken, taken_written;
    raw_handler *handler[RAW_HANDLERS];
    void (*copy_in)(void *, const void *, size_t); /* pieces of 2 KiB and more */
    void (*copy_out)(void *, const void *, size_t);
    bool fence; /* after the last send before polling */
    unsigned pauses;
    bool one_core;
    uint64_t staged[8]; /* a line that is not published yet, and its items (raw_send_corked) */
    uint32_t corked;
    uint64_t got, sum; /* of the handlers */
    unsigned char *to; /* bulk: where the message in arrival goes, and its length */
    uint64_t to_bytes;
};

/* The other process must not be sending. Both directions were zeroed. */
void raw_start(struct raw_end *, struct raw_direction *out, struct raw_direction *in);
/* Any length: in pieces through the byte ring, announced to `handler`, which takes each in with raw_take. */
void raw_send_bulk(struct raw_end *, uint32_t handler, const void *from, size_t n);
/* In the handler of a bulk message: copies the announced piece to e->to. True with the last one. */
bool raw_take(struct raw_end *, const void *announcement);
void raw_wait_credit(struct raw_end *);

static inline void raw_relax(const struct raw_end *e)
{
    if (__builtin_expect(e->one_core, 0))
        sched_yield();
    for (unsigned i = 0; i < e->pauses; i++)
        bench_pause();
}

static inline void raw_settle(const struct raw_end *e)
{
#if defined(__x86_64__)
    if (e->fence)
        __asm__ volatile("mfence" ::: "memory");
#else
    (void)e;
#endif
}

/* n <= RAW_PAYLOAD */
static inline void raw_send(struct raw_end *e, uint32_t handler, const void *from, uint32_t n)
{
    struct raw_line *line;
    uint32_t items = e->out_n;
    if (items && handler == e->out_handler && n == e->out_len && items < RAW_PER_LINE &&
        (items + 1) * n <= RAW_PAYLOAD && e->peer_read != e->out_line * 8 + items) {
        line = &e->out->line[e->out_line % RAW_LINES];
    } else {
        e->out_line++;
        while (__builtin_expect(e->out_line - (e->peer_read >> 3) >= RAW_LINES, 0))
            raw_wait_credit(e);
        line = &e->out->line[e->out_line % RAW_LINES];
        items = 0;
        e->out_handler = handler;
        e->out_len = n;
    }
    if (n == 8)
        memcpy(line->payload + items * 8, from, 8);
    else
        memcpy(line->payload + items * n, from, n);
    e->out_n = ++items;
    uint64_t ack = (uint16_t)(e->in_line * 8 + e->in_n);
    uint64_t header = (uint64_t)(uint16_t)e->out_line | ack << 16 | (uint64_t)items << 32 | (uint64_t)handler << 40 |
                      (uint64_t)n << 48;
    /* R1 pairs with A1: who sees the header sees the payload */
    atomic_store_explicit(&line->header, header, memory_order_release);
}

/* Writes the staged line past the caches, as a whole. */
void raw_uncork_line(struct raw_end *, uint32_t handler);
/* 8 bytes, which stay with the sender until the line is full or raw_uncork is called. */
static inline void raw_send_corked(struct raw_end *e, uint32_t handler, const void *from)
{
    memcpy(&e->staged[++e->corked], from, 8);
    if (e->corked == RAW_PER_LINE)
        raw_uncork_line(e, handler);
}
void raw_uncork(struct raw_end *, uint32_t handler);
/* Whether this processor has stores for that. */
bool raw_can_cork(void);

static inline void raw_leave_line(struct raw_end *e)
{
    e->in_line++;
    e->in_n = 0;
    if (e->in_line - e->credit_written >= RAW_LINES / 4) {
        e->credit_written = e->in_line;
        /* R2 pairs with A2 in raw_wait_credit: the lines may be written again */
        atomic_store_explicit(&e->in->credit, e->in_line * 8, memory_order_release);
    }
}

/* Runs the handlers of what is there, up to 64 messages; returns how many. */
static inline unsigned raw_poll(struct raw_end *e)
{
    unsigned delivered = 0;
    while (delivered < 64) {
        struct raw_line *line = &e->in->line[e->in_line % RAW_LINES];
        uint64_t header = atomic_load_explicit(&line->header, memory_order_acquire); /* A1 */
        if ((uint16_t)header != (uint16_t)e->in_line)
            break;
        uint32_t n = (header >> 32) & 7, len = (uint32_t)(header >> 48), first = e->in_n;
        if (first == n) { /* all read: has the sender moved on? */
            uint64_t next =
                atomic_load_explicit(&e->in->line[(e->in_line + 1) % RAW_LINES].header, memory_order_acquire); /* A1 */
            if ((uint16_t)next != (uint16_t)(e->in_line + 1))
                break;
            header =
                atomic_load_explicit(&line->header, memory_order_acquire); /* an append may have preceded the move */
            n = (header >> 32) & 7;
            if (first == n) {
                raw_leave_line(e);
                continue;
            }
        }
        uint16_t ahead = (uint16_t)((uint16_t)(header >> 16) - (uint16_t)e->peer_read);
        if (ahead < 0x8000) /* a position never goes back */
            e->peer_read += ahead;
        raw_handler *handler = e->handler[(header >> 40) % RAW_HANDLERS];
        e->in_n = n; /* before the handlers: a reply sent from one acknowledges this line */
        for (uint32_t i = first; i < n; i++, delivered++)
            handler(e, line->payload + i * len, len);
        if (n == RAW_PER_LINE || (n + 1) * len > RAW_PAYLOAD)
            raw_leave_line(e);
    }
    return delivered;
}

#endif
