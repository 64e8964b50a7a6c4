/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cell.h - what lies in the memory that two processes share: the layout of a cell and its header, of the payloads that
 * ring/ and stream/ give a meaning, and of a control page. ring.h reads and writes them.
 *
 * A cell is one cache line of 64 bytes. No other place is ever read as a header, so payload cannot imitate one:
 *
 *   bit 0           16              32  34   37      43    48              64      byte 8 .. 63
 *   +---------------+---------------+---+----+-------+-----+---------------+-----------------------------+
 *   | pos           | ack           |al | 0  | len   |kind | handler       | payload: n records of len   |
 *   +---------------+---------------+---+----+-------+-----+---------------+-----------------------------+
 *   pos   low 16 bits of the position after the cell's last record: cell * 8 + n, with n = 1..7 records published.
 *         A cell counts only if its number is right and n > 0, so zeroed memory is empty; a cell is overwritten before
 *         its number can come round (at most 1,024 of 8,192 cells), so nobody ever clears one. The cell stays open: a
 *         record of the same key is appended and n goes up, unless the peer is known to have read everything: then a
 *         fresh cell is used. So a single message is never delayed, and a burst shares cells.
 *   ack   position up to which the sender of this cell has read its opposite ring of lane `al`.
 *   len   bytes of each record, n * len <= 56.
 *
 * The first cell has number 1 + colour, since otherwise the first headers of many rings would share one cache set. */
#ifndef RNL_RING_CELL_H
#define RNL_RING_CELL_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    RNL_CELL_BYTES = 64,
    RNL_CELL_PAYLOAD = 56,
    RNL_RECORDS_MAX = 7,
    RNL_LANES = 2,
    RNL_CELLS_LANE0 = 32, /* cells of the first rings, which together take less than a page */
    RNL_CELLS_LANE1 = 16,
    RNL_CELLS_LANE1_REMOTE = 64, /* cells of lane 1 to another host: room for the replies between two advertisements */
    RNL_CELLS_BIG = 1024,
    RNL_BULK_BYTES = 1 << 20,
    RNL_BULK_REMOTE_BYTES = 2 << 20,    /* lane 0 to another host: holds what got lost until it is sent again */
    RNL_BULK_REPLIES_BYTES = 160 << 10, /* part of lane 1's bulk area in use while messages are <= RNL_BULK_REPLY_MAX */
    RNL_BULK_REPLY_MAX = 64 << 10,
    RNL_GRANT_MIN = 128, /* units granted from the start */
    RNL_CELLS_AHEAD = 8, /* cells; rnl_rx_ahead needs a ring of 8 times as many to tell */
    RNL_RING_BROKEN = RNL_ERR_PEER_BROKEN
};

enum rnl_cell_kind {
    RNL_CELL_RECORDS = 0, /* n whole messages of len bytes, no reply expected */
    RNL_CELL_REQUEST,     /* one whole message; the payload begins with struct rnl_request_record */
    RNL_CELL_EXTENT,      /* bytes in the bulk area; the payload is struct rnl_extent. On lane 1, `handler` holds the
                         handler of the original message */
    RNL_CELL_PREFIX,      /* more of the open extent is published; the payload is struct rnl_prefix */
    RNL_CELL_REJECTED,    /* lane 1: a rejected message; the payload is struct rnl_rejected_record, then the message's
                            first    bytes */
    RNL_CELL_GROW,        /* the next cell is in the big ring */
    RNL_CELL_KINDS
};

struct rnl_request_record {
    uint32_t reply_max; /* bytes of the largest reply on lane 1 */
    uint32_t zero;
};
/* RNL_EXTENT_FIRST: opens a message. LAST: ends it. CLOSED: the extent is `published` bytes long, rounded up to 64; an
 * extent with LAST has CLOSED, too. ABORT, with LAST and CLOSED: the message ends here, incomplete, and is dropped.
 * ABORT is never FIRST, publishes no bytes and is on lane 0 only: a sender that gives up what was not seen publishes
 * nothing. BULK, with CLOSED: a chunk of a message of the bulk lane, on lane 0 only. It may lie between the extents of
 * a message of lane 0, never between an extent and more of it. */
enum {
    RNL_EXTENT_FIRST = 1,
    RNL_EXTENT_LAST = 2,
    RNL_EXTENT_CLOSED = 4,
    RNL_EXTENT_ABORT = 8,
    RNL_EXTENT_BULK = 16,
    RNL_EXTENT_FLAGS = 31
};
struct rnl_extent {
    uint64_t start;     /* position in the bulk area, a multiple of 64 */
    uint32_t reserved;  /* contiguous bytes at start that the message may use */
    uint32_t published; /* bytes of those that are published */
    uint64_t bound;     /* most bytes of the message; only with FIRST */
    uint32_t reply_max; /* bytes of the largest reply; only with FIRST */
    uint32_t flags;     /* RNL_EXTENT_... */
};
struct rnl_prefix {
    uint32_t published, flags; /* flags: RNL_EXTENT_..., not FIRST */
};
struct rnl_rejected_record {
    uint32_t reason, bytes; /* bytes: how many bytes of the message follow here */
};
static_assert(sizeof(struct rnl_request_record) == 8 && sizeof(struct rnl_extent) == 32 &&
                  sizeof(struct rnl_prefix) == 8 && sizeof(struct rnl_rejected_record) == 8,
              "payloads of cells");
enum { RNL_REQUEST_MAX = RNL_CELL_PAYLOAD - 8 };

typedef uint64_t rnl_header;
struct rnl_cell {
    _Alignas(64) _Atomic uint64_t header;
    unsigned char payload[RNL_CELL_PAYLOAD];
};
static_assert(sizeof(struct rnl_cell) == RNL_CELL_BYTES && offsetof(struct rnl_cell, payload) == 8,
              "a cell is one cache line");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words must be lock-free");

/* Credit words: what a receiver advertises about the opposite ring. */
struct rnl_credit_words {
    _Atomic uint64_t position, granted, bulk_read;
};
/* Control page: everything that one process writes for one peer, apart from big rings and bulk areas. */
struct rnl_control_page {
    struct rnl_cell lane0[RNL_CELLS_LANE0], lane1[RNL_CELLS_LANE1];
    struct rnl_credit_words credit[RNL_LANES]; /* at 3072; the peer reads it when it believes a ring full */
    uint64_t zero0[10];
    /* At 3200: 0, or the number of this arming * RNL_ARMED_STEP + enum rnl_armed. The peer reads it after each publish
     * and advertisement. A peer that has rung for one arming need not ring for it again, unless it is
     * RNL_ARMED_BY_BELL. */
    _Atomic uint32_t armed;
    _Atomic uint32_t senders_fence; /* 1 = the writer has no heavy fence: fence before reading armed */
    _Atomic uint32_t version;       /* 0 = its writer has not opened the segment yet */
    uint32_t zero1;
    /* Lane 0, units, absolute: how much of the credit granted by the writer the peer shall return, if it is unused. */
    _Atomic uint64_t credit_reclaim;
    _Atomic uint64_t credit_returned; /* units, absolute: how much of the peer's grant the writer has returned */
    _Atomic uint64_t credit_wanted;   /* lane 0, units: what the writer needs outstanding to send; 0 = no need */
    _Atomic uint64_t credit_max;      /* lane 0, units: the writer never grants more outstanding; 0 = unknown */
    unsigned char zero2[848];
};
static_assert(offsetof(struct rnl_control_page, lane1) == 2048, "offsets of the lanes in a control page");
static_assert(offsetof(struct rnl_control_page, credit) == 3072 && offsetof(struct rnl_control_page, armed) == 3200,
              "offsets of the credit words");
static_assert(offsetof(struct rnl_control_page, credit_reclaim) == 3216 &&
                  offsetof(struct rnl_control_page, credit_max) == 3240,
              "offsets of reclaimed credit");
static_assert(sizeof(struct rnl_control_page) == 4096, "a control page is one page");
enum { RNL_CONTROL_PAGE_VERSION = 6 };
enum rnl_armed {
    RNL_ARMED_CELLS = 1 /* ring the bell after publishing */,
    RNL_ARMED_ROOM = 2 /* ring the bell after returning room */,
    RNL_ARMED_FD = 4 /* and make the descriptor readable */,
    RNL_ARMED_WAKE = 8 /* and wake the sleeper on the bell */,
    RNL_ARMED_BY_BELL = 16 /* ring for each cell: this ring is looked at only after a ring */,
    RNL_ARMED_STEP = 32
};

#define RNL_HEADER_POS(h)     ((uint16_t)(h))
#define RNL_HEADER_N(h)       ((unsigned)(h)&7u)
#define RNL_HEADER_ACK(h)     ((uint16_t)((h) >> 16))
#define RNL_HEADER_ACKLANE(h) ((unsigned)((h) >> 32) & 3u)
#define RNL_HEADER_LEN(h)     ((unsigned)((h) >> 37) & 63u)
#define RNL_HEADER_KIND(h)    ((unsigned)((h) >> 43) & 31u)
#define RNL_HEADER_HANDLER(h) ((unsigned)((h) >> 48))
/* Makes a key: length, kind and handler, which the records of one cell share. */
RNL_INLINE rnl_header rnl_header_key(unsigned kind, unsigned handler, unsigned len)
{
    return (rnl_header)len << 37 | (rnl_header)kind << 43 | (rnl_header)handler << 48;
}
#define RNL_HEADER_KEY_MASK (~(rnl_header)0 << 37)

#define RNL_HEADER_KEY_NONE 1 /* a key that no cell has */

#define RNL_WRAP(cells)     ((uint64_t)((cells)-1) * RNL_CELL_BYTES)
#define RNL_CELLS(wrap)     ((wrap) / RNL_CELL_BYTES + 1)
#define RNL_CELL_START(pos) (((pos) + 7) & ~(uint64_t)7) /* start of the first cell that `pos` is not inside of */

#endif
