/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.h - the virtual network: hosts and switches, links between them, and sockets of hosts. Pure: it knows virtual
 * time and numbers drawn from the seed, and what it is told.
 *
 * A link is a direction, from one node to another: a queue of `buffer_bytes` that is emptied at `bits_per_s`, then
 * `delay_ns` of way. A host's interface is its first link outwards: its rate, MTU and queue are those of the host. Any
 * number of flows share a link, first come, first served. A packet
 *
 *   - takes bytes + overhead_bytes of the queue until its last bit has left, and is dropped if that does not fit;
 *   - is marked, if it can be told of congestion, when it finds more than mark_bytes there (its own not counted);
 *   - is judged by the link's faults (transport/fault/fault.h). What is lost there is lost behind the queue: it has
 *     used its share of the rate. A delay of a span makes packets overtake one another; a fixed one does not.
 *
 * Routes are the shortest ways by number of links, of equal ones the one whose first link was made first. They are
 * fixed by rnl_net_route and do not change when a link goes down: what has to go that way is lost.
 *
 * Nothing is allocated for a packet once as many were under way before. Every packet that is delivered or dropped
 * enters the hash of the engine. */
#ifndef RNL_CLUSTER_NET_H
#define RNL_CLUSTER_NET_H

#include <stddef.h>
#include <stdint.h>

#include "sim/engine/engine.h"
#include "transport/fault/fault.h"
#include "transport/socket.h"

struct rnl_net;

enum {
    RNL_NET_HEADERS = 28,             /* of IPv4 and UDP: an MTU of 1500 takes datagrams of 1472 */
    RNL_NET_OVERHEAD = 66,            /* those, and what Ethernet adds: 8 preamble, 14 header, 4 check, 12 gap */
    RNL_NET_ENTITY = (int)0x40000000, /* of link 0 in the engine's trace */
    RNL_NET_RECEIVE_BYTES = 212992,   /* as a socket has them on Linux if nobody asks for more */
    RNL_NET_RECEIVE_MAX = 212992,     /* net.core.rmem_max: what asks for more gets twice that, as Linux counts */
    RNL_NET_SEND_BYTES = 212992
};

/* ---- nodes and links ---- */

struct rnl_net_link_config {
    uint64_t bits_per_s; /* 0 = takes no time */
    uint64_t delay_ns;
    uint64_t buffer_bytes;   /* 0 = without bound */
    uint64_t mark_bytes;     /* 0 = marks nothing */
    uint32_t mtu;            /* with IP headers; 0 = 1500 */
    uint32_t overhead_bytes; /* 0 = RNL_NET_OVERHEAD */
    uint8_t silent;          /* what is longer than the MTU is dropped without a word to its sender */
};

/* Nodes 0 .. hosts - 1 are the hosts, those behind them the switches. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int rnl_net_new(struct rnl_sim *, uint32_t hosts, uint32_t switches, struct rnl_net **out);
/* Sockets that are still open end with it, too. NULL is fine. */
void rnl_net_free(struct rnl_net *);
struct rnl_sim *rnl_net_sim(const struct rnl_net *);
uint32_t rnl_net_hosts(const struct rnl_net *);
uint32_t rnl_net_nodes(const struct rnl_net *);
uint32_t rnl_net_links(const struct rnl_net *);

/* Another number of switches, before the first link: RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int rnl_net_set_switches(struct rnl_net *, uint32_t switches);
/* Both directions alike: *out (may be NULL) is the link from a to b, *out + 1 the one back. 0, RNL_ERR_ARG,
 * RNL_ERR_NO_MEMORY. */
int rnl_net_connect(struct rnl_net *, uint32_t a, uint32_t b, const struct rnl_net_link_config *, uint32_t *out);
/* Every host to the one switch `hub` by links alike. */
int rnl_net_star(struct rnl_net *, uint32_t hub, const struct rnl_net_link_config *);
/* After the last link, before the first packet. 0, RNL_ERR_NO_MEMORY. */
int rnl_net_route(struct rnl_net *);
/* Then: 1 = there is no way between some hosts, such as these. */
int rnl_net_apart(const struct rnl_net *, uint32_t *from, uint32_t *to);
/* The first link from a to b, or RNL_ERR_ARG. */
int rnl_net_find_link(const struct rnl_net *, uint32_t a, uint32_t b, uint32_t *out);
void rnl_net_link_ends(const struct rnl_net *, uint32_t link, uint32_t *from, uint32_t *to);

/* What that event will touch, if it is one of the network, is fetched into the caches. */
void rnl_net_fetch(const struct rnl_sim_event *);

/* ---- changes, at any time ---- */

const struct rnl_net_link_config *rnl_net_link_get(const struct rnl_net *, uint32_t link);
/* For packets that come from now on; those in the queue leave when they were to. */
void rnl_net_link_set(struct rnl_net *, uint32_t link, const struct rnl_net_link_config *);
/* Down: what is on it is lost, and what comes. */
void rnl_net_link_up(struct rnl_net *, uint32_t link, int up);
/* in, out, part and noroom are not for links: RNL_ERR_ARG. after and for count from now. Each link draws its own
 * numbers from the seed of the engine and that of `f`. */
int rnl_net_link_fault(struct rnl_net *, uint32_t link, const struct rnl_fault *f);
/* A host without power: nothing from it, nothing to it, and nobody says so. Its sockets are their owner's to close. */
void rnl_net_host_up(struct rnl_net *, uint32_t host, int up);
/* Hosts of different groups cannot reach each other; at first all are in group 0. What is under way between them is
 * lost. */
void rnl_net_host_group(struct rnl_net *, uint32_t host, uint32_t group);
/* What a socket of that host that is opened from now on may ask for: net.core.rmem_max. */
void rnl_net_host_receive_max(struct rnl_net *, uint32_t host, uint32_t bytes);
/* Hosts have so many addresses, 1 to 4, from now on, as if each belonged to a network of its own over the same links: a
 * packet goes from the address of the sender that has the number of the receiver's. Before the first socket. */
int rnl_net_set_addresses(struct rnl_net *, uint32_t count);
uint32_t rnl_net_addresses(const struct rnl_net *);
/* What is sent to that address of the host arrives, what the host sends from it leaves; or is lost without a word. */
void rnl_net_address_up(struct rnl_net *, uint32_t host, uint32_t nth, int in, int out);
/* One way: what `from` sends never reaches `to`. 0, RNL_ERR_NO_MEMORY. */
int rnl_net_block(struct rnl_net *, uint32_t from, uint32_t to, int on);

/* ---- sockets ---- */

struct rnl_net_socket_config { /* 0 = the default */
    uint16_t port;             /* 0 = one that is free */
    uint8_t plain;             /* neither sends runs nor receives merged ones */
    uint8_t blind;             /* knows no ECN */
    uint32_t receive_bytes, send_bytes;
    uint32_t receive_asked; /* by setsockopt, in place of receive_bytes: twice that, or twice what the host allows */
    /* Something came while the socket was armed: called once for each arming, inside the network's event; it wakes
     * somebody later. */
    void (*ring)(void *arg);
    int (*fd)(void *arg);     /* what rnl_socket_ops.fd says; NULL = has none */
    void (*drain)(void *arg); /* at each arming: not readable any more for having been rung; may be NULL */
    void *arg;
};
/* RNL_ERR_ARG: no such host; that port is taken, or none is free. RNL_ERR_NO_MEMORY. */
int rnl_net_socket_open(struct rnl_net *, uint32_t host, const struct rnl_net_socket_config *, struct rnl_socket **out);
/* As if the process that had it was gone: like its close. For who drops the memory of a process and has no transport to
 * close. */
void rnl_net_socket_kill(struct rnl_socket *);
/* 10.0.0.1 is host 0. */
struct rnl_socket_addr rnl_net_addr(uint32_t host, uint16_t port);
/* Its nth address: 11.0.0.1 is the next one of host 0. */
struct rnl_socket_addr rnl_net_nth_addr(uint32_t host, uint32_t nth, uint16_t port);
/* The host of an address, or UINT32_MAX. */
uint32_t rnl_net_host_of(const struct rnl_net *, const struct rnl_socket_addr *);

/* ---- what happened ---- */

enum rnl_net_drop {
    RNL_NET_DROP_NONE = 0,
    RNL_NET_DROP_QUEUE, /* full */
    RNL_NET_DROP_FAULT, /* a fault of the link */
    RNL_NET_DROP_MTU,
    RNL_NET_DROP_DOWN, /* link, host or address */
    RNL_NET_DROP_GROUP,
    RNL_NET_DROP_BLOCK,
    RNL_NET_DROP_PORT,    /* nobody has that port */
    RNL_NET_DROP_RECEIVE, /* the receive buffer is full */
    RNL_NET_DROP_ROUTE,   /* no way there */
    RNL_NET_DROP_MEMORY,  /* of this process */
    RNL_NET_DROPS
};
const char *rnl_net_drop_name(unsigned drop);

struct rnl_net_link_counts {
    uint64_t packets, bytes; /* that went into its queue; with overhead */
    uint64_t delivered;
    uint64_t marked;
    uint64_t dropped[RNL_NET_DROPS];
    uint64_t busy_ns;     /* the time it sent, for the utilisation */
    uint64_t most_bytes;  /* its queue ever held */
    uint64_t queue_bytes; /* now */
};
struct rnl_net_counts {
    uint64_t sent, delivered, hops; /* packets of sockets; arrivals at nodes */
    uint64_t dropped[RNL_NET_DROPS];
    uint64_t twice;                       /* made by faults */
    uint64_t under_way, pool, pool_bytes; /* packets now; ever at once; memory for them */
};
void rnl_net_link_counts(struct rnl_net *, uint32_t link, struct rnl_net_link_counts *out);
void rnl_net_counts(const struct rnl_net *, struct rnl_net_counts *out);
/* From now on, how long each packet waits in the queue of that link. 0, RNL_ERR_NO_MEMORY. */
int rnl_net_watch(struct rnl_net *, uint32_t link);
/* The wait, in ns, that `per_mille` of the watched packets did not exceed, to about 3 % upwards; 0 if none. */
uint64_t rnl_net_wait_ns(const struct rnl_net *, uint32_t link, unsigned per_mille);

/* Sees every datagram of a socket: when it is sent, when it is delivered, when it is dropped. */
enum rnl_net_tap_what { RNL_NET_TAP_SENT = 1, RNL_NET_TAP_DELIVERED, RNL_NET_TAP_DROPPED };
struct rnl_net_tap_packet {
    uint32_t what, host; /* where: the sender, the receiver; the sender, if it is dropped */
    uint32_t drop, link; /* enum rnl_net_drop; UINT32_MAX: not on a link */
    uint32_t fault;      /* enum rnl_fault_kind, of RNL_NET_DROP_FAULT */
    struct rnl_socket_addr from, to;
    uint8_t ecn;
    const void *at;
    uint32_t bytes;
};
typedef void rnl_net_tap(void *arg, const struct rnl_net_tap_packet *);
void rnl_net_set_tap(struct rnl_net *, rnl_net_tap *, void *arg);

/* ---- words for scenarios ---- */

/* NODE: 7 (a host) or s0 (a switch). LINKS: all | NODE (all of its links, both ways) | NODE:NODE (both ways) |
 * NODE>NODE. HOSTS: all, or ranks like 0-3+7. */
struct rnl_net_verb {
    const char *name, *arguments, *what;
    int least, most; /* arguments */
    int builds;      /* 1: says what there is: before rnl_net_route */
    int (*run)(struct rnl_net *, int count, const char *const *arguments);
};
extern const struct rnl_net_verb rnl_net_verbs[]; /* ends with name == NULL */
/* words[0] is the verb. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY; nothing is done if an argument is wrong. */
int rnl_net_verb_run(struct rnl_net *, int count, const char *const *words);

#endif
