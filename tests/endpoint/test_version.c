/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_version.c - two processes of one job that were built from different releases. One of them is of this build, with
 * a socket that turns what it says into what the version before says, and what it hears back: so each takes the other
 * for that. Both programs are told so, with both versions, at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/loop.h"
#include "support/must.h"
#include "wire/hello.h"

enum { NOTE = 1, OLD_RANK = 1, OLD = RNL_WIRE_VERSION - 1, ROOM = 2048 };

struct turned {          /* between the transport and the kernel's socket */
    struct rnl_socket s; /* first */
    struct rnl_socket *in;
    struct rnl_job_keys job;
};
static struct turned turned;

/* As a member of the job says it that speaks `version`. */
static void turn(unsigned char *at, uint32_t bytes, unsigned version)
{
    unsigned char tag[RNL_PACKET_TAG];
    if (bytes < RNL_HELLO_BYTES)
        return;
    at[0] = (unsigned char)((at[0] & 0xf0) | version);
    if (at[0] >> 4 != RNL_PACKET_HELLO)
        return;
    rnl_keyed_hash(tag, turned.job.hello, "runnel hello", at, bytes - RNL_PACKET_TAG);
    memcpy(at + bytes - RNL_PACKET_TAG, tag, sizeof tag);
}

static int turned_send(struct rnl_socket *s, const struct rnl_socket_out *out, int n, struct rnl_socket_result *r)
{
    unsigned char at[ROOM];
    int went = 0;
    (void)s;
    for (; went < n && out[went].bytes <= sizeof at; went++) {
        struct rnl_socket_out o = out[went];
        memcpy(at, o.at, o.bytes);
        turn(at, o.bytes, OLD);
        o.at = at;
        if (turned.in->ops->send(turned.in, &o, 1, r) != 1)
            break;
    }
    return went;
}

static int turned_recv(struct rnl_socket *s, struct rnl_socket_in *in, int n)
{
    (void)s;
    int got = turned.in->ops->recv(turned.in, in, n);
    for (int i = 0; i < got; i++)
        turn(in[i].at, in[i].bytes, OLD);
    return got;
}

static int turned_error(struct rnl_socket *s, struct rnl_socket_error *out)
{
    (void)s;
    return turned.in->ops->error(turned.in, out);
}
static int turned_arm(struct rnl_socket *s)
{
    (void)s;
    return turned.in->ops->arm(turned.in);
}
static int turned_fd(struct rnl_socket *s)
{
    (void)s;
    return turned.in->ops->fd(turned.in);
}
static void turned_close(struct rnl_socket *s)
{
    (void)s;
    turned.in->ops->close(turned.in);
}

static struct rnl_socket *make_turned(struct rnl_socket *in, unsigned rank)
{
    static const struct rnl_socket_ops ops = {.size = sizeof ops,
                                              .send = turned_send,
                                              .recv = turned_recv,
                                              .error = turned_error,
                                              .arm = turned_arm,
                                              .fd = turned_fd,
                                              .close = turned_close};
    unsigned char key[RNL_JOB_SECRET];
    if (rank != OLD_RANK)
        return in;
    memset(key, 0x33, sizeof key); /* test_loop's */
    rnl_job_keys_derive(&turned.job, key);
    turned.s = *in;
    turned.s.ops = &ops;
    turned.in = in;
    return &turned.s;
}

static int on_note(const void *buf, size_t n, unsigned peer, void *ctx)
{
    (void)buf, (void)n, (void)peer, (void)ctx;
    TEST_MUST(!"a message of another version was taken in");
    return RNL_DONE;
}

static void talk(struct test_loop_side *s)
{
    char want[160];
    unsigned peer = !s->rank;
    int status = 0;
    TEST_MUST(rnl_handler_whole(s->ep, NOTE, on_note, NULL, 0) == NOTE);
    while (status == 0) { /* silence would end it, too, with other words */
        status = rnl_send(s->ep, peer, NOTE, "?", 1);
        if (status == 0)
            TEST_MUST(rnl_wait(s->ep, 1000000) >= RNL_TIMED_OUT);
    }
    TEST_MUST(status == RNL_ERR_PEER_DEAD);
    snprintf(want, sizeof want,
             "rank %u speaks version %d of the packets, this process version %d: all processes of a job need the same "
             "version of Runnel",
             peer, OLD, RNL_WIRE_VERSION);
    TEST_MUST(strstr(rnl_last_error()->text, want) != NULL);
}

static void another_version_is_told_to_both(void **state)
{
    const struct test_loop opt = {.kernel = {.without = RNL_KERNEL_SEGMENT | RNL_KERNEL_MERGE}, .wrap = make_turned};
    (void)state;
    assert_int_equal(test_loop_run(2, &opt, talk, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version_is_told_to_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
