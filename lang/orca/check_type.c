/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check_type.c - types and subtypes as they are written in a declaration. */
#include "lang/orca/orca.h"
#include <string.h>

const char *type_c_name(struct context *c, const char *name)
{
    static int count;
    if (!name)
        return form("%s__t%d", c->unit->c, ++count);
    return c->routine ? form("%s__%s%d", c->unit->c, name, ++count) : form("%s__%s", c->unit->c, name);
}

static struct field *check_fields(struct context *c, struct node *list, const char *what)
{
    struct field *first = NULL, **last = &first;
    for (struct node *n = list; n; n = n->next) {
        struct field *old = find_field(first, n->name);
        if (old)
            error_at(n->at, "the %s %s is declared twice", what, n->name);
        struct field *f = alloc(sizeof *f);
        f->name = n->name;
        f->at = n->at;
        f->sub = check_subtype(c, n->a);
        for (int i = 0; i < f->sub->type->dims * f->sub->groups && f->sub->bounds; i++) {
            constant(c, f->sub->bounds[i].lb, "a bound of a field");
            constant(c, f->sub->bounds[i].ub, "a bound of a field");
        }
        *last = f;
        last = &f->next;
    }
    return first;
}

static void check_array(struct context *c, struct node *n, struct type *t)
{
    int with = 0;
    for (struct node *d = n->list; d; d = d->next) {
        t->dims++;
        with += d->a != NULL;
    }
    if (t->dims > 4) {
        error_at(n->at, "the array has %d dimensions; at most 4 are allowed (use an array of arrays)", t->dims);
        t->dims = 4;
    }
    if (with && with != t->dims)
        error_at(n->at, "either all dimensions have bounds, or none");
    t->index = alloc((size_t)t->dims * sizeof(struct type *));
    t->bounds = with == t->dims ? alloc((size_t)t->dims * sizeof *t->bounds) : NULL;
    int i = 0;
    for (struct node *d = n->list; d && i < t->dims; d = d->next, i++) {
        struct symbol *s = resolve(c, d->c, "an index type");
        t->index[i] = s && s->kind == S_TYPE ? s->type : &type_error;
        if (s && (s->kind != S_TYPE || !is_discrete(s->type)))
            error_at(d->at, "an index type was expected: an integer type, char, boolean or an enumeration");
        if (!t->bounds)
            continue;
        check_expr(c, d->a);
        check_expr(c, d->b);
        check_fits(d->a, t->index[i], "the lower bound");
        check_fits(d->b, t->index[i], "the upper bound");
        constant(c, d->a, "a bound of a type");
        constant(c, d->b, "a bound of a type");
        t->bounds[i] = (struct bounds){d->a, d->b};
    }
    t->elem = check_type(c, n->a, NULL);
}

static void check_union(struct context *c, struct node *n, struct type *t)
{
    struct symbol *s = resolve(c, n->a, "the type of the tag");
    t->tag_type = s && s->kind == S_TYPE && is_discrete(s->type) ? s->type : &type_error;
    t->tag_name = n->name;
    if (s && t->tag_type->kind == K_ERROR)
        error_at(n->at, "the tag has an integer type, char, boolean or an enumeration");
    if (n->b) {
        check_expr(c, n->b);
        check_fits(n->b, t->tag_type, "the default tag");
        if (constant(c, n->b, "the default tag"))
            t->tag = n->b;
    }
    t->fields = check_fields(c, n->list, "alternative");
    struct field *f = t->fields;
    for (struct node *a = n->list; a; a = a->next, f = f->next) {
        check_expr(c, a->b);
        check_fits(a->b, t->tag_type, "the tag");
        struct value *v = constant(c, a->b, "the tag of an alternative");
        f->tag = v ? v->i : -1;
        for (struct field *g = t->fields; g != f && v; g = g->next)
            if (g->tag == f->tag)
                error_at(a->b->at, "the alternatives %s and %s have the same tag", g->name, f->name);
    }
    if (find_field(t->fields, t->tag_name))
        error_at(n->at, "the alternative %s has the name of the tag", t->tag_name);
    bool known = !t->tag;
    for (f = t->fields; f && t->tag; f = f->next)
        known |= f->tag == t->tag->value->i;
    if (!known)
        error_at(n->b->at, "no alternative has the default tag");
}

static void check_enum(struct context *c, struct node *n, struct type *t)
{
    for (struct node *e = n->list; e; e = e->next)
        t->count++;
    t->literals = alloc((size_t)t->count * sizeof(struct symbol *));
    int64_t i = 0;
    for (struct node *e = n->list; e; e = e->next, i++) {
        struct symbol *s = new_symbol(S_CONST, e->name, e->at);
        s->type = t;
        s->value = alloc(sizeof *s->value);
        s->value->i = i;
        t->literals[i] = s;
        scope_add(c->scope, s);
        if (!c->routine && c->scope == &c->unit->inside)
            scope_add(&c->unit->declared, s);
    }
}

static struct type *check_nodename(struct context *c, struct node *n)
{
    struct type *t = new_type(K_NODENAME, n->at);
    struct symbol *s = scope_find(c->scope, n->a->name);
    if (!s) { /* the graph follows */
        s = new_symbol(S_TYPE, n->a->name, n->a->at);
        s->type = new_type(K_GRAPH, n->a->at);
        s->type->name = n->a->name;
        s->type->c = type_c_name(c, n->a->name);
        s->busy = true; /* until it is declared */
        scope_add(c->scope, s);
        if (!c->routine && c->scope == &c->unit->inside)
            scope_add(&c->unit->declared, s);
    }
    if (s->kind != S_TYPE || s->type->kind != K_GRAPH)
        error_at(n->a->at, "%s is no graph; NODENAME OF names a graph type", n->a->name);
    else
        t->elem = s->type;
    return t;
}

static struct type *check_function_type(struct context *c, struct node *n)
{
    struct type *t = new_type(K_FUNCTION, n->at);
    t->params = n->list;
    for (struct node *p = n->list; p; p = p->next)
        p->type = check_type(c, p->a, NULL);
    if (n->a)
        t->elem = check_type(c, n->a, NULL);
    return t;
}

struct type *check_type(struct context *c, struct node *n, const char *name)
{
    struct type *t;
    if (n->kind == T_NAME) {
        struct symbol *s = resolve(c, n->a, "a type");
        if (!s)
            return &type_error;
        t = s->kind == S_TYPE ? s->type : s->kind == S_UNIT ? s->unit->object : NULL;
        if (!t)
            error_at(n->at, "%s is no type%s", s->name,
                     s->kind == S_UNIT && s->unit->spec->generic && !s->unit->instance
                         ? "; it is generic, make an instance with NEW"
                         : "");
        else if (s->kind == S_TYPE && s->busy && t->kind != K_GRAPH)
            error_at(n->at, "%s is not declared yet", s->name);
        else if (t->kind == K_GRAPH && s->busy)
            error_at(n->at, "the graph %s is used before its declaration, which only NODENAME OF may do", s->name);
        return t ? t : &type_error;
    }
    switch (n->kind) {
    case T_ENUM:
        t = new_type(K_ENUM, n->at);
        t->name = name;
        check_enum(c, n, t);
        break;
    case T_RECORD:
        t = new_type(K_RECORD, n->at);
        t->fields = check_fields(c, n->list, "field");
        break;
    case T_UNION:
        t = new_type(K_UNION, n->at);
        check_union(c, n, t);
        break;
    case T_ARRAY:
        t = new_type(K_ARRAY, n->at);
        check_array(c, n, t);
        break;
    case T_SET:
    case T_BAG:
        t = new_type(n->kind == T_SET ? K_SET : K_BAG, n->at);
        t->elem = check_type(c, n->a, NULL);
        if (!has_equality(t->elem))
            error_at(n->a->at, "elements of sets and bags need equality, which %s does not have", show(t->elem));
        break;
    case T_GRAPH: {
        struct symbol *s = name ? scope_find_here(c->scope, name) : NULL;
        if (s && s->busy) {
            t = s->type;
            t->at = n->at;
        } else {
            t = new_type(K_GRAPH, n->at);
        }
        t->fields = check_fields(c, n->list, "field");
        t->nodes = check_fields(c, n->b, "node field");
        if (has_object(t))
            error_at(n->at, "a graph holds no objects");
        break;
    }
    case T_NODENAME:
        t = check_nodename(c, n);
        break;
    case T_FUNCTION:
        t = check_function_type(c, n);
        break;
    default:
        return &type_error;
    }
    if (!t->name)
        t->name = name;
    if (!t->c)
        t->c = type_c_name(c, name);
    return t;
}

/* Whether bounds are known where a variable comes into being: no local variables in them. */
static void check_early(struct node *e)
{
    for (; e; e = e->next) {
        struct symbol *s = e->kind == N_NAME ? e->sym : NULL;
        if (s && s->kind == S_VAR && (s->var == VAR_LOCAL || s->var == VAR_FIELD || s->mode == MODE_OUT))
            error_at(e->at,
                     "bounds and tags are made of constants, IN and SHARED parameters and NCPUS(); %s is none of them",
                     s->name);
        check_early(e->a);
        check_early(e->b);
        check_early(e->list);
    }
}

struct subtype *check_subtype(struct context *c, struct node *n)
{
    if (n->sub)
        return n->sub;
    struct subtype *s = n->sub = alloc(sizeof *s);
    s->type = check_type(c, n, NULL);
    if (n->kind != T_NAME)
        return s;
    int count = 0;
    for (struct node *g = n->list; g; g = g->next)
        for (struct node *r = g->list; r; r = r->next)
            count++;
    s->bounds = count ? alloc((size_t)count * sizeof *s->bounds) : NULL;
    const struct type *t = s->type;
    int i = 0;
    for (struct node *g = n->list; g; g = g->next, s->groups++) {
        if (t->kind != K_ARRAY) {
            if (t->kind != K_ERROR)
                error_at(g->at, "bounds belong to an array, but %s is none", show(t));
            return s;
        }
        int k = 0;
        for (struct node *r = g->list; r; r = r->next, i++, k++) {
            check_expr(c, r->a);
            check_expr(c, r->b);
            if (k < t->dims && t->index) {
                check_fits(r->a, t->index[k], "the lower bound");
                check_fits(r->b, t->index[k], "the upper bound");
            } else if (k < t->dims) {
                check_fits(r->a, &type_int, "the lower bound");
                check_fits(r->b, &type_int, "the upper bound");
            }
            check_early(r->a);
            check_early(r->b);
            s->bounds[i] = (struct bounds){r->a, r->b};
        }
        if (k != t->dims) {
            error_at(g->at, "bounds for %d dimensions were expected, here are %d", t->dims, k);
            return s;
        }
        t = t->elem;
    }
    if (n->c) {
        check_expr(c, n->c);
        if (s->type->kind != K_UNION) {
            error_at(n->c->at, "an initial tag belongs to a union, but %s is none", show(s->type));
        } else {
            check_fits(n->c, s->type->tag_type, "the initial tag");
            check_early(n->c);
            s->tag = n->c;
        }
    }
    return s;
}
