/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen_expr.c - expressions and designators as C. */
#include "lang/orca/gen.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void put(const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    char *s = alloc((size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, format, again);
    va_end(again);
    va_end(ap);
    add(&g.body, "%*s", 4 * g.depth, "");
    add_bytes(&g.body, s, (size_t)n);
    add_bytes(&g.body, "\n", 1);
}

void put_place(struct place p)
{
    if (!gen_options.lines || (g.line.src == p.src && g.line.line == p.line))
        return;
    add(&g.body, "#line %d %s\n", p.line, c_string(p.src->path, strlen(p.src->path)));
    g.line = p;
}

const char *at(struct place p)
{
    return form("ORC_PLACE(%d, %d)", p.src ? p.src->index : 0, p.line);
}

const char *c_string(const char *s, size_t n)
{
    struct text t = {0};
    add_bytes(&t, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 32 || c > 126 || c == '"' || c == '\\' || c == '?')
            add(&t, "\\%03o", c);
        else
            add_bytes(&t, &s[i], 1);
    }
    add_bytes(&t, "\"", 1);
    return t.s;
}

void go_out(void)
{
    g.to_out = true;
    put("goto out;");
}

const char *new_temp(const struct type *t)
{
    const char *name = form("t%d", ++g.temps);
    t = real_type(t);
    if (is_simple(t)) {
        add(&g.heads, "    %s %s = 0;\n", c_type(t), name);
        return name;
    }
    add(&g.heads, "    %s %s = {0};\n", c_type(t), name);
    if (!is_flat(t))
        add(&g.tails, "    orc_free(%s, &%s);\n", descriptor(t), name);
    return name;
}

const char *simple_temp(const struct type *t, const char *value)
{
    const char *name = form("t%d", ++g.temps);
    put("%s %s = %s;", c_type(t), name, value);
    return name;
}

static const char *literal(const struct type *t, const struct value *v)
{
    if (v->kind == V_STRING)
        return form("((struct orc_array){(void *)%s, %zu, {{1, %zu}}})", c_string(v->s, v->n), v->n, v->n);
    if (v->kind == V_REAL) {
        if (isinf(v->r))
            return v->r > 0 ? "((double)INFINITY)" : "(-(double)INFINITY)";
        if (isnan(v->r))
            return "((double)NAN)";
        const char *s = form("%.17g", v->r);
        s = strpbrk(s, ".e") ? s : form("%s.0", s);
        s = real_type(t)->kind == K_FLOAT ? form("(float)%s", s) : s;
        return v->r < 0 || s[0] == '(' ? form("(%s)", s) : s;
    }
    if (v->i == INT64_MIN)
        return "INT64_MIN";
    if (v->i == INT32_MIN)
        return "INT32_MIN";
    if (v->i > INT32_MAX || v->i < INT32_MIN || real_type(t)->kind == K_LONG)
        return form(v->i < 0 ? "(INT64_C(%lld))" : "INT64_C(%lld)", (long long)v->i);
    return form(v->i < 0 ? "(%lld)" : "%lld", (long long)v->i);
}

static const char *variable(struct symbol *s)
{
    switch (s->var) {
    case VAR_FIELD:
        return form("f->%s_", s->name);
    case VAR_DATA:
        return form("d_%s__%s", s->unit->c, s->name);
    case VAR_SELF:
        return "self";
    case VAR_LOOP:
        return is_simple(s->type) ? form("%s_", s->name) : form("(*%s_)", s->name);
    case VAR_PARAM:
        if (s->mode == MODE_IN && (is_simple(s->type) || s->assigned))
            return form("%s_", s->name);
        return form("(*%s_)", s->name);
    default:
        return s->c ? s->c : form("%s_", s->name);
    }
}

bool is_temporary(struct node *n)
{
    if (n->value)
        return false;
    return n->kind == N_CALL || n->kind == N_OPCALL || n->kind == N_AGGREGATE || n->kind == N_ARRAYAGG ||
           n->kind == N_BINARY;
}

const char *address(struct node *n)
{
    const char *e = expr(n);
    if (!is_simple(n->type))
        return form("&%s", e);
    return form("&%s", simple_temp(n->type, e));
}

void store(const struct type *type, const char *v, struct node *from)
{
    const struct type *t = real_type(type);
    const char *e = expr(from);
    if (is_simple(t)) {
        put("%s = %s;", v, e);
    } else if (t->kind == K_OBJECT) {
        put("orc_assign_object(%s, %s, %s);", v, e, at(from->at));
        if (g.operation) {
            put("if (orc_unwinding)");
            g.depth++;
            go_out();
            g.depth--;
        }
    } else if (is_flat(t)) {
        put("%s = %s;", v, e);
    } else {
        put("%s(%s, &%s, &%s);", is_temporary(from) ? "orc_move" : "orc_assign", descriptor(t), v, e);
    }
}

static const char *index_of(struct node *n)
{
    const struct type *t = real_type(n->a->type);
    const char *base = expr(n->a);
    struct text list = {0};
    for (struct node *i = n->list; i; i = i->next)
        add(&list, ", %s", expr(i));
    const char *type = c_type(t->elem);
    if (t->dims == 1)
        return form("(*(%s *)orc_at(&%s, sizeof(%s)%s, %s))", type, base, type, list.s, at(n->at));
    return form("(*(%s *)orc_at%d(&%s, sizeof(%s)%s, %s))", type, t->dims, base, type, list.s, at(n->at));
}

static const char *node_of(struct node *n)
{
    const struct type *t = real_type(n->type);
    const char *base = expr(n->a), *name = n->kind == N_BANG ? form("%s.%s_", base, n->name) : expr(n->list);
    return form("((struct %s__node *)orc_node(%s, &%s, %s, %s))", t->c, descriptor(t), base, name, at(n->at));
}

static const char *field_of(struct node *n)
{
    const struct type *t = real_type(n->a->type);
    if (n->a->flag)
        return form("%s->%s_", node_of(n->a), n->name);
    const char *base = expr(n->a);
    if (t->kind != K_UNION)
        return form("%s.%s_", base, n->name);
    if (strcmp(n->name, t->tag_name) == 0)
        return form("(%s)%s.tag", c_type(t->tag_type), base);
    struct field *f = find_field(t->fields, n->name);
    return form("(*(%s *)orc_union_field((void *)&%s, %lld, offsetof(%s, u), %s))", c_type(n->type), base,
                (long long)f->tag, c_type(t), at(n->at));
}

/* The right operand is evaluated only if the left one does not decide: where it needs statements, inside an if. */
static const char *short_circuit(struct node *n)
{
    const char *a = expr(n->a);
    size_t from = g.body.n;
    struct place line = g.line;
    const char *b = expr(n->b);
    if (g.body.n == from)
        return form("(%s %s %s)", a, n->kind == N_AND ? "&&" : "||", b);
    char *tail = copy_text(g.body.s + from, g.body.n - from);
    g.body.n = from;
    g.line = line;
    const char *t = simple_temp(&type_bool, a);
    put("if (%s%s) {", n->kind == N_AND ? "" : "!", t);
    add_bytes(&g.body, tail, strlen(tail));
    put("%s = %s;", t, b);
    put("}");
    return t;
}

static const char *relation(struct node *n)
{
    static const char *const signs[] = {"", "==", "!=", "<", "<=", ">", ">="};
    if (n->op == OP_IN) {
        const char *e = expr(n->a);
        const struct type *elem = n->b->type->elem;
        if (is_simple(n->a->type))
            e = simple_temp(elem, e);
        return form("orc_set_in(%s, &%s, &%s)", descriptor(n->b->type), expr(n->b), e);
    }
    const char *a = expr(n->a), *b = expr(n->b);
    if (is_simple(n->a->type))
        return form("(%s %s %s)", a, signs[n->op], b);
    return form("(orc_compare(%s, &%s, &%s) %s 0)", descriptor(n->a->type), a, b, signs[n->op]);
}

static const char *arithmetic(struct node *n)
{
    static const char *const signs[] = {[OP_ADD] = "+", [OP_SUB] = "-", [OP_MUL] = "*",  [OP_DIV] = "/",
                                        [OP_MOD] = "%", [OP_BOR] = "|", [OP_BXOR] = "^", [OP_BAND] = "&"};
    const struct type *t = real_type(n->type);
    const char *a = expr(n->a), *b = expr(n->b);
    if (t->kind == K_SET || t->kind == K_BAG) {
        const char *r = new_temp(t);
        put("orc_set_combine(%s, '%s', &%s, &%s, &%s);", descriptor(t), signs[n->op], r, a, b);
        return r;
    }
    if (n->op == OP_SHL || n->op == OP_SHR)
        return form("(%s)orc_shift(%s, %s, %d)", c_type(t), a, b, n->op == OP_SHL);
    bool safe = !gen_options.checks || (n->b->value && (is_real(t) ? n->b->value->r != 0 : n->b->value->i > 0));
    if ((n->op == OP_DIV || n->op == OP_MOD) && !safe)
        return form("(%s)orc_%s(%s, %s, %s)", c_type(t),
                    is_real(t)        ? "fdiv"
                    : n->op == OP_DIV ? "div"
                                      : "mod",
                    a, b, at(n->at));
    return form("(%s %s %s)", a, signs[n->op], b);
}

static const char *aggregate(struct node *n)
{
    const struct type *t = real_type(n->type);
    const char *r = new_temp(t);
    const struct field *f = t->fields;
    if (t->kind == K_RECORD) {
        for (struct node *e = n->list; e; e = e->next, f = f->next)
            store(f->sub->type, form("%s.%s_", r, f->name), e);
    } else if (t->kind == K_UNION) {
        int64_t tag = n->list->value->i;
        while (f->tag != tag)
            f = f->next;
        put("orc_union_tag(%s, &%s, %lld, %s);", descriptor(t), r, (long long)tag, at(n->at));
        store(f->sub->type, form("%s.u.%s_", r, f->name), n->list->next);
    } else {
        put("orc_free(%s, &%s);", descriptor(t), r);
        for (struct node *e = n->list; e; e = e->next) {
            const char *v = expr(e);
            if (is_simple(t->elem))
                v = simple_temp(t->elem, v);
            put("orc_set_insert(%s, &%s, &%s);", descriptor(t), r, v);
        }
    }
    return r;
}

static void array_elements(const struct type *t, const char *r, struct node *list, int64_t *next)
{
    for (struct node *e = list; e; e = e->next) {
        if (e->kind == N_NESTED)
            array_elements(t, r, e->list, next);
        else
            store(t->elem, form("((%s *)%s.data)[%lld]", c_type(t->elem), r, (long long)(*next)++), e);
    }
}

static const char *array_aggregate(struct node *n)
{
    const struct type *t = real_type(n->type);
    const char *r = new_temp(t);
    struct text bounds = {0};
    struct node *level = n->list;
    for (int k = 0; k < t->dims; k++) {
        int64_t count = 0, lb = is_integer(t->index[k]) ? 1 : 0;
        for (struct node *e = level; e; e = e->next)
            count++;
        level = level ? level->list : NULL;
        add(&bounds, "%s%lld, %lld", k ? ", " : "", (long long)lb, (long long)(lb + count - 1));
    }
    put("orc_array_bounds(%s, &%s, (const int64_t[]){%s}, %s);", descriptor(t), r, bounds.s, at(n->at));
    int64_t next = 0;
    array_elements(t, r, n->list, &next);
    return r;
}

const char *expr(struct node *n)
{
    if (n->value)
        return literal(n->type, n->value);
    switch (n->kind) {
    case N_NAME:
        if (n->sym->kind == S_FUNCTION)
            return form("%d", n->sym->number);
        return variable(n->sym);
    case N_DOT:
        if (n->sym)
            return n->sym->kind == S_FUNCTION ? form("%d", n->sym->number) : variable(n->sym);
        return field_of(n);
    case N_INDEX:
        return index_of(n);
    case N_CALL:
        return n->builtin ? builtin_call(n) : call(n);
    case N_OPCALL:
        return operation_call(n);
    case N_AGGREGATE:
        return aggregate(n);
    case N_ARRAYAGG:
        return array_aggregate(n);
    case N_AND:
    case N_OR:
        return short_circuit(n);
    case N_NOT:
        return form("!%s", expr(n->a));
    case N_UNARY:
        return form("(%s%s)", n->op == OP_NEG ? "-" : n->op == OP_COM ? "~" : "+", expr(n->a));
    case N_BINARY:
        return n->op <= OP_IN ? relation(n) : arithmetic(n);
    default:
        return "0";
    }
}
