/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fork.c - processes on other ranks, and how long shared objects live. A fork is a message to all: they count the
 * process, learn of objects that are shared for the first time, and count references, all in the same order. The end
 * of a process is one, too. */
#include "cluster.h"
#include <stdlib.h>

/* Body of a fork: what objects are new, the objects of the SHARED parameters, and the IN arguments, which only the rank
 * of the new process reads. */
struct fresh {
    uint64_t id;
    double estimated_reads, estimated_writes;
    uint32_t class, at, owner /* + 1; 0 = everywhere */, fixed;
    uint64_t bytes; /* of the state, which follows */
};
_Static_assert(sizeof(struct fresh) == 48, "no padding");

static uint64_t made;

static uint32_t class_number(const struct orc_class *class)
{
    for (uint32_t i = 0; i < orc_program->classes_count; i++)
        if (orc_program->classes[i]->class == class)
            return i;
    orc_fail(0, "the class %s is not in the program's table", class->name);
}

static void put_fresh(struct orc_buffer *b, struct orc_object *o, uint32_t cpu, const struct orc_param *p)
{
    struct orc_shared *s = orc_shared_of(o);
    struct orc_buffer state = {0};
    uint64_t id = (uint64_t)(orc_rank() + 1) << 40 | ++made;
    int owner = orc_first_place(o, cpu, p);
    if (owner != orc_rank())
        orc_put_value(&state, o->class->fields, o->fields);
    const struct fresh f = {.id = id,
                            .estimated_reads = s->estimated_reads,
                            .estimated_writes = s->estimated_writes,
                            .class = class_number(o->class),
                            .at = o->at,
                            .owner = (uint32_t)(owner + 1),
                            .fixed = s->fixed,
                            .bytes = state.n};
    o->plain = false;
    s->state = ORC_TRANSIT;
    orc_table_add(o, id);
    orc_put_bytes(b, &f, sizeof f);
    orc_put_bytes(b, state.p, state.n);
    free(state.p);
}

static uint32_t put_fresh_of(struct orc_buffer *b, const struct orc_param *p, const struct orc_type *t, const void *v,
                             uint32_t cpu)
{
    if (t->kind == ORC_OBJECT) {
        struct orc_object *o = *(struct orc_object *const *)v;
        if (o->shared && o->shared->id)
            return 0;
        put_fresh(b, o, cpu, p);
        return 1;
    }
    const struct orc_array *a = v;
    uint32_t n = 0;
    for (size_t i = 0; i < (size_t)a->n; i++)
        n += put_fresh_of(b, p, t->elem, (char *)a->data + i * t->elem->size, cpu);
    return n;
}

static void put_shared(struct orc_buffer *b, const struct orc_type *t, const void *v)
{
    if (t->kind == ORC_OBJECT) {
        orc_put_u64(b, (*(struct orc_object *const *)v)->shared->id);
        return;
    }
    const struct orc_array *a = v;
    orc_put_bytes(b, a->d, t->dims * sizeof *a->d);
    for (size_t i = 0; i < (size_t)a->n; i++)
        put_shared(b, t->elem, (char *)a->data + i * t->elem->size);
}

void orc_cluster_fork(uint32_t number, int64_t cpu, void **args, orc_place at)
{
    const struct orc_process *p = &orc_program->processes[number];
    struct orc_buffer body = {0}, fresh = {0};
    struct orc_pending pending = {.operation = NULL};
    uint32_t dest = (uint32_t)(cpu < 0 ? orc_rank() : cpu), n = 0;
    for (uint32_t i = 0; i < p->params_count; i++)
        if (p->params[i].mode == ORC_SHARED)
            n += put_fresh_of(&fresh, &p->params[i], p->params[i].type, args[i], dest);
    orc_put_u32(&body, n);
    orc_put_bytes(&body, fresh.p, fresh.n);
    free(fresh.p);
    for (uint32_t i = 0; i < p->params_count; i++)
        if (p->params[i].mode == ORC_SHARED)
            put_shared(&body, p->params[i].type, args[i]);
    for (uint32_t i = 0; i < p->params_count; i++)
        if (p->params[i].mode != ORC_SHARED)
            orc_put_value(&body, p->params[i].type, args[i]);
    orc_pending_begin(&pending, args, at);
    orc_send_group(ORC_GROUP_FORK, number, 0, pending.ticket, dest, 0, &body);
    free(body.p);
    orc_wait_until(&pending.done);
}

/* ---- at all ranks ---- */

static void take_fresh(struct orc_reader *r, uint32_t source)
{
    struct fresh f;
    orc_get_bytes(r, &f, sizeof f);
    if (r->bad || f.class >= orc_program->classes_count || f.owner > (uint32_t)orc_ranks() || f.bytes > r->n ||
        f.id >> 40 != source + 1)
        orc_broken(source);
    bool own = source == (uint32_t)orc_rank(), here = !f.owner || f.owner == (uint32_t)orc_rank() + 1;
    struct orc_object *o = orc_find(f.id);
    if (own != (o != NULL))
        orc_broken(source);
    if (!o) {
        const struct orc_class *class = orc_program->classes[f.class]->class;
        o = orc_alloc(sizeof *o);
        *o = (struct orc_object){.class = class, .at = f.at};
        o->fields = orc_alloc(class->fields->size);
        orc_shared_of(o)->estimated_reads = f.estimated_reads;
        o->shared->estimated_writes = f.estimated_writes;
        orc_table_add(o, f.id);
    }
    struct orc_shared *s = o->shared;
    if (here && !own) {
        struct orc_reader state = {.p = r->p, .n = f.bytes};
        orc_get_value(&state, o->class->fields, o->fields);
        if (state.bad || state.n)
            orc_broken(source);
    } else if (!here && own) {
        orc_free(o->class->fields, o->fields);
    }
    r->p += f.bytes;
    r->n -= f.bytes;
    s->global_refs = 1; /* the variable that declares it */
    s->fixed = f.fixed;
    s->owner = f.owner ? f.owner - 1 : source;
    s->state = !f.owner ? ORC_REPLICATED : here ? ORC_OWNER : ORC_REMOTE;
    s->why = f.fixed                                            ? "Strategy says so"
             : orc_options.place == 1 || orc_options.place == 2 ? "-p says so"
                                                                : "the compiler's estimate";
}

static void take_handle(struct orc_reader *r, const struct orc_param *p, const struct orc_type *t, void *v,
                        uint32_t dest, uint32_t source, const struct orc_bound *d, uint32_t dims, size_t at)
{
    struct orc_object *o = orc_find(orc_get_u64(r));
    if (r->bad || !o || o->class != t->class)
        orc_broken(source);
    orc_call_it(o, p, d, dims, at);
    o->shared->global_refs++;
    orc_expect(o, dest, p);
    if (v) {
        orc_retain(o);
        *(struct orc_object **)v = o;
    }
}

/* Reads what is shared with the new process, whose handles it becomes at its rank (v). */
static void take_shared(struct orc_reader *r, const struct orc_param *p, const struct orc_type *t, void *v,
                        uint32_t dest, uint32_t source)
{
    if (t->kind == ORC_OBJECT) {
        take_handle(r, p, t, v, dest, source, NULL, 0, 0);
        return;
    }
    struct orc_array a = {.n = 1}, *to = v;
    struct orc_bound d[ORC_DIMS_MAX];
    orc_get_bytes(r, d, t->dims * sizeof *d);
    for (uint32_t i = 0; i < t->dims; i++) {
        if (r->bad || d[i].n < 0 || (d[i].n && (uint64_t)a.n > r->n / (uint64_t)d[i].n))
            orc_broken(source);
        a.n *= d[i].n;
    }
    char *data = v && a.n ? orc_alloc((size_t)a.n * t->elem->size) : NULL;
    for (size_t i = 0; i < (size_t)a.n; i++)
        take_handle(r, p, t->elem, data ? data + i * t->elem->size : NULL, dest, source, d, t->dims, i);
    if (!to)
        return;
    to->data = data;
    to->n = a.n;
    memcpy(to->d, d, t->dims * sizeof *d);
}

void orc_forked(struct orc_event *e)
{
    struct orc_reader r = {.p = e->bytes, .n = e->n};
    uint32_t number = e->group.kind_operation & 0xffffff, dest = e->group.reads;
    if (number >= orc_program->processes_count || dest >= (uint32_t)orc_ranks())
        orc_broken(e->source);
    const struct orc_process *p = &orc_program->processes[number];
    bool here = dest == (uint32_t)orc_rank();
    for (uint32_t n = orc_get_u32(&r); n && !r.bad; n--)
        take_fresh(&r, e->source);
    void **own = here ? orc_alloc((p->params_count + 1) * sizeof *own) : NULL;
    for (uint32_t i = 0; i < p->params_count; i++) {
        if (here)
            own[i] = orc_alloc(p->params[i].type->size);
        if (p->params[i].mode == ORC_SHARED)
            take_shared(&r, &p->params[i], p->params[i].type, here ? own[i] : NULL, dest, e->source);
    }
    for (uint32_t i = 0; here && i < p->params_count; i++)
        if (p->params[i].mode != ORC_SHARED)
            orc_get_value(&r, p->params[i].type, own[i]);
    if (r.bad)
        orc_broken(e->source);
    orc_processes++;
    if (here)
        orc_spawn(number, own)->cpu = orc_rank();
    if (e->source == (uint32_t)orc_rank()) {
        struct orc_pending *pending = orc_pending_take(e->group.ticket);
        pending->done = true;
        orc_wake(pending->thread);
    }
}

/* ---- the end of handles and processes ---- */

static struct orc_buffer dropped; /* ids of objects */

void orc_handle_dropped(struct orc_object *o)
{
    if (o->shared->id)
        orc_put_u64(&dropped, o->shared->id);
}

void orc_process_ended(struct orc_thread *t)
{
    struct orc_buffer body = dropped;
    (void)t;
    dropped = (struct orc_buffer){0};
    orc_send_group(ORC_GROUP_EXIT, 0, 0, 0, 0, 0, &body);
    free(body.p);
}

void orc_exited(struct orc_event *e)
{
    struct orc_reader r = {.p = e->bytes, .n = e->n};
    while (r.n && !r.bad) {
        struct orc_object *o = orc_find(orc_get_u64(&r));
        if (!o)
            orc_broken(e->source);
        if (--o->shared->global_refs == 0)
            orc_table_drop(o);
        else if (o->shared->global_refs == 1)
            orc_check_alone(o);
    }
    orc_processes--;
}
