/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main.c - the start and the end of a program, and its run-time errors. */
#include "rts.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct orc_program *orc_program;
const struct orc_system *orc_system = &orc_local;
int orc_argc;
char **orc_argv;
int orc_cpus_wanted = 1;
struct orc_options orc_options = {.conflict = ORC_PLACE_COMBINED};
struct orc_counts orc_counts;

const char *orc_file(orc_place at)
{
    uint32_t i = at >> 20;
    return orc_program && i < orc_program->files_count ? orc_program->files[i] : "?";
}

void orc_end(int status)
{
    fflush(stdout);
    fflush(stderr);
    _Exit(status);
}

__attribute__((format(printf, 2, 0))) _Noreturn static void vfail(orc_place at, const char *format, va_list ap)
{
    fflush(stdout);
    if (at & 0xfffff)
        fprintf(stderr, "cpu %d: %s:%u: ", orc_system->mycpu(), orc_file(at), at & 0xfffff);
    else
        fprintf(stderr, "cpu %d: ", orc_system->mycpu());
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    orc_end(1);
}

void orc_fail(orc_place at, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfail(at, format, ap);
}

void orc_fail_index(orc_place at, int64_t i, int64_t lb, int64_t n, int dim)
{
    if (!n)
        orc_fail(at, "the index %lld is used in an empty array", (long long)i);
    if (dim > 1)
        orc_fail(at, "index %d is %lld; the bounds of this dimension are %lld .. %lld", dim, (long long)i,
                 (long long)lb, (long long)(lb + n - 1));
    orc_fail(at, "the index is %lld; the bounds of the array are %lld .. %lld", (long long)i, (long long)lb,
             (long long)(lb + n - 1));
}

/* ---- who waits ---- */

void orc_waits_for(struct orc_object *o, const struct orc_blocked *b)
{
    if (orc_self) {
        orc_self->object = o;
        orc_self->operation = b->operation;
        orc_self->at = b->at;
    }
}

void orc_alone(const struct orc_object *o, uint32_t operation, orc_place at)
{
    const char *of = orc_operation_of(o->class, operation)->name;
    if (o->shared && o->shared->name)
        orc_fail(at, "local deadlock: %s of the object %s (%s) blocks, and no other process can reach it", of,
                 o->shared->name, o->class->name);
    orc_fail(at, "local deadlock: %s of an object of type %s blocks, which no other process can reach", of,
             o->class->name);
}

static void tell(struct orc_thread *t, void *arg)
{
    (void)arg;
    if (!t->waiting || !t->object)
        return;
    fprintf(stderr, "cpu %d: %s:%u: process %s waits in %s of the object %s (%s)\n", t->cpu, orc_file(t->at),
            t->at & 0xfffff, t->process->name, orc_operation_of(t->object->class, t->operation)->name,
            t->object->shared->name, t->object->class->name);
}

void orc_deadlock(void)
{
    fflush(stdout);
    fprintf(stderr, "deadlock: all processes wait for each other\n");
    orc_each_thread(tell, NULL);
    orc_end(1);
}

static void tell_counts(void)
{
    const struct orc_counts *c = &orc_counts;
    fflush(stdout);
    fprintf(stderr, "cpu %d: %llu switches, %llu layers, %llu pieces, %llu bytes of copies\n", orc_system->mycpu(),
            (unsigned long long)c->switches, (unsigned long long)c->layered, (unsigned long long)c->pieces,
            (unsigned long long)c->kept);
}

/* ---- the start ---- */

static const char help[] =
    "Options of the run-time system stand behind the program's name, before its arguments or after -OC:\n"
    "  -cpus N        one process plays N cpus (without `runnel run`)\n"
    "  -p 1|2|3       never replicate objects, always, or decide (default)\n"
    "  -static, -dynamic, -combined   decide by the compiler's estimate, by counts, or by both\n"
    "  -no-strategy   ignore calls of Strategy\n"
    "  -without NAME  without what saves switches, layers, pieces or copies (orcac(1))\n"
    "  -turn-ns N     each turn of a loop in a process or function takes so much longer\n"
    "  -v             tell each decision, and in the end each object, and what the four of -without save\n"
    "  -OC            the program's own arguments follow\n";

static bool number_option(const char *name, const char *arg, const char *value, long lo, long hi, long *out)
{
    char *end;
    if (strcmp(arg, name) != 0)
        return false;
    *out = value ? strtol(value, &end, 10) : 0;
    if (!value || *end || *out < lo || *out > hi) {
        fprintf(stderr, "%s: a number from %ld to %ld was expected after %s\n", orc_program->name, lo, hi, name);
        orc_end(2);
    }
    return true;
}

/* What Bal et al. (1997) do to make messages of Orca faster, each of which can be left out to see what it saves. */
static bool without_option(const char *arg, const char *value)
{
    static const char *const names[ORC_SAVINGS] = {"switches", "layers", "pieces", "copies"};
    if (strcmp(arg, "-without") != 0)
        return false;
    for (int i = 0; value && i < ORC_SAVINGS; i++)
        if (strcmp(value, names[i]) == 0) {
            orc_options.without[i] = true;
            return true;
        }
    fprintf(stderr, "%s: switches, layers, pieces or copies was expected after -without\n", orc_program->name);
    orc_end(2);
}

/* Takes the options of the run-time system out of argv; what does not begin with a known one is the program's. */
static void take_options(int argc, char **argv)
{
    int i = 1;
    long v;
    for (; i < argc; i++) {
        const char *a = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (number_option("-cpus", a, next, 1, 1024, &v)) {
            orc_cpus_wanted = (int)v;
            i++;
        } else if (number_option("-p", a, next, 1, 3, &v)) {
            orc_options.place = (int)v;
            i++;
        } else if (number_option("-turn-ns", a, next, 0, 1000000000, &v)) {
            orc_options.turn_ns = (int)v;
            i++;
        } else if (without_option(a, next)) {
            i++;
        } else if (strcmp(a, "-static") == 0) {
            orc_options.conflict = ORC_PLACE_STATIC;
        } else if (strcmp(a, "-dynamic") == 0) {
            orc_options.conflict = ORC_PLACE_DYNAMIC;
        } else if (strcmp(a, "-combined") == 0) {
            orc_options.conflict = ORC_PLACE_COMBINED;
        } else if (strcmp(a, "-no-strategy") == 0 || strcmp(a, "-no_strategy") == 0) {
            orc_options.no_strategy = true;
        } else if (strcmp(a, "-v") == 0) {
            orc_options.verbose = true;
        } else if (strcmp(a, "-help") == 0) {
            fputs(help, stdout);
            orc_end(0);
        } else {
            i += strcmp(a, "-OC") == 0;
            break;
        }
    }
    orc_argc = argc - i + 1;
    orc_argv = orc_alloc((size_t)(argc + 1) * sizeof *orc_argv);
    orc_argv[0] = argc ? argv[0] : (char *)"";
    for (int k = i; k < argc; k++)
        orc_argv[k - i + 1] = argv[k];
}

int orc_main(const struct orc_program *program, int argc, char **argv)
{
    orc_program = program;
    take_options(argc, argv);
    orc_bound_stack();
    orc_choose_system();
    orc_in_operation++; /* data modules neither fork nor wait */
    program->start();
    orc_in_operation--;
    int status = orc_system->loop();
    fflush(stdout);
    if (orc_options.verbose)
        tell_counts();
    program->finish();
    orc_free_threads();
    orc_free_hidden();
    orc_leave_system();
    free(orc_argv);
    return status;
}

int orc_ncpus(void)
{
    return orc_system->ncpus();
}

int orc_mycpu(void)
{
    return orc_system->mycpu();
}

void orc_fork(uint32_t process, int64_t cpu, void **args, orc_place at)
{
    if (cpu != -1 && (cpu < 0 || cpu >= orc_ncpus()))
        orc_fail(at, "FORK on cpu %lld; there are cpus 0 to %d", (long long)cpu, orc_ncpus() - 1);
    orc_system->fork(process, cpu, args, at);
}
