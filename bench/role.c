/* SPDX-License-Identifier: BSD-3-Clause
 *
 * role.c - the roles and the scenes, by name: a new test adds its own to both lists. */
#include "role.h"
#include "scene.h"

const struct bench_scene *const bench_scenes[] = {
    &bench_scene_peers,   &bench_scene_idle,   &bench_scene_wake, &bench_scene_barrier, &bench_scene_layered,
    &bench_scene_startup, &bench_scene_memory, &bench_scene_loss, &bench_scene_am,      NULL,
};

const struct bench_api *bench_role(const char *name)
{
    static const struct bench_api *const role[] = {
        &bench_api_native,   &bench_api_fm,       &bench_api_fm1,      &bench_role_idle_native, &bench_role_idle_fm,
        &bench_role_wake,    &bench_role_wake_fd, &bench_role_barrier, &bench_role_layer_fm,    &bench_role_layer_fm1,
        &bench_role_startup, &bench_role_memory,  &bench_role_am,      &bench_role_am_par,
    };
    for (size_t i = 0; i < sizeof role / sizeof *role; i++)
        if (!strcmp(role[i]->name, name))
            return role[i];
    return NULL;
}
