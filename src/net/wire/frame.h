/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame.h - the frames in the body of a DATA packet, and their codec. Frames replicate what a process has written into
 * its part of a channel (ring/ring.h): cells, bulk bytes and credit words. They use absolute numbers, so a repeated
 * frame does no harm. This codec checks the bounds of each frame, once; the receiver of the frames finds out what is
 * new, and whether it can be true.
 *
 *     0       1       2       3       4       5       6       7
 *    +-------+-------+---------------+-------------------------------+
 *    | CELLS | lane  | cells (>= 1)  | number of the first, low half |  then each cell: its header (8 bytes), and
 *    +-------+-------+---------------+-------------------------------+  the n * len bytes of its records, not padded
 *    | BULK  | lane  | bytes (>= 1)  | position, low half            |  then the bytes
 *    +-------+-------+---------------+-------------------------------+
 *    | CREDIT| 0     | which: bits   | end of lane 1, low half       |  then 8 bytes for each bit, lowest first
 *    +-------+-------+---------------+-------------------------------+
 *    |REQUEST| 0     | 0             | 0                             |  "I am blocked: send your credit words again"
 *    +-------+-------+---------------+-------------------------------+
 *    | PING  | 0     | 0             | 0                             |  carries nothing, but is acknowledged
 *    +-------+-------+---------------+-------------------------------+
 *    | 0     | 0 ... padding to the end of the body                  |
 *    +-------+-------------------------------------------------------+
 *
 * Numbers are little-endian; frames follow each other without gaps, at any address. */
#ifndef RNL_NET_WIRE_FRAME_H
#define RNL_NET_WIRE_FRAME_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/copy.h"
#include "net/wire/bytes.h"
#include "ring/ring.h"

enum rnl_frame_kind {
    RNL_FRAME_PAD = 0, /* padding, which rnl_frame_next never returns */
    RNL_FRAME_CELLS,
    RNL_FRAME_BULK,
    RNL_FRAME_CREDIT,
    RNL_FRAME_CREDIT_REQUEST,
    RNL_FRAME_PING,
    RNL_FRAME_KINDS
};

/* The credit words of a control page, as bits of a CREDIT frame; back[lane] holds three of them for each lane. The
 * values never fall, except those of the last two. */
enum rnl_frame_word {
    RNL_CREDIT_POSITION = 0, /* + 3 * lane: back[lane].position */
    RNL_CREDIT_GRANTED = 1,
    RNL_CREDIT_BULK_READ = 2,
    RNL_CREDIT_RECLAIM = 3 * RNL_LANES,
    RNL_CREDIT_RETURNED,
    RNL_CREDIT_WANTED,
    RNL_CREDIT_MAX,
    RNL_CREDIT_WORDS
};
#define RNL_CREDIT_ALL ((1u << RNL_CREDIT_WORDS) - 1u)

enum { RNL_FRAME_HEADER = 8, RNL_FRAME_CREDIT_WORD = 8, RNL_FRAME_CELL_HEADER = 8, RNL_FRAME_CELL_MAX = 64 };
static_assert(RNL_CREDIT_WORDS <= 16 && RNL_FRAME_CELL_MAX == RNL_FRAME_CELL_HEADER + RNL_CELL_PAYLOAD, "frames");

struct rnl_frame {
    uint8_t kind, lane;
    uint16_t count;          /* CELLS: cells; BULK: bytes; CREDIT: bits of the words */
    uint32_t low;            /* low half of: CELLS: the first cell; BULK: the position; CREDIT: the end of lane 1 */
    const unsigned char *at; /* the content behind the frame's header */
    uint32_t bytes;          /* of the content */
};
struct rnl_frames { /* the frames that a reader has not read yet */
    const unsigned char *at, *end;
};

RNL_INLINE struct rnl_frames rnl_frames_of(const unsigned char *body, uint32_t bytes)
{
    return (struct rnl_frames){body, body + bytes};
}
/* Reads the next frame: 1 = it is whole, and it and its cells are within bounds; 0 = there is none left.
 * RNL_ERR_PEER_BROKEN if the rest is no frame; the caller, who knows which peer it is, records that error. */
int rnl_frame_next(struct rnl_frames *reader, struct rnl_frame *f);

/* One cell of a frame. rnl_frame_cell reads the cell at `at` and returns where the next one begins; start at f->at and
 * call it f->count times. */
struct rnl_frame_cell {
    rnl_header head;
    const unsigned char *payload;
    uint32_t bytes;
};
/* Payload bytes that a cell with this header has on the wire. */
RNL_INLINE uint32_t rnl_cell_used(rnl_header head)
{
    return RNL_HEADER_N(head) * RNL_HEADER_LEN(head);
}
RNL_INLINE const unsigned char *rnl_frame_cell(const unsigned char *at, struct rnl_frame_cell *line)
{
    line->head = rnl_get64(at);
    line->payload = at + RNL_FRAME_CELL_HEADER;
    line->bytes = rnl_cell_used(line->head);
    return line->payload + line->bytes;
}
/* Stores each word of a CREDIT frame in words[its number], and leaves the other words as they are. */
void rnl_frame_credit(const struct rnl_frame *f, uint64_t words[RNL_CREDIT_WORDS]);

/* Returns the 64-bit value nearest to `expected` whose low half is `low`, which is exact if the two are less than 2^31
 * apart. If the nearest one would be below 0, returns the next one above. */
RNL_INLINE uint64_t rnl_wire_widen(uint64_t expected, uint32_t low)
{
    int64_t apart = (int32_t)(low - (uint32_t)expected);
    if (apart < 0 && (uint64_t)-apart > expected)
        apart += (int64_t)1 << 32;
    return expected + (uint64_t)apart;
}

/* ---- writing ---- */

/* Writes a frame's header at `at`. Leave RNL_FRAME_HEADER bytes for it, since it is written once its content is known.
 */
RNL_INLINE void rnl_frame_put_head(unsigned char *at, enum rnl_frame_kind kind, unsigned lane, unsigned count,
                                   uint64_t number)
{
    at[0] = (unsigned char)kind;
    at[1] = (unsigned char)lane;
    rnl_put16(at + 2, (uint16_t)count);
    rnl_put32(at + 4, (uint32_t)number);
}
/* Writes one cell, which takes RNL_FRAME_CELL_HEADER + rnl_cell_used(head) bytes; `payload` is what lies behind the
 * header in the ring. Returns the end of what it wrote. */
RNL_INLINE unsigned char *rnl_frame_put_cell(unsigned char *at, rnl_header head, const unsigned char *payload)
{
    uint32_t bytes = rnl_cell_used(head);
    rnl_put64(at, head);
    rnl_copy_short(at + RNL_FRAME_CELL_HEADER, payload, bytes);
    return at + RNL_FRAME_CELL_HEADER + bytes;
}
/* Bytes of a CREDIT frame with these words, its header included. */
RNL_INLINE uint32_t rnl_frame_credit_bytes(unsigned which)
{
    return RNL_FRAME_HEADER + RNL_FRAME_CREDIT_WORD * (uint32_t)__builtin_popcount(which & RNL_CREDIT_ALL);
}
/* Writes a whole CREDIT frame with the words `which` (not 0) from words[]; lane 1 is written up to `answers`, which is
 * the number of its last cell times 8 plus the records in that cell. Returns its bytes, or 0 if there is less room. */
uint32_t rnl_frame_put_credit(unsigned char *at, uint32_t room, unsigned which, const uint64_t words[RNL_CREDIT_WORDS],
                              uint64_t answers);
/* Writes a frame without content, REQUEST or PING. Returns its bytes, or 0 if there is less room. */
uint32_t rnl_frame_put_bare(unsigned char *at, uint32_t room, enum rnl_frame_kind kind);

#endif
