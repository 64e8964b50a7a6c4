/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.h - how two processes of a job make a connection, as a pure state machine. Time is an argument, and all
 * randomness comes from one secret that each process is given at its start.
 *
 * Both sides run the same machine; either may begin, or both. At any time a process has one nonce for each peer: a
 * keyed hash of (peer, its address, generation) under its secret, so it need not be stored. A connection is a pair of
 * nonces, and its keys are derived from both, and from both incarnations. A process that receives its own nonce back,
 * in a HELLO of this job, knows that the peer is there, at that address, now. This and nothing else makes a connection,
 * and then the generation moves on: no earlier HELLO can make another one, and no pair of nonces comes again.
 *
 *   A                                             B
 *   OPENING  -- nonce a, -,      WANT ----------> IDLE: keeps nothing, answers
 *            <- nonce b, echo a           ------
 *   MADE     -- nonce a, echo b, UP   ----------> UP
 *   UP       <- nonce b, echo a, UP SURE -------
 *
 *         +----------- open ----------+         OPENING  says WANT again and again, until it gives up: FAILED
 *         |                           v         MADE     has the keys, takes packets in and sends none; says UP again
 *       IDLE                       OPENING               and again, until it gives up: FAILED. If another incarnation
 *         |                           |                  replies, it gets a HELLO with our next nonce
 *         +--- our nonce came back ---+         UP       knows that the peer has the same pair; until the end, or until
 *         |                           |                  another incarnation of the peer makes a connection. If the
 *         v                           v                  same one makes a second, content in flight in the first would
 *       MADE ----> UP ----> end: IDLE                    be delivered twice or never, so we reject that incarnation
 *
 * A HELLO is answered by at most one HELLO, of the same length, to where it came from. One that neither wants a
 * connection nor says that its sender has one is never answered. In UP only the echo of our next nonce ends the
 * connection, so a HELLO of the past ends nothing. tests/model/handshake.pml has these rules with loss, replay,
 * restarts and every interleaving. */
#ifndef RNL_NET_FLOW_HANDSHAKE_H
#define RNL_NET_FLOW_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/wire/hello.h"
#include "net/wire/key.h"

enum { RNL_HS_ADDRESS = 60, RNL_HS_RANKS_MAX = 1 << 20, RNL_HS_SECRET = 32 };

struct rnl_hs_config {
    uint32_t rank, ranks;
    uint64_t incarnation;                /* of this process; not 0 */
    unsigned char secret[RNL_HS_SECRET]; /* random, of this process alone */
    const struct rnl_job_keys *job;      /* outlives the handshake */
    uint8_t protect;                     /* enum rnl_protect, the same in the whole job */
    uint8_t ciphers;                     /* bits: rnl_ciphers.have */
    uint16_t mtu_bytes;                  /* the peer is told these three: the longest datagram that we take, */
    uint32_t window_bytes;               /* how many bytes of datagrams our socket holds, */
    uint32_t ack_delay_ns;               /* and how long we may delay an acknowledgement */
    uint64_t first_ns, most_ns;          /* the interval between HELLOs, which doubles from the first to the most */
    uint64_t give_up_ns;                 /* OPENING and MADE end after so long */
};

struct rnl_hs_counters { /* HELLOs and UNKNOWNs that arrived, by what became of them */
    uint64_t taken;      /* were accepted, also if they repeated what is known */
    uint64_t answered;   /* were answered, whatever else they count as */
    uint64_t forged, bad, version, mismatch;
    uint64_t stale;    /* were from or for another incarnation than the present one */
    uint64_t strayed;  /* were for another rank, from no rank, or from ourselves */
    uint64_t unknowns; /* UNKNOWNs that we sent */
};

struct rnl_handshake {
    struct rnl_hs_config config;
    uint32_t base; /* generation of peers without a record */
    struct rnl_hs_counters count;
    uint64_t unknown_ns; /* rate limit: UNKNOWN may be sent while this is at most one burst ahead of now */
};

enum rnl_hs_state { RNL_HS_IDLE = 0, RNL_HS_OPENING, RNL_HS_MADE, RNL_HS_UP }; /* drawn above */

struct rnl_hs_peer { /* one for each rank that we talk to; zeroed, then rnl_hs_peer_init */
    uint8_t state, tries, failure, address_bytes;
    uint32_t rank, generation;
    uint32_t rx_connection;
    uint32_t as;                     /* the rank by which this peer calls us; in a job our rank */
    const struct rnl_job_keys *keys; /* of this pair; in a job those of all */
    uint64_t expected; /* the incarnation that the job says is alive, 0 = not known yet: no other is accepted */
    uint64_t refused;  /* an incarnation that is over for us and not accepted again; 0 = none */
    uint64_t next_ns, give_up_ns;
    uint64_t incarnation; /* MADE, UP: the peer's */
    unsigned char mine[RNL_NONCE_BYTES], theirs[RNL_NONCE_BYTES];
    unsigned char address[RNL_HS_ADDRESS]; /* OPENING: where HELLOs go; MADE, UP: the address that was proved */
};

/* What a call has caused. The first four bits may come together. */
enum {
    RNL_HS_GONE = 1, /* the old connection is over, since the peer restarted or never confirmed it: drop it first */
    RNL_HS_CONNECTED = 2,  /* there is a new one, in `made`: receive packets, send none yet */
    RNL_HS_CONFIRMED = 4,  /* it is up: send */
    RNL_HS_FAILED = 8,     /* we gave up and are IDLE; `status` says why, and a record is there */
    RNL_HS_NEEDS_PEER = 16 /* an input without a record needs one: make it, and call again */
};
struct rnl_hs_made {
    uint32_t tx_connection, rx_connection; /* the numbers in packets that we send, and in those that arrive */
    uint64_t incarnation;
    uint64_t first_number, first_control; /* of our packets; nobody else knows them before one of that space is sent */
    struct rnl_suite suite;
    unsigned char tx[RNL_KEY_BYTES], rx[RNL_KEY_BYTES];
    uint16_t mtu_bytes; /* the lesser of both sides' */
    uint32_t window_bytes, ack_delay_ns;
};
struct rnl_hs_step {
    unsigned events;
    int status;     /* FAILED */
    uint32_t bytes; /* of `out` to be sent to the source of the input, or to peer->address; 0 = nothing */
    struct rnl_hs_made made;
};

RNL_CHECK int rnl_hs_init(struct rnl_handshake *hs, const struct rnl_hs_config *config); /* 0, RNL_ERR_ARG */
void rnl_hs_peer_init(const struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t rank, uint64_t expected);
/* After rnl_hs_peer_init, for processes that were introduced and are no job: the two call each other by ranks that each
 * has chosen, and have keys that nobody else has. `keys` outlive the record. The process of another pair cannot make a
 * HELLO of this one, whatever rank it names. */
void rnl_hs_peer_pair(struct rnl_hs_peer *peer, uint32_t as, const struct rnl_job_keys *keys);
/* Has to be called before a record is thrown away, so that its nonces do not come again. */
void rnl_hs_peer_drop(struct rnl_handshake *hs, struct rnl_hs_peer *peer);
/* The job says which incarnation of that rank is alive. Others are not accepted, and a connection to one is over, which
 * 1 says (as RNL_HS_GONE does). */
bool rnl_hs_expect(struct rnl_hs_peer *peer, uint64_t incarnation);

/* We want a connection to that address. If one is being opened, this only restarts its time; if there is one, it does
 * nothing. The next rnl_hs_output gives the first HELLO. 0, RNL_ERR_ARG. */
RNL_CHECK int rnl_hs_open(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const void *address,
                          uint32_t address_bytes, uint64_t now_ns);
/* The rank that a HELLO claims to come from, to find its record, or UINT32_MAX. */
uint32_t rnl_hs_claimed_rank(const struct rnl_handshake *hs, const unsigned char *at, size_t bytes);
/* A HELLO came from `address`. `peer` is its record, NULL if there is none. `out` has `room` bytes and is not `at`. */
void rnl_hs_input(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const unsigned char *at, size_t bytes,
                  const void *address, uint32_t address_bytes, uint64_t now_ns, unsigned char *out, size_t room,
                  struct rnl_hs_step *step);
/* The deadline has passed: HELLO is sent again to peer->address, or the handshake has FAILED. */
void rnl_hs_output(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint64_t now_ns, unsigned char *out, size_t room,
                   struct rnl_hs_step *step);
RNL_INLINE uint64_t rnl_hs_deadline(const struct rnl_hs_peer *peer)
{
    return peer->state == RNL_HS_OPENING || peer->state == RNL_HS_MADE ? peer->next_ns : UINT64_MAX;
}
/* A packet of the connection was authentic, so the peer has the connection. RNL_HS_CONFIRMED if that is news, else
 * 0. */
unsigned rnl_hs_confirm(struct rnl_hs_peer *peer);
/* The connection is over. refuse = 1: this incarnation of the peer is not accepted again. */
void rnl_hs_end(struct rnl_hs_peer *peer, int refuse);

/* The rank of the peer that one of our connection numbers belongs to; so they need no table. */
RNL_INLINE uint32_t rnl_hs_connection_rank(uint32_t connection)
{
    return connection & (RNL_HS_RANKS_MAX - 1);
}

/* A packet was decoded, not opened, whose connection does not exist: writes UNKNOWN for where it came from and returns
 * its bytes. 0 = too many were sent, or the packet is shorter than the answer, or of a type that is not answered. */
uint32_t rnl_hs_unknown(struct rnl_handshake *hs, const struct rnl_packet *p, uint64_t now_ns, unsigned char *out,
                        size_t room);
/* UNKNOWN came from peer->address. true = this peer says that it does not have our connection `tx_connection`, and
 * quotes the packet *number of the space *control; if that packet is in flight, believe it, and the connection is over.
 * 0 = there is nothing to do; in MADE it is 0, and HELLO is sent at once. */
bool rnl_hs_unknown_said(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t tx_connection,
                         const unsigned char *at, size_t bytes, uint64_t now_ns, uint64_t *number, unsigned *control);

#endif
