/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net_internal.h - what the parts of the virtual network share: net_build.c nodes, links and their changes; net.c the
 * way of a packet; net_pool.c where packets lie; net_socket.c sockets; net_count.c what happened; net_verb.c words. */
#ifndef VC_NET_INTERNAL_H
#define VC_NET_INTERNAL_H

#include "base/error.h"
#include "sim/cluster/net.h"

enum { NET_CLASSES = 4, NET_NONE = -1 };

struct net_host;
struct net_link;
struct net_socket;

enum net_kind { NET_DATA = 0, NET_REFUSED, NET_TOO_LONG }; /* the last two: a message to the sender of a datagram */

struct net_packet {
    struct rnl_sim_event event; /* first; of one that does not keep the order of its link */
    struct net_packet *next;    /* in line on its link; in a socket; unused */
    struct net_packet *behind;  /* in the queue of its link */
    union {
        struct net_link *link; /* it is on */
        struct vc_net *net;    /* the network of its own host */
    };
    struct net_socket *socket; /* whose send buffer it takes `charge` of, until it left the host */
    uint64_t left, arrives;    /* ticks: the last bit is out; is there */
    uint64_t next_arrives;     /* of `next`, in line: whose own lines have left the caches */
    uint32_t from, to;         /* hosts */
    uint16_t from_port, to_port;
    uint32_t bytes, wire_bytes, charge;
    uint32_t value;      /* of NET_TOO_LONG */
    uint32_t down_count; /* of its link, when it entered */
    uint8_t kind, ecn, size_class;
    uint8_t nth;  /* number of the addresses that it goes from and to */
    uint8_t lost; /* enum rnl_fault_kind: vanishes at the end of its link */
    unsigned char *data;
};

struct net_link {
    struct rnl_sim_event event; /* first: the arrival of the first in line */
    struct vc_net *net;
    struct vc_net_link_config config;
    uint32_t id, from, to;
    uint64_t free_at; /* ticks: when all of the queue has left */
    uint64_t busy;    /* ticks: that it took to send all so far, the queue included */
    uint64_t queue_bytes;
    struct net_packet *queue_first, *queue_last; /* not left yet, as of the last look */
    struct net_packet *line_first, *line_last;   /* on their way, in the order of arrival */
    uint32_t down_count;                         /* how often it went down */
    uint8_t down, faulty;
    struct rnl_fault fault;
    struct rnl_fault_flow flow;
    uint64_t fault_since;
    struct vc_net_link_counts counts;
    uint64_t *waits; /* a histogram, if watched */
};

struct net_node {
    uint32_t *routes; /* by number of the addresses, then host: a link; NULL: `only` for all */
    uint32_t only;    /* UINT32_MAX: none */
};

struct net_host {
    struct net_socket *sockets;
    uint32_t group, first_link; /* UINT32_MAX: none */
    uint32_t receive_max;       /* 0 = VC_NET_RECEIVE_MAX */
    uint16_t next_port;
    uint8_t down;
    uint8_t deaf, mute; /* bits of addresses: nothing arrives there, nothing leaves */
};

struct net_socket {
    struct rnl_socket s; /* first */
    struct vc_net *net;
    struct net_socket *next; /* of its host */
    struct net_packet *first, *last;
    uint64_t charged, sending; /* of the receive buffer; of the send buffer */
    uint64_t send_bytes;
    struct rnl_socket_error error[8]; /* in a circle */
    uint32_t error_first, errors;
    uint32_t host;
    uint16_t port;
    uint8_t armed, plain;
    void (*ring)(void *arg);
    int (*fd)(void *arg);
    void (*drain)(void *arg);
    void *arg;
};

struct vc_net {
    struct rnl_sim *sim;
    uint32_t hosts, nodes, links, link_room;
    uint32_t apart_from, apart_to; /* hosts with no way between them; the same: there are none */
    uint32_t addresses;            /* of each host; 0 = 1 */
    uint32_t planes;               /* so many numbers of addresses have routes of their own, others those of 0 */
    struct net_node *node;
    struct net_host *host;
    struct net_link **link;
    uint64_t *blocked; /* a bit for each (from, to); NULL: nobody */
    struct vc_net_counts counts;
    vc_net_tap *tap;
    void *tap_arg;
    /* the pool */
    struct net_packet *unused;
    struct net_chunk *chunks;
    unsigned char *unused_data[NET_CLASSES];
};

/* ---- net_pool.c ---- */

/* One with room for so many bytes; NULL: no memory. */
struct net_packet *net_packet_new(struct vc_net *, uint32_t bytes);
void net_packet_free(struct vc_net *, struct net_packet *);
void net_pool_end(struct vc_net *);

/* ---- net.c ---- */

/* Takes from a link's queue what has left it. */
void net_link_settle(struct net_link *);
/* The event of a link. */
void net_line_arrives(struct rnl_sim *, struct rnl_sim_event *);
/* A packet sets out from its host. */
void net_send(struct vc_net *, struct net_packet *);
/* The packet ends on this link, for the reason given. */
void net_drop(struct vc_net *, struct net_packet *, struct net_link *, enum vc_net_drop);
/* Its sender is told, if it was a datagram: a message goes back from node `at`. */
void net_tell(struct vc_net *, const struct net_packet *, enum net_kind, uint32_t at, uint32_t value);
struct net_link *net_route_of(const struct vc_net *, uint32_t node, uint32_t host, uint32_t nth);
static inline uint32_t net_longest(const struct net_link *l)
{
    return l->config.mtu - VC_NET_HEADERS;
}

/* Takes the packet out of the count of its socket's send buffer. */
static inline void net_unsend(struct net_packet *p)
{
    if (p->socket)
        p->socket->sending -= p->charge;
    p->socket = NULL;
}

/* ---- net_socket.c ---- */

/* A packet is at its host: the socket takes it, or it is dropped. */
void net_socket_take(struct vc_net *, struct net_packet *);
/* The MTU of a host's interface changed. */
void net_host_limits(struct vc_net *, uint32_t host);
void net_socket_end(struct net_socket *);

/* ---- net_count.c ---- */

void net_count_wait(struct net_link *, uint64_t ticks);
void net_tap(struct vc_net *, enum vc_net_tap_what, uint32_t host, const struct net_packet *, const struct net_link *,
             enum vc_net_drop);

enum { NET_NOTE_DELIVERED = RNL_SIM_NOTE_FIRST + 256, NET_NOTE_DROPPED };

#endif
