/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_seal.c - tags and encryption: against datagrams that another implementation sealed, each bit of them turned
 * over, and the cache of expanded keys. */
#include "net/wire/key.h"
#include "net/wire/seal.h"
#include "support/random.h"
#include "support/unit.h"

enum { SLOTS = 4 };

static struct rnl_ciphers ciphers;
static struct rnl_sealer sealer;
static void *memory;
static unsigned char wire[9000];

static int setup(void **state)
{
    (void)state;
    memory = aligned_alloc(RNL_SEALER_ALIGN, rnl_sealer_bytes(SLOTS));
    return memory && rnl_ciphers_init(&ciphers, ~0u) == 0 ? rnl_sealer_init(&sealer, &ciphers, memory, SLOTS) : -1;
}

static int teardown(void **state)
{
    (void)state;
    rnl_sealer_wipe(&sealer);
    free(memory);
    return 0;
}

static int have(unsigned cipher)
{
    return ciphers.have >> cipher & 1;
}

static struct rnl_key key_of(unsigned char first)
{
    unsigned char secret[RNL_KEY_BYTES];
    struct rnl_key key;
    for (unsigned i = 0; i < sizeof secret; i++)
        secret[i] = (unsigned char)(first + i);
    rnl_key_set(&key, secret);
    return key;
}

static uint32_t write_packet(struct rnl_suite suite, uint64_t number, uint32_t body_bytes, uint32_t *body)
{
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .connection = 0x01020304, .number = number};
    p.flags = suite.protect == RNL_PROTECT_ENCRYPT ? RNL_PACKET_ENC : 0;
    *body = rnl_packet_encode(wire, sizeof wire, &p);
    memcpy(wire + *body, test_pattern(number, 0), body_bytes);
    return rnl_packet_finish(wire, *body + body_bytes);
}

/* Body and tag of a PING, number 5, with the key 0, 1 ... 15, as Python's hashlib and cryptography make them. */
static void datagrams_are_as_another_implementation_seals_them(void **state)
{
    (void)state;
    static const unsigned char expected[RNL_CIPHERS][2][24] = {
        {{0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xdb, 0x99, 0xd1, 0x6c,
          0xe9, 0xc1, 0xc9, 0x68, 0x9d, 0x93, 0x58, 0xa3, 0x70, 0x2b, 0xf4, 0x52},
         {0x55, 0x1b, 0x6f, 0x6f, 0xc8, 0xf9, 0x2e, 0xa2, 0xaa, 0xbb, 0x6c, 0xe8,
          0x83, 0xb7, 0xbb, 0x0d, 0x77, 0xc4, 0xce, 0xb1, 0xc9, 0x95, 0x00, 0x54}},
        {{0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x98, 0xda, 0xf3,
          0x47, 0x12, 0xe1, 0x0f, 0xf5, 0x9b, 0x52, 0x04, 0x3e, 0x84, 0x46, 0xb7},
         {0xa4, 0x87, 0x1d, 0x03, 0x81, 0x8f, 0x33, 0x05, 0xf0, 0xb3, 0xa1, 0x3c,
          0x44, 0x30, 0xfe, 0xa0, 0xad, 0xf9, 0x2a, 0x2e, 0xf3, 0x18, 0x46, 0x4d}},
    };
    for (unsigned cipher = 0; cipher < RNL_CIPHERS; cipher++)
        for (unsigned protect = 0; protect < 2 && have(cipher); protect++) {
            struct rnl_suite suite = {(uint8_t)cipher, (uint8_t)protect};
            struct rnl_key key = key_of(0);
            uint32_t body, bytes = write_packet(suite, 5, 8, &body);
            memset(wire + body, 0, 8);
            wire[body] = 5;
            rnl_seal(&sealer, &key, suite, wire, bytes, body);
            assert_memory_equal(wire + body, expected[cipher][protect], 24);
        }
}

static void every_bit_that_is_turned_over_is_noticed(void **state)
{
    (void)state;
    for (unsigned cipher = 0; cipher < RNL_CIPHERS; cipher++)
        for (unsigned protect = 0; protect < 2 && have(cipher); protect++) {
            struct rnl_suite suite = {(uint8_t)cipher, (uint8_t)protect};
            struct rnl_key key = key_of(1), other = key_of(2);
            static unsigned char sealed[sizeof wire];
            uint32_t body, bytes = write_packet(suite, 1000, 77, &body);
            rnl_seal(&sealer, &key, suite, wire, bytes, body);
            memcpy(sealed, wire, bytes);
            int plain = memcmp(wire + body, test_pattern(1000, 0), 77) == 0;
            assert_int_equal(plain, protect == RNL_PROTECT_AUTHENTICATE);
            for (uint32_t bit = 0; bit < bytes * 8; bit++) {
                memcpy(wire, sealed, bytes);
                wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
                assert_false(rnl_seal_open(&sealer, &key, suite, wire, bytes, body));
            }
            for (uint32_t cut = RNL_PACKET_MIN; cut < bytes; cut++) {
                memcpy(wire, sealed, bytes);
                assert_false(rnl_seal_open(&sealer, &key, suite, wire, cut, body < cut - 16 ? body : cut - 16));
            }
            memcpy(wire, sealed, bytes);
            assert_false(rnl_seal_open(&sealer, &other, suite, wire, bytes, body));
            memcpy(wire, sealed, bytes);
            assert_true(rnl_seal_open(&sealer, &key, suite, wire, bytes, body));
            assert_memory_equal(wire + body, test_pattern(1000, 0), 77);
        }
}

static void each_number_of_each_space_has_its_own_nonce(void **state)
{
    (void)state;
    enum { NUMBERS = 130 };
    static unsigned char seen[NUMBERS][8];
    struct rnl_suite suite = {(uint8_t)__builtin_ctz(ciphers.have), RNL_PROTECT_ENCRYPT};
    struct rnl_key key = key_of(3);
    for (unsigned i = 0; i < NUMBERS; i++) { /* each bit of the number, in each space */
        uint32_t body, bytes = write_packet(suite, i < 2 ? 0 : (uint64_t)1 << (i / 2 - 1) % 63, 8, &body);
        memset(wire + body, 0, 8);
        wire[15] |= i % 2 ? 0x80 : 0;
        rnl_seal(&sealer, &key, suite, wire, bytes, body);
        memcpy(seen[i], wire + body, 8);
        for (unsigned k = 0; k < i && i < 128; k++)
            assert_memory_not_equal(seen[i], seen[k], 8);
    }
}

static void with_nothing_protected_the_tag_is_zero_and_nothing_is_noticed(void **state)
{
    (void)state;
    struct rnl_suite suite = {RNL_CIPHER_CHACHA20_POLY1305, RNL_PROTECT_NOTHING_MEASURE_ONLY};
    struct rnl_key key = key_of(4);
    static const unsigned char zero[RNL_PACKET_TAG];
    uint32_t body, bytes = write_packet(suite, 1, 20, &body);
    rnl_seal(&sealer, &key, suite, wire, bytes, body);
    assert_memory_equal(wire + bytes - RNL_PACKET_TAG, zero, RNL_PACKET_TAG);
    wire[body] ^= 1;
    assert_true(rnl_seal_open(&sealer, &key, suite, wire, bytes, body));
    /* but a sealed packet is not taken for one that is not */
    struct rnl_suite sealed = {RNL_CIPHER_CHACHA20_POLY1305, RNL_PROTECT_AUTHENTICATE};
    rnl_seal(&sealer, &key, sealed, wire, bytes, body);
    assert_false(rnl_seal_open(&sealer, &key, suite, wire, bytes, body));
    assert_string_equal(rnl_protect_text(suite.protect), "UNPROTECTED");
}

static void a_small_cache_serves_many_keys(void **state)
{
    (void)state;
    enum { KEYS = 40, PACKETS = 4000 };
    static struct rnl_key tx[KEYS], rx[KEYS];
    struct rnl_suite suite = {(uint8_t)__builtin_ctz(ciphers.have), RNL_PROTECT_ENCRYPT};
    for (unsigned i = 0; i < KEYS; i++)
        tx[i] = rx[i] = key_of((unsigned char)(i * 3));
    for (unsigned i = 0; i < PACKETS; i++) {
        struct test_random r = test_random_of(5, i);
        unsigned a = test_random_below(&r, KEYS), b = test_random_one_in(&r, 4) ? test_random_below(&r, KEYS) : a;
        uint32_t body, bytes = write_packet(suite, i, 100, &body);
        rnl_seal(&sealer, &tx[a], suite, wire, bytes, body);
        if (test_random_one_in(&r, 8))
            rx[b] = tx[b]; /* a copy, with where its expanded form was */
        assert_int_equal(rnl_seal_open(&sealer, &rx[b], suite, wire, bytes, body), a == b);
    }
    uint64_t before = sealer.expanded;
    for (unsigned i = 0; i < PACKETS; i++) { /* as many as there are places: none is expanded again and again */
        uint32_t body, bytes = write_packet(suite, i, 100, &body);
        rnl_seal(&sealer, &tx[i % 2], suite, wire, bytes, body);
        assert_true(rnl_seal_open(&sealer, &rx[i % 2], suite, wire, bytes, body));
    }
    assert_true(sealer.expanded - before <= SLOTS);
}

static void nothing_of_a_key_is_left_behind(void **state)
{
    (void)state;
    struct rnl_suite suite = {RNL_CIPHER_CHACHA20_POLY1305, RNL_PROTECT_ENCRYPT};
    struct rnl_key key = key_of(9);
    uint32_t body, bytes = write_packet(suite, 1, 20, &body);
    rnl_seal(&sealer, &key, suite, wire, bytes, body);
    rnl_sealer_wipe(&sealer);
    for (size_t i = 0; i < rnl_sealer_bytes(SLOTS); i++)
        assert_int_equal(((unsigned char *)memory)[i], 0);
    assert_int_equal(rnl_sealer_init(&sealer, &ciphers, memory, SLOTS), 0);
}

static void what_cannot_be_had_is_said(void **state)
{
    (void)state;
    struct rnl_ciphers c;
    struct rnl_sealer s;
    assert_int_equal(rnl_ciphers_init(&c, 0), RNL_ERR_UNSUPPORTED);
    assert_int_equal(rnl_ciphers_init(&c, 1u << RNL_CIPHER_CHACHA20_POLY1305), 0);
    assert_int_equal(c.have, 1u << RNL_CIPHER_CHACHA20_POLY1305);
    assert_null(c.gcm_enc);
    assert_int_equal(rnl_sealer_init(&s, &ciphers, memory, 3), RNL_ERR_ARG);
    assert_int_equal(rnl_sealer_init(&s, &ciphers, (char *)memory + 8, 4), RNL_ERR_ARG);
    assert_int_equal(rnl_sealer_init(&s, &ciphers, memory, 2), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "power of two"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_are_as_another_implementation_seals_them),
        cmocka_unit_test(every_bit_that_is_turned_over_is_noticed),
        cmocka_unit_test(each_number_of_each_space_has_its_own_nonce),
        cmocka_unit_test(with_nothing_protected_the_tag_is_zero_and_nothing_is_noticed),
        cmocka_unit_test(a_small_cache_serves_many_keys),
        cmocka_unit_test(nothing_of_a_key_is_left_behind),
        cmocka_unit_test(what_cannot_be_had_is_said),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
