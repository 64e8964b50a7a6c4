/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cluster.h - a virtual cluster: a whole job in one thread of one process, on one virtual clock. Each rank is a copy of
 * a program with globals, stack and heap of its own; the library beneath it is the real one. All that happens follows
 * from the program, its arguments and the seed.
 *
 * Reading order: image.h (the program), process.h (a copy of it), shim.h (what it may call), host.c (clocks), agent.c
 * (the launcher's part), env.c (what the library is told of the world), alone.c (processes that no launcher started),
 * guard.c (what is refused). */
#ifndef VC_CLUSTER_H
#define VC_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

struct vc_cluster;
struct vc_net;
struct rnl_sim;

enum { VC_RANKS_MAX = 4096 };

struct vc_cluster_options {
    uint32_t ranks;
    uint32_t hosts; /* rank r is on host r * hosts / ranks; 0 = as many as the scenario says, or 1 */
    uint64_t seed;
    uint64_t limit_ns;    /* of virtual time; 0 = 1000 s */
    const char *program;  /* path of a shared object */
    int argc;             /* argv[0] included */
    char *const *argv;    /* copied into each rank */
    uint8_t keep_going;   /* the job goes on when a rank fails */
    uint8_t no_guards;    /* system calls and time-stamp reads of the program's own are not caught */
    uint8_t verbose;      /* tells of crashes and restarts */
    uint64_t spin_calls;  /* calls without waiting after which a rank is ended; 0 = the default */
    uint32_t spin_ms;     /* processor time after which the run is ended; 0 = the default */
    const char *scenario; /* what its file says, NUL-terminated; NULL = nothing happens */
    const char *scenario_name;
    const char *faults; /* of all links: net/fault/fault.h; NULL = none */
    /* What ranks write: stream 1 or 2. NULL: thrown away. Whole lines, unless they are long. */
    void (*output)(void *arg, uint32_t rank, int stream, const char *bytes, size_t n);
    /* What there is to say about a rank or the run: one line. NULL: thrown away. */
    void (*say)(void *arg, const char *line);
    void *arg;
};
struct vc_cluster_result {
    int status;    /* of the job: 0, that of the first failure, 124 = out of time */
    uint64_t hash; /* of all that happened */
    uint64_t events, switches, ns;
};

/* Reads the program and lays out the ranks. 0; RNL_ERR_ARG, _SYSTEM, _NO_MEMORY with a sentence. One cluster at a time
 * in a process. */
int vc_cluster_new(const struct vc_cluster_options *opt, struct vc_cluster **out);
/* Runs the job to its end; once. */
void vc_cluster_run(struct vc_cluster *, struct vc_cluster_result *out);
/* NULL is fine. */
void vc_cluster_free(struct vc_cluster *);
struct vc_net *vc_cluster_net(struct vc_cluster *);

#endif
