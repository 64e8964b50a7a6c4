/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_udp.c - transport/udp over a socket that does what the test says: takes some, refuses, merges, cuts, complains.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/error.h"
#include "runnel/runnel.h"
#include "transport/udp/udp.h"
#include "wire/packet.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1472, RUNS = 256, PEERS = 40 };

struct script {
    struct rnl_socket s; /* first */
    /* what the host takes: so many runs, then `stop` */
    int takes;
    uint32_t denied; /* ... but none of that length */
    struct rnl_socket_result stop;
    /* what it was given */
    struct rnl_socket_out out[RUNS];
    unsigned char bytes[RUNS][4096];
    int outs;
    /* what comes */
    struct rnl_socket_in in[8];
    int ins, next, one_run; /* one_run: a look brings no more behind a merged run */
    struct rnl_socket_error error[4];
    int errors, closed;
};

static int script_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *r)
{
    struct script *k = (struct script *)(void *)s;
    int i = 0;
    *r = (struct rnl_socket_result){RNL_SOCKET_WENT, 0};
    for (; i < n; i++) {
        if (k->takes-- <= 0 || out[i].bytes == k->denied) {
            *r = k->stop;
            return i;
        }
        assert_true(k->outs < RUNS);
        k->out[k->outs] = out[i];
        memcpy(k->bytes[k->outs++], out[i].at, out[i].bytes < 4096 ? out[i].bytes : 4096);
    }
    return i;
}

static int script_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct script *k = (struct script *)(void *)s;
    int got = 0;
    for (; got < n && k->next < k->ins; got++) {
        void *at = in[got].at;
        uint32_t room = in[got].room;
        in[got] = k->in[k->next++];
        assert_true(in[got].bytes <= room);
        memcpy(at, in[got].at, in[got].bytes);
        in[got].at = at;
        in[got].room = room;
        if (k->one_run && in[got].segment)
            return got + 1;
    }
    return got;
}

static int script_error(struct rnl_socket *s, struct rnl_socket_error *e)
{
    struct script *k = (struct script *)(void *)s;
    if (k->errors == 0)
        return 0;
    *e = k->error[--k->errors];
    return 1;
}

static int script_arm(struct rnl_socket *s)
{
    struct script *k = (struct script *)(void *)s;
    return k->next < k->ins;
}

static int script_fd(struct rnl_socket *s)
{
    (void)s;
    return 99;
}

static void script_close(struct rnl_socket *s)
{
    ((struct script *)(void *)s)->closed++;
}

static const struct rnl_socket_ops script_ops = {sizeof script_ops, script_send, script_recv,  script_error,
                                                 script_arm,        script_fd,   script_close, NULL};

struct world {
    struct script k;
    struct rnl_env env;
    struct rnl_transport *t;
};

static struct rnl_socket_addr addr_of(uint32_t peer)
{
    return (struct rnl_socket_addr){.ip = {[10] = 0xff, 0xff, 192, 0, 2, (uint8_t)peer},
                                    .port = (uint16_t)(1000 + peer)};
}

static int begin(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct rnl_addr a;
    assert_non_null(w);
    w->env = (struct rnl_env){.rank = 0, .size = PEERS};
    w->k.s = (struct rnl_socket){.ops = &script_ops,
                                 .self = addr_of(0),
                                 .datagram_max = LONGEST,
                                 .segments_max = 8,
                                 .segment_bytes = 8 * LONGEST,
                                 .merged_bytes = 8 * LONGEST,
                                 .receive_bytes = 212992,
                                 .has_ecn = 1,
                                 .has_fd = 1};
    w->k.takes = 1 << 30;
    assert_int_equal(rnl_udp_transport_new(&w->env, &w->k.s, NULL, &w->t), 0);
    for (uint32_t i = 1; i <= 3; i++) {
        struct rnl_socket_addr at = addr_of(i);
        rnl_udp_addr_of(&at, &a);
        assert_int_equal(w->t->ops->connect(w->t, i, &a, i), 0);
    }
    *state = w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    w->t->ops->close(w->t);
    assert_int_equal(w->k.closed, 1);
    free(w);
    return 0;
}

/* n packets of `bytes`, each filled with its letter, in one commit. */
static void put(struct world *w, uint32_t peer, uint32_t bytes, int n, char letter)
{
    struct rnl_room room[16];
    uint32_t used[16];
    assert_int_equal(w->t->ops->reserve(w->t, peer, 0, bytes, room, n), n);
    for (int i = 0; i < n; i++) {
        memset(room[i].at, letter + i, bytes);
        used[i] = bytes;
    }
    assert_int_equal(w->t->ops->commit(w->t, peer, 0, room, used, n, 0), n);
}

static int flush(struct world *w, uint64_t now_ns)
{
    return w->t->ops->flush(w->t, now_ns);
}

static void assert_run(const struct world *w, int i, uint32_t peer, uint32_t bytes, uint16_t segment)
{
    struct rnl_socket_addr to = addr_of(peer);
    assert_true(rnl_socket_addr_equal(&w->k.out[i].to, &to));
    assert_int_equal(w->k.out[i].bytes, bytes);
    assert_int_equal(w->k.out[i].segment, segment);
}

/* ---- sending ---- */

static void neighbours_of_one_length_go_as_one_run(void **state)
{
    struct world *w = *state;
    put(w, 1, 1000, 3, 'a');
    put(w, 1, 1000, 2, 'd'); /* another commit, the same run */
    put(w, 1, 400, 1, 'f');  /* a shorter one ends it */
    put(w, 1, 1000, 1, 'g');
    put(w, 2, 1000, 2, 'h'); /* another peer */
    put(w, 1, 1000, 1, 'j');
    put(w, 1, 1001, 1, 'k');        /* longer than the run's */
    assert_int_equal(w->k.outs, 0); /* nothing before flush */
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 5);
    assert_run(w, 0, 1, 5400, 1000);
    assert_int_equal((uintptr_t)w->k.out[0].at % 4096, 0); /* rnl_copy_trips */
    for (int i = 0; i < 4000; i++)
        assert_int_equal(w->k.bytes[0][i], "abcdef"[i / 1000]);
    assert_run(w, 1, 1, 1000, 0);
    assert_run(w, 2, 2, 2000, 1000);
    assert_run(w, 3, 1, 1000, 0);
    assert_run(w, 4, 1, 1001, 0);
    w->k.outs = 0;
    put(w, 1, 64, 9, 'a'); /* eight at most */
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 2);
    assert_run(w, 0, 1, 512, 64);
    assert_run(w, 1, 1, 64, 0);
}

static void runs_close_up_what_alignment_and_unused_rooms_leave(void **state)
{
    struct world *w = *state;
    struct rnl_room room[6];
    const uint32_t used[6] = {101, 0, 101, 101, 0, 55};
    assert_int_equal(w->t->ops->reserve(w->t, 1, 0, 101, room, 6), 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal((uintptr_t)room[i].at % 8, 0);
        memset(room[i].at, 'a' + i, 101);
    }
    assert_int_equal(w->t->ops->commit(w->t, 1, 0, room, used, 6, 0), 4);
    put(w, 1, 101, 1, 'x'); /* behind a shorter one: a run of its own */
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 2);
    assert_run(w, 0, 1, 3 * 101 + 55, 101);
    for (int i = 0; i < 3 * 101 + 55; i++)
        assert_int_equal(w->k.bytes[0][i], "acdf"[i / 101]);
    assert_run(w, 1, 1, 101, 0);
}

static void peers_reserve_side_by_side(void **state)
{
    struct world *w = *state;
    struct rnl_room a[2], b[2], c[2];
    const uint32_t both[2] = {80, 80}, one[2] = {80, 0};
    assert_int_equal(w->t->ops->reserve(w->t, 1, 0, 80, a, 2), 2);
    assert_int_equal(w->t->ops->reserve(w->t, 2, 0, 80, b, 2), 2);
    assert_int_equal(w->t->ops->reserve(w->t, 3, 0, 80, c, 2), 2);
    for (int i = 0; i < 2; i++) {
        memset(a[i].at, 'a', 80);
        memset(b[i].at, 'b', 80);
        memset(c[i].at, 'c', 80);
    }
    assert_int_equal(w->t->ops->commit(w->t, 2, 0, b, one, 2, 0), 1);
    assert_int_equal(w->t->ops->commit(w->t, 3, 0, c, both, 2, 0), 2);
    assert_int_equal(flush(w, 0), 0); /* what the first composes stays where it is */
    put(w, 2, 80, 1, 'd');
    assert_int_equal(w->t->ops->commit(w->t, 1, 0, a, both, 2, 0), 2);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 4);
    assert_run(w, 0, 2, 80, 0);
    assert_run(w, 1, 3, 160, 80);
    assert_run(w, 2, 2, 80, 0);
    assert_run(w, 3, 1, 160, 80);
    for (int i = 0; i < 4; i++)
        assert_int_equal(w->k.bytes[i][79], "bcda"[i]);
}

static void what_the_host_does_not_take_waits_in_order(void **state)
{
    struct world *w = *state;
    struct rnl_udp_counts c;
    struct rnl_notice n;
    for (unsigned stop = RNL_SOCKET_FULL; stop <= RNL_SOCKET_NO_BUFFERS; stop++) {
        w->k.outs = 0;
        for (uint32_t i = 0; i < 6; i++)
            put(w, 1 + i % 3, 100, 1, (char)('a' + i));
        w->k.takes = 2;
        w->k.stop = (struct rnl_socket_result){stop, 11};
        assert_int_equal(flush(w, 1000), 4);
        assert_in_range(w->t->ops->deadline(w->t), 1001, 1000000);
        w->k.takes = 1;
        assert_int_equal(flush(w, 50000), 3);
        w->k.takes = 100;
        assert_int_equal(flush(w, 90000), 0);
        assert_int_equal(w->t->ops->deadline(w->t), UINT64_MAX);
        assert_int_equal(w->k.outs, 6);
        for (int i = 0; i < 6; i++)
            assert_int_equal(w->k.bytes[i][0], 'a' + i);
        assert_int_equal(w->t->ops->notice(w->t, &n), 0); /* room is nothing to be told of */
    }
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.sent, 12);
    assert_int_equal(c.full, 4);
    assert_int_equal(c.refused, 0);
}

/* Virtual interfaces drop what is too long for what is behind them, and say that their queue is full. */
static void what_the_host_never_takes_does_not_hold_up_the_rest(void **state)
{
    struct world *w = *state;
    struct rnl_udp_counts c;
    w->k.stop = (struct rnl_socket_result){RNL_SOCKET_NO_BUFFERS, 105};
    w->k.denied = 500;
    put(w, 1, 500, 1, 'a');
    put(w, 2, 400, 1, 'b');
    unsigned tries = 0;
    while (flush(w, 1000 * tries) > 0)
        assert_true(tries++ < 100);
    assert_in_range(tries, 8, 32);
    assert_int_equal(w->k.outs, 1);
    assert_int_equal(w->k.bytes[0][0], 'b');
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.refused, 1);
    put(w, 1, 500, 1, RNL_PACKET_PROBE << 4); /* a question is answered soon */
    put(w, 2, 400, 1, 'c');
    assert_int_equal(flush(w, 0), 2);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 2);
    assert_int_equal(w->k.bytes[1][0], 'c');
}

/* Interfaces let runs pass whose parts they would not let pass alone. */
static void a_question_about_the_path_is_no_part_of_a_run(void **state)
{
    struct world *w = *state;
    put(w, 1, 500, 1, RNL_PACKET_PROBE << 4);
    put(w, 1, 500, 1, 'a');
    put(w, 1, 500, 1, 'b');
    put(w, 1, 400, 1, RNL_PACKET_PROBE << 4);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 3);
    assert_run(w, 0, 1, 500, 0);
    assert_run(w, 1, 1, 1000, 500);
    assert_run(w, 2, 1, 400, 0);
}

static void no_room_comes_when_nothing_goes_and_ends_when_it_does(void **state)
{
    struct world *w = *state;
    struct rnl_room room[16];
    int sent = 0, n;
    w->k.takes = 0;
    w->k.stop = (struct rnl_socket_result){RNL_SOCKET_FULL, 11};
    /* Lengths that differ make no runs. */
    while ((n = w->t->ops->reserve(w->t, 1, 0, (uint32_t)(64 + sent % 7 * 8), room, 1)) == 1) {
        const uint32_t used = (uint32_t)(64 + sent % 7 * 8);
        memset(room[0].at, sent, used);
        assert_int_equal(w->t->ops->commit(w->t, 1, 0, room, &used, 1, 0), 1);
        assert_true(++sent < 10000);
    }
    assert_int_equal(n, 0);
    assert_int_equal(w->t->ops->answer(w->t, &(struct rnl_view){0}, room, 0, 0), RNL_ERR_ARG);
    w->k.takes = 1 << 30;
    assert_int_equal(w->t->ops->reserve(w->t, 1, 0, 64, room, 1), 1); /* tries by itself */
    assert_int_equal(w->t->ops->commit(w->t, 1, 0, room, &(uint32_t){64}, 1, 0), 1);
    assert_int_equal(flush(w, 0), 0);
    uint64_t packets = 0;
    for (int i = 0; i < w->k.outs; i++)
        packets += w->k.out[i].segment ? (w->k.out[i].bytes + w->k.out[i].segment - 1) / w->k.out[i].segment : 1;
    assert_int_equal(packets, sent + 1);
}

static void what_the_host_never_takes_is_left_out_and_told(void **state)
{
    struct world *w = *state;
    static const struct {
        uint32_t stop, kind;
    } cases[] = {{RNL_SOCKET_UNREACHABLE, RNL_NOTICE_UNREACHABLE},
                 {RNL_SOCKET_FORBIDDEN, RNL_NOTICE_FORBIDDEN},
                 {RNL_SOCKET_FAILED, RNL_NOTICE_UNREACHABLE},
                 {RNL_SOCKET_TOO_LONG, RNL_NOTICE_TOO_LONG}};
    struct rnl_notice n;
    struct rnl_udp_counts c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(w, 1, 200, 1, 'a');
        put(w, 2, 1400, 3, 'b');
        w->k.takes = 1;
        w->k.stop = (struct rnl_socket_result){cases[i].stop, 55};
        if (cases[i].stop == RNL_SOCKET_TOO_LONG)
            w->k.s.datagram_max = 1300; /* the interface shrank */
        assert_int_equal(flush(w, 0), 0);
        assert_int_equal(w->t->ops->notice(w->t, &n), 1);
        assert_int_equal(n.kind, cases[i].kind);
        assert_int_equal(n.peer, 2);
        assert_int_equal(n.sys_errno, 55);
        assert_int_equal(n.value, cases[i].stop == RNL_SOCKET_TOO_LONG ? 1300 : 0);
        assert_int_equal(w->t->ops->notice(w->t, &n), 0);
    }
    assert_int_equal(w->t->ops->mtu(w->t, 2), 1300);
    struct rnl_room room;
    assert_int_equal(w->t->ops->reserve(w->t, 2, 0, 1301, &room, 1), RNL_ERR_TOO_LONG);
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.refused, 12);
    assert_int_equal(c.sent, 4);
}

/* One packet of `bytes`, or no room for it. */
static int put_alone(struct world *w, uint32_t peer, uint32_t bytes, char letter)
{
    unsigned char *at = w->t->ops->lone(w->t, peer, bytes);
    if (at == NULL)
        return 0;
    memset(at, letter, bytes);
    w->t->ops->go(w->t, peer, at, bytes, 1000);
    return 1;
}

static void one_that_goes_alone_goes_like_others(void **state)
{
    struct world *w = *state;
    struct rnl_udp_counts c;
    struct rnl_notice n;
    struct rnl_room room;
    assert_int_equal(put_alone(w, 1, 72, 'a'), 1);
    assert_int_equal(w->k.outs, 1);
    assert_run(w, 0, 1, 72, 0);
    assert_int_equal(w->k.bytes[0][71], 'a');
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 1);
    /* Behind others, in the middle of them, marked, too long, to nobody: not alone. */
    put(w, 2, 64, 1, 'b');
    assert_int_equal(put_alone(w, 1, 72, 'x'), 0);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->t->ops->reserve(w->t, 2, 0, 64, &room, 1), 1);
    assert_int_equal(put_alone(w, 1, 72, 'x'), 0);
    assert_int_equal(w->t->ops->commit(w->t, 2, 0, &room, &(uint32_t){0}, 1, 0), 0);
    assert_int_equal(w->t->ops->mark(w->t, 1, 1), 0);
    assert_int_equal(put_alone(w, 1, 72, 'x'), 0);
    assert_int_equal(w->t->ops->mark(w->t, 1, 0), 0);
    assert_int_equal(put_alone(w, 1, LONGEST + 1, 'x'), 0);
    assert_int_equal(put_alone(w, 4, 72, 'x'), 0);
    assert_int_equal(put_alone(w, PEERS, 72, 'x'), 0);
    assert_int_equal(w->k.outs, 2);
    /* It waits for the host, before what comes later. */
    for (unsigned stop = RNL_SOCKET_FULL; stop <= RNL_SOCKET_NO_BUFFERS; stop++) {
        w->k.outs = w->k.takes = 0;
        w->k.stop = (struct rnl_socket_result){stop, 11};
        assert_int_equal(put_alone(w, 3, 72, 'c'), 1);
        assert_in_range(w->t->ops->deadline(w->t), 1001, 1000000);
        assert_int_equal(put_alone(w, 3, 72, 'x'), 0);
        put(w, 3, 80, 1, 'd');
        w->k.takes = 100;
        assert_int_equal(flush(w, 90000), 0);
        assert_int_equal(w->t->ops->deadline(w->t), UINT64_MAX);
        assert_int_equal(w->k.outs, 2);
        assert_run(w, 0, 3, 72, 0);
        assert_int_equal(w->k.bytes[0][71], 'c');
        assert_int_equal(w->k.bytes[1][79], 'd');
    }
    /* Or is left out, and somebody told. */
    w->k.takes = 0;
    w->k.stop = (struct rnl_socket_result){RNL_SOCKET_UNREACHABLE, 55};
    assert_int_equal(w->t->ops->notice(w->t, &n), 0);
    assert_int_equal(put_alone(w, 2, 72, 'e'), 1);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->t->ops->notice(w->t, &n), 1);
    assert_int_equal(n.kind, RNL_NOTICE_UNREACHABLE);
    assert_int_equal(n.peer, 2);
    w->k.takes = 100;
    assert_int_equal(put_alone(w, 1, 72, 'f'), 1);
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.sent, 7);
    assert_int_equal(c.refused, 1);
    assert_int_equal(c.full, 2);
}

static void marks_are_set_per_peer(void **state)
{
    struct world *w = *state;
    assert_int_equal(w->t->ops->mark(w->t, 2, 1), 0);
    put(w, 1, 64, 1, 'a');
    put(w, 2, 64, 1, 'b');
    assert_int_equal(w->t->ops->mark(w->t, 2, 0), 0);
    put(w, 2, 64, 1, 'c'); /* no run with what is marked otherwise */
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 3);
    assert_int_equal(w->k.out[0].ecn, RNL_ECN_NOT);
    assert_int_equal(w->k.out[1].ecn, RNL_ECN_ECT0);
    assert_int_equal(w->k.out[2].ecn, RNL_ECN_NOT);
}

/* ---- receiving ---- */

static void merged_runs_are_cut_where_their_packets_end(void **state)
{
    struct world *w = *state;
    static unsigned char data[4000];
    struct rnl_view v[16];
    struct rnl_udp_counts c;
    for (int i = 0; i < 4000; i++)
        data[i] = (unsigned char)(i * 3);
    w->k.in[0] =
        (struct rnl_socket_in){.at = data, .bytes = 3500, .segment = 1000, .ecn = RNL_ECN_CE, .from = addr_of(2)};
    w->k.in[1] = (struct rnl_socket_in){.at = data, .bytes = 1472, .ecn = RNL_ECN_ECT1, .cut = 1, .from = addr_of(9)};
    w->k.in[2] = (struct rnl_socket_in){.at = data, .bytes = 0, .from = addr_of(3)};
    w->k.in[3] = (struct rnl_socket_in){.at = data, .bytes = 700, .segment = 1000, .from = addr_of(1)};
    w->k.ins = 4;
    assert_int_equal(w->t->ops->arm(w->t), 1);
    assert_int_equal(w->t->ops->poll(w->t, v, 3, 0), 3);
    assert_int_equal(w->t->ops->arm(w->t), 1); /* the rest of what was taken from the socket */
    assert_int_equal(w->t->ops->poll(w->t, v + 3, 13, 0), 4);
    static const struct {
        uint32_t peer, bytes, offset, flags;
    } want[] = {{2, 1000, 0, RNL_VIEW_CE},
                {2, 1000, 1000, RNL_VIEW_CE},
                {2, 1000, 2000, RNL_VIEW_CE},
                {2, 500, 3000, RNL_VIEW_CE},
                {RNL_PEER_STRANGER, 1472, 0, RNL_VIEW_ECT | RNL_VIEW_CUT},
                {3, 0, 0, 0},
                {1, 700, 0, 0}};
    assert_int_equal((uintptr_t)v[0].at % 4096, 0); /* rnl_copy_trips */
    assert_int_equal((uintptr_t)v[5].at % 32, 0);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(v[i].peer, want[i].peer);
        assert_int_equal(v[i].bytes, want[i].bytes);
        assert_int_equal(v[i].flags, want[i].flags);
        assert_memory_equal(v[i].at, data + want[i].offset, want[i].bytes);
    }
    assert_int_equal(w->t->ops->arm(w->t), 0);
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.received, 7);
    assert_int_equal(c.cut, 1);
    assert_int_equal(c.from_strangers, 1);
    w->t->ops->release(w->t, v + 2, 5);
    w->t->ops->release(w->t, v, 2);
    w->t->ops->release(w->t, v, 7); /* again: nothing happens */
}

static void behind_a_run_the_host_is_asked_again(void **state)
{
    struct world *w = *state;
    static unsigned char data[3000];
    struct rnl_view v[16];
    for (int i = 0; i < 4; i++)
        w->k.in[i] = (struct rnl_socket_in){.at = data, .bytes = 3000, .segment = 1000, .from = addr_of(2)};
    w->k.in[1].segment = 0;
    w->k.in[1].bytes = 1000;
    w->k.ins = 4;
    w->k.one_run = 1;
    assert_int_equal(w->t->ops->poll(w->t, v, 16, 0), 10);
    w->t->ops->release(w->t, v, 10);
}

static void buffers_come_back_however_views_are_released(void **state)
{
    struct world *w = *state;
    static unsigned char data[2000];
    struct rnl_view v[200];
    int held = 0;
    for (int round = 0; round < 1000; round++) {
        w->k.in[0] = (struct rnl_socket_in){.at = data, .bytes = 2000, .segment = 1000, .from = addr_of(1)};
        w->k.in[1] = (struct rnl_socket_in){.at = data, .bytes = 10, .from = addr_of(2)};
        w->k.ins = 2;
        w->k.next = 0;
        held += w->t->ops->poll(w->t, v + held, 3, 0);
        while (held > round % 90) {
            int k = round * 7 % held;
            w->t->ops->release(w->t, &v[k], 1);
            v[k] = v[--held];
        }
    }
    w->t->ops->release(w->t, v, held);
    /* All of them are there: 64 buffers hold 64 datagrams, and no more are taken. */
    int got = 0;
    for (int n = 1; n > 0; got += n) {
        w->k.in[0] = (struct rnl_socket_in){.at = data, .bytes = 10, .from = addr_of(2)};
        w->k.ins = 1;
        w->k.next = 0;
        n = w->t->ops->poll(w->t, v + got, 1, 0);
    }
    assert_int_equal(got, 64);
    w->t->ops->release(w->t, v + 10, 1);
    assert_int_equal(w->t->ops->poll(w->t, v + 64, 2, 0), 1);
    /* That took the buffer of a view that was released before: releasing it again is about neither. */
    w->t->ops->release(w->t, v + 10, 1);
    w->k.in[0] = (struct rnl_socket_in){.at = data, .bytes = 10, .from = addr_of(2)};
    w->k.ins = 1;
    w->k.next = 0;
    assert_int_equal(w->t->ops->poll(w->t, v + 65, 1, 0), 0);
}

static void an_answer_goes_where_the_packet_came_from(void **state)
{
    struct world *w = *state;
    struct rnl_view v[2];
    w->k.in[0] = (struct rnl_socket_in){.at = (char[]){"abcdefgh"}, .bytes = 8, .from = addr_of(200)};
    w->k.in[1] = (struct rnl_socket_in){.at = (char[]){"abcdefgh"}, .bytes = 8, .from = addr_of(201)};
    w->k.ins = 2;
    assert_int_equal(w->t->ops->poll(w->t, v, 2, 0), 2);
    assert_int_equal(w->t->ops->answer(w->t, &v[0], "12345678", 8, 0), 1);
    assert_int_equal(w->t->ops->answer(w->t, &v[0], "123456789", 9, 0), RNL_ERR_TOO_LONG);
    assert_int_equal(w->t->ops->answer(w->t, &v[1], "87654321", 8, 0), 1);
    w->t->ops->release(w->t, v, 2);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 2); /* strangers share no run */
    assert_run(w, 0, 200, 8, 0);
    assert_run(w, 1, 201, 8, 0);
    assert_memory_equal(w->k.bytes[0], "12345678", 8);
    assert_memory_equal(w->k.bytes[1], "87654321", 8);
}

static void errors_of_the_network_name_the_peer(void **state)
{
    struct world *w = *state;
    struct rnl_notice n;
    w->k.error[0] = (struct rnl_socket_error){.to = addr_of(3), .kind = RNL_SOCKET_ERROR_TOO_LONG, .value = 1200};
    w->k.error[1] = (struct rnl_socket_error){.to = addr_of(77), .kind = RNL_SOCKET_ERROR_REFUSED};
    w->k.error[2] = (struct rnl_socket_error){.to = addr_of(2), .kind = RNL_SOCKET_ERROR_REFUSED, .sys_errno = 111};
    w->k.errors = 3;
    assert_int_equal(w->t->ops->notice(w->t, &n), 1);
    assert_int_equal(n.kind, RNL_NOTICE_REFUSED);
    assert_int_equal(n.peer, 2);
    assert_int_equal(n.sys_errno, 111);
    assert_int_equal(w->t->ops->notice(w->t, &n), 1);
    assert_int_equal(n.kind, RNL_NOTICE_TOO_LONG);
    assert_int_equal(n.peer, 3);
    assert_int_equal(n.value, 1200);
    assert_int_equal(w->t->ops->notice(w->t, &n), 0);
}

/* ---- peers ---- */

static void addresses_are_found_whoever_comes_and_goes(void **state)
{
    struct world *w = *state;
    uint8_t in[PEERS] = {0, 1, 1, 1};
    uint64_t random = 5;
    for (int turn = 0; turn < 20000; turn++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t peer = (uint32_t)(random >> 33) % PEERS;
        struct rnl_socket_addr at = addr_of(peer);
        struct rnl_addr a;
        rnl_udp_addr_of(&at, &a);
        if (in[peer])
            assert_int_equal(w->t->ops->disconnect(w->t, peer), 0);
        else
            assert_int_equal(w->t->ops->connect(w->t, peer, &a, 1), 0);
        in[peer] ^= 1;
        uint32_t asked = (uint32_t)(random >> 50) % PEERS;
        struct rnl_view v;
        w->k.in[0] = (struct rnl_socket_in){.at = (char[]){"x"}, .bytes = 1, .from = addr_of(asked)};
        w->k.ins = 1;
        w->k.next = 0;
        assert_int_equal(w->t->ops->poll(w->t, &v, 1, 0), 1);
        assert_int_equal(v.peer, in[asked] ? asked : RNL_PEER_STRANGER);
        w->t->ops->release(w->t, &v, 1);
    }
}

static void what_came_before_a_peer_was_let_go_is_a_strangers(void **state)
{
    struct world *w = *state;
    static unsigned char data[30];
    struct rnl_socket_addr at = addr_of(2);
    struct rnl_addr a;
    struct rnl_view v[4];
    rnl_udp_addr_of(&at, &a);
    w->k.in[0] = (struct rnl_socket_in){.at = data, .bytes = 30, .segment = 10, .from = at};
    w->k.in[1] = (struct rnl_socket_in){.at = data, .bytes = 10, .from = at};
    w->k.ins = 2;
    assert_int_equal(w->t->ops->poll(w->t, v, 1, 0), 1);
    assert_int_equal(v[0].peer, 2);
    assert_int_equal(w->t->ops->disconnect(w->t, 2), 0);
    assert_int_equal(w->t->ops->poll(w->t, v + 1, 1, 0), 1);
    assert_int_equal(v[1].peer, RNL_PEER_STRANGER);
    assert_int_equal(w->t->ops->connect(w->t, 7, &a, 1), 0); /* somebody else has that address now */
    assert_int_equal(w->t->ops->poll(w->t, v + 2, 2, 0), 2);
    assert_int_equal(v[2].peer, 7);
    assert_int_equal(v[3].peer, 7);
    w->t->ops->release(w->t, v, 4);
}

static void two_ranks_have_no_address_together(void **state)
{
    struct world *w = *state;
    struct rnl_socket_addr at = addr_of(1);
    struct rnl_addr a;
    rnl_udp_addr_of(&at, &a);
    assert_int_equal(w->t->ops->connect(w->t, 1, &a, 1), 0);
    assert_int_equal(w->t->ops->connect(w->t, 1, &a, 2), RNL_ERR_PEER_DEAD); /* another life: disconnect first */
    assert_int_equal(w->t->ops->connect(w->t, 5, &a, 1), RNL_ERR_RANK);
    at.port = 0;
    rnl_udp_addr_of(&at, &a);
    assert_int_equal(w->t->ops->connect(w->t, 5, &a, 1), RNL_ERR_ARG);
    assert_int_equal(w->t->ops->connect(w->t, 5, NULL, 1), RNL_ERR_ARG);
}

/* Whose a packet from there is. */
static uint32_t from(struct world *w, uint32_t place)
{
    struct rnl_view v;
    w->k.in[0] = (struct rnl_socket_in){.at = (char[]){"x"}, .bytes = 1, .from = addr_of(place)};
    w->k.ins = 1;
    w->k.next = 0;
    assert_int_equal(w->t->ops->poll(w->t, &v, 1, 0), 1);
    w->t->ops->release(w->t, &v, 1);
    return v.peer;
}

static int also(struct world *w, uint32_t peer, uint32_t place, unsigned *way)
{
    struct rnl_socket_addr at = addr_of(place);
    struct rnl_addr a;
    rnl_udp_addr_of(&at, &a);
    return w->t->ops->also(w->t, peer, &a, way);
}

static int connect_at(struct world *w, uint32_t peer, uint32_t place)
{
    struct rnl_socket_addr at = addr_of(place);
    struct rnl_addr a;
    rnl_udp_addr_of(&at, &a);
    return w->t->ops->connect(w->t, peer, &a, peer);
}

static void an_address_where_nobody_is_reached_is_given_to_whose_it_is(void **state)
{
    struct world *w = *state;
    unsigned way = 0;
    assert_int_equal(also(w, 1, 30, &way), 0);
    assert_int_equal(also(w, 1, 31, &way), 0);
    assert_int_equal(also(w, 1, 32, &way), 0);
    assert_int_equal(way, 3);
    assert_int_equal(w->t->ops->aim(w->t, 1, 2), 0);
    /* Where it is reached it stays. */
    assert_int_equal(connect_at(w, 7, 31), RNL_ERR_RANK);
    assert_int_equal(from(w, 31), 1);
    /* Where it is not it goes: a further one, and the first. */
    assert_int_equal(connect_at(w, 7, 30), 0);
    assert_int_equal(from(w, 30), 7);
    assert_int_equal(connect_at(w, 8, 1), 0);
    assert_int_equal(from(w, 1), 8);
    assert_int_equal(w->t->ops->toward(w->t, 1, 1, "x", 1, 0), RNL_ERR_RANK);
    assert_int_equal(w->t->ops->aim(w->t, 1, 0), RNL_ERR_RANK);
    /* The others are as before, whoever else goes. */
    assert_int_equal(from(w, 31), 1);
    assert_int_equal(from(w, 32), 1);
    assert_int_equal(w->t->ops->toward(w->t, 1, 3, "x", 1, 0), 1);
    put(w, 1, 100, 1, 'a');
    put(w, 7, 100, 1, 'b');
    assert_int_equal(flush(w, 0), 0);
    assert_run(w, 0, 32, 1, 0);
    assert_run(w, 1, 31, 100, 0);
    assert_run(w, 2, 30, 100, 0);
    assert_int_equal(w->t->ops->disconnect(w->t, 1), 0);
    assert_int_equal(from(w, 31), RNL_PEER_STRANGER);
    assert_int_equal(from(w, 30), 7);
    assert_int_equal(from(w, 1), 8);
}

static void an_address_that_is_taken_is_no_failure_to_be_recorded(void **state)
{
    struct world *w = *state;
    unsigned way = 9;
    (void)rnl_fail(RNL_ERR_ARG, "what was recorded before");
    assert_int_equal(also(w, 1, 2, &way), RNL_ERR_RANK);
    assert_int_equal(also(w, 1, 1, &way), RNL_ERR_RANK); /* its own */
    assert_int_equal(way, 9);
    assert_int_equal(rnl_last_error()->status, RNL_ERR_ARG);
    assert_int_equal(also(w, 9, 30, &way), RNL_ERR_RANK); /* not connected */
    assert_int_equal(rnl_last_error()->status, RNL_ERR_RANK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(neighbours_of_one_length_go_as_one_run),
        TEST(runs_close_up_what_alignment_and_unused_rooms_leave),
        TEST(peers_reserve_side_by_side),
        TEST(what_the_host_does_not_take_waits_in_order),
        TEST(what_the_host_never_takes_does_not_hold_up_the_rest),
        TEST(a_question_about_the_path_is_no_part_of_a_run),
        TEST(no_room_comes_when_nothing_goes_and_ends_when_it_does),
        TEST(what_the_host_never_takes_is_left_out_and_told),
        TEST(one_that_goes_alone_goes_like_others),
        TEST(marks_are_set_per_peer),
        TEST(merged_runs_are_cut_where_their_packets_end),
        TEST(behind_a_run_the_host_is_asked_again),
        TEST(buffers_come_back_however_views_are_released),
        TEST(an_answer_goes_where_the_packet_came_from),
        TEST(errors_of_the_network_name_the_peer),
        TEST(addresses_are_found_whoever_comes_and_goes),
        TEST(what_came_before_a_peer_was_let_go_is_a_strangers),
        TEST(two_ranks_have_no_address_together),
        TEST(an_address_where_nobody_is_reached_is_given_to_whose_it_is),
        TEST(an_address_that_is_taken_is_no_failure_to_be_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
