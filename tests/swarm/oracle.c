/* SPDX-License-Identifier: BSD-3-Clause
 *
 * oracle.c - see oracle.h. */
#include "swarm/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/chance.h"
#include "support/must.h"
#include "support/random.h"

enum { REFUSED_BYTES = 40, SILENCES = 4 };
/* Who comes back just before the bound may be too late: probes to a silent peer are apart. */
#define LATE_NS ((uint64_t)3 * 1000 * 1000 * 1000)

struct era { /* of a sender, as far as one receiver is concerned */
    unsigned life;
    struct swarm_letter *at;
    uint32_t count, room, came;
};
struct reply {
    uint64_t id;
    uint32_t n, era;               /* era: of who asked */
    uint8_t refused, reason, lost; /* lost: perhaps; whom it goes to was given up meanwhile */
};
struct pair { /* of a sender and a receiver */
    struct era *era;
    unsigned eras, hears, next; /* hears: 1 + which one the receiver has messages of; next: the first that it may */
    struct reply *reply;        /* to what `from` asked: [first, count) are on their way */
    uint32_t first, count, room;
    uint8_t told;  /* to is dead, `from` was told: 1 + the life that it is told of */
    uint8_t cause; /* ... or may be: something has happened since it was told last */
    uint8_t knows; /* the life of `to` that it was told the end of, or need not be */
};
struct silence {
    unsigned rank;
    int deaf;
    uint64_t since_ns, until_ns;
};
struct swarm_oracle {
    unsigned ranks;
    uint64_t silent_ns;
    int knows_lives;
    struct pair *pair;
    uint8_t *ended, *life, *known; /* known: the life that the job knows */
    struct silence silence[SILENCES];
    unsigned silences;
    struct swarm_oracle *bulk; /* messages of the bulk lane have an order of their own; all else happens to both */
    uint8_t lane;
};

static struct pair *of(const struct swarm_oracle *o, unsigned from, unsigned to)
{
    return &o->pair[from * o->ranks + to];
}

static struct swarm_oracle *new_one(unsigned ranks, uint64_t silent_ns, int knows_lives)
{
    struct swarm_oracle *o = calloc(1, sizeof *o);
    TEST_MUST(o != NULL);
    o->ranks = ranks;
    o->silent_ns = silent_ns;
    o->knows_lives = knows_lives;
    o->pair = calloc((size_t)ranks * ranks, sizeof *o->pair);
    o->ended = calloc(ranks, 1);
    o->life = calloc(ranks, 1);
    o->known = calloc(ranks, 1);
    TEST_MUST(o->pair && o->ended && o->life && o->known);
    return o;
}

struct swarm_oracle *swarm_oracle_new(unsigned ranks, uint64_t silent_ns, int knows_lives)
{
    struct swarm_oracle *o = new_one(ranks, silent_ns, knows_lives);
    o->bulk = new_one(ranks, silent_ns, knows_lives);
    o->bulk->lane = 1;
    return o;
}

struct swarm_oracle *swarm_bulk(struct swarm_oracle *o)
{
    return o->bulk;
}

void swarm_oracle_free(struct swarm_oracle *o)
{
    if (o->bulk)
        swarm_oracle_free(o->bulk);
    for (unsigned i = 0; i < o->ranks * o->ranks; i++) {
        for (unsigned era = 0; era < o->pair[i].eras; era++)
            free(o->pair[i].era[era].at);
        free(o->pair[i].era);
        free(o->pair[i].reply);
    }
    free(o->pair);
    free(o->ended);
    free(o->life);
    free(o->known);
    free(o);
}

/* ---- eras ---- */

static void new_era(const struct swarm_oracle *o, unsigned from, unsigned to)
{
    struct pair *p = of(o, from, to);
    p->era = realloc(p->era, (p->eras + 1) * sizeof *p->era);
    TEST_MUST(p->era != NULL);
    p->era[p->eras++] = (struct era){.life = o->life[from]};
}

static void hears_anew(struct pair *p)
{
    if (p->hears)
        p->next = p->hears;
    p->hears = 0;
}

static struct era *last_era(const struct pair *p)
{
    return &p->era[p->eras - 1];
}

/* What `replier` had answered may be lost: it has given the asker up, or ended. */
static void loses_answers(const struct swarm_oracle *o, unsigned asker, unsigned replier)
{
    struct pair *p = of(o, asker, replier);
    for (uint32_t i = p->first; i < p->count; i++)
        p->reply[i].lost = 1;
}

void swarm_begins(struct swarm_oracle *o, unsigned rank, unsigned life, int in_job)
{
    if (o->bulk)
        swarm_begins(o->bulk, rank, life, in_job);
    o->life[rank] = (uint8_t)life;
    if (in_job) {
        o->known[rank] = (uint8_t)life;
        o->ended[rank] = 0;
    }
    for (unsigned i = 0; i < o->ranks; i++) {
        new_era(o, rank, i);
        hears_anew(of(o, i, rank));
        if (!in_job)
            continue;
        struct pair *p = of(o, rank, i);
        p->told = p->cause = 0;
        p->knows = o->known[i];
    }
}

void swarm_takes_back(struct swarm_oracle *o, unsigned at, unsigned rank)
{
    if (o->bulk)
        swarm_takes_back(o->bulk, at, rank);
    struct pair *p = of(o, at, rank);
    if (!p->told)
        swarm_wrong("rank %u takes rank %u back, and was not told that it died", at, rank);
    new_era(o, at, rank);
    hears_anew(of(o, rank, at));
    p->told = 0;
    p->knows = (uint8_t)(o->known[rank] + o->ended[rank]); /* else it is the next one's connection at once */
    of(o, rank, at)->cause = 1;                            /* what that one had with us is over */
}

/* ---- messages ---- */

struct swarm_letter swarm_sent(struct swarm_oracle *o, unsigned from, unsigned to, uint32_t n, unsigned handler,
                               uint32_t answer)
{
    const struct pair *p = of(o, from, to);
    struct era *e = last_era(p);
    if (e->count == e->room) {
        e->room = e->room ? 2 * e->room : 16;
        e->at = realloc(e->at, e->room * sizeof *e->at);
        TEST_MUST(e->at != NULL);
    }
    uint64_t who = (uint64_t)o->lane << 60 | (uint64_t)from << 40 | (uint64_t)to << 16 | e->life;
    e->at[e->count] = (struct swarm_letter){.id = rnl_chance(who, 0, p->eras - 1 - e->life, e->count),
                                            .n = n,
                                            .answer = answer,
                                            .era = (uint16_t)(p->eras - 1),
                                            .handler = (uint8_t)handler};
    return e->at[e->count++];
}

void swarm_unsent(struct swarm_oracle *o, unsigned from, unsigned to, const struct swarm_letter *letter)
{
    struct era *e = &of(o, from, to)->era[letter->era];
    TEST_MUST(e->at[e->count - 1].id == letter->id);
    e->count--;
}

static struct swarm_letter *find(const struct swarm_oracle *o, unsigned from, unsigned to, const struct swarm_letter *l)
{
    const struct era *e = &of(o, from, to)->era[l->era];
    uint32_t i = 0;
    while (e->at[i].id != l->id) /* it is there: nothing is taken out but the last one, by swarm_unsent */
        i++;
    return &e->at[i];
}

void swarm_gives_up(struct swarm_oracle *o, unsigned from, unsigned to, const struct swarm_letter *l)
{
    find(o, from, to, l)->given_up = 1;
}

/* The first from `i` on that is not given up. */
static uint32_t whole_from(const struct era *e, uint32_t i)
{
    while (i < e->count && e->at[i].given_up)
        i++;
    return i;
}

static int looks_like(const struct swarm_letter *l, unsigned handler, const void *head, size_t bytes)
{
    return l->handler == handler && bytes <= l->n && (bytes == 0 || memcmp(head, test_pattern(l->id, 0), bytes) == 0);
}

static void hears(struct swarm_oracle *o, unsigned to, unsigned from, unsigned era)
{
    struct pair *p = of(o, from, to);
    if (o->knows_lives && (p->era[era].life | o->life[to]))
        swarm_wrong("rank %u gets a message from rank %u, and the job does not know the process of one of them", to,
                    from);
    p->hears = era + 1;
}

struct swarm_letter swarm_comes(struct swarm_oracle *o, unsigned to, unsigned from, unsigned handler, const void *head,
                                size_t bytes)
{
    struct pair *p = of(o, from, to);
    for (unsigned i = p->next; !p->hears && i < p->eras; i++) {
        const struct era *e = &p->era[i];
        uint32_t first = whole_from(e, 0);
        if (first < e->count && looks_like(&e->at[first], handler, head, bytes))
            hears(o, to, from, i);
    }
    if (!p->hears)
        swarm_wrong("the first message from rank %u to rank %u, of %zu bytes for handler %u, was never sent", from, to,
                    bytes, handler);
    struct era *e = &p->era[p->hears - 1];
    e->came = whole_from(e, e->came);
    if (e->came >= e->count)
        swarm_wrong("rank %u gets %u messages from rank %u, of %u that were sent", to, e->came + 1, from, e->count);
    const struct swarm_letter *letter = &e->at[e->came++];
    if (!looks_like(letter, handler, head, bytes))
        swarm_wrong("message %u from rank %u to rank %u should have %u bytes for handler %u; at handler %u others come",
                    e->came, from, to, letter->n, letter->handler, handler);
    return *letter;
}

struct swarm_letter swarm_part_comes(struct swarm_oracle *o, unsigned to, unsigned from, const void *head, size_t bytes)
{
    struct pair *p = of(o, from, to);
    unsigned first = p->hears ? p->hears - 1 : p->next, after = p->hears ? p->hears : p->eras;
    for (unsigned era = first; era < after; era++) {
        struct era *e = &p->era[era];
        for (uint32_t i = e->came; i < e->count; i++) {
            if (looks_like(&e->at[i], e->at[i].handler, head, bytes)) {
                hears(o, to, from, era);
                e->came = i + 1;
                return e->at[i];
            }
            if (!e->at[i].given_up)
                break;
        }
    }
    swarm_wrong("rank %u gets part of a message from rank %u that was not given up there", to, from);
}

void swarm_part_goes_on(struct swarm_oracle *o, unsigned to, unsigned from, struct swarm_letter *l, size_t at,
                        const void *bytes, size_t n)
{
    struct era *e = &of(o, from, to)->era[l->era];
    for (uint32_t i = (uint32_t)(find(o, from, to, l) - e->at); i < e->count; i++) {
        const struct swarm_letter *next = &e->at[i];
        if (at + n <= next->n && memcmp(test_pattern(next->id, 0), test_pattern(l->id, 0), at) == 0 &&
            memcmp(test_pattern(next->id, at), bytes, n) == 0) {
            *l = *next;
            e->came = i + 1 > e->came ? i + 1 : e->came;
            return;
        }
        if (!next->given_up)
            break;
    }
    swarm_bytes(l, at, bytes, n); /* says what is wrong */
    swarm_wrong("rank %u gets part of a message from rank %u that was not given up there", to, from);
}

void swarm_part_ends(const struct swarm_oracle *o, unsigned to, unsigned from, const struct swarm_letter *l, size_t at,
                     int whole)
{
    const struct swarm_letter *now = at ? find(o, from, to, l) : NULL; /* of nothing nobody can tell which it is */
    if (whole && (!now || now->given_up || at != now->n))
        swarm_wrong("rank %u takes %zu bytes from rank %u for a whole message; of %u bytes, given up: %d", to, at, from,
                    now ? now->n : 0, now ? now->given_up : -1);
    if (!whole && now && !now->given_up)
        swarm_wrong("rank %u has %zu of %u bytes from rank %u, and is told that it was given up, which is not true", to,
                    at, now->n, from);
}

void swarm_bytes(const struct swarm_letter *l, size_t at, const void *bytes, size_t n)
{
    if (at + n > l->n)
        swarm_wrong("a message of %u bytes has %zu", l->n, at + n);
    if (n && memcmp(bytes, test_pattern(l->id, at), n) != 0)
        swarm_wrong("of a message of %u bytes the %zu at %zu are not those that were sent", l->n, n, at);
}

/* ---- answers ---- */

uint64_t swarm_reply_id(const struct swarm_letter *l)
{
    return ~l->id;
}

void swarm_replies(struct swarm_oracle *o, unsigned replier, unsigned asker, const struct swarm_letter *l, uint32_t n,
                   int refused, unsigned reason)
{
    struct pair *p = of(o, asker, replier);
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 16;
        p->reply = realloc(p->reply, p->room * sizeof *p->reply);
        TEST_MUST(p->reply != NULL);
    }
    p->reply[p->count++] = (struct reply){.id = refused ? l->id : swarm_reply_id(l),
                                          .n = n,
                                          .era = l->era,
                                          .refused = (uint8_t)refused,
                                          .reason = (uint8_t)reason};
}

static int is_answer(const struct reply *r, const void *bytes, size_t n, int refused, unsigned reason)
{
    return refused == r->refused && reason == r->reason && (refused ? n <= REFUSED_BYTES && n <= r->n : n == r->n) &&
           (n == 0 || memcmp(bytes, test_pattern(r->id, 0), n) == 0);
}

void swarm_reply_comes(struct swarm_oracle *o, unsigned asker, unsigned replier, const void *bytes, size_t n,
                       int refused, unsigned reason)
{
    struct pair *p = of(o, asker, replier);
    for (; p->first < p->count; p->first++) {
        const struct reply *r = &p->reply[p->first];
        if (r->era == p->eras - 1 && is_answer(r, bytes, n, refused, reason)) {
            p->first++;
            return;
        }
        if (r->era == p->eras - 1 && !r->lost)
            swarm_wrong("rank %u gets %s of %zu bytes from rank %u, reason %u, or with other bytes, instead of one of "
                        "%u, %u",
                        asker, refused ? "a refusal" : "an answer", n, replier, reason, r->n, r->reason);
    }
    swarm_wrong("rank %u gets an answer of rank %u that it did not give", asker, replier);
}

/* ---- deaths, and the end ---- */

void swarm_ended(struct swarm_oracle *o, unsigned rank)
{
    if (o->bulk)
        swarm_ended(o->bulk, rank);
    o->ended[rank] = 1;
    for (unsigned i = 0; i < o->ranks; i++) {
        of(o, i, rank)->cause = 1;
        loses_answers(o, i, rank);
    }
}

void swarm_job_tells(struct swarm_oracle *o, unsigned rank)
{
    if (o->bulk)
        swarm_job_tells(o->bulk, rank);
    for (unsigned i = 0; i < o->ranks; i++)
        of(o, i, rank)->cause = 1;
}

void swarm_is_silent(struct swarm_oracle *o, unsigned rank, uint64_t since_ns, uint64_t for_ns, int deaf)
{
    if (o->bulk)
        swarm_is_silent(o->bulk, rank, since_ns, for_ns, deaf);
    TEST_MUST(o->silences < SILENCES);
    o->silence[o->silences++] = (struct silence){
        rank, deaf, since_ns, for_ns < UINT64_MAX - since_ns - LATE_NS ? since_ns + for_ns : UINT64_MAX - LATE_NS};
}

void swarm_agreed(struct swarm_oracle *o, unsigned rank)
{
    if (o->bulk)
        swarm_agreed(o->bulk, rank);
    for (unsigned at = 0; at < o->ranks; at++)
        if (of(o, at, rank)->told == 1 + o->known[rank])
            return; /* found out in another way */
    o->ended[rank] = 0;
}

/* Nobody heard `rank` for the bound, or `at` heard nobody. Clocks may be a little fast. */
static int was_silent(const struct swarm_oracle *o, unsigned at, unsigned rank, uint64_t now_ns)
{
    for (unsigned i = 0; i < o->silences; i++) {
        const struct silence *s = &o->silence[i];
        if ((s->rank == rank || (s->deaf && s->rank == at)) && now_ns >= s->since_ns + o->silent_ns / 1000 * 999 &&
            now_ns <= s->until_ns + LATE_NS)
            return 1;
    }
    return 0;
}

void swarm_told(struct swarm_oracle *o, unsigned at, unsigned rank, uint64_t now_ns, int news)
{
    if (o->bulk)
        swarm_told(o->bulk, at, rank, now_ns, news);
    struct pair *p = of(o, at, rank), *back = of(o, rank, at);
    if (p->told && news)
        swarm_wrong("rank %u is told again that rank %u is dead", at, rank);
    if (news && !o->ended[rank] && !p->cause && !back->told && !was_silent(o, at, rank, now_ns))
        swarm_wrong("rank %u is told that rank %u is dead, which lives", at, rank);
    p->told = (uint8_t)(1 + o->known[rank]);
    p->cause = 0;
    back->cause = 1;
    loses_answers(o, rank, at);
}

static void settle(const struct swarm_oracle *o, unsigned from, unsigned to)
{
    const struct pair *p = of(o, from, to);
    if (o->ended[from])
        return;
    if (!p->told && (o->ended[to] || o->known[to] > p->knows))
        swarm_wrong("rank %u was never told that rank %u %s", from, to,
                    o->ended[to] ? "is dead" : "is another process");
    if (o->ended[to] || p->told)
        return;
    const struct era *e = last_era(p);
    if (whole_from(e, e->came) != e->count)
        swarm_wrong("of %u messages from rank %u rank %u has got %u, and all is closed", e->count, from, to, e->came);
    for (uint32_t i = p->first; i < p->count; i++)
        if (p->reply[i].era == p->eras - 1 && !p->reply[i].lost)
            swarm_wrong("rank %u has got %u of the %u answers of rank %u, and all is closed", from, p->first, p->count,
                        to);
}

uint64_t swarm_oracle_settle(struct swarm_oracle *o)
{
    uint64_t came = o->bulk ? swarm_oracle_settle(o->bulk) : 0;
    for (unsigned from = 0; from < o->ranks; from++)
        for (unsigned to = 0; to < o->ranks; to++) {
            const struct pair *p = of(o, from, to);
            for (unsigned i = 0; i < p->eras; i++)
                came += p->era[i].came;
            settle(o, from, to);
        }
    return came;
}
