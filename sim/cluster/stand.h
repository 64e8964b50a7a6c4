/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand.h - what a program of the virtual cluster may call, and nothing else: stand-ins on virtual time, functions of
 * the C library that are pure, and this library itself. A stand-in is called on the program's stack and finds its copy
 * in rnl_guest_now. */
#ifndef RNL_CLUSTER_STAND_H
#define RNL_CLUSTER_STAND_H

#include "sim/cluster/image.h"

struct rnl_stand {
    const char *name; /* NULL: the end */
    void (*fn)(void);
};
#define RNL_STAND(name)                     \
    {                                       \
#name, (void (*)(void))stand_##name \
    }
#define RNL_STAND_AS(name, as)      \
    {                               \
#name, (void (*)(void))(as) \
    }
#define RNL_STAND_END \
    {                 \
        NULL, NULL    \
    }

extern const struct rnl_stand rnl_stand_memory[], rnl_stand_time[], rnl_stand_process[], rnl_stand_options[],
    rnl_stand_print[], rnl_stand_stdio[], rnl_stand_files[], rnl_stand_sort[], rnl_stand_poll[], rnl_stand_pure[],
    rnl_stand_runnel[];

rnl_image_bind rnl_stand_bind;

#endif
