/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fds.h - sealed memory files, and packets with descriptors over unix SOCK_SEQPACKET sockets. Every descriptor made or
 * received here is close-on-exec. Nothing raises SIGPIPE; interrupted calls are repeated. */
#ifndef RNL_JOB_FDS_H
#define RNL_JOB_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { RNL_SEQPACKET_FDS_MAX = 19 };

/* Makes a memfd of exactly `bytes` zeros, sealed against shrinking and, without RNL_MEMFD_MAY_GROW, against growing,
 * and with further `seals` (F_SEAL_SEAL: no more can be added later). 0 or RNL_ERR_SYSTEM. */
#define RNL_MEMFD_MAY_GROW 0x80000000u
int rnl_memfd_new(const char *name, size_t bytes, unsigned seals, int *fd);
/* Returns the remedy, to be put behind a colon, where memory or descriptors cannot be had because of errno `e`. */
const char *rnl_memfd_remedy(int e);
/* Returns 0 if fd is a memfd of this size that is sealed against shrinking and growing and with these seals, else
 * RNL_ERR_JOB without an error record. */
int rnl_memfd_check(int fd, size_t bytes, unsigned seals);

bool rnl_seqpacket_is_socket(int fd); /* whether it is a unix SOCK_SEQPACKET socket */
int rnl_seqpacket_pair(int pair[2]);  /* 0 or RNL_ERR_SYSTEM */
/* Sends one packet with nfds descriptors. 0; RNL_NO_ROOM, without an error record (only if not `wait`); RNL_ERR_JOB:
 * the other end is closed; RNL_ERR_SYSTEM, after which the socket must not be used any more. */
int rnl_seqpacket_send(int fd, const void *bytes, size_t n, const int *fds, unsigned nfds, int wait);

struct rnl_seqpacket {
    size_t n;
    unsigned nfds;
    int fds[RNL_SEQPACKET_FDS_MAX]; /* owned by the caller */
    int pidfd;                      /* of rnl_seqpacket_receive_pidfd, owned by the caller; -1 = none */
    int cut;                        /* the packet was longer than the buffer, or descriptors were lost */
    pid_t pid; /* the sender as the kernel knows it; 0 = not asked for (SO_PASSCRED) or not visible from here */
    uid_t uid; /* user and group that the sender named and the kernel confirmed; valid with has_cred */
    gid_t gid;
    int has_cred;
};
/* Receives one packet with at most `most` descriptors; the kernel drops further ones, and `cut` says so. Returns what
 * rnl_seqpacket_send does; RNL_NO_ROOM: there is none. Pass the fewest descriptors that the protocol allows: the kernel
 * drops the others without blocking, while closing a file that an untrusted sender serves itself can block for ever. */
int rnl_seqpacket_receive(int fd, void *bytes, size_t room, unsigned most, struct rnl_seqpacket *out, int wait);
/* Receives a packet without descriptors, as rnl_seqpacket_receive does without waiting, from a socket with
 * SO_PASSPIDFD: the kernel adds a descriptor of the sender's process. */
int rnl_seqpacket_receive_pidfd(int fd, void *bytes, size_t room, struct rnl_seqpacket *out);
/* Closes the descriptors that are left in the packet. The sender must be trusted, since closing may block. */
void rnl_seqpacket_drop(struct rnl_seqpacket *);
/* Closes an unwanted descriptor of an untrusted sender if that cannot block. Otherwise returns RNL_ERR_JOB and leaves
 * it open until this process ends; the caller must then receive nothing more from that sender. */
int rnl_seqpacket_refuse_fd(int fd);

#endif
