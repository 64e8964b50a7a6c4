/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim_decode.c - `runnel sim decode`: a trace of runnel sim as lines to read. */
#include "base/error.h"
#include "launcher/launcher.h"
#include "sim/cluster/trace.h"
#include "tool.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct decode_options {
    struct vc_trace_filter filter;
    const char *file;
};

static const struct argp_option options[] = {
    {"host", 'H', "N", 0, "Only what virtual host N sent or was sent", 0},
    {"lost", 'l', NULL, 0, "Only what did not arrive", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct decode_options *plan = state->input;
    char *end;
    switch (key) {
    case 'H':
        errno = 0;
        plan->filter.host = (uint32_t)strtoul(arg, &end, 10);
        if (end == arg || *end != '\0' || arg[0] == '-' || errno != 0 || plan->filter.host == UINT32_MAX)
            argp_error(state, "--host takes the number of a host, not '%s'", arg);
        return 0;
    case 'l':
        plan->filter.only_dropped = 1;
        return 0;
    case ARGP_KEY_ARG:
        if (plan->file)
            argp_error(state, "one file at a time");
        plan->file = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name the file that runnel sim --trace wrote");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int rnl_tool_sim_decode(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "FILE",
        "Prints each datagram of a trace: when (virtual seconds), whether it was sent, got "
        "or lost, from where to where, and what it holds. FILE comes from runnel sim "
        "--trace; - is the standard input.",
        rnl_tool_help,
        NULL,
        NULL};
    struct decode_options plan = {.filter = {.host = UINT32_MAX}};
    argp_err_exit_status = RNL_EXIT_USAGE;
    int e = argp_parse(&argp, argc, argv, 0, NULL, &plan);
    if (e != 0) { /* what is wrong with the options has been said, and has ended us */
        fprintf(stderr, "runnel: cannot read the options: %s\n", strerror(e));
        return RNL_EXIT_SYSTEM;
    }
    FILE *in = strcmp(plan.file, "-") == 0 ? stdin : fopen(plan.file, "rb");
    if (!in) {
        fprintf(stderr, "runnel: %s: %s\n", plan.file, strerror(errno));
        return RNL_EXIT_SYSTEM;
    }
    int status = vc_trace_decode(in, stdout, &plan.filter);
    if (in != stdin)
        fclose(in);
    if (status < 0)
        fprintf(stderr, "runnel: %s: %s\n", plan.file, rnl_last_error()->text);
    if (fflush(stdout) != 0)
        return RNL_EXIT_OUTPUT;
    return status < 0 ? RNL_EXIT_SYSTEM : 0;
}
