/* SPDX-License-Identifier: BSD-3-Clause
 *
 * link.c - the host's part of the first curve of figure 3a (firmware-link.c): it fills the queue once, and then says by
 * one store for each frame that it is to go again. So all frames of a place are those of the first round; what has
 * come is read from the card without time, only to be checked. */
#include "sim/myrinet/systems/fm1/layout.h"
#include "sim/myrinet/systems/system.h"

#include <stddef.h>

struct link {
    uint32_t card, came_at, posted, known_sent, came, taken, in;
};
#define IN_CARD(l, field) ((l)->card + (uint32_t)offsetof(struct fm1_card, field))

static int open_side(struct myri_side *side)
{
    struct link *l = side->state;
    l->card = myri_card_symbol(side->hw, "card");
    l->came_at = myri_card_symbol(side->hw, "came");
    l->in = myri_host_take(side->host, FM1_DATA, 0);
    if (side->hw->fault[0])
        return -1;
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, IN_CARD(l, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

static void send_frame(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    enum { SOME = FM1_QUEUE / 4 };
    struct link *l = side->state;
    if (l->posted < FM1_QUEUE) {
        uint32_t end = IN_CARD(l, queue) + (l->posted + 1) * FM1_FRAME, at = end - FM1_HEADER - bytes;
        for (uint32_t i = 0; i < bytes; i += 4)
            myri_card_poke(side->card, at + i, myri_host_word(side->host, side->out + i));
        myri_card_poke(side->card, end - 8, bytes << 24 | to << 16);
        myri_card_poke(side->card, end - 4, FM1_VALID | side->node << 24 | FM1_LAST);
    }
    if (l->posted - l->known_sent >= FM1_QUEUE)
        (void)myri_task_await(side->task, IN_CARD(l, sent), l->posted - FM1_QUEUE + SOME, 1, &l->known_sent);
    (void)myri_task_store(side->task, IN_CARD(l, posted), ++l->posted);
}

static uint32_t receive_frame(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct link *l = side->state;
    (void)until;
    if (l->came == l->taken && myri_task_await(side->task, l->came_at, l->taken + 1, 1, &l->came) < 0)
        return 0;
    l->taken++;
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(side->host, l->in + i, myri_card_peek(side->card, IN_CARD(l, in) + i));
    side->got = l->in;
    return bytes;
}

const struct myri_system myri_system_fm1_link = {
    .name = "fm1-link",
    .title = "Link engines alone, frames as FM 1.1 has them",
    .source = "Lauria et al. 1998, figure 3a",
    .object = "systems/fm1/firmware-link",
    .machines = "H-S",
    .state_bytes = sizeof(struct link),
    .most = FM1_DATA,
    .on_crc = "link engines alone send nothing again",
    .open = open_side,
    .send = send_frame,
    .receive = receive_frame,
    .looks_across = 1,
};
