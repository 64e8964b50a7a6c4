/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Introductions against peers, daemons and users that do not keep to the rules: nobody speaks for anybody else. Root
 * alone can play other users; what needs them is left out otherwise. */
#include "meet/played.h"

#include <sched.h>

enum { STRANGER = 1234, GROUP = 4242 };

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WORLD_MOST; i++)
        world_close(i);
    return 0;
}

#define NEEDS_ROOT()        \
    do {                    \
        if (geteuid() != 0) \
            skip();         \
    } while (0)

static void name_daemons(void)
{
    char name[32];
    snprintf(name, sizeof name, "p%d", (int)getpid());
    setenv("RUNNEL_DAEMON", name, 1);
}

/* Takes in the caller that comes, and hears it greet. */
static int greeted(int listener)
{
    int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    TEST_MUST(sock >= 0);
    (void)played_hear(sock, RNL_MEET_FROM_RANK, RNL_MEET_GREET, NULL);
    return sock;
}

static int daemon_at(uid_t uid)
{
    char name[80];
    snprintf(name, sizeof name, "runnel-daemon-%s-%u", getenv("RUNNEL_DAEMON"), (unsigned)uid);
    return played_daemon(name);
}

static void own_daemon(int listener, int *tickets, int *said)
{
    int sock = greeted(listener);
    const struct rnl_meet_msg serve = played_hear(sock, RNL_MEET_FROM_RANK, RNL_MEET_SERVE, NULL);
    const uint32_t request_id = serve.u.serve.request_id;
    struct rnl_meet_msg result = {.kind = RNL_MEET_RESULT, .u.result = {.request_id = request_id}};
    TEST_MUST(write(tickets[1], &request_id, sizeof request_id) == sizeof request_id);
    await_byte(said[0]);
    test_sleep_ms(50); /* the endpoint has read what the other daemon said */
    played_say(sock, &result, -1);
    for (;;)
        pause();
}

static void foreign_daemon(int ready, int *tickets, int *said)
{
    int own;
    uint32_t request_id;
    become(STRANGER, 0);
    int listener = daemon_at(STRANGER);
    TEST_MUST(write(ready, "", 1) == 1);
    int sock = greeted(listener);
    TEST_MUST(read(tickets[0], &request_id, sizeof request_id) == sizeof request_id);
    struct rnl_meet_msg result = {.kind = RNL_MEET_RESULT,
                                  .u.result = {.request_id = request_id, .status = RNL_ERR_REFUSED}};
    struct rnl_meet_msg request = {.kind = RNL_MEET_REQUEST, .u.request = {.request_id = request_id, .uid = STRANGER}};
    played_say(sock, &request, played_offer(&own));
    played_say(sock, &result, -1);
    TEST_MUST(write(said[1], "", 1) == 1);
    for (;;)
        pause();
}

static void a_foreign_daemon_speaks_of_no_service_of_ours(void **state)
{
    (void)state;
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    int ready[2], tickets[2], said[2];
    unsigned peer;
    char reached[32];
    NEEDS_ROOT();
    name_daemons();
    TEST_MUST(pipe(ready) == 0 && pipe(tickets) == 0 && pipe(said) == 0);
    pid_t foreign = fork_bounded();
    if (foreign == 0)
        foreign_daemon(ready[1], tickets, said);
    await_byte(ready[0]);
    int listener = daemon_at(geteuid());
    pid_t own = fork_bounded();
    if (own == 0)
        own_daemon(listener, tickets, said);
    close(listener);
    world_open(0, 0);
    snprintf(reached, sizeof reached, "%d/x", STRANGER);
    assert_int_equal(rnl_reach(world[0].ep, reached, 0, &peer), 0);
    /* RESULT of the foreign daemon comes first, with the right request_id. */
    assert_int_equal(rnl_serve(world[0].ep, "kv", &anyone, on_request, &world[0]), 0);
    for (int i = 0; i < 100; i++)
        world_turn();
    assert_int_equal(world[0].requests, 0);
    end_child(foreign);
    end_child(own);
}

/* The own daemon gives the service a stranger whom it does not admit. */
static void careless_daemon(int listener, int *socks)
{
    int sock = greeted(listener), own;
    const struct rnl_meet_msg serve = played_hear(sock, RNL_MEET_FROM_RANK, RNL_MEET_SERVE, NULL);
    struct rnl_meet_msg result = {.kind = RNL_MEET_RESULT, .u.result = {.request_id = serve.u.serve.request_id}};
    struct rnl_meet_msg request = {.kind = RNL_MEET_REQUEST,
                                   .u.request = {.request_id = serve.u.serve.request_id, .uid = STRANGER}};
    played_say(sock, &result, -1);
    pid_t stranger = fork_bounded();
    if (stranger == 0) {
        become(STRANGER, 0);
        played_say(sock, &request, played_offer(&own));
        (void)played_hear(own, RNL_MEET_FROM_PEER, RNL_MEET_DENIED, NULL);
        TEST_MUST(write(socks[1], "", 1) == 1);
        _exit(0);
    }
    TEST_MUST(waitpid(stranger, NULL, 0) == stranger);
    for (;;)
        pause();
}

static void a_service_asks_itself_whom_it_admits(void **state)
{
    (void)state;
    int told[2];
    NEEDS_ROOT();
    name_daemons();
    TEST_MUST(pipe2(told, O_NONBLOCK) == 0);
    int listener = daemon_at(geteuid());
    pid_t own = fork_bounded();
    if (own == 0)
        careless_daemon(listener, told);
    close(listener);
    world_open(0, 0);
    assert_int_equal(rnl_serve(world[0].ep, "kv", NULL, on_request, &world[0]), 0);
    char c;
    UNTIL(read(told[0], &c, 1) == 1);
    assert_int_equal(world[0].requests, 0);
    end_child(own);
}

/* ---- one process does not speak for another ---- */

static void what_a_child_of_the_peer_says_counts_for_nothing(void **state)
{
    (void)state;
    static const enum rnl_meet_kind kinds[] = {RNL_MEET_LEAVE, RNL_MEET_BROKE};
    for (unsigned k = 0; k < 2; k++) {
        const struct rnl_meet_msg msg = {.kind = kinds[k]};
        unsigned peer;
        world_open(0, 0);
        int sock = played_introduction(0, &peer);
        played_accept(sock);
        UNTIL(is_up(0, peer));
        pid_t child = fork_bounded();
        if (child == 0) {
            played_say(sock, &msg, -1);
            _exit(0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        for (int i = 0; i < 100; i++)
            world_turn();
        test_sleep_ms(2);
        world_turn();
        assert_true(is_up(0, peer));
        played_say(sock, &msg, -1);
        UNTIL(world[0].deaths == 1);
        assert_int_equal(world[0].why, k ? RNL_DEATH_DISCONNECTED : RNL_DEATH_LEFT);
        close(sock);
        world_close(0);
    }
}

/* The peer greets and ends; its child holds the socket. Its number may be another process's by the time it is read. */
static void a_peer_that_has_ended_before_its_greeting_is_read_is_dead(void **state)
{
    (void)state;
    for (int accepts = 0; accepts < 2; accepts++) {
        int pair[2], hold[2];
        unsigned peer;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(pipe(hold), 0);
        world_open(0, 0);
        int status = rnl_introduce(world[0].ep, pair[0], accepts ? RNL_ACCEPT : RNL_OFFER, NULL, 0, &peer);
        assert_int_equal(status, 0);
        pid_t child = fork_bounded();
        if (child == 0) {
            unsigned a;
            close(hold[1]);
            world_open(1, 0);
            TEST_MUST(rnl_introduce(world[1].ep, pair[1], accepts ? RNL_OFFER : RNL_ACCEPT, NULL, 0, &a) == 0);
            for (int i = 0; i < 50; i++)
                (void)!rnl_extract(world[1].ep, SIZE_MAX);
            if (fork_bounded() == 0)
                (void)!read(hold[0], &a, 1);
            _exit(0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        UNTIL(world[0].deaths == 1);
        assert_int_equal(world[0].why, RNL_DEATH_EXIT);
        close(hold[0]);
        close(hold[1]);
        close(pair[0]);
        close(pair[1]);
        world_close(0);
    }
}

/* ---- other users ---- */

/* A process of the stranger, in a supplementary group, that inserts the address `count` times with an endpoint each,
 * and stays until it is killed. It has said how many of them were let in. */
static pid_t insert_as_stranger(const char *address, unsigned count, int tell)
{
    pid_t pid = fork_bounded();
    if (pid != 0)
        return pid;
    unsigned char in = 0;
    become(STRANGER, GROUP);
    for (unsigned i = 0; i < count; i++) {
        const struct rnl_options opt = {.size = sizeof opt, .flags = RNL_ALONE, .peers = 1};
        struct rnl_peer_info info = {.state = RNL_PEER_NEW};
        rnl_endpoint *ep;
        unsigned peer;
        TEST_MUST(rnl_open(&ep, &opt) == 0);
        if (rnl_insert(ep, address, &peer) < 0)
            continue;
        while (info.state == RNL_PEER_NEW)
            TEST_MUST(rnl_extract(ep, SIZE_MAX) >= 0 && rnl_peer(ep, peer, &info) == 0);
        in += info.state == RNL_PEER_UP;
    }
    TEST_MUST(write(tell, &in, 1) == 1);
    for (;;)
        pause();
}

static void a_supplementary_group_is_admitted_by_address(void **state)
{
    (void)state;
    const gid_t gid = GROUP, other = GROUP + 1;
    struct rnl_admit who = {.gids = 1, .gid = &other};
    char address[RNL_ADDRESS_BYTES];
    NEEDS_ROOT();
    for (unsigned char in = 0; in < 2; in++) {
        unsigned char got = 9;
        int told[2];
        assert_int_equal(pipe2(told, O_NONBLOCK), 0);
        world_open(0, 0);
        assert_int_equal(rnl_address(world[0].ep, &who, NULL, NULL, address, sizeof address), 0);
        pid_t stranger = insert_as_stranger(address, 1, told[1]);
        UNTIL(read(told[0], &got, 1) == 1);
        assert_int_equal(got, in);
        end_child(stranger);
        world_close(0);
        who.gid = &gid;
    }
}

static void a_supplementary_group_is_admitted_through_a_socket_that_its_process_offers(void **state)
{
    (void)state;
    const gid_t gid = GROUP;
    const struct rnl_admit who = {.gids = 1, .gid = &gid};
    int pair[2];
    unsigned peer;
    struct rnl_cred cred;
    NEEDS_ROOT();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = fork_bounded();
    if (pid == 0) {
        const uid_t root = 0;
        const struct rnl_admit to = {.uids = 1, .uid = &root};
        unsigned a;
        become(STRANGER, GROUP);
        world_open(1, 0);
        TEST_MUST(rnl_introduce(world[1].ep, pair[1], RNL_OFFER, &to, -1, &a) == 0);
        for (;;)
            pause();
    }
    world_open(0, 0);
    assert_int_equal(rnl_introduce(world[0].ep, pair[0], RNL_ACCEPT, &who, (int64_t)60 * 1000000000, &peer), 0);
    assert_int_equal(rnl_peer_cred(world[0].ep, peer, &cred), 0);
    assert_int_equal(cred.uid, STRANGER);
    end_child(pid);
    close(pair[0]);
    close(pair[1]);
}

static void a_user_has_a_quarter_of_the_numbers(void **state)
{
    (void)state;
    enum { PEERS = 16 };
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    char address[RNL_ADDRESS_BYTES];
    unsigned char in = 0;
    unsigned b;
    int told[2];
    NEEDS_ROOT();
    assert_int_equal(pipe2(told, O_NONBLOCK), 0);
    world_open(0, PEERS);
    assert_int_equal(rnl_address(world[0].ep, &anyone, NULL, NULL, address, sizeof address), 0);
    pid_t stranger = insert_as_stranger(address, PEERS, told[1]);
    UNTIL(read(told[0], &in, 1) == 1);
    assert_int_equal(in, PEERS / 4);
    world_open(1, 0);
    assert_int_equal(rnl_insert(world[1].ep, address, &b), 0);
    UNTIL(is_up(1, b));
    end_child(stranger);
}

/* In a namespace that has root alone, every other user looks like 65534. */
static void a_user_whom_the_namespace_does_not_have_is_nobody(void **state)
{
    (void)state;
    int address_pipe[2], told[2], status;
    NEEDS_ROOT();
    assert_int_equal(pipe(address_pipe), 0);
    assert_int_equal(pipe(told), 0);
    pid_t inside = fork_bounded();
    if (inside == 0) {
        const uid_t overflow = 65534;
        const struct rnl_admit who = {.uids = 1, .uid = &overflow};
        char address[RNL_ADDRESS_BYTES];
        if (unshare(CLONE_NEWUSER) < 0)
            _exit(77);
        int map = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
        if (map < 0 || write(map, "0 0 1\n", 6) != 6)
            _exit(77);
        int groups = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
        map = open("/proc/self/gid_map", O_WRONLY | O_CLOEXEC); /* else its own group could not be said */
        if (groups < 0 || write(groups, "deny", 4) != 4 || map < 0 || write(map, "0 0 1\n", 6) != 6)
            _exit(77);
        world_open(0, 0);
        TEST_MUST(rnl_address(world[0].ep, &who, NULL, NULL, address, sizeof address) == 0);
        TEST_MUST(write(address_pipe[1], address, sizeof address) == sizeof address);
        close(address_pipe[1]);
        for (;;)
            (void)!rnl_wait(world[0].ep, -1);
    }
    close(address_pipe[1]);
    char address[RNL_ADDRESS_BYTES];
    if (read(address_pipe[0], address, sizeof address) != sizeof address) {
        assert_int_equal(waitpid(inside, &status, 0), inside);
        assert_int_equal(WEXITSTATUS(status), 77);
        skip();
    }
    pid_t stranger = insert_as_stranger(address, 1, told[1]);
    unsigned char in = 9;
    assert_int_equal(read(told[0], &in, 1), 1);
    assert_int_equal(in, 0);
    end_child(stranger);
    end_child(inside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_foreign_daemon_speaks_of_no_service_of_ours, teardown),
        cmocka_unit_test_teardown(a_service_asks_itself_whom_it_admits, teardown),
        cmocka_unit_test_teardown(what_a_child_of_the_peer_says_counts_for_nothing, teardown),
        cmocka_unit_test_teardown(a_peer_that_has_ended_before_its_greeting_is_read_is_dead, teardown),
        cmocka_unit_test_teardown(a_supplementary_group_is_admitted_by_address, teardown),
        cmocka_unit_test_teardown(a_supplementary_group_is_admitted_through_a_socket_that_its_process_offers, teardown),
        cmocka_unit_test_teardown(a_user_has_a_quarter_of_the_numbers, teardown),
        cmocka_unit_test_teardown(a_user_whom_the_namespace_does_not_have_is_nobody, teardown),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
