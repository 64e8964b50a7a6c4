/* SPDX-License-Identifier: BSD-3-Clause
 *
 * parse.c - recursive descent over units, declarations and types; parse_code.c has statements and expressions. The rule
 * of the grammar stands above its function. The first syntax error of a file ends the compiler's work on it. */
#include "lang/orca/orca.h"
#include <string.h>

static jmp_buf *failed;

bool is(struct parser *p, const char *s)
{
    return (p->t->kind == TOK_KEYWORD || p->t->kind == TOK_SIGN) && strcmp(p->t->s, s) == 0;
}

bool take(struct parser *p, const char *s)
{
    if (!is(p, s))
        return false;
    p->t++;
    return true;
}

void syntax(struct parser *p, const char *wanted)
{
    const struct token *t = p->t;
    const char *found = t->kind == TOK_INT || t->kind == TOK_REAL ? "a number"
                        : t->kind == TOK_CHAR                     ? "a character"
                        : t->kind == TOK_STRING                   ? "a string"
                        : t->kind == TOK_NAME                     ? form("the name %s", t->s)
                                                                  : t->s;
    error_at(t->at, "%s was expected, but here is %s", wanted, found);
    longjmp(*failed, 1);
}

void expect(struct parser *p, const char *s, const char *where)
{
    if (!take(p, s))
        syntax(p, form("%s %s", s, where));
}

void deeper(struct parser *p)
{
    if (++p->depth > NESTING_MAX) {
        error_at(p->t->at, "this is nested more than %d deep", NESTING_MAX);
        longjmp(*failed, 1);
    }
}

const char *take_name(struct parser *p, const char *what)
{
    if (p->t->kind != TOK_NAME)
        syntax(p, what);
    return p->t++->s;
}

struct node *new_node(enum node_kind kind, struct place at)
{
    struct node *n = alloc(sizeof *n);
    n->kind = kind;
    n->at = at;
    return n;
}

void append(struct node **list, struct node *n)
{
    while (*list)
        list = &(*list)->next;
    *list = n;
}

/* A list that grows at its end. */
struct tail {
    struct node *first, **end;
};
static void put(struct tail *l, struct node *n)
{
    *(l->end ? l->end : &l->first) = n;
    l->end = &n->next;
}

/* QualId = id { "." id } */
struct node *parse_qualid(struct parser *p)
{
    struct node *n = new_node(N_NAME, p->t->at);
    n->name = take_name(p, "a name");
    for (int i = 0; is(p, ".") && i < CHAIN_MAX; i++) {
        struct node *d = new_node(N_DOT, p->t->at);
        p->t++;
        d->a = n;
        d->name = take_name(p, "a name after the dot");
        n = d;
    }
    return n;
}

/* Fields = id { "," id } ":" SubType ; one D_VAR for each name */
static void parse_fields(struct parser *p, struct tail *l)
{
    struct node *first = NULL, *last = NULL;
    do {
        struct node *n = new_node(D_VAR, p->t->at);
        n->name = take_name(p, "the name of a field or variable");
        put(l, n);
        first = first ? first : n;
        last = n;
    } while (take(p, ","));
    expect(p, ":", "and a type");
    struct node *sub = parse_subtype(p);
    for (struct node *n = first; n; n = n == last ? NULL : n->next)
        n->a = sub;
}

/* Enum = "(" id { "," id } ")" */
static struct node *parse_enum(struct parser *p)
{
    struct node *n = new_node(T_ENUM, p->t->at);
    struct tail l = {0};
    p->t++;
    do {
        struct node *e = new_node(N_NAME, p->t->at);
        e->name = take_name(p, "the name of a value");
        put(&l, e);
    } while (take(p, ","));
    expect(p, ")", "after the values of the enumeration");
    n->list = l.first;
    return n;
}

/* UNION "(" id ":" QualId [ "(" Expr ")" ] ")" { ConstExpr "=>" id ":" SubType ";" } END */
static struct node *parse_union(struct parser *p)
{
    struct node *n = new_node(T_UNION, p->t->at);
    struct tail l = {0};
    p->t++;
    expect(p, "(", "and the tag of the union");
    n->name = take_name(p, "the name of the tag");
    expect(p, ":", "and the type of the tag");
    n->a = parse_qualid(p);
    if (take(p, "(")) {
        n->b = parse_expr(p);
        expect(p, ")", "after the default tag");
    }
    expect(p, ")", "after the tag of the union");
    do {
        struct node *tag = parse_expr(p), *alt = new_node(D_VAR, p->t->at);
        expect(p, "=>", "and the alternative of the tag");
        alt->at = p->t->at;
        alt->name = take_name(p, "the name of the alternative");
        expect(p, ":", "and the type of the alternative");
        alt->a = parse_subtype(p);
        alt->b = tag;
        expect(p, ";", "after the alternative");
        put(&l, alt);
    } while (!is(p, "END"));
    p->t++;
    n->list = l.first;
    return n;
}

/* ARRAY "[" QualId [ Expr ".." Expr ] { "," ... } "]" OF Type */
static struct node *parse_array(struct parser *p)
{
    struct node *n = new_node(T_ARRAY, p->t->at);
    struct tail l = {0};
    p->t++;
    expect(p, "[", "and the index type");
    do {
        struct node *d = new_node(N_RANGE, p->t->at);
        d->c = parse_qualid(p);
        if (!is(p, ",") && !is(p, "]")) {
            d->a = parse_expr(p);
            expect(p, "..", "and the upper bound");
            d->b = parse_expr(p);
        }
        put(&l, d);
    } while (take(p, ","));
    expect(p, "]", "after the index types");
    expect(p, "OF", "and the type of the elements");
    n->list = l.first;
    n->a = parse_type(p);
    return n;
}

/* FUNCTION "(" [ ModeType { "," ModeType } ] ")" [ ":" QualId ] */
static struct node *parse_function_type(struct parser *p)
{
    struct node *n = new_node(T_FUNCTION, p->t->at);
    struct tail l = {0};
    p->t++;
    expect(p, "(", "and the types of the parameters");
    while (!is(p, ")")) {
        struct node *d = new_node(D_PARAM, p->t->at);
        d->name = "";
        d->op = take(p, "OUT") ? MODE_OUT : take(p, "SHARED") ? MODE_SHARED : (take(p, "IN"), MODE_IN);
        d->a = new_node(T_NAME, p->t->at);
        d->a->a = parse_qualid(p);
        put(&l, d);
        if (!take(p, ","))
            break;
    }
    expect(p, ")", "after the types of the parameters");
    if (take(p, ":")) {
        n->a = new_node(T_NAME, p->t->at);
        n->a->a = parse_qualid(p);
    }
    n->list = l.first;
    return n;
}

/* Structured and Enum of the grammar; NULL: none begins here */
static struct node *parse_structured(struct parser *p)
{
    struct node *n;
    struct tail l = {0};
    if (is(p, "("))
        return parse_enum(p);
    if (is(p, "UNION"))
        return parse_union(p);
    if (is(p, "ARRAY"))
        return parse_array(p);
    if (is(p, "FUNCTION"))
        return parse_function_type(p);
    if (is(p, "SET") || is(p, "BAG")) {
        n = new_node(is(p, "SET") ? T_SET : T_BAG, p->t->at);
        p->t++;
        expect(p, "OF", "and the type of the elements");
        n->a = parse_type(p);
        return n;
    }
    if (is(p, "NODENAME")) {
        n = new_node(T_NODENAME, p->t++->at);
        expect(p, "OF", "and the name of a graph type");
        n->a = new_node(N_NAME, p->t->at);
        n->a->name = take_name(p, "the name of a graph type");
        return n;
    }
    if (!is(p, "RECORD") && !is(p, "GRAPH"))
        return NULL;
    bool graph = is(p, "GRAPH");
    n = new_node(graph ? T_GRAPH : T_RECORD, p->t++->at);
    while (!is(p, "END") && !(graph && is(p, "NODES"))) {
        parse_fields(p, &l);
        expect(p, ";", "after the field");
    }
    n->list = l.first;
    if (graph) {
        expect(p, "NODES", "and the fields of the nodes");
        l = (struct tail){0};
        while (!is(p, "END")) {
            parse_fields(p, &l);
            expect(p, ";", "after the field");
        }
        n->b = l.first;
    }
    p->t++;
    return n;
}

struct node *parse_type(struct parser *p)
{
    deeper(p);
    struct node *n = parse_structured(p);
    if (!n) {
        if (p->t->kind != TOK_NAME)
            syntax(p, "a type");
        n = new_node(T_NAME, p->t->at);
        n->a = parse_qualid(p);
    }
    p->depth--;
    return n;
}

/* SubType = QualId { "[" Range { "," Range } "]" } [ "(" Expr ")" ] | Structured | Enum */
struct node *parse_subtype(struct parser *p)
{
    struct node *n = parse_type(p);
    if (n->kind != T_NAME)
        return n;
    struct tail groups = {0};
    while (take(p, "[")) {
        struct node *g = new_node(N_NESTED, p->t->at);
        struct tail l = {0};
        do {
            struct node *r = new_node(N_RANGE, p->t->at);
            r->a = parse_expr(p);
            expect(p, "..", "and the upper bound");
            r->b = parse_expr(p);
            put(&l, r);
        } while (take(p, ","));
        expect(p, "]", "after the bounds");
        g->list = l.first;
        put(&groups, g);
    }
    n->list = groups.first;
    if (take(p, "(")) {
        n->c = parse_expr(p);
        expect(p, ")", "after the tag");
    }
    return n;
}

/* Formals = "(" [ Section { ";" Section } ] ")" */
static struct node *parse_formals(struct parser *p)
{
    struct tail l = {0};
    expect(p, "(", "and the parameters");
    while (!is(p, ")")) {
        struct node *first = NULL, *last = NULL;
        do {
            struct node *n = new_node(D_PARAM, p->t->at);
            n->name = take_name(p, "the name of a parameter");
            put(&l, n);
            first = first ? first : n;
            last = n;
        } while (take(p, ","));
        expect(p, ":", "and the type of the parameter");
        int mode = take(p, "OUT") ? MODE_OUT : take(p, "SHARED") ? MODE_SHARED : (take(p, "IN"), MODE_IN);
        struct node *sub = parse_subtype(p);
        for (struct node *n = first; n; n = n == last ? NULL : n->next) {
            n->a = sub;
            n->op = mode;
        }
        if (!take(p, ";"))
            break;
    }
    expect(p, ")", "after the parameters");
    return l.first;
}

/* CONST id "=" ConstExpr ";"  |  TYPE id [ "=" Type ] ";"  |  id { "," id } ":" SubType ";" */
static bool parse_decl(struct parser *p, struct tail *l)
{
    struct node *n;
    if (is(p, "CONST") || is(p, "TYPE")) {
        bool is_type = is(p, "TYPE");
        p->t++;
        n = new_node(is_type ? D_TYPE : D_CONST, p->t->at);
        n->name = take_name(p, is_type ? "the name of the type" : "the name of the constant");
        put(l, n);
        if (take(p, "="))
            n->a = is_type ? parse_type(p) : parse_expr(p);
        else if (!is_type)
            syntax(p, "= and the value of the constant");
        expect(p, ";", "after the declaration");
        return true;
    }
    if (p->t->kind != TOK_NAME)
        return false;
    parse_fields(p, l);
    expect(p, ";", "after the declaration");
    return true;
}

/* { Decl } BEGIN Stats END ";" ; operations may have guards instead of statements */
static struct node *parse_block(struct parser *p, bool guards)
{
    struct node *n = new_node(N_NONE, p->t->at);
    struct tail l = {0};
    while (parse_decl(p, &l)) {
    }
    n->list = l.first;
    expect(p, "BEGIN", "and the statements");
    if (guards && is(p, "GUARD")) {
        n->flag = true;
        n->a = parse_guards(p);
    } else {
        n->a = parse_stats(p);
    }
    n->c = new_node(N_NONE, p->t->at); /* the place of END, for the run-time errors of the end */
    expect(p, "END", "after the statements");
    expect(p, ";", "after END");
    return n;
}

/* FuncHead, ProcHead and OperHead, each with its Block in implementations */
static struct node *parse_routine(struct parser *p, enum node_kind kind)
{
    p->t++;
    struct node *n = new_node(kind, p->t->at);
    n->name = take_name(p, "the name of the routine");
    n->list = parse_formals(p);
    if (kind != D_PROCESS && take(p, ":")) {
        n->a = new_node(T_NAME, p->t->at);
        n->a->a = parse_qualid(p);
    }
    expect(p, ";", "after the heading");
    if (!p->tree->spec &&
        (is(p, "BEGIN") || is(p, "CONST") || is(p, "TYPE") || p->t->kind == TOK_NAME || kind == D_OPERATION))
        n->b = parse_block(p, kind == D_OPERATION);
    return n;
}

/* ( MODULE | OBJECT ) id "=" NEW id "(" GenAct { "," GenAct } ")" ";" */
static struct node *parse_instance(struct parser *p)
{
    int kind = is(p, "OBJECT") ? U_OBJECT : U_MODULE;
    p->t++;
    struct node *n = new_node(D_INSTANCE, p->t->at);
    n->op = kind;
    n->name = take_name(p, "the name of the new unit");
    expect(p, "=", "and NEW");
    expect(p, "NEW", "and a generic unit");
    n->a = new_node(N_NAME, p->t->at);
    n->a->name = take_name(p, "the name of a generic unit");
    n->list = parse_args(p);
    expect(p, ";", "after the declaration");
    return n;
}

/* [ FROM id ] IMPORT id { "," id } ";" */
static struct node *parse_import(struct parser *p)
{
    struct node *n = new_node(D_IMPORT, p->t->at);
    struct tail l = {0};
    if (take(p, "FROM")) {
        n->at = p->t->at;
        n->name = take_name(p, "the name of a unit");
    }
    expect(p, "IMPORT", "and names");
    do {
        struct node *e = new_node(N_NAME, p->t->at);
        e->name = take_name(p, "a name");
        put(&l, e);
    } while (take(p, ","));
    expect(p, ";", "after the import");
    n->list = l.first;
    return n;
}

static void parse_unit_body(struct parser *p, struct tree *u)
{
    struct tail l = {0};
    for (;;) {
        if (is(p, "IMPORT") || is(p, "FROM"))
            put(&l, parse_import(p));
        else if (is(p, "MODULE") || is(p, "OBJECT"))
            put(&l, parse_instance(p));
        else if (is(p, "FUNCTION"))
            put(&l, parse_routine(p, D_FUNCTION));
        else if (is(p, "PROCESS"))
            put(&l, parse_routine(p, D_PROCESS));
        else if (is(p, "OPERATION"))
            put(&l, parse_routine(p, D_OPERATION));
        else if (!parse_decl(p, &l))
            break;
    }
    u->decls = l.first;
    if (is(p, "BEGIN") && !u->spec && u->kind != U_MODULE) {
        p->t++;
        u->has_body = true;
        u->body = parse_stats(p);
    }
    if (!is(p, "END"))
        syntax(p, "a declaration or END");
    p->t++;
}

/* GENERIC "(" GenPar { ";" GenPar } ")" */
static struct node *parse_generic_formals(struct parser *p)
{
    struct tail l = {0};
    expect(p, "(", "and the formals of the generic unit");
    do {
        struct node *n = new_node(D_FORMAL, p->t->at);
        if (take(p, "CONST")) {
            n->i = D_CONST;
            n->at = p->t->at;
            n->name = take_name(p, "the name of a constant");
            expect(p, ":", "and its type");
            n->a = new_node(T_NAME, p->t->at);
            n->a->a = parse_qualid(p);
        } else if (is(p, "FUNCTION")) {
            n->i = D_FUNCTION;
            p->t++;
            n->at = p->t->at;
            n->name = take_name(p, "the name of a function");
            n->list = parse_formals(p);
            if (take(p, ":")) {
                n->a = new_node(T_NAME, p->t->at);
                n->a->a = parse_qualid(p);
            }
        } else {
            n->i = D_TYPE;
            n->op = take(p, "NUMERIC") ? FORMAL_NUMERIC : take(p, "SCALAR") ? FORMAL_SCALAR : FORMAL_TYPE;
            expect(p, "TYPE", ", FUNCTION or CONST");
            n->at = p->t->at;
            n->name = take_name(p, "the name of a type");
        }
        put(&l, n);
    } while (take(p, ";"));
    expect(p, ")", "after the formals of the generic unit");
    return l.first;
}

static void parse_unit(struct parser *p)
{
    struct tree *u = p->tree;
    if (take(p, "GENERIC")) {
        u->generic = true;
        if (is(p, "("))
            u->formals = parse_generic_formals(p);
    }
    if (take(p, "DATA")) {
        u->kind = U_DATA;
        expect(p, "MODULE", "after DATA");
    } else if (take(p, "OBJECT")) {
        u->kind = U_OBJECT;
    } else {
        u->kind = U_MODULE;
        expect(p, "MODULE", ", DATA MODULE, OBJECT or GENERIC");
    }
    u->spec = is(p, "SPECIFICATION");
    if (!take(p, "SPECIFICATION"))
        expect(p, "IMPLEMENTATION", "or SPECIFICATION");
    u->at = p->t->at;
    u->name = take_name(p, "the name of the unit");
    if (is(p, "["))
        syntax(p, "; (objects with a shape belong to the data-parallel language, which this compiler does not have)");
    expect(p, ";", "after the name of the unit");
    if (u->spec && u->generic && !u->formals)
        syntax(p, "formals after GENERIC");
    parse_unit_body(p, u);
    if (u->generic)
        take(p, "GENERIC");
    take(p, ";");
    if (p->t->kind != TOK_END)
        syntax(p, "the end of the file");
}

struct tree *parse(struct source *src)
{
    int count;
    jmp_buf here, *outer = failed;
    struct tree *u = alloc(sizeof *u);
    u->src = src;
    struct parser *p = alloc(sizeof *p);
    *p = (struct parser){.t = lex(src, &count), .tree = u};
    failed = &here;
    if (setjmp(here) == 0) {
        parse_unit(p);
        failed = outer;
        return u;
    }
    failed = outer;
    return NULL;
}
