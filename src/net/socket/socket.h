/* SPDX-License-Identifier: BSD-3-Clause
 *
 * socket.h - the seam between the datagram transport and a network: a table of seven calls on one datagram socket. The
 * kernel's sockets (kernel.h), AF_XDP (xdp/xdp.h), cards of the 8255x family (i8255x/i8255x.h) and the virtual cluster
 * (sim/cluster/net.h) implement it, and everything above is the same code for all of them. Besides env (base/env.h) it
 * is the library's only way to the world.
 *
 * All calls come from one thread. None blocks, none calls back. What a call returns is about that call: an error that
 * an earlier datagram caused, by an ICMP message mostly, is read with `error`, and whoever implements the table repeats
 * a system call that returned such an old error.
 *
 * The transport knows nothing of queues, descriptors or the host's memory, so a socket may share a queue of a device
 * with other endpoints, or be the far end of a ring that another process owns. README.md in this folder says what such
 * a socket has to add to this table. */
#ifndef RNL_NET_SOCKET_SOCKET_H
#define RNL_NET_SOCKET_SOCKET_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct rnl_socket;

/* An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d, and a port. It has no padding and no bits without meaning, so
 * equal addresses are equal bytes. */
struct rnl_socket_addr {
    uint8_t ip[16];
    uint32_t scope; /* the interface of a link-local address, otherwise 0 */
    uint16_t port;  /* in the byte order of the host, never 0 */
    uint16_t zero;
};
static_assert(sizeof(struct rnl_socket_addr) == 24, "addresses are compared and hashed as bytes");

static inline bool rnl_socket_addr_equal(const struct rnl_socket_addr *a, const struct rnl_socket_addr *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The two ECN bits of the IP header (RFC 3168). */
enum rnl_ecn { RNL_ECN_NOT = 0, RNL_ECN_ECT1 = 1, RNL_ECN_ECT0 = 2, RNL_ECN_CE = 3 };

/* One datagram, or a run: datagrams that lie behind one another and go to one address, all of `segment` bytes but the
 * last, which may be shorter. A run is sent as a whole or not at all. */
struct rnl_socket_out {
    struct rnl_socket_addr to;
    const void *at;
    uint32_t bytes;   /* of all datagrams of the run together */
    uint16_t segment; /* 0 = one datagram */
    uint8_t ecn;      /* enum rnl_ecn, of all of them */
    uint8_t zero;
};

/* Room for one datagram, or for a run that arrived merged. */
struct rnl_socket_in {
    void *at;
    uint32_t room; /* rnl_socket.merged_bytes hold any run; the end of what is longer is cut off */
    /* -- recv sets these -- */
    uint32_t bytes;   /* that arrived; a datagram may have 0 */
    uint16_t segment; /* as of struct rnl_socket_out */
    uint8_t ecn;
    uint8_t cut; /* 1 = the end is missing */
    struct rnl_socket_addr from;
};

/* Why send did not take the next datagram or run. */
enum rnl_socket_stop {
    RNL_SOCKET_WENT = 0,    /* it took all of them */
    RNL_SOCKET_FULL,        /* EAGAIN: the socket's send buffer is full, which passes by itself */
    RNL_SOCKET_NO_BUFFERS,  /* ENOBUFS: a queue of the host is full and has dropped it */
    RNL_SOCKET_TOO_LONG,    /* EMSGSIZE: look at datagram_max again; if that allows it, the path does not */
    RNL_SOCKET_UNREACHABLE, /* ENETUNREACH, EHOSTUNREACH and the like: there is no route */
    RNL_SOCKET_FORBIDDEN,   /* EPERM, EACCES: a filter of this host */
    RNL_SOCKET_FAILED       /* anything else, see sys_errno */
};
struct rnl_socket_result {
    uint32_t stop; /* enum rnl_socket_stop */
    int32_t sys_errno;
};

/* What came back about a datagram that was sent earlier. Anybody can forge it, so it is a hint for people and
 * probes. */
enum rnl_socket_error_kind {
    RNL_SOCKET_ERROR_REFUSED = 1, /* ECONNREFUSED: nobody has that port there */
    RNL_SOCKET_ERROR_UNREACHABLE,
    RNL_SOCKET_ERROR_FORBIDDEN,
    RNL_SOCKET_ERROR_TOO_LONG /* a router says what it takes */
};
struct rnl_socket_error {
    struct rnl_socket_addr to; /* where that datagram was sent */
    uint32_t kind;             /* enum rnl_socket_error_kind */
    uint32_t value;            /* TOO_LONG: bytes of the longest datagram, 0 = not known */
    int32_t sys_errno;
    uint8_t from_us; /* 1 = this host reports it, not one of the network */
    uint8_t zero[3];
};

struct rnl_socket_ops {
    uint32_t size; /* of this table, which grows at the end */

    /* Sends n datagrams or runs in order and returns how many it took. If these are fewer than n, *result says why the
     * next was not taken; the caller may leave that one out and send the rest. On return the memory is the caller's. */
    int (*send)(struct rnl_socket *, const struct rnl_socket_out *, int n, struct rnl_socket_result *result);
    /* Receives into up to n rooms and returns how many were filled. If these are fewer than n, nothing more is there,
     * with two exceptions that `arm` knows of: a merged run is returned without what is behind it, and something may
     * have arrived meanwhile. A negative rnl_status says that the socket is of no more use. */
    int (*recv)(struct rnl_socket *, struct rnl_socket_in *, int n);
    /* Reads the next error: 1, or 0 = there is none. A socket that cannot know of errors always returns 0. */
    int (*error)(struct rnl_socket *, struct rnl_socket_error *);
    /* Makes the descriptor readable when something arrives. 1 = something has arrived already. */
    int (*arm)(struct rnl_socket *);
    /* The descriptor, which never changes, or a negative rnl_status where has_fd is 0. */
    int (*fd)(struct rnl_socket *);
    void (*close)(struct rnl_socket *);
    /* Does what arm and fd do without a system call. 0: until something arrives, no bit of `bits` is set in the word
     * *at; as soon as one is set, or this is called again, recv is due. Bits may be set although nothing has arrived.
     * The word can be read as long as the socket is open. 1 = something has arrived already. RNL_ERR_UNSUPPORTED,
     * without a record, if the host cannot do it or another thread than the first calls. May be NULL. */
    int (*bell)(struct rnl_socket *, const _Atomic uint32_t **at, uint32_t *bits);
    /* Whether the card by which datagrams to this address go has no link, or is gone: a hint. Each time that anything
     * about it changes, recv adds 1 to frames->links. May be NULL: it is not known. */
    bool (*is_down)(struct rnl_socket *, const struct rnl_socket_addr *);
};

/* What a socket that makes frames itself has counted. */
struct rnl_socket_frames {
    uint64_t sent, received; /* with datagrams */
    uint64_t refused;        /* that came and were none of a whole datagram for this socket */
    uint64_t links;          /* how often a card lost its link, has it again, or went */
};

struct rnl_socket {
    const struct rnl_socket_ops *ops;
    const struct rnl_socket_frames *frames; /* where the kernel makes them, `links` alone */
    struct rnl_socket_addr self;
    uint32_t datagram_max;  /* bytes of the longest datagram that this host sends; send and recv may change it */
    uint32_t segments_max;  /* datagrams of the longest run that can be sent; 1 = no runs */
    uint32_t segment_bytes; /* bytes of that run */
    uint32_t merged_bytes;  /* of the longest run that recv returns; datagram_max = nothing arrives merged */
    uint32_t receive_bytes; /* of the receive buffer, which holds as many datagrams as rnl_socket_charge allows */
    uint8_t has_ecn, has_fd;
    uint8_t zero[2];
};

/* How much of receive_bytes a datagram takes on Linux, where a short one takes far more than its own length. It was
 * measured: 212992 bytes hold 256 datagrams of 64 bytes, 92 of 1400, 12 of 8900, 3 of 65000. */
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
