/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_single.c - what a flow does in short, and what it does the general way, is the same to the bit: two pairs of
 * flows are given the same, one of them with config.plain; each datagram and all state are compared after each step.
 * Mostly they talk one message at a time, which is what is done in short, with everything else that can happen in
 * between. A seed that fails is printed; with a number as argument only this seed is run. */
#include "flow/pair.h"
#include "support/random.h"
#include "support/unit.h"

#include <stdio.h>

enum { SEEDS = 300, STEPS = 1500, UNDER_WAY = 64, ROOM = 8976 };

struct letter {
    uint32_t bytes, to, ecn;
    unsigned char at[2][ROOM]; /* as each of the two worlds has it: what is opened changes */
};
struct both {
    struct pair *p[2]; /* in short where it can be; never */
    struct test_random random;
    struct letter *letter[UNDER_WAY];
    struct letter *held; /* one that comes much later */
    unsigned letters;
    uint64_t now, seed;
    uint64_t shorts, others; /* datagrams */
};
static uint64_t only;
static struct test_random draw; /* for `set`, which has no argument */

static void fail_at(const struct both *b, const char *what)
{
    fail_msg("seed %llu at %llu ns: %s (repeat with this number as argument)", (unsigned long long)b->seed,
             (unsigned long long)b->now, what);
}

/* ---- what is compared ---- */

/* Without what points into one's own world. */
static struct rnl_flow bare(const struct rnl_flow *f)
{
    struct rnl_flow out;
    memcpy(&out, f, sizeof out);
    out.config = NULL;
    out.ops = NULL;
    out.path = NULL;
    out.count = NULL;
    out.ctx = NULL;
    out.sealer = NULL;
    out.keys.limits = NULL;
    out.sent.record = NULL;
    out.sent.open = out.sent.lost = NULL;
    out.mtu.table = NULL;
    return out;
}

static int same_records(const struct rnl_sent *a, const struct rnl_sent *b)
{
    if (a->size == 0)
        return 1;
    uint32_t words = a->size < 64 ? 1 : a->size / 64;
    if (memcmp(a->open, b->open, words * sizeof *a->open) != 0 ||
        memcmp(a->lost, b->lost, words * sizeof *a->lost) != 0)
        return 0;
    for (uint64_t n = a->low; (n = rnl_sent_find_open(a, n, a->next)) < a->next; n++) {
        const struct rnl_sent_packet *x = rnl_sent_at(a, n), *y = rnl_sent_at(b, n);
        if (x->sent_ns != y->sent_ns || x->ack_largest != y->ack_largest || x->bytes != y->bytes ||
            x->notes != y->notes || x->flags != y->flags || memcmp(x->note, y->note, x->notes * sizeof x->note[0]) != 0)
            return 0;
    }
    return 1;
}

static void compare(const struct both *b)
{
    for (unsigned s = 0; s < 2; s++) {
        const struct upper *x = &b->p[0]->side[s], *y = &b->p[1]->side[s];
        struct rnl_flow f = bare(&x->flow), g = bare(&y->flow);
        const char *bad = x->wrong ? x->wrong : rnl_flow_valid(&x->flow);
        if (bad)
            fail_at(b, bad);
        if (memcmp(&f, &g, sizeof f) != 0) {
            size_t at = 0;
            while (((const char *)&f)[at] == ((const char *)&g)[at])
                at++;
            fprintf(stderr, "first differing byte of struct rnl_flow: %zu\n", at);
            fail_at(b, "the states of the flows differ");
        }
        if (!same_records(&x->flow.sent, &y->flow.sent))
            fail_at(b, "what is noted of packets in flight differs");
        if (memcmp(&b->p[0]->path[s], &b->p[1]->path[s], sizeof b->p[0]->path[s]) != 0)
            fail_at(b, "what is known of the path differs");
        if (memcmp(&x->count, &y->count, sizeof x->count) != 0)
            fail_at(b, "the counters differ");
        if (x->next != y->next || x->taken != y->taken || x->done != y->done || x->again != y->again)
            fail_at(b, "what the upper sides have differs");
    }
}

/* ---- steps ---- */

/* As a link does: in short if it can be. 0 = there was nothing. */
static int give_out(struct both *b, unsigned side)
{
    static struct letter l;
    uint32_t room = ROOM, bytes[2];
    if (test_random_one_in(&b->random, 50))
        room = 60 + test_random_below(&b->random, 60);
    for (unsigned w = 0; w < 2; w++) {
        struct rnl_flow *f = &b->p[w]->side[side].flow;
        struct rnl_flow_single_packet alone;
        bytes[w] = rnl_flow_single(f, l.at[w], room, b->now, &alone);
        if (bytes[w])
            rnl_flow_single_sent(f, &alone, b->now);
        if (w == 1 && bytes[w])
            fail_at(b, "it was done in short although it was not to be");
        b->shorts += bytes[w] != 0;
        if (bytes[w] == 0) {
            bytes[w] = rnl_flow_output(f, l.at[w], room, b->now);
            b->others += w == 0 && bytes[w];
        }
    }
    if (bytes[0] != bytes[1] || memcmp(l.at[0], l.at[1], bytes[0]) != 0)
        fail_at(b, "the datagrams differ");
    l.bytes = bytes[0];
    l.to = !side;
    l.ecn = rnl_flow_ecn(&b->p[0]->side[side].flow);
    if (l.bytes && b->letters < UNDER_WAY) { /* else it is lost */
        b->letter[b->letters] = malloc(sizeof l);
        memcpy(b->letter[b->letters++], &l, sizeof l);
    }
    compare(b);
    return l.bytes != 0;
}

static void arrive(struct both *b, unsigned which, int again)
{
    struct letter *l = b->letter[which];
    int took[2];
    static struct letter copy;
    memcpy(&copy, l, sizeof copy);
    for (unsigned w = 0; w < 2; w++)
        took[w] = rnl_flow_input(&b->p[w]->side[l->to].flow, l->at[w], l->bytes, l->ecn, b->now);
    if (took[0] != took[1])
        fail_at(b, "a datagram is taken here and refused there");
    compare(b);
    if (again) {
        memcpy(l, &copy, sizeof copy);
        return;
    }
    free(l);
    memmove(&b->letter[which], &b->letter[which + 1], (--b->letters - which) * sizeof b->letter[0]);
}

static void want(struct both *b, unsigned side, unsigned units)
{
    for (unsigned w = 0; w < 2; w++)
        upper_send(&b->p[w]->side[side], units);
}

static void pass(struct both *b)
{
    static const uint32_t most[] = {2000, 20000, 200000, 2000000, 200000000};
    b->now +=
        test_random_below(&b->random, most[test_random_below(&b->random, 20) < 15 ? test_random_below(&b->random, 2)
                                                                                  : test_random_below(&b->random, 5)]);
}

static void disturb(struct both *b, unsigned side)
{
    unsigned which = test_random_below(&b->random, b->letters ? b->letters : 1);
    switch (test_random_below(&b->random, 10)) {
    case 9: /* held up */
        if (b->letters && !b->held) {
            b->held = b->letter[which];
            memmove(&b->letter[which], &b->letter[which + 1], (--b->letters - which) * sizeof b->letter[0]);
        }
        break;
    case 0: /* lost */
        if (b->letters) {
            free(b->letter[which]);
            memmove(&b->letter[which], &b->letter[which + 1], (--b->letters - which) * sizeof b->letter[0]);
        }
        break;
    case 1: /* twice */
        if (b->letters)
            arrive(b, which, 1);
        break;
    case 2: /* out of turn */
        if (b->letters)
            arrive(b, which, 0);
        break;
    case 3: /* changed */
        if (b->letters) {
            struct letter *l = b->letter[which];
            unsigned at = test_random_below(&b->random, test_random_below(&b->random, 2) ? l->bytes : 36);
            unsigned char bit = (unsigned char)(1u << test_random_below(&b->random, 8));
            at = at < l->bytes ? at : l->bytes - 1;
            l->at[0][at] ^= bit;
            l->at[1][at] ^= bit;
        }
        break;
    case 4: /* marked */
        if (b->letters)
            b->letter[which]->ecn = test_random_below(&b->random, 4);
        break;
    case 5: /* much at once */
        want(b, side, 1 + test_random_below(&b->random, 40));
        break;
    case 6: /* a socket that is fuller, or emptier */
        for (unsigned w = 0; w < 2; w++) {
            struct test_random r = test_random_of(b->seed, b->now);
            b->p[w]->side[side].window = test_random_below(&r, 20000);
        }
        break;
    case 7:
        for (unsigned w = 0; w < 2; w++)
            rnl_flow_ping(&b->p[w]->side[side].flow);
        break;
    default: /* its turn without anything to send */
        (void)give_out(b, side);
    }
    compare(b);
}

static void set(struct pair *p)
{
    struct test_random r = draw;
    unsigned algorithm = test_random_below(&r, RNL_CONGEST_ALGORITHMS);
    unsigned encrypt = test_random_one_in(&r, 4), few = test_random_one_in(&r, 3), ecn = test_random_one_in(&r, 4);
    unsigned every = 1 + test_random_below(&r, 16), alive = test_random_one_in(&r, 8), near = test_random_below(&r, 2);
    p->keys.suite.protect = encrypt ? RNL_PROTECT_ENCRYPT : RNL_PROTECT_AUTHENTICATE;
    if (few)
        p->keys.limits = (struct rnl_key_limits){20 + test_random_below(&r, 60), 120, 1000};
    for (unsigned i = 0; i < 2; i++) {
        p->config[i].algorithm = (uint8_t)algorithm;
        p->config[i].ecn = (uint8_t)ecn;
        p->config[i].ack_every = every;
        p->config[i].dead_ns = 0;
        p->config[i].keepalive_ns = alive ? 1000000 : 0;
        p->config[i].congest.near_ns = near ? 100000 : 8000;
    }
}

static void set_plain(struct pair *p)
{
    set(p);
    p->config[0].plain = p->config[1].plain = 1;
}

static void talk(uint64_t seed, uint64_t *shorts, uint64_t *others)
{
    struct both b = {.random = test_random_of(seed, 1), .now = 1000000, .seed = seed};
    draw = test_random_of(seed, 2);
    uint32_t unit = 8 + test_random_below(&b.random, 300);
    unsigned wild = 4 + test_random_below(&b.random, 60);
    b.p[0] = pair_new(unit, set);
    b.p[1] = pair_new(unit, set_plain);
    assert_true(b.p[0] && b.p[1]);
    for (unsigned i = 0, side = 0; i < STEPS / test_slowness(); i++, side = !side) {
        want(&b, side, 1);
        pass(&b);
        for (unsigned k = 0; k < 4 && give_out(&b, side); k++)
            ;
        if (test_random_one_in(&b.random, wild))
            disturb(&b, test_random_below(&b.random, 2));
        pass(&b);
        if (b.held && b.letters < UNDER_WAY && test_random_one_in(&b.random, 12)) {
            b.letter[b.letters++] = b.held;
            b.held = NULL;
        }
        while (b.letters && !test_random_one_in(&b.random, 20 * wild))
            arrive(&b, 0, 0);
    }
    *shorts += b.shorts;
    *others += b.others;
    while (b.letters)
        free(b.letter[--b.letters]);
    free(b.held);
    pair_free(b.p[0]);
    pair_free(b.p[1]);
}

static void in_short_it_is_the_same_to_the_bit(void **state)
{
    (void)state;
    uint64_t shorts = 0, others = 0;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : SEEDS / test_slowness()); seed++)
        talk(seed, &shorts, &others);
    if (only)
        printf("%llu datagrams in short, %llu the general way\n", (unsigned long long)shorts,
               (unsigned long long)others);
    else if (shorts < others / 8 || others < shorts / 8)
        fail_msg("%llu datagrams in short and %llu the general way: one of them was hardly tested",
                 (unsigned long long)shorts, (unsigned long long)others);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_short_it_is_the_same_to_the_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
