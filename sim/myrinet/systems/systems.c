/* SPDX-License-Identifier: BSD-3-Clause
 *
 * systems.c - the list of systems. To add one: its folder, its line here, its files in sim/meson.build. */
#include "sim/myrinet/systems/system.h"

#include "sim/myrinet/data.h"

#include <string.h>

extern const struct myri_system myri_system_bip, myri_system_bip_tuned, myri_system_fm1, myri_system_fm1_polls,
    myri_system_fm1_link, myri_system_fm1_bus, myri_system_fm2, myri_system_mpi_fm1, myri_system_mpi_fm2,
    myri_system_pm, myri_system_pm_cache, myri_system_pm_cached, myri_system_pm_uncached, myri_system_pm_tuned,
    myri_system_pm_tuned_cached, myri_system_pm_tuned_uncached, myri_system_probe, myri_system_simple, myri_system_vmmc;

const struct myri_system *const myri_systems[] = {&myri_system_simple,
                                                  &myri_system_fm1,
                                                  &myri_system_fm1_polls,
                                                  &myri_system_fm1_link,
                                                  &myri_system_fm1_bus,
                                                  &myri_system_fm2,
                                                  &myri_system_mpi_fm1,
                                                  &myri_system_mpi_fm2,
                                                  &myri_system_vmmc,
                                                  &myri_system_bip,
                                                  &myri_system_bip_tuned,
                                                  &myri_system_pm,
                                                  &myri_system_pm_cached,
                                                  &myri_system_pm_uncached,
                                                  &myri_system_pm_cache,
                                                  &myri_system_pm_tuned,
                                                  &myri_system_pm_tuned_cached,
                                                  &myri_system_pm_tuned_uncached,
                                                  &myri_system_probe,
                                                  NULL};

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
