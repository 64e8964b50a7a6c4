/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bytes.h - reads and writes the numbers of a datagram, which are little-endian and stand at any address. */
#ifndef RNL_NET_WIRE_BYTES_H
#define RNL_NET_WIRE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

RNL_INLINE uint16_t rnl_get16(const unsigned char *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return le16toh(v);
}
RNL_INLINE uint32_t rnl_get32(const unsigned char *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return le32toh(v);
}
RNL_INLINE uint64_t rnl_get64(const unsigned char *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return le64toh(v);
}
RNL_INLINE void rnl_put16(unsigned char *at, uint16_t v)
{
    v = htole16(v);
    memcpy(at, &v, sizeof v);
}
RNL_INLINE void rnl_put32(unsigned char *at, uint32_t v)
{
    v = htole32(v);
    memcpy(at, &v, sizeof v);
}
RNL_INLINE void rnl_put64(unsigned char *at, uint64_t v)
{
    v = htole64(v);
    memcpy(at, &v, sizeof v);
}

/* Returns the length that a datagram of any version of ours claims in its header (packet.h), or 0 if it is too short to
 * have one. */
RNL_INLINE uint32_t rnl_wire_handshake_room(const void *at, uint32_t bytes)
{
    return bytes < 4 ? 0 : rnl_get16((const unsigned char *)at + 2);
}

#endif
