/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts.h - the hosts of a job, from the command line or a file, and which ranks each gets. */
#ifndef RNL_JOB_HOSTS_H
#define RNL_JOB_HOSTS_H

#include "job/brief.h"

struct rnl_hosts {
    uint32_t n;
    struct rnl_hosts_one {
        char name[RNL_JOB_HOST_BYTES];
        uint32_t slots;
    } at[RNL_HOSTS_MAX];
};

/* Adds `NAME[:SLOTS],...`; a name that is there already gets more slots. 0; -1 and a sentence. */
int rnl_hosts_read(struct rnl_hosts *, const char *list, char *sentence, size_t room);
/* Adds what a file says: a host a line, as NAME, NAME:SLOTS or NAME slots=SLOTS; # begins a comment. 0; -1 and a
 * sentence. */
int rnl_hosts_file(struct rnl_hosts *, const char *path, char *sentence, size_t room);
uint32_t rnl_hosts_slots(const struct rnl_hosts *);
/* Deals `size` ranks in blocks: up to its slots each, in order; if there are more ranks than slots, in proportion to
 * them. Hosts without a rank are left out. How many there are in `out`, which has room for all. */
uint32_t rnl_hosts_deal(const struct rnl_hosts *, uint32_t size, struct rnl_host *out);

#endif
