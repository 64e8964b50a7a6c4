/* SPDX-License-Identifier: BSD-3-Clause
 *
 * congest.h - how much may be in flight, and how it is spread over time: what all congestion control algorithms share
 * (the window, rounds, undoing a wrong reduction), the table from which one is chosen, and pacing. DLF (congest_dlf.c:
 * a delay target, and a response in proportion to the fraction of losses and marks) is the default; NewReno and CUBIC
 * are there for comparison. Everything is fixed point: windows are bytes with 8 fractional bits, fractions have 16.
 *
 * Bytes are those on the wire. Everything acknowledged between two calls of output is judged once, by the last round
 * trip: in a batch that waited for a host, the first packets measure the host, and the last one measures the
 * network. */
#ifndef RNL_NET_FLOW_CONGEST_H
#define RNL_NET_FLOW_CONGEST_H

#include "base/error.h"
#include "net/flow/rtt.h"
#include <stdbool.h>

enum rnl_congest_algorithm { RNL_CONGEST_DLF = 0, RNL_CONGEST_NEWRENO, RNL_CONGEST_CUBIC, RNL_CONGEST_ALGORITHMS };

struct rnl_congest_limits {
    uint32_t initial_packets;
    uint32_t most_bytes; /* of a window */
    uint32_t target_ns;  /* DLF: the target queueing delay */
    /* A path with a round trip below near_ns is within one machine, since no network card is so fast; its queue is
     * memory of that machine. */
    uint32_t near_ns;        /* 0 = no path counts as near */
    uint32_t near_target_ns; /* DLF: the target queueing delay of a near path */
};

/* What acknowledgements have reported since the last call. */
struct rnl_congest_news {
    uint64_t now_ns;
    uint64_t number, next;  /* the largest acknowledged; the next to be sent */
    uint32_t acked, marked; /* bytes acknowledged; of these, bytes believed to be marked by a queue */
    uint32_t rtt_ns;        /* the last round trip, without the time that the peer held it; 0 = no sample */
    uint32_t base_ns;       /* the least round trip of the path */
    uint32_t wire_ns;       /* how much longer than that the packet of rtt_ns is on the wires, for its length */
    uint32_t smoothed_ns;   /* the smoothed round trip */
    uint32_t packet;        /* bytes of a full packet */
    uint8_t limited;        /* the congestion window was the limit, not the data to send */
    uint8_t credited;       /* the peer's socket buffer was the limit: the window does not grow, but may be cut */
};

struct rnl_congest {
    uint64_t window, threshold;   /* congestion window and slow start threshold, bytes << 8 */
    uint64_t cut_ns;              /* when the window was last reduced */
    uint64_t round_end;           /* the round is over when this number is acknowledged */
    uint32_t acked, lost, marked; /* bytes in this round */
    uint32_t suspects;            /* losses of the last episode that were not proved wrong; 0 = nothing can be undone */
    uint64_t episode;             /* the last loss episode has the numbers from here up to episode_end */
    uint64_t episode_end;
    uint64_t old_window, old_threshold; /* window and threshold before the last episode */
    union {
        struct {
            uint32_t loss_q16, mark_q16; /* smoothed fractions of lost and marked bytes */
            uint32_t last_ns, noise_ns;  /* the last round trip; smoothed decrease from one round trip to the next */
            uint64_t rival_ns;           /* until then the queue is taken for that of competing flows; 0 = for ours */
            uint32_t high;               /* consecutive round trips far above the target */
            uint64_t recovery;           /* against competing flows: losses below this number were responded to */
        } dlf;
        struct {
            uint64_t recovery; /* losses below this number were responded to */
        } newreno;
        struct {
            uint64_t recovery, began_ns, most, reno; /* recovery as above; W_max and the NewReno window, bytes << 8 */
            uint64_t k_us;                           /* K of RFC 9438 */
        } cubic;
    } state;
    uint8_t which;
    uint8_t rough; /* round trips for which hosts are still taken to pause now and then; only DLF sets it */
};

struct rnl_congest_ops {
    uint32_t least_q8; /* the least window, in 1/256 of a packet */
    void (*acked)(struct rnl_congest *, const struct rnl_congest_limits *, const struct rnl_congest_news *, int round);
    /* Responds to bytes judged lost, the last of them in packet `number`; c->lost includes them already. */
    void (*lost)(struct rnl_congest *, const struct rnl_congest_news *, uint64_t number);
    /* Responds to persistent congestion: everything sent for longer than three probe timeouts was lost. */
    void (*collapse)(struct rnl_congest *, const struct rnl_congest_news *);
};
extern const struct rnl_congest_ops rnl_congest_dlf, rnl_congest_newreno, rnl_congest_cubic;
#define RNL_CONGEST_NO_THRESHOLD UINT64_MAX

void rnl_congest_init(struct rnl_congest *congest, enum rnl_congest_algorithm algorithm,
                      const struct rnl_congest_limits *limits, uint32_t packet);
/* Takes in what was acknowledged. 1 = this ends a round. */
int rnl_congest_acked(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news);
void rnl_congest_lost(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                      const struct rnl_congest_news *news, uint64_t first, uint64_t last, uint32_t bytes,
                      uint32_t packets);
void rnl_congest_collapse(struct rnl_congest *congest, const struct rnl_congest_limits *limits,
                          const struct rnl_congest_news *news);
/* A packet that was judged lost has arrived after all. true = so has everything of its episode, and the reduction of
 * the window is undone. */
bool rnl_congest_was_wrong(struct rnl_congest *congest, uint64_t number, uint32_t bytes);
/* true = the window allows one more packet when `in_flight` bytes are in flight. */
RNL_INLINE bool rnl_congest_open(const struct rnl_congest *c, uint64_t in_flight, uint32_t packet)
{
    return c->window < (uint64_t)packet << 8 ? in_flight == 0 : (in_flight + packet) << 8 <= c->window;
}
/* Returns the time over which pacing spreads one window; 0 = the window is not spread. */
uint64_t rnl_congest_trip_ns(const struct rnl_congest *congest, uint32_t smoothed_ns, uint32_t latest_ns,
                             uint32_t packet);
RNL_INLINE bool rnl_congest_near(const struct rnl_congest_limits *limits, uint64_t base_ns)
{
    return base_ns != 0 && base_ns < limits->near_ns;
}

/* ---- pacing ---- */

/* The packets of a window are spread over a round trip, in user space. Unused time is saved, up to a burst, and a flow
 * that has to wait waits until a whole burst may be sent, so that one system call carries several packets. */
struct rnl_pace_limits {
    uint32_t burst_ns; /* the longest burst, as a time */
    uint32_t burst;    /* the longest burst, in packets; the smaller limit counts, and one packet is always allowed */
    uint32_t max_ns;   /* the longest interval between two packets */
};
struct rnl_pace {
    uint64_t next_ns;    /* when the next packet is due; in the past if time was saved */
    uint64_t release_ns; /* when the next packet may be sent */
    bool waits;          /* the flow waits for release_ns alone */
    bool late;           /* it has sent later than that by more than burst_ns, and makes up for it: by up to a window */
};
/* Notes that a packet of `bytes` was sent, when window_q8 (bytes << 8) has to take trip_ns; trip_ns 0 = do not pace. */
void rnl_pace_sent(struct rnl_pace *pace, const struct rnl_pace_limits *limits, uint64_t bytes, uint64_t window_q8,
                   uint64_t trip_ns, uint64_t now_ns);

#endif
