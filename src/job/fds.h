/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fds.h - sealed memory files, and packets with descriptors over unix SOCK_SEQPACKET sockets. Every descriptor made or
 * received here is close-on-exec. Nothing raises SIGPIPE; interrupted calls are repeated. Failures are -errno: who
 * knows what was wanted says so. */
#ifndef RNL_JOB_FDS_H
#define RNL_JOB_FDS_H

#include <stddef.h>
#include <sys/types.h>

enum { RNL_PACKET_FDS_MAX = 4 };

/* A memfd of exactly `bytes` zeros that can neither shrink nor grow; `seals` are added to these (F_SEAL_SEAL: the last
 * ones). */
int rnl_memfd_new(const char *name, size_t bytes, unsigned seals, int *fd);
/* What to change when that failed with errno `e`, to stand behind a colon. */
const char *rnl_memfd_remedy(int e);
/* 0 if fd is such a file, of this size and with these seals; -EINVAL if not. */
int rnl_memfd_check(int fd, size_t bytes, unsigned seals);

/* 0 if fd is a unix SOCK_SEQPACKET socket. */
int rnl_packet_socket_check(int fd);
int rnl_packet_pair(int pair[2]);
/* Sends one packet with nfds descriptors, whole. 0, -EAGAIN (only if not `wait`), another -errno: the socket is of no
 * more use. */
int rnl_packet_send(int fd, const void *bytes, size_t n, const int *fds, unsigned nfds, int wait);

struct rnl_packet {
    size_t n;
    unsigned nfds;
    int fds[RNL_PACKET_FDS_MAX]; /* the caller's */
    int cut;                     /* longer than the buffer, or descriptors were lost */
    pid_t pid; /* of the sender, as the kernel saw it; 0 = not asked for (SO_PASSCRED) or not visible */
};
/* Takes in one packet with at most `most` descriptors; the kernel drops others, and `cut` says so. 0, -EAGAIN, -EPIPE:
 * closed by the other side, another -errno. Closing what a stranger sent can block for ever (a file whose file system
 * he runs himself), dropping cannot: so take none where none belong. */
int rnl_packet_receive(int fd, void *bytes, size_t room, unsigned most, struct rnl_packet *out, int wait);
/* Closes the descriptors that are left in it, for whoever trusts the sender. */
void rnl_packet_drop(struct rnl_packet *);
/* A descriptor from a stranger that is not wanted: closed if that cannot block. Else it stays open until this process
 * ends, so its sender is to be listened to no more: -EBUSY. */
int rnl_packet_refuse_fd(int fd);

#endif
