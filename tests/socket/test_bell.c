/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_bell.c - sockets that announce themselves in memory (net/socket/kernel_bell.c): that nothing comes without
 * it, that to find nothing needs no call, and that all goes on where there is no io_uring, or no longer. */
#include "runnel/runnel.h"
#include "socket/kernel_fixture.h"
#include "support/random.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 20, DISTRUST = 1024, WAIT_MS = 5000, STRESS = 20000, PAUSE = 64 };
enum { CHILD_CANNOT = 77 };

static struct rnl_socket *open_at(uint16_t port, const struct rnl_kernel_options *o)
{
    struct rnl_socket_addr a = {.port = port};
    struct rnl_socket *s = NULL;
    memcpy(a.ip, (const uint8_t[16]){[10] = 0xff, 0xff, 127, 0, 0, 1}, sizeof a.ip);
    TEST_MUST(rnl_kernel_socket_open(&a, o, &s) == 0);
    return s;
}

struct bell {
    const _Atomic uint32_t *at;
    uint32_t bits;
};

static int arm(struct rnl_socket *s, struct bell *b)
{
    return s->ops->bell(s, &b->at, &b->bits);
}

static int rings(const struct bell *b)
{
    return !!(atomic_load_explicit(b->at, memory_order_relaxed) & b->bits);
}

static int can_ring(void)
{
    struct rnl_socket *s = open_at(0, NULL);
    struct bell b;
    int can = arm(s, &b) == 0;
    s->ops->close(s);
    return can;
}

static void skip_without(void)
{
    if (can_ring())
        return;
    print_message("skip: no io_uring here, or none that defers its work\n");
    skip();
}

static void say(struct rnl_socket *s, const struct rnl_socket *to, uint32_t what)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = to->self, .at = &what, .bytes = sizeof what};
    TEST_MUST(s->ops->send(s, &o, 1, &r) == 1);
}

/* One look: 1 = it brought something. */
static int look(struct rnl_socket *s, uint32_t *what)
{
    struct rnl_socket_in in = {.at = what, .room = sizeof *what};
    int got = s->ops->recv(s, &in, 1);
    TEST_MUST(got >= 0);
    return got;
}

static void must_be(struct rnl_socket *s, uint32_t expected)
{
    uint32_t what = ~expected;
    uint64_t end = test_now_ns() + (uint64_t)WAIT_MS * 1000000;
    while (!look(s, &what))
        TEST_MUST(test_now_ns() < end);
    TEST_MUST(what == expected);
}

/* Nothing more is there, and it is armed. */
static void arm_empty(struct rnl_socket *s, struct bell *b)
{
    uint32_t what;
    for (int i = 0; arm(s, b) == 1 && i < CALLS; i++)
        (void)look(s, &what);
    TEST_MUST(arm(s, b) == 0);
}

static void it_rings_for_each_that_comes(void **state)
{
    (void)state;
    skip_without();
    struct rnl_socket *a = open_at(0, NULL), *b = open_at(0, NULL);
    struct bell bell;
    uint32_t what;
    for (uint32_t i = 0; i < CALLS; i++) {
        arm_empty(b, &bell);
        assert_false(rings(&bell));
        assert_false(look(b, &what));
        say(a, b, i);
        for (int ms = 0; !rings(&bell) && ms < WAIT_MS; ms++)
            test_sleep_ms(1);
        assert_true(rings(&bell));
        assert_true(look(b, &what));
        assert_int_equal(what, i);
        say(a, b, i + 1);
        for (int ms = 0; arm(b, &bell) != 1 && ms < WAIT_MS; ms++)
            test_sleep_ms(1);
        must_be(b, i + 1);
    }
    assert_true(facts_of(b).features & RNL_KERNEL_BELL);
    assert_int_equal(facts_of(b).unrung, 0);
    a->ops->close(a);
    b->ops->close(b);
}

/* ---- a look in vain makes no call ---- */

static int allow_only(const long *call, int n)
{
    struct sock_filter f[16] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    int at = 1;
    for (int i = 0; i < n; i++) {
        f[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call[i], 0, 1);
        f[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    f[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {(unsigned short)at, f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int in_child(void (*body)(const void *), const void *arg)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(30);
        body(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_CANNOT) {
        print_message("skip: no filters on system calls here\n");
        skip();
    }
    return status;
}

static void look_only(const void *arg)
{
    static const long calls[] = {SYS_exit_group};
    struct rnl_socket *s = open_at(0, NULL);
    struct bell b;
    uint32_t what;
    (void)arg;
    arm_empty(s, &b);
    if (allow_only(calls, 1))
        _exit(CHILD_CANNOT);
    for (int i = 0; i < DISTRUST - 1; i++)
        (void)look(s, &what);
    TEST_MUST(arm(s, &b) == 0);
}

static void a_look_in_vain_makes_no_call(void **state)
{
    (void)state;
    skip_without();
    if (test_slowness() > 1) {
        print_message("skip: sanitizers make calls of their own\n");
        skip();
    }
    assert_int_equal(in_child(look_only, NULL), 0);
}

/* ---- nothing is missed ---- */

struct talker {
    struct rnl_socket *s;
    const struct rnl_socket *to;
    _Atomic uint32_t *taken, *armed;
    uint32_t first, seed;
};

/* With gaps of all lengths, so that some fall into the arming, and never more under way than a socket holds. Now and
 * then it is silent until the hub has armed, or who is always ahead would never let it. */
static void *talk(void *arg)
{
    struct talker *t = arg;
    uint32_t x = t->seed;
    for (uint32_t i = 0; i < STRESS; i++) {
        x = x * 1664525u + 1013904223u;
        for (volatile uint32_t n = (x >> 8) % 4096 >> (x >> 28); n; n--)
            continue;
        if (x >> 24 == 0)
            sched_yield();
        uint32_t armed = atomic_load_explicit(t->armed, memory_order_acquire);
        say(t->s, t->to, t->first + i);
        uint64_t end = test_now_ns() + (uint64_t)WAIT_MS * 1000000;
        while (i % PAUSE == 0 && atomic_load_explicit(t->armed, memory_order_acquire) == armed && test_now_ns() < end)
            sched_yield();
        while (i + 1 - atomic_load_explicit(t->taken, memory_order_acquire) > 16 && test_now_ns() < end)
            sched_yield();
    }
    return NULL;
}

/* Of two peers, one with a connected socket. Each is in order by itself. */
static void nothing_comes_without_it(void **state)
{
    (void)state;
    skip_without();
    static _Atomic uint32_t taken[2], armed;
    struct rnl_socket *hub = open_at(0, NULL), *peer[2] = {open_at(0, NULL), open_at(0, NULL)};
    struct talker t[2];
    pthread_t thread[2];
    struct bell b = {0};
    uint32_t what, vain = 0, patience = 0;
    for (uint32_t i = 0; i < CALLS; i++) {
        say(hub, peer[0], i);
        must_be(peer[0], i);
    }
    assert_int_equal(facts_of(hub).connects, 1);
    for (uint32_t i = 0; i < 2; i++) {
        t[i] = (struct talker){peer[i], hub, &taken[i], &armed, i << 24, i + 1};
        assert_int_equal(pthread_create(&thread[i], NULL, talk, &t[i]), 0);
    }
    uint64_t end = test_now_ns() + (uint64_t)30 * 1000000000;
    uint32_t next[2] = {0, 0};
    while (next[0] + next[1] < 2 * STRESS && test_now_ns() < end) {
        if (look(hub, &what)) {
            assert_true(what >> 24 < 2);
            assert_int_equal(what & 0xffffff, next[what >> 24]);
            next[what >> 24]++;
            atomic_store_explicit(&taken[what >> 24], next[what >> 24], memory_order_release);
            vain = 0;
        } else if (++vain > patience) {
            patience = (patience * 5 + 1) % 37;
            vain = 0;
            if (arm(hub, &b) != 0)
                continue;
            atomic_fetch_add_explicit(&armed, 1, memory_order_release);
            for (uint32_t k = 0; k < 64 && !rings(&b); k++) /* one that is missed here stands there until then */
                sched_yield();
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(next[i], STRESS);
    }
    assert_true(armed >= STRESS / PAUSE);
    assert_true(facts_of(hub).rings > 100);
    assert_int_equal(facts_of(hub).unrung, 0);
    for (uint32_t i = 0; i < 2; i++)
        peer[i]->ops->close(peer[i]);
    hub->ops->close(hub);
}

/* A socket that is connected while it is armed takes what came by the first one before. */
static void a_socket_that_joins_is_looked_at(void **state)
{
    (void)state;
    skip_without();
    struct rnl_socket *hub = open_at(0, NULL), *peer = open_at(0, NULL);
    struct bell b;
    uint32_t what = 0, looks = 0;
    arm_empty(hub, &b);
    for (uint32_t i = 0; i < CALLS; i++) {
        say(hub, peer, i);
        must_be(peer, i);
    }
    assert_int_equal(facts_of(hub).connects, 1);
    say(peer, hub, 3);
    while (!look(hub, &what) && looks < CALLS) {
        test_sleep_ms(1);
        looks++;
    }
    assert_int_equal(what, 3);
    hub->ops->close(hub);
    peer->ops->close(peer);
}

/* What the network says about an earlier datagram rings, and is taken: else it would ring for ever. */
static void an_error_rings_once(void **state)
{
    (void)state;
    skip_without();
    struct rnl_socket *a = open_at(0, NULL), *gone = open_at(0, NULL), to = *gone;
    struct rnl_socket_error e;
    struct bell b;
    arm_empty(a, &b);
    gone->ops->close(gone);
    say(a, &to, 1);
    for (int ms = 0; !rings(&b) && ms < WAIT_MS; ms++)
        test_sleep_ms(1);
    assert_true(rings(&b));
    arm_empty(a, &b);
    assert_int_equal(a->ops->error(a, &e), 1);
    assert_int_equal(e.kind, RNL_SOCKET_ERROR_REFUSED);
    a->ops->close(a);
}

/* ---- the end ---- */

static int descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < FDS; fd++)
        n += dup2(fd, fd) == fd;
    return n;
}

/* A connected socket is closed because nothing leaves by it. What its peer says comes by the first then: a wait that
 * held it would let it hear for nobody. */
static void close_one_that_rings(const void *arg)
{
    struct rnl_socket *hub = open_at(0, NULL), *peer = open_at(0, NULL);
    struct bell b;
    for (uint32_t i = 0; i < CALLS; i++) {
        say(hub, peer, i);
        must_be(peer, i);
    }
    arm_empty(hub, &b);
    if (let_fail(SYS_sendto, ENETUNREACH, 0, connected_to(&peer->self), -1, 0) ||
        (arg && let_fail(SYS_io_uring_enter, EAGAIN, -1, 0, -1, 0)))
        _exit(CHILD_CANNOT);
    uint32_t what = 1;
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = peer->self, .at = &what, .bytes = sizeof what};
    (void)hub->ops->send(hub, &o, 1, &r);
    must_be(peer, 1);
    uint64_t end = test_now_ns() + (uint64_t)WAIT_MS * 1000000;
    for (what = 0; arg && what != CALLS;) { /* the ring ends by itself, and all waits in it: soon */
        say(peer, hub, CALLS);
        test_sleep_ms(1);
        (void)look(hub, &what);
        TEST_MUST(test_now_ns() < end);
    }
    while (arg && look(hub, &what))
        ;
    for (uint32_t i = 0; i < CALLS; i++) {
        say(peer, hub, i);
        must_be(hub, i);
    }
}

/* A ring whose pages stayed kept the socket of which it waited, and that took what came for the first. */
static void a_ring_that_fails_keeps_no_socket(void **state)
{
    (void)state;
    skip_without();
    assert_int_equal(in_child(close_one_that_rings, &(int){1}), 0);
}

/* ---- without it ---- */

struct lack {
    long call;
    int fd_of, fd, error, armed; /* armed: it works until then */
};

static void go_without(const void *arg)
{
    const struct lack *l = arg;
    int before = descriptors();
    struct rnl_socket *a = open_at(0, NULL), *b = open_at(0, NULL);
    struct bell bell = {0};
    if (l->armed)
        arm_empty(b, &bell);
    if (let_fail(l->call, l->error, l->fd_of, l->fd, -1, 0))
        _exit(CHILD_CANNOT);
    say(a, b, 7);
    for (int ms = 0; l->armed && !rings(&bell) && ms < WAIT_MS; ms++)
        test_sleep_ms(1);
    TEST_MUST(arm(b, &bell) == RNL_ERR_UNSUPPORTED);
    TEST_MUST(arm(b, &bell) == RNL_ERR_UNSUPPORTED);
    TEST_MUST(!(facts_of(b).features & RNL_KERNEL_BELL));
    if (l->armed)
        (void)rings(&bell); /* that word can still be read */
    for (uint32_t i = 7; i < CALLS; i++) {
        must_be(b, i);
        say(a, b, i + 1);
    }
    b->ops->close(b);
    a->ops->close(a);
    TEST_MUST(descriptors() == before);
}

static void where_it_is_refused_all_goes_on(void **state)
{
    static const struct lack lacks[] = {
        {SYS_io_uring_setup, -1, 0, EPERM, 0},  {SYS_io_uring_setup, -1, 0, ENOSYS, 0},
        {SYS_io_uring_setup, -1, 0, EINVAL, 0}, {SYS_io_uring_setup, -1, 0, ENOMEM, 0},
        {SYS_io_uring_setup, -1, 0, EMFILE, 0}, {SYS_io_uring_enter, -1, 0, EPERM, 0},
        {SYS_io_uring_enter, -1, 0, EAGAIN, 1}, {SYS_mmap, 3, 0x8001, ENOMEM, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (!lacks[i].armed || can_ring())
            assert_int_equal(in_child(go_without, &lacks[i]), 0);
    struct rnl_socket *s = open_at(0, &(struct rnl_kernel_options){.without = RNL_KERNEL_BELL});
    struct bell b;
    assert_int_equal(arm(s, &b), RNL_ERR_UNSUPPORTED);
    s->ops->close(s);
}

static void a_child_does_not_disturb_it(void **state)
{
    (void)state;
    skip_without();
    struct rnl_socket *a = open_at(0, NULL), *b = open_at(0, NULL);
    struct bell bell;
    int status, hold[2];
    char c;
    arm_empty(b, &bell);
    assert_int_equal(pipe(hold), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(hold[1]);
        _exit(read(hold[0], &c, 1) != 0);
    }
    close(hold[0]);
    for (uint32_t i = 0; i < CALLS; i++) {
        if (i == CALLS / 2) {
            close(hold[1]);
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_int_equal(status, 0);
        }
        arm_empty(b, &bell);
        say(a, b, i);
        for (int ms = 0; !rings(&bell) && ms < WAIT_MS; ms++)
            test_sleep_ms(1);
        assert_true(rings(&bell));
        must_be(b, i);
    }
    a->ops->close(a);
    b->ops->close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_rings_for_each_that_comes),
        cmocka_unit_test(a_look_in_vain_makes_no_call),
        cmocka_unit_test(nothing_comes_without_it),
        cmocka_unit_test(a_socket_that_joins_is_looked_at),
        cmocka_unit_test(an_error_rings_once),
        cmocka_unit_test(where_it_is_refused_all_goes_on),
        cmocka_unit_test(a_ring_that_fails_keeps_no_socket),
        cmocka_unit_test(a_child_does_not_disturb_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
