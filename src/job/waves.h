/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waves.h - when may a job close? Detection of termination by waves of reports; pure, used by the agent and by the hub.
 *
 * Each rank that is in close and idle reports (wave, activity); activity counts the messages it ever sent or handled.
 * Wave 0 is what ranks report unasked. When every rank has reported wave k, wave k + 1 is asked for, so every report of
 * k + 1 is made after every report of k. If then each rank's activity is what it was in wave k, nobody did anything
 * between its two reports; so at the moment between the waves all were idle, and as an idle rank has had all its bytes
 * read, nothing was under way either: done.
 *
 * A death makes the wave it falls into inconclusive: its reports may have been made before the dead rank's last bytes
 * arrived. Everybody is told of the death before the next wave is asked for. */
#ifndef RNL_JOB_WAVES_H
#define RNL_JOB_WAVES_H

#include <stdint.h>

struct rnl_waves;

enum rnl_waves_step {
    RNL_WAVES_WAIT = 0,
    RNL_WAVES_ASK,  /* tell all that are here: CLOSE_ASK, wave rnl_waves_now() */
    RNL_WAVES_DONE, /* tell all that are here: CLOSE_DONE; said once, afterwards everything is WAIT */
    RNL_WAVES_WRONG /* a report of a rank that is not here, or of a wave that was not asked for: its sender is broken */
};

/* Every rank lives and is not here yet: it holds the close up. 0 or RNL_ERR_NO_MEMORY. */
int rnl_waves_new(uint32_t size, struct rnl_waves **out);
void rnl_waves_free(struct rnl_waves *);

/* One that is gone is here again, in another process, which makes the wave of today inconclusive. */
void rnl_waves_join(struct rnl_waves *, uint32_t rank);
/* It is here and has reported nothing: as if it had not come yet. */
void rnl_waves_unjoin(struct rnl_waves *, uint32_t rank);
/* It died, left or will never come: left out from now on. Again for the same rank: WAIT. */
enum rnl_waves_step rnl_waves_gone(struct rnl_waves *, uint32_t rank);
/* A second report for the same wave counts instead of the first; one for an earlier wave is late and means nothing. */
enum rnl_waves_step rnl_waves_report(struct rnl_waves *, uint32_t rank, uint64_t wave, uint64_t activity);

/* Whether this wave would end but for rank, and perhaps others that have not reported either. */
int rnl_waves_lacks(const struct rnl_waves *, uint32_t rank);

uint64_t rnl_waves_now(const struct rnl_waves *);

#endif
