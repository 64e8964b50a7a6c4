/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanai.c - executes decoded instructions. See lanai.h for what they cost. */
#include "sim/myrinet/hw/lanai.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static inline uint32_t holds(const struct myri_lanai *m, uint32_t cond)
{
    uint32_t t;
    switch (cond >> 1) {
    case 0:
        t = 1;
        break;
    case 1:
        t = m->carry & !m->zero;
        break;
    case 2:
        t = !m->carry;
        break;
    case 3:
        t = !m->zero;
        break;
    case 4:
        t = !m->overflow;
        break;
    case 5:
        t = !m->negative;
        break;
    case 6:
        t = m->negative == m->overflow;
        break;
    default:
        t = m->negative == m->overflow && !m->zero;
        break;
    }
    return t ^ (cond & 1);
}

/* By a signed amount; to the right if it is negative. */
static inline uint32_t shifted(uint32_t x, uint32_t amount, int arithmetic)
{
    int32_t k = (int32_t)amount;
    uint32_t fill = arithmetic && x >> 31 ? ~0u : 0;
    if (k >= 0)
        return k > 31 ? 0 : x << k;
    if (k < -31)
        return fill;
    k = -k;
    return x >> k | (fill & ~(~0u >> k));
}

static void fault(struct myri_lanai *m, const char *why, uint32_t at)
{
    m->fault = why;
    m->fault_at = at;
    m->stop = 1;
}

static inline uint32_t load(struct myri_lanai *m, uint32_t a, unsigned op)
{
    if (a < m->sram_bytes) {
        uint32_t w = m->sram[a >> 2];
        m->accesses++;
        switch (op) {
        case MYRI_LN_LDB:
            return (uint32_t)(int32_t)(int8_t)(w >> (8 * (3 - (a & 3))));
        case MYRI_LN_LDUB:
            return w >> (8 * (3 - (a & 3))) & 0xff;
        case MYRI_LN_LDH:
            return (uint32_t)(int32_t)(int16_t)(w >> (a & 2 ? 0 : 16));
        case MYRI_LN_LDUH:
            return w >> (a & 2 ? 0 : 16) & 0xffff;
        default:
            if (a & 3)
                fault(m, "load of a word that is not aligned", a);
            return w;
        }
    }
    if (a >= MYRI_LANAI_REGISTERS && op == MYRI_LN_LD && !(a & 3))
        return m->load(m, (a - MYRI_LANAI_REGISTERS) >> 2);
    fault(m, "load outside SRAM and registers", a);
    return 0;
}

static inline void store(struct myri_lanai *m, uint32_t a, uint32_t v, unsigned op)
{
    m->stores++;
    if (a < m->sram_bytes) {
        uint32_t *w = &m->sram[a >> 2], shift;
        if (a < m->code_end) {
            fault(m, "store into code", a);
            return;
        }
        m->accesses++;
        switch (op) {
        case MYRI_LN_STB:
            myri_lanai_set_byte(m, a, (uint8_t)v);
            break;
        case MYRI_LN_STH:
            shift = a & 2 ? 0 : 16;
            *w = (*w & ~(0xffffu << shift)) | (v & 0xffff) << shift;
            break;
        default:
            if (a & 3)
                fault(m, "store of a word that is not aligned", a);
            *w = v;
        }
    } else if (a >= MYRI_LANAI_REGISTERS && op == MYRI_LN_ST && !(a & 3)) {
        m->store(m, (a - MYRI_LANAI_REGISTERS) >> 2, v);
    } else {
        fault(m, "store outside SRAM and registers", a);
    }
}

int myri_lanai_run(struct myri_lanai *m, uint64_t until_ps)
{
    uint32_t *r = m->r;
    m->stop = m->fault != NULL;
    while (m->now_ps < until_ps && !m->stop) {
        uint32_t at = m->pc;
        if (at >= m->code_end) {
            fault(m, "jump out of the code", at);
            break;
        }
        const struct myri_lanai_op *d = &m->code[at >> 2];
        uint64_t before = m->accesses;
        const uint32_t was_loaded = m->loaded, had_waited = m->waited;
        uint32_t wait = (m->loaded & d->reads) != 0, jump = 0, to = 0;
        m->waited = wait;
        m->stalls += wait;
        m->instructions++;
        m->loaded = 0;
        m->pc = at + 4;
        r[2] = at;
        uint32_t x = r[d->rs1], y = d->op & MYRI_LN_IMMEDIATE && d->op < MYRI_LN_LD ? (uint32_t)d->imm : r[d->rs2];
        uint32_t v = 0, a = x, c = 0;
        uint64_t sum;
        if (d->predicated && !holds(m, d->cond))
            goto done;
        switch (d->op < MYRI_LN_LD ? d->op & ~MYRI_LN_IMMEDIATE : d->op) {
        case MYRI_LN_ADD:
            v = x + y;
            goto write;
        case MYRI_LN_SUB:
            v = x - y;
            goto write;
        case MYRI_LN_ADDC:
            v = x + y + m->carry;
            goto write;
        case MYRI_LN_SUBB:
            v = x + ~y + m->carry;
            goto write;
        case MYRI_LN_AND:
            v = x & y;
            goto write;
        case MYRI_LN_OR:
            v = x | y;
            goto write;
        case MYRI_LN_XOR:
            v = x ^ y;
            goto write;
        case MYRI_LN_SHL:
            v = shifted(x, y, 0);
            goto write;
        case MYRI_LN_SHA:
            v = shifted(x, y, 1);
            goto write;
        case MYRI_LN_SEL:
            v = holds(m, d->cond) ? x : y;
            goto write;
        case MYRI_LN_SUB | MYRI_LN_FLAGS:
            c = 1;
            y = ~y;
            goto added;
        case MYRI_LN_SUBB | MYRI_LN_FLAGS:
            y = ~y;
            c = m->carry;
            goto added;
        case MYRI_LN_ADDC | MYRI_LN_FLAGS:
            c = m->carry;
            goto added;
        case MYRI_LN_ADD | MYRI_LN_FLAGS:
        added:
            sum = (uint64_t)x + y + c;
            v = (uint32_t)sum;
            m->carry = (uint32_t)(sum >> 32);
            m->overflow = (~(x ^ y) & (x ^ v)) >> 31;
            goto signs;
        case MYRI_LN_AND | MYRI_LN_FLAGS:
            v = x & y;
            goto logic;
        case MYRI_LN_OR | MYRI_LN_FLAGS:
            v = x | y;
            goto logic;
        case MYRI_LN_XOR | MYRI_LN_FLAGS:
            v = x ^ y;
            goto logic;
        case MYRI_LN_SHL | MYRI_LN_FLAGS:
            v = shifted(x, y, 0);
            goto logic;
        case MYRI_LN_SHA | MYRI_LN_FLAGS:
            v = shifted(x, y, 1);
        logic:
            m->carry = m->overflow = 0;
        signs:
            m->zero = v == 0;
            m->negative = v >> 31;
        write:
            if (d->rd == 2) {
                jump = 1;
                to = v;
            } else if (d->rd > 1) {
                r[d->rd] = v;
            }
            break;
        case MYRI_LN_LD:
        case MYRI_LN_LDH:
        case MYRI_LN_LDUH:
        case MYRI_LN_LDB:
        case MYRI_LN_LDUB:
        case MYRI_LN_LDPC:
            if (d->update & 2)
                a = x + (uint32_t)d->imm;
            if (d->update & 1)
                r[d->rs1] = x + (uint32_t)d->imm;
            v = load(m, a, d->op == MYRI_LN_LDPC ? (unsigned)MYRI_LN_LD : d->op);
            if (d->op == MYRI_LN_LDPC) {
                jump = 2;
                to = v;
                break;
            }
            goto loaded;
        case MYRI_LN_LDX:
        case MYRI_LN_LDXH:
        case MYRI_LN_LDXUH:
        case MYRI_LN_LDXB:
        case MYRI_LN_LDXUB:
            v = load(m, x + y, d->op - MYRI_LN_LDX + MYRI_LN_LD);
        loaded:
            if (m->again) { /* as if it had not begun */
                m->again = 0;
                if (d->update & 1)
                    r[d->rs1] = x;
                m->pc = at;
                m->loaded = was_loaded;
                m->waited = had_waited;
                m->stalls -= wait;
                m->instructions--;
                return 0;
            }
            if (d->rd > 1) {
                r[d->rd] = v;
                m->loaded = 1u << d->rd;
            }
            break;
        case MYRI_LN_ST:
        case MYRI_LN_STH:
        case MYRI_LN_STB:
            if (d->update & 2)
                a = x + (uint32_t)d->imm;
            if (d->update & 1)
                r[d->rs1] = x + (uint32_t)d->imm;
            store(m, a, r[d->rd], d->op);
            break;
        case MYRI_LN_STX:
        case MYRI_LN_STXH:
        case MYRI_LN_STXB:
            store(m, x + y, r[d->rd], d->op - MYRI_LN_STX + MYRI_LN_ST);
            break;
        case MYRI_LN_MOVI:
            if (d->rd > 1)
                r[d->rd] = (uint32_t)d->imm;
            break;
        case MYRI_LN_BR:
            jump = holds(m, d->cond);
            to = (uint32_t)d->imm;
            break;
        case MYRI_LN_BRR:
            jump = holds(m, d->cond);
            to = (d->rs1 ? x : 0) + (uint32_t)d->imm;
            break;
        case MYRI_LN_SCC:
            if (d->rd > 1)
                r[d->rd] = holds(m, d->cond);
            break;
        case MYRI_LN_POPC:
            v = (uint32_t)__builtin_popcount(x);
            goto write;
        case MYRI_LN_LEADZ:
            v = x ? (uint32_t)__builtin_clz(x) : 32;
            goto write;
        case MYRI_LN_TRAILZ:
            v = x ? (uint32_t)__builtin_ctz(x) : 32;
            goto write;
        default:
            fault(m, "an instruction that is not known", at);
        }
    done:
        c = (m->accesses != before ? m->step2_ps : m->step1_ps) + (wait ? m->step1_ps : 0);
        if (m->executes)
            m->executes(m, at);
        m->now_ps += c;
        if (m->executed) {
            m->executed[at >> 2]++;
            m->took_ps[at >> 2] += c;
        }
        if (jump && m->delay) {
            fault(m, "a jump in a delay slot", at);
            break;
        }
        if (m->delay && --m->delay == 0)
            m->pc = m->target;
        if (jump) {
            m->delay = jump; /* one slot, two after a load into the address */
            m->target = to;
        }
    }
    return m->fault ? -1 : 0;
}

void myri_lanai_start(struct myri_lanai *m, uint32_t entry)
{
    const uint32_t top = m->sram_bytes - 64;
    memset(m->r, 0, sizeof m->r);
    m->r[1] = ~0u;
    m->r[4] = top - 4; /* the caller pushed where to return to: nowhere */
    m->r[5] = top;
    m->sram[(top - 4) >> 2] = m->code_end;
    m->pc = entry;
    m->now_ps = 0;
}

void myri_lanai_restart(struct myri_lanai *m, uint32_t entry)
{
    uint64_t now = m->now_ps;
    m->delay = m->loaded = m->waited = 0;
    myri_lanai_start(m, entry);
    m->now_ps = now;
}

int myri_lanai_profile(struct myri_lanai *m)
{
    m->executed = calloc(m->code_end / 4 + 1, sizeof *m->executed);
    m->took_ps = calloc(m->code_end / 4 + 1, sizeof *m->took_ps);
    if (!m->executed || !m->took_ps)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to count %u instructions", m->code_end / 4);
    return 0;
}

const struct myri_lanai_symbol *myri_lanai_find(const struct myri_lanai *m, const char *name)
{
    for (uint32_t i = 0; i < m->symbols; i++)
        if (strcmp(m->symbol[i].name, name) == 0)
            return &m->symbol[i];
    return NULL;
}

void myri_lanai_fini(struct myri_lanai *m)
{
    myri_memory_free(m->sram, MYRI_LANAI_SRAM);
    free(m->code);
    free(m->executed);
    free(m->took_ps);
    memset(m, 0, sizeof *m);
}
