/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check.c - invariants and dumps of the two private halves of a ring. The functions only read, and the thread that owns
 * a half may call them between any two operations. What the peer says is part of no invariant, except as far as it has
 * been believed.
 *
 * Invariants of a sender:
 *   1  pointers are set, and the lane exists
 *   2  the ring is the lane's first one, or the big one of lane 0
 *   3  the first cell lies inside the first ring
 *   4  the records of the open cell fit, its header is as the private state says, no more records are counted than
 *      there are, and the fast path is on for messages of its kind or off
 *   5  the peer has read from the first cell on, and nothing past the last
 *   6  at most a ring's worth of cells is unread
 *   7  stop is past the last cell, and at most a ring past what is read
 *   8  the bulk area is used in whole units, and at most one area is unread
 *   9  no more units are used than are granted and not returned
 * Invariants of a receiver:
 *   1 to 3 as above
 *   4  the next cell, and what is expected there, come after what is read
 *   5  the next advertisement is at most a quarter ring away
 *   6  the bulk bytes done with had been announced
 *   7  the advertised bulk position is at most an eighth of the area behind
 *   8  the credit words that the peer reads are those last advertised, and true
 *   9  no more units came back than were reclaimed
 *  10  no more is granted than standing, returned and read units together */
#include "ring/ring.h"

#include <stdio.h>

static uint32_t first_ring(unsigned lane)
{
    return lane == 0 ? RNL_CELLS_LANE0 : RNL_CELLS_LANE1;
}

static bool wrap_valid(uint64_t wrap, unsigned lane)
{
    return RNL_CELLS(wrap) == first_ring(lane) || (lane == 0 && RNL_CELLS(wrap) == RNL_CELLS_BIG) ||
           (lane == 1 && RNL_CELLS(wrap) == RNL_CELLS_LANE1_REMOTE);
}

static bool open_cell_valid(const struct rnl_tx *t)
{
    uint64_t n = t->pos & 7;
    if ((int32_t)(rnl_tx_records(t) - t->counted) < 0)
        return false;
    if (t->fast_stop && (t->fast_stop != t->stop - 7 || n == 0 || RNL_HEADER_KIND(t->key) != RNL_CELL_RECORDS ||
                         t->fast_handler != RNL_HEADER_HANDLER(t->key) || t->fast_bytes != RNL_HEADER_LEN(t->key)))
        return false;
    if (!t->fast_stop && (t->fast_handler & t->fast_bytes) != UINT64_MAX)
        return false;
    if (t->key == RNL_HEADER_KEY_NONE || n == 0)
        return true;
    if (n > t->more + 1 || n * RNL_HEADER_LEN(t->key) > RNL_CELL_PAYLOAD || t->key & ~RNL_HEADER_KEY_MASK)
        return false;
    struct rnl_cell *cell = rnl_cell_of(t->ring, t->wrap, t->pos);
    if (t->end != cell->payload + n * RNL_HEADER_LEN(t->key))
        return false;
    rnl_header h = atomic_load_explicit(&cell->header, memory_order_relaxed); /* written by this process */
    return RNL_HEADER_POS(h) == (uint16_t)t->pos && (h & RNL_HEADER_KEY_MASK) == t->key;
}

static uint64_t tx_used(const struct rnl_tx *t)
{
    return rnl_tx_cell(t) - t->cell0 + t->bulk_head / 64;
}

int rnl_tx_valid(const struct rnl_tx *t)
{
    if (!t->ring && t->lane == 1 && RNL_CELLS(t->wrap) == RNL_CELLS_LANE1_REMOTE)
        return t->stop != 0;
    if (!t->ring || !t->peer || !t->mine || t->lane >= RNL_LANES)
        return 1;
    if (!wrap_valid(t->wrap, t->lane))
        return 2;
    if (t->cell0 >= first_ring(t->lane) || rnl_tx_cell(t) < t->cell0)
        return 3;
    if (!open_cell_valid(t))
        return 4;
    if (t->acked < (t->cell0 + 1) * 8 || t->acked > RNL_CELL_START(t->pos))
        return 5;
    if (rnl_tx_cell(t) >= (t->acked >> 3) + RNL_CELLS(t->wrap))
        return 6;
    if (t->stop & 7 || t->stop / 8 <= rnl_tx_cell(t) || t->stop / 8 > (t->acked >> 3) + RNL_CELLS(t->wrap))
        return 7;
    if (t->bulk_head & 63 || t->bulk_read > t->bulk_head || t->bulk_head - t->bulk_read > t->bulk_mask + 1)
        return 8;
    if (t->granted < RNL_GRANT_MIN || t->credit_returned > t->granted || tx_used(t) > t->granted - t->credit_returned)
        return 9;
    return 0;
}

static uint64_t rx_read(const struct rnl_rx *r)
{
    return (r->pos >> 3) - r->cell0 - 1 + r->bulk_read / 64;
}

static bool advertised_valid(const struct rnl_rx *r)
{
    const struct rnl_credit_words *words = &r->mine->credit[r->lane];
    uint64_t granted = atomic_load_explicit(&words->granted, memory_order_relaxed); /* own words, all three */
    return atomic_load_explicit(&words->position, memory_order_relaxed) <= r->pos &&
           atomic_load_explicit(&words->bulk_read, memory_order_relaxed) == r->advertised_bulk &&
           (granted == r->advertised_grant || (granted == 0 && r->advertised_grant == RNL_GRANT_MIN));
}

int rnl_rx_valid(const struct rnl_rx *r)
{
    uint64_t quarter;
    if (!r->ring && r->lane == 1 && RNL_CELLS(r->wrap) == RNL_CELLS_LANE1_REMOTE)
        return rnl_rx_peek(r) != 0;
    if (!r->ring || !r->mine || !r->theirs || r->lane >= RNL_LANES)
        return 1;
    if (!wrap_valid(r->wrap, r->lane))
        return 2;
    if (r->cell0 >= first_ring(r->lane) || r->pos >> 3 <= r->cell0)
        return 3;
    if (r->next_pos != RNL_CELL_START(r->pos) || r->next != rnl_cell_of(r->ring, r->wrap, r->next_pos) ||
        r->expect >> 48 != (uint16_t)(r->next_pos + 1) || r->expect & UINT16_MAX)
        return 4;
    quarter = RNL_CELLS(r->wrap) / 4;
    if (r->advertise_pos / 8 > (r->pos >> 3) + quarter ||
        (r->advertise_pos / 8 <= r->pos >> 3 && r->outstanding_max >= 4))
        return 5;
    if (r->bulk_read > r->bulk_next)
        return 6;
    if (r->advertised_bulk > r->bulk_read || r->bulk_read - r->advertised_bulk > RNL_BULK_BYTES / 8)
        return 7;
    if (!advertised_valid(r))
        return 8;
    if (r->reclaimed > r->reclaim_requested)
        return 9;
    if (r->advertised_grant > RNL_GRANT_MIN && r->advertised_grant > r->outstanding_max + r->reclaimed + rx_read(r))
        return 10;
    return 0;
}

void rnl_tx_dump(const struct rnl_tx *t, char *text, size_t bytes)
{
    uint64_t grant = t->granted - t->credit_returned, used = tx_used(t);
    snprintf(
        text, bytes,
        "send lane %u: ring of %u, cell %llu with %u records (kind %u, handler %u, %u bytes each), stop %llu; "
        "peer has read to %llu.%u; bulk %llu, read %llu; units: %llu used of %llu granted, %llu given back; check %d",
        t->lane, (unsigned)RNL_CELLS(t->wrap), (unsigned long long)rnl_tx_cell(t), (unsigned)(t->pos & 7),
        RNL_HEADER_KIND(t->key), RNL_HEADER_HANDLER(t->key), RNL_HEADER_LEN(t->key), (unsigned long long)(t->stop >> 3),
        (unsigned long long)(t->acked >> 3), (unsigned)(t->acked & 7), (unsigned long long)t->bulk_head,
        (unsigned long long)t->bulk_read, (unsigned long long)used, (unsigned long long)grant,
        (unsigned long long)t->credit_returned, rnl_tx_valid(t));
}

void rnl_rx_dump(const struct rnl_rx *r, char *text, size_t bytes)
{
    const char *state = !r->ring ? "not set up" : rnl_rx_peek(r) ? "more is waiting" : "nothing more is there";
    snprintf(text, bytes,
             "receive lane %u: ring of %u, read to cell %llu.%u, %s, next advertisement at %llu; bulk read %llu, "
             "advertised %llu, next extent from %llu; units: %llu standing, %llu withheld, %llu advertised, %llu of "
             "%llu reclaimed came back; check %d",
             r->lane, (unsigned)RNL_CELLS(r->wrap), (unsigned long long)(r->pos >> 3), (unsigned)(r->pos & 7), state,
             (unsigned long long)(r->advertise_pos >> 3), (unsigned long long)r->bulk_read,
             (unsigned long long)r->advertised_bulk, (unsigned long long)r->bulk_next,
             (unsigned long long)r->outstanding_max, (unsigned long long)r->withheld,
             (unsigned long long)r->advertised_grant, (unsigned long long)r->reclaimed,
             (unsigned long long)r->reclaim_requested, rnl_rx_valid(r));
}
