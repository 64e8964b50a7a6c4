/* SPDX-License-Identifier: BSD-3-Clause
 *
 * systems.c - finds a system, and what is built in, by its name. To add one: its folder, and a line of `list`. Those
 * that users bring along (kit/kit.h) are added while the command runs. */
#include "sim/myrinet/systems/added.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct myri_added *added;

void myri_system_add(struct myri_added *a)
{
    a->next = added;
    added = a;
}

const struct myri_system *myri_system_find(const char *name)
{
    for (int i = 0; myri_systems[i]; i++)
        if (strcmp(myri_systems[i]->name, name) == 0)
            return myri_systems[i];
    for (const struct myri_added *a = added; a; a = a->next)
        if (strcmp(a->named, name) == 0)
            return &a->system;
    return NULL;
}

int myri_system_is_added(const struct myri_system *s)
{
    for (const struct myri_added *a = added; a; a = a->next)
        if (&a->system == s)
            return 1;
    return 0;
}

const struct myri_data *myri_system_object(const struct myri_system *s)
{
    char name[80];
    for (const struct myri_added *a = added; a; a = a->next)
        if (&a->system == s)
            return &a->object;
    snprintf(name, sizeof name, "%s.hex", s->object);
    return myri_data_find(name);
}

const struct myri_data *myri_system_lines(const struct myri_system *s)
{
    char name[80];
    for (const struct myri_added *a = added; a; a = a->next)
        if (&a->system == s)
            return &a->lines;
    snprintf(name, sizeof name, "%s.lines", s->object);
    return myri_data_find(name);
}

const struct myri_data *myri_data_find(const char *name)
{
    for (const struct myri_data *d = myri_data_table; d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

int myri_side_begin(struct myri_side *s, uint32_t bytes)
{
    if (s->system->virtual) {
        s->space = malloc(sizeof *s->space);
        if (!s->space || myri_space_init(s->space, s->host) < 0)
            return -1;
        s->out = myri_space_map(s->space, bytes);
    } else {
        s->out = myri_host_take(s->host, bytes, 0);
    }
    return s->hw->fault[0] ? -1 : 0;
}

void myri_side_end(struct myri_side *s)
{
    if (s->space)
        myri_space_fini(s->space);
    free(s->space);
    s->space = NULL;
}

uint32_t myri_side_word(const struct myri_side *s, uint32_t at)
{
    return s->space ? myri_space_word(s->space, NULL, at) : myri_host_word(s->host, at);
}

void myri_side_set_word(const struct myri_side *s, uint32_t at, uint32_t value)
{
    if (s->space)
        myri_space_set_word(s->space, NULL, at, value);
    else
        myri_host_set_word(s->host, at, value);
}

void myri_side_copy(const struct myri_side *s, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (s->space)
        myri_space_copy(s->space, s->task, to, from, bytes);
    else
        myri_task_copy(s->task, to, from, bytes);
}
