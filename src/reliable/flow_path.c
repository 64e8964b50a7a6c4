/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow_path.c - a flow whose peer is to be reached another way: when that is worth a try, what is said on it, and what
 * is begun anew once it was taken. Which ways there are is not known here. */
#include "base/sometimes.h"
#include "reliable/flow_in.h"

uint64_t rnl_flow_stuck_ns(const struct rnl_flow *f, uint64_t now_ns)
{
    if (f->timeouts < RNL_FLOW_STUCK_TIMEOUTS || f->sent.count == 0 || !rnl_flow_delivers(f))
        return 0;
    uint64_t oldest = rnl_sent_find_open(&f->sent, f->sent.low, f->sent.next),
             at = rnl_sent_at(&f->sent, oldest)->sent_ns;
    return now_ns > at ? now_ns - at : 0;
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

int rnl_flow_ends_anywhere(const struct rnl_flow *f)
{
    return f->closes > 1;
}

void rnl_flow_ask(struct rnl_flow *f)
{
    if (f->sent.count == 0 && rnl_flow_delivers(f))
        f->ping = 1;
}

void rnl_flow_moved(struct rnl_flow *f, uint64_t rtt_ns, uint64_t now_ns)
{
    if (f->state >= RNL_FLOW_DRAINING)
        return;
    for (uint64_t n = f->sent.low; (n = rnl_sent_find_open(&f->sent, n, f->sent.next)) < f->sent.next; n++) {
        struct rnl_sent_packet *record = rnl_sent_at(&f->sent, n);
        record->flags |= RNL_SENT_MOVED;
        rnl_sent_lose(&f->sent, n);
        rnl_flow_landed(f, record);
        f->count->lost++;
        rnl_flow_give_back(f, record);
    }
    f->lost_below = f->sent.next;
    /* The keys' phases, what the peer's socket holds, and the counts of marks that it has said are of the peer. */
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
    rnl_congest_init(&f->congest, f->config->law, &f->config->congest, rnl_flow_packet(f));
    f->pace = (struct rnl_pace){0};
    f->news_acked = f->news_packets = f->news_capable = f->news_rtt_ns = 0;
    f->judge = f->limited = f->credited = f->timeouts = f->probes = 0;
    f->unasked = 0;
    f->last_sent_ns = f->heard_ns = now_ns;
    if (f->state == RNL_FLOW_SUSPECT)
        f->state = RNL_FLOW_UP;
    /* Acknowledgements of ours have likely been lost, too: the peer hears at once what has come. */
    if (f->received.largest) {
        f->received.unsaid += f->received.unsaid == 0;
        f->received.due_ns = now_ns;
    }
    f->ping = 1; /* even if there is nothing to say: the peer learns from where we send now */
    RNL_SOMETIMES(1, "a flow goes on another way");
}
