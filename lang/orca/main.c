/* SPDX-License-Identifier: BSD-3-Clause
 *
 * main.c - the command: options, the passes in their order, and the C compiler. */
#include "lang/orca/orca.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char help[] = "usage: orcac [OPTION...] FILE.imp...\n"
                           "Compiles an Orca program: the units in the files, and all that they import.\n\n"
                           "  -o FILE        the program (default: the name of the first file)\n"
                           "  -C             write C to FILE, and stop\n"
                           "  -I FOLDER      look for units there, too\n"
                           "  -D NAME, -U NAME   define a name for .ifdef; undefine it\n"
                           "  -k, -K         keywords in lower case; in both cases\n"
                           "  -O0 ... -O3    optimization; -O3 leaves the checks of run-time errors out\n"
                           "  -g             for a debugger\n"
                           "  --no-checks, --no-lines, --no-polls   leave out checks, #line, polling in loops\n"
                           "  --shared       a shared object for `runnel sim`\n"
                           "  --explain      tell how operations and processes use objects, and stop\n"
                           "  -v             tell which commands run\n"
                           "  --cc=COMMAND   the C compiler (default: $CC, or cc)\n"
                           "  -W OPTION      an option for the C compiler\n";

struct options {
    const char *output, *cc, *level;
    const char **files, **extra;
    int files_count, extra_count;
    bool c_only, shared, explain, verbose, debug;
};
/* Where the parts of the compiler are: in the build tree a file beside the command says so. */
static struct {
    const char *units, *include, *lib, *link;
} paths = {ORC_UNITS, ORC_INCLUDE, ORC_LIB, ORC_LINK};

static void push(const char ***list, int *count, const char *s)
{
    const char **all = alloc(((size_t)*count + 1) * sizeof *all);
    if (*count)
        memcpy(all, *list, (size_t)*count * sizeof *all);
    all[(*count)++] = s;
    *list = all;
}

static const char *folder(const char *s)
{
    size_t n = strlen(s);
    return n && s[n - 1] == '/' ? s : form("%s/", s);
}

/* The installation may have been moved as a whole, so paths that begin with @ are relative to the command's folder. */
static void find_parts(void)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0)
        return;
    exe[n] = 0;
    *strrchr(exe, '/') = 0;
    const char **all[] = {&paths.units, &paths.include, &paths.lib};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (**all[i] == '@')
            *all[i] = form("%s/%s", exe, *all[i] + 1);
    struct source *s = read_source(form("%s/orcac.paths", exe));
    if (!s)
        return;
    sources_count = 0; /* it is none of the program's */
    const char *lines[4] = {0};
    char *save = NULL, *l = strtok_r(s->text, "\n", &save);
    for (int i = 0; i < 4 && l; i++, l = strtok_r(NULL, "\n", &save))
        lines[i] = l;
    if (!lines[3])
        return;
    paths.units = lines[0];
    paths.include = lines[1];
    paths.lib = lines[2];
    paths.link = lines[3];
}

/* An option whose value follows at once or as the next argument; NULL: it is not this option. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0)
        return NULL;
    if (argv[*i][n])
        return argv[*i] + n;
    if (*i + 1 == argc)
        fatal("a value was expected after %s", name);
    return argv[++*i];
}

static void undefine(const char *name)
{
    int n = 0;
    for (int i = 0; i < lex_options.defined_count; i++)
        if (strcmp(lex_options.defined[i], name) != 0)
            lex_options.defined[n++] = lex_options.defined[i];
    lex_options.defined_count = n;
}

static bool long_option(struct options *o, const char *a)
{
    if (strcmp(a, "--explain") == 0)
        o->explain = true;
    else if (strcmp(a, "--shared") == 0)
        o->shared = true;
    else if (strcmp(a, "--no-checks") == 0)
        gen_options.checks = false;
    else if (strcmp(a, "--no-lines") == 0)
        gen_options.lines = false;
    else if (strcmp(a, "--no-polls") == 0)
        gen_options.polls = false;
    else if (strncmp(a, "--cc=", 5) == 0)
        o->cc = a + 5;
    else
        return false;
    return true;
}

static void take_options(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v;
        if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            fputs(help, stdout);
            exit(0);
        } else if (a[0] != '-') {
            push(&o->files, &o->files_count, a);
        } else if (long_option(o, a)) {
            continue;
        } else if (strcmp(a, "-C") == 0) {
            o->c_only = true;
        } else if (strcmp(a, "-v") == 0) {
            o->verbose = true;
        } else if (strcmp(a, "-g") == 0) {
            o->debug = true;
        } else if (strcmp(a, "-k") == 0) {
            lex_options.lower = true;
        } else if (strcmp(a, "-K") == 0) {
            lex_options.both = true;
        } else if (a[1] == 'O' && a[2] >= '0' && a[2] <= '3' && !a[3]) {
            o->level = a;
            if (a[2] == '3')
                gen_options.checks = false;
        } else if ((v = value_of("-o", argc, argv, &i))) {
            o->output = v;
        } else if ((v = value_of("-I", argc, argv, &i))) {
            push(&search_path, &search_count, folder(v));
        } else if ((v = value_of("-D", argc, argv, &i))) {
            push(&lex_options.defined, &lex_options.defined_count, v);
        } else if ((v = value_of("-U", argc, argv, &i))) {
            undefine(v);
        } else if ((v = value_of("-W", argc, argv, &i))) {
            push(&o->extra, &o->extra_count, v);
        } else {
            fatal("the option %s does not exist; orcac --help names them", a);
        }
    }
    if (!o->files_count)
        fatal("the implementation of a unit, FILE.imp, was expected; orcac --help tells more");
}

static void write_file(const char *path, const struct text *t)
{
    FILE *f = fopen(path, "w");
    if (!f || fwrite(t->s, 1, t->n, f) != t->n || fclose(f) != 0)
        fatal("%s cannot be written: %s", path, strerror(errno));
}

static int run(const char **command, bool verbose)
{
    pid_t child;
    int status;
    for (int i = 0; verbose && command[i]; i++)
        fprintf(stderr, "%s%s", command[i], command[i + 1] ? " " : "\n");
    if (posix_spawnp(&child, command[0], NULL, NULL, (char *const *)(uintptr_t)command, environ) != 0)
        fatal("the C compiler %s cannot be started; --cc=COMMAND names another", command[0]);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            fatal("waiting for the C compiler failed: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void compile(const struct options *o, const char *c, const char *output)
{
    const char **command = NULL;
    int n = 0;
    char *cc = copy_text(o->cc, strlen(o->cc)), *save = NULL, *link = copy_text(paths.link, strlen(paths.link));
    for (char *w = strtok_r(cc, " ", &save); w; w = strtok_r(NULL, " ", &save))
        push(&command, &n, w);
    if (!n)
        fatal("the C compiler has no name");
    /* Integers wrap; what the program computes is the same on all machines. Labels and functions may be unused. */
    static const char *const always[] = {"-std=gnu11", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-w"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        push(&command, &n, always[i]);
    push(&command, &n, o->level);
    if (o->debug)
        push(&command, &n, "-g");
    if (o->shared) {
        push(&command, &n, "-fPIC");
        push(&command, &n, "-shared");
    }
    push(&command, &n, form("-I%s", paths.include));
    for (int i = 0; i < o->extra_count; i++)
        push(&command, &n, o->extra[i]);
    push(&command, &n, "-o");
    push(&command, &n, output);
    push(&command, &n, c);
    save = NULL;
    for (char *w = strtok_r(link, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (o->shared && strcmp(w, "-lrunnel") == 0)
            continue; /* the simulator has it */
        if (strcmp(w, "-L") == 0 || strcmp(w, "-R") == 0)
            push(&command, &n, form(*(w + 1) == 'L' ? "-L%s" : "-Wl,-rpath,%s", paths.lib));
        else
            push(&command, &n, w);
    }
    push(&command, &n, NULL);
    int status = run(command, o->verbose);
    if (status)
        fatal("the C compiler ended with status %d; the C is in %s", status, c);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    return copy_text(base, dot ? (size_t)(dot - base) : strlen(base));
}

int main(int argc, char **argv)
{
    struct options o = {.cc = getenv("CC"), .level = "-O2"};
    if (!o.cc || !*o.cc)
        o.cc = "cc";
    find_parts();
    take_options(&o, argc, argv);
    push(&search_path, &search_count, folder(paths.units));
    declare_builtins();
    struct unit *main_unit = NULL;
    for (int i = 0; i < o.files_count; i++) {
        struct unit *u = load_main(o.files[i]);
        main_unit = main_unit ? main_unit : u;
    }
    if (!main_unit)
        give_up();
    check_all(main_unit);
    if (!errors_count)
        analyse();
    if (errors_count)
        give_up();
    estimate_accesses();
    if (o.explain) {
        explain(main_unit);
        return 0;
    }
    struct text c = {0};
    generate(main_unit, &c);
    if (errors_count)
        give_up();
    const char *output = o.output   ? o.output
                         : o.c_only ? form("%s.c", base_name(o.files[0]))
                                    : form("%s%s", base_name(o.files[0]), o.shared ? ".so" : "");
    if (o.c_only) {
        write_file(output, &c);
        return 0;
    }
    const char *path = form("%s.orca.c", output);
    write_file(path, &c);
    compile(&o, path, output);
    unlink(path);
    return 0;
}
