/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data.h - the files that are built in (embed.py): firmware, machines, published figures. */
#ifndef MYRI_DATA_H
#define MYRI_DATA_H

#include <stddef.h>

struct myri_data {
    const char *name; /* path below sim/myrinet/, or below the top; .hex: the bytes of an object, .lines: its lines */
    const unsigned char *bytes;
    size_t n; /* a 0 follows */
};
extern const struct myri_data myri_data_table[]; /* ends with a NULL name */
const struct myri_data *myri_data_find(const char *name);

#endif
