/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_internal.h - what the files of the kernel's sockets share. Each calls only those below it in this list:
 *
 *     kernel.c           opens, arms and closes
 *     kernel_move.c      moves datagrams
 *     kernel_pool.c      connected sockets
 *     kernel_bell.c      the doorbell
 *     kernel_links.c     links of interfaces, as a hint
 *     kernel_error.c     reads what the network says about datagrams
 *     kernel_address.c   addresses and options */
#ifndef RNL_NET_SOCKET_KERNEL_INTERNAL_H
#define RNL_NET_SOCKET_KERNEL_INTERNAL_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"
#include "net/socket/kernel.h"

enum {
    KERNEL_BATCH = 16, /* datagrams or runs of one recvmmsg */
    KERNEL_RUN = 64,   /* datagrams of a run; older kernels take no more */
    KERNEL_ERRORS = 16,
    KERNEL_TRIES = 4, /* times that a call is repeated when it returns the error of an earlier datagram */
    UDP_HEAD = 8,
    IPV4_HEAD = 20,
    IPV6_HEAD = 40,
    KERNEL_CONNECTED = 4, /* connected sockets; each takes a call to find that nothing has arrived */
    KERNEL_KNOWN = 32     /* addresses whose calls are counted */
};

union kernel_name {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct kernel_connected { /* a connected socket */
    int fd;
    uint32_t used, misses; /* k->calls when it last sent; misses: polls without an arrival since the last one */
    uint32_t shorts;       /* datagrams since one that was long enough for a run */
    uint8_t merges;        /* UDP_GRO is set */
    uint8_t drained;       /* it was found empty since its connect, so what arrives is from `peer` */
    uint8_t waits;         /* io_uring waits for it */
    struct rnl_socket_addr peer;
};
struct kernel_known { /* an address that was sent to */
    struct rnl_socket_addr addr;
    uint8_t score, connected; /* connected: 1 + the place of its connected socket; 0 = none */
};

struct kernel_socket {
    struct rnl_socket s; /* first */
    int fd, epoll;       /* epoll has it and the connected ones; -1 = none, and none are connected */
    struct kernel_connected connected[KERNEL_CONNECTED];
    struct kernel_known known[KERNEL_KNOWN];
    uint32_t connected_count, calls;
    uint32_t polls, misses; /* polls of the connected ones since the last of the first; misses of that one in a row */
    uint8_t streak;         /* the last poll returned more than one, so more may be queued behind them */
    uint8_t armed;          /* the caller may have slept, so the next recv polls all sockets */
    uint8_t watched;        /* all sockets make k->epoll readable */
    uint8_t no_bell;        /* there is no io_uring, and there will be none */
    uint8_t distrusts;      /* this poll checks whether something arrived that io_uring did not signal */
    uint32_t unarmed;       /* polls that returned something since the last arm */
    uint32_t singles;       /* single datagrams since one had control data (recv_plain, recv_once) */
    uint32_t (*claims)(const void *at, uint32_t bytes);
    int family;               /* AF_INET, AF_INET6 */
    struct kernel_bell *bell; /* NULL = none yet */
    struct rnl_kernel_facts facts;
    struct rnl_socket_frames frames; /* .links */
    struct kernel_links *links;      /* NULL: nobody has asked for any yet */
    uint8_t error_pending;           /* a call met an error of an earlier datagram, so the error queue has something */
    uint32_t error_first, errors; /* a circular buffer of errors that were read from the queue and not returned yet */
    struct rnl_socket_error error[KERNEL_ERRORS];
};

static inline struct kernel_socket *kernel_of(struct rnl_socket *s)
{
    return (struct kernel_socket *)(void *)s;
}

/* ---- kernel_address.c ---- */

extern const uint8_t rnl_kernel_mapped[12]; /* the first bytes of an IPv4 address in its mapped form */
bool rnl_kernel_is_ipv4(const struct rnl_socket_addr *a);
/* Returns its length, or 0 if a socket of that family cannot reach such an address. */
socklen_t rnl_kernel_name_of(int family, const struct rnl_socket_addr *a, union kernel_name *out);
void rnl_kernel_addr_of(const union kernel_name *name, struct rnl_socket_addr *out);
/* Sets an option of a descriptor. 0, or negative. */
int rnl_kernel_set(int fd, int level, int option, int value);
/* Sets the same option for each address family of k. 0 = it was set for all of them. */
int rnl_kernel_set_ip(const struct kernel_socket *k, int fd, int v4, int value4, int v6, int value6);
/* True: one more optional descriptor may be opened (RNL_KERNEL_SPARE). It costs a system call for each open descriptor,
 * so it is for rare calls. */
bool rnl_kernel_may_open(void);

/* ---- kernel_pool.c ---- */

/* Returns the descriptor of a socket that is connected to this address; negative = none. Called once for each send, and
 * counts it; may connect a socket. */
int rnl_kernel_peer_socket(struct kernel_socket *k, const struct rnl_socket_addr *to);
/* Closes a connected socket that can no longer send; its peer is sent to by the first socket until it is worth
 * connecting another one. */
void rnl_kernel_peer_socket_lost(struct kernel_socket *k, int fd);
/* Makes all sockets wake k->epoll, or none of them. It costs each datagram 100 ns, on its sender's core, so it is on
 * from an arm until much has arrived without another arm. 0, or -1 = it is off. */
int rnl_kernel_watch(struct kernel_socket *k, int on);
void rnl_kernel_pool_end(struct kernel_socket *k);

/* ---- kernel_bell.c ---- */

/* rnl_socket_ops.bell */
int rnl_kernel_bell(struct rnl_socket *, const _Atomic uint32_t **at, uint32_t *bits);
/* 1 = nothing has arrived, so the sockets need not be polled; 0 = not known. */
int rnl_kernel_bell_is_silent(struct kernel_socket *k);
/* Notes that io_uring does not wait for all sockets. */
void rnl_kernel_bell_invalidate(struct kernel_socket *k);
/* Ends io_uring's wait for a socket, which would keep it open. To be called before the socket is closed. */
void rnl_kernel_bell_release(struct kernel_socket *k, int fd);
void rnl_kernel_bell_end(struct kernel_socket *k);

/* ---- kernel_move.c ---- */

int rnl_kernel_send(struct rnl_socket *, const struct rnl_socket_out *, int n, struct rnl_socket_result *);
int rnl_kernel_recv(struct rnl_socket *, struct rnl_socket_in *, int n);

/* ---- kernel_links.c ---- */

/* rnl_socket_ops.is_down. The first call begins to watch links. */
bool rnl_kernel_is_down(struct rnl_socket *, const struct rnl_socket_addr *to);
/* Counts in k->frames.links what has changed. Looks now and then only, unless `now`. */
void rnl_kernel_follow_links(struct kernel_socket *k, bool now);
void rnl_kernel_links_end(struct kernel_socket *k);

/* ---- kernel_error.c ---- */

int rnl_kernel_error(struct rnl_socket *, struct rnl_socket_error *);
/* Reads everything in the error queue of one socket, since what is left there keeps the descriptor readable. Returns
 * how many errors there were. */
int rnl_kernel_take_errors_of(struct kernel_socket *, int fd);
/* true = something waits to be read at this descriptor, or an error was; errors are moved out of the queue. false =
 * nothing. */
bool rnl_kernel_look_at(struct kernel_socket *k, int fd);

#endif
