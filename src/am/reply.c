/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reply.c - replies, and how a message's head is written. */
#include "stream/ask.h"

#include "am/core.h"

/* ---- heads ---- */

static size_t write_rest(unsigned char *to, const struct rnl_am_message *m)
{
    size_t words = m->op, args = (size_t)m->numargs * 4; /* as many words as the number of the op: see take_rest */
    if (RNL_UNLIKELY(words)) {
        const uint64_t all[3] = {m->source_offset, m->dest_offset, m->nbytes};
        memcpy(to, all + (3 - words), words * 8);
    }
    rnl_copy_short(to + words * 8, m->args, args);
    return words * 8 + args;
}

static struct rnl_am_head head_of(const struct rnl_am_message *m)
{
    unsigned op = m->status ? (unsigned)RNL_AM_OP_BACK : m->op;
    return (struct rnl_am_head){.op_args = (uint8_t)(op | (unsigned)m->numargs << 3),
                                .handler = m->handler,
                                .to = m->to,
                                .from = m->from,
                                .status = m->status,
                                .was = m->status ? m->op : 0,
                                .to_generation = m->to_generation,
                                .from_generation = m->from_generation};
}

size_t rnl_am_write_request(unsigned char *to, const struct rnl_am_message *m)
{
    struct rnl_am_request_head h = {.h = head_of(m), .tag = m->tag};
    memcpy(to, &h, sizeof h);
    return sizeof h + write_rest(to + sizeof h, m);
}

size_t rnl_am_write_answer(unsigned char *to, const struct rnl_am_message *m)
{
    struct rnl_am_head h = head_of(m);
    memcpy(to, &h, sizeof h);
    return sizeof h + write_rest(to + sizeof h, m);
}

/* ---- replies ---- */

static RNL_NOINLINE int no_reply(const struct rnl_am_token *t, int numargs, size_t nbytes)
{
    if (!t || t->self != t)
        return rnl_am_fail(AM_ERR_BAD_ARG, "a token is good in its handler only, until that returns");
    if (!t->s || t->m->status)
        return rnl_am_fail(AM_ERR_RESOURCE, "only a request can be replied to, and this is none");
    if (t->replied)
        return rnl_am_fail(AM_ERR_RESOURCE, "this request has been replied to already: one reply each");
    if (numargs < 0 || numargs > RNL_AM_SHORT)
        return rnl_am_fail(AM_ERR_BAD_ARG, "%d arguments: a message has 0 to %d", numargs, RNL_AM_SHORT);
    return rnl_am_fail(AM_ERR_BAD_ARG, "a reply of %zu bytes: it takes up to %d, and needs them somewhere", nbytes,
                       RNL_AM_MEDIUM);
}

/* m: op, handler and offset are set. */
static int reply(void *token, struct rnl_am_message *m, const void *src, size_t nbytes, int numargs,
                 const int32_t *args)
{
    struct rnl_am_token *t = token;
    unsigned char head[RNL_AM_HEAD_MAX];
    if (RNL_UNLIKELY(!t || t->self != t || !t->s || t->m->status || t->replied || (unsigned)numargs > RNL_AM_SHORT ||
                     nbytes > RNL_AM_MEDIUM || (nbytes && !src)))
        return no_reply(t, numargs, nbytes);
    m->numargs = (uint8_t)numargs;
    m->status = 0;
    m->to = t->m->from;
    m->to_generation = t->m->from_generation;
    m->from = t->ep->number;
    m->from_generation = t->ep->generation;
    m->nbytes = nbytes;
    rnl_copy_short(m->args, args, (size_t)numargs * 4);
    if (RNL_UNLIKELY(!rnl_am_record_room(t->port, t->rank, 1)))
        return rnl_am_fail(AM_ERR_RESOURCE, "no memory to note a reply to rank %u", t->rank);
    size_t n = rnl_am_write_answer(head, m);
    int status = t->s->conn->dying ? RNL_ERR_PEER_DEAD : rnl_stream_reply(t->s, RNL_AM_ID_ANSWER, head, n, src, nbytes);
    if (RNL_UNLIKELY(status < 0)) {
        if (status != RNL_ERR_PEER_DEAD && status != RNL_ERR_PEER_BROKEN && status != RNL_ERR_ABORTED)
            return rnl_am_status(status);
        rnl_am_turn(m);
        rnl_am_unreached(t->port, t->rank, m);
    } else {
        rnl_am_record(t->port, t->rank, 1, m, (uint32_t)-1);
    }
    t->replied = 1;
    return AM_OK;
}

int rnl_am_reply(void *token, handler_t handler, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    m.op = RNL_AM_OP_SHORT;
    m.handler = handler;
    m.dest_offset = m.source_offset = 0;
    return reply(token, &m, NULL, 0, numargs, args);
}

int rnl_am_reply_i(void *token, handler_t handler, const void *src, size_t nbytes, int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    m.op = RNL_AM_OP_MEDIUM;
    m.handler = handler;
    m.dest_offset = m.source_offset = 0;
    return reply(token, &m, src, nbytes, numargs, args);
}

int rnl_am_reply_xfer(void *token, uintptr_t dest_offset, handler_t handler, const void *src, size_t nbytes,
                      int numargs, const int32_t *args)
{
    struct rnl_am_message m;
    m.op = RNL_AM_OP_XFER;
    m.handler = handler;
    m.dest_offset = dest_offset;
    m.source_offset = 0;
    return reply(token, &m, src, nbytes, numargs, args);
}
