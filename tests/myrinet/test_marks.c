/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_marks.c - marks of the card's engines, and limits that are moved, against closed forms. */
#include "tests/myrinet/registers.h"

#include <string.h>

struct pair {
    struct engines e;
    uint64_t begun, moved, done; /* of a transfer or packet: started, its limit moved, at its end */
    uint64_t came;               /* at the other node */
    uint32_t bytes, part;
    uint32_t pause_ps; /* between two looks at marks */
    int cut_through, stores;
};

static struct pair run(struct pair p, void (*first)(struct myri_task *, void *),
                       void (*second)(struct myri_task *, void *))
{
    p.e = new_engines();
    myri_hw_task(p.e.hw, 0, first, &p);
    if (second)
        myri_hw_task(p.e.hw, 1, second, &p);
    assert_int_equal(myri_hw_power(p.e.hw), 0);
    if (myri_hw_run(p.e.hw) != 0)
        fail_msg("%s", rnl_last_error()->text);
    return p;
}

static uint32_t words(uint64_t ps, double rate)
{
    return (uint32_t)((double)(ps + 1) * rate / 1e6) & ~3u;
}

/* ---- marks of engines that nothing stops ---- */

static void looks_at_transfers(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    struct myri_hw *hw = p->e.hw;
    for (uint32_t direction = 0; direction < 2; direction++) {
        uint64_t begun =
            start_dma(t, p->e.page[0], AT, direction, PIECE, 0) + hw->t.dma_start + hw->t.dma_setup[direction];
        assert_int_equal(get_register(t, HMARK), 0);
        for (int i = 0; i < 60; i++) {
            uint32_t is = get_register(t, HMARK);
            uint64_t at = now_of(t);
            uint32_t expect = at <= begun ? 0 : words(at - begun, 129.4);
            expect = expect > PIECE ? PIECE : expect;
            if (is != expect && is + 4 != expect)
                fail_msg("mark %u at %llu ps after the begin, not %u", is, (unsigned long long)(at - begun), expect);
            if (direction == FROM_HOST && is)
                assert_int_equal(myri_lanai_byte(&card_of(t)->cpu, AT + is - 1),
                                 t->host->memory[p->e.page[0] + is - 1]);
            if (direction == FROM_HOST && is < PIECE - 4)
                assert_int_equal(myri_lanai_byte(&card_of(t)->cpu, AT + is + 4), 0);
            wait_ps(t, 3 * (uint64_t)SOON);
        }
        assert_int_equal(get_register(t, HMARK), PIECE);
        assert_true(get_register(t, ISR) & HDONE);
    }
}

static void a_transfers_mark_tells_what_is_there(void **state)
{
    (void)state;
    myri_hw_free(run((struct pair){0}, looks_at_transfers, NULL).e.hw);
}

static void stores_while_it_transfers(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    const uint32_t some[40] = {0};
    uint32_t last = 0;
    p->begun =
        start_dma(t, p->e.page[0], AT, FROM_HOST, PIECE, 0) + p->e.hw->t.dma_start + p->e.hw->t.dma_setup[FROM_HOST];
    for (int i = 0; i < 10; i++) {
        myri_task_store_words(t, AT - 4096, some, 40);
        uint32_t is = get_register(t, HMARK);
        assert_true(is >= last);
        if (!(get_register(t, ISR) & HDONE)) { /* the rest takes what it takes when nobody disturbs it */
            struct myri_card *c = card_of(t);
            uint32_t rest = words(c->dma.to_ps - now_of(t), 129.4);
            if (c->dma.moving && c->dma.to_ps > now_of(t))
                assert_in_range(PIECE - is, rest, rest + 8);
        }
        last = is;
    }
    wait_for(t, HDONE);
    p->done = now_of(t);
}

static void a_transfers_mark_stands_while_others_have_the_bus(void **state)
{
    (void)state;
    struct pair p = run((struct pair){0}, stores_while_it_transfers, NULL);
    assert_true(p.done - p.begun > bytes_take(p.e.hw, MYRI_M_dma_rate, PIECE) + 200 * p.e.hw->t.store);
    myri_hw_free(p.e.hw);
}

static void sends(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    struct myri_hw *hw = p->e.hw;
    wait_ps(t, 1000000);
    for (uint32_t i = 0; i < p->bytes; i++)
        myri_lanai_set_byte(&card_of(t)->cpu, AT + i, (uint8_t)(i * 5 + 3));
    p->begun = start_send(t, AT, p->bytes, p->part ? AT + p->part : 0) + hw->t.send_start;
    for (int i = 0; i < 40 && !p->part; i++) {
        uint32_t is = get_register(t, SMARK);
        uint64_t at = now_of(t), flows = p->begun + hw->t.head;
        uint32_t expect = at < flows ? 0 : words(at - p->begun, 160); /* told from when the head is there */
        expect = expect > p->bytes ? p->bytes : expect;
        if (is != expect && is + 4 != expect)
            fail_msg("%u bytes have left at %llu, not %u", is, (unsigned long long)(at - p->begun), expect);
        wait_ps(t, 3 * (uint64_t)SOON + 7);
    }
    if (p->part) {
        wait_ps(t, 100000000);
        assert_int_equal(get_register(t, SMARK), p->part);
        assert_false(get_register(t, ISR) & SDONE);
        for (uint32_t i = 0; i < p->part; i++) /* what has left may be written again */
            myri_lanai_set_byte(&card_of(t)->cpu, AT + i, 0);
        p->moved = set_register(t, SML, AT + p->bytes);
    }
    wait_for(t, SDONE);
    p->done = now_of(t);
    assert_int_equal(get_register(t, SMARK), p->bytes);
}

static void receives(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    struct myri_hw *hw = p->e.hw;
    open_port(t, AT);
    wait_ps(t, 1500000);
    for (int i = 0; i < 200 && !(get_register(t, ISR) & RECV); i++) {
        uint32_t is = get_register(t, RMARK);
        uint64_t at = now_of(t), flows = p->begun + hw->t.head + hw->t.receive_start;
        uint32_t expect = at < flows ? 0 : words(at - flows, 160);
        expect = expect > p->bytes ? p->bytes : expect;
        if ((p->part && p->moved) || expect + 256 > p->bytes)
            break;
        if (p->part && expect > p->part)
            expect = p->part;
        if (is != expect && is + 4 != expect)
            fail_msg("%u bytes have come at %llu, not %u", is, (unsigned long long)(at - p->begun), expect);
        for (uint32_t k = 0; k < is; k++)
            assert_int_equal(myri_lanai_byte(&card_of(t)->cpu, AT + k), (uint8_t)(k * 5 + 3));
        wait_ps(t, 3 * (uint64_t)SOON + 11);
    }
    while (!(get_register(t, ISR) & RECV))
        wait_ps(t, 100);
    p->came = myri_hw_now(hw);
    for (uint32_t k = 0; k < p->bytes; k++)
        assert_int_equal(myri_lanai_byte(&card_of(t)->cpu, AT + k), (uint8_t)(k * 5 + 3));
    assert_int_equal(get_register(t, RMARK), p->bytes);
    assert_int_equal(get_register(t, RLEN), p->bytes);
}

static void a_packets_marks_tell_what_has_left_and_what_has_come(void **state)
{
    (void)state;
    for (uint32_t bytes = 256; bytes <= PIECE; bytes *= 4) {
        struct pair p = run((struct pair){.bytes = bytes}, sends, receives);
        uint64_t whole = bytes_take(p.e.hw, MYRI_M_link_rate, bytes + 6);
        assert_in_range(p.came - p.begun, p.e.hw->t.head + whole + p.e.hw->t.receive_start,
                        p.e.hw->t.head + whole + p.e.hw->t.receive_start + 200);
        myri_hw_free(p.e.hw);
    }
}

/* ---- limits ---- */

static void a_packet_at_its_limit_goes_on_a_heads_time_after_it_is_moved(void **state)
{
    (void)state;
    for (uint32_t part = 128; part <= PIECE / 2; part *= 4) {
        struct pair p = run((struct pair){.bytes = PIECE, .part = part}, sends, receives);
        const struct myri_hw *hw = p.e.hw;
        uint64_t rest = bytes_take(hw, MYRI_M_link_rate, PIECE + 6) - bytes_take(hw, MYRI_M_link_rate, part);
        assert_in_range(p.came - p.moved, hw->t.head + rest + hw->t.receive_start,
                        hw->t.head + rest + hw->t.receive_start + 200);
        assert_in_range(p.done - p.moved, rest, rest + SOON);
        myri_hw_free(p.e.hw);
    }
}

static void transfers_in_two(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    uint64_t setup = p->e.hw->t.dma_start + p->e.hw->t.dma_setup[TO_HOST], at;
    for (uint32_t i = 0; i < PIECE; i++)
        myri_lanai_set_byte(&card_of(t)->cpu, AT + i, (uint8_t)(i * 3 + 1));
    p->begun = start_dma(t, p->e.page[0], AT, TO_HOST, PIECE, AT + p->part);
    at = bytes_take(p->e.hw, MYRI_M_dma_rate, p->part) + setup;
    wait_ps(t, 40000000);
    assert_int_equal(get_register(t, HMARK), p->part);
    assert_false(get_register(t, ISR) & HDONE);
    assert_true(card_of(t)->dma.to_ps - p->begun == at);
    if (p->stores) { /* nobody else has the bus */
        uint64_t from = myri_hw_now(p->e.hw);
        myri_task_store(t, AT - 4096, 1);
        assert_true(myri_hw_now(p->e.hw) - from == p->e.hw->t.store);
    }
    for (uint32_t i = 0; i < p->part; i++)
        myri_lanai_set_byte(&card_of(t)->cpu, AT + i, 0);
    p->moved = set_register(t, HML, AT + PIECE);
    while (!(get_register(t, ISR) & HDONE))
        wait_ps(t, 100);
    p->done = myri_hw_now(p->e.hw);
    for (uint32_t i = 0; i < PIECE; i++)
        assert_int_equal(t->host->memory[p->e.page[0] + i], (uint8_t)(i * 3 + 1));
}

static void a_transfer_at_its_limit_leaves_the_bus_and_needs_no_other_set_up(void **state)
{
    (void)state;
    for (int stores = 0; stores < 2; stores++) {
        struct pair p = run((struct pair){.part = 1024, .stores = stores}, transfers_in_two, NULL);
        uint64_t rest = bytes_take(p.e.hw, MYRI_M_dma_rate, PIECE - 1024);
        assert_in_range(p.done - p.moved, rest, rest + 200);
        myri_hw_free(p.e.hw);
    }
}

/* ---- a message through three engines ---- */

static void fetches_and_sends(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    uint32_t reach = 0, mark = 0;
    wait_ps(t, 1000000);
    p->begun = start_dma(t, p->e.page[0], AT, FROM_HOST, p->bytes, 0);
    if (!p->cut_through)
        wait_for(t, HDONE);
    for (int i = 0; i < 10000 && reach < p->bytes; i++, wait_ps(t, p->pause_ps)) {
        mark = get_register(t, HMARK);
        if (!mark)
            continue;
        if (!reach)
            start_send(t, AT, p->bytes, AT + mark);
        else if (mark > reach)
            set_register(t, SML, AT + mark);
        reach = mark;
    }
    wait_for(t, SDONE);
}

static void receives_and_delivers(struct myri_task *t, void *arg)
{
    struct pair *p = arg;
    uint32_t reach = 0, mark = 0;
    open_port(t, AT);
    if (!p->cut_through)
        wait_for(t, RECV);
    for (int i = 0; i < 10000 && reach < p->bytes; i++, wait_ps(t, p->pause_ps)) {
        mark = get_register(t, RMARK);
        if (!mark)
            continue;
        if (!reach)
            start_dma(t, p->e.page[1], AT, TO_HOST, p->bytes, AT + mark);
        else if (mark > reach)
            set_register(t, HML, AT + mark);
        reach = mark;
    }
    wait_for(t, HDONE);
    p->came = now_of(t);
    assert_memory_equal(t->host->memory + p->e.page[1], p->e.hw->host[0].memory + p->e.page[0], p->bytes);
}

/* Through three stages that overlap: the slowest one, and what each of the others adds for the first bytes and for the
 * last ones, which is no more than what comes between two looks. One behind the other: their sum. */
static void a_message_in_parts_takes_its_slowest_stage_and_one_part_of_the_others(void **state)
{
    (void)state;
    for (uint32_t pause = 100000; pause <= 1600000; pause *= 4)
        for (uint32_t bytes = 1024; bytes <= ROOM; bytes *= 2)
            for (int cut = 0; cut < 2; cut++) {
                struct pair p = run((struct pair){.bytes = bytes, .pause_ps = pause, .cut_through = cut},
                                    fetches_and_sends, receives_and_delivers);
                const struct myri_hw *hw = p.e.hw;
                uint64_t bus = bytes_take(hw, MYRI_M_dma_rate, bytes),
                         wire = bytes_take(hw, MYRI_M_link_rate, bytes + 6);
                uint64_t fixed = hw->t.dma_start + hw->t.dma_setup[FROM_HOST] + hw->t.head + hw->t.receive_start;
                uint64_t starts = fixed + hw->t.send_start + hw->t.dma_start + hw->t.dma_setup[TO_HOST];
                uint64_t is = p.came - p.begun, part = pause + SOON;
                if (cut) /* the transfer to the host begins after its set-up, and then has all that has come */
                    assert_in_range(is, bus + fixed, bus + starts + 6 * part);
                else
                    assert_in_range(is, 2 * bus + wire + starts, 2 * bus + wire + starts + 3 * part);
                myri_hw_free(p.e.hw);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transfers_mark_tells_what_is_there),
        cmocka_unit_test(a_transfers_mark_stands_while_others_have_the_bus),
        cmocka_unit_test(a_packets_marks_tell_what_has_left_and_what_has_come),
        cmocka_unit_test(a_packet_at_its_limit_goes_on_a_heads_time_after_it_is_moved),
        cmocka_unit_test(a_transfer_at_its_limit_leaves_the_bus_and_needs_no_other_set_up),
        cmocka_unit_test(a_message_in_parts_takes_its_slowest_stage_and_one_part_of_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
