/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keeper.h - the agent of a host in a job that has no launcher of ours (job/pmix.h). The first rank of the host leaves
 * it behind, as nobody's child; it lets the others in who show its secret, serves them as a launcher's agent does, and
 * ends with the last of them.
 *
 * On several hosts the keepers look for each other before they let anybody in (job/search.h), and have no pipes to each
 * other: their words travel in datagrams (job/words.h), on the same socket. That of host 0 leads, and stays as long as
 * there is another. One that hears nothing of the leader for 25 s ends, and its ranks lose the job. */
#ifndef RNL_JOB_KEEPER_H
#define RNL_JOB_KEEPER_H

#include "job/here.h"
#include "job/troubles.h"

enum { RNL_KEEPER_SECRET = 16, RNL_KEEPER_NAME = 32, RNL_KEEPER_TROUBLES = 8 };

struct rnl_keeper_where { /* as it travels: where a keeper listens, and what it wants to see */
    unsigned char secret[RNL_KEEPER_SECRET];
    char name[RNL_KEEPER_NAME]; /* of an abstract socket, `bytes` of it */
    uint32_t bytes;
};

struct rnl_keeper {
    uint32_t size; /* ranks of the job */
    struct rnl_keeper_where where;
    int listener;
    /* -- several hosts: hosts > 1; what is pointed to is the caller's -- */
    uint32_t hosts, host;    /* this is `host` */
    const uint32_t *host_of; /* each rank */
    struct rnl_host *at;     /* names and counts; `first` is of no meaning */
    struct rnl_here *here;   /* of each host */
    int *sockets;            /* UDP, one for each rank of this host */
    uint32_t count;
    int probe;
    unsigned char key[RNL_JOB_KEY_BYTES];
};

/* Opens what the others are told of: where it listens, and for `several` hosts the sockets of `count` ranks, with
 * `here` saying so. 0 or -errno; rnl_keeper_close in any case. */
int rnl_keeper_open(struct rnl_keeper *, uint32_t count, int several, struct rnl_here *here);
/* Starts the process. 0 or -errno. */
int rnl_keeper_start(struct rnl_keeper *);
void rnl_keeper_close(struct rnl_keeper *); /* what this process has of it */

/* Of rank: 1 and the door (job/agent.h); 0: this host does not reach others, which is told in t[0] .. t[n - 1], but for
 * the name of this host; RNL_ERR_JOB. Blocks until the hosts have looked for each other. */
int rnl_keeper_enter(const struct rnl_keeper_where *, uint32_t rank, uint32_t hosts, int *door,
                     struct rnl_vain t[RNL_KEEPER_TROUBLES], uint32_t *n);

#endif
