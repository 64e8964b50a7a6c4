/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_space.c - address spaces of a host: no two share a frame, an area lies in a row and stays, and a card that
 * reaches a frame of another space is stopped. */
#include "sim/myrinet/os/space.h"
#include "tests/myrinet/machine.h"

#include <string.h>

static void spaces_share_no_frame_and_lie_anywhere(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    static struct myri_space a, b;
    assert_int_equal(myri_space_init(&a, &hw->host[0]), 0);
    assert_int_equal(myri_space_init(&b, &hw->host[0]), 0);
    uint32_t at = myri_space_map(&a, 100 * 4096), other = myri_space_map(&b, 100 * 4096), rows = 0;
    for (uint32_t i = 0; i < 100; i++) {
        for (uint32_t k = 0; k < 100; k++)
            assert_int_not_equal(a.frame[i], b.frame[k]);
        rows += i && a.frame[i] == a.frame[i - 1] + 1;
        assert_int_equal(hw->host[0].owner[a.frame[i]], 1);
    }
    assert_true(rows < 5);
    myri_space_set_word(&a, NULL, at + 4096, 17);
    myri_space_set_word(&b, NULL, other + 4096, 18);
    assert_int_equal(myri_space_word(&a, NULL, at + 4096), 17);
    /* pinned it stays, paged out it comes back with its bytes, elsewhere */
    uint32_t card = myri_space_pin(&a, at + 4096);
    assert_int_equal(card, MYRI_SPACE_ADDRESS(1, a.frame[1] * 4096));
    assert_int_equal(myri_space_page_out(&a, at + 4096), -1);
    assert_int_equal(hw->host[0].pins[a.frame[1]], 1);
    assert_int_equal(myri_space_pin(&a, at + 4100), card + 4); /* pins are counted */
    myri_space_unpin(&a, at + 4100);
    assert_int_equal(hw->host[0].pins[a.frame[1]], 1);
    assert_int_equal(myri_space_page_out(&a, at + 4096), -1);
    myri_space_unpin(&a, at + 4096);
    assert_int_equal(hw->host[0].pins[a.frame[1]], 0);
    uint32_t was = a.frame[1];
    assert_int_equal(myri_space_page_out(&a, at + 4096), 0);
    assert_int_equal(hw->host[0].owner[was], 0);
    assert_int_equal(myri_space_word(&a, NULL, at + 4096), 17);
    assert_int_equal(a.page_ins, 1);
    assert_int_equal(myri_space_pin(&a, 0), 0);
    assert_int_equal(myri_space_pin(&a, at + 100 * 4096), 0);
    myri_space_fini(&a);
    myri_space_fini(&b);
    myri_hw_free(hw);
}

/* A row of frames is found although pages of the same space lie all over memory: they are moved, with what they hold,
 * but for those that are pinned or another space's. */
static void an_area_lies_in_a_row_and_is_pinned(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    static struct myri_space a, b;
    enum { PAGES = 900, ROW = 1000 };
    assert_int_equal(myri_space_init(&a, &hw->host[0]), 0);
    assert_int_equal(myri_space_init(&b, &hw->host[0]), 0);
    uint32_t other = myri_space_map(&b, 4096), at = myri_space_map(&a, PAGES * 4096), moved = 0;
    static uint32_t was[PAGES];
    uint32_t pinned = myri_space_pin(&a, at + 7 * 4096);
    myri_space_set_word(&b, NULL, other, 99);
    for (uint32_t i = 0; i < PAGES; i++) {
        myri_space_set_word(&a, NULL, at + 4096 * i, i + 1);
        was[i] = a.frame[i];
    }
    uint32_t area = myri_space_map_area(&a, ROW * 4096 - 8);
    assert_string_equal(hw->fault, "");
    assert_int_equal(area, at + PAGES * 4096);
    uint32_t card = myri_space_pin(&a, area);
    for (uint32_t i = 0; i < ROW; i++) {
        uint32_t frame = a.frame[PAGES + i];
        assert_int_equal(MYRI_SPACE_ADDRESS(1, frame * 4096), card + i * 4096);
        assert_int_equal(hw->host[0].pins[frame], 1);
        assert_int_equal(hw->host[0].owner[frame], 1);
        assert_int_equal(myri_space_word(&a, NULL, area + 4096 * i), 0);
        assert_int_equal(myri_space_page_out(&a, area + 4096 * i), -1);
        assert_int_not_equal(frame, b.frame[0]);
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        assert_int_equal(myri_space_word(&a, NULL, at + 4096 * i), i + 1);
        assert_int_equal(hw->host[0].owner[a.frame[i]], 1);
        moved += a.frame[i] != was[i];
    }
    assert_true(moved > PAGES / 10 && moved < PAGES);
    assert_int_equal(MYRI_SPACE_ADDRESS(1, a.frame[7] * 4096), pinned);
    assert_int_equal(myri_space_word(&b, NULL, other), 99);
    assert_int_equal(myri_space_map_area(&b, 3000 * 4096), 0); /* no such row is left */
    assert_non_null(strstr(hw->fault, "3000 frames in a row are asked for space 2"));
    myri_space_fini(&a);
    myri_space_fini(&b);
    myri_hw_free(hw);
}

static void a_dma_to_a_frame_of_another_space_is_a_fault(void **state)
{
    (void)state;
    struct myri_hw *hw = new_hw("H-PP", "systems/probe/firmware.hex");
    static struct myri_space a, b;
    assert_int_equal(myri_space_init(&a, &hw->host[0]), 0);
    assert_int_equal(myri_space_init(&b, &hw->host[0]), 0);
    uint32_t at = myri_space_map(&a, 4096), card = myri_space_pin(&a, at), frame = a.frame[0];
    struct myri_card *c = &hw->card[0];
    write_register(c, EAR, card);
    write_register(c, LAR, c->cpu.code_end);
    write_register(c, DIR, TO_HOST);
    write_register(c, CTR, 4);
    assert_string_equal(hw->fault, "");
    c->status |= HDONE; /* that one is over */
    /* the page goes, and its frame is another's, while the card still has the translation */
    myri_space_unpin(&a, at);
    assert_int_equal(myri_space_page_out(&a, at), 0);
    hw->host[0].owner[frame] = (uint8_t)b.id;
    hw->host[0].pins[frame] = 1;
    write_register(c, CTR, 4);
    assert_non_null(strstr(hw->fault, "for space 1 to host address"));
    assert_non_null(strstr(hw->fault, "is of space 2"));
    myri_space_fini(&a);
    myri_space_fini(&b);
    myri_hw_free(hw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces_share_no_frame_and_lie_anywhere),
        cmocka_unit_test(an_area_lies_in_a_row_and_is_pinned),
        cmocka_unit_test(a_dma_to_a_frame_of_another_space_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
