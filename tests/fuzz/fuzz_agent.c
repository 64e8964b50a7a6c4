/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_agent.c - the launcher's agent, and ranks that say anything into their doors and sockets, in any order, with and
 * without descriptors, and hang up or end at any time. The agent must serve on, keep no descriptor, and rank 2, which
 * says nothing wrong, must live. (The packets one by one: fuzz_proto.c.) */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/input.h"
#include "job/agent.h"
#include "job/fds.h"
#include "runnel/runnel.h"

enum { RANKS = 3, HONEST = 2, STEPS = 60 };

struct world {
    struct rnl_agent *a;
    int door[RANKS], sock[RANKS];
    int stray; /* a descriptor that belongs nowhere */
    uint64_t now_ns;
};

/* What the agent said, thrown away; its descriptors too. -1 = hung up. */
static int listen_to(int sock)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_msg msg;
    int e;
    while ((e = rnl_seqpacket_receive(sock, bytes, sizeof bytes, RNL_SEQPACKET_FDS_MAX, &p, 0)) == 0) {
        unsigned fds = p.nfds;
        rnl_seqpacket_drop(&p);
        FUZZ_MUST(rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, RANKS, &msg) == RNL_MSG_GOOD);
        FUZZ_MUST(fds == rnl_msg_fds(&msg));
    }
    return e == RNL_NO_ROOM ? 0 : -1;
}

static void spoil(unsigned char *bytes, size_t n, struct fuzz_input *in)
{
    unsigned at = fuzz_below(in, (unsigned)n);
    bytes[at] ^= (unsigned char)(1 + fuzz_below(in, 255));
}

static void say_hello(struct world *w, uint32_t rank, struct fuzz_input *in)
{
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO};
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    int pair[2], fds[3];
    if (w->door[rank] < 0)
        return;
    FUZZ_MUST(rnl_seqpacket_pair(pair) == 0);
    size_t n = rnl_msg_encode(&hello, bytes);
    fds[0] = fds[1] = pair[1];
    fds[2] = w->door[rank];
    if (in && fuzz_below(in, 4) == 0)
        spoil(bytes, n, in);
    unsigned count = in && fuzz_below(in, 4) == 0 ? fuzz_below(in, 4) : 1;
    if (in && fuzz_below(in, 8) == 0)
        fds[0] = w->stray; /* no socket of ours */
    (void)!rnl_seqpacket_send(w->door[rank], bytes, n, fds, count, 0);
    close(pair[1]);
    if (w->sock[rank] >= 0)
        close(w->sock[rank]);
    w->sock[rank] = pair[0];
}

static void say(struct world *w, uint32_t rank, struct fuzz_input *in)
{
    static const uint32_t kinds[] = {RNL_MSG_SEGMENT, RNL_MSG_HAVE,  RNL_MSG_DISCONNECT,
                                     RNL_MSG_REPORT,  RNL_MSG_LEAVE, RNL_MSG_HELLO};
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_msg msg = {.kind = kinds[fuzz_below(in, 6)]};
    int fd = w->stray;
    if (w->sock[rank] < 0)
        return;
    switch (msg.kind) {
    case RNL_MSG_SEGMENT:
        msg.u.segment.rank = fuzz_below(in, RANKS + 1);
        msg.u.segment.bytes = fuzz_number(in, 1 << 20);
        break;
    case RNL_MSG_REPORT:
        msg.u.report.wave = fuzz_number(in, 1);
        msg.u.report.activity = fuzz_number(in, 0);
        break;
    default:
        msg.u.peer.rank = fuzz_below(in, RANKS + 1);
        if (msg.kind == RNL_MSG_DISCONNECT)
            msg.u.peer.zero = fuzz_below(in, 2);
        break;
    }
    size_t n = rnl_msg_encode(&msg, bytes);
    unsigned odd = fuzz_below(in, 16);
    if (odd == 0)
        spoil(bytes, n, in);
    if (odd == 1)
        n = 1 + fuzz_below(in, (unsigned)n);
    (void)!rnl_seqpacket_send(w->sock[rank], bytes, n, &fd, odd == 2, 0);
}

static void step(struct world *w, struct fuzz_input *in)
{
    uint32_t rank = fuzz_below(in, HONEST);
    switch (fuzz_below(in, 12)) {
    case 0:
        say_hello(w, rank, in);
        break;
    case 1:
        if (w->sock[rank] >= 0)
            close(w->sock[rank]);
        w->sock[rank] = -1;
        break;
    case 2:
        rnl_agent_exited(w->a, rank, fuzz_below(in, 2) ? 9 : 0, 0, w->now_ns);
        break;
    case 3:
        w->now_ns += (uint64_t)fuzz_below(in, 256) * 1000000;
        break;
    case 4:
    case 5:
        if (w->sock[rank] >= 0 && listen_to(w->sock[rank]) < 0) {
            close(w->sock[rank]);
            w->sock[rank] = -1;
        }
        break;
    default:
        say(w, rank, in);
        break;
    }
    rnl_agent_step(w->a, w->now_ns);
    struct rnl_agent_death d;
    while (rnl_agent_next_death(w->a, &d))
        FUZZ_MUST(d.rank < HONEST && d.sys_errno == 0);
}

static void look_after_honest(struct world *w)
{
    struct rnl_msg msg = {.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = 0, .bytes = 4096}};
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    int answered = 0;
    FUZZ_MUST(listen_to(w->sock[HONEST]) == 0);
    FUZZ_MUST(rnl_seqpacket_send(w->sock[HONEST], bytes, rnl_msg_encode(&msg, bytes), NULL, 0, 0) == 0);
    rnl_agent_step(w->a, w->now_ns);
    while (rnl_seqpacket_receive(w->sock[HONEST], bytes, sizeof bytes, RNL_SEQPACKET_FDS_MAX, &p, 0) == 0) {
        answered = 1;
        rnl_seqpacket_drop(&p);
    }
    FUZZ_MUST(answered);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 128; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rnl_agent_options opt = {.size = RANKS, .host = "here", .keep_going = 1};
    struct fuzz_input in = {data, data + size};
    struct world w = {.now_ns = 1000, .stray = eventfd(0, EFD_CLOEXEC)};
    unsigned before = descriptors();
    FUZZ_MUST(rnl_agent_new(&opt, &w.a) == 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        w.sock[i] = -1;
        FUZZ_MUST(rnl_agent_bootstrap(w.a, i, &w.door[i]) == 0);
        rnl_agent_started(w.a, i, getpid());
        say_hello(&w, i, NULL);
        rnl_agent_step(w.a, w.now_ns);
    }
    for (int i = 0; i < STEPS && fuzz_more(&in); i++)
        step(&w, &in);
    look_after_honest(&w);
    rnl_agent_free(w.a);
    for (uint32_t i = 0; i < RANKS; i++) {
        close(w.door[i]);
        if (w.sock[i] >= 0)
            close(w.sock[i]);
    }
    FUZZ_MUST(descriptors() == before);
    close(w.stray);
    return 0;
}
