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

/* Handles to the objects of an argument are kept by the process; they are no longer plain. */
static void share(const struct orc_type *t, void *to, const void *from)
{
    if (t->kind == ORC_OBJECT) {
        struct orc_object *o = *(struct orc_object *const *)from;
        o->plain = false;
        orc_shared_of(o)->state = ORC_OWNER;
        orc_retain(o);
        *(struct orc_object **)to = o;
        return;
    }
    const struct orc_array *a = from; /* of objects */
    memcpy(to, from, t->size);
    char *data = a->n ? orc_alloc((size_t)a->n * t->elem->size) : NULL;
    for (size_t i = 0; i < (size_t)a->n; i++)
        share(t->elem, data + i * t->elem->size, (char *)a->data + i * t->elem->size);
    ((struct orc_array *)to)->data = data;
}

static void **own_args(const struct orc_process *p, void **args)
{
    void **own = orc_alloc((p->params_count + 1) * sizeof *own);
    for (uint32_t i = 0; i < p->params_count; i++) {
        own[i] = orc_alloc(p->params[i].type->size);
        if (p->params[i].mode == ORC_SHARED)
            share(p->params[i].type, own[i], args[i]);
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

static void alone(struct orc_object *o, struct orc_blocked *b)
{
    orc_fail(b->at, "local deadlock: %s of an object of type %s blocks, and no other process can reach the object",
             orc_operation_of(o->class, b->operation)->name, o->class->name);
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
        alone(o, &b);
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
        alone(o, o->shared->blocked);
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
