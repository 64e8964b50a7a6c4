/* SPDX-License-Identifier: BSD-3-Clause
 *
 * analyse.c - which operations read, write and block, over the whole program: a fixed point that begins with "none". */
#include "lang/orca/orca.h"

typedef bool predicate(struct node *n);

static bool any(struct node *n, predicate *f)
{
    for (; n; n = n->next)
        if (f(n) || any(n->a, f) || any(n->b, f) || any(n->list, f))
            return true;
    return false;
}

static bool of_object(struct node *designator)
{
    struct symbol *s = root_of(designator);
    return s && (s->var == VAR_FIELD || s->var == VAR_SELF);
}

/* Whether an argument that the callee may change is part of the object. */
static bool passes_object(struct node *n)
{
    struct node *modes = n->a && n->a->type && n->kind == N_CALL && !n->sym ? n->a->type->params : NULL;
    int i = 0;
    for (struct node *a = n->list; a; a = a->next, i++) {
        int mode = n->sym && i < n->sym->params_count ? n->sym->params[i]->mode : modes ? modes->op : MODE_IN;
        modes = modes ? modes->next : NULL;
        if (mode != MODE_IN && of_object(a))
            return true;
    }
    return false;
}

static bool changes(struct node *n)
{
    if (n->kind == N_ASSIGN)
        return of_object(n->a);
    if (n->kind == N_OPCALL)
        return passes_object(n) || (of_object(n->a) && n->sym && n->sym->writes);
    if (n->kind != N_CALL)
        return false;
    switch (n->builtin) {
    case B_NONE:
        return passes_object(n);
    case B_ADDNODE:
    case B_DELETENODE:
    case B_FROM:
        return of_object(n->list);
    case B_INSERT:
    case B_DELETE:
        return of_object(n->list->next);
    default:
        return false;
    }
}

static bool blocks(struct node *n)
{
    if (n->kind != N_OPCALL && (n->kind != N_CALL || n->builtin))
        return false;
    return n->sym ? n->sym->blocks : n->kind == N_CALL; /* of a function value the worst is assumed */
}

bool changes_object(struct node *list)
{
    return any(list, changes);
}

bool may_block(struct node *list)
{
    return any(list, blocks);
}

static const char *poison;
static bool is_poisoned(struct node *n)
{
    if (n->kind != N_CALL || n->builtin || !n->sym || !n->sym->poisons)
        return false;
    poison = n->sym->poison;
    return true;
}

static bool analyse_routine(struct symbol *s)
{
    struct node *body = s->impl ? s->impl->b : NULL;
    if (!body)
        return false;
    bool blocks_now = s->blocks || body->flag || any(body->a, blocks), writes = s->writes, poisons = s->poisons;
    if (s->kind == S_OPERATION)
        writes = writes || any(body->a, changes);
    if (!poisons && any(body->a, is_poisoned)) {
        poisons = true;
        s->poison = poison;
    }
    bool changed = blocks_now != s->blocks || writes != s->writes || poisons != s->poisons;
    s->blocks = blocks_now;
    s->writes = writes;
    s->poisons = poisons;
    return changed;
}

static void check_poison(struct unit *u, struct symbol *s)
{
    if (s->poisons)
        error_at(s->at, "%s of %s calls a function that uses %s, which must not be used in an operation", s->name,
                 u->name, s->poison);
}

void analyse(void)
{
    for (bool more = true; more;) {
        more = false;
        for (struct unit *u = units_first; u; u = u->next) {
            for (int i = 0; i < u->routines_count; i++)
                more |= analyse_routine(u->routines[i]);
            for (int i = 0; i < u->operations_count; i++)
                more |= analyse_routine(u->operations[i]);
            if (u->start)
                more |= analyse_routine(u->start);
        }
    }
    for (struct unit *u = units_first; u; u = u->next) {
        for (int i = 0; i < u->operations_count; i++) {
            struct symbol *s = u->operations[i];
            check_poison(u, s);
            for (struct node *g = s->impl && s->impl->b->flag ? s->impl->b->a : NULL; g; g = g->next)
                s->reads |= !changes_object(g->a) && !changes_object(g->list);
            s->reads |= !s->writes;
        }
        if (u->start && u->start->blocks && u->kind != U_MODULE)
            error_at(u->start->at, "the BEGIN of %s calls an operation that may block, which nobody could end",
                     u->name);
    }
}
