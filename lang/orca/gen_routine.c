/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen_routine.c - functions, processes, operations and BEGIN parts: one C function each, operations up to two. */
#include "lang/orca/gen.h"

static void begin(struct unit *u, struct symbol *s)
{
    struct text *out = g.out;
    g = (struct gen){.out = out, .unit = u, .routine = s, .depth = 1};
}

/* Local variables, and copies of IN parameters that are changed. */
static void locals(struct symbol *s)
{
    for (int i = 0; i < s->params_count; i++) {
        struct symbol *p = s->params[i];
        if (p->mode != MODE_IN || is_simple(p->type) || !p->assigned)
            continue;
        add(&g.heads, "    %s %s_ = {0};\n", c_type(p->type), p->name);
        put("orc_copy(%s, &%s_, %s_in);", descriptor(p->type), p->name, p->name);
        if (!is_flat(p->type))
            add(&g.tails, "    orc_free(%s, &%s_);\n", descriptor(p->type), p->name);
    }
    for (int i = 0; i < s->params_count; i++) {
        struct symbol *p = s->params[i];
        if (p->mode != MODE_OUT)
            continue;
        put_place(p->at);
        if (is_simple(p->type))
            put("*%s_ = 0;", p->name);
        else
            put("orc_free(%s, %s_);", descriptor(p->type), p->name);
        init_variable(p->type, p->sub, form("(*%s_)", p->name), p->at);
    }
    for (struct symbol *l = s->locals; l; l = l->next) {
        bool simple = is_simple(l->type);
        add(&g.heads, "    %s %s_ = %s;\n", c_type(l->type), l->name,
            simple || l->type->kind == K_OBJECT ? "0" : "{0}");
        if (!simple && !is_flat(l->type))
            add(&g.tails, "    orc_free(%s, &%s_);\n", descriptor(l->type), l->name);
        add(&g.heads, "    (void)%s_;\n", l->name);
        put_place(l->at);
        init_variable(l->type, l->sub, form("%s_", l->name), l->at);
        if (l->forked && l->type->kind == K_OBJECT)
            put("orc_score(%s_, %.0f, %.0f, %.0f);", l->name, l->estimate.score, l->estimate.accesses,
                l->estimate.uncertainty);
    }
}

static void finish(struct place end, const char *last)
{
    if (g.heads.n)
        add_bytes(g.out, g.heads.s, g.heads.n);
    if (g.body.n)
        add_bytes(g.out, g.body.s, g.body.n);
    if (g.to_out)
        add(g.out, "out:;\n");
    if (g.tails.n)
        add_bytes(g.out, g.tails.s, g.tails.n);
    add(g.out, "%s}\n\n", last);
    (void)end;
}

static void mark_source(struct place p)
{
    struct text body = g.body;
    g.body = (struct text){0};
    put_place(p);
    if (g.body.n)
        add_bytes(g.out, g.body.s, g.body.n);
    g.body = body;
}

void generate_function(struct symbol *s)
{
    bool simple = s->type && is_simple(s->type);
    begin(s->unit, s);
    mark_source(s->impl->at);
    add(g.out, "static %s\n{\n", prototype(s));
    for (int i = 0; i < s->params_count; i++)
        if (s->params[i]->mode == MODE_IN && (is_simple(s->params[i]->type) || !s->params[i]->assigned))
            add(&g.heads, "    (void)%s_;\n", s->params[i]->name);
    if (simple)
        add(&g.heads, "    %s r = 0;\n", c_type(s->type));
    put("ORC_ENTER(%s);", at(s->impl->at));
    locals(s);
    statements(s->impl->b->a);
    put_place(s->impl->b->c->at);
    if (s->type)
        put("orc_fail(%s, \"%s ends without RETURN\");", at(s->impl->b->c->at), s->name);
    finish(s->impl->b->c->at, simple ? "    return r;\n" : "");
}

/* The parameters of operations and processes come as addresses. */
static void unpack(struct symbol *s)
{
    int i = 0;
    for (; i < s->params_count; i++) {
        struct symbol *p = s->params[i];
        const char *c = c_type(p->type);
        if (p->mode != MODE_IN)
            add(&g.heads, "    %s *const %s_ = args[%d];\n", c, p->name, i);
        else if (is_simple(p->type))
            add(&g.heads, "    %s %s_ = *(%s *)args[%d];\n", c, p->name, c, i);
        else
            add(&g.heads, "    const %s *const %s_%s = args[%d];\n", c, p->name, p->assigned ? "in" : "", i);
        if (p->mode != MODE_IN || is_simple(p->type) || !p->assigned)
            add(&g.heads, "    (void)%s_;\n", p->name);
    }
    if (s->type)
        add(&g.heads, "    %s *const r = args[%d];\n", c_type(s->type), i);
    if (!i && !s->type)
        add(&g.heads, "    (void)args;\n");
}

void generate_process(struct symbol *s)
{
    begin(s->unit, s);
    mark_source(s->impl->at);
    add(g.out, "static void p_%s(void **args)\n{\n", s->c);
    unpack(s);
    locals(s);
    statements(s->impl->b->a);
    put_place(s->impl->b->c->at);
    finish(s->impl->b->c->at, "");
}

static bool writes(struct node *guard)
{
    return changes_object(guard->a) || changes_object(guard->list);
}

static void end_of_body(struct symbol *s)
{
    put_place(s->impl->b->c->at);
    if (s->type)
        put("orc_fail(%s, \"%s ends without RETURN\");", at(s->impl->b->c->at), s->name);
    put("status = ORC_DONE;");
    go_out();
}

static void alternative(struct symbol *s, struct node *n, bool *saves)
{
    bool guard_changes = changes_object(n->a),
         save = guard_changes || (writes(n) && (may_block(n->a) || may_block(n->list)));
    put_place(n->at);
    put("{");
    g.depth++;
    if (save)
        put("orc_save(self, &saved);");
    *saves |= save;
    const char *c = expr(n->a);
    put("if (%s) {", c);
    g.depth++;
    statements(n->list);
    end_of_body(s);
    g.depth--;
    put("}");
    if (save)
        put("%s(self, &saved);", guard_changes ? "orc_restore" : "orc_forget");
    g.depth--;
    put("}");
}

/* The alternatives that write, or those that do not. */
static void generate_alternatives(struct symbol *s, bool write)
{
    struct node *body = s->impl->b;
    bool saves = false;
    begin(s->unit, s);
    g.operation = true;
    mark_source(s->impl->at);
    add(g.out, "static int o_%s__%s(struct orc_object *self, void **args)\n{\n", s->c, write ? "write" : "read");
    add(g.out, "    struct %s__fields *const f = self->fields;\n    int status = ORC_BLOCKED;\n    (void)f;\n",
        s->unit->c);
    unpack(s);
    put("ORC_ENTER(%s);", at(s->impl->at));
    locals(s);
    if (body->flag) {
        for (struct node *n = body->a; n; n = n->next)
            if (writes(n) == write)
                alternative(s, n, &saves);
    } else {
        if (write && may_block(body->a)) {
            saves = true;
            put("orc_save(self, &saved);");
        }
        statements(body->a);
        end_of_body(s);
    }
    if (saves) {
        add(&g.heads, "    void *saved = NULL;\n");
        add(&g.tails,
            "    if (status == ORC_BLOCKED)\n        orc_restore(self, &saved);\n    orc_forget(self, &saved);\n");
    }
    finish(body->c->at, "    return status;\n");
}

void generate_operation(struct symbol *s)
{
    if (s->reads)
        generate_alternatives(s, false);
    if (s->writes)
        generate_alternatives(s, true);
}

void generate_start(struct unit *u)
{
    struct symbol *s = u->start;
    begin(u, s);
    mark_source(s->impl->at);
    if (u->kind == U_OBJECT) {
        add(g.out,
            "static void start_%s(struct orc_object *self)\n{\n    struct %s__fields *const f = self->fields;\n    "
            "(void)f;\n",
            u->c, u->c);
    } else {
        add(g.out, "static void start_%s(void)\n{\n", u->c);
    }
    statements(s->impl->b->a);
    finish(s->at, "");
}
