/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_internal.h - the state of links between hosts, of remote.c (the endpoint and its peers), remote_link.c
 * (records), remote_fork.c (replies of forked children) and remote_find.c (how the two find each other).
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
    int relay;       /* in a child that was forked for a call: where its replies go; -1 = none */
    bool writing;    /* the program writes a record to a link that is shared */
    bool relaying;   /* a child's is on its way */
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

/* Whether the peer has taken enough for another part. Under the lock. */
static inline bool rnl_rpc_remote_has_room(const struct rnl_rpc_remote *f)
{
    return f->sent + RNL_RPC_REMOTE_BYTES + RNL_RPC_REMOTE_PART - f->acknowledged <= RNL_RPC_REMOTE_WINDOW;
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
    int relays;      /* an epoll of what children say; -1 = none yet */
    uint64_t pumped_ns;
    char service[48];
};
extern struct rnl_rpc_remote_state rnl_rpc_remote_state;

/* Opens the endpoint. Returns false with *why set if it cannot. Under the lock. */
bool rnl_rpc_remote_open(const char **why);
struct rnl_rpc_remote *rnl_rpc_remote_new(unsigned peer, bool is_server, const struct rnl_rpc_link_ops *ops);
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
void rnl_rpc_remote_news(void); /* the thread looks what there is to do */
/* Says to servers that were reached who comes. Under the lock. */
void rnl_rpc_remote_greet(void);

/* ---- remote_fork.c ---- */
/* The thread that serves a call of f is going to fork. Returns false if the child cannot reply. */
bool rnl_rpc_remote_share(struct rnl_rpc_remote *f);
void rnl_rpc_remote_forked(bool is_child); /* under the lock, in both */
/* In a child: room for more of a record, and its end. They return false if there is no memory, or nobody to take it. */
bool rnl_rpc_remote_child_room(struct rnl_rpc_remote *f);
bool rnl_rpc_remote_child_end(struct rnl_rpc_remote *f);
/* Passes on what children have said, without waiting. Returns whether there are any that may say more; *waits:
 * something waits for room. Under the lock. */
bool rnl_rpc_remote_relay(bool *waits);
void rnl_rpc_remote_relay_forget(const struct rnl_rpc_remote *f); /* it is freed; under the lock */

/* ---- remote_link.c ---- */
extern const struct rnl_rpc_link_ops rnl_rpc_remote_ops;

#endif
