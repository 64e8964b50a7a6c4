/* SPDX-License-Identifier: BSD-3-Clause
 *
 * data.h - the files that are built in (embed.py): firmware, machines, published figures. */
#ifndef RNL_PAPER_DATA_H
#define RNL_PAPER_DATA_H

#include <stddef.h>

struct rnl_data {
    const char *name; /* path below sim/paper/; a .hex is its bytes */
    const unsigned char *bytes;
    size_t n; /* a 0 follows */
};
extern const struct rnl_data rnl_data_table[]; /* ends with a NULL name */
const struct rnl_data *rnl_data_find(const char *name);

#endif
