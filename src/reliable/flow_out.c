/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_out.c - what goes out. In this order: data, with whatever acknowledgement is owed; an acknowledgement alone;
 * answers and questions about sizes; the end. */
#include <string.h>

#include "base/sometimes.h"
#include "reliable/flow_in.h"

/* At least, between two whose acknowledgement is asked for although more could go. What comes often lets many flows see
 * their queue in time; but a host that pauses does so the oftener, the more it has to send. */
enum { ASK_PACKETS = 2, ASK_ROUGH_PACKETS = 6 };

/* The block that is owed, into p->ack: its bytes, 0 = none is. */
static uint32_t owed(struct rnl_flow *f, struct rnl_packet *p, uint64_t now_ns)
{
    if (f->received.unsaid == 0 || !rnl_received_tell(&f->received, now_ns, &p->ack))
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
        rnl_received_told(&f->received);
    f->count->sent_bytes += bytes;
    /* A side that has nothing to say but acknowledgements learns of its key's arrival only by asking. */
    if (!f->keys.tx_confirmed && f->keys.tx_sealed >= f->keys.limits->change_after && f->sent.count == 0)
        f->ping = 1;
    return bytes;
}

int rnl_flow_keys_open(const struct rnl_flow *f)
{
    return rnl_keys_left(&f->keys) > RNL_FLOW_KEY_SPARE;
}

/* While a path drains: half of what the flow has on the way when there is no queue. So its queue vanishes, however many
 * share it, if they drain together; and a flow that is alone goes on at half its rate. */
static int drain_open(const struct rnl_flow *f, uint64_t flight)
{
    uint64_t trip = f->rtt.smoothed_ns > f->path->base_ns ? f->rtt.smoothed_ns : f->path->base_ns;
    return flight + rnl_flow_packet(f) <= (f->congest.window >> 8) * f->path->base_ns / trip / 2;
}

/* With so many bytes in flight that take so much of the peer's socket. */
static int open_with(const struct rnl_flow *f, uint64_t flight, uint64_t charge, uint64_t now_ns)
{
    if (!rnl_congest_open(&f->congest, flight, rnl_flow_packet(f)))
        return 0;
    if (flight == 0)
        return 1; /* one packet may always be about, else a closed window would never open */
    if (rnl_path_draining(f->path, now_ns) && !drain_open(f, flight))
        return 0;
    return charge + rnl_flow_charge(f, f->mtu.bytes) <= f->window_bytes;
}

int rnl_flow_window_open(const struct rnl_flow *f, uint64_t now_ns)
{
    RNL_SOMETIMES(f->flight == 0 && f->charge + rnl_flow_charge(f, f->mtu.bytes) > f->window_bytes,
                  "one packet goes to a socket that is full");
    return open_with(f, f->flight, f->charge, now_ns);
}

/* Bytes under way since a packet that asked. With nothing under way none: in a conversation the answers acknowledge. */
static uint32_t unasked(const struct rnl_flow *f)
{
    return f->sent.count ? f->unasked : 0;
}

/* Is the next packet, of so many bytes, to be acknowledged at once? What waits for its acknowledgement says so, and one
 * in each quarter of a window: a receiver keeps sixteen for company, and of a short window that is most. */
static int wants_ack(const struct rnl_flow *f, uint32_t bytes, uint64_t now_ns)
{
    uint64_t flight = f->flight + rnl_flow_cost(f, bytes);
    uint64_t asked = f->congest.window >> 10, least = rnl_flow_packet(f);
    least *= f->congest.rough ? ASK_ROUGH_PACKETS : ASK_PACKETS;
    return !f->keys.tx_confirmed || unasked(f) + rnl_flow_cost(f, bytes) >= (asked > least ? asked : least) ||
           !open_with(f, flight, f->charge + rnl_flow_charge(f, bytes), now_ns);
}

/* A record to write the next packet into. */
static int reserve(struct rnl_flow *f, uint64_t now_ns)
{
    uint32_t size = rnl_sent_want(&f->sent);
    if (size == f->sent.size)
        return size != 0;
    if (size == 0 || now_ns < f->retry_ns)
        return 0;
    uint32_t old = f->sent.size;
    void *block = RNL_RARELY("no memory for records") ? NULL : f->ops->alloc(f->ctx, rnl_sent_bytes(size));
    if (!block) {
        f->retry_ns = now_ns + RNL_FLOW_RETRY_NS;
        return 0;
    }
    block = rnl_sent_move(&f->sent, block, size);
    if (block)
        f->ops->free(f->ctx, block, rnl_sent_bytes(old));
    return 1;
}

/* What is spread keeps the queues of a network short, and is sent in small runs. Between processes of one machine there
 * is no such queue, and large runs are all that counts. */
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
    f->unasked = p->flags & RNL_PACKET_WANT ? 0 : unasked(f) + (uint32_t)rnl_flow_cost(f, bytes);
    struct rnl_sent_packet *r = rnl_sent_add(&f->sent);
    for (unsigned i = 0; i < count; i++)
        r->note[i] = notes[i];
    r->notes = (uint8_t)count;
    r->bytes = (uint16_t)bytes;
    r->sent_ns = f->last_sent_ns = now_ns;
    r->told = p->flags & RNL_PACKET_ACK ? (uint32_t)p->ack.largest : 0;
    r->flags = rnl_ecn_codepoint(&f->ecn) != RNL_ECT_NOT ? RNL_SENT_CAPABLE : 0;
    f->flight += rnl_flow_cost(f, bytes);
    f->charge += rnl_flow_charge(f, bytes);
    f->count->sent++;
    rnl_pace_sent(&f->pace, &f->config->pace, rnl_flow_cost(f, bytes), f->congest.window, trip_ns(f, now_ns), now_ns);
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
            f->wanted = 0;
    }
    if (used == 0 && !must)
        return 0;
    if (used && count == 0 && !must) {
        p.control = 1;
        return rnl_flow_finish(f, at, room, &p, used);
    }
    if (must || wants_ack(f, from + used + RNL_PACKET_TAG, now_ns))
        p.flags |= RNL_PACKET_WANT;
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
        /* The peer may wait for it to be sure of its own key: ours is asked about, and the question carries it. */
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

uint32_t rnl_flow_end(struct rnl_flow *f, unsigned char *at, size_t most)
{
    return put_close(f, at, most < RNL_PACKET_MAX ? (uint32_t)most : RNL_PACKET_MAX, f->close_reason);
}

/* Nothing is open and nothing due: what output would look at before, and beside, one packet of data. */
static int is_lone(const struct rnl_flow *f, uint64_t now_ns)
{
    return f->sent.count == 0 && f->wanted && f->sent.size && f->received.unsaid && f->state == RNL_FLOW_UP &&
           !(f->probes | f->ping | f->timeouts | f->answer_close) && !f->probe_answer && f->mtu.due_ns > now_ns &&
           (!f->judge || f->congest.window >> 8 >= rnl_flow_packet(f)) && f->loss.verdict_ns == UINT64_MAX &&
           now_ns >= f->pace.release_ns && now_ns - f->last_sent_ns < f->config->linger_ns &&
           !f->config->keepalive_ns && f->keys.tx_confirmed && f->keys.tx_sealed < f->keys.limits->change_after &&
           rnl_flow_keys_open(f) && f->sent.next <= f->config->number_limit && !(f->received.ce | f->received.ect) &&
           f->charge + rnl_flow_charge(f, f->mtu.bytes) <= f->window_bytes && !f->config->plain;
}

uint32_t rnl_flow_lone(struct rnl_flow *f, unsigned char *at, size_t most, uint64_t now_ns, struct rnl_flow_alone *a)
{
    const uint32_t from = RNL_PACKET_HEAD + RNL_ACK_FIXED;
    struct rnl_packet *p = &a->packet;
    a->bytes = a->count = 0;
    p->flags = 0;
    if (!is_lone(f, now_ns) || owed(f, p, now_ns) != RNL_ACK_FIXED)
        return 0;
    uint32_t room = most < f->mtu.bytes ? (uint32_t)most : f->mtu.bytes;
    if (room < from + RNL_PACKET_TAG)
        return 0;
    uint32_t used = f->ops->fill(f->ctx, at + from, room - from - RNL_PACKET_TAG, a->notes, &a->count);
    if (used == 0) {
        f->wanted = 0;
        return 0;
    }
    uint32_t bytes = from + used + RNL_PACKET_TAG;
    p->type = RNL_PACKET_DATA;
    p->control = a->count == 0;
    if (RNL_UNLIKELY(p->control))
        return rnl_flow_finish(f, at, room, p, used);
    if (wants_ack(f, bytes, now_ns))
        p->flags |= RNL_PACKET_WANT;
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

void rnl_flow_lone_went(struct rnl_flow *f, const struct rnl_flow_alone *a, uint64_t now_ns)
{
    if (a->bytes == 0)
        return;
    rnl_received_told(&f->received);
    f->count->sent_bytes += a->bytes;
    record(f, &a->packet, a->bytes, a->notes, a->count, now_ns);
    if (a->bytes + RNL_FLOW_SPARE >= f->mtu.bytes)
        rnl_mtu_filled(&f->mtu, now_ns);
}

uint32_t rnl_flow_output(struct rnl_flow *f, unsigned char *at, size_t most, uint64_t now_ns)
{
    uint32_t room = most < RNL_PACKET_MAX ? (uint32_t)most : RNL_PACKET_MAX, bytes, reason;
    /* With nothing open nothing can be lost, and the judgement can wait until an answer has gone. But the pace of a
     * window below a packet is all that it has. */
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
    if (f->probe_answer) {
        bytes = put_probe(f, at, room, RNL_PROBE_ANSWER, f->probe_answer);
        f->probe_answer = 0;
        if (bytes)
            return bytes;
    }
    if (f->mtu.due_ns <= now_ns && f->timeouts == 0 && f->state < RNL_FLOW_CLOSING) {
        uint32_t size = rnl_mtu_probe(&f->mtu, room, f->charge < f->window_bytes / 2, rnl_flow_pto_ns(f), now_ns);
        if (size && (bytes = put_probe(f, at, room, RNL_PROBE_ASK, size)) > 0)
            return bytes;
    }
    if (rnl_flow_close_due(f, now_ns, &reason)) {
        bytes = put_close(f, at, room, reason);
        rnl_flow_close_sent(f, now_ns);
        return bytes;
    }
    return 0;
}

int rnl_flow_may_send(const struct rnl_flow *f, uint64_t now_ns)
{
    return f->judge || f->probes || f->ping ||
           (rnl_flow_delivers(f) && now_ns >= f->pace.release_ns && rnl_flow_window_open(f, now_ns));
}

int rnl_flow_has_output(struct rnl_flow *f, uint64_t now_ns)
{
    if (f->wanted || f->probes || f->ping)
        return 1;
    if (f->judge)
        rnl_flow_judge(f, now_ns);
    return f->wanted || f->probes || f->ping || rnl_flow_deadline(f) <= now_ns;
}

int rnl_flow_has_more(const struct rnl_flow *f, uint64_t now_ns)
{
    return f->wanted || f->probes || f->ping || f->probe_answer || f->answer_close || f->state != RNL_FLOW_UP ||
           f->received.due_ns <= now_ns || f->mtu.due_ns <= now_ns;
}

int rnl_flow_presses(const struct rnl_flow *f)
{
    return f->wanted || f->probes || f->ping || f->probe_answer || f->answer_close || f->state != RNL_FLOW_UP ||
           f->received.due_ns == 0 || f->sent.count;
}

void rnl_flow_want(struct rnl_flow *f)
{
    f->wanted = 1;
}

void rnl_flow_sated(struct rnl_flow *f)
{
    f->wanted = 0;
}

uint64_t rnl_flow_owes_ns(const struct rnl_flow *f)
{
    return f->received.due_ns;
}

unsigned rnl_flow_ecn(const struct rnl_flow *f)
{
    return rnl_ecn_codepoint(&f->ecn);
}

uint32_t rnl_flow_mtu(const struct rnl_flow *f)
{
    return f->mtu.bytes;
}

void rnl_flow_too_big(struct rnl_flow *f, uint32_t bytes, uint64_t now_ns)
{
    f->count->mtu_fell += (unsigned)rnl_mtu_refused(&f->mtu, bytes, now_ns);
}
