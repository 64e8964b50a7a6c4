/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check_decl.c - imports, constants, names of types, variables and headings: what a unit declares. */
#include "lang/orca/orca.h"
#include <string.h>

static void add_import(struct unit *u, struct unit *v)
{
    for (int i = 0; i < u->imports_count; i++)
        if (u->imports[i] == v)
            return;
    struct unit **all = alloc(((size_t)u->imports_count + 1) * sizeof *all);
    if (u->imports_count)
        memcpy(all, u->imports, (size_t)u->imports_count * sizeof *all);
    all[u->imports_count++] = v;
    u->imports = all;
}

static void check_import(struct unit *u, struct scope *scope, struct node *d)
{
    struct unit *from = NULL;
    if (d->name) {
        struct symbol *known = scope_find(scope, d->name);
        from = known && known->kind == S_UNIT ? known->unit : load_unit(d->name, d->at.src, d->at);
        if (!from)
            return;
        if (from->spec->generic && !from->instance) {
            error_at(d->at, "%s is generic; make an instance of it with NEW, and import from that", d->name);
            return;
        }
        add_import(u, from);
    }
    for (struct node *n = d->list; n; n = n->next) {
        struct symbol *s = NULL;
        if (from) {
            s = scope_find_here(&from->declared, n->name);
            if (!s && from->object && strcmp(n->name, from->name) == 0) {
                s = new_symbol(S_UNIT, n->name, n->at);
                s->unit = from;
            }
            if (!s) {
                error_at(n->at, "%s declares no %s in its specification", from->name, n->name);
                continue;
            }
        } else {
            struct unit *v = load_unit(n->name, n->at.src, n->at);
            if (!v)
                continue;
            if (!v->spec->generic)
                add_import(u, v);
            s = new_symbol(S_UNIT, n->name, n->at);
            s->unit = v;
        }
        struct symbol *old = scope_find_here(scope, n->name);
        if (old && old->kind == S_UNIT && s->kind == S_UNIT && old->unit == s->unit)
            continue;
        scope_put(scope, s);
    }
}

struct symbol *resolve(struct context *c, struct node *q, const char *what)
{
    if (q->kind == N_NAME) {
        struct symbol *s = scope_find(c->scope, q->name);
        if (!s)
            error_at(q->at, "%s is not declared here; %s was expected", q->name, what);
        return s && s->same ? s->same : s;
    }
    struct symbol *u = q->kind == N_DOT ? resolve(c, q->a, "a unit") : NULL;
    if (!u)
        return NULL;
    struct symbol *s = u->kind == S_UNIT ? scope_find_here(&u->unit->declared, q->name) : NULL;
    if (!s)
        error_at(q->at, "%s declares no %s; %s was expected", u->name, q->name, what);
    return s && s->same ? s->same : s;
}

static void declare(struct unit *u, struct scope *scope, struct symbol *s)
{
    s->unit = u;
    scope_add(scope, s);
    if (scope == &u->inside) {
        scope_add(&u->declared, s);
        scope_put(&u->body, s);
    }
}

static void check_const(struct context *c, struct node *d)
{
    struct symbol *s = new_symbol(S_CONST, d->name, d->at);
    check_expr(c, d->a);
    s->type = d->a->type ? d->a->type : &type_error;
    s->value = constant(c, d->a, "the value of a constant");
    if (!s->value) {
        s->value = alloc(sizeof *s->value);
        s->type = &type_error;
    }
    s->unit = c->unit;
    if (c->routine)
        scope_add(c->scope, s);
    else
        declare(c->unit, c->scope, s);
}

static void check_type_decl(struct context *c, struct node *d)
{
    struct symbol *old = scope_find_here(c->scope, d->name);
    if (!d->a) {
        struct symbol *s = new_symbol(S_TYPE, d->name, d->at);
        s->type = new_type(K_NODENAME, d->at);
        s->type->name = d->name;
        s->type->c = type_c_name(c, d->name);
        if (c->scope != &c->unit->inside)
            error_at(d->at, "= and a type were expected; only a specification may hide a type");
        declare(c->unit, c->scope, s);
        return;
    }
    struct type *t = check_type(c, d->a, d->name);
    if (old && old->kind == S_TYPE && old->busy && t->kind == K_GRAPH && old->type == t) {
        old->busy = false;
        if (!c->routine && c->scope == &c->unit->inside)
            scope_put(&c->unit->body, old);
        return;
    }
    if (old && old->kind == S_TYPE && old->type->kind == K_NODENAME && !old->type->elem && t->kind == K_NODENAME) {
        old->type->elem = t->elem; /* what the specification hides */
        return;
    }
    struct symbol *s = new_symbol(S_TYPE, d->name, d->at);
    s->type = t;
    s->unit = c->unit;
    if (c->routine)
        scope_add(c->scope, s);
    else
        declare(c->unit, c->scope, s);
    for (int64_t i = 0;
         t->kind == K_ENUM && !c->routine && c->scope == &c->unit->inside && d->a->kind == T_ENUM && i < t->count; i++)
        scope_put(&c->unit->body, t->literals[i]);
}

static void check_variable(struct unit *u, struct context *c, struct node *d)
{
    struct symbol *s = new_symbol(S_VAR, d->name, d->at), **last;
    s->sub = check_subtype(c, d->a);
    s->type = s->sub->type;
    s->unit = u;
    if (u->kind == U_DATA && c->scope == &u->inside) {
        s->var = VAR_DATA;
        last = &u->data;
        declare(u, c->scope, s);
        if (has_object(s->type))
            error_at(d->at, "a data module holds no objects: its variables exist on each cpu");
    } else if (u->kind == U_OBJECT && c->scope == &u->body) {
        s->var = VAR_FIELD;
        last = &u->fields;
        scope_add(&u->field_scope, s);
    } else {
        error_at(d->at,
                 u->kind == U_MODULE
                     ? "a module has no variables; a DATA MODULE has"
                     : "variables stand in the specification of a data module, and in the implementation of an object");
        return;
    }
    while (*last)
        last = &(*last)->next;
    *last = s;
}

/* ---- headings ---- */

static void check_param(struct node *d, struct symbol *p, const char *name)
{
    bool object = p->type->kind == K_OBJECT || (p->type->kind == K_ARRAY && p->type->elem->kind == K_OBJECT);
    if (d->kind == D_PROCESS) {
        if (p->mode == MODE_OUT)
            error_at(p->at, "a process has no OUT parameters");
        if (p->mode == MODE_SHARED && !object && p->type->kind != K_ERROR)
            error_at(p->at, "a SHARED parameter of a process is an object or an array of objects, but %s is of type %s",
                     p->name, show(p->type));
    }
    if (d->kind == D_OPERATION && p->mode == MODE_SHARED)
        error_at(p->at, "an operation has no SHARED parameters");
    if (p->mode != MODE_SHARED && has_object(p->type))
        error_at(p->at, "%s holds an object and has to be SHARED%s", p->name,
                 d->kind == D_OPERATION ? ", which parameters of operations cannot be" : "");
    (void)name;
}

struct symbol *declare_routine(struct unit *u, struct scope *scope, struct node *d)
{
    enum symbol_kind kind = d->kind == D_PROCESS ? S_PROCESS : d->kind == D_OPERATION ? S_OPERATION : S_FUNCTION;
    struct symbol *s = new_symbol(kind, d->name, d->at);
    struct scope *params = alloc(sizeof *params);
    params->outer = scope;
    struct context c = {.unit = u, .scope = params, .routine = s};
    s->unit = u;
    s->head = d;
    for (struct node *n = d->list; n; n = n->next)
        s->params_count++;
    s->params = alloc(((size_t)s->params_count + 1) * sizeof(struct symbol *));
    int i = 0;
    for (struct node *n = d->list; n; n = n->next, i++) {
        struct symbol *p = s->params[i] = new_symbol(S_VAR, n->name, n->at);
        p->var = VAR_PARAM;
        p->mode = n->op;
        p->type = &type_error;
        scope_add(params, p);
    }
    i = 0;
    for (struct node *n = d->list; n; n = n->next, i++) {
        struct symbol *p = s->params[i];
        /* Bounds may use parameters that follow, so their types come first. */
        p->type = n->a->kind == T_NAME ? check_type(&c, n->a, NULL) : &type_error;
    }
    i = 0;
    for (struct node *n = d->list; n; n = n->next, i++) {
        struct symbol *p = s->params[i];
        if (n->a->kind == T_NAME && p->type->kind == K_ERROR)
            continue;
        p->sub = check_subtype(&c, n->a);
        p->type = p->sub->type;
        if (p->mode != MODE_OUT && (p->sub->groups || p->sub->tag))
            error_at(n->at, "bounds and tags belong to OUT parameters; the argument brings its own");
        if (d->kind != D_FORMAL)
            check_param(d, p, d->name);
    }
    if (d->a) {
        s->type = check_type(&c, d->a, NULL);
        if (has_object(s->type))
            error_at(d->a->at, "a result holds no object");
    }
    return s;
}

static bool same_heading(const struct symbol *a, const struct symbol *b)
{
    if (a->kind != b->kind || a->params_count != b->params_count || !a->type != !b->type ||
        (a->type && !same(a->type, b->type)))
        return false;
    for (int i = 0; i < a->params_count; i++)
        if (a->params[i]->mode != b->params[i]->mode || !same(a->params[i]->type, b->params[i]->type))
            return false;
    return true;
}

static void push_symbol(struct symbol ***list, int *count, struct symbol *s)
{
    struct symbol **all = alloc(((size_t)*count + 1) * sizeof *all);
    if (*count)
        memcpy(all, *list, (size_t)*count * sizeof *all);
    all[(*count)++] = s;
    *list = all;
}

static void check_routine(struct unit *u, struct scope *scope, struct node *d)
{
    struct symbol *s = declare_routine(u, scope, d), *old = NULL;
    if (d->kind == D_OPERATION) {
        if (u->kind != U_OBJECT) {
            error_at(d->at, "only an object has operations");
            return;
        }
        for (int i = 0; i < u->operations_count; i++)
            if (strcmp(u->operations[i]->name, d->name) == 0)
                old = u->operations[i];
        if (old && scope == &u->inside)
            error_at(d->at, "the operation %s is declared twice", d->name);
    } else {
        old = scope_find_here(scope, d->name);
        if (old && scope == &u->inside) {
            error_at(d->at, "%s is declared twice", d->name);
            return;
        }
    }
    if (d->kind == D_PROCESS && u->kind != U_MODULE)
        error_at(d->at, "only a module has processes");
    if (!old) {
        s->c = form("%s__%s", u->c, d->name);
        s->impl = d->b ? d : NULL;
        if (d->kind == D_OPERATION) {
            push_symbol(&u->operations, &u->operations_count, s);
            return;
        }
        push_symbol(&u->routines, &u->routines_count, s);
        declare(u, scope, s);
        return;
    }
    if (old->kind != s->kind || (old->kind != S_OPERATION && old->unit != u)) {
        error_at(d->at, "%s is declared twice", d->name);
        return;
    }
    if (!d->b)
        return;
    if (!same_heading(old, s))
        error_at(d->at, "the parameters or the result of %s are not those of its declaration at %s:%d", d->name,
                 old->at.src->path, old->at.line);
    if (old->impl)
        error_at(d->at, "%s has two bodies; the first is at %s:%d", d->name, old->impl->at.src->path,
                 old->impl->at.line);
    old->impl = d;
    old->params = s->params;
    old->params_count = s->params_count;
}

void check_declarations(struct unit *u, struct tree *t)
{
    struct scope *scope = t->spec ? &u->inside : &u->body;
    struct context c = {.unit = u, .scope = scope};
    for (struct node *d = t->decls; d; d = d->next) {
        switch (d->kind) {
        case D_IMPORT:
            check_import(u, scope, d);
            break;
        case D_INSTANCE: {
            struct unit *v = make_instance(u, d, scope);
            if (!v)
                break;
            struct symbol *s = new_symbol(S_UNIT, d->name, d->at);
            declare(u, scope, s);
            s->unit = v;
            add_import(u, v);
            break;
        }
        case D_CONST:
            check_const(&c, d);
            break;
        case D_TYPE:
            check_type_decl(&c, d);
            break;
        case D_VAR:
            check_variable(u, &c, d);
            break;
        default:
            check_routine(u, scope, d);
        }
    }
    for (int i = 0; i < scope->count; i++)
        if (scope->syms[i]->kind == S_TYPE && scope->syms[i]->busy) {
            error_at(scope->syms[i]->at, "the graph %s is never declared", scope->syms[i]->name);
            scope->syms[i]->busy = false;
        }
}

void check_implemented(struct unit *u)
{
    for (int i = 0; i < u->routines_count; i++) {
        struct symbol *s = u->routines[i];
        if (!s->impl && !u->impl && s->kind == S_FUNCTION)
            s->external = true;
        else if (!s->impl)
            error_at(s->at, "%s is declared, but the implementation of %s has no body for it", s->name, u->name);
    }
    for (int i = 0; i < u->operations_count; i++)
        if (!u->operations[i]->impl && u->impl)
            error_at(u->operations[i]->at, "the operation %s has no body in the implementation of %s",
                     u->operations[i]->name, u->name);
}

static bool makes(const struct type *t, const struct subtype *sub, int groups, struct unit *u);

static bool field_makes(const struct field *fields, const struct node *tag, struct unit *u)
{
    for (const struct field *f = fields; f; f = f->next)
        if (!(tag && tag->value && tag->value->i != f->tag) && makes(f->sub->type, f->sub, f->sub->groups, u))
            return true;
    return false;
}

/* Whether an object of u comes into existence with a value of the type, of which `groups` of bounds are left. */
static bool makes(const struct type *t, const struct subtype *sub, int groups, struct unit *u)
{
    const struct node *tag = sub && sub->tag ? sub->tag : t->tag;
    bool found = false;
    switch (t->kind) {
    case K_OBJECT:
        if (t->unit == u || t->unit->busy)
            return t->unit == u;
        t->unit->busy = true;
        for (struct symbol *s = t->unit->fields; s && !found; s = s->next)
            found = makes(s->type, s->sub, s->sub->groups, u);
        t->unit->busy = false;
        return found;
    case K_ARRAY:
        return (groups || t->bounds) && makes(t->elem, NULL, groups ? groups - 1 : 0, u);
    case K_RECORD:
    case K_GRAPH:
        return field_makes(t->fields, NULL, u);
    case K_UNION:
        return tag && field_makes(t->fields, tag, u);
    default:
        return false;
    }
}

void check_ends(struct unit *u)
{
    for (struct symbol *s = u->kind == U_OBJECT ? u->fields : NULL; s; s = s->next)
        if (makes(s->type, s->sub, s->sub->groups, u))
            error_at(s->at, "each %s would hold another %s in %s, without end", u->name, u->name, s->name);
}

/* Declarations inside a routine. */
struct symbol *declare_local(struct context *c, const char *name, struct place at, struct type *type, int var)
{
    struct symbol *s = new_symbol(S_VAR, name, at), **last = &c->routine->locals;
    s->var = var;
    s->type = type;
    while (*last)
        last = &(*last)->next;
    *last = s;
    scope_add(c->scope, s);
    return s;
}

void check_local_declarations(struct context *c, struct node *list)
{
    for (struct node *d = list; d; d = d->next) {
        if (d->kind == D_CONST) {
            check_const(c, d);
        } else if (d->kind == D_TYPE) {
            check_type_decl(c, d);
        } else {
            struct subtype *sub = check_subtype(c, d->a);
            declare_local(c, d->name, d->at, sub->type, VAR_LOCAL)->sub = sub;
        }
    }
}
