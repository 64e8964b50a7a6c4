/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_hello.c - HELLO and UNKNOWN: against bytes that another implementation made, each bit turned over, each length,
 * what a member of the job could say that cannot be, and other versions. */
#include "net/wire/bytes.h"
#include "net/wire/hello.h"
#include "support/unit.h"

static struct rnl_job_keys job;
static unsigned char wire[2000];

static int setup(void **state)
{
    (void)state;
    unsigned char key[RNL_JOB_SECRET];
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    rnl_job_keys_derive(&job, key);
    return 0;
}

static struct rnl_hello some_hello(void)
{
    struct rnl_hello h = {.src = 3,
                          .dst = 7,
                          .src_incarnation = 0x1111,
                          .dst_incarnation = 0x2222,
                          .connection = 0x01020304,
                          .window_bytes = 100000,
                          .ack_delay_ns = 25000,
                          .mtu_bytes = 1472,
                          .flags = RNL_HELLO_UP,
                          .protect = 1,
                          .ciphers = 3};
    memset(h.nonce, 0xa0, sizeof h.nonce);
    memset(h.echo, 0xb0, sizeof h.echo);
    return h;
}

static enum rnl_hello_verdict decode(size_t bytes, struct rnl_hello *h)
{
    unsigned char *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, wire, bytes);
    enum rnl_hello_verdict verdict = rnl_hello_decode(exact, bytes, &job, h);
    free(exact);
    return verdict;
}

static void each_field_lies_where_the_picture_shows_it(void **state)
{
    (void)state;
    static const unsigned char head[] = {0x16, 2, 128, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0,    0,    0, 0, 3, 0, 0, 0,
                                         7,    0, 0,   0, 0x11, 0x11, 0, 0, 0, 0, 0, 0, 0x22, 0x22, 0, 0, 0, 0, 0, 0};
    static const unsigned char rest[] = {4, 3, 2, 1, 1, 3, 0xc0, 0x05, 0xa0, 0x86, 0x01, 0, 0xa8, 0x61, 0, 0};
    static const unsigned char tag[] = {0x8e, 0x6e, 0x5b, 0xcf, 0x75, 0x13, 0x91, 0x8f,
                                        0xe8, 0xb9, 0x5e, 0xb1, 0xc3, 0xb4, 0xf4, 0x6c}; /* Python's hashlib */
    struct rnl_hello h = some_hello(), got;
    for (size_t room = 0; room < RNL_HELLO_BYTES; room++)
        assert_int_equal(rnl_hello_encode(wire, room, &job, &h), 0);
    assert_int_equal(rnl_hello_encode(wire, RNL_HELLO_BYTES, &job, &h), RNL_HELLO_BYTES);
    assert_memory_equal(wire, head, sizeof head);
    assert_memory_equal(wire + 40, h.nonce, 16);
    assert_memory_equal(wire + 56, h.echo, 16);
    assert_memory_equal(wire + 72, rest, sizeof rest);
    assert_memory_equal(wire + 112, tag, sizeof tag);
    assert_int_equal(decode(RNL_HELLO_BYTES, &got), RNL_HELLO_GOOD);
    h.version = RNL_WIRE_VERSION;
    assert_memory_equal(&got, &h, sizeof h);
    struct rnl_packet p; /* and to whoever asks only for its type it is a packet */
    assert_int_equal(rnl_packet_decode(wire, RNL_HELLO_BYTES, &p), RNL_PACKET_GOOD);
    assert_int_equal(p.type, RNL_PACKET_HELLO);
}

static void every_bit_that_is_turned_over_is_noticed(void **state)
{
    (void)state;
    struct rnl_hello h = some_hello(), got;
    rnl_hello_encode(wire, sizeof wire, &job, &h);
    for (unsigned bit = 0; bit < RNL_HELLO_BYTES * 8; bit++) {
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
        enum rnl_hello_verdict v = decode(RNL_HELLO_BYTES, &got);
        assert_true(v == RNL_HELLO_FORGED || v == RNL_HELLO_NONE);
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t bytes = 0; bytes < 1500; bytes++)
        if (bytes != RNL_HELLO_BYTES)
            assert_int_not_equal(decode(bytes, &got), RNL_HELLO_GOOD);
    struct rnl_job_keys other = job;
    other.hello[0] ^= 1;
    assert_int_equal(rnl_hello_decode(wire, RNL_HELLO_BYTES, &other, &got), RNL_HELLO_FORGED);
}

/* Seals anew what was changed: what a member of the job could send. */
static void tag(size_t bytes)
{
    rnl_keyed_hash(wire + bytes - 16, job.hello, "runnel hello", wire, bytes - 16);
}

static void what_a_member_may_not_say_is_refused(void **state)
{
    (void)state;
    struct rnl_hello h, got;
#define REFUSED(change)                                                 \
    do {                                                                \
        h = some_hello();                                               \
        change;                                                         \
        rnl_hello_encode(wire, sizeof wire, &job, &h);                  \
        assert_int_equal(decode(RNL_HELLO_BYTES, &got), RNL_HELLO_BAD); \
    } while (0)
    REFUSED(h.src_incarnation = 0);
    REFUSED(h.connection = 0);
    REFUSED(memset(h.nonce, 0, 16));
    REFUSED(memset(h.echo, 0, 16)); /* a connection of one nonce */
    REFUSED(h.flags = RNL_HELLO_SURE);
    REFUSED(h.flags = RNL_HELLO_SURE | RNL_HELLO_WANTS_REPLY);
    REFUSED(h.flags = RNL_HELLO_UP | RNL_HELLO_WANTS_REPLY);
    REFUSED(h.mtu_bytes = RNL_HELLO_BYTES - 1);
#undef REFUSED
    h = some_hello();
    static const unsigned zero[] = {4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (unsigned i = 0; i < sizeof zero / sizeof *zero + 24; i++) {
        rnl_hello_encode(wire, sizeof wire, &job, &h);
        wire[i < 12 ? zero[i] : 88 + i - 12] = 1;
        tag(RNL_HELLO_BYTES);
        assert_int_equal(decode(RNL_HELLO_BYTES, &got), RNL_HELLO_BAD);
    }
    for (unsigned flags = 8; flags < 256; flags += 8) {
        h.flags = (uint8_t)flags;
        rnl_hello_encode(wire, sizeof wire, &job, &h);
        assert_int_equal(decode(RNL_HELLO_BYTES, &got), RNL_HELLO_BAD);
    }
    h = some_hello();
    rnl_hello_encode(wire, sizeof wire, &job, &h);
    memset(wire + RNL_HELLO_BYTES - 16, 0, 24);
    wire[2] = RNL_HELLO_BYTES + 8;
    tag(RNL_HELLO_BYTES + 8);
    assert_int_equal(decode(RNL_HELLO_BYTES + 8, &got), RNL_HELLO_BAD);
}

static void unknown_is_of_its_rank_and_of_its_packet(void **state)
{
    (void)state;
    static const unsigned char expected[] = {
        0x26, 0, 40, 0, 4,    3,    2,    1,    5,    0,    0,    0,    0,    0,    0,    0x80, 0x11, 0x11, 0,    0,
        0,    0, 0,  0, 0x95, 0x93, 0x8a, 0x22, 0xc5, 0x66, 0xd1, 0xc9, 0x07, 0x4a, 0x4a, 0xc0, 0x73, 0xfd, 0x31, 0xe4};
    struct rnl_unknown u = {0x01020304, 5, 1, 0x1111}, got;
    assert_int_equal(rnl_unknown_encode(wire, RNL_UNKNOWN_BYTES - 1, &job, 3, &u), 0);
    assert_int_equal(rnl_unknown_encode(wire, RNL_UNKNOWN_BYTES, &job, 3, &u), RNL_UNKNOWN_BYTES);
    assert_memory_equal(wire, expected, sizeof expected);
    assert_int_equal(rnl_unknown_decode(wire, RNL_UNKNOWN_BYTES, &job, 3, &got), 1);
    assert_int_equal(got.connection, u.connection);
    assert_int_equal(got.number, u.number);
    assert_int_equal(got.control, u.control);
    assert_int_equal(got.incarnation, u.incarnation);
    assert_int_equal(rnl_unknown_decode(wire, RNL_UNKNOWN_BYTES, &job, 4, &got), 0);
    for (unsigned bit = 0; bit < RNL_UNKNOWN_BYTES * 8; bit++) {
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(rnl_unknown_decode(wire, RNL_UNKNOWN_BYTES, &job, 3, &got), 0);
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t bytes = 0; bytes < 80; bytes++)
        if (bytes != RNL_UNKNOWN_BYTES)
            assert_int_equal(rnl_unknown_decode(wire, bytes, &job, 3, &got), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_lies_where_the_picture_shows_it),
        cmocka_unit_test(every_bit_that_is_turned_over_is_noticed),
        cmocka_unit_test(what_a_member_may_not_say_is_refused),
        cmocka_unit_test(unknown_is_of_its_rank_and_of_its_packet),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
