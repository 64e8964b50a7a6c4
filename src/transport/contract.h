/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contract.h - what a transport promises. Below it: packets and addresses. Above it: endpoint/. All of it is called by
 * one thread, the endpoint's; nothing blocks; nothing calls back; time is an argument.
 *
 * Two kinds, told apart by RNL_CAP_RELIABLE. Reliable: every committed packet is polled at the peer exactly once,
 * unchanged, in order per (peer, lane), however long the peer does not poll: then reserve says 0. Datagram: packets may
 * be lost, duplicated, reordered, cut or changed, but the transport invents none. tests/conform runs the same bodies
 * over every transport. */
#ifndef RNL_TRANSPORT_CONTRACT_H
#define RNL_TRANSPORT_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

struct rnl_env;
struct rnl_transport;

enum rnl_transport_caps {
    RNL_CAP_RELIABLE = 1,
    RNL_CAP_LANES = 2,       /* separate room per lane; reliable ones have it: a full lane 0 never stops lane 1 */
    RNL_CAP_STABLE_VIEW = 4, /* nobody else can write a polled view (sockets: yes; shared memory: no) */
    RNL_CAP_FD = 8,          /* arm and fd work */
    RNL_CAP_WATCHES_DEATH = 16
};
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
enum { RNL_VIEW_CE = 1 /* the network says: congestion experienced */ };

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
    /* In order per (peer, lane); this is what returns room to the sender. */
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
};
struct rnl_transport {
    const struct rnl_transport_ops *ops;
    uint32_t caps;
    struct rnl_env *env;
};

#endif
