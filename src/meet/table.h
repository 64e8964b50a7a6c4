/* SPDX-License-Identifier: BSD-3-Clause
 *
 * table.h - the peers of an endpoint alone as `runnel info --pid` shows them: a memory file named "runnel-peers"
 * that the endpoint alone writes, and others find through /proc/PID/fd. Whoever reads it trusts no byte of it.
 *
 *   0       4         8     12     16
 *   +-------+---------+-----+------+----------------------------------------------------+
 *   | magic | version | pid | size | row[size], by rank: state 4 | uid 4 | gid 4 | pid 4 |
 *   +-------+---------+-----+------+----------------------------------------------------+ */
#ifndef RNL_MEET_TABLE_H
#define RNL_MEET_TABLE_H

#include <assert.h>
#include <stdint.h>

enum { RNL_MEET_TABLE_MAGIC = 0x504c4e52 /* "RNLP" */, RNL_MEET_TABLE_VERSION = 1, RNL_MEET_TABLE_MOST = 1024 };
enum rnl_meet_row_state { RNL_MEET_ROW_NONE = 0, RNL_MEET_ROW_UP, RNL_MEET_ROW_GONE };
struct rnl_meet_row {
    uint32_t state, uid, gid, pid;
};
struct rnl_meet_table {
    uint32_t magic, version, pid, size;
    struct rnl_meet_row row[];
};
static_assert(sizeof(struct rnl_meet_row) == 16 && sizeof(struct rnl_meet_table) == 16, "layout drawn above");

/* Makes the table of this process, for `size` ranks. Returns its descriptor, which stays open, and *out; or -1: the
 * system has none, which is no loss to anybody but the reader. */
int rnl_meet_table_new(uint32_t size, struct rnl_meet_table **out);
void rnl_meet_table_free(struct rnl_meet_table *, uint32_t size, int fd);
/* Copies the n-th table (0, 1, ...) of process pid, and at most RNL_MEET_TABLE_MOST rows. Returns the number of rows;
 * -1: it has no such table, or may not be looked into. */
int rnl_meet_table_read(int pid, unsigned n, struct rnl_meet_row *rows);

#endif
