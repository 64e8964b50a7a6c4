/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world.h - one run: virtual hosts on a virtual network, on each of which a program uses the library. host.c: what the
 * library is told of the world, and the life of a host; program.c: what programs do; run.c: what befalls them. */
#ifndef RNL_TESTS_SWARM_WORLD_H
#define RNL_TESTS_SWARM_WORLD_H

#include "base/bell.h"
#include "base/env.h"
#include "runnel/runnel.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/engine/coro.h"
#include "swarm/oracle.h"
#include "swarm/plan.h"

enum { SWARM_KEPT_MAX = 8, SWARM_NOTE_MESSAGE = RNL_SIM_NOTE_FIRST + 64, SWARM_NOTE_EVENT };

struct swarm_life {     /* of a process: its env outlives it */
    struct rnl_env env; /* first */
    struct swarm_host *host;
    unsigned number;
    uint64_t drawn;
    _Atomic uint32_t news; /* of one that the job has not taken back */
    struct rnl_bell bell;
};
struct swarm_kept {
    rnl_kept *kept;
    struct swarm_letter letter;
    unsigned from;
    size_t at;
};
struct swarm_host {
    struct swarm_world *w;
    unsigned rank;
    struct vc_host clock;
    struct rnl_sim_coro coro;
    struct rnl_sim_coro_ticket ticket;
    const _Atomic uint32_t *sleeps_on; /* NULL: awake */
    uint64_t debt_ns;                  /* for what it has done since it ran last */
    struct swarm_life *life[SWARM_LIVES], *now;
    rnl_endpoint *ep;
    uint8_t ended, closed; /* the program has; its endpoint is */
    uint8_t known_dead;    /* to the job */
    uint64_t wave;         /* of closing: the last one that it has reported */
    /* of the program */
    uint64_t drawn, drawn_bulk, asked, answered, handled;
    uint64_t posts_ended;   /* of those that the program may withdraw */
    uint64_t taken_back;    /* how often it has taken somebody back */
    uint64_t first_ns;      /* when it sent its first datagram; 0 = has not */
    unsigned sending;       /* 1 + who a message goes to in a call that is going on */
    uint8_t away;           /* out of reach */
    uint8_t lost_addresses; /* bits: those that are dead for ever */
    struct swarm_kept kept[SWARM_KEPT_MAX];
    unsigned keeps;
    struct swarm_member *member; /* GROUP, of the first life */
    struct swarm_slot {
        struct swarm_host *host;
        unsigned handler;
    } slot[24];
};
struct vc_net;
struct swarm_member;
struct swarm_world {
    struct swarm_plan plan;
    struct rnl_sim *sim;
    struct vc_net *net;
    struct vc_agent *agent;
    struct swarm_oracle *oracle;
    struct swarm_host *host;
    unsigned running, closing; /* programs that have not ended; ... of them closed */
    uint8_t closed;            /* somebody has left: from then on nobody's end is news */
    uint64_t wave;             /* ... after this one, which was the last */
    struct rnl_sim_event event[SWARM_EVENTS_MAX], look;
    unsigned char *stacks;
    struct swarm_tap *tap;
    struct swarm_picker *picker; /* all that there are */
    uint64_t picked, deaths, first_death_ns;
    uint64_t copies; /* datagrams that are to be said again */
    uint8_t replays; /* one is, now: not by its sender */
};

/* host.c */
enum { SWARM_STACK = 256 << 10 };
void swarm_host_new(struct swarm_world *w, unsigned rank);
/* The next life begins now. 1; 0: the job does not take it back any more. */
int swarm_host_start(struct swarm_host *h);
/* The life that is now, or was last. */
unsigned swarm_host_life(const struct swarm_host *h);
/* The job knows the process that is there now. */
int swarm_host_in_job(const struct swarm_host *h);
/* The process ends where it stands, as by kill -9. */
void swarm_host_kill(struct swarm_host *h);
void swarm_host_stall(struct swarm_host *h, uint64_t ns);
/* Something that a sleeper waits for has happened. */
void swarm_host_ring(struct swarm_host *h);
/* Joins the job and opens the endpoint, of the life that is now. */
void swarm_host_open(struct swarm_host *h);
/* Of the program: it does not call for so long. */
void swarm_host_away(struct swarm_host *h, uint64_t ns);
/* ... the endpoint is closed and freed. */
void swarm_host_closed(struct swarm_host *h);
void swarm_host_free(struct swarm_host *h);

/* program.c */
void swarm_program(struct swarm_host *h);

/* group.c: with GROUP each program opens a group, some later than others, now and then sends to it, and leaves it. */
void swarm_group_begins(struct swarm_host *h);
/* i: how many messages of its own the program has sent. */
void swarm_group_goes_on(struct swarm_host *h, unsigned i);
void swarm_group_leaves(struct swarm_host *h);
/* All is over: those who stayed in it to their end have delivered the same. */
void swarm_group_settle(struct swarm_world *w);

/* run.c */
struct swarm_result {
    uint64_t hash, ns, packets, messages;
    uint64_t deaths, first_death_ns; /* of which programs were told */
    uint64_t picked;                 /* datagrams that were counted */
    uint64_t first_ns, last_ns;      /* when the first host began to send, and the last one */
    char why[600];
};
void swarm_run(const struct swarm_plan *plan, struct swarm_result *result);
/* check.c: what the options of an endpoint do not reach: protection, limits of keys, where counters begin. */
void swarm_adjust(struct swarm_host *h);
/* Invariants inside the library, of one host and of pairs of them. */
void swarm_check_host(struct swarm_host *h);
void swarm_check_pairs(struct swarm_world *w);
/* tap.c: what is on the wires. No number is used twice with the same key, and no more packets are taken in than came.
 */
void swarm_tap_new(struct swarm_world *w);
void swarm_tap_free(struct swarm_world *w);
/* An endpoint has taken in so many packets. */
void swarm_tap_taken(struct swarm_host *h, uint64_t packets);

/* pick.c: a socket over another one, where datagrams are counted and picked out. */
struct rnl_socket;
struct rnl_socket *swarm_pick_over(struct swarm_host *h, struct rnl_socket *under);
void swarm_pick_free(struct swarm_world *w);
/* run.c: the events that wait for a picked packet. */
void swarm_picked(struct swarm_world *w);

/* rarely.c: from now on rare things of the library happen as this plan says. */
void swarm_rarely(const struct swarm_plan *plan);

#endif
