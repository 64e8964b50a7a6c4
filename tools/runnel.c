/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runnel.c - the `runnel` command: a table of subcommands. To add one: its file, its line in tool.h, its line here. */
#include "runnel/runnel.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 64, EXIT_NO_LAUNCHER = 71 };

static error_t help(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != 'h')
        return ARGP_ERR_UNKNOWN;
    argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
    return 0;
}

static const struct argp_option help_option[] = {
    {NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp help_argp = {.options = help_option, .parser = help};
const struct argp_child rnl_tool_help[] = {{&help_argp, 0, NULL, 0}, {NULL, 0, NULL, 0}};

#if !RNL_HAVE_LAUNCHER
static int no_launcher(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fprintf(stderr,
            "runnel: this command was built without libuv, which starting jobs needs: install its development package "
            "(Debian: libuv1-dev) and build again, or start programs by mpirun or srun\n");
    return EXIT_NO_LAUNCHER;
}
#endif

static const struct subcommand {
    const char *name, *title, *what;
    int (*main)(int argc, char **argv);
} subcommands[] = {
#if RNL_HAVE_LAUNCHER
    {"run", "runnel run", "start the processes of a job", rnl_tool_run},
    {"agent", "runnel agent", NULL, rnl_tool_agent},
    {"doctor", "runnel doctor", "what of these hosts, and of the network between them, is in the way of jobs",
     rnl_tool_doctor},
#else
    {"run", "runnel run", NULL, no_launcher},
    {"agent", "runnel agent", NULL, no_launcher},
    {"doctor", "runnel doctor", NULL, no_launcher},
#endif
    {"daemon", "runnel daemon", "keep the names of services, for processes that no launcher started", rnl_tool_daemon},
    {"key", "runnel key", "make and install the key by which daemons of several hosts know each other", rnl_tool_key},
    {"bench", "runnel bench", "measure messages beside what the machine allows", rnl_tool_bench},
    {"sim", "runnel sim", "run a job on a virtual cluster, the same in each run", rnl_tool_sim},
    {"paper", "runnel paper", "the papers' measurements, on the papers' machine", rnl_tool_paper},
    {"mpi", "runnel mpi", "start Open MPI so that its messages go by Runnel", rnl_tool_mpi},
    {"rpc", "runnel rpc", "start a program whose SunRPC calls go over shared memory", rnl_tool_rpc},
    {"info", "runnel info", "what this machine has for messages, and what is in force", rnl_tool_info},
    {"top", "runnel top", "what the ranks of a job do now, live: rates, waits, queues", rnl_tool_top},
    {"why", "runnel why", "why a job does not go on: who waits for whom, and who is the reason", rnl_tool_why},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static void usage(FILE *to)
{
    fputs("Usage: runnel SUBCOMMAND [ARGUMENT...]\n"
          "User-level messaging between processes, of one host and of several.\n\n",
          to);
    for (unsigned i = 0; i < SUBCOMMANDS; i++)
        if (subcommands[i].what) /* `agent` is for the launcher, not for people */
            fprintf(to, "  %-8s %s\n", subcommands[i].name, subcommands[i].what);
    fputs("\n  runnel SUBCOMMAND --help   what it takes\n"
          "  runnel --version           which release this is\n",
          to);
}

int main(int argc, char **argv)
{
    char option[] = "--help", *asked[] = {argv[0], argc > 2 ? argv[2] : NULL, option, NULL};
    if (argc == 3 && strcmp(argv[1], "help") == 0)
        argv = asked; /* runnel help run */
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-?") == 0 ||
        strcmp(name, "help") == 0) {
        usage(stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 || strcmp(name, "version") == 0) {
        printf("runnel %s\n", rnl_version());
        return fflush(stdout) == 0 ? 0 : 1;
    }
    for (unsigned i = 0; i < SUBCOMMANDS; i++) {
        if (strcmp(name, subcommands[i].name) != 0)
            continue;
        argv[1] = (char *)(uintptr_t)subcommands[i].title; /* for messages about its options */
        return subcommands[i].main(argc - 1, argv + 1);
    }
    fprintf(stderr, "runnel: there is no %s '%s'; runnel --help lists what there is\n",
            name[0] == '-' ? "option" : "subcommand", name);
    return EXIT_USAGE;
}
