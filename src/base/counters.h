/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.h - makes, finds and reads counters pages (layout: runnel/counters.h). A page is a sealed memfd named
 * "runnel-counters", found from outside through /proc/PID/fd. */
#ifndef RNL_BASE_COUNTERS_H
#define RNL_BASE_COUNTERS_H

#include "runnel/counters.h"

/* Our page, zeroed but for the head. Falls back to private memory where memfd is refused. 0, RNL_ERR_NO_MEMORY. */
int rnl_counters_new(uint32_t rank, uint32_t size, const char *program, uint64_t now_ns, struct rnl_counters **out);
void rnl_counters_free(struct rnl_counters *);
/* The pages of process pid, up to n copies into out; 0 = none. RNL_ERR_SYSTEM (no such process, no permission),
 * RNL_ERR_UNSUPPORTED (another version). */
int rnl_counters_read(int pid, struct rnl_counters *out, int n);
/* Name, text and value of counter i; 0 = past the end. */
int rnl_counters_item(const struct rnl_counters *, unsigned i, const char **name, const char **text, uint64_t *value);

#endif
