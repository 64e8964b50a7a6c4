/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open.c - rnl_open: finds the job and joins it, then makes the endpoint on what the job gave. */
#include "base/error.h"
#include "job/fds.h"
#include "job/job.h"
#include "job/pmix.h"
#include "stream/stream.h"
#include "transport/fault/fault.h"
#include "wire/seal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int rnl_job_apart;
int (*rnl_job_virtual)(const struct rnl_options *opt, struct rnl_env **out);

/* What RUNNEL_FD leads to: 1 and *door; 0: nothing, we run alone; RNL_ERR_JOB. Whoever has joined adds its own number
 * there: what it starts inherits the variable and no door, and is no part of the job. */
static int door_of(const char *text, int *door)
{
    static const char remedy[] = "start the program with `runnel run`, or unset RUNNEL_FD to run it alone";
    int fd = 0;
    const char *p = text;
    if (text == NULL)
        return 0;
    for (; *p >= '0' && *p <= '9' && fd < 100000000; p++)
        fd = fd * 10 + (*p - '0');
    if (p != text && *p == ',' && strtol(p + 1, NULL, 10) != getpid())
        return 0;
    if (p == text || (*p != '\0' && *p != ','))
        return rnl_fail(RNL_ERR_JOB, "RUNNEL_FD is '%.40s', not the number of a descriptor: %s", text, remedy);
    int e = rnl_packet_socket_check(fd);
    if (e < 0)
        return rnl_fail_errno(RNL_ERR_JOB, -e,
                              "RUNNEL_FD names descriptor %d, which is not a socket to a launcher in this process: %s",
                              fd, remedy);
    *door = fd;
    return 1;
}

int rnl_job_env(const struct rnl_options *opt, struct rnl_env **out)
{
    int door = -1;
    if (rnl_job_virtual != NULL)
        return rnl_job_virtual(opt, out);
    int has_hub = opt != NULL && opt->size >= offsetof(struct rnl_options, hub_rank) + sizeof opt->hub_rank;
    if (has_hub && opt->hub != NULL)
        return rnl_hub_env(opt->hub, opt->hub_rank, 0, out);
    const char *text = getenv("RUNNEL_FD");
    int pmix = 0, r = door_of(text, &door);
    if (text == NULL && r == 0) /* else this process belongs to a rank, and is none itself */
        r = pmix = rnl_pmix_door(&door);
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
        r = rnl_client_env(door, out);
    if (r < 0 && pmix > 0)
        close(door);
    if (r < 0)
        return r;
    /* The door stays open, so that a second open is told why, but not into what this process executes. */
    char joined[32];
    snprintf(joined, sizeof joined, "%d,%d", door, (int)getpid());
    setenv("RUNNEL_FD", joined, 1);
    fcntl(door, F_SETFD, FD_CLOEXEC);
    if (rnl_job_apart || pmix) /* whoever started us looks after us */
        return 0;
    /* Below a wrapper the launcher's own arrangement does not reach us: die with the wrapper. */
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        (*out)->ops->close(*out);
        return rnl_fail(RNL_ERR_JOB, "what started this rank is gone: start the job again");
    }
    return 0;
}

/* What befalls the packets that come, for programs that are to be seen with it. The virtual cluster has its own. */
static int take_faults(struct rnl_env *env)
{
    const char *text = getenv("RNL_FAULT");
    char why[sizeof rnl_last_error()->text];
    if (rnl_job_virtual != NULL || text == NULL || *text == '\0')
        return 0;
    if (env->datagrams == NULL)
        return rnl_fail(RNL_ERR_ARG,
                        "RNL_FAULT is '%.40s', and there are no packets that this could befall: start the job with "
                        "`runnel run --transport udp`, or on several hosts, or unset it",
                        text);
    int status = rnl_fault_wrap(&env->datagrams, text, env->ops->now_ns(env));
    if (status < 0) {
        snprintf(why, sizeof why, "%s", rnl_last_error()->text);
        (void)rnl_fail(status, "RNL_FAULT: %s", why);
    }
    return status;
}

int rnl_open(rnl_endpoint **out, const struct rnl_options *opt)
{
    struct rnl_env *env;
    uint8_t protect;
    int status = rnl_ep_check(opt, opt && opt->hub ? rnl_hub_size(opt->hub)
                                                   : 0); /* a mistake must not cost the place in the job */
    if (status == 0)
        status = rnl_protect_read(getenv("RNL_PROTECT"), &protect);
    if (status == 0)
        status = rnl_job_env(opt, &env);
    if (status < 0)
        return status;
    env->protect = protect;
    status = take_faults(env);
    if (status == 0)
        status = rnl_ep_new(env, opt, out);
    if (status < 0) {
        env->ops->close(env);
        return status;
    }
    rnl_stream_attach(*out);
    return 0;
}
