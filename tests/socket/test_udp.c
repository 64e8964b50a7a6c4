/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_udp.c - net/datagram over a socket that does what the test says: takes some, refuses, merges, cuts, complains.
 */
#include "base/env.h"
#include "base/error.h"
#include "net/datagram/udp.h"
#include "net/wire/packet.h"
#include "runnel/runnel.h"
#include "support/unit.h"

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
    int closed;
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
    (void)s, (void)e;
    return 0;
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

static const struct rnl_socket_ops script_ops = {sizeof script_ops, script_send,  script_recv, script_error, script_arm,
                                                 script_fd,         script_close, NULL,        NULL};

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

static int set_up(void **state)
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
        assert_int_equal(w->t->ops->add_peer(w->t, i, &a, 1, i), 1);
    }
    *state = w;
    return 0;
}

static int tear_down(void **state)
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
    assert_int_equal(w->t->ops->reserve(w->t, peer, bytes, room, n), n);
    for (int i = 0; i < n; i++) {
        memset(room[i].at, letter + i, bytes);
        used[i] = bytes;
    }
    assert_int_equal(w->t->ops->commit(w->t, peer, room, used, n, false, 0), n);
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
    assert_int_equal(w->t->ops->reserve(w->t, 1, 101, room, 6), 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal((uintptr_t)room[i].at % 8, 0);
        memset(room[i].at, 'a' + i, 101);
    }
    assert_int_equal(w->t->ops->commit(w->t, 1, room, used, 6, false, 0), 4);
    put(w, 1, 101, 1, 'x'); /* behind a shorter one: a run of its own */
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 2);
    assert_run(w, 0, 1, 3 * 101 + 55, 101);
    for (int i = 0; i < 3 * 101 + 55; i++)
        assert_int_equal(w->k.bytes[0][i], "acdf"[i / 101]);
    assert_run(w, 1, 1, 101, 0);
}

static void what_the_host_does_not_take_waits_in_order(void **state)
{
    struct world *w = *state;
    struct rnl_udp_counts c;
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
    }
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.sent, 12);
    assert_int_equal(c.full, 4);
    assert_int_equal(c.refused, 0);
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
    while ((n = w->t->ops->reserve(w->t, 1, (uint32_t)(64 + sent % 7 * 8), room, 1)) == 1) {
        const uint32_t used = (uint32_t)(64 + sent % 7 * 8);
        memset(room[0].at, sent, used);
        assert_int_equal(w->t->ops->commit(w->t, 1, room, &used, 1, false, 0), 1);
        assert_true(++sent < 10000);
    }
    assert_int_equal(n, 0);
    assert_int_equal(w->t->ops->reply(w->t, &(struct rnl_view){0}, room, 0, 0), RNL_ERR_ARG);
    w->k.takes = 1 << 30;
    assert_int_equal(w->t->ops->reserve(w->t, 1, 64, room, 1), 1); /* tries by itself */
    assert_int_equal(w->t->ops->commit(w->t, 1, room, &(uint32_t){64}, 1, false, 0), 1);
    assert_int_equal(flush(w, 0), 0);
    uint64_t packets = 0;
    for (int i = 0; i < w->k.outs; i++)
        packets += w->k.out[i].segment ? (w->k.out[i].bytes + w->k.out[i].segment - 1) / w->k.out[i].segment : 1;
    assert_int_equal(packets, sent + 1);
}

static void what_the_host_never_takes_is_left_out_and_counted(void **state)
{
    struct world *w = *state;
    static const uint32_t stops[] = {RNL_SOCKET_UNREACHABLE, RNL_SOCKET_FORBIDDEN, RNL_SOCKET_FAILED,
                                     RNL_SOCKET_TOO_LONG};
    struct rnl_udp_counts c;
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        put(w, 1, 200, 1, 'a');
        put(w, 2, 1400, 3, 'b');
        w->k.takes = 1;
        w->k.stop = (struct rnl_socket_result){stops[i], 55};
        if (stops[i] == RNL_SOCKET_TOO_LONG)
            w->k.s.datagram_max = 1300; /* the interface shrank */
        assert_int_equal(flush(w, 0), 0);
    }
    assert_int_equal(w->t->ops->mtu(w->t, 2), 1300);
    struct rnl_room room;
    assert_int_equal(w->t->ops->reserve(w->t, 2, 1301, &room, 1), RNL_ERR_TOO_LONG);
    rnl_udp_counts(w->t, &c);
    assert_int_equal(c.refused, 12);
    assert_int_equal(c.sent, 4);
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

static void a_reply_goes_where_the_packet_came_from(void **state)
{
    struct world *w = *state;
    struct rnl_view v[2];
    w->k.in[0] = (struct rnl_socket_in){.at = (char[]){"abcdefgh"}, .bytes = 8, .from = addr_of(200)};
    w->k.in[1] = (struct rnl_socket_in){.at = (char[]){"abcdefgh"}, .bytes = 8, .from = addr_of(201)};
    w->k.ins = 2;
    assert_int_equal(w->t->ops->poll(w->t, v, 2, 0), 2);
    assert_int_equal(w->t->ops->reply(w->t, &v[0], "12345678", 8, 0), 1);
    assert_int_equal(w->t->ops->reply(w->t, &v[0], "123456789", 9, 0), RNL_ERR_TOO_LONG);
    assert_int_equal(w->t->ops->reply(w->t, &v[1], "87654321", 8, 0), 1);
    w->t->ops->release(w->t, v, 2);
    assert_int_equal(flush(w, 0), 0);
    assert_int_equal(w->k.outs, 2); /* strangers share no run */
    assert_run(w, 0, 200, 8, 0);
    assert_run(w, 1, 201, 8, 0);
    assert_memory_equal(w->k.bytes[0], "12345678", 8);
    assert_memory_equal(w->k.bytes[1], "87654321", 8);
}

/* ---- peers ---- */

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
    assert_int_equal(w->t->ops->remove_peer(w->t, 2), 0);
    assert_int_equal(w->t->ops->poll(w->t, v + 1, 1, 0), 1);
    assert_int_equal(v[1].peer, RNL_PEER_STRANGER);
    assert_int_equal(w->t->ops->add_peer(w->t, 7, &a, 1, 1), 1); /* somebody else has that address now */
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
    assert_int_equal(w->t->ops->add_peer(w->t, 1, &a, 1, 1), 1);
    assert_int_equal(w->t->ops->add_peer(w->t, 1, &a, 1, 2), RNL_ERR_PEER_DEAD); /* another life: remove it first */
    assert_int_equal(w->t->ops->add_peer(w->t, 5, &a, 1, 1), RNL_ERR_RANK);
    at.port = 0;
    rnl_udp_addr_of(&at, &a);
    assert_int_equal(w->t->ops->add_peer(w->t, 5, &a, 1, 1), RNL_ERR_ARG);
    assert_int_equal(w->t->ops->add_peer(w->t, 5, NULL, 1, 1), RNL_ERR_ARG);
    assert_int_equal(w->t->ops->add_peer(w->t, 5, &a, 0, 1), RNL_ERR_ARG);
    struct rnl_addr many[RNL_PATHS_MAX + 1] = {a, a, a, a, a};
    assert_int_equal(w->t->ops->add_peer(w->t, 5, many, RNL_PATHS_MAX + 1, 1), RNL_ERR_ARG);
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

/* Adds a peer that has these places, the first being its active path. */
static int add(struct world *w, uint32_t peer, const uint32_t *place, unsigned n)
{
    struct rnl_addr a[RNL_PATHS_MAX];
    for (unsigned i = 0; i < n; i++) {
        struct rnl_socket_addr at = addr_of(place[i]);
        rnl_udp_addr_of(&at, &a[i]);
    }
    return w->t->ops->add_peer(w->t, peer, a, n, peer);
}

static void packets_go_to_the_active_path_and_come_from_all(void **state)
{
    struct world *w = *state;
    assert_int_equal(add(w, 4, (const uint32_t[]){20, 21, 22}, 3), 7);
    for (uint32_t place = 20; place <= 22; place++)
        assert_int_equal(from(w, place), 4);
    for (unsigned path = 0; path < 3; path++) {
        struct rnl_view v;
        w->k.outs = 0;
        assert_int_equal(w->t->ops->set_active_path(w->t, 4, path), 0);
        put(w, 4, 100, 1, 'a');
        assert_int_equal(w->t->ops->send_on_path(w->t, 4, 2 - path, "x", 1, 0), 1);
        assert_int_equal(flush(w, 0), 0);
        assert_run(w, 0, 20 + path, 100, 0);
        assert_run(w, 1, 22 - path, 1, 0);
        for (unsigned other = 0; other < 3; other++) {
            struct rnl_room room[2];
            w->k.outs = 0;
            assert_int_equal(w->t->ops->reserve(w->t, 4, 100, room, 2), 2);
            memset(room[0].at, 'b', 50);
            assert_int_equal(w->t->ops->commit_on_path(w->t, 4, other, room, (const uint32_t[]){50, 0}, 2, false, 0),
                             1);
            assert_int_equal(flush(w, 0), 0);
            assert_run(w, 0, 20 + other, 50, 0);
        }
        for (uint32_t k = 0; k < 3; k++) { /* the last place asked is the next active path */
            uint32_t place = 20 + (path + 3 - k) % 3;
            w->k.in[0] = (struct rnl_socket_in){.at = (char[]){"x"}, .bytes = 1, .from = addr_of(place)};
            w->k.ins = 1;
            w->k.next = 0;
            assert_int_equal(w->t->ops->poll(w->t, &v, 1, 0), 1);
            assert_int_equal(v.flags & RNL_VIEW_ASIDE, place == 20 + path ? 0 : RNL_VIEW_ASIDE);
            w->t->ops->release(w->t, &v, 1);
        }
    }
    assert_int_equal(w->t->ops->set_active_path(w->t, 4, 3), RNL_ERR_RANK);
    assert_int_equal(w->t->ops->send_on_path(w->t, 1, 1, "x", 1, 0), RNL_ERR_RANK);
    assert_int_equal(add(w, 4, (const uint32_t[]){20, 21, 22}, 3), 7); /* again: nothing changes */
    w->k.outs = 0;
    put(w, 4, 100, 1, 'a');
    assert_int_equal(flush(w, 0), 0);
    assert_run(w, 0, 22, 100, 0);
}

static void an_address_where_nobody_is_reached_is_given_to_whose_it_is(void **state)
{
    struct world *w = *state;
    assert_int_equal(add(w, 9, (const uint32_t[]){29, 30, 31, 32}, 4), 15);
    assert_int_equal(w->t->ops->set_active_path(w->t, 9, 2), 0);
    /* Its active path it keeps. */
    assert_int_equal(add(w, 7, (const uint32_t[]){31}, 1), RNL_ERR_RANK);
    assert_int_equal(from(w, 31), 9);
    /* Others it loses to who has them first: an alternate one, and its first. */
    assert_int_equal(add(w, 7, (const uint32_t[]){30}, 1), 1);
    assert_int_equal(from(w, 30), 7);
    assert_int_equal(add(w, 8, (const uint32_t[]){29}, 1), 1);
    assert_int_equal(from(w, 29), 8);
    assert_int_equal(w->t->ops->send_on_path(w->t, 9, 1, "x", 1, 0), RNL_ERR_RANK);
    assert_int_equal(w->t->ops->set_active_path(w->t, 9, 0), RNL_ERR_RANK);
    assert_int_equal(add(w, 9, (const uint32_t[]){29}, 1), RNL_ERR_PEER_DEAD);
    /* The others are as before, whoever else goes. */
    assert_int_equal(from(w, 31), 9);
    assert_int_equal(from(w, 32), 9);
    assert_int_equal(w->t->ops->send_on_path(w->t, 9, 3, "x", 1, 0), 1);
    put(w, 9, 100, 1, 'a');
    put(w, 7, 100, 1, 'b');
    assert_int_equal(flush(w, 0), 0);
    assert_run(w, 0, 32, 1, 0);
    assert_run(w, 1, 31, 100, 0);
    assert_run(w, 2, 30, 100, 0);
    assert_int_equal(w->t->ops->remove_peer(w->t, 9), 0);
    assert_int_equal(from(w, 31), RNL_PEER_STRANGER);
    assert_int_equal(from(w, 30), 7);
    assert_int_equal(from(w, 29), 8);
}

static void a_further_address_of_somebody_else_is_left_out_without_a_record(void **state)
{
    struct world *w = *state;
    (void)rnl_fail(RNL_ERR_ARG, "what was recorded before");
    assert_int_equal(add(w, 9, (const uint32_t[]){29, 2, 30, 29}, 4), 5);
    assert_int_equal(rnl_last_error()->status, RNL_ERR_ARG);
    assert_int_equal(from(w, 2), 2);
    /* Paths are numbered without it. */
    assert_int_equal(w->t->ops->send_on_path(w->t, 9, 1, "x", 1, 0), 1);
    assert_int_equal(flush(w, 0), 0);
    assert_run(w, 0, 30, 1, 0);
    assert_int_equal(w->t->ops->send_on_path(w->t, 9, 2, "x", 1, 0), RNL_ERR_RANK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(neighbours_of_one_length_go_as_one_run),
        TEST(runs_close_up_what_alignment_and_unused_rooms_leave),
        TEST(what_the_host_does_not_take_waits_in_order),
        TEST(a_question_about_the_path_is_no_part_of_a_run),
        TEST(no_room_comes_when_nothing_goes_and_ends_when_it_does),
        TEST(what_the_host_never_takes_is_left_out_and_counted),
        TEST(merged_runs_are_cut_where_their_packets_end),
        TEST(buffers_come_back_however_views_are_released),
        TEST(a_reply_goes_where_the_packet_came_from),
        TEST(what_came_before_a_peer_was_let_go_is_a_strangers),
        TEST(two_ranks_have_no_address_together),
        TEST(packets_go_to_the_active_path_and_come_from_all),
        TEST(an_address_where_nobody_is_reached_is_given_to_whose_it_is),
        TEST(a_further_address_of_somebody_else_is_left_out_without_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
