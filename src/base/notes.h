/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notes.h - text about its state that a process shows to others: a memfd named "runnel-notes", which they find through
 * /proc/PID/fd. The text may change at any time; a reader that meets a change tries again. */
#ifndef RNL_BASE_NOTES_H
#define RNL_BASE_NOTES_H

#include <stddef.h>
#include <stdint.h>

/*   byte 0       8         12      16                 16384
 *        +-------+---------+-------+------------------+
 *        | magic | version | bytes | text             |    version: odd while the text changes
 *        +-------+---------+-------+------------------+    Its process writes, others read. */
enum { RNL_NOTES_BYTES = 16384, RNL_NOTES_TEXT_MAX = RNL_NOTES_BYTES - 16 };

struct rnl_notes;
/* Shows the first RNL_NOTES_TEXT_MAX bytes of the text. *notes is made the first time. Returns 0 or
 * RNL_ERR_NO_MEMORY. */
int rnl_notes_set(struct rnl_notes **notes, const char *text, size_t n);
void rnl_notes_free(struct rnl_notes *notes); /* NULL is allowed */
/* Copies what process pid shows on all of its pages, lines of printable characters, and a zero byte. Returns the
 * length; 0 = nothing. */
size_t rnl_notes_read(int pid, char text[RNL_NOTES_TEXT_MAX + 1]);

#endif
