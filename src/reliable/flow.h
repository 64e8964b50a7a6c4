/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow.h - a reliable, authenticated, congestion-controlled flow of packets between two hosts, as a pure state machine:
 * time is an argument; it reads no clock, draws no random number, makes no system call, and takes memory only through
 * its table of operations.
 *
 * It carries frames that it does not understand. A packet number is never used twice: what was in a lost packet is told
 * to the upper side as notes, and goes into new packets, with the content of that day. Each note is either acked or
 * lost in the end, once.
 *
 * The caller's turn:   for each datagram of this connection:  rnl_flow_input
 *                      run the program's handlers, which may make something to send: rnl_flow_want
 *                      while (rnl_flow_output(...) > 0) pass it to the network
 *                      call output again when something came, something is wanted, or rnl_flow_deadline has passed
 * Handlers before output: so an acknowledgement rides on the answer, if there is one.
 *
 * If the program does not call for a while, or ever again, nothing happens here, and the peer sees silence. What it had
 * in flight it probes for, ever more seldom (at most max_pto apart); after suspect_ns the flow is SUSPECT there, after
 * dead_ns DEAD; nothing is lost if we come back before. A peer that expects nothing of us never learns of our silence,
 * unless keepalive_ns is set, or it asks (rnl_flow_ask). Silence is counted in time during which this side was looking:
 * who was stopped itself does not take the others for dead when it wakes.
 *
 * Parts: sent.h (packets in flight), received.h (replay, what to acknowledge), rtt.h, loss.h, congest.h with its three
 * laws, pace.h, mtu.h, ecn.h; wire/key.h has the keys. flow.c takes packets in, flow_out.c gives packets out,
 * flow_time.c has the timers and the end, flow_path.c what is to be done when the peer is to be reached another way
 * (ways.h). */
#ifndef RNL_RELIABLE_FLOW_H
#define RNL_RELIABLE_FLOW_H

#include "reliable/congest.h"
#include "reliable/ecn.h"
#include "reliable/loss.h"
#include "reliable/mtu.h"
#include "reliable/pace.h"
#include "reliable/received.h"
#include "reliable/rtt.h"
#include "reliable/sent.h"
#include "wire/key.h"
#include "wire/packet.h"

struct rnl_flow;

/* The upper side. Called from input, output and moved only; may call rnl_flow_want and, in fill, rnl_flow_sated,
 * nothing else of the flow. */
struct rnl_flow_ops {
    /* Compose frames into at[0..room) and up to RNL_FLOW_NOTES notes of them. Returns the bytes used, 0 = nothing to
     * send now (then rnl_flow_want says when there is). With no note the packet need not arrive: it is neither
     * acknowledged nor counted against the window. */
    uint32_t (*fill)(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count);
    void (*acked)(void *ctx, const struct rnl_flow_note *note);
    void (*lost)(void *ctx, const struct rnl_flow_note *note); /* or perhaps lost: fill packs it again */
    /* The frames of a packet that was not seen before. RNL_NO_ROOM: not all of it could be taken; it is not
     * acknowledged, and comes again in another packet. Else negative: the peer is broken, and input returns it. */
    int (*frames)(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number);
    /* Records of what is in flight, half a KiB to 290 KiB; alloc may say NULL, then it is asked again later. */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *at, size_t bytes);
    /* What our socket's buffer can hold of this peer's datagrams. */
    uint32_t (*window)(void *ctx);
    /* A challenge, or the answer to one, has come (rnl_flow_path). NULL: nobody asks. */
    void (*path)(void *ctx, const struct rnl_path_word *word);
};

/* The same for all flows of an endpoint; rnl_flow_defaults fills it in. */
struct rnl_flow_config {
    uint32_t granularity_ns;     /* of the caller's timers */
    uint32_t min_pto_ns;         /* of a probe timeout; on top comes what the peer may hold an acknowledgement */
    uint32_t first_pto_ns;       /* before any round trip of the path is known */
    uint32_t max_pto_ns;         /* probes to a silent peer are not further apart */
    uint32_t ack_delay_ns;       /* how long we keep an acknowledgement for company; sleepers: their wake-up too */
    uint32_t ack_every;          /* packets */
    uint64_t suspect_ns;         /* silence of a peer that owes an acknowledgement */
    uint64_t dead_ns;            /* the same; 0 = never */
    uint64_t keepalive_ns;       /* an idle peer is asked for a sign of life; 0 = never */
    uint64_t linger_ns;          /* memory for records is given back so long after the last acknowledgement */
    uint64_t number_limit;       /* packet numbers of a flow: it ends there */
    uint32_t wire_bytes;         /* what a datagram costs on the wire besides its own bytes */
    uint32_t buffer_bytes;       /* what a datagram costs in a socket's buffer besides its own bytes */
    uint16_t mtu[RNL_MTU_SIZES]; /* datagram sizes to try (mtu.h) */
    uint8_t law;                 /* enum rnl_congest_law */
    uint8_t ecn;                 /* 1 = try to use it */
    uint8_t plain;               /* 1 = nothing is done in short, for tests that compare */
    struct rnl_congest_limits congest;
    struct rnl_pace_limits pace;
};
void rnl_flow_defaults(struct rnl_flow_config *config);

/* Sums over the flows that share them. They are a stretch of the counters that others may read (runnel/counters.h). */
struct __attribute__((may_alias)) rnl_flow_counters {
    uint64_t sent, sent_bytes;         /* data packets, and all their datagram bytes */
    uint64_t received, received_bytes; /* likewise, the new ones */
    uint64_t acks_sent;                /* packets that carried nothing else */
    uint64_t lost, spurious;           /* judged so; and then they had come after all */
    uint64_t probes;                   /* timeouts of a probe */
    uint64_t duplicates;               /* or replayed, or too old to tell */
    uint64_t refused;                  /* no packet of this flow: cut, changed, forged, of a key long gone */
    uint64_t mtu_raised, mtu_fell;     /* path MTU found to be larger; taken back */
    uint64_t undone;                   /* cuts of the window that proved wrong */
};

enum rnl_flow_state {
    RNL_FLOW_UP = 0,
    RNL_FLOW_SUSPECT,  /* silent for suspect_ns; still probed, and UP again at its next packet */
    RNL_FLOW_CLOSING,  /* we want to end: what is under way is still delivered */
    RNL_FLOW_DRAINING, /* both sides know; only CLOSE is still answered, for 3 PTO */
    RNL_FLOW_CLOSED,   /* nothing is sent any more */
    RNL_FLOW_DEAD      /* nor here: the peer was silent for dead_ns, or a limit of numbers or keys is reached */
};

struct rnl_flow_setup {
    const struct rnl_flow_config *config; /* these four outlive the flow */
    const struct rnl_flow_ops *ops;
    struct rnl_path *path; /* shared by the flows of one class of paths (rtt.h) */
    struct rnl_flow_counters *count;
    void *ctx;
    uint32_t connection;         /* the number by which the peer knows the flow */
    uint32_t window_bytes;       /* what the peer's socket holds, from its HELLO */
    uint32_t mtu_bytes;          /* the largest datagram that both sides take */
    uint32_t peer_ack_delay_ns;  /* how long the peer may keep an acknowledgement */
    struct rnl_sealer *sealer;   /* outlives the flow */
    uint64_t first_number;       /* of our data packets; 0 = 1 */
    uint64_t first_control;      /* of the control space; likewise */
    const struct rnl_keys *keys; /* copied: from now on only this flow seals with them */
};

void rnl_flow_init(struct rnl_flow *flow, const struct rnl_flow_setup *setup, uint64_t now_ns);
/* Gives its memory back. Notes of what is still in flight are neither acked nor lost. */
void rnl_flow_fini(struct rnl_flow *flow);

enum rnl_flow_took { RNL_FLOW_NEW = 0, RNL_FLOW_OLD, RNL_FLOW_REFUSED };
/* A datagram with our connection number. `ecn`: the two bits of its IP header. The bytes may be changed (decrypted in
 * place). Negative: the peer broke the protocol (RNL_ERR_PEER_BROKEN, or what `frames` said); end the connection. */
int rnl_flow_input(struct rnl_flow *flow, unsigned char *datagram, size_t bytes, unsigned ecn, uint64_t now_ns);
/* The next datagram, sealed: its bytes, 0 = nothing may go now. room >= rnl_flow_mtu, and more for probes of the MTU:
 * room of the largest size in config->mtu lets all be tried. */
uint32_t rnl_flow_output(struct rnl_flow *flow, unsigned char *at, size_t room, uint64_t now_ns);
/* The same for the usual packet of a conversation, in short: nothing is open, nothing to be done but to fill it. 0 = it
 * is not so, or there was nothing to fill: for rnl_flow_output, which gives the same packet. What is to be noted of it
 * is in *alone, and rnl_flow_lone_went notes it: next of all calls, but when the packet is on its way already. */
struct rnl_flow_alone {
    struct rnl_packet packet;
    struct rnl_flow_note notes[RNL_FLOW_NOTES];
    unsigned count;
    uint32_t bytes; /* 0 = nothing is to be noted */
};
uint32_t rnl_flow_lone(struct rnl_flow *flow, unsigned char *at, size_t room, uint64_t now_ns,
                       struct rnl_flow_alone *alone);
void rnl_flow_lone_went(struct rnl_flow *flow, const struct rnl_flow_alone *alone, uint64_t now_ns);
/* Could it give out data now, if there is any? Else not before something came, or its deadline. */
int rnl_flow_may_send(const struct rnl_flow *flow, uint64_t now_ns);
/* Takes in what came since the last output, unless that can wait: is there anything to give out now? If not, output
 * need not be called. */
int rnl_flow_has_output(struct rnl_flow *flow, uint64_t now_ns);
/* After an output that gave something, at the same time: may another one give more? 0 = surely not. */
int rnl_flow_has_more(const struct rnl_flow *flow, uint64_t now_ns);
/* Something that came, or that is wanted, should not wait for company. */
int rnl_flow_presses(const struct rnl_flow *flow);
/* The upper side has something to fill. */
void rnl_flow_want(struct rnl_flow *flow);
/* This fill gives all there is: it need not be called once more to hear that. */
void rnl_flow_sated(struct rnl_flow *flow);
/* When an acknowledgement goes in any case, and could take something along; UINT64_MAX = none is owed. */
uint64_t rnl_flow_owes_ns(const struct rnl_flow *flow);
/* Call output by then; 0 = now, UINT64_MAX = not before something comes or is wanted. */
uint64_t rnl_flow_deadline(const struct rnl_flow *flow);
/* The two ECN bits for the datagram that output has just given. */
unsigned rnl_flow_ecn(const struct rnl_flow *flow);
/* The largest datagram with data today. */
uint32_t rnl_flow_mtu(const struct rnl_flow *flow);
/* Somebody who knows said at that time that the peer lives and can be reached: it is not DEAD for its silence before
 * dead_ns from then on. */
void rnl_flow_vouch(struct rnl_flow *flow, uint64_t when_ns);
/* Nothing of ours is under way, and nothing was heard since then. */
int rnl_flow_quiet(const struct rnl_flow *flow, uint64_t since_ns);
/* The network refused a datagram of that size (EMSGSIZE): it is not sent again in that size. */
void rnl_flow_too_big(struct rnl_flow *flow, uint32_t bytes, uint64_t now_ns);

/* ---- another way to the peer: which, is known above; here is what is said about it ---- */

/* For how long nothing that we sent was acknowledged although it was asked about several times; 0 = that is not so. */
uint64_t rnl_flow_stuck_ns(const struct rnl_flow *flow, uint64_t now_ns);
/* Number of the next data packet; largest that is acknowledged, 0 = none. */
uint64_t rnl_flow_next(const struct rnl_flow *flow);
uint64_t rnl_flow_acked(const struct rnl_flow *flow);
/* A challenge or the answer to one, sealed, in a datagram of `bytes`: for one address and no other. 0 = not now. */
uint32_t rnl_flow_path(struct rnl_flow *flow, unsigned char *at, size_t room, uint32_t bytes,
                       const struct rnl_path_word *word);
/* A CLOSE that output has just given is to go to all addresses: the one before was not answered. */
int rnl_flow_ends_anywhere(const struct rnl_flow *flow);
/* That CLOSE once more, with a number of its own, for another address: its bytes. */
uint32_t rnl_flow_end(struct rnl_flow *flow, unsigned char *at, size_t room);
/* Something that the peer acknowledges is sent, if nothing is under way: does what we send still arrive? */
void rnl_flow_ask(struct rnl_flow *flow);
/* From now on packets go another way, on which a question and its answer took rtt_ns. What was known of the way before
 * is forgotten, and what is under way there counts as lost: it goes out again. Numbers, keys and what has been received
 * go on. */
void rnl_flow_moved(struct rnl_flow *flow, uint64_t rtt_ns, uint64_t now_ns);

/* Everything that `fill` still has, and what is in flight, is delivered first if `drain`, else dropped. Then the peer
 * is told (`reason`: 31 bits, the upper side's), and answers; without an answer it is CLOSED after a few PTO. */
void rnl_flow_close(struct rnl_flow *flow, uint32_t reason, int drain, uint64_t now_ns);
enum rnl_flow_state rnl_flow_state(const struct rnl_flow *flow);
/* Nothing in flight, nothing wanted. */
int rnl_flow_idle(const struct rnl_flow *flow);
/* When data last came or went; when the flow began, if never. Never later than the `now_ns` of the last call. */
uint64_t rnl_flow_moved_ns(const struct rnl_flow *flow);
/* The records of what was in flight are given back before linger_ns have passed, if nothing is. */
void rnl_flow_relax(struct rnl_flow *f);
/* Is that one of our data packets whose fate is open? (Who quotes it has seen it.) */
int rnl_flow_in_flight(const struct rnl_flow *flow, uint64_t number);
/* Invariants, for tests and the simulator: NULL, or what is wrong. Walks over everything. */
const char *rnl_flow_valid(const struct rnl_flow *flow);

/* The state. Read it through the functions above. */
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

    uint64_t control;      /* number of the last packet of the control space */
    uint64_t flight;       /* bytes on the wire, of open packets */
    uint64_t charge;       /* what they take in the peer's socket */
    uint64_t last_sent_ns; /* a packet that is to be acknowledged, or its timeout */
    uint64_t vouched_ns;   /* somebody else did, 0 = never */
    uint64_t heard_ns;     /* of the peer; or when it was first expected to answer */
    uint64_t retry_ns;     /* no memory before */
    uint64_t lost_below;   /* no packet from here on was judged lost */
    uint64_t judged;       /* the largest acknowledged packet at the last judgement */
    uint64_t window_at;    /* what the peer had received when it said that its socket holds ... */
    uint32_t window_bytes; /* ... so much */
    uint32_t connection, peer_ack_delay_ns;
    uint32_t unasked; /* bytes sent since a packet that is to be acknowledged at once, if any are under way */

    /* What came since the last output, to be judged there. */
    uint32_t news_acked, news_packets, news_capable, news_rtt_ns, news_hold_ns;
    uint32_t peer_ce, peer_ect;
    uint8_t judge, limited, credited, has_counts;

    uint8_t state;         /* enum rnl_flow_state */
    uint8_t wanted;        /* the upper side may have something */
    uint8_t probes;        /* packets that may go beyond the window */
    uint8_t ping;          /* something that is acknowledged, even with nothing to say */
    uint8_t timeouts;      /* in a row */
    uint8_t closes, drain; /* CLOSEs sent; wait until all is delivered */
    uint8_t answer_close;
    uint16_t mtu_most;     /* that both sides take */
    uint16_t probe_answer; /* the size that the peer asked about; 0 = none */
    uint32_t close_reason, peer_reason;
    uint64_t close_ns; /* CLOSING: when CLOSE goes out, again; DRAINING: the end */
};

#endif
