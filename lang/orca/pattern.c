/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pattern.c - how each process uses its objects: R and W for invocations, [a|b] for alternatives, {...} for loops, with
 * calls of functions inlined (recursion once); and the estimate that the run-time system places objects by. */
#include "lang/orca/orca.h"
#include <stdio.h>
#include <string.h>

enum { LOOP_WEIGHT = 16, ACCESSES_MAX = 32768, TEXT_MAX = 400 };

struct pattern {
    struct estimate e;
    struct text text;
};

static struct pattern of_list(struct node *n, struct symbol *obj);

static void scale(struct estimate *e)
{
    if (e->accesses > ACCESSES_MAX) {
        double f = ACCESSES_MAX / e->accesses;
        e->score *= f;
        e->uncertainty *= f;
        e->accesses = ACCESSES_MAX;
    }
}

static void join(struct pattern *p, const struct pattern *q)
{
    p->e.score += q->e.score;
    p->e.accesses += q->e.accesses;
    p->e.uncertainty += q->e.uncertainty;
    scale(&p->e);
    if (q->text.n && p->text.n < TEXT_MAX)
        add_bytes(&p->text, q->text.s, q->text.n);
}

static double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

static struct pattern alternatives(const struct pattern *p, int count)
{
    struct pattern r = {0};
    bool any = false;
    double worst = 0;
    for (int i = 0; i < count; i++) {
        r.e.score += p[i].e.score / count;
        r.e.accesses += p[i].e.accesses / count;
        r.e.uncertainty += p[i].e.uncertainty / count;
        any |= p[i].text.n > 0;
    }
    for (int i = 0; i < count; i++) {
        double d = distance(p[i].e.score, r.e.score);
        worst = d > worst ? d : worst;
    }
    r.e.uncertainty += worst;
    if (!any)
        return r;
    for (int i = 0; i < count; i++)
        add(&r.text, "%s%s", i ? "|" : "[", p[i].text.n ? p[i].text.s : "");
    add(&r.text, "]");
    return r;
}

static struct pattern loop(struct pattern body)
{
    struct pattern both[2] = {{{0}, {0}}};
    if (!body.text.n)
        return body;
    both[0].e =
        (struct estimate){body.e.score * LOOP_WEIGHT, body.e.accesses * LOOP_WEIGHT, body.e.uncertainty * LOOP_WEIGHT};
    scale(&both[0].e);
    add(&both[0].text, "{%s}", body.text.s);
    return alternatives(both, 2);
}

/* A call of a function that gets the object as a SHARED argument. */
static struct pattern of_call(struct node *n, struct symbol *obj)
{
    struct pattern p = {0};
    int i = 0;
    if (!n->sym || n->sym->kind != S_FUNCTION || !n->sym->impl)
        return p;
    for (struct node *a = n->list; a && i < n->sym->params_count; a = a->next, i++) {
        if (root_of(a) != obj || a->kind != N_NAME || n->sym->params[i]->type->kind != K_OBJECT || n->sym->number > 1)
            continue;
        n->sym->number++; /* depth of this expansion */
        struct pattern q = of_list(n->sym->impl->b->a, n->sym->params[i]);
        n->sym->number--;
        join(&p, &q);
    }
    return p;
}

static struct pattern of_expr(struct node *n, struct symbol *obj)
{
    struct pattern p = {0};
    for (; n; n = n->next) {
        struct pattern q = of_expr(n->a, obj), r = of_expr(n->b, obj), s = of_expr(n->list, obj), t = {0};
        join(&p, &q);
        join(&p, &r);
        join(&p, &s);
        if (n->kind == N_CALL) {
            t = of_call(n, obj);
        } else if (n->kind == N_OPCALL && n->a->kind == N_NAME && n->a->sym == obj && n->sym) {
            t.e = (struct estimate){n->sym->writes ? -1 : 1, 1, 0};
            add(&t.text, n->sym->writes ? "W" : "R");
        }
        join(&p, &t);
    }
    return p;
}

static struct pattern one_expr(struct node *n, struct symbol *obj)
{
    struct node *next = n ? n->next : NULL;
    if (!n)
        return (struct pattern){0};
    n->next = NULL;
    struct pattern p = of_expr(n, obj);
    n->next = next;
    return p;
}

static struct pattern of_if(struct node *n, struct symbol *obj)
{
    struct pattern both[2], p = one_expr(n->a, obj);
    both[0] = of_list(n->list, obj);
    both[1] = !n->b ? (struct pattern){0} : n->b->kind == N_IF ? of_if(n->b, obj) : of_list(n->b->list, obj);
    struct pattern q = alternatives(both, 2);
    join(&p, &q);
    return p;
}

static struct pattern of_case(struct node *n, struct symbol *obj)
{
    int count = 1, i = 0;
    for (struct node *a = n->list; a; a = a->next)
        count++;
    struct pattern *all = alloc((size_t)count * sizeof *all), p = one_expr(n->a, obj);
    for (struct node *a = n->list; a; a = a->next)
        all[i++] = of_list(a->list, obj);
    if (n->b)
        all[i] = of_list(n->b->list, obj);
    struct pattern q = alternatives(all, n->b ? count : count - 1);
    join(&p, &q);
    return p;
}

static struct pattern of_list(struct node *n, struct symbol *obj)
{
    struct pattern p = {0};
    for (; n; n = n->next) {
        struct pattern q, r;
        switch (n->kind) {
        case N_IF:
            q = of_if(n, obj);
            break;
        case N_CASE:
            q = of_case(n, obj);
            break;
        case N_WHILE:
        case N_LOOP:
        case N_REPEAT:
        case N_FOR:
        case N_GUARD:
            q = n->kind == N_FOR ? (struct pattern){0} : one_expr(n->a, obj);
            r = of_list(n->list, obj);
            join(&q, &r);
            if (n->kind != N_GUARD)
                q = loop(q);
            if (n->kind == N_FOR) {
                r = one_expr(n->a, obj);
                join(&p, &r);
                r = one_expr(n->b, obj);
                join(&p, &r);
            }
            break;
        default:
            q = one_expr(n->a, obj);
            r = one_expr(n->b, obj);
            join(&q, &r);
            r = of_expr(n->list, obj);
            join(&q, &r);
        }
        join(&p, &q);
    }
    return p;
}

static void each_object(void (*f)(struct symbol *process, struct symbol *object, struct pattern p))
{
    for (struct unit *u = units_first; u; u = u->next)
        for (int i = 0; i < u->routines_count; i++) {
            struct symbol *s = u->routines[i];
            if (s->kind != S_PROCESS || !s->impl)
                continue;
            for (int k = 0; k < s->params_count; k++)
                if (has_object(s->params[k]->type))
                    f(s, s->params[k], of_list(s->impl->b->a, s->params[k]));
            for (struct symbol *l = s->locals; l; l = l->next)
                if (has_object(l->type))
                    f(s, l, of_list(s->impl->b->a, l));
        }
}

static void keep(struct symbol *process, struct symbol *object, struct pattern p)
{
    (void)process;
    object->estimate = p.e;
}

void estimate_accesses(void)
{
    each_object(keep);
}

static void print(struct symbol *process, struct symbol *object, struct pattern p)
{
    printf("process %s.%s: %s %s: %s score %+.0f, accesses %.0f, uncertainty %.0f%s\n", process->unit->name,
           process->name, show(object->type), object->name, p.text.n ? p.text.s : "-", p.e.score, p.e.accesses,
           p.e.uncertainty,
           object->type->kind == K_ARRAY ? " (arrays are placed by what happens, or by Strategy)" : "");
}

static const char *kind_of(struct node *guard_or_list, bool guard)
{
    bool w =
        guard ? changes_object(guard_or_list->a) || changes_object(guard_or_list->list) : changes_object(guard_or_list);
    return w ? "write" : "read";
}

void explain(struct unit *main)
{
    (void)main;
    for (struct unit *u = units_first; u; u = u->next)
        for (int i = 0; i < u->operations_count; i++) {
            struct symbol *s = u->operations[i];
            printf("operation %s.%s: %s%s", u->name, s->name,
                   s->reads && s->writes ? "read and write"
                   : s->writes           ? "write"
                                         : "read",
                   s->blocks ? ", may block" : "");
            if (s->impl && s->impl->b->flag) {
                printf("; guards:");
                for (struct node *g = s->impl->b->a; g; g = g->next)
                    printf(" line %d %s", g->at.line, kind_of(g, true));
            }
            printf("\n");
        }
    each_object(print);
}
