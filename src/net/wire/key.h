/* SPDX-License-Identifier: BSD-3-Clause
 *
 * key.h - derives keys, and changes the keys of a connection from phase to phase. Derivation is keyed BLAKE2b
 * (libsodium); everything here is pure, with time as an argument.
 *
 *   job key --+-- "hello"   -> tags of HELLO and UNKNOWN
 *             +-- "cookie"  -> with the process's own secret instead of the job key: stateless replies (hello.h)
 *             +-- "traffic" -> for each direction, with both ranks, incarnations, nonces and the suite:
 *                              phase 0 -- "phase" -> phase 1 -- "phase" -> phase 2 ...
 *                                 |
 *                                 +-- "flow" -> "flow", with its number -> phase 0 of a further flow, and so on
 *
 * A sender moves to the next phase, with the next key, when it has sealed `change_after` packets with the present key
 * and one of them was acknowledged, which shows that the receiver has this key: so it is never more than one phase
 * ahead. The receiver follows as soon as a packet opens with the next key, and keeps the old one for as long as the
 * caller says (3 PTO), since packets overtake each other. Each direction has phases of its own. The header carries the
 * phase modulo 4, which tells apart all phases that can occur at one time. */
#ifndef RNL_NET_WIRE_KEY_H
#define RNL_NET_WIRE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/wire/packet.h"
#include "net/wire/seal.h"

enum { RNL_JOB_SECRET = 32, RNL_NONCE_BYTES = 16 };

/* The keys that are derived once from the job key. */
struct rnl_job_keys {
    unsigned char hello[RNL_JOB_SECRET], traffic[RNL_JOB_SECRET];
};
void rnl_job_keys_derive(struct rnl_job_keys *out, const unsigned char job_key[RNL_JOB_SECRET]);

/* The input of the key of one direction: what both sides know of this connection, and what no other connection has. */
struct rnl_direction {
    uint32_t src, dst; /* ranks */
    uint64_t src_incarnation, dst_incarnation;
    unsigned char src_nonce[RNL_NONCE_BYTES], dst_nonce[RNL_NONCE_BYTES];
    struct rnl_suite suite;
};
void rnl_direction_key(unsigned char out[RNL_KEY_BYTES], const struct rnl_job_keys *job, const struct rnl_direction *d);
/* Derives the key of the next phase. `out` may be `key`. */
void rnl_next_key(unsigned char out[RNL_KEY_BYTES], const unsigned char key[RNL_KEY_BYTES]);
/* Derives the key of a further flow of the connection, in one direction. `out` may be `key`. */
void rnl_flow_key(unsigned char out[RNL_KEY_BYTES], const unsigned char key[RNL_KEY_BYTES], uint32_t flow);
/* Makes a keyed hash of 16 bytes over `bytes` at `at`; `label` has at most 16 characters. */
void rnl_keyed_hash(unsigned char out[16], const unsigned char key[RNL_JOB_SECRET], const char *label, const void *at,
                    size_t bytes);

/* Limits of one key, in packets. The defaults are those of RFC 9001, 6.6: 2^22 and 2^23 for packets that are encrypted
 * (its limit for AES-GCM), 2^31 and 2^32 for others, and 2^36 forgeries (its limit for ChaCha20-Poly1305). */
struct rnl_key_limits {
    uint64_t change_after; /* sealed packets after which the key is changed */
    uint64_t never_after;  /* sealed packets after which none is sealed with this key */
    uint64_t forgeries;    /* packets that did not open, after which the key must not be used any more */
};
struct rnl_key_limits rnl_key_limits_default(struct rnl_suite suite);

struct rnl_keys { /* of one connection; may be copied, but only one copy may seal */
    struct rnl_key tx, rx, rx_old, rx_next;
    const struct rnl_key_limits *limits;
    struct rnl_suite suite;
    uint8_t tx_confirmed; /* the peer has opened a packet of this phase */
    uint8_t has_old;
    uint32_t tx_phase, rx_phase;
    uint64_t tx_next[2];   /* lowest number not sealed yet, by space, so that no nonce is used twice */
    uint64_t tx_first;     /* first data number of this phase */
    uint64_t tx_sealed;    /* packets sealed in this phase */
    uint64_t rx_old_until; /* when the old key is given up, ns */
    uint64_t rx_forged;    /* packets that did not open since this phase began */
};
/* The keys refer to `limits`, which has to outlive them. */
void rnl_keys_init(struct rnl_keys *k, struct rnl_suite suite, const unsigned char tx[RNL_KEY_BYTES],
                   const unsigned char rx[RNL_KEY_BYTES], const struct rnl_key_limits *limits);

/* Seals a datagram that rnl_packet_encode and rnl_packet_finish have made, and sets E and the phase in its header.
 * Numbers of a space have to rise from call to call, across phases. Returns 0. RNL_NO_ROOM: the key is used up, and the
 * next one may not be used before a packet of this phase is acknowledged; the datagram must not be sent, and its number
 * may be used again. RNL_ERR_ARG: the number was used before, or is the largest possible one. */
RNL_CHECK int rnl_keys_seal(struct rnl_keys *k, struct rnl_sealer *s, unsigned char *at, uint32_t bytes, uint32_t body);
/* Notes that a data packet was acknowledged. */
RNL_INLINE void rnl_keys_acked(struct rnl_keys *k, uint64_t number)
{
    if (!k->tx_confirmed && number >= k->tx_first && number < k->tx_next[0])
        k->tx_confirmed = 1;
}
/* true = the change to the next key waits for the acknowledgement of a data packet, so one should be sent now if none
 * is in flight. */
RNL_INLINE bool rnl_keys_ack_wanted(const struct rnl_keys *k)
{
    return !k->tx_confirmed && k->tx_sealed >= k->limits->change_after;
}
/* Returns how many packets can be sealed before one has to be acknowledged. */
RNL_INLINE uint64_t rnl_keys_left(const struct rnl_keys *k)
{
    if (k->tx_confirmed && k->tx_sealed >= k->limits->change_after)
        return k->limits->never_after;
    return k->limits->never_after - k->tx_sealed;
}

/* Opens a packet that rnl_packet_decode accepted, and decrypts its body in place. keep_ns says how long the old key is
 * kept if this packet begins a phase. 1 = its tag is right. 0 = it is forged, damaged or too old: drop it, nothing has
 * changed. RNL_ERR_PEER_BROKEN: so many were forged that the key must not be used any more; end the connection. The
 * caller checks whether the number is new. */
RNL_CHECK int rnl_keys_open(struct rnl_keys *k, struct rnl_sealer *s, unsigned char *at, const struct rnl_packet *p,
                            uint64_t now_ns, uint64_t keep_ns);
void rnl_keys_wipe(struct rnl_keys *k);
/* Overwrites memory with zeros, which the compiler cannot leave out. */
void rnl_wipe(void *at, size_t bytes);

#endif
