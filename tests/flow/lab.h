/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lab.h - flows over one bottleneck, on virtual time: `flows` senders with links of their own (25 Gb/s), one queue of
 * limited length, one receiving host; what goes back shares a link, too. Everything may be lost, delayed and paused, by
 * a seed. All the way it is checked that each note is acked or lost once, that nothing is acked that did not arrive,
 * and that no unit is missing in the end.
 *
 * Times in ns, chances in parts per million. */
#ifndef RNL_TESTS_RELIABLE_LAB_H
#define RNL_TESTS_RELIABLE_LAB_H

#include "flow/upper.h"

enum lab_app {
    LAB_BULK, /* units of `unit` bytes, `units` of them for each flow, 0 = endless */
    LAB_ECHO  /* 8 bytes there and back, one after another */
};
struct lab_config {
    unsigned flows;
    enum lab_app app;
    uint32_t ps_per_byte; /* of the bottleneck: 800 = 10 Gb/s */
    uint32_t base_ns;     /* round trip of a full packet when nothing else is about */
    uint32_t buffer;      /* bytes on the wire that the queue holds */
    uint32_t loss_ppm;    /* each way */
    uint32_t duplicate_ppm, corrupt_ppm;
    uint32_t jitter_ns; /* each packet is late by up to this, after the queue */
    uint32_t pause_ppm; /* of a host, before each packet that it sends */
    uint32_t pause_from_ns, pause_to_ns;
    unsigned pause_who;                /* 1 = the receiver, 2 = the senders, 3 = both */
    uint32_t mark_bytes;               /* a longer queue marks; 0 = it does not */
    unsigned bleach;                   /* 1 = marks vanish, 2 = everything is marked */
    uint32_t mtu;                      /* larger datagrams vanish; 0 = none do */
    uint64_t mtu_at_ns;                /* ... from then on */
    uint64_t dark_from_ns, dark_to_ns; /* nothing passes */
    uint64_t duration_ns;
    uint64_t units;
    uint32_t unit;
    uint64_t stagger_ns; /* between the beginnings of flows */
    uint64_t seed;
    uint8_t law_of_first; /* 1 + algorithm of the first flow, 0 = as the others */
    uint8_t own_base;     /* 1 = the path's base is not known beforehand */
    struct rnl_flow_config flow;
};
struct lab_result {
    uint64_t end_ns, last_ns; /* last_ns: since its flow's beginning */
    uint64_t delivered;       /* units, in all */
    uint32_t per_mille;       /* goodput of what the link can carry without headers, in the second half if endless */
    uint32_t jain_mille;
    uint32_t first_mille; /* the first flow's part of all */
    uint32_t drop_ppm;    /* at the queue */
    uint32_t queue50_us, queue99_us;
    uint64_t trips;
    uint64_t trip_mean_ns, trip50_ns, trip999_ns;
    uint64_t hash, events;
    uint64_t memory;                         /* sum of the most that each flow held, bytes */
    uint32_t unfinished;                     /* flows */
    struct rnl_flow_counters sent, received; /* sums over senders, receivers */
    uint32_t windows_q8;                     /* mean of the senders at the end, in 1/256 packets */
};

void lab_defaults(struct lab_config *config);
/* NULL, or what was wrong. */
const char *lab_run(const struct lab_config *config, struct lab_result *result);

#endif
