/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_callback.c - an agent that calls back (job/site_back.c) and who hears it (job/back.c), in one process: where who
 * is called is stopped, where descriptors are short, and what becomes of frames that were read and not taken. Time is
 * an argument. */
#include "job/back.h"
#include "job/site_in.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MS ((uint64_t)1000 * 1000)
enum { TURNS = 2000 };

int rnl_source_add(int epoll, int fd, enum rnl_source source, uint32_t index, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)source << 32 | index};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* The agent's host has other addresses than who started it, and those of IPv4 only. */
int rnl_search_ways(struct rnl_here *here)
{
    static const uint8_t ip[2][16] = {{[10] = 0xff, [11] = 0xff, 10, 9, 9, 9}, {[15] = 1}};
    here->ways = 2;
    for (int i = 0; i < 2; i++)
        memcpy(here->way[i].ip, ip[i], 16);
    return 0;
}

struct agent {
    struct rnl_site site;
    struct rnl_launcher *l;
    struct rnl_trunk starter; /* the other end of its trunk */
    int listens;
    uint64_t now;
};

static void set_up(struct agent *a)
{
    static const uint8_t home[16] = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 1};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd[2];
    memset(a, 0, sizeof *a);
    assert_true(sodium_init() >= 0);
    assert_true((a->listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) >= 0);
    assert_int_equal(bind(a->listens, (const struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(a->listens, 8), 0);
    assert_int_equal(getsockname(a->listens, (struct sockaddr *)&at, &n), 0);
    assert_non_null(a->l = calloc(1, sizeof *a->l));
    a->l->site = &a->site;
    assert_true((a->l->epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0);
    for (int i = 0; i < RNL_BACK_WAYS_MAX; i++)
        a->site.way_back[i].fd = -1;
    a->site.brief.host = 5;
    a->site.brief.back = (struct rnl_back_at){.ways = 2, .port = ntohs(at.sin_port), .key = {9}};
    memcpy(a->site.brief.back.ip[0], home, 16);
    a->site.brief.back.ip[1][0] = 0xff; /* of IPv6, which the agent's host has none of: nobody is ever reached there */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    struct rnl_trunk *t[2] = {&a->site.trunk, &a->starter};
    for (int i = 0; i < 2; i++) {
        int other = dup(fd[i]);
        assert_int_equal(rnl_trunk_open(t[i], fd[i], other), 0);
        rnl_trunk_keep(t[i]);
    }
    a->now = 1000 * MS;
    rnl_rejoin_back(&a->site.rejoin, a->now);
}

static void tear_down(struct agent *a)
{
    rnl_site_stop_tries(a->l);
    rnl_trunk_close(&a->site.trunk);
    rnl_trunk_close(&a->starter);
    close(a->listens);
    close(a->l->epoll);
    free(a->l);
}

/* A turn of its loop, some ms later. */
static void turn(struct agent *a, uint64_t ms)
{
    struct epoll_event e[16];
    a->now += ms * MS;
    rnl_site_look_back(a->l, a->now);
    int n = epoll_wait(a->l->epoll, e, 16, 1);
    for (int i = 0; i < n; i++)
        if (e[i].data.u64 >> 32 == RNL_SOURCE_WAY)
            rnl_site_way_event(a->l, (uint32_t)e[i].data.u64, a->now);
}

static struct rnl_channel *accept_one(struct agent *a)
{
    struct pollfd p = {.fd = a->listens, .events = POLLIN};
    for (int i = 0; i < TURNS && poll(&p, 1, 0) == 0; i++)
        turn(a, 10);
    int fd = accept4(a->listens, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return rnl_channel_new(fd, 1, a->site.brief.back.key);
}

/* Until the agent has said how far it got. */
static uint64_t hear_taken(struct agent *a, struct rnl_channel *c)
{
    enum rnl_channel_step step = RNL_CHANNEL_WAITS;
    for (int i = 0; i < TURNS && step != RNL_CHANNEL_MESSAGE; i++) {
        step = rnl_channel_step(c);
        assert_int_not_equal(step, RNL_CHANNEL_END);
        turn(a, 1);
    }
    struct rnl_unpack u = {.at = c->text, .left = c->bytes};
    assert_int_equal(step, RNL_CHANNEL_MESSAGE);
    assert_int_equal(rnl_unpack_32(&u), 5);
    return rnl_unpack_64(&u);
}

static void answer(struct agent *a, struct rnl_channel *c, uint64_t theirs)
{
    assert_int_equal(rnl_back_answer(c, 1, a->starter.kept.taken), 0);
    assert_int_equal(rnl_trunk_go_on(&a->starter, c, theirs), 0);
}

static int is_back(struct agent *a)
{
    for (int i = 0; i < TURNS && a->site.rejoin.cut_ns != 0 && !a->site.over; i++)
        turn(a, 1);
    return a->site.rejoin.cut_ns == 0 && !a->site.over && a->site.trunk.in >= 0;
}

/* It has room for a few callers, and accepts none of them until it goes on. */
static void who_is_stopped_is_called_once(void **state)
{
    struct agent a;
    (void)state;
    set_up(&a);
    rnl_site_cut(a.l, a.now);
    for (int i = 0; i < TURNS; i++)
        turn(&a, 150); /* for 300 s */
    assert_false(a.site.over);
    struct rnl_channel *c = accept_one(&a);
    assert_int_equal(accept4(a.listens, NULL, NULL, SOCK_CLOEXEC), -1);
    answer(&a, c, hear_taken(&a, c));
    assert_true(is_back(&a));
    tear_down(&a);
}

/* Somebody has accepted it, and says nothing more: that is no connection to keep. */
static void who_is_accepted_and_not_answered_calls_again(void **state)
{
    struct agent a;
    (void)state;
    set_up(&a);
    rnl_site_cut(a.l, a.now);
    struct rnl_channel *c = accept_one(&a);
    for (int i = 0; i < 100; i++)
        turn(&a, 100);
    struct rnl_channel *d = accept_one(&a);
    answer(&a, d, hear_taken(&a, d));
    assert_true(is_back(&a));
    rnl_channel_free(c);
    tear_down(&a);
}

static void nobody_listens_is_the_end(void **state)
{
    struct agent a;
    (void)state;
    set_up(&a);
    close(a.listens);
    a.listens = -1;
    rnl_site_cut(a.l, a.now);
    for (int i = 0; i < 100; i++)
        turn(&a, 10);
    assert_true(a.site.over); /* the one of IPv6 is nothing to wait for */
    tear_down(&a);
}

/* As when a turn of its loop finds both: frames on the old connection, and the new one open. */
static void what_was_read_and_not_taken_comes_once(void **state)
{
    struct agent a;
    struct rnl_frame f;
    (void)state;
    set_up(&a);
    for (int i = 1; i <= 3; i++) {
        unsigned char body[4] = {(unsigned char)i};
        rnl_trunk_send(&a.starter, RNL_FRAME_INPUT, body, sizeof body);
    }
    rnl_trunk_read(&a.site.trunk);
    assert_int_equal(rnl_trunk_next(&a.site.trunk, &f), 1);
    assert_int_equal(f.body[0], 1);
    a.now += (RNL_REJOIN_SILENT_MS + 100) * MS;
    struct rnl_channel *c = accept_one(&a);
    uint64_t taken = hear_taken(&a, c);
    assert_int_equal(taken, RNL_FRAME_HEAD + 4);
    assert_int_equal(rnl_trunk_next(&a.site.trunk, &f), 0); /* it has been said that these have not been taken */
    answer(&a, c, taken);
    assert_true(is_back(&a));
    for (unsigned want = 2; want <= 3; want++) {
        for (int i = 0; i < TURNS && !rnl_trunk_next(&a.site.trunk, &f); i++) {
            f.bytes = 0;
            poll(NULL, 0, 1);
            rnl_trunk_read(&a.site.trunk);
        }
        assert_int_equal(f.bytes, 4);
        assert_int_equal(f.body[0], want);
    }
    assert_int_equal(rnl_trunk_next(&a.site.trunk, &f), 0);
    tear_down(&a);
}

/* ---- where descriptors are short ---- */

static struct rlimit whole;
static void no_descriptors(void)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
    struct rlimit few = {.rlim_cur = 4, .rlim_max = whole.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}
static void descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
}

static void without_descriptors_an_agent_calls_again(void **state)
{
    struct agent a;
    (void)state;
    set_up(&a);
    rnl_site_cut(a.l, a.now);
    struct rnl_channel *c = accept_one(&a);
    hear_taken(&a, c);
    assert_int_equal(rnl_back_answer(c, 1, a.starter.kept.taken), 0);
    no_descriptors();
    for (int i = 0; i < 20; i++)
        turn(&a, 10);
    descriptors();
    assert_false(a.site.over);
    assert_int_equal(a.site.trunk.in, -1);
    for (int i = 0; i < TURNS && rnl_channel_step(c) != RNL_CHANNEL_END; i++)
        poll(NULL, 0, 1);
    assert_int_equal(rnl_channel_step(c), RNL_CHANNEL_END); /* who answered sees that it went wrong */
    rnl_channel_free(c);
    c = accept_one(&a);
    answer(&a, c, hear_taken(&a, c));
    assert_true(is_back(&a));
    tear_down(&a);
}

/* The same for who answers. */
static void without_descriptors_nothing_is_lost(void **state)
{
    struct agent a;
    (void)state;
    set_up(&a);
    rnl_site_cut(a.l, a.now);
    struct rnl_channel *c = accept_one(&a);
    uint64_t taken = hear_taken(&a, c);
    no_descriptors();
    int r = rnl_trunk_go_on(&a.starter, c, taken);
    descriptors();
    assert_int_equal(r, 0);
    assert_int_equal(a.starter.in, -1);
    assert_true(a.starter.ended && rnl_trunk_may_go_on(&a.starter));
    for (int i = 0; i < 100; i++)
        turn(&a, 10);
    c = accept_one(&a);
    answer(&a, c, hear_taken(&a, c));
    assert_true(is_back(&a));
    tear_down(&a);
}

/* ---- who listens ---- */

static int dial(const struct rnl_back *b)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(b->at.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static unsigned guests(const struct rnl_back *b)
{
    unsigned n = 0;
    for (int i = 0; i < RNL_BACK_GUESTS; i++)
        n += b->guest[i].channel != NULL;
    return n;
}

static void a_stranger_is_heard_for_its_time_only(void **state)
{
    struct rnl_back *b;
    struct rnl_back_come come;
    unsigned char heard[64];
    (void)state;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(rnl_back_open(epoll, &b), 0);
    assert_true(rnl_back_deadline_ns(b) == UINT64_MAX);
    int fd = dial(b);
    assert_int_equal(rnl_back_event(b, 0, 1000 * MS, &come), 0);
    assert_int_equal(guests(b), 1);
    assert_true(rnl_back_deadline_ns(b) == (1000 + RNL_BACK_PATIENCE_MS) * MS);
    rnl_back_look(b, (1000 + RNL_BACK_PATIENCE_MS) * MS - 1);
    assert_int_equal(guests(b), 1);
    rnl_back_look(b, rnl_back_deadline_ns(b));
    assert_int_equal(guests(b), 0);
    assert_true(rnl_back_deadline_ns(b) == UINT64_MAX);
    assert_int_equal(recv(fd, heard, 32, MSG_WAITALL), 32);
    assert_int_equal(recv(fd, heard, sizeof heard, 0), 0);
    close(fd);
    rnl_back_close(b);
    close(epoll);
}

static void without_descriptors_nobody_is_asked_in(void **state)
{
    struct rnl_back *b;
    struct rnl_back_come come;
    struct epoll_event e;
    uint64_t now = 1000 * MS;
    (void)state;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(rnl_back_open(epoll, &b), 0);
    int fd = dial(b);
    assert_int_equal(epoll_wait(epoll, &e, 1, 5000), 1);
    no_descriptors();
    rnl_back_event(b, 0, now, &come);
    int again = epoll_wait(epoll, &e, 1, 0);
    descriptors();
    assert_int_equal(again, 0); /* it does not spin */
    assert_int_equal(guests(b), 0);
    now = rnl_back_deadline_ns(b);
    assert_true(now > 1000 * MS && now <= 2000 * MS);
    rnl_back_look(b, now);
    assert_int_equal(epoll_wait(epoll, &e, 1, 5000), 1);
    rnl_back_event(b, 0, now, &come);
    assert_int_equal(guests(b), 1);
    close(fd);
    rnl_back_close(b);
    close(epoll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_stopped_is_called_once),
        cmocka_unit_test(who_is_accepted_and_not_answered_calls_again),
        cmocka_unit_test(nobody_listens_is_the_end),
        cmocka_unit_test(what_was_read_and_not_taken_comes_once),
        cmocka_unit_test(without_descriptors_an_agent_calls_again),
        cmocka_unit_test(without_descriptors_nothing_is_lost),
        cmocka_unit_test(a_stranger_is_heard_for_its_time_only),
        cmocka_unit_test(without_descriptors_nobody_is_asked_in),
    };
    signal(SIGPIPE, SIG_IGN); /* as in the launcher */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
