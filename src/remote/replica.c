/* SPDX-License-Identifier: BSD-3-Clause
 *
 * replica.c - a replica begins, is kept small while its connection hibernates, and begins again. */
#include "remote/replica.h"

static_assert(sizeof(struct rnl_credit_words) == 8 * 3 &&
                  offsetof(struct rnl_credit_words, granted) == 8 * RNL_CREDIT_GRANTED &&
                  offsetof(struct rnl_credit_words, bulk_read) == 8 * RNL_CREDIT_BULK_READ,
              "the first stretch");
static_assert(
    offsetof(struct rnl_control_page, credit_returned) == offsetof(struct rnl_control_page, credit_reclaim) + 8 &&
        offsetof(struct rnl_control_page, credit_wanted) == offsetof(struct rnl_control_page, credit_reclaim) + 16 &&
        offsetof(struct rnl_control_page, credit_max) == offsetof(struct rnl_control_page, credit_reclaim) + 24,
    "the second");

void rnl_replica_init(struct rnl_replica *m, struct rnl_channel *channel)
{
    memset(m, 0, sizeof *m);
    m->channel = channel;
    m->grow_sent = m->grow_came = UINT64_MAX;
    m->watermark = channel->tx[0].acked;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        m->out[lane].sent = channel->tx[lane].cell0 << 3;
        m->in[lane].shown = channel->rx[lane].cell0 << 3;
    }
}

void rnl_replica_activate(struct rnl_replica *m, struct rnl_channel *channel, const struct rnl_replica_remainder *rest)
{
    memset(m, 0, sizeof *m);
    m->channel = channel;
    /* All cells to come are in the rings that are in use now. */
    m->grow_sent = channel->big_tx ? (channel->tx[0].pos - 1) >> 3 : UINT64_MAX;
    m->grow_came = channel->big_rx ? (channel->rx[0].pos >> 3) - 1 : UINT64_MAX;
    m->grow_known = channel->big_tx;
    m->watermark = channel->tx[0].acked; /* everything was read and replied to */
    m->wants_from = rest->wants_from;
    m->most_from = rest->most_from;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        const struct rnl_tx *t = &channel->tx[lane];
        m->out[lane].sent = t->pos & 7 ? t->pos : rnl_tx_cell(t) << 3;
        m->out[lane].bulk_sent = t->bulk_head;
        m->in[lane].shown = rest->shown[lane];
        m->in[lane].highest = rest->shown[lane] >> 3;
        m->in[lane].floor = channel->rx[lane].bulk_next;
    }
    for (unsigned i = 0; i < RNL_CREDIT_WORDS; i++)
        m->advertised[i] = rnl_replica_word(m, i);
}

bool rnl_replica_can_hibernate(const struct rnl_replica *m, struct rnl_replica_remainder *rest)
{
    if (rnl_replica_pending(m) || m->claim[0].read || m->watermark < m->channel->tx[0].acked)
        return false;
    for (unsigned lane = 0; lane < RNL_LANES; lane++) {
        struct rnl_tx *t = &m->channel->tx[lane];
        const struct rnl_rx *r = &m->channel->rx[lane];
        const struct rnl_replica_in *in = &m->in[lane];
        /* The peer has read everything; what we had to read is read and advertised; nothing waits; a cell and its grant
         * are free. */
        if (rnl_tx_cell(t) != t->cell0 && (rnl_tx_refresh(t, NULL, NULL) < 0 || t->acked < t->pos))
            return false;
        if ((t->ring && RNL_CELL_START(t->pos) >= t->stop) || t->wanted)
            return false;
        if (rnl_rx_peek(r) || rnl_rx_unadvertised(r) || r->withheld || in->highest > in->shown >> 3 || in->count)
            return false;
        rest->shown[lane] = in->shown;
    }
    rest->wants_from = m->wants_from;
    rest->most_from = m->most_from;
    return true;
}
