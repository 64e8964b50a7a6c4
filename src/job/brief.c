/* SPDX-License-Identifier: BSD-3-Clause
 *
 * brief.c - see brief.h. */
#include "job/brief.h"

#include "base/error.h"
#include "runnel/runnel.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 1 << 20 };

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
    rnl_pack_32(p, b->back.ways);
    rnl_pack_32(p, b->back.port);
    rnl_pack_bytes(p, b->back.key, sizeof b->back.key);
    rnl_pack_bytes(p, b->back.ip, b->back.ways * sizeof b->back.ip[0]);
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

static void unpack_back(struct rnl_unpack *u, struct rnl_back_at *back)
{
    back->ways = rnl_unpack_32(u);
    uint32_t port = rnl_unpack_32(u);
    u->bad |= back->ways > RNL_BACK_WAYS_MAX || port > UINT16_MAX;
    back->port = (uint16_t)port;
    rnl_unpack_bytes(u, back->key, sizeof back->key);
    if (!u->bad)
        rnl_unpack_bytes(u, back->ip, back->ways * sizeof back->ip[0]);
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
    unpack_back(&u, &out->back);
    if (u.bad || out->size == 0 || out->size > RNL_JOB_RANKS_MAX || out->hosts == 0 || out->hosts > RNL_HOSTS_MAX ||
        out->host >= out->hosts || (out->flags & ~(uint32_t)RNL_BRIEF_FLAGS) != 0 || out->reach > 1 || out->fan == 0 ||
        out->fan > RNL_HOSTS_MAX)
        return rnl_here_garbled("a job");
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
    return rnl_here_garbled("a job");
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
