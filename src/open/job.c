/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job.c - finds the job of this process, and joins it. */
#include "job/job.h"
#include "base/error.h"
#include "job/fds.h"
#include "job/rendezvous.h"
#include "open/open.h"
#include "pmix/pmix.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int rnl_job_apart;

/* Parses RUNNEL_FD. Returns 1 and *bootstrap, the bootstrap socket; 0: there is none, and this process runs alone; or
 * RNL_ERR_JOB. A process that joins changes the value to "DESCRIPTOR,PID", in a PMIx job to "pmix,PID". So programs
 * that it starts, which inherit the variable but not the socket, see that they are no part of the job. */
static int bootstrap_of(const char *text, int *bootstrap)
{
    static const char remedy[] = "start the program with `runnel run`, or unset RUNNEL_FD to run it alone";
    int fd = 0;
    const char *p = text;
    if (!text || (strncmp(text, "pmix,", 5) == 0 && strtol(text + 5, NULL, 10) != getpid()))
        return 0;
    if (strncmp(text, "pmix,", 5) == 0)
        return rnl_fail(RNL_ERR_JOB,
                        "this rank has joined its job before: a job has one endpoint a rank, opened once, by one "
                        "process");
    for (; *p >= '0' && *p <= '9' && fd < 100000000; p++)
        fd = fd * 10 + (*p - '0');
    if (p != text && *p == ',' && strtol(p + 1, NULL, 10) != getpid())
        return 0;
    if (p == text || (*p != '\0' && *p != ','))
        return rnl_fail(RNL_ERR_JOB, "RUNNEL_FD is '%.40s', not the number of a descriptor: %s", text, remedy);
    if (!rnl_seqpacket_is_socket(fd))
        return rnl_fail(RNL_ERR_JOB,
                        "RUNNEL_FD names descriptor %d, which is not a socket to a launcher in this process: %s", fd,
                        remedy);
    *bootstrap = fd;
    return 1;
}

static void joined_as(const char *what)
{
    char text[48];
    snprintf(text, sizeof text, "%s,%d", what, (int)getpid());
    setenv("RUNNEL_FD", text, 1);
}

/* Joins at a rendezvous. Returns 1 and *bootstrap, as bootstrap_of does. The launcher learns from the kernel when this
 * process ends, and ends it with the job. */
static int join(const char *where, int *bootstrap)
{
    struct rnl_joined joined;
    const struct rnl_join_options opt = {.where = where, .wanted = -1};
    const int r = rnl_join(&opt, &joined);
    if (r < 0)
        return r;
    free(joined.environment);
    *bootstrap = joined.bootstrap;
    rnl_job_apart = 1;
    return 1;
}

int rnl_job_env(const struct rnl_options *opt, struct rnl_env **out)
{
    int bootstrap = -1;
    int has_hub = opt && opt->size >= offsetof(struct rnl_options, hub_rank) + sizeof opt->hub_rank;
    if (has_hub && opt->hub)
        return rnl_hub_env(opt->hub, opt->hub_rank, 0, out);
    const char *text = getenv("RUNNEL_FD");
    int r = bootstrap_of(text, &bootstrap);
    const char *where = getenv("RUNNEL_RENDEZVOUS");
    if (r == 0 && where && *where != '\0')
        r = join(where, &bootstrap);
    if (!text && r == 0) { /* else this process belongs to a rank, and is none itself */
        r = rnl_pmix_env(out);
        if (r > 0)
            joined_as("pmix");
        if (r != 0)
            return r < 0 ? r : 0;
    }
    if (r == 0) {
        struct rnl_hub *hub;
        r = rnl_hub_new(1, &hub);
        if (r < 0)
            return r;
        r = rnl_hub_env(hub, 0, 1, out);
        if (r < 0)
            rnl_hub_free(hub);
        return r;
    }
    if (r > 0)
        r = rnl_client_env(bootstrap, out);
    if (r < 0)
        return r;
    /* The bootstrap socket stays open, so that a second open gets its refusal from the agent, but is closed on exec. */
    char number[16];
    snprintf(number, sizeof number, "%d", bootstrap);
    joined_as(number);
    fcntl(bootstrap, F_SETFD, FD_CLOEXEC);
    if (rnl_job_apart) /* this process may outlive its parent: see open.h */
        return 0;
    /* The launcher's PR_SET_PDEATHSIG does not reach a process started by a wrapper, so this process dies with it. */
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        (*out)->ops->close(*out);
        return rnl_fail(RNL_ERR_JOB, "the process that started this rank is gone: start the job again");
    }
    return 0;
}
