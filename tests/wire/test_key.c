/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_key.c - derivation against another implementation, and the phases of keys with tiny limits: no nonce is used
 * twice, what comes in time opens, and nothing else does. */
#include "net/wire/key.h"
#include "support/random.h"
#include "support/unit.h"

enum { SLOTS = 8 };

static struct rnl_ciphers ciphers;
static struct rnl_sealer sealer;
static void *memory;

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

static void some_direction(struct rnl_job_keys *job, struct rnl_direction *d)
{
    unsigned char key[RNL_JOB_SECRET];
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    rnl_job_keys_derive(job, key);
    *d = (struct rnl_direction){3, 7, 0x1111, 0x2222, {0}, {0}, {1, 0}};
    memset(d->src_nonce, 0xa0, sizeof d->src_nonce);
    memset(d->dst_nonce, 0xb0, sizeof d->dst_nonce);
}

/* Made by Python's hashlib. */
static void keys_are_as_another_implementation_derives_them(void **state)
{
    (void)state;
    static const unsigned char first[] = {0xb3, 0xfb, 0xd6, 0x2f, 0x84, 0xb2, 0xbb, 0x12,
                                          0x2b, 0x4f, 0x6f, 0x16, 0xb3, 0x87, 0x14, 0x6b};
    static const unsigned char next[] = {0x47, 0xf1, 0x60, 0xef, 0xd7, 0x46, 0x33, 0xc3,
                                         0x7e, 0x7f, 0x67, 0xf6, 0xf0, 0xe0, 0x83, 0x2c};
    struct rnl_job_keys job;
    struct rnl_direction d;
    unsigned char key[RNL_KEY_BYTES];
    some_direction(&job, &d);
    rnl_direction_key(key, &job, &d);
    assert_memory_equal(key, first, sizeof first);
    rnl_next_key(key, key);
    assert_memory_equal(key, next, sizeof next);
}

static void whatever_differs_gives_another_key(void **state)
{
    (void)state;
    struct rnl_job_keys job, other;
    struct rnl_direction d;
    unsigned char keys[40][RNL_KEY_BYTES];
    unsigned n = 0;
    some_direction(&job, &d);
    rnl_direction_key(keys[n++], &job, &d);
#define WITH(change)                            \
    do {                                        \
        struct rnl_direction was = d;           \
        change;                                 \
        rnl_direction_key(keys[n++], &job, &d); \
        d = was;                                \
    } while (0)
    WITH(d.src ^= 1);
    WITH(d.src ^= 1u << 31);
    WITH(d.dst ^= 1);
    WITH(d.src_incarnation ^= 1);
    WITH(d.src_incarnation ^= (uint64_t)1 << 63);
    WITH(d.dst_incarnation ^= 1);
    WITH(d.src_nonce[0] ^= 1);
    WITH(d.src_nonce[15] ^= 0x80);
    WITH(d.dst_nonce[0] ^= 1);
    WITH(d.dst_nonce[15] ^= 0x80);
    WITH(d.suite.cipher ^= 1);
    WITH(d.suite.protect ^= 1);
    WITH((d.src = 7, d.dst = 3));
#undef WITH
    other = job;
    other.traffic[31] ^= 1;
    rnl_direction_key(keys[n++], &other, &d);
    rnl_next_key(keys[n++], keys[0]);
    rnl_keyed_hash(keys[n++], job.hello, "a", "x", 1);
    rnl_keyed_hash(keys[n++], job.hello, "b", "x", 1);
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < a; b++)
            assert_memory_not_equal(keys[a], keys[b], RNL_KEY_BYTES);
    assert_memory_not_equal(job.hello, job.traffic, sizeof job.hello);
}

/* ---- one direction: a sender, the packets on the way, a receiver ---- */

enum { PACKET = 64, NOW = 1000000, KEEP = 1000 };
struct sent {
    unsigned char at[PACKET];
    uint64_t number;
    uint32_t phase;
    uint8_t control;
};
struct way {
    struct rnl_keys tx, rx;
    struct rnl_key_limits limits;
    uint64_t number[2];
};

static void way_init(struct way *w, uint8_t protect, struct rnl_key_limits limits)
{
    unsigned char there[RNL_KEY_BYTES], back[RNL_KEY_BYTES];
    struct rnl_suite suite = {(uint8_t)__builtin_ctz(ciphers.have), protect};
    memset(w, 0, sizeof *w);
    memset(there, 1, sizeof there);
    memset(back, 2, sizeof back);
    w->limits = limits;
    rnl_keys_init(&w->tx, suite, there, back, &w->limits);
    rnl_keys_init(&w->rx, suite, back, there, &w->limits);
}

static int seal_number(struct way *w, struct sent *s, int control, uint64_t number)
{
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .connection = 9, .number = number, .control = (uint8_t)control};
    uint32_t body = rnl_packet_encode(s->at, sizeof s->at, &p);
    memcpy(s->at + body, test_pattern(number, (size_t)control), PACKET - RNL_PACKET_MIN);
    uint32_t bytes = rnl_packet_finish(s->at, PACKET - RNL_PACKET_TAG);
    int status = rnl_keys_seal(&w->tx, &sealer, s->at, bytes, body);
    s->number = number;
    s->control = (uint8_t)control;
    s->phase = w->tx.tx_phase;
    return status;
}

static int seal(struct way *w, struct sent *s, int control)
{
    int status = seal_number(w, s, control, w->number[control]);
    if (status == 0)
        w->number[control]++;
    return status;
}

static int open_at(struct way *w, const struct sent *s, uint64_t now_ns)
{
    unsigned char at[PACKET];
    struct rnl_packet p;
    memcpy(at, s->at, PACKET);
    assert_int_equal(rnl_packet_decode(at, PACKET, &p), RNL_PACKET_GOOD);
    assert_int_equal(p.number, s->number);
    int status = rnl_keys_open(&w->rx, &sealer, at, &p, now_ns, KEEP);
    if (status == 1)
        assert_memory_equal(at + p.body, test_pattern(s->number, s->control), p.body_bytes);
    return status;
}

static void a_number_is_sealed_once(void **state)
{
    (void)state;
    struct way w;
    struct sent s;
    way_init(&w, RNL_PROTECT_AUTHENTICATE, (struct rnl_key_limits){2, 1000, 1000});
    assert_int_equal(seal_number(&w, &s, 0, 5), 0);
    assert_int_equal(seal_number(&w, &s, 0, 5), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "packet number 5"));
    assert_int_equal(seal_number(&w, &s, 0, 4), RNL_ERR_ARG);
    assert_int_equal(seal_number(&w, &s, 1, 5), 0); /* another space */
    assert_int_equal(seal_number(&w, &s, 1, 5), RNL_ERR_ARG);
    rnl_keys_acked(&w.tx, 5);
    assert_int_equal(seal_number(&w, &s, 0, 9), 0); /* of the next phase */
    assert_int_equal(w.tx.tx_phase, 1);
    assert_int_equal(seal_number(&w, &s, 0, 8), RNL_ERR_ARG);
    assert_int_equal(seal_number(&w, &s, 0, RNL_PACKET_NUMBER_MAX - 1), 0);
    assert_int_equal(seal_number(&w, &s, 0, RNL_PACKET_NUMBER_MAX), RNL_ERR_ARG);
}

static void the_next_key_waits_for_an_acknowledgement_of_this_one(void **state)
{
    (void)state;
    struct way w;
    struct sent s;
    way_init(&w, RNL_PROTECT_ENCRYPT, (struct rnl_key_limits){3, 6, 1000});
    for (int i = 0; i < 6; i++) {
        assert_int_equal(rnl_keys_left(&w.tx), 6 - i);
        assert_int_equal(rnl_keys_ack_wanted(&w.tx), i >= 3);
        assert_int_equal(seal(&w, &s, i == 4), 0);
        assert_int_equal(w.tx.tx_phase, 0);
    }
    assert_int_equal(rnl_keys_left(&w.tx), 0);
    assert_int_equal(seal(&w, &s, 0), RNL_NO_ROOM); /* the limit holds */
    assert_int_equal(seal(&w, &s, 1), RNL_NO_ROOM);
    rnl_keys_acked(&w.tx, 5); /* never sent: it proves nothing */
    assert_int_equal(seal(&w, &s, 0), RNL_NO_ROOM);
    rnl_keys_acked(&w.tx, 4);
    assert_int_equal(seal(&w, &s, 0), 0);
    assert_int_equal(w.tx.tx_phase, 1);
    rnl_keys_acked(&w.tx, 4); /* of the phase before */
    assert_int_equal(w.tx.tx_confirmed, 0);
    rnl_keys_acked(&w.tx, 5);
    assert_int_equal(w.tx.tx_confirmed, 1);
}

static void the_old_key_lives_as_long_as_it_was_told(void **state)
{
    (void)state;
    struct way w;
    struct sent first, late, later, next;
    way_init(&w, RNL_PROTECT_ENCRYPT, (struct rnl_key_limits){3, 6, 1000});
    assert_int_equal(seal(&w, &first, 0), 0);
    assert_int_equal(seal(&w, &late, 0), 0);
    assert_int_equal(seal(&w, &later, 1), 0);
    rnl_keys_acked(&w.tx, 0);
    assert_int_equal(seal(&w, &next, 0), 0);
    assert_int_equal(next.phase, 1);
    assert_int_equal(open_at(&w, &first, NOW), 1);
    assert_int_equal(open_at(&w, &next, NOW), 1); /* it overtook two */
    assert_int_equal(w.rx.rx_phase, 1);
    assert_int_equal(open_at(&w, &late, NOW + KEEP - 1), 1);
    assert_int_equal(open_at(&w, &later, NOW + KEEP), 0);
    static const unsigned char zero[RNL_KEY_BYTES];
    assert_memory_equal(w.rx.rx_old.secret, zero, RNL_KEY_BYTES);
    assert_int_equal(open_at(&w, &late, NOW + KEEP - 1), 0); /* gone is gone */
}

static void a_phase_that_cannot_be_is_not_even_tried(void **state)
{
    (void)state;
    struct way w;
    struct sent s[3];
    way_init(&w, RNL_PROTECT_AUTHENTICATE, (struct rnl_key_limits){1, 10, 1000});
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seal(&w, &s[i], 0), 0);
        rnl_keys_acked(&w.tx, (uint64_t)i);
    }
    assert_int_equal(s[2].phase, 2);
    uint64_t expanded = sealer.expanded;
    assert_int_equal(open_at(&w, &s[2], NOW), 0); /* two ahead */
    struct sent older = s[0];
    older.at[1] |= RNL_PACKET_PHASE; /* one behind the first */
    assert_int_equal(open_at(&w, &older, NOW), 0);
    assert_int_equal(sealer.expanded, expanded);
    assert_int_equal(w.rx.rx_forged, 0);
    assert_int_equal(open_at(&w, &s[0], NOW), 1);
    assert_int_equal(open_at(&w, &s[1], NOW), 1);
    assert_int_equal(open_at(&w, &s[2], NOW), 1);
    assert_int_equal(w.rx.rx_phase, 2);
}

static void a_forged_packet_moves_no_phase(void **state)
{
    (void)state;
    struct way w;
    struct sent s;
    way_init(&w, RNL_PROTECT_ENCRYPT, (struct rnl_key_limits){100, 200, 50});
    assert_int_equal(seal(&w, &s, 0), 0);
    for (unsigned phase = 0; phase < 4; phase++)
        for (unsigned i = 0; i < 10; i++) {
            struct sent forged = s;
            forged.at[1] = (unsigned char)((forged.at[1] & ~RNL_PACKET_PHASE) | phase << RNL_PACKET_PHASE_SHIFT);
            forged.at[PACKET - 1 - i] ^= 1;
            assert_int_equal(open_at(&w, &forged, NOW), 0);
        }
    assert_int_equal(w.rx.rx_phase, 0);
    assert_int_equal(w.rx.rx_forged, 20); /* two of four phases could be */
    struct sent plain = s;
    plain.at[1] &= (unsigned char)~RNL_PACKET_ENC; /* "this one is not encrypted" */
    assert_int_equal(open_at(&w, &plain, NOW), 0);
    assert_int_equal(open_at(&w, &s, NOW), 1);
    for (unsigned i = 0; i < 29; i++) {
        struct sent forged = s;
        forged.at[20] ^= (unsigned char)(i + 1);
        assert_int_equal(open_at(&w, &forged, NOW), 0);
    }
    s.at[20] ^= 1;
    assert_int_equal(open_at(&w, &s, NOW), RNL_ERR_PEER_BROKEN); /* the limit */
    assert_non_null(strstr(rnl_last_error()->text, "forged"));
}

/* Flows of a connection number their packets alike, so no two may have a key in common: nor with a later phase. */
static void each_flow_has_keys_of_its_own(void **state)
{
    unsigned char key[8][RNL_KEY_BYTES] = {{1, 2, 3}};
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        rnl_flow_key(key[1 + i], key[0], i);
    memcpy(key[5], key[1], RNL_KEY_BYTES);
    rnl_flow_key(key[5], key[5], 1);
    rnl_next_key(key[6], key[0]);
    rnl_next_key(key[7], key[2]);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(key[i], key[k], RNL_KEY_BYTES);
}

static void the_defaults_are_those_of_the_ciphers(void **state)
{
    (void)state;
    struct rnl_key_limits plain = rnl_key_limits_default((struct rnl_suite){0, RNL_PROTECT_AUTHENTICATE});
    struct rnl_key_limits secret = rnl_key_limits_default((struct rnl_suite){0, RNL_PROTECT_ENCRYPT});
    assert_int_equal(plain.never_after, (uint64_t)1 << 32);
    assert_int_equal(secret.never_after, (uint64_t)1 << 23);
    assert_true(plain.change_after < plain.never_after && secret.change_after < secret.never_after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_as_another_implementation_derives_them),
        cmocka_unit_test(whatever_differs_gives_another_key),
        cmocka_unit_test(a_number_is_sealed_once),
        cmocka_unit_test(the_next_key_waits_for_an_acknowledgement_of_this_one),
        cmocka_unit_test(the_old_key_lives_as_long_as_it_was_told),
        cmocka_unit_test(a_phase_that_cannot_be_is_not_even_tried),
        cmocka_unit_test(a_forged_packet_moves_no_phase),
        cmocka_unit_test(each_flow_has_keys_of_its_own),
        cmocka_unit_test(the_defaults_are_those_of_the_ciphers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
