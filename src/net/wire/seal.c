/* SPDX-License-Identifier: BSD-3-Clause
 *
 * seal.c - the two ciphers, and the cache of expanded keys. */
#include "net/wire/seal.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>
#if RNL_HAVE_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

#include "net/wire/bytes.h"
#include "net/wire/packet.h"

/* An expanded key; that of ChaCha20 has 32 bytes, which are derived from the 16. */
struct rnl_seal_slot {
#if RNL_HAVE_IPSEC_MB
    struct gcm_key_data gcm;
#endif
    unsigned char chacha[crypto_aead_chacha20poly1305_ietf_KEYBYTES];
    uint64_t stamp; /* of the key that is expanded here; 0 = none */
    uint64_t used;  /* 1 = it was used since the clock's hand last passed */
};
static_assert(_Alignof(struct rnl_seal_slot) <= RNL_SEALER_ALIGN, "alignment");
static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == RNL_SEAL_NONCE, "nonce");
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == (unsigned)RNL_PACKET_TAG, "tag");

const char *rnl_protect_text(unsigned protect)
{
    static const char *const text[RNL_PROTECTS] = {"authenticated", "encrypted", "UNPROTECTED"};
    return protect < RNL_PROTECTS ? text[protect] : "of an unknown kind";
}

int rnl_protect_read(const char *text, uint8_t *out)
{
    static const char *const name[RNL_PROTECTS] = {"authenticate", "encrypt", "nothing-measure-only"};
    *out = RNL_PROTECT_AUTHENTICATE;
    if (!text || text[0] == '\0')
        return 0;
    for (; *out < RNL_PROTECTS; ++*out)
        if (strcmp(text, name[*out]) == 0)
            return 0;
    return rnl_fail(RNL_ERR_ARG, "RNL_PROTECT is '%.40s': set it to %s (the default), %s or %s, for all of the job",
                    text, name[0], name[1], name[2]);
}

const char *rnl_cipher_text(unsigned cipher)
{
    static const char *const text[RNL_CIPHERS] = {"AES-128-GCM", "ChaCha20-Poly1305"};
    return cipher < RNL_CIPHERS ? text[cipher] : "an unknown cipher";
}

#if RNL_HAVE_IPSEC_MB
/* Asks libipsec-mb's manager which functions are best for this processor; its queues of jobs are not used. A processor
 * without AES instructions would get an emulation, whose timing leaks the key, so AES-GCM is not offered there. */
static int find_gcm(struct rnl_ciphers *c)
{
    IMB_MGR *manager = alloc_mb_mgr(0);
    if (!manager)
        return rnl_fail(RNL_ERR_NO_MEMORY, "libipsec-mb was asked for AES-GCM and found no memory for its %zu bytes",
                        imb_get_mb_mgr_size());
    init_mb_mgr_auto(manager, NULL);
    int bad = imb_get_errno(manager);
    uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    if (bad == 0 && (manager->features & needed) == needed && !(manager->features & IMB_FEATURE_AESNI_EMU)) {
        c->gcm_pre = manager->gcm128_pre;
        c->gcm_enc = manager->gcm128_enc;
        c->gcm_dec = manager->gcm128_dec;
        c->have |= 1u << RNL_CIPHER_AES128_GCM;
    }
    free_mb_mgr(manager);
    return 0;
}
#else
static int find_gcm(struct rnl_ciphers *c)
{
    (void)c;
    return 0;
}
#endif

int rnl_ciphers_init(struct rnl_ciphers *c, uint32_t allowed)
{
    memset(c, 0, sizeof *c);
    if (sodium_init() < 0)
        return rnl_fail(RNL_ERR_SYSTEM, "libsodium, which makes the keys of connections, could not be initialised");
    if (allowed & 1u << RNL_CIPHER_AES128_GCM) {
        int status = find_gcm(c);
        if (status < 0)
            return status;
    }
    c->have |= allowed & 1u << RNL_CIPHER_CHACHA20_POLY1305;
    if (c->have == 0)
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "%s was asked for as the only cipher, and this processor cannot do it: allow %s, too",
                        rnl_cipher_text(RNL_CIPHER_AES128_GCM), rnl_cipher_text(RNL_CIPHER_CHACHA20_POLY1305));
    return 0;
}

void rnl_key_set(struct rnl_key *key, const unsigned char secret[RNL_KEY_BYTES])
{
    memcpy(key->secret, secret, RNL_KEY_BYTES);
    key->stamp = 0;
}

size_t rnl_sealer_bytes(uint32_t slots)
{
    return (size_t)slots * sizeof(struct rnl_seal_slot);
}

int rnl_sealer_init(struct rnl_sealer *s, const struct rnl_ciphers *ciphers, void *memory, uint32_t slots)
{
    if (slots < RNL_SEALER_SLOTS_MIN || slots > RNL_SEALER_SLOTS_MAX || (slots & (slots - 1)) != 0 || !memory ||
        (uintptr_t)memory % RNL_SEALER_ALIGN != 0)
        return rnl_fail(RNL_ERR_ARG,
                        "a cache of %u expanded keys was asked for: a power of two from %d to %d, at an "
                        "address that is a multiple of %d",
                        slots, RNL_SEALER_SLOTS_MIN, RNL_SEALER_SLOTS_MAX, RNL_SEALER_ALIGN);
    memset(s, 0, sizeof *s);
    memset(memory, 0, rnl_sealer_bytes(slots));
    s->ciphers = ciphers;
    s->slot = memory;
    s->slots = slots;
    s->serial = 1;
    return 0;
}

void rnl_sealer_wipe(struct rnl_sealer *s)
{
    if (s->slot)
        sodium_memzero(s->slot, rnl_sealer_bytes(s->slots));
    memset(s, 0, sizeof *s);
}

/* Expands a key into a slot that was not used for a round of the hand (the clock algorithm). Its stamp, serial * slots
 * + index, is never given twice, and says which slot to look into. */
RNL_NOINLINE static struct rnl_seal_slot *expand(struct rnl_sealer *s, struct rnl_key *key, unsigned cipher)
{
    static const char label[] = "runnel chacha20";
    while (s->slot[s->hand].used) {
        s->slot[s->hand].used = 0;
        s->hand = (s->hand + 1) & (s->slots - 1);
    }
    struct rnl_seal_slot *slot = &s->slot[s->hand];
    slot->stamp = s->serial++ * s->slots + s->hand;
    s->hand = (s->hand + 1) & (s->slots - 1);
    s->expanded++;
    if (cipher == RNL_CIPHER_AES128_GCM) {
#if RNL_HAVE_IPSEC_MB
        s->ciphers->gcm_pre(key->secret, &slot->gcm);
#endif
    } else {
        crypto_generichash(slot->chacha, sizeof slot->chacha, (const unsigned char *)label, sizeof label - 1,
                           key->secret, RNL_KEY_BYTES);
    }
    key->stamp = slot->stamp;
    return slot;
}

RNL_INLINE struct rnl_seal_slot *slot_of(struct rnl_sealer *s, struct rnl_key *key, unsigned cipher)
{
    struct rnl_seal_slot *slot = &s->slot[key->stamp & (s->slots - 1)];
    if (RNL_UNLIKELY(slot->stamp != key->stamp || key->stamp == 0))
        slot = expand(s, key, cipher);
    slot->used = 1;
    return slot;
}

RNL_INLINE void nonce_of(unsigned char nonce[RNL_SEAL_NONCE], const unsigned char *at)
{
    memcpy(nonce, "rnl", 4);
    memcpy(nonce + 4, at + 8, 8); /* the packet number as the header has it, space bit included */
}

void rnl_seal(struct rnl_sealer *s, struct rnl_key *key, struct rnl_suite suite, unsigned char *at, uint32_t bytes,
              uint32_t body)
{
    unsigned char nonce[RNL_SEAL_NONCE], *tag = at + bytes - RNL_PACKET_TAG;
    if (RNL_UNLIKELY(suite.protect == RNL_PROTECT_NOTHING_MEASURE_ONLY)) {
        memset(tag, 0, RNL_PACKET_TAG);
        return;
    }
    uint32_t end = bytes - RNL_PACKET_TAG, open = suite.protect == RNL_PROTECT_ENCRYPT ? body : end;
    struct rnl_seal_slot *slot = slot_of(s, key, suite.cipher);
    nonce_of(nonce, at);
    if (suite.cipher == RNL_CIPHER_AES128_GCM) {
#if RNL_HAVE_IPSEC_MB
        struct gcm_context_data context;
        s->ciphers->gcm_enc(&slot->gcm, &context, at + open, at + open, end - open, nonce, at, open, tag,
                            RNL_PACKET_TAG);
#endif
    } else {
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(at + open, tag, NULL, at + open, end - open, at, open, NULL,
                                                           nonce, slot->chacha);
    }
}

bool rnl_seal_open(struct rnl_sealer *s, struct rnl_key *key, struct rnl_suite suite, unsigned char *at, uint32_t bytes,
                   uint32_t body)
{
    unsigned char nonce[RNL_SEAL_NONCE], *tag = at + bytes - RNL_PACKET_TAG;
    if (RNL_UNLIKELY(suite.protect == RNL_PROTECT_NOTHING_MEASURE_ONLY))
        return rnl_get64(tag) == 0 && rnl_get64(tag + 8) == 0;
    uint32_t end = bytes - RNL_PACKET_TAG, open = suite.protect == RNL_PROTECT_ENCRYPT ? body : end;
    struct rnl_seal_slot *slot = slot_of(s, key, suite.cipher);
    nonce_of(nonce, at);
    if (suite.cipher == RNL_CIPHER_AES128_GCM) {
#if RNL_HAVE_IPSEC_MB
        struct gcm_context_data context;
        unsigned char right[RNL_PACKET_TAG];
        s->ciphers->gcm_dec(&slot->gcm, &context, at + open, at + open, end - open, nonce, at, open, right,
                            RNL_PACKET_TAG);
        /* The comparison takes the same time wherever the tags differ. */
        return ((rnl_get64(right) ^ rnl_get64(tag)) | (rnl_get64(right + 8) ^ rnl_get64(tag + 8))) == 0;
#else
        return false;
#endif
    }
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(at + open, NULL, at + open, end - open, tag, at, open,
                                                              nonce, slot->chacha) == 0;
}
