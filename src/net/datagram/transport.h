/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport.h - the datagrams of a job: packets to and from peers, which are numbered by rank. net/datagram implements
 * it over any socket (net/socket/socket.h), and net/fault wraps it; endpoint/ and net/flow/ stand above it.
 *
 * Packets may be lost, duplicated, reordered, cut or changed on their way. The transport invents none, but whoever is
 * on the network can. Order, loss, authenticity and the length that a path takes are the business of net/flow/.
 *
 * All calls come from one thread, the endpoint's. None blocks, none calls back, and the time is an argument. Both
 * directions are zero copy: packets are composed and read where the transport keeps them, so a transport whose memory
 * belongs to a device or to another process can stand behind this table. tests/conform checks every promise made
 * here. */
#ifndef RNL_NET_DATAGRAM_TRANSPORT_H
#define RNL_NET_DATAGRAM_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/socket/socket.h"
#include "net/wire/packet.h"

struct rnl_env;
struct rnl_transport;

#define RNL_PEER_STRANGER UINT32_MAX /* the peer of a view that came from an address which no peer has */
enum { RNL_PATHS_MAX = 4 };          /* addresses of one peer */

struct rnl_addr { /* opaque here; rnl_udp_addr_of fills it from a socket's address */
    uint32_t len;
    uint8_t bytes[60];
};
struct rnl_view { /* one packet that arrived, where it lies */
    const void *at;
    uint32_t bytes, peer;
    uint32_t flags; /* RNL_VIEW_... */
    uint32_t zero;
    uint64_t token; /* belongs to the transport */
};
enum {
    RNL_VIEW_CE = 1,   /* the network marked it "congestion experienced" */
    RNL_VIEW_ECT = 2,  /* it was sent as ECN-capable, and is not marked */
    RNL_VIEW_CUT = 4,  /* its end is missing, because it was longer than a packet may be here */
    RNL_VIEW_ASIDE = 8 /* it came from an address of this peer that is not its active path */
};

struct rnl_transport_ops {
    uint32_t size; /* of this table, which grows at the end */

    /* ---- sending ---- */

    /* Rooms for up to n packets of up to `bytes` each. Returns how many there are; 0 says that there is no room now,
     * which is no failure. The caller owns the rooms until commit, and each peer may have one reserve outstanding.
     * Fails with RNL_ERR_RANK (no such peer), RNL_ERR_TOO_LONG (more than mtu), RNL_BUSY (a reserve is outstanding). */
    int (*reserve)(struct rnl_transport *, uint32_t peer, uint32_t bytes, struct rnl_room *, int n);
    /* Sends the first used[i] bytes of each room of the reserve, in order, at the next flush or earlier; used[i] = 0
     * gives that room back. `ecn` says that the packets are ECN-capable; a socket that cannot mark packets ignores it.
     * Returns how many packets were sent. Fails with RNL_ERR_RANK, RNL_ERR_ARG (not the rooms of a reserve). */
    int (*commit)(struct rnl_transport *, uint32_t peer, const struct rnl_room *, const uint32_t *used, int n, bool ecn,
                  uint64_t now_ns);
    /* The fast path of one packet that is sent at once. reserve_one returns room for `bytes`, or NULL if anything else
     * is reserved or unsent, and then the calls above do it. send_one sends its first `used` bytes, which are not 0;
     * what the host does not take now waits for a flush. No other call may stand between the two, and a room that is
     * not sent needs not be given back. Both may be NULL. */
    unsigned char *(*reserve_one)(struct rnl_transport *, uint32_t peer, uint32_t bytes);
    void (*send_one)(struct rnl_transport *, uint32_t peer, const unsigned char *at, uint32_t used, uint64_t now_ns);
    /* Hands everything that was committed to the host. More than 0: the host did not take all of it; call again. */
    int (*flush)(struct rnl_transport *, uint64_t now_ns);
    /* When poll or flush has to be called next, UINT64_MAX if there is no such time. */
    uint64_t (*deadline)(struct rnl_transport *);

    /* ---- receiving ---- */

    /* Up to n packets that arrived. Each view is valid until it is released. */
    int (*poll)(struct rnl_transport *, struct rnl_view *, int n, uint64_t now_ns);
    /* Releases views, in any order. One that was released before is ignored. */
    void (*release)(struct rnl_transport *, const struct rnl_view *, int n);
    /* The address that a view, not yet released, came from. RNL_ERR_ARG. */
    int (*source)(struct rnl_transport *, const struct rnl_view *, struct rnl_addr *);
    /* Sends one packet back to where a view, not yet released, came from. It needs no peer and no state, and it is
     * never longer than the view, so that nobody can make us multiply what he sends in another's name. 1 = sent, 0 = no
     * room now; `at` is the caller's again on return. RNL_ERR_ARG, RNL_ERR_TOO_LONG. */
    int (*reply)(struct rnl_transport *, const struct rnl_view *, const void *at, uint32_t bytes, uint64_t now_ns);

    /* ---- waiting ---- */

    /* Makes the descriptor readable on the next arrival. 1 = something has arrived already, and it is not armed. */
    int (*arm)(struct rnl_transport *);
    int (*fd)(struct rnl_transport *); /* where has_fd is set; it stays the same, and stays the transport's */
    /* Does the same without a system call, see rnl_socket_ops.bell. May be NULL. */
    int (*bell)(struct rnl_transport *, const _Atomic uint32_t **at, uint32_t *bits);

    /* ---- peers ---- */

    /* From now on this rank has n addresses, at most RNL_PATHS_MAX. The first becomes its active path, to which packets
     * go; packets from any of them are views of this peer. A further address that another peer has, too, is left out.
     * The first is taken from a peer of which it is not the active path: nobody has proved that it belongs there. Where
     * peers are introduced (env->meet) several may have one address, and its packets are views of one of them.
     * Returns one bit for each address that was taken, and numbers the paths in this order. Adding a peer again with
     * the same first address and incarnation changes nothing. Fails with RNL_ERR_RANK (no such rank, or another peer
     * has the first address), RNL_ERR_ARG (no address), RNL_ERR_PEER_DEAD (the rank was added with another address or
     * incarnation, remove it first), RNL_ERR_NO_MEMORY. */
    int (*add_peer)(struct rnl_transport *, uint32_t peer, const struct rnl_addr *, unsigned n, uint64_t incarnation);
    /* Forgets its addresses and whatever is unsent or reserved for it. RNL_ERR_RANK. */
    int (*remove_peer)(struct rnl_transport *, uint32_t peer);
    /* Packets that are committed from now on go to this path of the peer. RNL_ERR_RANK. */
    int (*set_active_path)(struct rnl_transport *, uint32_t peer, unsigned path);
    /* Sends one packet to this path of the peer, whichever is active. 1 = sent, 0 = no room now; `at` is the caller's
     * again on return. RNL_ERR_RANK, RNL_ERR_TOO_LONG. */
    int (*send_on_path)(struct rnl_transport *, uint32_t peer, unsigned path, const void *at, uint32_t bytes,
                        uint64_t now_ns);
    /* Does what commit does, to this path of the peer, whichever is active. Fails with RNL_ERR_RANK, RNL_ERR_ARG. */
    int (*commit_on_path)(struct rnl_transport *, uint32_t peer, unsigned path, const struct rnl_room *,
                          const uint32_t *used, int n, bool ecn, uint64_t now_ns);
    /* Whether this path leaves by a card that has no link or is gone: a hint, see rnl_socket_ops.is_down. May be
     * NULL. */
    bool (*is_path_down)(struct rnl_transport *, uint32_t peer, unsigned path);
    /* Bytes of the longest packet to that peer today. It may fall. */
    uint32_t (*mtu)(struct rnl_transport *, uint32_t peer);

    /* Releases everything, the socket included. */
    void (*close)(struct rnl_transport *);
};
struct rnl_transport {
    const struct rnl_transport_ops *ops;
    struct rnl_env *env;
    uint32_t receive_bytes;                 /* see rnl_transport_holds */
    const struct rnl_socket_frames *frames; /* what its socket has counted, or NULL */
    bool has_fd;                            /* arm and fd work */
    bool has_ecn;                           /* packets can be marked, and views say how they came */
};

/* How many packets of so many bytes the host keeps while nobody polls. It drops further ones, so what peers may send
 * without being asked has to fit. */
static inline uint32_t rnl_transport_holds(const struct rnl_transport *t, uint32_t bytes)
{
    return t->receive_bytes / rnl_socket_charge(bytes);
}

#endif
