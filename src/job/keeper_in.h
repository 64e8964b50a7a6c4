/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keeper_in.h - what the parts of a keeper share. */
#ifndef RNL_JOB_KEEPER_IN_H
#define RNL_JOB_KEEPER_IN_H

#include "job/agent.h"
#include "job/keeper.h"
#include "job/search.h"
#include "job/words.h"

enum { GUESTS = 16 };

struct keep_host { /* another host, as the keeper of this one sees it */
    struct rnl_words words;
    uint8_t over; /* none of its ranks is left, or it is lost */
};
struct keep {
    struct rnl_keeper *plan;
    struct rnl_agent *agent; /* NULL: who knocks has to wait, or `failed` */
    int listener, guest[GUESTS];
    uint32_t came; /* ranks that have been answered */
    uint8_t failed;
    struct rnl_pack said; /* to those that are not let in */
    /* -- several hosts -- */
    struct rnl_search *search;
    struct keep_host *other;
    uint64_t since_ns, step_ns, alive_at, leave_at;
    uint8_t said_over;
    uint8_t ended; /* the job is lost to the ranks of this host: they see it when this process ends */
    unsigned char had[RNL_JOB_RANKS_MAX]; /* the rank has knocked */
    int waits[RNL_JOB_RANKS_MAX];         /* its connection, while it waits for an answer */
};

/* keeper.c */
void rnl_keep_fail(struct keep *, char how, const void *at, size_t bytes);

/* keeper_hosts.c. `places`: NULL with one host. */
void rnl_keep_make_agent(struct keep *, const struct rnl_place_rank *places);
int rnl_keep_begin(struct keep *, uint64_t now_ns); /* 0, or -1: it cannot look for the others */
void rnl_keep_step(struct keep *, uint64_t now_ns);
uint64_t rnl_keep_deadline_ns(const struct keep *);
int rnl_keep_stays(struct keep *, uint64_t now_ns); /* others need it, though its ranks are gone */

#endif
