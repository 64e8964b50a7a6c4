/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sent.h - the packets in flight: what each carried and when it went, found by number. Two bit maps over the same slots
 * say which are open and which were judged lost, so that acknowledgements and verdicts touch only what they change.
 *
 * Records exist only while something is in flight, and a while after. A number's slot is its low bits, so what is open
 * spans at most `size` numbers; a packet judged lost is remembered, without its notes, until its slot is used again: an
 * acknowledgement that comes after all shows that the verdict was wrong. */
#ifndef RNL_RELIABLE_SENT_H
#define RNL_RELIABLE_SENT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a packet carried, in the upper side's words. */
struct rnl_flow_note {
    uint8_t kind, lane;
    uint16_t aux;
    uint32_t from, to;
};
enum { RNL_FLOW_NOTES = 4 };

enum {                       /* flags of a record */
       RNL_SENT_CAPABLE = 1, /* went out ECN-capable */
       RNL_SENT_TIMED = 2,   /* was sent again after a timeout; it may still come */
       RNL_SENT_MOVED = 4    /* went another way than today's: nothing is to be learnt from it */
};
struct rnl_sent_packet {
    struct rnl_flow_note note[RNL_FLOW_NOTES];
    uint64_t sent_ns;
    uint32_t told;  /* the largest number that its acknowledgement block named, low half; 0 = it had none */
    uint16_t bytes; /* of the datagram */
    uint8_t notes, flags;
};
static_assert(sizeof(struct rnl_sent_packet) == 64, "one cache line");

enum { RNL_SENT_MIN = 8, RNL_SENT_MAX = 4096 };

struct rnl_sent {
    struct rnl_sent_packet *record;
    uint64_t *open, *lost; /* behind the records, in the same block */
    uint64_t next;         /* the number of the next packet */
    uint64_t low;          /* nothing below is open; == next if nothing is */
    uint64_t base;         /* nothing below is known any more */
    uint32_t size;         /* slots, a power of two; 0 = no memory held */
    uint32_t count;        /* open ones */
};

void rnl_sent_init(struct rnl_sent *sent, uint64_t first);
/* Bytes of a block of `size` slots. */
size_t rnl_sent_bytes(uint32_t size);
/* Slots that are needed to send one more: the present size, a larger one, or 0 = no more than RNL_SENT_MAX. */
RNL_INLINE uint32_t rnl_sent_want(const struct rnl_sent *sent)
{
    if (sent->size == 0)
        return RNL_SENT_MIN;
    if (sent->next - sent->low < sent->size)
        return sent->size;
    return sent->size < RNL_SENT_MAX ? sent->size * 2 : 0;
}
/* Moves into `block` of rnl_sent_bytes(size) bytes, or, if it is NULL, gives up all records (nothing may be open).
 * Returns the block that it had, or NULL. */
void *rnl_sent_move(struct rnl_sent *sent, void *block, uint32_t size);

/* The record for the packet `next`, which is counted as sent with it. rnl_sent_want must have been met. */
RNL_INLINE struct rnl_sent_packet *rnl_sent_add(struct rnl_sent *sent)
{
    uint32_t slot = (uint32_t)sent->next & (sent->size - 1);
    uint64_t bit = (uint64_t)1 << (slot % 64);
    sent->open[slot / 64] |= bit;
    sent->lost[slot / 64] &= ~bit;
    sent->next++;
    sent->count++;
    if (sent->next - sent->base > sent->size)
        sent->base = sent->next - sent->size;
    return &sent->record[slot];
}
RNL_INLINE struct rnl_sent_packet *rnl_sent_at(const struct rnl_sent *sent, uint64_t number)
{
    return &sent->record[(uint32_t)number & (sent->size - 1)];
}
/* The first open (or lost) one in [from, to), or `to`. */
uint64_t rnl_sent_find_open(const struct rnl_sent *sent, uint64_t from, uint64_t to);
uint64_t rnl_sent_find_lost(const struct rnl_sent *sent, uint64_t from, uint64_t to);
/* An open one is acked, or judged lost and remembered as such. */
void rnl_sent_acked(struct rnl_sent *sent, uint64_t number);
void rnl_sent_lose(struct rnl_sent *sent, uint64_t number);
/* A lost one is no longer of interest. */
void rnl_sent_forget(struct rnl_sent *sent, uint64_t number);

#endif
