/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool.h - the subcommands of `runnel`, one a file: each gets its own arguments (argv[0] is "runnel NAME") and returns
 * the exit status. */
#ifndef RNL_TOOLS_TOOL_H
#define RNL_TOOLS_TOOL_H

#include <argp.h>

extern const struct argp_child rnl_tool_help[]; /* -h, which argp itself does not take for --help: .children */

int rnl_tool_agent(int argc, char **argv);
int rnl_tool_bench(int argc, char **argv);
int rnl_tool_info(int argc, char **argv);
int rnl_tool_paper(int argc, char **argv);
int rnl_tool_run(int argc, char **argv);
int rnl_tool_sim(int argc, char **argv);
int rnl_tool_sim_decode(int argc, char **argv); /* of rnl_tool_sim */

#endif
