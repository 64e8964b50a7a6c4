/* SPDX-License-Identifier: BSD-3-Clause
 *
 * check_call.c - calls of functions, operations and processes: arguments, aliases, and what each context allows. */
#include "lang/orca/orca.h"
#include <string.h>

enum overlap { APART, PERHAPS, OVERLAP };

static int path(struct node *n, struct node **steps, int max)
{
    int count = 0;
    for (; n && ((n->kind == N_DOT && !n->sym) || n->kind == N_INDEX || n->kind == N_BANG); n = n->a)
        if (count < max)
            steps[count++] = n;
    for (int i = 0; i < count / 2; i++) { /* from the root on */
        struct node *t = steps[i];
        steps[i] = steps[count - 1 - i];
        steps[count - 1 - i] = t;
    }
    return count;
}

/* Whether two designators may be parts of the same memory. */
static enum overlap overlap(struct node *a, struct node *b)
{
    enum { STEPS = 260 };
    struct node **p = alloc(2 * STEPS * sizeof *p), **q = p + STEPS;
    struct symbol *r = root_of(a), *o = root_of(b);
    if (r && o && (r->var == VAR_SELF || o->var == VAR_SELF) && (r->var == VAR_FIELD || o->var == VAR_FIELD))
        return OVERLAP;
    if (!r || r != o)
        return APART;
    int n = path(a, p, STEPS), m = path(b, q, STEPS);
    bool perhaps = false;
    for (int i = 0; i < n && i < m; i++) {
        if (p[i]->kind == N_DOT && q[i]->kind == N_DOT) {
            if (strcmp(p[i]->name, q[i]->name) != 0 && (!p[i]->a->type || p[i]->a->type->kind != K_UNION))
                return APART;
        } else if (p[i]->kind == N_INDEX && q[i]->kind == N_INDEX) {
            for (struct node *x = p[i]->list, *y = q[i]->list; x && y; x = x->next, y = y->next) {
                if (!x->value || !y->value)
                    perhaps = true;
                else if (x->value->i != y->value->i)
                    return APART;
            }
        } else {
            perhaps = true;
        }
    }
    return perhaps ? PERHAPS : OVERLAP;
}

/* n->flag of an argument: generated code has to copy it, since it overlaps one that is changed. n->op of an argument:
 * generated code has to check it against the others. */
static void check_aliases(struct node *list, struct symbol **params, struct node *modes)
{
    int i = 0;
    for (struct node *a = list; a; a = a->next, i++) {
        int mode = params ? params[i]->mode : modes->op;
        struct node *more = modes;
        int j = 0;
        for (struct node *b = list; b; b = b->next, j++) {
            int other = params ? params[j]->mode : 0;
            if (!params) {
                struct node *m = modes;
                for (int k = 0; k < j && m; k++)
                    m = m->next;
                other = m ? m->op : 0;
            }
            if (a == b || mode == MODE_IN)
                continue;
            enum overlap o = overlap(a, b);
            if (o == APART)
                continue;
            if (other == MODE_IN)
                b->flag = true;
            else if (o == OVERLAP && j > i)
                error_at(b->at, "illegal alias: this argument overlaps another that is SHARED or OUT");
            else if (o == PERHAPS && j > i)
                b->i = 1; /* a check when the program runs */
        }
        if (!params)
            modes = more->next;
    }
}

static void check_args(struct context *c, struct node *n, const char *name, struct symbol **params, int count,
                       struct node *modes)
{
    int i = 0;
    struct node *m = modes, *a = n->list;
    for (; a && (params ? i < count : m != NULL); a = a->next, i++, m = m ? m->next : NULL) {
        const struct type *t = params ? params[i]->type : m->type;
        int mode = params ? params[i]->mode : m->op;
        const char *what =
            params && *params[i]->name ? form("the argument for %s", params[i]->name) : form("argument %d", i + 1);
        check_expr(c, a);
        a->flag = false;
        if (mode == MODE_IN) {
            check_fits(a, t, what);
        } else {
            if (!same(t, a->type))
                error_at(a->at, "%s is of type %s, but %s was expected", what, show_beside(a->type, t),
                         show_beside(t, a->type));
            check_assignable(c, a, mode == MODE_OUT ? "take the OUT parameter" : "be the SHARED argument");
        }
    }
    if (a)
        error_at(a->at, "%s has only %d parameter%s", name, i, i == 1 ? "" : "s");
    else if (params ? i < count : m != NULL)
        error_at(n->at, "an argument for %s of %s is missing", params ? params[i]->name : "a parameter", name);
    else
        check_aliases(n->list, params, modes);
}

static void check_result(struct node *n, const char *name, struct type *result, bool statement)
{
    if (statement && result)
        error_at(n->at, "the result of %s cannot be ignored; assign it", name);
    if (!statement && !result)
        error_at(n->at, "%s has no result, so a value cannot be expected of it", name);
    n->type = result ? result : &type_error;
}

void check_call(struct context *c, struct node *n, bool statement)
{
    n->type = &type_error;
    struct symbol *s = n->a->kind == N_NAME ? scope_find(c->scope, n->a->name) : NULL;
    if (!s && n->a->kind == N_NAME) {
        error_at(n->a->at, "%s is not declared here; a function was expected", n->a->name);
        return;
    }
    if (n->a->kind == N_DOT && n->a->a->kind == N_NAME) {
        struct symbol *u = scope_find(c->scope, n->a->a->name);
        if (u && u->kind == S_UNIT && !(s = resolve(c, n->a, "a function")))
            return;
    }
    s = s && s->same ? s->same : s;
    if (s && s->kind == S_FUNCTION) {
        n->sym = s;
        check_args(c, n, s->name, s->params, s->params_count, NULL);
        check_result(n, s->name, s->type, statement);
        return;
    }
    check_expr(c, n->a);
    const struct type *t = n->a->type;
    if (t->kind == K_ERROR)
        return;
    if (t->kind != K_FUNCTION) {
        error_at(n->at, "a function was expected before the arguments, not a value of type %s", show(t));
        return;
    }
    check_args(c, n, "the function", NULL, 0, t->params);
    check_result(n, "the function", t->elem, statement);
}

void check_operation_call(struct context *c, struct node *n, bool statement)
{
    check_expr(c, n->a);
    n->type = &type_error;
    const struct type *t = n->a->type;
    if (t->kind == K_ERROR)
        return;
    if (t->kind != K_OBJECT) {
        error_at(n->a->at, "an object was expected before $%s, not a value of type %s", n->name, show(t));
        return;
    }
    struct symbol *s = root_of(n->a);
    struct unit *u = t->unit ? t->unit : t->canon->unit;
    for (int i = 0; i < u->operations_count; i++)
        if (strcmp(u->operations[i]->name, n->name) == 0)
            n->sym = u->operations[i];
    if (!n->sym) {
        error_at(n->at, "%s has no operation %s", show(t), n->name);
        return;
    }
    check_args(c, n, n->name, n->sym->params, n->sym->params_count, NULL);
    /* An argument that is part of the object would change under an operation on SELF. */
    for (struct node *a = n->list; a && s && s->var == VAR_SELF; a = a->next)
        a->flag = root_of(a) && root_of(a)->var == VAR_FIELD;
    check_result(n, n->name, n->sym->type, statement);
}

void check_fork(struct context *c, struct node *n)
{
    struct symbol *s = resolve(c, n->a, "a process");
    if (n->b) {
        check_expr(c, n->b);
        check_fits(n->b, &type_int, "the cpu");
    }
    if (!c->routine || c->routine->kind != S_PROCESS)
        error_at(n->at, "only a process may fork processes");
    if (!s)
        return;
    if (s->kind != S_PROCESS) {
        error_at(n->at, "%s is no process", s->name);
        return;
    }
    n->sym = s;
    check_args(c, n, s->name, s->params, s->params_count, NULL);
    for (struct node *a = n->list; a; a = a->next) {
        struct symbol *r = root_of(a);
        if (r && has_object(r->type))
            r->forked = true;
    }
}

/* ---- built-in functions ---- */

static const struct {
    const char *name;
    int which, least, most;
} builtins[] = {
    {"ABS", B_ABS, 1, 1},
    {"CAP", B_CAP, 1, 1},
    {"CHR", B_CHR, 1, 1},
    {"FLOAT", B_FLOAT, 1, 1},
    {"MAX", B_MAX, 1, 1},
    {"MIN", B_MIN, 1, 1},
    {"ODD", B_ODD, 1, 1},
    {"ORD", B_ORD, 1, 1},
    {"TRUNC", B_TRUNC, 1, 1},
    {"VAL", B_VAL, 2, 2},
    {"SIZE", B_SIZE, 1, 1},
    {"LB", B_LB, 1, 2},
    {"UB", B_UB, 1, 2},
    {"ADDNODE", B_ADDNODE, 1, 1},
    {"DELETENODE", B_DELETENODE, 2, 2},
    {"INSERT", B_INSERT, 2, 2},
    {"DELETE", B_DELETE, 2, 2},
    {"FROM", B_FROM, 1, 1},
    {"ASSERT", B_ASSERT, 1, 1},
    {"NCPUS", B_NCPUS, 0, 0},
    {"MYCPU", B_MYCPU, 0, 0},
    {"Read", B_READ, 1, 1 << 20},
    {"Write", B_WRITE, 1, 1 << 20},
    {"WriteLine", B_WRITELINE, 0, 1 << 20},
    {"Strategy", B_STRATEGY, 3, 3},
};

static void predeclare(const char *name, enum symbol_kind kind, struct type *t, int64_t i)
{
    struct symbol *s = new_symbol(kind, name, (struct place){0});
    s->type = t;
    s->builtin = (int)i;
    s->value = alloc(sizeof *s->value);
    s->value->i = i;
    scope_add(&predeclared, s);
}

void declare_builtins(void)
{
    static struct type *string_index[] = {&type_int};
    struct type *basic[] = {&type_short,  &type_int,  &type_long, &type_float,
                            &type_double, &type_bool, &type_char, &type_string};
    type_string.index = string_index;
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++)
        predeclare(basic[i]->name, S_TYPE, basic[i], 0);
    predeclare("longreal", S_TYPE, &type_double, 0);
    predeclare("false", S_CONST, &type_bool, 0);
    predeclare("true", S_CONST, &type_bool, 1);
    predeclare("NIL", S_CONST, &type_nil, 0);
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        predeclare(builtins[i].name, S_BUILTIN, NULL, builtins[i].which);
        if (lex_options.lower || lex_options.both) {
            char *low = copy_text(builtins[i].name, strlen(builtins[i].name));
            for (char *p = low; *p; p++)
                *p |= 32;
            if (!scope_find_here(&predeclared, low))
                predeclare(low, S_BUILTIN, NULL, builtins[i].which);
        }
    }
}

static void poison(struct context *c, struct node *n, const char *what)
{
    if (c->routine && !c->routine->poison) {
        c->routine->poisons = true;
        c->routine->poison = what;
    }
    if (c->in_operation)
        error_at(n->at, "%s must not be used in an operation, which may be executed on every cpu", what);
}

static bool wants(struct node *e, bool fits, const char *what)
{
    if (!fits && e->type->kind != K_ERROR)
        error_at(e->at, "%s was expected, not a value of type %s", what, show(e->type));
    return fits;
}

static struct type *type_argument(struct context *c, struct node *e)
{
    struct symbol *s = e->kind == N_NAME || e->kind == N_DOT ? resolve(c, e, "a type") : NULL;
    struct type *t = s && s->kind == S_TYPE ? s->type : &type_error;
    e->kind = N_TYPEARG;
    e->type = t;
    if (s && !is_discrete(t) && !is_real(t))
        error_at(e->at, "an integer, real or enumeration type was expected");
    return t;
}

static void set_int(struct node *n, int64_t i)
{
    n->value = alloc(sizeof *n->value);
    n->value->i = i;
}

static void check_limit(struct node *n, struct type *t, bool max)
{
    n->type = t;
    switch (t->kind) {
    case K_SHORT:
        set_int(n, max ? INT16_MAX : INT16_MIN);
        break;
    case K_INT:
        set_int(n, max ? INT32_MAX : INT32_MIN);
        break;
    case K_LONG:
        set_int(n, max ? INT64_MAX : INT64_MIN);
        break;
    case K_ENUM:
        set_int(n, max ? t->count - 1 : 0);
        break;
    case K_FLOAT:
    case K_DOUBLE:
        set_int(n, 0);
        n->value->kind = V_REAL;
        n->value->r = t->kind == K_FLOAT ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
        n->value->r = max ? n->value->r : -n->value->r;
        break;
    default:
        break;
    }
}

static void fold_builtin(struct node *n, struct node *a)
{
    const struct value *v = a->value;
    switch (n->builtin) {
    case B_ABS:
        set_int(n, v->i < 0 ? (int64_t)(0 - (uint64_t)v->i) : v->i);
        n->value->kind = v->kind;
        n->value->r = v->r < 0 ? -v->r : v->r;
        break;
    case B_CHR:
    case B_ORD:
        if (n->builtin == B_CHR && (v->i < 0 || v->i > 255))
            error_at(a->at, "CHR of %lld; characters go from 0 to 255", (long long)v->i);
        else
            set_int(n, v->i);
        break;
    case B_FLOAT:
        set_int(n, 0);
        n->value->kind = V_REAL;
        n->value->r = (double)v->i;
        break;
    case B_ODD:
        set_int(n, v->i & 1);
        break;
    default:
        break;
    }
}

static void check_container(struct context *c, struct node *n, struct node *e, struct node *set)
{
    if (!wants(set, set->type->kind == K_SET || set->type->kind == K_BAG, "a set or a bag"))
        return;
    check_assignable(c, set, "be changed");
    if (e)
        check_fits(e, set->type->elem, "the element");
    n->type = set->type->elem;
}

bool check_builtin(struct context *c, struct node *n, bool statement)
{
    int count = 0, k = 0;
    for (struct node *e = n->list; e; e = e->next)
        count++;
    while (builtins[k].which != n->builtin)
        k++;
    bool is_statement = n->builtin == B_DELETENODE || n->builtin == B_INSERT || n->builtin == B_DELETE ||
                        n->builtin == B_ASSERT || n->builtin >= B_READ;
    if (count < builtins[k].least || count > builtins[k].most) {
        error_at(n->at, "%s has %d argument%s, here are %d", builtins[k].name, builtins[k].least,
                 builtins[k].least == 1 ? "" : "s", count);
        return false;
    }
    if (statement != is_statement) {
        error_at(n->at,
                 statement ? "the result of %s cannot be ignored; assign it"
                           : "%s has no result, so a value cannot be expected of it",
                 builtins[k].name);
        return false;
    }
    struct node *a = n->list, *b = a ? a->next : NULL;
    bool type_first = n->builtin == B_MAX || n->builtin == B_MIN || n->builtin == B_VAL;
    for (struct node *e = a; e; e = e->next)
        if (e != a || !type_first)
            check_expr(c, e);
    switch (n->builtin) {
    case B_ABS:
        wants(a, is_integer(a->type) || is_real(a->type), "a number");
        n->type = a->type;
        break;
    case B_CAP:
        check_fits(a, &type_char, "the argument");
        n->type = &type_char;
        break;
    case B_CHR:
        wants(a, is_integer(a->type), "an integer");
        n->type = &type_char;
        break;
    case B_FLOAT:
        wants(a, is_integer(a->type), "an integer");
        n->type = &type_double;
        break;
    case B_MAX:
    case B_MIN:
        check_limit(n, type_argument(c, a), n->builtin == B_MAX);
        break;
    case B_ODD:
        wants(a, is_integer(a->type), "an integer");
        n->type = &type_int;
        break;
    case B_ORD:
        wants(a, is_discrete(a->type), "a value of an enumeration");
        n->type = &type_int;
        break;
    case B_TRUNC:
        wants(a, is_real(a->type), "a real");
        n->type = &type_int;
        break;
    case B_VAL:
        n->type = type_argument(c, a);
        wants(a, is_discrete(a->type), "an enumeration type");
        wants(b, is_integer(b->type), "an integer");
        break;
    case B_SIZE:
        wants(a, a->type->kind == K_ARRAY || a->type->kind == K_SET || a->type->kind == K_BAG,
              "an array, a set or a bag");
        n->type = &type_int;
        break;
    case B_LB:
    case B_UB:
        n->type = &type_int;
        if (!wants(a, a->type->kind == K_ARRAY, "an array"))
            break;
        n->i = 1;
        if (b && wants(b, is_integer(b->type), "a dimension") && constant(c, b, "the dimension"))
            n->i = b->value->i;
        if (n->i < 1 || n->i > a->type->dims)
            error_at(b ? b->at : n->at, "%s has %d dimension%s", show(a->type), a->type->dims,
                     a->type->dims == 1 ? "" : "s");
        else
            n->type = a->type->index[n->i - 1];
        break;
    case B_ADDNODE:
    case B_DELETENODE:
        if (!wants(a, a->type->kind == K_GRAPH && !a->flag, "a graph"))
            break;
        check_assignable(c, a, "be changed");
        if (n->builtin == B_ADDNODE) {
            n->type = new_type(K_NODENAME, n->at);
            n->type->elem = a->type;
            n->type->c = "nodename";
            n->type->formal = FORMAL_ANY; /* goes with each type of node names of this graph: fits() */
        } else {
            wants(b, b->type->kind == K_NODENAME && (!b->type->elem || same(b->type->elem, a->type)),
                  "a node name of that graph");
        }
        break;
    case B_INSERT:
    case B_DELETE:
        check_container(c, n, a, b);
        break;
    case B_FROM:
        check_container(c, n, NULL, a);
        break;
    case B_ASSERT:
        check_fits(a, &type_bool, "the assertion");
        break;
    case B_NCPUS:
        n->type = &type_int;
        break;
    case B_MYCPU:
        n->type = &type_int;
        poison(c, n, "MYCPU");
        break;
    case B_READ:
    case B_WRITE:
    case B_WRITELINE:
        poison(c, n, n->builtin == B_READ ? "Read" : "Write");
        for (struct node *e = a; e; e = e->next) {
            wants(e,
                  is_integer(e->type) || is_real(e->type) || same(e->type, &type_char) || same(e->type, &type_string),
                  "an integer, a real, a character or a string");
            if (n->builtin == B_READ)
                check_assignable(c, e, "be read");
        }
        break;
    case B_STRATEGY:
        wants(a, a->type->kind == K_OBJECT && root_of(a), "an object");
        wants(b, is_integer(b->type), "0 or 1");
        wants(b->next, is_integer(b->next->type), "a cpu");
        poison(c, n, "Strategy");
        break;
    default:
        break;
    }
    if (count == 1 && a->value && a->kind != N_TYPEARG)
        fold_builtin(n, a);
    return true;
}
