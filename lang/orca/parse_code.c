/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parse_code.c - statements and expressions. The rule of the grammar stands above its function. */
#include "lang/orca/orca.h"
#include <string.h>

struct operator
{
    const char *s;
    int op;
};
static const struct operator relations[] = {{"=", OP_EQ}, {"/=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
                                            {"<", OP_LT}, {">", OP_GT},  {"IN", OP_IN}, {0}};
static const struct operator adding[] = {{"+", OP_ADD},  {"-", OP_SUB},  {"OR", OP_OR},  {"|", OP_BOR},
                                         {"^", OP_BXOR}, {"<<", OP_SHL}, {">>", OP_SHR}, {0}};
static const struct operator multiplying[] = {{"*", OP_MUL},   {"/", OP_DIV},  {"%", OP_MOD},
                                              {"AND", OP_AND}, {"&", OP_BAND}, {0}};

static int which(struct parser *p, const struct operator* o)
{
    for (; o->s; o++)
        if (is(p, o->s))
            return o->op;
    return 0;
}

static struct node *binary(struct parser *p, int op, struct node *a)
{
    struct node *n = new_node(op == OP_AND ? N_AND : op == OP_OR ? N_OR : N_BINARY, p->t->at);
    n->op = op;
    n->a = a;
    p->t++;
    return n;
}

static void too_long(struct parser *p)
{
    syntax(p, form("an expression of at most %d operands in a row", CHAIN_MAX));
}

static struct node *parse_list(struct parser *p, const char *end)
{
    struct node *first = NULL, **last = &first;
    while (!is(p, end)) {
        *last = parse_expr(p);
        last = &(*last)->next;
        if (!take(p, ","))
            break;
    }
    expect(p, end, "or , and an expression");
    return first;
}

/* Actuals = "(" [ Expr { "," Expr } ] ")" */
struct node *parse_args(struct parser *p)
{
    expect(p, "(", "and arguments");
    return parse_list(p, ")");
}

/* Designator = QualId [ Index { "." id | Index } ] ; Index = "[" Expr { "," Expr } "]" | "!" id */
static struct node *parse_designator(struct parser *p)
{
    struct node *n = new_node(N_NAME, p->t->at);
    n->name = take_name(p, "a name");
    for (int i = 0;; i++) {
        struct node *d = new_node(is(p, ".") ? N_DOT : is(p, "!") ? N_BANG : N_INDEX, p->t->at);
        if (d->kind == N_INDEX && !is(p, "["))
            return n;
        if (i > CHAIN_MAX / 4)
            too_long(p);
        p->t++;
        d->a = n;
        if (d->kind == N_INDEX) {
            d->list = parse_list(p, "]");
            if (!d->list)
                syntax(p, "an index before ]");
        } else {
            d->name = take_name(p, "the name of a field");
        }
        n = d;
    }
}

/* ArrayEls = [ Expr { "," Expr } | "[" ArrayEls "]" { "," "[" ArrayEls "]" } ] */
static struct node *parse_elements(struct parser *p)
{
    struct node *first = NULL, **last = &first;
    deeper(p);
    if (!is(p, "[")) {
        first = parse_list(p, "]");
    } else {
        do {
            *last = new_node(N_NESTED, p->t->at);
            expect(p, "[", "and elements");
            (*last)->list = parse_elements(p);
            last = &(*last)->next;
        } while (take(p, ","));
        expect(p, "]", "after the elements");
    }
    p->depth--;
    return first;
}

static struct node *parse_call(struct parser *p, struct node *designator)
{
    struct node *n = new_node(is(p, "$") ? N_OPCALL : N_CALL, designator->at);
    n->a = designator;
    if (take(p, "$")) {
        if (is(p, "$"))
            syntax(p, "the name of an operation ($$ belongs to the data-parallel language)");
        n->name = take_name(p, "the name of an operation");
    }
    n->list = parse_args(p);
    return n;
}

static struct node *parse_factor(struct parser *p)
{
    const struct token *t = p->t;
    struct node *n;
    switch (t->kind) {
    case TOK_INT:
    case TOK_REAL:
    case TOK_CHAR:
    case TOK_STRING:
        n = new_node(t->kind == TOK_INT    ? N_INT
                     : t->kind == TOK_REAL ? N_REAL
                     : t->kind == TOK_CHAR ? N_CHAR
                                           : N_STRING,
                     t->at);
        n->i = t->i;
        n->r = t->r;
        n->name = t->s;
        n->n = t->n;
        p->t++;
        return n;
    case TOK_NAME:
        n = parse_designator(p);
        if (is(p, "(") || is(p, "$"))
            return parse_call(p, n);
        if (is(p, ":") && p->t[1].kind == TOK_SIGN && (strcmp(p->t[1].s, "{") == 0 || strcmp(p->t[1].s, "[") == 0)) {
            struct node *g = new_node(p->t[1].s[0] == '{' ? N_AGGREGATE : N_ARRAYAGG, n->at);
            g->a = n;
            p->t += 2;
            g->list = g->kind == N_AGGREGATE ? parse_list(p, "}") : parse_elements(p);
            return g;
        }
        return n;
    default:
        break;
    }
    if (is(p, "FROM")) {
        n = new_node(N_NAME, t->at);
        n->name = "FROM";
        p->t++;
        return parse_call(p, n);
    }
    if (take(p, "(")) {
        n = parse_expr(p);
        expect(p, ")", "after the expression");
        return n;
    }
    if (is(p, "NOT") || is(p, "~")) {
        deeper(p);
        n = new_node(is(p, "NOT") ? N_NOT : N_UNARY, t->at);
        n->op = OP_COM;
        p->t++;
        n->a = parse_factor(p);
        p->depth--;
        return n;
    }
    syntax(p, "an expression");
}

/* Term = Factor { ( "*" | "/" | "%" | AND | "&" ) Factor } ; an operator before := belongs to an assignment */
static struct node *parse_term(struct parser *p)
{
    struct node *n = parse_factor(p);
    int op;
    for (int i = 0; (op = which(p, multiplying)) != 0; i++) {
        if (i > CHAIN_MAX)
            too_long(p);
        n = binary(p, op, n);
        n->b = parse_factor(p);
    }
    return n;
}

/* Simple = [ "+" | "-" ] Term { ( "+" | "-" | OR | "|" | "^" | "<<" | ">>" ) Term } */
static struct node *parse_simple(struct parser *p)
{
    struct node *n;
    int op;
    if (is(p, "+") || is(p, "-")) {
        n = new_node(N_UNARY, p->t->at);
        n->op = is(p, "-") ? OP_NEG : OP_PLUS;
        p->t++;
        n->a = parse_term(p);
    } else {
        n = parse_term(p);
    }
    for (int i = 0; (op = which(p, adding)) != 0; i++) {
        /* In a CASE, | begins the next branch; no expression stands before it there, so it is an operator here. */
        if (i > CHAIN_MAX)
            too_long(p);
        n = binary(p, op, n);
        n->b = parse_term(p);
    }
    return n;
}

/* Expr = Simple [ ( "=" | "/=" | "<" | ">" | "<=" | ">=" | IN ) Simple ] */
struct node *parse_expr(struct parser *p)
{
    deeper(p);
    struct node *n = parse_simple(p);
    int op = which(p, relations);
    if (op) {
        n = binary(p, op, n);
        n->b = parse_simple(p);
        if (which(p, relations))
            syntax(p, "the end of the comparison (comparisons have no order among themselves: use parentheses)");
    }
    p->depth--;
    return n;
}

static struct node *parse_if(struct parser *p)
{
    struct node *first = new_node(N_IF, p->t->at), *n = first;
    p->t++;
    for (;;) {
        n->a = parse_expr(p);
        expect(p, "THEN", "after the condition");
        n->list = parse_stats(p);
        if (!is(p, "ELSIF"))
            break;
        n->b = new_node(N_IF, p->t->at);
        n = n->b;
        deeper(p);
        p->t++;
    }
    for (struct node *e = first->b; e; e = e->b)
        p->depth--;
    if (is(p, "ELSE")) {
        n->b = new_node(N_NONE, p->t++->at);
        n->b->list = parse_stats(p);
    }
    expect(p, "FI", "or ; and a statement, ELSIF or ELSE");
    return first;
}

/* CASE Expr OF [Case] { "|" [Case] } [ ELSE Stats ] ESAC ; Case = Label { "," Label } "=>" Stats */
static struct node *parse_case(struct parser *p)
{
    struct node *n = new_node(N_CASE, p->t++->at), **last = &n->list;
    n->a = parse_expr(p);
    expect(p, "OF", "after the expression");
    do {
        if (is(p, "|") || is(p, "ELSE") || is(p, "ESAC"))
            continue;
        struct node *alt = new_node(N_ALT, p->t->at), **label = &alt->a;
        do {
            struct node *r = new_node(N_RANGE, p->t->at);
            r->a = parse_expr(p);
            if (take(p, ".."))
                r->b = parse_expr(p);
            *label = r;
            label = &r->next;
        } while (take(p, ","));
        expect(p, "=>", "after the labels");
        alt->list = parse_stats(p);
        *last = alt;
        last = &alt->next;
    } while (take(p, "|"));
    if (is(p, "ELSE")) {
        n->b = new_node(N_NONE, p->t++->at);
        n->b->list = parse_stats(p);
    }
    expect(p, "ESAC", "or | and a case, ELSE, or ; and a statement");
    return n;
}

static struct node *parse_loop_body(struct parser *p)
{
    expect(p, "DO", "and the statements of the loop");
    struct node *list = parse_stats(p);
    expect(p, "OD", "or ; and a statement");
    return list;
}

/* FOR id IN Expr [ ".." Expr ] DO Stats OD */
static struct node *parse_for(struct parser *p)
{
    p->t++;
    struct node *n = new_node(N_FOR, p->t->at);
    n->name = take_name(p, "the name of the loop variable");
    expect(p, "IN", "and a range, a set or a bag");
    n->a = parse_expr(p);
    if (take(p, ".."))
        n->b = parse_expr(p);
    n->list = parse_loop_body(p);
    return n;
}

static struct node *parse_assignment(struct parser *p)
{
    struct node *designator = parse_designator(p);
    if (is(p, "(") || is(p, "$")) {
        struct node *n = new_node(N_CALLSTAT, designator->at);
        n->a = parse_call(p, designator);
        return n;
    }
    struct node *n = new_node(N_ASSIGN, designator->at);
    n->a = designator;
    int op = which(p, multiplying);
    op = op ? op : which(p, adding);
    if (op) {
        n->op = op;
        p->t++;
    }
    expect(p, ":=", ", an operator and :=, ( or $");
    n->b = parse_expr(p);
    return n;
}

/* NULL: no statement begins here */
static struct node *parse_stat(struct parser *p)
{
    struct node *n;
    if (p->t->kind == TOK_NAME)
        return parse_assignment(p);
    if (is(p, "IF"))
        return parse_if(p);
    if (is(p, "CASE"))
        return parse_case(p);
    if (is(p, "FOR"))
        return parse_for(p);
    if (is(p, "WHILE")) {
        n = new_node(N_WHILE, p->t++->at);
        n->a = parse_expr(p);
        n->list = parse_loop_body(p);
        return n;
    }
    if (is(p, "DO")) {
        n = new_node(N_LOOP, p->t->at);
        n->list = parse_loop_body(p);
        return n;
    }
    if (is(p, "REPEAT")) {
        n = new_node(N_REPEAT, p->t++->at);
        n->list = parse_stats(p);
        expect(p, "UNTIL", "or ; and a statement");
        n->a = parse_expr(p);
        return n;
    }
    if (is(p, "EXIT"))
        return new_node(N_EXIT, p->t++->at);
    if (is(p, "RETURN")) {
        n = new_node(N_RETURN, p->t++->at);
        if (!is(p, ";"))
            n->a = parse_expr(p);
        return n;
    }
    if (is(p, "FORK")) {
        n = new_node(N_FORK, p->t++->at);
        n->a = parse_qualid(p);
        n->list = parse_args(p);
        if (take(p, "ON"))
            n->b = parse_expr(p);
        return n;
    }
    if (is(p, "FROM")) /* as a statement: the element is thrown away, which the checker refuses by name */
    {
        n = new_node(N_CALLSTAT, p->t->at);
        n->a = parse_factor(p);
        return n;
    }
    if (is(p, "GUARD"))
        syntax(p, "a statement (guards stand directly below the BEGIN of an operation, with no statement beside them)");
    return NULL;
}

/* Stats = { [ Stat ] ";" } */
struct node *parse_stats(struct parser *p)
{
    struct node *first = NULL, **last = &first;
    deeper(p);
    for (;;) {
        if (take(p, ";"))
            continue;
        struct node *n = parse_stat(p);
        if (!n)
            break;
        *last = n;
        last = &n->next;
        expect(p, ";", "after the statement");
    }
    p->depth--;
    return first;
}

/* Guard { Guard } ; Guard = GUARD Expr DO Stats OD ";" */
struct node *parse_guards(struct parser *p)
{
    struct node *first = NULL, **last = &first;
    while (is(p, "GUARD")) {
        struct node *n = new_node(N_GUARD, p->t++->at);
        n->a = parse_expr(p);
        n->list = parse_loop_body(p);
        expect(p, ";", "after OD");
        *last = n;
        last = &n->next;
    }
    return first;
}
