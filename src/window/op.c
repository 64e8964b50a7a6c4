/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op.c - what awaits an answer. The answers of a peer come in the order of the questions, so each is for the first of
 * the list; one that is not is of a peer that makes things up, and is dropped. */
#include "window/window_internal.h"

#include <stdlib.h>

void rnl_window_op_add(struct window_peer *p, struct window_op *op)
{
    op->tag = ++p->tags;
    op->state = 1;
    op->next = NULL;
    *p->last = op;
    p->last = &op->next;
}

void rnl_window_op_remove(struct window_peer *p, struct window_op *op)
{
    struct window_op **at = &p->first;
    while (*at && *at != op)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = op->next;
    if (p->last == &op->next)
        p->last = at;
}

struct window_op *rnl_window_op_new(enum window_kind kind)
{
    struct window_op *op = calloc(1, sizeof *op);
    if (!op) {
        (void)rnl_fail(RNL_ERR_NO_MEMORY, "no memory to await the answer of a peer");
        return NULL;
    }
    op->kind = (uint8_t)kind;
    op->is_own = 1;
    return op;
}

static void settle(rnl_token *t, int status)
{
    if (t)
        __atomic_store_n(&t->state, status, __ATOMIC_RELEASE); /* pairs with rnl_token_state's acquire */
}

void rnl_window_op_end(struct window_op *op, int status)
{
    struct window_op *whole = op->whole;
    op->state = status;
    settle(op->token, status);
    if (op->is_own)
        free(op);
    if (!whole)
        return;
    if (status < 0)
        whole->failed = status;
    if (--whole->parts == 0)
        rnl_window_op_end(whole, whole->failed);
}

void rnl_window_ops_fail(struct window_peer *p, int status)
{
    struct window_op *op;
    while ((op = p->first)) {
        rnl_window_op_remove(p, op);
        rnl_window_op_end(op, status);
    }
}

int rnl_window_op_wait(struct rnl_windows *ws, struct window_peer *p, const struct window_op *op, uint64_t deadline_ns)
{
    while (op->state == 1) {
        int status = rnl_window_turn(ws, p->via ? p->via : ws->ep, deadline_ns);
        if (status < 0)
            return status;
    }
    return op->state;
}

struct window_op *rnl_window_op_answered(struct rnl_windows *ws, rnl_stream *s, unsigned peer, enum window_kind kind,
                                         void *head, size_t head_bytes)
{
    struct window_answer a;
    struct window_peer *p = rnl_window_sender(ws, s, peer);
    if (!p || rnl_receive(s, head, head_bytes) < 0)
        return NULL;
    memcpy(&a, head, sizeof a);
    struct window_op *op = p->first;
    if (!op || op->tag != a.tag || op->kind != kind)
        return NULL;
    rnl_window_op_remove(p, op);
    return op;
}
