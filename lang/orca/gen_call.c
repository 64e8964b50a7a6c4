/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen_call.c - calls of functions, operations and built-in functions, and FORK. */
#include "lang/orca/gen.h"
#include <string.h>

static const char *result_type(const struct type *t)
{
    return t && is_simple(t) ? c_type(t) : "void";
}

static void add_param(struct text *s, const struct type *t, int mode, const char *name)
{
    const char *c = c_type(t);
    if (s->n)
        add(s, ", ");
    if (mode != MODE_IN)
        add(s, "%s *%s", c, name);
    else if (is_simple(t))
        add(s, "%s%s%s", c, *name ? " " : "", name);
    else
        add(s, "const %s *%s", c, name);
}

const char *prototype(struct symbol *s)
{
    struct text p = {0};
    for (int i = 0; i < s->params_count; i++) {
        const struct symbol *a = s->params[i];
        bool copied = a->mode == MODE_IN && !is_simple(a->type) && a->assigned;
        add_param(&p, a->type, a->mode, form("%s_%s", a->name, copied ? "in" : ""));
    }
    if (s->type && !is_simple(s->type))
        add_param(&p, s->type, MODE_OUT, "r");
    return form("%s f_%s(%s)", result_type(s->type), s->c, p.n ? p.s : "void");
}

const char *function_pointer(const struct type *t)
{
    struct text p = {0};
    for (const struct node *a = t->params; a; a = a->next)
        add_param(&p, a->type, a->op, "");
    if (t->elem && !is_simple(t->elem))
        add_param(&p, t->elem, MODE_OUT, "");
    return form("%s (*)(%s)", result_type(t->elem), p.n ? p.s : "void");
}

/* Temporaries for OUT arguments, moved to the actuals after the call. */
struct out {
    struct node *actual;
    const struct type *type;
    const char *temp;
    struct out *next;
};

static void move_out(const struct out *o)
{
    for (; o; o = o->next) {
        const char *v = expr(o->actual);
        if (is_simple(o->type) || is_flat(o->type))
            put("%s = %s;", v, o->temp);
        else
            put("orc_move(%s, &%s, &%s);", descriptor(o->type), v, o->temp);
    }
}

/* The address of an argument. */
static const char *argument(struct node *a, const struct type *t, int mode, struct out **outs)
{
    if (mode == MODE_OUT) {
        struct out *o = alloc(sizeof *o);
        *o = (struct out){.actual = a, .type = t, .temp = new_temp(t), .next = *outs};
        *outs = o;
        return form("&%s", o->temp);
    }
    if (mode == MODE_SHARED)
        return form("&%s", expr(a));
    const char *e = expr(a);
    if (is_simple(t))
        return form("&%s", simple_temp(t, e));
    if (a->flag && !is_temporary(a) && !a->value) {
        const char *copy = new_temp(t);
        put("orc_assign(%s, &%s, &%s);", descriptor(t), copy, e);
        return form("&%s", copy);
    }
    return form("&%s", e);
}

/* Checks of arguments that may overlap, which only their indices tell. */
static void check_aliases(struct node *list)
{
    if (!gen_options.checks)
        return;
    for (struct node *b = list; b; b = b->next)
        for (struct node *a = list; a != b && b->i == 1 && b->kind != N_INT; a = a->next)
            if (root_of(a) && root_of(a) == root_of(b)) {
                const char *x = expr(a), *y = expr(b);
                put("orc_alias(&%s, sizeof %s, &%s, sizeof %s, %s);", x, x, y, y, at(b->at));
            }
}

static void unwind(void)
{
    put("if (orc_unwinding)");
    g.depth++;
    go_out();
    g.depth--;
}

static bool unwinds(bool blocks)
{
    return blocks && g.routine && g.routine->kind != S_PROCESS;
}

const char *call(struct node *n)
{
    struct symbol *s = n->sym;
    const struct type *ft = s ? NULL : n->a->type, *result = s ? s->type : ft->elem;
    struct node *m = ft ? ft->params : NULL;
    struct text args = {0};
    struct out *outs = NULL;
    const char *callee =
        s ? form("f_%s", s->c) : form("((%s)orc_function(%s, %s))", function_pointer(ft), expr(n->a), at(n->at));
    check_aliases(n->list);
    int i = 0;
    for (struct node *a = n->list; a; a = a->next, i++, m = m ? m->next : NULL) {
        const struct type *t = s ? s->params[i]->type : m->type;
        int mode = s ? s->params[i]->mode : m->op;
        const char *e = mode == MODE_IN && is_simple(t) ? expr(a) : argument(a, t, mode, &outs);
        add(&args, "%s%s", i ? ", " : "", e);
    }
    const char *r = "";
    if (result && is_simple(result)) {
        r = form("t%d", ++g.temps);
        put("const %s %s = %s(%s);", c_type(result), r, callee, i ? args.s : "");
    } else {
        if (result) {
            r = new_temp(result);
            add(&args, "%s&%s", i ? ", " : "", r);
            i++;
        }
        put("%s(%s);", callee, i ? args.s : "");
    }
    if (unwinds(s ? s->blocks : true))
        unwind();
    move_out(outs);
    return r;
}

static int operation_number(struct symbol *op)
{
    for (int i = 0; i < op->unit->operations_count; i++)
        if (op->unit->operations[i] == op)
            return i + 2; /* after the hidden ones */
    return 0;
}

const char *operation_call(struct node *n)
{
    struct symbol *s = n->sym;
    struct text args = {0};
    struct out *outs = NULL;
    const char *object = expr(n->a), *r = "";
    check_aliases(n->list);
    int i = 0;
    for (struct node *a = n->list; a; a = a->next, i++)
        add(&args, "%s(void *)%s", i ? ", " : "", argument(a, s->params[i]->type, s->params[i]->mode, &outs));
    if (s->type) {
        r = new_temp(s->type);
        add(&args, "%s&%s", i++ ? ", " : "", r);
    }
    if (i) {
        const char *v = form("a%d", ++g.temps);
        put("void *%s[] = {%s};", v, args.s);
        put("orc_invoke(%s, %d, %s, %s); /* %s */", object, operation_number(s), v, at(n->at), s->name);
    } else {
        put("orc_invoke(%s, %d, NULL, %s); /* %s */", object, operation_number(s), at(n->at), s->name);
    }
    if (unwinds(s->blocks))
        unwind();
    move_out(outs);
    return r;
}

void fork_statement(struct node *n)
{
    struct symbol *s = n->sym;
    struct text args = {0};
    struct out *outs = NULL;
    const char *cpu = n->b ? expr(n->b) : "-1";
    int i = 0;
    for (struct node *a = n->list; a; a = a->next, i++)
        add(&args, "%s(void *)%s", i ? ", " : "", argument(a, s->params[i]->type, s->params[i]->mode, &outs));
    if (i) {
        const char *v = form("a%d", ++g.temps);
        put("void *%s[] = {%s};", v, args.s);
        put("orc_fork(%d, %s, %s, %s); /* %s */", s->number, cpu, v, at(n->at), s->name);
    } else {
        put("orc_fork(%d, %s, NULL, %s); /* %s */", s->number, cpu, at(n->at), s->name);
    }
}

/* ---- built-in functions ---- */

static void read_or_write(struct node *n)
{
    bool reads = n->builtin == B_READ;
    for (struct node *e = n->list; e; e = e->next) {
        const struct type *t = real_type(e->type);
        const char *what = t == &type_string ? "string"
                           : t == &type_char ? "char"
                           : is_real(t)      ? "real"
                                             : "int",
                   *v = expr(e);
        if (reads && t != &type_string)
            put("%s = (%s)orc_read_%s(%s);", v, c_type(t), what, at(e->at));
        else if (reads)
            put("orc_read_string(&%s, %s);", v, at(e->at));
        else
            put("orc_write_%s(%s%s);", what, t == &type_string ? "&" : "", v);
    }
    if (n->builtin == B_WRITELINE)
        put("orc_write_line();");
}

static const char *size_of_value(struct node *a, const char *v)
{
    return real_type(a->type)->kind == K_ARRAY ? form("(int32_t)%s.n", v) : form("(int32_t)%s.n", v);
}

const char *builtin_call(struct node *n)
{
    struct node *a = n->list, *b = a ? a->next : NULL;
    const struct type *t = real_type(n->type);
    const char *v = "", *w = "", *r;
    if (n->builtin == B_WRITE || n->builtin == B_WRITELINE || n->builtin == B_READ) {
        read_or_write(n);
        return "";
    }
    if (a && a->kind != N_TYPEARG)
        v = expr(a);
    if (b && n->builtin != B_LB && n->builtin != B_UB)
        w = expr(b);
    switch (n->builtin) {
    case B_ABS:
        r = simple_temp(t, v);
        return form("(%s < 0 ? -%s : %s)", r, r, r);
    case B_CAP:
        return form("orc_cap(%s)", v);
    case B_CHR:
        return gen_options.checks ? form("(uint8_t)orc_range(%s, 256, \"CHR\", %s)", v, at(n->at))
                                  : form("(uint8_t)%s", v);
    case B_FLOAT:
        return form("(double)%s", v);
    case B_ODD:
        return form("(%s & 1)", v);
    case B_ORD:
        return form("(int32_t)%s", v);
    case B_TRUNC:
        return form("orc_trunc(%s)", v);
    case B_VAL:
        if (t->kind == K_ENUM && gen_options.checks)
            return form("(%s)orc_range(%s, %lld, \"VAL\", %s)", c_type(t), w, (long long)t->count, at(n->at));
        return form("(%s)%s", c_type(t), w);
    case B_SIZE:
        return size_of_value(a, v);
    case B_LB:
        return form("(%s)%s.d[%d].lb", c_type(t), v, (int)n->i - 1);
    case B_UB:
        return form("(%s)(%s.d[%d].lb + %s.d[%d].n - 1)", c_type(t), v, (int)n->i - 1, v, (int)n->i - 1);
    case B_ADDNODE:
        return simple_temp(&type_nil, form("orc_node_add(%s, &%s)", descriptor(a->type), v));
    case B_DELETENODE:
        put("orc_node_delete(%s, &%s, %s, %s);", descriptor(a->type), v, w, at(n->at));
        return "";
    case B_INSERT:
    case B_DELETE:
        if (is_simple(b->type->elem))
            v = simple_temp(b->type->elem, v);
        put("orc_set_%s(%s, &%s, &%s);", n->builtin == B_INSERT ? "insert" : "delete", descriptor(b->type), w, v);
        return "";
    case B_FROM:
        r = new_temp(t);
        put("orc_set_from(%s, &%s, &%s, %s);", descriptor(a->type), v, r, at(n->at));
        return r;
    case B_ASSERT:
        if (!gen_options.checks) {
            put("(void)%s;", v);
            return "";
        }
        put("if (!%s)", v);
        g.depth++;
        put("orc_fail(%s, \"the assertion does not hold\");", at(n->at));
        g.depth--;
        return "";
    case B_NCPUS:
        return "orc_ncpus()";
    case B_MYCPU:
        return "orc_mycpu()";
    case B_STRATEGY:
        put("orc_strategy(%s, %s, %s, %s);", v, w, expr(b->next), at(n->at));
        return "";
    default:
        return "0";
    }
}
