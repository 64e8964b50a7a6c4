/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan.c - see plan.h. */
#include "swarm/plan.h"
#include "swarm/oracle.h"

#include <stdio.h>
#include <string.h>

#define MS      ((uint64_t)1000 * 1000)
#define US      ((uint64_t)1000)
#define SECOND  (1000 * MS)
#define BACK_NS (200 * MS) /* from when somebody is there again: more than a hello takes to be said again */
enum { PERCENT = RNL_CHANCE_ALWAYS / 100 };

static const char *const names[] = {
#define X(name, word) word,
    SWARM_FAULTS(X)
#undef X
};

const char *swarm_fault_name(unsigned fault)
{
    return names[fault];
}

const char *swarm_event_name(unsigned kind)
{
    static const char *const name[] = {"",          "heals all", "apart",      "joined",  "blocked to",   "freed to",
                                       "link down", "link up",   "stalls",     "dies",    "is told dead", "returns",
                                       "narrows",   "leaves",    "no address", "address", "freezes"};
    return name[kind];
}

static uint64_t of_plan(const struct swarm_plan *p, uint64_t k, uint64_t below)
{
    return swarm_draw(p->seed, SWARM_STREAM_PLAN, 0, k, below);
}
static uint64_t of(const struct swarm_plan *p, unsigned fault, uint64_t k, uint64_t below)
{
    return swarm_draw(p->seed, SWARM_STREAM_FAULT + fault, 0, k, below);
}

/* 0.01 to `most` percent, all magnitudes alike. */
static uint32_t share(const struct swarm_plan *p, unsigned fault, uint64_t k, uint32_t most)
{
    uint32_t parts = PERCENT / 100;
    for (uint64_t doublings = of(p, fault, k, 12); doublings > 0; doublings--)
        parts *= 2;
    return parts > most * (uint32_t)PERCENT ? most * (uint32_t)PERCENT : parts;
}

static struct swarm_event *add(struct swarm_plan *p, uint32_t kind, uint32_t host, uint64_t at_ns)
{
    struct swarm_event *e = &p->event[p->events < SWARM_EVENTS_MAX ? p->events++ : SWARM_EVENTS_MAX - 1];
    *e = (struct swarm_event){.at_ns = at_ns, .kind = kind, .host = host};
    return e;
}

static void packets(struct swarm_plan *p)
{
    struct rnl_fault *f = &p->packets;
    f->seed = p->seed;
    if (swarm_has(p, SWARM_LOSS))
        f->loss = share(p, SWARM_LOSS, 0, 30);
    if (swarm_has(p, SWARM_BURST)) {
        f->burst_begin = share(p, SWARM_BURST, 0, 2);
        f->burst_end = (uint32_t)(10 + of(p, SWARM_BURST, 1, 60)) * PERCENT;
    }
    if (swarm_has(p, SWARM_DUP))
        f->dup = share(p, SWARM_DUP, 0, 40);
    if (swarm_has(p, SWARM_REORDER)) {
        f->reorder = share(p, SWARM_REORDER, 0, 30);
        f->reorder_ns = US << of(p, SWARM_REORDER, 1, 15);
    }
    if (swarm_has(p, SWARM_DELAY))
        f->delay_most_ns = US << of(p, SWARM_DELAY, 0, 13);
    if (swarm_has(p, SWARM_CORRUPT) && !swarm_has(p, SWARM_OPEN)) /* who asks for no check gets none */
        f->corrupt = share(p, SWARM_CORRUPT, 0, 20);
    if (swarm_has(p, SWARM_CUT))
        f->cut = share(p, SWARM_CUT, 0, 20);
    if (swarm_has(p, SWARM_MARK))
        f->ce = of(p, SWARM_MARK, 0, 4) == 0 ? RNL_CHANCE_ALWAYS : share(p, SWARM_MARK, 1, 50);
    if (swarm_has(p, SWARM_BLEACH))
        f->bleach = of(p, SWARM_BLEACH, 0, 2) == 0 ? RNL_CHANCE_ALWAYS : share(p, SWARM_BLEACH, 1, 50);
}

static void links(struct swarm_plan *p)
{
    static const uint64_t rates[] = {0, 100 * US * US, 1000 * US * US, 10000 * US * US};
    p->link.bits_per_s = rates[of_plan(p, 10, 4)];
    p->link.delay_ns = US << of_plan(p, 11, 11);
    p->link.buffer_bytes = 192 * 1024;
    if (swarm_has(p, SWARM_SHALLOW))
        p->link.buffer_bytes = 4000 + of(p, SWARM_SHALLOW, 0, 30000);
    if (of_plan(p, 12, 2))
        p->link.mark_bytes = p->link.buffer_bytes / 4;
    p->link.mtu = of_plan(p, 13, 3) == 0 ? 9000 : 1500;
    p->link.silent = (uint8_t)of_plan(p, 14, 2);
}

static void places(struct swarm_plan *p)
{
    uint64_t until = p->heal_ns;
    if (swarm_has(p, SWARM_PARTITION))
        for (uint64_t k = 1 + of(p, SWARM_PARTITION, 0, 3); k > 0; k--)
            for (unsigned i = 0; i < p->hosts; i++) {
                uint64_t from = of(p, SWARM_PARTITION, 10 * k, until);
                if (of(p, SWARM_PARTITION, 10 * k + 2 + 100 * (i + 1), 3) || p->events + 4 > SWARM_EVENTS_MAX / 2)
                    continue;
                add(p, SWARM_APART, i, from);
                add(p, SWARM_JOINED, i, from + of(p, SWARM_PARTITION, 10 * k + 1, until - from));
            }
    if (swarm_has(p, SWARM_BLOCK))
        for (uint64_t k = 1 + of(p, SWARM_BLOCK, 0, 4); k > 0; k--) {
            uint32_t from = (uint32_t)of(p, SWARM_BLOCK, 10 * k, p->hosts);
            uint32_t to = (from + 1 + (uint32_t)of(p, SWARM_BLOCK, 10 * k + 1, p->hosts - 1)) % p->hosts;
            uint64_t at = of(p, SWARM_BLOCK, 10 * k + 2, until);
            add(p, SWARM_BLOCKED, from, at)->other = to;
            add(p, SWARM_FREED, from, at + of(p, SWARM_BLOCK, 10 * k + 3, until - at))->other = to;
        }
    if (swarm_has(p, SWARM_FLAP))
        for (uint64_t k = 1 + of(p, SWARM_FLAP, 0, 4); k > 0; k--) {
            uint32_t host = (uint32_t)of(p, SWARM_FLAP, 10 * k, p->hosts);
            uint64_t at = of(p, SWARM_FLAP, 10 * k + 1, until);
            add(p, SWARM_DOWN, host, at);
            add(p, SWARM_UP, host, at + of(p, SWARM_FLAP, 10 * k + 2, until - at));
        }
    if (swarm_has(p, SWARM_STALL))
        for (uint64_t k = 1 + of(p, SWARM_STALL, 0, 6); k > 0; k--)
            add(p, SWARM_STALLS, (uint32_t)of(p, SWARM_STALL, 10 * k, p->hosts), of(p, SWARM_STALL, 10 * k + 1, until))
                ->for_ns = (10 * US) << of(p, SWARM_STALL, 10 * k + 2, 17);
    if (swarm_has(p, SWARM_MTU))
        add(p, SWARM_NARROWS, (uint32_t)of(p, SWARM_MTU, 0, p->hosts), of(p, SWARM_MTU, 1, until))->other =
            (uint32_t)(1280 + of(p, SWARM_MTU, 2, 2) * 220);
}

/* One of two addresses dies, of some hosts for ever: of all of these the same one, so that all can reach each other by
 * the other. */
static void addresses(struct swarm_plan *p)
{
    p->addresses = of_plan(p, 20, 4) == 0 ? 2 : 1;
    p->stripe = (uint8_t)(p->addresses == 2 && of_plan(p, 23, 2));
    uint32_t for_ever = (uint32_t)of_plan(p, 21, 2);
    for (uint64_t k = p->addresses == 2 ? 1 + of_plan(p, 22, 4) : 0; k > 0; k--) {
        uint32_t host = (uint32_t)of_plan(p, 100 * k, p->hosts), which = (uint32_t)of_plan(p, 100 * k + 1, 2);
        uint32_t dead = (uint32_t)(1 + of_plan(p, 100 * k + 2, 3));
        uint64_t at = of_plan(p, 100 * k + 3, p->heal_ns);
        struct swarm_event *e = add(p, SWARM_ADDRESS_DOWN, host, at);
        e->other = which | dead << 2;
        e->for_ns = which == for_ever && of_plan(p, 100 * k + 4, 3) > 0;
        if (!e->for_ns)
            add(p, SWARM_ADDRESS_UP, host, at + of_plan(p, 100 * k + 5, p->heal_ns - at))->other = which;
    }
}

static void stays(struct swarm_plan *p, uint64_t ns)
{
    p->back_ns = ns > p->back_ns ? ns : p->back_ns;
}

/* ... and perhaps dies again, soon: in a handshake, or while it is taken back. */
static void comes_back(struct swarm_plan *p, uint64_t k, uint32_t host, uint64_t died_ns)
{
    for (unsigned life = 1; life < SWARM_LIVES; life++) {
        uint64_t at = died_ns + (US << of(p, SWARM_READMIT, 100 * k + 10 * life, 16));
        add(p, SWARM_RETURNS, host, at);
        stays(p, at + BACK_NS);
        if (of(p, SWARM_READMIT, 100 * k + 10 * life + 1, 3))
            return;
        died_ns = at + ((10 * US) << of(p, SWARM_READMIT, 100 * k + 10 * life + 2, 12));
        add(p, SWARM_DIES, host, died_ns)->other = (uint32_t)of(p, SWARM_READMIT, 100 * k + 10 * life + 3, 2);
        add(p, SWARM_TOLD, host, died_ns + ((64 * US) << of(p, SWARM_READMIT, 100 * k + 10 * life + 4, 14)));
    }
}

static void lives(struct swarm_plan *p)
{
    if (!swarm_has(p, SWARM_CRASH))
        return;
    for (uint64_t k = 1 + of(p, SWARM_CRASH, 0, p->hosts > 4 ? 3 : 1); k > 0; k--) {
        uint32_t host = (uint32_t)of(p, SWARM_CRASH, 10 * k, p->hosts);
        uint64_t at = (10 * US) << of(p, SWARM_CRASH, 10 * k + 1, 10);
        at += of(p, SWARM_CRASH, 10 * k + 4, at);
        add(p, SWARM_DIES, host, at)->other = (uint32_t)of(p, SWARM_CRASH, 10 * k + 2, 2);
        add(p, SWARM_TOLD, host, at + ((64 * US) << of(p, SWARM_CRASH, 10 * k + 3, 18)));
        if (swarm_has(p, SWARM_READMIT))
            comes_back(p, k, host, at);
        else if (swarm_has(p, SWARM_RESTART))
            add(p, SWARM_RETURNS, host, at + (US << of(p, SWARM_RESTART, 10 * k, 12)));
    }
}

/* Some host is not heard for about as long as the others wait for it, or for ever. */
static void silences(struct swarm_plan *p)
{
    if (!swarm_has(p, SWARM_GONE))
        return;
    p->silent_ns = (4 + of(p, SWARM_GONE, 0, 5)) * SECOND;
    p->asks_ns = SECOND;
    uint32_t host = (uint32_t)of(p, SWARM_GONE, 1, p->hosts);
    uint64_t from = of(p, SWARM_GONE, 2, p->heal_ns), length = of(p, SWARM_GONE, 3, 2 * p->silent_ns);
    uint64_t kind = of(p, SWARM_GONE, 4, 4);
    add(p, kind == 0 ? SWARM_FREEZES : SWARM_LEAVES, host, from)->for_ns = kind == 1 ? 0 : length + 1;
    if (swarm_has(p, SWARM_READMIT)) /* for ever: it is tried in vain, once or twice */
        stays(p, from + (kind == 1 ? 2 * p->silent_ns : length) + BACK_NS);
}

/* Fields of 16 and of 32 bits. */
static void beginnings(struct swarm_plan *p)
{
    if (!swarm_has(p, SWARM_WRAP))
        return;
    uint64_t near = 1 + of(p, SWARM_WRAP, 0, (uint64_t)1 << (2 + of(p, SWARM_WRAP, 1, 9)));
    p->line = ((of(p, SWARM_WRAP, 2, 2) ? (uint64_t)1 << 32 : (uint64_t)1 << 13) << of(p, SWARM_WRAP, 3, 3)) - near;
    p->bulk = ((uint64_t)1 << (32 + of(p, SWARM_WRAP, 4, 3))) - 64 * of(p, SWARM_WRAP, 5, 2048);
}

static void less_of(const struct swarm_less *less, struct swarm_plan *p)
{
    unsigned kept = 0;
    if (less->hosts && less->hosts < p->hosts)
        p->hosts = less->hosts;
    for (unsigned i = 0; i < p->events; i++)
        if (p->event[i].host < p->hosts &&
            ((p->event[i].kind != SWARM_BLOCKED && p->event[i].kind != SWARM_FREED) || p->event[i].other < p->hosts))
            p->event[kept++] = p->event[i];
    p->events = kept;
    if (less->messages && less->messages < p->messages)
        p->messages = less->messages;
    if (less->longest && less->longest < p->longest)
        p->longest = less->longest;
    if (less->total && less->total < p->total)
        p->total = less->total;
}

void swarm_plan_of(uint64_t seed, const struct swarm_less *less, struct swarm_plan *p)
{
    *p = (struct swarm_plan){.seed = seed, .silent_ns = 20 * SECOND};
    uint64_t often = 2 + of_plan(p, 0, 12); /* 1 in so many exists */
    for (unsigned f = 0; f < SWARM_FAULT_COUNT; f++)
        if (of(p, f, 1000, often) == 0)
            p->faults |= (uint64_t)1 << f;
    if (of(p, SWARM_CRASH, 1001, 5) == 0) /* only in some of these it comes when something is under way */
        p->faults |= (uint64_t)1 << SWARM_CRASH;
    if (swarm_has(p, SWARM_CRASH) && of(p, SWARM_RESTART, 1001, 2))
        p->faults |= (uint64_t)1 << SWARM_RESTART;
    if ((swarm_has(p, SWARM_CRASH) || swarm_has(p, SWARM_GONE)) && of(p, SWARM_READMIT, 1001, 2))
        p->faults |= (uint64_t)1 << SWARM_READMIT;
    if (of(p, SWARM_GROUP, 1001, 6) == 0)
        p->faults |= (uint64_t)1 << SWARM_GROUP;
    if (of(p, SWARM_BULK, 1001, 2))
        p->faults |= (uint64_t)1 << SWARM_BULK;
    p->faults &= ~less->off;
    if (swarm_has(p, SWARM_READMIT)) /* members do not come back */
        p->faults &= ~((uint64_t)1 << SWARM_GROUP);
    /* Of messages that are given up nobody can tell the era by their first byte; and what is taken back counts from 0.
     */
    if (swarm_has(p, SWARM_READMIT))
        p->faults &= ~((uint64_t)1 << SWARM_ABORT | (uint64_t)1 << SWARM_WRAP);
    p->hosts = 2 + (unsigned)of_plan(p, 1, 3);
    if (of_plan(p, 2, 4) == 0)
        p->hosts = 2 + (unsigned)of_plan(p, 3, 15);
    if (of_plan(p, 2, 256) == 1)
        p->hosts = 100;
    if (p->hosts > 32)
        p->faults &= ~((uint64_t)1 << SWARM_GROUP);
    p->pattern = (unsigned)of_plan(p, 4, SWARM_PATTERNS);
    p->messages = 1u << of_plan(p, 5, p->hosts > 32 ? 3 : p->hosts > 6 ? 6 : 8);
    p->longest = (size_t)1 << (6 + of_plan(p, 6, p->hosts > 32 ? 8 : 14)); /* up to 512 KiB */
    p->total = (p->hosts > 32 ? 16 : p->hosts > 6 ? 128 : 512) << 10;
    if (of_plan(p, 15, 12) == 0 && p->hosts < 5) { /* rounds through all rings and areas */
        p->total = 8 << 20;
        p->messages = 256;
        p->longest = (size_t)1 << (12 + of_plan(p, 16, 8));
    }
    if (p->total < p->longest)
        p->longest = p->total;
    p->heal_ns = MS << of_plan(p, 7, 11);
    p->pause_ns = of_plan(p, 8, 3) == 0 ? 0 : 2 * p->heal_ns / p->messages;
    p->knows_lives = (uint8_t)(of_plan(p, 9, 2) && !swarm_has(p, SWARM_READMIT)); /* then it knows all of them */
    packets(p);
    links(p);
    places(p);
    lives(p);
    silences(p);
    beginnings(p);
    addresses(p);
    p->ecn = (uint8_t)of_plan(p, 17, 2);
    p->plain = (uint8_t)(of_plan(p, 18, 8) == 0);
    uint64_t algorithm = of_plan(p, 19, 16);
    p->newreno = (uint8_t)(algorithm < 3 ? algorithm : SWARM_LAW_OURS);
    if (swarm_has(p, SWARM_REPLAY)) {
        p->again = share(p, SWARM_REPLAY, 0, 10);
        p->again_ns = US << of(p, SWARM_REPLAY, 1, 21);
        p->plain = 1;
    }
    p->key_packets = 2 + (uint32_t)of(p, SWARM_KEYS, 0, 40);
    p->key_most = p->key_packets + 40 + (uint32_t)of(p, SWARM_KEYS, 1, 40);
    /* Probes to the silent need some, too: of these the real limits hold millions. */
    if (swarm_has(p, SWARM_GONE))
        p->key_most += 400;
    else if (p->faults & (1u << SWARM_SILENT | 1u << SWARM_PARTITION | 1u << SWARM_BLOCK | 1u << SWARM_FLAP))
        p->key_most += 100;
    add(p, SWARM_HEAL, 0, p->heal_ns);
    less_of(less, p);
}

void swarm_plan_print(const struct swarm_plan *p, char *to, size_t bytes)
{
    static const char *const patterns[] = {"ping-pong", "all to all", "all to one", "ring", "random"};
    int n = snprintf(to, bytes, "%u hosts, %s, %u messages each, up to %zu bytes, healed at %llu us:", p->hosts,
                     patterns[p->pattern], p->messages, p->longest, (unsigned long long)(p->heal_ns / US));
    static const char *const laws[] = {"", " every second host NewReno", " NewReno"};
    if (n > 0 && (size_t)n < bytes)
        n += snprintf(to + n, bytes - (size_t)n, "%s", laws[p->newreno]);
    if (p->addresses > 1 && n > 0 && (size_t)n < bytes)
        n += snprintf(to + n, bytes - (size_t)n, " %u addresses%s", p->addresses, p->stripe ? ", striped" : "");
    for (unsigned f = 0; f < SWARM_FAULT_COUNT; f++)
        if (swarm_has(p, f) && n > 0 && (size_t)n < bytes)
            n += snprintf(to + n, bytes - (size_t)n, " %s", names[f]);
}
