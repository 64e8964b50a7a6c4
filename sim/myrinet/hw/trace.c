/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trace.c - what a run tells: its time, its fault, its trace, and for the trace which function of its source a card's
 * program is in. Functions are inlined, so the table of
 * lines says whose an instruction is; a store to a register says what it starts. What the compiler cannot ascribe goes
 * with the instruction before it.
 *
 * A turn of the loop, from one look at the status to the next, that stores nothing has found nothing to do: it is shown
 * as waiting. Of every other one each part is shown. Together they are all of a card's time. */
#include "sim/myrinet/hw/hw.h"

#include "base/error.h"
#include "sim/myrinet/hw/nic.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile unsigned long myri_hw_progress;

void myri_hw_fault(struct myri_hw *hw, const char *format, ...)
{
    if (!hw->fault[0]) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(hw->fault, sizeof hw->fault, format, args);
        va_end(args);
        if (n > 0 && (size_t)n < sizeof hw->fault)
            snprintf(hw->fault + n, sizeof hw->fault - (size_t)n, " (at %.3f us)",
                     (double)(hw->executing ? hw->executing->cpu.now_ps : myri_hw_now(hw)) / 1e6);
    }
    rnl_sim_stop(hw->sim);
}

uint64_t myri_hw_now(const struct myri_hw *hw)
{
    return rnl_sim_now(hw->sim);
}

void myri_hw_trace(struct myri_hw *hw, uint32_t node, enum myri_hw_lane lane, uint64_t from, uint64_t to,
                   const char *what, uint64_t amount)
{
    if (hw->tracer && to > from)
        hw->tracer(hw->tracer_arg, node, lane, from, to, what, amount);
}

uint32_t myri_card_symbol(struct myri_hw *hw, const char *name)
{
    const struct myri_lanai_symbol *s = myri_lanai_find(&hw->card[0].cpu, name);
    if (s)
        return s->at;
    myri_hw_fault(hw, "the firmware has no symbol '%s'", name);
    return 0;
}

enum { SAME, DMA, SEND, PORT, INTERRUPT, FUNCTIONS, PARTS = 64, NAME = 32 };
struct myri_hw_parts {
    char name[PARTS][NAME];
    uint32_t n, code_end;
    uint8_t of[]; /* for each instruction */
};

static uint8_t named(struct myri_hw_parts *p, const char *name, size_t length)
{
    if (length == 1 && *name == '-') /* none's */
        return SAME;
    for (uint32_t i = FUNCTIONS; i < p->n; i++)
        if (strlen(p->name[i]) == length && strncmp(p->name[i], name, length) == 0)
            return (uint8_t)i;
    if (p->n == PARTS || length >= NAME)
        return SAME;
    memcpy(p->name[p->n], name, length);
    return (uint8_t)p->n++;
}

/* What a store to a register belongs to, or `otherwise`. */
static uint8_t register_part(const struct myri_lanai_op *d, uint8_t otherwise)
{
    if (d->op != MYRI_LN_ST || d->rs1 != 0 || (uint32_t)d->imm < MYRI_LANAI_REGISTERS)
        return otherwise;
    switch (((uint32_t)d->imm - MYRI_LANAI_REGISTERS) / 4) {
    case EAR:
    case LAR:
    case DIR:
    case CTR:
        return DMA;
    case SRT:
    case SMP:
    case SMLT:
        return SEND;
    case RMP:
    case RML:
        return PORT;
    case HIRQ:
        return INTERRUPT;
    default:
        return otherwise;
    }
}

int myri_hw_name_parts(struct myri_hw *hw, const char *lines)
{
    static const char *const own[FUNCTIONS] = {"", "start host DMA", "start send", "open port", "interrupt host"};
    const struct myri_lanai *m = &hw->card[0].cpu;
    struct myri_hw_parts *p = calloc(1, sizeof *p + m->code_end / 4 + 1);
    if (!p)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the functions of a firmware");
    for (int i = 0; i < FUNCTIONS; i++)
        snprintf(p->name[i], NAME, "%s", own[i]);
    p->n = FUNCTIONS;
    p->code_end = m->code_end;
    uint32_t at = 0;
    uint8_t is = SAME;
    for (const char *t = lines; *t;) { /* ADDRESS LINE FILE FUNCTION */
        char *end;
        uint32_t from = (uint32_t)strtoul(t, &end, 16);
        for (; at < from && at < m->code_end; at += 4)
            p->of[at / 4] = register_part(&m->code[at / 4], is);
        const char *line = end + strspn(end, " "), *file = line + strcspn(line, " ") + 1,
                   *function = file + strcspn(file, " ") + 1;
        size_t n = strcspn(function, "\n");
        is = strncmp(file, "nic.h ", 6) == 0 ? (uint8_t)SAME : named(p, function, n);
        t = function + n + (function[n] == '\n');
    }
    for (; at < m->code_end; at += 4)
        p->of[at / 4] = register_part(&m->code[at / 4], is);
    hw->parts = p;
    for (uint32_t i = 0; i < hw->nodes; i++)
        hw->card[i].cpu.executes = myri_card_executes;
    return 0;
}

void myri_card_executes(struct myri_lanai *m, uint32_t at)
{
    struct myri_card *c = (struct myri_card *)m;
    uint8_t part = c->hw->parts->of[at / 4];
    if (part == SAME || part == c->seen.part || c->seen.n == MYRI_HW_SEEN)
        return;
    c->seen.part = part;
    c->seen.at_ps[c->seen.n] = m->now_ps;
    c->seen.of[c->seen.n++] = part;
}

void myri_card_turn(struct myri_card *c, uint64_t ended_ps, uint64_t begins_ps)
{
    struct myri_hw *hw = c->hw;
    if (!hw->parts)
        return;
    if (c->cpu.stores != c->seen.stores) {
        myri_hw_trace(hw, c->id, MYRI_LANE_FIRMWARE, c->seen.shown_ps, c->seen.at_ps[0], "waits", 0);
        for (uint32_t i = 0; i < c->seen.n; i++)
            myri_hw_trace(hw, c->id, MYRI_LANE_FIRMWARE, c->seen.at_ps[i],
                          i + 1 < c->seen.n ? c->seen.at_ps[i + 1] : ended_ps, hw->parts->name[c->seen.of[i]], 0);
        c->seen.shown_ps = ended_ps;
    }
    c->seen.stores = c->cpu.stores;
    c->seen.n = 1;
    c->seen.at_ps[0] = begins_ps;
    c->seen.of[0] = c->seen.part;
}

void myri_card_last_turn(struct myri_card *c)
{
    if (!c->hw->parts)
        return;
    myri_card_turn(c, c->cpu.now_ps, c->cpu.now_ps);
    myri_hw_trace(c->hw, c->id, MYRI_LANE_FIRMWARE, c->seen.shown_ps, myri_hw_now(c->hw), "waits", 0);
}
