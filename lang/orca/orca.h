/* SPDX-License-Identifier: BSD-3-Clause
 *
 * orca.h - what the passes of orcac share: places, nodes, types, symbols, units. The compiler reads a whole program:
 * each unit is parsed (parse.c), its declarations and bodies are checked, which annotates the nodes (check_*.c),
 * then operations are analysed (analyse.c) and C is written (gen_*.c). Memory lives until the compiler ends. */
#ifndef LANG_ORCA_H
#define LANG_ORCA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- util.c ---- */

struct source {
    const char *path; /* as it is shown */
    char *text;       /* ends with a NUL */
    size_t n;
    int index; /* in the program's table of files */
};
struct place {
    struct source *src;
    int line, col;
};
void *alloc(size_t n); /* zeroed */
char *form(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *copy_text(const char *s, size_t n);
struct source *read_source(const char *path); /* NULL: there is no such file */
extern struct source **sources;
extern int sources_count;

enum { ERRORS_MAX = 20 };
extern int errors_count;
/* Prints "file:line:col: error: ...", the line, and a mark below the column. Gives up after ERRORS_MAX. */
void error_at(struct place, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warn_at(struct place, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void give_up(void); /* ends the compiler after errors */

struct text { /* a growing text */
    char *s;
    size_t n, room;
};
void add(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add_bytes(struct text *, const char *s, size_t n);

/* ---- lex.c ---- */

enum token_kind {
    TOK_END,
    TOK_NAME,
    TOK_INT,
    TOK_REAL,
    TOK_CHAR,
    TOK_STRING,
    TOK_KEYWORD,
    TOK_SIGN /* an operator or delimiter */
};
struct token {
    enum token_kind kind;
    struct place at;
    const char *s; /* name, keyword in upper case, sign, or the characters of a string */
    size_t n;
    int64_t i;
    double r;
};
struct lex_options {
    bool lower, both;     /* -k, -K: keywords in lower case, in both */
    const char **defined; /* -D */
    int defined_count;
};
extern struct lex_options lex_options;
struct token *lex(struct source *, int *count);

/* ---- nodes ---- */

enum node_kind {
    N_NONE,
    /* expressions */
    N_INT,
    N_REAL,
    N_CHAR,
    N_STRING,
    N_NAME,
    N_DOT,
    N_INDEX,
    N_BANG,
    N_CALL,
    N_OPCALL,
    N_AGGREGATE,
    N_ARRAYAGG,
    N_NESTED /* a bracketed list inside an array aggregate */,
    N_BINARY,
    N_UNARY,
    N_AND,
    N_OR,
    N_NOT,
    N_TYPEARG,
    /* statements */
    N_ASSIGN,
    N_CALLSTAT,
    N_FORK,
    N_EXIT,
    N_RETURN,
    N_IF,
    N_CASE,
    N_ALT,
    N_RANGE,
    N_WHILE,
    N_LOOP,
    N_REPEAT,
    N_FOR,
    N_GUARD,
    /* types */
    T_NAME,
    T_ENUM,
    T_RECORD,
    T_UNION,
    T_ARRAY,
    T_SET,
    T_BAG,
    T_GRAPH,
    T_NODENAME,
    T_FUNCTION,
    /* declarations */
    D_IMPORT,
    D_INSTANCE,
    D_CONST,
    D_TYPE,
    D_VAR,
    D_FUNCTION,
    D_PROCESS,
    D_OPERATION,
    D_PARAM,
    D_FORMAL
};
enum {
    OP_EQ = 1,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_BOR,
    OP_BXOR,
    OP_BAND,
    OP_SHL,
    OP_SHR,
    OP_NEG,
    OP_PLUS,
    OP_COM,
    OP_AND,
    OP_OR
};
enum { MODE_IN, MODE_OUT, MODE_SHARED };

struct node {
    enum node_kind kind;
    int op; /* OP_ of operators and assignments; MODE_ of parameters; formals: restriction */
    struct place at;
    const char *name; /* names, and characters of strings */
    size_t n;
    int64_t i;
    double r;
    struct node *a, *b, *c; /* children, by kind: parse*.c says which */
    struct node *list;      /* arguments, statements, fields, ... */
    struct node *next;      /* in a list */
    /* written by check_*.c */
    struct type *type;
    struct symbol *sym;
    struct value *value; /* of a constant expression */
    struct subtype *sub; /* of a declaration; names declared together share it */
    int builtin;
    bool flag;
};

/* ---- parse.c, parse_code.c ---- */

enum unit_kind { U_MODULE, U_DATA, U_OBJECT };
struct tree { /* one file */
    struct source *src;
    enum unit_kind kind;
    bool generic, spec;
    const char *name;
    struct place at;
    struct node *formals; /* of a generic specification */
    struct node *decls;   /* imports, instances, constants, types, variables, functions, processes, operations */
    struct node *body;    /* statements of BEGIN */
    bool has_body;
};
struct parser {
    struct token *t;
    struct tree *tree;
    int depth; /* of nesting, which is bounded so that no pass overruns its stack */
};
enum { NESTING_MAX = 150, CHAIN_MAX = 1000 };
struct tree *parse(struct source *);
/* used between the two files of the parser */
bool is(struct parser *, const char *s);
bool take(struct parser *, const char *s);
void expect(struct parser *, const char *s, const char *where);
_Noreturn void syntax(struct parser *, const char *wanted);
const char *take_name(struct parser *, const char *what);
struct node *new_node(enum node_kind, struct place);
struct node *parse_expr(struct parser *);
struct node *parse_stats(struct parser *);
struct node *parse_type(struct parser *);
struct node *parse_subtype(struct parser *);
struct node *parse_args(struct parser *);
struct node *parse_index(struct parser *);
void deeper(struct parser *);
struct node *parse_qualid(struct parser *);
struct node *parse_guards(struct parser *);
void append(struct node **list, struct node *n);

/* ---- types.c ---- */

enum type_kind {
    K_ERROR, /* of an expression that was in error: goes with everything */
    K_SHORT,
    K_INT,
    K_LONG,
    K_FLOAT,
    K_DOUBLE,
    K_ENUM, /* and boolean and char */
    K_NIL,
    K_NODENAME,
    K_FUNCTION,
    K_RECORD,
    K_UNION,
    K_ARRAY,
    K_SET,
    K_BAG,
    K_GRAPH,
    K_OBJECT
};
enum { FORMAL_ANY = -1, FORMAL_NONE, FORMAL_TYPE, FORMAL_SCALAR, FORMAL_NUMERIC };
struct field {
    const char *name;
    struct place at;
    struct subtype *sub;
    int64_t tag; /* of a union's alternative */
    struct field *next;
};
struct bounds { /* lb .. ub of one dimension */
    struct node *lb, *ub;
};
/* A type with what a declaration adds: initial bounds, or an initial tag. */
struct subtype {
    struct type *type;
    int groups;            /* of bounds: t[a..b][c..d] has two */
    struct bounds *bounds; /* for all dimensions of all groups */
    struct node *tag;
};
struct type {
    enum type_kind kind;
    struct type *canon; /* itself, or the actual type of a generic formal */
    int formal;         /* FORMAL_: what a generic unit may do with it */
    const char *name;   /* as it is shown */
    const char *c;      /* C name: of the type, and the stem of its descriptor's */
    struct place at;
    bool used;     /* C needs its descriptor */
    int64_t count; /* of an enumeration */
    struct symbol **literals;
    struct type *elem; /* array, set, bag; graph of a nodename; result of a function or NULL */
    int dims;
    struct type **index;   /* of the dimensions */
    struct bounds *bounds; /* default bounds, or NULL */
    struct type *tag_type; /* of a union */
    const char *tag_name;
    struct node *tag;     /* default */
    struct field *fields; /* record, alternatives of a union, root fields of a graph */
    struct field *nodes;  /* node fields of a graph */
    struct node *params;  /* of a function type: D_PARAM with type and op */
    struct unit *unit;    /* of an object */
    int number;           /* of an object type */
    struct type *next;    /* all of them, in order */
};
extern struct type *types_first;
extern struct type type_error, type_short, type_int, type_long, type_float, type_double, type_bool, type_char,
    type_string, type_nil;
struct type *new_type(enum type_kind, struct place);
bool same(const struct type *, const struct type *);
bool is_integer(const struct type *);
bool is_real(const struct type *);
bool is_discrete(const struct type *); /* integers and enumerations */
bool is_simple(const struct type *);   /* a C value: passed and returned by value */
bool is_flat(const struct type *);     /* owns no memory */
bool has_object(const struct type *);
bool has_equality(const struct type *);
bool fits(const struct type *to, const struct type *from); /* implicit conversion */
const char *show(const struct type *);
/* Shows a type, with the place of its declaration where the other type is shown by the same words. */
const char *show_beside(const struct type *, const struct type *other);
struct field *find_field(struct field *, const char *name);

struct value {
    enum { V_INT, V_REAL, V_STRING } kind;
    int64_t i;
    double r;
    const char *s;
    size_t n;
};

/* ---- symbols ---- */

enum symbol_kind { S_CONST, S_TYPE, S_VAR, S_FUNCTION, S_PROCESS, S_OPERATION, S_UNIT, S_BUILTIN };
enum { VAR_LOCAL, VAR_PARAM, VAR_FIELD, VAR_DATA, VAR_LOOP, VAR_SELF };
struct estimate {
    double score, accesses, uncertainty;
};
struct symbol {
    enum symbol_kind kind;
    const char *name;
    struct place at;
    struct type *type; /* of the value, the variable, the result (or NULL) */
    struct value *value;
    struct unit *unit; /* where it was declared; S_UNIT: the unit itself */
    /* variables */
    int var, mode;
    struct subtype *sub;
    bool assigned; /* an IN parameter that its function changes */
    bool forked;   /* a local object that is passed to a process */
    struct estimate estimate;
    /* functions, processes, operations */
    struct node *head, *impl; /* declarations */
    struct symbol **params;
    int params_count;
    struct symbol *locals; /* linked by `next`, in order */
    struct symbol *next;
    const char *c;
    bool external, used, checked, busy;
    bool blocks, writes, reads, poisons; /* poisons: calls what operations must not */
    const char *poison;                  /* what it calls */
    bool has_return;
    int number; /* of a process, operation, function value + 1 */
    int builtin;
    struct symbol *same; /* the actual of a generic function formal */
};
struct scope {
    struct scope *outer;
    struct symbol **syms;
    int count, room;
};
struct symbol *scope_find(struct scope *, const char *name); /* here and outside */
struct symbol *scope_find_here(struct scope *, const char *name);
void scope_add(struct scope *, struct symbol *); /* reports a second declaration */
void scope_put(struct scope *, struct symbol *); /* an import: the same symbol twice is fine */
struct symbol *new_symbol(enum symbol_kind, const char *name, struct place);

struct unit {
    enum unit_kind kind;
    const char *name; /* as it is shown; instances have that of the instance */
    const char *c;
    struct tree *spec, *impl;
    struct scope declared;    /* what others see; outer: predeclared names */
    struct scope inside;      /* of the specification, with its imports */
    struct scope body;        /* of the implementation */
    struct scope field_scope; /* of an object's operations: its fields and SELF; outer: body */
    struct scope formals;     /* of an instance: outer of inside and body */
    struct type *object;      /* of an object unit */
    struct symbol *fields;    /* of an object, linked */
    struct symbol **operations;
    int operations_count;
    struct symbol *data; /* variables of a data module, linked */
    struct symbol **routines;
    int routines_count;
    struct symbol *start; /* BEGIN of a data module or an object, as a function */
    bool loading, loaded, bodies, instance;
    bool busy; /* while its fields are looked through */
    int depth; /* of an instance: how many instances it is made in, itself included */
    struct unit **imports;
    int imports_count;
    struct unit *next;
};
extern struct unit *units_first;
extern struct scope predeclared;

/* ---- unit.c ---- */

extern const char **search_path;
extern int search_count;
struct unit *load_unit(const char *name, struct source *from, struct place at); /* reports what is missing; NULL */
struct unit *load_main(const char *path);
struct unit *make_instance(struct unit *user, struct node *decl, struct scope *scope);
void check_all(struct unit *main);

/* ---- check_*.c ---- */

struct context { /* of the code that is checked */
    struct unit *unit;
    struct scope *scope;
    struct symbol *routine; /* NULL in declarations */
    int loops;
    bool in_operation;
};
/* Declares what one file of a unit declares; specification first. */
void check_declarations(struct unit *, struct tree *);
void check_implemented(struct unit *);
/* An object that would hold itself has no end. */
void check_ends(struct unit *);
struct symbol *declare_routine(struct unit *, struct scope *, struct node *);
void check_bodies(struct unit *);
const char *type_c_name(struct context *, const char *name);
struct type *check_type(struct context *, struct node *, const char *name);
struct subtype *check_subtype(struct context *, struct node *);
void check_expr(struct context *, struct node *);
void check_stats(struct context *, struct node *);
void check_call(struct context *, struct node *, bool statement);
void check_operation_call(struct context *, struct node *, bool statement);
void check_fork(struct context *, struct node *);
bool check_builtin(struct context *, struct node *, bool statement);
void check_assignable(struct context *, struct node *designator, const char *what);
void check_fits(struct node *e, const struct type *to, const char *what);
struct value *constant(struct context *, struct node *, const char *what); /* reports; NULL */
void fold(struct node *);
struct symbol *root_of(struct node *designator); /* the variable a designator is part of; NULL: none */
void check_local_declarations(struct context *, struct node *list);
struct symbol *declare_local(struct context *, const char *name, struct place, struct type *, int var);
struct symbol *resolve(struct context *, struct node *qualid, const char *what);
void declare_builtins(void);

enum builtin {
    B_NONE,
    B_ABS,
    B_CAP,
    B_CHR,
    B_FLOAT,
    B_MAX,
    B_MIN,
    B_ODD,
    B_ORD,
    B_TRUNC,
    B_VAL,
    B_SIZE,
    B_LB,
    B_UB,
    B_ADDNODE,
    B_DELETENODE,
    B_INSERT,
    B_DELETE,
    B_FROM,
    B_ASSERT,
    B_NCPUS,
    B_MYCPU,
    B_READ,
    B_WRITE,
    B_WRITELINE,
    B_STRATEGY
};

/* ---- analyse.c, pattern.c ---- */

void analyse(void);
/* These two say whether nodes change the object whose operation holds them, and whether they may block. */
bool changes_object(struct node *list);
bool may_block(struct node *list);
void estimate_accesses(void);
void explain(struct unit *main);

/* ---- gen*.c ---- */

struct gen_options {
    bool checks, lines, polls;
};
extern struct gen_options gen_options;
void generate(struct unit *main, struct text *out);

#endif
