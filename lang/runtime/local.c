/* SPDX-License-Identifier: BSD-3-Clause
 *
 * local.c - the run-time system of one rank: shared objects are here, with a queue of blocked invocations each. */
#include "rts.h"
#include <stdlib.h>

static int one(void)
{
    return orc_cpus_wanted;
}

static int zero(void)
{
    return orc_self && orc_self->cpu > 0 ? orc_self->cpu : 0;
}

static struct orc_object *share(struct orc_object *o)
{
    o->plain = false;
    orc_shared_of(o)->state = ORC_OWNER;
    orc_retain(o);
    return o;
}

/* Handles to the objects of an argument are kept by the process; they are no longer plain. */
static void share_argument(const struct orc_param *p, void *to, const void *from)
{
    if (p->type->kind == ORC_OBJECT) {
        struct orc_object *o = *(struct orc_object **)to = share(*(struct orc_object *const *)from);
        orc_call_it(o, p, NULL, 0, 0);
        return;
    }
    const struct orc_array *a = from; /* of objects */
    memcpy(to, from, p->type->size);
    struct orc_object **data = a->n ? orc_alloc((size_t)a->n * sizeof *data) : NULL;
    for (size_t i = 0; i < (size_t)a->n; i++) {
        data[i] = share(((struct orc_object **)a->data)[i]);
        orc_call_it(data[i], p, a->d, p->type->dims, i);
    }
    ((struct orc_array *)to)->data = data;
}

static void **own_args(const struct orc_process *p, void **args)
{
    void **own = orc_alloc((p->params_count + 1) * sizeof *own);
    for (uint32_t i = 0; i < p->params_count; i++) {
        own[i] = orc_alloc(p->params[i].type->size);
        if (p->params[i].mode == ORC_SHARED)
            share_argument(&p->params[i], own[i], args[i]);
        else
            orc_copy(p->params[i].type, own[i], args[i]);
    }
    return own;
}

static void local_fork(uint32_t process, int64_t cpu, void **args, orc_place at)
{
    (void)at;
    orc_spawn(process, own_args(&orc_program->processes[process], args))->cpu = (int)(cpu < 0 ? zero() : cpu);
}

static void local_invoke(struct orc_object *o, uint32_t number, void **args, orc_place at)
{
    bool wrote;
    struct orc_shared *s = o->shared;
    if (orc_try(o, number, args, false, &wrote) == ORC_DONE) {
        if (wrote) {
            s->writes++;
            if (s->blocked)
                orc_retry(o);
        } else {
            s->reads++;
        }
        return;
    }
    struct orc_blocked b = {.operation = number, .at = at, .args = args, .thread = orc_self};
    if (o->refs == 1)
        orc_alone(o, number, at);
    *s->last = &b;
    s->last = &b.next;
    orc_waits_for(o, &b);
    orc_sleep();
}

static void local_strategy(struct orc_object *o, int64_t replicate, int64_t cpu, orc_place at)
{
    (void)o, (void)replicate, (void)cpu, (void)at;
}

static void local_dropped(struct orc_object *o)
{
    if (o->refs == 1 && o->shared->blocked)
        orc_alone(o, o->shared->blocked->operation, o->shared->blocked->at);
}

static int local_loop(void)
{
    orc_spawn(0, orc_alloc(sizeof(void *)));
    while (orc_run_some()) {
    }
    if (orc_running)
        orc_deadlock();
    return 0;
}

const struct orc_system orc_local = {
    .ncpus = one,
    .mycpu = zero,
    .fork = local_fork,
    .invoke = local_invoke,
    .strategy = local_strategy,
    .dropped = local_dropped,
    .loop = local_loop,
};
