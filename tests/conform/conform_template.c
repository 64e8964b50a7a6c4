/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The skeleton of a transport, in the conformance suite: conform_template [FAULTS]. */
#include "conform/conform.h"
#include "conform/faulty.h"
#include "job/job.h"
#include "transport/template/template.h"

static const char *faults;

static int make(struct conform_net *net)
{
    struct rnl_env *env;
    int status = rnl_job_env(NULL, &env); /* a job of one */
    net->state = status < 0 ? NULL : env;
    if (status == 0)
        status = rnl_template_transport_new(env, &net->t[0]);
    return status < 0 ? status : faulty_wrap(net, 1, faults);
}

static void destroy(struct conform_net *net)
{
    struct rnl_env *env = net->state;
    if (net->t[0])
        net->t[0]->ops->close(net->t[0]);
    env->ops->close(env);
}

int main(int argc, char **argv)
{
    faults = argc > 1 ? argv[1] : NULL;
    return conform_run(&(struct conform_fixture){.name = "template", .places = 1, .make = make, .destroy = destroy});
}
