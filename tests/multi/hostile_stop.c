/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile_stop.c - a rank that stops for ever (SIGSTOP to itself), in each state that its peers can be in with it. It
 * says "stopped PID" before; whoever reads that has to kill it. */
#include "multi/hostile_stop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "endpoint/endpoint.h"
#include "multi/fm_check.h"

enum { DATA = 1, FIRST = 0, SECOND = 1, LONG = 200000 };

static unsigned char bytes[LONG];
static const char *state_now;

static void stop(void)
{
    CHECK(dprintf(STDOUT_FILENO, "stopped %d\n", (int)getpid()) > 0);
    (void)raise(SIGSTOP);
    check_fail("it goes on after %s", state_now);
}

/* While this process is inside a call. */
static void stop_soon(void)
{
    pid_t self = getpid();
    if (fork() != 0)
        return;
    check_sleep_ms(50);
    CHECK(dprintf(STDOUT_FILENO, "stopped %d\n", (int)self) > 0);
    (void)kill(self, SIGSTOP);
    _exit(0);
}

static rnl_stream *begin_to(rnl_endpoint *ep, unsigned peer, size_t bound, size_t answer)
{
    const struct rnl_message b = {.peer = peer, .handler = DATA, .bound = bound, .answer = answer};
    rnl_stream *s;
    CHECK(rnl_begin(ep, &b, &s) == 0);
    return s;
}

/* ---- states of the connection ---- */

static void joined(rnl_endpoint *ep)
{
    (void)ep;
    stop();
}

/* Asked for the segment, and the answer waits in the socket. Only the question of segment_open: the whole of it would
 * take an answer in that comes at once. */
static void connect_asked(rnl_endpoint *ep)
{
    hostile_ask(ep->env, FIRST, RNL_CHANNEL_BYTES);
    stop();
}

/* Has the descriptor, and has neither mapped it nor said so. */
static void connect_opened(rnl_endpoint *ep)
{
    int segment;
    CHECK(ep->env->ops->segment_open(ep->env, FIRST, RNL_CHANNEL_BYTES, UINT64_MAX, &segment) == 0);
    stop();
}

/* Mapped, and its side says nothing yet. */
static void connect_mapped(rnl_endpoint *ep)
{
    int segment;
    void *at;
    CHECK(ep->env->ops->segment_open(ep->env, FIRST, RNL_CHANNEL_BYTES, UINT64_MAX, &segment) == 0);
    CHECK(ep->env->ops->segment_map(ep->env, segment, RNL_SEGMENT_CONTROL(1), sizeof(struct rnl_control_page), 1,
                                    &at) == 0);
    ep->env->ops->segment_mapped(ep->env, segment);
    stop();
}

static void connected(rnl_endpoint *ep)
{
    struct rnl_conn *conn;
    CHECK(rnl_ep_connect(ep, FIRST, &conn) == 0 && rnl_ep_connect(ep, SECOND, &conn) == 0);
    stop();
}

/* ---- states of a message ---- */

static void short_begun(rnl_endpoint *ep)
{
    rnl_stream *s = begin_to(ep, FIRST, 40, 0);
    CHECK(rnl_piece(s, bytes, 20) == 0);
    stop();
}

static void half_sent(rnl_endpoint *ep) /* their handlers are suspended */
{
    for (unsigned peer = FIRST; peer <= SECOND; peer++) {
        rnl_stream *s = begin_to(ep, peer, LONG, 0);
        CHECK(rnl_piece(s, bytes, LONG / 2) == 0);
    }
    stop();
}

static void chunks_sent(rnl_endpoint *ep)
{
    rnl_stream *s = begin_to(ep, FIRST, (size_t)8 * LONG, 0);
    for (int i = 0; i < 4; i++)
        CHECK(rnl_piece(s, bytes, LONG) == 0);
    stop();
}

static void half_aborted(rnl_endpoint *ep)
{
    rnl_stream *s = begin_to(ep, FIRST, LONG, 0);
    CHECK(rnl_piece(s, bytes, LONG / 2) == 0 && rnl_abort(s) == 0);
    stop();
}

static void asked(rnl_endpoint *ep) /* and never takes the answers */
{
    for (unsigned i = 0; i < 8; i++)
        CHECK(rnl_end(begin_to(ep, i % 2, 0, 60000)) == 0);
    stop();
}

static int on_data_stop(rnl_stream *s, unsigned peer, void *ctx)
{
    (void)s, (void)peer, (void)ctx;
    stop(); /* what it was sent is half read, and the answer is owed */
    return RNL_DONE;
}

static void in_a_handler(rnl_endpoint *ep)
{
    CHECK(rnl_handler_stream(ep, DATA, on_data_stop, NULL) == DATA);
    for (;;)
        CHECK(rnl_wait(ep, -1) >= 0);
}

static int on_data_keep(rnl_stream *s, unsigned peer, void *ctx)
{
    unsigned *kept = ctx;
    rnl_kept *k;
    (void)peer;
    if (rnl_keep(s, &k) < 0)
        return RNL_DONE;
    ++*kept;
    return RNL_KEEP;
}

static void keeping(rnl_endpoint *ep)
{
    unsigned kept = 0;
    CHECK(rnl_handler_stream(ep, DATA, on_data_keep, &kept) == DATA);
    for (int64_t status = 0; kept < 20 && !(kept > 0 && status == RNL_TIMED_OUT);) { /* or as many as they sent */
        status = rnl_wait(ep, 1000000000);
        CHECK(status >= 0 || status == RNL_TIMED_OUT);
    }
    stop();
}

/* ---- states of waiting and closing ---- */

static void asleep(rnl_endpoint *ep)
{
    stop_soon();
    for (;;)
        (void)!rnl_wait(ep, -1);
}

static void waiting_for_room(rnl_endpoint *ep)
{
    stop_soon();
    for (;;)
        (void)!rnl_send(ep, FIRST, DATA, bytes, 40);
}

static void closing(rnl_endpoint *ep)
{
    stop_soon();
    (void)!rnl_close(ep);
}

static const struct {
    const char *name;
    void (*go)(rnl_endpoint *ep);
} states[] = {
    {"joined", joined},
    {"connect-asked", connect_asked},
    {"connect-opened", connect_opened},
    {"connect-mapped", connect_mapped},
    {"connected", connected},
    {"short-begun", short_begun},
    {"half-sent", half_sent},
    {"chunks-sent", chunks_sent},
    {"half-aborted", half_aborted},
    {"asked", asked},
    {"in-a-handler", in_a_handler},
    {"keeping", keeping},
    {"asleep", asleep},
    {"waiting-for-room", waiting_for_room},
    {"closing", closing},
};

int hostile_stop(rnl_endpoint *ep, const char *state)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(states[i].name, state) != 0)
            continue;
        state_now = state;
        states[i].go(ep);
        check_fail("it went past %s", state);
    }
    return -1;
}

void hostile_stop_list(void)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        printf("%s\n", states[i].name);
}
