/* SPDX-License-Identifier: BSD-3-Clause
 *
 * console.h - writes what the ranks wrote to the launcher's own standard output and error.
 *
 * Lines are never torn: a stream's bytes are written up to its last newline, the rest waits for the end of its line (on
 * a terminal '\r' ends a line too). A line longer than 64 KiB is written in parts. A last line without newline is
 * written as it is; a newline is added only if another rank's line follows. Nothing is lost and memory is bounded:
 * while a sink (standard output or error) accepts nothing, rnl_console_room grants nothing to the agents, so the ranks
 * block as if they wrote to it themselves; when its reader is gone, they get SIGPIPE as if they did. Never blocks. */
#ifndef RNL_LAUNCHER_CONSOLE_H
#define RNL_LAUNCHER_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct rnl_console;

/* With `tag`, each line begins with its rank. 0 or -errno. */
int rnl_console_new(uv_loop_t *, uint32_t ranks, bool tag, struct rnl_console **out);
/* To be called after the loop has closed the console's handles. Fine on NULL. */
void rnl_console_free(struct rnl_console *);

/* Takes in what a rank wrote to its standard output (which 1) or error (2). */
void rnl_console_feed(struct rnl_console *, uint32_t rank, int which, const char *data, size_t n);
/* Whether that sink accepts more: 1; 0 = later; -1 = its reader is gone, or it failed. */
int rnl_console_room(const struct rnl_console *, int which);
/* Writes the lines of this rank that have not ended: nothing more will come. */
void rnl_console_end(struct rnl_console *, uint32_t rank);
/* Whether bytes wait for a sink. */
bool rnl_console_waiting(const struct rnl_console *);
/* Writes a line of the launcher (without newline) to standard error, behind all that was written before. */
void rnl_console_report(struct rnl_console *, const char *line);
/* The errno of the first sink that could not be written; 0 = none. EPIPE does not count. */
int rnl_console_error(const struct rnl_console *);

#endif
