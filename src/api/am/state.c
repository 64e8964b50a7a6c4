/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state.c - AM's state of the process, and how each call begins and fails. It calls nothing of AM. */
#include "api/am/core.h"

#include <stdarg.h>
#include <stdio.h>

struct rnl_am rnl_am;

int rnl_am_fail(int status, const char *sentence, ...)
{
    static const int core[] = {0, RNL_ERR_CLOSED, RNL_ERR_ARG, RNL_ERR_CONTEXT, RNL_NO_ROOM, RNL_BUSY};
    char text[200];
    va_list args;
    va_start(args, sentence);
    vsnprintf(text, sizeof text, sentence, args);
    va_end(args);
    (void)rnl_fail(core[status], "%s", text);
    return status;
}

int rnl_am_status(int status)
{
    if (status == RNL_ERR_FORKED || status == RNL_ERR_CLOSED)
        return AM_ERR_NOT_INIT;
    if (status == RNL_ERR_ARG || status == RNL_ERR_RANK)
        return AM_ERR_BAD_ARG;
    return status < 0 ? AM_ERR_RESOURCE : AM_OK;
}

int rnl_am_in_handler(const char *what)
{
    return rnl_am_fail(
        AM_ERR_RESOURCE,
        "%s is not allowed in a handler: note it, and do it when the handler has returned. A request's may "
        "reply, once; all may look at their token",
        what);
}

int rnl_am_enter_slow(struct rnl_am_port *port)
{
    return rnl_am_status(rnl_ep_enter_slow(port->ep));
}

int rnl_am_enter_forked(struct rnl_am_port *port)
{
    if (port->guarded) /* the next call would otherwise wait for ever */
        pthread_mutex_unlock(&port->ep->lock);
    return rnl_am_enter_slow(port);
}

void rnl_am_wake(struct rnl_am_bundle *b)
{
    if (b->port->guarded)
        rnl_ep_look_again(b->port->ep);
}
