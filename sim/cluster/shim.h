/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim.h - what a program of the virtual cluster may call, and nothing else: shims on virtual time, functions of
 * the C library that are pure, and this library itself. A shim is called on the program's stack and finds its process
 * in vc_process_now. */
#ifndef VC_SHIM_H
#define VC_SHIM_H

#include "sim/cluster/image.h"

struct vc_shim {
    const char *name; /* NULL: the end */
    void (*fn)(void);
};
#define VC_SHIM(name)                      \
    {                                      \
#name, (void (*)(void))shim_##name \
    }
#define VC_SHIM_AS(name, as)        \
    {                               \
#name, (void (*)(void))(as) \
    }
#define VC_SHIM_END \
    {               \
        NULL, NULL  \
    }

extern const struct vc_shim vc_shim_memory[], vc_shim_time[], vc_shim_process[], vc_shim_options[], vc_shim_print[],
    vc_shim_stdio[], vc_shim_files[], vc_shim_sort[], vc_shim_poll[], vc_shim_pure[], vc_shim_runnel[],
    vc_shim_exports[];

vc_image_bind vc_shim_bind;

#endif
