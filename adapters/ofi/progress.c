/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress.c - progress, arming and sleeping of a domain. */
#include "ofi.h"

#include <poll.h>

enum { SLEEP_MS = 100 };

static bool has_work(const struct rnl_ofi_domain *d)
{
    return rnl_ofi_is_linked(&d->busy) || rnl_ofi_is_linked(&d->asked);
}

int rnl_ofi_progress(struct rnl_ofi_domain *d)
{
    d->rounds++;
    int64_t got = rnl_extract(d->rnl, SIZE_MAX);
    if (RNL_UNLIKELY(rnl_ofi_is_linked(&d->unmet)))
        rnl_ofi_peers_seek(d);
    if (RNL_UNLIKELY(has_work(d)))
        rnl_ofi_flush(d);
    return RNL_LIKELY(got >= 0) ? 0 : rnl_ofi_errno((int)got);
}

int rnl_ofi_arm(struct rnl_ofi_domain *d, int *fd)
{
    int armed = rnl_arm(d->rnl, fd);
    return armed == 0 && has_work(d) ? 1 : armed;
}

void rnl_ofi_sleep(struct rnl_ofi_domain *d, int bell, int64_t most_ms)
{
    struct pollfd on[2] = {{.fd = -1, .events = POLLIN}, {.fd = bell, .events = POLLIN}};
    int64_t ms = most_ms < SLEEP_MS ? most_ms : SLEEP_MS;
    rnl_ofi_lock(d);
    int armed = rnl_arm(d->rnl, &on[0].fd);
    if (has_work(d) && ms > 1)
        ms = 1; /* room is made without a sound */
    rnl_ofi_unlock(d);
    if (armed != 1)
        (void)poll(on, 2, (int)ms);
}
