/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The codec between rank and agent: every message survives the way there, no wrong byte is let through. */
#include "job/proto.h"

#include "base/env.h"
#include "runnel/runnel.h"
#include "support/unit.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { JOB = 8 };

static const struct {
    enum rnl_msg_from from;
    struct rnl_msg msg;
} samples[] = {
    {RNL_FROM_RANK, {.kind = RNL_MSG_HELLO}},
    {RNL_FROM_RANK, {.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = 7, .bytes = 1 << 20}}},
    {RNL_FROM_RANK, {.kind = RNL_MSG_DISCONNECT, .u.peer = {.rank = 7}}},
    {RNL_FROM_RANK, {.kind = RNL_MSG_REPORT, .u.report = {.wave = 1, .activity = UINT64_MAX}}},
    {RNL_FROM_RANK, {.kind = RNL_MSG_LEAVE}},
    {RNL_FROM_AGENT,
     {.kind = RNL_MSG_WELCOME,
      .u.welcome = {.rank = 3, .size = JOB, .incarnation = 9, .flags = 1, .key = {1, 2, 3}, .host = "somewhere"}}},
    {RNL_FROM_AGENT, {.kind = RNL_MSG_REJECTED, .u.rejected = {.why = RNL_REJECTED_TWICE}}},
    {RNL_FROM_AGENT, {.kind = RNL_MSG_REPLY, .u.reply = {.rank = 5, .result = RNL_SEGMENT_FOUND}}},
    {RNL_FROM_AGENT, {.kind = RNL_MSG_REPLY, .u.reply = {.rank = 5, .result = RNL_SEGMENT_NONE, .sys_errno = 24}}},
    {RNL_FROM_AGENT, {.kind = RNL_MSG_EVENT, .u.event = {.kind = RNL_EVENT_CONNECT, .rank = 2, .incarnation = 3}}},
    {RNL_FROM_AGENT,
     {.kind = RNL_MSG_EVENT,
      .u.event = {.kind = RNL_EVENT_DEATH, .rank = 2, .incarnation = 3, .why = RNL_DEATH_SIGNAL, .detail = 9}}},
    {RNL_FROM_AGENT, {.kind = RNL_MSG_EVENT, .u.event = {.kind = RNL_EVENT_CLOSE_REQUEST, .wave = 4}}},
    {RNL_FROM_AGENT, {.kind = RNL_MSG_EVENT, .u.event = {.kind = RNL_EVENT_CLOSE_DONE, .wave = 4}}},
    {RNL_FROM_AGENT,
     {.kind = RNL_MSG_WELCOME,
      .u.welcome = {.size = JOB, .incarnation = 9, .flags = RNL_WELCOME_NETWORK, .host = "elsewhere"}}},
    {RNL_FROM_RANK, {.kind = RNL_MSG_HAVE, .u.peer = {.rank = 7}}},
    {RNL_FROM_AGENT,
     {.kind = RNL_MSG_WELCOME,
      .u.welcome = {.size = JOB, .incarnation = 9, .flags = RNL_WELCOME_NETWORK | RNL_WELCOME_RINGS, .host = "here"}}},
    {RNL_FROM_AGENT,
     {.kind = RNL_MSG_WELCOME,
      .u.welcome = {.size = JOB, .incarnation = 9, .flags = RNL_WELCOME_NETWORK, .cards = 4, .host = "driver"}}},
    {RNL_FROM_RANK, {.kind = RNL_MSG_OVERRAN, .u.overran = {.handler = 7, .stack_bytes = 65536}}},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static void every_message_survives(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        unsigned char bytes[RNL_MSG_BYTES_MAX], again[RNL_MSG_BYTES_MAX];
        struct rnl_msg out;
        size_t n = rnl_msg_encode(&samples[i].msg, bytes);
        assert_true(n >= 8 && n <= sizeof bytes);
        assert_int_equal(rnl_msg_decode(samples[i].from, bytes, n, JOB, &out), RNL_MSG_GOOD);
        assert_int_equal(out.kind, samples[i].msg.kind);
        assert_int_equal(rnl_msg_encode(&out, again), n);
        assert_memory_equal(bytes, again, n);
    }
}

static void no_other_length_is_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        unsigned char bytes[RNL_MSG_BYTES_MAX + 8] = {0};
        struct rnl_msg out;
        size_t n = rnl_msg_encode(&samples[i].msg, bytes);
        for (size_t m = 0; m <= sizeof bytes; m++) {
            unsigned char *exact = malloc(m + 1); /* the address sanitizer watches its end */
            memcpy(exact, bytes, m);
            if (m != n)
                assert_int_equal(rnl_msg_decode(samples[i].from, exact, m, JOB, &out), RNL_MSG_BAD);
            free(exact);
        }
    }
}

static void the_other_direction_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        unsigned char bytes[RNL_MSG_BYTES_MAX];
        struct rnl_msg out;
        size_t n = rnl_msg_encode(&samples[i].msg, bytes);
        enum rnl_msg_from other = samples[i].from == RNL_FROM_RANK ? RNL_FROM_AGENT : RNL_FROM_RANK;
        assert_int_equal(rnl_msg_decode(other, bytes, n, JOB, &out), RNL_MSG_BAD);
    }
}

/* A copy of the sample, of which one field is wrong: 4 bytes at the offset of `field` in struct rnl_msg. */
#define WRONG(sample, field, value)                                  \
    {                                                                \
        sample, offsetof(struct rnl_msg, u.field), (uint32_t)(value) \
    }
static const struct {
    unsigned sample;
    size_t at;
    uint32_t value;
} wrong[] = {WRONG(1, segment.rank, JOB),
             WRONG(1, segment.bytes, 0),
             WRONG(1, segment.zero, 1),
             WRONG(2, peer.rank, JOB),
             WRONG(2, peer.zero, RNL_DEATH_SILENT),
             WRONG(5, welcome.rank, JOB),
             WRONG(5, welcome.size, RNL_JOB_RANKS_MAX + 1),
             WRONG(5, welcome.size, 0),
             WRONG(5, welcome.incarnation, 0),
             WRONG(5, welcome.flags, 4), /* rings without a network */
             WRONG(5, welcome.flags, 8),
             WRONG(5, welcome.cards, 1),  /* cards without a network */
             WRONG(15, welcome.cards, 1), /* beside rings */
             WRONG(16, welcome.cards, 5),
             WRONG(5, welcome.host[40], 'x'), /* behind the end */
             WRONG(6, rejected.why, 99),
             WRONG(7, reply.result, 99),
             WRONG(7, reply.rank, JOB),
             WRONG(7, reply.sys_errno, 1), /* FOUND and yet a reason */
             WRONG(10, event.rank, JOB),
             WRONG(10, event.why, RNL_DEATH_NONE),
             WRONG(10, event.why, RNL_DEATH_HOST + 1),
             WRONG(10, event.kind, RNL_EVENT_JOB_GONE),
             WRONG(11, event.detail, 1),
             WRONG(14, peer.zero, 1),
             WRONG(17, overran.handler, 65536),
             WRONG(17, overran.stack_bytes, 0)};

static void wrong_fields_are_refused(void **state)
{
    (void)state;
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_msg m, out;
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        m = samples[wrong[i].sample].msg;
        memcpy((char *)&m + wrong[i].at, &wrong[i].value, sizeof wrong[i].value);
        if (rnl_msg_decode(samples[wrong[i].sample].from, bytes, rnl_msg_encode(&m, bytes), JOB, &out) != RNL_MSG_BAD)
            fail_msg("wrong field %u is taken in", i);
    }
    m = samples[5].msg;
    memset(m.u.welcome.host, 'x', sizeof m.u.welcome.host); /* without an end */
    assert_int_equal(rnl_msg_decode(RNL_FROM_AGENT, bytes, rnl_msg_encode(&m, bytes), JOB, &out), RNL_MSG_BAD);
    m.kind = 77;
    assert_int_equal(rnl_msg_encode(&m, bytes), 0);
}

static void another_version_is_told_apart_from_garbage(void **state)
{
    (void)state;
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_msg out;
    const uint32_t version = RNL_PROTO_VERSION + 1, magic = 1;
    size_t n = rnl_msg_encode(&samples[0].msg, bytes);
    memcpy(bytes + 12, &version, sizeof version);
    assert_int_equal(rnl_msg_decode(RNL_FROM_RANK, bytes, n, JOB, &out), RNL_MSG_OTHER_VERSION);
    assert_int_equal(out.u.hello.version, version);
    memcpy(bytes + 8, &magic, sizeof magic);
    assert_int_equal(rnl_msg_decode(RNL_FROM_RANK, bytes, n, JOB, &out), RNL_MSG_BAD);
    /* it may have grown since */
    n = rnl_msg_encode(&samples[6].msg, bytes);
    memcpy(bytes + 12, &version, sizeof version);
    const uint32_t longer = (uint32_t)n + 8;
    memcpy(bytes + 4, &longer, sizeof longer);
    memset(bytes + n, 0xff, 8);
    assert_int_equal(rnl_msg_decode(RNL_FROM_AGENT, bytes, longer, JOB, &out), RNL_MSG_OTHER_VERSION);
}

/* Whatever is let through says the same when it is said again: no byte is ignored. */
static void random_bytes_do_no_harm(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    int good = 0;
    for (int round = 0; round < 300000; round++) {
        unsigned char bytes[RNL_MSG_BYTES_MAX], again[RNL_MSG_BYTES_MAX];
        struct rnl_msg out;
        unsigned i = (unsigned)round % SAMPLES;
        size_t n = rnl_msg_encode(&samples[i].msg, bytes);
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        for (unsigned flips = 1 + x % 3; flips > 0; flips--) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            bytes[(x >> 8) % n] ^= (unsigned char)(1u << (x >> 40) % 8);
        }
        if (rnl_msg_decode(samples[i].from, bytes, n, JOB, &out) != RNL_MSG_GOOD)
            continue;
        good++;
        assert_int_equal(rnl_msg_encode(&out, again), n);
        assert_memory_equal(bytes, again, n);
    }
    assert_true(good > 1000); /* flips in free fields such as the key pass */
}

/* ---- the key of the job, which WELCOME holds ---- */

enum { STACK_BYTES = 1 << 21, MARK = 0xc5 };
static struct {
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    size_t n;
    struct rnl_msg out;
    int sock, fds[2]; /* -1: the bytes are decoded; else `out` is sent there */
    int result;
} work;

static void *decode_or_send(void *arg)
{
    (void)arg;
    work.result = work.sock < 0 ? (int)rnl_msg_decode(RNL_FROM_AGENT, work.bytes, work.n, JOB, &work.out)
                                : rnl_msg_send(work.sock, &work.out, work.fds, 0);
    return NULL;
}

/* Returns how long a part of a key is found on the stack of a thread that has done that. A part may stay where a system
 * call or the dynamic linker saved registers. */
static size_t left_on_the_stack(void)
{
    static _Alignas(64) unsigned char stack[STACK_BYTES];
    pthread_attr_t attr;
    pthread_t t;
    size_t longest = 0;
    memset(stack, 0, sizeof stack);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstack(&attr, stack, sizeof stack), 0);
    assert_int_equal(pthread_create(&t, &attr, decode_or_send, NULL), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    pthread_attr_destroy(&attr);
    for (size_t i = 0, n = 0; i < sizeof stack; i++) {
        n = stack[i] == MARK ? n + 1 : 0;
        longest = n > longest ? n : longest;
    }
    return longest;
}

static void no_key_stays_on_the_stack_of_its_reader_or_sender(void **state)
{
    (void)state;
    struct rnl_msg m = samples[5].msg;
    int pair[2];
    memset(m.u.welcome.key, MARK, sizeof m.u.welcome.key);
    work.sock = -1;
    work.n = rnl_msg_encode(&m, work.bytes);
    assert_in_range(left_on_the_stack(), 0, RNL_JOB_KEY_BYTES - 1);
    assert_int_equal(work.result, RNL_MSG_GOOD);
    assert_memory_equal(work.out.u.welcome.key, m.u.welcome.key, sizeof m.u.welcome.key);
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) { /* what is refused held the key, too */
        if (wrong[i].sample != 5)
            continue;
        struct rnl_msg bad = m;
        memcpy((char *)&bad + wrong[i].at, &wrong[i].value, sizeof wrong[i].value);
        work.n = rnl_msg_encode(&bad, work.bytes);
        assert_in_range(left_on_the_stack(), 0, RNL_JOB_KEY_BYTES - 1);
        assert_int_equal(work.result, RNL_MSG_BAD);
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    work.sock = pair[0];
    work.fds[0] = work.fds[1] = pair[1];
    work.out = m;
    work.out.u.welcome.flags = 0;
    assert_in_range(left_on_the_stack(), 0, RNL_JOB_KEY_BYTES - 1);
    assert_int_equal(work.result, 0);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_survives),
        cmocka_unit_test(no_other_length_is_taken),
        cmocka_unit_test(the_other_direction_is_refused),
        cmocka_unit_test(wrong_fields_are_refused),
        cmocka_unit_test(another_version_is_told_apart_from_garbage),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(no_key_stays_on_the_stack_of_its_reader_or_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
