/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_out.c - writes the packets of a flow, in this order: data, together with an acknowledgement that is owed; an
 * acknowledgement alone; replies to size probes, and size probes; CLOSE. */
#include <string.h>

#include "base/bug.h"
#include "base/sometimes.h"
#include "net/flow/flow_internal.h"

/* The least number of packets from one that requests an acknowledgement at once to the next, while the window is open.
 * Frequent acknowledgements show many flows their queue in time; but a host that pauses pauses more often, the more it
 * has to send. */
enum { ASK_PACKETS = 2, ASK_ROUGH_PACKETS = 6 };

/* Fills p->ack with the block that is owed. Returns its bytes; 0 = none is owed. */
static uint32_t owed(struct rnl_flow *f, struct rnl_packet *p, uint64_t now_ns)
{
    if (f->received.unacknowledged == 0 || !rnl_received_ack(&f->received, now_ns, &p->ack))
        return 0;
    uint32_t window = f->ops->window(f->ctx);
    p->ack.window_bytes = window < RNL_ACK_WINDOW_MAX ? window : RNL_ACK_WINDOW_MAX;
    p->flags |= RNL_PACKET_ACK;
    if (f->received.ce | f->received.ect)
        p->flags |= RNL_PACKET_ECN;
    return rnl_ack_bytes(&p->ack, p->flags & RNL_PACKET_ECN);
}

uint32_t rnl_flow_finish(struct rnl_flow *f, unsigned char *at, uint32_t room, struct rnl_packet *p, uint32_t body)
{
    p->connection = f->connection;
    p->flags |= (uint8_t)(f->number << RNL_PACKET_FLOW_SHIFT);
    p->number = p->control ? f->control + 1 : f->sent.next;
    uint32_t from = rnl_packet_encode(at, room, p);
    if (from == 0)
        return 0;
    uint32_t bytes = rnl_packet_finish(at, from + body);
    if (rnl_keys_seal(&f->keys, f->sealer, at, bytes, from) != 0)
        return 0;
    if (p->control)
        f->control++;
    if (p->flags & RNL_PACKET_ACK)
        rnl_received_ack_sent(&f->received);
    f->count->sent_bytes += bytes;
    /* A side that sends nothing but acknowledgements has to ping, or it would never learn that the peer has its key. */
    if (!f->keys.tx_confirmed && f->keys.tx_sealed >= f->keys.limits->change_after && f->sent.count == 0)
        f->ping = 1;
    return bytes;
}

bool rnl_flow_keys_open(const struct rnl_flow *f)
{
    return rnl_keys_left(&f->keys) > RNL_FLOW_KEY_SPARE;
}

/* While a path drains, a flow has in flight at most half of what it has there without a queue. So the queue vanishes,
 * however many flows share it, if they drain together; and a flow that is alone continues at half its rate. */
static bool drain_open(const struct rnl_flow *f, uint64_t flight)
{
    uint64_t trip = f->rtt.smoothed_ns > f->path->base_ns ? f->rtt.smoothed_ns : f->path->base_ns;
    return flight + rnl_flow_packet(f) <= (f->congest.window >> 8) * f->path->base_ns / trip / 2;
}

/* true = one more packet may be sent when `flight` bytes are in flight and take `charge` bytes of the peer's socket. */
static bool open_with(const struct rnl_flow *f, uint64_t flight, uint64_t charge, uint64_t now_ns)
{
    if (!rnl_congest_open(&f->congest, flight, rnl_flow_packet(f)))
        return false;
    if (flight == 0 && !RNL_BUG(flow_zero_window_not_probed))
        return true; /* one packet may always be in flight, since otherwise a closed window would never open */
    if (rnl_path_draining(f->path, now_ns) && !drain_open(f, flight))
        return false;
    return charge + rnl_flow_charge(f, f->mtu.bytes) <= f->window_bytes;
}

bool rnl_flow_window_open(const struct rnl_flow *f, uint64_t now_ns)
{
    RNL_SOMETIMES(f->flight == 0 && f->charge + rnl_flow_charge(f, f->mtu.bytes) > f->window_bytes,
                  "one packet goes to a socket that is full");
    return open_with(f, f->flight, f->charge, now_ns);
}

/* Returns the bytes in flight since a packet that requested an acknowledgement at once; 0 if nothing is in flight,
 * because in a request and reply pattern the replies acknowledge. */
static uint32_t since_request(const struct rnl_flow *f)
{
    return f->sent.count ? f->since_request : 0;
}

/* true = the next packet, of `bytes`, requests an acknowledgement at once: because nothing more may be sent without
 * one, or once in each quarter of a window. A receiver otherwise acknowledges 16 packets together, which is most of a
 * short window. */
static bool wants_ack(const struct rnl_flow *f, uint32_t bytes, uint64_t now_ns)
{
    uint64_t flight = f->flight + rnl_flow_cost(f, bytes);
    uint64_t asked = f->congest.window >> 10, least = rnl_flow_packet(f);
    least *= f->congest.rough ? ASK_ROUGH_PACKETS : ASK_PACKETS;
    return !f->keys.tx_confirmed || since_request(f) + rnl_flow_cost(f, bytes) >= (asked > least ? asked : least) ||
           !open_with(f, flight, f->charge + rnl_flow_charge(f, bytes), now_ns);
}

/* Makes a record available for the next packet. Returns true, or false = there is none. */
static bool reserve(struct rnl_flow *f, uint64_t now_ns)
{
    uint32_t size = rnl_sent_reserve(&f->sent);
    if (size == f->sent.size)
        return size != 0;
    if (size == 0 || now_ns < f->retry_ns)
        return false;
    uint32_t old = f->sent.size;
    void *block = RNL_BUGGIFY("no memory for records") ? NULL : f->ops->alloc(f->ctx, rnl_sent_bytes(size));
    if (!block) {
        f->retry_ns = now_ns + RNL_FLOW_RETRY_NS;
        return false;
    }
    block = rnl_sent_move(&f->sent, block, size);
    if (block)
        f->ops->free(f->ctx, block, rnl_sent_bytes(old));
    return true;
}

/* Returns the time over which to spread a window; 0 = do not pace. Pacing keeps the queues of a network short, but
 * makes the runs short, too. Between processes of one machine there is no such queue, so long runs are better there. */
static uint64_t trip_ns(const struct rnl_flow *f, uint64_t now_ns)
{
    if (rnl_path_draining(f->path, now_ns))
        return 2 * (uint64_t)f->rtt.smoothed_ns;
    if (rnl_congest_near(&f->config->congest, f->path->base_ns) && f->congest.window >> 8 >= rnl_flow_packet(f))
        return 0;
    return rnl_congest_trip_ns(&f->congest, f->rtt.smoothed_ns, f->rtt.latest_ns, rnl_flow_packet(f));
}

static void record(struct rnl_flow *f, const struct rnl_packet *p, uint32_t bytes, const struct rnl_flow_note *notes,
                   unsigned count, uint64_t now_ns)
{
    if (f->sent.count == 0)
        f->heard_ns = now_ns;
    f->since_request = p->flags & RNL_PACKET_ACK_WANTED ? 0 : since_request(f) + (uint32_t)rnl_flow_cost(f, bytes);
    struct rnl_sent_packet *r = rnl_sent_add(&f->sent);
    for (unsigned i = 0; i < count; i++)
        r->note[i] = notes[i];
    r->notes = (uint8_t)count;
    r->bytes = (uint16_t)bytes;
    r->sent_ns = f->last_sent_ns = now_ns;
    r->ack_largest = p->flags & RNL_PACKET_ACK ? (uint32_t)p->ack.largest : 0;
    r->flags = rnl_ecn_codepoint(&f->ecn) != RNL_ECT_NOT ? RNL_SENT_CAPABLE : 0;
    f->flight += rnl_flow_cost(f, bytes);
    f->charge += rnl_flow_charge(f, bytes);
    f->count->sent++;
    f->went.packets++;
    f->went.bytes += bytes;
    rnl_pace_sent(&f->pace, &f->config->pace, rnl_flow_cost(f, bytes), f->congest.window, trip_ns(f, now_ns), now_ns);
    f->pace.waits = f->wanted && rnl_flow_window_open(f, now_ns);
}

static uint32_t put_data(struct rnl_flow *f, unsigned char *at, uint32_t room, uint64_t now_ns)
{
    struct rnl_packet p;
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count = 0;
    uint32_t used = 0;
    int must = f->probes || f->ping;
    if (!must && (now_ns < f->pace.release_ns || !rnl_flow_window_open(f, now_ns) || !rnl_flow_keys_open(f)))
        return 0;
    if (!reserve(f, now_ns) || rnl_keys_left(&f->keys) == 0)
        return 0;
    if (f->sent.next > f->config->number_limit) {
        f->state = RNL_FLOW_DEAD;
        return 0;
    }
    uint32_t most = f->timeouts >= RNL_FLOW_LOWER_MTU ? rnl_mtu_first(&f->mtu) : f->mtu.bytes;
    if (room > most)
        room = most;
    p.type = RNL_PACKET_DATA;
    p.flags = 0;
    p.control = 0;
    uint32_t from = RNL_PACKET_HEAD + owed(f, &p, now_ns);
    if (from + RNL_PACKET_TAG > room)
        return 0;
    if (f->wanted) {
        used = f->ops->fill(f->ctx, at + from, room - from - RNL_PACKET_TAG, notes, &count);
        if (used == 0)
            rnl_flow_no_more_data(f);
    }
    if (used == 0 && !must)
        return 0;
    if (used && count == 0 && !must) {
        p.control = 1;
        return rnl_flow_finish(f, at, room, &p, used);
    }
    if (must || wants_ack(f, from + used + RNL_PACKET_TAG, now_ns))
        p.flags |= RNL_PACKET_ACK_WANTED;
    uint32_t bytes = rnl_flow_finish(f, at, room, &p, used);
    if (bytes == 0) {
        for (unsigned i = 0; i < count; i++)
            f->ops->lost(f->ctx, &notes[i]);
        f->wanted = 1;
        return 0;
    }
    record(f, &p, bytes, notes, count, now_ns);
    if (f->probes)
        f->probes--;
    f->ping = 0;
    if (bytes + RNL_FLOW_SPARE >= f->mtu.bytes)
        rnl_mtu_filled(&f->mtu, now_ns);
    return bytes;
}

static uint32_t put_ack(struct rnl_flow *f, unsigned char *at, uint32_t room, uint64_t now_ns)
{
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .control = 1};
    if (!rnl_flow_keys_open(f)) {
        /* The peer may need this acknowledgement to change its key. A ping, which confirms our key, carries it. */
        f->ping |= f->sent.count == 0;
        return 0;
    }
    if (owed(f, &p, now_ns) == 0)
        return 0;
    f->count->acks_sent++;
    return rnl_flow_finish(f, at, room, &p, 0);
}

static uint32_t put_probe(struct rnl_flow *f, unsigned char *at, uint32_t room, enum rnl_probe_kind kind,
                          uint32_t bytes)
{
    struct rnl_packet p = {.type = RNL_PACKET_PROBE, .control = 1};
    struct rnl_probe probe = {.kind = (uint8_t)kind, .bytes = (uint16_t)bytes};
    uint32_t used = rnl_probe_encode(at, RNL_PACKET_HEAD, room - RNL_PACKET_TAG, &probe);
    return used ? rnl_flow_finish(f, at, room, &p, used) : 0;
}

static uint32_t put_close(struct rnl_flow *f, unsigned char *at, uint32_t room, uint32_t reason)
{
    struct rnl_packet p = {.type = RNL_PACKET_CLOSE, .control = 1};
    return rnl_flow_finish(f, at, room, &p, rnl_close_encode(at, RNL_PACKET_HEAD, room - RNL_PACKET_TAG, reason));
}

uint32_t rnl_flow_repeat_close(struct rnl_flow *f, unsigned char *at, size_t most)
{
    return put_close(f, at, most < RNL_PACKET_MAX ? (uint32_t)most : RNL_PACKET_MAX, f->close_reason);
}

/* true = nothing is in flight and nothing is due, so rnl_flow_output would write one data packet and nothing else. */
static bool is_single(const struct rnl_flow *f, uint64_t now_ns)
{
    return f->sent.count == 0 && f->wanted && f->sent.size && f->received.unacknowledged && f->state == RNL_FLOW_UP &&
           !(f->probes | f->ping | f->timeouts | f->close_reply_due) && !f->probe_reply && f->mtu.due_ns > now_ns &&
           (!f->judge || f->congest.window >> 8 >= rnl_flow_packet(f)) && f->loss.verdict_ns == UINT64_MAX &&
           now_ns >= f->pace.release_ns && now_ns - f->last_sent_ns < f->config->linger_ns &&
           !f->config->keepalive_ns && f->keys.tx_confirmed && f->keys.tx_sealed < f->keys.limits->change_after &&
           rnl_flow_keys_open(f) && f->sent.next <= f->config->number_limit && !(f->received.ce | f->received.ect) &&
           f->charge + rnl_flow_charge(f, f->mtu.bytes) <= f->window_bytes && !f->config->plain;
}

uint32_t rnl_flow_single(struct rnl_flow *f, unsigned char *at, size_t most, uint64_t now_ns,
                         struct rnl_flow_single_packet *a)
{
    const uint32_t from = RNL_PACKET_HEAD + RNL_ACK_FIXED;
    struct rnl_packet *p = &a->packet;
    a->bytes = a->count = 0;
    p->flags = 0;
    if (!is_single(f, now_ns) || owed(f, p, now_ns) != RNL_ACK_FIXED)
        return 0;
    uint32_t room = most < f->mtu.bytes ? (uint32_t)most : f->mtu.bytes;
    if (room < from + RNL_PACKET_TAG)
        return 0;
    uint32_t used = f->ops->fill(f->ctx, at + from, room - from - RNL_PACKET_TAG, a->notes, &a->count);
    if (used == 0) {
        rnl_flow_no_more_data(f);
        return 0;
    }
    uint32_t bytes = from + used + RNL_PACKET_TAG;
    p->type = RNL_PACKET_DATA;
    p->control = a->count == 0;
    if (RNL_UNLIKELY(p->control))
        return rnl_flow_finish(f, at, room, p, used);
    if (wants_ack(f, bytes, now_ns))
        p->flags |= RNL_PACKET_ACK_WANTED;
    p->connection = f->connection;
    p->number = f->sent.next;
    rnl_packet_put_usual(at, bytes, p);
    if (RNL_UNLIKELY(rnl_keys_seal(&f->keys, f->sealer, at, bytes, from) != 0)) {
        for (unsigned i = 0; i < a->count; i++)
            f->ops->lost(f->ctx, &a->notes[i]);
        return 0;
    }
    a->bytes = bytes;
    return bytes;
}

void rnl_flow_single_sent(struct rnl_flow *f, const struct rnl_flow_single_packet *a, uint64_t now_ns)
{
    if (a->bytes == 0)
        return;
    rnl_received_ack_sent(&f->received);
    f->count->sent_bytes += a->bytes;
    record(f, &a->packet, a->bytes, a->notes, a->count, now_ns);
    if (a->bytes + RNL_FLOW_SPARE >= f->mtu.bytes)
        rnl_mtu_filled(&f->mtu, now_ns);
}

uint32_t rnl_flow_output(struct rnl_flow *f, unsigned char *at, size_t most, uint64_t now_ns)
{
    uint32_t room = most < RNL_PACKET_MAX ? (uint32_t)most : RNL_PACKET_MAX, bytes, reason;
    /* With nothing in flight nothing can be lost, so the judgement can wait until a reply is sent. But a window below
     * one packet is limited by pacing alone, which needs the judgement. */
    if (f->judge && (f->sent.count || f->congest.window >> 8 < rnl_flow_packet(f)))
        rnl_flow_judge(f, now_ns);
    rnl_flow_timers(f, now_ns);
    for (int last = 0; !last && rnl_flow_delivers(f) && (f->wanted || f->probes || f->ping);) {
        bytes = put_data(f, at, room, now_ns);
        if (bytes)
            return bytes;
        last = !f->judge;
        if (f->judge)
            rnl_flow_judge(f, now_ns);
    }
    if (f->judge)
        rnl_flow_judge(f, now_ns);
    if (f->state >= RNL_FLOW_CLOSED)
        return 0;
    if (f->received.due_ns <= now_ns && (bytes = put_ack(f, at, room, now_ns)) > 0)
        return bytes;
    if (f->probe_reply) {
        bytes = put_probe(f, at, room, RNL_PROBE_REPLY, f->probe_reply);
        f->probe_reply = 0;
        if (bytes)
            return bytes;
    }
    if (f->mtu.due_ns <= now_ns && f->timeouts == 0 && f->state < RNL_FLOW_CLOSING) {
        uint32_t size = rnl_mtu_probe(&f->mtu, room, f->charge < f->window_bytes / 2, rnl_flow_pto_ns(f), now_ns);
        if (size && (bytes = put_probe(f, at, room, RNL_PROBE_REQUEST, size)) > 0)
            return bytes;
    }
    if (rnl_flow_close_due(f, now_ns, &reason)) {
        bytes = put_close(f, at, room, reason);
        rnl_flow_close_sent(f, now_ns);
        return bytes;
    }
    return 0;
}

bool rnl_flow_may_send(const struct rnl_flow *f, uint64_t now_ns)
{
    return f->judge || f->probes || f->ping ||
           (rnl_flow_delivers(f) && now_ns >= f->pace.release_ns && rnl_flow_window_open(f, now_ns));
}

bool rnl_flow_has_output(struct rnl_flow *f, uint64_t now_ns)
{
    if (f->wanted || f->probes || f->ping)
        return true;
    if (f->judge)
        rnl_flow_judge(f, now_ns);
    return f->wanted || f->probes || f->ping || rnl_flow_deadline(f) <= now_ns;
}

bool rnl_flow_has_more(const struct rnl_flow *f, uint64_t now_ns)
{
    return f->wanted || f->probes || f->ping || f->probe_reply || f->close_reply_due || f->state != RNL_FLOW_UP ||
           f->received.due_ns <= now_ns || f->mtu.due_ns <= now_ns;
}

bool rnl_flow_is_urgent(const struct rnl_flow *f)
{
    return f->wanted || f->probes || f->ping || f->probe_reply || f->close_reply_due || f->state != RNL_FLOW_UP ||
           f->received.due_ns == 0 || f->sent.count;
}

void rnl_flow_no_more_data(struct rnl_flow *f)
{
    f->wanted = 0;
    f->pace.waits = false;
}

unsigned rnl_flow_ecn(const struct rnl_flow *f)
{
    return rnl_ecn_codepoint(&f->ecn);
}

void rnl_flow_too_big(struct rnl_flow *f, uint32_t bytes, uint64_t now_ns)
{
    f->count->mtu_fell += (unsigned)rnl_mtu_refused(&f->mtu, bytes, now_ns);
}
