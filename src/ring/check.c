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
 *   4  the items of the open line fit, its header says just that, no more are counted, and the short way is for
 *      messages of its kind or for none
 *   5  the peer has read from the first line on, and nothing past the last
 *   6  at most a ringful is unread
 *   7  stop is past the last line, at most a ringful past what is read
 *   8  bulk area: whole units, at most one area unread
 *   9  no more is used than is granted and not given back
 * and of a receiver:
 *   1 to 3 as above
 *   4  the line to begin next, and what is expected there, come after what is read
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

static int wrap_valid(uint64_t wrap, unsigned lane)
{
    return RNL_LINES(wrap) == first_ring(lane) || (lane == 0 && RNL_LINES(wrap) == RNL_BIG) ||
           (lane == 1 && RNL_LINES(wrap) == RNL_AWAY1);
}

static int open_line_valid(const struct rnl_tx *t)
{
    uint64_t n = t->pos & 7;
    if ((int32_t)(rnl_tx_items(t) - t->counted) < 0)
        return 0;
    if (t->quick_stop && (t->quick_stop != t->stop - 7 || n == 0 || RNL_HEAD_KIND(t->key) != RNL_LINE_ITEMS ||
                          t->quick_handler != RNL_HEAD_HANDLER(t->key) || t->quick_bytes != RNL_HEAD_LEN(t->key)))
        return 0;
    if (!t->quick_stop && (t->quick_handler & t->quick_bytes) != UINT64_MAX)
        return 0;
    if (t->key == RNL_HEAD_KEY_NONE || n == 0)
        return 1;
    if (n > t->more + 1 || n * RNL_HEAD_LEN(t->key) > RNL_LINE_PAYLOAD || t->key & ~RNL_HEAD_KEY_MASK)
        return 0;
    struct rnl_line *line = rnl_line_of(t->ring, t->wrap, t->pos);
    if (t->end != line->payload + n * RNL_HEAD_LEN(t->key))
        return 0;
    rnl_head h = atomic_load_explicit(&line->head, memory_order_relaxed); /* we wrote it */
    return RNL_HEAD_POS(h) == (uint16_t)t->pos && (h & RNL_HEAD_KEY_MASK) == t->key;
}

static uint64_t tx_used(const struct rnl_tx *t)
{
    return rnl_tx_line(t) - t->line0 + t->bulk_head / 64;
}

int rnl_tx_valid(const struct rnl_tx *t)
{
    if (!t->ring && t->lane == 1 && RNL_LINES(t->wrap) == RNL_AWAY1)
        return t->stop != 0;
    if (!t->ring || !t->peer || !t->mine || t->lane >= RNL_LANES)
        return 1;
    if (!wrap_valid(t->wrap, t->lane))
        return 2;
    if (t->line0 >= first_ring(t->lane) || rnl_tx_line(t) < t->line0)
        return 3;
    if (!open_line_valid(t))
        return 4;
    if (t->acked < (t->line0 + 1) * 8 || t->acked > RNL_LINE_START(t->pos))
        return 5;
    if (rnl_tx_line(t) >= (t->acked >> 3) + RNL_LINES(t->wrap))
        return 6;
    if (t->stop & 7 || t->stop / 8 <= rnl_tx_line(t) || t->stop / 8 > (t->acked >> 3) + RNL_LINES(t->wrap))
        return 7;
    if (t->bulk_head & 63 || t->bulk_read > t->bulk_head || t->bulk_head - t->bulk_read > t->bulk_mask + 1)
        return 8;
    if (t->granted < RNL_GRANT_MIN || t->gave > t->granted || tx_used(t) > t->granted - t->gave)
        return 9;
    return 0;
}

static uint64_t rx_read(const struct rnl_rx *r)
{
    return (r->pos >> 3) - r->line0 - 1 + r->bulk_read / 64;
}

static int told_valid(const struct rnl_rx *r)
{
    const struct rnl_back *back = &r->mine->back[r->lane];
    uint64_t granted = atomic_load_explicit(&back->granted, memory_order_relaxed); /* all three: we wrote them */
    return atomic_load_explicit(&back->position, memory_order_relaxed) <= r->pos &&
           atomic_load_explicit(&back->bulk_read, memory_order_relaxed) == r->told_bulk &&
           (granted == r->told_grant || (granted == 0 && r->told_grant == RNL_GRANT_MIN));
}

int rnl_rx_valid(const struct rnl_rx *r)
{
    uint64_t quarter;
    if (!r->ring && r->lane == 1 && RNL_LINES(r->wrap) == RNL_AWAY1)
        return rnl_rx_peek(r) != 0;
    if (!r->ring || !r->mine || !r->theirs || r->lane >= RNL_LANES)
        return 1;
    if (!wrap_valid(r->wrap, r->lane))
        return 2;
    if (r->line0 >= first_ring(r->lane) || r->pos >> 3 <= r->line0)
        return 3;
    if (r->next_pos != RNL_LINE_START(r->pos) || r->next != rnl_line_of(r->ring, r->wrap, r->next_pos) ||
        r->expect >> 48 != (uint16_t)(r->next_pos + 1) || r->expect & UINT16_MAX)
        return 4;
    quarter = RNL_LINES(r->wrap) / 4;
    if (r->tell_pos / 8 > (r->pos >> 3) + quarter || (r->tell_pos / 8 <= r->pos >> 3 && r->standing >= 4))
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
             t->lane, (unsigned)RNL_LINES(t->wrap), (unsigned long long)rnl_tx_line(t), (unsigned)(t->pos & 7),
             RNL_HEAD_KIND(t->key), RNL_HEAD_HANDLER(t->key), RNL_HEAD_LEN(t->key), (unsigned long long)(t->stop >> 3),
             (unsigned long long)(t->acked >> 3), (unsigned)(t->acked & 7), (unsigned long long)t->bulk_head,
             (unsigned long long)t->bulk_read, (unsigned long long)used, (unsigned long long)grant,
             (unsigned long long)t->gave, rnl_tx_valid(t));
}

void rnl_rx_dump(const struct rnl_rx *r, char *text, size_t bytes)
{
    const char *state = !r->ring ? "not set up" : rnl_rx_peek(r) ? "more is waiting" : "nothing more is there";
    snprintf(text, bytes,
             "receive lane %u: ring of %u, read to line %llu.%u, %s, next tell at %llu; bulk read %llu, told %llu, "
             "next extent "
             "from %llu; units: "
             "%llu standing, %llu withheld, %llu told, %llu of %llu asked came back; check %d",
             r->lane, (unsigned)RNL_LINES(r->wrap), (unsigned long long)(r->pos >> 3), (unsigned)(r->pos & 7), state,
             (unsigned long long)(r->tell_pos >> 3), (unsigned long long)r->bulk_read, (unsigned long long)r->told_bulk,
             (unsigned long long)r->bulk_next, (unsigned long long)r->standing, (unsigned long long)r->withheld,
             (unsigned long long)r->told_grant, (unsigned long long)r->got_back, (unsigned long long)r->asked,
             rnl_rx_valid(r));
}
