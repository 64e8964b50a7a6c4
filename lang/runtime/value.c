/* SPDX-License-Identifier: BSD-3-Clause
 *
 * value.c - copying, comparing, freeing and initializing values by their descriptors. Flat ones are copied as bytes. */
#include "rts.h"
#include <stdlib.h>

#define SCALAR(n, k, t) const struct orc_type orc_type_##n = {.name = #n, .kind = k, .flat = true, .size = sizeof(t)}
SCALAR(short, ORC_SHORT, int16_t);
SCALAR(int, ORC_INT, int32_t);
SCALAR(long, ORC_LONG, int64_t);
SCALAR(float, ORC_FLOAT, float);
SCALAR(double, ORC_DOUBLE, double);
SCALAR(nodename, ORC_NODENAME, int64_t);
SCALAR(function, ORC_FUNCTION, int32_t);
const struct orc_type orc_type_boolean = {.name = "boolean", .kind = ORC_BYTE, .flat = true, .size = 1, .limit = 2};
const struct orc_type orc_type_char = {.name = "char", .kind = ORC_BYTE, .flat = true, .size = 1, .limit = 256};
const struct orc_type orc_type_string = {
    .name = "string", .kind = ORC_ARRAY, .size = sizeof(struct orc_array), .dims = 1, .elem = &orc_type_char};

void *orc_alloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    if (!p)
        orc_fail(0, "there is no memory left for %zu bytes", n);
    return p;
}

void *orc_realloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    if (!q)
        orc_fail(0, "there is no memory left for %zu bytes", n);
    return q;
}

static char *field(const void *v, const struct orc_field *f)
{
    return (char *)(uintptr_t)v + f->offset;
}

static const struct orc_field *live(const struct orc_type *t, const void *v)
{
    const struct orc_union *u = v;
    for (uint32_t i = 0; u->live && i < t->fields_count; i++)
        if (t->fields[i].tag == u->tag)
            return &t->fields[i];
    return NULL;
}

void orc_init(const struct orc_type *t, void *v)
{
    memset(v, 0, t->size);
    if (t->init)
        t->init(v);
}

static void free_elements(const struct orc_type *t, void *data, int64_t n)
{
    for (int64_t i = 0; !t->flat && i < n; i++)
        orc_free(t, (char *)data + (size_t)i * t->size);
}

void orc_free(const struct orc_type *t, void *v)
{
    if (t->flat) {
        memset(v, 0, t->size);
        return;
    }
    switch (t->kind) {
    case ORC_ARRAY: {
        struct orc_array *a = v;
        free_elements(t->elem, a->data, a->n);
        free(a->data);
        break;
    }
    case ORC_SET:
    case ORC_BAG: {
        struct orc_set *s = v;
        free_elements(t->elem, s->data, s->n);
        free(s->data);
        break;
    }
    case ORC_GRAPH: {
        struct orc_graph *g = v;
        for (uint32_t i = 0; i < g->n; i++)
            if (g->slots[i].node) {
                orc_free(t->elem, g->slots[i].node);
                free(g->slots[i].node);
            }
        free(g->slots);
    }
        __attribute__((fallthrough));
    case ORC_RECORD:
        for (uint32_t i = 0; i < t->fields_count; i++)
            if (!t->fields[i].type->flat)
                orc_free(t->fields[i].type, field(v, &t->fields[i]));
        break;
    case ORC_UNION: {
        const struct orc_field *f = live(t, v);
        if (f)
            orc_free(f->type, field(v, f));
        break;
    }
    case ORC_OBJECT: {
        struct orc_object *o = *(struct orc_object **)v;
        if (o && o->shared && orc_system->handle_dropped)
            orc_system->handle_dropped(o);
        if (o)
            orc_release(o);
        break;
    }
    default:
        break;
    }
    memset(v, 0, t->size);
}

static void *copy_elements(const struct orc_type *t, const void *data, int64_t n)
{
    if (!n)
        return NULL;
    char *p = orc_alloc((size_t)n * t->size);
    if (t->flat) {
        memcpy(p, data, (size_t)n * t->size);
        return p;
    }
    for (size_t i = 0; i < (size_t)n; i++)
        orc_copy(t, p + i * t->size, (const char *)data + i * t->size);
    return p;
}

static void copy_graph(const struct orc_type *t, struct orc_graph *to, const struct orc_graph *from)
{
    if (!from->n)
        return;
    to->slots = orc_alloc(from->n * sizeof *to->slots);
    for (uint32_t i = 0; i < from->n; i++) {
        to->slots[i] = from->slots[i];
        if (!from->slots[i].node)
            continue;
        to->slots[i].node = orc_alloc(t->elem->size);
        orc_copy(t->elem, to->slots[i].node, from->slots[i].node);
    }
}

void orc_copy(const struct orc_type *t, void *to, const void *from)
{
    memcpy(to, from, t->size);
    if (t->flat)
        return;
    switch (t->kind) {
    case ORC_ARRAY:
        ((struct orc_array *)to)->data =
            copy_elements(t->elem, ((const struct orc_array *)from)->data, ((const struct orc_array *)from)->n);
        break;
    case ORC_SET:
    case ORC_BAG: {
        const struct orc_set *s = from;
        ((struct orc_set *)to)->data = copy_elements(t->elem, s->data, s->n);
        ((struct orc_set *)to)->room = s->n;
        break;
    }
    case ORC_GRAPH:
        copy_graph(t, to, from);
        __attribute__((fallthrough));
    case ORC_RECORD:
        for (uint32_t i = 0; i < t->fields_count; i++)
            if (!t->fields[i].type->flat)
                orc_copy(t->fields[i].type, field(to, &t->fields[i]), field(from, &t->fields[i]));
        break;
    case ORC_UNION: {
        const struct orc_field *f = live(t, from);
        if (f)
            orc_copy(f->type, field(to, f), field(from, f));
        break;
    }
    case ORC_OBJECT: { /* of a nested object: a new one with the same state */
        struct orc_object *o = orc_alloc(sizeof *o), *p = *(struct orc_object *const *)from;
        *o = (struct orc_object){.plain = true, .nested = p->nested, .refs = 1, .class = p->class};
        o->fields = orc_alloc(o->class->fields->size);
        orc_copy(o->class->fields, o->fields, p->fields);
        *(struct orc_object **)to = o;
        break;
    }
    default:
        break;
    }
}

static bool same_shape(const struct orc_type *t, const struct orc_array *a, const struct orc_array *b)
{
    return a->n == b->n && memcmp(a->d, b->d, t->dims * sizeof *a->d) == 0;
}

/* Objects keep their identity, so what holds them is assigned part by part where the shapes agree. */
static bool assign_parts(const struct orc_type *t, void *dst, const void *src)
{
    if (t->kind == ORC_ARRAY) {
        struct orc_array *a = dst;
        const struct orc_array *b = src;
        if (!same_shape(t, a, b))
            return false;
        if (t->elem->flat && a->n)
            memmove(a->data, b->data, (size_t)a->n * t->elem->size);
        for (size_t i = 0; !t->elem->flat && i < (size_t)a->n; i++)
            orc_assign(t->elem, (char *)a->data + i * t->elem->size, (const char *)b->data + i * t->elem->size);
        return true;
    }
    if (t->kind == ORC_OBJECT) {
        struct orc_object *o = *(struct orc_object **)dst, *p = *(struct orc_object *const *)src;
        if (!o)
            return false;
        orc_assign_object(o, p, 0);
        return true;
    }
    if (t->kind != ORC_RECORD)
        return false;
    for (uint32_t i = 0; i < t->fields_count; i++)
        orc_assign(t->fields[i].type, field(dst, &t->fields[i]), field(src, &t->fields[i]));
    return true;
}

void orc_assign(const struct orc_type *t, void *dst, const void *src)
{
    if (dst == src)
        return;
    if (t->flat) {
        memmove(dst, src, t->size);
        return;
    }
    if (assign_parts(t, dst, src))
        return;
    /* src may be part of dst, so dst is freed last. */
    void *v = orc_alloc(t->size);
    orc_copy(t, v, src);
    orc_free(t, dst);
    memcpy(dst, v, t->size);
    free(v);
}

void orc_move(const struct orc_type *t, void *dst, void *src)
{
    if (dst == src)
        return;
    orc_free(t, dst);
    memcpy(dst, src, t->size);
    memset(src, 0, t->size);
}

#define ORDER(a, b)          (((a) > (b)) - ((a) < (b)))
#define ORDER_AS(type, a, b) ORDER(*(const type *)(a), *(const type *)(b))

static int compare_reals(double a, double b)
{
    if (a != a || b != b) /* NaN stands before all numbers, so that the order is total */
        return (b != b) - (a != a);
    return ORDER(a, b);
}

static int compare_elements(const struct orc_type *t, const void *a, int64_t n, const void *b, int64_t m)
{
    for (size_t i = 0; i < (size_t)n && i < (size_t)m; i++) {
        int c = orc_compare(t, (const char *)a + i * t->size, (const char *)b + i * t->size);
        if (c)
            return c;
    }
    return ORDER(n, m);
}

int orc_compare(const struct orc_type *t, const void *a, const void *b)
{
    switch (t->kind) {
    case ORC_BYTE:
        return ORDER_AS(uint8_t, a, b);
    case ORC_SHORT:
        return ORDER_AS(int16_t, a, b);
    case ORC_INT:
    case ORC_FUNCTION:
        return ORDER_AS(int32_t, a, b);
    case ORC_WORD:
        return ORDER_AS(uint32_t, a, b);
    case ORC_LONG:
    case ORC_NODENAME:
        return ORDER_AS(int64_t, a, b);
    case ORC_FLOAT:
        return compare_reals((double)*(const float *)a, (double)*(const float *)b);
    case ORC_DOUBLE:
        return compare_reals(*(const double *)a, *(const double *)b);
    case ORC_RECORD:
        for (uint32_t i = 0; i < t->fields_count; i++) {
            int c = orc_compare(t->fields[i].type, field(a, &t->fields[i]), field(b, &t->fields[i]));
            if (c)
                return c;
        }
        return 0;
    case ORC_UNION: {
        const struct orc_union *u = a, *v = b;
        const struct orc_field *f = live(t, a);
        int c = u->live != v->live ? ORDER(u->live, v->live) : ORDER(u->tag, v->tag);
        return c || !f ? c : orc_compare(f->type, field(a, f), field(b, f));
    }
    case ORC_ARRAY: {
        const struct orc_array *x = a, *y = b;
        for (uint32_t i = 0; i < t->dims; i++) {
            int c = x->d[i].n != y->d[i].n ? ORDER(x->d[i].n, y->d[i].n) : x->n ? ORDER(x->d[i].lb, y->d[i].lb) : 0;
            if (c)
                return c;
        }
        return compare_elements(t->elem, x->data, x->n, y->data, y->n);
    }
    case ORC_SET:
    case ORC_BAG: {
        const struct orc_set *x = a, *y = b;
        return compare_elements(t->elem, x->data, x->n, y->data, y->n);
    }
    default: /* graphs and objects have no equality; the compiler sees to that */
        return 0;
    }
}

/* ---- arrays and strings ---- */

void orc_array_bounds(const struct orc_type *t, void *v, const int64_t *lb_ub, orc_place at)
{
    struct orc_array *a = v;
    uint64_t n = 1, most = (UINT64_C(1) << 40) / (t->elem->size ? t->elem->size : 1);
    for (uint32_t i = 0; i < t->dims; i++) {
        int64_t lb = lb_ub[2 * i], ub = lb_ub[2 * i + 1];
        uint64_t m = ub < lb ? 0 : (uint64_t)ub - (uint64_t)lb + 1;
        if (ub >= lb && (m == 0 || m > most || (n && m > most / n)))
            orc_fail(at, "an array with the bounds %lld .. %lld is too large", (long long)lb, (long long)ub);
        n *= m;
    }
    orc_free(t, a);
    for (uint32_t i = 0; i < t->dims; i++) {
        int64_t lb = lb_ub[2 * i], ub = lb_ub[2 * i + 1];
        a->d[i] = (struct orc_bound){lb, ub < lb ? 0 : ub - lb + 1};
    }
    if (!n)
        return;
    a->data = orc_alloc(n * t->elem->size);
    a->n = (int64_t)n;
    for (size_t i = 0; t->elem->init && i < n; i++)
        t->elem->init((char *)a->data + i * t->elem->size);
}

void orc_string(struct orc_array *s, const char *text, int64_t n)
{
    free(s->data);
    s->data = NULL;
    if (n) {
        s->data = orc_alloc((size_t)n);
        memcpy(s->data, text, (size_t)n);
    }
    s->n = n;
    s->d[0] = (struct orc_bound){1, n};
}

void orc_alias(const void *a, size_t na, const void *b, size_t nb, orc_place at)
{
    const char *p = a, *q = b;
    if (p < q + nb && q < p + na)
        orc_fail(at, "illegal alias: two arguments are the same variable, and the routine may change one of them");
}

/* ---- unions ---- */

void orc_union_tag(const struct orc_type *t, void *v, int64_t tag, orc_place at)
{
    struct orc_union *u = v;
    orc_free(t, v);
    u->tag = tag;
    u->live = 1;
    const struct orc_field *f = live(t, v);
    if (!f) {
        u->live = 0;
        orc_fail(at, "%s has no alternative with the tag %lld", t->name, (long long)tag);
    }
    orc_init(f->type, field(v, f));
}

void *orc_union_field(void *v, int64_t tag, uint32_t offset, orc_place at)
{
    const struct orc_union *u = v;
    if (!u->live)
        orc_fail(at, "the union has no value yet");
    if (u->tag != tag)
        orc_fail(at, "the union's tag is %lld, but the alternative of tag %lld was used", (long long)u->tag,
                 (long long)tag);
    return (char *)v + offset;
}

void (*orc_function(int64_t number, orc_place at))(void)
{
    if (number < 1 || number > (int64_t)orc_program->functions_count)
        orc_fail(at, "the function variable has no value");
    return orc_program->functions[number - 1];
}
