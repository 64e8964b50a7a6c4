/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_misuse.c - what the machine catches: each of these ends a run, and says which node did what. */
#include "tests/myrinet/machine.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dma_to_a_page_that_is_not_pinned_is_reported),
        cmocka_unit_test(a_buffer_that_is_used_again_too_early_is_reported),
        cmocka_unit_test(a_packet_that_is_changed_on_the_wire_is_reported),
        cmocka_unit_test(a_packet_longer_than_its_room_is_reported),
        cmocka_unit_test(a_packet_from_beyond_the_sram_is_reported),
        cmocka_unit_test(a_dma_outside_the_hosts_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
