/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent.h - the agent of one host: it admits ranks, hands out the segments they share, and watches their deaths. The
 * launcher (or a node agent) owns it and calls it from its loop. No call blocks, and a rank that sends wrong bytes
 * harms only itself. membership.h decides who is in the job, who gets which event, and when the job may close; the
 * agent carries these decisions over sockets, process descriptors and memory files.
 *
 * A rank's death is published in this order: status page, event into its peers' sockets, news word, wait descriptor,
 * doorbell.
 * Replies are queued behind events, and a rank with unsent replies is not read from, so what is queued for a rank is
 * bounded by the size of the job. */
#ifndef RNL_JOB_AGENT_H
#define RNL_JOB_AGENT_H

#include "job/membership.h"
#include "job/proto.h"
#include "job/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rnl_agent;

struct rnl_agent_cards { /* the cards of a rank */
    uint32_t count;
    int fd[RNL_JOB_CARDS_MAX *
           RNL_JOB_CARD_FDS]; /* of each its device, registers, line and memory (net/socket/i8255x/grant.h) */
};

struct rnl_agent_options {
    uint32_t size; /* ranks, 1 .. RNL_JOB_RANKS_MAX */
    int keep_going;
    uint32_t silence_ms; /* for ranks that ask for no time of their own (rnl_options); 0 = the default */
    char host[RNL_JOB_HOST_BYTES];
    unsigned char key[RNL_JOB_KEY_BYTES];
    /* -- with a network: both or none -- */
    const struct rnl_rank_location *places; /* the addresses of all ranks */
    const int *sockets; /* one UDP socket for each rank of this host; owned by the agent if rnl_agent_new succeeds */
    const int *rings;   /* or NULL: an AF_XDP socket for each of them, -1 = none, owned by the agent likewise, ... */
    int rings_memory; /* ... and the memory of their queue, which the caller keeps open as long as there is an agent */
    const struct rnl_agent_cards *cards; /* or NULL: what each of them drives; owned by the agent likewise */
    /* -- with several hosts: `publish` sends a message to the other agents. It runs within calls of the agent and must
     * not call it. NULL: all ranks are on this host -- */
    void (*publish)(void *arg, const struct rnl_word *);
    void *arg;
    uint32_t first, count; /* the ranks of this host; count 0: this is the leader, whose host runs no rank */
};

/* Returns 0, RNL_ERR_NO_MEMORY or RNL_ERR_SYSTEM. */
int rnl_agent_new(const struct rnl_agent_options *opt, struct rnl_agent **out);
void rnl_agent_free(struct rnl_agent *);

/* Returns a descriptor that is readable (level-triggered) while rnl_agent_step has something to do; fit for uv_poll. */
int rnl_agent_fd(const struct rnl_agent *);
void rnl_agent_step(struct rnl_agent *, uint64_t now_ns);
/* The time at which rnl_agent_step must be called even without input. Any call can change it. UINT64_MAX = never. */
uint64_t rnl_agent_deadline_ns(const struct rnl_agent *);

/* Makes the bootstrap socket of `rank` before its process starts. *childs_end is the end that the process inherits
 * (RUNNEL_FD) or is sent, if the launcher did not start it; close-on-exec, owned by the caller. 0 or RNL_ERR_SYSTEM. */
int rnl_agent_bootstrap(struct rnl_agent *, uint32_t rank, int *childs_end);
/* Notes that this process was started as `rank`. */
void rnl_agent_started(struct rnl_agent *, uint32_t rank, pid_t pid);
/* Notes that the process of `rank` has ended: by a signal, or (signal 0) with an exit status. */
void rnl_agent_exited(struct rnl_agent *, uint32_t rank, int signal, int status, uint64_t now_ns);

/* Whether `rank`, which has ended, had said that a handler of it overran its stack. It is its word alone. */
bool rnl_agent_overran(const struct rnl_agent *, uint32_t rank, uint32_t *handler, uint32_t *stack_bytes);

/* Reads from /proc whether the process of `rank`, a rank of this host, lives and is not stopped. Meant to be called
 * every few seconds. */
bool rnl_agent_runs(struct rnl_agent *, uint32_t rank, uint64_t now_ns);
/* Whether the last rnl_agent_runs found all threads of `rank`, a rank of this host, stopped by a signal or a debugger;
 * *since_ns is when that was first seen. A stopped rank holds up the job's close until it is continued; the launcher
 * reports it and may end it. Makes no system call. */
bool rnl_agent_stopped(const struct rnl_agent *, uint32_t rank, uint64_t *since_ns);
/* Attests that this rank of another host lives, runs and can be reached, so that its peers here do not hold its silence
 * for death. */
void rnl_agent_attest(struct rnl_agent *, uint32_t rank, uint64_t now_ns);

/* Takes in a message of another agent. RNL_ERR_JOB: an agent of this release does not send that message. */
int rnl_agent_word(struct rnl_agent *, const struct rnl_word *, uint64_t now_ns);
/* Called on the leader: the connection to the host of that rank is lost, so the rank is dead (RNL_DEATH_HOST). */
void rnl_agent_lost(struct rnl_agent *, uint32_t rank, uint64_t now_ns);

/* Returns 1 and the next death that the agent found by itself, or 0. Such a death: a program below a wrapper ended, a
 * rank closed its socket (its process may live on) or broke the protocol, or a system error kept the agent from serving
 * it. `detail` is -1 where nobody could learn the exit status. */
struct rnl_agent_death {
    uint32_t rank;
    int32_t why, detail; /* enum rnl_death_reason */
    int32_t sys_errno;   /* with BROKEN: 0 = the rank broke the protocol, else the agent's system error */
};
bool rnl_agent_next_death(struct rnl_agent *, struct rnl_agent_death *out);

#endif
