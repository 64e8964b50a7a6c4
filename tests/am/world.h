/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.h - ranks of a hub with an AM endpoint each, all driven by one thread: everybody maps everybody (index = rank),
 * all tags are TAG, all have a segment. What handlers see is noted here. */
#ifndef RNL_TESTS_AM_WORLD_H
#define RNL_TESTS_AM_WORLD_H

#include "runnel/am.h"
#include "support/hub.h"
#include "support/random.h"
#include "support/unit.h"
#include "support/wires.h"

enum { RANKS_MAX = 4, SEG = 1 << 20, TAG = 77 };

struct world {
    unsigned ranks;
    struct test_hub h;
    eb_t eb[RANKS_MAX];
    ep_t ep[RANKS_MAX];
    en_t name[RANKS_MAX];
    unsigned char *seg[RANKS_MAX];
};
extern struct world world;

/* What the last handler was given, and how many ran. */
struct noted {
    unsigned count, returned;
    unsigned numargs;
    int32_t args[16];
    size_t nbytes;
    void *buf;
    unsigned char bytes[1 << 17];
    en_t source;
    ep_t dest;
    tag_t tag;
    struct rnl_am_token_info info;
    int status;
    op_t opcode;
};
extern struct noted noted;

void world_open(unsigned ranks, int type);
void world_close(void);
/* Polls all until nothing more comes. */
void settle(void);
/* Notes what the token says. */
void note(void *token);
/* Handler 0 of all: notes. */
void note_returned(int status, op_t opcode, void *token);
/* Fails the test if no message, or another, came back since the last call. */
#define CAME_BACK(why, op)                   \
    do {                                     \
        settle();                            \
        assert_int_equal(noted.returned, 1); \
        assert_int_equal(noted.status, why); \
        assert_int_equal(noted.opcode, op);  \
        noted.returned = 0;                  \
    } while (0)
/* rnl_last_error() is about this. */
#define SAYS(what) assert_non_null(strstr(rnl_last_error()->text, what))

#endif
