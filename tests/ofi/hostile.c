/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostile.c - a peer floods the provider with announcements of messages that nobody receives. The memory that it takes
 * is bounded: in the end the peer is lost, and what waited for it has failed. */
#include "ofi/stranger.h"

#include <stdio.h>
#include <sys/resource.h>

enum { MOST_KIB = 512 << 10, PATIENCE_MS = 300000 };

int main(void)
{
    struct stranger z;
    struct rusage use;
    static char ctx;
    struct rnl_ofi_long_head h = {.length = 1 << 20};
    if (!stranger_open(&z) || fi_read(z.ep, &ctx, 1, NULL, z.address, 0, 1, &ctx) != 0) {
        printf("not ok - two endpoints open\n");
        return 1;
    }
    int64_t end = rnl_ofi_now_ms() + PATIENCE_MS;
    struct fi_cq_tagged_entry e;
    struct fi_cq_err_entry error = {.err_data_size = 0};
    bool lost = false;
    for (unsigned said = 0; !lost && rnl_ofi_now_ms() < end;) {
        h.head.tag = h.request = said;
        bool room = stranger_says(&z, RNL_OFI_ANNOUNCE, &h, sizeof h);
        said += room;
        if (!room) {
            (void)!rnl_extract(z.rnl, SIZE_MAX);
            lost = fi_cq_read(z.cq, &e, 1) == -FI_EAVAIL;
        }
    }
    lost = lost && fi_cq_readerr(z.cq, &error, 0) == 1 && error.err == FI_ECONNRESET;
    getrusage(RUSAGE_SELF, &use);
    bool closed = stranger_close(&z), good = lost && closed && use.ru_maxrss < MOST_KIB;
    printf("# %ld KiB\n%s - a peer that floods is lost before it takes all memory\n", use.ru_maxrss,
           good ? "ok" : "not ok");
    return !good;
}
