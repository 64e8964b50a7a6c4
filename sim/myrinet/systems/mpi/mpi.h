/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.h - the part of MPI that MPI-FM (paper 000, sections 3.2 and 4.2) lays over Fast Messages: communicators, tags,
 * receives that are posted and messages that nobody has asked for yet, matched in order. The names are MPI's.
 *
 * Each operation of the library's own is counted where it is executed (mpi_did), and paid for before it calls FM or
 * returns: what a message costs depends on the queues that it goes through, and not on a number for messages. */
#ifndef MYRI_MPI_H
#define MYRI_MPI_H

#include "sim/myrinet/systems/system.h"

#define MPI_ANY 0xffffffffu /* source, or tag */
enum { MPI_HEADER = 24, MPI_REQUESTS = 64, MPI_POOL_BYTES = 4 << 20, MPI_POOL_MOST = 1024 };

/* What goes before the data: six words (5: at least 24 bytes). */
struct mpi_envelope {
    uint32_t context, source, tag, bytes, number, spare;
};

struct mpi_communicator {
    uint32_t context, size, rank;
    uint32_t node[MYRI_HW_NODES]; /* of each rank */
};

struct mpi_request {
    struct mpi_request *next;
    uint32_t context, source, tag, at, most;
    struct mpi_envelope got;
    int done;
};

/* A message that came before its receive was posted, in MPI's pool. */
struct mpi_unexpected {
    struct mpi_unexpected *next;
    struct mpi_envelope got;
    uint32_t at;
    int whole; /* its bytes are there */
};

struct mpi_state {
    struct myri_side *side;
    struct mpi_communicator world;
    uint32_t operations; /* executed, not yet paid for */
    uint32_t numbers, contexts, slots, kept;
    struct mpi_request request[MPI_REQUESTS], *unused_requests, *posted, **last_posted;
    struct mpi_unexpected pool[MPI_POOL_MOST], *unused, *unexpected, **last_unexpected;
    /* Below: FM 1.1 or FM 2.x. */
    void (*put)(struct mpi_state *, uint32_t node, const struct mpi_envelope *, uint32_t at);
    int (*progress)(struct mpi_state *,
                    uint64_t until); /* takes in what is here, waits for it; 0: nothing by the tick */
    const char *overflow;            /* why it may be that the pool is full */
};

int mpi_init(struct mpi_state *, struct myri_side *);
/* Makes a communicator of the same nodes, whose messages do not match those of the one it is made from. */
void mpi_comm_dup(struct mpi_state *, const struct mpi_communicator *, struct mpi_communicator *out);
void mpi_send(struct mpi_state *, const struct mpi_communicator *, uint32_t to, uint32_t tag, uint32_t at,
              uint32_t bytes);
struct mpi_request *mpi_irecv(struct mpi_state *, const struct mpi_communicator *, uint32_t from, uint32_t tag,
                              uint32_t at, uint32_t most);
/* Whether it has been received by the tick; then the request is gone, and `got` says what came. */
int mpi_wait(struct mpi_state *, struct mpi_request *, struct mpi_envelope *got, uint64_t until);

/* -- for what is below: in a handler -- */

void mpi_did(struct mpi_state *, uint32_t operations);
void mpi_pay(struct mpi_state *);
/* The request that this message is for, taken off its queue; or NULL. */
struct mpi_request *mpi_match(struct mpi_state *, const struct mpi_envelope *);
void mpi_arrived(struct mpi_state *, struct mpi_request *, const struct mpi_envelope *);
/* Where it is kept; NULL with a fault: the pool is full. */
struct mpi_unexpected *mpi_keep(struct mpi_state *, const struct mpi_envelope *);
void mpi_to_words(const struct mpi_envelope *, uint32_t words[6]);
void mpi_from_words(struct mpi_envelope *, const struct myri_host *, uint32_t at);

#endif
