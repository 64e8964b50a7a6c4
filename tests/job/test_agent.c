/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The agent, spoken to by hand through real sockets. Time is an argument of the agent, so nothing here waits for a
 * clock. */
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
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 4, MS = 1000000 };

static uint64_t now = 1000;

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static struct rnl_agent *agent_of(uint32_t size)
{
    struct rnl_agent_options opt = {.size = size, .host = "here", .key = "a key of thirty-two bytes......"};
    struct rnl_agent *a;
    assert_int_equal(rnl_agent_new(&opt, &a), 0);
    return a;
}

/* ---- a rank played by hand ---- */

struct played {
    int door, sock;
    const struct rnl_status_page *status;
    struct rnl_bell *bells;
    struct rnl_msg_welcome welcome;
};

static void say(int sock, const struct rnl_msg *msg, int fd)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    assert_int_equal(rnl_packet_send(sock, bytes, rnl_msg_encode(msg, bytes), &fd, fd >= 0, 0), 0);
}

/* The next packet for a rank: 1 and *msg, 0 = none, -1 = closed. *fd may be NULL if none may come. */
static int hear(int sock, struct rnl_msg *msg, int *fd)
{
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_packet p;
    int r = rnl_packet_receive(sock, bytes, sizeof bytes, &p, 0);
    if (r < 0)
        return r == -EAGAIN ? 0 : -1;
    assert_int_not_equal(rnl_msg_decode(RNL_FROM_AGENT, bytes, p.n, RNL_JOB_RANKS_MAX, msg), RNL_MSG_BAD);
    assert_int_equal(p.nfds, msg->kind == RNL_MSG_WELCOME ? 2 : rnl_msg_fds(msg));
    if (msg->kind == RNL_MSG_WELCOME) {
        fd[0] = p.fds[0];
        fd[1] = p.fds[1];
    } else if (p.nfds == 1) {
        *fd = p.fds[0];
    }
    return 1;
}

static void enter(struct rnl_agent *a, struct played *p, uint32_t rank)
{
    int pair[2], pages[2];
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, msg;
    memset(p, 0, sizeof *p);
    assert_int_equal(rnl_agent_door(a, rank, &p->door), 0);
    rnl_agent_started(a, rank, getpid());
    assert_int_equal(rnl_packet_pair(pair), 0);
    say(p->door, &hello, pair[1]);
    close(pair[1]);
    p->sock = pair[0];
    rnl_agent_step(a, now);
    assert_int_equal(hear(p->sock, &msg, pages), 1);
    assert_int_equal(msg.kind, RNL_MSG_WELCOME);
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

static void quit(struct played *p)
{
    if (p->status == NULL)
        return;
    munmap((void *)(uintptr_t)p->status, rnl_status_bytes(p->welcome.size));
    munmap(p->bells, RNL_BELL_BYTES * (size_t)p->welcome.size);
    close(p->sock);
    close(p->door);
}

static struct rnl_msg_event next_event(const struct played *p)
{
    struct rnl_msg msg;
    assert_int_equal(hear(p->sock, &msg, NULL), 1);
    assert_int_equal(msg.kind, RNL_MSG_EVENT);
    return msg.u.event;
}

static void hears_nothing(const struct played *p)
{
    struct rnl_msg msg;
    assert_int_equal(hear(p->sock, &msg, NULL), 0);
}

static enum rnl_give ask_segment(struct rnl_agent *a, const struct played *p, uint32_t rank, uint64_t bytes, int *fd)
{
    static uint32_t ticket;
    struct rnl_msg msg = {.kind = RNL_MSG_SEGMENT, .u.segment = {++ticket, rank, bytes}};
    say(p->sock, &msg, -1);
    rnl_agent_step(a, now);
    assert_int_equal(hear(p->sock, &msg, fd), 1);
    assert_int_equal(msg.kind, RNL_MSG_GIVE);
    assert_int_equal(msg.u.give.ticket, ticket);
    return (enum rnl_give)msg.u.give.result;
}

/* The segment with rank is mapped. */
static void have(struct rnl_agent *a, const struct played *p, uint32_t rank)
{
    struct rnl_msg msg = {.kind = RNL_MSG_HAVE, .u.peer = {.rank = rank}};
    say(p->sock, &msg, -1);
    rnl_agent_step(a, now);
}

static void report(const struct played *p, uint64_t wave, uint64_t activity)
{
    struct rnl_msg msg = {.kind = RNL_MSG_REPORT, .u.report = {wave, activity}};
    say(p->sock, &msg, -1);
}

struct job {
    int before;
    struct rnl_agent *a;
    struct played rank[SIZE];
};

static struct job job_of(uint32_t joined)
{
    struct job j;
    memset(&j, 0, sizeof j);
    j.before = descriptors();
    j.a = agent_of(SIZE);
    for (uint32_t i = 0; i < joined; i++)
        enter(j.a, &j.rank[i], i);
    return j;
}

static void end(struct job *j)
{
    for (int i = 0; i < SIZE; i++)
        quit(&j->rank[i]);
    rnl_agent_free(j->a);
    assert_int_equal(descriptors(), j->before);
}

/* ---- tests ---- */

static void welcome_tells_a_rank_its_place(void **state)
{
    (void)state;
    struct job j = job_of(2);
    const struct rnl_msg_welcome *w = &j.rank[1].welcome;
    assert_int_equal(w->rank, 1);
    assert_int_equal(w->size, SIZE);
    assert_int_not_equal(w->incarnation, j.rank[0].welcome.incarnation);
    assert_string_equal(w->host, "here");
    assert_memory_equal(w->key, "a key of thirty-two bytes......", 32);
    const struct rnl_status_page *s = j.rank[0].status;
    assert_int_equal(s->magic, RNL_STATUS_MAGIC);
    assert_int_equal(s->size, SIZE);
    assert_int_equal(s->rank[1].state, RNL_RANK_JOINED);
    assert_int_equal(s->rank[2].state, RNL_RANK_STARTING);
    assert_int_equal(s->rank[1].pid, getpid());
    assert_string_equal(s->rank[2].host, "here");
    end(&j);
}

static void a_segment_goes_to_both_sides_and_the_agent_keeps_none(void **state)
{
    (void)state;
    struct job j = job_of(2);
    int before = descriptors(), one = -1, two = -1, none = -1;
    uint32_t news = j.rank[1].status->rank[1].news, bell = j.rank[1].bells[1].word;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 1 << 20, &one), RNL_GIVE_OK);
    assert_int_equal(j.rank[1].status->rank[1].news, news + 1);
    assert_int_equal(j.rank[1].bells[1].word, bell + 1);
    struct rnl_msg_event e = next_event(&j.rank[1]);
    assert_int_equal(e.kind, RNL_EVENT_CONNECT);
    assert_int_equal(e.rank, 0);
    assert_int_equal(e.incarnation, j.rank[0].welcome.incarnation);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 4096, &none), RNL_GIVE_BYTES);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 1 << 20, &two), RNL_GIVE_OK);
    hears_nothing(&j.rank[0]); /* who asked first needs no telling */
    have(j.a, &j.rank[1], 0);
    have(j.a, &j.rank[0], 1);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 1 << 20, &none), RNL_GIVE_TWICE);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 1 << 20, &none), RNL_GIVE_TWICE);
    struct stat s, t;
    fstat(one, &s);
    fstat(two, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    assert_int_equal(s.st_size, 1 << 20);
    assert_int_equal(rnl_memfd_check(one, 1 << 20, F_SEAL_SEAL), 0);
    assert_int_equal(ftruncate(one, 1), -1);
    assert_int_equal(fcntl(two, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(one);
    close(two);
    assert_int_equal(descriptors(), before);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 2, (uint64_t)1 << 60, &none), RNL_GIVE_BYTES);
    end(&j);
}

/* A descriptor can be lost on its way into a full table, and mapping can fail: whoever has not said that it has the
 * segment is given it again. */
static void a_segment_is_given_until_it_is_had(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct stat s, t;
    int before = descriptors(), one = -1, again = -1, two = -1, none = -1;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &one), RNL_GIVE_OK);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &again), RNL_GIVE_OK);
    fstat(one, &s);
    fstat(again, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    have(j.a, &j.rank[0], 1);
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &none), RNL_GIVE_TWICE);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_CONNECT);
    hears_nothing(&j.rank[1]); /* once */
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 4096, &two), RNL_GIVE_OK);
    close(two);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 4096, &two), RNL_GIVE_OK);
    fstat(two, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    have(j.a, &j.rank[1], 0);
    close(one);
    close(again);
    close(two);
    assert_int_equal(descriptors(), before);
    have(j.a, &j.rank[1], 2); /* a lie */
    assert_int_equal(j.rank[0].status->rank[1].state, RNL_RANK_DEAD);
    end(&j);
}

static void who_parts_is_dead_for_the_other_alone(void **state)
{
    (void)state;
    struct job j = job_of(3);
    struct rnl_msg msg = {.kind = RNL_MSG_PART, .u.peer = {.rank = 1}};
    for (int i = 0; i < 100; i++) { /* it is told once */
        say(j.rank[0].sock, &msg, -1);
        rnl_agent_step(j.a, now);
    }
    struct rnl_msg_event e = next_event(&j.rank[1]);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.rank, 0);
    assert_int_equal(e.incarnation, j.rank[0].welcome.incarnation);
    assert_int_equal(e.why, RNL_DEATH_PARTED);
    hears_nothing(&j.rank[1]);
    hears_nothing(&j.rank[2]);
    assert_int_equal(j.rank[0].status->rank[0].state, RNL_RANK_JOINED);
    assert_int_equal(j.rank[0].status->rank[1].state, RNL_RANK_JOINED);
    msg.u.peer.rank = 0; /* from itself */
    say(j.rank[0].sock, &msg, -1);
    rnl_agent_step(j.a, now);
    assert_int_equal(j.rank[1].status->rank[0].state, RNL_RANK_DEAD);
    end(&j);
}

static void a_death_is_told_everywhere(void **state)
{
    (void)state;
    struct job j = job_of(3);
    int fd = -1;
    struct rnl_msg msg = {.kind = RNL_MSG_FD, .u.fd = {.ticket = 1, .rank = 0}};
    say(j.rank[1].sock, &msg, -1); /* a peer's first, as when the owner sleeps in poll */
    rnl_agent_step(j.a, now);
    assert_int_equal(hear(j.rank[1].sock, &msg, &fd), 1);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    uint32_t news[2], bell[2];
    for (int i = 0; i < 2; i++) {
        news[i] = j.rank[i].status->rank[i].news;
        bell[i] = j.rank[i].bells[i].word;
    }
    rnl_agent_exited(j.a, 2, SIGKILL, 0, now);
    assert_int_equal(poll(&p, 1, 0), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(j.rank[i].status->rank[i].news, news[i] + 1);
        assert_int_equal(j.rank[i].bells[i].word, bell[i] + 1);
        struct rnl_msg_event e = next_event(&j.rank[i]);
        assert_int_equal(e.kind, RNL_EVENT_DEATH);
        assert_int_equal(e.rank, 2);
        assert_int_equal(e.why, RNL_DEATH_SIGNAL);
        assert_int_equal(e.detail, SIGKILL);
        hears_nothing(&j.rank[i]);
    }
    assert_int_equal(j.rank[0].status->rank[2].state, RNL_RANK_DEAD);
    assert_int_equal(j.rank[0].status->rank[2].detail, SIGKILL);
    struct rnl_agent_death d;
    assert_int_equal(rnl_agent_next_death(j.a, &d), 0); /* the launcher told us */
    int none;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 2, 4096, &none), RNL_GIVE_DEAD);
    /* rank 3 joins late and hears of it behind its welcome; rank 1 then ends with a status before it says anything */
    enter(j.a, &j.rank[3], 3);
    assert_int_equal(next_event(&j.rank[3]).rank, 2);
    rnl_agent_exited(j.a, 1, 0, 5, now);
    struct rnl_msg_event e = next_event(&j.rank[3]);
    assert_int_equal(e.why, RNL_DEATH_EXIT);
    assert_int_equal(e.detail, 5);
    close(fd);
    end(&j);
}

static void a_rank_that_ends_without_joining_is_reported(void **state)
{
    (void)state;
    struct job j = job_of(1);
    rnl_agent_exited(j.a, 3, 0, 0, now);
    struct rnl_msg_event e = next_event(&j.rank[0]);
    assert_int_equal(e.why, RNL_DEATH_NEVER_JOINED);
    assert_int_equal(e.rank, 3);
    end(&j);
}

static void what_the_dead_had_made_is_still_handed_over(void **state)
{
    (void)state;
    struct job j = job_of(2);
    int one = -1, two = -1;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 8192, &one), RNL_GIVE_OK);
    rnl_agent_exited(j.a, 0, SIGKILL, 0, now);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_CONNECT);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_DEATH);
    assert_int_equal(ask_segment(j.a, &j.rank[1], 0, 8192, &two), RNL_GIVE_OK);
    close(one);
    close(two);
    end(&j);
}

static void a_segment_waits_for_a_rank_that_joins_late(void **state)
{
    (void)state;
    struct job j = job_of(2);
    int one = -1, two = -1;
    assert_int_equal(ask_segment(j.a, &j.rank[0], 3, 8192, &one), RNL_GIVE_OK);
    rnl_agent_exited(j.a, 1, SIGKILL, 0, now); /* not one of the two */
    enter(j.a, &j.rank[3], 3);
    struct rnl_msg_event e = next_event(&j.rank[3]);
    assert_int_equal(e.kind, RNL_EVENT_CONNECT);
    assert_int_equal(e.rank, 0);
    assert_int_equal(next_event(&j.rank[3]).kind, RNL_EVENT_DEATH);
    hears_nothing(&j.rank[3]);
    assert_int_equal(ask_segment(j.a, &j.rank[3], 0, 8192, &two), RNL_GIVE_OK);
    struct stat s, t;
    fstat(one, &s);
    fstat(two, &t);
    assert_int_equal(s.st_ino, t.st_ino);
    close(one);
    close(two);
    end(&j);
}

static void the_close_needs_two_quiet_waves(void **state)
{
    (void)state;
    struct job j = job_of(3);
    for (int i = 0; i < 3; i++)
        report(&j.rank[i], 0, 10);
    rnl_agent_step(j.a, now);
    hears_nothing(&j.rank[0]); /* rank 3 lives and has not joined */
    rnl_agent_exited(j.a, 3, 0, 0, now);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next_event(&j.rank[i]).kind, RNL_EVENT_DEATH);
        struct rnl_msg_event e = next_event(&j.rank[i]);
        assert_int_equal(e.kind, RNL_EVENT_CLOSE_ASK);
        assert_int_equal(e.wave, 1);
        report(&j.rank[i], 1, 10);
    }
    rnl_agent_step(j.a, now);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_event(&j.rank[i]).kind, RNL_EVENT_CLOSE_DONE);
    /* after that nobody's end is a death */
    struct rnl_msg leave = {.kind = RNL_MSG_LEAVE};
    say(j.rank[0].sock, &leave, -1);
    rnl_agent_step(j.a, now);
    rnl_agent_exited(j.a, 0, 0, 0, now);
    rnl_agent_exited(j.a, 1, 0, 0, now);
    hears_nothing(&j.rank[2]);
    assert_int_equal(j.rank[2].status->rank[0].state, RNL_RANK_LEFT);
    assert_int_equal(j.rank[2].status->rank[1].state, RNL_RANK_LEFT);
    end(&j);
}

static void leaving_before_the_close_is_a_death(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct rnl_msg leave = {.kind = RNL_MSG_LEAVE};
    say(j.rank[0].sock, &leave, -1);
    rnl_agent_exited(j.a, 0, 0, 0, now);
    struct rnl_msg_event e = next_event(&j.rank[1]);
    assert_int_equal(e.kind, RNL_EVENT_DEATH);
    assert_int_equal(e.why, RNL_DEATH_EXIT);
    hears_nothing(&j.rank[1]);
    end(&j);
}

static void one_endpoint_a_rank_of_our_version(void **state)
{
    (void)state;
    struct job j = job_of(1);
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, msg;
    int pair[2], fd;
    assert_int_equal(rnl_packet_pair(pair), 0);
    say(j.rank[0].door, &hello, pair[1]);
    close(pair[1]);
    rnl_agent_step(j.a, now);
    assert_int_equal(hear(pair[0], &msg, &fd), 1);
    assert_int_equal(msg.kind, RNL_MSG_REFUSED);
    assert_int_equal(msg.u.refused.why, RNL_REFUSED_TWICE);
    assert_int_equal(hear(pair[0], &msg, &fd), -1);
    close(pair[0]);
    /* another version at another door */
    const uint32_t version = 99;
    size_t n = rnl_msg_encode(&hello, bytes);
    memcpy(bytes + 12, &version, sizeof version);
    assert_int_equal(rnl_agent_door(j.a, 1, &j.rank[1].door), 0);
    assert_int_equal(rnl_packet_pair(pair), 0);
    assert_int_equal(rnl_packet_send(j.rank[1].door, bytes, n, &pair[1], 1, 0), 0);
    close(pair[1]);
    rnl_agent_step(j.a, now);
    assert_int_equal(hear(pair[0], &msg, &fd), 1);
    assert_int_equal(msg.u.refused.why, RNL_REFUSED_VERSION);
    close(pair[0]);
    close(j.rank[1].door);
    end(&j);
}

static void a_closed_socket_waits_a_little_for_the_exit(void **state)
{
    (void)state;
    struct job j = job_of(3);
    close(j.rank[0].sock);
    close(j.rank[1].sock);
    j.rank[0].sock = j.rank[1].sock = dup(0);
    j.rank[1].sock = dup(0);
    rnl_agent_step(j.a, now);
    hears_nothing(&j.rank[2]);
    assert_true(rnl_agent_deadline_ns(j.a) > now);
    assert_true(rnl_agent_deadline_ns(j.a) < now + 80 * MS);
    rnl_agent_exited(j.a, 0, SIGSEGV, 0, now + 5 * MS);
    assert_int_equal(next_event(&j.rank[2]).detail, SIGSEGV);
    /* rank 1's process lives on without a socket: nobody can reach it any more */
    rnl_agent_step(j.a, rnl_agent_deadline_ns(j.a));
    struct rnl_msg_event e = next_event(&j.rank[2]);
    assert_int_equal(e.rank, 1);
    assert_int_equal(e.why, RNL_DEATH_LEFT);
    struct rnl_agent_death d;
    assert_int_equal(rnl_agent_next_death(j.a, &d), 1);
    assert_int_equal(d.rank, 1);
    assert_int_equal(d.why, RNL_DEATH_LEFT);
    assert_int_equal(rnl_agent_next_death(j.a, &d), 0);
    end(&j);
}

/* Whoever left without having asked for anything may come back, also where leaving and knocking are heard at once. */
static void who_left_at_once_may_come_back(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, leave = {.kind = RNL_MSG_LEAVE}, msg;
    int pair[2], pages[2], fd = -1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rnl_packet_pair(pair), 0);
        say(j.rank[0].sock, &leave, -1);
        say(j.rank[0].door, &hello, pair[1]);
        close(pair[1]);
        close(j.rank[0].sock);
        rnl_agent_step(j.a, now);
        j.rank[0].sock = pair[0];
        assert_int_equal(hear(pair[0], &msg, pages), 1);
        assert_int_equal(msg.kind, RNL_MSG_WELCOME);
        close(pages[0]);
        close(pages[1]);
        hears_nothing(&j.rank[1]); /* nobody died */
    }
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &fd), RNL_GIVE_OK);
    close(fd);
    say(j.rank[0].sock, &leave, -1); /* now it would be missed */
    rnl_agent_step(j.a, now);
    assert_int_equal(j.rank[1].status->rank[0].state, RNL_RANK_DEAD);
    end(&j);
}

/* A TCP socket told to linger would block whoever closes it last. */
static void a_socket_that_lingers_blocks_nobody(void **state)
{
    (void)state;
    struct job j = job_of(1);
    struct rnl_msg msg = {.kind = RNL_MSG_LEAVE}; /* not for the door */
    struct linger slow = {.l_onoff = 1, .l_linger = 20}, now_is;
    socklen_t n = sizeof now_is;
    int door, tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(tcp >= 0);
    assert_int_equal(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &slow, sizeof slow), 0);
    assert_int_equal(rnl_agent_door(j.a, 1, &door), 0);
    say(door, &msg, tcp);
    rnl_agent_step(j.a, now);
    assert_int_equal(getsockopt(tcp, SOL_SOCKET, SO_LINGER, &now_is, &n), 0); /* ours is the same socket */
    assert_int_equal(now_is.l_onoff, 1);
    assert_int_equal(now_is.l_linger, 0);
    close(tcp);
    close(door);
    end(&j);
}

static void garbage_costs_only_its_sender(void **state)
{
    (void)state;
    uint64_t x = 1234567;
    for (int round = 0; round < 400; round++) {
        struct job j = job_of(2);
        unsigned char bytes[300];
        int fds[RNL_PACKET_FDS_MAX];
        for (unsigned i = 0; i < RNL_PACKET_FDS_MAX; i++)
            fds[i] = STDIN_FILENO;
        for (int i = 0; i < 6; i++) { /* noise, truncated and damaged messages, strange descriptors */
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            struct rnl_msg msg = {.kind = 1 + (uint32_t)(x >> 8) % 5};
            size_t n = rnl_msg_encode(&msg, bytes);
            for (size_t k = 0; k < sizeof bytes; k++)
                if (x % 3 == 0 || k >= n || (x >> (k % 50)) % 16 == 0)
                    bytes[k] = (unsigned char)((x >> (k % 48)) * 31 + k);
            if (x >> 60 < 4)
                n = (size_t)(x >> 20) % sizeof bytes + 1;
            int to = round % 2 ? j.rank[0].sock : j.rank[0].door;
            rnl_packet_send(to, bytes, n, fds, (unsigned)(x >> 32) % (RNL_PACKET_FDS_MAX + 1), 0);
            rnl_agent_step(j.a, now);
        }
        struct rnl_msg msg;
        int fd = -1;
        while (hear(j.rank[1].sock, &msg, &fd) == 1) /* what it learnt of rank 0 */
            assert_int_equal(msg.kind, RNL_MSG_EVENT);
        assert_int_equal(ask_segment(j.a, &j.rank[1], 2, 4096, &fd), RNL_GIVE_OK);
        close(fd);
        end(&j);
    }
}

/* The same, but for certain broken: told to the others and to the launcher. */
static void who_breaks_the_protocol_is_declared_dead(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        struct job j = job_of(2);
        struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
        struct rnl_agent_death d;
        switch (how) {
        case 0: /* the wrong direction */
            say(j.rank[0].sock, &msg, -1);
            break;
        case 1: /* a descriptor with a message that has none */
            msg.kind = RNL_MSG_LEAVE;
            say(j.rank[0].sock, &msg, STDIN_FILENO);
            break;
        case 2: /* a wave that nobody asked for */
            report(&j.rank[0], 5, 0);
            break;
        case 3: /* a segment with itself */
            msg = (struct rnl_msg){.kind = RNL_MSG_SEGMENT, .u.segment = {1, 0, 4096}};
            say(j.rank[0].sock, &msg, -1);
            break;
        case 4: /* noise at the door */
            assert_int_equal(rnl_packet_send(j.rank[0].door, "hello?", 6, NULL, 0, 0), 0);
            break;
        case 5: /* a greeting where none belongs */
            msg.kind = RNL_MSG_HELLO;
            say(j.rank[0].sock, &msg, STDIN_FILENO);
            break;
        }
        rnl_agent_step(j.a, now);
        assert_int_equal(rnl_agent_next_death(j.a, &d), 1);
        assert_int_equal(d.rank, 0);
        assert_int_equal(d.why, RNL_DEATH_BROKEN);
        assert_int_equal(next_event(&j.rank[1]).why, RNL_DEATH_BROKEN);
        end(&j);
    }
}

/* Never reads: its answers are not queued without end, and what is said to it arrives in order once it reads. */
static void a_deaf_rank_costs_bounded_memory(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct rnl_msg msg = {.kind = RNL_MSG_FD, .u.fd = {.ticket = 0, .rank = 1}};
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    uint32_t sent = 0, before = (uint32_t)descriptors();
    for (int i = 0; i < 20000; i++) {
        msg.u.fd.ticket = sent;
        if (rnl_packet_send(j.rank[0].sock, bytes, rnl_msg_encode(&msg, bytes), NULL, 0, 0) == 0)
            sent++;
        rnl_agent_step(j.a, now);
    }
    assert_true(sent < 2000); /* it is not listened to, so its socket is full */
    assert_true((uint32_t)descriptors() < before + 4);
    struct pollfd p = {.fd = rnl_agent_fd(j.a), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* nor is there anything to be done about it */
    rnl_agent_exited(j.a, 2, SIGKILL, 0, now);
    uint32_t heard = 0, deaths = 0;
    while (heard < sent || deaths == 0) {
        int fd = -1, r = hear(j.rank[0].sock, &msg, &fd);
        if (r == 0) {
            rnl_agent_step(j.a, now);
            continue;
        }
        assert_int_equal(r, 1);
        if (msg.kind == RNL_MSG_GIVE) {
            assert_int_equal(msg.u.give.ticket, heard);
            heard++;
            close(fd);
        } else {
            deaths++;
        }
    }
    hears_nothing(&j.rank[0]);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(welcome_tells_a_rank_its_place),
        cmocka_unit_test(a_segment_goes_to_both_sides_and_the_agent_keeps_none),
        cmocka_unit_test(a_segment_is_given_until_it_is_had),
        cmocka_unit_test(who_parts_is_dead_for_the_other_alone),
        cmocka_unit_test(a_death_is_told_everywhere),
        cmocka_unit_test(a_rank_that_ends_without_joining_is_reported),
        cmocka_unit_test(what_the_dead_had_made_is_still_handed_over),
        cmocka_unit_test(a_segment_waits_for_a_rank_that_joins_late),
        cmocka_unit_test(the_close_needs_two_quiet_waves),
        cmocka_unit_test(leaving_before_the_close_is_a_death),
        cmocka_unit_test(one_endpoint_a_rank_of_our_version),
        cmocka_unit_test(a_closed_socket_waits_a_little_for_the_exit),
        cmocka_unit_test(who_left_at_once_may_come_back),
        cmocka_unit_test(a_socket_that_lingers_blocks_nobody),
        cmocka_unit_test(garbage_costs_only_its_sender),
        cmocka_unit_test(who_breaks_the_protocol_is_declared_dead),
        cmocka_unit_test(a_deaf_rank_costs_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
