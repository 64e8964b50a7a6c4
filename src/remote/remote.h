/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.h - peers on other hosts. Keeps both copies of a channel alike (replica.h) over a reliable flow of datagrams
 * (net/flow/flow.h). Each such peer has a remote connection: handshake, flow and replica.
 *
 * The endpoint drives this folder in its own calls, and owns the pairs:
 *
 *   an extract begins   rnl_remote_receive gives every datagram to its connection: acknowledgements, frames, handshakes
 *   ... handlers run    what they send schedules their connections (rnl_remote_published)
 *   an extract ends     rnl_remote_send: connections that are scheduled or due send what may go, a batch each in turn;
 *                       after an extract that took messages in, only if one is urgent (rnl_remote_send_urgent)
 *
 * A message whose connection has nothing in flight does not wait for the end of the extract: the call that ends the
 * message sends it. So does a backlog of a full batch.
 *
 * Nothing here calls up. What the endpoint has to know becomes an event. Events are bits of each connection, so they
 * cannot be lost and need no memory. Each working call returns whether there are any, and the endpoint then takes them
 * one by one (rnl_remote_event). A HELLO of a peer without a connection stays in its receive buffer until the endpoint
 * has answered that event.
 *
 * Idle connections cost no time, since the times at which they are due lie in a heap, and little memory. A
 * connection on which nothing has happened for rest_ns, with nothing open, unread, unadvertised or unacknowledged,
 * is proposed for hibernation (RNL_REMOTE_IDLE). If the endpoint agrees, its rings and its replica are given back.
 * The next packet of the peer, or the next message to it, makes the connection active again. */
#ifndef RNL_REMOTE_REMOTE_H
#define RNL_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/env.h"
#include "base/error.h"
#include "ring/segment.h"

struct rnl_remote;      /* of an endpoint */
struct rnl_remote_conn; /* of one peer */

struct rnl_remote_options { /* 0 = the default */
    uint64_t silent_ns;     /* silence after which a peer that owes an answer is dead: 30 s */
    uint64_t open_ns;       /* silence after which a peer that has never answered is dead: 30 s */
    uint64_t rest_ns;       /* time without an event after which a connection may hibernate: 50 ms */
};

/* The result that the calls below return, where they say so: bits for what the endpoint has to do next. */
enum rnl_remote_result {
    RNL_REMOTE_TO_SEND = 1, /* connections are queued: call rnl_remote_send soon */
    RNL_REMOTE_EVENTS = 2,  /* there are events */
    RNL_REMOTE_POLLED = 4,  /* the transport was polled */
    RNL_REMOTE_CAME = 8     /* the transport was polled, and something had come */
};

enum rnl_remote_event_kind {
    RNL_REMOTE_ACCEPT = 1, /* a peer that has proved its rank wants a connection: call rnl_remote_accept first */
    RNL_REMOTE_ACTIVE,     /* a packet came for a hibernated connection, which has its rings again */
    RNL_REMOTE_DATA,       /* cells have arrived in its rings */
    RNL_REMOTE_IDLE,       /* it could hibernate: rnl_remote_may_hibernate, rnl_remote_hibernate */
    RNL_REMOTE_BROKEN,     /* the peer broke the protocol; nothing is taken from it until rnl_remote_disconnect */
    RNL_REMOTE_LEFT,       /* the peer has ended the connection: see rnl_remote_all_read, rnl_remote_abandon */
    RNL_REMOTE_LOST        /* no packet is exchanged with the peer any more; `why` has the reason */
};
struct rnl_remote_event {
    uint32_t kind, rank; /* enum rnl_remote_event_kind; the peer's rank */
    int32_t why;         /* RNL_REMOTE_LOST: enum rnl_death_reason */
};

/* ---- beginning and end ---- */

/* Takes env->datagrams into use, and counts in `counters`. opt may be NULL. Returns 0, RNL_ERR_NO_MEMORY,
 * RNL_ERR_UNSUPPORTED, RNL_ERR_SYSTEM or RNL_ERR_ARG. */
int rnl_remote_new(struct rnl_env *env, struct rnl_counters *counters, const struct rnl_remote_options *opt,
                   struct rnl_remote **out);
/* Closes the transport. All connections must have been freed. r may be NULL. */
void rnl_remote_free(struct rnl_remote *r);

/* ---- connections ---- */

/* Makes a connection to the peer `rank`, which keeps `pair` (rnl_channel_open_remote) alike. The handshake begins when
 * there is something to send. Processes of the peer with incarnations up to `refused` are rejected. Returns 0 or a
 * negative status. */
int rnl_remote_connect(struct rnl_remote *r, uint32_t rank, struct rnl_channel *channel, uint64_t refused,
                       struct rnl_remote_conn **out);
/* Answers RNL_REMOTE_ACCEPT with the connection that was made; NULL = none can be made now, and the peer asks again.
 * Returns the result. */
unsigned rnl_remote_accept(struct rnl_remote *r, struct rnl_remote_conn *rc);
/* Ends the exchange with the peer, and sends it the reason: that it broke the protocol, or that this process leaves. To
 * be called at most once. Returns the result. */
unsigned rnl_remote_disconnect(struct rnl_remote_conn *rc, bool broken);
/* Ends the exchange without a packet to the peer, which has ended the connection itself. */
void rnl_remote_abandon(struct rnl_remote_conn *rc);
/* Returns true if the peer has read everything that was published for it. Where all leave together, it has then ended
 * the connection as agreed; otherwise rnl_remote_abandon is to follow. */
bool rnl_remote_all_read(struct rnl_remote_conn *rc);
/* Removes the connection from what is polled and timed, since the peer is gone. */
void rnl_remote_retire(struct rnl_remote_conn *rc);
void rnl_remote_conn_free(struct rnl_remote_conn *rc);
/* Frees the connection, and forgets the peer's address and nonces, so that another connection may follow. */
void rnl_remote_forget(struct rnl_remote_conn *rc);
/* Gives a hibernated connection its rings again. Returns 1 if it has become active, 0 if it was, or
 * RNL_ERR_NO_MEMORY. */
int rnl_remote_activate(struct rnl_remote_conn *rc);
/* Returns true if nothing has happened for long enough, and nothing is unread or unacknowledged. */
bool rnl_remote_may_hibernate(struct rnl_remote_conn *rc);
void rnl_remote_hibernate(struct rnl_remote_conn *rc);
/* Returns false if the connection is with another incarnation of the peer. */
bool rnl_remote_is_with(const struct rnl_remote_conn *rc, uint64_t incarnation);
/* Returns why no connection came about, or why it ended, as a sentence; NULL = it came about, and no reason is
 * known. */
const char *rnl_remote_why(const struct rnl_remote_conn *rc);
/* Returns how far the peer has read lane 0 of ours, where every reply that it sent up to there has arrived. The credit
 * words alone do not tell, since they overtake cells. */
uint64_t rnl_remote_watermark(const struct rnl_channel *channel);

/* ---- work ---- */

/* Announces cells that were published in the connection's rings. use: bits of enum rnl_remote_use; composing: bytes of
 * its bulk area that are reserved and not composed yet. Returns the result. */
enum rnl_remote_use {
    RNL_REMOTE_IN_HANDLER = 1, /* a handler runs, and others that send may follow */
    RNL_REMOTE_AWAITS = 2      /* many requests to the peer are unanswered: the program will extract soon */
};
unsigned rnl_remote_published(struct rnl_remote_conn *rc, unsigned use, uint64_t composing);
/* Does the same where the connection has its turn to send in any case, has nothing in its bulk area, and its backlog is
 * not to be looked at yet: most of a burst of short messages. Returns false, and does nothing, if that is not so. The
 * result is that of the call before. */
bool rnl_remote_joins_burst(struct rnl_remote_conn *rc);
/* Returns how many bytes of the bulk area of lane 0 have not been sent once. */
uint64_t rnl_remote_unsent(const struct rnl_remote_conn *rc);
/* Announces changed credit words. They wait for the next acknowledgement, if one is owed, unless at_once. Returns the
 * result. */
unsigned rnl_remote_advertise(struct rnl_remote_conn *rc, bool at_once);

/* Takes in what has arrived. Returns the result. */
unsigned rnl_remote_receive(struct rnl_remote *r);
/* Sends what is scheduled or due. Returns the result. */
unsigned rnl_remote_send(struct rnl_remote *r);
/* Sends as rnl_remote_send does, where nothing has run since rnl_remote_receive, and so uses the time of that. */
unsigned rnl_remote_send_after(struct rnl_remote *r);
/* Sends only if a connection is urgent, after an extract that took messages in and that the program may be about to
 * answer. The rest is left until then, or until the next receive. Returns the result. */
unsigned rnl_remote_send_urgent(struct rnl_remote *r);
/* Schedules connections whose credit words have changed unnoticed, and proposes hibernation. To be called before a
 * sleep, and now and then. Returns the result. */
unsigned rnl_remote_tidy(struct rnl_remote *r);

/* Gives the next event. Returns 1, or 0 = there is none. */
int rnl_remote_event(struct rnl_remote *r, struct rnl_remote_event *out);

/* ---- state ---- */

/* Gives the transport's word that tells at the cost of a load whether something came (net/datagram/transport.h, bell).
 */
int rnl_remote_bell(struct rnl_remote *r, const _Atomic uint32_t **at, uint32_t *bits);
/* Returns true if everything that had arrived at the last poll has been taken in and the transport is armed: it will
 * ring. */
bool rnl_remote_drained(const struct rnl_remote *r);
/* Arms the transport again, where somebody still sleeps on it. */
void rnl_remote_rearm(struct rnl_remote *r);
/* Returns true if there is nothing to receive, nothing is due, and the transport is armed. */
bool rnl_remote_asleep(struct rnl_remote *r, uint64_t now_ns);
/* Returns true if nothing is under way to any peer, or will be before something is written. */
bool rnl_remote_at_rest(const struct rnl_remote *r);
/* Returns true if all that was published has been sent once: unless a packet is lost, nobody waits for this process. */
bool rnl_remote_all_left(const struct rnl_remote *r);
/* Returns the transport's descriptor, where it rings no bell. */
int rnl_remote_fd(const struct rnl_remote *r);
/* Returns true if the transport rings no bell: sleeping has to be on its descriptor. */
bool rnl_remote_by_fd(const struct rnl_remote *r);
/* Returns the number of connections that do not hibernate, of peers that are not gone. */
uint32_t rnl_remote_active(const struct rnl_remote *r);
/* Returns the time at which something is to be sent; UINT64_MAX = never. */
uint64_t rnl_remote_deadline(const struct rnl_remote *r);

#endif
