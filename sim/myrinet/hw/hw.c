/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hw.c - the machine as a whole: its nodes, and the order in which their processors run.
 *
 * A processor executes thousands of instructions between two events, so it is no event itself. One event stands for all
 * that are busy: it runs the one that is furthest behind, up to the next event, or a head's time beyond the second
 * furthest: nothing that one of them does can reach another sooner. The limit is looked up again after each instruction
 * that schedules something. So each event finds every busy processor at its tick, or within the instruction there. */
#include "sim/myrinet/hw/hw.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static void on_processors(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    while (!hw->fault[0]) {
        struct myri_card *behind = NULL, *second = NULL;
        for (uint32_t i = 0; i < hw->nodes; i++) {
            struct myri_card *c = &hw->card[i];
            if (c->idle)
                continue;
            if (!behind || c->cpu.now_ps < behind->cpu.now_ps) {
                second = behind;
                behind = c;
            } else if (!second || c->cpu.now_ps < second->cpu.now_ps) {
                second = c;
            }
        }
        if (!behind)
            return; /* until an event wakes one */
        uint64_t next = rnl_sim_next(sim), limit = next;
        if (behind->cpu.now_ps >= next || behind->cpu.now_ps > hw->horizon_ps) {
            rnl_sim_at(sim, e, behind->cpu.now_ps);
            return;
        }
        uint64_t ahead = hw->no_skip ? 1 : hw->t.head;
        if (second && second->cpu.now_ps + ahead < limit)
            limit = second->cpu.now_ps + ahead;
        if (hw->horizon_ps < limit)
            limit = hw->horizon_ps + 1;
        hw->executing = behind;
        myri_hw_progress = myri_hw_progress + 1;
        int rc = myri_lanai_run(&behind->cpu, limit);
        hw->executing = NULL;
        if (rc < 0)
            myri_card_fault(behind);
    }
}

static void in_ticks(struct myri_hw *hw)
{
    const struct myri_machine *m = &hw->machine;
    hw->t.head = myri_machine_us(m, MYRI_M_head_latency);
    hw->t.send_start = myri_machine_cycles(m, MYRI_M_send_start);
    hw->t.receive_start = myri_machine_cycles(m, MYRI_M_receive_start);
    hw->t.dma_start = myri_machine_cycles(m, MYRI_M_dma_start);
    /* who starts transfers from a host and waits for a word back sees the sum of both directions */
    uint64_t both = 2 * myri_machine_us(m, MYRI_M_dma_setup);
    hw->t.dma_setup[TO_HOST] = (uint64_t)((double)both * m->v[MYRI_M_dma_to_host] + 0.5);
    hw->t.dma_setup[FROM_HOST] = both - hw->t.dma_setup[TO_HOST];
    hw->t.burst = myri_machine_bytes(m, MYRI_M_dma_rate, (uint64_t)m->v[MYRI_M_bus_burst]);
    hw->t.store = myri_machine_us(m, MYRI_M_store);
    hw->t.combined = myri_machine_bytes(m, MYRI_M_combined_rate, 32);
    hw->t.load = myri_machine_us(m, MYRI_M_load);
    hw->t.poll = myri_machine_ns(m, MYRI_M_poll);
    hw->t.miss = myri_machine_ns(m, MYRI_M_miss);
    hw->t.operation = myri_machine_ns(m, MYRI_M_host_operation);
    hw->t.window_trap = myri_machine_us(m, MYRI_M_window_trap);
    hw->t.interrupt = myri_machine_us(m, MYRI_M_interrupt);
}

/* What happens at one tick goes by nodes: cards in step with each other schedule it in no order that means anything. */
static uint32_t by_node(uint64_t seed, uint64_t at, uint32_t entity)
{
    (void)seed;
    (void)at;
    return entity;
}

int myri_hw_new(const struct myri_machine *machine, uint32_t nodes, uint64_t seed, const void *object, size_t bytes,
                struct myri_hw **out)
{
    if (nodes < 1 || nodes > MYRI_HW_NODES)
        return rnl_fail(RNL_ERR_ARG, "%u nodes are asked for; there can be 1 to %d", nodes, MYRI_HW_NODES);
    struct myri_hw *hw = calloc(1, sizeof *hw);
    if (!hw)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a machine");
    hw->machine = *machine;
    double sram = 4 * machine->v[MYRI_M_ni_clock] * machine->v[MYRI_M_sram_accesses]; /* MB/s; 0: no limit */
    if (sram > 0 && hw->machine.v[MYRI_M_dma_rate] > sram)
        hw->machine.v[MYRI_M_dma_rate] = sram; /* no bus is faster than what it comes from */
    hw->page = (uint32_t)machine->v[MYRI_M_page];
    hw->pages = MYRI_HW_MEMORY / hw->page;
    in_ticks(hw);
    hw->horizon_ps = RNL_SIM_NEVER - 1;
    int rc = rnl_sim_new(seed, &hw->sim);
    hw->card = calloc(nodes, sizeof *hw->card);
    hw->host = calloc(nodes, sizeof *hw->host);
    if (rc == 0 && (!hw->card || !hw->host))
        rc = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u nodes", nodes);
    for (; rc == 0 && hw->nodes < nodes; hw->nodes++) {
        rc = myri_card_init(&hw->card[hw->nodes], hw, hw->nodes, object, bytes);
        if (rc == 0)
            rc = myri_host_init(&hw->host[hw->nodes], hw, hw->nodes);
    }
    if (rc < 0) {
        myri_hw_free(hw);
        return rc;
    }
    rnl_sim_set_owner(hw->sim, hw);
    rnl_sim_set_tie(hw->sim, by_node);
    rnl_sim_event_init(&hw->processors, on_processors, 2 * MYRI_HW_NODES);
    *out = hw;
    return 0;
}

int myri_hw_power(struct myri_hw *hw)
{
    const struct myri_lanai_symbol *entry = myri_lanai_find(&hw->card[0].cpu, "fw_main");
    if (!entry)
        return rnl_fail(RNL_ERR_ARG, "the firmware has no function fw_main to start with");
    for (uint32_t i = 0; i < hw->nodes; i++)
        myri_lanai_start(&hw->card[i].cpu, entry->at);
    return rnl_sim_at(hw->sim, &hw->processors, 0);
}

int myri_hw_run(struct myri_hw *hw)
{
    if (!hw->fault[0])
        rnl_sim_run(hw->sim, hw->horizon_ps);
    for (uint32_t i = 0; i < hw->nodes; i++)
        if (hw->parts)
            myri_card_last_turn(&hw->card[i]);
        else if (!hw->card[i].idle) /* what it was at when the run ended */
            myri_hw_trace(hw, i, MYRI_LANE_FIRMWARE, hw->card[i].busy_from_ps, myri_hw_now(hw), "firmware", 0);
    if (hw->fault[0])
        return rnl_fail(RNL_ERR_ABORTED, "%s", hw->fault);
    if (hw->tasks_left)
        return myri_hw_stuck(hw);
    return 0;
}

void myri_hw_free(struct myri_hw *hw)
{
    if (!hw)
        return;
    for (uint32_t i = 0; hw->host && i < hw->nodes; i++)
        myri_host_fini(&hw->host[i]);
    for (uint32_t i = 0; hw->card && i < hw->nodes; i++)
        myri_card_fini(&hw->card[i]);
    while (hw->all_packets) {
        struct myri_hw_packet *p = hw->all_packets;
        hw->all_packets = p->chain;
        free(p);
    }
    free(hw->parts);
    rnl_sim_free(hw->sim);
    free(hw->card);
    free(hw->host);
    free(hw);
}
