/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.c - invariants and dumps of the two private halves of a ring. Read-only: may be called between any two
 * operations by the thread that owns the half. What the peer says is never part of an invariant, except as far as it
 * has been believed.
 *
 * Invariants of a sender:
 *   1  pointers are set, the lane exists
 *   2  the ring is the lane's first one, or lane 0's big one
 *   3  lines begin inside the first ring
 *   4  the items of the open line fit, its header says just that, and no more are counted
 *   5  the peer has read from the first line on, and nothing past the last
 *   6  at most a ringful is unread
 *   7  stop is past the last line, at most a ringful past what is read
 *   8  bulk area: whole units, at most one area unread
 *   9  no more is used than is granted and not given back
 * and of a receiver:
 *   1 to 3 as above
 *   4  at most 7 items of a line are read
 *   5  the next tell is at most a quarter ring away
 *   6  the bulk bytes done with had been announced
 *   7  what is told of the bulk area is at most an eighth of it behind
 *   8  the words the peer reads are what we last told, and true
 *   9  no more came back than was asked back
 *  10  never more is granted than standing, returned and read units together */
#include "ring/ring.h"

#include <stdio.h>

static uint32_t first_ring(unsigned lane)
{
    return lane == 0 ? RNL_SMALL0 : lane == 1 ? RNL_SMALL1 : RNL_SMALL2;
}

static int mask_valid(uint32_t mask, unsigned lane)
{
    return mask + 1 == first_ring(lane) || (lane == 0 && mask + 1 == RNL_BIG);
}

static int open_line_valid(const struct rnl_tx *t)
{
    if (t->n == 0)
        return t->counted == 0;
    if (t->counted > t->n || t->n > RNL_ITEMS_MAX || t->n * RNL_HEAD_LEN(t->key) > RNL_LINE_PAYLOAD ||
        t->key & ~RNL_HEAD_KEY_MASK)
        return 0;
    rnl_head h = atomic_load_explicit(&t->ring[t->line & t->mask].head, memory_order_relaxed); /* we wrote it */
    return RNL_HEAD_SEQ(h) == (uint16_t)t->line && RNL_HEAD_N(h) == t->n && (h & RNL_HEAD_KEY_MASK) == t->key;
}

static uint64_t tx_used(const struct rnl_tx *t)
{
    return t->line - t->line0 + t->bulk_head / 64;
}

int rnl_tx_valid(const struct rnl_tx *t)
{
    if (!t->ring || !t->peer || !t->mine || t->lane >= RNL_LANES)
        return 1;
    if (!mask_valid(t->mask, t->lane))
        return 2;
    if (t->line0 >= first_ring(t->lane) || t->line < t->line0)
        return 3;
    if (!open_line_valid(t))
        return 4;
    if (t->acked < (t->line0 + 1) * 8 || t->acked > (t->line + 1) * 8)
        return 5;
    if (t->line > (t->acked >> 3) + t->mask)
        return 6;
    if (t->stop <= t->line || t->stop > (t->acked >> 3) + t->mask + 1)
        return 7;
    if (t->bulk_head & 63 || t->bulk_read > t->bulk_head || t->bulk_head - t->bulk_read > RNL_BULK_BYTES)
        return 8;
    if (t->granted < RNL_GRANT_MIN || t->gave > t->granted || tx_used(t) > t->granted - t->gave)
        return 9;
    return 0;
}

static uint64_t rx_read(const struct rnl_rx *r)
{
    return r->line - r->line0 - 1 + r->bulk_read / 64;
}

static int told_valid(const struct rnl_rx *r)
{
    const struct rnl_back *back = &r->mine->back[r->lane];
    uint64_t granted = atomic_load_explicit(&back->granted, memory_order_relaxed); /* all three: we wrote them */
    return atomic_load_explicit(&back->position, memory_order_relaxed) <= rnl_rx_position(r) &&
           atomic_load_explicit(&back->bulk_read, memory_order_relaxed) == r->told_bulk &&
           (granted == r->told_grant || (granted == 0 && r->told_grant == RNL_GRANT_MIN));
}

int rnl_rx_valid(const struct rnl_rx *r)
{
    uint64_t quarter;
    if (!r->ring || !r->mine || !r->theirs || r->lane >= RNL_LANES)
        return 1;
    if (!mask_valid(r->mask, r->lane))
        return 2;
    if (r->line0 >= first_ring(r->lane) || r->line <= r->line0)
        return 3;
    if (r->n > RNL_ITEMS_MAX)
        return 4;
    quarter = (r->mask + 1) / 4;
    if (r->tell_line > r->line + quarter || (r->tell_line <= r->line && r->standing >= 4))
        return 5;
    if (r->bulk_read > r->bulk_next)
        return 6;
    if (r->told_bulk > r->bulk_read || r->bulk_read - r->told_bulk > RNL_BULK_BYTES / 8)
        return 7;
    if (!told_valid(r))
        return 8;
    if (r->got_back > r->asked)
        return 9;
    if (r->told_grant > RNL_GRANT_MIN && r->told_grant > r->standing + r->got_back + rx_read(r))
        return 10;
    return 0;
}

void rnl_tx_dump(const struct rnl_tx *t, char *text, size_t bytes)
{
    uint64_t grant = t->granted - t->gave, used = tx_used(t);
    snprintf(text, bytes,
             "send lane %u: ring of %u, line %llu with %u items (kind %u, handler %u, %u bytes each), stop %llu; peer "
             "has read to "
             "%llu.%u; bulk %llu, read %llu; units: %llu used of %llu granted, %llu given back; check %d",
             t->lane, t->mask + 1, (unsigned long long)t->line, t->n, RNL_HEAD_KIND(t->key), RNL_HEAD_HANDLER(t->key),
             RNL_HEAD_LEN(t->key), (unsigned long long)t->stop, (unsigned long long)(t->acked >> 3),
             (unsigned)(t->acked & 7), (unsigned long long)t->bulk_head, (unsigned long long)t->bulk_read,
             (unsigned long long)used, (unsigned long long)grant, (unsigned long long)t->gave, rnl_tx_valid(t));
}

void rnl_rx_dump(const struct rnl_rx *r, char *text, size_t bytes)
{
    rnl_head h = r->ring ? atomic_load_explicit(&r->ring[r->line & r->mask].head, memory_order_relaxed) : 0;
    const char *state = RNL_HEAD_SEQ(h) != (uint16_t)r->line ? "not there yet"
                        : RNL_HEAD_N(h) > r->n               ? "waiting"
                                                             : "read";
    snprintf(text, bytes,
             "receive lane %u: ring of %u, line %llu.%u %s, next tell at %llu; bulk read %llu, told %llu, next extent "
             "from %llu; units: "
             "%llu standing, %llu withheld, %llu told, %llu of %llu asked came back; check %d",
             r->lane, r->mask + 1, (unsigned long long)r->line, r->n, state, (unsigned long long)r->tell_line,
             (unsigned long long)r->bulk_read, (unsigned long long)r->told_bulk, (unsigned long long)r->bulk_next,
             (unsigned long long)r->standing, (unsigned long long)r->withheld, (unsigned long long)r->told_grant,
             (unsigned long long)r->got_back, (unsigned long long)r->asked, rnl_rx_valid(r));
}
