/* SPDX-License-Identifier: BSD-3-Clause
 *
 * far_internal.h - the state of links between hosts, of far.c (the endpoint and its peers), far_link.c (records) and
 * far_find.c (how the two find each other).
 *
 * A message begins with one word, in network order: its kind in the upper byte, RNL_RPC_FAR_LAST in the lower.
 *
 *   HELLO    token        the client, first
 *   WELCOME  proof        the server's answer
 *   DATA     bytes        a part of a record; LAST ends it
 *   TAKEN    number (8)   bytes that the program has taken of DATA so far, which bounds what may be on its way
 *   SETTLE   -            answered when all before it has been taken in by the process
 *
 * TAKEN counts a part as its bytes and RNL_RPC_FAR_PART besides, and at most RNL_RPC_FAR_WINDOW may be on their way. */
#ifndef RNL_RPC_FAR_INTERNAL_H
#define RNL_RPC_FAR_INTERNAL_H

#include "far.h"
#include "far_lib.h"
#include "host.h"

#include <pthread.h>
#include <stdalign.h>

enum { RNL_RPC_FAR_HELLO = 1, RNL_RPC_FAR_WELCOME, RNL_RPC_FAR_DATA, RNL_RPC_FAR_TAKEN, RNL_RPC_FAR_SETTLE };
enum {
    RNL_RPC_FAR_LAST = 1,
    RNL_RPC_FAR_MESSAGES = 1, /* the handler of all messages */
    RNL_RPC_FAR_SETTLED = 2,  /* of the answer to SETTLE */
    RNL_RPC_FAR_PART = 64,
    RNL_RPC_FAR_BYTES = 32768, /* of a part at most */
    RNL_RPC_FAR_WINDOW = 1 << 20
};

struct rnl_rpc_far_part {
    struct rnl_rpc_far_part *next;
    uint32_t n;
    bool last;
    alignas(8) unsigned char bytes[];
};

struct rnl_rpc_far {
    struct rnl_rpc_link link; /* first */
    unsigned peer;            /* 0 = none any more */
    bool is_server, dead, up; /* up: greeted and welcomed */
    bool greeted;             /* a server's: it has shown a token, which is to be looked at */
    bool said_hello, settled, coming;
    const char *why; /* it has died */
    unsigned forks;  /* of the process whose link it is */
    uid_t uid;
    uint64_t began_ns;
    int watched;       /* a connection whose end makes the peer's life doubtful; -1 = none */
    uint64_t doubt_ns; /* since when it is doubted; 0 = it is not */
    char token[RNL_RPC_TOKEN_BYTES], proof[RNL_RPC_TOKEN_BYTES];
    int ring; /* what is written to so that link.fd becomes readable */

    unsigned char *room; /* RNL_RPC_FAR_BYTES, of the part that is written */
    bool begun;          /* a part of this record is on its way */
    uint64_t sent, told; /* by the count of TAKEN: what was sent, what the peer said that it has taken */

    struct rnl_rpc_far_part *first, **end, *open; /* parts that came; the one at in_at */
    uint64_t came, taken, taken_told;
};

static inline struct rnl_rpc_far *rnl_rpc_far_of(struct rnl_rpc_link *link)
{
    return (struct rnl_rpc_far *)(void *)link;
}

/* ---- far.c ---- */

struct rnl_rpc_far_state {
    pthread_mutex_t lock; /* of all that follows, of the endpoint and of what links have in common with it */
    const struct rnl_rpc_runnel *lib;
    rnl_endpoint *ep; /* NULL = not opened */
    struct rnl_rpc_far **peers;
    unsigned count;  /* of peers */
    unsigned coming; /* clients' links that are not up yet */
    int well;        /* an eventfd: somebody has come; -1 = this process does not serve */
    uint64_t pumped_ns;
    char service[48];
};
extern struct rnl_rpc_far_state rnl_rpc_far_state;

/* Opens the endpoint. Returns false with *why set if it cannot. Under the lock. */
bool rnl_rpc_far_open(const char **why);
struct rnl_rpc_far *rnl_rpc_far_new(unsigned peer, bool is_server);
/* Whether the thread drives the endpoint, so that this client's link comes up. Under the lock. */
void rnl_rpc_far_coming(struct rnl_rpc_far *, bool);
/* Makes link->fd and, for a server, *sock. */
bool rnl_rpc_far_make_fd(struct rnl_rpc_far *, int *sock);
/* Takes in what came, under the lock. */
void rnl_rpc_far_pump(void);
/* One message, if there is room. Under the lock. 1 = sent, 0 = no room now, -1 = the peer is gone. */
int rnl_rpc_far_send(struct rnl_rpc_far *, unsigned kind, bool last, const void *bytes, size_t n, bool answer);
void rnl_rpc_far_ring(struct rnl_rpc_far *);
/* From here on the endpoint's descriptor becomes readable if something comes. Under the lock. */
void rnl_rpc_far_arm(void);
/* Gives the peer up: the link is broken, and what came before may still be read. Under the lock. */
void rnl_rpc_far_drop(struct rnl_rpc_far *);
void rnl_rpc_far_free(struct rnl_rpc_far *);
/* Waits, under no lock, until ready(f), which is called under the lock; false if deadline_ns passed or f is broken. */
bool rnl_rpc_far_wait(struct rnl_rpc_far *, bool (*ready)(struct rnl_rpc_far *), uint64_t deadline_ns);

/* ---- far_find.c ---- */
/* Says to servers that were reached who comes. Under the lock. */
void rnl_rpc_far_greet(void);
const char *rnl_rpc_far_why_dead(const struct rnl_peer_info *);

/* ---- far_link.c ---- */
extern const struct rnl_rpc_link_ops rnl_rpc_far_ops;

#endif
