/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_state.c - one member of a group by itself (order.h), whom another joins or who joins: how long a log and a state
 * may be, what becomes of them, and what the member says while views are made and given up. */
#include "api/group/order.h"
#include "runnel/runnel.h"
#include "support/unit.h"

#include <malloc.h>
#include <unistd.h>

enum { SAID = 64, MEMBERS = 4 };
static struct {
    struct rnl_order *o;
    uint32_t self;
    unsigned delivered;
    int status;
    struct {
        uint32_t to;
        struct rnl_order_head head;
    } said[SAID]; /* since `forget_said` */
    unsigned said_count;
} lone;

static void say(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    (void)ctx, (void)item;
    assert_true(lone.said_count < SAID);
    lone.said[lone.said_count].to = to;
    lone.said[lone.said_count++].head = *head;
}

static void forget_said(void)
{
    lone.said_count = 0;
}

/* The one message of that kind to that member, or NULL: it said none. */
static const struct rnl_order_head *said_to(uint32_t to, uint8_t kind)
{
    const struct rnl_order_head *found = NULL;
    for (unsigned i = 0; i < lone.said_count; i++)
        if (lone.said[i].to == to && lone.said[i].head.kind == kind) {
            assert_null(found);
            found = &lone.said[i].head;
        }
    return found;
}

static void count(void *ctx, const struct rnl_order_item *item)
{
    (void)ctx, (void)item;
    assert_int_equal(lone.status, 0);
    lone.delivered++;
}

static void end(void *ctx, int status)
{
    (void)ctx;
    lone.status = status;
}

static void cannot_save(void *ctx)
{
    (void)ctx;
    rnl_order_fail(lone.o, RNL_ERR_NO_MEMORY);
}

static void begin(uint32_t self, uint32_t size, uint32_t in_first, void (*save)(void *ctx))
{
    static struct rnl_order_ops ops = {.send = say, .deliver = count, .ended = end};
    bool first[MEMBERS] = {false};
    const struct rnl_order_options opt = {.self = self, .size = size, .first = first, .budget = 1 << 16};
    ops.save = save;
    memset(first, true, in_first);
    memset(&lone, 0, sizeof lone);
    lone.self = self;
    lone.o = rnl_order_new(&opt, &ops, NULL);
    assert_non_null(lone.o);
    rnl_order_begin(lone.o);
}

/* Makes a group of members 0 and 1, of which 0 is in the first view. */
static void begin_lone(uint32_t self)
{
    begin(self, 2, 1, cannot_save);
}

static void hear_of(uint32_t from, const struct rnl_order_head *head, const void *data, size_t n)
{
    struct rnl_order_item *item = n ? rnl_order_item_new(lone.o, n) : NULL;
    if (item)
        memcpy(item->data, data, n);
    rnl_order_input(lone.o, from, head, item);
}

static void hear(const struct rnl_order_head *head, const void *data, size_t n)
{
    hear_of(lone.self ? 0 : 1, head, data, n);
}

/* Each is believed to be of a later attempt. A walk from the one's place to the other's would take years. */
static void a_log_that_is_begun_anew_is_as_long_as_it_is(void **state)
{
    static const uint64_t places[] = {(uint64_t)1 << 60, 5, 6};
    (void)state;
    begin_lone(1);
    alarm(20);
    for (uint32_t i = 0; i < 3; i++) {
        struct {
            uint64_t in_log[2];
            uint32_t epoch, member[2];
        } welcome = {.epoch = 2 + i, .member = {0, 1 | RNL_ORDER_NEW}};
        const struct rnl_order_head head = {.kind = RNL_ORDER_WELCOME, .epoch = welcome.epoch, .seq = places[i]};
        hear(&head, &welcome, 28);
        assert_true(rnl_order_is_blank(lone.o) && !rnl_order_has_ended(lone.o));
    }
    alarm(0);
    rnl_order_free(lone.o);
}

static void nothing_is_delivered_once_there_was_no_memory_for_the_state(void **state)
{
    const struct rnl_order_head head = {.kind = RNL_ORDER_JOIN};
    (void)state;
    begin_lone(0);
    assert_int_equal(lone.delivered, 1);
    hear(&head, NULL, 0);
    assert_int_equal(lone.status, RNL_ERR_NO_MEMORY);
    assert_int_equal(lone.delivered, 1);
    rnl_order_free(lone.o);
}

/* Whoever joins takes a longer one for a lie. */
static void a_state_is_at_most_as_long_as_who_joins_takes_in(void **state)
{
    (void)state;
    begin_lone(0);
    for (unsigned i = 0; i < 3; i++) {
        struct rnl_order_item *item = rnl_order_item_new(lone.o, 0);
        assert_non_null(item);
        item->bytes = i < 2 ? RNL_ORDER_STATE_MAX / 2 - RNL_ORDER_ITEM_COST : 0; /* nobody reads them */
        assert_int_equal(rnl_order_put_state(lone.o, item), i < 2);
        if (i == 2)
            rnl_order_item_drop(lone.o, item);
    }
    rnl_order_free(lone.o);
}

static size_t allocated(void)
{
    const struct mallinfo2 m = mallinfo2(); /* zeros where a sanitizer allocates */
    return m.uordblks + m.hblkhd;
}

/* The state is given up when another view begins, and when it has been loaded. */
static void a_state_that_is_not_needed_any_more_is_freed(void **state)
{
    enum { PIECE = 1 << 20, PIECES = 32 };
    const struct rnl_order_head head = {.kind = RNL_ORDER_JOIN};
    struct {
        uint64_t in_log[2];
        uint32_t epoch, member[2];
    } welcome = {.epoch = 2, .member = {0, 1 | RNL_ORDER_NEW}};
    const struct rnl_order_head let_in = {.kind = RNL_ORDER_WELCOME, .epoch = 2, .seq = 2};
    struct rnl_order_head piece = {.kind = RNL_ORDER_SNAPSHOT, .epoch = 2, .seq = 2};
    (void)state;
    size_t before = allocated();
    begin_lone(0);
    for (unsigned i = 0; i < PIECES; i++)
        assert_true(rnl_order_put_state(lone.o, rnl_order_item_new(lone.o, PIECE)));
    hear(&head, NULL, 0);
    assert_true(allocated() < before + PIECE * 4);
    rnl_order_free(lone.o);
    before = allocated();
    unsigned char *bytes = calloc(1, PIECE);
    assert_non_null(bytes);
    begin_lone(1);
    hear(&let_in, &welcome, 28);
    for (unsigned i = 0; i < PIECES; i++) {
        piece.flags = i + 1 < PIECES ? 0 : RNL_ORDER_LAST;
        hear(&piece, bytes, PIECE);
    }
    free(bytes);
    assert_false(rnl_order_is_blank(lone.o));
    assert_true(allocated() < before + PIECE * 4);
    rnl_order_free(lone.o);
}

/* ---- views that are given up ---- */

static const unsigned char nobody[] = {0}; /* a set of those excluded */

/* Member 1 joins member 0, which makes a view: so does each other attempt whose epoch it has agreed to. */
static void who_joins_takes_no_view_of_an_attempt_before_one_that_it_has_agreed_to(void **state)
{
    struct {
        uint64_t in_log[2];
        uint32_t epoch, member[2];
    } welcome = {.epoch = 3, .member = {0, 1 | RNL_ORDER_NEW}};
    const struct rnl_order_head flush = {.kind = RNL_ORDER_FLUSH, .epoch = 5};
    struct rnl_order_head let_in = {.kind = RNL_ORDER_WELCOME, .epoch = 3, .seq = 2};
    const struct rnl_order_head all = {
        .kind = RNL_ORDER_SNAPSHOT, .flags = RNL_ORDER_LAST | RNL_ORDER_NOTHING, .epoch = 3, .seq = 2};
    (void)state;
    begin(1, 2, 1, NULL);
    hear(&flush, nobody, sizeof nobody);
    const struct rnl_order_head *said = said_to(0, RNL_ORDER_STATE);
    assert_true(said && said->epoch == 5 && said->flags == RNL_ORDER_BLANK); /* it has nothing that others lack */
    forget_said();
    hear(&let_in, &welcome, 28);
    hear(&all, NULL, 0);
    assert_true(rnl_order_is_blank(lone.o) && lone.delivered == 0);
    said = said_to(0, RNL_ORDER_JOIN);
    assert_true(said && said->flags == RNL_ORDER_ROOT && said->seq == 5 && said->epoch == 3);
    assert_null(said_to(0, RNL_ORDER_ACK));
    welcome.epoch = let_in.epoch = 6; /* the attempt that takes account of that */
    hear(&let_in, &welcome, 28);
    assert_non_null(said_to(0, RNL_ORDER_ACK));
    rnl_order_free(lone.o);
}

/* The sequencer hears that its new member has agreed to a later attempt: it makes one after that. Numbers of attempts
 * would be used up by a new member that lies. */
static void a_later_attempt_that_a_new_member_has_agreed_to_is_followed_by_another_unless_it_lies(void **state)
{
    const struct rnl_order_head join = {.kind = RNL_ORDER_JOIN};
    struct rnl_order_head again = {.kind = RNL_ORDER_JOIN, .flags = RNL_ORDER_ROOT, .epoch = 2};
    (void)state;
    begin(0, 2, 1, NULL);
    hear(&join, NULL, 0);
    assert_true(said_to(1, RNL_ORDER_WELCOME) && said_to(1, RNL_ORDER_WELCOME)->epoch == 2);
    forget_said();
    static const uint64_t lies[] = {0, 2, (uint64_t)1 << 30, (uint64_t)UINT32_MAX + 6};
    for (unsigned i = 0; i < 4; i++) {
        again.seq = lies[i];
        hear(&again, NULL, 0);
        assert_int_equal(lone.said_count, 0);
    }
    again.seq = 7;
    hear(&again, NULL, 0);
    assert_true(said_to(1, RNL_ORDER_FLUSH) && said_to(1, RNL_ORDER_FLUSH)->epoch == 8);
    rnl_order_free(lone.o);
}

/* Members 0, 1 and 2 are in the first view, which 3 joins. Only 2 has the view with it when 0 dies, so that 1 makes the
 * next without it. */
static void who_is_new_in_a_view_and_not_in_the_next_is_asked_whether_it_still_wants_to_join(void **state)
{
    const struct rnl_order_head flush = {.kind = RNL_ORDER_FLUSH, .epoch = 2};
    const struct rnl_order_head ends = {.kind = RNL_ORDER_STATE, .epoch = 3, .seq = 2};
    const struct {
        uint32_t epoch, member[4];
    } view = {2, {0, 1, 2, 3 | RNL_ORDER_NEW}};
    const struct rnl_order_head fill = {.kind = RNL_ORDER_FILL, .flags = RNL_ORDER_ROOT, .epoch = 3, .seq = 2};
    struct rnl_order_head join = {.kind = RNL_ORDER_JOIN};
    (void)state;
    begin(1, 4, 3, NULL);
    hear_of(0, &flush, nobody, sizeof nobody);
    rnl_order_died(lone.o, 0);
    hear_of(2, &ends, nobody, sizeof nobody);
    forget_said();
    hear_of(2, &fill, &view, sizeof view);
    assert_int_equal(lone.delivered, 3); /* views */
    const struct rnl_order_head *said = said_to(3, RNL_ORDER_JOIN);
    assert_true(said && said->flags == RNL_ORDER_ROOT);
    forget_said();
    hear_of(3, &join, NULL, 0); /* what it asked before comes late */
    assert_int_equal(lone.said_count, 0);
    join.flags = RNL_ORDER_ROOT;
    hear_of(3, &join, NULL, 0);
    assert_non_null(said_to(2, RNL_ORDER_FLUSH));
    rnl_order_free(lone.o);
}

/* What a joiner is asked, it answers. */
static void who_joins_and_is_asked_again_asks_again(void **state)
{
    const struct rnl_order_head again = {.kind = RNL_ORDER_JOIN, .flags = RNL_ORDER_ROOT};
    (void)state;
    begin(1, 2, 1, NULL);
    assert_true(said_to(0, RNL_ORDER_JOIN) && said_to(0, RNL_ORDER_JOIN)->flags == 0);
    forget_said();
    hear(&again, NULL, 0);
    assert_true(said_to(0, RNL_ORDER_JOIN) && said_to(0, RNL_ORDER_JOIN)->flags == RNL_ORDER_ROOT);
    rnl_order_free(lone.o);
}

/* Whoever asked member 1 counts on it. */
static void who_wants_to_join_is_told_that_a_member_ends(void **state)
{
    const struct rnl_order_head join = {.kind = RNL_ORDER_JOIN};
    (void)state;
    begin(1, 3, 2, NULL);
    hear_of(2, &join, NULL, 0);
    forget_said();
    rnl_order_fail(lone.o, RNL_ERR_NO_MEMORY);
    assert_non_null(said_to(0, RNL_ORDER_GONE));
    assert_non_null(said_to(2, RNL_ORDER_GONE));
    rnl_order_free(lone.o);
}

static void who_joins_asks_the_others_once_all_that_it_asked_have_gone(void **state)
{
    const struct rnl_order_head gone = {.kind = RNL_ORDER_GONE};
    (void)state;
    begin(2, 4, 2, NULL);
    assert_true(said_to(0, RNL_ORDER_JOIN) && said_to(1, RNL_ORDER_JOIN) && !said_to(3, RNL_ORDER_JOIN));
    hear_of(0, &gone, NULL, 0);
    assert_null(said_to(3, RNL_ORDER_JOIN));
    hear_of(1, &gone, NULL, 0);
    assert_non_null(said_to(3, RNL_ORDER_JOIN));
    assert_int_equal(lone.status, 0);
    hear_of(3, &gone, NULL, 0);
    assert_int_equal(lone.status, RNL_ERR_REFUSED);
    rnl_order_free(lone.o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_that_is_begun_anew_is_as_long_as_it_is),
        cmocka_unit_test(nothing_is_delivered_once_there_was_no_memory_for_the_state),
        cmocka_unit_test(a_state_is_at_most_as_long_as_who_joins_takes_in),
        cmocka_unit_test(a_state_that_is_not_needed_any_more_is_freed),
        cmocka_unit_test(who_joins_takes_no_view_of_an_attempt_before_one_that_it_has_agreed_to),
        cmocka_unit_test(a_later_attempt_that_a_new_member_has_agreed_to_is_followed_by_another_unless_it_lies),
        cmocka_unit_test(who_is_new_in_a_view_and_not_in_the_next_is_asked_whether_it_still_wants_to_join),
        cmocka_unit_test(who_joins_and_is_asked_again_asks_again),
        cmocka_unit_test(who_wants_to_join_is_told_that_a_member_ends),
        cmocka_unit_test(who_joins_asks_the_others_once_all_that_it_asked_have_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
