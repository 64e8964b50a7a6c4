/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow.h - a reliable, authenticated, congestion-controlled flow of packets between two hosts, as a pure state machine:
 * time is an argument; it reads no clock, draws no random number, makes no system call, and takes memory only through
 * its table of operations.
 *
 * It carries frames that it does not understand. A packet number is never used twice: the upper side is told what was
 * in a lost packet by its notes, and composes new packets with what is true by then. Each note is reported once in the
 * end, as acked or as lost.
 *
 * The caller's turn:   for each datagram of this connection:  rnl_flow_input
 *                      run the program's handlers, which may make something to send: rnl_flow_has_data
 *                      while (rnl_flow_output(...) > 0) pass it to the network, or rnl_flow_turn, which does both
 *                      call output again when something came, something is wanted, or rnl_flow_deadline has passed
 * Handlers run before output, so that an acknowledgement can ride on the reply.
 *
 * If the program makes no call for a while, nothing happens here, and the peer sees silence. It probes for what it has
 * in flight, ever more seldom (at most max_pto_ns apart). After suspect_ns the flow is SUSPECT at the peer, after
 * dead_ns it is DEAD; nothing is lost if we come back before. A peer that expects nothing of us never learns of our
 * silence, unless keepalive_ns is set or it asks (rnl_flow_ping). Silence is counted only while this side was looking:
 * a process that was stopped does not take the others for dead when it continues.
 *
 * Parts: sent.h (packets in flight), received.h (replay, what to acknowledge), rtt.h (round trips, loss detection),
 * congest.h (three congestion control algorithms, pacing), mtu.h, ecn.h; net/wire/key.h has the keys. flow.c takes
 * packets in and moves the flow to another path (paths.h); flow_out.c writes packets, flow_turn.c into the rooms of the
 * network; flow_time.c has the timers and the end. */
#ifndef RNL_NET_FLOW_FLOW_H
#define RNL_NET_FLOW_FLOW_H

#include <stdbool.h>

#include "net/flow/congest.h"
#include "net/flow/ecn.h"
#include "net/flow/mtu.h"
#include "net/flow/received.h"
#include "net/flow/rtt.h"
#include "net/flow/sent.h"
#include "net/wire/key.h"
#include "net/wire/packet.h"

struct rnl_flow;

/* The upper side. The flow calls it from rnl_flow_input, rnl_flow_output and rnl_flow_migrate only. It may then call
 * rnl_flow_has_data and, from fill, rnl_flow_no_more_data, and no other function of the flow. */
struct rnl_flow_ops {
    /* Composes frames in at[0..room), and up to RNL_FLOW_NOTES notes of what they hold. Returns the bytes used; 0 =
     * there is nothing to send, and rnl_flow_has_data says when there is. A packet without a note need not arrive: it
     * is neither acknowledged nor counted against the window. */
    uint32_t (*fill)(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count);
    void (*acked)(void *ctx, const struct rnl_flow_note *note);
    void (*lost)(void *ctx, const struct rnl_flow_note *note); /* It may have arrived all the same. */
    /* Takes the frames of a packet that was not seen before. RNL_NO_ROOM: not all of them could be taken, so the packet
     * is not acknowledged, and its content comes again in another one. Any other negative status says that the peer
     * broke the protocol, and rnl_flow_input returns it. */
    int (*frames)(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number);
    /* Memory for the records of packets in flight, half a KiB to 290 KiB. If alloc returns NULL, it is asked again
     * later. */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *at, size_t bytes);
    /* How many bytes of this peer's datagrams our socket's buffer can hold. */
    uint32_t (*window)(void *ctx);
    /* A path challenge or a path response has arrived (rnl_flow_path). May be NULL. */
    void (*path)(void *ctx, const struct rnl_path_word *word);
};

/* What all flows of an endpoint have in common; rnl_flow_defaults fills it in. */
struct rnl_flow_config {
    uint32_t granularity_ns;     /* of the caller's timers */
    uint32_t min_pto_ns;         /* of a probe timeout (PTO), without the peer's delay of acknowledgements */
    uint32_t first_pto_ns;       /* before any round trip of the path is known */
    uint32_t max_pto_ns;         /* probes to a silent peer are not further apart */
    uint32_t ack_delay_ns;       /* how long we delay an acknowledgement, a sleeper's wake-up included */
    uint32_t ack_every;          /* packets that are acknowledged together */
    uint64_t suspect_ns;         /* silence of a peer that owes an acknowledgement */
    uint64_t dead_ns;            /* silence after which it is dead; 0 = never */
    uint64_t keepalive_ns;       /* an idle peer is asked whether it is alive; 0 = never */
    uint64_t linger_ns;          /* the memory of records is freed so long after the last acknowledgement */
    uint64_t number_limit;       /* the flow ends at this packet number */
    uint32_t wire_bytes;         /* what a datagram costs on the wire besides its own bytes */
    uint32_t buffer_bytes;       /* what a datagram costs in a socket's buffer besides its own bytes */
    uint16_t mtu[RNL_MTU_SIZES]; /* datagram sizes to try (mtu.h) */
    uint8_t algorithm;           /* enum rnl_congest_algorithm */
    uint8_t ecn;                 /* 1 = try to use it */
    uint8_t plain;               /* 1 = the fast paths are off, for tests that compare */
    struct rnl_congest_limits congest;
    struct rnl_pace_limits pace;
};
void rnl_flow_defaults(struct rnl_flow_config *config);

/* Sums over all flows that share this struct. It is a part of the counters that other processes may read
 * (runnel/counters.h). */
struct __attribute__((may_alias)) rnl_flow_counters {
    uint64_t sent, sent_bytes;         /* data packets, and all their datagram bytes */
    uint64_t received, received_bytes; /* likewise, the new ones */
    uint64_t acks_sent;                /* packets that carried nothing else */
    uint64_t lost, spurious;           /* packets judged lost; of these, packets that had arrived */
    uint64_t probes;                   /* timeouts of a probe */
    uint64_t duplicates;               /* packets that came twice, were replayed, or are too old to tell */
    uint64_t refused;                  /* packets that were cut, changed, forged, or sealed with an expired key */
    uint64_t mtu_raised, mtu_fell;     /* times that the path MTU was raised; that it fell back */
    uint64_t undone;                   /* reductions of the congestion window that were undone */
};

enum rnl_flow_state {
    RNL_FLOW_UP = 0,
    RNL_FLOW_SUSPECT,  /* the peer was silent for suspect_ns; it is probed, and UP again at its next packet */
    RNL_FLOW_CLOSING,  /* we end it; what is in flight is still delivered */
    RNL_FLOW_DRAINING, /* both sides know of the end; only CLOSE is answered, for 3 PTO */
    RNL_FLOW_CLOSED,   /* the end; nothing is sent */
    RNL_FLOW_DEAD      /* the peer was silent for dead_ns, or a limit of numbers or keys is reached; nothing is sent */
};

struct rnl_flow_setup {
    const struct rnl_flow_config *config; /* these four outlive the flow */
    const struct rnl_flow_ops *ops;
    struct rnl_path *path; /* shared by the flows of one class of paths (rtt.h) */
    struct rnl_flow_counters *count;
    void *ctx;
    uint32_t connection;         /* the number by which the peer knows the connection, */
    uint8_t number;              /* and of the flow in it: 0 to 3. Only flow 0 has paths, CLOSE and single packets */
    uint32_t window_bytes;       /* what the peer's socket holds, from its HELLO */
    uint32_t mtu_bytes;          /* the largest datagram that both sides take */
    uint32_t peer_ack_delay_ns;  /* how long the peer may keep an acknowledgement */
    struct rnl_sealer *sealer;   /* outlives the flow */
    uint64_t first_number;       /* of our data packets; 0 = 1 */
    uint64_t first_control;      /* of the control space; likewise */
    const struct rnl_keys *keys; /* copied: from now on only this flow seals with them */
};

void rnl_flow_init(struct rnl_flow *flow, const struct rnl_flow_setup *setup, uint64_t now_ns);
/* Frees its memory. Notes of what is still in flight are reported neither as acked nor as lost. */
void rnl_flow_fini(struct rnl_flow *flow);

enum rnl_flow_verdict { RNL_FLOW_NEW = 0, RNL_FLOW_OLD, RNL_FLOW_REJECTED };
/* Takes a datagram with our connection number; `ecn` are the two bits of its IP header. It may be decrypted in place. A
 * negative result says that the peer broke the protocol (RNL_ERR_PEER_BROKEN, or what `frames` returned): end the
 * connection. */
int rnl_flow_input(struct rnl_flow *flow, unsigned char *datagram, size_t bytes, unsigned ecn, uint64_t now_ns);
/* Writes the next datagram, sealed, and returns its bytes; 0 = none may be sent now. `room` is at least rnl_flow_mtu;
 * with room for the largest size in config->mtu all sizes can be probed. */
uint32_t rnl_flow_output(struct rnl_flow *flow, unsigned char *at, size_t room, uint64_t now_ns);
/* The fast path of rnl_flow_output, for the usual packet of a conversation: nothing is in flight, and all there is to
 * do is to fill it. 0 = this is not so, or there was nothing to fill; then rnl_flow_output writes the same packet. What
 * has to be recorded of the packet is in *alone. rnl_flow_single_sent records it, and is the next call of this flow,
 * made after the packet was sent. */
struct rnl_flow_single_packet {
    struct rnl_packet packet;
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count;
    uint32_t bytes; /* 0 = nothing is to be noted */
};
uint32_t rnl_flow_single(struct rnl_flow *flow, unsigned char *at, size_t room, uint64_t now_ns,
                         struct rnl_flow_single_packet *alone);
void rnl_flow_single_sent(struct rnl_flow *flow, const struct rnl_flow_single_packet *alone, uint64_t now_ns);
/* The network below a flow, for rnl_flow_turn; `ctx` is the flow's. The functions are those of struct rnl_transport. */
struct rnl_flow_port {
    uint32_t (*mtu)(void *ctx); /* the longest datagram that this host sends to the peer */
    /* Gives up to `most` rooms of so many bytes: as many as the content is likely to need, and one more, so that a fill
     * finds nothing left. 0 = there is no room now. */
    int (*reserve)(void *ctx, uint32_t bytes, struct rnl_room *room, int most);
    void (*commit)(void *ctx, const struct rnl_room *room, const uint32_t *used, int n, bool ecn, uint64_t now_ns);
    /* Room for a single packet. NULL = something else is to be sent with it, or more than fits. */
    unsigned char *(*reserve_one)(void *ctx, uint32_t bytes);
    void (*send_one)(void *ctx, const unsigned char *at, uint32_t used, uint64_t now_ns);
    void (*flush)(void *ctx, uint64_t now_ns);
};
struct rnl_flow_want {
    /* Of a backlog of so many bytes, to which more is being composed, only full datagrams are sent; 0 = nothing is
     * being composed. */
    uint64_t backlog;
    bool single; /* a single packet may be sent with less work (rnl_flow_single) */
    bool flush;  /* flush, if batches were sent */
};
/* Sends what may go now, up to a few runs of datagrams. Returns whether there is more to send, after others had their
 * turn; *due_ns is the deadline then. */
bool rnl_flow_turn(struct rnl_flow *flow, const struct rnl_flow_port *port, const struct rnl_flow_want *want,
                   uint64_t now_ns, uint64_t *due_ns);
/* true = output could give data now, if there is any. false = not before something arrives or the deadline passes. */
bool rnl_flow_may_send(const struct rnl_flow *flow, uint64_t now_ns);
/* Judges what arrived since the last output, unless that can wait. false = output has nothing to give now. */
bool rnl_flow_has_output(struct rnl_flow *flow, uint64_t now_ns);
/* After an output that gave a packet, at the same time: false = the next output would give nothing. */
bool rnl_flow_has_more(const struct rnl_flow *flow, uint64_t now_ns);
/* true = something is urgent: it should be sent now and not wait for other content. */
bool rnl_flow_is_urgent(const struct rnl_flow *flow);
/* The upper side has something to fill. */
RNL_INLINE void rnl_flow_has_data(struct rnl_flow *flow);
/* This fill has no more data: it need not be called once more to find that out. */
void rnl_flow_no_more_data(struct rnl_flow *flow);
/* When an acknowledgement is sent in any case, on which other content could ride; UINT64_MAX = none is owed. */
RNL_INLINE uint64_t rnl_flow_owes_ns(const struct rnl_flow *flow);
/* When output has to be called; 0 = now, UINT64_MAX = not before something arrives or is wanted. */
uint64_t rnl_flow_deadline(const struct rnl_flow *flow);
/* The ECN bits of the datagram that output has just given. */
unsigned rnl_flow_ecn(const struct rnl_flow *flow);
/* The longest datagram of data on the present path. */
RNL_INLINE uint32_t rnl_flow_mtu(const struct rnl_flow *flow);
/* A liveness attestation: somebody who knows said at that time that the peer is alive and can be reached. It is not
 * DEAD for its silence before dead_ns have passed since then. */
void rnl_flow_attest(struct rnl_flow *flow, uint64_t when_ns);
/* true = nothing of ours is in flight, and nothing has arrived since then. */
bool rnl_flow_is_idle_since(const struct rnl_flow *flow, uint64_t since_ns);
/* The network rejected a datagram of that size (EMSGSIZE): none is sent in that size again. */
void rnl_flow_too_big(struct rnl_flow *flow, uint32_t bytes, uint64_t now_ns);

/* ---- paths: paths.h decides which one is active; here are its packets, and what a change means ---- */

/* Returns how long nothing that we sent has been acknowledged in spite of several probes, or for as long as these would
 * have taken; 0 = this is not the case. */
uint64_t rnl_flow_stuck_ns(const struct rnl_flow *flow, uint64_t now_ns);
/* The number of the next data packet, and the largest that is acknowledged, 0 = none. */
uint64_t rnl_flow_next(const struct rnl_flow *flow);
uint64_t rnl_flow_acked(const struct rnl_flow *flow);
/* Writes a path challenge or response, sealed, in a datagram of `bytes`, for one address and no other. 0 = not now. */
uint32_t rnl_flow_path(struct rnl_flow *flow, unsigned char *at, size_t room, uint32_t bytes,
                       const struct rnl_path_word *word);
/* true = the CLOSE that output has just given has to go to all addresses, since the one before was not answered. */
bool rnl_flow_close_on_all_paths(const struct rnl_flow *flow);
/* Writes this CLOSE once more, with a number of its own, for another address. Returns its bytes. */
uint32_t rnl_flow_repeat_close(struct rnl_flow *flow, unsigned char *at, size_t room);
/* ---- several flows to one peer (remote/stripe.c) ---- */

/* true = the peer was heard on another flow at `elsewhere_ns`, so long after this one expected an answer that its path
 * is at fault, and not the peer. */
bool rnl_flow_is_cut(const struct rnl_flow *flow, uint64_t elsewhere_ns);
/* Reports the content of all packets in flight as lost, for others to send. The packets stay in flight. */
void rnl_flow_hand_over(struct rnl_flow *flow);
/* Estimates the time until so many bytes would be acknowledged, if they were sent behind what is in flight; UINT64_MAX
 * = unknown. */
uint64_t rnl_flow_takes_ns(const struct rnl_flow *flow, uint64_t bytes);

/* Sends something that the peer acknowledges, if nothing is in flight, to find out whether our packets still arrive. */
void rnl_flow_ping(struct rnl_flow *flow);
/* From now on packets go on another path, on which a challenge and its response took rtt_ns. What was known of the path
 * before is forgotten, and what is in flight there counts as lost and is sent again. Packet numbers, keys and what has
 * been received go on. */
void rnl_flow_migrate(struct rnl_flow *flow, uint64_t rtt_ns, uint64_t now_ns);

/* Ends the flow. If `drain`, everything that `fill` still has and all that is in flight is delivered first, otherwise
 * it is dropped. Then CLOSE tells the peer the `reason` (31 bits of the upper side's), and the peer answers; without an
 * answer the flow is CLOSED after a few PTO. */
void rnl_flow_close(struct rnl_flow *flow, uint32_t reason, int drain, uint64_t now_ns);
RNL_INLINE enum rnl_flow_state rnl_flow_state(const struct rnl_flow *flow);
/* true = nothing is in flight, and nothing is wanted. */
bool rnl_flow_idle(const struct rnl_flow *flow);
/* When data was last sent or received, or when the flow began; never later than the `now_ns` of the last call. */
uint64_t rnl_flow_moved_ns(const struct rnl_flow *flow);
/* Frees the records before linger_ns have passed, if nothing is in flight. */
void rnl_flow_relax(struct rnl_flow *f);
/* true = this is one of our data packets in flight. A peer that quotes its number has seen it. */
bool rnl_flow_in_flight(const struct rnl_flow *flow, uint64_t number);
/* Checks all invariants, for tests and the simulator. NULL, or what is wrong. */
const char *rnl_flow_valid(const struct rnl_flow *flow);

/* The state, to be read through the functions above. */
struct rnl_flow {
    const struct rnl_flow_config *config;
    const struct rnl_flow_ops *ops;
    struct rnl_path *path;
    struct rnl_flow_counters *count;
    void *ctx;
    struct rnl_sealer *sealer;
    struct rnl_keys keys;
    struct rnl_sent sent;
    struct rnl_received received;
    struct rnl_rtt rtt;
    struct rnl_loss loss;
    struct rnl_congest congest;
    struct rnl_pace pace;
    struct rnl_mtu mtu;
    struct rnl_ecn_trust ecn;

    struct rnl_flow_went { /* data packets of this flow alone, with all their datagram bytes */
        uint64_t packets, bytes, lost;
    } went;
    uint64_t control;      /* number of the last packet of the control space */
    uint64_t flight;       /* bytes on the wire, of open packets */
    uint64_t charge;       /* bytes that they take in the peer's socket buffer */
    uint64_t last_sent_ns; /* of a packet that has to be acknowledged, or of its timeout */
    uint64_t attested_ns;  /* the last liveness attestation, 0 = never */
    uint64_t heard_ns;     /* the peer's last packet, or when it was first expected to answer */
    uint64_t retry_ns;     /* when alloc is asked again */
    uint64_t lost_below;   /* no packet from here on was judged lost */
    uint64_t judged;       /* the largest acknowledged packet at the last judgement */
    uint64_t window_at;    /* the largest number that the peer had received when it advertised window_bytes */
    uint32_t window_bytes; /* that the peer's socket buffer holds */
    uint32_t connection, peer_ack_delay_ns;
    uint32_t
        since_request; /* bytes sent since a packet that asked for an acknowledgement at once, if any is in flight */

    /* What acknowledgements said since the last output, which judges it. */
    uint32_t news_acked, news_packets, news_capable, news_rtt_ns, news_hold_ns, news_bytes;
    uint32_t peer_ce, peer_ect;
    uint8_t judge, limited, credited, has_counts;

    uint8_t number;        /* of the flow in its connection */
    uint8_t state;         /* enum rnl_flow_state */
    uint8_t wanted;        /* the upper side may have something */
    uint8_t probes;        /* probe packets that may be sent beyond the window */
    uint8_t ping;          /* a packet has to be sent that is acknowledged, even without content */
    uint8_t timeouts;      /* probe timeouts in a row */
    uint8_t closes, drain; /* CLOSEs sent; whether everything is delivered first */
    uint8_t close_reply_due;
    uint16_t mtu_most;    /* that both sides take */
    uint16_t probe_reply; /* the size of a probe of the peer's that is to be answered; 0 = none */
    uint32_t close_reason, peer_reason;
    uint64_t close_ns; /* CLOSING: when CLOSE is sent next; DRAINING: the end */
};

void rnl_flow_has_data(struct rnl_flow *flow)
{
    flow->wanted = 1;
}
uint64_t rnl_flow_owes_ns(const struct rnl_flow *flow)
{
    return flow->received.due_ns;
}
uint32_t rnl_flow_mtu(const struct rnl_flow *flow)
{
    return flow->mtu.bytes;
}
enum rnl_flow_state rnl_flow_state(const struct rnl_flow *flow)
{
    return (enum rnl_flow_state)flow->state;
}

#endif
