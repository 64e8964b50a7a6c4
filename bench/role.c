/* SPDX-License-Identifier: BSD-3-Clause
 *
 * role.c - the roles and the scenarios, by name: a new test adds its own to both lists. */
#include "process.h"
#include "scenario.h"

const struct bench_scenario *const bench_scenarios[] = {
    &bench_scenario_peers,   &bench_scenario_idle,    &bench_scenario_wake,       &bench_scenario_barrier,
    &bench_scenario_layered, &bench_scenario_startup, &bench_scenario_memory,     &bench_scenario_loss,
    &bench_scenario_am,      &bench_scenario_put,     &bench_scenario_rpc,        &bench_scenario_panda,
    &bench_scenario_orca,    &bench_scenario_sweep,   &bench_scenario_sweep_loss, NULL,
};

const struct bench_api *bench_role(const char *name)
{
    static const struct bench_api *const role[] = {
        &bench_api_native,    &bench_api_fm,         &bench_api_fm1,      &bench_role_idle_native,
        &bench_role_idle_fm,  &bench_role_wake,      &bench_role_wake_fd, &bench_role_barrier,
        &bench_role_layer_fm, &bench_role_layer_fm1, &bench_role_startup, &bench_role_memory,
        &bench_role_am,       &bench_role_am_par,    &bench_role_put,     &bench_role_panda,
    };
    for (size_t i = 0; i < sizeof role / sizeof *role; i++)
        if (!strcmp(role[i]->name, name))
            return role[i];
    return NULL;
}
