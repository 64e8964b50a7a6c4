/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_runnel.c - what of this library cannot be bound to the function itself; exports.c does that with the rest. */
#include "sim/cluster/shim.h"

#include "base/error.h"
#include "runnel/adapter.h"
#include "runnel/panda.h"
#include "sim/cluster/process.h"

static int shim_rnl_hub_new(unsigned size, rnl_hub **out)
{
    (void)size, (void)out;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "a hub is for threads, and ranks of the virtual cluster have none: start more "
                                         "ranks (runnel sim -n)");
}

static void shim_rnl_hub_free(rnl_hub *hub)
{
    (void)hub; /* there is none */
}

/* The library's own of these two would link code that starts threads into the simulator. */
static int shim_rnl_open_exchange(rnl_endpoint **out, const struct rnl_options *opt, const struct rnl_exchange *x)
{
    (void)out, (void)opt, (void)x;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "in the virtual cluster processes know each other without an exchange: call "
                                         "rnl_open");
}

static int shim_rnl_progress_start(rnl_endpoint *ep)
{
    (void)ep;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "no thread can serve a virtual process: have it call rnl_extract or rnl_wait");
}

static pan_thread_p shim_pan_thread_create(void (*f)(void *arg), void *arg, size_t stack, int prio, int detach)
{
    (void)f, (void)arg, (void)stack, (void)prio, (void)detach;
    (void)rnl_fail(RNL_ERR_UNSUPPORTED, "a virtual process has one thread: use pan_rpc_start and upcalls");
    return NULL;
}

static void shim_pan_thread_join(pan_thread_p t)
{
    (void)t; /* there is none */
}

static pan_thread_p shim_pan_thread_self(void)
{
    return NULL; /* as in the first thread of any process */
}

/* The only thread of a process ends the process. */
static void shim_pan_thread_exit(void)
{
    vc_process_exit(0);
}

const struct vc_shim vc_shim_runnel[] = {
    VC_SHIM(pan_thread_create), VC_SHIM(pan_thread_exit),   VC_SHIM(pan_thread_join),
    VC_SHIM(pan_thread_self),   VC_SHIM(rnl_open_exchange), VC_SHIM(rnl_progress_start),
    VC_SHIM(rnl_hub_new),       VC_SHIM(rnl_hub_free),      VC_SHIM_END,
};
