/* SPDX-License-Identifier: BSD-3-Clause
 *
 * systems.c - finds a system, and what is built in, by its name. To add one: its folder, and a line of `list`. */
#include "sim/myrinet/systems/system.h"

#include "sim/myrinet/data.h"

#include <string.h>

const struct myri_system *myri_system_find(const char *name)
{
    for (int i = 0; myri_systems[i]; i++)
        if (strcmp(myri_systems[i]->name, name) == 0)
            return myri_systems[i];
    return NULL;
}

const struct myri_data *myri_data_find(const char *name)
{
    for (const struct myri_data *d = myri_data_table; d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}
