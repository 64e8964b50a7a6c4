/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_copies.c - the table of copies: words, the text that stands on disk, and what is not believed there. */
#include "base/copies.h"
#include "base/copy.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void by_default_long_ones_are_moved_by_the_string_instruction(void **state)
{
    (void)state;
    for (size_t n = 0; n < 2048; n++)
        assert_int_equal(rnl_copies_kind(RNL_COPIES_DEFAULT, n), RNL_COPY_MEMCPY);
    for (size_t n = 2048; n < (size_t)1 << 40; n += n / 3)
        assert_int_equal(rnl_copies_kind(RNL_COPIES_DEFAULT, n), RNL_COPY_REP);
    assert_false(rnl_copies_whole_area(RNL_COPIES_DEFAULT));
    assert_true(rnl_copies_whole_area(RNL_COPIES_DEFAULT | 1));
}

static void each_size_has_the_kind_of_its_class(void **state)
{
    (void)state;
    for (unsigned k = 1; k <= RNL_COPIES_LOG2_MAX; k++) {
        uint64_t word = (uint64_t)RNL_COPY_PAST32 << 4 * k;
        size_t from = (size_t)1 << k, to = 2 * from - 1;
        assert_int_equal(rnl_copies_kind(word, from), RNL_COPY_PAST32);
        assert_int_equal(rnl_copies_kind(word, to), RNL_COPY_PAST32);
        assert_int_equal(rnl_copies_kind(word, from - 1), k == 1 ? RNL_COPY_PAST32 : RNL_COPY_MEMCPY);
        assert_int_equal(rnl_copies_kind(word, to + 1), k == RNL_COPIES_LOG2_MAX ? RNL_COPY_PAST32 : RNL_COPY_MEMCPY);
    }
}

static const struct rnl_copies measured = {{RNL_COPIES_DEFAULT, 0x0000100000000001}, {48, 231}};

static void a_table_is_read_as_it_was_written(void **state)
{
    char text[RNL_COPIES_TEXT_MAX];
    struct rnl_copies got = {0};
    (void)state;
    size_t n = rnl_copies_format(&measured, "a-processor/1", text);
    assert_true(rnl_copies_parse(text, n, "a-processor/1", &got));
    assert_memory_equal(&got, &measured, sizeof got);
    memset(&got, 7, sizeof got);
    struct rnl_copies before = got;
    assert_false(rnl_copies_parse(text, n, "another-processor/1", &got));
    assert_memory_equal(&got, &before, sizeof got);
}

/* Any byte changed, any length, and noise: nothing is read but tables whose every number this processor can use. */
static void a_damaged_table_is_not_believed(void **state)
{
    char text[RNL_COPIES_TEXT_MAX], own[RNL_COPIES_TEXT_MAX + 1];
    struct rnl_copies got;
    uint32_t x = 12345;
    (void)state;
    size_t n = rnl_copies_format(&measured, "p", text);
    for (size_t k = 0; k < n; k++)
        assert_false(rnl_copies_parse(text, k, "p", &got));
    for (size_t at = 0; at < n; at++)
        for (int byte = 0; byte < 256; byte++) {
            memcpy(own, text, n);
            own[at] = (char)byte;
            if (!rnl_copies_parse(own, n, "p", &got))
                continue;
            for (int d = 0; d < RNL_COPIES_DISTANCES; d++)
                assert_true(rnl_copies_valid(got.word[d]) && got.line_ns[d] <= 100000);
        }
    for (int i = 0; i < 20000; i++) {
        size_t length = (x = x * 1664525 + 1013904223) >> 16 & 511;
        for (size_t k = 0; k < length; k++)
            own[k] = (char)((x = x * 1664525 + 1013904223) >> 24);
        memcpy(own, text, length < n && i % 2 ? length : 0);
        assert_false(rnl_copies_parse(own, length, "p", &got));
    }
    memcpy(own, text, n);
    own[n] = '\n';
    assert_false(rnl_copies_parse(own, n + 1, "p", &got));
}

static void a_word_names_what_the_processor_has(void **state)
{
    (void)state;
    for (unsigned k = 1; k <= RNL_COPIES_LOG2_MAX; k++) {
        assert_true(rnl_copies_valid((uint64_t)RNL_COPY_REP << 4 * k));
        for (uint64_t kind = RNL_COPY_KINDS; kind < 16; kind++)
            assert_false(rnl_copies_valid(kind << 4 * k));
        assert_int_equal(rnl_copies_valid((uint64_t)RNL_COPY_PAST64 << 4 * k), rnl_copy_detect() >= RNL_COPY_AVX512);
    }
    assert_false(rnl_copies_valid(2));
}

static char folder[] = "/tmp/rnl-copies-XXXXXX", path[256];

static void is_default(void)
{
    struct rnl_copies got, usual;
    rnl_copies_default(&usual);
    assert_false(rnl_copies_load(&got));
    assert_memory_equal(&got, &usual, sizeof got);
}

static void a_table_on_disk_is_whole_and_ours_or_nothing(void **state)
{
    struct rnl_copies got;
    struct stat st;
    char at[RNL_COPIES_PATH_MAX], other[300];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table", folder);
    assert_int_equal(setenv("RNL_COPIES", path, 1), 0);
    is_default();
    assert_int_equal(rnl_copies_save(&measured), 0);
    assert_true(rnl_copies_load(&got));
    assert_memory_equal(&got, &measured, sizeof got);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 077) == 0);

    assert_int_equal(chmod(path, 0620), 0); /* somebody else may have written it */
    is_default();
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(rnl_copies_load(&got));
    snprintf(other, sizeof other, "%s/link", folder);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(setenv("RNL_COPIES", other, 1), 0);
    is_default();
    assert_int_equal(setenv("RNL_COPIES", folder, 1), 0); /* not a file */
    is_default();
    assert_true(rnl_copies_save(&measured) < 0);
    assert_int_equal(unlink(other), 0);

    assert_int_equal(setenv("RNL_COPIES", "", 1), 0);
    assert_false(rnl_copies_path(at, sizeof at));
    is_default();
    assert_int_equal(unsetenv("RNL_COPIES"), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", folder, 1), 0);
    is_default();
    assert_int_equal(rnl_copies_save(&measured), 0);
    assert_true(rnl_copies_load(&got) && rnl_copies_path(at, sizeof at));
    assert_int_equal(strncmp(at, folder, strlen(folder)), 0);
    assert_int_equal(unlink(at), 0);
    snprintf(other, sizeof other, "%s/runnel", folder);
    assert_int_equal(rmdir(other), 0); /* no file of a half-written table is left */
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    is_default();
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_long_ones_are_moved_by_the_string_instruction),
        cmocka_unit_test(each_size_has_the_kind_of_its_class),
        cmocka_unit_test(a_table_is_read_as_it_was_written),
        cmocka_unit_test(a_damaged_table_is_not_believed),
        cmocka_unit_test(a_word_names_what_the_processor_has),
        cmocka_unit_test(a_table_on_disk_is_whole_and_ours_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
