/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object.c - objects of this rank: making, saving, and running operations on the state that is here. */
#include "rts.h"
#include <stdio.h>
#include <stdlib.h>

int orc_unwinding;
int orc_in_operation;

struct orc_object *orc_new_object(const struct orc_class *class, orc_place at)
{
    struct orc_object *o = orc_alloc(sizeof *o);
    *o = (struct orc_object){.plain = true, .nested = orc_in_operation > 0, .refs = 1, .class = class, .at = at};
    o->fields = orc_alloc(class->fields->size);
    orc_in_operation++; /* nested objects, and SELF */
    orc_init(class->fields, o->fields);
    if (class->start)
        class->start(o);
    orc_in_operation--;
    return o;
}

void orc_retain(struct orc_object *o)
{
    o->refs++;
}

void orc_release(struct orc_object *o)
{
    if (--o->refs) {
        if (o->shared && orc_system->dropped)
            orc_system->dropped(o);
        return;
    }
    orc_free(o->class->fields, o->fields);
    free(o->fields);
    if (o->shared) {
        free(o->shared->placing);
        free(o->shared->name);
    }
    free(o->shared);
    free(o);
}

struct orc_shared *orc_shared_of(struct orc_object *o)
{
    if (!o->shared) {
        o->shared = orc_alloc(sizeof *o->shared);
        o->shared->last = &o->shared->blocked;
        o->shared->why = "never shared";
    }
    return o->shared;
}

void orc_call_it(struct orc_object *o, const struct orc_param *p, const struct orc_bound *d, uint32_t dims, size_t at)
{
    long long index[ORC_DIMS_MAX];
    char text[32];
    struct orc_buffer name = {0};
    if (o->shared->name)
        return;
    for (uint32_t i = dims; i-- > 0; at /= (size_t)d[i].n)
        index[i] = d[i].lb + (int64_t)(at % (size_t)d[i].n);
    orc_put_bytes(&name, p->name, strlen(p->name));
    for (uint32_t i = 0; i < dims; i++) {
        snprintf(text, sizeof text, i ? ",%lld" : "[%lld", index[i]);
        orc_put_bytes(&name, text, strlen(text));
    }
    orc_put_bytes(&name, "]", dims ? 1 : 0);
    orc_put_bytes(&name, "", 1);
    o->shared->name = (char *)name.p;
}

/* ---- the hidden operations ---- */

static int read_value(struct orc_object *self, void **args)
{
    orc_assign(self->class->fields, args[0], self->fields);
    return ORC_DONE;
}

static int assign_value(struct orc_object *self, void **args)
{
    orc_assign(self->class->fields, self->fields, args[0]);
    return ORC_DONE;
}

/* Made once for each class that needs them. */
struct hidden {
    struct hidden *next;
    const struct orc_class *class;
    struct orc_param param;
    struct orc_operation op[2];
};
static struct hidden *hidden;

static struct hidden *hidden_of(const struct orc_class *class)
{
    struct hidden *h;
    for (h = hidden; h; h = h->next)
        if (h->class == class)
            return h;
    h = orc_alloc(sizeof *h);
    h->next = hidden;
    h->class = class;
    h->param = (struct orc_param){.name = "state", .mode = ORC_IN, .type = class->fields};
    h->op[ORC_OP_VALUE] =
        (struct orc_operation){.name = "(read the whole)", .result = class->fields, .read = read_value};
    h->op[ORC_OP_ASSIGN] =
        (struct orc_operation){.name = ":=", .params_count = 1, .params = &h->param, .write = assign_value};
    hidden = h;
    return h;
}

const struct orc_operation *orc_operation_of(const struct orc_class *class, uint32_t number)
{
    if (number < ORC_OP_FIRST)
        return &hidden_of(class)->op[number];
    return &class->operations[number - ORC_OP_FIRST];
}

void orc_free_hidden(void)
{
    while (hidden) {
        struct hidden *h = hidden;
        hidden = h->next;
        free(h);
    }
}

void orc_assign_object(struct orc_object *o, struct orc_object *p, orc_place at)
{
    if (o == p)
        return;
    void *state = orc_alloc(o->class->fields->size), *args[] = {state};
    orc_invoke(p, ORC_OP_VALUE, args, at);
    if (!orc_unwinding)
        orc_invoke(o, ORC_OP_ASSIGN, args, at);
    orc_free(o->class->fields, state);
    free(state);
}

/* ---- operations ---- */

int orc_try(struct orc_object *o, uint32_t number, void **args, bool write_first, bool *wrote)
{
    const struct orc_operation *op = orc_operation_of(o->class, number);
    int status = ORC_BLOCKED;
    *wrote = false;
    orc_in_operation++;
    for (int i = 0; i < 2 && status == ORC_BLOCKED; i++) {
        bool writes = write_first == (i == 0);
        orc_alternatives *f = writes ? op->write : op->read;
        if (!f)
            continue;
        status = f(o, args);
        orc_unwinding = 0;
        *wrote = writes && status == ORC_DONE;
    }
    orc_in_operation--;
    return status;
}

int orc_invoke(struct orc_object *o, uint32_t number, void **args, orc_place at)
{
    bool wrote;
    if (orc_in_operation) { /* of a nested object, or SELF: its state is here */
        int status = orc_try(o, number, args, false, &wrote);
        orc_unwinding = status == ORC_BLOCKED;
        return status;
    }
    if (!o->plain) {
        orc_spend_turns();
        orc_system->invoke(o, number, args, at);
    } else if (orc_try(o, number, args, false, &wrote) == ORC_BLOCKED) {
        orc_alone(o, number, at);
    }
    return ORC_DONE;
}

void orc_retry(struct orc_object *o)
{
    struct orc_shared *s = o->shared;
    bool again = s && s->blocked;
    orc_retain(o); /* what is done below may drop the last handle */
    while (again) {
        again = false;
        for (struct orc_blocked **p = &s->blocked; *p;) {
            struct orc_blocked *b = *p;
            bool wrote;
            if (orc_try(o, b->operation, b->args, b->write_first, &wrote) == ORC_BLOCKED) {
                p = &b->next;
                continue;
            }
            again |= wrote;
            *p = b->next;
            if (!*p)
                s->last = p;
            if (b->done)
                b->done(o, b);
            else if (b->thread)
                orc_wake(b->thread);
        }
    }
    orc_release(o);
}

void orc_save(struct orc_object *o, void **saved)
{
    orc_forget(o, saved);
    *saved = orc_alloc(o->class->fields->size);
    orc_copy(o->class->fields, *saved, o->fields);
}

void orc_restore(struct orc_object *o, void **saved)
{
    if (!*saved)
        return;
    orc_free(o->class->fields, o->fields);
    memcpy(o->fields, *saved, o->class->fields->size);
    free(*saved);
    *saved = NULL;
}

void orc_forget(struct orc_object *o, void **saved)
{
    if (!*saved)
        return;
    orc_free(o->class->fields, *saved);
    free(*saved);
    *saved = NULL;
}

/* ---- arguments that the run-time system owns ---- */

void **orc_new_values(const struct orc_operation *op)
{
    uint32_t n = op->params_count + (op->result != NULL);
    void **args = orc_alloc((n + 1) * sizeof *args);
    for (uint32_t i = 0; i < n; i++)
        args[i] = orc_alloc(i < op->params_count ? op->params[i].type->size : op->result->size);
    return args;
}

void orc_free_values(const struct orc_operation *op, void **args)
{
    for (uint32_t i = 0; args && args[i]; i++) {
        orc_free(i < op->params_count ? op->params[i].type : op->result, args[i]);
        free(args[i]);
    }
    free(args);
}

void orc_strategy(struct orc_object *o, int64_t replicate, int64_t cpu, orc_place at)
{
    if (cpu < 0 || cpu >= orc_ncpus())
        orc_fail(at, "Strategy with cpu %lld; there are cpus 0 to %d", (long long)cpu, orc_ncpus() - 1);
    orc_system->strategy(o, replicate, cpu, at);
}

void orc_score(struct orc_object *o, int32_t score, int32_t accesses, int32_t uncertainty)
{
    struct orc_shared *s = orc_shared_of(o);
    (void)uncertainty;
    s->estimated_reads += ((double)accesses + score) / 2;
    s->estimated_writes += ((double)accesses - score) / 2;
}
