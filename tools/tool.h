/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tool.h - the subcommands of `runnel`, one a file: each gets its own arguments (argv[0] is "runnel NAME") and returns
 * the exit status. */
#ifndef RNL_TOOLS_TOOL_H
#define RNL_TOOLS_TOOL_H

#include <argp.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

extern const struct argp_child rnl_tool_help[]; /* -h, which argp itself does not take for --help: .children */

int rnl_tool_agent(int argc, char **argv);
int rnl_tool_bench(int argc, char **argv);
int rnl_tool_daemon(int argc, char **argv);
int rnl_tool_doctor(int argc, char **argv);
int rnl_tool_info(int argc, char **argv);
int rnl_tool_key(int argc, char **argv);
int rnl_tool_mpi(int argc, char **argv);
bool rnl_tool_below_mpi(void); /* whether `runnel mpi` has started this command */
int rnl_tool_paper(int argc, char **argv);
int rnl_tool_rpc(int argc, char **argv);
int rnl_tool_run(int argc, char **argv);
int rnl_tool_sim(int argc, char **argv);
int rnl_tool_sim_decode(int argc, char **argv); /* of rnl_tool_sim */
int rnl_tool_top(int argc, char **argv);
int rnl_tool_why(int argc, char **argv);

struct rnl_launch;
/* Sets where this command is, on the hosts too, unless --agent did; `self` has to live as long. 0, or -1: it has been
 * said why. */
int rnl_tool_find_self(struct rnl_launch *, char *self, size_t room);

/* Of subcommands that start a program: as a shell's, and that what they add to it is not there. */
enum { RNL_TOOL_UNAVAILABLE = 69, RNL_TOOL_CANNOT_RUN = 126, RNL_TOOL_NOT_FOUND = 127 };
/* Finds a library of ours: in the build tree of this command, else where it was installed. Returns false if it is in
 * neither place. */
bool rnl_tool_find(const char *in_tree, const char *installed, char path[PATH_MAX]);

#endif
