/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_proto.c - what an agent or a rank makes of any bytes from the other. A good message must survive being written
 * and read again. */
#include <stdlib.h>
#include <string.h>

#include "job/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rnl_msg msg, again;
    unsigned char out[RNL_MSG_BYTES_MAX];
    if (size < 2)
        return 0;
    enum rnl_msg_from from = data[0] & 1 ? RNL_FROM_AGENT : RNL_FROM_RANK;
    uint32_t ranks = 1u + data[1];
    memset(&msg, 0, sizeof msg);
    if (rnl_msg_decode(from, data + 2, size - 2, ranks, &msg) != RNL_MSG_GOOD)
        return 0;
    (void)rnl_msg_fds(&msg);
    size_t n = rnl_msg_encode(&msg, out);
    memset(&again, 0, sizeof again);
    if (n != size - 2 || rnl_msg_decode(from, out, n, ranks, &again) != RNL_MSG_GOOD || again.kind != msg.kind)
        abort();
    return 0;
}
