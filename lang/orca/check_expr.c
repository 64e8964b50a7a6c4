/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check_expr.c - types of expressions and designators, and the values of constant ones. */
#include "lang/orca/orca.h"
#include <string.h>

static void check_node(struct context *, struct node *);

static struct value *int_value(int64_t i)
{
    struct value *v = alloc(sizeof *v);
    v->i = i;
    return v;
}

static struct value *real_value(double r)
{
    struct value *v = alloc(sizeof *v);
    v->kind = V_REAL;
    v->r = r;
    return v;
}

struct value *constant(struct context *c, struct node *n, const char *what)
{
    (void)c;
    if (n->type && n->type->kind == K_ERROR)
        return NULL;
    if (!n->value)
        error_at(n->at, "%s has to be a constant", what);
    return n->value;
}

struct symbol *root_of(struct node *n)
{
    while (n && ((n->kind == N_DOT && !n->sym) || n->kind == N_INDEX || n->kind == N_BANG))
        n = n->a;
    return n && (n->kind == N_NAME || n->kind == N_DOT) && n->sym && n->sym->kind == S_VAR ? n->sym : NULL;
}

void check_fits(struct node *e, const struct type *to, const char *what)
{
    if (!e->type || fits(to, e->type))
        return;
    const char *hint = is_real(to) && is_integer(e->type)            ? " (write 1.0, or use FLOAT)"
                       : is_integer(to) && is_real(e->type)          ? " (use TRUNC)"
                       : same(to, &type_char) && e->kind == N_STRING ? " (a character stands between single quotes)"
                                                                     : "";
    error_at(e->at, "%s is of type %s, but %s was expected%s", what, show_beside(e->type, to), show_beside(to, e->type),
             hint);
}

void check_assignable(struct context *c, struct node *n, const char *what)
{
    struct symbol *s = root_of(n);
    if (!s) {
        if (!n->type || n->type->kind != K_ERROR)
            error_at(n->at, "a variable was expected to %s", what);
        return;
    }
    if (n->kind == N_DOT && n->a->type && n->a->type->kind == K_UNION && strcmp(n->name, n->a->type->tag_name) == 0)
        error_at(n->at, "the tag of a union cannot be changed alone; assign a whole aggregate");
    if (s->var == VAR_LOOP)
        error_at(n->at, "%s is the variable of a loop, which nothing may change", s->name);
    if (s->var == VAR_DATA && s->unit != c->unit)
        error_at(n->at, "%s is a variable of the data module %s, which only that may change", s->name, s->unit->name);
    if (s->var == VAR_PARAM && s->mode == MODE_IN)
        s->assigned = true;
}

static struct type *function_type_of(struct symbol *s)
{
    struct type *t = new_type(K_FUNCTION, s->at);
    struct node **last = &t->params;
    for (int i = 0; i < s->params_count; i++) {
        *last = new_node(D_PARAM, s->at);
        (*last)->op = s->params[i]->mode;
        (*last)->type = s->params[i]->type;
        last = &(*last)->next;
    }
    t->elem = s->type;
    t->c = "function";
    return t;
}

static void use_symbol(struct node *n, struct symbol *s)
{
    s = s->same ? s->same : s;
    n->sym = s;
    n->type = &type_error;
    switch (s->kind) {
    case S_VAR:
        n->type = s->type;
        break;
    case S_CONST:
        n->type = s->type;
        n->value = s->type->kind == K_ERROR ? NULL : s->value;
        break;
    case S_FUNCTION:
        n->type = function_type_of(s);
        s->used = true;
        break;
    case S_OPERATION:
    case S_PROCESS:
        error_at(n->at,
                 s->kind == S_PROCESS ? "%s is a process; FORK starts it"
                                      : "%s is an operation; it is called as object$%s",
                 s->name, s->name);
        break;
    case S_BUILTIN:
        error_at(n->at, "%s is a built-in function; its arguments were expected", s->name);
        break;
    default:
        error_at(n->at, "a value was expected, but %s is a %s", s->name, s->kind == S_TYPE ? "type" : "unit");
    }
}

static void check_name(struct context *c, struct node *n)
{
    struct symbol *s = scope_find(c->scope, n->name);
    n->type = &type_error;
    if (!s)
        error_at(n->at, "%s is not declared here", n->name);
    else
        use_symbol(n, s);
}

/* Unit.name, or NULL if n is not that. */
static struct symbol *qualified(struct context *c, struct node *n)
{
    if (n->kind != N_DOT || n->a->kind != N_NAME)
        return NULL;
    struct symbol *u = scope_find(c->scope, n->a->name);
    return u && u->kind == S_UNIT ? resolve(c, n, "a name of that unit") : NULL;
}

static void check_dot(struct context *c, struct node *n)
{
    struct symbol *u = n->a->kind == N_NAME ? scope_find(c->scope, n->a->name) : NULL;
    n->type = &type_error;
    if (u && u->kind == S_UNIT) {
        struct symbol *s = resolve(c, n, "a name of that unit");
        if (s)
            use_symbol(n, s);
        return;
    }
    check_node(c, n->a);
    const struct type *t = n->a->type;
    if (t->kind == K_ERROR)
        return;
    struct field *f = NULL;
    if (n->a->flag) {
        f = find_field(t->nodes, n->name);
    } else if (t->kind == K_RECORD || t->kind == K_GRAPH || t->kind == K_UNION) {
        if (t->kind == K_UNION && strcmp(n->name, t->tag_name) == 0) {
            n->type = t->tag_type;
            return;
        }
        f = find_field(t->fields, n->name);
    } else {
        error_at(n->at, "%s has no fields", show(t));
        return;
    }
    if (f)
        n->type = f->sub->type;
    else
        error_at(n->at, "%s has no %s %s", show(t), n->a->flag ? "node field" : "field", n->name);
}

static void check_index(struct context *c, struct node *n)
{
    int count = 0;
    check_expr(c, n->a);
    for (struct node *i = n->list; i; i = i->next, count++)
        check_expr(c, i);
    const struct type *t = n->a->type;
    n->type = &type_error;
    if (t->kind == K_ERROR)
        return;
    if (t->kind == K_GRAPH && !n->a->flag) {
        const struct type *name = n->list->type;
        if (count != 1 || (name->kind != K_NODENAME && name->kind != K_ERROR && name->kind != K_NIL) ||
            (name->kind == K_NODENAME && name->elem && !same(name->elem, t)))
            error_at(n->list->at, "one node name of %s was expected, not %s", show(t), show(name));
        n->type = (struct type *)t;
        n->flag = true;
        return;
    }
    if (t->kind != K_ARRAY) {
        error_at(n->at, "%s is neither an array nor a graph, and has no index", show(t));
        return;
    }
    if (count != t->dims)
        error_at(
            n->list->at,
            "%d %s expected, here %s %d (a[i][j] is an element of an array of arrays, a[i, j] one of two dimensions)",
            t->dims, t->dims == 1 ? "index was" : "indices were", count == 1 ? "is" : "are", count);
    int k = 0;
    for (struct node *i = n->list; i && k < t->dims; i = i->next, k++)
        check_fits(i, t->index[k], "the index");
    n->type = t->elem;
}

static void check_bang(struct context *c, struct node *n)
{
    check_expr(c, n->a);
    const struct type *t = n->a->type;
    n->type = &type_error;
    if (t->kind == K_ERROR)
        return;
    struct field *f = t->kind == K_GRAPH && !n->a->flag ? find_field(t->fields, n->name) : NULL;
    if (!f || f->sub->type->kind != K_NODENAME) {
        error_at(n->at, "a graph and the name of one of its root fields that holds a node name were expected around !");
        return;
    }
    n->type = (struct type *)t;
    n->flag = true;
}

static void check_aggregate(struct context *c, struct node *n)
{
    struct context in = *c;
    struct symbol *s = resolve(c, n->a, "a type");
    struct type *t = s && s->kind == S_TYPE ? s->type : NULL;
    (void)in;
    n->type = t ? t : &type_error;
    for (struct node *e = n->list; e; e = e->next)
        check_expr(c, e);
    if (s && !t)
        error_at(n->at, "the name of a type was expected before the aggregate");
    if (!t)
        return;
    struct field *f = t->fields;
    struct node *e = n->list;
    switch (t->kind) {
    case K_RECORD:
        for (; f && e; f = f->next, e = e->next)
            check_fits(e, f->sub->type, form("the field %s", f->name));
        if (f || e)
            error_at(e ? e->at : n->at,
                     f ? "the field %s of %s has no value here" : "here are more values than %s%s has fields",
                     f ? f->name : "", show(t));
        if (has_object(t))
            error_at(n->at, "%s holds an object, for which there are no values", show(t));
        break;
    case K_UNION:
        if (!e || !e->next || e->next->next) {
            error_at(n->at, "a union's aggregate is {tag, value}");
            break;
        }
        check_fits(e, t->tag_type, "the tag");
        if (!constant(c, e, "the tag of an aggregate"))
            break;
        while (f && f->tag != e->value->i)
            f = f->next;
        if (!f)
            error_at(e->at, "%s has no alternative with this tag", show(t));
        else
            check_fits(e->next, f->sub->type, form("the alternative %s", f->name));
        break;
    case K_SET:
    case K_BAG:
        for (; e; e = e->next)
            check_fits(e, t->elem, "the element");
        break;
    case K_ERROR:
        break;
    default:
        error_at(n->at, "%s is no record, union, set or bag; arrays are written as %s:[...]", show(t), show(t));
    }
}

static void check_elements(struct context *c, struct node *list, const struct type *t, int dims, int *sizes)
{
    int count = 0;
    for (struct node *e = list; e; e = e->next, count++) {
        if (dims > 1) {
            if (e->kind != N_NESTED)
                error_at(e->at, "a list in brackets was expected for each row of the array");
            else
                check_elements(c, e->list, t, dims - 1, sizes + 1);
        } else if (e->kind == N_NESTED) {
            error_at(e->at, "the array has fewer dimensions than brackets");
        } else {
            check_expr(c, e);
            check_fits(e, t->elem, "the element");
        }
    }
    if (*sizes >= 0 && *sizes != count && list)
        error_at(list->at, "all rows have the same number of elements; %d were expected, here are %d", *sizes, count);
    *sizes = count;
}

static void check_array_aggregate(struct context *c, struct node *n)
{
    struct symbol *s = resolve(c, n->a, "an array type");
    int sizes[4] = {-1, -1, -1, -1};
    n->type = s && s->kind == S_TYPE && s->type->kind == K_ARRAY ? s->type : &type_error;
    if (s && n->type->kind == K_ERROR)
        error_at(n->at, "the name of an array type was expected before the aggregate");
    if (n->type->kind != K_ARRAY)
        return;
    if (has_object(n->type))
        error_at(n->at, "%s holds objects, for which there are no values", show(n->type));
    check_elements(c, n->list, n->type, n->type->dims, sizes);
}

static struct type *wider(struct type *a, struct type *b)
{
    if (a->kind == K_ERROR || b->kind == K_ERROR)
        return &type_error;
    return a->kind >= b->kind ? a : b;
}

static bool numeric(const struct type *t)
{
    return is_integer(t) || is_real(t);
}

static const char *const op_names[] = {"?", "=", "/=", "<", "<=", ">",  ">=", "IN", "+", "-",   "*", "/",
                                       "%", "|", "^",  "&", "<<", ">>", "-",  "+",  "~", "AND", "OR"};

/* A generic formal allows less than the actual type would. */
static void check_formal(struct node *n, const struct type *t)
{
    if (t->formal == FORMAL_TYPE || (t->formal == FORMAL_SCALAR && n->op >= OP_ADD))
        error_at(n->at, "%s is a formal of a generic unit that does not offer %s; declare it as %s TYPE", show(t),
                 op_names[n->op], n->op >= OP_ADD ? "NUMERIC" : "SCALAR");
}

static void check_relation(struct node *n, const struct type *a, const struct type *b)
{
    n->type = &type_bool;
    if (n->op == OP_IN) {
        if (b->kind != K_SET && b->kind != K_BAG)
            error_at(n->b->at, "a set or a bag was expected after IN, not %s", show(b));
        else
            check_fits(n->a, b->elem, "the element");
    } else if (!fits(a, b)) {
        error_at(n->at, "%s and %s cannot be compared%s", show(a), show(b),
                 numeric(a) && numeric(b) ? " (use FLOAT or TRUNC)" : "");
    } else if (n->op == OP_EQ || n->op == OP_NE) {
        if (!has_equality(a) || !has_equality(b))
            error_at(n->at, "values of %s cannot be compared", show(a));
    } else if (!numeric(a) && a->kind != K_ENUM) {
        error_at(n->at, "%s has no order", show(a));
    }
}

static void check_binary(struct context *c, struct node *n)
{
    check_expr(c, n->a);
    check_expr(c, n->b);
    struct type *a = n->a->type, *b = n->b->type;
    n->type = n->op <= OP_IN ? &type_bool : &type_error;
    if (a->kind == K_ERROR || b->kind == K_ERROR)
        return;
    if (n->op != OP_IN)
        check_formal(n, a);
    check_formal(n, n->op == OP_IN ? &type_int : b);
    if (n->op <= OP_IN) {
        check_relation(n, a, b);
        return;
    }
    bool arithmetic = n->op <= OP_DIV;
    if (arithmetic && (a->kind == K_SET || a->kind == K_BAG) && same(a, b)) {
        n->type = a;
        return;
    }
    if ((is_integer(a) && is_integer(b)) || (arithmetic && is_real(a) && is_real(b))) {
        n->type = wider(a, b);
        return;
    }
    error_at(n->at, "%s has no operands of type %s and %s%s", op_names[n->op], show(a), show(b),
             numeric(a) && numeric(b) ? " (integers and reals do not mix: use FLOAT or TRUNC)" : "");
}

static void check_boolean(struct context *c, struct node *e, const char *what)
{
    check_expr(c, e);
    check_fits(e, &type_bool, what);
}

static void check_unary(struct context *c, struct node *n)
{
    check_expr(c, n->a);
    n->type = n->a->type;
    if (n->type->kind == K_ERROR)
        return;
    check_formal(n, n->type);
    if (!is_integer(n->type) && (n->op == OP_COM || !is_real(n->type))) {
        error_at(n->at, "%s has no operand of type %s", op_names[n->op], show(n->type));
        n->type = &type_error;
    }
}

static int64_t shift(int64_t a, int64_t n, bool left)
{
    if (n < 0 || n > 63)
        return 0;
    return left ? (int64_t)((uint64_t)a << n) : a >> n;
}

static int compare_values(const struct value *a, const struct value *b)
{
    if (a->kind == V_REAL)
        return (a->r > b->r) - (a->r < b->r);
    return (a->i > b->i) - (a->i < b->i);
}

static void fold_binary(struct node *n, const struct value *a, const struct value *b)
{
    uint64_t x = (uint64_t)a->i, y = (uint64_t)b->i;
    int order = compare_values(a, b);
    if (a->kind != b->kind || a->kind == V_STRING)
        return;
    switch (n->op) {
    case OP_EQ:
        n->value = int_value(order == 0);
        return;
    case OP_NE:
        n->value = int_value(order != 0);
        return;
    case OP_LT:
        n->value = int_value(order < 0);
        return;
    case OP_LE:
        n->value = int_value(order <= 0);
        return;
    case OP_GT:
        n->value = int_value(order > 0);
        return;
    case OP_GE:
        n->value = int_value(order >= 0);
        return;
    default:
        break;
    }
    if (a->kind == V_REAL) {
        if (n->op == OP_DIV && b->r == 0)
            error_at(n->at, "division by zero");
        n->value = real_value(n->op == OP_ADD   ? a->r + b->r
                              : n->op == OP_SUB ? a->r - b->r
                              : n->op == OP_MUL ? a->r * b->r
                              : b->r == 0       ? 0
                                                : a->r / b->r);
        return;
    }
    if ((n->op == OP_DIV && b->i == 0) || (n->op == OP_MOD && b->i <= 0)) {
        error_at(n->at, n->op == OP_DIV ? "division by zero" : "the right operand of %% has to be positive");
        return;
    }
    switch (n->op) {
    case OP_ADD:
        n->value = int_value((int64_t)(x + y));
        break;
    case OP_SUB:
        n->value = int_value((int64_t)(x - y));
        break;
    case OP_MUL:
        n->value = int_value((int64_t)(x * y));
        break;
    case OP_DIV:
        n->value = int_value(b->i == -1 ? (int64_t)(0 - x) : a->i / b->i);
        break;
    case OP_MOD:
        n->value = int_value(a->i % b->i);
        break;
    case OP_BOR:
        n->value = int_value((int64_t)(x | y));
        break;
    case OP_BXOR:
        n->value = int_value((int64_t)(x ^ y));
        break;
    case OP_BAND:
        n->value = int_value((int64_t)(x & y));
        break;
    case OP_SHL:
        n->value = int_value(shift(a->i, b->i, true));
        break;
    case OP_SHR:
        n->value = int_value(shift(a->i, b->i, false));
        break;
    default:
        break;
    }
    if (n->value && n->type->kind == K_INT && (n->value->i > INT32_MAX || n->value->i < INT32_MIN))
        n->type = &type_long;
}

void fold(struct node *n)
{
    const struct value *a = n->a ? n->a->value : NULL, *b = n->b ? n->b->value : NULL;
    if (n->type->kind == K_ERROR || !a)
        return;
    if (n->kind == N_BINARY && b && n->op != OP_IN) {
        fold_binary(n, a, b);
    } else if (n->kind == N_UNARY) {
        if (a->kind == V_REAL)
            n->value = n->op == OP_NEG ? real_value(-a->r) : real_value(a->r);
        else
            n->value = int_value(n->op == OP_NEG ? (int64_t)(0 - (uint64_t)a->i) : n->op == OP_COM ? ~a->i : a->i);
    } else if (n->kind == N_NOT) {
        n->value = int_value(!a->i);
    } else if ((n->kind == N_AND || n->kind == N_OR) && b) {
        n->value = int_value(n->kind == N_AND ? a->i && b->i : a->i || b->i);
    }
}

static void check_literal(struct node *n)
{
    n->value = n->kind == N_REAL ? real_value(n->r) : int_value(n->i);
    n->type = n->kind == N_REAL   ? &type_double
              : n->kind == N_CHAR ? &type_char
              : n->i > INT32_MAX  ? &type_long
                                  : &type_int;
    if (n->kind == N_STRING) {
        n->value->kind = V_STRING;
        n->value->s = n->name;
        n->value->n = n->n;
        n->type = &type_string;
    }
}

/* As check_expr, but n may be a node of a graph, which has n->flag and is no value: only a dot may follow it. */
static void check_node(struct context *c, struct node *n)
{
    n->flag = false;
    switch (n->kind) {
    case N_INT:
    case N_REAL:
    case N_CHAR:
    case N_STRING:
        check_literal(n);
        break;
    case N_NAME:
        check_name(c, n);
        break;
    case N_DOT:
        check_dot(c, n);
        break;
    case N_INDEX:
        check_index(c, n);
        break;
    case N_BANG:
        check_bang(c, n);
        break;
    case N_CALL: {
        struct symbol *s = n->a->kind == N_NAME ? scope_find(c->scope, n->a->name) : qualified(c, n->a);
        if (s && s->kind == S_BUILTIN) {
            n->builtin = s->builtin;
            n->type = &type_error;
            check_builtin(c, n, false);
        } else {
            check_call(c, n, false);
        }
        break;
    }
    case N_OPCALL:
        check_operation_call(c, n, false);
        break;
    case N_AGGREGATE:
        check_aggregate(c, n);
        break;
    case N_ARRAYAGG:
        check_array_aggregate(c, n);
        break;
    case N_AND:
    case N_OR:
        check_boolean(c, n->a, n->kind == N_AND ? "the left operand of AND" : "the left operand of OR");
        check_boolean(c, n->b, n->kind == N_AND ? "the right operand of AND" : "the right operand of OR");
        n->type = &type_bool;
        break;
    case N_NOT:
        check_boolean(c, n->a, "the operand of NOT");
        n->type = &type_bool;
        break;
    case N_BINARY:
        check_binary(c, n);
        break;
    case N_UNARY:
        check_unary(c, n);
        break;
    default:
        error_at(n->at, "an expression was expected");
        n->type = &type_error;
    }
    fold(n);
}

void check_expr(struct context *c, struct node *n)
{
    check_node(c, n);
    if (!n->flag)
        return;
    error_at(n->at, "a field of the node was expected: a node by itself is no value");
    n->flag = false;
    n->type = &type_error;
}
