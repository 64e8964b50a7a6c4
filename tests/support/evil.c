/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evil.c - see evil.h. */
#include "support/evil.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/wire/packet.h"
#include "support/must.h"
#include "support/random.h"

enum { KEPT = 32, KEPT_BYTES = 9000, LONGEST = 65507, VICTIMS = 2 };

struct evil {            /* between the transport and the kernel's socket */
    struct rnl_socket s; /* first */
    struct rnl_socket *in;
    struct test_random random;
    uint64_t done;
    int strange; /* a socket that nobody knows */
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

static struct sockaddr_in sockaddr_of(const struct rnl_socket_addr *a)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    memcpy(&in.sin_addr, a->ip + 12, 4);
    return in;
}

static void inject(struct evil *e, const struct rnl_socket_addr *to, const unsigned char *at, uint32_t bytes)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = *to, .at = at, .bytes = bytes};
    if (test_random_below(&e->random, 4) == 0) {
        const struct sockaddr_in in = sockaddr_of(to);
        (void)sendto(e->strange, at, bytes, MSG_DONTWAIT, (const struct sockaddr *)&in, sizeof in);
    } else {
        (void)e->in->ops->send(e->in, &o, 1, &r);
    }
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
    close(evil_of(s)->strange);
    evil_of(s)->in->ops->close(evil_of(s)->in);
}

static const struct rnl_socket_ops evil_ops = {.size = sizeof evil_ops,
                                               .send = evil_send,
                                               .recv = evil_recv,
                                               .error = evil_error,
                                               .arm = evil_arm,
                                               .fd = evil_fd,
                                               .close = evil_close};

struct rnl_socket *test_evil(struct rnl_socket *in, unsigned rank)
{
    evil.s = *in;
    evil.s.ops = &evil_ops;
    evil.in = in;
    evil.random = test_random_of(7, rank);
    evil.strange = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    TEST_MUST(evil.strange >= 0);
    return &evil.s;
}

uint64_t test_evil_done(void)
{
    return evil.done;
}

void test_flood(unsigned long datagrams)
{
    static unsigned char buf[LONGEST + 8];
    const char *text = getenv("RNL_TEST_STRANGERS");
    unsigned long all = text ? strtoul(text, NULL, 10) : datagrams, went = 0;
    struct test_random random = test_random_of(7, VICTIMS);
    struct sockaddr_in to[VICTIMS];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    TEST_MUST(fd >= 0);
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (unsigned char)test_random_below(&random, 256);
    for (unsigned i = 0; i < VICTIMS; i++) {
        const struct rnl_socket_addr a = test_loop_addr(i);
        to[i] = sockaddr_of(&a);
    }
    for (unsigned long i = 0; i < all; i++) {
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
        if (sendto(fd, buf + at, bytes, MSG_DONTWAIT, (struct sockaddr *)&to[i % VICTIMS], sizeof to[0]) >= 0)
            went++;
    }
    close(fd);
    TEST_MUST(went > 0);
}

/* ---- a run with all of them ---- */

static struct {
    void (*talk)(struct test_loop_side *), (*flood)(struct test_loop_side *), (*intrude)(struct test_loop_side *);
} bodies;

static void body(struct test_loop_side *s)
{
    if (s->rank < TEST_FRIENDS)
        bodies.talk(s);
    else if (s->rank == TEST_OUTSIDE)
        bodies.flood(s);
    else
        bodies.intrude(s);
}

static struct rnl_socket *make_evil(struct rnl_socket *in, unsigned rank)
{
    return rank < TEST_FRIENDS ? test_evil(in, rank) : in;
}

int test_strangers(void (*talk)(struct test_loop_side *), void (*flood)(struct test_loop_side *),
                   void (*intrude)(struct test_loop_side *))
{
    const struct test_loop opt = {
        .strangers = 1 << TEST_OTHER_JOB, .wrap = make_evil, .remote = {.open_ns = (uint64_t)4000 * 1000 * 1000}};
    bodies.talk = talk;
    bodies.flood = flood;
    bodies.intrude = intrude;
    return test_loop_run(TEST_STRANGERS_SIZE, &opt, body, NULL);
}
