/* SPDX-License-Identifier: BSD-3-Clause
 *
 * orca_rts.h - what C that orcac has made of an Orca program knows of the run-time system, and the run-time system of
 * the program: descriptors of types, operations and processes on one side, calls on the other.
 *
 * Generated code does not know where an object is. It names an object by a handle, gives the addresses of the
 * arguments, and gets the answer; whether the operation was run here, in total order everywhere, or by the owner
 * is decided behind orc_invoke. Values are never shared: to assign is to copy deeply. A value whose bytes are all zero
 * owns nothing, so that orc_free of it, and freeing twice, are harmless; generated code rests on this. */
#ifndef ORCA_RTS_H
#define ORCA_RTS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct orc_object;

/* ---- types ---- */

enum orc_kind {
    ORC_BYTE, /* boolean, char, and enumerations of up to 256 values */
    ORC_SHORT,
    ORC_INT,
    ORC_LONG,
    ORC_WORD, /* larger enumerations */
    ORC_FLOAT,
    ORC_DOUBLE,
    ORC_NODENAME,
    ORC_FUNCTION,
    ORC_RECORD,
    ORC_UNION,
    ORC_ARRAY,
    ORC_SET,
    ORC_BAG,
    ORC_GRAPH,
    ORC_OBJECT
};
struct orc_field {
    const char *name;
    const struct orc_type *type;
    uint32_t offset;
    int64_t tag; /* of a union's alternative */
};
struct orc_type {
    const char *name;
    enum orc_kind kind;
    bool flat;     /* its bytes are the whole value: no memory beside it, no padding that differs matters */
    uint32_t size; /* bytes of a variable */
    uint32_t dims; /* of an array */
    uint32_t fields_count;
    const struct orc_field *fields; /* record; alternatives of a union; root fields of a graph */
    const struct orc_type *elem;    /* of arrays, sets and bags; the node of a graph; the fields of an object */
    int64_t limit;                  /* enumerations: how many values; unions: offset of the alternatives */
    void (*init)(void *v);          /* makes the initial value of zero bytes; NULL: they are it */
    const struct orc_class *class;  /* of an object */
};

extern const struct orc_type orc_type_short, orc_type_int, orc_type_long, orc_type_float, orc_type_double,
    orc_type_boolean, orc_type_char, orc_type_string, orc_type_nodename, orc_type_function;

struct orc_bound {
    int64_t lb, n;
};
/* Element i of a one-dimensional array is at data + (i - lb) * size; the last dimension runs fastest. */
struct orc_array {
    void *data;
    int64_t n; /* elements in all */
    struct orc_bound d[1];
};
struct orc_array2 {
    void *data;
    int64_t n;
    struct orc_bound d[2];
};
struct orc_array3 {
    void *data;
    int64_t n;
    struct orc_bound d[3];
};
struct orc_array4 {
    void *data;
    int64_t n;
    struct orc_bound d[4];
};
enum { ORC_DIMS_MAX = 4 };

/* Sets and bags keep their elements sorted, so that equal ones look alike wherever they were made. */
struct orc_set {
    void *data;
    int64_t n, room;
};
/* A node name is index << 32 | age, with odd ages only; 0 is NIL. The table comes first in a graph's struct, its root
 * fields follow. */
struct orc_slot {
    uint32_t age, next; /* of the list of free slots, 1 + index */
    void *node;         /* NULL: free */
};
struct orc_graph {
    struct orc_slot *slots;
    uint32_t n, free;
};
/* In a union the tag is an int64_t at 0, which this struct begins with; all alternatives lie at the same offset. */
struct orc_union {
    int64_t tag;
    int64_t live; /* 0: no alternative is live */
};

/* ---- values ---- */

/* Makes the initial value in memory that is not initialized. */
void orc_init(const struct orc_type *, void *v);
/* Frees what the value owns, and makes it zero bytes. */
void orc_free(const struct orc_type *, void *v);
/* Makes a copy in memory that is not initialized. */
void orc_copy(const struct orc_type *, void *to, const void *from);
/* dst := src; they may be the same or overlap. Objects keep their identity and take the state over. */
void orc_assign(const struct orc_type *, void *dst, const void *src);
/* dst := *src, after which *src is zero bytes; not for types with objects in them. */
void orc_move(const struct orc_type *, void *dst, void *src);
/* A total order: below 0, 0 or above. */
int orc_compare(const struct orc_type *, const void *a, const void *b);

/* Where in the source: index of the file << 20 | line. */
typedef uint32_t orc_place;
#define ORC_PLACE(file, line) ((orc_place)(file) << 20 | (orc_place)(line))
/* Ends the program with "cpu, file, line, text". */
_Noreturn void orc_fail(orc_place at, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
_Noreturn void orc_fail_index(orc_place at, int64_t i, int64_t lb, int64_t n, int dim) __attribute__((cold));

/* a becomes an array of these bounds with initial elements; what it was is freed. */
void orc_array_bounds(const struct orc_type *, void *a, const int64_t *lb_ub, orc_place at);
/* s, which is a value, becomes the text. */
void orc_string(struct orc_array *s, const char *text, int64_t n);
void orc_set_insert(const struct orc_type *, void *s, const void *e);
void orc_set_delete(const struct orc_type *, void *s, const void *e);
bool orc_set_in(const struct orc_type *, const void *s, const void *e);
void orc_set_from(const struct orc_type *, void *s, void *e, orc_place at);
/* to, which is zero bytes, becomes a op b, op being + - * or /. */
void orc_set_combine(const struct orc_type *, int op, void *to, const void *a, const void *b);
int64_t orc_node_add(const struct orc_type *, void *g);
void orc_node_delete(const struct orc_type *, void *g, int64_t name, orc_place at);
void *orc_node(const struct orc_type *, const void *g, int64_t name, orc_place at);
/* Makes alternative `tag` the live one, with its initial value. */
void orc_union_tag(const struct orc_type *, void *u, int64_t tag, orc_place at);
void *orc_union_field(void *u, int64_t tag, uint32_t offset, orc_place at);
void (*orc_function(int64_t number, orc_place at))(void);

#ifdef ORC_NO_CHECKS
#define ORC_CHECKS 0
#else
#define ORC_CHECKS 1
#endif
/* Addresses of elements. */
static inline int64_t orc_dim(const struct orc_bound *d, int k, int64_t before, int64_t i, orc_place at)
{
    if (ORC_CHECKS && __builtin_expect((uint64_t)i - (uint64_t)d[k].lb >= (uint64_t)d[k].n, 0))
        orc_fail_index(at, i, d[k].lb, d[k].n, k + 1);
    return before * d[k].n + (i - d[k].lb);
}
static inline void *orc_at(const struct orc_array *a, size_t size, int64_t i, orc_place at)
{
    return (char *)a->data + (size_t)orc_dim(a->d, 0, 0, i, at) * size;
}
static inline void *orc_at2(const struct orc_array2 *a, size_t size, int64_t i, int64_t j, orc_place at)
{
    return (char *)a->data + (size_t)orc_dim(a->d, 1, orc_dim(a->d, 0, 0, i, at), j, at) * size;
}
static inline void *orc_at3(const struct orc_array3 *a, size_t size, int64_t i, int64_t j, int64_t k, orc_place at)
{
    return (char *)a->data +
           (size_t)orc_dim(a->d, 2, orc_dim(a->d, 1, orc_dim(a->d, 0, 0, i, at), j, at), k, at) * size;
}
static inline void *orc_at4(const struct orc_array4 *a, size_t size, int64_t i, int64_t j, int64_t k, int64_t l,
                            orc_place at)
{
    const int64_t row = orc_dim(a->d, 2, orc_dim(a->d, 1, orc_dim(a->d, 0, 0, i, at), j, at), k, at);
    return (char *)a->data + (size_t)orc_dim(a->d, 3, row, l, at) * size;
}

/* Checked arithmetic. */
static inline int64_t orc_div(int64_t a, int64_t b, orc_place at)
{
    if (__builtin_expect(b == 0, 0))
        orc_fail(at, "division by zero");
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t orc_mod(int64_t a, int64_t b, orc_place at)
{
    if (__builtin_expect(b <= 0, 0))
        orc_fail(at, "the right operand of %% is %lld; it has to be positive", (long long)b);
    return a % b;
}
static inline double orc_fdiv(double a, double b, orc_place at)
{
    if (__builtin_expect(b == 0, 0))
        orc_fail(at, "division by zero");
    return a / b;
}
static inline int64_t orc_range(int64_t v, int64_t n, const char *what, orc_place at)
{
    if (__builtin_expect((uint64_t)v >= (uint64_t)n, 0))
        orc_fail(at, "%s of %lld; the values go from 0 to %lld", what, (long long)v, (long long)n - 1);
    return v;
}
static inline int64_t orc_shift(int64_t a, int64_t n, int left)
{
    if (n < 0 || n > 63)
        return 0;
    return left ? (int64_t)((uint64_t)a << n) : a >> n;
}
/* A SHARED or OUT argument overlaps another argument. */
void orc_alias(const void *a, size_t na, const void *b, size_t nb, orc_place at);

/* ---- objects ---- */

enum { ORC_IN, ORC_OUT, ORC_SHARED };
struct orc_param {
    const char *name;
    int mode;
    const struct orc_type *type;
    /* Process, SHARED object: what the compiler expects of its accesses. reads = (accesses + score) / 2. */
    int32_t score, accesses, uncertainty;
};

enum { ORC_DONE, ORC_BLOCKED };
/* Alternatives of an operation. args holds the address of each argument and, last, of the result, all of them values
 * (zero bytes at least). ORC_BLOCKED: no guard was true, or an operation of a nested object blocked; then the object is
 * what it was before. */
typedef int orc_alternatives(struct orc_object *self, void **args);
struct orc_operation {
    const char *name;
    bool blocks; /* may block */
    uint32_t params_count;
    const struct orc_param *params;
    const struct orc_type *result; /* may be NULL */
    orc_alternatives *read;        /* alternatives that change nothing; NULL: none */
    orc_alternatives *write;       /* the others; NULL: none */
};
enum { ORC_OP_VALUE, ORC_OP_ASSIGN, ORC_OP_FIRST }; /* the hidden operations, which every class has */
struct orc_class {
    const char *name;
    const struct orc_type *fields;          /* a record */
    void (*start)(struct orc_object *self); /* BEGIN of the object's implementation; may be NULL */
    const struct orc_operation *operations; /* from ORC_OP_FIRST on */
    uint32_t count;
};

/* A variable of an object type is a pointer to this. Only `fields` and `plain` are for generated code. */
struct orc_object {
    void *fields;
    bool plain; /* no other process can reach it: an operation that cannot block needs no more than its call */
    bool nested;
    uint32_t refs;
    const struct orc_class *class;
    struct orc_shared *shared; /* what the run-time system knows of it once it was passed to a process */
    orc_place at;              /* where it is declared */
};

struct orc_object *orc_new_object(const struct orc_class *, orc_place at);
/* o := p: the state of p becomes that of o. In an operation it may leave orc_unwinding set. */
void orc_assign_object(struct orc_object *o, struct orc_object *p, orc_place at);

/* Runs an operation. From a process: returns ORC_DONE when it is done. From an operation: may return ORC_BLOCKED, with
 * orc_unwinding set; the caller frees what it has and returns. */
int orc_invoke(struct orc_object *, uint32_t operation, void **args, orc_place at);
extern int orc_unwinding;
/* For alternatives that change the object before they know whether they block. *saved begins as NULL. Restore and
 * forget leave it so. */
void orc_save(struct orc_object *, void **saved);
void orc_restore(struct orc_object *, void **saved);
void orc_forget(struct orc_object *, void **saved);

void orc_strategy(struct orc_object *, int64_t replicate, int64_t cpu, orc_place at);
/* What the compiler expects this process to do with an object that it creates. */
void orc_score(struct orc_object *, int32_t score, int32_t accesses, int32_t uncertainty);

/* ---- processes and the program ---- */

struct orc_process {
    const char *name;
    uint32_t params_count;
    const struct orc_param *params;
    void (*body)(void **args); /* args are the process's own; the run-time system frees them afterwards */
};
struct orc_program {
    const char *name;
    const char *const *files;
    uint32_t files_count, classes_count, processes_count, functions_count;
    const struct orc_type *const *classes; /* object types, by number */
    const struct orc_process *processes;   /* OrcaMain is number 0 */
    void (*const *functions)(void);        /* a function value is 1 + index */
    void (*start)(void);                   /* bodies of data modules */
    void (*finish)(void);                  /* frees their variables */
};
/* Runs the program on this cpu; the status for exit(). */
int orc_main(const struct orc_program *, int argc, char **argv);

void orc_fork(uint32_t process, int64_t cpu, void **args, orc_place at);
int orc_ncpus(void);
int orc_mycpu(void);

/* At each entry of a function or operation: a recursion that would overrun the stack ends the program and says so. */
extern char *orc_stack_end;
#define ORC_ENTER(at)                                                  \
    do {                                                               \
        if ((char *)__builtin_frame_address(0) < orc_stack_end)        \
            orc_fail((at), "the recursion is too deep for the stack"); \
    } while (0)

extern int orc_budget;
/* At each entry of a loop or function: now and then messages are taken in and other processes run. */
void orc_poll(void);
#define ORC_POLL() ((void)(--orc_budget > 0 || (orc_poll(), 0)))

/* ---- Read, Write, and small built-in functions ---- */

void orc_write_int(int64_t v);
void orc_write_real(double v);
void orc_write_char(uint8_t c);
void orc_write_string(const struct orc_array *s);
void orc_write_line(void);
int64_t orc_read_int(orc_place at);
double orc_read_real(orc_place at);
uint8_t orc_read_char(orc_place at);
void orc_read_string(struct orc_array *s, orc_place at);
static inline uint8_t orc_cap(uint8_t c)
{
    return c >= 'a' && c <= 'z' ? (uint8_t)(c - 32) : c;
}
static inline int32_t orc_trunc(double r)
{
    return r >= 2147483648.0 ? INT32_MAX : r > -2147483649.0 ? (int32_t)r : INT32_MIN; /* NaN, too */
}

#endif
