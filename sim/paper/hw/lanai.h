/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanai.h - the processor of the card: loads an object that clang's LANai back end made, and executes it instruction by
 * instruction. Registers of the card are call-backs; the memory is the card's SRAM.
 *
 * Time is counted, not chosen: one step per instruction and one more when an instruction reads the register that the
 * one just before it loads. How long a step is follows from how many accesses to SRAM it makes (one to fetch, one for
 * data) and from what the DMA engines leave of the SRAM's rate: the owner sets both lengths.
 *
 * Refused, with a reason in `fault`: unknown instructions, stores into code, jumps out of it or in a delay slot,
 * accesses outside SRAM and registers, misaligned words. */
#ifndef RNL_PAPER_LANAI_H
#define RNL_PAPER_LANAI_H

#include <stddef.h>
#include <stdint.h>

enum {
    RNL_LANAI_SRAM = 1 << 20, /* bytes; an absolute address has 21 bits */
    RNL_LANAI_SYMBOLS = 128,
    RNL_LANAI_NAME = 32
};
#define RNL_LANAI_REGISTERS 0xffffff00u /* addresses from here on are the card's registers */

struct rnl_lanai_op { /* an instruction, decoded once */
    uint8_t op, rd, rs1, rs2, cond, update, predicated;
    int32_t imm;
    uint32_t reads; /* bit per register */
};

struct rnl_lanai_symbol {
    char name[RNL_LANAI_NAME];
    uint32_t at, bytes;
};

struct rnl_lanai {
    uint32_t r[32]; /* r0 = 0, r1 = all ones, r2 = address of the instruction */
    uint32_t pc;
    uint32_t zero, negative, overflow, carry;
    uint32_t loaded; /* bit of the register loaded by the instruction before */
    uint32_t waited; /* this instruction waited for it */
    uint32_t delay, target;
    uint64_t now_ps;               /* its own time */
    uint32_t step1_ps, step2_ps;   /* with one and with two accesses to SRAM */
    uint64_t instructions, stalls; /* stalls: loaded registers used at once */
    uint64_t stores, accesses;     /* stores to SRAM or registers; accesses to data in SRAM */
    int stop;                      /* set by a call-back: run returns after this instruction */
    const char *fault;
    uint32_t fault_at;
    uint32_t *sram; /* words; byte 0 of a word is its highest: big endian */
    uint32_t code_end;
    struct rnl_lanai_op *code;
    uint64_t *executed;                                /* per instruction, or NULL */
    uint64_t *took_ps;                                 /* likewise */
    void (*executes)(struct rnl_lanai *, uint32_t at); /* each instruction, at the time of its begin; or NULL */
    uint32_t (*load)(struct rnl_lanai *, uint32_t reg);
    void (*store)(struct rnl_lanai *, uint32_t reg, uint32_t value);
    void *owner;
    struct rnl_lanai_symbol symbol[RNL_LANAI_SYMBOLS];
    uint32_t symbols;
};

/* Takes a relocatable ELF32 object from memory; m is overwritten. 0, or a negative rnl_status with its sentence. */
int rnl_lanai_load(struct rnl_lanai *m, const void *object, size_t n);
void rnl_lanai_fini(struct rnl_lanai *m);
/* NULL when there is none of that name. */
const struct rnl_lanai_symbol *rnl_lanai_find(const struct rnl_lanai *m, const char *name);
/* Counts each instruction from now on. 0 or RNL_ERR_NO_MEMORY. */
int rnl_lanai_profile(struct rnl_lanai *m);
/* From the function `entry` on, at time 0. */
void rnl_lanai_start(struct rnl_lanai *m, uint32_t entry);
/* Until its time is at least until_ps, a call-back stops it, or a fault: then -1. */
int rnl_lanai_run(struct rnl_lanai *m, uint64_t until_ps);

void rnl_lanai_decode(uint32_t word, uint32_t at, struct rnl_lanai_op *out);
enum rnl_lanai_opcode {
    RNL_LN_ADD,
    RNL_LN_ADDC,
    RNL_LN_SUB,
    RNL_LN_SUBB,
    RNL_LN_AND,
    RNL_LN_OR,
    RNL_LN_XOR,
    RNL_LN_SHL,
    RNL_LN_SHA,
    RNL_LN_SEL,
    RNL_LN_IMMEDIATE = 16, /* added: the second operand is `imm` */
    RNL_LN_FLAGS = 32,     /* added: sets the flags */
    RNL_LN_LD = 64,
    RNL_LN_LDH,
    RNL_LN_LDUH,
    RNL_LN_LDB,
    RNL_LN_LDUB,
    RNL_LN_LDX, /* address = two registers */
    RNL_LN_LDXH,
    RNL_LN_LDXUH,
    RNL_LN_LDXB,
    RNL_LN_LDXUB,
    RNL_LN_ST,
    RNL_LN_STH,
    RNL_LN_STB,
    RNL_LN_STX,
    RNL_LN_STXH,
    RNL_LN_STXB,
    RNL_LN_MOVI,
    RNL_LN_BR,
    RNL_LN_BRR,
    RNL_LN_SCC,
    RNL_LN_POPC,
    RNL_LN_LEADZ,
    RNL_LN_TRAILZ,
    RNL_LN_LDPC,
    RNL_LN_BAD
};

/* The host's and the engines' way to the SRAM. */
static inline uint8_t rnl_lanai_byte(const struct rnl_lanai *m, uint32_t at)
{
    return (uint8_t)(m->sram[at >> 2] >> (8 * (3 - (at & 3))));
}
static inline void rnl_lanai_set_byte(struct rnl_lanai *m, uint32_t at, uint8_t v)
{
    uint32_t shift = 8 * (3 - (at & 3));
    m->sram[at >> 2] = (m->sram[at >> 2] & ~(0xffu << shift)) | (uint32_t)v << shift;
}

#endif
