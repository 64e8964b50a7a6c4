/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.c - the life of Panda 2.0, memory, and the word that ends a program. */
#include "panda2.h"

#include <stdarg.h>
#include <stdio.h>

static void take_one(struct pan2_arrived *in)
{
    if (in->head.kind == PAN2_MP)
        pan2_take_mp(in);
    else
        pan2_take_comm(in);
}

static const struct pan2_upcalls upcalls = {
    .one = take_one, .all = pan2_take_all, .request = pan2_take_request, .death = pan2_group_death};

void pan_init(int *argc, char *argv[])
{
    (void)argc, (void)argv;
    pan2_open(&upcalls);
    pan2_mp_open();
    pan2_group_open();
}

void pan_start(void)
{
    pan2_begin();
}

void pan_end(void)
{
    pan2_close();
    pan2_rpc_tidy();
    pan2_mp_close();
    pan2_group_close();
}

int pan_my_pid(void)
{
    return pan2_self();
}

int pan_nr_platforms(void)
{
    return pan2_size();
}

void pan_poll(void)
{
    pan2_look();
    pan2_rpc_tidy();
}

void pan_panic(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pan2_fail("%s", text);
}

/* ---- parameters ---- */

void pan_sys_va_set_params(void *first, ...)
{
    (void)first;
}

void pan_sys_va_get_params(void *first, ...)
{
    va_list list;
    (void)first;
    va_start(list, first);
    for (const char *name; (name = va_arg(list, const char *));) {
        char **value = va_arg(list, char **);
        if (strcmp(name, "PAN_SYS_statistics") == 0) {
            *value = pan_malloc(64);
            snprintf(*value, 64, "runnel info --pid shows them\n");
        }
    }
    va_end(list);
}

/* ---- memory ---- */

static void *given(void *p, size_t bytes)
{
    if (!p)
        pan2_fail("no memory for %zu bytes", bytes);
    return p;
}

void *pan_malloc(size_t size)
{
    return given(malloc(size ? size : 1), size);
}

void *pan_calloc(size_t nelem, size_t elsize)
{
    return given(calloc(nelem ? nelem : 1, elsize ? elsize : 1), elsize);
}

void *pan_realloc(void *ptr, size_t size)
{
    return given(realloc(ptr, size ? size : 1), size);
}

void pan_free(void *ptr)
{
    free(ptr);
}
