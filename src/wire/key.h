/* SPDX-License-Identifier: BSD-3-Clause
 *
 * key.h - where keys come from, and the keys of a connection through its phases. Derivation is keyed BLAKE2b
 * (libsodium); all of it is pure, with time as an argument.
 *
 *   job key --+-- "hello"   -> tags of HELLO and UNKNOWN
 *             +-- "cookie"  -> with the process's own secret instead of the job key: stateless answers (hello.h)
 *             +-- "traffic" -> for each direction, with both ranks, incarnations, nonces and the suite:
 *                              phase 0 -- "phase" -> phase 1 -- "phase" -> phase 2 ...
 *
 * Phases. A sender moves to the next key when it has sealed `change_after` packets with this one and knows that the
 * receiver has it, since one of them was acknowledged: so it is never more than one phase ahead. The receiver follows
 * as soon as a packet proves the next key, and keeps the old one for as long as the caller says (3 PTO), since packets
 * overtake each other. The two directions move on their own. The header carries the phase modulo 4, so that the phases
 * that can be about have different bits. */
#ifndef RNL_WIRE_KEY_H
#define RNL_WIRE_KEY_H

#include <stdint.h>

#include "base/error.h"
#include "wire/packet.h"
#include "wire/seal.h"

enum { RNL_JOB_SECRET = 32, RNL_NONCE_BYTES = 16 };

/* Derived once from the job key. */
struct rnl_job_keys {
    unsigned char hello[RNL_JOB_SECRET], traffic[RNL_JOB_SECRET];
};
void rnl_job_keys_derive(struct rnl_job_keys *out, const unsigned char job_key[RNL_JOB_SECRET]);

/* What goes into the keys of one direction: all that both sides know of this connection and of no other. */
struct rnl_direction {
    uint32_t src, dst; /* ranks */
    uint64_t src_incarnation, dst_incarnation;
    unsigned char src_nonce[RNL_NONCE_BYTES], dst_nonce[RNL_NONCE_BYTES];
    struct rnl_suite suite;
};
void rnl_direction_key(unsigned char out[RNL_KEY_BYTES], const struct rnl_job_keys *job, const struct rnl_direction *d);
/* The key of the next phase. `out` may be `key`. */
void rnl_next_key(unsigned char out[RNL_KEY_BYTES], const unsigned char key[RNL_KEY_BYTES]);
/* 16 bytes of keyed hash over `bytes` at `at`, `label` being at most 16 characters. */
void rnl_keyed_hash(unsigned char out[16], const unsigned char key[RNL_JOB_SECRET], const char *label, const void *at,
                    size_t bytes);

/* Limits of one key. The defaults: 2^22 and 2^23 packets if they are encrypted (the limit that RFC 9001, 6.6, states
 * for AES-GCM), else 2^31 and 2^32; 2^36 forgeries, its limit for ChaCha20-Poly1305. */
struct rnl_key_limits {
    uint64_t change_after; /* packets sealed */
    uint64_t never_after;  /* no packet is sealed beyond */
    uint64_t forgeries;    /* packets that did not open */
};
struct rnl_key_limits rnl_key_limits_default(struct rnl_suite suite);

struct rnl_keys { /* of one connection; copied freely, but only one copy may seal */
    struct rnl_key tx, rx, rx_old, rx_next;
    const struct rnl_key_limits *limits;
    struct rnl_suite suite;
    uint8_t tx_confirmed; /* the peer has opened a packet of this phase */
    uint8_t has_old;
    uint32_t tx_phase, rx_phase;
    uint64_t tx_next[2];   /* lowest number not sealed yet, by space: a nonce is used once */
    uint64_t tx_first;     /* first data number of this phase */
    uint64_t tx_sealed;    /* packets of this phase */
    uint64_t rx_old_until; /* ns */
    uint64_t rx_forged;    /* since this phase began */
};
/* `limits` is kept, not copied. */
void rnl_keys_init(struct rnl_keys *k, struct rnl_suite suite, const unsigned char tx[RNL_KEY_BYTES],
                   const unsigned char rx[RNL_KEY_BYTES], const struct rnl_key_limits *limits);

/* Seals a datagram that rnl_packet_encode and rnl_packet_finish have made; sets E and the phase in its header. Numbers
 * of a space have to rise from call to call, in every phase. 0; RNL_NO_ROOM: the key is used up and the next may not be
 * used before an acknowledgement of a packet of this phase has come (the datagram must not be sent, its number may be
 * used again); RNL_ERR_ARG: the number was used before, or it is not in the header. */
RNL_CHECK int rnl_keys_seal(struct rnl_keys *k, struct rnl_sealer *s, unsigned char *at, uint32_t bytes, uint32_t body);
/* A data packet was acknowledged. */
RNL_INLINE void rnl_keys_acked(struct rnl_keys *k, uint64_t number)
{
    if (!k->tx_confirmed && number >= k->tx_first && number < k->tx_next[0])
        k->tx_confirmed = 1;
}
/* The next key waits for an acknowledgement of a data packet: a side that sends none should send one now. */
RNL_INLINE int rnl_keys_want_ack(const struct rnl_keys *k)
{
    return !k->tx_confirmed && k->tx_sealed >= k->limits->change_after;
}
/* Packets that can be sealed before an acknowledgement has to come. */
RNL_INLINE uint64_t rnl_keys_left(const struct rnl_keys *k)
{
    if (k->tx_confirmed && k->tx_sealed >= k->limits->change_after)
        return k->limits->never_after;
    return k->limits->never_after - k->tx_sealed;
}

/* Opens what rnl_packet_decode took (decrypts the body in place). keep_ns: how long the old key is kept if this packet
 * begins a phase. 1; 0: forged, damaged, or too old: drop it, nothing has changed; RNL_ERR_PEER_BROKEN: so many were
 * forged that the key must not be used any more: end the connection. Whether the number was there before is the
 * caller's to know. */
RNL_CHECK int rnl_keys_open(struct rnl_keys *k, struct rnl_sealer *s, unsigned char *at, const struct rnl_packet *p,
                            uint64_t now_ns, uint64_t keep_ns);
void rnl_keys_wipe(struct rnl_keys *k);
/* Zeros that stay, whatever the compiler knows of what comes after. */
void rnl_wipe(void *at, size_t bytes);

#endif
