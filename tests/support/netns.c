/* SPDX-License-Identifier: BSD-3-Clause
 *
 * netns.c - makes the namespaces: a child has the second one until the wire is in it. */
#include "support/netns.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/socket/xdp/queue.h"
#include "runnel/runnel.h"
#include "support/must.h"

static int space[2] = {-1, -1};

static int own_namespace(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

void support_netns_enter(unsigned side)
{
    TEST_MUST(setns(space[side], CLONE_NEWNET) == 0);
}

static int run(const char *command)
{
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

__attribute__((format(printf, 2, 0))) static int run_on(unsigned side, const char *format, va_list args)
{
    char command[512];
    const int before = own_namespace();
    vsnprintf(command, sizeof command, format, args);
    support_netns_enter(side);
    const int status = run(command);
    TEST_MUST(setns(before, CLONE_NEWNET) == 0);
    close(before);
    return status;
}

int support_netns_try(unsigned side, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int status = run_on(side, format, args);
    va_end(args);
    return status == 0;
}

void support_netns_do(unsigned side, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int status = run_on(side, format, args);
    va_end(args);
    if (status != 0)
        fprintf(stderr, "this command of side %u failed: %s\n", side, format);
    TEST_MUST(status == 0);
}

/* Runs in a child, which waits for the end of the pipe. */
static pid_t second(int *end)
{
    int wake[2], ready[2];
    char byte;
    TEST_MUST(pipe2(wake, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(wake[1]);
        byte = unshare(CLONE_NEWNET) == 0;
        (void)!write(ready[1], &byte, 1);
        (void)!read(wake[0], &byte, 1);
        _exit(0);
    }
    close(wake[0]);
    close(ready[1]);
    TEST_MUST(child > 0 && read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    *end = wake[1];
    return child;
}

/* IPv6 is not ready on a link as soon as that is up. */
static void wait_for_six(void)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    socklen_t len = sizeof a;
    char byte = 0;
    int fd[2];
    for (unsigned i = 0; i < 2; i++) {
        support_netns_enter(i);
        a.sin6_addr = (struct in6_addr){{{0xfd, 0x77, [15] = (uint8_t)(i + 1)}}};
        fd[i] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        a.sin6_port = 0;
        TEST_MUST(bind(fd[i], (const struct sockaddr *)&a, sizeof a) == 0);
    }
    TEST_MUST(getsockname(fd[1], (struct sockaddr *)&a, &len) == 0);
    for (int tries = 0; recv(fd[1], &byte, 1, 0) < 0; tries++) {
        TEST_MUST(tries < 500);
        (void)!sendto(fd[0], &byte, 1, 0, (const struct sockaddr *)&a, sizeof a);
        test_sleep_ms(10);
    }
    close(fd[0]);
    close(fd[1]);
}

const char *support_netns_make(void)
{
    return support_netns_make_queues(1);
}

const char *support_netns_make_queues(unsigned queues)
{
    char text[256], path[64];
    int end = -1, status;
    if (geteuid() != 0)
        return "network namespaces take root";
    if (unshare(CLONE_NEWNET) != 0)
        return "this machine lets nobody make network namespaces";
    pid_t child = second(&end);
    snprintf(text, sizeof text,
             "ip link add " SUPPORT_NETNS_WIRE " numtxqueues %u numrxqueues %u type veth peer name " SUPPORT_NETNS_WIRE
             " numtxqueues %u numrxqueues %u netns %d 2>/dev/null",
             queues, queues, queues, queues, (int)child);
    const int failed = run(text);
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)child);
    space[0] = own_namespace();
    space[1] = open(path, O_RDONLY | O_CLOEXEC);
    close(end);
    TEST_MUST(waitpid(child, &status, 0) == child);
    if (failed || space[0] < 0 || space[1] < 0)
        return "ip(8) cannot make a veth pair here";
    for (unsigned i = 0; i < 2; i++)
        support_netns_do(i,
                         "ip link set lo up && ip link set " SUPPORT_NETNS_WIRE
                         " addrgenmode none && ip addr add 10.77.0.%u/24 dev " SUPPORT_NETNS_WIRE
                         " && ip addr add fd77::%u/64 dev " SUPPORT_NETNS_WIRE
                         " nodad && ip link set " SUPPORT_NETNS_WIRE " up",
                         i + 1, i + 1);
    wait_for_six();
    support_netns_enter(0);
    return NULL;
}

const char *support_netns_no_xdp(void)
{
    struct rnl_xdp_queue *q;
    const uint16_t port = 9;
    if (rnl_xdp_queue_open(SUPPORT_NETNS_WIRE, 0, RNL_XDP_ANY, &port, 1, &q) < 0)
        return rnl_last_error()->text;
    rnl_xdp_queue_close(q);
    return NULL;
}
