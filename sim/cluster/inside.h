/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inside.h - what the parts of the virtual cluster share. */
#ifndef RNL_CLUSTER_INSIDE_H
#define RNL_CLUSTER_INSIDE_H

#include "sim/cluster/agent.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/guest.h"
#include "sim/cluster/host.h"
#include "sim/engine/engine.h"

enum rnl_cluster_note {                                    /* in the trace; entity: a rank */
                        RNL_NOTE_JOB = RNL_SIM_NOTE_FIRST, /* entity: ranks; a: seed, b: hosts */
                        RNL_NOTE_START,                    /* a: life */
                        RNL_NOTE_END,                      /* a: enum rnl_guest_end, b: detail */
                        RNL_NOTE_OUTPUT,                   /* a: stream; bytes */
                        RNL_NOTE_SCENARIO,                 /* a: line */
                        RNL_NOTE_CRASH,                    /* a: steps */
                        RNL_NOTE_STALL,                    /* entity: host; a: ns */
};

enum { RNL_ENTITY_SCENARIO = 0x20000000 }; /* of its events */

struct rnl_cluster {
    struct rnl_cluster_options opt;
    struct rnl_sim *sim;
    struct rnl_image *image;
    struct rnl_vagent *agent;
    struct rnl_vhost *host;
    struct rnl_guest *guest; /* by rank */
    uint64_t slot_bytes;     /* of each */
    struct rnl_scenario *scenario;
    struct rnl_net *net;
    uint32_t living, starting; /* starting: restarts that are to come */
    int status;                /* of the first failure */
    uint8_t failed, over;
    uint64_t switches;
};

void rnl_cluster_say(struct rnl_cluster *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A rank's life is over, and nothing is left of it. */
void rnl_cluster_ended(struct rnl_cluster *, struct rnl_guest *);
/* The scenario's doing: like kill -9. restart_ns: after so much virtual time it starts again; UINT64_MAX = never. */
void rnl_cluster_crash(struct rnl_cluster *, struct rnl_guest *, uint64_t restart_ns);
/* The library asks something of its world. It may end here; the simulator itself, which takes away what is left of a
 * rank, takes no steps. What is left can be taken away when the endpoint is whole: until it is made, and while it is
 * freed, a crash waits for the next step. */
void rnl_cluster_step(struct rnl_guest *);
/* The same where the library holds memory that only its stack knows: a crash waits. */
void rnl_cluster_count_step(struct rnl_guest *);
/* That took so long. A rank that can crash passes the time now, others later. */
void rnl_cluster_use(struct rnl_guest *, uint64_t ns);
/* No program of that host runs for so long. */
void rnl_cluster_stall(struct rnl_cluster *, struct rnl_vhost *, uint64_t ns);

rnl_sim_fn rnl_cluster_restart;

/* env.c: what rnl_open finds instead of a launcher. */
int rnl_venv_open(const struct rnl_options *opt, struct rnl_env **out);
/* Its bell has been rung. */
void rnl_venv_rung(struct rnl_cluster *, uint32_t rank);
/* Its endpoint's descriptor would be readable. */
int rnl_venv_readable(const struct rnl_guest *);
/* Sleeps until it is, or until then on its host's clock; may return earlier. */
void rnl_venv_poll(struct rnl_guest *, uint64_t until_ns);
void rnl_venv_drop(struct rnl_guest *); /* its life has ended before it left the job */

/* guard.c */
int rnl_guards_on(struct rnl_cluster *);
void rnl_guards_off(struct rnl_cluster *);
void rnl_guards_forget(struct rnl_guest *); /* what was made known of its code */
/* Says what the rank that runs has done, where, and who called whom. */
void rnl_guards_report(struct rnl_guest *, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
