/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_control.c - bytes as the other end of a control stream might send them, in pieces: the greeting, the frames, and
 * each body that is unpacked. */
#include <stdint.h>
#include <string.h>

#include "launcher/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unpack(const struct rnl_control_frame *f)
{
    static const struct rnl_job_host at[2] = {{.name = "a", .count = 1}, {.name = "b", .first = 1, .count = 2}};
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    static struct rnl_probe_failure failure;
    static struct rnl_host_info info;
    struct rnl_job_spec spec;
    if (rnl_job_spec_unpack(f->body, f->bytes, &spec) == 0)
        rnl_job_spec_free(&spec);
    while (u.left > 0 && rnl_host_info_unpack(&u, 2, at, &info) == 0)
        ;
    static struct rnl_arrivals arrivals;
    u = (struct rnl_unpack){.at = f->body, .left = f->bytes};
    (void)rnl_arrivals_unpack(&u, &arrivals);
    u = (struct rnl_unpack){.at = f->body, .left = f->bytes};
    while (u.left > 0 && rnl_probe_failure_unpack(&u, 2, &failure) == 0)
        ;
    static struct rnl_path_report report;
    u = (struct rnl_unpack){.at = f->body, .left = f->bytes};
    while (u.left > 0 && rnl_path_report_unpack(&u, 2, &report) == 0)
        ;
}

/* The first byte says in what pieces the rest arrives, and whether a greeting is awaited. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rnl_reader r = {.at = NULL};
    struct rnl_control_frame f;
    char release[RNL_CONTROL_RELEASE_BYTES], noise[32] = "";
    if (size == 0)
        return 0;
    const size_t piece = (data[0] & 127) + 1u;
    int greeted = data[0] >> 7;
    for (size_t at = 1; at < size; at += piece) {
        const size_t n = size - at < piece ? size - at : piece;
        unsigned char *space = rnl_reader_space(&r, n);
        if (!space)
            break;
        memcpy(space, data + at, n);
        rnl_reader_add(&r, n);
        if (!greeted)
            greeted = rnl_reader_greeting(&r, release, noise, sizeof noise) > 0;
        while (greeted && rnl_reader_next(&r, &f))
            unpack(&f);
    }
    rnl_reader_free(&r);
    return 0;
}
