/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of a peer's addresses packets go to: the machine alone, with times that a test chooses. */
#include "net/flow/paths.h"
#include "support/unit.h"

#define MS ((uint64_t)1000 * 1000)
enum { ACTIVE = 0, OTHER = 1, THIRD = 2, ALL = 7, PATIENCE_MS = 250, SETTLED_MS = 30000 };

/* The active path has been silent for so long, and everything that came was taken in. */
static unsigned step(struct rnl_paths *w, uint64_t stuck_ms, uint64_t now_ms, int *move)
{
    return rnl_paths_step(w, stuck_ms * MS, now_ms * MS, now_ms * MS, move);
}

static void in_trouble(struct rnl_paths *w, uint64_t now_ms)
{
    int move;
    rnl_paths_init(w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    assert_int_equal(step(w, PATIENCE_MS - 1, now_ms - 1, &move), 0);
    assert_int_equal(step(w, PATIENCE_MS, now_ms, &move), ALL);
    assert_int_equal(move, 0);
}

static void asked(struct rnl_paths *w, unsigned way, uint64_t value, uint64_t now_ms)
{
    rnl_paths_challenged(w, way, value, 100 + value, now_ms * MS);
}

static int answered(struct rnl_paths *w, unsigned way, uint64_t value, uint64_t now_ms)
{
    return rnl_paths_response(w, way, value, now_ms * MS);
}

/* The connection has begun on another path than the first, which is the best and was not there yet. */
static void the_first_is_taken_when_it_is_wanted_and_responds(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, OTHER, PATIENCE_MS * MS, SETTLED_MS * MS);
    rnl_paths_want_first(&w);
    assert_int_equal(step(&w, 0, 1000, &move), 1u << ACTIVE);
    asked(&w, ACTIVE, 5, 1000);
    assert_int_equal(rnl_paths_deadline(&w), 1050 * MS);
    assert_int_equal(step(&w, 0, 1049, &move), 0);
    assert_int_equal(step(&w, 3, 1050, &move), 1u << ACTIVE); /* something was acknowledged, and it is wanted still */
    asked(&w, ACTIVE, 6, 1050);
    assert_int_equal(answered(&w, THIRD, 6, 1060), 0);
    assert_int_equal(answered(&w, ACTIVE, 6, 1060), 1);
    assert_int_equal(rnl_paths_deadline(&w), 1060 * MS);
    assert_int_equal(step(&w, 0, 1060, &move), 0);
    assert_int_equal(move, 1);
    assert_int_equal(w.active, ACTIVE);
    assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
    assert_int_equal(step(&w, 0, 5000, &move), 0);
    assert_int_equal(move, 0);
}

static void it_is_not_wanted_for_ever(void **state)
{
    struct rnl_paths w;
    unsigned challenges = 0;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, OTHER, PATIENCE_MS * MS, SETTLED_MS * MS);
    rnl_paths_want_first(&w);
    for (uint64_t ms = 1000; ms < 20000; ms++)
        challenges += step(&w, 0, ms, &move);
    assert_true(challenges >= 4 && challenges <= 8);
    assert_int_equal(w.active, OTHER);
    assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
    rnl_paths_set_active(&w, ACTIVE);
    rnl_paths_want_first(&w); /* it is active already */
    assert_int_equal(step(&w, 0, 30000, &move), 0);
}

/* The path in use dies while the first is wanted: all are challenged, and the one that responds is taken. */
static void what_is_wanted_does_not_keep_it_on_a_dead_path(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, OTHER, PATIENCE_MS * MS, SETTLED_MS * MS);
    rnl_paths_want_first(&w);
    assert_int_equal(step(&w, 0, 1000, &move), 1u << ACTIVE);
    asked(&w, ACTIVE, 5, 1000);
    assert_int_equal(step(&w, PATIENCE_MS, 1400, &move), ALL);
    asked(&w, THIRD, 6, 1400);
    assert_int_equal(answered(&w, THIRD, 6, 1401), 1);
    (void)step(&w, PATIENCE_MS + 11, 1411, &move);
    assert_int_equal(move, 1);
    assert_int_equal(w.active, THIRD);
}

/* The card of the active path has no link: all are challenged, and the first other that responds is taken at once. */
static void a_path_whose_card_has_no_link_is_left_at_once(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    rnl_paths_down(&w, 1u << OTHER);
    assert_int_equal(step(&w, 0, 999, &move), 0);
    rnl_paths_down(&w, 1u << ACTIVE);
    assert_int_equal(step(&w, 0, 1000, &move), ALL);
    assert_int_equal(move, 0);
    asked(&w, ACTIVE, 5, 1000);
    asked(&w, OTHER, 6, 1000);
    assert_int_equal(step(&w, 0, 1001, &move), 0);
    assert_int_equal(answered(&w, OTHER, 6, 1002), 1);
    assert_int_equal(rnl_paths_deadline(&w), 1002 * MS);
    (void)step(&w, 0, 1002, &move);
    assert_int_equal(move, 1);
    assert_int_equal(w.active, OTHER);
    assert_int_equal(step(&w, 0, 1003, &move), 0);
    assert_int_equal(move, 0);
}

/* The kernel responds first, and another card a little later: that is taken, if it is no later than a moment. */
static void a_better_path_has_a_moment(void **state)
{
    (void)state;
    for (unsigned ranked = 0; ranked < 2; ranked++)
        for (unsigned after_ms = 1; after_ms < 30; after_ms += 4) {
            struct rnl_paths w;
            int move;
            rnl_paths_init(&w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
            w.ranked = ranked;
            rnl_paths_down(&w, 1u << ACTIVE);
            assert_int_equal(step(&w, 0, 1000, &move), ALL);
            asked(&w, OTHER, 6, 1000);
            asked(&w, THIRD, 7, 1000);
            assert_int_equal(answered(&w, THIRD, 7, 1001), 1);
            for (uint64_t ms = 1001; w.active == ACTIVE && ms < 1100; ms++) {
                if (ms == 1001 + after_ms)
                    assert_int_equal(answered(&w, OTHER, 6, ms), 1);
                (void)step(&w, 0, ms, &move);
                assert_true(!move || w.active == THIRD || w.rtt_ns == (1 + after_ms) * MS);
                assert_true(ms < 1011 || move);
            }
            assert_int_equal(w.active, ranked && after_ms < 10 ? OTHER : THIRD);
        }
}

/* A path that responds shows that its card is mistaken: the card is not believed again until it says so anew. */
static void a_path_that_responds_works_whatever_its_card_says(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    rnl_paths_down(&w, 1u << ACTIVE);
    assert_int_equal(step(&w, 0, 1000, &move), ALL);
    asked(&w, ACTIVE, 5, 1000);
    asked(&w, OTHER, 6, 1000);
    assert_int_equal(answered(&w, ACTIVE, 5, 1001), 1);
    assert_int_equal(answered(&w, OTHER, 6, 1002), 0);
    assert_int_equal(step(&w, 0, 1003, &move), 0);
    assert_int_equal(step(&w, 100, 2000, &move), 0);
    assert_int_equal(move, 0);
    rnl_paths_down(&w, 1u << ACTIVE);
    assert_int_equal(step(&w, 0, 3000, &move), ALL);
}

/* One card has both paths, and is mistaken: its word must not make the connection go to and fro between them. */
static void a_path_that_has_responded_is_kept_whatever_its_card_said(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    rnl_paths_down(&w, 1u << ACTIVE | 1u << OTHER);
    assert_int_equal(step(&w, 0, 1000, &move), ALL);
    asked(&w, ACTIVE, 5, 1000);
    asked(&w, OTHER, 6, 1000);
    assert_int_equal(answered(&w, OTHER, 6, 1001), 1);
    (void)step(&w, 0, 1001, &move);
    assert_int_equal(move, 1);
    assert_int_equal(w.active, OTHER);
    assert_int_equal(step(&w, 0, 1002, &move), 0);
    assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
}

/* A flow's own timers are far apart by then. */
static void it_is_due_when_the_silence_reaches_its_limit(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    assert_int_equal(step(&w, PATIENCE_MS - 30, 1000, &move), 0);
    assert_int_equal(rnl_paths_deadline(&w), 1030 * MS);
    assert_int_equal(step(&w, 0, 1010, &move), 0);
    assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
}

/* Another has answered: the active path has 10 ms for it, or twice what the other took. */
static void the_aim_has_its_chance(void **state)
{
    static const uint64_t took_ms[] = {1, 40}, chance_ms[] = {10, 80};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct rnl_paths w;
        int move;
        in_trouble(&w, 1000);
        asked(&w, ACTIVE, 5, 1000);
        asked(&w, OTHER, 6, 1000);
        uint64_t at = 1000 + took_ms[k], until = at + chance_ms[k];
        assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
        assert_int_equal(answered(&w, OTHER, 6, at), 1);
        assert_int_equal(rnl_paths_deadline(&w), until * MS);
        assert_int_equal(step(&w, 300, at, &move), ALL); /* at once, not after its gap */
        (void)step(&w, 400, until - 1, &move);
        assert_int_equal(move, 0);
        (void)rnl_paths_step(&w, 400 * MS, (until - 1) * MS, (until + 500) * MS, &move); /* we were away ourselves */
        assert_int_equal(move, 0);
        (void)step(&w, 400, until, &move);
        assert_int_equal(move, 1);
        assert_int_equal(w.active, OTHER);
        assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
    }
}

static void what_is_acknowledged_settles_it(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    in_trouble(&w, 1000);
    asked(&w, OTHER, 6, 1000);
    asked(&w, OTHER, 7, 1000);
    assert_int_equal(answered(&w, OTHER, 6, 1001), 1);
    assert_int_equal(step(&w, 0, 1005, &move), 0);
    assert_int_equal(step(&w, 0, 1100, &move), 0);
    assert_int_equal(move, 0);
    assert_int_equal(w.active, ACTIVE);
    /* What was asked then proves nothing in the next trouble. */
    assert_int_equal(step(&w, 260, 2000, &move), ALL);
    assert_int_equal(answered(&w, OTHER, 7, 2001), 0);
}

/* The peer was away: what its first answer took is the age of the question. */
static void the_least_of_its_answers_is_the_round_trip(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    in_trouble(&w, 1000);
    asked(&w, OTHER, 6, 1000);
    asked(&w, THIRD, 7, 1000);
    asked(&w, OTHER, 8, 1050);
    assert_int_equal(answered(&w, OTHER, 6, 1300), 1);
    assert_int_equal(answered(&w, OTHER, 8, 1300), 1);
    assert_int_equal(rnl_paths_deadline(&w), 1800 * MS);
    assert_int_equal(step(&w, 600, 1300, &move), ALL);
    asked(&w, OTHER, 9, 1300);
    asked(&w, THIRD, 10, 1300);
    assert_int_equal(answered(&w, THIRD, 10, 1301), 1); /* of a way that it does not go */
    assert_int_equal(answered(&w, OTHER, 9, 1303), 1);
    (void)step(&w, 609, 1309, &move);
    assert_int_equal(move, 0);
    (void)step(&w, 610, 1310, &move);
    assert_int_equal(move, 1);
    assert_int_equal(w.active, OTHER);
    assert_int_equal(w.rtt_ns, 3 * MS);
}

/* What a peer that does not have the connection quotes. */
static void a_challenge_is_known_by_its_number(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    in_trouble(&w, 1000);
    asked(&w, ACTIVE, 5, 1000);
    asked(&w, OTHER, 6, 1000);
    assert_int_equal(rnl_paths_pending(&w, OTHER, 106), 1);
    assert_int_equal(rnl_paths_pending(&w, OTHER, 105), 0);
    assert_int_equal(rnl_paths_pending(&w, THIRD, 106), 0);
    assert_int_equal(rnl_paths_pending(&w, 3, 106), 0);
    assert_int_equal(rnl_paths_pending(&w, OTHER, 0), 0);
    assert_int_equal(step(&w, 0, 1010, &move), 0); /* the trouble is over */
    assert_int_equal(rnl_paths_pending(&w, OTHER, 106), 0);
    assert_int_equal(rnl_paths_pending(&w, OTHER, 0), 0);
}

static int hint(struct rnl_paths *w, unsigned way, uint64_t next, uint64_t acked, uint64_t now_ms)
{
    return rnl_paths_hint(w, way, next, acked, now_ms * MS);
}

/* All are asked again and again, and nobody waits for a timeout, until something as late as the hint has arrived. */
static void a_hint_is_followed_soon(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    rnl_paths_init(&w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
    assert_int_equal(hint(&w, OTHER, 10, 9, 1000), 1);
    assert_int_equal(step(&w, 0, 1009, &move), 0);
    assert_int_equal(rnl_paths_deadline(&w), 1010 * MS);
    assert_int_equal(step(&w, 0, 1010, &move), ALL);
    assert_int_equal(rnl_paths_deadline(&w), 1060 * MS);
    rnl_paths_acked(&w, 9);
    assert_int_equal(step(&w, 0, 1060, &move), ALL);
    rnl_paths_acked(&w, 10);
    assert_int_equal(step(&w, 0, 1300, &move), 0);
    assert_int_equal(rnl_paths_deadline(&w), UINT64_MAX);
}

/* The peer sends from elsewhere, and what we send arrives. */
static void in_peace(struct rnl_paths *w)
{
    rnl_paths_init(w, 3, ACTIVE, PATIENCE_MS * MS, SETTLED_MS * MS);
    assert_int_equal(hint(w, OTHER, 10, 9, 1000), 1);
    assert_int_equal(hint(w, OTHER, 11, 9, 1249), 0); /* at most every 250 ms ... */
    assert_int_equal(hint(w, OTHER, 11, 9, 1250), 1); /* ... as long as nothing sent since has arrived */
    assert_int_equal(hint(w, OTHER, 12, 10, 1500), 1);
    assert_int_equal(hint(w, OTHER, 13, 12, 1501), 0);
    for (uint64_t ms = 1502; ms < 20000; ms += 10)
        assert_int_equal(hint(w, OTHER, 13, 12, ms), 0);
}

static void a_hint_that_is_settled_asks_no_more(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    in_peace(&w);
    assert_int_equal(step(&w, PATIENCE_MS - 1, 20000, &move), 0); /* and there is patience again */
    assert_int_equal(step(&w, PATIENCE_MS, 20001, &move), ALL);
}

static void what_settled_a_hint_does_not_last(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    in_peace(&w); /* data from a third address, and from there again */
    assert_int_equal(hint(&w, THIRD, 13, 12, 20000), 1);
    assert_int_equal(hint(&w, OTHER, 14, 13, 20250), 1);
    in_peace(&w); /* data from the active path, and from elsewhere again */
    assert_int_equal(hint(&w, ACTIVE, 13, 12, 20000), 0);
    assert_int_equal(hint(&w, OTHER, 13, 12, 20001), 1);
    assert_int_equal(hint(&w, ACTIVE, 14, 12, 20002), 0); /* an answer to what was asked before that is none */
    assert_int_equal(hint(&w, OTHER, 14, 13, 20003), 0);
    assert_int_equal(hint(&w, OTHER, 14, 13, 20251), 1);
    in_peace(&w); /* the peer is in trouble, and looks for a way to us */
    rnl_paths_doubt(&w, ACTIVE);
    assert_int_equal(hint(&w, OTHER, 13, 12, 20000), 0);
    rnl_paths_doubt(&w, OTHER);
    assert_int_equal(hint(&w, OTHER, 13, 12, 20001), 1);
    in_peace(&w); /* we have moved */
    assert_int_equal(step(&w, PATIENCE_MS, 20000, &move), ALL);
    asked(&w, THIRD, 6, 20000);
    assert_int_equal(answered(&w, THIRD, 6, 20001), 1);
    (void)step(&w, 400, 20100, &move);
    assert_int_equal(move, 1);
    assert_int_equal(hint(&w, OTHER, 13, 12, 20101), 1);
}

/* The peer cannot say that it is in trouble: now and then it is asked without that. */
static void what_settled_a_hint_is_asked_again(void **state)
{
    struct rnl_paths w;
    int move;
    (void)state;
    in_peace(&w); /* asked at 1500 */
    uint64_t at = 1500, next = 13;
    for (unsigned turn = 0; turn < 3; turn++, next++) {
        at += SETTLED_MS;
        assert_int_equal(hint(&w, OTHER, next, next - 1, at - 1), 0);
        assert_int_equal(step(&w, PATIENCE_MS - 1, at - 1, &move), 0);
        assert_int_equal(hint(&w, OTHER, next, next - 1, at), 1);
        assert_int_equal(step(&w, 9, at + 9, &move), 0);
        assert_int_equal(hint(&w, OTHER, next + 1, next, at + 20), 0); /* it arrives */
        assert_int_equal(step(&w, PATIENCE_MS - 1, at + 500, &move), 0);
        assert_int_equal(hint(&w, OTHER, next + 1, next, at + 500), 0);
    }
    at += SETTLED_MS;
    assert_int_equal(hint(&w, OTHER, next, next - 1, at), 1);
    assert_int_equal(hint(&w, OTHER, next + 1, next - 1, at + 249), 0);
    assert_int_equal(step(&w, 10, at + 10, &move), ALL); /* it does not */
    assert_int_equal(hint(&w, OTHER, next + 1, next - 1, at + 250), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_taken_when_it_is_wanted_and_responds),
        cmocka_unit_test(it_is_not_wanted_for_ever),
        cmocka_unit_test(what_is_wanted_does_not_keep_it_on_a_dead_path),
        cmocka_unit_test(the_aim_has_its_chance),
        cmocka_unit_test(a_path_whose_card_has_no_link_is_left_at_once),
        cmocka_unit_test(a_better_path_has_a_moment),
        cmocka_unit_test(a_path_that_responds_works_whatever_its_card_says),
        cmocka_unit_test(a_path_that_has_responded_is_kept_whatever_its_card_said),
        cmocka_unit_test(it_is_due_when_the_silence_reaches_its_limit),
        cmocka_unit_test(the_least_of_its_answers_is_the_round_trip),
        cmocka_unit_test(what_is_acknowledged_settles_it),
        cmocka_unit_test(a_challenge_is_known_by_its_number),
        cmocka_unit_test(a_hint_is_followed_soon),
        cmocka_unit_test(a_hint_that_is_settled_asks_no_more),
        cmocka_unit_test(what_settled_a_hint_does_not_last),
        cmocka_unit_test(what_settled_a_hint_is_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
