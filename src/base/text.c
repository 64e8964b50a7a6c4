/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.c - see text.h. */
#include "base/text.h"

static int is_plain(unsigned char c)
{
    return c == '\t' || c == '\r' || c == '\n' || (c >= ' ' && c < 0x7f);
}

/* How many bytes follow this first one of a character; -1: none begins so. */
static int follow(unsigned char c)
{
    if (c >= 0xc2 && c <= 0xdf)
        return 1;
    if (c >= 0xe0 && c <= 0xef)
        return 2;
    return c >= 0xf0 && c <= 0xf4 ? 3 : -1;
}

/* Longer than need be (ESC in three bytes, say), halves of UTF-16, and what is beyond Unicode: none (RFC 3629). */
static int may_be_second(unsigned char first, unsigned char c)
{
    if (first == 0xe0)
        return c >= 0xa0;
    if (first == 0xf0)
        return c >= 0x90;
    if (first == 0xed)
        return c < 0xa0;
    return first != 0xf4 || c < 0x90;
}

size_t rnl_text(const char *text, size_t n)
{
    const unsigned char *c = (const unsigned char *)text;
    for (size_t i = 0; i < n; i++) {
        if (is_plain(c[i]))
            continue;
        int more = follow(c[i]);
        if (more < 0 || n - i <= (size_t)more)
            return i;
        if (c[i] == 0xc2 && c[i + 1] < 0xa0) /* U+0080 to U+009F: controls, as ESC [ is one */
            return i + 1;
        if (!may_be_second(c[i], c[i + 1]))
            return i;
        for (; more > 0; more--)
            if ((c[++i] & 0xc0) != 0x80)
                return i;
    }
    return n;
}
