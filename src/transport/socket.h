/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket.h - the seam between transport/udp and the network: a table of calls on one datagram socket, shaped after what
 * Linux does with UDP and no wider. The kernel fills it with real sockets, sim/cluster with sockets of virtual hosts;
 * above it everything is the same code. Besides env (base/env.h) it is the only way to the world.
 *
 * All calls come from one thread, none blocks, none calls back. Unlike with system calls, what one call returns is
 * about that call: an error that an earlier datagram caused (an ICMP message, mostly) waits in `error`, and whoever
 * fills the table repeats a system call that returned such an old one. */
#ifndef RNL_TRANSPORT_SOCKET_H
#define RNL_TRANSPORT_SOCKET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

struct rnl_socket;

/* IPv4 as ::ffff:a.b.c.d. No padding and no bits without meaning: equal addresses are equal bytes. */
struct rnl_socket_addr {
    uint8_t ip[16];
    uint32_t scope; /* the interface of a link-local address, else 0 */
    uint16_t port;  /* not 0, in the byte order of the host */
    uint16_t zero;
};
static_assert(sizeof(struct rnl_socket_addr) == 24, "compared and hashed as bytes");

static inline int rnl_socket_addr_equal(const struct rnl_socket_addr *a, const struct rnl_socket_addr *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The two bits of the IP header. */
enum rnl_ecn { RNL_ECN_NOT = 0, RNL_ECN_ECT1 = 1, RNL_ECN_ECT0 = 2, RNL_ECN_CE = 3 };

/* One datagram, or a run of datagrams of `segment` bytes each, the last one perhaps shorter, that lie behind one
 * another. A run goes as a whole or not at all. */
struct rnl_socket_out {
    struct rnl_socket_addr to;
    const void *at;
    uint32_t bytes;   /* of all of them */
    uint16_t segment; /* 0 = one datagram */
    uint8_t ecn;      /* enum rnl_ecn, of all of them */
    uint8_t zero;
};

/* Room for one datagram, or for a run that arrived merged. */
struct rnl_socket_in {
    void *at;
    uint32_t room; /* rnl_socket.merged_bytes holds any run; the end of what is longer is lost */
    /* -- set by recv -- */
    uint32_t bytes;   /* that are here; 0 is a datagram, too */
    uint16_t segment; /* as above */
    uint8_t ecn;
    uint8_t cut; /* 1 = the end is missing */
    struct rnl_socket_addr from;
};

/* Why send did not take the next one. */
enum rnl_socket_stop {
    RNL_SOCKET_WENT = 0,   /* it took all */
    RNL_SOCKET_FULL,       /* EAGAIN: the socket's send buffer; passes by itself */
    RNL_SOCKET_NO_BUFFERS, /* ENOBUFS: the host's queue; the datagram was dropped there, and this socket has not seen it
                            */
    RNL_SOCKET_TOO_LONG,   /* EMSGSIZE: look at datagram_max again; if that allows it, the way does not */
    RNL_SOCKET_UNREACHABLE, /* ENETUNREACH, EHOSTUNREACH, ...: no way there */
    RNL_SOCKET_FORBIDDEN,   /* EPERM, EACCES: a filter of this host */
    RNL_SOCKET_FAILED       /* anything else: sys_errno */
};
struct rnl_socket_result {
    uint32_t stop; /* enum rnl_socket_stop */
    int32_t sys_errno;
};

/* What came back about a datagram sent earlier. */
enum rnl_socket_error_kind {
    RNL_SOCKET_ERROR_REFUSED = 1, /* ECONNREFUSED: nobody has that port there */
    RNL_SOCKET_ERROR_UNREACHABLE,
    RNL_SOCKET_ERROR_FORBIDDEN,
    RNL_SOCKET_ERROR_TOO_LONG /* a router says what it takes */
};
struct rnl_socket_error {
    struct rnl_socket_addr to; /* where that datagram was to go */
    uint32_t kind;             /* enum rnl_socket_error_kind */
    uint32_t value;            /* TOO_LONG: bytes of a datagram, 0 = not said */
    int32_t sys_errno;
    uint8_t from_us; /* this host says so, not one of the network */
    uint8_t zero[3];
};

struct rnl_socket_ops {
    uint32_t size; /* of this table: it grows at the end */

    /* In order. How many went; if that is less than n, *result says why the next did not. That one may be left out and
     * the rest tried. Buffers are the caller's again on return. */
    int (*send)(struct rnl_socket *, const struct rnl_socket_out *, int n, struct rnl_socket_result *result);
    /* How many came. Fewer than n: there may be more all the same, but not to ask for at once, unless there is a merged
     * run among them, which comes without those behind it; `arm` knows. Negative rnl_status: the socket is of no more
     * use. */
    int (*recv)(struct rnl_socket *, struct rnl_socket_in *, int n);
    /* The next: 1, or 0 = none. */
    int (*error)(struct rnl_socket *, struct rnl_socket_error *);
    /* Make fd readable when something comes. 1 = something is here already. */
    int (*arm)(struct rnl_socket *);
    int (*fd)(struct rnl_socket *); /* negative rnl_status: has none */
    void (*close)(struct rnl_socket *);
    /* The same without a call: 0, and until something comes one of `bits` in *at is not set; then, or when this is
     * called again, a recv is due. That word can be read as long as the socket is open, and may ring in vain. Calls
     * have to come from the thread of the first: else, and where the host cannot, RNL_ERR_UNSUPPORTED, without a
     * record. 1 = something is here already. May be NULL. */
    int (*bell)(struct rnl_socket *, const _Atomic uint32_t **at, uint32_t *bits);
};

struct rnl_socket {
    const struct rnl_socket_ops *ops;
    struct rnl_socket_addr self;
    uint32_t datagram_max;  /* bytes of the longest that this host sends; may change at a send or a recv */
    uint32_t segments_max;  /* of a run that is sent; 1 = no runs */
    uint32_t segment_bytes; /* ... and all of its bytes */
    uint32_t merged_bytes;  /* of the longest run that recv may bring; datagram_max = never merged */
    uint32_t receive_bytes; /* of the receive buffer: as many datagrams as rnl_socket_charge allows */
    uint8_t has_ecn, has_fd;
    uint8_t zero[2];
};

/* What a datagram takes of receive_bytes, on Linux: memory of the kernel, of which a short one needs far more than its
 * own length. As measured there (256 of 64 bytes, 92 of 1400, 12 of 8900 and 3 of 65000 in 212992). */
static inline uint32_t rnl_socket_charge(uint32_t bytes)
{
    const uint32_t record = 256, beside = 448, least = 576;
    uint32_t data = least;
    if (bytes + beside > least)
        for (data = 1024; data < bytes + beside;)
            data *= 2;
    return record + data;
}

#endif
