/* SPDX-License-Identifier: BSD-3-Clause
 *
 * adapter.h - what libraries need besides that stand between Runnel and other people's programs: providers, preloaded
 * libraries, RPC systems. They poll several things, must not wait where the program does not expect it, and hold
 * requests of which the program says later what becomes of them.
 *
 * The rules of runnel.h hold: what a function returns, who may call it, that it does not wait and runs no handler
 * unless its comment says otherwise. */
#ifndef RNL_ADAPTER_H
#define RNL_ADAPTER_H

#include <runnel/runnel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- incoming messages ---- */

/* In a stream handler: returns the length of the message in bytes, with those that were received already. If *exact
 * becomes 1, the message has that length; if 0, its end has not come yet, and it will be no longer. exact may be NULL.
 * What rnl_send and rnl_reply have sent is exact from the start, and so is what was composed at once up to 16 KiB. */
RNL_PUBLIC size_t rnl_length(const rnl_stream *s, int *exact);

/* ---- outgoing messages ---- */

/* Why a message cannot be begun now. */
enum rnl_room_lacks {
    RNL_ROOM_CONNECTION =
        1,               /* nothing was sent to the peer or came from it yet; the first begin makes the connection */
    RNL_ROOM_OPEN = 2,   /* a message of this process to the peer is open */
    RNL_ROOM_QUEUED = 4, /* posts to the peer go first */
    RNL_ROOM_RING = 8,   /* the peer has not read the ring */
    RNL_ROOM_GRANT = 16  /* the peer's grant is used up: it has not read what was sent, or keeps much of it */
};
/* What can be sent to a peer without waiting. */
struct rnl_room_info {
    uint32_t size;     /* sizeof(struct rnl_room_info), set by the caller; fields are added at the end */
    uint32_t lacks;    /* bits of enum rnl_room_lacks; 0 = a message can be begun now */
    uint32_t messages; /* free places of the ring: a message of up to 56 bytes takes one at most, a longer one 1 to 3 */
    uint32_t flags;    /* 0 */
    size_t bound;      /* largest bound that rnl_begin takes now with RNL_NO_WAIT and answer 0, if `lacks` is 0 */
    size_t
        bulk; /* bytes of the largest message of more than 56 bytes for which there is memory; `bound` is that or 56 */
    size_t grant;  /* bytes that the peer's grant still allows, 64 of them for each message besides its own */
    size_t window; /* `grant` as it would be if the peer had read all that was sent. It falls while the peer's
                          program keeps messages, down to 4 KiB, and may rise with use */
    size_t kept;   /* bytes of the peer's messages that this process keeps, in units of 64 */
    /* The same for the bulk lane (rnl_post with RNL_BULK), whose messages none of the other fields speaks of. A caller
     * that does not use that lane saves time with offsetof(struct rnl_room_info, bulk_lane) as size. */
    size_t bulk_lane; /* bytes of the longest post that is sent whole by its call, its `done` being due in the next
                             extract; 0 if bulk_lane_lacks is not 0: then it waits. Between hosts it may be more */
    uint32_t bulk_lane_lacks; /* bits of enum rnl_room_lacks: QUEUED by posts of that lane, OPEN by a message of up to
                                 256 KiB alone that is open */
    uint32_t bulk_lane_flags; /* 0 */
};
/* Copies to *out what can be sent to `peer` now, by what the peer has advertised so far, without a system call. Room
 * that is told is there for this call's thread until it sends to the peer. Returns 0, RNL_ERR_RANK, RNL_ERR_ARG (size),
 * RNL_ERR_NO_MEMORY, _PEER_DEAD, _PEER_BROKEN, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_room(rnl_endpoint *ep, unsigned peer, struct rnl_room_info *out);

typedef struct rnl_post rnl_posted; /* a message that was posted, until its done has run */
/* As rnl_post, but the queue budget counts the library's own memory only, since the caller holds the bytes anyway: 64
 * bytes and 16 for each piece or so. *out, which may be given to rnl_cancel, is valid until done has been called. */
RNL_PUBLIC RNL_CHECK int rnl_post_held(rnl_endpoint *ep, const struct rnl_message *b, const struct rnl_buffer *pieces,
                                       unsigned count, void (*done)(void *arg, int status), void *arg,
                                       rnl_posted **out);
/* Withdraws the message. Returns 1 if nobody gets it: the buffers belong to the caller again, done runs in a later
 * progress call with RNL_ERR_ABORTED, and a handler at the peer that has begun with a part of the message gets
 * RNL_ERR_ABORTED. Returns 0 if it is too late: it was sent whole or has failed, and done is still to run, or runs.
 * Never waits; allowed in handlers. RNL_ERR_FORKED. */
RNL_PUBLIC int rnl_cancel(rnl_posted *posted);

/* ---- replies ---- */

/* As rnl_reply, with a reply that is gathered from pieces. */
RNL_PUBLIC RNL_CHECK int rnl_reply_pieces(rnl_stream *s, unsigned handler, const struct rnl_buffer *pieces,
                                          unsigned count);
typedef uint64_t rnl_deferred; /* name of a reply that is sent later; never 0, and never used twice */
/* In a stream handler: puts the reply off. The handler may return, and rnl_answer sends the reply, once, with the name
 * that is stored in *out. Room for the largest reply that the message allows stays reserved until then. RNL_NO_ROOM: 8
 * replies to this peer (32 to a peer of another host), or 448 KiB of them, are deferred already; reply at once then.
 * The other errors are those of rnl_reply, and RNL_ERR_NO_MEMORY. Deferred replies that are not sent before rnl_close
 * are never sent. */
RNL_PUBLIC RNL_CHECK int rnl_defer(rnl_stream *s, rnl_deferred *out);
/* Sends a deferred reply, gathered from pieces, from anywhere: the program, any handler, that of a reply too, or a
 * function that the library calls. Never waits and never returns RNL_NO_ROOM. The name is used up, but not by
 * RNL_ERR_TOO_LONG and RNL_ERR_HANDLER. RNL_ERR_ARG: no such reply is deferred, or it was sent. RNL_ERR_PEER_DEAD: the
 * peer that asked is gone. RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_answer(rnl_endpoint *ep, rnl_deferred name, unsigned handler,
                                    const struct rnl_buffer *pieces, unsigned count);

/* ---- waiting for several things ---- */

/* Returns 1 if an extract may find something, and 0 if it would not, after one look; RNL_ERR_FORKED. Runs no handlers
 * and never gives the processor away. Between hosts it takes in datagrams and acknowledges them. A program that only
 * looks does not starve its peers: now and then a look does what an empty extract does for them. */
RNL_PUBLIC RNL_CHECK int rnl_look(rnl_endpoint *ep);
/* Arms the endpoint: from now on the descriptor *fd, which is that of rnl_fd, becomes readable when something comes.
 * Returns 0; 1 = something is there already, so extract instead of sleeping. To be called before each sleep, since an
 * extract that finds something disarms, and leaves the descriptor readable. Unlike rnl_fd it lets extracts that find
 * nothing arm nothing. RNL_ERR_SYSTEM (there is no descriptor), RNL_ERR_CONTEXT (inside a handler), RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_arm(rnl_endpoint *ep, int *fd);

/* ---- jobs and places ---- */

/* How the ranks of a job learn of each other when their launcher is none that Runnel knows. Every rank calls
 * rnl_open_exchange with its own, and they are one job, as below `runnel run`. `arg`, and what the functions use, has
 * to last until rnl_close has returned, and where that is RNL_ERR_JOB, until the process ends. Values of some hundred
 * bytes, and from one rank of each host 132 for each host, are put, then comes a fence, then they are got: two or three
 * times in the open, and at least twice in rnl_close. Among the values is the key of the job, so who reads them can
 * speak as any rank. A process may open one such job after another, and have several at a time, each with an exchange
 * of its own.
 *
 * A rank that dies ends the job: on one host the library finds out, and every call that needs it returns RNL_ERR_JOB.
 * On another host a rank that is silent for long is dead, and rnl_close of the others returns when `fence` does, which
 * it should with an error. */
struct rnl_exchange {
    uint32_t size;           /* sizeof(struct rnl_exchange), set by the caller; fields are added at the end */
    uint32_t rank, ranks;    /* of this process; of the job: 1 to 1024 */
    uint32_t here;           /* entries of on_host; 0 = the library finds out which ranks are on this host */
    const uint32_t *on_host; /* the ranks that share memory with this one, itself among them, ascending: the same list
                                in each of them; read by the open only */
    void *arg;
    /* Publishes a copy of `bytes` bytes under a key of at most 47 characters. 0 or an error. */
    int (*put)(void *arg, const char *key, const void *value, size_t bytes);
    /* Copies out the value of exactly `bytes` bytes that `rank`, which may be the own one, has put before the last
     * fence; it stays there until the others have closed, although its rank may have ended. 0 or an error. */
    int (*get)(void *arg, uint32_t rank, const char *key, void *value, size_t bytes);
    /* Returns when every rank has called it as often, with 0, or an error. It may block, and is called in a thread of
     * the library, in which no signals arrive; the other two only while none is under way. */
    int (*fence)(void *arg);
};
/* As rnl_open, into the job of the exchange, which is copied. `opt` may be NULL, and names no hub, RNL_ALONE or
 * RNL_RESTARTED. Blocks until all ranks have called it. RNL_ERR_ARG, too; RNL_ERR_JOB: a function failed, or a rank
 * did; RNL_ERR_UNSUPPORTED: this is the virtual cluster. */
RNL_PUBLIC RNL_CHECK int rnl_open_exchange(rnl_endpoint **out, const struct rnl_options *opt,
                                           const struct rnl_exchange *x);

/* Writes the identity of the job to id: the same in all its ranks, and different in any other job; zeros for an
 * endpoint that is RNL_ALONE. It is no secret. Returns 0 or RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_job_id(rnl_endpoint *ep, unsigned char id[16]);

enum rnl_where { RNL_IN_PROCESS = 1, RNL_ON_HOST, RNL_ON_OTHER_HOST };
/* Where a peer is. */
struct rnl_place {
    uint32_t size;  /* sizeof(struct rnl_place), set by the caller; fields are added at the end */
    uint32_t where; /* enum rnl_where: in this process, on this host, which are reached by memory, or on another one */
    int32_t pid;    /* process, on this host; 0 = it has not joined, or cannot be seen from this pid namespace */
    uint32_t flags; /* 0 */
};
/* Copies to *out where `peer` is. The pid is that of the launcher, the kernel or, in a PMIx job, the peer itself; it is
 * a name to talk about, and no proof. Returns 0, RNL_ERR_RANK, RNL_ERR_ARG (size), RNL_ERR_FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_peer_place(rnl_endpoint *ep, unsigned peer, struct rnl_place *out);

#ifdef __cplusplus
}
#endif
#endif
