/* SPDX-License-Identifier: BSD-3-Clause
 *
 * program.h - what the two halves of a host's program share: program.c (its handlers, and when it does what) and send.c
 * (each way to send). */
#ifndef RNL_TESTS_SWARM_PROGRAM_H
#define RNL_TESTS_SWARM_PROGRAM_H

#include "endpoint/endpoint.h"
#include "support/random.h"
#include "swarm/world.h"

enum {
    H_STREAM = 1,
    H_WHOLE,
    H_ANSWER,
    H_GIVEN_UP,
    H_ANEW,      /* what one started anew sends */
    H_HOP,       /* what a handler sent: its own handler sends nothing */
    H_BULK = 20, /* what is posted on the bulk lane; group.c has those before */
    H_BULK_WHOLE,
    H_BULK_CUT, /* what may be withdrawn after it was posted there */
    ANSWER_MAX = 3000,
    PIECE_MAX = 5000,
    TELLING = 8 /* bytes: no two messages begin alike */
};

static inline struct swarm_oracle *oracle(const struct swarm_host *h)
{
    return h->w->oracle;
}

/* Returns what belongs to the lane on which messages for that handler travel. */
static inline struct swarm_oracle *lane_of(const struct swarm_host *h, unsigned handler)
{
    return handler >= H_BULK ? swarm_bulk(oracle(h)) : oracle(h);
}

static inline uint64_t draw(struct swarm_host *h, uint64_t below)
{
    return swarm_draw(h->w->plan.seed, SWARM_STREAM_PROGRAM, h->rank, h->drawn++, below);
}

static inline int lives(const struct swarm_host *h)
{
    return swarm_host_in_job(h);
}

static inline int taken_back(const struct swarm_host *h)
{
    return swarm_has(&h->w->plan, SWARM_READMIT);
}

/* So long that its bytes tell which era it is of. */
static inline uint32_t least(const struct swarm_host *h, uint32_t n)
{
    return taken_back(h) && n < TELLING ? TELLING : n;
}

static inline int gone(int status)
{
    return status == RNL_ERR_PEER_DEAD || status == RNL_ERR_PEER_BROKEN;
}

static inline void must(struct swarm_host *h, int64_t status, const char *what)
{
    if (status < 0)
        swarm_wrong("rank %u, %s: %s", h->rank, what, rnl_last_error()->text);
}

static inline void extracts(struct swarm_host *h)
{
    must(h, rnl_extract(h->ep, draw(h, 4) ? SIZE_MAX : draw(h, 5000)), "extract");
}

/* Sends a message to another host in one of the ways; *left are the bytes that the program may send yet. */
void swarm_sends_to(struct swarm_host *h, unsigned to, size_t *left);
/* Posts one of n bytes. */
void swarm_send_post(struct swarm_host *h, unsigned to, uint32_t n);

#endif
