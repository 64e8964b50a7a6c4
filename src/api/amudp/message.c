/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message.c - requests, replies, polling, and what happens around a handler: counting and the callbacks. */
#include "api/amudp/amudp_internal.h"

#include <limits.h>

#define WRONG(code, ...) rnl_amudp_fail(code, __func__, __VA_ARGS__)

/* Checks what a message is to carry, and takes its arguments. */
static int take_args(int numargs, va_list args, int32_t out[AMUDP_MAX_SHORT], const void *from, size_t nbytes,
                     const char *function)
{
    if (numargs < 0 || numargs > AMUDP_MAX_SHORT)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, function, "a message has 0 to %d arguments, not %d", AMUDP_MAX_SHORT,
                              numargs);
    if (nbytes > AMUDP_MAX_LONG || (nbytes > 0 && !from))
        return rnl_amudp_fail(AM_ERR_BAD_ARG, function, "a message has 0 to %d bytes from somewhere, not %zu from %p",
                              AMUDP_MAX_LONG, nbytes, from);
    for (int i = 0; i < numargs; i++)
        out[i] = va_arg(args, int);
    return AM_OK;
}

/* With the lock. */
static void count_sent(amudp_stats_t *s, int request, amudp_category_t c, size_t nbytes, int numargs)
{
    uint64_t data = nbytes + 4u * (unsigned)numargs;
    uint64_t total = AMUDP_HEADER_BYTES + nbytes + (4u * (unsigned)numargs + 7) / 8 * 8;
    (*(request ? &s->RequestsSent[c] : &s->RepliesSent[c]))++;
    *(request ? &s->RequestDataBytesSent[c] : &s->ReplyDataBytesSent[c]) += data;
    *(request ? &s->RequestTotalBytesSent[c] : &s->ReplyTotalBytesSent[c]) += total;
    s->TotalBytesSent += total;
}

/* ---- requests ---- */

int rnl_amudp_send(struct amudp_ep *ep, const struct rnl_amudp_request *q, const int32_t *args)
{
    if (ep->latency)
        rnl_amudp_latency_request(ep, q->dest, q->since_ns);
    if (q->category == amudp_Short)
        return rnl_am_request(ep->core, q->dest, q->handler, q->numargs, args);
    if (q->category == amudp_Medium)
        return rnl_am_request_i(ep->core, q->dest, q->handler, q->from, q->nbytes, q->numargs, args);
    return rnl_am_request_xfer(ep->core, q->dest, q->dest_offset, q->handler, q->from, q->nbytes, q->async, q->numargs,
                               args);
}

static int request(struct amudp_ep *ep, amudp_node_t dest, struct rnl_amudp_request *q, va_list list,
                   const char *function)
{
    int32_t args[AMUDP_MAX_SHORT];
    if (!ep)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, function, "there is no endpoint");
    int r = take_args(q->numargs, list, args, q->from, q->nbytes, function);
    if (r != AM_OK)
        return r;
    if (dest > INT_MAX)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, function, "%u is no index of a table", dest);
    q->dest = (int)dest;
    r = RNL_UNLIKELY(ep->fault) ? rnl_amudp_fault_send(ep, q, args) : rnl_amudp_send(ep, q, args);
    rnl_amudp_exit_if_ended();
    if (RNL_UNLIKELY(r != AM_OK))
        return rnl_amudp_result(r, function);
    int held = rnl_am_hold();
    count_sent(&ep->stats, 1, q->category, q->nbytes, q->numargs);
    rnl_am_let_go(held);
    return AM_OK;
}

int AMUDP_RequestVA(ep_t ep, amudp_node_t dest, handler_t handler, int numargs, va_list args)
{
    struct rnl_amudp_request q = {.category = amudp_Short, .handler = handler, .numargs = numargs};
    return request(ep, dest, &q, args, "AM_Request");
}

int AMUDP_RequestIVA(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes, int numargs,
                     va_list args)
{
    struct rnl_amudp_request q = {
        .category = amudp_Medium, .handler = handler, .from = from, .nbytes = nbytes, .numargs = numargs};
    return request(ep, dest, &q, args, "AM_RequestI");
}

int AMUDP_RequestXferVA(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes, uintptr_t dest_offset,
                        int async, int numargs, va_list args)
{
    struct rnl_amudp_request q = {.category = amudp_Long,
                                  .handler = handler,
                                  .from = from,
                                  .nbytes = nbytes,
                                  .dest_offset = dest_offset,
                                  .async = async != 0,
                                  .numargs = numargs};
    return request(ep, dest, &q, args, async ? "AM_RequestXferAsync" : "AM_RequestXfer");
}

int AMUDP_Request(ep_t ep, amudp_node_t dest, handler_t handler, int numargs, ...)
{
    va_list args;
    va_start(args, numargs);
    int r = AMUDP_RequestVA(ep, dest, handler, numargs, args);
    va_end(args);
    return r;
}

int AMUDP_RequestI(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes, int numargs, ...)
{
    va_list args;
    va_start(args, numargs);
    int r = AMUDP_RequestIVA(ep, dest, handler, from, nbytes, numargs, args);
    va_end(args);
    return r;
}

int AMUDP_RequestXfer(ep_t ep, amudp_node_t dest, handler_t handler, void *from, size_t nbytes, uintptr_t dest_offset,
                      int async, int numargs, ...)
{
    va_list args;
    va_start(args, numargs);
    int r = AMUDP_RequestXferVA(ep, dest, handler, from, nbytes, dest_offset, async, numargs, args);
    va_end(args);
    return r;
}

/* ---- replies ---- */

static int reply(void *token, amudp_category_t category, handler_t handler, const void *from, size_t nbytes,
                 uintptr_t dest_offset, int numargs, va_list list, const char *function)
{
    int32_t args[AMUDP_MAX_SHORT];
    rnl_am_ep core;
    int r;
    if (!token)
        return rnl_amudp_fail(AM_ERR_BAD_ARG, function, "there is no token");
    if ((r = take_args(numargs, list, args, from, nbytes, function)) != AM_OK)
        return r;
    if (category == amudp_Short)
        r = rnl_am_reply(token, handler, numargs, args);
    else if (category == amudp_Medium)
        r = rnl_am_reply_i(token, handler, from, nbytes, numargs, args);
    else
        r = rnl_am_reply_xfer(token, dest_offset, handler, from, nbytes, numargs, args);
    if (r != AM_OK)
        return rnl_amudp_result(r, function);
    struct amudp_ep *ep = rnl_am_get_dest_endpoint(token, &core) == AM_OK ? rnl_amudp_endpoint(core) : NULL;
    if (ep)
        count_sent(&ep->stats, 0, category, nbytes, numargs);
    return AM_OK;
}

int AMUDP_ReplyVA(void *token, handler_t handler, int numargs, va_list args)
{
    return reply(token, amudp_Short, handler, NULL, 0, 0, numargs, args, "AM_Reply");
}

int AMUDP_ReplyIVA(void *token, handler_t handler, void *from, size_t nbytes, int numargs, va_list args)
{
    return reply(token, amudp_Medium, handler, from, nbytes, 0, numargs, args, "AM_ReplyI");
}

int AMUDP_ReplyXferVA(void *token, handler_t handler, void *from, size_t nbytes, uintptr_t dest_offset, int numargs,
                      va_list args)
{
    return reply(token, amudp_Long, handler, from, nbytes, dest_offset, numargs, args, "AM_ReplyXfer");
}

int AMUDP_Reply(void *token, handler_t handler, int numargs, ...)
{
    va_list args;
    va_start(args, numargs);
    int r = AMUDP_ReplyVA(token, handler, numargs, args);
    va_end(args);
    return r;
}

int AMUDP_ReplyI(void *token, handler_t handler, void *from, size_t nbytes, int numargs, ...)
{
    va_list args;
    va_start(args, numargs);
    int r = AMUDP_ReplyIVA(token, handler, from, nbytes, numargs, args);
    va_end(args);
    return r;
}

int AMUDP_ReplyXfer(void *token, handler_t handler, void *from, size_t nbytes, uintptr_t dest_offset, int numargs, ...)
{
    va_list args;
    va_start(args, numargs);
    int r = AMUDP_ReplyXferVA(token, handler, from, nbytes, dest_offset, numargs, args);
    va_end(args);
    return r;
}

/* ---- handlers ---- */

static amudp_category_t category_of(rnl_am_op opcode)
{
    if (opcode == AM_REQUEST_M || opcode == AM_REPLY_M)
        return amudp_Short;
    return opcode == AM_REQUEST_IM || opcode == AM_REPLY_IM ? amudp_Medium : amudp_Long;
}

static bool is_request(rnl_am_op opcode)
{
    return opcode <= AM_REQUEST_XFER_M;
}

/* As AMUDP's: a message that nobody wanted back is the end of the program. */
static void nobody_wanted(int status, op_t opcode, void *token)
{
    static const char *const why[] = {
        "",           "EBADARGS",     "EBADENTRY",   "EBADTAG",      "EBADHANDLER",   "EBADSEGOFF",
        "EBADLENGTH", "EBADENDPOINT", "ECONGESTION", "EUNREACHABLE", "EREPLYREJECTED"};
    struct rnl_am_token_info info = {.handler = 0};
    rnl_am_en to = {.rank = 0};
    /* A reply to a worker that has ended is nobody's loss, and AMUDP never returns one; nor is any message when the job
     * ends. */
    if (status == EUNREACHABLE && (opcode > AM_REQUEST_XFER_M || rnl_amudp_spmd.ends))
        return;
    (void)rnl_am_get_token_info(token, &info);
    (void)rnl_am_get_source_endpoint(token, &to);
    AMX_FatalErr("a %s for handler %u of rank %u came back: %s; set handler 0 to live with that",
                 opcode <= AM_REQUEST_XFER_M ? "request" : "reply", info.handler, to.rank,
                 status > 0 && status <= EREPLYREJECTED ? why[status] : "for no known reason");
}

/* Handler 0 of the core. */
static void returned(int status, rnl_am_op opcode, void *token)
{
    rnl_am_ep core;
    struct amudp_ep *ep = rnl_am_get_dest_endpoint(token, &core) == AM_OK ? rnl_amudp_endpoint(core) : NULL;
    if (!ep)
        return;
    ep->stats.ReturnedMessages++;
    ep->returned(status, opcode, token);
}

static void before(void *arg, void *token, const struct rnl_am_token_info *info, void *buf)
{
    struct amudp_ep *ep = arg;
    amudp_category_t c = category_of(info->opcode);
    int request = is_request(info->opcode);
    if (info->status != 0)
        return;
    (*(request ? &ep->stats.RequestsReceived[c] : &ep->stats.RepliesReceived[c]))++;
    if (!request && ep->latency)
        rnl_amudp_latency_reply(ep, token);
    if (ep->before)
        ep->before(c, request, info->handler, token, buf, info->nbytes, info->numargs,
                   (uint32_t *)(uintptr_t)info->args);
}

static void after(void *arg, void *token, const struct rnl_am_token_info *info, void *buf)
{
    struct amudp_ep *ep = arg;
    (void)token, (void)buf;
    if (info->status == 0 && ep->after)
        ep->after(category_of(info->opcode), is_request(info->opcode));
}

int rnl_amudp_hook(struct amudp_ep *ep)
{
    struct rnl_am_hooks hooks = {.before = before, .after = after, .arg = ep};
    ep->returned = nobody_wanted;
    int r = rnl_am_set_handler(ep->core, 0, (rnl_am_fn)returned);
    return r == AM_OK ? rnl_am_set_hooks(ep->core, &hooks) : r;
}

int AMUDP_SetHandlerCallbacks(ep_t ep, AMUDP_preHandlerCallback_t pre, AMUDP_postHandlerCallback_t post)
{
    if (!ep)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint");
    int held = rnl_am_hold();
    ep->before = pre;
    ep->after = post;
    rnl_am_let_go(held);
    return AM_OK;
}

int _AM_SetHandler(ep_t ep, handler_t handler, amudp_handler_fn_t function)
{
    if (!ep || !function)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, or no function");
    if (handler == 0) {
        int held = rnl_am_hold();
        ep->returned = (void (*)(int, op_t, void *))function;
        rnl_am_let_go(held);
        return AM_OK;
    }
    return rnl_amudp_result(rnl_am_set_handler(ep->core, handler, (rnl_am_fn)function), "AM_SetHandler");
}

int _AM_SetHandlerAny(ep_t ep, handler_t *handler, amudp_handler_fn_t function)
{
    if (!ep || !handler || !function)
        return WRONG(AM_ERR_BAD_ARG, "there is no endpoint, no place for the number, or no function");
    return rnl_amudp_result(rnl_am_set_handler_any(ep->core, handler, (rnl_am_fn)function), "AM_SetHandlerAny");
}

/* ---- tokens ---- */

int AM_GetSourceEndpoint(void *token, en_t *name)
{
    rnl_am_en from;
    const struct amudp_ep *ep;
    int index;
    if (!token || !name)
        return WRONG(AM_ERR_BAD_ARG, "there is no token, or no place for the name");
    int r = rnl_amudp_sender(token, &from, &ep, &index);
    if (r != AM_OK)
        return rnl_amudp_result(r, __func__);
    if (index >= 0) /* with the address that its host has */
        *name = ep->table[index].name;
    else
        *name = rnl_amudp_name(from, ep ? rnl_size(rnl_am_get_rank(ep->bundle->core)) : 1);
    return AM_OK;
}

int AM_GetDestEndpoint(void *token, ep_t *ep)
{
    rnl_am_ep core;
    if (!token || !ep)
        return WRONG(AM_ERR_BAD_ARG, "there is no token, or no place for the endpoint");
    int r = rnl_am_get_dest_endpoint(token, &core);
    if (r != AM_OK)
        return rnl_amudp_result(r, __func__);
    struct amudp_ep *mine = rnl_amudp_endpoint(core);
    if (!mine)
        return WRONG(AM_ERR_RESOURCE, "the endpoint was freed");
    *ep = mine;
    return AM_OK;
}

int AM_GetMsgTag(void *token, tag_t *tag)
{
    if (!token || !tag)
        return WRONG(AM_ERR_BAD_ARG, "there is no token, or no place for the tag");
    return rnl_amudp_result(rnl_am_get_msg_tag(token, tag), __func__);
}

int AMUDP_GetTokenInfo(void *token, handler_t *handler, amudp_category_t *category, int *request)
{
    struct rnl_am_token_info info;
    if (!token)
        return WRONG(AM_ERR_BAD_ARG, "there is no token");
    int r = rnl_am_get_token_info(token, &info);
    if (r != AM_OK)
        return rnl_amudp_result(r, __func__);
    if (handler)
        *handler = info.handler;
    if (category)
        *category = category_of(info.opcode);
    if (request)
        *request = is_request(info.opcode);
    return AM_OK;
}

/* ---- polling ---- */

int AM_Poll(eb_t bundle)
{
    if (!bundle)
        return WRONG(AM_ERR_BAD_ARG, "there is no bundle");
    int r = rnl_am_poll(bundle->core);
    rnl_amudp_exit_if_ended();
    if (RNL_UNLIKELY(r != AM_OK))
        return rnl_amudp_result(r, __func__);
    rnl_amudp_fault_poll();
    rnl_amudp_exit_if_ended(); /* that may have sent, and so polled */
    return AM_OK;
}

int AM_WaitSema(eb_t bundle)
{
    if (!bundle)
        return WRONG(AM_ERR_BAD_ARG, "there is no bundle");
    int r;
    do { /* messages that are held back go out meanwhile */
        r = rnl_am_wait_sema_for(bundle->core, rnl_amudp_fault_poll());
        rnl_amudp_exit_if_ended();
    } while (r == AM_ERR_NOT_SENT);
    if (r == AM_ERR_BAD_ARG)
        return WRONG(AM_ERR_RESOURCE, "no event is in the bundle's mask: AM_SetEventMask(bundle, AM_NOTEMPTY) first");
    return rnl_amudp_result(r, __func__);
}

AMUDP_ALSO(_AM_SetHandler, AMUDP_SetHandler);
AMUDP_ALSO(_AM_SetHandlerAny, AMUDP_SetHandlerAny);
AMUDP_ALSO(AM_WaitSema, AMUDP_WaitSema);
AMUDP_ALSO(AM_GetSourceEndpoint, AMUDP_GetSourceEndpoint);
AMUDP_ALSO(AM_GetDestEndpoint, AMUDP_GetDestEndpoint);
AMUDP_ALSO(AM_GetMsgTag, AMUDP_GetMsgTag);
AMUDP_ALSO(AM_Poll, AMUDP_Poll);
