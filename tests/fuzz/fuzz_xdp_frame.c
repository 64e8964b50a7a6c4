/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_xdp_frame.c - frames that anybody on the wire may send: the input as it is, and with the sums made right, so
 * that what lies behind them is reached. What is read must lie in the frame, and say the same when it is written again.
 * */
#include <stdlib.h>
#include <string.h>

#include "net/socket/xdp/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 2048 };

static uint32_t sum(const uint8_t *at, size_t bytes, uint32_t from)
{
    for (size_t i = 0; i < bytes; i++)
        from += i % 2 ? at[i] : (uint32_t)at[i] << 8;
    while (from >> 16)
        from = (from & 0xffff) + (from >> 16);
    return from;
}

static void mend(uint8_t *at, size_t bytes)
{
    size_t ip = bytes > 16 && at[12] == 0x81 && at[13] == 0 ? 18 : 14;
    if (bytes < ip + 28 || at[ip] != 0x45)
        return;
    at[ip + 10] = at[ip + 11] = 0;
    const uint32_t s = ~sum(at + ip, 20, 0);
    at[ip + 10] = (uint8_t)(s >> 8);
    at[ip + 11] = (uint8_t)s;
    at[ip + 26] = at[ip + 27] = 0;
}

static void check(const uint8_t *frame, uint32_t bytes)
{
    static const uint8_t mac[6];
    struct rnl_xdp_datagram d, again;
    struct rnl_xdp_head h;
    uint8_t out[MOST + 64];
    if (!rnl_xdp_frame_read(frame, bytes, &d))
        return;
    if (d.at > bytes || d.bytes > bytes - d.at || d.from.port == 0 || d.to.port == 0 || d.tag > 4095)
        abort();
    rnl_xdp_head_make(&h, mac, mac, d.tag, &d.to, &d.from);
    const uint32_t length = rnl_xdp_frame_write(&h, out, frame + d.at, d.bytes, d.ecn);
    if (length > sizeof out || !rnl_xdp_frame_read(out, length, &again) || again.bytes != d.bytes ||
        !rnl_socket_addr_equal(&again.from, &d.from) || !rnl_socket_addr_equal(&again.to, &d.to) ||
        memcmp(out + again.at, frame + d.at, d.bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *exact;
    if (size > MOST)
        return 0;
    exact = malloc(size ? size : 1);
    memcpy(exact, data, size);
    check(exact, (uint32_t)size);
    mend(exact, size);
    check(exact, (uint32_t)size);
    free(exact);
    return 0;
}
