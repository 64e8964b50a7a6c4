/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spmd.c - a worker's start: it joins the job, makes its endpoint, learns the others' and is told who it is. */
#include "api/amudp/amudp_internal.h"

#include "endpoint/endpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct card { /* what each worker tells the others of itself */
    en_t name;
    tag_t tag;
    uint64_t job; /* that of rank 0 is the job's */
};

#define STARTUP "AMUDP_SPMDStartup"

/* The descriptor of the job (RUNNEL_FD), this process's own: "number", or "number,process" once it has joined. */
static bool has_door(void)
{
    const char *text = getenv("RUNNEL_FD"), *comma = text ? strchr(text, ',') : NULL;
    return text && (!comma || strtol(comma + 1, NULL, 10) == getpid());
}

/* Of mpirun or srun, who serve PMIx. What such a rank starts inherits RUNNEL_FD as well, and may be a master. */
static bool has_server(void)
{
#if RNL_HAVE_PMIX
    return !getenv("RUNNEL_FD") && getenv("PMIX_RANK");
#else
    return false;
#endif
}

int AMUDP_SPMDIsWorker(char **argv)
{
    (void)argv;
    return rnl_amudp_spmd.started || has_door() || getenv("RUNNEL_RENDEZVOUS") || has_server();
}

int AMUDP_SPMDNumProcs(void)
{
    if (!rnl_amudp_spmd.started)
        (void)rnl_amudp_fail(AM_ERR_NOT_INIT, __func__, "there is no job: " STARTUP " has not made one");
    return rnl_amudp_spmd.size;
}

int AMUDP_SPMDMyProc(void)
{
    if (!rnl_amudp_spmd.started)
        (void)rnl_amudp_fail(AM_ERR_NOT_INIT, __func__, "there is no job: " STARTUP " has not made one");
    return rnl_amudp_spmd.rank;
}

void AMUDP_SPMDSetProc(int rank)
{
    if (rank < 0 || (uint32_t)rank >= AMUDP_MAX_SPMDPROCS)
        (void)rnl_amudp_fail(AM_ERR_BAD_ARG, __func__, "%d is no rank", rank);
    else if (rnl_amudp_spmd.started)
        (void)rnl_amudp_fail(AM_ERR_RESOURCE, __func__, "the ranks are given: call it before " STARTUP);
    else
        rnl_amudp_spmd.wanted = rank;
}

int AMUDP_SPMDBarrier(void)
{
    if (!rnl_amudp_spmd.started)
        return rnl_amudp_fail(AM_ERR_NOT_INIT, __func__, "there is no job: " STARTUP " has not made one");
    return rnl_amudp_allgather(NULL, NULL, 0);
}

int AMUDP_SPMDAllGather(void *from, void *to, size_t len)
{
    if (!rnl_amudp_spmd.started)
        return rnl_amudp_fail(AM_ERR_NOT_INIT, __func__, "there is no job: " STARTUP " has not made one");
    if (len > 0 && (!from || !to))
        return rnl_amudp_fail(AM_ERR_BAD_ARG, __func__, "there is nothing to gather, or no place for it");
    return rnl_amudp_allgather(from, to, len);
}

static uint64_t draw(void)
{
    struct rnl_env *env = rnl_am_get_rank(rnl_amudp_spmd.bundle->core)->env;
    uint64_t n;
    do /* an unpredictable tag that is neither AM_NONE nor AM_ALL */
        n = env->ops->random(env);
    while (n <= AM_ALL);
    return n;
}

/* Exchanges the names of all workers' endpoints and enters each into this worker's table, at the index of its rank. */
static int introduce(struct amudp_ep *ep, const struct card *mine)
{
    int size = rnl_amudp_spmd.size;
    struct card *all = malloc(sizeof *all * (size_t)size);
    if (!all)
        return rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "no memory for the names of %d workers", size);
    int r = rnl_amudp_allgather(mine, all, sizeof *all);
    if (r == AM_OK && size > (int)ep->entries)
        r = AM_SetNumTranslations(ep, size);
    for (int i = 0; r == AM_OK && i < size; i++)
        r = AM_Map(ep, i, all[i].name, all[i].tag);
    if (r == AM_OK)
        rnl_amudp_spmd.job = all[0].job;
    free(all);
    return r;
}

/* Returns the depth that the master was given, from the environment. It is a hint, as everywhere. */
static int depth_of(void)
{
    const char *text = getenv(RNL_AMUDP_WORKER);
    long depth = text ? strtol(text, NULL, 10) : 0;
    if (depth >= 1 && depth <= AMUDP_MAX_NETWORKDEPTH)
        return (int)depth;
    return (int)rnl_amudp_env_long("NETWORKDEPTH", 1, AMUDP_MAX_NETWORKDEPTH, 128);
}

static int join(eb_t *bundle, ep_t *ep)
{
    struct card mine;
    eb_t eb;
    ep_t mine_ep;
    memset(&mine, 0, sizeof mine);
    int r = AM_Init();
    if (r == AM_OK)
        r = AM_AllocateBundle(AM_SEQ, &eb);
    if (r != AM_OK)
        return r;
    rnl_endpoint *rank = rnl_am_get_rank(eb->core);
    rnl_amudp_spmd.bundle = eb;
    rnl_amudp_spmd.rank = (int)rnl_rank(rank);
    rnl_amudp_spmd.size = (int)rnl_size(rank);
    r = AM_AllocateEndpoint(eb, &mine_ep, &mine.name);
    if (r == AM_OK)
        r = rnl_amudp_tree_new(eb);
    mine.tag = draw();
    mine.job = draw();
    if (r == AM_OK)
        r = AM_SetTag(mine_ep, mine.tag);
    if (r == AM_OK)
        r = introduce(mine_ep, &mine);
    if (r == AM_OK)
        r = AM_SetExpectedResources(mine_ep, rnl_amudp_spmd.size, depth_of());
    rnl_amudp_spmd.ep = mine_ep;
    *bundle = eb;
    *ep = mine_ep;
    return r;
}

static void wait_for_debugger(void)
{
    if (!AMUDP_getenv_prefixed("FREEZE"))
        return;
    fprintf(stderr, "AMUDP: process %d stops for a debugger (AMUDP_FREEZE): kill -CONT %d lets it go on\n",
            (int)getpid(), (int)getpid());
    raise(SIGSTOP);
}

static int start(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn, uint64_t *job, eb_t *bundle,
                 ep_t *ep)
{
    if (rnl_amudp_spmd.started)
        return rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "this process is a worker already");
    if (rnl_amudp_env_long("LINEBUFFERSZ", 0, 1 << 20, 1024) > 0) {
        setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
        setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    }
    if (!AMUDP_SPMDIsWorker(argv ? *argv : NULL))
        return rnl_amudp_master(argc, argv, nproc, depth, spawn);
    if (!bundle || !ep)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, STARTUP, "there is no place for the bundle, or for the endpoint");
    wait_for_debugger();
    AMX_SilentMode = !AMUDP_getenv_prefixed("VERBOSEENV");
    int r = rnl_amudp_save_environment(NULL, 0) == 0
                ? AM_OK
                : rnl_amudp_fail(AM_ERR_RESOURCE, STARTUP, "no memory for a copy of the environment");
    if (r == AM_OK && !has_door() && getenv("RUNNEL_RENDEZVOUS"))
        r = rnl_amudp_join();
    if (r == AM_OK)
        r = join(bundle, ep);
    if (r != AM_OK)
        return r;
    rnl_amudp_spmd.started = 1;
    if (job)
        *job = rnl_amudp_spmd.job;
    return AM_OK;
}

int AMUDP_SPMDStartup(int *argc, char ***argv, int nproc, int depth, amudp_spawnfn_t spawn, uint64_t *job, eb_t *bundle,
                      ep_t *ep)
{
    return rnl_amudp_start_status(start(argc, argv, nproc, depth, spawn, job, bundle, ep));
}

AMUDP_ALSO(AMUDP_SPMDStartup_AMUDP_NDEBUG, AMUDP_SPMDStartup_AMUDP_DEBUG);
