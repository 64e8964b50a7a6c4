/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head_say.c - which hosts cannot talk to each other, as the agents told. */
#include "job/head.h"

#include <string.h>

static const char *interface_of(void *launcher, uint32_t host, const uint8_t ip[16])
{
    const struct rnl_launcher *l = launcher;
    const struct rnl_child *c = &l->head->at[host];
    for (uint32_t k = 0; k < c->ways; k++)
        if (memcmp(c->way[k].ip, ip, 16) == 0)
            return c->way[k].interface;
    return NULL;
}

static void say(void *launcher, const char *line)
{
    rnl_launch_say(launcher, "%s", line);
}

void rnl_head_troubles(struct rnl_launcher *l)
{
    rnl_troubles_say(&(struct rnl_troubles){.at = l->head->vain,
                                            .n = l->head->vains,
                                            .hosts = l->job->at,
                                            .interface = interface_of,
                                            .say = say,
                                            .arg = l});
}
