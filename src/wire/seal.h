/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seal.h - the tag of a datagram, and the encryption of its body: AES-128-GCM by libipsec-mb, ChaCha20-Poly1305 by
 * libsodium where the processor has no AES instructions. Who agrees on what is in hello.h; which key is used when, and
 * that no number is used twice with one, is in key.h, which is what others call.
 *
 * A key is 16 bytes and is kept so. What a cipher makes of it (1 KiB) lives in a cache of the endpoint, so that an idle
 * peer costs nothing but the 16 bytes. The nonce is the packet number with its space bit, behind 4 fixed bytes. */
#ifndef RNL_WIRE_SEAL_H
#define RNL_WIRE_SEAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { RNL_KEY_BYTES = 16, RNL_SEAL_NONCE = 12 };

enum rnl_cipher { RNL_CIPHER_AES128_GCM = 0, RNL_CIPHER_CHACHA20_POLY1305, RNL_CIPHERS };
/* What a job wants of its datagrams. */
enum rnl_protect {
    RNL_PROTECT_AUTHENTICATE = 0,     /* the default: header and body cannot be made or changed by others */
    RNL_PROTECT_ENCRYPT,              /* nor can the body be read */
    RNL_PROTECT_NOTHING_MEASURE_ONLY, /* anybody can make and change packets, and damage is not noticed */
    RNL_PROTECTS
};
const char *rnl_protect_text(unsigned protect); /* "authenticated", "encrypted", "UNPROTECTED" */
const char *rnl_cipher_text(unsigned cipher);
/* The setting that RNL_PROTECT has: "authenticate" (so also NULL and ""), "encrypt", "nothing-measure-only". 0,
 * RNL_ERR_ARG. */
RNL_CHECK int rnl_protect_read(const char *text, uint8_t *out);

struct rnl_suite {
    uint8_t cipher, protect;
};

/* What this processor can do: functions of the libraries. Filled once (milliseconds: so not before there is a remote
 * peer), then read only; endpoints may share one. */
struct gcm_key_data;
struct gcm_context_data;
struct rnl_ciphers {
    uint32_t have; /* bit for each enum rnl_cipher; never 0 */
    void (*gcm_pre)(const void *key, struct gcm_key_data *);
    void (*gcm_enc)(const struct gcm_key_data *, struct gcm_context_data *, uint8_t *out, const uint8_t *in, uint64_t,
                    const uint8_t *iv, const uint8_t *aad, uint64_t, uint8_t *tag, uint64_t);
    void (*gcm_dec)(const struct gcm_key_data *, struct gcm_context_data *, uint8_t *out, const uint8_t *in, uint64_t,
                    const uint8_t *iv, const uint8_t *aad, uint64_t, uint8_t *tag, uint64_t);
};
/* `allowed`: bits of enum rnl_cipher, ~0u for all. 0; RNL_ERR_UNSUPPORTED if none of them works here, RNL_ERR_SYSTEM,
 * RNL_ERR_NO_MEMORY. */
RNL_CHECK int rnl_ciphers_init(struct rnl_ciphers *c, uint32_t allowed);

struct rnl_key {
    unsigned char secret[RNL_KEY_BYTES];
    uint64_t stamp; /* where its expanded form may be; 0 = nowhere */
};
void rnl_key_set(struct rnl_key *key, const unsigned char secret[RNL_KEY_BYTES]);

/* The cache of expanded keys of one endpoint; used by one thread at a time. */
struct rnl_seal_slot;
struct rnl_sealer {
    const struct rnl_ciphers *ciphers;
    struct rnl_seal_slot *slot;
    uint32_t slots; /* a power of two */
    uint32_t hand;
    uint64_t serial;
    uint64_t expanded; /* how often a key was */
};
enum { RNL_SEALER_SLOTS_MIN = 4, RNL_SEALER_SLOTS_MAX = 1 << 16, RNL_SEALER_ALIGN = 64 };
size_t rnl_sealer_bytes(uint32_t slots);
/* `memory`: rnl_sealer_bytes(slots) of the caller, aligned to RNL_SEALER_ALIGN, zeroed by rnl_sealer_wipe at the end.
 * `slots`: a power of two; two for each peer that is talked to at a time is enough for speed. 0 or RNL_ERR_ARG. */
RNL_CHECK int rnl_sealer_init(struct rnl_sealer *s, const struct rnl_ciphers *ciphers, void *memory, uint32_t slots);
void rnl_sealer_wipe(struct rnl_sealer *s);

/* Seal or open the datagram of `bytes` at `at`, whose header is written and whose last 16 bytes are the tag; its body,
 * from `body` on, is encrypted in place if the suite says so. Opening returns 1 if the tag is right; else 0, and the
 * bytes may have been changed. */
void rnl_seal(struct rnl_sealer *s, struct rnl_key *key, struct rnl_suite suite, unsigned char *at, uint32_t bytes,
              uint32_t body);
int rnl_seal_open(struct rnl_sealer *s, struct rnl_key *key, struct rnl_suite suite, unsigned char *at, uint32_t bytes,
                  uint32_t body);

#endif
