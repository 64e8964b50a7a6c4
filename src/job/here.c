/* SPDX-License-Identifier: BSD-3-Clause
 *
 * here.c - see here.h. */
#include "job/here.h"

#include "base/error.h"
#include "job/agent.h"
#include "job/trunk.h"
#include "runnel/runnel.h"
#include "wire/packet.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rnl_here_is_ipv4(const uint8_t ip[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(ip, mapped, sizeof mapped) == 0;
}

int rnl_here_is_loopback(const uint8_t ip[16])
{
    return rnl_here_is_ipv4(ip) ? ip[12] == 127 : memcmp(ip, &in6addr_loopback, 16) == 0;
}

const char *rnl_here_release(char out[RNL_RELEASE_BYTES])
{
    snprintf(out, RNL_RELEASE_BYTES, "%d.%d %s", RNL_TRUNK_VERSION, RNL_WIRE_VERSION, RNL_VERSION);
    return out;
}

int rnl_here_garbled(const char *what)
{
    return rnl_fail(RNL_ERR_JOB, "%s that came from another host is not understood: use one release everywhere", what);
}

/* ---- HERE ---- */

/* The kernel draws this when it starts, and shows it in all namespaces: "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh". */
uint64_t rnl_here_kernel(void)
{
    char text[64] = "";
    uint64_t id = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f == NULL)
        return 0;
    if (fgets(text, sizeof text, f) == NULL)
        text[0] = '\0';
    fclose(f);
    for (const char *c = text; *c; c++) /* all digits count, since some of an identifier are not random */
        if (strchr("0123456789abcdef", *c) != NULL)
            id = (id ^ (unsigned char)*c) * 0x100000001b3u; /* FNV-1a */
    return id;
}

int rnl_here_together(const struct rnl_here *a, const struct rnl_here *b)
{
    return a->kernel != 0 && a->kernel == b->kernel;
}

void rnl_here_pack(struct rnl_pack *p, const struct rnl_here *h)
{
    rnl_pack_32(p, h->host);
    rnl_pack_32(p, h->probe_port);
    rnl_pack_64(p, h->kernel);
    rnl_pack_32(p, h->ways);
    for (uint32_t i = 0; i < h->ways; i++) {
        rnl_pack_bytes(p, h->way[i].ip, sizeof h->way[i].ip);
        rnl_pack_bytes(p, h->way[i].interface, sizeof h->way[i].interface);
    }
    rnl_pack_32(p, h->ranks);
    for (uint32_t i = 0; i < h->ranks; i++)
        rnl_pack_32(p, h->port[i]);
}

int rnl_here_unpack(struct rnl_unpack *u, uint32_t hosts, const struct rnl_host *at, struct rnl_here *out)
{
    memset(out, 0, sizeof *out);
    out->host = rnl_unpack_32(u);
    uint32_t port = rnl_unpack_32(u);
    out->kernel = rnl_unpack_64(u);
    out->ways = rnl_unpack_32(u);
    out->probe_port = (uint16_t)port;
    if (u->bad || out->host >= hosts || port == 0 || port > UINT16_MAX || out->ways > RNL_HOST_WAYS_MAX)
        return rnl_here_garbled("the address of a host");
    for (uint32_t i = 0; i < out->ways; i++) {
        rnl_unpack_bytes(u, out->way[i].ip, sizeof out->way[i].ip);
        rnl_unpack_bytes(u, out->way[i].interface, sizeof out->way[i].interface);
        out->way[i].interface[sizeof out->way[i].interface - 1] = '\0';
    }
    out->ranks = rnl_unpack_32(u);
    if (u->bad || out->ranks != at[out->host].count)
        return rnl_here_garbled("the address of a host");
    out->port = calloc(out->ranks, sizeof *out->port);
    if (out->port == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the ports of %u ranks", out->ranks);
    for (uint32_t i = 0; i < out->ranks; i++) {
        port = rnl_unpack_32(u);
        u->bad |= port == 0 || port > UINT16_MAX;
        out->port[i] = (uint16_t)port;
    }
    if (!u->bad)
        return 0;
    rnl_here_free(out);
    return rnl_here_garbled("the address of a host");
}

void rnl_here_free(struct rnl_here *h)
{
    free(h->port);
    h->port = NULL;
}

/* ---- WORD ---- */

void rnl_word_pack(struct rnl_pack *p, const struct rnl_word *w)
{
    rnl_pack_32(p, w->kind);
    rnl_pack_32(p, w->rank);
    rnl_pack_32(p, w->other);
    rnl_pack_32(p, (uint32_t)w->why);
    rnl_pack_32(p, (uint32_t)w->detail);
    rnl_pack_64(p, w->wave);
    rnl_pack_64(p, w->activity);
}

void rnl_word_unpack(struct rnl_unpack *u, struct rnl_word *out)
{
    out->kind = rnl_unpack_32(u);
    out->rank = rnl_unpack_32(u);
    out->other = rnl_unpack_32(u);
    out->why = (int32_t)rnl_unpack_32(u);
    out->detail = (int32_t)rnl_unpack_32(u);
    out->wave = rnl_unpack_64(u);
    out->activity = rnl_unpack_64(u);
    u->bad |= u->left != 0;
}

/* ---- PROBED ---- */

void rnl_vain_pack(struct rnl_pack *p, const struct rnl_vain *v)
{
    rnl_pack_32(p, v->other);
    rnl_pack_32(p, v->heard);
    rnl_pack_32(p, v->asked);
    rnl_pack_32(p, v->ways);
    for (uint32_t i = 0; i < v->ways; i++) {
        const struct rnl_vain_way *w = &v->way[i];
        rnl_pack_bytes(p, w->ip, sizeof w->ip);
        rnl_pack_32(p, w->port);
        rnl_pack_32(p, w->small | (uint32_t)w->crooked << 1 | (uint32_t)w->from_us << 2);
        rnl_pack_32(p, (uint32_t)w->sys_errno);
    }
}

int rnl_vain_unpack(struct rnl_unpack *u, uint32_t hosts, struct rnl_vain *out)
{
    memset(out, 0, sizeof *out);
    out->other = rnl_unpack_32(u);
    out->heard = rnl_unpack_32(u);
    out->asked = rnl_unpack_32(u);
    out->ways = rnl_unpack_32(u);
    u->bad |= out->other >= hosts || out->heard > 1 || out->asked > 1 || out->ways > RNL_HOST_WAYS_MAX;
    for (uint32_t i = 0; i < out->ways && !u->bad; i++) {
        struct rnl_vain_way *w = &out->way[i];
        rnl_unpack_bytes(u, w->ip, sizeof w->ip);
        uint32_t port = rnl_unpack_32(u), bits = rnl_unpack_32(u);
        w->sys_errno = (int32_t)rnl_unpack_32(u);
        u->bad |= port > UINT16_MAX || bits > 7 || w->sys_errno < 0;
        w->port = (uint16_t)port;
        w->small = bits & 1;
        w->crooked = bits >> 1 & 1;
        w->from_us = bits >> 2 & 1;
    }
    return u->bad ? rnl_here_garbled("what became of the tries of a host") : 0;
}
