/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.c - a checker of UTF-8 (RFC 3629) that refuses control characters. */
#include "base/text.h"
#include <stdbool.h>

static bool is_plain(unsigned char c)
{
    return c == '\t' || c == '\r' || c == '\n' || (c >= ' ' && c < 0x7f);
}

/* Returns how many bytes follow the first byte of a character; -1 = no character begins so. */
static int follow(unsigned char c)
{
    if (c >= 0xc2 && c <= 0xdf)
        return 1;
    if (c >= 0xe0 && c <= 0xef)
        return 2;
    return c >= 0xf0 && c <= 0xf4 ? 3 : -1;
}

/* Returns whether c may follow the first byte. It may not in characters longer than necessary (ESC in three bytes,
 * say), in halves of UTF-16, and beyond Unicode (RFC 3629). */
static bool may_be_second(unsigned char first, unsigned char c)
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
        if (c[i] == 0xc2 && c[i + 1] < 0xa0) /* U+0080 to U+009F are controls, and act as ESC sequences do */
            return i + 1;
        if (!may_be_second(c[i], c[i + 1]))
            return i;
        for (; more > 0; more--)
            if ((c[++i] & 0xc0) != 0x80)
                return i;
    }
    return n;
}
