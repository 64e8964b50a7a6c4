/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - the probe is no system of a paper: it measures the machine as paper 002 (figure 1) and the survey (figure 2)
 * did, in blocks that a host hands to its card and waits for. The second one is the same without a host that waits. */
#include "sim/myrinet/systems/probe/layout.h"
#include "sim/myrinet/systems/system.h"

#include <stddef.h>

struct probe_host_state {
    uint32_t card, status, count;
};

static int open_side(struct myri_side *side)
{
    struct probe_host_state *st = side->state;
    st->card = myri_card_symbol(side->hw, "card");
    st->status = myri_host_take(side->host, side->hw->page, 1);
    myri_card_poke(side->card, st->card + (uint32_t)offsetof(struct probe_card, status_at), st->status);
    for (uint32_t page = 0; page <= side->largest / side->hw->page; page++)
        side->host->pins[side->out / side->hw->page + page] = 1;
    return side->hw->fault[0] ? -1 : 0;
}

static void send_block(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct probe_host_state *st = side->state;
    const uint32_t what[2] = {side->out, bytes};
    (void)to;
    myri_task_store_words(side->task, st->card + (uint32_t)offsetof(struct probe_card, host), what, 2);
    myri_task_store(side->task, st->card + (uint32_t)offsetof(struct probe_card, go), st->count + 1);
    myri_task_poll(side->task, st->status, st->count, RNL_SIM_NEVER);
    st->count++;
}

/* The first of all starts the card; later ones only wait for its word, one of PROBE_TOLD. */
static void see_block(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct probe_host_state *st = side->state;
    if (st->count == 0) {
        const uint32_t what[2] = {side->out, bytes};
        myri_task_store_words(side->task, st->card + (uint32_t)offsetof(struct probe_card, host), what, 2);
        myri_task_store(side->task, st->card + (uint32_t)offsetof(struct probe_card, go), 1);
    }
    (void)to;
    if (++st->count % PROBE_TOLD == 0)
        myri_task_poll(side->task, st->status, st->count - PROBE_TOLD, RNL_SIM_NEVER);
}

#define PROBE_SYSTEM(called, words, firmware, sends)                                                                 \
    {                                                                                                                \
        .name = called, .title = "transfers between host and card, as " words,                                       \
        .source = "Dubnicki et al. 1997, figure 1; Bhoedjang et al. 1998, figure 2",                                 \
        .object = "systems/probe/" firmware, .machines = "H-P H-PP", .state_bytes = sizeof(struct probe_host_state), \
        .most = PROBE_MAX, .open = open_side, .send = sends                                                          \
    }
const struct myri_system myri_system_probe = PROBE_SYSTEM("probe", "a host sees them", "firmware", send_block);
const struct myri_system myri_system_probe_card =
    PROBE_SYSTEM("probe-card", "a card's own program sees them", "firmware-card", see_block);
