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
 *   - is judged by the link's faults (net/fault/fault.h). What is lost there is lost behind the queue: it has
 *     used its share of the rate. A delay of a span makes packets overtake one another; a fixed one does not.
 *
 * Routes are the shortest ways over links that take such packets, by number of links; of equal ones the one whose first
 * link was made first. They are fixed by vc_net_route and do not change when a link goes down: what has to go that way
 * is lost.
 *
 * Nothing is allocated for a packet once as many were under way before. Every packet that is delivered or dropped
 * enters the hash of the engine. */
#ifndef VC_NET_H
#define VC_NET_H

#include <stddef.h>
#include <stdint.h>

#include "net/fault/fault.h"
#include "net/socket/socket.h"
#include "sim/engine/engine.h"

struct vc_net;

enum {
    VC_NET_HEADERS = 28,             /* of IPv4 and UDP: an MTU of 1500 takes datagrams of 1472 */
    VC_NET_OVERHEAD = 66,            /* those, and what Ethernet adds: 8 preamble, 14 header, 4 check, 12 gap */
    VC_NET_ENTITY = (int)0x40000000, /* of link 0 in the engine's trace */
    VC_NET_RECEIVE_BYTES = 212992,   /* as a socket has them on Linux if nobody asks for more */
    VC_NET_RECEIVE_MAX = 212992,     /* net.core.rmem_max: what asks for more gets twice that, as Linux counts */
    VC_NET_SEND_BYTES = 212992
};

/* ---- nodes and links ---- */

struct vc_net_link_config {
    uint64_t bits_per_s; /* 0 = takes no time */
    uint64_t delay_ns;
    uint64_t buffer_bytes;   /* 0 = without bound */
    uint64_t mark_bytes;     /* 0 = marks nothing */
    uint64_t burst_bytes;    /* a token bucket: so much is sent at once after a rest, then bits_per_s; 0 = a wire */
    uint32_t mtu;            /* with IP headers; 0 = 1500 */
    uint32_t overhead_bytes; /* 0 = VC_NET_OVERHEAD */
    uint8_t only_nth;        /* n + 1: only what goes between the nth addresses of hosts; 0 = everything */
    uint8_t silent;          /* what is longer than the MTU is dropped without a word to its sender */
};

/* Nodes 0 .. hosts - 1 are the hosts, those behind them the switches. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int vc_net_new(struct rnl_sim *, uint32_t hosts, uint32_t switches, struct vc_net **out);
/* Sockets that are still open end with it, too. NULL is fine. */
void vc_net_free(struct vc_net *);
struct rnl_sim *vc_net_sim(const struct vc_net *);
uint32_t vc_net_hosts(const struct vc_net *);
uint32_t vc_net_nodes(const struct vc_net *);
uint32_t vc_net_links(const struct vc_net *);

/* Another number of switches, before the first link: RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int vc_net_set_switches(struct vc_net *, uint32_t switches);
/* Both directions alike: *out (may be NULL) is the link from a to b, *out + 1 the one back. 0, RNL_ERR_ARG,
 * RNL_ERR_NO_MEMORY. */
int vc_net_connect(struct vc_net *, uint32_t a, uint32_t b, const struct vc_net_link_config *, uint32_t *out);
/* Every host to the one switch `hub` by links alike. */
int vc_net_star(struct vc_net *, uint32_t hub, const struct vc_net_link_config *);
/* After the last link, before the first packet. 0, RNL_ERR_NO_MEMORY. */
int vc_net_route(struct vc_net *);
/* After vc_net_route: true = there is no way between some hosts, such as these two. */
bool vc_net_apart(const struct vc_net *, uint32_t *from, uint32_t *to);
/* The first link from a to b, or RNL_ERR_ARG. */
int vc_net_find_link(const struct vc_net *, uint32_t a, uint32_t b, uint32_t *out);
void vc_net_link_ends(const struct vc_net *, uint32_t link, uint32_t *from, uint32_t *to);

/* What that event will touch, if it is one of the network, is fetched into the caches. */
void vc_net_fetch(const struct rnl_sim_event *);

/* ---- changes, at any time ---- */

const struct vc_net_link_config *vc_net_link_get(const struct vc_net *, uint32_t link);
/* For packets that come from now on; those in the queue leave when they were to. */
void vc_net_link_set(struct vc_net *, uint32_t link, const struct vc_net_link_config *);
/* Down: what is on it is lost, and what comes. */
void vc_net_link_up(struct vc_net *, uint32_t link, int up);
/* in, out, part and noroom are not for links: RNL_ERR_ARG. after and for count from now. Each link draws its own
 * numbers from the seed of the engine and that of `f`. */
int vc_net_link_fault(struct vc_net *, uint32_t link, const struct rnl_fault *f);
/* A host without power: nothing from it, nothing to it, and nobody says so. Its sockets are their owner's to close. */
void vc_net_host_up(struct vc_net *, uint32_t host, int up);
/* Hosts of different groups cannot reach each other; at first all are in group 0. What is under way between them is
 * lost. */
void vc_net_host_group(struct vc_net *, uint32_t host, uint32_t group);
/* What a socket of that host that is opened from now on may ask for: net.core.rmem_max. */
void vc_net_host_receive_max(struct vc_net *, uint32_t host, uint32_t bytes);
/* Hosts have so many addresses, 1 to 4, from now on, as if each belonged to a network of its own over the same links: a
 * packet goes from the address of the sender that has the number of the receiver's. Before the first socket. */
int vc_net_set_addresses(struct vc_net *, uint32_t count);
uint32_t vc_net_addresses(const struct vc_net *);
/* What is sent to that address of the host arrives, what the host sends from it leaves; or is lost without a word. */
void vc_net_address_up(struct vc_net *, uint32_t host, uint32_t nth, int in, int out);
/* One way: what `from` sends never reaches `to`. 0, RNL_ERR_NO_MEMORY. */
int vc_net_block(struct vc_net *, uint32_t from, uint32_t to, int on);

/* ---- sockets ---- */

struct vc_net_socket_config { /* 0 = the default */
    uint16_t port;            /* 0 = one that is free */
    uint8_t plain;            /* neither sends runs nor receives merged ones */
    uint8_t blind;            /* knows no ECN */
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
int vc_net_socket_open(struct vc_net *, uint32_t host, const struct vc_net_socket_config *, struct rnl_socket **out);
/* As if the process that had it was gone: like its close. For who drops the memory of a process and has no transport to
 * close. */
void vc_net_socket_kill(struct rnl_socket *);
/* 10.0.0.1 is host 0. */
struct rnl_socket_addr vc_net_addr(uint32_t host, uint16_t port);
/* Its nth address: 11.0.0.1 is the next one of host 0. */
struct rnl_socket_addr vc_net_nth_addr(uint32_t host, uint32_t nth, uint16_t port);
/* The host of an address, or UINT32_MAX. */
uint32_t vc_net_host_of(const struct vc_net *, const struct rnl_socket_addr *);

/* ---- what happened ---- */

enum vc_net_drop {
    VC_NET_DROP_NONE = 0,
    VC_NET_DROP_QUEUE, /* full */
    VC_NET_DROP_FAULT, /* a fault of the link */
    VC_NET_DROP_MTU,
    VC_NET_DROP_DOWN, /* link, host or address */
    VC_NET_DROP_GROUP,
    VC_NET_DROP_BLOCK,
    VC_NET_DROP_PORT,    /* nobody has that port */
    VC_NET_DROP_RECEIVE, /* the receive buffer is full */
    VC_NET_DROP_ROUTE,   /* no way there */
    VC_NET_DROP_MEMORY,  /* of this process */
    VC_NET_DROPS
};
const char *vc_net_drop_name(unsigned drop);

struct vc_net_link_counts {
    uint64_t packets, bytes; /* that went into its queue; with overhead */
    uint64_t delivered;
    uint64_t marked;
    uint64_t dropped[VC_NET_DROPS];
    uint64_t busy_ns;     /* the time it sent, for the utilisation */
    uint64_t most_bytes;  /* its queue ever held */
    uint64_t queue_bytes; /* now */
};
struct vc_net_counts {
    uint64_t sent, delivered, hops; /* packets of sockets; arrivals at nodes */
    uint64_t dropped[VC_NET_DROPS];
    uint64_t twice;                       /* made by faults */
    uint64_t under_way, pool, pool_bytes; /* packets now; ever at once; memory for them */
};
void vc_net_link_counts(struct vc_net *, uint32_t link, struct vc_net_link_counts *out);
void vc_net_counts(const struct vc_net *, struct vc_net_counts *out);
/* From now on, how long each packet waits in the queue of that link. 0, RNL_ERR_NO_MEMORY. */
int vc_net_watch(struct vc_net *, uint32_t link);
/* The wait, in ns, that `per_mille` of the watched packets did not exceed, to about 3 % upwards; 0 if none. */
uint64_t vc_net_wait_ns(const struct vc_net *, uint32_t link, unsigned per_mille);

/* Sees every datagram of a socket: when it is sent, when it is delivered, when it is dropped. */
enum vc_net_tap_what { VC_NET_TAP_SENT = 1, VC_NET_TAP_DELIVERED, VC_NET_TAP_DROPPED };
struct vc_net_tap_packet {
    uint32_t what, host; /* where: the sender, the receiver; the sender, if it is dropped */
    uint32_t drop, link; /* enum vc_net_drop; UINT32_MAX: not on a link */
    uint32_t fault;      /* enum rnl_fault_kind, of VC_NET_DROP_FAULT */
    struct rnl_socket_addr from, to;
    uint8_t ecn;
    const void *at;
    uint32_t bytes;
};
typedef void vc_net_tap(void *arg, const struct vc_net_tap_packet *);
void vc_net_set_tap(struct vc_net *, vc_net_tap *, void *arg);

/* ---- words for scenarios ---- */

/* NODE: 7 (a host) or s0 (a switch). LINKS: all | NODE (all of its links, both ways) | NODE:NODE (both ways) |
 * NODE>NODE. HOSTS: all, or ranks like 0-3+7. */
struct vc_net_verb {
    const char *name, *arguments, *what;
    int least, most; /* arguments */
    int builds;      /* 1: says what there is: before vc_net_route */
    int (*run)(struct vc_net *, int count, const char *const *arguments);
};
extern const struct vc_net_verb vc_net_verbs[]; /* ends with !name */
/* words[0] is the verb. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY; nothing is done if an argument is wrong. */
int vc_net_verb_run(struct vc_net *, int count, const char *const *words);

/* ---- what all parts of the virtual cluster agree on: the length of a tick, and the streams of chance ---- */

/* A tick is a picosecond: a byte on a link of 10 or 100 Gb/s takes a whole number of them, and 64 bits last 213 days.
 */
#define VC_TICKS_PER_NS ((uint64_t)1000)

/* Streams of rnl_sim_random: each decision has its own. Their numbers are part of what a seed means: new ones at the
 * end. */
enum vc_chance {
    VC_CHANCE_ENV = 1,   /* what env->random says; entity: life of a rank */
    VC_CHANCE_PROCESS,   /* a program's own rand, random, getrandom; entity: life of a rank */
    VC_CHANCE_CLOCK,     /* drift and offset of a host's clock; entity: host */
    VC_CHANCE_STALL,     /* when a host stalls and for how long; entity: host */
    VC_CHANCE_CRASH,     /* entity: rank */
    VC_CHANCE_KEYS,      /* of introductions; entity: 0 */
    VC_CHANCE_LATE,      /* by how much a sleeper runs late; entity: host */
    VC_CHANCE_NET = 256, /* from here on: the network's */
};

#endif
