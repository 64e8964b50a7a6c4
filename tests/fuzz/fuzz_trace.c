/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_trace.c - any file as a trace, and any bytes as a datagram in it: read as lines, or an error. */
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char lines[1 << 20];
    char text[256];
    vc_trace_describe(data, size, text, sizeof text);
    if (strlen(text) >= sizeof text || strchr(text, '\n') != NULL)
        abort();
    if (size == 0)
        return 0;
    FILE *in = fmemopen((void *)(uintptr_t)data, size, "rb"), *out = fmemopen(lines, sizeof lines, "wb");
    if (!in || !out)
        abort();
    (void)vc_trace_decode(in, out, NULL);
    fclose(in);
    fclose(out);
    return 0;
}
