/* SPDX-License-Identifier: BSD-3-Clause
 *
 * join.c - a worker that a custom spawner started joins the job of its master (job/rendezvous.h). It has the master's
 * environment then, and its outputs if they are routed. A thread that does nothing else waits for the end of the
 * connection to the agent, which means that the job is over. */
#include "api/amudp/amudp_internal.h"

#include "job/rendezvous.h"
#include "open/open.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WRONG(...) rnl_amudp_fail(AM_ERR_RESOURCE, "AMUDP_SPMDStartup", __VA_ARGS__)

static int lifeline = -1;

static void *watch(void *arg)
{
    struct pollfd p = {.fd = lifeline, .events = 0};
    const struct timespec grace = {.tv_sec = 1};
    (void)arg;
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    kill(getpid(), SIGTERM);
    nanosleep(&grace, NULL);
    kill(getpid(), SIGKILL);
    return NULL;
}

static int start_watch(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
    const int e = pthread_create(&thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e == 0)
        pthread_detach(thread);
    return e;
}

static int failed(void)
{
    static const char unreached[] = "the launcher cannot be reached";
    char why[sizeof rnl_last_error()->text];
    memcpy(why, rnl_last_error()->text, sizeof why);
    if (strncmp(why, unreached, sizeof unreached - 1) == 0)
        return WRONG("the master cannot be reached%s: MASTERIP says which of its addresses to use",
                     why + sizeof unreached - 1);
    return WRONG("%s", why);
}

int rnl_amudp_join(void)
{
    const char *routed = getenv(RNL_AMUDP_ROUTED), *rank = AMUDP_getenv_prefixed("WORKER_RANK");
    struct rnl_join_options opt = {.where = getenv("RUNNEL_RENDEZVOUS"), .wanted = rnl_amudp_spmd.wanted};
    struct rnl_joined joined;
    opt.route = routed && *routed == '1';
    if (opt.wanted < 0 && rank)
        opt.wanted = (int)rnl_amudp_env_long("WORKER_RANK", 0, AMUDP_MAX_SPMDPROCS - 1, -1);
    if (rnl_join(&opt, &joined) < 0)
        return failed();
    lifeline = joined.lifeline;
    rnl_job_apart = 1;
    unsetenv(RNL_AMUDP_ROUTED);
    const int kept = rnl_amudp_save_environment(joined.environment, joined.environment_bytes);
    free(joined.environment);
    if (kept < 0)
        return WRONG("no memory for a copy of the environment");
    const int e = start_watch();
    return e == 0 ? AM_OK : WRONG("cannot start a thread: %s", strerror(e));
}
