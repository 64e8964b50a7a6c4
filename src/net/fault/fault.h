/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.h - faults of packets: a description that is read from a text, a pure function that judges each packet, and a
 * transport that wraps any other and applies the judgements to what arrives there. The virtual network judges its links
 * with the same function, so that a text means the same there.
 *
 * The text is a list of NAME=VALUE, separated by commas, each name once. P is a probability ("1%", "0.001"), T a time
 * ("50us", "1.5ms"; ns, us, ms, s), N a number, RANKS like 0-3+7. It describes packets that arrive at the process with
 * this setting, numbered from 1 for each sender:
 *
 *   loss=P          is lost                            delay=T or T..T   arrives later by T, or by a time in the range
 *   burst=P:P       a burst of losses begins; ends     reorder=P:T       arrives later by T, the others do not
 *   nth=N           each N-th is lost                  dup=P             arrives twice
 *   drop=N+N...     these are lost                     corrupt=P         some bits are changed
 *   mtu=N           is lost if it is longer            cut=P             the end is missing
 *   ce=P            is marked "congestion experienced" bleach=P          its ECN mark is removed
 *   in=RANKS        all from these senders are lost    out=RANKS         what we send to these is lost
 *   part=RANKS      a partition: these, and the others noroom=P          a reserve gets no room, or less than requested
 *   after=T, for=T  faults begin then, and last so     seed=N            chooses which packets are hit */
#ifndef RNL_NET_FAULT_FAULT_H
#define RNL_NET_FAULT_FAULT_H

#include "base/chance.h"
#include "net/datagram/transport.h"

enum { RNL_FAULT_DROPS = 16, RNL_FAULT_RANGES = 8, RNL_FAULT_TEXT = 1024 };

struct rnl_fault_ranks {
    uint32_t count;
    struct {
        uint32_t first, last;
    } range[RNL_FAULT_RANGES];
};

struct rnl_fault { /* all zeros = no faults */
    uint64_t seed;
    uint32_t loss, burst_begin, burst_end, reorder, dup, corrupt, cut, ce, bleach, noroom; /* of RNL_CHANCE_ALWAYS */
    uint32_t mtu;                                                                          /* 0 = any length passes */
    uint64_t nth;
    uint64_t drop[RNL_FAULT_DROPS]; /* numbers of packets that are lost */
    uint32_t drops;                 /* used entries of drop[] */
    uint64_t delay_least_ns, delay_most_ns, reorder_ns;
    uint64_t after_ns, for_ns; /* for_ns 0 = for ever */
    struct rnl_fault_ranks in, out, part;
};

/* Reads a description; an empty text means no faults. 0, RNL_ERR_ARG, which leaves *out as it was. */
int rnl_fault_parse(const char *text, struct rnl_fault *out);
/* Writes the shortest text of a description. Returns its length; what does not fit into `bytes` is cut off. */
int rnl_fault_print(const struct rnl_fault *, char *to, size_t bytes);
/* true = the list has this rank. */
bool rnl_fault_names(const struct rnl_fault_ranks *, uint32_t rank);

/* ---- judging: pure ---- */

enum rnl_fault_kind {
    RNL_FAULT_NONE = 0,
    RNL_FAULT_LOSS,
    RNL_FAULT_BURST,
    RNL_FAULT_NTH,
    RNL_FAULT_DROP,
    RNL_FAULT_MTU,
    RNL_FAULT_BLOCKED, /* in, out, part */
    RNL_FAULT_KINDS
};
struct rnl_fault_flow { /* the packets of one sender or link; starts as zeros */
    uint64_t packets;   /* judged so far */
    uint8_t burst;      /* 1 = within a burst of losses */
};
struct rnl_fault_verdict {
    uint8_t lost; /* enum rnl_fault_kind; if it is not 0, the other fields do not count */
    uint8_t twice, corrupt, ce, bleach;
    uint8_t late;          /* 1 = it is reordered */
    uint32_t bytes;        /* what is left of its length */
    uint64_t delay_ns;     /* how much later it arrives */
    uint64_t twice_ns;     /* the same for its duplicate */
    uint64_t corrupt_draw; /* the random number for rnl_fault_corrupt */
};
/* Judges the next packet of a flow, which has `bytes`; `entity` identifies the flow in random draws. */
void rnl_fault_judge(const struct rnl_fault *, struct rnl_fault_flow *, uint64_t entity, uint32_t bytes,
                     struct rnl_fault_verdict *);
/* Changes at least one bit of the packet, as the random number `draw` says. */
void rnl_fault_corrupt(void *at, uint32_t bytes, uint64_t draw);

/* ---- the transport ---- */

struct rnl_fault_counts {
    uint64_t packets;               /* judged */
    uint64_t lost[RNL_FAULT_KINDS]; /* by cause; [RNL_FAULT_NONE]: lost because this transport could not hold them */
    uint64_t delayed, reordered, twice, corrupted, cut, marked, bleached, refused_rooms;
};

/* Wraps `below`, which the new transport owns if the call succeeds, and shares its env. The times after and for count
 * from now_ns. 0, RNL_ERR_NO_MEMORY. */
int rnl_fault_transport_new(struct rnl_transport *below, const struct rnl_fault *, uint64_t now_ns,
                            struct rnl_transport **out);
/* Replaces *t by a transport that wraps it, with faults as the text (the value of RNL_FAULT) says; does nothing if the
 * text is NULL or "". Fails as rnl_fault_parse and rnl_fault_transport_new do, and leaves *t as it was. */
int rnl_fault_wrap(struct rnl_transport **t, const char *text, uint64_t now_ns);
/* Changes the description for packets that arrive from now on; those that are delayed already keep their times. */
void rnl_fault_set(struct rnl_transport *, const struct rnl_fault *, uint64_t now_ns);
const struct rnl_fault *rnl_fault_get(const struct rnl_transport *);
void rnl_fault_counts(const struct rnl_transport *, struct rnl_fault_counts *out);

#endif
