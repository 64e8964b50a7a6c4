/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_internal.h - the state of links between hosts, of remote.c (the endpoint and its peers), remote_link.c
 * (records) and remote_find.c (how the two find each other).
 *
 * A message begins with one word, in network order: its kind in the upper byte, RNL_RPC_REMOTE_LAST in the lower.
 *
 *   HELLO    token        the client, first
 *   WELCOME  proof        the server's answer
 *   DATA     bytes        a part of a record; LAST ends it
 *   TAKEN    number (8)   bytes that the program has taken of DATA so far, which bounds what may be on its way
 *   FLUSH   -            answered when all before it has been taken in by the process
 *
 * TAKEN counts a part as its bytes and RNL_RPC_REMOTE_PART besides, and at most RNL_RPC_REMOTE_WINDOW may be on their
 * way. */
#ifndef RNL_RPC_REMOTE_INTERNAL_H
#define RNL_RPC_REMOTE_INTERNAL_H

#include "host.h"
#include "remote.h"
#include "remote_lib.h"

#include <pthread.h>
#include <stdalign.h>

enum {
    RNL_RPC_REMOTE_HELLO = 1,
    RNL_RPC_REMOTE_WELCOME,
    RNL_RPC_REMOTE_DATA,
    RNL_RPC_REMOTE_TAKEN,
    RNL_RPC_REMOTE_FLUSH
};
enum {
    RNL_RPC_REMOTE_LAST = 1,
    RNL_RPC_REMOTE_MESSAGES = 1, /* the handler of all messages */
    RNL_RPC_REMOTE_FLUSHED = 2,  /* of the answer to FLUSH */
    RNL_RPC_REMOTE_PART = 64,
    RNL_RPC_REMOTE_BYTES = 32768, /* of a part at most */
    RNL_RPC_REMOTE_WINDOW = 1 << 20
};

struct rnl_rpc_remote_part {
    struct rnl_rpc_remote_part *next;
    uint32_t n;
    bool last;
    alignas(8) unsigned char bytes[];
};

struct rnl_rpc_remote {
    struct rnl_rpc_link link; /* first */
    unsigned peer;            /* 0 = none any more */
    bool is_server, dead, up; /* up: greeted and welcomed */
    bool greeted;             /* a server's: it has shown a token, which is to be looked at */
    bool said_hello, flushed, coming;
    const char *why; /* it has died */
    unsigned forks;  /* of the process whose link it is */
    uid_t uid;
    uint64_t began_ns;
    int watched;       /* a connection whose end makes the peer's life doubtful; -1 = none */
    uint64_t doubt_ns; /* since when it is doubted; 0 = it is not */
    char token[RNL_RPC_TOKEN_BYTES], proof[RNL_RPC_TOKEN_BYTES];
    int ring; /* what is written to so that link.fd becomes readable */

    unsigned char *room;         /* RNL_RPC_REMOTE_BYTES, of the part that is written */
    bool begun;                  /* a part of this record is on its way */
    uint64_t sent, acknowledged; /* by the count of TAKEN: what was sent, what the peer said that it has taken */

    struct rnl_rpc_remote_part *first, **end, *open; /* parts that came; the one at in_at */
    uint64_t came, taken, taken_advertised;
};

static inline struct rnl_rpc_remote *rnl_rpc_remote_of(struct rnl_rpc_link *link)
{
    return (struct rnl_rpc_remote *)(void *)link;
}

/* ---- remote.c ---- */

struct rnl_rpc_remote_state {
    pthread_mutex_t lock; /* of all that follows, of the endpoint and of what links have in common with it */
    const struct rnl_rpc_runnel *lib;
    rnl_endpoint *ep; /* NULL = not opened */
    struct rnl_rpc_remote **peers;
    unsigned count;  /* of peers */
    unsigned coming; /* clients' links that are not up yet */
    int arrivals;    /* an eventfd: somebody has come; -1 = this process does not serve */
    uint64_t pumped_ns;
    char service[48];
};
extern struct rnl_rpc_remote_state rnl_rpc_remote_state;

/* Opens the endpoint. Returns false with *why set if it cannot. Under the lock. */
bool rnl_rpc_remote_open(const char **why);
struct rnl_rpc_remote *rnl_rpc_remote_new(unsigned peer, bool is_server);
/* Whether the thread drives the endpoint, so that this client's link comes up. Under the lock. */
void rnl_rpc_remote_coming(struct rnl_rpc_remote *, bool);
/* Makes link->fd and, for a server, *sock. */
bool rnl_rpc_remote_make_fd(struct rnl_rpc_remote *, int *sock);
/* Takes in what came, under the lock. */
void rnl_rpc_remote_pump(void);
/* One message, if there is room. Under the lock. 1 = sent, 0 = no room now, -1 = the peer is gone. */
int rnl_rpc_remote_send(struct rnl_rpc_remote *, unsigned kind, bool last, const void *bytes, size_t n, bool answer);
void rnl_rpc_remote_ring(struct rnl_rpc_remote *);
/* From here on the endpoint's descriptor becomes readable if something comes. Under the lock. */
void rnl_rpc_remote_arm(void);
/* Gives the peer up: the link is broken, and what came before may still be read. Under the lock. */
void rnl_rpc_remote_drop(struct rnl_rpc_remote *);
void rnl_rpc_remote_free(struct rnl_rpc_remote *);
/* Waits, under no lock, until ready(f), which is called under the lock; false if deadline_ns passed or f is broken. */
bool rnl_rpc_remote_wait(struct rnl_rpc_remote *, bool (*ready)(struct rnl_rpc_remote *), uint64_t deadline_ns);

/* ---- remote_find.c ---- */
/* Says to servers that were reached who comes. Under the lock. */
void rnl_rpc_remote_greet(void);
const char *rnl_rpc_remote_why_dead(const struct rnl_peer_info *);

/* ---- remote_link.c ---- */
extern const struct rnl_rpc_link_ops rnl_rpc_remote_ops;

#endif
