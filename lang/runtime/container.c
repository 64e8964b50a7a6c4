/* SPDX-License-Identifier: BSD-3-Clause
 *
 * container.c - sets, bags and graphs. Elements stay sorted: whatever the order of insertion, equal sets are equal
 * bytes for all who iterate over them or take an element, on every cpu. */
#include "rts.h"
#include <stdlib.h>

static char *element(const struct orc_type *t, const struct orc_set *s, int64_t i)
{
    return (char *)s->data + (size_t)i * t->elem->size;
}

/* The first element that is not below e. */
static int64_t find(const struct orc_type *t, const struct orc_set *s, const void *e)
{
    int64_t lo = 0, hi = s->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (orc_compare(t->elem, element(t, s, mid), e) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_at(const struct orc_type *t, const struct orc_set *s, int64_t i, const void *e)
{
    return i < s->n && orc_compare(t->elem, element(t, s, i), e) == 0;
}

bool orc_set_in(const struct orc_type *t, const void *v, const void *e)
{
    return is_at(t, v, find(t, v, e), e);
}

/* Room for one element at i. */
static char *open_at(const struct orc_type *t, struct orc_set *s, int64_t i)
{
    size_t size = t->elem->size;
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 4;
        s->data = orc_realloc(s->data, (size_t)s->room * size);
    }
    char *p = element(t, s, i);
    memmove(p + size, p, (size_t)(s->n - i) * size);
    s->n++;
    return p;
}

void orc_set_insert(const struct orc_type *t, void *v, const void *e)
{
    struct orc_set *s = v;
    int64_t i = find(t, s, e);
    if (t->kind == ORC_SET && is_at(t, s, i, e))
        return;
    /* e may be an element of s, which moves. */
    void *copy = orc_alloc(t->elem->size);
    orc_copy(t->elem, copy, e);
    memcpy(open_at(t, s, i), copy, t->elem->size);
    free(copy);
}

static void take_at(const struct orc_type *t, struct orc_set *s, int64_t i, void *e)
{
    size_t size = t->elem->size;
    char *p = element(t, s, i);
    if (e)
        orc_move(t->elem, e, p);
    else
        orc_free(t->elem, p);
    memmove(p, p + size, (size_t)(s->n - i - 1) * size);
    s->n--;
}

void orc_set_delete(const struct orc_type *t, void *v, const void *e)
{
    struct orc_set *s = v;
    int64_t i = find(t, s, e);
    if (is_at(t, s, i, e))
        take_at(t, s, i, NULL);
}

void orc_set_from(const struct orc_type *t, void *v, void *e, orc_place at)
{
    struct orc_set *s = v;
    if (!s->n)
        orc_fail(at, "FROM of an empty %s", t->kind == ORC_SET ? "set" : "bag");
    take_at(t, s, s->n - 1, e);
}

static void append(const struct orc_type *t, struct orc_set *to, const void *e)
{
    orc_copy(t->elem, open_at(t, to, to->n), e);
}

void orc_set_combine(const struct orc_type *t, int op, void *v, const void *x, const void *y)
{
    struct orc_set *to = v;
    const struct orc_set *a = x, *b = y;
    struct orc_set r = {0};
    int64_t i = 0, j = 0;
    bool bag = t->kind == ORC_BAG;
    while (i < a->n || j < b->n) {
        int c = i == a->n ? 1 : j == b->n ? -1 : orc_compare(t->elem, element(t, a, i), element(t, b, j));
        bool both = c == 0;
        if (both ? op == '+' || op == '*' : c < 0 ? op != '*' : op == '+' || op == '/')
            append(t, &r, c <= 0 ? element(t, a, i) : element(t, b, j));
        if (both && bag && op == '+') /* the union of bags has the elements of both */
            append(t, &r, element(t, b, j));
        i += c <= 0;
        j += c >= 0;
    }
    orc_free(t, to);
    *to = r;
}

/* ---- graphs ---- */

int64_t orc_node_add(const struct orc_type *t, void *v)
{
    struct orc_graph *g = v;
    uint32_t i = g->free;
    if (!i) {
        uint32_t n = g->n ? 2 * g->n : 4;
        g->slots = orc_realloc(g->slots, n * sizeof *g->slots);
        for (uint32_t k = n; k-- > g->n;) { /* the lowest index is given out first, everywhere */
            g->slots[k] = (struct orc_slot){.next = g->free};
            g->free = k + 1;
        }
        g->n = n;
        i = g->free;
    }
    struct orc_slot *s = &g->slots[i - 1];
    g->free = s->next;
    s->age |= 1;
    s->next = 0;
    s->node = orc_alloc(t->elem->size);
    orc_init(t->elem, s->node);
    return (int64_t)(i - 1) << 32 | s->age;
}

static struct orc_slot *slot(const struct orc_graph *g, int64_t name, orc_place at)
{
    uint32_t i = (uint32_t)((uint64_t)name >> 32), age = (uint32_t)name;
    if (!name)
        orc_fail(at, "the node name is NIL");
    if (i >= g->n || g->slots[i].age != age || !g->slots[i].node)
        orc_fail(at, "the node name is that of a node that was deleted, or belongs to another graph");
    return &g->slots[i];
}

void orc_node_delete(const struct orc_type *t, void *v, int64_t name, orc_place at)
{
    struct orc_graph *g = v;
    struct orc_slot *s = slot(g, name, at);
    orc_free(t->elem, s->node);
    free(s->node);
    s->node = NULL;
    s->age += 1; /* even: free; the next node here has a name of its own */
    s->next = g->free;
    g->free = (uint32_t)(s - g->slots) + 1;
}

void *orc_node(const struct orc_type *t, const void *v, int64_t name, orc_place at)
{
    (void)t;
    return slot(v, name, at)->node;
}
