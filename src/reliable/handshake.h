/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.h - how two processes of a job come to a connection, as a pure state machine: time is an argument, and all
 * chance is in one secret that each process is given at its start.
 *
 * Both sides run the same machine; either may begin, or both. To each peer a process has at any time one nonce, a keyed
 * hash of (peer, its address, generation) under its secret, so it need not remember it. A connection is a pair of
 * nonces, and its keys come from both, and from both incarnations. Who hears his own nonce back, in a HELLO of this
 * job, knows that the peer is there, at that address, now; this, and nothing else, makes a connection, and then the
 * generation moves on: no HELLO of before can make another one, nor a pair of nonces come again.
 *
 *   A                                             B
 *   OPENING  -- nonce a, -,      WANT ----------> IDLE: keeps nothing, answers
 *            <- nonce b, echo a           ------
 *   MADE     -- nonce a, echo b, UP   ----------> UP
 *   UP       <- nonce b, echo a, UP SURE -------
 *
 *         +----------- open ----------+         OPENING  says WANT again and again, until it gives up: FAILED
 *         |                           v         MADE     has the keys, takes packets in and sends none; says UP again
 *       IDLE                       OPENING               and again, until it gives up: FAILED. Who answers and
 *         |                           |                  is another incarnation is asked with our next nonce
 *         +--- our nonce came back ---+         UP       heard that the peer has the same pair; until the end, or until
 *         |                           |                  another incarnation of the peer makes a connection. The same
 *         v                           v                  one does not make a second: what was under way in the first
 *       MADE ----> UP ----> end: IDLE                    would come twice or never, so it is over for us
 *
 * A HELLO is answered by at most one, of the same length, to where it came from; what neither wants a connection nor
 * says it has one is never answered. In UP only the echo of our next nonce ends the connection there is: so a HELLO of
 * the past ends nothing. tests/model/handshake.pml has the rules with loss, replay, restarts and every interleaving. */
#ifndef RNL_RELIABLE_HANDSHAKE_H
#define RNL_RELIABLE_HANDSHAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/hello.h"
#include "wire/key.h"

enum { RNL_HS_ADDRESS = 60, RNL_HS_RANKS_MAX = 1 << 20, RNL_HS_SECRET = 32 };

struct rnl_hs_config {
    uint32_t rank, ranks;
    uint64_t incarnation;                /* of this process; not 0 */
    unsigned char secret[RNL_HS_SECRET]; /* random, of this process alone */
    const struct rnl_job_keys *job;      /* outlives it */
    uint8_t protect;                     /* enum rnl_protect: the same in all of the job */
    uint8_t ciphers;                     /* bits: rnl_ciphers.have */
    uint16_t mtu_bytes;                  /* what the peer is told: the longest datagram that is taken, */
    uint32_t window_bytes;               /* what the socket holds, */
    uint32_t ack_delay_ns;               /* how long an acknowledgement may be kept */
    uint64_t first_ns, most_ns;          /* between HELLOs: first, doubling up to most */
    uint64_t give_up_ns;                 /* after so long in OPENING, or in MADE */
};

struct rnl_hs_counters { /* HELLOs and UNKNOWNs that came, by what became of them */
    uint64_t taken;      /* moved something, or said again what is known */
    uint64_t answered;   /* of all */
    uint64_t forged, bad, version, mismatch;
    uint64_t stale;    /* from or for another incarnation than the one that is there */
    uint64_t strayed;  /* for another rank, from no rank, from ourselves */
    uint64_t unknowns; /* said by us */
};

struct rnl_handshake {
    struct rnl_hs_config config;
    uint32_t base; /* generation of peers without a record */
    struct rnl_hs_counters count;
    uint64_t unknown_ns; /* when the next UNKNOWN may go out, less a burst */
};

enum rnl_hs_state { RNL_HS_IDLE = 0, RNL_HS_OPENING, RNL_HS_MADE, RNL_HS_UP };

struct rnl_hs_peer { /* one for each rank that we talk to; zeroed, then rnl_hs_peer_init */
    uint8_t state, tries, trouble, address_bytes;
    uint32_t rank, generation;
    uint32_t rx_connection;
    uint64_t expected; /* incarnation that the job told, 0 = none yet: no other is listened to */
    uint64_t refused;  /* incarnation that is over for us: not listened to again; 0 = none */
    uint64_t next_ns, give_up_ns;
    uint64_t incarnation; /* MADE, UP: the peer's */
    unsigned char mine[RNL_NONCE_BYTES], theirs[RNL_NONCE_BYTES];
    unsigned char address[RNL_HS_ADDRESS]; /* OPENING: where HELLOs go; MADE, UP: which was proved, for good */
};

/* What a call has caused; any of the first bits together. */
enum {
    RNL_HS_GONE = 1, /* the connection that was there is over (restarted peer, or never confirmed): drop it first */
    RNL_HS_CONNECTED = 2,  /* a new one, in `made`: take packets in, send none yet */
    RNL_HS_CONFIRMED = 4,  /* it is up: send */
    RNL_HS_FAILED = 8,     /* we wanted one and give up: IDLE; `status`, and the sentence is recorded */
    RNL_HS_NEEDS_PEER = 16 /* of an input without a record: make one, and call it again with that */
};
struct rnl_hs_made {
    uint32_t tx_connection, rx_connection; /* in the packets that we send; in those that come */
    uint64_t incarnation;
    uint64_t first_number, first_control; /* of our packets: nobody knows them before one of that space went out */
    struct rnl_suite suite;
    unsigned char tx[RNL_KEY_BYTES], rx[RNL_KEY_BYTES];
    uint16_t mtu_bytes; /* the lesser of both */
    uint32_t window_bytes, ack_delay_ns;
};
struct rnl_hs_step {
    unsigned events;
    int status;     /* FAILED */
    uint32_t bytes; /* of `out` to send, 0 = nothing; to the source of an input, or to peer->address */
    struct rnl_hs_made made;
};

RNL_CHECK int rnl_hs_init(struct rnl_handshake *hs, const struct rnl_hs_config *config); /* 0, RNL_ERR_ARG */
void rnl_hs_peer_init(const struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t rank, uint64_t expected);
/* Before a record is thrown away: nonces of it do not come again. */
void rnl_hs_peer_drop(struct rnl_handshake *hs, struct rnl_hs_peer *peer);
/* The job says which incarnation of that rank lives: others are not listened to, and a connection to one is over:
 * 1 = that happened (as RNL_HS_GONE). */
int rnl_hs_expect(struct rnl_hs_peer *peer, uint64_t incarnation);

/* We want a connection, at that address. Does nothing but restart the time if one is being opened, nothing if there is
 * one. The first HELLO comes out of the next rnl_hs_output. 0, RNL_ERR_ARG. */
RNL_CHECK int rnl_hs_open(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const void *address,
                          uint32_t address_bytes, uint64_t now_ns);
/* The rank that a HELLO claims to come from, or UINT32_MAX: to find the record. */
uint32_t rnl_hs_claims(const struct rnl_handshake *hs, const unsigned char *at, size_t bytes);
/* A HELLO came from `address`. peer: its record, NULL = there is none. `room` is of `out`, which may not be `at`. */
void rnl_hs_input(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const unsigned char *at, size_t bytes,
                  const void *address, uint32_t address_bytes, uint64_t now_ns, unsigned char *out, size_t room,
                  struct rnl_hs_step *step);
/* The deadline has come: HELLO again to peer->address, or FAILED. */
void rnl_hs_output(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint64_t now_ns, unsigned char *out, size_t room,
                   struct rnl_hs_step *step);
RNL_INLINE uint64_t rnl_hs_deadline(const struct rnl_hs_peer *peer)
{
    return peer->state == RNL_HS_OPENING || peer->state == RNL_HS_MADE ? peer->next_ns : UINT64_MAX;
}
/* A packet of the connection opened: so the peer has it. RNL_HS_CONFIRMED if that is news, else 0. */
unsigned rnl_hs_heard(struct rnl_hs_peer *peer);
/* The connection is over. refuse = 1: whatever this incarnation of the peer says later is not listened to. */
void rnl_hs_end(struct rnl_hs_peer *peer, int refuse);

/* The rank of the peer that a connection number of ours is of: the numbers need no table. */
RNL_INLINE uint32_t rnl_hs_connection_rank(uint32_t connection)
{
    return connection & (RNL_HS_RANKS_MAX - 1);
}

/* A packet came (decoded, not opened) whose connection is not there: composes UNKNOWN to where it came from, or says 0:
 * too many were said, or the packet is shorter than the answer, or none that is answered. */
uint32_t rnl_hs_unknown(struct rnl_handshake *hs, const struct rnl_packet *p, uint64_t now_ns, unsigned char *out,
                        size_t room);
/* UNKNOWN came from peer->address. 1: this peer says that it does not have our connection `tx_connection`, quoting the
 * packet *number of the space *control: believe it only if that one is in flight, then the connection is over. 0:
 * nothing to do. In MADE it is 0, and HELLO goes out at once. */
int rnl_hs_unknown_said(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t tx_connection,
                        const unsigned char *at, size_t bytes, uint64_t now_ns, uint64_t *number, unsigned *control);

#endif
