/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pack.c - see pack.h. */
#include "job/pack.h"

#include <stdlib.h>
#include <string.h>

int rnl_pack_room(unsigned char **at, size_t *room, size_t need)
{
    size_t n = *room == 0 ? 256 : *room;
    if (need <= *room)
        return 0;
    while (n < need)
        n *= 2;
    unsigned char *grown = realloc(*at, n);
    if (grown == NULL)
        return -1;
    *at = grown;
    *room = n;
    return 0;
}

void rnl_pack_bytes(struct rnl_pack *p, const void *at, size_t n)
{
    if (p->failed || rnl_pack_room(&p->at, &p->room, p->bytes + n) < 0) {
        p->failed = 1;
        return;
    }
    if (n > 0)
        memcpy(p->at + p->bytes, at, n);
    p->bytes += n;
}

void rnl_pack_32(struct rnl_pack *p, uint32_t value)
{
    const unsigned char b[4] = {(unsigned char)value, (unsigned char)(value >> 8), (unsigned char)(value >> 16),
                                (unsigned char)(value >> 24)};
    rnl_pack_bytes(p, b, sizeof b);
}

void rnl_pack_64(struct rnl_pack *p, uint64_t value)
{
    rnl_pack_32(p, (uint32_t)value);
    rnl_pack_32(p, (uint32_t)(value >> 32));
}

void rnl_pack_text(struct rnl_pack *p, const char *text)
{
    size_t n = strlen(text);
    rnl_pack_32(p, (uint32_t)n);
    rnl_pack_bytes(p, text, n);
}

void rnl_pack_free(struct rnl_pack *p)
{
    if (p->at != NULL)
        explicit_bzero(p->at, p->room);
    free(p->at);
    *p = (struct rnl_pack){.at = NULL};
}

void rnl_unpack_bytes(struct rnl_unpack *u, void *at, size_t n)
{
    if (u->bad || n > u->left) {
        u->bad = 1;
        memset(at, 0, n);
        return;
    }
    memcpy(at, u->at, n);
    u->at += n;
    u->left -= n;
}

uint32_t rnl_unpack_32(struct rnl_unpack *u)
{
    unsigned char b[4];
    rnl_unpack_bytes(u, b, sizeof b);
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t rnl_unpack_64(struct rnl_unpack *u)
{
    uint64_t low = rnl_unpack_32(u);
    return low | (uint64_t)rnl_unpack_32(u) << 32;
}

char *rnl_unpack_text(struct rnl_unpack *u)
{
    uint32_t n = rnl_unpack_32(u);
    if (u->bad || n > u->left || memchr(u->at, '\0', n) != NULL) {
        u->bad = 1;
        return NULL;
    }
    char *text = strndup((const char *)u->at, n);
    u->at += n;
    u->left -= n;
    u->bad = text == NULL;
    return text;
}
