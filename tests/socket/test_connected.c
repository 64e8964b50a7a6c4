/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_connected.c - the sockets that are connected to peers (net/socket/kernel_pool.c), when the way to a peer
 * changes: another peer has another source address, an address is gone, the kernel refuses to send by one of them. */
#include "runnel/runnel.h"
#include "socket/kernel_fixture.h"
#include "support/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    HOTS = 4,    /* connected sockets */
    CALLS = 20,  /* enough to get one */
    IDLE = 5000, /* calls to one peer: the sockets of the others are free */
    PEERS = 12,  /* some have no place of their own in the table of those that are called often */
    WAIT_MS = 2000,
    OPTIONAL = 1 + HOTS + 1 /* descriptors of a socket beside its first: an epoll, the connected ones, a ring */
};

/* "::", "::1", "127.0.0.1" and the like. */
static struct rnl_socket_addr address(const char *text)
{
    struct rnl_socket_addr a = {.port = 0};
    char mapped[64];
    (void)snprintf(mapped, sizeof mapped, "::ffff:%s", text);
    TEST_MUST(inet_pton(AF_INET6, strchr(text, ':') ? text : mapped, a.ip) == 1);
    return a;
}

static struct rnl_socket *open_at(const char *text)
{
    struct rnl_socket_addr a = address(text);
    struct rnl_socket *s = NULL;
    TEST_MUST(rnl_kernel_socket_open(&a, NULL, &s) == 0);
    return s;
}

static uint32_t connects(const struct rnl_socket *s)
{
    return facts_of(s).connects;
}

static void say(struct rnl_socket *s, const struct rnl_socket_addr *to, uint32_t what)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = *to, .at = &what, .bytes = sizeof what};
    TEST_MUST(s->ops->send(s, &o, 1, &r) == 1);
}

/* The next that comes is `what`: where it is from. */
static struct rnl_socket_addr hear(struct rnl_socket *s, uint32_t what)
{
    static unsigned char room[65536];
    struct rnl_socket_in in = {.at = room, .room = sizeof room};
    int got = 0;
    for (int tries = 0; got == 0 && tries < WAIT_MS; tries++)
        if ((got = s->ops->recv(s, &in, 1)) == 0)
            test_sleep_ms(1);
    TEST_MUST(got == 1 && in.bytes == sizeof what && memcmp(room, &what, sizeof what) == 0);
    return in.from;
}

/* It hears the hub from `source`, and is heard from there. */
static void talk(struct rnl_socket *hub, struct rnl_socket *peer, const char *source, uint32_t what)
{
    struct rnl_socket_addr want = address(source);
    want.port = hub->self.port;
    say(hub, &peer->self, what);
    struct rnl_socket_addr from = hear(peer, what);
    TEST_MUST(rnl_socket_addr_equal(&from, &want));
    say(peer, &from, ~what);
    from = hear(hub, ~what);
    TEST_MUST(rnl_socket_addr_equal(&from, &peer->self));
}

/* Of peers there, opened one by one: the one whose socket is the n-th that is connected. The others are closed. */
static struct rnl_socket *nth_connected(struct rnl_socket *hub, const char *there, const char *source, uint32_t n)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        struct rnl_socket *peer = open_at(there);
        for (uint32_t k = 0; k < CALLS; k++)
            talk(hub, peer, source, k);
        if (connects(hub) == n)
            return peer;
        peer->ops->close(peer);
    }
    TEST_MUST(!"a peer that is sent to often has a socket");
    return NULL;
}

/* Sockets that were connected there and there first go on to others. */
static void move_to(struct rnl_socket *hub, const char *first, const char *first_source, const char *then,
                    const char *then_source)
{
    struct rnl_socket *peer[HOTS];
    uint32_t n = connects(hub);
    for (uint32_t i = 0; i < HOTS; i++)
        peer[i] = nth_connected(hub, first, first_source, ++n);
    for (uint32_t i = 0; i < IDLE; i++) {
        say(hub, &peer[HOTS - 1]->self, i);
        (void)hear(peer[HOTS - 1], i);
    }
    struct rnl_socket *next = nth_connected(hub, then, then_source, ++n);
    for (uint32_t i = 0; i < CALLS; i++) {
        talk(hub, next, then_source, i);
        for (uint32_t k = 0; k < HOTS; k++)
            talk(hub, peer[k], first_source, k);
    }
    next->ops->close(next);
    for (uint32_t i = 0; i < HOTS; i++)
        peer[i]->ops->close(peer[i]);
}

static void skip_without_sockets(void)
{
    struct rnl_kernel_facts f;
    struct rnl_socket *s = open_at("127.0.0.1");
    rnl_kernel_socket_facts(s, &f);
    s->ops->close(s);
    if (!(f.features & RNL_KERNEL_CONNECT)) {
        print_message("skip: this kernel has no epoll\n");
        skip();
    }
}

static void a_socket_goes_from_one_family_to_the_other(void **state)
{
    struct rnl_socket_addr six = address("::1");
    struct rnl_socket *hub = NULL;
    (void)state;
    skip_without_sockets();
    if (rnl_kernel_socket_open(&six, NULL, &hub) < 0) {
        print_message("skip: no IPv6 loopback here\n");
        skip();
    }
    hub->ops->close(hub);
    hub = open_at("::");
    move_to(hub, "127.0.0.1", "127.0.0.1", "::1", "::1");
    hub->ops->close(hub);
    hub = open_at("::");
    move_to(hub, "::1", "::1", "127.0.0.1", "127.0.0.1");
    hub->ops->close(hub);
}

/* ---- in a network of our own ---- */

enum { CHILD_CANNOT = 100 };

/* Each alias of the loopback interface has one address, of so many bits; they all are reached from it. NULL: gone. */
static int set_alias(const char *alias, const char *text, unsigned bits)
{
    struct ifreq r = {.ifr_flags = 0};
    struct sockaddr_in in = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0), failed;
    (void)snprintf(r.ifr_name, sizeof r.ifr_name, "%s", alias);
    if (text) {
        failed = inet_pton(AF_INET, text, &in.sin_addr) != 1;
        memcpy(&r.ifr_addr, &in, sizeof in);
        failed |= ioctl(fd, SIOCSIFADDR, &r);
        in.sin_addr.s_addr = htonl(~0u << (32 - bits));
        memcpy(&r.ifr_netmask, &in, sizeof in);
        failed |= ioctl(fd, SIOCSIFNETMASK, &r);
        r.ifr_flags = IFF_UP | IFF_RUNNING;
    } else {
        failed = 0;
        r.ifr_flags = 0; /* an alias that is down has no address */
    }
    failed |= ioctl(fd, SIOCSIFFLAGS, &r);
    close(fd);
    return failed;
}

/* `what` in a process and a network of its own. */
static void in_a_network_of_our_own(void (*what)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if ((unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) || set_alias("lo", "127.0.0.1", 8) ||
            set_alias("lo:1", "10.77.0.1", 24))
            _exit(CHILD_CANNOT);
        what();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_CANNOT) {
        print_message("skip: no network of one's own here\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void move_between_sources(void)
{
    struct rnl_socket *hub = open_at("0.0.0.0");
    move_to(hub, "127.0.0.1", "127.0.0.1", "10.77.0.200", "10.77.0.1");
    hub->ops->close(hub);
}

static void a_socket_takes_the_source_address_of_its_next_peer(void **state)
{
    (void)state;
    skip_without_sockets();
    in_a_network_of_our_own(move_between_sources);
}

static uint32_t claims(const void *at, uint32_t bytes)
{
    (void)at;
    return bytes;
}

/* Calls in vain get no socket: one that is connected to nobody would hear all, and take it to be from nobody. */
static void send_where_no_way_is(void)
{
    const struct rnl_kernel_options o = {.claims = claims};
    struct rnl_socket_addr any = address("0.0.0.0"), nobody = address("192.0.2.1");
    struct rnl_socket *hub = NULL, *peer = open_at("127.0.0.1");
    struct rnl_socket_result r;
    nobody.port = 9;
    TEST_MUST(rnl_kernel_socket_open(&any, &o, &hub) == 0);
    struct rnl_socket_addr to = address("127.0.0.1");
    to.port = hub->self.port;
    for (uint32_t i = 0; i < CALLS; i++) {
        const struct rnl_socket_out out = {.to = nobody, .at = &i, .bytes = sizeof i};
        TEST_MUST(hub->ops->send(hub, &out, 1, &r) == 0 && r.stop == RNL_SOCKET_UNREACHABLE);
        struct rnl_socket_in in = {.room = 0};
        TEST_MUST(hub->ops->recv(hub, &in, 1) == 0);
    }
    for (uint32_t i = 0; i < 3 * CALLS; i++) {
        say(peer, &to, i);
        struct rnl_socket_addr from = hear(hub, i);
        TEST_MUST(rnl_socket_addr_equal(&from, &peer->self));
    }
    TEST_MUST(connects(hub) == 0);
    peer->ops->close(peer);
    hub->ops->close(hub);
}

static void who_has_no_way_gets_no_socket(void **state)
{
    (void)state;
    skip_without_sockets();
    in_a_network_of_our_own(send_where_no_way_is);
}

/* ---- a socket by which nothing leaves ---- */

/* Three peers have sockets, that of the first does not send any more. All are heard and reached as before. */
static void send_by_the_others(int error)
{
    enum { THREE = 3, CALLS_TO_ONE = 8 /* kernel_pool.c */ };
    struct rnl_socket *hub = open_at("127.0.0.1"), *peer[THREE];
    for (uint32_t i = 0; i < THREE; i++)
        peer[i] = nth_connected(hub, "127.0.0.1", "127.0.0.1", i + 1);
    if (let_fail(SYS_sendto, error, 0, connected_to(&peer[0]->self), 5, 0))
        _exit(CHILD_CANNOT);
    for (uint32_t round = 0; round < CALLS; round++)
        for (uint32_t i = 0; i < THREE; i++)
            talk(hub, peer[i], "127.0.0.1", round);
    /* Its next one has the same descriptor: it did not send either. */
    TEST_MUST(connects(hub) >= THREE + 1 && connects(hub) <= THREE + CALLS / CALLS_TO_ONE);
}

static void an_error_of_a_connected_socket_is_not_the_peers(void **state)
{
    static const int errors[] = {EINVAL, EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH};
    (void)state;
    skip_without_sockets();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            send_by_the_others(errors[i]);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_CANNOT) {
            print_message("skip: no filters on system calls here\n");
            skip();
        }
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* ---- descriptors ---- */

static uint32_t can_be_opened(void)
{
    int fd[FDS];
    uint32_t n = 0;
    while (n < FDS && (fd[n] = dup(0)) >= 0)
        n++;
    for (uint32_t i = 0; i < n; i++)
        close(fd[i]);
    return n;
}

/* So many can be opened from now on. */
static void leave(uint32_t n)
{
    struct rlimit l;
    TEST_MUST(getrlimit(RLIMIT_NOFILE, &l) == 0);
    for (l.rlim_cur = 0; l.rlim_cur < FDS; l.rlim_cur++) {
        TEST_MUST(setrlimit(RLIMIT_NOFILE, &l) == 0);
        if (can_be_opened() == n)
            return;
    }
    TEST_MUST(!"so many can be opened");
}

static void the_last_descriptors_are_left_to_the_program(void **state)
{
    (void)state;
    skip_without_sockets();
    const struct rnl_kernel_options bare = {.without = RNL_KERNEL_CONNECT | RNL_KERNEL_BELL};
    const struct rnl_socket_addr a = address("127.0.0.1");
    struct rnl_socket *peer[PEERS];
    struct rlimit whole;
    TEST_MUST(getrlimit(RLIMIT_NOFILE, &whole) == 0);
    for (uint32_t i = 0; i < PEERS; i++)
        TEST_MUST(rnl_kernel_socket_open(&a, &bare, &peer[i]) == 0);
    for (uint32_t n = 1; n <= RNL_KERNEL_SPARE + OPTIONAL + 3; n++) {
        const _Atomic uint32_t *word;
        uint32_t bits;
        leave(n);
        struct rnl_socket *hub = open_at("127.0.0.1");
        for (uint32_t i = 0; i < PEERS; i++)
            for (uint32_t k = 0; k < CALLS; k++)
                talk(hub, peer[i], "127.0.0.1", k);
        int rings = hub->ops->bell(hub, &word, &bits) != RNL_ERR_UNSUPPORTED;
        uint32_t left = can_be_opened(), own = 1, used = n - left;
        TEST_MUST(left >= (n - own < RNL_KERNEL_SPARE ? n - own : RNL_KERNEL_SPARE));
        /* And none is wasted: there is room for all of them from there on. */
        if (n >= RNL_KERNEL_SPARE + own + OPTIONAL)
            TEST_MUST(connects(hub) == HOTS && used == own + 1 + HOTS + (uint32_t)rings);
        hub->ops->close(hub);
        TEST_MUST(can_be_opened() == n);
    }
    TEST_MUST(setrlimit(RLIMIT_NOFILE, &whole) == 0);
    for (uint32_t i = 0; i < PEERS; i++)
        peer[i]->ops->close(peer[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_goes_from_one_family_to_the_other),
        cmocka_unit_test(a_socket_takes_the_source_address_of_its_next_peer),
        cmocka_unit_test(who_has_no_way_gets_no_socket),
        cmocka_unit_test(the_last_descriptors_are_left_to_the_program),
        cmocka_unit_test(an_error_of_a_connected_socket_is_not_the_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
