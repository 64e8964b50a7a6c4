/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen_types.c - the C types of Orca's types, their descriptors, and the functions that make initial values. */
#include "lang/orca/gen.h"
#include <string.h>

const struct type *real_type(const struct type *t)
{
    while (t->canon && t->canon != t)
        t = t->canon;
    return t;
}

const char *c_type(const struct type *t)
{
    t = real_type(t);
    switch (t->kind) {
    case K_SHORT:
        return "int16_t";
    case K_INT:
        return "int32_t";
    case K_FLOAT:
        return "float";
    case K_DOUBLE:
        return "double";
    case K_ENUM:
        return t->count <= 256 ? "uint8_t" : "uint32_t";
    case K_FUNCTION:
        return "int32_t";
    case K_RECORD:
    case K_UNION:
    case K_GRAPH:
        return form("struct %s", t->c);
    case K_ARRAY:
        return t->dims == 1 ? "struct orc_array" : form("struct orc_array%d", t->dims);
    case K_SET:
    case K_BAG:
        return "struct orc_set";
    case K_OBJECT:
        return "struct orc_object *";
    default:
        return "int64_t";
    }
}

static const char *stem(const struct type *t)
{
    static const char *const names[] = {"int", "short", "int", "long", "float", "double"};
    t = real_type(t);
    if (t->kind <= K_DOUBLE)
        return form("orc_type_%s", names[t->kind]);
    if (t == &type_bool || t == &type_char || t == &type_string)
        return form("orc_type_%s", t->c);
    if (t->kind == K_NODENAME || t->kind == K_NIL)
        return "orc_type_nodename";
    if (t->kind == K_FUNCTION)
        return "orc_type_function";
    return form("type_%s", t->c);
}

const char *descriptor(const struct type *t)
{
    return form("&%s", stem(t));
}

bool has_bounds_or_tag(const struct subtype *s)
{
    return s && (s->groups || s->tag);
}

static bool fields_need_init(const struct field *f)
{
    for (; f; f = f->next)
        if (has_bounds_or_tag(f->sub) || needs_init(f->sub->type))
            return true;
    return false;
}

bool needs_init(const struct type *t)
{
    t = real_type(t);
    switch (t->kind) {
    case K_OBJECT:
        return true;
    case K_ARRAY:
        return t->bounds != NULL;
    case K_UNION:
        return t->tag != NULL;
    case K_RECORD:
    case K_GRAPH:
        return fields_need_init(t->fields);
    default:
        return false;
    }
}

static const char *bounds_list(const struct bounds *b, int dims)
{
    struct text l = {0};
    for (int i = 0; i < dims; i++) {
        const char *lb = expr(b[i].lb), *ub = expr(b[i].ub);
        add(&l, "%s%s, %s", i ? ", " : "", lb, ub);
    }
    return l.s;
}

/* The bounds of group k and those that follow, for the array at v. */
static void init_groups(const struct type *t, const struct subtype *sub, int k, int used, const char *v,
                        struct place where)
{
    int n = ++g.temps;
    put("orc_array_bounds(%s, &%s, b%d, %s);", descriptor(t), v, used, at(where));
    if (k + 1 == sub->groups)
        return;
    const struct type *elem = real_type(t->elem);
    put("for (int64_t k%d = 0; k%d < %s.n; k%d++) {", n, n, v, n);
    g.depth++;
    init_groups(elem, sub, k + 1, used + 1, form("((%s *)%s.data)[k%d]", c_type(elem), v, n), where);
    g.depth--;
    put("}");
}

void init_variable(const struct type *type, const struct subtype *sub, const char *v, struct place where)
{
    const struct type *t = real_type(type);
    if (sub && sub->groups) {
        const struct bounds *b = sub->bounds;
        int first = g.temps + 1;
        g.temps += sub->groups;
        const struct type *e = t;
        for (int k = 0; k < sub->groups; k++, b += e->dims, e = real_type(e->elem)) {
            const char *list = bounds_list(b, e->dims);
            put("const int64_t b%d[] = {%s};", first + k, list);
        }
        init_groups(t, sub, 0, first, v, where);
    } else if (sub && sub->tag) {
        put("orc_union_tag(%s, &%s, %s, %s);", descriptor(t), v, expr(sub->tag), at(where));
    } else if (needs_init(t)) {
        put("init_%s(&%s);", t->c, v);
    }
}

/* ---- definitions ---- */

static void define(const struct type *t);

static void define_fields(struct text *out, const struct field *f)
{
    for (; f; f = f->next)
        add(out, "    %s %s_;\n", c_type(f->sub->type), f->name);
}

static void define_parts(const struct field *f)
{
    for (; f; f = f->next)
        define(f->sub->type);
}

/* The struct of a type, after those that are part of it. */
static void define(const struct type *type)
{
    struct type *t = (struct type *)real_type(type);
    if (t->used || is_simple(t))
        return;
    t->used = true;
    define_parts(t->fields);
    define_parts(t->nodes);
    if (t->elem)
        define(t->elem);
    if (t->kind == K_RECORD) {
        add(g.out, "struct %s {\n", t->c);
        define_fields(g.out, t->fields);
        add(g.out, "%s};\n", t->fields ? "" : "    char nothing;\n");
    } else if (t->kind == K_UNION) {
        add(g.out, "struct %s {\n    int64_t tag, live;\n    union {\n", t->c);
        define_fields(g.out, t->fields);
        add(g.out, "    } u;\n};\n");
    } else if (t->kind == K_GRAPH) {
        add(g.out, "struct %s {\n    struct orc_graph nodes;\n", t->c);
        define_fields(g.out, t->fields);
        add(g.out, "};\nstruct %s__node {\n", t->c);
        define_fields(g.out, t->nodes);
        add(g.out, "%s};\n", t->nodes ? "" : "    char nothing;\n");
    }
}

static void begin_init(const char *c, const char *type)
{
    g.body = g.heads = g.tails = (struct text){0};
    g.depth = 1;
    g.line = (struct place){0};
    add(g.out, "static void init_%s(void *p)\n{\n    %s *const v = p;\n", c, type);
}

static void end_init(void)
{
    if (g.body.n)
        add_bytes(g.out, g.body.s, g.body.n);
    add(g.out, "    (void)v;\n}\n");
}

static void init_fields(const struct field *f)
{
    for (; f; f = f->next)
        init_variable(f->sub->type, f->sub, form("v->%s_", f->name), f->at);
}

static void define_init(const struct type *t)
{
    if (t->kind == K_GRAPH && fields_need_init(t->nodes)) {
        begin_init(form("%s__node", t->c), form("struct %s__node", t->c));
        init_fields(t->nodes);
        end_init();
    }
    if (!needs_init(t))
        return;
    begin_init(t->c, c_type(t));
    if (t->kind == K_OBJECT) {
        put("*v = orc_new_object(&class_%s, %s);", t->unit->c, at(t->at));
    } else if (t->kind == K_ARRAY) {
        put("orc_array_bounds(%s, v, (const int64_t[]){%s}, %s);", descriptor(t), bounds_list(t->bounds, t->dims),
            at(t->at));
    } else if (t->kind == K_UNION) {
        put("orc_union_tag(%s, v, %s, %s);", descriptor(t), expr(t->tag), at(t->at));
    } else {
        init_fields(t->fields);
    }
    end_init();
}

static int field_table(const char *name, const char *c, const struct field *f, const char *inner)
{
    int count = 0;
    if (!f)
        return 0;
    add(g.out, "static const struct orc_field fields_%s[] = {\n", name);
    for (; f; f = f->next, count++)
        add(g.out, "    {\"%s\", %s, offsetof(%s, %s%s_), %lld},\n", f->name, descriptor(f->sub->type), c, inner,
            f->name, (long long)f->tag);
    add(g.out, "};\n");
    return count;
}

static const char *shown_name(const struct type *t)
{
    const char *s = show(t);
    return c_string(s, strlen(s));
}

static void describe(const struct type *t)
{
    static const char *const kinds[] = {
        [K_ENUM] = "ORC_BYTE", [K_RECORD] = "ORC_RECORD", [K_UNION] = "ORC_UNION", [K_ARRAY] = "ORC_ARRAY",
        [K_SET] = "ORC_SET",   [K_BAG] = "ORC_BAG",       [K_GRAPH] = "ORC_GRAPH", [K_OBJECT] = "ORC_OBJECT"};
    int fields = 0;
    if (t->kind == K_GRAPH) {
        int nodes = field_table(form("%s__node", t->c), form("struct %s__node", t->c), t->nodes, "");
        add(g.out,
            "static const struct orc_type type_%s__node = {.name = %s, .kind = ORC_RECORD, .size = sizeof(struct "
            "%s__node)",
            t->c, shown_name(t), t->c);
        if (nodes)
            add(g.out, ", .fields = fields_%s__node, .fields_count = %d", t->c, nodes);
        if (fields_need_init(t->nodes))
            add(g.out, ", .init = init_%s__node", t->c);
        add(g.out, "};\n");
    }
    if (t->kind == K_RECORD || t->kind == K_UNION || t->kind == K_GRAPH)
        fields = field_table(t->c, c_type(t), t->fields, t->kind == K_UNION ? "u." : "");
    add(g.out, "static const struct orc_type type_%s = {.name = %s, .kind = %s, .size = sizeof(%s)", t->c,
        shown_name(t), t->kind == K_ENUM && t->count > 256 ? "ORC_WORD" : kinds[t->kind], c_type(t));
    if (is_flat(t))
        add(g.out, ", .flat = true");
    if (t->kind == K_ENUM)
        add(g.out, ", .limit = %lld", (long long)t->count);
    if (t->kind == K_UNION)
        add(g.out, ", .limit = offsetof(%s, u)", c_type(t));
    if (t->dims)
        add(g.out, ", .dims = %d", t->dims);
    if (fields)
        add(g.out, ", .fields = fields_%s, .fields_count = %d", t->c, fields);
    if (t->kind == K_GRAPH)
        add(g.out, ", .elem = &type_%s__node", t->c);
    else if (t->kind == K_ARRAY || t->kind == K_SET || t->kind == K_BAG)
        add(g.out, ", .elem = %s", descriptor(t->elem));
    if (t->kind == K_OBJECT)
        add(g.out, ", .elem = &type_%s__fields, .class = &class_%s", t->unit->c, t->unit->c);
    if (needs_init(t))
        add(g.out, ", .init = init_%s", t->c);
    add(g.out, "};\n");
}

static bool wanted(const struct type *t)
{
    return t->canon == t && t->c && (t->kind == K_ENUM || t->kind >= K_RECORD) && t->kind != K_ERROR;
}

void generate_types(void)
{
    for (struct type *t = types_first; t; t = t->next)
        if (wanted(t))
            define(t);
    for (struct type *t = types_first; t; t = t->next)
        if (wanted(t)) {
            add(g.out, "static const struct orc_type type_%s;\n", t->c);
            if (t->kind == K_OBJECT)
                add(g.out, "static const struct orc_class class_%s;\n", t->unit->c);
        }
    add(g.out, "\n");
    for (struct type *t = types_first; t; t = t->next)
        if (wanted(t) && needs_init(t))
            add(g.out, "static void init_%s(void *p);\n", t->c);
    for (struct type *t = types_first; t; t = t->next)
        if (wanted(t))
            define_init(t);
    for (struct type *t = types_first; t; t = t->next)
        if (wanted(t))
            describe(t);
}
