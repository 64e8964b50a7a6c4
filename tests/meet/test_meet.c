/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Introductions: endpoints of one process become each other's peers by a socket, an address and a service, talk, leave,
 * and come again. */
#include "meet/world.h"

#include "runnel/adapter.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void close_all(void)
{
    for (unsigned i = 0; i < WORLD_MOST; i++)
        world_close(i);
    rnl_daemon_free(world_daemon);
    world_daemon = NULL;
}

static int teardown(void **state)
{
    (void)state;
    close_all();
    return 0;
}

/* Introduces endpoints a and b through a socket of the program. */
static void introduce(unsigned a, unsigned b, int type, unsigned *of_b, unsigned *of_a)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, type, 0, pair), 0);
    assert_int_equal(rnl_introduce(world[a].ep, pair[0], RNL_OFFER, NULL, 0, of_b), 0);
    assert_int_equal(rnl_introduce(world[b].ep, pair[1], RNL_ACCEPT, NULL, 0, of_a), 0);
    UNTIL(is_up(a, *of_b) && is_up(b, *of_a));
    assert_int_equal(send(pair[0], "own", 4, 0), 4); /* the socket is the program's again */
    char word[8];
    assert_int_equal(recv(pair[1], word, sizeof word, 0), 4);
    close(pair[0]);
    close(pair[1]);
}

static void peers_of_a_socket_talk_both_ways(void **state)
{
    (void)state;
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
    for (unsigned t = 0; t < 2; t++) {
        unsigned b, a;
        world_open(0, 0);
        world_open(1, 0);
        introduce(0, 1, types[t], &b, &a);
        say(0, b, "to b");
        say(1, a, "to a");
        UNTIL(world[0].count == 1 && world[1].count == 1);
        assert_string_equal(world[1].text, "to b");
        assert_string_equal(world[0].text, "to a");
        assert_int_equal(world[1].from, a);
        assert_int_equal(world[0].from, b);
        close_all();
    }
}

static void an_endpoint_alone_has_no_job_and_knows_where_its_peers_are(void **state)
{
    static const unsigned char none[16];
    (void)state;
    unsigned a, b;
    unsigned char id[16] = "not the same";
    struct rnl_place place = {.size = sizeof place};
    world_open(0, 0);
    world_open(1, 0);
    assert_int_equal(rnl_job_id(world[0].ep, id), 0);
    assert_memory_equal(id, none, sizeof id);
    assert_int_equal(rnl_peer_place(world[0].ep, 1, &place), RNL_ERR_RANK); /* nobody was introduced yet */
    introduce(0, 1, SOCK_STREAM, &b, &a);
    assert_int_equal(rnl_peer_place(world[0].ep, b, &place), 0);
    assert_int_equal(place.where, RNL_IN_PROCESS);
    assert_int_equal(place.pid, getpid());
    assert_int_equal(rnl_peer_place(world[0].ep, 0, &place), 0);
    assert_int_equal(place.pid, getpid());
}

static void posted(void *arg, int status)
{
    *(int *)arg = status;
}

static void a_long_message_arrives_whole(void **state)
{
    (void)state;
    unsigned a, b;
    int status = 1;
    unsigned char *at = malloc(WORLD_LONG);
    for (size_t i = 0; i < WORLD_LONG; i++)
        at[i] = (unsigned char)(i * 7 + i / 251);
    world_open(0, 0);
    world_open(1, 0);
    introduce(0, 1, SOCK_SEQPACKET, &b, &a);
    const struct rnl_message begin = {.peer = b, .handler = WORLD_WHOLE, .bound = WORLD_LONG};
    const struct rnl_buffer piece = {at, WORLD_LONG};
    assert_int_equal(rnl_post(world[0].ep, &begin, &piece, 1, posted, &status), 0);
    UNTIL(status != 1 && world[1].bytes == WORLD_LONG);
    assert_int_equal(status, 0);
    free(at);
}

static void a_peer_is_told_with_its_credentials(void **state)
{
    (void)state;
    unsigned a, b;
    struct rnl_cred cred;
    world_open(0, 0);
    world_open(1, 0);
    introduce(0, 1, SOCK_STREAM, &b, &a);
    assert_int_equal(rnl_peer_cred(world[0].ep, b, &cred), 0);
    assert_int_equal(cred.uid, geteuid());
    assert_int_equal(cred.gid, getegid());
    assert_int_equal(cred.pid, getpid());
    assert_int_equal(rnl_peer_cred(world[0].ep, b + 1, &cred), RNL_ERR_RANK);
    assert_int_equal(rnl_peer_cred(world[0].ep, 100000, &cred), RNL_ERR_RANK);
}

static void who_is_left_takes_in_what_was_sent_and_then_the_death(void **state)
{
    (void)state;
    unsigned a, b;
    world_open(0, 0);
    world_open(1, 0);
    introduce(0, 1, SOCK_STREAM, &b, &a);
    say(0, b, "last words");
    assert_int_equal(rnl_leave(world[0].ep, b), 0);
    assert_int_equal(rnl_leave(world[0].ep, b), RNL_ERR_RANK);
    assert_int_equal(rnl_send(world[0].ep, b, WORLD_COUNT, "x", 1), RNL_ERR_RANK);
    UNTIL(world[1].deaths == 1);
    assert_string_equal(world[1].text, "last words");
    assert_int_equal(world[1].died, a);
    assert_int_equal(world[1].why, RNL_DEATH_LEFT);
    assert_int_equal(rnl_send(world[1].ep, a, WORLD_COUNT, "x", 1), RNL_ERR_PEER_DEAD);
    assert_int_equal(rnl_leave(world[1].ep, a), 0);
    for (int i = 0; i < 100; i++)
        world_turn();
    assert_int_equal(world[0].deaths, 0); /* who leaves is not told of it */
    assert_int_equal(rnl_send(world[1].ep, a, WORLD_COUNT, "x", 1), RNL_ERR_RANK);
}

static void a_number_is_used_again_with_another_incarnation(void **state)
{
    (void)state;
    struct rnl_peer_info info;
    uint64_t before = 0;
    world_open(0, 1);
    world[0].leaves_the_dead = true;
    for (unsigned i = 0; i < 40; i++) {
        unsigned a, b;
        char text[16];
        world_open(1, 0);
        introduce(i & 1, !(i & 1), i & 2 ? SOCK_STREAM : SOCK_SEQPACKET, i & 1 ? &a : &b, i & 1 ? &b : &a);
        assert_int_equal(b, 1);
        assert_int_equal(rnl_peer(world[0].ep, b, &info), 0);
        assert_true(info.incarnation > before);
        before = info.incarnation;
        snprintf(text, sizeof text, "round %u", i);
        say(1, a, text);
        say(0, b, "hello");
        if (i % 3 == 0) { /* the message is in no hand when its receiver leaves */
            assert_int_equal(rnl_leave(world[0].ep, b), 0);
            UNTIL(world[1].deaths == 1);
            world_close(1);
        } else {
            UNTIL(world[1].count == 1);
            world_close(1);
            UNTIL(world[0].deaths == 1);
            assert_string_equal(world[0].text, text);
        }
        world[0].deaths = 0;
        unsigned none;
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        UNTIL(rnl_introduce(world[0].ep, pair[0], RNL_OFFER, NULL, 0, &none) == 0); /* it is free again */
        assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_OFFER, NULL, 0, &none), RNL_NO_ROOM);
        assert_int_equal(rnl_leave(world[0].ep, 1), 0);
        close(pair[0]);
        close(pair[1]);
    }
}

static void a_close_waits_for_nobody(void **state)
{
    (void)state;
    unsigned a, b;
    world_open(0, 0);
    world_open(1, 0);
    introduce(0, 1, SOCK_STREAM, &b, &a);
    say(0, b, "bye");
    world_close(0);
    assert_int_equal(world[1].count, 0);
    UNTIL(world[1].deaths == 1);
    assert_string_equal(world[1].text, "bye");
    assert_int_equal(world[1].why, RNL_DEATH_LEFT);
}

static void an_introduction_that_fails_is_a_death(void **state)
{
    (void)state;
    unsigned b;
    int pair[2];
    struct rnl_peer_info info;
    world_open(0, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_ACCEPT, NULL, 0, &b), 0);
    assert_int_equal(send(pair[1], "no introduction!", 16, 0), 16);
    UNTIL(world[0].deaths == 1);
    assert_int_equal(world[0].why, RNL_DEATH_NEVER_JOINED);
    assert_int_equal(rnl_peer(world[0].ep, b, &info), 0);
    assert_int_equal(info.detail, RNL_ERR_ARG);
    assert_int_equal(rnl_leave(world[0].ep, b), 0);
    assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_ACCEPT, NULL, 10 * 1000000, &b), RNL_TIMED_OUT);
    close(pair[1]);
    assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_ACCEPT, NULL, -1, &b), RNL_ERR_UNREACHABLE);
    close(pair[0]);
    assert_int_equal(rnl_introduce(world[0].ep, 0, RNL_ACCEPT, NULL, 0, &b), RNL_ERR_ARG);
    assert_int_equal(world[0].deaths, 1);
}

static void a_job_introduces_nobody(void **state)
{
    (void)state;
    rnl_endpoint *ep;
    unsigned peer;
    char address[RNL_ADDRESS_BYTES];
    unsetenv("RUNNEL_FD");
    assert_int_equal(rnl_open(&ep, NULL), 0);
    assert_int_equal(rnl_reach(ep, "x", 0, &peer), RNL_ERR_UNSUPPORTED);
    assert_int_equal(rnl_serve(ep, "x", NULL, NULL, NULL), RNL_ERR_UNSUPPORTED);
    assert_int_equal(rnl_leave(ep, 0), RNL_ERR_UNSUPPORTED);
    assert_int_equal(rnl_address(ep, NULL, NULL, NULL, address, sizeof address), RNL_ERR_UNSUPPORTED);
    world_open(0, 0); /* besides the endpoint of a job */
    world_open(1, 0);
    unsigned a, b;
    introduce(0, 1, SOCK_STREAM, &b, &a);
    assert_int_equal(rnl_close(ep), 0);
}

/* ---- by address ---- */

static void an_address_can_be_given_out_and_inserted(void **state)
{
    (void)state;
    char address[RNL_ADDRESS_BYTES], other[RNL_ADDRESS_BYTES];
    unsigned b, again;
    world_open(0, 0);
    world_open(1, 0);
    assert_int_equal(rnl_address(world[1].ep, NULL, on_request, &world[1], address, 20), RNL_ERR_ARG);
    assert_int_equal(rnl_address(world[1].ep, NULL, on_request, &world[1], address, sizeof address), 0);
    assert_int_equal(rnl_address(world[1].ep, NULL, on_request, &world[1], other, sizeof other), 0);
    assert_string_equal(address, other);
    assert_int_equal(rnl_insert(world[0].ep, address, &b), 0);
    assert_int_equal(rnl_insert(world[0].ep, address, &again), 0);
    assert_int_equal(b, again);
    UNTIL(is_up(0, b) && world[1].requests == 1);
    assert_int_equal(rnl_insert(world[0].ep, address, &again), 0);
    assert_int_equal(b, again);
    assert_int_equal(world[1].cred.pid, getpid());
    say(0, b, "found you");
    UNTIL(world[1].count == 1);
    assert_int_equal(world[1].from, world[1].requester);
    say(1, world[1].requester, "and I you");
    UNTIL(world[0].count == 1);
}

/* Also after its death: the address shows who it was, and asking connects nobody. */
static void a_peer_is_the_endpoint_of_its_address(void **state)
{
    (void)state;
    char at[2][RNL_ADDRESS_BYTES];
    unsigned b;
    world_open(0, 0);
    world_open(1, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rnl_address(world[i].ep, NULL, NULL, NULL, at[i], sizeof at[i]), 0);
    assert_int_equal(rnl_insert(world[0].ep, at[1], &b), 0);
    UNTIL(is_up(0, b) && is_up(1, 1));
    for (unsigned left = 0; left < 2; left++) {
        assert_int_equal(rnl_peer_is(world[1].ep, 1, at[0]), 1);
        assert_int_equal(rnl_peer_is(world[1].ep, 1, at[1]), 0);
        assert_int_equal(rnl_peer_is(world[1].ep, 0, at[1]), 1);
        assert_int_equal(rnl_peer_is(world[1].ep, 1, "nowhere"), RNL_ERR_ARG);
        assert_int_equal(rnl_peer_is(world[1].ep, 2, at[0]), RNL_ERR_RANK);
        assert_int_equal(rnl_peer_is(world[1].ep, 100000, at[0]), RNL_ERR_RANK);
        if (left == 0)
            world_close(0);
        UNTIL(world[1].deaths == 1);
    }
    assert_int_equal(rnl_leave(world[1].ep, 1), 0);
    assert_int_equal(rnl_peer_is(world[1].ep, 1, at[0]), RNL_ERR_RANK);
}

static void an_address_without_its_token_opens_nothing(void **state)
{
    (void)state;
    char address[RNL_ADDRESS_BYTES];
    unsigned b;
    world_open(0, 0);
    world_open(1, 0);
    assert_int_equal(rnl_address(world[1].ep, NULL, on_request, &world[1], address, sizeof address), 0);
    char *last = address + strcspn(address, "@") - 1; /* of the token: behind it the host may be named */
    *last = *last == '0' ? '1' : '0';
    assert_int_equal(rnl_insert(world[0].ep, address, &b), 0);
    UNTIL(world[0].deaths == 1);
    struct rnl_peer_info info;
    assert_int_equal(rnl_peer(world[0].ep, b, &info), 0);
    assert_int_equal(info.detail, RNL_ERR_REFUSED);
    assert_int_equal(world[1].requests, 0);
    assert_int_equal(rnl_insert(world[0].ep, "rnl1.0.00.00.00", &b), RNL_ERR_ARG);
    assert_int_equal(rnl_insert(world[0].ep, "", &b), RNL_ERR_ARG);
    *last = 'g';
    assert_int_equal(rnl_insert(world[0].ep, address, &b), RNL_ERR_ARG);
    *last = '0';
    *strchr(strchr(address, '.') + 1, '.') = '\0'; /* of another host */
    char away[2 * RNL_ADDRESS_BYTES];
    snprintf(away, sizeof away, "%s.0123456789abcdef.%032d.%032d", address, 0, 0);
    assert_int_equal(rnl_insert(world[0].ep, away, &b), RNL_ERR_UNREACHABLE);
}

static unsigned count_up(unsigned i)
{
    unsigned n = 0;
    for (unsigned k = 1; k < rnl_size(world[i].ep); k++)
        n += is_up(i, k);
    return n;
}

static void turn_of(unsigned i)
{
    test_sleep_ms(1); /* a look is due */
    TEST_MUST(rnl_extract(world[i].ep, SIZE_MAX) >= 0);
}

/* Two endpoints insert each other, in any order, with any turns between, once or again after one has left. */
static void who_insert_each_other_are_one_peer(void **state)
{
    (void)state;
    char address[2][RNL_ADDRESS_BYTES];
    unsigned peer[2];
    for (unsigned round = 0; round < 128; round++) {
        bool asks = round & 1, first = round >> 1 & 1, again = round >> 2 & 1, late = round >> 3 & 1;
        unsigned turns = round >> 4;
        for (unsigned i = 0; i < 2; i++) {
            world_open(i, 4);
            if (i != first || !late)
                TEST_MUST(rnl_address(world[i].ep, NULL, asks ? on_request : NULL, &world[i], address[i],
                                      RNL_ADDRESS_BYTES) == 0);
        }
        for (unsigned k = 0; k <= again; k++) {
            assert_int_equal(rnl_insert(world[first].ep, address[!first], &peer[first]), 0);
            if (turns & 1)
                turn_of(!first);
            if (turns & 2)
                turn_of(first);
            if (turns & 4)
                turn_of(!first);
            if (late)
                assert_int_equal(rnl_address(world[first].ep, NULL, asks ? on_request : NULL, &world[first],
                                             address[first], RNL_ADDRESS_BYTES),
                                 0);
            assert_int_equal(rnl_insert(world[!first].ep, address[first], &peer[!first]), 0);
            if (turns & 1)
                turn_of(first);
            UNTIL(is_up(0, peer[0]) && is_up(1, peer[1]));
            for (int i = 0; i < 4; i++)
                turn_of(i & 1);
            assert_int_equal(count_up(0) + count_up(1), 2);
            assert_int_equal(world[0].deaths + world[1].deaths, k);
            say(0, peer[0], "to 1");
            say(1, peer[1], "to 0");
            UNTIL(world[0].count == k + 1 && world[1].count == k + 1);
            assert_int_equal(world[1].from, peer[1]);
            assert_int_equal(world[0].from, peer[0]);
            if (k == again)
                continue;
            world[!first].leaves_the_dead = true;
            assert_int_equal(rnl_leave(world[first].ep, peer[first]), 0);
            if (turns & 1)
                UNTIL(world[!first].deaths == 1);
        }
        close_all();
    }
}

static void the_own_address_is_rank_0(void **state)
{
    (void)state;
    char address[RNL_ADDRESS_BYTES];
    unsigned b = 9;
    world_open(0, 0);
    assert_int_equal(rnl_address(world[0].ep, NULL, NULL, NULL, address, sizeof address), 0);
    assert_int_equal(rnl_insert(world[0].ep, address, &b), 0);
    assert_int_equal(b, 0);
}

static void an_address_ends_with_its_endpoint(void **state)
{
    (void)state;
    char address[RNL_ADDRESS_BYTES];
    unsigned b;
    world_open(0, 0);
    world_open(1, 0);
    assert_int_equal(rnl_address(world[1].ep, NULL, NULL, NULL, address, sizeof address), 0);
    world_close(1);
    assert_int_equal(rnl_insert(world[0].ep, address, &b), RNL_ERR_UNREACHABLE);
}

/* ---- processes ---- */

/* The child's endpoint is introduced through the socket, says a word, and waits to be killed. */
static void child(int sock)
{
    unsigned a;
    world_open(1, 0);
    TEST_MUST(rnl_introduce(world[1].ep, sock, RNL_ACCEPT, NULL, -1, &a) == 0);
    say(1, a, "born");
    for (;;)
        TEST_MUST(rnl_wait(world[1].ep, -1) >= 0);
}

static void a_killed_process_is_a_death_wherever_its_peer_waits(void **state)
{
    (void)state;
    for (int polls = 0; polls < 2; polls++) {
        int pair[2];
        unsigned b;
        struct rnl_cred cred;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(pair[0]);
            child(pair[1]);
        }
        close(pair[1]);
        world_open(0, 0);
        assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_OFFER, NULL, -1, &b), 0);
        UNTIL(world[0].count == 1);
        assert_string_equal(world[0].text, "born");
        assert_int_equal(rnl_peer_cred(world[0].ep, b, &cred), 0);
        assert_int_equal(cred.pid, pid);
        assert_int_equal(kill(pid, SIGKILL), 0);
        uint64_t since = test_now_ns();
        if (polls)
            UNTIL(world[0].deaths == 1);
        else
            while (world[0].deaths == 0)
                assert_true(rnl_wait(world[0].ep, -1) >= 0);
        assert_true(test_now_ns() - since < (uint64_t)10 * 1000000000u);
        assert_int_equal(world[0].why, RNL_DEATH_EXIT);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(pair[0]);
        world_close(0);
    }
}

static void a_forked_child_neither_holds_nor_harms_the_connection(void **state)
{
    (void)state;
    int pair[2], go[2];
    unsigned b;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        unsigned a;
        world_open(1, 0);
        TEST_MUST(rnl_introduce(world[1].ep, pair[1], RNL_ACCEPT, NULL, -1, &a) == 0);
        pid_t grandchild = fork();
        if (grandchild == 0) { /* holds all sockets of its parent, and outlives it */
            char c;
            TEST_MUST(rnl_send(world[1].ep, a, WORLD_COUNT, "x", 1) == RNL_ERR_FORKED);
            TEST_MUST(rnl_leave(world[1].ep, a) == RNL_ERR_FORKED);
            close(go[1]);
            (void)!read(go[0], &c, 1);
            _exit(0);
        }
        say(1, a, "born");
        for (;;)
            TEST_MUST(rnl_wait(world[1].ep, -1) >= 0);
    }
    close(go[0]);
    world_open(0, 0);
    assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_OFFER, NULL, -1, &b), 0);
    UNTIL(world[0].count == 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    UNTIL(world[0].deaths == 1);
    assert_int_equal(world[0].why, RNL_DEATH_EXIT);
    close(go[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(pair[0]);
    close(pair[1]);
}

static void who_waits_sleeps_and_is_woken(void **state)
{
    (void)state;
    int pair[2];
    unsigned b;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        unsigned a;
        world_open(1, 0);
        TEST_MUST(rnl_introduce(world[1].ep, pair[1], RNL_ACCEPT, NULL, -1, &a) == 0);
        for (unsigned n = 0; n < 20;) {
            unsigned before = world[1].count;
            TEST_MUST(rnl_wait(world[1].ep, -1) >= 0);
            if (world[1].count != before) {
                say(1, a, world[1].text);
                n++;
            }
        }
        (void)!rnl_wait(world[1].ep, -1);
        _exit(0);
    }
    world_open(0, 0);
    assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_OFFER, NULL, -1, &b), 0);
    uint64_t cpu = test_cpu_ns();
    for (unsigned i = 0; i < 20; i++) {
        test_sleep_ms(20); /* the child sleeps by now */
        uint64_t since = test_now_ns();
        say(0, b, "wake up");
        while (world[0].count <= i)
            assert_true(rnl_wait(world[0].ep, -1) >= 0);
        assert_true(test_now_ns() - since < (uint64_t)10 * 1000000000u);
    }
    assert_true(test_cpu_ns() - cpu < (uint64_t)5 * 1000000000u);
    world_close(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(peers_of_a_socket_talk_both_ways, teardown),
        cmocka_unit_test_teardown(an_endpoint_alone_has_no_job_and_knows_where_its_peers_are, teardown),
        cmocka_unit_test_teardown(a_long_message_arrives_whole, teardown),
        cmocka_unit_test_teardown(a_peer_is_told_with_its_credentials, teardown),
        cmocka_unit_test_teardown(who_is_left_takes_in_what_was_sent_and_then_the_death, teardown),
        cmocka_unit_test_teardown(a_number_is_used_again_with_another_incarnation, teardown),
        cmocka_unit_test_teardown(a_close_waits_for_nobody, teardown),
        cmocka_unit_test_teardown(an_introduction_that_fails_is_a_death, teardown),
        cmocka_unit_test_teardown(a_job_introduces_nobody, teardown),
        cmocka_unit_test_teardown(an_address_can_be_given_out_and_inserted, teardown),
        cmocka_unit_test_teardown(a_peer_is_the_endpoint_of_its_address, teardown),
        cmocka_unit_test_teardown(an_address_without_its_token_opens_nothing, teardown),
        cmocka_unit_test_teardown(who_insert_each_other_are_one_peer, teardown),
        cmocka_unit_test_teardown(the_own_address_is_rank_0, teardown),
        cmocka_unit_test_teardown(an_address_ends_with_its_endpoint, teardown),
        cmocka_unit_test_teardown(a_killed_process_is_a_death_wherever_its_peer_waits, teardown),
        cmocka_unit_test_teardown(a_forked_child_neither_holds_nor_harms_the_connection, teardown),
        cmocka_unit_test_teardown(who_waits_sleeps_and_is_woken, teardown),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
