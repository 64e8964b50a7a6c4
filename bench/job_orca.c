/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_orca.c - Orca: operations on shared objects between two cpus, as a program in Orca finds them (peers/orca.imp): a
 * call of the one copy at another cpu without effect (ROI) and one that increments it, an increment of a copy that both
 * have (GOI), and a read of it; a call and a multicast with 64 KiB. Then the same without each of what the run-time
 * system does to be fast, as Bal et al. (1997) did. The program is compiled once by orcac, and its file is gone before
 * it runs. The baseline of the operations of 8 bytes but the read is 8 bytes there and back over the bare ring in the
 * same step; that of a run without something is the run with it. */
#include "launch.h"
#include "peer.h"
#include "process.h"
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WORD = 8, LONG = 64 << 10, LUMPS = 10, OPERATIONS = 100, RUN_SECONDS = 60 };
static const struct {
    const char *name;
    enum bench_test test;
    uint64_t bytes;
    bool alone; /* no message, so nothing that could be left out */
} figures[] = {{"roi", BENCH_ORCA_ROI, WORD, false}, {"inc", BENCH_ORCA_INC, WORD, false},
               {"goi", BENCH_ORCA_GOI, WORD, false}, {"put", BENCH_ORCA_PUT, LONG, false},
               {"all", BENCH_ORCA_ALL, LONG, false}, {"read", BENCH_ORCA_READ, WORD, true}};
enum { FIGURES = sizeof figures / sizeof *figures };
static const char *const without[] = {NULL, "switches", "layers", "pieces", "copies"}; /* from BENCH_ORCA on */
enum { WAYS = sizeof without / sizeof *without };
_Static_assert(BENCH_ORCA + WAYS == BENCH_OWN, "an interface for each way");

static struct bench_unit baseline_unit = {.test = BENCH_LATENCY, .bytes = WORD};
static int program = -1; /* descriptor of what was compiled */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    int e = 0;
    (void)w;
    for (unsigned i = 0; i < FIGURES; i++)
        for (unsigned way = 0; way < (figures[i].alone ? 1 : WAYS) && e == 0; way++)
            e = bench_scenario_add(p, &bench_scenario_orca, figures[i].test, BENCH_ORCA + way, 0, figures[i].bytes, 0,
                                   true);
    return e;
}

static int fail(struct bench_run *r, const char *what, int e)
{
    snprintf(r->plan->text, sizeof r->plan->text, "orca: %s%s%s", what, e == ECHILD ? "" : ": ",
             e == ECHILD ? "" : strerror(e));
    return -e;
}

/* Beside an installed command, or in the build tree it is in. */
static int find_compiler(char *out, size_t size)
{
    char self[PATH_MAX];
    if (bench_find_self(self))
        return -ENOENT;
    snprintf(out, size, "%s/orcac", self);
    if (access(out, X_OK) == 0)
        return 0;
    snprintf(out, size, "%s/../lang/orcac", self);
    return access(out, X_OK) == 0 ? 0 : -ENOENT;
}

static const char *missing(void)
{
    char path[PATH_MAX + 32];
    if (find_compiler(path, sizeof path))
        return "orcac, which is not beside this command";
    if (bench_find_sources(path))
        return "its program, which is not installed: bench/peers/orca.imp";
    return system("${CC:-cc} --version >/dev/null 2>&1") == 0 ? NULL : "a C compiler, which is not installed";
}

/* Starts argv, argv[0] found along PATH, with nothing to read; `out` is its standard output. */
static int start(const char *const argv[], int out, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    int e = posix_spawn_file_actions_init(&files);
    if (e)
        return e;
    e = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    e = e ? e : posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    e = e ? e : posix_spawnp(pid, argv[0], &files, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return e;
}

/* Whether the process ends with status 0. */
static bool ends_well(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int compile(struct bench_run *r)
{
    char sources[PATH_MAX], source[PATH_MAX + 32], compiler[PATH_MAX + 32], made[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    pid_t pid;
    if (bench_find_sources(sources) || find_compiler(compiler, sizeof compiler))
        return fail(r, missing(), ENOENT);
    snprintf(source, sizeof source, "%s/bench/peers/orca.imp", sources);
    if ((size_t)snprintf(made, sizeof made, "%s/runnel-orca-XXXXXX", temporary && *temporary ? temporary : "/tmp") >=
        sizeof made)
        return fail(r, "the folder of TMPDIR has too long a name", ENAMETOOLONG);
    int fd = mkstemp(made);
    if (fd < 0)
        return fail(r, "no file can be made in the folder of TMPDIR", errno);
    close(fd);
    const char *const argv[] = {compiler, "-O2", source, "-o", made, NULL};
    int e = start(argv, STDERR_FILENO, &pid);
    if (e == 0 && ends_well(pid) && chmod(made, 0700) == 0)
        program = open(made, O_PATH); /* not O_CLOEXEC: ranks are started by its name in /proc */
    unlink(made);
    return program < 0 ? fail(r, "orcac did not compile bench/peers/orca.imp, or the C compiler is missing", ECHILD)
                       : 0;
}

static int read_figures(FILE *f, double value[FIGURES])
{
    char line[200], name[32];
    double ns;
    unsigned seen = 0;
    while (fgets(line, sizeof line, f))
        for (unsigned i = 0; sscanf(line, "%31s %lf", name, &ns) == 2 && i < FIGURES; i++)
            if (strcmp(name, figures[i].name) == 0) {
                value[i] = ns;
                seen |= 1u << i;
            }
    return seen == (1u << FIGURES) - 1 ? 0 : -ECHILD;
}

static int run(struct bench_run *r, const char *left_out, double value[FIGURES])
{
    char self[PATH_MAX], runnel[PATH_MAX + 32], cpus[32], seconds[16], file[64], lumps[16], operations[16];
    const char *const bind = r->area->one_core ? "none" : "core";
    int ends[2];
    pid_t pid;
    if (bench_find_self(self))
        return fail(r, "this command is not in /proc", ENOENT);
    snprintf(runnel, sizeof runnel, "%s/runnel", self);
    snprintf(cpus, sizeof cpus, "%d,%d", r->area->cpu[0], r->area->cpu[1]);
    snprintf(seconds, sizeof seconds, "%d", RUN_SECONDS);
    bench_area_path(program, file);
    snprintf(lumps, sizeof lumps, "%d", LUMPS);
    snprintf(operations, sizeof operations, "%d", OPERATIONS);
    const char *const argv[] = {"taskset",
                                "-c",
                                cpus,
                                runnel,
                                "run",
                                "--timeout",
                                seconds,
                                "--bind",
                                bind,
                                "-n",
                                "2",
                                file,
                                left_out ? "-without" : "-OC",
                                left_out ? left_out : lumps,
                                left_out ? lumps : operations,
                                left_out ? operations : NULL,
                                NULL};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail(r, "there is no pipe", errno);
    int e = start(argv, ends[1], &pid);
    close(ends[1]);
    FILE *f = e ? NULL : fdopen(ends[0], "r");
    if (!f) {
        close(ends[0]);
        return fail(r, "runnel run cannot be started", e ? e : errno);
    }
    e = read_figures(f, value);
    fclose(f);
    return !ends_well(pid) || e ? fail(r, "the program did not end well", ECHILD) : 0;
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    double whole[FIGURES], value[FIGURES], baseline = NAN, cpu_ns;
    int e = program < 0 ? compile(r) : 0;
    if (e == 0)
        e = bench_repeat(r, &baseline_unit, BENCH_LATENCY, BENCH_RAW, 0, &baseline_unit.baseline[0], &baseline,
                         &cpu_ns);
    for (unsigned way = 0; way < WAYS && e == 0; way++) {
        e = run(r, without[way], value);
        if (way == 0)
            memcpy(whole, value, sizeof whole);
        for (unsigned i = 0; i < FIGURES && e == 0; i++) {
            struct bench_unit *u = bench_find(first, n, figures[i].test, BENCH_ORCA + way, 0);
            if (u)
                bench_put(u, value[i],
                          way > 0                                        ? whole[i]
                          : figures[i].alone || figures[i].bytes != WORD ? NAN
                                                                         : 2 * baseline);
        }
    }
    return e;
}

const struct bench_scenario bench_scenario_orca = {
    .name = "orca",
    .share = 2,
    .apis = (1u << BENCH_OWN) - (1u << BENCH_ORCA),
    .shm = true,
    .missing = missing,
    .plan = plan,
    .step = step,
};
