/* SPDX-License-Identifier: BSD-3-Clause
 *
 * troubles.h - which hosts of a job cannot talk to each other, what was tried, and what is the likely cause: a sentence
 * for each pair and address. */
#ifndef RNL_JOB_TROUBLES_H
#define RNL_JOB_TROUBLES_H

#include "job/here.h"

struct rnl_trouble { /* what `host` has tried in vain */
    uint32_t host;
    struct rnl_vain what;
};
struct rnl_troubles {
    const struct rnl_trouble *at;
    uint32_t n;
    const struct rnl_host *hosts; /* their names */
    /* The interface of that host with this address, or NULL. */
    const char *(*interface)(void *arg, uint32_t host, const uint8_t ip[16]);
    void (*say)(void *arg, const char *line);
    void *arg;
};
void rnl_troubles_say(const struct rnl_troubles *);

#endif
