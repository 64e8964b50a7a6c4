/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan.h - a schedule: all that one run of the swarm is, as a pure function of its seed. Which faults exist differs
 * from seed to seed, and so does their strength: a run with all of them at once would hide what only shows when most
 * are absent. Each fault draws from a stream of its own, so that one can be taken away and the others stay. */
#ifndef RNL_TESTS_SWARM_PLAN_H
#define RNL_TESTS_SWARM_PLAN_H

#include <stddef.h>

#include "net/fault/fault.h"

#define SWARM_FAULTS(X)                                                                                  \
    X(LOSS, "loss")           /* of single packets */                                                    \
    X(BURST, "burst")         /* of many in a row */                                                     \
    X(DUP, "dup")             /* packets come twice */                                                   \
    X(REORDER, "reorder")     /* some are late */                                                        \
    X(DELAY, "delay")         /* all are, by differing times */                                          \
    X(CORRUPT, "corrupt")     /* bits differ */                                                          \
    X(CUT, "cut")             /* the end is missing */                                                   \
    X(MARK, "mark")           /* marked as congested */                                                  \
    X(BLEACH, "bleach")       /* marks are taken off */                                                  \
    X(SHALLOW, "shallow")     /* queues of a few packets */                                              \
    X(MTU, "mtu")             /* of the ways becomes smaller, without a word */                          \
    X(PARTITION, "partition") /* some hosts are apart from the others, and then not */                   \
    X(BLOCK, "block")         /* one way */                                                              \
    X(FLAP, "flap")           /* a link is down for a while */                                           \
    X(STALL, "stall")         /* a host stands still */                                                  \
    X(CRASH, "crash")         /* a process ends, and the launcher says so later */                       \
    X(RESTART, "restart")     /* ... and is started anew, which the job has not asked for */             \
    X(KEYS, "keys")           /* keys are used up after a few packets */                                 \
    X(BUDGET, "budget")       /* of what may be kept for peers: the least */                             \
    X(SOCKET, "socket")       /* receive buffers of a few packets */                                     \
    X(ENCRYPT, "encrypt")     /* packets are encrypted */                                                \
    X(OPEN, "open")           /* packets are neither encrypted nor authenticated */                      \
    X(SILENT, "silent")       /* programs do not call for up to a second */                              \
    X(REST, "rest")           /* links rest at once */                                                   \
    X(STACKS, "stacks")       /* few stacks for handlers */                                              \
    X(GONE, "gone")           /* a host is silent for about as long as others stand it */                \
    X(WRAP, "wrap")           /* counters begin shortly before their fields wrap around */               \
    X(ABORT, "abort")         /* senders give messages up */                                             \
    X(SENDS, "sends")         /* handlers send */                                                        \
    X(REPLAY, "replay")       /* somebody says packets again, much later */                              \
    X(RARE, "rare")           /* the library does what it hardly ever does */                            \
    X(READMIT, "readmit")     /* who died is started anew, and taken back; and who was only not heard */ \
    X(GROUP, "group")         /* programs also multicast in a group, which some join: group.c */         \
    X(BULK, "bulk")           /* programs also post on the bulk lane */

enum swarm_fault {
#define X(name, word) SWARM_##name,
    SWARM_FAULTS(X)
#undef X
        SWARM_FAULT_COUNT
};
const char *swarm_fault_name(unsigned fault);

enum swarm_pattern { SWARM_PINGPONG, SWARM_ALL, SWARM_TO_ONE, SWARM_RING, SWARM_RANDOM, SWARM_PATTERNS };
enum { SWARM_LAW_OURS, SWARM_LAW_EVERY_SECOND, SWARM_LAW_NEWRENO };
enum { SWARM_HOSTS_MAX = 128, SWARM_EVENTS_MAX = 64 };

enum swarm_event_kind {
    SWARM_HEAL = 1, /* everything */
    SWARM_APART,    /* host: its group becomes 1 */
    SWARM_JOINED,   /* host: its group becomes 0 */
    SWARM_BLOCKED,  /* host -> other */
    SWARM_FREED,
    SWARM_DOWN, /* the link of host */
    SWARM_UP,
    SWARM_STALLS, /* host, for_ns */
    SWARM_DIES,   /* host; other: its power goes, too */
    SWARM_TOLD,   /* host: the others hear of it */
    SWARM_RETURNS,
    SWARM_NARROWS,      /* the links of host: MTU other */
    SWARM_LEAVES,       /* host: nobody reaches it for for_ns, 0 = for ever, whatever heals meanwhile */
    SWARM_ADDRESS_DOWN, /* host; other: which | 4 not in | 8 not out; for_ns: 1 = for ever, whatever heals */
    SWARM_ADDRESS_UP,   /* host; other: which */
    SWARM_FREEZES       /* host: stands still for for_ns, which may be longer than others wait */
};
const char *swarm_event_name(unsigned kind);
struct swarm_event {
    uint64_t at_ns, for_ns;
    uint32_t kind, host, other;
    uint8_t picked; /* at_ns is counted from when a picked packet is sent */
};

/* What befalls one datagram, the n-th that any host sends, counted from 1. For tests of their own (toys.c). */
enum swarm_pick_what { SWARM_PICK_NONE, SWARM_PICK_DROP, SWARM_PICK_TWICE, SWARM_PICK_LATE, SWARM_PICK_EVENTS };
enum { SWARM_PICKS_MAX = 2 };
struct swarm_pick {
    uint64_t number;
    uint32_t what;
};

struct swarm_plan {
    uint64_t seed;
    uint64_t faults;                   /* bits: those that exist */
    unsigned hosts, pattern, messages; /* messages: of each program */
    size_t longest, total;             /* bytes of one message; of all of a program */
    struct swarm_way {                 /* all links (struct vc_net_link_config) */
        uint64_t bits_per_s, delay_ns, buffer_bytes, mark_bytes;
        uint32_t mtu;
        uint8_t silent;
    } link;
    struct rnl_fault packets;
    struct swarm_event event[SWARM_EVENTS_MAX];
    unsigned events;
    uint64_t heal_ns;    /* nothing of the network is broken from then on */
    uint64_t pause_ns;   /* between messages, at most */
    uint64_t silent_ns;  /* bound of links */
    uint64_t asks_ns;    /* idle peers are asked for a sign of life; 0 = never */
    uint64_t line, bulk; /* WRAP: where lines and bulk bytes of all lanes begin */
    uint8_t knows_lives; /* the job tells which incarnation of a rank lives */
    uint8_t addresses;   /* of each host */
    uint8_t stripe;      /* long messages go by all of them at once */
    uint8_t ecn;         /* packets are capable of it */
    uint8_t plain;       /* sockets neither send runs nor get merged ones */
    uint8_t newreno;     /* hosts obey that algorithm of congestion: SWARM_LAW_* */
    uint8_t picks;       /* datagrams are counted, and those in pick[] picked */
    uint32_t again;      /* REPLAY: likelihood of a datagram, of RNL_CHANCE_ALWAYS; hellos have ten times that */
    uint64_t again_ns;   /* ... so much later at most */
    uint32_t key_packets, key_most; /* KEYS: of one key, before the next and at all */
    struct swarm_pick pick[SWARM_PICKS_MAX];
    uint64_t late_ns;
    uint64_t back_ns;   /* READMIT: programs stay, and take back, until then */
    uint32_t away_host; /* whose program does not call for away_ns once it has sent so many messages */
    unsigned away_after;
    uint64_t away_ns;
};

/* What is left of a schedule that is being made smaller: 0 = all of it. */
struct swarm_less {
    uint64_t off; /* bits of faults that are taken away */
    unsigned hosts, messages;
    size_t longest, total;
};

void swarm_plan_of(uint64_t seed, const struct swarm_less *less, struct swarm_plan *out);
static inline int swarm_has(const struct swarm_plan *p, unsigned fault)
{
    return (int)(p->faults >> fault & 1);
}
/* One line: what it is. */
void swarm_plan_print(const struct swarm_plan *p, char *to, size_t bytes);

/* The k-th number of something that is drawn about `entity`. */
enum swarm_stream {
    SWARM_STREAM_PLAN = 1,
    SWARM_STREAM_PROGRAM,
    SWARM_STREAM_HANDLER,
    SWARM_STREAM_RARE,
    SWARM_STREAM_AGAIN,
    SWARM_STREAM_FAULT = 64
};
static inline uint64_t swarm_draw(uint64_t seed, uint32_t stream, uint64_t entity, uint64_t k, uint64_t below)
{
    return rnl_chance_below(rnl_chance(seed, 0x5a000000u + stream, entity, k), below);
}

#endif
