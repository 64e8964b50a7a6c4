/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi.c - `runnel mpi COMMAND`: sets the variables by which Open MPI takes Runnel's provider of libfabric and no other,
 * says which, and starts the command, mpirun or srun most likely. */
#include "tool.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPT_QUIET = 'q', OPT_PRINT = 256 };
static const char path_variable[] = "FI_PROVIDER_PATH";

static const struct argp_option options[] = {
    {"quiet", OPT_QUIET, NULL, 0, "Do not say which variables are set", 0},
    {"print", OPT_PRINT, NULL, 0, "Print the variables for a shell to evaluate, and end", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct {
    const char *name, *value;
    bool suggested; /* what the user has set stays */
} variables[] = {
    {"FI_PROVIDER", "rnl", false}, /* libfabric offers no other */
    {"OMPI_MCA_pml", "cm", false},
    {"OMPI_MCA_mtl", "ofi", false},
    {"OMPI_MCA_btl", "self,ofi", false},
    {"OMPI_MCA_op", "^avx", false},
    {"OMPI_MCA_osc_rdma_acc_use_amo", "0", true},      /* else Open MPI 4.1 ends a job at its first MPI_MAX */
    {"OMPI_MCA_osc_rdma_buffer_size", "262144", true}, /* it accumulates an eighth of that at once */
    {"MPIR_CVAR_NOLOCAL", "1", false},                 /* else MPICH has its own shared memory */
};
enum { VARIABLES = sizeof variables / sizeof *variables };

struct mpi_arguments {
    bool quiet, print;
    char **command;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct mpi_arguments *a = state->input;
    (void)arg;
    switch (key) {
    case OPT_QUIET:
        a->quiet = true;
        return 0;
    case OPT_PRINT:
        a->print = true;
        return 0;
    case ARGP_KEY_ARG: /* options after it are the command's */
        a->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!a->command && !a->print)
            argp_error(state, "say what to start: runnel mpi mpirun -np 4 PROGRAM");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Sets the variables. Most that the user has set otherwise are replaced, since with others it is not this provider. */
static bool set_variables(const char *folder)
{
    const char *before = getenv(path_variable);
    char path[PATH_MAX * 2];
    int n = snprintf(path, sizeof path, "%s%s%s", folder, before && *before ? ":" : "", before ? before : "");
    if (n < 0 || (size_t)n >= sizeof path || setenv(path_variable, path, 1) != 0)
        return false;
    for (unsigned i = 0; i < VARIABLES; i++)
        if (setenv(variables[i].name, variables[i].value, !variables[i].suggested) != 0)
            return false;
    return true;
}

bool rnl_tool_below_mpi(void)
{
    const char *set = getenv(variables[0].name);
    return set && strcmp(set, variables[0].value) == 0;
}

static int print(void)
{
    printf("export %s='%s'\n", path_variable, getenv(path_variable));
    for (unsigned i = 0; i < VARIABLES; i++)
        printf("export %s='%s'\n", variables[i].name, getenv(variables[i].name));
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Whether that file is a program of an MPI that is built on UCX, and so has no use for libfabric: what ldd(1) says. */
static bool is_on_ucx(const char *path)
{
    struct stat st;
    int ends[2];
    char text[16384];
    size_t n = 0;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)(dup2(ends[1], STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0);
        execlp("ldd", "ldd", path, (char *)NULL);
        _exit(RNL_TOOL_NOT_FOUND);
    }
    close(ends[1]);
    for (ssize_t k = 1; k > 0 && n<sizeof text - 1; n += k> 0 ? (size_t)k : 0)
        k = read(ends[0], text + n, sizeof text - 1 - n);
    close(ends[0]);
    text[n] = '\0';
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return strstr(text, "libmpi") && strstr(text, "libucp.so") && !strstr(text, "libfabric.so");
}

int rnl_tool_mpi(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc = "Starts a command, such as mpirun, below which Open MPI sends its messages by Runnel.\v"
               "See runnel-mpi(7).",
        .children = rnl_tool_help,
    };
    struct mpi_arguments a = {0};
    char folder[PATH_MAX];
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
    if (!rnl_tool_find("adapters/ofi/librnl-fi.so", "libfabric/librnl-fi.so", folder)) {
        fprintf(stderr,
                "runnel mpi: librnl-fi.so is neither beside this program nor in %s/libfabric; Runnel was built without "
                "libfabric "
                "(Debian: libfabric-dev), or this part was not installed\n",
                RNL_LIBDIR);
        return RNL_TOOL_UNAVAILABLE;
    }
    *strrchr(folder, '/') = '\0';
    if (strpbrk(folder, ":;'") || !set_variables(folder)) {
        fprintf(stderr, "runnel mpi: %s cannot hold the provider's folder, %s\n", path_variable, folder);
        return RNL_TOOL_CANNOT_RUN;
    }
    if (a.print)
        return print();
    for (char **word = a.command; *word; word++)
        if (is_on_ucx(*word)) {
            fprintf(stderr,
                    "runnel mpi: %s uses an MPI that is built on UCX (Debian's MPICH), which cannot use Runnel's "
                    "provider of "
                    "libfabric: take Open MPI, or an MPICH of the device ch4:ofi (LD_LIBRARY_PATH)\n",
                    *word);
            return RNL_TOOL_UNAVAILABLE;
        }
    if (!a.quiet) {
        fprintf(stderr, "runnel mpi: %s=%s", path_variable, getenv(path_variable));
        for (unsigned i = 0; i < VARIABLES; i++)
            fprintf(stderr, " %s=%s", variables[i].name, getenv(variables[i].name));
        fputc('\n', stderr);
    }
    execvp(a.command[0], a.command);
    fprintf(stderr, "runnel mpi: '%s' cannot be started: %s\n", a.command[0], strerror(errno));
    return errno == ENOENT ? RNL_TOOL_NOT_FOUND : RNL_TOOL_CANNOT_RUN;
}
