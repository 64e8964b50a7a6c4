/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.h - the one giver of segments and the one watcher of deaths among the ranks of a job on this host. The launcher
 * owns it and calls it from its loop; it never blocks, and whatever a rank sends costs at most that rank.
 *
 * It tells of a death in this order: status page, event into the socket, news word, bell, descriptor. Answers wait
 * behind events, and a rank that does not take its answers in is not listened to, so what is queued for a rank is
 * bounded by the size of the job. */
#ifndef RNL_JOB_AGENT_H
#define RNL_JOB_AGENT_H

#include "job/places.h"
#include "job/proto.h"

#include <stdint.h>
#include <sys/types.h>

struct rnl_agent;

/* What the agents of a job over several hosts tell each other. Of the leader's everybody hears;
 * the others tell the leader. */
enum rnl_word_kind {
    /* to the leader */
    RNL_WORD_JOINED = 1, /* rank */
    RNL_WORD_UNJOINED,   /* rank: its open failed, it may join again */
    RNL_WORD_REPORT,     /* rank, wave, activity */
    RNL_WORD_GONE,       /* rank, why, detail */
    RNL_WORD_STOPPED,    /* rank: it was silent for others, and stands still */
    RNL_WORD_RUNS,       /* rank: no more */
    /* both */
    RNL_WORD_PART, /* rank parts from `other`: why */
    /* from the leader */
    RNL_WORD_DEATH,  /* as GONE */
    RNL_WORD_ASK,    /* wave */
    RNL_WORD_DONE,   /* wave */
    RNL_WORD_GIVE_UP /* rank: nobody else is waited for; if it still stands still, it is dead for all */
};
struct rnl_word {
    uint32_t kind, rank, other;
    int32_t why, detail;
    uint64_t wave, activity;
};

struct rnl_agent_options {
    uint32_t size; /* ranks, 1 .. RNL_JOB_RANKS_MAX */
    int keep_going;
    char host[RNL_JOB_HOST_BYTES];
    unsigned char key[RNL_JOB_KEY_BYTES];
    /* -- with a network: both or none -- */
    const struct rnl_place_rank *places; /* of all ranks */
    const int *sockets;                  /* UDP, one for each rank of this host, the agent's from success on */
    /* -- with several hosts: `tell` is called within the agent's calls, and calls nothing of it. NULL: all ranks are
     * on this host -- */
    void (*tell)(void *arg, const struct rnl_word *);
    void *arg;
    uint32_t first, count;   /* the ranks of this host; 0 of them: this is the leader */
    const uint32_t *host_of; /* or those of which this says `own`, which may lead, too */
    uint32_t own;
    int leads;
};

/* 0, RNL_ERR_NO_MEMORY, RNL_ERR_SYSTEM. */
int rnl_agent_new(const struct rnl_agent_options *opt, struct rnl_agent **out);
void rnl_agent_free(struct rnl_agent *);

/* Readable when rnl_agent_step has something to do. */
int rnl_agent_fd(const struct rnl_agent *);
void rnl_agent_step(struct rnl_agent *, uint64_t now_ns);
/* Step also when this time has come. UINT64_MAX = never. */
uint64_t rnl_agent_deadline_ns(const struct rnl_agent *);

/* Before rank's process starts: the end of the door that it inherits, close-on-exec, the caller's. 0 or RNL_ERR_SYSTEM.
 */
int rnl_agent_door(struct rnl_agent *, uint32_t rank, int *childs_end);
/* The process that was started as `rank`. */
void rnl_agent_started(struct rnl_agent *, uint32_t rank, pid_t pid);
/* That process has ended: by a signal, or (signal 0) with an exit status. */
void rnl_agent_exited(struct rnl_agent *, uint32_t rank, int signal, int status, uint64_t now_ns);

/* Whether rank's process, one of ours, lives and is not stopped: to be asked every few seconds. One that is stopped for
 * long, and was found silent by others, is given up when their close waits for nothing else. */
int rnl_agent_runs(struct rnl_agent *, uint32_t rank, uint64_t now_ns);
/* It is known that this rank lives, runs, and can be reached: its peers here need not take it for dead. */
void rnl_agent_vouch(struct rnl_agent *, uint32_t rank, uint64_t now_ns);

/* How many ranks of this host have a process that can still join, or has joined and is not gone. */
uint32_t rnl_agent_here(const struct rnl_agent *);

/* What another agent said. 0 or RNL_ERR_JOB: an agent of this release does not say that. */
int rnl_agent_word(struct rnl_agent *, const struct rnl_word *, uint64_t now_ns);
/* The leader's: the host of that rank is not heard any more. */
void rnl_agent_lost(struct rnl_agent *, uint32_t rank, uint64_t now_ns);

/* The next death that the agent found by itself: a program below a wrapper ended, a rank left (its process may live on)
 * or broke the protocol, or the
 * system did not let the agent serve it. 1 or 0. `detail` is -1 where nobody could learn the exit status. */
struct rnl_agent_death {
    uint32_t rank;
    int32_t why, detail; /* enum rnl_death_reason */
    int32_t sys_errno;   /* with BROKEN: 0 = the rank's fault, else ours */
};
int rnl_agent_next_death(struct rnl_agent *, struct rnl_agent_death *out);

#endif
