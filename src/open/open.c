/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open.c - rnl_open: an env is found for this process, and its endpoint, messages and windows are made on that. */
#include "open/open.h"
#include "base/error.h"
#include "job/job.h"
#include "meet/meet.h"
#include "net/fault/fault.h"
#include "net/wire/seal.h"
#include "stream/stream.h"
#include "window/window.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

int (*rnl_open_virtual)(const struct rnl_options *opt, struct rnl_env **out);

/* Faults for datagrams that are opened when the first peer on another host is met. */
struct late_faults {
    struct rnl_env_late late; /* first */
    struct rnl_fault f;
    uint64_t since_ns;
};

static int wrap_late(const struct rnl_env_late *late, struct rnl_transport **t)
{
    const struct late_faults *l = (const struct late_faults *)(const void *)late;
    return rnl_fault_transport_new(*t, &l->f, l->since_ns, t);
}

static int take_faults_late(struct rnl_env *env, const char *text)
{
    struct late_faults *l = malloc(sizeof *l);
    if (!l)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for its %zu bytes", sizeof *l);
    *l = (struct late_faults){.late = {wrap_late}, .since_ns = env->ops->now_ns(env)};
    int status = rnl_fault_parse(text, &l->f);
    if (status < 0)
        free(l);
    else
        env->late = &l->late;
    return status;
}

/* Puts the faults that RNL_FAULT describes on arriving packets, for tests of real programs. The virtual cluster has
 * faults of its own. */
static int take_faults(struct rnl_env *env)
{
    const char *text = getenv("RNL_FAULT");
    char why[sizeof rnl_last_error()->text];
    if (rnl_open_virtual || !text || *text == '\0')
        return 0;
    if (!env->datagrams && !env->meet)
        return rnl_fail(RNL_ERR_ARG,
                        "RNL_FAULT is '%.40s', and there are no packets that this could befall: start the job with "
                        "`runnel run --transport udp`, or on several hosts, or unset it",
                        text);
    int status = env->meet ? take_faults_late(env, text) : rnl_fault_wrap(&env->datagrams, text, env->ops->now_ns(env));
    if (status < 0) {
        snprintf(why, sizeof why, "%s", rnl_last_error()->text);
        (void)rnl_fail(status, "RNL_FAULT: %s", why);
    }
    return status;
}

/* Whether long messages go by several paths at once: RNL_STRIPE is 0 (also if it is empty or not set) or 1. */
static int read_stripe(bool *out)
{
    const char *text = getenv("RNL_STRIPE");
    *out = text && strcmp(text, "1") == 0;
    if (!text || !*text || *out || strcmp(text, "0") == 0)
        return 0;
    return rnl_fail(RNL_ERR_ARG,
                    "RNL_STRIPE is '%.40s': set it to 1, to send long messages by all cards that lead to a "
                    "peer, or to 0 (the default)",
                    text);
}

int rnl_open_with(rnl_endpoint **out, const struct rnl_options *opt, rnl_open_env *find, const void *arg)
{
    struct rnl_env *env;
    uint8_t protect;
    bool stripe = false;
    int status = rnl_ep_check(opt, opt && opt->hub ? rnl_hub_size(opt->hub)
                                                   : 0); /* before joining, which is possible only once */
    if (status == 0)
        status = rnl_protect_read(getenv("RNL_PROTECT"), &protect);
    if (status == 0)
        status = read_stripe(&stripe);
    if (status == 0)
        status = find(opt, arg, &env);
    if (status < 0)
        return status;
    env->protect = protect;
    env->stripe = stripe;
    status = take_faults(env);
    if (status == 0)
        status = rnl_ep_new(env, opt, out);
    if (status < 0) {
        env->ops->close(env);
        return status;
    }
    rnl_stream_attach(*out);
    rnl_window_attach(*out);
    env->open = rnl_open;
    env->endpoint = *out;
    return 0;
}

static int find_env(const struct rnl_options *opt, const void *arg, struct rnl_env **out)
{
    const bool is_alone = opt && opt->flags & RNL_ALONE;
    (void)arg;
    if (rnl_open_virtual)
        return rnl_open_virtual(opt, out);
    return is_alone ? rnl_meet_env(opt, out) : rnl_job_env(opt, out);
}

int rnl_open(rnl_endpoint **out, const struct rnl_options *opt)
{
    return rnl_open_with(out, opt, find_env, NULL);
}
