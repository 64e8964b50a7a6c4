/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event.c - what upcalls make of messages: events that are executed later. What a message brings is taken straight into
 * values where it is long and its operation is known; of a multicast of this rank itself nothing is taken in, since
 * the caller still has its arguments. */
#include "cluster.h"
#include <stdlib.h>

/* Small events are used again. */
enum { SMALL = 128 };
static struct orc_event *spare;

/* For each rank, the body that comes in parts and how much of it has come. */
struct whole {
    struct orc_event *e;
    size_t n;
};
static struct whole *wholes;

static struct orc_event *new_event(enum orc_event_kind kind, pan_msg_p msg, size_t n)
{
    struct orc_event *e = n <= SMALL ? spare : NULL;
    if (e)
        spare = e->next;
    else if (!(e = malloc(sizeof *e + (n > SMALL ? n : SMALL))))
        orc_fail(0, "there is no memory left for %zu bytes", n);
    e->next = NULL;
    e->kind = kind;
    e->source = (uint32_t)pan_msg_sender(msg);
    e->n = n;
    e->args = NULL;
    e->taken = false;
    return e;
}

void orc_event_free(struct orc_event *e)
{
    if (e->args)
        orc_free_values(e->operation, e->args);
    if (e->n > SMALL) {
        free(e);
        return;
    }
    e->next = spare;
    spare = e;
}

void orc_events_free(void)
{
    for (int i = 0; wholes && i < orc_ranks(); i++)
        free(wholes[i].e);
    free(wholes);
    wholes = NULL;
    while (spare) {
        struct orc_event *e = spare;
        spare = e->next;
        free(e);
    }
}

/* ---- a layer of its own ---- */

pan_iovec_t orc_layer_out(struct orc_layer *l, const struct orc_buffer *body)
{
    size_t n = body ? body->n : 0;
    l->buffer = ORC_BUFFER_IN(l->small);
    if (!orc_options.without[ORC_SAVES_LAYERS])
        return (pan_iovec_t){n ? body->p : NULL, n};
    orc_counts.layered++;
    orc_put_u64(&l->buffer, n);
    orc_put_bytes(&l->buffer, n ? body->p : NULL, n);
    return (pan_iovec_t){l->buffer.p, l->buffer.n};
}

/* Copies the message to the layer, and from there to the event. */
static int layer_in(struct orc_event *e, pan_msg_p msg)
{
    uint64_t n;
    size_t whole = e->n + sizeof n;
    unsigned char *layer = malloc(whole);
    if (!layer)
        orc_fail(0, "there is no memory left for %zu bytes", whole);
    orc_counts.layered++;
    int status = pan_msg_consume(msg, layer, whole);
    memcpy(&n, layer, sizeof n);
    if (status >= 0 && n != e->n)
        orc_broken(e->source);
    memcpy(e->bytes, layer + sizeof n, e->n);
    free(layer);
    return status;
}

/* ---- messages ---- */

static struct orc_event *end(struct orc_event *e, pan_msg_p msg, bool whole)
{
    pan_msg_clear(msg);
    if (whole)
        return e;
    orc_event_free(e);
    return NULL;
}

/* The bytes of the message, for whoever executes the event. */
static struct orc_event *with_bytes(enum orc_event_kind kind, pan_msg_p msg)
{
    size_t n = pan_msg_left(msg);
    const bool layers = n && orc_options.without[ORC_SAVES_LAYERS];
    const size_t head = layers ? sizeof(uint64_t) : 0;
    if (n < head)
        orc_broken((uint32_t)pan_msg_sender(msg));
    struct orc_event *e = new_event(kind, msg, n - head);
    orc_counts.kept += n - head;
    int status = layers ? layer_in(e, msg) : n ? pan_msg_consume(msg, e->bytes, n) : 0;
    return end(e, msg, status >= 0);
}

static int take(void *from, void *out, size_t n)
{
    return pan_msg_consume(from, out, n);
}

static struct orc_reader reader_of(pan_msg_p msg, unsigned char window[ORC_WINDOW])
{
    return (struct orc_reader){.n = pan_msg_left(msg), .from = msg, .take = take, .window = window};
}

/* Whether values are taken straight out of the message. Few bytes are sooner copied. */
static bool is_direct(pan_msg_p msg)
{
    return pan_msg_left(msg) > SMALL && !orc_options.without[ORC_SAVES_COPIES] &&
           !orc_options.without[ORC_SAVES_LAYERS];
}

/* The operation, or NULL: the object is not known here yet, or it is no operation of it. */
static const struct orc_operation *operation_of(uint64_t id, uint32_t number)
{
    const struct orc_object *o = orc_find(id);
    return o && number < ORC_OP_FIRST + o->class->count ? orc_operation_of(o->class, number) : NULL;
}

static struct orc_event *with_args(enum orc_event_kind kind, pan_msg_p msg, const struct orc_operation *op)
{
    struct orc_event *e = new_event(kind, msg, 0);
    unsigned char window[ORC_WINDOW];
    struct orc_reader r = reader_of(msg, window);
    e->operation = op;
    e->args = orc_new_values(op);
    orc_get_in(&r, e->source, op, e->args);
    return end(e, msg, !r.cut);
}

/* Drops the length that a layer put in front. */
static void strip_layer(struct orc_event *e)
{
    uint64_t n;
    orc_counts.layered++;
    if (e->n < sizeof n)
        orc_broken(e->source);
    memcpy(&n, e->bytes, sizeof n);
    if (n != e->n - sizeof n)
        orc_broken(e->source);
    memmove(e->bytes, e->bytes + sizeof n, n);
    e->n = n;
}

/* A part of a body. Returns the event with the last one, before that NULL. */
static struct orc_event *with_part(pan_msg_p msg, const struct orc_group *head)
{
    const size_t n = pan_msg_left(msg);
    const bool more = head->kind_operation >> 24 & ORC_GROUP_MORE;
    struct whole *w = &wholes[pan_msg_sender(msg)];
    if (!w->e) {
        w->e = new_event(ORC_EVENT_GROUP, msg, head->id);
        w->n = 0;
    }
    struct orc_event *e = w->e;
    if (n > e->n - w->n || (!more && n != e->n - w->n))
        orc_broken(e->source);
    int status = pan_msg_consume(msg, e->bytes + w->n, n);
    w->n += n;
    pan_msg_clear(msg);
    if (more || status < 0)
        return NULL;
    w->e = NULL;
    if (orc_options.without[ORC_SAVES_LAYERS])
        strip_layer(e);
    orc_counts.kept += e->n;
    return e;
}

struct orc_event *orc_event_of_group(pan_msg_p msg, const void *proto)
{
    struct orc_group head;
    memcpy(&head, (const char *)proto + pan_group_proto_offset(), sizeof head);
    const bool more = head.kind_operation >> 24 & ORC_GROUP_MORE;
    const bool invokes = (head.kind_operation >> 24 & ~(uint32_t)ORC_GROUP_MORE) == ORC_GROUP_INVOKE;
    const bool own = invokes && pan_msg_sender(msg) == orc_rank();
    const bool skips = own && !orc_options.without[ORC_SAVES_COPIES];
    const bool parts = !skips && (more || (wholes && wholes[pan_msg_sender(msg)].e));
    if (skips && more) {
        pan_msg_clear(msg);
        return NULL;
    }
    if (parts && !wholes)
        wholes = orc_alloc((size_t)orc_ranks() * sizeof *wholes);
    const struct orc_operation *op =
        invokes && !own && !parts && is_direct(msg) ? operation_of(head.id, head.kind_operation & 0xffffff) : NULL;
    struct orc_event *e = skips   ? end(new_event(ORC_EVENT_GROUP, msg, 0), msg, true)
                          : parts ? with_part(msg, &head)
                          : op    ? with_args(ORC_EVENT_GROUP, msg, op)
                                  : with_bytes(ORC_EVENT_GROUP, msg);
    if (e)
        e->group = head;
    return e;
}

struct orc_event *orc_event_of_request(pan_msg_p msg, const void *proto, pan_upcall_p upcall)
{
    struct orc_request head;
    memcpy(&head, (const char *)proto + pan_rpc_proto_offset(), sizeof head);
    const struct orc_operation *op =
        head.kind == ORC_REQUEST_INVOKE && is_direct(msg) ? operation_of(head.id, head.operation) : NULL;
    struct orc_event *e = op ? with_args(ORC_EVENT_REQUEST, msg, op) : with_bytes(ORC_EVENT_REQUEST, msg);
    if (e) {
        e->request = head;
        e->upcall = upcall;
    }
    return e;
}

/* What an operation gives back goes where its caller waits for it, also before the reply may be executed. */
struct orc_event *orc_event_of_reply(pan_msg_p msg, const void *proto, struct orc_pending *caller)
{
    struct orc_reply head;
    struct orc_event *e;
    memcpy(&head, (const char *)proto + pan_rpc_proto_offset(), sizeof head);
    if (head.status == ORC_REPLY_DONE && caller->operation && is_direct(msg)) {
        unsigned char window[ORC_WINDOW];
        struct orc_reader r = reader_of(msg, window);
        e = new_event(ORC_EVENT_REPLY, msg, 0);
        orc_get_out(&r, e->source, caller->operation, caller->args);
        e->taken = true;
        e = end(e, msg, !r.cut);
    } else {
        e = with_bytes(ORC_EVENT_REPLY, msg);
    }
    if (e) {
        e->reply = head;
        e->caller = caller;
    }
    return e;
}
