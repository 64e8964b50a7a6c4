/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what VMMC-2's library, its kernel module and cards share, and its packets.
 *
 *  data:    DATA 31..24 | source 23..16 | bytes of data 15..0
 *           number of this packet between the two nodes
 *           number of the next one that the source expects from the destination
 *           LAST 31 | export 15..0
 *           bytes of the message before this packet
 *           bytes of the whole message
 *           data, padded to words
 *  answer:  ACK or GAP 31..24 | source 23..16
 *           0
 *           number of the next one that the source expects
 *
 * A reference is the number of a page of a process; the kernel's table, in host memory, has a word for each: the
 * address of the page for the card, or 0. A record, in host memory, tells the program of a message: its number + 1,
 * where it lies, its bytes. */
#ifndef MYRI_VMMC2_LAYOUT_H
#define MYRI_VMMC2_LAYOUT_H

#include <stdint.h>

enum {
    VMMC2_PROCESSES = 4,
    VMMC2_QUEUE = 16,
    VMMC2_EXPORTS = 32, /* of a process */
    VMMC2_IMPORTS = 64,
    VMMC2_NODES = 32,
    VMMC2_CACHE = 1024, /* translations on the card */
    VMMC2_LINE = 8,     /* that one look at the kernel's table brings */
    VMMC2_BUFFERS = 32, /* packets that are kept until they are acknowledged */
    VMMC2_WINDOW = 8,   /* of them for one node */
    VMMC2_DATA = 4096,  /* of a packet at most; a page, where it is smaller */
    VMMC2_HEADER = 24,
    VMMC2_ANSWER = 12,
    VMMC2_RECORDS = 16,
    VMMC2_RECORD = 16 /* bytes */
};
enum { VMMC2_KIND_DATA = 1, VMMC2_KIND_ACK, VMMC2_KIND_GAP };
enum { VMMC2_STAGED, VMMC2_DIRECT, VMMC2_REFUSED }; /* where a message lies */
#define VMMC2_LAST  0x80000000u
#define VMMC2_VALID 0x80000000u

struct vmmc2_request { /* of one page at most; the library writes `bytes` last, the card clears it */
    uint32_t bytes, what, offset, whole, reference, at; /* what: LAST | import; at: in the page */
    uint32_t unused[2];                                 /* sizes are powers of two: no multiplication finds one */
};
struct vmmc2_post { /* where a message is to lie: the library writes `number`, its message's + 1, last */
    uint32_t number, reference, at, bytes;
    uint32_t taken; /* messages of this export that the program is done with */
    uint32_t unused[3];
};
struct vmmc2_process {
    struct vmmc2_request queue[VMMC2_QUEUE]; /* the process sees the queue and posts of the card, and no more */
    struct vmmc2_post post[VMMC2_EXPORTS];
    uint32_t outgoing[VMMC2_IMPORTS]; /* VALID | node 23..16 | export 15..0 */
    uint32_t table_at, references;    /* host address of the kernel's table; words of it */
    uint32_t status_at, done;         /* host address where `done` is reported; messages that have left the host */
};
struct vmmc2_export {
    uint32_t valid, importer;     /* node */
    uint32_t reference, at;       /* of the staging area: its first page, and where in that it begins */
    uint32_t places, place_bytes; /* messages that it holds; bytes of each, a power of two */
    uint32_t place_shift, record_at, notify;
    uint32_t unused[7];
};
struct vmmc2_card {
    uint32_t processes, page_shift, nodes;
    uint32_t tick, patience; /* half microseconds; ticks without progress until packets go again */
    uint32_t generation;     /* the kernel counts what it has taken out of tables */
    uint32_t misses, dropped, resent, gaps, errors, refused, acked;
    uint32_t route[VMMC2_NODES];
    uint32_t tag[VMMC2_CACHE], physical[VMMC2_CACHE]; /* tag: process * references + reference + 1 */
    uint32_t line[VMMC2_LINE], record[VMMC2_RECORD / 4], answer[3];
    struct vmmc2_export export[VMMC2_PROCESSES * VMMC2_EXPORTS];
    struct vmmc2_process process[VMMC2_PROCESSES];
    uint32_t out[VMMC2_BUFFERS][(VMMC2_HEADER + VMMC2_DATA) / 4], in[2][(VMMC2_HEADER + VMMC2_DATA) / 4];
};

#endif
