/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_back.c - a stream that survives its connections, without processes: bytes that are kept over a pipe that loses
 * them, when an agent looks for another connection, frames over pipes that are cut, and who is let in. What is drawn
 * comes from seeds. */
#include "job/back.h"
#include "job/launch.h"
#include "job/rejoin.h"
#include "job/resend.h"
#include "job/trunk.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MS ((uint64_t)1000 * 1000)
enum { SEEDS = 200, STREAM = 20000, ROUNDS = 100000 };

static uint64_t draw_state;
static uint32_t draw(uint32_t below)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(draw_state >> 33) % below;
}

/* As the launcher has it; here nobody looks at what is watched. */
int rnl_source_add(int epoll, int fd, enum rnl_source source, uint32_t index, uint32_t events)
{
    (void)epoll, (void)fd, (void)source, (void)index, (void)events;
    return 0;
}

/* ---- bytes ---- */

static unsigned char nth(uint64_t n)
{
    return (unsigned char)(n * 31 + (n >> 8) * 7);
}

/* A connection that takes a while, and whatever is on its way is lost when it is cut. What one side has taken in is
 * told now and then, and that may be lost, too. */
static void nothing_is_lost_or_doubled_with(uint64_t seed)
{
    struct rnl_resend k = {.keeps = 1};
    unsigned char *way = malloc(STREAM + 4096), chunk[256];
    uint64_t put = 0, taken = 0;
    size_t on_the_way = 0;
    int round = 0;
    draw_state = seed;
    assert_non_null(way);
    for (; taken < STREAM && round < ROUNDS; round++) {
        const unsigned char *at;
        size_t n;
        switch (draw(8)) {
        case 0:
        case 1:
            n = draw(sizeof chunk);
            n = put + n > STREAM ? (size_t)(STREAM - put) : n;
            for (size_t i = 0; i < n; i++)
                chunk[i] = nth(put + i);
            assert_int_equal(rnl_resend_put(&k, chunk, n), 0);
            put += n;
            break;
        case 2:
        case 3:
            n = rnl_resend_ready(&k, &at);
            n = n > 0 ? draw((uint32_t)n) + 1 : 0;
            if (n > 300)
                n = 300;
            if (n == 0 || on_the_way + n > STREAM)
                break;
            memcpy(way + on_the_way, at, n);
            on_the_way += n;
            rnl_resend_left(&k, n);
            break;
        case 4:
        case 5:
            n = on_the_way > 0 ? draw((uint32_t)on_the_way) + 1 : 0;
            for (size_t i = 0; i < n; i++)
                if (way[i] != nth(taken + i))
                    fail_msg("seed %llu: byte %llu is not what was sent", (unsigned long long)seed,
                             (unsigned long long)(taken + i));
            taken += n;
            memmove(way, way + n, on_the_way - n);
            on_the_way -= n;
            break;
        case 6:
            assert_int_equal(rnl_resend_acknowledged(&k, draw(2) ? taken : taken / 2), 0); /* old ones come again */
            assert_true(k.end - k.first <= put - taken / 2);
            break;
        default:
            if (draw(4) == 0) {
                on_the_way = 0;
                assert_int_equal(rnl_resend_again(&k, taken), 0);
            }
        }
    }
    if (taken != STREAM || put != STREAM)
        fail_msg("seed %llu: %llu of %llu bytes arrived", (unsigned long long)seed, (unsigned long long)taken,
                 (unsigned long long)put);
    assert_int_equal(rnl_resend_acknowledged(&k, taken), 0);
    assert_int_equal(k.end, k.first); /* nothing is kept for ever */
    rnl_resend_free(&k);
    free(way);
}

static void nothing_is_lost_or_doubled(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        nothing_is_lost_or_doubled_with(seed);
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    struct rnl_resend k = {.keeps = 1};
    (void)state;
    assert_int_equal(rnl_resend_put(&k, "0123456789", 10), 0);
    rnl_resend_left(&k, 6);
    assert_int_equal(rnl_resend_acknowledged(&k, 7), -1); /* more than has left */
    assert_int_equal(rnl_resend_again(&k, 7), -1);
    assert_int_equal(rnl_resend_acknowledged(&k, 4), 0);
    assert_int_equal(rnl_resend_again(&k, 3), -1); /* which is not kept any more */
    assert_int_equal(rnl_resend_again(&k, 5), 0);
    const unsigned char *at;
    assert_int_equal(rnl_resend_ready(&k, &at), 5);
    assert_memory_equal(at, "56789", 5);
    rnl_resend_free(&k);
}

static void what_may_not_come_again_is_not_kept(void **state)
{
    struct rnl_resend k = {.at = NULL};
    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rnl_resend_put(&k, "0123456789", 10), 0);
        rnl_resend_left(&k, 10);
    }
    assert_true(k.room < 1000);
    rnl_resend_free(&k);
}

/* ---- when ---- */

/* Looks whenever it wants to, until `end` or something is to be done. */
static enum rnl_rejoin_step look_until(struct rnl_rejoin *r, uint64_t *now, uint64_t end)
{
    for (int looks = 0; *now < end; looks++) {
        enum rnl_rejoin_step step = rnl_rejoin_look(r, *now);
        if (step != RNL_REJOIN_WAIT)
            return step;
        assert_true(looks < 1000); /* it does not spin */
        uint64_t at = rnl_rejoin_deadline_ns(r);
        *now = at < end ? (at > *now ? at : *now + 1) : end;
    }
    return RNL_REJOIN_WAIT;
}

static void who_hears_pings_stays(void **state)
{
    struct rnl_rejoin r = {.heard_ns = 0};
    uint64_t now = 1;
    (void)state;
    rnl_rejoin_back(&r, now);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(look_until(&r, &now, now + 2000 * MS), RNL_REJOIN_WAIT);
        rnl_rejoin_heard(&r, now);
    }
}

static void silence_is_followed_by_tries_until_it_ends(void **state)
{
    struct rnl_rejoin r = {.heard_ns = 0};
    uint64_t now = 1;
    (void)state;
    rnl_rejoin_back(&r, now);
    assert_int_equal(look_until(&r, &now, 100000 * MS), RNL_REJOIN_TRY);
    assert_true(now >= RNL_REJOIN_SILENT_MS * MS && now < (RNL_REJOIN_SILENT_MS + 100) * MS);
    rnl_rejoin_tries(&r, 2);
    assert_int_equal(look_until(&r, &now, now + 1000 * MS), RNL_REJOIN_WAIT);
    rnl_rejoin_heard(&r, now); /* the old one was only slow */
    assert_int_equal(look_until(&r, &now, now + 1000 * MS), RNL_REJOIN_STOP);
    assert_int_equal(look_until(&r, &now, now + 3000 * MS), RNL_REJOIN_WAIT);
}

/* How long it goes on, if `what` becomes of each round. */
enum fate { NOBODY, UNREACHABLE, REFUSES, ONE_REFUSES, STOPPED };
static uint64_t lives_for(int cut, enum fate what)
{
    struct rnl_rejoin r = {.heard_ns = 0};
    uint64_t now = 1000 * MS, began = now;
    int rounds = 0;
    rnl_rejoin_back(&r, now);
    if (cut)
        rnl_rejoin_cut(&r, now);
    for (;;) {
        switch (look_until(&r, &now, UINT64_MAX / 2)) {
        case RNL_REJOIN_TRY:
            assert_true(++rounds < 10000);
            rnl_rejoin_tries(&r, 2);
            now += 10 * MS;
            for (int i = 0; i < 2 && what != NOBODY && what != STOPPED; i++)
                rnl_rejoin_failed(&r, what == REFUSES || (what == ONE_REFUSES && i == 0));
            if (what == STOPPED) { /* a connection takes a moment */
                assert_int_equal(rnl_rejoin_look(&r, now), RNL_REJOIN_WAIT);
                rnl_rejoin_met(&r);
            }
            break;
        case RNL_REJOIN_GIVE_UP:
            return (now - began) / MS;
        default:
            break;
        }
    }
}

static void every_wait_has_a_bound(void **state)
{
    (void)state;
    assert_in_range(lives_for(1, NOBODY), RNL_REJOIN_CUT_MS, RNL_REJOIN_CUT_MS + 100);
    assert_in_range(lives_for(1, UNREACHABLE), RNL_REJOIN_CUT_MS, RNL_REJOIN_CUT_MS + 100);
    assert_in_range(lives_for(0, NOBODY), RNL_REJOIN_SILENT_MOST_MS, RNL_REJOIN_SILENT_MOST_MS + 100);
    assert_in_range(lives_for(0, STOPPED), RNL_REJOIN_STOPPED_MOST_MS, RNL_REJOIN_STOPPED_MOST_MS + 100);
    assert_in_range(lives_for(1, STOPPED), RNL_REJOIN_STOPPED_MOST_MS, RNL_REJOIN_STOPPED_MOST_MS + 100);
    assert_in_range(lives_for(1, REFUSES), 0, 100); /* nobody listens there: the launcher is gone */
    /* Perhaps another host has that address here, and the launcher's other one is to come up again. */
    assert_in_range(lives_for(1, ONE_REFUSES), RNL_REJOIN_CUT_MS, RNL_REJOIN_CUT_MS + 100);
    assert_in_range(lives_for(0, REFUSES), RNL_REJOIN_SILENT_MOST_MS, RNL_REJOIN_SILENT_MOST_MS + 100);
}

/* ---- frames ---- */

static void open_pair(const unsigned char key[32], struct rnl_channel *end[2])
{
    int fd[2];
    int open[2] = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++)
        assert_non_null(end[i] = rnl_channel_new(fd[i], i == 0, key));
    for (int k = 0; k < 20 && !(open[0] && open[1]); k++)
        for (int i = 0; i < 2; i++)
            open[i] |= rnl_channel_step(end[i]) == RNL_CHANNEL_OPENS;
    assert_true(open[0] && open[1]);
}

static void come_back(struct rnl_trunk t[2], const unsigned char key[32])
{
    struct rnl_channel *end[2];
    const uint64_t taken[2] = {t[0].kept.taken, t[1].kept.taken};
    open_pair(key, end);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rnl_trunk_go_on(&t[i], end[i], taken[1 - i]), 0);
}

static void frames_survive_with(uint64_t seed)
{
    enum { FRAMES = 300 };
    unsigned char key[32] = {7}, body[4000];
    struct rnl_trunk t[2];
    uint32_t sent[2] = {0}, got[2] = {0};
    int fd[2];
    draw_state = seed;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        int other = dup(fd[i]);
        assert_int_equal(rnl_trunk_open(&t[i], fd[i], other), 0);
        rnl_trunk_keep(&t[i]);
    }
    for (int round = 0; round < ROUNDS && (got[0] < FRAMES || got[1] < FRAMES); round++) {
        const int i = (int)draw(2);
        struct rnl_frame f;
        if (draw(3) == 0 && sent[i] < FRAMES) {
            size_t n = 4 + draw(draw(20) == 0 ? sizeof body - 4 : 40);
            memset(body, (int)sent[i], n);
            memcpy(body, &sent[i], 4);
            sent[i]++;
            rnl_trunk_send(&t[i], draw(10) == 0 ? RNL_FRAME_PONG : RNL_FRAME_OUTPUT, body, n);
        }
        if (draw(3) == 0)
            rnl_trunk_read(&t[i]);
        if (draw(3) == 0) /* what was read, and is not taken yet, is lost with its connection */
            for (uint32_t most = draw(4); most > 0 && rnl_trunk_next(&t[i], &f); most--) {
                uint32_t number;
                assert_true(f.bytes >= 4);
                memcpy(&number, f.body, 4);
                if (number != got[i])
                    fail_msg("seed %llu: frame %u instead of %u", (unsigned long long)seed, number, got[i]);
                got[i]++;
                for (size_t k = 4; k < f.bytes; k++)
                    assert_int_equal(f.body[k], number & 255);
            }
        rnl_trunk_flush(&t[i]);
        if (draw(60) == 0) {
            if (draw(2))
                rnl_trunk_cut(&t[i]); /* frames are said meanwhile */
            else
                come_back(t, key);
        } else if (draw(20) == 0 && (t[0].in < 0 || t[1].in < 0)) {
            come_back(t, key);
        }
    }
    if (got[0] != FRAMES || got[1] != FRAMES)
        fail_msg("seed %llu: %u and %u frames of %d arrived", (unsigned long long)seed, got[0], got[1], FRAMES);
    for (int i = 0; i < 2; i++)
        rnl_trunk_close(&t[i]);
}

static void frames_survive_their_connections(void **state)
{
    (void)state;
    assert_true(sodium_init() >= 0);
    for (uint64_t seed = 1; seed <= SEEDS / 4; seed++)
        frames_survive_with(seed);
}

static void who_sends_nothing_new_keeps_little(void **state)
{
    struct rnl_trunk t[2];
    struct rnl_frame f;
    unsigned char body[1000] = {0};
    int fd[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        int other = dup(fd[i]);
        assert_int_equal(rnl_trunk_open(&t[i], fd[i], other), 0);
        rnl_trunk_keep(&t[i]);
    }
    for (int i = 0; i < 5000; i++) {
        rnl_trunk_send(&t[0], RNL_FRAME_OUTPUT, body, sizeof body);
        rnl_trunk_read(&t[1]);
        while (rnl_trunk_next(&t[1], &f))
            assert_int_equal(f.kind, RNL_FRAME_OUTPUT);
        rnl_trunk_read(&t[0]);
        assert_false(rnl_trunk_next(&t[0], &f)); /* acknowledgements are nobody's but the trunk's */
        assert_true(t[0].kept.end - t[0].kept.first <= RNL_ACK_BYTES + 2 * sizeof body);
    }
    for (int i = 0; i < 2; i++)
        rnl_trunk_close(&t[i]);
}

/* ---- who is let in ---- */

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

/* All that there is to do. 1 = somebody has come. */
static int serve(struct rnl_back *b, uint64_t now, struct rnl_back_come *out)
{
    struct pollfd p = {.fd = b->fd, .events = POLLIN};
    while (poll(&p, 1, 0) == 1)
        if (rnl_back_event(b, 0, now, out))
            return 1;
    for (uint32_t i = 1; i <= RNL_BACK_GUESTS; i++)
        if (rnl_back_event(b, i, now, out))
            return 1;
    return 0;
}

static unsigned guests(const struct rnl_back *b)
{
    unsigned n = 0;
    for (int i = 0; i < RNL_BACK_GUESTS; i++)
        n += b->guest[i].channel != NULL;
    return n;
}

/* As an agent does it, with `key`; what it says is written down. 1 = it came. */
static int come_with(struct rnl_back *b, const unsigned char key[32], struct rnl_back_come *out)
{
    static const unsigned char said[12] = {3, [4] = 77};
    struct rnl_channel *c = rnl_channel_new(dial(b), 0, key);
    int came = 0, sent = 0;
    assert_non_null(c);
    for (int i = 0; i < 500 && !came; i++) {
        enum rnl_channel_step step = rnl_channel_step(c);
        if (step == RNL_CHANNEL_END)
            break;
        if (step == RNL_CHANNEL_OPENS && !sent)
            sent = rnl_channel_send(c, 'r', said, sizeof said) == 0;
        came = serve(b, 1, out);
        poll(NULL, 0, 1);
    }
    rnl_channel_free(c);
    return came;
}

static void only_who_has_the_key_comes_back(void **state)
{
    struct rnl_back *b;
    struct rnl_back_come come;
    unsigned char wrong[32], heard[64], noise[88];
    (void)state;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (rnl_back_open(epoll, &b) < 0) {
        close(epoll);
        skip(); /* no network here */
    }
    memcpy(wrong, b->at.key, sizeof wrong);
    wrong[31] ^= 1;
    assert_int_equal(come_with(b, b->at.key, &come), 1);
    assert_int_equal(come.host, 3);
    assert_int_equal(come.taken, 77);
    rnl_channel_free(come.channel);
    assert_int_equal(come_with(b, wrong, &come), 0);
    int fd = dial(b);
    for (int i = 0; i < 200 && guests(b) == 0; i++) {
        assert_int_equal(serve(b, 1, &come), 0);
        poll(NULL, 0, 1);
    }
    assert_int_equal(recv(fd, heard, sizeof heard, 0), 32);
    memset(noise, 3, sizeof noise);
    assert_int_equal(send(fd, noise, sizeof noise, MSG_NOSIGNAL), sizeof noise);
    for (int i = 0; i < 200 && guests(b) > 0; i++) {
        assert_int_equal(serve(b, 1, &come), 0);
        poll(NULL, 0, 1);
    }
    assert_int_equal(guests(b), 0);
    assert_true(recv(fd, heard, sizeof heard, 0) <= 0);
    close(fd);
    rnl_back_close(b);
    close(epoll);
}

/* What an agent has said is of no use to who heard it: the challenge is another each time. */
static void what_was_recorded_is_of_no_use(void **state)
{
    struct rnl_back *b;
    struct rnl_back_come come;
    unsigned char theirs[64], tape[512];
    int pair[2], came = 0;
    (void)state;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (rnl_back_open(epoll, &b) < 0) {
        close(epoll);
        skip();
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct rnl_channel *c = rnl_channel_new(pair[0], 0, b->at.key);
    int fd = dial(b);
    for (int i = 0; i < 200 && guests(b) == 0; i++)
        serve(b, 1, &come), poll(NULL, 0, 1);
    assert_int_equal(recv(fd, theirs, 32, MSG_WAITALL), 32); /* we are in between, and hand it on */
    assert_int_equal(send(pair[1], theirs, 32, MSG_NOSIGNAL), 32);
    assert_int_equal(rnl_channel_step(c), RNL_CHANNEL_WAITS);
    ssize_t n = recv(pair[1], tape, sizeof tape, 0);
    assert_int_equal(n, 88);
    for (int again = 0; again < 2; again++) {
        if (again) {
            fd = dial(b);
            for (int i = 0; i < 200 && guests(b) == 0; i++)
                serve(b, 1, &come), poll(NULL, 0, 1);
            assert_int_equal(recv(fd, theirs, 32, MSG_WAITALL), 32);
        }
        assert_int_equal(send(fd, tape, (size_t)n, MSG_NOSIGNAL), n);
        for (int i = 0; i < 50; i++)
            came |= serve(b, 1, &come), poll(NULL, 0, 1);
        assert_int_equal(guests(b), !again); /* the first time it is the agent's own proof */
        close(fd);
        for (int i = 0; i < 200 && guests(b) > 0; i++)
            came |= serve(b, 1, &come), poll(NULL, 0, 1);
    }
    assert_int_equal(came, 0);
    rnl_channel_free(c);
    close(pair[1]);
    rnl_back_close(b);
    close(epoll);
}

/* Who only holds connections holds nobody off for long. */
static void silent_strangers_make_room(void **state)
{
    struct rnl_back *b;
    struct rnl_back_come come;
    int held[3 * RNL_BACK_GUESTS];
    (void)state;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (rnl_back_open(epoll, &b) < 0) {
        close(epoll);
        skip();
    }
    for (int i = 0; i < 3 * RNL_BACK_GUESTS; i++) {
        held[i] = dial(b);
        poll(NULL, 0, 1);
        assert_int_equal(serve(b, 1, &come), 0);
    }
    assert_int_equal(guests(b), RNL_BACK_GUESTS);
    assert_int_equal(come_with(b, b->at.key, &come), 1);
    rnl_channel_free(come.channel);
    for (int i = 0; i < 3 * RNL_BACK_GUESTS; i++)
        close(held[i]);
    rnl_back_close(b);
    close(epoll);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_or_doubled),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(what_may_not_come_again_is_not_kept),
        cmocka_unit_test(who_hears_pings_stays),
        cmocka_unit_test(silence_is_followed_by_tries_until_it_ends),
        cmocka_unit_test(every_wait_has_a_bound),
        cmocka_unit_test(frames_survive_their_connections),
        cmocka_unit_test(who_sends_nothing_new_keeps_little),
        cmocka_unit_test(only_who_has_the_key_comes_back),
        cmocka_unit_test(what_was_recorded_is_of_no_use),
        cmocka_unit_test(silent_strangers_make_room),
    };
    signal(SIGPIPE, SIG_IGN); /* as in the launcher */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
