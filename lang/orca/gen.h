/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen.h - what the files that write C share. An expression becomes a C expression without side effects; whatever has
 * some (calls, operations, sets) is written before it as statements that leave their result in a temporary. Temporaries
 * of types that own memory belong to the C function: zero bytes at its start, freed at its one end `out`. */
#ifndef LANG_ORCA_GEN_H
#define LANG_ORCA_GEN_H

#include "lang/orca/orca.h"

struct gen {
    struct text *out;  /* the program */
    struct text body;  /* of the routine that is being written */
    struct text heads; /* its temporaries */
    struct text tails; /* what frees them */
    struct unit *unit;
    struct symbol *routine;
    bool operation;   /* its result goes through args, and its status says whether it was done */
    bool guard_saves; /* the object was saved before this alternative */
    bool to_out;      /* `goto out` was written */
    int temps, labels, depth;
    int exit_label; /* of the innermost loop; 0: none was used */
    bool in_loop;
    struct place line; /* of the last #line */
};
extern struct gen g;

/* ---- gen_types.c ---- */
const char *c_type(const struct type *);
const char *descriptor(const struct type *); /* "&type_..." */
bool needs_init(const struct type *);
bool has_bounds_or_tag(const struct subtype *);
/* Initializes a variable of zero bytes. */
void init_variable(const struct type *, const struct subtype *, const char *lvalue, struct place);
void generate_types(void);
const struct type *real_type(const struct type *); /* that a generic formal stands for */

/* ---- gen_expr.c ---- */
void put(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a line of C */
void put_place(struct place);                                            /* #line */
const char *at(struct place);                                            /* an orc_place */
const char *expr(struct node *);    /* of a simple type: a value; otherwise an lvalue */
const char *address(struct node *); /* of a value, in a temporary if need be */
const char *new_temp(const struct type *);
const char *simple_temp(const struct type *, const char *value);
bool is_temporary(struct node *); /* expr(n) is a temporary whose value can be moved */
void store(const struct type *, const char *lvalue, struct node *from);
const char *c_string(const char *s, size_t n);
void go_out(void);

/* ---- gen_call.c ---- */
const char *call(struct node *);
const char *operation_call(struct node *);
const char *builtin_call(struct node *);
void fork_statement(struct node *);
const char *prototype(struct symbol *); /* of a function, without ; */
const char *function_pointer(const struct type *);

/* ---- gen_stat.c ---- */
void statements(struct node *);

/* ---- gen_routine.c ---- */
void generate_function(struct symbol *);
void generate_process(struct symbol *);
void generate_operation(struct symbol *);
void generate_start(struct unit *);

#endif
