/* SPDX-License-Identifier: BSD-3-Clause
 *
 * start.c - Panda's beginning and end. */
#include <stdlib.h>

#include "api/panda/session.h"
#include "runnel/adapter.h"

static void died(struct rnl_ep_watch *watch, uint32_t rank)
{
    struct rnl_panda *p = (struct rnl_panda *)(void *)((char *)watch - offsetof(struct rnl_panda, watch));
    rnl_pan_fail_calls(p, rank, RNL_ERR_PEER_DEAD);
    struct pan_msg *m = p->death && !p->leaving ? rnl_pan_msg_new(p) : NULL;
    if (!m)
        return;
    m->kind = RNL_PAN_OF_DEATH;
    m->sender = rank;
    rnl_pan_upcall(p, m);
}

int pan_init(int *argc, char **argv)
{
    rnl_endpoint *ep;
    (void)argc, (void)argv;
    if (rnl_panda_process.session)
        return rnl_fail(RNL_ERR_CONTEXT, "pan_init was called twice");
    struct rnl_panda *p = calloc(1, sizeof *p);
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for Panda");
    const struct rnl_options options = {.size = sizeof options, .handlers = RNL_PAN_PORT + 8};
    int status = rnl_open(&ep, &options);
    if (status < 0) {
        free(p);
        return status;
    }
    status = rnl_iface_counters(&rnl_panda_iface, ep->c, &p->count);
    if (status < 0) {
        (void)!rnl_close(ep);
        free(p);
        return status;
    }
    p->ep = ep;
    p->last = &p->first;
    p->watch.died = died;
    p->watch.next = ep->hooks.watches;
    ep->hooks.watches = &p->watch;
    rnl_panda_process.session = p;
    return 0;
}

int pan_start(void)
{
    struct rnl_panda *p = rnl_pan_enter("pan_start");
    if (!p)
        return rnl_last_error()->status;
    if (p->started) {
        rnl_pan_unlock(p);
        return rnl_fail(RNL_ERR_CONTEXT, "pan_start was called twice");
    }
    const struct rnl_handler request = {
        .stream = rnl_pan_take_request, .ctx = p, .flags = rnl_handler_flags(&rnl_panda_iface)};
    const struct rnl_handler reply = {
        .stream = rnl_pan_take_reply, .ctx = p, .flags = rnl_handler_flags(&rnl_panda_iface)};
    const struct rnl_handler port = {
        .stream = rnl_pan_take_port, .ctx = p, .flags = rnl_handler_flags(&rnl_panda_iface)};
    int status = rnl_stream_register(p->ep, RNL_PAN_REQUEST, &request);
    if (status >= 0)
        status = rnl_stream_register(p->ep, RNL_PAN_REPLY, &reply);
    if (status >= 0)
        status = rnl_stream_register(p->ep, RNL_PAN_PORT, &port);
    if (status >= 0)
        status = rnl_pan_open_group(p);
    p->started = status >= 0;
    rnl_pan_unlock(p);
    return status < 0 ? status : 0;
}

int pan_end(void)
{
    struct rnl_panda *p = rnl_pan_enter("pan_end");
    if (!p)
        return rnl_last_error()->status;
    int status = rnl_pan_may_wait(p, "pan_end");
    rnl_pan_unlock(p);
    if (status < 0)
        return status;
    p->leaving = true;
    if (p->threaded) { /* the other threads have ended */
        p->threaded = false;
        rnl_ep_unguard(p->ep);
    }
    rnl_pan_run_queue(p);
    int left = p->group ? rnl_group_leave(p->group, -1) : 0;
    p->group = NULL;
    rnl_endpoint *ep = p->ep;
    status = rnl_close(ep);
    if (status == RNL_ERR_CONTEXT || status == RNL_ERR_FORKED)
        return status;
    rnl_panda_process.session = NULL;
    rnl_pan_free(p);
    return status < 0 ? status : left;
}
