/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check_stat.c - statements, and the bodies of all routines of a unit. */
#include "lang/orca/orca.h"
#include <string.h>

static void check_condition(struct context *c, struct node *e)
{
    check_expr(c, e);
    check_fits(e, &type_bool, "the condition");
}

static void check_assign(struct context *c, struct node *n)
{
    check_expr(c, n->a);
    check_expr(c, n->b);
    check_assignable(c, n->a, "be assigned to");
    if (!n->op) {
        check_fits(n->b, n->a->type, "the value");
        return;
    }
    /* The operator is checked as if it stood in an expression. */
    struct node *e = new_node(n->op == OP_AND ? N_AND : n->op == OP_OR ? N_OR : N_BINARY, n->at);
    e->op = n->op;
    e->a = n->a;
    e->b = n->b;
    check_expr(c, e);
    check_fits(e, n->a->type, "the value");
}

static void check_case(struct context *c, struct node *n)
{
    check_expr(c, n->a);
    if (!is_discrete(n->a->type))
        error_at(n->a->at, "CASE chooses by an integer, a character, a boolean or an enumeration, not by %s",
                 show(n->a->type));
    for (struct node *alt = n->list; alt; alt = alt->next) {
        for (struct node *l = alt->a; l; l = l->next) {
            check_expr(c, l->a);
            check_fits(l->a, n->a->type, "the label");
            constant(c, l->a, "a label");
            if (l->b) {
                check_expr(c, l->b);
                check_fits(l->b, n->a->type, "the label");
                constant(c, l->b, "a label");
            }
            for (struct node *other = n->list; other != alt->next && l->a->value; other = other->next)
                for (struct node *k = other->a; k && k != l; k = k->next) {
                    int64_t lo = l->a->value->i, hi = l->b && l->b->value ? l->b->value->i : lo;
                    if (!k->a->value)
                        continue;
                    int64_t klo = k->a->value->i, khi = k->b && k->b->value ? k->b->value->i : klo;
                    if (lo <= khi && klo <= hi) {
                        error_at(l->at, "another branch has this label already, in line %d", k->at.line);
                        other = alt;
                        break;
                    }
                }
        }
        check_stats(c, alt->list);
    }
    if (n->b)
        check_stats(c, n->b->list);
}

static void check_for(struct context *c, struct node *n)
{
    check_expr(c, n->a);
    struct type *t = n->a->type;
    if (n->b) {
        check_expr(c, n->b);
        if (!is_discrete(t))
            error_at(n->a->at, "a range goes over integers or an enumeration, not over %s", show(t));
        check_fits(n->b, t, "the upper bound");
        if (is_integer(t) && is_integer(n->b->type) && n->b->type->kind > t->kind)
            t = n->b->type;
    } else if (t->kind == K_SET || t->kind == K_BAG) {
        t = t->elem;
    } else if (t->kind != K_ERROR) {
        error_at(n->a->at, "a range (lower .. upper), a set or a bag was expected after IN, not %s", show(t));
        t = &type_error;
    }
    struct scope inner = {.outer = c->scope}, *saved = c->scope;
    struct symbol *s = new_symbol(S_VAR, n->name, n->at);
    s->var = VAR_LOOP;
    s->type = t;
    s->unit = c->unit;
    c->scope = alloc(sizeof inner);
    *c->scope = inner;
    scope_add(c->scope, s);
    n->sym = s;
    c->loops++;
    check_stats(c, n->list);
    c->loops--;
    c->scope = saved;
}

static void check_return(struct context *c, struct node *n)
{
    struct type *t = c->routine->type;
    if (n->a)
        check_expr(c, n->a);
    if (n->a && !t)
        error_at(n->a->at, "%s has no result to return", c->routine->name);
    else if (!n->a && t)
        error_at(n->at, "%s returns a value of type %s, which was expected after RETURN", c->routine->name, show(t));
    else if (n->a)
        check_fits(n->a, t, "the result");
    c->routine->has_return |= n->a != NULL;
}

static void check_call_statement(struct context *c, struct node *n)
{
    if (n->a->kind == N_OPCALL) {
        check_operation_call(c, n->a, true);
        return;
    }
    struct node *f = n->a->a;
    struct symbol *s = f->kind == N_NAME ? scope_find(c->scope, f->name) : NULL;
    if (s && s->kind == S_BUILTIN) {
        n->a->builtin = s->builtin;
        n->a->type = &type_error;
        check_builtin(c, n->a, true);
    } else if (s && s->kind == S_PROCESS) {
        error_at(n->at, "%s is a process; FORK starts it", s->name);
    } else {
        check_call(c, n->a, true);
    }
}

void check_stats(struct context *c, struct node *n)
{
    for (; n; n = n->next) {
        switch (n->kind) {
        case N_ASSIGN:
            check_assign(c, n);
            break;
        case N_CALLSTAT:
            check_call_statement(c, n);
            break;
        case N_FORK:
            check_fork(c, n);
            break;
        case N_EXIT:
            if (!c->loops)
                error_at(n->at, "EXIT leaves a loop, but stands in none");
            break;
        case N_RETURN:
            check_return(c, n);
            break;
        case N_IF:
            for (struct node *e = n; e; e = e->b) {
                if (e->kind == N_IF)
                    check_condition(c, e->a);
                check_stats(c, e->list);
            }
            break;
        case N_CASE:
            check_case(c, n);
            break;
        case N_WHILE:
        case N_LOOP:
        case N_REPEAT:
            if (n->kind == N_WHILE)
                check_condition(c, n->a);
            c->loops++;
            check_stats(c, n->list);
            c->loops--;
            if (n->kind == N_REPEAT)
                check_condition(c, n->a);
            break;
        case N_FOR:
            check_for(c, n);
            break;
        case N_GUARD:
            check_condition(c, n->a);
            check_stats(c, n->list);
            break;
        default:
            break;
        }
    }
}

static void check_body(struct unit *u, struct symbol *s)
{
    struct node *d = s->impl;
    struct scope *scope = alloc(sizeof *scope);
    scope->outer = s->kind == S_OPERATION || (s == u->start && u->kind == U_OBJECT) ? &u->field_scope : &u->body;
    struct context c = {.unit = u, .scope = scope, .routine = s, .in_operation = scope->outer == &u->field_scope};
    for (int i = 0; i < s->params_count; i++)
        scope_add(scope, s->params[i]);
    check_local_declarations(&c, d->b->list);
    check_stats(&c, d->b->a);
    if (s->type && !s->has_return)
        error_at(d->at, "%s has a result, but no RETURN with a value", s->name);
    s->checked = true;
}

static void declare_self(struct unit *u)
{
    struct symbol *s = new_symbol(S_VAR, "SELF", u->spec->at);
    s->var = VAR_SELF;
    s->type = u->object;
    scope_add(&u->field_scope, s);
}

void check_bodies(struct unit *u)
{
    if (u->kind == U_OBJECT)
        declare_self(u);
    for (int i = 0; i < u->routines_count; i++)
        if (u->routines[i]->impl)
            check_body(u, u->routines[i]);
    for (int i = 0; i < u->operations_count; i++)
        if (u->operations[i]->impl)
            check_body(u, u->operations[i]);
    if (u->impl && u->impl->has_body) {
        struct symbol *s = u->start = new_symbol(S_FUNCTION, "BEGIN", u->impl->at);
        s->unit = u;
        s->c = form("%s__BEGIN", u->c);
        s->impl = new_node(D_FUNCTION, u->impl->at);
        s->impl->b = new_node(N_NONE, u->impl->at);
        s->impl->b->a = u->impl->body;
        s->impl->b->c = new_node(N_NONE, u->impl->at);
        check_body(u, s);
    }
}
