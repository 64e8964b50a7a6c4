/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_kernel.c - the kernel's sockets behind net/socket/socket.h, on loopback: what they carry, and what they say when
 * something is wrong. */
#include "runnel/runnel.h"
#include "socket/kernel_fixture.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

enum { BIG = 65536, INS = 64, WAIT_MS = 2000 };

static struct rnl_socket_addr loopback(int family, uint16_t port)
{
    struct rnl_socket_addr a = {.port = port};
    if (family == 4)
        memcpy(a.ip, (const uint8_t[16]){[10] = 0xff, 0xff, 127, 0, 0, 1}, sizeof a.ip);
    else
        a.ip[15] = 1;
    return a;
}

static struct rnl_socket *open_with(struct rnl_socket_addr a, const struct rnl_kernel_options *o)
{
    struct rnl_socket *s = NULL;
    assert_int_equal(rnl_kernel_socket_open(&a, o, &s), 0);
    return s;
}

static struct rnl_socket *open_at(int family)
{
    return open_with(loopback(family, 0), NULL);
}

static int have_ipv6(void)
{
    struct rnl_socket *s;
    struct rnl_socket_addr a = loopback(6, 0);
    if (rnl_kernel_socket_open(&a, NULL, &s) < 0)
        return 0;
    s->ops->close(s);
    return 1;
}

static void skip_without(const struct rnl_socket *s, uint32_t feature, const char *what)
{
    if (facts_of(s).features & feature)
        return;
    print_message("skip: this kernel has no %s\n", what);
    skip();
}

static unsigned char data[BIG], room[INS][BIG];

static void fill_data(void)
{
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + (i >> 8));
}

static struct rnl_socket_result put(struct rnl_socket *s, const struct rnl_socket *to, uint32_t bytes, uint32_t segment,
                                    uint8_t ecn)
{
    struct rnl_socket_result r;
    struct rnl_socket_out o = {.to = to->self, .at = data, .bytes = bytes, .segment = (uint16_t)segment, .ecn = ecn};
    int went = s->ops->send(s, &o, 1, &r);
    assert_int_equal(went, r.stop == RNL_SOCKET_WENT);
    return r;
}

/* The next n that come; each into `bytes` of room. */
static int get(struct rnl_socket *s, struct rnl_socket_in *in, int n, uint32_t bytes)
{
    int got = 0;
    for (int i = 0; i < n; i++)
        in[i] = (struct rnl_socket_in){.at = room[i], .room = bytes, .segment = 9, .ecn = 9, .cut = 9};
    for (int tries = 0; got < n && tries < WAIT_MS; tries++) {
        int more = s->ops->recv(s, in + got, n - got);
        assert_true(more >= 0);
        got += more;
        if (more == 0 && got < n)
            test_sleep_ms(1);
    }
    return got;
}

/* ---- what is carried ---- */

static void all_addresses_are_one_socket_of_both_families(void **state)
{
    struct rnl_socket *all = open_with((struct rnl_socket_addr){.port = 0}, NULL), *to = calloc(1, sizeof *to);
    struct rnl_socket_in in;
    (void)state;
    for (int family = 4; family <= (have_ipv6() ? 6 : 4); family += 2) {
        struct rnl_socket *a = open_at(family);
        *to = *all;
        to->self = loopback(family, all->self.port);
        assert_int_equal(put(a, to, 100, 0, RNL_ECN_ECT0).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(all, &in, 1, BIG), 1);
        assert_true(rnl_socket_addr_equal(&in.from, &a->self));
        assert_int_equal(in.ecn, all->has_ecn ? RNL_ECN_ECT0 : 0);
        assert_int_equal(put(all, a, 200, 0, RNL_ECN_ECT1).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(a, &in, 1, BIG), 1);
        assert_true(rnl_socket_addr_equal(&in.from, &to->self));
        assert_int_equal(in.ecn, a->has_ecn ? RNL_ECN_ECT1 : 0);
        a->ops->close(a);
    }
    free(to);
    all->ops->close(all);
}

static void a_socket_of_one_family_does_not_reach_the_other(void **state)
{
    struct rnl_socket *a = open_at(4), to = {.self = loopback(6, 9)};
    (void)state;
    struct rnl_socket_result r = put(a, &to, 10, 0, 0);
    assert_int_equal(r.stop, RNL_SOCKET_UNREACHABLE);
    assert_int_equal(r.sys_errno, EAFNOSUPPORT);
    a->ops->close(a);
}

/* All packets of what came, by their lengths. */
static int packets_in(const struct rnl_socket_in *in, int n, uint32_t segment, uint32_t bytes)
{
    uint32_t at = 0, packets = 0;
    for (int i = 0; i < n; i++) {
        assert_int_equal(in[i].cut, 0);
        assert_memory_equal(in[i].at, data + at, in[i].bytes);
        if (in[i].segment)
            assert_int_equal(in[i].segment, segment);
        else
            assert_int_equal(in[i].bytes, at + segment < bytes ? segment : bytes - at);
        packets += in[i].segment ? (in[i].bytes + segment - 1) / segment : 1;
        at += in[i].bytes;
    }
    assert_int_equal(at, bytes);
    return (int)packets;
}

static void runs_between(uint32_t without_a, uint32_t without_b)
{
    const struct rnl_kernel_options oa = {.without = without_a}, ob = {.without = without_b};
    struct rnl_socket *a = open_with(loopback(4, 0), &oa), *b = open_with(loopback(4, 0), &ob);
    struct rnl_socket_in in[INS];
    static const struct {
        uint32_t segment, bytes;
    } runs[] = {{1400, 46 * 1400}, {1400, 3 * 1400 + 1}, {100, 64 * 100}, {1400, 1400}, {1400, 700}};
    for (int i = 0; i < 5; i++) {
        uint32_t want = (runs[i].bytes + runs[i].segment - 1) / runs[i].segment, at = 0;
        int n = 0;
        assert_int_equal(put(a, b, runs[i].bytes, runs[i].segment, RNL_ECN_ECT0).stop, RNL_SOCKET_WENT);
        for (; at < runs[i].bytes; at += in[n++].bytes) {
            in[n] = (struct rnl_socket_in){.at = room[n], .room = BIG};
            assert_int_equal(b->ops->recv(b, &in[n], 1), 1);
            assert_int_equal(in[n].ecn, b->has_ecn && a->has_ecn ? RNL_ECN_ECT0 : 0);
        }
        assert_int_equal(packets_in(in, n, runs[i].segment, runs[i].bytes), want);
        if (a->segments_max > 1 && b->merged_bytes > b->datagram_max)
            assert_int_equal(n, 1);
        else
            assert_int_equal(n, want);
    }
    a->ops->close(a);
    b->ops->close(b);
}

static void runs_are_cut_and_merged(void **state)
{
    (void)state;
    runs_between(0, 0);
    runs_between(0, RNL_KERNEL_MERGE);
    runs_between(RNL_KERNEL_SEGMENT, 0);
    runs_between(~0u, ~0u);
}

static void all_bits_of_ecn_pass(void **state)
{
    struct rnl_socket_in in;
    (void)state;
    for (int family = 4; family <= (have_ipv6() ? 6 : 4); family += 2) {
        struct rnl_socket *a = open_at(family), *b = open_at(family);
        skip_without(a, RNL_KERNEL_ECN, "way to read the bits of ECN");
        for (int ecn = 0; ecn < 4; ecn++) {
            assert_int_equal(put(a, b, 50, 0, (uint8_t)ecn).stop, RNL_SOCKET_WENT);
            assert_int_equal(get(b, &in, 1, BIG), 1);
            assert_int_equal(in.ecn, ecn);
        }
        a->ops->close(a);
        b->ops->close(b);
    }
}

static uint32_t claims(const void *at, uint32_t bytes)
{
    uint16_t n = 0;
    if (bytes >= sizeof n)
        memcpy(&n, at, sizeof n);
    return n;
}

/* Some that claim their length, one by one: after them control data is not asked for. */
static void ones(struct rnl_socket *a, struct rnl_socket *b, int n)
{
    struct rnl_socket_in in;
    for (int i = 0; i < n; i++) {
        const uint16_t bytes = (uint16_t)(100 + i);
        memcpy(data, &bytes, sizeof bytes);
        assert_int_equal(put(a, b, bytes, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(b, &in, 1, BIG), 1);
        assert_int_equal(in.bytes, bytes);
        assert_int_equal(in.segment, 0);
        assert_int_equal(in.cut, 0);
        assert_int_equal(in.ecn, 0);
        assert_true(rnl_socket_addr_equal(&in.from, &a->self));
    }
}

static void what_comes_one_by_one_and_says_its_length_is_read_as_well(void **state)
{
    enum { ONES = 40, SEEN = 100, SEGMENT = 500 };
    const struct rnl_kernel_options o = {.claims = claims};
    const uint16_t segment = SEGMENT;
    (void)state;
    for (int family = 4; family <= (have_ipv6() ? 6 : 4); family += 2) {
        struct rnl_socket *a = open_at(family), *b = open_with(loopback(family, 0), &o);
        struct rnl_socket_in in[INS];
        int tries = 0, n = 0;
        ones(a, b, ONES);
        for (uint32_t at = 0; at < 3 * SEGMENT; at += SEGMENT)
            memcpy(data + at, &segment, sizeof segment);
        assert_int_equal(put(a, b, 2 * SEGMENT + 7, SEGMENT, 0).stop, RNL_SOCKET_WENT);
        for (uint32_t at = 0; at < 2 * SEGMENT + 7; at += in[n++].bytes)
            assert_int_equal(get(b, &in[n], 1, BIG), 1);
        assert_int_equal(packets_in(in, n, SEGMENT, 2 * SEGMENT + 7), 3);
        ones(a, b, ONES);
        memcpy(data, &segment, sizeof segment);
        assert_int_equal(put(a, b, SEGMENT, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(b, in, 1, SEGMENT - 1), 1);
        assert_int_equal(in[0].cut, 1);
        assert_int_equal(in[0].bytes, SEGMENT - 1);
        ones(a, b, ONES);
        memcpy(data, &segment, sizeof segment);
        do { /* the bits are missed for a while, and no longer */
            assert_int_equal(put(a, b, SEGMENT, 0, RNL_ECN_CE).stop, RNL_SOCKET_WENT);
            assert_int_equal(get(b, in, 1, BIG), 1);
        } while (in[0].ecn != RNL_ECN_CE && ++tries < SEEN);
        assert_true(tries < SEEN || !a->has_ecn || !b->has_ecn);
        a->ops->close(a);
        b->ops->close(b);
    }
    fill_data();
}

/* How what nobody merged is cut when it claims to be a run of such. */
static uint16_t cut_of(struct rnl_socket *a, struct rnl_socket *b, uint32_t bytes, uint16_t segment, uint8_t ecn)
{
    struct rnl_socket_in in;
    memset(data, 0, bytes);
    memcpy(data, &segment, sizeof segment);
    assert_int_equal(put(a, b, bytes, 0, ecn).stop, RNL_SOCKET_WENT);
    assert_int_equal(get(b, &in, 1, BIG), 1);
    assert_int_equal(in.bytes, bytes);
    return in.segment;
}

static void what_is_longer_than_its_room_is_cut_and_says_so(void **state)
{
    struct rnl_socket *a = open_at(4), *b = open_at(4);
    struct rnl_socket_in in;
    (void)state;
    assert_int_equal(put(a, b, 1000, 0, 0).stop, RNL_SOCKET_WENT);
    assert_int_equal(put(a, b, 10, 0, 0).stop, RNL_SOCKET_WENT);
    assert_int_equal(get(b, &in, 1, 999), 1);
    assert_int_equal(in.cut, 1);
    assert_int_equal(in.bytes, 999);
    assert_int_equal(get(b, &in, 1, 10), 1);
    assert_int_equal(in.cut, 0);
    a->ops->close(a);
    b->ops->close(b);
}

/* ---- errors ---- */

static void a_closed_port_is_refused_and_disturbs_nobody_else(void **state)
{
    struct rnl_socket_in in;
    (void)state;
    for (int family = 4; family <= (have_ipv6() ? 6 : 4); family += 2) {
        struct rnl_socket *a = open_at(family), *b = open_at(family), *gone = open_at(family), closed = *gone;
        struct rnl_socket_error e;
        skip_without(a, RNL_KERNEL_ERRORS, "error queue of a UDP socket");
        gone->ops->close(gone);
        assert_int_equal(a->ops->error(a, &e), 0);
        /* The error of the first is pending when the others go, and when what came is asked for. */
        assert_int_equal(put(a, &closed, 10, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(put(a, b, 10, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(put(a, &closed, 10, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(put(b, a, 10, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(b, &in, 1, BIG), 1);
        assert_int_equal(get(a, &in, 1, BIG), 1);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(a->ops->error(a, &e), 1);
            assert_int_equal(e.kind, RNL_SOCKET_ERROR_REFUSED);
            assert_int_equal(e.sys_errno, ECONNREFUSED);
            assert_int_equal(e.from_us, 1);
            assert_true(rnl_socket_addr_equal(&e.to, &closed.self));
        }
        assert_int_equal(a->ops->error(a, &e), 0);
        a->ops->close(a);
        b->ops->close(b);
    }
}

static void the_descriptor_tells_of_arrivals_and_errors_do_not_keep_it_readable(void **state)
{
    struct rnl_socket *a = open_at(4), *b = open_at(4), *gone = open_at(4), closed = *gone;
    struct rnl_socket_in in;
    struct rnl_socket_error e;
    struct pollfd p = {.fd = b->ops->fd(b), .events = POLLIN};
    (void)state;
    gone->ops->close(gone);
    assert_true(fcntl(p.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(b->ops->arm(b), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(put(a, b, 10, 0, 0).stop, RNL_SOCKET_WENT);
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    assert_int_equal(b->ops->arm(b), 1);
    assert_int_equal(get(b, &in, 1, BIG), 1);
    assert_int_equal(b->ops->arm(b), 0);
    for (int i = 0; i < 100; i++) /* more than are kept */
        assert_int_equal(put(b, &closed, 10, 0, 0).stop, RNL_SOCKET_WENT);
    for (int i = 0; i < 10 && b->ops->arm(b); i++)
        assert_true(i < 9);
    assert_int_equal(poll(&p, 1, 0), 0);
    if (facts_of(b).features & RNL_KERNEL_ERRORS)
        assert_int_equal(b->ops->error(b, &e), 1);
    a->ops->close(a);
    b->ops->close(b);
}

/* ---- connected sockets ---- */

enum { PEERS = 6, CALLS = 400, FRESH = 100 };

/* What b has for us, in order per sender: number and sender are its bytes. */
static unsigned take_in(struct rnl_socket *b, struct rnl_socket *const *from, uint32_t *next)
{
    unsigned took = 0;
    struct rnl_socket_in in = {.at = room[0], .room = BIG};
    while (b->ops->recv(b, &in, 1) == 1) {
        uint32_t what[2];
        assert_int_equal(in.bytes, sizeof what);
        memcpy(what, in.at, sizeof what);
        assert_true(what[0] < PEERS);
        assert_true(rnl_socket_addr_equal(&in.from, &from[what[0]]->self)); /* whichever socket it came by */
        assert_int_equal(what[1], next[what[0]]);
        next[what[0]]++;
        took++;
    }
    return took;
}

static void say(struct rnl_socket *s, const struct rnl_socket *to, uint32_t who, uint32_t number)
{
    const uint32_t what[2] = {who, number};
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = to->self, .at = what, .bytes = sizeof what};
    assert_int_equal(s->ops->send(s, &o, 1, &r), 1);
}

/* More peers than there are sockets for, each hot for a while, then the next: nothing is lost, nothing comes twice, and
 * who connects in between is heard, too. */
static void become_hot_and_cold(int family)
{
    struct rnl_socket *hub = open_at(family), *peer[PEERS];
    uint32_t next[PEERS] = {0}, said[PEERS] = {0}, heard = 0, all = 0, back[PEERS] = {0};
    skip_without(hub, RNL_KERNEL_CONNECT, "epoll");
    for (uint32_t i = 0; i < PEERS; i++)
        peer[i] = open_at(family);
    for (uint32_t round = 0; round < 2 * PEERS; round++) {
        uint32_t hot = round % PEERS;
        for (uint32_t i = 0; i < CALLS; i++) {
            say(hub, peer[hot], 0, back[hot]++);
            say(peer[hot], hub, hot, said[hot]++);
            say(peer[i % PEERS], hub, i % PEERS, said[i % PEERS]++);
            all += 2;
            heard += take_in(hub, peer, next);
        }
        /* Idle enough for its socket to be free: calls to addresses that do not stay. */
        for (uint32_t i = 0; i < 5000; i++)
            say(hub, peer[i % 2 ? hot : (hot + 1) % PEERS], 0, back[i % 2 ? hot : (hot + 1) % PEERS]++);
        for (uint32_t p = 0; p < PEERS; p++)
            for (struct rnl_socket_in in = {.at = room[0], .room = BIG}; peer[p]->ops->recv(peer[p], &in, 1) == 1;)
                ;
    }
    for (int tries = 0; heard < all && tries < FRESH; tries++)
        heard += take_in(hub, peer, next);
    assert_int_equal(heard, all);
    print_message("%u connects\n", facts_of(hub).connects);
    assert_true(facts_of(hub).connects >= 4);
    /* The port is ours alone again: nobody shares it. */
    struct rnl_socket_addr a = hub->self;
    struct rnl_socket *other;
    assert_int_equal(rnl_kernel_socket_open(&a, NULL, &other), RNL_ERR_ARG);
    /* A peer that goes away while it has a socket of its own disturbs nobody else. */
    peer[0]->ops->close(peer[0]);
    for (int i = 0; i < CALLS; i++)
        (void)!put(hub, peer[1], 8, 0, 0).stop;
    for (uint32_t i = 1; i < PEERS; i++)
        peer[i]->ops->close(peer[i]);
    hub->ops->close(hub);
}

static void peers_become_hot_and_cold_and_nothing_is_lost(void **state)
{
    (void)state;
    become_hot_and_cold(4);
}

/* Some of that length go both ways. */
static void lone(struct rnl_socket *a, struct rnl_socket *b, int n, uint32_t bytes)
{
    struct rnl_socket_in in;
    const uint16_t length = (uint16_t)bytes;
    memcpy(data, &length, sizeof length);
    for (int i = 0; i < n; i++) {
        assert_int_equal(put(a, b, bytes, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(b, &in, 1, BIG), 1);
        assert_int_equal(in.bytes, bytes);
        assert_true(rnl_socket_addr_equal(&in.from, &a->self));
        assert_int_equal(put(b, a, bytes, 0, 0).stop, RNL_SOCKET_WENT);
        assert_int_equal(get(a, &in, 1, BIG), 1);
    }
}

/* Of a run of three: the bytes of what came first. However it comes, nothing is missing. */
static uint32_t first_of_run(struct rnl_socket *a, struct rnl_socket *b, uint16_t bytes)
{
    struct rnl_socket_in in[3];
    uint32_t all = 0;
    for (int i = 0; i < 3; i++)
        memcpy(data + i * bytes, &bytes, sizeof bytes);
    assert_int_equal(put(a, b, 3 * (uint32_t)bytes, bytes, 0).stop, RNL_SOCKET_WENT);
    for (int n = 0; all < 3 * (uint32_t)bytes; all += in[n++].bytes)
        assert_int_equal(get(b, &in[n], 1, BIG), 1);
    assert_int_equal(all, 3 * bytes);
    return in[0].bytes;
}

/* Who hears only short ones one by one does without, and one long one is enough to have it again. */
static void runs_are_merged_for_those_whose_peers_send_long_ones(void **state)
{
    enum { SHORT = 100, LONG = 1200, MANY = 200 };
    const struct rnl_kernel_options o = {.claims = claims};
    struct rnl_socket *a = open_with(loopback(4, 0), &o), *b = open_with(loopback(4, 0), &o);
    (void)state;
    skip_without(b, RNL_KERNEL_CONNECT, "epoll");
    skip_without(b, RNL_KERNEL_MERGE, "UDP_GRO");
    skip_without(a, RNL_KERNEL_SEGMENT, "UDP_SEGMENT");
    for (int round = 0; round < 2; round++) {
        lone(a, b, MANY, SHORT);
        assert_int_equal(first_of_run(a, b, SHORT), SHORT);
        lone(a, b, 1, LONG);
        assert_int_equal(first_of_run(a, b, LONG), 3 * LONG);
        assert_int_equal(first_of_run(a, b, SHORT), 3 * SHORT);
    }
    a->ops->close(a);
    b->ops->close(b);
    fill_data();
}

/* There a run can lie that was merged before; nothing else is believed. With marks, control data is asked for. */
static void a_socket_that_merges_nothing_believes_no_more(void **state)
{
    enum { SHORT = 100, BYTES = 900, MANY = 200, LIES = 50 };
    const struct rnl_kernel_options o = {.claims = claims};
    struct rnl_socket *a = open_with(loopback(4, 0), &o), *b = open_with(loopback(4, 0), &o);
    (void)state;
    skip_without(b, RNL_KERNEL_CONNECT, "epoll");
    lone(a, b, MANY, SHORT);
    assert_int_equal(facts_of(b).connects, 1);
    for (int i = 0; i < LIES; i++) {
        assert_int_equal(cut_of(a, b, BYTES, 1, i % 2 ? RNL_ECN_CE : RNL_ECN_NOT), 0);
        assert_int_equal(cut_of(a, b, BYTES, BYTES / 64, RNL_ECN_NOT), 0);
    }
    a->ops->close(a);
    b->ops->close(b);
    fill_data();
}

static int is_readable(struct rnl_socket *s)
{
    struct pollfd p = {.fd = s->ops->fd(s), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* While all is found by looking the descriptor has nothing to do, and the next arm puts that right: for the first
 * socket and for one that is connected, for what was here before and for what comes. */
static void the_descriptor_works_again_after_much_was_looked_for(void **state)
{
    enum { MANY = 300 };
    struct rnl_socket_in in = {.at = room[0], .room = BIG};
    struct rnl_socket *a = open_at(4), *b = open_at(4), *c = open_at(4);
    (void)state;
    skip_without(a, RNL_KERNEL_CONNECT, "epoll");
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < MANY; i++) {
            say(a, b, 0, i);
            say(b, a, 0, i);
            assert_int_equal(a->ops->recv(a, &in, 1), 1);
        }
        assert_int_equal(facts_of(a).connects, 1);
        assert_int_equal(a->ops->arm(a), 0);
        assert_false(is_readable(a));
        struct rnl_socket *const from[] = {b, c}; /* b by the socket that is connected, c by the first */
        for (uint32_t k = 0; k < 2; k++) {
            say(from[k], a, 0, 0);
            assert_true(is_readable(a));
            assert_int_equal(a->ops->arm(a), 1);
            assert_int_equal(a->ops->recv(a, &in, 1), 1);
            assert_int_equal(a->ops->arm(a), 0);
            assert_false(is_readable(a));
        }
        for (uint32_t i = 0; i < MANY; i++) {
            say(b, a, 0, i);
            assert_int_equal(a->ops->recv(a, &in, 1), 1);
        }
        say(b, a, 0, MANY);
        assert_int_equal(a->ops->arm(a), 1); /* it is here */
        assert_true(is_readable(a));
        assert_int_equal(a->ops->recv(a, &in, 1), 1);
    }
    c->ops->close(c);
    b->ops->close(b);
    a->ops->close(a);
}

/* Who was asleep looks at every socket, however long they have brought nothing. */
static void what_comes_after_arming_is_found_at_once(void **state)
{
    enum { MANY = 200, TURNS = 20 };
    struct rnl_socket_in in = {.at = room[0], .room = BIG};
    (void)state;
    for (int family = 4; family <= (have_ipv6() ? 6 : 4); family += 2) {
        struct rnl_socket *a = open_at(family), *b = open_at(family);
        skip_without(a, RNL_KERNEL_CONNECT, "epoll");
        for (uint32_t i = 0; i < MANY; i++)
            say(a, b, 0, i);
        assert_int_equal(facts_of(a).connects, 1);
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            for (uint32_t i = 0; i < MANY + turn; i++) /* any place in the order of looks */
                assert_int_equal(a->ops->recv(a, &in, 1), 0);
            assert_int_equal(a->ops->arm(a), 0);
            say(b, a, 1, turn);
            struct pollfd p = {.fd = a->ops->fd(a), .events = POLLIN};
            assert_int_equal(poll(&p, 1, WAIT_MS), 1);
            assert_int_equal(a->ops->recv(a, &in, 1), 1);
        }
        a->ops->close(a);
        b->ops->close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_addresses_are_one_socket_of_both_families),
        cmocka_unit_test(a_socket_of_one_family_does_not_reach_the_other),
        cmocka_unit_test(runs_are_cut_and_merged),
        cmocka_unit_test(all_bits_of_ecn_pass),
        cmocka_unit_test(what_comes_one_by_one_and_says_its_length_is_read_as_well),
        cmocka_unit_test(what_is_longer_than_its_room_is_cut_and_says_so),
        cmocka_unit_test(a_closed_port_is_refused_and_disturbs_nobody_else),
        cmocka_unit_test(the_descriptor_tells_of_arrivals_and_errors_do_not_keep_it_readable),
        cmocka_unit_test(peers_become_hot_and_cold_and_nothing_is_lost),
        cmocka_unit_test(runs_are_merged_for_those_whose_peers_send_long_ones),
        cmocka_unit_test(a_socket_that_merges_nothing_believes_no_more),
        cmocka_unit_test(the_descriptor_works_again_after_much_was_looked_for),
        cmocka_unit_test(what_comes_after_arming_is_found_at_once),
    };
    fill_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
