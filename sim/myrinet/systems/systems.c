/* SPDX-License-Identifier: BSD-3-Clause
 *
 * systems.c - finds a system, and what is built in, by its name. To add one: its folder, and a line of `list`. Those
 * that users bring along (kit/kit.h) are added while the command runs. */
#include "sim/myrinet/systems/added.h"

#include <stdio.h>
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

const struct myri_system *myri_system_tuned(const char *name)
{
    for (size_t n = strcspn(name, "-");; n += 1 + strcspn(name + n + 1, "-")) {
        char second[80];
        snprintf(second, sizeof second, "%.*s-tuned%s", (int)n, name, name + n);
        const struct myri_system *tuned = myri_system_find(second);
        if (tuned || !name[n])
            return tuned;
    }
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
