/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window_internal.h - the state of an endpoint's windows, and what the files of this folder call of each other. */
#ifndef RNL_WINDOW_INTERNAL_H
#define RNL_WINDOW_INTERNAL_H

#include "base/hash.h"
#include "runnel/adapter.h"
#include "runnel/window.h"
#include "stream/stream.h"
#include "window/window.h"
#include "window/wire.h"

#include <pthread.h>

struct window_peer;

/* ---- memory of a window ---- */

enum window_memory {
    WINDOW_MADE,    /* of rnl_window_alloc */
    WINDOW_ADOPTED, /* was private memory of the program */
    WINDOW_WRAPPED  /* the program's, as it is */
};
struct window_pages {
    unsigned char *at;
    size_t bytes;
    int file; /* the memory file that is mapped at `at`; -1 = none: carried imports only */
    enum window_memory kind;
};

/* ---- the owner's side ---- */

/* What one importer was granted. LIVE: it may use the window. TOLD: it may not, and has been told; its answer is
 * awaited, and frees this. */
enum window_grant_state { WINDOW_GRANT_LIVE = 1, WINDOW_GRANT_TOLD };
struct window_grant {
    struct rnl_window *window;       /* TOLD: NULL unless the answer is waited for */
    struct window_grant *next, **at; /* list of the window */
    struct window_peer *peer;
    uint32_t index;
    uint16_t generation;
    uint8_t state, direct;
};
struct window_entry {
    struct window_grant *grant; /* NULL = free */
    uint32_t next_free;
    uint16_t generation;
};

struct rnl_window {
    struct rnl_windows *ws;
    struct rnl_window *next, **before; /* list of all of the endpoint */
    struct window_pages pages;
    struct window_grant *grants;
    struct rnl_offer offer; /* as it was made; `who` is NULL or points into `ids` */
    struct rnl_admit who;
    uid_t *ids;
    uint32_t grants_told; /* direct ones whose importer has not answered yet */
    uint8_t is_offered;
    uint8_t may_be_kept; /* another user's process has its file, or one that died without an answer, whose children or
                            friends may have it still */
    UT_hash_handle hh;   /* by offer.id, while it is offered */
};

/* An importer that waits for an id. */
struct window_waiting {
    struct window_waiting *next;
    uint32_t id;
};

/* An importer that is to be answered by the owner, since the function of the program that is asked about it must not
 * run in the thread. */
struct window_late {
    struct window_late *next;
    struct rnl_endpoint *via;
    struct window_peer *peer;
    struct window_import ask;
    rnl_deferred name;
};

struct window_note {
    struct rnl_window *window;
    rnl_notify *notify;
    void *ctx;
    uint32_t rank;
    size_t offset, n;
};
enum { WINDOW_NOTES = 1024, WINDOW_NOTES_SPARE = 64 /* what one look may take in besides */, WINDOW_WAITING = 1024 };

/* ---- the importer's side ---- */

/*   MEETING ----> ASKED <----> WAITING     the peer has no such offer, and says when it has
 *      |            |  \          |
 *      |            v   \         |
 *      +-------> ENDED <-\--------+
 *                   ^     v
 *                   +-- HERE */
enum window_import_state { WINDOW_MEETING = 1, WINDOW_ASKED, WINDOW_WAITING_FOR_OFFER, WINDOW_HERE, WINDOW_ENDED };
struct rnl_import {              /* in memory that reads as zero in a forked child */
    struct rnl_import_head head; /* first */
    struct rnl_windows *ws;
    struct window_peer *peer;          /* NULL: ended with it */
    struct rnl_import *next, **before; /* list of the peer; of the free ones */
    size_t bytes;
    void *mapped; /* direct: the window, or what was put in its place */
    uint32_t id, grant;
    int32_t status; /* ENDED: why */
    uint16_t generation;
    uint8_t state;
    uint8_t waits;      /* the peer is to say when it has such an offer */
    uint8_t is_offered; /* ASKED: the peer has said so since, and the answer on the other lane may be older */
    uint8_t is_left;    /* the program has dropped it, and what the peer granted is still to be given back */
};

/* A grant that was revoked before this side knew of it: replies and requests come on two lanes. */
struct window_early {
    struct window_early *next;
    uint32_t grant;
    uint16_t generation;
};
enum { WINDOW_EARLY = 1024 /* of one peer */ };

/* Something that awaits an answer. */
struct window_op {
    struct window_op *next;
    uint32_t tag;
    uint8_t kind;               /* enum window_kind of the answer */
    uint8_t is_own;             /* freed when it is done; else `state` is looked at by a call */
    int32_t state;              /* 1, then what a token says */
    rnl_token *token;           /* or NULL */
    struct rnl_import *import;  /* IMPORT: whose it is; NULL = dropped meanwhile */
    struct window_grant *grant; /* UNMAPPED */
    unsigned char *to;          /* GOT, CHANGED; or NULL */
    size_t n;
    struct window_op *whole; /* GOT: the call that this is a part of */
    uint32_t parts;          /* of a whole: those that are not here yet */
    int32_t failed;          /* of a whole: why a part was not got, or 0 */
};

/* What was made with a peer. The window endpoints of both sides are a pair (INNER), or the endpoint itself carries what
 * windows say (OWN):
 *
 *   NONE ---> ASKED ----> COMING (we go to it) ----> UP
 *     \         \-------> AWAITED (it comes) -------^
 *      \         \------> the job vouches for it ---/  */
enum window_link { WINDOW_NONE = 0, WINDOW_MET_ASKED, WINDOW_COMING, WINDOW_AWAITED, WINDOW_UP };
struct window_peer {
    uint32_t rank;
    uint8_t link;
    uint8_t refused;          /* something of it had no window to land in; its next QUIET is told */
    uint8_t distance;         /* verdict, as rnl_channel.distance */
    uint8_t heard;            /* the channel's when `distance` was last compared with it */
    uint8_t to_sample;        /* counts down to the next sample, with puts */
    uint8_t doubts;           /* samples in a row that the average had not expected */
    uint8_t notes;            /* the same, of notifications */
    uint8_t is_lost;          /* there was a link, and its peer is gone */
    uint8_t is_apart;         /* it is to be told that its address cannot be reached */
    uint8_t is_unsure;        /* something was carried to it since the last quiet */
    struct rnl_endpoint *via; /* UP; COMING: the window endpoint */
    uint32_t at;              /* its number there */
    uint32_t reserved, port;  /* the number that it has, or is to have, there, if the job vouches for it; 0 = not so */
    uint64_t coming_until_ns; /* COMING: when it is given up, since daemons of other hosts may be gone */
    uint32_t tags;
    unsigned char key[WINDOW_KEY_BYTES], its_key[WINDOW_KEY_BYTES];
    struct window_op *first, **last; /* in order */
    struct rnl_import *imports;
    struct window_early *early; /* revoked before they were known here */
    uint32_t early_count;
    struct window_entry *entry;
    uint32_t entries, free_entry; /* 1 + index; 0 = none */
    struct window_waiting *waiting;
    uint32_t waiting_count;
};

enum window_counter {
    WINDOW_OFFERS,
    WINDOW_IMPORTS,
    WINDOW_PUTS,
    WINDOW_NOTES_RUN,
    WINDOW_REFUSED,
    WINDOW_WAITS_FOR, /* enum window_wait */
    WINDOW_WAITS_AT,
    WINDOW_WAITS_SINCE,
    WINDOW_COUNTERS
};
/* What a call waits for; `runnel info` has words for each (tools/info_process.c). */
enum window_wait {
    WINDOW_WAITS_NOT,
    WINDOW_WAITS_PUT,
    WINDOW_WAITS_GET,
    WINDOW_WAITS_ATOMIC,
    WINDOW_WAITS_QUIET,
    WINDOW_WAITS_IMPORT,
    WINDOW_WAITS_REVOKE
};

struct rnl_windows {
    struct rnl_endpoint *ep, *inner; /* of the program; the window endpoint, or NULL */
    struct window_peer **peer;       /* by rank */
    uint32_t *bound; /* by number on the window endpoint: 1 + rank; 0 = unknown; UINT32_MAX = to be left */
    uint64_t *count; /* counters, by enum window_counter */
    struct rnl_window *all, *offers; /* list; hash by id */
    struct window_note *note;        /* ring of notes_size */
    uint32_t notes_size, notes_first, notes, notes_blocked;
    uint64_t notes_run;
    uint8_t notes_running; /* one runs now */
    struct window_late *put_off;
    struct rnl_import *free_imports;
    void *slabs;              /* list of the memory of imports */
    uint8_t due, imports_due; /* link.c, import.c have something to go on with */
    uint32_t changes;         /* things that a wait is to return for */
    uint32_t empty;           /* looks at the window endpoint in a row that found nothing */
    uint8_t held;             /* a notification waits at the head of a lane, for room */
    uint8_t no_inner;         /* the window endpoint cannot be opened */
    uid_t *uid;               /* of other users, who may come to the window endpoint */
    uint32_t uids;
    struct rnl_windows *next_forked; /* list of all of the process */
};

RNL_INLINE struct window_pages *window_pages_of(struct rnl_window *w)
{
    return &w->pages;
}

/* A wait at the window endpoint looks at the endpoint itself so often: the job, or the peer, may be gone. */
enum { WINDOW_LOOK_NS = 50000000 };

/* ---- state.c ---- */

/* Gives the state, and makes it first if need be. 0 or RNL_ERR_NO_MEMORY. */
int rnl_window_state(struct rnl_endpoint *ep, struct rnl_windows **out);
/* Begin and end a public call. 0, RNL_ERR_FORKED or RNL_ERR_NO_MEMORY. */
int rnl_window_enter(struct rnl_endpoint *ep, struct rnl_windows **out);
void rnl_window_leave(struct rnl_windows *ws);
/* Says that an extract has to look after windows. */
void rnl_window_watch(struct rnl_windows *ws);
/* Whether a call may wait. */
bool rnl_window_may_wait(const struct rnl_windows *ws);
int rnl_window_no_context(void); /* RNL_ERR_CONTEXT */
/* One turn of a wait for `peer`, entered once: 0 = look again; RNL_TIMED_OUT; or an error, RNL_ERR_FORKED among them,
 * after which ws is not to be used. */
int rnl_window_turn(struct rnl_windows *ws, struct rnl_endpoint *via, uint64_t deadline_ns);
uint64_t rnl_window_deadline(const struct rnl_windows *ws, int64_t timeout_ns);
/* Shows in the counters what a call begins to wait for at that rank; rnl_window_waited: it has ended. Of threads that
 * share the endpoint the last one shows. */
void rnl_window_waits(struct rnl_windows *ws, enum window_wait what, uint32_t rank);
RNL_INLINE void rnl_window_waited(struct rnl_windows *ws)
{
    ws->count[WINDOW_WAITS_FOR] = ws->count[WINDOW_WAITS_AT] = ws->count[WINDOW_WAITS_SINCE] = 0;
}

/* ---- carry.c ---- */

int rnl_window_peer(struct rnl_windows *ws, uint32_t rank, struct window_peer **out); /* 0, _RANK, _NO_MEMORY */
/* Returns the record of who sent s, or NULL: it is nobody's yet. */
struct window_peer *rnl_window_sender(struct rnl_windows *ws, rnl_stream *s, unsigned peer);
struct window_peer *rnl_window_bound(const struct rnl_windows *ws, uint32_t at); /* of the window endpoint's peer */
/* Sends a message; in one piece or not at all where the call may not wait. */
int rnl_window_send(struct rnl_windows *ws, struct window_peer *p, enum window_kind kind, const void *head,
                    size_t head_bytes, const void *buf, size_t n, size_t answer);
/* Queues a copy; never waits. */
int rnl_window_post(struct rnl_windows *ws, struct window_peer *p, enum window_kind kind, const void *head,
                    size_t head_bytes, size_t answer);

/* ---- link.c ---- */

/* Makes a link, if there is none. 0 or an error. */
int rnl_window_contact(struct rnl_windows *ws, struct window_peer *p);
void rnl_window_links(struct rnl_windows *ws);                         /* goes on with those that are being made */
bool rnl_window_unlink(struct rnl_windows *ws, struct window_peer *p); /* the peer is gone; false: there was none */
void rnl_window_leave_due(struct rnl_windows *ws, uint32_t at);
void rnl_window_apart(struct rnl_windows *ws, struct window_peer *p); /* the endpoint itself is the link */
rnl_stream_handler rnl_window_on_meet, rnl_window_on_met, rnl_window_on_apart, rnl_window_on_bind;

/* ---- op.c ---- */

void rnl_window_op_add(struct window_peer *p, struct window_op *op);
void rnl_window_op_remove(struct window_peer *p, struct window_op *op);
struct window_op *rnl_window_op_new(enum window_kind kind);
/* The op has ended. It is freed if it is its own. */
void rnl_window_op_end(struct window_op *op, int status);
void rnl_window_ops_fail(struct window_peer *p, int status);
/* Waits until it has ended. Returns its status, or why the wait has failed: it is still in the list then. */
int rnl_window_op_wait(struct rnl_windows *ws, struct window_peer *p, const struct window_op *op, uint64_t deadline_ns);
/* Takes the answer's head from s, and the op that it is for out of the list; NULL = nobody asked. */
struct window_op *rnl_window_op_answered(struct rnl_windows *ws, rnl_stream *s, unsigned peer, enum window_kind kind,
                                         void *head, size_t head_bytes);

/* ---- memory.c ---- */

int rnl_window_pages_new(const struct rnl_windows *ws, size_t bytes, struct window_pages *out);
int rnl_window_pages_adopt(const struct rnl_windows *ws, void *at, size_t bytes, struct window_pages *out);
int rnl_window_pages_move(struct window_pages *); /* to a fresh file; the old one's pages are given back */
void rnl_window_pages_free(struct window_pages *);
int rnl_window_map(int file, size_t bytes, void **at); /* of a peer's window; closes file */
void rnl_window_close(int file);
void rnl_window_unmap(void *at, size_t bytes);
void rnl_window_map_nothing(void *at, size_t bytes); /* in its place */
void rnl_window_fork_add(struct rnl_windows *ws);
void rnl_window_fork_remove(struct rnl_windows *ws);

void rnl_window_fork_lock(void); /* while the list of an endpoint's windows changes */
void rnl_window_fork_unlock(void);

/* ---- offer.c, grant.c ---- */

/* Makes the import of w by p possible, and says how in *out. 0 or a status. */
int rnl_window_grant(struct rnl_windows *ws, struct window_peer *p, struct rnl_window *w, uint32_t tag, uint32_t how,
                     struct window_imported *out);
void rnl_window_grant_free(struct window_grant *g);
void rnl_window_answer_late(struct rnl_windows *ws);
void rnl_window_forget_late(struct rnl_windows *ws);
int rnl_window_admitted(struct rnl_windows *ws, const struct window_peer *p, const struct rnl_window *w);
void rnl_window_tell_waiting(struct rnl_windows *ws, uint32_t id); /* it is offered now */

void rnl_window_free_all(struct rnl_windows *ws);
void rnl_window_grants_free(struct window_peer *p);
/* Finds what a peer names. Returns NULL, and notes it, if it has not been granted. */
struct window_grant *rnl_window_granted(struct window_peer *p, uint32_t index, uint32_t generation);
rnl_stream_handler rnl_window_on_import, rnl_window_on_unask, rnl_window_on_drop, rnl_window_on_unmapped;

/* ---- land.c ---- */

rnl_stream_handler rnl_window_on_put, rnl_window_on_put_notify, rnl_window_on_notify, rnl_window_on_get,
    rnl_window_on_change, rnl_window_on_atomic, rnl_window_on_quiet;
bool rnl_window_in(size_t bytes, uint64_t offset, uint64_t n); /* whether n bytes at offset lie in the window */
/* Stores n bytes, the aligned last 8 of them last. */
void rnl_window_store(unsigned char *at, const void *from, size_t n, unsigned distance);
/* Does an atomic operation. 0 or RNL_ERR_ARG. */
int rnl_window_atomic(unsigned char *at, unsigned bytes, unsigned op, uint64_t operand, uint64_t expected,
                      uint64_t *before);

/* ---- import.c ---- */

void rnl_window_imports_on(struct rnl_windows *ws); /* asks for what is to be asked for */
void rnl_window_imports_lost(struct window_peer *p, int status);
void rnl_window_import_end(struct rnl_import *m, int status);
void rnl_window_imports_free(struct rnl_windows *ws);
int rnl_window_why(const struct rnl_import *m); /* records why it has ended; returns the status */
void rnl_window_early_free(struct window_peer *p);
rnl_stream_handler rnl_window_on_imported, rnl_window_on_offered, rnl_window_on_revoked;

/* ---- put.c ---- */

rnl_stream_handler rnl_window_on_got, rnl_window_on_changed, rnl_window_on_quieted;

/* ---- note.c ---- */

bool rnl_window_notes_full(const struct rnl_windows *ws);
bool rnl_window_notes_due(const struct rnl_windows *ws); /* whether the caller has some to run */
void rnl_window_note(struct rnl_windows *ws, struct window_grant *g, uint64_t offset, uint64_t n);
unsigned rnl_window_notes_run(struct rnl_windows *ws);
void rnl_window_notes_purge(struct rnl_windows *ws, const struct rnl_window *w);

#endif
