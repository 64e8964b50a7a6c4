/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The circles of blocks, and the socket over them, against a card that this test plays: units that stop, frames that
 * arrive meanwhile, a card that is pulled. It has the functions of card.c, and does at once what they say. */
#include <stdlib.h>
#include <unistd.h>

#include "net/socket/i8255x/card_internal.h"
#include "net/socket/i8255x/i8255x.h"
#include "support/unit.h"

enum { BUS = 0x40000000, FRAME_BYTES = 60, STOPPED = 2 };

static struct rnl_i8255x card;
static uint8_t registers[RNL_I8255X_REGISTERS];
static uint32_t rx, tx; /* the blocks that the units are at */
static uint32_t dropped, went;
static bool silent;       /* the card does not reach the memory */
static bool pulled;       /* it is not there any more, which the next command tells */
static uint32_t may_send; /* blocks until the wire is busy */

/* ---- the card ---- */

static void *at(uint32_t bus)
{
    return card.memory + (bus - BUS);
}

static void set_receiver(uint8_t state)
{
    registers[RNL_I8255X_STATUS] = (uint8_t)(state << 2);
}

static void arrive(void)
{
    struct rnl_i8255x_rx *d = at(rx);
    if (registers[RNL_I8255X_STATUS] >> 2 != RNL_I8255X_RU_READY) {
        dropped++;
        return;
    }
    d->count = 0xc000 | FRAME_BYTES;
    d->status = RNL_I8255X_DONE | RNL_I8255X_OK;
    if (d->command & RNL_I8255X_END)
        set_receiver(STOPPED);
    rx = d->link;
}

static void send_on(void)
{
    for (; !silent && may_send; tx = ((struct rnl_i8255x_tx *)at(tx))->link) {
        struct rnl_i8255x_tx *b = at(tx);
        went += !(b->status & RNL_I8255X_DONE) && (b->command & 7) == RNL_I8255X_DO_TRANSMIT;
        may_send -= !(b->status & RNL_I8255X_DONE);
        b->status = RNL_I8255X_DONE | RNL_I8255X_OK;
        if (b->command & RNL_I8255X_SUSPEND)
            return;
    }
}

bool rnl_i8255x_is_gone(struct rnl_i8255x *c)
{
    return c->gone;
}

bool rnl_i8255x_command_at(struct rnl_i8255x *c, uint8_t what, uint32_t where)
{
    if (what == RNL_I8255X_RU_START) {
        rx = where;
        set_receiver(RNL_I8255X_RU_READY);
    } else {
        tx = where;
        send_on();
    }
    return !c->gone;
}

bool rnl_i8255x_command(struct rnl_i8255x *c, uint8_t what)
{
    c->gone |= pulled;
    if (what == RNL_I8255X_CU_RESUME)
        send_on();
    return !c->gone;
}

int rnl_i8255x_open(struct rnl_i8255x *c, const struct rnl_i8255x_grant *g)
{
    (void)g;
    *c = card;
    return 0;
}

void rnl_i8255x_close(struct rnl_i8255x *c)
{
    (void)c;
}

int rnl_i8255x_interrupts(int device)
{
    (void)device;
    return -1;
}

bool rnl_i8255x_arm(struct rnl_i8255x *c, int event, int device, int line)
{
    (void)c, (void)event, (void)device, (void)line;
    return false;
}

void rnl_i8255x_disarm(struct rnl_i8255x *c)
{
    (void)c;
}

bool rnl_i8255x_tend(struct rnl_i8255x *c)
{
    if (!rnl_i8255x_is_gone(c))
        rnl_i8255x_restart(c);
    return !c->gone;
}

/* ---- the tests ---- */

static int set_up(void **state)
{
    (void)state;
    card = (struct rnl_i8255x){
        .registers = registers, .memory = aligned_alloc(4096, RNL_I8255X_MEMORY), .bus = BUS, .link_up = true};
    dropped = went = 0;
    silent = pulled = false;
    may_send = UINT32_MAX;
    return card.memory && memset(card.memory, 0, RNL_I8255X_MEMORY) && rnl_i8255x_start(&card) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(card.memory);
    return 0;
}

static void let_arrive(uint32_t frames)
{
    while (frames-- > 0)
        arrive();
}

static uint32_t take_out(void)
{
    uint32_t n = 0, bytes;
    for (; rnl_i8255x_next(&card, &bytes); n++) {
        assert_int_equal(bytes, FRAME_BYTES);
        rnl_i8255x_free(&card);
    }
    return n;
}

static void a_receiver_that_ran_out_goes_on_at_the_next_look(void **state)
{
    (void)state;
    for (uint32_t turn = 1; turn <= 3 * RNL_I8255X_RX; turn++) {
        let_arrive(2 * RNL_I8255X_RX);
        assert_int_equal(take_out(), RNL_I8255X_RX - 1);
        assert_int_equal(card.rx_restarts, turn);
        let_arrive(3);
        assert_int_equal(take_out(), 3);
    }
    assert_int_equal(dropped, 3 * RNL_I8255X_RX * (RNL_I8255X_RX + 1));
}

static void one_that_works_is_left_alone(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 1000; turn++) {
        let_arrive(turn % (RNL_I8255X_RX - 1));
        assert_int_equal(take_out(), turn % (RNL_I8255X_RX - 1));
        rnl_i8255x_restart(&card);
    }
    assert_int_equal(card.rx_restarts, 0);
    assert_int_equal(dropped, 0);
}

static void frames_go_once_each(void **state)
{
    (void)state;
    for (uint32_t turn = 1; turn <= 100; turn++) {
        for (uint32_t i = 0; i < RNL_I8255X_TX - 1; i++) {
            assert_non_null(rnl_i8255x_room(&card));
            rnl_i8255x_post(&card, FRAME_BYTES);
        }
        rnl_i8255x_kick(&card);
        rnl_i8255x_kick(&card);
        assert_int_equal(went, turn * (RNL_I8255X_TX - 1));
    }
}

static void a_card_that_takes_nothing_any_more_is_stuck_until_it_does(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 50; turn++) {
        rnl_i8255x_post(&card, FRAME_BYTES);
        rnl_i8255x_restart(&card);
        assert_false(card.tx_stuck);
    }
    silent = true;
    rnl_i8255x_restart(&card);
    assert_false(card.tx_stuck); /* nothing is posted */
    rnl_i8255x_post(&card, FRAME_BYTES);
    for (uint32_t look = 0; look < 20 && !card.tx_stuck; look++) {
        assert_true(look < 12);
        rnl_i8255x_restart(&card);
    }
    assert_true(card.tx_stuck);
    silent = false;
    rnl_i8255x_restart(&card);
    assert_false(card.tx_stuck);
    assert_int_equal(went, 51);
}

static void a_card_on_a_slow_wire_is_not_stuck(void **state)
{
    (void)state;
    for (uint32_t look = 0; look < 200; look++) {
        may_send = look < 100 ? 8 : look % 2; /* as many frames as 100 Mbit/s and 10 Mbit/s take in a millisecond */
        rnl_i8255x_restart(&card);
        assert_false(card.tx_stuck);
        while (rnl_i8255x_room(&card))
            rnl_i8255x_post(&card, FRAME_BYTES);
    }
}

/* Whoever sends learns it first: what the paths look at has to change all the same. */
static void that_a_card_is_gone_is_told_once_whoever_sees_it(void **state)
{
    (void)state;
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    const struct rnl_i8255x_grant g = {.device = -1, .registers = -1, .memory = -1, .line = -1, .wire = 1};
    struct rnl_socket *s;
    struct rnl_socket_out out = {.at = "x", .bytes = 1};
    struct rnl_socket_in in = {0};
    struct rnl_socket_result result;
    assert_int_equal(rnl_i8255x_socket_new(&g, 1, 7, &s), 0);
    rnl_i8255x_address_of(mac, 1, 7, &out.to);
    assert_int_equal(s->ops->send(s, &out, 1, &result), 1);
    assert_false(s->ops->is_down(s, &out.to));
    const uint64_t before = s->frames->links;
    pulled = true;
    (void)s->ops->send(s, &out, 1, &result);
    assert_true(s->ops->is_down(s, &out.to));
    for (uint32_t ms = 0; ms < 1000 && s->frames->links == before; ms++) {
        usleep(1000);
        for (uint32_t look = 0; look < 1000; look++)
            assert_int_equal(s->ops->recv(s, &in, 1), 0);
    }
    assert_int_equal(s->frames->links, before + 1);
    s->ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_receiver_that_ran_out_goes_on_at_the_next_look),
        TEST(one_that_works_is_left_alone),
        TEST(frames_go_once_each),
        TEST(a_card_that_takes_nothing_any_more_is_stuck_until_it_does),
        TEST(a_card_on_a_slow_wire_is_not_stuck),
        TEST(that_a_card_is_gone_is_told_once_whoever_sees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
