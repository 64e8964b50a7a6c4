/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_cards.c - the cards of a host that its ranks drive. A node agent takes them before it says HERE, learns their
 * addresses, and hands their descriptors to ranks when these join: the first card to the first rank, and so on, from
 * the beginning again. The n-th card of a host is on wire n. Where the hosts are namespaces of one machine, its cards
 * are dealt to them in turn, and the n-th that one gets is on wire n. What an agent keeps of a card takes the bus from
 * it when the rank has ended: nothing writes into memory afterwards. */
#include "launcher/node_agent_internal.h"

#include "net/socket/i8255x/card.h"

#include <stdlib.h>
#include <string.h>

static_assert((int)RNL_JOB_CARDS_MAX == (int)RNL_I8255X_CARDS && (int)RNL_HOST_CARDS_MAX == (int)RNL_I8255X_CARDS,
              "as many as a socket has");

/* Takes one card and asks for its address. It is silent afterwards, until a rank starts it. */
static int take(const char *slot, enum rnl_i8255x_way way, uint32_t wire, struct rnl_i8255x_grant *g, uint8_t mac[6])
{
    struct rnl_i8255x card;
    int status = rnl_i8255x_take(slot, way, g);
    if (status < 0)
        return status;
    status = rnl_i8255x_open(&card, g);
    if (status == 0) {
        memcpy(mac, card.mac, sizeof card.mac);
        rnl_i8255x_close(&card);
        status = rnl_i8255x_label(g, wire);
    }
    if (status < 0)
        rnl_i8255x_give_back(g);
    return status;
}

void rnl_node_cards_take(struct rnl_node_agent *n)
{
    char slot[RNL_I8255X_CARDS][RNL_I8255X_SLOT_BYTES];
    enum rnl_i8255x_way way[RNL_I8255X_CARDS];
    if (!rnl_node_agent_is(n, RNL_JOB_CARDS) || n->count == 0)
        return;
    const int found = rnl_i8255x_find(slot, way);
    if (found < 0)
        rnl_node_agent_report(n, "does without cards, its datagrams go by the kernel: %s", rnl_last_error()->text);
    const bool shared = rnl_node_agent_is(n, RNL_JOB_ONE_MACHINE);
    const uint32_t first = shared ? n->spec.host : 0, step = shared ? n->spec.hosts : 1;
    uint32_t wire = 1;
    for (uint32_t i = first; found > 0 && i < (uint32_t)found; i += step, wire++)
        if (take(slot[i], way[i], wire, &n->card[wire - 1], n->info[n->spec.host].card[wire - 1]) < 0)
            rnl_node_agent_report(n, "does without the card %s: %s", slot[i], rnl_last_error()->text);
}

struct rnl_agent_cards *rnl_node_cards_give(struct rnl_node_agent *n)
{
    struct rnl_agent_cards *all = NULL;
    for (uint32_t i = 0; i < RNL_JOB_CARDS_MAX; i++) {
        struct rnl_i8255x_grant *g = &n->card[i];
        if (g->wire == 0 || (!all && !(all = calloc(n->count, sizeof *all))))
            continue;
        struct rnl_agent_cards *of = &all[(g->wire - 1) % n->count];
        int *fd = of->fd + (size_t)of->count++ * RNL_I8255X_GRANT_FDS;
        fd[0] = g->device;
        fd[1] = g->registers;
        fd[2] = g->line;
        fd[3] = g->memory;
        g->device = g->registers = g->memory = g->line = -1;
    }
    return all;
}

void rnl_node_cards_end(struct rnl_node_agent *n, uint32_t rank)
{
    for (uint32_t i = 0; i < RNL_JOB_CARDS_MAX; i++)
        if (n->card[i].wire && rnl_node_card_is_of(n->card[i].wire, rank - n->first, n->count)) {
            rnl_i8255x_give_back(&n->card[i]);
            n->card[i].wire = 0;
        }
}
