/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session.c - what this process has of Panda, and the way into it. */
#include "api/panda/session.h"

#include <stdlib.h>

#include "runnel/adapter.h"

struct rnl_panda_process rnl_panda_process;

void rnl_pan_refuse(const char *function)
{
    const bool forked = rnl_panda_process.session;
    (void)rnl_fail(forked ? RNL_ERR_FORKED : RNL_ERR_CLOSED,
                   forked ? "%s was called in a forked process" : "%s was called before pan_init", function);
}

int rnl_pan_must_not_wait(const char *function)
{
    return rnl_fail(RNL_ERR_CONTEXT, "%s was called in an upcall, which must not wait", function);
}

void rnl_pan_free(struct rnl_panda *p)
{
    for (struct pan_msg *m = p->first, *next; m; m = next) {
        next = m->next;
        free(m->own);
        free(m);
    }
    for (struct pan_msg *m = p->free_msgs, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    for (struct pan_upcall *u = p->free_upcalls, *next; u; u = next) {
        next = u->next;
        free(u);
    }
    rnl_notes_free(p->notes);
    free(p->call);
    free(p);
}

int pan_my_pid(void)
{
    const struct rnl_panda *p = rnl_panda_process.session;
    return p ? (int)p->ep->rank : 0;
}

int pan_nr_processes(void)
{
    const struct rnl_panda *p = rnl_panda_process.session;
    return p ? (int)p->ep->size : 1;
}

rnl_endpoint *pan_endpoint(void)
{
    return rnl_panda_process.session ? rnl_panda_process.session->ep : NULL;
}

void pan_on_death(void (*f)(void *arg, int pid), void *arg)
{
    struct rnl_panda *p = rnl_pan_enter("pan_on_death");
    if (!p)
        return;
    p->death = f;
    p->death_arg = arg;
    rnl_pan_unlock(p);
}

int pan_show(const char *text, size_t n)
{
    struct rnl_panda *p = rnl_pan_enter("pan_show");
    if (!p)
        return rnl_last_error()->status;
    int status = rnl_notes_set(&p->notes, text, n);
    rnl_pan_unlock(p);
    return status;
}
