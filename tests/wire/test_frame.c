/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_frame.c - frames: what is written is what is read, nothing cut or impossible is taken, and low halves grow back
 * into the right numbers. */
#include "net/wire/frame.h"
#include "support/random.h"
#include "support/unit.h"

enum { BODY = 2000, FRAMES_MAX = 64 };

static unsigned char body[BODY];

static int next_exact(struct rnl_frames *reader, struct rnl_frame *f)
{
    memset(f, 0x5a, sizeof *f);
    return rnl_frame_next(reader, f);
}

/* Takes a body apart, from memory of exactly its size. Returns the frames in it, or -1. */
static int take(const unsigned char *at, uint32_t bytes, struct rnl_frame *frames, unsigned char *kept)
{
    unsigned char *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, at, bytes);
    struct rnl_frames reader = rnl_frames_of(exact, bytes);
    struct rnl_frame f;
    int n = 0, status;
    while ((status = next_exact(&reader, &f)) == 1 && n < FRAMES_MAX) {
        assert_true(f.at >= exact && f.at + f.bytes <= exact + bytes);
        if (f.kind == RNL_FRAME_CELLS) {
            const unsigned char *line_at = f.at;
            struct rnl_frame_cell line;
            for (unsigned i = 0; i < f.count; i++)
                line_at = rnl_frame_cell(line_at, &line);
            assert_ptr_equal(line_at, f.at + f.bytes);
        }
        if (frames) {
            f.at = kept + (f.at - exact);
            frames[n] = f;
        }
        n++;
    }
    if (kept)
        memcpy(kept, exact, bytes);
    free(exact);
    assert_true(status == 0 || status == 1 || status == RNL_ERR_PEER_BROKEN);
    return status < 0 ? -1 : n;
}

static rnl_header head_of(uint64_t number, unsigned n, unsigned len, uint16_t ack)
{
    return rnl_header_key(RNL_CELL_RECORDS, 0x1234, len) | (uint16_t)(number * 8 + n) | (rnl_header)ack << 16;
}

static void each_frame_lies_where_the_picture_shows_it(void **state)
{
    (void)state;
    static const unsigned char payload[] = {1, 2, 3, 4, 5, 6};
    static const unsigned char lines[] = {1,    1,    1,    0,    0x78, 0x56, 0x34, 0x12, /* LINES */
                                          0xc2, 0xb3, 0xef, 0xbe, 0x60, 0x00, 0x34, 0x12, /* the line's header */
                                          1,    2,    3,    4,    5,    6};
    unsigned char *at = rnl_frame_put_cell(body + RNL_FRAME_HEADER, head_of(0x12345678, 2, 3, 0xbeef), payload);
    rnl_frame_put_head(body, RNL_FRAME_CELLS, 1, 1, 0x9912345678);
    assert_int_equal(at - body, sizeof lines);
    assert_memory_equal(body, lines, sizeof lines);
    static const unsigned char words[] = {3, 0, 0x02, 0x02, 0x9a, 0x78, 0x56, 0x34, 8, 7, 6, 5,
                                          4, 3, 2,    1,    1,    0,    0,    0,    0, 0, 0, 0x80};
    uint64_t word[RNL_CREDIT_WORDS] = {0};
    word[RNL_CREDIT_GRANTED] = 0x0102030405060708;
    word[RNL_CREDIT_MAX] = 0x8000000000000001;
    assert_int_equal(
        rnl_frame_put_credit(body, sizeof words, 1u << RNL_CREDIT_GRANTED | 1u << RNL_CREDIT_MAX, word, 0x123456789a),
        sizeof words);
    assert_memory_equal(body, words, sizeof words);
    static const unsigned char bulk[] = {2, 1, 0x05, 0x00, 0xef, 0xcd, 0xab, 0x89};
    rnl_frame_put_head(body, RNL_FRAME_BULK, 1, 5, 0x123489abcdef);
    assert_memory_equal(body, bulk, sizeof bulk);
    static const unsigned char ping[] = {5, 0, 0, 0, 0, 0, 0, 0};
    assert_int_equal(rnl_frame_put_bare(body, sizeof body, RNL_FRAME_PING), sizeof ping);
    assert_memory_equal(body, ping, sizeof ping);
}

struct mix { /* a body that was written at random, and what is in it */
    uint32_t bytes;
    int n;
    struct rnl_frame frame[FRAMES_MAX];
    uint64_t words[RNL_CREDIT_WORDS];
};

static void write_mix(struct test_random *r, struct mix *m, uint32_t room)
{
    unsigned char *at = body, *end = body + room;
    memset(m, 0, sizeof *m);
    for (unsigned w = 0; w < RNL_CREDIT_WORDS; w++)
        m->words[w] = test_random_next(r);
    while (m->n < FRAMES_MAX && !test_random_one_in(r, 8)) {
        struct rnl_frame *f = &m->frame[m->n];
        uint32_t left = (uint32_t)(end - at), bytes = 0;
        f->kind = (uint8_t)(1 + test_random_below(r, RNL_FRAME_KINDS - 1));
        f->lane = (uint8_t)test_random_below(r, RNL_LANES);
        f->low = (uint32_t)test_random_next(r);
        if (f->kind == RNL_FRAME_CELLS && left >= RNL_FRAME_HEADER + RNL_FRAME_CELL_MAX) {
            unsigned char *line = at + RNL_FRAME_HEADER;
            do {
                unsigned len = test_random_below(r, RNL_CELL_PAYLOAD + 1);
                unsigned n = 1 + test_random_below(r, rnl_tx_more(len) + 1);
                line = rnl_frame_put_cell(line, head_of(f->low + f->count, n, len, (uint16_t)f->low),
                                          test_pattern(f->low, f->count * 64u));
                f->count++;
            } while (end - line >= RNL_FRAME_CELL_MAX && !test_random_one_in(r, 4));
            rnl_frame_put_head(at, RNL_FRAME_CELLS, f->lane, f->count, f->low);
            bytes = (uint32_t)(line - at);
        } else if (f->kind == RNL_FRAME_BULK && left > RNL_FRAME_HEADER) {
            f->count = (uint16_t)(1 + test_random_below(r, left - RNL_FRAME_HEADER));
            rnl_frame_put_head(at, RNL_FRAME_BULK, f->lane, f->count, f->low);
            memcpy(at + RNL_FRAME_HEADER, test_pattern(f->low, 0), f->count);
            bytes = RNL_FRAME_HEADER + f->count;
        } else if (f->kind == RNL_FRAME_CREDIT) {
            f->count = (uint16_t)(1 + test_random_below(r, RNL_CREDIT_ALL));
            f->lane = 0;
            bytes = rnl_frame_put_credit(at, left, f->count, m->words, f->low);
        } else if (f->kind == RNL_FRAME_CREDIT_REQUEST || f->kind == RNL_FRAME_PING) {
            f->lane = 0;
            f->low = 0;
            bytes = rnl_frame_put_bare(at, left, f->kind);
        }
        if (bytes == 0)
            break;
        at += bytes;
        m->n++;
    }
    m->bytes = (uint32_t)(at - body);
}

static void what_is_written_is_what_is_read(void **state)
{
    (void)state;
    static unsigned char kept[BODY];
    static struct rnl_frame got[FRAMES_MAX];
    unsigned rounds = 5000 / test_slowness();
    for (unsigned i = 0; i < rounds; i++) {
        struct test_random r = test_random_of(1, i);
        struct mix m;
        write_mix(&r, &m, test_random_below(&r, BODY) + 1);
        uint32_t pad = test_random_below(&r, 40);
        pad = m.bytes + pad > BODY ? 0 : pad;
        memset(body + m.bytes, 0, pad);
        assert_int_equal(take(body, m.bytes + pad, got, kept), m.n);
        for (int k = 0; k < m.n; k++) {
            assert_int_equal(got[k].kind, m.frame[k].kind);
            assert_int_equal(got[k].lane, m.frame[k].lane);
            assert_int_equal(got[k].count, m.frame[k].count);
            assert_int_equal(got[k].low, m.frame[k].low);
            if (got[k].kind == RNL_FRAME_BULK)
                assert_memory_equal(got[k].at, test_pattern(got[k].low, 0), got[k].bytes);
            if (got[k].kind == RNL_FRAME_CREDIT) {
                uint64_t words[RNL_CREDIT_WORDS];
                for (unsigned w = 0; w < RNL_CREDIT_WORDS; w++)
                    words[w] = ~m.words[w];
                rnl_frame_credit(&got[k], words);
                for (unsigned w = 0; w < RNL_CREDIT_WORDS; w++)
                    assert_int_equal(words[w], got[k].count >> w & 1 ? m.words[w] : ~m.words[w]);
            }
            if (got[k].kind == RNL_FRAME_CELLS) {
                const unsigned char *at = got[k].at;
                for (unsigned l = 0; l < got[k].count; l++) {
                    struct rnl_frame_cell line;
                    at = rnl_frame_cell(at, &line);
                    assert_int_equal(RNL_HEADER_POS(line.head) >> 3, (got[k].low + l) & 0x1fff);
                    assert_memory_equal(line.payload, test_pattern(got[k].low, l * 64u), line.bytes);
                }
            }
        }
    }
}

/* A body that is cut between frames is a shorter body; anywhere else it is none. */
static void a_body_that_is_cut_ends_between_frames_or_is_refused(void **state)
{
    (void)state;
    unsigned rounds = 300 / test_slowness() + 1;
    for (unsigned i = 0; i < rounds; i++) {
        struct test_random r = test_random_of(2, i);
        struct mix m;
        write_mix(&r, &m, 300);
        uint32_t between = 0;
        int n = 0;
        for (uint32_t cut = 0; cut <= m.bytes; cut++) {
            int got = take(body, cut, NULL, NULL);
            if (cut == between) {
                assert_int_equal(got, n);
                if (n < m.n) {
                    struct rnl_frames reader = rnl_frames_of(body + between, m.bytes - between);
                    struct rnl_frame f;
                    assert_int_equal(rnl_frame_next(&reader, &f), 1);
                    between = (uint32_t)(reader.at - body);
                }
                n++;
            } else {
                assert_int_equal(got, -1);
            }
        }
    }
}

static void heads_that_cannot_be_are_refused(void **state)
{
    (void)state;
    uint64_t words[RNL_CREDIT_WORDS] = {0};
    unsigned char payload[64] = {0};
    struct rnl_frames reader;
    struct rnl_frame f;
#define REFUSED(bytes)                                                  \
    do {                                                                \
        reader = rnl_frames_of(body, (uint32_t)(bytes));                \
        assert_int_equal(next_exact(&reader, &f), RNL_ERR_PEER_BROKEN); \
    } while (0)
    for (unsigned kind = RNL_FRAME_KINDS; kind < 256; kind++) {
        memset(body, 0, 64);
        body[0] = (unsigned char)kind;
        REFUSED(64);
    }
    for (unsigned lane = RNL_LANES; lane < 256; lane++) {
        rnl_frame_put_head(body, RNL_FRAME_BULK, lane, 1, 0);
        REFUSED(64);
        rnl_frame_put_head(body, RNL_FRAME_CELLS, lane, 1, 0);
        rnl_frame_put_cell(body + 8, head_of(0, 1, 8, 0), payload);
        REFUSED(24);
    }
    rnl_frame_put_head(body, RNL_FRAME_BULK, 0, 0, 0); /* nothing */
    REFUSED(64);
    rnl_frame_put_head(body, RNL_FRAME_CELLS, 0, 0, 0);
    REFUSED(64);
    rnl_frame_put_head(body, RNL_FRAME_CREDIT, 0, 0, 0);
    REFUSED(64);
    for (unsigned bit = RNL_CREDIT_WORDS; bit < 16; bit++) { /* words that there are not */
        rnl_frame_put_head(body, RNL_FRAME_CREDIT, 0, 1u << bit, 0);
        REFUSED(64);
    }
    rnl_frame_put_credit(body, 64, 1, words, 0);
    body[1] = 1;
    REFUSED(16);
    for (unsigned at = 1; at < 8; at++) { /* ASK and PING say nothing more */
        rnl_frame_put_bare(body, 64, RNL_FRAME_CREDIT_REQUEST);
        body[at] = 1;
        REFUSED(8);
        rnl_frame_put_bare(body, 64, RNL_FRAME_PING);
        body[at] = 0x80;
        REFUSED(8);
    }
    for (unsigned at = 1; at < 40; at++) { /* padding is zero */
        memset(body, 0, 40);
        body[at] = 1;
        REFUSED(40);
    }
    rnl_frame_put_head(body, RNL_FRAME_CELLS, 0, 1, 77);
    rnl_frame_put_cell(body + 8, head_of(77, 0, 8, 0), payload); /* no item */
    REFUSED(64);
    rnl_frame_put_cell(body + 8, head_of(78, 1, 8, 0), payload); /* another line's place */
    REFUSED(64);
    rnl_frame_put_cell(body + 8, head_of(77, 1, 57, 0), payload); /* longer than a line */
    REFUSED(128);
    rnl_frame_put_head(body, RNL_FRAME_CELLS, 0, 1, 77);
    memset(body + 8, 0, 400);
    rnl_put64(body + 8, head_of(77, 7, 9, 0)); /* together longer than a line */
    REFUSED(400);
    rnl_put64(body + 8, head_of(77, 7, 8, 0));
    reader = rnl_frames_of(body, 8 + 8 + 56);
    assert_int_equal(next_exact(&reader, &f), 1);
#undef REFUSED
}

static void low_halves_grow_back(void **state)
{
    (void)state;
    static const uint64_t near[] = {
        0,           1,           5,           0x7fffffff,  0x80000000,     0x80000001,        0xffffffff,
        0x100000000, 0x100000001, 0x17fffffff, 0x180000000, 0x123456789abc, 0x7fffffffffffffff};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        for (int64_t apart = -3; apart <= 3; apart++)
            for (int far = 0; far < 2; far++) {
                int64_t by = far == 0 ? apart : apart < 0 ? -0x7fffff00 + apart : 0x7fffff00 + apart;
                if (by < 0 && (uint64_t)-by > near[i])
                    continue; /* there is nothing below 0 */
                uint64_t value = near[i] + (uint64_t)by;
                assert_int_equal(rnl_wire_widen(near[i], (uint32_t)value), value);
            }
    assert_int_equal(rnl_wire_widen(0, 0xffffffff), 0xffffffff);
    assert_int_equal(rnl_wire_widen(3, 0xfffffffe), 0xfffffffe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_frame_lies_where_the_picture_shows_it),
        cmocka_unit_test(what_is_written_is_what_is_read),
        cmocka_unit_test(a_body_that_is_cut_ends_between_frames_or_is_refused),
        cmocka_unit_test(heads_that_cannot_be_are_refused),
        cmocka_unit_test(low_halves_grow_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
