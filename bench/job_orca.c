/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_orca.c - Orca: operations on a shared integer between two cpus, as a program in Orca finds them (peers/orca.imp):
 * a call of the one copy at another cpu without effect (ROI) and one that increments it; an increment of a copy that
 * both have (GOI), and a read of it. The program is compiled once by orcac, and its file is gone before it runs. The
 * baseline of all but the read is 8 bytes there and back over the bare ring in the same step. */
#include "peer.h"
#include "process.h"
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORD = 8, LUMPS = 20, OPERATIONS = 100, RUN_SECONDS = 60 };
static const struct {
    const char *name;
    enum bench_test test;
} figures[] = {{"roi", BENCH_ORCA_ROI}, {"inc", BENCH_ORCA_INC}, {"goi", BENCH_ORCA_GOI}, {"read", BENCH_ORCA_READ}};
enum { FIGURES = sizeof figures / sizeof *figures };

static struct bench_unit baseline_unit = {.test = BENCH_LATENCY, .bytes = WORD};
static int program = -1; /* descriptor of what was compiled */

static int plan(struct bench_plan *p, const struct bench_wish *w)
{
    int e = 0;
    (void)w;
    for (unsigned i = 0; i < FIGURES && e == 0; i++)
        e = bench_scenario_add(p, &bench_scenario_orca, figures[i].test, BENCH_ORCA, 0, WORD, 0, true);
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
    return system("cc --version >/dev/null 2>&1") == 0 ? NULL : "a C compiler, which is not installed";
}

static int compile(struct bench_run *r)
{
    char sources[PATH_MAX], compiler[PATH_MAX + 32], command[4 * PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    char made[PATH_MAX];
    if (bench_find_sources(sources) || find_compiler(compiler, sizeof compiler))
        return fail(r, missing(), ENOENT);
    snprintf(made, sizeof made, "%s/runnel-orca-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    int fd = mkstemp(made);
    if (fd < 0)
        return fail(r, "no file can be made in the folder of TMPDIR", errno);
    close(fd);
    snprintf(command, sizeof command, "'%s' -O2 '%s/bench/peers/orca.imp' -o '%s' >&2", compiler, sources, made);
    if (system(command) == 0 && chmod(made, 0700) == 0)
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

static int run(struct bench_run *r, double value[FIGURES])
{
    char self[PATH_MAX], command[2 * PATH_MAX];
    if (bench_find_self(self))
        return fail(r, "this command is not in /proc", ENOENT);
    snprintf(command, sizeof command,
             "exec taskset -c %d,%d '%s/runnel' run --timeout %d --bind %s -n 2 /proc/%d/fd/%d %d %d </dev/null",
             r->area->cpu[0], r->area->cpu[1], self, RUN_SECONDS, r->area->one_core ? "none" : "core", (int)getpid(),
             program, LUMPS, OPERATIONS);
    FILE *f = popen(command, "re");
    if (!f)
        return fail(r, "runnel run cannot be started", errno);
    int e = read_figures(f, value);
    return pclose(f) || e ? fail(r, "the program did not end well", ECHILD) : 0;
}

static int step(struct bench_run *r, struct bench_unit *first, size_t n)
{
    double value[FIGURES], baseline = NAN, cpu_ns;
    int e = program < 0 ? compile(r) : 0;
    if (e == 0)
        e = bench_repeat(r, &baseline_unit, BENCH_LATENCY, BENCH_RAW, 0, &baseline_unit.baseline[0], &baseline,
                         &cpu_ns);
    if (e == 0)
        e = run(r, value);
    for (unsigned i = 0; i < FIGURES && e == 0; i++)
        bench_put(bench_find(first, n, figures[i].test, BENCH_ORCA, 0), value[i],
                  figures[i].test == BENCH_ORCA_READ ? NAN : 2 * baseline);
    return e;
}

const struct bench_scenario bench_scenario_orca = {
    .name = "orca",
    .share = 2,
    .apis = 1u << BENCH_ORCA,
    .shm = true,
    .missing = missing,
    .plan = plan,
    .step = step,
};
