/* SPDX-License-Identifier: BSD-3-Clause
 *
 * name.c - names of endpoints: the printable address of a domain in fewer bytes, and back. */
#include "wire.h"

#include <runnel/meet.h>

#include <stdbool.h>
#include <string.h>

static const unsigned char magic[4] = {'R', 'N', 'L', 'F'};
static const char prefix[] = "rnl", digits[] = "0123456789abcdef";

static int value_of(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool rnl_ofi_name_pack(struct rnl_ofi_name *out, const char *address, unsigned ep)
{
    size_t at = 0;
    memset(out, 0, sizeof *out);
    memcpy(out->magic, magic, sizeof magic);
    out->ep = (uint16_t)ep;
    if (ep > UINT16_MAX || strncmp(address, prefix, sizeof prefix - 1) != 0)
        return false;
    for (const char *part = address + sizeof prefix - 1;; part++) {
        size_t n = strcspn(part, ".");
        if (n == 0 || n > UINT8_MAX || at + 1 + (n + 1) / 2 > sizeof out->packed)
            return false;
        out->packed[at] = (unsigned char)n;
        for (size_t i = 0; i < n; i++) {
            int v = value_of(part[i]);
            if (v < 0)
                return false;
            out->packed[at + 1 + i / 2] |= (unsigned char)(i % 2 ? v : v << 4);
        }
        at += 1 + (n + 1) / 2;
        part += n;
        if (*part == '\0')
            break;
    }
    out->packed_bytes = (uint8_t)at;
    return true;
}

bool rnl_ofi_name_unpack(const struct rnl_ofi_name *name, char *text)
{
    size_t at = 0, end = name->packed_bytes, n = sizeof prefix - 1;
    if (memcmp(name->magic, magic, sizeof magic) != 0 || end == 0 || end > sizeof name->packed)
        return false;
    memcpy(text, prefix, n);
    while (at < end) {
        size_t count = name->packed[at++];
        if (count == 0 || at + (count + 1) / 2 > end || n + count + 2 > RNL_ADDRESS_BYTES)
            return false;
        for (size_t i = 0; i < count; i++) {
            unsigned both = name->packed[at + i / 2];
            text[n++] = digits[i % 2 ? both & 15 : both >> 4];
        }
        at += (count + 1) / 2;
        text[n++] = at < end ? '.' : '\0';
    }
    for (; at < sizeof name->packed; at++)
        if (name->packed[at] != 0)
            return false; /* one address, one name: peers are found by these bytes */
    return true;
}
