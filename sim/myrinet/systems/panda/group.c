/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - Panda's multicasts, which all members handle in one order; see panda.h. On FM/MC the cards number and
 * forward them, and FM/MC hands them over in order. Over Ethernet the sender sends its message to node 0, which gives
 * it a number and broadcasts it, and waits until it has come back (Kaashoek's scheme for buses, which 003, 3.1, names).
 * Otherwise the sender asks node 0 for a number, and hosts forward the message down a tree. Either way each member
 * holds back what comes early. */
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
    if (m->from == p->side->node && p->fm->broadcast)
        panda_signal(p, &p->came_back);
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
    if (m->kind == PANDA_ORDER) {
        operate(p, PANDA_CALL, "sequencer");
        m->kind = PANDA_MULTICAST;
        m->number = p->given++;
        panda_put_all(p, m->source, m->number, m->at, m->bytes);
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
    if (p->fm->broadcast && p->side->node != SEQUENCER) {
        p->came_back = 0;
        panda_put(p, SEQUENCER, PANDA_ORDER, 0, at, bytes);
        (void)panda_wait(p, &p->came_back, RNL_SIM_NEVER);
        return;
    }
    uint32_t number = p->lacks.multicast ? next_number(p) : 0;
    panda_put_all(p, p->side->node, number, at, bytes);
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
