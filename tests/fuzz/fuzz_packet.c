/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_packet.c - what a process makes of any datagram before it knows whether its tag is right: header, block, bodies
 * of the control packets. What is taken must survive being written and read again. */
#include <stdlib.h>
#include <string.h>

#include "net/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one(const uint8_t *data, size_t size)
{
    static unsigned char out[RNL_PACKET_MAX];
    struct rnl_packet p, again;
    struct rnl_probe probe;
    struct rnl_path_word word;
    uint32_t reason;
    memset(&p, 0, sizeof p);
    memset(&again, 0, sizeof again);
    (void)rnl_packet_connection(data, size);
    if (rnl_packet_decode(data, size, &p) != RNL_PACKET_GOOD)
        return;
    if (p.body < RNL_PACKET_HEAD || p.body + p.body_bytes + RNL_PACKET_TAG != size)
        abort();
    (void)rnl_probe_decode(data, &p, &probe);
    (void)rnl_close_decode(data, &p, &reason);
    if (rnl_path_decode(data, &p, &word) &&
        (rnl_path_encode(out, p.body, sizeof out - p.body, (uint32_t)size, &word) != p.body_bytes ||
         memcmp(out + p.body, data + p.body, p.body_bytes) != 0))
        abort();
    if (p.type == RNL_PACKET_HELLO)
        return; /* its flags are its own: fuzz_hello.c */
    uint32_t body = rnl_packet_encode(out, sizeof out, &p);
    if (body != p.body)
        abort();
    memcpy(out + body, data + body, size - body);
    if (rnl_packet_finish(out, body + p.body_bytes) != size || memcmp(out, data, size) != 0)
        abort();
    if (rnl_packet_decode(out, size, &again) != RNL_PACKET_GOOD || memcmp(&p, &again, sizeof p) != 0)
        abort();
}

/* An input that claims a version below 8 is taken as one of ours, so that the corpus outlives a new version. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *at = malloc(size ? size : 1);
    if (!at)
        abort();
    memcpy(at, data, size);
    if (size && !(at[0] & 8))
        at[0] = (unsigned char)((at[0] & 0xf0) | RNL_WIRE_VERSION);
    one(at, size);
    free(at);
    return 0;
}
