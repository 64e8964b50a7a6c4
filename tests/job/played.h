/* SPDX-License-Identifier: BSD-3-Clause
 *
 * played.h - an agent, and ranks played by hand through real sockets, for the tests of job/. Time is an argument of the
 * agent, so nothing here waits for a clock. */
#ifndef RNL_TESTS_JOB_PLAYED_H
#define RNL_TESTS_JOB_PLAYED_H

#include "base/bell.h"
#include "base/env.h"
#include "job/agent.h"
#include "job/fds.h"
#include "job/status.h"
#include "runnel/runnel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/unit.h"

enum { SIZE = 4, MS = 1000000 };

static uint64_t now = 1000;

static inline int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* Whether core dumps contain what is there. */
static inline int is_dumped(const void *at)
{
    char line[512];
    unsigned long from = 0, to = 0;
    int dumped = -1;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (dumped < 0 && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "%lx-%lx ", &from, &to);
        if (strncmp(line, "VmFlags:", 8) == 0 && (uintptr_t)at >= from && (uintptr_t)at < to)
            dumped = strstr(line, " dd") == NULL;
    }
    fclose(f);
    return dumped;
}

static inline struct rnl_agent *agent_of(uint32_t size)
{
    struct rnl_agent_options opt = {.size = size, .host = "here", .key = "a key of thirty-two bytes......"};
    struct rnl_agent *a;
    assert_int_equal(rnl_agent_new(&opt, &a), 0);
    return a;
}

/* ---- a rank played by hand ---- */

struct played {
    int bootstrap, sock;
    const struct rnl_status_page *status;
    struct rnl_bell *bells;
    struct rnl_msg_welcome welcome;
};

static inline void say(int sock, const struct rnl_msg *msg, int fd)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    assert_int_equal(rnl_seqpacket_send(sock, bytes, rnl_msg_encode(msg, bytes), &fd, fd >= 0, 0),
                     0); /* also too many */
}

/* The next packet for a rank: 1 and *msg, 0 = none, -1 = closed. WELCOME has two descriptors, another at most one;
 * where none may come, NULL. */
static inline int hear_any(int sock, struct rnl_msg *msg, int *fd, int pages[2])
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_seqpacket p;
    int r = rnl_seqpacket_receive(sock, bytes, sizeof bytes, RNL_SEQPACKET_FDS_MAX, &p, 0);
    if (r < 0)
        return r == RNL_NO_ROOM ? 0 : -1;
    assert_int_not_equal(rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, RNL_JOB_RANKS_MAX, msg), RNL_MSG_BAD);
    assert_int_equal(p.nfds, rnl_msg_fds(msg));
    if (msg->kind == RNL_MSG_WELCOME) {
        assert_non_null(pages);
        memcpy(pages, p.fds, 2 * sizeof *pages);
        for (unsigned i = 2; i < p.nfds; i++) /* its UDP socket */
            close(p.fds[i]);
    } else if (p.nfds == 1) {
        assert_non_null(fd);
        *fd = p.fds[0];
    }
    return 1;
}

static inline int hear(int sock, struct rnl_msg *msg, int *fd)
{
    return hear_any(sock, msg, fd, NULL);
}

static inline void hear_welcome(int sock, struct rnl_msg *msg, int pages[2])
{
    pages[0] = pages[1] = -1;
    assert_int_equal(hear_any(sock, msg, NULL, pages), 1);
    assert_int_equal(msg->kind, RNL_MSG_WELCOME);
}

static inline void enter(struct rnl_agent *a, struct played *p, uint32_t rank)
{
    int pair[2], pages[2];
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, msg;
    memset(p, 0, sizeof *p);
    assert_int_equal(rnl_agent_bootstrap(a, rank, &p->bootstrap), 0);
    rnl_agent_started(a, rank, getpid());
    assert_int_equal(rnl_seqpacket_pair(pair), 0);
    say(p->bootstrap, &hello, pair[1]);
    close(pair[1]);
    p->sock = pair[0];
    rnl_agent_step(a, now);
    hear_welcome(p->sock, &msg, pages);
    p->welcome = msg.u.welcome;
    p->status = mmap(NULL, rnl_status_bytes(msg.u.welcome.size), PROT_READ, MAP_SHARED, pages[0], 0);
    p->bells = mmap(NULL, RNL_BELL_BYTES * (size_t)msg.u.welcome.size, PROT_READ | PROT_WRITE, MAP_SHARED, pages[1], 0);
    assert_ptr_not_equal(p->status, MAP_FAILED);
    assert_ptr_not_equal(p->bells, MAP_FAILED);
    /* nobody but the agent writes the status, nobody at all changes a size */
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pages[0], 0), MAP_FAILED);
    assert_int_equal(ftruncate(pages[0], 0), -1);
    assert_int_equal(ftruncate(pages[1], 0), -1);
    close(pages[0]);
    close(pages[1]);
}

static inline void quit(struct played *p)
{
    if (!p->status)
        return;
    munmap((void *)(uintptr_t)p->status, rnl_status_bytes(p->welcome.size));
    munmap(p->bells, RNL_BELL_BYTES * (size_t)p->welcome.size);
    close(p->sock);
    close(p->bootstrap);
}

static inline struct rnl_event next_event(const struct played *p)
{
    struct rnl_msg msg;
    assert_int_equal(hear(p->sock, &msg, NULL), 1);
    assert_int_equal(msg.kind, RNL_MSG_EVENT);
    return msg.u.event;
}

static inline void hears_nothing(const struct played *p)
{
    struct rnl_msg msg;
    assert_int_equal(hear(p->sock, &msg, NULL), 0);
}

static inline void hears_death(const struct played *p, uint32_t rank, int why, int detail)
{
    struct rnl_event e = next_event(p);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.rank, rank);
    assert_int_equal(e.why, why);
    assert_int_equal(e.detail, detail);
}

static inline enum rnl_segment_verdict ask_segment(struct rnl_agent *a, const struct played *p, uint32_t rank,
                                                   uint64_t bytes, int *fd)
{
    struct rnl_msg msg = {.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = rank, .bytes = bytes}};
    say(p->sock, &msg, -1);
    rnl_agent_step(a, now);
    assert_int_equal(hear(p->sock, &msg, fd), 1);
    assert_int_equal(msg.kind, RNL_MSG_REPLY);
    assert_int_equal(msg.u.reply.rank, rank);
    return (enum rnl_segment_verdict)msg.u.reply.result;
}

/* The segment with rank is mapped. */
static inline void have(struct rnl_agent *a, const struct played *p, uint32_t rank)
{
    struct rnl_msg msg = {.kind = RNL_MSG_HAVE, .u.peer = {.rank = rank}};
    say(p->sock, &msg, -1);
    rnl_agent_step(a, now);
}

static inline void report(const struct played *p, uint64_t wave, uint64_t activity)
{
    struct rnl_msg msg = {.kind = RNL_MSG_REPORT, .u.report = {wave, activity}};
    say(p->sock, &msg, -1);
}

struct job {
    int before;
    struct rnl_agent *a;
    struct played rank[SIZE];
};

static inline struct job job_of(uint32_t joined)
{
    struct job j;
    memset(&j, 0, sizeof j);
    j.before = descriptors();
    j.a = agent_of(SIZE);
    for (uint32_t i = 0; i < joined; i++)
        enter(j.a, &j.rank[i], i);
    return j;
}

static inline void end(struct job *j)
{
    for (int i = 0; i < SIZE; i++)
        quit(&j->rank[i]);
    rnl_agent_free(j->a);
    assert_int_equal(descriptors(), j->before);
}

#endif
