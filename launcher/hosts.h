/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts.h - the hosts of a job, from the command line or a file, and which ranks each gets. */
#ifndef RNL_LAUNCHER_HOSTS_H
#define RNL_LAUNCHER_HOSTS_H

#include "launcher/control.h"

struct rnl_hosts {
    uint32_t n;
    struct rnl_hosts_one {
        char name[RNL_JOB_HOST_BYTES];
        uint32_t slots;
    } at[RNL_HOSTS_MAX];
};

/* Adds `NAME[:SLOTS],...`; a name that is there already gets more slots. 0; -1 and a sentence. */
int rnl_hosts_read(struct rnl_hosts *, const char *list, char *sentence, size_t room);
/* Adds the hosts of a file, one a line: NAME, NAME:SLOTS or NAME slots=SLOTS; # begins a comment. 0, or -1 and a
 * sentence. */
int rnl_hosts_file(struct rnl_hosts *, const char *path, char *sentence, size_t room);
uint32_t rnl_hosts_slots(const struct rnl_hosts *);
/* Assigns `size` ranks to hosts in blocks: in order, each host up to its slots; if there are more ranks than slots, in
 * proportion to these. Leaves hosts without a rank out. Returns how many are in `out`, which has room for all. */
uint32_t rnl_hosts_deal(const struct rnl_hosts *, uint32_t size, struct rnl_job_host *out);

/* ---- processes that join (control.h, ARRIVALS) ---- */

/* Fills in which host this is. */
void rnl_hosts_own(struct rnl_arrivals *);
/* Assigns the ranks from `first` on to those of one host: who wants one gets it, the others what is left, in the order
 * in which they came. Returns their count; or the index of the first who wants a rank that is not of this host, or
 * taken. */
uint32_t rnl_hosts_deal_ranks(const struct rnl_arrivals *, uint32_t first, uint32_t *rank);

#endif
