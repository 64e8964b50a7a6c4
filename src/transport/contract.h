/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contract.h - what a transport promises. Below it: packets and addresses. Above it: endpoint/. All of it is called by
 * one thread, the endpoint's; nothing blocks; nothing calls back; time is an argument.
 *
 * Two kinds, told apart by RNL_CAP_RELIABLE. Reliable: every committed packet is polled at the peer exactly once,
 * unchanged, in order per (peer, lane), however long the peer does not poll: then reserve says 0. Datagram: packets may
 * be lost, duplicated, reordered, cut or changed, but the transport invents none; whoever is on the network can. What
 * their sender did not write into them does not travel: lanes, for one, so there is lane 0 only. tests/conform runs the
 * same bodies over every transport. */
#ifndef RNL_TRANSPORT_CONTRACT_H
#define RNL_TRANSPORT_CONTRACT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct rnl_env;
struct rnl_transport;

enum rnl_transport_caps {
    RNL_CAP_RELIABLE = 1,
    RNL_CAP_LANES = 2,       /* separate room per lane; reliable ones have it: a full lane 0 never stops lane 1 */
    RNL_CAP_STABLE_VIEW = 4, /* nobody else can write a polled view (sockets: yes; shared memory: no) */
    RNL_CAP_FD = 8,          /* arm and fd work */
    RNL_CAP_WATCHES_DEATH = 16,
    RNL_CAP_ECN = 32 /* packets go out as mark says, and views tell how they came */
};
#define RNL_PEER_STRANGER UINT32_MAX /* datagram: the peer of a view from an address that no connected peer has */
struct rnl_addr {
    uint32_t len;
    uint8_t bytes[60];
};
struct rnl_room { /* from reserve */
    void *at;     /* 8-byte aligned */
    uint32_t bytes;
    uint32_t token; /* the transport's */
};
struct rnl_view { /* from poll: an arrived packet, in place */
    const void *at;
    uint32_t bytes, peer;
    uint16_t lane, flags; /* RNL_VIEW_* */
    uint64_t token;       /* the transport's */
};
enum {
    RNL_VIEW_CE = 1,   /* the network says: congestion experienced */
    RNL_VIEW_ECT = 2,  /* it came marked as one that can be told, and was not */
    RNL_VIEW_CUT = 4,  /* its end is missing: it was longer than what a packet may be here */
    RNL_VIEW_ASIDE = 8 /* it is of that peer, and not from the address that packets to the peer go to */
};

/* What the network says about a packet to `peer` that it did not take on. Anybody can forge most of it: a hint, by
 * which no connection may end. */
enum rnl_notice_kind {
    RNL_NOTICE_REFUSED = 1, /* nobody has that address there */
    RNL_NOTICE_UNREACHABLE, /* no way to that host, today */
    RNL_NOTICE_FORBIDDEN,   /* a filter, of this host or on the way */
    RNL_NOTICE_TOO_LONG     /* value: bytes that the way is said to take, 0 = not said */
};
struct rnl_notice {
    uint32_t kind, peer, value;
    int32_t sys_errno;
};

struct rnl_transport_ops {
    uint32_t size; /* of this table: it grows at the end */

    /* Room for up to n packets of up to `bytes` to (peer, lane): how many, 0 = no room now (a value, not a failure).
     * The rooms are the caller's until commit; one reserve may be outstanding per (peer, lane). RNL_ERR_RANK (not
     * connected), RNL_ERR_TOO_LONG (above mtu), RNL_ERR_PEER_DEAD, RNL_ERR_PEER_BROKEN. */
    int (*reserve)(struct rnl_transport *, uint32_t peer, unsigned lane, uint32_t bytes, struct rnl_room *, int n);
    /* The first used[i] bytes of each room go out, in order; used == 0 gives the room back. All rooms of the reserve,
     * in order. Returns how many packets went (or will at the next flush). */
    int (*commit)(struct rnl_transport *, uint32_t peer, unsigned lane, const struct rnl_room *, const uint32_t *used,
                  int n, uint64_t now_ns);
    /* Up to n arrived packets. Each stays valid until released. */
    int (*poll)(struct rnl_transport *, struct rnl_view *, int n, uint64_t now_ns);
    /* In order per (peer, lane), datagrams in any order; this is what returns room to the sender. */
    void (*release)(struct rnl_transport *, const struct rnl_view *, int n);
    /* Push what commit was allowed to hold back. > 0: not all went, call again. */
    int (*flush)(struct rnl_transport *, uint64_t now_ns);
    /* Make fd readable on the next arrival. 1 = something is here already, not armed. */
    int (*arm)(struct rnl_transport *);
    int (*fd)(struct rnl_transport *);
    /* When it wants poll or flush next, UINT64_MAX = never. */
    uint64_t (*deadline)(struct rnl_transport *);
    int (*address)(struct rnl_transport *, struct rnl_addr *);
    /* Idempotent. RNL_ERR_RANK, RNL_ERR_SYSTEM, RNL_ERR_NO_MEMORY, RNL_ERR_PEER_DEAD. */
    int (*connect)(struct rnl_transport *, uint32_t peer, const struct rnl_addr *, uint64_t incarnation);
    int (*disconnect)(struct rnl_transport *, uint32_t peer);
    /* Largest packet to that peer today; may fall. */
    uint32_t (*mtu)(struct rnl_transport *, uint32_t peer);
    void (*close)(struct rnl_transport *);

    /* -- datagram transports only: NULL in reliable ones -- */

    /* Where a view that is not yet released came from. */
    int (*source)(struct rnl_transport *, const struct rnl_view *, struct rnl_addr *);
    /* One packet back there, connected or not, which needs no state; never longer than what the view holds, so that
     * nobody can use us to multiply what he sends in another's name: RNL_ERR_TOO_LONG. 1 = went (or at the next
     * flush), 0 = no room now. `at` is the caller's again at once. */
    int (*answer)(struct rnl_transport *, const struct rnl_view *, const void *at, uint32_t bytes, uint64_t now_ns);
    /* Packets committed to that peer from now on say that they can be told of congestion, or do not (as at first).
     * RNL_ERR_RANK, RNL_ERR_UNSUPPORTED (no RNL_CAP_ECN). */
    int (*mark)(struct rnl_transport *, uint32_t peer, int on);
    /* The next notice: 1, or 0 = none. Those that nobody asks for are forgotten. */
    int (*notice)(struct rnl_transport *, struct rnl_notice *);
    /* How many packets of so many bytes are kept for us while we do not poll; more are dropped. What peers may send
     * unasked has to fit. */
    uint32_t (*holds)(struct rnl_transport *, uint32_t bytes);

    /* A connected peer has a further address: what comes from there is of that peer, too. *way: the number of that
     * address, from 1 on; 0 is that of connect, where packets go as long as nothing else is said. They are forgotten
     * with disconnect, and one where no packets go also when another peer is connected with it. RNL_ERR_RANK (not
     * connected; or, without a record of it, somebody has that address already), RNL_ERR_TOO_LONG (it has too many),
     * RNL_ERR_NO_MEMORY. */
    int (*also)(struct rnl_transport *, uint32_t peer, const struct rnl_addr *, unsigned *way);
    /* Packets that are reserved from now on go to that address of the peer. RNL_ERR_RANK. */
    int (*aim)(struct rnl_transport *, uint32_t peer, unsigned way);
    /* One packet to an address of the peer, wherever the others go: 1 = went (or at the next flush), 0 = no room now.
     * `at` is the caller's again at once. RNL_ERR_RANK, RNL_ERR_TOO_LONG. */
    int (*toward)(struct rnl_transport *, uint32_t peer, unsigned way, const void *at, uint32_t bytes, uint64_t now_ns);

    /* A packet that goes alone and at once; both may be NULL. lone: room for one of `bytes` to a connected peer, if
     * nothing is reserved, held back or to be said with it; NULL: reserve, commit and flush. go: its first `used`
     * bytes, not 0; what the host does not take now waits for a flush, as after a commit. No other call stands between
     * the two; without the second the room is given back by itself. */
    unsigned char *(*lone)(struct rnl_transport *, uint32_t peer, uint32_t bytes);
    void (*go)(struct rnl_transport *, uint32_t peer, const unsigned char *at, uint32_t used, uint64_t now_ns);

    /* What arm and fd are, but to find out costs a load: 0, and on the next arrival one of `bits` in *at is set, until
     * this is called again; then a poll is due, and bits may be set for nothing. Meanwhile a poll costs next to
     * nothing, too. The word is there as long as the transport. For who always calls from one thread; others, and
     * where the host cannot, RNL_ERR_UNSUPPORTED, without a record: poll. 1 = something is here already. May be
     * NULL. */
    int (*bell)(struct rnl_transport *, const _Atomic uint32_t **at, uint32_t *bits);
};
struct rnl_transport {
    const struct rnl_transport_ops *ops;
    uint32_t caps;
    struct rnl_env *env;
};

#endif
