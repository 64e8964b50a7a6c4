/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_internal.h - what the files of remote/ share: the state, and which file may call which. Each file calls only
 * those below it in this list; a flow calls handshake.c through its table of operations.
 *
 *     remote.c       the public calls: receive, publish, send in turns, beginning and end
 *     output.c       how one connection sends: its turn, the rooms of the transport, the end of a flow
 *     handshake.c    how one connection begins: HELLO, the flow, UNKNOWN; and its packets come in
 *     stripe.c       further flows to a peer that has several addresses
 *     paths.c        a peer that has several addresses
 *     activity.c     which connections are active, idle or hibernated; attestation of silent peers; all flows to a peer
 *     show.c         what `runnel info` says of paths
 *     schedule.c     whose turn it is, and when; the queue of events
 *     replica_*.c    the copies of a channel (replica.h) */
#ifndef RNL_REMOTE_REMOTE_INTERNAL_H
#define RNL_REMOTE_REMOTE_INTERNAL_H

#include "net/datagram/transport.h"
#include "net/flow/flow.h"
#include "net/flow/handshake.h"
#include "net/flow/paths.h"
#include "remote/remote.h"
#include "remote/replica.h"

/* Work that can wait goes with what the program may answer to the messages it has just been given, or when the next
 * extract begins. */
enum rnl_remote_urgency { RNL_REMOTE_CAN_WAIT = 1, RNL_REMOTE_URGENT };

enum {
    RNL_REMOTE_MTU_NEAR = 65504, /* the longest datagram, as a multiple of 32; over IPv6 it is cut again */
    RNL_REMOTE_POLL = 16         /* packets taken from the transport at a time */
};

struct rnl_remote_stripe { /* a further flow to a peer that has several addresses */
    struct rnl_remote_conn *rc;
    struct rnl_flow flow;
    struct rnl_path way;
    uint64_t acked;            /* the largest number that is acknowledged, at the last look */
    uint64_t retry_ns, gap_ns; /* when a path that does not answer is tried again, and the interval after that */
    uint8_t path;              /* index of the address to which it goes */
    uint8_t works;             /* what was sent there lately is acknowledged */
};

struct rnl_remote_paths { /* of a peer that has several addresses */
    struct rnl_paths set;
    struct rnl_addr addr[RNL_FLOW_PATHS_MAX];
    uint8_t hello;         /* index of the address to which the next HELLO goes */
    uint8_t stripes, lead; /* how many further flows there are; number of the one that leads */
    uint8_t moved_from;    /* 1 + the path that flow 0 has left, until number moved_at is acknowledged; 0 = none */
    uint64_t moved_at;
    struct rnl_hs_made made; /* with the keys from which those of further flows are derived */
    struct rnl_remote_stripe *stripe[RNL_FLOW_PATHS_MAX - 1]; /* flows 1 and on; NULL: not begun */
    struct rnl_replica_stretch own[RNL_FLOW_PATHS_MAX];       /* by flow: bytes that it alone emits */
    uint64_t heard_ns[RNL_FLOW_PATHS_MAX];                    /* by flow: when the peer's last new packet came */
    uint64_t shown[RNL_FLOW_PATHS_MAX];                       /* by flow: bytes that had gone at remote->shown_ns */
};

/* A connection goes through these states, which three bits tell apart:
 *
 *     handshake      has_flow = 0
 *     unconfirmed    has_flow = 1, established = 0: the peer has not proved that it has the flow, nothing is sent
 *     established    has_flow = 1, established = 1
 *     closed         closed = 1, from any of them and for ever: only a flow that ends sends on */
struct rnl_remote_conn {
    struct rnl_remote *remote;
    struct rnl_channel *channel;
    struct rnl_remote_conn *next;       /* list of queued connections */
    struct rnl_remote_conn *next_event; /* list of connections with events */
    uint32_t rank;
    uint32_t heap;             /* 1 + its index in the heap; 0 = it is not there */
    uint32_t active;           /* 1 + its index in remote->active; 0 = it hibernates, or the peer is gone */
    uint32_t rings;            /* calls that published since it was scheduled */
    uint8_t scheduled;         /* enum rnl_remote_urgency: it may have something to send; 0 = it has not */
    uint8_t queued;            /* it is in the queue, and will have its turn */
    uint8_t has_flow;          /* the handshake has made a flow */
    uint8_t established;       /* the flow may send */
    uint8_t closed;            /* nothing is taken from the peer, or published to it, any more */
    uint8_t refused;           /* the peer broke the protocol, and the endpoint has not taken that event yet */
    uint8_t advertise_pending; /* credit words go with the next acknowledgement */
    uint8_t same_kernel;       /* see struct rnl_rank_address */
    uint8_t events;            /* bits: 1 << enum rnl_remote_event_kind */
    int8_t lost_why;           /* enum rnl_death_reason of the event RNL_REMOTE_LOST */
    struct rnl_hs_peer hs;
    struct rnl_flow flow;
    uint64_t cut_ns, cut_at_ns;     /* how long it has acknowledged nothing while this side looked, at that time */
    struct rnl_path path;           /* of this peer alone, since nobody knows which peers are equally far */
    struct rnl_remote_paths *paths; /* NULL: the peer has one address */
    char *why;                      /* sentence: why no connection came about, or ended; NULL = not known */
    struct rnl_replica *replica;    /* NULL: it hibernates */
    /* what is kept of pair and replica during hibernation */
    struct rnl_credit_copy words[2];
    struct rnl_replica_remainder rest;
};

struct rnl_remote_due {
    uint64_t due_ns; /* not later than its deadline; that the deadline is later is found out when it is due */
    struct rnl_remote_conn *rc;
};

struct rnl_remote_awake {
    uint64_t moved_ns; /* something happened at this time, or later */
    struct rnl_remote_conn *rc;
};

struct rnl_remote {
    struct rnl_env *env;
    struct rnl_counters *c;
    struct rnl_transport *t;
    struct rnl_remote_conn **conn;         /* by rank; NULL = none */
    struct rnl_remote_conn *first, **last; /* queued, in the order in which they send */
    struct rnl_remote_conn *event_first, **event_last;
    struct rnl_remote_due *heap; /* ordered by due_ns */
    uint32_t heap_count;
    uint32_t active_count;                 /* connections in `active`: not hibernating, of peers that are not gone */
    struct rnl_remote_awake *active;       /* in any order */
    uint64_t idle_ns, idle_after_ns;       /* when to look for idle connections; how long they have had no traffic */
    uint32_t active_few;                   /* as few as these may stay active for idle_after_ns */
    uint32_t activated;                    /* connections that became active since the last look */
    uint64_t received_ns;                  /* time of the last poll */
    uint64_t probe_ns;                     /* when to look for idle peers that no agent attests (activity.c) */
    uint64_t sent_ns;                      /* time of the last turn of a connection, whose times never go back */
    unsigned polled;                       /* RNL_REMOTE_POLLED and RNL_REMOTE_CAME, to be returned */
    struct rnl_view view[RNL_REMOTE_POLL]; /* packets of the last poll, kept while a HELLO waits for the endpoint */
    uint32_t views;                        /* number of kept packets; 0 = they are released */
    uint8_t hello[RNL_REMOTE_POLL];        /* indices of those that are such a HELLO */
    uint8_t hellos, hello_next;            /* number of these HELLOs; the next one to be answered */
    uint8_t drained;                       /* the last poll brought fewer packets than it could */
    uint8_t receiving;
    uint8_t replied;  /* a packet was sent without a connection, and the transport may hold it back */
    uint8_t urgent;   /* one of the queued connections is urgent */
    uint8_t deferred; /* none was, and the last extract left them queued */
    uint8_t by_fd;
    uint64_t links;    /* the transport's frames->links at the last look */
    uint64_t shown_ns; /* when rnl_remote_show last told others of the paths; 0 = never */
    uint32_t window;   /* bytes that the transport buffers for this endpoint */
    struct rnl_handshake hs;
    struct rnl_job_keys keys;
    struct rnl_job_keys *pair_keys; /* by rank, where each pair has its own; else NULL */
    struct rnl_ciphers ciphers;
    struct rnl_sealer sealer;
    void *sealer_memory;
    struct rnl_key_limits limits;
    struct rnl_flow_config config, config_near; /* for any peer; for those on the same kernel */
    uint32_t near_ns;
    struct rnl_flow_counters *count; /* part of `c` */
    uint8_t has_word;                /* the packet being taken in has a path challenge or its response: */
    struct rnl_path_word word;
    uint64_t stray_responses; /* responses to no challenge, or from another address than was challenged */
};

enum { RNL_CLOSE_LEAVES = 1, RNL_CLOSE_BROKEN }; /* reasons in a CLOSE frame */

/* ---- schedule.c ---- */

void rnl_remote_schedule(struct rnl_remote_conn *rc, enum rnl_remote_urgency how);
/* Takes the first connection out of the queue. */
struct rnl_remote_conn *rnl_remote_dequeue(struct rnl_remote *r);
void rnl_remote_unqueue(struct rnl_remote_conn *rc);
/* Makes the connection due at that time, or before. */
void rnl_remote_due(struct rnl_remote_conn *rc, uint64_t due_ns);
void rnl_remote_not_due(struct rnl_remote_conn *rc); /* never due */
void rnl_remote_raise(struct rnl_remote_conn *rc, enum rnl_remote_event_kind what);
void rnl_remote_no_events(struct rnl_remote_conn *rc);
/* Returns the result for the public calls. */
RNL_INLINE unsigned rnl_remote_result(struct rnl_remote *r)
{
    unsigned result = r->polled | (r->first ? RNL_REMOTE_TO_SEND : 0) |
                      (r->event_first || r->hello_next < r->hellos ? RNL_REMOTE_EVENTS : 0);
    r->polled = 0;
    return result;
}

/* ---- activity.c ---- */

/* Adds a connection that has its replica to the active ones. */
void rnl_remote_add_active(struct rnl_remote_conn *rc);
/* Applies the frames of a packet that had not come before (rnl_replica_apply), after activating its connection. */
int rnl_remote_frames(struct rnl_remote_conn *rc, const unsigned char *at, uint32_t bytes, uint64_t number);
/* Sends the credit words of what was read with the next acknowledgement, or at once where none is owed. */
void rnl_remote_update_credit(struct rnl_remote_conn *rc);
/* Proposes hibernation for connections on which nothing has happened for a while. Does so only now and then, however
 * often it is called. */
void rnl_remote_find_idle(struct rnl_remote *r, uint64_t now_ns);
/* Asks the agents whether a silent peer lives and can be reached. A peer that has not called in yet is waited for,
 * too. */
void rnl_remote_attest(struct rnl_remote_conn *rc, uint64_t now_ns);
/* Probes idle peers that no agent attests; to be called when probe_ns has passed. */
void rnl_remote_probe_idle(struct rnl_remote *r, uint64_t now_ns);

/* Returns true if one of the flows could give data now, if there is any. */
bool rnl_remote_may_send(const struct rnl_remote_conn *rc, uint64_t now_ns);
/* Returns true if nothing is in flight, and nothing is wanted, on all flows. */
bool rnl_remote_flows_idle(const struct rnl_remote_conn *rc);
/* Gives up memory of idle flows. Returns true if none of them will do anything by itself. */
bool rnl_remote_flows_rest(struct rnl_remote_conn *rc);
/* Returns the window that the peer may have in flight on one of its flows. */
uint32_t rnl_remote_window(const struct rnl_remote_conn *rc, const struct rnl_flow *flow);

/* ---- paths.c ---- */

/* Takes all addresses that the job knows of the peer. Returns 0 or RNL_ERR_NO_MEMORY. */
int rnl_remote_paths_new(struct rnl_remote_conn *rc, const struct rnl_addr *addr, unsigned n, unsigned taken);
/* Gives the addresses of a rank, the one of its struct rnl_rank_address first. Returns their number. */
unsigned rnl_remote_addresses(struct rnl_remote *r, uint32_t rank, struct rnl_addr out[RNL_FLOW_PATHS_MAX]);
/* Returns the index of the peer's address that a packet came from; -1 = it is none of them. */
int rnl_remote_path_of(const struct rnl_remote_conn *rc, const struct rnl_view *v);
/* Returns true if the packet came from one of the addresses of `rank`; others are ignored. *first: the rank's first
 * address. To the handshake all addresses are one: if each had a nonce of its own, two sides that begin at once could
 * end with different pairs of nonces. */
bool rnl_remote_is_of(struct rnl_remote *r, uint32_t rank, const struct rnl_view *v, struct rnl_addr *first);
/* Makes the address from which `v` came the active path, since the handshake was completed there. */
void rnl_remote_set_active(struct rnl_remote_conn *rc, const struct rnl_view *v);
/* Sends a HELLO to the next of the peer's addresses in turn. */
int rnl_remote_hello_send(struct rnl_remote_conn *rc, const void *at, uint32_t bytes, uint64_t now_ns);
/* Returns true if UNKNOWN with that packet number of the control space refers to a path challenge sent to that
 * address. */
bool rnl_remote_challenged(const struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t number);
/* Takes in what a new packet says about paths. */
void rnl_remote_paths_input(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns);
/* The first returns true if a packet made for the active path is a CLOSE, which has to go to the other addresses, too.
 * The second sends it there, after the rooms are committed. */
bool rnl_remote_paths_close(const struct rnl_remote_conn *rc, const void *at, uint32_t bytes);
void rnl_remote_paths_send_close(struct rnl_remote_conn *rc, uint64_t now_ns);
/* A card of ours has lost its link, has it again, or is gone. */
void rnl_remote_links_changed(struct rnl_remote *r);
/* Decides which path is active, before anything is sent. */
void rnl_remote_paths_step(struct rnl_remote_conn *rc, uint64_t now_ns);
/* Sends a packet to the source of `v`, without a connection. */
void rnl_remote_reply(struct rnl_remote *r, const struct rnl_view *v, const void *at, uint32_t bytes, uint64_t now_ns);

/* ---- stripe.c ---- */

/* Finds the flow of that number for a packet that came, or begins it. NULL = there is none, and cannot be. */
struct rnl_flow *rnl_remote_flow(struct rnl_remote_conn *rc, unsigned number, const struct rnl_view *v,
                                 uint64_t now_ns);
/* Keeps what keys of further flows are derived from; forgets that, and ends these flows. */
void rnl_remote_stripes_keys(struct rnl_remote_conn *rc, const struct rnl_hs_made *made);
void rnl_remote_stripes_end(struct rnl_remote_conn *rc);
/* A new packet of that flow has come. */
void rnl_remote_heard(struct rnl_remote_conn *rc, unsigned number, const struct rnl_view *v, uint64_t now_ns);
/* Composes what that flow has to carry, as struct rnl_flow_ops says; for flow 0 where there are further ones. */
uint32_t rnl_remote_stripe_fill(struct rnl_remote_conn *rc, unsigned number, unsigned char *at, uint32_t room,
                                struct rnl_flow_note *notes, unsigned *count);
/* Decides, before anything is sent, which flows are used, and which one leads. */
void rnl_remote_stripes_step(struct rnl_remote_conn *rc, uint64_t now_ns);
/* Further flows send what may go; *due_ns becomes less if one is due before. Returns true if there is more to send. */
bool rnl_remote_stripes_turn(struct rnl_remote_conn *rc, bool flush, uint64_t now_ns, uint64_t *due_ns);

/* ---- show.c ---- */

/* Tells other processes, now and then, what went by each path to the peers that have further flows. */
void rnl_remote_show(struct rnl_remote *r, uint64_t now_ns);

/* ---- handshake.c ---- */

/* The operations alloc and free of all flows. */
void *rnl_remote_take_memory(void *ctx, size_t bytes);
void rnl_remote_give_memory(void *ctx, void *at, size_t bytes);

/* Takes in a HELLO. Returns true if a peer without a connection has proved itself, so the endpoint is to be asked. */
bool rnl_remote_hello(struct rnl_remote *r, struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns);
/* Sends the HELLO that is due (rnl_hs_deadline). */
void rnl_remote_step_handshake(struct rnl_remote_conn *rc, uint64_t now_ns);
/* Begins a handshake if there is none, or tells the flow that it has data to send. */
void rnl_remote_want(struct rnl_remote_conn *rc, uint64_t now_ns);
/* Takes in a datagram of an established or unconfirmed connection, from an address of its peer. */
void rnl_remote_input(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns);
/* Takes in an UNKNOWN from that address: the peer does not have the connection. */
void rnl_remote_unknown(struct rnl_remote_conn *rc, const struct rnl_view *v, uint64_t now_ns);
/* Forgets the flow: packets of the peer are then answered as for an unknown connection. */
void rnl_remote_end_flow(struct rnl_remote_conn *rc);
/* Closes the connection, since the peer is gone as far as it can tell, and raises RNL_REMOTE_LOST with why (enum
 * rnl_death_reason). */
void rnl_remote_lose(struct rnl_remote_conn *rc, int why);

/* ---- output.c ---- */

/* Sends what may go, up to a few runs of datagrams. Of a backlog of so many bytes, to which more is being composed,
 * only full datagrams are sent (0 = nothing is being composed). Returns true if there is more to send, after others had
 * their turn. `last`: flush, as the last connection of a round; the caller flushes in any case, since a system call for
 * each of hundreds of peers would cost more than the rest. */
bool rnl_remote_output(struct rnl_remote_conn *rc, uint64_t backlog, uint64_t now_ns, bool last);

/* Frees what rnl_remote_new has made; open.c. */
void rnl_remote_free_tables(struct rnl_remote *);

#endif
