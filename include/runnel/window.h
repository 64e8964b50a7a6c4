/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window.h - windows: memory of this process that peers write straight into, read, and change atomically.
 *
 * The owner makes a window and offers it under a number; a peer imports the offer and then puts bytes into it, without
 * a receive call and, on one host, without the owner's processor. Everything works between all kinds of peers: ranks of
 * a job on one host or on several, threads of a hub, introduced processes (runnel/meet.h), virtual processes.
 *
 * An import is of one of two kinds, which differ in cost and in protection, not in calls:
 *
 *   direct    The pages of the window are mapped into the importer: a put is a copy. The importer cannot reach anything
 *             outside the window. Only on one host.
 *   carried   A put is a message that the owner's library checks (window, bounds, not revoked) and copies, in the
 *             owner's next progress call, or meanwhile (rnl_progress_start). Any range of bytes. The importer has
 *             nothing mapped.
 *
 * Order: puts of one import land in the order in which they were made. Each is visible before the next one, and before
 * its own notification; within a put nothing is ordered, but its last aligned 8 bytes (the last byte, if it is shorter)
 * become visible after all its other bytes, so the owner may wait for them. The same holds for puts of several imports
 * of one kind from the same peer, and for atomics and gets among them.
 *
 * What peers write into windows is never read by the library. Functions return and report errors as those of runnel.h
 * do, and the same rules hold for threads. "Waits" means that the call makes progress meanwhile: it may run handlers of
 * messages of this endpoint and notifications. Inside handlers and functions that the library calls nothing waits:
 * puts return RNL_NO_ROOM and calls that need an answer RNL_ERR_CONTEXT; over direct imports neither happens, unless a
 * notification is asked for.
 *
 * A child process made by fork has no windows: what was exported to peers becomes a private copy there, and imports are
 * not mapped. */
#ifndef RNL_WINDOW_H
#define RNL_WINDOW_H

#include <runnel/meet.h>
#include <runnel/runnel.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_window rnl_window; /* opaque: memory of this process */
typedef struct rnl_import rnl_import; /* an offer of a peer, as this endpoint uses it */

/* ---- the owner ---- */

/* Makes a window of `bytes` bytes, rounded up to pages, of new zeroed memory at *at, which lies on a page. The memory
 * belongs to the window; rnl_window_free gives it back. Returns 0, RNL_ERR_ARG (0 bytes), _NO_MEMORY, _SYSTEM, _CONTEXT
 * (in the handler of a reply), _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_window_alloc(rnl_endpoint *ep, size_t bytes, void **at, rnl_window **out);
/* Makes a window of memory that exists: whole pages of anonymous private memory (malloc, static data, mmap), which keep
 * address and content. No other thread may write there during the call. RNL_ERR_UNSUPPORTED: it is other memory, such
 * as a file's, huge pages, the stack, or not whole pages; rnl_window_wrap takes that. */
RNL_PUBLIC RNL_CHECK int rnl_window_adopt(rnl_endpoint *ep, void *at, size_t bytes, rnl_window **out);
/* Makes a window of any bytes of this process, for carried imports only. The memory stays as it is, and has to stay
 * there until the window is freed. */
RNL_PUBLIC RNL_CHECK int rnl_window_wrap(rnl_endpoint *ep, void *at, size_t bytes, rnl_window **out);
/* Revokes the offer without waiting, and frees the window. Memory of rnl_window_alloc is unmapped; adopted memory
 * stays, with its content, private again. NULL is allowed. Windows that are left at rnl_close are freed by it. */
RNL_PUBLIC int rnl_window_free(rnl_window *w);

/* Function that an offer names: peer's put of n bytes at offset has landed, and asked for a notification. It runs in
 * the owner's progress calls, under the rules of rnl_post's done: it may put, send and post, and must not extract, wait
 * or close. With n == 0 the put had no bytes. */
typedef void rnl_notify(void *ctx, rnl_window *w, unsigned peer, size_t offset, size_t n);
/* Function that an offer names: returns 0 to let peer import it. Runs in progress calls, and must not send. */
typedef int rnl_window_admit(void *ctx, unsigned peer);

enum {
    RNL_OFFER_DIRECT = 1,   /* peers of other users may map it, too; by default those of the same user alone do */
    RNL_OFFER_CARRIED = 2,  /* nobody maps it */
    RNL_OFFER_IN_THREAD = 4 /* `notify` and `admit` may run in the thread of rnl_progress_start */
};
struct rnl_offer {
    uint32_t size; /* sizeof(struct rnl_offer); fields are added at the end */
    uint32_t id;   /* the number by which peers import it, unique among the offers of the endpoint */
    uint32_t flags;
    const struct rnl_admit *who; /* who may import; copied. NULL: ranks of the job; processes of the same user */
    rnl_window_admit *admit;     /* asked about each that `who` lets in; NULL = nobody is asked */
    rnl_notify *notify;          /* NULL = puts land all the same, and nobody is told */
    void *ctx;                   /* of both functions */
};
/* Offers the window; imports that wait for this id are let in. A window has one offer at a time. Of an importer that is
 * on another host nothing is known but its rank: of those only RNL_ADMIT_ANYONE in `who` lets one in. Returns 0,
 * RNL_ERR_ARG (a wrong size or flags; both DIRECT and CARRIED; DIRECT of a window of rnl_window_wrap), RNL_BUSY (the
 * window is offered), RNL_ERR_REFUSED (the id is taken), _UNSUPPORTED (an endpoint with more than 65,280 handlers),
 * _NO_MEMORY, _SYSTEM, _CONTEXT, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_window_offer(rnl_window *w, const struct rnl_offer *offer);
/* Ends the offer: from now on nothing that peers do reaches the memory. Carried imports end at once. Importers that
 * mapped it are told, and waited for up to wait_ns (0 = not at all, and inside handlers only that; negative: no limit);
 * when one has not answered by then, has died, or was another user's, whose word proves nothing, the window's memory is
 * moved to new pages, at the same address, and what lies in the old ones is forgotten. Other threads must not write to
 * the window during the call. The window can be offered again. Returns 0, also if there was no offer; RNL_ERR_SYSTEM or
 * _NO_MEMORY: it could not be moved, and importers that are not polite may still write there; _CONTEXT, _FORKED. */
RNL_PUBLIC int rnl_window_revoke(rnl_window *w, int64_t wait_ns);
/* Stores up to `most` numbers of peers that have imported the window in peers, and returns how many there are: a hint,
 * since they come and go. */
RNL_PUBLIC unsigned rnl_window_importers(const rnl_window *w, unsigned *peers, unsigned most);

/* ---- the importer ---- */

/* Imports what peer offers under this id, waiting until it is offered, at most timeout_ns (negative: no limit; 0: asks
 * once, and waits for the answer). *bytes, unless NULL, is the window's size. An endpoint may import an offer several
 * times. Returns 0, RNL_TIMED_OUT (it is not offered), RNL_ERR_REFUSED (offered, but not to this process),
 * RNL_ERR_PEER_DEAD, _PEER_BROKEN, _RANK, RNL_NO_ROOM (too many imports wait at the peer), _CONTEXT, _NO_MEMORY,
 * _SYSTEM, _UNSUPPORTED, _JOB, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_window_import(rnl_endpoint *ep, unsigned peer, uint32_t id, int64_t timeout_ns,
                                           rnl_import **out, size_t *bytes);
/* Begins the same and returns at once, also inside handlers. *out is to be dropped in any case. */
RNL_PUBLIC RNL_CHECK int rnl_import_begin(rnl_endpoint *ep, unsigned peer, uint32_t id, rnl_import **out);
/* Returns 1 = imported, with its size in *bytes unless that is NULL; 0 = not yet; or, from then on, why it has failed
 * or ended: RNL_ERR_REFUSED, RNL_ERR_REVOKED, RNL_ERR_PEER_DEAD, ... Makes no progress by itself. */
RNL_PUBLIC RNL_CHECK int rnl_import_state(const rnl_import *m, size_t *bytes);
/* Returns 1 if the import is direct. */
RNL_PUBLIC int rnl_import_is_direct(const rnl_import *m);
/* Ends the import, in whatever state; m is invalid afterwards. What was put before still lands. NULL is allowed.
 * Imports that are left at rnl_close are dropped by it. RNL_ERR_FORKED. */
RNL_PUBLIC int rnl_import_drop(rnl_import *m);

/* State of something asynchronous, in memory of the caller, who keeps it until it is not 1 any more: 1 = under way, 0 =
 * done, else a negative status. Changes in progress calls. */
typedef struct rnl_token {
    int32_t state;
} rnl_token;
static inline int rnl_token_state(const rnl_token *t)
{
    return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE); /* pairs with the library's release */
}

enum { RNL_PUT_NOTIFY = 1 /* the owner's `notify` runs after the bytes have landed */ };

/* Puts n bytes into the window. On return `from` belongs to the caller again; direct: the bytes have landed; carried:
 * they are under way (rnl_quiet). May wait for room. Returns 0, RNL_ERR_PAST_END (nothing was put), RNL_ERR_REVOKED,
 * RNL_ERR_PEER_DEAD, _PEER_BROKEN, RNL_NO_ROOM (inside handlers: nothing was put), RNL_ERR_ARG (flags), RNL_BUSY (the
 * import is not there yet), _JOB, _FORKED. A put that is under way when the offer is revoked, or the owner dies, is
 * lost; the next call for the import returns why. */
RNL_PUBLIC RNL_CHECK int rnl_put_any(rnl_import *m, size_t offset, const void *from, size_t n, unsigned flags);
/* The same, but returns at once, also inside handlers: `from` belongs to the library until the token's state is not 1
 * any more. Direct puts are done on return. RNL_NO_ROOM: too many are under way. After an error the token is as it
 * was. */
RNL_PUBLIC RNL_CHECK int rnl_put_async(rnl_import *m, size_t offset, const void *from, size_t n, unsigned flags,
                                       rnl_token *t);
/* Copies n bytes of the window to `to`, after all puts of this process into it. Waits if the import is carried. Errors
 * are those of rnl_put, and RNL_ERR_CONTEXT instead of RNL_NO_ROOM. */
RNL_PUBLIC RNL_CHECK int rnl_get(rnl_import *m, size_t offset, void *to, size_t n);
/* Begins the same: `to` belongs to the library until the token's state is not 1 any more. */
RNL_PUBLIC RNL_CHECK int rnl_get_async(rnl_import *m, size_t offset, void *to, size_t n, rnl_token *t);

enum rnl_atomic_op {
    RNL_ATOMIC_ADD,
    RNL_ATOMIC_SWAP,
    RNL_ATOMIC_COMPARE_SWAP, /* stores the operand if the word equals `expected` */
    RNL_ATOMIC_AND,
    RNL_ATOMIC_OR,
    RNL_ATOMIC_XOR
};
/* Changes the word of 4 or 8 bytes at offset, a multiple of its size, in one atomic step with respect to all importers
 * and to atomic instructions of the owner. *before gets the old value, and the call waits for it if the import is
 * carried; with before == NULL it is as rnl_put. `expected` is for COMPARE_SWAP only. Numbers of 4 bytes are the lower
 * half. Returns what rnl_get does; RNL_ERR_ARG: wrong operation, size or alignment. */
RNL_PUBLIC RNL_CHECK int rnl_atomic_any(rnl_import *m, size_t offset, unsigned bytes, enum rnl_atomic_op op,
                                        uint64_t operand, uint64_t expected, uint64_t *before);
/* Begins the same; before may be NULL. */
RNL_PUBLIC RNL_CHECK int rnl_atomic_async(rnl_import *m, size_t offset, unsigned bytes, enum rnl_atomic_op op,
                                          uint64_t operand, uint64_t expected, uint64_t *before, rnl_token *t);

/* Waits until all puts and atomics to windows of peer, made before by this endpoint, have landed, and their
 * notifications are with the owner. Returns 0; RNL_TIMED_OUT; RNL_ERR_REVOKED, once: some of them had no window to land
 * in any more; RNL_ERR_PEER_DEAD, _PEER_BROKEN, _RANK, _CONTEXT, _JOB, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_quiet(rnl_endpoint *ep, unsigned peer, int64_t timeout_ns);

/* ---- while the owner computes ---- */

/* Starts a thread of the library that serves the endpoint while the program calls nothing: first contacts, imports,
 * revokes, what is carried, acknowledgements and timers go on meanwhile. It takes over when nothing was called for
 * about a millisecond, and steps back at the next call, which waits for what it is just doing; calls take no lock. It
 * runs no function of the program but those of offers with RNL_OFFER_IN_THREAD, these one at a time and never beside a
 * call. A message to the program waits for the program, which holds up no put. While the program waits by rnl_fd or
 * rnl_arm the thread does nothing. It ends in rnl_close. Returns 0, also if it runs; RNL_ERR_UNSUPPORTED (an endpoint
 * that threads share, or a virtual process), _CONTEXT (inside handlers), _SYSTEM, _FORKED. */
RNL_PUBLIC RNL_CHECK int rnl_progress_start(rnl_endpoint *ep);

/* ---- notifications ---- */

/* Block and unblock the notifications of all windows of the endpoint; they count. While they are blocked, and while a
 * notification runs, others wait: a bounded number of them, after which their senders are held up. None is lost.
 * rnl_notify_unblock returns 0, RNL_ERR_CONTEXT (inside a notification, where it would end the block of that one, or
 * not blocked), _FORKED. */
RNL_PUBLIC int rnl_notify_block(rnl_endpoint *ep);
RNL_PUBLIC int rnl_notify_unblock(rnl_endpoint *ep);
/* Waits until notifications have run, at most timeout_ns (negative: no limit). Returns how many ran, at least 1;
 * RNL_TIMED_OUT; or an error of rnl_wait. Handlers of messages may run, too. */
RNL_PUBLIC RNL_CHECK int64_t rnl_notify_wait(rnl_endpoint *ep, int64_t timeout_ns);

/* ---- short puts and atomics, inlined ---- */

/* What the functions below read of an import; everything else of it is the library's. */
struct rnl_import_head {
    unsigned char *at;   /* where the window is mapped */
    size_t direct_words; /* offsets below this one can be put at, 8 bytes each; 0 = not direct, or ended */
};

/* Puts as rnl_put_any does; 1, 2, 4 or 8 aligned bytes into a direct window are one store. */
static inline RNL_CHECK int rnl_put(rnl_import *m, size_t offset, const void *from, size_t n, unsigned flags)
{
    const struct rnl_import_head *h = (const struct rnl_import_head *)(const void *)m;
    uint64_t word;
    if (n == 8 && offset < __atomic_load_n(&h->direct_words, __ATOMIC_RELAXED) && offset % 8 == 0 && flags == 0) {
        memcpy(&word, from, 8);
        __atomic_store_n((uint64_t *)(void *)(h->at + offset), word,
                         __ATOMIC_RELEASE); /* pairs with the owner's load */
        return 0;
    }
    return rnl_put_any(m, offset, from, n, flags);
}
/* Adds to the word of 8 bytes at offset; *before gets what it was. As rnl_atomic_any. */
static inline RNL_CHECK int rnl_fetch_add(rnl_import *m, size_t offset, uint64_t operand, uint64_t *before)
{
    const struct rnl_import_head *h = (const struct rnl_import_head *)(const void *)m;
    if (offset < __atomic_load_n(&h->direct_words, __ATOMIC_RELAXED) && offset % 8 == 0) {
        *before = __atomic_fetch_add((uint64_t *)(void *)(h->at + offset), operand, __ATOMIC_SEQ_CST);
        return 0;
    }
    return rnl_atomic_any(m, offset, 8, RNL_ATOMIC_ADD, operand, 0, before);
}
/* Stores the operand in the word of 8 bytes at offset if it equals expected; *before gets what it was. */
static inline RNL_CHECK int rnl_compare_swap(rnl_import *m, size_t offset, uint64_t expected, uint64_t operand,
                                             uint64_t *before)
{
    const struct rnl_import_head *h = (const struct rnl_import_head *)(const void *)m;
    if (offset < __atomic_load_n(&h->direct_words, __ATOMIC_RELAXED) && offset % 8 == 0) {
        *before = expected;
        (void)__atomic_compare_exchange_n((uint64_t *)(void *)(h->at + offset), before, operand, 0, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST);
        return 0;
    }
    return rnl_atomic_any(m, offset, 8, RNL_ATOMIC_COMPARE_SWAP, operand, expected, before);
}

#ifdef __cplusplus
}
#endif
#endif
