/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gen.c - the C of a whole program: types, prototypes, routines, classes, and the table that the run-time system
 * gets. */
#include "lang/orca/gen.h"
#include <string.h>

struct gen g;
struct gen_options gen_options = {.checks = true, .lines = true, .polls = true};

static struct symbol *process_list[4096], *function_list[4096];
static int process_count, function_count;

static bool generated(const struct unit *u)
{
    return u->instance || !u->spec->generic;
}

/* Processes get their numbers, OrcaMain number 0; functions that are used as values get theirs. */
static void number_routines(void)
{
    struct symbol *main = NULL;
    process_count = 1;
    for (struct unit *u = units_first; u; u = u->next)
        for (int i = 0; i < u->routines_count; i++) {
            struct symbol *s = u->routines[i];
            s->number = 0;
            if (s->kind == S_PROCESS && strcmp(s->name, "OrcaMain") == 0) {
                if (main)
                    error_at(s->at, "OrcaMain is declared twice; the other one is at %s:%d", main->at.src->path,
                             main->at.line);
                else if (s->params_count)
                    error_at(s->at, "OrcaMain has no parameters");
                else if (u->instance)
                    error_at(s->at, "OrcaMain stands in a unit that is not generic");
                main = s;
            } else if (s->kind == S_PROCESS && process_count < 4096) {
                s->number = process_count;
                process_list[process_count++] = s;
            } else if (s->kind == S_FUNCTION && s->used && function_count < 4096) {
                function_list[function_count] = s;
                s->number = ++function_count;
            }
        }
    process_list[0] = main;
    if (!main)
        error_at((struct place){0}, "no module declares PROCESS OrcaMain(), with which a program begins");
}

static void fields_of_class(struct unit *u)
{
    struct type *t = new_type(K_RECORD, u->spec->at);
    struct field **last = &t->fields;
    for (struct symbol *s = u->fields; s; s = s->next) {
        struct field *f = alloc(sizeof *f);
        f->name = s->name;
        f->at = s->at;
        f->sub = s->sub;
        *last = f;
        last = &f->next;
    }
    t->name = form("the fields of %s", u->name);
    t->c = form("%s__fields", u->c);
}

static void parameters(struct symbol *s, const char *name)
{
    if (!s->params_count)
        return;
    add(g.out, "static const struct orc_param params_%s[] = {\n", name);
    for (int i = 0; i < s->params_count; i++) {
        struct symbol *p = s->params[i];
        add(g.out, "    {\"%s\", %s, %s, %.0f, %.0f, %.0f},\n", p->name,
            p->mode == MODE_IN    ? "ORC_IN"
            : p->mode == MODE_OUT ? "ORC_OUT"
                                  : "ORC_SHARED",
            descriptor(p->type), p->estimate.score, p->estimate.accesses, p->estimate.uncertainty);
    }
    add(g.out, "};\n");
}

static void class_of(struct unit *u)
{
    for (int i = 0; i < u->operations_count; i++)
        parameters(u->operations[i], u->operations[i]->c);
    if (u->operations_count)
        add(g.out, "static const struct orc_operation operations_%s[] = {\n", u->c);
    for (int i = 0; i < u->operations_count; i++) {
        struct symbol *s = u->operations[i];
        add(g.out, "    {\"%s\", %s, %d, %s, %s, %s, %s},\n", s->name, s->blocks ? "true" : "false", s->params_count,
            s->params_count ? form("params_%s", s->c) : "NULL", s->type ? descriptor(s->type) : "NULL",
            s->reads ? form("o_%s__read", s->c) : "NULL", s->writes ? form("o_%s__write", s->c) : "NULL");
    }
    if (u->operations_count)
        add(g.out, "};\n");
    add(g.out, "static const struct orc_class class_%s = {\"%s\", &type_%s__fields, %s, %s, %d};\n\n", u->c, u->name,
        u->c, u->start ? form("start_%s", u->c) : "NULL", u->operations_count ? form("operations_%s", u->c) : "NULL",
        u->operations_count);
}

static bool started[4096];

/* Data modules start after those that they import. */
static void start_data(struct unit *u, int depth)
{
    int index = 0;
    for (struct unit *v = units_first; v != u; v = v->next)
        index++;
    if (index >= 4096 || started[index])
        return;
    started[index] = true;
    for (int i = 0; i < u->imports_count; i++)
        start_data(u->imports[i], depth + 1);
    if (u->kind != U_DATA || !generated(u))
        return;
    for (struct symbol *s = u->data; s; s = s->next)
        init_variable(s->type, s->sub, form("d_%s__%s", u->c, s->name), s->at);
    if (u->start)
        put("start_%s();", u->c);
}

static void start_and_finish(void)
{
    struct text *out = g.out;
    g = (struct gen){.out = out, .depth = 1};
    for (struct unit *u = units_first; u; u = u->next)
        start_data(u, 0);
    add(out, "static void start(void)\n{\n%s}\n\nstatic void finish(void)\n{\n", g.body.n ? g.body.s : "");
    for (struct unit *u = units_first; u; u = u->next)
        for (struct symbol *s = u->data; s; s = s->next)
            if (!is_flat(s->type))
                add(out, "    orc_free(%s, &d_%s__%s);\n", descriptor(s->type), u->c, s->name);
    add(out, "}\n\n");
}

static void program_table(struct unit *main)
{
    for (int i = 0; i < process_count; i++)
        parameters(process_list[i], form("p_%s", process_list[i]->c));
    add(g.out, "static const struct orc_process processes[] = {\n");
    for (int i = 0; i < process_count; i++)
        add(g.out, "    {\"%s\", %d, %s, p_%s},\n", process_list[i]->name, process_list[i]->params_count,
            process_list[i]->params_count ? form("params_p_%s", process_list[i]->c) : "NULL", process_list[i]->c);
    add(g.out, "};\nstatic void (*const functions[])(void) = {\n");
    for (int i = 0; i < function_count; i++)
        add(g.out, "    (void (*)(void))f_%s,\n", function_list[i]->c);
    add(g.out, "    NULL,\n};\nstatic const struct orc_type *const classes[] = {\n");
    int classes = 0;
    for (struct type *t = types_first; t; t = t->next)
        if (t->kind == K_OBJECT && t->canon == t && generated(t->unit)) {
            add(g.out, "    %s,\n", descriptor(t));
            classes++;
        }
    add(g.out, "    NULL,\n};\nstatic const char *const files[] = {\n");
    for (int i = 0; i < sources_count; i++)
        add(g.out, "    %s,\n", c_string(sources[i]->path, strlen(sources[i]->path)));
    add(g.out,
        "};\nstatic const struct orc_program program = {\n    .name = \"%s\",\n    .files = files,\n    .files_count = "
        "%d,\n    .classes = classes,\n"
        "    .classes_count = %d,\n    .processes = processes,\n    .processes_count = %d,\n    .functions = "
        "functions,\n    .functions_count = %d,\n"
        "    .start = start,\n    .finish = finish,\n};\n\nint main(int argc, char **argv)\n{\n    return "
        "orc_main(&program, argc, argv);\n}\n",
        main->name, sources_count, classes, process_count, function_count);
}

static void each_routine(void (*function)(struct symbol *), void (*process)(struct symbol *),
                         void (*operation)(struct symbol *))
{
    for (struct unit *u = units_first; u; u = u->next) {
        if (!generated(u))
            continue;
        for (int i = 0; i < u->routines_count; i++)
            (u->routines[i]->kind == S_PROCESS ? process : function)(u->routines[i]);
        for (int i = 0; i < u->operations_count; i++)
            operation(u->operations[i]);
    }
}

static void declare_function(struct symbol *s)
{
    add(g.out, "%s%s;\n", s->external ? "" : "static ", prototype(s));
}

static void nothing(struct symbol *s)
{
    (void)s;
}

static void define_function(struct symbol *s)
{
    if (s->impl)
        generate_function(s);
}

void generate(struct unit *main, struct text *out)
{
    g.out = out;
    number_routines();
    if (errors_count)
        return;
    for (struct unit *u = units_first; u; u = u->next)
        if (u->object && generated(u))
            fields_of_class(u);
    add(out, "/* Made by orcac from the Orca program %s. */\n%s#include <orca_rts.h>\n\n", main->name,
        gen_options.checks ? "" : "#define ORC_NO_CHECKS 1\n");
    generate_types();
    add(out, "\n");
    for (struct unit *u = units_first; u; u = u->next)
        for (struct symbol *s = u->data; s; s = s->next)
            add(out, "static %s d_%s__%s;\n", c_type(s->type), u->c, s->name);
    each_routine(declare_function, nothing, nothing);
    add(out, "\n");
    each_routine(define_function, generate_process, generate_operation);
    for (struct unit *u = units_first; u; u = u->next)
        if (u->start && generated(u))
            generate_start(u);
    for (struct unit *u = units_first; u; u = u->next)
        if (u->object && generated(u))
            class_of(u);
    start_and_finish();
    program_table(main);
}
