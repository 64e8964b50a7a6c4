/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lanai.c - the interpreter: what instructions do and cost, what it refuses, objects that are damaged. */
#include "sim/myrinet/data.h"
#include "sim/myrinet/hw/lanai.h"
#include "support/unit.h"

enum { STEP = 1000 };

static struct myri_lanai m;

static uint32_t no_load(struct myri_lanai *l, uint32_t reg)
{
    (void)l;
    return reg;
}

static void no_store(struct myri_lanai *l, uint32_t reg, uint32_t v)
{
    (void)l;
    (void)reg;
    (void)v;
}

/* A machine of these words. */
static void load_words(const uint32_t *words, uint32_t n)
{
    myri_lanai_fini(&m);
    m.sram_bytes = MYRI_LANAI_SRAM;
    m.sram = myri_memory_new(MYRI_LANAI_SRAM);
    m.code = calloc(n + 1, sizeof *m.code);
    assert_non_null(m.sram);
    assert_non_null(m.code);
    m.code_end = 4 * n;
    m.load = no_load;
    m.store = no_store;
    m.step1_ps = m.step2_ps = STEP;
    for (uint32_t i = 0; i < n; i++) {
        m.sram[i] = words[i];
        myri_lanai_decode(words[i], 4 * i, &m.code[i]);
    }
    myri_lanai_start(&m, 0);
}

#define NOP             0x00000001u /* add nothing to r0 */
#define MOV(rd, c)      (0xf0020000u | (uint32_t)(rd) << 23 | ((uint32_t)(c) >> 16 & 31) << 18 | ((uint32_t)(c)&0xffff))
#define LD(rd, rs, off) (0x80020000u | (uint32_t)(rd) << 23 | (uint32_t)(rs) << 18 | ((uint32_t)(off)&0xffff))
#define ST(rd, rs, off) (0x90020000u | (uint32_t)(rd) << 23 | (uint32_t)(rs) << 18 | ((uint32_t)(off)&0xffff))
#define ADDI(rd, rs, c) ((uint32_t)(rd) << 23 | (uint32_t)(rs) << 18 | (uint32_t)(c))
#define BT(target)      (0xe0000000u | (uint32_t)(target))

static void a_loaded_register_costs_one_more_when_it_is_used_at_once(void **state)
{
    (void)state;
    const uint32_t at_once[] = {LD(8, 0, 0x1000), ADDI(9, 8, 1)}, later[] = {LD(8, 0, 0x1000), NOP, ADDI(9, 8, 1)};
    load_words(at_once, 2);
    m.sram[0x1000 / 4] = 41;
    myri_lanai_run(&m, UINT64_MAX);
    assert_int_equal(m.r[9], 42);
    assert_int_equal(m.stalls, 1);
    assert_int_equal(m.now_ps, 3 * STEP);
    load_words(later, 3);
    myri_lanai_run(&m, UINT64_MAX);
    assert_int_equal(m.stalls, 0);
    assert_int_equal(m.now_ps, 3 * STEP);
}

static void data_in_sram_take_the_longer_step(void **state)
{
    (void)state;
    const uint32_t words[] = {MOV(8, 7), ST(8, 0, 0x2000), LD(9, 0, 0x2000)};
    load_words(words, 3);
    m.step2_ps = 3 * STEP;
    myri_lanai_run(&m, UINT64_MAX);
    assert_int_equal(m.r[9], 7);
    assert_int_equal(m.accesses, 2);
    assert_int_equal(m.now_ps, 7 * STEP);
}

static void the_instruction_behind_a_branch_is_executed(void **state)
{
    (void)state;
    const uint32_t words[] = {BT(12), ADDI(8, 8, 1), ADDI(8, 8, 16), ADDI(8, 8, 2)};
    load_words(words, 4);
    myri_lanai_run(&m, UINT64_MAX);
    assert_int_equal(m.r[8], 3);
    assert_string_equal(m.fault, "jump out of the code");
}

static void it_refuses_what_a_program_must_not_do(void **state)
{
    (void)state;
    const struct {
        uint32_t word[3];
        const char *fault;
    } wrong[] = {
        {{ST(8, 0, 4), NOP, NOP}, "store into code"},
        {{LD(8, 0, 0x1002), NOP, NOP}, "load of a word that is not aligned"},
        {{MOV(8, 0x100000), LD(9, 8, 0), NOP}, "load outside SRAM and registers"},
        {{BT(0), BT(0), NOP}, "a jump in a delay slot"},
        {{0xd0000000u, NOP, NOP}, "an instruction that is not known"},
        {{0xffffffffu, NOP, NOP}, "an instruction that is not known"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        load_words(wrong[i].word, 3);
        assert_int_equal(myri_lanai_run(&m, 100 * STEP), -1);
        assert_string_equal(m.fault, wrong[i].fault);
    }
}

static void damaged_objects_are_refused_or_loaded_within_bounds(void **state)
{
    (void)state;
    const struct myri_data *d = myri_data_find("systems/simple/firmware.hex");
    unsigned char *copy = malloc(d->n);
    uint32_t seed = 12345;
    int refused = 0;
    assert_non_null(copy);
    myri_lanai_fini(&m);
    for (size_t n = 0; n < d->n; n += 37) { /* cut off */
        memcpy(copy, d->bytes, n);
        refused += myri_lanai_load(&m, copy, n) < 0;
        myri_lanai_fini(&m);
    }
    assert_true(refused > 50);
    for (int i = 0; i < 2000; i++) { /* bytes changed, most of them in headers and tables */
        memcpy(copy, d->bytes, d->n);
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            size_t at = (seed >> 8) % 4 ? d->n - 1 - (seed >> 10) % (d->n / 3) : (seed >> 10) % 64;
            copy[at] = (unsigned char)(seed >> 24);
        }
        if (myri_lanai_load(&m, copy, d->n) == 0) {
            m.load = no_load;
            m.store = no_store;
            myri_lanai_start(&m, 0);
            myri_lanai_run(&m, 2000 * STEP);
        }
        myri_lanai_fini(&m);
    }
    free(copy);
}

/* Engines move blocks of any length from and to any byte, as if each byte were moved by itself. */
static void a_block_is_its_bytes(void **state)
{
    (void)state;
    enum { MOST = 24, BASE = 4096 };
    struct myri_lanai card = {.sram_bytes = MYRI_LANAI_SRAM};
    assert_non_null(card.sram = myri_memory_new(MYRI_LANAI_SRAM));
    for (uint32_t from = 0; from < 8; from++)
        for (uint32_t n = 0; from + n <= MOST; n++) {
            uint8_t in[MOST], out[MOST];
            for (uint32_t i = 0; i < MOST; i++) {
                in[i] = (uint8_t)(0x51 + 7 * i);
                out[i] = 0xee;
                myri_lanai_set_byte(&card, BASE + i, 0xcc);
            }
            myri_lanai_write(&card, BASE + from, in, n);
            for (uint32_t i = 0; i < MOST; i++)
                assert_int_equal(myri_lanai_byte(&card, BASE + i), i >= from && i < from + n ? in[i - from] : 0xcc);
            myri_lanai_read(&card, BASE + from, out, n);
            assert_memory_equal(out, in, n);
            assert_true(n == MOST || out[n] == 0xee);
            assert_int_equal(myri_lanai_same(&card, BASE + from, in, n), n);
            for (uint32_t i = 0; i < n; i++) {
                myri_lanai_set_byte(&card, BASE + from + i, (uint8_t)~in[i]);
                assert_int_equal(myri_lanai_same(&card, BASE + from, in, n), i);
                myri_lanai_set_byte(&card, BASE + from + i, in[i]);
            }
        }
    myri_lanai_fini(&card);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_register_costs_one_more_when_it_is_used_at_once),
        cmocka_unit_test(data_in_sram_take_the_longer_step),
        cmocka_unit_test(the_instruction_behind_a_branch_is_executed),
        cmocka_unit_test(a_block_is_its_bytes),
        cmocka_unit_test(it_refuses_what_a_program_must_not_do),
        cmocka_unit_test(damaged_objects_are_refused_or_loaded_within_bounds),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    myri_lanai_fini(&m);
    return rc;
}
