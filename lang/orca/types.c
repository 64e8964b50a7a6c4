/* SPDX-License-Identifier: BSD-3-Clause
 *
 * types.c - types, when they are the same, what goes with what; scopes and symbols. */
#include "lang/orca/orca.h"
#include <string.h>

struct type *types_first;
static struct type **types_last = &types_first;

#define BASIC(k, n)                  \
    {                                \
        .kind = k, .name = n, .c = n \
    }
struct type type_error = BASIC(K_ERROR, "?"), type_short = BASIC(K_SHORT, "shortint"),
            type_int = BASIC(K_INT, "integer"), type_long = BASIC(K_LONG, "longint"),
            type_float = BASIC(K_FLOAT, "shortreal"), type_double = BASIC(K_DOUBLE, "real"),
            type_bool = {.kind = K_ENUM, .name = "boolean", .c = "boolean", .count = 2},
            type_char = {.kind = K_ENUM, .name = "char", .c = "char", .count = 256},
            type_string = {.kind = K_ARRAY, .name = "string", .c = "string", .elem = &type_char, .dims = 1},
            type_nil = BASIC(K_NIL, "NIL");

struct type *new_type(enum type_kind kind, struct place at)
{
    struct type *t = alloc(sizeof *t);
    t->kind = kind;
    t->at = at;
    t->canon = t;
    *types_last = t;
    types_last = &t->next;
    return t;
}

static const struct type *canon(const struct type *t)
{
    while (t->canon && t->canon != t)
        t = t->canon;
    return t;
}

static bool same_function(const struct type *a, const struct type *b)
{
    if (!a->elem != !b->elem || (a->elem && !same(a->elem, b->elem)))
        return false;
    const struct node *p = a->params, *q = b->params;
    for (; p && q; p = p->next, q = q->next)
        if (p->op != q->op || !same(p->type, q->type))
            return false;
    return !p && !q;
}

bool same(const struct type *a, const struct type *b)
{
    a = canon(a);
    b = canon(b);
    if (a == b || a->kind == K_ERROR || b->kind == K_ERROR)
        return true;
    return a->kind == K_FUNCTION && b->kind == K_FUNCTION && same_function(a, b);
}

bool is_integer(const struct type *t)
{
    return t->kind == K_SHORT || t->kind == K_INT || t->kind == K_LONG;
}

bool is_real(const struct type *t)
{
    return t->kind == K_FLOAT || t->kind == K_DOUBLE;
}

bool is_discrete(const struct type *t)
{
    return is_integer(t) || t->kind == K_ENUM || t->kind == K_ERROR;
}

bool is_simple(const struct type *t)
{
    return t->kind <= K_FUNCTION;
}

/* What a property of a structured type needs of all its parts. */
static bool all_parts(const struct type *t, bool (*f)(const struct type *))
{
    for (const struct field *l = t->fields; l; l = l->next)
        if (!f(l->sub->type))
            return false;
    for (const struct field *l = t->nodes; l; l = l->next)
        if (!f(l->sub->type))
            return false;
    return true;
}

bool is_flat(const struct type *t)
{
    t = canon(t);
    if (is_simple(t))
        return true;
    return t->kind == K_RECORD && all_parts(t, is_flat);
}

static bool no_object(const struct type *t)
{
    return !has_object(t);
}

bool has_object(const struct type *t)
{
    t = canon(t);
    if (t->kind == K_ARRAY || t->kind == K_SET || t->kind == K_BAG)
        return has_object(t->elem);
    if (t->kind == K_RECORD || t->kind == K_UNION || t->kind == K_GRAPH)
        return !all_parts(t, no_object);
    return t->kind == K_OBJECT;
}

bool has_equality(const struct type *t)
{
    t = canon(t);
    if (t->kind == K_FUNCTION || t->kind == K_GRAPH || t->kind == K_OBJECT)
        return false;
    if (t->kind == K_ARRAY || t->kind == K_SET || t->kind == K_BAG)
        return has_equality(t->elem);
    return (t->kind != K_RECORD && t->kind != K_UNION) || all_parts(t, has_equality);
}

bool fits(const struct type *to, const struct type *from)
{
    if (to->kind == K_ERROR || from->kind == K_ERROR)
        return true;
    if ((is_integer(to) && is_integer(from)) || (is_real(to) && is_real(from)))
        return true;
    if ((from->kind == K_NIL && (to->kind == K_NODENAME || to->kind == K_NIL)) ||
        (to->kind == K_NIL && from->kind == K_NODENAME))
        return true;
    if (to->kind == K_NODENAME && from->kind == K_NODENAME && from->formal == FORMAL_ANY)
        return !to->elem || same(to->elem, from->elem); /* what ADDNODE gives */
    return same(to, from);
}

const char *show(const struct type *t)
{
    if (t->name)
        return t->name;
    switch (t->kind) {
    case K_RECORD:
        return "a RECORD without a name";
    case K_UNION:
        return "a UNION without a name";
    case K_ARRAY:
        return form("ARRAY OF %s", show(t->elem));
    case K_SET:
        return form("SET OF %s", show(t->elem));
    case K_BAG:
        return form("BAG OF %s", show(t->elem));
    case K_GRAPH:
        return "a GRAPH without a name";
    case K_NODENAME:
        return t->elem ? form("NODENAME OF %s", show(t->elem)) : "a NODENAME";
    case K_FUNCTION:
        return "a FUNCTION type";
    default:
        return "an enumeration without a name";
    }
}

const char *show_beside(const struct type *t, const struct type *other)
{
    const char *words = show(t);
    return t != other && t->at.src && strcmp(words, show(other)) == 0
               ? form("%s of %s:%d", words, t->at.src->path, t->at.line)
               : words;
}

struct field *find_field(struct field *f, const char *name)
{
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

/* ---- symbols ---- */

struct symbol *scope_find_here(struct scope *s, const char *name)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->syms[i]->name, name) == 0)
            return s->syms[i];
    return NULL;
}

struct symbol *scope_find(struct scope *s, const char *name)
{
    for (; s; s = s->outer) {
        struct symbol *f = scope_find_here(s, name);
        if (f)
            return f;
    }
    return NULL;
}

static void scope_push(struct scope *s, struct symbol *sym)
{
    if (s->count == s->room) {
        int room = s->room ? 2 * s->room : 16;
        struct symbol **syms = alloc((size_t)room * sizeof *syms);
        if (s->count)
            memcpy(syms, s->syms, (size_t)s->count * sizeof *syms);
        s->syms = syms;
        s->room = room;
    }
    s->syms[s->count++] = sym;
}

void scope_add(struct scope *s, struct symbol *sym)
{
    struct symbol *old = scope_find_here(s, sym->name);
    if (old) {
        error_at(sym->at, "%s is declared twice%s", sym->name,
                 old->at.src ? form("; the first declaration is at %s:%d", old->at.src->path, old->at.line) : "");
        return;
    }
    scope_push(s, sym);
}

void scope_put(struct scope *s, struct symbol *sym)
{
    if (scope_find_here(s, sym->name) != sym)
        scope_add(s, sym);
}

struct symbol *new_symbol(enum symbol_kind kind, const char *name, struct place at)
{
    struct symbol *s = alloc(sizeof *s);
    s->kind = kind;
    s->name = name;
    s->at = at;
    return s;
}
