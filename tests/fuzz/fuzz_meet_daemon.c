/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_meet_daemon.c - the daemon that keeps names, and callers that say anything, with and without descriptors, in any
 * order, and hang up at any time. The daemon must go on, say only what can be read, and keep no descriptor. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/input.h"
#include "job/fds.h"
#include "meet/daemon.h"
#include "meet/proto.h"
#include "runnel/runnel.h"

enum { CALLERS = 4, STEPS = 80, NAMES = 3 };

struct world {
    struct rnl_daemon *d;
    const char *name;
    int sock[CALLERS], stray;
    uint64_t now_ns;
};

static void hang_up(struct world *w, unsigned i)
{
    if (w->sock[i] >= 0)
        close(w->sock[i]);
    w->sock[i] = -1;
}

static void listen_to(struct world *w, unsigned i)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_meet_msg msg;
    int e = RNL_NO_ROOM;
    while (w->sock[i] >= 0 &&
           (e = rnl_seqpacket_receive(w->sock[i], bytes, sizeof bytes, RNL_SEQPACKET_FDS_MAX, &p, 0)) == 0) {
        unsigned fds = p.nfds;
        rnl_seqpacket_drop(&p);
        FUZZ_MUST(rnl_meet_decode(RNL_MEET_FROM_DAEMON, bytes, p.n, &msg) == RNL_MEET_GOOD);
        FUZZ_MUST(fds == rnl_meet_fds(&msg));
    }
    if (e != RNL_NO_ROOM)
        hang_up(w, i);
}

static void fill(struct rnl_meet_msg *msg, struct fuzz_input *in)
{
    static const uint32_t kinds[] = {RNL_MEET_SERVE, RNL_MEET_UNSERVE, RNL_MEET_REACH,  RNL_MEET_CANCEL,
                                     RNL_MEET_LIST,  RNL_MEET_GREET,   RNL_MEET_REQUEST};
    char *name = NULL;
    msg->kind = kinds[fuzz_below(in, 7)];
    switch (msg->kind) {
    case RNL_MEET_SERVE:
        msg->u.serve.request_id = fuzz_below(in, 4);
        msg->u.serve.flags = fuzz_below(in, 3);
        msg->u.serve.uids = fuzz_below(in, 34);
        name = msg->u.serve.name;
        break;
    case RNL_MEET_REACH:
        msg->u.reach.request_id = fuzz_below(in, 4);
        msg->u.reach.uid = fuzz_below(in, 8) ? geteuid() : geteuid() + 1;
        name = msg->u.reach.name;
        break;
    case RNL_MEET_LIST:
        msg->u.request_id.request_id = (uint32_t)fuzz_number(in, 1u << 22);
        break;
    default:
        msg->u.request_id.request_id = fuzz_below(in, 4);
        break;
    }
    if (name)
        name[0] = (char)('a' + fuzz_below(in, NAMES));
}

static void say(struct world *w, unsigned i, struct fuzz_input *in)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct rnl_meet_msg msg;
    int pair[2] = {-1, -1}, fds[2];
    memset(&msg, 0, sizeof msg);
    fill(&msg, in);
    if (w->sock[i] < 0)
        return;
    size_t n = rnl_meet_encode(&msg, bytes);
    unsigned odd = fuzz_below(in, 16), count = rnl_meet_fds(&msg);
    if (odd == 0)
        bytes[fuzz_below(in, (unsigned)n)] ^= (unsigned char)(1 + fuzz_below(in, 255));
    if (odd == 1)
        n = fuzz_below(in, (unsigned)n);
    if (odd == 2)
        count = fuzz_below(in, 3);
    FUZZ_MUST(rnl_seqpacket_pair(pair) == 0);
    fds[0] = fds[1] = odd == 3 ? w->stray : pair[1];
    (void)!rnl_seqpacket_send(w->sock[i], bytes, n, fds, count, 0);
    close(pair[0]);
    close(pair[1]);
}

static void step(struct world *w, struct fuzz_input *in)
{
    unsigned i = fuzz_below(in, CALLERS), what = fuzz_below(in, 12);
    const struct rnl_meet_msg greet = {.kind = RNL_MEET_GREET};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    if (what == 0) {
        hang_up(w, i);
    } else if (what == 1) {
        w->now_ns += (uint64_t)fuzz_below(in, 256) * 100000000;
    } else if (what < 5 && w->sock[i] < 0) {
        w->sock[i] = rnl_daemon_connect(geteuid(), w->name);
        if (w->sock[i] >= 0 && what != 2)
            (void)!rnl_seqpacket_send(w->sock[i], bytes, rnl_meet_encode(&greet, bytes), NULL, 0, 0);
    } else if (what < 7) {
        listen_to(w, i);
    } else {
        say(w, i, in);
    }
    rnl_daemon_step(w->d, w->now_ns);
}

static unsigned descriptors(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[40];
    snprintf(name, sizeof name, "fuzz%d", (int)getpid());
    const struct rnl_daemon_options opt = {.name = name};
    struct fuzz_input in = {data, data + size};
    struct world w = {.now_ns = 1000, .name = name, .stray = eventfd(0, EFD_CLOEXEC)};
    struct rnl_daemon_state state;
    unsigned before = descriptors();
    FUZZ_MUST(rnl_daemon_new(&opt, &w.d) == 0);
    for (unsigned i = 0; i < CALLERS; i++)
        w.sock[i] = -1;
    for (int i = 0; i < STEPS && fuzz_more(&in); i++)
        step(&w, &in);
    for (unsigned i = 0; i < CALLERS; i++)
        hang_up(&w, i);
    for (int i = 0; i < 4; i++)
        rnl_daemon_step(w.d, w.now_ns += 1);
    rnl_daemon_state(w.d, &state);
    FUZZ_MUST(state.callers == 0 && state.services == 0 && state.waiting == 0);
    rnl_daemon_free(w.d);
    FUZZ_MUST(descriptors() == before);
    close(w.stray);
    return 0;
}
