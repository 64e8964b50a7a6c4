/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. The kernel's translations are of pages of one region: into no other the card may
 * write. */
#ifdef TUNED
#define SYSTEM "unet-tuned"
#include "sim/myrinet/systems/unet/firmware-tuned.c"
#else
#define SYSTEM "unet"
#include "sim/myrinet/systems/unet/firmware.c"
#endif
enum { REGION = 1 << 20 };
#define CONSERVED             (native_loop.room < 2 && native_loop.fill < 2)
#define PERMITTED             permitted
#define READABLE(host, bytes) ((host) >= REGION && (bytes) <= 4096 - ((host)&4095))

/* Pages of the region; and what has come over a channel, from the node at its other end. */
static int permitted(uint32_t host, uint32_t sram, uint32_t bytes)
{
    if (sram >= SRAM_AT(card.in)) {
        volatile uint32_t *h = card.in[(sram - SRAM_AT(card.in)) / sizeof card.in[0]];
        if (h[1] >= UNET_CHANNELS || !card.channel[h[1]].valid || card.channel[h[1]].node != h[0] >> 24)
            return 0;
    }
    return host >= REGION && host + bytes <= 2 * REGION && bytes <= 4096 - (host & 4095);
}

#define FIRST_WORD(n) ((1 + chance(3)) << 24 | ((n) > 8 ? (n)-8 : 1))
#define LIKELY_WORD() chance(8)
#include "myrinet/native.h"

static void host_fills(void)
{
    card.endpoints = 2;
    card.page_shift = 12;
    card.nodes = 4;
    for (uint32_t i = 0; i < UNET_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
    for (uint32_t k = 0; k < 6; k++)
        card.channel[k] = (struct unet_channel){UNET_VALID, 1 + k % 3, k, k & 1};
    for (uint32_t i = 0; i < 2; i++) {
        card.endpoint[i].records_at = REGION;
        card.endpoint[i].notify = i;
    }
}

static void host_writes(void)
{
    volatile struct unet_endpoint *e = &card.endpoint[chance(2)];
    volatile struct unet_message *m = &e->queue[chance(UNET_QUEUE)];
    if (!m->bytes) { /* the process writes what it likes */
        m->channel = chance(12) ? chance(6) : any_word();
        m->at = chance(12) ? 4 * chance(20000) : any_word();
        m->bytes = chance(12) ? 1 + chance(5000) : any_word();
    }
    e->free[chance(UNET_FREE)] = chance(12) ? 4096 * chance(20) : any_word();
    e->freed += chance(2);
    if (card.missing && chance(3) == 0) { /* the kernel answers */
        volatile struct unet_endpoint *its = &card.endpoint[card.missing - 1];
        uint32_t page = card.missed;
        if (chance(5)) {
            its->physical[page & (UNET_TLB - 1)] = REGION + 4096 * (1 + chance(200));
            its->tag[page & (UNET_TLB - 1)] = page + 1;
        } else {
            card.refused_page = page + 1;
        }
        card.missing = 0;
    }
}
