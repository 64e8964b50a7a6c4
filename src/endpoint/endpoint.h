/* SPDX-License-Identifier: BSD-3-Clause
 *
 * endpoint.h - peers and their connections, credit, polling and waiting, the life and death of peers. Above: stream/.
 *
 * A struct rnl_endpoint is all the state of one place in a job; nothing is global. One thread at a time works on an
 * endpoint; RNL_SHARED endpoints take a lock in every public call. A connection is a pair of rings for each lane. It
 * is made by the first send, or when the agent reports that the peer has made it. What this folder knows of a peer
 * comes from env and remote/ alone. */
#ifndef RNL_ENDPOINT_ENDPOINT_H
#define RNL_ENDPOINT_ENDPOINT_H

#include <pthread.h>
#include <stdbool.h>

#include "base/bell.h"
#include "base/coro.h"
#include "base/counters.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fence.h"
#include "endpoint/peer.h"
#include "endpoint/turn.h"
#include "endpoint/wait.h"
#include "ring/ring.h"
#include "ring/segment.h"
#include "runnel/runnel.h"

struct rnl_bulk_lane;
struct rnl_conn;
struct rnl_handler;
struct rnl_later;
struct rnl_post;
struct rnl_remote;
struct rnl_remote_conn;

enum { RNL_REJECTED_BYTES = 40 };

/* Bytes that stream/ keeps inside a connection and in an entry of the handler table; their content is private to
 * stream/. */
enum { RNL_CONN_STREAM_BYTES = 3 * 184, RNL_HANDLER_BYTES = 32 };

/* What stream/ does for a connection. rnl_stream_attach() sets the table. */
struct rnl_conn_ops {
    void (*opened)(struct rnl_endpoint *ep, struct rnl_conn *conn); /* the connection is new */
    void (*gone)(struct rnl_endpoint *ep, struct rnl_conn *conn);   /* its peer is gone: fails open messages */
    bool (*receives)(const struct rnl_conn *conn);       /* a handler runs or waits, or its reply is deferred */
    bool (*sends)(const struct rnl_conn *conn);          /* an outgoing message is open */
    uint64_t (*uncomposed)(const struct rnl_conn *conn); /* bulk bytes reserved and not composed yet */
};

/* Why the first message of a lane cannot be taken in now. A blocked lane counts as empty for whoever wants to sleep. */
enum rnl_blocked {
    RNL_BLOCKED_NOT = 0,
    RNL_BLOCKED_HANDLER,
    RNL_BLOCKED_STACK,
    RNL_BLOCKED_REPLY,
    RNL_BLOCKED_MEMORY,
    RNL_BLOCKED_PARKED /* lane 0: a chunk of the bulk lane, of which as many are parked as can be */
};
/* The bulk lane travels in the rings and the bulk area of lane 0; what is first on it is blocked apart. */
enum { RNL_LANE_BULK = RNL_LANES, RNL_HEADS };

enum rnl_shut {
    RNL_SHUT_STREAM = 1,
    RNL_SHUT_POSTS = 2,
    RNL_SHUT_DEAD = 4,
    RNL_SHUT_NOT_CONNECTED = 8,
    RNL_SHUT_HIBERNATED = 16
};

struct rnl_conn {
    struct rnl_channel channel;
    _Alignas(8) unsigned char stream_state[RNL_CONN_STREAM_BYTES]; /* see stream/stream.h */
    uint32_t rank;
    uint32_t poll_index; /* place in fast.conns: armed from fast.polled on, idle from poll.armed_end on */
    uint8_t shut;        /* bits of enum rnl_shut: why a short send cannot go at once */
    uint8_t gone;        /* the peer is dead or broken: nothing is sent or taken in any more */
    uint8_t dying;       /* the peer is dead, and what it had sent is still taken in */
    uint8_t awaited;     /* during a send: many requests to the peer are unanswered, so the program will extract soon */
    union {
        struct {
            uint8_t broken;             /* the peer broke the protocol, or is given up: nothing more is taken in */
            uint8_t self;               /* the peer is this endpoint */
            uint8_t lane1_polled;       /* a request was sent to the peer, so lane 1 is polled for replies */
            uint8_t blocked[RNL_HEADS]; /* enum rnl_blocked, by lane */
            uint8_t parked;             /* chunks of the bulk lane that were found in the ring and are not taken in */
        };
        uint64_t exceptional; /* all of the above at once: not 0 = not for the fast path */
    };
    uint32_t blocked_reply;                   /* RNL_BLOCKED_REPLY: the bytes of room that the reply needs */
    uint32_t armed_round;                     /* poll.c: round in which the connection last became armed */
    unsigned char head[RNL_REJECTED_BYTES];   /* start of in[0]'s message, to reject it after a suspension */
    uint64_t blocked_at[RNL_HEADS];           /* 1 + position of the message counted as blocked */
    uint64_t starved_ns[RNL_HEADS];           /* since when that message has waited for memory; 0 = it does not */
    uint8_t post_sending;                     /* the open out stream belongs to the first queued post */
    uint8_t wants_room;                       /* work that no call waits for needs a free cell to the peer */
    uint8_t waits;                            /* number of calls that wait for room to the peer */
    uint8_t full_count;                       /* times that lane 0 was found full since it was opened */
    uint16_t misses, backoff;                 /* rounds in a row without a message; the number at which it is demoted */
    uint64_t misses_at;                       /* sum of the reading positions at the last round (poll.c) */
    uint64_t credit_seen;                     /* sum of the peer's credit words at the last look (wait.c) */
    struct rnl_post *post_first, **post_last; /* queued posts, in order */
    struct rnl_bulk_lane *bulk;               /* state of the bulk lane, owned by stream/; NULL = never used */
    uint8_t bulk_posts;                       /* posts of the bulk lane wait for room */
    struct rnl_remote_conn *remote;           /* remote connection of a peer on another host, else NULL */
    struct rnl_conn *next_retired;            /* list of ep->retired (readmit.c) */
    void *memory;                             /* start of the allocation that holds this struct */
};
static_assert(sizeof(struct rnl_conn) + RNL_CELL_BYTES <= 2048,
              "two to a page: an idle peer may take 6 kB, 4 are rings");

/* Closes the fast path of sending to the connection's peer. When `shut` is 0 again, the first send on the general path
 * reopens the fast path. */
RNL_INLINE void rnl_conn_shut(struct rnl_conn *conn, enum rnl_shut why)
{
    conn->shut |= (uint8_t)why;
    rnl_tx_fast_off(&conn->channel.tx[0]);
}

enum rnl_closing { RNL_CLOSING = 1, RNL_CLOSED /* nothing new is accepted either */ };

enum rnl_open_state {
    RNL_EP_FORKED = 0,
    RNL_EP_OPEN,
    RNL_EP_IN_REPLY, /* a lane-1 handler runs: nothing may be sent */
    RNL_EP_YIELDED,  /* the thread that waits has given the processor away: no other may call */
    RNL_EP_SHARED,
    RNL_EP_SERVED /* as SHARED, but by turns with a thread of the library (turn.h) */
};

/* What the fast path reads, in the order of its cache lines. Every call reads the first line. */
struct rnl_ep_fast {
    uint32_t open;  /* enum rnl_open_state; reads as zero in a forked child */
    uint32_t ranks; /* size, or 0 while the fast path must not be taken (rnl_ep_set_fast) */
    union {
        struct {
            uint32_t in_handler;   /* 1 + lane of the running handler; RNL_IN_CALL; 0 = no handler runs */
            uint32_t pending_work; /* not 0 = an extract has more to do than to look at rings (rnl_ep_set_pending) */
        };
        uint64_t busy; /* both of the above at once */
    };
    struct rnl_conn **conn;             /* by rank; &rnl_not_connected where there is no connection */
    struct rnl_stream *open_short;      /* out stream that was begun on the fast path, or NULL; written only there */
    struct rnl_conn *sole;              /* the only polled connection, if nothing on it is exceptional, else NULL */
    struct rnl_conn *sole_with_replies; /* as `sole`, but replies may come from it */
    size_t max_bytes;                   /* limit of the extract that runs the handler of a single message */
    struct rnl_conn **conns; /* all connections: first the polled, then the armed, then the idle ones (poll.c) */
    /* -- second cache line -- */
    uint32_t polled, next_polled; /* number of polled connections; index of the next one to look at */
    const _Atomic uint32_t *event_seq;
    uint32_t event_seq_seen;
    uint32_t empty_polls;      /* extracts in a row that found nothing */
    struct rnl_conn *unfenced; /* connection published to since the last extract that found nothing */
    /* Of the message open_short: the next byte's address, the end, and the position of the record before it in its cell
     * (or of the cell's start, or RNL_POS_OTHER). They lie here, at addresses that are known early. In the stream the
     * address would be known so late that the core could not forward the stores to the loads that follow. */
    unsigned char *short_at, *short_end;
    uint64_t short_pos;
    struct rnl_handler *handler;
    /* -- third cache line -- */
    uint32_t handlers;
    uint32_t bell_seen;           /* value of the bell's word before the last look at all armed rings */
    const _Atomic uint32_t *bell; /* the bell's word while armed connections listen to it, else &poll.masked */
};

/* Work of an extract besides looking at rings. Numbers are counts. */
struct rnl_ep_work {
    uint32_t open_streams;             /* general-path out streams with bytes that may not be visible */
    uint32_t posts;                    /* queued posts, of all peers */
    uint32_t reassembling;             /* messages that are collected in a buffer for want of a stack */
    uint32_t dying;                    /* peers in state DYING */
    uint32_t joining;                  /* peers to be joined, broken and not yet reported, or left */
    uint32_t aborting;                 /* out streams that are being aborted */
    uint32_t calls, reports, requests; /* calls due to the program, of all kinds; that report deaths; that ask it */
    struct rnl_post *done_first, *done_last; /* posts whose end is to be reported to the program */
    struct rnl_stream *running;              /* incoming stream whose handler runs on its coroutine now */
    uint8_t quit;                            /* a resumed handler returned RNL_QUIT */
};

/* Who arms the descriptor: nobody, since there is none; the program, when it asks for it; each extract that finds
 * nothing. */
enum rnl_fd_mode { RNL_FD_NONE = 0, RNL_FD_ASKED, RNL_FD_ALWAYS };

/* State of waiting (wait.c). */
struct rnl_ep_wait {
    uint32_t fences;                           /* polls after a send so far; every RNL_SENSE_EVERY-th is timed */
    uint8_t pauses, pauses_for[2], fence_near; /* from env->facts; pauses: for the peer last sent to */
    uint64_t maintained_ns;                    /* time at which a wait last tidied up */
    struct rnl_idle *asleep;    /* waits that sleep now (several if RNL_SHARED): rings are armed for all of them */
    uint32_t spin;              /* polls before yielding; learnt */
    uint32_t empty_polls_limit; /* value of empty_polls at which rnl_ep_empty does more than count */
    uint32_t since_maintained;  /* empty extracts since the last tidying */
    uint64_t stay_until_ns;     /* until then extracts do not yield; 0 = they may */
    uint64_t stay_seen;         /* what had been received when that began; UINT64_MAX = the next poll finds out */
    uint8_t stays_skipped;      /* so many yields that take long are not followed by such a time */
    uint8_t hogged;             /* so many waits sleep instead of yielding */
    uint8_t yielded;            /* the processor was given up, and whether that was of use is not judged yet */
    uint8_t by_fd;        /* the socket rings no bell: sleeping is on descriptors, the endpoint's own among them */
    uint8_t fd_mode;      /* enum rnl_fd_mode */
    uint8_t fd_armed;     /* the last extract in descriptor mode found nothing, and peers ring */
    uint64_t yielded_at;  /* what had been received by then; UINT64_MAX = the yield was too short to tell */
    uint32_t fd_word;     /* value of the bell's word when the descriptor was armed */
    uint64_t fd_until_ns; /* time at which the armed descriptor becomes readable in any case */
    pthread_t owner;      /* the thread that opened the endpoint, or gave the processor away last; not of shared ones */
    uint8_t many_threads; /* a thread that was not the owner has called an endpoint that is not shared */
    _Atomic uint32_t woken; /* rnl_wake was called, and no wait has said so; signal handlers and other threads set it */
};

/* Which connections are polled (poll.c). */
struct rnl_ep_poll {
    uint32_t connected;                /* connections in fast.conns, whether polled, armed or idle */
    uint32_t armed_end;                /* index in fast.conns of the first idle connection */
    uint64_t moved;                    /* sum of the positions of removed connections */
    _Atomic uint32_t masked;           /* equal to bell_seen; fast.bell points here while the bell is ignored */
    uint32_t misses;                   /* rings of the bell in this round for which nothing was found */
    uint32_t advertised;               /* advertisements since the last look at the clock */
    uint32_t rounds;                   /* number of rounds so far */
    uint32_t demote_next, demote_wait; /* first round that may demote again; rounds to add to it the next time */
    uint64_t round_ns;                 /* time of the last round */
    uint64_t looked_ns;                /* env->facts.must_look: time of the last look for events */
    uint8_t round_due;                 /* the next extract does a round */
};

/* How often the network is polled (net.c). */
struct rnl_ep_net {
    uint32_t skip;                /* empty extracts between two polls of the network */
    uint32_t skipped;             /* empty extracts since the last poll of the network */
    const _Atomic uint32_t *bell; /* word of which one of `bits` asks for a poll at once; never NULL */
    uint32_t bits;
    uint32_t misses;         /* polls in a row that found nothing */
    uint8_t draining_events; /* events are being taken now */
    uint8_t due;             /* the next extract polls the network, or sends */
};

/* The receive budget (credit.c and stream/), in bytes. */
struct rnl_ep_credit {
    uint64_t budget, granted, kept_bytes; /* the limit; standing grants of all peers; kept messages */
    uint64_t post_bytes;
    uint64_t reassembly_bytes; /* bytes of collecting buffers now */
    uint8_t starved;           /* the program is to be told once: a message waits for memory, or was thrown away */
    uint8_t starved_before;    /* a message has waited for memory at some time */
    int16_t starved_status;    /* what is reported: RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM or RNL_ERR_TOO_LONG */
    uint64_t unjoined_ns;      /* peers.c: since when connections of peers cannot be joined; 0 = none is waited for */
    char starved_text[sizeof(((struct rnl_error *)0)->text)];
};

/* The end of the job (stream/close.c). */
struct rnl_ep_close {
    uint8_t closing; /* enum rnl_closing */
    uint8_t report_requested, done, job_gone;
    uint8_t give_up;  /* a send that waits ends with RNL_ERR_JOB, since the program is about to end the job */
    uint8_t discard;  /* messages without a handler are dropped */
    uint32_t at;      /* index in fast.conns of the connection that was not ready for the end at the last look */
    uint32_t drop_id; /* handler number of the last message dropped for want of a handler */
    uint64_t dropped; /* number of such messages */
    uint32_t left_open, left_open_rank, left_open_id; /* messages that the program never ended; rank, handler of one */
    uint64_t wave;
};

/* What window/ hooks into an endpoint, which knows nothing else of windows. */
enum { RNL_LIBRARY_ID = 0xff00 }; /* from here on numbers of handlers are the library's, unless the table is so long */
struct rnl_window_ops {
    /* Returns the library's handler of that number, or NULL: there is none, or its message must wait. */
    const struct rnl_handler *(*handler)(struct rnl_endpoint *ep, unsigned id);
    unsigned (*progress)(struct rnl_endpoint *ep);        /* in an extract; returns the number of things done */
    int (*has)(struct rnl_endpoint *ep);                  /* 1 = progress would find something */
    int (*arm)(struct rnl_endpoint *ep);                  /* before a sleep; 1 = it has found something after all */
    void (*gone)(struct rnl_endpoint *ep, uint32_t rank); /* the peer is dead, or was left */
    void (*free)(struct rnl_endpoint *ep);
};

/* What an interface registers to hear of deaths, before the program does and under the same rules. */
struct rnl_ep_watch {
    struct rnl_ep_watch *next;
    void (*died)(struct rnl_ep_watch *watch, uint32_t rank);
};

/* Functions of the program, and of interfaces. */
struct rnl_ep_hooks {
    struct rnl_ep_watch *watches;
    rnl_death *death;
    void *death_arg;
    rnl_rejected *rejected;
    void *rejected_arg;
};

struct rnl_endpoint {
    struct rnl_ep_fast fast;
    struct rnl_counters *c;
    struct rnl_env *env;
    uint32_t rank, size;
    struct rnl_peer *peer;
    uint32_t flags; /* RNL_SHARED, RNL_NO_RUN_IN_SEND, RNL_EP_GUARDED, RNL_EP_SERVES */
    uint32_t deaths_seen;
    uint64_t silence_ns;       /* rnl_options.silence_ms */
    uint64_t send_timeout_ns;  /* rnl_send_timeout; UINT64_MAX = none */
    struct rnl_remote *remote; /* NULL: no peer is on another host */
    struct rnl_ep_work work;
    struct rnl_ep_wait wait;
    struct rnl_ep_poll poll;
    struct rnl_ep_net net;
    struct rnl_ep_credit credit;
    struct rnl_ep_close close;
    struct rnl_ep_hooks hooks;
    const struct rnl_conn_ops *conn_ops;
    const struct rnl_window_ops *window_ops; /* NULL: no windows here */
    struct rnl_windows *windows;             /* state of window/, NULL until the first call that needs it */
    uint32_t polls_windows;                  /* 1 = an extract has to call window_ops->progress */
    struct rnl_coro_pool *coros;
    struct rnl_coro_pool *bulk_coros; /* a stack for each peer's bulk lane; NULL = none was used */
    struct rnl_conn *retired;         /* connections of earlier incarnations of peers, of which messages are kept */
    struct rnl_later *later;          /* table of `laters` deferred replies (stream/reply.c) */
    uint32_t laters, later_free;      /* entries; 1 + index of the first free one, 0 = none */
    struct rnl_turn turn;
    pthread_mutex_t lock; /* recursive; initialized only with RNL_SHARED or RNL_EP_GUARDED */
    size_t map_bytes;
};
static_assert(offsetof(struct rnl_ep_fast, conns) + sizeof(void *) == RNL_CELL_BYTES &&
                  offsetof(struct rnl_ep_fast, handlers) == 2 * RNL_CELL_BYTES,
              "the lines of the fast path");

extern struct rnl_conn rnl_not_connected; /* shut, and never written */

/* Recomputes fast.pending_work after a change of one of its causes. While messages are open an extract has to publish
 * what they hold. RNL_PENDING_OPEN is larger than any count. */
#define RNL_PENDING_OPEN (1u << 31)
RNL_INLINE void rnl_ep_set_pending(struct rnl_endpoint *ep)
{
    const struct rnl_ep_work *w = &ep->work;
    ep->fast.pending_work = w->posts | w->reassembling | w->dying | w->aborting | w->calls | ep->credit.starved |
                            ep->wait.fd_armed | ep->poll.round_due | ep->net.due | ep->polls_windows |
                            (ep->fast.open == RNL_EP_SHARED || w->open_streams ? RNL_PENDING_OPEN : 0);
}

/* Makes the next extract poll the network. */
RNL_INLINE void rnl_ep_net_soon(struct rnl_endpoint *ep)
{
    if (ep->net.due)
        return;
    ep->net.due = 1;
    rnl_ep_set_pending(ep);
}

/* Recomputes fast.ranks after a change of `open` or `open_streams`: the fast path needs no other message to be open. */
RNL_INLINE void rnl_ep_set_fast(struct rnl_endpoint *ep)
{
    uint32_t ranks = ep->fast.open == RNL_EP_OPEN && ep->work.open_streams == 0 ? ep->size : 0;
    if (ep->fast.ranks != ranks) /* stays 0 in a shared endpoint, which reads it unlocked */
        ep->fast.ranks = ranks;
    if (ep->work.open_streams || ep->fast.open == RNL_EP_SHARED)
        ep->fast.pending_work |= RNL_PENDING_OPEN;
    else
        ep->fast.pending_work &= ~RNL_PENDING_OPEN;
}

/* A message that the owner of a served endpoint composes on the fast path is hidden between the owner's calls, since
 * the fast path looks at open_short before it has the turn. */
RNL_INLINE void rnl_ep_hide_short(struct rnl_endpoint *ep)
{
    if (RNL_LIKELY(!ep->fast.open_short))
        return;
    ep->turn.open_short = ep->fast.open_short;
    ep->fast.open_short = NULL;
}
RNL_INLINE void rnl_ep_unhide_short(struct rnl_endpoint *ep)
{
    if (RNL_LIKELY(!ep->turn.open_short))
        return;
    ep->fast.open_short = ep->turn.open_short;
    ep->turn.open_short = NULL;
}

/* Begins and ends a call of the owner of a served endpoint in which the fast path is open: it has the turn, and all is
 * as if no thread served the endpoint. Where rnl_ep_open_path returns false nothing has begun: the endpoint is not
 * served, or the caller is inside another call. */
RNL_INLINE bool rnl_ep_open_path(struct rnl_endpoint *ep)
{
    if (ep->fast.open != RNL_EP_SERVED || !rnl_turn_may_begin_only(&ep->turn))
        return false;
    if (RNL_UNLIKELY(!rnl_turn_begin_only(&ep->turn)))
        rnl_turn_request(ep);
    rnl_ep_unhide_short(ep);
    ep->fast.open = RNL_EP_OPEN;
    ep->fast.ranks = ep->work.open_streams ? 0 : ep->size; /* as rnl_ep_set_fast does; pending_work stays as it is */
    return true;
}
RNL_INLINE void rnl_ep_shut_path(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(ep->fast.open == RNL_EP_FORKED))
        return;
    rnl_ep_hide_short(ep);
    ep->fast.open = RNL_EP_SERVED;
    ep->fast.ranks = 0;
    rnl_turn_end_only(&ep->turn);
}

/* Value of in_handler while a function of the program is called; the rules of a handler hold. */
enum { RNL_IN_CALL = 1 + RNL_LANES };
enum { RNL_POST_BUDGET = 16 << 20, RNL_STACK_BYTES = 64 << 10, RNL_REPLY_MAX = 64 << 10 };

/* Checks opt, which may be NULL, for a job of `size` ranks (0 = not known yet). Returns 0 or RNL_ERR_ARG. */
int rnl_ep_check(const struct rnl_options *opt, uint32_t size);
/* Makes an endpoint, which owns env from success on. Returns 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY, or what remote/
 * reports. */
int rnl_ep_new(struct rnl_env *env, const struct rnl_options *opt, struct rnl_endpoint **out);
/* After rnl_ep_guard() the interface above holds ep->lock around all its calls, so that what they use needs no lock of
 * its own, the fast path included. Only waiting releases the lock. */
enum { RNL_EP_GUARDED = 1 << 16, RNL_EP_SERVES = 1 << 17 /* a thread serves it (turn.h) */ };
void rnl_ep_guard(struct rnl_endpoint *ep);
void rnl_ep_unguard(struct rnl_endpoint *ep);
void rnl_ep_free(struct rnl_endpoint *ep);

/* Begins a public call: checks that the process has not forked, and takes the lock of a shared endpoint. Returns 0,
 * RNL_ERR_FORKED, or RNL_ERR_CONTEXT: another thread is in a call of this endpoint, which is not shared. Calls that
 * send also fail in state RNL_EP_IN_REPLY. */
RNL_COLD int rnl_ep_enter_slow(struct rnl_endpoint *ep);
/* Returns what to add to an error that two threads at once in an endpoint that is not shared can cause: "" if only one
 * was ever seen. */
RNL_COLD const char *rnl_ep_threads_text(const struct rnl_endpoint *ep);
RNL_INLINE int rnl_ep_enter(struct rnl_endpoint *ep)
{
    return RNL_LIKELY(ep->fast.open == RNL_EP_OPEN) ? 0 : rnl_ep_enter_slow(ep);
}
/* Enclose what a thread does away from an endpoint that is not shared: the calls of other threads fail meanwhile, and
 * say why, and no fast path needs to ask. Of a shared one they are called with its lock. */
void rnl_ep_away(struct rnl_endpoint *ep);
void rnl_ep_back(struct rnl_endpoint *ep);
RNL_COLD void rnl_ep_leave_slow(struct rnl_endpoint *ep);
RNL_INLINE void rnl_ep_leave(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(ep->flags & (RNL_SHARED | RNL_EP_SERVES)))
        rnl_ep_leave_slow(ep);
}

/* A function of the program may fork, and return in the child. The endpoint reads as zeros there, and what is shared
 * belongs to the parent. Whoever has run such a function checks this before it goes on. */
RNL_INLINE int rnl_ep_forked(const struct rnl_endpoint *ep)
{
    return RNL_UNLIKELY(ep->fast.open == RNL_EP_FORKED);
}

/* Returns a zeroed connection, aligned to a cache line, or NULL if there is no memory. */
struct rnl_conn *rnl_conn_new(void);
void rnl_conn_free(struct rnl_conn *conn);

/* Returns how far the peer has read lane 0 of ours, where every reply that it sent up to there has arrived. Over a
 * network credit words can overtake cells. */
uint64_t rnl_conn_reply_watermark(const struct rnl_conn *conn);

/* Gives the connection to rank in *out, and makes it first if need be, for which it waits for the launcher as long as
 * rnl_send_timeout allows. Returns 0, RNL_ERR_RANK, RNL_ERR_PEER_DEAD, RNL_ERR_PEER_BROKEN, RNL_ERR_SYSTEM,
 * RNL_ERR_NO_MEMORY, RNL_ERR_JOB, or RNL_NO_ROOM: the launcher has not answered yet. A later call may succeed where one
 * has failed. */
int rnl_ep_connect(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out);
/* rnl_ep_connect for a caller that must not wait. The launcher usually answers at once, so it is waited for once, up to
 * 100 ms. RNL_NO_ROOM: the launcher has not answered yet. */
int rnl_ep_connect_soon(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out);
/* Makes the connection that a peer of another host asked for, which has proved that it is that rank. */
int rnl_ep_accept(struct rnl_endpoint *ep, uint32_t rank, struct rnl_conn **out);
/* Declares the peer dead, for the reason `why` and its detail; what it had sent is taken in first. */
void rnl_ep_died(struct rnl_endpoint *ep, uint32_t rank, int why, int detail);
/* Has the function of rnl_on_death called for that peer. */
void rnl_ep_report_death(struct rnl_endpoint *ep, uint32_t rank);
/* Reports to the job that the peer broke the protocol; later, if the agent has no room for that now. */
void rnl_ep_report_broken(struct rnl_endpoint *ep, uint32_t rank);
/* Tries again to join connections that peers made, and to report broken peers to the agent. */
void rnl_ep_join_pending(struct rnl_endpoint *ep);
/* Joins the connection that the peer has made, now or as soon as possible. */
void rnl_ep_join(struct rnl_endpoint *ep, uint32_t rank);
/* Leaves a peer of an endpoint whose peers come and go, and gives its rank back as soon as nothing of it is in use.
 * Returns 0, RNL_ERR_RANK or RNL_BUSY. */
int rnl_ep_quit(struct rnl_endpoint *ep, uint32_t rank);
/* Gives the rank of a peer back that the program has left, if nothing of it is in use. */
void rnl_ep_give_back(struct rnl_endpoint *ep, uint32_t rank);
/* Returns why not all of a dead peer's connection has ended, or NULL if it has. */
const char *rnl_ep_unfinished(const struct rnl_endpoint *ep, uint32_t rank);
/* Forgets a dead peer, all of whose connection has ended: it is NEW. */
void rnl_ep_forget(struct rnl_endpoint *ep, uint32_t rank);
/* A kept message of conn was released. Frees conn if it is of an earlier incarnation and has no other kept message. */
void rnl_ep_release_retired(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Takes in the agent's events, if there are any. */
void rnl_ep_take_events_slow(struct rnl_endpoint *ep);
RNL_INLINE void rnl_ep_take_events(struct rnl_endpoint *ep)
{
    if (RNL_UNLIKELY(atomic_load_explicit(ep->fast.event_seq, memory_order_relaxed) != ep->fast.event_seq_seen))
        rnl_ep_take_events_slow(ep);
}
/* Declares the peer dead because it wrote what the protocol does not allow, as `what` says, and reports that to the
 * peer or the agent. Returns RNL_ERR_PEER_BROKEN. */
RNL_COLD int rnl_ep_broken(struct rnl_endpoint *ep, struct rnl_conn *conn, const char *what);
/* Gives the peer up, which then learns of it: what it sends has lacked memory here for as long as it may be silent. */
RNL_COLD void rnl_ep_starved(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Moves dying peers of which nothing is left to take in to state DEAD, and fails what waits for them. */
void rnl_ep_reap_dying(struct rnl_endpoint *ep);
/* Return, in units, what a peer may have outstanding from the start, and what one peer can get when all others have
 * returned credit down to their even shares. */
uint64_t rnl_ep_first_grant(const struct rnl_endpoint *ep);
uint64_t rnl_ep_max_grant(const struct rnl_endpoint *ep);
/* Grants a peer whose lane 0 needs more credit as much as its ring and bulk area hold, or else as much as it wants, if
 * the budget allows; otherwise reclaims unused credit of others. */
void rnl_ep_grant_more(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Grants more after every 16th extent: an endpoint that always finds something never gets to rnl_ep_credit. */
enum { RNL_EXTENTS_PER_CREDIT = 16 };
RNL_INLINE void rnl_ep_extent_taken(struct rnl_endpoint *ep, struct rnl_conn *conn)
{
    const struct rnl_rx *r = &conn->channel.rx[0];
    if (RNL_UNLIKELY(ep->c->extents_received % RNL_EXTENTS_PER_CREDIT == 0 &&
                     rnl_rx_credit_wanted(r) > r->outstanding_max))
        rnl_ep_grant_more(ep, conn);
}
/* Reclaims from peers the credit that they do not use, down to an even share. They return it in their own calls. */
void rnl_ep_reallocate(struct rnl_endpoint *ep);
/* Returns credit that peers reclaim, and takes in what peers returned and what they want. To be called now and then. */
void rnl_ep_credit(struct rnl_endpoint *ep);
/* Records why the peer is gone. Returns RNL_ERR_PEER_DEAD or RNL_ERR_PEER_BROKEN. */
RNL_COLD int rnl_ep_gone(struct rnl_endpoint *ep, uint32_t rank);
/* Returns true if the peer has not advertised that it read everything that was sent to it on lane 0. */
bool rnl_ep_unread(struct rnl_endpoint *ep, uint32_t rank);
/* Records that such messages are lost with the peer. Returns RNL_ERR_PEER_DEAD or RNL_ERR_PEER_BROKEN. */
RNL_COLD int rnl_ep_lost(struct rnl_endpoint *ep, uint32_t rank);

/* Enclose the run of a handler of a message on `lane`; the first returns what to pass to the second. Handlers of
 * replies must not send: in unshared endpoints `open` says so, since the fast path checks nothing else. */
RNL_INLINE uint32_t rnl_ep_handler_begins(struct rnl_endpoint *ep, unsigned lane)
{
    uint32_t before = ep->fast.in_handler;
    ep->fast.in_handler = 1u + lane;
    if (RNL_UNLIKELY(lane == 1) && ep->fast.open == RNL_EP_OPEN) {
        ep->fast.open = RNL_EP_IN_REPLY;
        ep->fast.ranks = 0; /* as rnl_ep_set_fast would set it */
    }
    return before;
}
RNL_INLINE void rnl_ep_handler_ends(struct rnl_endpoint *ep, unsigned lane, uint32_t before)
{
    ep->fast.in_handler = before;
    if (RNL_UNLIKELY(lane == 1) && ep->fast.open == RNL_EP_IN_REPLY) {
        ep->fast.open = RNL_EP_OPEN;
        rnl_ep_set_fast(ep);
    }
}
RNL_INLINE bool rnl_ep_in_reply_handler(const struct rnl_endpoint *ep)
{
    return ep->fast.in_handler == 2;
}

/* Rings the peer's bell if it is armed, after publishing into a ring of conn. Both return 0, so that a send can end
 * with the call. */
/* This function is not RNL_COLD, since gcc would then lay out the whole tail of the short send as cold. */
RNL_NOINLINE int rnl_ep_ring_bell(struct rnl_endpoint *ep, struct rnl_conn *conn, uint32_t what);
RNL_INLINE int rnl_ep_published(struct rnl_endpoint *ep, struct rnl_conn *conn, const struct rnl_tx *t)
{
    if (ep->fast.unfenced != conn) /* a load costs less than a store here */
        ep->fast.unfenced = conn;
    atomic_signal_fence(memory_order_seq_cst); /* F1: orders publishing before the load of armed */
    if (RNL_UNLIKELY(atomic_load_explicit(t->armed, memory_order_relaxed) != 0))
        return rnl_ep_ring_bell(ep, conn, RNL_ARMED_CELLS);
    return 0;
}
/* Advertises what was read and granted on all lanes of conn, and wakes the peer if it sleeps for want of that. */
void rnl_ep_advertise(struct rnl_endpoint *ep, struct rnl_conn *conn);
/* Fences before the first poll after a send, where the peer is far, so that the stores leave before the polls
 * compete with them. Now and then the fence is timed, to learn how far the peer is: a fence lasts as long as
 * fetching the cell. */
enum { RNL_SENSE_EVERY = 64 };
RNL_INLINE void rnl_ep_fence_sent(struct rnl_endpoint *ep)
{
    struct rnl_conn *conn = ep->fast.unfenced;
    if (!conn)
        return;
    ep->fast.unfenced = NULL;
    ep->wait.pauses = ep->wait.pauses_for[conn->channel.distance & RNL_FAR];
    if (RNL_UNLIKELY(++ep->wait.fences % RNL_SENSE_EVERY == 0)) {
        ep->env->ops->sense_fence(ep->env, &conn->channel.distance);
    } else if ((conn->channel.distance & RNL_FAR) | ep->wait.fence_near) {
        rnl_full_fence();
    }
}

#endif
