/* SPDX-License-Identifier: BSD-3-Clause
 *
 * console.h - carries what the ranks write to the launcher's own standard output and error.
 *
 * Lines are never torn: a stream's bytes go out up to its last newline, the rest waits for its end (on a terminal '\r'
 * ends a line too). A line longer than 64 KiB goes out in parts. A last line without newline goes out as it is; a
 * newline is put behind it only if another rank's line follows. Nothing is lost and memory is bounded: while a sink
 * takes nothing, the pipes that lead to it are not read, so the ranks block as if they wrote to it themselves; and when
 * its reader is gone, they get SIGPIPE as if they did. Never blocks. */
#ifndef RNL_JOB_CONSOLE_H
#define RNL_JOB_CONSOLE_H

#include <stdint.h>
#include <sys/types.h>

struct rnl_console;

/* 0 or -errno. `epoll` gets RNL_SOURCE_STREAM and RNL_SOURCE_SINK events, which go to rnl_console_event. */
int rnl_console_new(int epoll, uint32_t ranks, int tag, struct rnl_console **out);
void rnl_console_free(struct rnl_console *);

/* The reading end of the pipe that is rank's standard output (which 1) or error (2); the console's from now on. 0 or
 * -errno. */
int rnl_console_add(struct rnl_console *, uint32_t rank, int which, int fd);
/* An agent's: what would go to its standard output (which 1) and error (2) goes there. `put` takes all or a part of it
 * (the rest comes again when there is work), or nothing: 0; -1 = whoever would read it is gone. */
typedef ssize_t rnl_console_put(void *arg, int which, const char *data, size_t n);
void rnl_console_redirect(struct rnl_console *, rnl_console_put *put, void *arg, int out_terminal, int err_terminal);
/* The launcher's: what a host's ranks have written, in whole lines but for an end, as the stream of a rank. */
void rnl_console_feed(struct rnl_console *, uint32_t rank, int which, const char *data, size_t n);
/* Whether more may be fed to that one's sink: 1, 0 = later, -1 = nobody reads it any more. */
int rnl_console_room(const struct rnl_console *, int which);

/* RNL_SOURCE_STREAM. */
void rnl_console_event(struct rnl_console *, uint32_t index);
/* Moves what can be moved. 1 = there is more to do right away. */
int rnl_console_work(struct rnl_console *);

/* Streams of this rank that have not ended; *unread = one of them certainly has bytes that wait for a sink. */
unsigned rnl_console_open(const struct rnl_console *, uint32_t rank, int *unread);
/* Gives its streams up, passing on what was read of them. */
void rnl_console_end(struct rnl_console *, uint32_t rank);
/* Bytes that wait for the sinks. */
int rnl_console_waiting(const struct rnl_console *);
/* The launcher's own line, without newline, on standard error behind all that went there before. */
void rnl_console_say(struct rnl_console *, const char *line);
/* errno of the first stream that could not be read or sink that could not be written to, 0 = none; EPIPE does not
 * count. */
int rnl_console_error(const struct rnl_console *);
int rnl_console_lost(const struct rnl_console *); /* it was a stream */

#endif
