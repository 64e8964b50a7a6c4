/* SPDX-License-Identifier: BSD-3-Clause
 *
 * toys.c - what a protocol that was only tried on a good network does not survive, one by one: whole endpoints on the
 * virtual network of the swarm, with its oracle, but what happens is said here and not drawn from a seed.
 *
 *   swarm-toys           all but the pairs
 *   swarm-toys pairs     each pair of packets of an exchange lost, doubled or late
 *
 *   swarm-toys picks NUMBER KIND NUMBER KIND      one of them: 1 lost, 2 doubled, 3 late; SWARM_TALK=1 shows the
 * packets
 *
 * Times are virtual: a bound on them is a bound on what the protocol waits for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "swarm/try.h"

#define US     ((uint64_t)1000)
#define MS     ((uint64_t)1000 * US)
#define SECOND ((uint64_t)1000 * MS)

static struct swarm_result *result;
static unsigned long runs;

/* Two hosts that ask and answer in turn, on links of 10 Gb/s and 20 us; all is over in some ms. */
static struct swarm_plan exchange(unsigned messages)
{
    return (struct swarm_plan){
        .seed = 1,
        .hosts = 2,
        .pattern = SWARM_PINGPONG,
        .messages = messages,
        .longest = 2000,
        .total = (size_t)2000 * messages,
        .link = {.bits_per_s = 10 * SECOND, .delay_ns = 10 * US, .buffer_bytes = 192 * 1024, .mtu = 1500, .silent = 1},
        .silent_ns = 20 * SECOND,
        .plain = 1,
        .picks = 1,
        .late_ns = 3 * MS};
}

/* All hosts send long messages. */
static struct swarm_plan flood(unsigned hosts, unsigned pattern, size_t bytes)
{
    struct swarm_plan p = exchange(4);
    p.hosts = hosts;
    p.pattern = pattern;
    p.longest = bytes / 2;
    p.total = bytes;
    p.plain = p.picks = 0;
    return p;
}

static struct swarm_event *event(struct swarm_plan *p, uint32_t kind, uint32_t host, uint64_t at_ns)
{
    struct swarm_event *e = &p->event[p->events++];
    *e = (struct swarm_event){.at_ns = at_ns, .kind = kind, .host = host};
    return e;
}

/* It passes, by then, and so many are told of a death. */
static int passes(const struct swarm_plan *p, uint64_t most_ns, uint64_t deaths, const char *what)
{
    runs++;
    if (swarm_try(p, NULL)) {
        printf("%s: %s\n", what, result->why);
        return 0;
    }
    if (result->ns > most_ns)
        printf("%s: it took %" PRIu64 " us, and should take at most %" PRIu64 "\n", what, result->ns / US,
               most_ns / US);
    if (result->deaths != deaths)
        printf("%s: %" PRIu64 " are told of a death, instead of %" PRIu64 "\n", what, result->deaths, deaths);
    return result->ns <= most_ns && result->deaths == deaths;
}

/* ---- packets ---- */

enum { KINDS = 3, PACKETS_LEAST = 36, PACKETS_MOST = 60, MESSAGES = 6 };
static const uint32_t kinds[KINDS] = {SWARM_PICK_DROP, SWARM_PICK_TWICE, SWARM_PICK_LATE};
static const char *const kind_names[] = {"", "lost", "doubled", "late", ""};

/* How many packets the exchange has when nothing happens to them. */
static uint64_t undisturbed(uint64_t *ns)
{
    struct swarm_plan p = exchange(MESSAGES);
    if (!passes(&p, SECOND, 0, "an exchange"))
        return 0;
    *ns = result->ns;
    if (result->picked < PACKETS_LEAST || result->picked > PACKETS_MOST) {
        printf("the exchange has %" PRIu64 " packets, and should have about 40\n", result->picked);
        return 0;
    }
    return result->picked;
}

static int picks(const struct swarm_pick *a, const struct swarm_pick *b, uint64_t most_ns)
{
    struct swarm_plan p = exchange(MESSAGES);
    char what[100];
    p.pick[0] = *a;
    p.pick[1] = *b;
    snprintf(what, sizeof what, "packet %" PRIu64 " %s, %" PRIu64 " %s", a->number, kind_names[a->what], b->number,
             kind_names[b->what]);
    return passes(&p, most_ns, 0, what);
}

/* A lost HELLO costs 20 ms, another one 40; what else is lost costs less. */
static int each_packet(void)
{
    uint64_t ns, packets = undisturbed(&ns);
    int good = packets > 0;
    for (uint64_t n = 1; n <= packets; n++)
        for (unsigned k = 0; k < KINDS; k++)
            good &= picks(&(struct swarm_pick){n, kinds[k]}, &(struct swarm_pick){0, 0}, ns + 25 * MS);
    return good;
}

static int each_pair(void)
{
    uint64_t ns, packets = undisturbed(&ns);
    int good = packets > 0;
    for (uint64_t a = 1; a <= packets; a++)
        for (uint64_t b = a + 1; b <= packets; b++)
            for (unsigned k = 0; k < KINDS * KINDS; k++)
                good &= picks(&(struct swarm_pick){a, kinds[k % KINDS]}, &(struct swarm_pick){b, kinds[k / KINDS]},
                              ns + 70 * MS);
    return good;
}

static int each_pair_lost(void)
{
    uint64_t ns, packets = undisturbed(&ns);
    int good = packets > 0;
    for (uint64_t a = 1; a <= packets; a++)
        for (uint64_t b = a + 1; b <= packets && b <= a + 8; b++)
            good &=
                picks(&(struct swarm_pick){a, SWARM_PICK_DROP}, &(struct swarm_pick){b, SWARM_PICK_DROP}, ns + 70 * MS);
    return good;
}

/* ---- silence ---- */

static int caller_silent(void)
{
    int good = 1;
    for (unsigned after = 0; after < MESSAGES; after++)
        for (uint32_t host = 0; host < 2; host++) {
            struct swarm_plan p = exchange(MESSAGES);
            p.away_host = host;
            p.away_after = after;
            p.away_ns = SECOND;
            good &= passes(&p, SECOND + 500 * MS, 0, "a program that does not call for 1 s");
        }
    return good;
}

/* Nobody takes it for dead before the bound; then everybody does who waits for it, soon. */
static int stopped(void)
{
    int good = 1;
    for (unsigned i = 0; i < 10; i++) {
        struct swarm_plan p = exchange(MESSAGES);
        uint64_t at = i * 25 * US;
        p.silent_ns = 2 * SECOND;
        p.heal_ns = SECOND;
        p.asks_ns = 200 * MS;
        event(&p, SWARM_FREEZES, 1, at)->for_ns = 1900 * MS;
        good &= passes(&p, 3 * SECOND, 0, "a process that stands still for less than the bound");
        p.event[0].for_ns = 10 * SECOND;
        char what[100];
        snprintf(what, sizeof what, "a process that stands still from %" PRIu64 " us on for longer than the bound",
                 at / US);
        good &= passes(&p, 13 * SECOND, 2, what);
        if (result->first_death_ns < at + 2 * SECOND / 1000 * 999 || result->first_death_ns > at + 3 * SECOND) {
            printf("stopped at %" PRIu64 " us, with a bound of 2 s, and told at %" PRIu64 "\n", at / US,
                   result->first_death_ns / US);
            good = 0;
        }
    }
    return good;
}

static int partition(void)
{
    int good = 1;
    for (unsigned i = 0; i < 12; i++) {
        struct swarm_plan p = exchange(MESSAGES);
        p.heal_ns = 11 * SECOND;
        event(&p, SWARM_LEAVES, i % 2, i * 50 * US)->for_ns = 10 * SECOND;
        good &= passes(&p, 10 * SECOND + 1500 * MS, 0, "a partition of 10 s");
        struct swarm_plan many = flood(5, SWARM_ALL, 256 * 1024);
        many.heal_ns = 11 * SECOND;
        event(&many, SWARM_LEAVES, i % 5, i * 50 * US)->for_ns = 10 * SECOND;
        good &= passes(&many, 10 * SECOND + 1500 * MS, 0, "a partition of 10 s, of one of five");
    }
    return good;
}

/* Longer than the bound, and nobody asks for a sign of life: both learn of it all the same, by what they say next. */
static int long_silences(void)
{
    int good = 1;
    for (unsigned i = 0; i < 24; i++) {
        struct swarm_plan p = exchange(MESSAGES);
        p.silent_ns = 2 * SECOND;
        p.heal_ns = SECOND;
        event(&p, i % 2 ? SWARM_FREEZES : SWARM_LEAVES, 1, i / 2 * 20 * US)->for_ns = 10 * SECOND;
        good &= passes(&p, 15 * SECOND, 2, "a silence longer than the bound");
    }
    return good;
}

/* ---- the handshake ---- */

static int simultaneous_open(void)
{
    int good = 1;
    for (uint64_t n = 0; n <= 12; n++)
        for (unsigned k = 0; k < KINDS; k++) {
            struct swarm_plan p = exchange(MESSAGES);
            p.pick[0] = (struct swarm_pick){n, kinds[k]};
            good &= passes(&p, SECOND, 0, "both open at once");
            if (result->last_ns - result->first_ns >= 2 * p.link.delay_ns) {
                printf("they do not open at once\n");
                good = 0;
            }
        }
    return good;
}

/* A process ends when the n-th packet is sent, and another one takes its place: at once, soon, and later. */
static int restarts(void)
{
    static const uint64_t after[] = {1 * US, 25 * US, 700 * US, 60 * MS};
    int good = 1;
    for (uint64_t n = 1; n <= 16; n++)
        for (unsigned k = 0; k < 4 * 2 * 2; k++) {
            struct swarm_plan p = exchange(MESSAGES);
            uint32_t host = k / 4 % 2;
            p.heal_ns = 100 * MS;
            p.knows_lives = (uint8_t)(k / 8);
            p.pick[0] = (struct swarm_pick){n, SWARM_PICK_EVENTS};
            event(&p, SWARM_DIES, host, 0)->picked = 1;
            event(&p, SWARM_RETURNS, host, after[k % 4])->picked = 1;
            event(&p, SWARM_TOLD, host, 300 * MS)->picked = 1;
            char what[100];
            snprintf(what, sizeof what, "rank %u starts anew %" PRIu64 " us after packet %" PRIu64 "%s", host,
                     after[k % 4] / US, n, p.knows_lives ? ", and all know" : "");
            runs++;
            if (swarm_try(&p, NULL)) {
                printf("%s: %s\n", what, result->why);
                good = 0;
            }
        }
    return good;
}

/* Host 0 keeps the others waiting while they close, and host 1 dies meanwhile, of which the job hears a second later.
 * Where host 1 had given its word for the last wave, the others leave as soon as host 0 goes on. */
static int dies_in_close(void)
{
    int good = 1;
    unsigned left = 0, waited = 0;
    for (uint64_t at = 60 * US; at < 160 * US; at += US) {
        struct swarm_plan p = flood(3, SWARM_ALL, 2000);
        p.messages = 1;
        p.heal_ns = SECOND;
        event(&p, SWARM_STALLS, 0, at)->for_ns = 2 * MS;
        event(&p, SWARM_DIES, 1, at + MS);
        event(&p, SWARM_TOLD, 1, at + SECOND);
        runs++;
        if (swarm_try(&p, NULL)) {
            printf("host 0 stands still from %" PRIu64 " us: %s\n", at / US, result->why);
            good = 0;
        }
        left += result->deaths == 0 && result->ns > at + MS && result->ns < SECOND;
        waited += result->deaths > 0;
    }
    if (left == 0 || waited == 0)
        printf("%u times the others left at once, and %u times they waited for the job\n", left, waited);
    return good && left > 0 && waited > 0;
}

/* ---- ways ---- */

static int mtu_falls(void)
{
    int good = 1;
    for (unsigned i = 0; i < 8; i++) {
        struct swarm_plan p = flood(2, SWARM_ALL, 8 << 20);
        p.link.mtu = 9000;
        p.heal_ns = SECOND;
        event(&p, SWARM_NARROWS, i % 2, (i + 1) * MS)->other = 1500;
        good &= passes(&p, SECOND, 0, "the MTU falls from 9000 to 1500");
    }
    return good;
}

static int marks(void)
{
    struct swarm_plan p = flood(3, SWARM_ALL, 4 << 20);
    int good = passes(&p, SECOND, 0, "no marks");
    uint64_t most = 2 * result->ns;
    p.ecn = 1;
    p.link.mark_bytes = 48 * 1024;
    good &= passes(&p, most, 0, "marks of queues");
    p.packets.bleach = RNL_CHANCE_ALWAYS;
    good &= passes(&p, most, 0, "marks that are taken off");
    p.packets = (struct rnl_fault){.ce = RNL_CHANCE_ALWAYS};
    good &= passes(&p, most, 0, "marks on all packets");
    return good;
}

static int incast(void)
{
    struct swarm_plan p = flood(101, SWARM_TO_ONE, 32 * 1024);
    p.link.buffer_bytes = 20000;
    p.messages = 1;
    p.heal_ns = SECOND;
    return passes(&p, SECOND, 0, "100 senders into a queue of 20 kB");
}

/* ---- counters ---- */

static int wraps(void)
{
    int good = 1;
    for (uint64_t i = 1; i <= 24; i++) {
        struct swarm_plan p = i % 2 ? exchange(40) : flood(2, SWARM_ALL, 1 << 20);
        p.line = ((uint64_t)1 << (i % 3 ? 32 : 13)) - i;
        p.bulk = ((uint64_t)1 << 32) - 64 * i * i;
        good &= passes(&p, SECOND, 0, "counters that begin near their ends");
        p.packets = (struct rnl_fault){.loss = RNL_CHANCE_ALWAYS / 20, .dup = RNL_CHANCE_ALWAYS / 20, .seed = i};
        good &= passes(&p, 3 * SECOND, 0, "counters that begin near their ends, with loss");
    }
    return good;
}

static int tell(const char *name, int good)
{
    printf("%s - %s (%lu runs)\n", good ? "ok" : "not ok", name, runs);
    fflush(stdout);
    runs = 0;
    return !good;
}

int main(int argc, char **argv)
{
    result = swarm_try_new();
    if (argc == 6 && strcmp(argv[1], "picks") == 0)
        return !picks(&(struct swarm_pick){strtoull(argv[2], NULL, 0), (uint32_t)atoi(argv[3])},
                      &(struct swarm_pick){strtoull(argv[4], NULL, 0), (uint32_t)atoi(argv[5])}, SECOND);
    if (argc == 2 && strcmp(argv[1], "pairs") == 0)
        return tell("each pair of packets lost, doubled or late", each_pair());
    int failed = 0;
    failed += tell("each packet lost, doubled or late", each_packet());
    failed += tell("each packet and one soon behind it lost", each_pair_lost());
    failed += tell("a program that does not call for a second", caller_silent());
    failed += tell("a stopped process is not dead before its bound", stopped());
    failed += tell("a partition of 10 s, and healing", partition());
    failed += tell("a silence longer than the bound, of a way and of a host", long_silences());
    failed += tell("both open at once", simultaneous_open());
    failed += tell("a restart in every state of the handshake", restarts());
    failed += tell("a death between the last word for closing and its end", dies_in_close());
    failed += tell("the MTU falls without a word", mtu_falls());
    failed += tell("marks taken off, and on everything", marks());
    failed += tell("100 senders into one", incast());
    failed += tell("counters near their ends", wraps());
    return failed != 0;
}
