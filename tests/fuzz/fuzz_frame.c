/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_frame.c - the body of a packet that a member of the job sent: every frame lies inside it, with its lines, and is
 * the same when it is written again. */
#include <stdlib.h>
#include <string.h>

#include "net/wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char out[65536];
    struct rnl_frame f;
    if (size > sizeof out)
        return 0;
    struct rnl_frames reader = rnl_frames_of(data, (uint32_t)size);
    for (;;) {
        const unsigned char *head = reader.at;
        int status = rnl_frame_next(&reader, &f);
        if (status <= 0) {
            if (status != 0 && status != RNL_ERR_PEER_BROKEN)
                abort();
            return 0;
        }
        uint32_t bytes = RNL_FRAME_HEADER;
        if (f.at != head + RNL_FRAME_HEADER || f.bytes > size || f.at + f.bytes > data + size ||
            reader.at != f.at + f.bytes)
            abort();
        if (f.kind == RNL_FRAME_CELLS) {
            const unsigned char *at = f.at;
            unsigned char *to = out + RNL_FRAME_HEADER;
            struct rnl_frame_cell line;
            for (unsigned i = 0; i < f.count; i++) {
                at = rnl_frame_cell(at, &line);
                if (line.bytes > RNL_CELL_PAYLOAD || at > data + size)
                    abort();
                to = rnl_frame_put_cell(to, line.head, line.payload);
            }
            bytes = (uint32_t)(to - out);
            rnl_frame_put_head(out, RNL_FRAME_CELLS, f.lane, f.count, f.low);
        } else if (f.kind == RNL_FRAME_BULK) {
            rnl_frame_put_head(out, RNL_FRAME_BULK, f.lane, f.count, f.low);
            memcpy(out + RNL_FRAME_HEADER, f.at, f.bytes);
            bytes += f.bytes;
        } else if (f.kind == RNL_FRAME_CREDIT) {
            uint64_t words[RNL_CREDIT_WORDS] = {0};
            rnl_frame_credit(&f, words);
            bytes = rnl_frame_put_credit(out, sizeof out, f.count, words, f.low);
        } else {
            bytes = rnl_frame_put_bare(out, sizeof out, f.kind);
        }
        if (bytes != RNL_FRAME_HEADER + f.bytes || memcmp(out, head, bytes) != 0)
            abort();
    }
}
