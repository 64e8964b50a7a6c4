/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seal.h - makes the tag of a datagram and encrypts its body: with AES-128-GCM by libipsec-mb, or with
 * ChaCha20-Poly1305 by libsodium where the processor has no AES instructions. Callers use key.h, which says when a key
 * is used and sees to it that no number is used twice with one; hello.h negotiates the cipher.
 *
 * A key has 16 bytes. Its expanded form (1 KiB) is in a cache of the endpoint, so that an idle peer costs only the 16
 * bytes. The nonce is the packet number with its space bit, behind 4 fixed bytes. */
#ifndef RNL_NET_WIRE_SEAL_H
#define RNL_NET_WIRE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { RNL_KEY_BYTES = 16, RNL_SEAL_NONCE = 12 };

enum rnl_cipher { RNL_CIPHER_AES128_GCM = 0, RNL_CIPHER_CHACHA20_POLY1305, RNL_CIPHERS };
/* How the datagrams of a job are protected. */
enum rnl_protect {
    RNL_PROTECT_AUTHENTICATE = 0,     /* the default: others can neither make nor change packets */
    RNL_PROTECT_ENCRYPT,              /* others can neither make, change nor read packets */
    RNL_PROTECT_NOTHING_MEASURE_ONLY, /* anybody can make and change packets, and damage is not noticed */
    RNL_PROTECTS
};
const char *rnl_protect_text(unsigned protect); /* "authenticated", "encrypted", "UNPROTECTED" */
const char *rnl_cipher_text(unsigned cipher);
/* Reads the value of RNL_PROTECT: "authenticate" (also NULL and ""), "encrypt" or "nothing-measure-only". 0,
 * RNL_ERR_ARG. */
RNL_CHECK int rnl_protect_read(const char *text, uint8_t *out);

struct rnl_suite {
    uint8_t cipher, protect;
};

/* The ciphers of this processor, as functions of the libraries. Filled once, which takes milliseconds, so not before
 * there is a remote peer; only read afterwards, so endpoints may share one. */
struct gcm_key_data;
struct gcm_context_data;
struct rnl_ciphers {
    uint32_t have; /* a bit for each enum rnl_cipher that is available; never 0 */
    void (*gcm_pre)(const void *key, struct gcm_key_data *);
    void (*gcm_enc)(const struct gcm_key_data *, struct gcm_context_data *, uint8_t *out, const uint8_t *in, uint64_t,
                    const uint8_t *iv, const uint8_t *aad, uint64_t, uint8_t *tag, uint64_t);
    void (*gcm_dec)(const struct gcm_key_data *, struct gcm_context_data *, uint8_t *out, const uint8_t *in, uint64_t,
                    const uint8_t *iv, const uint8_t *aad, uint64_t, uint8_t *tag, uint64_t);
};
/* `allowed` has a bit for each enum rnl_cipher that may be used, ~0u for all. 0, RNL_ERR_UNSUPPORTED (none of them
 * works here), RNL_ERR_SYSTEM, RNL_ERR_NO_MEMORY. */
RNL_CHECK int rnl_ciphers_init(struct rnl_ciphers *c, uint32_t allowed);

struct rnl_key {
    unsigned char secret[RNL_KEY_BYTES];
    uint64_t stamp; /* identifies its expanded form in the cache; 0 = it was never expanded */
};
void rnl_key_set(struct rnl_key *key, const unsigned char secret[RNL_KEY_BYTES]);

/* The cache of expanded keys of one endpoint; used by one thread at a time. */
struct rnl_seal_slot;
struct rnl_sealer {
    const struct rnl_ciphers *ciphers;
    struct rnl_seal_slot *slot;
    uint32_t slots; /* a power of two */
    uint32_t hand;  /* the slot that the clock algorithm looks at next */
    uint64_t serial;
    uint64_t expanded; /* how often a key was expanded */
};
enum { RNL_SEALER_SLOTS_MIN = 4, RNL_SEALER_SLOTS_MAX = 1 << 16, RNL_SEALER_ALIGN = 64 };
size_t rnl_sealer_bytes(uint32_t slots);
/* `memory` is the caller's: rnl_sealer_bytes(slots) bytes, aligned to RNL_SEALER_ALIGN, which rnl_sealer_wipe zeroes.
 * `slots` is a power of two; two for each peer with traffic at a time are enough for speed. 0, RNL_ERR_ARG. */
RNL_CHECK int rnl_sealer_init(struct rnl_sealer *s, const struct rnl_ciphers *ciphers, void *memory, uint32_t slots);
void rnl_sealer_wipe(struct rnl_sealer *s);

/* Seals or opens the datagram of `bytes` at `at`, whose header is complete and whose last 16 bytes are the tag. Its
 * body, from `body` on, is encrypted or decrypted in place if the suite says so. rnl_seal_open returns 1 if the tag is
 * right; otherwise 0, and the bytes may have been changed. */
void rnl_seal(struct rnl_sealer *s, struct rnl_key *key, struct rnl_suite suite, unsigned char *at, uint32_t bytes,
              uint32_t body);
bool rnl_seal_open(struct rnl_sealer *s, struct rnl_key *key, struct rnl_suite suite, unsigned char *at, uint32_t bytes,
                   uint32_t body);

#endif
