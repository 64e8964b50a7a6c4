/* SPDX-License-Identifier: BSD-3-Clause
 *
 * say.h - how the files of `runnel paper` say what is wrong, and how far they are. */
#ifndef MYRI_SAY_H
#define MYRI_SAY_H

#include <stddef.h>

/* Say what is wrong, and return the status for it. */
int myri_cmd_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
int myri_cmd_failed(void);                               /* the last error: 64 if it was of arguments, or 1 */
int myri_cmd_cannot(const char *what, const char *name); /* and errno says why */
int myri_cmd_no_memory(size_t bytes);
/* Says on standard error, if it is a terminal, what takes its time, in place of the line before;
 * NULL clears it. */
void myri_cmd_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
