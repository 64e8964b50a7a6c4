/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. */
#ifdef BARE
#define SYSTEM "am2-bare"
#include "sim/myrinet/systems/am2/firmware-bare.c"
#elif defined TUNED
#define SYSTEM "am2-tuned"
#include "sim/myrinet/systems/am2/firmware-tuned.c"
#else
#define SYSTEM "am2"
#include "sim/myrinet/systems/am2/firmware.c"
#endif
enum { REGION = 1 << 20, IMAGES = 3 << 20 };
#define CONSERVED             conserved()
#define PERMITTED             permitted
#define READABLE(host, bytes) readable(host, bytes)
#define FIRST_WORD(n)         first_word(n)
#define LIKELY_WORD           likely_word
static int conserved(void);
static int permitted(uint32_t host, uint32_t sram, uint32_t bytes);
static int readable(uint32_t host, uint32_t bytes);
static uint32_t first_word(uint32_t bytes);
static uint32_t likely_word(void);
#include "myrinet/native.h"

static struct { /* before this turn */
    uint32_t busy[AM2_PAIRS], bit[AM2_PAIRS], copy[AM2_ALL_SLOTS];
    uint32_t waits, first; /* a packet; its first word */
} was;

#ifdef BARE
/* Nobody answers: what has left is done with when the engine is. */
static int ends_rightly(void)
{
    uint32_t right = 1;
    for (uint32_t slot = 0; slot < AM2_ALL_SLOTS; slot++)
        right &= does[slot] != AM2_WAITS || due[slot] || native_loop.sending == slot;
    return (int)right;
}
#else
/* A message that was not taken ends by an answer to its last copy: one before it could still be taken. */
static int ends_rightly(void)
{
    uint32_t first = card.in[native_loop.room][0], waits = status & RECV, right = 1;
    uint32_t word = was.waits ? was.first : first, is_known = was.waits || !waits; /* else another one lies there */
    for (uint32_t c = 0; c < AM2_PAIRS; c++) {
        if (was.busy[c] && was.busy[c] <= AM2_ALL_SLOTS && !busy[c] && bit[c] == was.bit[c])
            right &= !is_known || (word >> 18 & 63) == was.copy[was.busy[c] - 1];
        was.busy[c] = busy[c];
        was.bit[c] = bit[c];
    }
    for (uint32_t slot = 0; slot < AM2_ALL_SLOTS; slot++)
        was.copy[slot] = copies[slot];
    was.waits = waits;
    was.first = first;
    return (int)right;
}
#endif

/* Each slot that is not answered has its channel, and counts for its frame. */
static int conserved(void)
{
    if (!ends_rightly())
        return 0;
    uint32_t active = 0, in_frame[AM2_FRAMES] = {0};
    for (uint32_t slot = 0; slot < AM2_ALL_SLOTS; slot++) {
        if (does[slot] == AM2_WAITS && busy[channel[slot]] != slot + 1)
            return 0;
        active += does[slot] == AM2_WAITS;
        in_frame[slot / AM2_SLOTS] += does[slot] == AM2_WAITS || does[slot] == AM2_FETCHING;
    }
    for (uint32_t f = 0; f < AM2_FRAMES; f++)
        if (in_frame[f] != flying[f])
            return 0;
    return active == native_loop.active;
}

/* What an endpoint's messages bring goes to its area, and whole frames, with the count of what they have
 * accepted, to the kernel's memory. */
static int permitted(uint32_t host, uint32_t sram, uint32_t bytes)
{
    uint32_t room = (sram - SRAM_AT(card.in)) / sizeof card.in[0], f = native_loop.arriving - 1;
    if (sram >= SRAM_AT(card.frame) && sram < SRAM_AT(card.in)) {
        f = (sram - SRAM_AT(card.frame)) / sizeof card.frame[0];
        return host >= IMAGES && bytes == sizeof card.frame[0] && !flying[f] && card.frame[f].taken_in == taken_in[f];
    }
    if (sram < SRAM_AT(card.in) || room > 1 || f >= AM2_FRAMES)
        return 0;
    uint32_t area = REGION + card.frame[f].endpoint * 2 * AM2_RING * AM2_PLACE;
    return (card.in[room][1] >> 16 & 0xff) == card.frame[f].endpoint && host >= area &&
           host + bytes <= area + AM2_RING * AM2_PLACE;
}

static int readable(uint32_t host, uint32_t bytes)
{
    return host >= IMAGES ? bytes == sizeof card.frame[0] : host >= REGION && bytes <= AM2_PLACE;
}

static uint32_t first_word(uint32_t bytes)
{
    uint32_t from = 1 + chance(4), kind = 1 + (bytes == 8 ? chance(4) : 0), copy = chance(4), on = chance(5);
    return from << 24 | copy << 18 | (kind & 3) << 16 | on << 8 | chance(2);
}

static uint32_t likely_word(void)
{
    uint32_t endpoint = chance(8);
    return chance(3) ? endpoint << 16 | 4 * (1 + chance(12)) : chance(5);
}

static void fill_frame(volatile struct am2_frame *f, uint32_t endpoint)
{
    f->endpoint = endpoint;
    f->in_at = REGION + endpoint * 2 * AM2_RING * AM2_PLACE;
    f->out_at = f->in_at + AM2_RING * AM2_PLACE;
    for (uint32_t k = 0; k < 8; k++)
        f->name[k] = AM2_VALID | (1 + k % 4) << 8 | k;
}

static void host_fills(void)
{
    memset(&was, 0, sizeof was);
    card.nodes = 5;
    card.tick = 200;
    card.patience = 2;
    card.tries = 100;
    card.frames = 2;
    for (uint32_t f = 0; f < 2; f++) {
        fill_frame(&card.frame[f], f);
        card.where[f] = AM2_IN_FRAME + f;
    }
    for (uint32_t e = 2; e < 6; e++)
        card.where[e] = AM2_IN_HOST;
    for (uint32_t i = 0; i < AM2_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
}

/* The kernel's order: an endpoint that is in a frame goes, one that is in the host comes into a free frame. */
static void kernel_orders(void)
{
    uint32_t endpoint = chance(6), where = card.where[endpoint], taken = 0;
    if (card.order || native_loop.leaving)
        return;
    for (uint32_t e = 0; e < 6; e++)
        taken |= card.where[e] >= AM2_IN_FRAME ? 1u << (card.where[e] - AM2_IN_FRAME) : 0;
    card.order_at = IMAGES + endpoint * 4096;
    if (where >= AM2_IN_FRAME) {
        card.order_frame = where - AM2_IN_FRAME;
        card.order = AM2_MOVE_OUT;
        return;
    }
    uint32_t f = chance(AM2_FRAMES);
    if (taken >> f & 1)
        return;
    fill_frame(&card.frame[f], endpoint); /* what the transfer brings */
    card.order_frame = f;
    card.order = AM2_MOVE_IN;
}

static void host_writes(void)
{
    uint32_t of = chance(AM2_FRAMES);
    volatile struct am2_frame *f = &card.frame[of];
    volatile struct am2_slot *s = &f->slot[chance(AM2_SLOTS)];
    if (chance(4) == 0) { /* a process writes what it likes, whatever the slot's state */
        s->word[1] = chance(4) ? chance(256) << 24 | 4 * chance(60) : any_word();
        s->to = chance(12) ? chance(10) : any_word();
        s->state = chance(12) ? AM2_POSTED + chance(2) : any_word();
    }
    f->taken = chance(20) ? taken_in[of] - chance(AM2_RING + 2) : any_word();
    f->ready = chance(20) ? f->ready : any_word();
    if (chance(4) == 0)
        card.wanted = 0;
    if (chance(10) == 0)
        kernel_orders();
}
