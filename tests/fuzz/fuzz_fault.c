/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_fault.c - any text as a description of faults. One that is understood comes back when it is written and read
 * again, and judges packets within their bounds. */
#include <stdlib.h>
#include <string.h>

#include "net/fault/fault.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rnl_fault f, again;
    struct rnl_fault_flow flow = {0};
    char text[RNL_FAULT_TEXT], once[RNL_FAULT_TEXT], twice[RNL_FAULT_TEXT];
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (rnl_fault_parse(text, &f) < 0)
        return 0;
    if (rnl_fault_print(&f, once, sizeof once) >= RNL_FAULT_TEXT || rnl_fault_parse(once, &again) < 0)
        abort();
    (void)rnl_fault_print(&again, twice, sizeof twice);
    if (strcmp(once, twice) != 0)
        abort();
    for (uint32_t bytes = 0; bytes < 64; bytes++) {
        struct rnl_fault_verdict v;
        unsigned char packet[64] = {0};
        rnl_fault_judge(&f, &flow, 1, bytes, &v);
        if (v.bytes > bytes || v.lost >= RNL_FAULT_KINDS)
            abort();
        if (!v.lost && v.corrupt)
            rnl_fault_corrupt(packet, v.bytes, v.corrupt_draw);
    }
    return 0;
}
