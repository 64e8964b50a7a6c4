/* SPDX-License-Identifier: BSD-3-Clause
 *
 * client.h - a CLIENT of libtirpc whose table of functions is ours. Everything else of it stays libtirpc's, so that the
 * old way remains open at any time. */
#ifndef RNL_RPC_CLIENT_H
#define RNL_RPC_CLIENT_H

#include "greeting.h"
#include "link.h"

#include <pthread.h>
#include <rpc/rpc.h>
#include <stdatomic.h>

enum rnl_rpc_client_state {
    RNL_RPC_CLIENT_OLD = 0,  /* libtirpc carries its calls, for good */
    RNL_RPC_CLIENT_NEW,      /* libtirpc carries its first calls */
    RNL_RPC_CLIENT_GREETED,  /* libtirpc still does; the server has been greeted and has not welcomed it yet */
    RNL_RPC_CLIENT_UPGRADED, /* the link carries its calls */
};

struct rnl_rpc_client {
    struct clnt_ops ops; /* first: cl_ops points here */
    struct clnt_ops *real;
    pthread_mutex_t lock;         /* of all that follows */
    _Atomic int state;            /* enum rnl_rpc_client_state; written under the lock */
    bool datagram;                /* a UDP client: a lost link is no error */
    bool wait_set;                /* CLSET_TIMEOUT was used: it beats the argument of the call */
    _Atomic bool by_link;         /* the last call went over the link: `error` is its result */
    unsigned calls;               /* while NEW, since the server was asked last; looks for the welcome while GREETED */
    unsigned calls_before, tries; /* calls until the server is asked; how often it was, without an answer */
    unsigned late;                /* calls before which stale answers of a UDP server are waited for, a little */
    uint32_t program, version;
    uint32_t xid; /* of the last call over the link */
    struct timeval wait;
    struct rpc_err error;
    struct rnl_rpc_link *link; /* while UPGRADED; of a server on another host also while GREETED */
    bool remote;               /* the server is on another host */
    bool unanswered;           /* the last calls were batched */
    unsigned calls_remote;     /* that went over the link to another host */
    uint64_t greeted_ns;
    XDR out, in;
    int sock; /* doorbell, while GREETED and UPGRADED */
    char proof[RNL_RPC_TOKEN_BYTES];
};

/* Replaces the table of functions of what libtirpc has made; `cl` may be NULL. Returns cl. */
CLIENT *rnl_rpc_client_adopt(CLIENT *cl, rpcprog_t program, rpcvers_t version, bool datagram);

/* client_find.c: nothing is known of the server yet, and it has not been asked. */
void rnl_rpc_client_begin(struct rnl_rpc_client *c);
/* Asks the server, over the CLIENT itself, for a link; `limit` is how long the caller has. State NEW becomes GREETED or
 * OLD, or stays if the server had no time to answer. */
void rnl_rpc_client_greet(CLIENT *cl, struct rnl_rpc_client *c, struct timeval limit);
/* Takes what has come for calls that were given up off the socket of a UDP client. libtirpc would send its next call
 * again for each, whose second answer would be the next to come late, and so on for good. Waits for some ms. */
void rnl_rpc_client_drain(CLIENT *cl, struct rnl_rpc_client *c);
/* Looks, without waiting, whether the server has welcomed this client. State GREETED may become UPGRADED or OLD. */
void rnl_rpc_client_enter(struct rnl_rpc_client *c);

#endif
