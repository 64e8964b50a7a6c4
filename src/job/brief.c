/* SPDX-License-Identifier: BSD-3-Clause
 *
 * brief.c - see brief.h. */
#include "job/brief.h"

#include "base/error.h"
#include "job/agent.h"
#include "runnel/runnel.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 1 << 20 };

static int garbled(const char *what)
{
    return rnl_fail(RNL_ERR_JOB, "%s that came from another host is not understood: use one release everywhere", what);
}

static void pack_texts(struct rnl_pack *p, char *const *text)
{
    uint32_t n = 0;
    while (text[n] != NULL)
        n++;
    rnl_pack_32(p, n);
    for (uint32_t i = 0; i < n; i++)
        rnl_pack_text(p, text[i]);
}

static void free_texts(char **text)
{
    for (size_t i = 0; text != NULL && text[i] != NULL; i++)
        free(text[i]);
    free(text);
}

static char **unpack_texts(struct rnl_unpack *u)
{
    uint32_t n = rnl_unpack_32(u);
    if (u->bad || n > TEXTS_MAX || n > u->left / 4) {
        u->bad = 1;
        return NULL;
    }
    char **text = calloc((size_t)n + 1, sizeof *text);
    u->bad = text == NULL;
    for (uint32_t i = 0; i < n && !u->bad; i++)
        text[i] = rnl_unpack_text(u);
    return text;
}

/* ---- JOB ---- */

void rnl_brief_pack(struct rnl_pack *p, const struct rnl_brief *b)
{
    rnl_pack_32(p, b->size);
    rnl_pack_32(p, b->host);
    rnl_pack_32(p, b->hosts);
    rnl_pack_32(p, b->flags);
    rnl_pack_32(p, b->reach);
    rnl_pack_32(p, b->fan);
    rnl_pack_bytes(p, b->key, sizeof b->key);
    for (uint32_t i = 0; i < b->hosts; i++) {
        rnl_pack_text(p, b->at[i].name);
        rnl_pack_32(p, b->at[i].first);
        rnl_pack_32(p, b->at[i].count);
    }
    rnl_pack_text(p, b->folder);
    rnl_pack_text(p, b->ssh);
    rnl_pack_text(p, b->agent);
    pack_texts(p, b->argv);
    pack_texts(p, b->environment);
}

static void unpack_hosts(struct rnl_unpack *u, struct rnl_brief *b)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < b->hosts && !u->bad; i++) {
        struct rnl_host *h = &b->at[i];
        char *name = rnl_unpack_text(u);
        h->first = rnl_unpack_32(u);
        h->count = rnl_unpack_32(u);
        u->bad |= name == NULL || strlen(name) >= sizeof h->name || h->first != next || h->count == 0 ||
                  h->count > b->size - next;
        if (!u->bad)
            memcpy(h->name, name, strlen(name) + 1);
        next += h->count;
        free(name);
    }
    u->bad |= next != b->size;
}

int rnl_brief_unpack(const void *body, size_t bytes, struct rnl_brief *out)
{
    struct rnl_unpack u = {.at = body, .left = bytes};
    memset(out, 0, sizeof *out);
    out->size = rnl_unpack_32(&u);
    out->host = rnl_unpack_32(&u);
    out->hosts = rnl_unpack_32(&u);
    out->flags = rnl_unpack_32(&u);
    out->reach = rnl_unpack_32(&u);
    out->fan = rnl_unpack_32(&u);
    rnl_unpack_bytes(&u, out->key, sizeof out->key);
    if (u.bad || out->size == 0 || out->size > RNL_JOB_RANKS_MAX || out->hosts == 0 || out->hosts > RNL_HOSTS_MAX ||
        out->host >= out->hosts || (out->flags & ~(uint32_t)RNL_BRIEF_FLAGS) != 0 || out->reach > 1 || out->fan == 0 ||
        out->fan > RNL_HOSTS_MAX)
        return garbled("a job");
    out->at = calloc(out->hosts, sizeof *out->at);
    if (out->at == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the names of %u hosts", out->hosts);
    unpack_hosts(&u, out);
    if (!u.bad)
        out->folder = rnl_unpack_text(&u);
    if (!u.bad)
        out->ssh = rnl_unpack_text(&u);
    if (!u.bad)
        out->agent = rnl_unpack_text(&u);
    if (!u.bad)
        out->argv = unpack_texts(&u);
    if (!u.bad)
        out->environment = unpack_texts(&u);
    if (!u.bad && u.left == 0 && out->argv[0] != NULL)
        return 0;
    rnl_brief_free(out);
    return garbled("a job");
}

void rnl_brief_free(struct rnl_brief *b)
{
    free(b->at);
    free(b->folder);
    free(b->ssh);
    free(b->agent);
    free_texts(b->argv);
    free_texts(b->environment);
    explicit_bzero(b, sizeof *b);
}

/* ---- HERE ---- */

void rnl_here_pack(struct rnl_pack *p, const struct rnl_here *h)
{
    rnl_pack_32(p, h->host);
    rnl_pack_32(p, h->probe_port);
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
    out->ways = rnl_unpack_32(u);
    out->probe_port = (uint16_t)port;
    if (u->bad || out->host >= hosts || port == 0 || port > UINT16_MAX || out->ways > RNL_HOST_WAYS_MAX)
        return garbled("the address of a host");
    for (uint32_t i = 0; i < out->ways; i++) {
        rnl_unpack_bytes(u, out->way[i].ip, sizeof out->way[i].ip);
        rnl_unpack_bytes(u, out->way[i].interface, sizeof out->way[i].interface);
        out->way[i].interface[sizeof out->way[i].interface - 1] = '\0';
    }
    out->ranks = rnl_unpack_32(u);
    if (u->bad || out->ranks != at[out->host].count)
        return garbled("the address of a host");
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
    return garbled("the address of a host");
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
    return u->bad ? garbled("what became of the tries of a host") : 0;
}
