/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_handshake.c - how a connection is made, and what is said when it cannot be: other keys, versions, settings,
 * incarnations, nobody there. Faults of the network are in test_handshake_faults.c. */
#include "flow/hs_world.h"
#include "net/wire/bytes.h"
#include "support/unit.h"

#define MS ((uint64_t)1000000)

static struct hs_world *w;

static int begin(void **state)
{
    (void)state;
    w = malloc(sizeof *w);
    if (!w)
        return -1;
    hs_world_init(w, 2, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hs_world_fini(w);
    free(w);
    return 0;
}

/* What has left a node and lies in the network, the newest first. */
static struct hs_datagram *newest(unsigned from)
{
    for (unsigned i = w->said_count; i-- > 0;)
        if (w->said[i].from == from)
            return &w->said[i];
    return NULL;
}

static void deliver(unsigned n)
{
    for (uint32_t until = w->delivered + n; w->delivered < until;)
        assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
}

static struct hs_link *link_of(unsigned from, unsigned to)
{
    return &w->node[from].link[to];
}

static void who_answers_strangers_keeps_nothing_of_them(void **state)
{
    (void)state;
    struct hs_datagram hello;
    unsigned char out[HS_BYTES];
    hs_world_want(w, 0, 1);
    assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    hello = *newest(0);
    struct rnl_handshake before = w->node[1].hs;
    for (unsigned i = 0; i < 2000; i++) { /* the same, as if from 2,000 addresses */
        struct rnl_hs_step step;
        unsigned char address[6] = {9, 9, 9, 9, (unsigned char)i, (unsigned char)(i >> 8)};
        rnl_hs_input(&w->node[1].hs, NULL, hello.at, hello.bytes, address, sizeof address, w->now_ns, out, sizeof out,
                     &step);
        assert_int_equal(step.events, 0);
        assert_int_equal(step.bytes, hello.bytes);
        /* nor does the answer prove anything at another address */
        struct rnl_hello h;
        assert_int_equal(rnl_hello_decode(out, step.bytes, &w->node[1].job, &h), RNL_HELLO_GOOD);
        assert_int_equal(h.flags, 0);
    }
    memset(&before.count, 0, sizeof before.count);
    memset(&w->node[1].hs.count, 0, sizeof before.count);
    assert_memory_equal(&before, &w->node[1].hs, sizeof before);
}

/* B's nonce is for one address: whoever echoes it from elsewhere gets no connection. */
static void an_echo_proves_only_the_address_that_it_was_sent_to(void **state)
{
    (void)state;
    hs_world_want(w, 0, 1);
    assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    deliver(2);
    struct hs_datagram third = *newest(0); /* has B's nonce, and nobody has seen it yet */
    w->flying_count = 0;
    hs_world_inject(w, HS_STRANGER, 1, third.at, third.bytes);
    deliver(1);
    assert_int_equal(link_of(1, 0)->has_peer, 0);
    hs_world_inject(w, 0, 1, third.at, third.bytes);
    deliver(1);
    deliver(1);
    assert_int_equal(link_of(1, 0)->peer.state, RNL_HS_UP);
}

static void nobody_there_is_said_after_the_time_given(void **state)
{
    (void)state;
    struct hs_fault all[64];
    for (unsigned i = 0; i < 64; i++)
        all[i] = (struct hs_fault){i + 1, HS_DROP};
    w->fault = all;
    w->faults = 64;
    uint64_t began = w->now_ns;
    hs_world_want(w, 0, 1);
    while (link_of(0, 1)->failed == 0)
        assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    assert_int_equal(w->now_ns - began, 2000 * MS);
    assert_int_equal(link_of(0, 1)->status, RNL_TIMED_OUT);
    assert_non_null(strstr(link_of(0, 1)->sentence, "rank 1 did not answer for 2000 ms"));
    assert_in_range(w->sent, 20, 40); /* 10 ms apart at first, 80 ms later */
}

static void another_job_is_told_from_silence(void **state)
{
    (void)state;
    static const unsigned char key[RNL_JOB_SECRET] = "the key of another job";
    rnl_job_keys_derive(&w->node[1].job, key);
    struct rnl_hs_config c = hs_world_usual(w, 1);
    hs_world_config(w, 1, &c);
    hs_world_want(w, 0, 1);
    hs_world_want(w, 1, 0);
    while (link_of(0, 1)->failed == 0)
        assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    assert_non_null(strstr(link_of(0, 1)->sentence, "the key of another job"));
    assert_true(w->node[0].hs.count.forged > 10);
    assert_int_equal(w->node[0].hs.count.answered, 0);
    assert_int_equal(w->keys_count, 0);
}

static void both_sides_say_that_their_settings_differ(void **state)
{
    (void)state;
    for (int begins = 0; begins < 3; begins++) {
        hs_world_fini(w);
        hs_world_init(w, 2, 1);
        struct rnl_hs_config c = hs_world_usual(w, 1);
        c.protect = RNL_PROTECT_ENCRYPT;
        hs_world_config(w, 1, &c);
        if (begins != 1)
            hs_world_want(w, 0, 1);
        if (begins != 0)
            hs_world_want(w, 1, 0);
        uint64_t began = w->now_ns;
        hs_world_run(w);
        for (unsigned side = 0; side < 2; side++)
            if (link_of(side, !side)->wants) {
                assert_int_equal(link_of(side, !side)->failed, 1);
                assert_int_equal(link_of(side, !side)->status, RNL_ERR_UNSUPPORTED);
                assert_non_null(strstr(link_of(side, !side)->sentence, side ? "rank 0 was set" : "rank 1 was set"));
                assert_non_null(strstr(link_of(side, !side)->sentence, "encrypted"));
            }
        assert_true(w->now_ns - began < 10 * MS); /* at once, not after the time given */
        assert_int_equal(w->keys_count, 0);
    }
}

static void ciphers_are_agreed_on_or_it_is_said(void **state)
{
    (void)state;
    struct rnl_hs_config c = hs_world_usual(w, 1);
    c.ciphers = 1u << RNL_CIPHER_CHACHA20_POLY1305;
    hs_world_config(w, 1, &c);
    hs_world_want(w, 0, 1);
    hs_world_run(w);
    assert_true(hs_world_settled(w));
    assert_int_equal(link_of(0, 1)->made.suite.cipher, RNL_CIPHER_CHACHA20_POLY1305);
    hs_world_fini(w);
    hs_world_init(w, 2, 1);
    hs_world_config(w, 1, &c);
    struct rnl_hs_config a = hs_world_usual(w, 0);
    a.ciphers = 1u << RNL_CIPHER_AES128_GCM;
    hs_world_config(w, 0, &a);
    hs_world_want(w, 0, 1);
    hs_world_run(w);
    assert_int_equal(link_of(0, 1)->status, RNL_ERR_UNSUPPORTED);
    assert_non_null(strstr(link_of(0, 1)->sentence, "none in common"));
}

/* A HELLO of another version of this job, as its invariants have it. */
static uint32_t hello_of_version(unsigned version, unsigned src, unsigned dst, unsigned flags, uint32_t bytes,
                                 unsigned char *at)
{
    memset(at, 0xee, bytes);
    at[0] = (unsigned char)(version | RNL_PACKET_HELLO << 4);
    at[1] = (unsigned char)flags;
    rnl_put16(at + 2, (uint16_t)bytes);
    rnl_put32(at + 16, src);
    rnl_put32(at + 20, dst);
    rnl_keyed_hash(at + bytes - 16, w->node[0].job.hello, "runnel hello", at, bytes - 16);
    return bytes;
}

static void another_version_is_named_and_answered(void **state)
{
    (void)state;
    unsigned char at[HS_BYTES];
    hs_world_want(w, 0, 1);
    uint32_t bytes = hello_of_version(7, 1, 0, 0, 60, at);
    uint32_t before = w->sent;
    hs_world_inject(w, 1, 0, at, bytes);
    while (link_of(0, 1)->failed == 0)
        assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    assert_int_equal(link_of(0, 1)->status, RNL_ERR_UNSUPPORTED);
    assert_non_null(strstr(link_of(0, 1)->sentence, "rank 1 speaks version 7 of the packets, this process version 6"));
    assert_true(w->sent <= before + 1); /* it wanted nothing and is not answered */
    w->flying_count = 0;
    for (bytes = 100; bytes <= HS_BYTES; bytes++) { /* one that does is, but by nothing longer */
        before = w->sent;
        hs_world_inject(w, 1, 0, at, hello_of_version(7, 1, 0, RNL_HELLO_WANTS_REPLY, bytes, at));
        deliver(1);
        assert_int_equal(w->sent - before, bytes >= RNL_HELLO_BYTES);
        w->flying_count = 0;
    }
    struct rnl_hello h;
    assert_int_equal(rnl_hello_decode(newest(0)->at, newest(0)->bytes, &w->node[1].job, &h), RNL_HELLO_GOOD);
    assert_int_equal(h.flags, 0);
}

static void only_the_incarnation_that_the_job_tells_is_listened_to(void **state)
{
    (void)state;
    w->told = 1;
    hs_world_want(w, 0, 1);
    link_of(0, 1)->peer.expected = 5; /* the job has told of another process */
    while (link_of(0, 1)->failed == 0)
        assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    assert_non_null(strstr(link_of(0, 1)->sentence, "was replaced"));
    assert_true(w->node[0].hs.count.stale > 0);
    assert_int_equal(w->keys_count, 0);
    link_of(0, 1)->peer.expected = w->node[1].incarnation;
    hs_world_run(w);
    assert_true(hs_world_settled(w));
}

static void an_incarnation_that_is_over_stays_so(void **state)
{
    (void)state;
    hs_world_want(w, 0, 1);
    hs_world_run(w);
    assert_true(hs_world_settled(w));
    rnl_hs_end(&link_of(0, 1)->peer, 1);
    link_of(0, 1)->have = link_of(0, 1)->up = link_of(0, 1)->wants = 0;
    rnl_hs_end(&link_of(1, 0)->peer, 0);
    link_of(1, 0)->have = link_of(1, 0)->up = 0;
    uint64_t answered = w->node[0].hs.count.answered;
    hs_world_want(w, 1, 0);
    hs_world_run(w);
    assert_int_equal(w->node[0].hs.count.answered, answered);
    assert_int_equal(link_of(1, 0)->up, 0);
    hs_world_restart(w, 1, 1);
    hs_world_run(w);
    assert_true(hs_world_settled(w));
}

static void the_same_process_makes_no_second_connection_while_one_is_up(void **state)
{
    (void)state;
    hs_world_want(w, 0, 1);
    hs_world_run(w);
    rnl_hs_end(&link_of(1, 0)->peer, 0); /* B drops it, and A does not know */
    link_of(1, 0)->have = link_of(1, 0)->up = 0;
    link_of(0, 1)->wants = 0;
    hs_world_want(w, 1, 0);
    hs_world_run(w);
    assert_int_equal(link_of(0, 1)->up, 0); /* now it does */
    assert_int_equal(link_of(1, 0)->up, 0);
    assert_int_equal(link_of(0, 1)->peer.refused, w->node[1].incarnation);
}

/* Without a word of the job: the answer of the new process tells. */
static void a_peer_that_restarts_in_the_middle_is_found_at_once(void **state)
{
    (void)state;
    hs_world_want(w, 0, 1);
    assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    deliver(2);
    assert_int_equal(link_of(0, 1)->peer.state, RNL_HS_MADE);
    hs_world_restart(w, 1, 0);
    uint64_t began = w->now_ns;
    while (!link_of(0, 1)->up)
        assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    assert_true(w->now_ns - began < 20 * MS);
    assert_int_equal(link_of(0, 1)->failed, 0);
    hs_world_run(w);
    assert_true(hs_world_settled(w));
}

/* B answered, was restarted, and has a connection with A by the time its old answer comes, which A has to doubt; then
 * what A asks the new B is answered, too. None of this ends what is there. */
static void an_answer_of_the_process_before_ends_nothing(void **state)
{
    (void)state;
    hs_world_want(w, 0, 1);
    assert_int_equal(hs_world_step(w, UINT64_MAX), 1);
    deliver(1);
    struct hs_datagram old = *newest(1);
    w->flying_count = 0;
    hs_world_restart(w, 1, 0);
    assert_int_equal(hs_world_step(w, UINT64_MAX), 1); /* A says it again */
    deliver(2);
    assert_int_equal(link_of(0, 1)->peer.state, RNL_HS_MADE);
    hs_world_inject(w, 1, 0, old.at, old.bytes);
    hs_world_run(w);
    assert_true(hs_world_settled(w));
    assert_int_equal(w->keys_count, 2);
    assert_int_equal(link_of(0, 1)->gone_up + link_of(1, 0)->gone_up, 0);
    hs_world_inject(w, 1, 0, old.at, old.bytes);
    hs_world_run(w);
    assert_true(hs_world_settled(w));
    assert_int_equal(w->keys_count, 2);
}

static void a_dropped_record_brings_no_nonce_back(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        hs_world_want(w, i & 1, !(i & 1));
        hs_world_run(w);
        assert_true(hs_world_settled(w));
        for (unsigned side = 0; side < 2; side++) {
            rnl_hs_peer_drop(&w->node[side].hs, &link_of(side, !side)->peer);
            memset(link_of(side, !side), 0, sizeof(struct hs_link));
        }
    }
    assert_int_equal(w->keys_count, 40); /* and the world checks that no key comes twice */
}

static void unknown_is_said_seldom_briefly_and_to_nobody_without_a_packet(void **state)
{
    (void)state;
    unsigned char out[HS_BYTES];
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .bytes = 60, .connection = 5, .number = 77};
    unsigned said = 0;
    for (int i = 0; i < 1000; i++)
        said += rnl_hs_unknown(&w->node[0].hs, &p, 1000 * MS, out, sizeof out) != 0;
    assert_in_range(said, 2, 20);
    assert_int_equal(rnl_hs_unknown(&w->node[0].hs, &p, 1000 * MS + 200000, out, sizeof out), 0);
    assert_int_equal(rnl_hs_unknown(&w->node[0].hs, &p, 1002 * MS, out, sizeof out), RNL_UNKNOWN_BYTES);
    p.bytes = RNL_UNKNOWN_BYTES - 1; /* shorter than the answer */
    assert_int_equal(rnl_hs_unknown(&w->node[0].hs, &p, 3000 * MS, out, sizeof out), 0);
    p.bytes = 60;
    p.type = RNL_PACKET_UNKNOWN;
    assert_int_equal(rnl_hs_unknown(&w->node[0].hs, &p, 3000 * MS, out, sizeof out), 0);
    p.type = RNL_PACKET_HELLO;
    assert_int_equal(rnl_hs_unknown(&w->node[0].hs, &p, 3000 * MS, out, sizeof out), 0);
}

static void unknown_is_believed_of_the_peer_of_that_connection_only(void **state)
{
    (void)state;
    unsigned char out[HS_BYTES];
    uint64_t number = 0;
    unsigned control = 9;
    hs_world_want(w, 0, 1);
    hs_world_run(w);
    struct hs_link *l = link_of(0, 1);
    struct rnl_packet p = {.type = RNL_PACKET_DATA, .bytes = 60, .connection = l->made.tx_connection, .number = 77};
    assert_int_equal(rnl_hs_unknown(&w->node[1].hs, &p, w->now_ns, out, sizeof out), RNL_UNKNOWN_BYTES);
    assert_int_equal(rnl_hs_unknown_said(&w->node[0].hs, &l->peer, l->made.tx_connection + 1, out, RNL_UNKNOWN_BYTES,
                                         w->now_ns, &number, &control),
                     0);
    assert_int_equal(rnl_hs_unknown_said(&w->node[0].hs, &l->peer, l->made.tx_connection, out, RNL_UNKNOWN_BYTES,
                                         w->now_ns, &number, &control),
                     1);
    assert_int_equal(number, 77);
    assert_int_equal(control, 0);
    out[8] ^= 1;
    assert_int_equal(rnl_hs_unknown_said(&w->node[0].hs, &l->peer, l->made.tx_connection, out, RNL_UNKNOWN_BYTES,
                                         w->now_ns, &number, &control),
                     0);
    /* said by us, and thrown back */
    assert_int_equal(rnl_hs_unknown(&w->node[0].hs, &p, w->now_ns, out, sizeof out), RNL_UNKNOWN_BYTES);
    assert_int_equal(rnl_hs_unknown_said(&w->node[0].hs, &l->peer, l->made.tx_connection, out, RNL_UNKNOWN_BYTES,
                                         w->now_ns, &number, &control),
                     0);
}

static void what_cannot_be_set_is_said(void **state)
{
    (void)state;
    struct rnl_handshake hs;
    struct rnl_hs_config good = hs_world_usual(w, 0), c;
    assert_int_equal(rnl_hs_init(&hs, &good), 0);
#define REFUSED(change)                                      \
    do {                                                     \
        c = good;                                            \
        change;                                              \
        assert_int_equal(rnl_hs_init(&hs, &c), RNL_ERR_ARG); \
    } while (0)
    REFUSED(c.rank = c.ranks);
    REFUSED(c.ranks = RNL_HS_RANKS_MAX + 1);
    REFUSED(c.incarnation = 0);
    REFUSED(c.protect = RNL_PROTECTS);
    REFUSED(c.ciphers = 0);
    REFUSED(c.first_ns = 0);
    REFUSED(c.most_ns = c.first_ns - 1);
    REFUSED(c.mtu_bytes = 127);
#undef REFUSED
    struct rnl_hs_peer peer;
    unsigned char address[RNL_HS_ADDRESS + 1] = {0};
    rnl_hs_peer_init(&w->node[0].hs, &peer, 1, 0);
    assert_int_equal(rnl_hs_open(&w->node[0].hs, &peer, address, sizeof address, 0), RNL_ERR_ARG);
    assert_int_equal(peer.state, RNL_HS_IDLE);
}

/* ---- pairs with keys of their own ---- */

/* Two processes that each are rank 0, and call each other by other ranks. */
struct pair {
    struct rnl_handshake hs[2];
    struct rnl_hs_peer peer[2];
    struct rnl_hs_made made[2];
    struct rnl_job_keys keys[2], of_nobody;
};

static void pair_begin(struct pair *p, uint32_t a_calls_b, uint32_t b_calls_a)
{
    static const unsigned char secret[2][RNL_JOB_SECRET] = {{1}, {2}}, shared[RNL_JOB_SECRET] = {3};
    const uint32_t calls[2] = {a_calls_b, b_calls_a};
    memset(p, 0, sizeof *p);
    for (unsigned i = 0; i < 2; i++) {
        struct rnl_hs_config c = {.ranks = 256,
                                  .incarnation = 1,
                                  .job = &p->of_nobody,
                                  .protect = RNL_PROTECT_AUTHENTICATE,
                                  .ciphers = 1,
                                  .mtu_bytes = 1232,
                                  .window_bytes = 1 << 16,
                                  .first_ns = 1000,
                                  .most_ns = 1000,
                                  .give_up_ns = 1000000};
        memcpy(c.secret, secret[i], sizeof c.secret);
        assert_int_equal(rnl_hs_init(&p->hs[i], &c), 0);
        rnl_job_keys_derive(&p->keys[i], shared);
        rnl_hs_peer_init(&p->hs[i], &p->peer[i], calls[i], 0);
        rnl_hs_peer_pair(&p->peer[i], calls[!i], &p->keys[i]);
    }
}

/* Lets side `from` say its HELLO, and both answer until nobody has anything to say. */
static void pair_run(struct pair *p, unsigned from)
{
    unsigned char out[RNL_HELLO_BYTES], in[RNL_HELLO_BYTES];
    struct rnl_hs_step step;
    assert_int_equal(rnl_hs_open(&p->hs[from], &p->peer[from], "x", 1, 0), 0);
    rnl_hs_output(&p->hs[from], &p->peer[from], 0, out, sizeof out, &step);
    for (unsigned to = !from, i = 0; step.bytes && i < 10; to = !to, i++) {
        memcpy(in, out, sizeof in);
        rnl_hs_input(&p->hs[to], &p->peer[to], in, sizeof in, "x", 1, 0, out, sizeof out, &step);
        if (step.events & RNL_HS_CONNECTED)
            p->made[to] = step.made;
    }
}

static void a_pair_connects_with_a_key_of_its_own_whatever_each_calls_the_other(void **state)
{
    static const uint32_t names[][2] = {{5, 7}, {7, 5}, {1, 1}};
    struct pair p;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        pair_begin(&p, names[i][0], names[i][1]);
        pair_run(&p, i & 1);
        assert_int_equal(p.peer[0].state, RNL_HS_UP);
        assert_int_equal(p.peer[1].state, RNL_HS_UP);
        assert_memory_equal(p.made[0].tx, p.made[1].rx, RNL_KEY_BYTES);
        assert_memory_equal(p.made[0].rx, p.made[1].tx, RNL_KEY_BYTES);
        assert_memory_not_equal(p.made[0].rx, p.made[0].tx, RNL_KEY_BYTES);
        assert_int_equal(rnl_hs_connection_rank(p.made[0].tx_connection), names[i][1]);
        assert_int_equal(rnl_hs_connection_rank(p.made[0].rx_connection), names[i][0]);
    }
}

static void the_key_of_another_pair_makes_no_greeting_of_this_one(void **state)
{
    static const unsigned char another[RNL_JOB_SECRET] = {4};
    struct pair p;
    (void)state;
    pair_begin(&p, 5, 7);
    rnl_job_keys_derive(&p.keys[0], another);
    pair_run(&p, 0);
    assert_int_equal(p.peer[1].state, RNL_HS_IDLE);
    assert_int_equal(p.hs[1].count.forged, 1);
    pair_begin(&p, 5, 7);
    p.peer[0].as = 8; /* the right key, and the rank of another peer */
    pair_run(&p, 0);
    assert_int_equal(p.peer[1].state, RNL_HS_IDLE);
    assert_int_equal(p.hs[1].count.strayed, 1);
    pair_begin(&p, 5, 7);
    p.peer[1].as = 6; /* it is called otherwise than the HELLO says */
    pair_run(&p, 0);
    assert_int_equal(p.peer[1].state, RNL_HS_IDLE);
    assert_int_equal(p.hs[1].count.strayed, 1);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_pair_connects_with_a_key_of_its_own_whatever_each_calls_the_other),
        CASE(the_key_of_another_pair_makes_no_greeting_of_this_one),
        CASE(who_answers_strangers_keeps_nothing_of_them),
        CASE(an_echo_proves_only_the_address_that_it_was_sent_to),
        CASE(nobody_there_is_said_after_the_time_given),
        CASE(another_job_is_told_from_silence),
        CASE(both_sides_say_that_their_settings_differ),
        CASE(ciphers_are_agreed_on_or_it_is_said),
        CASE(another_version_is_named_and_answered),
        CASE(only_the_incarnation_that_the_job_tells_is_listened_to),
        CASE(an_incarnation_that_is_over_stays_so),
        CASE(the_same_process_makes_no_second_connection_while_one_is_up),
        CASE(a_peer_that_restarts_in_the_middle_is_found_at_once),
        CASE(an_answer_of_the_process_before_ends_nothing),
        CASE(a_dropped_record_brings_no_nonce_back),
        CASE(unknown_is_said_seldom_briefly_and_to_nobody_without_a_packet),
        CASE(unknown_is_believed_of_the_peer_of_that_connection_only),
        CASE(what_cannot_be_set_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
