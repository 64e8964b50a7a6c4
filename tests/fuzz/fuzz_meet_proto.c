/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_meet_proto.c - what an endpoint or a daemon makes of any bytes of an introduction. A good message must survive
 * being written and read again. */
#include <stdlib.h>
#include <string.h>

#include "meet/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum rnl_meet_from from[] = {RNL_MEET_FROM_PEER, RNL_MEET_FROM_RANK, RNL_MEET_FROM_DAEMON};
    struct rnl_meet_msg msg, again;
    unsigned char out[RNL_MEET_BYTES_MAX];
    if (size < 1)
        return 0;
    memset(&msg, 0, sizeof msg);
    if (rnl_meet_decode(from[data[0] % 3], data + 1, size - 1, &msg) != RNL_MEET_GOOD)
        return 0;
    size_t n = rnl_meet_encode(&msg, out);
    memset(&again, 0, sizeof again);
    if (n != size - 1 || memcmp(out, data + 1, n) != 0 || rnl_meet_fds(&msg) > 1 ||
        rnl_meet_decode(from[data[0] % 3], out, n, &again) != RNL_MEET_GOOD || again.kind != msg.kind)
        abort();
    return 0;
}
