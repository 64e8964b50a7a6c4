/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - the probes' one request: the card moves `bytes` from the host, then one word to the host to say so. The
 * card's own probe goes on with that for ever, and says so of each PROBE_TOLD. */
#ifndef MYRI_PROBE_LAYOUT_H
#define MYRI_PROBE_LAYOUT_H

#include <stdint.h>

enum { PROBE_MAX = 64 << 10, PROBE_TOLD = 10 };
struct probe_card {
    uint32_t host, bytes, status_at, go; /* go: the host counts up, last */
    uint32_t count;                      /* what the card answers with */
    uint32_t buffer[PROBE_MAX / 4];
};

#endif
