/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen_stat.c - statements as C. */
#include "lang/orca/gen.h"
#include <string.h>

static void block(struct node *list)
{
    g.depth++;
    statements(list);
    g.depth--;
}

static void assign(struct node *n)
{
    if (!n->op) {
        store(n->a->type, expr(n->a), n->b);
        return;
    }
    /* The designator is evaluated once. */
    const struct type *t = real_type(n->a->type);
    const char *v = expr(n->a);
    if (n->a->kind != N_NAME) {
        const char *p = form("p%d", ++g.temps);
        put("%s *const %s = &%s;", c_type(t), p, v);
        v = form("(*%s)", p);
    }
    struct symbol *s = new_symbol(S_VAR, "", n->at);
    struct node *left = new_node(N_NAME, n->at), *e = new_node(n->op == OP_AND  ? N_AND
                                                               : n->op == OP_OR ? N_OR
                                                                                : N_BINARY,
                                                               n->at);
    s->var = VAR_LOCAL;
    s->type = n->a->type;
    s->c = v; /* which expr() writes as it is */
    left->sym = s;
    left->type = n->a->type;
    e->op = n->op;
    e->a = left;
    e->b = n->b;
    e->type = is_simple(t) && n->b->type->kind > n->a->type->kind ? n->b->type : n->a->type;
    store(t, v, e);
}

static void if_statement(struct node *n)
{
    int open = 0;
    for (struct node *e = n; e; e = e->b) {
        if (e->kind != N_IF) {
            block(e->list);
            break;
        }
        if (e != n)
            g.depth++;
        put_place(e->at);
        const char *c = expr(e->a);
        put("if (%s) {", c);
        block(e->list);
        open++;
        if (e->b)
            put("} else {");
    }
    while (open-- > 0) {
        put("}");
        if (open > 0)
            g.depth--;
    }
}

static void case_statement(struct node *n)
{
    const struct type *t = real_type(n->a->type);
    const char *v = simple_temp(t, expr(n->a)), *word = "if";
    for (struct node *alt = n->list; alt; alt = alt->next) {
        struct text c = {0};
        for (struct node *l = alt->a; l; l = l->next) {
            const char * or = l == alt->a ? "" : " || ", *lo = expr(l->a);
            if (l->b)
                add(&c, "%s(%s >= %s && %s <= %s)", or, v, lo, v, expr(l->b));
            else
                add(&c, "%s%s == %s", or, v, lo);
        }
        put("%s (%s) {", word, c.s);
        block(alt->list);
        word = "} else if";
    }
    put(n->list ? "} else {" : "{");
    if (n->b) {
        block(n->b->list);
    } else {
        g.depth++;
        put("orc_fail(%s, \"no branch of this CASE is for the value %%lld\", (long long)%s);", at(n->at), v);
        g.depth--;
    }
    put("}");
}

/* The body of a loop; EXIT jumps behind the loop. */
static void loop_body(struct node *list)
{
    if (gen_options.polls && !g.operation)
        put("ORC_POLL();");
    statements(list);
}

static void condition(struct node *e, const char *sign)
{
    const char *c = expr(e);
    put("if (%s(%s))", sign, c);
    g.depth++;
    put("break;");
    g.depth--;
}

static void for_range(struct node *n)
{
    const char *lo = expr(n->a), *hi = expr(n->b);
    int k = ++g.temps;
    put("for (int64_t i%d = %s, n%d = %s; i%d <= n%d; i%d++) {", k, lo, k, hi, k, k, k);
    g.depth++;
    put("const %s %s_ = (%s)i%d;", c_type(n->sym->type), n->name, c_type(n->sym->type), k);
    put("(void)%s_;", n->name);
    loop_body(n->list);
    if (real_type(n->sym->type)->kind == K_LONG) {
        put("if (i%d == INT64_MAX)", k);
        put("    break;");
    }
    g.depth--;
    put("}");
}

static void for_elements(struct node *n)
{
    const struct type *t = real_type(n->a->type), *e = real_type(t->elem);
    const char *set = expr(n->a);
    int k = ++g.temps;
    if (!is_temporary(n->a)) { /* a snapshot */
        const char *copy = new_temp(t);
        put("orc_assign(%s, &%s, &%s);", descriptor(t), copy, set);
        set = copy;
    }
    put("for (int64_t i%d = 0; i%d < %s.n; i%d++) {", k, k, set, k);
    g.depth++;
    if (is_simple(e))
        put("const %s %s_ = ((const %s *)%s.data)[i%d];", c_type(e), n->name, c_type(e), set, k);
    else
        put("const %s *const %s_ = &((const %s *)%s.data)[i%d];", c_type(e), n->name, c_type(e), set, k);
    put("(void)%s_;", n->name);
    loop_body(n->list);
    g.depth--;
    put("}");
}

static void loop(struct node *n)
{
    int outer = g.exit_label;
    bool was = g.in_loop;
    g.exit_label = 0;
    g.in_loop = true;
    if (n->kind == N_FOR) {
        if (n->b)
            for_range(n);
        else
            for_elements(n);
    } else {
        put("for (;;) {");
        g.depth++;
        if (n->kind == N_WHILE)
            condition(n->a, "!");
        loop_body(n->list);
        if (n->kind == N_REPEAT) {
            put_place(n->a->at);
            condition(n->a, "");
        }
        g.depth--;
        put("}");
    }
    if (g.exit_label)
        put("exit%d:;", g.exit_label);
    g.exit_label = outer;
    g.in_loop = was;
}

static void return_statement(struct node *n)
{
    if (n->a)
        store(g.routine->type, is_simple(g.routine->type) && !g.operation ? "r" : "(*r)", n->a);
    if (g.operation)
        put("status = ORC_DONE;");
    go_out();
}

void statements(struct node *n)
{
    for (; n; n = n->next) {
        put_place(n->at);
        switch (n->kind) {
        case N_ASSIGN:
            assign(n);
            break;
        case N_CALLSTAT:
            expr(n->a);
            break;
        case N_FORK:
            fork_statement(n);
            break;
        case N_EXIT:
            if (!g.exit_label)
                g.exit_label = ++g.labels;
            put("goto exit%d;", g.exit_label);
            break;
        case N_RETURN:
            return_statement(n);
            break;
        case N_IF:
            if_statement(n);
            break;
        case N_CASE:
            case_statement(n);
            break;
        default:
            loop(n);
        }
    }
}
