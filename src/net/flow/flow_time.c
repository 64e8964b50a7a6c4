/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_time.c - what follows from acknowledgements and from time: losses, timeouts, silence, the next deadline, and the
 * end of a flow. */
#include <stddef.h>

#include "base/bug.h"
#include "base/sometimes.h"
#include "net/flow/flow_internal.h"

uint64_t rnl_flow_pto_ns(const struct rnl_flow *f)
{
    uint64_t pto = f->config->first_pto_ns;
    if (f->rtt.smoothed_ns)
        pto = rnl_rtt_pto_ns(&f->rtt, f->config->granularity_ns) + f->peer_ack_delay_ns;
    else if (f->path->base_ns)
        pto = 5 * f->path->base_ns + f->peer_ack_delay_ns;
    return pto > f->config->min_pto_ns ? pto : f->config->min_pto_ns;
}

/* Flows that lost packets together must not send them again together: from the second timeout on each flow waits up to
 * half as long again, by a hash of its own. */
static uint64_t apart(const struct rnl_flow *f, uint64_t wait)
{
    uint32_t own = (f->connection ^ (uint32_t)f->sent.next << 20) * 2654435761u;
    return f->timeouts ? wait + (wait / 2 * (own >> 24) >> 8) : wait;
}

uint64_t rnl_flow_timeout_at(const struct rnl_flow *f)
{
    unsigned doubled = f->timeouts < 20 ? f->timeouts : 20;
    return f->last_sent_ns + rnl_flow_min(apart(f, rnl_flow_pto_ns(f) << doubled), f->config->max_pto_ns);
}

static struct rnl_congest_news news_of(const struct rnl_flow *f, uint64_t now_ns)
{
    return (struct rnl_congest_news){
        .now_ns = now_ns,
        .number = f->loss.largest,
        .next = f->sent.next,
        .base_ns = (uint32_t)rnl_flow_min(f->path->base_ns, RNL_RTT_MAX_NS),
        .smoothed_ns = f->rtt.smoothed_ns,
        .packet = rnl_flow_packet(f),
    };
}

/* Judges open packets lost that are too old, or too far below the largest acknowledged one. */
static void find_losses(struct rnl_flow *f, uint64_t now_ns)
{
    uint64_t wait = rnl_loss_wait_ns(&f->loss, &f->rtt, f->config->granularity_ns);
    uint64_t n = f->sent.low, first = 0, last = 0, began = 0, ended = 0;
    uint32_t bytes = 0, packets = 0, capable = 0;
    f->loss.verdict_ns = UINT64_MAX;
    for (; (n = rnl_sent_find_open(&f->sent, n, f->loss.largest)) < f->loss.largest; n++) {
        struct rnl_sent_packet *record = rnl_sent_at(&f->sent, n);
        if (f->loss.largest - n < f->loss.packets && record->sent_ns + wait > now_ns) {
            f->loss.verdict_ns = record->sent_ns + wait;
            break;
        }
        if (packets++ == 0) {
            first = n;
            began = record->sent_ns;
        }
        last = n;
        ended = record->sent_ns;
        bytes += (uint32_t)rnl_flow_cost(f, record->bytes);
        capable += record->flags & RNL_SENT_CAPABLE;
        rnl_sent_lose(&f->sent, n);
        rnl_flow_landed(f, record);
        f->count->mtu_fell += (unsigned)rnl_mtu_lost(&f->mtu, n, record->bytes, now_ns);
        RNL_BUG(swarm_lost_records_dropped) ? (void)(record->notes = 0) : rnl_flow_free_records(f, record);
    }
    if (packets == 0)
        return;
    f->lost_below = last + 1;
    f->count->lost += packets;
    f->went.lost += packets;
    rnl_ecn_lost(&f->ecn, capable);
    struct rnl_congest_news news = news_of(f, now_ns);
    rnl_congest_lost(&f->congest, &f->config->congest, &news, first, last, bytes, packets);
    RNL_SOMETIMES(ended - began > RNL_FLOW_COLLAPSE * rnl_flow_pto_ns(f) && first > f->judged,
                  "nothing came through for long: the window collapses");
    if (ended - began > RNL_FLOW_COLLAPSE * rnl_flow_pto_ns(f) && first > f->judged)
        rnl_congest_collapse(&f->congest, &f->config->congest, &news);
}

enum { ALONE_PACKETS = 2 /* a flow whose window is smaller makes no queue */ };

void rnl_flow_judge(struct rnl_flow *f, uint64_t now_ns)
{
    f->judge = 0;
    struct rnl_congest_news news = news_of(f, now_ns);
    if (f->news_rtt_ns) {
        rnl_rtt_sample(&f->rtt, f->news_rtt_ns, f->news_hold_ns);
        /* The hold time is the peer's claim. The round trip that all flows of the path share must not depend on it. */
        if (f->news_hold_ns < 2 * RNL_ACK_HOLD_UNIT_NS || f->path->base_ns == 0) {
            bool alone = f->congest.window < ((uint64_t)ALONE_PACKETS * news.packet << 8);
            rnl_path_sample_full(f->path, f->news_rtt_ns, f->news_bytes, news.packet, alone);
            rnl_path_sample(f->path, f->news_rtt_ns, now_ns);
        }
        news.rtt_ns = f->rtt.latest_ns;
        news.smoothed_ns = f->rtt.smoothed_ns;
        news.base_ns = (uint32_t)rnl_flow_min(f->path->base_ns, RNL_RTT_MAX_NS);
        news.wire_ns = rnl_path_wire_ns(f->path, f->news_bytes);
    }
    if (f->news_packets) {
        news.acked = f->news_acked;
        news.limited = f->limited;
        news.credited = f->credited;
        int queue = news.rtt_ns > news.base_ns + news.wire_ns + f->config->congest.target_ns / 2;
        uint32_t marks = rnl_ecn_acked(&f->ecn, f->news_capable, f->has_counts, f->peer_ce, f->peer_ect, queue);
        news.marked = marks ? (uint32_t)((uint64_t)f->news_acked * marks / f->news_packets) : 0;
        if (rnl_congest_acked(&f->congest, &f->config->congest, &news))
            rnl_loss_round(&f->loss);
    }
    f->news_acked = f->news_packets = f->news_capable = f->news_rtt_ns = 0;
    f->limited = f->credited = 0;
    find_losses(f, now_ns);
    f->judged = f->loss.largest;
}

/* All records are in use, so the oldest open packet is judged lost to have a record for the probe. */
static void make_place(struct rnl_flow *f)
{
    struct rnl_sent_packet *record = rnl_sent_at(&f->sent, f->sent.low);
    rnl_flow_free_records(f, record);
    rnl_sent_lose(&f->sent, f->sent.low);
    rnl_flow_landed(f, record);
    f->count->lost++;
    f->went.lost++;
}

/* A probe timeout has passed without an acknowledgement: sends the oldest content again, in packets that request
 * one. */
static void timed_out(struct rnl_flow *f)
{
    if (rnl_sent_reserve(&f->sent) == 0)
        make_place(f);
    uint64_t n = f->sent.low;
    f->count->probes++;
    RNL_SOMETIMES(f->timeouts > 3, "a probe after several");
    if (f->timeouts < UINT8_MAX)
        f->timeouts++;
    /* RFC 9002, 6.2.4 allows two probes: with 30 % loss each way, one probe and its answer fail in half of all cases.
     * Every third time it is one, or a periodic loss could hit the same one of the two for ever. */
    f->probes = RNL_BUG(flow_tail_never_probed) ? 0 : f->timeouts > 1 && f->timeouts % 3 ? 2 : 1;
    for (; (n = rnl_sent_find_open(&f->sent, n, f->sent.next)) < f->sent.next; n++) {
        struct rnl_sent_packet *record = rnl_sent_at(&f->sent, n);
        if (record->notes) {
            record->flags |= RNL_SENT_TIMED;
            rnl_flow_free_records(f, record);
            return;
        }
    }
}

/* Silence counts only while this process was running: a call that comes late counts for an eighth of the bound. */
static void silence(struct rnl_flow *f, uint64_t due_ns, uint64_t now_ns)
{
    uint64_t bound = f->config->suspect_ns / 8;
    RNL_SOMETIMES(now_ns - due_ns > bound, "a turn comes late");
    if (now_ns - due_ns > bound)
        f->heard_ns = rnl_flow_min(f->heard_ns + (now_ns - due_ns - bound), now_ns);
    uint64_t silent = now_ns - f->heard_ns;
    uint64_t unsure = f->attested_ns > f->heard_ns && f->attested_ns <= now_ns ? now_ns - f->attested_ns : silent;
    if (f->config->dead_ns && unsure >= f->config->dead_ns >> RNL_BUG(swarm_dead_too_soon) &&
        f->timeouts >= RNL_FLOW_DEAD_TIMEOUTS && !RNL_BUG(flow_never_dead))
        f->state = RNL_FLOW_DEAD;
    else if (f->state == RNL_FLOW_UP && silent >= f->config->suspect_ns && f->timeouts >= RNL_FLOW_SUSPECT_TIMEOUTS)
        f->state = RNL_FLOW_SUSPECT;
    RNL_SOMETIMES(f->state == RNL_FLOW_SUSPECT, "a peer is suspect");
}

static void give_memory_back(struct rnl_flow *f)
{
    size_t bytes = rnl_sent_bytes(f->sent.size);
    f->ops->free(f->ctx, rnl_sent_move(&f->sent, NULL, 0), bytes);
}

uint64_t rnl_flow_moved_ns(const struct rnl_flow *f)
{
    return f->last_sent_ns > f->received.largest_ns ? f->last_sent_ns : f->received.largest_ns;
}

void rnl_flow_relax(struct rnl_flow *f)
{
    if (f->sent.count == 0 && f->sent.size)
        give_memory_back(f);
}

void rnl_flow_attest(struct rnl_flow *f, uint64_t when_ns)
{
    f->attested_ns = when_ns;
}

bool rnl_flow_is_idle_since(const struct rnl_flow *f, uint64_t since_ns)
{
    return f->state == RNL_FLOW_UP && f->sent.count == 0 && f->heard_ns <= since_ns;
}

void rnl_flow_timers(struct rnl_flow *f, uint64_t now_ns)
{
    if (f->state == RNL_FLOW_DRAINING && now_ns >= f->close_ns)
        f->state = RNL_FLOW_CLOSED;
    if (!rnl_flow_delivers(f))
        return;
    if (f->loss.verdict_ns <= now_ns)
        find_losses(f, now_ns);
    if (f->sent.count == 0) {
        if (f->sent.size && now_ns - f->last_sent_ns >= f->config->linger_ns)
            give_memory_back(f);
        if (f->config->keepalive_ns && now_ns - f->heard_ns >= f->config->keepalive_ns)
            f->ping = 1;
        return;
    }
    uint64_t due = rnl_flow_timeout_at(f);
    if (f->loss.verdict_ns != UINT64_MAX)
        return;
    if (now_ns < due && due - now_ns < now_ns - f->last_sent_ns && RNL_BUGGIFY("a timeout comes before its time"))
        due = now_ns;
    if (now_ns < due)
        return;
    silence(f, due, now_ns);
    if (rnl_keys_left(&f->keys) == 0)
        f->state = RNL_FLOW_DEAD;
    if (f->state == RNL_FLOW_DEAD)
        return;
    timed_out(f);
    f->last_sent_ns = now_ns;
}

uint64_t rnl_flow_deadline(const struct rnl_flow *f)
{
    if (f->state >= RNL_FLOW_CLOSED)
        return UINT64_MAX;
    if (f->judge || f->probe_reply || f->close_reply_due)
        return 0;
    if (f->state == RNL_FLOW_DRAINING)
        return f->close_ns;
    if (!rnl_flow_delivers(f)) /* CLOSING without a drain: packets in flight are of no interest any more */
        return rnl_flow_keys_open(f) ? rnl_flow_min(f->received.due_ns, f->close_ns) : f->close_ns;
    uint64_t t = rnl_flow_keys_open(f) ? rnl_flow_min(f->received.due_ns, f->loss.verdict_ns) : f->loss.verdict_ns;
    if (f->timeouts == 0 && f->state < RNL_FLOW_CLOSING)
        t = rnl_flow_min(t, f->mtu.due_ns);
    if (f->sent.count && f->loss.verdict_ns == UINT64_MAX)
        t = rnl_flow_min(t, rnl_flow_timeout_at(f));
    if (f->sent.count == 0 && f->sent.size)
        t = rnl_flow_min(t, f->last_sent_ns + f->config->linger_ns);
    if (f->sent.count == 0 && f->config->keepalive_ns)
        t = rnl_flow_min(t, f->heard_ns + f->config->keepalive_ns);
    if (f->state == RNL_FLOW_CLOSING && rnl_flow_drained(f))
        t = rnl_flow_min(t, f->close_ns);
    uint32_t size = rnl_sent_reserve(&f->sent);
    if (size && rnl_keys_left(&f->keys)) {
        uint64_t memory = size == f->sent.size ? 0 : f->retry_ns;
        if (f->probes || f->ping)
            t = rnl_flow_min(t, memory);
        else if (f->wanted && rnl_flow_keys_open(f) && rnl_flow_window_open(f, f->pace.release_ns))
            t = rnl_flow_min(t, memory > f->pace.release_ns ? memory : f->pace.release_ns);
    }
    return t;
}

/* ---- the end ---- */

bool rnl_flow_drained(const struct rnl_flow *f)
{
    return !f->drain || (!f->wanted && f->sent.count == 0);
}

void rnl_flow_close(struct rnl_flow *f, uint32_t reason, int drain, uint64_t now_ns)
{
    if (f->state >= RNL_FLOW_DRAINING)
        return;
    f->state = RNL_FLOW_CLOSING;
    f->close_reason = reason & ~RNL_FLOW_CLOSE_REPLY;
    f->drain = drain != 0;
    f->close_ns = now_ns;
}

bool rnl_flow_close_due(const struct rnl_flow *f, uint64_t now_ns, uint32_t *reason)
{
    *reason = f->close_reason;
    if (f->close_reply_due) {
        *reason |= RNL_FLOW_CLOSE_REPLY;
        return true;
    }
    return f->state == RNL_FLOW_CLOSING && rnl_flow_drained(f) && now_ns >= f->close_ns;
}

void rnl_flow_close_sent(struct rnl_flow *f, uint64_t now_ns)
{
    if (f->close_reply_due) {
        f->close_reply_due = 0;
        return;
    }
    if (f->closes++ == RNL_FLOW_CLOSE_TRIES) {
        f->state = RNL_FLOW_CLOSED;
        return;
    }
    f->close_ns = now_ns + rnl_flow_min(rnl_flow_pto_ns(f) << f->closes / 2, f->config->max_pto_ns);
}

void rnl_flow_peer_closes(struct rnl_flow *f, uint32_t reason, uint64_t now_ns)
{
    f->peer_reason = reason & ~RNL_FLOW_CLOSE_REPLY;
    if (f->state < RNL_FLOW_DRAINING) {
        f->state = RNL_FLOW_DRAINING;
        f->close_ns = now_ns + 3 * rnl_flow_pto_ns(f);
    }
    if (!(reason & RNL_FLOW_CLOSE_REPLY))
        f->close_reply_due = 1;
}

bool rnl_flow_idle(const struct rnl_flow *f)
{
    return !f->wanted && f->sent.count == 0;
}

bool rnl_flow_in_flight(const struct rnl_flow *f, uint64_t number)
{
    return number < f->sent.next && rnl_sent_find_open(&f->sent, number, number + 1) == number;
}

const char *rnl_flow_valid(const struct rnl_flow *f)
{
    uint64_t flight = 0, charge = 0, before = 0;
    uint32_t count = 0;
    for (uint64_t n = f->sent.low; (n = rnl_sent_find_open(&f->sent, n, f->sent.next)) < f->sent.next; n++) {
        const struct rnl_sent_packet *record = rnl_sent_at(&f->sent, n);
        flight += rnl_flow_cost(f, record->bytes);
        charge += rnl_flow_charge(f, record->bytes);
        count++;
        if (record->sent_ns < before)
            return "packets in flight are not in the order of their sending";
        before = record->sent_ns;
        if (record->notes > RNL_FLOW_NOTES)
            return "a record has more notes than there is room for";
    }
    if (count != f->sent.count)
        return "the count of packets in flight is wrong";
    if (flight != f->flight || charge != f->charge)
        return "the bytes in flight are wrong";
    if (f->sent.low > f->sent.next || f->sent.next - f->sent.low > RNL_SENT_MAX || f->sent.base > f->sent.low)
        return "the span of what is in flight is wrong";
    if (f->loss.largest >= f->sent.next)
        return "a packet was acknowledged that was never sent";
    if (f->received.floor > f->received.largest)
        return "more has been acknowledged than has arrived";
    if (f->congest.window == 0 || f->mtu.bytes < rnl_mtu_first(&f->mtu))
        return "a window is 0, or a size below the least";
    return NULL;
}
