/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.h - a virtual host: its clock, which drifts, and the moments when it stands still. */
#ifndef RNL_CLUSTER_HOST_H
#define RNL_CLUSTER_HOST_H

#include "sim/cluster/units.h"

struct rnl_vhost {
    uint32_t index;
    int32_t drift_ppb;          /* of its clock against virtual time */
    uint64_t offset_ns;         /* what its clock showed at tick 0 */
    uint64_t stalled_until;     /* no program on it runs before this tick */
    uint32_t first_rank, ranks; /* of its own */
    uint8_t law;                /* enum rnl_congest_law: of endpoints that are opened there */
};

enum { RNL_DRIFT_MAX_PPB = 100000 }; /* 100 ppm, as quartz has it */

/* Drift and offset as the seed has them for host `index`. */
void rnl_vhost_init(struct rnl_vhost *, uint64_t seed, uint32_t index);
/* From this tick on; what it shows does not jump. */
void rnl_vhost_set_drift(struct rnl_vhost *, int32_t ppb, uint64_t tick);
/* What its clock shows at this tick, and the first tick at which it shows at least that: RNL_SIM_NEVER for UINT64_MAX.
 */
uint64_t rnl_vhost_ns(const struct rnl_vhost *, uint64_t tick);
uint64_t rnl_vhost_tick(const struct rnl_vhost *, uint64_t ns);

#endif
