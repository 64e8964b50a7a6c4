/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.c - see native.h. Processes write what they like, the kernel makes slots and takes them back, cards
 * send packets of any number and key: what goes into the host lies in a slot that is open then, or where the card
 * tells its process of it, and what leaves lies in the area of its sender. Each place of a queue that is kept for a
 * record is a message's that lacks packets. */
#ifdef TUNED
#define SYSTEM "hamlyn-tuned"
#include "sim/myrinet/systems/hamlyn/firmware-tuned.c"
#else
#define SYSTEM "hamlyn"
#include "sim/myrinet/systems/hamlyn/firmware.c"
#endif
enum { SOURCES = 4, OWN = 1 << 20, SLOT = 4096, RECORDS = 8 << 20, TROUBLE = 9 << 20 };
static int conserved(void);
static int permitted(uint32_t host, uint32_t bytes);
static int readable(uint32_t host, uint32_t bytes);
#define CONSERVED                      conserved()
#define PERMITTED(host, sram, bytes)   permitted(host, bytes)
#define READABLE(host, bytes)          readable(host, bytes)
#define LIKELY_PACKET(to, words, most) likely_packet(to, words, most)
static uint32_t likely_packet(unsigned char *to, uint32_t words, uint32_t most);
#include "myrinet/native.h"

/* Area of process i: [OWN * (i + 1), + OWN); its slot k is [+ k * SLOT, + SLOT) of that. */
static int permitted(uint32_t host, uint32_t bytes)
{
    uint32_t i = host >> 20;
    if (i >= RECORDS >> 20)
        return (host - (i << 20)) % HAM_RECORD == 0 && bytes <= HAM_RECORD &&
               host - (i << 20) < 2 * HAM_RECORDS * HAM_RECORD;
    if (i < 1 || i > 2)
        return 0;
    uint32_t k = (host & (OWN - 1)) / SLOT;
    volatile struct ham_slot *s = &card.process[i - 1].slot[k & (HAM_SLOTS - 1)];
    return k < HAM_SLOTS && s->valid && host >= s->at && host + bytes <= s->at + s->bytes;
}

static int readable(uint32_t host, uint32_t bytes)
{
    return host >= OWN && host < 3 * OWN && (host & (OWN - 1)) + bytes <= OWN;
}

static int conserved(void)
{
    uint32_t kept[2] = {0, 0};
    for (uint32_t i = 0; i < SOURCES * HAM_PROCESSES * HAM_OPEN; i++)
        if (counter[i].left && counter[i].reserved)
            kept[counter[i].owner & 1]++;
    for (uint32_t i = 0; i < 2; i++)
        if (card.process[i].promised - card.process[i].posted != kept[i])
            return 0;
#ifdef TUNED
    return (native_loop.in == card.in[0] || native_loop.in == card.in[1]) &&
           (native_loop.out == card.out[0] || native_loop.out == card.out[1]);
#else
    return native_loop.room < 2 && native_loop.fill < 2;
#endif
}

static uint32_t last[SOURCES][2]; /* number of a message of several packets */
static uint32_t likely_packet(unsigned char *to, uint32_t words, uint32_t most)
{
    uint32_t node = 1 + chance(SOURCES - 1), sender = chance(2), i = chance(2), k = chance(8), pieces = chance(3);
    uint32_t bytes = 4 * (1 + chance(20)), whole = pieces ? bytes * (1 + pieces) : bytes, number = 0;
    if (HAM_HEADER + bytes > most)
        return words;
    if (pieces) {
        last[node][sender] += chance(3) == 0;
        number = last[node][sender] - (chance(4) ? 0 : chance(10));
    }
    uint32_t begins = 4 * chance(chance(6) ? 100 : 1100), behind = chance(6) == 0; /* behind the message: refused */
    uint32_t offset = begins + (pieces || behind ? bytes * chance(pieces + 1 + behind) : 0);
    uint32_t high = card.process[i].slot[k].key[0], low = card.process[i].slot[k].key[1];
    uint32_t flags = chance(4);
    high ^= chance(20) == 0;
    low ^= chance(20) == 0;
    const uint32_t h[] = {
        node << 24 | sender << 16 | bytes, flags << 24 | i << 16 | k, high, low, offset, number, begins, whole};
    memcpy(to, h, sizeof h);
    return (HAM_HEADER + bytes) / 4;
}

static void make_slot(uint32_t i, uint32_t k)
{
    uint32_t high = any_word(), low = any_word(), bytes = 4 * (1 + chance(SLOT / 4));
    card.process[i].slot[k] = (struct ham_slot){1, OWN * (i + 1) + k * SLOT, bytes, {high, low}, {0}};
}

static void host_fills(void)
{
    memset(last, 0, sizeof last);
    card.processes = 2;
    card.nodes = SOURCES;
    card.packet = 256;
    for (uint32_t i = 0; i < HAM_NODES; i++)
        card.route[i] = ROUTE_VALID | i;
    for (uint32_t i = 0; i < 2; i++) {
        card.process[i].area_at = OWN * (i + 1);
        card.process[i].area_bytes = OWN;
        card.process[i].records_at = RECORDS + 2 * i * HAM_RECORDS * HAM_RECORD / 2;
        card.process[i].trouble_at = TROUBLE + i * HAM_RECORD;
        card.process[i].notify = i;
        for (uint32_t k = 0; k < 8; k++)
            make_slot(i, k);
    }
}

static void host_writes(void)
{
    uint32_t i = chance(2), k = chance(HAM_QUEUE);
    volatile struct ham_process *p = &card.process[i];
    volatile struct ham_request *r = &p->queue[k];
    if (!r->bytes || chance(30) == 0) { /* the process writes what it likes, also into what is being read */
        r->what = chance(12) ? chance(8) : any_word();
        r->to = chance(12) ? chance(SOURCES) << 24 | chance(2) << 16 | chance(8) : any_word();
        r->offset = any_word();
        r->at = chance(12) ? 4 * chance(20000) : any_word();
        r->bytes = chance(12) ? 1 + chance(chance(2) ? 64 : 2000) : any_word();
    }
    p->taken = chance(50) ? p->posted : any_word();
    k = chance(8);
    if (chance(10) == 0 && card.moving != (i << 16 | k) + 1) { /* the kernel takes a slot back, or makes one */
        if (p->slot[k].valid)
            p->slot[k].valid = 0;
        else
            make_slot(i, k);
    }
}
