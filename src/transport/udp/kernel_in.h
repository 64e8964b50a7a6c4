/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_in.h - what the parts of the kernel's sockets share: kernel.c opens, arms and closes, kernel_move.c moves
 * datagrams, kernel_error.c reads what the network says about them. */
#ifndef RNL_TRANSPORT_UDP_KERNEL_IN_H
#define RNL_TRANSPORT_UDP_KERNEL_IN_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/error.h"
#include "transport/udp/kernel.h"

enum {
    KERNEL_BATCH = 16, /* datagrams or runs of one recvmmsg */
    KERNEL_RUN = 64,   /* datagrams of a run; older kernels take no more */
    KERNEL_ERRORS = 16,
    KERNEL_TRIES = 4, /* of a call that returns what an earlier datagram caused */
    UDP_HEAD = 8,
    IPV4_HEAD = 20,
    IPV6_HEAD = 40,
    KERNEL_HOT = 4,   /* connected sockets: each is a call to find that nothing has come */
    KERNEL_KNOWN = 32 /* addresses whose calls are counted */
};

union kernel_name {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

struct kernel_hot {
    int fd;
    uint32_t used, vain; /* when it was last sent by, in calls; looks in vain since something came */
    uint32_t shorts;     /* datagrams since one that was long enough to be one of a run */
    uint8_t merges;      /* UDP_GRO is set */
    uint8_t sure;        /* found empty since its connect: what comes is from `peer` */
    uint8_t waits;       /* its bell does */
    struct rnl_socket_addr peer;
};
struct kernel_known {
    struct rnl_socket_addr addr;
    uint8_t score, hot; /* hot: 1 + its place there; 0 = none */
};

struct kernel_socket {
    struct rnl_socket s; /* first */
    int fd, epoll;       /* epoll: of it and of the connected ones */
    struct kernel_hot hot[KERNEL_HOT];
    struct kernel_known known[KERNEL_KNOWN];
    uint32_t hots, calls;
    uint32_t looks, vain; /* at the connected ones since the last at the first; at that in vain */
    uint8_t streak;       /* the last look brought more than one: as many may lie behind them */
    uint8_t armed;        /* what comes next ends somebody's sleep: it is looked for everywhere */
    uint8_t watched;      /* all sockets make k->epoll readable */
    uint8_t no_bell;      /* and there will be none */
    uint8_t distrusts;    /* this look is to find whether something came that the bell did not tell of */
    uint32_t unarmed;     /* looks that brought something since the last arm */
    uint32_t lone;        /* datagrams without anything beside them since one had it, or since a look for that */
    uint32_t (*claims)(const void *at, uint32_t bytes);
    int family;               /* AF_INET, AF_INET6 */
    struct kernel_bell *bell; /* NULL: none yet */
    struct rnl_kernel_facts facts;
    uint8_t told;                 /* a call met an error of an earlier datagram: the queue has something */
    uint32_t error_first, errors; /* in a circle: taken from the queue, not asked for yet */
    struct rnl_socket_error error[KERNEL_ERRORS];
};

static inline struct kernel_socket *kernel_of(struct rnl_socket *s)
{
    return (struct kernel_socket *)(void *)s;
}

/* ---- kernel.c ---- */

int rnl_kernel_is_ipv4(const struct rnl_socket_addr *a);
/* Its length, or 0: a socket of that family does not reach such an address. */
socklen_t rnl_kernel_name_of(int family, const struct rnl_socket_addr *a, union kernel_name *out);
void rnl_kernel_addr_of(const union kernel_name *name, struct rnl_socket_addr *out);

/* What waits there to be read: 1, or 0 = nothing. Errors are taken out. */
int rnl_kernel_look_at(struct kernel_socket *k, int fd);
/* A further socket gets the options of the first. 0 or negative. */
int rnl_kernel_same_options(const struct kernel_socket *k, int fd);

/* ---- kernel_pool.c ---- */

/* The descriptor of a socket that is connected there, negative = none; called once for each call that sends. */
int rnl_kernel_way(struct kernel_socket *k, const struct rnl_socket_addr *to);
/* Nothing leaves by that one: the next calls are for the first socket, until it is worth to connect another. */
void rnl_kernel_way_lost(struct kernel_socket *k, int fd);
/* Do all sockets make k->epoll readable, or none of them? That costs each datagram 100 ns, on its sender's core, so
 * they do from an arm on, until much has come without another. 0 or -1: they do not. */
int rnl_kernel_watch(struct kernel_socket *k, int on);
void rnl_kernel_pool_end(struct kernel_socket *k);

/* ---- kernel_bell.c ---- */

/* rnl_socket_ops.bell */
int rnl_kernel_bell(struct rnl_socket *, const _Atomic uint32_t **at, uint32_t *bits);
/* Before a look at the sockets: 1 = it is known that nothing has come. */
int rnl_kernel_bell_quiet(struct kernel_socket *k);
/* There is a socket that the bell does not know. */
void rnl_kernel_bell_spoil(struct kernel_socket *k);
/* Before a socket is closed: nothing is to keep it. */
void rnl_kernel_bell_let_go(struct kernel_socket *k, int fd);
void rnl_kernel_bell_end(struct kernel_socket *k);

/* ---- kernel_move.c ---- */

int rnl_kernel_send(struct rnl_socket *, const struct rnl_socket_out *, int n, struct rnl_socket_result *);
int rnl_kernel_recv(struct rnl_socket *, struct rnl_socket_in *, int n);

/* ---- kernel_error.c ---- */

int rnl_kernel_error(struct rnl_socket *, struct rnl_socket_error *);
/* Takes all from the error queue of one socket, so that it no longer makes the descriptor readable: how many came. */
int rnl_kernel_take_errors_of(struct kernel_socket *, int fd);

#endif
