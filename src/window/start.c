/* SPDX-License-Identifier: BSD-3-Clause
 *
 * start.c - rnl_progress_start: begins the thread that serves windows (stream/serve.c). It is a file of its own so that
 * programs which do not call it link nothing that starts threads. */
#include <pthread.h>
#include <signal.h>

#include "endpoint/endpoint.h"
#include "runnel/window.h"
#include "stream/stream.h"

/* Not inside a call of the endpoint, since calls end as they have begun. */
int rnl_progress_start(rnl_endpoint *ep)
{
    struct rnl_turn *t = &ep->turn;
    sigset_t all, before;
    if (ep->fast.open == RNL_EP_FORKED)
        return rnl_ep_enter_slow(ep);
    if (t->runs)
        return 0;
    int status = rnl_stream_serve_from_now(ep);
    if (status < 0)
        return status;
    sigfillset(&all); /* signals are for threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    t->runs = 1;
    int error = pthread_create(&t->thread, NULL, rnl_stream_serve, ep);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        t->runs = 0;
    return error ? rnl_fail_errno(RNL_ERR_SYSTEM, error, "cannot start the thread that serves windows") : 0;
}
