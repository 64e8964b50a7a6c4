/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.h - peers of other hosts: between the datagrams of a transport and the mirrors of pairs (mirror.h). Each such
 * peer has a link: handshake, flow (reliable/) and mirror. All of it is worked on in the endpoint's own calls:
 *
 *   an extract begins   receive: every datagram to its link; acknowledgements, frames, handshakes
 *   ... handlers run    what they send marks their links (rnl_remote_ring)
 *   an extract ends     send: links that are marked or due give out what may go, a batch each in turn; if it took
 *                       messages in, only if one of them presses
 *
 * A lone message does not wait for that: when nothing of its link is in flight it goes out in the call that ends it. So
 * does what has piled up to a batch.
 *
 * Idle links cost no time, which is kept in a heap of deadlines, and little memory: when nothing has happened for a
 * while (rest_ns), and nothing is open, unread, untold or unacknowledged, a link rests. Its rings and its mirror
 * are given back, it is not looked at, and RNL_SHUT_RESTS sends whoever wants to write the long way, which wakes it. */
#ifndef RNL_ENDPOINT_REMOTE_H
#define RNL_ENDPOINT_REMOTE_H

#include "endpoint/endpoint.h"

struct rnl_remote_options { /* 0 = the default */
    uint64_t silent_ns;     /* a peer that owes an answer and is not heard for so long is dead: 30 s */
    uint64_t open_ns;       /* the same for one that does not answer from the start: 30 s */
    uint64_t rest_ns;       /* a link on which nothing happens for so long rests: 50 ms */
};

/* Takes env->datagrams into use. opt may be NULL. 0, RNL_ERR_NO_MEMORY, RNL_ERR_UNSUPPORTED, RNL_ERR_SYSTEM,
 * RNL_ERR_ARG. */
int rnl_remote_new(struct rnl_endpoint *ep, const struct rnl_remote_options *opt);
/* Tells all peers that we leave, and closes the transport. Fine without. */
void rnl_remote_free(struct rnl_endpoint *ep);

/* 1 = that rank is on another host. */
int rnl_remote_away(struct rnl_endpoint *ep, uint32_t rank);
/* conn, whose pair is open, gets a link; the handshake begins when there is something to say. 0 or a negative status.
 */
int rnl_remote_link(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* A connection that rests has given back its rings; whoever wants to write into it wakes it. 0 or RNL_ERR_NO_MEMORY. */
int rnl_remote_wake(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Nothing is sent to that peer any more, or taken from it; it is told that we broke with it, or that we leave. */
void rnl_remote_part(struct rnl_conn *conn, int broken);
void rnl_remote_unlink(struct rnl_conn *conn);
/* The same, and the peer's address and nonces are forgotten: another connection may follow. */
void rnl_remote_forget(struct rnl_conn *conn);
/* 0 = its connection is with another incarnation of the peer. */
int rnl_remote_may_be(const struct rnl_conn *conn, uint64_t incarnation);
/* It is not looked at any more: it rests, or the peer is gone. */
void rnl_remote_sleeps(struct rnl_conn *conn);
/* Why no connection to it came about, as a sentence; NULL = it is on this host, or there was one. conn may be NULL. */
const char *rnl_remote_why(const struct rnl_conn *conn);

/* Something was written into conn's rings (RNL_ARMED_LINES) or words (RNL_ARMED_ROOM). */
void rnl_remote_ring(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what);
/* What has arrived. */
void rnl_remote_receive(struct rnl_endpoint *ep);
/* Asking a network takes long beside looking at the rings of this host, so it is not asked in each extract where there
 * are such and nothing came of it for a while. Called where an extract might: 1 = it is time. */
RNL_INLINE int rnl_remote_time(struct rnl_endpoint *ep)
{
    return ep->net_due || atomic_load_explicit(ep->net_bell, memory_order_relaxed) & ep->net_bits ||
           ++ep->net_skipped > ep->net_skip;
}
/* For an extract that found nothing, or one of many that do: the next one asks. */
void rnl_remote_soon(struct rnl_endpoint *ep);
/* What is marked or due. */
void rnl_remote_send(struct rnl_endpoint *ep);
/* The same where nothing has run since rnl_remote_receive, whose time will do. */
void rnl_remote_send_after(struct rnl_endpoint *ep);
/* The same after an extract that took something in, which the program may be about to answer: what does not press is
 * left until then, or until the next extract begins. */
void rnl_remote_leave(struct rnl_endpoint *ep);
/* Marks links whose words have changed without a ring: before a sleep, and now and then. */
void rnl_remote_tidy(struct rnl_endpoint *ep);
/* All that had arrived when we last looked has been taken in. */
int rnl_remote_drained(const struct rnl_endpoint *ep);
/* Nothing is under way to any peer, or will be before something is written. */
int rnl_remote_at_rest(const struct rnl_endpoint *ep);
/* All that was published for other hosts has left once: who goes on to compute keeps nobody waiting for it, short of a
 * loss. */
int rnl_remote_all_left(const struct rnl_endpoint *ep);
/* There is something to receive or to send. Otherwise the transport is armed: it rings our bell. */
int rnl_remote_look(struct rnl_endpoint *ep, uint64_t now_ns);
/* Of the transport, where nobody rings for it (ep->by_fd). */
int rnl_remote_fd(const struct rnl_endpoint *ep);
/* Every peer that there is a connection to is on another host. */
int rnl_remote_all_away(const struct rnl_endpoint *ep);
/* To send something by then; UINT64_MAX = nothing. */
uint64_t rnl_remote_deadline(struct rnl_endpoint *ep);

#endif
