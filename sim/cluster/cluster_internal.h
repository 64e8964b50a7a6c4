/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster_internal.h - what the parts of the virtual cluster share. */
#ifndef VC_CLUSTER_INTERNAL_H
#define VC_CLUSTER_INTERNAL_H

#include "base/bell.h"
#include "job/membership.h"
#include "net/socket/socket.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/net.h"
#include "sim/cluster/process.h"
#include "sim/engine/engine.h"
#include <stddef.h>

enum vc_cluster_note {                                   /* in the trace; entity: a rank */
                       VC_NOTE_JOB = RNL_SIM_NOTE_FIRST, /* entity: ranks; a: seed, b: hosts */
                       VC_NOTE_START,                    /* a: life */
                       VC_NOTE_END,                      /* a: enum vc_process_end, b: detail */
                       VC_NOTE_OUTPUT,                   /* a: stream; bytes */
                       VC_NOTE_SCENARIO,                 /* a: line */
                       VC_NOTE_CRASH,                    /* a: steps */
                       VC_NOTE_STALL,                    /* entity: host; a: ns */
};

enum { VC_ENTITY_SCENARIO = 0x20000000 }; /* of its events */

struct vc_cluster {
    struct vc_cluster_options opt;
    struct rnl_sim *sim;
    struct vc_image *image;
    struct vc_agent *agent;
    struct vc_host *host;
    struct vc_process *process;         /* by rank */
    void (*reaps)(struct vc_process *); /* cluster.c: takes away what is left of a life that has ended */
    uint64_t slot_bytes;                /* of each */
    struct vc_scenario *scenario;
    struct vc_net *net;
    /* alone.c: NULL while no process has opened an endpoint alone. looks: who sleeps until something comes by a socket
     * is woken if something has; to be called each time that anybody ran. */
    struct vc_meet *meet;
    void (*looks)(struct vc_cluster *);
    struct vc_streams *streams; /* between the daemons; NULL: there is one host */
    uint32_t living, starting;  /* starting: restarts that are to come */
    int status;                 /* of the first failure */
    uint8_t failed, over;
    uint64_t switches;
    uint64_t drawn_keys; /* ordinal of VC_CHANCE_KEYS */
};

/* env.c: what rnl_open finds instead of a launcher. */
int vc_env_open(const struct rnl_options *opt, struct rnl_env **out);
/* Gives *number, a descriptor of the process, if it is -1. Returns it, or RNL_ERR_SYSTEM. */
int vc_process_number(struct vc_process *, int *number);
/* Its bell has been rung. */
void vc_env_rung(struct vc_cluster *, uint32_t rank);
/* Its endpoint's descriptor would be readable. */
bool vc_env_readable(const struct vc_process *);
/* Sleeps until it is, or until then on its host's clock; may return earlier. */
void vc_env_poll(struct vc_process *, uint64_t until_ns);
/* The endpoint of its process; NULL while there is none that is complete. */
struct rnl_endpoint *vc_env_endpoint(const struct vc_process *);
void vc_env_drop(struct vc_process *); /* its life has ended before it left the job */
/* The library asks something of its world. A rank may end here; the simulator itself, which takes away what is left of
 * a rank, takes no steps. What is left can be taken away when the endpoint is whole: until it is made, and while it is
 * freed, a crash waits for the next step. */
void vc_env_step(struct vc_process *);
/* Counts a step where the library holds memory that only its stack knows: a crash waits for the next vc_env_step. */
void vc_env_count_step(struct vc_process *);
/* Charges a rank for what took it so long. A rank that can crash passes the time now, others later. */
void vc_env_use(struct vc_process *, uint64_t ns);

/* guard.c */
int vc_guards_on(struct vc_cluster *);
void vc_guards_off(struct vc_cluster *);
void vc_guards_forget(struct vc_process *); /* what was made known of its code */
/* Says what the rank that runs has done, where, and who called whom. */
void vc_guards_report(struct vc_process *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- host.c: a virtual host's clock, which drifts, and when it stands still ---- */

struct vc_host {
    uint32_t index;
    int32_t drift_ppb;            /* of its clock against virtual time */
    uint64_t offset_ns;           /* what its clock showed at tick 0 */
    uint64_t stalled_until;       /* no program on it runs before this tick */
    uint32_t first_rank, ranks;   /* of its own */
    uint32_t ports;               /* that endpoints alone have had */
    uint64_t late_ns, late_draws; /* sleepers run late by up to so much; so often it was drawn how much */
    uint8_t algorithm;            /* enum rnl_congest_algorithm: of endpoints that are opened there */
};

enum { VC_DRIFT_MAX_PPB = 100000 }; /* 100 ppm, as quartz has it */

/* Drift and offset as the seed has them for host `index`. */
void vc_host_init(struct vc_host *, uint64_t seed, uint32_t index);
/* From this tick on; what it shows does not jump. */
void vc_host_set_drift(struct vc_host *, int32_t ppb, uint64_t tick);
/* No program of that host runs for so long. */
void vc_host_stall(struct vc_cluster *, struct vc_host *, uint64_t ns);
/* Draws by how many ticks a sleeper of the host runs late. */
uint64_t vc_host_late(const struct vc_cluster *, struct vc_host *);
/* What its clock shows at this tick, and the first tick at which it shows at least that: RNL_SIM_NEVER for UINT64_MAX.
 */
uint64_t vc_host_ns(const struct vc_host *, uint64_t tick);
uint64_t vc_host_tick(const struct vc_host *, uint64_t ns);

/* ---- agent.c: the launcher's part: job/membership.h, and memory for doorbells, news words and shared segments ---- */

/* notify(arg, rank): its news word has changed. 0, RNL_ERR_NO_MEMORY. */
int vc_agent_new(uint32_t size, void (*notify)(void *arg, uint32_t rank), void *arg, struct vc_agent **out);
void vc_agent_free(struct vc_agent *);

/* For joining, deaths and the close. */
struct rnl_membership *vc_agent_members(struct vc_agent *);
/* It has ended, or left: of one that never joined its peers hear just that. */
void vc_agent_gone(struct vc_agent *, uint32_t rank, int why, int detail);
struct rnl_bell *vc_agent_bell(struct vc_agent *, uint32_t rank);
const _Atomic uint32_t *vc_agent_news(struct vc_agent *, uint32_t rank);
/* A line of the launcher, for its user. */
void vc_agent_say(struct vc_cluster *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- alone.c: endpoints alone, and the daemons of the virtual hosts that introduce them ---- */

enum {                     /* what a process is charged for, in ns */
       VC_NOW_NS = 20,     /* to look at the clock */
       VC_YIELD_NS = 2000, /* to look in vain and give way. More than wait.c takes for being alone: it soon sleeps */
       VC_WAKE_NS = 5000   /* from waking somebody until the sleeper runs */
};

/* What rnl_open finds with RNL_ALONE. */
int vc_alone_open(struct vc_process *, const struct rnl_options *, struct rnl_env **out);
/* Whether none of its endpoints alone is being made or freed. */
bool vc_alone_is_whole(const struct vc_process *);
void vc_alone_drop(struct vc_process *); /* its life has ended */
/* What wakes the endpoint alone whose descriptor has that number, for windows, wakes all of its process. 0 or
 * RNL_ERR_SYSTEM. */
int vc_alone_watched(struct vc_process *, int number);
bool vc_alone_readable(const struct vc_process *); /* one of those has something */
/* Whether one has; else whoever sleeps now is woken when one has, and *until_ns is the time by which one is due. */
bool vc_alone_watch(struct vc_process *, uint64_t *until_ns);
/* The daemon of that host is killed; the next process that needs one starts another. */
void vc_daemon_kill(struct vc_cluster *, struct vc_host *);
void vc_alone_free(struct vc_cluster *);
/* Numbers for keys and tokens are drawn from the seed from now on, or by the system again. */
void vc_alone_draws(struct vc_cluster *, bool on);

/* ---- socket.c: a rank's socket, whose calls take the rank's time and are steps at which it may crash ---- */

enum {
    VC_PORT_FIRST = 7000,  /* of the first rank of a host */
    VC_PORT_ALONE = 20000, /* of the first endpoint alone of a host, and how many there are */
    VC_PORTS_ALONE = 40000
};

/* *out is set to NULL when it is closed. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int vc_socket_open(struct vc_process *, struct rnl_socket **out);
/* Opens a socket at a port that nobody has had lately; ring(arg): something came while it was armed. */
int vc_socket_open_any(struct vc_process *, void (*ring)(void *arg), void *arg, uint16_t *port,
                       struct rnl_socket **out);
/* Its rank is gone: from now on it takes nothing and brings nothing. Its close is still its owner's. */
void vc_socket_kill(struct rnl_socket *);
/* Where that rank is found. */
struct rnl_socket_addr vc_socket_addr(const struct vc_process *);
/* Where that rank is found by the nth address of its host. */
struct rnl_socket_addr vc_socket_nth_addr(const struct vc_process *, unsigned nth);

/* ---- ifaces.c: swaps the state of interfaces when another process runs; kept: vc_ifaces_bytes of its memory ---- */

size_t vc_ifaces_bytes(void);
/* As a new process finds it. */
void vc_ifaces_reset(unsigned char *kept);
/* The process to which `kept` belongs runs from now on, or does not run any more. */
void vc_ifaces_enter(const unsigned char *kept);
void vc_ifaces_leave(unsigned char *kept);
/* Frees what interfaces keep for the endpoint of a process that was killed, and whose states are in `kept`. */
void vc_ifaces_abandon(unsigned char *kept, struct rnl_endpoint *);

#endif
