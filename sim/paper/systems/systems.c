/* SPDX-License-Identifier: BSD-3-Clause
 *
 * systems.c - the list of systems. To add one: its folder, its line here, its files in sim/meson.build. */
#include "sim/paper/systems/system.h"

#include "sim/paper/data.h"

#include <string.h>

extern const struct rnl_system rnl_system_bip, rnl_system_bip_tuned, rnl_system_fm1, rnl_system_fm1_polls,
    rnl_system_fm1_link, rnl_system_fm1_bus, rnl_system_fm2, rnl_system_mpi_fm1, rnl_system_mpi_fm2, rnl_system_pm,
    rnl_system_pm_cache, rnl_system_pm_cached, rnl_system_pm_uncached, rnl_system_pm_tuned, rnl_system_pm_tuned_cached,
    rnl_system_pm_tuned_uncached, rnl_system_probe, rnl_system_simple, rnl_system_vmmc;

const struct rnl_system *const rnl_systems[] = {&rnl_system_simple,
                                                &rnl_system_fm1,
                                                &rnl_system_fm1_polls,
                                                &rnl_system_fm1_link,
                                                &rnl_system_fm1_bus,
                                                &rnl_system_fm2,
                                                &rnl_system_mpi_fm1,
                                                &rnl_system_mpi_fm2,
                                                &rnl_system_vmmc,
                                                &rnl_system_bip,
                                                &rnl_system_bip_tuned,
                                                &rnl_system_pm,
                                                &rnl_system_pm_cached,
                                                &rnl_system_pm_uncached,
                                                &rnl_system_pm_cache,
                                                &rnl_system_pm_tuned,
                                                &rnl_system_pm_tuned_cached,
                                                &rnl_system_pm_tuned_uncached,
                                                &rnl_system_probe,
                                                NULL};

const struct rnl_system *rnl_system_find(const char *name)
{
    for (int i = 0; rnl_systems[i]; i++)
        if (strcmp(rnl_systems[i]->name, name) == 0)
            return rnl_systems[i];
    return NULL;
}

const struct rnl_data *rnl_data_find(const char *name)
{
    for (const struct rnl_data *d = rnl_data_table; d->name; d++)
        if (strcmp(d->name, name) == 0)
            return d;
    return NULL;
}
