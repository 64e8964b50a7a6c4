/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runnel.h - the native interface: endpoints, peers, handlers, streams.
 *
 * An endpoint is this process's place in a job of rnl_size() ranks. A message is a stream of bytes to a numbered
 * handler of a peer; messages from one peer arrive in the order sent, complete and once, or the peer is reported dead.
 *
 * Results: 0 or a positive count is success, negative is an enum rnl_status; rnl_last_error() then holds a sentence for
 * this thread saying what was asked, what the limit is and what to change. Nothing here prints, aborts or exits.
 *
 * Unless a function says otherwise: it is called by the thread that owns the endpoint (any thread if opened
 * RNL_SHARED), it does not block, and it runs no handler. Read in this order: send, extract, receive; begin/piece/end;
 * reply, keep, refuse; wait, fd; open, close. */
#ifndef RNL_RUNNEL_H
#define RNL_RUNNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RNL_CHECK  __attribute__((warn_unused_result))
#define RNL_PUBLIC __attribute__((visibility("default")))
#else
#define RNL_CHECK
#define RNL_PUBLIC
#endif

typedef struct rnl_endpoint rnl_endpoint; /* opaque */
typedef struct rnl_stream rnl_stream;     /* one message, going out or coming in; belongs to the library */
typedef struct rnl_kept rnl_kept;         /* a message the program keeps after its handler returned */
typedef struct rnl_hub rnl_hub;           /* a job inside one process: its endpoints belong to threads */

/* Grouped by what is lost: nothing, the call, the message, the peer, the endpoint. */
enum rnl_status {
    RNL_OK = 0,
    /* nothing is lost: try again later */
    RNL_NO_ROOM = -1,   /* the peer's grant or ring is used up */
    RNL_BUSY = -2,      /* a message to this peer is open already */
    RNL_TIMED_OUT = -3, /* the time given passed */
    /* the call is lost: the program is wrong or the system refused */
    RNL_ERR_ARG = -16,
    RNL_ERR_RANK = -17,
    RNL_ERR_HANDLER = -18,
    RNL_ERR_TOO_LONG = -19, /* can never fit: short call, reply, or a begin that must not wait */
    RNL_ERR_CONTEXT = -20,  /* progress call inside a handler or callback, reply outside one, second reply */
    RNL_ERR_PAST_END = -21, /* receive asks for more than the message has; a piece goes past the bound */
    RNL_ERR_NO_MEMORY = -22,
    RNL_ERR_SYSTEM = -23, /* rnl_last_error()->sys_errno says which */
    RNL_ERR_UNSUPPORTED = -24,
    /* the message is lost */
    RNL_ERR_REFUSED = -32, /* reserved: refused messages come back through rnl_on_refused */
    RNL_ERR_ABORTED = -33, /* its sender gave it up before it was complete */
    /* the peer is lost */
    RNL_ERR_PEER_DEAD = -48,
    RNL_ERR_PEER_BROKEN = -49, /* it wrote what the protocol does not allow; treated as dead */
    /* the endpoint is lost */
    RNL_ERR_CLOSED = -64,
    RNL_ERR_FORKED = -65, /* this is a child of the process that opened it */
    RNL_ERR_JOB = -66     /* the launcher is gone, or never accepted us */
};

enum { RNL_SHORT_MAX = 48 }; /* bytes that rnl_send takes */

/* Handler of a message. Runs inside rnl_extract, rnl_wait, rnl_close or a send that waits, as soon as the first packet
 * is here; may be suspended in rnl_receive and resumed by a later call (of a RNL_SHARED endpoint: on the thread that
 * makes that call). Must not call extract, wait or close. Returns one of the endings below; bytes it did not receive
 * are dropped. */
typedef int rnl_stream_handler(rnl_stream *s, unsigned peer, void *ctx);
/* Handler of a whole message: runs once all of it is here. buf is private to this process and valid until the handler
 * returns (with RNL_IN_PLACE: lies where the peer can write). A message longer than rnl_limits.whole_max is taken in
 * and thrown away, and the handler gets buf == NULL and its length; one for which there is no memory waits. Returns
 * RNL_DONE or RNL_QUIT. */
typedef int rnl_whole_handler(const void *buf, size_t n, unsigned peer, void *ctx);
enum {
    RNL_DONE = 0,
    RNL_QUIT = 1, /* and this extract returns after this handler */
    RNL_KEEP = 2, /* only after rnl_keep() succeeded */
    RNL_REFUSE_BASE = 256
};
/* Ending: the message goes back to its sender with this reason, 0..255 (rnl_on_refused there). Needs a begin with
 * `answer` > 0, else the asker never learns. */
#define RNL_REFUSE(reason) (RNL_REFUSE_BASE + (int)((reason)&0xff))

/* ---- the short path ---- */

/* Send n <= RNL_SHORT_MAX bytes as one message. buf is the caller's again on return. Outside handlers waits for room
 * and runs handlers meanwhile; inside a handler returns RNL_NO_ROOM. 0, RNL_NO_ROOM, RNL_BUSY, RNL_ERR_RANK, _TOO_LONG,
 * _HANDLER, _CONTEXT (in the handler of an answer), _PEER_DEAD, _PEER_BROKEN, _FORKED, _JOB; and the first to a peer
 * _NO_MEMORY, _SYSTEM. */
RNL_PUBLIC RNL_CHECK int rnl_send(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n);

/* Take in messages and run their handlers. Stops at the first of: max_bytes of payload begun on (rounded up to a
 * packet), a handler returned RNL_QUIT, all that was there when the call began. Never blocks. Returns payload bytes
 * taken in; 0 = library traffic or nothing (or messages without payload: rnl_get_counters tells). max_bytes 0: credit,
 * answers and deaths only. RNL_ERR_CONTEXT, _FORKED, _JOB; RNL_ERR_NO_MEMORY: a message waits until this process has
 * memory for it; said once for each, all else is taken in. */
RNL_PUBLIC RNL_CHECK int64_t rnl_extract(rnl_endpoint *ep, size_t max_bytes);

/* In a stream handler: copy the next n bytes of the message to buf, which must stay valid until the call returns:
 * suspends the handler until they are here. 0; RNL_ERR_PAST_END (nothing copied); RNL_ERR_PEER_DEAD, RNL_ERR_ABORTED
 * (the rest never comes: drop what came and return from the handler). */
RNL_PUBLIC RNL_CHECK int rnl_receive(rnl_stream *s, void *buf, size_t n);

/* In a stream handler: bytes that can be received without suspending; *view (may be NULL) gets their address. The view
 * ends at the next rnl_receive or return. It lies in memory the peer can write: copy before use unless the peer is
 * trusted. */
RNL_PUBLIC size_t rnl_here(rnl_stream *s, const void **view);

/* ---- streams ---- */

struct rnl_begin {
    unsigned peer, handler;
    size_t bound;   /* most bytes that will follow; fewer are fine */
    size_t answer;  /* largest answer this message may cause, <= rnl_limits.answer_max; 0 = none */
    unsigned flags; /* RNL_NO_WAIT: RNL_NO_ROOM instead of waiting, also outside handlers */
};
enum { RNL_NO_WAIT = 1 };

/* Open a message. *out is the caller's until rnl_end or rnl_abort. Outside handlers waits for room and runs handlers
 * meanwhile. Inside a handler (or with RNL_NO_WAIT) the whole bound is reserved now or RNL_NO_ROOM comes back; a bound
 * above rnl_limits.reserve_max is RNL_ERR_TOO_LONG there. One open message per peer: a second begin is RNL_BUSY.
 * RNL_ERR_ARG: unknown flags. Other errors as rnl_send. The first message between two ranks has to ask the launcher:
 * where it must not wait, it waits for that at most 100 ms, once, and is RNL_NO_ROOM until the launcher has answered.
 */
RNL_PUBLIC RNL_CHECK int rnl_begin(rnl_endpoint *ep, const struct rnl_begin *b, rnl_stream **out);
/* Append n bytes. buf is the caller's again on return. Outside handlers may wait for room and run handlers. Bytes
 * become visible to the peer when a packet is full, at rnl_end, and at the latest at the next extract, wait, begin or
 * rnl_flush. RNL_ERR_PAST_END, _PEER_DEAD: the stream stays open and must still be ended
 * or aborted. */
RNL_PUBLIC RNL_CHECK int rnl_piece(rnl_stream *s, const void *buf, size_t n);
/* Complete the message; s is invalid afterwards. RNL_ERR_PEER_DEAD: it was lost. RNL_ERR_ABORTED: a piece had failed
 * when a part of it had been taken, so that the message was given up. RNL_ERR_JOB: as well. RNL_ERR_CONTEXT: a long
 * message begun outside cannot wait for room inside a handler; it stays open. */
RNL_PUBLIC RNL_CHECK int rnl_end(rnl_stream *s);
/* Give an open message up: nobody gets it, what was visible of it included. A handler that waits for the rest gets
 * RNL_ERR_ABORTED; one of whole messages never runs. s is invalid afterwards. Never waits, also inside a handler; a
 * begin that follows at once may find RNL_NO_ROOM until the peer has been told. 0, RNL_ERR_ARG, _FORKED. */
RNL_PUBLIC int rnl_abort(rnl_stream *s);
/* Make all composed bytes visible now. */
RNL_PUBLIC RNL_CHECK int rnl_flush(rnl_endpoint *ep);

struct rnl_piece {
    const void *buf;
    size_t n;
};
/* Queue a message; never waits. done(arg, status) runs in a later progress call or rnl_close, never inside this one;
 * until then the buffers belong to the library. done may send and post; like a handler it must not extract, wait or
 * close, and never waits to send. In order with streams to that peer. Each post counts with its bytes and its own
 * memory, until done ran. RNL_NO_ROOM: the queue budget is used up (or as with
 * rnl_begin, the launcher has not answered yet); RNL_ERR_CLOSED: the endpoint is being closed. After
 * an error done will not run. */
RNL_PUBLIC RNL_CHECK int rnl_post(rnl_endpoint *ep, const struct rnl_begin *b, const struct rnl_piece *pieces,
                                  unsigned count, void (*done)(void *arg, int status), void *arg);

/* ---- inside a handler ---- */

/* Answer on lane 1, once, n <= the asker's `answer`. Room was set aside before the handler ran: never waits, never
 * RNL_NO_ROOM. The asker's handler runs inside any of its calls and must not send. RNL_ERR_CONTEXT, _TOO_LONG,
 * _HANDLER. */
RNL_PUBLIC RNL_CHECK int rnl_reply(rnl_stream *s, unsigned handler, const void *buf, size_t n);
/* Copy the rest of a message and keep it; the bytes count against the peer's grant until freed, and against the receive
 * budget with the buffers that messages of whole handlers are collected in. Then
 * return RNL_KEEP. Suspends the handler until all of it is here. RNL_NO_ROOM: the receive budget is used up. */
RNL_PUBLIC RNL_CHECK int rnl_keep(rnl_stream *s, rnl_kept **out);
/* The kept bytes, *n of them from *peer (either may be NULL); valid until rnl_kept_free. */
RNL_PUBLIC const void *rnl_kept_data(const rnl_kept *kept, size_t *n, unsigned *peer);
/* NULL is fine. Before rnl_close. */
RNL_PUBLIC void rnl_kept_free(rnl_kept *kept);

/* ---- waiting ---- */

/* Extract until something was taken in, somebody died, or timeout_ns passed (negative: for ever). Spins, yields, then
 * sleeps: an idle wait uses no CPU. Returns bytes as rnl_extract (0 = a message without payload, an answer, or a
 * death), RNL_TIMED_OUT, or an error. */
RNL_PUBLIC RNL_CHECK int64_t rnl_wait(rnl_endpoint *ep, int64_t timeout_ns);
/* A descriptor for poll/epoll, level-triggered: readable while rnl_extract would find something, and
 * ten times a second for one that may find nothing. Belongs to the endpoint. After the first call an extract that finds
 * nothing leaves the endpoint armed. RNL_ERR_SYSTEM. */
RNL_PUBLIC RNL_CHECK int rnl_fd(rnl_endpoint *ep);

/* ---- handlers, peers, limits ---- */

enum { RNL_ANY_ID = -1 };
/* Register at any time; replaces. Ids are 0 .. rnl_limits.handlers - 1; RNL_ANY_ID takes the next free one from 1 up. A
 * message whose handler is missing waits at the head of its peer's stream. A handler may run on a stack of 64 KiB
 * (rnl_limits.stack_bytes): arrays above a few KiB belong elsewhere. One that goes past its stack by up to 256 KiB is
 * ended by SIGSEGV, with a larger frame it may overwrite anything. Returns the id, RNL_ERR_HANDLER. */
RNL_PUBLIC RNL_CHECK int rnl_handler_stream(rnl_endpoint *ep, int id, rnl_stream_handler *h, void *ctx);
enum { RNL_IN_PLACE = 1 }; /* whole handler: no private copy of a long message; the peer is trusted not to change it */
/* The same for a handler of whole messages. flags: 0 or RNL_IN_PLACE. */
RNL_PUBLIC RNL_CHECK int rnl_handler_whole(rnl_endpoint *ep, int id, rnl_whole_handler *h, void *ctx, unsigned flags);

/* CONNECTING, SUSPECT and FINISHED are reserved for transports between hosts. */
enum rnl_peer_state {
    RNL_PEER_NEW,
    RNL_PEER_CONNECTING,
    RNL_PEER_UP,
    RNL_PEER_SUSPECT,
    RNL_PEER_DEAD,
    RNL_PEER_FINISHED,
    RNL_PEER_RETURNED /* dead, and the job has started another process of that rank: rnl_readmit */
};
enum rnl_death_reason {
    RNL_DEATH_NONE,
    RNL_DEATH_SIGNAL,
    RNL_DEATH_EXIT,
    RNL_DEATH_BROKEN, /* it wrote what the protocol does not allow: dead for this endpoint */
    RNL_DEATH_NEVER_JOINED,
    RNL_DEATH_PARTED, /* it holds us for one that did, or for dead, and has ended the connection: dead for this endpoint
                       */
    RNL_DEATH_LEFT,   /* it replaced its program (exec), or closed its connection to the launcher; its process lives */
    RNL_DEATH_SILENT, /* on another host, and not heard for longer than the bound: dead for this endpoint */
    RNL_DEATH_HOST    /* its host is lost: the agent there ended, or is not heard; its processes cannot come back */
};
struct rnl_peer_info {
    enum rnl_peer_state state;
    enum rnl_death_reason reason;
    int detail; /* signal number or exit status */
    uint64_t incarnation;
    char host[64];
};
/* What is known of a peer. RNL_ERR_RANK. */
RNL_PUBLIC RNL_CHECK int rnl_peer(rnl_endpoint *ep, unsigned peer, struct rnl_peer_info *out);
/* See rnl_on_death. */
typedef void rnl_death(void *arg, unsigned peer, enum rnl_death_reason reason);
/* f(arg, peer, reason) is called once per peer that dies, from progress calls, under the rules of rnl_post's done. NULL
 * = nobody. */
RNL_PUBLIC void rnl_on_death(rnl_endpoint *ep, rnl_death *f, void *arg);
/* Takes a dead peer back: its death is forgotten, and the next message either way makes a new connection, with nothing
 * of the old one. Until then it stays dead, whatever comes of it. Allowed in on_death's function and in handlers; does
 * not wait, runs no handlers. 0 (also if it is not dead); RNL_BUSY: its death is not over yet, or a message to it is
 * open; RNL_ERR_PEER_DEAD: its process is gone and the job has not started another (rnl_peer tells when it has, and a
 * wait ends then); RNL_ERR_UNSUPPORTED: the same process, on this host; RNL_ERR_RANK, _CLOSED, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_readmit(rnl_endpoint *ep, unsigned peer);
/* See rnl_on_refused. */
typedef void rnl_refused(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n);
/* f is called when a message with answer > 0 comes back refused: its handler, the reason and its first n bytes, at
 * most 40; from any call; it must not send. NULL = nobody. */
RNL_PUBLIC void rnl_on_refused(rnl_endpoint *ep, rnl_refused *f, void *arg);

struct rnl_limits {
    size_t whole_max, answer_max, reserve_max, handlers, stacks, stack_bytes, receive_budget, post_budget;
};
/* What this endpoint was opened with. */
RNL_PUBLIC void rnl_get_limits(const rnl_endpoint *ep, struct rnl_limits *out);

/* Always-on counters of this endpoint (layout: runnel/counters.h). The same page can be read from outside the process.
 */
struct rnl_counters;
/* The page itself: valid until rnl_close, changed by later calls. NULL in a forked child. */
RNL_PUBLIC const struct rnl_counters *rnl_get_counters(rnl_endpoint *ep);

/* ---- life ---- */

struct rnl_options {
    uint32_t size; /* sizeof(struct rnl_options): fields are added at the end */
    uint32_t flags;
    size_t receive_budget; /* bytes; 0 = default, 64 MiB */
    uint32_t handlers;     /* 0 = 1024; at most 65536 */
    uint32_t stacks;       /* 0 = the larger of 64 and the number of local peers */
    rnl_hub *hub;          /* join this job inside the process instead of the launcher's */
    uint32_t hub_rank;     /* ... as this rank */
    const char *name;      /* shown by `runnel info`; copied; NULL = the program's name */
};
enum {
    RNL_SHARED = 1, /* any thread may call: one lock per call */
    RNL_NO_RUN_IN_SEND =
        2, /* a send that waits takes in answers and credit only, it runs no handlers (FM 1 purists: can deadlock) */
    RNL_RESTARTED = 4 /* join also if a process of this rank died before: peers have to rnl_readmit this one */
};
/* Join the job that started this process, else become a job of one. opt may be NULL. One endpoint per process in a
 * launched job. Blocks until the launcher has answered. RNL_ERR_ARG, _NO_MEMORY, _SYSTEM, _JOB. */
RNL_PUBLIC RNL_CHECK int rnl_open(rnl_endpoint **out, const struct rnl_options *opt);
/* Collective: runs handlers until every peer has entered close or died and every message has been handled. Messages
 * that the program left open are given up, as by rnl_abort. Frees the endpoint, unless it returns RNL_ERR_CONTEXT or
 * _FORKED. RNL_ERR_HANDLER: messages were dropped because no handler was registered for them. RNL_ERR_JOB,
 * RNL_ERR_NO_MEMORY (a message could not be taken in for want of it): the peers see this rank die, and what was queued
 * or suspended here is told RNL_ERR_JOB. */
RNL_PUBLIC RNL_CHECK int rnl_close(rnl_endpoint *ep);
/* Our rank, 0 to rnl_size() - 1. */
RNL_PUBLIC unsigned rnl_rank(const rnl_endpoint *ep);
/* Ranks in the job. */
RNL_PUBLIC unsigned rnl_size(const rnl_endpoint *ep);

/* A job of `size` ranks inside this process, for programs of threads: each thread opens one endpoint with opt.hub and
 * opt.hub_rank. */
RNL_PUBLIC RNL_CHECK int rnl_hub_new(unsigned size, rnl_hub **out);
/* After all its endpoints are closed. NULL is fine. */
RNL_PUBLIC void rnl_hub_free(rnl_hub *hub);

struct rnl_error {
    int status;
    int sys_errno;
    char text[256];
};
/* What the last failed call of this thread said; never NULL. */
RNL_PUBLIC const struct rnl_error *rnl_last_error(void);
/* "RNL_ERR_PEER_DEAD"; never NULL. */
RNL_PUBLIC const char *rnl_status_name(int status);
/* "0.1.0" */
RNL_PUBLIC const char *rnl_version(void);

#ifdef __cplusplus
}
#endif
#endif
