/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sent.h - the packets in flight: what each carried and when it was sent, found by number. Two bit maps over the same
 * slots say which are open (neither acknowledged nor judged lost) and which were judged lost, so that acknowledgements
 * and judgements touch only what they change.
 *
 * Records exist only while something is in flight, and for a while afterwards. A number's slot is its low bits, so open
 * packets span at most `size` numbers. A packet judged lost is remembered, without its notes, until its slot is used
 * again, since a late acknowledgement shows that the judgement was wrong. */
#ifndef RNL_NET_FLOW_SENT_H
#define RNL_NET_FLOW_SENT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a packet carried; the meaning of the fields is the upper side's. */
struct rnl_flow_note {
    uint8_t kind, lane;
    uint16_t aux;
    uint32_t from, to;
};
enum { RNL_FLOW_NOTES = 4 };

enum {                       /* flags of a record */
       RNL_SENT_CAPABLE = 1, /* it was sent as ECN-capable */
       RNL_SENT_TIMED = 2,   /* its content was sent again after a timeout; it may still arrive */
       RNL_SENT_MOVED = 4    /* it was sent on another path than the present one, so nothing is learnt from it */
};
struct rnl_sent_packet {
    struct rnl_flow_note note[RNL_FLOW_NOTES];
    uint64_t sent_ns;
    uint32_t ack_largest; /* the largest number that its acknowledgement block named, low half; 0 = it had no block */
    uint16_t bytes;       /* of the datagram */
    uint8_t notes, flags;
};
static_assert(sizeof(struct rnl_sent_packet) == 64, "one cache line");

enum { RNL_SENT_MIN = 8, RNL_SENT_MAX = 4096 };

struct rnl_sent {
    struct rnl_sent_packet *record;
    uint64_t *open, *lost; /* bit maps, behind the records in the same block */
    uint64_t next;         /* the number of the next packet */
    uint64_t low;          /* the lowest open number; next if none is open */
    uint64_t base;         /* the lowest number that has a record */
    uint32_t size;         /* slots, a power of two; 0 = no memory is held */
    uint32_t count;        /* open packets */
};

void rnl_sent_init(struct rnl_sent *sent, uint64_t first);
/* Returns the bytes of a block of `size` slots. */
size_t rnl_sent_bytes(uint32_t size);
/* Returns how many slots are needed to send one more packet: the present size or a larger one; 0 = all RNL_SENT_MAX
 * slots are in use. */
RNL_INLINE uint32_t rnl_sent_reserve(const struct rnl_sent *sent)
{
    if (sent->size == 0)
        return RNL_SENT_MIN;
    if (sent->next - sent->low < sent->size)
        return sent->size;
    return sent->size < RNL_SENT_MAX ? sent->size * 2 : 0;
}
/* Moves the records into `block`, which has rnl_sent_bytes(size) bytes; if it is NULL, gives up all records, none of
 * which may be open. Returns the former block, or NULL, which is the caller's again. */
void *rnl_sent_move(struct rnl_sent *sent, void *block, uint32_t size);

/* Adds the packet `next` as an open one and returns its record, to be filled in. rnl_sent_reserve must return the
 * present size. */
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
/* Returns the first open (or lost) number in [from, to), or `to`. */
uint64_t rnl_sent_find_open(const struct rnl_sent *sent, uint64_t from, uint64_t to);
uint64_t rnl_sent_find_lost(const struct rnl_sent *sent, uint64_t from, uint64_t to);
/* Marks an open packet as acknowledged; as lost. */
void rnl_sent_acked(struct rnl_sent *sent, uint64_t number);
void rnl_sent_lose(struct rnl_sent *sent, uint64_t number);
/* Forgets that a packet was judged lost. */
void rnl_sent_forget(struct rnl_sent *sent, uint64_t number);

#endif
