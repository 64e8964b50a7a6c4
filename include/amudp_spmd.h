/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudp_spmd.h - starting a job of equal processes, with the interface of AMUDP 3.21. The process that a user starts is
 * the master: it starts the workers, prints what they print, and ends with their exit status. Here it does so by
 * becoming `runnel run`; a program that `runnel run`, `amudprun` or an mpirun with PMIx started is a worker at once. */
#ifndef AMUDP_SPMD_H
#define AMUDP_SPMD_H

#include <amudp.h>

AMUDP_BEGIN_EXTERNC

#undef AMUDP_SPMDStartup
#define AMUDP_SPMDStartup AMX_CONCAT(AMUDP_SPMDStartup_AMUDP, AMUDP_DEBUG_CONFIG)

/* Starts nproc workers somewhere, each with this argument vector and the variables of extra_env in its environment.
 * Called in the master. Non-zero = done. */
typedef int (*amudp_spawnfn_t)(int nproc, int argc, char **argv, char **extra_env);

/* First of all calls, with what main got. In the master it returns only on errors. nproc 0: argv[1] says how many, and
 * is taken out of argv; spawn NULL: so does a letter after it, else the environment (SPAWNFN). depth: as
 * AM_SetExpectedResources, 0 = the environment's (NETWORKDEPTH) or 128. In a worker these three do not count; it gets a
 * bundle and an endpoint with a tag of its own, whose table has all workers' endpoints, its own included, at their
 * ranks; and *job, if not NULL, a number that is the same in all of them. Set the handlers, then AMUDP_SPMDBarrier,
 * then send. AM_ERR_BAD_ARG, AM_ERR_RESOURCE. */
AMUDP_PUBLIC int AMUDP_SPMDStartup(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn, uint64_t *job,
                                   eb_t *bundle, ep_t *ep);
/* Ends the job, and this process, with this exit code; returns only before AMUDP_SPMDStartup (AM_ERR_NOT_INIT). In a
 * handler, too: that is left by longjmp, so what it holds (a lock that the exit callback wants) it keeps. */
AMUDP_PUBLIC int AMUDP_SPMDExit(int code);
typedef void (*amudp_exitcallback_t)(int);
/* Called in each worker that polls when one ends the job; NULL = nothing. */
AMUDP_PUBLIC int AMUDP_SPMDSetExitCallback(amudp_exitcallback_t callback);
/* What ends the process in the end: _exit, unless it is set to something else. */
extern AMUDP_PUBLIC void (*AMUDP_SPMDkillmyprocess)(int);
/* 1 = this process was started as a worker. argv is not looked at. */
AMUDP_PUBLIC int AMUDP_SPMDIsWorker(char **argv);
/* How many workers there are; -1 before AMUDP_SPMDStartup. */
AMUDP_PUBLIC int AMUDP_SPMDNumProcs(void);
/* Our rank; -1 before AMUDP_SPMDStartup. */
AMUDP_PUBLIC int AMUDP_SPMDMyProc(void);
/* In a worker that a custom spawner started, before AMUDP_SPMDStartup: its rank, 0 to nproc - 1, another in each
 * worker. Comes before the setting WORKER_RANK. */
AMUDP_PUBLIC void AMUDP_SPMDSetProc(int rank);
/* Returns when all workers are in it; polls meanwhile. Goes by a tree: log2(workers) messages for each. */
AMUDP_PUBLIC int AMUDP_SPMDBarrier(void);
/* to gets len bytes of each worker, in the order of their ranks; polls meanwhile. The same number of messages. */
AMUDP_PUBLIC int AMUDP_SPMDAllGather(void *from, void *to, size_t len);
/* A variable of the master's environment as it was when the job began; NULL: it had none. The library's. */
AMUDP_PUBLIC const char *AMUDP_SPMDgetenvMaster(const char *name);
/* The value that GASNET_NAME, AMUDP_NAME or NAME has in the environment, the first that there is; NULL. */
AMUDP_PUBLIC char *AMUDP_getenv_prefixed(const char *name);
/* The first variable of the master's environment whose name begins so, as NAME=VALUE; NULL: there is none. */
AMUDP_PUBLIC const char *AMUDP_check_env_prefix(const char *prefix);

/* For AMUDP_SPMDStartup, and not to be called: on this host; on hosts reached by ssh; by a command that is given. */
AMUDP_PUBLIC int AMUDP_SPMDLocalSpawn(int nproc, int argc, char **argv, char **extra_env);
AMUDP_PUBLIC int AMUDP_SPMDSshSpawn(int nproc, int argc, char **argv, char **extra_env);
AMUDP_PUBLIC int AMUDP_SPMDCustomSpawn(int nproc, int argc, char **argv, char **extra_env);

typedef struct {
    char abbrev;
    const char *desc;
    amudp_spawnfn_t fnptr;
} amudp_spawnfn_desc_t;
/* The three, and a line of zeros. */
extern AMUDP_PUBLIC amudp_spawnfn_desc_t const AMUDP_Spawnfn_Desc[];

#define AMX_SPMDgetenvMaster    AMUDP_SPMDgetenvMaster
#define AMX_SPMDBarrier         AMUDP_SPMDBarrier
#define AMX_SPMDNumProcs        AMUDP_SPMDNumProcs
#define AMX_SPMDMyProc          AMUDP_SPMDMyProc
#define AMX_SPMDExit            AMUDP_SPMDExit
#define AMX_SPMDSetExitCallback AMUDP_SPMDSetExitCallback
#define AMX_SPMDkillmyprocess   AMUDP_SPMDkillmyprocess
#define AMX_SPMDIsWorker        AMUDP_SPMDIsWorker
#define AMX_SPMDAllGather       AMUDP_SPMDAllGather
#define AMX_SPMDStartup(argc, argv, depth, job, bundle, ep) \
    AMUDP_SPMDStartup((argc), (argv), 0, (depth), NULL, (job), (bundle), (ep))

AMUDP_END_EXTERNC

#endif
