/* SPDX-License-Identifier: BSD-3-Clause
 *
 * played.h - a peer or a daemon that a test plays: it says what it likes over the sockets of introductions. */
#ifndef RNL_TESTS_MEET_PLAYED_H
#define RNL_TESTS_MEET_PLAYED_H

#include "job/fds.h"
#include "meet/proto.h"
#include "meet/world.h"
#include "ring/segment.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Says a message; the kernel adds who says it. */
static inline void played_say(int sock, const struct rnl_meet_msg *msg, int fd)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    TEST_MUST(rnl_seqpacket_send(sock, bytes, rnl_meet_encode(msg, bytes), &fd, fd >= 0, 1) == 0);
}

/* Hears a message of that kind; wake-ups are passed over. *fd is what comes with it. */
static inline struct rnl_meet_msg played_hear(int sock, enum rnl_meet_from from, uint32_t kind, int *fd)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_meet_msg msg;
    do {
        struct pollfd ready = {.fd = sock, .events = POLLIN};
        TEST_MUST(poll(&ready, 1, 20000) == 1);
        TEST_MUST(rnl_seqpacket_receive(sock, bytes, sizeof bytes, 1, &p, 0) == 0);
    } while (p.n == 1);
    TEST_MUST(rnl_meet_decode(from, bytes, p.n, &msg) == RNL_MEET_GOOD);
    TEST_MUST(msg.kind == kind);
    if (p.nfds && fd)
        *fd = p.fds[0];
    else
        rnl_seqpacket_drop(&p);
    return msg;
}

/* Answers the HELLO that waits in this end of a pair of sockets, as the side that accepts. */
static inline void played_accept(int sock)
{
    int segment = -1;
    struct rnl_meet_msg hello = played_hear(sock, RNL_MEET_FROM_PEER, RNL_MEET_HELLO, &segment);
    TEST_MUST(segment >= 0);
    close(segment);
    hello.u.hello.offers = 0;
    memset(hello.u.hello.own, 7, sizeof hello.u.hello.own);
    played_say(sock, &hello, -1);
}

/* Offers an introduction over one end of a pair of sockets; returns the other one, in which HELLO waits. */
static inline int played_offer(int *own)
{
    struct rnl_meet_msg hello = {.kind = RNL_MEET_HELLO};
    int pair[2], segment;
    const int on = 1;
    TEST_MUST(rnl_seqpacket_pair(pair) == 0);
    TEST_MUST(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0); /* so that HELLO says whose it is */
    TEST_MUST(rnl_memfd_new("played", RNL_CHANNEL_BYTES, F_SEAL_SEAL, &segment) == 0);
    hello.u.hello.channel_bytes = RNL_CHANNEL_BYTES;
    hello.u.hello.offers = 1;
    hello.u.hello.pair = 1;
    memset(hello.u.hello.own, 8, sizeof hello.u.hello.own);
    played_say(pair[0], &hello, segment);
    close(segment);
    *own = pair[0];
    return pair[1];
}

/* Makes a real endpoint's introduction through a socket; returns what the played side needs for played_accept. */
static inline int played_introduction(unsigned i, unsigned *peer)
{
    int pair[2], theirs = -1;
    char bytes[64];
    struct rnl_seqpacket p;
    TEST_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    TEST_MUST(rnl_introduce(world[i].ep, pair[0], RNL_OFFER, NULL, 0, peer) == 0);
    TEST_MUST(rnl_seqpacket_receive(pair[1], bytes, sizeof bytes, 1, &p, 1) == 0 && p.nfds == 1);
    theirs = p.fds[0];
    close(pair[0]);
    close(pair[1]);
    return theirs;
}

static inline int played_daemon(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "%s", name);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    TEST_MUST(bind(sock, (const struct sockaddr *)&at, bytes) == 0 && listen(sock, 8) == 0);
    return sock;
}

/* Waits at most 20 s for a byte of another process of the test. */
static inline void await_byte(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char c;
    TEST_MUST(poll(&ready, 1, 20000) == 1 && read(fd, &c, 1) == 1);
}

static inline void become(uid_t uid, gid_t group)
{
    TEST_MUST(setgroups(group != 0, &group) == 0);
    TEST_MUST(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0);
}

/* fork, for a child that a failed test does not leave behind. */
static inline pid_t fork_bounded(void)
{
    pid_t pid = fork();
    if (pid == 0)
        alarm(60);
    return pid;
}

static inline void end_child(pid_t pid)
{
    TEST_MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

#endif
