/* SPDX-License-Identifier: BSD-3-Clause
 *
 * history.h - what has been written down of a row: doc/results/history.csv, and the entries of doc/results/log.md. */
#ifndef MYRI_HISTORY_H
#define MYRI_HISTORY_H

#include <stddef.h>

enum { MYRI_HISTORY_ENTRIES = 64 };
struct myri_history {
    char first[16]; /* ours at the row's first comparison: a number, true or false; empty: nobody wrote it down */
    int entry[MYRI_HISTORY_ENTRIES], n; /* of the log, ascending */
};

/* The history of a row, which is empty where the row has none. */
void myri_history_of(const char *row, struct myri_history *out);
/* The text of an entry, from its number on; NULL: there is none. */
const char *myri_history_entry(int number, size_t *bytes);

#endif
