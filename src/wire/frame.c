/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame.c - codec of the frames. A line is taken if its header can belong to the place it claims and its items fit a
 * line; its kind, handler and what its payload says are checked where the ring is read, as for any peer. */
#include "wire/frame.h"

static int all_zero(const unsigned char *at, uint32_t bytes)
{
    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

/* The bytes of `count` lines from `at` on, whose first has the number `first`; 0 if they are none. */
static uint32_t lines_bytes(const unsigned char *at, const unsigned char *end, unsigned count, uint32_t first)
{
    const unsigned char *line = at;
    for (uint32_t i = 0; i < count; i++) {
        if (end - line < RNL_FRAME_LINE_HEAD)
            return 0;
        rnl_head head = rnl_get64(line);
        uint32_t bytes = rnl_line_used(head);
        if (RNL_HEAD_N(head) == 0 || bytes > RNL_LINE_PAYLOAD || RNL_HEAD_POS(head) >> 3 != ((first + i) & 0x1fff))
            return 0;
        line += RNL_FRAME_LINE_HEAD;
        if ((uint32_t)(end - line) < bytes)
            return 0;
        line += bytes;
    }
    return (uint32_t)(line - at);
}

int rnl_frame_next(struct rnl_frames *reader, struct rnl_frame *f)
{
    const unsigned char *at = reader->at, *end = reader->end;
    uint32_t left = (uint32_t)(end - at);
    if (left == 0)
        return 0;
    if (at[0] == RNL_FRAME_PAD) {
        reader->at = end;
        return all_zero(at, left) ? 0 : RNL_ERR_PEER_BROKEN;
    }
    if (left < RNL_FRAME_HEAD)
        return RNL_ERR_PEER_BROKEN;
    f->kind = at[0];
    f->lane = at[1];
    f->count = rnl_get16(at + 2);
    f->low = rnl_get32(at + 4);
    f->at = at + RNL_FRAME_HEAD;
    f->bytes = 0;
    left -= RNL_FRAME_HEAD;
    switch (f->kind) {
    case RNL_FRAME_LINES:
        if (f->lane >= RNL_LANES || (f->bytes = lines_bytes(f->at, end, f->count, f->low)) == 0)
            return RNL_ERR_PEER_BROKEN;
        break;
    case RNL_FRAME_BULK:
        f->bytes = f->count;
        if (f->lane >= RNL_LANES || f->count == 0 || f->bytes > left)
            return RNL_ERR_PEER_BROKEN;
        break;
    case RNL_FRAME_WORDS:
        f->bytes = rnl_frame_words_bytes(f->count) - RNL_FRAME_HEAD;
        if (f->lane != 0 || f->count == 0 || (f->count & ~RNL_WORDS_ALL) != 0 || f->bytes > left)
            return RNL_ERR_PEER_BROKEN;
        break;
    case RNL_FRAME_ASK:
    case RNL_FRAME_PING:
        if (!all_zero(at + 1, RNL_FRAME_HEAD - 1))
            return RNL_ERR_PEER_BROKEN;
        break;
    default:
        return RNL_ERR_PEER_BROKEN;
    }
    reader->at = f->at + f->bytes;
    return 1;
}

void rnl_frame_words(const struct rnl_frame *f, uint64_t words[RNL_WORDS])
{
    const unsigned char *at = f->at;
    for (unsigned which = f->count; which != 0; which &= which - 1, at += RNL_FRAME_WORD)
        words[__builtin_ctz(which)] = rnl_get64(at);
}

uint32_t rnl_frame_put_words(unsigned char *at, uint32_t room, unsigned which, const uint64_t words[RNL_WORDS],
                             uint64_t answers)
{
    uint32_t bytes = rnl_frame_words_bytes(which);
    if (room < bytes)
        return 0;
    rnl_frame_put_head(at, RNL_FRAME_WORDS, 0, which, answers);
    for (at += RNL_FRAME_HEAD; which != 0; which &= which - 1, at += RNL_FRAME_WORD)
        rnl_put64(at, words[__builtin_ctz(which)]);
    return bytes;
}

uint32_t rnl_frame_put_bare(unsigned char *at, uint32_t room, enum rnl_frame_kind kind)
{
    if (room < RNL_FRAME_HEAD)
        return 0;
    rnl_frame_put_head(at, kind, 0, 0, 0);
    return RNL_FRAME_HEAD;
}
