/* SPDX-License-Identifier: BSD-3-Clause
 *
 * key.c - derivation, and the phases of a connection's keys. */
#include "net/wire/key.h"
#include "base/bug.h"
#include "base/sometimes.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "net/wire/bytes.h"

enum { LABEL_BYTES = crypto_generichash_blake2b_PERSONALBYTES, PHASES = 4 };
static_assert((PHASES - 1) << RNL_PACKET_PHASE_SHIFT == RNL_PACKET_PHASE, "phase bits");
static_assert(RNL_JOB_SECRET >= crypto_generichash_blake2b_KEYBYTES_MIN &&
                  RNL_JOB_SECRET <= crypto_generichash_blake2b_KEYBYTES_MAX,
              "key");

/* BLAKE2b with a key and a label, its personal string; hashes with different labels are independent of each other. */
static void keyed(unsigned char *out, size_t out_bytes, const unsigned char *key, size_t key_bytes, const char *label,
                  const void *at, size_t bytes)
{
    unsigned char personal[LABEL_BYTES] = {0};
    memcpy(personal, label, strnlen(label, LABEL_BYTES));
    crypto_generichash_blake2b_salt_personal(out, out_bytes, at, bytes, key, key_bytes, NULL, personal);
}

void rnl_keyed_hash(unsigned char out[16], const unsigned char key[RNL_JOB_SECRET], const char *label, const void *at,
                    size_t bytes)
{
    keyed(out, 16, key, RNL_JOB_SECRET, label, at, bytes);
}

void rnl_job_keys_derive(struct rnl_job_keys *out, const unsigned char job_key[RNL_JOB_SECRET])
{
    keyed(out->hello, sizeof out->hello, job_key, RNL_JOB_SECRET, "runnel hello", NULL, 0);
    keyed(out->traffic, sizeof out->traffic, job_key, RNL_JOB_SECRET, "runnel traffic", NULL, 0);
}

void rnl_direction_key(unsigned char out[RNL_KEY_BYTES], const struct rnl_job_keys *job, const struct rnl_direction *d)
{
    unsigned char in[4 * 2 + 8 * 2 + RNL_NONCE_BYTES * 2 + 4] = {0}, *at = in;
    rnl_put32(at, d->src);
    rnl_put32(at + 4, d->dst);
    rnl_put64(at + 8, d->src_incarnation);
    rnl_put64(at + 16, d->dst_incarnation);
    memcpy(at + 24, d->src_nonce, RNL_NONCE_BYTES);
    memcpy(at + 24 + RNL_NONCE_BYTES, d->dst_nonce, RNL_NONCE_BYTES);
    at += 24 + 2 * RNL_NONCE_BYTES;
    at[0] = RNL_WIRE_VERSION;
    at[1] = d->suite.cipher;
    at[2] = d->suite.protect;
    keyed(out, RNL_KEY_BYTES, job->traffic, sizeof job->traffic, "runnel direction", in, sizeof in);
}

void rnl_next_key(unsigned char out[RNL_KEY_BYTES], const unsigned char key[RNL_KEY_BYTES])
{
    unsigned char next[RNL_KEY_BYTES];
    keyed(next, sizeof next, key, RNL_KEY_BYTES, "runnel phase", NULL, 0);
    memcpy(out, next, sizeof next);
    sodium_memzero(next, sizeof next);
}

void rnl_flow_key(unsigned char out[RNL_KEY_BYTES], const unsigned char key[RNL_KEY_BYTES], uint32_t flow)
{
    unsigned char next[RNL_KEY_BYTES], in[4];
    rnl_put32(in, flow);
    keyed(next, sizeof next, key, RNL_KEY_BYTES, "runnel flow", in, sizeof in);
    memcpy(out, next, sizeof next);
    sodium_memzero(next, sizeof next);
}

struct rnl_key_limits rnl_key_limits_default(struct rnl_suite suite)
{
    unsigned bits = suite.protect == RNL_PROTECT_ENCRYPT ? 23 : 32;
    return (struct rnl_key_limits){(uint64_t)1 << (bits - 1), (uint64_t)1 << bits, (uint64_t)1 << 36};
}

void rnl_keys_init(struct rnl_keys *k, struct rnl_suite suite, const unsigned char tx[RNL_KEY_BYTES],
                   const unsigned char rx[RNL_KEY_BYTES], const struct rnl_key_limits *limits)
{
    memset(k, 0, sizeof *k);
    k->suite = suite;
    k->limits = limits;
    rnl_key_set(&k->tx, tx);
    rnl_key_set(&k->rx, rx);
    rnl_next_key(k->rx_next.secret, rx);
}

void rnl_keys_wipe(struct rnl_keys *k)
{
    sodium_memzero(k, sizeof *k);
}

void rnl_wipe(void *at, size_t bytes)
{
    sodium_memzero(at, bytes);
}

RNL_NOINLINE static void next_tx(struct rnl_keys *k)
{
    if (!RNL_BUG(swarm_key_stays))
        rnl_next_key(k->tx.secret, k->tx.secret);
    k->tx.stamp = 0;
    k->tx_phase++;
    RNL_SOMETIMES(1, "a key is changed");
    k->tx_sealed = 0;
    k->tx_first = k->tx_next[0];
    k->tx_confirmed = 0;
}

int rnl_keys_seal(struct rnl_keys *k, struct rnl_sealer *s, unsigned char *at, uint32_t bytes, uint32_t body)
{
    uint64_t word = rnl_get64(at + 8), number = word & RNL_PACKET_NUMBER_MAX;
    unsigned space = word >> 63;
    if (RNL_UNLIKELY((number < k->tx_next[space] && !RNL_BUG(wire_nonce_repeated)) || number == RNL_PACKET_NUMBER_MAX))
        return rnl_fail(RNL_ERR_ARG,
                        "packet number %llu was to be sealed, and the lowest one not used with this key is %llu: give "
                        "what is sent again a new number",
                        (unsigned long long)number, (unsigned long long)k->tx_next[space]);
    if (k->tx_confirmed && RNL_BUGGIFY("a key is changed before its time"))
        next_tx(k);
    if (RNL_UNLIKELY(k->tx_sealed >= k->limits->change_after)) {
        if (k->tx_confirmed || RNL_BUG(wire_key_update_before_ack))
            next_tx(k);
        else if (k->tx_sealed >= k->limits->never_after)
            return RNL_NO_ROOM;
    }
    at[1] = (unsigned char)((at[1] & ~(RNL_PACKET_PHASE | RNL_PACKET_ENC)) |
                            (k->tx_phase % PHASES) << RNL_PACKET_PHASE_SHIFT |
                            (k->suite.protect == RNL_PROTECT_ENCRYPT ? RNL_PACKET_ENC : 0));
    k->tx_next[space] = number + 1;
    k->tx_sealed++;
    rnl_seal(s, &k->tx, k->suite, at, bytes, body);
    return 0;
}

RNL_NOINLINE static void next_rx(struct rnl_keys *k, uint64_t now_ns, uint64_t keep_ns)
{
    k->rx_old = k->rx;
    k->rx_old_until = now_ns + keep_ns;
    k->has_old = 1;
    k->rx = k->rx_next;
    rnl_next_key(k->rx_next.secret, k->rx.secret);
    k->rx_next.stamp = 0;
    k->rx_phase++;
    RNL_SOMETIMES(1, "the peer's key is changed");
    k->rx_forged = 0;
}

int rnl_keys_open(struct rnl_keys *k, struct rnl_sealer *s, unsigned char *at, const struct rnl_packet *p,
                  uint64_t now_ns, uint64_t keep_ns)
{
    struct rnl_key *key = &k->rx;
    unsigned ahead = (((p->flags & RNL_PACKET_PHASE) >> RNL_PACKET_PHASE_SHIFT) - k->rx_phase) % PHASES;
    if (RNL_UNLIKELY(k->has_old && now_ns >= k->rx_old_until && !RNL_BUG(wire_old_key_kept))) {
        sodium_memzero(&k->rx_old, sizeof k->rx_old);
        k->has_old = 0;
    }
    if (!(p->flags & RNL_PACKET_ENC) != (k->suite.protect != RNL_PROTECT_ENCRYPT) && !RNL_BUG(wire_cleartext_accepted))
        return 0;
    if (RNL_UNLIKELY(ahead != 0)) {
        key = ahead == 1 ? &k->rx_next : &k->rx_old;
        if (ahead == 2 || (ahead == 3 && !k->has_old))
            return 0;
    }
    if (RNL_UNLIKELY(!rnl_seal_open(s, key, k->suite, at, p->bytes, p->body))) {
        if (++k->rx_forged < k->limits->forgeries)
            return 0;
        return rnl_fail(RNL_ERR_PEER_BROKEN,
                        "%llu packets of a connection were forged, the most that one key may see: open the connection "
                        "again, and look for an attacker in the network",
                        (unsigned long long)k->rx_forged);
    }
    if (RNL_UNLIKELY(ahead == 1))
        next_rx(k, now_ns, keep_ns);
    return 1;
}
