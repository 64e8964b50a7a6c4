/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_meet_peer.c - an endpoint alone, and peers that say anything over the socket of their pair, with and without
 * descriptors, before, while and after they are introduced. Each can harm itself only: the endpoint goes on, takes no
 * segment that could shrink, and keeps no descriptor. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/input.h"
#include "job/fds.h"
#include "meet/meet.h"
#include "meet/proto.h"
#include "ring/segment.h"
#include "runnel/meet.h"

enum { PEERS = 3, STEPS = 60 };

struct world {
    struct rnl_env *env;
    int sock[PEERS]; /* the played end of the pair's sockets, or -1 */
    uint32_t rank[PEERS];
    int good, small, stray; /* descriptors to send */
};

static void take_events(struct world *w)
{
    struct rnl_event e;
    struct rnl_cred cred;
    rnl_connection_request *f;
    void *ctx;
    while (w->env->ops->event(w->env, &e) == 1) {
        FUZZ_MUST(e.rank < w->env->size);
        if (e.kind == RNL_EVENT_CONNECTION_REQUEST && w->env->meet->request(w->env, e.rank, &cred, &f, &ctx))
            w->env->meet->reply(w->env, e.rank, 1);
    }
}

static void leave(struct world *w, unsigned i)
{
    uint64_t incarnation;
    if (w->sock[i] < 0)
        return;
    close(w->sock[i]);
    w->sock[i] = -1;
    FUZZ_MUST(w->env->meet->leave(w->env, w->rank[i], &incarnation) == 0);
    w->env->meet->release(w->env, w->rank[i]);
}

/* The endpoint offers an introduction, or accepts one, and the played peer has its end of the pair. */
static void introduce(struct world *w, unsigned i, int offers)
{
    static const unsigned char opening[16] = {'R', 'N', 'L', 'M', 'E', 'E', 'T', RNL_MEET_VERSION};
    unsigned char bytes[64];
    struct rnl_seqpacket p;
    int way[2], pair[2];
    if (w->sock[i] >= 0)
        return;
    FUZZ_MUST(rnl_seqpacket_pair(way) == 0);
    FUZZ_MUST(w->env->meet->introduce(w->env, way[0], offers, NULL, 0, &w->rank[i]) == 0);
    if (offers) {
        FUZZ_MUST(rnl_seqpacket_receive(way[1], bytes, sizeof bytes, 1, &p, 0) == 0 && p.nfds == 1);
        w->sock[i] = p.fds[0];
    } else {
        FUZZ_MUST(rnl_seqpacket_pair(pair) == 0);
        FUZZ_MUST(rnl_seqpacket_send(way[1], opening, sizeof opening, &pair[1], 1, 0) == 0);
        close(pair[1]);
        w->sock[i] = pair[0];
    }
    close(way[0]);
    close(way[1]);
}

static void say(struct world *w, unsigned i, struct fuzz_input *in)
{
    static const uint32_t kinds[] = {RNL_MEET_HELLO, RNL_MEET_HELLO, RNL_MEET_HELLO, RNL_MEET_DENIED,
                                     RNL_MEET_BROKE, RNL_MEET_LEAVE, RNL_MEET_SERVE};
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct rnl_meet_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.kind = kinds[fuzz_below(in, 7)];
    if (msg.kind == RNL_MEET_HELLO) {
        msg.u.hello.channel_bytes = fuzz_below(in, 8) ? RNL_CHANNEL_BYTES : 4096;
        msg.u.hello.offers = fuzz_below(in, 2);
        msg.u.hello.pair = fuzz_below(in, 4);
        msg.u.hello.own[0] = (unsigned char)fuzz_below(in, 4);
    } else if (msg.kind == RNL_MEET_DENIED) {
        msg.u.denied.why = fuzz_below(in, 6);
    }
    size_t n = rnl_meet_encode(&msg, bytes);
    unsigned odd = fuzz_below(in, 16), count = rnl_meet_fds(&msg);
    const int other[] = {w->small, w->stray};
    int fds[3] = {w->good, w->stray, w->stray};
    if (odd == 0)
        bytes[fuzz_below(in, (unsigned)n)] ^= (unsigned char)(1 + fuzz_below(in, 255));
    if (odd == 1)
        n = fuzz_below(in, (unsigned)n);
    if (odd == 2)
        count = fuzz_below(in, 4);
    if (odd == 3)
        fds[0] = other[fuzz_below(in, 2)];
    if (odd == 4)
        n = 1; /* a byte that wakes */
    if (w->sock[i] >= 0)
        (void)!rnl_seqpacket_send(w->sock[i], bytes, n, fds, count, 0);
}

static void step(struct world *w, struct fuzz_input *in)
{
    unsigned i = fuzz_below(in, PEERS), what = fuzz_below(in, 10);
    if (what < 2)
        introduce(w, i, (int)what);
    else if (what == 2)
        leave(w, i);
    else if (what == 3 && w->sock[i] >= 0)
        (void)shutdown(w->sock[i], SHUT_RDWR);
    else
        say(w, i, in);
    if (fuzz_below(in, 2))
        take_events(w);
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
    const struct rnl_options opt = {.size = sizeof opt, .flags = RNL_ALONE, .peers = PEERS};
    struct fuzz_input in = {data, data + size};
    struct world w;
    unsigned before = descriptors();
    FUZZ_MUST(rnl_memfd_new("good", RNL_CHANNEL_BYTES, F_SEAL_SEAL, &w.good) == 0);
    FUZZ_MUST(rnl_memfd_new("small", 4096, F_SEAL_SEAL, &w.small) == 0);
    w.stray = eventfd(0, EFD_CLOEXEC);
    FUZZ_MUST(rnl_meet_env(&opt, &w.env) == 0);
    for (unsigned i = 0; i < PEERS; i++)
        w.sock[i] = -1;
    for (int i = 0; i < STEPS && fuzz_more(&in); i++)
        step(&w, &in);
    take_events(&w);
    for (unsigned i = 0; i < PEERS; i++)
        leave(&w, i);
    take_events(&w);
    for (unsigned i = 0; i < PEERS; i++) { /* all numbers are free again */
        introduce(&w, i, 1);
        leave(&w, i);
    }
    w.env->ops->close(w.env);
    close(w.good);
    close(w.small);
    close(w.stray);
    FUZZ_MUST(descriptors() == before);
    return 0;
}
