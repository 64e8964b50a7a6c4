/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pipe.h - checked packets from the case's sender to its receiver, step by step: what a body written as a story needs.
 * Each call fails the case if a packet is not the one that is due. */
#ifndef RNL_TESTS_CONFORM_PIPE_H
#define RNL_TESTS_CONFORM_PIPE_H

#include "conform/conform.h"
#include "conform/traffic.h"

enum { PIPE_LANES = 3, PIPE_PACKETS = 1 << 15 };

struct pipe_lane {
    struct traffic_flow flow;
    uint64_t sent, polled, released;
    struct rnl_view view[PIPE_PACKETS]; /* by number: sent 0 .. PIPE_PACKETS - 1 */
    uint32_t bytes[PIPE_PACKETS];
};

struct pipe {
    struct conform_case *c;
    struct rnl_transport *tx, *rx;
    uint32_t from, to;
    struct pipe_lane lane[PIPE_LANES];
};

struct pipe *pipe_new(struct conform_case *c);
/* The same, and nobody is connected. */
struct pipe *pipe_new_alone(struct conform_case *c);
void pipe_free(struct pipe *p);
/* One packet: 1, or 0 = no room. */
int pipe_send(struct pipe *p, unsigned lane, uint32_t bytes);
/* Up to n of them, at most 8, in one reserve: how many. */
int pipe_send_some(struct pipe *p, unsigned lane, uint32_t bytes, int n);
/* Until there is no room, and no room again; returns how many went. */
uint64_t pipe_fill(struct pipe *p, unsigned lane, uint32_t bytes);
/* The same, and still when all of it has been polled: what was released before has come back by then. */
void pipe_saturate(struct pipe *p, unsigned lane, uint32_t bytes);
/* Polls what is there, at most n a poll, and holds it. */
void pipe_poll(struct pipe *p, int n);
/* Polls until all that was sent on the lane is here. */
void pipe_poll_all(struct pipe *p, unsigned lane);
/* Looks at every packet that is held on a lane. */
void pipe_check(struct pipe *p, unsigned lane);
/* The next n packets of those that are held, after a look at them. */
void pipe_release(struct pipe *p, unsigned lane, uint64_t n);
/* All of all lanes. */
void pipe_release_all(struct pipe *p);
/* One packet for certain: polls and releases on that lane until there is room for it. */
void pipe_await_room(struct pipe *p, unsigned lane, uint32_t bytes);

#endif
