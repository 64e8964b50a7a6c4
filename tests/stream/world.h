/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.h - what the stream model knows: each message that was begun, per pair of ranks in order, and what its handler
 * will do, which depends on the seed and the message only. The handlers check order, bytes and ends themselves; a
 * mistake ends the process with its reason. */
#ifndef RNL_TESTS_STREAM_WORLD_H
#define RNL_TESTS_STREAM_WORLD_H

#include "support/lockstep.h"
#include "support/model.h"

enum { RANKS = 4, LINES = 2 * RANKS, KEPT_MAX = 24 };
enum handler_id { H_STREAM = 1, H_WHOLE, H_PLACE, H_LATE, A_STREAM, A_WHOLE, H_BULK, H_END };

struct message {
    struct message *next; /* of the same pair */
    uint64_t id;
    unsigned src, dst, handler, depth; /* depth: handlers of it may send on so often */
    size_t length, bound, answer;
    int started, handled, aborted;
};

struct reply { /* an answer or a refusal on its way */
    struct reply *next;
    uint64_t id;
    int refused;
    unsigned handler, reason;
    size_t n;
};

struct slot { /* context of one handler of one rank */
    struct world *w;
    unsigned rank, handler;
};

struct keep {
    rnl_kept *kept;
    uint64_t id;
    unsigned peer;
    size_t at, n;
};

struct world {
    struct lockstep l;
    uint64_t seed;
    const struct test_op *ops;
    size_t count;
    struct test_why *why;
    struct slot slot[RANKS][H_END];
    struct message *head[RANKS][LINES], **tail[RANKS][LINES]; /* begun, its handler not started yet */
    struct message *all[RANKS][LINES];                        /* ... the one before head: its handler may still run */
    struct reply *back[RANKS][RANKS], **back_tail[RANKS][RANKS]; /* [asker][replier] */
    rnl_stream *open[RANKS][RANKS];                              /* of the programs */
    struct message *open_message[RANKS][RANKS];
    size_t open_at[RANKS][RANKS];
    unsigned opens[RANKS], posts, posts_done;
    int late_registered[RANKS], late_pending[RANKS][RANKS], closing[RANKS], fd[RANKS];
    struct keep keep[RANKS][KEPT_MAX];
    unsigned keeps[RANKS];
    uint64_t begun, handled, replies, replied, lane0_runs[RANKS];
    int plenty; /* stacks for everybody: programs may wait whatever they hold open */
    size_t whole_max, reserve_max;
    void *garbage; /* list of all that was allocated */
};

/* Ends the process. */
_Noreturn void world_wrong(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define WORLD_MUST(w, x) \
    ((x) ? (void)0 : world_wrong(w, "%s:%d: %s (%s)", __FILE__, __LINE__, #x, rnl_last_error()->text))

void *world_alloc(struct world *w, size_t bytes);
void world_register(struct world *w, unsigned rank, unsigned handler);
/* Notes a message that was begun successfully. */
struct message *world_begun(struct world *w, const struct message *like);
/* Sends bytes [from, to) of a message in pieces. */
void world_pieces(struct world *w, rnl_stream *s, const struct message *m, size_t from, size_t to,
                  struct test_random *r);
/* One whole message without waiting. flags: RNL_NO_WAIT, needless inside handlers. */
void world_send_now(struct world *w, const struct message *m, unsigned flags, struct test_random *r);
/* Gives up a message that was begun. */
void world_abort(struct world *w, rnl_stream *s, struct message *m);
/* At the end: what was given up and seen, and never got to run, is done with. */
void world_settle(struct world *w);
void world_post(struct world *w, const struct message *m, struct test_random *r);
size_t world_size(struct test_random *r, size_t max);
void world_free_kept(struct world *w, unsigned rank, unsigned which);

#endif
