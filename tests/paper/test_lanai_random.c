/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lanai_random.c - random programs, executed by the interpreter and by a second reading of the instruction set
 * that shares nothing with it: words are looked at as they are, memory is bytes, flags come from arithmetic in 64 bits.
 * Registers, memory, flags, and how many instructions and waits there were have to be the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/paper/hw/lanai.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAMS = 4000, WORDS = 120, DATA = 0x8000, DATA_BYTES = 256, STEP = 1000 };

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

static uint32_t any(void)
{
    static const uint32_t edges[] = {0, 1, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000u, 0xffffffffu};
    return chance(3) ? chance(0x10000) << 16 | chance(0x10000) : edges[chance(8)];
}

/* ---- programs ---- */

static uint32_t reg(void) /* never r2, which is the program's place */
{
    uint32_t r = chance(10);
    return r == 2 ? 31 : r;
}

/* A base register just set, then an access of any kind with it; DATA_BYTES are enough for all offsets. */
static uint32_t access(uint32_t *w)
{
    uint32_t base = 10 + chance(4), at = DATA + 64 + 4 * chance(32), kind = chance(4), form = 1u + chance(3), part;
    int32_t off = 4 * ((int32_t)chance(17) - 8);
    w[0] = 0xf0020000u | base << 23 | (at >> 16 & 31) << 18 | (at & 0xffff);
    switch (kind) {
    case 0: /* a word */
        w[1] =
            (chance(2) ? 0x80000000u : 0x90000000u) | reg() << 23 | base << 18 | form << 16 | ((uint32_t)off & 0xffff);
        break;
    case 1: /* an absolute one */
        w[1] = 0xf0000000u | reg() << 23 | (at >> 16 & 31) << 18 | chance(2) << 16 | (at & 0xfffc);
        break;
    case 2: /* a byte or a half */
        part = chance(2);
        off += part ? (int32_t)chance(4) : 2 * (int32_t)chance(2);
        w[1] = 0xf0030000u | reg() << 23 | base << 18 | part << 14 | chance(2) << 13 | chance(2) << 12 | form << 10 |
               ((uint32_t)off & 0x3ff);
        break;
    default: /* indexed: the second register holds a small number */
        w[1] = 0xf0020000u | (base + 4) << 23 | 4 * chance(16);
        part = chance(3) == 0 ? 2 : chance(2) * 4 + chance(2);
        w[2] = 0xa0020000u | chance(2) << 28 | reg() << 23 | base << 18 | (base + 4) << 11 | part;
        return 3;
    }
    return 2;
}

static uint32_t plain(void)
{
    uint32_t to = reg() << 23 | reg() << 18, flags = chance(2) << 17;
    switch (chance(8)) {
    case 0:
    case 1:
        return chance(7) << 28 | to | flags | chance(2) << 16 | (any() & 0xffff);
    case 2: /* shifts by constants, also by more than there is */
        return 7u << 28 | to | flags | chance(2) << 16 | ((chance(81) - 40) & 0xffff);
    case 3:
    case 4:
        return 0xc0000000u | to | flags | chance(2) << 16 | reg() << 11 | chance(7) << 8 | chance(8);
    case 5: /* shifts by a register, or a selection */
        return 0xc0000000u | to |
               (flags = chance(3) == 0 ? 0x10u
                        : chance(2)    ? 0x18u
                                       : 0)
                   << 3 |
               7u << 8 | chance(2) << 16 | reg() << 11 | chance(8);
    case 6:
        return 0xe0000002u | chance(8) << 25 | reg() << 18 | chance(2);
    default:
        return 0xd0000000u | to | (1 + chance(3));
    }
}

static uint32_t compose(uint32_t *w)
{
    uint32_t n = 0;
    for (uint32_t r = 3; r < 10; r++) { /* numbers of 32 bits, of two halves */
        uint32_t v = any();
        w[n++] = 0x50010000u | r << 23 | v >> 16;
        w[n++] = 0x50000000u | r << 23 | r << 18 | (v & 0xffff);
    }
    while (n < WORDS - 8) {
        uint32_t what = chance(10);
        if (what < 3) {
            n += access(w + n);
        } else if (what == 3) { /* a branch over some, what is behind it is executed */
            uint32_t to = 4 * (n + 2 + chance(4));
            w[n] = 0xe0000000u | chance(8) << 25 | to | chance(2);
            w[n + 1] = plain();
            n += 2;
            for (uint32_t i = 0; i < 3; i++)
                w[n++] = plain();
        } else {
            w[n++] = plain();
        }
    }
    return n;
}

/* ---- the second reading ---- */

struct other {
    uint32_t r[32], pc;
    int zero, negative, overflow, carry;
    uint64_t instructions, waits;
    uint8_t bytes[DATA_BYTES];
};

static int is_so(const struct other *o, uint32_t d, uint32_t inverted)
{
    int64_t sign = o->negative ? -1 : 1;
    int less = (sign < 0) != (o->overflow != 0);
    int so[8] = {1, o->carry && !o->zero, !o->carry, !o->zero, !o->overflow, !o->negative, !less, !less && !o->zero};
    return inverted ? !so[d] : so[d];
}

static uint32_t shift(uint32_t x, int32_t by, int arithmetic)
{
    int64_t v = arithmetic ? (int64_t)(int32_t)x : (int64_t)x;
    if (by >= 0)
        return by >= 32 ? 0 : (uint32_t)((uint64_t)x * ((uint64_t)1 << by));
    for (by = by < -40 ? -40 : by; by < 0; by++) /* then only the sign is left */
        v = (v - (v & 1)) / 2;
    return (uint32_t)v;
}

static uint32_t compute(struct other *o, uint32_t op, uint32_t x, uint32_t y, int arithmetic, int flags)
{
    int64_t exact = 0, wide = 0;
    uint32_t v;
    if (op < 4) {
        int64_t more = op == 1 ? o->carry : op == 3 ? o->carry - 1 : 0, sign = op < 2 ? 1 : -1;
        exact = (int64_t)(int32_t)x + sign * (int64_t)(int32_t)y + more;
        wide = (int64_t)x + sign * (int64_t)y + more;
        v = (uint32_t)wide;
    } else {
        v = op == 4 ? x & y : op == 5 ? x | y : op == 6 ? (x | y) - (x & y) : shift(x, (int32_t)y, arithmetic);
    }
    if (flags) {
        o->carry = op < 2 ? wide > 0xffffffffll : op < 4 ? wide >= 0 : 0;
        o->overflow = op < 4 && exact != (int32_t)v;
        o->zero = !v;
        o->negative = (int32_t)v < 0;
    }
    return v;
}

static uint32_t get(const struct other *o, uint32_t at, uint32_t n, int is_signed)
{
    uint32_t v = 0;
    assert_true(at >= DATA && at + n <= DATA + DATA_BYTES);
    for (uint32_t i = 0; i < n; i++)
        v = v * 256 + o->bytes[at - DATA + i];
    return is_signed && n < 4 && v >> (8 * n - 1) ? v - (1u << 8 * n) : v;
}

static void put(struct other *o, uint32_t at, uint32_t n, uint32_t v)
{
    assert_true(at >= DATA && at + n <= DATA + DATA_BYTES);
    for (uint32_t i = n; i-- > 0; v /= 256)
        o->bytes[at - DATA + i] = (uint8_t)v;
}

static void set(struct other *o, uint32_t r, uint32_t v)
{
    if (r > 1)
        o->r[r] = v;
}

/* One instruction. Registers that it reads go into *reads; returns the register that it loads, or 0. */
static uint32_t perform(struct other *o, uint32_t w, uint32_t *reads, uint32_t *target)
{
    uint32_t d = w >> 23 & 31, s = w >> 18 & 31, t = w >> 11 & 31, x = o->r[s], c = w & 0xffff, top = w >> 28;
    uint32_t bytes = 4, before = w >> 17 & 1, back = w >> 16 & 1, at, i;
    int store = top & 1, sign = 0;
    int32_t off = (int16_t)c;
    *reads = 1u << s;
    if (top < 8) {
        uint32_t y = top == 7 ? (uint32_t)off : back ? c << 16 : c;
        if (top == 4)
            y |= back ? 0xffff : 0xffff0000u;
        set(o, d, compute(o, top, x, y, (int)back, (int)before));
        return 0;
    }
    if (top == 12) {
        uint32_t op = w >> 8 & 7, j = w >> 6 & 3;
        *reads |= 1u << t;
        if (op == 7 && j == 0)
            set(o, d, is_so(o, w & 7, back) ? x : o->r[t]);
        else if (is_so(o, w & 7, back) || ((w & 7) == 0 && !back))
            set(o, d, compute(o, op, x, o->r[t], j == 3, (int)before));
        return 0;
    }
    if (top == 13) {
        uint32_t ones = 0, first = 32, last = 32;
        for (i = 0; i < 32; i++)
            if (x & 1u << i) {
                ones++;
                first = first < 32 ? first : i;
                last = 31 - i;
            }
        set(o, d, (w & 3) == 1 ? ones : (w & 3) == 2 ? last : first);
        return 0;
    }
    if (top == 14) {
        *reads = 0;
        if (w & 2)
            set(o, s, (uint32_t)is_so(o, w >> 25 & 7, w & 1));
        else if (is_so(o, w >> 25 & 7, w & 1))
            *target = w & 0x1fffffc;
        return 0;
    }
    if (top == 15 && (w >> 16 & 3) == 2) {
        *reads = 0;
        set(o, d, s << 16 | c);
        return 0;
    }
    if (top == 15 && before) { /* part of a word */
        bytes = w & 1 << 14 ? 1 : 2;
        store = w >> 13 & 1;
        sign = !(w >> 12 & 1);
        before = w >> 11 & 1;
        back = w >> 10 & 1;
        off = (int32_t)((w & 0x3ff) ^ 0x200) - 0x200;
    } else if (top == 15) {
        *reads = 0;
        store = (int)back;
        x = s << 16;
        off = (int32_t)(c & 0xfffc);
        before = 1;
        back = 0;
    } else if (top >= 10) {
        *reads |= 1u << t;
        bytes = w & 4 ? 1 : w & 2 ? 4 : 2;
        sign = !(w & 1);
        off = (int32_t)o->r[t];
    }
    at = before ? x + (uint32_t)off : x;
    if (back)
        set(o, s, x + (uint32_t)off);
    if (store) {
        *reads |= 1u << d;
        put(o, at, bytes, o->r[d]);
        return 0;
    }
    set(o, d, get(o, at, bytes, sign));
    return d > 1 ? d : 0;
}

static void walk(struct other *o, const uint32_t *words, uint32_t n)
{
    uint32_t loaded = 0, reads, next = 4;
    for (o->pc = 0; o->pc < 4 * n;) {
        uint32_t target = next + 4;
        uint32_t now = perform(o, words[o->pc / 4], &reads, &target);
        o->instructions++;
        o->waits += loaded && reads & 1u << loaded;
        loaded = now;
        o->pc = next;
        next = target;
    }
}

static void random_programs_do_the_same_in_both_readings(void **state)
{
    static struct rnl_lanai m;
    static struct other o;
    uint32_t words[WORDS + 8];
    (void)state;
    m.sram = calloc(RNL_LANAI_SRAM / 4, 4);
    m.code = calloc(WORDS + 8, sizeof *m.code);
    assert_non_null(m.sram);
    assert_non_null(m.code);
    m.step1_ps = m.step2_ps = STEP;
    for (uint64_t program = 1; program <= PROGRAMS; program++) {
        seed = program;
        uint32_t n = compose(words);
        memset(&o, 0, sizeof o);
        for (uint32_t i = 0; i < DATA_BYTES; i++)
            o.bytes[i] = (uint8_t)chance(256);
        for (uint32_t i = 0; i < DATA_BYTES; i++)
            rnl_lanai_set_byte(&m, DATA + i, o.bytes[i]);
        for (uint32_t i = 0; i < n; i++)
            rnl_lanai_decode(words[i], 4 * i, &m.code[i]);
        m.code_end = 4 * n;
        m.fault = NULL;
        m.instructions = m.stalls = 0;
        m.zero = m.negative = m.overflow = m.carry = m.loaded = m.delay = 0;
        rnl_lanai_start(&m, 0);
        memcpy(o.r, m.r, sizeof o.r);
        rnl_lanai_run(&m, UINT64_MAX);
        walk(&o, words, n);
        int same = m.fault && strcmp(m.fault, "jump out of the code") == 0 && o.instructions == m.instructions &&
                   o.waits == m.stalls && m.now_ps == STEP * (o.instructions + o.waits) && o.zero == (int)m.zero &&
                   o.negative == (int)m.negative && o.carry == (int)m.carry && o.overflow == (int)m.overflow;
        for (uint32_t r = 0; r < 32; r++)
            same &= r == 2 || o.r[r] == m.r[r];
        for (uint32_t i = 0; i < DATA_BYTES; i++)
            same &= o.bytes[i] == rnl_lanai_byte(&m, DATA + i);
        if (!same)
            fail_msg("program %u: %s at %x; instructions %u and %u, waits %u and %u", (unsigned)program,
                     m.fault ? m.fault : "no end", m.fault_at, (unsigned)m.instructions, (unsigned)o.instructions,
                     (unsigned)m.stalls, (unsigned)o.waits);
    }
    rnl_lanai_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_do_the_same_in_both_readings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
