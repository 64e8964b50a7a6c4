/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_vmmc.c - what paper 002 promises of VMMC beside its figures: who may import what, what a process can reach, the
 * two formats of a send, the software TLB and its interrupt, when a source may be changed. */
#include "tests/myrinet/machine.h"

#include "sim/myrinet/systems/vmmc/host.h"

#include <string.h>

enum { PAGE = 4096 };

static void run(struct myri_hw *hw)
{
    assert_int_equal(myri_hw_power(hw), 0);
    if (myri_hw_run(hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
}

struct vmmc_pair {
    struct vmmc a, b, other; /* other: a second process on a's node */
    uint32_t from, to, secret, proxy;
};

static uint32_t counter(struct myri_hw *hw, uint32_t node, size_t field)
{
    return myri_card_peek(&hw->card[node], myri_card_symbol(hw, "card") + (uint32_t)field);
}

static void attacker(struct myri_task *t, void *arg)
{
    struct vmmc_pair *p = arg;
    struct myri_hw *hw = t->host->hw;
    uint32_t word, outgoing = p->a.card +
                              (uint32_t)(offsetof(struct vmmc_card, process) + offsetof(struct vmmc_process, outgoing));
    p->a.task = t;
    /* its own table, another process's queue, the card's program: not in its map */
    assert_int_equal(myri_task_store(t, outgoing, 0x80100001), -1);
    assert_int_equal(myri_task_store(t, outgoing + (uint32_t)sizeof(struct vmmc_process), 1), -1);
    assert_int_equal(myri_task_store(t, 0, 0), -1);
    assert_int_equal(myri_task_load(t, outgoing, &word), -1);
    assert_int_equal(hw->count.refused, 4);
    /* proxy pages that were never imported, and beyond the table */
    vmmc_post(&p->a, p->from, p->proxy + 5 * PAGE, 4);
    vmmc_post(&p->a, p->from, VMMC_PAGES * PAGE, 4);
    vmmc_post(&p->a, p->from, 0xfffff000u, 64);
    /* across the end of what was imported */
    vmmc_post(&p->a, p->from, p->proxy + PAGE - 4, 8);
    myri_task_spend(t, 100000000, "wait");
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, errors)), 4);
    /* what its owner has taken back since: the other card refuses */
    vmmc_unexport(&p->b, p->to, PAGE);
    vmmc_post(&p->a, p->from, p->proxy, 4);
    myri_task_spend(t, 100000000, "wait");
    assert_int_equal(counter(hw, 1, offsetof(struct vmmc_card, refused)), 1);
    /* and what is allowed still works */
    assert_int_equal(vmmc_export(&p->b, p->to, PAGE, 0, NULL, 0), 0);
    myri_host_set_word(t->host, p->from, 77);
    vmmc_send(&p->a, p->from, p->proxy, 4);
    myri_task_spend(t, 100000000, "wait");
    assert_int_equal(myri_host_word(&hw->host[1], p->to), 77);
    assert_int_equal(myri_host_word(&hw->host[1], p->secret), 0);
}

static void vmmc_protects_processes_from_each_other(void **state)
{
    (void)state;
    struct vmmc_pair p = {0};
    struct myri_hw *hw = new_hw("H-P", "systems/vmmc/firmware.hex");
    assert_int_equal(vmmc_attach(&p.a, hw, 0, 0), 0);
    assert_int_equal(vmmc_attach(&p.other, hw, 0, 1), 0);
    assert_int_equal(vmmc_attach(&p.b, hw, 1, 0), 0);
    p.from = myri_host_take(&hw->host[0], PAGE, 0);
    p.to = myri_host_take(&hw->host[1], PAGE, 0);
    p.secret = myri_host_take(&hw->host[1], PAGE, 1);
    assert_int_equal(vmmc_export(&p.b, p.to, PAGE, 0, NULL, 0), 0);
    p.proxy = vmmc_import(&p.a, &p.b, p.to, PAGE);
    struct myri_task *t = myri_hw_task(hw, 0, attacker, &p);
    t->map_from = p.a.card + (uint32_t)offsetof(struct vmmc_card, process);
    t->map_to = t->map_from + (uint32_t)sizeof(struct vmmc_request) * VMMC_QUEUE;
    run(hw);
    myri_hw_free(hw);
}

static void long_sender(struct myri_task *t, void *arg)
{
    struct vmmc_pair *p = arg;
    p->a.task = t;
    for (uint32_t k = 0; k < 3000; k++)
        myri_host_set_word(t->host, p->from + 4 * k, k);
    vmmc_send(&p->a, p->from + 100, p->proxy + 2000, 10000);
    myri_task_spend(t, 1000000000, "wait");
}

static void a_miss_is_one_interrupt_and_pieces_land_across_pages(void **state)
{
    (void)state;
    struct vmmc_pair p = {0};
    struct myri_hw *hw = new_hw("H-P", "systems/vmmc/firmware.hex");
    assert_int_equal(vmmc_attach(&p.a, hw, 0, 0), 0);
    assert_int_equal(vmmc_attach(&p.b, hw, 1, 0), 0);
    p.from = myri_host_take(&hw->host[0], 12288, 0);
    p.to = myri_host_take(&hw->host[1], 12288, 0);
    assert_int_equal(vmmc_export(&p.b, p.to, 12288, 1, NULL, 0), 0);
    p.proxy = vmmc_import(&p.a, &p.b, p.to, 12288);
    myri_hw_task(hw, 0, long_sender, &p);
    run(hw);
    for (uint32_t k = 0; k < 2500; k++)
        assert_int_equal(myri_host_word(&hw->host[1], p.to + 2000 + 4 * k), 25 + k);
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, misses)), 1);
    assert_true(hw->count.interrupts >= 2); /* the miss, and notifications: those that come together are one */
    myri_hw_free(hw);
}

/* Paper 002, 2: an exporter restricts who may import a buffer, and that is enforced when an import is attempted. */
static void an_import_needs_an_export_and_its_permission(void **state)
{
    (void)state;
    struct vmmc_pair p = {0};
    struct myri_hw *hw = new_hw("H-P", "systems/vmmc/firmware.hex");
    assert_int_equal(vmmc_attach(&p.a, hw, 0, 0), 0);
    assert_int_equal(vmmc_attach(&p.other, hw, 0, 1), 0);
    assert_int_equal(vmmc_attach(&p.b, hw, 1, 0), 0);
    p.to = myri_host_take(&hw->host[1], 3 * PAGE, 0);
    p.secret = myri_host_take(&hw->host[1], PAGE, 1);
    static const struct vmmc_importer only_other = {0, 1}, nobody = {1, 3};
    assert_int_equal(vmmc_import(&p.a, &p.b, p.to, PAGE), 0); /* nothing is exported yet */
    assert_int_equal(vmmc_export(&p.b, p.to, 2 * PAGE, 0, NULL, 0), 0);
    assert_int_equal(vmmc_export(&p.b, p.to + 2 * PAGE, PAGE, 0, &only_other, 1), 0);
    assert_int_not_equal(vmmc_import(&p.a, &p.b, p.to, 2 * PAGE), 0);
    assert_int_not_equal(vmmc_import(&p.other, &p.b, p.to + 100, PAGE), 0);
    /* not exported, beyond what is, across two exports, and with an end that leaves the address space */
    assert_int_equal(vmmc_import(&p.a, &p.b, p.secret, PAGE), 0);
    assert_int_equal(vmmc_import(&p.a, &p.b, p.to - 4, 8), 0);
    assert_int_equal(vmmc_import(&p.other, &p.b, p.to + PAGE, 2 * PAGE), 0);
    assert_int_equal(vmmc_import(&p.a, &p.b, p.to + PAGE, 0xfffff000u), 0);
    /* exported to somebody else */
    assert_int_equal(vmmc_import(&p.a, &p.b, p.to + 2 * PAGE, PAGE), 0);
    assert_int_not_equal(vmmc_import(&p.other, &p.b, p.to + 2 * PAGE, PAGE), 0);
    /* taken back */
    vmmc_unexport(&p.b, p.to + 2 * PAGE, PAGE);
    assert_int_equal(vmmc_import(&p.other, &p.b, p.to + 2 * PAGE, PAGE), 0);
    assert_int_equal(vmmc_export(&p.b, p.to + 2 * PAGE, PAGE, 0, &nobody, 1), 0);
    assert_int_equal(vmmc_import(&p.other, &p.b, p.to + 2 * PAGE, PAGE), 0);
    /* 8 MB a process */
    uint32_t large = myri_host_take(&hw->host[1], VMMC_PAGES * PAGE, 0);
    assert_int_equal(vmmc_export(&p.b, large, VMMC_PAGES * PAGE, 0, NULL, 0), 0);
    assert_int_equal(vmmc_import(&p.a, &p.b, large, VMMC_PAGES * PAGE), 0);
    assert_int_not_equal(vmmc_import(&p.a, &p.b, large, (VMMC_PAGES - 3) * PAGE), 0);
    assert_int_equal(vmmc_import(&p.a, &p.b, large, PAGE), 0);
    myri_hw_free(hw);
}

/* Paper 002, 4.5: up to 128 bytes by stores, more by address; an interrupt brings 32 translations; two ways. */
static void sender_of_all(struct myri_task *t, void *arg)
{
    struct vmmc_pair *p = arg;
    struct myri_hw *hw = t->host->hw;
    p->a.task = t;
    vmmc_send(&p->a, p->from, p->proxy, VMMC_SHORT);
    myri_task_spend(t, 100000000, "wait");
    assert_int_equal(hw->count.dma_from_host, 0);
    vmmc_send(&p->a, p->from, p->proxy, VMMC_SHORT + 4);
    assert_int_equal(hw->count.dma_from_host, VMMC_SHORT + 4);
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, misses)), 1);
    vmmc_send(&p->a, p->from, p->proxy, VMMC_MISSES * PAGE);
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, misses)), 1);
    /* when a synchronous send returns, its source may be changed: a chunk not yet taken would be reported */
    for (uint32_t k = 0; k < VMMC_MISSES; k++)
        myri_host_set_word(t->host, p->from + k * PAGE, 5);
    vmmc_send(&p->a, p->from, p->proxy, (VMMC_MISSES + 1) * PAGE);
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, misses)), 2);
    /* a page that falls into the set of the first one has the other way */
    vmmc_send(&p->a, p->from + VMMC_SETS * PAGE, p->proxy, PAGE);
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, misses)), 3);
    vmmc_send(&p->a, p->from, p->proxy, PAGE);
    vmmc_send(&p->a, p->from + VMMC_SETS * PAGE, p->proxy, PAGE);
    assert_int_equal(counter(hw, 0, offsetof(struct vmmc_card, misses)), 3);
    assert_int_equal(hw->count.interrupts, 3);
    myri_task_spend(t, 1000000000, "wait");
}

static void sends_are_short_or_long_and_a_miss_brings_thirty_two_translations(void **state)
{
    (void)state;
    struct vmmc_pair p = {0};
    struct myri_hw *hw = new_hw("H-P", "systems/vmmc/firmware.hex");
    assert_int_equal(vmmc_attach(&p.a, hw, 0, 0), 0);
    assert_int_equal(vmmc_attach(&p.b, hw, 1, 0), 0);
    p.from = myri_host_take(&hw->host[0], (VMMC_SETS + 40) * PAGE, 0);
    p.to = myri_host_take(&hw->host[1], 40 * PAGE, 0);
    assert_int_equal(vmmc_export(&p.b, p.to, 40 * PAGE, 0, NULL, 0), 0);
    p.proxy = vmmc_import(&p.a, &p.b, p.to, 40 * PAGE);
    myri_hw_task(hw, 0, sender_of_all, &p);
    run(hw);
    myri_hw_free(hw);
}

/* Paper 002, 5.2: reads are off the critical path of a post. The entry behind is looked at once the post is over. */
static void poster(struct myri_task *t, void *arg)
{
    struct vmmc_pair *p = arg;
    struct myri_hw *hw = t->host->hw;
    p->a.task = t;
    for (uint32_t k = 1; k <= 3 * VMMC_QUEUE; k++) {
        uint64_t sent = hw->count.packets_sent, before = hw->count.loads;
        vmmc_post(&p->a, p->from, p->proxy, 4);
        assert_int_equal(hw->count.loads, k < VMMC_QUEUE ? 0 : before + 1);
        assert_int_equal(hw->count.packets_sent, sent);
        myri_task_spend(t, 100000000, "wait");
        assert_int_equal(hw->count.packets_sent, k);
    }
}

/* A page of each host, that of the second exported to the first. */
static struct myri_hw *new_pair(struct vmmc_pair *p)
{
    struct myri_hw *hw = new_hw("H-P", "systems/vmmc/firmware.hex");
    memset(p, 0, sizeof *p);
    assert_int_equal(vmmc_attach(&p->a, hw, 0, 0), 0);
    assert_int_equal(vmmc_attach(&p->b, hw, 1, 0), 0);
    p->from = myri_host_take(&hw->host[0], PAGE, 0);
    p->to = myri_host_take(&hw->host[1], PAGE, 0);
    assert_int_equal(vmmc_export(&p->b, p->to, PAGE, 0, NULL, 0), 0);
    p->proxy = vmmc_import(&p->a, &p->b, p->to, PAGE);
    return hw;
}

static void a_post_looks_once_and_ahead(void **state)
{
    (void)state;
    struct vmmc_pair p;
    struct myri_hw *hw = new_pair(&p);
    myri_hw_task(hw, 0, poster, &p);
    run(hw);
    myri_hw_free(hw);
}

/* An asynchronous one returns at once: what is changed before vmmc_wait says so is caught. */
static void hasty_sender(struct myri_task *t, void *arg)
{
    struct vmmc_pair *p = arg;
    p->a.task = t;
    vmmc_post(&p->a, p->from, p->proxy, PAGE);
    myri_task_spend(t, 15000000, "compute");
    myri_host_set_word(t->host, p->from + PAGE - 8, 1);
    vmmc_wait(&p->a);
}

static void a_source_that_is_changed_before_its_completion_word_is_reported(void **state)
{
    (void)state;
    struct vmmc_pair p;
    struct myri_hw *hw = new_pair(&p);
    vmmc_translate(&p.a, p.from, 1);
    myri_hw_task(hw, 0, hasty_sender, &p);
    assert_int_equal(myri_hw_power(hw), 0);
    assert_int_equal(myri_hw_run(hw), RNL_ERR_ABORTED);
    assert_non_null(strstr(rnl_last_error()->text, "changed in its buffer"));
    myri_hw_free(hw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vmmc_protects_processes_from_each_other),
        cmocka_unit_test(a_miss_is_one_interrupt_and_pieces_land_across_pages),
        cmocka_unit_test(an_import_needs_an_export_and_its_permission),
        cmocka_unit_test(sends_are_short_or_long_and_a_miss_brings_thirty_two_translations),
        cmocka_unit_test(a_post_looks_once_and_ahead),
        cmocka_unit_test(a_source_that_is_changed_before_its_completion_word_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
