/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef STORE
#define SYSTEM "trapeze-store"
#include "sim/myrinet/systems/trapeze/firmware.c"
#elif defined TUNED
#define SYSTEM "trapeze-tuned"
#include "sim/myrinet/systems/trapeze/firmware-tuned.c"
#elif defined TUNED_STORE
#define SYSTEM "trapeze-tuned-store"
#include "sim/myrinet/systems/trapeze/firmware-tuned-store.c"
#else
#define SYSTEM "trapeze"
#include "sim/myrinet/systems/trapeze/firmware.c"
#endif
/* What has come is in the host, which was interrupted, dropped, in error, whole on the card, or not looked at yet; what
 * is posted has left, or is in one of the places. */
#define CONSERVED                                                                                                \
    (packets - card.errors - card.dropped - interrupts - native_loop.full <= 1 && native_loop.full <= TPZ_INS && \
     native_loop.begun - card.sent <= TPZ_SENDS)
/* Nothing but a frame of the ring, or a record of it. */
#define PERMITTED(host, sram, bytes)                                         \
    (((host) >= 65536 && (host) + (bytes) <= 65536 + TPZ_RING * TPZ_FRAME && \
      (host) % TPZ_FRAME + (bytes) <= TPZ_FRAME) ||                          \
     ((host) >= 4096 && (host) + (bytes) <= 4096 + TPZ_RING * TPZ_RECORD && ((host) + (bytes)) % TPZ_RECORD == 0))
/* One that is not refused at once, for the bytes that come. */
#define FIRST_WORD(n) ((n)-TPZ_AHEAD >= 64 ? 32u << 16 | ((n)-TPZ_AHEAD - 32) : ((n)-TPZ_AHEAD) << 16)
#define FRAGMENTS
#define MARKS
#include "myrinet/native.h"

static uint32_t posted;

static void host_fills(void)
{
    posted = 0;
    card.records_at = 4096;
    card.notify = 1;
    for (uint32_t i = 0; i < TPZ_RING; i++)
        card.receive[i] = 65536 + i * TPZ_FRAME;
    for (uint32_t i = 0; i < TPZ_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

static void host_writes(void)
{
    volatile struct tpz_send *s = &card.send[posted % TPZ_SENDS];
    if (posted - card.sent < TPZ_SENDS) {
        uint32_t control = 4 * chance(TPZ_CONTROL / 4 + 1), payload = chance(3) ? 4 * chance(TPZ_FRAME / 4 + 1) : 0;
        s->to = any_word();
        s->bytes = control << 16 | payload;
        s->frame = 65536;
        s->posted = 1;
        posted++;
    }
    uint32_t place = chance(TPZ_RING);
    if (chance(3))
        card.receive[place] = chance(6) ? 65536 + place * TPZ_FRAME : 0;
}
