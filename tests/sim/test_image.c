/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_image.c - programs that are no programs: a file that is cut off anywhere, or has any byte changed, is refused
 * with a sentence or taken, and nothing outside of it is read. */
#include "runnel/runnel.h"
#include "sim/cluster/image.h"
#include "sim/cluster/shim.h"
#include "sim/engine/random.h"
#include "support/must.h"
#include "support/unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char *good, *bad;
static size_t bytes;
static char path[64];
static int fd;

static int read_vproc(void **state)
{
    char name[4096];
    const char *build = getenv("RUNNEL_BUILD");
    (void)state;
    snprintf(name, sizeof name, "%s/tests/vproc-token.so", build ? build : "build");
    FILE *f = fopen(name, "re");
    if (!f) {
        printf("skip: %s is not built\n", name);
        return 0;
    }
    good = malloc(1 << 20);
    bad = malloc(1 << 20);
    bytes = fread(good, 1, 1 << 20, f);
    fclose(f);
    fd = memfd_create("image", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return fd < 0 || bytes == 0;
}

static int drop_vproc(void **state)
{
    (void)state;
    free(good);
    free(bad);
    return fd > 0 ? close(fd) : 0;
}

/* 0 or the status; what could be opened is closed. */
static int try(const unsigned char *from, size_t n)
{
    struct vc_image *image;
    TEST_MUST(ftruncate(fd, 0) == 0 && pwrite(fd, from, n, 0) == (ssize_t)n);
    int status = vc_image_open(path, vc_shim_bind, &image);
    if (status == 0)
        vc_image_close(image);
    else
        TEST_MUST(rnl_last_error()->status == status && strstr(rnl_last_error()->text, path) != NULL);
    return status;
}

static void what_is_whole_is_taken(void **state)
{
    (void)state;
    if (!good)
        skip();
    assert_int_equal(try(good, bytes), 0);
}

static void what_is_cut_off_is_refused(void **state)
{
    int taken = 0;
    (void)state;
    if (!good)
        skip();
    for (size_t n = 1; n < bytes; n += n < 2000 ? 7 : 97)
        taken += try(good, n) == 0;
    assert_in_range(taken, 0, bytes / 97 / 2); /* the tables for debuggers stand last, and may be missing */
}

static void any_byte_may_be_wrong(void **state)
{
    int refused = 0;
    (void)state;
    if (!good)
        skip();
    for (uint64_t i = 0; i < 20000; i++) {
        memcpy(bad, good, bytes);
        /* Headers and tables more often than code. */
        uint64_t r = rnl_sim_random(5, 1, 0, i), reach = i % 2 ? 0x1200 : bytes;
        for (int k = 0; k < 1 + (int)(i % 3); k++)
            bad[rnl_sim_below(rnl_sim_random(5, 2, (uint64_t)k, i), reach)] = (unsigned char)(r >> (8 * k));
        refused += try(bad, bytes) != 0;
    }
    assert_in_range(refused, 1000, 19000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_whole_is_taken),
        cmocka_unit_test(what_is_cut_off_is_refused),
        cmocka_unit_test(any_byte_may_be_wrong),
    };
    return cmocka_run_group_tests(tests, read_vproc, drop_vproc);
}
