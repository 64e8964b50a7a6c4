/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer.h - the life of a peer as a state machine, and what is known of each rank. */
#ifndef RNL_ENDPOINT_PEER_H
#define RNL_ENDPOINT_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct rnl_conn;
struct rnl_endpoint;

/* The life of a peer, as this endpoint sees it. rnl_peer_move alone changes it, along these edges:
 *
 *            it made a connection            we joined it
 *     NEW <----------------------> JOINING ------------------> UP <---- from NEW: we made the connection
 *      |     it cannot be joined      |                       / |
 *      |                         it died                     /  | it died, is silent, left, or broke the protocol
 *      |                              v     we joined it    /   v
 *      | it died                   ENDING -----------------'  DYING   what it sent before is still taken in
 *      v                              |                         |
 *     DEAD <--------------------------+-------------------------+     also from UP, where a hibernated one has no rings
 *      |            it cannot be joined       all is taken in
 *      +---> NEW    rnl_readmit */
enum rnl_peer_is {
    RNL_PEER_IS_NEW = 0,
    RNL_PEER_IS_JOINING, /* the peer has made a connection that could not be joined yet */
    RNL_PEER_IS_ENDING,  /* as JOINING, and the peer has died since; reason and detail say why */
    RNL_PEER_IS_UP,
    RNL_PEER_IS_DYING, /* sends fail; what the peer had sent is still taken in */
    RNL_PEER_IS_DEAD
};
/* What the job says of the process behind the rank:
 *
 *     SAME ---- death ----> GONE ---- another is started ----> NEXT ---- it connects ----> NEXT_CONNECTS
 *
 * A death leads to GONE and another start to NEXT from everywhere, rnl_readmit back to SAME. */
enum rnl_process { RNL_PROCESS_SAME = 0, RNL_PROCESS_GONE, RNL_PROCESS_NEXT, RNL_PROCESS_NEXT_CONNECTS };

struct rnl_peer { /* of each rank, connected or not */
    struct rnl_conn *conn;
    uint64_t incarnation;
    uint8_t state;             /* enum rnl_peer_is */
    uint8_t process;           /* enum rnl_process */
    uint8_t reason;            /* enum rnl_death_reason */
    uint8_t reported;          /* reported to the program by an interface that does so once */
    uint8_t report_due;        /* the function of rnl_on_death is still to be called */
    uint8_t asked_agent;       /* a connect has waited for the agent already */
    uint8_t disconnect_due;    /* the peer broke the protocol, and the agent had no room for the report yet */
    uint8_t rejoined;          /* the peer was dead before, and readmitted */
    uint8_t request_due;       /* the program is to be asked whether this process may become a peer */
    uint8_t unjoined_reported; /* the program was told that the connection of the peer cannot be joined */
    uint8_t left;              /* the program has given the number back, and something of the peer is still in use */
    int32_t detail;
    uint64_t last_dead; /* last incarnation that the job reported as gone; 0 = none */
};

RNL_INLINE bool rnl_peer_is_dead(const struct rnl_peer *p)
{
    return p->state >= RNL_PEER_IS_DYING;
}

/* Whether the peer has made a connection that is still to be joined. */
RNL_INLINE bool rnl_peer_wants_join(const struct rnl_peer *p)
{
    return p->state == RNL_PEER_IS_JOINING || p->state == RNL_PEER_IS_ENDING;
}

/* Moves the peer to that state. Returns false, and changes nothing, where no edge leads there. */
bool rnl_peer_move(struct rnl_endpoint *ep, uint32_t rank, enum rnl_peer_is to);
/* Returns the state that rnl_peer reports. */
enum rnl_peer_state rnl_peer_public_state(const struct rnl_peer *p);

#endif
