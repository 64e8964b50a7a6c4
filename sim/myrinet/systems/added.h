/* SPDX-License-Identifier: BSD-3-Clause
 *
 * added.h - systems that are not built in: found by the words with which a user has named them, as others are by name.
 */
#ifndef MYRI_ADDED_H
#define MYRI_ADDED_H

#include "sim/myrinet/data.h"
#include "sim/myrinet/systems/system.h"

struct myri_added {
    const struct myri_added *next;
    const char *named;
    struct myri_system system;      /* its `object` is a path without .c, for who reads */
    struct myri_data object, lines; /* lines: text, which a 0 follows */
};

/* Adds a system, which stays until the program ends. */
void myri_system_add(struct myri_added *);
int myri_system_is_added(const struct myri_system *);
/* A system's firmware, and its table of lines, wherever they are; NULL: there is none. */
const struct myri_data *myri_system_object(const struct myri_system *);
const struct myri_data *myri_system_lines(const struct myri_system *);

#endif
