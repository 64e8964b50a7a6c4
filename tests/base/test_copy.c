/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_copy.c - bulk copies: every size to a page and beyond, many alignments, not a byte outside. */
#include "base/copy.h"
#include "support/unit.h"

enum {
    SMALL_MAX = 4100,
    EDGE = 64,
    BIG = (1 << 20) + 77,
    IN = 255,
    KIND = 100 /* and those after it: enum rnl_copy_kind */
};

static void copy_how(int how, void *to, const void *from, size_t n)
{
    if (how == IN)
        rnl_copy_in(to, from, n);
    else if (how >= KIND)
        rnl_copy_in_kind((enum rnl_copy_kind)(how - KIND), to, from, n);
    else
        rnl_copy_out(to, from, n, (uint8_t)how);
}

/* `to` has EDGE spare bytes on either side. */
static void check(int how, unsigned char *to, const unsigned char *from, size_t n)
{
    memset(to - EDGE, 0xee, n + 2 * EDGE);
    copy_how(how, to, from, n);
    if (memcmp(to, from, n) != 0)
        fail_msg("how %d, %zu bytes: wrong content", how, n);
    for (int i = 0; i < EDGE; i++)
        if (to[-1 - i] != 0xee || to[n + (size_t)i] != 0xee)
            fail_msg("how %d, %zu bytes: wrote outside", how, n);
}

static void copies_every_size(int how)
{
    static const unsigned char align_to[] = {0, 1, 31, 63}, align_from[] = {0, 7, 32, 63};
    unsigned char *to = aligned_alloc(64, BIG / 64 * 64 + 1024), *from = aligned_alloc(64, BIG / 64 * 64 + 1024);
    assert_true(to != NULL && from != NULL);
    uint32_t x = 1;
    for (size_t i = 0; i < BIG + EDGE; i++)
        from[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
    for (size_t a = 0; a < sizeof align_to; a++)
        for (size_t b = 0; b < sizeof align_from; b++)
            for (size_t n = 0; n <= SMALL_MAX; n++)
                check(how, to + EDGE + align_to[a], from + align_from[b], n);
    check(how, to + EDGE + 3, from + 5, BIG);
    check(how, to + EDGE, from, 1 << 20);
    free(to);
    free(from);
}

static void in_copies_every_size(void **state)
{
    (void)state;
    copies_every_size(IN);
}

/* Each kind that this processor has, whatever it is used for by default. */
static void every_kind_copies_every_size(void **state)
{
    (void)state;
    for (int kind = 0; kind < RNL_COPY_KINDS; kind++)
        if (rnl_copies_valid((uint64_t)kind << 60))
            copies_every_size(KIND + kind);
}

static void out_plain_copies_every_size(void **state)
{
    (void)state;
    copies_every_size(RNL_COPY_PLAIN);
}

static void out_avx2_copies_every_size(void **state)
{
    (void)state;
    if (rnl_copy_detect() < RNL_COPY_AVX2) {
        print_message("skip: no AVX2 here\n");
        skip();
    }
    copies_every_size(RNL_COPY_AVX2);
}

static void out_avx512_copies_every_size(void **state)
{
    (void)state;
    if (rnl_copy_detect() < RNL_COPY_AVX512) {
        print_message("skip: no AVX-512 here, or a sanitizer is in use\n");
        skip();
    }
    copies_every_size(RNL_COPY_AVX512);
}

static void an_unknown_width_copies_too(void **state)
{
    (void)state;
    copies_every_size(77);
}

/* A target 1 to 31 bytes behind its source, whatever their pages are. */
static void it_is_known_where_repeated_moves_trip(void **state)
{
    static const struct {
        unsigned from, to, trips;
    } pairs[] = {{0, 0, 0},     {0, 1, 1},     {0, 16, 1},      {0, 31, 1},       {0, 32, 0},       {1, 0, 0},
                 {16, 0, 0},    {4095, 0, 1},  {4065, 0, 1},    {4064, 0, 0},     {100, 4196, 0},   {100, 4200, 1},
                 {8200, 16, 1}, {16, 8200, 0}, {4096, 8192, 0}, {0, 4096 + 4, 1}, {4096 + 4, 0, 0}, {64, 96, 0}};
    static unsigned char area[3 * 4096];
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!!rnl_copy_trips(area + pairs[i].to, area + pairs[i].from) != (int)pairs[i].trips)
            fail_msg("from %u to %u", pairs[i].from, pairs[i].to);
}

static void copies_that_trip_are_whole(void **state)
{
    enum { PAGES = 20 * 4096 };
    unsigned char *to = aligned_alloc(4096, 2 * PAGES), *from = aligned_alloc(4096, 2 * PAGES);
    uint32_t x = 1;
    (void)state;
    assert_true(to != NULL && from != NULL);
    for (size_t i = 0; i < 2 * PAGES; i++)
        from[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
    for (unsigned behind = 1; behind < 32; behind += 5)
        for (size_t n = 2040; n < PAGES; n += n < 2400 ? 1 : 3989) {
            assert_true(rnl_copy_trips(to + 4096 + behind, from));
            check(IN, to + 4096 + behind, from, n);
        }
    free(to);
    free(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_copies_every_size),
        cmocka_unit_test(every_kind_copies_every_size),
        cmocka_unit_test(out_plain_copies_every_size),
        cmocka_unit_test(out_avx2_copies_every_size),
        cmocka_unit_test(out_avx512_copies_every_size),
        cmocka_unit_test(an_unknown_width_copies_too),
        cmocka_unit_test(it_is_known_where_repeated_moves_trip),
        cmocka_unit_test(copies_that_trip_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
