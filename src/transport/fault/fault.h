/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fault.h - what can befall packets: a description that a text gives, a pure judgement on each packet, and a transport
 * that wraps any other and does to what arrives there what the judgement says. The virtual network judges its links
 * with the same function, so that a text means the same there.
 *
 * The text is a list of NAME=VALUE, separated by commas, each name once. P is a probability ("1%", "0.001"), T a time
 * ("50us", "1.5ms"; ns, us, ms, s), N a number, RANKS like 0-3+7. It is about packets on their way to who has the
 * setting, numbered from 1 for each sender (and lane):
 *
 *   loss=P          lost                               delay=T or T..T   later by that, or by something between
 *   burst=P:P       a burst of losses begins; ends     reorder=P:T       so much later than the others
 *   nth=N           each N-th is lost                  dup=P             comes twice
 *   drop=N+N...     these are lost                     corrupt=P         some bits are others
 *   mtu=N           longer ones are lost               cut=P             the end is missing
 *   ce=P            marked as congested                bleach=P          marks of congestion are taken off
 *   in=RANKS        lost, all of these senders         out=RANKS         what we send them is lost
 *   part=RANKS      these and all others are apart     noroom=P          a reserve gets no room, or not all it asks for
 *   after=T, for=T  from then on, for so long          seed=N            other packets, as often
 *
 * On a reliable transport only delay and noroom keep its promises, and the others are refused. */
#ifndef RNL_TRANSPORT_FAULT_FAULT_H
#define RNL_TRANSPORT_FAULT_FAULT_H

#include "base/chance.h"
#include "transport/contract.h"

enum { RNL_FAULT_DROPS = 16, RNL_FAULT_RANGES = 8, RNL_FAULT_TEXT = 1024 };

struct rnl_fault_ranks {
    uint32_t count;
    struct {
        uint32_t first, last;
    } range[RNL_FAULT_RANGES];
};

struct rnl_fault { /* zeros: nothing happens */
    uint64_t seed;
    uint32_t loss, burst_begin, burst_end, reorder, dup, corrupt, cut, ce, bleach, noroom; /* of RNL_CHANCE_ALWAYS */
    uint32_t mtu;                                                                          /* 0 = any length passes */
    uint64_t nth;
    uint64_t drop[RNL_FAULT_DROPS]; /* drops of them */
    uint32_t drops;
    uint64_t delay_least_ns, delay_most_ns, reorder_ns;
    uint64_t after_ns, for_ns; /* for_ns 0 = for ever */
    struct rnl_fault_ranks in, out, part;
};

/* text may be empty: nothing happens. 0, RNL_ERR_ARG; *out is then as it was. */
int rnl_fault_parse(const char *text, struct rnl_fault *out);
/* The text of it, as short as it can be said. Returns how long it is; what does not fit is cut off. */
int rnl_fault_print(const struct rnl_fault *, char *to, size_t bytes);
int rnl_fault_names(const struct rnl_fault_ranks *, uint32_t rank);

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
struct rnl_fault_flow { /* of one sender, lane or link; zeros at first */
    uint64_t packets;
    uint8_t burst;
};
struct rnl_fault_verdict {
    uint8_t lost; /* enum rnl_fault_kind; if not 0, nothing else counts */
    uint8_t twice, corrupt, ce, bleach;
    uint8_t late;   /* 1: reordered: not in line with the others */
    uint32_t bytes; /* what is left of it */
    uint64_t delay_ns;
    uint64_t twice_ns;     /* the delay of the second one */
    uint64_t corrupt_draw; /* for rnl_fault_corrupt */
};
/* The next packet of a flow: `entity` tells flows apart, `bytes` is its length. */
void rnl_fault_judge(const struct rnl_fault *, struct rnl_fault_flow *, uint64_t entity, uint32_t bytes,
                     struct rnl_fault_verdict *);
/* Changes at least one bit of it. */
void rnl_fault_corrupt(void *at, uint32_t bytes, uint64_t draw);

/* ---- the transport ---- */

struct rnl_fault_counts {
    uint64_t packets;               /* judged */
    uint64_t lost[RNL_FAULT_KINDS]; /* [RNL_FAULT_NONE]: what did not find room in here, where packets wait */
    uint64_t delayed, reordered, twice, corrupted, cut, marked, bleached, refused_rooms;
};

/* below is the new one's from success on; its env is used. now_ns: what after and for count from. 0, RNL_ERR_ARG (not
 * for that kind of transport), RNL_ERR_NO_MEMORY. */
int rnl_fault_transport_new(struct rnl_transport *below, const struct rnl_fault *, uint64_t now_ns,
                            struct rnl_transport **out);
/* The same from a text, in place: *t becomes the one that wraps it. NULL or "" leaves it bare. For who reads RNL_FAULT
 * at open. Errors as of rnl_fault_parse and above; *t is then as it was. */
int rnl_fault_wrap(struct rnl_transport **t, const char *text, uint64_t now_ns);
/* From now on, these; what is delayed already comes when it was to come. 0, RNL_ERR_ARG. */
int rnl_fault_set(struct rnl_transport *, const struct rnl_fault *, uint64_t now_ns);
const struct rnl_fault *rnl_fault_get(const struct rnl_transport *);
void rnl_fault_counts(const struct rnl_transport *, struct rnl_fault_counts *out);

#endif
