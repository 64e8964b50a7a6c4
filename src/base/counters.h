/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters.h - makes, finds and reads pages of counters (layout: runnel/counters.h). A page is a sealed memfd named
 * "runnel-counters", which other processes find through /proc/PID/fd. */
#ifndef RNL_BASE_COUNTERS_H
#define RNL_BASE_COUNTERS_H

#include "runnel/counters.h"
#include <stdbool.h>

/* The counters of interfaces lie behind those of the core. The page names and explains them itself, so that a reader
 * needs to know none of the interfaces:
 *
 *   byte 0              1024   1032        1200                                          3972   4032     4096
 *        +--------------+------+-----------+---------------------------------------------+------+--------+
 *        | struct       | used | value[21] | label[21]: name[32], text[100]              | zero | owner  |
 *        | rnl_counters |      |           |                                             |      | only   |
 *        +--------------+------+-----------+---------------------------------------------+------+--------+
 *
 * Labels 0 to used - 1 are complete and do not change any more. */
enum { RNL_COUNTERS_IFACE_AT = 1024, RNL_COUNTERS_IFACE_MAX = 21 };
struct rnl_counters_label {
    char name[32]; /* such as "FM.errors" */
    char text[100];
};
struct rnl_counters_page {
    struct rnl_counters core;
    unsigned char zero[RNL_COUNTERS_IFACE_AT - sizeof(struct rnl_counters)];
    uint64_t used;
    uint64_t value[RNL_COUNTERS_IFACE_MAX];
    struct rnl_counters_label label[RNL_COUNTERS_IFACE_MAX];
};

/* A counter of an interface: its name, and what it counts. A name of NULL ends a table. */
struct rnl_counter_text {
    const char *name, *text;
};

/* Makes the page of this process, zeroed but for the head; in private memory where memfd is refused. Returns 0 or
 * RNL_ERR_NO_MEMORY. */
int rnl_counters_new(uint32_t rank, uint32_t size, const char *program, uint64_t now_ns, struct rnl_counters **out);
void rnl_counters_free(struct rnl_counters *);
/* Gives the interface `prefix` its counters in a page that rnl_counters_new made: (*out)[i] is that of row i of the
 * table. A second call with the same arguments finds the same ones. Returns 0; RNL_ERR_NO_MEMORY: the page has no
 * room. */
int rnl_counters_add(struct rnl_counters *, const char *prefix, const struct rnl_counter_text *table, uint64_t **out);
/* Copies up to n pages of process pid to out and returns their number; 0 = none. RNL_ERR_SYSTEM: no such process, or no
 * permission; RNL_ERR_UNSUPPORTED: the page has another version. */
int rnl_counters_read(int pid, struct rnl_counters_page *out, int n);
/* A page of another process, mapped for reading. */
struct rnl_counters_view {
    const struct rnl_counters_page *at; /* NULL: none */
    int fd;                             /* of its process, behind which it was found */
};
/* The same, but only pages that are sealed, so that they can be read whatever their process does: view[i] is that of
 * out[i], until rnl_counters_unview. */
int rnl_counters_find(int pid, struct rnl_counters_page *out, struct rnl_counters_view *view, int n);
/* Copies to *page, which was copied from this view before, what it has now. Returns false if process pid, which may
 * have ended or replaced its program, no longer has that page: *page is undefined then. */
bool rnl_counters_again(int pid, const struct rnl_counters_view *view, struct rnl_counters_page *page);
void rnl_counters_unview(struct rnl_counters_view *view);
/* Returns the pid of a process in its own pid namespace, by which pages inherited over fork are told apart; 0 =
 * unknown. */
uint32_t rnl_counters_inner_pid(int pid);
/* Gets name, text and value of counter i, of the core's, then of the interfaces'. Returns 0 past the end, else 1. */
bool rnl_counters_item(const struct rnl_counters_page *, unsigned i, const char **name, const char **text,
                       uint64_t *value);

#endif
