/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - Panda's multicasts, which all members handle in one order; see panda.h. On FM/MC the cards number and
 * forward them, and FM/MC hands them over in order. Otherwise the sender asks node 0 for a number, hosts forward the
 * message down a tree, and each holds back what comes early (paper 003, 3.1). */
#include "sim/myrinet/systems/panda/panda.h"

enum { SEQUENCER = 0 };

static void operate(struct panda *p, uint32_t operations, const char *what)
{
    myri_task_operate(p->side->task, operations, what);
}

/* Calls the program's handler, for a multicast of this node's own as for any other. */
static void hand_over(struct panda *p, struct panda_message *m)
{
    operate(p, PANDA_CALL, "group");
    operate(p, PANDA_HANDLER, "handler");
    p->handled++;
    if (p->on_multicast)
        p->on_multicast(p, m);
    else
        panda_free(p, m);
}

static void in_turn(struct panda *p)
{
    for (struct panda_message **m = &p->early; *m && !p->side->hw->fault[0];) {
        if ((*m)->number != p->number) {
            m = &(*m)->link;
            continue;
        }
        struct panda_message *is = *m;
        *m = is->link;
        is->link = NULL;
        p->number++;
        hand_over(p, is);
        m = &p->early;
    }
}

void panda_group_take(struct panda *p, struct panda_message *m)
{
    if (m->kind == PANDA_ASK) {
        operate(p, PANDA_CALL, "sequencer");
        myri_host_set_word(p->side->host, p->small, p->given++);
        panda_put(p, m->from, PANDA_NUMBER, m->number, p->small, 4);
        panda_free(p, m);
        return;
    }
    m->from = m->source;
    if (!p->lacks.multicast) {
        hand_over(p, m);
        return;
    }
    operate(p, PANDA_CALL, "hold back");
    m->link = p->early;
    p->early = m;
    in_turn(p);
}

static uint32_t next_number(struct panda *p)
{
    operate(p, PANDA_CALL, "sequencer");
    if (p->side->node == SEQUENCER)
        return p->given++;
    uint32_t ticket = panda_take_ticket(p);
    panda_put(p, SEQUENCER, PANDA_ASK, ticket, p->small, 4);
    struct panda_message *m = panda_use_ticket(p, ticket);
    if (!m)
        return 0;
    uint32_t number = myri_host_word(p->side->host, m->at);
    panda_free(p, m);
    return number;
}

void panda_group_send(struct panda *p, uint32_t at, uint32_t bytes)
{
    operate(p, PANDA_CALL, "group");
    panda_mutex(p);
    uint32_t number = p->lacks.multicast ? next_number(p) : 0;
    panda_put_all(p, number, at, bytes);
    if (p->lacks.multicast) {
        struct panda_message *own = panda_own(p, number, at, bytes);
        int handling = p->handling;
        p->handling = 1;
        if (own)
            panda_group_take(p, own);
        p->handling = handling;
    }
    panda_handle(p);
}
