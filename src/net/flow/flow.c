/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow.c - begins a flow, takes in packets, and moves a flow to another path. Nothing in a packet is trusted before its
 * tag is checked; then its acknowledgement is noted packet by packet, and the next output judges it once. */
#include "net/flow/flow_internal.h"

#include "base/bug.h"
#include "base/sometimes.h"

#include <string.h>

void rnl_flow_defaults(struct rnl_flow_config *config)
{
    *config = (struct rnl_flow_config){
        .granularity_ns = 10000,
        .min_pto_ns = 100000,
        .first_pto_ns = 1000000,
        .max_pto_ns = 100000000,
        .ack_delay_ns = 25000,
        .ack_every = 16,
        .suspect_ns = 1000000000,
        .dead_ns = 30000000000,
        .keepalive_ns = 0,
        .linger_ns = 100000000,
        .number_limit = RNL_PACKET_NUMBER_MAX - 1,
        .wire_bytes = 66, /* UDP, IPv4, Ethernet with preamble and gap */
        .buffer_bytes = 768,
        .mtu = {1200, 1472, 8972},
        .algorithm = RNL_CONGEST_DLF,
        .ecn = 0,
        .congest = {.initial_packets = 10,
                    .most_bytes = 4096 * 1538,
                    .target_ns = 15000,
                    .near_ns = 8000,
                    .near_target_ns = 100000},
        .pace = {.burst_ns = 8000, .burst = 64, .max_ns = 5000000},
    };
}

void rnl_flow_init(struct rnl_flow *f, const struct rnl_flow_setup *setup, uint64_t now_ns)
{
    memset(f, 0, sizeof *f);
    f->config = setup->config;
    f->ops = setup->ops;
    f->path = setup->path;
    f->count = setup->count;
    f->ctx = setup->ctx;
    f->sealer = setup->sealer;
    f->keys = *setup->keys;
    f->connection = setup->connection;
    f->number = setup->number;
    f->peer_ack_delay_ns = setup->peer_ack_delay_ns;
    f->window_bytes = setup->window_bytes;
    f->mtu_most = (uint16_t)rnl_flow_min(setup->mtu_bytes, UINT16_MAX);
    rnl_sent_init(&f->sent, setup->first_number ? setup->first_number : 1);
    f->control = setup->first_control ? setup->first_control - 1 : 0;
    rnl_received_init(&f->received);
    rnl_loss_init(&f->loss);
    rnl_mtu_init(&f->mtu, setup->config->mtu, setup->mtu_bytes);
    rnl_ecn_init(&f->ecn, setup->config->ecn);
    rnl_congest_init(&f->congest, setup->config->algorithm, &setup->config->congest, rnl_flow_packet(f));
    f->heard_ns = f->last_sent_ns = now_ns;
    f->close_ns = UINT64_MAX;
}

void rnl_flow_fini(struct rnl_flow *f)
{
    if (f->sent.size) {
        size_t bytes = rnl_sent_bytes(f->sent.size);
        f->ops->free(f->ctx, f->sent.record, bytes);
    }
    rnl_keys_wipe(&f->keys);
    memset(&f->sent, 0, sizeof f->sent);
}

void rnl_flow_free_records(struct rnl_flow *f, struct rnl_sent_packet *record)
{
    unsigned notes = record->notes;
    record->notes = 0;
    for (unsigned i = 0; i < notes; i++)
        f->ops->lost(f->ctx, &record->note[i]);
    if (notes)
        f->wanted = 1;
}

void rnl_flow_landed(struct rnl_flow *f, const struct rnl_sent_packet *record)
{
    f->flight -= rnl_flow_cost(f, record->bytes);
    f->charge -= rnl_flow_charge(f, record->bytes);
}

static void took(struct rnl_flow *f, uint64_t number, const struct rnl_ack *ack, uint64_t now_ns)
{
    struct rnl_sent_packet *record = rnl_sent_at(&f->sent, number);
    rnl_sent_acked(&f->sent, number);
    rnl_flow_landed(f, record);
    rnl_keys_acked(&f->keys, number);
    rnl_mtu_acked(&f->mtu, number, record->bytes);
    if (record->ack_largest)
        rnl_received_heard(&f->received, record->ack_largest);
    if (number == ack->largest) {
        f->news_rtt_ns = (uint32_t)rnl_flow_min(now_ns - record->sent_ns, RNL_RTT_MAX_NS);
        f->news_hold_ns = ack->hold_ns;
        f->news_bytes = record->bytes;
    }
    f->news_acked += (uint32_t)rnl_flow_cost(f, record->bytes);
    f->news_packets++;
    f->news_capable += record->flags & RNL_SENT_CAPABLE;
    if (record->flags & RNL_SENT_TIMED)
        f->count->spurious++;
    for (unsigned i = 0; i < record->notes; i++)
        f->ops->acked(f->ctx, &record->note[i]);
}

/* A packet that was judged lost is acknowledged. */
static void was_wrong(struct rnl_flow *f, uint64_t number, uint64_t largest, uint64_t now_ns)
{
    struct rnl_sent_packet *record = rnl_sent_at(&f->sent, number);
    rnl_sent_forget(&f->sent, number);
    rnl_keys_acked(&f->keys, number);
    f->count->spurious++;
    RNL_SOMETIMES(1, "a packet judged lost has arrived");
    if (record->flags & RNL_SENT_MOVED)
        return;
    rnl_loss_was_wrong(&f->loss, &f->rtt, largest - number, now_ns - record->sent_ns);
    f->count->undone += (unsigned)rnl_congest_was_wrong(&f->congest, number, (uint32_t)rnl_flow_cost(f, record->bytes));
}

/* Notes what limited the flow until now, and what the block says of the peer's socket buffer and of ECN. */
static void note_window(struct rnl_flow *f, const struct rnl_packet *p)
{
    const struct rnl_ack *ack = &p->ack;
    if (!f->judge) {
        uint64_t full = f->flight + rnl_flow_packet(f);
        f->limited = full << 8 >= f->congest.window / 4 * 3;
        f->credited = f->charge + rnl_flow_charge(f, f->mtu.bytes) > f->window_bytes;
    }
    if (ack->largest >= f->window_at) {
        f->window_at = ack->largest;
        f->window_bytes = ack->window_bytes;
        f->has_counts = (p->flags & RNL_PACKET_ECN) != 0;
        f->peer_ce = ack->ce;
        f->peer_ect = ack->ect;
    }
}

/* Packets up to `largest` were acknowledged, some of them for the first time. */
static void news(struct rnl_flow *f, uint64_t largest)
{
    f->judge = 1;
    f->timeouts = 0;
    if (largest > f->loss.largest)
        f->loss.largest = largest;
}

static int acknowledged(struct rnl_flow *f, const struct rnl_packet *p, uint64_t now_ns)
{
    const struct rnl_ack *ack = &p->ack;
    if (ack->largest >= f->sent.next && !RNL_BUG(flow_ack_of_unsent))
        return rnl_fail(RNL_ERR_PEER_BROKEN,
                        "the peer acknowledged packet %llu of connection %u, but only %llu were sent: it breaks the "
                        "protocol, end the connection",
                        (unsigned long long)ack->largest, f->connection, (unsigned long long)f->sent.next - 1);
    note_window(f, p);
    uint32_t before = f->news_packets;
    uint64_t high = ack->largest, low = high - ack->run;
    for (unsigned i = 0;; i++) {
        for (uint64_t n = low; (n = rnl_sent_find_open(&f->sent, n, high + 1)) <= high; n++)
            took(f, n, ack, now_ns);
        if (f->lost_below > low)
            for (uint64_t n = low; (n = rnl_sent_find_lost(&f->sent, n, high + 1)) <= high; n++)
                was_wrong(f, n, ack->largest, now_ns);
        if (i == ack->ranges || low <= f->sent.base)
            break;
        high = low - 1 - ack->range[i].gap;
        low = high - (ack->range[i].length - 1u);
    }
    if (f->news_packets != before)
        news(f, ack->largest);
    return 0;
}

static void probed(struct rnl_flow *f, const unsigned char *at, const struct rnl_packet *p, uint64_t now_ns)
{
    struct rnl_probe probe;
    if (!rnl_probe_decode(at, p, &probe))
        return;
    if (probe.kind == RNL_PROBE_REQUEST)
        f->probe_reply = p->bytes;
    else
        f->count->mtu_raised += (unsigned)rnl_mtu_passed(&f->mtu, probe.bytes, now_ns);
}

/* true = it is the usual packet of a request and reply pattern: it has the next number and acknowledges the only packet
 * in flight, and nothing else is going on. */
static bool is_usual(const struct rnl_flow *f, const struct rnl_packet *p, unsigned ecn)
{
    unsigned phase = (p->flags & RNL_PACKET_PHASE) >> RNL_PACKET_PHASE_SHIFT;
    return p->number == f->received.largest + 1 && p->ack.largest == f->sent.low &&
           p->ack.largest + 1 == f->sent.next && f->lost_below <= p->ack.largest - p->ack.run && p->body_bytes &&
           ecn == 0 && f->state == RNL_FLOW_UP && ((phase ^ f->keys.rx_phase) & 3) == 0 && !f->config->plain;
}

/* The fast path of rnl_flow_input: does for a usual packet what rnl_flow_input would do. */
static int take_usual(struct rnl_flow *f, unsigned char *at, const struct rnl_packet *p, uint64_t now_ns)
{
    int opened = rnl_keys_open(&f->keys, f->sealer, at, p, now_ns, 0);
    if (opened <= 0) {
        f->count->refused++;
        return opened < 0 ? opened : RNL_FLOW_REJECTED;
    }
    f->heard_ns = now_ns;
    int status = f->ops->frames(f->ctx, at + p->body, p->body_bytes, p->number);
    if (status < 0 && status != RNL_NO_ROOM)
        return status;
    if (status != RNL_NO_ROOM) {
        f->count->received++;
        f->count->received_bytes += p->bytes;
        rnl_received_data(&f->received, p->number, p->flags & RNL_PACKET_ACK_WANTED, 0,
                          rnl_received_every(f->config->ack_every, p->bytes), f->config->ack_delay_ns, now_ns);
    }
    note_window(f, p);
    took(f, p->ack.largest, &p->ack, now_ns);
    news(f, p->ack.largest);
    return RNL_FLOW_NEW;
}

int rnl_flow_input(struct rnl_flow *f, unsigned char *at, size_t bytes, unsigned ecn, uint64_t now_ns)
{
    struct rnl_packet p;
    if (RNL_LIKELY(rnl_packet_usual(at, bytes, &p)) && is_usual(f, &p, ecn))
        return take_usual(f, at, &p, now_ns);
    if (rnl_packet_decode(at, bytes, &p) != RNL_PACKET_GOOD || p.type == RNL_PACKET_HELLO ||
        p.type == RNL_PACKET_UNKNOWN) {
        f->count->refused++;
        return RNL_FLOW_REJECTED;
    }
    enum rnl_received_space space = !p.control                  ? RNL_RECEIVED_DATA
                                    : p.type == RNL_PACKET_PATH ? RNL_RECEIVED_LATE_CONTROL
                                                                : RNL_RECEIVED_CONTROL;
    if (!rnl_received_is_new(&f->received, space, p.number)) {
        f->count->duplicates++;
        RNL_SOMETIMES(1, "a packet comes again");
        return RNL_FLOW_OLD;
    }
    int opened = rnl_keys_open(&f->keys, f->sealer, at, &p, now_ns, 3 * rnl_flow_pto_ns(f));
    if (opened <= 0) {
        f->count->refused++;
        return opened < 0 ? opened : RNL_FLOW_REJECTED;
    }
    /* A packet that is no longer delivered must not be acknowledged either. */
    if (f->state >= RNL_FLOW_CLOSED || (f->state == RNL_FLOW_DRAINING && p.type != RNL_PACKET_CLOSE))
        return RNL_FLOW_OLD;
    f->heard_ns = now_ns;
    if (f->state == RNL_FLOW_SUSPECT)
        f->state = RNL_FLOW_UP;
    RNL_SOMETIMES(p.number < f->received.largest && !p.control, "a packet comes behind later ones");
    int status = 0;
    if (p.type == RNL_PACKET_DATA && p.body_bytes && f->state < RNL_FLOW_DRAINING)
        status = f->ops->frames(f->ctx, at + p.body, p.body_bytes, p.number);
    if (status < 0 && status != RNL_NO_ROOM)
        return status;
    if (status != RNL_NO_ROOM) { /* otherwise the packet counts as lost */
        f->count->received++;
        f->count->received_bytes += p.bytes;
    }
    if (p.control)
        rnl_received_control(&f->received, p.number);
    else if (status != RNL_NO_ROOM)
        rnl_received_data(&f->received, p.number, p.flags & RNL_PACKET_ACK_WANTED, ecn,
                          rnl_received_every(f->config->ack_every, p.bytes), f->config->ack_delay_ns, now_ns);
    if (p.flags & RNL_PACKET_ACK) {
        int believed = acknowledged(f, &p, now_ns);
        if (believed < 0)
            return believed;
    }
    uint32_t reason;
    if (p.type == RNL_PACKET_PROBE) {
        probed(f, at, &p, now_ns);
    } else if (p.type == RNL_PACKET_PATH) {
        struct rnl_path_word word;
        if (rnl_path_decode(at, &p, &word) && f->ops->path)
            f->ops->path(f->ctx, &word);
    } else if (p.type == RNL_PACKET_CLOSE && rnl_close_decode(at, &p, &reason)) {
        rnl_flow_peer_closes(f, reason, now_ns);
    }
    return RNL_FLOW_NEW;
}

/* ---- paths: when others have to be challenged, the packets for that, and what begins anew on another path ---- */

/* The timer begins anew with each packet, so who sends often has no timeout for long: as long as some would take counts
 * like these. */
uint64_t rnl_flow_stuck_ns(const struct rnl_flow *f, uint64_t now_ns)
{
    if (f->sent.count == 0 || !rnl_flow_delivers(f))
        return 0;
    uint64_t oldest = rnl_sent_find_open(&f->sent, f->sent.low, f->sent.next),
             at = rnl_sent_at(&f->sent, oldest)->sent_ns, stuck_ns = now_ns > at ? now_ns - at : 0;
    return f->timeouts >= RNL_FLOW_STUCK_TIMEOUTS || stuck_ns > RNL_FLOW_STUCK_PTO * rnl_flow_pto_ns(f) ? stuck_ns : 0;
}

uint64_t rnl_flow_next(const struct rnl_flow *f)
{
    return f->sent.next;
}

uint64_t rnl_flow_acked(const struct rnl_flow *f)
{
    return f->loss.largest;
}

uint32_t rnl_flow_path(struct rnl_flow *f, unsigned char *at, size_t most, uint32_t bytes,
                       const struct rnl_path_word *word)
{
    struct rnl_packet p = {.type = RNL_PACKET_PATH, .control = 1};
    uint32_t room = most < RNL_PACKET_MAX ? (uint32_t)most : RNL_PACKET_MAX;
    if (room < RNL_PACKET_MIN || f->state >= RNL_FLOW_DRAINING || !rnl_flow_keys_open(f))
        return 0;
    uint32_t used = rnl_path_encode(at, RNL_PACKET_HEAD, room - RNL_PACKET_MIN, bytes, word);
    return used ? rnl_flow_finish(f, at, room, &p, used) : 0;
}

bool rnl_flow_close_on_all_paths(const struct rnl_flow *f)
{
    return f->closes > 1;
}

bool rnl_flow_is_cut(const struct rnl_flow *f, uint64_t elsewhere_ns)
{
    return f->timeouts && elsewhere_ns > f->heard_ns && elsewhere_ns - f->heard_ns >= 2 * rnl_flow_pto_ns(f);
}

void rnl_flow_hand_over(struct rnl_flow *f)
{
    for (uint64_t n = f->sent.low; (n = rnl_sent_find_open(&f->sent, n, f->sent.next)) < f->sent.next; n++) {
        struct rnl_sent_packet *record = rnl_sent_at(&f->sent, n);
        if (record->notes)
            record->flags |= RNL_SENT_TIMED;
        rnl_flow_free_records(f, record);
    }
}

uint64_t rnl_flow_takes_ns(const struct rnl_flow *f, uint64_t bytes)
{
    uint64_t window = f->congest.window >> 8, trip_ns = f->rtt.smoothed_ns;
    if (trip_ns == 0 || window == 0)
        return UINT64_MAX;
    return trip_ns + trip_ns * (f->flight + bytes) / window;
}

void rnl_flow_ping(struct rnl_flow *f)
{
    if (f->sent.count == 0 && rnl_flow_delivers(f))
        f->ping = 1;
}

void rnl_flow_migrate(struct rnl_flow *f, uint64_t rtt_ns, uint64_t now_ns)
{
    if (f->state >= RNL_FLOW_DRAINING)
        return;
    for (uint64_t n = f->sent.low; (n = rnl_sent_find_open(&f->sent, n, f->sent.next)) < f->sent.next; n++) {
        struct rnl_sent_packet *record = rnl_sent_at(&f->sent, n);
        record->flags |= RNL_SENT_MOVED;
        rnl_sent_lose(&f->sent, n);
        rnl_flow_landed(f, record);
        f->count->lost++;
        f->went.lost++;
        rnl_flow_free_records(f, record);
    }
    f->lost_below = f->sent.next;
    /* The phases of the keys, the peer's socket buffer and its ECN counts belong to the peer, not to the path: keep. */
    uint64_t largest = f->loss.largest;
    struct rnl_ecn_trust ecn = f->ecn;
    rnl_loss_init(&f->loss);
    f->loss.largest = largest;
    rnl_ecn_init(&f->ecn, f->config->ecn);
    f->ecn.ce = ecn.ce;
    f->ecn.ect = ecn.ect;
    f->rtt = (struct rnl_rtt){0};
    *f->path = (struct rnl_path){0};
    rnl_rtt_sample(&f->rtt, rnl_flow_min(rtt_ns, RNL_RTT_MAX_NS), 0);
    rnl_mtu_init(&f->mtu, f->config->mtu, f->mtu_most);
    rnl_congest_init(&f->congest, f->config->algorithm, &f->config->congest, rnl_flow_packet(f));
    f->pace = (struct rnl_pace){0};
    f->news_acked = f->news_packets = f->news_capable = f->news_rtt_ns = 0;
    f->judge = f->limited = f->credited = f->timeouts = f->probes = 0;
    f->since_request = 0;
    f->last_sent_ns = f->heard_ns = now_ns;
    if (f->state == RNL_FLOW_SUSPECT)
        f->state = RNL_FLOW_UP;
    /* Our acknowledgements have probably been lost, too, so one is sent at once. */
    if (f->received.largest) {
        f->received.unacknowledged += f->received.unacknowledged == 0;
        f->received.due_ns = now_ns;
    }
    f->ping = 1; /* a packet goes out even without content, to show the peer where we send from now */
    RNL_SOMETIMES(1, "a flow moves to another path");
}
