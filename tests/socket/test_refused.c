/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_refused.c - the kernel's sockets where the kernel refuses a packet or an address, or lacks what it may lack,
 * which a filter on system calls makes of this one. */
#include "runnel/runnel.h"
#include "socket/kernel_fixture.h"
#include "support/unit.h"

#include <errno.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 65536, INS = 8 };
static unsigned char data[BIG], room[INS][BIG];

static struct rnl_socket_addr loopback(void)
{
    return (struct rnl_socket_addr){.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
}

static struct rnl_socket *open_here(void)
{
    struct rnl_socket_addr a = loopback();
    struct rnl_socket *s = NULL;
    assert_int_equal(rnl_kernel_socket_open(&a, NULL, &s), 0);
    return s;
}

static struct rnl_socket_result put(struct rnl_socket *s, const struct rnl_socket *to, uint32_t bytes, uint16_t segment)
{
    struct rnl_socket_result r;
    const struct rnl_socket_out o = {.to = to->self, .at = data, .bytes = bytes, .segment = segment};
    (void)s->ops->send(s, &o, 1, &r);
    return r;
}

/* ---- what the kernel refuses ---- */

static void what_is_longer_than_the_way_takes_is_told(void **state)
{
    /* More than an IPv4 packet holds, and a run whose segments are. */
    struct rnl_socket *a = open_here(), *b = open_here();
    struct rnl_socket_result r = put(a, b, 65535, 0);
    (void)state;
    assert_int_equal(r.stop, RNL_SOCKET_TOO_LONG);
    assert_int_equal(r.sys_errno, EMSGSIZE);
    assert_int_equal(put(a, b, 65536, 65520).stop, RNL_SOCKET_TOO_LONG);
    assert_int_equal(put(a, b, 100, 0).stop, RNL_SOCKET_WENT);
    a->ops->close(a);
    b->ops->close(b);
}

static void from_loopback_there_is_no_way_out(void **state)
{
    struct rnl_socket *a = open_here(), to = {.self = loopback()};
    (void)state;
    to.self.port = 9;
    memcpy(to.self.ip + 12, (const uint8_t[4]){192, 0, 2, 1}, 4); /* for documentation: nobody's */
    struct rnl_socket_result r = put(a, &to, 10, 0);
    assert_int_equal(r.stop, RNL_SOCKET_UNREACHABLE); /* no packet leaves the host with that source */
    a->ops->close(a);
}

static void an_address_that_is_not_ours_or_taken_is_an_error(void **state)
{
    struct rnl_socket *a = open_here(), *s = NULL;
    struct rnl_socket_addr other = loopback();
    (void)state;
    assert_int_equal(rnl_kernel_socket_open(&a->self, NULL, &s), RNL_ERR_ARG);
    memcpy(other.ip + 12, (const uint8_t[4]){192, 0, 2, 1}, 4);
    assert_int_equal(rnl_kernel_socket_open(&other, NULL, &s), RNL_ERR_ARG);
    assert_null(s);
    a->ops->close(a);
}

/* ---- a kernel that lacks something ---- */

static int lowest_free_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

enum { CHILD_NO_FILTER = 100, CHILD_LEAKS, CHILD_TRAFFIC };

/* Opens there: what open returned, as 1 + -status, or 0 and it carries a run; *features is what is in use then. */
static int open_in_child(long call, int level, int option, int error, struct rnl_socket_addr at, uint32_t *features)
{
    int pipes[2], status;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rnl_socket *s, to;
        struct rnl_socket_in in[INS];
        struct rnl_socket_result r;
        int before = lowest_free_fd(), packets = 0;
        if (let_fail(call, error, option < 0 ? -1 : 1, level, option < 0 ? -1 : 2, option))
            _exit(CHILD_NO_FILTER);
        int opened = rnl_kernel_socket_open(&at, NULL, &s);
        if (opened < 0)
            _exit(lowest_free_fd() != before ? CHILD_LEAKS : 1 - opened);
        to = *s;
        if (memcmp(&at, &(struct rnl_socket_addr){.port = 0}, sizeof at) == 0) {
            to.self = loopback();
            to.self.port = s->self.port;
        }
        struct rnl_socket_out o = {.to = to.self, .at = data, .bytes = 2500, .segment = 1000};
        if (s->ops->send(s, &o, 1, &r) != 1)
            _exit(CHILD_TRAFFIC);
        for (int i = 0; i < INS; i++)
            in[i] = (struct rnl_socket_in){.at = room[i], .room = BIG};
        for (int i = 0; i < INS && packets < 3; i++)
            if (s->ops->recv(s, &in[i], 1) == 1)
                packets += (int)(in[i].segment ? (in[i].bytes + 999) / 1000 : 1);
        uint32_t f = facts_of(s).features;
        if (packets != 3 || write(pipes[1], &f, sizeof f) != sizeof f)
            _exit(CHILD_TRAFFIC);
        s->ops->close(s);
        _exit(lowest_free_fd() != before ? CHILD_LEAKS : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0)
        assert_int_equal(read(pipes[0], features, sizeof *features), sizeof *features);
    close(pipes[0]);
    close(pipes[1]);
    if (WEXITSTATUS(status) == CHILD_NO_FILTER) {
        print_message("skip: no filters on system calls here\n");
        skip();
    }
    return WEXITSTATUS(status);
}

static void what_the_kernel_lacks_is_done_without(void **state)
{
    static const struct {
        int level, option;
        uint32_t feature;
    } lacks[] = {
        {IPPROTO_UDP, UDP_SEGMENT, RNL_KERNEL_SEGMENT},  {IPPROTO_UDP, UDP_GRO, RNL_KERNEL_MERGE},
        {IPPROTO_IP, IP_RECVTOS, RNL_KERNEL_ECN},        {IPPROTO_IP, IP_RECVERR, RNL_KERNEL_ERRORS},
        {IPPROTO_IP, IP_MTU_DISCOVER, RNL_KERNEL_PROBE}, {SOL_SOCKET, SO_RCVBUF, 0},
    };
    struct rnl_socket *s = open_here();
    uint32_t all = facts_of(s).features, f = 0;
    (void)state;
    s->ops->close(s);
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        int status = open_in_child(SYS_setsockopt, lacks[i].level, lacks[i].option, ENOPROTOOPT, loopback(), &f);
        assert_int_equal(status, 0);
        assert_int_equal(f, all & ~lacks[i].feature);
    }
    /* No IPv6 at all. */
    int status =
        open_in_child(SYS_setsockopt, IPPROTO_IPV6, IPV6_V6ONLY, ENOPROTOOPT, (struct rnl_socket_addr){.port = 0}, &f);
    assert_int_equal(status, 0);
    assert_int_equal(f, all);
}

static void a_call_that_fails_leaves_nothing(void **state)
{
    static const struct {
        long call;
        int error, status;
    } calls[] = {{SYS_socket, EMFILE, RNL_ERR_SYSTEM},
                 {SYS_bind, EADDRINUSE, RNL_ERR_ARG},
                 {SYS_bind, EACCES, RNL_ERR_SYSTEM},
                 {SYS_getsockname, ENOBUFS, RNL_ERR_SYSTEM},
                 {SYS_getsockopt, ENOBUFS, RNL_ERR_SYSTEM}};
    uint32_t f;
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(open_in_child(calls[i].call, 0, -1, calls[i].error, loopback(), &f), 1 - calls[i].status);
}

static void a_filter_of_this_host_says_forbidden(void **state)
{
    struct rnl_socket *a = open_here();
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (let_fail(SYS_sendto, EPERM, -1, 0, -1, 0))
            _exit(CHILD_NO_FILTER);
        struct rnl_socket_result r;
        struct rnl_socket_out o = {.to = a->self, .at = data, .bytes = 10};
        _exit(a->ops->send(a, &o, 1, &r) == 0 && r.stop == RNL_SOCKET_FORBIDDEN && r.sys_errno == EPERM ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    a->ops->close(a);
    if (WEXITSTATUS(status) == CHILD_NO_FILTER) {
        print_message("skip: no filters on system calls here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_longer_than_the_way_takes_is_told),
        cmocka_unit_test(from_loopback_there_is_no_way_out),
        cmocka_unit_test(an_address_that_is_not_ours_or_taken_is_an_error),
        cmocka_unit_test(what_the_kernel_lacks_is_done_without),
        cmocka_unit_test(a_call_that_fails_leaves_nothing),
        cmocka_unit_test(a_filter_of_this_host_says_forbidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
