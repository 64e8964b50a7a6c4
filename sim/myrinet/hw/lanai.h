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
#ifndef MYRI_LANAI_H
#define MYRI_LANAI_H

#include <stddef.h>
#include <stdint.h>

enum {
    MYRI_LANAI_SRAM = 1 << 20, /* bytes at most; an absolute address has 21 bits */
    MYRI_LANAI_SYMBOLS = 128,
    MYRI_LANAI_NAME = 32
};
#define MYRI_LANAI_REGISTERS 0xffffff00u /* addresses from here on are the card's registers */

struct myri_lanai_op { /* an instruction, decoded once */
    uint8_t op, rd, rs1, rs2, cond, update, predicated;
    int32_t imm;
    uint32_t reads; /* bit per register */
};

struct myri_lanai_symbol {
    char name[MYRI_LANAI_NAME];
    uint32_t at, bytes;
};

struct myri_lanai {
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
    int again;                     /* set by `load`: run returns before this instruction, and executes it later */
    const char *fault;
    uint32_t fault_at;
    uint32_t *sram; /* words; byte 0 of a word is its highest: big endian */
    uint32_t sram_bytes, code_end, data_end;
    struct myri_lanai_op *code;
    uint64_t *executed;                                 /* per instruction, or NULL */
    uint64_t *took_ps;                                  /* likewise */
    void (*executes)(struct myri_lanai *, uint32_t at); /* each instruction, at the time of its begin; or NULL */
    uint32_t (*load)(struct myri_lanai *, uint32_t reg);
    void (*store)(struct myri_lanai *, uint32_t reg, uint32_t value);
    void *owner;
    struct myri_lanai_symbol symbol[MYRI_LANAI_SYMBOLS];
    uint32_t symbols;
    struct myri_lanai_symbol undefined; /* why an object was refused: at that instruction it uses what it has not */
};

/* Takes a relocatable ELF32 object from memory; m is overwritten. 0, or a negative rnl_status with its sentence. */
int myri_lanai_load(struct myri_lanai *m, const void *object, size_t n);
/* What a symbol is that firmware uses and does not define, and what to do instead. */
const char *myri_lanai_lacks(const char *symbol);
/* The instruction's "FILE:LINE" by the text of a .lines file, or "address N". */
void myri_lanai_line(const char *lines, uint32_t at, char *out, size_t n);
/* The card has so many bytes of SRAM, at whose end the stack lies. RNL_ERR_ARG: the firmware does not fit. */
int myri_lanai_limit(struct myri_lanai *m, uint32_t sram_bytes);
void myri_lanai_fini(struct myri_lanai *m);
/* NULL when there is none of that name. */
const struct myri_lanai_symbol *myri_lanai_find(const struct myri_lanai *m, const char *name);
/* Counts each instruction from now on. 0 or RNL_ERR_NO_MEMORY. */
int myri_lanai_profile(struct myri_lanai *m);
/* From the function `entry` on, at time 0. */
void myri_lanai_start(struct myri_lanai *m, uint32_t entry);
/* Starts from `entry` at the processor's own time, wherever it is: the memory stays as it is. */
void myri_lanai_restart(struct myri_lanai *m, uint32_t entry);
/* Until its time is at least until_ps, a call-back stops it, or a fault: then -1. */
int myri_lanai_run(struct myri_lanai *m, uint64_t until_ps);

void myri_lanai_decode(uint32_t word, uint32_t at, struct myri_lanai_op *out);
enum myri_lanai_opcode {
    MYRI_LN_ADD,
    MYRI_LN_ADDC,
    MYRI_LN_SUB,
    MYRI_LN_SUBB,
    MYRI_LN_AND,
    MYRI_LN_OR,
    MYRI_LN_XOR,
    MYRI_LN_SHL,
    MYRI_LN_SHA,
    MYRI_LN_SEL,
    MYRI_LN_IMMEDIATE = 16, /* added: the second operand is `imm` */
    MYRI_LN_FLAGS = 32,     /* added: sets the flags */
    MYRI_LN_LD = 64,
    MYRI_LN_LDH,
    MYRI_LN_LDUH,
    MYRI_LN_LDB,
    MYRI_LN_LDUB,
    MYRI_LN_LDX, /* address = two registers */
    MYRI_LN_LDXH,
    MYRI_LN_LDXUH,
    MYRI_LN_LDXB,
    MYRI_LN_LDXUB,
    MYRI_LN_ST,
    MYRI_LN_STH,
    MYRI_LN_STB,
    MYRI_LN_STX,
    MYRI_LN_STXH,
    MYRI_LN_STXB,
    MYRI_LN_MOVI,
    MYRI_LN_BR,
    MYRI_LN_BRR,
    MYRI_LN_SCC,
    MYRI_LN_POPC,
    MYRI_LN_LEADZ,
    MYRI_LN_TRAILZ,
    MYRI_LN_LDPC,
    MYRI_LN_BAD
};

/* The host's and the engines' way to the SRAM. */
static inline uint8_t myri_lanai_byte(const struct myri_lanai *m, uint32_t at)
{
    return (uint8_t)(m->sram[at >> 2] >> (8 * (3 - (at & 3))));
}
static inline void myri_lanai_set_byte(struct myri_lanai *m, uint32_t at, uint8_t v)
{
    uint32_t shift = 8 * (3 - (at & 3));
    m->sram[at >> 2] = (m->sram[at >> 2] & ~(0xffu << shift)) | (uint32_t)v << shift;
}
/* memory.c: the same for a block; `same` returns how many bytes there are equal to the given ones, up to the first that
 * is not. */
void myri_lanai_read(const struct myri_lanai *m, uint32_t at, uint8_t *out, uint32_t n);
void myri_lanai_write(struct myri_lanai *m, uint32_t at, const uint8_t *in, uint32_t n);
uint32_t myri_lanai_same(const struct myri_lanai *m, uint32_t at, const uint8_t *bytes, uint32_t n);

/* Memory of a card or a host, zero; only pages of it that are used are taken from the system. NULL: there is none. */
void *myri_memory_new(size_t bytes);
void myri_memory_free(void *memory, size_t bytes);

#endif
