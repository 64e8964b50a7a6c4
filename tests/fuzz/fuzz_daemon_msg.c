/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_daemon_msg.c - what a daemon makes of any bytes that the daemon of another host says. A good message must
 * survive being written and read again. */
#include <stdlib.h>
#include <string.h>

#include "meet/daemon_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rnl_daemon_msg msg, again;
    unsigned char out[RNL_SECURE_STREAM_BYTES], same[RNL_SECURE_STREAM_BYTES];
    if (!rnl_daemon_msg_decode(data, size, &msg))
        return 0;
    const size_t n = rnl_daemon_msg_encode(&msg, out);
    if (n != size || !rnl_daemon_msg_decode(out, n, &again) || rnl_daemon_msg_encode(&again, same) != n ||
        memcmp(out, same, n) != 0 || msg.groups > RNL_DAEMON_MSG_GROUPS)
        abort();
    return 0;
}
