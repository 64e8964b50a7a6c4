/* SPDX-License-Identifier: BSD-3-Clause
 *
 * page.h - pieces of a page of HTML. What is text is made safe for it. */
#ifndef MYRI_PAGE_H
#define MYRI_PAGE_H

#include <stdio.h>

enum { PAGE_PATH = 512 };
/* A template for mkdtemp and mkstemp in TMPDIR, or else in /tmp. 0, or -1 with errno: the path is too long. */
int page_scratch(char out[PAGE_PATH]);
void page_begin(FILE *, const char *title);
void page_end(FILE *);
void page_text(FILE *, const char *text);
void page_head(FILE *, const char *text, int of_numbers);
void page_cell(FILE *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A number by its format, or a dash for NAN. */
void page_number(FILE *, const char *format, double v);
/* What a command prints on standard output, as it is. What the command returns, or 1, said. */
int page_printed(FILE *, int (*print)(void *), void *arg);
/* DIR/NAME.svg as a part of the page; names within it are made the picture's own. 0, or 1, said. */
int page_picture(FILE *, const char *dir, const char *name, const char *title);
/* Removes such a folder. */
void page_forget(const char *dir);
/* Makes a folder for a page at that path, or sees that nothing else than an older one is in it. 0, or the status,
 * said. */
int page_folder(const char *dir, const char *path, int *made);

#endif
