/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unit.c - finds the files of units, loads a unit once, and makes units of generic ones: the files are parsed anew for
 * each instance, in a scope where the formals stand for the actuals. */
#include "lang/orca/orca.h"
#include <stdio.h>
#include <string.h>

struct unit *units_first;
static struct unit **units_last = &units_first;
struct scope predeclared;
const char **search_path;
int search_count;

static const char *folder_of(const struct source *src)
{
    const char *slash = src ? strrchr(src->path, '/') : NULL;
    return slash ? copy_text(src->path, (size_t)(slash - src->path + 1)) : "";
}

/* Files may be named after the first ten characters of a unit. */
static struct source *open_unit(const char *folder, const char *name, const char *ending)
{
    struct source *s = read_source(form("%s%s%s", folder, name, ending));
    if (!s && strlen(name) > 10)
        s = read_source(form("%s%.10s%s", folder, name, ending));
    return s;
}

static struct tree *parse_as(struct source *src, const char *name, bool spec)
{
    struct tree *t = parse(src);
    if (!t)
        return NULL;
    if (strcmp(t->name, name) != 0)
        error_at(t->at, "the file is that of unit %s, but holds %s", name, t->name);
    if (t->spec != spec)
        error_at(t->at, "%s holds %s; a %s was expected", src->path, t->spec ? "a specification" : "an implementation",
                 spec ? "SPECIFICATION" : "IMPLEMENTATION");
    return t->spec == spec ? t : NULL;
}

static struct unit *add_unit(const char *name, const char *c)
{
    struct unit *u = alloc(sizeof *u);
    u->name = name;
    u->c = c;
    u->inside.outer = u->body.outer = &u->formals;
    u->formals.outer = &predeclared;
    u->field_scope.outer = &u->body;
    *units_last = u;
    units_last = &u->next;
    return u;
}

/* The declarations of the specification; the implementation follows in check_all. */
static void declare_unit(struct unit *u)
{
    u->kind = u->spec->kind;
    if (u->impl && (u->impl->kind != u->kind || u->impl->generic != u->spec->generic)) {
        error_at(u->impl->at, "the specification of %s is of another kind of unit", u->name);
        u->impl = NULL;
    }
    if (u->kind == U_OBJECT) {
        u->object = new_type(K_OBJECT, u->spec->at);
        u->object->name = u->name;
        u->object->c = form("%s__object", u->c);
        u->object->unit = u;
        if (!u->impl)
            error_at(u->spec->at, "the object %s has no implementation; %s.imp was expected beside its specification",
                     u->name, u->name);
    }
    struct symbol *self = new_symbol(S_UNIT, u->spec->name, u->spec->at); /* an instance does not know its name */
    self->unit = u;
    scope_put(&u->inside, self);
    scope_put(&u->body, self);
    u->loading = true;
    check_declarations(u, u->spec);
    u->loading = false;
    u->loaded = true;
}

static struct unit *load_from(const char *name, const char *folder)
{
    struct source *spec = open_unit(folder, name, ".spf");
    if (!spec)
        return NULL;
    struct unit *u = add_unit(name, name);
    u->spec = parse_as(spec, name, true);
    struct source *impl = open_unit(folder, name, ".imp");
    if (impl)
        u->impl = parse_as(impl, name, false);
    if (!u->spec || (impl && !u->impl))
        give_up();
    if (u->spec->generic)
        u->loaded = true;
    else
        declare_unit(u);
    return u;
}

struct unit *load_unit(const char *name, struct source *from, struct place at)
{
    for (struct unit *u = units_first; u; u = u->next)
        if (!u->instance && strcmp(u->name, name) == 0) {
            if (!u->loading)
                return u;
            error_at(at, "the specification of %s imports itself, perhaps through others", name);
            return NULL;
        }
    struct unit *u = load_from(name, folder_of(from));
    for (int i = 0; !u && i < search_count; i++)
        u = load_from(name, search_path[i]);
    if (!u)
        error_at(
            at,
            "there is no unit %s: no file %s.spf beside this file, in the folders of -I, or among the standard units",
            name, name);
    return u;
}

struct unit *load_main(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    if (!dot || strcmp(dot, ".imp") != 0)
        fatal("%s: the name of an implementation, FILE.imp, was expected", path);
    struct source *impl = read_source(path);
    if (!impl)
        fatal("%s cannot be read", path);
    struct tree *t = parse(impl);
    if (!t)
        give_up();
    size_t n = (size_t)(dot - base);
    if (strncmp(t->name, base, n) != 0 || (strlen(t->name) != n && n != 10))
        error_at(t->at, "the unit %s was expected in this file, after which it is named", copy_text(base, n));
    struct unit *u;
    for (u = units_first; u; u = u->next)
        if (!u->instance && strcmp(u->name, t->name) == 0)
            return u;
    u = load_from(t->name, copy_text(path, slash ? (size_t)(slash + 1 - path) : 0));
    if (!u)
        error_at(t->at, "%.*s has no specification; %.*s.spf was expected", (int)n, base, (int)(dot - path), path);
    return u;
}

/* One actual of an instance. */
static void bind(struct context *c, struct unit *u, struct node *formal, struct node *actual)
{
    struct symbol *s, *from;
    struct context in = {.unit = u, .scope = &u->formals};
    switch (formal->i) {
    case D_CONST: {
        struct type *t = check_type(&in, formal->a, NULL);
        check_expr(c, actual);
        check_fits(actual, t, "the constant");
        s = new_symbol(S_CONST, formal->name, formal->at);
        s->type = t;
        s->value = constant(c, actual, "the actual of a CONST formal");
        if (!s->value)
            s->value = alloc(sizeof *s->value);
        break;
    }
    case D_FUNCTION: {
        from = actual->kind == N_NAME || actual->kind == N_DOT ? resolve(c, actual, "a function") : NULL;
        struct symbol *want = declare_routine(u, &u->formals, formal);
        if (!from || from->kind != S_FUNCTION) {
            error_at(actual->at, "a function was expected for the formal %s", formal->name);
            return;
        }
        bool fit = want->params_count == from->params_count && !want->type == !from->type &&
                   (!want->type || same(want->type, from->type));
        for (int i = 0; fit && i < want->params_count; i++)
            fit = want->params[i]->mode == from->params[i]->mode && same(want->params[i]->type, from->params[i]->type);
        if (!fit)
            error_at(actual->at, "the parameters or the result of %s are not those of the formal %s", from->name,
                     formal->name);
        s = new_symbol(S_FUNCTION, formal->name, formal->at);
        s->same = from;
        break;
    }
    default: {
        from = actual->kind == N_NAME || actual->kind == N_DOT ? resolve(c, actual, "a type") : NULL;
        struct type *t = from && from->kind == S_TYPE   ? from->type
                         : from && from->kind == S_UNIT ? from->unit->object
                                                        : NULL;
        if (!t) {
            error_at(actual->at, "a type was expected for the formal %s", formal->name);
            return;
        }
        if (formal->op == FORMAL_NUMERIC && !is_integer(t) && !is_real(t))
            error_at(actual->at, "%s is not numeric; the formal %s is a NUMERIC TYPE", show(t), formal->name);
        if (formal->op == FORMAL_SCALAR && !is_discrete(t) && !is_real(t))
            error_at(actual->at, "%s is not scalar; the formal %s is a SCALAR TYPE", show(t), formal->name);
        s = new_symbol(S_TYPE, formal->name, formal->at);
        s->type = alloc(sizeof *s->type);
        *s->type = *t;
        s->type->canon = t;
        s->type->formal = formal->op;
        s->type->name = form("%s (here %s)", formal->name, show(t));
    }
    }
    scope_add(&u->formals, s);
}

static struct tree *again(struct tree *t)
{
    struct tree *n = parse(t->src);
    if (!n)
        give_up();
    return n;
}

struct unit *make_instance(struct unit *user, struct node *decl, struct scope *scope)
{
    static int made;
    struct symbol *s = scope_find(scope, decl->a->name);
    struct unit *g = s && s->kind == S_UNIT ? s->unit : load_unit(decl->a->name, decl->at.src, decl->a->at);
    if (!g)
        return NULL;
    if (!g->spec->generic) {
        error_at(decl->a->at, "%s is not generic, so NEW cannot make a unit of it", g->name);
        return NULL;
    }
    if ((int)g->spec->kind != decl->op) {
        error_at(decl->at, "%s is %s", g->name,
                 g->spec->kind == U_OBJECT ? "an object; OBJECT was expected" : "a module; MODULE was expected");
        return NULL;
    }
    if (user->depth >= 20 || ++made > 10000) {
        error_at(decl->at, "generic units make instances of each other more than 20 deep, or more than 10,000");
        give_up();
    }
    struct unit *u = add_unit(decl->name, form("%s__%s", user->c, decl->name));
    u->instance = true;
    u->depth = user->depth + 1;
    u->spec = again(g->spec);
    u->impl = g->impl ? again(g->impl) : NULL;
    struct context c = {.unit = user, .scope = scope};
    struct node *f = u->spec->formals, *a = decl->list, *next;
    for (; f && a; f = f->next, a = next) {
        next = a->next;
        bind(&c, u, f, a);
    }
    if (f || a)
        error_at(decl->at,
                 f ? "an actual is missing for the formal %s of %s"
                   : "there are more actuals than formals; the first formal is %s of %s",
                 f ? f->name : u->spec->formals->name, g->name);
    declare_unit(u);
    return u;
}

void check_all(struct unit *main)
{
    (void)main;
    for (bool more = true; more;) {
        more = false;
        for (struct unit *u = units_first; u; u = u->next) {
            if (u->bodies || !u->loaded || (u->spec->generic && !u->instance))
                continue;
            u->bodies = more = true;
            if (u->impl)
                check_declarations(u, u->impl);
            check_implemented(u);
            check_bodies(u);
        }
    }
    for (struct unit *u = units_first; u; u = u->next)
        check_ends(u);
}
