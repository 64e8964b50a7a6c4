/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rpc.c - remote procedure calls. A reply is cleared some time after it has been sent, in a later call: Panda 4 says
 * that it has been where nothing of Panda may be called, and release functions may. */
#include "panda2.h"

static pan_rpc_handler_f handler;
static pan_msg_p sent; /* replies to be cleared */

void pan_rpc_init(void) {}

void pan_rpc_end(void)
{
    handler = NULL;
}

void pan_rpc_register(pan_rpc_handler_f f)
{
    handler = f;
}

void pan2_rpc_tidy(void)
{
    pan_msg_p m = __atomic_exchange_n(&sent, NULL, __ATOMIC_ACQUIRE);
    while (m) {
        pan_msg_p next = m->next;
        pan_msg_clear(m);
        m = next;
    }
}

static void was_sent(void *arg)
{
    pan_msg_p m = arg;
    m->next = __atomic_load_n(&sent, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&sent, &m->next, m, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

void pan2_take_request(void *upcall, struct pan2_arrived *in)
{
    if (handler)
        handler(upcall, pan2_msg_take(in));
    pan2_rpc_tidy();
}

void pan_rpc_trans(int dest, pan_msg_p request, pan_msg_p *reply)
{
    const struct pan2_piece piece = {request->data, request->size};
    void *data;
    size_t n;
    pan2_rpc_tidy();
    pan2_call(dest, &piece, &data, &n);
    *reply = pan2_msg_of(data, n);
}

void pan_rpc_reply(pan_upcall_p upcall, pan_msg_p reply)
{
    const struct pan2_piece piece = {reply->data, reply->size};
    pan2_reply(upcall, &piece, was_sent, reply);
}
