/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanai_decode.c - the instruction words that clang's back end emits. Forms it never emits are MYRI_LN_BAD.
 *
 *  31..28  fields below                          form
 *  0aaa    rd5 rs5 F H c16                       register and constant; H: the constant is the high half
 *  1100    rd5 rs5 F I rt5 op3 j5 d3             register and register; d and I: executed only on that condition
 *  100S    rd5 rs5 P Q c16                       load, store of a word; P: add before, Q: write the sum back
 *  101S    rd5 rs5 P Q rt5 op3 j5 YLE            the same with two registers, of any width
 *  1101    rd5 rs5 ... count                     bits set, leading and trailing zeros
 *  1110    d3 ...                                branches, and a register from a condition
 *  1111    rd5 ...                               absolute words, 21-bit constants, bytes and half words */
#include "sim/myrinet/hw/lanai.h"

#include <string.h>

static uint32_t field(uint32_t w, unsigned low, unsigned bits)
{
    return w >> low & ((1u << bits) - 1);
}

static int32_t sign_extend(uint32_t v, unsigned bits)
{
    uint32_t top = 1u << (bits - 1);
    v &= (top << 1) - 1;
    return (int32_t)((v ^ top) - top);
}

static void with_constant(uint32_t w, struct myri_lanai_op *d)
{
    uint32_t kind = field(w, 28, 3), high = field(w, 16, 1), c = w & 0xffff;
    if (kind == 7) {
        d->op = (high ? MYRI_LN_SHA : MYRI_LN_SHL) | MYRI_LN_IMMEDIATE;
        d->imm = sign_extend(c, 16);
    } else {
        uint32_t imm = high ? c << 16 : c;
        if (kind == MYRI_LN_AND) /* the other half is kept */
            imm |= high ? 0xffffu : 0xffff0000u;
        d->op = (uint8_t)(kind | MYRI_LN_IMMEDIATE);
        d->imm = (int32_t)imm;
    }
    if (field(w, 17, 1))
        d->op |= MYRI_LN_FLAGS;
    d->reads = 1u << d->rs1;
}

static void with_register(uint32_t w, struct myri_lanai_op *d)
{
    uint32_t kind = field(w, 8, 3), j = field(w, 3, 5);
    d->cond = (uint8_t)(field(w, 0, 3) << 1 | field(w, 16, 1));
    if (kind < 7)
        d->op = (uint8_t)kind;
    else if ((j & 0x18) == 0x10)
        d->op = MYRI_LN_SHL;
    else if ((j & 0x18) == 0x18)
        d->op = MYRI_LN_SHA;
    else if (j == 0)
        d->op = MYRI_LN_SEL;
    d->predicated = d->cond != 0 && d->op != MYRI_LN_SEL;
    if (field(w, 17, 1) && d->op != MYRI_LN_BAD)
        d->op |= MYRI_LN_FLAGS;
    d->reads = 1u << d->rs1 | 1u << d->rs2;
}

static void indexed(uint32_t w, struct myri_lanai_op *d)
{
    static const uint8_t loads[8] = {MYRI_LN_LDXH, MYRI_LN_LDXUH, MYRI_LN_LDX, MYRI_LN_LDX,
                                     MYRI_LN_LDXB, MYRI_LN_LDXUB, MYRI_LN_BAD, MYRI_LN_BAD};
    static const uint8_t stores[8] = {MYRI_LN_STXH, MYRI_LN_STXH, MYRI_LN_STX, MYRI_LN_STX,
                                      MYRI_LN_STXB, MYRI_LN_STXB, MYRI_LN_BAD, MYRI_LN_BAD};
    int store = (int)field(w, 28, 1);
    if (field(w, 8, 3) == 0 && field(w, 16, 2) == 2) /* added, not written back: the only one that is emitted */
        d->op = (store ? stores : loads)[w & 7];
    d->reads = 1u << d->rs1 | 1u << d->rs2 | (store ? 1u << d->rd : 0);
}

static void branch(uint32_t w, uint32_t at, struct myri_lanai_op *d)
{
    d->cond = (uint8_t)(field(w, 25, 3) << 1 | (w & 1));
    if (!(w & 2)) {
        d->op = MYRI_LN_BR;
        d->imm = (int32_t)(w & 0x1fffffc);
    } else if (field(w, 24, 1)) {
        d->op = MYRI_LN_BRR;
        d->imm = sign_extend(w & 0xfffc, 16) + (d->rs1 ? 0 : (int32_t)at);
        d->reads = 1u << d->rs1;
    } else {
        d->op = MYRI_LN_SCC;
        d->rd = d->rs1;
    }
}

static void special(uint32_t w, struct myri_lanai_op *d)
{
    if (!field(w, 17, 1)) {
        int store = (int)field(w, 16, 1);
        d->op = store ? MYRI_LN_ST : MYRI_LN_LD;
        d->update = 2;
        d->imm = (int32_t)(field(w, 18, 5) << 16 | (w & 0xfffc));
        d->rs1 = 0;
        d->reads = store ? 1u << d->rd : 0;
    } else if (!field(w, 16, 1)) {
        d->op = MYRI_LN_MOVI;
        d->imm = (int32_t)(field(w, 18, 5) << 16 | (w & 0xffff));
    } else if (!field(w, 15, 1)) {
        uint32_t byte = field(w, 14, 1), store = field(w, 13, 1), zero = field(w, 12, 1);
        if (store)
            d->op = byte ? MYRI_LN_STB : MYRI_LN_STH;
        else if (byte)
            d->op = zero ? MYRI_LN_LDUB : MYRI_LN_LDB;
        else
            d->op = zero ? MYRI_LN_LDUH : MYRI_LN_LDH;
        d->update = (uint8_t)field(w, 10, 2);
        d->imm = sign_extend(w, 10);
        d->reads = 1u << d->rs1 | (store ? 1u << d->rd : 0);
    }
}

void myri_lanai_decode(uint32_t w, uint32_t at, struct myri_lanai_op *d)
{
    memset(d, 0, sizeof *d);
    d->op = MYRI_LN_BAD;
    d->rd = (uint8_t)field(w, 23, 5);
    d->rs1 = (uint8_t)field(w, 18, 5);
    d->rs2 = (uint8_t)field(w, 11, 5);
    switch (w >> 28) {
    case 8:
    case 9:
        d->op = field(w, 28, 1) ? MYRI_LN_ST : MYRI_LN_LD;
        d->update = (uint8_t)field(w, 16, 2);
        d->imm = sign_extend(w, 16);
        d->reads = 1u << d->rs1 | (d->op == MYRI_LN_ST ? 1u << d->rd : 0);
        break;
    case 10:
    case 11:
        indexed(w, d);
        break;
    case 12:
        with_register(w, d);
        break;
    case 13:
        d->op = (w & 7) == 1   ? MYRI_LN_POPC
                : (w & 7) == 2 ? MYRI_LN_LEADZ
                : (w & 7) == 3 ? MYRI_LN_TRAILZ
                               : MYRI_LN_BAD;
        d->reads = 1u << d->rs1;
        break;
    case 14:
        branch(w, at, d);
        break;
    case 15:
        special(w, d);
        break;
    default:
        with_constant(w, d);
    }
    if (d->op == MYRI_LN_LD && d->rd == 2)
        d->op = MYRI_LN_LDPC;
    d->reads &= ~1u; /* r0 is no register that is waited for */
}
