/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_state.c - one member of a group by itself (order.h), whom another joins or who joins: how long a log and a state
 * may be, and what becomes of them. */
#include "api/group/order.h"
#include "runnel/runnel.h"
#include "support/unit.h"

#include <malloc.h>
#include <unistd.h>

static void say_nothing(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    (void)ctx, (void)to, (void)head, (void)item;
}

static struct {
    struct rnl_order *o;
    uint32_t self;
    unsigned delivered;
    int status;
} lone;

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

/* Makes a group of members 0 and 1, of which 0 is in the first view. */
static void begin_lone(uint32_t self)
{
    static const struct rnl_order_ops alone = {
        .send = say_nothing, .deliver = count, .ended = end, .save = cannot_save};
    static const bool first[] = {true, false};
    const struct rnl_order_options opt = {.self = self, .size = 2, .first = first, .budget = 1 << 16};
    memset(&lone, 0, sizeof lone);
    lone.self = self;
    lone.o = rnl_order_new(&opt, &alone, NULL);
    assert_non_null(lone.o);
    rnl_order_begin(lone.o);
}

static void hear(const struct rnl_order_head *head, const void *data, size_t n)
{
    struct rnl_order_item *item = n ? rnl_order_item_new(lone.o, n) : NULL;
    if (item)
        memcpy(item->data, data, n);
    rnl_order_input(lone.o, lone.self ? 0 : 1, head, item);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_that_is_begun_anew_is_as_long_as_it_is),
        cmocka_unit_test(nothing_is_delivered_once_there_was_no_memory_for_the_state),
        cmocka_unit_test(a_state_is_at_most_as_long_as_who_joins_takes_in),
        cmocka_unit_test(a_state_that_is_not_needed_any_more_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
