/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sent.c - records by packet number: the slot is number % size, and the bit maps are searched a word at a time. */
#include "net/flow/sent.h"

#include <string.h>

void rnl_sent_init(struct rnl_sent *sent, uint64_t first)
{
    memset(sent, 0, sizeof *sent);
    sent->next = sent->low = sent->base = first;
}

static uint32_t words(uint32_t size)
{
    return size < 64 ? 1 : size / 64;
}

size_t rnl_sent_bytes(uint32_t size)
{
    return (size_t)size * sizeof(struct rnl_sent_packet) + 2 * (size_t)words(size) * sizeof(uint64_t);
}

static uint32_t slot_of(const struct rnl_sent *sent, uint64_t number)
{
    return (uint32_t)number & (sent->size - 1);
}

static void set(uint64_t *map, uint32_t slot)
{
    map[slot / 64] |= (uint64_t)1 << (slot % 64);
}

static void clear(uint64_t *map, uint32_t slot)
{
    map[slot / 64] &= ~((uint64_t)1 << (slot % 64));
}

static int is_set(const uint64_t *map, uint32_t slot)
{
    return map[slot / 64] >> (slot % 64) & 1;
}

static uint64_t find(const struct rnl_sent *sent, const uint64_t *map, uint64_t from, uint64_t to)
{
    uint32_t group = sent->size < 64 ? sent->size : 64;
    while (from < to) {
        uint32_t slot = slot_of(sent, from), skip = slot % group;
        uint64_t bits = map[slot / 64] >> skip;
        if (bits) {
            from += (unsigned)__builtin_ctzll(bits);
            return from < to ? from : to;
        }
        from += group - skip;
    }
    return to;
}

void *rnl_sent_move(struct rnl_sent *sent, void *block, uint32_t size)
{
    struct rnl_sent old = *sent;
    if (!block) {
        sent->record = NULL;
        sent->open = sent->lost = NULL;
        sent->size = 0;
        sent->base = sent->low = sent->next;
        return old.record;
    }
    sent->record = block;
    sent->open = (uint64_t *)(sent->record + size);
    sent->lost = sent->open + words(size);
    sent->size = size;
    memset(sent->open, 0, 2 * words(size) * sizeof(uint64_t));
    for (uint64_t n = sent->base; n < sent->next; n++) {
        uint32_t from = slot_of(&old, n), to = slot_of(sent, n);
        sent->record[to] = old.record[from];
        if (is_set(old.open, from))
            set(sent->open, to);
        if (is_set(old.lost, from))
            set(sent->lost, to);
    }
    return old.record;
}

uint64_t rnl_sent_find_open(const struct rnl_sent *sent, uint64_t from, uint64_t to)
{
    if (from < sent->low)
        from = sent->low;
    return sent->count && from < to ? find(sent, sent->open, from, to) : to;
}

uint64_t rnl_sent_find_lost(const struct rnl_sent *sent, uint64_t from, uint64_t to)
{
    if (from < sent->base)
        from = sent->base;
    return from < to ? find(sent, sent->lost, from, to) : to;
}

static void no_longer_open(struct rnl_sent *sent, uint64_t number)
{
    clear(sent->open, slot_of(sent, number));
    sent->count--;
    if (number == sent->low)
        sent->low = sent->count ? find(sent, sent->open, number + 1, sent->next) : sent->next;
}

void rnl_sent_acked(struct rnl_sent *sent, uint64_t number)
{
    no_longer_open(sent, number);
}

void rnl_sent_lose(struct rnl_sent *sent, uint64_t number)
{
    set(sent->lost, slot_of(sent, number));
    no_longer_open(sent, number);
}

void rnl_sent_forget(struct rnl_sent *sent, uint64_t number)
{
    clear(sent->lost, slot_of(sent, number));
}
