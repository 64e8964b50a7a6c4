/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest.h - how much may be in flight: what all laws share (the window, rounds, taking back a cut that was wrong),
 * and the table by which one is chosen. DLF (congest_dlf.c: a delay target; losses and marks count by their fraction)
 * is the one in use, NewReno and CUBIC are there to be compared with. Fixed point throughout: windows are bytes with 8
 * fractional bits, fractions have 16.
 *
 * Bytes are those on the wire. What is acknowledged between two calls of output is judged once, by its last round trip:
 * of a batch that waited for a host, the beginning tells about the host and the end about the network. */
#ifndef RNL_RELIABLE_CONGEST_H
#define RNL_RELIABLE_CONGEST_H

#include "base/error.h"
#include "reliable/rtt.h"

enum rnl_congest_law { RNL_CONGEST_DLF = 0, RNL_CONGEST_NEWRENO, RNL_CONGEST_CUBIC, RNL_CONGEST_LAWS };

struct rnl_congest_limits {
    uint32_t initial_packets;
    uint32_t most_bytes; /* of a window */
    uint32_t target_ns;  /* DLF: the queue that is aimed at */
    /* No network card answers so soon: both ends are on one machine, and the queue is memory of theirs. */
    uint32_t near_ns;        /* least round trips below; 0 = none is */
    uint32_t near_target_ns; /* DLF, there */
};

/* What came back since the last time. */
struct rnl_congest_news {
    uint64_t now_ns;
    uint64_t number, next;  /* the largest acknowledged; the next to be sent */
    uint32_t acked, marked; /* bytes; those believed to be marked by a queue */
    uint32_t rtt_ns;        /* of the last one, without what the host held it; 0 = no sample */
    uint32_t base_ns;       /* the least that the path is known to have */
    uint32_t smoothed_ns;
    uint32_t packet;  /* bytes of a full one */
    uint8_t limited;  /* the window, not the upper side, was the limit */
    uint8_t credited; /* ... or what the peer's socket holds: a window that does not grow for it, but makes a queue */
};

struct rnl_congest {
    uint64_t window, threshold;   /* bytes << 8 */
    uint64_t cut_ns;              /* the last cut */
    uint64_t round_end;           /* the round is over when this number is acknowledged */
    uint32_t acked, lost, marked; /* bytes of this round */
    uint32_t suspects;            /* losses of the last episode that were not proved wrong; 0 = nothing to take back */
    uint64_t episode;             /* numbers from its first loss to its end are of the last episode */
    uint64_t episode_end;
    uint64_t old_window, old_threshold; /* before it */
    union {
        struct {
            uint32_t loss_q16, mark_q16; /* fractions, smoothed */
            uint32_t last_ns, noise_ns;  /* the last round trip; how far they fall from one to the next, smoothed */
            uint64_t rival_ns;           /* until then the queue is taken for a rival's; 0 = for ours */
            uint32_t high;               /* round trips far above the target, none below it in between */
            uint64_t recovery;           /* against rivals: losses of numbers below were answered */
        } dlf;
        struct {
            uint64_t recovery; /* losses of numbers below were answered */
        } newreno;
        struct {
            uint64_t recovery, began_ns, most, reno; /* windows as above */
            uint64_t k_us;
        } cubic;
    } law;
    uint8_t which;
    uint8_t rough; /* round trips for which hosts are still taken to pause now and then; DLF alone looks */
};

struct rnl_congest_ops {
    uint32_t least_q8; /* window, in 1/256 of a packet */
    void (*acked)(struct rnl_congest *, const struct rnl_congest_limits *, const struct rnl_congest_news *, int round);
    /* Bytes were judged lost, the last of them in packet `number`; c->lost has them already. */
    void (*lost)(struct rnl_congest *, const struct rnl_congest_news *, uint64_t number);
    /* All that was sent for longer than three probe timeouts was lost. */
    void (*collapse)(struct rnl_congest *, const struct rnl_congest_news *);
};
extern const struct rnl_congest_ops rnl_congest_dlf, rnl_congest_newreno, rnl_congest_cubic;
#define RNL_CONGEST_NO_THRESHOLD UINT64_MAX

void rnl_congest_init(struct rnl_congest *congest, enum rnl_congest_law law, const struct rnl_congest_limits *limits,
                      uint32_t packet);
/* 1 = with it a round trip is over. */
int rnl_congest_acked(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news);
void rnl_congest_lost(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news, uint64_t first, uint64_t last, uint32_t bytes,
                      uint32_t packets);
void rnl_congest_collapse(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                          const struct rnl_congest_news *news);
/* A packet judged lost had come. 1 = so has all of its episode, and the cut is taken back. */
int rnl_congest_was_wrong(struct rnl_congest *congest, uint64_t number, uint32_t bytes);
/* May a packet go, with so much in flight? */
RNL_INLINE int rnl_congest_open(const struct rnl_congest *c, uint64_t in_flight, uint32_t packet)
{
    return c->window < (uint64_t)packet << 8 ? in_flight == 0 : (in_flight + packet) << 8 <= c->window;
}
/* The time over which a window is spread; 0 = it is not. */
uint64_t rnl_congest_trip_ns(const struct rnl_congest *congest, uint32_t smoothed_ns, uint32_t latest_ns,
                             uint32_t packet);
RNL_INLINE int rnl_congest_near(const struct rnl_congest_limits *limits, uint64_t base_ns)
{
    return base_ns != 0 && base_ns < limits->near_ns;
}

#endif
