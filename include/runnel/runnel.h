/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runnel.h - the native interface: endpoints, peers, handlers and streams.
 *
 * An endpoint is the place of this process in a job of rnl_size() ranks. A message is a stream of bytes to a numbered
 * handler of a peer. Messages from one peer arrive complete, once, and in the order in which they were sent, or the
 * peer is reported dead. Those that are posted with RNL_BULK have an order of their own.
 *
 * Every function that can fail returns 0 or a positive count on success, and a negative enum rnl_status on failure;
 * rnl_last_error() then holds one sentence for this thread: what was asked, what the limit is, and what to change. No
 * function prints, aborts or exits.
 *
 * Unless its comment says otherwise, a function is called by the thread that owns the endpoint (by any thread if the
 * endpoint was opened RNL_SHARED), does not block, and runs no handler. Read this file in this order: send, extract,
 * receive; begin, piece, end; reply, keep, reject; wait, fd; open, close. */
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
typedef struct rnl_stream rnl_stream;     /* one message, outgoing or incoming; belongs to the library */
typedef struct rnl_kept rnl_kept;         /* a message that the program keeps after its handler returned */
typedef struct rnl_hub rnl_hub;           /* a job inside one process, whose endpoints belong to threads */

/* The values are grouped by what is lost: nothing, the call, the message, the peer, the endpoint. */
enum rnl_status {
    RNL_OK = 0,
    /* Nothing is lost; the call can be tried again later. */
    RNL_NO_ROOM = -1,     /* the peer's grant or ring is used up */
    RNL_BUSY = -2,        /* a message to this peer is already open */
    RNL_TIMED_OUT = -3,   /* the given time has passed */
    RNL_INTERRUPTED = -4, /* rnl_wake ended the wait */
    /* The call is lost: the program is wrong, or the system refused. */
    RNL_ERR_ARG = -16,
    RNL_ERR_RANK = -17,
    RNL_ERR_HANDLER = -18,
    RNL_ERR_TOO_LONG = -19, /* can never fit: a short send, a reply, or a begin that must not wait */
    RNL_ERR_CONTEXT = -20,  /* a progress call inside a handler or callback, a reply outside a handler, or a second
                               reply */
    RNL_ERR_PAST_END = -21, /* a receive asks for more than the message has, or a piece goes past the bound */
    RNL_ERR_NO_MEMORY = -22,
    RNL_ERR_SYSTEM = -23, /* rnl_last_error()->sys_errno holds the system's error number */
    RNL_ERR_UNSUPPORTED = -24,
    RNL_ERR_REFUSED = -25,     /* the other side does not admit this process, or the name is taken (runnel/meet.h) */
    RNL_ERR_UNREACHABLE = -26, /* nothing answers there */
    RNL_ERR_REVOKED = -27,     /* the window is not offered any more (runnel/window.h) */
    /* The message is lost. */
    RNL_ERR_REJECTED = -32, /* reserved: rejected messages come back through rnl_on_rejected */
    RNL_ERR_ABORTED = -33,  /* its sender gave the message up before it was complete */
    /* The peer is lost. */
    RNL_ERR_PEER_DEAD = -48,
    RNL_ERR_PEER_BROKEN = -49, /* the peer wrote what the protocol does not allow, and is treated as dead */
    /* The endpoint is lost. */
    RNL_ERR_CLOSED = -64,
    RNL_ERR_FORKED = -65, /* this process is a child of the one that opened the endpoint */
    RNL_ERR_JOB = -66     /* the launcher is gone, or never accepted this process */
};

enum { RNL_SHORT_MAX = 48 }; /* most bytes that rnl_send takes */

/* Handles a message. The handler runs inside rnl_extract, rnl_wait, rnl_close or a send that waits, as soon as the
 * first packet of the message has arrived. rnl_receive may suspend it, and a later call resumes it (on the thread that
 * makes that call, if the endpoint is RNL_SHARED). It must not call extract, wait or close. It returns one of the
 * endings below; bytes that it did not receive are dropped. */
typedef int rnl_stream_handler(rnl_stream *s, unsigned peer, void *ctx);
/* Handles a whole message; runs once all of it has arrived. buf is private to this process and valid until the handler
 * returns (with RNL_IN_PLACE, buf lies where the peer can write). A message longer than rnl_limits.whole_max is taken
 * in and discarded: the handler gets buf == NULL and its length, and the sender is told with RNL_REASON_TOO_LONG. A
 * message for which there is no memory waits.
 * Returns RNL_DONE or RNL_QUIT. */
typedef int rnl_whole_handler(const void *buf, size_t n, unsigned peer, void *ctx);
enum {
    RNL_DONE = 0,
    RNL_QUIT = 1, /* as RNL_DONE, and the running extract returns after this handler */
    RNL_KEEP = 2, /* allowed only after rnl_keep() succeeded */
    RNL_REJECT_BASE = 256
};
/* Ending that rejects the message: it goes back to its sender with this reason, 0 to 255, and the sender's
 * rnl_on_rejected function is called. The message must have been begun with `answer` > 0, otherwise its sender is never
 * informed. */
#define RNL_REJECT(reason) (RNL_REJECT_BASE + (int)((reason)&0xff))

/* ---- short messages ---- */

/* Sends n <= RNL_SHORT_MAX bytes as one message. buf belongs to the caller again on return. Outside handlers the call
 * waits for room and runs handlers meanwhile; inside a handler it returns RNL_NO_ROOM instead. Returns 0, RNL_NO_ROOM,
 * RNL_TIMED_OUT (see rnl_send_timeout), RNL_BUSY, RNL_ERR_RANK, _TOO_LONG, _HANDLER, _CONTEXT (in the handler of a
 * reply), _PEER_DEAD, _PEER_BROKEN, _FORKED, _JOB; the first message to a peer may also return _NO_MEMORY or
 * _SYSTEM. */
RNL_PUBLIC RNL_CHECK int rnl_send(rnl_endpoint *ep, unsigned peer, unsigned handler, const void *buf, size_t n);

/* Takes in messages and runs their handlers. Never blocks. Stops at the first of these: max_bytes of payload have been
 * begun (rounded up to a packet), a handler returned RNL_QUIT, or all that had arrived when the call began is taken in.
 * Returns the payload bytes taken in; 0 means library traffic, nothing, or messages without payload (rnl_get_counters
 * tells them apart). With max_bytes 0 the call takes in credit, replies and deaths only. Returns RNL_ERR_CONTEXT,
 * _FORKED, _JOB, or RNL_ERR_NO_MEMORY: a message waits until this process has memory for it; the error is returned once
 * for each such message, and everything else is taken in. RNL_ERR_NO_MEMORY or RNL_ERR_SYSTEM, once for a peer: what it
 * sends cannot be taken in for want of memory or of a descriptor, for a second now. In both cases the peer is dead for
 * this endpoint after rnl_options.silence_ms. */
RNL_PUBLIC RNL_CHECK int64_t rnl_extract(rnl_endpoint *ep, size_t max_bytes);

/* In a stream handler: copies the next n bytes of the message to buf, and suspends the handler until they have arrived.
 * buf must stay valid until the call returns. Returns 0; RNL_ERR_PAST_END (nothing was copied); RNL_ERR_PEER_DEAD or
 * RNL_ERR_ABORTED (the rest never comes: the handler drops what it has and returns). */
RNL_PUBLIC RNL_CHECK int rnl_receive(rnl_stream *s, void *buf, size_t n);

/* In a stream handler: returns how many bytes can be received without suspending, and stores their address in *view
 * unless view is NULL. The view ends at the next rnl_receive or when the handler returns. It lies in memory that the
 * peer can write: copy the bytes before use unless the peer is trusted. */
RNL_PUBLIC size_t rnl_peek(rnl_stream *s, const void **view);

/* ---- streams ---- */

struct rnl_message {
    unsigned peer, handler;
    size_t bound;   /* most bytes that will follow; fewer are allowed */
    size_t answer;  /* bytes of the largest reply that this message may cause, <= rnl_limits.reply_max; 0 = no reply */
    unsigned flags; /* RNL_NO_WAIT: return RNL_NO_ROOM instead of waiting, outside handlers too; RNL_BULK: rnl_post */
};
enum { RNL_NO_WAIT = 1, RNL_BULK = 2 };

/* Opens a message. *out belongs to the caller until rnl_end or rnl_abort. Outside handlers the call waits for room and
 * runs handlers meanwhile. Inside a handler, or with RNL_NO_WAIT, it reserves the whole bound at once or returns
 * RNL_NO_ROOM; a bound above rnl_limits.reserve_max is RNL_ERR_TOO_LONG there. Only one message can be open to each
 * peer: a second begin returns RNL_BUSY. RNL_ERR_ARG means unknown flags; the other errors are those of rnl_send. The
 * first message between two ranks has to ask the launcher: a begin that must not wait waits for the launcher once, at
 * most 100 ms, and then returns RNL_NO_ROOM until the launcher has replied. */
RNL_PUBLIC RNL_CHECK int rnl_begin(rnl_endpoint *ep, const struct rnl_message *b, rnl_stream **out);
/* Appends n bytes. buf belongs to the caller again on return. Outside handlers the call may wait for room and run
 * handlers. The bytes become visible to the peer when a packet is full, at rnl_end, and at the latest at the next
 * extract, wait, begin or rnl_flush. After RNL_ERR_PAST_END or _PEER_DEAD the stream stays open and must still be ended
 * or aborted. */
RNL_PUBLIC RNL_CHECK int rnl_piece(rnl_stream *s, const void *buf, size_t n);
/* Completes the message; s is invalid afterwards. RNL_ERR_PEER_DEAD: the message was lost. RNL_ERR_ABORTED or
 * RNL_ERR_JOB: a piece had failed after a part of it was taken, so the message was given up. RNL_ERR_CONTEXT: a long
 * message that was begun outside handlers cannot wait for room inside a handler; the message stays open. */
RNL_PUBLIC RNL_CHECK int rnl_end(rnl_stream *s);
/* Gives an open message up: nobody gets it, not even the part that was visible. A handler that waits for the rest gets
 * RNL_ERR_ABORTED; a handler of whole messages never runs. s is invalid afterwards. Never waits, inside handlers
 * neither. A begin that follows at once may return RNL_NO_ROOM until the peer has been informed. Returns 0, RNL_ERR_ARG
 * or _FORKED. */
RNL_PUBLIC int rnl_abort(rnl_stream *s);
/* Makes all composed bytes visible to their receivers now. */
RNL_PUBLIC RNL_CHECK int rnl_flush(rnl_endpoint *ep);
/* Bounds how long each later send, begin, piece and end of this endpoint may wait for room outside handlers (negative:
 * no limit, which is the default). A call that would wait longer returns RNL_TIMED_OUT: a send or begin has begun
 * nothing; after a piece or end the message stays open, and can be aborted or continued with the same call, which goes
 * on behind what was taken of that piece; an end instead gives the message up (RNL_ERR_ABORTED) if a part was taken.
 * Handlers that the call runs meanwhile are not cut short. Never waits, inside handlers neither. Has no effect in a
 * forked child. */
RNL_PUBLIC void rnl_send_timeout(rnl_endpoint *ep, int64_t timeout_ns);

struct rnl_buffer {
    const void *buf;
    size_t n;
};
/* Queues a message; never waits. done(arg, status) runs in a later progress call or in rnl_close, never inside this
 * call; until then the buffers belong to the library. done may send and post; like a handler it must not extract, wait
 * or close, and its sends never wait. Posts and streams to one peer keep their order. Each post counts against the
 * queue budget with its bytes and its own memory until done has run. RNL_NO_ROOM: the queue budget is used up, or the
 * launcher has not replied yet (see rnl_begin). RNL_ERR_CLOSED: the endpoint is being closed. After an error done does
 * not run.
 * With RNL_BULK the message travels on the bulk lane: no message without it waits for it, whether its receiver takes it
 * in slowly or its handler is missing. Messages of the bulk lane to one peer keep their order among themselves, and so
 * do all others; between the two there is none. `answer` must be 0 (RNL_ERR_ARG). The receiver grants this lane at most
 * half of what it grants the sender, so long messages without RNL_BULK may wait for one whose handler is missing. */
RNL_PUBLIC RNL_CHECK int rnl_post(rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces,
                                  unsigned count, void (*done)(void *arg, int status), void *arg);

/* ---- inside a handler ---- */

/* Sends a reply on lane 1, once for each message, with n at most the `answer` of the request. Room was reserved before
 * the handler ran, so the call never waits and never returns RNL_NO_ROOM. The requester's handler runs inside any of
 * its calls and must not send. Returns 0, RNL_ERR_CONTEXT, _TOO_LONG or _HANDLER. */
RNL_PUBLIC RNL_CHECK int rnl_reply(rnl_stream *s, unsigned handler, const void *buf, size_t n);
/* Copies the rest of the message and keeps it; the handler then returns RNL_KEEP. Suspends the handler until the whole
 * message has arrived. The bytes count until they are freed: against the peer's grant, and against the receive budget,
 * which they share with the buffers that collect messages of whole handlers. RNL_NO_ROOM: the receive budget is used
 * up. */
RNL_PUBLIC RNL_CHECK int rnl_keep(rnl_stream *s, rnl_kept **out);
/* Returns the kept bytes, *n of them from rank *peer (n and peer may be NULL). They are valid until rnl_kept_free. */
RNL_PUBLIC const void *rnl_kept_data(const rnl_kept *kept, size_t *n, unsigned *peer);
/* Frees a kept message; NULL is allowed. Call it before rnl_close. */
RNL_PUBLIC void rnl_kept_free(rnl_kept *kept);

/* ---- waiting ---- */

/* Extracts until something was taken in, a peer died, or timeout_ns has passed (negative: no limit). The call spins,
 * then yields, then sleeps, so an idle wait uses no CPU. Returns bytes as rnl_extract does (0 = a message without
 * payload, a reply, or a death), RNL_TIMED_OUT, RNL_INTERRUPTED, or an error. */
RNL_PUBLIC RNL_CHECK int64_t rnl_wait(rnl_endpoint *ep, int64_t timeout_ns);
/* Makes one rnl_wait that finds no message return RNL_INTERRUPTED: the one under way, else the next one, however often
 * this was called meanwhile. Also makes the descriptor of rnl_fd readable. Any thread may call it, and so may a signal
 * handler: it takes no lock and keeps errno. The endpoint must stay open until it returns. */
RNL_PUBLIC void rnl_wake(rnl_endpoint *ep);
/* Returns a descriptor for poll or epoll, level-triggered: it is readable while rnl_extract would find something, and
 * ten times a second for an extract that may find nothing. It belongs to the endpoint. After the first call an extract
 * that finds nothing leaves the endpoint armed. RNL_ERR_SYSTEM: the descriptor could not be made. */
RNL_PUBLIC RNL_CHECK int rnl_fd(rnl_endpoint *ep);

/* ---- handlers, peers, limits ---- */

enum { RNL_ANY_ID = -1 };
/* Registers a handler at any time, and replaces the one that had this id. Ids are 0 to rnl_limits.handlers - 1;
 * RNL_ANY_ID takes the next free one from 1 up. A message whose handler is missing waits at the head of its peer's
 * stream. A handler may run on a stack of 64 KiB (rnl_limits.stack_bytes), so arrays above a few KiB belong elsewhere.
 * A handler that overruns its stack by up to 256 KiB is ended by SIGSEGV; with a larger frame it may overwrite
 * anything. Returns the id, or RNL_ERR_HANDLER. */
RNL_PUBLIC RNL_CHECK int rnl_handler_stream(rnl_endpoint *ep, int id, rnl_stream_handler *h, void *ctx);
/* Returns the number of the handler that has overrun its stack: it runs now, and `address`, which a SIGSEGV could not
 * touch (si_addr), lies below its stack. Otherwise returns RNL_ERR_HANDLER, and leaves no record. ep may be NULL: any
 * endpoint of the calling thread, also those that FM, AM and the other interfaces keep. For the program's own
 * handler of SIGSEGV, which needs a stack of its own (sigaltstack), in the thread that calls the endpoint: it takes no
 * lock. The library's own one, in ranks of `runnel run`, is there only where a program has none (rnl_handler(3)). */
RNL_PUBLIC int rnl_overrun(const rnl_endpoint *ep, const void *address);
enum { RNL_IN_PLACE = 1 }; /* whole handler: no private copy of a long message; the peer is trusted not to change it */
/* Registers a handler of whole messages in the same way. flags is 0 or RNL_IN_PLACE. */
RNL_PUBLIC RNL_CHECK int rnl_handler_whole(rnl_endpoint *ep, int id, rnl_whole_handler *h, void *ctx, unsigned flags);

/* The values 1, 3 and 5 (connecting, suspected, finished) are reserved for peers of other hosts. */
enum rnl_peer_state {
    RNL_PEER_NEW,
    RNL_PEER_UP = 2,
    RNL_PEER_DEAD = 4,
    RNL_PEER_RETURNED = 6 /* dead, but the job has started another process of that rank: see rnl_readmit */
};
enum rnl_death_reason {
    RNL_DEATH_NONE,
    RNL_DEATH_SIGNAL,
    RNL_DEATH_EXIT,
    RNL_DEATH_BROKEN, /* the peer wrote what the protocol does not allow: dead for this endpoint */
    RNL_DEATH_NEVER_JOINED,
    RNL_DEATH_DISCONNECTED, /* the peer takes this process for broken or dead and has disconnected: dead for this
                               endpoint */
    RNL_DEATH_LEFT, /* the peer replaced its program (exec), closed its connection to the launcher, or left by rnl_leave
                         or the rnl_close of an endpoint alone; its process lives */
    RNL_DEATH_SILENT, /* the peer is on another host and was silent for longer than the bound: dead for this endpoint */
    RNL_DEATH_HOST,   /* the peer's host is lost: its agent ended or is silent; its processes cannot come back */
    RNL_DEATH_NO_MEMORY /* the peer sends, and this process has lacked memory or a descriptor to take that in for longer
                           than the bound: dead for this endpoint */
};
struct rnl_peer_info {
    enum rnl_peer_state state;
    enum rnl_death_reason reason;
    int detail; /* signal number, or exit status */
    uint64_t incarnation;
    char host[64];
};
/* Copies what is known of a peer to *out. RNL_ERR_RANK: there is no such rank. */
RNL_PUBLIC RNL_CHECK int rnl_peer(rnl_endpoint *ep, unsigned peer, struct rnl_peer_info *out);
/* Function that rnl_on_death registers. */
typedef void rnl_death(void *arg, unsigned peer, enum rnl_death_reason reason);
/* Registers f(arg, peer, reason), which is called once for each peer that dies, from progress calls, under the rules of
 * rnl_post's done. NULL registers nobody. */
RNL_PUBLIC void rnl_on_death(rnl_endpoint *ep, rnl_death *f, void *arg);
/* Takes a dead peer back: its death is forgotten, and the next message in either direction makes a new connection that
 * has nothing of the old one. Until then the peer stays dead, whatever arrives from it. Allowed in handlers and in the
 * function of rnl_on_death; does not wait and runs no handlers. Returns 0, also if the peer is not dead. RNL_BUSY: its
 * death is not fully handled yet, or a message to it is open. RNL_ERR_PEER_DEAD: its process is gone and the job has
 * not started another (rnl_peer tells when it has, and a wait ends then). RNL_ERR_UNSUPPORTED: it is the same process,
 * on this host. RNL_ERR_RANK, _CLOSED, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_readmit(rnl_endpoint *ep, unsigned peer);
/* Function that rnl_on_rejected registers. */
typedef void rnl_rejected(void *arg, unsigned peer, unsigned handler, unsigned reason, const void *buf, size_t n);
enum { RNL_REASON_TOO_LONG = 256 };
/* Registers f, which is called when a message that was sent with answer > 0 comes back rejected. f gets the handler,
 * the reason and the first n bytes of the message, at most 40. A message longer than rnl_limits.whole_max to a handler
 * of whole messages comes back with RNL_REASON_TOO_LONG and none of its bytes, whatever its answer; where nobody is
 * registered, an extract or wait of the sender, or else its close, returns RNL_ERR_TOO_LONG once. Any call may run f,
 * and f must not send. NULL registers nobody. */
RNL_PUBLIC void rnl_on_rejected(rnl_endpoint *ep, rnl_rejected *f, void *arg);

struct rnl_limits {
    size_t whole_max, reply_max, reserve_max, handlers, stacks, stack_bytes, receive_budget, post_budget;
};
/* Copies the limits that this endpoint was opened with to *out. */
RNL_PUBLIC void rnl_get_limits(const rnl_endpoint *ep, struct rnl_limits *out);

/* The counters of an endpoint, which are always on (layout: runnel/counters.h). The same page can be read by other
 * processes. */
struct rnl_counters;
/* Returns the page of counters: valid until rnl_close, changed by later calls. NULL in a forked child. */
RNL_PUBLIC const struct rnl_counters *rnl_get_counters(rnl_endpoint *ep);

/* ---- life ---- */

struct rnl_options {
    uint32_t size; /* sizeof(struct rnl_options); fields are added at the end */
    uint32_t flags;
    size_t receive_budget; /* bytes; 0 = the default, 64 MiB */
    uint32_t handlers;     /* size of the handler table; 0 = 1024, at most 65536 */
    uint32_t stacks;       /* number of handler stacks; 0 = the larger of 64 and the number of ranks */
    rnl_hub *hub;          /* join this job inside the process instead of the launcher's; NULL = the launcher's */
    uint32_t hub_rank;     /* rank to take in the hub's job */
    const char *name;      /* name that `runnel info` shows; copied; NULL = the program's name */
    uint32_t peers;        /* RNL_ALONE: most peers at a time, up to 1023; 0 = 255 */
    uint32_t silence_ms;   /* time without a word of a peer on another host that owes one, or without memory to take in
                              what a peer sends, after which the peer is dead for this endpoint; 0 = 30000, at least
                              100 */
};
enum {
    RNL_SHARED = 1, /* any thread may call; each call takes one lock */
    RNL_NO_RUN_IN_SEND =
        2, /* a send that waits takes in replies and credit only and runs no handlers (as FM 1 does; can deadlock) */
    RNL_RESTARTED = 4, /* join even if a process of this rank died before; peers have to rnl_readmit this one */
    RNL_ALONE = 8,     /* join no job: the endpoint has rank 0 and no peers until it is introduced (runnel/meet.h) */
    RNL_NO_YIELD = 16  /* an extract that finds nothing never gives the processor away: for programs that poll several
                          things and give way themselves */
};
/* Joins the job that started this process, or else becomes a job of one rank. opt may be NULL. A process of a launched
 * job has one endpoint in it, and any number that are RNL_ALONE. Blocks until the launcher has replied. RNL_ERR_ARG,
 * _NO_MEMORY, _SYSTEM, _JOB. */
RNL_PUBLIC RNL_CHECK int rnl_open(rnl_endpoint **out, const struct rnl_options *opt);
/* Leaves the job. Collective, but not of an endpoint that is RNL_ALONE (see below): runs handlers until every peer has
 * entered rnl_close or died and every message has been handled. Messages that the program left open are given up, as by
 * rnl_abort, and RNL_ERR_ABORTED says so. Frees the endpoint, unless it returns RNL_ERR_CONTEXT or _FORKED.
 * RNL_ERR_HANDLER: messages were dropped because no handler was registered for them. RNL_ERR_JOB, RNL_ERR_NO_MEMORY (a
 * message could not be taken in for lack of it): the peers see this rank die, and whatever was queued or suspended here
 * gets RNL_ERR_JOB. An endpoint that is RNL_ALONE waits for nobody and runs no handler: its peers take in what was sent
 * to them and then find it dead (RNL_DEATH_LEFT); posts that are still queued end with RNL_ERR_CLOSED. */
RNL_PUBLIC RNL_CHECK int rnl_close(rnl_endpoint *ep);
/* Returns the rank of this process, 0 to rnl_size() - 1. */
RNL_PUBLIC unsigned rnl_rank(const rnl_endpoint *ep);
/* Returns the number of ranks in the job. */
RNL_PUBLIC unsigned rnl_size(const rnl_endpoint *ep);

/* Makes a job of `size` ranks inside this process, for programs of threads: each thread opens one endpoint with opt.hub
 * and opt.hub_rank. */
RNL_PUBLIC RNL_CHECK int rnl_hub_new(unsigned size, rnl_hub **out);
/* Frees the hub, after all its endpoints are closed. NULL is allowed. */
RNL_PUBLIC void rnl_hub_free(rnl_hub *hub);

struct rnl_error {
    int status;
    int sys_errno;
    char text[256];
};
/* Returns the record of the last call of this thread that failed; never NULL. */
RNL_PUBLIC const struct rnl_error *rnl_last_error(void);
/* Returns the name of a status, such as "RNL_ERR_PEER_DEAD"; never NULL. */
RNL_PUBLIC const char *rnl_status_name(int status);
/* Returns the version, such as "0.1.0". */
RNL_PUBLIC const char *rnl_version(void);

#ifdef __cplusplus
}
#endif
#endif
