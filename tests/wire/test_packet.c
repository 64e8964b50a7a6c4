/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_packet.c - header, acknowledgement block and control bodies: what is written is what is read, at the bytes where
 * the picture shows it, and nothing that is cut or impossible is taken. */
#include "net/wire/packet.h"
#include "support/random.h"
#include "support/unit.h"

static unsigned char wire[70000];

/* A copy of exactly its size on the heap, so that the address sanitizer sees a read past the end. */
static enum rnl_packet_verdict decode(const unsigned char *at, size_t bytes, struct rnl_packet *p)
{
    unsigned char *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, at, bytes);
    memset(p, 0x5a, sizeof *p);
    enum rnl_packet_verdict verdict = rnl_packet_decode(exact, bytes, p);
    free(exact);
    return verdict;
}

static uint32_t write_packet(const struct rnl_packet *p, uint32_t body_bytes)
{
    uint32_t body = rnl_packet_encode(wire, sizeof wire, p);
    assert_int_not_equal(body, 0);
    memset(wire + body, 0xb0, body_bytes + RNL_PACKET_TAG);
    return rnl_packet_finish(wire, body + body_bytes);
}

static void each_field_lies_where_the_picture_shows_it(void **state)
{
    (void)state;
    struct rnl_packet p = {.type = RNL_PACKET_DATA,
                           .flags = RNL_PACKET_ACK | RNL_PACKET_ACK_WANTED | RNL_PACKET_ECN,
                           .control = 1,
                           .connection = 0x01020304,
                           .number = 0x1112131415161718,
                           .ack = {.largest = 0x2122232425262728,
                                   .hold_ns = 0x3132 * RNL_ACK_HOLD_UNIT_NS,
                                   .run = 0x3334,
                                   .window_bytes = 0x414243 * RNL_ACK_WINDOW_UNIT,
                                   .ce = 0x51525354,
                                   .ect = 0x61626364,
                                   .ranges = 2,
                                   .range = {{0x7172, 0x7374}, {0x8182, 0x8384}}}};
    static const unsigned char expected[] = {0x06, 0x23, 67,   0,    0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16, 0x15,
                                             0x14, 0x13, 0x12, 0x91, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,
                                             0x32, 0x31, 0x34, 0x33, 0x02, 0x43, 0x42, 0x41, 0x54, 0x53, 0x52, 0x51,
                                             0x64, 0x63, 0x62, 0x61, 0x72, 0x71, 0x74, 0x73, 0x82, 0x81, 0x84, 0x83};
    assert_int_equal(write_packet(&p, 3), sizeof expected + 3 + RNL_PACKET_TAG);
    assert_memory_equal(wire, expected, sizeof expected);
    struct rnl_packet ping = {.type = RNL_PACKET_CLOSE, .control = 0, .connection = 7, .number = 5};
    write_packet(&ping, 8);
    assert_int_equal(wire[0], 0x46);
    assert_int_equal(wire[1], 0);
}

/* Any packet that can be: every type with each of its flags. */
static void random_packet(struct test_random *r, struct rnl_packet *p)
{
    static const uint8_t types[] = {RNL_PACKET_DATA, RNL_PACKET_PROBE, RNL_PACKET_CLOSE, RNL_PACKET_PATH,
                                    RNL_PACKET_UNKNOWN};
    memset(p, 0, sizeof *p);
    p->type = types[test_random_below(r, 5)];
    p->control = p->type == RNL_PACKET_PROBE || p->type == RNL_PACKET_CLOSE || p->type == RNL_PACKET_PATH ||
                 test_random_one_in(r, 3);
    p->connection = (uint32_t)test_random_next(r);
    p->number = test_random_next(r) >> (1 + test_random_below(r, 63));
    if (p->type != RNL_PACKET_UNKNOWN)
        p->flags = (uint8_t)(test_random_next(r) & (RNL_PACKET_ENC | RNL_PACKET_PHASE | RNL_PACKET_ACK));
    if (p->type == RNL_PACKET_DATA && test_random_one_in(r, 2))
        p->flags |= RNL_PACKET_ACK_WANTED;
    if ((p->type == RNL_PACKET_DATA || p->type == RNL_PACKET_PROBE) && test_random_one_in(r, 2))
        p->flags |= (uint8_t)(test_random_next(r) & RNL_PACKET_FLOW);
    if (!(p->flags & RNL_PACKET_ACK))
        return;
    if (test_random_one_in(r, 2))
        p->flags |= RNL_PACKET_ECN;
    struct rnl_ack *a = &p->ack;
    a->largest = test_random_next(r) >> (1 + test_random_below(r, 63));
    a->hold_ns = test_random_below(r, 0x10000) * RNL_ACK_HOLD_UNIT_NS;
    a->window_bytes = test_random_below(r, 0x1000000) * RNL_ACK_WINDOW_UNIT;
    if (p->flags & RNL_PACKET_ECN) {
        a->ce = (uint32_t)test_random_next(r);
        a->ect = (uint32_t)test_random_next(r);
    }
    uint64_t below = a->largest;
    a->run = (uint16_t)(test_random_below(r, 0x10000) % (below < 0xffff ? below + 1 : 0x10000));
    below -= a->run;
    unsigned most = test_random_below(r, RNL_ACK_RANGES_MAX + 1);
    while (a->ranges < most && below >= 2) {
        struct rnl_ack_range range = {
            (uint16_t)(1 + test_random_below(r, below - 1 < 0xffff ? (uint32_t)below - 1 : 0xffff)), 1};
        below -= range.gap;
        range.length = (uint16_t)(1 + test_random_below(r, below < 0xffff ? (uint32_t)below : 0xffff));
        below -= range.length;
        a->range[a->ranges++] = range;
    }
}

static void every_truncation_and_every_extension_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct test_random r = test_random_of(2, i);
        struct rnl_packet p, q;
        random_packet(&r, &p);
        uint32_t bytes = write_packet(&p, test_random_below(&r, 30));
        for (uint32_t cut = 0; cut <= bytes + 20; cut++)
            if (cut != bytes)
                assert_int_not_equal(decode(wire, cut, &q), RNL_PACKET_GOOD);
        /* and when the header claims the length that is there, the block has to fit into it */
        uint32_t least = RNL_PACKET_MIN;
        if (p.flags & RNL_PACKET_ACK)
            least += rnl_ack_bytes(&p.ack, p.flags & RNL_PACKET_ECN);
        for (uint32_t cut = 0; cut < bytes; cut++) {
            wire[2] = (unsigned char)cut;
            wire[3] = (unsigned char)(cut >> 8);
            int good = decode(wire, cut, &q) == RNL_PACKET_GOOD;
            assert_int_equal(good, cut >= least);
        }
    }
}

static void a_bit_that_is_not_there_is_refused(void **state)
{
    (void)state;
    struct rnl_packet q, p = {.type = RNL_PACKET_DATA, .connection = 1, .number = 1};
    uint32_t bytes = write_packet(&p, 8);
    unsigned good = 0;
    for (unsigned first = 0; first < 256; first++) /* each version, type and flag */
        for (unsigned flags = 0; flags < 256; flags++) {
            wire[0] = (unsigned char)first;
            wire[1] = (unsigned char)flags;
            enum rnl_packet_verdict v = decode(wire, bytes, &q);
            if ((first & 15) != RNL_WIRE_VERSION)
                assert_int_equal(v, RNL_PACKET_VERSION);
            else if (first >> 4 >= RNL_PACKET_TYPES ||
                     (flags > RNL_PACKET_FLAGS && first >> 4 != RNL_PACKET_DATA && first >> 4 != RNL_PACKET_PROBE))
                assert_int_equal(v, RNL_PACKET_HEADER);
            good += v == RNL_PACKET_GOOD;
        }
    /* DATA without a block (R, E, 2 bits of phase, 2 of the flow), and UNKNOWN: the others are of the control space */
    assert_int_equal(good, 64 + 1);
}

static void an_acknowledgement_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct rnl_packet q, p = {.type = RNL_PACKET_DATA, .flags = RNL_PACKET_ACK, .connection = 1, .number = 1};
    struct {
        struct rnl_ack ack;
        enum rnl_packet_verdict verdict;
    } cases[] = {
        {{.largest = 0}, RNL_PACKET_GOOD},
        {{.largest = 5, .run = 5}, RNL_PACKET_GOOD},
        {{.largest = 5, .run = 6}, RNL_PACKET_ACK_BAD},
        {{.largest = 5, .run = 1, .ranges = 1, .range = {{2, 2}}}, RNL_PACKET_GOOD},
        {{.largest = 5, .run = 1, .ranges = 1, .range = {{2, 3}}}, RNL_PACKET_ACK_BAD},
        {{.largest = 5, .run = 1, .ranges = 1, .range = {{0, 1}}}, RNL_PACKET_ACK_BAD},
        {{.largest = 5, .run = 1, .ranges = 1, .range = {{1, 0}}}, RNL_PACKET_ACK_BAD},
        {{.largest = 9, .ranges = 2, .range = {{1, 1}, {7, 1}}}, RNL_PACKET_ACK_BAD},
        {{.largest = 9, .ranges = 2, .range = {{1, 1}, {6, 1}}}, RNL_PACKET_GOOD},
        {{.largest = RNL_PACKET_NUMBER_MAX}, RNL_PACKET_GOOD},
        {{.largest = RNL_PACKET_NUMBER_MAX + 1}, RNL_PACKET_ACK_BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p.ack = cases[i].ack;
        uint32_t bytes = write_packet(&p, 0);
        assert_int_equal(decode(wire, bytes, &q), cases[i].verdict);
    }
    p.ack = (struct rnl_ack){.largest = 1000};
    uint32_t bytes = write_packet(&p, 200);
    wire[28] = RNL_ACK_RANGES_MAX + 1;
    memset(wire + 32, 1, 4 * (RNL_ACK_RANGES_MAX + 1));
    assert_int_equal(decode(wire, bytes, &q), RNL_PACKET_ACK_BAD);
    wire[28] = 255;
    assert_int_equal(decode(wire, bytes, &q), RNL_PACKET_LENGTH);
}

static void a_probe_is_as_long_as_it_says(void **state)
{
    (void)state;
    struct rnl_packet q, p = {.type = RNL_PACKET_PROBE, .control = 1, .connection = 1, .number = 1};
    struct rnl_probe ask = {RNL_PROBE_REQUEST, 1472}, answer = {RNL_PROBE_REPLY, 1472}, got;
    uint32_t body = rnl_packet_encode(wire, sizeof wire, &p);
    assert_int_equal(rnl_probe_encode(wire, body, 1471 - body - RNL_PACKET_TAG, &ask), 0);
    uint32_t n = rnl_probe_encode(wire, body, 1472 - body - RNL_PACKET_TAG, &ask);
    assert_int_equal(rnl_packet_finish(wire, body + n), 1472);
    assert_int_equal(decode(wire, 1472, &q), RNL_PACKET_GOOD);
    assert_true(rnl_probe_decode(wire, &q, &got));
    assert_int_equal(got.kind, RNL_PROBE_REQUEST);
    assert_int_equal(got.bytes, 1472);
    for (uint32_t bit = 0; bit < n * 8; bit++) { /* nothing else is one, except an answer's kind on a long body */
        wire[body + bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(rnl_probe_decode(wire, &q, &got));
        wire[body + bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    n = rnl_probe_encode(wire, body, RNL_PROBE_BODY, &answer);
    assert_int_equal(n, RNL_PROBE_BODY);
    assert_int_equal(decode(wire, rnl_packet_finish(wire, body + n), &q), RNL_PACKET_GOOD);
    assert_true(rnl_probe_decode(wire, &q, &got));
    assert_int_equal(got.kind, RNL_PROBE_REPLY);
    ask.bytes = (uint16_t)(body + RNL_PROBE_BODY + RNL_PACKET_TAG - 1);
    assert_int_equal(rnl_probe_encode(wire, body, 1000, &ask), 0);
}

static void a_challenge_is_as_long_as_data_and_says_one_number(void **state)
{
    (void)state;
    struct rnl_packet q, p = {.type = RNL_PACKET_PATH, .control = 1, .connection = 1, .number = 1};
    const struct rnl_path_word word = {RNL_PATH_CHALLENGE, 0x8001020304050607};
    struct rnl_path_word got;
    uint32_t body = rnl_packet_encode(wire, sizeof wire, &p);
    assert_int_equal(rnl_path_encode(wire, body, 1199 - body - RNL_PACKET_TAG, 1200, &word), 0);
    assert_int_equal(rnl_path_encode(wire, body, 1200, body + RNL_PATH_BODY + RNL_PACKET_TAG - 1, &word), 0);
    uint32_t n = rnl_path_encode(wire, body, 1200 - body - RNL_PACKET_TAG, 1200, &word);
    assert_int_equal(rnl_packet_finish(wire, body + n), 1200);
    assert_int_equal(decode(wire, 1200, &q), RNL_PACKET_GOOD);
    assert_true(rnl_path_decode(wire, &q, &got));
    assert_int_equal(got.kind, RNL_PATH_CHALLENGE);
    assert_true(got.value == word.value);
    for (uint32_t bit = 0; bit < n * 8; bit++) { /* the kind, and the value, may be others */
        wire[body + bit / 8] ^= (unsigned char)(1 << bit % 8);
        int may = bit == 0 || (bit >= 64 && bit < 128);
        assert_int_equal(rnl_path_decode(wire, &q, &got), may);
        assert_true(!may || got.kind != word.kind || got.value != word.value);
        wire[body + bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    memset(wire + body + 8, 0, 8);
    assert_false(rnl_path_decode(wire, &q, &got));
    p.control = 0;
    rnl_packet_encode(wire, sizeof wire, &p);
    rnl_packet_finish(wire, body + n);
    assert_int_equal(decode(wire, 1200, &q), RNL_PACKET_HEADER);
}

static void a_close_has_its_reason(void **state)
{
    (void)state;
    struct rnl_packet q, p = {.type = RNL_PACKET_CLOSE, .control = 1, .connection = 1, .number = 1};
    uint32_t reason, body = rnl_packet_encode(wire, sizeof wire, &p);
    assert_int_equal(rnl_close_encode(wire, body, RNL_CLOSE_BODY - 1, 77), 0);
    uint32_t bytes = rnl_packet_finish(wire, body + rnl_close_encode(wire, body, RNL_CLOSE_BODY, 77));
    assert_int_equal(decode(wire, bytes, &q), RNL_PACKET_GOOD);
    assert_true(rnl_close_decode(wire, &q, &reason));
    assert_int_equal(reason, 77);
    wire[body + 5] = 1;
    assert_false(rnl_close_decode(wire, &q, &reason));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_lies_where_the_picture_shows_it),
        cmocka_unit_test(every_truncation_and_every_extension_is_refused),
        cmocka_unit_test(a_bit_that_is_not_there_is_refused),
        cmocka_unit_test(an_acknowledgement_that_cannot_be_is_refused),
        cmocka_unit_test(a_probe_is_as_long_as_it_says),
        cmocka_unit_test(a_challenge_is_as_long_as_data_and_says_one_number),
        cmocka_unit_test(a_close_has_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
