/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame.h - the frames in the body of a DATA packet, and their codec. They mirror a side of a segment (ring/ring.h):
 * what its writer wrote into lines, bulk areas and words is said with absolute numbers, so saying it again does no
 * harm. Which of it is new, and whether it can be true, is for the reader of the frames to find out; here only the
 * bounds of each frame are checked, once.
 *
 *     0       1       2       3       4       5       6       7
 *    +-------+-------+---------------+-------------------------------+
 *    | LINES | lane  | lines (>= 1)  | number of the first, low half |  then each line: its header word (8)
 *    +-------+-------+---------------+-------------------------------+  the n * len bytes of its items, not padded
 *    | BULK  | lane  | bytes (>= 1)  | position, low half            |  then the bytes
 *    +-------+-------+---------------+-------------------------------+
 *    | WORDS | 0     | which: bits   | last line of lane 1, low half |  then 8 bytes for each bit, lowest first
 *    +-------+-------+---------------+-------------------------------+
 *    | ASK   | 0     | 0             | 0                             |  "I am blocked: say your words again"
 *    +-------+-------+---------------+-------------------------------+
 *    | PING  | 0     | 0             | 0                             |  nothing, but it is acknowledged
 *    +-------+-------+---------------+-------------------------------+
 *    | 0     | 0 ... padding to the end of the body                  |
 *    +-------+-------------------------------------------------------+
 *
 * Numbers are little-endian; frames follow each other without gaps, at any address. */
#ifndef RNL_WIRE_FRAME_H
#define RNL_WIRE_FRAME_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/copy.h"
#include "ring/ring.h"
#include "wire/bytes.h"

enum rnl_frame_kind {
    RNL_FRAME_PAD = 0, /* never handed out */
    RNL_FRAME_LINES,
    RNL_FRAME_BULK,
    RNL_FRAME_WORDS,
    RNL_FRAME_ASK,
    RNL_FRAME_PING,
    RNL_FRAME_KINDS
};

/* The words of a side, as bits of WORDS. back[lane] is three of them. All but the last two never fall. */
enum rnl_frame_word {
    RNL_WORD_POSITION = 0, /* + 3 * lane: back[lane].position */
    RNL_WORD_GRANTED = 1,
    RNL_WORD_BULK_READ = 2,
    RNL_WORD_ASKED_BACK = 3 * RNL_LANES,
    RNL_WORD_GAVE_BACK,
    RNL_WORD_WANTS,
    RNL_WORD_MOST,
    RNL_WORDS
};
#define RNL_WORDS_ALL ((1u << RNL_WORDS) - 1u)

enum { RNL_FRAME_HEAD = 8, RNL_FRAME_WORD = 8, RNL_FRAME_LINE_HEAD = 8, RNL_FRAME_LINE_MAX = 64 };
static_assert(RNL_WORDS <= 16 && RNL_FRAME_LINE_MAX == RNL_FRAME_LINE_HEAD + RNL_LINE_PAYLOAD, "frames");

struct rnl_frame {
    uint8_t kind, lane;
    uint16_t count;          /* LINES: lines; BULK: bytes; WORDS: which */
    uint32_t low;            /* LINES: number of the first line; BULK: position; WORDS: of the answers; low halves */
    const unsigned char *at; /* what follows the head */
    uint32_t bytes;          /* ... and how much that is */
};
struct rnl_frames { /* where a reader stands */
    const unsigned char *at, *end;
};

RNL_INLINE struct rnl_frames rnl_frames_of(const unsigned char *body, uint32_t bytes)
{
    return (struct rnl_frames){body, body + bytes};
}
/* 1 and the next frame, whole and inside its bounds, its lines as well; 0 at the end; RNL_ERR_PEER_BROKEN (recorded by
 * the caller, who knows which peer) if the rest is no frame. */
int rnl_frame_next(struct rnl_frames *reader, struct rnl_frame *f);

/* One line of a frame: `at` moves from line to line, beginning at f->at, f->count times. */
struct rnl_frame_line {
    rnl_head head;
    const unsigned char *payload;
    uint32_t bytes;
};
/* Payload bytes that a line with this header has on the wire. */
RNL_INLINE uint32_t rnl_line_used(rnl_head head)
{
    return RNL_HEAD_N(head) * RNL_HEAD_LEN(head);
}
RNL_INLINE const unsigned char *rnl_frame_line(const unsigned char *at, struct rnl_frame_line *line)
{
    line->head = rnl_get64(at);
    line->payload = at + RNL_FRAME_LINE_HEAD;
    line->bytes = rnl_line_used(line->head);
    return line->payload + line->bytes;
}
/* The words of a WORDS frame: each into words[its number], the others left alone. */
void rnl_frame_words(const struct rnl_frame *f, uint64_t words[RNL_WORDS]);

/* The 64-bit value next to `expected` whose low half is `low`: exact as long as the two are less than 2^31 apart. Below
 * 0 there is nothing, so a small `expected` takes the one above. */
RNL_INLINE uint64_t rnl_wire_widen(uint64_t expected, uint32_t low)
{
    int64_t apart = (int32_t)(low - (uint32_t)expected);
    if (apart < 0 && (uint64_t)-apart > expected)
        apart += (int64_t)1 << 32;
    return expected + (uint64_t)apart;
}

/* Writing. Heads are written when it is known what follows: leave RNL_FRAME_HEAD bytes. */
RNL_INLINE void rnl_frame_put_head(unsigned char *at, enum rnl_frame_kind kind, unsigned lane, unsigned count,
                                   uint64_t number)
{
    at[0] = (unsigned char)kind;
    at[1] = (unsigned char)lane;
    rnl_put16(at + 2, (uint16_t)count);
    rnl_put32(at + 4, (uint32_t)number);
}
/* Room for RNL_FRAME_LINE_HEAD + rnl_line_used(head) must be there; payload is what lies behind the header in the ring.
 * Returns the end. */
RNL_INLINE unsigned char *rnl_frame_put_line(unsigned char *at, rnl_head head, const unsigned char *payload)
{
    uint32_t bytes = rnl_line_used(head);
    rnl_put64(at, head);
    rnl_copy_short(at + RNL_FRAME_LINE_HEAD, payload, bytes);
    return at + RNL_FRAME_LINE_HEAD + bytes;
}
/* Bytes of a WORDS frame, head included. */
RNL_INLINE uint32_t rnl_frame_words_bytes(unsigned which)
{
    return RNL_FRAME_HEAD + RNL_FRAME_WORD * (uint32_t)__builtin_popcount(which & RNL_WORDS_ALL);
}
/* A whole WORDS frame: those of `which` (not 0), from words[], when lane 1 was written up to `answers` (line * 8 +
 * items of the last). Returns its bytes, or 0 if room is less. */
uint32_t rnl_frame_put_words(unsigned char *at, uint32_t room, unsigned which, const uint64_t words[RNL_WORDS],
                             uint64_t answers);
/* A whole ASK or PING, or 0. */
uint32_t rnl_frame_put_bare(unsigned char *at, uint32_t room, enum rnl_frame_kind kind);

#endif
