/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_porter.c - a porter (amudp/porter.c) in a process of its own, and the test as its master: what bounds its wait
 * for a master whose host is gone, and its end. */
#include "amudp/door.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

/* A copy of its socket whose other end has this port; -1 = it has none. */
static int socket_of(pid_t pid, uint16_t port)
{
    char folder[40];
    int found = -1, process = pidfd_open(pid, 0);
    assert_true(process >= 0);
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (const struct dirent *e; found < 0 && (e = readdir(all)) != NULL;) {
        struct sockaddr_in to = {.sin_port = 0};
        socklen_t n = sizeof to;
        int fd = e->d_name[0] == '.' ? -1 : pidfd_getfd(process, atoi(e->d_name), 0);
        if (fd >= 0 && getpeername(fd, (struct sockaddr *)&to, &n) == 0 && to.sin_family == AF_INET &&
            ntohs(to.sin_port) == port)
            found = fd;
        else if (fd >= 0)
            close(fd);
    }
    closedir(all);
    close(process);
    return found;
}

/* What it has said and nobody acknowledges is given up no later than a connection on which nothing is said; else
 * it would be the kernel's quarter of an hour. */
static void a_porter_waits_for_a_dead_host_with_a_bound(void **state)
{
    char file[] = "/tmp/runnel-porter-XXXXXX", name[64];
    unsigned char key[RNL_PLACE_KEY] = {4};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    struct rnl_door d;
    unsigned bound = 0;
    int status;
    (void)state;
    assert_true(sodium_init() >= 0);
    int listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listens, (const struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(listens, 4), 0);
    assert_int_equal(getsockname(listens, (struct sockaddr *)&at, &n), 0);
    int f = mkstemp(file);
    assert_true(f >= 0);
    assert_int_equal(write(f, key, sizeof key), sizeof key);
    dprintf(f, "master 127.0.0.1 %d\n", ntohs(at.sin_port));
    close(f);
    snprintf(name, sizeof name, "runnel-test-porter-%d", getpid());
    assert_int_equal(rnl_door_open(&d, name), 0);
    memcpy(d.key, key, sizeof key);
    pid_t porter = fork();
    assert_true(porter >= 0);
    if (porter == 0) {
        close(listens);
        alarm(PATIENCE_MS / 1000);
        rnl_amudp_porter(&d, file);
    }
    rnl_door_close(&d);
    struct pollfd p = {.fd = listens, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    struct rnl_channel *c = rnl_channel_new(accept4(listens, NULL, NULL, SOCK_CLOEXEC), 1, key);
    assert_non_null(c);
    assert_int_equal(rnl_channel_wait(c, PATIENCE_MS), RNL_CHANNEL_OPENS);
    assert_int_equal(rnl_channel_wait(c, PATIENCE_MS), RNL_CHANNEL_MESSAGE);
    assert_int_equal(c->type, 'h');
    int fd = socket_of(porter, ntohs(at.sin_port));
    n = sizeof bound;
    if (fd >= 0)
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &bound, &n), 0);
    rnl_channel_free(c);
    assert_int_equal(waitpid(porter, &status, 0), porter); /* it has an alarm */
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unlink(file);
    close(listens);
    if (fd < 0) {
        print_message("skip: no look into another process's sockets here\n");
        skip();
    }
    close(fd);
    assert_in_range(bound, 1000, (RNL_CHANNEL_IDLE_S + RNL_CHANNEL_BETWEEN_S * RNL_CHANNEL_ASKED) * 1000);
}

/* Workers that knock all the time, while one porter after the other finds no master: none is left without the reason.
 */
static void who_knocks_as_a_porter_ends_hears_why(void **state)
{
    enum { WORKERS = 12, MS = 3500 };
    char file[] = "/tmp/runnel-porter-XXXXXX", name[64], said[500];
    unsigned char key[RNL_PLACE_KEY] = {5};
    (void)state;
    assert_true(sodium_init() >= 0);
    int f = mkstemp(file), wrong = 0, status;
    assert_true(f >= 0);
    assert_int_equal(write(f, key, sizeof key), sizeof key);
    dprintf(f, "master 127.0.0.1 1\n"); /* nobody listens there */
    close(f);
    snprintf(name, sizeof name, "runnel-test-porters-%d", getpid());
    for (int i = 0; i < WORKERS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid != 0)
            continue;
        alarm(PATIENCE_MS / 1000);
        for (uint64_t until = rnl_door_ms() + MS; rnl_door_ms() < until;) {
            int fd = rnl_amudp_knock(name, file, key, -1);
            ssize_t n = fd >= 0 ? recv(fd, said, sizeof said, 0) : -1;
            if (n < 2 || said[0] != 'x')
                _exit(1);
            close(fd);
        }
        _exit(0);
    }
    for (int i = 0; i < WORKERS; i++)
        wrong += wait(&status) < 0 || status != 0;
    unlink(file);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_porter_waits_for_a_dead_host_with_a_bound),
                                       cmocka_unit_test(who_knocks_as_a_porter_ends_hears_why)};
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
