/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudprun.c - `amudprun [-np N] [-spawn S|L|C] [-depth D] [-v] PROGRAM ARGUMENT...`: starts a program that was written
 * for AMUDP, as its master. */
#include "api/amudp/amudp_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USAGE = 64, SYSTEM = 71 };

#define SYNOPSIS "usage: amudprun [-np N] [-spawn S|L|C] [-depth D] [-v] PROGRAM [ARGUMENT...]\n"

_Noreturn static void help(void)
{
    fputs(SYNOPSIS "Starts a program that was written for AMUDP.\n"
                   "\n"
                   "  -np N, -n N   start N workers (default: 1)\n"
                   "  -spawn L      on this host (default, unless SPAWNFN says another)\n"
                   "  -spawn S      by ssh, on the hosts that SSH_SERVERS names\n"
                   "  -spawn C      by the command in CSPAWN_CMD\n"
                   "  -depth D      so many requests to one endpoint are expected at a time (default: 128)\n"
                   "  -v            say what is started\n"
                   "  -h, --help    print this\n"
                   "\n"
                   "Settings are variables of the environment: amudp(3). See amudprun(1).\n",
          stdout);
    exit(0);
}

_Noreturn static void usage(const char *wrong)
{
    fprintf(stderr, "amudprun: %s\n" SYNOPSIS "amudprun --help says more.\n", wrong);
    exit(USAGE);
}

static int number(const char *text, int most, const char *wrong)
{
    char *end;
    long n = strtol(text ? text : "", &end, 10);
    if (!text || end == text || *end != '\0' || n < 1 || n > most)
        usage(wrong);
    return (int)n;
}

int main(int argc, char **argv)
{
    int nproc = 1, depth = 0, verbose = 0, i = 1;
    const char *letter = AMUDP_getenv_prefixed("SPAWNFN");
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *option = argv[i] + 1 + (argv[i][1] == '-');
        if (strcmp(option, "np") == 0 || strcmp(option, "n") == 0)
            nproc = number(argv[++i], 1 << 20, "-np takes the number of workers");
        else if (strcmp(option, "depth") == 0)
            depth = number(argv[++i], AMUDP_MAX_NETWORKDEPTH, "-depth takes 1 to 1024");
        else if (strcmp(option, "spawn") == 0)
            letter = argv[++i];
        else if (strcmp(option, "v") == 0)
            verbose = 1;
        else if (strcmp(option, "help") == 0 || strcmp(option, "h") == 0)
            help();
        else {
            char wrong[80];
            snprintf(wrong, sizeof wrong, "there is no option '%.40s'", argv[i]);
            usage(wrong);
        }
    }
    if (i >= argc)
        usage("name the program to start behind the options");
    amudp_spawnfn_t spawn = rnl_amudp_spawn_named(letter ? letter : "L");
    if (!spawn)
        usage("-spawn takes S, L or C");
    argc -= i;
    argv += i;
    AMX_VerboseErrors = 1;
    if (verbose) {
        setenv("AMUDP_VERBOSEENV", "1", 1);
        setenv("AMUDP_SPAWN_VERBOSE", "1", 1);
    }
    (void)rnl_amudp_master(&argc, &argv, nproc, depth, spawn);
    return SYSTEM; /* it has said why */
}
