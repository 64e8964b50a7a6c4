/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rpc.c - Panda's remote procedure calls and its plain messages; see panda.h. Below is reliable and in order, so a call
 * is a request and a reply (paper 003, 3.1): the caller's ticket goes with both. */
#include "sim/myrinet/systems/panda/panda.h"

static void operate(struct panda *p, uint32_t operations, const char *what)
{
    myri_task_operate(p->side->task, operations, what);
}

uint32_t panda_take_ticket(struct panda *p)
{
    for (uint32_t i = 0; i < PANDA_TICKETS; i++)
        if (!p->ticket[i].used) {
            p->ticket[i].used = 1;
            p->ticket[i].done = 0;
            return i;
        }
    myri_hw_fault(p->side->hw, "node %u: %u calls wait for their replies, and there can be no more", p->side->node,
                  PANDA_TICKETS);
    return 0;
}

struct panda_message *panda_use_ticket(struct panda *p, uint32_t ticket)
{
    (void)panda_wait(p, &p->ticket[ticket].done, RNL_SIM_NEVER);
    p->ticket[ticket].used = 0;
    return p->ticket[ticket].done ? p->ticket[ticket].reply : NULL;
}

struct panda_message *panda_rpc_trans(struct panda *p, uint32_t to, uint32_t at, uint32_t bytes)
{
    operate(p, PANDA_CALL, "rpc");
    panda_mutex(p);
    uint32_t ticket = panda_take_ticket(p);
    panda_put(p, to, PANDA_REQUEST, ticket, at, bytes);
    return panda_use_ticket(p, ticket);
}

void panda_rpc_reply(struct panda *p, const struct panda_message *request, uint32_t at, uint32_t bytes)
{
    operate(p, PANDA_CALL, "rpc");
    panda_put(p, request->from, PANDA_REPLY, request->number, at, bytes);
    panda_handle(p);
}

void panda_send(struct panda *p, uint32_t to, uint32_t at, uint32_t bytes)
{
    operate(p, PANDA_CALL, "send");
    panda_mutex(p);
    panda_put(p, to, PANDA_MESSAGE, 0, at, bytes);
    panda_handle(p);
}

void panda_rpc_take(struct panda *p, struct panda_message *m)
{
    operate(p, PANDA_CALL, "rpc");
    if (m->kind == PANDA_REPLY || m->kind == PANDA_NUMBER) {
        if (m->number >= PANDA_TICKETS || !p->ticket[m->number].used || p->ticket[m->number].done) {
            myri_hw_fault(p->side->hw, "node %u: a reply comes from node %u that nobody waits for", p->side->node,
                          m->from);
            return;
        }
        p->ticket[m->number].reply = m;
        panda_mutex(p);
        panda_signal(p, &p->ticket[m->number].done);
        return;
    }
    panda_handler *program = m->kind == PANDA_REQUEST ? p->on_request : p->on_message;
    operate(p, PANDA_HANDLER, "handler");
    if (program)
        program(p, m);
    else
        myri_hw_fault(p->side->hw, "node %u: a message comes from node %u, for which the program has no handler",
                      p->side->node, m->from);
}
