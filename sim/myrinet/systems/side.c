/* SPDX-License-Identifier: BSD-3-Clause
 *
 * side.c - memory of a side, in its host's or in a space of its own. */
#include "sim/myrinet/systems/system.h"

#include <stdlib.h>

int myri_side_begin(struct myri_side *s, uint32_t bytes)
{
    if (s->system->virtual) {
        s->space = malloc(sizeof *s->space);
        if (!s->space || myri_space_init(s->space, s->host) < 0)
            return -1;
        s->out = myri_space_map(s->space, bytes);
    } else {
        s->out = myri_host_take(s->host, bytes, 0);
    }
    return s->hw->fault[0] ? -1 : 0;
}

void myri_side_end(struct myri_side *s)
{
    if (s->space)
        myri_space_fini(s->space);
    free(s->space);
    s->space = NULL;
}

uint32_t myri_side_word(const struct myri_side *s, uint32_t at)
{
    return s->space ? myri_space_word(s->space, NULL, at) : myri_host_word(s->host, at);
}

void myri_side_set_word(const struct myri_side *s, uint32_t at, uint32_t value)
{
    if (s->space)
        myri_space_set_word(s->space, NULL, at, value);
    else
        myri_host_set_word(s->host, at, value);
}

int myri_side_page_out(struct myri_side *s, uint32_t at)
{
    return s->system->page_out ? s->system->page_out(s, at) : myri_space_page_out(s->space, at);
}

void myri_side_copy(const struct myri_side *s, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (s->space)
        myri_space_copy(s->space, s->task, to, from, bytes);
    else
        myri_task_copy(s->task, to, from, bytes);
}
