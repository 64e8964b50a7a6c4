/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_strangers.c - two ranks talk while everybody else does what he can: datagrams of every length and any content
 * from outside, a job with another key that knows their addresses, and on their own way, with their own addresses,
 * what was sent before: again, back to where it came from, cut, with bits flipped. Not one byte of it is delivered, and
 * the two get all of theirs. RNL_TEST_STRANGERS says how many datagrams come from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint/link.h"
#include "support/loop.h"
#include "support/must.h"
#include "support/random.h"
#include "wire/packet.h"

enum {
    NOTE = 1,
    FRIENDS = 2,
    OUTSIDE = 2,   /* the rank that floods */
    OTHER_JOB = 3, /* ... that has another key */
    SIZE = 4,
    LONGEST = 65507,
    DATAGRAMS = 20000,
    FIRST = 100,
    KEPT = 32,
    KEPT_BYTES = 9000,
    MESSAGE_MAX = 5000
};
enum { AT_FLOOD_ENDS, AT_GENUINE, AT_EVIL };

/* ---- on their way ---- */

struct evil {            /* between the transport and the kernel's socket */
    struct rnl_socket s; /* first */
    struct rnl_socket *in;
    struct test_random random;
    uint64_t done;
    unsigned kept, next;
    struct rnl_socket_addr to[KEPT];
    uint32_t bytes[KEPT];
    unsigned char at[KEPT][KEPT_BYTES];
};

static struct evil evil;

static struct evil *evil_of(struct rnl_socket *s)
{
    return (struct evil *)(void *)s;
}

static void inject(struct evil *e, const struct rnl_socket_addr *to, const unsigned char *at, uint32_t bytes)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = *to, .at = at, .bytes = bytes};
    (void)e->in->ops->send(e->in, &o, 1, &r);
    e->done++;
}

static void keep(struct evil *e, const struct rnl_socket_addr *to, const unsigned char *at, uint32_t bytes)
{
    unsigned i = e->next++ % KEPT;
    if (bytes > KEPT_BYTES)
        return;
    e->to[i] = *to;
    e->bytes[i] = bytes;
    memcpy(e->at[i], at, bytes);
    e->kept = e->next < KEPT ? e->next : KEPT;
}

static void misuse(struct evil *e)
{
    unsigned char bad[KEPT_BYTES];
    unsigned i = e->kept ? test_random_below(&e->random, e->kept) : 0;
    uint32_t bytes = e->bytes[i];
    if (!e->kept || bytes == 0)
        return;
    switch (test_random_below(&e->random, 4)) {
    case 0: /* once more */
        inject(e, &e->to[i], e->at[i], bytes);
        break;
    case 1: /* cut */
        inject(e, &e->to[i], e->at[i], test_random_below(&e->random, bytes));
        break;
    default: /* one bit */
        memcpy(bad, e->at[i], bytes);
        bad[test_random_below(&e->random, bytes)] ^= (unsigned char)(1u << test_random_below(&e->random, 8));
        inject(e, &e->to[i], bad, bytes);
    }
}

static int evil_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *r)
{
    struct evil *e = evil_of(s);
    int went = e->in->ops->send(e->in, out, n, r);
    for (int i = 0; i < went; i++)
        keep(e, &out[i].to, out[i].at, out[i].segment && out[i].segment < out[i].bytes ? out[i].segment : out[i].bytes);
    misuse(e);
    return went;
}

static int evil_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    struct evil *e = evil_of(s);
    int got = e->in->ops->recv(e->in, in, n);
    if (got > 0 && in[0].bytes && in[0].bytes <= KEPT_BYTES && test_random_below(&e->random, 2))
        inject(e, &in[0].from, in[0].at, in[0].bytes); /* back */
    return got;
}

static int evil_error(struct rnl_socket *s, struct rnl_socket_error *out)
{
    return evil_of(s)->in->ops->error(evil_of(s)->in, out);
}
static int evil_arm(struct rnl_socket *s)
{
    return evil_of(s)->in->ops->arm(evil_of(s)->in);
}
static int evil_fd(struct rnl_socket *s)
{
    return evil_of(s)->in->ops->fd(evil_of(s)->in);
}
static void evil_close(struct rnl_socket *s)
{
    evil_of(s)->in->ops->close(evil_of(s)->in);
}

static const struct rnl_socket_ops evil_ops = {.size = sizeof evil_ops,
                                               .send = evil_send,
                                               .recv = evil_recv,
                                               .error = evil_error,
                                               .arm = evil_arm,
                                               .fd = evil_fd,
                                               .close = evil_close};

static struct rnl_socket *make_evil(struct rnl_socket *in, unsigned rank)
{
    if (rank >= FRIENDS)
        return in;
    evil.s = *in;
    evil.s.ops = &evil_ops;
    evil.in = in;
    evil.random = test_random_of(7, rank);
    return &evil.s;
}

/* ---- the two ---- */

struct friend
{
    unsigned heard, sent;
    uint64_t bytes;
};

static unsigned char pattern(unsigned number, size_t i)
{
    return (unsigned char)(number * 31 + i * 131 + (i >> 8));
}

static size_t length_of(unsigned number)
{
    return number % 7 == 0 ? number * 37 % MESSAGE_MAX : number % 48;
}

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    struct friend *f = ctx;
    const unsigned char *at = buf;
    TEST_MUST(peer < FRIENDS);
    TEST_MUST(n == length_of(f->heard));
    for (size_t i = 0; i < n; i++)
        TEST_MUST(at[i] == pattern(f->heard, i));
    f->heard++;
    f->bytes += n;
    return RNL_DONE;
}

static void say(struct test_loop_side *s, struct friend *f)
{
    unsigned char buf[MESSAGE_MAX];
    size_t n = length_of(f->sent);
    rnl_stream *out;
    for (size_t i = 0; i < n; i++)
        buf[i] = pattern(f->sent, i);
    const struct rnl_begin b = {.peer = !s->rank, .handler = NOTE, .bound = n};
    TEST_MUST(rnl_begin(s->ep, &b, &out) == 0 && rnl_piece(out, buf, n) == 0 && rnl_end(out) == 0);
    f->sent++;
}

static void talk(struct test_loop_side *s)
{
    struct friend f = {0};
    _Atomic uint64_t *ends = &s->run->word[AT_FLOOD_ENDS], *genuine = &s->run->word[AT_GENUINE + 2 * s->rank];
    _Atomic uint64_t *theirs = &s->run->word[AT_GENUINE + 2 * !s->rank];
    TEST_MUST(rnl_handler_whole(s->ep, NOTE, on_note, &f, 0) == NOTE);
    /* Connected, each with a socket for the other: a flood of the first socket has to be lived through only, what it
     * pushes out there comes again. */
    for (unsigned i = 0; i < FIRST; i++) {
        say(s, &f);
        for (uint64_t until = test_now_ns() + (uint64_t)30000000000; f.heard <= i;) {
            TEST_MUST(test_now_ns() < until);
            TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
        }
    }
    test_loop_meet(s);
    do {
        for (int i = 0; i < 20; i++)
            say(s, &f);
        TEST_MUST(rnl_extract(s->ep, SIZE_MAX) >= 0);
    } while (!atomic_load_explicit(ends, memory_order_relaxed));
    atomic_store_explicit(genuine, f.sent, memory_order_release);
    uint64_t all = 0;
    for (uint64_t until = test_now_ns() + (uint64_t)30000000000; all == 0 || f.heard < all;) {
        TEST_MUST(test_now_ns() < until);
        TEST_MUST(rnl_wait(s->ep, 1000000) >= RNL_TIMED_OUT);
        all = atomic_load_explicit(theirs, memory_order_acquire);
    }
    TEST_MUST(f.heard == all);
    struct rnl_remote *r = s->ep->remote;
    printf("rank %u: %u messages of %llu bytes, in spite of %llu datagrams of its own way and %llu strays; "
           "%llu refused, %llu come again\n",
           s->rank, f.heard, (unsigned long long)f.bytes, (unsigned long long)evil.done, (unsigned long long)r->strays,
           (unsigned long long)r->count.refused, (unsigned long long)r->count.duplicates);
    fflush(stdout);
    TEST_MUST(r->count.refused > 0 && r->count.duplicates > 0 && r->strays > 0);
}

/* ---- the others ---- */

static unsigned long wanted(void)
{
    const char *text = getenv("RNL_TEST_STRANGERS");
    return text ? strtoul(text, NULL, 10) : DATAGRAMS;
}

static void flood(struct test_loop_side *s)
{
    static unsigned char buf[LONGEST + 8];
    struct test_random random = test_random_of(7, FRIENDS);
    struct sockaddr_in to[FRIENDS];
    unsigned long all = wanted(), went = 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    TEST_MUST(fd >= 0);
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (unsigned char)test_random_below(&random, 256);
    for (unsigned i = 0; i < FRIENDS; i++) {
        struct rnl_socket_addr a = test_loop_addr(i);
        to[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(a.port)};
        memcpy(&to[i].sin_addr, a.ip + 12, 4);
    }
    test_loop_meet(s);
    for (unsigned long i = 0; i < all; i++) {
        /* Every length comes up if there are enough; half are short, where the headers are. */
        uint32_t bytes = i % 2 ? (uint32_t)(i / 2 % (LONGEST + 1)) : test_random_below(&random, 200);
        uint32_t at = test_random_below(&random, 8);
        if (i % 2 && all <= 2 * LONGEST)
            bytes = test_random_below(&random, LONGEST + 1);
        if (i % 5 == 0 && bytes >= 16) { /* something that looks like one of theirs */
            buf[at] = (unsigned char)(test_random_below(&random, 16) << 4 | RNL_WIRE_VERSION);
            buf[at + 2] = (unsigned char)bytes;
            buf[at + 3] = (unsigned char)(bytes >> 8);
            memset(buf + at + 4, (int)test_random_below(&random, 4), 4);
        }
        if (sendto(fd, buf + at, bytes, MSG_DONTWAIT, (struct sockaddr *)&to[i % FRIENDS], sizeof to[0]) >= 0)
            went++;
    }
    close(fd);
    TEST_MUST(went > 0);
    atomic_store_explicit(&s->run->word[AT_FLOOD_ENDS], 1, memory_order_relaxed);
}

/* It asks both for connections, is not answered, and learns why there is none. */
static void knock(struct test_loop_side *s)
{
    test_loop_meet(s);
    int status[FRIENDS] = {0};
    for (uint64_t until = test_now_ns() + (uint64_t)30000000000; status[0] == 0 || status[1] == 0;) {
        TEST_MUST(test_now_ns() < until);
        for (unsigned i = 0; i < FRIENDS; i++)
            if (status[i] == 0)
                status[i] = rnl_send(s->ep, i, NOTE, "let me in", 9);
        TEST_MUST(rnl_wait(s->ep, 20000000) >= RNL_TIMED_OUT);
    }
    TEST_MUST(status[0] == RNL_ERR_PEER_DEAD && status[1] == RNL_ERR_PEER_DEAD);
}

static void body(struct test_loop_side *s)
{
    if (s->rank < FRIENDS)
        talk(s);
    else if (s->rank == OUTSIDE)
        flood(s);
    else
        knock(s);
}

static void strangers_change_nothing(void **state)
{
    const struct test_loop opt = {
        .strangers = 1 << OTHER_JOB, .wrap = make_evil, .remote = {.open_ns = (uint64_t)4000 * 1000 * 1000}};
    (void)state;
    assert_int_equal(test_loop_run(SIZE, &opt, body, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
