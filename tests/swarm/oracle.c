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

struct letters { /* from one life to one receiver */
    struct swarm_letter *at;
    uint32_t count, room;
};
struct reply {
    uint64_t id;
    uint32_t n;
    uint8_t refused, reason;
};
struct pair { /* of a sender and a receiver */
    struct letters sent[SWARM_LIVES];
    uint32_t came;
    uint8_t heard, from_life, to_life; /* heard: these two lives are the pair */
    struct reply *reply;               /* to what `from` asked: [first, count) are on their way */
    uint32_t first, count, room;
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
    uint8_t *ended;
    uint8_t *told; /* [at][rank] */
    struct silence silence[SILENCES];
    unsigned silences;
};

static struct pair *of(const struct swarm_oracle *o, unsigned from, unsigned to)
{
    return &o->pair[from * o->ranks + to];
}

struct swarm_oracle *swarm_oracle_new(unsigned ranks, uint64_t silent_ns, int knows_lives)
{
    struct swarm_oracle *o = calloc(1, sizeof *o);
    TEST_MUST(o != NULL);
    o->ranks = ranks;
    o->silent_ns = silent_ns;
    o->knows_lives = knows_lives;
    o->pair = calloc((size_t)ranks * ranks, sizeof *o->pair);
    o->ended = calloc(ranks, 1);
    o->told = calloc((size_t)ranks * ranks, 1);
    TEST_MUST(o->pair && o->ended && o->told);
    return o;
}

void swarm_oracle_free(struct swarm_oracle *o)
{
    for (unsigned i = 0; i < o->ranks * o->ranks; i++) {
        for (unsigned life = 0; life < SWARM_LIVES; life++)
            free(o->pair[i].sent[life].at);
        free(o->pair[i].reply);
    }
    free(o->pair);
    free(o->ended);
    free(o->told);
    free(o);
}

/* ---- messages ---- */

struct swarm_letter swarm_sent(struct swarm_oracle *o, unsigned from, unsigned life, unsigned to, uint32_t n,
                               unsigned handler, uint32_t answer)
{
    struct letters *l = &of(o, from, to)->sent[life];
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 16;
        l->at = realloc(l->at, l->room * sizeof *l->at);
        TEST_MUST(l->at != NULL);
    }
    uint64_t who = (uint64_t)from << 40 | (uint64_t)to << 16 | life;
    l->at[l->count] = (struct swarm_letter){
        .id = rnl_chance(who, 0, 0, l->count), .n = n, .answer = answer, .handler = (uint8_t)handler};
    return l->at[l->count++];
}

void swarm_unsent(struct swarm_oracle *o, unsigned from, unsigned life, unsigned to)
{
    of(o, from, to)->sent[life].count--;
}

void swarm_gives_up(struct swarm_oracle *o, unsigned from, unsigned life, unsigned to)
{
    struct letters *l = &of(o, from, to)->sent[life];
    l->at[l->count - 1].given_up = 1;
}

/* The first from `i` on that is not given up. */
static uint32_t whole_from(const struct letters *l, uint32_t i)
{
    while (i < l->count && l->at[i].given_up)
        i++;
    return i;
}

static int looks_like(const struct swarm_letter *l, unsigned handler, const void *head, size_t bytes)
{
    return l->handler == handler && bytes <= l->n && (bytes == 0 || memcmp(head, test_pattern(l->id, 0), bytes) == 0);
}

/* Both of a pair have ended, and those in their places meet. Of the first life of the sender nothing may come. */
static void anew(struct pair *p)
{
    p->heard = 0;
    p->came = 0;
    p->sent[0].count = 0;
}

struct swarm_letter swarm_comes(struct swarm_oracle *o, unsigned to, unsigned life, unsigned from, unsigned handler,
                                const void *head, size_t bytes)
{
    struct pair *p = of(o, from, to);
    if (p->heard && p->to_life == 0 && p->from_life == 0 && life == 1)
        anew(p); /* if the other one is new, too: below */
    unsigned from_life = p->from_life;
    if (!p->heard)
        for (from_life = 0; from_life < SWARM_LIVES; from_life++) {
            const struct letters *l = &p->sent[from_life];
            uint32_t first = whole_from(l, 0);
            if (first < l->count && looks_like(&l->at[first], handler, head, bytes))
                break;
        }
    if (from_life == SWARM_LIVES)
        swarm_wrong("the first message from rank %u to rank %u, of %zu bytes for handler %u, was never sent", from, to,
                    bytes, handler);
    if (o->knows_lives && (from_life | life))
        swarm_wrong("rank %u gets a message from rank %u, and the job does not know the process of one of them", to,
                    from);
    if (p->heard && p->to_life != life)
        swarm_wrong("rank %u, started anew, gets a message from rank %u, which its first life had messages of", to,
                    from);
    const struct letters *l = &p->sent[from_life];
    p->came = whole_from(l, p->came);
    if (p->came >= l->count)
        swarm_wrong("rank %u gets %u messages from rank %u, of %u that were sent", to, p->came + 1, from, l->count);
    p->heard = 1;
    p->from_life = (uint8_t)from_life;
    p->to_life = (uint8_t)life;
    const struct swarm_letter *letter = &l->at[p->came++];
    if (!looks_like(letter, handler, head, bytes))
        swarm_wrong("message %u from rank %u to rank %u should have %u bytes for handler %u; at handler %u others come",
                    p->came, from, to, letter->n, letter->handler, handler);
    return *letter;
}

struct swarm_letter swarm_part_comes(struct swarm_oracle *o, unsigned to, unsigned life, unsigned from,
                                     const void *head, size_t bytes)
{
    struct pair *p = of(o, from, to);
    unsigned first = p->heard ? p->from_life : 0, last = p->heard ? first : SWARM_LIVES - 1;
    if (p->heard && p->to_life != life)
        swarm_wrong("rank %u, started anew, gets part of a message from rank %u", to, from);
    for (unsigned from_life = first; from_life <= last; from_life++) {
        const struct letters *l = &p->sent[from_life];
        for (uint32_t i = p->came; i < l->count && l->at[i].given_up; i++)
            if (looks_like(&l->at[i], l->at[i].handler, head, bytes)) {
                p->heard = 1;
                p->from_life = (uint8_t)from_life;
                p->to_life = (uint8_t)life;
                p->came = i + 1;
                return l->at[i];
            }
    }
    swarm_wrong("rank %u gets part of a message from rank %u that was not given up there", to, from);
}

void swarm_part_goes_on(struct swarm_oracle *o, unsigned to, unsigned from, struct swarm_letter *l, size_t at,
                        const void *bytes, size_t n)
{
    struct pair *p = of(o, from, to);
    const struct letters *sent = &p->sent[p->from_life];
    uint32_t i = 0;
    while (i < sent->count && sent->at[i].id != l->id)
        i++;
    for (; i < sent->count && sent->at[i].given_up; i++) {
        const struct swarm_letter *next = &sent->at[i];
        if (at + n > next->n || memcmp(test_pattern(next->id, 0), test_pattern(l->id, 0), at) != 0 ||
            memcmp(test_pattern(next->id, at), bytes, n) != 0)
            continue;
        *l = *next;
        p->came = i + 1 > p->came ? i + 1 : p->came;
        return;
    }
    swarm_bytes(l, at, bytes, n); /* says what is wrong */
    swarm_wrong("rank %u gets part of a message from rank %u that was not given up there", to, from);
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
    p->reply[p->count++] = (struct reply){
        .id = refused ? l->id : swarm_reply_id(l), .n = n, .refused = (uint8_t)refused, .reason = (uint8_t)reason};
}

void swarm_reply_comes(struct swarm_oracle *o, unsigned asker, unsigned replier, const void *bytes, size_t n,
                       int refused, unsigned reason)
{
    struct pair *p = of(o, asker, replier);
    if (p->first == p->count)
        swarm_wrong("rank %u gets an answer of rank %u that it did not give", asker, replier);
    const struct reply *r = &p->reply[p->first++];
    if (refused != r->refused || reason != r->reason || (refused ? n > REFUSED_BYTES || n > r->n : n != r->n))
        swarm_wrong("rank %u gets %s of %zu bytes from rank %u, reason %u, instead of one of %u, %u", asker,
                    refused ? "a refusal" : "an answer", n, replier, reason, r->n, r->reason);
    if (n && memcmp(bytes, test_pattern(r->id, 0), n) != 0)
        swarm_wrong("rank %u gets an answer of rank %u with other bytes", asker, replier);
}

/* ---- deaths, and the end ---- */

void swarm_ended(struct swarm_oracle *o, unsigned rank)
{
    o->ended[rank] = 1;
}

void swarm_is_silent(struct swarm_oracle *o, unsigned rank, uint64_t since_ns, uint64_t for_ns, int deaf)
{
    TEST_MUST(o->silences < SILENCES);
    o->silence[o->silences++] = (struct silence){
        rank, deaf, since_ns, for_ns < UINT64_MAX - since_ns - LATE_NS ? since_ns + for_ns : UINT64_MAX - LATE_NS};
}

void swarm_agreed(struct swarm_oracle *o, unsigned rank)
{
    for (unsigned at = 0; at < o->ranks; at++)
        if (o->told[at * o->ranks + rank])
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
    int given_up = o->told[rank * o->ranks + at];
    if (o->told[at * o->ranks + rank]++ && news)
        swarm_wrong("rank %u is told again that rank %u is dead", at, rank);
    if (news && !o->ended[rank] && !given_up && !was_silent(o, at, rank, now_ns))
        swarm_wrong("rank %u is told that rank %u is dead, which lives", at, rank);
}

uint64_t swarm_oracle_settle(struct swarm_oracle *o)
{
    uint64_t came = 0;
    for (unsigned from = 0; from < o->ranks; from++)
        for (unsigned to = 0; to < o->ranks; to++) {
            const struct pair *p = of(o, from, to);
            int told = o->told[from * o->ranks + to];
            came += p->came;
            if (o->ended[from])
                continue;
            if (o->ended[to] && !told)
                swarm_wrong("rank %u was never told that rank %u is dead", from, to);
            if (o->ended[to] || told)
                continue;
            if (whole_from(&p->sent[0], p->came) != p->sent[0].count)
                swarm_wrong("of %u messages from rank %u rank %u has got %u, and all is closed", p->sent[0].count, from,
                            to, p->came);
            if (p->first != p->count && !o->told[to * o->ranks + from]) /* who answers is their sender */
                swarm_wrong("rank %u has got %u of the %u answers of rank %u, and all is closed", from, p->first,
                            p->count, to);
        }
    return came;
}
