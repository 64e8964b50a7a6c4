/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_lines.h - the order of `LC_ALL=C sort` on lines in memory, and a sort by it. Pure: no input, output or messages.
 *
 * A line is a pointer to bytes that end with '\n'; it may hold any other byte, NUL too. Lines compare as with memcmp,
 * and a line that is the beginning of another one comes first. Up to SORT_SLACK bytes after a line's newline are read,
 * so they must exist. */
#ifndef SORT_LINES_H
#define SORT_LINES_H

#include <stddef.h>
#include <stdint.h>

enum { SORT_SLACK = 8 };

/* What is sorted in place of the lines themselves: 16 bytes, the first of which decide nearly every comparison. */
struct sort_record {
    uint64_t key; /* sort_key(line) */
    const unsigned char *line;
};

/* The next 7 bytes of the line as a number, first byte on top, zeros after its end; in the lowest byte how many of them
 * there are, or 8 when more follow. So keys compare as the lines do, and equal keys below 8 mean equal lines. */
uint64_t sort_key(const unsigned char *line);

/* Less than, equal to or greater than 0. */
int sort_compare(const unsigned char *a, const unsigned char *b);

/* Sorts records whose keys are those of their lines; the keys are spoilt. In place, n log n expected for any input. */
void sort_records(struct sort_record *records, size_t n);

#endif
