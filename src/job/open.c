/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open.c - rnl_open: joins a job, then makes the endpoint on what the job gave. */
#include "job/job.h"
#include "stream/stream.h"

int rnl_open(rnl_endpoint **out, const struct rnl_options *opt)
{
    struct rnl_env *env;
    int status = rnl_ep_check(opt, opt && opt->hub ? rnl_hub_size(opt->hub)
                                                   : 0); /* a mistake must not cost the place in the job */
    if (status == 0)
        status = rnl_job_env(opt, &env);
    if (status < 0)
        return status;
    status = rnl_ep_new(env, opt, out);
    if (status < 0) {
        env->ops->close(env);
        return status;
    }
    rnl_stream_attach(*out);
    return 0;
}
