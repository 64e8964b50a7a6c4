/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what Hamlyn's library, kernel and cards share, and its packets.
 *
 *  packet:  source node 31..24 | source process 23..16 | bytes of data 15..0
 *           RECORD, INTERRUPT 31..24 | process 23..16 | slot 15..0
 *           key, of two words
 *           offset of these bytes in the slot
 *           number of the message, of those from that process to that node, where it has several packets
 *           offset of the message in the slot
 *           bytes of the message
 *           data
 *
 * Each packet says whose it is and where it belongs, so packets may come in any order. A message of one packet is whole
 * when that has come; for others a counter of their own has the bytes that lack. A record, in host memory, tells the
 * program of a message: its number + 1, node 15..8 | process 7..0 of its sender, slot, offset, bytes. What has been
 * refused, and why, stands in four words of host memory: how much, reason 31..24 | sender, slot, offset of the last. */
#ifndef MYRI_HAMLYN_LAYOUT_H
#define MYRI_HAMLYN_LAYOUT_H

#include <stdint.h>

enum {
    HAM_PROCESSES = 4,
    HAM_QUEUE = 8,
    HAM_SLOTS = 64, /* of a process */
    HAM_NODES = 32,
    HAM_OPEN = 8,      /* messages of several packets that can be under way from a process to a node */
    HAM_SHORT = 96,    /* bytes that go by stores */
    HAM_PACKET = 4096, /* bytes of data of a packet */
    HAM_PACKET_LEAST = 64,
    HAM_HEADER = 32,
    HAM_RECORDS = 512, /* places of the metadata queue */
    HAM_RECORD = 32,   /* bytes from one to the next */
    HAM_RECORD_WORDS = 5,
    HAM_TROUBLE_WORDS = 4
};
/* What a sender wants for a message, and STORED: its data lie in the request. */
enum { HAM_WITH_RECORD = 1, HAM_WITH_INTERRUPT = 2, HAM_STORED = 4 };
/* Why something has been refused. INCOMPLETE: a message of which packets never came. */
enum { HAM_BAD_SLOT = 1, HAM_BAD_KEY, HAM_OUT_OF_BOUNDS, HAM_QUEUE_FULL, HAM_STALE, HAM_INCOMPLETE };

struct ham_request {                          /* the library writes `bytes` last, the card clears it */
    uint32_t bytes, to, what, key[2], offset; /* to: node 31..24 | process 23..16 | slot */
    uint32_t at;                              /* in the sender's area */
    uint32_t data[HAM_SHORT / 4];
};
struct ham_slot { /* a power of two: no multiplication finds one */
    uint32_t valid, at, bytes, key[2], unused[3];
};
struct ham_process {
    struct ham_request queue[HAM_QUEUE];
    uint32_t taken; /* records that the program is done with. It sees what is before `area_at`, and no more */
    uint32_t area_at, area_bytes, records_at, trouble_at, notify;
    uint32_t promised, posted; /* records that have been kept a place for; that have been written */
    uint32_t trouble[HAM_TROUBLE_WORDS];
    struct ham_slot slot[HAM_SLOTS];
};
struct ham_card {
    uint32_t processes, nodes, packet;
    uint32_t moving; /* (process << 16 | slot) + 1 that data may be going into just now */
    uint32_t errors, refused;
    uint32_t route[HAM_NODES];
    uint32_t record[HAM_RECORD_WORDS], telling[HAM_TROUBLE_WORDS];
    struct ham_process process[HAM_PROCESSES];
    uint32_t out[2][(HAM_HEADER + HAM_PACKET) / 4], in[2][(HAM_HEADER + HAM_PACKET) / 4];
};

#endif
