/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_copy.c - bulk copies: every size to a page and beyond, many alignments, not a byte outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/copy.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_MAX = 4100, EDGE = 64, BIG = (1 << 20) + 77, IN = 255 };

static void copy_how(int how, void *to, const void *from, size_t n)
{
    if (how == IN)
        rnl_copy_in(to, from, n);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_copies_every_size),        cmocka_unit_test(out_plain_copies_every_size),
        cmocka_unit_test(out_avx2_copies_every_size),  cmocka_unit_test(out_avx512_copies_every_size),
        cmocka_unit_test(an_unknown_width_copies_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
