/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registers.h - tests that drive a card's engines as firmware would: tasks store to its registers and read them, beside
 * the probe's firmware, which touches no engine before its host asks for it. Two nodes, whose SRAM is faster than all
 * engines together; so closed forms hold. */
#ifndef RNL_TESTS_PAPER_REGISTERS_H
#define RNL_TESTS_PAPER_REGISTERS_H

#include "tests/myrinet/machine.h"

enum { AT = 64 << 10, PIECE = 4096, ROOM = 8192, SOON = 200000 }; /* in SRAM; bytes; of a port; ps */

static inline struct myri_card *card_of(struct myri_task *t)
{
    return &t->host->hw->card[t->host->id];
}

/* When the store has its effect. */
static inline uint64_t set_register(struct myri_task *t, uint32_t reg, uint32_t value)
{
    struct myri_card *c = card_of(t);
    myri_card_wake(c, myri_hw_now(t->host->hw));
    uint64_t at = c->cpu.now_ps + c->cpu.step1_ps;
    c->cpu.store(&c->cpu, reg, value);
    return at;
}

static inline uint32_t get_register(struct myri_task *t, uint32_t reg)
{
    struct myri_card *c = card_of(t);
    myri_card_wake(c, myri_hw_now(t->host->hw));
    return reg == ISR ? c->status : c->cpu.load(&c->cpu, reg);
}

static inline uint64_t now_of(struct myri_task *t)
{
    return card_of(t)->cpu.now_ps;
}

static inline void wait_ps(struct myri_task *t, uint64_t ps)
{
    myri_task_spend(t, ps, "wait");
}

static inline void wait_for(struct myri_task *t, uint32_t bits)
{
    for (int i = 0; i < 10000 && !(get_register(t, ISR) & bits); i++)
        wait_ps(t, SOON / 10);
}

static inline uint64_t start_send(struct myri_task *t, uint32_t at, uint32_t bytes, uint32_t limit)
{
    if (limit)
        set_register(t, SML, limit);
    set_register(t, SRT, ROUTE_VALID | !t->host->id);
    set_register(t, SMP, at);
    return set_register(t, SMLT, at + bytes);
}

static inline void open_port(struct myri_task *t, uint32_t at)
{
    set_register(t, RMP, at);
    set_register(t, RML, at + ROOM);
}

static inline uint64_t start_dma(struct myri_task *t, uint32_t host, uint32_t at, uint32_t direction, uint32_t bytes,
                                 uint32_t limit)
{
    if (limit)
        set_register(t, HML, limit);
    set_register(t, EAR, host);
    set_register(t, LAR, at);
    set_register(t, DIR, direction);
    return set_register(t, CTR, bytes);
}

struct engines {
    struct myri_hw *hw;
    uint32_t page[2]; /* of each host, pinned */
};

static inline struct engines new_engines(void)
{
    struct engines e = {.hw = new_hw("H-PP", "systems/probe/firmware.hex")};
    e.hw->machine.v[MYRI_M_sram_accesses] = 8;
    e.hw->horizon_ps = 10000000000;
    for (uint32_t i = 0; i < 2; i++) {
        e.page[i] = myri_host_take(&e.hw->host[i], ROOM, 1);
        myri_card_share(&e.hw->card[i]);
    }
    for (uint32_t i = 0; i < ROOM; i++)
        e.hw->host[0].memory[e.page[0] + i] = (uint8_t)(i * 7 + i / 256 + 1);
    return e;
}

static inline uint64_t bytes_take(const struct myri_hw *hw, enum myri_machine_value rate, uint32_t bytes)
{
    return myri_machine_bytes(&hw->machine, rate, bytes);
}

#endif
