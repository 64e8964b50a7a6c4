/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_pmi.c - lines as a rank might say them to its PMI-1 server, and, behind a byte of 0 at the beginning of a line,
 * what the launcher might bring from other hosts. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/input.h"
#include "launcher/mpi/pmi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rnl_job_host at[2] = {{.name = "a", .count = 1}, {.name = "b", .first = 1, .count = 2}};
    struct rnl_pmi pmi;
    struct rnl_pmi_caller caller = {.inside = false};
    char line[RNL_PMI_LINE], reply[RNL_PMI_LINE];
    rnl_pmi_init(&pmi, 1, 2, at);
    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t n = end ? (size_t)(end - data) : size, taken = n < sizeof line - 1 ? n : sizeof line - 1;
        if (n > 0 && data[0] == '\0') {
            (void)rnl_pmi_learn(&pmi, data + 1, n - 1);
        } else {
            memcpy(line, data, taken);
            line[taken] = '\0';
            memset(reply, 'x', sizeof reply);
            const enum rnl_pmi_turn turn = rnl_pmi_receive(&pmi, &caller, line, reply);
            if (turn == RNL_PMI_REPLIES || turn == RNL_PMI_NO_SPAWN) {
                const char *last = memchr(reply, '\0', sizeof reply);
                FUZZ_MUST(last && last > reply && memchr(reply, '\n', sizeof reply) == last - 1);
            }
        }
        FUZZ_MUST(pmi.bytes <= RNL_PMI_BYTES);
        caller.inside = false; /* the barrier is over */
        data += n + (end != NULL);
        size -= n + (end != NULL);
    }
    rnl_pmi_free(&pmi);
    return 0;
}
