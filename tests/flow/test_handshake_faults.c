/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_handshake_faults.c - two processes, and three, shake hands while each datagram is lost, repeated or late, and
 * each pair of them; while they restart at every step; while everything that was ever said is said again at every step.
 * hs_world.c checks at each step that no key comes twice, that nobody is answered with more than he sent, and that
 * nobody is sure of a connection that the other never made. Here: all get what they want in the end, and lose nothing
 * that was up. */
#include "flow/hs_world.h"
#include "support/unit.h"

#include <stdio.h>

#include "support/random.h"

#define MS ((uint64_t)1000000)

enum { DEPTH = 9 /* datagrams of a handshake, and some of what follows */ };

static struct hs_world *w;

static int setup(void **state)
{
    (void)state;
    w = malloc(sizeof *w);
    return w ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(w);
    return 0;
}

/* What happens besides the faults. */
struct story {
    int second;            /* 0: A wants; 1: both want, B after `delay_ns` */
    uint64_t delay_ns;     /* ... */
    unsigned after;        /* deliveries after which a node restarts, 0 = never */
    unsigned node, wanted; /* which; whether it then wants what it wanted */
    int told;
};

static unsigned false_deaths(void)
{
    unsigned n = 0;
    for (unsigned a = 0; a < w->nodes; a++)
        for (unsigned b = 0; b < w->nodes; b++)
            n += w->node[a].link[b].gone_up;
    return n;
}

static void tell(const struct story *s, const struct hs_fault *faults, unsigned n)
{
    hs_world_init(w, 2, 1);
    w->told = s->told;
    w->fault = faults;
    w->faults = n;
    hs_world_want(w, 0, 1);
    int want = s->second, restart = s->after != 0;
    uint64_t when = w->now_ns + s->delay_ns;
    for (int moved = 1; moved;) {
        if (want && w->now_ns >= when) {
            hs_world_want(w, 1, 0);
            want = 0;
        }
        if (restart && w->delivered == s->after) {
            hs_world_restart(w, s->node, (int)s->wanted);
            restart = 0;
        }
        moved = hs_world_step(w, want ? when : w->now_ns + 60000 * MS);
        if (!moved && want) {
            w->now_ns = when;
            moved = 1;
        }
    }
    hs_world_run(w);
    int restarted = s->after && !restart;
    int alone = restarted && !s->wanted && s->node == 0 && !s->second; /* nobody is left who wants it */
    if (!hs_world_settled(w) || false_deaths()) {
        printf("second %d delay %llu restart %u of %u (wants %u, told %d); faults:", s->second,
               (unsigned long long)s->delay_ns, s->after, s->node, s->wanted, s->told);
        for (unsigned i = 0; i < n; i++)
            printf(" %u of datagram %u", faults[i].kind, faults[i].ordinal);
        printf("; ended when up: %u\n", false_deaths());
        for (unsigned a = 0; a < 2; a++)
            printf("  %u: state %u wants %d heard %u failed %u %s\n", a, w->node[a].link[!a].peer.state,
                   w->node[a].link[!a].wants, w->node[a].link[!a].heard, w->node[a].link[!a].failed,
                   w->node[a].link[!a].sentence);
        fail();
    }
    if (!alone)
        assert_true(w->keys_count >= 2);
    hs_world_fini(w);
}

static const struct story openings[] = {
    {0, 0, 0, 0, 0, 0},          {1, 0, 0, 0, 0, 0},           {1, MS / 2, 0, 0, 0, 0},
    {1, MS, 0, 0, 0, 0},         {1, MS + MS / 2, 0, 0, 0, 0}, {1, 2 * MS, 0, 0, 0, 0},
    {1, 2 * MS + 1, 0, 0, 0, 0}, {1, 3 * MS + 1, 0, 0, 0, 0},  {1, 11 * MS, 0, 0, 0, 0},
};
enum { OPENINGS = sizeof openings / sizeof *openings };

static void each_pair_of_datagrams_is(void **state)
{
    (void)state;
    unsigned step = test_slowness() > 1 ? 3 : 1, n = 0;
    for (unsigned o = 0; o < OPENINGS; o++)
        for (uint32_t d = 1; d <= DEPTH; d++)
            for (uint32_t e = d + 1; e <= DEPTH + 2; e++)
                for (unsigned kinds = 0; kinds < 16; kinds++)
                    if (n++ % step == 0)
                        tell(&openings[o], (struct hs_fault[]){{d, HS_DROP + kinds % 4}, {e, HS_DROP + kinds / 4}}, 2);
}

static void either_side_restarts_at_each_step(void **state)
{
    (void)state;
    unsigned step = test_slowness() > 1 ? 3 : 1, n = 0;
    for (unsigned o = 0; o < OPENINGS; o++)
        for (unsigned variant = 0; variant < 8; variant++)
            for (unsigned after = 1; after <= DEPTH; after++) {
                struct story s = openings[o];
                s.after = after;
                s.node = variant & 1;
                s.wanted = variant >> 1 & 1;
                s.told = variant >> 2;
                tell(&s, NULL, 0);
                for (uint32_t d = 1; d <= 2 * DEPTH; d++)
                    for (unsigned kind = HS_DROP; kind < HS_FAULTS; kind++)
                        if (n++ % step == 0)
                            tell(&s, &(struct hs_fault){d, kind}, 1);
            }
}

/* Lives one life and a half: A and B connect, B restarts and they connect again. Then from the start, and at each step
 * everything that was said in both lives is said again to whom it was for, from its own address or a stranger's. */
static void everything_that_was_ever_said_is_said_again_at_each_step(void **state)
{
    (void)state;
    unsigned most = test_slowness() > 1 ? 9 : 14;
    for (int both = 0; both < 2; both++)
        for (unsigned life = 0; life < 2; life++)
            for (unsigned steps = 0; steps <= most; steps++)
                for (unsigned from = 0; from < 2; from++) {
                    hs_world_init(w, 2, 1);
                    w->told = 1;
                    for (unsigned l = 0; l <= life; l++) {
                        if (l > 0)
                            hs_world_restart(w, 1, 1);
                        hs_world_want(w, 0, 1);
                        if (both)
                            hs_world_want(w, 1, 0);
                        if (l < life)
                            hs_world_run(w);
                    }
                    for (unsigned i = 0; i < steps; i++)
                        hs_world_step(w, UINT64_MAX);
                    unsigned said = w->said_count;
                    for (unsigned i = 0; i < said; i++) {
                        struct hs_datagram d = w->said[i];
                        hs_world_inject(w, from ? HS_STRANGER : d.from, d.to, d.at, d.bytes);
                        if (i % 8 == 7)
                            hs_world_step(w, UINT64_MAX);
                    }
                    hs_world_run(w);
                    assert_true(hs_world_settled(w));
                    assert_int_equal(false_deaths(), 0);
                    /* and once more when it is up: nothing moves at all */
                    struct rnl_hs_peer a = w->node[0].link[1].peer, b = w->node[1].link[0].peer;
                    said = w->said_count;
                    for (unsigned i = 0; i < said; i++) {
                        struct hs_datagram d = w->said[i];
                        hs_world_inject(w, from ? HS_STRANGER : d.from, d.to, d.at, d.bytes);
                        hs_world_run(w);
                    }
                    assert_memory_equal(&a, &w->node[0].link[1].peer, sizeof a);
                    assert_memory_equal(&b, &w->node[1].link[0].peer, sizeof b);
                    assert_true(hs_world_settled(w));
                    hs_world_fini(w);
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_of_datagrams_is),
        cmocka_unit_test(either_side_restarts_at_each_step),
        cmocka_unit_test(everything_that_was_ever_said_is_said_again_at_each_step),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
