/* SPDX-License-Identifier: BSD-3-Clause
 *
 * without_syscall.c - a program on a kernel that lacks something: multi-without_syscall NAME[,NAME...] PROGRAM
 * [ARGUMENT...]. It and all that it starts see those system calls fail, by a filter. Exits with 77 where there are no
 * filters. Without arguments it tries itself. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { ANY = -1, NO_FILTER = 77, USAGE = 64 };

/* The call with these two arguments, numbered from 0. */
static const struct lack {
    const char *name;
    long call;
    int nth[2], value[2], error;
} lacks[] = {
    {"segment", SYS_setsockopt, {1, 2}, {IPPROTO_UDP, UDP_SEGMENT}, ENOPROTOOPT},
    {"merge", SYS_setsockopt, {1, 2}, {IPPROTO_UDP, UDP_GRO}, ENOPROTOOPT},
    {"ecn", SYS_setsockopt, {1, 2}, {IPPROTO_IP, IP_RECVTOS}, ENOPROTOOPT},
    {"errors", SYS_setsockopt, {1, 2}, {IPPROTO_IP, IP_RECVERR}, ENOPROTOOPT},
    {"probe", SYS_setsockopt, {1, 2}, {IPPROTO_IP, IP_MTU_DISCOVER}, ENOPROTOOPT},
    {"reuse", SYS_setsockopt, {1, 2}, {SOL_SOCKET, SO_REUSEADDR}, ENOPROTOOPT},
    {"ipv6", SYS_socket, {0, ANY}, {AF_INET6, 0}, EAFNOSUPPORT},
    {"io_uring", SYS_io_uring_setup, {ANY, ANY}, {0, 0}, EPERM},
    {"membarrier", SYS_membarrier, {ANY, ANY}, {0, 0}, ENOSYS},
};
enum { LACKS = sizeof lacks / sizeof *lacks };

static int take_away(const struct lack *l)
{
    struct sock_filter f[8];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)l->call, 0, 0);
    for (int i = 0; i < 2; i++) {
        if (l->nth[i] == ANY)
            continue;
        uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + (size_t)l->nth[i] * sizeof(uint64_t));
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)l->value[i], 0, 0);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)l->error);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (unsigned short i = 1; i < n - 2; i += 2)
        f[i].jf = (uint8_t)(n - 2 - i); /* anything else is allowed */
    struct sock_fprog program = {n, f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? NO_FILTER
                                                                                                          : 0;
}

static int take_away_named(const char *name, size_t bytes)
{
    for (int i = 0; i < LACKS; i++)
        if (strlen(lacks[i].name) == bytes && memcmp(lacks[i].name, name, bytes) == 0)
            return take_away(&lacks[i]);
    fprintf(stderr, "multi-without_syscall: nothing is called %.*s\n", (int)bytes, name);
    return USAGE;
}

static int try_itself(void)
{
    int one = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (take_away_named("segment", 7))
        return NO_FILTER;
    int failed = setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &one, sizeof one) < 0 && errno == ENOPROTOOPT;
    int passed = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0;
    close(fd);
    return failed && passed ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return try_itself();
    if (argc == 2)
        return USAGE;
    for (const char *name = argv[1]; *name;) {
        size_t bytes = strcspn(name, ",");
        int status = take_away_named(name, bytes);
        if (status == NO_FILTER)
            fprintf(stderr, "there are no filters of system calls here\n");
        if (status)
            return status;
        name += bytes + (name[bytes] == ',');
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
