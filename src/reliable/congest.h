/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest.h - how much may be in flight: the part that all laws share (window, rounds, undoing a cut that was wrong),
 * and the table by which a law is chosen. Laws: DLF (congest_dlf.c; a delay target, and losses and marks by their
 * fraction), NewReno and CUBIC to compare it with. Fixed point throughout: windows are bytes with 8 fractional bits,
 * fractions have 16.
 *
 * Bytes are those on the wire. What is acknowledged between two calls of output is judged once, by its last round trip:
 * a batch that waited for a host tells about the host, its end about the network. */
#ifndef RNL_RELIABLE_CONGEST_H
#define RNL_RELIABLE_CONGEST_H

#include "reliable/rtt.h"

enum rnl_congest_law { RNL_CONGEST_DLF = 0, RNL_CONGEST_NEWRENO, RNL_CONGEST_CUBIC, RNL_CONGEST_LAWS };

struct rnl_congest_limits {
    uint32_t initial_packets;
    uint32_t most_bytes; /* of a window */
    uint32_t target_ns;  /* DLF: the queue that is aimed at */
};

/* What came back since the last time. */
struct rnl_congest_news {
    uint64_t now_ns;
    uint64_t number, next;  /* largest acknowledged; the next to be sent */
    uint32_t acked, marked; /* bytes; of these believed to be marked by a queue */
    uint32_t rtt_ns;        /* of the last one, without what hosts held it; 0 = no sample */
    uint32_t base_ns;       /* the least that the path is known to have */
    uint32_t smoothed_ns;
    uint32_t packet; /* bytes of a full one */
    uint8_t limited; /* the window, not the upper side, was the limit */
};

struct rnl_congest {
    uint64_t window, threshold;    /* bytes << 8 */
    uint64_t cut_ns;               /* last cut */
    uint64_t round_end;            /* the round is over when this number is acknowledged */
    uint32_t acked, lost, marked;  /* bytes in this round */
    uint32_t suspects;             /* losses of the last episode that were not proved wrong */
    uint64_t episode, episode_end; /* its numbers; none if equal */
    uint64_t old_window, old_threshold;
    union {
        struct {
            uint32_t loss_q16, mark_q16; /* fractions, smoothed */
        } dlf;
        struct {
            uint64_t recovery; /* numbers below belong to a loss that was answered */
        } newreno;
        struct {
            uint64_t recovery, most, began_ns, reno;
            uint32_t k_us;
        } cubic;
    } law;
    uint8_t which;
};

/* A law. Windows are clamped by the caller. */
struct rnl_congest_ops {
    void (*acked)(struct rnl_congest *, const struct rnl_congest_limits *, const struct rnl_congest_news *);
    /* Packets were judged lost, up to and including `number`, sent before `next`. */
    void (*lost)(struct rnl_congest *, const struct rnl_congest_news *, uint64_t number, uint32_t bytes);
    /* Nothing came for `row` probe timeouts in a row. */
    void (*timeout)(struct rnl_congest *, const struct rnl_congest_news *, unsigned row);
    /* Least window, in 1/256 of a packet. */
    uint32_t least;
};
extern const struct rnl_congest_ops rnl_congest_dlf, rnl_congest_newreno, rnl_congest_cubic;

void rnl_congest_init(struct rnl_congest *congest, enum rnl_congest_law law, const struct rnl_congest_limits *limits,
                      uint32_t packet);
void rnl_congest_acked(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                       const struct rnl_congest_news *news);
void rnl_congest_lost(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news, uint64_t number, uint32_t bytes, uint32_t packets);
void rnl_congest_timeout(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                         const struct rnl_congest_news *news, unsigned row);
/* A packet judged lost had come. 1 = so had all of its episode, and the cut is undone. */
int rnl_congest_was_wrong(struct rnl_congest *congest, const struct rnl_congest_limits *limits, uint64_t number);
/* May a packet go, with so much in flight? */
int rnl_congest_open(const struct rnl_congest *congest, uint64_t in_flight, uint32_t packet);
/* The time that a window is spread over; 0 = not paced. */
uint64_t rnl_congest_trip_ns(const struct rnl_congest *congest, uint32_t smoothed_ns, uint32_t packet);

#endif
