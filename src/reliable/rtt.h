/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rtt.h - round trips: of a flow (smoothed, RFC 9002 5) and of a class of paths, whose least one tells distance from
 * queue. A flow that measured its own least one in a standing queue would take the queue for distance and starve the
 * older flows; so the flows of an endpoint share it. */
#ifndef RNL_RELIABLE_RTT_H
#define RNL_RELIABLE_RTT_H

#include <stdint.h>

#include "base/error.h"

/* One for each class of paths of an endpoint that are equally long, e.g. to the peers of one rack: whoever is further
 * away than the nearest of his class is taken for queued. If nothing is known of distances, one for each peer. Zeroed
 * memory is one that knows nothing. */
struct rnl_path {
    uint64_t base_ns;  /* the least round trip; 0 = unknown. May be set from what is known beforehand */
    uint64_t seen_ns;  /* when it was last seen */
    uint64_t drain_ns; /* until then all flows keep their windows small, to see it again */
    uint64_t least_ns; /* the least one seen meanwhile; 0 = none */
    uint64_t keep_ns;  /* it is believed so long without being seen; grows */
    uint32_t drains;   /* in vain, in a row */
};
enum {
    RNL_PATH_KEEPS_S = 10,         /* not seen for so long: look for it; ... */
    RNL_PATH_KEEPS_FIRST_US = 500, /* ... earlier while it is new, for it may have been seen in a queue only */
    RNL_PATH_DRAINS = 3            /* looked for so often: it has become longer */
};
/* A round trip of one of its flows, without what the peer held it. */
void rnl_path_sample(struct rnl_path *path, uint64_t rtt_ns, uint64_t now_ns);
RNL_INLINE int rnl_path_draining(const struct rnl_path *path, uint64_t now_ns)
{
    return now_ns < path->drain_ns;
}

struct rnl_rtt {
    uint32_t smoothed_ns; /* 0 = nothing known */
    uint32_t variance_ns;
    uint32_t latest_ns;
    uint32_t least_ns;
};
enum { RNL_RTT_MAX_NS = 2000000000 };
/* `sample_ns` between sending and hearing of it, of which the peer says it held it hold_ns. */
void rnl_rtt_sample(struct rnl_rtt *rtt, uint64_t sample_ns, uint32_t hold_ns);
/* RFC 9002 6.2.1, without the maximum acknowledgement delay and the doubling. */
uint64_t rnl_rtt_pto_ns(const struct rnl_rtt *rtt, uint32_t granularity_ns);

#endif
