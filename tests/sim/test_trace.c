/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_trace.c - traces of the virtual network: that the file is what pcapng says, that it can be read as lines, and
 * that a damaged one is an error and no more. */
#include "net/wire/frame.h"
#include "net/wire/packet.h"
#include "runnel/runnel.h"
#include "sim/cluster/trace.h"
#include "sim/net_bench.h"
#include "support/random.h"

struct memory {
    unsigned char bytes[1 << 20];
    size_t used, room;
} file;

static int to_memory(void *arg, const void *bytes, size_t n)
{
    struct memory *m = arg;
    if (m->used + n > m->room)
        return -1;
    memcpy(m->bytes + m->used, bytes, n);
    m->used += n;
    return 0;
}

/* A DATA packet with an acknowledgement and three frames. */
static uint32_t data_packet(unsigned char *at, size_t room)
{
    struct rnl_packet p = {
        .type = RNL_PACKET_DATA,
        .flags = RNL_PACKET_ACK | RNL_PACKET_ACK_WANTED,
        .connection = 0x10002,
        .number = 77,
        .ack = {.largest = 40, .hold_ns = 2048, .window_bytes = 6400, .run = 2, .ranges = 1, .range = {{3, 1}}}};
    const uint64_t words[RNL_CREDIT_WORDS] = {[RNL_CREDIT_GRANTED] = 900, [RNL_CREDIT_WANTED] = 5};
    uint32_t end = rnl_packet_encode(at, room, &p);
    assert_true(end > 0);
    rnl_frame_put_head(at + end, RNL_FRAME_BULK, 0, 16, 64);
    memset(at + end + RNL_FRAME_HEADER, 'b', 16);
    end += RNL_FRAME_HEADER + 16;
    end += rnl_frame_put_credit(at + end, 200, 1u << RNL_CREDIT_GRANTED | 1u << RNL_CREDIT_WANTED, words, 0);
    end += rnl_frame_put_bare(at + end, 8, RNL_FRAME_PING);
    return rnl_packet_finish(at, end);
}

static void send_bytes(struct net_bench *b, uint32_t from, uint32_t to, const void *at, uint32_t bytes, uint8_t ecn)
{
    struct rnl_socket_out out = {.to = vc_net_addr(to, NET_PORT), .at = at, .bytes = bytes, .ecn = ecn};
    struct rnl_socket_result r;
    assert_int_equal(b->socket[from]->ops->send(b->socket[from], &out, 1, &r), 1);
}

/* A short story: a packet there, one lost, one to nobody, one with an odd length. */
static void make_trace(size_t room)
{
    struct net_bench *b = net_bench_new(1, 3, 1);
    struct vc_trace *t;
    static unsigned char packet[2048];
    file.used = 0;
    file.room = room;
    assert_int_equal(vc_net_star(b->net, 3, &(struct vc_net_link_config){.delay_ns = 1000}), 0);
    net_bench_start(b, (struct vc_net_socket_config){.plain = 1});
    assert_int_equal(vc_trace_new(b->net, to_memory, &file, "a story, seed 1", &t), 0);
    vc_net_set_tap(b->net, vc_trace_tap, t);
    uint32_t bytes = data_packet(packet, sizeof packet);
    net_bench_run(b, 1500000000);
    send_bytes(b, 0, 1, packet, bytes, RNL_ECN_ECT0);
    net_bench_run(b, 1500010000);
    assert_int_equal(vc_net_verb_run(b->net, 3, (const char *const[]){"fault", "s0>2", "nth=1"}), 0);
    send_bytes(b, 1, 2, packet, bytes, 0);
    net_bench_run(b, 1500020000);
    b->socket[0]->ops->close(b->socket[0]);
    send_bytes(b, 1, 0, "hello", 5, RNL_ECN_CE);
    net_bench_run(b, UINT64_MAX);
    int status = vc_trace_end(t);
    assert_int_equal(status, room >= sizeof file.bytes ? 0 : RNL_ERR_SYSTEM);
    vc_net_set_tap(b->net, NULL, NULL);
    net_bench_free(b);
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void the_file_is_what_pcapng_says(void **state)
{
    (void)state;
    unsigned blocks[7] = {0};
    make_trace(sizeof file.bytes);
    assert_true(file.used > 200);
    for (size_t at = 0; at < file.used;) {
        const unsigned char *p = file.bytes + at;
        uint32_t type = get32(p), length = get32(p + 4);
        assert_int_equal(length % 4, 0);
        assert_true(length >= 12 && at + length <= file.used);
        assert_int_equal(get32(p + length - 4), length);
        if (at == 0) {
            assert_int_equal(type, 0x0a0d0d0a);
            assert_int_equal(get32(p + 8), 0x1a2b3c4d);
        } else if (type == 6) {
            uint32_t captured = get32(p + 20), sum = 0;
            assert_int_equal(captured, get32(p + 24));
            assert_true(get32(p + 8) < blocks[1]);
            assert_true(32 + captured <= length);
            for (int i = 0; i < 20; i += 2)
                sum += (uint32_t)p[28 + i] << 8 | p[28 + i + 1];
            assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff); /* the IP header's checksum */
            assert_int_equal((uint32_t)p[28 + 24] << 8 | p[28 + 25], captured - 20);
        }
        if (at > 0) {
            assert_in_range(type, 1, 6);
            blocks[type]++;
        }
        at += length;
    }
    assert_int_equal(blocks[1], 2); /* hosts that did something */
    assert_int_equal(blocks[6], 6); /* 3 sent, 1 came, 2 were lost */
}

/* Decodes what is in `file`; *text is malloc'd. */
static int decode(const struct vc_trace_filter *filter, char **text)
{
    size_t size;
    FILE *in = file.used ? fmemopen(file.bytes, file.used, "rb") : fopen("/dev/null", "rb");
    FILE *out = open_memstream(text, &size);
    assert_non_null(in);
    assert_non_null(out);
    int status = vc_trace_decode(in, out, filter);
    fclose(in);
    fclose(out);
    return status;
}

static void a_trace_can_be_read_as_lines(void **state)
{
    (void)state;
    char *text;
    make_trace(sizeof file.bytes);
    assert_int_equal(decode(NULL, &text), 0);
    static const char story[] =
        "      1.500000000 sent 0:7000 > 1:7000 108 B ECT0  DATA 77 to 00010002, phase 0, wants an ack; ack 40-38,34 "
        "held 2.048 us, window 6400; bulk lane 0 at 64: 16 B; words granted[0] 900 wants 5; ping\n"
        "      1.500002000 got  0:7000 > 1:7000 108 B ECT0  DATA 77 to 00010002, phase 0, wants an ack; ack 40-38,34 "
        "held 2.048 us, window 6400; bulk lane 0 at 64: 16 B; words granted[0] 900 wants 5; ping\n"
        "      1.500010000 sent 1:7000 > 2:7000 108 B  DATA 77 to 00010002, phase 0, wants an ack; ack 40-38,34 "
        "held 2.048 us, window 6400; bulk lane 0 at 64: 16 B; words granted[0] 900 wants 5; ping\n"
        "      1.500012000 lost 1:7000 > 2:7000 108 B  DATA 77 to 00010002, phase 0, wants an ack; ack 40-38,34 "
        "held 2.048 us, window 6400; bulk lane 0 at 64: 16 B; words granted[0] 900 wants 5; ping  "
        "[dropped at s0>2: lost by a fault, nth]\n"
        "      1.500020000 sent 1:7000 > 0:7000 5 B CE  too short for a packet\n"
        "      1.500022000 lost 1:7000 > 0:7000 5 B CE  too short for a packet  [dropped: nobody has that port]\n";
    assert_string_equal(text, story);
    free(text);
    assert_int_equal(decode(&(struct vc_trace_filter){.host = 2}, &text), 0);
    assert_null(strstr(text, "0:7000"));
    assert_non_null(strstr(text, "lost 1:7000 > 2:7000"));
    free(text);
    assert_int_equal(decode(&(struct vc_trace_filter){.host = UINT32_MAX, .only_dropped = 1}, &text), 0);
    assert_null(strstr(text, "sent"));
    free(text);
}

static void a_damaged_trace_is_an_error_and_no_more(void **state)
{
    (void)state;
    char *text;
    make_trace(sizeof file.bytes);
    size_t whole = file.used;
    unsigned errors = 0;
    for (size_t used = 0; used < whole; used++) {
        file.used = used;
        errors += decode(NULL, &text) < 0;
        free(text);
    }
    assert_true(errors > whole - 20); /* but where a block ends */
    struct test_random random = test_random_of(1, 1);
    file.used = whole;
    for (int i = 0; i < 3000; i++) {
        size_t at = test_random_below(&random, (uint32_t)whole);
        unsigned char was = file.bytes[at];
        file.bytes[at] = (unsigned char)test_random_next(&random);
        (void)decode(NULL, &text);
        free(text);
        if (i % 10) /* and now and then two or more */
            file.bytes[at] = was;
        else if (i % 100 == 0)
            make_trace(sizeof file.bytes);
    }
    memcpy(file.bytes, "PK\3\4 not a trace", 16);
    file.used = 16;
    assert_int_equal(decode(NULL, &text), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "no pcapng file"));
    free(text);
}

static void a_packet_is_no_longer_than_its_block(void **state)
{
    (void)state;
    char *text;
    unsigned char *p = file.bytes;
    make_trace(sizeof file.bytes);
    while (get32(p) != 6)
        p += get32(p + 4);
    /* All three lengths of it agree: with each other, and not with the block. */
    static const struct {
        int at, low;
    } lengths[] = {{20, 20}, {28 + 2, 28 + 3}, {28 + 24, 28 + 25}};
    for (int i = 0; i < 3; i++) {
        uint32_t length = i == 0 ? get32(p + 20) : (uint32_t)p[lengths[i].at] << 8 | p[lengths[i].low];
        length += 400;
        p[lengths[i].low] = (unsigned char)length;
        p[i == 0 ? 21 : lengths[i].at] = (unsigned char)(length >> 8);
    }
    assert_int_equal(decode(NULL, &text), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "longer than its block"));
    free(text);
}

static void a_trace_that_cannot_be_written_says_so(void **state)
{
    (void)state;
    make_trace(100);
}

static void any_bytes_can_be_described(void **state)
{
    (void)state;
    static unsigned char packet[2048];
    char text[200];
    struct test_random random = test_random_of(2, 2);
    for (int i = 0; i < 20000; i++) {
        uint32_t bytes = data_packet(packet, sizeof packet);
        for (uint32_t k = test_random_below(&random, 4); k > 0; k--)
            packet[test_random_below(&random, bytes)] = (unsigned char)test_random_next(&random);
        size_t room = test_random_below(&random, sizeof text) + 1;
        memset(text, 'x', sizeof text);
        vc_trace_describe(packet, test_random_one_in(&random, 3) ? test_random_below(&random, bytes) : bytes, text,
                          room);
        assert_true(strlen(text) < room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_what_pcapng_says),
        cmocka_unit_test(a_trace_can_be_read_as_lines),
        cmocka_unit_test(a_damaged_trace_is_an_error_and_no_more),
        cmocka_unit_test(a_packet_is_no_longer_than_its_block),
        cmocka_unit_test(a_trace_that_cannot_be_written_says_so),
        cmocka_unit_test(any_bytes_can_be_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
