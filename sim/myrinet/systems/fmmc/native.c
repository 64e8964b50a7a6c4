/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef PLAIN /* single messages alone */
#define SYSTEM "fmmc-plain"
#include "sim/myrinet/systems/fmmc/firmware-plain.c"
#elif defined TUNED
#define SYSTEM "fmmc-tuned"
#include "sim/myrinet/systems/fmmc/firmware-tuned.c"
#elif defined TUNED_PLAIN
#define SYSTEM "fmmc-tuned-plain"
#include "sim/myrinet/systems/fmmc/firmware-tuned-plain.c"
#else
#define SYSTEM "fmmc"
#include "sim/myrinet/systems/fmmc/firmware.c"
#endif
#define CONSERVED (card.posted - card.sent <= FMMC_QUEUE)
#define FRAGMENTS /* most packets are whole fragments */
#include "myrinet/native.h"

static void host_fills(void)
{
    card.ring_at = card.answer_at = 65536;
    card.nodes = 5;
    card.frame = FMMC_FRAGMENT;
    card.credits = 6;
    card.stock = 34;
    card.interrupt = 1;
    for (uint32_t i = 0; i < FMMC_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    if (card.posted - card.sent < FMMC_QUEUE) {
        volatile uint32_t *fragment = card.queue[card.posted % FMMC_QUEUE];
        fragment[FMMC_WORDS - 2] = any_word();
        fragment[FMMC_WORDS - 1] = any_word();
        card.posted++;
    }
    card.freed += chance(3);
}
