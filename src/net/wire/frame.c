/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame.c - the codec of frames. A cell is accepted if its header can stand at the position it claims and its records
 * fit into a cell; its kind, handler and payload are checked where the ring is read, as for any peer. */
#include "net/wire/frame.h"
#include "base/bug.h"

static bool all_zero(const unsigned char *at, uint32_t bytes)
{
    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

/* Returns the bytes of `count` cells at `at`, the first of which has the number `first`, or 0 if these are no cells. */
static uint32_t lines_bytes(const unsigned char *at, const unsigned char *end, unsigned count, uint32_t first)
{
    const unsigned char *line = at;
    for (uint32_t i = 0; i < count; i++) {
        if (end - line < RNL_FRAME_CELL_HEADER)
            return 0;
        rnl_header head = rnl_get64(line);
        uint32_t bytes = rnl_cell_used(head);
        if (RNL_HEADER_N(head) == 0 || bytes > RNL_CELL_PAYLOAD ||
            (RNL_HEADER_POS(head) >> 3 != ((first + i) & 0x1fff) && !RNL_BUG(wire_cell_out_of_place)))
            return 0;
        line += RNL_FRAME_CELL_HEADER;
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
    if (left < RNL_FRAME_HEADER)
        return RNL_ERR_PEER_BROKEN;
    f->kind = at[0];
    f->lane = at[1];
    f->count = rnl_get16(at + 2);
    f->low = rnl_get32(at + 4);
    f->at = at + RNL_FRAME_HEADER;
    f->bytes = 0;
    left -= RNL_FRAME_HEADER;
    switch (f->kind) {
    case RNL_FRAME_CELLS:
        if (f->lane >= RNL_LANES || (f->bytes = lines_bytes(f->at, end, f->count, f->low)) == 0)
            return RNL_ERR_PEER_BROKEN;
        break;
    case RNL_FRAME_BULK:
        f->bytes = f->count;
        if (f->lane >= RNL_LANES || f->count == 0 || f->bytes > left)
            return RNL_ERR_PEER_BROKEN;
        break;
    case RNL_FRAME_CREDIT:
        f->bytes = rnl_frame_credit_bytes(f->count) - RNL_FRAME_HEADER;
        if (f->lane != 0 || f->count == 0 || (f->count & ~RNL_CREDIT_ALL) != 0 || f->bytes > left)
            return RNL_ERR_PEER_BROKEN;
        break;
    case RNL_FRAME_CREDIT_REQUEST:
    case RNL_FRAME_PING:
        if (!all_zero(at + 1, RNL_FRAME_HEADER - 1))
            return RNL_ERR_PEER_BROKEN;
        break;
    default:
        return RNL_ERR_PEER_BROKEN;
    }
    reader->at = f->at + f->bytes;
    return 1;
}

void rnl_frame_credit(const struct rnl_frame *f, uint64_t words[RNL_CREDIT_WORDS])
{
    const unsigned char *at = f->at;
    for (unsigned which = f->count; which != 0; which &= which - 1, at += RNL_FRAME_CREDIT_WORD)
        words[__builtin_ctz(which)] = rnl_get64(at);
}

uint32_t rnl_frame_put_credit(unsigned char *at, uint32_t room, unsigned which, const uint64_t words[RNL_CREDIT_WORDS],
                              uint64_t answers)
{
    uint32_t bytes = rnl_frame_credit_bytes(which);
    if (room < bytes)
        return 0;
    rnl_frame_put_head(at, RNL_FRAME_CREDIT, 0, which, answers);
    for (at += RNL_FRAME_HEADER; which != 0; which &= which - 1, at += RNL_FRAME_CREDIT_WORD)
        rnl_put64(at, words[__builtin_ctz(which)]);
    return bytes;
}

uint32_t rnl_frame_put_bare(unsigned char *at, uint32_t room, enum rnl_frame_kind kind)
{
    if (room < RNL_FRAME_HEADER)
        return 0;
    rnl_frame_put_head(at, kind, 0, 0, 0);
    return RNL_FRAME_HEADER;
}
