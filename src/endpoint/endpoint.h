/* SPDX-License-Identifier: BSD-3-Clause
 *
 * endpoint.h - peers, connections, credit, waiting, life and death. Above it: stream/ and window/ only.
 *
 * A struct rnl_endpoint is all the state of one place in a job; nothing is global. One thread at a time works on it
 * (RNL_SHARED ones lock in every public call). A connection to a peer of this host is a pair of rings per lane; it is
 * made on the first send, or when the watcher says that the peer made it. What is known of a peer is asked from env
 * only. */
#ifndef RNL_ENDPOINT_ENDPOINT_H
#define RNL_ENDPOINT_ENDPOINT_H

#include <pthread.h>

#include "base/bell.h"
#include "base/coro.h"
#include "base/counters.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fence.h"
#include "ring/ring.h"
#include "transport/shm/pair.h"

struct rnl_conn;
struct rnl_handler;
struct rnl_link;
struct rnl_post;
struct rnl_remote;

enum rnl_stream_state {
    RNL_STREAM_FREE = 0,
    /* out */
    RNL_STREAM_SHORT,    /* composed at its place in a line */
    RNL_STREAM_EXTENT,   /* one reserved extent, published as a growing prefix */
    RNL_STREAM_CHUNKS,   /* an extent per chunk */
    RNL_STREAM_SWALLOW,  /* the peer is dead: bytes go nowhere */
    RNL_STREAM_ABORTING, /* given up, and no line was free to say so; nobody's any more */
    /* in */
    RNL_STREAM_INLINE,    /* all is here: its handler runs on the caller's stack */
    RNL_STREAM_RUNNING,   /* its handler runs on a coroutine */
    RNL_STREAM_SUSPENDED, /* its handler waits for `want` more bytes */
    RNL_STREAM_GATHER, /* bytes are collected until the message is whole: no stack was free, or the handler takes whole
                          messages */
    RNL_STREAM_DISCARD /* the rest is dropped as it comes */
};

struct rnl_handler {
    rnl_stream_handler *stream; /* NULL: whole, or none */
    rnl_whole_handler *whole;
    void *ctx;
    uint32_t flags; /* RNL_IN_PLACE, RNL_HANDLER_... */
};
enum {
    RNL_HANDLER_DROP = 1 << 16, /* a suspended one is dropped when its peer dies, not resumed */
    RNL_HANDLER_FM = 1 << 17    /* `stream` calls ctx, which fm/ may do itself */
};

enum { RNL_REFUSED_BYTES = 40 };

/* NOT, or one of the others; with LONG: a line has no room for two of them. ASK: one message with room for an answer,
 * for a handler of streams. */
enum rnl_ready {
    RNL_READY_NOT = 0,
    RNL_READY_STREAM,
    RNL_READY_FM,
    RNL_READY_WHOLE,
    RNL_READY_LONG = 4,
    RNL_READY_ASK = 8
};

/* The open message of one (peer, lane) and direction. stream/ alone works on it; it lives here so that a connection is
 * one object. */
struct rnl_stream {
    unsigned char *at, *end; /* out: next free byte, end of room. in: next unread, end of what is here */
    unsigned char *base;     /* where this item or extent begins */
    uint64_t before;         /* bytes of the message in earlier extents */
    uint8_t state;           /* enum rnl_stream_state */
    uint8_t last;            /* in: all of it is here */
    uint8_t answered;        /* in: rnl_reply was called */
    int8_t lost;             /* in: 0, or why the rest never comes: RNL_ERR_PEER_DEAD, RNL_ERR_ABORTED */
    uint32_t item;           /* in: bytes of each item while `ready` */
    uint16_t handler;
    uint8_t fresh;   /* out, SHORT: opens a line */
    uint8_t first;   /* out: nothing of it has been published */
    uint32_t answer; /* out: may cause; in: may be caused */
    uint8_t lane;
    uint8_t closed;   /* the extent is complete */
    uint8_t drop;     /* in: when the peer dies the handler is dropped, not resumed (FM) */
    uint8_t too_long; /* in, GATHER: above whole_max; only counted */
    uint8_t spoilt;   /* out: a piece of it failed when a part of that had been taken */
    uint8_t ready;    /* in: enum rnl_ready: it is set up for what rx.expect says */
    struct rnl_endpoint *ep;
    struct rnl_conn *conn;
    uint64_t bound;          /* bytes announced; in: not set for items of a line */
    union {                  /* of what only one direction has two share a place: a peer may take 6 kB */
        rnl_head key;        /* out, SHORT */
        unsigned char *want; /* in, suspended */
    };
    uint64_t start; /* extents: position in the bulk area */
    union {
        uint64_t bulk_was; /* out: how far that was used before */
        size_t want_bytes; /* in, suspended */
    };
    uint32_t reserved, published;
    union {
        struct rnl_coro *coro;    /* in */
        struct rnl_stream *owner; /* out: the message whose handler, on a coroutine, began it; NULL = the program's */
    };
    struct rnl_handler h;         /* in: as it was when the message came */
    int32_t ending;               /* what the handler returned */
    uint32_t head_bytes;          /* in, on a coroutine, answer > 0: of conn->head */
    unsigned char *gather;        /* in, GATHER: the collecting buffer; NULL = in place, or too_long */
    size_t gathered, gather_room; /* bytes in it; its size */
};
/* in: bytes the handler has taken */
RNL_INLINE uint64_t rnl_stream_received(const struct rnl_stream *s)
{
    return s->before + (uint64_t)(s->at - s->base);
}

/* Why the head of a lane is not taken in now; such a lane counts as empty for whoever wants to sleep. */
enum rnl_stuck { RNL_STUCK_NOT = 0, RNL_STUCK_HANDLER, RNL_STUCK_STACK, RNL_STUCK_ANSWER, RNL_STUCK_MEMORY };

enum rnl_shut {
    RNL_SHUT_STREAM = 1,
    RNL_SHUT_POSTS = 2,
    RNL_SHUT_DEAD = 4,
    RNL_SHUT_NOT_CONNECTED = 8,
    RNL_SHUT_RESTS = 16
};

struct rnl_conn {
    struct rnl_pair pair;
    struct rnl_stream in[RNL_LANES - 1], out[1]; /* lane 2 carries no streams, and lane 1 no open ones */
    uint32_t rank;
    uint32_t hot_index; /* in ep->hot: from hot_count on it is cold, from cold_end on quiet */
    uint8_t shut;       /* enum rnl_shut: why a short send cannot go at once */
    uint8_t gone;       /* dead or broken: nothing is sent or taken in any more */
    uint8_t dying;      /* dead: what it sent is still taken in first */
    uint8_t awaited;    /* during a send: much that was asked of it is unanswered. Who sends extracts soon, then */
    union {
        struct {
            uint8_t broken;           /* ... and is not */
            uint8_t self;             /* the peer is this endpoint */
            uint8_t lane1_hot;        /* we asked something: answers may come */
            uint8_t stuck[RNL_LANES]; /* enum rnl_stuck */
        };
        uint64_t odd; /* any of them: not for stream/lone.h */
    };
    uint32_t stuck_answer;                    /* RNL_STUCK_ANSWER: the room it waits for */
    uint32_t cooled_round;                    /* cold.c: when it last became cold */
    unsigned char head[RNL_REFUSED_BYTES];    /* of in[0], should that be refused after it was suspended */
    uint64_t stuck_at[RNL_LANES];             /* 1 + position of the message that the counters know to be stuck */
    uint8_t post_sending;                     /* the open out stream is the first queued message's */
    uint8_t wants_room;                       /* something waits for a line to it that no call waits for */
    uint8_t waits;                            /* calls that wait for room of it */
    uint8_t full_count;                       /* times lane 0 was found full since it was opened */
    uint16_t still, patience;                 /* cold.c: rounds without a message; so many before it becomes cold */
    uint64_t still_at;                        /* cold.c: reading positions at the last round */
    uint64_t back_seen;                       /* wait.c: what the peer said at the last look */
    struct rnl_post *post_first, **post_last; /* queued messages, in order */
    struct rnl_link *link;                    /* the peer is on another host: endpoint/remote.h */
    struct rnl_conn *next_buried;             /* readmit.c */
    void *memory;                             /* it lies in */
};
static_assert(sizeof(struct rnl_conn) + RNL_LINE_BYTES <= 2048,
              "two to a page: an idle peer may take 6 kB, 4 are rings");

/* A short send to it cannot go at once any more. When `shut` is 0 again the first that goes the long way sees that. */
RNL_INLINE void rnl_conn_shut(struct rnl_conn *conn, enum rnl_shut why)
{
    conn->shut |= (uint8_t)why;
    rnl_tx_slow(&conn->pair.tx[0]);
}

RNL_INLINE struct rnl_conn *rnl_conn_of_out(struct rnl_stream *s)
{
    return (struct rnl_conn *)(void *)((char *)s - offsetof(struct rnl_conn, out));
}

struct rnl_peer { /* of every rank, connected or not */
    struct rnl_conn *conn;
    uint64_t incarnation;
    uint8_t state;    /* enum rnl_peer_state */
    uint8_t reason;   /* enum rnl_death_reason */
    uint8_t told;     /* FM: its death was reported once */
    uint8_t asked;    /* the watcher has been waited for */
    uint8_t wanted;   /* it has made a connection, and we could not join it yet */
    uint8_t ended;    /* ... and it has died since: so `reason` and `detail` say */
    uint8_t unparted; /* it is dead for us, why, and the watcher could not be told yet */
    uint8_t untold;   /* rnl_on_death's function has not been called yet */
    uint8_t left;     /* the job said that its process is gone, and named no other since */
    uint8_t returned; /* dead for us, and the job named another process */
    uint8_t knocked;  /* ... which has made a connection */
    uint8_t again;    /* it was dead before, and taken back */
    int32_t detail;
    uint64_t buried; /* the last incarnation of which the job said that it is gone; 0 = none */
};

enum rnl_closing { RNL_CLOSING = 1, RNL_CLOSED /* and nothing new is accepted */ };

enum rnl_open_state {
    RNL_EP_FORKED = 0,
    RNL_EP_OPEN,
    RNL_EP_SHARED,
    RNL_EP_ANSWER /* a lane-1 handler runs: nothing may be sent */
};

struct rnl_endpoint {
    /* -- read by every call -- */
    uint32_t open;  /* enum rnl_open_state; this struct reads as zeros in a forked child */
    uint32_t reach; /* size, or 0 while the short path must not be taken, see rnl_ep_set_reach */
    union {
        struct {
            uint32_t in_handler; /* 1 + lane of the handler that runs, RNL_IN_CALL, 0 = none */
            uint32_t chores;     /* posts, gathering, ...: an extract has more to do than look at rings */
        };
        uint64_t busy; /* any of them */
    };
    struct rnl_conn **conn;        /* by rank; rnl_not_connected where there is none */
    struct rnl_stream *open_short; /* the out stream that began on the short path, NULL; written nowhere else */
    struct rnl_conn *only;         /* the connection that is polled, if there is one, no other, and it is not odd */
    struct rnl_conn *alone;        /* the same; answers may come from it */
    size_t most;                   /* bytes that the extract may take that runs a lone message's handler */
    struct rnl_conn **hot;         /* connections: those that are polled, then the cold ones, then the quiet ones */
    uint32_t hot_count, turn;
    const _Atomic uint32_t *news;
    uint32_t news_seen;
    uint32_t empties;           /* extracts in a row that found nothing */
    struct rnl_conn *unsettled; /* published to, and no extract found nothing since */
    /* Of open_short, of which nothing else is set: where its next byte goes; where it ends; the position of the item
       before it in its line, or the line's start, RNL_POS_OTHER. Here, where their place is known long before they are
       written and read: in the stream it is known so late that a core cannot tell in time that what it reads was just
       written. */
    unsigned char *short_at, *short_end;
    uint64_t short_pos;
    struct rnl_handler *handler;
    uint32_t handlers;
    uint32_t flags;               /* RNL_SHARED, RNL_NO_RUN_IN_SEND, RNL_EP_GUARDED */
    const _Atomic uint32_t *bell; /* the bell's word while there are cold connections, else &deaf */
    uint32_t bell_seen;           /* it, when all cold rings were looked at after */
    uint32_t live;                /* connections in hot[], cold and quiet ones included */
    uint32_t cold_end;            /* where the quiet ones begin */
    uint64_t moved;               /* positions of those that left hot[], as often as they did */
    struct rnl_counters *c;
    struct rnl_env *env;
    uint32_t rank, size;
    struct rnl_peer *peer;
    uint32_t open_streams;  /* out streams not of the short path with composed bytes that may not be visible yet */
    uint32_t posts;         /* queued posts, all peers */
    uint32_t gathering;     /* messages collected in place for want of a stack */
    uint32_t dying;         /* connections that are */
    uint32_t wanted;        /* peers that are wanted or unparted */
    uint32_t aborting;      /* out streams that are */
    uint32_t calls, untold; /* things to tell the program: all; deaths */
    struct rnl_post *done_first, *done_last; /* ... posts */
    struct rnl_stream *running;              /* in: whose handler runs on its coroutine now */
    uint32_t settles;
    uint8_t pauses, pauses_for[2], fence_near; /* env->facts; pauses: for the peer last sent to */
    /* -- waiting -- */
    uint64_t tidied_ns;      /* when a wait that timed out last looked after credit */
    struct rnl_idle *asleep; /* threads that are (RNL_SHARED: more than one): armed for what any of them waits for */
    uint32_t spin;           /* polls before giving way; learnt */
    uint32_t net_skip;       /* extracts in vain between two looks at the network ... */
    uint32_t net_skipped;    /* ... so far */
    const _Atomic uint32_t *net_bell; /* ... but for one of net_bits in it; it always points to something */
    uint32_t net_bits;
    uint8_t net_due;         /* the next extract looks at it, or sends */
    uint8_t by_fd;           /* nobody rings for datagrams: it sleeps on descriptors, its own among them */
    uint32_t empties_enough; /* empties at which rnl_ep_empty does more than count */
    uint32_t untidied;       /* empties since the last tidying */
    uint8_t gave_way;        /* whether that was of use is not known yet: */
    uint64_t gave_way_at;    /* ... what had been received then; UINT64_MAX = too short */
    /* -- hot and cold: cold.c -- */
    _Atomic uint32_t deaf;         /* == bell_seen: what ep->bell points to while the bell is not listened to */
    uint32_t vain;                 /* times in this round that it was rung for nothing */
    uint32_t tolds;                /* room given back since the clock was looked at: what a busy endpoint takes in */
    uint32_t rounds;               /* so far */
    uint32_t cool_next, cool_wait; /* connections are cooled in that round at the earliest; then so many later */
    uint64_t round_ns;             /* when the last one was */
    uint8_t due;                   /* one is */
    uint8_t fd_mode;               /* rnl_fd was called */
    uint8_t fd_armed;              /* ... and nothing was there: peers ring */
    uint32_t fd_word;              /* the bell's word when it was armed */
    uint64_t fd_until_ns;          /* armed: readable from then on in any case, to look */
    uint8_t closing;               /* enum rnl_closing */
    uint8_t close_asked, close_done, job_gone;
    uint8_t give_up;   /* a send that waits ends with RNL_ERR_JOB: its program is about to end the job */
    uint32_t close_at; /* in hot[]: who was not ready for the end when we last looked */
    uint64_t close_wave;
    /* -- the rest -- */
    struct rnl_coro_pool *coros;
    uint64_t budget, granted, kept_bytes; /* bytes: limit; standing grants of all peers; of them kept */
    uint64_t post_bytes;
    uint64_t dropped; /* messages, at close, for want of a handler */
    uint32_t drop_id; /* of the last of them */
    uint8_t discard;  /* that is what becomes of them now */
    uint8_t quit;     /* a resumed handler returned RNL_QUIT */
    uint8_t troubled; /* a message waits for memory, and the program has not been told */
    uint8_t lacked;   /* one has waited for memory, now or before */
    char trouble[200];
    uint64_t gather_bytes; /* of collecting buffers, now */
    rnl_death *on_death;
    void *on_death_arg;
    rnl_refused *on_refused;
    void *on_refused_arg;
    void (*on_gone)(struct rnl_endpoint *, struct rnl_conn *); /* stream/: fail its open messages */
    pthread_mutex_t lock;                                      /* recursive; RNL_SHARED, RNL_EP_GUARDED only */
    struct rnl_remote *remote;                                 /* NULL: no peer is on another host */
    struct rnl_conn *buried; /* of earlier lives of peers: messages of theirs are kept */
    uint32_t deaths_seen;
    size_t map_bytes;
};

extern struct rnl_conn rnl_not_connected; /* shut, and never touched */

/* After a change of one of them. Where messages are open an extract makes visible what they hold; RNL_CHORE_OPEN is
 * more than any count is. */
#define RNL_CHORE_OPEN (1u << 31)
RNL_INLINE void rnl_ep_chores(struct rnl_endpoint *ep)
{
    ep->chores = ep->posts | ep->gathering | ep->dying | ep->aborting | ep->calls | ep->troubled | ep->fd_armed |
                 ep->due | ep->net_due | (ep->open == RNL_EP_SHARED || ep->open_streams ? RNL_CHORE_OPEN : 0);
}

/* After a change of `open` or `open_streams`: the short path is for a message alone. */
RNL_INLINE void rnl_ep_set_reach(struct rnl_endpoint *ep)
{
    uint32_t reach = ep->open == RNL_EP_OPEN && ep->open_streams == 0 ? ep->size : 0;
    if (ep->reach != reach) /* where several threads send it is 0, read with no lock and never written */
        ep->reach = reach;
    if (ep->open_streams || ep->open == RNL_EP_SHARED)
        ep->chores |= RNL_CHORE_OPEN;
    else
        ep->chores &= ~RNL_CHORE_OPEN;
}

/* in_handler while the program is told something: the rules of a handler hold. */
enum { RNL_IN_CALL = 1 + RNL_LANES };
enum { RNL_POST_BUDGET = 16 << 20, RNL_STACK_BYTES = 64 << 10, RNL_ANSWER_MAX = 64 << 10 };

/* 0 or RNL_ERR_ARG; size 0 = not known yet. NULL is fine. */
int rnl_ep_check(const struct rnl_options *opt, uint32_t size);
/* env is the endpoint's from success on. */
int rnl_ep_new(struct rnl_env *env, const struct rnl_options *opt, struct rnl_endpoint **out);
/* From now on an interface above takes ep->lock around all its calls, so that what these use, the short path included,
 * need not; only waiting lets it go. */
enum { RNL_EP_GUARDED = 1 << 16 };
void rnl_ep_guard(struct rnl_endpoint *ep);
void rnl_ep_unguard(struct rnl_endpoint *ep);
void rnl_ep_free(struct rnl_endpoint *ep);

/* Checks at the start of a public call; takes the lock of shared ones. 0, RNL_ERR_FORKED. Whoever sends also refuses
 * RNL_EP_ANSWER. */
RNL_COLD int rnl_ep_enter_slow(struct rnl_endpoint *ep);
RNL_INLINE int rnl_ep_enter(struct rnl_endpoint *ep)
{
    return RNL_LIKELY(ep->open == RNL_EP_OPEN) ? 0 : rnl_ep_enter_slow(ep);
}
RNL_INLINE void rnl_ep_leave(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(ep->flags & RNL_SHARED))
        pthread_mutex_unlock(&ep->lock);
}

/* A handler, or what the program is told by, may fork, and the child may return from it: there is no endpoint there any
 * more, it reads as zeros, and what is shared is the parent's. Whoever ran one asks before it goes on. */
RNL_INLINE int rnl_ep_forked(const struct rnl_endpoint *ep)
{
    return RNL_UNLIKELY(ep->open == RNL_EP_FORKED);
}

/* Zeros, at the start of a cache line; NULL: no memory. */
struct rnl_conn *rnl_conn_new(void);
void rnl_conn_free(struct rnl_conn *conn);

/* How far its peer has read lane 0, as rnl_tx has it, and nothing that it answered to that is still to come: over a
 * network a word overtakes lines. */
uint64_t rnl_conn_settled(const struct rnl_conn *conn);

/* The connection to rank, made now if need be. 0, RNL_ERR_RANK, RNL_ERR_PEER_DEAD, RNL_ERR_PEER_BROKEN, _SYSTEM,
 * _NO_MEMORY, _JOB. What fails may succeed later. */
int rnl_ep_connect(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out);
/* The same for who must not wait: the launcher usually answers at once, and is waited for once, for 100 ms.
 * RNL_NO_ROOM: it has not yet. */
int rnl_ep_connect_soon(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out);
/* A peer of another host wants a connection, and has proved that it is one. */
int rnl_ep_accept(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out);
/* Tells the job that it is dead for us (base/env.h, part); again later if there is no room for that now. */
void rnl_ep_part(struct rnl_endpoint *ep, uint32_t rank, int why);
/* It is dead, for why and detail; what it sent before is taken in first. */
void rnl_ep_died(struct rnl_endpoint *ep, uint32_t rank, int why, int detail);
/* Tries again to join the connections that peers made, and to part from those that broke the protocol. */
void rnl_ep_join_wanted(struct rnl_endpoint *ep);
/* It has made a connection: to be joined, now or as soon as that can be. */
void rnl_ep_want(struct rnl_endpoint *ep, uint32_t rank);
/* A message of it was kept, and is not any more: if it is of an earlier life of its peer that may be the end of it. */
void rnl_ep_unbury(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Take in what the watcher says, if it says anything. */
void rnl_ep_news_slow(struct rnl_endpoint *ep);
RNL_INLINE void rnl_ep_news(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(atomic_load_explicit(ep->news, memory_order_relaxed) != ep->news_seen))
        rnl_ep_news_slow(ep);
}
/* The peer wrote what the protocol does not allow: it is dead for us from now on, and we for it. Returns
 * RNL_ERR_PEER_BROKEN. */
RNL_COLD int rnl_ep_broken(struct rnl_endpoint *ep, struct rnl_conn *conn, const char *what);
/* Those that are dying and have nothing left to take in are gone now: their waiters fail. */
void rnl_ep_bury_dying(struct rnl_endpoint *ep);
/* Lane 0 uses its big ring or wants more for its bulk area: let the peer have as much outstanding as they hold, or as
 * it wants, if the budget has it. */
void rnl_ep_grant_more(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* After an extent: an endpoint that always finds something has no time for rnl_ep_credit. */
enum { RNL_EXTENTS_PER_CREDIT = 16 };
RNL_INLINE void rnl_ep_extent_taken(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    const struct rnl_rx *r = &conn->pair.rx[0];
    if (RNL_UNLIKELY(ep->c->extents_received % RNL_EXTENTS_PER_CREDIT == 0 && rnl_rx_wants(r) > r->standing))
        rnl_ep_grant_more(ep, conn);
}
/* Ask peers that do not use what they were granted to give it back, down to an even share. They do so in their own
 * calls. */
void rnl_ep_reallocate(struct rnl_endpoint *ep);
/* Now and then: give back what peers ask for, notice what they gave back and what they want. */
void rnl_ep_credit(struct rnl_endpoint *ep);
/* The status and sentence for a peer that is gone. */
RNL_COLD int rnl_ep_gone(struct rnl_endpoint *ep, uint32_t rank);
/* As far as that peer has said, something that was sent to it was not taken in. */
int rnl_ep_unread(struct rnl_endpoint *ep, uint32_t rank);
/* ... and now it never will be: the status and sentence. */
RNL_COLD int rnl_ep_lost(struct rnl_endpoint *ep, uint32_t rank);

/* Around a handler of a message on `lane`; returns what to pass to the second. Handlers of answers must not send: in
 * unshared endpoints `open` says so, since the short path looks at nothing else. */
RNL_INLINE uint32_t rnl_ep_handler_begins(struct rnl_endpoint *ep, unsigned lane)
{
    uint32_t before = ep->in_handler;
    ep->in_handler = 1u + lane;
    if (RNL_UNLIKELY(lane == 1) && ep->open == RNL_EP_OPEN) {
        ep->open = RNL_EP_ANSWER;
        ep->reach = 0; /* as rnl_ep_set_reach */
    }
    return before;
}
RNL_INLINE void rnl_ep_handler_ends(struct rnl_endpoint *ep, unsigned lane, uint32_t before)
{
    ep->in_handler = before;
    if (RNL_UNLIKELY(lane == 1) && ep->open == RNL_EP_ANSWER) {
        ep->open = RNL_EP_OPEN;
        rnl_ep_set_reach(ep);
    }
}
RNL_INLINE int rnl_ep_in_answer(const struct rnl_endpoint *ep)
{
    return ep->in_handler == 2;
}

/* After publishing into a ring of conn. Both return 0, so that a send can end with them. */
/* Not marked cold: gcc then lays out the whole tail of the short send as cold. */
RNL_NOINLINE int rnl_ep_ring_bell(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what);
RNL_INLINE int rnl_ep_published(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_tx *t)
{
    if (ep->unsettled != conn) /* a load costs less than a store here */
        ep->unsettled = conn;
    atomic_signal_fence(memory_order_seq_cst); /* F1: published before armed is read */
    if (RNL_UNLIKELY(atomic_load_explicit(t->armed, memory_order_relaxed) != 0))
        return rnl_ep_ring_bell(ep, conn, RNL_ARMED_LINES);
    return 0;
}
/* Tell the peer what is untold about its rings, and wake it if it waits for that. */
void rnl_ep_tell(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* ---- hot and cold: endpoint/cold.c ----
 *
 * A hot connection is polled by every extract. A cold one is armed instead: whoever sends rings the bell, whose word
 * every extract compares with what it was when the cold rings were last looked at. That is a hint; rounds, about a
 * millisecond of polling apart, look at all of them in any case, and each sleep is preceded by such a look. */

enum { RNL_TOLDS_PER_CLOCK = 16, RNL_HOT_ALWAYS = 4 /* so many are not worth arming */ };
void rnl_ep_add_hot(struct rnl_endpoint *ep, struct rnl_conn *conn); /* which is new */
void rnl_ep_remove_hot(struct rnl_endpoint *ep, struct rnl_conn *conn);
void rnl_ep_set_only(struct rnl_endpoint *ep); /* after a change of hot_count, of what is polled, or of `odd` */
/* Lines that it sent and read so far, as positions: not the same again once one has moved. */
RNL_INLINE uint64_t rnl_ep_positions(const struct rnl_conn *conn)
{
    uint64_t sum = 0;
    for (unsigned lane = 0; lane < RNL_LANES; lane++)
        sum += conn->pair.tx[lane].pos + conn->pair.rx[lane].pos;
    return sum;
}
/* Hot ones of other hosts from which an extract has nothing to expect are looked at no more before something comes. Not
 * while hot[] is walked. */
void rnl_ep_quieten(struct rnl_endpoint *ep);
/* It is polled from now on. Fine if it is already. Moves no other hot one. */
void rnl_ep_warm(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Arms all as they have to be now: against whoever sleeps, the cold ones in any case. Where somebody goes to sleep a
 * heavy fence and a look have to follow. */
void rnl_ep_arm_all(struct rnl_endpoint *ep);
void rnl_ep_arm(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Lines of lane 0, or answers, that an extract would try to take in. */
int rnl_ep_has_lines(struct rnl_conn *conn);
/* Looks at all cold rings; those with lines are hot then. Returns how many. */
uint32_t rnl_ep_look_cold(struct rnl_endpoint *ep);
/* Somebody rang. */
void rnl_ep_heard_slow(struct rnl_endpoint *ep);
RNL_INLINE int rnl_ep_rung(const struct rnl_endpoint *ep)
{
    return atomic_load_explicit(ep->bell, memory_order_relaxed) != ep->bell_seen; /* loaded again, with acquire */
}
RNL_INLINE void rnl_ep_heard(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(rnl_ep_rung(ep)))
        rnl_ep_heard_slow(ep);
}
/* If it is time: looks at all cold rings, and makes cold what has been still. Only where no extract is under way. */
void rnl_ep_round(struct rnl_endpoint *ep, uint64_t now_ns);
/* The same for an endpoint that is too busy to look at the clock: the next extract does it, if it is time. */
RNL_NOINLINE void rnl_ep_round_due(struct rnl_endpoint *ep);

/* After telling the peer about its ring: it may sleep for want of room. */
RNL_INLINE void rnl_ep_told(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    ep->tolds += conn->pair.big_rx ? RNL_TOLDS_PER_CLOCK : 1; /* a quarter of a big ring takes long */
    if (RNL_UNLIKELY(ep->tolds >= RNL_TOLDS_PER_CLOCK)) /* so often what stream/lone.h leaves out is done in any case */
        rnl_ep_round_due(ep);
    if (RNL_UNLIKELY(rnl_tx_armed(&conn->pair.tx[0], RNL_ARMED_ROOM) | conn->pair.senders_fence))
        (void)rnl_ep_ring_bell(ep, conn, RNL_ARMED_ROOM);
}
/* Before the first poll after a send: lets our stores leave before the polls crowd them, where the peer is far; and
 * senses how far it is (recipe: a fence lasts as long as getting the line back). */
enum { RNL_SENSE_EVERY = 64 };
RNL_INLINE void rnl_ep_settle(struct rnl_endpoint *ep)
{
    struct rnl_conn *conn = ep->unsettled;
    if (!conn)
        return;
    ep->unsettled = NULL;
    ep->pauses = ep->pauses_for[conn->pair.distance & RNL_FAR];
    if (RNL_UNLIKELY(++ep->settles % RNL_SENSE_EVERY == 0)) {
        ep->env->ops->sense_fence(ep->env, &conn->pair.distance);
    } else if ((conn->pair.distance & RNL_FAR) | ep->fence_near) {
        rnl_full_fence();
    }
}

/* ---- waiting: endpoint/wait.c ---- */

struct rnl_idle {
    uint64_t deadline_ns;  /* UINT64_MAX = none */
    struct rnl_conn *room; /* waiting for room in lane room_lane of this peer; NULL = for messages */
    unsigned room_lane;
    uint32_t bulk; /* ... for so many bytes of bulk area */
    uint32_t polls, yields;
    struct rnl_idle *next; /* in ep->asleep */
};
/* After a poll that found nothing: pause, yield or sleep. 0 = look again, RNL_TIMED_OUT. A shared endpoint's lock is
 * let go meanwhile. */
int rnl_ep_idle(struct rnl_endpoint *ep, struct rnl_idle *w);
/* After an extract that found nothing, by a program that does not wait: gives way now and then, arms the descriptor if
 * there is one. Returns 0, for the extract to end with. */
int rnl_ep_empty(struct rnl_endpoint *ep);
/* A gap between two polls: a tight loop takes the line away while it is being written. */
void rnl_ep_relax(const struct rnl_endpoint *ep);
/* After one that found something, in descriptor mode. */
void rnl_ep_busy(struct rnl_endpoint *ep);
/* Outside of an extract something came up that nobody is armed for: threads that sleep look again, and the descriptor
 * is readable until an extract finds nothing. */
RNL_COLD void rnl_ep_look_again(struct rnl_endpoint *ep);
/* Would an extract find something? Cold connections with lines are hot after it. */
int rnl_ep_look(struct rnl_endpoint *ep);
/* A heavy fence, or what there is instead. */
void rnl_ep_fence(struct rnl_endpoint *ep);
int rnl_ep_fd(struct rnl_endpoint *ep);

#endif
