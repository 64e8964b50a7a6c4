/* SPDX-License-Identifier: BSD-3-Clause
 *
 * marshal.c - values as bytes, by their descriptors. Flat arrays go as one piece. What comes from a peer is checked:
 * sizes against what is there, tags and enumerations against their types. Numbers have the byte order of the machine,
 * which all ranks of a job share. */
#include "rts.h"
#include <stdlib.h>

void orc_put_bytes(struct orc_buffer *b, const void *p, size_t n)
{
    if (b->room - b->n < n) {
        b->room = 2 * (b->n + n) + 64;
        if (b->p && b->p == b->lent) {
            b->p = orc_alloc(b->room);
            memcpy(b->p, b->lent, b->n);
        } else {
            b->p = orc_realloc(b->p, b->room);
        }
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

void orc_buffer_free(struct orc_buffer *b)
{
    if (b->p != b->lent)
        free(b->p);
}

void orc_put_u32(struct orc_buffer *b, uint32_t v)
{
    orc_put_bytes(b, &v, sizeof v);
}

void orc_put_u64(struct orc_buffer *b, uint64_t v)
{
    orc_put_bytes(b, &v, sizeof v);
}

/* Takes more than the reader holds out of its message, which has so much. */
static void take_more(struct orc_reader *r, unsigned char *p, size_t n)
{
    size_t held = r->held, rest = n - held, left = r->n - held;
    if (held)
        memcpy(p, r->p, held);
    r->held = rest < ORC_WINDOW ? left < ORC_WINDOW ? left : ORC_WINDOW : 0;
    r->bad = r->cut = r->take(r->from, r->held ? r->window : p + held, r->held ? r->held : rest) < 0;
    if (!r->held)
        return;
    memcpy(p + held, r->window, rest);
    r->p = r->window + rest;
    r->held -= rest;
}

bool orc_get_bytes(struct orc_reader *r, void *p, size_t n)
{
    if (!r->bad && r->n >= n && n) {
        if (r->from && r->held < n) {
            take_more(r, p, n);
        } else {
            memcpy(p, r->p, n);
            r->p += n;
            r->held -= r->from ? n : 0;
        }
    }
    if (r->bad || r->n < n) {
        r->bad = true;
        memset(p, 0, n);
        return false;
    }
    r->n -= n;
    return true;
}

uint32_t orc_get_u32(struct orc_reader *r)
{
    uint32_t v;
    orc_get_bytes(r, &v, sizeof v);
    return v;
}

uint64_t orc_get_u64(struct orc_reader *r)
{
    uint64_t v;
    orc_get_bytes(r, &v, sizeof v);
    return v;
}

/* Whether values of the type go as they lie in memory. */
static bool goes_whole(const struct orc_type *t)
{
    return t->flat && (t->kind != ORC_RECORD || !orc_options.without[ORC_SAVES_PIECES]);
}

static void put_elements(struct orc_buffer *b, const struct orc_type *t, const void *data, int64_t n)
{
    if (t->flat && !orc_options.without[ORC_SAVES_PIECES]) {
        orc_counts.pieces++;
        orc_put_bytes(b, data, (size_t)n * t->size);
        return;
    }
    for (size_t i = 0; i < (size_t)n; i++)
        orc_put_value(b, t, (const char *)data + i * t->size);
}

static void put_fields(struct orc_buffer *b, const struct orc_type *t, const void *v)
{
    for (uint32_t i = 0; i < t->fields_count; i++)
        orc_put_value(b, t->fields[i].type, (const char *)v + t->fields[i].offset);
}

void orc_put_value(struct orc_buffer *b, const struct orc_type *t, const void *v)
{
    if (goes_whole(t)) {
        orc_counts.pieces++;
        orc_put_bytes(b, v, t->size);
        return;
    }
    switch (t->kind) {
    case ORC_RECORD:
        put_fields(b, t, v);
        break;
    case ORC_UNION: {
        const struct orc_union *u = v;
        orc_put_u64(b, (uint64_t)u->live);
        orc_put_u64(b, (uint64_t)u->tag);
        for (uint32_t i = 0; u->live && i < t->fields_count; i++)
            if (t->fields[i].tag == u->tag)
                orc_put_value(b, t->fields[i].type, (const char *)v + t->fields[i].offset);
        break;
    }
    case ORC_ARRAY: {
        const struct orc_array *a = v;
        orc_put_bytes(b, a->d, t->dims * sizeof *a->d);
        put_elements(b, t->elem, a->data, a->n);
        break;
    }
    case ORC_SET:
    case ORC_BAG: {
        const struct orc_set *s = v;
        orc_put_u64(b, (uint64_t)s->n);
        put_elements(b, t->elem, s->data, s->n);
        break;
    }
    case ORC_GRAPH: {
        const struct orc_graph *g = v;
        orc_put_u32(b, g->n);
        orc_put_u32(b, g->free);
        for (uint32_t i = 0; i < g->n; i++) {
            orc_put_u32(b, g->slots[i].age);
            orc_put_u32(b, g->slots[i].next);
            if (g->slots[i].node)
                orc_put_value(b, t->elem, g->slots[i].node);
        }
        put_fields(b, t, v);
        break;
    }
    case ORC_OBJECT: {
        const struct orc_object *o = *(struct orc_object *const *)v;
        orc_put_value(b, o->class->fields, o->fields);
        break;
    }
    default:
        break;
    }
}

static bool in_limit(const struct orc_type *t, const void *v)
{
    if (t->kind == ORC_BYTE && t->limit)
        return *(const uint8_t *)v < t->limit;
    if (t->kind == ORC_WORD && t->limit)
        return *(const uint32_t *)v < t->limit;
    if (t->kind == ORC_RECORD)
        for (uint32_t i = 0; i < t->fields_count; i++)
            if (!in_limit(t->fields[i].type, (const char *)v + t->fields[i].offset))
                return false;
    return true;
}

/* Elements of an array or a set that claims n of them; NULL: none, or the reader is bad. */
static void *get_elements(struct orc_reader *r, const struct orc_type *t, uint64_t n)
{
    /* Each element takes a byte at least, but for structs that hold nothing. */
    size_t least = goes_whole(t) ? t->size : 1;
    if (r->bad || n > r->n / least) {
        r->bad = true;
        return NULL;
    }
    if (!n)
        return NULL;
    char *p = orc_alloc(n * t->size);
    if (t->flat && !orc_options.without[ORC_SAVES_PIECES]) {
        orc_counts.pieces++;
        orc_get_bytes(r, p, n * t->size);
        for (size_t i = 0; (t->limit || t->kind == ORC_RECORD) && i < n; i++)
            r->bad |= !in_limit(t, p + i * t->size);
        return p;
    }
    for (size_t i = 0; i < n; i++)
        orc_get_value(r, t, p + i * t->size);
    return p;
}

static void get_fields(struct orc_reader *r, const struct orc_type *t, void *v)
{
    for (uint32_t i = 0; i < t->fields_count; i++)
        orc_get_value(r, t->fields[i].type, (char *)v + t->fields[i].offset);
}

static void get_array(struct orc_reader *r, const struct orc_type *t, struct orc_array *a)
{
    uint64_t n = 1;
    struct orc_bound d[ORC_DIMS_MAX];
    orc_get_bytes(r, d, t->dims * sizeof *d);
    for (uint32_t i = 0; i < t->dims; i++) {
        if (d[i].n < 0 || (d[i].n && n > r->n / (uint64_t)d[i].n)) {
            r->bad = true;
            return;
        }
        n *= (uint64_t)d[i].n;
    }
    void *data = get_elements(r, t->elem, r->bad ? 0 : n);
    if (!data && n)
        return;
    a->data = data;
    a->n = (int64_t)n;
    memcpy(a->d, d, t->dims * sizeof *d);
}

static void get_graph(struct orc_reader *r, const struct orc_type *t, struct orc_graph *g)
{
    uint32_t n = orc_get_u32(r), first = orc_get_u32(r);
    if (n > r->n / 8 || first > n)
        r->bad = true;
    if (r->bad)
        return;
    g->slots = n ? orc_alloc(n * sizeof *g->slots) : NULL;
    g->n = n;
    g->free = first;
    for (uint32_t i = 0; i < n; i++) {
        g->slots[i].age = orc_get_u32(r);
        g->slots[i].next = orc_get_u32(r);
        if (g->slots[i].next > n || ((g->slots[i].age & 1) && g->slots[i].next))
            r->bad = true;
        if (g->slots[i].age & 1) {
            g->slots[i].node = orc_alloc(t->elem->size);
            orc_get_value(r, t->elem, g->slots[i].node);
        }
    }
    uint32_t seen = 0; /* the list of free slots ends, and holds free ones only */
    for (uint32_t i = g->free; i && !r->bad; i = g->slots[i - 1].next)
        r->bad |= g->slots[i - 1].node || ++seen > n;
    if (r->bad)
        g->free = 0;
}

void orc_get_value(struct orc_reader *r, const struct orc_type *t, void *v)
{
    if (goes_whole(t)) {
        orc_counts.pieces++;
        orc_get_bytes(r, v, t->size);
        if (!in_limit(t, v)) {
            r->bad = true;
            memset(v, 0, t->size);
        }
        return;
    }
    switch (t->kind) {
    case ORC_RECORD:
        get_fields(r, t, v);
        break;
    case ORC_UNION: {
        struct orc_union *u = v;
        bool found = false;
        int64_t alive = (int64_t)orc_get_u64(r), tag = (int64_t)orc_get_u64(r);
        for (uint32_t i = 0; alive == 1 && i < t->fields_count; i++)
            if (t->fields[i].tag == tag) {
                *u = (struct orc_union){tag, 1};
                orc_get_value(r, t->fields[i].type, (char *)v + t->fields[i].offset);
                found = true;
            }
        r->bad |= alive != found;
        break;
    }
    case ORC_ARRAY:
        get_array(r, t, v);
        break;
    case ORC_SET:
    case ORC_BAG: {
        struct orc_set *s = v;
        uint64_t n = orc_get_u64(r);
        s->data = get_elements(r, t->elem, n);
        s->n = s->room = s->data ? (int64_t)n : 0;
        for (int64_t i = 1; i < s->n; i++) /* sorted, as everybody's are */
            r->bad |= orc_compare(t->elem, (char *)s->data + (size_t)(i - 1) * t->elem->size,
                                  (char *)s->data + (size_t)i * t->elem->size) > 0;
        break;
    }
    case ORC_GRAPH:
        get_graph(r, t, v);
        get_fields(r, t, v);
        break;
    case ORC_OBJECT: {
        struct orc_object *o = orc_alloc(sizeof *o);
        *o = (struct orc_object){.plain = true, .refs = 1, .nested = true, .class = t->class};
        o->fields = orc_alloc(t->class->fields->size);
        orc_get_value(r, t->class->fields, o->fields);
        *(struct orc_object **)v = o;
        break;
    }
    default:
        break;
    }
}
