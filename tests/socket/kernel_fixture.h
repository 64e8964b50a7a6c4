/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_fixture.h - what the tests of the kernel's sockets share: their facts, a system call that fails from now on,
 * and the descriptor that is connected to a peer. */
#ifndef RNL_TEST_SOCKET_KERNEL_FIXTURE_H
#define RNL_TEST_SOCKET_KERNEL_FIXTURE_H

#include "net/socket/kernel.h"
#include "support/must.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static inline struct rnl_kernel_facts facts_of(const struct rnl_socket *s)
{
    struct rnl_kernel_facts f;
    rnl_kernel_socket_facts(s, &f);
    return f;
}

/* From now on this system call fails where its arguments number first and second (their low words) are these; -1 =
 * whatever it is. 0 = done. */
static inline int let_fail(long call, int error, int first, int first_is, int second, int second_is)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 (uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)(first < 0 ? 0 : first)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first_is, 0, first < 0 ? 0 : 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 (uint32_t)offsetof(struct seccomp_data, args) + 8 * (uint32_t)(second < 0 ? 0 : second)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second_is, 0, second < 0 ? 0 : 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof f / sizeof *f, f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum { FDS = 256 }; /* descriptors that a test may have */

/* The descriptor that is connected there. */
static inline int connected_to(const struct rnl_socket_addr *a)
{
    for (int fd = 0; fd < FDS; fd++) {
        struct sockaddr_in to;
        socklen_t len = sizeof to;
        if (getpeername(fd, (struct sockaddr *)(void *)&to, &len) == 0 && to.sin_family == AF_INET &&
            ntohs(to.sin_port) == a->port)
            return fd;
    }
    TEST_MUST(!"a descriptor is connected there");
    return -1;
}

#endif
