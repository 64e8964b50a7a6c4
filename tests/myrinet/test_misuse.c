/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_misuse.c - what the machine catches: each of these ends a run, and says which node did what. */
#include "tests/myrinet/registers.h"

#include "sim/myrinet/systems/bip/layout.h"
#include "sim/myrinet/systems/probe/layout.h"

#include <string.h>

static void bad_bip(struct myri_task *t, void *arg)
{
    uint32_t card = myri_card_symbol(t->host->hw, "card");
    (void)arg;
    const uint32_t what[4] = {1, 0x300000, 0x301000, 4096}; /* from, at, status at, bytes: nothing there is pinned */
    myri_task_store_words(t, card + (uint32_t)offsetof(struct bip_card, receive), what, 4);
    myri_task_spend(t, 500000000, "wait");
}

static void bip_from(struct myri_task *t, void *arg)
{
    uint32_t card = myri_card_symbol(t->host->hw, "card");
    (void)arg;
    uint32_t page = myri_host_take(t->host, 8192, 1);
    const uint32_t what[5] = {0, page, 4096, page + 4096, 4096};
    myri_task_store_words(t, card + (uint32_t)offsetof(struct bip_card, send), what, 5);
    myri_task_spend(t, 500000000, "wait");
}

static void a_dma_to_a_page_that_is_not_pinned_is_reported(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/bip/firmware.hex");
    uint32_t card = myri_card_symbol(hw, "card");
    for (uint32_t i = 0; i < 2; i++)
        myri_card_poke(&hw->card[i], card + 4 * !i, ROUTE_VALID | !i);
    myri_hw_task(hw, 0, bad_bip, NULL);
    myri_hw_task(hw, 1, bip_from, NULL);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "is not pinned"));
    myri_hw_free(hw);
}

static void changer(struct myri_task *t, void *arg)
{
    uint32_t card = myri_card_symbol(t->host->hw, "card"), page = *(uint32_t *)arg;
    const uint32_t what[4] = {page, 4096, page + 4096, 1};
    myri_task_store_words(t, card + (uint32_t)offsetof(struct probe_card, host), what, 4);
    myri_task_spend(t, 15000000, "compute");
    myri_host_set_word(t->host, page + 4000, 1);
    myri_task_spend(t, 100000000, "wait");
}

static void a_buffer_that_is_used_again_too_early_is_reported(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-P", "systems/probe/firmware.hex");
    uint32_t page = myri_host_take(&hw->host[0], 8192, 1);
    myri_hw_task(hw, 0, changer, &page);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "changed in its buffer while it crossed the I/O bus"));
    myri_hw_free(hw);
}

/* BIP's card sends what its host says, and checks nothing: whatever is wrong, the machine sees. */
struct wrong {
    uint32_t bytes, again_ps; /* of the packet; when its buffer is written again, or 0 */
};

static void wrong_bip(struct myri_task *t, void *arg)
{
    const struct wrong *w = arg;
    uint32_t card = myri_card_symbol(t->host->hw, "card");
    const uint32_t go[2] = {1, w->bytes};
    myri_task_store_words(t, card + (uint32_t)offsetof(struct bip_card, go), go, 2);
    if (w->again_ps) {
        myri_task_spend(t, w->again_ps, "compute");
        myri_task_store(t, card + (uint32_t)offsetof(struct bip_card, small) + 900, 1);
    }
    myri_task_spend(t, 500000000, "wait");
}

static void reports(struct wrong w, const char *words)
{
    struct myri_hw *hw = new_hw("H-PP", "systems/bip/firmware.hex");
    uint32_t card = myri_card_symbol(hw, "card");
    for (uint32_t i = 0; i < 2; i++) {
        myri_card_poke(&hw->card[i], card + 4 * !i, ROUTE_VALID | !i);
        myri_card_poke(&hw->card[i], card + (uint32_t)offsetof(struct bip_card, page), 4096);
    }
    myri_hw_task(hw, 0, wrong_bip, &w);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), RNL_ERR_ABORTED);
    if (!strstr(rnl_last_error()->text, words))
        fail_msg("'%s' does not say '%s'", rnl_last_error()->text, words);
    myri_hw_free(hw);
}

static void a_packet_that_is_changed_on_the_wire_is_reported(void **state)
{
    (void)state;
    reports((struct wrong){.bytes = 1000, .again_ps = 5000000}, "of a packet changed in its buffer while it was on");
}

static void a_packet_longer_than_its_room_is_reported(void **state)
{
    (void)state;
    reports((struct wrong){.bytes = BIP_PACKET + 12}, "node 1 has room for 4104 bytes, a packet of 4108 comes");
}

static void a_packet_from_beyond_the_sram_is_reported(void **state)
{
    (void)state;
    reports((struct wrong){.bytes = 0x7fffffff}, "within SRAM can be sent");
}

static void outsider(struct myri_task *t, void *arg)
{
    uint32_t card = myri_card_symbol(t->host->hw, "card");
    (void)arg;
    const uint32_t what[4] = {MYRI_HW_MEMORY - 4, 8, 4096, 1};
    myri_task_store_words(t, card + (uint32_t)offsetof(struct probe_card, host), what, 4);
    myri_task_spend(t, 100000000, "wait");
}

static void a_dma_outside_the_hosts_memory_is_reported(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-P", "systems/probe/firmware.hex");
    myri_hw_task(hw, 0, outsider, NULL);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "leaves one of them"));
    myri_hw_free(hw);
}

/* ---- marks and limits ---- */

enum misuse {
    SENDS_WHAT_THE_HOST_STILL_BRINGS,
    LETS_OUT_MORE_THAN_THE_MARK_SAID,
    TRANSFERS_WHAT_STILL_ARRIVES,
    TRANSFERS_MORE_THAN_THE_MARK_SAID,
    CHANGES_WHAT_IT_LET_OUT,
    CHANGES_WHAT_IT_LET_OUT_TO_THE_HOST,
    MOVES_A_LIMIT_BACK,
    MOVES_A_LIMIT_BEYOND_THE_END,
    LIMITS_A_TRANSFER_FROM_THE_HOST,
    LIMITS_A_PACKET_BEFORE_ITS_START,
    LIMITS_A_PACKET_BEYOND_ITS_END,
    LIMITS_A_TRANSFER_BEFORE_ITS_START,
    LIMITS_A_TRANSFER_BEYOND_ITS_END,
    MISUSES,
    NOTHING_WRONG = MISUSES
};
struct misused {
    struct engines e;
    enum misuse what;
};

static void misuses_marks(struct myri_task *t, void *arg)
{
    const struct misused *m = arg;
    int host_brings = m->what == SENDS_WHAT_THE_HOST_STILL_BRINGS || m->what == LETS_OUT_MORE_THAN_THE_MARK_SAID;
    wait_ps(t, 1000000);
    if (host_brings) {
        start_dma(t, m->e.page[0], AT, FROM_HOST, PIECE, 0);
        wait_ps(t, 10000000);
        uint32_t mark = get_register(t, HMARK);
        start_send(t, AT, PIECE, m->what == SENDS_WHAT_THE_HOST_STILL_BRINGS ? 0 : AT + mark + 4);
    } else if (m->what == CHANGES_WHAT_IT_LET_OUT_TO_THE_HOST) {
        start_dma(t, m->e.page[0], AT, TO_HOST, PIECE, AT + 2048);
        wait_ps(t, 10000000);
        myri_lanai_set_byte(&card_of(t)->cpu, AT + 2044, 1);
    } else if (m->what == LIMITS_A_TRANSFER_FROM_THE_HOST) {
        start_dma(t, m->e.page[0], AT, FROM_HOST, PIECE, AT + 2048);
    } else if (m->what == LIMITS_A_PACKET_BEFORE_ITS_START || m->what == LIMITS_A_PACKET_BEYOND_ITS_END) {
        start_send(t, AT, PIECE, m->what == LIMITS_A_PACKET_BEFORE_ITS_START ? AT - 4 : AT + PIECE + 4);
    } else if (m->what == LIMITS_A_TRANSFER_BEFORE_ITS_START || m->what == LIMITS_A_TRANSFER_BEYOND_ITS_END) {
        start_dma(t, m->e.page[0], AT, TO_HOST, PIECE,
                  m->what == LIMITS_A_TRANSFER_BEFORE_ITS_START ? AT - 64 : AT + PIECE + 4);
    } else {
        start_send(t, AT, PIECE, AT + 2048);
        wait_ps(t, 5000000);
        if (m->what == CHANGES_WHAT_IT_LET_OUT)
            myri_lanai_set_byte(&card_of(t)->cpu, AT + 2044, 1);
        if (m->what == NOTHING_WRONG) { /* what has left, and what has not been let out yet */
            wait_ps(t, 50000000);
            assert_int_equal(get_register(t, SMARK), 2048);
            myri_lanai_set_byte(&card_of(t)->cpu, AT + 2044, 1);
            myri_lanai_set_byte(&card_of(t)->cpu, AT + 2048, 1);
        }
        if (m->what == MOVES_A_LIMIT_BACK)
            set_register(t, SML, AT + 2044);
        else
            set_register(t, SML, AT + PIECE + (m->what == MOVES_A_LIMIT_BEYOND_THE_END ? 4 : 0));
    }
    wait_ps(t, 100000000);
}

static void takes_what_comes(struct myri_task *t, void *arg)
{
    const struct misused *m = arg;
    open_port(t, AT);
    if (m->what != TRANSFERS_WHAT_STILL_ARRIVES && m->what != TRANSFERS_MORE_THAN_THE_MARK_SAID)
        return;
    wait_ps(t, 8000000);
    uint32_t mark = get_register(t, RMARK);
    assert_true(mark > 0);
    start_dma(t, m->e.page[1], AT, TO_HOST, PIECE, m->what == TRANSFERS_WHAT_STILL_ARRIVES ? 0 : AT + mark + 4);
    wait_ps(t, 100000000);
}

static void marks_and_limits_that_are_not_kept_are_reported(void **state)
{
    (void)state;
    static const char *const says[MISUSES] = {
        "is let out as a byte of a packet, and no mark has said that it has come from the host (at 1",
        "is let out as a byte of a packet, and no mark has said that it has come from the host (at 1",
        "is let out as a byte of a transfer, and no mark has said that it has come from the network (at 8",
        "is let out as a byte of a transfer, and no mark has said that it has come from the network (at 8",
        "node 0: byte 2044 of a packet changed in its buffer while it was on the wire (at ",
        "node 0: byte 2044 of 4096 changed in its buffer while it crossed the I/O bus (at ",
        "node 0 moves the limit of its send engine to SRAM address 67580; it can be from 67584 to 69632",
        "node 0 moves the limit of its send engine to SRAM address 69636; it can be from 67584 to 69632",
        "node 0 sets a limit for a transfer from its host",
        "node 0 starts its send engine with a limit at SRAM address 65532; it can be from 65536 to 69632",
        "node 0 starts its send engine with a limit at SRAM address 69636; it can be from 65536 to 69632",
        "node 0 starts its host DMA with a limit at SRAM address 65472; it can be from 65536 to 69632",
        "node 0 starts its host DMA with a limit at SRAM address 69636; it can be from 65536 to 69632",
    };
    for (int what = 0; what <= MISUSES; what++) {
        struct misused m = {new_engines(), (enum misuse)what};
        myri_hw_task(m.e.hw, 0, misuses_marks, &m);
        myri_hw_task(m.e.hw, 1, takes_what_comes, &m);
        assert_int_equal(myri_hw_power(m.e.hw), 0);
        assert_int_equal(myri_hw_run(m.e.hw), what == MISUSES ? 0 : RNL_ERR_ABORTED);
        if (what < MISUSES && !strstr(rnl_last_error()->text, says[what]))
            fail_msg("%d: '%s' does not say '%s'", what, rnl_last_error()->text, says[what]);
        myri_hw_free(m.e.hw);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dma_to_a_page_that_is_not_pinned_is_reported),
        cmocka_unit_test(a_buffer_that_is_used_again_too_early_is_reported),
        cmocka_unit_test(a_packet_that_is_changed_on_the_wire_is_reported),
        cmocka_unit_test(a_packet_longer_than_its_room_is_reported),
        cmocka_unit_test(a_packet_from_beyond_the_sram_is_reported),
        cmocka_unit_test(a_dma_outside_the_hosts_memory_is_reported),
        cmocka_unit_test(marks_and_limits_that_are_not_kept_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
