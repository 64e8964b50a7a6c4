/* SPDX-License-Identifier: BSD-3-Clause
 *
 * invoke.c - operations on shared objects: here, by their owner, or at all ranks in one order. A blocked one is a
 * record in the queue of the object, wherever its caller is, and is run by whoever makes its guard true. */
#include "cluster.h"
#include <stdlib.h>
#include <time.h>

/* ---- arguments ---- */

static void put_in(struct orc_buffer *b, const struct orc_operation *op, void **args)
{
    for (uint32_t i = 0; i < op->params_count; i++)
        if (op->params[i].mode == ORC_IN)
            orc_put_value(b, op->params[i].type, args[i]);
}

void orc_get_in(struct orc_reader *r, uint32_t source, const struct orc_operation *op, void **args)
{
    for (uint32_t i = 0; i < op->params_count; i++)
        if (op->params[i].mode == ORC_IN)
            orc_get_value(r, op->params[i].type, args[i]);
    if (!r->cut && (r->bad || r->n))
        orc_broken(source);
}

static void put_out(struct orc_buffer *b, const struct orc_operation *op, void **args)
{
    for (uint32_t i = 0; i < op->params_count; i++)
        if (op->params[i].mode == ORC_OUT)
            orc_put_value(b, op->params[i].type, args[i]);
    if (op->result)
        orc_put_value(b, op->result, args[op->params_count]);
}

void orc_get_out(struct orc_reader *r, uint32_t source, const struct orc_operation *op, void **args)
{
    for (uint32_t i = 0; i <= op->params_count; i++) {
        bool result = i == op->params_count;
        if (result ? !op->result : op->params[i].mode != ORC_OUT)
            continue;
        const struct orc_type *t = result ? op->result : op->params[i].type;
        orc_free(t, args[i]);
        orc_get_value(r, t, args[i]);
    }
    if (!r->cut && (r->bad || r->n))
        orc_broken(source);
}

/* Arguments of a call of somebody elsewhere: in place while they are few and small. */
struct scratch {
    void *args[9];
    _Alignas(8) unsigned char bytes[256];
};

static void **make_args(const struct orc_operation *op, struct scratch *s)
{
    uint32_t n = op->params_count + (op->result != NULL);
    size_t at = 0;
    if (n > 8)
        return orc_new_values(op);
    for (uint32_t i = 0; i < n; i++) {
        size_t size = i < op->params_count ? op->params[i].type->size : op->result->size;
        at = (at + 7) & ~(size_t)7;
        if (at + size > sizeof s->bytes)
            return orc_new_values(op);
        s->args[i] = s->bytes + at;
        at += size;
    }
    for (size_t i = 0; i < at; i += 8)
        memset(s->bytes + i, 0, 8);
    s->args[n] = NULL;
    return s->args;
}

static void free_args(const struct orc_operation *op, void **args, struct scratch *s)
{
    if (args != s->args) {
        orc_free_values(op, args);
        return;
    }
    for (uint32_t i = 0; args[i]; i++) {
        const struct orc_type *t = i < op->params_count ? op->params[i].type : op->result;
        if (!t->flat)
            orc_free(t, args[i]);
    }
}

/* The arguments that an event brought. */
static void **args_of(struct orc_event *e, const struct orc_operation *op, struct scratch *s)
{
    void **args = e->args;
    e->args = NULL;
    if (args)
        return args;
    struct orc_reader r = {.p = e->bytes, .n = e->n};
    args = make_args(op, s);
    orc_get_in(&r, e->source, op, args);
    return args;
}

/* The arguments outlive the call: they move to memory of their own. */
static void **keep_args(const struct orc_operation *op, void **args, struct scratch *s)
{
    if (args != s->args)
        return args;
    void **own = orc_new_values(op);
    for (uint32_t i = 0; own[i]; i++)
        memcpy(own[i], args[i], i < op->params_count ? op->params[i].type->size : op->result->size);
    return own;
}

/* ---- blocked invocations ---- */

static struct orc_blocked *block(struct orc_object *o, uint32_t number, void **args)
{
    struct orc_blocked *b = orc_alloc(sizeof *b);
    *b = (struct orc_blocked){.operation = number, .args = args};
    *o->shared->last = b;
    o->shared->last = &b->next;
    return b;
}

static void end_pending(struct orc_pending *p, bool again)
{
    p->again = again;
    p->done = true;
    orc_wake(p->thread);
}

static void own_done(struct orc_object *o, struct orc_blocked *b)
{
    (void)o;
    end_pending(b->caller, false);
    free(b);
}

static void other_done(struct orc_object *o, struct orc_blocked *b)
{
    orc_free_values(orc_operation_of(o->class, b->operation), b->args);
    free(b);
}

void orc_send_reply(pan_upcall_p upcall, uint32_t status, const struct orc_buffer *body)
{
    const struct orc_reply head = {.count = orc_count, .status = status, .zero = 0};
    _Alignas(8) unsigned char proto[64];
    struct orc_layer layer;
    const pan_iovec_t iov = orc_layer_out(&layer, body);
    size_t at = pan_rpc_proto_offset();
    memcpy(proto + at, &head, sizeof head);
    /* Outside upcalls it goes at once; a caller that died ends the program by itself. */
    (void)!pan_rpc_reply(upcall, &iov, iov.len ? 1 : 0, proto, at + sizeof head, NULL, NULL);
    orc_buffer_free(&layer.buffer);
}

static void reply_done(pan_upcall_p upcall, const struct orc_operation *op, void **args)
{
    unsigned char small[256];
    struct orc_buffer body = ORC_BUFFER_IN(small);
    put_out(&body, op, args);
    orc_send_reply(upcall, ORC_REPLY_DONE, &body);
    orc_buffer_free(&body);
}

static void remote_done(struct orc_object *o, struct orc_blocked *b)
{
    const struct orc_operation *op = orc_operation_of(o->class, b->operation);
    reply_done(b->caller, op, b->args);
    orc_free_values(op, b->args);
    free(b);
}

void orc_flush_blocked(struct orc_object *o)
{
    struct orc_blocked *b = o->shared->blocked;
    o->shared->blocked = NULL;
    o->shared->last = &o->shared->blocked;
    while (b) {
        struct orc_blocked *next = b->next;
        if (b->done == own_done) {
            end_pending(b->caller, true);
            free(b);
        } else {
            if (b->done == remote_done)
                orc_send_reply(b->caller, ORC_REPLY_MOVED, NULL);
            other_done(o, b);
        }
        b = next;
    }
}

/* ---- calls of this rank ---- */

enum { MEASURED = 64 }; /* one of so many is measured, for what calls and multicasts cost here */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Runs the alternatives that only read, on a replica. */
static int try_read(struct orc_object *o, const struct orc_operation *op, void **args)
{
    orc_in_operation++;
    int status = op->read(o, args);
    orc_unwinding = 0;
    orc_in_operation--;
    return status;
}

/* Waits in the queue of the object. Returns false: the object has moved. */
static bool wait_here(struct orc_object *o, uint32_t number, void **args, orc_place at)
{
    struct orc_pending p;
    if (o->shared->global_refs <= 1)
        orc_alone(o, number, at);
    orc_pending_begin(&p, args, at);
    (void)orc_pending_take(p.ticket); /* it is found by the object */
    struct orc_blocked *b = block(o, number, args);
    b->at = at;
    b->caller = &p;
    b->done = own_done;
    orc_waits_for(o, b);
    orc_wait_until(&p.done);
    orc_self->object = NULL;
    return !p.again;
}

static bool invoke_owned(struct orc_object *o, uint32_t number, void **args, orc_place at)
{
    struct orc_shared *s = o->shared;
    bool wrote;
    if (orc_try(o, number, args, false, &wrote) == ORC_BLOCKED)
        return wait_here(o, number, args, at);
    if (wrote) {
        s->writes++;
        if (s->blocked)
            orc_retry(o);
    } else {
        s->reads++;
    }
    return true;
}

static bool invoke_everywhere(struct orc_object *o, const struct orc_operation *op, uint32_t number, void **args,
                              orc_place at)
{
    struct orc_shared *s = o->shared;
    struct orc_pending p = {.operation = op};
    unsigned char small[256];
    struct orc_buffer body = ORC_BUFFER_IN(small);
    struct orc_blocked told = {.operation = number, .at = at};
    uint32_t reads = (uint32_t)(s->reads - s->told_reads);
    s->told_reads = s->reads;
    orc_pending_begin(&p, args, at);
    put_in(&body, op, args);
    orc_waits_for(o, &told);
    double begin = s->writes % MEASURED == 0 && !op->blocks ? now_ns() : 0;
    orc_send_group(ORC_GROUP_INVOKE, number, s->id, p.ticket, reads, s->moves, &body);
    orc_buffer_free(&body);
    orc_wait_until(&p.done);
    if (begin > 0)
        orc_cost_measured(true, now_ns() - begin);
    orc_self->object = NULL;
    return !p.again;
}

static bool invoke_remote(struct orc_object *o, const struct orc_operation *op, uint32_t number, void **args,
                          orc_place at)
{
    struct orc_shared *s = o->shared;
    struct orc_pending p = {.operation = op};
    unsigned char small[256];
    struct orc_buffer body = ORC_BUFFER_IN(small);
    struct orc_blocked told = {.operation = number, .at = at};
    const struct orc_request head = {.id = s->id, .count = orc_count, .kind = ORC_REQUEST_INVOKE, .operation = number};
    _Alignas(8) unsigned char proto[64];
    size_t offset = pan_rpc_proto_offset();
    orc_pending_begin(&p, args, at);
    (void)orc_pending_take(p.ticket); /* the reply names it */
    put_in(&body, op, args);
    memcpy(proto + offset, &head, sizeof head);
    struct orc_layer layer;
    const pan_iovec_t iov = orc_layer_out(&layer, &body);
    orc_waits_for(o, &told);
    double begin = (s->reads + s->writes) % MEASURED == 0 && !op->blocks ? now_ns() : 0;
    int status =
        pan_rpc_start((int)s->owner, &iov, iov.len ? 1 : 0, proto, offset + sizeof head, orc_replied_later, &p);
    orc_buffer_free(&layer.buffer);
    orc_buffer_free(&body);
    if (status < 0 && status != RNL_ERR_PEER_DEAD)
        orc_fail(at, "%s", rnl_last_error()->text);
    orc_wait_until(&p.done);
    if (begin > 0)
        orc_cost_measured(false, now_ns() - begin);
    orc_self->object = NULL;
    if (p.deadlock)
        orc_alone(o, number, at);
    return !p.again;
}

void orc_cluster_invoke(struct orc_object *o, uint32_t number, void **args, orc_place at)
{
    struct orc_shared *s = o->shared;
    const struct orc_operation *op = orc_operation_of(o->class, number);
    for (;;) {
        switch (s->state) {
        case ORC_REPLICATED:
            if (op->read && try_read(o, op, args) == ORC_DONE) {
                s->reads++;
                return;
            }
            if (op->write ? invoke_everywhere(o, op, number, args, at) : wait_here(o, number, args, at)) {
                s->writes += op->write != NULL;
                return;
            }
            break;
        case ORC_OWNER:
            if (invoke_owned(o, number, args, at))
                return;
            break;
        case ORC_REMOTE:
            if (invoke_remote(o, op, number, args, at)) {
                s->reads += !op->write;
                s->writes += op->write != NULL;
                return;
            }
            break;
        default: /* it is on its way */
            if (orc_is_idle())
                orc_progress(true);
            else
                orc_yield();
        }
    }
}

/* ---- what comes ---- */

void orc_group_invoked(struct orc_event *e)
{
    struct orc_object *o = orc_find(e->group.id);
    uint32_t number = e->group.kind_operation & 0xffffff;
    struct orc_pending *own = e->source == (uint32_t)orc_rank() ? orc_pending_take(e->group.ticket) : NULL;
    struct scratch scratch;
    bool wrote;
    if (!o || o->shared->state != ORC_REPLICATED) { /* it has moved meanwhile: nobody runs it */
        if (own)
            end_pending(own, true);
        return;
    }
    if (number >= ORC_OP_FIRST + o->class->count)
        orc_broken(e->source);
    const struct orc_operation *op = orc_operation_of(o->class, number);
    void **args = own ? own->args : args_of(e, op, &scratch);
    if (orc_try(o, number, args, true, &wrote) == ORC_BLOCKED) {
        if (own && o->shared->global_refs <= 1)
            orc_alone(o, number, own->at);
        struct orc_blocked *b = block(o, number, own ? args : keep_args(op, args, &scratch));
        b->write_first = true;
        b->at = own ? own->at : 0;
        b->caller = own;
        b->done = own ? own_done : other_done;
        return;
    }
    if (own)
        end_pending(own, false);
    else
        free_args(op, args, &scratch);
    if (wrote && o->shared->blocked)
        orc_retry(o);
    orc_account(o, e->source, e->group.reads, wrote);
}

void orc_request_invoked(struct orc_event *e, struct orc_object *o)
{
    struct scratch scratch;
    bool wrote;
    if (o->shared->state != ORC_OWNER) {
        orc_send_reply(e->upcall, ORC_REPLY_MOVED, NULL);
        return;
    }
    if (e->request.operation >= ORC_OP_FIRST + o->class->count)
        orc_broken(e->source);
    const struct orc_operation *op = orc_operation_of(o->class, e->request.operation);
    void **args = args_of(e, op, &scratch);
    if (orc_try(o, e->request.operation, args, false, &wrote) == ORC_BLOCKED) {
        if (o->shared->global_refs <= 1) {
            free_args(op, args, &scratch);
            orc_send_reply(e->upcall, ORC_REPLY_DEADLOCK, NULL);
            return;
        }
        struct orc_blocked *b = block(o, e->request.operation, keep_args(op, args, &scratch));
        b->source = e->source;
        b->caller = e->upcall;
        b->done = remote_done;
        return;
    }
    reply_done(e->upcall, op, args);
    free_args(op, args, &scratch);
    if (wrote && o->shared->blocked)
        orc_retry(o);
    orc_account(o, e->source, !wrote, wrote);
}

void orc_replied(struct orc_event *e)
{
    struct orc_pending *p = e->caller;
    p->deadlock = e->reply.status == ORC_REPLY_DEADLOCK;
    struct orc_reader r = {.p = e->bytes, .n = e->n};
    if (e->reply.status == ORC_REPLY_DONE && p->operation && !e->taken)
        orc_get_out(&r, e->source, p->operation, p->args);
    end_pending(p, e->reply.status == ORC_REPLY_MOVED);
}

void orc_check_alone(struct orc_object *o)
{
    for (struct orc_blocked **at = &o->shared->blocked, *b; (b = *at);) {
        if (b->done == own_done)
            orc_alone(o, b->operation, b->at);
        if (b->done == remote_done) {
            orc_send_reply(b->caller, ORC_REPLY_DEADLOCK, NULL);
            *at = b->next;
            if (!*at)
                o->shared->last = at;
            other_done(o, b);
        } else {
            at = &b->next;
        }
    }
}
