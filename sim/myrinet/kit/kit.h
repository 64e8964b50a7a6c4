/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kit.h - what is at the door of a system that `runnel paper build` has made, a shared object: the symbol `myri_kit`.
 * The two numbers at its beginning stay where they are in every release, so that any command can tell whether it was
 * built for another one. */
#ifndef MYRI_KIT_H
#define MYRI_KIT_H

#include "sim/myrinet/systems/system.h"

/* Raised when something changes its meaning, and no size: then old objects would be loaded, and do something else. */
enum { MYRI_KIT_VERSION = 2 };

/* The sizes of all that host code and this command both look into. */
#define MYRI_KIT_AND(before, type) ((before)*1000003u + sizeof(type))
#define MYRI_KIT_LAYOUT                                                                                        \
    ((uint64_t)MYRI_KIT_AND(                                                                                   \
        MYRI_KIT_AND(MYRI_KIT_AND(MYRI_KIT_AND(MYRI_KIT_AND(MYRI_KIT_AND((uint64_t)sizeof(struct myri_system), \
                                                                         struct myri_side),                    \
                                                            struct myri_hw),                                   \
                                               struct myri_host),                                              \
                                  struct myri_card),                                                           \
                     struct myri_task),                                                                        \
        struct myri_space))

struct myri_kit {
    uint32_t version;
    uint64_t layout;
    const struct myri_system *system;
    const unsigned char *object; /* its firmware */
    size_t object_bytes;
    const unsigned char *lines; /* of it, as systems/objects.hex has them */
    size_t lines_bytes;
};

#endif
